/* redlock.c - which client holds the lock: attempts, votes, validity, rollback, release, fencing.
   Read it beside [Redlock], see redlock.h. No I/O: bytes come in through redlock_handle_events,
   time through redlock_tick. hold.c says how a held lock is kept, wait.c when a waiter asks again,
   node.c which nodes can be sent a command.

   The page, for many nodes at once, without blocking; rl_step has the states:

       acquire: repeat
           T1 = now; draw a token
           ask all nodes:  SET key token NX PX ttl                   IN_LINE, ASKING
           until a quorum has granted it, or cannot any more
           if a quorum granted it, and ttl - (now - T1) - drift > 0
               it is held until T1 + ttl - drift                     HELD
               return
           ask each node that may have the key to delete it          ROLLING_BACK
           wait at random, or for a notification                     PAUSING
       until the wait is over
       extend:
           T1 = now
           ask all nodes to prolong it, if the value is ours         EXTENDING
           if a quorum of members confirm it in time
               it is held until T1 + ttl - drift                     HELD, RENEWING
       release:
           ask each node that may have the key to delete it          RELEASING

   The rules. R3, R8, R9, R13, R14 and R16 keep two holders apart; R1 and R4 keep attempts apart;
   the others are for progress, and save time. Those of a held lock stand in hold.c, those of a
   waiter in wait.c, those of connections in node.c. Code and tests cite them by number. R5, R12 to
   R14: node.c. R6, R7, R19: wait.c. R8 to R10: hold.c. R17 and R18 are gone.

   R1  Fresh token. T1 is read before the first byte of an attempt is queued. Each attempt has a
       new random token, and a command that acquires is sent once per node and attempt. A reply is a
       vote only in the round of its command, and of this attempt. So a late grant of attempt 1
       never counts for attempt 2, nor does its key.
   R2  Ask all nodes at once. An attempt first waits for connections that are under way, and for
       room in the queues of a quorum. A node that is ready only after the decision is still sent
       the command, as long as the lock is held: a lock on a bare quorum is lost when one more node
       restarts empty. Such a grant counts from the next successful extension on.
   R3  Decide early, and by the clock. A quorum granted and ttl - (now - T1) - drift > 0: held. A
       quorum out of reach: failed. `now` is read after the replies were read.
   R4  Roll back failed attempts, and lost locks. The release goes at once to every node that was
       sent the command; a full buffer only delays it. A node that has refused the command has no key
       of ours. It is not sent the release if nobody needs its reply, or if it refused at the gate of
       a wait queue (R19). A release is repeated until the key has expired if it is unanswered when
       the attempt or the operation ends, was answered with a temporary error, or was cut off by a
       second broken connection. The client keeps such a release if REDLOCK_OWED_MAX has room for it,
       but none with a token that the caller chose. A release that waits for failed nodes only gives
       up its room for a later one.
   R11 Release in every state of the lock, on all nodes that may have the key. A server's own
       compare-and-delete command, by the version in HELLO, replaces the script. A server that has
       the script is sent its hash. If a release of a valid lock is sent to a node again, because its
       reply did not come, a missing key proves no loss there: the first one may have deleted it.
   R15 Nothing waits without a bound, and the bound fits the distance. Each node has its own time
       for a vote, from its smoothed round trip and the variation, as in RFC 6298; node_timeout_ms
       at least, stall_ms and a quarter of the ttl at most. A round has failed when too few nodes
       have granted or still have time. wait_ms for a holder; stall_ms for a quorum of connections.
   R16 Fencing tokens. Each node counts the grants of a lock. The token is a counter on which a
       quorum agrees; where they differ the largest is proposed to all. A node whose counter is
       larger by then does not agree. The first proposal is the wall clock, unless that date cannot
       be.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "core.h"

#include <string.h>

enum {
    RL_CONFIRMS_MAX = 4, /* rounds to agree on a fencing token. R16 */
    RL_CONNECT_MS = 100  /* a quorum waits so long for the connections to the rest. R2 */
};

/* rl_step comes first; what it calls is declared here, and what is needed before it is defined. */
static void rl_stand_in_line(struct redlock_client *c, struct redlock_lock *lock);
static int rl_can_begin(struct redlock_client *c, const struct redlock_lock *lock);
static void rl_wait_in_line(struct redlock_client *c, struct redlock_lock *lock);
static void rl_begin_attempt(struct redlock_client *c, struct redlock_lock *lock);
static int rl_prolong(struct redlock_client *c, struct redlock_lock *lock);
static void rl_hold(struct redlock_client *c, struct redlock_lock *lock);
static int rl_knows_why(const struct redlock_client *c, const struct redlock_lock *lock);
static enum redlock_status rl_outcome(const struct redlock_client *c,
                                      const struct redlock_lock *lock);
static void rl_begin_agreement(struct redlock_client *c, struct redlock_lock *lock);
static int rl_roll_back_step(struct redlock_client *c, struct redlock_lock *lock);
static void rl_retry(struct redlock_client *c, struct redlock_lock *lock);
static void rl_begin_release(struct redlock_client *c, struct redlock_lock *lock);
static int rl_release_step(struct redlock_client *c, struct redlock_lock *lock);
static void rl_set_late_errors(struct redlock_client *c, unsigned nodes);
static void rl_time_out(struct redlock_client *c, struct redlock_lock *lock, unsigned nodes);
static uint64_t rl_release_until(const struct redlock_client *c, const struct redlock_lock *lock);
static int rl_has_failed(struct redlock_client *c, struct redlock_lock *lock, unsigned voters);
static void rl_next_round(struct redlock_client *c, struct redlock_lock *lock);
static unsigned rl_ready_for_releases(const struct redlock_client *c);
static int rl_may_queue(const struct redlock_client *c, const struct redlock_lock *lock);
static unsigned rl_releasing_command(const struct redlock_client *c,
                                     const struct redlock_lock *lock);
static unsigned rl_next_command(const struct redlock_client *c, const struct redlock_lock *lock,
                                unsigned *nodes, unsigned *same);

/* ---- Questions about a lock ------------------------------------------------------------------ */

static int rl_use_fencing(const struct redlock_lock *lock)
{
    return !REDLOCK_MINIMAL && lock->use_fencing;
}

/* The nodes that agree on the fencing token; without one a grant is an agreement. R16 */
static unsigned rl_agreed(const struct redlock_lock *lock)
{
    return rl_use_fencing(lock) ? lock->priv.round.agreed : lock->granted;
}

/* The nodes whose reply to the present command may still come in time. */
static unsigned rl_outstanding(const struct redlock_lock *lock)
{
    return (lock->priv.unsent | lock->priv.unanswered) & ~(unsigned)lock->failed;
}

/* Whether it is an acquire that may wait for the holder. */
static int rl_may_wait(const struct redlock_lock *lock)
{
    return lock->operation == REDLOCK_OP_ACQUIRE && lock->priv.op.waits;
}

/* ---- The life of a lock ---------------------------------------------------------------------- */

/* All transitions of a lock. Replies and time have changed its sets of nodes and the clock; what
   becomes of it is decided here alone. "Page" is [Redlock]; its steps are those of "The Redlock
   algorithm" there. Each function that is called enters the state that the comment behind it
   names, or rl_lock_finish ends the operation: HELD, if the lock has a validity, else IDLE. */
