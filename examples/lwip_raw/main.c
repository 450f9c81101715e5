/* main.c - firmware with a network: acquires a lock on Redis servers over TCP, extends it while it works, releases it,
   and begins again. No operating system. The loop never blocks: the library and lwIP need only `turn`, and the program can
   also do other work. docs/embedded.md explains it; `make lwip-board` builds it, runs it and prints its sizes.

   The settings are arguments from qemu (-append); a product has them in its flash:
       ADDRESS:PORT       a Redis server, up to NODES
       counter=ADDRESS:PORT  the protected resource: a server that counts the holders
       address=ADDRESS    of this board; without it: by DHCP
       ttl= hold= pause=  ms: TTL of the lock; how long it is held, and not held, each time
       delay=             ms after the start before the first acquire
       drift=             redlock_settings.drift_ppm

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "board.h"
#include "lan9118.h"
#include "redlock_lwip_raw.h"

#include <string.h>

#include "lwip/dhcp.h"
#include "lwip/init.h"
#include "lwip/sys.h"
#include "lwip/timeouts.h"
#include "netif/ethernet.h"

static struct redlock_node nodes[NODES];
static struct redlock_client client;
static struct redlock_lock lock;
static struct redlock_lwip_raw stack;
static struct netif netif;
static unsigned count;
static const void *top; /* of the stack */
static char label[16];  /* the board's address: names it to others */

/* ---- Functions of the board that lwIP and the library call ---------------------------------- */

uint32_t sys_now(void)
{
    return (uint32_t)(board_now_us() / 1000);
}

uint32_t board_random_word(void)
{
    uint32_t word = 0;

    (void)board_random(&word, sizeof word);
    return word;
}

