/* partition.h - a client with one lock, on real servers behind a packet filter in a network namespace of the test's
   own (partition.sh makes both).

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#ifndef PARTITION_H
#define PARTITION_H

#include "redlock.h"
#include "servers.h"
#include "side.h"
#include "tap.h"

#include <stdlib.h>
#include <string.h>

enum { PATIENCE_MS = 30000 }; /* longer than a server that was disconnected may keep a lock */

struct side {
    struct redlock_node nodes[REDLOCK_NODES_MAX];
    struct redlock_client client;
    struct redlock_lock lock;
    char key[20];
};

/* `local`: over unix sockets, which no packet filter sees. The time limits are short, so that a partition
   is noticed soon. A machine may pause for longer, so each step is tried until it succeeds. */
static inline void begin(struct side *side, const struct server *servers, unsigned count, int local,
                         const char *key, uint32_t ttl_ms)
{
    static const struct redlock_settings settings = {.node_timeout_ms = 200, .stall_ms = 400};
    unsigned i;

    memset(side, 0, sizeof *side);
    for (i = 0; i < count; i++)
        side->nodes[i].address = local ? servers[i].local : servers[i].address;
    if (redlock_init(&side->client, redlock_posix(), side->nodes, count, &settings) != REDLOCK_OK)
        exit(1);
    snprintf(side->key, sizeof side->key, "%s", key);
    redlock_lock_init(&side->lock, side->key, ttl_ms);
}

static inline void shell(const char *command)
{
    if (system(command) != 0) {
        printf("Bail out! %s\n", command);
        exit(1);
    }
}

/* Adds a rule for packets of this port, `end`: their source or destination. */
static inline void filter(const char *chain, const char *end, int port, const char *verdict)
{
    char command[200];

    snprintf(command, sizeof command, "nft add rule ip redlock %s tcp %s %d %s", chain, end, port,
             verdict);
    shell(command);
}

static inline void reconnect_network(void)
{
    shell("nft flush chain ip redlock input");
}

/* Tries until it succeeds: a broken connection is connected again after a pause. */
static inline int extend(struct side *side)
{
    long until = now_ms() + PATIENCE_MS;
    int status;

    while ((status = (int)redlock_extend(&side->client, &side->lock)) == REDLOCK_UNREACHABLE &&
           redlock_remaining_ms(&side->client, &side->lock) > 0 && now_ms() < until)
        serve(&side->client, 20);
    return status;
}

#endif
