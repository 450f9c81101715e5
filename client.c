/* client.c - the public calls: set-up, checks of arguments, the event loop, blocking calls. Called
   by programs.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "core.h"

#include <string.h>

enum {
    RL_TTL_MIN_MS = 10,
    RL_TTL_MAX_MS = 0x7fffffff,
    RL_CATCH_UP_MAX = 4, /* reads of a blocking call before it begins */
    RL_FRESH_US = 1000   /* an acquire does not read first if the client was served since then */
};

/* ---- Set up --------------------------------------------------------------------------------- */

/* The settings, in the order of struct redlock_settings, which is all uint32_t. */
enum rl_setting {
    RL_QUORUM,
    RL_NODE_TIMEOUT,
    RL_STALL,
    RL_RETRIES,
    RL_RETRY_DELAY,
    RL_RETRY_JITTER,
    RL_RETRY_GROWTH,
    RL_RETRY_DELAY_MAX,
    RL_DRIFT,
    RL_EXTEND_MAX,
    RL_LONGEST_TTL,
    RL_FAIR,
    RL_SETTINGS
};

/* The largest value of each setting, its default, and whether it may be REDLOCK_NONE. The defaults
   of quorum and stall_ms depend on other values. */
static const struct {
    uint32_t most;
    uint16_t usual;
    uint8_t may_be_none;
} rl_settings[RL_SETTINGS] = {
    [RL_QUORUM] = {16, 0, 0},
    [RL_NODE_TIMEOUT] = {60000, 50, 0},
    [RL_STALL] = {600000, 0, 0},
    [RL_RETRIES] = {254, UINT8_MAX, 1},
    [RL_RETRY_DELAY] = {600000, 100, 1},
    [RL_RETRY_JITTER] = {100, 50, 1},
    [RL_RETRY_GROWTH] = {1000, 50, 1},
    [RL_RETRY_DELAY_MAX] = {600000, 1000, 0},
    [RL_DRIFT] = {500000, 10000, 1},
    [RL_EXTEND_MAX] = {65535, 100, 1},
    [RL_LONGEST_TTL] = {!REDLOCK_MINIMAL ? RL_TTL_MAX_MS : 0, 0, 0},
    [RL_FAIR] = {REDLOCK_FAIR, 0, 0},
};

typedef char rl_every_setting_has_a_range
    [sizeof(struct redlock_settings) == RL_SETTINGS * sizeof(uint32_t) ? 1 : -1];

/* Copies the settings, checks each, and sets the default where there is a 0. Returns the index of
   the first invalid one, or RL_SETTINGS. */
static unsigned rl_set_settings(struct redlock_settings *settings,
                                const struct redlock_settings *given, unsigned count)
{
    const uint32_t *from = (const uint32_t *)(const void *)given;
    uint32_t *to = (uint32_t *)(void *)settings;
    unsigned i;

    for (i = 0; i < RL_SETTINGS; i++) {
        uint32_t value = from[i];
        if (value == 0)
            value = rl_settings[i].usual;
        else if (value == REDLOCK_NONE && rl_settings[i].may_be_none)
            value = 0;
        else if (value > rl_settings[i].most)
            return i;
        to[i] = value;
    }
    if (settings->quorum == 0)
        settings->quorum = count / 2 + 1;
    if (settings->quorum < count / 2 + 1 || settings->quorum > count)
        return RL_QUORUM;
    if (settings->stall_ms == 0)
        settings->stall_ms = settings->node_timeout_ms > 500 ? 2 * settings->node_timeout_ms : 1000;
    return RL_SETTINGS;
}

/* The longest command with the password. */
static unsigned rl_longest_login(const struct redlock_node *node)
{
    return !REDLOCK_MINIMAL ? RL_HELLO_AUTH : rl_auth(node);
}

/* What is wrong with a node, or RL_NO_ERROR. */
static enum rl_error rl_bad_node(struct redlock_client *c, const struct redlock_node *nodes,
                                 const struct redlock_node *node)
{
    struct rl_message message = {NULL, NULL, node, rl_longest_login(node), 0};

    if (node->user != NULL && node->password == NULL)
        return RL_USER_WITHOUT_PASSWORD;
    if (node->password != NULL && rl_encode(c, &message) == 0)
        return RL_LONG_PASSWORD;
    if (node->address == NULL || node->address[0] == '\0')
        return RL_NO_ADDRESS;
    for (; nodes < node; nodes++)
        if (nodes->address != NULL && strcmp(node->address, nodes->address) == 0)
            return RL_IS_THE_SAME_SERVER;
    return RL_NO_ERROR;
}

