/* fair.c - the wait queue of a lock: which waiter asks next. A hint, never a vote: whoever asks is
   granted or refused the lock by the same commands as without this file.

   R19 Wait queue. Each node keeps the queue of a lock at KEY:wait, a sorted set. A refused waiter
       enters it and is told its place: it looks. Its score is the moment when it began to wait, so
       the nodes have the same order without agreement. Its name is the first four bytes of its
       token; they stay the same in all attempts of an acquire. So the holder is known by its name,
       and does not count.
       The lease of a waiter is the key KEY:NAME, which each look renews. A release takes the holder
       out of the queue, and the dead waiters at its front: those whose lease is over. It tells the
       first two that live, by a change of their lease keys: so these are notified. The leases of
       these two then end three round trips later, unless they look. So a dead waiter at the front
       delays one hand-off, and a living one that was late keeps its place. A waiter that gives up
       takes itself out, and tells the same two.
       The first waiter asks as soon as the lock is free. The second looks then, and asks if the
       lock is still free two round trips later: the first one is dead. The others wait until they
       are notified, but for a pause as without a queue at most.
       Where a node cannot keep the queue, its waiters do not know their place, and retry as
       without one. So do the waiters of a client that holds its locks for less than a quarter of a
       round trip: a queue would slow down such turns. They enter it when they have waited for the
       time of a lease.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "core.h"

#include <string.h>

enum {
    /* The time of a lease, besides three of the longest pauses. A waiter renews it when it looks:
       with the most jitter after two such pauses. */
    RL_LEASE_MS = 1000,
    RL_FAR = 200,        /* places behind this one are not told apart */
    RL_HURRIES_MAX = 20, /* so often a waiter that sees no holder does not wait for its pause */
    RL_TELL_MAX = 2      /* so many waiters at the front are told by a release: see the script */
};

/* The place in the queue, from 1: a quorum of nodes says that it is no worse. 0: not known. */
static unsigned rl_place(const struct redlock_client *c, const struct redlock_lock *lock)
{
    const uint8_t *place = lock->priv.fair.place;
    unsigned i, j, best = 0;

    for (i = 0; i < c->priv.count; i++) {
        unsigned nodes = 0;

        for (j = 0; j < c->priv.count; j++)
            nodes += place[j] != 0 && place[j] <= place[i];
        if (nodes >= c->priv.quorum && (best == 0 || place[i] < best))
            best = place[i];
    }
    return best;
}

/* The time of round trips, in microseconds; `halves` is twice their number. */
static uint64_t rl_round_trips_us(const struct redlock_client *c, unsigned halves)
{
    return (uint64_t)rl_quorum_trip_us(c) * halves / 2;
}

static uint32_t rl_key_hash(const struct redlock_lock *lock)
{
    return rl_hash(lock->key, lock->key_size, lock->key_size);
}

static uint32_t rl_lease_ms(const struct redlock_client *c)
{
    return 3 * c->priv.settings.retry_delay_max_ms + RL_LEASE_MS;
}

/* How long a waiter may take to look when a release has told it to: long enough for one that lives.
   One that is dead is gone at the next release: the second waiter needs three round trips to get
   the lock behind it. */
static uint32_t rl_answer_ms(const struct redlock_client *c)
{
    uint64_t ms = rl_round_trips_us(c, 6) / RL_MS_US + 1;

    return ms < RL_LEASE_MS ? (uint32_t)ms : RL_LEASE_MS;
}

/* ---- Looking -------------------------------------------------------------------------------- */

/* The pause after which the lock looks again, if nothing happens before. */
static void rl_fair_pause(struct redlock_client *c, struct redlock_lock *lock)
{
    lock->priv.fair.moment = RL_FAIR_LOOKS;
    lock->priv.due_us = c->priv.now_us + RL_MS_US + rl_pause_us(c, lock);
}

static redlock_mask rl_notifying_nodes(const struct redlock_client *c)
{
    unsigned left = c->priv.in[REDLOCK_NODE_READY], nodes = 0;

    for (; left != 0; left &= left - 1)
        if (rl_notifies(rl_first_node(c, left)))
            nodes |= rl_lowest(left);
    return (redlock_mask)nodes;
}

