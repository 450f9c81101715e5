/* round.c - a round: a command that is sent to nodes, until enough of them have voted or none is left.
   Decides nothing: that is redlock.c's. Called by redlock.c and client.c.

   The rules of rounds stand in the head of redlock.c: R2, R8b, R9, R11; R14 in that of node.c.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#define REDLOCK_ENGINE
#include "core.h"

#include <string.h>

/* ---- The end of a round, and the next --------------------------------------------------------------- */

/* A node owes the reply to one earlier extension at most: the reply to a later one says nothing more of the key. */
REDLOCK_PRIVATE void rl_end_round(struct redlock_client *c, struct redlock_lock *lock,
                                  enum rl_role role)
{
    unsigned behind = lock->priv.waits & lock->priv.attempt.behind;

    rl_redirect(c, lock, behind, NULL, role);
    rl_set(&lock->priv.attempt.behind,
           rl_redirect(c, lock, lock->priv.waits & ~behind, lock, role));
    lock->priv.waits = 0;
}

REDLOCK_PRIVATE void rl_forget(struct redlock_client *c, struct redlock_lock *lock)
{
    if (rl_wants_holder(lock)) /* nodes that have voted may owe the reply to PTTL */
        lock->priv.waits = c->priv.all;
    rl_redirect(c, lock, lock->priv.waits, NULL, RL_NOBODY);
    rl_redirect(c, lock, lock->priv.attempt.open, NULL, RL_NOBODY);
    rl_redirect(c, lock, lock->priv.attempt.behind, NULL, RL_NOBODY);
    lock->priv.waits = lock->priv.attempt.open = lock->priv.attempt.behind = 0;
}

REDLOCK_PRIVATE void rl_begin_round(struct redlock_client *c, struct redlock_lock *lock)
{
    rl_end_round(c, lock, RL_LATE); /* those of the round before, which has succeeded */
    rl_clear(&lock->priv.attempt.suspect, ~rl_abandoned(c));
    lock->priv.at.started_us = c->priv.now_us;
    lock->priv.todo = c->priv.all;
    memset(&lock->priv.round, 0, sizeof lock->priv.round);
    lock->granted = lock->refused = lock->failed = 0;
}

static unsigned rl_acquiring_command(const struct redlock_lock *lock)
{
    if (rl_use_fencing(lock))
        return RL_FENCE;
    return rl_extra_keys(lock) > 0 ? RL_TAKE : RL_SET;
}

/* The command that a lock sends to a node now. The native release serves one key only. It is not used for a
   rollback, whose script also replies the holder, nor a second time. R11 */
static unsigned rl_command_for(const struct redlock_client *c, const struct redlock_node *node,
                               const struct redlock_lock *lock, unsigned bit)
{
    switch (lock->priv.state) {
    case RL_IN_ASK:
        return rl_acquiring_command(lock);
    case RL_IN_CONFIRM:
        return RL_CONFIRM;
    case RL_IS_HELD:
        if (!(lock->priv.attempt.asked & bit))
            return rl_acquiring_command(lock);
        /* fall through */
    case RL_IN_EXTEND:
        return rl_repairs(c, lock, bit) ? RL_REPAIR : RL_EXTEND;
    case RL_IN_ROLLBACK:
        return RL_DELETE | (rl_notifies(node) ? RL_WITH_CACHING : 0U) |
               (rl_wants_holder(lock) ? RL_WITH_PTTL : 0U);
    default:
        return rl_knows_native(node) && rl_extra_keys(lock) == 0 && !(lock->priv.round.broken & bit)
                   ? rl_native(node)
                   : RL_DELETE;
    }
}

