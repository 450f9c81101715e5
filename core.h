/* core.h - private: what the files of the engine know of each other. Programs never include it.
   Each layer calls only the layers below it; redlock.c, hold.c and wait.c are one layer:

       client.c    set-up, checks of arguments, event loop, blocking calls
       redlock.c   the life of a lock: attempts, votes, decision, rollback, release
       hold.c        how a held lock is kept: extension, repair, renewal
       wait.c        when a waiter asks again: pauses, notifications, the wait queue
       node.c      a connection: connect, handshake, requests and replies, sending, time limits
       command.c   the commands on the wire, what a reply means, texts for people

   What they offer each other stands here from command.c upwards; the conditions of optional
   features come last.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#ifndef REDLOCK_CORE_H
#define REDLOCK_CORE_H

#include "redlock.h"

#include <string.h>

#ifndef REDLOCK_PRIVATE /* "static" in the amalgamated file */
#if defined(__GNUC__) && defined(__ELF__)
#define REDLOCK_PRIVATE __attribute__((visibility("hidden"))) /* not exported by a shared library */
#else
#define REDLOCK_PRIVATE
#endif
#endif

/* The tests stop where a condition is false. */
#ifndef RL_ASSERT
#define RL_ASSERT(condition) ((void)(condition))
#endif

/* Define this to follow the decisions: a text, the lock or node, and a number. It stands where a
   lock or a node changes its state, where a vote comes, and where a quorum has confirmed. */
#ifndef RL_TRACE
#define RL_TRACE(what, object, value) ((void)0)
#endif

#if !REDLOCK_MINIMAL && RESP_DEPTH_MAX < 2
#error "notifications need RESP_DEPTH_MAX of 2: their keys are a list in a list"
#endif

#define RL_MS_US ((uint64_t)1000)
#define RL_FENCING_TOKEN_MAX ((int64_t)1 << 53) /* from here on Lua does not count exactly */

/* ---- Masks and time ------------------------------------------------------------------------- */

static inline redlock_mask rl_bit(unsigned i)
{
    return (redlock_mask)(1U << i);
}

/* The bit of the first node of a set. */
static inline unsigned rl_lowest(unsigned nodes)
{
    return nodes & (0U - nodes);
}

static inline void rl_set(redlock_mask *mask, unsigned bits)
{
    *mask = (redlock_mask)(*mask | bits);
}

static inline void rl_clear(redlock_mask *mask, unsigned bits)
{
    *mask = (redlock_mask)(*mask & ~bits);
}

/* The moment now, by the clock of the io table. A clock of 32 bits that has wrapped goes on; one
   that was set back counts on from its last value. */
static inline uint64_t rl_now(struct redlock_client *c)
{
    uint64_t last_us = c->priv.clock_us, clock_us = c->priv.io->now_us(c->priv.io->context);

    if (clock_us < last_us)
        c->priv.ahead_us += last_us <= UINT32_MAX && last_us - clock_us > UINT32_MAX / 2
                                ? (uint64_t)1 << 32
                                : last_us - clock_us;
    c->priv.clock_us = clock_us;
    return clock_us + c->priv.ahead_us;
}

/* Sets the moment at which the client is served. */
static inline void rl_set_now(struct redlock_client *c)
{
    c->priv.now_us = rl_now(c);
}

/* Whether the moment was past when the client was served last. */
static inline int rl_past(const struct redlock_client *c, uint64_t moment_us)
{
    return c->priv.now_us >= moment_us;
}

/* The longest wait for a vote: a quarter of the ttl, because waiting for about as long as the ttl
   leaves nothing to win, and livelocks. R15 */
static inline uint64_t rl_vote_max_us(const struct redlock_lock *lock)
{
    return lock->ttl_ms * (RL_MS_US / 4);
}

/* An automatic extension without a limit, in `renewals`. */
enum { RL_NO_LIMIT = UINT16_MAX };

static inline void rl_clear_error(struct redlock_node *node)
{
    node->error[0] = '\0';
    node->fault = REDLOCK_FAULT_NONE;
}

/* ---- Texts (command.c) ---------------------------------------------------------------------- */

