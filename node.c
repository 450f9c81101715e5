/* node.c - the connection to each server: connect, handshake, requests and their replies, the send
   buffer, time limits, when to connect again. Knows no lock's state: a lock is only the address of
   the requester.

   The rules that are kept here:

   R5  Order on a connection. Replies are matched by position; a reply that nobody needs any more
       keeps its place and is dropped on arrival. A node that replies what was not asked is
       disconnected, and so is one that owes a reply for stall_ms although all that has come was
       read. It is connected again after a growing, random pause, and counts as failed until its
       handshake is answered: a hung server accepts connections. A connection on which nothing came
       for stall_ms may have been dropped in silence. It is connected again at once when a reply has
       taken longer than the mean of the round trip and the time that a vote may take. A command
       that acquires is not sent again. So while one waits for its vote the connection stays, but
       from the first command on no longer than a vote may take.
   R12 Handshake first: HELLO 3 with user, password, and a name for the connection; AUTH, which
       counts where HELLO is refused: such a connection uses RESP2. But a server that is not ready
       yet, or refuses the password, fails the node. Then SELECT. Nothing else is queued before all
       of it is queued, only releases before all of it is answered, and nothing counts before that.
       A denied permission that is optional turns its feature off.
   R13 One server, one vote. Each server is asked for its run_id. A node is not used when another
       node, connected or not, has said the same.
   R14 Delayed restart. With longest_ttl_ms a server that may have lost keys is sent everything, but
       has no vote until the longest lock that it may have lost has expired. Until then it becomes
       no member, and a round that began before makes it none later: another client may count a
       grant that it has lost. There is one exception: in an extension a member votes that tells the
       generation that was known, as it has not lost our key. The age of a server is its uptime,
       which it computes by its wall clock. If the client knew another process of the server, that
       one still ran when its last reply came, so the present one is no older than that reply.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "core.h"

#include <string.h>

/* Bytes of a run_id that count: each build keeps these. */
enum { RL_RUN_MAX = 15 };

/* What the next item of the reply to HELLO is: a name, or the value of a name. */
enum rl_hello {
    RL_HELLO_NAME,
    RL_HELLO_SERVER,
    RL_HELLO_VERSION,
    RL_HELLO_MODE,
    RL_HELLO_ROLE,
    RL_HELLO_OTHER
};

/* The pauses before reconnects. R5 */
static const struct redlock_settings rl_reconnects = {
    .retry_delay_ms = 50,
    .retry_jitter_pct = 50,
    .retry_growth_pct = 100,
    .retry_delay_max_ms = 1600,
};

/* ---- Quorums, time limits, clock drift, random numbers -------------------------------------- */

REDLOCK_PRIVATE struct redlock_node *rl_first_node(const struct redlock_client *c, unsigned nodes)
{
    struct redlock_node *node = c->priv.nodes;

    for (; !(nodes & 1); nodes >>= 1)
        node++;
    return node;
}

REDLOCK_PRIVATE void rl_not_after(uint64_t *moment_us, uint64_t most_us)
{
    if (*moment_us > most_us)
        *moment_us = most_us;
}

REDLOCK_PRIVATE int rl_random(struct redlock_client *c, void *out, size_t size)
{
    return c->priv.io->entropy(c->priv.io->context, out, size);
}

REDLOCK_PRIVATE uint32_t rl_random_below(struct redlock_client *c, uint32_t range)
{
    uint32_t random = 0x80000000U; /* stays without entropy */

    (void)rl_random(c, &random, sizeof random);
    return (uint32_t)((uint64_t)random * range >> 32);
}

REDLOCK_PRIVATE uint32_t rl_backoff_us(struct redlock_client *c, const struct redlock_settings *s,
                                       unsigned times)
{
    uint32_t pause_ms = s->retry_delay_ms, jitter_us;

    for (; times > 0 && pause_ms < s->retry_delay_max_ms; times--)
        pause_ms += (pause_ms * s->retry_growth_pct + 99) / 100U;
    if (pause_ms > s->retry_delay_max_ms)
        pause_ms = s->retry_delay_max_ms;
    jitter_us = pause_ms * (s->retry_jitter_pct * 10U);
    return pause_ms * 1000U - jitter_us + rl_random_below(c, 2 * jitter_us + 1);
}

/* ttl * ppm, plus 2 ms because servers count whole milliseconds. 32-bit divisions only: 64-bit
   ones are a long library call on small machines. */
REDLOCK_PRIVATE uint64_t rl_drift_us(const struct redlock_client *c, uint32_t ttl_ms)
{
    uint32_t ppm = c->priv.settings.drift_ppm;

    return (uint64_t)(ttl_ms / 1000) * ppm + ttl_ms % 1000 * ppm / 1000 + 1 + 2 * RL_MS_US;
}

REDLOCK_PRIVATE int rl_is_quorum(const struct redlock_client *c, unsigned nodes)
{
    unsigned others = c->priv.quorum - 1U;

    for (; others > 0; others--)
        nodes &= nodes - 1; /* without one of them */
    return nodes != 0;
}

static uint32_t rl_round_trip_us(const struct redlock_client *c, const struct redlock_node *node)
{
    return node->rtt_us != 0 ? node->rtt_us : c->priv.settings.node_timeout_ms * 1000U;
}

/* The slowest node of the fastest quorum of ready nodes; NULL: fewer are ready. */
static const struct redlock_node *rl_deciding_node(const struct redlock_client *c)
{
    const struct redlock_node *end = c->priv.nodes + c->priv.count, *node, *other, *found = NULL;
    uint32_t least_us = UINT32_MAX;

    for (node = c->priv.nodes; node < end; node++) {
        uint32_t rtt_us = rl_round_trip_us(c, node);
        unsigned faster = 0;
        if (node->state != REDLOCK_NODE_READY || rtt_us >= least_us)
            continue;
        for (other = c->priv.nodes; other < end; other++)
            faster += other->state == REDLOCK_NODE_READY && rl_round_trip_us(c, other) <= rtt_us;
        if (faster < c->priv.quorum)
            continue;
        found = node;
        least_us = rtt_us;
    }
    return found;
}

