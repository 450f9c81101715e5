/* lock_connection_test.c - R5, connections: replies in order, stalls, backoff.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "one_lock.h"

/* A server closes each connection after the handshake. The client reconnects once at once, then only after a
   backoff, and not for each attempt. */
static void r05_backoff_although_the_handshake_succeeds(void)
{
    unsigned i;

    begin_with_defaults(3);
    fake_nodes[0].reply = "";
    for (i = 0; i < 100; i++) {
        acquire(0);
        fake_pass(&client, 10 * MS);
        release(100);
        fake_pass(&client, 10 * MS);
    }
    ok(fake_nodes[0].connects > 4 && fake_nodes[0].connects < 12, "r05: %d connects in 2 s",
       fake_nodes[0].connects);
    fake_nodes[0].reply = NULL;
    fake_pass(&client, 3000 * MS);
    acquire(0); /* connects it */
    fake_pass(&client, 10 * MS);
    release(100);
    acquire(0);
    fake_pass(&client, 10 * MS);
    is_int(lock.members, 7, "r05: the node is a member when its connection works again");
    release(100);
}

static void r05_late_replies_are_dropped(void)
{
    memset(&settings, 0, sizeof settings);
    settings.retries = REDLOCK_NONE;
    begin(3);
    warm_up();
    held_by("other", 1, 2);
    fake_nodes[0].delay_us = 80 * MS; /* its grant arrives long after the attempt has failed */
    is_int(acquire(0), REDLOCK_HELD, "r05: the attempt fails before the slow grant arrives");
    fake_nodes[1].server.keys[0].name.size = 0; /* the other client's key expires on node 1 */
    fake_nodes[2].delay_us = 200 * MS;
    redlock_acquire_start(&client, &lock, 0);
    fake_pass(&client, 45 * MS);
    is_int(lock.granted, 2, "r05: the late grant of attempt 1 is no vote for attempt 2");
    fake_pass(&client, 300 * MS);
    is_int((int)fake_keys_left(), 1, "r05: no key of ours is left");
}

/* The error after a list. */
#define A_LIST "unexpected reply"

/* Replies that must close the connection, and the error of the node. */
static void r05_nonsense_disconnects(void)
{
    static const struct {
        const char *reply, *error;
    } cases[] = {
        {"HTTP/1.1 400 Bad Request\r\n\r\n", "does not speak RESP"},
        {"$99999999999999999999\r\n", "does not speak RESP"},
        {"$1073741824\r\n", "does not speak RESP"},
        {"*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n", A_LIST},
        {"*100000\r\n", A_LIST},
        {":1\r\n", "unexpected reply"},
        {"+QUEUED\r\n", "unexpected reply"},
        {"+NO\r\n", "unexpected reply"},
        {"$2\r\nOK\r\n", "unexpected reply"},
        {"+OK\r\n+OK\r\n+OK\r\n", "unexpected reply"},
        {"+OK\r\n-ERR unasked\r\n-ERR unasked\r\n", "unsolicited: ERR unasked"},
        {"", "closed by the server"},
    };
    unsigned i;

    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin_with_defaults(3);
        warm_up();
        fake_nodes[0].reply = cases[i].reply;
        fake_nodes[0].delay_us = 0;
        is_int(acquire(0), REDLOCK_OK, "r05: the others decide");
        fake_pass(&client, 5 * MS);
        ok(has_error(0, cases[i].error), "r05: \"%.12s\": %s", cases[i].reply, nodes[0].error);
        ok(nodes[0].state != REDLOCK_NODE_READY, "r05: the node is disconnected");
    }
}

/* RESP3 pushes are not replies to commands. */
static void r05_a_push_is_not_a_reply(void)
{
    begin_with_defaults(3);
    warm_up();
    fake_nodes[0].reply = ">2\r\n+invalidate\r\n*0\r\n";
    is_int(acquire(0), REDLOCK_OK, "r05: the others decide");
    fake_pass(&client, 5 * MS);
    is_int(nodes[0].state == REDLOCK_NODE_READY, !REDLOCK_MINIMAL,
           "r05: a push does not close the connection, unless the client knows RESP2 only");
    is_int(lock.granted & 1, 0, "r05: a push is not a vote");
}