static void rl_step(struct redlock_client *c, struct redlock_lock *lock)
{
    int cancelled = lock->priv.op.cancelled, due = rl_past(c, lock->priv.due_us);

    switch ((enum rl_state)lock->priv.state) {
    case RL_IDLE: /* an acquire begins, or a release in whatever state the lock was */
        if (lock->operation == REDLOCK_OP_RELEASE)
            rl_begin_release(c, lock); /* RELEASING */
        else if (cancelled)
            rl_lock_finish(c, lock, REDLOCK_CANCELLED);
        else
            rl_stand_in_line(c, lock); /* IN_LINE */
        return;

    case RL_IN_LINE: /* until there are connections and room for an attempt. R2, R6 */
        if (cancelled)
            rl_lock_finish(c, lock, REDLOCK_CANCELLED);
        else if (rl_can_begin(c, lock))
            rl_begin_attempt(c, lock); /* ASKING; page, step 1: the time. R1 */
        else
            rl_wait_in_line(c, lock);
        return;

    case RL_ASKING:   /* page, step 2: all nodes, each with a time limit. R2, R15 */
    case RL_AGREEING: /* on the largest counter, as the fencing token. R16 */
        if (cancelled) {
            rl_roll_back(c, lock, REDLOCK_CANCELLED); /* ROLLING_BACK */
            return;
        }
        rl_ask_nodes(c, lock);
        if (rl_is_quorum(c, rl_agreed(lock)))
            rl_hold(c, lock); /* HELD; page, steps 3 and 4. Or ROLLING_BACK: too late. R3 */
        else if (rl_use_fencing(lock) && rl_is_quorum(c, lock->granted))
            rl_begin_agreement(c, lock); /* AGREEING */
        else if (rl_has_failed(c, lock, c->priv.all) && rl_knows_why(c, lock))
            rl_roll_back(c, lock, rl_outcome(c, lock)); /* ROLLING_BACK */
        return;

    case RL_ROLLING_BACK: /* page, step 5: also on nodes that did not answer. R4 */
        if (rl_roll_back_step(c, lock))
            rl_retry(c, lock); /* PAUSING; page: ask again after a random delay. R6 */
        return;

    case RL_PAUSING: /* a random delay, which a notification shortens. R6, R7 */
        if (cancelled)
            rl_lock_finish(c, lock, REDLOCK_CANCELLED);
        else if (rl_wait_is_over(c, lock))
            rl_stand_in_line(c, lock); /* IN_LINE */
        return;

    case RL_HELD: /* until an extension begins, or for ever */
        if (lock->status != REDLOCK_PENDING)
            rl_hold_serve(c, lock);
        else if (cancelled)
            rl_lock_finish(c, lock, REDLOCK_CANCELLED);
        else if (rl_is_auto(lock))
            rl_renewal_begins(c, lock); /* RENEWING */
        else
            rl_extension_begin(c, lock); /* EXTENDING; or ROLLING_BACK: lost */
        return;

    case RL_RENEWING: /* until the next automatic extension. R10 */
        rl_hold_serve(c, lock);
        rl_renewal_hasten(c, lock);
        if (cancelled)
            rl_lock_finish(c, lock, REDLOCK_CANCELLED);
        else if (rl_past(c, lock->valid_until_us))
            rl_roll_back(c, lock, REDLOCK_LOST); /* ROLLING_BACK */
        else if (due && lock->priv.op.renewals == 0)
            rl_lock_finish(c, lock, REDLOCK_EXTEND_LIMIT);
        else if (due)
            rl_extension_begin(c, lock); /* EXTENDING; or ROLLING_BACK: lost */
        return;

    case RL_EXTENDING: /* page: a majority of those that have it, within the validity. R8, R9 */
        if (cancelled) {
            rl_extension_end(c, lock, REDLOCK_CANCELLED);
            return;
        }
        if (!rl_is_quorum(c, lock->members)) {
            rl_roll_back(c, lock, REDLOCK_LOST); /* ROLLING_BACK */
            return;
        }
        rl_ask_nodes(c, lock);
        if (rl_is_quorum(c, lock->granted & lock->members))
            rl_extension_end(c, lock, rl_prolong(c, lock) ? REDLOCK_OK : REDLOCK_UNREACHABLE);
        else if (rl_has_failed(c, lock, lock->members))
            rl_extension_end(c, lock, REDLOCK_UNREACHABLE); /* RENEWING, or HELD */
        return;

    case RL_RELEASING: /* page: compare the value, delete, on all nodes that may have it. R11 */
        if (rl_release_step(c, lock)) {
            rl_notify_own(c, lock);
            /* Nodes that could not be sent the release yet are sent it there. */
            rl_lock_enter(lock, RL_ROLLING_BACK, rl_release_until(c, lock));
        }
        return;
    }
}

/* Which states may follow. IDLE may follow each: by a release, which begins there, or the end of
   the client. */
static int rl_may_follow(enum rl_state from, enum rl_state to)
{
    static const uint16_t after[] = {
        /* HELD by redlock_adopt */
        [RL_IDLE] = 1 << RL_IN_LINE | 1 << RL_RELEASING | 1 << RL_HELD,
        [RL_IN_LINE] = 1 << RL_ASKING,
        [RL_ASKING] = 1 << RL_AGREEING | 1 << RL_HELD | 1 << RL_ROLLING_BACK,
        [RL_AGREEING] = 1 << RL_AGREEING | 1 << RL_HELD | 1 << RL_ROLLING_BACK,
        [RL_ROLLING_BACK] = 1 << RL_PAUSING,
        [RL_PAUSING] = 1 << RL_IN_LINE,
        [RL_HELD] = 1 << RL_HELD | 1 << RL_RENEWING | 1 << RL_EXTENDING | 1 << RL_ROLLING_BACK,
        [RL_RENEWING] = 1 << RL_HELD | 1 << RL_EXTENDING | 1 << RL_ROLLING_BACK,
        [RL_EXTENDING] = 1 << RL_HELD | 1 << RL_RENEWING | 1 << RL_ROLLING_BACK,
        [RL_RELEASING] = 1 << RL_ROLLING_BACK,
    };

    return to == RL_IDLE || (after[from] >> to & 1) != 0;
}

/* No other function assigns the state, but redlock_lock_init and redlock_adopt clear it to IDLE. */
REDLOCK_PRIVATE void rl_lock_enter(struct redlock_lock *lock, enum rl_state state, uint64_t due_us)
{
    RL_ASSERT(rl_may_follow((enum rl_state)lock->priv.state, state));
    RL_TRACE("lock state", lock, state);
    lock->priv.state = (uint8_t)state;
    lock->priv.due_us = due_us;
}

/* The lock is not held: it has no validity and no fencing token, which was a proposal or is of the
   past. R16 */
static void rl_be_idle(struct redlock_lock *lock)
{
    lock->valid_until_us = lock->fencing_token = 0;
    rl_lock_enter(lock, RL_IDLE, REDLOCK_NEVER);
}

REDLOCK_PRIVATE void rl_lock_finish(struct redlock_client *c, struct redlock_lock *lock,
                                    enum redlock_status status)
{
    if (lock->valid_until_us == 0)
        rl_be_idle(lock);
    else
        rl_lock_enter(lock, RL_HELD, lock->valid_until_us);
    lock->status = status;
    rl_lock_move(c, lock, RL_DONE);
    c->priv.tick_again = 1;
    if (lock->operation == REDLOCK_OP_ACQUIRE && status != REDLOCK_OK)
        rl_wait_ends(c, lock);
}

REDLOCK_PRIVATE enum redlock_status rl_lock_begin(struct redlock_client *c,
                                                  struct redlock_lock *lock,
                                                  enum redlock_operation operation,
                                                  uint32_t wait_ms)
{
    lock->status = REDLOCK_PENDING;
    lock->operation = (uint8_t)operation;
    if (operation == REDLOCK_OP_ACQUIRE || operation == REDLOCK_OP_RELEASE)
        lock->granted = lock->refused = lock->failed = 0;
    lock->priv.outcome = REDLOCK_PENDING;
    lock->priv.op.cancelled = 0;
    lock->priv.op.waits = wait_ms > 0;
    lock->priv.until_us = rl_now(c) + wait_ms * RL_MS_US;
    rl_lock_move(c, lock, RL_TURN);
    return REDLOCK_PENDING;
}

REDLOCK_PRIVATE void rl_lock_detach(struct redlock_client *c, struct redlock_lock *lock)
{
    rl_lock_move(c, lock, RL_NOWHERE);
    rl_be_idle(lock);
}

/* ---- Acquire --------------------------------------------------------------------------------- */

static int rl_quorum_is_ready(const struct redlock_client *c)
{
    return rl_is_quorum(c, c->priv.in[REDLOCK_NODE_READY]);
}

/* Until when a lock in line waits for connections that are under way; 0: it does not. Nodes that
   failed before may hang. `short_us` is 2 * node_timeout_ms, RL_CONNECT_MS at most. R2
   No quorum is ready: for stall_ms; for short_us if all of these nodes failed before.
   A quorum has become ready since the lock stood in line: for short_us more; but not if all of
   these nodes failed before.
   A quorum was ready before: not at all. */
