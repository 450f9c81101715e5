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
uint64_t fake_now_us, fake_wall_us, fake_transmit_us, fake_sleep_us;
uint32_t fake_forks;
int fake_no_entropy;
unsigned fake_waits;

static uint32_t fake_seed;

static void fake_fail(const char *what)
{
    printf("Bail out! fake server: %s\n", what);
    exit(1);
}

/* ---- A server: keys, and three commands ----------------------------------------------------- */

const struct fake_key *fake_find(int node, const void *key, unsigned size)
{
    struct fake_key *keys = fake_nodes[node].keys;
    int i;

    for (i = 0; i < FAKE_KEYS; i++) {
        if (keys[i].key_size > 0 && keys[i].until_us <= fake_now_us)
            keys[i].key_size = 0;
        if (keys[i].key_size == size && memcmp(keys[i].key, key, size) == 0)
            return &keys[i];
    }
    return NULL;
}

static struct fake_key *fake_store(int node, const void *key, unsigned key_size, const void *value,
                                   unsigned value_size, uint32_t ttl_ms)
{
    struct fake_key *keys = fake_nodes[node].keys;
    int i;

    for (i = 0; i < FAKE_KEYS; i++)
        if (keys[i].key_size == 0 || keys[i].until_us <= fake_now_us)
            break;
    if (i == FAKE_KEYS || key_size > sizeof keys->key || value_size > sizeof keys->value)
        fake_fail("no room for a key");
    memcpy(keys[i].key, key, key_size);
    memcpy(keys[i].value, value, value_size);
    keys[i].key_size = key_size;
    keys[i].value_size = value_size;
    keys[i].until_us = fake_now_us + ttl_ms * (uint64_t)1000;
    return &keys[i];
}

void fake_put(int node, const char *key, const char *value, uint32_t ttl_ms)
{
    fake_store(node, key, (unsigned)strlen(key), value, (unsigned)strlen(value), ttl_ms);
}

unsigned fake_keys_left(void)
{
    unsigned left = 0;
    int node, i;

    for (node = 0; node < FAKE_NODES; node++)
        for (i = 0; i < FAKE_KEYS && !fake_nodes[node].hung; i++)
            left += fake_nodes[node].keys[i].key_size > 0 &&
                    fake_nodes[node].keys[i].until_us > fake_now_us &&
                    fake_nodes[node].keys[i].until_us != UINT64_MAX; /* fencing counts stay */
    return left;
}

static void fake_say(int node, const char *bytes, unsigned size)
{
    struct fake_node *n = &fake_nodes[node];

    if (n->out_used + size > FAKE_BYTES)
        fake_fail("a client that does not read");
    memcpy(n->out + n->out_used, bytes, size);
    n->out_used += size;
    n->ready_us = fake_now_us + n->delay_us;
}

void fake_delete(int node, const char *key)
{
    struct fake_node *n = &fake_nodes[node];
    struct fake_key *found =
        (struct fake_key *)(uintptr_t)fake_find(node, key, (unsigned)strlen(key));
    char push[160];
    int i;

    if (found == NULL)
        return;
    found->key_size = 0;
    for (i = 0; i < 4; i++)
        if (n->tracked[i].key_size == strlen(key) &&
            memcmp(n->tracked[i].key, key, strlen(key)) == 0) {
            fake_say(node, push,
                     (unsigned)sprintf(push, ">2\r\n$10\r\ninvalidate\r\n*1\r\n$%u\r\n%s\r\n",
                                       (unsigned)strlen(key), key));
            n->tracked[i].key_size = 0;
            return;
        }
}

/* The connection has read it, and is told when it changes. */
static void fake_track(int node, const struct fake_key *key)
{
    struct fake_key *tracked = fake_nodes[node].tracked;
    int i, to = -1;

    for (i = 0; i < 4; i++)
        if (tracked[i].key_size == 0 || (tracked[i].key_size == key->key_size &&
                                         memcmp(tracked[i].key, key->key, key->key_size) == 0))
            to = i;
    if (to >= 0)
        tracked[to] = *key;
}

struct fake_word {
    const char *bytes;
    unsigned size;
};

static int fake_same(const struct fake_key *found, struct fake_word token)
{
    return found->value_size == token.size && memcmp(found->value, token.bytes, token.size) == 0;
}

/* A command of a lock, taken apart. */
struct fake_call {
    const struct fake_word *keys, *arguments; /* the first argument is the token */
    unsigned key_count, argument_count;
};

static struct fake_key *fake_found(int node, struct fake_word key)
{
    return (struct fake_key *)(uintptr_t)fake_find(node, key.bytes, key.size);
}

