/* descriptor.c - redlock as one descriptor for any loop that can watch one: nginx, Qt, Asio, uloop, GLib, poll. It is an epoll with
   the connections and a timer in it, and is readable when a turn is due. Linux. Copy everything above the example into your
   program, with the adapter of epoll.c in place of the line that includes it. To build and run the example, from the top
   folder:
   make && cc -I. examples/loops/descriptor.c examples/loops/app.c build/libredlock.a
   ./a.out demo 10 127.0.0.1:7001 127.0.0.1:7002 127.0.0.1:7003

   Pitfalls:
   * The loop must watch it level-triggered: a turn reads a bounded amount, and what remains makes it readable again at once.
   * Remove it from your loop before you detach.
   * A forked child shares the epoll: let it close `fd` and `loop.epoll`, which are one descriptor, and set both to -1 before detach.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#define REDLOCK_DESCRIPTOR
#include "epoll.c"

#include <sys/timerfd.h>
#include <time.h>

struct redlock_descriptor {
    struct redlock_epoll loop; /* with the client: loop.client */
    int fd;                    /* watch it for reading */
    int timer;
};

/* The descriptor becomes readable after wait_us, 0: at once, REDLOCK_NEVER: not by the timer. */
static void redlock_descriptor_arm(struct redlock_descriptor *adapter, uint64_t wait_us)
{
    struct itimerspec due;

    memset(&due, 0, sizeof due); /* 0 stops the timer */
    if (wait_us != REDLOCK_NEVER) {
        due.it_value.tv_sec = (time_t)(wait_us / 1000000);
        due.it_value.tv_nsec = wait_us == 0 ? 1 : (long)(wait_us % 1000000) * 1000;
    }
    timerfd_settime(adapter->timer, 0, &due, NULL); /* takes back an expiry that was not read */
}

/* Call after each operation that you start or cancel outside of `done`, and after each blocking call there: it may have completed
   others. */
static void redlock_descriptor_wake(struct redlock_descriptor *adapter)
{
    redlock_descriptor_arm(adapter, 0);
}

/* Call when the descriptor is readable. Does not block. */
static void redlock_descriptor_turn(struct redlock_descriptor *adapter)
{
    struct epoll_event ready[REDLOCK_NODES_MAX + 1];
    struct redlock_lock *completed;
    int i, n = epoll_wait(adapter->fd, ready, REDLOCK_NODES_MAX + 1, 0);

    for (i = 0; i < n; i++)
        if (ready[i].data.ptr != NULL) /* NULL is the timer */
            redlock_epoll_on_event(&ready[i]);
    redlock_descriptor_arm(adapter, redlock_epoll_decide(&adapter->loop, &completed));
    redlock_epoll_deliver(&adapter->loop, completed);
}

/* Calls redlock_epoll_attach, with its redlock_init; pass your settings there. Also if that fails, call detach. The adapter must
   not move until detach. It uses user_data of the nodes. */
static enum redlock_status redlock_descriptor_attach(struct redlock_descriptor *adapter,
                                                     struct redlock_node *nodes, unsigned count,
                                                     redlock_epoll_done *done, void *context)
{
    struct epoll_event event;
    enum redlock_status status;

    adapter->fd = epoll_create1(EPOLL_CLOEXEC);
    /* Like the library's clock, this one also runs while the machine is suspended. */
    adapter->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    memset(&event, 0, sizeof event);
    event.events = EPOLLIN;
    status = redlock_epoll_attach(&adapter->loop, adapter->fd, nodes, count, done, context);
    if (epoll_ctl(adapter->fd, EPOLL_CTL_ADD, adapter->timer, &event) != 0)
        return REDLOCK_INVALID_ARGUMENT; /* no descriptors left */
    redlock_descriptor_wake(adapter);
    return status;
}

static void redlock_descriptor_detach(struct redlock_descriptor *adapter)
{
    redlock_epoll_detach(&adapter->loop);
    if (adapter->timer >= 0)
        close(adapter->timer);
    if (adapter->fd >= 0)
        close(adapter->fd);
}

/* ---- The example; everything above is the adapter ---- */

#include "app.h"

#include <poll.h>

int main(int argc, char **argv)
{
    struct redlock_descriptor adapter;
    struct app app;
    struct pollfd fd;

    if (!app_arguments(&app, argc, argv))
        return 2;
    app_start(&app, &adapter.loop.client,
              redlock_descriptor_attach(&adapter, app.nodes, app.count, app_done, &app));
    fd.fd = adapter.fd;
    fd.events = POLLIN;
    while (app.busy > 0)
        if (poll(&fd, 1, -1) > 0)
            redlock_descriptor_turn(&adapter);
    redlock_descriptor_detach(&adapter);
    return app.status;
}
