/* slirpif.h - a network for lwIP that needs no rights: libslirp, a second TCP/IP stack in this process, hands on what
   comes for 10.0.2.2 to 127.0.0.1 through sockets of the kernel. For tests of lwIP against real servers.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#ifndef SLIRPIF_H
#define SLIRPIF_H

#include "lwip/netif.h"

/* For netif_add, as 10.0.2.15/24. Starts a thread, once in a process, that never ends. */
err_t slirpif_init(struct netif *netif);

#endif
