/* redlock_private.h - the private members of the structs in redlock.h, which includes this file.
   They stand here because you provide the memory. Your program uses none of them: they change
   without notice. docs/design.md has a table of the sets of nodes, with an example.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#ifndef REDLOCK_PRIVATE_H
#define REDLOCK_PRIVATE_H

struct redlock_io;
struct redlock_lock;
struct redlock_node;

/* A command whose reply is due. */
struct redlock_request {
    void *owner;      /* the requester: a lock or a redlock_owed; NULL: the reply is dropped */
    uint16_t repeats; /* how many equal commands it stands for; above 1 only without an owner */
    uint8_t command;  /* enum rl_command; RL_BY_HASH beside it: see rl_command_of */
    uint8_t round;    /* that of the lock in which the reply is a vote, or what else it is for */
};

/* Of a node. */
struct redlock_node_private {
    redlock_mask bit; /* of this node, in sets of nodes */
    uint8_t index;    /* of this node, from 0 */

    /* When the connection is made again. R5 */
    uint8_t reconnect; /* 1: at once, if it is only lost, as servers close idle connections */
    /* 1: a handshake set `reconnect`, and no lock has had a reply since then */
    uint8_t retried_at_once;
    uint8_t denied;        /* 1: the last error was a denial. A retry alone will not fix it */
    uint8_t failures;      /* pauses in a row, 255 at most; a reply to a lock ends the row */
    uint64_t reconnect_us; /* a moment: from then on it may be connected, if it is DOWN or IDLE */
    /* A moment, the latest of these: its state changed, a reply came, the first request was queued.
       A connection or a reply that is due is due since then. */
    uint64_t changed_us;

    /* The handshake, and what it told of the server. */
    uint8_t handshake;  /* enum rl_command: the part that is queued next; RL_READY: all is queued */
    uint8_t hello_next; /* enum rl_hello: what the next item of the reply to HELLO is */
    uint8_t resp2;      /* 1: HELLO was refused on this connection. R12 */
    /* 1: connections ask the server to track keys: with `fair`, or since a lock has waited. R7 */
    uint8_t tracks;
    uint8_t notifies;    /* 1: the server has said that it tracks keys for this connection */
    uint8_t release;     /* enum rl_command: the cheapest release on this connection. R11 */
    uint8_t only_script; /* 1: one of these was refused: the script releases */
    uint8_t no_queue;    /* enum rl_no_queue; not 0: locks are asked for without the gate. R19 */
    uint32_t run;        /* the server's run_id, hashed; 0: not known. R13 */
    uint32_t last_run;   /* `run`, or that of the connection before; 0: not known. R13 */
    uint32_t age_s;      /* how long that process has run, by the wall clock of its server */
    uint64_t began_us;   /* a moment: the process of `last_run` is no older; 0: not known. R14 */
    uint64_t heard_us;   /* a moment: the last reply of that process. R14 */
    uint64_t votes_us;   /* a moment: from then on it votes. R14 */
    /* A moment, if `was_idle`: until then an attempt waits for its vote; 0: none does. R5 */
    uint64_t vote_until_us;
    /* Requests: commands whose replies are due. */
    uint8_t first;       /* the oldest in `requests`, a ring */
    uint8_t count;       /* how many are in use */
    uint8_t was_idle;    /* 1: nothing had come for stall_ms when the oldest request was queued */
    uint8_t search_from; /* where the next search begins, counted from the oldest */
    uint16_t cursor;     /* in the client's send buffer: what is before it was sent to this node */

    /* The round trip. R15 */
    uint8_t sampled; /* 1: the reply to the timed request has come since the last tick */
    uint8_t timed;   /* which request is timed, counted from the oldest, which is 1; 0: none */
    uint32_t variation_us; /* smoothed */
    uint32_t timeout_us;   /* how long a reply may take */
    uint64_t timed_us;     /* the moment when the timed request was queued */

    struct resp_reader reader;
    struct redlock_request requests[REDLOCK_PIPELINE_MAX];
};

/* Of a lock. */
struct redlock_lock_private {
    uint8_t state;  /* enum rl_state */
    uint8_t list;   /* enum rl_list: the list that `next` and `link` belong to */
    int8_t outcome; /* enum redlock_status: how the operation will end; PENDING: not decided */
    struct redlock_lock *next, **link; /* `link`: the pointer in the list that leads to this lock */
    struct {
        struct redlock_lock *child, *next, *prev; /* `prev`: the parent, of a first child */
    } heap; /* of locks that are due at some time, see redlock.c */
#if !REDLOCK_MINIMAL
    struct {
        struct redlock_lock *child[2], **link; /* `link`: the pointer in the trie that leads here;
                                                  NULL: another lock with this hash has it */
        struct redlock_lock *next, *prev;      /* the ring of locks with the same hash */
        uint32_t hash;
    } waiter; /* of locks that a notification may concern, see wait.c */
#endif