static void r05_an_unsolicited_first_reply_disconnects(void)
{
    begin_with_defaults(3);
    fake_nodes[0].first_bytes = "-ERR max number of clients reached\r\n";
    fake_nodes[0].delay_us = 0;
    fake_nodes[0].hung = 1;
    is_int(acquire(0), REDLOCK_OK, "r05: the others decide");
    ok(has_error(0, "ERR max number"), "r05: %s", nodes[0].error);
}

static void r05_one_byte_at_a_time(void)
{
    unsigned i;

    begin_with_defaults(5);
    for (i = 0; i < 5; i++)
        fake_nodes[i].drip = 1;
    is_int(acquire(0), REDLOCK_OK, "r05: one byte per packet: acquire");
    is_int(extend(), REDLOCK_OK, "r05: extend");
    is_int(release(100), REDLOCK_OK, "r05: release");
    fake_pass(&client, 10 * MS);
    is_int((int)fake_keys_left(), 0, "r05: no key is left");
}

static void r05_stalled_connection(void)
{
    uint64_t start;
    int connects, i;

    begin_with_defaults(3);
    warm_up();
    fake_nodes[2].hung = 1;
    acquire(0);
    fake_pass(&client, 900 * MS);
    is_int(nodes[2].state, REDLOCK_NODE_READY, "r05: a reply is due for 0.9 s: connected");
    fake_pass(&client, 150 * MS);
    is_int(nodes[2].state, REDLOCK_NODE_DOWN,
           "r05: a reply is due for more than stall_ms: disconnected");
    ok(has_error(2, "no reply"), "r05: %s", nodes[2].error);
    fake_nodes[1].refuses = fake_nodes[2].refuses = 1;
    release(10);
    fake_break(1);
    start = fake_now_us;
    is_int(acquire(0), REDLOCK_UNREACHABLE, "r05: two of three are down");
    ok(since(start) < 40 * MS, "r05: the failure is reported without waiting (%ld us)",
       since(start));
    fake_pass(&client, 10000 * MS);
    connects = fake_nodes[2].connects;
    for (i = 0; i < 1000; i++) { /* 10 s of attempts */
        acquire(0);
        fake_pass(&client, 10 * MS);
    }
    connects = fake_nodes[2].connects - connects;
    ok(connects >= 4 && connects <= 20,
       "r05: backoff between connects that are refused: %d in 10 s", connects);
    fake_nodes[1].refuses = fake_nodes[2].refuses = fake_nodes[2].hung = 0;
    is_int(acquire(5000), REDLOCK_OK, "r05: acquired when the nodes are back");
}

static void r05_a_connection_breaks_beside_a_held_lock(void)
{
    unsigned zeros = 0;

    begin_with_defaults(3);
    is_int(acquire(0), REDLOCK_OK, "r05: held");
    fake_pass(&client, 10 * MS);
    fake_break(2);
    redlock_handle_events(&client, 2, REDLOCK_READABLE);
    while (zeros < 10 && redlock_tick(&client) == 0)
        zeros++;
    ok(zeros < 10, "r05: the next wait is not for nothing: %u ticks returned 0", zeros);
    is_int(release(100), REDLOCK_OK, "r05: released");
}

/* Each tick completes another lock, so that none is followed by a wait. */
static void r05_a_stall_between_complete_locks(void)
{
    struct redlock_lock other;
    unsigned ms, zeros = 0;

    begin_with_defaults(3);
    warm_up();
    fake_pass(&client, 10 * MS);
    fake_nodes[2].hung = 1;
    redlock_lock_init(&other, "other", 10000);
    redlock_acquire_start(&client, &lock, 0);
    for (ms = 0; ms < 1100; ms++) {
        redlock_acquire_start(&client, &other, 0);
        redlock_cancel(&client, &other);
        zeros += redlock_tick(&client) == 0;
        while (redlock_next_completed(&client) != NULL)
            ;
        fake_now_us += MS;
        redlock_handle_events(&client, 0, REDLOCK_READABLE);
        redlock_handle_events(&client, 1, REDLOCK_READABLE);
    }
    is_int((int)zeros, 1100, "r05: each tick completes a lock");
    is_int(lock.status, REDLOCK_OK, "r05: one of them is held");
    ok(nodes[2].state != REDLOCK_NODE_READY && has_error(2, "no reply in time"),
       "r05: the hung node is given up: %s", nodes[2].error);
}

