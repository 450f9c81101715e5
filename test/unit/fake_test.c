/* fake_test.c - compares the simulated servers of fake.c with redis-server: both get the same commands, as the
   library encodes them, and must answer with the same bytes. Needs a real server of Redis 7.0 or later.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "fake.h"
#include "lock_options.h"
#include "servers.h"
#include "tap.h"

#include <string.h>

/* Each client's io is that of `below`, with a receive that records the bytes of its one node. */
static char heard[2][65536];
static size_t heard_size[2];
static const struct redlock_io *below[2];

static int record(int which, struct redlock_node *node, void *bytes, size_t size)
{
    int moved = below[which]->receive(NULL, node, bytes, size);

    if (moved > 0 && heard_size[which] + (size_t)moved <= sizeof heard[which]) {
        memcpy(heard[which] + heard_size[which], bytes, (size_t)moved);
        heard_size[which] += (size_t)moved;
    }
    return moved;
}

static int receive_real(void *context, struct redlock_node *node, void *bytes, size_t size)
{
    (void)context;
    return record(0, node, bytes, size);
}

static int receive_fake(void *context, struct redlock_node *node, void *bytes, size_t size)
{
    (void)context;
    return record(1, node, bytes, size);
}

/* Both sides draw the same tokens. */
static uint32_t seed;

static int same_entropy(void *context, void *bytes, size_t size)
{
    uint8_t *to = bytes;

    (void)context;
    while (size-- > 0) {
        seed = seed * 1664525U + 1013904223U;
        *to++ = (uint8_t)(seed >> 24);
    }
    return 0;
}

/* Reads the replies that no call waited for, so that both servers are heard to the end. */
static void hear_all(struct redlock_client *client, struct redlock_node *node,
                     const struct redlock_io *io)
{
    int turns;

    for (turns = 0; turns < 1000 && node->priv.count > 0; turns++) {
        uint8_t events = REDLOCK_READABLE;
        io->wait(io->context, node, 1, 20000, &events);
        redlock_handle_events(client, 0, events);
        redlock_tick(client);
    }
}

/* 300 random operations, from the seed `start`, of three locks that contend for a key on one connection; one has a
   fencing token, one several keys. `log` gets their results. */
static void run(int which, struct redlock_io *io, const char *address, uint32_t start, char *log)
{
    static const struct redlock_key more[] = {{"l", 1}, {"m", 1}};
    const struct redlock_settings settings = {
        .node_timeout_ms = 20000,
        .stall_ms = 60000,
        .retries = REDLOCK_NONE,
    };
    struct redlock_node node;
    struct redlock_client client;
    struct redlock_lock locks[3];
    uint32_t draw = start;
    int i;

    memset(&node, 0, sizeof node);
    seed = start;
    node.address = address;
    redlock_init(&client, io, &node, 1, &settings);
    for (i = 0; i < 3; i++)
        init_bytes(&locks[i], "a\0\r\nb", 5, 86400000);
    redlock_acquire(&client, &locks[0], 0);
    redlock_release(&client, &locks[0], 20000);
    set_use_fencing(&locks[1], 1);
    set_extra_keys(&locks[2], more, 2);
    hear_all(&client, &node, io);
    heard_size[which] = 0; /* the reply to HELLO names the server, and differs */
    for (i = 0; i < 300; i++) {
        int who = (int)((draw >> 16) % 3), what = (int)((draw >> 8) % 3), status;
        draw = draw * 1664525U + 1013904223U;
        if (what == 0)
            status = (int)redlock_acquire(&client, &locks[who], 0);
        else if (what == 1)
            status = (int)redlock_extend(&client, &locks[who]);
        else
            status = (int)redlock_release(&client, &locks[who], 20000);
        *log++ = (char)('a' - status);
    }
    *log = '\0';
    for (i = 0; i < 3; i++)
        redlock_release(&client, &locks[i], 20000);
    hear_all(&client, &node, io);
    redlock_deinit(&client);
}

static int knows(struct server *server, const char *command)
{
    char text[64];

    return strstr(server_ask(server, text, sizeof text, command, NULL), "unknown") == NULL;
}

/* Proposals for fencing tokens, below and above the counters of the servers. */
static uint64_t same_wall(void *context)
{
    (void)context;
    return seed & 1 ? (uint64_t)1 << 50 | seed : 3;
}

/* A reply "TIME TOKEN" says how long a key still lives: a real server is asked later. Its digits are not compared. */
static void forget_times(int which)
{
    size_t at, digits = 0;

    for (at = 0; at < heard_size[which]; at++)
        if (heard[which][at] >= '0' && heard[which][at] <= '9') {
            digits++;
        } else {
            if (heard[which][at] == ' ' && digits == 8)
                memset(heard[which] + at - digits, '#', digits);
            digits = 0;
        }
}

int main(void)
{
    static struct server server;
    static struct redlock_client unused;
    static struct redlock_node unused_node;
    struct redlock_io real = *redlock_posix(), fake = *fake_io();
    char logs[2][301], text[64];
    uint32_t start;
    int native;

    servers_start(&server, 1, NULL);
    native = (knows(&server, "DELIFEQ") ? 1 : 0) + (knows(&server, "DELEX") ? 2 : 0);
    below[0] = redlock_posix();
    below[1] = fake_io();
    real.receive = receive_real;
    fake.receive = receive_fake;
    real.entropy = fake.entropy = same_entropy;
    real.wall_us = fake.wall_us = same_wall;
    for (start = 1; start <= 20; start++) {
        fake_begin(&unused, &unused_node, 1, NULL);
        fake_nodes[0].server.native = native;
        server_ask(&server, text, sizeof text, "FLUSHALL", NULL);
        run(0, &real, server.address, start, logs[0]);
        run(1, &fake, "0", start, logs[1]);
        ok(strcmp(logs[0], logs[1]) == 0, "seed %u: the same results", (unsigned)start);
        forget_times(0);
        forget_times(1);
        ok(heard_size[0] > 500 && heard_size[0] == heard_size[1] &&
               memcmp(heard[0], heard[1], heard_size[0]) == 0,
           "seed %u: the same %lu bytes", (unsigned)start, (unsigned long)heard_size[0]);
    }
    return done_testing();
}
