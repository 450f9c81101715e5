/* chaos_test.c - random histories on the servers of fake.c: locks are taken, extended, released,
   cancelled and forgotten while nodes hang, refuse, break, drip, slow down and talk nonsense. After each
   step: who believes to hold a lock has its token on a quorum of nodes; and everything ends in its time.
   `chaos_test FIRST COUNT` runs other seeds; a failing seed is printed and runs the same way again.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "fake.h"
#include "tap.h"

#include <stdlib.h>
#include <string.h>

enum { LOCKS = 6, STEPS = 120, MS = 1000, TTL_MS = 3000 };

static struct redlock client;
static struct redlock_node nodes[REDLOCK_NODES_MAX];
static struct redlock_lock locks[LOCKS];
static uint64_t began_us[LOCKS]; /* of the operation in progress */
static unsigned count;
static uint32_t dice;
static unsigned long outcomes[20], faults[8];

static unsigned roll(unsigned sides)
{
    dice ^= dice << 13;
    dice ^= dice >> 17;
    dice ^= dice << 5;
    return dice % sides;
}

static void a_fault(void)
{
    static const char *const nonsense[] = {"+QUEUED\r\n", "-ERR no\r\n", "$3\r\nabc\r\n", "?\r\n",
                                           ""};
    int i = (int)roll(count), on = (int)roll(2);
    unsigned kind = roll(8);
    struct fake_node *n = &fake_nodes[i];

    faults[kind]++;
    if (kind == 0 && on)
        n->hung = 1;
    else if (kind == 0 || kind == 1)
        fake_resume(i);
    else if (kind == 2)
        n->refuses = on;
    else if (kind == 3)
        fake_break(i);
    else if (kind == 4)
        n->full = on;
    else if (kind == 5)
        n->drip = on;
    else if (kind == 6)
        n->delay_us = roll(3) == 0 ? roll(80) * MS : 500;
    else {
        n->says = nonsense[roll(5)];
        n->says_once = 1;
    }
}

static void an_operation(void)
{
    unsigned i = roll(LOCKS), what = roll(8);
    struct redlock_lock *lock = &locks[i];
    enum redlock_status status = REDLOCK_OK;

    if (lock->status == REDLOCK_PENDING) {
        if (what == 0)
            redlock_cancel(&client, lock);
        if (what == 1 && lock->priv.keeps > 0 &&
            redlock_release_start(&client, lock, 100) == REDLOCK_PENDING)
            began_us[i] = fake_now_us;
        return;
    }
    if (what < 3)
        status = redlock_acquire_start(&client, lock, roll(2) * 300);
    else if (what == 3)
        status = redlock_extend_start(&client, lock);
    else if (what == 4)
        status = redlock_release_start(&client, lock, roll(2) * 200);
    else if (what == 5)
        status = redlock_keep_start(&client, lock, 1 + roll(5));
    else if (roll(16) == 0)
        redlock_forget(&client, lock);
    if (status == REDLOCK_PENDING)
        began_us[i] = fake_now_us;
}

/* The token of a lock as it stands on the wire. */
static void token_of(const struct redlock_lock *lock, char *hex)
{
    unsigned i;

    for (i = 0; i < sizeof lock->token; i++)
        sprintf(hex + 2 * i, "%02x", lock->token[i]);
}

/* What must always be true; NULL, or what is not. */
static const char *broken_promise(void)
{
    unsigned i, n;

    for (i = 0; i < LOCKS; i++) {
        unsigned mine = 0;
        char hex[48];

        int kept = locks[i].status == REDLOCK_PENDING && locks[i].priv.keeps > 0;
        if (locks[i].status == REDLOCK_PENDING &&
            fake_now_us > began_us[i] + (uint64_t)(kept ? 6 * TTL_MS : 3000) * MS)
            return "an operation that does not end";
        if ((locks[i].status == REDLOCK_PENDING && !kept) ||
            redlock_remaining_ms(&client, &locks[i]) == 0)
            continue;
        token_of(&locks[i], hex);
        for (n = 0; n < count; n++) {
            const struct fake_key *key = fake_find((int)n, locks[i].key, locks[i].key_size);
            mine += key != NULL && key->value_size == 40 && memcmp(key->value, hex, 40) == 0;
        }
        if (mine < count / 2 + 1)
            return "a holder without a quorum";
    }
    return NULL;
}

static void collect(void)
{
    struct redlock_lock *lock;

    while ((lock = redlock_next_done(&client)) != NULL)
        outcomes[-(int)lock->status]++;
}

static void heal(void)
{
    int n;

    for (n = 0; n < (int)count; n++) {
        struct fake_node *node = &fake_nodes[n];
        node->refuses = node->full = node->drip = 0;
        node->says = NULL;
        node->delay_us = 500;
        fake_resume(n);
    }
}

/* When all is well again every lock can be taken, within its ttl and a second. */
static const char *nobody_gets_it(void)
{
    unsigned i;

    heal();
    for (i = 0; i < LOCKS; i++)
        redlock_cancel(&client, &locks[i]);
    fake_pass(&client, 4000 * MS);
    collect();
    for (i = 0; i < LOCKS; i++) {
        if (locks[i].status == REDLOCK_PENDING)
            return "an operation that does not end when all is well";
        redlock_forget(&client, &locks[i]);
        if (redlock_acquire(&client, &locks[i], TTL_MS + 1000) != REDLOCK_OK)
            return "a lock that nobody can get";
        redlock_release(&client, &locks[i], 1000);
    }
    fake_pass(&client, 100 * MS);
    return fake_keys_left() > 0 ? "a key that is left" : NULL;
}

static const char *history(uint32_t seed)
{
    static const char names[] = "abcdef";
    const char *broken = NULL;
    unsigned i;

    dice = seed * 2654435769U + 1;
    count = 1 + roll(REDLOCK_NODES_MAX < 5 ? REDLOCK_NODES_MAX : 5);
    fake_begin(&client, nodes, count, NULL);
    for (i = 0; i < LOCKS; i++) {
        redlock_lock_init(&locks[i], &names[i], 1, TTL_MS);
        locks[i].fenced = REDLOCK_FENCING && i < 2;
    }
    for (i = 0; i < STEPS && broken == NULL; i++) {
        if (roll(3) == 0)
            a_fault();
        else
            an_operation();
        fake_pass(&client, roll(4) == 0 ? roll(400) * MS : roll(4) * MS);
        collect();
        broken = broken_promise();
    }
    if (broken == NULL)
        broken = nobody_gets_it();
    redlock_deinit(&client);
    return broken;
}

int main(int argc, char **argv)
{
    uint32_t first = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 1, seed;
    uint32_t seeds = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 2000;
    unsigned wrong = 0, kinds = 0;

    for (seed = first; seed < first + seeds && wrong < 5; seed++) {
        const char *broken = history(seed);
        if (broken != NULL) {
            ok(0, "seed %lu: %s", (unsigned long)seed, broken);
            wrong++;
        }
    }
    ok(wrong == 0, "%lu histories: no promise broken", (unsigned long)seeds);
    for (seed = 0; seed < 20; seed++) {
        printf("# %8lu times: %s\n", outcomes[seed], redlock_strerror(-(int)seed));
        kinds += outcomes[seed] > 0;
    }
    ok(kinds >= 8, "with %u kinds of outcome", kinds);
    return done_testing();
}