/* Tries the native release of nodes behind the script. R11 */
static void rl_try_native(struct redlock_client *c, struct redlock_lock *lock, unsigned nodes)
{
    for (; nodes != 0; nodes &= nodes - 1) {
        struct redlock_node *node = rl_first_node(c, nodes);

        if (rl_tries_native(node) && rl_extra_keys(lock) == 0 &&
            rl_send(c, lock, rl_first_bit(nodes), rl_native(node), RL_NOBODY) != 0)
            rl_set_native(node, rl_native(node), RL_ON_TRIAL);
    }
}

/* An order is what a node is sent: a command with its flags; the role of the reply; and MUTE if the reply does
   not count, because the node may have lost the lock. R14 */
enum { RL_ORDER_COMMAND = 255, RL_ORDER_ROLE = 256, RL_ORDER_MUTE = 8 * RL_ORDER_ROLE };

/* Sends an order to ready nodes. Nodes that may not vote are sent it too, but their replies are not waited
   for, nor are those of nodes that are asked after the decision. R2, R14 */
static void rl_send_order(struct redlock_client *c, struct redlock_lock *lock, unsigned nodes,
                          unsigned order)
{
    unsigned command = order & RL_ORDER_COMMAND, role = order / RL_ORDER_ROLE & 7;
    redlock_mask sent = rl_send(c, lock, nodes, command, role);

    rl_clear(&lock->priv.todo, sent);
    if (lock->priv.state != RL_IN_ROLLBACK) /* the caller sees who failed before */
        rl_clear(&lock->failed, sent);
    if (order & RL_ORDER_MUTE) {
        rl_set_mute(lock, sent, 1);
        rl_set(&lock->failed, sent);
    }
    if (role == RL_VOTER || role == RL_YOUNG)
        rl_set(&lock->priv.waits, sent);
    if (rl_is(command & RL_COMMAND, RL_CREATING)) {
        rl_set(&lock->priv.attempt.asked, sent);
        rl_set(&lock->priv.attempt.open, sent);
        if (REDLOCK_REPAIR)
            rl_clear(&lock->priv.attempt.again, sent);
    }
    if (REDLOCK_NATIVE_RELEASE && (command & RL_COMMAND) == RL_DELETE)
        rl_try_native(c, lock, sent);
}

/* A node that has no connection counts as failed, also while it is connected again: it may be hung, and
   accept connections. The command is sent when it is back, but for a rollback, which waits for nobody. */
static void rl_mark_away(struct redlock_lock *lock, const struct redlock_node *node, unsigned bit)
{
    unsigned state = lock->priv.state;

    if (node->state != REDLOCK_NODE_DOWN && !(state == RL_IN_ASK && rl_is_failing(node)))
        return;
    if (state == RL_IN_ROLLBACK)
        rl_clear(&lock->priv.todo, bit);
    else
        rl_set(&lock->failed, bit);
    if (node->priv.denied)
        rl_set(&lock->priv.round.denied, bit);
}

/* Connects nodes where that is due, or would be too late at the next due time; 0: no time is too late. */
static void rl_connect(struct redlock_client *c, unsigned nodes, uint64_t too_late_us)
{
    nodes &= c->priv.in[REDLOCK_NODE_IDLE] | c->priv.in[REDLOCK_NODE_DOWN];
    for (; nodes != 0; nodes &= nodes - 1)
        rl_node_want(c, rl_first_node(c, nodes), too_late_us);
}

REDLOCK_PRIVATE void rl_connect_due(struct redlock_client *c, unsigned nodes)
{
    rl_connect(c, nodes, 0);
}

/* Whether our token on a node may be younger than this round: a command that creates the key is unanswered there,
   as on no member. Then the token proves nothing of the time before, but does in a later round. R9 */
static int rl_may_be_young(const struct redlock_client *c, const struct redlock_lock *lock,
                           unsigned bit)
{
    return (bit & ~(unsigned)lock->members & (lock->priv.attempt.open | rl_suspects(c, lock))) != 0;
}

