/* table_test.c PORT PORT PORT ADDRESS - an I/O table of examples on real servers, three of them on these ports of loopback, nothing
   listens at ADDRESS: addresses, clock, random bytes; a lock with all servers, and with one that refuses connections; a waiter; a
   server that ends. TABLE_windows, TABLE_zephyr or TABLE_freertos is defined.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#ifdef TABLE_windows
#include "redlock_windows.h"

#include <winsock2.h>
#include <windows.h>
#define HAS_IPV6 1
#elif defined(TABLE_zephyr)
#include "redlock_zephyr.h"
#define HAS_IPV6 1
#else
#include "redlock_freertos_tcp.h"
#define HAS_IPV6 0
#endif

#include <string.h>
#include <time.h>

#include "tap.h"

#ifdef TABLE_windows
static const struct redlock_io *table(unsigned i)
{
    (void)i;
    return redlock_windows();
}
static int is_inherited(intptr_t handle)
{
    DWORD flags = HANDLE_FLAG_INHERIT;

    return !GetHandleInformation((HANDLE)handle, &flags) || flags != 0;
}
static void sleep_ms(unsigned ms)
{
    Sleep(ms);
}
#else
static int is_inherited(intptr_t handle)
{
    return handle == -1; /* firmware has no child processes */
}
static void sleep_ms(unsigned ms)
{
    struct timespec time = {0, (long)ms * 1000000};

    nanosleep(&time, NULL);
}
#ifdef TABLE_zephyr
static const struct redlock_io *table(unsigned i)
{
    (void)i;
    return redlock_zephyr();
}
#else
static int entropy(void *context, void *bytes, size_t size)
{
    FILE *device = fopen("/dev/urandom", "rb");
    size_t got = device != NULL ? fread(bytes, 1, size, device) : 0;

    (void)context;
    if (device != NULL)
        fclose(device);
    return got == size ? 0 : -1;
}
static const struct redlock_io *table(unsigned i)
{
    static struct redlock_freertos_tcp stacks[2];

    if (stacks[i].set == NULL && redlock_freertos_tcp_init(&stacks[i], entropy) != 0)
        exit(2);
    return &stacks[i].io;
}
#endif
#endif

static const struct redlock_io *io;
static struct redlock_node nodes[3];
static struct redlock_client client;
static char addresses[3][32];

static void set_up(struct redlock_client *its, struct redlock_node *its_nodes, unsigned which)
{
    struct redlock_settings settings;
    unsigned i;

    memset(&settings, 0, sizeof settings);
    settings.node_timeout_ms = 2000; /* a machine may be paused for a second */
    memset(its_nodes, 0, sizeof nodes);
    for (i = 0; i < 3; i++)
        its_nodes[i].address = addresses[i];
    is_int(redlock_init(its, table(which), its_nodes, 3, &settings), REDLOCK_OK, "init");
}

static void set_lock(struct redlock_lock *lock)
{
    redlock_lock_init(lock, "redlock:table", 60000);
}

/* One turn of the loop, of a second at most. */
static void turn(struct redlock_client *its)
{
    (void)redlock_turn(its, 1000000);
}

static int all_ready(const struct redlock_node *its_nodes)
{
    return its_nodes[0].state == REDLOCK_NODE_READY && its_nodes[1].state == REDLOCK_NODE_READY &&
           its_nodes[2].state == REDLOCK_NODE_READY;
}

static void test_addresses(void)
{
    static const char *const good[] = {"10.0.0.1:6379", "127.0.0.1:1", "[::1]:65535",
                                       "[fe80::1]:7"};
    static const char *const bad[] = {
        "",         "localhost:6379", "10.0.0.1", "10.0.0.1:",      ":6379",     "10.0.0.1:0",
        "::1:6379", "[::1]",          "[::1:637", "10.0.0.1:65536", "unix:/tmp", "10.0.0.256:1"};
    struct redlock_node node;
    unsigned i;

    memset(&node, 0, sizeof node);
    for (i = 0; i < sizeof good / sizeof good[0]; i++) {
        node.address = good[i];
        if (good[i][0] == '[' && !HAS_IPV6)
            is_int(io->check(io->context, &node), -1, "refused: %s", good[i]);
        else
            is_int(io->check(io->context, &node), 0, "accepted: %s", good[i]);
    }
    for (i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        node.address = bad[i];
        node.error[0] = '\0';
        is_int(io->check(io->context, &node), -1, "refused: \"%s\"", bad[i]);
        ok(strncmp(node.error, "not a", 5) == 0, "%s", node.error);
        is_int(io->dial(io->context, &node), -1, "not dialled: \"%s\"", bad[i]);
    }
}

