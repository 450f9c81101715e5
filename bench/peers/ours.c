/* ours.c - this library. Called by peers.sh, which describes the arguments.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#define _DEFAULT_SOURCE
#include "figures.h"
#include "redlock.h"

#include <string.h>
#include <unistd.h>

enum { FLIGHT = 64 };

static struct redlock_node nodes[REDLOCK_NODES_MAX];
static struct redlock_client client;
static struct redlock_lock locks[FLIGHT];
static char names[FLIGHT][16];
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

/* Each lock is acquired again as soon as it is released. */
static void flight(long n)
{
    double start = now_us();
    long done = 0;
    unsigned i;

    for (i = 0; i < FLIGHT; i++)
        redlock_acquire_start(&client, &locks[i], 5000);
    while (done < n) {
        uint8_t events[REDLOCK_NODES_MAX];
        uint64_t wait_us = redlock_tick(&client);
        struct redlock_lock *lock = redlock_next_completed(&client);
        int ended = lock != NULL;
        for (; lock != NULL; lock = redlock_next_completed(&client))
            if (lock->valid_until_us != 0)
                redlock_release_start(&client, lock, 5000);
            else if (++done < n)
                redlock_acquire_start(&client, lock, 5000);
        if (ended)
            continue; /* the next tick sends the commands of the new operations */
        for (i = 0; i < count; i++)
            events[i] = (uint8_t)redlock_wanted_events(&client, i);
        redlock_posix()->wait(NULL, nodes, count, wait_us, events);
        for (i = 0; i < count; i++)
            if (events[i] != 0)
                redlock_handle_events(&client, i, events[i]);
    }
    printf("%.1f\n", (double)n / (now_us() - start) * 1e6);
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
    static const struct redlock_settings settings = {.node_timeout_ms = 1000, .stall_ms = 5000};
    long n;
    unsigned i;

    if (argc < 5)
        return 2;
    n = strtol(argv[2], NULL, 10);
    for (count = 0; count + 4 < (unsigned)argc && count < REDLOCK_NODES_MAX; count++)
        nodes[count].address = argv[count + 4];
    if (redlock_init(&client, redlock_posix(), nodes, count, &settings) != REDLOCK_OK)
        return 1;
    for (i = 0; i < FLIGHT; i++) {
        snprintf(names[i], sizeof names[i], "ours%02u", i);
        redlock_lock_init(&locks[i], names[i], 10000);
    }
    if (strcmp(argv[1], "pairs") == 0)
        pairs(n);
    else if (strcmp(argv[1], "flight") == 0)
        flight(n);
    else
        contend(n);
    redlock_deinit(&client);
    return 0;
}