static enum redlock_status rl_invalid(struct redlock_client *c, unsigned argument)
{
    c->priv.invalid = (uint8_t)argument;
    return REDLOCK_INVALID_ARGUMENT;
}

static uint32_t rl_process(const struct redlock_io *io)
{
    return io->process != NULL ? io->process(io->context) : 0;
}

static int rl_is_forked(const struct redlock_client *c)
{
    return rl_process(c->priv.io) != c->priv.process;
}

void redlock_node_init(struct redlock_node *node, const char *address)
{
    memset(node, 0, sizeof *node);
    node->handle = -1;
    node->address = address;
}

enum redlock_status redlock_init_sized(struct redlock_client *client, const struct redlock_io *io,
                                       struct redlock_node *nodes, unsigned count,
                                       const struct redlock_settings *settings, uint32_t sizes)
{
    enum redlock_status status = REDLOCK_OK;
    struct redlock_node *node;
    unsigned bad, list;

    if (client == NULL)
        return REDLOCK_INVALID_ARGUMENT;
    /* What is cleared makes redlock_deinit safe after a failure. The caller's struct may be shorter,
       but has all that stands before `process`, which depends on no limit. */
    if (sizes != REDLOCK_SIZES) {
        memset(client, 0, offsetof(struct redlock_client_private, process));
        return rl_invalid(client, RL_ARG_LIMITS);
    }
    memset(client, 0, sizeof *client);
    if (io == NULL)
        return rl_invalid(client, RL_ARG_IO);
    if (nodes == NULL || count < 1 || count > REDLOCK_NODES_MAX)
        return rl_invalid(client, RL_ARG_NODES);
    for (node = nodes; client->priv.count < count; node++) {
        enum rl_error error;

        /* all that stands before what the caller sets */
        memset(node, 0, offsetof(struct redlock_node, address));
        rl_clear_error(node);
        node->handle = -1;
        node->priv.bit = rl_bit(client->priv.count);
        node->priv.index = client->priv.count++;
        error = rl_bad_node(client, nodes, node);
        if (error == RL_NO_ERROR && (io->check == NULL || io->check(io->context, node) == 0))
            continue;
        if (error == RL_NO_ERROR) /* the text is that of `check` */
            node->fault = REDLOCK_FAULT_ARGUMENT;
        rl_set_error(node, error);
        status = rl_invalid(client, RL_ARG_NODE);
    }
    if (status != REDLOCK_OK)
        return status;
    bad = rl_set_settings(&client->priv.settings,
                          settings != NULL ? settings : &client->priv.settings, count);
    if (bad < RL_SETTINGS)
        return rl_invalid(client, RL_ARG_SETTING + bad);
    client->priv.io = io;
    client->priv.process = rl_process(io);
    client->priv.nodes = nodes;
    client->priv.all = client->priv.in[REDLOCK_NODE_IDLE] = (redlock_mask)((1UL << count) - 1);
    client->priv.quorum = (uint8_t)client->priv.settings.quorum;
    for (list = RL_LINE; list <= RL_DONE; list++)
        rl_list(client, list)->end = &rl_list(client, list)->first;
    for (node = nodes; node < nodes + count; node++) {
        node->priv.tracks = (uint8_t)(REDLOCK_FAIR && client->priv.settings.fair);
        rl_set_timeout(client, node, 0);
    }
    return REDLOCK_OK;
}

enum redlock_status(redlock_init)(struct redlock_client *client, const struct redlock_io *io,
                                  struct redlock_node *nodes, unsigned count,
                                  const struct redlock_settings *settings)
{
    return redlock_init_sized(client, io, nodes, count, settings, REDLOCK_SIZES);
}

/* The client ends, and all its requests with it. Another client may begin with the lock. */
static void rl_lock_leave(struct redlock_client *c, struct redlock_lock *lock)
{
    memset(lock->priv.attempt.replies_due, 0, sizeof lock->priv.attempt.replies_due);
    rl_lock_detach(c, lock);
}

