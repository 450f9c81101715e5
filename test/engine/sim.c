/* sim.c - simulated runs in one process: several clients (the real library), several servers (mini.h), a
   clock for each host, and the network between them. The seed determines the whole run:

       sim FIRST COUNT           one run for each seed; prints each violated invariant with its seed
       sim FIRST COUNT TEXT      the same, but only invariants whose message contains TEXT end a run
       sim FIRST trace           one run, event by event

   Each run draws a profile and its faults. Profile ANY draws up to 5 clients, 7 servers and all kinds of
   faults. DISTANT, in one run of eight, has one client with the default time limits, which makes blocking calls
   in half of these runs: between two calls it reads nothing. The other profiles are small; each is for one class of defects. ROUNDS, in one run of eight, is
   for what replies to extensions prove. CALLS, in one run of eight, draws the
   settings too, and makes calls that follow each other at once, in every state of a lock. A client that ends may
   be followed by one with fewer nodes, or with all of them again, which uses the same locks.

   In five of eight runs the faults respect the assumptions of the README: clocks run at nearly one rate, and
   no key is lost before its ttl. The invariants are: no two clients hold a lock at the same time, and each
   holder has its key on a quorum. In the other runs clocks jump and keys vanish. The remaining invariants
   are: fencing tokens grow; an extension succeeds only if no other client had the lock since the acquire;
   every operation ends; at most one command that creates a key for a token may still run on a server; a release
   that succeeds, or finds no lock, leaves the key on no quorum; a lock that is not held is not repaired; the votes
   that a lock names are of nodes that have replied to its operation, and explain the result; a client writes to
   its own nodes only; a node that does not reply is disconnected in time; no node is connected, or sent commands,
   again and again without a pause.

   While there is no fault there are more invariants: a lock is on all servers soon after its acquire, and those
   that were asked at its start are members; a lock with auto-extension is not lost; no acquire fails.

   While a majority of servers is healthy, in DISTANT: an acquire that may wait succeeds, no lock is lost, and after a
   change few extensions fail; after some more of them each server has the key and is a member.

   At the end of a run all faults end. After that every lock can be acquired within its ttl, all results are
   correct, and no key is left.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "core.h"
#include "lock_options.h"
#include "mini.h"
#include "tap.h"

#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
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
/* In so many ms a client connects a node so often at most, and sends it so many commands for each lock and each
   operation that it starts. */
enum { WINDOW_MS = 100, CONNECTS_MAX = 30, COMMANDS_MAX = 1000 };
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
    OLD,    /* servers without HELLO or pushes, or with INFO or native releases that come and go */
    VANISH, /* keys are lost before their ttl. From here on: faults beyond the assumptions */
    JUMP,   /* clocks of servers */
    WALL,   /* wall clocks of clients */
    FAULTS
};

static const char *const fault_names[FAULTS] = {
    "servers hung",        "servers crashed",      "servers lost their keys",
    "connections cut",     "partitions",           "full connections",
    "slow servers",        "unexpected replies",   "clients paused",
    "clients died",        "connections stuck",    "bytes in small parts",
    "pushes lost or late", "clocks' rates",        "old servers",
    "keys vanished",       "server clocks jumped", "wall clocks jumped"};

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

/* ---- State ---------------------------------------------------------------------------------- */

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
    struct flow back;
    int refused;       /* the server was down */
    unsigned node;     /* of the client's list */
    unsigned position; /* in `served` of the server */
    uint64_t up_us;
    uint64_t silent_us; /* since then a reply is due, and no byte has come; 0: none is due */
    struct mini_session session;
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
    int hole[SERVERS];
    /* end of the last fault between the client and a server; may be in the future */
    uint64_t disturbed_us[SERVERS];
    unsigned filled[SERVERS]; /* how often a connection had no room for all bytes */
    uint64_t window_us;       /* since then it has started so many operations, */
    unsigned starts, connects[SERVERS], commands[SERVERS]; /* and has sent so much to each node */
    unsigned lock_count;
    int blocked; /* in a blocking call, or busy between two: it is not served */
    int calling; /* the next operation is a blocking call */
};

/* A successful acquire. */
struct acquisition {
    int key; /* index */
    uint64_t began_us, done_us, fencing_token;
};

static struct link links[LINKS];
static struct part parts_of[LINKS][2][PARTS]; /* to the server, and back */
static char bytes_of[LINKS][2][ROOM];
static struct machine machines[SERVERS];
static struct client clients[CLIENTS];
/* What stands in memory behind the nodes of a client that has fewer than the one before it. */
static struct redlock_node behind[CLIENTS][SERVERS];
static struct acquisition acquisitions[ACQUIRES];
static unsigned acquisition_count, client_count, node_count, server_count, quorum;
static int server_of[SERVERS];      /* of each node */
static unsigned database[SERVERS];  /* of each node */
static const char *secret[SERVERS]; /* of each server; NULL: none */
static uint64_t now_us, digest;
static uint32_t dice, entropy;
static unsigned on; /* bit f: this run has fault f */
static int faults_ended, guarded;
static int swapped; /* the native releases of a server have changed, on the same connections */
static unsigned long event, broken_at, trace_from = ULONG_MAX; /* events of this run */
static uint32_t ttl_ms, node_timeout_ms;
static uint32_t longest_ms; /* the longest ttl of a lock */
static enum profile profile;
static const char *only = ""; /* only messages that contain this text end a run */
static uint64_t next_check_us;
static uint64_t slowest_us; /* the longest time that slow servers have added to a round trip */
static unsigned lock_count; /* of each client */
static int in_moves;  /* LATE, CALLS: the simulator plays moves in a certain order, see move() */
static int bursts;    /* HEALTHY: one client with many locks at once, each with its own key */
static int blocking;  /* DISTANT: the client makes blocking calls */
static int twin = -1; /* DUPLICATE: the server that is listed twice */
static int aimed =
    -1; /* when this server refuses an extension, the commands after it are delayed */
static int falling =
    -1; /* this server restarts when it has told its run_id to a client, which gets it late */
static enum {
    UNFAIR,
    FAIR,
    LYING
} fair; /* clients stand in wait queues; what the servers say of them may be arbitrary. R19 */
static int lazy;           /* clients call redlock_next_completed late */
static const char *broken; /* the message of the violated invariant; NULL: none */
/* Bit i: next_us[0][i] of a server, next_us[1][i] of a client must be computed again. */
static unsigned stale_servers, stale_clients;
static uint64_t next_us[2][CLIENTS > SERVERS ? CLIENTS : SERVERS];
static unsigned long faults_seen[FAULTS], outcomes[4][STATUSES], events_seen, acquires_seen,
    extensions_seen, everywhere_seen, handed_seen, profiles_seen[PROFILES];

static const struct redlock_key second_key = {"k1", 2};
static const char *const labels[] = {"", "@", " host-1:4711", "\r\n$3\r\nabc\r\n"};
enum { LABELS = sizeof labels / sizeof *labels };

static const char operations[] = "aerk";
static const char *const operation_names[] = {"acquire", "extend", "release", "auto-extend"};

static void count_outcome(char what, int status)
{
    outcomes[strchr(operations, what) - operations][-status]++;
}

static unsigned roll(unsigned sides)
{
    dice ^= dice << 13;
    dice ^= dice >> 17;
    dice ^= dice << 5;
    return sides == 0 ? 0 : (dice >> 3) % sides;
}

static int has(enum fault fault)
{
    return !faults_ended && (on >> fault & 1) != 0;
}

/* Whether the fault occurs now, in one of `one_in` calls of a run that has it. Counts it. */
static int strikes(enum fault fault, unsigned one_in)
{
    if (!has(fault) || roll(one_in) != 0)
        return 0;
    faults_seen[fault]++;
    return 1;
}

/* Records an event. The digest shows whether two runs were the same, because all random numbers depend on
   earlier events. */
#if defined(__GNUC__)
__attribute__((format(printf, 1, 2)))
#endif
static void
note(const char *format, ...)
{
    va_list arguments;
    char text[400];
    unsigned i;

    digest = (digest ^ now_us ^ (uint64_t)dice << 32 ^ entropy) * 1099511628211U;
    events_seen++;
    if (++event < trace_from)
        return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    for (i = 0; text[i] != '\0'; i++)
        if (text[i] == '\r' || text[i] == '\n')
            text[i] = ' ';
    fprintf(stderr, "# %10.3f ms  %s\n", (double)now_us / 1000, text);
}

static void violated(const char *message)
{
    if (broken == NULL && strstr(message, only) != NULL) {
        broken = message;
        broken_at = event;
    }
    note("VIOLATED: %s", message);
}

/* ---- Clocks --------------------------------------------------------------------------------- */

static uint64_t local_us(uint64_t moment_us, uint64_t base_us, int64_t ppm)
{
    return (uint64_t)((int64_t)(base_us + moment_us) + (int64_t)moment_us * ppm / 1000000);
}

/* The last true time at which a client's clock shows at most `shown_us`. */
static uint64_t true_us(const struct client *c, uint64_t shown_us)
{
    uint64_t guess = (uint64_t)((int64_t)(shown_us - c->base_us) * 1000000 / (1000000 + c->ppm));

    while (local_us(guess, c->base_us, c->ppm) > shown_us)
        guess--;
    while (local_us(guess + 1, c->base_us, c->ppm) <= shown_us)
        guess++;
    return guess;
}

static uint64_t server_us(const struct machine *m)
{
    return local_us(now_us, m->base_us, m->ppm) + (uint64_t)m->step_us;
}

/* ---- The network ---------------------------------------------------------------------------- */

static uint32_t stall_ms(void)
{
    return profile == DISTANT ? 1000 : 4 * node_timeout_ms;
}

static uint64_t delay_us(const struct machine *m)
{
    return 50 + m->far_us + roll(200) + (m->delay_us > 0 ? roll((unsigned)m->delay_us) : 0);
}

/* The longest round trip to a server without faults. */
static uint64_t round_trip_us(const struct machine *m)
{
    return 2 * (50 + m->far_us + 200);
}

static uint64_t longest_round_trip_us(void)
{
    uint64_t longest = 0;
    unsigned i;

    for (i = 0; i < server_count; i++)
        if (round_trip_us(&machines[i]) > longest)
            longest = round_trip_us(&machines[i]);
    return longest;
}

/* Records a fault between a client and a server until `until_us`. */
static void disturb(struct client *c, int server, uint64_t until_us)
{
    if (c->disturbed_us[server] < until_us)
        c->disturbed_us[server] = until_us;
}

/* The same for all clients. */
static void disturb_all(int server, uint64_t until_us)
{
    unsigned i;

    for (i = 0; i < client_count; i++)
        disturb(&clients[i], server, until_us);
}

static void flow_schedule(struct flow *flow)
{
    flow->next_us = flow->part < flow->parts_used ? flow->parts[flow->part].at_us : REDLOCK_NEVER;
}

static void flow_clear(struct flow *flow)
{
    flow->first = flow->arrived = flow->used = flow->part = flow->parts_used = 0;
    flow->last_us = 0;
    flow_schedule(flow);
}

/* Sends bytes at `from_us`. Returns how many there was room for. */
static unsigned flow_put(struct flow *flow, const char *bytes, unsigned size, uint64_t from_us,
                         const struct machine *m)
{
    unsigned left, part;

    if (flow->part == flow->parts_used)
        flow->part = flow->parts_used = 0;
    if (flow->part > PARTS / 2) { /* some part is always under way */
        flow->parts_used -= flow->part;
        memmove(flow->parts, flow->parts + flow->part, flow->parts_used * sizeof *flow->parts);
        flow->part = 0;
    }
    if (flow->first > ROOM / 2) { /* also when first == used: then nothing is moved */
        memmove(flow->bytes, flow->bytes + flow->first, flow->used - flow->first);
        flow->arrived -= flow->first;
        flow->used -= flow->first;
        flow->first = 0;
    }
    if (flow->first == flow->used)
        flow->first = flow->arrived = flow->used = 0;
    if (size > ROOM - flow->used)
        size = ROOM - flow->used;
    for (left = size; left > 0; left -= part) {
        part = has(DRIP) && roll(3) == 0 ? 1 + roll(8) : left;
        if (part > left || flow->parts_used + 2 > PARTS)
            part = left;
        if (flow->parts_used == PARTS)
            return size - left;
        faults_seen[DRIP] += part < left;
        if (from_us + delay_us(m) > flow->last_us)
            flow->last_us = from_us + delay_us(m);
        memcpy(flow->bytes + flow->used, bytes + size - left, part);
        flow->used += part;
        flow->parts[flow->parts_used].size = part;
        flow->parts[flow->parts_used++].at_us = flow->last_us;
        flow_schedule(flow);
    }
    return size;
}

static void flow_arrive(struct flow *flow, uint64_t until_us)
{
    while (flow->next_us <= until_us) {
        flow->arrived += flow->parts[flow->part++].size;
        flow_schedule(flow);
    }
}

/* Drops the bytes under way from a random one on. */
static void flow_cut(struct flow *flow)
{
    unsigned keep =
        roll(2) == 0 ? flow->used - flow->arrived : roll(flow->used - flow->arrived + 1);
    unsigned i, size = 0;

    for (i = flow->part; i < flow->parts_used; i++) {
        if (flow->parts[i].size > keep)
            flow->parts[i].size = keep;
        keep -= flow->parts[i].size;
        size += flow->parts[i].size;
    }
    flow->used = flow->arrived + size;
}

/* Adds the connection to those of the server, or removes it. */
static void set_served(struct link *link, int served)
{
    struct machine *m = &machines[link->server];
    struct link *last;

    if (link->served == served)
        return;
    link->served = served;
    if (served) {
        link->position = m->served_count;
        m->served[m->served_count++] = link;
    } else {
        last = m->served[--m->served_count];
        m->served[link->position] = last;
        last->position = link->position;
    }
}

/* The server closes its end. Replies that it has sent may still arrive. */
static void link_cut(struct link *link)
{
    if (!link->served)
        return;
    set_served(link, 0);
    stale_clients |= 1U << link->client;
    disturb(&clients[link->client], link->server, now_us);
    flow_clear(&link->to);
    flow_cut(&link->back);
}

/* The server sends bytes. If there is no room for them, it closes the connection. */
static void send_reply(struct link *link, const char *bytes, unsigned size, uint64_t from_us)
{
    stale_clients |= 1U << link->client;
    if (flow_put(&link->back, bytes, size, from_us, &machines[link->server]) < size)
        link_cut(link);
}

/* The connections of a client to a server. */
static struct link *links_of(const struct client *c, int server)
{
    return &links[server * SERVER_LINKS + (int)(c - clients) * SLOTS];
}

static void set_hole(struct client *c, int server, int hole)
{
    unsigned i;

    c->hole[server] = hole;
    for (i = 0; i < SLOTS; i++)
        links_of(c, server)[i].in_hole = hole;
}

/* When the next bytes arrive at the server. */
static uint64_t link_to_us(const struct link *link)
{
    uint64_t from_us = link->stuck_until_us;

    if (link->in_hole)
        return REDLOCK_NEVER;
    if (from_us < link->mute_until_us)
        from_us = link->mute_until_us;
    return link->to.next_us < from_us && link->to.next_us != REDLOCK_NEVER ? from_us
                                                                           : link->to.next_us;
}

/* When bytes may arrive at the client. */
static uint64_t link_back_us(const struct link *link)
{
    return link->stuck_until_us > link->deaf_until_us ? link->stuck_until_us : link->deaf_until_us;
}

/* Delays all bytes of a connection. They arrive also if the client closes it before. */
static void link_sticks(struct link *link)
{
    uint32_t most_ms[3];
    uint64_t until_us;

    most_ms[0] = 8 * node_timeout_ms;
    most_ms[1] = 2 * ttl_ms;
    most_ms[2] = (in_moves ? 20 : 4) * longest_ms;
    until_us = now_us + 1 + roll(most_ms[in_moves ? 2 : roll(3)]) * MS;

    if (link->stuck_until_us < until_us)
        link->stuck_until_us = until_us;
    if (link->open)
        disturb(&clients[link->client], link->server, until_us);
    note("client %d server %d: a connection is stuck until %.3f ms", link->client, link->server,
         (double)link->stuck_until_us / 1000);
}

/* ---- Servers -------------------------------------------------------------------------------- */

/* Notifies all other connections that track the key. A late push delays the replies after it. */
static void notify(const struct link *changer, int server, struct mini_word name)
{
    struct machine *m = &machines[server];
    char push[MINI_REPLY];
    unsigned i, size;

    for (i = m->served_count; i-- > 0;) { /* backwards, because link_cut removes one */
        struct link *link = m->served[i];
        uint64_t from_us = now_us;
        if (link == changer)
            continue;
        size = mini_notify(&link->session, name, push);
        if (size == 0 || strikes(DEAF, 2))
            continue;
        if (strikes(DEAF, 3)) {
            from_us += roll(300) * MS;
            disturb(&clients[link->client], server, from_us);
        }
        send_reply(link, push, size, from_us);
    }
}

