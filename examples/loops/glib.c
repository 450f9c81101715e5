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
   * The clock of the library counts the time for which the machine is suspended; the timers of GLib do not. So none is
     longer than a second, and a lock is renewed, or reported as lost, within a second of the resume.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "redlock.h"

#include <glib.h>
#include <string.h>

struct redlock_glib_source {
    GSource base; /* GLib's memory */
    struct redlock_glib *adapter;
};

/* Called for each completed operation; `context` is yours. */
typedef void redlock_glib_done(struct redlock_lock *lock, void *context);

struct redlock_glib_watch {
    struct redlock_glib *adapter;
    gpointer tag; /* NULL: no connection, or not watched yet */
    GIOCondition events;
};

struct redlock_glib {
    struct redlock_client client;
    struct redlock_node *nodes;
    unsigned count;
    redlock_glib_done *done;
    void *context;        /* of `done` */
    struct redlock_io io; /* redlock_posix() with another `shut` */
    struct redlock_glib_source *source;
    struct redlock_glib_watch watches[REDLOCK_NODES_MAX];
};

/* The library closes a connection: stop watching it now, because the system may reuse its descriptor at once. */
static void redlock_glib_shut(void *context, struct redlock_node *node)
{
    struct redlock_glib_watch *watch = (struct redlock_glib_watch *)node->user_data;

    if (watch->tag != NULL)
        g_source_remove_unix_fd(&watch->adapter->source->base, watch->tag);
    watch->tag = NULL;
    redlock_posix()->shut(context, node);
}

static void redlock_glib_watch_node(struct redlock_glib *adapter, unsigned i)
{
    unsigned wanted = redlock_wanted_events(&adapter->client, i);
    struct redlock_glib_watch *watch = &adapter->watches[i];
    GSource *source = &adapter->source->base;
    GIOCondition events = (GIOCondition)(((wanted & REDLOCK_READABLE) ? G_IO_IN : 0) |
                                         ((wanted & REDLOCK_WRITABLE) ? G_IO_OUT : 0));

    if (watch->tag == NULL && events != 0)
        watch->tag = g_source_add_unix_fd(source, (int)adapter->nodes[i].handle, events);
    else if (watch->tag != NULL && events != watch->events)
        g_source_modify_unix_fd(source, watch->tag, events);
    watch->events = events;
}

/* Whether a lock waits for `done`, maybe since a blocking call. It stays with the library until dispatch, because until then another
   source may release it, and free it. This is the list RL_DONE of core.h, the last one. */
static gboolean redlock_glib_has_completed(const struct redlock_glib *adapter)
{
    const struct redlock_list *lists = adapter->client.priv.list;

    return lists[sizeof adapter->client.priv.list / sizeof *lists - 1].first != NULL;
}

/* Runs before each sleep, after all starts and events: the library decides and sends. Returns TRUE if the loop must not sleep. */
static gboolean redlock_glib_before_sleep(GSource *source, gint *wait_ms)
{
    struct redlock_glib *adapter = ((struct redlock_glib_source *)source)->adapter;
    uint64_t wait_us = redlock_tick(&adapter->client);
    unsigned i;

    for (i = 0; i < adapter->count; i++)
        redlock_glib_watch_node(adapter, i);
    if (wait_us == REDLOCK_NEVER)
        *wait_ms = -1;
    else
        *wait_ms = wait_us < 1000000 ? (gint)((wait_us + 999) / 1000) : 1000; /* the last pitfall */
    return wait_us == 0 || redlock_glib_has_completed(adapter);
}

/* A descriptor is ready (GLib checks them), or a lock is complete. */
static gboolean redlock_glib_dispatch(GSource *source, GSourceFunc unused, gpointer context)
{
    struct redlock_glib *adapter = ((struct redlock_glib_source *)source)->adapter;
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
        adapter->done(lock, adapter->context);
    return G_SOURCE_CONTINUE;
}

/* Calls redlock_init; pass your settings there. Also if that fails, call detach, before the loop runs. The adapter must not
   move until detach. It uses user_data of the nodes. */
static enum redlock_status redlock_glib_attach(struct redlock_glib *adapter, GMainContext *loop,
                                               struct redlock_node *nodes, unsigned count,
                                               redlock_glib_done *done, void *context)
{
    static GSourceFuncs functions = {
        redlock_glib_before_sleep, NULL, redlock_glib_dispatch, NULL, NULL, NULL};
    unsigned i;

    memset(adapter, 0, sizeof *adapter);
    adapter->nodes = nodes;
    adapter->count = count;
    adapter->done = done;
    adapter->context = context;
    adapter->io = *redlock_posix();
    adapter->io.shut = redlock_glib_shut;
    for (i = 0; i < count && i < REDLOCK_NODES_MAX; i++) {
        adapter->watches[i].adapter = adapter;
        nodes[i].user_data = &adapter->watches[i];
    }
    adapter->source =
        (struct redlock_glib_source *)g_source_new(&functions, sizeof *adapter->source);
    adapter->source->adapter = adapter;
    g_source_set_can_recurse(&adapter->source->base, TRUE);
    g_source_attach(&adapter->source->base, loop);
    return redlock_init(&adapter->client, &adapter->io, nodes, count, NULL);
}

static void redlock_glib_detach(struct redlock_glib *adapter)
{
    redlock_deinit(&adapter->client); /* closes all connections */
    g_source_destroy(&adapter->source->base);
    g_source_unref(&adapter->source->base);
}

/* ---- The example; everything above is the adapter ---- */

#include "app.h"

int main(int argc, char **argv)
{
    struct redlock_glib adapter;
    struct app app;
    GMainContext *loop;

    if (!app_arguments(&app, argc, argv))
        return 2;
    loop = g_main_context_new();
    app_start(&app, &adapter.client,
              redlock_glib_attach(&adapter, loop, app.nodes, app.count, app_done, &app));
    while (app.busy > 0)
        g_main_context_iteration(loop, TRUE);
    redlock_glib_detach(&adapter);
    g_main_context_unref(loop);
    return app.status;
}
