/* sim.h - private: what the files of the simulator know of each other:

       sim_world.c    the hosts: clocks, connections, servers, and the io table of a client
       sim_clients.c  programs and their locks: what they start, and what becomes of it
       sim_checks.c   the invariants
       sim.c          the schedule: events, faults, profiles, and the program

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#ifndef SIM_H
#define SIM_H

#include "core.h"
#include "lock_options.h"
#include "mini.h"
#include "tap.h"

#include <string.h>

enum {
    CLIENTS = 5,
    SERVERS = REDLOCK_NODES_MAX < 7 ? REDLOCK_NODES_MAX : 7,
    LOCKS = REDLOCK_PIPELINE_MAX < 16 ? REDLOCK_PIPELINE_MAX + 40
                                      : 40, /* of a client; most runs use FEW */
    FEW = 3,
    SLOTS = 8, /* connections of a client to a server, open or closed with bytes under way */
    SERVER_LINKS = CLIENTS * SLOTS,
    LINKS = SERVERS * SERVER_LINKS,
    ROOM = 6000,
    PARTS = 200,
    ACQUIRES = 4000,
    REFUSALS = 128,
    VALUES = 256,
    STATUSES = 16
};
/* In so many ms a client connects a node so often at most, and sends it so many commands for each attempt that it may make. */
enum { WINDOW_MS = 100, CONNECTS_MAX = 30, ATTEMPT_COMMANDS = 3 };
#define MS ((uint64_t)1000)
#define SECOND ((uint64_t)1000000)

enum fault {
    HANG, /* a server is paused, and then runs what it was sent */
    CRASH,
    KEY_LOSS, /* a crash with the loss of all keys */
    CUT,      /* a connection breaks, at any byte */
    HOLE,     /* a partition between a client and a server */
    FULL,     /* a connection accepts no bytes for a while */
    SLOW,
    BAD_REPLY,
    PAUSE,  /* a client's process is paused, between two calls or in a call */
    DEATH,  /* a client's process ends without releasing its locks */
    STUCK,  /* a connection delays its bytes, perhaps until long after it was closed */
    DRIP,   /* bytes arrive in small parts */
    DEAF,   /* pushes arrive late or never */
    RATES,  /* clocks run at different rates */
    DEAD,   /* waiters end while they stand in a wait queue */
    AFAR,   /* waiters are so far away that their votes are too late */
    OLD,    /* servers without HELLO or pushes, or with INFO or native releases that come and go */
    VANISH, /* keys are lost before their ttl. From here on: faults beyond the assumptions */
    JUMP,   /* clocks of servers */
    WALL,   /* wall clocks of clients */
    FAULTS
};

/* The class of defects that a run is for. */
enum profile {
    ANY,
    LATE,      /* commands of closed connections run late; few clients, one key */
    HEALTHY,   /* no fault: servers at different distances, new clients, many locks at once */
    HAND_OFF,  /* hand-offs of locks to other clients */
    DUPLICATE, /* one server is listed twice */
    CALLS,     /* all settings, and any call at any time, also while others are under way */
    DISTANT,   /* changing distances of 0.1 to 300 ms; a minority fails; calls with long gaps */
    ROUNDS, /* keys are lost while a round of extensions is under way, and replies are late or lost */
    PROFILES
};

/* ---- Types ---------------------------------------------------------------------------------- */

struct part {
    unsigned size;
    uint64_t at_us;
};

/* The bytes of one direction, in parts that arrive one after the other. */
struct flow {
    uint64_t next_us; /* when the next part arrives */
    uint64_t last_us; /* when the last part arrives; later parts do not overtake it */
    unsigned first, arrived,
        used; /* bytes[first..arrived) have arrived, [arrived..used) are under way */
    unsigned part, parts_used;
    struct part *parts; /* PARTS of them */
    char *bytes;        /* ROOM of them */
};