static struct machine *at_its_time(int server)
{
    struct machine *m = &machines[server];

    m->mini.now_us = server_us(m);
    m->mini.age_s = (int)(m->mini.now_us / SECOND - m->started_us / SECOND);
    return m;
}

static uint64_t next_sweep_us(void)
{
    return now_us + (10 + roll(100)) * MS;
}

/* Which keys to remove: expired ones; all with a ttl; all. */
enum { EXPIRED, EXPIRING, ALL };

static void sweep(int server, int which)
{
    struct machine *m = at_its_time(server);
    unsigned i, stay = 0;

    for (i = 0; i < m->mini.used; i++) {
        struct mini_key *key = &m->mini.keys[i];
        struct mini_word name;
        name.bytes = key->name.bytes;
        name.size = key->name.size;
        if (key->name.size == 0 || (key->until_us == UINT64_MAX && which != ALL))
            continue;
        if (key->until_us > m->mini.now_us && which == EXPIRED) {
            stay = 1;
            continue;
        }
        notify(NULL, server, name);
        key->name.size = 0;
    }
    m->sweep_us = stay ? next_sweep_us() : REDLOCK_NEVER;
}

/* Whether it is 40 hex digits and one of the labels. */
static int is_token(struct mini_word word)
{
    unsigned i, digits = 0;

    if (word.size < 40)
        return 0;
    for (i = 0; i < 40; i++)
        digits += (word.bytes[i] >= '0' && word.bytes[i] <= '9') ||
                  (word.bytes[i] >= 'a' && word.bytes[i] <= 'f');
    if (digits < 40 || word.size == 40)
        return digits == 40;
    for (i = 0; i < LABELS; i++)
        if (word.size == 40 + strlen(labels[i]) &&
            memcmp(word.bytes + 40, labels[i], strlen(labels[i])) == 0)
            return 1;
    return 0;
}

/* The server that is listed twice has granted a lock, and restarts before the others reply. Then its second
   address may be connected before the decision. R13 */
static void restart_before_others_reply(struct client *c)
{
    uint64_t mute_us = now_us + roll(4 * node_timeout_ms) * MS;
    unsigned n;

    machines[twin].falls_us = now_us + round_trip_us(&machines[twin]) / 2 + 1 + roll(400);
    for (n = 0; n < node_count; n++)
        if (server_of[n] != twin && c->link[n] >= 0 && links[c->link[n]].mute_until_us < mute_us) {
            links[c->link[n]].mute_until_us = mute_us;
            disturb(c, server_of[n], mute_us);
        }
    stale_servers = ~0U;
}

static int creates(const struct mini_command *command)
{
    return command->kind == 'S' || command->kind == 'M' || command->kind == 'F' || command->repairs;
}

/* Whether a command to this node that creates the key had this value before. R9 */
static int is_a_value_again(const struct link *link, const struct mini_command *command)
{
    struct machine *m = &machines[link->server];
    struct mini_word token = command->arguments[0];
    uint64_t hash = 14695981039346656037U ^ link->node;
    unsigned i;

    for (i = 0; i < token.size; i++)
        hash = (hash ^ (uint8_t)token.bytes[i]) * 1099511628211U;
    for (i = 0; i < VALUES; i++)
        if (m->values[i] == hash)
            return 1;
    m->values[m->next_value++ % VALUES] = hash;
    return 0;
}

static void check_command(const struct link *link, const struct mini_command *command)
{
    if (!is_token(command->arguments[0]) || command->keys[0].size != 2)
        violated("a command without a valid token or key");
    if ((unsigned)link->session.database != database[link->node])
        violated("a command in the wrong database");
    if (creates(command) && is_a_value_again(link, command))
        violated("two commands that create a key have the same value");
}

/* The server has told its run_id, which the client gets late, and restarts. R13 */
static void falls_after_its_run_id(struct link *link)
{
    falling = -1;
    machines[link->server].falls_us = now_us + 1;
    link->stuck_until_us = now_us + (1 + roll(4 * node_timeout_ms)) * MS;
    disturb(&clients[link->client], link->server, link->stuck_until_us);
    note("server %d falls, client %d gets its run_id not before %.3f ms", link->server,
         link->client, (double)link->stuck_until_us / 1000);
}

static struct mini_word name_of(const struct mini_name *name)
{
    struct mini_word word;

    word.bytes = name->bytes;
    word.size = name->size;
    return word;
}

/* In some runs what the servers say of the wait queue is arbitrary: any place, whether the lock is free or not, and whether somebody
   waits. It is a hint, so no invariant may break. R19 */
static unsigned lie(const struct mini_command *command, char *reply, unsigned size)
{
    if (fair != LYING || roll(2) == 0)
        return size;
    if (command->kind == 'W')
        return (unsigned)sprintf(reply, ":%d\r\n", (int)roll(12) - 6);
    if (command->kind == 'U' && (reply[1] == '1' || reply[1] == '2') && reply[0] == ':')
        reply[1] = (char)('1' + roll(2));
    return size;
}

static int has_token(const struct client *c, struct mini_word token, int cancelled);

/* Whether a client holds the lock with this token. */
static int is_decided(struct mini_word token)
{
    unsigned i;

    for (i = 0; i < client_count; i++)
        if (has_token(&clients[i], token, 0))
            return 1;
    return 0;
}

static void run_command(struct link *link, struct mini_command *command)
{
    static const char *const bad_reply[] = {"+QUEUED\r\n", "-ERR no\r\n",  "$3\r\nabc\r\n",
                                            "?\r\n",       "-BUSY no\r\n", "*0\r\n"};
    struct machine *m = at_its_time(link->server);
    int has_token = mini_is_of_a_lock(command);
    int takes = command->kind == 'S' || command->kind == 'M' || command->kind == 'F';
    char reply[MINI_REPLY];
    unsigned size, i;

    if (m->sweep_us != REDLOCK_NEVER)
        sweep(link->server, EXPIRED); /* a server finds an expired key when it reads the key */
    if (mini_is_of_a_lock(command)) {
        check_command(link, command);
        if (m->bad_reply && strikes(BAD_REPLY, 1)) {
            m->bad_reply = 0;
            disturb(&clients[link->client], link->server, now_us);
            i = roll(6);
            send_reply(link, bad_reply[i], (unsigned)strlen(bad_reply[i]), now_us);
            note("server %d: unexpected reply %u", link->server, i);
            return;
        }
    }
    if (m->no_memory > 0 &&
        (takes || command->repairs || (m->no_memory > 1 && command->kind == 'E'))) {
        static const char oom[] = "-OOM command not allowed when used memory > 'maxmemory'.\r\n";
        command->changed = 0;
        size = sizeof oom - 1;
        memcpy(reply, oom, size);
    } else {
        size = mini_run(&m->mini, &link->session, command, reply);
        size = lie(command, reply, size);
    }
    note("server %d: client %d %c %.8s: %.*s", link->server, link->client, command->kind,
         has_token ? command->arguments[0].bytes : "        ", (int)size - 2, reply);
    if (takes && !command->changed)
        memcpy(m->refused[m->refusals++ % REFUSALS], command->arguments[0].bytes,
               sizeof m->refused[0]);
    if (takes && command->changed && link->server == twin && strikes(CRASH, 4))
        restart_before_others_reply(&clients[link->client]);
    if (link->server == aimed && command->kind == 'E' && !command->repairs && reply[1] == '0') {
        aimed = -1;
        link->mute_until_us = now_us + roll(20 * longest_ms) * MS;
        disturb(&clients[link->client], link->server, link->mute_until_us);
        note("client %d server %d: mute until %.3f ms", link->client, link->server,
             (double)link->mute_until_us / 1000);
    }
    if (profile == ROUNDS && !faults_ended && takes && command->changed &&
        is_decided(command->arguments[0])) {
        flow_clear(&link->back); /* as a late grant would count by the clock. R8 */
        link_cut(link);
    } else {
        send_reply(link, reply, size, now_us);
    }
    if (link->server == falling && command->kind == 'I')
        falls_after_its_run_id(link);
    if (m->sweep_us == REDLOCK_NEVER && command->changed)
        m->sweep_us = next_sweep_us();
    for (i = 0; i < command->key_count && mini_is_of_a_lock(command); i++)
        if (command->changed >> i & 1)
            notify(link, link->server, command->keys[i]);
    for (i = 0; i < command->woken; i++)
        notify(link, link->server, name_of(&command->woken_keys[i]));
}

/* Runs the commands that have arrived, also when the client has closed its end. */
static void serve_link(struct link *link)
{
    struct flow *to = &link->to;
    struct mini_command command;
    unsigned used;

    flow_arrive(to, now_us);
    while (link->served &&
           (used = mini_read(to->bytes + to->first, to->arrived - to->first, &command)) > 0) {
        run_command(link, &command);
        to->first += used;
    }
    if (!link->open && to->part == to->parts_used)
        set_served(link, 0); /* closed by the client, and all its commands have run */
}

static void crash(int server, int loses_keys)
{
    struct machine *m = &machines[server];
    unsigned i;

    while (m->served_count > 0)
        link_cut(m->served[0]);
    for (i = 0; loses_keys && i < m->mini.used; i++)
        if (m->mini.keys[i].until_us != UINT64_MAX)
            m->mini.keys[i].name.size = 0;
    if (loses_keys)
        memset(m->mini.waiters, 0, sizeof m->mini.waiters);
    m->mini.script = NULL;
    m->down = 1;
    m->falls_us = 0;
    disturb_all(server, now_us);
    note("server %d crashes%s", server, loses_keys ? " and loses its keys" : "");
}

static void come_back(int server)
{
    struct machine *m = &machines[server];

    if (m->down) {
        m->mini.run += 7;
        m->started_us = server_us(m);
    }
    m->down = 0;
    m->away_until_us = 0;
    disturb_all(server, now_us);
    note("server %d is back", server);
}

/* The time of the server's next event. */
static uint64_t server_next_us(int server)
{
    const struct machine *m = &machines[server];
    uint64_t next = m->sweep_us;
    unsigned i;

    if (m->away_until_us > 0)
        return m->away_until_us;
    if (m->falls_us > 0 && m->falls_us < next)
        next = m->falls_us;
    for (i = 0; i < m->served_count; i++)
        if (link_to_us(m->served[i]) < next)
            next = link_to_us(m->served[i]);
    return next;
}

static void server_runs(int server)
{
    struct machine *m = &machines[server];
    struct link *ready[SERVER_LINKS];
    unsigned i, first, count = 0;

    if (m->away_until_us > 0)
        come_back(server);
    if (m->falls_us > 0 && m->falls_us <= now_us) {
        crash(server, 0);
        m->away_until_us = now_us + 1 + roll(2) * roll(5) * MS;
        disturb_all(server, m->away_until_us);
        return;
    }
    for (i = 0; i < m->served_count; i++)
        if (link_to_us(m->served[i]) <= now_us)
            ready[count++] = m->served[i];
    first = roll(count); /* commands of different connections have no order */
    for (i = 0; i < count; i++)
        if (ready[(first + i) % count]->served)
            serve_link(ready[(first + i) % count]);
    if (m->sweep_us <= now_us)
        sweep(server, EXPIRED);
}

/* ---- The io table of a client --------------------------------------------------------------- */

static struct client *self(void *context)
{
    return (struct client *)context;
}

static int number_of(const struct client *c)
{
    return (int)(c - clients);
}

/* The time of a process is now_us, or later if it is busy. */
static void catch_up(struct client *c)
{
    if (c->here_us < now_us)
        c->here_us = now_us;
}

static void pause_process(struct client *c)
{
    uint64_t pause_us = roll(2 * ttl_ms) * MS;
    unsigned i;

    c->here_us += pause_us;
    c->paused_us += pause_us;
    for (i = 0; i < server_count; i++)
        disturb(c, (int)i, c->here_us);
    note("client %d is paused", number_of(c));
}

/* Every call takes some time; sometimes the process is paused in it. */
static void a_moment(struct client *c)
{
    c->here_us += roll(4);
    if (strikes(PAUSE, 2000))
        pause_process(c);
}

/* A slot for a new connection. If all are in use, the bytes of a closed connection are lost. NULL: all are open. */
static struct link *free_link(const struct client *c, int server)
{
    struct link *first = links_of(c, server), *link = NULL;
    unsigned i;

    for (i = 0; i < SLOTS; i++)
        if (!first[i].open && (link == NULL || !first[i].served))
            link = &first[i];
    return link;
}

/* Counts what a client does. While it starts few operations, a node is sent a bounded number of commands, with
   pauses in between, and is connected seldom: a pause before a reconnect is 400 us at least, and doubles. R5, R6 */
static void count(struct client *c, unsigned *counter, unsigned by)
{
    unsigned n;

    if (c->here_us >= c->window_us + WINDOW_MS * MS) {
        c->window_us = c->here_us;
        c->starts = 0;
        memset(c->connects, 0, sizeof c->connects);
        memset(c->commands, 0, sizeof c->commands);
    }
    *counter += by;
    for (n = 0; n < node_count; n++) {
        if (c->connects[n] > CONNECTS_MAX)
            violated("a node is connected again and again");
        if (c->commands[n] > COMMANDS_MAX * (c->lock_count + c->starts))
            violated("a node is flooded with commands");
    }
}

/* How many commands begin in these bytes. */
static unsigned commands_in(const char *bytes, unsigned size)
{
    unsigned i, commands = 0;

    for (i = 0; i < size; i++)
        commands += bytes[i] == '*' && (i == 0 || bytes[i - 1] == '\n');
    return commands;
}

static int sim_dial(void *context, struct redlock_node *node)
{
    struct client *c = self(context);
    unsigned n = (unsigned)(node - c->nodes);
    int server = server_of[n];
    struct link *link = free_link(c, server);

    a_moment(c);
    count(c, &c->connects[n], 1);
    if (link == NULL) {
        violated("too many open connections");
        return -1;
    }
    set_served(link, 0);
    memset(&link->session, 0, sizeof link->session);
    flow_clear(&link->to);
    flow_clear(&link->back);
    link->client = number_of(c);
    link->server = server;
    link->node = n;
    link->open = 1;
    link->full = link->midway = 0;
    link->stuck_until_us = link->mute_until_us = link->deaf_until_us = link->silent_us = 0;
    link->refused = machines[server].down;
    if (!link->refused)
        set_served(link, 1);
    link->up_us = c->here_us + delay_us(&machines[server]) + machines[server].far_us;
    c->link[n] = (int)(link - links);
    node->handle = c->link[n];
    if (strikes(STUCK, profile == LATE ? 60 : 20))
        link_sticks(link);
    return 0;
}

static int sim_ready(void *context, struct redlock_node *node)
{
    struct client *c = self(context);
    const struct link *link = &links[node->handle];

    if (link->in_hole || c->here_us < link->up_us || c->here_us < link->stuck_until_us)
        return 0;
    if (!link->refused && link->served)
        return 1;
    redlock_set_error(node, "connect", "refused");
    return -1;
}

static unsigned put_token(const struct redlock_lock *lock, char *text);

/* But for the generation, which a repair changes. R9 */
static int is_same_token(const char *a, const char *b, unsigned size)
{
    return memcmp(a, b, size < 32 ? size : 32) == 0 &&
           (size <= 40 || memcmp(a + 40, b + 40, size - 40) == 0);
}

/* Whether the token is that of a lock that is held or, if so asked, whose operation was cancelled. */
static int has_token(const struct client *c, struct mini_word token, int cancelled)
{
    char own[80];
    unsigned i;

    for (i = 0; i < c->lock_count; i++)
        if ((cancelled ? c->locks[i].status == REDLOCK_CANCELLED
                       : c->locks[i].valid_until_us != 0) &&
            put_token(&c->locks[i], own) == token.size &&
            is_same_token(own, token.bytes, token.size))
            return 1;
    return 0;
}

/* A lock that is not held any more is not repaired: its key would keep others out (R9). Nor is a cancelled attempt sent
   any further (R4). A connection that was full may send late what was written before. */
static void check_sets(const struct client *c, struct link *link, const char *bytes, unsigned size)
{
    struct mini_command command;
    unsigned used;

    if (link->midway || on >> FULL & 1 || c->filled[link->server] > 0)
        return;
    for (; (used = mini_read(bytes, size, &command)) > 0; bytes += used, size -= used) {
        int acquires = command.kind == 'S' || command.kind == 'M' || command.kind == 'F';

        if ((!acquires && !command.repairs) || has_token(c, command.arguments[0], 0))
            continue;
        if (command.repairs)
            violated("a lock is repaired that is not held");
        else if (has_token(c, command.arguments[0], 1))
            violated("a cancelled attempt is sent to one more node");
    }
}

