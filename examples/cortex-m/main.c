/* main.c - firmware that acquires a lock on five Redis servers, extends it while its pump runs, and releases it. It never
   blocks: the library needs only `turn`, and the loop can also do other work. See README.md.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "board.h"
#include "lines.h"

static const char *const addresses[LINES] = {"uart0", "uart1", "uart2", "uart3", "uart4"};
static struct redlock_node nodes[LINES];
static struct redlock_client client;
static struct redlock_lock lock;

/* Sends, sleeps until a line has bytes or a deadline passes, and lets the library read. The second tick acts on the received
   replies: without it they would have an effect only after the next sleep. */
static void turn(void)
{
    uint64_t wait_us = redlock_tick(&client);
    unsigned events[LINES], i, any = 0;

    board_interrupts_off();
    for (i = 0; i < LINES; i++)
        any |= events[i] = lines_events(&nodes[i], redlock_wanted_events(&client, i));
    if (!any)
        board_sleep(wait_us);
    board_interrupts_on();
    for (i = 0; i < LINES; i++)
        if (events[i] != 0)
            redlock_handle_events(&client, i, events[i]);
    redlock_tick(&client);
}

/* Runs an operation until it completes. It has its own loop, because this program has nothing else to do meanwhile. */
static enum redlock_status finish(enum redlock_status started)
{
    if (started != REDLOCK_PENDING)
        return started;
    while (redlock_next_completed(&client) == NULL)
        turn();
    return lock.status;
}

static void say(const char *what, uint32_t number, const char *unit)
{
    unsigned i;

    board_print(what);
    board_print_number(number);
    board_print(unit);
    for (i = 0; i < LINES; i++)
        if (nodes[i].error[0] != '\0') {
            board_print("  ");
            board_print(nodes[i].address);
            board_print(": ");
            board_print(nodes[i].error);
            board_print("\n");
        }
}

static int failed(enum redlock_status status)
{
    board_print(redlock_strerror(status));
    say(" ", (uint32_t)-status, "\n");
    return 1;
}

int main(void)
{
    enum { EXTENSIONS = 6 };
    struct redlock_settings settings = {0};
    enum redlock_status status;
    unsigned i, extended = 0;

    settings.node_timeout_ms = 250; /* at 115200 baud a command and its answer take 30 ms */
    for (i = 0; i < LINES; i++)
        nodes[i].address = addresses[i];
    if (redlock_init(&client, lines_io(), nodes, LINES, &settings) != REDLOCK_OK)
        return failed(REDLOCK_INVALID_ARGUMENT);
    redlock_lock_init(&lock, "redlock:pump/7", 6000);
    status = finish(redlock_acquire_start(&client, &lock, 10000));
    if (status != REDLOCK_OK)
        return failed(status);
    say("acquired, valid for ", redlock_remaining_ms(&client, &lock), " ms\n");

    status = redlock_auto_extend_start(&client, &lock, 100);
    while (status == REDLOCK_PENDING && extended < EXTENSIONS) {
        turn(); /* ... and a step of the pump's work, if redlock_remaining_ms leaves time for it ... */
        if (redlock_next_completed(&client) != NULL)
            return failed(lock.status);
        if (lock.extended != extended) {
            extended = lock.extended;
            say("extended, for ", redlock_remaining_ms(&client, &lock), " ms\n");
        }
    }
    status = finish(redlock_release_start(&client, &lock, 1000));
    if (status != REDLOCK_OK)
        return failed(status);
    say("released; bytes of stack used: ", board_stack_used(__builtin_frame_address(0)), "\n");
    redlock_deinit(&client);
    return 0;
}
