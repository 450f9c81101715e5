/* lan9118.h - driver for SMSC's LAN9118 Ethernet controller, as lwIP's netif, without an operating system.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#ifndef LAN9118_H
#define LAN9118_H

#include "lwip/netif.h"

/* For netif_add. */
err_t lan9118_start(struct netif *netif);

/* Passes received frames to lwIP, and reports whether the cable is plugged in. */
void lan9118_poll(struct netif *netif);

/* Returns 1 if lan9118_poll has work. Call it with interrupts off, before a sleep. */
int lan9118_waiting(void);

#endif
