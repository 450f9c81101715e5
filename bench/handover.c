/* handover.c - the time from the release of a contended lock to the acquire of the next holder. Processes contend on five
   servers that the benchmark starts. Each process waits for the lock, holds it for WORK_MS, releases it, and rests for
   REST_MS.

   handover [--turns N] WAITERS...   prints a line for each number of waiters

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#define _DEFAULT_SOURCE
#include "figures.h"
#include "redlock.h"
#include "servers.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NODES = 5, MOST = 256, TURNS_MAX = 100000, WORK_MS = 8, REST_MS = 5 };

struct shared {
    double released_us, took_us[TURNS_MAX], longest_us[MOST];
    long turns, inside, overlaps, attempts, wins[MOST];
};
static struct shared *shared; /* only the holder of the lock writes; wins and longest_us have an
                                 element for each process */

static struct server servers[NODES];
static long wanted = 400;

/* One process: acquires the lock until all processes together have had enough turns. */
static void contend(int me)
{
    static const struct redlock_settings patient = {.node_timeout_ms = 1000, .stall_ms = 5000};
    struct redlock_node nodes[NODES];
    struct redlock_client client;
    struct redlock_lock lock;
    double asked_us;
    int i;

    memset(nodes, 0, sizeof nodes);
    for (i = 0; i < NODES; i++)
        nodes[i].address = servers[i].address;
    redlock_init(&client, redlock_posix(), nodes, NODES, &patient);
    redlock_lock_init(&lock, "handover", 8, 10000);
    asked_us = now_us();
    while (shared->turns < wanted) {
        double got_us;
        if (redlock_acquire(&client, &lock, 20000) != REDLOCK_OK)
            continue;
        got_us = now_us();
        shared->overlaps += shared->inside != 0;
        shared->inside = 1;
        if (shared->turns < wanted)
            shared->took_us[shared->turns++] = got_us - shared->released_us;
        shared->attempts += lock.priv.op.attempts;
        shared->wins[me]++;
        if (got_us - asked_us > shared->longest_us[me])
            shared->longest_us[me] = got_us - asked_us;
        sleep_ms(WORK_MS);
        shared->inside = 0;
        shared->released_us = now_us();
        redlock_release(&client, &lock, 1000);
        sleep_ms(REST_MS);
        asked_us = now_us();
    }
    redlock_deinit(&client);
    _exit(0);
}

static void print_line(int waiters)
{
    long few = shared->wins[0], many = 0, n = shared->turns - 1;
    double longest_us = 0,
           *took = shared->took_us + 1; /* there is no release before the first turn */
    int i;

    for (i = 0; i <= waiters; i++) {
        few = shared->wins[i] < few ? shared->wins[i] : few;
        many = shared->wins[i] > many ? shared->wins[i] : many;
        longest_us = shared->longest_us[i] > longest_us ? shared->longest_us[i] : longest_us;
    }
    qsort(took, (size_t)n, sizeof *took, by_size);
    printf("%7d  %7.0f %7.0f %7.0f  %17.1f  %6ld..%-6ld  %12.0f  %8ld\n", waiters, took[n / 2],
           took[n * 9 / 10], took[n * 99 / 100], (double)shared->attempts / (double)shared->turns,
           few, many, longest_us / 1000, shared->overlaps);
    figure("handover", "redlock", waiters, "p50_us", took[n / 2]);
    figure("handover", "redlock", waiters, "p99_us", took[n * 99 / 100]);
    figure("handover", "redlock", waiters, "attempts",
           (double)shared->attempts / (double)shared->turns);
    fflush(stdout);
}

/* One holder and this many waiters. */
static void run(int waiters)
{
    pid_t children[MOST];
    int i;

    memset(shared, 0, sizeof *shared);
    for (i = 0; i <= waiters; i++)
        if ((children[i] = fork()) == 0)
            contend(i);
    for (i = 0; i <= waiters; i++)
        if (children[i] > 0)
            waitpid(children[i], NULL, 0);
    print_line(waiters);
}

int main(int argc, char **argv)
{
    int i, first = 1;

    if (argc > 2 && strcmp(argv[1], "--turns") == 0) {
        wanted = strtol(argv[2], NULL, 10);
        first = 3;
    }
    if (first >= argc || wanted < 10 || wanted > TURNS_MAX) {
        fprintf(stderr, "usage: handover [--turns 10..%d] WAITERS...\n", TURNS_MAX);
        return 2;
    }
    servers_start(servers, NODES, NULL);
    shared = (struct shared *)mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
                                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == (struct shared *)MAP_FAILED)
        return 1;
    printf("\nHand-off of one lock, %d nodes, %ld turns: from a release to the next acquire\n",
           NODES, wanted);
    printf("waiters   p50 us  p90 us  p99 us  attempts per turn  turns for each  longest wait ms"
           "  overlaps\n");
    for (i = first; i < argc; i++) {
        long waiters = strtol(argv[i], NULL, 10);
        if (waiters < 1 || waiters >= MOST) {
            fprintf(stderr, "handover: 1 to %d waiters\n", MOST - 1);
            return 2;
        }
        run((int)waiters);
    }
    return 0;
}
