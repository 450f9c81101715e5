/* fake.c - see fake.h.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fake_node fake_nodes[FAKE_NODES];
struct fake_command fake_log[FAKE_LOG];
unsigned fake_logged;
uint64_t fake_now_us, fake_wall_us, fake_transmit_us, fake_sleep_us, fake_receive_us, fake_clock_us;
uint32_t fake_forks;
int fake_no_entropy;
unsigned fake_clock_bits = 64;
unsigned fake_waits;
int fake_unlogged;

static uint32_t fake_seed;
static struct fake_held fake_held[FAKE_HELD]; /* in the order of their connections */

/* ---- Servers -------------------------------------------------------------------------------- */

static struct mini_word fake_text(const char *text)
{
    struct mini_word word;

    word.bytes = text;
    word.size = (unsigned)strlen(text);
    return word;
}

static struct mini_server *fake_server(int node)
{
    fake_nodes[node].server.now_us = fake_now_us;
    return &fake_nodes[node].server;
}

const struct mini_key *fake_find(int node, const void *key, unsigned size)
{
    return mini_find(fake_server(node), key, size);
}

void fake_put(int node, const char *key, const char *value, uint32_t ttl_ms)
{
    mini_store(fake_server(node), fake_text(key), fake_text(value),
               ttl_ms == 0 ? UINT64_MAX : fake_now_us + ttl_ms * (uint64_t)1000);
}

unsigned fake_keys_left(void)
{
    unsigned left = 0;
    int node;

    for (node = 0; node < FAKE_NODES; node++)
        left += fake_nodes[node].hung ? 0 : mini_keys_left(fake_server(node));
    return left;
}

static void fake_reply(int node, const char *bytes, unsigned size)
{
    struct fake_node *n = &fake_nodes[node];
    uint64_t ready_us = fake_now_us + n->delay_us;

    if (n->out_used + size > FAKE_BYTES)
        mini_fail("the client does not read");
    memcpy(n->out + n->out_used, bytes, size);
    n->out_used += size;
    /* Replies keep their order: with a shorter delay than before, earlier ones are ready at this time, too. */
    while (n->dues > 0 && (n->dues == FAKE_DUE || n->due[n->dues - 1].ready_us >= ready_us))
        n->dues--;
    n->due[n->dues].end = n->out_used;
    n->due[n->dues++].ready_us = ready_us;
}

/* When the next byte is ready, or the end of the stream. */
static uint64_t fake_ready_us(const struct fake_node *n)
{
    return n->out_first < n->out_used ? n->due[0].ready_us : n->ended ? fake_now_us : REDLOCK_NEVER;
}

/* How many bytes are ready. */
static unsigned fake_there(const struct fake_node *n)
{
    unsigned i, end = n->out_first;

    for (i = 0; i < n->dues && n->due[i].ready_us <= fake_now_us; i++)
        end = n->due[i].end;
    return end - n->out_first;
}

static void fake_taken(struct fake_node *n, unsigned size)
{
    n->out_first += size;
    while (n->dues > 0 && n->due[0].end <= n->out_first)
        memmove(n->due, n->due + 1, --n->dues * sizeof *n->due);
    if (n->out_first == n->out_used)
        n->out_first = n->out_used = 0;
}

void fake_delete(int node, const char *key)
{
    struct mini_key *found = mini_find(fake_server(node), key, (unsigned)strlen(key));
    char push[MINI_REPLY];
    unsigned size;

    if (found == NULL)
        return;
    found->name.size = 0;
    size = mini_notify(&fake_nodes[node].session, fake_text(key), push);
    if (size > 0)
        fake_reply(node, push, size);
}

void fake_push(int node, const char *key)
{
    char push[MINI_REPLY];

    fake_reply(node, push,
               (unsigned)sprintf(push, ">2\r\n$10\r\ninvalidate\r\n*1\r\n$%u\r\n%s\r\n",
                                 (unsigned)strlen(key), key));
}

static void fake_copy(char *to, size_t room, struct mini_word word)
{
    size_t size = word.size < room - 1 ? word.size : room - 1;

    memcpy(to, word.bytes, size);
    to[size] = '\0';
}

static void fake_note(int node, const struct mini_command *command)
{
    struct fake_command *note = &fake_log[fake_logged];

    if (fake_unlogged)
        return;
    if (++fake_logged == FAKE_LOG)
        mini_fail("too many commands");
    memset(note, 0, sizeof *note);
    note->at_us = fake_now_us;
    note->node = node;
    note->epoch = fake_nodes[node].epoch;
    note->kind = command->by_hash && command->kind == 'D' ? 'd' : command->kind;
    if (!mini_is_of_a_lock(command))
        return;
    fake_copy(note->key, sizeof note->key, command->keys[0]);
    fake_copy(note->token, sizeof note->token, command->arguments[0]);
    note->repairs = command->repairs;
    note->queues = command->queues;
    note->ttl_ms = command->ttl_ms;
}

