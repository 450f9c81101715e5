/* proxy.h - a bad network between a client and redis-servers: a process that hands on the bytes of both sides,
   for each server in the way that it is told. For tests with real servers.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#ifndef PROXY_H
#define PROXY_H

#include <sys/types.h>

enum proxy_mode {
    PROXY_PASS,  /* a good network */
    PROXY_DELAY, /* each piece is `ms` under way; 0: 5 to 60 ms */
    PROXY_DRIP,  /* one byte in a millisecond */
    PROXY_HOLE,  /* nothing is passed on, and no side gets an error */
    PROXY_RESET, /* connections are reset, old and new */
    PROXY_CUT,   /* half of the next piece comes through, then the connection is closed */
    PROXY_MODES,
    /* The connections that there are are closed; then it becomes PROXY_PASS. */
    PROXY_DROP = PROXY_MODES
};

/* In memory that both processes share. */
struct proxy {
    char address[32]; /* for a client: "127.0.0.1:port" */
    int listener;
    int to; /* the server's port */
    volatile int mode, ms;
};

/* Opens `count` proxies to 127.0.0.1, each to proxies[i].to, and starts one process for all. It ends by a
   signal, or with its parent. Exits with a message when that fails. */
pid_t proxies_start(struct proxy *proxies, unsigned count);

#endif
