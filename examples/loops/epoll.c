/* epoll.c - redlock in an epoll loop. Copy everything above the example into your program. To build and run the example,
   from the top folder:
   make && cc -I. examples/loops/epoll.c examples/loops/app.c build/libredlock.a
   ./a.out demo 10 127.0.0.1:7001 127.0.0.1:7002 127.0.0.1:7003

   Pitfalls of epoll:
   * Remove a descriptor from epoll before it is closed. Closing removes it only if no forked child has it open.
   * A forked child shares the epoll: let it close its descriptor of that before detach, which would stop the parent's watching.
   * Timeouts are whole milliseconds. Round up: 0 would spin.
   * An event of a connection may follow, in the batch of epoll_wait, one that has led to detach: free the adapter after the batch.
   * The clock of the library counts the time for which the machine is suspended; the timeout of epoll_wait does not. So none is
     longer than a second, and a lock is renewed, or reported as lost, within a second of the resume.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "redlock.h"

#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* Called for each completed operation; `context` is yours. */
typedef void redlock_epoll_done(struct redlock_lock *lock, void *context);

struct redlock_epoll_watch {
    struct redlock_epoll *adapter;
    uint32_t events; /* registered with epoll; 0: not registered */
};

struct redlock_epoll {
    struct redlock_client client;
    struct redlock_node *nodes;
    unsigned count;
    redlock_epoll_done *done;
    void *context;        /* of `done` */
    struct redlock_io io; /* redlock_posix() with another `shut` */
    int epoll;
    struct redlock_epoll_watch watches[REDLOCK_NODES_MAX];
};

/* The library closes a connection: stop watching it now, because the system may reuse its descriptor at once. */
static void redlock_epoll_shut(void *context, struct redlock_node *node)
{
    struct redlock_epoll_watch *watch = (struct redlock_epoll_watch *)node->user_data;

    if (watch->events != 0)
        epoll_ctl(watch->adapter->epoll, EPOLL_CTL_DEL, (int)node->handle, NULL);
    watch->events = 0;
    redlock_posix()->shut(context, node);
}

static void redlock_epoll_watch_node(struct redlock_epoll *adapter, unsigned i)
{
    unsigned wanted = redlock_wanted_events(&adapter->client, i);
    struct redlock_epoll_watch *watch = &adapter->watches[i];
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

/* The library decides and sends. Returns the microseconds until it must do so again, REDLOCK_NEVER: no timer. *completed is
   the first lock whose operation is complete, NULL: none. */
static uint64_t redlock_epoll_decide(struct redlock_epoll *adapter, struct redlock_lock **completed)
{
    uint64_t wait_us = redlock_tick(&adapter->client);
    unsigned i;

    *completed = redlock_next_completed(&adapter->client);
    for (i = 0; i < adapter->count; i++)
        redlock_epoll_watch_node(adapter, i);
    return *completed == NULL ? wait_us : 0; /* `done` may start an operation */
}

/* Calls `done` for this lock and all others that are complete. Last, because `done` may detach. */
static void redlock_epoll_deliver(struct redlock_epoll *adapter, struct redlock_lock *completed)
{
    for (; completed != NULL; completed = redlock_next_completed(&adapter->client))
        adapter->done(completed, adapter->context);
}

#ifndef REDLOCK_DESCRIPTOR /* descriptor.c decides and delivers itself */
/* Call before each sleep, after all starts and events. Returns the timeout for epoll_wait in ms; if other parts of your program
   have timers, use the shortest. */
static int redlock_epoll_before_sleep(struct redlock_epoll *adapter)
{
    struct redlock_lock *completed;
    uint64_t wait_us = redlock_epoll_decide(adapter, &completed);

    redlock_epoll_deliver(adapter, completed);
    if (wait_us == REDLOCK_NEVER)
        return -1;
    return wait_us < 1000000 ? (int)((wait_us + 999) / 1000) : 1000; /* the last pitfall */
}
#endif

/* Call for each event whose data.ptr is one of the watches. Does nothing after detach: another event of the same batch may have led
   to that. */
static void redlock_epoll_on_event(const struct epoll_event *event)
{
    struct redlock_epoll_watch *watch = (struct redlock_epoll_watch *)event->data.ptr;
    unsigned events = 0;

    if (watch->events == 0)
        return; /* closed since epoll_wait */
    if (event->events & (EPOLLIN | EPOLLERR | EPOLLHUP))
        events |= REDLOCK_READABLE;
    if (event->events & (EPOLLOUT | EPOLLERR | EPOLLHUP))
        events |= REDLOCK_WRITABLE;
    redlock_handle_events(&watch->adapter->client, (unsigned)(watch - watch->adapter->watches),
                          events);
}

/* Calls redlock_init; pass your settings there. Also if that fails, call detach, before the loop runs. The adapter must not
   move until detach. It uses user_data of the nodes. */
static enum redlock_status redlock_epoll_attach(struct redlock_epoll *adapter, int epoll,
                                                struct redlock_node *nodes, unsigned count,
                                                redlock_epoll_done *done, void *context)
{
    unsigned i;

    memset(adapter, 0, sizeof *adapter);
    adapter->epoll = epoll;
    adapter->nodes = nodes;
    adapter->count = count;
    adapter->done = done;
    adapter->context = context;
    adapter->io = *redlock_posix();
    adapter->io.shut = redlock_epoll_shut;
    for (i = 0; i < count && i < REDLOCK_NODES_MAX; i++) {
        adapter->watches[i].adapter = adapter;
        nodes[i].user_data = &adapter->watches[i];
    }
    return redlock_init(&adapter->client, &adapter->io, nodes, count, NULL);
}

static void redlock_epoll_detach(struct redlock_epoll *adapter)
{
    redlock_deinit(&adapter->client); /* closes all connections */
}

/* ---- The example; everything above is the adapter ---- */

#ifndef REDLOCK_DESCRIPTOR
#include "app.h"

int main(int argc, char **argv)
{
    struct redlock_epoll adapter;
    struct app app;
    struct epoll_event ready[16];
    int i, n, epoll = epoll_create1(EPOLL_CLOEXEC);

    if (epoll < 0 || !app_arguments(&app, argc, argv))
        return 2;
    app_start(&app, &adapter.client,
              redlock_epoll_attach(&adapter, epoll, app.nodes, app.count, app_done, &app));
    while (app.busy > 0) {
        n = epoll_wait(epoll, ready, 16, redlock_epoll_before_sleep(&adapter));
        for (i = 0; i < n; i++)
            redlock_epoll_on_event(&ready[i]);
    }
    redlock_epoll_detach(&adapter);
    close(epoll);
    return app.status;
}
#endif
