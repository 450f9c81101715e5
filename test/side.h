/* side.h - the event loop of a test that talks to real servers.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#ifndef SIDE_H
#define SIDE_H

#include "redlock.h"
#include "servers.h"

/* Serves a client for a while, or until one of its locks is not in progress any more. */
static inline void serve(struct redlock *client, long ms)
{
    long until = now_ms() + ms;
    uint8_t events[REDLOCK_NODES_MAX];
    unsigned n, count = client->priv.count;

    while (now_ms() < until) {
        uint64_t wait_us = redlock_tick(client);
        if (redlock_next_done(client) != NULL)
            return;
        for (n = 0; n < count; n++)
            events[n] = (uint8_t)redlock_interest(client, n);
        redlock_posix()->wait(NULL, client->priv.nodes, count, wait_us < 5000 ? wait_us : 5000,
                              events);
        for (n = 0; n < count; n++)
            if (events[n] != 0)
                redlock_event(client, n, events[n]);
    }
}

/* Serves it until its connections are up, all bytes have left and all answers have come, 10 s at most: what
   is decided without the slowest node says nothing of it yet, and the release for a node whose connection
   had just broken goes then. */
static inline void settle(struct redlock *client)
{
    long until = now_ms() + 10000;
    unsigned n, busy = 1;

    while (busy > 0 && now_ms() < until) {
        serve(client, 2);
        for (n = 0, busy = 0; n < client->priv.count; n++)
            busy += resp_pipe_waits(&client->priv.nodes[n].priv.pipe) ||
                    (redlock_interest(client, n) & REDLOCK_WRITABLE) != 0;
    }
}

#endif