static uint64_t fake_decimal(const char *digits, unsigned size)
{
    uint64_t number = 0;

    for (; size > 0; size--)
        number = number * 10 + (uint64_t)(*digits++ - '0');
    return number;
}

/* The two scripts of a fencing token. */
static long long fake_run_fence(int node, const struct fake_command *command,
                                const struct fake_call *call)
{
    struct fake_word token = call->arguments[0], high = call->arguments[call->argument_count - 2],
                     low = call->arguments[call->argument_count - 1];
    struct fake_key *found = fake_found(node, call->keys[0]);
    struct fake_key *counter = fake_found(node, call->keys[1]);
    uint64_t count = counter != NULL ? fake_decimal(counter->value, counter->value_size) : 0;
    uint64_t proposal = fake_decimal(high.bytes, high.size) * ((uint64_t)1 << 32) +
                        fake_decimal(low.bytes, low.size);
    char digits[24];

    if (command->kind == 'F' ? found != NULL : found == NULL || !fake_same(found, token))
        return -1;
    if (command->kind == 'F')
        count++;
    if (count < proposal)
        count = proposal;
    if (counter != NULL)
        counter->key_size = 0;
    sprintf(digits, "%llu", (unsigned long long)count);
    fake_store(node, call->keys[1].bytes, call->keys[1].size, digits, (unsigned)strlen(digits), 0)
        ->until_us = UINT64_MAX;
    if (command->kind == 'F')
        fake_store(node, call->keys[0].bytes, call->keys[0].size, token.bytes, token.size,
                   command->ttl_ms);
    return (long long)count;
}

/* Taking and extending, of one key or several: 1 or 2, or 0. */
static int fake_run_all(int node, const struct fake_command *command, const struct fake_call *call)
{
    struct fake_word token = call->arguments[0];
    unsigned i;
    int answer = 1;

    for (i = 0; i < call->key_count; i++) {
        const struct fake_key *found = fake_found(node, call->keys[i]);
        if (found != NULL && (command->kind != 'E' || !fake_same(found, token)))
            return 0;
        if (found == NULL && command->kind == 'E' && !command->heals)
            return 0;
        if (found == NULL && command->kind == 'E')
            answer = 2;
    }
    for (i = 0; i < call->key_count; i++) {
        struct fake_key *found = fake_found(node, call->keys[i]);
        if (found == NULL)
            fake_store(node, call->keys[i].bytes, call->keys[i].size, token.bytes, token.size,
                       command->ttl_ms);
        else
            found->until_us = fake_now_us + command->ttl_ms * (uint64_t)1000;
    }
    return answer;
}

/* The reply to a release. */
static void fake_run_delete(int node, const struct fake_call *call, char *reply)
{
    unsigned i;

    strcpy(reply, ":1\r\n");
    for (i = 0; i < call->key_count; i++) {
        struct fake_key *found = fake_found(node, call->keys[i]);
        if (found != NULL && fake_nodes[node].tracking)
            fake_track(node, found);
        if (found != NULL && fake_same(found, call->arguments[0]))
            found->key_size = 0;
        else if (found != NULL)
            sprintf(reply, "$%u\r\n%.*s\r\n", found->value_size, (int)found->value_size,
                    found->value);
        else if (reply[1] == '1' && reply[0] == ':')
            strcpy(reply, ":0\r\n");
    }
}

/* What a server of ours answers; the same as redis-server, see fake_test.c. */
static void fake_run(int node, const struct fake_command *command, const struct fake_call *call)
{
    char reply[200];

    if (command->kind == 'D')
        fake_run_delete(node, call, reply);
    else if (command->kind == 'F' || command->kind == 'R')
        sprintf(reply, ":%lld\r\n", fake_run_fence(node, command, call));
    else if (command->kind != 'S')
        sprintf(reply, ":%d\r\n", fake_run_all(node, command, call));
    else if (fake_run_all(node, command, call) == 1)
        strcpy(reply, "+OK\r\n");
    else
        strcpy(reply, fake_nodes[node].resp3 ? "_\r\n" : "$-1\r\n");
    if (command->kind != 'S' || !fake_nodes[node].deaf_to_set)
        fake_say(node, reply, (unsigned)strlen(reply));
}

