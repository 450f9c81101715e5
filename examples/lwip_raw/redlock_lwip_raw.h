/* redlock_lwip_raw.h - struct redlock_io over the raw (callback) API of lwIP 2.1 and later: no sockets, no threads, no
   allocation outside lwIP's pools. Copy the two files; they replace net.c.

       static struct redlock_lwip_raw stack;

       redlock_lwip_raw_init(&stack, my_now_us, my_entropy);
       redlock_init(&client, &stack.io, nodes, 3, &settings);

       for (;;) {
           uint64_t wait_us = redlock_tick(&client);
           ... pass received frames to lwIP; sys_check_timeouts() ...
           for (i = 0; i < 3; i++)
               if ((events = redlock_lwip_raw_events(&stack, &nodes[i], redlock_wanted_events(&client, i))) != 0)
                   redlock_handle_events(&client, i, events);
           redlock_tick(&client);
           ... if there was no event: sleep, at most wait_us and sys_timeouts_sleeptime() ...
       }

   Call the library in the context of lwIP: with NO_SYS in the main loop; with an RTOS in the tcpip thread, or in a thread that
   holds LOCK_TCPIP_CORE. Do not call the library from a callback of lwIP. The blocking calls are not available: `wait` is NULL.

   lwipopts.h, see examples/lwip_raw/lwipopts.h:
   * MEMP_NUM_TCP_PCB: at least twice the number of nodes. A closed connection keeps its pcb until the server has confirmed
     the end; a new connection takes over such a pcb if no other is free.
   * PBUF_POOL_SIZE: enough for the number of nodes times TCP_WND. Otherwise one server can starve the others.
   * LWIP_RAND: must give other numbers after each reset. With the same numbers a new connection may get the port of a
     connection from before the reset that the server still has open, and is delayed until TCP has reset that connection.

   Addresses are numeric: "10.0.0.1:6379", with LWIP_IPV6 also "[fd00::1]:6379". One struct redlock_lwip_raw is for one client.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#ifndef REDLOCK_LWIP_RAW_H
#define REDLOCK_LWIP_RAW_H

#include "redlock.h"

#include "lwip/tcp.h"

/* A connection: node->handle is its index below. */
struct redlock_lwip_raw_session {
    struct tcp_pcb *pcb;   /* NULL: lwIP has closed it, `error` says why */
    struct pbuf *received; /* not yet read; NULL: nothing */
    err_t error;
    uint8_t used, up;
    uint8_t ended;   /* the server has closed its side */
    uint8_t starved; /* lwIP had no memory for a segment; cleared when memory may be free again */
};

struct redlock_lwip_raw {
    struct redlock_io io; /* for redlock_init */
    struct redlock_lwip_raw_session sessions[REDLOCK_NODES_MAX];
};

/* `now_us`: microseconds of a monotonic clock that runs while the processor sleeps. `entropy` fills with unpredictable bytes from
   the chip's generator, and returns 0. If it returns -1, no lock is acquired. */
void redlock_lwip_raw_init(struct redlock_lwip_raw *stack, uint64_t (*now_us)(void *context),
                           int (*entropy)(void *context, void *bytes, size_t size));

/* Which of the `wanted` events (redlock_wanted_events) the node's connection is ready for. */
unsigned redlock_lwip_raw_events(const struct redlock_lwip_raw *stack,
                                 const struct redlock_node *node, unsigned wanted);

#endif
