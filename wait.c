/* wait.c - when a waiter asks again: pauses, notifications that end them, and the wait queue.
   Called by redlock.c, which has the states. A wrong answer here costs time, and never a lock.

   R6  Retry with growing, random pauses. A failed attempt ends when the outcome and its reason are
       known. Contention, and connections that broke, are retried after a random part of a few round
       trips, a few times. More acquires than there is room for wait in line; wait_ms counts there.
   R7  Notify waiters. The rollback of a waiter reads the key, with client tracking on: that is
       turned on before the first such rollback, and in the handshake of later connections; with the
       setting `fair` in that of each. When a quorum of voters reports a change, one waiter of each
       client retries within a round trip, at random. After spurious notifications it waits longer
       in two of three cases, to avoid a thundering herd. A notification is no vote.
   R19 Wait queue. A hint, never a vote: whoever passes the gate is granted or refused the lock as
       without it. With the setting `fair` an attempt that may wait is one script: a gate, then what
       SET or FENCE does. The gate enters the waiter into the queue of the node, or renews its
       lease, drops dead waiters at the front, and refuses while others stand in front. A release,
       and a waiter that gives up, takes its own name out. While the key is free each of these tells
       the first two. The first makes an attempt at once, and the second a little later, in case the
       first is dead. A waiter that is told and does not come loses its place. A rollback puts the
       waiter back. A waiter that is not told asks when its pause is over, which renews its lease.
       Servers do not tell of a lock that expires, nor the client that has released one: so the
       first two heed a change of its key, and a client tells its own waiters.
       All nodes have a waiter at the same moment: the median of what they have replied first.
       Without that each of several waiters could be the first on fewer than a quorum.
       A node that cannot keep the queue grants without it, and so does one that cannot notify.
       If those in front are dead, nobody asks. So a waiter far behind that knows that the lock is
       free looks half a second later. Each script that finds the lock free drops the waiters that
       were notified and did not come, and notifies the first two, and five more for each dropped
       one but the first. If it has dropped some, the caller asks again soon, until the lock is
       taken. Else those in front are alive, and the next look comes later.
       A waiter whose attempt fails because too few nodes reply in time leaves the queue. Else it
       would come first again and again, and keep the others from a free lock. Its next attempts are
       probes, which the gate refuses in any case. When a quorum replies to a probe in time, the
       waiter enters the queue again, behind the others. After each such failure twice as many
       probes must succeed in a row. A client whose round trip is too long for a vote begins with
       a probe.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "core.h"

#include <string.h>

enum {
    RL_QUICK_MAX = 5,    /* quick retries in a row: "5 times" at redlock_acquire in redlock.h. R6 */
    RL_SPURIOUS_MAX = 9, /* a waiter notified in vain pauses for up to 2^9 round trips. R7 */
    RL_TOLD_MAX = 24,    /* attempts in a row of a waiter that is told. R19 */
    RL_VAIN_FREE = 6,    /* so many notifications in vain have no effect. R19 */
    RL_VAIN_MAX = 11,    /* after so many the delay is 4^5 ms. R19 */
    RL_LATE_US = 500,    /* how late the process of a first waiter may be: a guess. R19 */
    RL_LEASE_MS = 1000,  /* of a lease, besides three pauses. R19 */
    RL_SOON_MAX = 12,    /* pauses of a few round trips in a row, each twice as long. R19 */
    RL_TURN_US = 8000,   /* a turn takes as long, besides two round trips: a guess. R19 */
    RL_LATE_MAX = 5,     /* late attempts; 2^4 probes follow the last one. R19 */
    RL_LOOKS_MAX = 5,    /* looks in vain; each doubles the time until the next one. R19 */
    RL_LOOK_US = 450000, /* a look comes so long after the lock became free, or later. R19 */
    RL_TURNS_MAX_US = 600000000
};

/* ---- Pauses ---------------------------------------------------------------------------------- */

/* Pauses are multiples of the round trip to a quorum, which counts as 100 us at least. */
static uint32_t rl_quorum_trip_us(const struct redlock_client *c)
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

/* ---- The wait queue -------------------------------------------------------------------------- */

