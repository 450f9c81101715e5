/* idle_test.c - connections that end in silence while nobody uses them, as a NAT or a load balancer does it: the packets
   of each open connection are dropped, new connections are made as ever. In a separate network namespace (made by
   partition.sh). docs/settings.md says after what time of silence the client notices.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "partition.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

enum { NODES = 3, NOTICED_S = 30 };

static struct server servers[NODES];

/* Drops all packets of the connections that this client has now. */
static void forget(const struct side *side)
{
    unsigned i;

    for (i = 0; i < NODES; i++) {
        struct sockaddr_in own;
        socklen_t size = sizeof own;
        memset(&own, 0, sizeof own);
        getsockname((int)side->nodes[i].handle, (struct sockaddr *)&own, &size);
        filter("input", "sport", ntohs(own.sin_port), "drop");
        filter("input", "dport", ntohs(own.sin_port), "drop");
    }
}

static void connect_all(struct side *side, const char *key)
{
    long until = now_ms() + PATIENCE_MS;
    unsigned i, up = 0;

    begin(side, servers, NODES, 0, key, 20000);
    while (up < NODES && now_ms() < until) {
        redlock_acquire(&side->client, &side->lock, PATIENCE_MS);
        redlock_release(&side->client, &side->lock, PATIENCE_MS);
        settle(&side->client);
        for (i = up = 0; i < NODES; i++)
            up += side->nodes[i].state == REDLOCK_NODE_READY;
    }
    is_int((int)up, NODES, "%s: all nodes are connected", key);
}

/* How many connections the client believes in. */
static unsigned believed(const struct side *side)
{
    unsigned i, count = 0;

    for (i = 0; i < NODES; i++)
        count += side->nodes[i].state == REDLOCK_NODE_READY;
    return count;
}

/* How many connections the kernel believes in: it has no event for the client, which is not served. */
static unsigned silent(const struct side *side)
{
    unsigned i, count = 0;

    for (i = 0; i < NODES; i++) {
        struct pollfd fd = {(int)side->nodes[i].handle, POLLIN, 0};
        count += poll(&fd, 1, 0) == 0;
    }
    return count;
}

int main(void)
{
    struct side loops, sleeps; /* one is in an event loop, the other one makes blocking calls */
    long cut, took;

    servers_start(servers, NODES, NULL);
    connect_all(&loops, "loops");
    connect_all(&sleeps, "sleeps");
    forget(&loops);
    forget(&sleeps);
    cut = now_ms();
    while ((believed(&loops) > 0 || silent(&sleeps) > 0) && now_ms() < cut + 4 * NOTICED_S * 1000)
        serve(&loops.client, 100);
    took = now_ms() - cut;
    is_int((int)believed(&loops), 0, "an event loop has closed the dead connections");
    is_int((int)silent(&sleeps), 0, "the kernel has an event for the client that sleeps");
    ok(took < 2 * NOTICED_S * 1000, "noticed after %ld ms", took); /* the machine may be slow */
    is_int((int)redlock_acquire(&loops.client, &loops.lock, 0), REDLOCK_OK,
           "the loop's client acquires a lock at once: %s", loops.nodes[0].error);
    is_int((int)redlock_acquire(&sleeps.client, &sleeps.lock, 0), REDLOCK_OK,
           "so does the client that has slept: %s", sleeps.nodes[0].error);
    redlock_release(&loops.client, &loops.lock, PATIENCE_MS);
    redlock_release(&sleeps.client, &sleeps.lock, PATIENCE_MS);
    redlock_deinit(&loops.client);
    redlock_deinit(&sleeps.client);
    return done_testing();
}