/* The order for a node. One that may not vote gets the reason as its error. */
static unsigned rl_order_for(const struct redlock_client *c, struct redlock_node *node,
                             const struct redlock_lock *lock, unsigned bit)
{
    unsigned command = rl_command_for(c, node, lock, bit), role = RL_VOTER;
    unsigned mute =
        rl_is(command & RL_COMMAND, RL_WRITING) && !rl_may_vote(c, node) ? RL_ORDER_MUTE : 0;

    if (mute)
        rl_quarantine(node);
    if (mute || lock->priv.state == RL_IS_HELD)
        role = rl_is(command, RL_CREATING) ? RL_STALE : RL_NOBODY;
    else if (command == RL_EXTEND && rl_may_be_young(c, lock, bit))
        role = RL_YOUNG;
    return command | role * RL_ORDER_ROLE | mute;
}

/* Sends the present command of a lock where it is still to be sent and can be: an order at a time, to all nodes
   that it is for. An order that looks at a marker is for one node. R2 */
REDLOCK_PRIVATE void rl_ask_nodes(struct redlock_client *c, struct redlock_lock *lock)
{
    unsigned nodes = lock->priv.todo & ~(unsigned)c->priv.full, ready, away;

    rl_connect(c, nodes, lock->priv.state == RL_IN_EXTEND ? lock->valid_until_us : 0);
    away = nodes & ~(unsigned)c->priv.in[REDLOCK_NODE_READY];
    for (; away != 0; away &= away - 1)
        rl_mark_away(lock, rl_first_node(c, away), rl_first_bit(away));
    ready = nodes & c->priv.in[REDLOCK_NODE_READY];
    while (ready != 0 && !c->priv.jammed) {
        unsigned left = ready, same = 0, order = 0;

        for (; left != 0; left &= left - 1) {
            unsigned bit = rl_first_bit(left);
            unsigned next = rl_order_for(c, rl_first_node(c, left), lock, bit);

            if (same == 0) {
                order = next;
                if (rl_looks_at_marker(c, lock, order & RL_ORDER_COMMAND))
                    left = bit; /* the last one */
            }
            if (order == next)
                same |= bit;
        }
        ready &= ~same;
        rl_send_order(c, lock, same, order);
    }
    rl_tell_broken(c); /* a vote of this round may be gone */
}

#if REDLOCK_ERROR_TEXTS
REDLOCK_PRIVATE void rl_set_late_errors(struct redlock_client *c, unsigned nodes)
{
    for (; nodes != 0; nodes &= nodes - 1) {
        struct redlock_node *node = rl_first_node(c, nodes);
        rl_set_error(node, rl_is_up(node) ? RL_NO_REPLY_IN_TIME : RL_NO_CONNECTION_IN_TIME);
    }
}
#endif

REDLOCK_PRIVATE void rl_fail_late(struct redlock_client *c, struct redlock_lock *lock,
                                  unsigned nodes)
{
    rl_set_late_errors(c, nodes);
    rl_set(&lock->failed, nodes);
}

REDLOCK_PRIVATE uint64_t rl_mark_late(struct redlock_client *c, struct redlock_lock *lock)
{
    unsigned nodes = (lock->priv.todo | lock->priv.waits) & ~(unsigned)lock->failed, late = 0;
    uint64_t longest_us = rl_longest_wait_us(lock), next_us = REDLOCK_NEVER;

    for (; nodes != 0; nodes &= nodes - 1) {
        struct redlock_node *node = rl_first_node(c, nodes);
        uint64_t due_us = lock->priv.asked_us + node->priv.timeout_us;

        rl_not_after(&due_us, lock->priv.asked_us + longest_us);
        if (lock->priv.state == RL_IN_EXTEND && lock->priv.asked_us < lock->valid_until_us)
            rl_not_after(&due_us, lock->valid_until_us);
        if (rl_past(c, due_us))
            late |= rl_first_bit(nodes);
        else
            rl_not_after(&next_us, due_us);
    }
    rl_fail_late(c, lock, late);
    return next_us;
}