/* The replies that are still due are not needed any more. */
static void rl_drop_replies(struct redlock_client *c, struct redlock_lock *lock)
{
    rl_forget(c, lock);
}

/* Enters the queue, if the lock does not stand there, and asks for its place, and whether the lock
   is free. */
static void rl_look(struct redlock_client *c, struct redlock_lock *lock)
{
    if (!lock->priv.fair.entered && lock->priv.op.attempts == 0)
        (void)rl_random(c, lock->token, RL_NAME);
    lock->priv.fair.entered = 1;
    rl_drop_replies(c, lock);
    rl_fair_pause(c, lock);
    lock->priv.fair.moment = RL_FAIR_LEARNS;
    lock->priv.fair.lease_ms = rl_lease_ms(c);
    lock->priv.fair.answer_ms = rl_answer_ms(c);
    lock->priv.fair.waited_ms = (uint32_t)((c->priv.now_us - lock->priv.fair.began_us) / RL_MS_US);
    memset(lock->priv.fair.place, 0, sizeof lock->priv.fair.place);
    lock->priv.fair.taken = lock->priv.fair.told = lock->priv.attempt.free = 0;
    c->priv.waiting = 1;
    lock->priv.unanswered = rl_send_of_lock(c, lock, rl_notifying_nodes(c), RL_ENTER);
}

/* A node has replied the place, from 0; below 0: -1 - place, and the lock is free. */
static void rl_learn_place(struct redlock_lock *lock, const struct redlock_node *node,
                           int64_t place)
{
    if (place < 0) {
        rl_set(&lock->priv.attempt.free, node->priv.bit);
        place = -1 - place;
    } else {
        rl_set(&lock->priv.fair.taken, node->priv.bit);
    }
    if (place < RL_UNKNOWN_PLACE)
        lock->priv.fair.place[node->priv.index] = (uint8_t)(place < RL_FAR ? place + 1 : RL_FAR);
}

/* This client has released the lock. `waited_for`: somebody waits for it. */
static void rl_note_release(struct redlock_client *c, const struct redlock_lock *lock,
                            int waited_for)
{
    uint64_t held_us = lock->priv.started_us - lock->priv.fair.acquired_us + 1;

    c->priv.held_us = held_us < UINT32_MAX ? (uint32_t)held_us : UINT32_MAX;
    if (!waited_for)
        return;
    c->priv.yield_key = rl_key_hash(lock);
    c->priv.yield_us = c->priv.now_us + rl_round_trips_us(c, 8);
}

REDLOCK_PRIVATE int rl_fair_replied(struct redlock_client *c, struct redlock_node *node,
                                    struct redlock_lock *lock, const struct rl_reply *reply)
{
    int64_t number = node->priv.reader.item.integer;

    if (!REDLOCK_FAIR)
        return 0;
    if (reply->command == RL_LEAVE && reply->vote == RL_YES && lock->priv.state == RL_RELEASING)
        rl_note_release(c, lock, number == RL_LEAVES_WAITERS);
    if (reply->command != RL_ENTER)
        return 0;
    rl_clear(&lock->priv.unanswered, node->priv.bit);
    /* What the node has notified before is older than its reply; Redis 6.0 even notifies a client
       of what its own script did. */
    rl_clear(&lock->priv.fair.told, node->priv.bit);
    rl_clear(&lock->priv.attempt.free, node->priv.bit);
    if (reply->vote == RL_YES && lock->priv.fair.moment == RL_FAIR_LEARNS)
        rl_learn_place(lock, node, number);
    return 1;
}

/* ---- Notification --------------------------------------------------------------------------- */

/* Whether this is the lease key of the waiter; of a long key the end may not be known. */
static int rl_is_lease_key(const struct redlock_lock *lock, const char *key, size_t size,
                           size_t known)
{
    char name[RL_NAME_SIZE];
    size_t tail = known > lock->key_size ? known - lock->key_size : 0;

    rl_put_name(name, lock);
    return size == lock->key_size + sizeof name && memcmp(key, lock->key, known - tail) == 0 &&
           memcmp(key + known - tail, name, tail) == 0;
}

