/* lock_waiting_test.c - R6, R7, a lock that another client has: the pauses between attempts, the line, and
   notifications.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "many_locks.h"
#include "one_lock.h"

static void r06_a_failed_attempt_ends_early(void)
{
    uint64_t start;

    begin_with_defaults(5);
    warm_up();
    held_by("other", 0, 2);
    fake_nodes[3].hung = fake_nodes[4].hung = 1;
    start = fake_now_us;
    is_int(acquire(0), REDLOCK_HELD, "r06: another client holds it on three nodes, two hang");
    ok(since(start) <= 3 * MS, "r06: reported within three round trips, %ld us", since(start));
}

static void r06_number_of_attempts(void)
{
    memset(&settings, 0, sizeof settings);
    settings.retries = REDLOCK_NONE;
    begin(3);
    held_by("other", 0, 2);
    is_int(acquire(60000), REDLOCK_HELD, "r06: no retries: held");
    is_int((int)fake_count(0, 'S'), 1, "r06: one attempt");
    held_by("second", 0, 0);
    begin(3);
    held_by("a", 0, 0);
    held_by("b", 1, 1);
    is_int(acquire(0), REDLOCK_CONTENDED, "r06: no retries: contention");
    is_int((int)fake_count(0, 'S'), 1, "r06: also after contention");
    settings.retries = 3;
    begin(3);
    held_by("other", 0, 2);
    is_int(acquire(60000), REDLOCK_HELD, "r06: three retries");
    is_int((int)fake_count(0, 'S'), 4, "r06: four attempts");
    begin_with_defaults(3);
    held_by("other", 0, 2);
    is_int(acquire(0), REDLOCK_HELD, "r06: wait_ms 0: held");
    is_int((int)fake_count(0, 'S'), 1, "r06: wait_ms 0: one attempt when there is a holder");
    begin_with_defaults(4);
    held_by("a", 0, 0);
    held_by("b", 1, 1);
    is_int(acquire(0), REDLOCK_CONTENDED, "r06: wait_ms 0: contention");
    is_int((int)fake_count(0, 'S'), 1 + 5, "r06: wait_ms 0: five quick retries, as redlock.h says");
}

/* The pauses between attempts: 100 ms, growing by half, up to 1 s, each within half of it. */
static void r06_pauses_are_random_and_grow(void)
{
    uint64_t last = 0, shortest = REDLOCK_NEVER, longest = 0;
    unsigned i, expected = 100, wrong = 0, seen = 0;

    begin_with_defaults(1);
    held_by("other", 0, 0);
    is_int(acquire(20000), REDLOCK_TIMEOUT, "r06: timeout after 20 s");
    for (i = 0; i < fake_logged; i++) {
        uint64_t pause = fake_log[i].at_us - last;
        if (fake_log[i].kind != 'S')
            continue;
        if (last != 0 && fake_log[i].at_us - fake_log[0].at_us < 19000 * MS) {
            pause -= 3001; /* two round trips, and what is added to each pause */
            wrong += pause < expected * 500 || pause > expected * 1500;
            shortest = pause * 100 / expected < shortest ? pause * 100 / expected : shortest;
            longest = pause * 100 / expected > longest ? pause * 100 / expected : longest;
            expected = expected + (expected + 1) / 2 < 1000 ? expected + (expected + 1) / 2 : 1000;
            seen++;
        }
        last = fake_log[i].at_us;
    }
    ok(wrong == 0 && seen > 10, "r06: %u pauses, each within 50 percent of the expected one", seen);
    ok(longest > shortest + 40000, "r06: the pauses are random");
    ok(last >= fake_log[0].at_us + 19990 * MS && last <= fake_log[0].at_us + 20010 * MS,
       "r06: the last attempt is made when the wait ends");
}

/* Contention: on 5 nodes three other clients have keys, on 4 nodes two have. All these keys expire after 5 ms. */
static void r06_contention_is_retried_quickly(unsigned count)
{
    uint64_t start;

    begin_with_defaults(count);
    warm_up();
    fake_put(0, "k", "a", 5);
    fake_put(1, "k", "b", 5);
    if (count == 5)
        fake_put(2, "k", "c", 5);
    start = fake_now_us;
    is_int(acquire(0), REDLOCK_OK, "r06: contention that ends within 5 ms");
    ok(fake_count(0, 'S') > 1 && since(start) < 40 * MS, "r06: %u quick attempts, %ld us",
       fake_count(0, 'S'), since(start));
}

/* The pause after contention is random, up to twice a round trip and twice as much each time, and up to half of node_timeout_ms.
   Each attempt takes two round trips. */
static void r06_pauses_after_contention(void)
{
    unsigned run, i, k, above = 0, above_half = 0;
    uint32_t number;

    for (run = 0; run < 100; run++) {
        uint64_t last_us = 0;

        begin_with_defaults(3);
        warm_up();
        held_by("a", 0, 0);
        held_by("b", 1, 1);
        for (i = 0; i < run; i++) /* so that each run has other random numbers */
            fake_io()->entropy(NULL, &number, sizeof number);
        acquire(0);
        for (i = k = 0; i < fake_logged; i++) {
            uint64_t most_us = k < 5 ? (uint64_t)MS << k : 25 * MS;
            uint64_t pause_us = fake_log[i].at_us - last_us - 2 * MS;

            if (fake_log[i].kind != 'S' || fake_log[i].node != 0)
                continue;
            above += k > 0 && pause_us > most_us + 200;
            above_half += k > 0 && pause_us > most_us / 2 + 200;
            last_us = fake_log[i].at_us;
            k++;
        }
    }
    is_int((int)above, 0, "r06: pauses after contention: none is above its bound");
    ok(above_half > 150, "r06: %u of 500 are above half of it", above_half);
}

