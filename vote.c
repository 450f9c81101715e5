/* vote.c - what the replies say of a lock: votes, who else holds it, whether it is free again. The lists
   that locks stand in are here too, because a reply puts its lock into one. redlock.c decides.
   Called by round.c, redlock.c and client.c.

   The rules of these votes stand in the head of redlock.c: R1, R3, R4, R7 to R9, R16; R13 in that of node.c.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#define REDLOCK_ENGINE
#include "core.h"

#include <string.h>

/* ---- Lists --------------------------------------------------------------------------------------- */

REDLOCK_PRIVATE void rl_move(struct redlock_client *c, struct redlock_lock *lock, unsigned where)
{
    struct redlock_lock *next = lock->priv.next, *prev = lock->priv.prev;
    struct redlock_list *list;

    if (lock->priv.list != RL_NOWHERE) {
        list = rl_list(c, lock->priv.list);
        *(prev != NULL ? &prev->priv.next : &list->first) = next;
        *(next != NULL ? &next->priv.prev : &list->last) = prev;
    }
    lock->priv.list = (uint8_t)where;
    if (where == RL_NOWHERE)
        return;
    list = rl_list(c, where);
    next = NULL;
    prev = list->last;
    while ((where == RL_WAIT || where == RL_WAIT_HELD) && prev != NULL &&
           prev->priv.due_us > lock->priv.due_us) {
        next = prev;
        prev = prev->priv.prev;
    }
    lock->priv.next = next;
    lock->priv.prev = prev;
    *(prev != NULL ? &prev->priv.next : &list->first) = lock;
    *(next != NULL ? &next->priv.prev : &list->last) = lock;
}

REDLOCK_PRIVATE void rl_schedule(struct redlock_client *c, struct redlock_lock *lock)
{
    if (lock->priv.list != RL_DONE && lock->priv.list != RL_TURN)
        rl_move(c, lock, RL_TURN);
}

/* ---- What replies tell besides votes ------------------------------------------------------------- */

#if REDLOCK_DIAGNOSIS
/* Node i has replied the token of the holder. Of the holder with most nodes, as far as that is known, copies as much as
   there is room for. Only a rollback and a release have such replies: else T1 stands where the holders are noted. */
static void rl_note_holder(struct redlock_lock *lock, unsigned i, const struct resp_item *item)
{
    size_t size = item->text_used < lock->holder_size ? item->text_used : lock->holder_size - 1U;
    uint16_t token = (uint16_t)(rl_hash(item, RESP_TEXT_MAX) | 1);
    unsigned j, same = 0;

    if (lock->priv.state != RL_IN_ROLLBACK && lock->priv.state != RL_IN_RELEASE)
        return;
    for (j = 0; j < REDLOCK_NODES_MAX; j++) {
        if (lock->priv.round.holding == 0) /* T1 stands there */
            lock->priv.at.holder.on[j] = 0;
        if (j == i)
            lock->priv.at.holder.on[j] = token;
        same += lock->priv.at.holder.on[j] == token;
    }
    if (same < lock->priv.round.holding)
        return;
    lock->priv.round.holding = (uint8_t)same;
    if (lock->priv.at.holder.named != token) /* when this one expires is not known yet */
        rl_forget_holder(lock);
    lock->priv.at.holder.named = token;
    if (!rl_wants_holder(lock))
        return;
    memcpy(lock->holder, item->text, size);
    lock->holder[size] = '\0';
}

/* Node i has replied for how long the holder has the key; -1: without end, below -1: the key is gone. */
static void rl_note_pttl(struct redlock_lock *lock, unsigned i, int64_t left_ms)
{
    if (left_ms < -1 || lock->priv.round.holding == 0 ||
        lock->priv.at.holder.on[i] != lock->priv.at.holder.named)
        return;
    lock->holder_left_ms = left_ms < 0 || left_ms > UINT32_MAX ? UINT32_MAX : (uint32_t)left_ms;
}

#else
static inline void rl_note_holder(struct redlock_lock *lock, unsigned i,
                                  const struct resp_item *item)
{
    (void)lock;
    (void)i;
    (void)item;
}

static inline void rl_note_pttl(struct redlock_lock *lock, unsigned i, int64_t left_ms)
{
    (void)lock;
    (void)i;
    (void)left_ms;
}