void board_assertion(void)
{
    board_print("lwIP asserts\n");
    board_end(1);
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

/* ---- Settings ------------------------------------------------------------------------------- */

static char words[320];
static const char *counter_address, *own_address;
static uint32_t ttl_ms = 6000, hold_ms = 10000, pause_ms = 100, delay_ms, drift_ppm;

static uint32_t number(const char *digit)
{
    uint32_t n = 0;

    while (*digit >= '0' && *digit <= '9')
        n = n * 10 + (uint32_t)(*digit++ - '0');
    return n;
}

static const char *value(const char *word, const char *name)
{
    size_t size = strlen(name);

    return strncmp(word, name, size) == 0 ? word + size : NULL;
}

static void read_word(const char *word)
{
    const char *v;

    if ((v = value(word, "counter=")) != NULL)
        counter_address = v;
    else if ((v = value(word, "address=")) != NULL)
        own_address = v;
    else if ((v = value(word, "ttl=")) != NULL)
        ttl_ms = number(v);
    else if ((v = value(word, "hold=")) != NULL)
        hold_ms = number(v);
    else if ((v = value(word, "pause=")) != NULL)
        pause_ms = number(v);
    else if ((v = value(word, "delay=")) != NULL)
        delay_ms = number(v);
    else if ((v = value(word, "drift=")) != NULL)
        drift_ppm = number(v);
    else if (count < NODES && *word >= '0' && *word <= '9')
        nodes[count++].address = word;
}

static void read_settings(void)
{
    char *word = words, *blank;

    board_arguments(words, sizeof words);
    for (; (blank = strchr(word, ' ')) != NULL; word = blank + 1) {
        *blank = '\0';
        read_word(word);
    }
    read_word(word);
}

/* ---- The network ---------------------------------------------------------------------------- */

static void start_network(void)
{
    ip4_addr_t address, mask, gateway;

    lwip_init();
    ip4_addr_set_zero(&address);
    IP4_ADDR(&mask, 255, 255, 255, 0);
    IP4_ADDR(&gateway, 10, 0, 2, 2);
    if (own_address != NULL && !ip4addr_aton(own_address, &address))
        board_print("not an address\n");
    netif_add(&netif, &address, &mask, &gateway, NULL, lan9118_start, ethernet_input);
    netif_set_default(&netif);
    netif_set_up(&netif);
    if (own_address == NULL)
        dhcp_start(&netif);
}

static void serve_network(void)
{
    lan9118_poll(&netif);
    sys_check_timeouts();
}

/* Sleeps until a frame arrives, lwIP's next timeout, or the given time. */
static void sleep_us(uint64_t longest_us)
{
    uint64_t timer_us = sys_timeouts_sleeptime() * (uint64_t)1000;

    board_interrupts_off();
    if (!lan9118_waiting())
        board_sleep(timer_us < longest_us ? timer_us : longest_us);
    board_interrupts_on();
}

/* ---- The loop ------------------------------------------------------------------------------- */

static int counter_events(void);

/* Sends, sleeps until a frame arrives or a deadline passes, and lets the library read. The second tick acts on the received
   replies: without it they would have an effect only after the next sleep. */
static void turn(void)
{
    uint64_t wait_us = redlock_tick(&client);
    unsigned events[NODES], i, any;

    serve_network();
    for (i = any = 0; i < count; i++)
        any |= events[i] =
            redlock_lwip_raw_events(&stack, &nodes[i], redlock_wanted_events(&client, i));
    if (!any && !counter_events())
        sleep_us(wait_us);
    for (i = 0; i < count; i++)
        if (events[i] != 0)
            redlock_handle_events(&client, i, events[i]);
    redlock_tick(&client);
}

static void turn_for(uint32_t ms)
{
    uint64_t until_us = board_now_us() + ms * (uint64_t)1000;

    while (board_now_us() < until_us)
        turn();
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

/* ---- Reports -------------------------------------------------------------------------------- */

static void say(const char *what, uint32_t n, const char *unit)
{
    board_print(what);
    board_print_number(n);
    board_print(unit);
    board_print("\n");
}

static void say_failed(const char *what, enum redlock_status status)
{
    unsigned i;

    board_print(what);
    board_print(redlock_strerror(status));
    say(" -", (uint32_t)-status, "");
    for (i = 0; i < count; i++)
        if (nodes[i].error[0] != '\0') {
            board_print("  ");
            board_print(nodes[i].address);
            board_print(": ");
            board_print(nodes[i].error);
            board_print("\n");
        }
}

/* ---- The protected resource ----------------------------------------------------------------- */

/* A server that is no node of the lock counts the holders: the reply to INCR is 1 if there is only one. The connection to it uses
   the same I/O callbacks, and resp.h. */
static struct redlock_node counter;
static struct redlock_lwip_raw counter_stack;

static int counter_events(void)
{
    return (int)redlock_lwip_raw_events(&counter_stack, &counter, REDLOCK_READABLE);
}

/* Returns the reply, an integer; -1 if none arrives before the validity ends. */
static int64_t counter_ask(const char *command, const char *key)
{
    const struct redlock_io *io = &counter_stack.io;
    struct resp_reader reader;
    uint8_t bytes[64];
    struct resp_writer w = {bytes, sizeof bytes, 0, 0};
    int n, sent = 0;

    memset(&reader, 0, sizeof reader);
    if (counter.handle < 0 && io->dial(io->context, &counter) != 0)
        return -1;
    resp_put_command(&w, 2);
    resp_put_text(&w, command);
    resp_put_text(&w, key);
    while (redlock_remaining_ms(&client, &lock) > 0) {
        const uint8_t *cursor = bytes;
        if (!sent && io->ready(io->context, &counter) == 1) /* 64 bytes always fit at once */
            sent = io->transmit(io->context, &counter, bytes, w.used) > 0;
        n = sent ? io->receive(io->context, &counter, bytes, sizeof bytes) : 0;
        if (n < 0)
            break;
        if (n > 0 && resp_read(&reader, &cursor, bytes + n) == RESP_REPLY)
            return reader.item.kind == RESP_INTEGER ? reader.item.integer : -1;
        turn();
    }
    io->shut(io->context, &counter);
    return -1;
}

static int enter(void)
{
    int64_t inside = counter_ask("INCR", "inside");

    if (inside > 1)
        say("TWO HOLDERS: ", (uint32_t)inside, "");
    return inside == 1;
}

static void leave(void)
{
    if (counter_ask("DECR", "inside") == 0 && counter_ask("INCR", "turns") > 0)
        board_print("counted\n");
}

/* ---- The program ---------------------------------------------------------------------------- */

/* Without !REDLOCK_MINIMAL: extends the lock after a third of its TTL. Returns 0 if the lock is lost. */
static int still_held(void)
{
    static uint64_t again_us;
    int done = redlock_next_completed(&client) != NULL;

    if (!REDLOCK_MINIMAL)
        return !done;
    if (lock.status == REDLOCK_LOST || redlock_remaining_ms(&client, &lock) == 0)
        return 0;
    if (lock.status != REDLOCK_PENDING && board_now_us() >= again_us &&
        redlock_remaining_ms(&client, &lock) < ttl_ms / 3 * 2) {
        again_us = board_now_us() + 100000;
        (void)redlock_extend_start(&client, &lock);
    }
    return 1;
}

/* Holds the lock for hold_ms. Returns 0 if the lock is lost. */
static int hold(void)
{
    uint64_t until_us = board_now_us() + hold_ms * (uint64_t)1000, valid_until_us, now;
    unsigned extended = 0;

    if (!REDLOCK_MINIMAL)
        (void)redlock_auto_extend_start(&client, &lock, REDLOCK_NO_LIMIT);
    while (board_now_us() < until_us) {
        valid_until_us = lock.valid_until_us;
        turn(); /* ... and a step of the work, if redlock_remaining_ms leaves time for it ... */
        if (!still_held()) {
            now = board_now_us();
            say_failed("lost: ", lock.status);
            say("reported ms after its validity: ",
                now > valid_until_us ? (uint32_t)((now - valid_until_us) / 1000) : 0, "");
            return 0;
        }
        if (lock.extended != extended) {
            extended = lock.extended;
            say("extended: ", extended, "");
        }
    }
    return 1;
}

/* Only a build with labels and !REDLOCK_MINIMAL has the fields. */
#if REDLOCK_LABEL_MAX > 0 && !REDLOCK_MINIMAL
static void name_holders(void)
{
    static char holder[RESP_TEXT_MAX + 1]; /* token and label of another holder */

    lock.label = label;
    lock.label_size = (uint8_t)strlen(label);
    lock.holder = holder;
    lock.holder_size = sizeof holder;
}
#else
static void name_holders(void)
{
}
#endif

static void acquire_and_hold(void)
{
    enum redlock_status status = finish(redlock_acquire_start(&client, &lock, 60000));

    if (status != REDLOCK_OK) {
        say_failed("not acquired: ", status);
        board_print("held by ");
        board_print(redlock_holder_label(&lock));
        board_print("\n");
        return;
    }
    say("acquired, valid for ", redlock_remaining_ms(&client, &lock), " ms");
    if (counter_address != NULL && !enter())
        board_print("not counted\n");
    if (!hold()) {
        /* also ends an extension that is in progress */
        finish(redlock_release_start(&client, &lock, 0));
        return;
    }
    if (counter_address != NULL)
        leave();
    board_print("releasing\n");
    status = finish(redlock_release_start(&client, &lock, 5000));
    if (status != REDLOCK_OK)
        say_failed("not released: ", status);
    else
        say("released; bytes of stack used: ", board_stack_used(top), "");
}

int main(void)
{
    struct redlock_settings settings = {0};

    top = __builtin_frame_address(0);
    read_settings();
    start_network();
    while (ip4_addr_isany_val(*netif_ip4_addr(&netif))) {
        serve_network();
        sleep_us(1000000);
    }
    ip4addr_ntoa_r(netif_ip4_addr(&netif), label, sizeof label);
    board_print("address ");
    board_print(label);
    board_print("\n");

    if (REDLOCK_MINIMAL)
        board_print("minimal\n");

    settings.drift_ppm = drift_ppm;
    settings.node_timeout_ms = 500; /* an emulated board is sometimes slow */
    redlock_lwip_raw_init(&stack, now_us, entropy);
    redlock_lwip_raw_init(&counter_stack, now_us, entropy);
    counter.address = counter_address;
    counter.handle = -1;
    if (redlock_init(&client, &stack.io, nodes, count, &settings) != REDLOCK_OK) {
        say_failed("init: ", REDLOCK_INVALID_ARGUMENT);
        return 1;
    }
    redlock_lock_init(&lock, "redlock:pump/7", ttl_ms);
    name_holders();
    turn_for(delay_ms);
    for (;;) {
        acquire_and_hold();
        turn_for(pause_ms);
    }
}