static void r06_results_are_distinct(void)
{
    begin_with_defaults(5);
    held_by("one", 0, 4);
    is_int(acquire(0), REDLOCK_HELD, "r06: one holder on all nodes");
    settings.retries = REDLOCK_NONE;
    begin(5);
    held_by("one", 0, 1);
    held_by("two", 2, 3);
    is_int(acquire(0), REDLOCK_CONTENDED,
           "r06: one node grants it, and no other client has a quorum: contention");
    begin_with_defaults(5);
    held_by("one", 0, 2);
    held_by("two", 3, 4);
    is_int(acquire(0), REDLOCK_HELD, "r06: one of two other clients has a quorum: held");
    begin(3);
    fake_nodes[0].reply = fake_nodes[1].reply = "-NOPERM this user has no permissions\r\n";
    is_int(acquire(60000), REDLOCK_DENIED, "r06: permission denied, without a wait");
    ok(has_error(0, "NOPERM"), "r06: the error is the server's text: %s", nodes[0].error);
    begin(3);
    fake_nodes[0].refuses = fake_nodes[1].refuses = 1;
    is_int(acquire(0), REDLOCK_UNREACHABLE, "r06: two of three refuse the connection");
    ok(has_error(1, "refused"), "r06: %s", nodes[1].error);
    is_int(acquire(500), REDLOCK_UNREACHABLE,
           "r06: also at the end of wait_ms, not REDLOCK_TIMEOUT");
    begin(3);
    held_by("one", 0, 2);
    is_int(acquire(500), REDLOCK_TIMEOUT, "r06: another client holds it during all of wait_ms");
}

/* Two of three nodes reply with an error. Permanent errors end the wait (DENIED), temporary ones do not. The
   texts are those of servers; some come from a script. */
static void r06_permanent_and_temporary_errors(void)
{
    static const struct {
        int outcome;
        enum redlock_fault fault;
        const char *reply;
    } cases[] = {
        {REDLOCK_DENIED, REDLOCK_FAULT_DENIED, "-NOAUTH Authentication required.\r\n"},
        {REDLOCK_DENIED, REDLOCK_FAULT_DENIED, "-NOPERM this user has no permissions\r\n"},
        {REDLOCK_DENIED, REDLOCK_FAULT_DENIED, "-WRONGPASS invalid username-password pair\r\n"},
        {REDLOCK_DENIED, REDLOCK_FAULT_ROLE,
         "-READONLY You can't write against a read only replica.\r\n"},
        {REDLOCK_DENIED, REDLOCK_FAULT_NOT_A_LOCK, "-WRONGTYPE Operation against a key\r\n"},
        {REDLOCK_DENIED, REDLOCK_FAULT_ROLE, "-MOVED 1234 127.0.0.1:6379\r\n"},
        {REDLOCK_DENIED, REDLOCK_FAULT_ROLE, "-ASK 1234 127.0.0.1:6379\r\n"},
        {REDLOCK_DENIED, REDLOCK_FAULT_ROLE,
         "-CROSSSLOT Keys in request don't hash to the same slot\r\n"},
        {REDLOCK_DENIED, REDLOCK_FAULT_DENIED,
         "-ERR The user executing the script can't run this command\r\n"},
        {REDLOCK_DENIED, REDLOCK_FAULT_DENIED, "-ERR ACL failure in script: No permissions\r\n"},
        {REDLOCK_UNREACHABLE, REDLOCK_FAULT_BUSY,
         "-LOADING Redis is loading the dataset in memory\r\n"},
        {REDLOCK_UNREACHABLE, REDLOCK_FAULT_BUSY, "-BUSY Redis is busy running a script.\r\n"},
        {REDLOCK_UNREACHABLE, REDLOCK_FAULT_MEMORY,
         "-OOM command not allowed when used memory > 'maxmemory'.\r\n"},
        {REDLOCK_UNREACHABLE, REDLOCK_FAULT_REPLIED,
         "-MISCONF Redis is configured to save RDB snapshots\r\n"},
        {REDLOCK_UNREACHABLE, REDLOCK_FAULT_REPLIED,
         "-TRYAGAIN Multiple keys request during rehashing of slot\r\n"},
        {REDLOCK_UNREACHABLE, REDLOCK_FAULT_REPLIED, "-CLUSTERDOWN Hash slot not served\r\n"},
        {REDLOCK_UNREACHABLE, REDLOCK_FAULT_REPLIED, "-MASTERDOWN Link with MASTER is down\r\n"},
        {REDLOCK_UNREACHABLE, REDLOCK_FAULT_REPLIED,
         "-NOREPLICAS Not enough good replicas to write.\r\n"},
        {REDLOCK_UNREACHABLE, REDLOCK_FAULT_REPLIED, "-ERR something else\r\n"},
    };
    unsigned i;

    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin_with_defaults(3);
        warm_up();
        fake_nodes[0].reply = fake_nodes[1].reply = cases[i].reply;
        is_int(acquire(500), cases[i].outcome, "r06: %.12s", cases[i].reply + 1);
        is_int(nodes[0].fault, cases[i].fault, "r06: its kind, for programs");
    }
}

/* Two of three nodes do not grant the lock: on one another client has the key, the other is down. The attempt
   has failed, but only the third node can show whether another client has a quorum. */
static void r06_failed_but_the_reason_is_still_open(void)
{
    unsigned slow, warm;

    for (warm = 0; warm < 2; warm++)
        for (slow = 0; slow < 2; slow++) {
            begin_with_defaults(3);
            if (warm)
                warm_up();
            else
                fake_nodes[2].refuses = 1;
            fake_break(2);
            fake_nodes[2].refuses = 1;
            held_by("other", 0, 1);
            fake_nodes[slow].delay_us = 5 * MS;
            is_int(acquire(0), REDLOCK_HELD, "r06: two of three name one holder");
            is_int((int)fake_keys_left(), 2, "r06: no key of ours is left");
            is_int(acquire(200), REDLOCK_TIMEOUT, "r06: the holder keeps it during all of wait_ms");
            fake_delete((int)slow, "k");
            is_int(acquire(0), REDLOCK_CONTENDED,
                   "r06: one node grants, one refuses, one is down: contention");
            fake_nodes[slow].hung = 1;
            is_int(acquire(0), REDLOCK_UNREACHABLE, "r06: one of three replies: no quorum");
        }
}

/* Of four nodes the holder has the last three. A grant and two refusals decide that the attempt has failed, before the
   fourth node replies. */
static void r06_held_although_the_last_node_has_not_replied(void)
{
    if (REDLOCK_NODES_MAX < 4)
        return;
    begin_with_defaults(4);
    warm_up();
    held_by("other", 1, 3);
    fake_nodes[3].delay_us = 20 * MS;
    is_int(acquire(0), REDLOCK_HELD, "r06: two of four refuse, one has not replied: held");
}