static uint64_t rl_connecting_until(const struct redlock_client *c, const struct redlock_lock *lock)
{
    uint64_t short_us = RL_CONNECT_MS * RL_MS_US, until_us;
    unsigned coming = c->priv.in[REDLOCK_NODE_CONNECTING] | c->priv.in[REDLOCK_NODE_HANDSHAKE];
    unsigned left = coming, fresh = 0;

    for (; left != 0; left &= left - 1)
        fresh += !rl_is_failing(rl_first_node(c, left));
    if (coming == 0)
        return 0;
    rl_not_after(&short_us, 2 * c->priv.settings.node_timeout_ms * RL_MS_US);
    if (!rl_quorum_is_ready(c))
        return lock->priv.in_line_us +
               (fresh > 0 ? c->priv.settings.stall_ms * RL_MS_US : short_us);
    if (fresh == 0 || c->priv.quorum_us <= lock->priv.in_line_us)
        return 0;
    until_us = c->priv.quorum_us + short_us;
    rl_not_after(&until_us, lock->priv.until_us);
    return until_us;
}

/* The lock waits in line for connections, and for room in the queues of a quorum. */
static void rl_stand_in_line(struct redlock_client *c, struct redlock_lock *lock)
{
    lock->priv.in_line_us = c->priv.now_us;
    rl_lock_enter(lock, RL_IN_LINE, c->priv.now_us + c->priv.settings.stall_ms * RL_MS_US);
    rl_not_after(&lock->priv.due_us, lock->priv.until_us);
    rl_lock_move(c, lock, RL_LINE);
}

/* Whether an attempt can begin; connects the nodes for it. So a new client acquires the lock on all
   nodes, and connecting uses up none of the validity. R2, R6 */
static int rl_can_begin(struct redlock_client *c, const struct redlock_lock *lock)
{
    rl_connect(c, c->priv.all, 0);
    /* Connections are under way, and there is time left: more nodes may join. */
    if (!rl_past(c, rl_connecting_until(c, lock)))
        return 0;
    /* No quorum: begin all the same, to fail with the reasons of the nodes. */
    if (!rl_quorum_is_ready(c))
        return 1;
    /* A quorum: begin when it has room for our command. */
    return !c->priv.jammed &&
           rl_is_quorum(c, c->priv.in[REDLOCK_NODE_READY] & ~(unsigned)c->priv.full);
}

/* The lock could not begin a last attempt. The nodes that kept it in line get the error. */
static void rl_leave_line(struct redlock_client *c, struct redlock_lock *lock)
{
    rl_set_late_errors(c, c->priv.full | (c->priv.all & ~(unsigned)c->priv.in[REDLOCK_NODE_READY]));
    rl_lock_finish(c, lock, rl_others_had_it(lock) ? REDLOCK_TIMEOUT : REDLOCK_UNREACHABLE);
}

/* The lock could not begin: it gives up when wait_ms has passed, but waits at least for connections
   that are under way, as with wait_ms 0. R6 */
static void rl_wait_in_line(struct redlock_client *c, struct redlock_lock *lock)
{
    uint64_t until_us = rl_connecting_until(c, lock);

    if (!rl_past(c, until_us))
        rl_lock_set_due(c, lock, until_us);
    else if (rl_past(c, lock->priv.until_us))
        rl_leave_line(c, lock);
    else
        rl_lock_set_due(c, lock, lock->priv.until_us);
}

/* A wall clock from here on (the year 2112) is broken and is not proposed: one such client would
   use up the fencing tokens of a lock for all. R16 */
#define RL_WALL_MAX_US ((uint64_t)1 << 52)

/* A new attempt: the wall clock is its proposal, unless that date cannot be. */
static void rl_propose(const struct redlock_io *io, struct redlock_lock *lock)
{
    uint64_t wall_us = rl_use_fencing(lock) && io->wall_us != NULL ? io->wall_us(io->context) : 0;

    lock->fencing_token = wall_us < RL_WALL_MAX_US ? wall_us : 0;
}

static int rl_is_owed_no_reply(const struct redlock_lock *lock)
{
    unsigned i, due = 0;

    for (i = 0; i < REDLOCK_NODES_MAX; i++)
        due += lock->priv.attempt.replies_due[i];
    return due == 0;
}

/* Draws the token and begins an attempt. The clock was read before anything is queued: this is T1.
   R1 */
static void rl_begin_attempt(struct redlock_client *c, struct redlock_lock *lock)
{
    if ((!lock->token_is_label && rl_random(c, lock->token, sizeof lock->token) != 0) ||
        (rl_may_queue(c, lock) && rl_queue_begin(c, lock) != 0)) {
        rl_lock_finish(c, lock, REDLOCK_NO_ENTROPY);
        return;
    }
    lock->token[sizeof lock->token - 1] |= 1; /* so that its generation is not 0 */
    if (lock->priv.op.attempts < UINT8_MAX)
        lock->priv.op.attempts++;
    lock->priv.outcome = REDLOCK_PENDING;
    RL_ASSERT(rl_is_owed_no_reply(lock)); /* each way here has called rl_forget */
    memset(&lock->priv.attempt, 0, sizeof lock->priv.attempt);
    memset(lock->generation, 0, sizeof lock->generation);
    lock->members = 0;
    rl_propose(c->priv.io, lock);
    rl_begin_round(c, lock);
    rl_await_votes(c, lock, RL_ASKING);
    rl_lock_move(c, lock, RL_TURN);
}

/* A quorum has granted or confirmed the lock: its validity, counted from T1 and never shortened,
   and its members. Returns 0 if the new validity is over already. R3, R8 */
static int rl_prolong(struct redlock_client *c, struct redlock_lock *lock)
{
    uint64_t until_us =
        lock->priv.started_us + lock->ttl_ms * RL_MS_US - rl_drift_us(c, lock->ttl_ms);

    RL_TRACE("confirmed by", lock, lock->granted);
    if (rl_past(c, until_us))
        return 0;
    if (lock->valid_until_us < until_us)
        lock->valid_until_us = until_us;
    rl_set(&lock->members, lock->granted);
    rl_set(&lock->priv.attempt.proved, c->priv.all & ~(unsigned)lock->priv.round.fresh);
    return 1;
}

/* A quorum has granted the lock, and agrees on its fencing token if it has one. R3 */
static void rl_hold(struct redlock_client *c, struct redlock_lock *lock)
{
    if (!rl_prolong(c, lock)) {
        rl_roll_back(c, lock, REDLOCK_TOO_LATE);
        return;
    }
    lock->holder_left_ms = 0;
    lock->priv.unanswered = 0;
    lock->extended = 0;
    rl_hold_ask_rest(c, lock);
    rl_set(&c->priv.wanted, lock->priv.unsent);
    rl_lock_finish(c, lock, REDLOCK_OK);
}

/* Whether it is known why an attempt fails: a quorum has answered, or no other node will. R6 */
static int rl_knows_why(const struct redlock_client *c, const struct redlock_lock *lock)
{
    return rl_is_quorum(c, (unsigned)(lock->granted | lock->refused)) || rl_outstanding(lock) == 0;
}

/* Why an attempt failed. CONTENDED: several clients may have asked at once, as no holder can have a
   quorum, or as some node has granted it. When the quick retries are used up, HELD, although a node
   has granted it: the holder may have a bare quorum. With an even number of nodes a holder may have
   a quorum together with a node that has not replied yet. */
static enum redlock_status rl_outcome(const struct redlock_client *c,
                                      const struct redlock_lock *lock)
{
    if (!rl_is_quorum(c, (unsigned)(lock->granted | lock->refused)))
        return rl_is_quorum(c, c->priv.all & ~(unsigned)lock->priv.round.denied)
                   ? REDLOCK_UNREACHABLE
                   : REDLOCK_DENIED;
    if (!rl_is_quorum(c, lock->refused | rl_outstanding(lock)))
        return REDLOCK_CONTENDED;
    return lock->granted != 0 && rl_may_retry_quickly(lock) ? REDLOCK_CONTENDED : REDLOCK_HELD;
}

/* ---- Fencing tokens -------------------------------------------------------------------------- */