/* A round trip of the waiter in front is about as long, if it is not late. R19 */
static uint32_t rl_brief_trip_us(const struct redlock_client *c)
{
    uint32_t us = rl_quorum_brief_us(c);

    return us < 100 ? 100 : us;
}

/* Whether the lock waits in a queue: some node has said so in the last attempt. R19 */
static int rl_is_queued(const struct redlock_lock *lock)
{
    return REDLOCK_FAIR && lock->priv.fair.refused != 0 && lock->priv.fair.since_ms >> 32 != 0 &&
           rl_others_had_it(lock);
}

/* How long those in front take for their turns, about. */
static uint32_t rl_turns_us(const struct redlock_client *c, const struct redlock_lock *lock)
{
    uint64_t us = (lock->priv.fair.place + 1U) * (2 * (uint64_t)rl_quorum_trip_us(c) + RL_TURN_US);

    rl_not_after(&us, RL_TURNS_MAX_US);
    return (uint32_t)us;
}

/* The median of the moments on the nodes is sent from now on. R19 */
static void rl_queue_agree(const struct redlock_client *c, struct redlock_lock *lock)
{
    const uint64_t *since = lock->priv.fair.since_on;
    unsigned known = 0, i, j;

    for (i = 0; i < c->priv.count; i++)
        known += since[i] != 0;
    for (i = 0; i < c->priv.count && lock->priv.fair.since_ms >> 32 == 0; i++) {
        unsigned before = 0, same = 0;
        for (j = 0; j < c->priv.count; j++) {
            before += since[j] != 0 && since[j] < since[i];
            same += since[j] != 0 && since[j] == since[i];
        }
        if (since[i] != 0 && before <= known / 2 && known / 2 < before + same)
            lock->priv.fair.since_ms = since[i];
    }
}

/* Sets the moment that the nodes are told. */
static void rl_queue_again(const struct redlock_client *c, struct redlock_lock *lock)
{
    rl_queue_agree(c, lock);
    if (lock->priv.fair.since_ms >> 32 == 0)
        lock->priv.fair.since_ms = (c->priv.now_us - lock->priv.fair.began_us) / RL_MS_US;
}

/* An attempt was not answered in time by a quorum. If that was no probe, twice as many probes follow
   as after the last one: the way may be long and short by turns, and each attempt of this waiter may
   keep the others from the lock. R19 */
static void rl_queue_set_probes(struct redlock_lock *lock)
{
    if (lock->priv.fair.probes == 0 && lock->priv.fair.late < RL_LATE_MAX)
        lock->priv.fair.late++;
    lock->priv.fair.probes = (uint8_t)(1U << lock->priv.fair.late >> 1);
}

/* The last one of the probes has succeeded. R19 */
static int rl_has_probed(const struct redlock_lock *lock)
{
    return REDLOCK_FAIR && lock->priv.fair.refused != 0 && lock->priv.fair.lease_ms == 0 &&
           lock->priv.fair.probes == 0;
}

/* A waiter that was refused keeps its place. Its key is not on the nodes that have refused it at
   the gate, so they are sent no rollback. A probe that a quorum has refused does not count as an
   attempt. R19 */
static void rl_queue_stay(const struct redlock_client *c, struct redlock_lock *lock)
{
    rl_clear(&lock->priv.unsent, lock->priv.fair.refused);
    rl_queue_again(c, lock);
    if (lock->priv.fair.probes == 0)
        return;
    lock->priv.fair.probes--;
    if (lock->priv.op.attempts > 0)
        lock->priv.op.attempts--;
}

/* A waiter to which too few nodes replied in time leaves the queue: rl_command_for makes its
   rollback a LEAVE. It has waited since now, unless it could not ask a quorum. R19 */
static void rl_queue_leave(const struct redlock_client *c, struct redlock_lock *lock)
{
    rl_queue_set_probes(lock);
    if (!rl_is_quorum(c, lock->priv.attempt.asked))
        return;
    memset(lock->priv.fair.since_on, 0, sizeof lock->priv.fair.since_on);
    lock->priv.fair.since_ms = 0;
    lock->priv.fair.began_us = c->priv.now_us;
    lock->priv.fair.entered = 0;
}

REDLOCK_PRIVATE void rl_queue_failed(const struct redlock_client *c, struct redlock_lock *lock)
{
    if (!REDLOCK_FAIR)
        return;
    if (rl_others_had_it(lock))
        rl_queue_stay(c, lock);
    else
        rl_queue_leave(c, lock);
}