static void r06_a_waiter_acquires_after_expiry(void)
{
    uint64_t start;

    begin_with_defaults(5);
    fake_put(0, "k", "other", 700);
    fake_put(1, "k", "other", 700);
    fake_put(2, "k", "other", 700);
    start = fake_now_us;
    is_int(acquire(5000), REDLOCK_OK, "r06: waits until the holder's keys expire");
    ok(since(start) >= 700 * MS && since(start) < 1400 * MS, "r06: after %ld us", since(start));
}

/* Connections that the server closed between two calls. */
static void r06_dead_connections_are_replaced(void)
{
    int i;

    begin_with_defaults(3);
    warm_up();
    for (i = 0; i < 3; i++)
        fake_break(i);
    gap(10 * MS);
    is_int(acquire(0), REDLOCK_OK, "all idle connections were dead: reconnected, acquired");
    is_int(lock.priv.op.attempts, 1, "it saw that before its first attempt");
    for (i = 0; i < 3; i++)
        fake_break(i);
    is_int(extend(), REDLOCK_OK, "all connections were dead: extended");
    for (i = 0; i < 3; i++)
        fake_break(i);
    is_int(release(100), REDLOCK_OK, "all connections were dead: released");
    fake_pass(&client, 10 * MS);
    is_int((int)fake_keys_left(), 0, "no key is left");
}

/* Each attempt fails at once and is retried at once. This must not become an endless loop within one tick. */
static void r06_no_pause_still_ends(void)
{
    uint64_t start;
    unsigned waits;
    int i;

    begin_without_pauses(3);
    for (i = 0; i < 3; i++)
        fake_nodes[i].refuses = 1;
    start = fake_now_us;
    waits = fake_waits;
    is_int(acquire(5), REDLOCK_UNREACHABLE, "r06: no pause, no reachable node: fails");
    ok(since(start) >= 5 * MS && since(start) < 6 * MS, "r06: at the end of wait_ms, after %ld us",
       since(start));
    ok(fake_waits - waits <= 10, "r06: an attempt in a millisecond: %u waits", fake_waits - waits);
}

/* Attempts that wait for no reply, because no node may vote: without a pause they would flood servers that have just
   started. */
static void r06_no_pause_is_no_flood(void)
{
    memset(&settings, 0, sizeof settings);
    settings.retry_delay_ms = REDLOCK_NONE;
    settings.longest_ttl_ms = 60000;
    begin(3);
    is_int(acquire(10), REDLOCK_UNREACHABLE, "r06: no pause, no node may vote: fails");
    ok(fake_count(-1, 'S') <= 3 * 12, "r06: an attempt in a millisecond: %u commands",
       fake_count(-1, 'S'));
}

/* Pauses are multiples of the round trip, so rtt_us must not contain the time that a reply waits for the
   caller's next call. */
static void r06_round_trips_are_not_idle_time(void)
{
    int i;

    begin_with_defaults(3);
    for (i = 0; i < 3; i++)
        fake_nodes[i].delay_us = i < 2 ? MS : 3 * MS;
    for (i = 0; i < 20; i++) {
        is_int(acquire(0), REDLOCK_OK, "r06: held by two of three");
        fake_now_us += 500 * MS; /* the third replies meanwhile */
        is_int(release(100), REDLOCK_OK, "r06: released");
        fake_now_us += 500 * MS;
    }
    is_int(acquire(0), REDLOCK_OK, "r06: held by two of three once more");
    for (i = 0; i < 20; i++) {
        fake_now_us += 500 * MS;
        is_int(extend(), REDLOCK_OK, "r06: extended");
    }
    is_int(release(100), REDLOCK_OK, "r06: released after extensions");
    fake_now_us += 500 * MS;
    for (i = 0; i < 2; i++)
        is_int((int)nodes[i].rtt_us, (int)MS, "r06: rtt_us of node %d is its delay", i);
    is_int((int)nodes[2].rtt_us, 3 * MS, "r06: rtt_us of node 2 is that of its handshake");
    fake_nodes[2].delay_us = MS;
    fake_nodes[0].hung = 1;
    is_int(acquire(0), REDLOCK_OK, "r06: acquired; the reply of node 2 is needed now");
    ok(nodes[2].rtt_us >= MS && nodes[2].rtt_us < 3 * MS,
       "r06: and its round trip is measured: %lu us", (unsigned long)nodes[2].rtt_us);
}

/* Another client has "k" on all `count` nodes. `lock` waits for it, with pauses of 5 s. */
static void begin_waiting(unsigned count)
{
    memset(&settings, 0, sizeof settings);
    settings.retry_delay_ms = settings.retry_delay_max_ms = 5000;
    begin(count);
    held_by("other", 0, (int)count - 1);
    redlock_acquire_start(&client, &lock, 60000);
    fake_pass(&client, 100 * MS);
}

static void r07_notifications_end_the_pause(void)
{
    int i;

    begin_waiting(5);
    is_int((int)fake_count(0, 'S'), 1, "r07: one attempt, then a pause of seconds");
    fake_delete(0, "k");
    fake_delete(1, "k");
    fake_pass(&client, 100 * MS);
    is_int((int)fake_count(0, 'S'), 1,
           "r07: free on two of five nodes: the waiter goes on waiting");
    fake_delete(2, "k");
    fake_pass(&client, 10 * MS);
    is_int(lock.status, REDLOCK_OK, "r07: free on three of five nodes: acquired within 10 ms");
    is_int((int)fake_count(0, 'S'), 2, "r07: with one more attempt");
    begin_waiting(3);
    for (i = 0; i < 3; i++) {
        fake_delete(i, "k");
        held_by("another", i, i);
    }
    fake_pass(&client, 100 * MS);
    is_int(lock.status, REDLOCK_PENDING,
           "r07: a notification is not a grant: another client was faster");
    is_int((int)fake_count(0, 'S'), 2, "r07: one more attempt, then the waiter goes on waiting");
    delete_on(0, 2);
    fake_pass(&client, 10 * MS);
    is_int(lock.status, REDLOCK_OK, "r07: acquired after the next notification");
}

/* The holder releases while the waiter is refused: before a server has read the key for the rollback, so none notifies. */
static void r07_free_before_the_rollback(void)
{
    memset(&settings, 0, sizeof settings);
    settings.retry_delay_ms = settings.retry_delay_max_ms = 20000;
    begin(3);
    warm_up();
    held_by("another", 0, 2);
    redlock_acquire_start(&client, &lock, 60000);
    fake_pass(&client, MS / 2);
    delete_on(0, 2); /* the refusals are under way */
    fake_pass(&client, 50 * MS);
    is_int(lock.status, REDLOCK_OK, "r07: the replies to the rollback say that the lock is free");
}