/* The node counts this grant as the `count`th: it agrees if no node has a larger counter. */
static void rl_count_agreement(struct redlock_lock *lock, unsigned bit, uint64_t count)
{
    if (!rl_use_fencing(lock))
        return;
    if (count > lock->fencing_token) {
        lock->fencing_token = count;
        lock->priv.round.agreed = 0;
    }
    if (count == lock->fencing_token)
        rl_set(&lock->priv.round.agreed, bit);
}

/* Proposes the largest counter to all nodes. R16 */
static void rl_begin_agreement(struct redlock_client *c, struct redlock_lock *lock)
{
    if (++lock->priv.attempt.confirms > RL_CONFIRMS_MAX) {
        rl_roll_back(c, lock, rl_outcome(c, lock));
        return;
    }
    rl_next_round(c, lock);
    rl_set(&lock->members, lock->granted); /* they count if it is held */
    lock->granted = lock->refused = lock->failed = 0;
    lock->priv.round.agreed = 0;
    lock->priv.unsent = c->priv.all;
    rl_await_votes(c, lock, RL_AGREEING);
    rl_ask_nodes(c, lock); /* here, because a second round of agreement is no change of the state */
}

/* ---- Releases that are repeated -------------------------------------------------------------- */

/* The pauses between releases that a node is owed. R4 */
static const struct redlock_settings rl_repeats = {
    .retry_delay_ms = 100,
    .retry_growth_pct = 50,
    .retry_delay_max_ms = 2000,
};

/* Whether a node that is owed this release may reply soon: it is ready, or its last connection did
   not fail. */
static int rl_is_awaited(const struct redlock_client *c, const struct redlock_owed *owed)
{
    unsigned nodes = owed->unsent;

    for (; nodes != 0; nodes &= nodes - 1) {
        const struct redlock_node *node = rl_first_node(c, nodes);
        if (node->state == REDLOCK_NODE_READY || !rl_is_failing(node))
            return 1;
    }
    return 0;
}

/* A free place, or else that of a release which waits for failed nodes only: these may not be back
   before the key has expired. NULL: there is no place. */
static struct redlock_owed *rl_find_owed(struct redlock_client *c)
{
    struct redlock_owed *found = NULL;
    int i;

    for (i = 0; i < REDLOCK_OWED_MAX; i++) {
        struct redlock_owed *owed = &c->priv.owed[i];

        if (owed->unsent == 0)
            return owed;
        if (found == NULL && !rl_is_awaited(c, owed))
            found = owed;
    }
    return found;
}

/* The attempt or the operation ends, but some nodes may still have the key: those that could not be
   sent the release in time, those where it failed for a time, and those that have not replied. They
   are sent it again until the key has expired. The client keeps the command, because the lock is the
   caller's again. It keeps none with a token that the caller chose: such a token may be in use
   again. R4 */
REDLOCK_PRIVATE void rl_owe(struct redlock_client *c, struct redlock_lock *lock)
{
    redlock_mask unanswered = (redlock_mask)(lock->priv.unanswered & ~lock->refused);
    redlock_mask unsent = lock->priv.unsent | lock->priv.attempt.release_failed | unanswered;
    struct redlock_owed *owed = REDLOCK_OWED_MAX > 0 ? rl_find_owed(c) : NULL;
    unsigned i;

    if (owed == NULL || unsent == 0 || lock->token_is_label)
        return;
    for (i = 0; i < c->priv.count; i++) /* of a release that gives up its place */
        if (owed->unanswered >> i & 1)
            rl_disown_replies(c, owed, i, 1, NULL);
    rl_keep_release(owed, lock, rl_releasing_command(c, lock));
    c->priv.owes = 1;
    owed->unsent = unsent;
    owed->unanswered = unanswered;
    owed->times = 0;
    /* Without a random number, which is a system call: mostly the replies are only late. */
    owed->due_us = c->priv.now_us + rl_repeats.retry_delay_ms * RL_MS_US;
    owed->until_us = c->priv.now_us + lock->priv.attempt.longest_ttl_ms * RL_MS_US;
    for (i = 0; i < c->priv.count; i++)
        if (unanswered >> i & 1)
            rl_disown_replies(c, lock, i, UINT8_MAX, owed);
    rl_clear(&lock->priv.unanswered, unanswered);
}

/* A node has replied to a repeated release. Where that decides nothing the script follows at once. R4 */
static void rl_owed_replied(struct redlock_client *c, struct redlock_owed *owed, unsigned bit,
                            const struct rl_reply *reply)
{
    rl_clear(&owed->unanswered, bit);
    if (reply->vote == RL_UNDECIDED)
        owed->due_us = c->priv.now_us;
    if (reply->vote == RL_YES || reply->vote == RL_NO || reply->vote == RL_DENIED)
        rl_clear(&owed->unsent, bit);
    if (reply->vote == RL_YES && owed->times > 0)
        rl_notify_kept(c, owed, bit);
}

/* A release is due: it is sent again, or its keys have expired. R4 */
static void rl_repeat_release(struct redlock_client *c, struct redlock_owed *owed)
{
    unsigned nodes = owed->unsent & ~(unsigned)owed->unanswered;

    if (rl_past(c, owed->until_us)) {
        owed->unsent = 0;
        return;
    }
    if (owed->times < UINT8_MAX)
        owed->times++;
    owed->due_us = c->priv.now_us + rl_backoff_us(c, &rl_repeats, owed->times);
    rl_connect(c, nodes, 0);
    rl_set(&owed->unanswered,
           rl_send(c, owed, nodes & rl_ready_for_releases(c), owed->command, RL_OWED));
}

REDLOCK_PRIVATE uint64_t rl_owed_tick(struct redlock_client *c)
{
    struct redlock_owed *owed = c->priv.owed;
    uint64_t next_us = REDLOCK_NEVER;

    if (!c->priv.owes)
        return next_us;
    c->priv.owes = 0;
    for (; owed < c->priv.owed + REDLOCK_OWED_MAX; owed++) {
        if (owed->unsent == 0)
            continue;
        c->priv.owes = 1;
        if (rl_past(c, owed->due_us))
            rl_repeat_release(c, owed);
        if ((owed->unsent & ~owed->unanswered) != 0)
            rl_not_after(&next_us, owed->due_us);
    }
    return next_us;
}

/* ---- Roll back, and retry -------------------------------------------------------------------- */

/* Whether nodes that have refused the lock need not be sent the release. They do not have our key,
   unless the caller chose the token, which may be older than the attempt. Nobody needs their reply:
   it names the holder, and asks for a notification. R4 */
static int rl_needs_no_release(const struct redlock_lock *lock)
{
    return lock->priv.state == RL_ASKING && !lock->priv.op.waits && !rl_wants_holder(lock) &&
           !lock->token_is_label;
}

/* The keys on some nodes would keep other clients out. There are no members any more, or a later
   release would report that the lock was held until then. R4 */
REDLOCK_PRIVATE void rl_roll_back(struct redlock_client *c, struct redlock_lock *lock,
                                  enum redlock_status outcome)
{
    rl_forget(c, lock);
    lock->valid_until_us = 0;
    lock->members = lock->priv.attempt.release_failed = 0;
    if (lock->operation == REDLOCK_OP_ACQUIRE)
        rl_waiter_add(c, lock);
    lock->priv.unsent = lock->priv.attempt.asked;
    lock->priv.outcome = (int8_t)outcome;
    if (outcome == REDLOCK_HELD && !rl_may_queue(c, lock))
        lock->priv.op.notified = 0; /* its release notifies again */
    if (rl_may_queue(c, lock))
        rl_queue_failed(c, lock);
    if (lock->priv.unsent == lock->priv.attempt.asked)
        lock->holder_left_ms = 0;
    if (rl_needs_no_release(lock))
        rl_clear(&lock->priv.unsent, lock->refused);
    rl_lock_enter(lock, RL_ROLLING_BACK, rl_release_until(c, lock));
}

/* Nodes that a rollback must still be sent to, and waits for: not those that are down. */
static unsigned rl_unsent_up(const struct redlock_client *c, const struct redlock_lock *lock)
{
    return lock->priv.unsent & ~(unsigned)c->priv.in[REDLOCK_NODE_DOWN];
}