/* The answers of redis-server 7.0 to a greeting, as far as the library looks at them. */
static void fake_run_greeting(int node, char kind, const struct fake_word *words, unsigned count)
{
    struct fake_node *n = &fake_nodes[node];
    char reply[300] = "+OK\r\n", run[8], age[16];
    const struct fake_word *last = &words[count - 1];
    int secret = kind == 'A' || (kind == 'H' && count == 5);
    int right = n->password == NULL || (secret && last->size == strlen(n->password) &&
                                        memcmp(last->bytes, n->password, last->size) == 0);

    sprintf(run, "%05d", n->run != 0 ? n->run : 90000 + node);
    sprintf(age, "%d", n->age_s);
    if (kind == 'H' && n->hello != NULL) {
        fake_say(node, n->hello, (unsigned)strlen(n->hello));
        return;
    }
    if (kind == 'H' && n->old)
        sprintf(reply, "-ERR unknown command `HELLO`, with args beginning with: `3`, %.*s\r\n",
                (int)last->size, last->bytes);
    else if (secret && !right)
        strcpy(reply, "-WRONGPASS invalid username-password pair or user is disabled.\r\n");
    else if (!n->known && !right)
        strcpy(reply, "-NOAUTH Authentication required.\r\n");
    else if (kind == 'H')
        strcpy(reply, "%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$6\r\n7.0.15\r\n"
                      "$5\r\nproto\r\n:3\r\n$2\r\nid\r\n:3\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n"
                      "$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n");
    else if (kind == 'T' && n->no_pushes)
        strcpy(reply,
               "-NOPERM this user has no permissions to run the 'client|tracking' command\r\n");
    else if (kind == 'T')
        n->tracking = 1;
    else if (kind == 'I' && n->no_info)
        strcpy(reply,
               "-ERR The user executing the script can't run this command or subcommand\r\n");
    else if (kind == 'I')
        sprintf(reply, "*2\r\n$%u\r\n%s\r\n$%u\r\n%s\r\n", (unsigned)strlen(run), run,
                (unsigned)strlen(age), age);
    else if (kind == 'L')
        n->database = atoi(last->bytes);
    n->known |= reply[0] != '-' && (secret || right);
    n->resp3 |= kind == 'H' && reply[0] == '%';
    fake_say(node, reply, (unsigned)strlen(reply));
}

static int fake_number(const char **at, const char *end, char type, unsigned *number)
{
    const char *p = *at;

    if (p == end)
        return 0;
    if (*p++ != type)
        fake_fail("not a command");
    for (*number = 0; p != end && *p != '\r'; p++)
        *number = *number * 10 + (unsigned)(*p - '0');
    if (end - p < 2)
        return 0;
    *at = p + 2;
    return 1;
}

/* Splits one command into words; 0 when it is not whole yet. */
static unsigned fake_words(const char *at, const char *end, struct fake_word *words, unsigned *used)
{
    const char *start = at;
    unsigned count, i;

    if (!fake_number(&at, end, '*', &count))
        return 0;
    if (count > 16)
        fake_fail("a command of many words");
    for (i = 0; i < count; i++) {
        if (!fake_number(&at, end, '$', &words[i].size))
            return 0;
        if ((size_t)(end - at) < words[i].size + 2)
            return 0;
        words[i].bytes = at;
        at += words[i].size + 2;
    }
    *used = (unsigned)(at - start);
    return count;
}

static int fake_has(struct fake_word word, const char *part)
{
    unsigned i, size = (unsigned)strlen(part);

    for (i = 0; i + size <= word.size; i++)
        if (memcmp(word.bytes + i, part, size) == 0)
            return 1;
    return 0;
}

static char fake_kind(const struct fake_word *words, unsigned count)
{
    static const struct {
        const char *name;
        char kind;
    } greetings[] = {{"HELLO", 'H'}, {"AUTH", 'A'}, {"SELECT", 'L'}, {"CLIENT", 'T'}};
    static const struct {
        const char *part;
        char kind;
    } scripts[] = {{"'info'", 'I'},    {"'incr'", 'F'}, {"n=tonumber(", 'R'},
                   {"'pexpire'", 'E'}, {"'del'", 'D'},  {"'exists'", 'M'}};
    unsigned i;

    for (i = 0; i < 4; i++)
        if (words[0].size == strlen(greetings[i].name) &&
            memcmp(words[0].bytes, greetings[i].name, words[0].size) == 0)
            return greetings[i].kind;
    if (count == 6 && memcmp(words[0].bytes, "SET", 3) == 0)
        return 'S';
    for (i = 0; i < sizeof scripts / sizeof *scripts && count >= 3; i++)
        if (words[0].size == 4 && memcmp(words[0].bytes, "EVAL", 4) == 0 &&
            fake_has(words[1], scripts[i].part))
            return scripts[i].kind;
    fake_fail("a command that it does not know");
    return '?';
}