REDLOCK_PRIVATE uint32_t rl_quorum_rtt_us(const struct redlock_client *c)
{
    const struct redlock_node *node = rl_deciding_node(c);

    return node != NULL ? rl_round_trip_us(c, node) : 0;
}

REDLOCK_PRIVATE uint32_t rl_quorum_brief_us(const struct redlock_client *c)
{
    const struct redlock_node *node = rl_deciding_node(c);
    uint32_t us = node != NULL ? rl_round_trip_us(c, node) : 0;

    return node != NULL && node->priv.variation_us < us ? us - node->priv.variation_us : 0;
}

REDLOCK_PRIVATE uint32_t rl_quorum_timeout_us(const struct redlock_client *c)
{
    const struct redlock_node *node = rl_deciding_node(c);

    return node != NULL ? node->priv.timeout_us : c->priv.settings.node_timeout_ms * 1000U;
}

REDLOCK_PRIVATE void rl_set_timeout(const struct redlock_client *c, struct redlock_node *node,
                                    uint32_t timeout_us)
{
    uint32_t least_us = c->priv.settings.node_timeout_ms * 1000U;
    uint32_t most_us = c->priv.settings.stall_ms * 1000U;

    if (timeout_us > most_us)
        timeout_us = most_us;
    node->priv.timeout_us = timeout_us > least_us ? timeout_us : least_us;
}

/* ---- The state of a connection -------------------------------------------------------------- */

/* Draws the pause before the next connect. After a denial it does not grow, if there is no quorum
   without the node: an administrator may have fixed it. R5 */
static void rl_draw_pause(struct redlock_client *c, struct redlock_node *node, int quorum)
{
    if (node->priv.denied && !quorum)
        node->priv.failures = 0;
    node->priv.reconnect_us =
        node->priv.changed_us + rl_backoff_us(c, &rl_reconnects, node->priv.failures);
    if (node->priv.failures < UINT8_MAX)
        node->priv.failures++;
    c->priv.tick_again = 1; /* locks that wait for the node go on */
}

/* Sets the state, and since when; a node that is DOWN begins its pause. */
static void rl_set_state(struct redlock_client *c, struct redlock_node *node,
                         enum redlock_node_state state)
{
    int quorum = rl_is_quorum(c, c->priv.in[REDLOCK_NODE_READY]);
    unsigned bit = node->priv.bit;

    RL_TRACE("node state", node, state);
    rl_clear(&c->priv.in[node->state], bit);
    rl_set(&c->priv.in[state], bit);
    node->state = state;
    /* a pause begins now, and not when the clock was read last */
    node->priv.changed_us = rl_now(c);
    if (state == REDLOCK_NODE_DOWN)
        rl_draw_pause(c, node, quorum);
    if (!quorum && rl_is_quorum(c, c->priv.in[REDLOCK_NODE_READY]))
        c->priv.quorum_us = node->priv.changed_us;
}

/* ---- Requests: commands whose replies are due, oldest first --------------------------------- */

/* The nth of the requests whose replies are due, the oldest first. */
static struct redlock_request *rl_request(struct redlock_node *node, unsigned nth)
{
    unsigned at = node->priv.first + nth;

    return &node->priv.requests[at < REDLOCK_PIPELINE_MAX ? at : at - REDLOCK_PIPELINE_MAX];
}

/* Whether a release takes a waiter out of its queue, or puts it back: the replies are alike. */
static int rl_is_of_queue(unsigned command)
{
    return REDLOCK_FAIR && (command == RL_LEAVE || command == RL_BACK);
}

/* Whether the last request can count one more command: both replies are dropped, and have the same
   form. */
static int rl_is_shared(const struct redlock_request *last, const void *owner, unsigned command)
{
    return owner == NULL && last->owner == NULL && last->repeats < UINT16_MAX &&
           (last->command == command || (rl_is_of_queue(last->command) && rl_is_of_queue(command)));
}

/* Whether one request is free besides the last one, which is kept for releases whose reply is
   dropped. They can share it, so a rollback never waits for it for long, also when thousands of
   locks are rolled back: rl_owe has room for a few. R4 */
static int rl_has_room(const struct redlock_node *node)
{
    return node->priv.count + 1 < REDLOCK_PIPELINE_MAX;
}

/* An attempt waits for a vote on a connection that was idle. R5 */
static void rl_expect_vote(const struct redlock_client *c, struct redlock_node *node,
                           const struct redlock_lock *lock)
{
    uint64_t until_us = c->priv.now_us + rl_vote_max_us(lock);

    if (node->priv.vote_until_us < until_us)
        node->priv.vote_until_us = until_us;
}

/* Notes one more command, and whether a free request is left. 0: there is no room. A free request has
   no repeats. */
static int rl_request_push(struct redlock_client *c, struct redlock_node *node, void *owner,
                           unsigned command, unsigned round)
{
    unsigned count = node->priv.count;
    struct redlock_request *request = rl_request(node, count > 0 ? count - 1 : 0);

    if (count == 0) {
        node->priv.was_idle =
            c->priv.now_us > node->priv.changed_us + c->priv.settings.stall_ms * RL_MS_US;
        node->priv.changed_us = c->priv.now_us;
        node->priv.vote_until_us = 0;
    }
    if (count == 0 || !rl_is_shared(request, owner, command)) {
        if (!rl_has_room(node) && (owner != NULL || count == REDLOCK_PIPELINE_MAX))
            return 0;
        node->priv.count++;
        if (!rl_has_room(node))
            rl_set(&c->priv.full, node->priv.bit);
        if (node->priv.was_idle && rl_is(command & ~(unsigned)RL_BY_HASH, RL_ACQUIRES))
            rl_expect_vote(c, node, (const struct redlock_lock *)owner);
        request = rl_request(node, count);
        if (node->priv.timed == 0 && !node->priv.sampled) {
            node->priv.timed = node->priv.count;
            node->priv.timed_us = c->priv.now_us;
        }
    }
    request->repeats++;
    request->owner = owner;
    request->command = (uint8_t)command;
    request->round = (uint8_t)round;
    return 1;
}