/* A lease lasts for three pauses; once the waiter is told for four round trips, so that the second
   one, which waits for up to two of these, has time to ask. R19 */
static void rl_queue_set_lease(const struct redlock_client *c, struct redlock_lock *lock)
{
    uint32_t turns_ms = rl_turns_us(c, lock) / 1000U,
             pause_ms = c->priv.settings.retry_delay_max_ms;

    lock->priv.fair.lease_ms = 3 * (turns_ms > pause_ms ? turns_ms : pause_ms) + RL_LEASE_MS;
    if (lock->priv.fair.probes > 0)
        lock->priv.fair.lease_ms = 0;
    lock->priv.fair.answer_ms = rl_quorum_trip_us(c) * 4 / 1000U + 1;
}

REDLOCK_PRIVATE int rl_queue_begin(struct redlock_client *c, struct redlock_lock *lock)
{
    if (!REDLOCK_FAIR)
        return 0;
    if (lock->priv.fair.entered == 0 &&
        rl_random(c, lock->priv.fair.name, sizeof lock->priv.fair.name) != 0)
        return -1;
    /* The last attempt began so long ago that the waiter is not told all the time. */
    if (rl_past(c, lock->priv.started_us + c->priv.settings.retry_delay_max_ms * (RL_MS_US / 4)))
        lock->priv.fair.tries = 0;
    rl_queue_again(c, lock);
    /* The first attempt, and the round trip is too long for a vote. */
    if (lock->priv.outcome == REDLOCK_PENDING && rl_quorum_rtt_us(c) > rl_vote_max_us(lock))
        lock->priv.fair.probes = lock->priv.fair.late = 1;
    rl_queue_set_lease(c, lock);
    rl_waiter_add(c, lock);
    memset(lock->priv.fair.since_on, 0, sizeof lock->priv.fair.since_on);
    lock->priv.fair.refused = lock->priv.fair.is_free = 0;
    lock->priv.fair.told = lock->priv.fair.told_here = 0;
    lock->priv.fair.changed = 0;
    lock->priv.fair.place = 0;
    return 0;
}

/* A hash of the token of the holder. R19 */
static uint32_t rl_queue_holder(const struct resp_item *item, const char *rest)
{
    uint32_t left_ms;
    const char *token = rl_holder_of(item, rest, &left_ms);
    size_t size = (size_t)(item->text + item->text_used - token);

    return rl_hash(token, size, (uint32_t)size);
}

REDLOCK_PRIVATE const char *rl_queue_refused(struct redlock_lock *lock,
                                             const struct redlock_node *node)
{
    struct rl_place place;
    const char *rest;
    unsigned bit = node->priv.bit;

    if (!REDLOCK_FAIR)
        return NULL;
    rest = rl_place_of(&node->priv.reader.item, &place);
    if (!place.is_free)
        lock->priv.fair.holder = rl_queue_holder(&node->priv.reader.item, rest);
    rl_set(&lock->priv.fair.refused, bit);
    if (place.since_ms == 0)
        return place.is_free ? NULL : rest;
    lock->priv.fair.since_on[node->priv.index] = place.since_ms;
    if (lock->priv.fair.place < place.place)
        lock->priv.fair.place = place.place;
    if (!place.is_free)
        return rest;
    rl_set(&lock->priv.fair.is_free, bit);
    if (place.is_alone)
        lock->priv.fair.is_alone = 1;
    return NULL;
}

/* A waiter in the queue was refused, and the lock is taken or free. Counts notifications in vain,
   after which the holder is the same as at the last attempt. Counts looks in vain: those in front
   are alive. R19 */
static void rl_queue_count(const struct redlock_client *c, struct redlock_lock *lock, int is_taken)
{
    int is_free = rl_is_quorum(c, lock->priv.fair.is_free);
    int looked = lock->priv.fair.look_us != 0 && rl_past(c, lock->priv.fair.look_us);
    uint8_t vain = lock->priv.fair.vain, looks = lock->priv.fair.looks;

    if (is_free || (is_taken && lock->priv.fair.holder != lock->priv.fair.last_holder))
        vain = (uint8_t)(vain - (vain > 0));
    else if (lock->priv.op.notified && vain < RL_VAIN_MAX)
        vain++;
    if (looked && looks < RL_LOOKS_MAX)
        looks++;
    if (looked || is_taken)
        lock->priv.fair.look_us = 0;
    lock->priv.fair.vain = vain;
    lock->priv.fair.looks = looks;
    lock->priv.fair.last_holder = lock->priv.fair.holder;
    lock->priv.op.notified = 0;
}

