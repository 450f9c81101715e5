/* libevent.c - redlock in a libevent loop. All above main is the adapter: copy it. Build and run, from the top:
   cc -I. examples/loops/libevent.c examples/loops/app.c client.c redlock.c round.c node.c command.c text.c resp.c net.c $(pkg-config --cflags --libs libevent_core)
   ./a.out demo 10 127.0.0.1:7001 127.0.0.1:7002 127.0.0.1:7003

   Traps of libevent: an event must be freed or deleted before its descriptor is closed, and what it waits for can't be
   changed while it is added: it is made anew. There is no hook before the sleep, so one event of our own does what is
   to be done after starts and events: made active it comes last in the batch. A timer that has come is off.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "app.h"

#include <event2/event.h>
#include <string.h>

struct adapter {
    struct redlock_client client;
    struct redlock_node *nodes;
    unsigned count;
    void (*done)(struct redlock_lock *lock); /* gets each lock whose operation has ended */
    struct redlock_io io;                    /* redlock_posix with `shut` replaced */
    struct event_base *loop;
    struct event *turn; /* by its time, or made active */
    struct watch {
        struct adapter *adapter;
        struct event *event; /* NULL: no connection, or not watched yet */
        unsigned interest;
    } watches[REDLOCK_NODES_MAX];
};

static void unwatch(struct watch *watch)
{
    if (watch->event != NULL)
        event_free(watch->event);
    watch->event = NULL;
    watch->interest = 0;
}

/* The library is about to close a connection: its number may be in use again at once. */
static void shut(void *context, struct redlock_node *node)
{
    struct watch *watch = (struct watch *)node->user_data;

    unwatch(watch);
    redlock_posix()->shut(context, node);
}

/* To be called after each start from outside of `done`. */
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
    unsigned interest = redlock_wanted_events(&adapter->client, i);
    struct watch *watch = &adapter->watches[i];
    int kind = EV_PERSIST | ((interest & REDLOCK_READABLE) ? EV_READ : 0) |
               ((interest & REDLOCK_WRITABLE) ? EV_WRITE : 0);

    if (interest == watch->interest)
        return;
    unwatch(watch);
    watch->event = event_new(adapter->loop, (evutil_socket_t)adapter->nodes[i].handle, (short)kind,
                             on_ready, watch);
    if (watch->event != NULL && event_add(watch->event, NULL) == 0)
        watch->interest = interest;
}

/* After a batch of events, starts, or the time: lets the library decide and send, hands out what has ended. */
static void turn(evutil_socket_t fd, short ready, void *context)
{
    struct adapter *adapter = (struct adapter *)context;
    uint64_t wait_us = redlock_tick(&adapter->client);
    struct redlock_lock *lock;
    struct timeval wait;
    unsigned i;

    (void)fd;
    (void)ready;
    while ((lock = redlock_next_completed(&adapter->client)) != NULL) {
        adapter->done(lock);
        wait_us = 0; /* it may have started something */
    }
    for (i = 0; i < adapter->count; i++)
        watch_node(adapter, i);
    if (wait_us == REDLOCK_NEVER) {
        evtimer_del(adapter->turn);
        return;
    }
    wait.tv_sec = (time_t)(wait_us / 1000000);
    wait.tv_usec = (suseconds_t)(wait_us % 1000000);
    evtimer_add(adapter->turn, &wait);
}

/* redlock_init, with settings of yours. The adapter must not move until detach; it uses user_data of the nodes. */
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
    redlock_deinit(&adapter->client); /* shuts all connections */
    if (adapter->turn != NULL)
        event_free(adapter->turn);
}

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
