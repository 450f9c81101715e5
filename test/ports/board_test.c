/* board_test.c - stack and instructions of each call on the example's board (examples/cortex-m), in the worst cases that
   we know. It runs on the emulated board, with simulated servers in the same memory and a simulated clock. The time of
   the io callbacks does not count. test/ports/board.sh builds it, runs it and checks its output:
       tick NODES LOCKS INSTRUCTIONS       the slowest tick
       event BYTES INSTRUCTIONS WHAT       an event of a server that sends endlessly
       other CALL INSTRUCTIONS             the slowest call of the functions without a loop over locks or bytes
       stack CALL BYTES                    the maximum; includes that of the io callbacks, about 30 bytes

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "board.h"
#include "lines.h"
#include "mini.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOCKS_MAX = 8, WIRE = 8192, TTL_MS = 3000 };

/* Of a server. REFUSES: another client holds each lock. DEAF stops reading before the first command of a lock, SILENT
   reads nothing; with FULL its line also accepts no bytes, until the mood changes. GONE has no connection. */
enum mood { ANSWERS, REFUSES, DENIES, DEAF, SILENT, FULL, GONE, MOODS };

/* A connection, and the server at its end. */
struct wire {
    struct mini_server server;
    struct mini_session session;
    enum mood mood;
    unsigned sent_used, answered_used;
    const char *flood; /* sent endlessly; after its last byte it is repeated from flood_from on */
    unsigned flood_at, flood_from, flood_sent;
    char sent[WIRE], answered[WIRE];
};

/* The board has more memory than the processor that board.ld describes. */
static struct wire *const wires = (struct wire *)0x21000000;
static struct redlock_node nodes[REDLOCK_NODES_MAX];
static struct redlock_client client;
static struct redlock_lock locks[LOCKS_MAX];
static char keys[LOCKS_MAX][8];
static unsigned node_count, lock_count;
static uint64_t clock_us;
static uint32_t seed = 1;

static uint32_t any(uint32_t range)
{
    seed = seed * 1664525 + 1013904223;
    return (uint32_t)((uint64_t)seed * range >> 32);
}

/* ---- Measuring ------------------------------------------------------------------------------ */

enum call {
    TICK,
    EVENT,
    INIT,
    START,
    AUTO_EXTEND,
    EXTEND,
    RELEASE,
    CANCEL,
    COMPLETED,
    REMAINING,
    WANTED,
    CALLS
};

static const char *const names[CALLS] = {"redlock_tick",
                                         "redlock_handle_events",
                                         "redlock_init",
                                         "redlock_acquire_start",
                                         "redlock_auto_extend_start",
                                         "redlock_extend_start",
                                         "redlock_release_start",
                                         "redlock_cancel",
                                         "redlock_next_completed",
                                         "redlock_remaining_ms",
                                         "redlock_wanted_events"};
static uint32_t most[CALLS], deepest[CALLS], latest;
static uint32_t began, apart, nothing;
static const void *top;

/* Each instruction takes 64 ns (qemu's -icount shift=6), each tick of the clock 40. */
static uint32_t instructions(uint32_t ticks)
{
    return ticks * 5 / 8;
}

static void begin(const void *stack)
{
    top = stack;
    board_stack_paint();
    apart = 0;
    began = board_ticks();
}

static void end(enum call call)
{
    uint32_t ticks = board_ticks() - began - apart, used = board_stack_used(top);

    latest = instructions(ticks) - nothing;
    if (latest > most[call])
        most[call] = latest;
    if (used > deepest[call])
        deepest[call] = used;
}

#define MEASURE(which, call)                                                                       \
    do {                                                                                           \
        const void *stack;                                                                         \
        __asm volatile("mov %0, sp" : "=r"(stack));                                                \
        begin(stack);                                                                              \
        call;                                                                                      \
        end(which);                                                                                \
    } while (0)

/* ---- struct redlock_io ---------------------------------------------------------------------- */

static int io_dial(void *context, struct redlock_node *node)
{
    (void)context;
    node->handle = node - nodes;
    wires[node->handle].sent_used = wires[node->handle].answered_used = 0;
    memset(&wires[node->handle].session, 0, sizeof wires->session);
    return 0;
}

