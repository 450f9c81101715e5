/* suspend_test.c - the machine is suspended while redlock_posix() waits. The linker replaces the clock and poll() by functions of
   this file: a wait in which nothing comes ends at once, and the clocks move on by its timeout; CLOCK_BOOTTIME also by the time for
   which the machine is suspended in it.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* ppoll */
#include "redlock.h"
#include "servers.h"
#include "tap.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#define WRAPPED(type, name, ...)                                                                   \
    type __real_##name(__VA_ARGS__);                                                               \
    type __wrap_##name(__VA_ARGS__);                                                               \
    type __wrap_##name(__VA_ARGS__)

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __real_poll(struct pollfd *fds, nfds_t count, int timeout);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout);
int __wrap_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
                 const sigset_t *mask);

enum { NODES = 3, ANSWER_MS = 100 };

static struct server servers[NODES];
static struct redlock_node nodes[NODES];
static struct redlock_client client;
static struct redlock_lock lock;
/* No vote is late on a busy machine. */
static const struct redlock_settings patient = {.node_timeout_ms = 5000, .stall_ms = 5000};

static long long passed_us;       /* for which both clocks are ahead */
static long long suspended_us;    /* for which CLOCK_BOOTTIME is ahead of that */
static long long will_suspend_us; /* in the next wait in which nothing comes */
static long long since_us;        /* passed_us when it was suspended last */

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
    int result = __real_clock_gettime(clock, now);
    long long us = now->tv_sec * 1000000LL + now->tv_nsec / 1000 + passed_us +
                   (clock == CLOCK_BOOTTIME ? suspended_us : 0);

    if (clock == CLOCK_BOOTTIME || clock == CLOCK_MONOTONIC) {
        now->tv_sec = (time_t)(us / 1000000);
        now->tv_nsec = (long)(us % 1000000) * 1000;
    }
    return result;
}

static int waits(struct pollfd *fds, nfds_t count, long long timeout_us)
{
    int ready = __real_poll(fds, count, timeout_us < ANSWER_MS * 1000 ? 0 : ANSWER_MS);

    if (ready != 0)
        return ready;
    passed_us += timeout_us;
    if (will_suspend_us > 0)
        since_us = passed_us - timeout_us;
    suspended_us += will_suspend_us;
    will_suspend_us = 0;
    return 0;
}

int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout)
{
    return timeout < 0 ? __real_poll(fds, count, timeout) : waits(fds, count, timeout * 1000LL);
}

int __wrap_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
                 const sigset_t *mask)
{
    (void)mask;
    if (timeout == NULL)
        return __real_poll(fds, count, -1);
    return waits(fds, count, timeout->tv_sec * 1000000LL + timeout->tv_nsec / 1000);
}

static void begin(void)
{
    unsigned i;

    for (i = 0; i < NODES; i++)
        redlock_node_init(&nodes[i], servers[i].address);
    if (redlock_init(&client, redlock_posix(), nodes, NODES, &patient) != REDLOCK_OK)
        ok(0, "init");
    redlock_lock_init(&lock, "key", 9000);
}

/* Turns until the lock is complete, or `us` have passed, not counting a suspend. */
static void turn(long long us)
{
    long long end_us = passed_us + us;

    while (redlock_turn(&client, REDLOCK_NEVER) == NULL && passed_us < end_us)
        continue;
}

/* A lock of 9 s, which is renewed each 3 s. */
static void hold(void)
{
    is_int((int)redlock_acquire(&client, &lock, 10000), REDLOCK_OK, "a lock of 9 s is held");
    redlock_auto_extend_start(&client, &lock, REDLOCK_NO_LIMIT);
}

static void shorter_than_the_ttl(void)
{
    begin();
    hold();
    will_suspend_us = 7000000;
    turn(30000000);
    is_int((int)suspended_us, 7000000, "suspended for 7 s");
    is_int((int)lock.status, REDLOCK_PENDING, "it is renewed at the resume, and held 30 s later");
    ok(redlock_remaining_ms(&client, &lock) > 1000, "it is valid");
    redlock_release(&client, &lock, 5000);
    redlock_deinit(&client);
}

static void longer_than_the_ttl(void)
{
    begin();
    hold();
    will_suspend_us = 20000000;
    turn(30000000);
    is_int((int)lock.status, REDLOCK_LOST, "suspended for 20 s: it is lost");
    ok(passed_us - since_us <= 1000000, "which is reported within a second of the resume: %ld us",
       (long)(passed_us - since_us));
    redlock_release(&client, &lock, 5000);
    redlock_deinit(&client);
}

int main(void)
{
    servers_start(servers, NODES, NULL);
    shorter_than_the_ttl();
    longer_than_the_ttl();
    return done_testing();
}
