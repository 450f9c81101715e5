/* one_lock.h - one client and one lock of it, on the simulated servers of fake.h with a simulated clock: what
   the tests of the lock's rules begin with.

   In the names of tests "r04" is rule 4 in the head of redlock.c or node.c, and "T19" a known failure of
   another Redlock client. Failures that this library cannot have are not tested. T42 and T44: the library
   measures the remaining time with its own clock. T48 and T49: there are no semaphores and no read locks. T50:
   the library does not call the caller's work.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#ifndef ONE_LOCK_H
#define ONE_LOCK_H

#include "fake.h"
#include "lock_options.h"
#include "tap.h"

#include <string.h>

enum { MS = 1000 };

/* 1: releases that a node has not answered well are repeated. */
enum { REPEATS = REDLOCK_OWED_MAX > 0 };

static struct redlock_client client;
static struct redlock_node nodes[REDLOCK_NODES_MAX];
static struct redlock_lock lock;
static struct redlock_settings settings;

/* `count` fresh servers, `settings`, and a lock "k" of 10 s. */
static inline void begin(unsigned count)
{
    fake_begin(&client, nodes, count, &settings);
    redlock_lock_init(&lock, "k", 1, 10000);
}

static inline void begin_with_defaults(unsigned count)
{
    memset(&settings, 0, sizeof settings);
    begin(count);
}

static inline void begin_without_pauses(unsigned count)
{
    memset(&settings, 0, sizeof settings);
    settings.retry_delay_ms = REDLOCK_NONE;
    begin(count);
}

/* Another client holds "k" on the nodes from..to. */
static inline void held_by(const char *token, int from, int to)
{
    for (; from <= to; from++)
        fake_put(from, "k", token, 60000);
}

/* Another client deletes "k" on the nodes from..to. */
static inline void delete_on(int from, int to)
{
    for (; from <= to; from++)
        fake_delete(from, "k");
}

/* Node i loses its keys, and its connection breaks. */
static inline void lose_keys(int i)
{
    fake_nodes[i].server.used = 0;
    fake_break(i);
}

static inline int acquire(uint32_t wait_ms)
{
    return (int)redlock_acquire(&client, &lock, wait_ms);
}

/* Starts to acquire `count` locks, 62 at most, each with a key of one byte. Returns how many are held 40 ms later. */
static inline unsigned acquire_many(struct redlock_lock *many, unsigned count)
{
    static const char keys[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    unsigned i, held = 0;

    for (i = 0; i < count; i++) {
        redlock_lock_init(&many[i], &keys[i], 1, 10000);
        redlock_acquire_start(&client, &many[i], 0);
    }
    fake_pass(&client, 40 * MS);
    for (i = 0; i < count; i++)
        held += many[i].status == REDLOCK_OK;
    return held;
}

static inline int extend(void)
{
    return (int)redlock_extend(&client, &lock);
}

static inline int release(uint32_t wait_ms)
{
    return (int)redlock_release(&client, &lock, wait_ms);
}

/* What a process hands to another one beside the key: see redlock_adopt. */
static inline void hand_over(struct redlock_lock *to, const struct redlock_lock *from)
{
    memcpy(to->token, from->token, sizeof to->token);
    memcpy(to->generation, from->generation, sizeof to->generation);
    to->members = from->members;
}

/* How many nodes a set has. */
static inline unsigned votes(redlock_mask mask)
{
    unsigned n = 0;

    for (; mask != 0; mask = (redlock_mask)(mask & (mask - 1)))
        n++;
    return n;
}

/* Microseconds since `start`. */
static inline long since(uint64_t start)
{
    return (long)(fake_now_us - start);
}

/* Connects to all nodes, so that what follows is not about connecting. */
static inline void warm_up(void)
{
    acquire(0);
    release(1000);
    fake_pass(&client, 20 * MS);
    fake_logged = 0;
}

/* Whether the error of node i contains this text. A build without texts has none. */
static inline int has_error(unsigned i, const char *text)
{
    return !REDLOCK_MINIMAL ? strstr(nodes[i].error, text) != NULL : nodes[i].error[0] == '\0';
}

/* Whether the reason of the last REDLOCK_INVALID_ARGUMENT contains this text; the same. */
static inline int has_invalid(const char *text)
{
    const char *reason = redlock_invalid_argument(&client);

    return !REDLOCK_MINIMAL ? strstr(reason, text) != NULL : reason[0] == '\0';
}

#endif
