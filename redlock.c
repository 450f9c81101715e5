/* redlock.c - the lock: attempts, votes, validity, retry, extension, release. No I/O: bytes come in
   through redlock_handle_events, time through redlock_tick. Read it beside [Redlock], see redlock.h.

   The rules. Those that concern connections stand in node.c. Code and tests cite them by number.

   R1  Fresh token. T1 is read before the first byte of an attempt is queued. Each attempt has a new
       random token, and a command that creates the key is sent once per node and attempt. So a late
       grant of attempt 1 never counts for attempt 2.
   R2  Ask all nodes at once. An attempt first waits for connections that are under way, and for room in
       the queues of a quorum. A node that is ready only after the decision is still sent the command,
       as long as the lock is held: a lock on a bare quorum is lost when one more node restarts empty.
       Such a grant counts from the next successful extension on.
   R3  Decide early, and by the clock. A quorum granted and ttl - (now - T1) - drift > 0: held. A quorum
       out of reach: failed. `now` is read after the replies were read.
   R4  Roll back failed attempts. The release goes at once to every node that was sent the command. It
       outlasts a full buffer. A release that is unanswered when the operation ends, or was answered
       with a temporary error, is repeated until the key has expired, from a copy (REDLOCK_OWED_MAX).
   R6  Retry with growing, random pauses. A failed attempt ends when the outcome and its reason are known.
       Contention is retried at once, a few times. More operations than there is room for wait in line;
       wait_ms counts there.
   R7  Notify waiters. The rollback reads the key with client tracking on. When a quorum of nodes reports a
       change, the first waiter retries within a round trip, at random; a waiter that was notified in vain
       stands back two times of three, to avoid a thundering herd. A notification is never a vote.
   R8  Only members confirm: nodes whose grant came while the lock was valid, or that confirmed an earlier
       extension that succeeded. A failed extension leaves the validity as it was, and none shortens it.
       So a success proves, without any clock, that nobody else held the lock up to the start of the round.
   R8b Late commands. A command on a connection that was given up may still run at any time: the kernel
       repeats the data of closed sockets. Only commands that create the key do harm then. So at most one
       of them is unanswered per node and token, and none is sent where the key may be. Our token on the
       node proves that it has run; another run_id proves that it never will.
   R9  Repair. Where a node answers an extension that the key is missing, the key is created again. The
       node counts from the next round on, if this round succeeds.
   R10 Bounded extension. Auto-extension runs a third of the ttl after the last success, at once if less
       than two thirds are left, and after a failure again until the validity ends.
   R11 Release in every state of the lock, on all nodes. A server's own compare-and-delete command replaces
       the script on connections where it is known; each connection tries them behind a first script.
   R15 Nothing waits without a bound: node_timeout_ms, or three measured round trips, for an answer;
       wait_ms for a holder; stall_ms for the connections of a new client.
   R16 Fencing tokens. Each node counts the grants of a lock. The token is a counter on which a quorum
       agrees; where they differ the largest is proposed to all. A node whose counter is larger by then
       does not agree. The first proposal is the wall clock, unless that date cannot be.
   R18 Restart marker. R14 for locks with a fencing token is kept by their scripts: a key on each server
       names the run in which it was set; where it is missing or of another run, nothing is granted until
       longest_ttl_ms have passed.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "core.h"

#include <string.h>

/* The states of a lock, and how it goes from one to the next:

       IDLE -- acquire --> LINE --> ASK --> HELD -- extend --> EXTEND --> HELD
        ^                   ^        |\      ^ |`-- auto-extend --> AUTO <-> EXTEND
        |                   |        | CONFIRM `-- release --> RELEASE --> SETTLE --> IDLE
        |                   |        v failed, cancelled
        `---- failed --- BACKOFF <- SETTLE <- ROLLBACK

   A loss, in EXTEND or AUTO, ends by way of SETTLE too. */
enum rl_state {
    RL_IS_IDLE,
    RL_IS_HELD,
    RL_IN_LINE,
    RL_IN_ASK,
    RL_IN_CONFIRM,
    RL_IN_ROLLBACK,
    RL_IN_SETTLE,
    RL_IN_BACKOFF,
    RL_IN_EXTEND,
    RL_IN_AUTO,
    RL_IN_RELEASE
};

/* Lists that a lock may stand in. TURN: to be stepped in this tick. BLOCKED: some node had no room or
   no connection yet. LINE: to begin an attempt when it can. WAIT: for a reply or its time. LATER: the
   same, for auto-extension. DONE: for redlock_next_completed. WAIT and LATER are in the order of time: two
   lists, as the times in each mostly come in that order by themselves. */
enum rl_list { RL_NOWHERE, RL_TURN, RL_BLOCKED, RL_LINE, RL_WAIT, RL_LATER_LIST, RL_DONE };

enum {
    RL_TTL_MIN_MS = 10,
    RL_TTL_MAX_MS = 0x7fffffff,
    RL_CONFIRMS_MAX = 4, /* rounds to agree on a fencing token. R16 */
    RL_QUICK_MAX = 5,    /* quick retries in a row */
    RL_VAIN_MAX = 9,     /* a waiter notified in vain stands back for up to 2^9 round trips. R7 */
    RL_CONNECT_MS = 100, /* a quorum waits so long for the connections to the rest. R2 */
    RL_OWED_MS = 100     /* between two releases that a node is owed. R4 */
};

/* A wall clock from here on (the year 2112) is broken and is not proposed: one such client would use up
   the fencing tokens of a lock for all. R16 */
#define RL_WALL_MAX_US ((uint64_t)1 << 52)

/* ---- Time ---------------------------------------------------------------------------------------- */

/* When a lock that was asked for at T1 = started_us expires for its holder. */
static uint64_t rl_valid_until(const struct redlock_client *c, const struct redlock_lock *lock)
{
    return lock->priv.started_us + lock->ttl_ms * RL_MS_US - rl_drift_us(c, lock->ttl_ms);
}

/* When the replies to what is sent now come too late. */
static uint64_t rl_replies_due(const struct redlock_client *c, const struct redlock_lock *lock)
{
    return c->priv.now_us + rl_patience_ms(c, lock) * RL_MS_US;
}

/* A clock that steps back is not followed. */
static void rl_read_clock(struct redlock_client *c)
{
    uint64_t now = c->priv.io->now_us(c->priv.io->context);

    if (now > c->priv.now_us)
        c->priv.now_us = now;
}

/* ---- Lists --------------------------------------------------------------------------------------- */

/* Moves a lock to the end of a list, or in WAIT and LATER to its place, or off all. */
static void rl_move(struct redlock_client *c, struct redlock_lock *lock, unsigned where)
{
    struct redlock_lock *next = lock->priv.next, *prev = lock->priv.prev;
    struct redlock_list *list = &c->priv.list[lock->priv.list];

    if (lock->priv.list != RL_NOWHERE) {
        *(prev != NULL ? &prev->priv.next : &list->first) = next;
        *(next != NULL ? &next->priv.prev : &list->last) = prev;
    }
    lock->priv.list = (uint8_t)where;
    lock->priv.next = lock->priv.prev = NULL;
    if (where == RL_NOWHERE)
        return;
    list = &c->priv.list[where];
    next = NULL;
    prev = list->last;
    while ((where == RL_WAIT || where == RL_LATER_LIST) && prev != NULL &&
           prev->priv.due_us > lock->priv.due_us) {
        next = prev;
        prev = prev->priv.prev;
    }
    lock->priv.next = next;
    lock->priv.prev = prev;
    *(prev != NULL ? &prev->priv.next : &list->first) = lock;
    *(next != NULL ? &next->priv.prev : &list->last) = lock;
}

static struct redlock_lock *rl_first(const struct redlock_client *c, unsigned list)
{
    return c->priv.list[list].first;
}

/* Something happened to it that the next tick must look at. */
static void rl_touch(struct redlock_client *c, struct redlock_lock *lock)
{
    if (lock->priv.list != RL_DONE && lock->priv.list != RL_TURN)
        rl_move(c, lock, RL_TURN);
}

/* Puts a held lock away: out of sight, unless some node is still to be sent it. R2 */
static void rl_put_away(struct redlock_client *c, struct redlock_lock *lock)
{
    if (lock->priv.state != RL_IS_HELD || lock->priv.todo == 0) {
        rl_move(c, lock, RL_NOWHERE);
        return;
    }
    lock->priv.due_us = lock->valid_until_us;
    rl_set(&c->priv.wanted, lock->priv.todo);
    rl_move(c, lock, RL_LATER_LIST);
}

static void rl_enter(struct redlock_lock *lock, unsigned state)
{
    lock->priv.state = (uint8_t)state;
    lock->priv.due_us = 0; /* not begun */
}

/* Locks that wait for a holder are counted: notifications are of use to nobody else. R7 */
static void rl_set_waiting(struct redlock_client *c, struct redlock_lock *lock, unsigned waiting)
{
    c->priv.waiting += (uint32_t)waiting - lock->priv.waiting;
    lock->priv.waiting = (uint8_t)waiting;
}

/* The operation is complete; the lock stays in `state`, IDLE or HELD. */
static void rl_finish(struct redlock_client *c, struct redlock_lock *lock,
                      enum redlock_status status, unsigned state)
{
    rl_enter(lock, state);
    rl_set_waiting(c, lock, 0);
    if (state == RL_IS_IDLE)
        rl_set_fencing_token(lock, 0); /* it was a proposal, or is another's by now. R16 */
    lock->status = status;
    rl_move(c, lock, RL_DONE);
    c->priv.ended = 1;
}

/* ---- What a round knows besides votes: parts that may be left out ------------------------------------- */

#if REDLOCK_DIAGNOSIS
/* How many nodes the holder of node i has. */
static unsigned rl_holding(const struct redlock_client *c, const struct redlock_lock *lock,
                           unsigned i)
{
    unsigned j, same = 0;

    for (j = 0; j < c->priv.count && lock->priv.round.holder[i] != 0; j++)
        same += lock->priv.round.holder[j] == lock->priv.round.holder[i];
    return same;
}

/* How many nodes the holder with most of them has. */
static unsigned rl_largest_holding(const struct redlock_client *c, const struct redlock_lock *lock)
{
    unsigned i, most = 0;

    for (i = 0; i < c->priv.count; i++) {
        unsigned same = rl_holding(c, lock, i);
        most = same > most ? same : most;
    }
    return most;
}

/* Whether node i says who has it, and nobody is known to have more nodes. */
static int rl_names_holder(const struct redlock_client *c, const struct redlock_lock *lock,
                           unsigned i)
{
    return lock->priv.round.holder[i] != 0 && rl_holding(c, lock, i) == rl_largest_holding(c, lock);
}

static int rl_wants_holder(const struct redlock_lock *lock)
{
    return lock->holder_size > 0;
}

/* Node i has replied the token of the holder: it is told to the caller, as far as there is room. */
static void rl_note_holder(const struct redlock_client *c, struct redlock_lock *lock, unsigned i,
                           const struct resp_item *item)
{
    size_t size = item->text_used < lock->holder_size ? item->text_used : lock->holder_size - 1U;

    lock->priv.round.holder[i] = (uint16_t)(rl_hash(item, RESP_TEXT_MAX) % UINT16_MAX + 1);
    if (lock->holder_size == 0 || !rl_names_holder(c, lock, i))
        return;
    memcpy(lock->holder, item->text, size);
    lock->holder[size] = '\0';
}