/* The lock is free, and this waiter stands far behind. If those in front are alive, they have their
   turns now. If they are dead, nobody asks: so it looks. R19 */
static void rl_queue_set_look(const struct redlock_client *c, struct redlock_lock *lock)
{
    uint64_t turns_us = rl_turns_us(c, lock);

    if (turns_us < RL_LOOK_US)
        turns_us = RL_LOOK_US;
    if (lock->priv.fair.look_us == 0)
        lock->priv.fair.look_us = c->priv.now_us + (turns_us << lock->priv.fair.looks);
    rl_not_after(&lock->priv.due_us, lock->priv.fair.look_us);
}

/* A waiter in the queue was refused. It comes back when its turn may be near. But if the lock is
   free, it comes back soon if it is one of the first two, was told, or nobody in front may come:
   when those in front have had time to ask, or are dead, and have lost their places. Otherwise it
   looks. R6, R19 */
static void rl_queue_pauses(struct redlock_client *c, struct redlock_lock *lock)
{
    uint32_t trip_us = rl_brief_trip_us(c), turns_us = rl_turns_us(c, lock);
    uint32_t pause_us = rl_backoff_us(c, &c->priv.settings, UINT8_MAX);
    uint32_t lease_us = lock->priv.fair.lease_ms * 1000U;
    uint32_t soon_us = (3 * trip_us + trip_us / 4 + rl_random_below(c, trip_us / 2))
                       << lock->priv.fair.soon;
    int is_taken = rl_is_quorum(c, lock->refused & ~(unsigned)lock->priv.fair.is_free);
    int is_near = lock->priv.fair.place <= 1 || lock->priv.op.notified || lock->priv.fair.is_alone;

    if (pause_us < turns_us)
        pause_us = turns_us + rl_random_below(c, turns_us / 2);
    /* When the nodes got this lease, so many waiters in front were not known. */
    if (pause_us > lease_us / 4 * 3)
        pause_us = lease_us / 2 + rl_random_below(c, lease_us / 4);
    if (is_taken) {
        lock->priv.fair.soon = lock->priv.fair.is_alone = 0;
    } else if (is_near && soon_us < pause_us && lock->priv.fair.soon < RL_SOON_MAX) {
        pause_us = soon_us;
        lock->priv.fair.soon++;
    }
    rl_queue_count(c, lock, is_taken);
    rl_lock_enter(lock, RL_PAUSING, c->priv.now_us + 1 + pause_us);
    if (!is_taken && !is_near)
        rl_queue_set_look(c, lock);
}

/* A notification is obeyed at once, or 2^n ms later: the n for this one. R19 */
static uint8_t rl_queue_back(struct redlock_client *c, const struct redlock_lock *lock)
{
    uint8_t vain = lock->priv.fair.vain;

    if (vain <= RL_VAIN_FREE || rl_random_below(c, 3) == 0)
        return 0;
    return (uint8_t)(2 * (vain - RL_VAIN_FREE));
}

/* A waiter that is told asks: the first waiter at once, when a quorum tells it; any other one later,
   when a first waiter that is alive has the lock. It does so a few times in a row: servers may lie,
   and clients that reach different nodes may notify each other. After notifications in vain it asks
   later in two of three cases, and each time four times as late. R19 */