enum rl_error {
    RL_CANNOT_CONNECT,
    RL_CONNECTION_LOST,
    RL_CLOSED_IN_HANDSHAKE,
    RL_NO_CONNECTION_IN_TIME,
    RL_NO_REPLY_IN_TIME,
    RL_ACCEPTS_NO_DATA,
    RL_NOT_RESP,
    RL_UNEXPECTED_REPLY,
    RL_QUARANTINED,
    RL_IS_A_REPLICA,
    RL_IS_A_SENTINEL,
    RL_IS_THE_SAME_SERVER,
    RL_REPLIED,
    RL_UNSOLICITED,
    RL_NO_ADDRESS,
    RL_USER_WITHOUT_PASSWORD,
    RL_LONG_PASSWORD,
    RL_NO_ERROR
};

enum rl_argument {
    RL_ARG_NONE,
    RL_ARG_CLIENT,
    RL_ARG_LIMITS, /* the program was compiled with others */
    RL_ARG_IO,
    RL_ARG_NODES,
    RL_ARG_NODE,
    RL_ARG_LOCK,
    RL_ARG_KEY,
    RL_ARG_EXTRA_KEYS,
    RL_ARG_FENCING,
    RL_ARG_LABEL,
    RL_ARG_TTL,
    RL_ARG_LONGEST_TTL,
    RL_ARG_EXTENSIONS,
    RL_ARG_MEMBERS,
    RL_ARG_GENERATION,
    RL_ARG_REMAINING,
    RL_ARG_SETTING /* the first one; the others follow */
};

/* Sets node->error and node->fault, unless they say something already. */
REDLOCK_PRIVATE void rl_set_error(struct redlock_node *node, enum rl_error error);

/* Sets node->error to the server's text, without tokens and passwords that it may contain, and
   node->fault. */
REDLOCK_PRIVATE void rl_set_server_error(struct redlock_node *node, enum rl_error error,
                                         struct resp_item *item);

/* ---- Commands (command.c) ------------------------------------------------------------------- */

enum rl_command {
    /* Of a lock. */
    RL_SET,     /* acquire: one key, */
    RL_DELETE,  /* release by script */
    RL_TAKE,    /* acquire several keys, */
    RL_FENCE,   /* or one key with a fencing token. R16 */
    RL_CONFIRM, /* propose the largest counter to all nodes. R16 */
    RL_EXTEND,  /* extend, but do not create the key, */
    RL_REPAIR,  /* or create it where it is missing. R9 */
    RL_DELIFEQ, /* release by a command of Valkey 9.0, */
    RL_DELEX,   /* or by a command of Redis 8.4. R11 */
    RL_GATE,    /* acquire through the wait queue, with a fencing token or without one; */
    RL_LEAVE,   /* release and leave the queue, */
    RL_BACK,    /* or stand in it again. R19 */

    /* The handshake, in this order; rl_handshake_fails says which errors fail the node. R12 */
    RL_HELLO,
    RL_HELLO_AUTH,
    RL_AUTH,
    RL_AUTH_USER,
    RL_SELECT,
    RL_TRACK,
    RL_INFO,
    RL_READY, /* no command: the handshake is complete */

    RL_INVALIDATION /* no command: the server says that a key has changed. R7 */
};

/* Sets of commands, for rl_is, without those of features that are left out. */
enum {
    RL_ACQUIRES =
        REDLOCK_MINIMAL ? 1 << RL_SET : 1 << RL_SET | 1 << RL_TAKE | 1 << RL_FENCE | 1 << RL_GATE,
    RL_CREATES = RL_ACQUIRES | !REDLOCK_MINIMAL << RL_REPAIR, /* each in its own generation. R9 */
    RL_EXTENDS = 1 << RL_EXTEND | !REDLOCK_MINIMAL << RL_REPAIR,
    RL_WRITES = RL_ACQUIRES | RL_EXTENDS | !REDLOCK_MINIMAL << RL_CONFIRM,
    RL_NATIVE = REDLOCK_MINIMAL ? 0 : 1 << RL_DELIFEQ | 1 << RL_DELEX,
    RL_RELEASES = 1 << RL_DELETE | RL_NATIVE | 1 << RL_LEAVE | 1 << RL_BACK,
    RL_QUEUES = 1 << RL_GATE | 1 << RL_LEAVE | 1 << RL_BACK, /* scripts of the wait queue */
    /* Scripts that are sent by their hash: that of each release, and the long ones. R11 */
    RL_HASHED = REDLOCK_MINIMAL ? 0 : 1 << RL_DELETE | RL_QUEUES
};

