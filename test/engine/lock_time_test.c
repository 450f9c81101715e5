/* lock_time_test.c - R15: how long votes, attempts and calls take, near and far.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "many_locks.h"
#include "one_lock.h"

/* A stall is never shorter than the time that a reply may take. */
static void r15_a_stall_is_longer_than_node_timeout(void)
{
    int i;

    memset(&settings, 0, sizeof settings);
    settings.node_timeout_ms = 2500;
    begin(3);
    warm_up();
    for (i = 0; i < 3; i++)
        fake_nodes[i].hung = 1;
    redlock_acquire_start(&client, &lock, 0);
    fake_pass(&client, 2400 * MS);
    is_int((int)lock.status, REDLOCK_PENDING, "r15: waits for node_timeout_ms");
    for (i = 0; i < 3; i++)
        fake_nodes[i].hung = 0;
    fake_pass(&client, 3000 * MS);
    is_int((int)fake_keys_left(), 0, "r15: rolled back");
}

static void r15_everything_is_bounded(void)
{
    uint64_t start;
    unsigned i;

    begin_with_defaults(5);
    warm_up();
    for (i = 0; i < 3; i++)
        fake_nodes[i].hung = 1;
    start = fake_now_us;
    is_int(acquire(0), REDLOCK_UNREACHABLE, "r15: three of five hang");
    is_int((int)since(start), 50 * MS, "r15: after node_timeout_ms");
    start = fake_now_us;
    is_int(acquire(500), REDLOCK_UNREACHABLE, "r15: also with wait_ms");
    ok(since(start) <= (500 + 100) * MS, "r15: wait_ms + 2 * node_timeout_ms at most: %ld us",
       since(start));
    begin(5);
    for (i = 0; i < 3; i++)
        fake_nodes[i].never_up = 1;
    start = fake_now_us;
    is_int(acquire(0), REDLOCK_UNREACHABLE, "r15: three connections never come up");
    is_int((int)since(start) / MS, 1001, "r15: after stall_ms");
    ok(has_error(0, "no connection"), "r15: %s", nodes[0].error);
    is_int(nodes[0].state, REDLOCK_NODE_DOWN, "r15: the connect is given up");
    start = fake_now_us;
    is_int(acquire(0), REDLOCK_UNREACHABLE, "r15: another acquire");
    is_int((int)since(start), MS, "r15: fails at once, the nodes are known to be down");
    begin(3);
    acquire(0);
    for (i = 0; i < 3; i++)
        fake_nodes[i].hung = 1;
    start = fake_now_us;
    is_int(release(80), REDLOCK_UNCONFIRMED, "r15: all nodes hang during the release");
    is_int((int)since(start), 80 * MS, "r15: after wait_ms");
}

static unsigned flood_bytes;

/* Node 0 sends pushes without a pause: 100 MB at most, so that the test ends. */
static int flood(void *context, struct redlock_node *node, void *bytes, size_t size)
{
    static const char push[] = ">1\r\n:1\r\n";
    size_t i;

    if (node != &nodes[0] || flood_bytes >= 100 * 1000 * 1000)
        return fake_io()->receive(context, node, bytes, size);
    fake_now_us += 50;
    for (i = 0; i < size; i++)
        ((char *)bytes)[i] = push[flood_bytes++ % (sizeof push - 1)];
    return (int)size;
}

/* The client must also serve the other nodes, and return to the caller. */
static void r15_a_chatty_node_does_not_hold_the_loop(void)
{
    struct redlock_io io = *fake_io();
    uint64_t start;

    begin_with_defaults(3);
    io.receive = flood;
    is_int(redlock_init(&client, &io, nodes, 3, &settings), REDLOCK_OK,
           "r15: a node that sends pushes without a pause");
    flood_bytes = 0;
    start = fake_now_us;
    is_int(acquire(0), REDLOCK_OK, "r15: the two others grant it");
    ok(flood_bytes > 0 && since(start) < 150 * MS, "r15: after %u bytes of pushes, in %ld us",
       flood_bytes, since(start));
    is_int(release(1000), REDLOCK_OK, "r15: released");
    redlock_deinit(&client);
}

static void r15_an_attempt_takes_a_quarter_of_the_ttl_at_most(void)
{
    uint64_t start;

    begin_with_defaults(3);
    warm_up();
    lock.ttl_ms = 100;
    fake_nodes[0].hung = fake_nodes[1].hung = 1;
    start = fake_now_us;
    acquire(0);
    is_int((int)since(start), 25 * MS, "r15: a quarter of the ttl at most");
}

