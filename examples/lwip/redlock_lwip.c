/* redlock_lwip.c - see redlock_lwip.h. Like net.c, except where lwIP behaves differently; comments describe the differences,
   measured with lwIP 2.1.3.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "redlock_lwip.h"

#include <string.h>

#include "lwip/inet.h"
#include "lwip/sockets.h"
#include "lwip/sys.h"

static int lw_socket(const struct redlock_node *node)
{
    return (int)node->handle;
}

/* ---- Connections ---------------------------------------------------------------------------- */

/* Parses "10.0.0.1:6379". */
static int lw_parse(const char *address, struct sockaddr_in *to)
{
    const char *colon = strrchr(address, ':'), *digit;
    unsigned long port = 0;
    char host[16];

    if (colon == NULL || (size_t)(colon - address) >= sizeof host)
        return 0;
    memcpy(host, address, (size_t)(colon - address));
    host[colon - address] = '\0';
    for (digit = colon + 1; *digit >= '0' && *digit <= '9' && port <= 65535; digit++)
        port = port * 10 + (unsigned long)(*digit - '0');
    memset(to, 0, sizeof *to);
    to->sin_family = AF_INET;
    to->sin_port = htons((uint16_t)port);
    return *digit == '\0' && port > 0 && port <= 65535 &&
           lwip_inet_pton(AF_INET, host, &to->sin_addr) == 1;
}

static int lw_fail(struct redlock_node *node, const char *what, int error)
{
    redlock_set_error(node, what, strerror(error));
    return -1;
}

static int lw_dial(void *context, struct redlock_node *node)
{
    struct timeval moment = {0, 10000};
    struct sockaddr_in to;
    int on = 1, error, fd;

    (void)context;
    if (!lw_parse(node->address, &to)) {
        redlock_set_error(node, "not an IPv4 address", node->address);
        return -1;
    }
    if ((fd = lwip_socket(AF_INET, SOCK_STREAM, 0)) < 0) /* ENFILE: MEMP_NUM_NETCONN */
        return lw_fail(node, "socket", errno);
    node->handle = fd;
    /* Not F_SETFL: the value of O_NONBLOCK, lwIP's or the C library's, depends on the headers that were included. */
    (void)lwip_ioctl(fd, (long)FIONBIO, &on);
    (void)lwip_setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    /* lwip_close waits for memory for its last segment, 20 s by default. Sends do not wait. */
    (void)lwip_setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &moment, sizeof moment);
    if (lwip_connect(fd, (struct sockaddr *)(void *)&to, sizeof to) == 0 || errno == EINPROGRESS)
        return 0;
    error = errno; /* ENETUNREACH or EHOSTUNREACH: the interface is down */
    (void)lwip_close(fd);
    node->handle = -1;
    return lw_fail(node, "connect", error);
}

/* A connection is established when the socket is writable. getpeername, which net.c uses, succeeds before that; a second connect
   fails with EISCONN after that. */
static int lw_ready(void *context, struct redlock_node *node)
{
    struct pollfd fd;
    socklen_t size = sizeof(int);
    int error = 0;

    (void)context;
    memset(&fd, 0, sizeof fd);
    fd.fd = lw_socket(node);
    fd.events = POLLOUT;
    if (lwip_poll(&fd, 1, 0) <= 0 || fd.revents == 0)
        return 0;
    if (lwip_getsockopt(fd.fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
        error = errno;
    /* lwIP reports a refusal as ECONNRESET, other systems as ECONNREFUSED. */
    return error == 0 ? 1 : lw_fail(node, "connect", error);
}

static int lw_moved(struct redlock_node *node, const char *what, ssize_t moved)
{
    if (moved > 0)
        return (int)moved;
    if (moved < 0 && (errno == EWOULDBLOCK || errno == EAGAIN))
        return 0;
    return lw_fail(node, what, errno);
}

static int lw_transmit(void *context, struct redlock_node *node, const void *bytes, size_t size)
{
    (void)context;
    return lw_moved(node, "send", lwip_send(lw_socket(node), bytes, size, 0));
}

static int lw_receive(void *context, struct redlock_node *node, void *bytes, size_t size)
{
    ssize_t moved = lwip_recv(lw_socket(node), bytes, size, 0);

    (void)context;
    if (moved != 0)
        return lw_moved(node, "receive", moved);
    redlock_set_error(node, "receive", "closed by the server");
    return -1;
}

static void lw_shut(void *context, struct redlock_node *node)
{
    (void)context;
    (void)lwip_close(lw_socket(node));
    node->handle = -1;
}

/* ---- Time and waiting ----------------------------------------------------------------------- */

/* sys_now has 32 bits and wraps after 49.7 days, which is no problem if the client is served more often. It must count while the
   chip sleeps: otherwise a holder that wakes up after its TTL would believe that it still holds the lock. */
static uint64_t lw_now_us(void *context)
{
    struct redlock_lwip *stack = (struct redlock_lwip *)context;
    uint32_t now_ms = sys_now();

    stack->ms += (uint32_t)(now_ms - stack->last_ms);
    stack->last_ms = now_ms;
    return stack->ms * 1000;
}

static void lw_wait(void *context, struct redlock_node *nodes, unsigned count, uint64_t timeout_us,
                    uint8_t *events)
{
    int timeout_ms = timeout_us < 60000000 ? (int)((timeout_us + 999) / 1000) : 60000;
    struct pollfd fds[REDLOCK_NODES_MAX];
    unsigned i;

    (void)context;
    memset(fds, 0, sizeof fds);
    for (i = 0; i < count; i++) {
        fds[i].fd = events[i] != 0 ? lw_socket(&nodes[i]) : -1;
        fds[i].events = (short)((events[i] & REDLOCK_READABLE ? POLLIN : 0) |
                                (events[i] & REDLOCK_WRITABLE ? POLLOUT : 0));
    }
    if (lwip_poll(fds, count, timeout_ms) < 0)
        sys_msleep(1); /* out of memory: try again at the next call */
    for (i = 0; i < count; i++) {
        unsigned bad = (fds[i].revents & (POLLERR | POLLHUP | POLLNVAL)) != 0;
        events[i] = (uint8_t)((fds[i].revents & POLLIN || bad ? REDLOCK_READABLE : 0) |
                              (fds[i].revents & POLLOUT || bad ? REDLOCK_WRITABLE : 0));
    }
}

void redlock_lwip_init(struct redlock_lwip *stack,
                       int (*entropy)(void *context, void *bytes, size_t size))
{
    memset(stack, 0, sizeof *stack);
    stack->last_ms = sys_now();
    stack->io.dial = lw_dial;
    stack->io.ready = lw_ready;
    stack->io.transmit = lw_transmit;
    stack->io.receive = lw_receive;
    stack->io.shut = lw_shut;
    stack->io.now_us = lw_now_us;
    stack->io.entropy = entropy;
    stack->io.wait = lw_wait;
    stack->io.context = stack;
}
