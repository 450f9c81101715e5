/* redlock_windows.c - see redlock_windows.h. Like net.c, except where Windows behaves differently; comments describe the
   differences.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#ifndef _WIN32_WINNT
#define _WIN32_WINNT 0x0601 /* Windows 7, before any system header */
#endif
#define _WINSOCK_DEPRECATED_NO_WARNINGS /* WSAStringToAddressA */

#include "redlock_windows.h"

#include <winsock2.h> /* before windows.h */
#include <ws2tcpip.h>
#include <windows.h>
#include <bcrypt.h>
#include <mstcpip.h> /* struct tcp_keepalive */

#include <string.h>

static SOCKET win_socket(const struct redlock_node *node)
{
    return (SOCKET)node->handle;
}

/* ---- Connections ---------------------------------------------------------------------------- */

/* Windows words the error, in its language. */
static int win_fail(struct redlock_node *node, const char *what, int error)
{
    char why[128] = "unknown error";

    (void)FormatMessageA(FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS |
                             FORMAT_MESSAGE_MAX_WIDTH_MASK, /* without line ends */
                         NULL, (DWORD)error, 0, why, sizeof why, NULL);
    redlock_set_error(node, what, why);
    return -1;
}

/* Parses "10.0.0.1:6379", "[fd00::1]:6379"; the port must be there. Returns the size; 0: another form. */
static int win_parse(const char *address, SOCKADDR_STORAGE *to)
{
    char text[64];
    int size = sizeof *to, family = address[0] == '[' ? AF_INET6 : AF_INET;

    if (strlen(address) >= sizeof text)
        return 0;
    strcpy(text, address);
    memset(to, 0, sizeof *to);
    if (WSAStringToAddressA(text, family, NULL, (struct sockaddr *)to, &size) != 0)
        return 0;
    return SS_PORT(to) != 0 ? size : 0;
}

static int win_check(void *context, struct redlock_node *node)
{
    SOCKADDR_STORAGE to;

    (void)context;
    if (win_parse(node->address, &to) != 0)
        return 0;
    redlock_set_error(node, "not a numeric address", node->address);
    return -1;
}

static int win_dial(void *context, struct redlock_node *node)
{
    struct tcp_keepalive probes = {1, 15000, 5000}; /* after 15 s, then each 5 s; 10 times */
    SOCKADDR_STORAGE to;
    int to_size = win_parse(node->address, &to);
    BOOL on = TRUE;
    u_long not_blocking = 1;
    DWORD none;
    SOCKET fd;

    if (to_size == 0)
        return win_check(context, node);
    if ((fd = socket(to.ss_family, SOCK_STREAM, IPPROTO_TCP)) == INVALID_SOCKET)
        return win_fail(node, "socket", WSAGetLastError());
    (void)SetHandleInformation((HANDLE)fd, HANDLE_FLAG_INHERIT, 0);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, (const char *)&on, sizeof on);
    (void)WSAIoctl(fd, SIO_KEEPALIVE_VALS, &probes, sizeof probes, NULL, 0, &none, NULL, NULL);
    if (ioctlsocket(fd, (long)FIONBIO, &not_blocking) != 0 ||
        (connect(fd, (struct sockaddr *)&to, to_size) != 0 &&
         WSAGetLastError() != WSAEWOULDBLOCK)) {
        (void)win_fail(node, "connect", WSAGetLastError());
        (void)closesocket(fd);
        return -1;
    }
    node->handle = (intptr_t)fd;
    return 0;
}

/* A connect that has failed is in the third set of select() only. WSAPoll did not tell it before Windows 10 2004. */
static int win_ready(void *context, struct redlock_node *node)
{
    SOCKADDR_STORAGE peer, own;
    TIMEVAL at_once = {0, 0};
    fd_set up, failed;
    int error = 0, size = sizeof error, peer_size = sizeof peer, own_size = sizeof own;

    (void)context;
    up.fd_count = failed.fd_count = 1;
    up.fd_array[0] = failed.fd_array[0] = win_socket(node);
    if (select(0, NULL, &up, &failed, &at_once) == 0)
        return 0;
    if (getsockopt(win_socket(node), SOL_SOCKET, SO_ERROR, (char *)&error, &size) != 0 ||
        (error == 0 && getpeername(win_socket(node), (struct sockaddr *)&peer, &peer_size) != 0))
        error = WSAGetLastError();
    if (error != 0)
        return win_fail(node, "connect", error);
    if (getsockname(win_socket(node), (struct sockaddr *)&own, &own_size) == 0 &&
        own_size == peer_size && memcmp(&own, &peer, (size_t)own_size) == 0) {
        redlock_set_error(node, "connect", "no listener (TCP self-connect)");
        return -1;
    }
    return 1;
}

