/* sd_event.c - redlock in sd-event. Copy everything above the example into your program. To build and run the example,
   from the top folder:
   make && cc -I. examples/loops/sd_event.c examples/loops/app.c build/libredlock.a $(pkg-config --cflags --libs libsystemd)
   ./a.out demo 10 127.0.0.1:7001 127.0.0.1:7002 127.0.0.1:7003

   Pitfalls of sd-event:
   * Release a source before its descriptor is closed. A descriptor can be in one source only.
   * Timers are one-shot and up to 250 ms late. Ask for an accuracy of 1 us, because 0 means 250 ms.
   * A callback that returns less than 0 is switched off.
   * Each turn calls one source, the one that has been ready for longest. So the adapter has a separate source for the work
     after a batch of events, which the other sources enable.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "redlock.h"

#include <string.h>
#include <systemd/sd-event.h>
#include <time.h>

struct adapter {
    struct redlock_client client;
    struct redlock_node *nodes;
    unsigned count;
    void (*done)(struct redlock_lock *lock); /* called for each completed operation */
    struct redlock_io io;                    /* redlock_posix() with another `shut` */
    sd_event *loop;
    sd_event_source *turn, *timer;
    struct watch {
        struct adapter *adapter;
        sd_event_source *source; /* NULL: no connection, or not watched yet */
        uint32_t events;
    } watches[REDLOCK_NODES_MAX];
};

/* The library closes a connection: stop watching it now, because the system may reuse its descriptor at once. */
static void shut(void *context, struct redlock_node *node)
{
    struct watch *watch = (struct watch *)node->user_data;

    watch->source = sd_event_source_disable_unref(watch->source);
    redlock_posix()->shut(context, node);
}

/* Call after each operation that you start or cancel outside of `done`. */
static void wake(struct adapter *adapter)
{
    sd_event_source_set_enabled(adapter->turn, SD_EVENT_ONESHOT);
}

static int on_ready(sd_event_source *source, int fd, uint32_t ready, void *context)
{
    struct watch *watch = (struct watch *)context;
    unsigned events = 0;

    (void)source;
    (void)fd;
    if (ready & (EPOLLIN | EPOLLERR | EPOLLHUP))
        events |= REDLOCK_READABLE;
    if (ready & (EPOLLOUT | EPOLLERR | EPOLLHUP))
        events |= REDLOCK_WRITABLE;
    redlock_handle_events(&watch->adapter->client, (unsigned)(watch - watch->adapter->watches),
                          events);
    wake(watch->adapter);
    return 0;
}

static void watch_node(struct adapter *adapter, unsigned i)
{
    unsigned wanted = redlock_wanted_events(&adapter->client, i);
    struct watch *watch = &adapter->watches[i];
    uint32_t events = ((wanted & REDLOCK_READABLE) ? (uint32_t)EPOLLIN : 0) |
                      ((wanted & REDLOCK_WRITABLE) ? (uint32_t)EPOLLOUT : 0);

    if (watch->source != NULL && events != watch->events)
        sd_event_source_set_io_events(watch->source, events);
    else if (watch->source == NULL && events != 0)
        sd_event_add_io(adapter->loop, &watch->source, (int)adapter->nodes[i].handle, events,
                        on_ready, watch);
    watch->events = events;
}

/* Runs after a batch of events, starts, or the timer: the library decides and sends, `done` gets completed locks. */
static int turn(sd_event_source *source, void *context)
{
    struct adapter *adapter = (struct adapter *)context;
    uint64_t wait_us = redlock_tick(&adapter->client);
    struct redlock_lock *lock;
    unsigned i;

    (void)source;
    if ((lock = redlock_next_completed(&adapter->client)) != NULL)
        wait_us = 0; /* `done` may start an operation */
    for (i = 0; i < adapter->count; i++)
        watch_node(adapter, i);
    if (wait_us != REDLOCK_NEVER)
        sd_event_source_set_time_relative(adapter->timer, wait_us);
    sd_event_source_set_enabled(adapter->timer,
                                wait_us != REDLOCK_NEVER ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
    for (; lock != NULL; lock = redlock_next_completed(&adapter->client))
        adapter->done(lock); /* last, because it may detach */
    return 0;
}

static int on_timer(sd_event_source *source, uint64_t due_us, void *context)
{
    (void)due_us;
    return turn(source, context);
}

/* Calls redlock_init; pass your settings there. Also if that fails, call detach, before the loop runs. The adapter must not
   move until detach. It uses user_data of the nodes. */
static enum redlock_status attach(struct adapter *adapter, sd_event *loop,
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
    /* Like the library's clock, this one also runs while the machine is suspended. */
    if (sd_event_add_defer(loop, &adapter->turn, turn, adapter) < 0 ||
        sd_event_add_time_relative(loop, &adapter->timer, CLOCK_BOOTTIME, 0, 1, on_timer, adapter) <
            0)
        return REDLOCK_INVALID_ARGUMENT;
    return redlock_init(&adapter->client, &adapter->io, nodes, count, NULL);
}

static void detach(struct adapter *adapter)
{
    redlock_deinit(&adapter->client); /* closes all connections */
    sd_event_source_disable_unref(adapter->turn);
    sd_event_source_disable_unref(adapter->timer);
}

/* ---- The example; everything above is the adapter ---- */

#include "app.h"

int main(int argc, char **argv)
{
    struct adapter adapter;
    struct app app;
    sd_event *loop;

    if (sd_event_new(&loop) < 0 || !app_arguments(&app, argc, argv))
        return 2;
    app_start(&app, &adapter.client, attach(&adapter, loop, app.nodes, app.count, app_done));
    while (app.busy > 0)
        sd_event_run(loop, UINT64_MAX);
    detach(&adapter);
    sd_event_unref(loop);
    return app.status;
}
