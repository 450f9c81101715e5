/* lock_acquire_test.c - an attempt to acquire: tokens, all nodes at once, validity, quorum (R1 to R3).

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "one_lock.h"

static void r01_new_token_for_every_attempt(void)
{
    unsigned i, j, same = 0, sets;

    begin_with_defaults(5);
    held_by("other", 0, 4);
    is_int(acquire(3000), REDLOCK_TIMEOUT, "r01: another client holds it all the time");
    sets = fake_count(0, 'S');
    ok(sets > 3, "r01: %u attempts", sets);
    for (i = 0; i < fake_logged; i++)
        for (j = 0; j < i; j++)
            same += fake_log[i].kind == 'S' && fake_log[j].kind == 'S' &&
                    fake_log[i].node == fake_log[j].node &&
                    strcmp(fake_log[i].token, fake_log[j].token) == 0;
    is_int((int)same, 0, "r01: no token is sent to a node twice");
    for (i = 0, same = 0; i < fake_logged; i++)
        same += fake_log[i].kind == 'S' && fake_log[i].ttl_ms != 10000;
    is_int((int)same, 0, "T11: the ttl is the same on every retry");
}

static void r01_a_set_is_never_sent_again(void)
{
    begin_with_defaults(3);
    warm_up();
    fake_nodes[1].reply = ""; /* receives the SET and closes the connection without a reply */
    fake_nodes[1].reply_once = 1;
    fake_nodes[2].delay_us = 30 * MS;
    is_int(acquire(0), REDLOCK_OK, "r01: two of three grant, one connection breaks");
    fake_pass(&client, 200 * MS);
    is_int((int)fake_count(1, 'S'), 1, "r01 T41: the SET on the broken connection is not repeated");
}

static void r01_t1_is_read_before_the_first_byte(void)
{
    uint64_t start;

    begin_with_defaults(5);
    warm_up();
    fake_transmit_us = 100 * MS;
    start = fake_now_us;
    is_int(acquire(0), REDLOCK_OK, "r01: slow transmit");
    is_int((int)(lock.valid_until_us - start), 10000 * MS - 100 * MS - 2 * MS - 1,
           "r01: the validity starts before the first byte is sent");
}

static void r02_all_nodes_at_once(void)
{
    unsigned i, others = 0;

    begin_with_defaults(5);
    warm_up();
    acquire(0);
    is_int((int)fake_logged, 5, "r02: five commands");
    for (i = 0; i < 5; i++)
        others += fake_log[i].at_us != fake_log[0].at_us || fake_log[i].kind != 'S' ||
                  strcmp(fake_log[i].token, fake_log[0].token) != 0;
    is_int((int)others, 0, "r02: the same SET to all, sent before any reply");
}

static void r03_wall_clocks_decide_nothing(void)
{
    static const uint64_t clocks[] = {0, (uint64_t)1 << 50, ((uint64_t)1 << 50) + 10000000};
    unsigned i;

    for (i = 0; i < 3; i++) {
        begin_with_defaults(3);
        fake_wall_us = clocks[i];
        is_int(acquire(0), REDLOCK_OK, "r03 T10: acquired with any wall clock");
        ok(fake_find(0, "k", 1)->until_us == fake_log[fake_logged - 1].at_us + 10000 * MS,
           "r03 T10: the key expires after its ttl by the server's clock");
        fake_wall_us += (uint64_t)3600000 * MS;
        ok(redlock_remaining_ms(&client, &lock) > 9800,
           "r03 T10: a change of the wall clock does not shorten the validity");
    }
}

static void r03_decides_at_the_quorum(void)
{
    uint64_t start;
    unsigned i;

    begin_with_defaults(5);
    warm_up();
    for (i = 0; i < 5; i++)
        fake_nodes[i].delay_us = (i + 1) * 10 * MS;
    start = fake_now_us;
    is_int(acquire(0), REDLOCK_OK, "r03: held");
    is_int((int)since(start), 30 * MS, "r03: at the third grant");
    is_int(lock.granted, 7, "r03: with the three votes");
}

