/* wide.c - the library over a simulated network: the effect of distance on an acquire, and the effect of many clients that
   try to acquire one lock at the same time. Time is simulated, so the figures do not depend on the machine. Each message
   takes half of the round trip, plus or minus a tenth.

   wide [RUNS]

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "figures.h"
#include "mini.h"
#include "redlock.h"

#include <string.h>

enum { CLIENTS = 50, SERVERS = 7, MESSAGES = 4096, BYTES = 1024 };
#define MS ((uint64_t)1000)

/* Bytes in flight between `client` and `server`; `back`: to the client. */
static struct message {
    uint64_t at_us; /* 0: free */
    int client, server, back;
    unsigned size;
    char bytes[BYTES];
} messages[MESSAGES];

static struct connection {
    struct mini_session session;
    uint64_t last_us[2]; /* the latest arrival in each direction: bytes arrive in order */
    char in[4 * BYTES], out[4 * BYTES];
    unsigned in_used, out_used;
} connections[CLIENTS][SERVERS];

static struct client {
    struct redlock_client redlock;
    struct redlock_node nodes[SERVERS];
    struct redlock_lock lock;
    struct redlock_io io;
    uint64_t next_us;
} clients[CLIENTS];

static struct mini_server servers[SERVERS];
static int client_count, server_count;
static uint64_t clock_us, rtt_us;
static uint32_t dice;

static uint32_t roll(uint32_t range)
{
    dice ^= dice << 13;
    dice ^= dice >> 17;
    dice ^= dice << 5;
    return (uint32_t)((uint64_t)dice * range >> 32);
}

static void post(int client, int server, int back, const void *bytes, unsigned size)
{
    struct connection *way = &connections[client][server];
    struct message *m = messages;
    uint64_t half = rtt_us / 2;

    while (m->at_us != 0)
        if (++m == messages + MESSAGES)
            mini_fail("too many messages");
    m->at_us = clock_us + half - half / 10 + roll((uint32_t)(half / 5) + 1);
    if (m->at_us <= way->last_us[back])
        m->at_us = way->last_us[back] + 1;
    way->last_us[back] = m->at_us;
    m->client = client;
    m->server = server;
    m->back = back;
    m->size = size;
    memcpy(m->bytes, bytes, size);
}

/* ---- The io table --------------------------------------------------------------------------- */

static int number_of(const void *context)
{
    return (int)((const struct client *)context - clients);
}

static int wide_dial(void *context, struct redlock_node *node)
{
    node->handle = (intptr_t)(node - ((struct client *)context)->nodes);
    return 0;
}

static int wide_ready(void *context, struct redlock_node *node)
{
    (void)context;
    (void)node;
    return 1;
}

static int wide_transmit(void *context, struct redlock_node *node, const void *bytes, size_t size)
{
    unsigned part = size < BYTES ? (unsigned)size : BYTES;

    post(number_of(context), (int)node->handle, 0, bytes, part);
    return (int)part;
}

static int wide_receive(void *context, struct redlock_node *node, void *bytes, size_t size)
{
    struct connection *way = &connections[number_of(context)][node->handle];
    unsigned part = size < way->out_used ? (unsigned)size : way->out_used;

    memcpy(bytes, way->out, part);
    way->out_used -= part;
    memmove(way->out, way->out + part, way->out_used);
    return (int)part;
}

static void wide_shut(void *context, struct redlock_node *node)
{
    (void)context;
    node->handle = -1;
}

static uint64_t wide_now(void *context)
{
    (void)context;
    return clock_us;
}

static int wide_entropy(void *context, void *bytes, size_t size)
{
    uint8_t *to = (uint8_t *)bytes;

    (void)context;
    while (size-- > 0)
        *to++ = (uint8_t)roll(256);
    return 0;
}

/* ---- Events --------------------------------------------------------------------------------- */

