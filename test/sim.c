/* sim.c - simulated runs in one process: several clients (the real library), several servers
   (mini.h), a clock for each host, and the network between them. One seed decides everything:

       sim FIRST COUNT           one run for each seed; prints each broken promise with its seed
       sim FIRST COUNT PROMISE   the same, but only promises that contain these words end a run
       sim FIRST trace           one run, event by event

   Each run draws a profile and its faults. Profile ANY draws up to 5 clients and 7 servers and all
   kinds of faults. The other profiles are small and aim at one class of defects.

   In three of four runs the faults keep to what the README assumes: clocks of nearly one rate, and no
   key lost before its ttl. Then no two clients hold a lock at once, and each holder has its key on a quorum.
   In the fourth, clocks jump and keys vanish. Then these promises are left: fencing tokens grow; an extension
   that succeeds proves that nobody else had the lock in between; every operation ends.

   While no fault strikes there are more promises: a lock is on all servers soon after its acquire; a lock
   under auto-extension is not lost; no acquire fails.

   At the end all faults end: then every lock can be acquired within its ttl, results are true, and no
   key is left.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "lock_options.h"
#include "mini.h"
#include "redlock.h"
#include "tap.h"

#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum {
    CLIENTS = 5,
    SERVERS = REDLOCK_NODES_MAX < 7 ? REDLOCK_NODES_MAX : 7,
    LOCKS = REDLOCK_PIPELINE_MAX < 16 ? REDLOCK_PIPELINE_MAX + 40
                                      : 40, /* of a client; most runs use three of them */
    FEW = 3,
    SLOTS =
        8, /* connections of a client to a server: open ones, and closed ones with bytes under way */
    SERVER_LINKS = CLIENTS * SLOTS,
    LINKS = SERVERS * SERVER_LINKS,
    ROOM = 6000,
    PARTS = 200,
    WINS = 4000,
    REFUSALS = 128,
    STATUSES = 16
};
#define MS ((uint64_t)1000)
#define SECOND ((uint64_t)1000000)

enum fault {
    HANG, /* a server stops for a while, and goes on with what it was sent */
    CRASH,
    FORGET, /* a crash after which the keys are gone */
    CUT,    /* a connection ends, at any byte */
    HOLE,   /* nothing passes between a client and a server for a while */
    FULL,   /* a connection takes no bytes for a while */
    SLOW,
    NONSENSE,
    PAUSE, /* a client's process stops, between two calls or in one */
    DEATH, /* and is gone, with all that it held */
    STUCK, /* one connection moves no bytes for a while, which may be long after it was closed */
    DRIP,  /* bytes come one by one */
    DEAF,  /* pushes come late or never */
    RATES, /* clocks run at different rates */
    OLD, /* servers without HELLO, pushes, INFO, or whose own commands for a release come and go */
    FLUSH,  /* all keys of a server are gone, its connections and its age are not */
    VANISH, /* keys are gone before their time; from here on: beyond what is assumed */
    JUMP,   /* clocks of servers */
    WALL,   /* wall clocks of clients */
    FAULTS
};

static const char *const fault_names[FAULTS] = {
    "servers hung",        "servers crashed",      "servers forgot",    "connections cut",
    "partitions",          "full connections",     "slow servers",      "nonsense said",
    "clients paused",      "clients died",         "connections stuck", "bytes that drip",
    "pushes lost or late", "clocks' rates",        "old servers",       "servers flushed",
    "keys vanished",       "server clocks jumped", "wall clocks jumped"};

/* What a run aims at. */
enum profile {
    ANY,
    LATE,    /* commands of closed connections that run late; few clients, one key */
    HEALTHY, /* no fault: servers at different distances, new clients, many locks at once */
    HANDED,  /* locks that one client hands over to another */
    TWICE,   /* one server stands in the list twice */
    PROFILES
};

/* ---- What there is -------------------------------------------------------------------------- */

struct part {
    unsigned size;
    uint64_t at_us;
};

/* Bytes under way in one direction, in parts that arrive one after the other. */
struct flow {
    uint64_t next_us;              /* the next part arrives */
    uint64_t last_us;              /* and the last: nothing overtakes */
    unsigned first, arrived, used; /* bytes[first..arrived) are there, [arrived..used) under way */
    unsigned part, parts_used;
    struct part *parts; /* PARTS of them */
    char *bytes;        /* ROOM of them */
};

/* What is looked at often stands close together. */
struct link {
    struct flow to;
    uint64_t stuck_until_us; /* no byte arrives before */
    uint64_t mute_until_us;  /* nor at the server before */
    int client, server;
    int in_hole; /* nothing passes between these two */
    int open;    /* the client has it */
    int served;  /* the server has it */
    int full;
    struct flow back;
    int refused;       /* nobody was there */
    unsigned node;     /* of the client's list */
    unsigned position; /* in `served` of the server */
    uint64_t up_us;
    struct mini_session session;
};

struct machine {
    struct mini_server mini;
    struct mini_key disk[MINI_KEYS]; /* its keys, as they were when it last wrote them there */
    int64_t ppm, step_us;
    uint64_t base_us, started_us; /* on its clock */
    uint64_t sweep_us;            /* when it next looks for expired keys */
    uint64_t away_until_us;       /* hung, or down; 0: neither */
    uint64_t falls_us;            /* it restarts then; 0: that is not decided */
    uint64_t delay_us;
    uint64_t far_us; /* one way, always */
    int down, nonsense;
    char refused[REFUSALS][16]; /* beginnings of the tokens that it refused last */
    unsigned refusals;
    struct link *served[SERVER_LINKS]; /* its connections */
    unsigned served_count;
};

/* One lock of a client and what the simulator knows of it. */
struct wish {
    uint64_t began_us;   /* the operation in progress, true time */
    uint64_t allowed_us; /* for it, but for pauses */
    uint32_t wait_ms;    /* that it was given */
    uint64_t paused_us;  /* of the client, by then */
    uint64_t won_us;     /* the lock was got then, also if by another client */
    uint64_t valid_us;   /* what it said last */
    uint64_t check_us;   /* it must be on all servers then; 0: that is not checked */
    uint64_t well_us;    /* since then, at the latest, these servers have not been upset: */
    unsigned well;
    unsigned filled[SERVERS]; /* what that of the client was when it began */
    uint16_t extended;        /* how often, as far as that was checked */
    redlock_mask sworn;       /* nodes that prove without a clock that nobody else had it */
    uint8_t handed;           /* over to another client */
    char next; /* what the client does with it next, if that was decided before; else 0 */
    char what; /* 'a'cquire, 'e'xtend, 'r'elease, 'k'eep; ' ': nothing */
};

struct client {
    struct redlock_client redlock;
    struct redlock_node nodes[SERVERS];
    struct redlock_lock locks[LOCKS];
    struct wish wishes[LOCKS];
    char holder[8];
    struct redlock_io io;
    int64_t ppm, wall_step_us;
    uint64_t base_us;
    uint64_t here_us; /* true time where its process is: at or after now_us, then it is busy */
    uint64_t timer_us, action_us;
    uint64_t paused_us; /* in all */
    uint8_t interest[SERVERS];
    int link[SERVERS]; /* of each node: index; -1: none */
    int hole[SERVERS];
    uint64_t
        upset_us[SERVERS]; /* the last moment, maybe to come, of a fault between it and a server */
    unsigned filled[SERVERS]; /* how often a connection had no room for all bytes */
    unsigned lock_count;
    int blocked; /* in a call that blocks */
};

/* A lock that was got. */
struct win {
    int key; /* index */
    uint64_t began_us, done_us, fencing_token;
};

static struct link links[LINKS];
static struct part parts_of[LINKS][2][PARTS]; /* to the server, and back */
static char bytes_of[LINKS][2][ROOM];
static struct machine machines[SERVERS];
static struct client clients[CLIENTS];
static struct win wins[WINS];
static unsigned win_count, client_count, node_count, server_count, quorum;
static int server_of[SERVERS];      /* of each node */
static unsigned database[SERVERS];  /* of each node */
static const char *secret[SERVERS]; /* of each server; NULL: none */
static uint64_t now_us, digest;
static uint32_t dice, entropy;
static unsigned on; /* bit f: this run has fault f */
static int calm, guarded;
static int marked;    /* guarded, and all locks are fenced: servers may also be flushed. R18 */
static int durable;   /* votes are: servers forget what is not on their disk. No guard is needed */
static int swapped;   /* a server has other commands than before, on the same connections */
static int returning; /* what had been deleted was there again after a crash */
static unsigned long event, broken_at, trace_from = ULONG_MAX; /* events of this run */
static uint32_t ttl_ms, node_timeout_ms;
static uint32_t longest_ms; /* no lock has a longer ttl */
static enum profile profile;
static const char *only = ""; /* other promises than these do not end a run */
static uint64_t next_check_us;
static uint64_t slowest_us; /* what slow servers have added to a round trip, at most */
static unsigned lock_count; /* of each client */
static int in_moves;        /* LATE: what happens is not left to chance alone */
static int bursts;     /* HEALTHY: one client, with many locks at once, each with another key */
static int twin = -1;  /* TWICE: the server that stands in the list twice */
static int aimed = -1; /* what follows an extension that this server answers with no, comes late */
static int lazy;       /* clients do not pull what has ended at once */
static const char *broken; /* the promise that was */
/* Bit i: when it next runs, which is in next_us, must be worked out again. */
static unsigned stale_servers, stale_clients;
static uint64_t next_us[2][CLIENTS > SERVERS ? CLIENTS : SERVERS];
static unsigned long faults_seen[FAULTS], outcomes[4][STATUSES], events_seen, wins_seen,
    extensions_seen, everywhere_seen, handed_seen, profiles_seen[PROFILES];

