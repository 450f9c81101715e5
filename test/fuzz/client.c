/* client.c - fuzzing the whole client: the input is what the program does, what time does, and what three
   hostile servers say.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "redlock.h"

#include "../engine/lock_options.h"

#include <stdlib.h>
#include <string.h>

enum { NODES = 3, LOCKS = 3 };

static const uint8_t *input, *input_end;
static uint64_t clock_us;
static const uint8_t *said[NODES]; /* by a server, not yet read */
static size_t said_size[NODES];
static int up[NODES], open_count, blocked, gone[NODES];

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned draw(void)
{
    return input < input_end ? *input++ : 0U;
}

static int fuzz_dial(void *context, struct redlock_node *node)
{
    int i = node->address[0] - '0';

    (void)context;
    node->handle = i;
    up[i] = 1;
    gone[i] = 0;
    said_size[i] = 0;
    open_count++;
    return 0;
}

static int fuzz_ready(void *context, struct redlock_node *node)
{
    (void)context;
    return up[node->handle];
}

static int fuzz_transmit(void *context, struct redlock_node *node, const void *bytes, size_t size)
{
    (void)context;
    (void)bytes;
    if (gone[node->handle])
        return -1;
    return blocked ? blocked == 1 ? 0 : 1 : (int)size;
}

static int fuzz_receive(void *context, struct redlock_node *node, void *bytes, size_t size)
{
    intptr_t i = node->handle;

    (void)context;
    if (size > said_size[i])
        size = said_size[i];
    if (size == 0)
        return gone[i] ? -1 : 0;
    memcpy(bytes, said[i], size);
    said[i] += size;
    said_size[i] -= size;
    return (int)size;
}

static void fuzz_shut(void *context, struct redlock_node *node)
{
    (void)context;
    if (node->handle < 0)
        abort();
    node->handle = -1;
    open_count--;
}

static uint64_t fuzz_now(void *context)
{
    (void)context;
    return clock_us;
}

static int fuzz_entropy(void *context, void *bytes, size_t size)
{
    (void)context;
    memset(bytes, (int)(clock_us & 127), size);
    return 0;
}

static const struct redlock_io fuzz_io = {fuzz_dial, fuzz_ready, fuzz_transmit, fuzz_receive,
                                          fuzz_shut, fuzz_now,   fuzz_entropy,  NULL,
                                          NULL,      fuzz_now,   NULL,          NULL};

/* A server says something that it might well say, or bytes of the input. */
static void say(int i)
{
    static const char *const usual[] = {
        "+OK\r\n",
        "$-1\r\n",
        "_\r\n",
        ":0\r\n",
        ":1\r\n",
        ":2\r\n",
        ":-1\r\n",
        "-BUSY x\r\n",
        "-NOPERM x\r\n",
        "%3\r\n$6\r\nserver\r\n$5\r\nredis\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$5\r\nproto\r\n:3\r\n",
        "*2\r\n$3\r\n1a2\r\n$3\r\n999\r\n",
        "-ERR unknown command\r\n",
        "$5\r\nother\r\n",
        ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\na\r\n"};
    unsigned which = draw();

    if (which < 128) {
        said[i] = (const uint8_t *)usual[which % 14];
        said_size[i] = strlen(usual[which % 14]);
        return;
    }
    said_size[i] = which - 128;
    if (said_size[i] > (size_t)(input_end - input))
        said_size[i] = (size_t)(input_end - input);
    said[i] = input;
    input += said_size[i];
}

static void act(struct redlock_client *client, struct redlock_lock *lock)
{
    switch (draw() % 7) {
    case 0:
    case 1:
        redlock_acquire_start(client, lock, draw() * 8);
        break;
    case 2:
        redlock_extend_start(client, lock);
        break;
    case 3:
        redlock_release_start(client, lock, draw());
        break;
    case 4:
        redlock_auto_extend_start(client, lock, 1 + draw() % 8);
        break;
    case 5:
        redlock_cancel(client, lock);
        break;
    default:
        redlock_abandon(client, lock);
    }
}

/* As a loop does: not for ever within one moment. A lock is acquired or extended by the word of a quorum
   only. */
static void serve(struct redlock_client *client)
{
    const struct redlock_lock *lock;
    unsigned turns = 0, i, granted;

    while (redlock_tick(client) == 0)
        if (++turns > 1000)
            abort();
        else
            while ((lock = redlock_next_completed(client)) != NULL) {
                for (i = granted = 0; i < NODES; i++)
                    granted += lock->granted >> i & 1U;
                if (lock->status == REDLOCK_OK && lock->valid_until_us != 0 &&
                    (granted < NODES / 2 + 1 || redlock_remaining_ms(client, lock) > lock->ttl_ms))
                    abort();
            }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct redlock_key more = {"b", 1};
    static const char *const names[NODES] = {"0", "1", "2"};
    struct redlock_node nodes[NODES];
    struct redlock_lock locks[LOCKS];
    struct redlock_settings settings;
    struct redlock_client client;
    unsigned i;

    input = data;
    input_end = data + size;
    clock_us = 1000000;
    open_count = blocked = 0;
    memset(nodes, 0, sizeof nodes);
    memset(&settings, 0, sizeof settings);
    for (i = 0; i < NODES; i++)
        nodes[i].address = names[i];
    nodes[1].password = draw() & 1 ? "secret" : NULL;
    settings.longest_ttl_ms = draw() & 1 ? 5000 : 0;
    if (redlock_init(&client, &fuzz_io, nodes, NODES, &settings) != REDLOCK_OK)
        abort();
    for (i = 0; i < LOCKS; i++)
        redlock_lock_init(&locks[i], i == 2 ? "b" : "a", 1000);
    set_use_fencing(&locks[0], 1);
    set_extra_keys(&locks[1], &more, 1);
    while (input < input_end) {
        unsigned what = draw(), n = what % NODES;
        if (what < 64) {
            act(&client, &locks[n]);
        } else if (what < 192) {
            if (nodes[n].handle >= 0 && nodes[n].state != REDLOCK_NODE_IDLE &&
                nodes[n].state != REDLOCK_NODE_DOWN) {
                say((int)n);
                redlock_handle_events(&client, n, REDLOCK_READABLE | REDLOCK_WRITABLE);
            }
        } else if (what < 224) {
            clock_us += draw() * (uint64_t)(what & 1 ? 100 : 20000);
        } else if (what < 240) {
            gone[n] = 1;
            redlock_handle_events(&client, n, REDLOCK_READABLE);
        } else {
            blocked = (int)(what % 3);
        }
        serve(&client);
    }
    redlock_deinit(&client);
    if (open_count != 0)
        abort();
    return 0;
}