#endif

#if REDLOCK_NOTIFICATION
static void rl_note_free(struct redlock_lock *lock, unsigned nodes)
{
    rl_set(&lock->priv.attempt.free, nodes);
}
#else
static inline void rl_note_free(struct redlock_lock *lock, unsigned nodes)
{
    (void)lock;
    (void)nodes;
}
#endif

/* ---- Notification ------------------------------------------------------------------------------------ */

#if REDLOCK_NOTIFICATION
/* Whether the lock needs this key, of which only the first `known` bytes are known. */
static int rl_has_key(const struct redlock_lock *lock, const void *key, size_t key_size,
                      size_t known)
{
    unsigned i;

    for (i = 0; i <= rl_extra_keys(lock); i++) {
        struct redlock_key own = rl_key(lock, i);
        if (own.size == key_size && memcmp(own.bytes, key, known) == 0)
            return 1;
    }
    return 0;
}

/* Whether a quorum reports a change, and other clients had the lock when the last attempt failed: locks that failed
   for want of voters would only notify each other by their rollbacks. R7 */
REDLOCK_PRIVATE int rl_may_be_free(const struct redlock_client *c, const struct redlock_lock *lock)
{
    return rl_is_quorum(c, lock->priv.attempt.free) && rl_others_had_it(lock);
}

/* Whether the lock may have been refused, and will retry. R7 */
static int rl_waits_for_a_holder(const struct redlock_lock *lock)
{
    return lock->priv.state == RL_IN_ROLLBACK || lock->priv.state == RL_IN_LINE;
}

/* Nodes report that the lock with this key may be free; only its first `known` bytes are known. If they are a
   quorum now, one waiter retries: the one whose pause ends first. The others count notifications anew. But a
   waiter that needs further keys may retry in vain, so it does not retry for the others. Without waiters no
   list is searched, once a search has found none. R7 */
static void rl_notify(struct redlock_client *c, unsigned nodes, const void *key, size_t key_size,
                      size_t known)
{
    struct redlock_lock *lock, *next, *notified = NULL;
    unsigned list;

    if (!c->priv.waiting)
        return;
    c->priv.waiting = 0;
    for (list = RL_TURN; list <= RL_WAIT; list++)
        for (lock = rl_first(c, list); lock != NULL; lock = next) {
            next = lock->priv.next;
            if (rl_waits_for_a_holder(lock))
                c->priv.waiting = 1;
            if (!rl_has_key(lock, key, key_size, known))
                continue;
            rl_set(&lock->priv.attempt.free, nodes);
            if (notified != NULL) {
                lock->priv.attempt.free = 0;
            } else if (lock->priv.state == RL_IN_LINE && rl_may_be_free(c, lock)) {
                notified = rl_extra_keys(lock) == 0 ? lock : NULL;
                rl_schedule(c, lock);
            }
        }
}

REDLOCK_PRIVATE void rl_notify_own(struct redlock_client *c, const struct redlock_lock *lock)
{
    unsigned i;

    for (i = 0; i <= rl_extra_keys(lock); i++) {
        struct redlock_key key = rl_key(lock, i);
        rl_notify(c, c->priv.all, key.bytes, key.size, key.size);
    }
}

#else
static inline void rl_notify(struct redlock_client *c, unsigned nodes, const void *key,
                             size_t key_size, size_t known)
{
    (void)c;
    (void)nodes;
    (void)key;
    (void)key_size;
    (void)known;
}

#endif

/* ---- Replies ----------------------------------------------------------------------------------------- */

#if REDLOCK_REPAIR
/* Whether the key is to be created again on a node: only if an extension did not find our token there (R9),
   and so all that was sent before it on its connection is answered, and nothing that creates the key is
   unanswered on a former one (R8b). If another token is there, the script leaves it alone. A lock without a quorum
   of members is lost, and not repaired. */
REDLOCK_PRIVATE int rl_repairs(const struct redlock_client *c, const struct redlock_lock *lock,
                               unsigned bit)
{
    unsigned unanswered = rl_suspects(c, lock);

    return !rl_past(c, lock->valid_until_us) && rl_is_quorum(c, lock->members) &&
           (lock->priv.attempt.again & ~unanswered & bit) != 0;
}
#endif

