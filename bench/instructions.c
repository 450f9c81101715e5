/* instructions.c PAIRS GAP_US - acquires and releases a lock on five simulated servers (test/fake.h), whose replies arrive
   GAP_US after each other. For bench/instructions.sh, which counts the instructions of the library.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "test/fake.h"

#include <stdio.h>
#include <stdlib.h>

enum { NODES = 5 };

int main(int count, char **arguments)
{
    static struct redlock_client client;
    static struct redlock_node nodes[NODES];
    static const char key[] = "redlock:bench:1";
    struct redlock_lock lock;
    long pairs = count == 3 ? atol(arguments[1]) : 0, gap_us = count == 3 ? atol(arguments[2]) : 0;
    int i;

    if (pairs < 1 || gap_us < 0) {
        fprintf(stderr, "usage: instructions PAIRS GAP_US\n");
        return 2;
    }
    fake_begin(&client, nodes, NODES, NULL);
    fake_unlogged = 1;
    for (i = 0; i < NODES; i++)
        fake_nodes[i].delay_us = 100 + (uint64_t)(i * gap_us);
    redlock_lock_init(&lock, key, sizeof key - 1, 10000);
    for (; pairs > 0; pairs--)
        if (redlock_acquire(&client, &lock, 0) != REDLOCK_OK ||
            redlock_release(&client, &lock, 1000) != REDLOCK_OK) {
            fprintf(stderr, "instructions: %s\n", redlock_strerror(lock.status));
            return 1;
        }
    return 0;
}