/* The oldest request is answered. */
static void rl_request_pop(struct redlock_node *node)
{
    if (--node->priv.requests[node->priv.first].repeats > 0)
        return;
    node->priv.count--;
    if (node->priv.search_from > 0)
        node->priv.search_from--;
    if (node->priv.timed > 0)
        node->priv.timed--;
    if (++node->priv.first == REDLOCK_PIPELINE_MAX)
        node->priv.first = 0;
}

/* Locks are mostly decided in the order in which they asked. So the search goes on where the last
   one ended, and mostly finds the request at once, however many there are. */
REDLOCK_PRIVATE void rl_disown_replies(struct redlock_client *c, const void *owner, unsigned i,
                                       unsigned most, struct redlock_owed *owed)
{
    struct redlock_node *node = c->priv.nodes + i;
    unsigned n;

    for (n = node->priv.count; n > 0 && most > 0; n--) {
        struct redlock_request *request;

        if (node->priv.search_from >= node->priv.count)
            node->priv.search_from = 0;
        request = rl_request(node, node->priv.search_from++);
        if (request->owner != owner)
            continue;
        request->owner = owed;
        request->round = RL_OWED;
        most--;
    }
}

/* ---- Sending -------------------------------------------------------------------------------- */

/* Bytes that wait to be sent stand in one buffer of the client, each once for all nodes that are
   sent them. The buffer is a sequence of runs: the nodes of a run are sent its bytes. Each node
   has a cursor: it was sent all its bytes in front of that. The buffer is emptied when all is
   sent. */

static void rl_out_sent(struct redlock_client *c, unsigned bit)
{
    rl_clear(&c->priv.out.unsent, bit);
    if (c->priv.out.unsent != 0)
        return;
    c->priv.tick_again |= c->priv.jammed; /* what waits for room goes on at once */
    c->priv.out.used = c->priv.out.runs = c->priv.jammed = 0;
}

/* A reply of the process came at that time, or before. R14 */
static void rl_note_heard(struct redlock_node *node, uint64_t now_us)
{
    if (node->priv.run != 0)
        node->priv.heard_us = now_us;
}

/* Disconnects. If all that is wrong is that the connection was lost, a node that `reconnect` marks
   may be connected again at once: servers close idle connections. Any other waits out a pause.
   R5 */
static void rl_node_broke(struct redlock_client *c, struct redlock_node *node, enum rl_error error)
{
    unsigned bit = node->priv.bit;

    if (error != RL_CONNECTION_LOST)
        node->priv.reconnect = 0;
    rl_set_error(node, error);
    c->priv.io->shut(c->priv.io->context, node);
    rl_out_sent(c, bit);
    rl_clear(&c->priv.full, bit);
    memset(&node->priv.reader, 0, sizeof node->priv.reader);
    rl_set_state(c, node, node->priv.reconnect ? REDLOCK_NODE_IDLE : REDLOCK_NODE_DOWN);
    rl_set(&c->priv.lost_untold, bit);
    if (!REDLOCK_MINIMAL && (c->priv.replied & bit)) /* before the tick that would note it */
        rl_note_heard(node, rl_now(c));
    rl_clear(&c->priv.replied, bit);
    node->priv.timed = node->priv.sampled = node->priv.was_idle = 0;
}

REDLOCK_PRIVATE void rl_transmit(struct redlock_client *c, struct redlock_node *node)
{
    unsigned bit = node->priv.bit, run = 0, from = node->priv.cursor, to;

    if (!(c->priv.out.unsent & bit))
        return;
    for (;;) {
        int moved;

        /* as many runs at once as follow each other */
        for (to = 0; run < c->priv.out.runs; run++) {
            const struct redlock_run *next = &c->priv.out_run[run];
            if (next->nodes & bit)
                to = next->end;
            else if (to > from)
                break;
            else if (next->end > from)
                from = next->end;
        }
        if (to <= from)
            break;
        moved =
            c->priv.io->transmit(c->priv.io->context, node, c->priv.out_bytes + from, to - from);
        if (moved < 0) {
            rl_node_broke(c, node, RL_CONNECTION_LOST);
            return;
        }
        from += (unsigned)moved;
        node->priv.cursor = (uint16_t)from;
        if (from < to)
            return;
    }
    rl_out_sent(c, bit);
}

/* Makes room in the buffer by sending all of it. 0: some node has not taken all, so it is jammed
   until each has. */
static int rl_make_room(struct redlock_client *c)
{
    unsigned nodes = c->priv.out.unsent;
    struct redlock_node *node = c->priv.nodes;

    for (; nodes != 0; nodes >>= 1, node++)
        if (nodes & 1)
            rl_transmit(c, node);
    if (c->priv.out.unsent == 0)
        return 1;
    if (!c->priv.jammed)
        c->priv.jammed_us = c->priv.now_us;
    c->priv.jammed = 1;
    return 0;
}

/* A node without unsent bytes is sent what is written from now on. */
static void rl_out_begin(const struct redlock_client *c, struct redlock_node *node, unsigned bit)
{
    if (!(c->priv.out.unsent & bit))
        node->priv.cursor = c->priv.out.used;
}

/* The bytes that were written behind the used ones are for these nodes. */
static void rl_out_add(struct redlock_client *c, unsigned nodes, size_t size)
{
    struct redlock_run *next = &c->priv.out_run[c->priv.out.runs];

    if (c->priv.out.runs > 0 && next[-1].nodes == nodes)
        next--;
    else
        c->priv.out.runs++;
    next->nodes = (redlock_mask)nodes;
    c->priv.out.used = (uint16_t)(c->priv.out.used + size);
    next->end = c->priv.out.used;
    rl_set(&c->priv.out.unsent, nodes);
}

