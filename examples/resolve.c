/* resolve.c - nodes by host name whose addresses change: the names are looked up again between two locks.

   make && cc -std=c99 -I. examples/resolve.c build/libredlock.a -o resolve
   ./resolve 10 redis-a:6379 redis-b:6379 redis-c:6379

   Acquires and releases a lock once a second, here 10 times. A name must always mean the same server, see
   docs/servers.md.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "redlock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct redlock_node nodes[REDLOCK_NODES_MAX];
/* What the nodes' addresses point to. */
static char numeric[REDLOCK_NODES_MAX][REDLOCK_ADDRESS_MAX + 1];

/* Looks up the names of all nodes without a connection. Blocks as long as getaddrinfo does, maybe minutes: call it
   while no lock is held, or look up in another thread and copy the result here. */
static void resolve(char *const *names, unsigned count)
{
    char fresh[sizeof numeric[0]];
    unsigned i;

    for (i = 0; i < count; i++) {
        if (nodes[i].state != REDLOCK_NODE_IDLE && nodes[i].state != REDLOCK_NODE_DOWN)
            continue; /* the address that is in use stays */
        if (redlock_resolve(names[i], fresh, sizeof fresh) != 0) {
            fprintf(stderr, "%s: not found\n", names[i]);
        } else if (strcmp(fresh, numeric[i]) != 0) {
            printf("%s is %s\n", names[i], fresh);
            strcpy(numeric[i], fresh); /* the next connection goes there */
        }
    }
}

int main(int argc, char **argv)
{
    static struct redlock_client client;
    static struct redlock_lock lock;
    enum redlock_status status;
    unsigned i, up, count = argc > 2 ? (unsigned)argc - 2 : 0;
    long turns = argc > 2 ? strtol(argv[1], NULL, 10) : 0;

    if (count < 1 || count > REDLOCK_NODES_MAX || turns < 1) {
        fprintf(stderr, "usage: %s TURNS NAME:PORT ...\n", argc > 0 ? argv[0] : "resolve");
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
    for (i = 0; i < count; i++) { /* until its name is found, an address that refuses connections */
        snprintf(numeric[i], sizeof numeric[i], "127.0.0.1:%u", i + 1);
        nodes[i].address = numeric[i];
    }
    status = redlock_init(&client, redlock_posix(), nodes, count, NULL);
    redlock_lock_init(&lock, "redlock:resolve", 10000);
    while (turns-- > 0) {
        resolve(argv + 2, count);
        status = redlock_acquire(&client, &lock, 2000);
        if (status == REDLOCK_OK)
            status = redlock_release(&client, &lock, 500);
        for (up = 0, i = 0; i < count; i++)
            up += nodes[i].state == REDLOCK_NODE_READY;
        printf("%s, %u of %u nodes are connected\n", redlock_strerror(status), up, count);
        if (turns > 0)
            sleep(1);
    }
    redlock_deinit(&client);
    return status != REDLOCK_OK;
}
