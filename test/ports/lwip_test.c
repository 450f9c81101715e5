/* lwip_test.c tap PROGRAM, or slirp - examples/lwip against real servers: through a tap device, also with PROGRAM
   (examples/lwip/lock); or through libslirp, which needs no privileges. Run by lwip.sh.

   The linker puts the function here in the place of sys_now (--wrap, see Makefile).

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "redlock_lwip.h"
#include "side.h"
#include "slirpif.h"
#include "tap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "lwip/sockets.h"
#include "lwip/sys.h"
#include "lwip/tcpip.h"
#include "netif/tapif.h"

enum { NODES = 3, ALL = 7, PAIRS = 200 };

/* The addresses of lwIP's network: of lwIP, of this machine, of no machine. */
struct way {
    const char *own, *host, *nobody;
    err_t (*init)(struct netif *netif);
};

static const struct way ways[] = {{"192.168.77.2", "192.168.77.1", "192.168.77.99", tapif_init},
                                  {"10.0.2.15", "10.0.2.2", "10.0.2.99", slirpif_init}};

static const struct redlock_settings patient = {
    .node_timeout_ms = 10000, .stall_ms = 20000, .extend_max = 65535};
static const struct way *way;
static struct server servers[NODES];
static char addresses[NODES][32];
static struct redlock_node nodes[NODES];
static struct redlock_client client;
static struct redlock_lwip stack;
static struct redlock_lock lock;

u32_t __real_sys_now(void);
u32_t __wrap_sys_now(void);

/* Wraps around to 0 after three seconds. */
u32_t __wrap_sys_now(void)
{
    static u32_t offset;

    if (offset == 0)
        offset = 0xffffffffU - 3000 - __real_sys_now();
    return __real_sys_now() + offset;
}

static int entropy(void *context, void *bytes, size_t size)
{
    (void)context;
    return getrandom(bytes, size, 0) == (ssize_t)size ? 0 : -1;
}

static int start_network(void)
{
    static struct netif netif;
    ip4_addr_t own, mask, host;
    int up;

    IP4_ADDR(&mask, 255, 255, 255, 0);
    ip4addr_aton(way->own, &own);
    ip4addr_aton(way->host, &host);
    tcpip_init(NULL, NULL);
    LOCK_TCPIP_CORE();
    up = netif_add(&netif, &own, &mask, &host, NULL, way->init, tcpip_input) != NULL;
    if (up) {
        netif_set_default(&netif);
        netif_set_up(&netif);
    }
    UNLOCK_TCPIP_CORE();
    return up;
}

static void begin(const struct redlock_settings *settings)
{
    redlock_lwip_init(&stack, entropy);
    count_waits(&stack.io);
    if (redlock_init(&client, &stack.io, nodes, NODES, settings) != REDLOCK_OK)
        exit(1);
    redlock_lock_init(&lock, "lwip", 60000);
}

/* Waits first: redlock_deinit would discard unsent bytes for a slow server. */
static void end(void)
{
    settle(&client);
    redlock_deinit(&client);
}

static void reset_nodes(void)
{
    unsigned i;

    memset(nodes, 0, sizeof nodes);
    for (i = 0; i < NODES; i++)
        nodes[i].address = addresses[i];
}

/* Until all servers have the key: an acquire ends when a majority has it. */
static void extend_everywhere(void)
{
    long until = now_ms() + 20000;

    while (redlock_extend(&client, &lock) == REDLOCK_OK && lock.members != ALL && now_ms() < until)
        sleep_ms(5);
}

/* Until node 0 has an error: the other nodes are enough for an extension, so the error may come later. */
static void extend_until_noticed(void)
{
    long until = now_ms() + 20000;

    while (nodes[0].error[0] == '\0' && now_ms() < until) {
        redlock_extend(&client, &lock);
        sleep_ms(5);
    }
}

/* The descriptor of the next socket: lwIP returns the smallest free one. */
static int next_socket(void)
{
    int fd = lwip_socket(AF_INET, SOCK_STREAM, 0);

    lwip_close(fd);
    return fd;
}