static int win_moved(struct redlock_node *node, const char *what, int moved)
{
    if (moved >= 0)
        return moved;
    return WSAGetLastError() == WSAEWOULDBLOCK ? 0 : win_fail(node, what, WSAGetLastError());
}

static int win_transmit(void *context, struct redlock_node *node, const void *bytes, size_t size)
{
    (void)context;
    return win_moved(node, "send", send(win_socket(node), (const char *)bytes, (int)size, 0));
}

static int win_receive(void *context, struct redlock_node *node, void *bytes, size_t size)
{
    int moved = recv(win_socket(node), (char *)bytes, (int)size, 0);

    (void)context;
    if (moved != 0)
        return win_moved(node, "receive", moved);
    redlock_set_error(node, "receive", "closed by the server");
    return -1;
}

static void win_shut(void *context, struct redlock_node *node)
{
    (void)context;
    (void)closesocket(win_socket(node));
    node->handle = -1;
}

/* ---- Time, entropy, waiting ----------------------------------------------------------------- */

/* The only variables. Windows before 10, and Wine, have no such function. */
static INIT_ONCE win_once = INIT_ONCE_STATIC_INIT;
static VOID(WINAPI *win_interrupt_time)(PULONGLONG time);

static BOOL CALLBACK win_start(PINIT_ONCE once, PVOID parameter, PVOID *context)
{
    FARPROC found = GetProcAddress(GetModuleHandleA("kernelbase.dll"), "QueryInterruptTimePrecise");
    WSADATA data;

    (void)once, (void)parameter, (void)context;
    memcpy(&win_interrupt_time, &found, sizeof found);
    return WSAStartup(MAKEWORD(2, 2), &data) == 0;
}

/* Both run while the machine sleeps. QueryPerformanceCounter may not. */
static uint64_t win_now_us(void *context)
{
    ULONGLONG time;

    (void)context;
    if (win_interrupt_time == NULL)
        return GetTickCount64() * 1000; /* in steps of up to 16 ms */
    win_interrupt_time(&time);
    return time / 10;
}

static uint64_t win_wall_us(void *context)
{
    FILETIME now; /* 100 ns since 1601 */

    (void)context;
    GetSystemTimeAsFileTime(&now);
    return ((uint64_t)now.dwHighDateTime << 32 | now.dwLowDateTime) / 10 - 11644473600000000;
}

static int win_entropy(void *context, void *bytes, size_t size)
{
    (void)context;
    return BCryptGenRandom(NULL, (PUCHAR)bytes, (ULONG)size, BCRYPT_USE_SYSTEM_PREFERRED_RNG) == 0
               ? 0
               : -1;
}

static void win_add(fd_set *set, SOCKET fd)
{
    set->fd_array[set->fd_count++] = fd;
}

/* select() has a failed connect in its third set, and refuses three empty sets. FD_SETSIZE, 64, is the number of sockets. */
static void win_wait(void *context, struct redlock_node *nodes, unsigned count, uint64_t timeout_us,
                     uint8_t *events)
{
    long us = timeout_us < 60000000 ? (long)timeout_us : 60000000;
    TIMEVAL time = {us / 1000000, us % 1000000};
    fd_set readable, writable, failed;
    unsigned i;

    (void)context;
    readable.fd_count = writable.fd_count = failed.fd_count = 0;
    for (i = 0; i < count; i++) {
        if (events[i] & REDLOCK_READABLE)
            win_add(&readable, win_socket(&nodes[i]));
        if (events[i] & REDLOCK_WRITABLE)
            win_add(&writable, win_socket(&nodes[i]));
        if (events[i] != 0)
            win_add(&failed, win_socket(&nodes[i]));
    }
    if (failed.fd_count == 0) {
        Sleep((DWORD)((us + 999) / 1000));
        return;
    }
    if (select(0, &readable, &writable, &failed, &time) < 0) {
        Sleep(1); /* each may be ready, so each is tried */
        return;
    }
    for (i = 0; i < count; i++) {
        SOCKET fd = win_socket(&nodes[i]);
        int watched = events[i] != 0, bad = watched && FD_ISSET(fd, &failed);
        events[i] = (uint8_t)((bad || (watched && FD_ISSET(fd, &readable)) ? REDLOCK_READABLE : 0) |
                              (bad || (watched && FD_ISSET(fd, &writable)) ? REDLOCK_WRITABLE : 0));
    }
}

const struct redlock_io *redlock_windows(void)
{
    static const struct redlock_io windows = {win_dial, win_ready,   win_transmit, win_receive,
                                              win_shut, win_now_us,  win_entropy,  win_wait,
                                              NULL,     win_wall_us, NULL,         win_check};

    (void)InitOnceExecuteOnce(&win_once, win_start, NULL, NULL);
    return &windows;
}
