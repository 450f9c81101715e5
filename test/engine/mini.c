/* mini.c - see mini.h.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "mini.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void mini_fail(const char *what)
{
    printf("Bail out! %s\n", what);
    exit(1);
}

static int mini_same(const void *a, unsigned a_size, const void *b, unsigned b_size)
{
    return a_size == b_size && memcmp(a, b, a_size) == 0;
}

static int mini_is(struct mini_word word, const char *text)
{
    return mini_same(word.bytes, word.size, text, (unsigned)strlen(text));
}

/* ---- Replies, without printf for speed -------------------------------------------------------- */

static char *mini_put(char *to, const void *bytes, unsigned size)
{
    memcpy(to, bytes, size);
    return to + size;
}

static char *mini_put_number(char *to, unsigned long long number)
{
    char digits[20];
    unsigned first = sizeof digits;

    do {
        digits[--first] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    return mini_put(to, digits + first, (unsigned)sizeof digits - first);
}

/* Does not append a NUL. */
static char *mini_put_string(char *to, const void *bytes, unsigned size)
{
    *to++ = '$';
    to = mini_put(mini_put_number(to, size), "\r\n", 2);
    return mini_put(mini_put(to, bytes, size), "\r\n", 2);
}

static void mini_reply_number(char *reply, unsigned long long number)
{
    *reply = ':';
    strcpy(mini_put_number(reply + 1, number), "\r\n");
}

/* An error is one line, also with line ends in the arguments. */
static void mini_keep_one_line(char *reply)
{
    char *line_end;

    while (reply[0] == '-' && (line_end = strpbrk(reply, "\r\n"))[2] != '\0')
        *line_end = ' ';
}

/* ---- Keys ----------------------------------------------------------------------------------- */

static struct mini_key *mini_key_at(struct mini_server *server, unsigned i)
{
    return i < MINI_KEYS ? &server->keys[i] : &server->more[i - MINI_KEYS];
}

struct mini_key *mini_find(struct mini_server *server, const void *name, unsigned size)
{
    char last = size > 0 ? ((const char *)name)[size - 1] : '\0';
    unsigned i;

    for (i = 0; i < server->used; i++) {
        struct mini_key *key = mini_key_at(server, i);
        if (key->name.size > 0 && key->until_us <= server->now_us)
            key->name.size = 0;
        /* names differ mostly at their end */
        if (key->name.size == size && size > 0 && key->name.bytes[size - 1] == last &&
            key->database == server->database && memcmp(key->name.bytes, name, size) == 0)
            return key;
    }
    return NULL;
}

struct mini_key *mini_store(struct mini_server *server, struct mini_word name,
                            struct mini_word value, uint64_t until_us)
{
    struct mini_key *key = mini_find(server, name.bytes, name.size);
    unsigned i;

    for (i = 0; key == NULL && i < MINI_KEYS + server->more_room; i++)
        if (i >= server->used || mini_key_at(server, i)->name.size == 0)
            key = mini_key_at(server, i);
    if (key == NULL || name.size > sizeof key->name.bytes || value.size > sizeof key->value) {
        mini_fail("no room for a key");
        return NULL;
    }
    server->used += i > server->used;
    if (!mini_same(key->name.bytes, key->name.size, name.bytes, name.size) ||
        !mini_same(key->value, key->value_size, value.bytes, value.size))
        key->since_us = server->now_us;
    memcpy(key->name.bytes, name.bytes, name.size);
    memcpy(key->value, value.bytes, value.size);
    key->name.size = name.size;
    key->value_size = value.size;
    key->database = server->database;
    key->until_us = until_us;
    return key;
}

static struct mini_key *mini_found(struct mini_server *server, struct mini_word name)
{
    return mini_find(server, name.bytes, name.size);
}

/* Where a value has its generation: eight bytes, behind those that say whose it is. */
enum { MINI_NAMED = 32 };

static unsigned mini_named(const struct mini_command *command, unsigned size)
{
    return command->generations && size > MINI_NAMED ? MINI_NAMED : size;
}

static int mini_owns(const struct mini_key *key, const struct mini_command *command,
                     struct mini_word token)
{
    return mini_same(key->value, mini_named(command, key->value_size), token.bytes,
                     mini_named(command, token.size));
}

static uint64_t mini_generation(const char *value)
{
    char digits[9] = "";

    memcpy(digits, value + MINI_NAMED, 8);
    return strtoull(digits, NULL, 16);
}

unsigned mini_keys_left(const struct mini_server *server)
{
    unsigned i, left = 0;

    for (i = 0; i < server->used; i++) {
        const struct mini_key *key =
            i < MINI_KEYS ? &server->keys[i] : &server->more[i - MINI_KEYS];
        left += key->name.size > 0 && key->until_us > server->now_us && key->until_us != UINT64_MAX;
    }
    return left;
}

/* The session has read the key, and must be notified when it changes. If too many are tracked another one is not any more. */
static void mini_track(struct mini_session *session, struct mini_word name)
{
    struct mini_name *tracked = session->tracked;
    int i, to = -1;

    if (!session->tracking)
        return;
    for (i = 0; i < MINI_TRACKED; i++)
        if (tracked[i].size == 0 ||
            mini_same(tracked[i].bytes, tracked[i].size, name.bytes, name.size))
            to = i;
    if (to < 0)
        to = (int)(session->tracked_next++ % MINI_TRACKED);
    memcpy(tracked[to].bytes, name.bytes, name.size);
    tracked[to].size = name.size;
}

/* A key that the session itself has changed is tracked no more, and it is not notified. */
static void mini_untrack(struct mini_session *session, struct mini_word name)
{
    int i;

    for (i = 0; i < MINI_TRACKED; i++)
        if (mini_same(session->tracked[i].bytes, session->tracked[i].size, name.bytes, name.size))
            session->tracked[i].size = 0;
}

unsigned mini_notify(struct mini_session *session, struct mini_word name, char push[MINI_REPLY])
{
    static const char head[] = ">2\r\n$10\r\ninvalidate\r\n*1\r\n";
    int i;

    for (i = 0; i < MINI_TRACKED; i++)
        if (mini_same(session->tracked[i].bytes, session->tracked[i].size, name.bytes, name.size)) {
            session->tracked[i].size = 0;
            return (unsigned)(mini_put_string(mini_put(push, head, sizeof head - 1), name.bytes,
                                              name.size) -
                              push);
        }
    return 0;
}

/* ---- Commands of a lock --------------------------------------------------------------------- */

static uint64_t mini_decimal(struct mini_word digits)
{
    uint64_t number = 0;

    for (; digits.size > 0; digits.size--)
        number = number * 10 + (uint64_t)(*digits.bytes++ - '0');
    return number;
}

static uint64_t mini_end_us(const struct mini_server *server, const struct mini_command *command)
{
    return server->now_us + command->ttl_ms * (uint64_t)1000;
}

/* The two scripts of a fencing token. Returns the counter; -1: refused; 0: the counter would be too large. */
static long long mini_next_counter(struct mini_server *server, struct mini_command *command)
{
    const struct mini_word *halves = &command->arguments[command->queues        ? 7
                                                         : command->kind == 'F' ? 2
                                                                                : 1];
    struct mini_key *found = mini_found(server, command->keys[0]);
    struct mini_word counted = command->keys[1];
    struct mini_key *counter = mini_found(server, counted);
    struct mini_word digits;
    char text[24];
    uint64_t count = 0,
             proposal = mini_decimal(halves[0]) * ((uint64_t)1 << 32) + mini_decimal(halves[1]);

    if (command->kind == 'F' ? found != NULL
                             : found == NULL || !mini_owns(found, command, command->arguments[0]))
        return -1;
    if (counter != NULL) {
        digits.bytes = counter->value;
        digits.size = counter->value_size;
        count = mini_decimal(digits);
    }
    if (command->kind == 'F')
        count++;
    if (count < proposal)
        count = proposal;
    if (count >= (uint64_t)1 << 53 && command->bounded)
        return 0;
    digits.bytes = text;
    digits.size = (unsigned)(mini_put_number(text, count) - text);
    mini_store(server, counted, digits, UINT64_MAX);
    if (count >= (uint64_t)1 << 53)
        return 0;
    if (command->kind == 'F')
        mini_store(server, command->keys[0], command->arguments[0], mini_end_us(server, command));
    command->changed |= command->kind == 'F';
    return (long long)count;
}

/* Acquires or extends all keys: 1, or with generations that of the keys; 0: refused. A repair gives all
   keys its own generation, if one is missing, or they have different ones. */
static uint64_t mini_run_all(struct mini_server *server, struct mini_command *command)
{
    struct mini_word token = command->arguments[0];
    const struct mini_key *first = mini_found(server, command->keys[0]);
    unsigned i;
    int creates = command->kind != 'E' || first == NULL;

    for (i = 0; i < command->key_count; i++) {
        const struct mini_key *found = mini_found(server, command->keys[i]);
        if (found != NULL && (command->kind != 'E' || !mini_owns(found, command, token)))
            return 0;
        if (found == NULL || first == NULL ||
            !mini_same(found->value, found->value_size, first->value, first->value_size))
            creates = 1;
    }
    if (creates && command->kind == 'E' && !command->repairs)
        return 0;
    for (i = 0; i < command->key_count; i++) {
        struct mini_key *found = mini_found(server, command->keys[i]);
        uint64_t end_us = mini_end_us(server, command);
        if (command->never_shortens && found != NULL && found->until_us != UINT64_MAX &&
            found->until_us > end_us)
            end_us = found->until_us;
        if (creates)
            mini_store(server, command->keys[i], token, end_us);
        else
            found->until_us = end_us;
        command->changed = (uint16_t)(command->changed | 1U << i);
    }
    return command->kind == 'E' && command->generations
               ? mini_generation(creates ? token.bytes : first->value)
               : 1;
}

/* The reply to a release of a key that another client has: its time, but from the minimal script, and its value. */
static void mini_put_holder(const struct mini_server *server, const struct mini_command *command,
                            const struct mini_key *key, char *reply)
{
    char text[24 + sizeof key->value];
    int size = 0;

    if (command->loops || command->queues)
        size = key->until_us == UINT64_MAX && !server->no_pttl
                   ? sprintf(text, "-1 ")
                   : sprintf(text, "%llu ",
                             server->no_pttl
                                 ? 0ULL
                                 : (unsigned long long)(key->until_us - server->now_us) / 1000);
    memcpy(text + size, key->value, key->value_size);
    *mini_put_string(reply, text, (unsigned)size + key->value_size) = '\0';
}

/* The reply to a release. */
static void mini_run_delete(struct mini_server *server, struct mini_session *session,
                            struct mini_command *command, char *reply)
{
    unsigned i;

    strcpy(reply, ":1\r\n");
    for (i = command->key_count; i-- > 0;) {
        struct mini_key *found = mini_found(server, command->keys[i]);
        mini_track(session, command->keys[i]);
        if (found != NULL && mini_owns(found, command, command->arguments[0])) {
            found->name.size = 0;
            command->changed = (uint16_t)(command->changed | 1U << i);
        } else if (found != NULL) {
            mini_put_holder(server, command, found, reply);
        } else if (reply[1] == '1' && reply[0] == ':') {
            strcpy(reply, ":0\r\n");
        }
    }
}

/* The same by a native command, if the server has it. */
static void mini_run_native(struct mini_server *server, struct mini_command *command, char *reply)
{
    int delex = command->words[0].size == 5;
    struct mini_word key = command->keys[0], token = command->arguments[0];
    struct mini_key *found = mini_found(server, key);

    if (!(server->native & (delex ? 2 : 1)))
        sprintf(reply, "-ERR unknown command '%s', with args beginning with: '%.*s' %s'%.*s' \r\n",
                delex ? "DELEX" : "DELIFEQ", (int)key.size, key.bytes, delex ? "'IFEQ' " : "",
                (int)token.size, token.bytes);
    else if (server->no_native)
        sprintf(reply, "-NOPERM this user has no permissions to run the '%s' command\r\n",
                delex ? "delex" : "delifeq");
    else if (found == NULL || !mini_owns(found, command, token))
        strcpy(reply, ":0\r\n");
    else {
        found->name.size = 0;
        command->changed = 1;
        strcpy(reply, ":1\r\n");
    }
    mini_keep_one_line(reply);
}

/* ---- The wait queue ------------------------------------------------------------------------- */

/* The scripts of the wait queue, R19, for a caller: its key and its name. */
struct mini_queue {
    struct mini_server *server;
    struct mini_session *session;
    struct mini_command *command;
    struct mini_word key;
    const char *name;
    int changed;      /* 1: the sorted set was changed */
    unsigned dropped; /* dead waiters */
    unsigned told;    /* waiters that were not told before */
};

static int mini_stands_in(const struct mini_queue *q, const struct mini_waiter *waiter)
{
    return waiter->key.size != 0 && waiter->database == q->server->database &&
           waiter->until_us > q->server->now_us &&
           mini_same(waiter->key.bytes, waiter->key.size, q->key.bytes, q->key.size);
}

static int mini_is_before(const struct mini_waiter *a, const struct mini_waiter *b)
{
    return a->since < b->since ||
           (a->since == b->since && memcmp(a->name, b->name, sizeof a->name) < 0);
}

/* The entry at a place, from 0; NULL: there is none. */
static struct mini_waiter *mini_waiter_at(const struct mini_queue *q, unsigned place)
{
    struct mini_waiter *at, *other, *end = q->server->waiters + MINI_WAITERS;

    for (at = q->server->waiters; at < end; at++) {
        unsigned before = 0;
        if (!mini_stands_in(q, at))
            continue;
        for (other = q->server->waiters; other < end && before <= place; other++)
            before += mini_stands_in(q, other) && mini_is_before(other, at);
        if (before == place)
            return at;
    }
    return NULL;
}

static struct mini_waiter *mini_own_entry(const struct mini_queue *q)
{
    struct mini_waiter *at;

    for (at = q->server->waiters; at < q->server->waiters + MINI_WAITERS; at++)
        if (mini_stands_in(q, at) && memcmp(at->name, q->name, sizeof at->name) == 0)
            return at;
    return NULL;
}

static struct mini_word mini_key_of(const struct mini_queue *q, const char *name,
                                    struct mini_name *key)
{
    struct mini_word word;

    key->size = (unsigned)sprintf(key->bytes, "%.*s:wait%s%.16s", (int)q->key.size, q->key.bytes,
                                  name != NULL ? ":" : "", name != NULL ? name : "");
    word.bytes = key->bytes;
    word.size = key->size;
    return word;
}

/* The key of the lease, or of the queue (NULL), has changed. */
static void mini_wake(struct mini_queue *q, const char *name)
{
    struct mini_command *command = q->command;
    struct mini_name key;

    if (command->woken == MINI_WOKEN)
        return;
    mini_untrack(q->session, mini_key_of(q, name, &key));
    command->woken_keys[command->woken++] = key;
}

static void mini_track_lease(const struct mini_queue *q, const char *name)
{
    struct mini_name key;

    mini_track(q->session, mini_key_of(q, name, &key));
}

static int mini_keeps_queue(const struct mini_queue *q)
{
    struct mini_name key;

    return !q->server->no_queue && mini_found(q->server, mini_key_of(q, NULL, &key)) == NULL;
}

/* The entry at a place, when the dead in front of it are dropped: their leases are over, which the server notes now, so it tells
   them. */
static struct mini_waiter *mini_living_at(struct mini_queue *q, unsigned place)
{
    struct mini_waiter *at;

    while (q->dropped < 50 && (at = mini_waiter_at(q, place)) != NULL) {
        if (memcmp(at->name, q->name, sizeof at->name) == 0)
            return at;
        if (at->leased_until_us > q->server->now_us) {
            mini_track_lease(q, at->name);
            return at;
        }
        mini_wake(q, at->name);
        at->key.size = 0;
        q->changed = 1;
        q->dropped++;
    }
    return NULL;
}

/* Enters the queue, or renews the lease. Returns the place; -1: there is no room. */
static int mini_enter(struct mini_queue *q)
{
    const struct mini_word *arguments = q->command->arguments;
    uint64_t since = mini_decimal(arguments[2]) * ((uint64_t)1 << 32) + mini_decimal(arguments[3]);
    uint64_t until_us = q->server->now_us + mini_decimal(arguments[4]) * 1000;
    struct mini_waiter *own = mini_own_entry(q), *at, *end = q->server->waiters + MINI_WAITERS;
    int place = 0;

    if (mini_decimal(arguments[4]) == 0)
        return -1; /* an invalid ttl */
    for (at = q->server->waiters; at < end && own == NULL; at++)
        if (at->key.size == 0 || at->until_us <= q->server->now_us) {
            memset(at, 0, sizeof *at);
            memcpy(at->key.bytes, q->key.bytes, q->key.size);
            at->key.size = q->key.size;
            at->database = q->server->database;
            memcpy(at->name, q->name, sizeof at->name);
            own = at;
        }
    if (own == NULL)
        return -1;
    mini_wake(q, q->name);
    own->since = since >> 32 != 0 ? since : q->server->now_us / 1000 + ((uint64_t)1 << 40) - since;
    own->answer_ms = (unsigned)mini_decimal(arguments[5]);
    if (own->leased_until_us < until_us)
        own->leased_until_us = until_us;
    if (own->until_us < until_us)
        own->until_us = until_us;
    for (at = q->server->waiters; at < end; at++)
        if (mini_stands_in(q, at)) {
            place += mini_is_before(at, own);
            if (at->until_us < until_us)
                at->until_us = until_us;
        }
    q->changed = 1;
    mini_track_lease(q, q->name);
    return place;
}

static void mini_leave(struct mini_queue *q)
{
    struct mini_waiter *own = mini_own_entry(q);

    if (own == NULL)
        return;
    own->key.size = 0;
    q->changed = 1;
    mini_wake(q, q->name);
}

/* Changes the leases of the first two waiters, and of five more for each that was dropped but the first, unless that has been done
   since they asked. */
static void mini_tell(struct mini_queue *q)
{
    unsigned place;

    for (place = 0; place < 2 || place + 3 < 5 * q->dropped; place++) {
        struct mini_waiter *at = mini_living_at(q, place);
        if (at == NULL)
            return;
        if (at->answer_ms == 0 || memcmp(at->name, q->name, sizeof at->name) == 0)
            continue;
        at->leased_until_us = q->server->now_us + (uint64_t)at->answer_ms * 1000;
        at->answer_ms = 0;
        q->told++;
        mini_wake(q, at->name);
    }
}

static struct mini_queue mini_queue_of(struct mini_server *server, struct mini_session *session,
                                       struct mini_command *command)
{
    struct mini_queue q = {server, session, command, command->keys[0], command->arguments[1].bytes,
                           0,      0,       0};

    return q;
}

/* The gate. Returns 1 if it has refused. */
static int mini_run_gate(struct mini_server *server, struct mini_session *session,
                         struct mini_command *command, char *reply)
{
    struct mini_queue q = mini_queue_of(server, session, command);
    const struct mini_key *holder = mini_found(server, q.key);
    struct mini_waiter *first = NULL;
    int place = -1, probes = mini_decimal(command->arguments[4]) == 0, size;
    int keeps = !probes && mini_keeps_queue(&q);
    char text[64 + sizeof holder->value];

    mini_track(session, q.key);
    if (keeps)
        first = mini_living_at(&q, 0);
    if (keeps &&
        (holder != NULL || (first != NULL && memcmp(first->name, q.name, sizeof first->name) != 0)))
        place = mini_enter(&q);
    if (holder == NULL && place > 0)
        mini_tell(&q);
    if (holder == NULL && place <= 0 && !probes)
        mini_leave(&q);
    if (q.changed)
        mini_wake(&q, NULL);
    if (holder == NULL && place <= 0 && !probes)
        return 0;
    size = sprintf(text, "%llu %d ", place >= 0 ? (unsigned long long)mini_own_entry(&q)->since : 0,
                   place > 0 ? place : 0);
    size += holder == NULL ? sprintf(text + size, "-2 %d", q.dropped > 0 || q.told > 1)
            : holder->until_us == UINT64_MAX
                ? sprintf(text + size, "-1 ")
                : sprintf(text + size, "%llu ",
                          server->no_pttl
                              ? 0ULL
                              : (unsigned long long)(holder->until_us - server->now_us) / 1000);
    if (holder != NULL) {
        memcpy(text + size, holder->value, holder->value_size);
        size += (int)holder->value_size;
    }
    *mini_put_string(reply, text, (unsigned)size) = '\0';
    return 1;
}

/* Releases the key, and leaves the queue or stands in it again. */
static void mini_run_leave(struct mini_server *server, struct mini_session *session,
                           struct mini_command *command, char *reply)
{
    struct mini_queue q = mini_queue_of(server, session, command);

    mini_run_delete(server, session, command, reply);
    if (!mini_keeps_queue(&q))
        return;
    if (command->argument_count > 2)
        mini_enter(&q);
    else
        mini_leave(&q);
    if (reply[0] == ':')
        mini_tell(&q);
    if (q.changed)
        mini_wake(&q, NULL);
}

/* Redis 6.0 also tells the caller of what its script has changed, before the reply. */
static unsigned mini_tell_caller(struct mini_session *session, const struct mini_session *before,
                                 const struct mini_command *command, char *reply)
{
    struct mini_session copy = *before;
    unsigned i, size = 0;

    (void)session;
    for (i = 0; i < command->woken && size < MINI_REPLY / 2; i++) {
        struct mini_word key = {command->woken_keys[i].bytes, command->woken_keys[i].size};
        size += mini_notify(&copy, key, reply + size);
    }
    return size;
}

/* ---- The handshake --------------------------------------------------------------------------- */

static void mini_reply_run(const struct mini_server *server, char *reply)
{
    char run[8];

    sprintf(run, "%05u", server->run % 100000);
    sprintf(reply, "*2\r\n$%u\r\n%s\r\n:%d\r\n", (unsigned)strlen(run), run, server->age_s);
}

/* HELLO 3 [AUTH user password] SETNAME name. Returns the password; NULL: none. */
static const struct mini_word *mini_hello(struct mini_session *session,
                                          const struct mini_command *command)
{
    const struct mini_word *words = command->words;
    unsigned more = command->count == 7 ? 3 : 0;

    if (command->count != 4 + more || !mini_is(words[1], "3") ||
        (more > 0 && !mini_is(words[2], "AUTH")) || !mini_is(words[2 + more], "SETNAME"))
        mini_fail("HELLO with other words");
    session->named = mini_is(words[3 + more], "redlock");
    return more > 0 ? &words[4] : NULL;
}

/* Commands of the handshake, as far as the library reads the replies. */
static void mini_run_handshake(struct mini_server *server, struct mini_session *session,
                               const struct mini_command *command, char *reply)
{
    char kind = command->kind;
    const struct mini_word *last = &command->words[command->count - 1];
    const struct mini_word *secret = kind == 'H'   ? mini_hello(session, command)
                                     : kind == 'A' ? last
                                                   : NULL;
    int right = server->password == NULL || (secret != NULL && mini_is(*secret, server->password));

    strcpy(reply, "+OK\r\n");
    if (secret != NULL) {
        session->greeted = 1;
        last = secret;
    }
    if ((kind == 'H' && server->hello != NULL) || (kind == 'A' && server->auth != NULL)) {
        strcpy(reply, kind == 'H' ? server->hello : server->auth);
        return;
    }
    if (kind == 'H' && server->old)
        sprintf(reply, "-ERR unknown command `HELLO`, with args beginning with: `3`, %.*s\r\n",
                last->size < 128 ? (int)last->size : 128, last->bytes);
    else if (secret != NULL && !right)
        strcpy(reply, "-WRONGPASS invalid username-password pair or user is disabled.\r\n");
    else if (!session->known && !right)
        strcpy(reply, "-NOAUTH Authentication required.\r\n");
    else if (kind == 'H')
        sprintf(reply,
                "%%7\r\n$6\r\nserver\r\n%s\r\n$7\r\nversion\r\n%s\r\n"
                "$5\r\nproto\r\n:3\r\n$2\r\nid\r\n:3\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n"
                "$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n",
                server->native & 1 ? "$6\r\nvalkey" : "$5\r\nredis",
                server->tells_caller ? "$6\r\n6.0.16"
                : server->native & 1 ? "$5\r\n9.0.0"
                : server->native & 2 ? "$5\r\n8.4.0"
                                     : "$6\r\n7.0.15");
    else if (kind == 'T' && server->no_pushes)
        strcpy(reply,
               "-NOPERM this user has no permissions to run the 'client|tracking' command\r\n");
    else if (kind == 'T')
        session->tracking = session->resp3 && mini_is(last[-1], "ON"); /* RESP2 has no pushes */
    else if (kind == 'I' && server->loading)
        strcpy(reply, "-LOADING Redis is loading the dataset in memory\r\n");
    else if (kind == 'I' && server->no_info)
        strcpy(reply,
               "-ERR The user executing the script can't run this command or subcommand\r\n");
    else if (kind == 'I')
        mini_reply_run(server, reply);
    else if (kind == 'L')
        session->database = (int)mini_decimal(*last);
    mini_keep_one_line(reply);
    session->known |= reply[0] != '-' && (secret != NULL || right);
    session->resp3 |= kind == 'H' && reply[0] == '%';
}

static void mini_run_fencing(struct mini_server *server, struct mini_command *command, char *reply)
{
    long long count = mini_next_counter(server, command);

    if (count == 0)
        strcpy(reply, "-ERR fencing token too large\r\n");
    else if (count < 0)
        strcpy(reply, ":-1\r\n");
    else
        mini_reply_number(reply, (unsigned long long)count);
}

int mini_has_script(const struct mini_server *server, const struct mini_command *command)
{
    return !command->by_hash ||
           (!server->no_native && server->no_hash == NULL && (server->native & 4) == 0 &&
            (server->scripts >> (command->script - 1) & 1) != 0);
}

unsigned mini_run(struct mini_server *server, struct mini_session *session,
                  struct mini_command *command, char reply[MINI_REPLY])
{
    struct mini_session before;
    unsigned i, told = 0;

    server->database = session->database;
    if (command->script > 0 && !command->by_hash)
        server->scripts |= 1U << (command->script - 1);
    if (server->tells_caller && command->queues)
        before = *session;
    if (!mini_is_of_a_lock(command))
        mini_run_handshake(server, session, command, reply);
    else if (server->password != NULL && !session->known &&
             !(session->greeted && strchr("DN", command->kind) != NULL))
        mini_fail("a command before the handshake"); /* a release may stand behind a wrong one */
    else if (server->password != NULL && !session->known)
        strcpy(reply, "-NOAUTH Authentication required.\r\n");
    else if (!mini_has_script(server, command))
        strcpy(reply, server->no_hash != NULL ? server->no_hash
                      : server->no_native
                          ? "-NOPERM this user has no permissions to run the 'evalsha' command\r\n"
                          : "-NOSCRIPT No matching script. Please use EVAL.\r\n");
    else if (command->queues && command->kind != 'D' &&
             mini_run_gate(server, session, command, reply))
        ;
    else if (command->queues && command->kind == 'D')
        mini_run_leave(server, session, command, reply);
    else if (command->kind == 'D')
        mini_run_delete(server, session, command, reply);
    else if (command->kind == 'N')
        mini_run_native(server, command, reply);
    else if (command->kind == 'F' || command->kind == 'R')
        mini_run_fencing(server, command, reply);
    else if (command->kind != 'S')
        mini_reply_number(reply, mini_run_all(server, command));
    else if (mini_run_all(server, command) == 1)
        strcpy(reply, command->queues ? ":1\r\n" : "+OK\r\n");
    else
        strcpy(reply, session->resp3 ? "_\r\n" : "$-1\r\n");
    for (i = 0; i < command->key_count; i++)
        if (strchr("EMFR", command->kind) != NULL)
            mini_track(session, command->keys[i]);
    for (i = 0; i < command->key_count; i++)
        if ((command->changed >> i & 1) != 0)
            mini_untrack(session, command->keys[i]);
    if (server->tells_caller && command->queues) {
        char pushes[MINI_REPLY];
        told = mini_tell_caller(session, &before, command, pushes);
        memmove(reply + told, reply, strlen(reply) + 1);
        memcpy(reply, pushes, told);
    }
    return (unsigned)strlen(reply + told) + told;
}

/* ---- Reading -------------------------------------------------------------------------------- */

static int mini_number(const char **at, const char *end, char type, unsigned *number)
{
    const char *p = *at;

    if (p == end)
        return 0;
    if (*p++ != type)
        mini_fail("not a command");
    for (*number = 0; p != end && *p != '\r'; p++)
        *number = *number * 10 + (unsigned)(*p - '0');
    if (end - p < 2)
        return 0;
    *at = p + 2;
    return 1;
}

/* Splits one command into words; 0: not complete yet. */
static unsigned mini_words(const char *at, const char *end, struct mini_word *words, unsigned *used)
{
    const char *start = at;
    unsigned count, i;

    if (!mini_number(&at, end, '*', &count))
        return 0;
    if (count > 16)
        mini_fail("a command with too many words");
    for (i = 0; i < count; i++) {
        if (!mini_number(&at, end, '$', &words[i].size))
            return 0;
        if ((size_t)(end - at) < words[i].size + 2)
            return 0;
        words[i].bytes = at;
        at += words[i].size + 2;
    }
    *used = (unsigned)(at - start);
    return count;
}

/* The position of `part` in the word, from 1; 0: not found. */
static unsigned mini_at(struct mini_word word, const char *part)
{
    unsigned i, size = (unsigned)strlen(part);

    for (i = 0; i + size <= word.size; i++)
        if (memcmp(word.bytes + i, part, size) == 0)
            return i + 1;
    return 0;
}

/* The properties of a script, found in its text. */
struct mini_script {
    uint64_t hash; /* of the text */
    unsigned size; /* 0: the entry is free */
    char kind;     /* of the command; '?': unknown */
    uint8_t never_shortens, bounded, loops, generations, queues, number;
};

/* The sha1sums of scripts that the library sends as such, and what was found in their texts. */
static const char *const mini_hashes[] = {"5b289f64598f641e3f0633355a623d508403703b",
                                          "f608d04afd58c9ca230a8747c0eb263f92b0c290",
                                          "7164a8e6ed89ad967b01d0e6d11757d85d771c9f"};
enum { MINI_HASHES = sizeof mini_hashes / sizeof *mini_hashes };
static struct mini_script mini_hashed[MINI_HASHES]; /* delete, gate, leave */

/* Which of them the script is, from 1; 0: none. */
static uint8_t mini_number_of(const struct mini_script *script)
{
    if (script->kind == 'S')
        return 2;
    if (script->kind == 'D' && script->queues)
        return 3;
    return script->kind == 'D' && script->loops;
}

static struct mini_script mini_classify(struct mini_word text)
{
    static const struct {
        const char *part;
        char kind;
    } scripts[] = {{"not A[3]", 'D'},      {"'zadd'", 'S'},        {"'info'", 'I'},
                   {"'exists',K[1]", 'F'}, {"'get',K[2])or", 'R'}, {"'pexpire'", 'E'},
                   {"'del'", 'D'},         {"'exists'", 'M'}};
    struct mini_script script = {0, 0, '?', 0, 0, 0, 0, 0, 0};
    int is_usual = mini_at(text, ",m=redis.call,KEYS,ARGV,tonumber,32 ") > 0; /* its head */
    unsigned i;

    for (i = 0; i < sizeof scripts / sizeof *scripts && script.kind == '?'; i++)
        if (mini_at(text, scripts[i].part) > 0)
            script.kind = scripts[i].kind;
    script.queues = mini_at(text, "'zadd'") > 0;
    script.loops = mini_at(text, "#K") > 0;
    script.generations = is_usual && mini_at(text, ":sub(1,m)") > 0;
    script.never_shortens = script.kind == 'E' && mini_at(text, "math.max(N(A[2]),c('pttl',K[") > 0;
    script.bounded =
        script.kind == 'R' || ((script.kind == 'F' || script.queues) &&
                               mini_at(text, "n>=2^53") < mini_at(text, "c('set',K[2]"));
    script.number = is_usual ? mini_number_of(&script) : 0;
    if (script.number > 0)
        mini_hashed[script.number - 1] = script;
    return script;
}

/* The same with a cache, because searching the text is slow. */
static const struct mini_script *mini_script(struct mini_word text)
{
    enum { KNOWN = 16 };
    static struct mini_script known[KNOWN];
    static unsigned oldest;
    uint64_t hash = text.size, factor = 0x9e3779b97f4a7c15U, part;
    unsigned i;

    for (i = 0; i + sizeof part <= text.size; i += (unsigned)sizeof part) {
        memcpy(&part, text.bytes + i, sizeof part);
        hash += part * factor;
        factor += 0xd1342543de82ef96U; /* stays odd */
    }
    for (; i < text.size; i++)
        hash = (hash ^ (uint8_t)text.bytes[i]) * factor;
    for (i = 0; i < KNOWN; i++)
        if (known[i].size == text.size && known[i].hash == hash)
            return &known[i];
    i = oldest++ % KNOWN;
    known[i] = mini_classify(text);
    known[i].hash = hash;
    known[i].size = text.size;
    return &known[i];
}

static char mini_kind(const struct mini_word *words, unsigned count)
{
    static const struct {
        const char *name;
        unsigned size, count; /* of the name; of the words, 0: any */
        char kind;
    } names[] = {{"SET", 3, 6, 'S'},   {"DELIFEQ", 7, 3, 'N'}, {"CLIENT", 6, 0, 'T'},
                 {"HELLO", 5, 0, 'H'}, {"SELECT", 6, 0, 'L'},  {"AUTH", 4, 0, 'A'},
                 {"DELEX", 5, 4, 'N'}}; /* DELEX stays last: it needs IFEQ */
    unsigned i;

    for (i = 0; i < sizeof names / sizeof *names; i++)
        if ((names[i].count == 0 || names[i].count == count) &&
            mini_same(words[0].bytes, words[0].size, names[i].name, names[i].size) &&
            (i + 1 < sizeof names / sizeof *names || mini_is(words[2], "IFEQ")))
            return names[i].kind;
    printf("# %.*s with %u words: mini_kind has no letter for it\n", (int)words[0].size,
           words[0].bytes, count);
    mini_fail("an unknown command");
    return '?';
}

int mini_is_of_a_lock(const struct mini_command *command)
{
    switch (command->kind) {
    case 'S':
    case 'M':
    case 'F':
    case 'R':
    case 'E':
    case 'D':
    case 'N':
        return 1;
    default:
        return 0;
    }
}

unsigned mini_read(const char *bytes, unsigned size, struct mini_command *command)
{
    static const struct mini_script none;
    const struct mini_script *script = &none;
    const struct mini_word *words = command->words;
    unsigned used, keys;

    command->count = mini_words(bytes, bytes + size, command->words, &used);
    if (command->count == 0)
        return 0;
    command->by_hash = 0;
    if (command->count >= 3 && mini_same(words[0].bytes, words[0].size, "EVAL", 4))
        script = mini_script(words[1]);
    if (command->count >= 3 && mini_same(words[0].bytes, words[0].size, "EVALSHA", 7)) {
        unsigned i = 0;
        while (i < MINI_HASHES && !mini_is(words[1], mini_hashes[i]))
            i++;
        if (i == MINI_HASHES || mini_hashed[i].number == 0)
            mini_fail("the hash of another script");
        script = &mini_hashed[i];
        command->by_hash = 1;
    }
    command->kind = script == &none ? mini_kind(words, command->count) : script->kind;
    if (command->kind == '?')
        mini_fail("an unknown script");
    command->changed = command->repairs = 0;
    command->woken = 0;
    command->loops = script->loops;
    command->queues = script->queues;
    command->script = script->number;
    command->generations = script->generations;
    command->never_shortens = script->never_shortens;
    command->bounded = script->bounded;
    command->ttl_ms = command->key_count = command->argument_count = 0;
    command->keys = command->arguments = NULL;
    if (!mini_is_of_a_lock(command))
        return used;
    keys = script != &none ? 3 : 1;
    command->keys = &words[keys];
    command->key_count = keys == 1 ? 1 : (unsigned)mini_decimal(words[2]);
    command->arguments = command->keys + command->key_count;
    command->argument_count = command->count - keys - command->key_count;
    /* the last word: after IFEQ, or after the key */
    if (command->kind == 'N')
        command->arguments = &words[command->count - 1];
    command->repairs = command->kind == 'E' && command->argument_count == 2;
    if (command->queues && command->argument_count > 2) {
        struct mini_word lease = command->keys[command->key_count - 1],
                         name = command->arguments[1];
        if (command->key_count < 2 || lease.size < name.size ||
            memcmp(lease.bytes + lease.size - name.size, name.bytes, name.size) != 0)
            mini_fail("servers before 7.2 do not notify of a lease that the script does not name");
        command->key_count--; /* it is no key of the lock */
    }
    if (command->queues && command->kind == 'S') {
        command->kind = command->key_count > 1 ? 'F' : 'S';
        command->ttl_ms = (uint32_t)mini_decimal(command->arguments[6]);
    } else if (command->kind == 'M' || command->kind == 'F' || command->kind == 'E')
        command->ttl_ms = (uint32_t)mini_decimal(command->arguments[1]);
    else if (command->kind == 'S')
        command->ttl_ms = (uint32_t)mini_decimal(words[5]);
    return used;
}
