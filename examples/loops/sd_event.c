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

/* Called for each completed operation; `context` is yours. */
typedef void redlock_sd_event_done(struct redlock_lock *lock, void *context);

struct redlock_sd_event_watch {
    struct redlock_sd_event *adapter;
    sd_event_source *source; /* NULL: no connection, or not watched yet */
    uint32_t events;
};

struct redlock_sd_event {
    struct redlock_client client;
    struct redlock_node *nodes;
    unsigned count;
    redlock_sd_event_done *done;
    void *context;        /* of `done` */
    struct redlock_io io; /* redlock_posix() with another `shut` */
    sd_event *loop;
    sd_event_source *turn, *timer;
    struct redlock_sd_event_watch watches[REDLOCK_NODES_MAX];
};

/* The library closes a connection: stop watching it now, because the system may reuse its descriptor at once. */
static void redlock_sd_event_shut(void *context, struct redlock_node *node)
{
    struct redlock_sd_event_watch *watch = (struct redlock_sd_event_watch *)node->user_data;

    watch->source = sd_event_source_disable_unref(watch->source);
    redlock_posix()->shut(context, node);
}

/* Call after each operation that you start or cancel outside of `done`, and after each blocking call there: it may have completed
   others. */
static void redlock_sd_event_wake(struct redlock_sd_event *adapter)
{
    sd_event_source_set_enabled(adapter->turn, SD_EVENT_ONESHOT);
}

static int redlock_sd_event_on_ready(sd_event_source *source, int fd, uint32_t ready, void *context)
{
    struct redlock_sd_event_watch *watch = (struct redlock_sd_event_watch *)context;
    unsigned events = 0;

    (void)source;
    (void)fd;
    if (ready & (EPOLLIN | EPOLLERR | EPOLLHUP))
        events |= REDLOCK_READABLE;
    if (ready & (EPOLLOUT | EPOLLERR | EPOLLHUP))
        events |= REDLOCK_WRITABLE;
    redlock_handle_events(&watch->adapter->client, (unsigned)(watch - watch->adapter->watches),
                          events);
    redlock_sd_event_wake(watch->adapter);
    return 0;
}

static void redlock_sd_event_watch_node(struct redlock_sd_event *adapter, unsigned i)
{
    unsigned wanted = redlock_wanted_events(&adapter->client, i);
    struct redlock_sd_event_watch *watch = &adapter->watches[i];
    uint32_t events = ((wanted & REDLOCK_READABLE) ? (uint32_t)EPOLLIN : 0) |
                      ((wanted & REDLOCK_WRITABLE) ? (uint32_t)EPOLLOUT : 0);

    if (watch->source != NULL && events != watch->events)
        sd_event_source_set_io_events(watch->source, events);
    else if (watch->source == NULL && events != 0)
        sd_event_add_io(adapter->loop, &watch->source, (int)adapter->nodes[i].handle, events,
                        redlock_sd_event_on_ready, watch);
    watch->events = events;
}

/* Runs after a batch of events, starts, or the timer: the library decides and sends, `done` gets completed locks. */
static int redlock_sd_event_turn(sd_event_source *source, void *context)
{
    struct redlock_sd_event *adapter = (struct redlock_sd_event *)context;
    uint64_t wait_us = redlock_tick(&adapter->client);
    struct redlock_lock *lock;
    unsigned i;

    (void)source;
    if ((lock = redlock_next_completed(&adapter->client)) != NULL)
        wait_us = 0; /* `done` may start an operation */
    for (i = 0; i < adapter->count; i++)
        redlock_sd_event_watch_node(adapter, i);
    if (wait_us != REDLOCK_NEVER)
        sd_event_source_set_time_relative(adapter->timer, wait_us);
    sd_event_source_set_enabled(adapter->timer,
                                wait_us != REDLOCK_NEVER ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
    for (; lock != NULL; lock = redlock_next_completed(&adapter->client))
        adapter->done(lock, adapter->context); /* last, because it may detach */
    return 0;
}

static int redlock_sd_event_on_timer(sd_event_source *source, uint64_t due_us, void *context)
{
    (void)due_us;
    return redlock_sd_event_turn(source, context);
}

/* Calls redlock_init; pass your settings there. Also if that fails, call detach, before the loop runs. The adapter must not
   move until detach. It uses user_data of the nodes. */
static enum redlock_status redlock_sd_event_attach(struct redlock_sd_event *adapter, sd_event *loop,
                                                   struct redlock_node *nodes, unsigned count,
                                                   redlock_sd_event_done *done, void *context)
{
    unsigned i;

    memset(adapter, 0, sizeof *adapter);
    adapter->loop = loop;
    adapter->nodes = nodes;
    adapter->count = count;
    adapter->done = done;
    adapter->context = context;
    adapter->io = *redlock_posix();
    adapter->io.shut = redlock_sd_event_shut;
    for (i = 0; i < count && i < REDLOCK_NODES_MAX; i++) {
        adapter->watches[i].adapter = adapter;
        nodes[i].user_data = &adapter->watches[i];
    }
    /* Like the library's clock, this one also runs while the machine is suspended. */
    if (sd_event_add_defer(loop, &adapter->turn, redlock_sd_event_turn, adapter) < 0 ||
        sd_event_add_time_relative(loop, &adapter->timer, CLOCK_BOOTTIME, 0, 1,
                                   redlock_sd_event_on_timer, adapter) < 0)
        return REDLOCK_INVALID_ARGUMENT;
    return redlock_init(&adapter->client, &adapter->io, nodes, count, NULL);
}

static void redlock_sd_event_detach(struct redlock_sd_event *adapter)
{
    redlock_deinit(&adapter->client); /* closes all connections */
    sd_event_source_disable_unref(adapter->turn);
    sd_event_source_disable_unref(adapter->timer);
}

/* ---- The example; everything above is the adapter ---- */

#include "app.h"

int main(int argc, char **argv)
{
    struct redlock_sd_event adapter;
    struct app app;
    sd_event *loop;

    if (sd_event_new(&loop) < 0 || !app_arguments(&app, argc, argv))
        return 2;
    app_start(&app, &adapter.client,
              redlock_sd_event_attach(&adapter, loop, app.nodes, app.count, app_done, &app));
    while (app.busy > 0)
        sd_event_run(loop, UINT64_MAX);
    redlock_sd_event_detach(&adapter);
    sd_event_unref(loop);
    return app.status;
}