static int sim_transmit(void *context, struct redlock_node *node, const void *bytes, size_t size)
{
    struct client *c = self(context);
    struct link *link = &links[node->handle];
    unsigned taken, all = (unsigned)size;

    a_moment(c);
    if (!link->served) {
        flow_arrive(&link->back, c->here_us);
        redlock_set_error(node, "send", "broken pipe");
        return -1;
    }
    if (link->full)
        return 0;
    if (has(FULL) && roll(8) == 0)
        size = 1 + roll((unsigned)size);
    taken = flow_put(&link->to, (const char *)bytes, (unsigned)size, c->here_us,
                     &machines[link->server]);
    c->filled[link->server] += taken > 0 && taken < size;
    check_sets(c, link, (const char *)bytes, taken);
    link->midway = taken < all;
    count(c, &c->commands[link->node], commands_in((const char *)bytes, taken));
    if (taken > 0 && link->silent_us == 0)
        link->silent_us = c->here_us;
    if (machines[link->server].away_until_us == 0 && link_to_us(link) < next_us[0][link->server])
        next_us[0][link->server] = link_to_us(link);
    return (int)taken;
}

static int sim_receive(void *context, struct redlock_node *node, void *bytes, size_t size)
{
    struct client *c = self(context);
    struct link *link = &links[node->handle];
    struct flow *back = &link->back;
    unsigned there;

    a_moment(c);
    if (!link->in_hole && c->here_us >= link_back_us(link))
        flow_arrive(back, c->here_us);
    there = back->arrived - back->first;
    if (there > 0) {
        if (size > there)
            size = there;
        if (has(DRIP) && roll(4) == 0)
            size = 1 + roll((unsigned)size);
        memcpy(bytes, back->bytes + back->first, size);
        back->first += (unsigned)size;
        link->silent_us = 0; /* more replies may be due: that is not noticed */
        c->heard_us[link->node] = c->here_us;
        return (int)size;
    }
    if (link->served || link->in_hole || c->here_us < link_back_us(link) ||
        back->part < back->parts_used)
        return 0;
    redlock_set_error(node, "receive", "closed by the server");
    return -1;
}

static void sim_shut(void *context, struct redlock_node *node)
{
    struct client *c = self(context);
    struct link *link = &links[node->handle];

    if (!link->open)
        violated("closed twice");
    link->open = 0;
    if (link->to.part == link->to.parts_used && machines[link->server].away_until_us == 0)
        set_served(link, 0);
    else if (link->served && strikes(STUCK, 2))
        link_sticks(link);
    c->link[link->node] = -1;
    node->handle = -1;
}

static uint64_t sim_now(void *context)
{
    struct client *c = self(context);

    return local_us(c->here_us, c->base_us, c->ppm);
}

static uint64_t sim_wall(void *context)
{
    struct client *c = self(context);

    return ((uint64_t)1 << 50) + c->here_us + (uint64_t)c->wall_step_us;
}

static int is_blocked_until(struct client *c, uint64_t until_us, uint8_t *events);
static uint64_t longest_timeout_us(const struct client *c);

/* The other hosts run until something happens on a connection of the client, or its time is up. */
static void sim_wait(void *context, struct redlock_node *nodes, unsigned count, uint64_t timeout_us,
                     uint8_t *events)
{
    struct client *c = self(context);
    uint64_t until_us =
        timeout_us == REDLOCK_NEVER ? REDLOCK_NEVER : true_us(c, sim_now(c) + timeout_us) + 1;

    (void)nodes;
    if (timeout_us == 0)
        until_us = c->here_us;
    if (c->records[0].vote_us < longest_timeout_us(c))
        c->records[0].vote_us = longest_timeout_us(c);
    memcpy(c->interest, events, count);
    while (is_blocked_until(c, until_us, events))
        catch_up(c);
    a_moment(c);
}

static int sim_entropy(void *context, void *bytes, size_t size)
{
    uint8_t *to = (uint8_t *)bytes;

    (void)context;
    while (size-- > 0) {
        entropy = entropy * 1664525U + 1013904223U;
        *to++ = (uint8_t)(entropy >> 24);
    }
    return 0;
}

/* ---- Invariants ----------------------------------------------------------------------------- */

static unsigned bits(unsigned mask)
{
    unsigned count = 0;

    for (; mask != 0; mask &= mask - 1)
        count++;
    return count;
}

static int share_a_key(const struct redlock_lock *a, const struct redlock_lock *b)
{
    const char *ours = (const char *)a->key, *theirs = (const char *)b->key;

    return memcmp(ours, theirs, 2) == 0 || ((a->extra_key_count > 0 || b->extra_key_count > 0) &&
                                            ours[0] == 'k' && theirs[0] == 'k');
}

/* The first true time at which the lock is no longer valid by the holder's clock; 0: not held. */
static uint64_t held_until_us(const struct client *c, const struct redlock_lock *lock)
{
    return lock->valid_until_us == 0 ? 0 : true_us(c, lock->valid_until_us - 1) + 1;
}

static unsigned put_token(const struct redlock_lock *lock, char *text)
{
    static const char digits[] = "0123456789abcdef";
    unsigned i;

    for (i = 0; i < sizeof lock->token; i++) {
        text[2 * i] = digits[lock->token[i] >> 4];
        text[2 * i + 1] = digits[lock->token[i] & 15];
    }
    if (lock->label_size > 0)
        memcpy(text + 40, lock->label, lock->label_size);
    return 40U + lock->label_size;
}

/* Whether the server has the key with this token for at least `for_us`. */
static int server_has(struct mini_server *mini, const void *key, const char *token, unsigned size,
                      uint64_t for_us)
{
    const struct mini_key *found = mini_find(mini, key, 2);

    return found != NULL && found->value_size == size && is_same_token(found->value, token, size) &&
           found->until_us - mini->now_us >= for_us;
}

/* Bit i: server i has all keys of the lock with its token, for at least `for_us`, in the database of one of `nodes`. */
static unsigned servers_that_have_for(const struct redlock_lock *lock, unsigned nodes,
                                      uint64_t for_us)
{
    char token[80];
    unsigned n, have = 0, size = put_token(lock, token);

    for (n = 0; n < node_count; n++) {
        struct mini_server *mini = &at_its_time(server_of[n])->mini;
        mini->database = (int)database[n];
        if ((nodes >> n & 1) && server_has(mini, lock->key, token, size, for_us) &&
            (lock->extra_key_count == 0 ||
             server_has(mini, lock->extra_keys->bytes, token, size, for_us)))
            have |= 1U << server_of[n];
    }
    return have;
}

static unsigned servers_that_have(const struct redlock_lock *lock)
{
    return servers_that_have_for(lock, ~0U, 0);
}

/* Bit i: server i has had a key with the token of the lock since before that time. */
static unsigned servers_that_kept(const struct redlock_lock *lock, uint64_t since_us)
{
    char token[80];
    unsigned n, i, kept = 0, size = put_token(lock, token);

    for (n = 0; n < server_count; n++) {
        const struct machine *m = at_its_time((int)n);
        uint64_t before_us = local_us(since_us, m->base_us, m->ppm);
        for (i = 0; i < m->mini.used; i++) {
            const struct mini_key *key = &m->mini.keys[i];
            if (key->name.size > 0 && key->until_us > m->mini.now_us && key->since_us < before_us &&
                key->value_size == size && is_same_token(key->value, token, size))
                kept |= 1U << n;
        }
    }
    return kept;
}

static int refused_by(const struct machine *m, const struct redlock_lock *lock)
{
    char token[80];
    unsigned i;

    put_token(lock, token);
    for (i = 0; i < REFUSALS; i++)
        if (memcmp(m->refused[i], token, sizeof m->refused[i]) == 0)
            return 1;
    return 0;
}

/* A node without a free request is asked only after the decision, and is a member after the next extension. */
enum { HAS_ROOM = REDLOCK_PIPELINE_MAX > 8 };

/* Whether there is a fault now, or was one so recently that a client may still wait for a lost reply. */
static int is_disturbed(const struct client *c, int server)
{
    uint64_t settle_us = 5 * node_timeout_ms * MS;
    const struct machine *m = &machines[server];
    unsigned n;

    if (m->away_until_us > 0 || m->delay_us > 0 || m->bad_reply || m->no_memory ||
        c->hole[server] ||
        (c->disturbed_us[server] > 0 && c->disturbed_us[server] + settle_us >= now_us))
        return 1;
    for (n = 0; n < node_count; n++)
        if (server_of[n] == server && c->link[n] >= 0 && links[c->link[n]].full)
            return 1;
    return 0;
}

static unsigned ready_nodes(const struct client *c)
{
    unsigned n, ready = 0;

    for (n = 0; n < c->listed; n++)
        ready |= (unsigned)(c->nodes[n].state == REDLOCK_NODE_READY) << n;
    return ready;
}

/* Bit i: server i has no fault, and the client has a connection to it, or with `connected` 0 may connect. */
static unsigned undisturbed_servers(const struct client *c, int connected)
{
    unsigned n, undisturbed = 0;

    for (n = 0; n < c->listed; n++)
        if ((c->nodes[n].state == REDLOCK_NODE_READY ||
             (!connected && c->nodes[n].state != REDLOCK_NODE_DOWN)) &&
            !is_disturbed(c, server_of[n]))
            undisturbed |= 1U << server_of[n];
    return undisturbed;
}

/* The servers of record->undisturbed without a fault since undisturbed_us. */
static unsigned still_undisturbed(const struct client *c, const struct record *record)
{
    unsigned i, undisturbed = record->undisturbed;

    for (i = 0; i < server_count; i++)
        if (c->disturbed_us[i] >= record->undisturbed_us)
            undisturbed &= ~(1U << i);
    return undisturbed;
}

/* Whether so many round trips fit into the time that a reply may take. */
static int is_within(const struct redlock_lock *lock, unsigned round_trips)
{
    uint64_t patience_ms = lock->ttl_ms / 4 < node_timeout_ms ? lock->ttl_ms / 4 : node_timeout_ms;

    return round_trips * longest_round_trip_us() < patience_ms * MS;
}

static int is_near(const struct redlock_lock *lock)
{
    return is_within(lock, 2);
}

/* Whether all replies come in time. A connection accepts ROOM bytes in a round trip, and the time of a reply
   begins when its command is queued, also behind others (R15). So each time that a connection was full costs
   a round trip. A server that accepts no bytes delays the commands to all others for half of node_timeout_ms at
   most (R5), which may be too long for a short ttl. With very few requests at a time a burst takes too long. */
static int has_time(const struct client *c, const struct redlock_lock *lock,
                    const struct record *record)
{
    unsigned i, most = 0;

    if ((on >> FULL & 1 && lock->ttl_ms / 4 < node_timeout_ms) ||
        (bursts && (REDLOCK_PIPELINE_MAX < 8 || (record->wait_ms > 0 && !HAS_ROOM))))
        return 0;
    for (i = 0; i < server_count; i++)
        if (c->filled[i] - record->filled[i] > most)
            most = c->filled[i] - record->filled[i];
    return is_within(lock, 2 + most);
}

/* The longest time until the next automatic extension. It is sent when a third of the ttl has passed, at once
   if less than two thirds are left (R10). The drift and clocks of different rates are added. */
static uint64_t extended_in_us(const struct client *c, const struct redlock_lock *lock)
{
    uint64_t left_us = held_until_us(c, lock) - c->here_us + lock->ttl_ms * MS / 50 + 2 * MS;
    uint64_t third_us = lock->ttl_ms * MS / 3, later_us = third_us / 50 + 1 * MS;

    if (left_us <= 2 * third_us)
        return 0;
    left_us -= 2 * third_us;
    return left_us < third_us + later_us ? left_us : third_us + later_us;
}

/* Bit i: server i has the key in the generation that the client knows, or it knows none. A late command may have created it in
   another one: then the node is no member at its next reply. R9 */
static unsigned servers_as_known(const struct redlock_lock *lock)
{
    unsigned n, have = 0;
    char digits[9];

    for (n = 0; n < node_count; n++) {
        struct mini_server *mini = &at_its_time(server_of[n])->mini;
        const struct mini_key *found;
        mini->database = (int)database[n];
        found = mini_find(mini, lock->key, 2);
        snprintf(digits, sizeof digits, "%08lx", (unsigned long)lock->generation[n]);
        if (found != NULL && found->value_size >= 40 &&
            (REDLOCK_MINIMAL || lock->generation[n] == 0 ||
             memcmp(found->value + 32, digits, 8) == 0))
            have |= 1U << server_of[n];
    }
    return have;
}

/* Sets record->undisturbed: from now on the lock must be extended while a quorum of these servers has no
   fault. A server that has not confirmed the last extension may have the key for a shorter time, if the ttl
   was shorter before. A client that adopts the lock cannot know this. */
static void expect_extension(const struct client *c, const struct redlock_lock *lock,
                             struct record *record, char what)
{
    unsigned n, nodes = lock->members & ready_nodes(c), members = 0;

    record->undisturbed = 0;
    record->undisturbed_us = now_us;
    if (guarded || blocking || on >> JUMP & 1 || !is_near(lock) ||
        held_until_us(c, lock) < c->here_us + 6 * longest_round_trip_us() + 10 * MS)
        return;
    for (n = 0; n < node_count; n++)
        members |= (nodes >> n & 1) << server_of[n];
    record->undisturbed = members & undisturbed_servers(c, 1) & servers_as_known(lock);
    if (bits(record->undisturbed) >= quorum) /* of two nodes on one server only the member counts */
        record->undisturbed &= servers_that_have_for(
            lock, nodes, (what == 'k' ? extended_in_us(c, lock) : 0) + longest_round_trip_us());
}

static const struct redlock_request *nth_request(const struct redlock_node *node, unsigned nth)
{
    return &node->priv.requests[(node->priv.first + nth) % REDLOCK_PIPELINE_MAX];
}

/* The lock that waits for this reply; NULL: none. */
static const struct redlock_lock *waits_for(const struct redlock_node *node, unsigned nth)
{
    const struct redlock_request *request = nth_request(node, nth);

    return request->round == RL_OWED ? NULL : (const struct redlock_lock *)request->owner;
}

/* A lock knows how many replies each node owes it: none if it is the caller's again. No reply is of a later round than the lock's. */
static void check_requests(const struct client *c)
{
    unsigned due[LOCKS], n, nth, i;

    for (n = 0; n < c->listed; n++) {
        memset(due, 0, sizeof due);
        for (nth = 0; nth < c->nodes[n].priv.count; nth++) {
            const struct redlock_lock *lock = waits_for(&c->nodes[n], nth);
            if (lock == NULL)
                continue;
            due[lock - c->locks]++;
            if (nth_request(&c->nodes[n], nth)->round > lock->priv.attempt.round)
                violated("a reply is due to a later round");
        }
        for (i = 0; i < c->lock_count; i++) {
            const struct redlock_lock *lock = &c->locks[i];
            unsigned known = lock->priv.attempt.replies_due[n];
            if (due[i] > 0 && lock->priv.state == RL_IDLE && lock->status != REDLOCK_PENDING)
                violated("a reply is due to a lock that is the caller's");
            if (due[i] > known || (due[i] < known && lock->priv.state >= RL_ASKING &&
                                   lock->status == REDLOCK_PENDING))
                violated("a lock does not know how many replies are due");
        }
    }
}

static void check_holders(const struct client *c)
{
    unsigned i, j, k;

    if (on >> VANISH != 0) /* faults beyond the assumptions */
        return;
    for (i = 0; i < c->lock_count; i++) {
        const struct redlock_lock *lock = &c->locks[i];
        if (lock->valid_until_us == 0 || held_until_us(c, lock) <= c->here_us)
            continue;
        if (!(on >> KEY_LOSS & 1) && bits(servers_that_have(lock)) < quorum) {
            note("client %d lock %u is held until %.3f ms, and servers %#x have it", number_of(c),
                 i, (double)held_until_us(c, lock) / 1000, servers_that_have(lock));
            violated("a holder without a quorum");
        }
        for (j = 0; j < client_count; j++)
            for (k = 0; k < clients[j].lock_count; k++) {
                const struct redlock_lock *other = &clients[j].locks[k];
                if (other != lock && other->valid_until_us != 0 && share_a_key(lock, other) &&
                    held_until_us(&clients[j], other) > c->here_us) {
                    note("client %d lock %u is held until %.3f ms, client %u lock %u until %.3f",
                         number_of(c), i, (double)held_until_us(c, lock) / 1000, j, k,
                         (double)held_until_us(&clients[j], other) / 1000);
                    violated("two holders at once");
                }
            }
    }
}

static int key_of(const struct redlock_lock *lock)
{
    const char *key = (const char *)lock->key;

    return key[0] << 8 | key[1];
}