enum rl_vote {
    RL_YES,
    RL_NO,
    RL_UNPROVED,   /* a yes in a generation that was not known when the round began. R9 */
    RL_LATER,      /* a temporary error, or a yes of a node that has no vote now. R14 */
    RL_DENIED,     /* an error that will not go away by itself */
    RL_UNANSWERED, /* the connection broke */
    RL_UNDECIDED,  /* the node is sent another command: a native release did not delete, and the
                      script finds out why; or a hash did not serve, and the script follows, R11;
                      or the gate was denied. R19 */
    RL_NONSENSE    /* not a reply to this command */
};

/* Whether a command is in a set of commands. */
static inline int rl_is(unsigned command, unsigned set)
{
    return (int)(set >> command & 1);
}

/* In the member `command` of a request, beside the command: the script was sent by its hash. R11 */
enum { RL_BY_HASH = REDLOCK_MINIMAL ? 0 : 0x80 };

static inline unsigned rl_command_of(const struct redlock_request *request)
{
    return request->command & ~(unsigned)RL_BY_HASH;
}

/* Why a node keeps no wait queue on this connection. R19 */
enum rl_no_queue {
    RL_KEEPS_QUEUE,
    RL_TOO_OLD, /* the server is older than Redis 6.2, and tells a client what its own scripts do */
    RL_GATE_DENIED /* the user may be permitted the keys of locks only */
};

/* What a command is made of: a lock, else what is kept of one, else, for the handshake, a node. */
struct rl_message {
    const struct redlock_lock *lock;
    const struct redlock_owed *owed;
    const struct redlock_node *node;
    unsigned command;
    unsigned by_hash; /* 1: the hash of the script, in place of the script */
};

/* Appends the command. */
REDLOCK_PRIVATE void rl_put_command(struct resp_writer *w, const struct rl_message *m);

/* Keeps what the release of a lock, DELETE or LEAVE, says, for when the lock is the caller's again.
   R4 */
REDLOCK_PRIVATE void rl_keep_release(struct redlock_owed *owed, const struct redlock_lock *lock,
                                     unsigned command);

enum {
    RL_TOKEN_OWNER = 16, /* so many bytes of a token say whose the key is; the others are its
                            generation. R9 */
    RL_NAME_SIZE = 8,    /* bytes of the name of a waiter; in hex on the wire. R19 */
    RL_LEASE_TAIL = 6 + 2 * RL_NAME_SIZE, /* ":wait:" and the name, behind the key of the lock */
    RL_FAR = 10000                        /* places behind this one are not told apart */
};

/* The next key in a release that was kept, from *at on, which moves behind it. R4 */
REDLOCK_PRIVATE struct redlock_key rl_kept_key(const uint8_t **at);

/* What a release replies where another client has the key, or the end of what the gate replies,
   from `at`: the token there, of which the first bytes are known, up to the end of the text.
   *left_ms: how long the key lives; UINT32_MAX: it does not expire. */
REDLOCK_PRIVATE const char *rl_holder_of(const struct resp_item *item, const char *at,
                                         uint32_t *left_ms);

/* Writes what the lease of a waiter has behind the key of the lock: RL_LEASE_TAIL bytes, without a
   NUL. R19 */
REDLOCK_PRIVATE void rl_put_lease(char *text, const struct redlock_lock *lock);

/* How the gate has refused a waiter. R19 */
struct rl_place {
    uint64_t since_ms; /* the moment when it began to wait, by the node's clock; 0: it stands in no
                          queue there */
    uint16_t place;    /* so many stand in front of it */
    uint8_t is_free;   /* 1: nobody has the lock */
    uint8_t is_alone;  /* 1: it is free, and nobody in front may come, see T in command.c */
};

/* Reads that. Returns the rest, which is for rl_holder_of. */
REDLOCK_PRIVATE const char *rl_place_of(const struct resp_item *item, struct rl_place *place);

/* The meaning of a reply to a command of a lock. */
REDLOCK_PRIVATE enum rl_vote rl_vote_of(unsigned command, const struct resp_item *item);

/* Whether the item is an error that a retry will not fix. Ask before rl_set_server_error cuts its
   text. */
REDLOCK_PRIVATE int rl_is_denial(const struct resp_item *item);

/* Whether the item is an error that begins with one of these texts, which an empty one follows. */
REDLOCK_PRIVATE int rl_is_error(const struct resp_item *item, const char *prefixes);

/* The generation that these four bytes of a token are. R9 */
REDLOCK_PRIVATE uint32_t rl_generation(const uint8_t *bytes);

/* A hash of a text of `size` bytes, of which the first `known` ones count; never 0. */
REDLOCK_PRIVATE uint32_t rl_hash(const void *bytes, size_t known, uint32_t size);

