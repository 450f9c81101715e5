/* lan9118.h - driver for SMSC's LAN9118 Ethernet controller, as lwIP's netif, without an operating system.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#ifndef LAN9118_H
#define LAN9118_H

#include "lwip/netif.h"

/* For netif_add. */
err_t lan9118_start(struct netif *netif);

/* Passes received frames to lwIP, and whether the cable is plugged in. */
void lan9118_poll(struct netif *netif);

/* 1: lan9118_poll has something to do. Ask with interrupts off, before going to sleep. */
int lan9118_waiting(void);

#endif
