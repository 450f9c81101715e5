/* redlock.h - a distributed lock over N independent Redis servers: the holder is the client whose
   token a majority of the servers has.

       struct redlock_node nodes[3];
       struct redlock_client client;
       struct redlock_lock lock;

       redlock_node_init(&nodes[0], "10.0.0.1:6379"); ... nodes[1], nodes[2]
       redlock_init(&client, redlock_posix(), nodes, 3, NULL);
       redlock_lock_init(&lock, "redlock:pump/7", 30000);
       if (redlock_acquire(&client, &lock, 5000) == REDLOCK_OK) {
           ... work, for at most redlock_remaining_ms(&client, &lock) ...
           redlock_release(&client, &lock, 100);
       }
       redlock_deinit(&client);

   Guarantees: mutual exclusion, while clocks run at nearly one rate; no deadlock, because a lock
   expires with its ttl; it works while a majority of the nodes does. Not guaranteed: a holder that
   is paused beyond its ttl may still act. Let the resource check the fencing token where that
   matters. A node that loses its keys before their ttl (eviction, FLUSHALL, a restart without
   fsync) needs longest_ttl_ms.
   Source of the rules: "Distributed Locks with Redis", redis.io/docs; below [Redlock]. "R4" is rule
   4 in the head of redlock.c, hold.c, wait.c or node.c; each rule has a test of that name.

   Memory is the caller's; nothing is allocated. A client and its nodes must not move between init
   and deinit; a lock must not move from a start until it is released, abandoned, or has failed.
   Threads: a client with its nodes and locks belongs to one thread at a time. Clients are
   independent.
   After fork() the child may only call redlock_deinit. Calls that return a redlock_status, except
   redlock_init, return REDLOCK_FORKED there; operations in progress complete with REDLOCK_FORKED,
   and nothing is sent.
   Time: durations are milliseconds in uint32_t, names end in _ms; moments are microseconds of a
   monotonic clock in uint64_t, names end in _us. Where a call says how long it blocks,
   node_timeout_ms stands for the time limit of the slowest node that the call needs: see the
   setting.
   The library calls none of your functions but those of struct redlock_io.
   Limits and features are set at compile time: redlock_config.h.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#ifndef REDLOCK_H
#define REDLOCK_H

#include <stddef.h>
#include <stdint.h>

#ifndef REDLOCK_API
#define REDLOCK_API /* "static" when your source includes the amalgamated file */
#endif
#ifndef RESP_API
#define RESP_API REDLOCK_API
#endif

#include "redlock_config.h"
#include "resp.h"