/* Nodes that do not vote in time are shown, with an error. */
static void r15_who_was_too_slow(void)
{
    begin_with_defaults(3);
    warm_up();
    fake_nodes[1].hung = fake_nodes[2].hung = 1;
    is_int(acquire(0), REDLOCK_UNREACHABLE, "r15: two of three hang");
    is_int((int)lock.failed, 6, "r15: these have failed");
    ok(has_error(1, "no reply in time") && has_error(2, "no reply in time"), "r15: and say why");
}

/* ---- Far nodes, and nodes that are dead ----------------------------------------------------- */

/* The nodes become unreachable one after the other, without refusing connections. An acquire with wait_ms 0
   ends within the bound that redlock.h names. When the client knows that the nodes fail, most calls end at
   once and not after a second. */
static void r15_no_wait_for_dead_nodes(unsigned count)
{
    unsigned i, n, run, slow = 0;
    long longest = 0;

    for (run = 0; run < 10; run++) {
        begin_with_defaults(count);
        warm_up();
        for (i = 0; i < count; i++) {
            fake_nodes[i].never_up = 1;
            fake_break((int)i);
            acquire(0);
            release(0);
            fake_pass(&client, (137 + run * 13 + i * 71) * MS);
        }
        fake_pass(&client, 1500 * MS);
        for (n = 0; n < 30; n++) {
            uint64_t start = fake_now_us;
            acquire(0);
            slow += since(start) > 150 * MS;
            longest = since(start) > longest ? since(start) : longest;
            fake_pass(&client, (n * 131 + run * 7) % 500 * MS);
        }
    }
    ok(longest <= 1150 * MS, "r15: %u nodes that do not connect: the longest call took %ld us",
       count, longest);
    ok(slow <= 150, "r15: most calls fail at once: %u of 300 do not", slow);
}

/* The default settings work over these distances. */
static void r15_far_away(uint64_t rtt_us, uint32_t wait_ms, unsigned count)
{
    unsigned i;

    begin_with_defaults(count);
    for (i = 0; i < count; i++)
        set_distance((int)i, rtt_us);
    is_int(acquire(wait_ms), REDLOCK_OK, "r15: %u nodes %d ms away, waiting %lu ms: acquired",
           count, (int)(rtt_us / MS), (unsigned long)wait_ms);
    fake_pass(&client, 1000 * MS);
    is_int((int)nodes_with(&lock), (int)count, "r15: on all nodes");
    is_int(extend(), REDLOCK_OK, "r15: extended");
    is_int(release(1000), REDLOCK_OK, "r15: released");
    fake_pass(&client, 1000 * MS);
    is_int((int)fake_keys_left(), 0, "r15: no key is left");
    is_int(acquire(0), REDLOCK_OK, "r15: acquired again");
    held_by("other", 0, (int)count - 1);
    is_int(release(1000), REDLOCK_LOST, "r15: another client has it: lost");
    is_int(acquire(0), REDLOCK_HELD, "r15: another client has it: held");
}

static void r15_distances(void)
{
    static const uint64_t rtts_us[] = {26 * MS, 60 * MS, 150 * MS};
    unsigned i;

    for (i = 0; i < 3; i++) {
        r15_far_away(rtts_us[i], 0, 3);
        r15_far_away(rtts_us[i], 5000, 5);
    }
}

/* The round trip gets longer while the connections are up. */
static void r15_a_distance_that_grows(void)
{
    int i;

    begin_with_defaults(3);
    warm_up();
    for (i = 0; i < 3; i++)
        fake_nodes[i].delay_us = 120 * MS;
    for (i = 1; i <= 6 && acquire(0) != REDLOCK_OK; i++)
        fake_pass(&client, 300 * MS);
    ok(i <= 3, "r15: held after %d attempts", i);
}

/* A node that is far away may accept bytes later. */
static void r15_a_far_node_accepts_bytes_late(void)
{
    int i, epoch;

    begin_with_defaults(3);
    for (i = 0; i < 3; i++)
        set_distance(i, 100 * MS);
    warm_up();
    fake_pass(&client, 300 * MS);
    make_many(BURST);
    epoch = fake_nodes[0].epoch;
    fake_nodes[0].full = 1;
    start_many(0, BURST, 1000);
    fake_pass(&client, 120 * MS);
    fake_nodes[0].full = 0;
    is_int((int)serve_many(BURST, 3000 * MS), BURST, "r15: a burst, 100 ms away: all are held");
    is_int(fake_nodes[0].epoch, epoch, "r15: no connection is closed");
    redlock_deinit(&client);
}

/* A far node accepts no bytes. The near nodes must wait for room in the buffer at most half as long as a vote
   may take, at any distance of the far node. */