REDLOCK_PRIVATE size_t rl_encode(struct redlock_client *c, const struct rl_message *message)
{
    struct resp_writer w = {c->priv.out_bytes + c->priv.out.used,
                            REDLOCK_SEND_MAX - (size_t)c->priv.out.used, 0, 0};

    rl_put_command(&w, message);
    return w.overflow || c->priv.out.runs == sizeof c->priv.out_run / sizeof *c->priv.out_run
               ? 0
               : w.used;
}

/* The nodes that were sent the script of this command, which is of RL_HASHED. R11 */
static redlock_mask *rl_have_script(struct redlock_client *c, unsigned command)
{
    return &c->priv.have_script[command == RL_DELETE ? 0 : command == RL_GATE ? 1 : 2];
}

/* The node is connected anew, maybe to another process of the server. R11 */
static void rl_forget_scripts(struct redlock_client *c, unsigned bit)
{
    rl_clear(rl_have_script(c, RL_DELETE), bit);
    rl_clear(rl_have_script(c, RL_GATE), bit);
    rl_clear(rl_have_script(c, RL_LEAVE), bit);
    rl_clear(&c->priv.refuse_hashes, bit);
}

/* Queues the message for these nodes. Returns those of them that it is queued for. */
static redlock_mask rl_send_message(struct redlock_client *c, struct rl_message *message,
                                    void *from, unsigned nodes, unsigned round)
{
    void *owner = round == RL_NO_REPLY ? NULL : from;
    unsigned command = message->command | (message->by_hash ? RL_BY_HASH : 0U);
    struct redlock_node *node = c->priv.nodes;
    unsigned bit, sent = 0;
    size_t size;

    do {
        nodes &= rl_up(c);
        if (nodes == 0)
            return 0;
        message->node = rl_first_node(c, nodes); /* a command for several does not ask for it */
        size = rl_encode(c, message);
        /* too long for an empty buffer is only a password that has grown since redlock_init */
        if (size == 0 && (c->priv.out.used == 0 || !rl_make_room(c)))
            return 0;
    } while (size == 0);
    for (bit = 1; bit <= nodes; bit <<= 1, node++) {
        if (!(nodes & bit))
            continue;
        if (rl_request_push(c, node, owner, command, round)) {
            rl_out_begin(c, node, bit);
            sent |= bit;
        }
    }
    if (sent != 0)
        rl_out_add(c, sent, size);
    return (redlock_mask)sent;
}

/* Whether a script may go by its hash: only if the reply is awaited. Else the script that follows a
   refused hash comes too late: the lock is complete, so the release may be lost; or a waiter of the
   same client has asked before the key was gone, and no server tells the waiter of that. R11 */
static int rl_may_send_hash(const struct redlock_lock *lock, unsigned round)
{
    if (round == RL_NO_REPLY)
        return 0;
    if (lock == NULL) /* a release that is repeated */
        return 1;
    if (lock->priv.state == RL_ROLLING_BACK)
        return rl_others_had_it(lock);
    return lock->operation != REDLOCK_OP_RELEASE || lock->priv.op.waits;
}

REDLOCK_PRIVATE redlock_mask rl_send(struct redlock_client *c, void *from, unsigned nodes,
                                     unsigned command, unsigned round)
{
    struct rl_message message = {NULL, NULL, NULL, command, 0};
    const struct redlock_lock *lock = (const struct redlock_lock *)from;
    redlock_mask sent, *have;
    unsigned hashed = 0; /* nodes that are sent the hash */

    if (REDLOCK_OWED_MAX > 0 && round == RL_OWED)
        message.owed = (const struct redlock_owed *)from;
    else
        message.lock = lock;
    /* The hash is that of the script for random tokens: a label that is the token has another one. */
    if (!rl_is(command, RL_HASHED) || (message.lock != NULL && lock->token_is_label))
        return rl_send_message(c, &message, from, nodes, round);
    have = rl_have_script(c, command);
    if (rl_may_send_hash(message.lock, round))
        hashed = nodes & *have & ~(unsigned)c->priv.refuse_hashes;
    sent = rl_send_message(c, &message, from, nodes & ~hashed, round);
    rl_set(have, sent);
    message.by_hash = 1;
    return (redlock_mask)(sent | rl_send_message(c, &message, from, hashed, round));
}

/* ---- Connecting ----------------------------------------------------------------------------- */

/* Whether the handshake of this node contains this command. AUTH goes behind HELLO without waiting
   for the reply, and logs in where HELLO is refused. A handshake is never empty, because a hung
   server accepts connections, and does not end with HELLO, because a server that refuses it may
   close the connection. R5, R12 */
static int rl_handshake_has(const struct redlock_node *node, unsigned command)
{
    int secret = node->password != NULL;

    switch (command) {
    case RL_HELLO:
        return !REDLOCK_MINIMAL && !secret;
    case RL_HELLO_AUTH:
        return !REDLOCK_MINIMAL && secret;
    case RL_AUTH:
    case RL_AUTH_USER:
        return secret && command == rl_auth(node);
    case RL_SELECT:
        return node->database > 0 || (REDLOCK_MINIMAL && !secret);
    case RL_TRACK:
        return !REDLOCK_MINIMAL && node->priv.tracks;
    default: /* RL_INFO */
        return !REDLOCK_MINIMAL;
    }
}

/* Queues as much of the handshake as there is room for. R12 */
static void rl_send_handshake(struct redlock_client *c, struct redlock_node *node)
{
    for (; node->priv.handshake < RL_READY; node->priv.handshake++) {
        if (!rl_handshake_has(node, node->priv.handshake))
            continue;
        if (rl_send(c, NULL, node->priv.bit, node->priv.handshake, RL_NO_REPLY) == 0)
            return;
    }
}