void redlock_deinit(struct redlock_client *client)
{
    struct redlock_node *node;
    struct redlock_lock *lock;
    unsigned list;

    if (client == NULL || client->priv.nodes == NULL)
        return;
    for (list = RL_LINE; list <= RL_DONE; list++)
        while ((lock = rl_first(client, list)) != NULL) {
            if (lock->status == REDLOCK_PENDING)
                lock->status = REDLOCK_CANCELLED;
            rl_lock_leave(client, lock);
        }
    for (node = client->priv.nodes; client->priv.count > 0; client->priv.count--, node++) {
        if (node->state != REDLOCK_NODE_IDLE && node->state != REDLOCK_NODE_DOWN)
            client->priv.io->shut(client->priv.io->context, node);
        node->state = REDLOCK_NODE_IDLE;
    }
    memset(client, 0, sizeof *client);
}

enum redlock_status redlock_lock_init_sized(struct redlock_lock *lock, const char *key,
                                            uint32_t ttl_ms, uint32_t sizes)
{
    size_t key_size = key != NULL ? strlen(key) : 0;

    if (lock == NULL || sizes != REDLOCK_SIZES)
        return REDLOCK_INVALID_ARGUMENT;
    memset(lock, 0, sizeof *lock);
    lock->key = key;
    lock->key_size = (uint16_t)(key_size <= UINT16_MAX ? key_size : 0); /* 0 is refused later */
    lock->ttl_ms = ttl_ms;
    return REDLOCK_OK;
}

enum redlock_status(redlock_lock_init)(struct redlock_lock *lock, const char *key, uint32_t ttl_ms)
{
    return redlock_lock_init_sized(lock, key, ttl_ms, REDLOCK_SIZES);
}

/* ---- Event-driven calls --------------------------------------------------------------------- */

/* What is wrong with the keys of a lock. Each extra key counts with what stands around it. */
static enum rl_argument rl_check_keys(const struct redlock_lock *lock)
{
    size_t size = lock->key_size;
    unsigned i, j;

