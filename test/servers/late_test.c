/* late_test.c - a command that arrives late, with real servers and the kernel's TCP, in a separate network namespace
   (made by partition.sh). The packets of one connection are dropped. The client closes the connection, but the kernel
   still retransmits the bytes that were written to it. So an old extension runs after a longer one has succeeded on a
   new connection. The old extension must not shorten the key: otherwise another client could acquire the lock during
   the validity of the first. A SET that is late like that creates a key in the generation of the token: after a repair
   another one is known, so this key confirms nothing (R9).

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "partition.h"

#include <netinet/in.h>
#include <sys/socket.h>

enum { NODES = 3, SHORT_MS = 5000, LONG_MS = 60000 };

static struct server servers[NODES];
static char key[20]; /* another one for each attempt */

/* The local port of a node's connection. */
static int own_port(const struct redlock_node *node)
{
    struct sockaddr_in address;
    socklen_t size = sizeof address;

    memset(&address, 0, sizeof address);
    if (getsockname((int)node->handle, (struct sockaddr *)&address, &size) != 0)
        return -1;
    return ntohs(address.sin_port);
}

/* How often a server has run a command. */
static long calls_of(struct server *server, const char *command)
{
    static char reply[20000];
    char name[40];
    const char *at;

    snprintf(name, sizeof name, "cmdstat_%s:calls=", command);
    server_ask(server, reply, sizeof reply, "INFO", "commandstats", NULL);
    at = strstr(reply, name);
    return at == NULL ? 0 : strtol(at + strlen(name), NULL, 10);
}

static long scripts_run(struct server *server)
{
    return calls_of(server, "eval");
}

static long left_ms(struct server *server)
{
    char reply[100];

    return strtol(server_ask(server, reply, sizeof reply, "PTTL", key, NULL), NULL, 10);
}

/* A holds the lock on nodes 0 and 1. An extension is sent to node 1 on a connection whose packets are dropped, and the
   connection is closed; a longer extension succeeds on a new connection. Returns 0 if a pause of the machine made one
   of these too late. */
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

/* Returns 0 if there is no result, because the machine was paused for longer than the lock's TTL. */
static int one_attempt(struct side *a, struct side *b)
{
    long scripts, until = now_ms() + PATIENCE_MS, left;
    int status, late;

    if (!extend_twice(a))
        return 0;
    settle(&a->client);
    scripts = scripts_run(&servers[1]);
    reconnect_network();
    while (!(late = scripts_run(&servers[1]) > scripts) && now_ms() < until)
        sleep_ms(20);
    left = left_ms(&servers[1]);
    status = (int)redlock_acquire(&b->client, &b->lock, SHORT_MS + 2000);
    if (redlock_remaining_ms(&a->client, &a->lock) == 0)
        return 0;
    ok(late, "an extension has run after a longer one had succeeded");
    ok(left > SHORT_MS, "the late extension has not shortened the key: %ld ms are left", left);
    ok(status == REDLOCK_TIMEOUT || status == REDLOCK_HELD,
       "no other client acquires the lock while it is valid: %s", redlock_strerror(status));
    return 1;
}

static void delete_key(struct server *server)
{
    char reply[100];

    is_int(strtol(server_ask(server, reply, sizeof reply, "DEL", key, NULL), NULL, 10), 1,
           "a server forgets the key");
}

/* A holds the lock. The SET to node 1 was sent on a connection whose packets are dropped; that has been closed, and the node
   was repaired on a new connection. */
static void begin_with_a_late_set(struct side *a)
{
    long sets, until = now_ms() + PATIENCE_MS;
    int port;

    begin(a, servers, NODES, 0, key, 10 * LONG_MS);
    is_int((int)redlock_acquire(&a->client, &a->lock, PATIENCE_MS), REDLOCK_OK, "held");
    redlock_release(&a->client, &a->lock, PATIENCE_MS);
    settle(&a->client);
    sets = calls_of(&servers[1], "set");
    port = own_port(&a->nodes[1]);
    filter("input", "sport", port, "drop");
    is_int((int)redlock_acquire(&a->client, &a->lock, 1000), REDLOCK_OK, "held by two of three");
    while ((own_port(&a->nodes[1]) == port || a->lock.members != 7) && now_ms() < until) {
        serve(&a->client, 100);
        extend(a);
    }
    is_int(a->lock.members, 7, "the third is repaired on a new connection, and is a member");
    is_int((int)(calls_of(&servers[1], "set") - sets), 1, "by the repair; the SET has not run");
}

/* Two servers forget A's key, B holds the lock, and then the late SET of A runs on one of them. */
static void late_set(struct side *a, struct side *b)
{
    char value[100], token[2 * sizeof a->lock.token + 1];
    long sets, began, until;
    unsigned n;

    snprintf(key, sizeof key, "set");
    begin_with_a_late_set(a);
    delete_key(&servers[1]);
    delete_key(&servers[2]);
    begin(b, servers, NODES, 1, key, LONG_MS);
    is_int((int)redlock_acquire(&b->client, &b->lock, PATIENCE_MS), REDLOCK_OK,
           "another client holds the lock");
    is_int((int)redlock_release(&b->client, &b->lock, PATIENCE_MS), REDLOCK_OK,
           "and has released it");
    redlock_deinit(&b->client);
    sets = calls_of(&servers[1], "set");
    reconnect_network();
    began = now_ms();
    while (calls_of(&servers[1], "set") == sets && now_ms() < began + PATIENCE_MS)
        sleep_ms(20);
    ok(calls_of(&servers[1], "set") > sets, "the late SET has run after %ld ms", now_ms() - began);
    for (n = 0; n < sizeof a->lock.token; n++)
        sprintf(token + 2 * n, "%02x", a->lock.token[n]);
    ok(strcmp(server_ask(&servers[1], value, sizeof value, "GET", key, NULL), token) == 0,
       "our key is there again: %s", value);
    is_int(extend(a), REDLOCK_LOST, "it confirms nothing, as another client held the lock: lost");
    for (until = now_ms() + PATIENCE_MS; left_ms(&servers[1]) != -2 && now_ms() < until;)
        serve(&a->client, 20);
    is_int((int)left_ms(&servers[1]), -2, "the key is deleted there");
    redlock_deinit(&a->client);
}

int main(void)
{
    struct side a, b;
    int tries, done = 0;

    servers_start(servers, NODES, NULL);
    late_set(&a, &b);
    /* A does not reach node 2, where the key is free; B does, over its unix socket */
    shell("nft add chain ip redlock away '{ type filter hook output priority 0; }'");
    filter("away", "dport", servers[2].port, "reject with tcp reset");
    for (tries = 0; tries < 5 && !done; tries++) {
        snprintf(key, sizeof key, "late%d", tries);
        begin(&a, servers, NODES, 0, key, SHORT_MS);
        begin(&b, servers, NODES, 1, key, SHORT_MS);
        done = one_attempt(&a, &b);
        redlock_deinit(&a.client);
        redlock_deinit(&b.client);
        reconnect_network();
    }
    ok(done, "an attempt without a pause of the machine: %d attempts", tries);
    return done_testing();
}
