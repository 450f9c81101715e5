/* demo.c - a lock on five real redis-servers, as a timeline. `make demo` runs it. It uses the library as
   any program would; only the code that starts and kills servers is test/lib/servers.c.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "redlock.h"
#include "servers.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { NODES = 5 };

struct side { /* a client that wants the lock */
    const char *name;
    struct redlock_node nodes[NODES];
    struct redlock_client client;
    struct redlock_lock lock;
};

static struct server servers[NODES];
static struct side a = {.name = "A"}, b = {.name = "B"};
static double began_ms;
static int surprises;

static double clock_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1000 + (double)now.tv_nsec / 1e6;
}

#if defined(__GNUC__)
__attribute__((format(printf, 1, 2)))
#endif
static void
say(const char *format, ...)
{
    va_list arguments;

    printf("%9.1f ms  ", clock_ms() - began_ms);
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\n");
    fflush(stdout);
}

static void heading(const char *text)
{
    printf("\n%s\n", text);
}

/* Exits with an error: a demonstration that fails must not look like a success. */
static void expect(int as_it_should_be)
{
    if (as_it_should_be)
        return;
    surprises++;
    say("UNEXPECTED: this is not what should have happened");
}

static void votes(const struct side *side)
{
    int i;

    for (i = 0; i < NODES; i++) {
        const char *vote = side->lock.granted >> i & 1   ? "granted"
                           : side->lock.refused >> i & 1 ? "refused"
                           : side->lock.failed >> i & 1  ? "failed"
                                                         : "no longer needed";
        say("    node %d  %-20s  %s%s%s", i + 1, side->nodes[i].address, vote,
            side->lock.failed >> i & 1 ? ": " : "",
            side->lock.failed >> i & 1 ? side->nodes[i].error : "");
    }
}

/* Acquires the lock for ttl_ms, and prints the result. */
static enum redlock_status acquire(struct side *side, uint32_t ttl_ms, uint32_t wait_ms)
{
    enum redlock_status status;
    double start = clock_ms();

    redlock_lock_init(&side->lock, "redlock:demo", ttl_ms);
    status = redlock_acquire(&side->client, &side->lock, wait_ms);
    if (status == REDLOCK_OK)
        say("%s holds the lock after %.1f ms; it is valid for %lu ms", side->name,
            clock_ms() - start, (unsigned long)redlock_remaining_ms(&side->client, &side->lock));
    else
        say("%s does not acquire it: %s (%.1f ms)", side->name, redlock_strerror(status),
            clock_ms() - start);
    return status;
}

static enum redlock_status release(struct side *side)
{
    enum redlock_status status = redlock_release(&side->client, &side->lock, 200);

    say("%s releases: %s", side->name,
        status == REDLOCK_OK ? "released" : redlock_strerror(status));
    return status;
}

static void set_up(struct side *side)
{
    int i;

    for (i = 0; i < NODES; i++)
        side->nodes[i].address = servers[i].address;
    expect(redlock_init(&side->client, redlock_posix(), side->nodes, NODES, NULL) == REDLOCK_OK);
}

static void hand_over(void)
{
    struct redlock_lock *completed = NULL;
    double start = clock_ms(), freed = 0;

    heading("A extends. B waits. A releases, B acquires");
    expect(redlock_extend(&a.client, &a.lock) == REDLOCK_OK);
    say("A extends: valid for %lu ms from now",
        (unsigned long)redlock_remaining_ms(&a.client, &a.lock));
    redlock_lock_init(&b.lock, "redlock:demo", 10000);
    redlock_acquire_start(&b.client, &b.lock, 5000);
    say("B waits for 5 s at most");
    while (completed == NULL && clock_ms() - start < 6000) {
        completed = redlock_turn(&b.client, 10000);
        if (freed == 0 && clock_ms() - start > 400) {
            expect(release(&a) == REDLOCK_OK);
            freed = clock_ms();
        }
    }
    expect(completed == &b.lock && b.lock.status == REDLOCK_OK);
    say("B holds the lock, %.1f ms after A's release", clock_ms() - freed);
    expect(release(&b) == REDLOCK_OK);
}

static void kill_node(int i)
{
    server_kill(&servers[i]);
    say("node %d (%s) is killed", i + 1, servers[i].address);
}

static void failures(void)
{
    int i;

    heading("Two of five servers crash: the lock still works");
    kill_node(0);
    kill_node(1);
    expect(acquire(&a, 5000, 0) == REDLOCK_OK);
    votes(&a);
    expect(release(&a) == REDLOCK_OK);
    heading("A third one crashes: no quorum, no lock");
    kill_node(2);
    expect(acquire(&a, 5000, 0) == REDLOCK_UNREACHABLE);
    votes(&a);
    heading("The servers are restarted");
    for (i = 0; i < 3; i++)
        server_restart(&servers[i]);
    say("nodes 1, 2 and 3 are running again");
    expect(acquire(&a, 5000, 4000) == REDLOCK_OK);
    votes(&a);
    expect(release(&a) == REDLOCK_OK);
}

int main(void)
{
    int i;

    printf("starting five redis-servers ...\n");
    servers_start(servers, NODES, NULL);
    began_ms = clock_ms();
    for (i = 0; i < NODES; i++)
        say("node %d is %s", i + 1, servers[i].address);
    set_up(&a);
    set_up(&b);
    heading("A acquires the lock for 10 s. B tries to acquire it without waiting");
    expect(acquire(&a, 10000, 0) == REDLOCK_OK);
    votes(&a);
    expect(acquire(&b, 10000, 0) == REDLOCK_HELD);
    votes(&b);
    hand_over();
    failures();
    heading("A acquires it for 1.5 s and crashes. B waits");
    expect(acquire(&a, 1500, 0) == REDLOCK_OK);
    redlock_deinit(&a.client);
    say("A has crashed without a release");
    expect(acquire(&b, 10000, 5000) == REDLOCK_OK);
    expect(release(&b) == REDLOCK_OK);
    redlock_deinit(&b.client);
    servers_stop();
    printf("\n%s\n", surprises == 0 ? "Everything as expected; all servers are stopped."
                                    : "NOT as expected: see UNEXPECTED above.");
    return surprises != 0;
}
