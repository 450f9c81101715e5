/* wait.c - when a waiter asks again: pauses, and notifications that end them. Called by redlock.c,
   which has the states. fair.c has the wait queue. A wrong answer here costs time, and never a lock.

   R6  Retry with growing, random pauses. A failed attempt ends when the outcome and its reason are
       known. Contention is retried after a random part of a few round trips, a few times. More
       operations than there is room for wait in line; wait_ms counts there.
   R7  Notify waiters. The rollback reads the key with client tracking on. When a quorum of nodes
       reports a change, one waiter of each client retries within a round trip, at random. A waiter
       with spurious notifications backs off two times of three, to avoid a thundering herd. A
       notification is no vote.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "core.h"

#include <string.h>

enum {
    RL_QUICK_MAX = 5,   /* quick retries in a row: "5 times" at redlock_acquire in redlock.h. R6 */
    RL_SPURIOUS_MAX = 9 /* a waiter notified in vain pauses for up to 2^9 round trips. R7 */
};

/* ---- Pauses ---------------------------------------------------------------------------------- */

REDLOCK_PRIVATE uint32_t rl_quorum_trip_us(const struct redlock_client *c)
{
    uint32_t us = rl_quorum_rtt_us(c);

    return us < 100 ? 100 : us;
}

REDLOCK_PRIVATE uint32_t rl_pause_us(struct redlock_client *c, struct redlock_lock *lock)
{
    unsigned times = lock->priv.op.slow;

    if (times < UINT8_MAX)
        lock->priv.op.slow++;
    return rl_backoff_us(c, &c->priv.settings, times);
}

/* The pause before a quick retry: random, up to a few round trips, twice as many each time, so
   that clients that collided spread out. */
static uint32_t rl_quick_us(struct redlock_client *c, unsigned times)
{
    uint32_t most = c->priv.settings.node_timeout_ms * 500U, us = rl_quorum_trip_us(c);

    return rl_random_below(c, us < most >> times ? us << times : most);
}

REDLOCK_PRIVATE int rl_may_retry_quickly(const struct redlock_lock *lock)
{
    return lock->priv.op.quick < RL_QUICK_MAX;
}

/* Contention, and connections that broke, are soon over. Other reasons are not: an attempt without
   replies would fail for ever in one tick, so a pause is at least 1 ms. R6 */
REDLOCK_PRIVATE int rl_wait_begins(struct redlock_client *c, struct redlock_lock *lock)
{
    int quick = lock->priv.outcome == REDLOCK_CONTENDED ||
                (lock->priv.outcome == REDLOCK_UNREACHABLE && lock->priv.round.resent != 0);
    uint64_t due_us = c->priv.now_us + 1;

    if (quick && rl_may_retry_quickly(lock)) {
        due_us += rl_quick_us(c, ++lock->priv.op.quick);
    } else if (!lock->priv.op.waits) {
        return 0;
    } else {
        due_us += RL_MS_US + rl_pause_us(c, lock);
        lock->priv.op.quick = 0;
    }
    rl_not_after(&due_us, lock->priv.until_us); /* the last attempt is made when the wait ends */
    rl_lock_enter(lock, RL_PAUSING, due_us);
    return 1;
}

/* This client had the lock a moment ago, and others wait for it: it is a waiter like them, as if
   it was refused. R19 */
REDLOCK_PRIVATE void rl_wait_yields(struct redlock_client *c, struct redlock_lock *lock)
{
    lock->priv.outcome = REDLOCK_HELD;
    rl_lock_enter(lock, RL_PAUSING, c->priv.now_us);
}

/* ---- Notification ---------------------------------------------------------------------------- */

/* Whether a quorum reports a change, and other clients had the lock when the last attempt failed:
   locks that failed for want of voters would only notify each other by their rollbacks. R7 */
static int rl_may_be_free(const struct redlock_client *c, const struct redlock_lock *lock)
{
    return rl_is_quorum(c, lock->priv.attempt.free) && rl_others_had_it(lock);
}

