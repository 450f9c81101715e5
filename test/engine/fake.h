/* fake.h - a struct redlock_io with a simulated clock, network and servers (mini.h), for tests that real
   servers cannot repeat. Time passes only in the callback `wait` and in fake_pass.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#ifndef FAKE_H
#define FAKE_H

#include "mini.h"
#include "redlock.h"

enum { FAKE_NODES = 16, FAKE_BYTES = 65536, FAKE_LOG = 20000, FAKE_DUE = 64, FAKE_HELD = 8 };

/* The bytes that were sent on a connection after fake_hold. They arrive by fake_arrive, also long after the
   client has closed that connection. */
struct fake_held {
    int node, epoch, used; /* used 0: a free slot */
    struct mini_session session;
    char in[4096];
    unsigned in_used;
};

struct fake_node {
    /* The test sets these. */
    int refuses;         /* connecting fails */
    int never_up;        /* a connect never completes */
    int hung;            /* accepts bytes, runs no command and sends no reply */
    int full;            /* accepts no bytes */
    int full_calls;      /* the same, in so many calls */
    int drip;            /* moves one byte per call, both ways */
    int closes_at_hello; /* closes the connection behind its reply to HELLO, */
    int ended;           /* as it has done */
    int drops_set_reply; /* runs a SET, but sends no reply to it */
    uint64_t delay_us;   /* from the arrival of a command to its reply */
    uint64_t connect_us; /* from the start of a connect until the connection is up */
    /* the reply to each command of a lock, which is not run; "": closes the connection; NULL: none */
    const char *reply;
    int reply_once;          /* `reply` is for the next command only */
    int all_held;            /* another client has each key: locks are refused, and nothing is run */
    const char *first_bytes; /* bytes that are sent when the client connects; NULL: none */

    /* The test may read these. */
    int connected, connects, epoch;
    struct mini_session session;

    struct mini_server server; /* the test may set and read it */

    /* Bytes under way to the server (in) and back (out). out[..due[i].end) arrives at due[i].ready_us. */
    char in[FAKE_BYTES], out[FAKE_BYTES];
    struct {
        unsigned end;
        uint64_t ready_us;
    } due[FAKE_DUE];
    unsigned in_used, out_first, out_used, dues;
    uint64_t up_us;         /* when the connection is up */
    struct fake_held *held; /* where sent bytes are held back; NULL: they arrive at once */
};

struct fake_command {
    uint64_t at_us;
    int node, epoch; /* epoch: the number of the connection */
    char kind;       /* as in mini.h */
    char key[80], token[128];
    uint32_t ttl_ms;
    int repairs; /* an extension that may create the key */
    int queues;  /* a script of the wait queue */
};

extern struct fake_node fake_nodes[FAKE_NODES];
extern struct fake_command fake_log[FAKE_LOG]; /* in the order in which servers read them */
extern unsigned fake_logged;
extern int fake_unlogged; /* 1: commands are not logged */
extern uint64_t fake_now_us;

/* The clock of the io table has so many bits, and wraps. 64 after fake_begin. */
extern unsigned fake_clock_bits;
extern uint64_t fake_wall_us; /* set by the test only */
extern uint32_t fake_forks;
extern uint64_t fake_transmit_us; /* duration of each transmit */
extern uint64_t fake_sleep_us;    /* the process is paused for this time in the next wait */
extern uint64_t fake_receive_us;  /* duration of each receive that finds nothing */
extern uint64_t fake_clock_us;    /* duration of each reading of the clock */
extern int fake_no_entropy;
extern unsigned fake_waits;

/* Resets all servers and variables, and sets up `count` nodes and their client. */
void fake_begin(struct redlock_client *client, struct redlock_node *nodes, unsigned count,
                const struct redlock_settings *settings);
const struct redlock_io *fake_io(void);

void fake_put(int node, const char *key, const char *value, uint32_t ttl_ms); /* 0: no ttl */
const struct mini_key *fake_find(int node, const void *key, unsigned size);
unsigned fake_keys_left(void);               /* on all nodes that are not hung */
void fake_delete(int node, const char *key); /* by another client, with a notification */
void fake_push(int node, const char *key);   /* a notification, also where the key is not there */
void fake_break(int node);                   /* the server closes its connection */
void fake_resume(int node);                  /* ends `hung`: runs the commands that were sent */
void fake_hold(int node);                    /* holds back what is sent on the present connection */
/* The bytes of the oldest held connection arrive. Returns how many commands have run. */
unsigned fake_arrive(int node);
void fake_restart(int node); /* another process, without keys */
/* Commands logged; node -1: all nodes. 'D' counts all scripts that delete, 'd' only those that were sent by their hash. */
unsigned fake_count(int node, char kind);
void fake_pass(struct redlock_client *client, uint64_t us); /* serves the client for `us` */

#endif