/* And for how long, in milliseconds; below 0: without end, or gone. */
static void rl_note_pttl(const struct redlock_client *c, struct redlock_lock *lock, unsigned i,
                         int64_t left_ms)
{
    if (left_ms < -1 || !rl_names_holder(c, lock, i))
        return;
    lock->holder_until_us = left_ms < 0 || left_ms >= RL_FENCING_TOKEN_MAX
                                ? REDLOCK_NEVER
                                : c->priv.now_us + (uint64_t)left_ms * RL_MS_US;
}

static void rl_forget_holder(struct redlock_lock *lock)
{
    lock->holder_until_us = 0;
}
#else
static inline unsigned rl_largest_holding(const struct redlock_client *c,
                                          const struct redlock_lock *lock)
{
    (void)c;
    (void)lock;
    return 0;
}

static inline int rl_wants_holder(const struct redlock_lock *lock)
{
    (void)lock;
    return 0;
}

static inline void rl_note_holder(const struct redlock_client *c, struct redlock_lock *lock,
                                  unsigned i, const struct resp_item *item)
{
    (void)c;
    (void)lock;
    (void)i;
    (void)item;
}

static inline void rl_note_pttl(const struct redlock_client *c, struct redlock_lock *lock,
                                unsigned i, int64_t left_ms)
{
    (void)c;
    (void)lock;
    (void)i;
    (void)left_ms;
}

static inline void rl_forget_holder(struct redlock_lock *lock)
{
    (void)lock;
}
#endif

#if REDLOCK_FENCING
/* The nodes that agree on the fencing token; without one a grant is an agreement. R16 */
static unsigned rl_agreed(const struct redlock_lock *lock)
{
    return lock->use_fencing ? lock->priv.round.agreed : lock->granted;
}

static void rl_forget_agreement(struct redlock_lock *lock)
{
    lock->priv.round.agreed = 0;
}

/* The node counts this grant as the `count`th: it agrees if no node has a larger counter. */
static void rl_count_agreement(struct redlock_lock *lock, unsigned bit, uint64_t count)
{
    if (!lock->use_fencing)
        return;
    if (count > lock->fencing_token) {
        lock->fencing_token = count;
        lock->priv.round.agreed = 0;
    }
    if (count == lock->fencing_token)
        rl_set(&lock->priv.round.agreed, bit);
}

/* A new attempt: the wall clock is its proposal, unless that date cannot be. */
static void rl_propose(const struct redlock_io *io, struct redlock_lock *lock)
{
    uint64_t wall_us = lock->use_fencing && io->wall_us != NULL ? io->wall_us(io->context) : 0;

    lock->fencing_token = wall_us < RL_WALL_MAX_US ? wall_us : 0;
    lock->priv.attempt.confirms = 0;
}

static unsigned rl_count_confirm(struct redlock_lock *lock)
{
    return ++lock->priv.attempt.confirms;
}
#else
static inline unsigned rl_agreed(const struct redlock_lock *lock)
{
    return lock->granted;
}

static inline void rl_forget_agreement(struct redlock_lock *lock)
{
    (void)lock;
}

static inline void rl_count_agreement(struct redlock_lock *lock, unsigned bit, uint64_t count)
{
    (void)lock;
    (void)bit;
    (void)count;
}

static inline void rl_propose(const struct redlock_io *io, struct redlock_lock *lock)
{
    (void)io;
    (void)lock;
}

static inline unsigned rl_count_confirm(struct redlock_lock *lock)
{
    (void)lock;
    return 0;
}
#endif

#if REDLOCK_RESTART_GUARD
static unsigned rl_mute(const struct redlock_lock *lock)
{
    return lock->priv.attempt.mute;
}

static void rl_set_mute(struct redlock_lock *lock, unsigned nodes, int mute)
{
    if (mute)
        rl_set(&lock->priv.attempt.mute, nodes);
    else
        rl_clear(&lock->priv.attempt.mute, nodes);
}
#else
static inline unsigned rl_mute(const struct redlock_lock *lock)
{
    (void)lock;
    return 0;
}

