/* lock_acquire_test.c - R1 to R3, an attempt to acquire: tokens, all nodes at once, validity, quorum.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "many_locks.h"
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
    is_int((int)same, 0, "the ttl is the same on every retry");
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
    is_int((int)fake_count(1, 'S'), 1, "r01: the SET on the broken connection is not repeated");
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
        is_int(acquire(0), REDLOCK_OK, "r03: acquired with any wall clock");
        ok(fake_find(0, "k", 1)->until_us == fake_log[fake_logged - 1].at_us + 10000 * MS,
           "r03: the key expires after its ttl by the server's clock");
        fake_wall_us += (uint64_t)3600000 * MS;
        ok(redlock_remaining_ms(&client, &lock) > 9800,
           "r03: a change of the wall clock does not shorten the validity");
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
        is_int(acquire(0), cases[i].status, "r03: asleep for %lu us of the ttl",
               (unsigned long)cases[i].late_us);
        is_int((int)redlock_remaining_ms(&client, &lock), 0, "r03: no validity left");
        if (cases[i].status != REDLOCK_OK)
            is_int((int)fake_keys_left(), 0, "r03: a lock acquired too late is rolled back");
    }
}

static void r03_drift_has_a_minimum(void)
{
    uint64_t start;

    begin_with_defaults(1);
    lock.ttl_ms = 10;
    fake_nodes[0].delay_us = 0;
    start = fake_now_us;
    is_int(acquire(0), REDLOCK_OK, "r03: ttl of 10 ms");
    is_int((int)(lock.valid_until_us - start), 10 * MS - 100 - 2 * MS - 1,
           "r03: drift is 1 percent and 2 ms");
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
        is_int(acquire(0), cases[i].status, "r03: %u of %u nodes free, quorum %u", cases[i].free,
               cases[i].count, cases[i].quorum);
        release(100);
        is_int((int)fake_keys_left(), (int)(cases[i].count - cases[i].free),
               "r03: no key of ours is left");
    }
}

/* More attempts than the queue has room for: they begin in the order in which they were started, also when
   more are started meanwhile. */
