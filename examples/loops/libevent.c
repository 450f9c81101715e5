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
   * The clock of the library counts the time for which the machine is suspended; the timers of libevent do not. So none is
     longer than a second, and a lock is renewed, or reported as lost, within a second of the resume.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "redlock.h"

#include <event2/event.h>
#include <string.h>

/* Called for each completed operation; `context` is yours. */
typedef void redlock_libevent_done(struct redlock_lock *lock, void *context);

struct redlock_libevent_watch {
    struct redlock_libevent *adapter;
    struct event *event; /* NULL: no connection, or not watched yet */
    unsigned wanted;
};

struct redlock_libevent {
    struct redlock_client client;
    struct redlock_node *nodes;
    unsigned count;
    redlock_libevent_done *done;
    void *context;        /* of `done` */
    struct redlock_io io; /* redlock_posix() with another `shut` */
    struct event_base *loop;
    struct event *turn; /* runs by its timer, or when made active */
    struct redlock_libevent_watch watches[REDLOCK_NODES_MAX];
};

static void redlock_libevent_unwatch(struct redlock_libevent_watch *watch)
{
    if (watch->event != NULL)
        event_free(watch->event);
    watch->event = NULL;
    watch->wanted = 0;
}

/* The library closes a connection: stop watching it now, because the system may reuse its descriptor at once. */
static void redlock_libevent_shut(void *context, struct redlock_node *node)
{
    struct redlock_libevent_watch *watch = (struct redlock_libevent_watch *)node->user_data;

    redlock_libevent_unwatch(watch);
    redlock_posix()->shut(context, node);
}

/* Call after each operation that you start or cancel outside of `done`, and after each blocking call there: it may have completed
   others. */
static void redlock_libevent_wake(struct redlock_libevent *adapter)
{
    event_active(adapter->turn, EV_TIMEOUT, 0);
}

static void redlock_libevent_on_ready(evutil_socket_t fd, short ready, void *context)
{
    struct redlock_libevent_watch *watch = (struct redlock_libevent_watch *)context;
    unsigned events = 0;

    (void)fd;
    if (ready & EV_READ)
        events |= REDLOCK_READABLE;
    if (ready & EV_WRITE)
        events |= REDLOCK_WRITABLE;
    redlock_handle_events(&watch->adapter->client, (unsigned)(watch - watch->adapter->watches),
                          events);
    redlock_libevent_wake(watch->adapter);
}

static void redlock_libevent_watch_node(struct redlock_libevent *adapter, unsigned i)
{
    unsigned wanted = redlock_wanted_events(&adapter->client, i);
    struct redlock_libevent_watch *watch = &adapter->watches[i];
    int kind = EV_PERSIST | ((wanted & REDLOCK_READABLE) ? EV_READ : 0) |
               ((wanted & REDLOCK_WRITABLE) ? EV_WRITE : 0);

    if (wanted == watch->wanted)
        return;
    redlock_libevent_unwatch(watch);
    watch->event = event_new(adapter->loop, (evutil_socket_t)adapter->nodes[i].handle, (short)kind,
                             redlock_libevent_on_ready, watch);
    if (watch->event != NULL && event_add(watch->event, NULL) == 0)
        watch->wanted = wanted;
}

/* Runs after a batch of events, starts, or the timer: the library decides and sends, `done` gets completed locks. */
static void redlock_libevent_turn(evutil_socket_t fd, short ready, void *context)
{
    struct redlock_libevent *adapter = (struct redlock_libevent *)context;
    uint64_t wait_us = redlock_tick(&adapter->client);
    struct redlock_lock *lock;
    struct timeval wait;
    unsigned i;

    (void)fd;
    (void)ready;
    if ((lock = redlock_next_completed(&adapter->client)) != NULL)
        wait_us = 0; /* `done` may start an operation */
    for (i = 0; i < adapter->count; i++)
        redlock_libevent_watch_node(adapter, i);
    if (wait_us > 1000000 && wait_us != REDLOCK_NEVER)
        wait_us = 1000000; /* the last pitfall */
    wait.tv_sec = (time_t)(wait_us / 1000000);
    wait.tv_usec = (suseconds_t)(wait_us % 1000000);
    if (wait_us == REDLOCK_NEVER)
        evtimer_del(adapter->turn);
    else
        evtimer_add(adapter->turn, &wait);
    for (; lock != NULL; lock = redlock_next_completed(&adapter->client))
        adapter->done(lock, adapter->context); /* last, because it may detach */
}

/* Calls redlock_init; pass your settings there. Also if that fails, call detach, before the loop runs. The adapter must not
   move until detach. It uses user_data of the nodes. */
static enum redlock_status redlock_libevent_attach(struct redlock_libevent *adapter,
                                                   struct event_base *loop,
                                                   struct redlock_node *nodes, unsigned count,
                                                   redlock_libevent_done *done, void *context)
{
    unsigned i;

    memset(adapter, 0, sizeof *adapter);
    adapter->loop = loop;
    adapter->nodes = nodes;
    adapter->count = count;
    adapter->done = done;
    adapter->context = context;
    adapter->io = *redlock_posix();
    adapter->io.shut = redlock_libevent_shut;
    for (i = 0; i < count && i < REDLOCK_NODES_MAX; i++) {
        adapter->watches[i].adapter = adapter;
        nodes[i].user_data = &adapter->watches[i];
    }
    if ((adapter->turn = evtimer_new(loop, redlock_libevent_turn, adapter)) == NULL)
        return REDLOCK_INVALID_ARGUMENT;
    redlock_libevent_wake(adapter);
    return redlock_init(&adapter->client, &adapter->io, nodes, count, NULL);
}

static void redlock_libevent_detach(struct redlock_libevent *adapter)
{
    redlock_deinit(&adapter->client); /* closes all connections */
    if (adapter->turn != NULL)
        event_free(adapter->turn);
}

/* ---- The example; everything above is the adapter ---- */

#include "app.h"

int main(int argc, char **argv)
{
    struct redlock_libevent adapter;
    struct app app;
    struct event_base *loop = event_base_new();

    if (loop == NULL || !app_arguments(&app, argc, argv))
        return 2;
    app_start(&app, &adapter.client,
              redlock_libevent_attach(&adapter, loop, app.nodes, app.count, app_done, &app));
    while (app.busy > 0)
        event_base_loop(loop, EVLOOP_ONCE);
    redlock_libevent_detach(&adapter);
    event_base_free(loop);
    return app.status;
}