/* The caller does not call the library for longer than stall_ms. A reply that arrived meanwhile is in time. */
static void r05_an_idle_caller_causes_no_stall(void)
{
    begin_with_defaults(3);
    warm_up();
    fake_nodes[2].delay_us = 20 * MS;
    is_int(acquire(0), REDLOCK_OK, "r05: two nodes decide, the third has not replied yet");
    fake_now_us += 1500 * MS;
    is_int(release(100), REDLOCK_OK, "r05: released 1.5 s later");
    fake_pass(&client, 50 * MS);
    is_int(fake_nodes[2].connects, 1, "r05: the third connection stays up: %s", nodes[2].error);
    is_int((int)fake_keys_left(), 0, "r05: no key is left");
    is_int(acquire(0), REDLOCK_OK, "r05: acquired again");
    fake_break(2);
    fake_now_us += 1500 * MS;
    is_int(release(100), REDLOCK_OK, "r05: released after the third connection broke");
    fake_pass(&client, 50 * MS);
    ok(strstr(nodes[2].error, "stall_ms") == NULL,
       "r05: the error names the broken connection, not a stall: %s", nodes[2].error);
}

/* A server closes a connection with an unanswered command, and the client is paused when it has seen that. The connection is
   closed once, for the first reason. Found by sim.c. */
static void r05_a_broken_connection_does_not_stall(void)
{
    if (REDLOCK_NODES_MAX < 5)
        return;
    begin_with_defaults(5);
    warm_up();
    fake_nodes[0].hung = fake_nodes[1].hung = 1;
    redlock_acquire_start(&client, &lock, 0);
    fake_pass(&client, 20 * MS);
    is_int(lock.status, REDLOCK_OK, "r05: three nodes decide, two do not reply");
    fake_break(0);
    fake_now_us += 1100 * MS;
    fake_receive_us = 1100 * MS;
    redlock_tick(&client);
    ok(has_error(0, "closed by the server"), "r05: closed, and not late: %s", nodes[0].error);
}

/* A NAT has dropped the idle connections in silence. The first operation finds that, connects again, and succeeds. */
static void r05_half_open_connections(unsigned count, int what, uint32_t ttl_ms)
{
    uint64_t start;
    unsigned i;
    int status;

    begin_with_defaults(3);
    warm_up();
    fake_pass(&client, 1500 * MS);
    lock.ttl_ms = ttl_ms;
    if (what != 'a')
        acquire(0); /* it had time for its vote, and the next command has not */
    fake_pass(&client, 5000 * MS);
    for (i = 0; i < count; i++)
        fake_hold((int)i);
    start = fake_now_us;
    status = what == 'a' ? acquire(0) : what == 'e' ? extend() : release(500);
    is_int(status, REDLOCK_OK, "r05: %u of three connections are half open: %c, ttl %lu ms", count,
           what, (unsigned long)ttl_ms);
    ok(since(start) < (what == 'a' ? 200 : 45) * MS, "r05: after %ld us", since(start));
    fake_pass(&client, 60 * MS);
    for (i = 0; i < count; i++)
        ok(fake_nodes[i].connects == 2 || nodes[i].state == REDLOCK_NODE_IDLE,
           "r05: the connection to node %u is given up", i);
    redlock_deinit(&client);
}

/* The servers are busy for less than the time of a vote, when the first command comes after a second. A command
   that acquires is not sent again, so its connection stays for that time. It also does if a release of another lock
   was sent before, 'r', or if an acquire of another lock, with a short ttl, is sent behind it, 'a'. */
static void r05_busy_servers_are_not_half_open(int what_else)
{
    unsigned i, connects = 0;
    struct redlock_lock other;

    memset(&settings, 0, sizeof settings);
    settings.retries = REDLOCK_NONE;
    begin(3);
    warm_up();
    redlock_lock_init(&other, "o", 20000);
    if (what_else == 'r')
        redlock_acquire(&client, &other, 0);
    fake_pass(&client, 1500 * MS);
    for (i = 0; i < 3; i++)
        fake_nodes[i].delay_us = 35 * MS;
    if (what_else == 'r')
        redlock_release_start(&client, &other, 100);
    redlock_acquire_start(&client, &lock, 0);
    other.ttl_ms = 120;
    if (what_else == 'a')
        redlock_acquire_start(&client, &other, 0);
    fake_pass(&client, 100 * MS);
    is_int((int)lock.status, REDLOCK_OK, "r05: busy for 35 ms (%c): acquired without a retry",
           what_else);
    for (i = 0; i < 3; i++)
        connects += (unsigned)fake_nodes[i].connects;
    is_int((int)connects, 3, "r05: on the connections that there are");
    redlock_deinit(&client);
}

