/* lwip_board_figures.c - counts the instructions of the firmware of examples/lwip_raw while it runs. It is linked with the
   firmware: the linker puts these functions around those that main.c calls (--wrap). qemu must count instructions, -icount
   shift=6. After CYCLES cycles of acquire and release it prints these lines, and ends:
       call NAME INSTRUCTIONS IO    the maximum of one call: without the io callbacks, and of the io callbacks in it
       phase NAME LIBRARY NETWORK   instructions of one cycle on average: of the library; of lwIP, io callbacks and driver

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "board.h"
#include "lan9118.h"
#include "redlock.h"

#include <stdio.h>
#include <string.h>

enum { CYCLES = 12 };
enum phase { START, ACQUIRE, EXTEND, RELEASE, PHASES };

static enum phase phase;
static unsigned cycles;
static uint64_t library[PHASES], network[PHASES];
static uint32_t io_ticks; /* in the present call */

/* Each instruction takes 64 ns, each tick of the clock 40. */
static uint32_t instructions(uint64_t ticks)
{
    return (uint32_t)(ticks * 5 / 8);
}

struct cost {
    const char *name;
    uint32_t most, io;
};

static void took(struct cost *cost, uint32_t ticks)
{
    library[phase] += ticks - io_ticks;
    network[phase] += io_ticks;
    if (ticks - io_ticks > cost->most)
        cost->most = ticks - io_ticks;
    if (io_ticks > cost->io)
        cost->io = io_ticks;
}

/* ---- The io callbacks ----------------------------------------------------------------------- */

static const struct redlock_io *io;

/* Adds the time of a callback to io_ticks. */
#define COUNTED(type, call)                                                                        \
    uint32_t start = board_ticks();                                                                \
    type result = call;                                                                            \
    io_ticks += board_ticks() - start;                                                             \
    return result

static int io_dial(void *context, struct redlock_node *node)
{
    COUNTED(int, io->dial(context, node));
}

static int io_ready(void *context, struct redlock_node *node)
{
    COUNTED(int, io->ready(context, node));
}

static int io_transmit(void *context, struct redlock_node *node, const void *bytes, size_t size)
{
    COUNTED(int, io->transmit(context, node, bytes, size));
}

static int io_receive(void *context, struct redlock_node *node, void *bytes, size_t size)
{
    COUNTED(int, io->receive(context, node, bytes, size));
}

static int io_entropy(void *context, void *bytes, size_t size)
{
    COUNTED(int, io->entropy(context, bytes, size));
}

static uint64_t io_now_us(void *context)
{
    COUNTED(uint64_t, io->now_us(context));
}

static void io_shut(void *context, struct redlock_node *node)
{
    uint32_t start = board_ticks();

    io->shut(context, node);
    io_ticks += board_ticks() - start;
}

/* ---- The calls ------------------------------------------------------------------------------ */

