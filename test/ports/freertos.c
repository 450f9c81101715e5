/* freertos.c - calls of FreeRTOS and FreeRTOS-Plus-TCP on POSIX, for table_test: see test/ports/freertos. Where the IP stack differs
   from POSIX it does the same: a socket that is not connected has room to send; recv returns 0 when nothing has come, and ENOTCONN
   at the end of the stream and after a failed connect; sockets stay in a set; a full socket is ENOSPC.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "FreeRTOS.h"
#include "task.h"
#include "FreeRTOS_IP.h"
#include "FreeRTOS_Sockets.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { SOCKETS = 32 };

struct xSOCKET {
    int fd;             /* 0: free */
    int connected, bad; /* what it has been seen to be */
    int times;          /* how many block times are 0 */
    EventBits_t wanted, got;
    const struct xSOCKET_SET *set;
};
struct xSOCKET_SET {
    int used;
};
static struct xSOCKET sockets[SOCKETS];
static struct xSOCKET_SET sets[4];

/* It wraps 300 ms after the first call, and then once a minute. */
TickType_t xTaskGetTickCount(void)
{
    static uint64_t first_ms;
    struct timespec now;
    uint64_t ms;

    clock_gettime(CLOCK_MONOTONIC, &now);
    ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
    if (first_ms == 0)
        first_ms = ms;
    return (TickType_t)(ms - first_ms + 65536 - 300);
}

void vTaskDelay(const TickType_t ticks)
{
    struct timespec time = {ticks / 1000, ticks % 1000 * 1000000};

    (void)nanosleep(&time, NULL);
}

Socket_t FreeRTOS_socket(BaseType_t domain, BaseType_t type, BaseType_t protocol)
{
    unsigned i;

    for (i = 0; i < SOCKETS && sockets[i].fd != 0; i++)
        continue;
    if (i == SOCKETS || domain != FREERTOS_AF_INET || type != FREERTOS_SOCK_STREAM ||
        protocol != FREERTOS_IPPROTO_TCP)
        return FREERTOS_INVALID_SOCKET;
    memset(&sockets[i], 0, sizeof sockets[i]);
    sockets[i].fd = socket(AF_INET, SOCK_STREAM, 0);
    return &sockets[i];
}

BaseType_t FreeRTOS_setsockopt(Socket_t s, int32_t level, int32_t option, const void *value,
                               size_t size)
{
    TickType_t ticks;

    (void)level;
    if (size != sizeof ticks)
        return -22;
    memcpy(&ticks, value, size);
    s->times += (option == FREERTOS_SO_RCVTIMEO || option == FREERTOS_SO_SNDTIMEO) && ticks == 0;
    if (s->times == 2)
        (void)fcntl(s->fd, F_SETFL, O_NONBLOCK);
    return 0;
}

BaseType_t FreeRTOS_connect(Socket_t s, const struct freertos_sockaddr *to, uint32_t size)
{
    struct sockaddr_in address;

    (void)size;
    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    address.sin_port = to->sin_port;
    address.sin_addr.s_addr = to->sin_address.ulIP_IPv4;
    if (connect(s->fd, (struct sockaddr *)&address, sizeof address) != 0 && errno != EINPROGRESS)
        s->bad = 1;
    return s->times == 2 ? -pdFREERTOS_ERRNO_EWOULDBLOCK : 0;
}

/* Looks at a socket whose connect is in progress. */
static void see(struct xSOCKET *s)
{
    struct pollfd fd = {s->fd, POLLOUT, 0};
    socklen_t size = sizeof(int);
    int error = 0;

    if (s->connected || s->bad || poll(&fd, 1, 0) <= 0)
        return;
    (void)getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &error, &size);
    s->bad = error != 0;
    s->connected = error == 0;
}

BaseType_t FreeRTOS_issocketconnected(ConstSocket_t s)
{
    see(&sockets[s - sockets]);
    return s->connected && !s->bad ? pdTRUE : pdFALSE;
}