/* A connection. Members that are read often are close together, for the cache. */
struct link {
    struct flow to;
    uint64_t stuck_until_us; /* no byte arrives before this, */
    uint64_t mute_until_us;  /* and none at the server before this, */
    uint64_t deaf_until_us;  /* and none at the client before this: replies are late, or lost */
    int client, server;
    int in_hole; /* a partition between client and server */
    int open;    /* the client has it */
    int served;  /* the server has it */
    int full;
    int midway; /* the client has sent a part of a command last */
    int unread; /* the client has read only a part of what had arrived */
    struct flow back;
    int refused;       /* the server was down */
    unsigned node;     /* of the client's list */
    unsigned run;      /* the process of the server that it was made to */
    unsigned position; /* in `served` of the server */
    uint64_t up_us;
    uint64_t silent_us; /* since then a reply is due, and no byte has come; 0: none is due */
    struct mini_session session;
};

/* A release that has deleted its keys on a server. */
struct deletion {
    char token[16]; /* the first bytes */
    uint64_t at_us;
    int again; /* 1: a release with the same token has found no key there since then */
};

struct machine {
    struct mini_server mini;
    struct mini_key disk[MINI_KEYS]; /* the keys at the last write to disk */
    int64_t ppm, step_us;
    uint64_t base_us, started_us; /* of its clock */
    uint64_t sweep_us;            /* when it removes expired keys next */
    uint64_t away_until_us;       /* hung or down until then; 0: neither */
    uint64_t falls_us;            /* when it crashes; 0: not planned */
    uint64_t delay_us;
    uint64_t far_us; /* one way, besides all other delays */
    int down, bad_reply;
    int no_memory;              /* 1: it refuses to create keys, 2: also to extend them */
    char refused[REFUSALS][16]; /* the first bytes of the tokens that it refused last */
    uint64_t values[VALUES];    /* hashes of those of the last commands that create a key */
    unsigned next_value;
    unsigned refusals;
    struct deletion deletions[REFUSALS]; /* the last ones */
    unsigned next_deletion;
    struct link *served[SERVER_LINKS]; /* its connections */
    unsigned served_count;
};

/* One lock of a client and what the simulator knows of it. */
struct record {
    uint64_t began_us;   /* start of the operation in progress, true time */
    uint64_t votes_us;   /* granted, refused and failed are of nodes that have replied since then */
    uint64_t allowed_us; /* for the operation, without pauses of the process */
    uint64_t vote_us; /* the longest time for a vote, by the round trips measured since the start */
    uint64_t cancelled_us; /* when the operation was cancelled; 0: it was not */
    uint64_t unpaused_us;  /* c->paused_us then */
    uint32_t wait_ms;      /* of the operation */
    uint64_t paused_us;    /* c->paused_us at the start of the operation */
    uint64_t acquired_us; /* when the lock was acquired, also by another client before a hand-off */
    uint64_t valid_us;    /* valid_until_us at the last check */
    uint64_t check_us;    /* when the key must be on all servers; 0: not checked */
    uint64_t undisturbed_us;  /* when `undisturbed` was set */
    unsigned undisturbed;     /* bit i: server i had no fault then, and matters for the operation */
    unsigned filled[SERVERS]; /* c->filled at the start of the operation */
    unsigned connected;       /* bit i: node i was ready at the start of the operation */
    uint16_t extended;        /* lock->extended at the last check */
    unsigned asked;           /* nodes that may have had the key when the operation began */
    uint64_t released_us;     /* when the release of the valid lock began */
    redlock_mask releases;    /* its members then; 0: no such release */
    redlock_mask proven; /* nodes that prove, without a clock, that no other client had the lock */
    uint8_t handed_off;  /* 1: handed off to another client */
    uint8_t to_release;  /* 1: it was acquired, and no release has succeeded since */
    char next;           /* the next operation, if planned; else 0 */
    char what;           /* 'a'cquire, 'e'xtend, 'r'elease, 'k' auto-extend; ' ': no operation */
};