static int io_ready(void *context, struct redlock_node *node)
{
    (void)context;
    return wires[node->handle].mood == GONE ? -1 : 1;
}

static int io_transmit(void *context, struct redlock_node *node, const void *bytes, size_t size)
{
    uint32_t start = board_ticks();
    struct wire *wire = &wires[node->handle];

    (void)context;
    if (wire->mood == FULL || size > WIRE - wire->sent_used)
        size = 0; /* lines.c also accepts all bytes or none */
    memcpy(wire->sent + wire->sent_used, bytes, size);
    wire->sent_used += (unsigned)size;
    apart += board_ticks() - start;
    return (int)size;
}

static int io_receive(void *context, struct redlock_node *node, void *bytes, size_t size)
{
    uint32_t start = board_ticks();
    struct wire *wire = &wires[node->handle];
    size_t n = wire->answered_used < size ? wire->answered_used : size, i;

    (void)context;
    if (wire->mood == GONE)
        return -1;
    memcpy(bytes, wire->answered, n);
    wire->answered_used -= (unsigned)n;
    memmove(wire->answered, wire->answered + n, wire->answered_used);
    for (i = n; wire->flood != NULL && i < size; i++, n++) {
        if (wire->flood[wire->flood_at] == '\0')
            wire->flood_at = wire->flood_from;
        ((char *)bytes)[i] = wire->flood[wire->flood_at++];
        wire->flood_sent++;
    }
    apart += board_ticks() - start;
    return (int)n;
}

static void io_shut(void *context, struct redlock_node *node)
{
    (void)context;
    node->handle = -1;
}

static uint64_t io_now_us(void *context)
{
    (void)context;
    return clock_us;
}

static int io_entropy(void *context, void *bytes, size_t size)
{
    uint8_t *p = bytes;

    (void)context;
    for (; size > 0; size--)
        *p++ = (uint8_t)any(256);
    return 0;
}

static const struct redlock_io io = {io_dial, io_ready,  io_transmit, io_receive,
                                     io_shut, io_now_us, io_entropy,  NULL,
                                     NULL,    NULL,      NULL,        NULL};

/* ---- Servers -------------------------------------------------------------------------------- */

static void answer(struct wire *wire, struct mini_command *command, char reply[MINI_REPLY])
{
    wire->server.now_us = clock_us;
    mini_run(&wire->server, &wire->session, command, reply);
    if (!mini_is_of_a_lock(command) || wire->mood == ANSWERS)
        return;
    if (wire->mood == DENIES)
        strcpy(reply, "-NOPERM this user has no permissions to run the 'eval' command\r\n");
    else if (command->kind == 'S')
        strcpy(reply, wire->session.resp3 ? "_\r\n" : "$-1\r\n");
    else
        strcpy(reply, "$40\r\n0123456789012345678901234567890123456789\r\n");
}

static void serve(struct wire *wire)
{
    struct mini_command command;
    char reply[MINI_REPLY];
    unsigned used;

    while (wire->mood < SILENT && (used = mini_read(wire->sent, wire->sent_used, &command)) > 0) {
        if (wire->mood == DEAF && mini_is_of_a_lock(&command))
            return;
        answer(wire, &command, reply);
        if (strlen(reply) > WIRE - wire->answered_used)
            mini_fail("too much is answered");
        memcpy(wire->answered + wire->answered_used, reply, strlen(reply));
        wire->answered_used += (unsigned)strlen(reply);
        wire->sent_used -= used;
        memmove(wire->sent, wire->sent + used, wire->sent_used);
    }
}

static void all_servers(enum mood mood)
{
    unsigned i;

    for (i = 0; i < node_count; i++)
        wires[i].mood = mood;
}

/* ---- A program ------------------------------------------------------------------------------ */

/* Handles the events of each node, and ticks. */
static uint64_t turn(void)
{
    uint64_t wait_us;
    unsigned i, events;

    for (i = 0; i < node_count; i++)
        serve(&wires[i]);
    for (i = 0; i < node_count; i++) {
        MEASURE(WANTED, events = redlock_wanted_events(&client, i));
        if (events != 0)
            MEASURE(EVENT, redlock_handle_events(&client, i, events));
    }
    MEASURE(TICK, wait_us = redlock_tick(&client));
    return wait_us;
}