BaseType_t FreeRTOS_send(Socket_t s, const void *bytes, size_t size, BaseType_t flags)
{
    ssize_t moved = send(s->fd, bytes, size, MSG_NOSIGNAL);

    (void)flags;
    if (moved >= 0)
        return (BaseType_t)moved;
    if (errno == EAGAIN)
        return -pdFREERTOS_ERRNO_ENOSPC;
    s->bad = 1;
    return -pdFREERTOS_ERRNO_ENOTCONN;
}

BaseType_t FreeRTOS_recv(Socket_t s, void *bytes, size_t size, BaseType_t flags)
{
    ssize_t moved;

    see(s);
    if (!s->connected)
        return s->bad ? -pdFREERTOS_ERRNO_ENOTCONN : 0;
    moved = recv(s->fd, bytes, size, flags & FREERTOS_MSG_PEEK ? MSG_PEEK : 0);
    if (moved > 0)
        return (BaseType_t)moved;
    if (moved < 0 && errno == EAGAIN)
        return 0;
    s->bad = 1;
    return -pdFREERTOS_ERRNO_ENOTCONN;
}

BaseType_t FreeRTOS_tx_space(ConstSocket_t s)
{
    struct pollfd fd = {s->fd, POLLOUT, 0};

    return !s->connected || (poll(&fd, 1, 0) > 0 && fd.revents & POLLOUT) ? 1000 : 0;
}

BaseType_t FreeRTOS_shutdown(Socket_t s, BaseType_t how)
{
    (void)how;
    return shutdown(s->fd, SHUT_RDWR) == 0 ? 0 : -pdFREERTOS_ERRNO_ENOTCONN;
}

BaseType_t FreeRTOS_closesocket(Socket_t s)
{
    (void)close(s->fd);
    s->fd = 0;
    return 1;
}

BaseType_t FreeRTOS_inet_pton(BaseType_t family, const char *text, void *address)
{
    return family == FREERTOS_AF_INET && inet_pton(AF_INET, text, address) == 1 ? pdPASS : pdFALSE;
}

SocketSet_t FreeRTOS_CreateSocketSet(void)
{
    unsigned i;

    for (i = 0; i < sizeof sets / sizeof sets[0]; i++)
        if (!sets[i].used) {
            sets[i].used = 1;
            return &sets[i];
        }
    return NULL;
}

void FreeRTOS_FD_SET(Socket_t s, SocketSet_t set, EventBits_t bits)
{
    s->wanted |= bits;
    s->set = set;
}

void FreeRTOS_FD_CLR(Socket_t s, SocketSet_t set, EventBits_t bits)
{
    s->wanted &= ~bits;
    s->set = s->wanted != 0 ? set : NULL;
}

EventBits_t FreeRTOS_FD_ISSET(const ConstSocket_t s, const ConstSocketSet_t set)
{
    return s->set == set ? s->got : 0;
}

/* The events of a socket of the set, now. */
static EventBits_t events_of(struct xSOCKET *s)
{
    struct pollfd fd = {s->fd, POLLIN, 0};
    EventBits_t got = 0;
    char byte;

    see(s);
    if (s->connected && poll(&fd, 1, 0) > 0) {
        if (recv(s->fd, &byte, 1, MSG_PEEK) > 0)
            got |= eSELECT_READ;
        else
            s->bad = 1;
    }
    if (s->bad)
        got |= eSELECT_EXCEPT;
    if (FreeRTOS_tx_space(s) > 0)
        got |= eSELECT_WRITE;
    return got & s->wanted;
}

BaseType_t FreeRTOS_select(SocketSet_t set, TickType_t ticks)
{
    EventBits_t all = 0;
    TickType_t waited;
    unsigned i;

    for (waited = 0;; waited++) {
        for (i = 0; i < SOCKETS; i++)
            if (sockets[i].fd != 0 && sockets[i].set == set)
                all |= sockets[i].got = events_of(&sockets[i]);
        if (all != 0 || waited >= ticks)
            return (BaseType_t)all;
        vTaskDelay(1);
    }
}
