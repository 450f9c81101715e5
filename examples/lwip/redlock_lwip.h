/* redlock_lwip.h - struct redlock_io over the sockets of lwIP 2.1 and later, for a thread besides lwIP's thread. Copy the two
   files; they replace net.c.

       static struct redlock_lwip stack;

       redlock_lwip_init(&stack, my_entropy);
       redlock_init(&client, &stack.io, nodes, 3, NULL);

   In lwipopts.h: LWIP_SOCKET and LWIP_SOCKET_POLL enabled (the default), MEMP_NUM_NETCONN and MEMP_NUM_TCP_PCB at least the
   number of nodes, and some more TCP_PCBs for closed connections that linger. Addresses are numeric IPv4 addresses,
   "10.0.0.1:6379".

   One struct redlock_lwip is for one client.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#ifndef REDLOCK_LWIP_H
#define REDLOCK_LWIP_H

#include "redlock.h"

struct redlock_lwip {
    struct redlock_io io; /* for redlock_init */
    uint64_t ms;          /* since redlock_lwip_init */
    uint32_t last_ms;     /* sys_now() when `ms` was computed */
};

/* `entropy` fills with unpredictable bytes, from the chip's generator, and returns 0. If it returns -1, no lock is acquired.
   Do not use lwIP's LWIP_RAND: it is often rand(), with the same numbers after each start, so two holders would have the same
   token. */
void redlock_lwip_init(struct redlock_lwip *stack,
                       int (*entropy)(void *context, void *bytes, size_t size));

#endif