static void test_time(void)
{
    uint64_t began_us = io->now_us(io->context), took_us;
    uint8_t events[3] = {0, 0, 0};
    int64_t off_s;

    memset(nodes, 0, sizeof nodes);
    nodes[0].handle = nodes[1].handle = nodes[2].handle = -1;
    io->wait(io->context, nodes, 3, 200000, events);
    took_us = io->now_us(io->context) - began_us;
    ok(took_us >= 150000 && took_us < 20000000, "without a node to wait for, wait sleeps: %lu us",
       (unsigned long)took_us);
    began_us = io->now_us(io->context);
    sleep_ms(300);
    took_us = io->now_us(io->context) - began_us;
    ok(took_us >= 280000 && took_us < 20000000, "the clock counts microseconds: %lu",
       (unsigned long)took_us);
    if (io->wall_us == NULL)
        return;
    off_s = (int64_t)(io->wall_us(io->context) / 1000000) - (int64_t)time(NULL);
    ok(off_s > -5 && off_s < 5, "the wall clock: %ld s off", (long)off_s);
}

static void test_entropy(void)
{
    uint8_t first[20] = {0}, second[20] = {0};

    is_int(io->entropy(io->context, first, sizeof first), 0, "random bytes");
    is_int(io->entropy(io->context, second, sizeof second), 0, "more random bytes");
    ok(memcmp(first, second, sizeof first) != 0, "they differ");
}

static void test_lock(void)
{
    struct redlock_lock lock;
    unsigned i, turns;

    set_up(&client, nodes, 0);
    set_lock(&lock);
    lock.use_fencing = 1;
    is_int(redlock_acquire(&client, &lock, 0), REDLOCK_OK, "acquire");
    ok(lock.fencing_token > (io->wall_us != NULL ? (uint64_t)1600000000 * 1000000 : 0),
       "a fencing token");
    ok(redlock_remaining_ms(&client, &lock) > 30000, "it is held");
    is_int(redlock_extend(&client, &lock), REDLOCK_OK, "extend");
    for (turns = 0; turns < 50 && !all_ready(nodes); turns++)
        turn(&client);
    ok(all_ready(nodes), "three nodes are connected");
    for (i = 0; i < 3; i++) {
        ok(nodes[i].error[0] == '\0', "no error: %s", nodes[i].error);
        ok(!is_inherited(nodes[i].handle), "child processes do not inherit the socket");
    }
    is_int(redlock_release(&client, &lock, 2000), REDLOCK_OK, "release");
    redlock_deinit(&client);
    for (i = 0; i < 3; i++)
        ok(nodes[i].handle == -1, "the socket is closed");
}

/* The second client waits for the first. */
static void test_waiting(void)
{
    static struct redlock_node other_nodes[3];
    static struct redlock_client other;
    struct redlock_lock lock, waiting;
    unsigned turns;

    set_up(&client, nodes, 0);
    set_up(&other, other_nodes, 1);
    set_lock(&lock);
    set_lock(&waiting);
    is_int(redlock_acquire(&client, &lock, 0), REDLOCK_OK, "the first client has the lock");
    is_int(redlock_acquire_start(&other, &waiting, 60000), REDLOCK_PENDING, "the second one waits");
    for (turns = 0; turns < 20; turns++)
        turn(&other);
    is_int(waiting.status, REDLOCK_PENDING, "it still waits");
    is_int(redlock_release(&client, &lock, 2000), REDLOCK_OK, "the first one releases it");
    for (turns = 0; turns < 200 && waiting.status == REDLOCK_PENDING; turns++)
        turn(&other);
    is_int(waiting.status, REDLOCK_OK, "the second one has it");
    is_int(redlock_release(&other, &waiting, 2000), REDLOCK_OK, "and releases it");
    redlock_deinit(&client);
    redlock_deinit(&other);
}

static void test_refused(const char *refusing)
{
    struct redlock_lock lock;
    char good[32];
    unsigned turns;

    strcpy(good, addresses[1]);
    strcpy(addresses[1], refusing);
    set_up(&client, nodes, 0);
    set_lock(&lock);
    is_int(redlock_acquire(&client, &lock, 0), REDLOCK_OK, "acquired, although one server refuses");
    is_int(lock.granted, 5, "by the other two");
    for (turns = 0; turns < 50 && nodes[1].error[0] == '\0'; turns++)
        turn(&client);
    ok(strncmp(nodes[1].error, "connect: ", 9) == 0 && strlen(nodes[1].error) > 12,
       "the error of that node: %s", nodes[1].error);
    is_int(redlock_release(&client, &lock, 2000), REDLOCK_OK, "released");
    redlock_deinit(&client);
    strcpy(addresses[1], good);
}