    if (lock->key == NULL || size < 1)
        return RL_ARG_KEY;
    if (lock->extra_key_count > 0 && (REDLOCK_MINIMAL || lock->extra_keys == NULL))
        return RL_ARG_EXTRA_KEYS;
    for (i = 1; i <= rl_extra_keys(lock); i++) {
        struct redlock_key key = rl_key(lock, i);
        if (key.bytes == NULL)
            return RL_ARG_EXTRA_KEYS;
        for (j = 0; j < i; j++) { /* our own key would refuse a repeated one */
            struct redlock_key other = rl_key(lock, j);
            if (key.size == other.size && memcmp(key.bytes, other.bytes, key.size) == 0)
                return RL_ARG_EXTRA_KEYS;
        }
        size += key.size + 10U;
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

    if (lock->use_fencing && (REDLOCK_MINIMAL || rl_extra_keys(lock) > 0))
        return RL_ARG_FENCING;
    if (lock->label_size > REDLOCK_LABEL_MAX ||
        (lock->label_size == 0 ? lock->token_is_label : lock->label == NULL))
        return RL_ARG_LABEL;
    if (lock->ttl_ms < RL_TTL_MIN_MS || lock->ttl_ms > RL_TTL_MAX_MS)
        return RL_ARG_TTL; /* in this range it exceeds the drift, which is at most ttl / 2 + 2 ms */
    if (!REDLOCK_MINIMAL && longest_ms != 0 && lock->ttl_ms > longest_ms)
        return RL_ARG_LONGEST_TTL; /* R14 rests on it */
    return rl_check_keys(lock);
}

/* REDLOCK_PENDING if nothing is wrong. `idle`: no operation on the lock must be in progress. */
static enum redlock_status rl_check(struct redlock_client *c, const struct redlock_lock *lock,
                                    int idle)
{
    enum rl_argument bad;

    if (c == NULL)
        return REDLOCK_INVALID_ARGUMENT;
    if (c->priv.nodes == NULL)
        return rl_invalid(c, RL_ARG_CLIENT);
    if (lock == NULL)
        return rl_invalid(c, RL_ARG_LOCK);
    if (rl_is_forked(c))
        return REDLOCK_FORKED;
    bad = idle && lock->status == REDLOCK_PENDING ? RL_ARG_LOCK : rl_check_lock(c, lock);
    return bad != RL_ARG_NONE ? rl_invalid(c, bad) : REDLOCK_PENDING;
}

/* Whether the key is that of a wait queue, or of a lease in one: KEY:wait, KEY:wait:NAME. R19 */
static int rl_is_of_a_queue(const struct redlock_lock *lock)
{
    static const char suffix[] = {':', 'w', 'a', 'i', 't', ':'};
    size_t size = lock->key_size, digits = 0;
    const char *end = (const char *)lock->key + size;

    if (size >= 5 && memcmp(end - 5, suffix, 5) == 0)
        return 1;
    while (digits < size &&
           ((end[-1] >= '0' && end[-1] <= '9') || (end[-1] >= 'a' && end[-1] <= 'f'))) {
        digits++;
        end--;
    }
    return digits == 2 * RL_NAME_SIZE && size >= RL_LEASE_TAIL && memcmp(end - 6, suffix, 6) == 0;
}

enum redlock_status redlock_acquire_start(struct redlock_client *client, struct redlock_lock *lock,
                                          uint32_t wait_ms)
{
    enum redlock_status status = rl_check(client, lock, 1);

    if (status != REDLOCK_PENDING)
        return status;
    if (REDLOCK_FAIR && rl_is_fair(client, lock) && rl_is_of_a_queue(lock))
        return rl_invalid(client, RL_ARG_KEY);
    if (lock->priv.state == RL_HELD)
        return REDLOCK_ALREADY_HELD;
    lock->valid_until_us = 0;
    lock->holder_left_ms = 0;
    if (rl_wants_holder(lock))
        lock->holder[0] = '\0';
    memset(&lock->priv.op, 0, sizeof lock->priv.op);
    if (REDLOCK_FAIR)
        memset(&lock->priv.fair, 0, sizeof lock->priv.fair);
    status = rl_lock_begin(client, lock, REDLOCK_OP_ACQUIRE, wait_ms);
    if (REDLOCK_FAIR)
        lock->priv.fair.began_us = lock->priv.until_us - wait_ms * RL_MS_US;
    if (wait_ms == 0) /* a number of attempts ends it, not a time */
        lock->priv.until_us = REDLOCK_NEVER;
    return status;
}

enum redlock_status redlock_extend_start(struct redlock_client *client, struct redlock_lock *lock)
{
    enum redlock_status status = rl_check(client, lock, 1);

    if (status != REDLOCK_PENDING)
        return status;
    if (lock->priv.state != RL_HELD)
        return REDLOCK_LOST;
    if (lock->extended >= client->priv.settings.extend_max) /* R10 */
        return REDLOCK_EXTEND_LIMIT;
    return rl_lock_begin(client, lock, REDLOCK_OP_EXTEND, 0);
}

enum redlock_status redlock_auto_extend_start(struct redlock_client *client,
                                              struct redlock_lock *lock, unsigned extensions)
{
    enum redlock_status status = rl_check(client, lock, 1);