static void serve(int client, int server)
{
    struct connection *way = &connections[client][server];
    struct mini_command command;
    char reply[MINI_REPLY];
    unsigned used, i, k;
    int other;

    servers[server].now_us = clock_us;
    while ((used = mini_read(way->in, way->in_used, &command)) > 0) {
        unsigned size = mini_run(&servers[server], &way->session, &command, reply);
        post(client, server, 1, reply, size);
        for (i = 0; i < command.key_count; i++)
            for (other = 0; (command.changed >> i & 1) && other < client_count; other++)
                if (other != client && (k = mini_notify(&connections[other][server].session,
                                                        command.keys[i], reply)) > 0)
                    post(other, server, 1, reply, k);
        way->in_used -= used;
        memmove(way->in, way->in + used, way->in_used);
    }
}

static void deliver(struct message *m)
{
    struct connection *way = &connections[m->client][m->server];
    char *to = m->back ? way->out + way->out_used : way->in + way->in_used;

    if ((m->back ? way->out_used : way->in_used) + m->size > sizeof way->in)
        mini_fail("too many bytes");
    memcpy(to, m->bytes, m->size);
    *(m->back ? &way->out_used : &way->in_used) += m->size;
    m->at_us = 0;
    if (!m->back) {
        serve(m->client, m->server);
        return;
    }
    redlock_handle_events(&clients[m->client].redlock, (unsigned)m->server, REDLOCK_READABLE);
    clients[m->client].next_us = clock_us;
}

/* Handles the next event before `end_us`. Returns 0 if there is none. */
static int step(uint64_t end_us)
{
    struct message *next = NULL;
    struct client *awake = NULL;
    uint64_t at_us = end_us;
    int i;

    for (i = 0; i < client_count; i++)
        if (clients[i].next_us < at_us) {
            awake = &clients[i];
            at_us = awake->next_us;
        }
    for (i = 0; i < MESSAGES; i++)
        if (messages[i].at_us != 0 && messages[i].at_us < at_us) {
            next = &messages[i];
            at_us = next->at_us;
        }
    clock_us = at_us > clock_us ? at_us : clock_us;
    if (next != NULL) {
        deliver(next);
    } else if (awake != NULL) {
        uint64_t wait_us = redlock_tick(&awake->redlock);
        awake->next_us = wait_us == REDLOCK_NEVER ? REDLOCK_NEVER : clock_us + wait_us;
        redlock_next_completed(&awake->redlock);
    }
    return next != NULL || awake != NULL;
}

static void pass(uint64_t us)
{
    uint64_t end_us = clock_us + us;

    while (step(end_us))
        continue;
}

/* Makes the clients and their connections. */
static void begin(int many, int nodes, uint64_t round_trip_us,
                  const struct redlock_settings *settings)
{
    static const char *const names[SERVERS] = {"0", "1", "2", "3", "4", "5", "6"};
    int i, n;

    client_count = many;
    server_count = nodes;
    rtt_us = round_trip_us;
    clock_us = (uint64_t)1 << 40;
    memset(messages, 0, sizeof messages);
    memset(connections, 0, sizeof connections);
    memset(servers, 0, sizeof servers);
    for (n = 0; n < nodes; n++)
        servers[n].run = 1000 + (unsigned)n;
    for (i = 0; i < many; i++)
        clients[i].next_us = REDLOCK_NEVER;
    for (i = 0; i < many; i++) {
        struct client *c = &clients[i];
        static const struct redlock_io io = {wide_dial, wide_ready, wide_transmit, wide_receive,
                                             wide_shut, wide_now,   wide_entropy,  NULL,
                                             NULL,      NULL,       NULL,          NULL};
        memset(c, 0, sizeof *c);
        c->io = io;
        c->io.context = c;
        for (n = 0; n < nodes; n++)
            c->nodes[n].address = names[n];
        if (redlock_init(&c->redlock, &c->io, c->nodes, (unsigned)nodes, settings) != REDLOCK_OK)
            mini_fail("init");
        redlock_lock_init(&c->lock, "warm", 600000);
        redlock_acquire_start(&c->redlock, &c->lock, 0);
        c->next_us = clock_us;
        pass(10 * round_trip_us);
        redlock_release_start(&c->redlock, &c->lock, 60000);
        c->next_us = clock_us;
        pass(10 * round_trip_us);
        redlock_lock_init(&c->lock, "k", 600000);
    }
}

static void end(void)
{
    int i;

    for (i = 0; i < client_count; i++)
        redlock_deinit(&clients[i].redlock);
}