static void later(uint32_t ms)
{
    clock_us += ms * (uint64_t)1000;
    MEASURE(REMAINING, redlock_remaining_ms(&client, &locks[0]));
    turn();
}

static void take_ended(void)
{
    struct redlock_lock *lock;

    do
        MEASURE(COMPLETED, lock = redlock_next_completed(&client));
    while (lock != NULL);
}

/* Until all operations have completed. Every fourth turn the clock advances to the next deadline. */
static void all_end(void)
{
    unsigned turns, i;

    for (turns = 0;; turns++) {
        uint64_t wait_us = turn();
        take_ended();
        for (i = 0; i < lock_count && locks[i].status != REDLOCK_PENDING;)
            i++;
        if (i == lock_count)
            return;
        if (turns > 1000)
            mini_fail("an operation does not complete");
        if (turns % 4 == 3 && wait_us != REDLOCK_NEVER)
            clock_us += wait_us;
    }
}

static void all_are(enum redlock_status status)
{
    unsigned i;

    for (i = 0; i < lock_count; i++)
        if (locks[i].status != status)
            mini_fail(redlock_strerror(locks[i].status));
}

static enum redlock_status start(enum call call, struct redlock_lock *lock)
{
    enum redlock_status status = REDLOCK_PENDING;

    if (call == START)
        MEASURE(START, status = redlock_acquire_start(&client, lock, 60000));
    else if (call == AUTO_EXTEND)
        MEASURE(AUTO_EXTEND, status = redlock_auto_extend_start(&client, lock, 1000));
    else if (call == EXTEND)
        MEASURE(EXTEND, status = redlock_extend_start(&client, lock));
    else if (call == RELEASE)
        MEASURE(RELEASE, status = redlock_release_start(&client, lock, 1000));
    else
        MEASURE(CANCEL, redlock_cancel(&client, lock));
    return status;
}

static void start_all(enum call call)
{
    unsigned i;

    for (i = 0; i < lock_count; i++)
        if (start(call, &locks[i]) != REDLOCK_PENDING)
            mini_fail("a start is refused");
}

static void set_up(unsigned with_nodes, unsigned with_locks)
{
    static const char *const addresses[] = {"10.0.0.1:6379", "10.0.0.2:6379", "10.0.0.3:6379",
                                            "10.0.0.4:6379", "10.0.0.5:6379"};
    enum redlock_status status;
    unsigned i;

    node_count = with_nodes;
    lock_count = with_locks;
    memset(nodes, 0, sizeof nodes);
    for (i = 0; i < node_count; i++) {
        memset(&wires[i], 0, offsetof(struct wire, sent));
        nodes[i].address = addresses[i];
        wires[i].server.run = i + 1;
        wires[i].server.age_s = 100000;
    }
    MEASURE(INIT, status = redlock_init(&client, &io, nodes, node_count, NULL));
    if (status != REDLOCK_OK)
        mini_fail("init");
    for (i = 0; i < lock_count; i++) {
        sprintf(keys[i], "pump/%u", i);
        redlock_lock_init(&locks[i], keys[i], TTL_MS);
    }
}

/* ---- The worst cases ------------------------------------------------------------------------ */

/* All locks do the same, and are lost together: each time all of them are handled in one tick. */
static void all_at_once(enum mood first, enum mood then)
{
    unsigned i;

    start_all(START); /* with all nodes to be connected */
    all_end();
    all_are(REDLOCK_OK);
    start_all(AUTO_EXTEND);
    turn();
    all_servers(first);
    later(TTL_MS / 3); /* all are extended */
    turn();
    later(60);
    all_servers(then);
    later(TTL_MS); /* all expire, unless they are extended now */
    for (i = 0; i < 6; i++)
        later(60);
    all_servers(GONE);
    later(TTL_MS);
    all_end();
    all_are(REDLOCK_LOST);
    all_servers(first);
    start_all(START);
    for (i = 0; i < 6; i++)
        later(60);
    all_servers(then);
    for (i = 0; i < 6; i++)
        later(300);
    start_all(CANCEL);
    all_end();
    all_servers(ANSWERS);
    later(10000);
    for (i = 0; i < lock_count; i++)
        if (locks[i].status != REDLOCK_OK && start(START, &locks[i]) != REDLOCK_PENDING)
            mini_fail("a start is refused");
    all_end();
    all_are(REDLOCK_OK);
    all_servers(then);
    start_all(RELEASE);
    all_end();
}