/* An attempt that failed because too few nodes may vote is not retried when the key is deleted. Otherwise
   waiters would notify each other with their rollbacks without a pause. Found by sim.c. */
/* The servers are out of memory, and another client has the lock: what the rollback reads is tracked all the same. */
static void r07_no_notification_without_voters(void)
{
    int i;

    memset(&settings, 0, sizeof settings);
    settings.retry_delay_ms = settings.retry_delay_max_ms = 10000;
    begin(3);
    warm_up();
    held_by("another", 0, 2);
    for (i = 0; i < 3; i++) {
        fake_nodes[i].reply = "-OOM command not allowed when used memory > 'maxmemory'.\r\n";
        fake_nodes[i].reply_once = 1;
    }
    redlock_acquire_start(&client, &lock, 60000);
    fake_pass(&client, 100 * MS);
    is_int((int)fake_count(0, 'D'), 1, "r07: the attempt is rolled back");
    delete_on(0, 2);
    fake_pass(&client, 100 * MS);
    is_int((int)fake_count(0, 'S'), 1, "r07: no node votes: no retry before the pause is over");
}

/* One node refuses, one grants, and one grants without a vote: it has restarted, and locks live for long. The rollback
   says of two nodes that the key is gone there, but no attempt can succeed. Found by sim.c. */
static void r07_no_notification_by_nodes_without_a_vote(void)
{
    memset(&settings, 0, sizeof settings);
    settings.retry_delay_ms = settings.retry_delay_max_ms = 10000;
    settings.longest_ttl_ms = 60000;
    begin(3);
    fake_nodes[0].server.age_s = fake_nodes[1].server.age_s = 1000;
    held_by("another", 0, 0);
    redlock_acquire_start(&client, &lock, 60000);
    fake_pass(&client, 4000 * MS);
    ok(fake_count(1, 'S') <= 8, "r07: no retry before the pause is over: %u attempts",
       fake_count(1, 'S'));
}

static void r07_retries_at_random_moments(void)
{
    static struct redlock_lock draws;
    uint64_t at[20];
    unsigned n, i, j, same = 0;

    for (n = 0; n < 20; n++) {
        begin_waiting(3);
        redlock_lock_init(&draws, "x", 999);
        for (i = 0; i < n; i++) {
            redlock_acquire(&client, &draws, 0);
            redlock_release(&client, &draws, 100);
        }
        fake_logged = 0;
        delete_on(0, 2);
        at[n] = fake_now_us;
        fake_pass(&client, 10 * MS);
        at[n] = fake_logged > 0 ? fake_log[0].at_us - at[n] : 0;
        for (j = 0; j < n; j++)
            same += at[j] / 100 == at[n] / 100;
    }
    ok(same < 60, "r07: notified waiters retry at random moments (%u pairs of 190 at the same)",
       same);
}

/* A spurious notification: the key is deleted on all nodes, and another client has it again at once.
   Microseconds until the next attempt, -1: none within 700 ms. */
static long notify_spuriously(void)
{
    uint64_t start = fake_now_us;
    int i;

    fake_logged = 0;
    for (i = 0; i < 3; i++) {
        fake_delete(i, "k");
        held_by("another", i, i);
    }
    fake_pass(&client, 700 * MS); /* above 512 round trips */
    return fake_logged > 0 ? (long)(fake_log[0].at_us - start) : -1;
}

/* A waiter that was often notified in vain skips some notifications, to avoid a thundering herd. */
static void r07_backs_off_after_spurious_notifications(void)
{
    unsigned i, soon = 0, later = 0;
    long first;

    begin_waiting(3);
    first = notify_spuriously();
    ok(first >= 0 && first < 2 * (long)MS, "r07: first notification: retried at once (%ld us)",
       first);
    for (i = 0; i < 5; i++)
        notify_spuriously();
    for (i = 0; i < 60; i++) {
        long us = notify_spuriously();
        soon += us >= 0 && us < 2 * (long)MS;
        later += us >= 2 * (long)MS;
    }
    ok(soon >= 8 && later >= 20 && soon + later == 60,
       "r07: after many spurious ones: %u retries at once, %u later, of 60", soon, later);
}

static void r07_without_notifications(void)
{
    unsigned i;

    begin_with_defaults(3);
    for (i = 0; i < 3; i++)
        fake_nodes[i].server.no_pushes = 1;
    held_by("other", 0, 2);
    redlock_acquire_start(&client, &lock, 60000);
    fake_pass(&client, 10 * MS);
    delete_on(0, 2);
    fake_pass(&client, 30 * MS);
    is_int(lock.status, REDLOCK_PENDING, "r07: no permission for CLIENT TRACKING: not notified");
    fake_pass(&client, 200 * MS);
    is_int(lock.status, REDLOCK_OK, "r07: acquired after the pause");
}

/* A server keeps a note of each key that a connection reads which tracks keys. */
static void r07_only_a_waiter_asks_for_notifications(void)
{
    static struct redlock_lock second;
    static char holder[50];

    begin_with_defaults(3);
    held_by("other", 0, 2);
    set_holder(&lock, holder, sizeof holder); /* so that it sends releases */
    is_int(acquire(0), REDLOCK_HELD, "r07: refused, and does not wait");
    delete_on(0, 2);
    acquire(0);
    release(1000);
    is_int((int)fake_count(-1, 'T'), 0,
           "r07: a client that never waits asks no server to track keys");
    begin_waiting(3);
    is_int((int)fake_count(-1, 'T'), 3, "r07: one that waits asks each of them");
    redlock_lock_init(&second, "k", 10000);
    redlock_acquire_start(&client, &second, 60000);
    fake_pass(&client, 20000 * MS);
    ok(fake_count(0, 'S') >= 6, "r07: after more attempts, also of another lock,");
    is_int((int)fake_count(-1, 'T'), 3, "r07: once");
    fake_break(0);
    fake_break(1);
    fake_pass(&client, 10000 * MS);
    is_int((int)fake_count(-1, 'T'), 5, "r07: and on each new connection");
    fake_delete(0, "k");
    fake_delete(1, "k");
    fake_pass(&client, 10 * MS);
    ok(lock.status == REDLOCK_OK || second.status == REDLOCK_OK, "r07: these notify again");
}