/* What a server replies where another client has the key: to SET; to a release; at the gate, where
   one more waiter stands in front. */
static const char *fake_refusal(const struct mini_command *command)
{
    if (command->kind == 'D')
        return "$13\r\n60000 another\r\n";
    return command->queues ? "$29\r\n1700000000000 1 60000 another\r\n" : "$-1\r\n";
}

/* Logs a command and runs it, or replies `reply` or a refusal instead. */
static void fake_run_command(int node, struct mini_command *command)
{
    struct fake_node *n = &fake_nodes[node];
    char reply[MINI_REPLY];
    unsigned size;

    fake_note(node, command);
    if (n->all_held && mini_is_of_a_lock(command)) {
        fake_reply(node, fake_refusal(command), (unsigned)strlen(fake_refusal(command)));
        return;
    }
    if (n->reply == NULL || !mini_is_of_a_lock(command)) {
        size = mini_run(fake_server(node), &n->session, command, reply);
        if (command->kind != 'S' || !n->drops_set_reply)
            fake_reply(node, reply, size);
        n->ended = command->kind == 'H' && n->closes_at_hello;
        return;
    }
    if (n->reply[0] == '\0')
        fake_break(node);
    else
        fake_reply(node, n->reply, (unsigned)strlen(n->reply));
    if (n->reply_once)
        n->reply = NULL;
}

/* Runs the whole commands among the bytes that have arrived. */
static void fake_serve(int node)
{
    struct fake_node *n = &fake_nodes[node];
    struct mini_command command;
    unsigned used;

    while (n->connected && !n->hung && !n->ended &&
           (used = mini_read(n->in, n->in_used, &command)) > 0) {
        fake_run_command(node, &command);
        if (n->in_used >= used) { /* not after fake_break */
            memmove(n->in, n->in + used, n->in_used - used);
            n->in_used -= used;
        }
    }
}

void fake_break(int node)
{
    fake_nodes[node].connected = 0;
    fake_nodes[node].in_used = 0;
}

void fake_hold(int node)
{
    struct fake_node *n = &fake_nodes[node];
    unsigned i = 0;

    if (!n->connected)
        mini_fail("no connection to hold back");
    while (i < FAKE_HELD && fake_held[i].used)
        i++;
    if (i == FAKE_HELD)
        mini_fail("too many connections are held back");
    n->held = &fake_held[i];
    n->held->used = 1;
    n->held->node = node;
    n->held->epoch = n->epoch;
    n->held->session = n->session;
    n->held->in_used = 0;
}

/* Runs the whole commands that have arrived. If the connection is up, the replies are sent. */
static unsigned fake_run_held(struct fake_held *held)
{
    struct fake_node *n = &fake_nodes[held->node];
    struct mini_command command;
    char reply[MINI_REPLY];
    unsigned used, first = 0, ran = 0, size;
    int epoch = n->epoch;

    n->epoch = held->epoch;
    while ((used = mini_read(held->in + first, held->in_used - first, &command)) > 0) {
        fake_note(held->node, &command);
        size = mini_run(fake_server(held->node), &held->session, &command, reply);
        if (n->held == held)
            fake_reply(held->node, reply, size);
        first += used;
        ran++;
    }
    n->epoch = epoch;
    if (n->held == held) {
        n->session = held->session;
        n->held = NULL;
    }
    held->used = 0;
    return ran;
}

unsigned fake_arrive(int node)
{
    unsigned i, oldest = FAKE_HELD;

    for (i = 0; i < FAKE_HELD; i++)
        if (fake_held[i].used && fake_held[i].node == node &&
            (oldest == FAKE_HELD || fake_held[i].epoch < fake_held[oldest].epoch))
            oldest = i;
    return oldest < FAKE_HELD ? fake_run_held(&fake_held[oldest]) : 0;
}

void fake_restart(int node)
{
    struct mini_server *server = &fake_nodes[node].server;
    unsigned i;

    fake_break(node);
    for (i = 0; i < FAKE_HELD; i++)
        if (fake_held[i].node == node)
            fake_held[i].used = 0;
    fake_nodes[node].held = NULL;
    server->used = 0;
    memset(server->keys, 0, sizeof server->keys);
    server->scripts = 0;
    server->run++;
    server->age_s = 0;
}

void fake_resume(int node)
{
    fake_nodes[node].hung = 0;
    fake_serve(node);
}