/* A fencing token must be unique, and larger than those of all acquires that were complete before this one began. */
static void check_acquisition(const struct client *c, const struct redlock_lock *lock,
                              const struct record *record)
{
    struct acquisition *acquisition = &acquisitions[acquisition_count];
    unsigned i;

    acquires_seen++;
    if (acquisition_count == ACQUIRES) {
        violated("more acquires than ACQUIRES");
        return;
    }
    acquisition->key = key_of(lock);
    acquisition->began_us = record->began_us;
    acquisition->done_us = c->here_us;
    acquisition->fencing_token = lock->fencing_token;
    acquisition_count++;
    if (!lock->use_fencing)
        return;
    if (acquisition->fencing_token == 0)
        violated("no fencing token");
    for (i = 0; i + 1 < acquisition_count; i++) {
        if (acquisitions[i].key != acquisition->key || acquisitions[i].fencing_token == 0)
            continue;
        if (acquisitions[i].fencing_token == acquisition->fencing_token)
            violated("a fencing token twice");
        if (acquisitions[i].done_us < acquisition->began_us &&
            acquisitions[i].fencing_token > acquisition->fencing_token)
            violated("a fencing token that did not grow");
    }
}

/* Whether an extension proves, without any clock, that no other client had the lock from the acquire to the
   start of its round. This needs a quorum of confirming nodes, each of which granted the lock before the
   decision, or confirmed or repaired it in a round that such a quorum proved. The proof holds with every
   fault except deleted keys that are there again. A node that grants later is a member by the clock only. */
static int proves(const struct redlock_lock *lock, struct record *record)
{
    int proof = bits((unsigned)(record->proven & lock->granted & lock->members)) >= quorum;

    if (proof)
        record->proven |= lock->granted & lock->members;
    return proof && !lazy && server_count == node_count;
}

/* An extension must fail if another client had the lock before its round began. The round began after the
   operation; if it set this validity, then at T1, which follows from the validity, the ttl and a drift of 1 %
   and 2 ms. */
static void check_extension(const struct client *c, const struct redlock_lock *lock,
                            struct record *record)
{
    /* 0: a SET may be delayed until keys are lost before their ttl; in ROUNDS the reply to it is lost */
    int by_clock = profile == ROUNDS || !(on >> STUCK & 1 && (on >> JUMP & 1 || on >> VANISH & 1));
    uint64_t began_us = record->began_us;
    unsigned i;

    if (lock->valid_until_us > record->valid_us)
        began_us = true_us(c, lock->valid_until_us + 2001 + lock->ttl_ms * 10U - lock->ttl_ms * MS);
    record->valid_us = lock->valid_until_us;
    record->proven &= lock->members; /* a node that becomes a member again proves nothing */
    if (lock->extended == record->extended)
        return;
    record->extended = lock->extended;
    extensions_seen++;
    for (i = proves(lock, record) || by_clock ? 0 : acquisition_count; i < acquisition_count; i++)
        if (acquisitions[i].key == key_of(lock) && acquisitions[i].began_us > record->acquired_us &&
            acquisitions[i].done_us < began_us)
            violated("extended, although another client had the lock");
    if (record->what == 'k')
        expect_extension(c, lock, record, 'k');
}

/* A lock that was acquired without faults must be on all servers, if there was no fault since. A node that
   keeps the send buffer full for half of the time of a vote is disconnected (R5), and its commands are
   dropped. */
static void check_everywhere(const struct client *c, const struct redlock_lock *lock,
                             struct record *record)
{
    unsigned i, have, members = lock->members;

    record->check_us = 0;
    if (still_undisturbed(c, record) != (1U << server_count) - 1 ||
        held_until_us(c, lock) <= now_us || !has_time(c, lock, record))
        return;
    have = servers_that_have(lock);
    everywhere_seen++;
    for (i = 0; i < server_count; i++)
        if (!(have >> i & 1) && !refused_by(&machines[i], lock)) {
            note("client %d lock %d is not on server %u", number_of(c), (int)(lock - c->locks), i);
            violated("a lock is not on all servers, without a fault");
        } else if ((have & record->connected & ~members) >> i & 1) {
            violated("a node that granted the lock is no member, without a fault");
        }
}

/* The checks that are due; sets next_check_us. */
static void check_all_everywhere(void)
{
    unsigned j, k;

    next_check_us = REDLOCK_NEVER;
    for (j = 0; j < client_count; j++)
        for (k = 0; k < clients[j].lock_count; k++) {
            struct record *record = &clients[j].records[k];
            if (record->check_us != 0 && record->check_us <= now_us)
                check_everywhere(&clients[j], &clients[j].locks[k], record);
            if (record->check_us != 0 && record->check_us < next_check_us)
                next_check_us = record->check_us;
        }
}

/* How long the operation may take, without pauses of the process. */
static uint64_t allowed_us(const struct redlock_lock *lock, char what, uint32_t wait_ms)
{
    uint64_t patience_us = node_timeout_ms * MS, all_us, far_us = 4 * longest_round_trip_us();
    /* three round trips to a slow server, if they are longer: R15 */
    uint64_t slow_us = slowest_us > 0 ? 3 * (longest_round_trip_us() + slowest_us) : 0;

    if (what == 'a' && wait_ms > 0 && (faults_ended || profile == HEALTHY) && !lock->use_fencing)
        return wait_ms * MS + 4 * (patience_us < far_us ? far_us : patience_us) + 5 * MS;
    if (slow_us > lock->ttl_ms * MS / 4)
        slow_us = lock->ttl_ms * MS / 4;
    all_us = wait_ms * MS + 30 * (patience_us < slow_us ? slow_us : patience_us);
    return lock->use_fencing ? 4 * all_us : all_us;
}

/* How long redlock.h says that the operation takes, where a vote takes so long. R15 */
static uint64_t promised_us(const struct redlock_lock *lock, const struct record *record,
                            uint64_t vote_us)
{
    /* for connections, before each attempt: stall_ms, and the wait for the rest */
    uint64_t connect_us = stall_ms() * MS, rest_us = 2 * node_timeout_ms * MS;
    uint64_t attempts = record->wait_ms == 0 ? 6 : 1;

    connect_us += rest_us < 100 * MS ? rest_us : 100 * MS;
    if (record->what == 'k')
        return REDLOCK_NEVER / 2;
    if (record->what != 'a')
        return vote_us + (record->what == 'r' ? record->wait_ms * MS : 0);
    return record->wait_ms * MS + (record->wait_ms == 0 ? 15 : 2) * vote_us +
           attempts * (connect_us + (lock->use_fencing ? 4 * vote_us : 0));
}

static uint64_t longest_timeout_us(const struct client *c)
{
    uint64_t longest_us = 0;
    unsigned n;

    for (n = 0; n < c->listed; n++)
        if (longest_us < c->nodes[n].priv.timeout_us)
            longest_us = c->nodes[n].priv.timeout_us;
    return longest_us;
}

static int waits_too_long(const struct client *c, const struct redlock_lock *lock,
                          struct record *record)
{
    uint64_t from_us, us;

    if (record->vote_us < longest_timeout_us(c))
        record->vote_us = longest_timeout_us(c);
    if (record->cancelled_us != 0) {
        from_us = record->cancelled_us + c->paused_us - record->unpaused_us;
        us = record->vote_us;
    } else {
        from_us = record->began_us + c->paused_us - record->paused_us;
        us = promised_us(lock, record, record->vote_us);
    }
    return c->here_us > from_us + us + us / 50 + 4 * MS;
}

static int takes_too_long(const struct client *c, const struct record *record)
{
    uint64_t until_us = record->allowed_us + c->paused_us - record->paused_us;

    return c->here_us > record->began_us + until_us + until_us / 50;
}

static void check_time(const struct client *c, const struct redlock_lock *lock,
                       struct record *record)
{
    if (waits_too_long(c, lock, record))
        violated("an operation takes longer than promised");
    if (!takes_too_long(c, record))
        return;
    if (record->what != 'k') /* again, because a server may have become slow since the start */
        record->allowed_us = allowed_us(lock, record->what, record->wait_ms);
    if (!takes_too_long(c, record))
        return;
    note("client %d lock %d %c takes longer than %.3f ms", (int)(c - clients),
         (int)(record - c->records), record->what, (double)record->allowed_us / 1000);
    violated("an operation takes too long");
}

/* Results that are wrong while no server, or no quorum, has a fault. */
static void check_result(const struct client *c, const struct redlock_lock *lock,
                         const struct record *record, int status)
{
    unsigned undisturbed = still_undisturbed(c, record);

    if (record->what == 'a' && status != REDLOCK_OK && lock->fencing_token != 0)
        violated("a fencing token of a lock that is not held");
    if (record->what == 'a' && undisturbed == (1U << server_count) - 1 &&
        (status == REDLOCK_UNREACHABLE || status == REDLOCK_DENIED || status == REDLOCK_TOO_LATE) &&
        has_time(c, lock, record))
        violated("an acquire fails without a fault");
    if (record->what == 'k' && status == REDLOCK_LOST && bits(undisturbed) >= quorum)
        violated("a lock with auto-extension is lost, although a quorum has no fault");
    if (record->what == 'e' && (status == REDLOCK_LOST || status == REDLOCK_UNREACHABLE) &&
        bits(undisturbed) >= quorum && has_time(c, lock, record))
        violated("an extension fails, although a quorum has no fault");
}

/* A release that succeeds, or that finds no lock, has the word of a quorum for it. A key that was created since it
   began is of a late command. R11 */
static void check_release(const struct redlock_lock *lock, struct record *record, int status)
{
    if (status != REDLOCK_OK && status != REDLOCK_EXPIRED)
        return;
    if (record->to_release && !(on >> JUMP & 1 || on >> BAD_REPLY & 1) &&
        server_count == node_count &&
        server_count - bits(servers_that_kept(lock, record->began_us)) < quorum)
        violated("a release succeeds, or finds no lock, but no quorum is without the key");
    record->to_release = 0;
}

/* The votes that a lock names are those of its operation, of nodes that its client has. A lock that is lost or
   cancelled before an extension has asked any node names those from before. */
static void check_voters(const struct client *c, const struct redlock_lock *lock,
                         const struct record *record)
{
    unsigned n, votes = lock->granted | lock->refused;

    if (((votes | lock->failed) >> c->listed) != 0 ||
        (lock->valid_until_us != 0 && lock->members >> c->listed != 0))
        violated("a lock names a node that its client does not have");
    if ((lock->granted & lock->refused) != 0)
        violated("a node has granted and refused the same");
    for (n = 0; n < c->listed; n++)
        if ((votes >> n & 1) && c->heard_us[n] < record->votes_us)
            violated("a vote of a node that has not replied since the operation began");
}

/* The votes explain the result. Most results need a quorum of them. A lock is lost before its validity ends only because
   a node has not the key. R3, R6, R9, R11 */
static void check_votes(const struct client *c, const struct redlock_lock *lock,
                        struct record *record, int status)
{
    unsigned votes = lock->granted | lock->refused;

    if (record->what == 'e' && status != REDLOCK_LOST && status != REDLOCK_CANCELLED)
        record->votes_us = record->began_us;
    check_voters(c, lock, record);
    if (record->what == 'r')
        votes |= ((1U << c->listed) - 1) & ~record->asked;
    if ((status == REDLOCK_OK && bits(record->what == 'r' ? votes : lock->granted) < quorum) ||
        ((status == REDLOCK_EXPIRED || status == REDLOCK_CONTENDED) && bits(votes) < quorum))
        violated("a result without the votes of a quorum");
    if (record->what != 'r' && status == REDLOCK_LOST && lock->refused == 0 &&
        true_us(c, record->valid_us) > c->here_us)
        violated("a lock is lost before its validity ends, but no node has refused it");
}

/* A client writes to its own nodes only. */
static void check_behind(const struct client *c)
{
    if (memcmp(c->nodes + c->listed, behind[c - clients],
               (node_count - c->listed) * sizeof *c->nodes) != 0)
        violated("the memory behind the nodes of a client has changed");
}

/* A node that owes a reply for stall_ms is disconnected when the client runs the next time. R5 */
static void check_stalls(const struct client *c, uint64_t ran_us)
{
    uint64_t stall_us = stall_ms() * MS;
    unsigned n;

    for (n = 0; n < node_count; n++)
        if (c->link[n] >= 0 && links[c->link[n]].silent_us > 0 &&
            ran_us > links[c->link[n]].silent_us + stall_us + stall_us / 50 + 5 * MS) {
            note("client %d node %u: silent since %.3f ms", number_of(c), n,
                 (double)links[c->link[n]].silent_us / 1000);
            violated("a node that does not reply is still connected");
        }
}

/* ---- Clients -------------------------------------------------------------------------------- */

static void plan(struct client *c, struct record *record, char next, uint32_t in_ms)
{
    record->next = next;
    c->action_us = c->here_us + in_ms * MS;
}

static void acquired(struct client *c, struct redlock_lock *lock, struct record *record)
{
    /* a connection, a handshake and the command; and the other locks in line */
    uint64_t settle_us = (8 + c->lock_count / 2) * longest_round_trip_us() + 10 * MS;

    check_acquisition(c, lock, record);
    record->acquired_us = c->here_us;
    record->to_release = 1;
    record->proven = lock->members;
    record->valid_us = lock->valid_until_us;
    record->extended = lock->extended;
    if (profile == LATE && !in_moves && !faults_ended && roll(3) > 0)
        plan(c, record, roll(2) ? 'r' : 'e', roll(roll(2) ? 3 : 12 * node_timeout_ms));
    if (bits(still_undisturbed(c, record)) == server_count && !blocking) {
        record->check_us = c->here_us + settle_us;
        if (record->check_us < next_check_us)
            next_check_us = record->check_us;
    }
}

/* The operation of the lock has ended. */
static void ended(struct client *c, struct redlock_lock *lock)
{
    struct record *record = &c->records[lock - c->locks];
    int status = (int)lock->status;

    note("client %d lock %d %c: %s", number_of(c), (int)(lock - c->locks), record->what,
         redlock_strerror(status));
    count_outcome(record->what, status);
    check_result(c, lock, record, status);
    check_votes(c, lock, record, status);
    if (record->what == 'a' && status == REDLOCK_OK)
        acquired(c, lock, record);
    else if (record->what == 'e' && status == REDLOCK_OK)
        check_extension(c, lock, record);
    else if (record->what == 'r')
        check_release(lock, record, status);
    record->what = ' ';
}

static void collect(struct client *c)
{
    struct redlock_lock *lock;

    if (lazy && !faults_ended && roll(4) == 0)
        return; /* calls redlock_next_completed later */
    while ((lock = redlock_next_completed(&c->redlock)) != NULL) {
        if (c->records[lock - c->locks].what == ' ')
            violated("an operation is reported twice");
        else
            ended(c, lock);
    }
}

static int start(struct client *c, unsigned i, char what, uint32_t wait_ms);

static void cancel(struct client *c, unsigned i)
{
    struct record *record = &c->records[i];

    if (record->cancelled_us == 0) {
        record->cancelled_us = c->here_us > now_us ? c->here_us : now_us;
        record->unpaused_us = c->paused_us;
    }
    c->timer_us = 0; /* runs at once */
    redlock_cancel(&c->redlock, &c->locks[i]);
}

/* A program that is busy starts an operation that is complete at once, and calls the library again soon. */
static void start_the_next(struct client *c)
{
    unsigned i = c->lock_count - 1;

    if (c->records[i].what == ' ' && c->locks[i].valid_until_us == 0) {
        start(c, i, 'a', 0);
        cancel(c, i);
    }
    c->timer_us = c->here_us + 1 + roll(MS);
}

/* What the event loop of a program does. */
static void client_runs(struct client *c)
{
    uint64_t wait_us, ran_us;
    unsigned n, turns = 0;

    catch_up(c);
    ran_us = c->here_us;
    for (n = 0; n < c->listed; n++) {
        unsigned wanted = redlock_wanted_events(&c->redlock, n);
        if (wanted != 0)
            redlock_handle_events(&c->redlock, n, wanted); /* too many events are harmless */
    }
    do {
        wait_us = redlock_tick(&c->redlock);
        collect(c);
    } while (wait_us == 0 && c->here_us >= c->busy_until_us && ++turns < 200);
    if (turns == 200)
        violated("a loop without end");
    c->timer_us = wait_us == REDLOCK_NEVER ? REDLOCK_NEVER : true_us(c, sim_now(c) + wait_us) + 1;
    for (n = 0; n < c->listed; n++)
        c->interest[n] = (uint8_t)redlock_wanted_events(&c->redlock, n);
    if (c->here_us < c->busy_until_us)
        start_the_next(c);
    for (n = 0; n < c->lock_count; n++) {
        if (c->locks[n].status == REDLOCK_PENDING)
            check_time(c, &c->locks[n], &c->records[n]);
        if (c->records[n].what == 'k' && c->locks[n].valid_until_us != 0)
            check_extension(c, &c->locks[n], &c->records[n]);
    }
    check_holders(c);
    check_requests(c);
    check_behind(c);
    check_stalls(c, ran_us);
}

