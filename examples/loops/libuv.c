/* libuv.c - redlock in libuv. Copy everything above the example into your program. To build and run the example,
   from the top folder:
   make && cc -I. examples/loops/libuv.c examples/loops/app.c build/libredlock.a $(pkg-config --cflags --libs libuv)
   ./a.out demo 10 127.0.0.1:7001 127.0.0.1:7002 127.0.0.1:7003

   Pitfalls of libuv:
   * uv_close is asynchronous: the memory of a handle belongs to the loop until the callback has run. A poll handle
     belongs to one descriptor. So each connection has a handle from malloc, and the callback frees it.
   * A failed connection is reported as an error, and libuv has stopped watching it by then.
   * A forked child shares the loop's epoll: let it call uv_loop_fork before detach, which would stop the parent's watching.
   * Timers are whole milliseconds. Round up: 0 would spin.
   * The clock of the library counts the time for which the machine is suspended; the timers of libuv do not. So none is
     longer than a second, and a lock is renewed, or reported as lost, within a second of the resume.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "redlock.h"

#include <stdlib.h>
#include <string.h>
#include <uv.h>

/* Called for each completed operation; `context` is yours. */
typedef void redlock_libuv_done(struct redlock_lock *lock, void *context);

struct redlock_libuv_watch {
    struct redlock_libuv *adapter;
    uv_poll_t *poll; /* NULL: no connection, or not watched yet */
    unsigned wanted;
};

struct redlock_libuv {
    struct redlock_client client;
    struct redlock_node *nodes;
    unsigned count;
    redlock_libuv_done *done;
    void *context;        /* of `done` */
    struct redlock_io io; /* redlock_posix() with another `shut` */
    uv_loop_t *loop;
    uv_prepare_t prepare;
    uv_timer_t timer;
    struct redlock_libuv_watch watches[REDLOCK_NODES_MAX];
};

static void redlock_libuv_free_handle(uv_handle_t *handle)
{
    free(handle);
}

/* The library closes a connection: stop watching it now, because the system may reuse its descriptor at once. */
static void redlock_libuv_shut(void *context, struct redlock_node *node)
{
    struct redlock_libuv_watch *watch = (struct redlock_libuv_watch *)node->user_data;

    if (watch->poll != NULL)
        uv_close((uv_handle_t *)watch->poll,
                 redlock_libuv_free_handle); /* also stops watching at once */
    watch->poll = NULL;
    redlock_posix()->shut(context, node);
}

static void redlock_libuv_on_ready(uv_poll_t *poll, int status, int ready)
{
    struct redlock_libuv_watch *watch = (struct redlock_libuv_watch *)poll->data;
    unsigned events = 0;

    if (status < 0)
        watch->wanted = 0; /* libuv has stopped watching it */
    if (status < 0 || ready & UV_READABLE)
        events |= REDLOCK_READABLE;
    if (status < 0 || ready & UV_WRITABLE)
        events |= REDLOCK_WRITABLE;
    redlock_handle_events(&watch->adapter->client, (unsigned)(watch - watch->adapter->watches),
                          events);
}

static void redlock_libuv_watch_node(struct redlock_libuv *adapter, unsigned i)
{
    unsigned wanted = redlock_wanted_events(&adapter->client, i);
    struct redlock_libuv_watch *watch = &adapter->watches[i];

    if (wanted != 0 && watch->poll == NULL) {
        if ((watch->poll = (uv_poll_t *)malloc(sizeof *watch->poll)) == NULL)
            return;
        if (uv_poll_init(adapter->loop, watch->poll, (int)adapter->nodes[i].handle) != 0) {
            free(watch->poll);
            watch->poll = NULL;
            return;
        }
        watch->poll->data = watch;
        watch->wanted = 0;
    }
    if (watch->poll == NULL || wanted == watch->wanted)
        return;
    watch->wanted = wanted;
    uv_poll_start(watch->poll,
                  ((wanted & REDLOCK_READABLE) ? UV_READABLE : 0) |
                      ((wanted & REDLOCK_WRITABLE) ? UV_WRITABLE : 0),
                  redlock_libuv_on_ready);
}

