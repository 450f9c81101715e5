/* redlock_freertos_tcp.c - see redlock_freertos_tcp.h. Like net.c, except where FreeRTOS-Plus-TCP behaves differently; comments
   describe the differences.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "redlock_freertos_tcp.h"

#include <string.h>

static Socket_t ft_socket(const struct redlock_node *node)
{
    return (Socket_t)node->handle;
}

/* ---- Connections ---------------------------------------------------------------------------- */

/* Errors are negative numbers, and there is no strerror. */
static int ft_fail(struct redlock_node *node, const char *what, BaseType_t error)
{
    redlock_set_error(node, what,
                      error == -pdFREERTOS_ERRNO_ENOTCONN ? "refused or closed by the server"
                      : error == -pdFREERTOS_ERRNO_ENOMEM ? "out of memory"
                                                          : "failed");
    return -1;
}

/* Parses "10.0.0.1:6379". */
static int ft_parse(struct redlock_node *node, struct freertos_sockaddr *to)
{
    const char *colon = strrchr(node->address, ':'), *digit;
    unsigned long port = 0;
    char host[16];

    memset(to, 0, sizeof *to);
    if (colon != NULL && (size_t)(colon - node->address) < sizeof host) {
        memcpy(host, node->address, (size_t)(colon - node->address));
        host[colon - node->address] = '\0';
        for (digit = colon + 1; *digit >= '0' && *digit <= '9' && port <= 65535; digit++)
            port = port * 10 + (unsigned long)(*digit - '0');
        to->sin_len = sizeof *to;
        to->sin_family = FREERTOS_AF_INET;
        to->sin_port = FreeRTOS_htons((uint16_t)port);
        if (*digit == '\0' && port > 0 && port <= 65535 &&
            FreeRTOS_inet_pton(FREERTOS_AF_INET, host, &to->sin_address.ulIP_IPv4) == pdPASS)
            return 0;
    }
    redlock_set_error(node, "not an IPv4 address", node->address);
    return -1;
}

static int ft_check(void *context, struct redlock_node *node)
{
    struct freertos_sockaddr to;

    (void)context;
    return ft_parse(node, &to);
}

/* A socket whose block times are 0 does not block. */
static int ft_dial(void *context, struct redlock_node *node)
{
    const TickType_t none = 0;
    struct freertos_sockaddr to;
    BaseType_t result;
    Socket_t fd;

    (void)context;
    if (ft_parse(node, &to) != 0)
        return -1;
    fd = FreeRTOS_socket(FREERTOS_AF_INET, FREERTOS_SOCK_STREAM, FREERTOS_IPPROTO_TCP);
    if (fd == FREERTOS_INVALID_SOCKET)
        return ft_fail(node, "socket", -pdFREERTOS_ERRNO_ENOMEM);
    (void)FreeRTOS_setsockopt(fd, 0, FREERTOS_SO_RCVTIMEO, &none, sizeof none);
    (void)FreeRTOS_setsockopt(fd, 0, FREERTOS_SO_SNDTIMEO, &none, sizeof none);
    result = FreeRTOS_connect(fd, &to, sizeof to);
    if (result != 0 && result != -pdFREERTOS_ERRNO_EWOULDBLOCK) {
        (void)FreeRTOS_closesocket(fd);
        return ft_fail(node, "connect", result);
    }
    node->handle = (intptr_t)fd;
    return 0;
}

/* Only recv tells a connect that has failed from one that is in progress. */
static int ft_ready(void *context, struct redlock_node *node)
{
    BaseType_t result;
    char byte;

    (void)context;
    if (FreeRTOS_issocketconnected(ft_socket(node)) == pdTRUE)
        return 1;
    result = FreeRTOS_recv(ft_socket(node), &byte, 1, FREERTOS_MSG_PEEK);
    return result >= 0 ? 0 : ft_fail(node, "connect", result);
}

static int ft_moved(struct redlock_node *node, const char *what, BaseType_t moved)
{
    if (moved >= 0)
        return (int)moved;
    return moved == -pdFREERTOS_ERRNO_ENOSPC || moved == -pdFREERTOS_ERRNO_EWOULDBLOCK ||
                   moved == -pdFREERTOS_ERRNO_EINTR
               ? 0
               : ft_fail(node, what, moved);
}