static void r02_attempts_wait_in_line_for_room(void)
{
    static struct redlock_lock some[40];
    static char keys[40][4];
    unsigned i, begun = 0, in_line = 0;

    begin_with_defaults(3);
    warm_up();
    fake_logged = 0;
    for (i = 0; i < 40; i++) {
        snprintf(keys[i], sizeof keys[i], "m%02u", i);
        redlock_lock_init(&some[i], keys[i], 10000);
        redlock_acquire_start(&client, &some[i], 1000);
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
    static struct redlock_lock some[40];
    static char keys[40][4];
    unsigned i, held = 0, found = 0;

    begin_with_defaults(3);
    fake_nodes[2].refuses = 1;
    warm_up();
    for (i = 0; i < 40; i++) {
        snprintf(keys[i], sizeof keys[i], "l%02u", i);
        redlock_lock_init(&some[i], keys[i], 60000);
        redlock_acquire_start(&client, &some[i], 5000);
    }
    fake_pass(&client, 2000 * MS);
    for (i = 0; i < 40; i++)
        held += some[i].status == REDLOCK_OK;
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
    ok(memcmp(first, lock.token, sizeof first) != 0, "each acquire has a new token");
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
/* A quorum is ready, and the third node takes long to connect: the attempt waits for it as long as the caller may wait, at most. */
static void r02_no_longer_than_the_caller_waits(void)
{
    uint64_t start;

    begin_with_defaults(3);
    set_distance(0, 2 * MS);
    set_distance(1, 2 * MS);
    fake_nodes[2].connect_us = 500 * MS;
    start = fake_now_us;
    is_int(acquire(30), REDLOCK_OK, "r02: two of three are connected, and wait_ms is 30");
    ok(since(start) >= 30 * MS && since(start) < 40 * MS, "r02: acquired after that: %ld us",
       since(start));
}

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

/* ---- The key is on every healthy node: R2 --------------------------------------------------- */

/* Whether any one node may lose its keys without a free quorum for another client. */
static int survives_an_empty_restart(const struct redlock_lock *of)
{
    return client.priv.count - nodes_with(of) + 1 < client.priv.quorum;
}

/* A new client, some nodes are farther away. If the client sent the SET only to the near nodes, it would hold
   a bare quorum. A second client could then acquire the lock when one node restarts without its keys. */
static void r02_a_new_client_locks_every_node(unsigned count, unsigned near, uint64_t near_us,
                                              uint64_t farther_us, int blocking)
{
    unsigned i;
    int status;

    begin_with_defaults(count);
    for (i = 0; i < count; i++)
        set_distance((int)i, i < near ? near_us : near_us + farther_us);
    if (blocking) {
        status = acquire(0);
    } else {
        redlock_acquire_start(&client, &lock, 0);
        status = wait_for(&lock, 1000 * MS);
        fake_pass(&client, 100 * MS);
    }
    is_int(status, REDLOCK_OK, "r02: held: %u nodes %d ms away, %u of them %d ms farther, %s",
           count, (int)(near_us / MS), count - near, (int)(farther_us / MS),
           blocking ? "blocking" : "by events");
    is_int((int)nodes_with(&lock), (int)count, "r02: on every node");
    ok(survives_an_empty_restart(&lock), "r02: one node may lose its keys");
    if (blocking) {
        fake_pass(&client, 100 * MS + near_us + farther_us);
        is_int(lock.members, (1 << count) - 1, "r02: all are members");
    }
}

static void r02_a_new_client(void)
{
    static const uint64_t near_us[] = {100, 1 * MS, 30 * MS, 90 * MS, 150 * MS};
    static const uint64_t farther_us[] = {6 * MS, 20 * MS};
    unsigned i, n;
    int blocking;

    for (i = 0; i < 5; i++)
        for (n = 0; n < 2; n++)
            for (blocking = 0; blocking < 2; blocking++) {
                r02_a_new_client_locks_every_node(3, 2, near_us[i], farther_us[n], blocking);
                r02_a_new_client_locks_every_node(5, 4, near_us[i], farther_us[n], blocking);
                r02_a_new_client_locks_every_node(5, 3, near_us[i], farther_us[n], blocking);
            }
}

/* An attempt does not wait long for a node that is down. A regression test. */
static void r02_a_short_wait_for_a_dead_node(void)
{
    uint64_t start;

    begin_with_defaults(3);
    fake_nodes[2].never_up = 1;
    start = fake_now_us;
    is_int(acquire(0), REDLOCK_OK, "r02: acquired, one node never connects");
    ok(since(start) <= 250 * MS, "r02: with one wait for its connection: %ld us", since(start));
    release(100);
    start = fake_now_us;
    is_int(acquire(0), REDLOCK_OK, "r02: acquired again");
    ok(since(start) <= 10 * MS, "r02: without a second wait: %ld us", since(start));
    begin_with_defaults(3);
    fake_nodes[2].refuses = 1;
    start = fake_now_us;
    is_int(acquire(0), REDLOCK_OK, "r02: acquired, one node refuses connections");
    ok(since(start) <= 10 * MS, "r02: without a wait: %ld us", since(start));
}

/* More locks at once than a queue has room for. A healthy node whose queue was full until the decision must
   still be sent the SET. */
static void r02_many_at_once_are_on_every_node(unsigned count, int warm)
{
    unsigned i, everywhere = 0, safe = 0;

    begin_with_defaults(5);
    if (warm)
        warm_up();
    for (i = 0; i < 5; i++)
        set_distance((int)i, warm ? (1 + i) * 500 : (1 + 3 * i) * MS);
    make_many(count);
    for (i = 0; i < count; i++)
        redlock_acquire_start(&client, &many[i], 20000);
    is_int((int)serve_many(count, 20000 * MS), (int)count, "r02: %u locks at once, %s: all held",
           count, warm ? "connected" : "on a new client");
    /* the slowest node needs this long with a queue of three commands */
    fake_pass(&client, (warm ? 1500 : 6000) * MS);
    for (i = 0; i < count; i++) {
        everywhere += nodes_with(&many[i]) == 5;
        safe += (unsigned)survives_an_empty_restart(&many[i]);
    }
    is_int((int)safe, (int)count, "r02: one node may lose its keys");
    is_int((int)everywhere, (int)count, "r02: each is on all five nodes");
    redlock_deinit(&client);
}

/* Many locks at once: there is not room for all requests, so many are decided by three of five nodes. With automatic extensions
   all nodes are members soon, and not a third of the ttl later: then each lock survives that two nodes restart empty. */
static void r02_many_at_once_have_all_members(unsigned count)
{
    unsigned i, later = 0, few = 0, counted = 0;

    if (REDLOCK_MINIMAL)
        return;
    begin_with_defaults(5);
    for (i = 0; i < 5; i++)
        set_distance((int)i, (1 + 3 * i) * MS);
    make_many(count);
    start_many(0, count, 20000);
    is_int((int)serve_many(count, 20000 * MS), (int)count, "r02: %u locks at once: all held",
           count);
    for (i = 0; i < count; i++) {
        later += votes(many[i].members) < 5;
        redlock_auto_extend_start(&client, &many[i], 100);
    }
    fake_pass(&client, 6000 * MS);
    for (i = 0; i < count; i++) {
        few += votes(many[i].members) < 5;
        counted += many[i].extended > 0;
    }
    ok(later > 0, "r02: %u have fewer members at first", later);
    is_int((int)few, 0, "r02: with automatic extensions each has five soon");
    is_int((int)counted, 0, "r02: by extensions that do not count");
    redlock_deinit(&client);
}

/* A node that comes back while the lock is held is sent the SET. Otherwise one restart without keys would be
   enough for a second holder. */
static void r02_a_node_that_comes_back_is_sent_the_set(int how)
{
    static const char *const hows[] = {"refused", "did not connect", "accepted no bytes"};

    begin_with_defaults(3);
    if (how == 2)
        warm_up();
    fake_nodes[2].refuses = how == 0;
    fake_nodes[2].never_up = how == 1;
    fake_nodes[2].full = how == 2;
    is_int(acquire(0), REDLOCK_OK, "r02: held on two of three, the third %s", hows[how]);
    fake_pass(&client, 600 * MS);
    fake_nodes[2].refuses = fake_nodes[2].never_up = fake_nodes[2].full = 0;
    fake_pass(&client, 4000 * MS);
    ok(has_token(2, &lock), "r02: the third has the key when it is back");
    is_int((int)fake_count(2, 'S'), 1, "r02: one SET was sent");
    is_int(lock.failed, 0, "r02: no node has failed any more");
    ok(survives_an_empty_restart(&lock), "r02: one node may lose its keys");
    is_int(extend(), REDLOCK_OK, "r02: extended");
    fake_pass(&client, 20 * MS);
    is_int(lock.members, 7, "r02: all are members");
    fake_restart(0);
    is_int(extend(), REDLOCK_OK, "r02: extended after the restart of another node");
    is_int(release(100), REDLOCK_OK, "r02: released");
    fake_pass(&client, 100 * MS);
    is_int((int)fake_keys_left(), 0, "r02: no key is left");
}

/* The same after an extension that failed because another node hung for a moment, after one that succeeded,
   and during auto-extension. */
static void r02_also_after_extensions(int what)
{
    static const char *const whats[] = {"a failed extension", "an extension",
                                        "automatic extensions"};

    begin_with_defaults(3);
    lock.ttl_ms = 30000;
    fake_nodes[2].refuses = 1;
    is_int(acquire(0), REDLOCK_OK, "r02: held on two of three");
    fake_pass(&client, 100 * MS);
    fake_nodes[1].hung = what == 0;
    if (what < 2)
        is_int(extend(), what == 0 ? REDLOCK_UNREACHABLE : REDLOCK_OK, "r02: extended");
    else
        redlock_auto_extend_start(&client, &lock, 100);
    fake_resume(1);
    fake_pass(&client, 100 * MS);
    fake_nodes[2].refuses = 0;
    fake_pass(&client, 4000 * MS);
    ok(has_token(2, &lock), "r02: the third has the key when it is back, after %s", whats[what]);
    if (what == 2)
        redlock_cancel(&client, &lock);
    fake_pass(&client, 10 * MS);
    redlock_next_completed(&client);
    is_int(release(100), REDLOCK_OK, "r02: released");
}

/* A node is not sent the SET after the lock has ended: the key would block other clients. A regression test. */
static void r02_not_after_its_end(int how)
{
    static const char *const hows[] = {"expired", "was released", "was abandoned", "was lost"};

    begin_with_defaults(3);
    lock.ttl_ms = 2000;
    fake_nodes[2].never_up = how < 2;
    fake_nodes[2].refuses = how >= 2;
    is_int(acquire(0), REDLOCK_OK, "r02: held on two of three");
    fake_pass(&client, 300 * MS);
    if (how == 1)
        release(0);
    if (how == 2)
        redlock_abandon(&client, &lock);
    if (how == 3) {
        fake_delete(0, "k");
        fake_delete(1, "k");
        held_by("other", 0, 1);
        is_int(extend(), REDLOCK_LOST, "r02: another client has it");
    }
    if (how == 0)
        fake_pass(&client, 2000 * MS);
    fake_nodes[2].refuses = fake_nodes[2].never_up = 0;
    fake_pass(&client, 4000 * MS);
    is_int((int)fake_count(2, 'S'), 0, "r02: the lock %s: no SET is sent to the third node",
           hows[how]);
}

/* Nor is a node sent the SET after the validity has ended: its key would keep other clients out for the ttl. */
static void r02_nothing_is_sent_after_the_end(void)
{
    begin_with_defaults(3);
    fake_nodes[2].refuses = 1;
    redlock_acquire_start(&client, &lock, 0);
    fake_pass(&client, 200 * MS);
    is_int(lock.status, REDLOCK_OK, "r02: held on two nodes");
    fake_pass(&client, 10000 * MS);
    is_int((int)redlock_remaining_ms(&client, &lock), 0, "r02: the validity has ended");
    fake_nodes[2].refuses = 0;
    fake_pass(&client, 3000 * MS);
    is_int((int)fake_keys_left(), 0, "r02: the third node is not sent the SET any more");
}

/* A release at any moment while a node comes back. A regression test. */
static void r02_released_while_a_node_comes_back(void)
{
    unsigned us, left = 0;

    for (us = 0; us < 6000; us += 100) {
        begin_with_defaults(3);
        set_distance(2, 1 * MS);
        fake_nodes[2].never_up = 1;
        acquire(0);
        fake_pass(&client, 300 * MS);
        fake_nodes[2].never_up = 0;
        fake_pass(&client, us);
        release(us % 200 ? 100 : 0);
        fake_pass(&client, 4000 * MS);
        left += fake_keys_left();
    }
    is_int((int)left, 0, "r02: released at any moment, no key is left");
}

/* The caller reads the status and never calls redlock_next_completed. A node that is connected later must be
   sent the SET all the same. */
static void r02_without_redlock_next_completed(void)
{
    begin_with_defaults(3);
    fake_nodes[2].connect_us = 300 * MS;
    redlock_acquire_start(&client, &lock, 0);
    fake_pass(&client, 200 * MS);
    is_int(lock.status, REDLOCK_OK, "r02: held on two nodes");
    ok(fake_find(2, "k", 1) == NULL, "r02: the third is not connected yet");
    fake_pass(&client, 200 * MS);
    ok(fake_find(2, "k", 1) != NULL, "r02: the third is sent the SET when it is connected");
}

/* A lock that is acquired again after a release that nobody confirmed, while a node is down. That node must be sent the
   SET when it is back, although it was sent that of the first acquire. */
static void r02_a_lock_that_is_used_again(void)
{
    begin_with_defaults(3);
    warm_up();
    is_int(acquire(0), REDLOCK_OK, "r02: held");
    is_int(release(0), REDLOCK_UNCONFIRMED, "r02: the replies to the release are not waited for");
    fake_pass(&client, 20 * MS);
    make_unreachable(2);
    fake_pass(&client, 20 * MS);
    is_int(acquire(0), REDLOCK_OK, "r02: held again, on two nodes");
    fake_nodes[2].refuses = 0;
    fake_pass(&client, 2000 * MS);
    ok(has_token(2, &lock), "r02: the third node is sent the SET when it is back");
}

/* ---- Votes of broken connections, and clocks that step back: R3 ----------------------------- */

/* Node 0 grants the lock and restarts without its keys before node 1 grants it. Another client may hold the
   lock on nodes 0 and 2, so the grant of node 0 must not count. */
static void r03_a_vote_of_a_broken_connection(int use_fencing)
{
    memset(&settings, 0, sizeof settings);
    settings.retries = REDLOCK_NONE;
    begin(3);
    warm_up();
    if (use_fencing)
        set_use_fencing(&lock, 1);
    held_by("other", 2, 2);
    fake_nodes[1].delay_us = 20 * MS;
    redlock_acquire_start(&client, &lock, 0);
    fake_pass(&client, 10 * MS);
    is_int(lock.granted, 1, "r03: granted by the first");
    fake_restart(0);
    fake_pass(&client, 100 * MS);
    ok(lock.status != REDLOCK_OK && lock.status != REDLOCK_PENDING,
       "r03: the first has restarted, its grant does not count: %s", redlock_strerror(lock.status));
}

/* As r03_a_vote_of_a_broken_connection, but in one tick: the client finds the broken connection while it
   makes room for a release, just before the decision. */
static void r03_a_vote_of_a_connection_that_breaks_now(void)
{
    uint64_t took_us, least_us = 0;
    unsigned n, i;

    if (BURST < 200)
        return;
    for (n = 50; n < 150; n++) {
        memset(&settings, 0, sizeof settings);
        settings.retries = REDLOCK_NONE;
        begin(3);
        warm_up();
        make_many(n);
        start_many(0, n, 0);
        fake_pass(&client, 10 * MS);
        held_by("other", 2, 2);
        fake_nodes[1].delay_us = 20 * MS;
        redlock_acquire_start(&client, &lock, 0);
        fake_pass(&client, 10 * MS);
        fake_restart(0);
        fake_now_us += 15 * MS;
        for (i = 0; i < n; i++)
            redlock_release_start(&client, &many[i], 1000);
        redlock_handle_events(&client, 1, REDLOCK_READABLE);
        fake_transmit_us =
            1; /* 1 us for each call: one more than with fewer locks shows that room was made */
        took_us = fake_now_us;
        redlock_tick(&client);
        took_us = fake_now_us - took_us;
        redlock_deinit(&client);
        if (n == 50)
            least_us = took_us;
        if (took_us > least_us)
            break;
    }
    ok(n < 150, "r03: room was made for %u releases", n);
    ok(lock.status != REDLOCK_OK, "r03: a grant of the broken connection does not count: %s",
       redlock_strerror(lock.status));
}

/* redlock.h requires a monotonic clock. If the clock steps back nevertheless, the remaining time must not grow. */
static void r03_a_clock_that_steps_back(void)
{
    uint32_t left;

    begin_with_defaults(3);
    is_int(acquire(0), REDLOCK_OK, "r03: held");
    fake_pass(&client, 5000 * MS);
    left = redlock_remaining_ms(&client, &lock);
    fake_now_us -= 4000 * MS;
    redlock_tick(&client);
    ok(redlock_remaining_ms(&client, &lock) <= left,
       "r03: the clock steps back: %lu ms left, not %lu", (unsigned long)left,
       (unsigned long)redlock_remaining_ms(&client, &lock));
    redlock_deinit(&client);
}

/* More acquires at once than there are requests, at a distance: each stands in line until the nodes have room for its command,
   and only then its time for votes begins. */
static void r06_more_attempts_than_requests(uint64_t rtt_us)
{
    unsigned i, count = 3 * REDLOCK_PIPELINE_MAX + 2, good;

    begin_with_defaults(3);
    for (i = 0; i < 3; i++)
        set_distance((int)i, rtt_us);
    warm_up();
    make_many(count);
    start_many(0, count, 0);
    good = serve_many(count, 60000 * MS);
    is_int((int)good, (int)count, "r06: %u acquires at once without a wait, %lu us away: all held",
           count, (unsigned long)rtt_us);
    fake_unlogged = 0;
}

int main(void)
{
    int how;

    r01_new_token_for_every_attempt();
    r01_a_set_is_never_sent_again();
    r01_t1_is_read_before_the_first_byte();
    r01_tokens_differ();
    r02_all_nodes_at_once();
    r02_attempts_wait_in_line_for_room();
    r02_completed_locks_share_a_late_node();
    r02_a_long_timeout_does_not_delay_a_new_client();
    r02_a_slow_handshake_does_not_delay_a_new_client();
    r02_no_longer_than_the_caller_waits();
    r02_connections_have_stall_ms();
    r02_a_node_that_failed_does_not_delay_the_others();
    r02_a_retry_waits_for_connections();
    r03_wall_clocks_decide_nothing();
    r03_decides_at_the_quorum();
    r03_validity_must_be_positive();
    r03_drift_has_a_minimum();
    r03_quorum();

    r02_a_new_client();
    r02_a_short_wait_for_a_dead_node();
    r02_many_at_once_are_on_every_node(40, 0);
    r02_many_at_once_are_on_every_node(40, 1);
    r02_many_at_once_are_on_every_node(1000, 0);
    r02_many_at_once_are_on_every_node(1000, 1);
    r02_many_at_once_have_all_members(1000);
    for (how = 0; how < 3; how++)
        r02_a_node_that_comes_back_is_sent_the_set(how);
    for (how = 0; how < 2 + !REDLOCK_MINIMAL; how++)
        r02_also_after_extensions(how);
    for (how = 0; how < 4; how++)
        r02_not_after_its_end(how);
    r02_nothing_is_sent_after_the_end();
    r02_released_while_a_node_comes_back();
    r02_without_redlock_next_completed();
    r02_a_lock_that_is_used_again();
    for (how = 0; how <= !REDLOCK_MINIMAL; how++)
        r03_a_vote_of_a_broken_connection(how);
    r03_a_vote_of_a_connection_that_breaks_now();
    r03_a_clock_that_steps_back();
    r06_more_attempts_than_requests(100);
    r06_more_attempts_than_requests(26 * MS);
    r06_more_attempts_than_requests(100 * MS);
    return done_testing();
}