static void start(struct redlock_lock *of, int what)
{
    if (what == 'a')
        redlock_acquire_start(&client, of, 0);
    else
        redlock_extend_start(&client, of);
}

/* Two locks ask after idleness: 'a' acquires, 'e' extends. The first, 0, or the second, 1, has no time for a reply: a
   quarter of its ttl is shorter than the round trip, or its validity ends. The servers reply in time for the other
   lock, on the connections that there are. */
static void r05_a_lock_without_time_breaks_no_connection(int first, int second, int hasty)
{
    unsigned i, connects = 0;
    struct redlock_lock other;
    int whats[2];

    whats[0] = first;
    whats[1] = second;
    memset(&settings, 0, sizeof settings);
    settings.retries = REDLOCK_NONE;
    begin(3);
    for (i = 0; i < 3; i++)
        set_distance((int)i, 26 * MS);
    warm_up();
    redlock_lock_init(&other, "o", 2000);
    if (whats[!hasty] == 'e')
        acquire(0);
    if (whats[hasty] == 'e') {
        redlock_acquire(&client, &other, 0);
        fake_pass(&client, other.valid_until_us - fake_now_us - 3 * MS);
    } else {
        other.ttl_ms = 50;
        fake_pass(&client, 1500 * MS);
    }
    start(hasty == 0 ? &other : &lock, first);
    start(hasty == 1 ? &other : &lock, second);
    fake_pass(&client, 100 * MS);
    is_int((int)other.status, REDLOCK_UNREACHABLE, "r05: %c and %c: lock %d has no time", first,
           second, hasty);
    is_int((int)lock.status, REDLOCK_OK, "r05: the other lock has");
    for (i = 0; i < 3; i++)
        connects += (unsigned)fake_nodes[i].connects;
    is_int((int)connects, 3, "r05: on the connections that there are");
    redlock_deinit(&client);
}

/* A server that hangs on a busy connection is not connected again before stall_ms. */
static void r05_a_busy_connection_is_not_half_open(void)
{
    int connects;

    begin_with_defaults(3);
    warm_up();
    acquire(0);
    fake_pass(&client, 500 * MS);
    connects = fake_nodes[2].connects;
    fake_nodes[2].hung = 1;
    extend();
    fake_pass(&client, 300 * MS);
    is_int(fake_nodes[2].connects, connects, "r05: a server that hangs keeps its connection");
    redlock_deinit(&client);
}

/* The connection of a node that is farther away than stall_ms is given up no later because it was idle. */
static void r05_an_idle_connection_has_no_more_than_stall_ms(void)
{
    begin_with_defaults(3);
    warm_up();
    acquire(0);
    nodes[2].rtt_us = 5000 * MS;
    fake_pass(&client, 5000 * MS);
    fake_nodes[2].hung = 1;
    is_int(extend(), REDLOCK_OK, "r05: two of three nodes confirm, the third is far and silent");
    fake_pass(&client, 1100 * MS);
    ok(nodes[2].state != REDLOCK_NODE_READY, "r05: given up after stall_ms, although it was idle");
    redlock_deinit(&client);
}

/* Time passes between two readings of the clock in a tick. A new connection is no idle one that may be half open: its first
   command has all the time that stall_ms gives. */
static void r05_a_new_connection_is_not_half_open(void)
{
    begin_with_defaults(3);
    fake_clock_us = 1;
    fake_nodes[2].drops_set_reply = 1;
    is_int(acquire(0), REDLOCK_OK,
           "r05: acquired on new connections, and one node has not replied");
    fake_pass(&client, 200 * MS);
    is_int(nodes[2].state, REDLOCK_NODE_READY, "r05: it keeps its connection: %s", nodes[2].error);
    redlock_deinit(&client);
}