static void rl_queue_heeds(struct redlock_client *c, struct redlock_lock *lock)
{
    uint32_t trip_us = rl_brief_trip_us(c);
    int here = lock->priv.fair.told_here, told = here || lock->priv.fair.told != 0;
    uint64_t ask_us;

    if (!told || lock->priv.fair.tries >= RL_TOLD_MAX) {
        if (rl_is_quorum(c, lock->priv.fair.changed)) /* it was released */
            rl_queue_set_look(c, lock);
        return;
    }
    if (!lock->priv.op.notified) {
        lock->priv.op.notified = 1;
        lock->priv.fair.soon = 0;
        lock->priv.fair.back = rl_queue_back(c, lock);
        ask_us = c->priv.now_us + RL_LATE_US + trip_us + rl_random_below(c, trip_us);
        if (lock->priv.fair.back > 0)
            ask_us += RL_MS_US << lock->priv.fair.back;
        rl_not_after(&lock->priv.due_us, ask_us);
    }
    if (lock->priv.fair.place == 0 && lock->priv.fair.back == 0 &&
        (here || rl_is_quorum(c, lock->priv.fair.told)))
        rl_not_after(&lock->priv.due_us, c->priv.now_us);
    lock->priv.fair.tries = (uint8_t)(lock->priv.fair.tries + rl_past(c, lock->priv.due_us));
}

/* ---- Pauses ---------------------------------------------------------------------------------- */

/* Contention, and connections that broke, are soon over. Other reasons are not: an attempt without
   replies would fail for ever in one tick, so a pause is at least 1 ms. R6 */
REDLOCK_PRIVATE int rl_wait_begins(struct redlock_client *c, struct redlock_lock *lock)
{
    int quick = lock->priv.outcome == REDLOCK_CONTENDED ||
                (lock->priv.outcome == REDLOCK_UNREACHABLE && lock->priv.round.resent != 0);
    uint64_t due_us = c->priv.now_us + 1;

    if (rl_has_probed(lock)) {
        rl_lock_enter(lock, RL_PAUSING, due_us);
    } else if (rl_is_queued(lock)) {
        rl_queue_pauses(c, lock);
    } else if (quick && rl_may_retry_quickly(lock)) {
        rl_lock_enter(lock, RL_PAUSING, due_us + rl_quick_us(c, ++lock->priv.op.quick));
    } else if (!lock->priv.op.waits) {
        return 0;
    } else {
        rl_lock_enter(lock, RL_PAUSING, due_us + RL_MS_US + rl_pause_us(c, lock));
        lock->priv.op.quick = 0;
    }
    rl_not_after(&lock->priv.due_us,
                 lock->priv.until_us); /* the last attempt is made when the wait ends */
    return 1;
}

/* ---- Waiters, by their keys ------------------------------------------------------------------ */

/* A notification names one key, and thousands of locks may wait for others. So waiters stand in a
   binary trie: the bits of the hash of the key, from the lowest, lead from each lock to one of its
   two children, and to the lock with this hash after 32 steps at most. Locks with the same hash
   form a ring, and the first of them stands in the trie. Locks with several keys have one hash,
   which no key has, so each notification looks at all of these. */
enum { RL_SEVERAL_KEYS = 0 };

/* The hash of a key, from the bytes that a notification of it has. */
static uint32_t rl_key_hash(const void *key, size_t key_size, size_t known)
{
    return rl_hash(key, known < RESP_TEXT_MAX ? known : RESP_TEXT_MAX, (uint32_t)key_size);
}

#if !REDLOCK_MINIMAL
/* Where the first lock with this hash stands, or would stand. */
static struct redlock_lock **rl_waiter_at(struct redlock_client *c, uint32_t hash)
{
    struct redlock_lock **at = &c->priv.waiters;
    uint32_t path = hash;

    for (; *at != NULL && (*at)->priv.waiter.hash != hash; path >>= 1)
        at = &(*at)->priv.waiter.child[path & 1];
    return at;
}

/* Another lock takes the place of a lock in the trie. NULL: none does, it has no children. */
static void rl_waiter_replace(struct redlock_lock *lock, struct redlock_lock *other)
{
    unsigned i;

    *lock->priv.waiter.link = other;
    if (other == NULL)
        return;
    other->priv.waiter.link = lock->priv.waiter.link;
    for (i = 0; i < 2; i++) {
        struct redlock_lock *child = lock->priv.waiter.child[i];
        other->priv.waiter.child[i] = child;
        if (child != NULL)
            child->priv.waiter.link = &other->priv.waiter.child[i];
    }
}

/* A lock without children that stands below this one, or is this one. */
static struct redlock_lock *rl_waiter_leaf(struct redlock_lock *lock)
{
    struct redlock_lock *const *child;