static void fake_copy(char *to, size_t room, struct fake_word word)
{
    size_t size = word.size < room - 1 ? word.size : room - 1;

    memcpy(to, word.bytes, size);
    to[size] = '\0';
}

/* Notes a command of a lock and runs it, or says what the test wants instead. */
static void fake_obey(int node, char kind, const struct fake_word *words, unsigned count)
{
    struct fake_node *n = &fake_nodes[node];
    struct fake_command *command = &fake_log[fake_logged];
    struct fake_call call;

    if (++fake_logged == FAKE_LOG)
        fake_fail("too many commands");
    memset(command, 0, sizeof *command);
    command->at_us = fake_now_us;
    command->node = node;
    command->epoch = n->epoch;
    command->kind = kind;
    if (strchr("SMFRED", kind) == NULL) {
        fake_run_greeting(node, kind, words, count);
        return;
    }
    call.keys = &words[kind == 'S' ? 1 : 3];
    call.key_count = kind == 'S' ? 1 : (unsigned)fake_decimal(words[2].bytes, words[2].size);
    call.arguments = call.keys + call.key_count;
    call.argument_count = count - (kind == 'S' ? 1 : 3) - call.key_count;
    fake_copy(command->key, sizeof command->key, call.keys[0]);
    fake_copy(command->token, sizeof command->token, call.arguments[0]);
    command->heals = kind == 'E' && call.argument_count == 2;
    if (strchr("MFE", kind) != NULL)
        command->ttl_ms = (uint32_t)fake_decimal(call.arguments[1].bytes, call.arguments[1].size);
    if (kind == 'S')
        command->ttl_ms = (uint32_t)fake_decimal(words[5].bytes, words[5].size);
    if (n->password != NULL && !n->known)
        fake_fail("a command before the greeting");
    if (n->says == NULL)
        fake_run(node, command, &call);
    else if (n->says[0] == '\0')
        fake_break(node);
    else
        fake_say(node, n->says, (unsigned)strlen(n->says));
    if (n->says_once)
        n->says = NULL;
}

