/* instructions.c PAIRS GAP_US LOCKS - acquires and releases locks on five simulated servers (test/engine/fake.h), so many at the same
   time, with replies that arrive GAP_US after each other. For bench/instructions.sh, which counts the instructions.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "test/engine/fake.h"

#include <stdio.h>
#include <stdlib.h>

enum { NODES = 5, LOCKS_MAX = 64 };

static struct redlock_client client;
static struct redlock_lock locks[LOCKS_MAX];
static long left, in_flight;

/* An operation is complete: the next one of this lock. */
static void go_on(struct redlock_lock *lock)
{
    if (lock->status != REDLOCK_OK) {
        fprintf(stderr, "instructions: %s\n", redlock_strerror(lock->status));
        exit(1);
    }
    if (lock->operation == REDLOCK_OP_ACQUIRE)
        redlock_release_start(&client, lock, 1000);
    else if (left-- > 0)
        redlock_acquire_start(&client, lock, 0);
    else
        in_flight--;
}

/* One lock by the blocking calls, several by an event loop. */
static void acquire_and_release(struct redlock_node *nodes)
{
    uint8_t events[NODES];
    long i;

    if (in_flight == 1)
        for (; left > 0; left--) {
            redlock_acquire(&client, &locks[0], 0);
            redlock_release(&client, &locks[0], 1000);
        }
    else
        for (i = 0; i < in_flight; i++)
            redlock_acquire_start(&client, &locks[i], 0);
    while (in_flight > 1) {
        struct redlock_lock *lock;
        uint64_t wait_us = redlock_tick(&client);

        while ((lock = redlock_next_completed(&client)) != NULL)
            go_on(lock);
        for (i = 0; i < NODES; i++)
            events[i] = (uint8_t)redlock_wanted_events(&client, (unsigned)i);
        fake_io()->wait(NULL, nodes, NODES, wait_us, events);
        for (i = 0; i < NODES; i++)
            if (events[i] != 0)
                redlock_handle_events(&client, (unsigned)i, events[i]);
    }
}

int main(int count, char **arguments)
{
    static struct redlock_node nodes[NODES];
    static char keys[LOCKS_MAX][40];
    long gap_us = count == 4 ? atol(arguments[2]) : -1;
    int i;

    left = count == 4 ? atol(arguments[1]) : 0;
    in_flight = count == 4 ? atol(arguments[3]) : 0;
    if (left < 1 || gap_us < 0 || in_flight < 1 || in_flight > LOCKS_MAX) {
        fprintf(stderr, "usage: instructions PAIRS GAP_US LOCKS\n");
        return 2;
    }
    fake_begin(&client, nodes, NODES, NULL);
    fake_unlogged = 1;
    for (i = 0; i < NODES; i++)
        fake_nodes[i].delay_us = 100 + (uint64_t)(i * gap_us);
    for (i = 0; i < in_flight; i++) {
        snprintf(keys[i], sizeof keys[i], "redlock:bench:%d", i + 1);
        redlock_lock_init(&locks[i], keys[i], 10000);
    }
    acquire_and_release(nodes);
    return 0;
}