static uint64_t link_next_us(const struct client *c, unsigned n)
{
    const struct link *link = &links[c->link[n]];

    if (link->full && (c->interest[n] & REDLOCK_READABLE) == 0)
        return REDLOCK_NEVER;
    if (link->in_hole)
        return REDLOCK_NEVER;
    if (c->nodes[n].state == REDLOCK_NODE_CONNECTING)
        return link->up_us > link->stuck_until_us ? link->up_us : link->stuck_until_us;
    if ((c->interest[n] & REDLOCK_WRITABLE) && !link->full && link->to.used < ROOM)
        return c->here_us + 10;
    if (c->here_us < link_back_us(link))
        return link_back_us(link);
    if (link->back.arrived > link->back.first ||
        (!link->served && link->back.part == link->back.parts_used))
        return c->here_us;
    return link->back.next_us;
}

static uint64_t client_next_us(const struct client *c)
{
    uint64_t next = c->timer_us < c->action_us ? c->timer_us : c->action_us;
    unsigned n;

    for (n = 0; n < node_count; n++)
        if (c->link[n] >= 0 && c->interest[n] != 0 && link_next_us(c, n) < next)
            next = link_next_us(c, n);
    return next > c->here_us ? next : c->here_us;
}

static uint32_t draw_ttl(void)
{
    static const unsigned halves[] = {2, 2, 2, 1, 4, 6};
    uint32_t longest = longest_ms / ttl_ms * 2, factor = halves[roll(6)];

    return ttl_ms / 2 * (factor < longest ? factor : longest);
}

static void begin_lock(struct client *c, unsigned i)
{
    static const char keys[2][3] = {"k0", "k1"};
    static char own_keys[LOCKS][2];
    struct redlock_lock *lock = &c->locks[i];
    unsigned key = in_moves ? 0 : profile == LATE || profile == HAND_OFF ? roll(8) == 0 : roll(2);
    unsigned label;

    memset(&c->records[i], 0, sizeof c->records[i]);
    c->records[i].what = ' ';
    own_keys[i][0] = 'b';
    own_keys[i][1] = (char)('0' + i);
    redlock_lock_init(lock, bursts ? own_keys[i] : keys[key], 2,
                      profile == DISTANT  ? ttl_ms
                      : profile == ROUNDS ? longest_ms
                                          : draw_ttl());
    if (roll(4) == 0) {
        set_holder(lock, c->holder, sizeof c->holder);
    }
    label = roll(4) == 0 ? roll(LABELS) : 0;
    set_label(lock, labels[label], strlen(labels[label]));
    if (!REDLOCK_MINIMAL && roll(profile == ANY ? 2 : 4) == 0) {
        set_use_fencing(lock, 1);
    } else if (!REDLOCK_MINIMAL && key == 0 && !bursts && roll(in_moves ? 8 : 3) == 0) {
        set_extra_keys(lock, &second_key, 1);
    }
}

/* Settings that change how operations are repeated, but for `retries`: at the end an acquire must succeed however long
   nodes pause. */
static void draw_settings(struct redlock_settings *settings)
{
    if (roll(2) == 0)
        settings->retry_delay_ms = roll(2) ? REDLOCK_NONE : 1 + roll(50);
    if (roll(2) == 0)
        settings->retry_jitter_pct = roll(2) ? REDLOCK_NONE : 1 + roll(100);
    if (roll(2) == 0)
        settings->retry_growth_pct = roll(2) ? REDLOCK_NONE : 1 + roll(1000);
    if (roll(2) == 0)
        settings->retry_delay_max_ms = 1 + roll(1000);
    if (roll(4) == 0)
        settings->extend_max = 1 + roll(8);
}

/* Sets up a client with the first `listed` nodes. As these are a quorum at least, any two clients have a node in common
   on which both need the lock. */
static void init_client(struct client *c, unsigned listed)
{
    static const char *const addresses[] = {"0", "1", "2", "3", "4", "5", "6"};
    struct redlock_settings settings;
    unsigned i;

    memset(&settings, 0, sizeof settings);
    settings.node_timeout_ms = node_timeout_ms;
    settings.stall_ms = stall_ms();
    settings.longest_ttl_ms = guarded ? longest_ms : 0;
    settings.retry_delay_ms = profile == LATE ? ttl_ms / 3 : 1 + node_timeout_ms;
    settings.quorum = quorum;
    settings.extend_max = profile == DISTANT ? 65535 : 0;
    if (profile == CALLS)
        draw_settings(&settings);
    settings.fair = REDLOCK_FAIR && fair != UNFAIR && (c - clients) % 3 != 2; /* some barge */
    c->listed = listed;
    for (i = 0; i < node_count; i++)
        c->link[i] = -1;
    for (i = 0; i < listed; i++) {
        c->nodes[i].address = addresses[i];
        c->nodes[i].database = database[i];
        c->nodes[i].password = secret[server_of[i]];
    }
    memcpy(behind[c - clients], c->nodes + listed, (node_count - listed) * sizeof *c->nodes);
    if (redlock_init(&c->redlock, &c->io, c->nodes, listed, &settings) != REDLOCK_OK)
        violated("redlock_init fails");
    c->timer_us = REDLOCK_NEVER;
}

static void begin_client(struct client *c)
{
    unsigned i;

    memset(c->nodes, 0, sizeof c->nodes);
    c->lock_count = lock_count;
    init_client(c, node_count);
    for (i = 0; i < c->lock_count; i++)
        begin_lock(c, i);
}

static void end_client(struct client *c)
{
    unsigned i;

    redlock_deinit(&c->redlock);
    for (i = 0; i < node_count; i++)
        if (c->link[i] >= 0)
            violated("a connection is open after redlock_deinit");
}

static enum redlock_status start_it(struct client *c, unsigned i, char what, uint32_t wait_ms)
{
    struct redlock_lock *lock = &c->locks[i];
    unsigned extensions;

    if (c->calling && what == 'a')
        return redlock_acquire(&c->redlock, lock, wait_ms);
    if (c->calling && what == 'e')
        return redlock_extend(&c->redlock, lock);
    if (c->calling)
        return redlock_release(&c->redlock, lock, wait_ms);
    if (what == 'a')
        return redlock_acquire_start(&c->redlock, lock, wait_ms);
    if (what == 'e')
        return redlock_extend_start(&c->redlock, lock);
    if (what == 'r')
        return redlock_release_start(&c->redlock, lock, wait_ms);
    extensions = 1 + roll(6);
    c->records[i].allowed_us = (extensions + 2) * longest_ms * MS;
    return redlock_auto_extend_start(&c->redlock, lock, extensions);
}

static int start(struct client *c, unsigned i, char what, uint32_t wait_ms)
{
    struct redlock_lock *lock = &c->locks[i];
    struct record *record = &c->records[i], before = *record;
    enum redlock_status status;

    if (what == 'k' && REDLOCK_MINIMAL)
        what = 'e';
    record->handed_off = 0;
    if (record->what == 'r') /* maybe complete, but not taken yet */
        check_release(lock, record, (int)lock->status);
    if (what == 'a')
        record->to_release = 0;
    c->timer_us = 0; /* runs at once */
    record->began_us = c->here_us;
    record->paused_us = c->paused_us;
    record->check_us = 0;
    record->wait_ms = wait_ms;
    record->vote_us = longest_timeout_us(c);
    record->cancelled_us = 0;
    record->allowed_us = allowed_us(lock, what, wait_ms);
    memcpy(record->filled, c->filled, sizeof record->filled);
    record->connected = HAS_ROOM && !bursts ? ready_nodes(c) : 0;
    record->asked = lock->priv.attempt.asked;
    record->undisturbed = 0;
    record->undisturbed_us = now_us;
    if (what == 'a' && !guarded && profile != DUPLICATE && is_near(lock))
        record->undisturbed = undisturbed_servers(c, 0);
    else if (what == 'e' || what == 'k')
        expect_extension(c, lock, record, what);
    count(c, &c->starts, 1);
    status = start_it(c, i, what, wait_ms);
    note("client %d lock %u %c starts, ttl %lu ms, wait %lu ms: %s", number_of(c), i, what,
         (unsigned long)lock->ttl_ms, (unsigned long)wait_ms, redlock_strerror((int)status));
    if (status != REDLOCK_PENDING && !c->calling)
        count_outcome(what, (int)status);
    if (what == 'r' || (what == 'a' && status == REDLOCK_PENDING))
        record->votes_us = record->began_us; /* an extension begins with the votes that are there */
    if (what == 'r') {
        check_release(lock, record, (int)status);
        check_voters(c, lock, record);
    }
    record->what = status == REDLOCK_PENDING ? what : ' ';
    if (status == REDLOCK_INVALID_ARGUMENT) {
        violated("a valid operation is refused");
        *record = before;
    }
    return (int)status;
}

static void abandon(struct client *c, unsigned i)
{
    c->records[i].check_us = 0;
    c->records[i].to_release = 0;
    redlock_abandon(&c->redlock, &c->locks[i]);
}

/* A new client with the memory of the old one, and perhaps with fewer or more nodes. Held locks are abandoned or released;
   with other nodes, they are set up anew. Others may be used as they are. */
static void begin_client_again(struct client *c, unsigned listed)
{
    unsigned i, former = c->listed;

    end_client(c);
    init_client(c, listed);
    note("client %d begins again with %u nodes", number_of(c), listed);
    for (i = 0; i < c->lock_count; i++) {
        struct redlock_lock *lock = &c->locks[i];
        if (lock->status == REDLOCK_PENDING)
            violated("a lock is in progress after redlock_deinit");
        c->records[i].what = ' ';
        c->records[i].check_us = 0;
        if (lock->valid_until_us != 0 && listed != former)
            begin_lock(c, i);
        else if (lock->valid_until_us != 0 && !c->records[i].handed_off && roll(2) == 0)
            start(c, i, 'r', roll(200));
        else if (lock->valid_until_us != 0 || c->records[i].handed_off || roll(2))
            abandon(c, i);
    }
}

static unsigned draw_listed(void)
{
    return roll(2) ? node_count : quorum + roll(node_count - quorum + 1);
}

static void expect(int got, int expected, const char *message);

/* The client `to` adopts lock i of `c` as its lock k; `c` then abandons the lock or ends. */
static void hand_off_to(struct client *c, unsigned i, struct client *to, unsigned k)
{
    const struct redlock_lock *from = &c->locks[i];
    struct redlock_lock *lock = &to->locks[k];
    uint64_t until_us = held_until_us(c, from);
    uint32_t left_ms = 0;
    unsigned n, known = 0;

    if (REDLOCK_MINIMAL || c->records[i].what == 'a') /* acquired, but not reported yet */
        return;
    if (to == c || to->blocked || to->here_us > c->here_us || lock->status == REDLOCK_PENDING ||
        lock->valid_until_us != 0 || to->records[k].what != ' ' || bits(from->members) < quorum ||
        from->members >> to->listed != 0 || until_us == 0 ||
        (until_us <= c->here_us && c->here_us > now_us)) /* expires before the hand-off */
        return;
    to->paused_us += c->here_us - to->here_us; /* it waits for a paused client */
    for (n = 0; n < server_count && c->here_us > now_us; n++)
        disturb(to, (int)n, c->here_us);
    to->here_us = c->here_us;
    if (until_us > to->here_us + 2 * MS && roll(profile == ROUNDS ? 4 : 16) != 0)
        left_ms = (uint32_t)((until_us - to->here_us) / MS * 99 / 100);
    if (left_ms > from->ttl_ms)
        left_ms = from->ttl_ms;
    redlock_lock_init(lock, from->key, from->key_size, from->ttl_ms);
    memcpy(lock->token, from->token, sizeof lock->token);
    for (n = 0; n < node_count; n++) {
        lock->generation[n] = roll(8) > 0 ? from->generation[n] : 0; /* not all are told */
        known += lock->generation[n] != 0 && (from->members >> n & 1);
    }
    set_label(lock, from->label, from->label_size);
    set_extra_keys(lock, from->extra_keys, from->extra_key_count);
    set_use_fencing(lock, from->use_fencing);
    set_fencing_token(lock, from->fencing_token);
    lock->members = from->members;
    if (known < quorum && left_ms > 0) {
        expect((int)redlock_adopt(&to->redlock, lock, left_ms), REDLOCK_INVALID_ARGUMENT,
               "a lock is adopted without the generations of a quorum");
        to->records[k].to_release = 0; /* what was there before is forgotten */
        return;
    }
    to->records[k] = c->records[i];
    to->records[k].what = ' ';
    to->records[k].check_us = 0;
    to->records[k].votes_us = to->here_us;
    note("client %d lock %u is handed_off off to client %d lock %u, members %x, %lu ms left",
         number_of(c), i, number_of(to), k, lock->members, (unsigned long)left_ms);
    if (redlock_adopt(&to->redlock, lock, left_ms) != REDLOCK_OK)
        violated("redlock_adopt fails");
    c->records[i].handed_off = 1;
    to->records[k].extended = lock->extended;
    to->records[k].valid_us = lock->valid_until_us;
    handed_seen++;
    stale_clients |= 1U << number_of(to);
    if (roll(2) == 0)
        start(to, k, roll(2) ? 'k' : 'e', 0);
}

static void hand_off(struct client *c, unsigned i)
{
    struct client *to = &clients[roll(client_count)];

    hand_off_to(c, i, to, roll(lock_count));
}

static void hand_off_and_abandon(struct client *c, unsigned i)
{
    hand_off(c, i);
    abandon(c, i);
}

static int is_pending(const struct client *c, unsigned i)
{
    return c->locks[i].status == REDLOCK_PENDING;
}

static void act_on_pending(struct client *c, unsigned i, unsigned what)
{
    if (what < 3)
        start(c, i, 'r', roll(200));
    else if (what == 4 && is_pending(c, i))
        cancel(c, i);
}

static void act_on_held(struct client *c, unsigned i, unsigned what)
{
    struct redlock_lock *lock = &c->locks[i];
    unsigned one_in = profile == HAND_OFF ? 3 : profile == LATE ? 12 : 24;

    if (c->records[i].next != 0) {
        start(c, i, c->records[i].next, roll(300));
        c->records[i].next = 0;
        return;
    }
    if (roll(one_in) == 0) {
        hand_off_and_abandon(c, i);
        return;
    }
    if (profile == LATE && roll(2) == 0)
        what = roll(9);
    if (what < 9 && roll(2) == 0)
        lock->ttl_ms = draw_ttl();
    if (what < 6)
        start(c, i, 'e', 0);
    else if (what < 9)
        start(c, i, 'k', 0);
    else if (what < 15) {
        start(c, i, 'r', roll(2) * roll(300));
    } else {
        abandon(c, i);
    }
}

/* Operations on all locks at once, more than the queues have room for. R6 */
static void burst(struct client *c)
{
    unsigned i;

    for (i = 0; i < c->lock_count; i++)
        if (c->records[i].what == ' ')
            start(c, i, c->locks[i].valid_until_us == 0 ? 'a' : 'r', 0);
}

/* A call that the state of the lock permits. Another one may follow before the operation has done anything. */
static void any_call(struct client *c)
{
    unsigned i = roll(c->lock_count);
    uint32_t wait_ms = roll(2) * roll(4 * ttl_ms);

    if (roll(64) == 0) {
        begin_client_again(c, draw_listed());
    } else if (is_pending(c, i) && roll(2)) {
        note("client %d lock %u is cancelled", number_of(c), i);
        cancel(c, i);
    } else if (c->records[i].what != ' ') {
        start(c, i, 'r', wait_ms);
    } else if (c->locks[i].valid_until_us == 0) {
        start(c, i, "aaarre"[roll(6)], wait_ms);
    } else {
        act_on_held(c, i, roll(16));
    }
    if (roll(2))
        c->action_us = c->here_us + 1 + roll(roll(2) ? MS / 4 : 3 * MS);
    if (roll(16) == 0)
        c->busy_until_us = c->here_us + roll(16 * node_timeout_ms) * MS;
}

/* A random operation. */
static void act(struct client *c)
{
    unsigned i = roll(c->lock_count), what = roll(16);
    struct redlock_lock *lock = &c->locks[i];

    if (profile == CALLS)
        any_call(c);
    else if (bursts && (acquisition_count == 0 || roll(4) == 0))
        burst(c);
    else if (c->records[i].what != ' ') {
        act_on_pending(c, i, what);
    } else if (lock->valid_until_us == 0) {
        if (roll(2) == 0)
            lock->ttl_ms = draw_ttl();
        start(c, i, what < 13 ? 'a' : what < 14 ? 'e' : 'r', roll(2) * roll(4 * ttl_ms));
    } else {
        act_on_held(c, i, what);
    }
}

/* ---- Faults --------------------------------------------------------------------------------- */

/* Mostly used before the client sends something. */
static void stick_one(const struct client *c)
{
    unsigned n = roll(node_count);

    if (c->link[n] >= 0)
        link_sticks(&links[c->link[n]]);
}