/* One node grants the lock, one refuses it, and the third is being connected: when that fails, the outcome is known. */
static void r05_a_connect_that_fails_ends_the_wait(void)
{
    memset(&settings, 0, sizeof settings);
    settings.retries = REDLOCK_NONE;
    begin(3);
    warm_up();
    held_by("other", 1, 1);
    fake_nodes[2].connect_us = 1000 * MS;
    fake_break(2);
    fake_pass(&client, 1 * MS);
    redlock_acquire_start(&client, &lock, 0);
    fake_pass(&client, 30 * MS);
    ok(lock.status == REDLOCK_PENDING && fake_count(-1, 'S') > 0, "r05: asked, and undecided");
    fake_break(2);
    fake_pass(&client, 10 * MS);
    ok(lock.status != REDLOCK_PENDING, "r05: the connect has failed: %s",
       redlock_strerror(lock.status));
    redlock_next_completed(&client);
}

/* An event loop reports a connect that has failed, or is complete, as readable only. */
static void r05_any_event_ends_a_connect(void)
{
    begin_with_defaults(1);
    fake_nodes[0].connect_us = 5 * MS;
    redlock_acquire_start(&client, &lock, 1000);
    redlock_tick(&client);
    is_int((int)nodes[0].state, REDLOCK_NODE_CONNECTING, "r05: connecting");
    fake_now_us += 5 * MS;
    redlock_handle_events(&client, 0, REDLOCK_READABLE);
    is_int((int)nodes[0].state, REDLOCK_NODE_HANDSHAKE, "r05: connected");
}

/* No validity is left to an adopted lock, so nothing is too late for it: servers that close each connection are not
   connected again and again. */
static void r05_backoff_while_an_adopted_lock_is_extended(void)
{
    int i, most = 0;

    begin_with_defaults(3);
    for (i = 0; i < 3; i++)
        fake_nodes[i].first_bytes = "-ERR max number of clients reached\r\n";
    lock.members = 7;
    is_int((int)redlock_adopt(&client, &lock, 0), REDLOCK_OK, "r05: adopted");
    is_int((int)redlock_extend(&client, &lock), REDLOCK_UNREACHABLE, "r05: not extended");
    for (i = 0; i < 3; i++)
        most = fake_nodes[i].connects > most ? fake_nodes[i].connects : most;
    ok(most >= 1 && most <= 4, "r05: with pauses in between: %d connections", most);
    for (i = 0; i < 40; i++) {
        fake_pass(&client, 25 * MS);
        redlock_extend(&client, &lock);
    }
    ok(fake_nodes[0].connects <= 10, "r05: also when it is tried for a second: %d connections",
       fake_nodes[0].connects);
}

/* Two servers close each connection at once, and a third one hangs, until the validity ends. A pause would last
   longer than that, so the two are connected sooner, but not again and again. */
static void r05_backoff_before_the_validity_ends(void)
{
    int i, most = 0;

    begin_with_defaults(5);
    for (i = 0; i < 5; i++)
        fake_nodes[i].delay_us = fake_nodes[i].connect_us = 50;
    acquire(0);
    redlock_auto_extend_start(&client, &lock, 1000);
    fake_nodes[2].hung = 1;
    for (i = 3; i < 5; i++) {
        fake_nodes[i].first_bytes = "-ERR max number of clients reached\r\n";
        fake_nodes[i].connects = 0;
        fake_break(i);
    }
    fake_pass(&client, lock.valid_until_us - fake_now_us - 1);
    is_int(lock.status, REDLOCK_PENDING, "r05: not extended by two of five");
    for (i = 3; i < 5; i++)
        most = fake_nodes[i].connects > most ? fake_nodes[i].connects : most;
    ok(most >= 6 && most <= 600, "r05: with pauses in between: %d connections in 10 s", most);
}

/* Near the end of the validity an extension connects without the backoff, because the next moment would be
   too late. This must not happen for a node that was rejected as a duplicate. */
static void r05_backoff_for_a_rejected_node(void)
{
    int connects;

    begin_with_defaults(3);
    fake_nodes[2].server.run = fake_nodes[0].server.run;
    fake_nodes[2].connect_us = 5 * MS;
    lock.ttl_ms = 300;
    is_int(acquire(0), REDLOCK_OK, "r05: acquired on two servers, one of them is listed twice");
    fake_pass(&client, 200 * MS);
    fake_nodes[2].connect_us = 100;
    fake_nodes[0].delay_us = fake_nodes[1].delay_us = 30 * MS;
    connects = fake_nodes[2].connects;
    is_int(extend(), REDLOCK_OK, "r05: extended");
    connects = fake_nodes[2].connects - connects;
    ok(connects <= 2, "r05: %d connects to the second address", connects);
}

/* An operator corrects the password or the permissions. The next acquire succeeds: at once with wait_ms 0,
   otherwise within wait_ms, however often it was denied before. */