static void r15_a_far_node_does_not_delay_the_near_ones(void)
{
    if (BURST < 200)
        return;
    begin_with_defaults(3);
    set_distance(0, 100 * MS);
    warm_up();
    fake_pass(&client, 300 * MS);
    ok(nodes[0].rtt_us > 50 * MS, "r15: one node is far away");
    make_many(BURST);
    is_int(acquire(0), REDLOCK_OK, "r15: held");
    fake_nodes[0].full = 1;
    start_many(0, BURST, 1000);
    fake_pass(&client, 10 * MS);
    ok(client.priv.jammed, "r15: the far node accepts no bytes, the buffer is full");
    is_int(extend(), REDLOCK_OK, "r15: the extension is not delayed");
    redlock_deinit(&client);
}

/* Node 2 fails: it is gone, hangs, never comes up, or refuses to create keys. */
static const char *const failure_names[] = {"gone", "hung", "never up", "out of memory"};

static void fail_node_2(unsigned how)
{
    fake_nodes[2].hung = how == 1;
    fake_nodes[2].never_up = how == 2;
    if (how == 3)
        fake_nodes[2].reply = "-OOM command not allowed when used memory > 'maxmemory'.\r\n";
    if (how == 0)
        make_unreachable(2);
    if (how == 2)
        fake_break(2);
}

/* So many calls until one succeeds; 20: none does. */
static int calls_until_ok(int (*call)(void), uint64_t gap_us)
{
    int calls;

    for (calls = 1; calls < 20; calls++) {
        gap(gap_us);
        if (call() == REDLOCK_OK)
            break;
    }
    return calls;
}

static int acquire_at_once(void)
{
    return acquire(0);
}

/* Nodes 0 and 2 are near, node 1 is far. When node 2 fails, the lock needs the far one. */
static void r15_a_far_node_is_needed(unsigned how, uint64_t rtt_us)
{
    int calls;

    begin_with_defaults(3);
    set_distance(1, rtt_us);
    warm_up();
    fake_pass(&client, 1000 * MS);
    fail_node_2(how);
    calls = calls_until_ok(acquire_at_once, 100 * MS);
    ok(calls <= 3, "r15: %s, the other one is far: acquired at call %d", failure_names[how], calls);
    calls = calls_until_ok(extend, 100 * MS);
    ok(calls <= 3, "r15: extended at call %d", calls);
    is_int(release(1000), REDLOCK_OK, "r15: released");
}

/* The round trip grows from 1 to 80 ms, and later to 300 ms, while calls are far apart. Node 2 may have failed. */
static void r15_a_distance_that_grows_between_calls(uint64_t gap_us, unsigned failed)
{
    int i, calls;

    begin_with_defaults(3);
    lock.ttl_ms = 120000;
    for (i = 0; i < 3; i++)
        set_distance(i, MS);
    warm_up();
    is_int(acquire(0), REDLOCK_OK, "r15: held");
    fake_pass(&client, 100 * MS);
    if (failed)
        make_unreachable(2);
    set_distance(1, 80 * MS);
    set_distance(2, 80 * MS);
    calls = calls_until_ok(extend, gap_us);
    ok(calls <= 4, "r15: 80 ms away: extended at call %d", calls); /* one finds idle connections */
    ok(nodes[1].rtt_us < 100 * MS, "r15: the gap is not measured: %lu us",
       (unsigned long)nodes[1].rtt_us);
    set_distance(1, 300 * MS);
    set_distance(2, 300 * MS);
    calls = calls_until_ok(extend, gap_us);
    ok(calls <= 5, "r15: 300 ms away: extended at call %d", calls);
}

/* One request at a time is timed, whatever is sent before and behind it. */
static void r15_a_round_trip_of_several_requests(void)
{
    unsigned i;

    begin_with_defaults(1);
    make_many(30);
    set_distance(0, 40 * MS);
    warm_up();
    fake_pass(&client, 1000 * MS);
    for (i = 0; i < 30 && i < REDLOCK_PIPELINE_MAX; i++) {
        start_many(i, i + 1, 1000);
        fake_pass(&client, 7 * MS);
    }
    fake_pass(&client, 100 * MS);
    ok(nodes[0].rtt_us > 39500 && nodes[0].rtt_us < 41500, "r15: a round trip of 40 ms: %lu us",
       (unsigned long)nodes[0].rtt_us);
    redlock_deinit(&client);
}

