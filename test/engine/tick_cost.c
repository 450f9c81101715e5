/* tick_cost.c CASE LOCKS - so many locks of one client on simulated servers (fake.h), in a situation in which many of them have
   something to do at once. For tick_cost.sh, which counts the instructions of `serve`.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "many_locks.h"

#include <stdio.h>
#include <stdlib.h>

enum { NODES = 3, WAITING = 10000, PUSHED = 50 };

/* Serves the client for `us`. Not inline: valgrind counts from its beginning to its end, without the callbacks. */
__attribute__((noinline)) static void serve(uint64_t us)
{
    uint64_t end_us = fake_now_us + us;
    uint8_t events[NODES];
    unsigned i;

    while (fake_now_us < end_us) {
        uint64_t wait_us = redlock_tick(&client);

        for (i = 0; i < NODES; i++)
            events[i] = (uint8_t)redlock_wanted_events(&client, i);
        if (wait_us > end_us - fake_now_us)
            wait_us = end_us - fake_now_us;
        fake_io()->wait(NULL, nodes, NODES, wait_us, events);
        for (i = 0; i < NODES; i++)
            if (events[i] != 0)
                redlock_handle_events(&client, i, events[i]);
    }
}

static void fail(const char *what)
{
    fprintf(stderr, "tick_cost: %s\n", what);
    exit(1);
}

/* How many of the locks are held. */
static unsigned held(unsigned count)
{
    unsigned i, n = 0;

    for (i = 0; i < count; i++)
        n += redlock_remaining_ms(&client, &many[i]) > 0;
    return n;
}

/* All are acquired at once, and released at once. */
static void burst(unsigned count)
{
    unsigned i;

    make_many(count);
    start_many(0, count, 60000);
    serve(1000 * MS);
    if (held(count) != count)
        fail("not all are acquired");
    for (i = 0; i < count; i++)
        redlock_release_start(&client, &many[i], 1000);
    serve(1000 * MS);
    if (held(count) != 0 || fake_keys_left() != 0)
        fail("not all are released");
}

/* All are extended at once. */
static void renewals(unsigned count)
{
    unsigned i;

    make_many(count);
    start_many(0, count, 60000);
    if (serve_many(count, 1000 * MS) != count)
        fail("not all are acquired");
    for (i = 0; i < count; i++)
        redlock_auto_extend_start(&client, &many[i], REDLOCK_NO_LIMIT);
    serve(65000 * MS);
    if (held(count) != count)
        fail("not all are held for longer than a ttl");
}

/* All wait for one key, which goes from hand to hand: first another client has it, then one of these locks. */
static void waiters(unsigned count)
{
    unsigned i, turns;

    fake_unlogged = 1;
    for (i = 0; i < count; i++)
        redlock_lock_init(&many[i], "k", 60000);
    held_by("another", 0, NODES - 1);
    start_many(0, count, 3600000);
    fake_pass(&client, 2000 * MS);
    delete_on(0, NODES - 1);
    for (turns = 0; turns < 5; turns++) {
        serve(20 * MS);
        if (held(count) != 1)
            fail("no waiter has the lock");
        for (i = 0; redlock_remaining_ms(&client, &many[i]) == 0; i++)
            continue;
        redlock_release_start(&client, &many[i], 1000);
    }
}

/* Each waits for a key of its own, which another client has. The nodes notify of PUSHED of these keys; in a wait queue, of the leases
   of these waiters. */
static void pushes(unsigned count)
{
    static struct redlock_lock locks[WAITING];
    static char keys[WAITING][8];
    char changed[40];
    unsigned i, n;

    fake_unlogged = 1;
    for (n = 0; n < NODES; n++)
        fake_nodes[n].all_held = 1;
    for (i = 0; i < count; i++) {
        sprintf(keys[i], "k%04u", i);
        redlock_lock_init(&locks[i], keys[i], 60000);
        redlock_acquire_start(&client, &locks[i], 3600000);
    }
    fake_pass(&client, 5000 * MS);
    for (i = 0; i < count; i++)
        if (locks[i].priv.op.attempts != 1 || locks[i].status != REDLOCK_PENDING)
            fail("not all have asked once, and wait");
    for (i = 0; i < PUSHED; i++) {
        const struct redlock_lock *one = &locks[i * (count / PUSHED)];

        sprintf(changed, "%s", (const char *)one->key);
        if (settings.fair)
            put_lease(changed, one);
        for (n = 0; n < NODES; n++)
            fake_push((int)n, changed);
    }
    serve(5 * MS);
    for (i = n = 0; i < count; i++)
        n += locks[i].priv.op.attempts == 2;
    if (n != PUSHED)
        fail("not each of these locks has asked again, and no other");
}

int main(int argc, char **argv)
{
    const char *what = argc == 3 ? argv[1] : "";
    unsigned count = argc == 3 ? (unsigned)atoi(argv[2]) : 0;

    int is_push = strcmp(what, "pushes") == 0 || strcmp(what, "leases") == 0;

    if (count < PUSHED * (unsigned)is_push || count < 1 ||
        count > (is_push ? (unsigned)WAITING : MANY / NODES))
        fail("usage: tick_cost CASE LOCKS");
    settings.retry_delay_ms = settings.retry_delay_max_ms = 600000;
    settings.fair = strcmp(what, "queue") == 0 || strcmp(what, "leases") == 0;
    begin(NODES);
    if (strcmp(what, "burst") == 0)
        burst(count);
    else if (strcmp(what, "renewals") == 0)
        renewals(count);
    else if (is_push)
        pushes(count);
    else
        waiters(count);
    return 0;
}