/* Validity is T1 + ttl - drift: 10000 - 100 - 2 ms. The replies arrive 1 us before its end, or at its end. */
static void r03_validity_must_be_positive(void)
{
    static const struct {
        uint64_t late_us;
        int status;
    } cases[] = {{9897999, REDLOCK_OK - 1 + 1}, {9898000, REDLOCK_TOO_LATE}};
    unsigned i;

    for (i = 0; i < 2; i++) {
        begin_with_defaults(3);
        warm_up();
        fake_sleep_us = cases[i].late_us - 1 - 1000;
        is_int(acquire(0), cases[i].status, "r03 T2 T18: asleep for %lu us of the ttl",
               (unsigned long)cases[i].late_us);
        is_int((int)redlock_remaining_ms(&client, &lock), 0, "r03: no validity left");
        if (cases[i].status != REDLOCK_OK)
            is_int((int)fake_keys_left(), 0, "r03 T19: a lock acquired too late is rolled back");
    }
}

static void r03_drift_has_a_minimum(void)
{
    uint64_t start;

    begin_with_defaults(1);
    lock.ttl_ms = 10;
    fake_nodes[0].delay_us = 0;
    start = fake_now_us;
    is_int(acquire(0), REDLOCK_OK, "r03 T17: ttl of 10 ms");
    is_int((int)(lock.valid_until_us - start), 10 * MS - 100 - 2 * MS - 1,
           "r03 T17: drift is 1 percent and 2 ms");
    release(0);
    settings.drift_ppm = REDLOCK_NONE;
    begin(1);
    warm_up();
    start = fake_now_us;
    acquire(0);
    is_int((int)(lock.valid_until_us - start), 9998 * MS - 1,
           "r03: with a ratio of 0 the drift is 2 ms");
}

static void r03_quorum(void)
{
    static const struct {
        unsigned count, quorum, free;
        int status;
    } cases[] = {
        {1, 0, 1, REDLOCK_OK},        {2, 0, 2, REDLOCK_OK},   {2, 0, 1, REDLOCK_CONTENDED},
        {3, 0, 2, REDLOCK_OK},        {3, 0, 1, REDLOCK_HELD}, {4, 0, 3, REDLOCK_OK},
        {4, 0, 2, REDLOCK_CONTENDED}, {5, 0, 3, REDLOCK_OK},   {5, 0, 2, REDLOCK_HELD},
        {7, 0, 4, REDLOCK_OK},        {7, 0, 3, REDLOCK_HELD}, {9, 0, 5, REDLOCK_OK},
        {9, 0, 4, REDLOCK_HELD},      {5, 4, 4, REDLOCK_OK},   {5, 4, 3, REDLOCK_CONTENDED},
        {5, 5, 4, REDLOCK_CONTENDED}, {5, 5, 5, REDLOCK_OK},
    };
    unsigned i;

    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (cases[i].count > REDLOCK_NODES_MAX)
            continue; /* the limit of this build */
        memset(&settings, 0, sizeof settings);
        settings.quorum = cases[i].quorum;
        begin(cases[i].count);
        held_by("other", (int)cases[i].free, (int)cases[i].count - 1);
        is_int(acquire(0), cases[i].status, "r03 T1 T5: %u of %u nodes free, quorum %u",
               cases[i].free, cases[i].count, cases[i].quorum);
        release(100);
        is_int((int)fake_keys_left(), (int)(cases[i].count - cases[i].free),
               "r03 T1: no key of ours is left");
    }
}

/* More attempts than the queue has room for: they begin in the order in which they were started, also when
   more are started meanwhile. */
