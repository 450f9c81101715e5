/* lines.c - see lines.h.

   A line cannot be disconnected: the server still answers earlier commands on it. So `dial` sends an unknown command, with a
   random name, and drops all replies before the reply to that command. This needs no permission, because a server looks up the
   command before it checks permissions. For the same reason `transmit` accepts all bytes or none: half a command cannot be taken
   back. A line must never continue unnoticed with another connection, because replies would be matched with other commands. qemu
   ends the line with the connection, and does not reconnect. A bridge that reconnects must report it (DCD); `receive` and
   `transmit` must then return -1 until the next `dial`.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "lines.h"
#include "board.h"

#include <string.h>

/* A queue with one writer and one reader; one of them is the interrupt handler. */
enum { RING = 512 };
typedef char ring_holds_all_that_a_node_has_to_send[RING >= REDLOCK_SEND_MAX ? 1 : -1];

struct ring {
    volatile uint16_t in, out; /* free-running counters, which wrap around */
    volatile uint8_t bytes[RING];
};

struct line {
    struct ring sent, received;
    char mark[14];  /* "line-" and 8 hexadecimal digits; 'l' occurs only at its start */
    uint8_t marked; /* how much of it has come; 13: the end of that reply is missing */
    uint8_t open;   /* 1: that reply is complete */
};

static struct line lines[LINES];

static unsigned ring_used(const struct ring *ring)
{
    return (uint16_t)(ring->in - ring->out);
}

static void ring_put(struct ring *ring, uint8_t byte)
{
    ring->bytes[ring->in % RING] = byte;
    ring->in++;
}

static uint8_t ring_take(struct ring *ring)
{
    uint8_t byte = ring->bytes[ring->out % RING];

    ring->out++;
    return byte;
}

/* ---- The UARTs: Arm's CMSDK ----------------------------------------------------------------- */

enum { DATA = 0, STATE = 4, CONTROL = 8, INTERRUPT = 12, DIVIDER = 16 };
enum { SEND_FULL = 1, RECEIVED_FULL = 2 };

static const uint32_t uart_base[LINES] = {0x40004000, 0x40005000, 0x40006000, 0x40007000,
                                          0x40009000};
static const uint8_t uart_interrupt[LINES] = {0, 2, 4, 18, 20}; /* received; then sent */

static void uart_start(unsigned i)
{
    BOARD_REGISTER(uart_base[i] + DIVIDER) = BOARD_MHZ * 1000000 / 115200;
    BOARD_REGISTER(uart_base[i] + CONTROL) = 15; /* both directions, with interrupts */
    BOARD_REGISTER(0xe000e100) = (uint32_t)3 << uart_interrupt[i];
}

/* Moves bytes between rings and UART, as many as possible. Call it with interrupts off. */
static void uart_move(unsigned i)
{
    uint32_t base = uart_base[i];

    while (ring_used(&lines[i].sent) > 0 && !(BOARD_REGISTER(base + STATE) & SEND_FULL))
        BOARD_REGISTER(base + DATA) = ring_take(&lines[i].sent);
    while (ring_used(&lines[i].received) < RING && (BOARD_REGISTER(base + STATE) & RECEIVED_FULL))
        ring_put(&lines[i].received, (uint8_t)BOARD_REGISTER(base + DATA));
}

static void line_move(unsigned i)
{
    board_interrupts_off();
    uart_move(i);
    board_interrupts_on();
}

/* One handler for all UARTs keeps the code short. For fast lines use one handler for each. */
void board_interrupt(void)
{
    unsigned i;

    for (i = 0; i < LINES; i++) {
        BOARD_REGISTER(uart_base[i] + INTERRUPT) = 3; /* clears both interrupts */
        uart_move(i);
    }
}

/* ---- struct redlock_io ---------------------------------------------------------------------- */

static int line_send(unsigned i, const void *bytes, size_t size)
{
    const uint8_t *p = bytes, *end = p + size;

    if (size > RING - ring_used(&lines[i].sent))
        return 0;
    while (p != end)
        ring_put(&lines[i].sent, *p++);
    line_move(i);
    return (int)size;
}

static int dial(void *context, struct redlock_node *node)
{
    static const char digits[] = "0123456789abcdef";
    int is_uart = strncmp(node->address, "uart", 4) == 0;
    unsigned i = is_uart ? (unsigned)node->address[4] - '0' : LINES, j;
    struct line *line = &lines[i % LINES];
    uint8_t random[4];

    (void)context;
    if (i >= LINES) {
        redlock_set_error(node, "no such line", NULL);
        return -1;
    }
    if (board_random(random, sizeof random) != 0) {
        redlock_set_error(node, "no random bytes", NULL);
        return -1;
    }
    memcpy(line->mark, "line-", 5);
    for (j = 0; j < 8; j++)
        line->mark[5 + j] = digits[random[j / 2] >> j % 2 * 4 & 15];
    line->mark[13] = '\n'; /* an inline command; empty lines are ignored */
    line->marked = line->open = 0;
    node->handle = (intptr_t)i;
    uart_start(i);
    if (line_send(i, line->mark, sizeof line->mark) > 0)
        return 0;
    redlock_set_error(node, "the line accepts no bytes", NULL);
    node->handle = -1;
    return -1;
}

static int ready(void *context, struct redlock_node *node)
{
    struct line *line = &lines[node->handle];

    (void)context;
    while (!line->open && ring_used(&line->received) > 0) {
        char byte = (char)ring_take(&line->received);
        if (line->marked == 13)
            line->open = byte == '\n';
        else
            line->marked =
                (uint8_t)(byte == line->mark[line->marked] ? line->marked + 1 : byte == 'l');
    }
    line_move((unsigned)node->handle);
    return line->open;
}

static int transmit(void *context, struct redlock_node *node, const void *bytes, size_t size)
{
    (void)context;
    return line_send((unsigned)node->handle, bytes, size);
}

static int receive(void *context, struct redlock_node *node, void *bytes, size_t size)
{
    struct ring *received = &lines[node->handle].received;
    uint8_t *p = bytes;
    size_t n;

    (void)context;
    for (n = 0; n < size && ring_used(received) > 0; n++)
        p[n] = ring_take(received);
    line_move((unsigned)node->handle); /* bytes that the UART held while the ring was full */
    return (int)n;
}

static void shut(void *context, struct redlock_node *node)
{
    (void)context;
    lines[node->handle].open = 0;
    node->handle = -1;
}

static uint64_t now_us(void *context)
{
    (void)context;
    return board_now_us();
}

static int entropy(void *context, void *bytes, size_t size)
{
    (void)context;
    return board_random(bytes, size);
}

const struct redlock_io *lines_io(void)
{
    static const struct redlock_io io = {dial,    ready, transmit, receive, shut, now_us,
                                         entropy, NULL,  NULL,     NULL,    NULL, NULL};

    return &io;
}

unsigned lines_events(const struct redlock_node *node, unsigned wanted)
{
    const struct line *line;
    unsigned events = 0;

    if (node->handle < 0)
        return 0;
    line = &lines[node->handle];
    if (ring_used(&line->received) > 0)
        events =
            line->open ? REDLOCK_READABLE : REDLOCK_WRITABLE; /* while connecting: calls `ready` */
    if (line->open && ring_used(&line->sent) == 0)
        events |= REDLOCK_WRITABLE;
    return events & wanted;
}