static void r07_left_out(void)
{
    begin_waiting(3);
    delete_on(0, 2);
    fake_pass(&client, 100 * MS);
    is_int(lock.status, REDLOCK_PENDING, "r07 left out: a waiter is not notified");
    fake_pass(&client, 10000 * MS);
    is_int(lock.status, REDLOCK_OK, "r07 left out: acquired after the pause");
    is_int((int)fake_count(-1, 'T'), 0, "r07 left out: no server is asked to track keys");
}

/* Two locks of the client wait. The one that is notified gives up: by a release, or by a cancel, before it asks or while it
   asks. The other one must not wait for its pause. */
static void r07_a_waiter_that_gives_up_passes_the_notification_on(int releases, int asks)
{
    struct redlock_lock second, *notified = NULL, *other;
    unsigned i;

    memset(&settings, 0, sizeof settings);
    settings.retry_delay_ms = settings.retry_delay_max_ms = 5000;
    begin(3);
    warm_up();
    redlock_lock_init(&second, "k", 10000);
    held_by("other", 0, 2);
    redlock_acquire_start(&client, &lock, 60000);
    redlock_acquire_start(&client, &second, 60000);
    fake_pass(&client, 20 * MS);
    delete_on(0, 2);
    for (i = 0; i < 100 && notified == NULL; i++) {
        fake_pass(&client, 20);
        notified = lock.priv.op.notified ? &lock : second.priv.op.notified ? &second : NULL;
    }
    if (!ok(notified != NULL, "r07: a waiter is notified"))
        return;
    for (i = fake_count(-1, 'S'); asks && fake_count(-1, 'S') == i;)
        fake_pass(&client, 20);
    other = notified == &lock ? &second : &lock;
    if (releases)
        redlock_release(&client, notified, 0);
    else
        redlock_cancel(&client, notified);
    fake_pass(&client, 20 * MS);
    is_int(other->status, REDLOCK_OK, "r07: the other one gets the lock: %s %s it asks",
           releases ? "released" : "cancelled", asks ? "while" : "before");
    redlock_release(&client, other, 0);
    redlock_deinit(&client);
}

/* The same, but it gives up in the moment between the notification and its next step. */
static void r07_given_up_as_the_notification_arrives(int releases)
{
    struct redlock_lock second;
    unsigned i;

    memset(&settings, 0, sizeof settings);
    settings.retry_delay_ms = settings.retry_delay_max_ms = 5000;
    begin(3);
    warm_up();
    redlock_lock_init(&second, "k", 10000);
    held_by("other", 0, 2);
    redlock_acquire_start(&client, &lock, 60000);
    redlock_acquire_start(&client, &second, 60000);
    fake_pass(&client, 20 * MS);
    delete_on(0, 2);
    fake_now_us += 5 * MS;
    for (i = 0; i < 3; i++)
        redlock_handle_events(&client, i, REDLOCK_READABLE);
    for (i = 0; i < 2; i++) { /* one of them has been chosen: only one gives up */
        struct redlock_lock *one = i == 0 ? &lock : &second;
        if ((one->priv.attempt.free & (one->priv.attempt.free - 1U)) != 0) /* two nodes or more */
            break;
    }
    if (!ok(i < 2, "r07: a waiter is chosen"))
        return;
    if (releases)
        redlock_release(&client, i == 0 ? &lock : &second, 0);
    else
        redlock_cancel(&client, i == 0 ? &lock : &second);
    fake_pass(&client, 30 * MS);
    is_int((i == 0 ? &second : &lock)->status, REDLOCK_OK,
           "r07: %s as the notification arrives: the other one gets the lock",
           releases ? "released" : "cancelled");
    redlock_release(&client, i == 0 ? &second : &lock, 0);
    redlock_deinit(&client);
}

static void r07_other_keys(void)
{
    char key[64];
    int i;

    begin_waiting(3);
    for (i = 0; i < 3; i++) {
        fake_nodes[i].session.tracked[1].bytes[0] = 'l'; /* as if the session had read "l" */
        fake_nodes[i].session.tracked[1].size = 1;
        fake_put(i, "l", "x", 60000);
        fake_delete(i, "l");
    }
    fake_pass(&client, 100 * MS);
    is_int((int)fake_count(0, 'S'), 1, "r07: no notification by another key");
    memset(key, 'k', 63); /* longer than the part of a string that the decoder stores */
    key[63] = '\0';
    memset(&settings, 0, sizeof settings);
    settings.retry_delay_ms = settings.retry_delay_max_ms = 5000;
    begin(3);
    for (i = 0; i < 3; i++)
        fake_put(i, key, "other", 60000);
    redlock_lock_init(&lock, key, 10000);
    redlock_acquire_start(&client, &lock, 60000);
    fake_pass(&client, 100 * MS);
    for (i = 0; i < 3; i++)
        fake_delete(i, key);
    fake_pass(&client, 10 * MS);
    is_int(lock.status, REDLOCK_OK, "r07: notified by a long key");
}

/* Five waiters for one lock in one client: one of them is notified, the next one after its release. */
static void r07_one_waiter_is_notified(void)
{
    struct redlock_lock more[5];
    unsigned i, held, turn, wrong = 0;

    begin_waiting(3);
    redlock_cancel(&client, &lock);
    for (i = 0; i < 5; i++) {
        redlock_lock_init(&more[i], "k", 10000);
        redlock_acquire_start(&client, &more[i], 60000);
    }
    fake_pass(&client, 100 * MS);
    fake_logged = 0;
    delete_on(0, 2);
    for (turn = 0; turn < 5; turn++) {
        fake_pass(&client, 10 * MS);
        while (redlock_next_completed(&client) != NULL)
            continue;
        for (i = 0, held = 0; i < 5; i++)
            if (redlock_remaining_ms(&client, &more[i]) > 0) {
                held++;
                redlock_release_start(&client, &more[i], 100);
            }
        wrong += held != 1;
    }
    is_int((int)wrong, 0,
           "r07: five waiters of one client acquire one after the other within 10 ms");
    is_int((int)fake_count(0, 'S'), 5, "r07: with one attempt each");
}

/* The waiter that was notified asks, is refused, as another client was faster, and gives up later: that other client's
   release notifies again. */