REDLOCK_PRIVATE void rl_track(struct redlock_client *c, unsigned nodes)
{
    for (; !REDLOCK_MINIMAL && nodes != 0; nodes &= nodes - 1) {
        struct redlock_node *node = rl_first_node(c, nodes);
        if (!node->priv.tracks && rl_has_room(node) &&
            rl_send(c, NULL, node->priv.bit, RL_TRACK, RL_NO_REPLY) != 0)
            node->priv.tracks = 1;
    }
}

static void rl_finish_connect(struct redlock_client *c, struct redlock_node *node)
{
    int up = c->priv.io->ready(c->priv.io->context, node);

    if (up > 0) {
        rl_set_state(c, node, REDLOCK_NODE_HANDSHAKE);
    } else if (up < 0) {
        rl_node_broke(c, node, RL_CANNOT_CONNECT);
    }
}

REDLOCK_PRIVATE void rl_connect_if_due(struct redlock_client *c, struct redlock_node *node,
                                       uint64_t too_late_us)
{
    if (node->state == REDLOCK_NODE_DOWN) {
        uint64_t due_us = node->priv.reconnect_us;
        if (due_us >= too_late_us && !rl_past(c, too_late_us)) /* soon, but no busy loop */
            due_us = node->priv.changed_us + (due_us - node->priv.changed_us) / 64;
        if (!rl_past(c, due_us))
            return;
    } else {
        rl_clear_error(node); /* that a server closed an idle connection is no error */
    }
    if (node->priv.count > 0)
        return; /* the locks have not taken the replies yet */
    node->priv.reconnect = node->priv.denied = node->priv.hello_next = 0;
    node->priv.reconnect_us = 0; /* if this connection is only lost, the next one is due at once */
    node->priv.handshake = RL_HELLO;
    node->priv.resp2 = 0; /* it may have HELLO by now */
    node->priv.notifies = 0;
    node->priv.release = RL_DELETE;
    node->priv.only_script = 0;
    node->priv.no_queue = RL_KEEPS_QUEUE;
    if (!REDLOCK_MINIMAL)
        rl_forget_scripts(c, node->priv.bit);
    node->priv.run = node->priv.age_s = 0;
    if (c->priv.io->dial(c->priv.io->context, node) != 0) {
        rl_set_error(node, RL_CANNOT_CONNECT);
        rl_set_state(c, node, REDLOCK_NODE_DOWN);
        return;
    }
    rl_set_state(c, node, REDLOCK_NODE_CONNECTING);
    rl_finish_connect(c, node);
}

REDLOCK_PRIVATE void rl_node_send(struct redlock_client *c, struct redlock_node *node)
{
    if (node->state == REDLOCK_NODE_CONNECTING)
        rl_finish_connect(c, node);
    if (node->state == REDLOCK_NODE_HANDSHAKE)
        rl_send_handshake(c, node);
    rl_transmit(c, node);
}

/* ---- Replies -------------------------------------------------------------------------------- */

/* Notes a reply, before it can break the connection. If the oldest request is timed, this ends its
   round trip. */
static void rl_note_reply(struct redlock_client *c, struct redlock_node *node)
{
    rl_set(&c->priv.replied, node->priv.bit);
    node->priv.was_idle = 0;
    if (node->priv.timed == 1) {
        node->priv.timed = 0;
        node->priv.sampled = 1;
    }
}

static enum rl_hello rl_hello_name(const char *name)
{
    return strcmp(name, "server") == 0    ? RL_HELLO_SERVER
           : strcmp(name, "version") == 0 ? RL_HELLO_VERSION
           : strcmp(name, "mode") == 0    ? RL_HELLO_MODE
           : strcmp(name, "role") == 0    ? RL_HELLO_ROLE
                                          : RL_HELLO_OTHER;
}

/* Whether a version such as "8.4.0" is at least this one. */
static int rl_is_version(const char *text, unsigned major, unsigned minor)
{
    unsigned number[2] = {0, 0}, i;

    for (i = 0; i < 2; i++) {
        for (; *text >= '0' && *text <= '9' && number[i] < 1000; text++)
            number[i] = number[i] * 10 + (unsigned)(*text - '0');
        if (*text == '.')
            text++;
    }
    return number[0] > major || (number[0] == major && number[1] >= minor);
}

/* Which command of its own releases on a server of this version: DELIFEQ on Valkey 9.0, DELEX on
   Redis 8.4. R11 */
static unsigned rl_native_release(unsigned command, const char *version)
{
    int has_it =
        command == RL_DELIFEQ ? rl_is_version(version, 9, 0) : rl_is_version(version, 8, 4);

    return REDLOCK_MINIMAL || !has_it ? RL_DELETE : command;
}

/* An item of the reply to HELLO, which is a list of names and values; some values are lists.
   Returns an error that only another configuration fixes. */
static enum rl_error rl_hello_replied(struct redlock_node *node, const struct resp_item *item)
{
    unsigned what = node->priv.hello_next;

    if (item->depth != 1)
        return RL_NO_ERROR;
    node->priv.hello_next = RL_HELLO_NAME;
    if (what == RL_HELLO_NAME)
        node->priv.hello_next = (uint8_t)rl_hello_name(item->text);
    else if (what == RL_HELLO_SERVER)
        node->priv.release = strcmp(item->text, "valkey") == 0 ? RL_DELIFEQ : RL_DELEX;
    else if (what == RL_HELLO_VERSION) {
        node->priv.release = (uint8_t)rl_native_release(node->priv.release, item->text);
        if (!rl_is_version(item->text, 6, 2))
            node->priv.no_queue = RL_TOO_OLD;
    } else if (what == RL_HELLO_MODE && strcmp(item->text, "sentinel") == 0)
        return RL_IS_A_SENTINEL;
    else if (what == RL_HELLO_ROLE && strcmp(item->text, "master") != 0)
        return RL_IS_A_REPLICA;
    return RL_NO_ERROR;
}

/* An item of the reply to INFO: the run_id, or the age. Returns an error that only another
   configuration fixes. */