    for (;;) {
        child = lock->priv.waiter.child;
        if (child[0] == NULL && child[1] == NULL)
            return lock;
        lock = child[0] != NULL ? child[0] : child[1];
    }
}

REDLOCK_PRIVATE void rl_waiter_add(struct redlock_client *c, struct redlock_lock *lock)
{
    struct redlock_lock **at, *first;

    rl_waiter_remove(lock);
    lock->priv.waiter.hash = rl_extra_keys(lock) > 0
                                 ? (uint32_t)RL_SEVERAL_KEYS
                                 : rl_key_hash(lock->key, lock->key_size, lock->key_size);
    at = rl_waiter_at(c, lock->priv.waiter.hash);
    if (*at == NULL) {
        *at = lock->priv.waiter.next = lock->priv.waiter.prev = lock;
        lock->priv.waiter.link = at;
        return;
    }
    first = *at;
    lock->priv.waiter.next = first;
    lock->priv.waiter.prev = first->priv.waiter.prev;
    first->priv.waiter.prev->priv.waiter.next = lock;
    first->priv.waiter.prev = lock;
}

/* In the trie the next lock of the ring takes its place; if there is none, a lock without children
   from below it, because all of these have the same first bits. */
REDLOCK_PRIVATE void rl_waiter_remove(struct redlock_lock *lock)
{
    struct redlock_lock *other = lock->priv.waiter.next;

    if (other == NULL)
        return; /* it does not stand there */
    other->priv.waiter.prev = lock->priv.waiter.prev;
    lock->priv.waiter.prev->priv.waiter.next = other;
    if (lock->priv.waiter.link != NULL) {
        if (other == lock) {
            other = rl_waiter_leaf(lock);
            rl_waiter_replace(other, NULL);
        }
        if (other != lock)
            rl_waiter_replace(lock, other);
    }
    memset(&lock->priv.waiter, 0, sizeof lock->priv.waiter);
}

/* The first waiter with this hash, whose last attempt failed first; and the one behind a waiter.
   NULL: there is none. */
static struct redlock_lock *rl_first_waiter(struct redlock_client *c, uint32_t hash)
{
    return *rl_waiter_at(c, hash);
}

static struct redlock_lock *rl_next_waiter(const struct redlock_lock *first,
                                           const struct redlock_lock *lock)
{
    return lock->priv.waiter.next != first ? lock->priv.waiter.next : NULL;
}
#else
REDLOCK_PRIVATE void rl_waiter_add(struct redlock_client *c, struct redlock_lock *lock)
{
    (void)c;
    (void)lock;
}

REDLOCK_PRIVATE void rl_waiter_remove(struct redlock_lock *lock)
{
    (void)lock;
}

static struct redlock_lock *rl_first_waiter(struct redlock_client *c, uint32_t hash)
{
    (void)hash;
    return c->priv.waiters;
}

static struct redlock_lock *rl_next_waiter(const struct redlock_lock *first,
                                           const struct redlock_lock *lock)
{
    (void)first;
    (void)lock;
    return NULL;
}
#endif

/* ---- Notification ---------------------------------------------------------------------------- */

/* Whether a quorum of voters reports a change, and other clients had the lock when the last attempt
   failed: locks that failed for want of voters would only notify each other by their rollbacks.
   A probe cannot take it. R7 */
static int rl_may_be_free(const struct redlock_client *c, const struct redlock_lock *lock)
{
    unsigned free = lock->priv.attempt.free & c->priv.all; /* it may be of a former client */

    return rl_is_quorum(c, free & ~rl_without_vote(c, free)) && rl_others_had_it(lock) &&
           (!REDLOCK_FAIR || lock->priv.fair.probes == 0);
}

/* Whether the key is the lease of this waiter. So long a key is known to its end, see rl_is_fair.
   R19 */
static int rl_is_lease(const struct redlock_lock *lock, const char *key, size_t key_size)
{
    char tail[RL_LEASE_TAIL];

    if (key_size != lock->key_size + sizeof tail || memcmp(key, lock->key, lock->key_size) != 0)
        return 0;
    rl_put_lease(tail, lock);
    return memcmp(key + lock->key_size, tail, sizeof tail) == 0;
}

