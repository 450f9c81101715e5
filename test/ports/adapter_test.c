/* adapter_test.c - what `done` and a forked child may do with the adapters of examples/loops, and a refused attach. `make
   test-loops` puts each adapter before this file.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "servers.h"
#include "tap.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- The loop: attach, begin, one turn that may sleep, and what a child does before detach ---------------------------- */

#ifdef LOOP_epoll
#define ADAPTER redlock_epoll
static struct redlock_epoll adapter;
static int loop;

static void loop_begin(void)
{
    loop = epoll_create1(EPOLL_CLOEXEC);
}

static void loop_turn(void)
{
    struct epoll_event ready[16];
    int i, n = epoll_wait(loop, ready, 16, redlock_epoll_before_sleep(&adapter));

    for (i = 0; i < n; i++)
        redlock_epoll_on_event(&ready[i]);
}

static void loop_forked(void)
{
    close(loop);
}
#endif

#ifdef LOOP_libuv
#define ADAPTER redlock_libuv
static struct redlock_libuv adapter;
static uv_loop_t *loop;

static void loop_begin(void)
{
    loop = uv_default_loop();
}

static void loop_turn(void)
{
    uv_run(loop, UV_RUN_ONCE);
}

static void loop_forked(void)
{
    uv_loop_fork(loop);
}
#endif

#ifdef LOOP_libev
#define ADAPTER redlock_libev
static struct redlock_libev adapter;
static struct ev_loop *loop;

static void loop_begin(void)
{
    loop = ev_loop_new(EVFLAG_AUTO);
}

static void loop_turn(void)
{
    ev_run(loop, EVRUN_ONCE);
}

static void loop_forked(void)
{
}
#endif

#ifdef LOOP_libevent
#define ADAPTER redlock_libevent
static struct redlock_libevent adapter;
static struct event_base *loop;

static void loop_begin(void)
{
    loop = event_base_new();
}

static void loop_turn(void)
{
    event_base_loop(loop, EVLOOP_ONCE);
}

static void loop_forked(void)
{
    event_reinit(loop);
}
#endif

#ifdef LOOP_glib
#define ADAPTER redlock_glib
static struct redlock_glib adapter;
static GMainContext *loop;

static void loop_begin(void)
{
    loop = g_main_context_new();
}

static void loop_turn(void)
{
    g_main_context_iteration(loop, TRUE);
}

static void loop_forked(void)
{
}
#endif

#ifdef LOOP_sd_event
#define ADAPTER redlock_sd_event
static struct redlock_sd_event adapter;
static sd_event *loop;

static void loop_begin(void)
{
    sd_event_new(&loop);
}

static void loop_turn(void)
{
    sd_event_run(loop, UINT64_MAX);
}

static void loop_forked(void)
{
}
#endif

#ifdef LOOP_descriptor
#define ADAPTER redlock_descriptor
static struct redlock_descriptor adapter;

static void loop_begin(void)
{
}

static void loop_turn(void)
{
    struct pollfd fd = {adapter.fd, POLLIN, 0};

    if (poll(&fd, 1, -1) > 0)
        redlock_descriptor_turn(&adapter);
}

static void loop_forked(void)
{
    close(adapter.fd);
    adapter.fd = adapter.loop.epoll = -1;
}
#endif

/* call(attach) is redlock_epoll_attach, and so on. */
#define JOINED(adapter, name) adapter##_##name
#define EXPANDED(adapter, name) JOINED(adapter, name)
#define call(name) EXPANDED(ADAPTER, name)

/* The client, and the arguments of attach before the nodes. */
#ifdef LOOP_descriptor
#define CLIENT (&adapter.loop.client)
#define ATTACHED &adapter
#else
#define CLIENT (&adapter.client)
#define ATTACHED &adapter, loop
#endif

#if defined(LOOP_libevent) || defined(LOOP_sd_event) || defined(LOOP_descriptor)
#define WAKE() call(wake)(&adapter)
#else
#define WAKE() (void)0
#endif

/* Whether its timer counts a suspend, as the clock of the library does. */
#if defined(LOOP_sd_event) || defined(LOOP_descriptor)
enum { COUNTS_SUSPEND = 1 };
#else
enum { COUNTS_SUSPEND = 0 };
#endif

/* After detach, before the memory of the adapter is used again. */
#ifdef LOOP_libuv
#define REST() uv_run(loop, UV_RUN_NOWAIT)
#else
#define REST() (void)0
#endif