static void fault_of_a_client(struct client *c)
{
    unsigned i;

    if (strikes(PAUSE, 12))
        pause_process(c);
    if (strikes(DEATH, 60)) {
        for (i = 0; i < c->lock_count; i++)
            if (c->locks[i].valid_until_us != 0 && roll(2) == 0)
                hand_off(c, i);
        note("client %d ends, another begins", number_of(c));
        if (roll(2) == 0) {
            begin_client_again(c, draw_listed());
        } else {
            end_client(c);
            begin_client(c);
        }
    }
    if (strikes(WALL, 10))
        c->wall_step_us = (int64_t)roll(2000000000) - 1000000000;
    i = roll(server_count);
    if (strikes(HOLE, 10)) {
        set_hole(c, (int)i, !c->hole[i]);
        disturb(c, (int)i, now_us);
    }
    i = roll(node_count);
    if (strikes(STUCK, profile == LATE ? 40 : 6))
        stick_one(c);
    if (c->link[i] >= 0 && strikes(CUT, 6)) {
        note("client %d node %u cut", number_of(c), i);
        link_cut(&links[c->link[i]]);
    }
    if (c->link[i] >= 0 && strikes(FULL, 6)) {
        links[c->link[i]].full ^= 1;
        disturb(c, server_of[i], now_us);
    }
}

/* With few clients often on several servers at once, because one lost key has no effect. */
static void vanish(int server)
{
    unsigned i;

    for (i = 0; i < server_count; i++)
        if ((int)i == server || (profile == LATE && !in_moves && roll(2) == 0)) {
            sweep((int)i, EXPIRING);
            disturb_all((int)i, now_us);
            note("server %u: keys vanish", i);
        }
}

static void fault_of_a_server(int server)
{
    struct machine *m = &machines[server];

    if (m->away_until_us > 0)
        return;
    if (strikes(KEY_LOSS, 12)) {
        crash(server, 1);
    } else if (strikes(CRASH, 12)) {
        crash(server, 0);
    } else if (strikes(HANG, 8)) {
        note("server %d hangs", server);
    } else {
        if (strikes(SLOW, 6)) {
            m->delay_us = roll(2) * roll(2 * node_timeout_ms) * MS;
            if (slowest_us < 2 * m->delay_us)
                slowest_us = 2 * m->delay_us;
            disturb_all(server, now_us + 2 * m->delay_us);
        }
        m->bad_reply |= has(BAD_REPLY) && roll(6) == 0;
        if (strikes(OLD, 12)) {
            m->mini.native = (int)roll(8);
            swapped = 1;
        }
        if (strikes(VANISH, 6))
            vanish(server);
        if (strikes(JUMP, 10)) {
            m->step_us += (int64_t)roll(4 * ttl_ms) * 1000 - (int64_t)ttl_ms * 2000;
            disturb_all(server, now_us);
        }
        return;
    }
    m->away_until_us = now_us + 1 + roll(3 * ttl_ms) * MS;
    disturb_all(server, m->away_until_us);
}

/* Ends all faults. */
static void end_faults(void)
{
    unsigned i, n;

    faults_ended = 1;
    for (i = 0; i < server_count; i++) {
        if (machines[i].away_until_us > 0)
            machines[i].away_until_us = now_us + 1;
        machines[i].delay_us = 0;
        machines[i].bad_reply = 0;
        machines[i].falls_us = 0;
    }
    for (i = 0; i < client_count; i++) {
        clients[i].action_us = REDLOCK_NEVER;
        for (n = 0; n < server_count; n++)
            set_hole(&clients[i], (int)n, 0);
    }
    for (i = 0; i < LINKS; i++) {
        links[i].full = 0;
        if (links[i].stuck_until_us > now_us)
            links[i].stuck_until_us = now_us;
        if (links[i].mute_until_us > now_us)
            links[i].mute_until_us = now_us;
        if (links[i].deaf_until_us > now_us)
            links[i].deaf_until_us = now_us;
    }
    for (i = 0; i < server_count; i++)
        for (n = 0; n < client_count; n++)
            clients[n].disturbed_us[i] = now_us + 1;
    note("all faults end");
}

/* ---- A run ---------------------------------------------------------------------------------- */

/* Runs the next event before `end_us`; 0: there is none. */
static int step(uint64_t end_us)
{
    uint64_t next = end_us;
    int i, which = -1;

    if (now_us >= next_check_us)
        check_all_everywhere();
    for (i = 0; i < (int)server_count; i++) {
        if (stale_servers >> i & 1)
            next_us[0][i] = server_next_us(i);
        if (next_us[0][i] < next) {
            next = next_us[0][i];
            which = i;
        }
    }
    for (i = 0; i < (int)client_count; i++) {
        if (stale_clients >> i & 1)
            next_us[1][i] = client_next_us(&clients[i]);
        if (next_us[1][i] < next && !clients[i].blocked) {
            next = next_us[1][i];
            which = SERVERS + i;
        }
    }
    stale_servers = stale_clients = 0;
    if (next > now_us)
        now_us = next;
    if (which < 0)
        return 0;
    if (which < SERVERS) {
        if (!faults_ended && !in_moves && roll(profile == ANY ? 100 : 40) == 0)
            fault_of_a_server(which);
        server_runs(which);
        stale_servers |= 1U << which;
    } else {
        struct client *c = &clients[which - SERVERS];
        if (c->action_us <= now_us) {
            catch_up(c);
            c->action_us =
                now_us + 1 + roll(ttl_ms) * MS / (profile == LATE ? 1 + roll(2) * 15 : 2);
            act(c);
            if (profile == LATE && strikes(STUCK, 3))
                stick_one(c);
        }
        client_runs(c);
        stale_clients |= 1U << (which - SERVERS);
        if (!faults_ended && roll(in_moves ? 200 : profile == ANY ? 40 : 15) == 0) {
            fault_of_a_client(c);
            stale_servers = stale_clients = ~0U;
        }
    }
    return 1;
}

/* Runs one event of another host, unless a connection of the client is ready, or its time is up: then 0. */
static int is_blocked_until(struct client *c, uint64_t until_us, uint8_t *events)
{
    uint64_t next = until_us;
    unsigned n, ready = 0;

    for (n = 0; n < c->listed; n++) {
        uint64_t at_us =
            c->link[n] >= 0 && c->interest[n] != 0 ? link_next_us(c, n) : REDLOCK_NEVER;
        ready |= (unsigned)(at_us <= c->here_us) << n;
        if (at_us < next)
            next = at_us;
    }
    for (n = 0; n < c->listed; n++)
        events[n] = ready >> n & 1 ? c->interest[n] : 0;
    if (ready != 0 || c->here_us >= until_us || broken != NULL)
        return 0;
    c->blocked = 1;
    stale_servers = stale_clients = ~0U;
    step(next);
    c->blocked = 0;
    return 1;
}

static void pass(uint64_t us)
{
    uint64_t end_us = now_us + us;
    unsigned steps = 0;

    stale_servers = stale_clients = ~0U;
    while (step(end_us) && broken == NULL)
        if (++steps > 300000)
            violated("events without end");
}

/* One operation of a client after all faults have ended. Its status. */
static int at_once(struct client *c, unsigned i, char what, uint32_t wait_ms)
{
    unsigned steps = 0;
    int status;

    catch_up(c);
    c->locks[i].ttl_ms = longest_ms; /* enough time for the farthest server */
    status = start(c, i, what, wait_ms);
    if (status != REDLOCK_PENDING)
        return status;
    client_runs(c);
    stale_servers = stale_clients = ~0U;
    while (c->locks[i].status == REDLOCK_PENDING && broken == NULL && ++steps < 100000)
        step(REDLOCK_NEVER - 1);
    return (int)c->locks[i].status;
}

static void expect(int got, int expected, const char *message)
{
    if (got != expected)
        violated(message);
}

static unsigned keys_left(void)
{
    unsigned n, left = 0;

    for (n = 0; n < server_count; n++)
        left += mini_keys_left(&at_its_time((int)n)->mini);
    return left;
}

/* Whether the lock is still held: an attempt of the other client may take longer than the ttl. */
static int is_valid(const struct client *c, unsigned k)
{
    return redlock_remaining_ms(&c->redlock, &c->locks[k]) > longest_round_trip_us() / 1000;
}

/* One lock of each client, one client after the other. */
static void check_without_faults(void)
{
    /* a server may have lost its native release after the last one: then the key expires with its ttl */
    uint64_t released_us =
        swapped ? (2 * longest_ms + 100) * MS : 20 * MS + 4 * longest_round_trip_us();
    unsigned i;

    for (i = 0; i < client_count && broken == NULL; i++) {
        struct client *c = &clients[i], *other = &clients[(i + 1) % client_count];
        unsigned k = roll(lock_count);
        /* guarded: a server without INFO votes only longest_ttl_ms after it was connected */
        expect(at_once(c, k, 'a', guarded ? 5000 + 2 * longest_ms : 5000), REDLOCK_OK,
               "a lock cannot be acquired");
        expect(at_once(c, k, 'e', 0), REDLOCK_OK, "an extension fails without a reason");
        if (other != c && share_a_key(&c->locks[k], &other->locks[0])) {
            int got = at_once(other, 0, 'a', 0);
            /* other results are possible when nodes of this client or of the holder are in the reconnect
               backoff, or when one server is listed with two databases */
            if (is_valid(c, k) && got != REDLOCK_HELD && got != REDLOCK_UNREACHABLE &&
                (got != REDLOCK_CONTENDED ||
                 (server_count == node_count &&
                  bits(servers_that_have(&c->locks[k])) == server_count)))
                violated("a held lock is not reported as held");
            if (got == REDLOCK_OK)
                at_once(other, 0, 'r', 5000);
        }
        if (is_valid(c, k))
            expect(at_once(c, k, 'r', 5000), REDLOCK_OK, "a release fails without a reason");
        else
            at_once(c, k, 'r', 5000);
        pass(released_us);
        expect(at_once(c, k, 'a', 0), REDLOCK_OK, "a free lock is refused");
        expect(at_once(c, k, 'r', 5000), REDLOCK_OK, "a release fails without a reason");
        expect(at_once(c, k, 'r', 5000), REDLOCK_EXPIRED,
               "a release of a lock that is not held does not report EXPIRED");
        pass(released_us);
    }
    if (keys_left() > 0)
        violated("a key is left");
}

/* Clients that have only the first few nodes get all of them. */
static void list_all_nodes(void)
{
    unsigned i;

    for (i = 0; i < client_count; i++)
        if (clients[i].listed < node_count)
            begin_client_again(&clients[i], node_count);
}

/* As many servers crash or hang as the quorum permits. The first attempt must succeed with the others. */
static void check_majority(void)
{
    unsigned i, first = roll(server_count);

    for (i = 0; i < client_count * FEW && broken == NULL && guarded; i++)
        if (i % FEW < lock_count && clients[i / FEW].locks[i % FEW].use_fencing) {
            at_once(&clients[i / FEW], i % FEW, 'a',
                    5000); /* sets the markers on all servers. R18 */
            at_once(&clients[i / FEW], i % FEW, 'r', 5000);
        }
    pass((2 * longest_ms + 4000) * MS); /* connections stay up until all servers may vote. R14 */
    for (i = 0; i < server_count - quorum; i++) {
        int server = (int)((first + i) % server_count);
        if (roll(2))
            crash(server, 1);
        machines[server].away_until_us = REDLOCK_NEVER;
    }
    for (i = 0; i < client_count && broken == NULL; i++) {
        unsigned k = roll(lock_count);
        expect(at_once(&clients[i], k, 'a', 0), REDLOCK_OK, "a majority does not grant a lock");
        expect(at_once(&clients[i], k, 'e', 0), REDLOCK_OK, "a majority does not extend a lock");
        expect(at_once(&clients[i], k, 'r', 5000), REDLOCK_OK,
               "a majority does not release a lock");
        pass(20 * MS);
    }
}

/* An operation of profile LATE. Client 0 holds the lock for long, and its commands are delayed; the others
   hold it for a moment. */
static void operate(struct client *c, unsigned k)
{
    int holder = c == clients;

    catch_up(c);
    if (holder && has(STUCK) && roll(4) > (c->locks[k].valid_until_us != 0 ? 2 : 0))
        stick_one(c);
    if (c->records[k].what != ' ') {
        if (roll(8) == 0)
            start(c, k, 'r', roll(100));
    } else if (c->locks[k].valid_until_us == 0) {
        start(c, k, 'a', roll(2) * roll(ttl_ms));
    } else if (roll(16) == 0) {
        hand_off_and_abandon(c, k);
    } else {
        if (roll(2) == 0)
            c->locks[k].ttl_ms = draw_ttl();
        start(c, k, (holder ? "eeeeeekr" : "errrrrrr")[roll(8)], roll(2) * roll(50));
    }
}

static void old_bytes_arrive(unsigned one_in)
{
    unsigned i;

    for (i = 0; i < LINKS; i++)
        if (links[i].served && !links[i].open && roll(one_in) == 0)
            links[i].stuck_until_us = links[i].mute_until_us = now_us;
    stale_servers = ~0U;
}

/* A client that holds a lock, by its own knowledge; else client 0. */
static struct client *holder(unsigned *k)
{
    unsigned i;

    for (i = 0; i < client_count; i++)
        for (*k = 0; *k < lock_count; ++*k)
            if (clients[i].locks[*k].valid_until_us != 0)
                return &clients[i];
    *k = 0;
    return clients;
}

static int extend_if_held(struct client *c, unsigned k)
{
    if (c->records[k].what != ' ' || c->locks[k].valid_until_us == 0)
        return 0;
    catch_up(c);
    start(c, k, 'e', 0);
    return 1;
}

/* The pauses are long enough for reconnects and repairs. */
static void holder_extends_often(void)
{
    unsigned i, k;

    for (i = 0; i < 4 && broken == NULL; i++) {
        struct client *c = holder(&k);
        extend_if_held(c, k);
        pass(roll(2) ? 2 * MS : (4 * node_timeout_ms + roll(100)) * MS);
    }
}

/* The worst order: keys are lost on all servers but `stays`, another client holds the lock for a moment,
   delayed commands run, and the holder extends. */
static void another_has_it(int stays)
{
    unsigned k, held;
    struct client *c = holder(&held), *other = &clients[roll(client_count)];
    int i;

    if (other == c)
        other = &clients[((unsigned)(c - clients) + 1) % client_count];
    k = roll(lock_count);

    for (i = 0; i < (int)server_count && has(VANISH); i++)
        if (i != stays)
            vanish(i);
    if (other->records[k].what == ' ' && other->locks[k].valid_until_us == 0) {
        catch_up(other);
        start(other, k, 'a', 0);
        pass(roll(2) * longest_round_trip_us() + roll(4) * MS);
    }
    if (other->records[k].what == ' ' && other->locks[k].valid_until_us != 0) {
        catch_up(other);
        start(other, k, 'r', 0);
        pass(roll(2) * longest_round_trip_us() + roll(4) * MS);
    }
    old_bytes_arrive(1 + roll(3));
    pass(roll(2) * MS);
    if (roll(4) == 0 || !extend_if_held(c, held))
        operate(&clients[0], 0);
}

/* An administrator takes the permission for INFO, or gives it. With a server that is listed twice it stays: without a run_id the
   two addresses look like two servers. */
static void change_permission(struct machine *m)
{
    if (has(OLD) && twin < 0 && roll(3) == 0)
        m->mini.no_info = !m->mini.no_info;
}

static void restart(int server)
{
    if (machines[server].away_until_us > 0)
        return;
    change_permission(&machines[server]);
    crash(server, has(KEY_LOSS));
    machines[server].away_until_us = now_us + 1 + roll(roll(2) * 4 * node_timeout_ms) * MS;
    disturb_all(server, machines[server].away_until_us);
}

/* A server loses the key, and its repair is delayed for long, or never runs because the server restarts. This
   may happen several times. Meanwhile the holder goes on extending, and at the end another client holds the
   lock. */
static void repairs_are_late(void)
{
    unsigned k, n = roll(node_count), times = 1 + roll(3);
    int server = server_of[n], restarts = (int)roll(2);

    while (has(VANISH) && times-- > 0 && broken == NULL) {
        struct client *c = holder(&k);

        if (machines[server].away_until_us == 0)
            vanish(server);
        aimed = server;
        extend_if_held(c, k);
        pass(2 * longest_round_trip_us() + 1 * MS);
        if (roll(2) == 0)
            extend_if_held(c, k);
        pass((4 * node_timeout_ms + roll(60)) * MS);
        if (restarts && times > 0)
            restart(server);
        if (roll(2) == 0)
            holder_extends_often();
    }
    aimed = -1;
    if (!has(VANISH))
        return;
    holder_extends_often();
    if (roll(4) > 0)
        another_has_it((int)(((unsigned)server + 1 + roll(server_count - 1)) % server_count));
}

/* A hand-off with commands under way, which may run after those of the new holder. */
static void holder_hands_off(void)
{
    unsigned k;
    struct client *c = holder(&k);

    if (c->records[k].what == ' ' && c->locks[k].valid_until_us == 0) {
        stick_one(c);
        catch_up(c);
        start(c, k, 'a', 0);
        pass(longest_round_trip_us() + roll(3) * MS);
    }
    if (c->records[k].what == ' ' && c->locks[k].valid_until_us != 0) {
        catch_up(c);
        hand_off_and_abandon(c, k);
    }
    pass(roll(3) * MS);
    holder_extends_often();
    if (roll(2) == 0)
        another_has_it((int)roll(server_count));
}

