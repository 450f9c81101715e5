/* redlock_private.h - the private members of the structs in redlock.h, which includes this file. They stand here because
   you provide the memory. Your program uses none of them: they change without notice.

   What is used most comes first, because small processors reach the first bytes of a struct with shorter instructions.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#ifndef REDLOCK_PRIVATE_H
#define REDLOCK_PRIVATE_H

struct redlock_io;
struct redlock_lock;
struct redlock_node;

/* A command whose reply is due. */
struct redlock_request {
    void *owner;      /* the requester, a lock or a redlock_owed; NULL: the reply is dropped */
    uint16_t repeats; /* how many such commands without a requester follow each other */
    uint8_t command, role;
};

/* Of a node. */
struct redlock_node_private {
    redlock_mask bit; /* of this node in sets of nodes */
    uint8_t index;
    uint8_t useful;       /* 1: when the connection breaks, it is connected again at once. R5 */
    uint8_t replied;      /* 1: a reply has come since the last tick */
    uint8_t sampled;      /* 1: the reply to the timed request has come since the last tick */
    uint8_t handshake;    /* how far the handshake was queued, a command */
    uint8_t denied;       /* its last error was a denial: a retry alone will not fix it */
    uint8_t role_next;    /* the next item of the reply to HELLO is the role */
    uint8_t first, count; /* of `requests`, a ring */
    uint8_t sought; /* the request behind the one that was searched last, counted from the first */
    uint8_t timed;  /* the request that is timed, counted from the oldest, which is 1; 0: none */
    uint8_t part;   /* replies of the first request that have come */
    uint8_t resp2;  /* HELLO was refused on this connection: RESP2 */
    uint8_t notifies;  /* it supports client tracking. R7 */
    uint8_t native;    /* its compare-and-delete command, */
    uint8_t native_is; /* and whether it is known to work. R11 */
    uint16_t cursor;   /* in the client's send buffer: what was sent to this node */
    /* Before the last connect, on average. 0: a lock has had a reply since; 1: and then a handshake was answered. R5 */
    uint16_t pause_ms;
    uint32_t pause_us;     /* as drawn */
    uint32_t variation_us; /* of the round trip, smoothed. R15 */
    uint32_t timeout_us;   /* how long a reply may take. R15 */
    uint64_t timed_us;     /* when the timed request was queued */
    uint64_t mark_us;      /* since when a reply or connection is due. DOWN: when it failed */
    uint64_t votes_us;     /* votes count from then on. R14 */
    uint32_t run;          /* the server's run_id, hashed; 0: not known. R13 */
    uint32_t age_s;        /* of that run, as the server said */
    uint32_t last_run;     /* `run`, or that of a connection before; 0: not known */
    struct resp_reader reader;
    struct redlock_request requests[REDLOCK_PIPELINE_MAX];
};

/* Of a lock. */
struct redlock_lock_private {
    uint8_t state, list;
    int8_t outcome;         /* redlock_status, once decided */
    redlock_mask todo;      /* nodes that the present command must still be sent to */
    redlock_mask waits;     /* nodes whose reply to it is due */
    struct {                /* of an attempt to acquire, and of its lock */
        redlock_mask asked; /* nodes that may have our key: each is sent a release. R4 */
        redlock_mask late;  /* nodes that confirmed after the decision */
        /* Nodes that are sent one more command: an extension said that the key is missing (R9), or a
           release got a temporary error (R4). */
        redlock_mask again;
        /* Nodes where a command that creates the key is unanswered: on the present connection, */
        redlock_mask open;
        redlock_mask suspect; /* and on a former one. R8b */
        redlock_mask behind;  /* nodes that owe the reply to an extension of an earlier round. R9 */
        redlock_mask mute;    /* nodes that had no vote, and may have lost the key. R14 */
        redlock_mask free;    /* nodes where the key may be free. R7 */
        uint8_t confirms;     /* rounds to agree on a fencing token */
    } attempt;
    struct {                 /* of a round */
        redlock_mask broken; /* nodes that gave no usable reply once: a second time is a failure */
        redlock_mask denied; /* nodes that failed for lack of permission */
        redlock_mask agreed; /* nodes whose counter is `fencing_token`. R16 */
        uint8_t holding;     /* how many nodes the holder with most of them has */
    } round;
    struct {               /* of an operation */
        uint8_t attempts;  /* so far */
        uint8_t quick;     /* quick retries in a row */
        uint8_t slow;      /* slow retries */
        uint8_t spurious;  /* notifications that led to no lock. R7 */
        uint16_t renewals; /* automatic extensions still allowed, plus 1; 0: none asked for. R10 */
    } op;
    uint64_t asked_us; /* when this round began: each node has its time for a vote from then on */
    uint64_t
        due_us; /* of what `state` waits for; in LINE: the end of the pause, then that of stall_ms */
    /* End of wait_ms, NEVER in an acquire with 0; before the first step, wait_ms in microseconds */
    uint64_t until_us;
    union {
        uint64_t started_us; /* T1, R1; in LINE: when the wait for connections began */
        /* In a rollback and in a release, which have no T1. Tokens are hashed; 0: unknown. */
        struct {
            uint16_t named; /* the holder with most nodes */
            uint16_t on[REDLOCK_NODES_MAX];
        } holder;
    } at;
    struct redlock_lock *next, *prev;
};

