/* epoll.c - redlock in an epoll loop. Copy everything above the example into your program. To build and run the example,
   from the top folder:
   make && cc -I. examples/loops/epoll.c examples/loops/app.c build/libredlock.a
   ./a.out demo 10 127.0.0.1:7001 127.0.0.1:7002 127.0.0.1:7003

   Pitfalls of epoll:
   * Remove a descriptor from epoll before it is closed. Closing removes it only if no forked child has it open.
   * A forked child shares the epoll: let it close its descriptor of that before detach, which would stop the parent's watching.
   * Timeouts are whole milliseconds. Round up: 0 would spin.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "redlock.h"

#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

struct adapter {
    struct redlock_client client;
    struct redlock_node *nodes;
    unsigned count;
    void (*done)(struct redlock_lock *lock); /* called for each completed operation */
    struct redlock_io io;                    /* redlock_posix() with another `shut` */
    int epoll;
    struct watch {
        struct adapter *adapter;
        uint32_t events; /* registered with epoll; 0: not registered */
    } watches[REDLOCK_NODES_MAX];
};

/* The library closes a connection: stop watching it now, because the system may reuse its descriptor at once. */
static void shut(void *context, struct redlock_node *node)
{
    struct watch *watch = (struct watch *)node->user_data;

    if (watch->events != 0)
        epoll_ctl(watch->adapter->epoll, EPOLL_CTL_DEL, (int)node->handle, NULL);
    watch->events = 0;
    redlock_posix()->shut(context, node);
}

static void watch_node(struct adapter *adapter, unsigned i)
{
    unsigned wanted = redlock_wanted_events(&adapter->client, i);
    struct watch *watch = &adapter->watches[i];
    struct epoll_event event;

    memset(&event, 0, sizeof event);
    event.data.ptr = watch;
    event.events = ((wanted & REDLOCK_READABLE) ? (uint32_t)EPOLLIN : 0) |
                   ((wanted & REDLOCK_WRITABLE) ? (uint32_t)EPOLLOUT : 0);
    if (event.events == watch->events)
        return;
    if (epoll_ctl(adapter->epoll, watch->events != 0 ? EPOLL_CTL_MOD : EPOLL_CTL_ADD,
                  (int)adapter->nodes[i].handle, &event) == 0)
        watch->events = event.events;
}

/* Call before each sleep, after all starts and events: the library decides and sends, `done` gets completed locks. Returns
   the timeout for epoll_wait in ms; if other parts of your program have timers, use the shortest. */
static int before_sleep(struct adapter *adapter)
{
    uint64_t wait_us = redlock_tick(&adapter->client);
    struct redlock_lock *lock;
    unsigned i;

    if ((lock = redlock_next_completed(&adapter->client)) != NULL)
        wait_us = 0; /* `done` may start an operation */
    for (i = 0; i < adapter->count; i++)
        watch_node(adapter, i);
    for (; lock != NULL; lock = redlock_next_completed(&adapter->client))
        adapter->done(lock); /* last, because it may detach */
    if (wait_us == REDLOCK_NEVER)
        return -1;
    return wait_us < 60000000 ? (int)((wait_us + 999) / 1000) : 60000;
}

/* Call for each event whose data.ptr is one of the watches. */
static void on_event(const struct epoll_event *event)
{
    struct watch *watch = (struct watch *)event->data.ptr;
    unsigned events = 0;

    if (event->events & (EPOLLIN | EPOLLERR | EPOLLHUP))
        events |= REDLOCK_READABLE;
    if (event->events & (EPOLLOUT | EPOLLERR | EPOLLHUP))
        events |= REDLOCK_WRITABLE;
    redlock_handle_events(&watch->adapter->client, (unsigned)(watch - watch->adapter->watches),
                          events);
}

/* Calls redlock_init; pass your settings there. Also if that fails, call detach, before the loop runs. The adapter must not
   move until detach. It uses user_data of the nodes. */
static enum redlock_status attach(struct adapter *adapter, int epoll, struct redlock_node *nodes,
                                  unsigned count, void (*done)(struct redlock_lock *lock))
{
    unsigned i;

    memset(adapter, 0, sizeof *adapter);
    adapter->epoll = epoll;
    adapter->nodes = nodes;
    adapter->count = count;
    adapter->done = done;
    adapter->io = *redlock_posix();
    adapter->io.shut = shut;
    for (i = 0; i < count && i < REDLOCK_NODES_MAX; i++) {
        adapter->watches[i].adapter = adapter;
        nodes[i].user_data = &adapter->watches[i];
    }
    return redlock_init(&adapter->client, &adapter->io, nodes, count, NULL);
}

static void detach(struct adapter *adapter)
{
    redlock_deinit(&adapter->client); /* closes all connections */
}

/* ---- The example; everything above is the adapter ---- */

#include "app.h"

int main(int argc, char **argv)
{
    struct adapter adapter;
    struct app app;
    struct epoll_event ready[16];
    int i, n, epoll = epoll_create1(EPOLL_CLOEXEC);

    if (epoll < 0 || !app_arguments(&app, argc, argv))
        return 2;
    app_start(&app, &adapter.client, attach(&adapter, epoll, app.nodes, app.count, app_done));
    while (app.busy > 0) {
        n = epoll_wait(epoll, ready, 16, before_sleep(&adapter));
        for (i = 0; i < n; i++)
            on_event(&ready[i]);
    }
    detach(&adapter);
    close(epoll);
    return app.status;
}
