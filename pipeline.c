/* pipeline.c - the commands on their way to each server: the send buffer, and the requests whose replies
   are due. What happens when a connection breaks is here too, because both lose what belongs to it. Called by
   all files above it but vote.c.

   Replies are matched by position: a reply that nobody needs any more keeps its place, and is dropped
   when it comes. R5

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#define REDLOCK_ENGINE
#include "core.h"

#include <string.h>

enum {
    /* the first pause before a reconnect, which doubles, and the longest; before jitter of half of it to both sides */
    RL_RECONNECT_MIN_MS = 50,
    RL_RECONNECT_MAX_MS = 1600,
    RL_CONNECT_MS = 100 /* a quorum waits so long for the connections to the rest. R2 */
};

/* Draws the pause before the next connect. After a denial it does not grow, if there is no quorum without the node: an
   administrator may have fixed it. R5 */
static void rl_draw_pause(struct redlock_client *c, struct redlock_node *node, int quorum)
{
    uint32_t pause_ms = node->priv.pause_ms * 2U;

    if (pause_ms < RL_RECONNECT_MIN_MS || (node->priv.denied && !quorum))
        pause_ms = RL_RECONNECT_MIN_MS;
    if (pause_ms > RL_RECONNECT_MAX_MS)
        pause_ms = RL_RECONNECT_MAX_MS;
    node->priv.pause_ms = (uint16_t)pause_ms;
    node->priv.pause_us = pause_ms * 500U + rl_random_below(c, pause_ms * 1000U);
    c->priv.tick_again = 1; /* locks that wait for the node go on */
}

/* From now on attempts wait for the rest so long. R2 */
static void rl_await_rest(struct redlock_client *c)
{
    uint32_t wait_ms = c->priv.settings.node_timeout_ms * 2;

    if (wait_ms > RL_CONNECT_MS)
        wait_ms = RL_CONNECT_MS;
    c->priv.rest_us = c->priv.now_us + wait_ms * RL_MS_US;
}

REDLOCK_PRIVATE void rl_set_state(struct redlock_client *c, struct redlock_node *node,
                                  enum redlock_node_state state)
{
    int quorum = rl_is_quorum(c, c->priv.in[REDLOCK_NODE_READY]);
    unsigned bit = node->priv.bit;

    rl_clear(&c->priv.in[node->state], bit);
    rl_set(&c->priv.in[state], bit);
    node->state = state;
    node->priv.mark_us = rl_now(c); /* a pause begins now, and not when the clock was read last */
    if (state == REDLOCK_NODE_DOWN)
        rl_draw_pause(c, node, quorum);
    /* a connection begins, or a quorum of them is ready; before that it does no harm */
    if (!quorum || (state == REDLOCK_NODE_CONNECTING && !rl_is_failing(node)))
        rl_await_rest(c);
}

/* ---- Requests: commands whose replies are due, oldest first ------------------------------------- */

REDLOCK_PRIVATE struct redlock_request *rl_request(struct redlock_node *node, unsigned nth)
{
    unsigned at = node->priv.first + nth;

    return &node->priv.requests[at < REDLOCK_PIPELINE_MAX ? at : at - REDLOCK_PIPELINE_MAX];
}

/* Whether the last request can count one more command: the same one, and both replies are dropped. */
static int rl_is_shared(const struct redlock_request *last, const void *owner, unsigned command)
{
    return owner == NULL && last->owner == NULL && last->command == command &&
           last->repeats < UINT16_MAX;
}

/* Notes one more command. 0: there is no room. A free request has no repeats. The last free one is kept for commands
   whose reply is dropped. They can share it, so a rollback never waits for it for long. */
static int rl_push(const struct redlock_client *c, struct redlock_node *node, void *owner,
                   unsigned command, unsigned role)
{
    unsigned count = node->priv.count;
    struct redlock_request *request = rl_request(node, count > 0 ? count - 1 : 0);

    if (count == 0)
        node->priv.mark_us = c->priv.now_us;
    if (count == 0 || !rl_is_shared(request, owner, command)) {
        if (count + (owner != NULL) >= REDLOCK_PIPELINE_MAX)
            return 0;
        node->priv.count++;
        request = rl_request(node, count);
        if (node->priv.timed == 0 && !node->priv.sampled) {
            node->priv.timed = node->priv.count;
            node->priv.timed_us = c->priv.now_us;
        }
    }
    request->repeats++;
    request->owner = owner;
    request->command = (uint8_t)command;
    request->role = (uint8_t)role;
    return 1;
}

REDLOCK_PRIVATE void rl_pop(struct redlock_node *node)
{
    rl_set_part(node, 0);
    if (--node->priv.requests[node->priv.first].repeats > 0)
        return;
    node->priv.count--;
    if (node->priv.sought > 0)
        node->priv.sought--;
    if (node->priv.timed > 0)
        node->priv.timed--;
    if (++node->priv.first == REDLOCK_PIPELINE_MAX)
        node->priv.first = 0;
}

/* A late reply is of use to a command that creates the key, and to an extension: it says whether the key is there.
   A repair makes no member, nor does an extension behind an unanswered command that creates the key. The reply to a
   command that creates the key is never dropped here. R8, R8b, R9 */