    if (status != REDLOCK_PENDING)
        return status;
    if (REDLOCK_MINIMAL || extensions < 1 ||
        (extensions >= RL_NO_LIMIT && extensions != REDLOCK_NO_LIMIT))
        return rl_invalid(client, RL_ARG_EXTENSIONS);
    if (lock->priv.state != RL_HELD)
        return REDLOCK_LOST;
    lock->priv.op.slow = 0;
    status = rl_lock_begin(client, lock, REDLOCK_OP_AUTO_EXTEND, 0);
    lock->priv.op.renewals = (uint16_t)(extensions < RL_NO_LIMIT ? extensions : RL_NO_LIMIT);
    return status;
}

/* Notes whether the lock is valid, and where an earlier call may have released it. R11 */
static void rl_note_release(struct redlock_client *c, struct redlock_lock *lock)
{
    if (lock->priv.attempt.released && lock->operation == REDLOCK_OP_RELEASE)
        lock->priv.attempt.release_again = lock->priv.attempt.asked;
    if (rl_now(c) < lock->valid_until_us)
        lock->priv.attempt.released = 1;
}

enum redlock_status redlock_release_start(struct redlock_client *client, struct redlock_lock *lock,
                                          uint32_t wait_ms)
{
    enum redlock_status status = rl_check(client, lock, 0);

    if (status != REDLOCK_PENDING)
        return status;
    rl_note_release(client, lock);
    rl_forget(client, lock); /* in whatever state it is. R11 */
    lock->priv.attempt.release_failed = 0;
    rl_lock_detach(client, lock);
    if (lock->status == REDLOCK_PENDING && lock->operation == REDLOCK_OP_ACQUIRE) {
        rl_set(&lock->priv.attempt.asked,
               lock->priv.fair.entered); /* the release leaves the queue */
        lock->priv.fair.entered = 0;
        rl_wait_ends(client, lock);
    }
    rl_lock_begin(client, lock, REDLOCK_OP_RELEASE, wait_ms);
    if (lock->priv.attempt.asked != 0)
        return REDLOCK_PENDING;
    rl_lock_detach(client, lock);
    return lock->status = REDLOCK_EXPIRED;
}

/* Members whose generation is known: only these can confirm an extension. R9 */
static redlock_mask rl_known_members(const struct redlock_client *c,
                                     const struct redlock_lock *lock)
{
    redlock_mask members = lock->members;
    unsigned i;

    for (i = 0; i < c->priv.count; i++)
        if (lock->generation[i] == 0)
            rl_clear(&members, rl_bit(i));
    return members;
}

enum redlock_status redlock_adopt(struct redlock_client *client, struct redlock_lock *lock,
                                  uint32_t remaining_ms)
{
    enum redlock_status status = rl_check(client, lock, 1);
    unsigned i;

    if (status != REDLOCK_PENDING)
        return status;
    if (REDLOCK_MINIMAL)
        return rl_invalid(client, RL_ARG_MEMBERS);
    if (lock->priv.state == RL_HELD)
        return REDLOCK_ALREADY_HELD;
    if ((lock->members & ~client->priv.all) != 0 || !rl_is_quorum(client, lock->members))
        return rl_invalid(client, RL_ARG_MEMBERS);
    if (remaining_ms > 0 && !rl_is_quorum(client, rl_known_members(client, lock)))
        return rl_invalid(client, RL_ARG_GENERATION);
    if (remaining_ms > lock->ttl_ms)
        return rl_invalid(client, RL_ARG_REMAINING);
    if (remaining_ms > 0)
        lock->members = rl_known_members(client, lock);
    /* Other nodes may have restarted since this client was connected to them, so it does not know
       whether they have a vote. It learns their generations from them, and then it knows. R14 */
    for (i = 0; i < client->priv.count; i++)
        if (!(lock->members >> i & 1))
            lock->generation[i] = 0;
    rl_lock_move(client, lock, RL_NOWHERE);
    lock->holder_left_ms = 0;
    if (rl_wants_holder(lock)) /* no acquire may have cleared it */
        lock->holder[0] = '\0';
    lock->granted = lock->refused = lock->failed = 0;
    memset(&lock->priv, 0, sizeof lock->priv);
    lock->priv.attempt.asked = client->priv.all;
    lock->priv.attempt.longest_ttl_ms = lock->ttl_ms;
    lock->priv.started_us = rl_now(client);
    lock->valid_until_us = lock->priv.started_us + remaining_ms * RL_MS_US;
    rl_lock_enter(lock, RL_HELD, lock->valid_until_us);
    lock->extended = 0;
    lock->operation = REDLOCK_OP_ACQUIRE;
    return lock->status = REDLOCK_OK;
}

void redlock_cancel(struct redlock_client *client, struct redlock_lock *lock)
{
    if (client == NULL || lock == NULL || lock->status != REDLOCK_PENDING)
        return;
    lock->priv.op.cancelled = 1;
    rl_lock_schedule(client, lock);
}

void redlock_abandon(struct redlock_client *client, struct redlock_lock *lock)
{
    if (client == NULL || lock == NULL || lock->status == REDLOCK_PENDING)
        return;
    rl_forget(client, lock);
    rl_lock_detach(client, lock);
    lock->priv.attempt.asked = 0;
}

/* In a forked child: what the parent has started is the parent's. Nothing is sent. */
static void rl_end_forked(struct redlock_client *c)
{
    struct redlock_lock *lock;
    unsigned list;

    for (list = RL_LINE; list < RL_DONE; list++)
        while ((lock = rl_first(c, list)) != NULL) {
            rl_lock_leave(c, lock);
            if (lock->status != REDLOCK_PENDING)
                continue;
            lock->status = REDLOCK_FORKED;
            rl_lock_move(c, lock, RL_DONE);
        }
}

unsigned redlock_wanted_events(const struct redlock_client *client, unsigned i)
{
    unsigned writable = client->priv.in[REDLOCK_NODE_CONNECTING] | client->priv.out.unsent;

    return (rl_up(client) >> i & 1 ? REDLOCK_READABLE : 0U) |
           (writable >> i & 1 ? REDLOCK_WRITABLE : 0U);
}

void redlock_handle_events(struct redlock_client *client, unsigned i, unsigned events)
{
    struct redlock_node *node = &client->priv.nodes[i];

    if (rl_is_forked(client))
        return;
    if (node->state == REDLOCK_NODE_CONNECTING) {
        /* Any event: it is up, or has failed. The reply to the handshake is due from now on. R5 */
        events |= REDLOCK_WRITABLE;
        rl_set_now(client);
    }
    if (events & REDLOCK_WRITABLE)
        rl_node_send(client, node);
    if (events & REDLOCK_READABLE)
        rl_take_replies(client, node, RL_READS_MAX);
}

/* Moves to TURN the locks that this tick must step: those whose time is up, and those whose command
   can be sent to a node that is ready now. No list is searched if no lock wants such a node. */
static void rl_client_wake(struct redlock_client *c)
{
    unsigned ready = c->priv.jammed ? 0 : c->priv.in[REDLOCK_NODE_READY] & ~(unsigned)c->priv.full;
    unsigned list, wanted = c->priv.wanted & ready;
    struct redlock_lock *lock, *next;

    rl_wake_due(c);
    if (rl_first(c, RL_WAIT_HELD) == NULL && rl_first(c, RL_WAIT) == NULL &&
        rl_first(c, RL_DONE) == NULL)
        c->priv.wanted = 0;
    rl_clear(&c->priv.wanted, ready);
    if (wanted == 0)
        return;
    for (list = RL_WAIT; list <= RL_WAIT_HELD; list++)
        for (lock = rl_first(c, list); lock != NULL; lock = next) {
            next = lock->priv.next;
            if (lock->priv.unsent & ready)
                rl_lock_move(c, lock, RL_TURN);
        }
    for (lock = rl_first(c, RL_DONE); lock != NULL; lock = lock->priv.next)
        if ((lock->priv.unsent & ready) && !rl_past(c, lock->valid_until_us)) {
            rl_ask_nodes(c, lock); /* it is complete, and was not taken yet. R2 */
            rl_set(&c->priv.wanted, lock->priv.unsent);
        }
}

/* The client was not served for a while, since now_us: replies that come now say nothing of the
   round trip. A node that owes the timed reply is at least so far away, and gets twice that time
   for the next reply, as in RFC 6298. R15 */
static void rl_time_none(struct redlock_client *c)
{
    unsigned i;

    for (i = 0; i < c->priv.count; i++) {
        struct redlock_node *node = &c->priv.nodes[i];
        uint64_t twice_us = 2 * (c->priv.now_us - node->priv.timed_us);
        if (node->priv.timed != 0 && twice_us > node->priv.timeout_us)
            rl_set_timeout(c, node, twice_us < UINT32_MAX ? (uint32_t)twice_us : UINT32_MAX);
        node->priv.timed = node->priv.sampled = 0;
    }
}

/* Reads the clock. If the client should have been served at that moment, and was not for so long
   that a round trip would look longer, no request is timed any more. */
static void rl_read_clock(struct redlock_client *c, uint64_t moment_us)
{
    uint64_t now_us = rl_now(c);

    if (now_us > moment_us && now_us - moment_us > c->priv.settings.node_timeout_ms * RL_MS_US / 4)
        rl_time_none(c);
    c->priv.now_us = now_us;
}

/* A tick whose time has come first reads what has come: no node is late whose reply is here. R3,
   R5 */
static void rl_read_what_is_due(struct redlock_client *c)
{
    struct redlock_node *node = c->priv.nodes;
    unsigned i;

    if (!rl_past(c, c->priv.due_us))
        return;
    for (i = 0; i < c->priv.count; i++, node++)
        if (node->priv.count > 0 || node->state == REDLOCK_NODE_CONNECTING)
            redlock_handle_events(c, i, REDLOCK_READABLE | REDLOCK_WRITABLE);
    rl_set_now(c);
}

/* Takes note of what has happened at the nodes since the last tick. */
static void rl_look_at_nodes(struct redlock_client *c)
{
    unsigned replied = c->priv.replied;
    unsigned nodes = rl_past(c, c->priv.due_us) ? c->priv.all : replied;
    struct redlock_node *node = c->priv.nodes;

    c->priv.replied = 0;
    for (; nodes != 0; nodes >>= 1, replied >>= 1, node++)
        if (replied & 1)
            rl_node_replied(c, node);
        else if (nodes & 1)
            rl_node_late(c, node);
    rl_tell_broken(c);
    if (c->priv.wanted != 0)
        rl_connect(c, c->priv.wanted, 0);
}

static void rl_send_unsent(struct redlock_client *c)
{
    unsigned nodes = c->priv.out.unsent | (unsigned)c->priv.in[REDLOCK_NODE_HANDSHAKE];
    struct redlock_node *node = c->priv.nodes;

    for (; nodes != 0; nodes >>= 1, node++) {
        if (!(nodes & 1))
            continue;
        if (node->state == REDLOCK_NODE_HANDSHAKE)
            rl_node_send(c, node);
        else
            rl_transmit(c, node);
    }
}

/* The next tick is due at that moment, unless it is due before. */
static void rl_client_due(struct redlock_client *c, uint64_t moment_us)
{
    rl_not_after(&c->priv.due_us, moment_us);
}

/* When the nodes must be looked at again. */
static void rl_nodes_due(struct redlock_client *c)
{
    unsigned nodes = c->priv.all, wanted = rl_first(c, RL_LINE) != NULL ? nodes : c->priv.wanted;
    const struct redlock_node *node = c->priv.nodes;

    for (; nodes != 0; nodes >>= 1, wanted >>= 1, node++) {
        rl_client_due(c, rl_node_stall_us(c, node));
        if ((wanted & 1) && (node->state == REDLOCK_NODE_DOWN || node->state == REDLOCK_NODE_IDLE))
            rl_client_due(c, node->priv.reconnect_us);
    }
}

/* When the first lock that waits must be stepped. */
static void rl_locks_due(struct redlock_client *c)
{
    if (c->priv.first_due != NULL)
        rl_client_due(c, c->priv.first_due->priv.due_us);
}

uint64_t redlock_tick(struct redlock_client *client)
{
    uint64_t owed_us;

    if (rl_is_forked(client)) {
        rl_end_forked(client);
        return REDLOCK_NEVER;
    }
    rl_read_clock(client, client->priv.due_us);
    client->priv.tick_again = 0;
    rl_read_what_is_due(client);
    rl_look_at_nodes(client);
    rl_client_wake(client);
    rl_turn_all(client);
    owed_us = rl_owed_tick(client);
    rl_send_unsent(client);
    if (rl_past(client, client->priv.due_us))
        client->priv.due_us = REDLOCK_NEVER; /* all that was due is done */
    if (client->priv.tick_again || client->priv.lost_untold || rl_first(client, RL_TURN) != NULL) {
        rl_client_due(client, client->priv.now_us + RL_MS_US); /* if more such ticks follow */
        return 0; /* a lock is complete; there is room again; a connection broke */
    }
    client->priv.due_us = owed_us;
    rl_nodes_due(client);
    rl_locks_due(client);
    if (client->priv.due_us == REDLOCK_NEVER)
        return REDLOCK_NEVER;
    return rl_past(client, client->priv.due_us) ? 0 : client->priv.due_us - client->priv.now_us;
}

struct redlock_lock *redlock_next_completed(struct redlock_client *client)
{
    struct redlock_lock *lock = rl_first(client, RL_DONE);

