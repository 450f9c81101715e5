/* libev.c - redlock in libev. Copy everything above the example into your program. To build and run the example,
   from the top folder:
   make && cc -I. examples/loops/libev.c examples/loops/app.c build/libredlock.a -lev
   ./a.out demo 10 127.0.0.1:7001 127.0.0.1:7002 127.0.0.1:7003

   Pitfalls of libev:
   * Stop a watcher before its descriptor is closed, and before it is set to other events.
   * Timers count from the loop's cached time, which is that of the last wake-up: call ev_now_update first.
   * Timers are doubles, in seconds.
   * The clock of the library counts the time for which the machine is suspended; the timers of libev do not. So none is
     longer than a second, and a lock is renewed, or reported as lost, within a second of the resume.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "redlock.h"

#include <ev.h>
#include <string.h>

/* Called for each completed operation; `context` is yours. */
typedef void redlock_libev_done(struct redlock_lock *lock, void *context);

struct redlock_libev_watch {
    struct redlock_libev *adapter;
    ev_io io;
    unsigned wanted; /* registered; 0: stopped */
};

struct redlock_libev {
    struct redlock_client client;
    struct redlock_node *nodes;
    unsigned count;
    redlock_libev_done *done;
    void *context;        /* of `done` */
    struct redlock_io io; /* redlock_posix() with another `shut` */
    struct ev_loop *loop;
    ev_prepare prepare;
    ev_timer timer;
    struct redlock_libev_watch watches[REDLOCK_NODES_MAX];
};

/* The library closes a connection: stop watching it now, because the system may reuse its descriptor at once. */
static void redlock_libev_shut(void *context, struct redlock_node *node)
{
    struct redlock_libev_watch *watch = (struct redlock_libev_watch *)node->user_data;

    ev_io_stop(watch->adapter->loop, &watch->io);
    watch->wanted = 0;
    redlock_posix()->shut(context, node);
}

static void redlock_libev_on_ready(struct ev_loop *loop, ev_io *io, int ready)
{
    struct redlock_libev_watch *watch = (struct redlock_libev_watch *)io->data;
    unsigned events = 0;

    (void)loop;
    if (ready & EV_READ)
        events |= REDLOCK_READABLE;
    if (ready & EV_WRITE)
        events |= REDLOCK_WRITABLE;
    redlock_handle_events(&watch->adapter->client, (unsigned)(watch - watch->adapter->watches),
                          events);
}

static void redlock_libev_watch_node(struct redlock_libev *adapter, unsigned i)
{
    unsigned wanted = redlock_wanted_events(&adapter->client, i);
    struct redlock_libev_watch *watch = &adapter->watches[i];

    if (wanted == watch->wanted)
        return;
    ev_io_stop(adapter->loop, &watch->io);
    ev_io_set(&watch->io, (int)adapter->nodes[i].handle,
              ((wanted & REDLOCK_READABLE) ? EV_READ : 0) |
                  ((wanted & REDLOCK_WRITABLE) ? EV_WRITE : 0));
    ev_io_start(adapter->loop, &watch->io);
    watch->wanted = wanted;
}

static void redlock_libev_on_timer(struct ev_loop *loop, ev_timer *timer, int ready)
{
    (void)loop; /* the loop is awake; before_sleep runs next */
    (void)timer;
    (void)ready;
}

/* Runs before each sleep, after all starts and events: the library decides and sends, `done` gets completed locks. */
static void redlock_libev_before_sleep(struct ev_loop *loop, ev_prepare *prepare, int ready)
{
    struct redlock_libev *adapter = (struct redlock_libev *)prepare->data;
    uint64_t wait_us = redlock_tick(&adapter->client);
    struct redlock_lock *lock;
    unsigned i;

    (void)ready;
    if ((lock = redlock_next_completed(&adapter->client)) != NULL)
        wait_us = 0; /* `done` may start an operation */
    for (i = 0; i < adapter->count; i++)
        redlock_libev_watch_node(adapter, i);
    if (wait_us > 1000000 && wait_us != REDLOCK_NEVER)
        wait_us = 1000000; /* the last pitfall */
    ev_timer_stop(loop, &adapter->timer);
    if (wait_us != REDLOCK_NEVER) {
        ev_now_update(loop);
        ev_timer_set(&adapter->timer, (double)wait_us / 1e6, 0.);
        ev_timer_start(loop, &adapter->timer);
    }
    for (; lock != NULL; lock = redlock_next_completed(&adapter->client))
        adapter->done(lock, adapter->context); /* last, because it may detach */
}

/* Calls redlock_init; pass your settings there. Also if that fails, call detach, before the loop runs. The adapter must not
   move until detach. It uses user_data of the nodes. */
static enum redlock_status redlock_libev_attach(struct redlock_libev *adapter, struct ev_loop *loop,
                                                struct redlock_node *nodes, unsigned count,
                                                redlock_libev_done *done, void *context)
{
    unsigned i;

    memset(adapter, 0, sizeof *adapter);
    adapter->loop = loop;
    adapter->nodes = nodes;
    adapter->count = count;
    adapter->done = done;
    adapter->context = context;
    adapter->io = *redlock_posix();
    adapter->io.shut = redlock_libev_shut;
    for (i = 0; i < count && i < REDLOCK_NODES_MAX; i++) {
        adapter->watches[i].adapter = adapter;
        nodes[i].user_data = &adapter->watches[i];
        ev_init(&adapter->watches[i].io, redlock_libev_on_ready);
        adapter->watches[i].io.data = &adapter->watches[i];
    }
    ev_timer_init(&adapter->timer, redlock_libev_on_timer, 0., 0.);
    ev_prepare_init(&adapter->prepare, redlock_libev_before_sleep);
    adapter->prepare.data = adapter;
    ev_prepare_start(loop, &adapter->prepare);
    return redlock_init(&adapter->client, &adapter->io, nodes, count, NULL);
}

static void redlock_libev_detach(struct redlock_libev *adapter)
{
    redlock_deinit(&adapter->client); /* closes all connections */
    ev_prepare_stop(adapter->loop, &adapter->prepare);
    ev_timer_stop(adapter->loop, &adapter->timer);
}

/* ---- The example; everything above is the adapter ---- */

#include "app.h"

int main(int argc, char **argv)
{
    struct redlock_libev adapter;
    struct app app;
    struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);

    if (loop == NULL || !app_arguments(&app, argc, argv))
        return 2;
    app_start(&app, &adapter.client,
              redlock_libev_attach(&adapter, loop, app.nodes, app.count, app_done, &app));
    while (app.busy > 0)
        ev_run(loop, EVRUN_ONCE);
    redlock_libev_detach(&adapter);
    ev_loop_destroy(loop);
    return app.status;
}
