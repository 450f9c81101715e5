/* glib.c - redlock in a GLib main loop. Copy everything above the example into your program. To build and run the example,
   from the top folder:
   make && cc -I. examples/loops/glib.c examples/loops/app.c build/libredlock.a $(pkg-config --cflags --libs glib-2.0)
   ./a.out demo 10 127.0.0.1:7001 127.0.0.1:7002 127.0.0.1:7003

   Pitfalls of GLib:
   * A change of the watched events wakes up the loop. So change them only if they differ; otherwise the loop spins.
   * Remove a descriptor from the source before it is closed.
   * `done` is called in dispatch, because your code must not run the loop (for a dialog, say) inside prepare. Meanwhile the
     source must be served, or the lock is lost: so it may recurse.
   * Timeouts are whole milliseconds. Round up: 0 would spin.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "redlock.h"

#include <glib.h>
#include <string.h>

struct source {
    GSource base; /* GLib's memory */
    struct adapter *adapter;
};

struct adapter {
    struct redlock_client client;
    struct redlock_node *nodes;
    unsigned count;
    void (*done)(struct redlock_lock *lock); /* called for each completed operation */
    struct redlock_io io;                    /* redlock_posix() with another `shut` */
    struct source *source;
    struct watch {
        struct adapter *adapter;
        gpointer tag; /* NULL: no connection, or not watched yet */
        GIOCondition events;
    } watches[REDLOCK_NODES_MAX];
};

/* The library closes a connection: stop watching it now, because the system may reuse its descriptor at once. */
static void shut(void *context, struct redlock_node *node)
{
    struct watch *watch = (struct watch *)node->user_data;

    if (watch->tag != NULL)
        g_source_remove_unix_fd(&watch->adapter->source->base, watch->tag);
    watch->tag = NULL;
    redlock_posix()->shut(context, node);
}

static void watch_node(struct adapter *adapter, unsigned i)
{
    unsigned wanted = redlock_wanted_events(&adapter->client, i);
    struct watch *watch = &adapter->watches[i];
    GSource *source = &adapter->source->base;
    GIOCondition events = (GIOCondition)(((wanted & REDLOCK_READABLE) ? G_IO_IN : 0) |
                                         ((wanted & REDLOCK_WRITABLE) ? G_IO_OUT : 0));

    if (watch->tag == NULL && events != 0)
        watch->tag = g_source_add_unix_fd(source, (int)adapter->nodes[i].handle, events);
    else if (watch->tag != NULL && events != watch->events)
        g_source_modify_unix_fd(source, watch->tag, events);
    watch->events = events;
}

/* Runs before each sleep, after all starts and events: the library decides and sends. Returns TRUE if the loop must not sleep. */
static gboolean before_sleep(GSource *source, gint *wait_ms)
{
    struct adapter *adapter = ((struct source *)source)->adapter;
    uint64_t wait_us = redlock_tick(&adapter->client);
    unsigned i;

    for (i = 0; i < adapter->count; i++)
        watch_node(adapter, i);
    if (wait_us == REDLOCK_NEVER)
        *wait_ms = -1;
    else
        *wait_ms = wait_us < 60000000 ? (gint)((wait_us + 999) / 1000) : 60000;
    return wait_us == 0;
}

/* A descriptor is ready (GLib checks them), or before_sleep has found a completed lock. */
static gboolean dispatch(GSource *source, GSourceFunc unused, gpointer context)
{
    struct adapter *adapter = ((struct source *)source)->adapter;
    struct redlock_lock *lock;
    unsigned i;

    (void)unused;
    (void)context;
    for (i = 0; i < adapter->count; i++) {
        gpointer tag = adapter->watches[i].tag;
        GIOCondition ready = tag != NULL ? g_source_query_unix_fd(source, tag) : (GIOCondition)0;
        unsigned events = 0;
        if (ready & (G_IO_IN | G_IO_ERR | G_IO_HUP))
            events |= REDLOCK_READABLE;
        if (ready & (G_IO_OUT | G_IO_ERR | G_IO_HUP))
            events |= REDLOCK_WRITABLE;
        if (events != 0)
            redlock_handle_events(&adapter->client, i, events);
    }
    while ((lock = redlock_next_completed(&adapter->client)) != NULL)
        adapter->done(lock);
    return G_SOURCE_CONTINUE;
}

/* Calls redlock_init; pass your settings there. Also if that fails, call detach, before the loop runs. The adapter must not
   move until detach. It uses user_data of the nodes. */
static enum redlock_status attach(struct adapter *adapter, GMainContext *loop,
                                  struct redlock_node *nodes, unsigned count,
                                  void (*done)(struct redlock_lock *lock))
{
    static GSourceFuncs functions = {before_sleep, NULL, dispatch, NULL, NULL, NULL};
    unsigned i;

    memset(adapter, 0, sizeof *adapter);
    adapter->nodes = nodes;
    adapter->count = count;
    adapter->done = done;
    adapter->io = *redlock_posix();
    adapter->io.shut = shut;
    for (i = 0; i < count && i < REDLOCK_NODES_MAX; i++) {
        adapter->watches[i].adapter = adapter;
        nodes[i].user_data = &adapter->watches[i];
    }
    adapter->source = (struct source *)g_source_new(&functions, sizeof *adapter->source);
    adapter->source->adapter = adapter;
    g_source_set_can_recurse(&adapter->source->base, TRUE);
    g_source_attach(&adapter->source->base, loop);
    return redlock_init(&adapter->client, &adapter->io, nodes, count, NULL);
}

static void detach(struct adapter *adapter)
{
    redlock_deinit(&adapter->client); /* closes all connections */
    g_source_destroy(&adapter->source->base);
    g_source_unref(&adapter->source->base);
}

/* ---- The example; everything above is the adapter ---- */

#include "app.h"

int main(int argc, char **argv)
{
    struct adapter adapter;
    struct app app;
    GMainContext *loop;

    if (!app_arguments(&app, argc, argv))
        return 2;
    loop = g_main_context_new();
    app_start(&app, &adapter.client, attach(&adapter, loop, app.nodes, app.count, app_done));
    while (app.busy > 0)
        g_main_context_iteration(loop, TRUE);
    detach(&adapter);
    g_main_context_unref(loop);
    return app.status;
}