/* A socket that begins to connect. */
static int begin_connect(const char *host, int port)
{
    struct sockaddr_in to;
    int on = 1, fd = lwip_socket(AF_INET, SOCK_STREAM, 0);

    memset(&to, 0, sizeof to);
    to.sin_family = AF_INET;
    to.sin_port = htons((uint16_t)port);
    lwip_inet_pton(AF_INET, host, &to.sin_addr);
    lwip_ioctl(fd, (long)FIONBIO, &on);
    is_int(lwip_connect(fd, (struct sockaddr *)(void *)&to, sizeof to), -1,
           "connect does not block");
    is_int(errno, EINPROGRESS, "the connect is in progress");
    return fd;
}

/* ---- Tests ---------------------------------------------------------------------------------- */

static void acquires_and_releases(void)
{
    char reply[64];
    long start = now_ms();
    int i, good = 0;

    begin(&patient);
    is_int(redlock_acquire(&client, &lock, 0), REDLOCK_OK, "acquire");
    printf("# in %ld ms\n", now_ms() - start);
    extend_everywhere();
    is_int(lock.members, ALL, "extended on all servers");
    for (i = 0; i < NODES; i++)
        good += strlen(server_ask(&servers[i], reply, sizeof reply, "GET", "lwip", NULL)) == 40;
    is_int(good, NODES, "all have the token");
    is_int(redlock_release(&client, &lock, 10000), REDLOCK_OK, "release");
    is_int((long)servers_keys_left("lwip", 10000), 0, "no key is left");
    start = now_ms();
    for (i = good = 0; i < PAIRS; i++)
        good += redlock_acquire(&client, &lock, 0) == REDLOCK_OK &&
                redlock_release(&client, &lock, 10000) == REDLOCK_OK;
    printf("# %d pairs: %ld ms\n", PAIRS, now_ms() - start);
    is_int(good, PAIRS, "%d times acquire and release", PAIRS);
    end();
}

static void killed_and_restarted(void)
{
    int i;

    begin(&patient);
    is_int(redlock_acquire(&client, &lock, 0), REDLOCK_OK, "acquire");
    for (i = 0; i < 3; i++) {
        extend_everywhere();
        server_kill(&servers[0]);
        is_int(redlock_extend(&client, &lock), REDLOCK_OK, "a server is killed: extend");
        extend_until_noticed();
        ok(nodes[0].error[0] != '\0', "  %s", nodes[0].error);
        sleep_ms(200);
        is_int(redlock_extend(&client, &lock), REDLOCK_OK,
               "the server refuses connections: extend");
        server_restart(&servers[0]);
        extend_everywhere();
        is_int(lock.members, ALL, "the server is back: an extension repairs the key there");
    }
    is_int(redlock_release(&client, &lock, 10000), REDLOCK_OK, "release");
    end();
    is_int((long)servers_keys_left("lwip", 10000), 0, "no key is left");
}

static void refused(void)
{
    server_kill(&servers[0]);
    reset_nodes();
    begin(&patient);
    redlock_acquire(&client, &lock, 0);
    is_int(redlock_extend(&client, &lock), REDLOCK_OK,
           "a server does not run: the others are enough");
    extend_until_noticed();
    ok(strncmp(nodes[0].error, "connect: ", 9) == 0, "  %s", nodes[0].error);
    redlock_release(&client, &lock, 10000);
    end();
    server_restart(&servers[0]);
}

static void nobody_answers(void)
{
    static const struct redlock_settings quick = {.node_timeout_ms = 300, .stall_ms = 1000};
    char address[32];
    long start = now_ms();

    snprintf(address, sizeof address, "%s:6379", way->nobody);
    nodes[0].address = address;
    nodes[1].address = "not a number";
    nodes[2].address = "1.2.3.4:65536";
    begin(&quick);
    is_int(redlock_acquire(&client, &lock, 2000), REDLOCK_UNREACHABLE, "no server answers");
    ok(now_ms() - start < 10000 && nodes[0].error[0] != '\0', "  in %ld ms: %s", now_ms() - start,
       nodes[0].error);
    ok(strstr(nodes[1].error, "not an IPv4 address") != NULL, "  %s", nodes[1].error);
    ok(strstr(nodes[2].error, "not an IPv4 address") != NULL, "  %s", nodes[2].error);
    ok(waits < 200, "without a busy loop: %u waits", waits);
    end();
    reset_nodes();
}

static void hangs(void)
{
    begin(&patient);
    redlock_acquire(&client, &lock, 0);
    extend_everywhere();
    server_pause(&servers[0]);
    is_int(redlock_extend(&client, &lock), REDLOCK_OK, "a server hangs: extend");
    server_resume(&servers[0]);
    is_int(redlock_release(&client, &lock, 10000), REDLOCK_OK, "release");
    end();
    is_int((long)servers_keys_left("lwip", 10000), 0, "no key is left");
}