unsigned fake_count(int node, char kind)
{
    unsigned i, count = 0;

    for (i = 0; i < fake_logged; i++)
        count += (node < 0 || fake_log[i].node == node) &&
                 (fake_log[i].kind == kind || (kind == 'D' && fake_log[i].kind == 'd'));
    return count;
}

/* ---- The io table --------------------------------------------------------------------------- */

static int fake_dial(void *context, struct redlock_node *node)
{
    int i = atoi(node->address);
    struct fake_node *n = &fake_nodes[i];

    (void)context;
    n->connects++;
    if (n->refuses) {
        redlock_set_error(node, "connect", "refused");
        return -1;
    }
    n->epoch++;
    n->connected = 1;
    n->in_used = n->out_first = n->out_used = n->dues = 0;
    n->up_us = fake_now_us + n->connect_us;
    n->held = NULL;
    n->ended = 0;
    memset(&n->session, 0, sizeof n->session);
    node->handle = i;
    if (n->first_bytes != NULL)
        fake_reply(i, n->first_bytes, (unsigned)strlen(n->first_bytes));
    return 0;
}

static int fake_is_up(const struct fake_node *n)
{
    return !n->never_up && n->up_us <= fake_now_us;
}

static int fake_ready(void *context, struct redlock_node *node)
{
    (void)context;
    if (!fake_nodes[node->handle].connected) {
        redlock_set_error(node, "connect", "reset");
        return -1;
    }
    return fake_is_up(&fake_nodes[node->handle]);
}

static int fake_transmit(void *context, struct redlock_node *node, const void *bytes, size_t size)
{
    struct fake_node *n = &fake_nodes[node->handle];

    (void)context;
    fake_now_us += fake_transmit_us;
    if (!n->connected) {
        redlock_set_error(node, "send", "broken pipe");
        return -1;
    }
    if (n->full)
        return 0;
    if (n->full_calls > 0) {
        n->full_calls--;
        return 0;
    }
    if (n->drip)
        size = 1;
    if (n->held != NULL) {
        if (n->held->in_used + size > sizeof n->held->in)
            mini_fail("too many bytes held back");
        memcpy(n->held->in + n->held->in_used, bytes, size);
        n->held->in_used += (unsigned)size;
        return (int)size;
    }
    if (n->in_used + size > FAKE_BYTES)
        mini_fail("too many bytes");
    memcpy(n->in + n->in_used, bytes, size);
    n->in_used += (unsigned)size;
    fake_serve((int)node->handle);
    return (int)size;
}

static int fake_readable(const struct fake_node *n)
{
    return !n->connected || fake_ready_us(n) <= fake_now_us;
}

static int fake_receive(void *context, struct redlock_node *node, void *bytes, size_t size)
{
    struct fake_node *n = &fake_nodes[node->handle];
    unsigned there = fake_there(n);

    (void)context;
    if (there > 0) {
        if (n->drip)
            size = 1;
        size = size < there ? size : there;
        memcpy(bytes, n->out + n->out_first, size);
        fake_taken(n, (unsigned)size);
        return (int)size;
    }
    if (n->connected && (!n->ended || n->out_first < n->out_used)) {
        fake_now_us += fake_receive_us;
        return 0;
    }
    redlock_set_error(node, "receive", "closed by the server");
    return -1;
}

static void fake_shut(void *context, struct redlock_node *node)
{
    (void)context;
    if (node->handle < 0)
        mini_fail("shut twice");
    fake_nodes[node->handle].connected = 0;
    fake_nodes[node->handle].held = NULL; /* held bytes can still arrive */
    if (!fake_nodes[node->handle].hung)   /* a hung server still runs what it was sent */
        fake_nodes[node->handle].in_used = 0;
    node->handle = -1;
}

static uint64_t fake_clock(void *context)
{
    (void)context;
    fake_now_us += fake_clock_us;
    return fake_clock_bits < 64 ? fake_now_us % ((uint64_t)1 << fake_clock_bits) : fake_now_us;
}

static uint64_t fake_wall(void *context)
{
    (void)context;
    return fake_wall_us;
}

static uint32_t fake_process(void *context)
{
    (void)context;
    return fake_forks;
}

static int fake_entropy(void *context, void *bytes, size_t size)
{
    uint8_t *to = (uint8_t *)bytes;

    (void)context;
    if (fake_no_entropy)
        return -1;
    while (size-- > 0) {
        fake_seed = fake_seed * 1664525U + 1013904223U;
        *to++ = (uint8_t)(fake_seed >> 24);
    }
    return 0;
}

