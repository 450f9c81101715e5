/* lines.h - five UARTs as the library's connections: a struct redlock_io without an operating system. At the far end of
   each is a bridge (here qemu) that has a connection to one redis-server and passes on every byte.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#ifndef LINES_H
#define LINES_H

#include "redlock.h"

enum { LINES = 5 };

/* Its node addresses are "uart0" to "uart4". One client only. */
const struct redlock_io *lines_io(void);

/* Which of the events of `interest` a node's line is ready for. */
unsigned lines_events(const struct redlock_node *node, unsigned interest);

#endif