struct client {
    struct redlock_client redlock;
    struct redlock_node nodes[SERVERS];
    struct redlock_lock locks[LOCKS];
    struct record records[LOCKS];
    char holder[8];
    struct redlock_io io;
    int64_t ppm, wall_step_us;
    uint64_t base_us;
    uint64_t here_us; /* true time of its process; after now_us: it is busy until then */
    uint64_t timer_us, action_us;
    uint64_t paused_us;     /* the sum of its pauses */
    uint64_t busy_until_us; /* until then each call of redlock_tick completes another operation */
    uint8_t interest[SERVERS];
    int closed;        /* 1: connections were closed, and no extension has succeeded since then */
    unsigned listed;   /* it has the first so many nodes */
    int link[SERVERS]; /* of each node: index in `links`; -1: none */
    uint64_t heard_us[SERVERS]; /* when it has received bytes from each node last */
    /* Of each node: the process that it has told, when that was heard last, and when the process before it was; 0: none. R14 */
    unsigned run[SERVERS];
    uint64_t run_heard_us[SERVERS], former_us[SERVERS];
    int hole[SERVERS];
    /* end of the last fault between the client and a server; may be in the future */
    uint64_t disturbed_us[SERVERS];
    unsigned filled[SERVERS]; /* how often a connection had no room for all bytes */
    uint64_t window_us;       /* since then it has started so many operations, */
    unsigned starts, connects[SERVERS], commands[SERVERS]; /* and has sent so much to each node */
    unsigned lock_count;
    int blocked;      /* in a blocking call, or busy between two: it is not served */
    int calling;      /* the next operation is a blocking call */
    uint64_t late_us; /* its bytes take so much longer, both ways */
};

/* A successful acquire. */
struct acquisition {
    int key; /* index */
    uint64_t began_us, done_us, fencing_token;
};

/* A node without a free request is asked only after the decision, and is a member after the next extension. */
enum { HAS_ROOM = REDLOCK_PIPELINE_MAX > 8 };

/* Clients stand in wait queues; what the servers say of them may be arbitrary. R19 */
enum fairness { UNFAIR, FAIR, LYING };

/* ---- The hosts ------------------------------------------------------------------------------ */

extern struct link links[LINKS];
extern struct machine machines[SERVERS];
extern struct client clients[CLIENTS];
extern unsigned client_count, node_count, server_count;
extern unsigned quorum;             /* of nodes */
extern unsigned lock_count;         /* of each client */
extern int server_of[SERVERS];      /* of each node */
extern unsigned database[SERVERS];  /* of each node */
extern const char *secret[SERVERS]; /* of each server; NULL: none */
/* What stands in memory behind the nodes of a client that has fewer than the one before it. */
extern struct redlock_node behind[CLIENTS][SERVERS];
enum { LABELS = 4 };
extern const char *const labels[LABELS]; /* of locks */
extern const struct redlock_io sim_io;   /* of each client; its context is the client */

/* ---- The run -------------------------------------------------------------------------------- */

extern enum profile profile;
extern unsigned on; /* bit f: this run has fault f */
extern int faults_ended;
extern int guarded; /* clients have longest_ttl_ms */
extern uint32_t ttl_ms, node_timeout_ms;
extern uint32_t longest_ms; /* the longest ttl of a lock */
extern uint64_t now_us;     /* true time */
extern uint64_t digest;     /* of all events */
extern uint64_t next_check_us;
extern uint64_t slowest_us; /* the longest time that slow servers have added to a round trip */
/* LATE, CALLS, ROUNDS: the simulator plays moves in a certain order, see move(). */
extern int in_moves;
extern int bursts;   /* HEALTHY: one client with many locks at once, each with its own key */
extern int blocking; /* DISTANT: the client makes blocking calls */
extern int twin;     /* DUPLICATE: the server that is listed twice; else -1 */
/* When this server refuses an extension, the commands after it are delayed. */
extern int aimed;
/* This server restarts when it has told its run_id to a client, which gets it late. */
extern int falling;
extern int swapped; /* the native releases of a server have changed, on the same connections */
extern int lazy;    /* clients call redlock_next_completed late */
extern enum fairness fair;
extern unsigned acquisition_count;

