/* lock_limits_test.c - R5, R12, R19: what works with the smallest limits, too: two requests, or one byte that is
   read at once (`make test-short`).

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "one_lock.h"

/* The process sleeps for longer than stall_ms while a long reply comes. It is read before the node is given up. */
static void r05_a_paused_process_reads_a_long_reply(void)
{
    char holder[60];
    unsigned i;

    begin_with_defaults(3);
    warm_up();
    set_holder(&lock, holder, sizeof holder);
    held_by("0123456789012345678901234567890123456789, the label of the holder", 0, 2);
    for (i = 0; i < 3; i++) {
        redlock_acquire_start(&client, &lock, 0);
        redlock_tick(&client);
        fake_sleep_us = 2000 * MS;
        fake_pass(&client, 1000 * MS);
        fake_sleep_us = 2000 * MS;
        fake_pass(&client, 500 * MS);
        is_int((int)lock.status, REDLOCK_HELD, "r05: refused, after a pause in the rollback");
    }
    is_int(fake_nodes[0].connects, 1, "r05: the connection stays up");
}

/* A request takes its place until all its replies have come: whoever finds none in between is told when there is one.
   With two places, of which one is for rollbacks, no later reply tells it. */
static void r05_room_after_a_reply(void)
{
    struct redlock_lock many[REDLOCK_PIPELINE_MAX];
    unsigned i, held = 0;

    if (REDLOCK_PIPELINE_MAX > 26)
        return;
    begin_with_defaults(1);
    warm_up();
    fake_nodes[0].drip = 1;
    for (i = 0; i < REDLOCK_PIPELINE_MAX; i++) {
        init_bytes(&many[i], &"abcdefghijklmnopqrstuvwxyz"[i], 1, 10000);
        redlock_acquire_start(&client, &many[i], 1000);
    }
    fake_pass(&client, 1100 * MS);
    for (i = 0; i < REDLOCK_PIPELINE_MAX; i++)
        held += many[i].status == REDLOCK_OK;
    is_int((int)held, REDLOCK_PIPELINE_MAX, "r05: one lock more than there is room for");
    redlock_deinit(&client);
}

/* Its later connections have a handshake, too, although HELLO is left out: a hung server accepts connections. */
static void r12_an_old_server_without_a_password(uint32_t database)
{
    uint64_t start;

    begin_with_defaults(1);
    fake_nodes[0].server.old = 1;
    nodes[0].database = database;
    start = fake_now_us;
    is_int(acquire(0), REDLOCK_OK, "r12: a server without HELLO, no password");
    ok(since(start) < 10 * MS, "r12: at once, after %ld us", since(start));
    is_int(fake_nodes[0].connects, 1, "r12: one connection is enough");
    release(100);
    fake_break(0);
    fake_pass(&client, 20 * MS);
    start = fake_now_us;
    is_int(acquire(0), REDLOCK_OK, "r12: acquired on the next connection");
    ok(since(start) < 10 * MS, "r12: at once, after %ld us", since(start));
    release(100);
    fake_break(0);
    fake_nodes[0].hung = 1;
    redlock_acquire_start(&client, &lock, 0);
    fake_pass(&client, 20 * MS);
    is_int((int)nodes[0].state, REDLOCK_NODE_HANDSHAKE,
           "r12: a connection to a hung server is not ready");
}

/* The longest attempt fits into the smallest send buffer that compiles. */
static void r19_the_longest_attempt(void)
{
    char key[REDLOCK_KEY_MAX], label[REDLOCK_LABEL_MAX + 1];

    memset(&settings, 0, sizeof settings);
    settings.fair = REDLOCK_FAIR;
    begin(1);
    memset(key, 'k', sizeof key);
    memset(label, 'l', sizeof label);
    init_bytes(&lock, key, sizeof key, 1000000000);
    set_label(&lock, label, REDLOCK_LABEL_MAX);
    set_use_fencing(&lock, !REDLOCK_MINIMAL);
    is_int(acquire(1000), REDLOCK_OK, "r19: the longest attempt of a waiter is sent");
    is_int(release(100), REDLOCK_OK, "r19: and its release");
    redlock_deinit(&client);
}

int main(void)
{
    r19_the_longest_attempt();
    r05_a_paused_process_reads_a_long_reply();
    r05_room_after_a_reply();
    if (REDLOCK_PIPELINE_MAX > 2 && REDLOCK_READ_MAX > 1)
        r12_an_old_server_without_a_password(0);
    r12_an_old_server_without_a_password(7);
    return done_testing();
}