/* The replies come while the process is paused, between `wait` and the tick: they are in time. */
static void r15_a_pause_before_the_tick(void)
{
    begin_with_defaults(3);
    warm_up();
    is_int(acquire(0), REDLOCK_OK, "r15: held");
    redlock_extend_start(&client, &lock);
    redlock_tick(&client);
    gap(200 * MS);
    redlock_tick(&client);
    is_int(lock.status, REDLOCK_OK, "r15: the replies that are here count");
}

/* ---- Blocking time -------------------------------------------------------------------------- */

static uint32_t dice;

static unsigned roll(unsigned sides)
{
    dice = dice * 1664525U + 1013904223U;
    return (dice >> 8) % sides;
}

static int one_in(unsigned sides)
{
    return roll(sides) == 0;
}

/* Node i gets faults, or none. */
static void roll_faults(int i)
{
    static const char *const replies[] = {"-ERR no\r\n", "-BUSY no\r\n",  "-NOPERM no\r\n", "",
                                          ":0\r\n",      "$3\r\nabc\r\n", "+OK\r\n"};
    struct fake_node *n = &fake_nodes[i];

    n->refuses = one_in(5);
    n->never_up = one_in(6);
    n->hung = one_in(6);
    n->full = one_in(8);
    n->drip = one_in(10);
    n->drops_set_reply = one_in(10);
    n->server.loading = one_in(12);
    n->delay_us = roll(one_in(3) ? 120 * MS : 3 * MS);
    n->connect_us = roll(one_in(3) ? 150 * MS : 3 * MS);
    n->reply = one_in(8) ? replies[roll(sizeof replies / sizeof *replies)] : NULL;
    n->reply_once = one_in(2);
    if (one_in(8))
        fake_break(i);
    if (one_in(20))
        fake_restart(i);
    if (one_in(10))
        fake_put(i, "k", "other", 300 + roll(5000));
}

static uint64_t vote_us; /* the longest time for a vote since it was set to 0 */

static void note_vote_us(const struct redlock_node *all, unsigned count)
{
    unsigned i;

    for (i = 0; i < count; i++)
        if (vote_us < all[i].priv.timeout_us)
            vote_us = all[i].priv.timeout_us;
}

static void wait_and_note_votes(void *context, struct redlock_node *all, unsigned count,
                                uint64_t timeout_us, uint8_t *events)
{
    note_vote_us(all, count);
    fake_io()->wait(context, all, count, timeout_us, events);
}

/* How long redlock.h says that the call may block; without a wait for each attempt that it has made. */
static uint64_t promised_us(int call, uint32_t wait_ms, uint64_t us)
{
    uint64_t rest_us = settings.node_timeout_ms < 50 ? 2 * settings.node_timeout_ms * MS : 100 * MS;
    uint64_t connect_us = settings.stall_ms * (uint64_t)MS + rest_us;
    unsigned attempts = wait_ms == 0 && lock.priv.op.attempts > 0 ? lock.priv.op.attempts : 1;

    if (call > 0)
        return us + (call == 2 ? wait_ms * (uint64_t)MS : 0);
    return wait_ms * (uint64_t)MS +
           attempts * (us * 5 / 2 + connect_us + (lock.use_fencing ? 4 * us : 0));
}

/* The three calls in any order, on servers with any faults. Returns 0 if one takes longer than promised. */
static int rolled_calls_are_bounded(uint32_t seed)
{
    static struct redlock_io io;
    unsigned i, k, count;

    io = *fake_io();
    io.wait = wait_and_note_votes;
    dice = seed;
    memset(&settings, 0, sizeof settings);
    settings.node_timeout_ms = 5 + roll(100);
    settings.stall_ms = settings.node_timeout_ms * (1 + roll(20));
    count = 1 + roll(REDLOCK_NODES_MAX < 5 ? REDLOCK_NODES_MAX : 5);
    begin(count);
    client.priv.io = &io;
    fake_unlogged = 1;
    lock.ttl_ms = 1000 + roll(60000);
    set_use_fencing(&lock, !REDLOCK_MINIMAL && one_in(4));
    for (k = 0; k < 12; k++) {
        uint32_t wait_ms = one_in(2) ? roll(400) : 0;
        uint64_t start;
        int call = (int)roll(3);

        for (i = 0; i < count; i++)
            if (one_in(3))
                roll_faults((int)i);
        if (one_in(3))
            fake_pass(&client, roll(2000) * (uint64_t)MS);
        if (call == 0)
            redlock_abandon(&client, &lock);
        start = fake_now_us;
        vote_us = 0;
        (void)(call == 0 ? acquire(wait_ms) : call == 1 ? extend() : release(wait_ms));
        note_vote_us(nodes, count);
        if (since(start) > (long)promised_us(call, wait_ms, vote_us) + 2 * MS)
            return 0;
    }
    redlock_deinit(&client);
    return 1;
}