static int ft_transmit(void *context, struct redlock_node *node, const void *bytes, size_t size)
{
    (void)context;
    return ft_moved(node, "send", FreeRTOS_send(ft_socket(node), bytes, size, 0));
}

/* 0: nothing has come; the end of the stream is ENOTCONN. */
static int ft_receive(void *context, struct redlock_node *node, void *bytes, size_t size)
{
    (void)context;
    return ft_moved(node, "receive", FreeRTOS_recv(ft_socket(node), bytes, size, 0));
}

/* FreeRTOS_closesocket alone sends nothing: the server would keep the connection. */
static void ft_shut(void *context, struct redlock_node *node)
{
    (void)context;
    (void)FreeRTOS_shutdown(ft_socket(node), FREERTOS_SHUT_RDWR);
    (void)FreeRTOS_closesocket(ft_socket(node));
    node->handle = -1;
}

/* ---- Time and waiting ----------------------------------------------------------------------- */

static uint64_t ft_now_us(void *context)
{
    struct redlock_freertos_tcp *stack = (struct redlock_freertos_tcp *)context;
    TickType_t now = xTaskGetTickCount();

    stack->ticks += (TickType_t)(now - stack->last);
    stack->last = now;
    return stack->ticks * 1000000 / configTICK_RATE_HZ;
}

/* Rounded up; at most a minute, or half of what a tick counter of 16 bits can hold. */
static TickType_t ft_ticks(uint64_t timeout_us)
{
    uint64_t us = timeout_us < 60000000 ? timeout_us : 60000000;
    uint64_t ticks = (us * configTICK_RATE_HZ + 999999) / 1000000;

    return (TickType_t)(ticks < 0x7fff ? ticks : 0x7fff);
}

/* A socket that is not connected yet has room to send, so eSELECT_WRITE would come at once: it is looked at each tick. */
static void ft_wait(void *context, struct redlock_node *nodes, unsigned count, uint64_t timeout_us,
                    uint8_t *events)
{
    SocketSet_t set = ((struct redlock_freertos_tcp *)context)->set;
    TickType_t ticks = ft_ticks(timeout_us);
    unsigned i, watched = 0;

    for (i = 0; i < count; i++) {
        EventBits_t bits = eSELECT_EXCEPT;
        if (nodes[i].handle == -1)
            continue;
        FreeRTOS_FD_CLR(ft_socket(&nodes[i]), set, eSELECT_ALL);
        if (events[i] == 0)
            continue;
        if (events[i] & REDLOCK_READABLE)
            bits |= eSELECT_READ;
        if (FreeRTOS_issocketconnected(ft_socket(&nodes[i])) == pdTRUE)
            bits |= events[i] & REDLOCK_WRITABLE ? eSELECT_WRITE : 0;
        else if (ticks > 1)
            ticks = 1;
        FreeRTOS_FD_SET(ft_socket(&nodes[i]), set, bits);
        watched++;
    }
    if (watched == 0) {
        vTaskDelay(ticks);
        return;
    }
    (void)FreeRTOS_select(set, ticks);
    for (i = 0; i < count; i++) {
        Socket_t fd = ft_socket(&nodes[i]);
        EventBits_t got = events[i] != 0 ? FreeRTOS_FD_ISSET(fd, set) : 0;
        int bad = (got & eSELECT_EXCEPT) != 0;
        int room = (events[i] & REDLOCK_WRITABLE) && FreeRTOS_issocketconnected(fd) == pdTRUE &&
                   FreeRTOS_tx_space(fd) > 0;
        events[i] = (uint8_t)((bad || (got & eSELECT_READ) ? REDLOCK_READABLE : 0) |
                              (bad || room ? REDLOCK_WRITABLE : 0));
    }
}

int redlock_freertos_tcp_init(struct redlock_freertos_tcp *stack,
                              int (*entropy)(void *context, void *bytes, size_t size))
{
    memset(stack, 0, sizeof *stack);
    stack->set = FreeRTOS_CreateSocketSet();
    stack->last = xTaskGetTickCount();
    stack->io.dial = ft_dial;
    stack->io.ready = ft_ready;
    stack->io.transmit = ft_transmit;
    stack->io.receive = ft_receive;
    stack->io.shut = ft_shut;
    stack->io.now_us = ft_now_us;
    stack->io.entropy = entropy;
    stack->io.wait = ft_wait;
    stack->io.check = ft_check;
    stack->io.context = stack;
    return stack->set != NULL ? 0 : -1;
}