/* Bit i: next_us[0][i] of a server, next_us[1][i] of a client must be computed again. */
extern unsigned stale_servers, stale_clients;
extern uint64_t next_us[2][CLIENTS > SERVERS ? CLIENTS : SERVERS];

extern const char *broken;                  /* the message of the violated invariant; NULL: none */
extern const char *only;                    /* only messages that contain this text end a run */
extern unsigned long broken_at, trace_from; /* events of this run */

/* What all runs have seen. */
extern unsigned long faults_seen[FAULTS], outcomes[4][STATUSES], events_seen, acquires_seen,
    extensions_seen, everywhere_seen, handed_seen, releases_seen, repeated_seen;

/* ---- The world: sim_world.c ----------------------------------------------------------------- */

/* An operation has ended with this status. */
void count_outcome(char what, int status);

/* A random number below `sides`. */
unsigned roll(unsigned sides);

/* Whether the run has this fault, and faults have not ended. */
int has(enum fault fault);

/* Whether the fault occurs now, in one of `one_in` calls of a run that has it. Counts it. */
int strikes(enum fault fault, unsigned one_in);

/* Records an event. The digest shows whether two runs were the same, because all random numbers depend on
   earlier events. */
#if defined(__GNUC__)
__attribute__((format(printf, 1, 2)))
#endif
void note(const char *format, ...);

/* An invariant is violated; the first one ends the run. */
void violated(const char *message);

/* A run begins: no connection, and these random numbers. */
void begin_world(uint32_t random);

/* What a clock shows at a moment of true time: `ppm` faster, and `base_us` at its start. */
uint64_t local_us(uint64_t moment_us, uint64_t base_us, int64_t ppm);

/* The last true time at which a client's clock shows at most `shown_us`. */
uint64_t true_us(const struct client *c, uint64_t shown_us);

/* What the clock of the server shows now. */
uint64_t server_us(const struct machine *m);

/* Of each client. */
uint32_t stall_ms(void);

/* The longest round trip to a server without faults. */
uint64_t round_trip_us(const struct machine *m);

/* The same to the farthest server. */
uint64_t longest_round_trip_us(void);

/* Records a fault between a client and a server until `until_us`. */
void disturb(struct client *c, int server, uint64_t until_us);

/* The same for all clients. */
void disturb_all(int server, uint64_t until_us);

/* The server closes its end. Replies that it has sent may still arrive. */
void link_cut(struct link *link);

/* A partition between the client and the server begins, or ends. */
void set_hole(struct client *c, int server, int hole);

/* When bytes may arrive at the client. */
uint64_t link_back_us(const struct link *link);

/* Delays all bytes of a connection. They arrive also if the client closes it before. */
void link_sticks(struct link *link);

/* Notifies all other connections that track the key. A late push delays the replies after it. */
void notify(const struct link *changer, int server, struct mini_word name);

/* The server, with its clock set to now. */
struct machine *at_its_time(int server);

/* Which keys to remove: expired ones; all with a ttl; all. */
enum { EXPIRED, EXPIRING, ALL };
void sweep(int server, int which);

/* But for the generation, which a repair changes. R9 */
int is_same_token(const char *a, const char *b, unsigned size);

/* The name of a key as a word. */
struct mini_word name_of(const struct mini_name *name);

/* The server ends; with the loss of all keys, but fencing counters. */
void crash(int server, int loses_keys);

/* The time of the server's next event. */
uint64_t server_next_us(int server);

/* The server does what is due now. */
void server_runs(int server);

/* From 0. */
int number_of(const struct client *c);

/* The time of a process is now_us, or later if it is busy. */
void catch_up(struct client *c);

/* The process of the client is paused, for a random time. */
void pause_process(struct client *c);