/* When the next of the wanted events occurs on a node, without an action of the client. */
static uint64_t fake_next_us(const struct fake_node *n, unsigned wanted)
{
    if (!n->connected)
        return fake_now_us;
    if ((wanted & REDLOCK_WRITABLE) && !n->full && !n->never_up)
        return n->up_us > fake_now_us ? n->up_us : fake_now_us;
    return fake_ready_us(n);
}

static void fake_wait(void *context, struct redlock_node *nodes, unsigned count,
                      uint64_t timeout_us, uint8_t *events)
{
    uint64_t until = timeout_us == REDLOCK_NEVER ? REDLOCK_NEVER : fake_now_us + timeout_us;
    unsigned i;

    (void)context;
    if (++fake_waits > 1000000)
        mini_fail("an endless loop");
    for (i = 0; i < count; i++)
        if (events[i] != 0 && fake_next_us(&fake_nodes[nodes[i].handle], events[i]) < until)
            until = fake_next_us(&fake_nodes[nodes[i].handle], events[i]);
    if (until == REDLOCK_NEVER)
        mini_fail("a wait without end");
    if (until > fake_now_us)
        fake_now_us = until;
    if (timeout_us > 0) { /* not in a look at what has come */
        fake_now_us += fake_sleep_us;
        fake_sleep_us = 0;
    }
    for (i = 0; i < count; i++) {
        unsigned wanted = events[i], got = 0;
        const struct fake_node *n = wanted != 0 ? &fake_nodes[nodes[i].handle] : NULL;

        if (n != NULL && (wanted & REDLOCK_READABLE) && fake_readable(n))
            got |= REDLOCK_READABLE;
        if (n != NULL && (wanted & REDLOCK_WRITABLE) &&
            (!n->connected || (!n->full && fake_is_up(n))))
            got |= REDLOCK_WRITABLE;
        events[i] = (uint8_t)got;
    }
}

const struct redlock_io *fake_io(void)
{
    static const struct redlock_io io = {fake_dial, fake_ready, fake_transmit, fake_receive,
                                         fake_shut, fake_clock, fake_entropy,  fake_wait,
                                         NULL,      fake_wall,  fake_process,  NULL};

    return &io;
}

void fake_begin(struct redlock_client *client, struct redlock_node *nodes, unsigned count,
                const struct redlock_settings *settings)
{
    static const char *const names[FAKE_NODES] = {"0", "1", "2",  "3",  "4",  "5",  "6",  "7",
                                                  "8", "9", "10", "11", "12", "13", "14", "15"};
    unsigned i;

    for (i = 0; i < FAKE_NODES; i++) {
        struct fake_node *n = &fake_nodes[i];
        unsigned keys = n->server.used < MINI_KEYS ? n->server.used : MINI_KEYS;
        memset(n->server.keys, 0, keys * sizeof *n->server.keys);
        /* the rest of the keys, and the buffers, are left out to save time */
        memset(n, 0, offsetof(struct fake_node, server) + offsetof(struct mini_server, keys));
        memset(&n->in_used, 0, sizeof *n - offsetof(struct fake_node, in_used));
        n->delay_us = 1000;
        n->server.run = 1000 * (i + 1);
    }
    fake_logged = 0;
    fake_unlogged = 0;
    memset(fake_held, 0, sizeof fake_held);
    fake_now_us = (uint64_t)1 << 40;
    fake_transmit_us = fake_sleep_us = fake_receive_us = fake_clock_us = 0;
    fake_no_entropy = 0;
    fake_clock_bits = 64;
    fake_wall_us = (uint64_t)1 << 50;
    fake_forks = 0;
    fake_waits = 0;
    fake_seed = 1;
    memset(nodes, 0, count * sizeof *nodes);
    for (i = 0; i < count; i++)
        nodes[i].address = names[i];
    if (redlock_init(client, fake_io(), nodes, count, settings) != REDLOCK_OK)
        mini_fail("init");
}

void fake_pass(struct redlock_client *client, uint64_t us)
{
    uint64_t end = fake_now_us + us;
    uint8_t events[REDLOCK_NODES_MAX];
    unsigned i;

    for (;;) {
        uint64_t wait_us = redlock_tick(client);

        if (fake_now_us >= end)
            return;
        if (wait_us > end - fake_now_us)
            wait_us = end - fake_now_us;
        for (i = 0; i < client->priv.count; i++)
            events[i] = (uint8_t)redlock_wanted_events(client, i);
        fake_wait(NULL, client->priv.nodes, client->priv.count, wait_us, events);
        for (i = 0; i < client->priv.count; i++)
            if (events[i] != 0)
                redlock_handle_events(client, i, events[i]);
    }
}