static void rl_hand_over(struct redlock_request *request, void *new_owner, unsigned role)
{
    unsigned command = request->command & RL_COMMAND;

    if (role == RL_LATE || role == RL_STALE) {
        if (rl_is(command, RL_CREATING))
            new_owner = request->owner;
        else if (command != RL_EXTEND)
            new_owner = NULL;
        if ((REDLOCK_REPAIR && command == RL_REPAIR) || request->role == RL_YOUNG)
            role = RL_STALE;
    }
    request->owner = new_owner;
    request->role = (uint8_t)role;
}

/* Locks are mostly decided in the order in which they asked. So the search goes on where the last one ended, and
   mostly finds the request at once, however many there are. */
REDLOCK_PRIVATE redlock_mask rl_redirect(struct redlock_client *c, const void *owner,
                                         unsigned nodes, void *new_owner, unsigned role)
{
    struct redlock_node *node = c->priv.nodes;
    redlock_mask extended = 0;
    unsigned n;

    nodes &= c->priv.all; /* the masks of a lock may be those of a former client */
    for (; nodes != 0; nodes >>= 1, node++)
        for (n = nodes & 1 ? node->priv.count : 0U; n > 0; n--) {
            struct redlock_request *request;

            if (node->priv.sought >= node->priv.count)
                node->priv.sought = 0;
            request = rl_request(node, node->priv.sought++);
            if (request->owner == owner && (role == RL_NOBODY || request->role < RL_LATE)) {
                rl_hand_over(request, new_owner, role);
                if (request->owner != NULL && (request->command & RL_COMMAND) == RL_EXTEND)
                    rl_set(&extended, node->priv.bit);
                break;
            }
        }
    return extended;
}

/* ---- Sending ------------------------------------------------------------------------------------ */

/* Bytes that wait to be sent stand in one buffer of the client, each once for all nodes that are sent
   them. The buffer is a sequence of runs: the nodes of a run are sent its bytes. Each node has a cursor: it was
   sent all its bytes in front of that. The buffer is emptied when all is sent. */

static void rl_out_sent(struct redlock_client *c, unsigned bit)
{
    rl_clear(&c->priv.out.unsent, bit);
    if (c->priv.out.unsent != 0)
        return;
    c->priv.tick_again |= c->priv.jammed; /* what waits for room goes on at once */
    c->priv.out.used = c->priv.out.runs = c->priv.jammed = 0;
}

/* Disconnects. A node that had been useful may be connected again at once, if all that is wrong is that the connection was
   lost: servers close idle connections. Any other waits out a pause. R5 */
REDLOCK_PRIVATE void rl_node_broke(struct redlock_client *c, struct redlock_node *node,
                                   enum rl_error error)
{
    unsigned bit = node->priv.bit;

    if (error != RL_CONNECTION_LOST)
        node->priv.useful = 0;
    rl_set_error(node, error);
    c->priv.io->shut(c->priv.io->context, node);
    rl_out_sent(c, bit);
    rl_clear(&c->priv.full, bit);
    memset(&node->priv.reader, 0, sizeof node->priv.reader);
    rl_set_state(c, node, node->priv.useful ? REDLOCK_NODE_IDLE : REDLOCK_NODE_DOWN);
    rl_set(&c->priv.broke, bit);
    node->priv.replied = node->priv.timed = node->priv.sampled = 0;
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

/* Makes room in the buffer by sending all of it. 0: some node has not taken all, so it is jammed until each has. */
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

REDLOCK_PRIVATE size_t rl_encode(struct redlock_client *c, const struct rl_message *message,
                                 unsigned flags)
{
    struct resp_writer w = {c->priv.out_bytes + c->priv.out.used,
                            REDLOCK_SEND_MAX - (size_t)c->priv.out.used, 0, 0};

    rl_put_command(&w, message, flags);
    return w.overflow || c->priv.out.runs == sizeof c->priv.out_run / sizeof *c->priv.out_run
               ? 0
               : w.used;
}

REDLOCK_PRIVATE redlock_mask rl_send(struct redlock_client *c, void *from, unsigned nodes,
                                     unsigned command, unsigned role)
{
    struct rl_message message = {c, NULL, NULL, NULL, command & RL_COMMAND};
    void *owner = role == RL_NOBODY ? NULL : from;
    struct redlock_node *node = c->priv.nodes;
    unsigned bit, sent = 0;
    size_t size;

    if (REDLOCK_OWED_MAX > 0 && role == RL_OWED)
        message.owed = (const struct redlock_owed *)from;
    else
        message.lock = (const struct redlock_lock *)from;
    if (rl_durable(c) && rl_is(message.command, RL_WRITING))
        command |= RL_WITH_SYNC;
    do {
        nodes &= rl_up(c);
        if (nodes == 0)
            return 0;
        message.node = rl_first_node(c, nodes); /* a command for several does not ask for it */
        size = rl_encode(c, &message, command);
        if (size == 0 && (c->priv.out.used == 0 || !rl_make_room(c)))
            return 0; /* too long for an empty buffer is only a password that has grown since redlock_init */
    } while (size == 0);
    for (bit = 1; bit <= nodes; bit <<= 1, node++) {
        if (!(nodes & bit))
            continue;
        if (rl_push(c, node, owner, command, role)) {
            rl_out_begin(c, node, bit);
            sent |= bit;
        } else if (from != NULL) {
            rl_set(&c->priv.full, bit);
        }
    }
    if (sent != 0)
        rl_out_add(c, sent, size);
    return (redlock_mask)sent;
}