/* Counts what a client does. While it starts few operations, a node is sent a bounded number of commands, with
   pauses in between, and is connected seldom: a pause before a reconnect is 400 us at least, and doubles. R5, R6 */
void count(struct client *c, unsigned *counter, unsigned by);

/* The clock of a client: now_us of its io table. */
uint64_t sim_now(void *context);

/* ---- Clients: sim_clients.c ----------------------------------------------------------------- */

/* The operation of the lock has ended. */
void ended(struct client *c, struct redlock_lock *lock);

/* Cancels the operation of lock i. */
void cancel(struct client *c, unsigned i);

/* What the event loop of a program does. */
void client_runs(struct client *c);

/* When something happens on the connection to node n that the client waits for. */
uint64_t link_next_us(const struct client *c, unsigned n);

/* When the client must be served next. */
uint64_t client_next_us(const struct client *c);

/* A client begins, with all nodes and locks that are not held. */
void begin_client(struct client *c);

/* Its program ends without releasing anything. */
void end_client(struct client *c);

/* Starts an operation of lock i, or makes a blocking call: 'a'cquire, 'e'xtend, 'r'elease, auto-extend 'k'. Its status. */
int start(struct client *c, unsigned i, char what, uint32_t wait_ms);

/* The client abandons lock i. */
void abandon(struct client *c, unsigned i);

/* A new client with the memory of the old one, and perhaps with fewer or more nodes. Held locks are abandoned or released;
   with other nodes, they are set up anew. Others may be used as they are. */
void begin_client_again(struct client *c, unsigned listed);

/* Of how many nodes a client knows: a quorum at least. */
unsigned draw_listed(void);

/* The client `to` adopts lock i of `c` as its lock k; `c` then abandons the lock or ends. */
void hand_off_to(struct client *c, unsigned i, struct client *to, unsigned k);

/* Hands lock i over to a random client. */
void hand_off(struct client *c, unsigned i);

/* The same, and the former holder abandons it. */
void hand_off_and_abandon(struct client *c, unsigned i);

/* A call that the state of the lock permits. Another one may follow before the operation has done anything. */
void any_call(struct client *c);

/* A random operation. */
void act(struct client *c);

/* One operation of a client after all faults have ended. Its status. */
int at_once(struct client *c, unsigned i, char what, uint32_t wait_ms);

/* An operation of profile LATE. Client 0 holds the lock for long, and its commands are delayed; the others
   hold it for a moment. */
void operate(struct client *c, unsigned k);

/* A client that holds a lock, by its own knowledge; else client 0. */
struct client *holder(unsigned *k);

/* Starts an extension of lock k, if it is held and no operation is in progress. Whether it has. */
int extend_if_held(struct client *c, unsigned k);

/* The pauses are long enough for reconnects and repairs. */
void holder_extends_often(void);

/* ---- The invariants: sim_checks.c ----------------------------------------------------------- */

/* How many bits are 1. */
unsigned bits(unsigned mask);

/* The first true time at which the lock is no longer valid by the holder's clock; 0: not held. */
uint64_t held_until_us(const struct client *c, const struct redlock_lock *lock);

/* Writes the value of the key of a lock. Its size. */
unsigned put_token(const struct redlock_lock *lock, char *text);

/* Bit i: server i has all keys of the lock. */
unsigned servers_that_have(const struct redlock_lock *lock);

/* Bit i: node i is READY. */
unsigned ready_nodes(const struct client *c);

/* Bit i: server i has no fault, and the client has a connection to it, or with `connected` 0 may connect. */
unsigned undisturbed_servers(const struct client *c, int connected);

/* The servers of record->undisturbed without a fault since undisturbed_us. */
unsigned still_undisturbed(const struct client *c, const struct record *record);

/* Whether two round trips fit into the time that a reply may take. */
int is_near(const struct redlock_lock *lock);

/* Sets record->undisturbed: from now on the lock must be extended while a quorum of these servers has no
   fault. A server that has not confirmed the last extension may have the key for a shorter time, if the ttl
   was shorter before. A client that adopts the lock cannot know this. */