/* ---- Arithmetic (node.c) -------------------------------------------------------------------- */

/* The first node of a set that is not empty. A set of few nodes is walked by for (; nodes != 0;
   nodes &= nodes - 1); a set of many by a loop over all nodes, which is faster. */
REDLOCK_PRIVATE struct redlock_node *rl_first_node(const struct redlock_client *c, unsigned nodes);

/* Sets *moment_us to most_us if it is later. */
REDLOCK_PRIVATE void rl_not_after(uint64_t *moment_us, uint64_t most_us);

/* Random bytes of the system. Not 0: there are none. */
REDLOCK_PRIVATE int rl_random(struct redlock_client *c, void *out, size_t size);

/* 0 <= result < range; without entropy the middle, as a pause is better than none. */
REDLOCK_PRIVATE uint32_t rl_random_below(struct redlock_client *c, uint32_t range);

/* A random pause, after `times` pauses in a row: the retry settings of `s` say how long the first
   one is, how each grows, the longest, and the jitter. R5, R6 */
REDLOCK_PRIVATE uint32_t rl_backoff_us(struct redlock_client *c, const struct redlock_settings *s,
                                       unsigned times);

/* What clock drift may take of a ttl. R3 */
REDLOCK_PRIVATE uint64_t rl_drift_us(const struct redlock_client *c, uint32_t ttl_ms);

/* Whether these nodes are a quorum. */
REDLOCK_PRIVATE int rl_is_quorum(const struct redlock_client *c, unsigned nodes);

/* How long a decision takes: the round trip to the slowest node of the fastest quorum of ready
   nodes; a node that was not measured counts with node_timeout_ms. 0: fewer are ready. */
REDLOCK_PRIVATE uint32_t rl_quorum_rtt_us(const struct redlock_client *c);

/* The same without its usual variation: how long it takes if no process is late. */
REDLOCK_PRIVATE uint32_t rl_quorum_brief_us(const struct redlock_client *c);

/* How long that node may take to reply; node_timeout_ms if fewer than a quorum are ready. R15 */
REDLOCK_PRIVATE uint32_t rl_quorum_timeout_us(const struct redlock_client *c);

/* Sets how long a reply of the node may take: node_timeout_ms at least, stall_ms at most. R15 */
REDLOCK_PRIVATE void rl_set_timeout(const struct redlock_client *c, struct redlock_node *node,
                                    uint32_t timeout_us);

/* ---- Requests and sending (node.c) ---------------------------------------------------------- */

/* What the reply to a request is for: that round of the lock, from 1 to RL_ROUNDS; or one of
   these. */
enum {
    RL_NO_ROUND,     /* the command was sent after the decision */
    RL_ROUNDS = 254, /* the last number of a round */
    RL_OWED,         /* a release that the client repeats. R4 */
    RL_NO_REPLY      /* nothing: the reply is dropped */
};

static inline int rl_is_up(const struct redlock_node *node)
{
    return node->state == REDLOCK_NODE_READY || node->state == REDLOCK_NODE_HANDSHAKE;
}

/* Whether the node has failed, and no lock has had a reply since: it may hang. R5 */
static inline int rl_is_failing(const struct redlock_node *node)
{
    return node->priv.failures > 0;
}

/* All nodes that are up. */
static inline redlock_mask rl_up(const struct redlock_client *c)
{
    return c->priv.in[REDLOCK_NODE_READY] | c->priv.in[REDLOCK_NODE_HANDSHAKE];
}

/* Encodes a command behind the used bytes of the send buffer. Its size; 0: no room. */
REDLOCK_PRIVATE size_t rl_encode(struct redlock_client *c, const struct rl_message *message);

/* Encodes a command once and queues it on all of `nodes` that have room. Returns these. `from`: a
   lock; for RL_OWED a redlock_owed; NULL: a command of the handshake. */
REDLOCK_PRIVATE redlock_mask rl_send(struct redlock_client *c, void *from, unsigned nodes,
                                     unsigned command, unsigned round);

/* Sends what the socket takes. */
REDLOCK_PRIVATE void rl_transmit(struct redlock_client *c, struct redlock_node *node);

/* The replies that a lock or a redlock_owed waits for from node i, `most` at most, go to `owed`;
   NULL: they are dropped. */
REDLOCK_PRIVATE void rl_disown_replies(struct redlock_client *c, const void *owner, unsigned i,
                                       unsigned most, struct redlock_owed *owed);

/* ---- Connections (node.c) ------------------------------------------------------------------- */