static const struct redlock_key second_key = {"k1", 2};
static const char *const labels[] = {"", "@", " host-1:4711", "\r\n$3\r\nabc\r\n"};
enum { LABELS = sizeof labels / sizeof *labels };

static const char operations[] = "aerk";
static const char *const operation_names[] = {"acquire", "extend", "release", "keep"};

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
    return !calm && (on >> fault & 1) != 0;
}

/* Is it in this run, and now? Counted. */
static int strikes(enum fault fault, unsigned one_in)
{
    if (!has(fault) || roll(one_in) != 0)
        return 0;
    faults_seen[fault]++;
    return 1;
}

/* Everything that happens goes through here: the digest tells whether two runs were the same, as each draws
   on what has happened before. */
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

static void violated(const char *promise)
{
    if (broken == NULL && strstr(promise, only) != NULL) {
        broken = promise;
        broken_at = event;
    }
    note("VIOLATED: %s", promise);
}

/* ---- Clocks --------------------------------------------------------------------------------- */

static uint64_t local_us(uint64_t moment_us, uint64_t base_us, int64_t ppm)
{
    return (uint64_t)((int64_t)(base_us + moment_us) + (int64_t)moment_us * ppm / 1000000);
}

/* The last true moment at which a client's clock shows at most this. */
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

static uint64_t delay_us(const struct machine *m)
{
    return 50 + m->far_us + roll(200) + (m->delay_us > 0 ? roll((unsigned)m->delay_us) : 0);
}

/* To a server and back, at most, while nothing is upset. */
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

/* A fault has struck between a client and a server, or ends now or later. */
static void upset(struct client *c, int server, uint64_t until_us)
{
    if (c->upset_us[server] < until_us)
        c->upset_us[server] = until_us;
}

