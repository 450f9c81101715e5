/* proxy.c - see proxy.h.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "proxy.h"
#include "servers.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { TUNNELS = 400, PROXIES = 16, PIECE = 4096 };

/* One direction of a connection. */
struct flow {
    char bytes[PIECE];
    size_t used;
    long due_ms; /* the bytes are not sent before */
    int ended;   /* the sender has closed */
};

struct tunnel {
    int fd[2]; /* the client's, the server's; -1: the entry is free */
    int proxy;
    struct flow flow[2]; /* from fd[0], from fd[1] */
};

static struct tunnel tunnels[TUNNELS];
static struct proxy *all;
static unsigned all_count;

static void close_tunnel(struct tunnel *t, int reset)
{
    struct linger now = {1, 0};
    int side;

    for (side = 0; side < 2; side++) {
        if (reset)
            setsockopt(t->fd[side], SOL_SOCKET, SO_LINGER, &now, sizeof now);
        close(t->fd[side]);
        t->fd[side] = -1;
    }
}

static void set_non_blocking(int fd)
{
    fcntl(fd, F_SETFL, O_NONBLOCK);
    fcntl(fd, F_SETFD, FD_CLOEXEC);
}

/* Accepts a client and connects to the server. A failed connect shows when bytes are sent there. */
static void take_client(int proxy)
{
    struct sockaddr_in to;
    int client = accept(all[proxy].listener, NULL, NULL), i;

    if (client < 0)
        return;
    for (i = 0; i < TUNNELS - 1 && tunnels[i].fd[0] >= 0; i++)
        continue;
    if (tunnels[i].fd[0] >= 0)
        close_tunnel(&tunnels[i], 1); /* too many connections: closes one */
    memset(&tunnels[i], 0, sizeof tunnels[i]);
    tunnels[i].proxy = proxy;
    tunnels[i].fd[0] = client;
    tunnels[i].fd[1] = socket(AF_INET, SOCK_STREAM, 0);
    set_non_blocking(client);
    set_non_blocking(tunnels[i].fd[1]);
    memset(&to, 0, sizeof to);
    to.sin_family = AF_INET;
    to.sin_port = htons((uint16_t)all[proxy].to);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    (void)connect(tunnels[i].fd[1], (struct sockaddr *)(void *)&to, sizeof to);
}

/* Reads from one side. */
static void fill(struct tunnel *t, int side, int mode)
{
    struct flow *flow = &t->flow[side];
    int ms = all[t->proxy].ms;
    ssize_t got = recv(t->fd[side], flow->bytes, sizeof flow->bytes, 0);

    if (got > 0) {
        flow->used = (size_t)got;
        flow->due_ms = now_ms() + (mode != PROXY_DELAY ? 0 : ms > 0 ? ms : 5 + rand() % 56);
    } else if (got == 0) {
        flow->ended = 1;
    } else if (errno != EAGAIN && errno != EINTR && errno != ENOTCONN) {
        close_tunnel(t, 1);
    }
}

/* Sends the bytes that are due to the other side. */
static void drain(struct tunnel *t, int side, int mode)
{
    struct flow *flow = &t->flow[side];
    size_t size = flow->used;
    ssize_t moved;

    if (mode == PROXY_DRIP)
        size = 1;
    if (mode == PROXY_CUT)
        size = (size + 1) / 2;
    moved = send(t->fd[!side], flow->bytes, size, MSG_NOSIGNAL);
    if (moved > 0) {
        flow->used -= (size_t)moved;
        memmove(flow->bytes, flow->bytes + moved, flow->used);
        flow->due_ms = now_ms() + (mode == PROXY_DRIP);
        if (mode == PROXY_CUT)
            close_tunnel(t, 0);
    } else if (moved < 0 && errno != EAGAIN && errno != EINTR && errno != ENOTCONN) {
        close_tunnel(t, 1);
    }
}

static void serve_tunnel(struct tunnel *t)
{
    int mode = all[t->proxy].mode, side;

    if (mode == PROXY_RESET || mode == PROXY_DROP)
        close_tunnel(t, mode == PROXY_RESET);
    for (side = 0; side < 2 && mode != PROXY_HOLE && t->fd[0] >= 0; side++) {
        struct flow *flow = &t->flow[side];
        if (flow->used == 0 && !flow->ended)
            fill(t, side, mode);
        if (t->fd[0] >= 0 && flow->used > 0 && flow->due_ms <= now_ms())
            drain(t, side, mode);
        if (t->fd[0] >= 0 && flow->used == 0 && flow->ended)
            close_tunnel(t, 0);
    }
}

/* Sleeps until an event, 20 ms at most; 2 ms at most while bytes wait for their time or for room. */
static void sleep_a_while(void)
{
    static struct pollfd fds[PROXIES + 2 * TUNNELS];
    nfds_t used = 0;
    int wait_ms = 20, i, side;

    for (i = 0; i < (int)all_count; i++) {
        fds[used].fd = all[i].listener;
        fds[used++].events = POLLIN;
    }
    for (i = 0; i < TUNNELS; i++)
        for (side = 0; side < 2 && tunnels[i].fd[0] >= 0; side++) {
            if (tunnels[i].flow[side].used > 0) {
                wait_ms = 2;
            } else if (all[tunnels[i].proxy].mode != PROXY_HOLE) {
                fds[used].fd = tunnels[i].fd[side];
                fds[used++].events = POLLIN;
            }
        }
    (void)poll(fds, used, wait_ms);
    for (i = 0; i < (int)all_count; i++)
        if (fds[i].revents != 0)
            take_client(i);
}

static void run(void)
{
    int i, drops[PROXIES];

    srand(1);
    for (i = 0; i < TUNNELS; i++)
        tunnels[i].fd[0] = tunnels[i].fd[1] = -1;
    for (;;) {
        for (i = 0; i < (int)all_count; i++)
            drops[i] = all[i].mode == PROXY_DROP;
        for (i = 0; i < TUNNELS; i++)
            if (tunnels[i].fd[0] >= 0)
                serve_tunnel(&tunnels[i]);
        for (i = 0; i < (int)all_count; i++)
            if (drops[i])
                all[i].mode = PROXY_PASS;
        sleep_a_while();
    }
}

pid_t proxies_start(struct proxy *proxies, unsigned count)
{
    pid_t parent = getpid(), child;
    unsigned i;

    all = proxies;
    all_count = count < PROXIES ? count : PROXIES;
    for (i = 0; i < all_count; i++)
        set_non_blocking(proxies[i].listener =
                             listen_on(proxies[i].address, sizeof proxies[i].address));
    fflush(stdout);
    child = fork();
    if (child == 0) {
        signal(SIGTERM, SIG_DFL);
        end_with(parent);
        run();
    }
    for (i = 0; i < all_count; i++)
        close(proxies[i].listener);
    if (child < 0) {
        perror("proxy");
        exit(1);
    }
    return child;
}