static void r15_blocking_calls_are_bounded(void)
{
    uint32_t seed, wrong = 0, first = 0;

    for (seed = 1; seed <= 3000; seed++)
        if (!rolled_calls_are_bounded(seed)) {
            wrong++;
            first = first == 0 ? seed : first;
        }
    ok(wrong == 0, "r15: %lu of 3,000 programs are blocked too long, first seed %lu",
       (unsigned long)wrong, (unsigned long)first);
}

static uint64_t next_change_us;
static long vote_ms; /* the longest time of a vote in this run */

/* A node hangs or goes on, or another client acquires or releases the lock there. */
static void change_a_node(unsigned count)
{
    static const char *const holders[] = {"a", "b", "c"};
    int i = (int)roll(count);

    switch (roll(4)) {
    case 0:
        fake_nodes[i].hung = 1;
        break;
    case 1:
        fake_resume(i);
        break;
    case 2:
        if (!fake_nodes[i].hung)
            fake_put(i, "k", holders[roll(3)], 60000);
        break;
    default:
        if (!fake_nodes[i].hung)
            fake_delete(i, "k");
    }
}

/* Meanwhile nodes change, some milliseconds after each other. */
static void wait_while_nodes_change(void *context, struct redlock_node *all, unsigned count,
                                    uint64_t timeout_us, uint8_t *events)
{
    uint64_t left_us = next_change_us > fake_now_us ? next_change_us - fake_now_us : 0;
    unsigned i;

    for (i = 0; i < count; i++)
        if ((long)((all[i].priv.timeout_us + MS - 1) / MS) > vote_ms)
            vote_ms = (long)((all[i].priv.timeout_us + MS - 1) / MS);
    fake_io()->wait(context, all, count, timeout_us < left_us ? timeout_us : left_us, events);
    if (fake_now_us < next_change_us)
        return;
    change_a_node(count);
    next_change_us = fake_now_us + (1 + roll(30)) * MS;
}

/* However nodes change, an acquire ends in the time that redlock.h promises: wait_ms and `votes` times node_timeout_ms.
   The nodes change so often that many attempts fail. */
static void r15_the_longest_acquire(uint32_t wait_ms, long votes)
{
    struct redlock_io io = *fake_io();
    unsigned run, i, late = 0, failed = 0;
    long longest_us = 0;

    io.wait = wait_while_nodes_change;
    for (run = 0; run < 700; run++) {
        unsigned count = 3 + run % 3;
        uint64_t start;

        dice = run;
        vote_ms = 50;
        begin_with_defaults(count);
        warm_up();
        client.priv.io = &io;
        for (i = 0; i < 2 * count; i++)
            change_a_node(count);
        next_change_us = start = fake_now_us;
        failed += acquire(wait_ms) != REDLOCK_OK;
        late += since(start) > ((long)wait_ms + votes * vote_ms) * MS;
        if (vote_ms == 50 && since(start) > longest_us)
            longest_us = since(start);
    }
    ok(late == 0,
       "r15: an acquire that waits %lu ms takes at most %ld votes more: %u of 700 do not",
       (unsigned long)wait_ms, votes, late);
    ok(longest_us > ((long)wait_ms + votes * 50 / 3) * MS,
       "r15: one takes more than a third of them: %ld us", longest_us);
    ok(failed > 150, "r15: %u fail", failed);
}

int main(void)
{
    unsigned how;

    r15_who_was_too_slow();
    r15_a_stall_is_longer_than_node_timeout();
    r15_everything_is_bounded();
    r15_an_attempt_takes_a_quarter_of_the_ttl_at_most();
    r15_a_chatty_node_does_not_hold_the_loop();
    r15_no_wait_for_dead_nodes(3);
    r15_no_wait_for_dead_nodes(5);
    r15_distances();
    r15_a_distance_that_grows();
    r15_a_far_node_accepts_bytes_late();
    r15_a_far_node_does_not_delay_the_near_ones();
    for (how = 0; how < 4; how++) {
        r15_a_far_node_is_needed(how, 80 * MS);
        r15_a_far_node_is_needed(how, 150 * MS);
    }
    r15_a_distance_that_grows_between_calls(800 * MS, 0);
    r15_a_distance_that_grows_between_calls(2000 * MS, 0);
    r15_a_distance_that_grows_between_calls(2000 * MS, 1);
    r15_a_round_trip_of_several_requests();
    r15_a_pause_before_the_tick();
    r15_blocking_calls_are_bounded();
    r15_the_longest_acquire(0, 15);
    r15_the_longest_acquire(200, 2);
    return done_testing();
}
