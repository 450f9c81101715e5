/* session.c - a client of all nodes with its lock, the messages about the errors of the nodes, and the event loop for its sockets and
   for signals.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "cli.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

unsigned count_nodes(redlock_mask mask)
{
    unsigned n = 0, bits = mask;

    for (; bits != 0; bits &= bits - 1)
        n++;
    return n;
}

uint64_t session_watch(struct session *session, struct pollfd *fds, unsigned *count)
{
    uint64_t wait_us = redlock_tick(&session->client);
    unsigned i;

    *count = target_count;
    for (i = 0; i < target_count; i++) {
        const struct redlock_node *node = &session->nodes[i];
        unsigned wanted = io_events(node, redlock_wanted_events(&session->client, i));
        fds[i].fd = wanted != 0 ? (int)node->handle : -1;
        fds[i].events = poll_events(wanted);
        fds[i].revents = 0;
        if (io_has_bytes(node))
            wait_us = 0;
        *count += names_watch(node, fds + *count, &wait_us);
    }
    return wait_us;
}

void session_serve(struct session *session, const struct pollfd *fds)
{
    unsigned i;

    for (i = 0; i < target_count; i++) {
        unsigned events = (fds[i].revents & ~POLLOUT ? (unsigned)REDLOCK_READABLE : 0) |
                          (fds[i].revents & ~POLLIN ? (unsigned)REDLOCK_WRITABLE : 0);
        if (io_has_bytes(&session->nodes[i]))
            events |= REDLOCK_READABLE;
        if (names_serve(&session->nodes[i]))
            events |= REDLOCK_WRITABLE;
        if (events != 0)
            redlock_handle_events(&session->client, i, events);
    }
    redlock_tick(&session->client);
}

void turn(struct session *session, uint64_t until_us)
{
    struct pollfd fds[SLEEP_MAX];
    unsigned count;
    uint64_t wait_us = session_watch(session, fds, &count);

    sleep_on(fds, count, wait_us, until_us);
    ending_signal(); /* what has come does not end the next sleep */
    session_serve(session, fds);
}

void key_of(char key[REDLOCK_KEY_MAX + 1], const char *name)
{
    if (name[0] == '\0')
        die(EXIT_USAGE, "the name of a lock is empty");
    if (snprintf(key, REDLOCK_KEY_MAX + 1, "%s%s", options.prefix, name) > REDLOCK_KEY_MAX)
        die(EXIT_USAGE, "the name of a lock, with its prefix, has at most %d bytes",
            REDLOCK_KEY_MAX);
    if (is_beside_a_lock(key))
        die(EXIT_USAGE,
            "%s: no lock has a key that ends in " QUEUE_SUFFIX ", " COUNTER_SUFFIX
            " or " QUEUE_SUFFIX ": and %d hex digits: such keys are for its queue and its counter",
            name, (int)WAITER_NAME);
}

int is_pattern(const char *name)
{
    return strpbrk(name, "*?") != NULL;
}

void check_name(const char *name)
{
    char key[REDLOCK_KEY_MAX + 1];

    key_of(key, name);
    if (is_pattern(name))
        die(EXIT_USAGE, "%s: a name with * or ? is a pattern of redlock status, not a lock", name);
}

/* The lock of session->key. Asking for the holder costs a round trip, and no message names the holder of one of several slots. */
static void begin_lock(struct session *session)
{
    struct redlock_lock *lock = session->lock;
    const void *label = lock->label;
    uint8_t label_size = lock->label_size;

    redlock_lock_init(lock, session->key, session->ttl_ms);
    lock->use_fencing = (uint8_t)options.fence;
    lock->holder = options.slots > 1 ? NULL : session->holder;
    lock->holder_size = options.slots > 1 ? 0 : sizeof session->holder;
    lock->label = label;
    lock->label_size = label_size;
}

/* The I/O callbacks of a session, and those of tls.c below it. */
static struct redlock_io io;
static const struct redlock_io *below;

/* At most, beside those of the nodes: the line to the guard, the timer, a folder of /proc and a file in it. */
enum { OWN_DESCRIPTORS = 4 };

/* The nodes that were dialled, also those that are connected again by now. */
static redlock_mask dialled;

/* The library permits a new password while a node is not connected. */
static int dial(void *context, struct redlock_node *node)
{
    unsigned i = target_of(node);

    dialled |= (redlock_mask)(1U << i);
    nodes_renew_password(i);
    node->password = targets[i].url.password[0] != '\0' ? targets[i].url.password : NULL;
    io_renew(below, node);
    return below->dial(context, node);
}

long contact_ms(void)
{
    return options.unavailable_ms >= 0 ? options.unavailable_ms : CONTACT_MS;
}

/* A client of all nodes, without connections. */
static void begin_client(struct session *session)
{
    struct redlock_settings settings = {0};

    settings.node_timeout_ms = (uint32_t)options.node_timeout_ms;
    settings.stall_ms = settings.node_timeout_ms * FIRST_TIMES;
    settings.fair = 1;
    settings.longest_ttl_ms = (uint32_t)options.longest_ttl_ms;
    if (redlock_init(&session->client, &io, session->nodes, target_count, &settings) !=
        REDLOCK_OK) {
        say_errors(session, LOG_ERROR, "");
        die(EXIT_CONFIG, "invalid node list");
    }
}