static void extend_for(struct client *c, unsigned k, uint32_t ms)
{
    if (c->records[k].what == ' ') /* the lock is not in use by the library */
        c->locks[k].ttl_ms = ms;
    extend_if_held(c, k);
    pass(3 * longest_round_trip_us() + 1 * MS);
}

/* The holder extends with a long ttl, then with a shorter one after a server has lost the key. So this server
   has the key for the shorter time only. Auto-extension must extend it there in time, because another server
   hangs. R10 */
static void holder_auto_extends_a_shorter_ttl(void)
{
    unsigned k, stops;
    struct client *c = holder(&k);
    int server = (int)roll(server_count);

    extend_for(c, k, longest_ms);
    vanish(server);
    extend_for(c, k, ttl_ms / 2);
    pass((5 * node_timeout_ms + 1) * MS);
    extend_for(c, k, ttl_ms / 2);
    if (c->records[k].what != ' ' || c->locks[k].valid_until_us == 0)
        return;
    catch_up(c);
    start(c, k, 'k', 0);
    pass(longest_round_trip_us());
    stops = ((unsigned)server + 1 + roll(server_count - 1)) % server_count;
    if (machines[stops].away_until_us == 0) {
        machines[stops].away_until_us = now_us + longest_ms * MS;
        disturb_all((int)stops, machines[stops].away_until_us);
        stale_servers = ~0U;
        note("server %u hangs", stops);
    }
    pass(longest_ms * MS);
}

/* A client that adopts a lock connects a server, which restarts before the reply to the handshake arrives, and may
   be sent a command by the former holder. R9 */
static void is_adopted_while_a_server_restarts(void)
{
    unsigned k, n = roll(node_count), times = 1 + roll(4);
    struct client *c = holder(&k), *to = &clients[((unsigned)(c - clients) + 1) % client_count];
    int server = server_of[n];

    if (to->link[n] >= 0)
        link_cut(&links[to->link[n]]);
    catch_up(to);
    if (to->records[0].what == ' ' && to->locks[0].valid_until_us == 0)
        start(to, 0, 'a', 0);
    falling = server;
    pass(4 * round_trip_us(&machines[server]));
    falling = -1;
    cancel(to, 0);
    client_runs(to);
    if (has(VANISH) && machines[server].away_until_us == 0)
        vanish(server);
    pass(roll(8) * MS);
    aimed = server;
    while (times-- > 0) {
        extend_if_held(c, k);
        pass(4 * longest_round_trip_us() + roll(2) * roll(node_timeout_ms) * MS);
    }
    aimed = -1;
    if (c->records[k].what == ' ' && c->locks[k].valid_until_us != 0) {
        catch_up(c);
        hand_off_to(c, k, to, 0);
        abandon(c, k);
    }
    holder_extends_often();
}

/* One move of profile CALLS. */
static void call_move(void)
{
    unsigned what = roll(16);
    struct client *c = &clients[roll(client_count)];

    catch_up(c);
    if (what < 8)
        any_call(c);
    else if (what < 11)
        is_adopted_while_a_server_restarts();
    else if (what < 13)
        stick_one(c);
    else if (what < 14)
        restart((int)roll(server_count));
    else
        holder_extends_often();
}

static void strike(unsigned what)
{
    change_permission(&machines[roll(server_count)]);
    if (what < 1)
        old_bytes_arrive(1 + roll(3));
    else if (what < 2 && has(VANISH))
        vanish((int)roll(server_count));
    else if (what < 4)
        another_has_it((int)roll(server_count));
    else if (what < 6)
        holder_extends_often();
    else if (what == 6)
        holder_hands_off();
    else if (what == 7 && (has(CRASH) || has(KEY_LOSS)))
        restart((int)roll(server_count));
    else if (what == 8)
        repairs_are_late();
    else if (has(VANISH) && roll(2) == 0)
        holder_auto_extends_a_shorter_ttl();
}

/* ---- Profile ROUNDS: what replies to extensions prove. R8, R9 ------------------------------- */

/* Commands or replies of some connections of the client are late, for a part of a round, for some rounds, or until the connection
   is closed; or a connection breaks. */
static void delay_some(struct client *c)
{
    unsigned n;

    for (n = 0; n < c->listed; n++) {
        unsigned what = roll(8);
        uint64_t until_us =
            now_us + 1 + roll(roll(3) > 0 ? node_timeout_ms : 8 * node_timeout_ms) * MS;
        struct link *link = c->link[n] >= 0 ? &links[c->link[n]] : NULL;

        if (link == NULL || what > 4)
            continue;
        disturb(c, link->server, until_us);
        if (what < 2)
            link->deaf_until_us = until_us;
        else if (what < 4)
            link->mute_until_us = until_us;
        else
            link_cut(link);
        note("client %d server %d: %s until %.3f ms", number_of(c), link->server,
             what < 2   ? "deaf"
             : what < 4 ? "mute"
                        : "cut",
             (double)until_us / 1000);
    }
    stale_servers = stale_clients = ~0U;
}

/* What is under way arrives, also on connections that were closed. */
static void all_arrive(unsigned one_in)
{
    unsigned i;

    for (i = 0; i < LINKS; i++)
        if (links[i].served && roll(one_in) == 0)
            links[i].stuck_until_us = links[i].mute_until_us = links[i].deaf_until_us = now_us;
    stale_servers = stale_clients = ~0U;
}

/* The server loses the keys of this lock, if it is held. An attempt would not notice that its key is lost: so no other key is. */
static void lose(int server, const struct redlock_lock *lock)
{
    struct machine *m = at_its_time(server);
    char token[80];
    unsigned i, size = put_token(lock, token);

    for (i = 0; i < m->mini.used && lock->valid_until_us != 0; i++) {
        struct mini_key *key = &m->mini.keys[i];
        if (key->name.size > 0 && key->value_size == size &&
            is_same_token(key->value, token, size)) {
            notify(NULL, server, name_of(&key->name));
            key->name.size = 0;
        }
    }
    faults_seen[VANISH]++;
    disturb_all(server, now_us);
    note("server %d loses the key", server);
}

/* Another client has the lock for a moment. It is not disturbed. */
static void another_has_the_rest(const struct client *c, int stays, const struct redlock_lock *lock)
{
    struct client *other =
        &clients[((unsigned)(c - clients) + 1 + roll(client_count - 1)) % client_count];
    int i;

    for (i = 0; i < (int)server_count; i++)
        if (i != stays && roll(8) > 0)
            lose(i, lock);
    if (other->records[0].what != ' ' || other->locks[0].valid_until_us != 0)
        return;
    catch_up(other);
    start(other, 0, 'a', 0);
    pass(longest_round_trip_us() + roll(2) * MS);
    catch_up(other);
    if (roll(8) > 0)
        start(other, 0, 'r', 0);
    pass(longest_round_trip_us());
}

/* Lock k of `c`, or the lock to which it is handed over now. */
static struct client *next_holder(struct client *c, unsigned *k)
{
    if (roll(4) == 0 && c->records[*k].what == ' ' && c->locks[*k].valid_until_us != 0) {
        catch_up(c);
        hand_off_and_abandon(c, *k);
    }
    return holder(k);
}

/* A repair may be under way. While a round is under way other servers lose the key, another client has the lock, and what was late arrives.
   Then the holder goes on. */
static void another_has_it_in_a_round(void)
{
    unsigned k;
    struct client *c = holder(&k);
    int stays = (int)roll(server_count),
        repaired = (int)(((unsigned)stays + 1 + roll(server_count - 1)) % server_count);

    c->locks[k].ttl_ms = c->records[k].what == ' ' ? longest_ms : c->locks[k].ttl_ms;
    if (roll(4) > 0 && c->records[k].what == ' ') {
        lose(repaired, &c->locks[k]);
        aimed = repaired;
        extend_if_held(c, k);
        pass(2 * longest_round_trip_us() + 1 * MS);
        if (roll(3) == 0) { /* until it is repaired on another connection */
            pass((5 * node_timeout_ms + roll(60)) * MS);
            holder_extends_often();
        }
        aimed = -1;
    }
    c = next_holder(c, &k);
    delay_some(c);
    extend_if_held(c, k);
    pass(roll(2) * longest_round_trip_us() + roll(2) * MS);
    another_has_the_rest(c, stays, &c->locks[k]);
    all_arrive(1 + roll(3));
    pass(roll(2) * longest_round_trip_us() + roll(2) * MS);
    c = next_holder(c, &k);
    if (roll(2) == 0)
        delay_some(c);
    extend_if_held(c, k);
    pass(roll(2) * (node_timeout_ms + roll(4)) * MS);
    all_arrive(1 + roll(3));
    holder_extends_often();
}

/* A server that has lost the key grants the lock to another client, restarts empty, and is repaired, before that client knows: its connection
   is silent. Then the other servers lose the key, and grant the lock to that client, which holds it. R14 */
static void a_grant_is_forgotten(struct client *c, unsigned k)
{
    struct client *other =
        &clients[((unsigned)(c - clients) + 1 + roll(client_count - 1)) % client_count];
    unsigned n, times;
    int stays = (int)roll(server_count),
        forgets = (int)(((unsigned)stays + 1 + roll(server_count - 1)) % server_count);

    if (other->records[0].what != ' ' || other->locks[0].valid_until_us != 0 ||
        machines[forgets].away_until_us > 0)
        return;
    lose(forgets, &c->locks[k]);
    for (n = 0; n < node_count; n++)
        if (other->link[n] >= 0 && server_of[n] != forgets && server_of[n] != stays)
            links[other->link[n]].mute_until_us = now_us + 2 * SECOND;
    catch_up(other);
    start(other, 0, 'a', 0);
    pass(longest_round_trip_us() + 100);
    for (n = 0; n < node_count; n++)
        if (other->link[n] >= 0 && server_of[n] == forgets)
            links[other->link[n]].deaf_until_us = now_us + 2 * SECOND;
    crash(forgets, 1);
    machines[forgets].away_until_us = now_us + 1;
    for (times = 2 + roll(4); times > 0; times--) {
        extend_if_held(c, k);
        pass(2 * longest_round_trip_us());
    }
    for (n = 0; n < server_count; n++)
        if ((int)n != stays && (int)n != forgets)
            lose((int)n, &c->locks[k]);
    for (n = 0; n < LINKS; n++)
        links[n].mute_until_us = now_us;
    stale_servers = stale_clients = ~0U;
    pass(2 * longest_round_trip_us());
    holder_extends_often();
    all_arrive(1);
    pass((2 * longest_ms + 4000) * MS); /* until all servers may vote */
}

/* One move of profile ROUNDS. */
static void rounds_move(void)
{
    unsigned k, what = roll(16);
    struct client *c = holder(&k);

    catch_up(c);
    if (c->locks[k].valid_until_us == 0 && c->records[k].what == ' ') {
        if (roll(2) == 0)
            delay_some(c);
        start(c, k, 'a', roll(2) * roll(ttl_ms));
    } else if (what < 4 && guarded && c->records[k].what == ' ') {
        a_grant_is_forgotten(c, k);
    } else if (what < 8) {
        another_has_it_in_a_round();
    } else if (what < 10) {
        holder_extends_often();
    } else if (what < 11) {
        all_arrive(1 + roll(3));
    } else if (what < 12 && has(KEY_LOSS)) {
        restart((int)roll(server_count));
    } else if (what < 13 && c->records[k].what == ' ') {
        hand_off_and_abandon(c, k);
    } else if (what < 14) {
        operate(&clients[roll(client_count)], 0);
    } else {
        delay_some(c);
        extend_if_held(c, k);
    }
}

/* One move of profile LATE: operations and faults that matter when commands of closed connections run late. */
static void move(void)
{
    unsigned what = profile == CALLS || profile == ROUNDS ? 0 : roll(22);

    if (profile == CALLS)
        call_move();
    else if (profile == ROUNDS)
        rounds_move();
    else if (what < 6)
        operate(&clients[0], 0);
    else if (what < 12)
        operate(&clients[1 + roll(client_count - 1)], roll(lock_count));
    else
        strike(what - 12);
    stale_servers = stale_clients = ~0U;
}

static void many_moves(void)
{
    unsigned i, moves = 60 + roll(60);

    for (i = 0; i < client_count; i++)
        clients[i].action_us = REDLOCK_NEVER;
    for (i = 0; i < moves && broken == NULL; i++) {
        move();
        pass(roll(3) > 0   ? roll(3) * MS
             : roll(3) > 0 ? (5 * node_timeout_ms + roll(20)) * MS
                           : roll(ttl_ms) * MS);
    }
}

/* ---- Profile DISTANT: changing distances, a failing minority, long gaps between calls ------- */

enum {
    FAILS_MAX =
        5, /* extensions that fail after a change: the time limit doubles from 50 to 800 ms */
    CONNECT_FAILS_MAX =
        6, /* the same, for connecting and handshake: 300 ms each, with 100 ms between calls */
    REPAIRS =
        20, /* extensions with healthy servers, after which each has the key and is a member */
    SETTLE_MS = 6000 /* and the time for that: the pause before a reconnect is 2400 ms at most */
};

/* 0.1 to 300 ms for a round trip, as often below as above 5 ms. */
static void draw_distance(struct machine *m)
{
    unsigned times = roll(12);

    m->far_us = (50U << times) + roll(50U << times);
    if (m->far_us > 150 * MS)
        m->far_us = 150 * MS;
}

/* The time to the next call. In half of the runs the client is not served meanwhile. */
static void pass_gap(struct client *c)
{
    uint64_t gap_us = roll(8) == 0 ? 0 : (100 + roll(100)) * MS << roll(7);

    c->blocked = blocking;
    pass(gap_us < 10 * SECOND ? gap_us : 10 * SECOND);
    c->blocked = 0;
    catch_up(c);
}

static int call(struct client *c, char what, uint32_t wait_ms)
{
    int status;

    if (!blocking)
        return at_once(c, 0, what, wait_ms);
    c->calling = 1;
    status = start(c, 0, what, wait_ms);
    c->calling = 0;
    c->records[0].what = what;
    if (what == 'a')
        c->records[0].votes_us = c->records[0].began_us;
    check_time(c, &c->locks[0], &c->records[0]);
    ended(c, &c->locks[0]);
    return status;
}

/* A server may still have the key of an earlier lock whose release did not reach it. */
static int has_an_old_key(unsigned server)
{
    const struct redlock_lock *lock = &clients[0].locks[0];

    return !(servers_that_have(lock) >> server & 1) &&
           mini_find(&at_its_time((int)server)->mini, lock->key, 2) != NULL;
}

static int is_healthy(unsigned server)
{
    return machines[server].away_until_us == 0 && machines[server].no_memory == 0 &&
           !clients[0].hole[server] && !has_an_old_key(server);
}

static unsigned healthy_servers(void)
{
    unsigned i, healthy = 0;

    for (i = 0; i < server_count; i++)
        healthy |= (unsigned)is_healthy(i) << i;
    return healthy;
}

/* Servers close connections that were idle, or a proxy does. */
static void close_connections(int server)
{
    while (machines[server].served_count > 0)
        link_cut(machines[server].served[0]);
}

static void fail_one(void)
{
    unsigned server = roll(server_count);
    struct machine *m = &machines[server];

    if (!is_healthy(server) || bits(healthy_servers()) <= quorum)
        return;
    switch (roll(5)) {
    case 0:
        crash((int)server, 0);
        m->away_until_us = REDLOCK_NEVER;
        break;
    case 1:
        m->away_until_us = REDLOCK_NEVER;
        break;
    case 2:
        set_hole(&clients[0], (int)server, 1);
        break;
    default:
        m->no_memory = 1 + (int)roll(2);
        break;
    }
    note("server %u fails", server);
}

static void heal_all(void)
{
    unsigned i;

    for (i = 0; i < server_count; i++) {
        if (machines[i].away_until_us > 0)
            machines[i].away_until_us = now_us + 1;
        machines[i].no_memory = 0;
        set_hole(&clients[0], (int)i, 0);
    }
    note("all servers heal");
}

/* Whether each server has the key, and is a member; but for those that have
   the key of an earlier lock, because its release did not reach them. */
static int is_whole(const struct client *c)
{
    unsigned i, whole = servers_that_have(&c->locks[0]) & c->locks[0].members;

    for (i = 0; i < server_count; i++)
        whole |= (unsigned)has_an_old_key(i) << i;
    return whole == (1U << server_count) - 1;
}