struct rl_reply {
    void *owner; /* a lock; for RL_OWED a redlock_owed; of an INVALIDATION only not NULL */
    unsigned command, round, vote;
};

/* Receives per event: a chatty node must not hold the loop. But a whole reply is read. */
enum { RL_READS_MAX = REDLOCK_READ_MAX < 32 ? 1024 / REDLOCK_READ_MAX : 32 };

struct rl_input {
    const uint8_t *at, *end;
    unsigned reads; /* how many more may be done */
};

/* Connects a node that is IDLE, or DOWN when its pause is over. If the pause would end after the
   moment too_late_us, a 64th of it is waited for; 0: never shortened. R5 */
REDLOCK_PRIVATE void rl_connect_if_due(struct redlock_client *c, struct redlock_node *node,
                                       uint64_t too_late_us);

/* The moment from which on a node has owed a reply or a connection, or has taken no bytes, for too
   long; REDLOCK_NEVER if it owes nothing. Not for one in `replied`. R5 */
REDLOCK_PRIVATE uint64_t rl_node_stall_us(const struct redlock_client *c,
                                          const struct redlock_node *node);

/* Asks nodes to tell when a key changes that is read from now on; later connections ask in their
   handshake. A server keeps a note of each such key, so a client that never waits does not ask.
   R7 */
REDLOCK_PRIVATE void rl_track(struct redlock_client *c, unsigned nodes);

/* Completes the connection, queues the handshake, and sends what is queued: as much as the socket
   takes. */
REDLOCK_PRIVATE void rl_node_send(struct redlock_client *c, struct redlock_node *node);

/* Whether there is more to take: bytes, reads, or what a broken connection owes. */
static inline int rl_has_more(const struct redlock_node *node, const struct rl_input *in)
{
    return rl_is_up(node) ? in->at != in->end || in->reads > 0 : node->priv.count > 0;
}

/* If rl_has_more: takes one item of a reply, and reads from the socket for it; or a request of a
   broken connection, which is RL_UNANSWERED. 0: that was no reply that a lock waits for. */
REDLOCK_PRIVATE int rl_node_reply(struct redlock_client *c, struct redlock_node *node,
                                  struct rl_input *in, struct rl_reply *reply);

/* Those of the nodes that have no vote now. R14 */
REDLOCK_PRIVATE unsigned rl_without_vote(const struct redlock_client *c, unsigned nodes);

/* A node has replied since the last tick: measures the round trip, and ends the handshake. */
REDLOCK_PRIVATE void rl_node_replied(struct redlock_client *c, struct redlock_node *node);

/* A node has not replied since the last tick: disconnects it if it stalls. R5 */
REDLOCK_PRIVATE void rl_node_late(struct redlock_client *c, struct redlock_node *node);

/* ---- Locks (redlock.c) ---------------------------------------------------------------------- */

/* The states of a lock, in the order of its life. rl_step in redlock.c has all transitions. */
enum rl_state {
    RL_IDLE,         /* not held; an operation may begin with the next tick */
    RL_IN_LINE,      /* an acquire waits for connections, and for room in the queues */
    RL_ASKING,       /* an attempt: the nodes are asked for the lock */
    RL_AGREEING,     /* the nodes are asked to agree on the fencing token. R16 */
    RL_ROLLING_BACK, /* nodes may have a key that is to be deleted */
    RL_PAUSING,      /* before the next attempt */
    RL_HELD,         /* or expired, but not released; an operation may begin with the next tick */
    RL_RENEWING,     /* held, until the next automatic extension is due. R10 */
    RL_EXTENDING,    /* held; the nodes are asked for more time */
    RL_RELEASING     /* the nodes are asked to delete the key, and their replies are waited for */
};

static inline int rl_is_held(const struct redlock_lock *lock)
{
    return lock->priv.state == RL_HELD || (!REDLOCK_MINIMAL && lock->priv.state == RL_RENEWING);
}

/* The node does not have the key, or had lost it: this may explain a loss of the lock. */
static inline void rl_count_refusal(struct redlock_lock *lock, unsigned bit)
{
    rl_set(&lock->refused, bit);
    rl_clear(&lock->granted, bit);
}

/* Whether the operation, in progress or not, is an automatic extension. */
static inline int rl_is_auto(const struct redlock_lock *lock)
{
    return !REDLOCK_MINIMAL && lock->operation == REDLOCK_OP_AUTO_EXTEND;
}