static void large_answers(void)
{
    char reply[64];
    unsigned i;

    begin(&patient);
    for (i = 0; i < NODES; i++)
        server_ask(&servers[i], reply, sizeof reply, "EVAL",
                   "return redis.call('set',KEYS[1],string.rep('x',200000))", "1", "lwip", NULL);
    is_int(redlock_acquire(&client, &lock, 0), REDLOCK_HELD, "answers of 200,000 bytes");
    for (i = 0; i < NODES; i++)
        server_ask(&servers[i], reply, sizeof reply, "DEL", "lwip", NULL);
    is_int(redlock_acquire(&client, &lock, 0), REDLOCK_OK, "the key is deleted: acquire");
    is_int(redlock_release(&client, &lock, 10000), REDLOCK_OK, "release");
    end();
}

/* sys_now wraps around while a lock is held. */
static void clock_wraps(void)
{
    uint64_t before_us, after_us;
    u32_t first = __wrap_sys_now();
    long until = now_ms() + 20000;

    begin(&patient);
    before_us = stack.io.now_us(&stack);
    is_int(redlock_acquire(&client, &lock, 0), REDLOCK_OK, "acquire");
    while (__wrap_sys_now() >= first && now_ms() < until)
        sleep_ms(10);
    sleep_ms(1200);
    after_us = stack.io.now_us(&stack);
    ok(__wrap_sys_now() < first, "sys_now has wrapped around");
    ok(after_us - before_us >= 1100000 && after_us - before_us < 60000000,
       "now_us does not wrap around");
    ok(redlock_remaining_ms(&client, &lock) < 59000, "the remaining validity decreases");
    is_int(redlock_extend(&client, &lock), REDLOCK_OK, "extend");
    is_int(redlock_release(&client, &lock, 10000), REDLOCK_OK, "release");
    end();
}

/* What the comments of redlock_lwip.c say about lwIP. If a check fails, change the comments. */
static void peculiarities_of_lwip(void)
{
    struct pollfd fds[2] = {{-1, POLLOUT, 0}, {-1, 0, 0}};
    struct sockaddr_in peer;
    socklen_t size = sizeof peer;
    long start = now_ms();
    int error = 0, fd;

    is_int(lwip_poll(fds, 2, 50), 0, "poll without a socket");
    ok(now_ms() - start >= 40, "poll without a socket sleeps");
    fd = begin_connect(way->nobody, 6379);
    is_int(lwip_getpeername(fd, (struct sockaddr *)(void *)&peer, &size), 0,
           "getpeername succeeds before the connection is established");
    fds[0].fd = fd;
    is_int(lwip_poll(fds, 1, 50), 0, "poll does not report the socket as writable");
    lwip_close(fd);
    server_kill(&servers[0]);
    fds[0].fd = fd = begin_connect(way->host, servers[0].port);
    is_int(lwip_poll(fds, 1, 10000), 1, "poll reports a refused connect");
    size = sizeof error;
    lwip_getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
    is_int(error, ECONNRESET, "the error of a refused connect is ECONNRESET");
    lwip_close(fd);
    server_restart(&servers[0]);
}

int main(int argc, char **argv)
{
    const char *const options[] = {"--bind",           "127.0.0.1", "192.168.77.1",
                                   "--protected-mode", "no",        NULL};
    char command[300];
    int first, i;

    way = &ways[argc != 3];
    servers_start(servers, NODES, argc == 3 ? options : NULL);
    for (i = 0; i < NODES; i++)
        snprintf(addresses[i], sizeof addresses[i], "%s:%d", way->host, servers[i].port);
    if (argc == 3) { /* before this process takes the device */
        snprintf(command, sizeof command, "%s %s %s %s", argv[2], addresses[0], addresses[1],
                 addresses[2]);
        is_int(system(command), 0, "the program examples/lwip/lock");
    }
    if (!start_network())
        return 1;
    reset_nodes();
    first = next_socket();
    clock_wraps(); /* first, because sys_now wraps around only once */
    acquires_and_releases();
    killed_and_restarted();
    refused();
    nobody_answers();
    hangs();
    large_answers();
    peculiarities_of_lwip();
    is_int(next_socket(), first, "no socket is left open");
    return done_testing();
}
