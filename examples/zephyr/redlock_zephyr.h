/* redlock_zephyr.h - struct redlock_io over the sockets of Zephyr 3.7 and later. CONFIG_REDLOCK_SOCKETS=y builds it with the
   module; or copy the two files. They replace net.c.

       redlock_init(&client, redlock_zephyr(), nodes, 3, NULL);

   In prj.conf, for five nodes:
       CONFIG_NETWORKING=y
       CONFIG_NET_IPV4=y
       CONFIG_NET_TCP=y
       CONFIG_NET_SOCKETS=y
       CONFIG_ZVFS_POLL_MAX=10      (two for each node; 3 by default)
       CONFIG_ZVFS_OPEN_MAX=16
       CONFIG_NET_MAX_CONTEXTS=8
       CONFIG_ENTROPY_GENERATOR=y   (a board without a generator: undefined reference to z_impl_sys_csrand_get)
       CONFIG_NET_TCP_KEEPALIVE=y   (finds the end of idle connections that a router has dropped)

   Addresses are numeric: "10.0.0.1:6379", and with CONFIG_NET_IPV6 "[fd00::1]:6379". The names of sockaddr and AF_INET are those
   of CONFIG_NET_NAMESPACE_COMPAT_MODE, which is on by default in Zephyr 4.3.

   make test-tables runs it over a stand-in for Zephyr's calls. A table of the same calls has run in Zephyr 3.4.99, on native_sim_64
   and on an emulated Cortex-M3; this file has not.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#ifndef REDLOCK_ZEPHYR_H
#define REDLOCK_ZEPHYR_H

#include "redlock.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The table for Zephyr. Constant; any thread. */
REDLOCK_API const struct redlock_io *redlock_zephyr(void);

#ifdef __cplusplus
}
#endif
#endif
