/* side.h - the event loop of a test that talks to real servers, over whatever the client has as its io.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#ifndef SIDE_H
#define SIDE_H

#include "redlock.h"
#include "servers.h"

/* Serves a client for a while, or until one of its locks is not in progress any more. */
static inline void serve(struct redlock_client *client, long ms)
{
    const struct redlock_io *io = client->priv.io;
    long until = now_ms() + ms;
    uint8_t events[REDLOCK_NODES_MAX];
    unsigned n, count = client->priv.count;

    for (;;) { /* what has come last is read, too, before it ends */
        uint64_t wait_us = redlock_tick(client);
        if (redlock_next_completed(client) != NULL || now_ms() >= until)
            return;
        for (n = 0; n < count; n++)
            events[n] = (uint8_t)redlock_wanted_events(client, n);
        io->wait(io->context, client->priv.nodes, count, wait_us < 5000 ? wait_us : 5000, events);
        for (n = 0; n < count; n++)
            if (events[n] != 0)
                redlock_handle_events(client, n, events[n]);
    }
}

/* Serves it until its connections are up, all bytes have left and all replies have come, 20 s at most. What
   is decided without the slowest node says nothing about that node, and the release for a node whose
   connection had just broken goes then. */
static inline void settle(struct redlock_client *client)
{
    long until = now_ms() + 20000;
    unsigned n, busy = 1;

    while (busy > 0 && now_ms() < until) {
        serve(client, 2);
        for (n = 0, busy = 0; n < client->priv.count; n++)
            busy += client->priv.nodes[n].priv.count > 0 ||
                    (redlock_wanted_events(client, n) & REDLOCK_WRITABLE) != 0;
    }
}

/* How often clients with this io have slept since count_waits: a loop that spins sleeps too often. */
static unsigned waits;
static void (*uncounted_wait)(void *, struct redlock_node *, unsigned, uint64_t, uint8_t *);

static inline void counting_wait(void *context, struct redlock_node *nodes, unsigned count,
                                 uint64_t timeout_us, uint8_t *events)
{
    waits++;
    uncounted_wait(context, nodes, count, timeout_us, events);
}

static inline void count_waits(struct redlock_io *io)
{
    waits = 0;
    uncounted_wait = io->wait;
    io->wait = counting_wait;
}

#endif
