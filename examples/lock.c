/* lock.c - acquires a lock, works, releases it. To build and run it, from the top folder:

   make && cc -std=c99 -I. examples/lock.c build/libredlock.a -o lock && ./lock 127.0.0.1:7001 127.0.0.1:7002 ...

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "redlock.h"

#include <stdio.h>

int main(int argc, char **argv)
{
    static const char *const local[] = {"127.0.0.1:7001", "127.0.0.1:7002", "127.0.0.1:7003"};
    unsigned i, count = argc > 1 ? (unsigned)argc - 1 : 3;
    static struct redlock_node nodes[REDLOCK_NODES_MAX];
    static struct redlock_client client;
    struct redlock_lock lock;
    enum redlock_status status;

    if (count > REDLOCK_NODES_MAX) { /* a majority of the first ones is none of all */
        fprintf(stderr, "lock: at most %d nodes\n", REDLOCK_NODES_MAX);
        return 2;
    }
    for (i = 0; i < count; i++)
        nodes[i].address = argc > 1 ? argv[i + 1] : local[i];
    status = redlock_init(&client, redlock_posix(), nodes, count, NULL);
    if (status == REDLOCK_OK) {
        redlock_lock_init(&lock, "redlock:pump", 30000); /* TTL: 30 s */
        status = redlock_acquire(&client, &lock, 5000);  /* waits up to 5 s */
    }
    if (status == REDLOCK_OK) {
        printf("held for %lu ms\n", (unsigned long)redlock_remaining_ms(&client, &lock));
        /* ... the work ... */
        status = redlock_release(&client, &lock, 100);
    }
    if (status != REDLOCK_OK) {
        fprintf(stderr, "redlock:pump: %s\n", redlock_strerror(status));
        for (i = 0; i < count; i++)
            if (nodes[i].error[0] != '\0')
                fprintf(stderr, "  %s: %s\n", nodes[i].address, nodes[i].error);
    }
    redlock_deinit(&client);
    return status != REDLOCK_OK;
}