static enum rl_error rl_info_replied(struct redlock_client *c, struct redlock_node *node,
                                     const struct resp_item *item)
{
    const struct redlock_node *other = c->priv.nodes;
    unsigned n;

    if (item->kind == RESP_INTEGER && item->integer > 0) /* the clock may have been set back */
        node->priv.age_s = (uint32_t)item->integer;
    if (item->kind != RESP_STRING)
        return RL_NO_ERROR;
    node->priv.run = rl_hash(
        item->text, item->text_used < RL_RUN_MAX ? item->text_used : RL_RUN_MAX, item->size);
    /* R13: connected or not, its votes may still count */
    for (n = c->priv.count; n > 0; n--, other++)
        if (other != node && other->priv.last_run == node->priv.run) {
            node->priv.run = node->priv.last_run = 0; /* the node leads to another server now */
            return RL_IS_THE_SAME_SERVER;
        }
    if (node->priv.last_run != node->priv.run)
        node->priv.began_us = node->priv.last_run != 0 ? node->priv.heard_us : 0;
    node->priv.last_run = node->priv.run;
    return RL_NO_ERROR;
}

/* How long the process has run: its uptime, but no longer than since it can have begun. The uptime
   is a difference of wall clocks. So it grows when the server's clock is set forward, as after a
   boot with a late clock. Notes when the process began, so that its age at the next connection is
   no more than the time since then. R14 */
static uint64_t rl_age_us(const struct redlock_client *c, struct redlock_node *node)
{
    uint64_t age_us = node->priv.age_s * (uint64_t)1000000, now_us = c->priv.now_us;

    if (node->priv.run == 0)
        return age_us;
    if (node->priv.began_us != 0)
        rl_not_after(&age_us, now_us - node->priv.began_us);
    node->priv.began_us = age_us < now_us ? now_us - age_us : 0;
    return age_us;
}

/* An age of n seconds may be little more than n - 1, and a second is for the process before this
   one to be gone. R14 */
static void rl_votes_from_now(struct redlock_client *c, struct redlock_node *node)
{
    uint32_t longest_ms = c->priv.settings.longest_ttl_ms;
    uint64_t age_us, wait_us;

    if (REDLOCK_MINIMAL || longest_ms == 0)
        return;
    age_us = rl_age_us(c, node);
    wait_us = longest_ms * RL_MS_US + rl_drift_us(c, longest_ms) + 2000000;
    node->priv.votes_us = c->priv.now_us;
    if (wait_us > age_us)
        node->priv.votes_us += wait_us - age_us;
}

/* The server runs no scripts yet. A later connection asks for the run_id: R13 and R14 rest on
   it. */
static int rl_is_not_ready(const struct resp_item *item)
{
    return rl_is_error(item, "LOADING\0BUSY\0");
}

/* An error to HELLO that AUTH and RESP2 would not help against: it is temporary, or about the
   password. R12 */
static int rl_fails_hello(const struct redlock_node *node, const struct resp_item *item)
{
    return rl_is_not_ready(item) || rl_is_error(item, "WRONGPASS\0") ||
           (node->password == NULL && rl_is_error(item, "NOAUTH\0"));
}

/* Whether this command of the handshake is HELLO. */
static int rl_is_hello(unsigned command)
{
    return !REDLOCK_MINIMAL && command <= RL_HELLO_AUTH;
}

/* Whether an error to this command of the handshake fails the node. After any other to HELLO the
   connection uses RESP2, and after HELLO that to AUTH does not matter. Without TRACK there are no
   notifications, without INFO there is no run_id. */
static int rl_handshake_fails(const struct redlock_node *node, unsigned command)
{
    const struct resp_item *item = &node->priv.reader.item;

    if (rl_is_hello(command))
        return rl_fails_hello(node, item);
    if (command <= RL_AUTH_USER)
        return rl_is_resp2(node);
    return command == RL_SELECT ||
           (!REDLOCK_MINIMAL && command == RL_INFO && rl_is_not_ready(item));
}

/* An error to a command of the handshake. What HELLO replied is the node's error until the
   handshake is over: the server may close the connection now, or refuse AUTH, too. A refused AUTH
   is a denial, whatever the words. */
static void rl_handshake_refused(struct redlock_client *c, struct redlock_node *node,
                                 unsigned command)
{
    struct resp_item *item = &node->priv.reader.item;
    int fails = rl_handshake_fails(node, command), hello = rl_is_hello(command);

    if (!fails && !hello)
        return;
    node->priv.denied =
        (uint8_t)(rl_is_denial(item) || (command == rl_auth(node) && !rl_is_not_ready(item)));
    rl_set_server_error(node, RL_REPLIED, item);
    if (node->priv.denied && node->fault == REDLOCK_FAULT_REPLIED)
        node->fault = REDLOCK_FAULT_DENIED; /* AUTH is refused in many words */
    if (fails)
        rl_node_broke(c, node, RL_NO_ERROR);
    else
        node->priv.resp2 = 1;
}

/* An item of a reply to the handshake, maybe the last; 0: it cannot be one. */
static int rl_handshake_replied(struct redlock_client *c, struct redlock_node *node,
                                unsigned command)
{
    const struct resp_item *item = &node->priv.reader.item;
    int is_hello = rl_is_hello(command);
    enum rl_error error;

    if (item->kind == RESP_ERROR) {
        rl_handshake_refused(c, node, command);
    } else if (is_hello || (!REDLOCK_MINIMAL && command == RL_INFO)) {
        if (item->depth == 0 && item->kind != RESP_MAP && item->kind != RESP_SEQUENCE)
            return 0;
        error = is_hello ? rl_hello_replied(node, item) : rl_info_replied(c, node, item);
        if (error != RL_NO_ERROR) {
            node->priv.denied = 1;
            rl_clear_error(node);
            rl_node_broke(c, node, error);
        }
    } else {
        if (item->kind != RESP_STATUS)
            return 0;
        if (command == RL_TRACK) /* RESP2 has no pushes */
            node->priv.notifies = (uint8_t)!rl_is_resp2(node);
    }
    return 1;
}