/* Whether others had the lock when the last attempt failed. */
static inline int rl_others_had_it(const struct redlock_lock *lock)
{
    return lock->priv.outcome == REDLOCK_HELD || lock->priv.outcome == REDLOCK_CONTENDED;
}

/* Lists that a lock may stand in. LINE: to begin an attempt when it can. TURN: to be stepped in
   this tick. WAIT: for a reply, for a node, or for its time. WAIT_HELD: the same, for a held lock.
   DONE: for redlock_next_completed. In each, locks stand in the order in which they came; due times
   are in the heap. The order of the lists matters: a lock with an attempt or a round stands in TURN
   or WAIT, and waiters are notified in that order. */
enum rl_list { RL_NOWHERE, RL_LINE, RL_TURN, RL_WAIT, RL_WAIT_HELD, RL_DONE };

static inline struct redlock_list *rl_list(struct redlock_client *c, unsigned which)
{
    return &c->priv.list[which - 1]; /* NOWHERE is no list */
}

static inline struct redlock_lock *rl_first(struct redlock_client *c, unsigned list)
{
    return rl_list(c, list)->first;
}

/* Sets when a lock that waits is stepped, if nothing happens to it before. */
REDLOCK_PRIVATE void rl_lock_set_due(struct redlock_client *c, struct redlock_lock *lock,
                                     uint64_t due_us);

/* Moves the locks whose time is up to TURN, and steps those in line. */
REDLOCK_PRIVATE void rl_wake_due(struct redlock_client *c);

/* Moves a lock to the end of a list, or off all lists (NOWHERE). */
REDLOCK_PRIVATE void rl_lock_move(struct redlock_client *c, struct redlock_lock *lock,
                                  unsigned where);

/* Something happened to the lock: the next tick steps it. */
REDLOCK_PRIVATE void rl_lock_schedule(struct redlock_client *c, struct redlock_lock *lock);

/* Takes the replies of a node: reads from it `reads` times at most. */
REDLOCK_PRIVATE void rl_take_replies(struct redlock_client *c, struct redlock_node *node,
                                     unsigned reads);

/* Tells the locks of broken connections, whose replies will not come. */
REDLOCK_PRIVATE void rl_tell_broken(struct redlock_client *c);

/* Sends a command of a lock, in its present round if that is not decided, to those of `nodes` that
   have room. Returns these. */
REDLOCK_PRIVATE redlock_mask rl_send_of_lock(struct redlock_client *c, struct redlock_lock *lock,
                                             unsigned nodes, unsigned command);

/* Sends the present command of a lock where it is still to be sent and can be. R2 */
REDLOCK_PRIVATE void rl_ask_nodes(struct redlock_client *c, struct redlock_lock *lock);

/* The replies that are due are dropped when they come. R1 */
REDLOCK_PRIVATE void rl_forget(struct redlock_client *c, struct redlock_lock *lock);

/* Connects nodes where that is due, or would be too late at the next due time; 0: no time is too
   late. */
REDLOCK_PRIVATE void rl_connect(struct redlock_client *c, unsigned nodes, uint64_t too_late_us);

/* Starts an operation of a lock that is IDLE or HELD: the next tick begins it. An earlier
   operation that has completed, but was not returned yet, is not returned any more. */
REDLOCK_PRIVATE enum redlock_status rl_lock_begin(struct redlock_client *c,
                                                  struct redlock_lock *lock,
                                                  enum redlock_operation operation,
                                                  uint32_t wait_ms);

/* Assigns the state of a lock. The lock is stepped at due_us, or before when something happens to
   it. Only for a lock that stands in TURN or in no list, or is moved next: due_us is its place in
   the heap, see rl_lock_set_due. */
REDLOCK_PRIVATE void rl_lock_enter(struct redlock_lock *lock, enum rl_state state, uint64_t due_us);

/* The lock is not held, and its memory is the caller's again. */
REDLOCK_PRIVATE void rl_lock_detach(struct redlock_client *c, struct redlock_lock *lock);

/* Moves a lock to the list for what it waits for. A complete one waits only if it is held and the
   command must still be sent to some node. R2 */
REDLOCK_PRIVATE void rl_lock_park(struct redlock_client *c, struct redlock_lock *lock);

/* Begins a round: a new command to all nodes, a new count of votes. */
REDLOCK_PRIVATE void rl_begin_round(struct redlock_client *c, struct redlock_lock *lock);

/* Enters a state that waits for votes: for each node as long as its reply may take. R15 */
REDLOCK_PRIVATE void rl_await_votes(struct redlock_client *c, struct redlock_lock *lock,
                                    enum rl_state state);