/* What the reply says about the key on that node. Where an extension did not find the key, it is repaired: in the
   next round if a later extension is under way to the node, and not if a command that creates the key is. R8, R8b, R9 */
static void rl_learn_of_key(const struct redlock_client *c, struct redlock_lock *lock, unsigned bit,
                            const struct rl_reply *reply)
{
    rl_clear(&lock->priv.attempt.again, bit);
    if (reply->vote == RL_NO && rl_is(reply->command, RL_EXTENDING)) {
        rl_clear(&lock->members, bit); /* its key is gone: this vote may explain a loss */
        rl_clear(&lock->priv.attempt.late, bit);
        rl_set(&lock->refused, bit);
        if (REDLOCK_REPAIR && reply->command == RL_EXTEND && !(lock->priv.attempt.open & bit)) {
            rl_set(&lock->priv.attempt.again, bit);
            if (!(lock->priv.waits & bit) && rl_repairs(c, lock, bit))
                rl_set(&lock->priv.todo, bit);
        }
    } else if ((reply->vote == RL_YES || reply->vote == RL_REPAIRED) &&
               !rl_is(reply->command, RL_CREATING)) {
        rl_clear(&lock->priv.attempt.suspect, bit); /* our token is there: it has run */
    }
}

/* Counts a vote; a held lock notes for its caller what comes after the decision. The replies to a rollback are
   not votes: they only name the holder. */
static void rl_count_vote(struct redlock_lock *lock, const struct redlock_node *node,
                          const struct rl_reply *reply)
{
    const struct resp_item *item = &node->priv.reader.item;
    unsigned bit = node->priv.bit, state = lock->priv.state, vote = reply->vote;

    if (item->kind == RESP_STRING)
        rl_note_holder(lock, node->priv.index, item);
    if (vote == RL_LATER || vote == RL_DENIED) {
        rl_set(&lock->failed, bit);
        if (vote == RL_DENIED)
            rl_set(&lock->priv.round.denied, bit);
        else if (rl_is(reply->command, RL_RELEASING))
            rl_set(&lock->priv.attempt.again, bit);
    } else if (state == RL_IN_ROLLBACK) {
        if (item->kind == RESP_INTEGER)
            rl_note_free(lock, bit);
    } else if (vote == RL_NO) {
        rl_set(&lock->refused, bit);
        rl_clear(&lock->granted, bit);
    } else {
        rl_clear(&lock->refused, bit);
        if (state == RL_IN_ASK || state == RL_IN_CONFIRM)
            rl_count_agreement(lock, bit, (uint64_t)item->integer);
        if (vote != RL_REPAIRED || state == RL_IS_HELD) /* else it proves nothing of the past. R9 */
            rl_set(&lock->granted, bit);
    }
}

/* A reply after the decision: while the lock is valid slower nodes may still become members. R8, R9 */
static void rl_count_late(struct redlock_lock *lock, unsigned bit, const struct rl_reply *reply)
{
    if (reply->role == RL_STALE) {
        if (lock->priv.state == RL_IN_EXTEND && rl_is(reply->command, RL_CREATING))
            rl_clear(&lock->priv.todo, bit); /* its key is younger than this round. R9 */
    } else if (reply->vote == RL_YES) {
        rl_set(&lock->priv.attempt.late, bit);
    }
}

/* A node has replied to a repeated release. R4 */
static void rl_owed_replied(struct redlock_owed *owed, unsigned bit, const struct rl_reply *reply)
{
    rl_clear(&owed->waits, bit);
    if (reply->vote == RL_YES || reply->vote == RL_NO || reply->vote == RL_DENIED)
        rl_clear(&owed->todo, bit);
}

/* The vote will not come. The command is sent a second time, unless it acquires. R1 */
static void rl_unanswered(const struct redlock_node *node, struct redlock_lock *lock)
{
    unsigned bit = node->priv.bit;

    if (lock->priv.state != RL_IN_ASK && node->priv.useful && !(lock->priv.round.broken & bit))
        rl_set(&lock->priv.todo, bit);
    else
        rl_set(&lock->failed, bit);
    if (node->priv.useful)
        rl_set(&lock->priv.round.broken, bit);
}

