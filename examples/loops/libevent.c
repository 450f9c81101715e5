/* libevent.c - redlock in libevent. Copy everything above the example into your program. To build and run the example,
   from the top folder:
   make && cc -I. examples/loops/libevent.c examples/loops/app.c build/libredlock.a $(pkg-config --cflags --libs libevent_core)
   ./a.out demo 10 127.0.0.1:7001 127.0.0.1:7002 127.0.0.1:7003

   Pitfalls of libevent:
   * Free or delete an event before its descriptor is closed. An event that is added cannot be changed: make a new one.
   * There is no hook before the sleep. So the adapter has one event for the work before the sleep: when it is made active, it
     runs last in the batch.
   * A timer that has fired is off.
   * A forked child shares the loop's epoll: let it call event_reinit before detach, which would stop the parent's watching.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "redlock.h"

#include <event2/event.h>
#include <string.h>

struct adapter {
    struct redlock_client client;
    struct redlock_node *nodes;
    unsigned count;
    void (*done)(struct redlock_lock *lock); /* called for each completed operation */
    struct redlock_io io;                    /* redlock_posix() with another `shut` */
    struct event_base *loop;
    struct event *turn; /* runs by its timer, or when made active */
    struct watch {
        struct adapter *adapter;
        struct event *event; /* NULL: no connection, or not watched yet */
        unsigned wanted;
    } watches[REDLOCK_NODES_MAX];
};

static void unwatch(struct watch *watch)
{
    if (watch->event != NULL)
        event_free(watch->event);
    watch->event = NULL;
    watch->wanted = 0;
}

/* The library closes a connection: stop watching it now, because the system may reuse its descriptor at once. */
static void shut(void *context, struct redlock_node *node)
{
    struct watch *watch = (struct watch *)node->user_data;

    unwatch(watch);
    redlock_posix()->shut(context, node);
}

/* Call after each operation that you start or cancel outside of `done`. */
static void wake(struct adapter *adapter)
{
    event_active(adapter->turn, EV_TIMEOUT, 0);
}

static void on_ready(evutil_socket_t fd, short ready, void *context)
{
    struct watch *watch = (struct watch *)context;
    unsigned events = 0;

    (void)fd;
    if (ready & EV_READ)
        events |= REDLOCK_READABLE;
    if (ready & EV_WRITE)
        events |= REDLOCK_WRITABLE;
    redlock_handle_events(&watch->adapter->client, (unsigned)(watch - watch->adapter->watches),
                          events);
    wake(watch->adapter);
}

static void watch_node(struct adapter *adapter, unsigned i)
{
    unsigned wanted = redlock_wanted_events(&adapter->client, i);
    struct watch *watch = &adapter->watches[i];
    int kind = EV_PERSIST | ((wanted & REDLOCK_READABLE) ? EV_READ : 0) |
               ((wanted & REDLOCK_WRITABLE) ? EV_WRITE : 0);

    if (wanted == watch->wanted)
        return;
    unwatch(watch);
    watch->event = event_new(adapter->loop, (evutil_socket_t)adapter->nodes[i].handle, (short)kind,
                             on_ready, watch);
    if (watch->event != NULL && event_add(watch->event, NULL) == 0)
        watch->wanted = wanted;
}

/* Runs after a batch of events, starts, or the timer: the library decides and sends, `done` gets completed locks. */
static void turn(evutil_socket_t fd, short ready, void *context)
{
    struct adapter *adapter = (struct adapter *)context;
    uint64_t wait_us = redlock_tick(&adapter->client);
    struct redlock_lock *lock;
    struct timeval wait;
    unsigned i;

    (void)fd;
    (void)ready;
    if ((lock = redlock_next_completed(&adapter->client)) != NULL)
        wait_us = 0; /* `done` may start an operation */
    for (i = 0; i < adapter->count; i++)
        watch_node(adapter, i);
    wait.tv_sec = (time_t)(wait_us / 1000000);
    wait.tv_usec = (suseconds_t)(wait_us % 1000000);
    if (wait_us == REDLOCK_NEVER)
        evtimer_del(adapter->turn);
    else
        evtimer_add(adapter->turn, &wait);
    for (; lock != NULL; lock = redlock_next_completed(&adapter->client))
        adapter->done(lock); /* last, because it may detach */
}

/* Calls redlock_init; pass your settings there. Also if that fails, call detach, before the loop runs. The adapter must not
   move until detach. It uses user_data of the nodes. */
static enum redlock_status attach(struct adapter *adapter, struct event_base *loop,
                                  struct redlock_node *nodes, unsigned count,
                                  void (*done)(struct redlock_lock *lock))
{
    unsigned i;

    memset(adapter, 0, sizeof *adapter);
    adapter->loop = loop;
    adapter->nodes = nodes;
    adapter->count = count;
    adapter->done = done;
    adapter->io = *redlock_posix();
    adapter->io.shut = shut;
    for (i = 0; i < count && i < REDLOCK_NODES_MAX; i++) {
        adapter->watches[i].adapter = adapter;
        nodes[i].user_data = &adapter->watches[i];
    }
    if ((adapter->turn = evtimer_new(loop, turn, adapter)) == NULL)
        return REDLOCK_INVALID_ARGUMENT;
    wake(adapter);
    return redlock_init(&adapter->client, &adapter->io, nodes, count, NULL);
}

static void detach(struct adapter *adapter)
{
    redlock_deinit(&adapter->client); /* closes all connections */
    if (adapter->turn != NULL)
        event_free(adapter->turn);
}

/* ---- The example; everything above is the adapter ---- */

#include "app.h"

int main(int argc, char **argv)
{
    struct adapter adapter;
    struct app app;
    struct event_base *loop = event_base_new();

    if (loop == NULL || !app_arguments(&app, argc, argv))
        return 2;
    app_start(&app, &adapter.client, attach(&adapter, loop, app.nodes, app.count, app_done));
    while (app.busy > 0)
        event_base_loop(loop, EVLOOP_ONCE);
    detach(&adapter);
    event_base_free(loop);
    return app.status;
}