static void redlock_libuv_on_timer(uv_timer_t *timer)
{
    (void)timer; /* the loop is awake; before_sleep runs next */
}

/* Runs before each sleep, after all starts and events: the library decides and sends, `done` gets completed locks. */
static void redlock_libuv_before_sleep(uv_prepare_t *prepare)
{
    struct redlock_libuv *adapter = (struct redlock_libuv *)prepare->data;
    uint64_t wait_us = redlock_tick(&adapter->client);
    struct redlock_lock *lock;
    unsigned i;

    if ((lock = redlock_next_completed(&adapter->client)) != NULL)
        wait_us = 0; /* `done` may start an operation */
    for (i = 0; i < adapter->count; i++)
        redlock_libuv_watch_node(adapter, i);
    if (wait_us > 1000000 && wait_us != REDLOCK_NEVER)
        wait_us = 1000000;         /* the last pitfall */
    uv_update_time(adapter->loop); /* otherwise the timer counts from the end of the last sleep */
    if (wait_us == REDLOCK_NEVER)
        uv_timer_stop(&adapter->timer);
    else
        uv_timer_start(&adapter->timer, redlock_libuv_on_timer, (wait_us + 999) / 1000, 0);
    for (; lock != NULL; lock = redlock_next_completed(&adapter->client))
        adapter->done(lock, adapter->context); /* last, because it may detach */
}

/* Calls redlock_init; pass your settings there. Also if that fails, call detach, before the loop runs. The adapter must not
   move until detach. It uses user_data of the nodes. */
static enum redlock_status redlock_libuv_attach(struct redlock_libuv *adapter, uv_loop_t *loop,
                                                struct redlock_node *nodes, unsigned count,
                                                redlock_libuv_done *done, void *context)
{
    unsigned i;

    memset(adapter, 0, sizeof *adapter);
    adapter->loop = loop;
    adapter->nodes = nodes;
    adapter->count = count;
    adapter->done = done;
    adapter->context = context;
    adapter->io = *redlock_posix();
    adapter->io.shut = redlock_libuv_shut;
    for (i = 0; i < count && i < REDLOCK_NODES_MAX; i++) {
        adapter->watches[i].adapter = adapter;
        nodes[i].user_data = &adapter->watches[i];
    }
    uv_timer_init(loop, &adapter->timer);
    uv_prepare_init(loop, &adapter->prepare);
    adapter->prepare.data = adapter;
    uv_prepare_start(&adapter->prepare, redlock_libuv_before_sleep);
    return redlock_init(&adapter->client, &adapter->io, nodes, count, NULL);
}

/* The adapter may be freed after the next turn of the loop. */
static void redlock_libuv_detach(struct redlock_libuv *adapter)
{
    redlock_deinit(&adapter->client); /* closes all connections */
    uv_close((uv_handle_t *)&adapter->prepare, NULL);
    uv_close((uv_handle_t *)&adapter->timer, NULL);
}

/* ---- The example; everything above is the adapter ---- */

#include "app.h"

int main(int argc, char **argv)
{
    struct redlock_libuv adapter;
    struct app app;
    uv_loop_t loop;

    if (uv_loop_init(&loop) != 0 || !app_arguments(&app, argc, argv))
        return 2;
    app_start(&app, &adapter.client,
              redlock_libuv_attach(&adapter, &loop, app.nodes, app.count, app_done, &app));
    while (app.busy > 0)
        uv_run(&loop, UV_RUN_ONCE);
    redlock_libuv_detach(&adapter);
    uv_run(&loop, UV_RUN_DEFAULT); /* runs the close callbacks */
    uv_loop_close(&loop);
    return app.status;
}