/* The reply to a command of a lock. */
static enum rl_vote rl_lock_replied(struct redlock_client *c, struct redlock_node *node,
                                    unsigned command, unsigned by_hash)
{
    struct resp_item *item = &node->priv.reader.item;
    enum rl_vote vote = rl_vote_of(command, item);

    if (vote == RL_NONSENSE)
        return vote;
    node->priv.reconnect = 1;
    node->priv.failures = node->priv.retried_at_once = 0;
    /* The server, or a proxy in front of it, does not know or permit hashes, or has forgotten the
       script. The script follows; but not that of a gate, if the error does not say that the hash was
       refused: the gate may have run, and would run twice. A server that is busy or loads its data
       says nothing about hashes. R9, R11 */
    if (!REDLOCK_MINIMAL && by_hash && item->kind == RESP_ERROR && !rl_is_not_ready(item)) {
        rl_set(&c->priv.refuse_hashes, node->priv.bit);
        if (command != RL_GATE || vote == RL_DENIED || rl_is_error(item, "NOSCRIPT\0"))
            return RL_UNDECIDED;
    }
    /* The user may be permitted the key of the lock only, and what follows is not denied. That the
       server is a replica now says nothing of that. R19 */
    if (REDLOCK_FAIR && command == RL_GATE && vote == RL_DENIED &&
        !rl_is_error(item, "READONLY\0")) {
        node->priv.no_queue = RL_GATE_DENIED;
        return RL_UNDECIDED;
    }
    if (REDLOCK_FAIR && node->priv.no_queue == RL_GATE_DENIED && vote == RL_DENIED &&
        rl_is(command, RL_ACQUIRES))
        node->priv.no_queue = RL_KEEPS_QUEUE;
    if (rl_is(command, RL_NATIVE)) {
        if (item->kind == RESP_ERROR)
            node->priv.only_script = 1;
        return vote == RL_YES ? vote : RL_UNDECIDED;
    }
    if (item->kind == RESP_ERROR)
        rl_set_server_error(node, RL_REPLIED, item);
    else if (rl_is(command, RL_WRITES)) { /* a release does not prove that an error is gone */
        rl_clear_error(node);
        if (!rl_may_vote(c, node))
            rl_set_error(node, RL_QUARANTINED);
    }
    return vote;
}

/* An item has come: fills `reply`, but for the vote, which it returns. Without an owner there is
   nothing to deliver; an invalidation is the node's. The vote is RL_NONSENSE where the item
   belongs to no request. Only replies to the handshake have more than one item: any other list is
   nonsense from its head on. */
static enum rl_vote rl_item_came(struct redlock_client *c, struct redlock_node *node, int last,
                                 struct rl_reply *reply)
{
    struct redlock_request *request = &node->priv.requests[node->priv.first]; /* the oldest */
    struct resp_item *item = &node->priv.reader.item;
    enum rl_vote vote = RL_NO;

    reply->owner = NULL;
    reply->command = rl_command_of(request);
    reply->round = request->round;
    if (!REDLOCK_MINIMAL && item->pushed) {
        if ((item->kind == RESP_STRING && item->depth == 2) ||
            (item->kind == RESP_NIL && item->depth == 1)) { /* FLUSHALL */
            reply->command = RL_INVALIDATION;
            reply->owner = node;
        }
        return RL_NO;
    }
    if (node->priv.count == 0) {
        if (item->kind == RESP_ERROR)
            rl_set_server_error(node, RL_UNSOLICITED, item);
        return RL_NONSENSE;
    }
    if (last)
        rl_note_reply(c, node);
    if (reply->command >= RL_HELLO) {
        if (!rl_handshake_replied(c, node, reply->command))
            return RL_NONSENSE;
    } else {
        vote = rl_lock_replied(c, node, reply->command, request->command & RL_BY_HASH);
        if (vote == RL_NONSENSE)
            return vote;
        reply->owner = request->owner;
    }
    if (last) {
        rl_request_pop(node);
        if (rl_has_room(node))
            rl_clear(&c->priv.full, node->priv.bit);
    }
    return vote;
}

/* The oldest request of a broken connection is RL_UNANSWERED. */
static void rl_leave_unanswered(struct redlock_node *node, struct rl_reply *reply)
{
    struct redlock_request *request = rl_request(node, 0);

    reply->owner = request->owner;
    reply->command = rl_command_of(request);
    reply->round = request->round;
    reply->vote = RL_UNANSWERED;
    request->repeats = 1;
    rl_request_pop(node);
}

/* 0: there is no more to read now. */
static int rl_receive(struct redlock_client *c, struct redlock_node *node, struct rl_input *in)
{
    int moved, silent;

    in->reads--;
    silent = node->state == REDLOCK_NODE_HANDSHAKE && node->error[0] == '\0';
    moved = c->priv.io->receive(c->priv.io->context, node, c->priv.input, sizeof c->priv.input);
    if (moved < 0 && silent) { /* the text of `receive` says less */
        rl_clear_error(node);
        rl_node_broke(c, node, RL_CLOSED_IN_HANDSHAKE);
    } else if (moved < 0) {
        rl_node_broke(c, node, RL_CONNECTION_LOST);
    }
    if (moved < (int)sizeof c->priv.input)
        in->reads = 0;
    if (moved <= 0)
        return 0;
    in->at = c->priv.input;
    in->end = c->priv.input + moved;
    return 1;
}

REDLOCK_PRIVATE int rl_node_reply(struct redlock_client *c, struct redlock_node *node,
                                  struct rl_input *in, struct rl_reply *reply)
{
    enum resp_event event;