/* ---- The tests ------------------------------------------------------------------------------------------------------ */

enum { NODES = 3 };

static struct server servers[NODES];
static struct redlock_node nodes[NODES];
static struct redlock_lock lock, other;
static unsigned completed;

static void begin(void (*done)(struct redlock_lock *lock, void *context))
{
    unsigned i;

    REST();
    memset(nodes, 0, sizeof nodes);
    for (i = 0; i < NODES; i++)
        nodes[i].address = servers[i].address;
    is_int((int)call(attach)(ATTACHED, nodes, NODES, done, &completed), REDLOCK_OK, "attached");
    redlock_lock_init(&lock, "key", 20000);
    redlock_lock_init(&other, "other", 20000);
    completed = 0;
    redlock_acquire_start(CLIENT, &lock, 20000);
    WAKE();
}

static void turn_until(unsigned count)
{
    while (completed < count)
        loop_turn();
}

/* How often `done` has been called before; its context is &completed. */
static unsigned count(void *context)
{
    unsigned *calls = (unsigned *)context;

    return (*calls)++;
}

static void count_it(struct redlock_lock *one, void *context)
{
    (void)one;
    count(context);
}

static void detach_it(struct redlock_lock *one, void *context)
{
    redlock_release(CLIENT, one, 5000);
    call(detach)(&adapter);
    count(context);
}

static void done_detaches(void)
{
    begin(detach_it);
    turn_until(1);
    is_int((int)lock.status, REDLOCK_OK, "`done` has released the lock, and has detached");
}

/* The second time it is the end of the extension or release that the first time has started. */
static void block_in_it(struct redlock_lock *one, void *context)
{
    if (count(context) > 0)
        return;
    is_int((int)redlock_acquire(CLIENT, &other, 20000), REDLOCK_OK,
           "`done` waits for another lock");
    redlock_release(CLIENT, &other, 5000);
    redlock_release_start(CLIENT, one, 5000);
}

static void done_blocks(void)
{
    begin(block_in_it);
    turn_until(2);
    is_int((int)lock.status, REDLOCK_OK, "the operation that it has started is complete");
    call(detach)(&adapter);
}

/* Ten, because a paused machine may miss some; together they are shorter than stall_ms, when a node that seems to have
   no reply is read all the same. */
