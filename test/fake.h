/* fake.h - a struct redlock_io whose clock, network and servers are variables: for what real servers
   can't repeat. Time passes only in `wait` (and by fake_pass). The servers know what the library
   sends, no more; test/fake_test.c compares them with redis-server.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#ifndef FAKE_H
#define FAKE_H

#include "redlock.h"

enum { FAKE_NODES = 16, FAKE_KEYS = 64, FAKE_BYTES = 65536, FAKE_LOG = 20000 };

struct fake_key {
    char key[80], value[128];
    unsigned key_size, value_size; /* key_size 0: free */
    uint64_t until_us;
};

struct fake_node {
    /* The test sets these. */
    int refuses;        /* dial fails */
    int never_up;       /* dial never ends */
    int hung;           /* takes bytes, runs and says nothing */
    int full;           /* takes no bytes */
    int drip;           /* moves one byte per call, both ways */
    int deaf_to_set;    /* runs a SET, but its reply never comes */
    uint64_t delay_us;  /* from the arrival of a command to its reply */
    const char *says;   /* instead of every reply; "": hangs up instead */
    int says_once;      /* `says` only for the next command */
    const char *greets; /* said on connecting, unasked */
    const char *hello;  /* its answer to HELLO instead of its own */
    const char *password;
    int old;        /* knows no HELLO */
    int no_info;    /* INFO is not permitted */
    int no_pushes;  /* CLIENT TRACKING is not permitted */
    int run, age_s; /* of the server; run 0: one of its own */

    /* And may look at these. */
    struct fake_key keys[FAKE_KEYS];
    int connected, dials, epoch;
    int resp3, known, database, tracking; /* of the connection */
    struct fake_key tracked[4];           /* that it has read, by name only */

    /* Bytes under way: to the server, and back, where `ready_us` says from when on. */
    char in[FAKE_BYTES], out[FAKE_BYTES];
    unsigned in_used, out_first, out_used;
    uint64_t ready_us;
};

struct fake_command {
    uint64_t at_us;
    int node, epoch; /* epoch: which connection */
    char
        kind; /* 'S'et, 'M'any keys, 'F'ence, 'R'aise, 'E'xtend, 'D'elete; 'H'ello, 'A'uth, se'L'ect, 'T'racking, 'I'nfo */
    char key[80], token[128];
    uint32_t ttl_ms;
    int heals; /* an extension that may set the key again */
};

extern struct fake_node fake_nodes[FAKE_NODES];
extern struct fake_command fake_log[FAKE_LOG]; /* in the order of sending, whole commands */
extern unsigned fake_logged;
extern uint64_t fake_now_us;
extern uint64_t fake_wall_us; /* stands still */
extern uint32_t fake_forks;
extern uint64_t fake_transmit_us; /* a transmit takes so long */
extern uint64_t fake_sleep_us;    /* the process is stopped so long in the next wait */
extern int fake_no_entropy;
extern unsigned fake_waits;

/* Forgets all, sets up `count` nodes and their client. */
void fake_begin(struct redlock *client, struct redlock_node *nodes, unsigned count,
                const struct redlock_settings *settings);
const struct redlock_io *fake_io(void);

void fake_put(int node, const char *key, const char *value, uint32_t ttl_ms);
const struct fake_key *fake_find(int node, const void *key, unsigned size);
unsigned fake_keys_left(void);                       /* on all nodes that are not hung */
void fake_delete(int node, const char *key);         /* by another client; told where tracked */
void fake_break(int node);                           /* the server closes its connection */
void fake_resume(int node);                          /* ends `hung`: runs what was sent */
unsigned fake_count(int node, char kind);            /* commands logged; node -1: all nodes */
void fake_pass(struct redlock *client, uint64_t us); /* serves the client for so long */

#endif
