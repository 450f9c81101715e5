/* late_test.c - a command that arrives late, with real servers and the kernel's TCP, in a network namespace of the
   test's own (partition.sh makes it). The packets of one connection are dropped, the client gives the connection up,
   and the kernel goes on sending what was written to it: an extension runs when a longer one has succeeded on a new
   connection. It must not shorten the lock, or another client is admitted while the first one is inside its validity.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "redlock.h"
#include "servers.h"
#include "side.h"
#include "tap.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { NODES = 3, SHORT_MS = 5000, LONG_MS = 60000, PATIENCE_MS = 30000 };

static struct server servers[NODES];
static char key[20]; /* another one for each attempt */
static const struct redlock_settings settings = {.node_timeout_ms = 200, .stall_ms = 400};

struct side {
    struct redlock_node nodes[NODES];
    struct redlock_client client;
    struct redlock_lock lock;
};

/* `local`: over unix sockets, which no packet filter sees. */
static void begin(struct side *side, int local, uint32_t ttl_ms)
{
    int i;

    memset(side, 0, sizeof *side);
    for (i = 0; i < NODES; i++)
        side->nodes[i].address = local ? servers[i].local : servers[i].address;
    if (redlock_init(&side->client, redlock_posix(), side->nodes, NODES, &settings) != REDLOCK_OK)
        exit(1);
    redlock_lock_init(&side->lock, key, strlen(key), ttl_ms);
}

static void shell(const char *command)
{
    if (system(command) != 0) {
        printf("Bail out! %s\n", command);
        exit(1);
    }
}

/* Adds a rule for packets of this port, `end`: their source or destination. */
static void filter(const char *chain, const char *end, int port, const char *verdict)
{
    char command[200];

    snprintf(command, sizeof command, "nft add rule ip redlock %s tcp %s %d %s", chain, end, port,
             verdict);
    shell(command);
}

/* The port of our end of a connection. */
static int own_port(const struct redlock_node *node)
{
    struct sockaddr_in address;
    socklen_t size = sizeof address;

    memset(&address, 0, sizeof address);
    if (getsockname((int)node->handle, (struct sockaddr *)&address, &size) != 0)
        return -1;
    return ntohs(address.sin_port);
}

/* How many scripts a server has run. */
static long scripts_run(struct server *server)
{
    static char reply[20000];
    const char *at;

    server_ask(server, reply, sizeof reply, "INFO", "commandstats", NULL);
    at = strstr(reply, "cmdstat_eval:calls=");
    return at == NULL ? 0 : strtol(at + 19, NULL, 10);
}

static long left_ms(struct server *server)
{
    char reply[100];

    return strtol(server_ask(server, reply, sizeof reply, "PTTL", key, NULL), NULL, 10);
}

/* Tries until an extension succeeds: a connection that was given up is made again after a pause. */
static int extend(struct side *side)
{
    long until = now_ms() + PATIENCE_MS;
    int status;

    while ((status = (int)redlock_extend(&side->client, &side->lock)) == REDLOCK_UNREACHABLE &&
           redlock_remaining_ms(&side->client, &side->lock) > 0 && now_ms() < until)
        serve(&side->client, 20);
    return status;
}

/* A holds the lock on nodes 0 and 1. An extension is sent to node 1 on a connection whose packets are dropped, and the
   connection is given up; a longer one succeeds on a new connection. 0: not in time, the machine stands still. */
static int extend_twice(struct side *a)
{
    long until = now_ms() + PATIENCE_MS;
    intptr_t handle;

    if (redlock_acquire(&a->client, &a->lock, PATIENCE_MS) != REDLOCK_OK ||
        a->nodes[1].state != REDLOCK_NODE_READY)
        return 0;
    settle(&a->client);
    handle = a->nodes[1].handle;
    filter("input", "sport", own_port(&a->nodes[1]), "drop");
    if (redlock_extend_start(&a->client, &a->lock) != REDLOCK_PENDING)
        return 0;
    while (a->nodes[1].handle == handle && now_ms() < until)
        serve(&a->client, 5);
    a->lock.ttl_ms = LONG_MS;
    return extend(a) == REDLOCK_OK;
}

/* 0: in vain, as the machine stood still for longer than the lock lives. */
static int one_attempt(struct side *a, struct side *b)
{
    long scripts, until = now_ms() + PATIENCE_MS, left;
    int status, late;

    if (!extend_twice(a))
        return 0;
    settle(&a->client);
    scripts = scripts_run(&servers[1]);
    shell("nft flush chain ip redlock input");
    while (!(late = scripts_run(&servers[1]) > scripts) && now_ms() < until)
        sleep_ms(20);
    left = left_ms(&servers[1]);
    status = (int)redlock_acquire(&b->client, &b->lock, SHORT_MS + 2000);
    if (redlock_remaining_ms(&a->client, &a->lock) == 0)
        return 0;
    ok(late, "an extension has run when a longer one had succeeded");
    ok(left > SHORT_MS, "it has not shortened the key: %ld ms are left", left);
    ok(status == REDLOCK_TIMEOUT || status == REDLOCK_HELD,
       "nobody else gets the lock while it is valid: %s", redlock_strerror(status));
    return 1;
}

int main(void)
{
    struct side a, b;
    int tries, done = 0;

    servers_start(servers, NODES, NULL);
    /* A never reaches node 2, where the key is free */
    shell("nft add chain ip redlock away '{ type filter hook output priority 0; }'");
    filter("away", "dport", servers[2].port, "reject with tcp reset");
    for (tries = 0; tries < 5 && !done; tries++) {
        snprintf(key, sizeof key, "late%d", tries);
        begin(&a, 0, SHORT_MS);
        begin(&b, 1, SHORT_MS);
        done = one_attempt(&a, &b);
        redlock_deinit(&a.client);
        redlock_deinit(&b.client);
        shell("nft flush chain ip redlock input");
    }
    ok(done, "on a machine that does not stand still: %d attempts", tries);
    return done_testing();
}