static void r05_corrected_permissions(uint32_t wait_ms, const char *hello)
{
    unsigned times, calls, failed = 0, slow = 0;
    int i;

    for (calls = 1; calls <= 12; calls++)
        for (times = 0; times < 4; times++) {
            uint64_t start;
            begin_with_defaults(3);
            for (i = 0; i < 3; i++) {
                fake_nodes[i].server.password = hello == NULL ? "right" : NULL;
                fake_nodes[i].server.hello = hello;
            }
            for (i = 0; i < (int)calls; i++) {
                failed += acquire(0) != REDLOCK_DENIED;
                fake_pass(&client,
                          (100 + times * 150) * MS); /* the pause before the next connect */
            }
            for (i = 0; i < 3; i++)
                fake_nodes[i].server.password = fake_nodes[i].server.hello = NULL;
            start = fake_now_us;
            failed += acquire(wait_ms) != REDLOCK_OK;
            slow += since(start) > 100 * MS;
        }
    is_int((int)failed, 0,
           "r05: %s, waiting %lu ms: the first acquire after the correction succeeds",
           hello == NULL ? "a password" : "a permission", (unsigned long)wait_ms);
    if (wait_ms == 0)
        is_int((int)slow, 0, "r05: within 100 ms");
}

/* Of five nodes one is down and one hangs, but still accepts connections. After two grants and a refusal the
   attempt must fail at once, not after node_timeout_ms. */
static void r05_a_hung_node_costs_no_time(void)
{
    unsigned i, slow = 0, wrong = 0;
    uint64_t start;

    memset(&settings, 0, sizeof settings);
    settings.retries = REDLOCK_NONE;
    begin(5);
    warm_up();
    make_unreachable(3);
    fake_nodes[4].hung = 1;
    held_by("other", 2, 2);
    for (i = 0; i < 30; i++) { /* until the client knows that it hangs */
        acquire(0);
        fake_pass(&client, 50 * MS);
    }
    fake_unlogged = 1;
    for (i = 0; i < 400; i++) {
        start = fake_now_us;
        wrong += acquire(0) == REDLOCK_OK;
        slow += since(start) > 10 * MS;
        fake_pass(&client, 5 * MS);
        if (i % 100 == 99)
            held_by("other", 2, 2);
    }
    is_int((int)slow, 0, "r05: none of 400 attempts waits for the hung node");
    is_int((int)wrong, 0, "r05: none succeeds");
    fake_resume(4);
    for (i = 0; i < 40 && acquire(0) != REDLOCK_OK; i++)
        fake_pass(&client, 100 * MS);
    is_int((int)lock.status, REDLOCK_OK, "r05: acquired when the hung node replies again");
    release(100);
    fake_pass(&client, 100 * MS);
    is_int((int)fake_keys_left(), 1, "r05: no key of ours is left");
}

/* A program that calls the library from time to time only. Its last call failed, as no server ran. The pause
   before the next connect is long over, so the next call must connect. */
static void r05_a_pause_between_two_calls(void)
{
    int i;

    begin_with_defaults(3);
    for (i = 0; i < 3; i++)
        fake_nodes[i].refuses = 1;
    is_int(acquire(0), REDLOCK_UNREACHABLE, "r05: no server runs");
    for (i = 0; i < 3; i++)
        fake_nodes[i].refuses = 0;
    fake_now_us += 10000 * MS;
    is_int(acquire(0), REDLOCK_OK, "r05: 10 s later all run, and the lock is held");
    is_int(release(100), REDLOCK_OK, "r05: released");
}

/* The only node hangs. The stall must be found although no event occurs. */
static void r05_a_stall_without_events(void)
{
    begin_with_defaults(1);
    warm_up();
    is_int(acquire(0), REDLOCK_OK, "r05: held");
    fake_pass(&client, 100 * MS);
    fake_nodes[0].hung = 1;
    is_int(extend(), REDLOCK_UNREACHABLE, "r05: the only node hangs");
    fake_pass(&client, 2000 * MS);
    ok(nodes[0].state != REDLOCK_NODE_READY, "r05: the connection is closed");
}