static void r07_one_that_was_refused_passes_nothing_on(void)
{
    struct redlock_lock second, *notified;
    unsigned steps, before;

    begin_waiting(3);
    redlock_lock_init(&second, "k", 10000);
    redlock_acquire_start(&client, &second, 60000);
    fake_pass(&client, 100 * MS);
    delete_on(0, 2);
    held_by("another", 0, 2);
    for (steps = 0; steps < 1000 && !lock.priv.op.notified && !second.priv.op.notified; steps++)
        fake_pass(&client, 10);
    notified = lock.priv.op.notified ? &lock : &second;
    ok(notified->priv.op.notified, "r07: one of two waiters is notified");
    before = fake_count(0, 'S');
    fake_pass(&client, 20 * MS);
    is_int((int)fake_count(0, 'S'), (int)before + 1, "r07: it has asked in vain");
    redlock_cancel(&client, notified);
    fake_pass(&client, 20 * MS);
    is_int((int)fake_count(0, 'S'), (int)before + 1,
           "r07: it gives up: the other one does not ask");
}

/* The waiter that was notified is cancelled before it asks: then the other one retries. */
static void r07_a_cancelled_waiter_passes_on(void)
{
    struct redlock_lock second;
    unsigned steps;

    begin_waiting(3);
    redlock_lock_init(&second, "k", 10000);
    redlock_acquire_start(&client, &second, 60000);
    fake_pass(&client, 100 * MS);
    fake_logged = 0;
    delete_on(0, 2);
    for (steps = 0; steps < 1000 && !lock.priv.op.notified && !second.priv.op.notified; steps++)
        fake_pass(&client, 10);
    ok(lock.priv.op.notified != second.priv.op.notified, "r07: one of two waiters is notified");
    is_int((int)fake_count(0, 'S'), 0, "r07: it has not asked yet");
    redlock_cancel(&client, lock.priv.op.notified ? &lock : &second);
    fake_pass(&client, 20 * MS);
    ok(lock.status == REDLOCK_OK || second.status == REDLOCK_OK, "r07: the other one retries");
}

/* A denial is no reason to wait. */
static void r06_denied_at_once(void)
{
    uint64_t start;
    int i;

    begin_with_defaults(3);
    warm_up();
    for (i = 0; i < 3; i++)
        fake_nodes[i].reply = "-NOPERM this user has no permissions\r\n";
    start = fake_now_us;
    is_int(acquire(1000), REDLOCK_DENIED, "r06: all nodes deny it");
    ok(since(start) < 100 * MS, "r06: at once, not after wait_ms: %ld us", since(start));
}

/* ---- The line, and new clients: R6 ---------------------------------------------------------- */

/* All servers are healthy. A new client must acquire all 3,000 locks, as a connected one does. It acquired
   252, and reported REDLOCK_UNREACHABLE for the others. */
static void r06_a_burst_on_a_new_client(unsigned count)
{
    unsigned i;

    begin_with_defaults(3);
    make_many(count);
    for (i = 0; i < 3; i++)
        set_distance((int)i, REDLOCK_PIPELINE_MAX < 8 || REDLOCK_SEND_MAX < 800 ? 100 : 1 * MS);
    for (i = 0; i < count; i++)
        redlock_acquire_start(&client, &many[i], 0);
    is_int((int)serve_many(count, 20000 * MS), (int)count, "r06: %u at once on a new client",
           count);
    redlock_deinit(&client);
}

/* All locks are acquired although one node fails. */
static void r06_a_burst_with_a_failed_node(int how)
{
    static const char *const hows[] = {"refuses", "does not connect", "hangs"};
    enum { COUNT = 300 };
    unsigned i;

    begin_with_defaults(3);
    make_many(COUNT);
    fake_nodes[2].refuses = how == 0;
    fake_nodes[2].never_up = how == 1;
    fake_nodes[2].hung = how == 2;
    for (i = 0; i < COUNT; i++)
        redlock_acquire_start(&client, &many[i], 0);
    is_int((int)serve_many(COUNT, 20000 * MS), COUNT,
           "r06: %u at once on a new client, one node %s", (unsigned)COUNT, hows[how]);
    redlock_deinit(&client);
}

/* No node is reachable. An acquire with wait_ms 0 reports this soon, although another acquire is waiting before it. */
static void r06_no_wait_behind_a_long_one(int how)
{
    struct redlock_lock patient;
    uint64_t start;
    int i;

    begin_with_defaults(3);
    for (i = 0; i < 3; i++) {
        fake_nodes[i].refuses = how == 0;
        fake_nodes[i].never_up = how == 1;
        fake_nodes[i].hung = how == 2;
    }
    redlock_lock_init(&patient, "other", 10000);
    redlock_acquire_start(&client, &patient, 60000);
    for (i = 0; i < 10; i++) {
        fake_pass(&client, 777 * MS);
        start = fake_now_us;
        redlock_acquire_start(&client, &lock, 0);
        if (wait_for(&lock, 20000 * MS) != REDLOCK_UNREACHABLE || since(start) > 1200 * MS)
            break;
    }
    is_int(i, 10, "r06: ten acquires without a wait fail within stall_ms (%ld us)", since(start));
    is_int((int)patient.status, REDLOCK_PENDING, "r06: the acquire with a wait is in progress");
    redlock_deinit(&client);
    is_int((int)patient.status, REDLOCK_CANCELLED, "r06: redlock_deinit cancels it");
}

/* A wait_ms that is shorter than a connect must not fail: wait_ms 0 would succeed. */
static void r06_a_short_wait_on_a_new_client(void)
{
    int i;

    begin_with_defaults(3);
    for (i = 0; i < 3; i++)
        set_distance(i, 20 * MS);
    is_int(acquire(5), REDLOCK_OK, "r06: acquired with wait_ms 5, the nodes are 20 ms away");
}

/* More locks than the queue has room for. An acquire with a wait of 100 ms ends after this time and the time
   of one attempt. */
static void r06_time_in_line_counts(void)
{
    enum { COUNT = 60 };
    uint64_t start;
    unsigned i, left = 0;
    long took;

    begin_with_defaults(3);
    warm_up();
    make_many(COUNT);
    for (i = 0; i < 3; i++)
        fake_nodes[i].delay_us = 45 * MS;
    start = fake_now_us;
    for (i = 0; i < COUNT; i++)
        redlock_acquire_start(&client, &many[i], 100);
    serve_many(COUNT, 10000 * MS);
    took = since(start);
    ok(took <= (100 + 3 * 50) * MS, "r06: all have completed in time: %ld us", took);
    fake_pass(&client, 1000 * MS);
    for (i = 0; i < COUNT; i++)
        left += many[i].status == REDLOCK_OK ? 0 : nodes_with(&many[i]);
    is_int((int)left, 0, "r06: failed acquires have left no key");
    redlock_deinit(&client);
}