static inline void rl_set_mute(struct redlock_lock *lock, unsigned nodes, int mute)
{
    (void)lock;
    (void)nodes;
    (void)mute;
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

/* ---- Rounds: a command, the nodes that are asked, the votes ---------------------------------------- */

/* The replies to commands of a set are needed no more. */
static void rl_ignore(struct redlock_client *c, const struct redlock_lock *lock, unsigned nodes,
                      unsigned set)
{
    rl_redirect(c, lock, nodes, set, NULL, RL_NOBODY);
}

/* The token is of no use any more: what is answered late makes no members. Members and late voters owe
   no such reply. */
static void rl_ignore_late(struct redlock_client *c, struct redlock_lock *lock)
{
    rl_ignore(c, lock,
              (c->priv.all & ~(unsigned)(lock->members | lock->priv.attempt.late)) |
                  lock->priv.waits,
              RL_WRITING);
    lock->priv.waits = 0;
}

/* A round of extensions is over. A repair that was not answered stays the lock's, because it creates
   the key and its connection may break yet. R8b */
static void rl_ignore_extensions(struct redlock_client *c, struct redlock_lock *lock)
{
    rl_ignore(c, lock, lock->priv.waits, 1 << RL_EXTEND);
    rl_redirect(c, lock, lock->priv.waits, 1 << RL_REPAIR, lock, RL_STALE);
    lock->priv.waits = 0;
}

/* A new command to all nodes, a new count of votes. */
static void rl_begin_round(struct redlock_client *c, struct redlock_lock *lock)
{
    rl_ignore_extensions(c, lock); /* late ones of the round before */
    rl_clear(&lock->priv.attempt.suspect, ~(unsigned)c->priv.abandoned);
    lock->priv.started_us = c->priv.now_us;
    lock->priv.todo = c->priv.all;
    memset(&lock->priv.round, 0, sizeof lock->priv.round);
    lock->granted = lock->refused = lock->failed = 0;
    lock->priv.due_us = rl_replies_due(c, lock);
}

/* Whether the key is to be created again on a node: only if that has said that it is missing (R9), and
   so has answered all that was sent on this connection, and nothing that creates it is unanswered on a
   former one (R8b). */
static int rl_repairs(const struct redlock_client *c, const struct redlock_lock *lock, unsigned bit)
{
    unsigned unanswered = lock->priv.attempt.suspect & (unsigned)c->priv.abandoned;

    return REDLOCK_REPAIR && lock->priv.started_us < lock->valid_until_us &&
           (lock->priv.attempt.again & ~unanswered & bit) != 0;
}

static unsigned rl_taking(const struct redlock_lock *lock)
{
    if (rl_use_fencing(lock))
        return RL_FENCE;
    return rl_extra_keys(lock) > 0 ? RL_TAKE : RL_SET;
}

/* The command that a lock is to send to a node now. The server's own command does not do for several
   keys; nor to roll back, where the script also tells who holds the lock; nor a second time. R11 */
static unsigned rl_command_for(const struct redlock_client *c, const struct redlock_node *node,
                               const struct redlock_lock *lock)
{
    unsigned bit = rl_bit(node->priv.index);

    switch (lock->priv.state) {
    case RL_IN_ASK:
        return rl_taking(lock);
    case RL_IN_CONFIRM:
        return RL_CONFIRM;
    case RL_IS_HELD:
    case RL_IN_AUTO:
        if (!(lock->priv.attempt.asked & bit))
            return rl_taking(lock);
        /* fall through */
    case RL_IN_EXTEND:
        return rl_repairs(c, lock, bit) ? RL_REPAIR : RL_EXTEND;
    case RL_IN_ROLLBACK:
        return RL_DELETE | (REDLOCK_NOTIFICATION && node->priv.notifies ? RL_WITH_CACHING : 0U) |
               (rl_wants_holder(lock) ? RL_WITH_PTTL : 0U);
    default:
        return rl_knows_native(node) && rl_extra_keys(lock) == 0 && !(lock->priv.round.broken & bit)
                   ? rl_native(node)
                   : RL_DELETE;
    }
}

/* Tries the server's own command behind the script. R11 */
static void rl_try_native(struct redlock_client *c, struct redlock_lock *lock, unsigned nodes)
{
    unsigned i;

    for (i = 0; nodes >> i != 0; i++) {
        struct redlock_node *node = &c->priv.nodes[i];
        if ((nodes >> i & 1) && rl_tries_native(node) && rl_extra_keys(lock) == 0 &&
            rl_send(c, lock, rl_bit(i), rl_native(node), RL_NOBODY) != 0)
            rl_set_native(node, rl_native(node), RL_ON_TRIAL);
    }
}

/* Sends a command to nodes that are ready. Nodes that may not vote are sent it too, without waiting for
   their reply, and so are nodes that are asked only after the decision. R2, R14 */
static void rl_send_vote(struct redlock_client *c, struct redlock_lock *lock, unsigned nodes,
                         unsigned command, unsigned mute)
{
    unsigned state = lock->priv.state, creates = (unsigned)rl_is(command, RL_CREATING);
    unsigned counts = !mute && state != RL_IS_HELD && state != RL_IN_AUTO;
    redlock_mask sent = rl_send(c, lock, nodes, command,
                                counts    ? RL_VOTER
                                : creates ? RL_STALE
                                          : RL_NOBODY);

    rl_clear(&lock->priv.todo, sent);
    rl_clear(&lock->failed, sent);
    if (mute) {
        unsigned i;
        rl_set_mute(lock, sent, 1);
        rl_set(&lock->failed, sent);
        for (i = 0; sent >> i != 0; i++)
            if (sent >> i & 1)
                rl_quarantine(&c->priv.nodes[i]);
    } else if (counts) {
        rl_set(&lock->priv.waits, sent);
    }
    if (creates) {
        rl_clear(&lock->priv.attempt.again, sent);
        rl_set(&lock->priv.attempt.asked, sent);
    }
    if ((command & 31) == RL_DELETE)
        rl_try_native(c, lock, sent);
}

/* A node that has no connection counts as failed, also while it is connected again: it may be hung, and
   accept connections. A command that acquires or extends is sent when it is back; a release is not. */
static void rl_is_away(struct redlock_lock *lock, const struct redlock_node *node)
{
    unsigned bit = rl_bit(node->priv.index), state = lock->priv.state;

    if (node->state != REDLOCK_NODE_DOWN && !(state == RL_IN_ASK && node->priv.failing))
        return;
    if (state == RL_IN_ROLLBACK || state == RL_IN_RELEASE)
        rl_clear(&lock->priv.todo, bit);
    if (state != RL_IN_ROLLBACK)
        rl_set(&lock->failed, bit);
    if (node->priv.denied)
        rl_set(&lock->priv.round.denied, bit);
}

static void rl_replied(struct redlock_client *c, struct redlock_node *node,
                       const struct rl_reply *reply);

/* Takes the replies of a node, those of a broken connection among them. */
static void rl_take_replies(struct redlock_client *c, struct redlock_node *node,
                            struct rl_input *in)
{
    struct rl_reply reply;

    while (rl_node_reply(c, node, in, &reply))
        rl_replied(c, node, &reply);
}

/* Connects nodes where that is due, or would be too late at the next due time. */
static void rl_connect(struct redlock_client *c, unsigned nodes, uint64_t too_late_us)
{
    unsigned i;

    for (i = 0, nodes &= c->priv.in[REDLOCK_NODE_IDLE] | c->priv.in[REDLOCK_NODE_DOWN];
         nodes >> i != 0; i++)
        if (nodes >> i & 1) {
            rl_take_replies(c, &c->priv.nodes[i], NULL);
            rl_node_want(c, &c->priv.nodes[i], too_late_us);
        }
}

/* Whether the reply of a node does not count: it may have lost the lock. R14 */
static unsigned rl_is_mute(const struct redlock_client *c, const struct redlock_node *node,
                           unsigned command)
{
    return rl_is(command, RL_WRITING) && !rl_may_vote(c, node);
}

/* Sends the present command of a lock where it is still to be sent and can be. Most nodes are sent the
   same. R2 */
static void rl_ask_nodes(struct redlock_client *c, struct redlock_lock *lock)
{
    unsigned i, j, ready = lock->priv.todo & ~(unsigned)c->priv.full;

    rl_connect(c, ready, lock->priv.state == RL_IN_EXTEND ? lock->valid_until_us : REDLOCK_NEVER);
    for (i = 0; ready >> i != 0; i++)
        if (ready & ~(unsigned)c->priv.in[REDLOCK_NODE_READY] & rl_bit(i))
            rl_is_away(lock, &c->priv.nodes[i]);
    ready &= c->priv.jammed ? 0U : c->priv.in[REDLOCK_NODE_READY];
    for (i = 0; ready != 0; i++) {
        struct redlock_node *node = &c->priv.nodes[i];
        unsigned command, mute, same = 0;

        if (!(ready >> i & 1))
            continue;
        command = rl_command_for(c, node, lock);
        mute = rl_is_mute(c, node, command);
        for (j = i; j < c->priv.count; j++)
            if (j == i || ((ready >> j & 1) && !rl_looks_at_marker(c, lock, command) &&
                           rl_command_for(c, &c->priv.nodes[j], lock) == command &&
                           rl_is_mute(c, &c->priv.nodes[j], command) == mute))
                same |= rl_bit(j);
        ready &= ~same;
        rl_send_vote(c, lock, same, command, mute);
    }
}

/* The votes that did not come in time: they failed, and the nodes are told why. */
static void rl_too_slow(struct redlock_client *c, struct redlock_lock *lock)
{
    unsigned late = (unsigned)(lock->priv.todo | lock->priv.waits) & ~(unsigned)lock->failed, i;

    if (lock->priv.waits != 0)
        c->priv.slow = 1;
    for (i = 0; i < c->priv.count; i++)
        if (late & rl_bit(i))
            rl_set_error(&c->priv.nodes[i], c->priv.nodes[i].state == REDLOCK_NODE_CONNECTING
                                                ? RL_NO_CONNECTION_IN_TIME
                                                : RL_NO_REPLY_IN_TIME);
    rl_set(&lock->failed, late);
}

enum rl_verdict { RL_OPEN, RL_WON, RL_OUT_OF_REACH, RL_TIME_IS_UP };

/* What a round has come to. `voters`: the nodes whose votes count. */
static enum rl_verdict rl_verdict_of(struct redlock_client *c, struct redlock_lock *lock,
                                     unsigned yes, unsigned voters)
{
    if (rl_is_quorum(c, yes & voters))
        return RL_WON;
    if (rl_past(c, lock->priv.due_us)) {
        rl_too_slow(c, lock);
        return RL_TIME_IS_UP;
    }
    return !rl_is_quorum(c, voters & ~(unsigned)(lock->refused | lock->failed)) ? RL_OUT_OF_REACH
                                                                                : RL_OPEN;
}

/* ---- Acquire --------------------------------------------------------------------------------------- */

static void rl_step_line(struct redlock_client *c, struct redlock_lock *lock)
{
    if (lock->priv.outcome == REDLOCK_CANCELLED) {
        rl_finish(c, lock, REDLOCK_CANCELLED, RL_IS_IDLE);
        return;
    }
    if (lock->priv.op.attempts == 0 && lock->priv.due_us == 0) {
        lock->priv.started_us = c->priv.now_us;
        if (lock->priv.until_us != 0)
            lock->priv.until_us += c->priv.now_us; /* it held the time to wait */
    }
    if (lock->priv.until_us != 0 && lock->priv.until_us < c->priv.line_us)
        c->priv.line_us = lock->priv.until_us;
    lock->priv.due_us = REDLOCK_NEVER;
}

/* Until when an attempt waits for a connection that is under way. A ready quorum does not wait for a node
   that failed before, nor long; without a quorum a first connection has stall_ms. R2 */
static uint64_t rl_connecting_until(const struct redlock_client *c, const struct redlock_node *node,
                                    int quorum_ready)
{
    uint32_t wait_ms = c->priv.settings.node_timeout_ms * 2;

    if (quorum_ready && wait_ms > RL_CONNECT_MS)
        wait_ms = RL_CONNECT_MS;
    if ((node->state != REDLOCK_NODE_CONNECTING && node->state != REDLOCK_NODE_HANDSHAKE) ||
        (quorum_ready && node->priv.failing))
        return 0;
    if (!quorum_ready && !node->priv.failing && wait_ms < c->priv.settings.stall_ms)
        wait_ms = c->priv.settings.stall_ms;
    return node->priv.mark_us + wait_ms * RL_MS_US;
}

static int rl_quorum_is_ready(const struct redlock_client *c)
{
    return rl_is_quorum(c, c->priv.in[REDLOCK_NODE_READY]);
}

/* Whether an attempt can begin. It waits for room, and for connections: then a new client gets the lock
   from all nodes, and its validity is not used up by connecting. Without a quorum it begins, and fails,
   when no connection is under way and each node that denied us was tried since. R2, R6 */
static int rl_can_begin(struct redlock_client *c, const struct redlock_lock *lock)
{
    unsigned i, ready, coming = 0, untried = 0;
    int quorum_ready;

    rl_connect(c, c->priv.all, REDLOCK_NEVER);
    ready = c->priv.in[REDLOCK_NODE_READY];
    quorum_ready = rl_is_quorum(c, ready);
    for (i = 0; i < c->priv.count; i++) {
        const struct redlock_node *node = &c->priv.nodes[i];

        coming += !rl_past(c, rl_connecting_until(c, node, quorum_ready));
        if (node->state == REDLOCK_NODE_DOWN && node->priv.denied && node->priv.mark_us != 0 &&
            node->priv.mark_us < lock->priv.started_us)
            untried |= rl_bit(i);
    }
    if (quorum_ready)
        return (coming == 0 || (lock->priv.until_us != 0 && rl_past(c, lock->priv.until_us))) &&
               !c->priv.jammed && rl_is_quorum(c, ready & ~(unsigned)c->priv.full);
    if (coming != 0 && !rl_past(c, lock->priv.started_us + c->priv.settings.stall_ms * RL_MS_US))
        return 0;
    return !rl_is_quorum(c, ready | untried);
}

static void rl_begin_attempt(struct redlock_client *c, struct redlock_lock *lock)
{
    if (!lock->token_is_label && rl_random(c, lock->token, sizeof lock->token) != 0) {
        rl_finish(c, lock, REDLOCK_NO_ENTROPY, RL_IS_IDLE);
        return;
    }
    lock->priv.op.attempts =
        (uint8_t)(lock->priv.op.attempts + (lock->priv.op.attempts < UINT8_MAX));
    lock->priv.outcome = REDLOCK_PENDING;
    memset(&lock->priv.attempt, 0, sizeof lock->priv.attempt);
    lock->members = 0;
    rl_propose(c->priv.io, lock);
    rl_begin_round(c, lock); /* R1: the clock was read before anything was queued */
    lock->priv.state = RL_IN_ASK;
    rl_move(c, lock, RL_TURN);
}

/* Ends an attempt that failed or was cancelled. R4 */
static void rl_roll_back(struct redlock_client *c, struct redlock_lock *lock,
                         enum redlock_status outcome)
{
    rl_ignore_late(c, lock);
    lock->members = lock->priv.attempt.again = 0;
    rl_set_waiting(c, lock, 1);
    lock->priv.todo = lock->priv.attempt.asked;
    rl_forget_holder(lock);
    lock->priv.outcome = (int8_t)outcome;
    rl_enter(lock, RL_IN_ROLLBACK);
}

/* A quorum has granted it, and agrees on its fencing token if it has one. R3 */
static void rl_hold(struct redlock_client *c, struct redlock_lock *lock)
{
    if (rl_past(c, rl_valid_until(c, lock))) {
        rl_roll_back(c, lock, REDLOCK_TOO_LATE);
        return;
    }
    lock->valid_until_us = rl_valid_until(c, lock);
    rl_forget_holder(lock);
    rl_set(&lock->members, lock->granted);
    lock->extended = 0;
    rl_redirect(c, lock, lock->priv.waits, RL_TAKING, lock, RL_LATE);
    rl_ignore(c, lock, lock->priv.waits, 1 << RL_CONFIRM);
    lock->priv.waits = 0;
    lock->priv.todo =
        c->priv.all & (redlock_mask)~lock->priv.attempt.asked; /* they are owed it still. R2 */
    c->priv.slow = 0;
    rl_finish(c, lock, REDLOCK_OK, RL_IS_HELD);
}

/* Proposes the largest counter to all nodes. R16 */
static void rl_confirm(struct redlock_client *c, struct redlock_lock *lock)
{
    if (rl_count_confirm(lock) > RL_CONFIRMS_MAX) {
        rl_roll_back(c, lock, REDLOCK_PENDING);
        return;
    }
    rl_redirect(c, lock, lock->priv.waits, RL_TAKING, lock, RL_LATE);
    rl_ignore(c, lock, lock->priv.waits, 1 << RL_CONFIRM);
    rl_set(&lock->members, lock->granted); /* if it comes to that */
    lock->granted = lock->refused = lock->failed = lock->priv.waits = 0;
    rl_forget_agreement(lock);
    lock->priv.todo = c->priv.all;
    lock->priv.due_us = rl_replies_due(c, lock);
    lock->priv.state = RL_IN_CONFIRM;
    rl_ask_nodes(c, lock);
}

/* A quorum has answered, or no other node will: is it another's, or can't they be reached? R6 */
static int rl_knows_why(const struct redlock_client *c, const struct redlock_lock *lock)
{
    return rl_is_quorum(c, (unsigned)(lock->granted | lock->refused)) ||
           ((lock->priv.todo | lock->priv.waits) & ~(unsigned)lock->failed) == 0;
}

/* Of ASK and CONFIRM. Without a fencing token a grant is an agreement. */
static void rl_step_ask(struct redlock_client *c, struct redlock_lock *lock)
{
    unsigned agreed;

    rl_ask_nodes(c, lock);
    agreed = rl_agreed(lock);
    if (lock->priv.outcome == REDLOCK_CANCELLED) {
        rl_roll_back(c, lock, REDLOCK_CANCELLED);
        return;
    }
    if (!rl_is_quorum(c, agreed) && (lock->priv.state == RL_IN_ASK ? rl_is_quorum(c, lock->granted)
                                                                   : lock->granted != agreed)) {
        rl_confirm(c, lock);
        return;
    }
    switch (rl_verdict_of(c, lock, agreed, c->priv.all)) {
    case RL_WON:
        rl_hold(c, lock);
        break;
    case RL_OUT_OF_REACH:
        if (!rl_knows_why(c, lock))
            break;
        /* fall through */
    case RL_TIME_IS_UP:
        rl_roll_back(c, lock, REDLOCK_PENDING);
        break;
    case RL_OPEN:
        break;
    }
}

/* Why an attempt failed; REDLOCK_PENDING while the replies to its rollback may still tell. */
static enum redlock_status rl_outcome(const struct redlock_client *c,
                                      const struct redlock_lock *lock, int in_time)
{
    unsigned quorum = c->priv.quorum, untold, others = lock->refused;
    unsigned same = rl_largest_holding(c, lock);

    if (!rl_is_quorum(c, lock->refused)) /* with an even number of nodes it fails before that */
        others = lock->priv.attempt.asked & ~(unsigned)lock->granted;
    untold = rl_bits(others & (unsigned)(lock->priv.todo | lock->priv.waits));
    if (same >= quorum)
        return REDLOCK_HELD;
    if (!rl_is_quorum(c, (unsigned)(lock->granted | lock->refused)))
        return rl_bits(lock->priv.round.denied) > c->priv.count - quorum ? REDLOCK_DENIED
                                                                         : REDLOCK_UNREACHABLE;
    if (REDLOCK_DIAGNOSIS && same + untold + rl_bits(lock->refused & lock->failed) < quorum)
        return REDLOCK_CONTENDED;
    if (REDLOCK_DIAGNOSIS && untold > 0 && in_time)
        return REDLOCK_PENDING;
    return rl_is_quorum(c, lock->refused) ? REDLOCK_HELD : REDLOCK_CONTENDED;
}

static void rl_step_rollback(struct redlock_client *c, struct redlock_lock *lock)
{
    if (lock->priv.due_us == 0)
        lock->priv.due_us = rl_replies_due(c, lock);
    rl_ask_nodes(c, lock);
    if (lock->priv.outcome == REDLOCK_PENDING)
        lock->priv.outcome = (int8_t)rl_outcome(c, lock, !rl_past(c, lock->priv.due_us));
    if (lock->priv.outcome != REDLOCK_PENDING)
        rl_enter(lock, RL_IN_SETTLE);
}

/* The longest pause of a quick retry: a few round trips, twice as many each time, so that clients that
   collided are drawn apart. */
static uint32_t rl_quick_us(const struct redlock_client *c, unsigned times)
{
    uint32_t most = c->priv.settings.node_timeout_ms * 500U, us = rl_decision_us(c);

    if (us < 100)
        us = 100;
    for (; times > 0 && us < most; times--)
        us *= 2;
    return us < most ? us : most;
}

/* The pause before a retry for which another holder has to release. */
static uint32_t rl_pause_us(struct redlock_client *c, const struct redlock_lock *lock)
{
    const struct redlock_settings *s = &c->priv.settings;
    uint32_t pause_ms = s->retry_delay_ms, jitter_us;
    unsigned i;

    for (i = 0; i < lock->priv.op.slow && pause_ms < s->retry_delay_max_ms; i++)
        pause_ms += (pause_ms * s->retry_growth_pct + 99) / 100U;
    if (pause_ms > s->retry_delay_max_ms)
        pause_ms = s->retry_delay_max_ms;
    jitter_us = pause_ms * (s->retry_jitter_pct * 10U);
    return pause_ms * 1000U - jitter_us + rl_random_below(c, 2 * jitter_us + 1);
}

static int rl_others_had_it(const struct redlock_lock *lock)
{
    return lock->priv.outcome == REDLOCK_HELD || lock->priv.outcome == REDLOCK_CONTENDED;
}

/* An attempt has ended and nothing is owed any more: ends the operation, or tries again. R6 */
static void rl_retry(struct redlock_client *c, struct redlock_lock *lock)
{
    enum redlock_status outcome = (enum redlock_status)lock->priv.outcome;
    int others = rl_others_had_it(lock);
    int again = others || outcome == REDLOCK_UNREACHABLE || outcome == REDLOCK_TOO_LATE;
    int quick = outcome == REDLOCK_CONTENDED ||
                (outcome == REDLOCK_UNREACHABLE && lock->priv.round.broken != 0);
    uint64_t until_us = lock->priv.until_us, pause_us;

    if (others)
        c->priv.slow = 0;
    if (!again || lock->token_is_label || lock->priv.op.attempts > c->priv.settings.retries) {
        rl_finish(c, lock, outcome, RL_IS_IDLE);
        return;
    }
    if (until_us != 0 && rl_past(c, until_us)) {
        rl_finish(c, lock, others ? REDLOCK_TIMEOUT : outcome, RL_IS_IDLE);
        return;
    }
    quick = quick && lock->priv.op.quick < RL_QUICK_MAX;
    if (!quick && until_us == 0) {
        rl_finish(c, lock, outcome, RL_IS_IDLE);
        return;
    }
    if (quick) {
        pause_us = rl_random_below(c, rl_quick_us(c, ++lock->priv.op.quick));
    } else {
        pause_us = rl_pause_us(c, lock);
        lock->priv.op.slow = (uint8_t)(lock->priv.op.slow + (lock->priv.op.slow < UINT8_MAX));
        lock->priv.op.quick = 0;
    }
    if (until_us != 0 && pause_us > until_us - c->priv.now_us)
        pause_us = until_us - c->priv.now_us; /* the last attempt is made when the wait ends */
    lock->priv.state = RL_IN_BACKOFF;
    lock->priv.due_us = c->priv.now_us + pause_us + 1; /* else it could fail for ever in one tick */
}

/* ---- Notification ------------------------------------------------------------------------------------ */

#if REDLOCK_NOTIFICATION
/* Whether it is for this key, of which `known` bytes are known. */
static int rl_has_key(const struct redlock_lock *lock, const void *key, size_t key_size,
                      size_t known)
{
    unsigned i;

    if (lock->key_size == key_size && memcmp(lock->key, key, known) == 0)
        return 1;
    for (i = 0; i < rl_extra_keys(lock); i++)
        if (rl_extra_key(lock, i)->size == key_size &&
            memcmp(rl_extra_key(lock, i)->bytes, key, known) == 0)
            return 1;
    return 0;
}

/* Enough nodes say so, and others had it when the last attempt failed. Locks that failed for want of
   voters would only notify one another by their rollbacks. R7 */
static int rl_may_be_free(const struct redlock_client *c, const struct redlock_lock *lock)
{
    return rl_is_quorum(c, lock->priv.attempt.free) && rl_others_had_it(lock);
}

/* Nodes say that the lock with this key may be free, of which `known` bytes are known. If they are enough
   now, one waiter retries; others that need this key must be told anew. But a waiter that needs further
   keys may wait in vain, so it does not stand for the others. R7 */
static void rl_notify(struct redlock_client *c, unsigned nodes, const void *key, size_t key_size,
                      size_t known)
{
    struct redlock_lock *lock, *next, *notified = NULL;
    unsigned list;

    for (list = c->priv.waiting > 0 ? RL_TURN : RL_LATER_LIST; list <= RL_WAIT; list++)
        for (lock = rl_first(c, list); lock != NULL; lock = next) {
            next = lock->priv.next;
            if (!rl_has_key(lock, key, key_size, known))
                continue;
            rl_set(&lock->priv.attempt.free, nodes);
            if (notified != NULL) {
                lock->priv.attempt.free = 0;
            } else if (lock->priv.state == RL_IN_BACKOFF && rl_may_be_free(c, lock)) {
                notified = rl_extra_keys(lock) == 0 ? lock : NULL;
                rl_touch(c, lock);
            }
        }
}

/* A release is told to the waiters of this client, as servers do not tell the client that deleted. */
static void rl_notify_own(struct redlock_client *c, const struct redlock_lock *lock)
{
    unsigned i;

    rl_notify(c, c->priv.all, lock->key, lock->key_size, lock->key_size);
    for (i = 0; i < rl_extra_keys(lock); i++) {
        const struct redlock_key *key = rl_extra_key(lock, i);
        rl_notify(c, c->priv.all, key->bytes, key->size, key->size);
    }
}

/* How long a notified waiter waits before it retries: less than a round trip. A waiter that was notified
   in vain stands back two times of three, for longer and longer: then a few ask at once, however many
   wait. */
static void rl_hurry(struct redlock_client *c, struct redlock_lock *lock)
{
    uint64_t soon_us;
    unsigned back;

    if (!rl_may_be_free(c, lock))
        return;
    back = rl_random_below(c, 3) > 0 ? lock->priv.op.vain : 0U;
    soon_us = c->priv.now_us + (uint64_t)rl_random_below(c, rl_quick_us(c, 0)) * (1U << back);
    lock->priv.op.vain =
        (uint8_t)(lock->priv.op.vain + 2 < RL_VAIN_MAX ? lock->priv.op.vain + 2 : RL_VAIN_MAX);
    lock->priv.due_us = soon_us < lock->priv.due_us ? soon_us : lock->priv.due_us;
    lock->priv.attempt.free = 0;
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

static inline void rl_notify_own(struct redlock_client *c, const struct redlock_lock *lock)
{
    (void)c;
    (void)lock;
}

static inline void rl_hurry(struct redlock_client *c, struct redlock_lock *lock)
{
    (void)c;
    (void)lock;
}
#endif

static void rl_step_backoff(struct redlock_client *c, struct redlock_lock *lock)
{
    rl_hurry(c, lock);
    if (rl_past(c, lock->priv.due_us) || lock->priv.outcome == REDLOCK_CANCELLED) {
        rl_set_waiting(c, lock, 0);
        rl_enter(lock, RL_IN_LINE);
    }
}

/* ---- What nodes are still owed after the end -------------------------------------------------------- */

#if REDLOCK_MULTI_KEY
static uint8_t *rl_copy_extra_keys(struct redlock_owed *owed, uint8_t *at)
{
    unsigned i;

    for (i = 0; i < owed->lock.extra_key_count; i++) {
        const struct redlock_key *key = &owed->lock.extra_keys[i];
        owed->extra_keys[i].size = key->size;
        owed->extra_keys[i].bytes = memcpy(at, key->bytes, key->size);
        at += key->size;
    }
    owed->lock.extra_keys = owed->extra_keys;
    return at;
}
#else
static inline uint8_t *rl_copy_extra_keys(struct redlock_owed *owed, uint8_t *at)
{
    (void)owed;
    return at;
}
#endif

/* Copies what a release needs. */
static void rl_copy_keys(struct redlock_owed *owed, const struct redlock_lock *lock)
{
    uint8_t *at = owed->bytes;

    owed->lock = *lock;
    owed->lock.key = memcpy(at, lock->key, lock->key_size);
    at = rl_copy_extra_keys(owed, at + lock->key_size);
    if (lock->label_size > 0)
        memcpy(at, lock->label, lock->label_size);
    owed->lock.label = at;
}

/* A release is decided. Nodes that answered it with a temporary error (BUSY, LOADING ...), or may do so
   yet, are sent it again until the key has expired. As the lock is the caller's by then, this needs a
   copy. Not with a token that the caller chose: it may be in use again by then. R4 */
static void rl_owe(struct redlock_client *c, struct redlock_lock *lock)
{
    redlock_mask unanswered = (redlock_mask)(lock->priv.waits & ~lock->refused);
    redlock_mask owed = lock->priv.attempt.again | unanswered;
    unsigned i;

    lock->priv.attempt.again = 0;
    for (i = 0; i < REDLOCK_OWED_MAX && owed != 0 && !lock->token_is_label; i++) {
        struct redlock_lock *copy = &c->priv.owed[i].lock;

        if (copy->priv.todo != 0)
            continue;
        rl_copy_keys(&c->priv.owed[i], lock);
        copy->priv.todo = owed;
        copy->priv.waits = unanswered;
        copy->priv.due_us = c->priv.now_us + RL_OWED_MS * RL_MS_US;
        copy->priv.until_us = c->priv.now_us + lock->ttl_ms * RL_MS_US;
        rl_redirect(c, lock, unanswered, RL_RELEASING, copy, RL_OWED);
        return;
    }
}

/* Sends what is owed, where it is due. */
static void rl_owed_tick(struct redlock_client *c)
{
    unsigned i, owed;

    for (i = 0; i < REDLOCK_OWED_MAX; i++) {
        struct redlock_lock *copy = &c->priv.owed[i].lock;

        if (copy->priv.todo == 0 || !rl_past(c, copy->priv.due_us))
            continue;
        if (rl_past(c, copy->priv.until_us)) {
            rl_ignore(c, copy, c->priv.all, RL_ANY);
            copy->priv.todo = 0;
        }
        copy->priv.due_us = c->priv.now_us + RL_OWED_MS * RL_MS_US;
        owed = copy->priv.todo & ~(unsigned)copy->priv.waits;
        rl_connect(c, owed, REDLOCK_NEVER);
        rl_set(&copy->priv.waits,
               rl_send(c, copy, owed & c->priv.in[REDLOCK_NODE_READY], RL_DELETE, RL_OWED));
    }
}

/* A node has answered a release of which `copy` is a copy. R4 */
static void rl_owed_replied(struct redlock_lock *copy, unsigned bit, const struct rl_reply *reply)
{
    rl_clear(&copy->priv.waits, bit);
    if (reply->vote == RL_YES || reply->vote == RL_NO || reply->vote == RL_DENIED)
        rl_clear(&copy->priv.todo, bit);
}

/* Decided, but some nodes are still owed the release: it is queued for nobody, so that it finds a slot,
   and on a connection whose handshake goes on. A node that does not even take bytes is given up. R4 */
static void rl_step_settle(struct redlock_client *c, struct redlock_lock *lock)
{
    unsigned i;

    if (lock->priv.due_us == 0) { /* a loss is reported at once */
        lock->priv.due_us =
            lock->priv.outcome == REDLOCK_LOST ? c->priv.now_us : rl_replies_due(c, lock);
        rl_owe(c, lock);
        /* nothing but PTTL is due where no vote is waited for */
        rl_ignore(c, lock, rl_wants_holder(lock) ? c->priv.all : lock->priv.waits, RL_RELEASING);
        lock->priv.waits = 0;
    }
    rl_connect(c, lock->priv.todo, REDLOCK_NEVER);
    rl_clear(&lock->priv.todo,
             rl_send(c, lock, lock->priv.todo & c->priv.open, RL_DELETE, RL_NOBODY));
    rl_clear(&lock->priv.todo, c->priv.in[REDLOCK_NODE_DOWN]);
    if (lock->priv.todo != 0 && rl_past(c, lock->priv.due_us)) {
        for (i = 0; i < c->priv.count; i++)
            if (lock->priv.todo & c->priv.open & rl_bit(i))
                rl_node_fail(c, &c->priv.nodes[i], RL_ACCEPTS_NO_DATA);
        lock->priv.todo = 0;
    }
    if (lock->priv.todo != 0)
        return;
    if (lock->priv.outcome != REDLOCK_UNCONFIRMED && lock->priv.outcome != REDLOCK_LOST)
        lock->priv.attempt.asked = 0;
    rl_retry(c, lock);
}

/* ---- Extend ------------------------------------------------------------------------------------------ */

/* Grants that came after the decision count as well, if the lock is still valid. R8 */
static void rl_merge_late_grants(const struct redlock_client *c, struct redlock_lock *lock)
{
    if (!rl_past(c, lock->valid_until_us))
        rl_set(&lock->members, lock->priv.attempt.late);
    lock->priv.attempt.late = 0;
}

/* It is not ours any more. A key that it still has on some nodes, or that was repaired there, is in the
   way of others. */
static void rl_lost(struct redlock_client *c, struct redlock_lock *lock)
{
    lock->valid_until_us = 0;
    rl_ignore_late(c, lock);
    lock->members = lock->priv.attempt.again =
        0; /* or a release could say that it was ours until then */
    lock->priv.todo = c->priv.all;
    lock->priv.outcome = REDLOCK_LOST;
    rl_enter(lock, RL_IN_SETTLE);
}

/* Sets the time of the next automatic extension, or that of the loss if it is sooner. R10 */
static void rl_renew_at(struct redlock_lock *lock, uint64_t moment_us)
{
    lock->priv.state = RL_IN_AUTO;
    lock->priv.due_us = moment_us < lock->valid_until_us ? moment_us : lock->valid_until_us;
}

/* The next automatic extension is due when a third of the ttl has passed since the last success, or at
   once if less than that is left. R10 */
static uint64_t rl_renewal_due(const struct redlock_client *c, const struct redlock_lock *lock)
{
    uint64_t end_us = lock->valid_until_us + rl_drift_us(c, lock->ttl_ms);
    uint64_t rest_us = (lock->ttl_ms - lock->ttl_ms / 3) * RL_MS_US;

    return end_us > rest_us ? end_us - rest_us : 0;
}

/* The extension is over. Nodes that confirmed it or were repaired are members from the next round on, if
   this one proved that nobody else had the lock. R8, R9 */
static void rl_end_extension(struct redlock_client *c, struct redlock_lock *lock,
                             enum redlock_status status)
{
    if (status != REDLOCK_OK) {
        lock->priv.todo = c->priv.all & (redlock_mask)~lock->priv.attempt.asked; /* still. R2 */
        rl_ignore_extensions(c, lock);
    } else {                                                /* replies that come late still count */
        if (lock->valid_until_us < rl_valid_until(c, lock)) /* never shortened. R8 */
            lock->valid_until_us = rl_valid_until(c, lock);
        rl_set(&lock->members, lock->granted);
        rl_set_mute(lock, lock->granted, 0);
        c->priv.slow = 0;
        lock->extended = (uint16_t)(lock->extended + (lock->extended < UINT16_MAX));
    }
    if (status == REDLOCK_LOST) {
        rl_lost(c, lock);
    } else if (lock->priv.op.renewals == 0 || status == REDLOCK_CANCELLED) {
        rl_finish(c, lock, status, RL_IS_HELD);
    } else if (status == REDLOCK_OK) {
        lock->priv.op.renewals--;
        lock->priv.op.slow = 0;
        rl_renew_at(lock, rl_renewal_due(c, lock));
    } else { /* as often as three times in the time that is left, if the settings are slower */
        uint64_t left_us = lock->valid_until_us - c->priv.now_us;
        uint32_t pause_us = rl_pause_us(c, lock);
        lock->priv.op.slow = (uint8_t)(lock->priv.op.slow + (lock->priv.op.slow < UINT8_MAX));
        rl_renew_at(lock, c->priv.now_us + RL_MS_US + /* else it could fail for ever in one tick */
                              (pause_us < left_us / 4 ? pause_us : left_us / 4));
    }
}

static void rl_step_extend(struct redlock_client *c, struct redlock_lock *lock)
{
    enum redlock_status status = REDLOCK_UNREACHABLE;

    rl_merge_late_grants(c, lock);
    if (lock->priv.due_us == 0) {
        rl_begin_round(c, lock);
        if (!rl_past(c, lock->valid_until_us) && lock->priv.due_us > lock->valid_until_us)
            lock->priv.due_us = lock->valid_until_us;
    }
    rl_ask_nodes(c, lock);
    if (lock->priv.outcome == REDLOCK_CANCELLED) {
        status = REDLOCK_CANCELLED;
    } else if (!rl_is_quorum(c, lock->members)) {
        status = REDLOCK_LOST;
    } else {
        switch (rl_verdict_of(c, lock, lock->granted, lock->members & ~(unsigned)rl_mute(lock))) {
        case RL_WON:
            if (!rl_past(c, rl_valid_until(c, lock)))
                status = REDLOCK_OK;
            break;
        case RL_OPEN:
            return;
        default:
            break;
        }
    }
    rl_end_extension(c, lock, status);
}

/* A held lock: late grants count, and nodes that are ready only now are sent it. R2 */
static void rl_step_held(struct redlock_client *c, struct redlock_lock *lock)
{
    rl_merge_late_grants(c, lock);
    if (rl_past(c, lock->valid_until_us))
        lock->priv.todo = 0;
    rl_ask_nodes(c, lock);
}

static void rl_step_auto(struct redlock_client *c, struct redlock_lock *lock)
{
    rl_step_held(c, lock);
    if (lock->priv.outcome == REDLOCK_CANCELLED)
        rl_finish(c, lock, REDLOCK_CANCELLED, RL_IS_HELD);
    else if (rl_past(c, lock->valid_until_us))
        rl_lost(c, lock);
    else if (rl_past(c, lock->priv.due_us) && lock->priv.op.renewals == 1)
        rl_finish(c, lock, REDLOCK_EXTEND_LIMIT, RL_IS_HELD);
    else if (rl_past(c, lock->priv.due_us))
        rl_enter(lock, RL_IN_EXTEND);
}

/* ---- Release ----------------------------------------------------------------------------------------- */

/* What a release has come to; REDLOCK_PENDING while replies may still tell. */
static enum redlock_status rl_released(const struct redlock_client *c,
                                       const struct redlock_lock *lock, int in_time)
{
    int pending = in_time && (lock->priv.todo | lock->priv.waits) != 0;
    int answered = rl_is_quorum(c, (unsigned)(lock->granted | lock->refused));

    if (rl_is_quorum(c, lock->granted))
        return REDLOCK_OK;
    if (!answered)
        return pending ? REDLOCK_PENDING : REDLOCK_UNCONFIRMED;
    if (!rl_is_quorum(c, lock->members & ~(unsigned)lock->refused))
        return rl_largest_holding(c, lock) > 0 ? REDLOCK_LOST : REDLOCK_EXPIRED;
    return pending ? REDLOCK_PENDING : REDLOCK_OK;
}

static void rl_step_release(struct redlock_client *c, struct redlock_lock *lock)
{
    if (lock->priv.due_us == 0) {
        rl_begin_round(c, lock);
        lock->priv.due_us = c->priv.now_us + lock->priv.until_us; /* it held the time to wait */
    }
    rl_ask_nodes(c, lock); /* R11 */
    if (lock->priv.outcome != REDLOCK_CANCELLED)
        lock->priv.outcome = (int8_t)rl_released(c, lock, !rl_past(c, lock->priv.due_us));
    if (lock->priv.outcome == REDLOCK_PENDING)
        return;
    if (lock->priv.outcome == REDLOCK_UNCONFIRMED && lock->priv.until_us > 0)
        rl_too_slow(c, lock);
    if (lock->priv.outcome == REDLOCK_OK)
        rl_notify_own(c, lock);
    rl_enter(lock, RL_IN_SETTLE);
}

/* ---- Steps ------------------------------------------------------------------------------------------- */

static void rl_step(struct redlock_client *c, struct redlock_lock *lock)
{
    switch ((enum rl_state)lock->priv.state) {
    case RL_IN_LINE:
        rl_step_line(c, lock);
        break;
    case RL_IN_ASK:
    case RL_IN_CONFIRM:
        rl_step_ask(c, lock);
        break;
    case RL_IN_ROLLBACK:
        rl_step_rollback(c, lock);
        break;
    case RL_IN_SETTLE:
        rl_step_settle(c, lock);
        break;
    case RL_IN_BACKOFF:
        rl_step_backoff(c, lock);
        break;
    case RL_IN_EXTEND:
        rl_step_extend(c, lock);
        break;
    case RL_IN_AUTO:
        rl_step_auto(c, lock);
        break;
    case RL_IN_RELEASE:
        rl_step_release(c, lock);
        break;
    case RL_IS_HELD:
        rl_step_held(c, lock);
        break;
    case RL_IS_IDLE: /* is never stepped: it stands in no list */
        break;
    }
}

/* Steps a lock until it has to wait for something, and puts it where it will be found then. */
static void rl_turn(struct redlock_client *c, struct redlock_lock *lock)
{
    unsigned state;

    do {
        state = lock->priv.state;
        rl_step(c, lock);
    } while (lock->priv.state != state && lock->priv.list == RL_TURN);
    if (lock->priv.list == RL_DONE)
        return;
    if (lock->priv.state == RL_IS_HELD) {
        rl_put_away(c, lock);
        return;
    }
    rl_set(&c->priv.wanted, lock->priv.todo);
    rl_move(c, lock,
            lock->priv.state == RL_IN_LINE   ? RL_LINE
            : lock->priv.state == RL_IN_AUTO ? RL_LATER_LIST
            : lock->priv.todo != 0           ? RL_BLOCKED
                                             : RL_WAIT);
}

/* When the time to wait of a lock in line ends: for room with wait_ms, for connections after stall_ms at
   the earliest, as if it waited for nobody. R6 */
static uint64_t rl_line_until(const struct redlock_client *c, const struct redlock_lock *lock,
                              int reachable)
{
    uint64_t connected_us = lock->priv.started_us + c->priv.settings.stall_ms * RL_MS_US;

    if (lock->priv.until_us == 0)
        return REDLOCK_NEVER;
    return reachable || lock->priv.until_us > connected_us ? lock->priv.until_us : connected_us;
}

/* Tells each node that keeps locks in line what it lacks. */
static void rl_say_what_lacks(struct redlock_client *c)
{
    unsigned i;

    for (i = 0; i < c->priv.count; i++)
        if (c->priv.nodes[i].state != REDLOCK_NODE_READY)
            rl_set_error(&c->priv.nodes[i], RL_NO_CONNECTION_IN_TIME);
        else if (c->priv.full & rl_bit(i))
            rl_set_error(&c->priv.nodes[i], RL_NO_REPLY_IN_TIME);
}

/* The time to wait of a lock may end while it is in line. It is tried a last time, if that is possible. */
static void rl_leave_line(struct redlock_client *c)
{
    int reachable = rl_quorum_is_ready(c);
    struct redlock_lock *lock, *next;

    if (!rl_past(c, c->priv.line_us))
        return;
    c->priv.line_us = REDLOCK_NEVER;
    for (lock = rl_first(c, RL_LINE); lock != NULL; lock = next) {
        uint64_t until_us = rl_line_until(c, lock, reachable);
        next = lock->priv.next;
        if (!rl_past(c, until_us)) {
            if (until_us < c->priv.line_us)
                c->priv.line_us = until_us;
        } else if (rl_can_begin(c, lock)) {
            rl_begin_attempt(c, lock);
        } else {
            rl_say_what_lacks(c);
            rl_finish(c, lock, rl_others_had_it(lock) ? REDLOCK_TIMEOUT : REDLOCK_UNREACHABLE,
                      RL_IS_IDLE);
        }
    }
}

/* All that can be done now. What is in progress, releases among it, comes before new attempts. */
static void rl_turn_all(struct redlock_client *c)
{
    struct redlock_lock *lock;

    for (;;) {
        if ((lock = rl_first(c, RL_TURN)) != NULL)
            rl_turn(c, lock);
        else if ((lock = rl_first(c, RL_LINE)) != NULL && rl_can_begin(c, lock))
            rl_begin_attempt(c, lock);
        else if (rl_first(c, RL_TURN) == NULL) {
            rl_leave_line(c);
            if (rl_first(c, RL_TURN) == NULL)
                return;
        }
    }
}

/* ---- Replies ----------------------------------------------------------------------------------------- */

/* A lock will not get the reply that it waits for. A command that may be sent twice is, once; one that
   acquires never. R1 */
static void rl_unanswered(const struct redlock_node *node, struct redlock_lock *lock,
                          unsigned command)
{
    unsigned bit = rl_bit(node->priv.index), round = lock->priv.state;

    rl_clear(&lock->priv.waits, bit);
    if (rl_is(command, RL_EXTENDING) && round != RL_IN_EXTEND)
        return; /* decided without it */
    if (!rl_is(command, RL_TAKING) && node->priv.useful && !(lock->priv.round.broken & bit))
        rl_set(&lock->priv.todo, bit);
    else
        rl_set(&lock->failed, bit);
    if (node->priv.useful)
        rl_set(&lock->priv.round.broken, bit);
}

/* What a node says after the decision, for the caller of a held lock. */
static void rl_note_late(struct redlock_lock *lock, unsigned bit, unsigned vote)
{
    if (lock->priv.state == RL_IS_HELD || lock->priv.state == RL_IN_AUTO)
        rl_set(vote == RL_YES  ? &lock->granted
               : vote == RL_NO ? &lock->refused
                               : &lock->failed,
               bit);
}

/* Counts a vote. The replies to a rollback are not votes: they only tell who holds the lock. */
static void rl_count_vote(const struct redlock_client *c, struct redlock_lock *lock, unsigned i,
                          const struct rl_reply *reply)
{
    unsigned bit = rl_bit(i), state = lock->priv.state, vote = reply->vote;

    rl_clear(&lock->priv.waits, bit);
    if (reply->item->kind == RESP_STRING)
        rl_note_holder(c, lock, i, reply->item);
    if (vote == RL_LATER || vote == RL_DENIED) {
        rl_set(&lock->failed, bit);
        if (vote == RL_DENIED)
            rl_set(&lock->priv.round.denied, bit);
        else if (state == RL_IN_ROLLBACK || state == RL_IN_RELEASE)
            rl_set(&lock->priv.attempt.again, bit);
    } else if (state == RL_IN_EXTEND && vote == RL_NO && rl_repairs(c, lock, bit)) {
        rl_set(&lock->priv.todo, bit);
    } else if (state == RL_IN_ROLLBACK) {
        if (reply->item->kind == RESP_INTEGER)
            rl_note_free(lock, bit);
    } else if (vote == RL_NO) {
        rl_set(&lock->refused, bit);
    } else { /* a repaired node is no member, so it does not count in this round */
        if (state == RL_IN_ASK || state == RL_IN_CONFIRM)
            rl_count_agreement(lock, bit, reply->number);
        rl_set(&lock->granted, bit);
    }
}

/* A reply to an extension. If its round is over it had succeeded, and the slower nodes may still become
   members or cease to be while it is valid. R8 */
static void rl_extended(const struct redlock_client *c, unsigned i, struct redlock_lock *lock,
                        const struct rl_reply *reply)
{
    unsigned bit = rl_bit(i);

    if (reply->vote == RL_NO) {
        rl_clear(&lock->members, bit); /* its word counts no more */
        rl_clear(&lock->priv.attempt.late, bit);
    }
    if (lock->priv.state == RL_IN_EXTEND) {
        rl_count_vote(c, lock, i, reply);
        return;
    }
    rl_clear(&lock->priv.waits, bit);
    if (reply->vote == RL_NO && rl_repairs(c, lock, bit))
        rl_set(&lock->priv.todo, bit);
    else if (reply->vote == RL_YES || reply->vote == RL_REPAIRED)
        rl_set(&lock->priv.attempt.late, bit);
}

/* What the reply says of the key on that node. R8b, R9 */
static void rl_learn_of_key(struct redlock_lock *lock, unsigned bit, const struct rl_reply *reply)
{
    if (reply->vote == RL_YES && !rl_is(reply->command, RL_CREATING) &&
        rl_is(reply->command, RL_WRITING))
        rl_clear(&lock->priv.attempt.suspect,
                 bit); /* our token is there: what may create it has run */
    if (rl_is(reply->command, RL_WRITING)) {
        if (reply->command == RL_EXTEND && reply->vote == RL_NO)
            rl_set(&lock->priv.attempt.again, bit);
        else
            rl_clear(&lock->priv.attempt.again, bit);
    }
}

static void rl_replied(struct redlock_client *c, struct redlock_node *node,
                       const struct rl_reply *reply)
{
    struct redlock_lock *lock = reply->lock;
    unsigned i = node->priv.index, bit = rl_bit(i);

    if (reply->command == RL_INVALIDATION) {
        rl_notify(c, bit, reply->item->text, reply->item->size, reply->item->text_used);
        return;
    }
    if (reply->role == RL_OWED) {
        rl_owed_replied(lock, bit, reply);
        return;
    }
    if (reply->command == RL_PTTL) {
        if (reply->vote == RL_YES)
            rl_note_pttl(c, lock, i, (int64_t)reply->number);
        return;
    }
    if (reply->vote == RL_UNANSWERED) {
        if (rl_is(reply->command, RL_CREATING))
            rl_set(&lock->priv.attempt.suspect, bit);
        if (reply->role != RL_VOTER)
            return; /* decided without it */
        rl_unanswered(node, lock, reply->command);
    } else {
        rl_learn_of_key(lock, bit, reply);
        if (reply->role != RL_VOTER) { /* decided without it */
            rl_note_late(lock, bit, reply->vote);
            if (reply->role == RL_STALE)
                return;
            if (reply->vote == RL_YES)
                rl_set(&lock->priv.attempt.late, bit);
        } else if (rl_is(reply->command, RL_EXTENDING)) {
            rl_extended(c, i, lock, reply);
        } else {
            rl_count_vote(c, lock, i, reply);
        }
    }
    rl_touch(c, lock);
}

/* ---- Set up ------------------------------------------------------------------------------------------ */

/* In the order of struct redlock_settings, which is all uint32_t. REDLOCK_NONE is none of `most`. */
static const struct rl_setting {
    uint32_t most, usual;
} rl_settings[] = {
    {16, 0},         {60000, 50},  {600000, 1000},     {254, UINT8_MAX},
    {600000, 100},   {100, 50},    {1000, 50},         {600000, 1000},
    {500000, 10000}, {65535, 100}, {RL_TTL_MAX_MS, 0}, {REDLOCK_DURABLE, 0},
};

/* Those that may be REDLOCK_NONE: retries, retry_delay_ms, retry_jitter_pct, retry_growth_pct, drift_ppm,
   extend_max. */
enum { RL_SETTINGS = sizeof rl_settings / sizeof *rl_settings, RL_MAY_BE_NONE = 0x378 };

typedef char rl_every_setting_has_a_range
    [sizeof(struct redlock_settings) == RL_SETTINGS * sizeof(uint32_t) ? 1 : -1];

/* Checks each setting and puts the default where there is a 0. The number of a bad one, or RL_SETTINGS. */
static unsigned rl_complete(struct redlock_settings *settings, unsigned count)
{
    uint32_t values[RL_SETTINGS];
    unsigned i;

    memcpy(values, settings, sizeof values);
    for (i = 0; i < RL_SETTINGS; i++) {
        if (values[i] == 0)
            values[i] = i == 0 ? count / 2 + 1 : rl_settings[i].usual;
        else if (values[i] == REDLOCK_NONE && (RL_MAY_BE_NONE >> i & 1))
            values[i] = 0;
        else if (values[i] > rl_settings[i].most)
            return i;
    }
    if (settings->stall_ms == 0 && values[2] < 2 * values[1])
        values[2] = 2 * values[1]; /* or it would be shorter than node_timeout_ms */
    memcpy(settings, values, sizeof values);
    return settings->quorum < count / 2 + 1 || settings->quorum > count ? 0 : RL_SETTINGS;
}

/* What is wrong with nodes[i], or RL_NO_ERROR. */
static enum rl_error rl_bad_node(struct redlock_client *c, const struct redlock_node *nodes,
                                 unsigned i)
{
    struct resp_writer w = {NULL, RESP_OUT_MAX, 0, 0, 0};
    struct rl_message message = {NULL, NULL, NULL, 0, RL_HELLO_AUTH, 0};
    const struct redlock_node *node = &nodes[i];
    unsigned j;

    if (node->user != NULL && node->password == NULL)
        return RL_USER_WITHOUT_PASSWORD;
    w.bytes = c->priv.out.bytes;
    message.node = node;
    if (node->password != NULL)
        rl_put_command(&w, &message, RL_HELLO_AUTH);
    if (w.overflow)
        return RL_LONG_PASSWORD;
    if (node->address == NULL || node->address[0] == '\0')
        return RL_NO_ADDRESS;
    for (j = 0; j < i; j++)
        if (strcmp(node->address, nodes[j].address) == 0)
            return RL_SAME_ADDRESS;
    return RL_NO_ERROR;
}

static enum redlock_status rl_invalid(struct redlock_client *c, enum rl_argument argument)
{
    c->priv.invalid = (uint8_t)argument;
    return REDLOCK_INVALID_ARGUMENT;
}

enum redlock_status redlock_init(struct redlock_client *client, const struct redlock_io *io,
                                 struct redlock_node *nodes, unsigned count,
                                 const struct redlock_settings *settings)
{
    unsigned i, bad;

    if (client == NULL)
        return REDLOCK_INVALID_ARGUMENT;
    memset(client, 0, sizeof *client); /* so that redlock_deinit is safe after a failure */
    if (io == NULL)
        return rl_invalid(client, RL_ARG_IO);
    if (nodes == NULL || count < 1 || count > REDLOCK_NODES_MAX)
        return rl_invalid(client, RL_ARG_NODES);
    for (i = 0; i < count; i++) {
        struct redlock_node *node = &nodes[i];
        node->state = REDLOCK_NODE_IDLE;
        node->rtt_us = 0;
        node->error[0] = '\0';
        node->handle = -1;
        memset(&node->priv, 0, sizeof node->priv);
        node->priv.index = (uint8_t)i;
    }
    for (i = 0; i < count; i++) {
        enum rl_error error = rl_bad_node(client, nodes, i);
        if (error == RL_NO_ERROR && (io->check == NULL || io->check(io->context, &nodes[i]) == 0))
            continue;
        rl_set_error(&nodes[i], error);
        return rl_invalid(client, RL_ARG_NODE);
    }
    if (settings != NULL)
        client->priv.settings = *settings;
    bad = rl_complete(&client->priv.settings, count);
    if (bad < RL_SETTINGS) {
        rl_set_setting_error(&nodes[0], bad);
        return rl_invalid(client, RL_ARG_SETTINGS);
    }
    client->priv.io = io;
    client->priv.process = io->process != NULL ? io->process(io->context) : 0;
    client->priv.nodes = nodes;
    client->priv.count = (uint8_t)count;
    client->priv.all = client->priv.in[REDLOCK_NODE_IDLE] = (redlock_mask)((1UL << count) - 1);
    client->priv.quorum = (uint8_t)client->priv.settings.quorum;
    client->priv.pool_used = sizeof client->priv.pool;
    client->priv.line_us = REDLOCK_NEVER;
    return REDLOCK_OK;
}

void redlock_deinit(struct redlock_client *client)
{
    struct redlock_lock *lock;
    unsigned list, i;

    if (client == NULL || client->priv.nodes == NULL)
        return;
    for (list = RL_TURN; list <= RL_DONE; list++)
        while ((lock = rl_first(client, list)) != NULL) {
            if (lock->status == REDLOCK_PENDING)
                lock->status = REDLOCK_CANCELLED;
            rl_set_waiting(client, lock, 0);
            rl_move(client, lock, RL_NOWHERE);
            lock->priv.state = RL_IS_IDLE;
            lock->valid_until_us = 0;
            rl_set_fencing_token(lock, 0);
        }
    for (i = 0; i < client->priv.count; i++) {
        struct redlock_node *node = &client->priv.nodes[i];
        if (node->state != REDLOCK_NODE_IDLE && node->state != REDLOCK_NODE_DOWN)
            client->priv.io->shut(client->priv.io->context, node);
        node->state = REDLOCK_NODE_IDLE;
    }
    memset(client, 0, sizeof *client);
}

void redlock_lock_init(struct redlock_lock *lock, const void *key, size_t key_size, uint32_t ttl_ms)
{
    memset(lock, 0, sizeof *lock);
    lock->key = key;
    lock->key_size = (uint16_t)(key_size <= UINT16_MAX ? key_size : 0); /* 0 is refused later */
    lock->ttl_ms = ttl_ms;
}

/* ---- Event-driven calls ------------------------------------------------------------------------------ */

/* What is wrong with the keys of a lock. Each extra key counts with what stands around it. */
static enum rl_argument rl_check_keys(const struct redlock_lock *lock)
{
    size_t size = lock->key_size;
    unsigned i, j;

    if (lock->key == NULL || lock->key_size < 1)
        return RL_ARG_KEY;
    for (i = 0; i < rl_extra_keys(lock); i++) {
        const struct redlock_key *key = rl_extra_key(lock, i);
        if (key == NULL)
            return RL_ARG_EXTRA_KEYS;
        for (j = 0; j <= i; j++) { /* a repeated key would be refused by our own first one */
            const void *bytes = j < i ? rl_extra_key(lock, j)->bytes : lock->key;
            size_t bytes_size = j < i ? rl_extra_key(lock, j)->size : lock->key_size;
            if (key->size == bytes_size && memcmp(key->bytes, bytes, bytes_size) == 0)
                return RL_ARG_EXTRA_KEYS;
        }
        size += key->size + 10U;
    }
    if (size > REDLOCK_KEY_MAX)
        return rl_extra_keys(lock) > 0 ? RL_ARG_EXTRA_KEYS : RL_ARG_KEY;
    return RL_ARG_NONE;
}

/* What is wrong with a lock. */
static enum rl_argument rl_check_lock(const struct redlock_client *c,
                                      const struct redlock_lock *lock)
{
    uint32_t longest_ms = c->priv.settings.longest_ttl_ms;

    if (lock->extra_key_count > rl_extra_keys(lock))
        return RL_ARG_EXTRA_KEYS;
    if (lock->use_fencing && (!REDLOCK_FENCING || lock->extra_key_count > 0))
        return RL_ARG_FENCING;
    if (lock->label_size > REDLOCK_LABEL_MAX || (lock->label == NULL && lock->label_size > 0) ||
        (lock->token_is_label && lock->label_size == 0))
        return RL_ARG_LABEL;
    if (lock->ttl_ms < RL_TTL_MIN_MS || lock->ttl_ms > RL_TTL_MAX_MS ||
        rl_drift_us(c, lock->ttl_ms) >= lock->ttl_ms * RL_MS_US)
        return RL_ARG_TTL;
    if (longest_ms != 0 && lock->ttl_ms > longest_ms)
        return RL_ARG_LONGEST_TTL; /* R14 rests on it */
    return rl_check_keys(lock);
}

static uint32_t rl_process(const struct redlock_io *io)
{
    return io->process != NULL ? io->process(io->context) : 0;
}

/* REDLOCK_PENDING if nothing is wrong. */
static enum redlock_status rl_check(struct redlock_client *c, const struct redlock_lock *lock)
{
    enum rl_argument bad;

    if (c == NULL)
        return REDLOCK_INVALID_ARGUMENT;
    if (c->priv.nodes == NULL)
        return rl_invalid(c, RL_ARG_CLIENT);
    if (lock == NULL)
        return rl_invalid(c, RL_ARG_LOCK);
    if (rl_process(c->priv.io) != c->priv.process)
        return REDLOCK_FORKED;
    bad = rl_check_lock(c, lock);
    return bad != RL_ARG_NONE ? rl_invalid(c, bad) : REDLOCK_PENDING;
}

/* The same for an operation on a lock that must not be in progress. */
static enum redlock_status rl_check_idle(struct redlock_client *c, const struct redlock_lock *lock)
{
    enum redlock_status status = rl_check(c, lock);

    return status == REDLOCK_PENDING && lock->status == REDLOCK_PENDING ? rl_invalid(c, RL_ARG_LOCK)
                                                                        : status;
}

/* Hands the lock to the library, which begins with `state` in the next tick. An earlier operation that is
   complete, but was not returned yet, is not returned any more. */
static enum redlock_status rl_begin(struct redlock_client *c, struct redlock_lock *lock,
                                    enum redlock_operation operation, unsigned state,
                                    uint32_t wait_ms)
{
    rl_set_waiting(c, lock, 0);
    lock->status = REDLOCK_PENDING;
    lock->operation = (uint8_t)operation;
    lock->priv.outcome = REDLOCK_PENDING;
    lock->priv.op.renewals = 0;
    lock->priv.until_us = wait_ms * RL_MS_US; /* from now on; the first step reads the clock */
    rl_enter(lock, state);
    rl_move(c, lock, RL_TURN);
    return REDLOCK_PENDING;
}

enum redlock_status redlock_acquire_start(struct redlock_client *client, struct redlock_lock *lock,
                                          uint32_t wait_ms)
{
    enum redlock_status status = rl_check_idle(client, lock);

    if (status != REDLOCK_PENDING)
        return status;
    if (lock->priv.state == RL_IS_HELD)
        return REDLOCK_ALREADY_HELD;
    lock->valid_until_us = 0;
    rl_forget_holder(lock);
    memset(&lock->priv.op, 0, sizeof lock->priv.op);
    return rl_begin(client, lock, REDLOCK_OP_ACQUIRE, RL_IN_LINE, wait_ms);
}

enum redlock_status redlock_extend_start(struct redlock_client *client, struct redlock_lock *lock)
{
    enum redlock_status status = rl_check_idle(client, lock);

    if (status != REDLOCK_PENDING)
        return status;
    if (lock->priv.state != RL_IS_HELD)
        return REDLOCK_LOST;
    if (lock->extended >= client->priv.settings.extend_max) /* R10 */
        return REDLOCK_EXTEND_LIMIT;
    return rl_begin(client, lock, REDLOCK_OP_EXTEND, RL_IN_EXTEND, 0);
}

enum redlock_status redlock_auto_extend_start(struct redlock_client *client,
                                              struct redlock_lock *lock, unsigned extensions)
{
    enum redlock_status status = rl_check_idle(client, lock);

    if (status != REDLOCK_PENDING)
        return status;
    if (!REDLOCK_AUTO_EXTEND || extensions < 1 || extensions >= UINT16_MAX)
        return rl_invalid(client, RL_ARG_EXTENSIONS);
    if (lock->priv.state != RL_IS_HELD)
        return REDLOCK_LOST;
    rl_begin(client, lock, REDLOCK_OP_AUTO_EXTEND, RL_IN_AUTO, 0);
    lock->priv.op.renewals = (uint16_t)(extensions + 1);
    lock->priv.op.slow = 0;
    rl_renew_at(lock, rl_renewal_due(client, lock));
    return REDLOCK_PENDING;
}

enum redlock_status redlock_release_start(struct redlock_client *client, struct redlock_lock *lock,
                                          uint32_t wait_ms)
{
    enum redlock_status status = rl_check(client, lock);

    if (status != REDLOCK_PENDING)
        return status;
    rl_ignore(client, lock, client->priv.all, RL_ANY); /* in whatever state it is. R11 */
    lock->valid_until_us = 0;
    lock->priv.attempt.again = 0;
    rl_begin(client, lock, REDLOCK_OP_RELEASE, RL_IN_RELEASE, wait_ms);
    if (lock->priv.attempt.asked != 0)
        return REDLOCK_PENDING;
    rl_move(client, lock, RL_NOWHERE);
    rl_enter(lock, RL_IS_IDLE);
    rl_set_fencing_token(lock, 0);
    return lock->status = REDLOCK_EXPIRED;
}

enum redlock_status redlock_adopt(struct redlock_client *client, struct redlock_lock *lock,
                                  uint32_t remaining_ms)
{
    enum redlock_status status = rl_check_idle(client, lock);

    if (status != REDLOCK_PENDING)
        return status;
    if (lock->priv.state == RL_IS_HELD)
        return REDLOCK_ALREADY_HELD;
    if ((lock->members & ~client->priv.all) != 0 || !rl_is_quorum(client, lock->members))
        return rl_invalid(client, RL_ARG_MEMBERS);
    if (remaining_ms > lock->ttl_ms)
        return rl_invalid(client, RL_ARG_REMAINING);
    rl_move(client, lock, RL_NOWHERE);
    memset(&lock->priv, 0, sizeof lock->priv);
    lock->priv.attempt.asked = client->priv.all;
    /* what the other client sent to these nodes may run later than our commands. R8b */
    lock->priv.attempt.suspect = client->priv.all & (redlock_mask)~lock->members;
    rl_set(&client->priv.abandoned, lock->priv.attempt.suspect);
    lock->priv.state = RL_IS_HELD;
    lock->priv.started_us = client->priv.io->now_us(client->priv.io->context);
    lock->valid_until_us = lock->priv.started_us + remaining_ms * RL_MS_US;
    lock->extended = 0;
    lock->operation = REDLOCK_OP_ACQUIRE;
    return lock->status = REDLOCK_OK;
}

void redlock_cancel(struct redlock_client *client, struct redlock_lock *lock)
{
    if (client == NULL || lock == NULL || lock->status != REDLOCK_PENDING)
        return;
    lock->priv.outcome = REDLOCK_CANCELLED;
    rl_touch(client, lock);
}

void redlock_abandon(struct redlock_client *client, struct redlock_lock *lock)
{
    if (client == NULL || lock == NULL || lock->status == REDLOCK_PENDING)
        return;
    rl_ignore_late(client, lock);
    rl_move(client, lock, RL_NOWHERE);
    lock->priv.state = RL_IS_IDLE;
    lock->priv.attempt.asked = 0;
    lock->valid_until_us = 0;
    rl_set_fencing_token(lock, 0);
}

unsigned redlock_wanted_events(const struct redlock_client *client, unsigned i)
{
    switch (client->priv.nodes[i].state) {
    case REDLOCK_NODE_CONNECTING:
        return REDLOCK_WRITABLE;
    case REDLOCK_NODE_HANDSHAKE:
    case REDLOCK_NODE_READY:
        return client->priv.out.unsent & rl_bit(i) ? REDLOCK_READABLE | REDLOCK_WRITABLE
                                                   : REDLOCK_READABLE;
    default:
        return 0;
    }
}

void redlock_handle_events(struct redlock_client *client, unsigned i, unsigned events)
{
    struct redlock_node *node = &client->priv.nodes[i];
    struct rl_input in;

    in.at = in.end = in.bytes;
    in.reads = 0;
    rl_node_event(client, node, events);
    rl_take_replies(client, node, events & REDLOCK_READABLE ? &in : NULL);
}

/* When something has to be done about a node. */
static uint64_t rl_node_due(const struct redlock_client *c, const struct redlock_node *node)
{
    int in_line = rl_first(c, RL_LINE) != NULL;
    uint64_t due_us = rl_node_stall_us(c, node), until_us;

    if (node->state == REDLOCK_NODE_READY)
        return due_us;
    if ((node->state == REDLOCK_NODE_DOWN || node->state == REDLOCK_NODE_IDLE) &&
        (in_line || (c->priv.wanted & rl_bit(node->priv.index))))
        return rl_node_retry_us(c, node);
    until_us = rl_connecting_until(c, node, rl_quorum_is_ready(c));
    return in_line && !rl_past(c, until_us) && until_us < due_us ? until_us : due_us;
}

/* Puts those of a list into TURN that can be sent to a node that is `ready`, or count on one that is
   `down`, or whose time is up. SETTLE needs no connection that is ready. */
static void rl_wake_blocked(struct redlock_client *c, unsigned list, unsigned ready, unsigned down)
{
    struct redlock_lock *lock, *next;

    for (lock = rl_first(c, list); lock != NULL; lock = next) {
        next = lock->priv.next;
        if ((lock->priv.todo & ready) || (lock->priv.todo & down & ~(unsigned)lock->failed) ||
            lock->priv.state == RL_IN_SETTLE || rl_past(c, lock->priv.due_us))
            rl_move(c, lock, RL_TURN);
    }
}

/* Puts into TURN what has to be looked at now. */
static void rl_wake(struct redlock_client *c)
{
    unsigned ready = c->priv.jammed ? 0 : c->priv.in[REDLOCK_NODE_READY] & ~(unsigned)c->priv.full;
    unsigned down = c->priv.in[REDLOCK_NODE_DOWN], list;
    struct redlock_lock *lock;

    if (rl_first(c, RL_LATER_LIST) == NULL && rl_first(c, RL_BLOCKED) == NULL)
        c->priv.wanted = 0;
    rl_wake_blocked(c, RL_BLOCKED, ready, down);
    if (c->priv.wanted & ready)
        rl_wake_blocked(c, RL_LATER_LIST, ready, 0);
    rl_clear(&c->priv.wanted, ready);
    for (list = RL_WAIT; list <= RL_LATER_LIST; list++)
        while ((lock = rl_first(c, list)) != NULL && rl_past(c, lock->priv.due_us))
            rl_move(c, lock, RL_TURN);
}

/* The earliest time for which some lock waits. */
static uint64_t rl_next_due(const struct redlock_client *c)
{
    uint64_t due_us = rl_first(c, RL_LINE) != NULL ? c->priv.line_us : REDLOCK_NEVER;
    unsigned list, i;

    for (list = RL_BLOCKED; list <= RL_LATER_LIST; list++) {
        const struct redlock_lock *lock = list != RL_LINE ? rl_first(c, list) : NULL;
        for (; lock != NULL; lock = list == RL_BLOCKED ? lock->priv.next : NULL)
            if (lock->priv.due_us < due_us)
                due_us = lock->priv.due_us;
    }
    for (i = 0; i < REDLOCK_OWED_MAX; i++) {
        const struct redlock_lock *copy = &c->priv.owed[i].lock;
        if ((copy->priv.todo & ~copy->priv.waits) != 0 && copy->priv.due_us < due_us)
            due_us = copy->priv.due_us;
    }
    return due_us;
}

uint64_t redlock_tick(struct redlock_client *client)
{
    uint64_t due_us;
    unsigned i;

    rl_read_clock(client);
    client->priv.ended = 0;
    for (i = 0; i < client->priv.count; i++) {
        struct redlock_node *node = &client->priv.nodes[i];
        if (!node->priv.replied && rl_past(client, rl_node_stall_us(client, node))) {
            redlock_handle_events(client, i, REDLOCK_READABLE); /* maybe nobody has listened. R5 */
            rl_read_clock(client);
        }
        rl_node_tick(client, node);
        rl_take_replies(client, node, NULL);
    }
    rl_wake(client);
    rl_turn_all(client);
    rl_owed_tick(client);
    for (i = 0; i < client->priv.count; i++)
        if (client->priv.out.unsent & rl_bit(i)) {
            rl_node_event(client, &client->priv.nodes[i], REDLOCK_WRITABLE);
            rl_take_replies(client, &client->priv.nodes[i], NULL);
        }
    due_us = rl_next_due(client);
    for (i = 0; i < client->priv.count; i++) {
        uint64_t node_us = rl_node_due(client, &client->priv.nodes[i]);
        due_us = node_us < due_us ? node_us : due_us;
    }
    if (client->priv.ended || rl_first(client, RL_TURN) != NULL)
        return 0; /* a lock is complete; a connection broke while sending */
    return due_us == REDLOCK_NEVER   ? due_us
           : rl_past(client, due_us) ? 0
                                     : due_us - client->priv.now_us;
}

struct redlock_lock *redlock_next_completed(struct redlock_client *client)
{
    struct redlock_lock *lock = rl_first(client, RL_DONE);

    if (lock != NULL)
        rl_put_away(client, lock);
    return lock;
}

/* ---- Blocking calls ---------------------------------------------------------------------------------- */

/* A loop over the event-driven calls, and an example of one. `started` is what the start said. */
static enum redlock_status rl_run_until_done(struct redlock_client *client,
                                             struct redlock_lock *lock, enum redlock_status started)
{
    const struct redlock_io *io;
    uint8_t events[REDLOCK_NODES_MAX];
    unsigned i;

    if (started != REDLOCK_PENDING)
        return started;
    io = client->priv.io;
    for (;;) {
        uint64_t wait_us = redlock_tick(client);
        if (lock->status != REDLOCK_PENDING)
            break;
        for (i = 0; i < client->priv.count; i++)
            events[i] = (uint8_t)redlock_wanted_events(client, i);
        io->wait(io->context, client->priv.nodes, client->priv.count, wait_us, events);
        for (i = 0; i < client->priv.count; i++)
            if (events[i] != 0)
                redlock_handle_events(client, i, events[i]);
    }
    rl_put_away(client, lock);
    return lock->status;
}

enum redlock_status redlock_acquire(struct redlock_client *client, struct redlock_lock *lock,
                                    uint32_t wait_ms)
{
    return rl_run_until_done(client, lock, redlock_acquire_start(client, lock, wait_ms));
}

enum redlock_status redlock_extend(struct redlock_client *client, struct redlock_lock *lock)
{
    return rl_run_until_done(client, lock, redlock_extend_start(client, lock));
}

enum redlock_status redlock_release(struct redlock_client *client, struct redlock_lock *lock,
                                    uint32_t wait_ms)
{
    return rl_run_until_done(client, lock, redlock_release_start(client, lock, wait_ms));
}

/* ---- Information ------------------------------------------------------------------------------------- */

uint32_t redlock_remaining_ms(const struct redlock_client *client, const struct redlock_lock *lock)
{
    uint64_t now, left;
    uint32_t coarse;

    if (client == NULL || client->priv.nodes == NULL || lock == NULL)
        return 0;
    now = client->priv.io->now_us(client->priv.io->context);
    if (now >= lock->valid_until_us)
        return 0;
    left = lock->valid_until_us - now;
    if (left < (uint64_t)1 << 32)
        return (uint32_t)left / 1000U;
    coarse = (uint32_t)(left >> 10); /* rounds down, and divides in 32 bits */
    return coarse + coarse / 125U * 3U;
}

uint32_t redlock_version(void)
{
    return REDLOCK_VERSION_NUMBER;
}

const char *redlock_holder_label(const struct redlock_lock *lock)
{
    const char *label = lock->holder;
    unsigned i;

    if (lock->holder_size == 0)
        return "";
    for (i = 0; i < 2 * sizeof lock->token; i++, label++)
        if (!(*label >= '0' && *label <= '9') && !(*label >= 'a' && *label <= 'f'))
            return "";
    return label;
}
