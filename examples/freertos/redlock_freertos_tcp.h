/* redlock_freertos_tcp.h - struct redlock_io over FreeRTOS-Plus-TCP 4, for a task besides the IP task. Copy the two files; they
   replace net.c.

       static struct redlock_freertos_tcp stack;

       redlock_freertos_tcp_init(&stack, my_entropy);
       redlock_init(&client, &stack.io, nodes, 3, NULL);

   In FreeRTOSIPConfig.h: ipconfigUSE_TCP 1, ipconfigSUPPORT_SELECT_FUNCTION 1, and ipconfigTCP_KEEP_ALIVE 1, which finds the end of
   idle connections. Addresses are numeric IPv4 addresses, "10.0.0.1:6379".

   The clock is the tick counter, in steps of a tick. With TickType_t of 32 bits and 1000 ticks a second it wraps after 49.7 days,
   with 16 bits after a minute: serve the client more often. If the chip sleeps without counting ticks, set stack.io.now_us to a
   function of yours: a late clock makes a holder believe that it still holds the lock.

   A release needs an answer: what TCP has not sent when a connection is closed may be lost. So let redlock_release wait for some
   milliseconds before redlock_deinit.

   One struct redlock_freertos_tcp is for one client, and stays where it is.

   make test-tables runs test/ports/table_test.c with it, over a stand-in for these calls. With FreeRTOS-Plus-TCP 4.4.1 itself, on the
   POSIX port of FreeRTOS and a veth device, all its checks passed in November 2026. Not run on a chip.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#ifndef REDLOCK_FREERTOS_TCP_H
#define REDLOCK_FREERTOS_TCP_H

#include "redlock.h"

#include "FreeRTOS.h"
#include "task.h"
#include "FreeRTOS_IP.h"
#include "FreeRTOS_Sockets.h"

#ifdef __cplusplus
extern "C" {
#endif

struct redlock_freertos_tcp {
    struct redlock_io io; /* for redlock_init */
    SocketSet_t set;
    uint64_t ticks;  /* since redlock_freertos_tcp_init */
    TickType_t last; /* the tick counter when `ticks` was computed */
};

/* `entropy` fills with unpredictable bytes, from the chip's generator, and returns 0. If it returns -1, no lock is acquired.
   rand() and the numbers of xApplicationGetRandomNumber are not enough, if they are the same after each start. Returns 0; -1: no
   memory for a socket set. */
int redlock_freertos_tcp_init(struct redlock_freertos_tcp *stack,
                              int (*entropy)(void *context, void *bytes, size_t size));

#ifdef __cplusplus
}
#endif
#endif