void session_connect_again(struct session *session)
{
    unsigned i;

    redlock_deinit(&session->client);
    for (i = 0; i < target_count; i++)
        if (names_count(i) > 0)
            names_put_text(i); /* two names may mean one address */
    begin_client(session);
}

void session_open(struct session *session, const char *name)
{
    unsigned i;

    if (!signals_begin()) /* process 1 of a container would ignore a signal during the lookup */
        die(EXIT_SYSTEM, "no pipe: %s", strerror(errno));
    nodes_load();
    if (!are_descriptors_left(target_count + OWN_DESCRIPTORS))
        die(EXIT_SYSTEM, "too few descriptors (%u more are needed): %s",
            target_count + OWN_DESCRIPTORS, strerror(errno));
    if (is_asked_to_end())
        end_by_signal();
    session->lock = &session->one;
    key_of(session->key, name);
    for (i = 0; i < target_count; i++) {
        const struct redlock_url *url = &targets[i].url;
        session->nodes[i].address = targets[i].address;
        session->nodes[i].user = url->user[0] != '\0' ? url->user : NULL;
        session->nodes[i].password = url->password[0] != '\0' ? url->password : NULL;
        session->nodes[i].database = url->database;
        session->nodes[i].user_data = io_name_of(i);
    }
    if (options.longest_ttl_ms > 0 &&
        (options.ttl_ms > options.longest_ttl_ms || options.min_hold_ms > options.longest_ttl_ms))
        die(EXIT_USAGE, "--ttl and --min-hold: at most longest-ttl, which is %ld ms",
            options.longest_ttl_ms);
    below = io_open();
    io = *below;
    io.dial = dial;
    begin_client(session);
    session->ttl_ms =
        (uint32_t)(options.min_hold_ms > options.ttl_ms ? options.min_hold_ms : options.ttl_ms);
    begin_lock(session);
}

void slot_name(char slot[REDLOCK_KEY_MAX + 1], const char *name, unsigned count, unsigned number)
{
    if (snprintf(slot, REDLOCK_KEY_MAX + 1, "%s/%u.%u", name, count, number) > REDLOCK_KEY_MAX)
        die(EXIT_USAGE, "the name of a lock, with its slot, is too long");
}

void session_slot(struct session *session, const char *name, unsigned number)
{
    char slot[REDLOCK_KEY_MAX + 1];

    slot_name(slot, name, (unsigned)options.slots, number);
    key_of(session->key, slot);
    session->holder[0] = '\0';
    begin_lock(session);
}

void session_close(struct session *session)
{
    redlock_deinit(&session->client);
    io_close(below);
}

void session_sign(struct session *session)
{
    static char label[200];
    char host[HOST_MAX + 1], text[100];
    int size;

    if (options.label != NULL && options.label[0] == '\0')
        return;
    name_host(host);
    percent_encode(text, sizeof text, options.label != NULL ? options.label : "");
    size = snprintf(label, sizeof label, ":%s:%ld:%lld:%s", host, (long)getpid(),
                    (long long)redlock_posix()->wall_us(NULL) / 1000, text);
    session->lock->label_size = (uint8_t)size;
    session->lock->label = label;
}

void session_adopt(struct session *session)
{
    char digits[3] = "";
    unsigned i;

    for (i = 0; i < sizeof session->lock->token; i++) {
        memcpy(digits, session->value + 2 * i, 2);
        session->lock->token[i] = (uint8_t)strtoul(digits, NULL, 16);
    }
    session->lock->label = session->value + TOKEN_DIGITS;
    session->lock->label_size = (uint8_t)strlen(session->value + TOKEN_DIGITS);
    session->lock->members = (redlock_mask)((1UL << target_count) - 1);
    if (redlock_adopt(&session->client, session->lock, 0) != REDLOCK_OK)
        die(EXIT_BUG, "an internal error");
}

/* How long a release waits: longer while a quorum is not connected. */
static uint32_t release_ms(const struct session *session)
{
    unsigned i, ready = 0;

    for (i = 0; i < target_count; i++)
        ready += session->nodes[i].state == REDLOCK_NODE_READY;
    return (uint32_t)options.node_timeout_ms * (ready < quorum() ? FIRST_TIMES : 2);
}

/* Notes the nodes whose connection has ended before they replied to the release. They get it a second time, and say then that there is
   no key, although the first one may have deleted it. *sent: the nodes that may have been sent the release on their present connection;
   the release is sent behind a handshake, too. A node may be connected again before we look: so those that were dialled count. */
static void note_repeats(struct session *session, redlock_mask *sent)
{
    const struct redlock_lock *lock = session->lock;
    unsigned i, up = 0, replied = lock->granted | lock->refused;

    for (i = 0; i < target_count; i++)
        if (session->nodes[i].state == REDLOCK_NODE_READY ||
            session->nodes[i].state == REDLOCK_NODE_HANDSHAKE)
            up |= 1U << i;
    session->repeated = (redlock_mask)(session->repeated | (*sent & (dialled | ~up) & ~replied));
    *sent = (redlock_mask)up;
    dialled = 0;
}