    if (!rl_is_up(node)) {
        rl_leave_unanswered(node, reply);
        return reply->owner != NULL;
    }
    if (in->at == in->end && !rl_receive(c, node, in))
        return 0;
    event = resp_read(&node->priv.reader, &in->at, in->end);
    if (event == RESP_MORE)
        return 0;
    reply->vote = RL_NONSENSE;
    if (event != RESP_BAD)
        reply->vote = rl_item_came(c, node, event == RESP_REPLY, reply);
    if (reply->vote != RL_NONSENSE)
        return reply->owner != NULL;
    rl_node_broke(c, node, event == RESP_BAD ? RL_NOT_RESP : RL_UNEXPECTED_REPLY);
    return 0;
}

/* ---- Time ----------------------------------------------------------------------------------- */

/* Whether the node keeps the send buffer full, and so delays all others. */
static int rl_jams(const struct redlock_client *c, const struct redlock_node *node)
{
    return c->priv.jammed && (c->priv.out.unsent & node->priv.bit) != 0;
}

/* How long a node may keep the send buffer full: half of the time that the others have for a
   reply, or one and a half round trips to a quorum of nodes, because a far node needs one to
   accept more bytes. */
static uint32_t rl_jam_us(const struct redlock_client *c)
{
    uint32_t least_us = c->priv.settings.node_timeout_ms * 500U, us = rl_quorum_rtt_us(c) * 3 / 2;

    return us > least_us ? us : least_us;
}

/* A connection that was idle may be half open: until when it may be silent. Then it is connected
   again at once. R5 */
static uint64_t rl_idle_until_us(const struct redlock_node *node)
{
    uint64_t until_us = node->priv.changed_us + (node->rtt_us + node->priv.timeout_us) / 2;
    uint64_t vote_us = node->priv.vote_until_us;

    rl_not_after(&vote_us, node->priv.changed_us + node->priv.timeout_us);
    return until_us > vote_us ? until_us : vote_us;
}

REDLOCK_PRIVATE uint64_t rl_node_stall_us(const struct redlock_client *c,
                                          const struct redlock_node *node)
{
    uint64_t due_us = node->priv.changed_us + c->priv.settings.stall_ms * RL_MS_US + 1;

    if (node->priv.was_idle)
        rl_not_after(&due_us, rl_idle_until_us(node));
    if (rl_jams(c, node))
        rl_not_after(&due_us, c->priv.jammed_us + rl_jam_us(c) + 1);
    else if (node->priv.count == 0 && node->state != REDLOCK_NODE_CONNECTING &&
             (node->state != REDLOCK_NODE_HANDSHAKE || node->priv.handshake == RL_READY))
        return REDLOCK_NEVER; /* but a handshake that does not fit into the buffer is given up */
    return due_us;
}

REDLOCK_PRIVATE unsigned rl_without_vote(const struct redlock_client *c, unsigned nodes)
{
    unsigned left;

    if (REDLOCK_MINIMAL)
        return 0;
    for (left = nodes; left != 0; left &= left - 1)
        if (rl_may_vote(c, rl_first_node(c, left)))
            nodes &= ~rl_lowest(left);
    return nodes;
}

/* The handshake is answered: from now on replies of the node count as votes. */
static void rl_make_ready(struct redlock_client *c, struct redlock_node *node)
{
    rl_set_state(c, node, REDLOCK_NODE_READY);
    if (!rl_is_failing(node) && !node->priv.retried_at_once) {
        node->priv.reconnect = 1;
        node->priv.retried_at_once = 1;
    }
    if (!REDLOCK_MINIMAL && rl_is_resp2(node)) {
        node->priv.denied = 0;
        rl_clear_error(node); /* of HELLO */
    }
    rl_votes_from_now(c, node);
}

/* The smoothed round trip, its variation, and how long a reply may take, as RFC 6298 computes them
   for TCP. One request at a time is timed, from when it was queued. The weights are 1/8 and 1/4;
   the variation counts four times, and as half of node_timeout_ms at least. R15 */
static void rl_measure(struct redlock_client *c, struct redlock_node *node)
{
    uint32_t sample_us = (uint32_t)(c->priv.now_us - node->priv.timed_us), rtt_us = node->rtt_us;
    uint32_t off_us = sample_us > rtt_us ? sample_us - rtt_us : rtt_us - sample_us;
    uint32_t margin_us = c->priv.settings.node_timeout_ms * 500U;

    node->rtt_us = rtt_us == 0 ? sample_us : rtt_us - rtt_us / 8 + sample_us / 8;
    node->priv.variation_us =
        rtt_us == 0 ? sample_us / 2
                    : node->priv.variation_us - node->priv.variation_us / 4 + off_us / 4;
    if (margin_us < node->priv.variation_us * 4)
        margin_us = node->priv.variation_us * 4;
    rl_set_timeout(c, node, node->rtt_us + margin_us);
}

/* The error of a node that stalls. */
static enum rl_error rl_stall_error(const struct redlock_client *c, const struct redlock_node *node)
{
    return node->state == REDLOCK_NODE_CONNECTING ? RL_NO_CONNECTION_IN_TIME
           : node->priv.was_idle                  ? RL_CONNECTION_LOST
           : rl_jams(c, node)                     ? RL_ACCEPTS_NO_DATA
                                                  : RL_NO_REPLY_IN_TIME;
}

REDLOCK_PRIVATE void rl_node_late(struct redlock_client *c, struct redlock_node *node)
{
    if (!rl_past(c, rl_node_stall_us(c, node)))
        return;
    if (node->priv.was_idle) /* or it is farther away than before. R15 */
        rl_set_timeout(c, node, 2 * node->priv.timeout_us);
    rl_node_broke(c, node, rl_stall_error(c, node));
}

REDLOCK_PRIVATE void rl_node_replied(struct redlock_client *c, struct redlock_node *node)
{
    if (node->priv.sampled)
        rl_measure(c, node);
    node->priv.sampled = 0;
    node->priv.changed_us = c->priv.now_us;
    if (!REDLOCK_MINIMAL)
        rl_note_heard(node, c->priv.now_us);
    if (node->state == REDLOCK_NODE_HANDSHAKE && node->priv.handshake == RL_READY &&
        node->priv.count == 0)
        rl_make_ready(c, node);
}