static void r02_attempts_wait_in_line_for_room(void)
{
    static struct redlock_lock many[40];
    static char keys[40][4];
    unsigned i, begun = 0, in_line = 0;

    begin_with_defaults(3);
    warm_up();
    fake_logged = 0;
    for (i = 0; i < 40; i++) {
        snprintf(keys[i], sizeof keys[i], "m%02u", i);
        redlock_lock_init(&many[i], keys[i], 3, 10000);
        redlock_acquire_start(&client, &many[i], 1000);
        redlock_tick(&client);
        if (i % 10 == 9)
            fake_pass(&client, 100); /* some replies arrive, then more are started */
    }
    fake_pass(&client, 100 * MS);
    for (i = 0; i < fake_logged; i++)
        if (fake_log[i].node == 0 && fake_log[i].kind == 'S')
            in_line += strcmp(fake_log[i].key, keys[begun++]) == 0;
    is_int((int)begun, 40, "r02: all 40 attempts are sent");
    is_int((int)in_line, 40, "r02: in the order in which they were started");
}

/* A node is connected when more locks are held than it has room for. It is sent all of them, although none of those that have
   completed is taken. */
static void r02_completed_locks_share_a_late_node(void)
{
    static struct redlock_lock many[40];
    static char keys[40][4];
    unsigned i, held = 0, found = 0;

    begin_with_defaults(3);
    fake_nodes[2].refuses = 1;
    warm_up();
    for (i = 0; i < 40; i++) {
        snprintf(keys[i], sizeof keys[i], "l%02u", i);
        redlock_lock_init(&many[i], keys[i], 3, 60000);
        redlock_acquire_start(&client, &many[i], 5000);
    }
    fake_pass(&client, 2000 * MS);
    for (i = 0; i < 40; i++)
        held += many[i].status == REDLOCK_OK;
    fake_nodes[2].refuses = 0;
    fake_pass(&client, 4000 * MS);
    for (i = 0; i < 40; i++)
        found += fake_find(2, keys[i], 3) != NULL;
    is_int((int)held, 40, "r02: 40 locks are held on two of three nodes");
    is_int((int)found, 40, "r02: and on the third when it is back");
}

static void r01_tokens_differ(void)
{
    uint8_t first[20];

    begin_with_defaults(1);
    acquire(0);
    memcpy(first, lock.token, sizeof first);
    release(10);
    acquire(0);
    ok(memcmp(first, lock.token, sizeof first) != 0, "T16: each acquire has a new token");
}

/* A quorum waits 100 ms at most for the connections to the rest, also when node_timeout_ms is long. */
static void r02_a_long_timeout_does_not_delay_a_new_client(void)
{
    uint64_t start;

    memset(&settings, 0, sizeof settings);
    settings.node_timeout_ms = 500;
    begin(3);
    fake_nodes[2].never_up = 1;
    start = fake_now_us;
    is_int(acquire(0), REDLOCK_OK, "r02: one of three never connects");
    ok(since(start) < 110 * MS, "r02: that takes 100 ms: %ld us", since(start));
}

/* The connection is slow, and so is each reply to the handshake: together they delay an attempt by 100 ms at most. */
static void r02_a_slow_handshake_does_not_delay_a_new_client(void)
{
    uint64_t start;
    int i;

    begin_with_defaults(3);
    fake_nodes[2].connect_us = fake_nodes[2].delay_us = 70 * MS;
    start = fake_now_us;
    is_int(acquire(0), REDLOCK_OK, "r02: one of three takes two round trips of 70 ms");
    ok(since(start) < 110 * MS, "r02: that takes 100 ms: %ld us", since(start));
    begin_with_defaults(5);
    for (i = 0; i < 5; i++)
        fake_nodes[i].connect_us = fake_nodes[i].delay_us = i < 3 ? 60 * MS : 80 * MS;
    start = fake_now_us;
    is_int(acquire(0), REDLOCK_OK, "r02: a quorum that is ready after 120 ms");
    is_int((int)since(start), 220 * MS, "r02: waits for the rest, which takes 160 ms");
}