/* Waits for these events; `wait` may return early. They must come in 10 s, and a single wait is longer. */
static void wait_for(struct redlock_node *node, unsigned wanted)
{
    uint64_t began_us = io->now_us(io->context), took_us;
    uint8_t event;

    do {
        event = (uint8_t)wanted;
        io->wait(io->context, node, 1, 20000000, &event);
        took_us = io->now_us(io->context) - began_us;
    } while (event == 0 && took_us < 10000000);
    ok((event & wanted) != 0 && took_us < 10000000, "an event comes, %s, after %lu us",
       wanted == REDLOCK_READABLE ? "readable" : "writable", (unsigned long)took_us);
}

static void test_refused_connect(const char *refusing)
{
    struct redlock_node node;

    memset(&node, 0, sizeof node);
    node.address = refusing;
    is_int(io->dial(io->context, &node), 0, "a connect to a port that refuses it");
    wait_for(&node, REDLOCK_WRITABLE);
    is_int(io->ready(io->context, &node), -1, "it has failed");
    ok(strncmp(node.error, "connect: ", 9) == 0 && strlen(node.error) > 12, "%s", node.error);
    io->shut(io->context, &node);
}

/* Sends SHUTDOWN over a connection of its own, and waits until the end of that is read. */
static int shut_down(const char *address)
{
    static const char ping[] = "PING\r\n", command[] = "SHUTDOWN NOSAVE\r\n";
    struct redlock_node node;
    char reply[64] = "";
    int moved;

    memset(&node, 0, sizeof node);
    node.address = address;
    if (io->dial(io->context, &node) != 0)
        return -1;
    wait_for(&node, REDLOCK_WRITABLE);
    is_int(io->ready(io->context, &node), 1, "a connection: up");
    is_int(io->receive(io->context, &node, reply, 1), 0, "nothing to read yet");
    is_int(io->transmit(io->context, &node, ping, sizeof ping - 1), sizeof ping - 1, "sent");
    wait_for(&node, REDLOCK_READABLE);
    ok(io->receive(io->context, &node, reply, sizeof reply - 1) == 7 &&
           strcmp(reply, "+PONG\r\n") == 0,
       "the reply");
    is_int(io->receive(io->context, &node, reply, 1), 0, "no more to read");
    wait_for(&node, REDLOCK_WRITABLE);
    is_int(io->transmit(io->context, &node, command, sizeof command - 1), sizeof command - 1,
           "SHUTDOWN");
    wait_for(&node, REDLOCK_READABLE);
    moved = io->receive(io->context, &node, reply, 1);
    ok(strncmp(node.error, "receive: ", 9) == 0, "the end of the connection: %s", node.error);
    io->shut(io->context, &node);
    return moved < 0 ? 0 : -1;
}

static void test_server_ends(void)
{
    struct redlock_lock lock;
    unsigned turns;

    set_up(&client, nodes, 0);
    set_lock(&lock);
    is_int(redlock_acquire(&client, &lock, 0), REDLOCK_OK, "acquired with three servers");
    is_int(shut_down(addresses[2]), 0, "one of them ends");
    is_int(redlock_auto_extend_start(&client, &lock, 10), REDLOCK_PENDING, "auto-extension");
    for (turns = 0; turns < 50 && nodes[2].error[0] == '\0'; turns++)
        turn(&client);
    ok(nodes[2].error[0] != '\0', "the node has an error: %s", nodes[2].error);
    is_int(lock.status, REDLOCK_PENDING, "the lock is still held");
    is_int(redlock_release(&client, &lock, 2000), REDLOCK_OK, "and released");
    redlock_deinit(&client);
}

int main(int argc, char **argv)
{
    unsigned i;

    if (argc != 5)
        return 2;
    io = table(0);
    for (i = 0; i < 3; i++)
        snprintf(addresses[i], sizeof addresses[i], "127.0.0.1:%s", argv[i + 1]);
    test_addresses();
    test_time();
    test_entropy();
    test_lock();
    test_waiting();
    test_refused_connect(argv[4]);
    test_refused(argv[4]);
    test_server_ends();
    return done_testing();
}