/* Whether replies to a rollback are waited for, when others had the lock. R4, R7 */
static int rl_awaits_rollback(const struct redlock_client *c, const struct redlock_lock *lock)
{
    unsigned due = rl_unsent_up(c, lock) | lock->priv.unanswered;
    unsigned replied = lock->priv.attempt.asked & ~(lock->priv.unsent | lock->priv.unanswered);

    if (!rl_others_had_it(lock) || rl_past(c, lock->priv.due_us))
        return 0;
    /* These nodes have our key, which must go. */
    if (due & lock->granted)
        return 1;
    /* The others name the holder. They also tell where its key is gone already, as no notification
       will. A quorum that still has it is enough: these nodes notify. */
    return (lock->priv.op.waits || rl_wants_holder(lock)) && due != 0 &&
           !rl_is_quorum(c, replied & ~(unsigned)lock->priv.attempt.free);
}

/* Releases the lock on all nodes that may have it. Returns whether that is done: each node was sent
   the release, or it is left to rl_owe. When no reply is waited for any more, nodes without a free
   request are sent the release without asking for its reply: such releases share a request. R4 */
static int rl_roll_back_step(struct redlock_client *c, struct redlock_lock *lock)
{
    unsigned ready, same, command;

    if (rl_may_wait(lock))
        rl_track(c, lock->priv.unsent & rl_ready_for_releases(c));
    rl_ask_nodes(c, lock);
    if (rl_awaits_rollback(c, lock))
        return 0;
    ready = lock->priv.unsent & rl_ready_for_releases(c);
    while (ready != 0) {
        command = rl_next_command(c, lock, &ready, &same);
        rl_clear(&lock->priv.unsent, rl_send(c, lock, same, command, RL_NO_REPLY));
    }
    if (rl_unsent_up(c, lock) != 0 && lock->priv.outcome != REDLOCK_LOST &&
        !rl_past(c, lock->priv.due_us))
        return 0; /* a loss is reported at once */
    rl_owe(c, lock);
    rl_forget(c, lock);
    lock->priv.unsent = 0;
    return 1;
}

/* All nodes were sent the release: ends the operation, or pauses before the next attempt. R6 */
static void rl_retry(struct redlock_client *c, struct redlock_lock *lock)
{
    enum redlock_status outcome = (enum redlock_status)lock->priv.outcome;
    int others = rl_others_had_it(lock);
    int again = others || outcome == REDLOCK_UNREACHABLE || outcome == REDLOCK_TOO_LATE;

    if (outcome != REDLOCK_UNCONFIRMED && outcome != REDLOCK_LOST && outcome != REDLOCK_CANCELLED)
        lock->priv.attempt.asked = 0; /* with these it may be released again */
    if (outcome == REDLOCK_LOST)
        rl_notify_own(c, lock);
    if (!again || lock->token_is_label || lock->priv.op.attempts > c->priv.settings.retries) {
        rl_lock_finish(c, lock, outcome);
        return;
    }
    if (rl_past(c, lock->priv.until_us)) {
        rl_lock_finish(c, lock, others ? REDLOCK_TIMEOUT : outcome);
        return;
    }
    if (!rl_wait_begins(c, lock)) /* no slow retry without a wait */
        rl_lock_finish(c, lock, outcome);
}

/* ---- Release --------------------------------------------------------------------------------- */

/* Only nodes that may have the key are asked. R11 */
static void rl_begin_release(struct redlock_client *c, struct redlock_lock *lock)
{
    rl_begin_round(c, lock);
    lock->priv.unsent = lock->priv.attempt.asked & c->priv.all;
    rl_lock_enter(lock, RL_RELEASING,
                  c->priv.now_us); /* rl_release_step sets when it is due next */
}

/* The outcome of a release; REDLOCK_PENDING while replies in time may still decide it. Nodes that
   were never asked for the lock do not have the key. */
static enum redlock_status rl_release_outcome(const struct redlock_client *c,
                                              const struct redlock_lock *lock)
{
    int open =
        (lock->priv.unsent | lock->priv.unanswered | lock->priv.attempt.release_failed) != 0 &&
        !rl_past(c, lock->priv.until_us);
    unsigned unasked = c->priv.all & ~(unsigned)lock->priv.attempt.asked;

    if (rl_is_quorum(c, lock->granted))
        return REDLOCK_OK;
    /* Fewer than a quorum are known not to have the key. */
    if (!rl_is_quorum(c, lock->granted | lock->refused | unasked))
        return open ? REDLOCK_PENDING : REDLOCK_UNCONFIRMED;
    /* So many members did not have the key that the lock was held no more. */
    if (!rl_is_quorum(c, lock->members & ~(unsigned)lock->refused))
        return lock->priv.round.taken ? REDLOCK_LOST : REDLOCK_EXPIRED;
    /* It was held, and a quorum does not have the key now. */
    return open ? REDLOCK_PENDING : REDLOCK_OK;
}

/* Sends the release, and from time to time once more where it failed. Returns whether the outcome
   is decided. R11 */
static int rl_release_step(struct redlock_client *c, struct redlock_lock *lock)
{
    if (rl_past(c, lock->priv.due_us)) {
        rl_set(&lock->priv.unsent, lock->priv.attempt.release_failed);
        lock->priv.attempt.release_failed = 0;
        lock->priv.due_us = rl_release_until(c, lock);
        rl_not_after(&lock->priv.due_us, lock->priv.until_us);
    }
    rl_ask_nodes(c, lock);
    lock->priv.outcome =
        (int8_t)(lock->priv.op.cancelled ? REDLOCK_CANCELLED : rl_release_outcome(c, lock));
    if (lock->priv.outcome == REDLOCK_UNCONFIRMED && lock->priv.op.waits)
        rl_time_out(c, lock, rl_outstanding(lock));
    return lock->priv.outcome != REDLOCK_PENDING;
}

/* ---- The time of a round --------------------------------------------------------------------- */

/* Sets the error of nodes that were not connected, or did not reply, in time. */
static void rl_set_late_errors(struct redlock_client *c, unsigned nodes)
{
    for (; !REDLOCK_MINIMAL && nodes != 0; nodes &= nodes - 1) {
        struct redlock_node *node = rl_first_node(c, nodes);
        rl_set_error(node, rl_is_up(node) ? RL_NO_REPLY_IN_TIME : RL_NO_CONNECTION_IN_TIME);
    }
}

/* Votes of these nodes did not come in time: they count as failed, and their nodes get the
   error. */
static void rl_time_out(struct redlock_client *c, struct redlock_lock *lock, unsigned nodes)
{
    rl_set_late_errors(c, nodes);
    rl_set(&lock->failed, nodes);
}

/* Fails the votes of the nodes whose time is up. Returns when the time of the next node is up.
   R15 */
static uint64_t rl_time_out_votes(struct redlock_client *c, struct redlock_lock *lock)
{
    unsigned nodes = rl_outstanding(lock), late = 0;
    uint64_t longest_us = rl_vote_max_us(lock), next_us = REDLOCK_NEVER;

    for (; nodes != 0; nodes &= nodes - 1) {
        const struct redlock_node *node = rl_first_node(c, nodes);
        uint64_t due_us = lock->priv.asked_us + node->priv.timeout_us;

        rl_not_after(&due_us, lock->priv.asked_us + longest_us);
        if (lock->priv.state == RL_EXTENDING && lock->priv.asked_us < lock->valid_until_us)
            rl_not_after(&due_us, lock->valid_until_us);
        if (rl_past(c, due_us))
            late |= rl_lowest(nodes);
        else
            rl_not_after(&next_us, due_us);
    }
    rl_time_out(c, lock, late);
    return next_us;
}

/* Until when replies to a release are waited for: not for each vote, but for as long as the
   decision of a quorum may take. R15 */
static uint64_t rl_release_until(const struct redlock_client *c, const struct redlock_lock *lock)
{
    uint64_t until_us = c->priv.now_us + rl_vote_max_us(lock);

    rl_not_after(&until_us, c->priv.now_us + rl_quorum_timeout_us(c));
    return until_us;
}

REDLOCK_PRIVATE void rl_await_votes(struct redlock_client *c, struct redlock_lock *lock,
                                    enum rl_state state)
{
    lock->priv.asked_us = c->priv.now_us;
    rl_lock_enter(lock, state, REDLOCK_NEVER);
    lock->priv.due_us = rl_time_out_votes(c, lock);
}