static void distance(long runs)
{
    static const int trips_ms[] = {1, 10, 50, 100, 200, 400};
    static const int counts[] = {1, 3, 5, 7};
    static double took[1000];
    unsigned t, n;

    printf("\nTime to lock over a distance, connections up: median ms, and in round trips\n");
    printf("round trip ms       N = 1         N = 3         N = 5         N = 7\n");
    for (t = 0; t < sizeof trips_ms / sizeof *trips_ms; t++) {
        printf("%13d", trips_ms[t]);
        for (n = 0; n < sizeof counts / sizeof *counts; n++) {
            struct redlock_settings far = {.node_timeout_ms = 4000, .stall_ms = 20000};
            double median;
            long run;
            for (run = 0; run < runs; run++) {
                uint64_t start;
                begin(1, counts[n], (uint64_t)trips_ms[t] * MS, &far);
                start = clock_us;
                redlock_acquire_start(&clients[0].redlock, &clients[0].lock, 0);
                clients[0].next_us = clock_us;
                while (clients[0].lock.status == REDLOCK_PENDING && step(start + 60000 * MS))
                    continue;
                took[run] = (double)(clock_us - start) / 1000;
                end();
            }
            median = quantile(took, runs, 0.5);
            printf("  %6.1f %5.2f", median, median / trips_ms[t]);
            figure("wide-distance", "redlock", trips_ms[t],
                   counts[n] == 5 ? "ms_of_5" : "ms_of_others", median);
        }
        printf("\n");
    }
}

/* Many clients start to acquire within a tenth of a round trip. Returns the time until one of them has the lock, in round
   trips; -1 if all have failed. */
static double until_one_has_it(int many, const struct redlock_settings *settings, uint32_t wait_ms)
{
    uint64_t start, until;
    int held = 0, i;

    begin(many, 5, 10 * MS, settings);
    start = clock_us;
    for (i = 0; i < many; i++) {
        pass(roll((uint32_t)(MS / (uint64_t)many) + 1));
        redlock_acquire_start(&clients[i].redlock, &clients[i].lock, wait_ms);
        clients[i].next_us = clock_us;
    }
    until = clock_us + 10000 * MS;
    while (!held && step(until))
        for (i = 0; i < many; i++)
            held |= clients[i].lock.status == REDLOCK_OK;
    end();
    return held ? (double)(clock_us - start) / 10000 : -1;
}

/* Without retries, with some, and with the default: the effect of the quick retries. */
static void collisions(long runs)
{
    static const int counts[] = {2, 3, 5, 10, 20, 50};
    static const uint32_t retries[] = {REDLOCK_NONE, 1, 3, 0};
    static double took[1000];
    unsigned n, r;

    printf("\nMany clients try to acquire one lock within 1 ms, round trip 10 ms, 5 nodes, %ld "
           "runs each\n",
           runs);
    printf("             no holder in the end, with this number of retries   time to a holder,\n");
    printf("contenders         0          1          3    default         in round trips: p50   "
           "p99\n");
    for (n = 0; n < sizeof counts / sizeof *counts; n++) {
        printf("%10d", counts[n]);
        for (r = 0; r < sizeof retries / sizeof *retries; r++) {
            struct redlock_settings settings = {.node_timeout_ms = 500, .stall_ms = 5000};
            long run, none = 0;
            settings.retries = retries[r];
            for (run = 0; run < runs; run++) {
                took[run] = until_one_has_it(counts[n], &settings, retries[r] == 0 ? 60000 : 0);
                none += took[run] < 0;
            }
            printf("   %6.1f %%", 100 * (double)none / (double)runs);
            if (retries[r] == REDLOCK_NONE)
                figure("wide-split", "redlock", counts[n], "percent",
                       100 * (double)none / (double)runs);
        }
        printf("                    %5.1f %5.1f\n", quantile(took, runs, 0.5),
               quantile(took, runs, 0.99));
        figure("wide-split", "redlock", counts[n], "rtts_p99", quantile(took, runs, 0.99));
    }
}

int main(int argc, char **argv)
{
    long runs = argc > 1 ? strtol(argv[1], NULL, 10) : 200;

    if (runs < 1 || runs > 1000)
        return 2;
    dice = 1;
    distance(runs / 4 + 1);
    collisions(runs);
    return 0;
}
