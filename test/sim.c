/* sim.c - whole histories in one process: several clients (the real redlock.c and resp.c), several servers
   (mini.h), a clock for each host, and the network between them. All comes from one seed:

       sim FIRST COUNT     histories of so many seeds; a broken promise is printed with its seed
       sim FIRST trace     one history, event by event

   Each history draws which faults it has. In three of four they keep to what the README assumes (clocks of
   nearly one rate, no key lost behind the library's back): then no two clients hold a lock at once, and who
   holds one has it on a quorum. In the fourth, clocks jump and keys vanish: what is left to promise is that
   fencing tokens grow, that who extends a lock has had it all the time, and that it ends. In the end all faults are mended: then every lock can be had within
   its ttl, results say what is true, and no key is left.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
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
    LOCKS = 3, /* of a client */
    SLOTS =
        3, /* connections of a client to a server: one, and old ones whose bytes are under way */
    SERVER_LINKS = CLIENTS * SLOTS,
    LINKS = SERVERS * SERVER_LINKS,
    ROOM = 20000,
    PARTS = 400,
    WINS = 4000,
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
    "servers hung",         "servers crashed",   "servers forgot",  "connections cut",
    "partitions",           "full connections",  "slow servers",    "nonsense said",
    "clients paused",       "clients died",      "bytes that drip", "pushes lost or late",
    "clocks' rates",        "old servers",       "servers flushed", "keys vanished",
    "server clocks jumped", "wall clocks jumped"};

/* ---- What there is -------------------------------------------------------------------------- */

/* Bytes under way in one direction, in parts that arrive one after the other. */
struct flow {
    uint64_t next_us;              /* the next part arrives */
    uint64_t last_us;              /* and the last: nothing overtakes */
    unsigned first, arrived, used; /* bytes[first..arrived) are there, [arrived..used) under way */
    unsigned part, parts_used;
    struct {
        unsigned size;
        uint64_t at_us;
    } parts[PARTS];
    char bytes[ROOM];
};

struct link {
    int client, server;
    int open;    /* the client has it */
    int served;  /* the server has it */
    int refused; /* nobody was there */
    int full;
    uint64_t up_us;
    struct flow to, back;
    struct mini_session session;
};

struct machine {
    struct mini_server mini;
    struct mini_key disk[MINI_KEYS]; /* its keys, as they were when it last wrote them there */
    int64_t ppm, step_us;
    uint64_t base_us, started_us; /* on its clock */
    uint64_t sweep_us;            /* when it next looks for expired keys */
    uint64_t away_until_us;       /* hung, or down; 0: neither */
    uint64_t delay_us;
    int down, nonsense;
};

/* One lock of a client and what the simulator knows of it. */
struct wish {
    uint64_t began_us;   /* the operation in progress, true time */
    uint64_t allowed_us; /* for it, but for pauses */
    uint64_t paused_us;  /* of the client, by then */
    uint64_t won_us;     /* the lock was got then */
    uint64_t valid_us;   /* what it said last */
    char what;           /* 'a'cquire, 'e'xtend, 'r'elease, 'k'eep */
};

struct client {
    struct redlock redlock;
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
    int link[SERVERS]; /* index; -1: none */
    int hole[SERVERS];
};

/* A lock that was got. */
struct win {
    int key; /* index */
    uint64_t began_us, done_us, fence;
};

static struct link links[LINKS];
static struct machine machines[SERVERS];
static struct client clients[CLIENTS];
static struct win wins[WINS];
static unsigned win_count, client_count, server_count, quorum;
static uint64_t now_us, digest;
static uint32_t dice, entropy;
static unsigned on; /* bit f: this history has fault f */
static int calm, guarded;
static int marked;    /* guarded, and all locks are fenced: servers may also be flushed. R18 */
static int durable;   /* votes are: servers forget what is not on their disk. No guard is needed */
static int swapped;   /* a server has other commands than before, on the same connections */
static int returning; /* what had been deleted was there again after a crash */
static unsigned long event, broken_at, trace_from = ULONG_MAX; /* events of this history */
static uint32_t ttl_ms, node_timeout_ms;
static const char *broken; /* the promise that was */
/* Bit i: when it next runs, which is in next_us, must be worked out again. */
static unsigned stale_servers, stale_clients;
static uint64_t next_us[2][CLIENTS > SERVERS ? CLIENTS : SERVERS];
static unsigned long faults_seen[FAULTS], outcomes[4][STATUSES], events_seen, wins_seen,
    extensions_seen;