/* Locks in the same state of waiting: enum rl_list in core.h. */
struct redlock_list {
    struct redlock_lock *first, *last;
};

/* A release that some nodes may be sent again. R4 */
struct redlock_owed {
    redlock_mask todo;  /* nodes that have not answered it well; 0: free */
    redlock_mask waits; /* nodes whose reply is due */
    uint8_t more_keys;  /* than one */
    uint16_t size;      /* of `bytes`: keys and token, as they are sent */
    uint64_t due_us;    /* it is sent again */
    uint64_t until_us;  /* the keys have expired */
    uint8_t bytes[REDLOCK_KEY_MAX + REDLOCK_LABEL_MAX + 60];
};

/* Bytes that wait to be sent, up to `end` from the run before, and the nodes that are sent them. */
struct redlock_run {
    uint16_t end;
    redlock_mask nodes;
};

/* Of a client. */
struct redlock_client_private {
    uint8_t count, quorum;
    /* 1: a lock is complete, a node is down or there is room again, since this tick began */
    uint8_t tick_again;
    uint8_t jammed;      /* 1: the send buffer had no room, until it is empty */
    uint8_t invalid;     /* which argument was invalid */
    redlock_mask all;    /* all nodes */
    redlock_mask in[5];  /* the nodes in each state */
    redlock_mask busy;   /* nodes with events, which the next tick must look at */
    redlock_mask broke;  /* nodes whose connection broke, before the locks have noted it */
    redlock_mask full;   /* nodes that had no free request, until one is answered */
    redlock_mask wanted; /* nodes that some lock must still be sent to: they are connected */
    /* Nodes whose present process may still run a command that creates a key, of some lock. R8b */
    redlock_mask abandoned;
    /* Those of them that an adopted lock named: which process that is becomes known on the next connection. R8b */
    redlock_mask unidentified;
    struct {
        redlock_mask unsent; /* nodes for which there are unsent bytes */
        uint16_t used, runs; /* of `out_bytes` and `out_run` */
    } out;
    const struct redlock_io *io;
    struct redlock_node *nodes;
    struct redlock_list list[5];
    struct redlock_settings settings;
    uint64_t now_us;    /* latest reading */
    uint64_t due_us;    /* of the next tick, unless something happens before */
    uint64_t jammed_us; /* `jammed` since then */
    uint64_t line_us;   /* no lock that waits in line gives up before */
    uint64_t rest_us;   /* until then attempts with a ready quorum wait for the rest. R2 */
    uint32_t process;   /* that called redlock_init */
    uint8_t waiting;    /* 1: some lock may wait for a notification. R7 */
    struct redlock_run out_run[REDLOCK_SEND_MAX < 512 ? 4 : REDLOCK_SEND_MAX / 128 + 1];
    uint8_t out_bytes[REDLOCK_SEND_MAX];
    uint8_t input[REDLOCK_READ_MAX]; /* what was read last */
    struct redlock_owed owed[REDLOCK_OWED_MAX > 0 ? REDLOCK_OWED_MAX : 1];
};

#endif