/* Two other clients have one node each, and we have the third: no client holds the lock. If the engine
   compared too few bits of their tokens, some of these pairs would look like one holder. */
static void r06_holders_are_distinguished(void)
{
    char token[48];
    unsigned i, wrong = 0;

    memset(&settings, 0, sizeof settings);
    settings.retries = REDLOCK_NONE;
    begin(3);
    warm_up();
    fake_unlogged = 1;
    held_by("0123456789abcdef0123456789abcdef01234567", 1, 1);
    for (i = 0; i < 2000; i++) {
        sprintf(token, "%08x89abcdef0123456789abcdef01234567", i * 2654435761U);
        fake_put(1, "k", "0123456789abcdef0123456789abcdef01234567", 60000);
        fake_put(2, "k", token, 60000);
        wrong += acquire(0) != REDLOCK_CONTENDED;
    }
    is_int((int)wrong, 0, "r06: none of 2,000 pairs of tokens is taken for one holder");
}

/* ---- Waiters of one client: R7 -------------------------------------------------------------- */

static void begin_with_long_pauses(void)
{
    memset(&settings, 0, sizeof settings);
    settings.retry_delay_ms = settings.retry_delay_max_ms = 20000;
    begin(3);
}

static void delete_on_all_nodes(const char *key)
{
    int i;

    for (i = 0; i < 3; i++)
        fake_delete(i, key);
}

/* How many of the locks from..to have asked again since this was called last, as waiters do that are notified. */
static unsigned asked_again(unsigned from, unsigned to)
{
    unsigned n = 0;

    for (; from < to; from++) {
        n += many[from].status == REDLOCK_PENDING && many[from].priv.op.attempts > 1;
        many[from].priv.op.attempts = 1;
    }
    return n;
}

/* 200 locks of a client wait for 100 keys, and come and go. A notification of a key reaches a waiter for it, and no other lock. */
static void r07_waiters_are_found_by_their_keys(void)
{
    enum { KEYS = 100, PUSHES = 1000 };
    unsigned i, n, key, waiters, pick = 1, wrong = 0, missed = 0;

    memset(&settings, 0, sizeof settings);
    settings.retry_delay_ms = settings.retry_delay_max_ms = 600000;
    begin(3);
    make_many(2 * KEYS);
    for (i = 0; i < 3; i++)
        fake_nodes[i].all_held = 1;
    for (n = 0; n < PUSHES; n++) {
        for (i = 0; i < 20; i++) {
            struct redlock_lock *one =
                &many[((pick = pick * 1664525U + 1013904223U) >> 8) % (2 * KEYS)];
            if (one->status == REDLOCK_PENDING) {
                redlock_release(&client, one, 0);
                memset(one, 0xff, sizeof *one); /* it is the caller's again */
                one->status = REDLOCK_CANCELLED;
            } else {
                redlock_lock_init(one, many_keys[(one - many) % KEYS], 60000);
                redlock_acquire_start(&client, one, 3600000);
            }
        }
        fake_pass(&client, 100 * MS);
        asked_again(0, 2 * KEYS);
        key = n % KEYS;
        for (i = 0; i < 3; i++)
            fake_push((int)i, many_keys[key]);
        fake_pass(&client, 100 * MS);
        waiters = many[key].status == REDLOCK_PENDING || many[KEYS + key].status == REDLOCK_PENDING;
        missed += asked_again(key, key + 1) + asked_again(KEYS + key, KEYS + key + 1) != waiters;
        wrong += asked_again(0, 2 * KEYS);
    }
    is_int((int)missed, 0, "r07: each notification lets one waiter for its key ask");
    is_int((int)wrong, 0, "r07: and no waiter for another key");
    redlock_deinit(&client);
}

/* Two locks wait for a key, which other clients acquire again and again: the two ask in turn. */
static void r07_waiters_ask_in_turn(void)
{
    unsigned n, i, turns = 0;

    begin_with_long_pauses();
    make_many(2);
    many[1].key = many[0].key;
    for (i = 0; i < 3; i++)
        fake_nodes[i].all_held = 1;
    start_many(0, 2, 3600000);
    fake_pass(&client, 100 * MS);
    asked_again(0, 2);
    for (n = 0; n < 6; n++) {
        for (i = 0; i < 3; i++)
            fake_push((int)i, many_keys[0]);
        fake_pass(&client, 500 * MS);
        turns = turns * 10 + asked_again(0, 1) * 1 + asked_again(1, 2) * 2;
    }
    ok(turns == 121212 || turns == 212121, "r07: two waiters for one key ask in turn: %u", turns);
    redlock_deinit(&client);
}

/* redlock_deinit while a lock waits. When a new client uses the same memory, a waiter must be notified as
   soon as the lock is free, not after its pause of 20 s. */
static void r07_notified_after_a_deinit_while_waiting(int waits_again)
{
    struct redlock_lock next;

    begin_with_long_pauses();
    held_by("other", 0, 2);
    redlock_acquire_start(&client, &lock, 60000);
    fake_pass(&client, 100 * MS);
    is_int((int)lock.status, REDLOCK_PENDING, "r07: the lock waits");
    redlock_deinit(&client);
    is_int((int)lock.status, REDLOCK_CANCELLED, "r07: redlock_deinit cancels it");
    redlock_init(&client, fake_io(), nodes, 3, &settings);
    redlock_lock_init(&next, "k", 10000);
    if (!waits_again) {
        delete_on_all_nodes("k");
        is_int(acquire(0), REDLOCK_OK, "r07: acquired with a new client");
        is_int(release(100), REDLOCK_OK, "r07: released");
        held_by("other", 0, 2);
    }
    redlock_acquire_start(&client, waits_again ? &lock : &next, 60000);
    fake_pass(&client, 100 * MS);
    delete_on_all_nodes("k");
    is_int(wait_for(waits_again ? &lock : &next, 500 * MS), REDLOCK_OK,
           "r07: a waiter of the new client is notified");
    redlock_deinit(&client);
}