/* Runs the whole commands among the bytes that came. */
static void fake_serve(int node)
{
    struct fake_node *n = &fake_nodes[node];
    struct fake_word words[16];
    unsigned count, used;

    while (n->connected && !n->hung &&
           (count = fake_words(n->in, n->in + n->in_used, words, &used)) > 0) {
        fake_obey(node, fake_kind(words, count), words, count);
        if (n->in_used >= used) { /* not when it hung up */
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

void fake_resume(int node)
{
    fake_nodes[node].hung = 0;
    fake_serve(node);
}

unsigned fake_count(int node, char kind)
{
    unsigned i, count = 0;

    for (i = 0; i < fake_logged; i++)
        count += (node < 0 || fake_log[i].node == node) && fake_log[i].kind == kind;
    return count;
}

/* ---- The io table --------------------------------------------------------------------------- */

static int fake_dial(void *context, struct redlock_node *node)
{
    int i = atoi(node->address);
    struct fake_node *n = &fake_nodes[i];

    (void)context;
    n->dials++;
    if (n->refuses) {
        redlock_trouble(node, "connect", "refused");
        return -1;
    }
    n->epoch++;
    n->connected = 1;
    n->in_used = n->out_first = n->out_used = 0;
    n->resp3 = n->known = n->database = n->tracking = 0;
    memset(n->tracked, 0, sizeof n->tracked);
    node->handle = i;
    if (n->greets != NULL)
        fake_say(i, n->greets, (unsigned)strlen(n->greets));
    return 0;
}

static int fake_ready(void *context, struct redlock_node *node)
{
    (void)context;
    return !fake_nodes[node->handle].never_up;
}

static int fake_transmit(void *context, struct redlock_node *node, const void *bytes, size_t size)
{
    struct fake_node *n = &fake_nodes[node->handle];

    (void)context;
    fake_now_us += fake_transmit_us;
    if (!n->connected) {
        redlock_trouble(node, "send", "broken pipe");
        return -1;
    }
    if (n->full)
        return 0;
    if (n->drip)
        size = 1;
    if (n->in_used + size > FAKE_BYTES)
        fake_fail("too many bytes");
    memcpy(n->in + n->in_used, bytes, size);
    n->in_used += (unsigned)size;
    fake_serve((int)node->handle);
    return (int)size;
}

static int fake_readable(const struct fake_node *n)
{
    return !n->connected || (n->out_first < n->out_used && n->ready_us <= fake_now_us);
}

static int fake_receive(void *context, struct redlock_node *node, void *bytes, size_t size)
{
    struct fake_node *n = &fake_nodes[node->handle];
    unsigned left = n->out_used - n->out_first;

    (void)context;
    if (left > 0 && n->ready_us <= fake_now_us) {
        if (n->drip)
            size = 1;
        size = size < left ? size : left;
        memcpy(bytes, n->out + n->out_first, size);
        n->out_first += (unsigned)size;
        return (int)size;
    }
    if (n->connected)
        return 0;
    redlock_trouble(node, "receive", "closed by the server");
    return -1;
}

static void fake_shut(void *context, struct redlock_node *node)
{
    (void)context;
    if (node->handle < 0)
        fake_fail("shut twice");
    fake_nodes[node->handle].connected = 0;
    if (!fake_nodes[node->handle].hung) /* a stopped server still runs what it was sent */
        fake_nodes[node->handle].in_used = 0;
    node->handle = -1;
}

static uint64_t fake_clock(void *context)
{
    (void)context;
    return fake_now_us;
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

/* When something will happen by itself on a node that is waited for. */
static uint64_t fake_next_us(const struct fake_node *n, unsigned wanted)
{
    if ((wanted & REDLOCK_WRITABLE) && !n->full && !n->never_up)
        return fake_now_us;
    if (!n->connected)
        return fake_now_us;
    return n->out_first < n->out_used ? n->ready_us : REDLOCK_NEVER;
}

static void fake_wait(void *context, struct redlock_node *nodes, unsigned count,
                      uint64_t timeout_us, uint8_t *events)
{
    uint64_t until = timeout_us == REDLOCK_NEVER ? REDLOCK_NEVER : fake_now_us + timeout_us;
    unsigned i;

    (void)context;
    if (++fake_waits > 1000000)
        fake_fail("a loop without end");
    for (i = 0; i < count; i++)
        if (events[i] != 0 && fake_next_us(&fake_nodes[nodes[i].handle], events[i]) < until)
            until = fake_next_us(&fake_nodes[nodes[i].handle], events[i]);
    if (until == REDLOCK_NEVER)
        fake_fail("it would wait for ever");
    if (until > fake_now_us)
        fake_now_us = until;
    fake_now_us += fake_sleep_us;
    fake_sleep_us = 0;
    for (i = 0; i < count; i++) {
        unsigned wanted = events[i], got = 0;
        const struct fake_node *n = wanted != 0 ? &fake_nodes[nodes[i].handle] : NULL;

        if (n != NULL && (wanted & REDLOCK_READABLE) && fake_readable(n))
            got |= REDLOCK_READABLE;
        if (n != NULL && (wanted & REDLOCK_WRITABLE) && !n->full && !n->never_up)
            got |= REDLOCK_WRITABLE;
        events[i] = (uint8_t)got;
    }
}

const struct redlock_io *fake_io(void)
{
    static const struct redlock_io io = {fake_dial, fake_ready, fake_transmit, fake_receive,
                                         fake_shut, fake_clock, fake_entropy,  fake_wait,
                                         NULL,      fake_wall,  fake_process};

    return &io;
}

void fake_begin(struct redlock *client, struct redlock_node *nodes, unsigned count,
                const struct redlock_settings *settings)
{
    static const char *const names[FAKE_NODES] = {"0", "1", "2",  "3",  "4",  "5",  "6",  "7",
                                                  "8", "9", "10", "11", "12", "13", "14", "15"};
    unsigned i;

    for (i = 0; i < FAKE_NODES; i++) {
        struct fake_node *n = &fake_nodes[i];
        memset(n, 0, sizeof *n);
        n->delay_us = 1000;
    }
    fake_logged = 0;
    fake_now_us = (uint64_t)1 << 40;
    fake_transmit_us = fake_sleep_us = 0;
    fake_no_entropy = 0;
    fake_wall_us = (uint64_t)1 << 50;
    fake_forks = 0;
    fake_waits = 0;
    fake_seed = 1;
    memset(nodes, 0, count * sizeof *nodes);
    for (i = 0; i < count; i++)
        nodes[i].address = names[i];
    if (redlock_init(client, fake_io(), nodes, count, settings) != REDLOCK_OK)
        fake_fail("init");
}

void fake_pass(struct redlock *client, uint64_t us)
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
            events[i] = (uint8_t)redlock_interest(client, i);
        fake_wait(NULL, client->priv.nodes, client->priv.count, wait_us, events);
        for (i = 0; i < client->priv.count; i++)
            if (events[i] != 0)
                redlock_event(client, i, events[i]);
    }
}