    /* The present command: a round, or a command that is sent to the rest while the lock is
       held. */
    redlock_mask unsent;     /* nodes that it must still be sent to */
    redlock_mask unanswered; /* nodes whose reply to it is due, and counts in this round */

    /* What an attempt has done to the nodes, until its lock is released or has failed. */
    struct {
        redlock_mask asked; /* nodes that may have our key: each is sent a release. R4 */
        /* Nodes of which no generation was learned since a round that succeeded began: a yes that
           tells the known one makes a member, also after the decision. Without a known one this
           says nothing. R8 */
        redlock_mask proved;
        uint8_t round;                          /* the number of the present round, from 1 */
        uint8_t replies_due[REDLOCK_NODES_MAX]; /* how many replies each node owes the lock */
        uint8_t repair[4];                      /* the generation of the repair that is sent */
        redlock_mask release_failed; /* nodes where it failed for a time: it is repeated. R4 */
        /* 1: a release began while the lock was valid */
        uint8_t released;
        /* Nodes where that release may have deleted the key, and whose reply did not come, or came to
           an earlier call: from now on a missing key proves no loss there. R11 */
        redlock_mask release_again;
        uint32_t longest_ttl_ms; /* of its commands: no key of it lives longer */
        redlock_mask free;       /* nodes that report that the key may be free. R7 */
        uint8_t confirms;        /* rounds to agree on a fencing token, so far */
    } attempt;

    /* What a round has heard, besides `granted`, `refused` and `failed`. */
    struct {
        redlock_mask resent;    /* nodes whose connection broke once: a second time is a failure */
        redlock_mask by_script; /* nodes that are released by the script. R11 */
        redlock_mask denied;    /* nodes that failed for lack of permission */
        redlock_mask fresh;     /* nodes whose generation was learned since it began, or that had
                                   no vote then. R9, R14 */
        redlock_mask agreed;    /* nodes whose counter is `fencing_token`. R16 */
        uint8_t taken;          /* 1: a node replied that another client has the key */
    } round;

    /* Of an operation. */
    struct {
        uint8_t attempts; /* so far */
        uint8_t quick;    /* quick retries in a row */
        uint8_t slow;     /* slow retries */
        uint8_t spurious; /* how long it backs off after notifications that led to no lock. R7 */
        uint8_t waits;    /* 1: wait_ms is not 0 */
        /* 1: a notification has shortened its pause, and no holder was seen since. R7 */
        uint8_t notified;
        uint8_t cancelled; /* 1: it is to end */
        /* nodes for which one has come early since the last one that counts. R10 */
        redlock_mask early;
        uint16_t renewals; /* automatic extensions still allowed. R10 */
    } op;

    /* Moments. */
    uint64_t in_line_us; /* the lock began to wait in line for the present attempt */
    uint64_t started_us; /* T1 of the attempt, or of the extension. R1 */
    uint64_t asked_us;   /* the nodes were asked for votes: each has its time from then on. R15 */
    uint64_t due_us;     /* the lock is stepped, if nothing happens to it before */
    uint64_t renew_us; /* the next automatic extension that counts is due, if there are any. R10 */
    uint64_t until_us; /* wait_ms is over; REDLOCK_NEVER: an acquire with wait_ms 0 */

    /* Of a waiter in the wait queue, see wait.c. R19 */
    struct {
        uint64_t began_us; /* a moment: the acquire began */
        /* The same by the clocks of the nodes, in ms, once they agree on it; until then, below
           2^32, how long it has waited. And what each node has said; 0: nothing. */
        uint64_t since_ms, since_on[REDLOCK_FAIR ? REDLOCK_NODES_MAX : 1];
        uint64_t look_us;   /* a moment, see rl_queue_set_look; 0: it does not look */
        uint32_t lease_ms;  /* how long its lease lasts; 0: it probes, and gets none */
        uint32_t answer_ms; /* how long its lease lasts once it is told */
        /* A hash of the token of the holder, as the last reply has it, and as the last attempt had
           it; 0: there was none. */
        uint32_t holder, last_holder;
        uint16_t place;       /* so many stand in front of it, on the node with the most */
        uint8_t name[8];      /* of this acquire, in the queues */
        uint8_t tries;        /* attempts in a row because it was told */
        uint8_t vain;         /* notifications in vain, in a row */
        uint8_t back;         /* a notification is obeyed 2^back ms later; 0: at once */
        uint8_t soon;         /* short pauses in a row, since it was told */
        uint8_t looks;        /* looks in vain, in a row */
        uint8_t is_alone;     /* 1: nobody in front may come, until the lock is taken */
        uint8_t told_here;    /* 1: this client has told it, since its last attempt began */
        uint8_t probes;       /* so many probes come before the next attempt */
        uint8_t late;         /* attempts that too few nodes have answered in time */
        redlock_mask told;    /* nodes that have told it since they replied */
        redlock_mask changed; /* nodes where the key of the lock has changed since they replied */
        redlock_mask entered; /* nodes that may have the name */
        redlock_mask refused; /* nodes that have refused the present attempt at the gate */
        redlock_mask is_free; /* of these, where nobody has the lock */
    } fair;
};