static void change(struct client *c)
{
    int may_fail = c->locks[0].valid_until_us == 0 || is_whole(c);
    int may_restart = may_fail && bits(healthy_servers()) == server_count;
    unsigned i, what = roll(8), server = roll(server_count);

    for (i = 0; i < server_count; i++)
        disturb_all((int)i, now_us);
    if (what < 2)
        draw_distance(&machines[server]);
    for (i = 0; i < server_count && what == 2; i++)
        draw_distance(&machines[i]);
    for (i = 0; i < server_count && (what == 3 || what == 4); i++)
        if (what == 3 || i == server)
            close_connections((int)i);
    c->closed |= what == 3 || what == 4 || what == 7;
    if ((what == 5 || what == 6) && may_fail)
        fail_one();
    if (what == 7 && may_restart && !REDLOCK_MINIMAL) {
        crash((int)server, 1);
        machines[server].away_until_us = now_us + 1 + roll(50) * MS;
    }
    stale_servers = stale_clients = ~0U;
    note("change %u, server %u", what, server);
}

/* Calls after a change. Few extensions fail: more if connections were closed. At the end of enough calls to healthy servers the lock is whole. */
static void calls_after_a_change(struct client *c, unsigned calls)
{
    uint64_t healthy_us = now_us;
    unsigned i, fails = 0,
                healthy = 0; /* so many calls, since healthy_us, found all servers healthy */
    unsigned most = FAILS_MAX + (c->closed ? CONNECT_FAILS_MAX : 0);

    for (i = 0; i < calls && broken == NULL; i++) {
        int status;
        pass_gap(c);
        healthy = bits(healthy_servers()) == server_count ? healthy + 1 : 0;
        if (healthy == 0)
            healthy_us = now_us;
        if (c->locks[0].valid_until_us == 0) {
            status = call(c, 'a', 5000);
            if (status != REDLOCK_OK &&
                REDLOCK_OWED_MAX > 0) /* else a lost release is not repeated */
                violated("a majority does not grant a lock in time");
            continue;
        }
        status = call(c, 'e', 0);
        if (status == REDLOCK_LOST)
            violated("a lock is lost, although each server keeps the key or is repaired");
        fails += status != REDLOCK_OK;
        c->closed &= status != REDLOCK_OK;
        if (fails > most)
            violated("extensions fail again and again, although a majority is healthy");
    }
    if (!REDLOCK_MINIMAL && broken == NULL && healthy >= REPAIRS &&
        now_us > healthy_us + SETTLE_MS * MS && !is_whole(c)) {
        pass_gap(c);
        note("servers %#x have the key, members %#x", servers_that_have(&c->locks[0]),
             c->locks[0].members);
        violated("a lock is not repaired on all servers");
    }
}

static void far_and_near(void)
{
    struct client *c = &clients[0];
    unsigned i, changes = 6 + roll(8);

    c->action_us = REDLOCK_NEVER;
    for (i = 0; i < server_count; i++)
        draw_distance(&machines[i]);
    for (i = 0; i < changes && broken == NULL; i++) {
        change(c);
        calls_after_a_change(c, roll(8));
        if (roll(3) == 0) {
            heal_all();
            calls_after_a_change(c, REPAIRS + 4);
        }
        if (c->locks[0].valid_until_us != 0 && roll(3) == 0) {
            pass_gap(c);
            call(c, 'r', roll(2) * 1000);
        }
    }
    heal_all();
    for (i = 0; i < server_count; i++)
        machines[i].far_us = 0;
}

static void cancel_all(void)
{
    unsigned i, k;

    for (i = 0; i < client_count; i++)
        for (k = 0; k < lock_count; k++)
            cancel(&clients[i], k);
    for (i = 0; i < client_count; i++)
        client_runs(&clients[i]);
    pass((2 * longest_ms + 40 * (uint64_t)node_timeout_ms) * MS);
    for (i = 0; i < client_count; i++)
        for (k = 0; k < lock_count; k++) {
            if (clients[i].locks[k].status == REDLOCK_PENDING)
                violated("an operation does not end after all faults have ended");
            abandon(&clients[i], k);
        }
}

/* The faults of a run; `beyond`: also those beyond the assumptions. */
static unsigned draw_faults(int beyond)
{
    unsigned faults = ((roll(1 << VANISH) | (roll(2) == 0 ? 1U << RATES : 0)) & roll(1 << VANISH)) |
                      (roll(3) == 0 ? 1U << roll(VANISH) : 0);

    if (profile == LATE || profile == HAND_OFF)
        faults = 1U << STUCK | (roll(1 << VANISH) & roll(1 << VANISH) &
                                (1U << CRASH | 1U << CUT | 1U << HOLE | 1U << HANG | 1U << PAUSE |
                                 1U << DEATH | 1U << OLD | 1U << RATES));
    else if (profile == DUPLICATE)
        faults = 1U << CUT | roll(2) << CRASH |
                 (faults & (1U << CRASH | 1U << SLOW | 1U << STUCK | 1U << DRIP));
    else if (profile == HEALTHY || profile == DISTANT)
        faults = roll(2) << RATES;
    else if (profile == CALLS)
        faults = 1U << CRASH | 1U << HANG | (faults & (in_moves ? 1U << STUCK : ~0U));
    if (profile == ROUNDS)
        faults = 1U << STUCK | 1U << VANISH | roll(2) << KEY_LOSS;
    else if (beyond && profile == LATE)
        faults |= 1U << VANISH | roll(2) << KEY_LOSS;
    else if (beyond)
        faults |= (1 + roll(7)) << VANISH;
    return faults;
}

/* The profile, and the values that depend on it. One seed of eight has profile CALLS. */
static void draw_world(uint32_t seed)
{
    unsigned drawn = roll(12);

    profile = seed % 8 == 7                       ? CALLS
              : seed % 8 == 3                     ? DISTANT
              : seed % 8 == 5 && !REDLOCK_MINIMAL ? ROUNDS
              : drawn < 6                         ? ANY
              : drawn < 8                         ? LATE
              : drawn < 10                        ? HEALTHY
              : drawn < 11 || REDLOCK_MINIMAL     ? HAND_OFF
                                                  : DUPLICATE;
    profiles_seen[profile]++;
    fair = seed / 8 % 8 == 2 ? FAIR : seed / 8 % 8 == 5 ? LYING : UNFAIR; /* with each profile */
    node_count = 1 + roll(SERVERS);
    client_count = 1 + roll(CLIENTS);
    lock_count = FEW;
    node_timeout_ms = 5 + roll(30);
    ttl_ms = 100 + roll(4) * 300 + roll(100);
    if (profile != ANY && node_count > 3 && roll(4) > 0)
        node_count = 3;
    if (profile == LATE || profile == HAND_OFF) {
        if (node_count < 3 && SERVERS >= 3)
            node_count = 3;
        client_count = 2 + roll(2);
        lock_count = 1 + roll(2);
        node_timeout_ms = 5 + roll(10);
    }
    if (profile == ROUNDS) {
        node_count = SERVERS < 3 ? SERVERS : roll(8) == 0 && SERVERS >= 5 ? 5 : 3;
        client_count = 2 + roll(2);
        lock_count = 1;
        node_timeout_ms = 8 + roll(12);
    }
    if (profile == DUPLICATE && node_count < 3 && SERVERS >= 3)
        node_count = 3;
    if (profile == DUPLICATE)
        node_timeout_ms += roll(2) * 50; /* time to connect a rejected node again */
    if (profile == CALLS) {
        client_count = 1 + roll(3);
        lock_count = 1 + roll(FEW);
    }
    blocking = profile == DISTANT && roll(2);
    if (profile == DISTANT) { /* the default time limits */
        node_count = SERVERS < 5 ? SERVERS : 3 + 2 * roll(2);
        client_count = lock_count = 1;
        node_timeout_ms = 50;
        ttl_ms = 120000;
    }
    bursts = profile == HEALTHY && roll(4) == 0;
    if (bursts) {
        client_count = 1;
        lock_count = LOCKS;
    }
    ttl_ms += ttl_ms % 2;
    quorum = node_count / 2 + 1;
    in_moves = profile == CALLS && client_count > 1 && roll(2) == 0;
    if (profile == CALLS && roll(4) == 0)
        quorum += roll(node_count - quorum + 1);
}

/* The server, database and password of each node. */
static void draw_nodes(void)
{
    enum { SIZE = REDLOCK_SEND_MAX < 1000 ? REDLOCK_SEND_MAX : 1000 };
    static char long_secret[SIZE];
    unsigned i, first = roll(node_count), second = roll(node_count);
    int secrets = roll(4) == 0, databases = roll(profile == DUPLICATE ? 2 : 4) == 0;

    server_count = node_count;
    twin = -1;
    for (i = 0; i < node_count; i++) {
        server_of[i] = (int)i;
        database[i] = databases ? roll(3) : 0;
        secret[i] = secrets && roll(2) == 0 ? "one two" : NULL;
    }
    if (secrets && roll(4) == 0) { /* little or no room in the send buffer after HELLO */
        memset(long_secret, 'x', sizeof long_secret);
        long_secret[SIZE - 54 - roll(24)] = '\0';
        secret[first] = long_secret;
    }
    if (profile != DUPLICATE || first >= second)
        return;
    server_count--;
    server_of[second] = twin = server_of[first];
    for (i = second + 1; i < node_count; i++)
        server_of[i]--;
}

/* The random values of a run. */
static void draw(uint32_t seed)
{
    unsigned i;
    int beyond = seed % 4 == 0;

    for (i = 0; i < LINKS; i++) {
        struct link *link = &links[i];
        link->open = link->served = link->in_hole = 0;
        link->to.parts = parts_of[i][0];
        link->to.bytes = bytes_of[i][0];
        link->back.parts = parts_of[i][1];
        link->back.bytes = bytes_of[i][1];
    }
    acquisition_count = 0;
    event = 0;
    broken = NULL;
    faults_ended = swapped = 0;
    aimed = falling = -1;
    digest = 14695981039346656037U;
    now_us = SECOND;
    next_check_us = REDLOCK_NEVER;
    slowest_us = 0;
    dice = seed * 2654435769U + 1;
    for (i = 0; i < 8; i++)
        roll(2);
    entropy = dice;
    draw_world(seed);
    draw_nodes();
    memset(machines, 0, server_count * sizeof *machines);
    memset(clients, 0, client_count * sizeof *clients);
    if (profile == HEALTHY || profile == DISTANT)
        beyond = 0;
    else if (profile == ROUNDS || (profile == LATE && roll(3) == 0) ||
             (profile == CALLS && in_moves && roll(2)))
        beyond = 1;
    on = draw_faults(beyond);
    if (twin >= 0) /* without the run_id of a restart the two addresses look like two servers */
        on &= ~(1U << STUCK | 1U << HOLE);
    lazy = roll(4) == 0;
    in_moves |= profile == ROUNDS || (profile == LATE && roll(4) > 0);
    if (REDLOCK_MINIMAL && !beyond)
        on &= ~(1U << KEY_LOSS); /* this build has no guard against it */
    guarded = !REDLOCK_MINIMAL && (on >> KEY_LOSS & 1) != 0 && !(beyond && roll(2));
    longest_ms = ttl_ms * (profile == DISTANT || (guarded && roll(4) > 0) ? 1 : 3);
}

/* Distances: all the same, or one server is farther away than the others. */
static void draw_distances(void)
{
    unsigned i, far = roll(server_count), most_us = node_timeout_ms * 300;

    for (i = 0; i < server_count; i++)
        machines[i].far_us = 0;
    if (roll(2) == 0)
        machines[far].far_us = roll(most_us);
    for (i = 0; i < server_count && roll(4) == 0; i++)
        machines[i].far_us = roll(most_us / 2);
}

static void set_up(void)
{
    unsigned i;

    for (i = 0; i < server_count; i++) {
        struct machine *m = &machines[i];
        m->base_us = ((uint64_t)1 << 50) + roll(1000000);
        m->ppm = has(RATES) ? (int64_t)roll(9000) - 4500 : 0;
        m->mini.run = 1000 * (i + 1);
        m->mini.old = has(OLD) && roll(3) == 0;
        m->mini.no_pushes = has(OLD) && roll(3) == 0;
        m->mini.no_info = has(OLD) && roll(3) == 0;
        m->mini.no_queue = has(OLD) && roll(3) == 0;
        m->mini.tells_caller = has(OLD);
        m->mini.native = (int)roll(8);
        m->mini.password = secret[i];
        m->started_us = server_us(m) - 1000 * SECOND;
        m->sweep_us = now_us + roll(100) * MS;
        faults_seen[OLD] += (unsigned)(m->mini.old + m->mini.no_pushes + m->mini.no_info);
    }
    if (profile == LATE && roll(3) == 0) { /* one server is down at first */
        machines[0].away_until_us = now_us + roll(20 * longest_ms) * MS;
        disturb_all(0, machines[0].away_until_us);
    }
    draw_distances();
    faults_seen[RATES] += has(RATES) != 0;
    for (i = 0; i < client_count; i++) {
        struct client *c = &clients[i];
        static const struct redlock_io io = {sim_dial, sim_ready, sim_transmit, sim_receive,
                                             sim_shut, sim_now,   sim_entropy,  sim_wait,
                                             NULL,     sim_wall,  NULL,         NULL};
        c->io = io;
        c->io.context = c;
        c->base_us = ((uint64_t)1 << 40) + roll(1000000);
        c->ppm = has(RATES) ? (int64_t)roll(9000) - 4500 : 0;
        c->action_us = now_us + roll(ttl_ms) * MS;
        c->here_us = now_us;
        begin_client(c);
    }
}

static const char *run_seed(uint32_t seed)
{
    unsigned i;

    draw(seed);
    note("seed %lu: profile %d, %u clients, %u nodes on %u servers, ttl %lu ms, node timeout %lu "
         "ms, "
         "faults %x%s",
         (unsigned long)seed, (int)profile, client_count, node_count, server_count,
         (unsigned long)ttl_ms, (unsigned long)node_timeout_ms, on, guarded ? ", guarded" : "");
    set_up();
    if (in_moves)
        many_moves();
    else if (profile == DISTANT)
        far_and_near();
    else
        pass((profile == LATE ? 30U : 8 + roll(8)) * ttl_ms * MS);
    if (broken == NULL) {
        end_faults();
        pass(2 * longest_ms * MS); /* until pauses have ended and nodes are connected */
    }
    if (broken == NULL)
        cancel_all();
    if (broken == NULL)
        list_all_nodes();
    for (i = 0; i < server_count; i++) /* after a jump keys may expire very late */
        if (on >> JUMP & 1)
            sweep((int)i, EXPIRING);
    if (broken == NULL)
        pass((2 * longest_ms + 4000) * MS);
    if (broken == NULL)
        check_without_faults();
    if (broken == NULL)
        check_majority();
    for (i = 0; i < client_count; i++)
        redlock_deinit(&clients[i].redlock);
    for (i = 0; i < LINKS && broken == NULL; i++)
        if (links[i].open)
            violated("a connection is open after redlock_deinit");
    return broken;
}

/* ---- The program ---------------------------------------------------------------------------- */

static void print_table(void)
{
    unsigned i, k;

    printf("# %lu events, %lu acquires, %lu extensions, %lu hand-offs, %lu on all servers\n",
           events_seen, acquires_seen, extensions_seen, handed_seen, everywhere_seen);
    for (i = 0; i < FAULTS; i++)
        printf("# %10lu  %s\n", faults_seen[i], fault_names[i]);
    for (k = 0; k < 4; k++)
        for (i = 0; i < STATUSES; i++)
            if (outcomes[k][i] > 0)
                printf("# %10lu  %s: %s\n", outcomes[k][i], operation_names[k],
                       redlock_strerror(-(int)i));
}

int main(int argc, char **argv)
{
    uint32_t first = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 1, seed;
    uint32_t count = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 200;
    unsigned wrong = 0, kinds = 0, i;

    only = argc > 3 ? argv[3] : "";
    if (argc > 2 && strcmp(argv[2], "trace") == 0) {
        trace_from = 0;
        count = 1;
    }
    for (seed = first; seed < first + count && wrong < 5; seed++) {
        const char *message = run_seed(seed);
        uint64_t same = digest;
        if (message != NULL) {
            ok(0, "seed %lu: %s (sim %lu trace)", (unsigned long)seed, message,
               (unsigned long)seed);
            wrong++;
            if (trace_from > 0) { /* prints the events before the violation */
                trace_from = broken_at < 40 ? 0 : broken_at - 40;
                run_seed(seed);
                trace_from = ULONG_MAX;
            }
        }
        if (seed - first < 20 && trace_from > 0) {
            run_seed(seed);
            if (digest != same)
                ok(0, "seed %lu: a second run of the seed differs", (unsigned long)seed);
        }
    }
    ok(wrong == 0, "%lu runs: no invariant violated", (unsigned long)count);
    print_table();
    for (i = 0; i < FAULTS; i++)
        kinds += faults_seen[i] > 0;
    kinds += REDLOCK_MINIMAL; /* no DEAF */
    ok(count < 1000 || kinds == FAULTS, "with %u of %u kinds of faults", kinds, FAULTS);
    return done_testing();
}
