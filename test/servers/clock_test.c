/* clock_test.c - a server restarts without keys and with a wall clock that is late, and the clock is set forward, as NTP does after
   a boot. By its uptime the server is an hour old. A client that knows the process before gives it no vote. R14

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "clock_shim.h"
#include "redlock.h"
#include "servers.h"
#include "side.h"
#include "tap.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { NODES = 3, LONGEST_MS = 6000, TRIES = 5 };

struct side {
    struct redlock_node nodes[NODES];
    struct redlock_client client;
    struct redlock_lock lock;
};

static struct server servers[NODES];
static struct clock_shift *clocks; /* of the servers that are started with the shim */
static char text[8192];

/* The machine may be paused for seconds: a server that must answer has more time than that. */
static const struct redlock_settings patient = {
    .node_timeout_ms = 8000, .stall_ms = 15000, .longest_ttl_ms = LONGEST_MS};

/* The servers that are started from now on read the wall clock through the shim. 0: they cannot. */
static int preload(const char *shim)
{
    static char path[] = "/tmp/redlock-clocks-XXXXXX", inherited[40];
    int fd = mkstemp(path);

    if (fd < 0 || unlink(path) != 0 || ftruncate(fd, CLOCK_SHIFTS * sizeof *clocks) != 0)
        return 0;
    clocks = mmap(NULL, CLOCK_SHIFTS * sizeof *clocks, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    snprintf(inherited, sizeof inherited, "/proc/self/fd/%d", fd);
    setenv("REDLOCK_CLOCKS", inherited, 1);
    setenv("LD_PRELOAD", shim, 1);
    return clocks != MAP_FAILED;
}

static void begin(struct side *side)
{
    unsigned i;

    memset(side, 0, sizeof *side);
    for (i = 0; i < NODES; i++)
        side->nodes[i].address = servers[i].address;
    if (redlock_init(&side->client, redlock_posix(), side->nodes, NODES, &patient) != REDLOCK_OK)
        ok(0, "init");
    redlock_lock_init(&side->lock, "key", LONGEST_MS);
}

/* Acquires and releases until all nodes vote: they are old enough by then. */
static void meet_all(struct side *side)
{
    long until = now_ms() + 60000;

    while (now_ms() < until) {
        redlock_acquire(&side->client, &side->lock, 0);
        settle(&side->client);
        if (redlock_release(&side->client, &side->lock, 20000) == REDLOCK_OK &&
            side->lock.granted == (1 << NODES) - 1 && side->nodes[1].error[0] == '\0')
            return;
        sleep_ms(50);
    }
    ok(0, "all nodes vote: %s", side->nodes[1].error);
}

/* Server 1 restarts without its keys. Then its clock is set forward by an hour. */
static void restart_with_a_late_clock(void)
{
    long until = now_ms() + 20000, uptime = 0;

    server_kill(&servers[1]);
    server_restart(&servers[1]);
    clocks[0].pid = servers[1].pid;
    clocks[0].us = 3600 * 1000000LL;
    while (uptime < 3000 && now_ms() < until) {
        const char *found;
        server_ask(&servers[1], text, sizeof text, "INFO", "server", NULL);
        found = strstr(text, "uptime_in_seconds:");
        uptime = found != NULL ? strtol(found + 18, NULL, 10) : 0;
    }
    ok(uptime >= 3000, "the server has just started, and is %ld s old by its clock", uptime);
}

/* A holds the lock on nodes 0 and 1 only, node 1 restarts. Whether B is refused while A holds it; -1: the machine was paused for too
   long. */
static int is_refused(struct side *a, struct side *b)
{
    int status;

    meet_all(a);
    meet_all(b);
    servers_keys_left("key", 10000);
    server_ask(&servers[2], text, sizeof text, "SET", "key", "in the way", NULL);
    if (redlock_acquire(&a->client, &a->lock, 0) != REDLOCK_OK)
        return -1;
    settle(&a->client); /* server 2 has refused the lock before its key is deleted */
    server_ask(&servers[2], text, sizeof text, "DEL", "key", NULL);
    restart_with_a_late_clock();
    status = (int)redlock_acquire(&b->client, &b->lock, 0);
    settle(&b->client);
    if (redlock_remaining_ms(&a->client, &a->lock) == 0)
        return -1;
    return status != REDLOCK_OK && strstr(b->nodes[1].error, "not voting") != NULL;
}

int main(int count, char **words)
{
    struct side a, b;
    int tries, refused = -1;

    if (count != 2 || !preload(words[1])) {
        fprintf(stderr, "usage: clock_test CLOCK_SHIM\n");
        return 2;
    }
    servers_start(servers, NODES, NULL);
    for (tries = 0; tries < TRIES && refused < 0; tries++) {
        begin(&a);
        begin(&b);
        refused = is_refused(&a, &b);
        redlock_release(&a.client, &a.lock, 20000);
        redlock_deinit(&a.client);
        redlock_deinit(&b.client);
    }
    is_int(refused, 1, "r14: no second holder: the client knows the process before");
    return done_testing();
}