void expect_extension(const struct client *c, const struct redlock_lock *lock,
                      struct record *record, char what);

/* A server has no vote while a lock may be held that its former process has granted, if the client has heard of that process;
   whatever the clocks of servers say. R14 */
void check_guard(const struct client *c);

/* A lock knows how many replies each node owes it: none if it is the caller's again. No reply is of a later round than the lock's. */
void check_requests(const struct client *c);

/* No two clients hold a lock, and each holder has its key on a quorum. */
void check_holders(const struct client *c);

/* A fencing token must be unique, and larger than those of all acquires that were complete before this one began. */
void check_acquisition(const struct client *c, const struct redlock_lock *lock,
                       const struct record *record);

/* An extension must fail if another client had the lock before its round began. The round began after the
   operation; if it set this validity, then at T1, which follows from the validity, the ttl and a drift of 1 %
   and 2 ms. */
void check_extension(const struct client *c, const struct redlock_lock *lock,
                     struct record *record);

/* The checks that are due; sets next_check_us. */
void check_all_everywhere(void);

/* How long the operation may take, without pauses of the process. */
uint64_t allowed_us(const struct redlock_lock *lock, char what, uint32_t wait_ms);

/* The longest time for a vote of this client. */
uint64_t longest_timeout_us(const struct client *c);

/* An operation ends in time. */
void check_time(const struct client *c, const struct redlock_lock *lock, struct record *record);

/* An automatic extension ends with the validity of its lock, in the tick that comes then. R10 */
void check_loss(const struct client *c, const struct redlock_lock *lock);

/* Results that are wrong while no server, or no quorum, has a fault. */
void check_result(const struct client *c, const struct redlock_lock *lock,
                  const struct record *record, int status);

/* A release that succeeds, or that finds no lock, has the word of a quorum for it. A key that was created since it
   began is of a late command. R11 */
void check_release(const struct redlock_lock *lock, struct record *record, int status);

/* A release reports no loss where it has deleted the keys of a quorum of members of a valid lock, however often it was
   sent. R11 */
void check_reported_loss(const struct redlock_lock *lock, struct record *record, int status);

/* The votes that a lock names are those of its operation, of nodes that its client has. A lock that is lost or
   cancelled before an extension has asked any node names those from before. */
void check_voters(const struct client *c, const struct redlock_lock *lock,
                  const struct record *record);

/* The votes explain the result. Most results need a quorum of them. A lock is lost before its validity ends only because
   a node has not the key. R3, R6, R9, R11 */
void check_votes(const struct client *c, const struct redlock_lock *lock, struct record *record,
                 int status);

/* A client writes to its own nodes only. */
void check_behind(const struct client *c);

/* A node that owes a reply for stall_ms is disconnected when the client runs the next time. R5 */
void check_stalls(const struct client *c, uint64_t ran_us);

/* An invariant: `got` is `expected`. */
void expect(int got, int expected, const char *message);

/* One lock of each client, one client after the other. */
void check_without_faults(void);

/* Clients that have only the first few nodes get all of them. */
void list_all_nodes(void);

/* The client begins again, with `count` locks of one key. */
void begin_crowd(struct client *c, unsigned count);

/* Waiters that are dead, or too far away, cost the others little of their time. R19 */
void check_queues(void);

/* As many servers crash or hang as the quorum permits. The first attempt must succeed with the others. */
void check_majority(void);

/* ---- The schedule: sim.c -------------------------------------------------------------------- */

/* Mostly used before the client sends something. */
void stick_one(const struct client *c);

/* Runs the next event before `end_us`; 0: there is none. */
int step(uint64_t end_us);

/* Runs one event of another host, unless a connection of the client is ready, or its time is up: then 0. */
int is_blocked_until(struct client *c, uint64_t until_us, uint8_t *events);

/* Runs all events of this time. */
void pass(uint64_t us);

#endif