/* Whether a round that has not succeeded has failed: too few of `voters` have granted the lock, or
   may still do so. First it gives up the nodes whose time is up: others that are farther away have
   more time. R15 */
static int rl_has_failed(struct redlock_client *c, struct redlock_lock *lock, unsigned voters)
{
    unsigned open;

    if (rl_past(c, lock->priv.due_us))
        lock->priv.due_us = rl_time_out_votes(c, lock);
    open = rl_outstanding(lock) & ~(unsigned)lock->refused;
    return !rl_is_quorum(c, voters & (lock->granted | open));
}

/* ---- A round: a command to all nodes, and their votes ---------------------------------------- */

REDLOCK_PRIVATE void rl_forget(struct redlock_client *c, struct redlock_lock *lock)
{
    unsigned i;

    for (i = 0; i < c->priv.count; i++)
        if (lock->priv.attempt.replies_due[i] > 0)
            rl_disown_replies(c, lock, i, lock->priv.attempt.replies_due[i], NULL);
    memset(lock->priv.attempt.replies_due, 0, sizeof lock->priv.attempt.replies_due);
    lock->priv.unanswered = 0;
}

/* Replies that are still due are no votes from now on, as they name another round. When the numbers
   of rounds begin anew, these replies are dropped: else one might count. */
static void rl_next_round(struct redlock_client *c, struct redlock_lock *lock)
{
    lock->priv.unanswered = 0;
    if (++lock->priv.attempt.round > RL_ROUNDS) {
        rl_forget(c, lock);
        lock->priv.attempt.round = 1;
    }
}

REDLOCK_PRIVATE void rl_begin_round(struct redlock_client *c, struct redlock_lock *lock)
{
    rl_next_round(c, lock);
    lock->priv.started_us = c->priv.now_us;
    lock->priv.unsent = c->priv.all;
    memset(&lock->priv.round, 0, sizeof lock->priv.round);
    lock->granted = lock->refused = lock->failed = 0;
}

/* Whether the nodes are to keep the place of a waiter. R19 */
static int rl_may_queue(const struct redlock_client *c, const struct redlock_lock *lock)
{
    return rl_is_fair(c, lock) && rl_may_wait(lock);
}

/* Whether the node keeps it. One that cannot notify would keep waiters waiting. R19 */
static int rl_has_gate(const struct redlock_client *c, const struct redlock_lock *lock,
                       const struct redlock_node *node)
{
    return rl_may_queue(c, lock) && rl_notifies(node) && !node->priv.no_queue;
}

static unsigned rl_acquiring_command(const struct redlock_lock *lock)
{
    if (rl_use_fencing(lock))
        return RL_FENCE;
    return rl_extra_keys(lock) > 0 ? RL_TAKE : RL_SET;
}

static unsigned rl_releasing_command(const struct redlock_client *c,
                                     const struct redlock_lock *lock)
{
    return rl_is_fair(c, lock) ? RL_LEAVE : RL_DELETE;
}

/* How the lock is released on a node: by its cheapest release, if that serves the lock. A native
   one compares the whole value, so the key must be in the generation of the token. It serves one
   key, tells no waiters, and does not say why it has not deleted. R9, R11, R19 */
static unsigned rl_release_for(const struct redlock_client *c, const struct redlock_lock *lock,
                               const struct redlock_node *node)
{
    uint32_t known = lock->generation[node->priv.index];

    if (REDLOCK_MINIMAL || node->priv.only_script || (lock->priv.round.by_script & node->priv.bit))
        return rl_releasing_command(c, lock);
    if (rl_extra_keys(lock) > 0 || rl_is_fair(c, lock))
        return rl_releasing_command(c, lock);
    return known == 0 || known == rl_token_generation(lock) ? node->priv.release : RL_DELETE;
}

/* The command that a lock sends to a node now. A rollback is by the script, which names the holder.
   R11 */
static unsigned rl_command_for(const struct redlock_client *c, const struct redlock_lock *lock,
                               const struct redlock_node *node)
{
    switch (lock->priv.state) {
    case RL_ASKING:
        return rl_has_gate(c, lock, node) ? RL_GATE : rl_acquiring_command(lock);
    case RL_AGREEING:
        return RL_CONFIRM;
    case RL_HELD:
    case RL_RENEWING:
    case RL_EXTENDING:
        if (lock->priv.state != RL_EXTENDING && !(lock->priv.attempt.asked & node->priv.bit))
            return rl_acquiring_command(lock); /* R2 */
        return rl_hold_repairs(c, lock, node) ? RL_REPAIR : RL_EXTEND;
    case RL_ROLLING_BACK:
        if (rl_has_gate(c, lock, node) && rl_others_had_it(lock))
            return RL_BACK;
        return rl_releasing_command(c, lock);
    default:
        return rl_release_for(c, lock, node);
    }
}

REDLOCK_PRIVATE redlock_mask rl_send_of_lock(struct redlock_client *c, struct redlock_lock *lock,
                                             unsigned nodes, unsigned command)
{
    unsigned round = rl_is_held(lock) ? RL_NO_ROUND : lock->priv.attempt.round;
    redlock_mask sent = rl_send(c, lock, nodes, command, round);
    uint8_t *due = lock->priv.attempt.replies_due;
    unsigned i;

    for (i = 0; i < REDLOCK_NODES_MAX; i++)
        due[i] = (uint8_t)(due[i] + ((unsigned)sent >> i & 1U));
    return sent;
}

/* A generation that no other command has, and that is not 0. Returns 0 without entropy. R9 */
static int rl_draw_generation(struct redlock_client *c, uint8_t generation[4])
{
    if (rl_random(c, generation, 4) != 0)
        return 0;
    generation[3] |= 1;
    return 1;
}

/* Sends a command to ready nodes. After the decision their replies are not waited for, but noted
   when they come. R2 */
static void rl_send_command(struct redlock_client *c, struct redlock_lock *lock, unsigned nodes,
                            unsigned command)
{
    redlock_mask sent;

    if (command == RL_REPAIR && !rl_draw_generation(c, lock->priv.attempt.repair)) {
        rl_clear(&lock->priv.unsent, nodes); /* the next round asks again */
        return;
    }
    sent = rl_send_of_lock(c, lock, nodes, command);
    rl_clear(&lock->priv.unsent, sent);
    if (lock->priv.state != RL_ROLLING_BACK) /* the caller sees which nodes failed before */
        rl_clear(&lock->failed, sent);
    if (!rl_is_held(lock))
        rl_set(&lock->priv.unanswered, sent);
    if (REDLOCK_FAIR && command == RL_GATE && !lock->priv.fair.probes)
        rl_set(&lock->priv.fair.entered, sent);
    if (rl_is(command, RL_CREATES))
        rl_set(&lock->priv.attempt.asked, sent);
    if (rl_is(command, RL_WRITES) && lock->priv.attempt.longest_ttl_ms < lock->ttl_ms)
        lock->priv.attempt.longest_ttl_ms = lock->ttl_ms;
}

/* A node that is DOWN counts as failed. For an attempt so does one that is connected again after a
   failure: it may be hung, and accept connections. The command is sent when the node is ready. */
static void rl_mark_away(struct redlock_lock *lock, const struct redlock_node *node, unsigned bit)
{
    unsigned state = lock->priv.state;

    if (node->state != REDLOCK_NODE_DOWN && !(state == RL_ASKING && rl_is_failing(node)))
        return;
    if (state != RL_ROLLING_BACK) /* there the caller sees the votes of the attempt */
        rl_set(&lock->failed, bit);
    if (node->priv.denied)
        rl_set(&lock->priv.round.denied, bit);
}

REDLOCK_PRIVATE void rl_connect(struct redlock_client *c, unsigned nodes, uint64_t too_late_us)
{
    nodes &= c->priv.in[REDLOCK_NODE_IDLE] | c->priv.in[REDLOCK_NODE_DOWN];
    for (; nodes != 0; nodes &= nodes - 1)
        rl_connect_if_due(c, rl_first_node(c, nodes), too_late_us);
}

/* Nodes that a release can be sent to. It may wait behind a handshake that is queued: there it
   does no harm, whatever the handshake leads to, and a server that hangs runs it when it goes on.
   R4, R12 */