/* How many waiters of this client began to wait for the lock before this one. */
static unsigned rl_own_waiters_before(struct redlock_client *c, const struct redlock_lock *lock)
{
    const struct redlock_lock *other;
    unsigned list, before = 0;

    for (list = RL_TURN; list <= RL_WAIT; list++)
        for (other = rl_first(c, list); other != NULL; other = other->priv.next)
            before += other->priv.fair.entered && other->priv.state == RL_PAUSING &&
                      other->priv.fair.began_us < lock->priv.fair.began_us &&
                      rl_has_key(other, lock->key, lock->key_size, lock->key_size);
    return before;
}

/* A server does not notify the client that released the lock. The first two waiters of that client
   may be the two that the server has told to look, so they look. */
REDLOCK_PRIVATE enum rl_heed rl_fair_notified(struct redlock_client *c, struct redlock_lock *lock,
                                              unsigned nodes, const void *key, size_t size,
                                              size_t known)
{
    if (!rl_is_fair(c, lock) || !lock->priv.fair.entered)
        return RL_NOT_QUEUED;
    if (rl_is_lease_key(lock, (const char *)key, size, known)) {
        rl_set(&lock->priv.fair.told, nodes);
    } else if (!rl_has_key(lock, key, size, known)) {
        return RL_NOT_QUEUED;
    } else if (rl_place(c, lock) <= RL_TELL_MAX || lock->priv.fair.moment == RL_FAIR_ASKS) {
        rl_set(&lock->priv.attempt.free, nodes);
    } else {
        if (nodes != c->priv.all || rl_own_waiters_before(c, lock) >= RL_TELL_MAX)
            return RL_IGNORED;
        lock->priv.fair.told = c->priv.all;
    }
    return RL_HEEDED;
}

/* The lock has changed: it is free, or somebody has taken it. The first waiter asks. The second
   looks when the first one may have it, half a round trip later at the latest. A waiter behind them
   had seen that the lock was free, but somebody has taken it now. */
static void rl_lock_changed(struct redlock_client *c, struct redlock_lock *lock, unsigned place)
{
    lock->priv.attempt.free = 0;
    if (place > RL_TELL_MAX) {
        rl_fair_pause(c, lock);
    } else if (place == 1 && lock->priv.fair.moment == RL_FAIR_LOOKS) {
        lock->priv.fair.moment = RL_FAIR_ASKS;
        lock->priv.due_us = c->priv.now_us;
    } else {
        lock->priv.fair.moment = RL_FAIR_LOOKS;
        rl_not_after(&lock->priv.due_us, c->priv.now_us + rl_round_trips_us(c, 1));
    }
}

/* ---- The pause of a waiter ------------------------------------------------------------------ */

/* The nodes answer where the lock stands. Free: the first waiter asks, each other one half a round
   trip later than the one before it: that one had time to ask. Taken: the waiter rests. Neither: a
   hand-off is under way, so the waiter looks again. Without a place it retries as without a queue.
   When the looks have shown no holder RL_HURRIES_MAX times, the waiter goes on only when its pause
   is over: a node may keep a stale key for long, or never tell that the lock is free. */
