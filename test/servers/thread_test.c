/* thread_test.c - one client for each thread, all on the same servers and the same lock. Run under
   ThreadSanitizer, which would report memory that two clients share.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "lock_options.h"
#include "redlock.h"
#include "servers.h"
#include "tap.h"

#include <pthread.h>
#include <string.h>

enum { NODES = 5, THREADS = 6, TURNS = 40 };

static struct server servers[NODES];
static int inside, together,
    turns; /* atomic operations only: ThreadSanitizer does not know the lock */

static void *contend(void *unused)
{
    static const struct redlock_settings patient = {.node_timeout_ms = 5000, .stall_ms = 15000};
    struct redlock_node nodes[NODES];
    struct redlock_client client;
    struct redlock_lock lock;
    int i, won = 0;
    long until = now_ms() + 120000;

    memset(nodes, 0, sizeof nodes);
    for (i = 0; i < NODES; i++)
        nodes[i].address = servers[i].address;
    if (redlock_init(&client, redlock_posix(), nodes, NODES, &patient) != REDLOCK_OK)
        return unused;
    redlock_lock_init(&lock, "threads", 20000);
    set_use_fencing(&lock, 1);
    while (won < TURNS && now_ms() < until) {
        if (redlock_acquire(&client, &lock, 20000) != REDLOCK_OK)
            continue;
        won++;
        if (__atomic_add_fetch(&inside, 1, __ATOMIC_SEQ_CST) > 1)
            __atomic_add_fetch(&together, 1, __ATOMIC_SEQ_CST);
        __atomic_sub_fetch(&inside, 1, __ATOMIC_SEQ_CST);
        redlock_release(&client, &lock, 5000);
    }
    __atomic_add_fetch(&turns, won, __ATOMIC_SEQ_CST);
    redlock_deinit(&client);
    return unused;
}

int main(void)
{
    pthread_t threads[THREADS];
    int i;

    servers_start(servers, NODES, NULL);
    for (i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, contend, NULL) != 0)
            return 1;
    for (i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    is_int(turns, THREADS * TURNS, "%d threads with a client each: all acquire the lock %d times",
           THREADS, TURNS);
    is_int(together, 0, "never two threads at once");
    return done_testing();
}