static unsigned rl_ready_for_releases(const struct redlock_client *c)
{
    unsigned nodes = c->priv.in[REDLOCK_NODE_READY], queued = c->priv.in[REDLOCK_NODE_HANDSHAKE];

    for (; queued != 0; queued &= queued - 1)
        if (rl_first_node(c, queued)->priv.handshake == RL_READY)
            nodes |= rl_lowest(queued);
    return nodes;
}

/* Nodes that the present command of a lock can be sent to. */
static unsigned rl_ready_for_command(const struct redlock_client *c,
                                     const struct redlock_lock *lock)
{
    return lock->priv.state == RL_ROLLING_BACK || lock->priv.state == RL_RELEASING
               ? rl_ready_for_releases(c)
               : c->priv.in[REDLOCK_NODE_READY];
}

/* The command for the first of these nodes, and the nodes that need the same one, which is sent to
   all of them at once: they leave `nodes`. */
static unsigned rl_next_command(const struct redlock_client *c, const struct redlock_lock *lock,
                                unsigned *nodes, unsigned *same)
{
    unsigned command = rl_command_for(c, lock, rl_first_node(c, *nodes)), left;

    *same = rl_lowest(*nodes);
    for (left = *nodes & ~*same; left != 0; left &= left - 1)
        if (rl_command_for(c, lock, rl_first_node(c, left)) == command)
            *same |= rl_lowest(left);
    *nodes &= ~*same;
    return command;
}

/* Sends the present command of a lock where it is still to be sent and can be. R2 */
REDLOCK_PRIVATE void rl_ask_nodes(struct redlock_client *c, struct redlock_lock *lock)
{
    unsigned nodes = lock->priv.unsent, ready, away, same, command;

    rl_connect(c, nodes, lock->priv.state == RL_EXTENDING ? lock->valid_until_us : 0);
    ready = nodes & rl_ready_for_command(c, lock);
    away = nodes & ~ready;
    ready &= ~(unsigned)c->priv.full;
    for (; away != 0; away &= away - 1)
        rl_mark_away(lock, rl_first_node(c, away), rl_lowest(away));
    while (ready != 0 && !c->priv.jammed) {
        command = rl_next_command(c, lock, &ready, &same);
        rl_send_command(c, lock, same, command);
    }
    /* A connection may have broken now, and a vote of this round be gone. Other locks only note it:
       none is stepped here. */
    rl_tell_broken(c);
}

/* ---- A reply --------------------------------------------------------------------------------- */

/* A node has replied which other client has the key. The last one that was heard is the holder. */
static void rl_note_holder(struct redlock_lock *lock, const struct resp_item *item, const char *at)
{
    const char *token;
    size_t size;

    lock->priv.round.taken = 1;
    if (REDLOCK_MINIMAL)
        return;
    token = rl_holder_of(item, at, &lock->holder_left_ms);
    if (!rl_wants_holder(lock))
        return;
    size = (size_t)(item->text + item->text_used - token);
    if (size >= lock->holder_size)
        size = lock->holder_size - 1U;
    memcpy(lock->holder, token, size);
    lock->holder[size] = '\0';
}

static void rl_note_free(struct redlock_lock *lock, unsigned nodes)
{
    rl_set(&lock->priv.attempt.free, nodes);
}

/* Counts a reply to the present command. After the decision this is no vote: a held lock notes for
   its caller which nodes have granted it. The replies to a rollback only name the holder, and say
   where the key is gone. */
static void rl_count_vote(const struct redlock_client *c, struct redlock_lock *lock,
                          const struct redlock_node *node, const struct rl_reply *reply)
{
    const struct resp_item *item = &node->priv.reader.item;
    unsigned bit = node->priv.bit, state = lock->priv.state, vote = reply->vote;
    const char *holder = item->text;

    /* Our first release may have deleted the key, and another client may have it by now. R11 */
    if (state == RL_RELEASING && vote == RL_NO && (lock->priv.attempt.release_again & bit)) {
        rl_set(&lock->granted, bit);
        return;
    }
    if (item->kind == RESP_STRING && REDLOCK_FAIR && reply->command == RL_GATE)
        holder = rl_queue_refused(lock, node);
    if (item->kind == RESP_STRING && holder != NULL)
        rl_note_holder(lock, item, holder);
    if (vote == RL_LATER || vote == RL_DENIED) {
        rl_set(&lock->failed, bit);
        if (vote == RL_DENIED)
            rl_set(&lock->priv.round.denied, bit);
        else if (rl_is(reply->command, RL_RELEASES))
            rl_set(&lock->priv.attempt.release_failed, bit);
    } else if (state == RL_ROLLING_BACK) {
        if (item->kind == RESP_INTEGER)
            rl_note_free(lock, bit);
    } else if (vote == RL_NO) {
        rl_count_refusal(lock, bit);
    } else if (vote != RL_UNPROVED ||
               (rl_is_held(lock) && rl_is_quorum(c, lock->members))) { /* else it explains a loss */
        rl_clear(&lock->refused, bit);
        rl_set(&lock->granted, bit);
        if (state == RL_ASKING || state == RL_AGREEING)
            rl_count_agreement(lock, bit, (uint64_t)item->integer);
    }
}

/* The vote will not come. The command is sent a second time, unless it acquires. R1. A release
   whose connection breaks again counts as one that failed for a time. R4 */
static void rl_miss_vote(const struct redlock_node *node, struct redlock_lock *lock)
{
    unsigned bit = node->priv.bit, state = lock->priv.state;

    if (state != RL_ASKING && node->priv.reconnect && !(lock->priv.round.resent & bit)) {
        rl_set(&lock->priv.unsent, bit);
    } else {
        rl_set(&lock->failed, bit);
        if (state == RL_RELEASING || state == RL_ROLLING_BACK)
            rl_set(&lock->priv.attempt.release_failed, bit);
    }
    if (node->priv.reconnect)
        rl_set(&lock->priv.round.resent, bit);
    if (state == RL_RELEASING && lock->priv.attempt.released)
        rl_set(&lock->priv.attempt.release_again, bit);
}

/* Takes a reply: a notification, the answer to a repeated release, a vote in the present round, or
   news of a lock that is decided. Inline: there is one call, and it runs for each reply. */
static inline void rl_replied(struct redlock_client *c, struct redlock_node *node,
                              struct rl_reply *reply)
{
    const struct resp_item *item = &node->priv.reader.item;
    struct redlock_lock *lock = (struct redlock_lock *)reply->owner; /* unless it is OWED */
    unsigned bit = node->priv.bit;
    int counts; /* whether it is a vote in the present round */

    if (!REDLOCK_MINIMAL && reply->command == RL_INVALIDATION) {
        rl_notify(c, bit, item->kind == RESP_NIL ? NULL : item->text, item->size, item->text_used);
        return;
    }
    if (REDLOCK_OWED_MAX > 0 && reply->round == RL_OWED) {
        rl_owed_replied(c, (struct redlock_owed *)reply->owner, bit, reply);
        return;
    }
    RL_TRACE("vote", lock, reply->vote);
    lock->priv.attempt.replies_due[node->priv.index]--;
    /* What the node has told before is older than its reply; Redis 6.0 even tells a client what its
       own script did. R19 */
    if (REDLOCK_FAIR && rl_is(reply->command, RL_QUEUES))
        rl_clear(&lock->priv.fair.told, bit);
    counts = reply->round == lock->priv.attempt.round && !rl_is_held(lock);
    if (reply->round == lock->priv.attempt.round)
        rl_clear(&lock->priv.unanswered, bit);
    if (!counts && (reply->vote == RL_UNANSWERED || reply->vote == RL_UNDECIDED))
        return; /* decided without it */
    if (reply->vote == RL_UNANSWERED) {
        rl_miss_vote(node, lock);
    } else if (reply->vote == RL_UNDECIDED) {
        if (lock->priv.state == RL_ASKING) /* the other command needs a round trip more. R15 */
            lock->priv.asked_us = rl_now(c);
        rl_set(&lock->priv.round.by_script, bit);
        rl_set(&lock->priv.unsent, bit);
    } else {
        rl_clear(&lock->priv.attempt.release_failed, bit);
        if (rl_is(reply->command, RL_WRITES))
            rl_hold_learn(c, lock, node, reply);
        if (counts || rl_is_held(lock))
            rl_count_vote(c, lock, node, reply);
        if (!counts)
            rl_hold_count_late_grant(c, lock, bit, reply);
    }
    rl_lock_schedule(c, lock);
}

