/* conditions.c - the cost of an operation when a program holds many locks.

   conditions [QUICK]    QUICK: a tenth of the rounds

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#define _DEFAULT_SOURCE
#include "figures.h"
#include "redlock.h"
#include "servers.h"
#include "side.h"

#include <string.h>
#include <sys/resource.h>

enum { NODES = 5, HELD_MAX = 10000, SAMPLES = 3000 };

static struct server servers[NODES];
static struct redlock_node nodes[NODES];
static struct redlock_client client;
static struct redlock_lock probe, held[HELD_MAX];
static char names[HELD_MAX][16];
static long samples = SAMPLES;

static void begin(const struct redlock_settings *settings)
{
    int i;

    for (i = 0; i < NODES; i++)
        nodes[i].address = servers[i].address;
    redlock_init(&client, redlock_posix(), nodes, NODES, settings);
    redlock_lock_init(&probe, "probe", 30000);
}

static void turn_over(void)
{
    long i;

    for (i = 0; i < samples; i++) {
        redlock_acquire(&client, &probe, 0);
        redlock_release(&client, &probe, 1000);
    }
}

static double cpu_us(void)
{
    struct rusage used;

    getrusage(RUSAGE_SELF, &used);
    return ((double)used.ru_utime.tv_sec + (double)used.ru_stime.tv_sec) * 1e6 +
           (double)used.ru_utime.tv_usec + (double)used.ru_stime.tv_usec;
}

static long extensions(int count)
{
    long sum = 0;
    int i;

    for (i = 0; i < count; i++)
        sum += held[i].extended;
    return sum;
}

static void hold(int count, uint32_t ttl_ms)
{
    int i;

    for (i = 0; i < count; i++) {
        redlock_lock_init(&held[i], names[i], ttl_ms);
        if (redlock_acquire(&client, &held[i], 1000) == REDLOCK_OK)
            redlock_auto_extend_start(&client, &held[i], 60000);
    }
}

/* Serves the client for `ms`; serve() also returns when a lock is lost. */
static void pass(long ms)
{
    long until = now_ms() + ms;

    while (now_ms() < until)
        serve(&client, until - now_ms());
}

/* Many locks are held with auto-extension: the cost of an acquire and release of another lock, and of each extension. */
static void many_held(void)
{
    static const struct redlock_settings patient = {.node_timeout_ms = 2000, .stall_ms = 10000};
    static const int counts[] = {1, 10, 100, 1000, HELD_MAX};
    double first = 0;
    int n, i;

    printf("\nLocks held with auto-extension, TTL 3 s\n");
    printf("    held   pair of another lock, CPU   ratio   extension, CPU us   lost\n");
    for (n = 0; n < 5; n++) {
        double before, pair, each;
        long extended, lost = 0;
        begin(&patient);
        for (i = 0; i < counts[n]; i++)
            snprintf(names[i], sizeof names[i], "held%05d", i);
        hold(counts[n], 600000); /* a TTL so long that none is extended meanwhile */
        turn_over();
        before = cpu_us();
        turn_over();
        pair = (cpu_us() - before) / (double)samples;
        first = n == 0 ? pair : first;
        for (i = 0; i < counts[n]; i++)
            redlock_release(&client, &held[i], 1000);
        hold(counts[n], 3000); /* each is extended every second */
        pass(1500);
        extended = extensions(counts[n]);
        before = cpu_us();
        pass(samples == SAMPLES ? 6000 : 2000);
        each = cpu_us() - before;
        extended = extensions(counts[n]) - extended;
        for (i = 0; i < counts[n]; i++)
            lost += redlock_remaining_ms(&client, &held[i]) == 0;
        printf("%8d   %24.1f   %5.2f   %17.1f   %4ld\n", counts[n], pair, pair / first,
               each / (double)(extended > 0 ? extended : 1), lost);
        figure("held", "pair", counts[n], "cpu_us", pair);
        figure("held", "extension", counts[n], "cpu_us",
               each / (double)(extended > 0 ? extended : 1));
        redlock_deinit(&client);
        for (i = 0; i < NODES; i++) {
            char reply[64];
            server_ask(&servers[i], reply, sizeof reply, "FLUSHALL", NULL);
        }
    }
}

int main(int argc, char **argv)
{
    (void)argv;
    samples = argc > 1 ? SAMPLES / 10 : SAMPLES;
    servers_start(servers, NODES, NULL);
    many_held();
    return 0;
}
