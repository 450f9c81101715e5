/* hold.c - how a held lock is kept: what replies tell about its keys, extension, repair of nodes
   that have lost the key, automatic renewal. Called by redlock.c, which has the states.

   R2 goes on while the lock is held: nodes that were not asked before the decision are asked.

   R8  Only members confirm: nodes that granted the lock while it was valid, or that confirmed an
       extension that succeeded, in a generation that was known before it began (R9). A failed
       extension leaves the validity as it was, and none shortens it. So a success proves, without
       any clock, that no other client held the lock up to the start of the round; only a grant that
       came after the decision rests on the validity (R3).
   R9  Repair by generations. Each command that creates the key writes a number into its value that
       no other such command of this token to this node has: the last bytes of the token, which an
       extension replies. A yes is a vote only if it tells the generation that was known before the
       round began; another one means that the key was gone meanwhile, so the node is no member.
       Where none is known, the next command creates the key if it is missing, while the lock is
       valid; at once where an extension has just found no key, also after the decision.
   R10 Bounded extension. Auto-extension runs a third of the ttl after the last success, at once if
       less than two thirds are left, and after a failure again until the validity ends. One that
       comes early, to make members of nodes that have the key, does not count; each node causes
       one at most between two that do.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "core.h"

#include <string.h>

/* ---- What a reply says about the key --------------------------------------------------------- */

REDLOCK_PRIVATE uint32_t rl_token_generation(const struct redlock_lock *lock)
{
    return REDLOCK_MINIMAL || lock->token_is_label ? 1
                                                   : rl_generation(lock->token + RL_TOKEN_OWNER);
}

/* If the key is there, with our token or another one, the script leaves it as it is. A lock without
   a quorum of members is lost, and not repaired. A label that is the token has no room for a
   generation. R9 */
REDLOCK_PRIVATE int rl_hold_repairs(const struct redlock_client *c, const struct redlock_lock *lock,
                                    const struct redlock_node *node)
{
    return !REDLOCK_MINIMAL && !lock->token_is_label && lock->generation[node->priv.index] == 0 &&
           rl_is_quorum(c, lock->members) && !rl_past(c, lock->valid_until_us);
}

/* An extension did not find our key: the node is no member any more, and is sent the repair at
   once. If a repair has found the key of another client, the next round tries again. R9 */
static void rl_learn_loss(const struct redlock_client *c, struct redlock_lock *lock,
                          const struct redlock_node *node, unsigned command)
{
    lock->generation[node->priv.index] = 0;
    rl_clear(&lock->members, node->priv.bit);
    rl_count_refusal(lock, node->priv.bit);
    if (command == RL_EXTEND && rl_hold_repairs(c, lock, node))
        rl_set(&lock->priv.unsent, node->priv.bit);
}

/* The node has our key, in this generation: takes or gives the membership, and the vote. R8, R9 */
static void rl_learn_generation(struct redlock_lock *lock, const struct redlock_node *node,
                                struct rl_reply *reply, uint32_t generation)
{
    uint32_t *known = &lock->generation[node->priv.index];
    unsigned bit = node->priv.bit;

    /* Another generation, or the first one: the key may have been gone until now. */
    if (*known != generation) {
        *known = generation;
        rl_set(&lock->priv.round.fresh, bit);
        rl_clear(&lock->priv.attempt.proved, bit);
        if (lock->members & bit)
            rl_count_refusal(lock, bit);
        rl_clear(&lock->members, bit);
    }
    if (!rl_is(reply->command, RL_EXTENDS))
        return;
    /* The generation was not known when this round began: the yes proves nothing of the time
       before. */
    if (lock->priv.round.fresh & bit)
        reply->vote = RL_UNPROVED;
    /* The key was there from before a round that succeeded until after it. */
    else if (lock->priv.attempt.proved & bit)
        rl_set(&lock->members, bit);
}

REDLOCK_PRIVATE void rl_hold_learn(const struct redlock_client *c, struct redlock_lock *lock,
                                   const struct redlock_node *node, struct rl_reply *reply)
{
    int extends = rl_is(reply->command, RL_EXTENDS);

    if (reply->vote == RL_NO && extends)
        rl_learn_loss(c, lock, node, reply->command);
    if (reply->vote != RL_YES)
        return;
    if (extends)
        rl_learn_generation(lock, node, reply, (uint32_t)node->priv.reader.item.integer);
    else if (reply->command != RL_CONFIRM)
        rl_learn_generation(lock, node, reply, rl_token_generation(lock));
    /* It may have lost keys. For an extension rl_extension_begin has decided that. R14 */
    if (!extends && !rl_may_vote(c, node))
        reply->vote = RL_LATER;
}

/* While the lock is valid, slower nodes still become members; and so they do while the nodes agree
   on its fencing token, as the lock may become held. A node that was asked after the decision does
   not: the next extension makes it a member. R8 */
REDLOCK_PRIVATE void rl_hold_count_late_grant(struct redlock_client *c, struct redlock_lock *lock,
                                              unsigned bit, const struct rl_reply *reply)
{
    if (reply->vote == RL_YES && rl_is(reply->command, RL_ACQUIRES) &&
        reply->round != RL_NO_ROUND &&
        (lock->priv.state == RL_AGREEING || rl_now(c) < lock->valid_until_us))
        rl_set(&lock->members, bit);
}

/* ---- Late nodes ------------------------------------------------------------------------------ */

REDLOCK_PRIVATE void rl_hold_ask_rest(const struct redlock_client *c, struct redlock_lock *lock)
{
    lock->priv.unsent = c->priv.all & (redlock_mask)~lock->priv.attempt.asked;
}

