/* ours.c - this library. Called by peers.sh, which describes the arguments.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#define _DEFAULT_SOURCE
#include "figures.h"
#include "redlock.h"

#include <string.h>
#include <unistd.h>

enum { FLIGHT = 64, PATIENCE_MS = 5000 };

static struct redlock_node nodes[REDLOCK_NODES_MAX];
static struct redlock_client client;
static struct redlock_lock locks[FLIGHT];
static char names[FLIGHT][32];
static unsigned count;

static void pairs(long n)
{
    while (n > 0) {
        double start = now_us();
        if (redlock_acquire(&client, &locks[0], 0) != REDLOCK_OK)
            continue;
        redlock_release(&client, &locks[0], 1000);
        printf("%.1f\n", now_us() - start);
        n--;
    }
}

static void note(int logged, const char *what, const struct redlock_lock *lock)
{
    if (logged)
        printf("%s %d %.1f\n", what, (int)(lock - locks), now_us());
}

/* Starts what comes next for a lock: a release if it is held, else an acquire. */
static void go_on(struct redlock_lock *lock, int logged)
{
    note(logged, lock->valid_until_us != 0 ? "r" : "a", lock);
    if (lock->valid_until_us != 0)
        redlock_release_start(&client, lock, PATIENCE_MS);
    else
        redlock_acquire_start(&client, lock, PATIENCE_MS);
}

/* Acquires each lock again as soon as it is released, `most` times in all, or until that time. */
static void flight(long most, double until_us, int logged)
{
    unsigned i, busy = FLIGHT;
    long done = 0;

    for (i = 0; i < FLIGHT; i++)
        go_on(&locks[i], logged);
    while (busy > 0) {
        struct redlock_lock *lock = redlock_turn(&client, REDLOCK_NEVER);
        for (; lock != NULL; lock = redlock_next_completed(&client)) {
            note(logged, lock->status == REDLOCK_OK ? "+" : "-", lock);
            done += lock->operation == REDLOCK_OP_RELEASE;
            if (lock->valid_until_us == 0 && (done >= most || now_us() > until_us))
                busy--;
            else
                go_on(lock, logged);
        }
    }
}

/* Through the blocking calls. */
static void one_at_a_time(double until_us, int logged)
{
    struct redlock_lock *lock = &locks[0];

    while (now_us() < until_us) {
        note(logged, "a", lock);
        redlock_acquire(&client, lock, PATIENCE_MS);
        note(logged, lock->status == REDLOCK_OK ? "+" : "-", lock);
        if (lock->status != REDLOCK_OK)
            continue;
        note(logged, "r", lock);
        redlock_release(&client, lock, PATIENCE_MS);
        note(logged, lock->status == REDLOCK_OK ? "+" : "-", lock);
    }
}

static void work(long ms, int load, int logged)
{
    double until_us = now_us() + (double)ms * 1e3;

    if (load)
        flight(0x7fffffff, until_us, logged);
    else
        one_at_a_time(until_us, logged);
}

static void faults(long ms, int load)
{
    int i;

    setvbuf(stdout, NULL, _IOLBF, 0); /* it may hang later */
    work(1000, load, 0);
    for (i = 0; i < (load ? FLIGHT : 1); i++)
        puts("idle");
    while (getchar() != EOF)
        continue;
    alarm((unsigned)(ms / 1000 + 10));
    work(ms, load, 1);
}

static void contend(long ms)
{
    double until = now_us() + (double)ms * 1000;

    while (now_us() < until) {
        printf("W %.1f\n", now_us());
        while (redlock_acquire(&client, &locks[0], 1000) != REDLOCK_OK)
            if (now_us() > until)
                return;
        printf("A %.1f\n", now_us());
        usleep(8000);
        printf("R %.1f\n", now_us());
        redlock_release(&client, &locks[0], 1000);
        usleep(5000);
    }
}

int main(int argc, char **argv)
{
    static const struct redlock_settings patient = {.node_timeout_ms = 1000, .stall_ms = 5000};
    double start = now_us();
    long n;
    unsigned i;
    int load, faulty;

    if (argc < 5)
        return 2;
    n = strtol(argv[2], NULL, 10);
    load = strcmp(argv[1], "load") == 0;
    faulty = load || strcmp(argv[1], "faults") == 0;
    for (count = 0; count + 4 < (unsigned)argc && count < REDLOCK_NODES_MAX; count++)
        nodes[count].address = argv[count + 4];
    if (redlock_init(&client, redlock_posix(), nodes, count, faulty ? NULL : &patient) !=
        REDLOCK_OK)
        return 1;
    for (i = 0; i < FLIGHT; i++) {
        snprintf(names[i], sizeof names[i], "ours%02u-%d", i, faulty ? (int)getpid() : 0);
        redlock_lock_init(&locks[i], names[i], 10000);
    }
    if (faulty) {
        faults(n, load);
    } else if (strcmp(argv[1], "pairs") == 0) {
        pairs(n);
    } else if (strcmp(argv[1], "flight") == 0) {
        flight(n, now_us() + 1e9, 0);
        printf("%.1f\n", (double)n / (now_us() - start) * 1e6);
    } else {
        contend(n);
    }
    redlock_deinit(&client);
    return 0;
}
