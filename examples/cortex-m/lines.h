/* lines.h - five UARTs as the library's connections: a struct redlock_io without an operating system. At the other end of
   each UART is a bridge (here qemu) that has a connection to one redis-server and forwards every byte.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#ifndef LINES_H
#define LINES_H

#include "redlock.h"

enum { LINES = 5 };

/* The node addresses are "uart0" to "uart4". For one client only. */
const struct redlock_io *lines_io(void);

/* Which of the `wanted` events (redlock_wanted_events) a node's line is ready for. */
unsigned lines_events(const struct redlock_node *node, unsigned wanted);

#endif