    if (lock != NULL)
        rl_lock_park(client, lock);
    return lock;
}

/* ---- Blocking calls ------------------------------------------------------------------------- */

/* Waits for events, for timeout_us at most, and handles them. 0: there were none. */
static int rl_client_wait(struct redlock_client *c, uint64_t timeout_us)
{
    const struct redlock_io *io = c->priv.io;
    uint8_t events[REDLOCK_NODES_MAX];
    unsigned i;
    int any = 0;

    /* Without the second bound gcc 14 -O3 warns of a write behind the array. */
    for (i = 0; i < c->priv.count && i < REDLOCK_NODES_MAX; i++)
        events[i] = (uint8_t)redlock_wanted_events(c, i);
    io->wait(io->context, c->priv.nodes, c->priv.count, timeout_us, events);
    for (i = 0; i < c->priv.count; i++)
        if (events[i] != 0) {
            redlock_handle_events(c, i, events[i]);
            any = 1;
        }
    return any;
}

struct redlock_lock *redlock_turn(struct redlock_client *client, uint64_t longest_us)
{
    uint64_t wait_us = redlock_tick(client);
    struct redlock_lock *completed = redlock_next_completed(client);

    if (completed == NULL)
        rl_client_wait(client, wait_us < longest_us ? wait_us : longest_us);
    return completed;
}

/* A blocking call first reads what has come since the last one: replies to earlier commands, and
   the end of connections that servers have closed, which only the read after the last reply sees. A
   call does not read if the client was served less than fresh_us ago: the poll is a part of the
   latency of an acquire. An extension and a release always read: a late grant makes a member, which
   counts in the round, and a reply frees the place of a release that is repeated. R4, R8,
   R9 */
static void rl_catch_up(struct redlock_client *c, uint64_t fresh_us)
{
    uint64_t served_us;
    unsigned turns = 0;

    if (c == NULL || c->priv.nodes == NULL || rl_is_forked(c))
        return;
    served_us = c->priv.now_us;
    rl_read_clock(c, served_us);
    if (c->priv.now_us < served_us + fresh_us)
        return;
    while (rl_client_wait(c, 0) && ++turns < RL_CATCH_UP_MAX)
        ;
}

/* A loop over the event-driven calls, and an example of one. `started` is what the start
   returned. */
static enum redlock_status rl_run_until_done(struct redlock_client *client,
                                             struct redlock_lock *lock, enum redlock_status started)
{
    if (started != REDLOCK_PENDING)
        return started;
    for (;;) {
        uint64_t wait_us = redlock_tick(client);
        if (lock->status != REDLOCK_PENDING)
            break;
        rl_client_wait(client, wait_us);
    }
    rl_lock_park(client, lock);
    return lock->status;
}

enum redlock_status redlock_acquire(struct redlock_client *client, struct redlock_lock *lock,
                                    uint32_t wait_ms)
{
    rl_catch_up(client, RL_FRESH_US);
    return rl_run_until_done(client, lock, redlock_acquire_start(client, lock, wait_ms));
}

enum redlock_status redlock_extend(struct redlock_client *client, struct redlock_lock *lock)
{
    rl_catch_up(client, 0);
    return rl_run_until_done(client, lock, redlock_extend_start(client, lock));
}

enum redlock_status redlock_release(struct redlock_client *client, struct redlock_lock *lock,
                                    uint32_t wait_ms)
{
    rl_catch_up(client, 0);
    return rl_run_until_done(client, lock, redlock_release_start(client, lock, wait_ms));
}

/* ---- Information ---------------------------------------------------------------------------- */

uint32_t redlock_remaining_ms(struct redlock_client *client, const struct redlock_lock *lock)
{
    uint64_t now, left;
    uint32_t coarse;

    if (client == NULL || client->priv.nodes == NULL || lock == NULL)
        return 0;
    now = rl_now(client);
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

    if (!rl_wants_holder(lock))
        return "";
    for (i = 0; i < 2 * sizeof lock->token; i++, label++)
        if (!(*label >= '0' && *label <= '9') && !(*label >= 'a' && *label <= 'f'))
            return "";
    return label;
}
