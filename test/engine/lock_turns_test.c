/* lock_turns_test.c - the turns that waiters of one lock have (R6, R7, R19): many clients on simulated servers, over a simulated
   network. Time is simulated, so the figures do not depend on the machine. Without arguments it checks bounds on them, as TAP.

   lock_turns_test NAME=NUMBER...   prints the figures of one run instead; the names stand at `options`

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "core.h"
#include "mini.h"
#include "tap.h"

#include <stdlib.h>
#include <string.h>

enum { CLIENTS = 64, SERVERS = 5, LOCKS = 64, BYTES = 8192, MESSAGES = 20000, MS = 1000 };

/* Of a run. Times in microseconds. */
static struct options {
    unsigned nodes, clients, locks, fair;
    unsigned delay, jitter; /* a message takes `delay`, and up to so many percent more */
    unsigned hold, rest, seconds;
    unsigned far;     /* the last quarter of the clients is so many times as far away */
    unsigned loops;   /* the first client takes each lock again at once */
    unsigned down;    /* so many nodes refuse connections */
    unsigned dead;    /* every ten seconds so many clients stop while they wait */
    unsigned restart; /* every ten seconds a node restarts empty */
    unsigned skew;    /* the clock of the first node is so many ms ahead */
    unsigned dialect; /* 1: servers as Redis 6.0 */
    unsigned denied;  /* so many nodes keep no queue */
    unsigned cancels; /* every so many waits is cancelled */
    unsigned lag;     /* a client is not served for up to so long, once in so many times */
    unsigned crash;   /* every ten seconds the holder stops */
    unsigned sick;    /* so many clients, the last ones, cannot get the lock */
    /* 0: their votes come too late; 1: all but one server do not hear them; 2: their votes come too
       late, and they are not served for up to 3 s, so that some of them seem to be in time */
    unsigned ails;
    unsigned onset; /* ms, until that begins */
    unsigned ttl;   /* ms */
    unsigned pause, fencing, seed;
} with;

static const struct {
    const char *name;
    unsigned *number, usual;
} options[] = {
    {"nodes", &with.nodes, 3},     {"clients", &with.clients, 8}, {"locks", &with.locks, 1},
    {"fair", &with.fair, 1},       {"delay", &with.delay, 200},   {"jitter", &with.jitter, 25},
    {"hold", &with.hold, 8000},    {"rest", &with.rest, 5000},    {"seconds", &with.seconds, 8},
    {"far", &with.far, 1},         {"loops", &with.loops, 0},     {"down", &with.down, 0},
    {"dead", &with.dead, 0},       {"restart", &with.restart, 0}, {"skew", &with.skew, 0},
    {"dialect", &with.dialect, 0}, {"denied", &with.denied, 0},   {"cancels", &with.cancels, 0},
    {"crash", &with.crash, 0},     {"ttl", &with.ttl, 3600000},   {"lag", &with.lag, 0},
    {"pause", &with.pause, 0},     {"fencing", &with.fencing, 0}, {"seed", &with.seed, 1},
    {"sick", &with.sick, 0},       {"ails", &with.ails, 0},       {"onset", &with.onset, 0},
};

struct message {
    uint64_t at_us, number;
    int client, server, back, epoch;
    unsigned size;
    char *bytes;
};
static struct message heap[MESSAGES];
static unsigned heap_used;
static uint64_t numbers;

static struct connection {
    struct mini_session session;
    uint64_t last_us[2]; /* the latest arrival in each direction: bytes arrive in order */
    char in[BYTES], out[BYTES];
    unsigned in_used, out_used;
    int epoch;
} connections[CLIENTS][SERVERS];

struct waiter {
    struct redlock_lock lock;
    uint64_t asked_us, release_us, again_us, cancel_us; /* it asked; it does this; 0: not */
    unsigned attempts;
};

static struct client {
    struct redlock_client redlock;
    struct redlock_node nodes[SERVERS];
    struct waiter waiters[LOCKS];
    struct redlock_io io;
    uint64_t next_us, lags_until_us;
    int stopped;
    unsigned turns, commands;
} clients[CLIENTS];

static struct mini_server servers[SERVERS];
static uint64_t clock_us, rtt_us, released_us, onset_us;
static uint32_t dice;

/* What was counted. */
static struct figures {
    unsigned turns, attempts, commands, overtook, few, many, holders, twice, waits, gaps;
    unsigned busiest; /* the most commands of a client in a second */
    unsigned well;    /* turns of clients that are not sick */
    uint64_t longest_us, gap_us[100000], longest_gap_us;
} seen;

static uint32_t roll(uint32_t range)
{
    dice ^= dice << 13;
    dice ^= dice >> 17;
    dice ^= dice << 5;
    return (uint32_t)((uint64_t)dice * range >> 32);
}

