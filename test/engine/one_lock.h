/* one_lock.h - one client and one lock of it, on the simulated servers of fake.h with a simulated clock: what
   the tests of the lock's rules begin with.

   In the names of tests "r04" is rule 4, in the head of redlock.c, hold.c, wait.c or node.c.

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
    redlock_lock_init(&lock, "k", 10000);
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
        init_bytes(&many[i], &keys[i], 1, 10000);
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

/* Writes the key of the lease of a waiter, with a NUL. */
static inline void put_lease(char *text, const struct redlock_lock *of)
{
    unsigned i;

    text += sprintf(text, "%.*s:wait:", (int)of->key_size, (const char *)of->key);
    for (i = 0; i < sizeof of->priv.fair.name; i++)
        text += sprintf(text, "%02x", of->priv.fair.name[i]);
}

/* Breaks the connection to node i, and refuses new ones. */
static inline void make_unreachable(int i)
{
    fake_nodes[i].refuses = 1;
    fake_break(i);
}

/* Both connecting to node i and a reply take `us`. */
static inline void set_distance(int i, uint64_t us)
{
    fake_nodes[i].connect_us = fake_nodes[i].delay_us = us;
}

/* The token of a lock, as it is the value of its key. */
static inline void put_token(char text[41], const struct redlock_lock *of)
{
    unsigned n;

    for (n = 0; n < sizeof of->token; n++)
        sprintf(text + 2 * n, "%02x", of->token[n]);
}

/* Whether the key of `of` on node i has the token of `of`. Behind it is the generation, which a repair changes. */
static inline int has_token(int i, const struct redlock_lock *of)
{
    const struct mini_key *key = fake_find(i, of->key, of->key_size);
    char token[41];

    put_token(token, of);
    return key != NULL && key->value_size >= 40 && memcmp(key->value, token, 32) == 0;
}

static inline unsigned nodes_with(const struct redlock_lock *of)
{
    unsigned i, n = 0;

    for (i = 0; i < client.priv.count; i++)
        n += (unsigned)has_token((int)i, of);
    return n;
}

/* The number of nodes that would grant the lock to another client now. */
static inline unsigned nodes_free(void)
{
    unsigned i, n = 0;

    for (i = 0; i < client.priv.count; i++)
        n += fake_find((int)i, lock.key, lock.key_size) == NULL;
    return n;
}

/* Lets time pass until the validity ends. 0: before that a quorum of nodes was free, so another client could
   have acquired the lock. */
static inline int others_cannot_acquire(void)
{
    while (redlock_remaining_ms(&client, &lock) > 0) {
        if (nodes_free() >= client.priv.quorum)
            return 0;
        fake_pass(&client, 5 * MS);
    }
    return 1;
}

/* Sets up `lock` as one of these kinds. 0: this build lacks the feature. */
static inline int make_kind(unsigned kind)
{
    static const struct redlock_key other_key = {"l", 1};

    if (kind == 1 && (REDLOCK_MINIMAL || REDLOCK_KEY_MAX < 12))
        return 0;
    if (kind == 2 && REDLOCK_MINIMAL)
        return 0;
    set_extra_keys(&lock, kind == 1 ? &other_key : NULL, kind == 1);
    set_use_fencing(&lock, kind == 2);
    return 1;
}

static inline const char *kind_name(unsigned kind)
{
    static const char *const names[] = {"one key", "two keys", "with a fencing token"};

    return names[kind];
}

/* Serves the client until the operation of `one` has completed, for `us` at most. Its status. */
static inline int wait_for(struct redlock_lock *one, uint64_t us)
{
    uint64_t end_us = fake_now_us + us;
    struct redlock_lock *done;

    while (fake_now_us < end_us) {
        fake_pass(&client, 500);
        while ((done = redlock_next_completed(&client)) != NULL)
            if (done == one)
                return (int)done->status;
    }
    return REDLOCK_PENDING;
}

/* The memory of a lock that has ended is the caller's. Whether late replies leave it unchanged for `us`. */
static inline int stays_unchanged(uint64_t us)
{
    static const struct redlock_lock none;

    memset(&lock, 0, sizeof lock);
    fake_pass(&client, us);
    return memcmp(&lock, &none, sizeof lock) == 0;
}

/* Between two blocking calls nothing is read. */
static inline void gap(uint64_t us)
{
    fake_now_us += us;
}

static inline unsigned releases_of(int i)
{
    return fake_count(i, 'D') + fake_count(i, 'N');
}

/* Whether every SET is followed by a release of its token on its connection, except on node `but` (-1: none). */
static inline int each_set_is_released(int but)
{
    unsigned i, j;

    for (i = 0; i < fake_logged; i++) {
        if (fake_log[i].kind != 'S' || fake_log[i].node == but)
            continue;
        for (j = i + 1; j < fake_logged; j++)
            if (strchr("DdN", fake_log[j].kind) != NULL && fake_log[j].node == fake_log[i].node &&
                fake_log[j].epoch == fake_log[i].epoch &&
                strcmp(fake_log[j].token, fake_log[i].token) == 0)
                break;
        if (j == fake_logged)
            return 0;
    }
    return 1;
}

/* Held on nodes 0 and 1 of three. Node 2 is free, and replies after `delay_us`. */
static inline void hold_two_of_three(uint64_t delay_us)
{
    memset(&settings, 0, sizeof settings);
    settings.stall_ms = 600000;
    begin(3);
    warm_up();
    held_by("another", 2, 2);
    acquire(0);
    fake_pass(&client, 10 * MS);
    fake_delete(2, "k");
    fake_nodes[2].delay_us = delay_us;
}

/* Ends the client, as its process would, and adopts the lock in a new client, with `remaining_ms` left. */
static inline int adopted_by_another(uint32_t remaining_ms)
{
    struct redlock_lock mine = lock;

    redlock_abandon(&client, &lock);
    redlock_deinit(&client);
    redlock_init(&client, fake_io(), nodes, 3, &settings);
    redlock_lock_init(&lock, "k", mine.ttl_ms);
    hand_over(&lock, &mine);
    return (int)redlock_adopt(&client, &lock, remaining_ms);
}

/* The key expires on nodes 0 and 2; only node 1 was extended. Another client holds the lock on nodes 0 and 2
   and releases it. Then a delayed command to node 2 creates our key there again. The result of the next
   extension. */
static inline int extended_after_another_had_it(void)
{
    unsigned i, sent;

    fake_pass(&client, 8000 * MS);
    make_unreachable(0);
    make_unreachable(2);
    ok(extend() != REDLOCK_OK && has_token(1, &lock), "r08: extended on one node only");
    fake_pass(&client, 2500 * MS);
    fake_nodes[0].refuses = fake_nodes[2].refuses = 0;
    is_int((int)redlock_remaining_ms(&client, &lock), 0, "r08: no validity is left");
    is_int((int)nodes_free(), 2, "r08: two nodes are free for another client");
    fake_put(0, "k", "other", 100);
    fake_put(2, "k", "other", 100);
    fake_pass(&client, 50 * MS);
    fake_delete(0, "k");
    fake_delete(2, "k");
    for (i = sent = 0; i < 4; i++)
        sent += fake_arrive(2);
    ok(sent > 0 && has_token(2, &lock), "r08: a delayed command creates our key again");
    return extend();
}

#endif
