/* epoll.c - two locks from one epoll loop: acquired, extended, released. The functions above main are
   the whole adapter. Build: cc -std=c99 epoll.c redlock.c resp.c net.c -o epoll
   Run: ./epoll 127.0.0.1:7001 127.0.0.1:7002 127.0.0.1:7003

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "redlock.h"

#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

static struct redlock_node nodes[REDLOCK_NODES_MAX];
static unsigned count;
static struct redlock client;

/* What epoll knows of each node. A connection that the library closed has left epoll by itself, and
   its number may be in use again: the dial tells that it is another one. */
static struct {
    unsigned interest, dials;
} watched[REDLOCK_NODES_MAX];
static unsigned dials[REDLOCK_NODES_MAX];

static int counting_dial(void *context, struct redlock_node *node)
{
    dials[node - nodes]++;
    return redlock_posix()->dial(context, node);
}

static void watch(int epoll, unsigned i)
{
    unsigned interest = redlock_interest(&client, i);
    struct epoll_event event;
    int known = watched[i].dials == dials[i] && watched[i].interest != 0;

    if (known && watched[i].interest == interest)
        return;
    memset(&event, 0, sizeof event);
    event.data.u32 = i;
    event.events = ((interest & REDLOCK_READABLE) ? (uint32_t)EPOLLIN : 0) |
                   ((interest & REDLOCK_WRITABLE) ? (uint32_t)EPOLLOUT : 0);
    if (interest != 0)
        epoll_ctl(epoll, known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, (int)nodes[i].handle, &event);
    watched[i].interest = interest;
    watched[i].dials = dials[i];
}

static unsigned events_of(uint32_t bits)
{
    unsigned events = 0;

    if (bits & (EPOLLIN | EPOLLERR | EPOLLHUP))
        events |= REDLOCK_READABLE;
    if (bits & (EPOLLOUT | EPOLLERR | EPOLLHUP))
        events |= REDLOCK_WRITABLE;
    return events;
}

/* One turn: send and look at the time, new interests, sleep, events. The second tick decides on
   what the events brought: without it that would wait until after the next sleep. */
static void turn(int epoll)
{
    struct epoll_event ready[REDLOCK_NODES_MAX];
    uint64_t wait_us = redlock_tick(&client);
    int i, n;

    for (i = 0; i < (int)count; i++)
        watch(epoll, (unsigned)i);
    n = epoll_wait(epoll, ready, REDLOCK_NODES_MAX,
                   wait_us > 1000000 ? 1000 : (int)((wait_us + 999) / 1000));
    for (i = 0; i < n; i++)
        redlock_event(&client, ready[i].data.u32, events_of(ready[i].events));
    redlock_tick(&client);
}

static void troubles(void)
{
    unsigned i;

    for (i = 0; i < count; i++)
        fprintf(stderr, "  %s: %s\n", nodes[i].address, nodes[i].trouble);
}

int main(int argc, char **argv)
{
    static const char *const done[] = {"acquired", "extended", "released"};
    struct redlock_io io = *redlock_posix();
    struct redlock_lock locks[2], *lock;
    unsigned steps[2] = {0, 0}, turns, i, finished = 0;
    int epoll = epoll_create1(EPOLL_CLOEXEC);

    io.dial = counting_dial;
    for (count = 0; count + 1 < (unsigned)argc && count < REDLOCK_NODES_MAX; count++)
        nodes[count].address = argv[count + 1];
    if (epoll < 0 || redlock_init(&client, &io, nodes, count, NULL) != REDLOCK_OK) {
        fprintf(stderr, "usage: epoll ADDRESS:PORT ...\n");
        troubles();
        return 2;
    }
    for (i = 0; i < 2; i++) {
        redlock_lock_init(&locks[i], i == 0 ? "left" : "right", i == 0 ? 4 : 5, 10000);
        redlock_acquire_start(&client, &locks[i], 2000);
    }
    for (turns = 0; finished < 2 && turns < 10000; turns++) {
        turn(epoll);
        while ((lock = redlock_next_done(&client)) != NULL) {
            i = (unsigned)(lock - locks);
            printf("%s: %s: %s\n", (const char *)lock->key, done[steps[i]],
                   redlock_strerror(lock->status));
            if (lock->status != REDLOCK_OK) {
                troubles();
                return 1;
            }
            steps[i]++;
            if (steps[i] == 1)
                redlock_extend_start(&client, lock);
            else if (steps[i] == 2)
                redlock_release_start(&client, lock, 1000);
            else
                finished++;
        }
    }
    redlock_deinit(&client);
    close(epoll);
    return finished == 2 ? 0 : 1;
}