/* Inline: there is one call, and it runs for each reply. */
static inline void rl_replied(struct redlock_client *c, struct redlock_node *node,
                              struct rl_reply *reply)
{
    const struct resp_item *item = &node->priv.reader.item;
    struct redlock_lock *lock = (struct redlock_lock *)reply->owner; /* unless it is OWED */
    unsigned bit = node->priv.bit;

    if (REDLOCK_NOTIFICATION && reply->command == RL_INVALIDATION) {
        rl_notify(c, bit, item->text, item->size, item->text_used);
        return;
    }
    if (REDLOCK_DIAGNOSIS && reply->command == RL_PTTL) {
        if (reply->vote == RL_YES)
            rl_note_pttl(lock, node->priv.index, item->integer);
        return;
    }
    if (REDLOCK_OWED_MAX > 0 && reply->role == RL_OWED) {
        rl_owed_replied((struct redlock_owed *)reply->owner, bit, reply);
        return;
    }
    if (reply->role == RL_YOUNG) { /* R9 */
        reply->role = RL_VOTER;
        if (reply->vote == RL_YES)
            reply->vote = RL_REPAIRED;
    }
    if (reply->role == RL_VOTER) {
        rl_clear(&lock->priv.waits, bit);
        if (rl_is(reply->command, RL_EXTENDING) && lock->priv.state != RL_IN_EXTEND)
            reply->role = RL_LATE; /* its round has succeeded */
    }
    if (rl_is(reply->command, RL_CREATING)) {
        rl_clear(&lock->priv.attempt.open, bit);
        if (reply->vote == RL_UNANSWERED)
            rl_set(&lock->priv.attempt.suspect, bit);
    } else if (reply->role != RL_VOTER) {
        rl_clear(&lock->priv.attempt.behind, bit);
    }
    if (reply->vote == RL_UNANSWERED) {
        if (reply->role != RL_VOTER)
            return; /* decided without it */
        rl_unanswered(node, lock);
    } else {
        rl_learn_of_key(c, lock, bit, reply);
        if (reply->role == RL_VOTER || lock->priv.state == RL_IS_HELD)
            rl_count_vote(lock, node, reply);
        if (reply->role != RL_VOTER)
            rl_count_late(lock, bit, reply);
    }
    rl_schedule(c, lock);
}

/* Whether the lock gathers votes that count only while their connection lasts. */
static int rl_in_round(const struct redlock_lock *lock)
{
    return lock->priv.state == RL_IN_ASK || lock->priv.state == RL_IN_CONFIRM ||
           lock->priv.state == RL_IN_EXTEND;
}

/* The connection to a node broke. A server that restarts empty has lost what it granted, and may be
   connected again under another of its addresses: so its votes in rounds that are not decided count no
   more. R3, R13. A lock that must still send to the node is stepped, and sees that it is away. */
static void rl_void_votes(struct redlock_client *c, const struct redlock_node *node)
{
    unsigned list, bit = node->priv.bit;
    struct redlock_lock *lock, *next;

    rl_clear(&c->priv.broke, bit);
    for (list = RL_TURN; list <= RL_WAIT; list++)
        for (lock = rl_first(c, list); lock != NULL; lock = next) {
            next = lock->priv.next;
            if ((lock->granted & bit) && rl_in_round(lock)) {
                rl_clear(&lock->granted, bit);
                rl_disagree(lock, bit);
                rl_unanswered(node, lock);
            } else if (!(lock->priv.todo & bit)) {
                continue;
            }
            rl_schedule(c, lock);
        }
}

REDLOCK_PRIVATE void rl_take_replies(struct redlock_client *c, struct redlock_node *node,
                                     unsigned reads)
{
    struct rl_input in = {NULL, NULL, reads};
    struct rl_reply reply;

    while (rl_node_reply(c, node, &in, &reply))
        rl_replied(c, node, &reply);
}

REDLOCK_PRIVATE void rl_tell_broken(struct redlock_client *c)
{
    while (c->priv.broke != 0) {
        struct redlock_node *node = rl_first_node(c, c->priv.broke);

        rl_take_replies(c, node, 0);
        rl_void_votes(c, node);
    }
}