#ifdef __cplusplus
extern "C" {
#endif

#define REDLOCK_VERSION_MAJOR 0 /* may break callers */
#define REDLOCK_VERSION_MINOR 5 /* adds; 0.2 to 0.5 broke callers, too */
#define REDLOCK_VERSION_PATCH 0 /* fixes */
#define REDLOCK_VERSION "0.5.0"
#define REDLOCK_VERSION_NUMBER 5000 /* 1000000 * major + 1000 * minor + patch */

/* ---- Results --------------------------------------------------------------------------------- */

/* 0 is success, positive is "not yet", negative is failure. Values never change meaning; new ones
   may be added, so a switch needs a default. For people: redlock_strerror, and the `error` of the
   nodes. */
enum redlock_status {
    REDLOCK_PENDING = 1,        /* in progress */
    REDLOCK_OK = 0,             /* success */
    REDLOCK_HELD = -1,          /* another client holds the lock */
    REDLOCK_CONTENDED = -2,     /* several clients asked at once and none got a quorum: retry */
    REDLOCK_UNREACHABLE = -3,   /* too few nodes answer, or confirm in time: see their `error` */
    REDLOCK_DENIED = -4,        /* too few nodes permit it: password, ACL, read-only */
    REDLOCK_TOO_LATE = -5,      /* a quorum granted it when no validity was left. R3 */
    REDLOCK_TIMEOUT = -6,       /* wait_ms has passed; others held it, or competed */
    REDLOCK_LOST = -7,          /* not held any more: stop what the lock protects */
    REDLOCK_EXPIRED = -8,       /* release: had expired or was not held; no other holder seen */
    REDLOCK_UNCONFIRMED = -9,   /* release: no quorum confirmed it; it expires with its ttl */
    REDLOCK_EXTEND_LIMIT = -10, /* extended as often as allowed; still held. R10 */
    REDLOCK_CANCELLED = -11,    /* redlock_cancel or redlock_deinit */
    REDLOCK_INVALID_ARGUMENT = -12, /* nothing was sent or changed: see redlock_invalid_argument */
    REDLOCK_NO_ENTROPY = -13,       /* no random bytes for a token */
    REDLOCK_FORKED = -14,           /* the client belongs to the parent process */
    REDLOCK_ALREADY_HELD = -15      /* acquire, adopt: not released or abandoned, maybe expired */
};

/* A constant English sentence of at most 79 bytes, for any int; "" with REDLOCK_MINIMAL. Any
   thread. Never NULL. */
REDLOCK_API const char *redlock_strerror(int status);

/* REDLOCK_VERSION_NUMBER of the compiled library. */
REDLOCK_API uint32_t redlock_version(void);

/* ---- Settings -------------------------------------------------------------------------------- */

#define REDLOCK_NONE 0xffffffffu /* in a setting: really 0, because 0 means "the default" */

/* Clear all and set what you need: 0 is the default everywhere, also for fields of later
   versions. */
struct redlock_settings {
    /* Votes needed, N/2+1..N; default N/2+1. More tolerates faulty nodes, but fewer failed ones. */
    uint32_t quorum;
    /* How long an attempt waits for the reply of a near node, 1..60000; default 50. For a far node
       it waits longer, as RFC 6298 does for TCP: for the smoothed round trip, and four times its
       variation or half of node_timeout_ms more. A node that has not replied when a call ends has,
       in the next call, twice the time that it had. At most stall_ms, and a quarter of the ttl.
       R15 */
    uint32_t node_timeout_ms;
    /* A connection that owes a reply, or is not up, for longer than this is closed, 1..600000;
       default twice node_timeout_ms, at least 1000. An attempt waits this long for a quorum of
       connections. R2, R5 */
    uint32_t stall_ms;
    /* Attempts after the first, 1..254; REDLOCK_NONE: none; default: as many as fit into wait_ms.
       R6 */
    uint32_t retries;
    /* Pause before the first retry, 1..600000; REDLOCK_NONE: none; default 100; always 1 ms more.
       Lower shortens the hand-off but increases load: each attempt sends two commands to every
       node. R6 */
    uint32_t retry_delay_ms;
    /* Jitter: the pause is random within this much of it, to both sides, 1..100 percent;
       REDLOCK_NONE: none; default 50. R6 */
    uint32_t retry_jitter_pct;
    /* Each pause is longer than the one before by this much, 1..1000 percent; REDLOCK_NONE: none;
       default 50. R6 */
    uint32_t retry_growth_pct;
    /* The longest pause, before jitter, 1..600000; default 1000. R6 */
    uint32_t retry_delay_max_ms;
    /* Clock drift, in parts per million of the ttl, 1..500000; REDLOCK_NONE: none; default 10000,
       the 1 percent of [Redlock]. Always 2 ms more, as servers count whole milliseconds. R3 */
    uint32_t drift_ppm;
    /* redlock_extend is refused after this many extensions per acquire, automatic ones included,
       1..65535; REDLOCK_NONE: none; default 100. [Redlock] asks for a limit. R10 */
    uint32_t extend_max;
    /* The longest ttl that any client of these servers uses, 1..0x7fffffff; default 0: off. A
       server may have lost its keys when it started, so it has no vote in an acquire until this much
       time has passed since then; where INFO is not permitted, since it was connected. In an
       extension it votes if it still has the key of before. [Redlock], "delayed restarts"; R14. It
       does not detect FLUSHALL, a failover, or a restart that INFO hides. INFO tells the uptime by
       the server's wall clock: start servers after their clock is set. */
    uint32_t longest_ttl_ms;
    /* 1: waiters stand in a queue, and the waiter that has waited longest comes first; default 0:
       waiters retry at random. A hint: clients without it, and clients that do not wait, may come
       first. The nodes keep the queue at KEY:wait, and the lease of each waiter at KEY:wait:NAME,
       for 3 * retry_delay_max_ms + 1000 ms after its last attempt, and longer the farther behind the
       waiter stands. So a lock whose key ends in ":wait", or in ":wait:" and 16 hex digits, is
       refused. The nodes must notify, permit TIME, ZADD, ZRANK, ZRANGE and ZREM, and keys that begin
       with KEY; other nodes keep no queue, nor does Redis before 6.2. No effect on locks with extra
       keys or token_is_label, or with keys longer than RESP_TEXT_MAX - 22 bytes. Refused in a build
       without REDLOCK_FAIR. R19 */
    uint32_t fair;
};

/* ---- Nodes ----------------------------------------------------------------------------------- */

/* A set of nodes: bit i is node i. */
#if REDLOCK_NODES_MAX <= 8
typedef uint8_t redlock_mask;
#else
typedef uint16_t redlock_mask;
#endif

#include "redlock_private.h" /* the library's own part of each struct: `priv` */

enum redlock_node_state {
    REDLOCK_NODE_IDLE = 0,   /* no connection; connected when next needed */
    REDLOCK_NODE_CONNECTING, /* the connection is not up yet */
    REDLOCK_NODE_HANDSHAKE,  /* up, but the handshake is not answered yet. R12 */
    REDLOCK_NODE_READY,      /* up */
    REDLOCK_NODE_DOWN        /* failed; connected again after a backoff with jitter. R5 */
};

/* Why a node did not vote, for programs; `error` says it in words. New ones may be added. */
enum redlock_fault {
    REDLOCK_FAULT_NONE,
    REDLOCK_FAULT_CONNECTION, /* refused, not reachable, or lost */
    REDLOCK_FAULT_TIMEOUT,    /* no connection, or no reply, in time */
    REDLOCK_FAULT_TLS, /* the handshake of TLS failed, or a certificate; set by the I/O table */
    REDLOCK_FAULT_PROTOCOL, /* no Redis server, or a reply that is none to the command */
    REDLOCK_FAULT_DENIED,   /* user, password, or a permission */
    REDLOCK_FAULT_ROLE, /* a replica, a sentinel, or a cluster that has the key elsewhere. R12 */
    REDLOCK_FAULT_SAME_SERVER, /* another node is the same server. R13 */
    REDLOCK_FAULT_QUARANTINED, /* it may have lost keys, and has no vote yet. R14 */
    REDLOCK_FAULT_BUSY,        /* it loads its data, or runs a script */
    REDLOCK_FAULT_MEMORY,      /* out of memory */
    REDLOCK_FAULT_NOT_A_LOCK,  /* the key is there, and is no lock */
    REDLOCK_FAULT_REPLIED,     /* another error, in the server's words */
    REDLOCK_FAULT_ARGUMENT     /* redlock_init: the address, user or password */
};

struct redlock_node {
    /* You read these. */
    uint32_t rtt_us; /* smoothed round trip; 0: not measured yet */
    enum redlock_node_state state;

    struct redlock_node_private priv;

    /* You set these before redlock_init, after redlock_node_init or in a cleared struct; `address`
       and `password` also while the state is IDLE or DOWN. The strings must live until
       redlock_deinit. */
    const char *address;  /* "10.0.0.1:6379", "[fe80::1]:6379", "unix:/run/redis.sock": numeric, see
                             redlock_resolve for names. What it means is up to struct redlock_io */
    const char *user;     /* ACL user, Redis 6; needs a password. NULL: "default" */
    const char *password; /* any bytes but NUL; never part of an error. NULL: none */
    uint32_t database;    /* 0, the first, needs no permission; others need SELECT */
    void *user_data;      /* yours */

    /* These belong to struct redlock_io. */
    intptr_t handle; /* descriptor; -1: none */
    void *link;      /* for example a TLS session */

    /* You read these: the last error since the node's last vote, and its kind; "" and
       REDLOCK_FAULT_NONE if there is none. The server's error text, else the first connection
       error. */
    enum redlock_fault fault;
    char error[REDLOCK_ERROR_MAX + 1];
};

/* ---- Locks and clients ----------------------------------------------------------------------- */

enum redlock_operation {
    REDLOCK_OP_NONE,
    REDLOCK_OP_ACQUIRE,
    REDLOCK_OP_EXTEND,
    REDLOCK_OP_AUTO_EXTEND,
    REDLOCK_OP_RELEASE
};

struct redlock_key {
    const void *bytes;
    uint16_t size; /* without a NUL that ends a text */
};

/* clang-format off */
/* A key that is a string literal, to initialize one. */
#define REDLOCK_KEY(literal) {"" literal, sizeof(literal) - 1}
/* clang-format on */

struct redlock_lock {
    struct redlock_lock_private priv;

    /* You set these, with redlock_lock_init or in a cleared struct, and not while status is
       REDLOCK_PENDING. Keys and label must live as long as the lock. */
    const void *key;    /* any bytes; the same on every node. By convention "redlock:NAME" */
    uint16_t key_size;  /* 1..REDLOCK_KEY_MAX */
    uint32_t ttl_ms;    /* 10..0x7fffffff: it expires without an extension */
    const void *label;  /* any bytes; appended to the random token, to name the holder */
    uint8_t label_size; /* 0..REDLOCK_LABEL_MAX */
    /* 1: the label alone is the token. It must be unique. One attempt. R1 */
    uint8_t token_is_label;
    uint8_t use_fencing; /* 1: with a fencing token. Not with extra keys. R16 */
    /* Multi-key lock: each node grants all keys or none. No key may be there twice. The bytes of
       all keys, plus 10 for each extra one, must fit REDLOCK_KEY_MAX. The array lives as long as
       the lock. */
    const struct redlock_key *extra_keys;
    uint8_t extra_key_count; /* 0: none */
    uint8_t holder_size;     /* bytes at `holder` */
    /* Your buffer for the holder's token when refused, also at each attempt while an acquire waits;
       NULL: none. At most RESP_TEXT_MAX bytes and a NUL, cut off at holder_size. */
    char *holder;
    void *user_data; /* yours */

    /* You read these. */
    enum redlock_status status; /* of the last operation */
    uint8_t operation;          /* which operation that is: enum redlock_operation */
    redlock_mask granted;       /* nodes whose last vote is yes: set, extended, deleted */
    redlock_mask refused;       /* nodes whose last vote is no: another holder, or no key */
    redlock_mask failed;        /* nodes that did not vote in time: see their `error` */
    redlock_mask members;       /* nodes that confirmed it; only these confirm an extension. R8 */
    /* Extensions that succeeded since the lock was acquired or adopted, automatic ones included,
       but not those that come early for a node that was repaired; stops at 65535. Stays after a
       release, until the next acquire succeeds. R10 */
    uint16_t extended;
    /* Random, new at each attempt; hex on the wire. R1 */
    uint8_t token[20];
    /* Which command has created the key on each node: the last 8 hex digits of the token there,
       which a repair changes; 0: not known. R9 */
    uint32_t generation[REDLOCK_NODES_MAX];
    /* How long the lock of `holder` lives after it refused. 0xffffffff: it does not expire; 0: not
       known. */
    uint32_t holder_left_ms;
    /* By the clock of struct redlock_io, drift taken off; 0: not held. R3 */
    uint64_t valid_until_us;
    /* Larger than the token of every acquisition that was complete before this one began. The
       resource must refuse a smaller one than the largest it has seen. 0 unless held with
       use_fencing. R16 */
    uint64_t fencing_token;
};

struct redlock_client {
    struct redlock_client_private priv;
};

/* Clears a node and sets its address, see struct redlock_node: set user, password and what else you
   need after that. The text must live until redlock_deinit. */
REDLOCK_API void redlock_node_init(struct redlock_node *node, const char *address);

/* Sets up a client over `count` nodes, 1..REDLOCK_NODES_MAX, odd is best. Connects to none yet. If
   it is in use, call redlock_deinit first. `io` and `nodes` are borrowed until redlock_deinit;
   `settings` is copied, NULL: all defaults. REDLOCK_OK or REDLOCK_INVALID_ARGUMENT, see
   redlock_invalid_argument: the error of a node says what is wrong with it. A server must be listed
   once: a server that votes twice makes a false majority. R13 */
REDLOCK_API enum redlock_status redlock_init(struct redlock_client *client,
                                             const struct redlock_io *io,
                                             struct redlock_node *nodes, unsigned count,
                                             const struct redlock_settings *settings);

/* The same for a program that is compiled with this header: it passes one number, made of the sizes
   of its structs, and of where members stand that other limits move within the same size. If the
   library was compiled with other limits, redlock_init refuses with REDLOCK_INVALID_ARGUMENT, and
   writes nothing but the beginning of the client; else it would write beyond a struct. */
#define REDLOCK_SIZES                                                                              \
    (923521 * (uint32_t)sizeof(struct redlock_client) +                                            \
     29791 * (uint32_t)sizeof(struct redlock_node) + 961 * (uint32_t)sizeof(struct redlock_lock) + \
     31 * (uint32_t)offsetof(struct redlock_node, address) +                                       \
     (uint32_t)offsetof(struct redlock_lock, holder_left_ms))
REDLOCK_API enum redlock_status redlock_init_sized(struct redlock_client *client,
                                                   const struct redlock_io *io,
                                                   struct redlock_node *nodes, unsigned count,
                                                   const struct redlock_settings *settings,
                                                   uint32_t sizes);
#define redlock_init(client, io, nodes, count, settings)                                           \
    redlock_init_sized(client, io, nodes, count, settings, REDLOCK_SIZES)

/* Which argument was invalid: a constant text. Of a setting that is out of range it is the name.
   For REDLOCK_INVALID_ARGUMENT from any call with this client, also from redlock_init. Never NULL;
   "" with REDLOCK_MINIMAL. */
REDLOCK_API const char *redlock_invalid_argument(const struct redlock_client *client);

/* Closes all connections. Does not block or send anything: held locks expire with their ttl. Locks
   in progress become REDLOCK_CANCELLED. All memory is yours again; call redlock_lock_init before
   you use a held lock again. May be called twice. */
REDLOCK_API void redlock_deinit(struct redlock_client *client);

/* Clears a lock and sets key (a text of 1..REDLOCK_KEY_MAX bytes, borrowed) and ttl_ms. The first
   operation checks both, so you need not look at the result here: REDLOCK_OK, or
   REDLOCK_INVALID_ARGUMENT as for redlock_init_sized. For a key with NUL bytes set `key` and
   `key_size` after this call. Not for a lock that is held or in progress. */
REDLOCK_API enum redlock_status redlock_lock_init(struct redlock_lock *lock, const char *key,
                                                  uint32_t ttl_ms);

/* The same for a program that is compiled with this header, see redlock_init_sized. */
REDLOCK_API enum redlock_status redlock_lock_init_sized(struct redlock_lock *lock, const char *key,
                                                        uint32_t ttl_ms, uint32_t sizes);
#define redlock_lock_init(lock, key, ttl_ms)                                                       \
    redlock_lock_init_sized(lock, key, ttl_ms, REDLOCK_SIZES)

/* Acquires the lock. wait_ms is how long to wait for another holder, or for a quorum of nodes that
   answer; with 0, contention and an idle connection that turned out dead are still retried, up to 5
   times, each after a random part of a few round trips, half of node_timeout_ms at most.
   REDLOCK_OK, _HELD, _CONTENDED, _UNREACHABLE, _DENIED, _TOO_LATE, _TIMEOUT, _NO_ENTROPY,
   _ALREADY_HELD, _FORKED or _INVALID_ARGUMENT. A failed acquire is rolled back. Blocks wait_ms + 2
   * node_timeout_ms at most; with wait_ms 0 at most 15 * node_timeout_ms (six attempts, where nodes
   time out one after another). Before an attempt it also waits for connections: stall_ms at most if
   there is no quorum of them, else 100 ms for the rest. With a fencing token 4 * node_timeout_ms
   more for each attempt, if the nodes' counters differ. [Redlock], "The Redlock algorithm"; R1 to
   R7, R16. */
REDLOCK_API enum redlock_status redlock_acquire(struct redlock_client *client,
                                                struct redlock_lock *lock, uint32_t wait_ms);

/* Extends a held lock to ttl_ms from now, and repairs nodes that lost the key; ttl_ms may have
   changed. Never shortens. REDLOCK_OK; REDLOCK_LOST: not held, or fewer than a quorum of nodes can
   still confirm it; REDLOCK_UNREACHABLE: not confirmed in time, the old validity still stands;
   pause before you try again, because the call may return at once while nodes are disconnected;
   _EXTEND_LIMIT; _FORKED; _INVALID_ARGUMENT. Blocks node_timeout_ms at most. [Redlock], "Making the
   algorithm more reliable"; R8 to R10. */
REDLOCK_API enum redlock_status redlock_extend(struct redlock_client *client,
                                               struct redlock_lock *lock);

/* Releases the lock on every node that still holds this lock's token. Works in every state, and
   ends what is in progress. REDLOCK_OK: a quorum confirmed it. REDLOCK_EXPIRED: it had expired, or
   was not held. REDLOCK_LOST: it had expired, and a node says that another client holds it. A
   release of a valid lock whose reply is lost is sent again, also by a second call: the key that is
   missing then is no loss.
   REDLOCK_UNCONFIRMED: no quorum answered within wait_ms; the release was sent wherever there is a
   connection, and the lock expires with its ttl; may be called again. The lock is not held
   afterwards, and its memory is yours. REDLOCK_FORKED or REDLOCK_INVALID_ARGUMENT: nothing was
   sent. Blocks wait_ms + node_timeout_ms at most; with 0 replies are not waited for:
   REDLOCK_UNCONFIRMED, or REDLOCK_EXPIRED if no node can have the key. A release that some nodes
   have not answered, or that are down, is repeated by your next calls or events
   (REDLOCK_OWED_MAX). A program that exits here may leave a key for its ttl. [Redlock], "Correct
   implementation with a single instance"; R4, R11. */
REDLOCK_API enum redlock_status redlock_release(struct redlock_client *client,
                                                struct redlock_lock *lock, uint32_t wait_ms);

/* Time left for which it is safe to act as the holder, drift taken off; 0 if not held. Reads the
   clock, sends nothing. Ask right before the act, and again after anything slow. */
REDLOCK_API uint32_t redlock_remaining_ms(struct redlock_client *client,
                                          const struct redlock_lock *lock);

/* Abandons a held lock locally, without contacting the servers: it expires with its ttl, and its
   memory is yours. No effect on a lock in progress. */
REDLOCK_API void redlock_abandon(struct redlock_client *client, struct redlock_lock *lock);

/* The label in lock->holder: what to show to people instead of the token. "" if there is none, or
   the token is not one of this library's; always with REDLOCK_MINIMAL. Points into
   lock->holder. */
REDLOCK_API const char *redlock_holder_label(const struct redlock_lock *lock);

/* Takes over a lock that another client of the same nodes, in the same order, holds, maybe in
   another process. Set the keys, ttl_ms, token, label, `members` and `generation` as they are
   there, and fencing_token. Pass the time that was left there, less what the transfer took, ttl_ms
   at most; 0: only to release it, which needs no `generation`. A member whose generation is not
   known is none, so that an extension proves as much as it does there. The generation of a node
   that is no member is not taken over. R9, R14. Sends nothing. The other client then calls
   redlock_abandon. REDLOCK_OK, _ALREADY_HELD, _FORKED or _INVALID_ARGUMENT; with REDLOCK_MINIMAL it
   is always refused. */
REDLOCK_API enum redlock_status redlock_adopt(struct redlock_client *client,
                                              struct redlock_lock *lock, uint32_t remaining_ms);

/* ---- Event-driven calls ---------------------------------------------------------------------- */

/* Start an acquire, an extension or a release. They return REDLOCK_PENDING, or why nothing was
   started: REDLOCK_ALREADY_HELD for an acquire; REDLOCK_LOST or REDLOCK_EXTEND_LIMIT for an
   extension; REDLOCK_EXPIRED for a release of a lock that no node can have; REDLOCK_FORKED or
   REDLOCK_INVALID_ARGUMENT for each. They only write into memory. The lock is in progress until
   redlock_next_completed returns it, or redlock_release ends it. Any number of locks at once. */
REDLOCK_API enum redlock_status redlock_acquire_start(struct redlock_client *client,
                                                      struct redlock_lock *lock, uint32_t wait_ms);
REDLOCK_API enum redlock_status redlock_extend_start(struct redlock_client *client,
                                                     struct redlock_lock *lock);
REDLOCK_API enum redlock_status redlock_release_start(struct redlock_client *client,
                                                      struct redlock_lock *lock, uint32_t wait_ms);

#define REDLOCK_NO_LIMIT 0xffffffffu /* automatic extensions: as many as are needed */

/* Extends a held lock automatically, a third of its ttl after the last extension, up to
   `extensions` times, 1..65534, or REDLOCK_NO_LIMIT: your bound on how long a holder that hangs can
   keep it.
   redlock_next_completed returns the lock with REDLOCK_LOST, at the latest when its validity ends,
   also when no node answers; with REDLOCK_EXTEND_LIMIT when the next extension would be one too
   many: it is still held, for about two thirds of the ttl; with REDLOCK_CANCELLED: held as before.
   A failed extension is retried until the validity ends. REDLOCK_PENDING; REDLOCK_LOST: not held;
   REDLOCK_FORKED; REDLOCK_INVALID_ARGUMENT. R10 */
REDLOCK_API enum redlock_status redlock_auto_extend_start(struct redlock_client *client,
                                                          struct redlock_lock *lock,
                                                          unsigned extensions);

/* Asks for an early end. redlock_next_completed returns the lock with REDLOCK_CANCELLED, after
   node_timeout_ms at most. A cancelled acquire is rolled back, a cancelled extension leaves the
   validity as it was, a cancelled release was sent wherever there is a connection, and may be
   called again. No effect on a lock that is not in progress. R4 */
REDLOCK_API void redlock_cancel(struct redlock_client *client, struct redlock_lock *lock);

enum { REDLOCK_READABLE = 1, REDLOCK_WRITABLE = 2 }; /* bits of events */

/* Which events of node i, 0 to `count` - 1, to watch on nodes[i].handle; 0: none, and the handle
   may be -1. Ask again after each redlock_tick. This and the calls below need a client that
   redlock_init has set up. */
REDLOCK_API unsigned redlock_wanted_events(const struct redlock_client *client, unsigned i);

/* Node i is ready for `events`; errors and hang-ups count as both. Reads and sends, bounded, and
   decides nothing: call it for every ready node, then redlock_tick once. Superfluous events are
   harmless. */
REDLOCK_API void redlock_handle_events(struct redlock_client *client, unsigned i, unsigned events);

#define REDLOCK_NEVER (~(uint64_t)0)

/* Counts votes, decides, sends, connects, gives up what is late; bounded work per node and lock.
   Returns the microseconds until it must be called again, unless an event or a start comes first: 0
   is at once, also when this call has completed a lock; REDLOCK_NEVER: no timer. Calling it sooner
   is harmless. */
REDLOCK_API uint64_t redlock_tick(struct redlock_client *client);

/* The next lock whose operation is complete, in order of completion; NULL: none. lock->operation
   says which operation, lock->status how it ended. Not those of the blocking calls, nor of a lock
   that was started again. */
REDLOCK_API struct redlock_lock *redlock_next_completed(struct redlock_client *client);

/* One turn of a loop that has nothing else to wait for: redlock_tick; then, if no lock is complete,
   waits with io->wait until a node is ready, the next tick is due, or longest_us has passed
   (REDLOCK_NEVER: no limit), and handles the events. It may wait for less: redlock_posix() does for a
   second at most. Returns as redlock_next_completed does. */
REDLOCK_API struct redlock_lock *redlock_turn(struct redlock_client *client, uint64_t longest_us);

/* ---- The system below: for authors of an I/O table ------------------------------------------- */

/* Everything that the library asks of a platform: all other files call nothing but mem* and str*.
   net.c is this table for POSIX; firmware brings its own and omits net.c. None of these may block,
   except `wait`; none may call the library, except redlock_set_error. The names are none that lwIP
   or libc define as macros (connect, send ...). */
struct redlock_io {
    /* Starts a connection to node->address and sets node->handle. 0, or -1 with node->error. */
    int (*dial)(void *context, struct redlock_node *node);
    /* 1: up. 0: not yet. -1: failed, with node->error. Called at each event until it is 1. */
    int (*ready)(void *context, struct redlock_node *node);
    /* Move up to `size` bytes, size > 0. >0: how many. 0: none now, an event will come. -1: the
       connection is gone, with node->error; so says `receive` at the end of the stream. Fewer than
       `size` from `receive` means that there are no more now. */
    int (*transmit)(void *context, struct redlock_node *node, const void *bytes, size_t size);
    int (*receive)(void *context, struct redlock_node *node, void *bytes, size_t size);
    /* Closes and sets node->handle to -1. Called once for each `dial` that returned 0. */
    void (*shut)(void *context, struct redlock_node *node);
    /* Microseconds, monotonic, running while the machine sleeps. Not the wall clock. */
    uint64_t (*now_us)(void *context);
    /* Fills with unpredictable bytes. 0, or -1: then nothing is locked. */
    int (*entropy)(void *context, void *bytes, size_t size);
    /* Sleeps until a node is ready or timeout_us (or REDLOCK_NEVER) has passed; may return early.
       events[i]: in, what to wait for on node i, as redlock_wanted_events says; out, what is ready.
       NULL where the blocking calls are not used. */
    void (*wait)(void *context, struct redlock_node *nodes, unsigned count, uint64_t timeout_us,
                 uint8_t *events);
    void *context; /* passed to each */
    /* May be NULL. Microseconds since 1970 by the wall clock: proposed as fencing tokens, so that
       these grow even when a node has lost its counter. Decides nothing. R16 */
    uint64_t (*wall_us)(void *context);
    /* May be NULL: forks are not noticed. A number that differs in a child process. */
    uint32_t (*process)(void *context);
    /* May be NULL. Whether `dial` accepts the form of node->address: 0, or -1 with node->error.
       Called by redlock_init. */
    int (*check)(void *context, struct redlock_node *node);
};

/* For authors of such a table: sets node->error to "what: why" unless an earlier error stands
   there; `why` may be NULL. Cut off after REDLOCK_ERROR_MAX bytes. No effect with
   REDLOCK_MINIMAL. */
REDLOCK_API void redlock_set_error(struct redlock_node *node, const char *what, const char *why);

/* The table for POSIX, in net.c: non-blocking close-on-exec sockets, poll(), TCP_NODELAY, TCP
   keep-alive, no SIGPIPE, CLOCK_BOOTTIME where there is one, getrandom or getentropy. Constant; any
   thread. */
REDLOCK_API const struct redlock_io *redlock_posix(void);

#define REDLOCK_ADDRESS_MAX 119          /* bytes of an address that redlock_resolve writes */
#define REDLOCK_RESOLVE_INVALID (-10000) /* redlock_resolve; no EAI_ code has this value */

/* Looks up "host:port" or "[v6]:port" and writes a numeric address for node->address to `text`, the
   first one that getaddrinfo returns; a unix: address is copied. 0; REDLOCK_RESOLVE_INVALID when
   `name` has no such form, its host is longer than 95 bytes, or `text` is too small
   (REDLOCK_ADDRESS_MAX + 1 is enough); or the EAI_ code of getaddrinfo, for gai_strerror. Blocks as
   long as getaddrinfo does, maybe minutes: the library never calls it. In net.c. */
REDLOCK_API int redlock_resolve(const char *name, char *text, size_t size);

#ifdef __cplusplus
}
#endif
#endif