/* A release that does not wait for replies notifies the waiters of its client, too: servers do not. */
static void r07_released_without_waiting(void)
{
    struct redlock_lock next;

    begin_with_long_pauses();
    is_int(acquire(0), REDLOCK_OK, "r07: held");
    redlock_lock_init(&next, "k", 10000);
    redlock_acquire_start(&client, &next, 60000);
    fake_pass(&client, 50 * MS);
    is_int(release(0), REDLOCK_UNCONFIRMED, "r07: released without waiting");
    is_int(wait_for(&next, 1000 * MS), REDLOCK_OK, "r07: a waiter of the same client is notified");
    redlock_release(&client, &next, 100);
    redlock_deinit(&client);
}

#if !REDLOCK_MINIMAL
/* No node permits an extension, until the process sleeps for too long. The rollback of the lost lock notifies the waiters of its
   client, too. */
static void r07_lost(int fair)
{
    struct redlock_lock next;
    int i;

    memset(&settings, 0, sizeof settings);
    settings.retry_delay_ms = settings.retry_delay_max_ms = 600000;
    settings.fair = (uint32_t)fair;
    begin(3);
    warm_up();
    lock.ttl_ms = 100000;
    is_int(acquire(0), REDLOCK_OK, "r07: held");
    redlock_lock_init(&next, "k", 10000);
    redlock_acquire_start(&client, &next, 3600000);
    fake_pass(&client, 50 * MS);
    redlock_auto_extend_start(&client, &lock, REDLOCK_NO_LIMIT);
    fake_pass(&client, 100 * MS);
    for (i = 0; i < 3; i++)
        fake_nodes[i].reply = "-NOREPLICAS Not enough good replicas to write.\r\n";
    while (redlock_remaining_ms(&client, &lock) > 2)
        fake_pass(&client, MS);
    gap(5 * MS);
    for (i = 0; i < 3; i++)
        fake_nodes[i].reply = NULL;
    is_int(wait_for(&lock, 100 * MS), REDLOCK_LOST, "r07: lost");
    is_int(wait_for(&next, 100 * MS), REDLOCK_OK,
           "r07: its rollback notifies a waiter of the same client, fair %d", fair);
    redlock_release(&client, &next, 100);
    redlock_deinit(&client);
}

/* One lock waits for k0 and k1, another for k0 only. When k0 is released, but not k1, the second lock must be
   notified, because the first cannot be acquired yet. */
static void r07_overlapping_keys(int order)
{
    static const struct redlock_key k1 = {"k1", 2};
    struct redlock_lock both, one;
    int i;

    begin_with_long_pauses();
    for (i = 0; i < 3; i++) {
        fake_put(i, "k0", "other", 60000);
        fake_put(i, "k1", "another", 60000);
    }
    redlock_lock_init(&both, "k0", 10000);
    set_extra_keys(&both, &k1, 1);
    redlock_lock_init(&one, "k0", 10000);
    redlock_acquire_start(&client, order ? &one : &both, 60000);
    fake_pass(&client, 50 * MS);
    redlock_acquire_start(&client, order ? &both : &one, 60000);
    fake_pass(&client, 50 * MS);
    delete_on_all_nodes("k0");
    is_int(wait_for(&one, 1000 * MS), REDLOCK_OK,
           "r07: the waiter for k0 is notified, not the waiter for k0 and k1");
    is_int((int)both.status, REDLOCK_PENDING, "r07: the waiter for both goes on waiting");
    redlock_release(&client, &one, 100);
    delete_on_all_nodes("k1");
    is_int(wait_for(&both, 1000 * MS), REDLOCK_OK, "r07: it is notified when both keys are free");
    redlock_release(&client, &both, 100);
    redlock_deinit(&client);
}
#endif

int main(void)
{
    int how;

    r06_a_failed_attempt_ends_early();
    r06_number_of_attempts();
    r06_pauses_are_random_and_grow();
    r06_contention_is_retried_quickly(5);
    r06_contention_is_retried_quickly(4);
    r06_pauses_after_contention();
    r06_results_are_distinct();
    r06_permanent_and_temporary_errors();
    r06_failed_but_the_reason_is_still_open();
    r06_held_although_the_last_node_has_not_replied();
    r06_a_waiter_acquires_after_expiry();
    r06_dead_connections_are_replaced();
    r06_round_trips_are_not_idle_time();
    r06_no_pause_still_ends();
    r06_denied_at_once();
    if (!REDLOCK_MINIMAL)
        r06_no_pause_is_no_flood();
    r07_without_notifications();
    r06_a_burst_on_a_new_client(MANY);
    for (how = 0; how < 3; how++) {
        r06_a_burst_with_a_failed_node(how);
        r06_no_wait_behind_a_long_one(how);
    }
    r06_a_short_wait_on_a_new_client();
    r06_time_in_line_counts();
    r06_holders_are_distinguished();
    if (REDLOCK_MINIMAL) {
        r07_left_out();
        return done_testing();
    }
    r07_only_a_waiter_asks_for_notifications();
    r07_notifications_end_the_pause();
    r07_free_before_the_rollback();
    r07_no_notification_by_nodes_without_a_vote();
    r07_retries_at_random_moments();
    r07_other_keys();
    r07_a_waiter_that_gives_up_passes_the_notification_on(0, 0);
    r07_a_waiter_that_gives_up_passes_the_notification_on(1, 0);
    r07_a_waiter_that_gives_up_passes_the_notification_on(0, 1);
    r07_a_waiter_that_gives_up_passes_the_notification_on(1, 1);
    r07_given_up_as_the_notification_arrives(0);
    r07_given_up_as_the_notification_arrives(1);
    r07_backs_off_after_spurious_notifications();
    r07_one_waiter_is_notified();
    r07_one_that_was_refused_passes_nothing_on();
    r07_a_cancelled_waiter_passes_on();
    if (!REDLOCK_MINIMAL)
        r07_no_notification_without_voters();
    r07_waiters_are_found_by_their_keys();
    r07_waiters_ask_in_turn();
    r07_notified_after_a_deinit_while_waiting(0);
    r07_notified_after_a_deinit_while_waiting(1);
    r07_released_without_waiting();
#if !REDLOCK_MINIMAL
    r07_lost(0);
    r07_lost(REDLOCK_FAIR);
    r07_overlapping_keys(0);
    r07_overlapping_keys(1);
#endif
    return done_testing();
}