static void r05_a_lost_lock_is_not_written_to(void)
{
    memset(&settings, 0, sizeof settings);
    settings.stall_ms = 60000;
    begin(3);
    lock.ttl_ms = 1000;
    is_int(acquire(0), REDLOCK_OK, "r05: held");
    redlock_auto_extend_start(&client, &lock, 100);
    fake_pass(&client, 300 * MS);
    fake_nodes[2].delay_us = 5000 * MS;
    fake_pass(&client, 100 * MS);
    is_int(lock.extended, 1, "r05: extended by two, the third is slow");
    fake_sleep_us = 2000 * MS;
    is_int(wait_for(&lock, 3000 * MS), REDLOCK_LOST, "r05: lost while the process sleeps");
    ok(stays_unchanged(6000 * MS), "r05: the late reply of the third does not write to the lock");
}

/* The process was paused while it connected. The handshake is sent after the pause, so no reply is late. */
static void r05_a_pause_while_it_connects(void)
{
    int i;

    begin_with_defaults(3);
    for (i = 0; i < 3; i++)
        fake_nodes[i].connect_us = 5 * MS;
    fake_sleep_us = 2000 * MS;
    is_int(acquire(0), REDLOCK_OK, "r05: paused while it connects, and held");
    is_int(fake_nodes[0].connects, 1, "r05: no connection is closed");
}

/* A node that refuses connections is not connected again and again until the clock is where it was. */
static void r05_a_clock_that_steps_back(void)
{
    int before;

    begin_with_defaults(3);
    is_int(acquire(0), REDLOCK_OK, "r05: held");
    fake_nodes[2].refuses = 1;
    fake_break(2);
    fake_pass(&client, 10 * MS);
    before = fake_nodes[2].connects;
    fake_now_us -= 4000 * MS;
    extend();
    fake_pass(&client, 1000 * MS);
    ok(fake_nodes[2].connects <= before + 6,
       "r05: the clock steps back: connected %d times, after pauses that grow",
       fake_nodes[2].connects - before);
    redlock_deinit(&client);
}

int main(void)
{
    r05_backoff_although_the_handshake_succeeds();
    r05_late_replies_are_dropped();
    r05_nonsense_disconnects();
    r05_a_push_is_not_a_reply();
    r05_an_unsolicited_first_reply_disconnects();
    r05_one_byte_at_a_time();
    r05_stalled_connection();
    r05_a_connection_breaks_beside_a_held_lock();
    r05_a_stall_between_complete_locks();
    r05_an_idle_caller_causes_no_stall();
    r05_a_broken_connection_does_not_stall();
    r05_a_connect_that_fails_ends_the_wait();
    r05_half_open_connections(1, 'a', 10000);
    r05_half_open_connections(2, 'a', 10000);
    r05_half_open_connections(3, 'a', 10000);
    r05_half_open_connections(3, 'a', 120);
    r05_half_open_connections(3, 'e', 60000);
    r05_half_open_connections(3, 'r', 60000);
    r05_busy_servers_are_not_half_open('-');
    r05_busy_servers_are_not_half_open('r');
    r05_busy_servers_are_not_half_open('a');
    r05_a_lock_without_time_breaks_no_connection('a', 'a', 0);
    r05_a_lock_without_time_breaks_no_connection('a', 'a', 1);
    r05_a_lock_without_time_breaks_no_connection('e', 'a', 0);
    r05_a_lock_without_time_breaks_no_connection('e', 'a', 1);
    r05_a_busy_connection_is_not_half_open();
    r05_an_idle_connection_has_no_more_than_stall_ms();
    r05_a_new_connection_is_not_half_open();
    r05_any_event_ends_a_connect();
    if (!REDLOCK_MINIMAL) {
        r05_backoff_while_an_adopted_lock_is_extended();
        r05_backoff_before_the_validity_ends();
    }
    if (!REDLOCK_MINIMAL)
        r05_backoff_for_a_rejected_node();
    r05_corrected_permissions(0, NULL);
    r05_corrected_permissions(1000, NULL);
    if (!REDLOCK_MINIMAL)
        r05_corrected_permissions(
            0, "-NOAUTH HELLO must be called with the client already authenticated\r\n");
    r05_a_hung_node_costs_no_time();
    r05_a_pause_between_two_calls();
    r05_a_stall_without_events();
    if (!REDLOCK_MINIMAL)
        r05_a_lost_lock_is_not_written_to();
    r05_a_pause_while_it_connects();
    if (!REDLOCK_MINIMAL)
        r05_a_clock_that_steps_back();
    return done_testing();
}