/* 1: so many nodes do not let this client in, or are no nodes of a lock, that none of the others makes a quorum. */
static int is_denied(const struct session *session)
{
    unsigned i, denied = 0;

    for (i = 0; i < target_count; i++)
        denied += session->nodes[i].state == REDLOCK_NODE_DOWN &&
                  (session->nodes[i].fault == REDLOCK_FAULT_DENIED ||
                   session->nodes[i].fault == REDLOCK_FAULT_ROLE);
    return denied > target_count - quorum();
}

/* Releases the lock, and waits for most_ms. After a signal that asks this process to end, and after denials, it waits as
   session_release does. The loop is ours, because that of the library knows nothing of connections beside others. */
static enum redlock_status release_within(struct session *session, uint32_t most_ms)
{
    struct redlock_lock *lock = session->lock;
    uint32_t least_ms = release_ms(session);
    int is_short = most_ms <= least_ms;
    redlock_mask sent = 0;

    turn(session, 0); /* reads what has come */
    lock->status = redlock_release_start(&session->client, lock, most_ms);
    while (lock->status == REDLOCK_PENDING) {
        note_repeats(session, &sent);
        turn(session, UINT64_MAX);
        while (redlock_next_completed(&session->client) != NULL)
            continue;
        if (lock->status == REDLOCK_PENDING && !is_short &&
            (is_asked_to_end() || is_denied(session))) {
            is_short = 1;
            session->repeated |= lock->granted | sent;
            lock->status = redlock_release_start(&session->client, lock, least_ms);
        }
    }
    return lock->status;
}

enum redlock_status session_release(struct session *session)
{
    return release_within(session, release_ms(session));
}

enum redlock_status session_release_first(struct session *session)
{
    uint32_t least_ms = release_ms(session), most_ms = (uint32_t)contact_ms();

    if (most_ms == 0)
        most_ms = INT32_MAX;
    return release_within(session, most_ms > least_ms ? most_ms : least_ms);
}

int never_expires(const struct session *session)
{
    return session->lock->holder_left_ms == UINT32_MAX;
}

redlock_mask granted_by(const struct session *session)
{
    return (redlock_mask)(session->lock->members | session->lock->granted);
}

/* A node that does not have the lock, or was not sent its extension, and may still become connected or answer. An extension is
   sent to a node as soon as it is ready; the reply does not count any more. */
static int is_unsettled(const struct session *session, unsigned i)
{
    const struct redlock_lock *lock = session->lock;
    const struct redlock_node *node = &session->nodes[i];
    unsigned bit = 1U << i, done = granted_by(session) | lock->refused;

    if (lock->operation == REDLOCK_OP_EXTEND)
        done = node->state == REDLOCK_NODE_READY ? bit : 0;
    if ((done & bit) != 0)
        return 0;
    if (node->state ==
        REDLOCK_NODE_READY) /* a failure from before it was ready does not count: it has no error now */
        return (lock->failed & bit) == 0 || node->error[0] == '\0';
    return node->state == REDLOCK_NODE_CONNECTING || node->state == REDLOCK_NODE_HANDSHAKE;
}

static int is_settled(const struct session *session)
{
    unsigned i = 0;

    while (i < target_count && !is_unsettled(session, i))
        i++;
    return i == target_count;
}

void session_settle(struct session *session)
{
    uint64_t left_ms = redlock_remaining_ms(&session->client, session->lock) / 4;
    uint64_t most_ms = (uint64_t)options.node_timeout_ms;
    uint64_t until_us = now_us() + (left_ms < most_ms ? left_ms : most_ms) * 1000;

    while (!is_settled(session) && now_us() < until_us && ending_signal() == 0)
        turn(session, until_us);
}

const char *error_of(const struct session *session, unsigned i)
{
    static char text[REDLOCK_ERROR_MAX + 40];
    const struct redlock_node *node = &session->nodes[i];

    if (node->fault != REDLOCK_FAULT_TIMEOUT || node->error[0] == '\0')
        return node->error;
    snprintf(text, sizeof text, "%s (%ld ms)", node->error, options.node_timeout_ms);
    return text;
}

void say_errors(const struct session *session, enum level level, const char *refusal)
{
    static char text[REDLOCK_NODES_MAX][REDLOCK_ERROR_MAX + 40];
    const char *reason[REDLOCK_NODES_MAX];
    unsigned i;

    for (i = 0; i < target_count; i++) {
        snprintf(text[i], sizeof *text, "%s", error_of(session, i));
        if (text[i][0] == '\0' && (session->lock->refused >> i & 1) != 0)
            reason[i] = refusal;
        else
            reason[i] = text[i];
    }
    say_reasons(level, reason);
}

void session_finish(struct session *session)
{
    while (session->lock->status == REDLOCK_PENDING) {
        turn(session, UINT64_MAX);
        while (redlock_next_completed(&session->client) != NULL)
            continue;
    }
}