/* The client keeps the release of a lock for the nodes that have not answered it well, or that it
   must still be sent to. R4 */
REDLOCK_PRIVATE void rl_owe(struct redlock_client *c, struct redlock_lock *lock);

/* Ends an attempt that failed or was cancelled, or a lock that is lost: enters ROLLING_BACK. R4 */
REDLOCK_PRIVATE void rl_roll_back(struct redlock_client *c, struct redlock_lock *lock,
                                  enum redlock_status outcome);

/* The operation is complete. A lock with a validity, even an expired one, stays HELD until it is
   released. */
REDLOCK_PRIVATE void rl_lock_finish(struct redlock_client *c, struct redlock_lock *lock,
                                    enum redlock_status status);

/* Steps all that can go on now. */
REDLOCK_PRIVATE void rl_turn_all(struct redlock_client *c);

/* Repeats the releases that are due. Returns when the next one is. R4 */
REDLOCK_PRIVATE uint64_t rl_owed_tick(struct redlock_client *c);

/* ---- A held lock (hold.c) ------------------------------------------------------------------- */

/* The generation in which the lock is acquired: that of its token. R9 */
REDLOCK_PRIVATE uint32_t rl_token_generation(const struct redlock_lock *lock);

/* Whether the next command to a node is to create the key if it is missing: no generation is
   known. R9 */
REDLOCK_PRIVATE int rl_hold_repairs(const struct redlock_client *c, const struct redlock_lock *lock,
                                    const struct redlock_node *node);

/* Takes what a reply to a command of RL_WRITES says about the key on that node: its generation,
   whether it is a member. A yes that proves nothing of the time before the round becomes
   RL_UNPROVED, and one of a node that has no vote now RL_LATER. R8, R9, R14 */
REDLOCK_PRIVATE void rl_hold_learn(const struct redlock_client *c, struct redlock_lock *lock,
                                   const struct redlock_node *node, struct rl_reply *reply);

/* Counts a grant that came after the decision. R8 */
REDLOCK_PRIVATE void rl_hold_count_late_grant(struct redlock_client *c, struct redlock_lock *lock,
                                              unsigned bit, const struct rl_reply *reply);

/* Nodes that were not sent the lock yet are to be sent it. R2 */
REDLOCK_PRIVATE void rl_hold_ask_rest(const struct redlock_client *c, struct redlock_lock *lock);

/* Sends the lock to nodes that are ready only now, while it is valid. R2 */
REDLOCK_PRIVATE void rl_hold_serve(struct redlock_client *c, struct redlock_lock *lock);

/* Enters EXTENDING; or ROLLING_BACK, if the lock is lost. */
REDLOCK_PRIVATE void rl_extension_begin(struct redlock_client *c, struct redlock_lock *lock);

/* A round of extensions ends with this status. Enters RENEWING, or ends the operation. */
REDLOCK_PRIVATE void rl_extension_end(struct redlock_client *c, struct redlock_lock *lock,
                                      enum redlock_status status);

/* Enters RENEWING: the first automatic extension is due as after any other. R10 */
REDLOCK_PRIVATE void rl_renewal_begins(const struct redlock_client *c, struct redlock_lock *lock);

/* The next automatic extension is due soon where it makes a member of a node that has the key. */
REDLOCK_PRIVATE void rl_renewal_hasten(const struct redlock_client *c, struct redlock_lock *lock);

/* ---- A waiter (wait.c) ---------------------------------------------------------------------- */

/* The pause before a slow retry: random, longer each time. R6 */
REDLOCK_PRIVATE uint32_t rl_pause_us(struct redlock_client *c, struct redlock_lock *lock);

/* Whether a further quick retry may follow. R6 */
REDLOCK_PRIVATE int rl_may_retry_quickly(const struct redlock_lock *lock);

/* Enters PAUSING before the next attempt. 0: no attempt may follow without a wait. R6 */
REDLOCK_PRIVATE int rl_wait_begins(struct redlock_client *c, struct redlock_lock *lock);

/* Whether the pause is over: its time is up, which a notification shortens. R7 */
REDLOCK_PRIVATE int rl_wait_is_over(struct redlock_client *c, struct redlock_lock *lock);

/* An acquire ends without the lock: leaves the wait queue. If a notification was meant for it,
   another waiter of this client gets that. R7, R19 */
REDLOCK_PRIVATE void rl_wait_ends(struct redlock_client *c, struct redlock_lock *lock);