static const char *const key_names[2] = {"k0", "k1"};
static const struct redlock_key second_key = {"k1", 2};

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

/* Is it in this history, and now? Counted. */
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
    if (broken == NULL) {
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
    return 50 + roll(200) + (m->delay_us > 0 ? roll((unsigned)m->delay_us) : 0);
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

/* A server says something. */
static void say(struct link *link, const char *bytes, unsigned size, uint64_t from_us)
{
    stale_clients |= 1U << link->client;
    flow_put(&link->back, bytes, size, from_us, &machines[link->server]);
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

/* The server's end is gone: it reads no more; what it has said may still come. */
static void link_cut(struct link *link)
{
    if (!link->served)
        return;
    link->served = 0;
    stale_clients |= 1U << link->client;
    flow_clear(&link->to);
    flow_cut(&link->back);
}

/* All connections of a server, 0 <= i < SERVER_LINKS, also those that are not in use. */
static struct link *link_of(int server, unsigned i)
{
    return &links[(i / SLOTS * SERVERS + (unsigned)server) * SLOTS + i % SLOTS];
}

static int in_hole(const struct link *link)
{
    return clients[link->client].hole[link->server];
}

/* ---- Servers -------------------------------------------------------------------------------- */

static void tell(const struct link *changer, int server, struct mini_word name)
{
    char push[MINI_REPLY];
    unsigned i, size;

    for (i = 0; i < SERVER_LINKS; i++) {
        struct link *link = link_of(server, i);
        if (link == changer || !link->served)
            continue;
        size = mini_told(&link->session, name, push);
        if (size > 0 && !strikes(DEAF, 2))
            say(link, push, size, now_us + (strikes(DEAF, 3) ? roll(300) * MS : 0));
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

static void obey(struct link *link, struct mini_command *command)
{
    static const char *const nonsense[] = {"+QUEUED\r\n", "-ERR no\r\n",  "$3\r\nabc\r\n",
                                           "?\r\n",       "-BUSY no\r\n", "*0\r\n"};
    struct machine *m = at_its_time(link->server);
    int has_token = mini_is_of_a_lock(command) && command->kind != 'P';
    char reply[MINI_REPLY];
    unsigned size, i;

    if (m->sweep_us != REDLOCK_NEVER)
        sweep(link->server, EXPIRED); /* an expired key is noticed when it is looked at */
    if (mini_is_of_a_lock(command)) {
        if ((has_token && command->arguments[0].size != 40) || command->keys[0].size != 2)
            violated("a command of nobody's lock");
        if (m->nonsense && strikes(NONSENSE, 1)) {
            m->nonsense = 0;
            i = roll(6);
            say(link, nonsense[i], (unsigned)strlen(nonsense[i]), now_us);
            note("server %d: nonsense %u", link->server, i);
            return;
        }
    }
    if (durable) {
        m->mini.synced = !calm && roll(8) == 0 ? "*2\r\n:0\r\n:0\r\n" : "*2\r\n:1\r\n:0\r\n";
        if (command->kind == 'W' && m->mini.synced[5] == '1')
            memcpy(m->disk, m->mini.keys, sizeof m->disk);
    }
    size = mini_run(&m->mini, &link->session, command, reply);
    note("server %d: client %d %c %.8s: %.*s", link->server, link->client, command->kind,
         has_token ? command->arguments[0].bytes : "        ", (int)size - 2, reply);
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
        link->served = 0; /* the client had closed it, and all that it had sent is done */
}

static void crash(int server, int forgets)
{
    struct machine *m = &machines[server];
    unsigned i;

    for (i = 0; i < SERVER_LINKS; i++)
        link_cut(link_of(server, i));
    for (i = 0; forgets && i < m->mini.used; i++)
        if (durable)
            m->mini.keys[i] = m->disk[i];
        else if (m->mini.keys[i].until_us != UINT64_MAX)
            m->mini.keys[i].name.size = 0;
    returning |= forgets && durable;
    m->down = 1;
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
    note("server %d is back", server);
}

/* When something happens on it by itself. */
static uint64_t server_next_us(int server)
{
    const struct machine *m = &machines[server];
    uint64_t next = m->sweep_us;
    unsigned i;

    if (m->away_until_us > 0)
        return m->away_until_us;
    for (i = 0; i < SERVER_LINKS; i++) {
        const struct link *link = link_of(server, i);
        if (link->served && !in_hole(link) && link->to.next_us < next)
            next = link->to.next_us;
    }
    return next;
}

static void server_runs(int server)
{
    struct machine *m = &machines[server];
    unsigned i, first = roll(SERVER_LINKS); /* after a pause: no order between connections */

    if (m->away_until_us > 0)
        come_back(server);
    for (i = 0; i < SERVER_LINKS; i++) {
        struct link *link = link_of(server, (first + i) % SERVER_LINKS);
        if (link->served && !in_hole(link) && link->to.next_us <= now_us)
            serve_link(link);
    }
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

    c->here_us += pause_us;
    c->paused_us += pause_us;
    note("client %d is stopped", number_of(c));
}

/* Every call takes a moment; sometimes the process is stopped in the middle of it. */
static void a_moment(struct client *c)
{
    c->here_us += roll(4);
    if (strikes(PAUSE, 2000))
        stop(c);
}

static int sim_dial(void *context, struct redlock_node *node)
{
    struct client *c = self(context);
    int server = atoi(node->address);
    unsigned i;
    struct link *link = NULL, *slot;

    a_moment(c);
    for (i = 0; i < SLOTS; i++) {
        slot = link_of(server, (unsigned)number_of(c) * SLOTS + i);
        if (!slot->open && (link == NULL || !slot->served))
            link = slot; /* if none is free, an old one's bytes are lost */
    }
    if (link == NULL) {
        violated("a connection that was not closed");
        return -1;
    }
    memset(&link->session, 0, sizeof link->session);
    flow_clear(&link->to);
    flow_clear(&link->back);
    link->client = number_of(c);
    link->server = server;
    link->open = 1;
    link->full = 0;
    link->refused = machines[server].down;
    link->served = !link->refused;
    link->up_us = c->here_us + delay_us(&machines[server]);
    c->link[server] = (int)(link - links);
    node->handle = c->link[server];
    return 0;
}

static int sim_ready(void *context, struct redlock_node *node)
{
    struct client *c = self(context);
    const struct link *link = &links[node->handle];

    if (in_hole(link) || c->here_us < link->up_us)
        return 0;
    if (!link->refused && link->served)
        return 1;
    redlock_trouble(node, "connect", "refused");
    return -1;
}

static int sim_transmit(void *context, struct redlock_node *node, const void *bytes, size_t size)
{
    struct client *c = self(context);
    struct link *link = &links[node->handle];

    a_moment(c);
    if (!link->served) {
        redlock_trouble(node, "send", "broken pipe");
        return -1;
    }
    if (link->full)
        return 0;
    if (has(FULL) && roll(8) == 0)
        size = 1 + roll((unsigned)size);
    size = flow_put(&link->to, (const char *)bytes, (unsigned)size, c->here_us,
                    &machines[link->server]);
    if (!in_hole(link) && machines[link->server].away_until_us == 0 &&
        link->to.next_us < next_us[0][link->server])
        next_us[0][link->server] = link->to.next_us;
    return (int)size;
}

static int sim_receive(void *context, struct redlock_node *node, void *bytes, size_t size)
{
    struct client *c = self(context);
    struct link *link = &links[node->handle];
    struct flow *back = &link->back;
    unsigned there;

    a_moment(c);
    if (!in_hole(link))
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
    if (link->served || in_hole(link) || back->part < back->parts_used)
        return 0;
    redlock_trouble(node, "receive", "closed by the server");
    return -1;
}

static void sim_shut(void *context, struct redlock_node *node)
{
    struct client *c = self(context);
    struct link *link = &links[node->handle];

    if (!link->open)
        violated("closed twice");
    link->open = 0;
    if (link->served && link->to.part == link->to.parts_used &&
        machines[link->server].away_until_us == 0)
        link->served = 0;
    c->link[link->server] = -1;
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

static int share_a_key(const struct redlock_lock *a, const struct redlock_lock *b)
{
    return memcmp(a->key, b->key, 2) == 0 || a->more_keys > 0 || b->more_keys > 0;
}

/* The true moment at which the holder's own clock says that it ends; 0: not held. */
static uint64_t held_until_us(const struct client *c, const struct redlock_lock *lock)
{
    return lock->valid_until_us == 0 ? 0 : true_us(c, lock->valid_until_us);
}

static unsigned nodes_that_have(const struct redlock_lock *lock)
{
    char hex[48];
    unsigned i, n, have = 0;

    for (i = 0; i < sizeof lock->token; i++)
        sprintf(hex + 2 * i, "%02x", lock->token[i]);
    for (n = 0; n < server_count; n++) {
        const struct mini_key *key = mini_find(&at_its_time((int)n)->mini, lock->key, 2);
        have += key != NULL && key->value_size == 40 && memcmp(key->value, hex, 40) == 0;
    }
    return have;
}

static void check_holders(const struct client *c)
{
    unsigned i, j, k;

    if (on >> VANISH != 0) /* beyond what is assumed */
        return;
    for (i = 0; i < LOCKS; i++) {
        const struct redlock_lock *lock = &c->locks[i];
        if (held_until_us(c, lock) <= c->here_us)
            continue;
        if (!(on >> FORGET & 1) && !marked && nodes_that_have(lock) < quorum)
            violated("a holder without a quorum");
        for (j = 0; j < client_count; j++)
            for (k = 0; k < LOCKS; k++) {
                const struct redlock_lock *other = &clients[j].locks[k];
                if (other != lock && share_a_key(lock, other) &&
                    held_until_us(&clients[j], other) > c->here_us)
                    violated("two holders at once");
            }
    }
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
    win->key = ((const char *)lock->key)[1] - '0';
    win->began_us = wish->began_us;
    win->done_us = c->here_us;
    win->fence = lock->fence;
    win_count++;
    if (!lock->fenced)
        return;
    if (win->fence == 0)
        violated("no fencing token");
    for (i = 0; i + 1 < win_count; i++) {
        if (wins[i].key != win->key || wins[i].fence == 0)
            continue;
        if (wins[i].fence == win->fence)
            violated("a fencing token twice");
        if (wins[i].done_us < win->began_us && wins[i].fence > win->fence)
            violated("a fencing token that did not grow");
    }
}

/* Who extends it has had it all the time: nobody got it in between. No clock, no ttl is needed for that. */
static void check_extension(const struct client *c, const struct redlock_lock *lock,
                            struct wish *wish)
{
    /* The round that gave it this validity, by its drift of 1 % and 2 ms: the next may have begun by now. */
    uint64_t began_us =
        true_us(c, lock->valid_until_us + 2001 + lock->ttl_ms * 10U - lock->ttl_ms * MS);
    int key = ((const char *)lock->key)[1] - '0';
    unsigned i;

    if (lock->valid_until_us <= wish->valid_us)
        return;
    wish->valid_us = lock->valid_until_us;
    extensions_seen++;
    for (i = 0; i < win_count; i++)
        if (wins[i].key == key && wins[i].began_us > wish->won_us && wins[i].done_us < began_us)
            violated("extended, though another had it meanwhile");
}

static void check_time(const struct client *c, const struct wish *wish)
{
    uint64_t allowed_us = wish->allowed_us + c->paused_us - wish->paused_us;

    if (c->here_us > wish->began_us + allowed_us + allowed_us / 50)
        violated("an operation that does not end");
}

/* ---- Clients -------------------------------------------------------------------------------- */

static void collect(struct client *c)
{
    struct redlock_lock *lock;

    while ((lock = redlock_next_done(&c->redlock)) != NULL) {
        struct wish *wish = &c->wishes[lock - c->locks];
        int status = (int)lock->status;
        note("client %d lock %d %c: %s", number_of(c), (int)(lock - c->locks), wish->what,
             redlock_strerror(status));
        count_outcome(wish->what, status);
        if (wish->what == 'a' && status == REDLOCK_OK) {
            check_win(c, lock, wish);
            wish->won_us = c->here_us;
            wish->valid_us = lock->valid_until_us;
        }
        wish->what = ' ';
    }
}

/* What a program's loop does when something has happened. */
static void client_runs(struct client *c)
{
    uint64_t wait_us;
    unsigned n, turns = 0;

    catch_up(c);
    for (n = 0; n < server_count; n++) {
        unsigned wanted = redlock_interest(&c->redlock, n);
        if (wanted != 0)
            redlock_event(&c->redlock, n, wanted); /* not all of it may be so: harmless */
    }
    do {
        wait_us = redlock_tick(&c->redlock);
        collect(c);
    } while (wait_us == 0 && ++turns < 200);
    if (turns == 200)
        violated("a loop without end");
    c->timer_us = wait_us == REDLOCK_NEVER ? REDLOCK_NEVER : true_us(c, sim_now(c) + wait_us) + 1;
    for (n = 0; n < server_count; n++)
        c->interest[n] = (uint8_t)redlock_interest(&c->redlock, n);
    for (n = 0; n < LOCKS; n++) {
        if (c->locks[n].status == REDLOCK_PENDING)
            check_time(c, &c->wishes[n]);
        if (c->locks[n].valid_until_us != 0)
            check_extension(c, &c->locks[n], &c->wishes[n]);
    }
    check_holders(c);
}

static uint64_t link_next_us(const struct client *c, int server)
{
    const struct link *link = &links[c->link[server]];

    if (link->full && (c->interest[server] & REDLOCK_READABLE) == 0)
        return REDLOCK_NEVER;
    if (in_hole(link))
        return REDLOCK_NEVER;
    if (c->nodes[server].state == REDLOCK_NODE_DIALLING)
        return link->up_us;
    if ((c->interest[server] & REDLOCK_WRITABLE) && !link->full && link->to.used < ROOM)
        return c->here_us + 10;
    if (link->back.arrived > link->back.first ||
        (!link->served && link->back.part == link->back.parts_used))
        return c->here_us;
    return link->back.next_us;
}

static uint64_t client_next_us(const struct client *c)
{
    uint64_t next = c->timer_us < c->action_us ? c->timer_us : c->action_us;
    unsigned n;

    for (n = 0; n < server_count; n++)
        if (c->link[n] >= 0 && c->interest[n] != 0 && link_next_us(c, (int)n) < next)
            next = link_next_us(c, (int)n);
    return next > c->here_us ? next : c->here_us;
}

static void begin_client(struct client *c)
{
    static const char *const addresses[] = {"0", "1", "2", "3", "4", "5", "6"};
    struct redlock_settings settings;
    unsigned i;

    memset(&settings, 0, sizeof settings);
    memset(c->nodes, 0, sizeof c->nodes);
    settings.node_timeout_ms = node_timeout_ms;
    settings.stall_ms = 4 * node_timeout_ms;
    settings.longest_ttl_ms = guarded ? ttl_ms : 0;
    settings.durable = (uint32_t)durable;
    settings.retry_delay_ms = 1 + node_timeout_ms;
    for (i = 0; i < server_count; i++) {
        c->nodes[i].address = addresses[i];
        c->link[i] = -1;
    }
    if (redlock_init(&c->redlock, &c->io, c->nodes, server_count, &settings) != REDLOCK_OK)
        violated("init");
    for (i = 0; i < LOCKS; i++) {
        unsigned key = roll(2);
        redlock_lock_init(&c->locks[i], key_names[key], 2, ttl_ms);
        if (roll(4) == 0) {
            c->locks[i].holder = c->holder;
            c->locks[i].holder_size = sizeof c->holder;
        }
        c->wishes[i].what = ' ';
        if (marked || (REDLOCK_FENCING && roll(2) == 0)) {
            c->locks[i].fenced = 1;
        } else if (REDLOCK_SEVERAL_KEYS && key == 0 && roll(3) == 0) {
            c->locks[i].more = &second_key;
            c->locks[i].more_keys = 1;
        }
    }
    c->timer_us = REDLOCK_NEVER;
}

static int start(struct client *c, unsigned i, char what, uint32_t wait_ms)
{
    struct redlock_lock *lock = &c->locks[i];
    struct wish *wish = &c->wishes[i];
    enum redlock_status status;

    wish->began_us = c->here_us;
    wish->paused_us = c->paused_us;
    wish->allowed_us = (wait_ms + 60 * (uint64_t)node_timeout_ms) * MS;
    if (lock->fenced)
        wish->allowed_us *= 4;
    if (what == 'a') {
        status = redlock_acquire_start(&c->redlock, lock, wait_ms);
    } else if (what == 'e') {
        status = redlock_extend_start(&c->redlock, lock);
    } else if (what == 'r') {
        status = redlock_release_start(&c->redlock, lock, wait_ms);
    } else {
        unsigned keeps = 1 + roll(6);
        wish->allowed_us = (keeps + 2) * ttl_ms * MS;
        status = redlock_keep_start(&c->redlock, lock, keeps);
    }
    note("client %d lock %u %c starts: %s", number_of(c), i, what, redlock_strerror((int)status));
    if (status == REDLOCK_PENDING)
        wish->what = what;
    else
        count_outcome(what, (int)status);
    return (int)status;
}

/* Something that a program might do. */
static void act(struct client *c)
{
    unsigned i = roll(LOCKS), what = roll(16);
    struct redlock_lock *lock = &c->locks[i];

    if (lock->status == REDLOCK_PENDING && c->wishes[i].what == 'k' && what < 4)
        start(c, i, 'r', roll(200));
    else if (lock->status == REDLOCK_PENDING && what == 4)
        redlock_cancel(&c->redlock, lock);
    else if (lock->status == REDLOCK_PENDING)
        return;
    else if (lock->valid_until_us == 0)
        start(c, i, what < 13 ? 'a' : what < 14 ? 'e' : 'r', roll(2) * roll(4 * ttl_ms));
    else if (what < 5)
        start(c, i, 'e', 0);
    else if (what < 8)
        start(c, i, 'k', 0);
    else if (what < 15)
        start(c, i, 'r', roll(2) * roll(300));
    else
        redlock_forget(&c->redlock, lock);
}

/* ---- Faults --------------------------------------------------------------------------------- */

static void fault_of_a_client(struct client *c)
{
    unsigned i;

    if (strikes(PAUSE, 12))
        stop(c);
    if (strikes(DEATH, 60)) {
        redlock_deinit(&c->redlock);
        for (i = 0; i < server_count; i++)
            if (c->link[i] >= 0)
                violated("a connection is left");
        begin_client(c);
        note("client %d died, another begins", number_of(c));
    }
    if (strikes(WALL, 10))
        c->wall_step_us = (int64_t)roll(2000000000) - 1000000000;
    i = roll(server_count);
    if (strikes(HOLE, 10))
        c->hole[i] ^= 1;
    if (c->link[i] >= 0 && strikes(CUT, 6)) {
        note("client %d server %u cut", number_of(c), i);
        link_cut(&links[c->link[i]]);
    }
    if (c->link[i] >= 0 && strikes(FULL, 6))
        links[c->link[i]].full ^= 1;
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
        if (strikes(SLOW, 6))
            m->delay_us = roll(2) * roll(2 * node_timeout_ms) * MS;
        m->nonsense |= has(NONSENSE) && roll(6) == 0;
        if (strikes(OLD, 12)) {
            m->mini.native = (int)roll(8);
            swapped = 1;
        }
        if (strikes(FLUSH, 6)) {
            sweep(server, ALL);
            note("server %d is flushed", server);
        }
        if (strikes(VANISH, 6))
            sweep(server, EXPIRING);
        if (strikes(JUMP, 10))
            m->step_us += (int64_t)roll(4 * ttl_ms) * 1000 - (int64_t)ttl_ms * 2000;
        return;
    }
    m->away_until_us = now_us + 1 + roll(3 * ttl_ms) * MS;
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
    }
    for (i = 0; i < client_count; i++) {
        clients[i].action_us = REDLOCK_NEVER;
        for (n = 0; n < server_count; n++)
            clients[i].hole[n] = 0;
    }
    for (i = 0; i < LINKS; i++)
        links[i].full = 0;
    note("all is mended");
}

/* ---- A history ------------------------------------------------------------------------------ */

/* The next thing that happens, before `end_us`; 0: nothing does. */
static int step(uint64_t end_us)
{
    uint64_t next = end_us;
    int i, who = -1;

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
        if (next_us[1][i] < next) {
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
        if (!calm && roll(100) == 0)
            fault_of_a_server(who);
        server_runs(who);
        stale_servers |= 1U << who;
    } else {
        struct client *c = &clients[who - SERVERS];
        if (c->action_us <= now_us) {
            catch_up(c);
            c->action_us = now_us + 1 + roll(ttl_ms) * MS / 2;
            act(c);
        }
        client_runs(c);
        stale_clients |= 1U << (who - SERVERS);
        if (!calm && roll(40) == 0) {
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

/* A lock of each client, one after the other, with nobody in the way. */
static void all_is_well(void)
{
    /* who was not waited for may not have known the command any more: then the key ends with its ttl */
    uint64_t released_us = swapped || returning ? (2 * ttl_ms + 100) * MS : 20 * MS;
    unsigned i;

    for (i = 0; i < client_count && broken == NULL; i++) {
        struct client *c = &clients[i], *other = &clients[(i + 1) % client_count];
        unsigned k = roll(LOCKS);
        expect(at_once(c, k, 'a', 5000), REDLOCK_OK, "a lock that nobody can get");
        expect(at_once(c, k, 'e', 0), REDLOCK_OK, "an extension that fails for no reason");
        if (other != c && share_a_key(&c->locks[k], &other->locks[0])) {
            int got = at_once(other, 0, 'a', 0);
            if (got != REDLOCK_HELD && got != REDLOCK_UNREACHABLE) /* connections that pause */
                violated("a lock that is held, but that is not said");
        }
        expect(at_once(c, k, 'r', 5000), REDLOCK_OK, "a release that fails for no reason");
        pass(released_us);
        expect(at_once(c, k, 'a', 0), REDLOCK_OK, "a free lock that is refused");
        expect(at_once(c, k, 'r', 5000), REDLOCK_OK, "a release that fails for no reason");
        expect(at_once(c, k, 'r', 5000), REDLOCK_GONE, "gone, but that is not said");
        pass(released_us);
    }
    if (keys_left() > 0)
        violated("a key that is left");
}

/* As many servers crash or hang as may. The others are enough, at the first attempt. */
static void a_majority_is_well(void)
{
    unsigned i, first = roll(server_count);

    for (i = 0; i < client_count * LOCKS && broken == NULL && guarded; i++)
        if (clients[i / LOCKS].locks[i % LOCKS].fenced) { /* all servers are marked. R18 */
            at_once(&clients[i / LOCKS], i % LOCKS, 'a', 5000);
            at_once(&clients[i / LOCKS], i % LOCKS, 'r', 5000);
        }
    pass((2 * ttl_ms + 4000) * MS); /* connections are up: until the last has its vote. R14 */
    for (i = 0; i < server_count - quorum; i++) {
        int server = (int)((first + i) % server_count);
        if (roll(2))
            crash(server, 1);
        machines[server].away_until_us = REDLOCK_NEVER;
    }
    for (i = 0; i < client_count && broken == NULL; i++) {
        unsigned k = roll(LOCKS);
        expect(at_once(&clients[i], k, 'a', 0), REDLOCK_OK, "a majority that gives no lock");
        expect(at_once(&clients[i], k, 'e', 0), REDLOCK_OK, "a majority that extends no lock");
        expect(at_once(&clients[i], k, 'r', 5000), REDLOCK_OK, "a majority that releases no lock");
        pass(20 * MS);
    }
}

static void let_go(void)
{
    unsigned i, k;

    for (i = 0; i < client_count; i++)
        for (k = 0; k < LOCKS; k++)
            redlock_cancel(&clients[i].redlock, &clients[i].locks[k]);
    for (i = 0; i < client_count; i++)
        client_runs(&clients[i]);
    pass((2 * ttl_ms + 40 * (uint64_t)node_timeout_ms) * MS);
    for (i = 0; i < client_count; i++)
        for (k = 0; k < LOCKS; k++) {
            if (clients[i].locks[k].status == REDLOCK_PENDING)
                violated("an operation that does not end when all is well");
            redlock_forget(&clients[i].redlock, &clients[i].locks[k]);
        }
}

/* What is drawn once for each history. */
static void draw(uint32_t seed)
{
    unsigned i;

    memset(machines, 0, sizeof machines);
    memset(clients, 0, sizeof clients);
    for (i = 0; i < LINKS; i++)
        links[i].open = links[i].served = 0;
    win_count = 0;
    event = 0;
    broken = NULL;
    calm = swapped = returning = 0;
    digest = 14695981039346656037U;
    now_us = SECOND;
    dice = seed * 2654435769U + 1;
    for (i = 0; i < 8; i++)
        roll(2);
    entropy = dice;
    on = ((roll(1 << VANISH) | (roll(2) == 0 ? 1 << RATES : 0)) & roll(1 << VANISH)) |
         (roll(3) == 0 ? 1U << roll(VANISH) : 0);
    if (!REDLOCK_MARKER || seed % 4 == 0)
        on &= ~(1U << FLUSH);
    if (seed % 4 == 0)
        on |= (1 + roll(7)) << VANISH;
    marked = on >> FLUSH & 1;
    server_count = 1 + roll(SERVERS);
    client_count = 1 + roll(CLIENTS);
    quorum = server_count / 2 + 1;
    ttl_ms = 100 + roll(4) * 300 + roll(100);
    node_timeout_ms = 5 + roll(30);
    durable = REDLOCK_DURABLE && roll(3) == 0 && !marked;
    guarded = marked || ((on >> FORGET & 1) != 0 && !durable);
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
        m->started_us = server_us(m) - 1000 * SECOND;
        m->sweep_us = now_us + roll(100) * MS;
        faults_seen[OLD] += (unsigned)(m->mini.old + m->mini.no_pushes + m->mini.no_info);
    }
    faults_seen[RATES] += has(RATES) != 0;
    for (i = 0; i < client_count; i++) {
        struct client *c = &clients[i];
        static const struct redlock_io io = {sim_dial, sim_ready, sim_transmit, sim_receive,
                                             sim_shut, sim_now,   sim_entropy,  NULL,
                                             NULL,     sim_wall,  NULL};
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
    note("seed %lu: %u clients, %u servers, ttl %lu ms, node timeout %lu ms, faults %x",
         (unsigned long)seed, client_count, server_count, (unsigned long)ttl_ms,
         (unsigned long)node_timeout_ms, on);
    set_up();
    pass((8 + roll(8)) * ttl_ms * MS);
    if (broken == NULL) {
        mend();
        pass(2 * ttl_ms * MS); /* pauses end, connections come back */
    }
    if (broken == NULL)
        let_go();
    for (i = 0; i < server_count; i++) /* after a jump it may be any time until they expire */
        if (on >> JUMP & 1)
            sweep((int)i, EXPIRING);
    if (broken == NULL)
        pass((2 * ttl_ms + 4000) * MS);
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

    printf("# %lu events, %lu locks got, %lu extensions\n", events_seen, wins_seen,
           extensions_seen);
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
    ok(count < 1000 || kinds == FAULTS, "with %u of %u kinds of faults", kinds, FAULTS);
    return done_testing();
}