/* Locks in the same state of waiting: enum rl_list in core.h. */
struct redlock_list {
    struct redlock_lock *first, **end; /* `end`: the pointer that gets the next lock */
};

/* A release that is repeated until each node has answered it. R4 */
struct redlock_owed {
    redlock_mask unsent;     /* nodes that have not answered it well; none: the place is free */
    redlock_mask unanswered; /* nodes whose reply is due */
    uint8_t command;         /* enum rl_command: DELETE, or LEAVE */
    uint8_t more_keys;       /* how many keys more than one */
    uint8_t times;           /* it was sent */
    uint16_t size;           /* of `bytes` */
    uint64_t due_us;         /* a moment: it is sent again */
    uint64_t until_us;       /* a moment: the keys have expired */
    /* keys, token and name, as they are sent */
    uint8_t bytes[REDLOCK_KEY_MAX + REDLOCK_LABEL_MAX + (REDLOCK_FAIR ? 83 : 60)];
};

/* Bytes of the send buffer, up to `end` from the end of the run before, and the nodes that are
   sent them. */
struct redlock_run {
    uint16_t end;
    redlock_mask nodes;
};

/* Of a client. */
struct redlock_client_private {
    const struct redlock_io *io;
    struct redlock_node *nodes;
    struct redlock_settings settings;
    uint8_t count, quorum; /* of nodes */
    uint8_t invalid;       /* enum rl_argument: which argument was invalid */
    uint32_t process;      /* which process called redlock_init */

    redlock_mask all;         /* all nodes */
    redlock_mask in[5];       /* the nodes in each state: enum redlock_node_state */
    redlock_mask lost_untold; /* nodes whose connection broke, before the locks have noted it */
    redlock_mask replied;     /* nodes that have replied since the last tick */
    redlock_mask full;        /* nodes that have no free request: see rl_has_room in node.c */
    /* Each of these sets begins anew with the connection of a node. R11 */
    redlock_mask have_script[3]; /* sent the script of RL_DELETE; RL_GATE; RL_LEAVE and RL_BACK */
    redlock_mask refuse_hashes;  /* an error came behind a hash: from now on scripts are sent */
    redlock_mask wanted; /* nodes that some lock must still be sent to: they are connected */
    struct redlock_list list[5];    /* enum rl_list */
    struct redlock_lock *first_due; /* of those that wait for their time */
    struct redlock_lock *waiters;   /* the trie of those that wait for a notification. R7 */
    uint8_t owes;                   /* 0: no release is owed. R4 */
    /* 1: a lock is complete, a node is down or there is room again, since this tick began */
    uint8_t tick_again;
    uint8_t jammed; /* 1: the send buffer had no room, until it is empty */

    /* Moments. */
    uint64_t now_us;    /* when the client was served last */
    uint64_t clock_us;  /* what the clock said when it was read last */
    uint64_t ahead_us;  /* moments are ahead of the clock by this: it wrapped or stepped back */
    uint64_t due_us;    /* the next tick, unless something happens before */
    uint64_t jammed_us; /* `jammed` became 1 */
    uint64_t quorum_us; /* a quorum of nodes became ready. R2 */

    /* The send buffer, see node.c. */
    struct {
        redlock_mask unsent; /* nodes for which there are unsent bytes */
        uint16_t used, runs; /* of `out_bytes` and `out_run` */
    } out;
    struct redlock_run out_run[REDLOCK_SEND_MAX < 512 ? 4 : REDLOCK_SEND_MAX / 128 + 1];
    uint8_t out_bytes[REDLOCK_SEND_MAX];

    uint8_t input[REDLOCK_READ_MAX]; /* what was read last */
    struct redlock_owed owed[REDLOCK_OWED_MAX > 0 ? REDLOCK_OWED_MAX : 1];
};

#endif