/* Whether the lock gathers votes that count only while their connection lasts. */
static int rl_in_round(const struct redlock_lock *lock)
{
    return lock->priv.state == RL_ASKING || lock->priv.state == RL_AGREEING ||
           lock->priv.state == RL_EXTENDING;
}

/* The connection to a node broke. A server that restarts empty has lost what it granted, and may
   be connected again under another of its addresses: so its votes in rounds that are not decided
   count no more. R3, R13. A lock that must still send to the node is stepped, and sees that it is
   away. */
static void rl_void_votes(struct redlock_client *c, const struct redlock_node *node)
{
    unsigned list, bit = node->priv.bit;
    struct redlock_lock *lock, *next;

    rl_clear(&c->priv.lost_untold, bit);
    for (list = RL_TURN; list <= RL_WAIT; list++)
        for (lock = rl_first(c, list); lock != NULL; lock = next) {
            next = lock->priv.next;
            if ((lock->granted & bit) && rl_in_round(lock)) {
                rl_clear(&lock->granted, bit);
                rl_clear(&lock->priv.round.agreed, bit);
                rl_miss_vote(node, lock);
            } else if (!(lock->priv.unsent & bit)) {
                continue;
            }
            rl_lock_schedule(c, lock);
        }
}

REDLOCK_PRIVATE void rl_take_replies(struct redlock_client *c, struct redlock_node *node,
                                     unsigned reads)
{
    struct rl_input in = {NULL, NULL, reads};
    struct rl_reply reply;

    while (rl_has_more(node, &in))
        if (rl_node_reply(c, node, &in, &reply))
            rl_replied(c, node, &reply);
}

REDLOCK_PRIVATE void rl_tell_broken(struct redlock_client *c)
{
    while (c->priv.lost_untold != 0) {
        struct redlock_node *node = rl_first_node(c, c->priv.lost_untold);

        rl_take_replies(c, node, 0);
        rl_void_votes(c, node);
    }
}

/* ---- Lists and due times --------------------------------------------------------------------- */

/* Locks with a due time stand in a pairing heap, beside their list: the first one is due first, and
   each is due no later than its children. So thousands of locks that begin or fail at once cost a
   tick no more than their number. */

/* Makes one heap of two; each may be NULL. */
static struct redlock_lock *rl_heap_meld(struct redlock_lock *first, struct redlock_lock *other)
{
    struct redlock_lock *swap = first;

    if (first == NULL || other == NULL)
        return first != NULL ? first : other;
    if (other->priv.due_us < first->priv.due_us) {
        first = other;
        other = swap;
    }
    other->priv.heap.prev = first;
    other->priv.heap.next = first->priv.heap.child;
    if (other->priv.heap.next != NULL)
        other->priv.heap.next->priv.heap.prev = other;
    first->priv.heap.child = other;
    return first;
}

/* Makes one heap of siblings: first of each two, then of all. */
static struct redlock_lock *rl_heap_meld_siblings(struct redlock_lock *lock)
{
    struct redlock_lock *pairs = NULL, *heap = NULL, *other, *next;

    for (; lock != NULL; lock = next) {
        other = lock->priv.heap.next;
        next = other != NULL ? other->priv.heap.next : NULL;
        lock = rl_heap_meld(lock, other);
        lock->priv.heap.next = pairs;
        pairs = lock;
    }
    for (; pairs != NULL; pairs = next) {
        next = pairs->priv.heap.next;
        heap = rl_heap_meld(heap, pairs);
    }
    if (heap != NULL)
        heap->priv.heap.next = heap->priv.heap.prev = NULL;
    return heap;
}

static void rl_heap_remove(struct redlock_client *c, struct redlock_lock *lock)
{
    struct redlock_lock *next = lock->priv.heap.next, *prev = lock->priv.heap.prev, *children;

    if (prev == NULL && lock != c->priv.first_due)
        return; /* it does not stand there */
    children = rl_heap_meld_siblings(lock->priv.heap.child);
    if (prev == NULL) {
        c->priv.first_due = children;
    } else {
        *(prev->priv.heap.child == lock ? &prev->priv.heap.child : &prev->priv.heap.next) = next;
        if (next != NULL)
            next->priv.heap.prev = prev;
        c->priv.first_due = rl_heap_meld(c->priv.first_due, children);
    }
    memset(&lock->priv.heap, 0, sizeof lock->priv.heap);
}

REDLOCK_PRIVATE void rl_lock_set_due(struct redlock_client *c, struct redlock_lock *lock,
                                     uint64_t due_us)
{
    rl_heap_remove(c, lock);
    lock->priv.due_us = due_us;
    if (due_us != REDLOCK_NEVER)
        c->priv.first_due = rl_heap_meld(c->priv.first_due, lock);
}

REDLOCK_PRIVATE void rl_lock_move(struct redlock_client *c, struct redlock_lock *lock,
                                  unsigned where)
{
    struct redlock_lock *next = lock->priv.next;
    struct redlock_list *list;

    if (lock->priv.list != RL_NOWHERE) {
        *lock->priv.link = next;
        *(next != NULL ? &next->priv.link : &rl_list(c, lock->priv.list)->end) = lock->priv.link;
    }
    rl_heap_remove(c, lock);
    lock->priv.list = (uint8_t)where;
    if (where == RL_NOWHERE || where == RL_DONE)
        rl_waiter_remove(lock);
    if (where == RL_NOWHERE)
        return;
    list = rl_list(c, where);
    lock->priv.next = NULL;
    lock->priv.link = list->end;
    *list->end = lock;
    list->end = &lock->priv.next;
    if ((where == RL_LINE || where == RL_WAIT || where == RL_WAIT_HELD) &&
        lock->priv.due_us != REDLOCK_NEVER)
        c->priv.first_due = rl_heap_meld(c->priv.first_due, lock);
}

REDLOCK_PRIVATE void rl_lock_schedule(struct redlock_client *c, struct redlock_lock *lock)
{
    if (lock->priv.list != RL_DONE && lock->priv.list != RL_TURN)
        rl_lock_move(c, lock, RL_TURN);
}

REDLOCK_PRIVATE void rl_lock_park(struct redlock_client *c, struct redlock_lock *lock)
{
    unsigned where = RL_NOWHERE;

    if (rl_is_held(lock) && (lock->status == REDLOCK_PENDING || lock->priv.unsent != 0))
        where = RL_WAIT_HELD;
    else if (lock->status == REDLOCK_PENDING)
        where = RL_WAIT;
    if (where != RL_NOWHERE)
        rl_set(&c->priv.wanted, lock->priv.unsent);
    rl_lock_move(c, lock, where);
}

/* ---- A turn ---------------------------------------------------------------------------------- */

/* Steps a lock that stands in TURN. If its state has not changed, the lock waits. Otherwise it
   stays first in TURN, and is stepped again. */
static void rl_turn(struct redlock_client *c, struct redlock_lock *lock)
{
    unsigned state = lock->priv.state;

    rl_step(c, lock);
    if (lock->priv.state == state && lock->priv.list == RL_TURN)
        rl_lock_park(c, lock);
}

/* Whether the first lock in line has left the line. Those behind it wait for it. */
static int rl_line_moves(struct redlock_client *c)
{
    struct redlock_lock *lock = rl_first(c, RL_LINE);

    if (lock == NULL)
        return 0;
    rl_step(c, lock);
    return lock->priv.state != RL_IN_LINE;
}

REDLOCK_PRIVATE void rl_wake_due(struct redlock_client *c)
{
    struct redlock_lock *lock;

    while ((lock = c->priv.first_due) != NULL && rl_past(c, lock->priv.due_us))
        if (lock->priv.list == RL_LINE)
            rl_step(c, lock);
        else
            rl_lock_move(c, lock, RL_TURN);
}

/* Does all that can be done now. Operations in progress, releases among them, come before new
   attempts. */
REDLOCK_PRIVATE void rl_turn_all(struct redlock_client *c)
{
    struct redlock_lock *lock;

    for (;;) {
        if ((lock = rl_first(c, RL_TURN)) != NULL) {
            rl_turn(c, lock);
        } else if (!rl_line_moves(c)) {
            break;
        }
    }
}