/* Random operations, moods and pauses. */
static void at_random(void)
{
    static const uint32_t pauses_us[] = {0, 0, 100, 1000, 50001, 250000, 1000002, 3000000};
    unsigned turns, i;

    for (turns = 0; turns < 200; turns++) {
        for (i = 0; i < node_count; i++)
            if (any(16) == 0)
                wires[i].mood = (enum mood)any(MOODS);
        if (any(32) == 0)
            all_servers((enum mood)any(MOODS));
        for (i = 0; i < lock_count; i++)
            if (any(8) == 0)
                start((enum call)(START + any(any(8) == 0 ? 5 : 4)), &locks[i]);
        if (any(16) == 0)
            for (i = 0; i < lock_count; i++)
                start((enum call)(START + turns % 5), &locks[i]);
        clock_us += pauses_us[any(8)];
        turn();
        take_ended();
    }
}

static void measure_tick(unsigned with_nodes, unsigned with_locks)
{
    unsigned first, then;

    most[TICK] = 0;
    for (first = 0; first < MOODS; first++)
        for (then = 0; then < MOODS; then++) {
            set_up(with_nodes, with_locks);
            all_at_once((enum mood)first, (enum mood)then);
            redlock_deinit(&client);
        }
    set_up(with_nodes, with_locks);
    at_random();
    redlock_deinit(&client);
    printf("tick %u %u %lu\n", with_nodes, with_locks, (unsigned long)most[TICK]);
}

/* One event of a server that sends endlessly: in the handshake, or after it. */
static void flood(int after_handshake, const char *what, const char *text, unsigned from)
{
    struct wire *wire = &wires[0];

    set_up(1, 1);
    start(START, &locks[0]);
    MEASURE(TICK, redlock_tick(&client));
    if (after_handshake)
        turn();
    if (nodes[0].state != (after_handshake ? REDLOCK_NODE_READY : REDLOCK_NODE_HANDSHAKE))
        mini_fail("flood");
    wire->flood = text;
    wire->flood_from = from;
    MEASURE(EVENT, redlock_handle_events(&client, 0, REDLOCK_READABLE));
    printf("event %u %lu %s\n", wire->flood_sent, (unsigned long)latest, what);
    redlock_deinit(&client);
}

int main(void)
{
    static const uint8_t sizes[][2] = {{1, 1}, {1, 8}, {3, 1}, {3, 8}, {5, 1}, {5, 3}, {5, 8}};
    unsigned i;

    MEASURE(TICK, (void)0);
    nothing = latest;
    for (i = 0; i < sizeof sizes / sizeof *sizes; i++)
        measure_tick(sizes[i][0], sizes[i][1]);
    for (i = INIT; i < CALLS; i++)
        printf("other %s %lu\n", names[i], (unsigned long)most[i]);
    flood(0, "HELLO, a map of nil", "%100000\r\n_\r\n", 9);
    flood(0, "HELLO, a map of texts", "%100000\r\n+\r\n", 9);
    flood(0, "HELLO, arrays in it", "%100000\r\n*1\r\n_\r\n", 9);
    flood(0, "HELLO, empty arrays in it", "%100000\r\n*0\r\n", 9);
    flood(0, "HELLO, keys that the client reads", "%100000\r\n+role\r\n+master\r\n", 9);
    flood(1, "one long push", ">1\r\n$1000000\r\nxxxxxxxxxxx", 14);
    flood(1, "empty pushes", ">0\r\n", 0);
    flood(1, "short pushes", ">1\r\n:1\r\n", 0);
    flood(1, "a push of nil", ">100000\r\n_\r\n", 9);
    flood(1, "invalidations of the lock's key", ">2\r\n+invalidate\r\n*1\r\n+pump/0\r\n", 0);
    flood(1, "empty attributes", "|0\r\n", 0);
    flood(1, "attributes", "|1\r\n_\r\n_\r\n", 0);
    flood(1, "an error without an end", "-x", 1);
    for (i = 0; i < CALLS; i++)
        printf("stack %s %lu\n", names[i], (unsigned long)deepest[i]);
    return 0;
}