/* The same for all clients. */
static void upset_all(int server, uint64_t until_us)
{
    unsigned i;

    for (i = 0; i < client_count; i++)
        upset(&clients[i], server, until_us);
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

/* Puts bytes under way from `from_us` on; how many of them there was room for. */
static unsigned flow_put(struct flow *flow, const char *bytes, unsigned size, uint64_t from_us,
                         const struct machine *m)
{
    unsigned left, part;

    if (flow->part == flow->parts_used)
        flow->part = flow->parts_used = 0;
    if (flow->first > ROOM / 2) { /* also where all is used: nothing is moved then */
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

/* What is under way is lost from a random byte on. */
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

/* The server has a connection, or has it no more. */
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

/* The server's end is gone: it reads no more; what it has said may still come. */
static void link_cut(struct link *link)
{
    if (!link->served)
        return;
    set_served(link, 0);
    stale_clients |= 1U << link->client;
    upset(&clients[link->client], link->server, now_us);
    flow_clear(&link->to);
    flow_cut(&link->back);
}

/* A server says something. A client that takes so little of it is cut off. */
static void say(struct link *link, const char *bytes, unsigned size, uint64_t from_us)
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

/* When bytes next arrive at the server. */
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

/* A connection moves no byte for a while. If it is closed before, its bytes arrive all the same. */
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
        upset(&clients[link->client], link->server, until_us);
    note("client %d server %d: a connection is stuck until %.3f ms", link->client, link->server,
         (double)link->stuck_until_us / 1000);
}

/* ---- Servers -------------------------------------------------------------------------------- */

/* A push that comes late holds up all replies behind it. */
static void tell(const struct link *changer, int server, struct mini_word name)
{
    struct machine *m = &machines[server];
    char push[MINI_REPLY];
    unsigned i, size;

    for (i = m->served_count; i-- > 0;) { /* one that is cut is removed */
        struct link *link = m->served[i];
        uint64_t from_us = now_us;
        if (link == changer)
            continue;
        size = mini_told(&link->session, name, push);
        if (size == 0 || strikes(DEAF, 2))
            continue;
        if (strikes(DEAF, 3)) {
            from_us += roll(300) * MS;
            upset(&clients[link->client], server, from_us);
        }
        say(link, push, size, from_us);
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

/* Removes keys: those that have expired; all that do some day; all. */
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
        tell(NULL, server, name);
        key->name.size = 0;
    }
    m->sweep_us = stay ? next_sweep_us() : REDLOCK_NEVER;
}

/* 40 hex digits and a label. */
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

/* The server that counts twice has granted a lock: it restarts before the others answer. Then its other name may
   be connected while the attempt is not decided. R13 */
static void restart_before_others_answer(struct client *c)
{
    uint64_t mute_us = now_us + roll(4 * node_timeout_ms) * MS;
    unsigned n;

    machines[twin].falls_us = now_us + round_trip_us(&machines[twin]) / 2 + 1 + roll(400);
    for (n = 0; n < node_count; n++)
        if (server_of[n] != twin && c->link[n] >= 0 && links[c->link[n]].mute_until_us < mute_us) {
            links[c->link[n]].mute_until_us = mute_us;
            upset(c, server_of[n], mute_us);
        }
    stale_servers = ~0U;
}

static void obey(struct link *link, struct mini_command *command)
{
    static const char *const nonsense[] = {"+QUEUED\r\n", "-ERR no\r\n",  "$3\r\nabc\r\n",
                                           "?\r\n",       "-BUSY no\r\n", "*0\r\n"};
    struct machine *m = at_its_time(link->server);
    int has_token = mini_is_of_a_lock(command) && command->kind != 'P';
    int takes = command->kind == 'S' || command->kind == 'M' || command->kind == 'F';
    char reply[MINI_REPLY];
    unsigned size, i;

    if (m->sweep_us != REDLOCK_NEVER)
        sweep(link->server, EXPIRED); /* an expired key is noticed when it is looked at */
    if (mini_is_of_a_lock(command)) {
        if ((has_token && !is_token(command->arguments[0])) || command->keys[0].size != 2)
            violated("a command of nobody's lock");
        if ((unsigned)link->session.database != database[link->node])
            violated("a command to another database");
        if (m->nonsense && strikes(NONSENSE, 1)) {
            m->nonsense = 0;
            upset(&clients[link->client], link->server, now_us);
            i = roll(6);
            say(link, nonsense[i], (unsigned)strlen(nonsense[i]), now_us);
            note("server %d: nonsense %u", link->server, i);
            return;
        }
    }
    if (durable) {
        m->mini.synced = !calm && roll(8) == 0 ? "*2\r\n:0\r\n:0\r\n" : "*2\r\n:1\r\n:0\r\n";
        if (command->kind == 'W' && m->mini.synced[5] == '1')
            memcpy(m->disk, m->mini.keys, m->mini.used * sizeof *m->disk);
        else if (command->kind == 'W')
            upset(&clients[link->client], link->server, now_us);
    }
    size = mini_run(&m->mini, &link->session, command, reply);
    note("server %d: client %d %c %.8s: %.*s", link->server, link->client, command->kind,
         has_token ? command->arguments[0].bytes : "        ", (int)size - 2, reply);
    if (takes && !command->changed)
        memcpy(m->refused[m->refusals++ % REFUSALS], command->arguments[0].bytes,
               sizeof m->refused[0]);
    if (takes && command->changed && link->server == twin && strikes(CRASH, 4))
        restart_before_others_answer(&clients[link->client]);
    if (link->server == aimed && command->kind == 'E' && !command->heals && reply[1] == '0') {
        aimed = -1;
        link->mute_until_us = now_us + roll(20 * longest_ms) * MS;
        upset(&clients[link->client], link->server, link->mute_until_us);
        note("client %d server %d: mute until %.3f ms", link->client, link->server,
             (double)link->mute_until_us / 1000);
    }
    say(link, reply, size, now_us);
    if (m->sweep_us == REDLOCK_NEVER && command->changed)
        m->sweep_us = next_sweep_us();
    for (i = 0; i < command->key_count && mini_is_of_a_lock(command); i++)
        if (command->changed >> i & 1)
            tell(link, link->server, command->keys[i]);
}

/* Runs what has arrived on a connection, also when the client has closed its end meanwhile. */
static void serve_link(struct link *link)
{
    struct flow *to = &link->to;
    struct mini_command command;
    unsigned used;

    flow_arrive(to, now_us);
    while (link->served &&
           (used = mini_read(to->bytes + to->first, to->arrived - to->first, &command)) > 0) {
        obey(link, &command);
        to->first += used;
    }
    if (!link->open && to->part == to->parts_used)
        set_served(link, 0); /* the client had closed it, and all that it had sent is done */
}

static void crash(int server, int forgets)
{
    struct machine *m = &machines[server];
    unsigned i;

    while (m->served_count > 0)
        link_cut(m->served[0]);
    for (i = 0; forgets && i < m->mini.used; i++)
        if (durable)
            m->mini.keys[i] = m->disk[i];
        else if (m->mini.keys[i].until_us != UINT64_MAX)
            m->mini.keys[i].name.size = 0;
    returning |= forgets && durable;
    m->down = 1;
    m->falls_us = 0;
    upset_all(server, now_us);
    note("server %d crashes%s", server, forgets ? " and forgets" : "");
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
    upset_all(server, now_us);
    note("server %d is back", server);
}

/* When something happens on it next. */
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
        upset_all(server, m->away_until_us);
        return;
    }
    for (i = 0; i < m->served_count; i++)
        if (link_to_us(m->served[i]) <= now_us)
            ready[count++] = m->served[i];
    first = roll(count); /* after a pause: no order between connections */
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

/* Its process is where the world is, or ahead of it if it is busy. */
static void catch_up(struct client *c)
{
    if (c->here_us < now_us)
        c->here_us = now_us;
}

static void stop(struct client *c)
{
    uint64_t pause_us = roll(2 * ttl_ms) * MS;
    unsigned i;

    c->here_us += pause_us;
    c->paused_us += pause_us;
    for (i = 0; i < server_count; i++)
        upset(c, (int)i, c->here_us);
    note("client %d is stopped", number_of(c));
}

/* Every call takes a moment; sometimes the process is stopped in the middle of it. */
static void a_moment(struct client *c)
{
    c->here_us += roll(4);
    if (strikes(PAUSE, 2000))
        stop(c);
}

/* Where a client finds room for a new connection; if all are in use, the bytes of a closed one are lost. */
static struct link *free_link(const struct client *c, int server)
{
    struct link *first = links_of(c, server), *link = NULL;
    unsigned i;

    for (i = 0; i < SLOTS; i++)
        if (!first[i].open && (link == NULL || !first[i].served))
            link = &first[i];
    return link;
}

static int sim_dial(void *context, struct redlock_node *node)
{
    struct client *c = self(context);
    unsigned n = (unsigned)(node - c->nodes);
    int server = server_of[n];
    struct link *link = free_link(c, server);

    a_moment(c);
    if (link == NULL) {
        violated("a connection that was not closed");
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
    link->full = 0;
    link->stuck_until_us = link->mute_until_us = 0;
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

static int sim_transmit(void *context, struct redlock_node *node, const void *bytes, size_t size)
{
    struct client *c = self(context);
    struct link *link = &links[node->handle];
    unsigned taken;

    a_moment(c);
    if (!link->served) {
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
    if (!link->in_hole && c->here_us >= link->stuck_until_us)
        flow_arrive(back, c->here_us);
    there = back->arrived - back->first;
    if (there > 0) {
        if (size > there)
            size = there;
        if (has(DRIP) && roll(4) == 0)
            size = 1 + roll((unsigned)size);
        memcpy(bytes, back->bytes + back->first, size);
        back->first += (unsigned)size;
        return (int)size;
    }
    if (link->served || link->in_hole || c->here_us < link->stuck_until_us ||
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

/* ---- Promises ------------------------------------------------------------------------------- */

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

    return memcmp(ours, theirs, 2) == 0 ||
           ((extra_key_count_of(a) > 0 || extra_key_count_of(b) > 0) && ours[0] == 'k' &&
            theirs[0] == 'k');
}

/* The first true moment at which the holder's own clock says that it has ended; 0: not held. */
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
    if (label_size_of(lock) > 0)
        memcpy(text + 40, label_of(lock), label_size_of(lock));
    return 40U + label_size_of(lock);
}

/* For so long from now on, if no fault strikes. */
static int server_has(struct mini_server *mini, const void *key, const char *token, unsigned size,
                      uint64_t for_us)
{
    const struct mini_key *found = mini_find(mini, key, 2);

    return found != NULL && found->value_size == size && memcmp(found->value, token, size) == 0 &&
           found->until_us - mini->now_us >= for_us;
}

/* Bit i: server i has all keys of the lock with its token, and for so long. */
static unsigned servers_that_have_for(const struct redlock_lock *lock, uint64_t for_us)
{
    char token[80];
    unsigned n, have = 0, size = put_token(lock, token);

    for (n = 0; n < node_count; n++) {
        struct mini_server *mini = &at_its_time(server_of[n])->mini;
        mini->database = (int)database[n];
        if (server_has(mini, lock->key, token, size, for_us) &&
            (extra_key_count_of(lock) == 0 ||
             server_has(mini, extra_keys_of(lock)->bytes, token, size, for_us)))
            have |= 1U << server_of[n];
    }
    return have;
}

static unsigned servers_that_have(const struct redlock_lock *lock)
{
    return servers_that_have_for(lock, 0);
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

/* Is there a fault now, or has there been one so lately that a client may still wait for what was lost? */
static int is_upset(const struct client *c, int server)
{
    uint64_t settle_us = 5 * node_timeout_ms * MS;
    const struct machine *m = &machines[server];
    unsigned n;

    if (m->away_until_us > 0 || m->delay_us > 0 || m->nonsense || c->hole[server] ||
        (c->upset_us[server] > 0 && c->upset_us[server] + settle_us >= now_us))
        return 1;
    for (n = 0; n < node_count; n++)
        if (server_of[n] == server && c->link[n] >= 0 && links[c->link[n]].full)
            return 1;
    return 0;
}

/* Bit i: server i is not upset, and the client has a connection to it; a new client may be about to make it. */
static unsigned servers_that_are_well(const struct client *c, int connected)
{
    unsigned n, well = 0;

    for (n = 0; n < node_count; n++)
        if ((c->nodes[n].state == REDLOCK_NODE_READY ||
             (!connected && c->nodes[n].state != REDLOCK_NODE_DOWN)) &&
            !is_upset(c, server_of[n]))
            well |= 1U << server_of[n];
    return well;
}

/* Those of wish->well that have not been upset since. */
static unsigned still_well(const struct client *c, const struct wish *wish)
{
    unsigned i, well = wish->well;

    for (i = 0; i < server_count; i++)
        if (c->upset_us[i] >= wish->well_us)
            well &= ~(1U << i);
    return well;
}

/* So many round trips are so short that no answer can come too late. */
static int is_within(const struct redlock_lock *lock, unsigned round_trips)
{
    uint64_t patience_ms = lock->ttl_ms / 4 < node_timeout_ms ? lock->ttl_ms / 4 : node_timeout_ms;

    return round_trips * longest_round_trip_us() < patience_ms * MS;
}

static int is_near(const struct redlock_lock *lock)
{
    return is_within(lock, 2);
}

/* A connection takes ROOM bytes in a round trip. R15 gives an answer its time from the moment on when the command is
   queued, also if it stands behind others. So it may come too late where connections were filled several times since. */
static int has_time(const struct client *c, const struct redlock_lock *lock,
                    const struct wish *wish)
{
    unsigned i, most = 0;

    for (i = 0; i < server_count; i++)
        if (c->filled[i] - wish->filled[i] > most)
            most = c->filled[i] - wish->filled[i];
    return is_within(lock, 2 + most);
}

/* When auto-extension extends the lock, at the latest, from now on: when a third of the ttl has passed, at once if less
   than two thirds are left (R10); and somewhat later by the drift, and clocks of different rates. */
static uint64_t extended_in_us(const struct client *c, const struct redlock_lock *lock)
{
    uint64_t left_us = held_until_us(c, lock) - c->here_us + lock->ttl_ms * MS / 50 + 2 * MS;
    uint64_t third_us = lock->ttl_ms * MS / 3, later_us = third_us / 50 + 1 * MS;

    if (left_us <= 2 * third_us)
        return 0;
    left_us -= 2 * third_us;
    return left_us < third_us + later_us ? left_us : third_us + later_us;
}

/* From now on a quorum of these servers is enough to extend the lock, if it lives that long. A server that did not
   confirm the last extension may have the key for less than that, if the ttl was shorter before. Who adopts the lock
   cannot know. */
static void expect_extension(const struct client *c, const struct redlock_lock *lock,
                             struct wish *wish, char what)
{
    unsigned n, members = 0;

    wish->well = 0;
    wish->well_us = now_us;
    if (guarded || on >> JUMP & 1 || !is_near(lock) ||
        held_until_us(c, lock) < c->here_us + 6 * longest_round_trip_us() + 10 * MS)
        return;
    for (n = 0; n < node_count; n++)
        if ((lock->members >> n & 1) && c->nodes[n].state == REDLOCK_NODE_READY)
            members |= 1U << server_of[n];
    wish->well = members & servers_that_are_well(c, 1);
    if (bits(wish->well) >= quorum)
        wish->well &= servers_that_have_for(lock, (what == 'k' ? extended_in_us(c, lock) : 0) +
                                                      longest_round_trip_us());
}

static void check_holders(const struct client *c)
{
    unsigned i, j, k;

    if (on >> VANISH != 0) /* beyond what is assumed */
        return;
    for (i = 0; i < c->lock_count; i++) {
        const struct redlock_lock *lock = &c->locks[i];
        if (lock->valid_until_us == 0 || held_until_us(c, lock) <= c->here_us)
            continue;
        if (!(on >> FORGET & 1) && !marked && bits(servers_that_have(lock)) < quorum) {
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

/* Fencing: larger than all that were complete before this one began, and nobody else's. */
static void check_win(const struct client *c, const struct redlock_lock *lock,
                      const struct wish *wish)
{
    struct win *win = &wins[win_count];
    unsigned i;

    wins_seen++;
    if (win_count == WINS) {
        violated("more locks got than there is room for");
        return;
    }
    win->key = key_of(lock);
    win->began_us = wish->began_us;
    win->done_us = c->here_us;
    win->fencing_token = fencing_token_of(lock);
    win_count++;
    if (!uses_fencing(lock))
        return;
    if (win->fencing_token == 0)
        violated("no fencing token");
    for (i = 0; i + 1 < win_count; i++) {
        if (wins[i].key != win->key || wins[i].fencing_token == 0)
            continue;
        if (wins[i].fencing_token == win->fencing_token)
            violated("a fencing token twice");
        if (wins[i].done_us < win->began_us && wins[i].fencing_token > win->fencing_token)
            violated("a fencing token that did not grow");
    }
}

/* An extension that succeeds proves that nobody else had the lock from the acquire to the begin of its round. No
   clock, no ttl is needed for that, if a quorum of those that confirm it had granted the lock before the acquire was
   decided, or had confirmed or repaired it in a round that such a quorum proved: it holds with every fault, but that
   what had been deleted is there again. A node that grants later is a member by the clock. */
static int proves(const struct redlock_lock *lock, struct wish *wish)
{
    int proof = bits((unsigned)(wish->sworn & lock->granted & lock->members)) >= quorum;

    if (proof)
        wish->sworn |= lock->granted & lock->members;
    return proof && !lazy && !returning && server_count == node_count;
}

/* The round began after the operation; and if it gave the lock this validity, then at this validity's T1, by a drift
   of 1 % and 2 ms. */
static void check_extension(const struct client *c, const struct redlock_lock *lock,
                            struct wish *wish)
{
    /* a SET may be stuck until keys have ended before their time */
    int by_clock = !(on >> STUCK & 1 && (on >> JUMP & 1 || on >> VANISH & 1));
    uint64_t began_us = wish->began_us;
    unsigned i;

    if (lock->valid_until_us > wish->valid_us)
        began_us = true_us(c, lock->valid_until_us + 2001 + lock->ttl_ms * 10U - lock->ttl_ms * MS);
    wish->valid_us = lock->valid_until_us;
    wish->sworn &= lock->members; /* also of one that is a member again by the next round */
    if (lock->extended == wish->extended)
        return;
    wish->extended = lock->extended;
    extensions_seen++;
    for (i = proves(lock, wish) || by_clock ? 0 : win_count; i < win_count; i++)
        if (wins[i].key == key_of(lock) && wins[i].began_us > wish->won_us &&
            wins[i].done_us < began_us)
            violated("extended, though another had it meanwhile");
    if (wish->what == 'k')
        expect_extension(c, lock, wish, 'k');
}

/* It was acquired while no fault struck, and none has struck since. A node that keeps the send buffer full for half as
   long as a vote may take is disconnected (R5), with what it was to be sent. */
static void check_everywhere(const struct client *c, const struct redlock_lock *lock,
                             struct wish *wish)
{
    unsigned i, have;

    wish->check_us = 0;
    if (still_well(c, wish) != (1U << server_count) - 1 || held_until_us(c, lock) <= now_us ||
        !has_time(c, lock, wish))
        return;
    have = servers_that_have(lock);
    everywhere_seen++;
    for (i = 0; i < server_count; i++)
        if (!(have >> i & 1) && !refused_by(&machines[i], lock)) {
            note("client %d lock %d is not on server %u", number_of(c), (int)(lock - c->locks), i);
            violated("a lock that is not on all servers, though all are well");
        }
}

/* What is due by now; sets when the next is. */
static void check_all_everywhere(void)
{
    unsigned j, k;

    next_check_us = REDLOCK_NEVER;
    for (j = 0; j < client_count; j++)
        for (k = 0; k < clients[j].lock_count; k++) {
            struct wish *wish = &clients[j].wishes[k];
            if (wish->check_us != 0 && wish->check_us <= now_us)
                check_everywhere(&clients[j], &clients[j].locks[k], wish);
            if (wish->check_us != 0 && wish->check_us < next_check_us)
                next_check_us = wish->check_us;
        }
}

/* How long it may take, but for pauses. */
static uint64_t allowed_us(const struct redlock_lock *lock, char what, uint32_t wait_ms)
{
    uint64_t patience_us = node_timeout_ms * MS, all_us, far_us = 4 * longest_round_trip_us();
    /* three round trips to a slow server, if they are longer: R15 */
    uint64_t slow_us = slowest_us > 0 ? 3 * (longest_round_trip_us() + slowest_us) : 0;

    if (what == 'a' && wait_ms > 0 && (calm || profile == HEALTHY) && !uses_fencing(lock))
        return wait_ms * MS + 4 * (patience_us < far_us ? far_us : patience_us) + 5 * MS;
    if (slow_us > lock->ttl_ms * MS / 4)
        slow_us = lock->ttl_ms * MS / 4;
    all_us = wait_ms * MS + 30 * (patience_us < slow_us ? slow_us : patience_us);
    return uses_fencing(lock) ? 4 * all_us : all_us;
}

static int takes_too_long(const struct client *c, const struct wish *wish)
{
    uint64_t until_us = wish->allowed_us + c->paused_us - wish->paused_us;

    return c->here_us > wish->began_us + until_us + until_us / 50;
}

static void check_time(const struct client *c, const struct redlock_lock *lock, struct wish *wish)
{
    if (!takes_too_long(c, wish))
        return;
    if (wish->what != 'k') /* a server may be slow only since then */
        wish->allowed_us = allowed_us(lock, wish->what, wish->wait_ms);
    if (!takes_too_long(c, wish))
        return;
    note("client %d lock %d %c takes longer than %.3f ms", (int)(c - clients),
         (int)(wish - c->wishes), wish->what, (double)wish->allowed_us / 1000);
    violated("an operation that takes too long");
}

/* What must not happen while all, or a quorum of the servers, are well. */
static void check_result(const struct client *c, const struct redlock_lock *lock,
                         const struct wish *wish, int status)
{
    unsigned well = still_well(c, wish);

    if (wish->what == 'a' && status != REDLOCK_OK && fencing_token_of(lock) != 0)
        violated("a fencing token without a lock");
    if (wish->what == 'a' && well == (1U << server_count) - 1 &&
        (status == REDLOCK_UNREACHABLE || status == REDLOCK_DENIED || status == REDLOCK_TOO_LATE) &&
        has_time(c, lock, wish))
        violated("an acquire that fails though all servers are well");
    if (wish->what == 'k' && status == REDLOCK_LOST && bits(well) >= quorum)
        violated("a kept lock is lost though a quorum is well");
    if (wish->what == 'e' && (status == REDLOCK_LOST || status == REDLOCK_UNREACHABLE) &&
        bits(well) >= quorum && has_time(c, lock, wish))
        violated("an extension fails though a quorum is well");
}

/* ---- Clients -------------------------------------------------------------------------------- */

static void plan(struct client *c, struct wish *wish, char next, uint32_t in_ms)
{
    wish->next = next;
    c->action_us = c->here_us + in_ms * MS;
}

static void won(struct client *c, struct redlock_lock *lock, struct wish *wish)
{
    /* a connection, a handshake and the command; and what else is in line */
    uint64_t settle_us = (8 + c->lock_count / 2) * longest_round_trip_us() + 10 * MS;

    check_win(c, lock, wish);
    wish->won_us = c->here_us;
    wish->sworn = lock->members;
    wish->valid_us = lock->valid_until_us;
    wish->extended = lock->extended;
    if (profile == LATE && !in_moves && !calm && roll(3) > 0)
        plan(c, wish, roll(2) ? 'r' : 'e', roll(roll(2) ? 3 : 12 * node_timeout_ms));
    if (bits(still_well(c, wish)) == server_count) {
        wish->check_us = c->here_us + settle_us;
        if (wish->check_us < next_check_us)
            next_check_us = wish->check_us;
    }
}

static void collect(struct client *c)
{
    struct redlock_lock *lock;

    if (lazy && !calm && roll(4) == 0)
        return; /* later */
    while ((lock = redlock_next_completed(&c->redlock)) != NULL) {
        struct wish *wish = &c->wishes[lock - c->locks];
        int status = (int)lock->status;
        note("client %d lock %d %c: %s", number_of(c), (int)(lock - c->locks), wish->what,
             redlock_strerror(status));
        if (wish->what == ' ') {
            violated("an operation that ends twice");
            continue;
        }
        count_outcome(wish->what, status);
        check_result(c, lock, wish, status);
        if (wish->what == 'a' && status == REDLOCK_OK)
            won(c, lock, wish);
        else if (wish->what == 'e' && status == REDLOCK_OK)
            check_extension(c, lock, wish);
        wish->what = ' ';
    }
}

/* What a program's loop does when something has happened. */
static void client_runs(struct client *c)
{
    uint64_t wait_us;
    unsigned n, turns = 0;

    catch_up(c);
    for (n = 0; n < node_count; n++) {
        unsigned wanted = redlock_wanted_events(&c->redlock, n);
        if (wanted != 0)
            redlock_handle_events(&c->redlock, n, wanted); /* not all of it may be so: harmless */
    }
    do {
        wait_us = redlock_tick(&c->redlock);
        collect(c);
    } while (wait_us == 0 && ++turns < 200);
    if (turns == 200)
        violated("a loop without end");
    c->timer_us = wait_us == REDLOCK_NEVER ? REDLOCK_NEVER : true_us(c, sim_now(c) + wait_us) + 1;
    for (n = 0; n < node_count; n++)
        c->interest[n] = (uint8_t)redlock_wanted_events(&c->redlock, n);
    for (n = 0; n < c->lock_count; n++) {
        if (c->locks[n].status == REDLOCK_PENDING)
            check_time(c, &c->locks[n], &c->wishes[n]);
        if (c->wishes[n].what == 'k' && c->locks[n].valid_until_us != 0)
            check_extension(c, &c->locks[n], &c->wishes[n]);
    }
    check_holders(c);
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
    if (c->here_us < link->stuck_until_us)
        return link->stuck_until_us;
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
    unsigned key = in_moves ? 0 : profile == LATE || profile == HANDED ? roll(8) == 0 : roll(2);
    unsigned label;

    memset(&c->wishes[i], 0, sizeof c->wishes[i]);
    c->wishes[i].what = ' ';
    own_keys[i][0] = 'b';
    own_keys[i][1] = (char)('0' + i);
    redlock_lock_init(lock, bursts ? own_keys[i] : keys[key], 2, draw_ttl());
    if (roll(4) == 0) {
        set_holder(lock, c->holder, sizeof c->holder);
    }
    label = roll(4) == 0 ? roll(LABELS) : 0;
    set_label(lock, labels[label], strlen(labels[label]));
    if (marked || (REDLOCK_FENCING && roll(profile == ANY ? 2 : 4) == 0)) {
        set_use_fencing(lock, 1);
    } else if (REDLOCK_MULTI_KEY && key == 0 && !bursts && roll(in_moves ? 8 : 3) == 0) {
        set_extra_keys(lock, &second_key, 1);
    }
}

static void init_client(struct client *c)
{
    static const char *const addresses[] = {"0", "1", "2", "3", "4", "5", "6"};
    struct redlock_settings settings;
    unsigned i;

    memset(&settings, 0, sizeof settings);
    settings.node_timeout_ms = node_timeout_ms;
    settings.stall_ms = 4 * node_timeout_ms;
    settings.longest_ttl_ms = guarded ? longest_ms : 0;
    settings.durable = (uint32_t)durable;
    settings.retry_delay_ms = profile == LATE ? ttl_ms / 3 : 1 + node_timeout_ms;
    for (i = 0; i < node_count; i++) {
        c->nodes[i].address = addresses[i];
        c->nodes[i].database = database[i];
        c->nodes[i].password = secret[server_of[i]];
        c->link[i] = -1;
    }
    if (redlock_init(&c->redlock, &c->io, c->nodes, node_count, &settings) != REDLOCK_OK)
        violated("init");
    c->timer_us = REDLOCK_NEVER;
}

static void begin_client(struct client *c)
{
    unsigned i;

    memset(c->nodes, 0, sizeof c->nodes);
    c->lock_count = lock_count;
    init_client(c);
    for (i = 0; i < c->lock_count; i++)
        begin_lock(c, i);
}

static void end_client(struct client *c)
{
    unsigned i;

    redlock_deinit(&c->redlock);
    for (i = 0; i < node_count; i++)
        if (c->link[i] >= 0)
            violated("a connection is left");
}

static enum redlock_status start_it(struct client *c, unsigned i, char what, uint32_t wait_ms)
{
    struct redlock_lock *lock = &c->locks[i];
    unsigned keeps;

    if (what == 'a')
        return redlock_acquire_start(&c->redlock, lock, wait_ms);
    if (what == 'e')
        return redlock_extend_start(&c->redlock, lock);
    if (what == 'r')
        return redlock_release_start(&c->redlock, lock, wait_ms);
    keeps = 1 + roll(6);
    c->wishes[i].allowed_us = (keeps + 2) * longest_ms * MS;
    return redlock_auto_extend_start(&c->redlock, lock, keeps);
}

static int start(struct client *c, unsigned i, char what, uint32_t wait_ms)
{
    struct redlock_lock *lock = &c->locks[i];
    struct wish *wish = &c->wishes[i], before = *wish;
    enum redlock_status status;

    if (what == 'k' && !REDLOCK_AUTO_EXTEND)
        what = 'e';
    wish->handed = 0;
    c->timer_us = 0; /* it has to be run */
    wish->began_us = c->here_us;
    wish->paused_us = c->paused_us;
    wish->check_us = 0;
    wish->wait_ms = wait_ms;
    wish->allowed_us = allowed_us(lock, what, wait_ms);
    memcpy(wish->filled, c->filled, sizeof wish->filled);
    wish->well = 0;
    wish->well_us = now_us;
    if (what == 'a' && !guarded && profile != TWICE && is_near(lock))
        wish->well = servers_that_are_well(c, 0);
    else if (what == 'e' || what == 'k')
        expect_extension(c, lock, wish, what);
    status = start_it(c, i, what, wait_ms);
    note("client %d lock %u %c starts, ttl %lu ms, wait %lu ms: %s", number_of(c), i, what,
         (unsigned long)lock->ttl_ms, (unsigned long)wait_ms, redlock_strerror((int)status));
    if (status != REDLOCK_PENDING)
        count_outcome(what, (int)status);
    wish->what = status == REDLOCK_PENDING ? what : ' ';
    if (status == REDLOCK_INVALID_ARGUMENT) {
        violated("an operation that is refused");
        *wish = before;
    }
    return (int)status;
}

/* The same memory as it is, for another client. Held locks are forgotten, or left to be released. */
static void begin_client_again(struct client *c)
{
    unsigned i;

    end_client(c);
    init_client(c);
    for (i = 0; i < c->lock_count; i++) {
        struct redlock_lock *lock = &c->locks[i];
        if (lock->status == REDLOCK_PENDING)
            violated("a lock that is in progress without a client");
        c->wishes[i].what = ' ';
        c->wishes[i].check_us = 0;
        if (lock->valid_until_us != 0 && !c->wishes[i].handed && roll(2) == 0)
            start(c, i, 'r', roll(200));
        else
            redlock_abandon(&c->redlock, lock);
    }
}

/* Another client takes over a lock: c forgets it, or dies. */
static void hand_over(struct client *c, unsigned i)
{
    const struct redlock_lock *from = &c->locks[i];
    struct client *to = &clients[roll(client_count)];
    unsigned k = roll(lock_count);
    struct redlock_lock *lock = &to->locks[k];
    uint64_t until_us = held_until_us(c, from);
    uint32_t left_ms = 0;
    unsigned n;

    if (c->wishes[i].what == 'a') /* its success was not seen yet */
        return;
    if (to == c || to->blocked || to->here_us > c->here_us || lock->status == REDLOCK_PENDING ||
        lock->valid_until_us != 0 || to->wishes[k].what != ' ' || bits(from->members) < quorum ||
        until_us == 0 ||
        (until_us <= c->here_us && c->here_us > now_us)) /* it expires before this happens */
        return;
    to->paused_us += c->here_us - to->here_us; /* it waits for one that is stopped */
    for (n = 0; n < server_count && c->here_us > now_us; n++)
        upset(to, (int)n, c->here_us);
    to->here_us = c->here_us;
    if (until_us > to->here_us + 2 * MS && roll(16) != 0)
        left_ms = (uint32_t)((until_us - to->here_us) / MS * 99 / 100);
    if (left_ms > from->ttl_ms)
        left_ms = from->ttl_ms;
    redlock_lock_init(lock, from->key, from->key_size, from->ttl_ms);
    memcpy(lock->token, from->token, sizeof lock->token);
    set_label(lock, label_of(from), label_size_of(from));
    set_extra_keys(lock, extra_keys_of(from), extra_key_count_of(from));
    set_use_fencing(lock, uses_fencing(from));
    set_fencing_token(lock, fencing_token_of(from));
    lock->members = from->members;
    to->wishes[k] = c->wishes[i];
    to->wishes[k].what = ' ';
    to->wishes[k].check_us = 0;
    note("client %d lock %u is handed over to client %d lock %u, members %x, %lu ms left",
         number_of(c), i, number_of(to), k, lock->members, (unsigned long)left_ms);
    if (redlock_adopt(&to->redlock, lock, left_ms) != REDLOCK_OK)
        violated("a lock that is not adopted");
    c->wishes[i].handed = 1;
    to->wishes[k].extended = lock->extended;
    to->wishes[k].valid_us = lock->valid_until_us;
    handed_seen++;
    stale_clients |= 1U << number_of(to);
    if (roll(2) == 0)
        start(to, k, roll(2) ? 'k' : 'e', 0);
}

static void hand_over_and_forget(struct client *c, unsigned i)
{
    hand_over(c, i);
    c->wishes[i].check_us = 0;
    redlock_abandon(&c->redlock, &c->locks[i]);
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
        redlock_cancel(&c->redlock, &c->locks[i]);
}

static void act_on_held(struct client *c, unsigned i, unsigned what)
{
    struct redlock_lock *lock = &c->locks[i];
    unsigned handed = profile == HANDED ? 3 : profile == LATE ? 12 : 24;

    if (c->wishes[i].next != 0) {
        start(c, i, c->wishes[i].next, roll(300));
        c->wishes[i].next = 0;
        return;
    }
    if (roll(handed) == 0) {
        hand_over_and_forget(c, i);
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
        c->wishes[i].check_us = 0;
        redlock_abandon(&c->redlock, lock);
    }
}

/* All of them at once, more than there is room for in the queues. R6 */
static void burst(struct client *c)
{
    unsigned i;

    for (i = 0; i < c->lock_count; i++)
        if (c->wishes[i].what == ' ')
            start(c, i, c->locks[i].valid_until_us == 0 ? 'a' : 'r', 0);
}

/* Something that a program might do. */
static void act(struct client *c)
{
    unsigned i = roll(c->lock_count), what = roll(16);
    struct redlock_lock *lock = &c->locks[i];

    if (bursts && (win_count == 0 || roll(4) == 0))
        burst(c);
    else if (c->wishes[i].what != ' ') {
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

/* In most cases with what the client is about to send. */
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
        stop(c);
    if (strikes(DEATH, 60)) {
        for (i = 0; i < c->lock_count; i++)
            if (c->locks[i].valid_until_us != 0 && roll(2) == 0)
                hand_over(c, i);
        note("client %d dies, another begins", number_of(c));
        if (roll(2) == 0) {
            begin_client_again(c);
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
        upset(c, (int)i, now_us);
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
        upset(c, server_of[i], now_us);
    }
}

/* In a small world often on several servers at once, or nothing would come of it. */
static void vanish(int server)
{
    unsigned i;

    for (i = 0; i < server_count; i++)
        if ((int)i == server || (profile == LATE && !in_moves && roll(2) == 0)) {
            sweep((int)i, EXPIRING);
            upset_all((int)i, now_us);
            note("server %u: keys vanish", i);
        }
}

static void fault_of_a_server(int server)
{
    struct machine *m = &machines[server];

    if (m->away_until_us > 0)
        return;
    if (strikes(FORGET, 12)) {
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
            upset_all(server, now_us + 2 * m->delay_us);
        }
        m->nonsense |= has(NONSENSE) && roll(6) == 0;
        if (strikes(OLD, 12)) {
            m->mini.native = (int)roll(8);
            swapped = 1;
        }
        if (strikes(FLUSH, 6)) {
            sweep(server, ALL);
            upset_all(server, now_us);
            note("server %d is flushed", server);
        }
        if (strikes(VANISH, 6))
            vanish(server);
        if (strikes(JUMP, 10)) {
            m->step_us += (int64_t)roll(4 * ttl_ms) * 1000 - (int64_t)ttl_ms * 2000;
            upset_all(server, now_us);
        }
        return;
    }
    m->away_until_us = now_us + 1 + roll(3 * ttl_ms) * MS;
    upset_all(server, m->away_until_us);
}

/* All is well from now on. */
static void mend(void)
{
    unsigned i, n;

    calm = 1;
    for (i = 0; i < server_count; i++) {
        if (machines[i].away_until_us > 0)
            machines[i].away_until_us = now_us + 1;
        machines[i].delay_us = 0;
        machines[i].nonsense = 0;
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
    }
    for (i = 0; i < server_count; i++)
        for (n = 0; n < client_count; n++)
            clients[n].upset_us[i] = now_us + 1;
    note("all is mended");
}

/* ---- A run ---------------------------------------------------------------------------------- */

/* The next thing that happens, before `end_us`; 0: nothing does. */
static int step(uint64_t end_us)
{
    uint64_t next = end_us;
    int i, who = -1;

    if (now_us >= next_check_us)
        check_all_everywhere();
    for (i = 0; i < (int)server_count; i++) {
        if (stale_servers >> i & 1)
            next_us[0][i] = server_next_us(i);
        if (next_us[0][i] < next) {
            next = next_us[0][i];
            who = i;
        }
    }
    for (i = 0; i < (int)client_count; i++) {
        if (stale_clients >> i & 1)
            next_us[1][i] = client_next_us(&clients[i]);
        if (next_us[1][i] < next && !clients[i].blocked) {
            next = next_us[1][i];
            who = SERVERS + i;
        }
    }
    stale_servers = stale_clients = 0;
    if (next > now_us)
        now_us = next;
    if (who < 0)
        return 0;
    if (who < SERVERS) {
        if (!calm && !in_moves && roll(profile == ANY ? 100 : 40) == 0)
            fault_of_a_server(who);
        server_runs(who);
        stale_servers |= 1U << who;
    } else {
        struct client *c = &clients[who - SERVERS];
        if (c->action_us <= now_us) {
            catch_up(c);
            c->action_us =
                now_us + 1 + roll(ttl_ms) * MS / (profile == LATE ? 1 + roll(2) * 15 : 2);
            act(c);
            if (profile == LATE && strikes(STUCK, 3))
                stick_one(c);
        }
        client_runs(c);
        stale_clients |= 1U << (who - SERVERS);
        if (!calm && roll(in_moves ? 200 : profile == ANY ? 40 : 15) == 0) {
            fault_of_a_client(c);
            stale_servers = stale_clients = ~0U;
        }
    }
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

/* One operation of a client while all is well. */
static int at_once(struct client *c, unsigned i, char what, uint32_t wait_ms)
{
    unsigned steps = 0;
    int status;

    catch_up(c);
    c->locks[i].ttl_ms = longest_ms; /* long, for the farthest server */
    status = start(c, i, what, wait_ms);
    if (status != REDLOCK_PENDING)
        return status;
    client_runs(c);
    stale_servers = stale_clients = ~0U;
    while (c->locks[i].status == REDLOCK_PENDING && broken == NULL && ++steps < 100000)
        step(REDLOCK_NEVER - 1);
    return (int)c->locks[i].status;
}

static void expect(int got, int expected, const char *promise)
{
    if (got != expected)
        violated(promise);
}

static unsigned keys_left(void)
{
    unsigned n, left = 0;

    for (n = 0; n < server_count; n++)
        left += mini_keys_left(&at_its_time((int)n)->mini);
    return left;
}

/* The other client may have tried for longer than the ttl. */
static int is_valid(const struct client *c, unsigned k)
{
    return redlock_remaining_ms(&c->redlock, &c->locks[k]) > longest_round_trip_us() / 1000;
}

/* A lock of each client, one after the other, with nobody in the way. */
static void all_is_well(void)
{
    /* a server that was not waited for may not know the command any more: then the key expires with its ttl
       */
    uint64_t released_us =
        swapped || returning ? (2 * longest_ms + 100) * MS : 20 * MS + 4 * longest_round_trip_us();
    unsigned i;

    for (i = 0; i < client_count && broken == NULL; i++) {
        struct client *c = &clients[i], *other = &clients[(i + 1) % client_count];
        unsigned k = roll(lock_count);
        expect(
            at_once(c, k, 'a', guarded ? 5000 + 2 * longest_ms : 5000), REDLOCK_OK,
            "a lock that nobody can get"); /* guarded: a server that is connected now, and does not tell its age */
        expect(at_once(c, k, 'e', 0), REDLOCK_OK, "an extension that fails for no reason");
        if (other != c && share_a_key(&c->locks[k], &other->locks[0])) {
            int got = at_once(other, 0, 'a', 0);
            /* connections that pause, of this client or of the holder; one server with two databases */
            if (is_valid(c, k) && got != REDLOCK_HELD && got != REDLOCK_UNREACHABLE &&
                (got != REDLOCK_CONTENDED ||
                 (server_count == node_count &&
                  bits(servers_that_have(&c->locks[k])) == server_count)))
                violated("a lock that is held, but that is not said");
            if (got == REDLOCK_OK)
                at_once(other, 0, 'r', 5000);
        }
        if (is_valid(c, k))
            expect(at_once(c, k, 'r', 5000), REDLOCK_OK, "a release that fails for no reason");
        else
            at_once(c, k, 'r', 5000);
        pass(released_us);
        expect(at_once(c, k, 'a', 0), REDLOCK_OK, "a free lock that is refused");
        expect(at_once(c, k, 'r', 5000), REDLOCK_OK, "a release that fails for no reason");
        expect(at_once(c, k, 'r', 5000), REDLOCK_EXPIRED, "gone, but that is not said");
        pass(released_us);
    }
    if (keys_left() > 0)
        violated("a key that is left");
}

/* As many servers crash or hang as may. The others are enough, at the first attempt. */
static void a_majority_is_well(void)
{
    unsigned i, first = roll(server_count);

    for (i = 0; i < client_count * FEW && broken == NULL && guarded; i++)
        if (i % FEW < lock_count && uses_fencing(&clients[i / FEW].locks[i % FEW])) {
            at_once(&clients[i / FEW], i % FEW, 'a', 5000); /* all servers are marked. R18 */
            at_once(&clients[i / FEW], i % FEW, 'r', 5000);
        }
    pass((2 * longest_ms + 4000) * MS); /* connections are up: until the last has its vote. R14 */
    for (i = 0; i < server_count - quorum; i++) {
        int server = (int)((first + i) % server_count);
        if (roll(2))
            crash(server, 1);
        machines[server].away_until_us = REDLOCK_NEVER;
    }
    for (i = 0; i < client_count && broken == NULL; i++) {
        unsigned k = roll(lock_count);
        expect(at_once(&clients[i], k, 'a', 0), REDLOCK_OK, "a majority that gives no lock");
        expect(at_once(&clients[i], k, 'e', 0), REDLOCK_OK, "a majority that extends no lock");
        expect(at_once(&clients[i], k, 'r', 5000), REDLOCK_OK, "a majority that releases no lock");
        pass(20 * MS);
    }
}

/* Client 0 is to hold the lock for long, the others for a moment. Its commands are those that come late. */
static void operate(struct client *c, unsigned k)
{
    int holder = c == clients;

    catch_up(c);
    if (holder && has(STUCK) && roll(4) > (c->locks[k].valid_until_us != 0 ? 2 : 0))
        stick_one(c);
    if (c->wishes[k].what != ' ') {
        if (roll(8) == 0)
            start(c, k, 'r', roll(100));
    } else if (c->locks[k].valid_until_us == 0) {
        start(c, k, 'a', roll(2) * roll(ttl_ms));
    } else if (roll(16) == 0) {
        hand_over_and_forget(c, k);
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

/* The client that holds the lock, by what it knows; else client 0, which is to get it. */
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
    if (c->wishes[k].what != ' ' || c->locks[k].valid_until_us == 0)
        return 0;
    catch_up(c);
    start(c, k, 'e', 0);
    return 1;
}

/* Long enough for broken connections to be given up and opened again, and for lost keys to be repaired. */
static void holder_extends_often(void)
{
    unsigned i, k;

    for (i = 0; i < 4 && broken == NULL; i++) {
        struct client *c = holder(&k);
        extend_if_held(c, k);
        pass(roll(2) ? 2 * MS : (4 * node_timeout_ms + roll(100)) * MS);
    }
}

/* The worst order: keys are lost on all servers but one, another client has the lock for a moment, old commands
   run, and the holder extends. */
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
    if (other->wishes[k].what == ' ' && other->locks[k].valid_until_us == 0) {
        catch_up(other);
        start(other, k, 'a', 0);
        pass(roll(2) * longest_round_trip_us() + roll(4) * MS);
    }
    if (other->wishes[k].what == ' ' && other->locks[k].valid_until_us != 0) {
        catch_up(other);
        start(other, k, 'r', 0);
        pass(roll(2) * longest_round_trip_us() + roll(4) * MS);
    }
    old_bytes_arrive(1 + roll(3));
    pass(roll(2) * MS);
    if (roll(4) == 0 || !extend_if_held(c, held))
        operate(&clients[0], 0);
}

static void restart(int server)
{
    if (machines[server].away_until_us > 0)
        return;
    crash(server, has(FORGET));
    machines[server].away_until_us = now_us + 1 + roll(roll(2) * 4 * node_timeout_ms) * MS;
    upset_all(server, machines[server].away_until_us);
}

/* The key is lost on a server and is repaired there, but the repair is under way for long; maybe it never runs, as the
   server restarts; and once more. Meanwhile the holder goes on extending, and at last another has the lock. */
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

/* With commands under way, which may run after those of who takes it over. */
static void holder_hands_over(void)
{
    unsigned k;
    struct client *c = holder(&k);

    if (c->wishes[k].what == ' ' && c->locks[k].valid_until_us == 0) {
        stick_one(c);
        catch_up(c);
        start(c, k, 'a', 0);
        pass(longest_round_trip_us() + roll(3) * MS);
    }
    if (c->wishes[k].what == ' ' && c->locks[k].valid_until_us != 0) {
        catch_up(c);
        hand_over_and_forget(c, k);
    }
    pass(roll(3) * MS);
    holder_extends_often();
    if (roll(2) == 0)
        another_has_it((int)roll(server_count));
}

static void extend_for(struct client *c, unsigned k, uint32_t ms)
{
    if (c->wishes[k].what == ' ') /* else the lock is the library's */
        c->locks[k].ttl_ms = ms;
    extend_if_held(c, k);
    pass(3 * longest_round_trip_us() + 1 * MS);
}

/* The holder extends for long, then for less, when a server has lost the key: there the key is repaired for the
   shorter time. It must be kept there too, as another server hangs. R10 */
static void holder_keeps_for_less(void)
{
    unsigned k, stops;
    struct client *c = holder(&k);
    int server = (int)roll(server_count);

    extend_for(c, k, longest_ms);
    vanish(server);
    extend_for(c, k, ttl_ms / 2);
    pass((5 * node_timeout_ms + 1) * MS);
    extend_for(c, k, ttl_ms / 2);
    if (c->wishes[k].what != ' ' || c->locks[k].valid_until_us == 0)
        return;
    catch_up(c);
    start(c, k, 'k', 0);
    pass(longest_round_trip_us());
    stops = ((unsigned)server + 1 + roll(server_count - 1)) % server_count;
    if (machines[stops].away_until_us == 0) {
        machines[stops].away_until_us = now_us + longest_ms * MS;
        upset_all((int)stops, machines[stops].away_until_us);
        stale_servers = ~0U;
        note("server %u hangs", stops);
    }
    pass(longest_ms * MS);
}

static void strike(unsigned what)
{
    if (what < 1)
        old_bytes_arrive(1 + roll(3));
    else if (what < 2 && has(VANISH))
        vanish((int)roll(server_count));
    else if (what < 4)
        another_has_it((int)roll(server_count));
    else if (what < 6)
        holder_extends_often();
    else if (what == 6)
        holder_hands_over();
    else if (what == 7 && (has(CRASH) || has(FORGET)))
        restart((int)roll(server_count));
    else if (what == 8)
        repairs_are_late();
    else if (has(VANISH) && roll(2) == 0)
        holder_keeps_for_less();
}

/* One move of profile LATE: what may matter when commands of closed connections run late. */
static void move(void)
{
    unsigned what = roll(22);

    if (what < 6)
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

static void let_go(void)
{
    unsigned i, k;

    for (i = 0; i < client_count; i++)
        for (k = 0; k < lock_count; k++)
            redlock_cancel(&clients[i].redlock, &clients[i].locks[k]);
    for (i = 0; i < client_count; i++)
        client_runs(&clients[i]);
    pass((2 * longest_ms + 40 * (uint64_t)node_timeout_ms) * MS);
    for (i = 0; i < client_count; i++)
        for (k = 0; k < lock_count; k++) {
            if (clients[i].locks[k].status == REDLOCK_PENDING)
                violated("an operation that does not end when all is well");
            redlock_abandon(&clients[i].redlock, &clients[i].locks[k]);
        }
}

/* The faults of a run. Never one with another seed only: `beyond` are those that break what is assumed. */
static unsigned draw_faults(int beyond)
{
    unsigned faults = ((roll(1 << VANISH) | (roll(2) == 0 ? 1U << RATES : 0)) & roll(1 << VANISH)) |
                      (roll(3) == 0 ? 1U << roll(VANISH) : 0);

    if (profile == LATE || profile == HANDED)
        faults = 1U << STUCK | (roll(1 << VANISH) & roll(1 << VANISH) &
                                (1U << CRASH | 1U << CUT | 1U << HOLE | 1U << HANG | 1U << PAUSE |
                                 1U << DEATH | 1U << RATES));
    else if (profile == TWICE)
        faults = 1U << CUT | roll(2) << CRASH |
                 (faults & (1U << CRASH | 1U << SLOW | 1U << STUCK | 1U << DRIP));
    else if (profile == HEALTHY)
        faults = roll(2) << RATES;
    if (!REDLOCK_MARKER || beyond)
        faults &= ~(1U << FLUSH);
    if (beyond && profile == LATE)
        faults |= 1U << VANISH | roll(2) << FORGET;
    else if (beyond)
        faults |= (1 + roll(7)) << VANISH;
    return faults;
}

/* What a profile decides. */
static void draw_world(void)
{
    unsigned drawn = roll(12);

    profile = drawn < 6                              ? ANY
              : drawn < 8                            ? LATE
              : drawn < 10                           ? HEALTHY
              : drawn < 11 || !REDLOCK_RESTART_GUARD ? HANDED
                                                     : TWICE;
    profiles_seen[profile]++;
    node_count = 1 + roll(SERVERS);
    client_count = 1 + roll(CLIENTS);
    lock_count = FEW;
    node_timeout_ms = 5 + roll(30);
    ttl_ms = 100 + roll(4) * 300 + roll(100);
    if (profile != ANY && node_count > 3 && roll(4) > 0)
        node_count = 3;
    if (profile == LATE || profile == HANDED) {
        if (node_count < 3 && SERVERS >= 3)
            node_count = 3;
        client_count = 2 + roll(2);
        lock_count = 1 + roll(2);
        node_timeout_ms = 5 + roll(10);
    }
    if (profile == TWICE && node_count < 3 && SERVERS >= 3)
        node_count = 3;
    if (profile == TWICE)
        node_timeout_ms += roll(2) * 50; /* a node that was denied is tried again within it */
    bursts = profile == HEALTHY && roll(4) == 0;
    if (bursts) {
        client_count = 1;
        lock_count = LOCKS;
    }
    ttl_ms += ttl_ms % 2;
    quorum = node_count / 2 + 1;
}

/* Which server each node is, and how it is reached. */
static void draw_nodes(void)
{
    enum { SIZE = REDLOCK_SEND_MAX < 1000 ? REDLOCK_SEND_MAX : 1000 };
    static char long_secret[SIZE];
    unsigned i, first = roll(node_count), second = roll(node_count);
    int secrets = roll(4) == 0, databases = roll(profile == TWICE ? 2 : 4) == 0;

    server_count = node_count;
    twin = -1;
    for (i = 0; i < node_count; i++) {
        server_of[i] = (int)i;
        database[i] = databases ? roll(3) : 0;
        secret[i] = secrets && roll(2) == 0 ? "one two" : NULL;
    }
    if (secrets && roll(4) == 0) { /* HELLO leaves little room, or none */
        memset(long_secret, 'x', sizeof long_secret);
        long_secret[SIZE - 54 - roll(24)] = '\0';
        secret[first] = long_secret;
    }
    if (profile != TWICE || first >= second)
        return;
    server_count--;
    server_of[second] = twin = server_of[first];
    for (i = second + 1; i < node_count; i++)
        server_of[i]--;
}

/* What is drawn once for each run. */
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
    win_count = 0;
    event = 0;
    broken = NULL;
    calm = swapped = returning = 0;
    aimed = -1;
    digest = 14695981039346656037U;
    now_us = SECOND;
    next_check_us = REDLOCK_NEVER;
    slowest_us = 0;
    dice = seed * 2654435769U + 1;
    for (i = 0; i < 8; i++)
        roll(2);
    entropy = dice;
    draw_world();
    draw_nodes();
    memset(machines, 0, server_count * sizeof *machines);
    memset(clients, 0, client_count * sizeof *clients);
    if (profile == HEALTHY)
        beyond = 0;
    else if (profile == LATE && roll(3) == 0)
        beyond = 1;
    on = draw_faults(beyond);
    if (twin >=
        0) /* a restart that the other connection has not noticed looks like another server */
        on &= ~(1U << STUCK | 1U << HOLE);
    lazy = roll(4) == 0;
    in_moves = profile == LATE && roll(4) > 0;
    marked = on >> FLUSH & 1;
    durable = REDLOCK_DURABLE && roll(profile == ANY ? 3 : 8) == 0 && !marked;
    if (!REDLOCK_RESTART_GUARD && !durable && !beyond)
        on &= ~(1U << FORGET); /* nothing guards against that */
    guarded = marked || (REDLOCK_RESTART_GUARD && (on >> FORGET & 1) != 0 && !durable &&
                         !(beyond && roll(2)));
    longest_ms = ttl_ms * (guarded && roll(4) > 0 ? 1 : 3);
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
        m->mini.no_info = has(OLD) && roll(3) == 0 && !marked;
        m->mini.native = (int)roll(8);
        m->mini.password = secret[i];
        m->started_us = server_us(m) - 1000 * SECOND;
        m->sweep_us = now_us + roll(100) * MS;
        faults_seen[OLD] += (unsigned)(m->mini.old + m->mini.no_pushes + m->mini.no_info);
    }
    if (profile == LATE && roll(3) == 0) { /* one server fewer than there should be */
        machines[0].away_until_us = now_us + roll(20 * longest_ms) * MS;
        upset_all(0, machines[0].away_until_us);
    }
    draw_distances();
    faults_seen[RATES] += has(RATES) != 0;
    for (i = 0; i < client_count; i++) {
        struct client *c = &clients[i];
        static const struct redlock_io io = {sim_dial, sim_ready, sim_transmit, sim_receive,
                                             sim_shut, sim_now,   sim_entropy,  NULL,
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

static const char *history(uint32_t seed)
{
    unsigned i;

    draw(seed);
    note("seed %lu: profile %d, %u clients, %u nodes on %u servers, ttl %lu ms, node timeout %lu "
         "ms, "
         "faults %x%s%s",
         (unsigned long)seed, (int)profile, client_count, node_count, server_count,
         (unsigned long)ttl_ms, (unsigned long)node_timeout_ms, on, guarded ? ", guarded" : "",
         durable ? ", durable" : "");
    set_up();
    if (in_moves)
        many_moves();
    else
        pass((profile == LATE ? 30U : 8 + roll(8)) * ttl_ms * MS);
    if (broken == NULL) {
        mend();
        pass(2 * longest_ms * MS); /* pauses end, connections come back */
    }
    if (broken == NULL)
        let_go();
    for (i = 0; i < server_count; i++) /* after a jump it may be any time until they expire */
        if (on >> JUMP & 1)
            sweep((int)i, EXPIRING);
    if (broken == NULL)
        pass((2 * longest_ms + 4000) * MS);
    if (broken == NULL)
        all_is_well();
    if (broken == NULL)
        a_majority_is_well();
    for (i = 0; i < client_count; i++)
        redlock_deinit(&clients[i].redlock);
    for (i = 0; i < LINKS && broken == NULL; i++)
        if (links[i].open)
            violated("a connection is left");
    return broken;
}

/* ---- The program ---------------------------------------------------------------------------- */

static void print_table(void)
{
    unsigned i, k;

    printf("# %lu events, %lu locks got, %lu extensions, %lu handed over, %lu on all servers\n",
           events_seen, wins_seen, extensions_seen, handed_seen, everywhere_seen);
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
        const char *promise = history(seed);
        uint64_t same = digest;
        if (promise != NULL) {
            ok(0, "seed %lu: %s (sim %lu trace)", (unsigned long)seed, promise,
               (unsigned long)seed);
            wrong++;
            if (trace_from > 0) { /* the end of it */
                trace_from = broken_at < 40 ? 0 : broken_at - 40;
                history(seed);
                trace_from = ULONG_MAX;
            }
        }
        if (seed - first < 20 && trace_from > 0) {
            history(seed);
            if (digest != same)
                ok(0, "seed %lu: another history the second time", (unsigned long)seed);
        }
    }
    ok(wrong == 0, "%lu histories: no promise broken", (unsigned long)count);
    print_table();
    for (i = 0; i < FAULTS; i++)
        kinds += faults_seen[i] > 0;
    kinds += !REDLOCK_NOTIFICATION + !REDLOCK_MARKER; /* no DEAF, no FLUSH */
    ok(count < 1000 || kinds == FAULTS, "with %u of %u kinds of faults", kinds, FAULTS);
    return done_testing();
}