/* ---- Messages ------------------------------------------------------------------------------- */

static int is_first(const struct message *a, const struct message *b)
{
    return a->at_us < b->at_us || (a->at_us == b->at_us && a->number < b->number);
}

static void put(struct message m)
{
    unsigned at = heap_used++;

    if (heap_used == MESSAGES)
        mini_fail("too many messages");
    for (; at > 0 && is_first(&m, &heap[(at - 1) / 2]); at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = m;
}

static struct message take(void)
{
    struct message first = heap[0], last = heap[--heap_used];
    unsigned at = 0, child;

    for (; (child = 2 * at + 1) < heap_used; at = child) {
        child += child + 1 < heap_used && is_first(&heap[child + 1], &heap[child]);
        if (!is_first(&heap[child], &last))
            break;
        heap[at] = heap[child];
    }
    heap[at] = last;
    return first;
}

static int is_sick(int client)
{
    return (unsigned)client >= with.clients - with.sick && clock_us >= onset_us;
}

/* Votes that come after more than a quarter of the ttl are too late. */
static uint64_t delay_of(int client)
{
    unsigned far = (unsigned)client >= with.clients - with.clients / 4 ? with.far : 1;

    return is_sick(client) && with.ails != 1 ? with.ttl * (uint64_t)150
                                             : (uint64_t)with.delay * far;
}

static void post(int client, int server, int back, const void *bytes, unsigned size)
{
    struct connection *way = &connections[client][server];
    uint64_t delay_us = delay_of(client);
    struct message m;

    if (is_sick(client) && with.ails == 1 && (unsigned)server != (unsigned)client % with.nodes)
        return;
    m.at_us = clock_us + delay_us + roll((uint32_t)(delay_us * with.jitter / 100) + 1);
    if (m.at_us <= way->last_us[back])
        m.at_us = way->last_us[back] + 1;
    way->last_us[back] = m.at_us;
    m.number = numbers++;
    m.client = client;
    m.server = server;
    m.back = back;
    m.epoch = way->epoch;
    m.size = size;
    m.bytes = (char *)malloc(size);
    if (m.bytes == NULL)
        mini_fail("no memory");
    memcpy(m.bytes, bytes, size);
    put(m);
}

/* ---- The io table --------------------------------------------------------------------------- */

static int number_of(const void *context)
{
    return (int)((const struct client *)context - clients);
}

static int turns_dial(void *context, struct redlock_node *node)
{
    int server = (int)(node - ((struct client *)context)->nodes), epoch;
    struct connection *way = &connections[number_of(context)][server];

    if ((unsigned)server < with.down) {
        redlock_set_error(node, "connect", "refused");
        return -1;
    }
    epoch = way->epoch + 1;
    memset(way, 0, sizeof *way);
    way->epoch = epoch;
    node->handle = server;
    return 0;
}

static int turns_ready(void *context, struct redlock_node *node)
{
    (void)context;
    (void)node;
    return 1;
}

static int turns_transmit(void *context, struct redlock_node *node, const void *bytes, size_t size)
{
    post(number_of(context), (int)node->handle, 0, bytes, (unsigned)size);
    return (int)size;
}

static int turns_receive(void *context, struct redlock_node *node, void *bytes, size_t size)
{
    struct connection *way = &connections[number_of(context)][node->handle];
    unsigned part = size < way->out_used ? (unsigned)size : way->out_used;

    if (part == 0 && way->in_used == BYTES) { /* the server has closed it */
        redlock_set_error(node, "receive", "closed by the server");
        return -1;
    }
    memcpy(bytes, way->out, part);
    way->out_used -= part;
    memmove(way->out, way->out + part, way->out_used);
    return (int)part;
}

static void turns_shut(void *context, struct redlock_node *node)
{
    connections[number_of(context)][node->handle].epoch++;
    node->handle = -1;
}

static uint64_t turns_now(void *context)
{
    (void)context;
    return clock_us;
}

static int turns_entropy(void *context, void *bytes, size_t size)
{
    uint8_t *to = (uint8_t *)bytes;

    (void)context;
    while (size-- > 0)
        *to++ = (uint8_t)roll(256);
    return 0;
}

/* ---- Servers -------------------------------------------------------------------------------- */

static void notify(int but, int server, struct mini_word key)
{
    char push[MINI_REPLY];
    unsigned size;
    int other;

    for (other = 0; other < (int)with.clients; other++)
        if (other != but &&
            (size = mini_notify(&connections[other][server].session, key, push)) > 0)
            post(other, server, 1, push, size);
}

static void serve(int client, int server)
{
    struct connection *way = &connections[client][server];
    struct mini_command command;
    char reply[MINI_REPLY];
    unsigned used, i;

    servers[server].now_us = clock_us + (server == 0 ? with.skew * (uint64_t)MS : 0);
    while ((used = mini_read(way->in, way->in_used, &command)) > 0) {
        unsigned size = mini_run(&servers[server], &way->session, &command, reply);
        if (mini_is_of_a_lock(&command)) {
            seen.commands++;
            clients[client].commands++;
        }
        post(client, server, 1, reply, size);
        for (i = 0; i < command.key_count; i++)
            if (command.changed >> i & 1)
                notify(client, server, command.keys[i]);
        for (i = 0; i < command.woken; i++) {
            struct mini_word key = {command.woken_keys[i].bytes, command.woken_keys[i].size};
            notify(client, server, key);
        }
        way->in_used -= used;
        memmove(way->in, way->in + used, way->in_used);
    }
}

static void deliver(struct message m)
{
    struct connection *way = &connections[m.client][m.server];
    char *to = m.back ? way->out + way->out_used : way->in + way->in_used;

    if (m.back && clients[m.client].lags_until_us > clock_us) {
        m.at_us = clients[m.client].lags_until_us;
        put(m);
        return;
    }
    if (m.epoch == way->epoch && !(m.back && clients[m.client].stopped)) {
        if ((m.back ? way->out_used : way->in_used) + m.size > sizeof way->in)
            mini_fail("too many bytes");
        memcpy(to, m.bytes, m.size);
        *(m.back ? &way->out_used : &way->in_used) += m.size;
        if (!m.back) {
            serve(m.client, m.server);
        } else {
            redlock_handle_events(&clients[m.client].redlock, (unsigned)m.server, REDLOCK_READABLE);
            clients[m.client].next_us = clock_us;
        }
    }
    free(m.bytes);
}

/* Servers notice after a while that a key has expired, and tell. */
static void expire(void)
{
    unsigned s, i;

    for (s = 0; s < with.nodes; s++)
        for (i = 0; i < servers[s].used; i++) {
            struct mini_key *key = &servers[s].keys[i];
            struct mini_word name = {key->name.bytes, key->name.size};
            if (name.size == 0 || key->until_us > clock_us)
                continue;
            notify(-1, (int)s, name);
            key->name.size = 0;
        }
}

/* Loses all keys, and closes all connections. */
static void restart(int server)
{
    unsigned run = servers[server].run;
    int client;

    memset(&servers[server], 0, sizeof servers[server]);
    servers[server].run = run + 1;
    for (client = 0; client < (int)with.clients; client++) {
        struct connection *way = &connections[client][server];
        if (clients[client].redlock.priv.in[REDLOCK_NODE_READY] >> server & 1) {
            way->epoch++; /* what is under way is lost */
            way->in_used = BYTES;
            way->out_used = 0;
            redlock_handle_events(&clients[client].redlock, (unsigned)server, REDLOCK_READABLE);
            clients[client].next_us = clock_us;
        }
    }
}

/* ---- Clients -------------------------------------------------------------------------------- */

static void ask(struct client *c, struct waiter *w)
{
    w->asked_us = clock_us;
    w->again_us = 0;
    w->lock.use_fencing = (uint8_t)(with.fencing != 0);
    redlock_acquire_start(&c->redlock, &w->lock, 3600000);
}

/* Whether a lock that began to wait two round trips before this one is still waiting. */
static int overtakes(const struct waiter *w)
{
    unsigned i, k;

    for (i = 0; i < with.clients; i++)
        for (k = 0; k < with.locks && !clients[i].stopped; k++) {
            const struct waiter *other = &clients[i].waiters[k];
            if (other->lock.status == REDLOCK_PENDING &&
                other->lock.operation == REDLOCK_OP_ACQUIRE &&
                other->asked_us + 2 * rtt_us < w->asked_us)
                return 1;
        }
    return 0;
}

static void count_turn(struct client *c, struct waiter *w)
{
    seen.turns++;
    seen.well += !is_sick(number_of(c));
    w->cancel_us = 0;
    seen.attempts += w->lock.priv.op.attempts;
    seen.overtook += (unsigned)overtakes(w);
    seen.twice += seen.holders++ != 0;
    c->turns++;
    if (clock_us - w->asked_us > seen.longest_us)
        seen.longest_us = clock_us - w->asked_us;
    if (released_us != 0 && seen.gaps < sizeof seen.gap_us / sizeof *seen.gap_us) {
        uint64_t gap_us = clock_us > released_us ? clock_us - released_us : 0;
        seen.gap_us[seen.gaps++] = gap_us;
        if (gap_us > seen.longest_gap_us)
            seen.longest_gap_us = gap_us;
    }
    released_us = 0;
    w->release_us = clock_us + with.hold;
}

/* What the program does that has these locks. */
static void act(struct client *c)
{
    unsigned k;
    int loops = with.loops && c == clients;

    for (k = 0; k < with.locks; k++) {
        struct waiter *w = &c->waiters[k];
        int is_acquire = w->lock.operation == REDLOCK_OP_ACQUIRE;
        if (w->lock.status == REDLOCK_PENDING)
            continue;
        if (is_acquire && w->lock.status == REDLOCK_OK && w->release_us == 0) {
            count_turn(c, w);
        } else if (is_acquire && w->lock.status == REDLOCK_OK && clock_us >= w->release_us) {
            seen.holders--;
            released_us = clock_us;
            w->release_us = 0;
            redlock_release_start(&c->redlock, &w->lock, 60000);
        } else if (w->again_us == 0 && !(is_acquire && w->lock.status == REDLOCK_OK)) {
            w->again_us = clock_us + (loops ? 0 : with.rest);
        }
        if (w->again_us != 0 && clock_us >= w->again_us) {
            ask(c, w);
            if (with.cancels != 0 && seen.waits++ % with.cancels == 0)
                w->cancel_us = clock_us + roll(30 * MS) + 1;
        }
    }
    for (k = 0; k < with.locks && with.cancels != 0; k++) {
        struct waiter *w = &c->waiters[k];
        if (w->lock.status != REDLOCK_PENDING || w->lock.operation != REDLOCK_OP_ACQUIRE ||
            w->cancel_us == 0 || clock_us < w->cancel_us)
            continue;
        w->cancel_us = 0;
        if (roll(2) == 0)
            redlock_cancel(&c->redlock, &w->lock);
        else
            redlock_release_start(&c->redlock, &w->lock, 0);
    }
}

static void tick(struct client *c)
{
    uint64_t wait_us;
    unsigned k;

    if (with.lag != 0 && c->lags_until_us <= clock_us && roll(50) == 0)
        c->lags_until_us = clock_us + roll(with.lag);
    if (with.ails == 2 && is_sick(number_of(c)) && c->lags_until_us <= clock_us && roll(20) == 0)
        c->lags_until_us = clock_us + roll(3000 * MS);
    if (c->lags_until_us > clock_us) {
        c->next_us = c->lags_until_us;
        return;
    }
    do {
        act(c);
        wait_us = redlock_tick(&c->redlock);
        while (redlock_next_completed(&c->redlock) != NULL)
            continue;
        act(c);
    } while (wait_us == 0 || redlock_tick(&c->redlock) == 0);
    c->next_us = wait_us == REDLOCK_NEVER ? REDLOCK_NEVER : clock_us + wait_us;
    wait_us = redlock_tick(&c->redlock);
    if (wait_us != REDLOCK_NEVER && clock_us + wait_us < c->next_us)
        c->next_us = clock_us + wait_us;
    for (k = 0; k < with.locks; k++) {
        struct waiter *w = &c->waiters[k];
        if (w->release_us > clock_us && w->release_us < c->next_us)
            c->next_us = w->release_us;
        if (w->cancel_us > clock_us && w->cancel_us < c->next_us)
            c->next_us = w->cancel_us;
        if (w->again_us > clock_us && w->again_us < c->next_us)
            c->next_us = w->again_us;
    }
}

/* Handles the next event before `end_us`. Returns 0 if there is none. */
static int step(uint64_t end_us)
{
    struct client *awake = NULL;
    uint64_t at_us = heap_used > 0 && heap[0].at_us < end_us ? heap[0].at_us : end_us;
    unsigned i;

    for (i = 0; i < with.clients; i++)
        if (!clients[i].stopped && clients[i].next_us < at_us) {
            awake = &clients[i];
            at_us = awake->next_us;
        }
    clock_us = at_us > clock_us ? at_us : clock_us;
    if (awake != NULL)
        tick(awake);
    else if (at_us < end_us)
        deliver(take());
    return at_us < end_us;
}

/* ---- A run ---------------------------------------------------------------------------------- */

static void begin_client(struct client *c)
{
    static const struct redlock_io io = {turns_dial, turns_ready, turns_transmit, turns_receive,
                                         turns_shut, turns_now,   turns_entropy,  NULL,
                                         NULL,       NULL,        NULL,           NULL};
    static const char *const names[SERVERS] = {"0", "1", "2", "3", "4"};
    struct redlock_settings settings;
    unsigned i;

    memset(c, 0, sizeof *c);
    memset(&settings, 0, sizeof settings);
    settings.fair = with.fair;
    settings.node_timeout_ms =
        with.delay * with.far / 100 > 1000 ? with.delay * with.far / 100 : 1000;
    settings.stall_ms = 20000;
    settings.retry_delay_ms = settings.retry_delay_max_ms = with.pause;
    c->io = io;
    c->io.context = c;
    for (i = 0; i < with.nodes; i++)
        c->nodes[i].address = names[i];
    if (redlock_init(&c->redlock, &c->io, c->nodes, with.nodes, &settings) != REDLOCK_OK)
        mini_fail("init");
    for (i = 0; i < with.locks; i++) {
        redlock_lock_init(&c->waiters[i].lock, "k", with.ttl);
        c->waiters[i].again_us = clock_us + 1 + roll(10 * MS);
    }
    c->next_us = clock_us;
}

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/* A client that waits, or holds a lock, stops for ever, and another one with its memory begins. */
static void stop_some(unsigned many, int holders)
{
    unsigned i, k, s;

    for (i = 0; i < with.clients && many > 0; i++) {
        struct client *c = &clients[i];
        int waits = with.locks > 0;
        for (k = 0; k < with.locks; k++)
            waits &= c->waiters[k].lock.status == REDLOCK_PENDING &&
                     c->waiters[k].lock.operation == REDLOCK_OP_ACQUIRE &&
                     c->waiters[k].lock.priv.state == RL_PAUSING;
        if (holders ? c->waiters[0].release_us == 0 : !waits)
            continue;
        seen.holders -= c->waiters[0].release_us != 0;
        released_us =
            c->waiters[0].release_us != 0 ? clock_us + with.ttl * (uint64_t)MS : released_us;
        for (s = 0; s < with.nodes; s++)
            connections[i][s].epoch++;
        k = c->turns;
        begin_client(c);
        c->turns = k;
        many--;
    }
}

static void begin_run(void)
{
    unsigned i;

    memset(&seen, 0, sizeof seen);
    memset(connections, 0, sizeof connections);
    memset(servers, 0, sizeof servers);
    clock_us = (uint64_t)1 << 40;
    dice = with.seed * 2654435769U | 1;
    released_us = 0;
    onset_us = clock_us + with.onset * (uint64_t)MS;
    rtt_us = with.delay * 2U + with.delay * with.jitter / 100;
    if (rtt_us == 0)
        rtt_us = 1;
    for (i = 0; i < with.nodes; i++) {
        servers[i].run = 1000 * (i + 1);
        servers[i].tells_caller = (int)with.dialect;
        servers[i].no_queue = i < with.denied;
    }
    for (i = 0; i < with.clients; i++)
        begin_client(&clients[i]);
}

static void end_run(void)
{
    unsigned i;

    for (i = 0; i < with.clients; i++)
        redlock_deinit(&clients[i].redlock);
    while (heap_used > 0)
        free(take().bytes);
    qsort(seen.gap_us, seen.gaps, sizeof *seen.gap_us, by_size);
}

static void run(void)
{
    uint64_t end_us, second_us, tenth_us, sweep_us;
    unsigned i, k;

    begin_run();
    end_us = clock_us + with.seconds * (uint64_t)1000000;
    second_us = clock_us + 1000000;
    tenth_us = clock_us + 10000000;
    sweep_us = clock_us;
    while (clock_us < end_us) {
        sweep_us += 100 * MS;
        while (step(sweep_us))
            continue;
        expire();
        if (clock_us < second_us)
            continue;
        for (i = 0; i < with.clients; i++) {
            if (clients[i].commands > seen.busiest)
                seen.busiest = clients[i].commands;
            clients[i].commands = 0;
        }
        second_us += 1000000;
        if (clock_us >= tenth_us) {
            tenth_us += 10000000;
            stop_some(with.dead, 0);
            stop_some(with.crash, 1);
            if (with.restart != 0)
                restart((int)roll(with.nodes));
        }
    }
    seen.few = ~0U;
    for (i = 0; i < with.clients; i++) {
        seen.few = clients[i].turns < seen.few ? clients[i].turns : seen.few;
        seen.many = clients[i].turns > seen.many ? clients[i].turns : seen.many;
        for (k = 0; k < with.locks; k++) {
            const struct waiter *w = &clients[i].waiters[k];
            if (w->lock.status == REDLOCK_PENDING && w->lock.operation == REDLOCK_OP_ACQUIRE &&
                clock_us - w->asked_us > seen.longest_us)
                seen.longest_us = clock_us - w->asked_us;
        }
    }
    end_run();
}

/* How long the last of all waits with a perfect queue. */
static double perfect_us(void)
{
    return (double)(with.clients * with.locks) * ((double)with.hold + 2 * (double)rtt_us);
}

static double quantile_trips(unsigned percent)
{
    return seen.gaps > 0 ? (double)seen.gap_us[(uint64_t)seen.gaps * percent / 100] / (double)rtt_us
                         : 0;
}

static void print_figures(void)
{
    double turns = seen.turns > 0 ? seen.turns : 1;

    printf(
        "turns %6u  attempts %5.2f  commands %6.1f  turns of a client %4u..%-4u  overtook %5.1f %%"
        "  longest wait %5.2f  hand-off p50 %5.2f p99 %6.2f max %7.1f trips  busiest %u/s  well "
        "%u%s\n",
        seen.turns, seen.attempts / turns, seen.commands / turns, seen.few, seen.many,
        100 * seen.overtook / turns, (double)seen.longest_us / perfect_us(), quantile_trips(50),
        quantile_trips(99), (double)seen.longest_gap_us / (double)rtt_us, seen.busiest, seen.well,
        seen.twice ? "  TWICE" : "");
}

static void set(const char *words)
{
    char name[16];
    unsigned number, i;
    int used;

    for (i = 0; i < sizeof options / sizeof *options; i++)
        *options[i].number = options[i].usual;
    for (; sscanf(words, " %15[a-z]=%u%n", name, &number, &used) == 2; words += used)
        for (i = 0; i < sizeof options / sizeof *options; i++)
            if (strcmp(options[i].name, name) == 0)
                *options[i].number = number;
}

/* Runs, and their bounds: attempts for each turn; how many more turns a client has than another, in percent of all its turns;
   turns that overtake a waiter that began two round trips earlier, in percent; the longest wait, in times of that of a perfect
   queue; the median and the longest time from a release to the next turn, in round trips; the commands of a client in a second. */
static const struct {
    const char *words;
    double attempts, spread, overtook, wait, median, longest;
    unsigned busiest;
} runs[] = {
    {"clients=2", 2.1, 1, 0.1, 1.1, 2.2, 4, 700},
    {"clients=8", 3.1, 1, 0.1, 1.1, 2.2, 4, 250},
    {"clients=32", 3.1, 2, 0.1, 1.1, 2.2, 4, 100},
    {"clients=60 seconds=10", 3.1, 5, 0.1, 1.1, 2.2, 4, 100},
    {"nodes=1 clients=2", 2.1, 1, 0.1, 1.1, 2.2, 4, 300},
    {"nodes=1 clients=60 seconds=10", 3.1, 5, 0.1, 1.1, 2.2, 4, 50},
    {"nodes=5 clients=8", 3.1, 1, 0.1, 1.1, 2.2, 4, 400},
    {"nodes=5 clients=32", 3.1, 2, 0.1, 1.1, 2.2, 4, 150},
    /* 128 waiters: one that waits for more than a second asks once more */
    {"nodes=1 clients=64 locks=2 seconds=10", 4.1, 10, 2, 1.1, 2.2, 4, 30},
    {"nodes=5 clients=64 locks=2 seconds=10", 4.1, 10, 2, 1.1, 2.2, 4, 200},
    {"clients=8 fencing=1", 3.1, 1, 0.1, 1.1, 2.2, 4, 250},
    /* messages that take 0.15 to 0.6 ms */
    {"nodes=5 delay=150 jitter=300 clients=32", 3.2, 2, 0.5, 1.1, 2.3, 6, 200},
    /* 100 ms between sites, and other distances */
    {"delay=50000 clients=16 seconds=150", 3.3, 10, 8, 1.6, 2.2, 12, 40},
    {"delay=100000 clients=32 seconds=200", 3.5, 10, 8, 1.6, 2.2, 15, 40},
    {"far=50 clients=8 seconds=20", 5.5, 50, 30, 4, 3, 300, 300},
    {"far=50 clients=32 seconds=40", 7.5, 20, 30, 4, 3, 300, 250},
    {"far=100 clients=16 seconds=40", 9, 50, 50, 7, 3, 600, 350},
    /* short and long holds */
    {"hold=0 rest=0 seconds=3", 2.5, 5, 2, 2, 2.3, 10, 2500},
    {"hold=0 delay=50000 clients=8 seconds=100", 2.5, 5, 2, 2, 2.3, 10, 40},
    {"hold=150000 clients=32 seconds=100", 8, 20, 0.1, 1.1, 2.2, 4, 50},
    {"hold=20000 rest=500000 clients=40 seconds=20", 3.1, 5, 0.1, 1.1, 2.2, 4, 50},
    /* several locks of each client, in one process or in more; one that takes the lock again at once */
    {"locks=4 clients=2", 3.6, 1, 1, 1.2, 2.3, 15, 1200},
    {"locks=4 clients=8", 4.2, 2, 0.5, 1.2, 2.2, 8, 500},
    {"locks=20 clients=1", 3.6, 1, 60, 2, 2.5, 15, 2500},
    {"clients=4 loops=1", 3.1, 1, 0.1, 1.1, 2.2, 4, 600},
    /* dead waiters, dead nodes, dead holders; a node that restarts empty */
    {"dead=1 seconds=15", 3.1, 5, 0.5, 1.5, 2.2, 12, 300},
    {"dead=1 delay=10000 seconds=100", 2.6, 10, 1, 2, 2.2, 12, 100},
    /* the second ten seconds begin with dozens in the queue */
    {"dead=10 clients=32 seconds=25", 3.2, 10, 1, 1.5, 2.2, 60, 200},
    {"dead=24 clients=60 seconds=25", 3.2, 10, 1, 1.5, 2.2, 60, 100},
    {"nodes=5 down=2 clients=8", 3.1, 1, 0.1, 1.1, 2.2, 4, 250},
    {"crash=1 ttl=2000 seconds=15", 3.1, 5, 0.1, 60, 2.2, 4, 250},
    {"nodes=5 restart=1 clients=16 seconds=15", 3.3, 10, 15, 12, 2.2, 50, 400},
    /* processes that are not scheduled for a while */
    {"nodes=5 lag=5000", 3.3, 5, 10, 2, 2.3, 60, 500},
    {"nodes=5 clients=16 lag=20000", 3.8, 20, 30, 4, 2.5, 200, 500},
    /* clocks that differ; Redis 6.0; nodes that keep no queue; waits that end */
    {"skew=5 clients=16", 3.2, 5, 1, 1.2, 2.2, 15, 200},
    {"skew=500", 12, 20, 30, 12, 4, 30, 900},
    {"skew=500 seed=3", 12, 20, 30, 12, 4, 30, 900},
    {"dialect=1 clients=16", 8, 90, 100, 100, 3, 60, 900},
    {"denied=1", 3.2, 2, 0.5, 1.2, 2.2, 8, 300},
    {"denied=3", 4, 90, 100, 200, 3, 100, 900},
    {"locks=64 clients=1 hold=20000 seconds=30", 4.1, 20, 60, 2, 2.5, 15, 1200},
    {"cancels=3 locks=4", 5, 5, 1, 1.5, 2.2, 10, 700},
};

static void check(unsigned i)
{
    double turns = seen.turns > 0 ? seen.turns : 1, of_one = seen.many > 0 ? seen.many : 1;

    ok(seen.twice == 0 && seen.turns > 20 && seen.few > 0, "r19: %s: turns, one after the other",
       runs[i].words);
    ok(seen.attempts / turns <= runs[i].attempts, "r19: %.2f attempts for each turn",
       seen.attempts / turns);
    ok(100 * (of_one - seen.few) / of_one <= runs[i].spread || seen.many - seen.few <= 2,
       "r19: %u to %u turns of each client", seen.few, seen.many);
    ok(100 * seen.overtook / turns <= runs[i].overtook, "r19: %.1f %% of the turns overtake",
       100 * seen.overtook / turns);
    ok((double)seen.longest_us <= runs[i].wait * perfect_us(),
       "r19: the longest wait, %.2f times that of a perfect queue",
       (double)seen.longest_us / perfect_us());
    ok(quantile_trips(50) <= runs[i].median, "r19: a hand-off takes %.2f round trips",
       quantile_trips(50));
    ok((double)seen.longest_gap_us / (double)rtt_us <= runs[i].longest,
       "r19: the longest, %.1f round trips", (double)seen.longest_gap_us / (double)rtt_us);
    ok(seen.busiest <= runs[i].busiest, "r19: %u commands of a client in a second", seen.busiest);
}

/* Waiters that cannot get the lock: from the first attempt on, or from one second on, when they stand in the queue. However many
   there are, the others have at least half of the turns that they have without them. */
static void r19_beside_waiters_that_cannot_get_it(const char *of_the_sick, unsigned sick)
{
    char words[160];
    unsigned turns[2], i;

    for (i = 0; i < 2; i++) {
        snprintf(words, sizeof words, "hold=5000 seconds=10 ttl=2000 clients=%u sick=%u%s",
                 4 + i * sick, i * sick, of_the_sick);
        set(words);
        run();
        turns[i] = seen.well;
        ok(seen.twice == 0 && (with.ails == 2 || seen.turns == seen.well),
           "r19:%s: %u: none of them has a turn", of_the_sick, i * sick);
    }
    ok(turns[0] > 1000 && turns[1] * 2 >= turns[0],
       "r19:%s: %u turns beside %u of them, %u without them", of_the_sick, turns[1], sick,
       turns[0]);
}

/* Handles all events before `end_us`. */
static void pass_until(uint64_t end_us)
{
    while (clock_us < end_us) {
        uint64_t sweep_us = clock_us + 100 * MS < end_us ? clock_us + 100 * MS : end_us;
        while (step(sweep_us))
            continue;
        expire();
    }
}

static void stop(unsigned client)
{
    unsigned s;

    clients[client].stopped = 1;
    for (s = 0; s < with.nodes; s++)
        connections[client][s].epoch++;
}

/* The first client holds the lock, and the next ones wait for it: `dead` of them stop 0.4 s before it is released. The last client
   waits behind them, or asks `late_ms` after the release. With a ttl of 1 s the first one stops, too, and the lock expires. Returns
   how long the last client waits for the free lock, in ms. */
static unsigned free_behind_the_dead(const char *words, unsigned dead, unsigned late_ms)
{
    unsigned i;
    uint64_t start_us, asks_us, free_us;

    set(words);
    with.clients = dead + 2;
    with.hold = 1000 * MS;
    with.rest = 60000 * MS;
    begin_run();
    start_us = clock_us;
    asks_us = late_ms > 0 ? start_us + (1020 + late_ms) * (uint64_t)MS : start_us + 400 * MS;
    for (i = 0; i < with.clients; i++) /* one after the other */
        clients[i].waiters[0].again_us = i <= dead ? start_us + 1 + i * 5 * MS : asks_us;
    clients[dead + 1].next_us = asks_us;
    pass_until(start_us + 600 * MS);
    for (i = with.ttl == 1000 ? 0 : 1; i <= dead; i++)
        stop(i);
    if (with.ttl == 1000)
        seen.holders = 0;
    while (clock_us < start_us + 8000 * MS && seen.turns < 2) {
        uint64_t next_us = clock_us + 5 * MS;
        while (step(next_us))
            continue;
        expire();
    }
    free_us = late_ms > 0 ? asks_us : start_us + 1000 * MS;
    i = seen.turns == 2 && clock_us > free_us ? (unsigned)((clock_us - free_us) / MS) : 9999;
    end_run();
    return i;
}

/* Waiters that were killed cost those behind them little time, however many they are. */
static void r19_behind_dead_waiters(const char *words, unsigned late_ms)
{
    static const unsigned many[] = {1, 2, 4, 8, 20, 60};
    char with_seed[80];
    unsigned i, seed, free_ms, most_ms;

    for (i = 0; i < sizeof many / sizeof *many; i++) {
        for (seed = 1, most_ms = 0; seed <= 10; seed++) {
            snprintf(with_seed, sizeof with_seed, "%s seed=%u", words, seed);
            free_ms = free_behind_the_dead(with_seed, many[i], late_ms);
            most_ms = free_ms > most_ms ? free_ms : most_ms;
        }
        ok(most_ms <= (late_ms > 0 ? 100 : 600),
           "r19: %s: behind %u dead waiters one that asks %u ms late waits for %u ms", words,
           many[i], late_ms, most_ms);
    }
}

int main(int argc, char **argv)
{
    char words[1000] = "";
    unsigned n;
    int i;

    for (i = 1; i < argc; i++)
        snprintf(words + strlen(words), sizeof words - strlen(words), " %s", argv[i]);
    if (argc > 1) {
        set(words);
        run();
        print_figures();
        return 0;
    }
    /* a key is in no queue if the text of a reply has no room for the leases of its waiters */
    for (n = 0; n < sizeof runs / sizeof *runs && REDLOCK_FAIR && RESP_TEXT_MAX > RL_LEASE_TAIL;
         n++) {
        set(runs[n].words);
        run();
        check(n);
    }
    if (REDLOCK_FAIR && RESP_TEXT_MAX > RL_LEASE_TAIL) {
        r19_behind_dead_waiters("nodes=3", 0);
        r19_behind_dead_waiters("nodes=5", 0);
        r19_behind_dead_waiters("nodes=3 ttl=1000", 0);
        r19_behind_dead_waiters("nodes=3", 100);
        r19_behind_dead_waiters("nodes=3 ttl=1000", 100);
        r19_beside_waiters_that_cannot_get_it("", 1);
        r19_beside_waiters_that_cannot_get_it("", 60);
        r19_beside_waiters_that_cannot_get_it(" onset=1000", 8);
        r19_beside_waiters_that_cannot_get_it(" onset=1000", 60);
        r19_beside_waiters_that_cannot_get_it(" ails=1 onset=1000", 16);
        r19_beside_waiters_that_cannot_get_it(" ails=2 seconds=60", 56);
    }
    set("fair=0 clients=4");
    run();
    ok(seen.twice == 0 && seen.few > 0, "r06: without `fair` each client has a turn: %u to %u",
       seen.few, seen.many);
    return done_testing();
}