/* Notes the change of a key for a waiter in the queue: that of its lease notifies it; so does that
   of the lock, if it is one of the first two, as nobody notifies them when the lock expires. Returns
   whether the change matters to it. R19 */
static int rl_queue_hears(struct redlock_lock *lock, unsigned nodes, int is_of_the_lock,
                          const void *key, size_t key_size)
{
    if (!is_of_the_lock && !rl_is_lease(lock, (const char *)key, key_size))
        return 0;
    if (is_of_the_lock && lock->priv.fair.place > 1)
        rl_set(&lock->priv.fair.changed, nodes);
    else
        rl_set(&lock->priv.fair.told, nodes);
    return 1;
}

/* Whether the lock makes an attempt, or pauses behind one: it does not stand in line for one. */
static int rl_has_attempt(const struct redlock_lock *lock)
{
    return lock->priv.list == RL_TURN || lock->priv.list == RL_WAIT;
}

/* What nodes report: this key has changed, and so the lock with it may be free. Only the first `known`
   bytes are known. NULL: all keys have. */
struct rl_change {
    const void *key;
    size_t key_size, known;
    unsigned nodes;
    int is_taken; /* 1: a lock that needs no further key retries because of it */
};

/* A change may concern this lock. If a quorum reports it now, one waiter retries: the first one that
   is asked. The others count notifications anew. But a waiter that needs further keys may retry in
   vain, so it does not retry for the others. R7 */
static void rl_notify_lock(struct redlock_client *c, struct redlock_lock *lock,
                           struct rl_change *change)
{
    int has_key =
        change->key == NULL || rl_has_key(lock, change->key, change->key_size, change->known);

    if (!rl_has_attempt(lock))
        return;
    if (REDLOCK_FAIR && lock->priv.fair.entered != 0 &&
        rl_queue_hears(lock, change->nodes, has_key, change->key, change->key_size))
        rl_lock_schedule(c, lock);
    if (!has_key || rl_is_queued(lock))
        return;
    rl_set(&lock->priv.attempt.free, change->nodes);
    if (change->is_taken) {
        lock->priv.attempt.free = 0;
    } else if (lock->priv.state == RL_PAUSING && rl_may_be_free(c, lock)) {
        change->is_taken = rl_extra_keys(lock) == 0;
        rl_lock_schedule(c, lock);
    }
}

/* To all locks that have an attempt or a round: a server has lost all keys. */
static void rl_notify_all(struct redlock_client *c, struct rl_change *change)
{
    struct redlock_lock *lock, *next;
    unsigned list;

    for (list = RL_TURN; list <= RL_WAIT; list++)
        for (lock = rl_first(c, list); lock != NULL; lock = next) {
            next = lock->priv.next;
            rl_notify_lock(c, lock, change);
        }
}

/* To the waiters with this hash. */
static void rl_notify_waiters(struct redlock_client *c, uint32_t hash, struct rl_change *change)
{
    struct redlock_lock *first = rl_first_waiter(c, hash), *lock;

    for (lock = first; lock != NULL; lock = rl_next_waiter(first, lock))
        rl_notify_lock(c, lock, change);
}

/* The key may also be the lease of a waiter for another key. R19 */
REDLOCK_PRIVATE void rl_notify(struct redlock_client *c, unsigned nodes, const void *key,
                               size_t key_size, size_t known)
{
    struct rl_change change = {key, key_size, known, nodes, 0};

    if (REDLOCK_MINIMAL || c->priv.waiters == NULL)
        return;
    if (key == NULL) {
        rl_notify_all(c, &change);
        return;
    }
    rl_notify_waiters(c, RL_SEVERAL_KEYS, &change);
    rl_notify_waiters(c, rl_key_hash(key, key_size, known), &change);
    if (REDLOCK_FAIR && known == key_size && key_size > RL_LEASE_TAIL)
        rl_notify_waiters(c, rl_key_hash(key, key_size - RL_LEASE_TAIL, known - RL_LEASE_TAIL),
                          &change);
}

/* Whether a waiter stands in front of another one, in the order of the servers: they began at the
   same moment if one tick started both. */