/* Without a quorum an attempt waits for connections for stall_ms, however they share it with their handshakes. */
static void r02_connections_have_stall_ms(void)
{
    uint64_t start;

    begin_with_defaults(1);
    fake_nodes[0].connect_us = 600 * MS;
    fake_nodes[0].hung = 1;
    start = fake_now_us;
    is_int(acquire(0), REDLOCK_UNREACHABLE, "r02: the handshake is not answered");
    ok(since(start) <= 1000 * MS + 3 * 50 * MS, "r02: ends after stall_ms: %ld us", since(start));
    memset(&settings, 0, sizeof settings);
    settings.node_timeout_ms = 2;
    settings.stall_ms = 6;
    begin(1);
    fake_nodes[0].server.password = "secret";
    fake_nodes[0].delay_us = 100;
    is_int(acquire(0), REDLOCK_DENIED, "r02: without the password");
    fake_pass(&client, 1 * MS);
    start = fake_now_us;
    is_int(acquire(0), REDLOCK_DENIED,
           "r02: a pause before the next connect is longer than stall_ms");
    ok(since(start) <= 12 * MS, "r02: ends after stall_ms: %ld us", since(start));
}

/* An attempt does not wait for a node that has failed before, also not while it waits for another one. */
static void r02_a_node_that_failed_does_not_delay_the_others(void)
{
    uint64_t start;
    int i;

    begin_with_defaults(5);
    fake_nodes[3].never_up = fake_nodes[4].refuses = 1;
    redlock_acquire_start(&client, &lock, 0);
    redlock_tick(&client);
    fake_nodes[4].refuses = 0; /* the next connect does not fail, but takes long */
    fake_nodes[4].never_up = 1;
    fake_pass(&client, 110 * MS);
    is_int(lock.status, REDLOCK_OK,
           "r02: not for longer than 100 ms, when one that failed connects");
    ok(fake_nodes[4].connects > 1, "r02: it was connected meanwhile");
    begin_with_defaults(3);
    fake_nodes[2].refuses = 1;
    warm_up();
    fake_nodes[2].refuses = 0;
    fake_nodes[2].never_up = 1;
    fake_pass(&client, 3000 * MS);
    for (i = 0; i < 2; i++)
        fake_break(i);
    fake_pass(&client, 10 * MS);
    start = fake_now_us;
    is_int(acquire(0), REDLOCK_OK, "r02: all connect, one of them failed before");
    ok(since(start) < 10 * MS, "r02: at once: %ld us", since(start));
}

/* All connections were closed during a long pause: the retry waits for new ones, as the first attempt does. */
static void r02_a_retry_waits_for_connections(void)
{
    int i;

    memset(&settings, 0, sizeof settings);
    settings.retry_delay_ms = 1500;
    settings.retry_jitter_pct = settings.retry_growth_pct = REDLOCK_NONE;
    begin(3);
    warm_up();
    for (i = 0; i < 3; i++) {
        fake_put(i, "k", "other", 700);
        fake_nodes[i].connect_us = 200 * MS;
    }
    redlock_acquire_start(&client, &lock, 10000);
    fake_pass(&client, 300 * MS);
    for (i = 0; i < 3; i++)
        fake_break(i);
    fake_pass(&client, 1600 * MS);
    is_int(lock.status, REDLOCK_OK, "r02: acquired after a pause of 1.5 s and a connect of 0.2 s");
}

int main(void)
{
    r01_new_token_for_every_attempt();
    r01_a_set_is_never_sent_again();
    r01_t1_is_read_before_the_first_byte();
    r01_tokens_differ();
    r02_all_nodes_at_once();
    r02_attempts_wait_in_line_for_room();
    r02_completed_locks_share_a_late_node();
    r02_a_long_timeout_does_not_delay_a_new_client();
    r02_a_slow_handshake_does_not_delay_a_new_client();
    r02_connections_have_stall_ms();
    r02_a_node_that_failed_does_not_delay_the_others();
    r02_a_retry_waits_for_connections();
    r03_wall_clocks_decide_nothing();
    r03_decides_at_the_quorum();
    r03_validity_must_be_positive();
    r03_drift_has_a_minimum();
    r03_quorum();
    return done_testing();
}