/* Notifications of a key of the lock concern it from now on. Of the waiters for one key it is the
   last. R7 */
REDLOCK_PRIVATE void rl_waiter_add(struct redlock_client *c, struct redlock_lock *lock);

/* They do not any more, if they did. */
REDLOCK_PRIVATE void rl_waiter_remove(struct redlock_lock *lock);

/* Nodes report that this key has changed, of which only the first `known` bytes are known: the lock
   with it may be free. NULL: all keys have. R7, R19 */
REDLOCK_PRIVATE void rl_notify(struct redlock_client *c, unsigned nodes, const void *key,
                               size_t key_size, size_t known);

/* Notifies the waiters of this client after a release. R7 */
REDLOCK_PRIVATE void rl_notify_own(struct redlock_client *c, const struct redlock_lock *lock);

/* The same after a release that the client has kept, and that these nodes have done. R4, R7 */
REDLOCK_PRIVATE void rl_notify_kept(struct redlock_client *c, const struct redlock_owed *owed,
                                    unsigned nodes);

/* Before an attempt: sets the moment, and the times of the lease, that the nodes are told. Forgets
   what they have said in the last one. Returns -1 without entropy for the name. R19 */
REDLOCK_PRIVATE int rl_queue_begin(struct redlock_client *c, struct redlock_lock *lock);

/* An attempt of a waiter has failed: keeps its place in the queue, or gives the place up. R19 */
REDLOCK_PRIVATE void rl_queue_failed(const struct redlock_client *c, struct redlock_lock *lock);

/* A node has refused an attempt at the gate. Returns the rest of the reply, as rl_place_of; NULL:
   nobody has the lock. R19 */
REDLOCK_PRIVATE const char *rl_queue_refused(struct redlock_lock *lock,
                                             const struct redlock_node *node);

/* ---- Optional features ---------------------------------------------------------------------- */

/* The fields of a feature are always there. A feature that is left out is a constant condition
   here, so its code is compiled, checked, and removed; and it is refused where arguments are
   checked. */

static inline unsigned rl_extra_keys(const struct redlock_lock *lock)
{
    return REDLOCK_MINIMAL ? 0U : lock->extra_key_count;
}

/* The first key, and behind it the extra ones. */
static inline struct redlock_key rl_key(const struct redlock_lock *lock, unsigned i)
{
    struct redlock_key first;

    if (i > 0)
        return lock->extra_keys[i - 1];
    first.bytes = lock->key;
    first.size = lock->key_size;
    return first;
}

/* Whether the caller wants to know the holder's token, and how long the holder has the lock. */
static inline int rl_wants_holder(const struct redlock_lock *lock)
{
    return !REDLOCK_MINIMAL && lock->holder != NULL && lock->holder_size > 0;
}

/* Whether the lock needs this key, of which only the first `known` bytes are known. */
static inline int rl_has_key(const struct redlock_lock *lock, const void *key, size_t key_size,
                             size_t known)
{
    unsigned i;

    for (i = 0; i <= rl_extra_keys(lock); i++) {
        struct redlock_key own = rl_key(lock, i);
        if (own.size == key_size && memcmp(own.bytes, key, known) == 0)
            return 1;
    }
    return 0;
}

/* Whether the lock has a wait queue, which is that of one key. A node must be able to tell a waiter
   by its whole lease key. R19 */
static inline int rl_is_fair(const struct redlock_client *c, const struct redlock_lock *lock)
{
    return REDLOCK_FAIR && c->priv.settings.fair && rl_extra_keys(lock) == 0 &&
           !lock->token_is_label && lock->key_size + RL_LEASE_TAIL <= RESP_TEXT_MAX;
}

/* Whether the server tells this connection when a key changes that a command has read. R7 */
static inline int rl_notifies(const struct redlock_node *node)
{
    return !REDLOCK_MINIMAL && node->priv.notifies;
}

/* The command that logs in where HELLO does not. R12 */
static inline unsigned rl_auth(const struct redlock_node *node)
{
    return node->user != NULL ? RL_AUTH_USER : RL_AUTH;
}

/* Whether the connection uses RESP2. R12 */
static inline int rl_is_resp2(const struct redlock_node *node)
{
    return REDLOCK_MINIMAL || node->priv.resp2;
}

static inline int rl_may_vote(const struct redlock_client *c, const struct redlock_node *node)
{
    return REDLOCK_MINIMAL || rl_past(c, node->priv.votes_us);
}
#endif