REDLOCK_PRIVATE void rl_hold_serve(struct redlock_client *c, struct redlock_lock *lock)
{
    if (rl_past(c, lock->valid_until_us))
        lock->priv.unsent = 0;
    rl_ask_nodes(c, lock);
}

/* ---- Extension ------------------------------------------------------------------------------- */

/* When a third of the ttl has passed since the last round, or at once if less than two thirds are
   left, and at the end of the validity at the latest. The caller may have shortened the ttl: then
   repaired nodes have the key for the shorter time, although the validity lasts longer. R10 */
static uint64_t rl_renewal_due(const struct redlock_client *c, const struct redlock_lock *lock)
{
    uint64_t end_us = lock->priv.started_us + lock->ttl_ms * RL_MS_US, due_us;
    uint64_t rest_us = (lock->ttl_ms - lock->ttl_ms / 3) * RL_MS_US;

    rl_not_after(&end_us, lock->valid_until_us + rl_drift_us(c, lock->ttl_ms));
    due_us = end_us > rest_us ? end_us - rest_us : 0;
    rl_not_after(&due_us, lock->valid_until_us);
    return due_us;
}

/* Nodes that have the key, but were asked or repaired only after the decision: the next round makes
   them members. R2, R8 */
static unsigned rl_unconfirmed(const struct redlock_client *c, const struct redlock_lock *lock)
{
    unsigned nodes = lock->priv.round.fresh & ~(unsigned)lock->members;

    nodes &= c->priv.in[REDLOCK_NODE_READY];
    return nodes & ~rl_without_vote(c, nodes);
}

/* So they become members soon, and not a third of the ttl later: until then fewer nodes keep the
   lock than have its key. This extension is one more: it does not count, and the next one is due
   as before. Each node causes one at most until then, as it may lose its keys again and again. */
REDLOCK_PRIVATE void rl_renewal_hasten(const struct redlock_client *c, struct redlock_lock *lock)
{
    unsigned nodes = rl_unconfirmed(c, lock) & ~(unsigned)lock->priv.op.early;

    if (lock->priv.op.renewals == 0 || nodes == 0)
        return;
    rl_set(&lock->priv.op.early, nodes);
    rl_not_after(&lock->priv.due_us, c->priv.now_us + c->priv.settings.node_timeout_ms * RL_MS_US);
}

/* A failed automatic extension is tried again after a pause: that of the settings, but a quarter
   of the time that is left at most. Not at once: it could fail for ever in one tick. */
static uint64_t rl_renewal_retry(struct redlock_client *c, struct redlock_lock *lock)
{
    uint64_t soon_us = c->priv.now_us + RL_MS_US, due_us = soon_us + rl_pause_us(c, lock);

    rl_not_after(&due_us, soon_us + (lock->valid_until_us - c->priv.now_us) / 4);
    rl_not_after(&due_us, lock->valid_until_us);
    return due_us;
}

/* All nodes are asked; only members vote. If the lock is lost, the votes of the last round stay, as
   they tell why. A node that has no vote now may have lost a grant that another client still
   counts: the round proves nothing for it, as if its generation were learned in the round. R8, R9,
   R14 */
REDLOCK_PRIVATE void rl_extension_begin(struct redlock_client *c, struct redlock_lock *lock)
{
    if (!rl_is_quorum(c, lock->members)) {
        rl_roll_back(c, lock, REDLOCK_LOST);
        return;
    }
    rl_begin_round(c, lock);
    rl_set(&lock->priv.round.fresh, rl_without_vote(c, c->priv.all & ~(unsigned)lock->members));
    rl_await_votes(c, lock, RL_EXTENDING);
}

REDLOCK_PRIVATE void rl_renewal_begins(const struct redlock_client *c, struct redlock_lock *lock)
{
    lock->priv.op.early = 0;
    lock->priv.renew_us = rl_renewal_due(c, lock);
    rl_lock_enter(lock, RL_RENEWING, lock->priv.renew_us);
}

/* A round of extensions has succeeded. One that came early does not count. R10 */
static void rl_count_extension(const struct redlock_client *c, struct redlock_lock *lock)
{
    if (rl_is_auto(lock) && lock->priv.started_us < lock->priv.renew_us)
        return;
    if (lock->extended < UINT16_MAX)
        lock->extended++;
    if (!rl_is_auto(lock))
        return;
    lock->priv.op.early = 0;
    if (lock->priv.op.renewals != RL_NO_LIMIT)
        lock->priv.op.renewals--;
    lock->priv.renew_us = rl_renewal_due(c, lock);
}

/* After a success rl_prolong has noted which generations were known before the round, so replies
   that still come make members. After a failure nodes that were not sent the lock yet are to be
   sent it again. R2, R8 */
REDLOCK_PRIVATE void rl_extension_end(struct redlock_client *c, struct redlock_lock *lock,
                                      enum redlock_status status)
{
    if (status != REDLOCK_OK) {
        rl_hold_ask_rest(c, lock);
        lock->priv.unanswered = 0;
    } else {
        rl_count_extension(c, lock);
    }
    if (!rl_is_auto(lock) || status == REDLOCK_CANCELLED) {
        rl_lock_finish(c, lock, status);
    } else if (status == REDLOCK_OK) {
        lock->priv.op.slow = 0;
        rl_lock_enter(lock, RL_RENEWING, lock->priv.renew_us);
    } else {
        rl_lock_enter(lock, RL_RENEWING, rl_renewal_retry(c, lock));
    }
}
