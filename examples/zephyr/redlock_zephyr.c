/* redlock_zephyr.c - see redlock_zephyr.h. Like net.c, except where Zephyr behaves differently; comments describe the differences.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "redlock_zephyr.h"

#include <errno.h>
#include <string.h>

#include <zephyr/kernel.h>
#include <zephyr/net/net_ip.h>
#include <zephyr/net/socket.h>
#include <zephyr/random/random.h>

static int zephyr_fd(const struct redlock_node *node)
{
    return (int)node->handle;
}

/* ---- Connections ---------------------------------------------------------------------------- */

static int zephyr_fail(struct redlock_node *node, const char *what, int error)
{
    redlock_set_error(node, what, strerror(error));
    return -1;
}

/* The port must be there; in IPv6 it is at the same place. net_ipaddr_parse does not check how long a port is. */
static int zephyr_parse(struct redlock_node *node, struct sockaddr *to)
{
    size_t size = strlen(node->address);

    memset(to, 0, sizeof *to);
    if (size <= (node->address[0] == '[' ? 47 : 21) && net_ipaddr_parse(node->address, size, to) &&
        net_sin(to)->sin_port != 0)
        return 0;
    redlock_set_error(node, "not a numeric address", node->address);
    return -1;
}

static int zephyr_check(void *context, struct redlock_node *node)
{
    struct sockaddr to;

    (void)context;
    return zephyr_parse(node, &to);
}

/* The times of TCP keep-alive are those of net.c: after 15 s, then each 5 s, 3 times. Fails without CONFIG_NET_TCP_KEEPALIVE. */
static void zephyr_set_options(int fd)
{
    static const int options[][3] = {{IPPROTO_TCP, TCP_NODELAY, 1},
                                     {SOL_SOCKET, SO_KEEPALIVE, 1},
                                     {IPPROTO_TCP, TCP_KEEPIDLE, 15},
                                     {IPPROTO_TCP, TCP_KEEPINTVL, 5},
                                     {IPPROTO_TCP, TCP_KEEPCNT, 3}};
    unsigned i;

    for (i = 0; i < sizeof options / sizeof options[0]; i++)
        (void)zsock_setsockopt(fd, options[i][0], options[i][1], &options[i][2], sizeof(int));
}

static int zephyr_dial(void *context, struct redlock_node *node)
{
    struct sockaddr to;
    int fd, error;

    (void)context;
    if (zephyr_parse(node, &to) != 0)
        return -1;
    if ((fd = zsock_socket(to.sa_family, SOCK_STREAM, IPPROTO_TCP)) < 0)
        return zephyr_fail(node, "socket", errno);
    zephyr_set_options(fd);
    if (zsock_fcntl(fd, ZVFS_F_SETFL, ZVFS_O_NONBLOCK) == 0 &&
        (zsock_connect(fd, &to, sizeof to) == 0 || errno == EINPROGRESS)) {
        node->handle = fd;
        return 0;
    }
    error = errno;
    (void)zsock_close(fd);
    return zephyr_fail(node, "connect", error);
}

static int zephyr_ready(void *context, struct redlock_node *node)
{
    struct zsock_pollfd fd = {zephyr_fd(node), ZSOCK_POLLOUT, 0};
    socklen_t size = sizeof(int);
    int error = 0;

    (void)context;
    if (zsock_poll(&fd, 1, 0) <= 0)
        return 0;
    if (zsock_getsockopt(fd.fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
        error = errno;
    if (error == 0 && !(fd.revents & (ZSOCK_POLLERR | ZSOCK_POLLHUP | ZSOCK_POLLNVAL)))
        return 1;
    return zephyr_fail(node, "connect", error != 0 ? error : ECONNREFUSED);
}

/* Without network buffers Zephyr reports ENOBUFS or ENOMEM: the bytes are sent again later. */
static int zephyr_moved(struct redlock_node *node, const char *what, ssize_t moved)
{
    if (moved >= 0)
        return (int)moved;
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS || errno == ENOMEM
               ? 0
               : zephyr_fail(node, what, errno);
}

static int zephyr_transmit(void *context, struct redlock_node *node, const void *bytes, size_t size)
{
    (void)context;
    return zephyr_moved(node, "send", zsock_send(zephyr_fd(node), bytes, size, ZSOCK_MSG_DONTWAIT));
}

static int zephyr_receive(void *context, struct redlock_node *node, void *bytes, size_t size)
{
    ssize_t moved = zsock_recv(zephyr_fd(node), bytes, size, ZSOCK_MSG_DONTWAIT);

    (void)context;
    if (moved != 0)
        return zephyr_moved(node, "receive", moved);
    redlock_set_error(node, "receive", "closed by the server");
    return -1;
}

static void zephyr_shut(void *context, struct redlock_node *node)
{
    (void)context;
    (void)zsock_close(zephyr_fd(node));
    node->handle = -1;
}

/* ---- Time, entropy, waiting ----------------------------------------------------------------- */

/* 64 bits, so it does not wrap. The system's timer must run while the chip sleeps. */
static uint64_t zephyr_now_us(void *context)
{
    (void)context;
    return k_ticks_to_us_floor64((uint64_t)k_uptime_ticks());
}

static int zephyr_entropy(void *context, void *bytes, size_t size)
{
    (void)context;
    return sys_csrand_get(bytes, size) == 0 ? 0 : -1; /* sys_rand_get need not be secure */
}

static void zephyr_wait(void *context, struct redlock_node *nodes, unsigned count,
                        uint64_t timeout_us, uint8_t *events)
{
    int timeout_ms = timeout_us < 60000000 ? (int)((timeout_us + 999) / 1000) : 60000;
    struct zsock_pollfd fds[REDLOCK_NODES_MAX];
    unsigned i, watched = 0;

    (void)context;
    for (i = 0; i < count; i++) {
        fds[i].fd = events[i] != 0 ? zephyr_fd(&nodes[i]) : -1;
        fds[i].events = (short)((events[i] & REDLOCK_READABLE ? ZSOCK_POLLIN : 0) |
                                (events[i] & REDLOCK_WRITABLE ? ZSOCK_POLLOUT : 0));
        fds[i].revents = 0;
        watched += events[i] != 0;
    }
    if (watched == 0) {
        k_msleep(timeout_ms);
        return;
    }
    if (zsock_poll(fds, (int)count, timeout_ms) < 0) {
        k_msleep(
            1); /* ENOMEM: CONFIG_ZVFS_POLL_MAX is too small. Each may be ready, so each is tried */
        return;
    }
    for (i = 0; i < count; i++) {
        int bad = fds[i].revents & (ZSOCK_POLLERR | ZSOCK_POLLHUP | ZSOCK_POLLNVAL);
        events[i] = (uint8_t)((fds[i].revents & ZSOCK_POLLIN || bad ? REDLOCK_READABLE : 0) |
                              (fds[i].revents & ZSOCK_POLLOUT || bad ? REDLOCK_WRITABLE : 0));
    }
}

const struct redlock_io *redlock_zephyr(void)
{
    static const struct redlock_io zephyr = {zephyr_dial,    zephyr_ready, zephyr_transmit,
                                             zephyr_receive, zephyr_shut,  zephyr_now_us,
                                             zephyr_entropy, zephyr_wait,  NULL,
                                             NULL,           NULL,         zephyr_check};

    return &zephyr;
}