/* Whether the lock may have been refused, and will retry. R7 */
static int rl_waits_for_a_holder(const struct redlock_lock *lock)
{
    return lock->priv.state == RL_ROLLING_BACK || lock->priv.state == RL_PAUSING;
}

/* Nodes report that the lock with this key may be free; only its first `known` bytes are known. If
   they are a quorum now, one waiter retries: the one whose pause ends first. The others count
   notifications anew. But a waiter that needs further keys may retry in vain, so it does not retry
   for the others. Without waiters no list is searched, once a search has found none. R7 */
REDLOCK_PRIVATE void rl_notify(struct redlock_client *c, unsigned nodes, const void *key,
                               size_t key_size, size_t known)
{
    struct redlock_lock *lock, *next, *notified = NULL;
    enum rl_heed heed;
    unsigned list;

    if (REDLOCK_MINIMAL || !c->priv.waiting)
        return;
    c->priv.waiting = 0;
    for (list = RL_TURN; list <= RL_WAIT; list++)
        for (lock = rl_first(c, list); lock != NULL; lock = next) {
            next = lock->priv.next;
            if (rl_waits_for_a_holder(lock))
                c->priv.waiting = 1;
            heed = REDLOCK_FAIR ? rl_fair_notified(c, lock, nodes, key, key_size, known)
                                : RL_NOT_QUEUED;
            if (heed == RL_HEEDED)
                rl_lock_schedule(c, lock);
            if (heed != RL_NOT_QUEUED)
                continue;
            if (!rl_has_key(lock, key, key_size, known))
                continue;
            rl_set(&lock->priv.attempt.free, nodes);
            if (notified != NULL) {
                lock->priv.attempt.free = 0;
            } else if (lock->priv.state == RL_PAUSING && rl_may_be_free(c, lock)) {
                notified = rl_extra_keys(lock) == 0 ? lock : NULL;
                rl_lock_schedule(c, lock);
            }
        }
}

/* Notifies the waiters of this client after a release: servers do not notify the client that
   deleted. R7 */
REDLOCK_PRIVATE void rl_notify_own(struct redlock_client *c, const struct redlock_lock *lock)
{
    unsigned i;

    for (i = 0; !REDLOCK_MINIMAL && i <= rl_extra_keys(lock); i++) {
        struct redlock_key key = rl_key(lock, i);
        rl_notify(c, c->priv.all, key.bytes, key.size, key.size);
    }
}

REDLOCK_PRIVATE void rl_wait_ends(struct redlock_client *c, struct redlock_lock *lock)
{
    if (REDLOCK_FAIR)
        rl_fair_end_pause(c, lock);
    if (lock->priv.op.notified)
        rl_notify_own(c, lock);
    lock->priv.op.notified = 0;
}

/* Sets when a notified waiter retries: within a round trip. After spurious notifications it backs
   off two times of three, for longer each time: so few waiters ask at once, however many wait.
   R7 */
static void rl_hasten_retry(struct redlock_client *c, struct redlock_lock *lock)
{
    uint64_t soon_us;
    unsigned back;

    if (REDLOCK_MINIMAL || !rl_may_be_free(c, lock))
        return;
    back = rl_random_below(c, 3) > 0 ? lock->priv.op.spurious : 0U;
    soon_us = c->priv.now_us + (uint64_t)rl_quick_us(c, 0) * (1U << back);
    lock->priv.op.spurious =
        (uint8_t)(lock->priv.op.spurious + 2 < RL_SPURIOUS_MAX ? lock->priv.op.spurious + 2
                                                               : RL_SPURIOUS_MAX);
    rl_not_after(&lock->priv.due_us, soon_us);
    lock->priv.attempt.free = 0;
    lock->priv.op.notified = 1;
}

REDLOCK_PRIVATE int rl_wait_is_over(struct redlock_client *c, struct redlock_lock *lock)
{
    if (!(REDLOCK_FAIR && rl_fair_pauses(c, lock)))
        rl_hasten_retry(c, lock);
    if (!rl_past(c, lock->priv.due_us))
        return 0;
    if (REDLOCK_FAIR)
        rl_fair_end_pause(c, lock);
    return 1;
}
