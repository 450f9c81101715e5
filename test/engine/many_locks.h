/* many_locks.h - many locks of one client, each with a key of its own, for tests that begin with one_lock.h.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#ifndef MANY_LOCKS_H
#define MANY_LOCKS_H

#include "one_lock.h"

enum { MANY = 3000 };

/* Locks that are started in one tick: more than the send buffer has room for, unless REDLOCK_PIPELINE_MAX is small. */
enum { BURST = REDLOCK_PIPELINE_MAX > 200 ? 200 : REDLOCK_PIPELINE_MAX - 1 };

static struct redlock_lock many[MANY];
static char many_keys[MANY][8];
static struct mini_key more_keys[3 * MANY];

/* Sets up `count` locks of one minute with different keys, and room for these keys on each node. */
static inline void make_many(unsigned count)
{
    unsigned i;

    fake_unlogged = 1;
    for (i = 0; i < client.priv.count && (i + 1) * count <= 3 * MANY; i++) {
        fake_nodes[i].server.more = &more_keys[i * count];
        fake_nodes[i].server.more_room = count;
    }
    if (i < client.priv.count)
        mini_fail("no room for so many keys");
    memset(more_keys, 0, sizeof more_keys);
    for (i = 0; i < count; i++) {
        sprintf(many_keys[i], "k%04u", i);
        redlock_lock_init(&many[i], many_keys[i], 60000);
    }
}

/* Serves the client until `count` operations have completed, for `us` at most. How many completed with REDLOCK_OK. */
static inline unsigned serve_many(unsigned count, uint64_t us)
{
    uint64_t end_us = fake_now_us + us;
    unsigned ended = 0, good = 0;
    struct redlock_lock *done;

    while (ended < count && fake_now_us < end_us) {
        fake_pass(&client, 500);
        while ((done = redlock_next_completed(&client)) != NULL) {
            good += done->status == REDLOCK_OK;
            ended++;
        }
    }
    return good;
}

static inline void start_many(unsigned from, unsigned to, uint32_t wait_ms)
{
    for (; from < to; from++)
        redlock_acquire_start(&client, &many[from], wait_ms);
}

/* Node i accepts `size` bytes, then none. */
static inline void accept_bytes(int i, unsigned size)
{
    fake_nodes[i].full = 0;
    fake_nodes[i].drip = 1;
    for (; size > 0; size--)
        redlock_handle_events(&client, (unsigned)i, REDLOCK_WRITABLE);
    fake_nodes[i].drip = 0;
    fake_nodes[i].full = 1;
}

#endif
