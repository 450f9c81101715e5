/* fake.h - a struct redlock_io whose clock, network and servers are variables: for what real servers
   can't repeat. Time passes only in `wait` (and by fake_pass). The servers are those of mini.h.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#ifndef FAKE_H
#define FAKE_H

#include "mini.h"
#include "redlock.h"

enum { FAKE_NODES = 16, FAKE_BYTES = 65536, FAKE_LOG = 20000, FAKE_DUE = 64, FAKE_HELD = 8 };

/* What was sent on a connection whose packets are lost: it arrives when the test says so, also long after
   the client has closed that connection. */
struct fake_held {
    int node, epoch, used; /* used 0: a free slot */
    struct mini_session session;
    char in[4096];
    unsigned in_used;
};

struct fake_node {
    /* The test sets these. */
    int refuses;         /* connecting fails */
    int never_up;        /* connecting never ends */
    int hung;            /* takes bytes, runs and says nothing */
    int full;            /* takes no bytes */
    int drip;            /* moves one byte per call, both ways */
    int deaf_to_set;     /* runs a SET, but its reply never comes */
    uint64_t delay_us;   /* from the arrival of a command to its reply */
    uint64_t connect_us; /* from the start of connecting until the connection is up */
    const char *says;    /* instead of every reply; "": closes the connection instead */
    int says_once;       /* `says` only for the next command */
    const char *greets;  /* said on connecting, unasked */
    struct mini_server server;

    /* And may look at these. */
    int connected, dials, epoch;
    struct mini_session session;

    /* Bytes under way: to the server, and back, where `due` says up to which byte and from when on. */
    char in[FAKE_BYTES], out[FAKE_BYTES];
    unsigned in_used, out_first, out_used, dues;
    struct {
        unsigned end;
        uint64_t ready_us;
    } due[FAKE_DUE];
    uint64_t up_us;         /* when the connection is up */
    struct fake_held *held; /* where what is sent goes; NULL: to the server */
};

struct fake_command {
    uint64_t at_us;
    int node, epoch; /* epoch: which connection */
    char kind;       /* as in mini.h */
    char key[80], token[128];
    uint32_t ttl_ms;
    int heals; /* an extension that may set the key again */
};

extern struct fake_node fake_nodes[FAKE_NODES];
extern struct fake_command fake_log[FAKE_LOG]; /* in the order of sending, whole commands */
extern unsigned fake_logged;
extern int fake_unlogged; /* nothing is logged */
extern uint64_t fake_now_us;
extern uint64_t fake_wall_us; /* stands still */
extern uint32_t fake_forks;
extern uint64_t fake_transmit_us; /* a transmit takes so long */
extern uint64_t fake_sleep_us;    /* the process is stopped so long in the next wait */
extern int fake_no_entropy;
extern unsigned fake_waits;

/* Forgets all, sets up `count` nodes and their client. */
void fake_begin(struct redlock_client *client, struct redlock_node *nodes, unsigned count,
                const struct redlock_settings *settings);
const struct redlock_io *fake_io(void);

void fake_put(int node, const char *key, const char *value, uint32_t ttl_ms); /* 0: without end */
const struct mini_key *fake_find(int node, const void *key, unsigned size);
unsigned fake_keys_left(void);               /* on all nodes that are not hung */
void fake_delete(int node, const char *key); /* by another client; told where tracked */
void fake_break(int node);                   /* the server closes its connection */
void fake_resume(int node);                  /* ends `hung`: runs what was sent */
void fake_hold(int node);       /* the packets of its present connection are lost from now on */
unsigned fake_arrive(int node); /* they arrive, the oldest connection's first: how many
                                                        commands were run */
void fake_restart(int node);    /* another process, without any key */
unsigned fake_count(int node, char kind); /* commands logged; node -1: all nodes */
void fake_pass(struct redlock_client *client, uint64_t us); /* serves the client for so long */

#endif
