/* epoll.c - redlock in an epoll loop of your own. All above main is the adapter: copy it. Build and run, from the top:
   cc -I. examples/loops/epoll.c examples/loops/app.c client.c redlock.c round.c node.c command.c text.c resp.c net.c
   ./a.out demo 10 127.0.0.1:7001 127.0.0.1:7002 127.0.0.1:7003

   Traps of epoll: a descriptor that is closed leaves it by itself, but not while a child process that was forked
   without exec has it open too; then its events go on, for a connection that nobody can take out any more. So it is
   taken out before it is closed. And its timeouts are whole milliseconds, of which 0 would spin: round up.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "app.h"

#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

struct adapter {
    struct redlock_client client;
    struct redlock_node *nodes;
    unsigned count;
    void (*done)(struct redlock_lock *lock); /* gets each lock whose operation has ended */
    struct redlock_io io;                    /* redlock_posix with `shut` replaced */
    int epoll;
    struct watch {
        struct adapter *adapter;
        uint32_t events; /* that epoll knows of; 0: it doesn't know the descriptor */
    } watches[REDLOCK_NODES_MAX];
};

/* The library is about to close a connection: its number may be in use again at once. */
static void shut(void *context, struct redlock_node *node)
{
    struct watch *watch = (struct watch *)node->user_data;

    if (watch->events != 0)
        epoll_ctl(watch->adapter->epoll, EPOLL_CTL_DEL, (int)node->handle, NULL);
    watch->events = 0;
    redlock_posix()->shut(context, node);
}

static void watch_node(struct adapter *adapter, unsigned i)
{
    unsigned interest = redlock_wanted_events(&adapter->client, i);
    struct watch *watch = &adapter->watches[i];
    struct epoll_event event;

    memset(&event, 0, sizeof event);
    event.data.ptr = watch;
    event.events = ((interest & REDLOCK_READABLE) ? (uint32_t)EPOLLIN : 0) |
                   ((interest & REDLOCK_WRITABLE) ? (uint32_t)EPOLLOUT : 0);
    if (event.events == watch->events)
        return;
    if (epoll_ctl(adapter->epoll, watch->events != 0 ? EPOLL_CTL_MOD : EPOLL_CTL_ADD,
                  (int)adapter->nodes[i].handle, &event) == 0)
        watch->events = event.events;
}

/* Before each sleep, so after any starts and events: lets the library decide and send, hands out what has ended.
   How long the sleep may be, for epoll_wait; your loop takes the shortest of what its parts want. */
static int before_sleep(struct adapter *adapter)
{
    uint64_t wait_us = redlock_tick(&adapter->client);
    struct redlock_lock *lock;
    unsigned i;

    while ((lock = redlock_next_completed(&adapter->client)) != NULL) {
        adapter->done(lock);
        wait_us = 0; /* it may have started something */
    }
    for (i = 0; i < adapter->count; i++)
        watch_node(adapter, i);
    if (wait_us == REDLOCK_NEVER)
        return -1;
    return wait_us < 60000000 ? (int)((wait_us + 999) / 1000) : 60000;
}

/* For an event whose data.ptr is one of the watches. */
static void on_event(const struct epoll_event *event)
{
    struct watch *watch = (struct watch *)event->data.ptr;
    unsigned events = 0;

    if (event->events & (EPOLLIN | EPOLLERR | EPOLLHUP))
        events |= REDLOCK_READABLE;
    if (event->events & (EPOLLOUT | EPOLLERR | EPOLLHUP))
        events |= REDLOCK_WRITABLE;
    redlock_handle_events(&watch->adapter->client, (unsigned)(watch - watch->adapter->watches),
                          events);
}

/* redlock_init, with settings of yours. The adapter must not move until detach; it uses user_data of the nodes. */
static enum redlock_status attach(struct adapter *adapter, int epoll, struct redlock_node *nodes,
                                  unsigned count, void (*done)(struct redlock_lock *lock))
{
    unsigned i;

    memset(adapter, 0, sizeof *adapter);
    adapter->epoll = epoll;
    adapter->nodes = nodes;
    adapter->count = count;
    adapter->done = done;
    adapter->io = *redlock_posix();
    adapter->io.shut = shut;
    for (i = 0; i < count && i < REDLOCK_NODES_MAX; i++) {
        adapter->watches[i].adapter = adapter;
        nodes[i].user_data = &adapter->watches[i];
    }
    return redlock_init(&adapter->client, &adapter->io, nodes, count, NULL);
}

static void detach(struct adapter *adapter)
{
    redlock_deinit(&adapter->client); /* shuts all connections */
}

int main(int argc, char **argv)
{
    struct adapter adapter;
    struct app app;
    struct epoll_event ready[16];
    int i, n, epoll = epoll_create1(EPOLL_CLOEXEC);

    if (epoll < 0 || !app_arguments(&app, argc, argv))
        return 2;
    app_start(&app, &adapter.client, attach(&adapter, epoll, app.nodes, app.count, app_done));
    while (app.busy > 0) {
        n = epoll_wait(epoll, ready, 16, before_sleep(&adapter));
        for (i = 0; i < n; i++)
            on_event(&ready[i]);
    }
    detach(&adapter);
    close(epoll);
    return app.status;
}
