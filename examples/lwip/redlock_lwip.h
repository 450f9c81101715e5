/* redlock_lwip.h - struct redlock_io over the sockets of lwIP 2.1 and later, for a thread beside lwIP's own.
   Two files to copy, in place of net.c.

       static struct redlock_lwip stack;

       redlock_lwip_init(&stack, my_entropy);
       redlock_init(&client, &stack.io, nodes, 3, NULL);

   In lwipopts.h: LWIP_SOCKET and LWIP_SOCKET_POLL (their defaults), MEMP_NUM_NETCONN and MEMP_NUM_TCP_PCB at least the
   number of nodes, and some more TCP_PCBs for closed connections that linger. Addresses are IPv4 numbers,
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
    uint32_t last_ms;     /* sys_now() then */
};

/* `entropy` fills with unpredictable bytes, from the chip's generator. 0, or -1: then nothing is locked. lwIP's
   LWIP_RAND is not enough: it is often rand(), which is the same after each start, so two holders have one token. */
void redlock_lwip_init(struct redlock_lwip *stack,
                       int (*entropy)(void *context, void *bytes, size_t size));

#endif