#define WRAP(type, name, parameters, arguments)                                                    \
    type __real_##name parameters;                                                                 \
    type __wrap_##name parameters;                                                                 \
    static struct cost cost_##name = {#name, 0, 0};                                                \
    type __wrap_##name parameters                                                                  \
    {                                                                                              \
        uint32_t start = board_ticks(), ticks;                                                     \
        type result;                                                                               \
        io_ticks = 0;                                                                              \
        result = __real_##name arguments;                                                          \
        ticks = board_ticks() - start;                                                             \
        took(&cost_##name, ticks);                                                                 \
        return result;                                                                             \
    }

WRAP(uint64_t, redlock_tick, (struct redlock_client * client), (client))
WRAP(unsigned, redlock_wanted_events, (const struct redlock_client *client, unsigned i),
     (client, i))
WRAP(struct redlock_lock *, redlock_next_completed, (struct redlock_client * client), (client))
WRAP(uint32_t, redlock_remaining_ms,
     (struct redlock_client *client, const struct redlock_lock *lock), (client, lock))

void __real_redlock_handle_events(struct redlock_client *client, unsigned i, unsigned events);
void __wrap_redlock_handle_events(struct redlock_client *client, unsigned i, unsigned events);
static struct cost cost_handle_events = {"redlock_handle_events", 0, 0};
void __wrap_redlock_handle_events(struct redlock_client *client, unsigned i, unsigned events)
{
    uint32_t start = board_ticks();

    io_ticks = 0;
    __real_redlock_handle_events(client, i, events);
    took(&cost_handle_events, board_ticks() - start);
}

WRAP(enum redlock_status, redlock_auto_extend_start,
     (struct redlock_client * client, struct redlock_lock *lock, unsigned extensions),
     (client, lock, extensions))
WRAP(enum redlock_status, redlock_extend_start,
     (struct redlock_client * client, struct redlock_lock *lock), (client, lock))
WRAP(enum redlock_status, redlock_release_start,
     (struct redlock_client * client, struct redlock_lock *lock, uint32_t wait_ms),
     (client, lock, wait_ms))

static void print_all(void);

enum redlock_status __real_redlock_acquire_start(struct redlock_client *client,
                                                 struct redlock_lock *lock, uint32_t wait_ms);
enum redlock_status __wrap_redlock_acquire_start(struct redlock_client *client,
                                                 struct redlock_lock *lock, uint32_t wait_ms);
static struct cost cost_acquire_start = {"redlock_acquire_start", 0, 0};
enum redlock_status __wrap_redlock_acquire_start(struct redlock_client *client,
                                                 struct redlock_lock *lock, uint32_t wait_ms)
{
    enum redlock_status status;
    uint32_t start;

    if (cycles++ == CYCLES)
        print_all();
    if (cycles > 1) /* the first cycle makes the connections, and does not count */
        phase = ACQUIRE;
    start = board_ticks();
    io_ticks = 0;
    status = __real_redlock_acquire_start(client, lock, wait_ms);
    took(&cost_acquire_start, board_ticks() - start);
    return status;
}

/* The output of the program shows its phase. */
void __real_board_print(const char *text);
void __wrap_board_print(const char *text);
void __wrap_board_print(const char *text)
{
    if (phase == ACQUIRE && strncmp(text, "acquired", 8) == 0)
        phase = EXTEND;
    if (phase == EXTEND && strncmp(text, "releasing", 9) == 0)
        phase = RELEASE;
    __real_board_print(text);
}

enum redlock_status __real_redlock_init_sized(struct redlock_client *client,
                                              const struct redlock_io *its,
                                              struct redlock_node *nodes, unsigned count,
                                              const struct redlock_settings *settings,
                                              uint32_t sizes);
enum redlock_status __wrap_redlock_init_sized(struct redlock_client *client,
                                              const struct redlock_io *its,
                                              struct redlock_node *nodes, unsigned count,
                                              const struct redlock_settings *settings,
                                              uint32_t sizes);
static struct cost cost_init = {"redlock_init", 0, 0};
enum redlock_status __wrap_redlock_init_sized(struct redlock_client *client,
                                              const struct redlock_io *its,
                                              struct redlock_node *nodes, unsigned count,
                                              const struct redlock_settings *settings,
                                              uint32_t sizes)
{
    static struct redlock_io counted;
    enum redlock_status status;
    uint32_t start;

    io = its;
    counted = *its;
    counted.dial = io_dial;
    counted.ready = io_ready;
    counted.transmit = io_transmit;
    counted.receive = io_receive;
    counted.shut = io_shut;
    counted.entropy = io_entropy;
    counted.now_us = io_now_us;
    start = board_ticks();
    io_ticks = 0;
    status = __real_redlock_init_sized(client, &counted, nodes, count, settings, sizes);
    took(&cost_init, board_ticks() - start);
    return status;
}

/* ---- The network ---------------------------------------------------------------------------- */

void __real_lan9118_poll(struct netif *netif);
void __wrap_lan9118_poll(struct netif *netif);
void __wrap_lan9118_poll(struct netif *netif)
{
    uint32_t start = board_ticks();

    __real_lan9118_poll(netif);
    network[phase] += board_ticks() - start;
}

void __real_sys_check_timeouts(void);
void __wrap_sys_check_timeouts(void);
void __wrap_sys_check_timeouts(void)
{
    uint32_t start = board_ticks();

    __real_sys_check_timeouts();
    network[phase] += board_ticks() - start;
}

/* ---- The report ----------------------------------------------------------------------------- */

static void print_all(void)
{
    static const char *const names[PHASES] = {"start", "acquire", "extend", "release"};
    const struct cost *const costs[] = {&cost_init,
                                        &cost_acquire_start,
                                        &cost_redlock_auto_extend_start,
                                        &cost_redlock_extend_start,
                                        &cost_redlock_release_start,
                                        &cost_redlock_tick,
                                        &cost_handle_events,
                                        &cost_redlock_wanted_events,
                                        &cost_redlock_next_completed,
                                        &cost_redlock_remaining_ms};
    char line[100];
    unsigned i;

    for (i = 0; i < sizeof costs / sizeof *costs; i++) {
        snprintf(line, sizeof line, "call %s %lu %lu\n", costs[i]->name,
                 (unsigned long)instructions(costs[i]->most),
                 (unsigned long)instructions(costs[i]->io));
        board_print(line);
    }
    for (i = ACQUIRE; i < PHASES; i++) {
        snprintf(line, sizeof line, "phase %s %lu %lu\n", names[i],
                 (unsigned long)instructions(library[i] / (CYCLES - 1)),
                 (unsigned long)instructions(network[i] / (CYCLES - 1)));
        board_print(line);
    }
    board_end(0);
}