static void rl_conclude_look(struct redlock_client *c, struct redlock_lock *lock, unsigned place)
{
    int is_free = place != 0 && rl_is_quorum(c, lock->priv.attempt.free);
    int is_taken = place != 0 && !is_free && rl_is_quorum(c, lock->priv.fair.taken);
    uint64_t in_us = 0;

    if (!is_free && !is_taken && lock->priv.unanswered != 0)
        return;
    lock->priv.fair.moment = is_free || place == 0 ? RL_FAIR_ASKS : RL_FAIR_LOOKS;
    if (is_free)
        lock->priv.attempt.free = 0;
    if (is_taken)
        lock->priv.fair.hurries = 0;
    if (place == 0 || is_taken)
        return; /* rl_look has set when */
    if (lock->priv.fair.hurries >= RL_HURRIES_MAX) {
        lock->priv.fair.moment = RL_FAIR_ASKS;
        return;
    }
    lock->priv.fair.hurries++;
    if (!is_free)
        in_us = rl_round_trips_us(c, 1) + rl_random_below(c, (uint32_t)rl_round_trips_us(c, 2));
    else if (place > 1) /* random, so that two that think so do not collide for ever */
        in_us = rl_round_trips_us(c, place - 1) +
                rl_random_below(c, (uint32_t)rl_round_trips_us(c, 1) / 2);
    rl_not_after(&lock->priv.due_us, c->priv.now_us + in_us);
}

/* Whether this client is known to hold its locks for less than a quarter of a round trip. */
static int rl_holds_briefly(const struct redlock_client *c)
{
    return c->priv.held_us != 0 && c->priv.held_us <= rl_round_trips_us(c, 1) / 2;
}

/* Whether the lock waits outside of the queue. */
static int rl_stays_outside(const struct redlock_client *c, const struct redlock_lock *lock)
{
    if (!rl_is_fair(c, lock) || !lock->priv.op.waits || !rl_others_had_it(lock))
        return 1;
    return !lock->priv.fair.entered && rl_holds_briefly(c) &&
           c->priv.now_us - lock->priv.fair.began_us < rl_lease_ms(c) * RL_MS_US;
}

REDLOCK_PRIVATE int rl_fair_pauses(struct redlock_client *c, struct redlock_lock *lock)
{
    int told, looks = lock->priv.fair.moment == RL_FAIR_NEW;
    unsigned place;

    if (rl_stays_outside(c, lock))
        return 0;
    place = rl_place(c, lock);
    told = rl_is_quorum(c, lock->priv.fair.told);
    if (lock->priv.fair.moment == RL_FAIR_LEARNS) {
        rl_conclude_look(c, lock, place);
        looks = lock->priv.fair.moment == RL_FAIR_LOOKS && told;
    } else if (place != 0 && rl_is_quorum(c, lock->priv.attempt.free)) {
        rl_lock_changed(c, lock, place);
    } else if (told) {
        looks = 1;
    }
    if (looks || (rl_past(c, lock->priv.due_us) && lock->priv.fair.moment == RL_FAIR_LOOKS))
        rl_look(c, lock);
    rl_not_after(&lock->priv.due_us, lock->priv.until_us); /* then the last attempt is made */
    return place != 0 || lock->priv.fair.moment == RL_FAIR_LEARNS;
}

REDLOCK_PRIVATE void rl_fair_end_pause(struct redlock_client *c, struct redlock_lock *lock)
{
    if (!REDLOCK_FAIR)
        return;
    rl_drop_replies(c, lock);
    lock->priv.fair.moment = RL_FAIR_NEW;
}

/* A waiter that gives up leaves the queue. A release that has not waited for replies does not know
   whether others wait: they may. */
REDLOCK_PRIVATE void rl_fair_finished(struct redlock_client *c, struct redlock_lock *lock,
                                      enum redlock_status status)
{
    if (!rl_is_fair(c, lock))
        return;
    if (lock->operation == REDLOCK_OP_RELEASE && !lock->priv.op.waits) {
        rl_note_release(c, lock, 1);
    } else if (lock->operation == REDLOCK_OP_ACQUIRE && status != REDLOCK_OK &&
               lock->priv.fair.entered) {
        (void)rl_send(c, lock, rl_notifying_nodes(c), RL_LEAVE, RL_NO_REPLY);
        lock->priv.fair.entered = 0;
    }
}

/* ---- The holder ----------------------------------------------------------------------------- */

REDLOCK_PRIVATE int rl_fair_yields(const struct redlock_client *c, const struct redlock_lock *lock)
{
    return rl_is_fair(c, lock) && lock->priv.op.waits && !rl_past(c, c->priv.yield_us) &&
           c->priv.yield_key == rl_key_hash(lock);
}