static int rl_queue_is_before(const struct redlock_lock *lock, const struct redlock_lock *other)
{
    uint64_t since_ms = lock->priv.fair.since_ms, other_ms = other->priv.fair.since_ms;

    if (since_ms >> 32 == 0 || other_ms >> 32 == 0)
        return lock->priv.fair.began_us < other->priv.fair.began_us;
    return since_ms < other_ms ||
           (since_ms == other_ms &&
            memcmp(lock->priv.fair.name, other->priv.fair.name, sizeof lock->priv.fair.name) < 0);
}

/* Tells the waiter in the queue of this key that has waited longest: the servers tell no waiter of
   the client that has released it. R19 */
static void rl_queue_tell_own(struct redlock_client *c, unsigned nodes,
                              const struct redlock_key *key)
{
    struct redlock_lock *first, *lock, *oldest = NULL;

    first = rl_first_waiter(c, rl_key_hash(key->bytes, key->size, key->size));
    for (lock = first; lock != NULL; lock = rl_next_waiter(first, lock))
        if (rl_has_attempt(lock) && lock->priv.fair.entered != 0 &&
            rl_has_key(lock, key->bytes, key->size, key->size)) {
            lock->priv.fair.changed = 0; /* one of them asks now: the others need not look */
            if (oldest == NULL || rl_queue_is_before(lock, oldest))
                oldest = lock;
        }
    if (oldest == NULL)
        return;
    if (nodes == c->priv.all)
        oldest->priv.fair.told_here = 1;
    else
        rl_set(&oldest->priv.fair.told, nodes);
    rl_lock_schedule(c, oldest);
}

static void rl_notify_of(struct redlock_client *c, unsigned nodes, struct redlock_key key)
{
    rl_notify(c, nodes, key.bytes, key.size, key.size);
    if (REDLOCK_FAIR && c->priv.settings.fair)
        rl_queue_tell_own(c, nodes, &key);
}

/* Notifies the waiters of this client after a release: servers do not notify the client that
   deleted. R7 */
REDLOCK_PRIVATE void rl_notify_own(struct redlock_client *c, const struct redlock_lock *lock)
{
    unsigned i;

    for (i = 0; !REDLOCK_MINIMAL && i <= rl_extra_keys(lock); i++)
        rl_notify_of(c, c->priv.all, rl_key(lock, i));
}

REDLOCK_PRIVATE void rl_notify_kept(struct redlock_client *c, const struct redlock_owed *owed,
                                    unsigned nodes)
{
    const uint8_t *at = owed->bytes;
    unsigned i;

    for (i = 0; !REDLOCK_MINIMAL && i <= owed->more_keys; i++)
        rl_notify_of(c, nodes, rl_kept_key(&at));
}

/* Whether the waiter was told that the lock may be free, or may be told next, as one of the first
   two: what a server says may be on its way. R19 */
static int rl_queue_has_turn(const struct redlock_lock *lock)
{
    return REDLOCK_FAIR &&
           ((lock->priv.fair.told | lock->priv.fair.told_here | lock->priv.fair.is_free) != 0 ||
            (rl_is_queued(lock) && lock->priv.fair.place <= 1));
}

REDLOCK_PRIVATE void rl_wait_ends(struct redlock_client *c, struct redlock_lock *lock)
{
    int has_turn = rl_queue_has_turn(lock);

    if (REDLOCK_FAIR && lock->priv.fair.entered != 0) {
        lock->priv.unsent = lock->priv.fair.entered & c->priv.in[REDLOCK_NODE_READY];
        rl_clear(&lock->priv.unsent, rl_send(c, lock, lock->priv.unsent, RL_LEAVE, RL_NO_REPLY));
        rl_owe(c, lock); /* what there was no room for */
        lock->priv.unsent = lock->priv.fair.entered = 0;
    }
    if (lock->priv.op.notified || rl_may_be_free(c, lock) || /* chosen, and not stepped since */
        has_turn)
        rl_notify_own(c, lock);
    lock->priv.op.notified = 0;
}

/* Sets when a notified waiter retries: within a round trip. After spurious notifications it waits
   longer in two of three cases, and each time longer: so few waiters ask at once, however many
   wait. R7 */
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
    if (rl_is_queued(lock))
        rl_queue_heeds(c, lock);
    else
        rl_hasten_retry(c, lock);
    return rl_past(c, lock->priv.due_us);
}