static void child_detaches(void)
{
    enum redlock_status status = REDLOCK_UNREACHABLE;
    unsigned tries;
    pid_t child;

    begin(count_it);
    turn_until(1);
    is_int((int)lock.status, REDLOCK_OK, "acquired");
    fflush(stdout);
    if ((child = fork()) == 0) {
        loop_forked();
        call(detach)(&adapter);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    for (tries = 0; tries < 10 && status == REDLOCK_UNREACHABLE; tries++) {
        redlock_extend_start(CLIENT, &lock);
        WAKE();
        turn_until(2 + tries);
        status = lock.status;
    }
    is_int((int)status, REDLOCK_OK, "a child has detached: its parent still hears the servers");
    redlock_release(CLIENT, &lock, 5000);
    call(detach)(&adapter);
}

/* The operation of another lock ends in a blocking call, between two turns. */
static void blocks_between_turns(void)
{
    unsigned tries;

    begin(count_it);
    for (tries = 0; tries < 100 && lock.status == REDLOCK_PENDING; tries++) {
        redlock_acquire(CLIENT, &other, 20000);
        redlock_release(CLIENT, &other, 5000);
    }
    is_int((int)lock.status, REDLOCK_OK, "the lock was acquired meanwhile");
    sleep_ms(100); /* late replies, too: only the completed lock is left to wake the loop */
    redlock_release(CLIENT, &other, 0);
    alarm(20);
    turn_until(1);
    alarm(0);
    is_int((int)completed, 1, "`done` is called for it");
    redlock_release(CLIENT, &lock, 5000);
    call(detach)(&adapter);
}

static void refused(void)
{
    REST();
    memset(nodes, 0, sizeof nodes);
    is_int((int)call(attach)(ATTACHED, nodes, NODES, count_it, &completed),
           REDLOCK_INVALID_ARGUMENT, "nodes without addresses are refused");
    call(detach)(&adapter);
}

#ifdef LOOP_glib
/* A dialog, for instance, that is open until the lock is extended. */
static void run_the_loop_in_it(struct redlock_lock *one, void *context)
{
    if (count(context) > 0)
        return;
    redlock_extend_start(CLIENT, one);
    turn_until(2);
}

/* Another source, which the loop serves before the adapter. First it blocks until the lock is acquired; when it is called again,
   it releases the lock and gives up its memory. */
static enum { BLOCKS, RELEASES, RESTS } other_source = RESTS;
static unsigned too_late;

static gboolean serve_other_source(gpointer unused)
{
    unsigned tries;

    (void)unused;
    if (other_source == RELEASES) {
        redlock_release(CLIENT, &lock, 5000);
        other_source = RESTS;
    } else if (other_source == BLOCKS) {
        redlock_acquire_start(CLIENT, &lock, 20000);
        for (tries = 0; tries < 100 && lock.status == REDLOCK_PENDING; tries++) {
            redlock_acquire(CLIENT, &other, 20000);
            redlock_release(CLIENT, &other, 5000);
        }
        other_source = RELEASES;
    }
    return G_SOURCE_CONTINUE;
}

static void count_until_it_is_released(struct redlock_lock *one, void *context)
{
    (void)one;
    too_late += other_source == RESTS && count(context) > 0;
}

static void another_source_releases(void)
{
    GSource *source = g_idle_source_new();
    unsigned turns;

    g_source_set_priority(source, G_PRIORITY_DEFAULT);
    g_source_set_callback(source, serve_other_source, NULL, NULL);
    g_source_attach(source, loop);
    begin(count_until_it_is_released);
    turn_until(1);
    redlock_release(CLIENT, &lock, 5000);
    sleep_ms(100);
    for (turns = 0; turns < 20; turns++) /* late replies */
        loop_turn();
    other_source = BLOCKS;
    while (other_source != RESTS)
        loop_turn();
    for (turns = 0; turns < 20; turns++)
        loop_turn();
    is_int((int)too_late, 0, "`done` is not called for a lock that another source has released");
    call(detach)(&adapter);
    g_source_destroy(source);
    g_source_unref(source);
}

static void done_runs_the_loop(void)
{
    alarm(20);
    begin(run_the_loop_in_it);
    turn_until(2);
    alarm(0);
    ok(lock.status == REDLOCK_OK || lock.status == REDLOCK_UNREACHABLE,
       "the lock is extended while `done` runs the loop");
    redlock_release(CLIENT, &lock, 5000);
    call(detach)(&adapter);
}
#else
static void another_source_releases(void)
{
}

static void done_runs_the_loop(void)
{
}
#endif

#ifdef LOOP_epoll
/* Another descriptor of the same batch, that of SIGTERM for instance, has led to it. */
static void detaches_in_a_batch(void)
{
    struct epoll_event ready[16];
    int i, n = 0;

    begin(count_it);
    while (n <= 0)
        n = epoll_wait(loop, ready, 16, redlock_epoll_before_sleep(&adapter));
    call(detach)(&adapter);
    for (i = 0; i < n; i++)
        redlock_epoll_on_event(&ready[i]);
    is_int((int)lock.status, REDLOCK_CANCELLED, "events of a batch do nothing after detach");
}
#else
static void detaches_in_a_batch(void)
{
}
#endif

/* A lock of 20 s is renewed each 7 s. The loop sleeps for less: a timer that does not count a suspend would wake it too late. */
static void sleeps_for_a_second(void)
{
    long start, before, longest = 0;

    begin(count_it);
    turn_until(1);
    redlock_auto_extend_start(CLIENT, &lock, REDLOCK_NO_LIMIT);
    WAKE();
    for (start = now_ms(); now_ms() < start + 2500;) {
        before = now_ms();
        loop_turn();
        if (longest < now_ms() - before)
            longest = now_ms() - before;
    }
    ok(longest > 500 && longest < 5000, "a turn takes about a second at most: %ld ms", longest);
    redlock_release(CLIENT, &lock, 5000);
    call(detach)(&adapter);
}

int main(void)
{
    servers_start(servers, NODES, NULL);
    loop_begin();
    done_detaches();
    done_blocks();
    child_detaches();
    blocks_between_turns();
    refused();
    done_runs_the_loop();
    another_source_releases();
    detaches_in_a_batch();
    if (!COUNTS_SUSPEND)
        sleeps_for_a_second();
    is_int((int)servers_keys_left("*", 10000), 0, "no key is left");
    return done_testing();
}
