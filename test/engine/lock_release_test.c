/* lock_release_test.c - R11, releases: in every state of the lock, on all nodes that may have the key; native
   commands.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "one_lock.h"

static void r11_release_goes_to_all_nodes(void)
{
    begin_with_defaults(5);
    warm_up();
    fake_nodes[4].hung = 1;
    acquire(0);
    is_int(release(1000), REDLOCK_OK, "r11: released while one hangs");
    fake_resume(4);
    is_int((int)releases_of(4), 1, "r11: it is also sent to the node that has not replied");
    is_int((int)fake_keys_left(), 0, "r11: no key is left");
    ok(each_set_is_released(-1), "r05: after each SET");
}

/* Servers with a release command of their own. `native`: 1 DELIFEQ, 2 DELEX, 4 they forget scripts, or their sum. */
static void begin_native(unsigned count, int native)
{
    unsigned i;

    begin_with_defaults(count);
    for (i = 0; i < count; i++)
        fake_nodes[i].server.native = native;
}

static void acquire_and_release(unsigned times)
{
    for (; times > 0; times--) {
        is_int(acquire(0), REDLOCK_OK, "r11: acquired");
        is_int(release(1000), REDLOCK_OK, "r11: released");
        fake_pass(&client, 20 * MS);
    }
    is_int((int)fake_keys_left(), 0, "r11: no key is left");
}

static void r11_outcomes(int native)
{
    int i;

    begin_native(3, native);
    is_int(release(100), REDLOCK_EXPIRED, "r11: never acquired");
    acquire_and_release(3); /* the client learns which commands there are */
    acquire(0);
    is_int(release(100), REDLOCK_OK, "r11: released");
    is_int(release(100), REDLOCK_EXPIRED, "r11: released twice");
    is_int((int)redlock_remaining_ms(&client, &lock), 0, "r11: no validity is left");
    acquire(0);
    fake_pass(&client, 11000 * MS);
    is_int(release(100), REDLOCK_EXPIRED, "r11: expired");
    acquire(0);
    fake_pass(&client, 11000 * MS);
    held_by("other", 0, 2);
    is_int(release(100), REDLOCK_LOST, "r11: expired, another client has it");
    is_int((int)fake_keys_left(), 3, "r11: the other client's keys are left");
    for (i = 0; i < 3; i++)
        ok(fake_nodes[i].connects == 1 && nodes[i].state == REDLOCK_NODE_READY,
           "r11: all that on one connection to node %d", i);
    begin_native(3, native);
    acquire_and_release(3);
    acquire(0);
    fake_pass(&client, 10 * MS);
    for (i = 0; i < 2; i++)
        fake_nodes[i].hung = 1;
    is_int(release(70), REDLOCK_UNCONFIRMED, "r11: two of three hang");
    for (i = 0; i < 2; i++)
        fake_resume(i);
    /* the lock was valid, and the first call may have deleted the keys of these two */
    is_int(release(100), REDLOCK_OK, "r11: the release is repeated");
}

/* The lock is held for `held_ms`, its servers hang when it is released, and the client connects anew. When they go on they run
   both releases, and `other` gets the lock in between (NULL: nobody). The result of the release. */
static int released_by_busy_servers(int count, uint64_t held_ms, uint64_t hang_ms,
                                    const char *other)
{
    int i, ran = 0;

    begin_with_defaults((unsigned)count);
    lock.ttl_ms = 30000;
    is_int(acquire(0), REDLOCK_OK, "r11: held on %d", count);
    fake_pass(&client, held_ms * MS);
    for (i = 0; i < count; i++) {
        fake_hold(i);
        fake_nodes[i].hung = 1;
    }
    redlock_release_start(&client, &lock, 10000);
    fake_pass(&client, hang_ms * MS);
    for (i = 0; i < count; i++)
        ran += fake_arrive(i) > 0;
    is_int(ran, count, "r11: each server runs the release after %lu ms", (unsigned long)hang_ms);
    if (other != NULL)
        held_by(other, 0, count - 1);
    for (i = 0; i < count; i++)
        fake_resume(i);
    return wait_for(&lock, 11000 * MS);
}

/* A release that was sent again does not find the key that the first one has deleted. That is no loss. But one that begins after
   the end of the validity tells what it finds. */
static void r11_a_release_that_was_sent_again_is_no_loss(int count)
{
    static const char other[] = "another";

    is_int(released_by_busy_servers(count, 1500, 60, NULL), REDLOCK_OK,
           "r11: the servers were busy: released");
    is_int(released_by_busy_servers(count, 1500, 60, other), REDLOCK_OK,
           "r11: and a waiter has the lock by now: released");
    is_int((int)votes(lock.granted), count, "r11: by each node");
    is_int(released_by_busy_servers(count, 500, 1300, NULL), REDLOCK_OK,
           "r11: the servers hung for longer than stall_ms: released");
    is_int(released_by_busy_servers(count, 500, 1300, other), REDLOCK_OK,
           "r11: and a waiter has the lock by now: released");
    is_int(released_by_busy_servers(count, 31000, 60, NULL), REDLOCK_EXPIRED,
           "r11: the validity was over before: expired");
    is_int(released_by_busy_servers(count, 31000, 60, other), REDLOCK_LOST,
           "r11: and another client has it: lost");
}

/* What nodes say that were sent the release once counts as ever. */
static void r11_a_loss_is_reported_by_other_nodes(void)
{
    int i;

    begin_with_defaults(3);
    acquire(0);
    fake_pass(&client, 1500 * MS);
    delete_on(0, 1);
    held_by("another", 1, 1);
    fake_hold(2);
    fake_nodes[2].hung = 1;
    redlock_release_start(&client, &lock, 5000);
    is_int(wait_for(&lock, 6000 * MS), REDLOCK_LOST, "r11: two of three had lost the key: lost");
    begin_with_defaults(3);
    acquire(0);
    fake_pass(&client, 20 * MS);
    delete_on(0, 1);
    for (i = 0; i < 2; i++) {
        fake_nodes[i].reply = "-BUSY Redis is busy running a script.\r\n";
        fake_nodes[i].reply_once = 1;
    }
    fake_nodes[2].hung = 1;
    is_int(release(1000), REDLOCK_EXPIRED,
           "r11: a release that a node did not run has not deleted the key");
}

static void r11_an_unreachable_member(void)
{
    begin_with_defaults(5);
    warm_up();
    fake_nodes[3].refuses = fake_nodes[4].refuses = 1;
    fake_break(3);
    fake_break(4);
    is_int(acquire(0), REDLOCK_OK, "r11: three of five");
    fake_nodes[3].refuses = fake_nodes[4].refuses = 0;
    fake_pass(&client, 3000 * MS);
    fake_nodes[0].refuses = 1;
    fake_break(0);
    is_int(release(1000), REDLOCK_OK,
           "r11: two nodes delete it, two have no key, one is down: released");
}

static void r11_release_without_waiting(void)
{
    uint64_t start;

    begin_with_defaults(3);
    acquire(0);
    start = fake_now_us;
    is_int(release(0), REDLOCK_UNCONFIRMED, "r11: sent, without waiting for the replies");
    is_int((int)since(start), 0, "r11: without a wait");
    is_int((int)fake_count(-1, 'D'), 3, "r11: the commands are sent");
    is_int((int)fake_keys_left(), 0, "r11: and have run");
}

/* A release is started again before the replies to the first one: these are no votes in the second. When it is complete
   the library does not write to the lock, although other replies are due. */
static void r11_a_release_during_a_release(void)
{
    struct redlock_lock other, was;
    unsigned i;

    begin_with_defaults(5);
    warm_up();
    redlock_lock_init(&other, "o", 10000);
    is_int((int)redlock_acquire(&client, &other, 0), REDLOCK_OK, "r11: acquired");
    fake_pass(&client, 1 * MS);
    for (i = 0; i < 5; i++)
        fake_nodes[i].delay_us = i < 3 ? 5 * MS : 30 * MS;
    redlock_release_start(&client, &other, 1000);
    fake_pass(&client, 1 * MS);
    redlock_release_start(&client, &other, 1000);
    while (redlock_next_completed(&client) == NULL)
        fake_pass(&client, 1 * MS);
    /* the replies to the second one say that the keys are gone: the first one has deleted them */
    is_int((int)other.status, REDLOCK_OK, "r11: the keys are deleted");
    memset(&other, 0xaa, sizeof other);
    was = other;
    fake_pass(&client, 200 * MS);
    ok(memcmp(&was, &other, sizeof was) == 0, "r11: a released lock is not written to");
}

static void r11_native_commands_are_detected(void)
{
    static const struct {
        int native, denied;
        /* sent to each server in four cycles; a script that is sent by its hash counts in both */
        unsigned scripts, hashes, natives;
    } cases[] = {{0, 0, 4, 3, 0}, {1, 0, 0, 0, 4}, {2, 0, 0, 0, 4}, {4, 0, 5, 1, 0},
                 {7, 0, 0, 0, 4}, {7, 1, 5, 1, 1}, {0, 1, 5, 1, 0}};
    unsigned i, n;

    for (n = 0; n < sizeof cases / sizeof *cases; n++) {
        unsigned wrong = 0;
        begin_native(3, cases[n].native);
        for (i = 0; i < 3; i++)
            fake_nodes[i].server.no_native = cases[n].denied;
        acquire_and_release(4);
        for (i = 0; i < 3; i++)
            wrong += fake_count((int)i, 'D') != cases[n].scripts ||
                     fake_count((int)i, 'd') != cases[n].hashes ||
                     fake_count((int)i, 'N') != cases[n].natives || nodes[i].error[0] != '\0' ||
                     fake_nodes[i].connects != 1;
        is_int((int)wrong, 0,
               "r11: %d%s: %u scripts, %u by hash, and %u native releases in four cycles, no error",
               cases[n].native, cases[n].denied ? ", denied" : "", cases[n].scripts,
               cases[n].hashes, cases[n].natives);
        for (i = 0; i < 3; i++)
            fake_break((int)i);
        fake_pass(&client, 20 * MS);
        acquire_and_release(1);
        is_int((int)fake_count(0, cases[n].native & 3 ? 'N' : 'D'),
               (int)(cases[n].native & 3 ? cases[n].natives : cases[n].scripts) + 1,
               "r11: tried again on the next connection");
        is_int((int)fake_count(0, 'd'), (int)cases[n].hashes, "r11: which begins with the script");
    }
}

/* A server has the command from a version on: the others are not asked for it. */
static void r11_versions(void)
{
    static const struct {
        const char *server, *version;
        int has_it;
    } cases[] = {{"redis", "8.4.0", 1},  {"redis", "8.3.9", 0},   {"redis", "8.10.1", 1},
                 {"redis", "10.0.0", 1}, {"redis", "7.9", 0},     {"valkey", "9.0.0", 1},
                 {"valkey", "8.9.9", 0}, {"valkey", "10.1.2", 1}, {"valkey", "8.1.4", 0}};
    char hello[200];
    unsigned i, n;

    for (n = 0; n < sizeof cases / sizeof *cases; n++) {
        begin_native(3, 3);
        sprintf(hello, "%%3\r\n+server\r\n+%s\r\n+version\r\n+%s\r\n+proto\r\n:3\r\n",
                cases[n].server, cases[n].version);
        for (i = 0; i < 3; i++)
            fake_nodes[i].server.hello = hello;
        acquire_and_release(1);
        is_int((int)fake_count(0, 'N'), cases[n].has_it, "r11: %s %s", cases[n].server,
               cases[n].version);
    }
}

static void r11_left_out(void)
{
    begin_native(3, 7);
    acquire_and_release(4);
    is_int((int)fake_count(-1, 'D'), 12, "r11 left out: released by script");
    is_int((int)fake_count(-1, 'N'), 0, "r11 left out: no native command is sent");
}

/* The native command fails on a connection where it has worked: a proxy has switched servers, or the
   permission was withdrawn. */
static void r11_native_commands_that_fail_later(void)
{
    unsigned i, n, wrong = 0;

    for (n = 0; n < 4; n++) {
        int native = n < 2 ? 0 : 2, denied = n % 2;
        begin_native(5, native);
        acquire_and_release(4);
        acquire(0);
        for (i = 0; i < 5; i++) {
            fake_nodes[i].server.native = denied ? native : 4;
            fake_nodes[i].server.no_native = denied;
        }
        fake_logged = 0;
        is_int(release(1000), REDLOCK_OK, "r11: the native command fails: released");
        is_int((int)fake_keys_left(), 0, "r11: no key is left");
        fake_pass(&client, 20 * MS);
        for (i = 0; i < 5; i++)
            wrong += fake_count((int)i, 'N') + fake_count((int)i, 'd') != 1 ||
                     fake_count((int)i, 'D') != 1 + fake_count((int)i, 'd') ||
                     nodes[i].error[0] != '\0' || fake_nodes[i].connects != 1;
        is_int((int)wrong, 0,
               "r11: by script; the server's error, which contains the token, is dropped");
        acquire_and_release(1); /* where a native command has failed, the hash has its turn */
        fake_logged = 0;
        acquire_and_release(1);
        is_int((int)(fake_count(-1, 'N') + fake_count(-1, 'd')), 0,
               "r11: no native command, and no hash, is tried again");
    }
}

/* A server, or what stands in front of it, knows no hashes. */
static void r11_servers_without_hashes(void)
{
    static const char *const errors[] = {
        "-ERR unknown command 'EVALSHA', with args beginning with: '5b' '1' 'k' \r\n",
        "-ERR EVALSHA is not supported for your account\r\n", "-unsupported command\r\n"};
    unsigned i, n;

    for (n = 0; n < sizeof errors / sizeof *errors; n++) {
        begin_native(3, 0);
        for (i = 0; i < 3; i++)
            fake_nodes[i].server.no_hash = errors[n];
        acquire_and_release(1);
        acquire(0);
        is_int(release(3), REDLOCK_OK, "r11: the script follows at once");
        acquire_and_release(2);
        ok(fake_count(0, 'd') == 1 && fake_count(0, 'D') == 5 && !has_error(0, "ERR"),
           "r11: one hash, then scripts, and no error, as %s", errors[n] + 1);
    }
}

/* Releases without a wait, when the servers have forgotten their scripts: more than the client keeps. */
static void r11_without_a_wait_by_script(void)
{
    static struct redlock_lock more[REDLOCK_OWED_MAX + 2];
    static char keys[REDLOCK_OWED_MAX + 2][2];
    unsigned i;

    begin_native(3, 0);
    acquire_and_release(3);
    for (i = 0; i < REDLOCK_OWED_MAX + 2; i++) {
        keys[i][0] = (char)('a' + i);
        redlock_lock_init(&more[i], keys[i], 60000);
        is_int((int)redlock_acquire(&client, &more[i], 0), REDLOCK_OK, "r11: acquired");
    }
    fake_pass(&client, 20 * MS);
    for (i = 0; i < 3; i++)
        fake_nodes[i].server.scripts = 0; /* SCRIPT FLUSH */
    for (i = 0; i < REDLOCK_OWED_MAX + 2; i++)
        redlock_release_start(&client, &more[i], 0);
    fake_pass(&client, 1000 * MS);
    is_int((int)fake_keys_left(), 0, "r11: all are released");
}

/* Acquires that are cancelled while they ask, at servers that do not permit hashes: more than the client keeps. */
static void r11_cancelled_by_script(void)
{
    static struct redlock_lock more[REDLOCK_OWED_MAX + 2];
    static char keys[REDLOCK_OWED_MAX + 2][2];
    unsigned i;

    begin_native(3, 0);
    acquire_and_release(1); /* sends the script */
    for (i = 0; i < 3; i++)
        fake_nodes[i].server.no_native = 1;
    for (i = 0; i < REDLOCK_OWED_MAX + 2; i++) {
        keys[i][0] = (char)('a' + i);
        redlock_lock_init(&more[i], keys[i], 60000);
        redlock_acquire_start(&client, &more[i], 0);
    }
    redlock_tick(&client);
    for (i = 0; i < REDLOCK_OWED_MAX + 2; i++)
        redlock_cancel(&client, &more[i]);
    fake_pass(&client, 1000 * MS);
    is_int((int)fake_keys_left(), 0, "r11: all that were cancelled are rolled back");
}

static void r11_native_commands_and_scripts(void)
{
    static char holder[50];

    begin_native(3, 1);
    acquire_and_release(1);
    held_by("other", 0, 2);
    set_holder(&lock, holder, sizeof holder);
    fake_logged = 0;
    is_int(acquire(0), REDLOCK_HELD, "r11: a failed attempt is rolled back by script");
    ok(fake_count(-1, 'D') == 3 && fake_count(-1, 'N') == 0,
       "r11: not by the native command, which does not report the holder");
    begin_native(3, 1);
    acquire_and_release(1);
    acquire(0);
    fake_nodes[1].reply = fake_nodes[2].reply = "";
    fake_nodes[1].reply_once = fake_nodes[2].reply_once = 1;
    is_int(release(1000), REDLOCK_OK, "r11: two connections break before the reply: sent again");
    is_int((int)fake_keys_left(), 0, "r11: no key is left");
    begin_native(3, 1);
    acquire_and_release(1);
    acquire(0);
    fake_nodes[1].reply = "+OK\r\n";
    is_int(release(1000), REDLOCK_OK, "r11: one node sends an unexpected reply");
    fake_pass(&client, 5 * MS);
    ok(has_error(1, "unexpected reply"), "r11: its error: %s", nodes[1].error);
    begin_native(3, 1);
    acquire_and_release(1);
    acquire(0);
    is_int(release(0), REDLOCK_UNCONFIRMED, "r11: released without a wait");
    is_int((int)fake_keys_left(), 0, "r11: no key is left");
    fake_pass(&client, 20 * MS);
    is_int(nodes[0].state, REDLOCK_NODE_READY, "r11: its reply is read and dropped");
}

static void r11_native_commands_know_one_key(void)
{
    static const struct redlock_key more = {"k2", 2};

    unsigned n;

    for (n = 0; n < 4; n++) {
        begin_native(3, 7);
        acquire_and_release(n);
        set_extra_keys(&lock, &more, 1);
        fake_logged = 0;
        acquire_and_release(2);
        is_int((int)fake_count(-1, 'N'), 0, "r11: multi-key locks are released by script");
    }
}

/* Where no reply is waited for, none is late. */
static void r11_without_a_wait_no_node_is_late(void)
{
    begin_with_defaults(3);
    acquire(0);
    is_int(release(0), REDLOCK_UNCONFIRMED, "r11: without a wait");
    ok(lock.failed == 0 && nodes[0].error[0] == '\0', "r11: no node is late: %x, %s", lock.failed,
       nodes[0].error);
}

static void break_all(unsigned count, int refuses)
{
    unsigned i;

    for (i = 0; i < count; i++) {
        fake_nodes[i].refuses = refuses;
        if (refuses)
            fake_break((int)i);
    }
}

/* A release that nobody confirmed may be called again. */
static void r11_released_again(void)
{
    begin_with_defaults(3);
    acquire(0);
    break_all(3, 1);
    is_int(release(10), REDLOCK_UNCONFIRMED, "r11: all nodes are down");
    is_int((int)fake_keys_left(), 3, "r11: and keep the key");
    break_all(3, 0);
    is_int(release(1000), REDLOCK_OK, "r11: released when they are back");
    fake_pass(&client, 3000 * MS);
    ok(!REPEATS || fake_keys_left() == 0, "r11: no key is left");
}

/* A lock is released twice, because the first time only one node replied, which had lost the key to another client. The second
   time another node does not have the key either. But the first call may have deleted that one, so this proves no loss. */
static void r11_released_again_after_one_node_lost_it(void)
{
    begin_with_defaults(3);
    acquire(0);
    fake_pass(&client, 20 * MS);
    fake_nodes[1].hung = fake_nodes[2].hung = 1;
    delete_on(0, 1);
    held_by("other", 0, 1);
    is_int(release(10), REDLOCK_UNCONFIRMED, "r11: one of three replies");
    fake_resume(1);
    is_int(release(100), REDLOCK_OK, "r11: only one of three had lost the key for certain");
}

/* One node was never asked, and another hangs. One has confirmed a release that was cancelled. It alone confirms nothing. */
static void r11_released_again_without_waiting(void)
{
    begin_with_defaults(3);
    fake_nodes[2].refuses = 1;
    acquire(0);
    fake_pass(&client, 20 * MS);
    fake_nodes[1].hung = 1;
    redlock_release_start(&client, &lock, 1000);
    fake_pass(&client, 5 * MS);
    redlock_cancel(&client, &lock);
    fake_pass(&client, 0);
    is_int(release(0), REDLOCK_UNCONFIRMED, "r11: one of three has confirmed the release");
}

/* The SET to a node is on its way on a connection that has broken when a release finds no key there. It arrives, and the
   lock is released again. */
static void r11_released_again_after_a_late_set(void)
{
    begin_with_defaults(3);
    warm_up();
    fake_hold(2);
    is_int(acquire(0), REDLOCK_OK, "r11: held on two of three, the SET to the third is delayed");
    fake_break(2);
    fake_pass(&client, 20 * MS);
    fake_nodes[0].hung = fake_nodes[1].hung = 1;
    is_int(release(30), REDLOCK_UNCONFIRMED, "r11: only the third replies");
    ok(fake_arrive(2) > 0 && fake_find(2, "k", 1) != NULL, "r11: the SET arrives");
    fake_resume(0);
    fake_resume(1);
    release(100);
    is_int((int)fake_keys_left(), 0, "r11: released again, no key is left");
}

/* Nor has a cancelled release deleted the keys of nodes that could not be reached. */
static void r11_released_again_after_a_cancel(void)
{
    begin_with_defaults(3);
    acquire(0);
    break_all(3, 1);
    redlock_release_start(&client, &lock, 5000);
    fake_pass(&client, 10 * MS);
    redlock_cancel(&client, &lock);
    fake_pass(&client, 100 * MS);
    is_int(lock.status, REDLOCK_CANCELLED, "r11: all nodes are down, the release is cancelled");
    is_int((int)fake_keys_left(), 3, "r11: they keep the key");
    break_all(3, 0);
    fake_pass(&client, 200 * MS);
    is_int(release(1000), REDLOCK_OK, "r11: released when they are back");
    is_int((int)fake_keys_left(), 0, "r11: no key is left");
}

/* No node can be reached, and an extension fails. All are back when the lock is released, but the pauses before the next
   connects are not over. The release has wait_ms for them. */
static void r11_released_after_the_pause(void)
{
    begin_with_defaults(3);
    acquire(0);
    break_all(3, 1);
    is_int(extend(), REDLOCK_UNREACHABLE, "r11: all nodes are down");
    fake_pass(&client, 2000 * MS);
    is_int(extend(), REDLOCK_UNREACHABLE, "r11: for some time");
    break_all(3, 0);
    is_int(release(1000), REDLOCK_OK,
           "r11: they are back, and the release waits for the connections");
    fake_pass(&client, 3000 * MS);
    ok(fake_keys_left() <= 1, "r11: a quorum has no key any more");
}

/* A release is cancelled: it ends after node_timeout_ms, not after its wait_ms. */
static void r11_a_cancelled_release_ends(void)
{
    int i;

    begin_with_defaults(3);
    acquire(0);
    fake_pass(&client, 10 * MS);
    for (i = 0; i < 3; i++)
        fake_nodes[i].hung = 1;
    redlock_release_start(&client, &lock, 5000);
    fake_pass(&client, 10 * MS);
    is_int(lock.status, REDLOCK_PENDING, "r11: no node replies");
    redlock_cancel(&client, &lock);
    fake_pass(&client, 50 * MS);
    is_int(lock.status, REDLOCK_CANCELLED, "r11: cancelled within node_timeout_ms");
}

/* ---- Releases at any moment ----------------------------------------------------------------- */

/* After the release the memory is the caller's: the library neither writes to it nor follows pointers in it. */
static void memory_is_not_used_any_more(void)
{
    struct redlock_lock poison, next;

    memset(&poison, 0xa5, sizeof poison);
    memcpy(&lock, &poison, sizeof lock);
    redlock_lock_init(&next, "next", 3000);
    redlock_acquire_start(&client, &next, 1000);
    is_int(wait_for(&next, 3000 * MS), REDLOCK_OK, "r11: another lock is acquired");
    is_int((int)redlock_release(&client, &next, 100), REDLOCK_OK, "r11: another lock is released");
    fake_pass(&client, 5000 * MS);
    ok(memcmp(&lock, &poison, sizeof lock) == 0,
       "r11: the memory of the released lock is unchanged");
    ok(redlock_next_completed(&client) == NULL, "r11: the released lock is not reported again");
    redlock_deinit(&client);
}

/* A release that is not repeated, because the token is the caller's: replies that come later are dropped. R4 */
static void r11_released_without_waiting(void)
{
    unsigned i;

    begin_with_defaults(3);
    set_label(&lock, "mine", 4);
    set_token_is_label(&lock, 1);
    is_int(acquire(0), REDLOCK_OK, "r11: held, and the token is a label");
    fake_pass(&client, 10 * MS);
    for (i = 0; i < 3; i++)
        fake_nodes[i].delay_us = 20 * MS;
    is_int(release(0), REDLOCK_UNCONFIRMED, "r11: released without waiting for a reply");
    memory_is_not_used_any_more();
}

/* The auto-extension of `lock` has ended with the status `how`, which redlock_next_completed has not reported yet. */
static void begin_ended(enum redlock_status how)
{
    int i;

    begin_with_defaults(3);
    lock.ttl_ms = 3000;
    is_int(acquire(0), REDLOCK_OK, "r11: held");
    fake_pass(&client, 10 * MS);
    redlock_auto_extend_start(&client, &lock, how == REDLOCK_EXTEND_LIMIT ? 1 : 100);
    if (how == REDLOCK_CANCELLED)
        redlock_cancel(&client, &lock);
    for (i = 0; how == REDLOCK_LOST && i < 3; i++) {
        fake_delete(i, "k");
        held_by("other", i, i);
    }
    fake_pass(&client, 2500 * MS);
    is_int((int)lock.status, (int)how, "r11: auto-extension has ended: %s",
           redlock_strerror((int)how));
}

static void r11_released_before_the_end_is_reported(enum redlock_status how, int blocking)
{
    int status;

    begin_ended(how);
    if (blocking) {
        status = release(1000);
    } else {
        status = (int)redlock_release_start(&client, &lock, 1000);
        ok(status != REDLOCK_INVALID_ARGUMENT, "r11: a release is started");
        status = status == REDLOCK_PENDING ? wait_for(&lock, 2000 * MS) : status;
    }
    if (how == REDLOCK_LOST)
        ok(status == REDLOCK_LOST || status == REDLOCK_EXPIRED, "r11: released: %s",
           redlock_strerror(status));
    else
        is_int(status, REDLOCK_OK, "r11: released");
    fake_pass(&client, 50 * MS);
    is_int((int)nodes_with(&lock), 0, "r11: no key is left");
    is_int((int)redlock_remaining_ms(&client, &lock), 0, "r11: no validity is left");
    if (status == REDLOCK_INVALID_ARGUMENT || status == REDLOCK_PENDING)
        return; /* its memory is still the library's */
    memory_is_not_used_any_more();
}

/* An extension and an acquire at that moment leave the lock in a state in which it can be released. */
static void r11_extended_before_the_end_is_reported(enum redlock_status how)
{
    int status;

    begin_ended(how);
    status = extend();
    ok(status == (how == REDLOCK_LOST ? REDLOCK_LOST : REDLOCK_OK) ||
           status == REDLOCK_INVALID_ARGUMENT,
       "r11: extended: %s", redlock_strerror(status));
    status = (int)redlock_acquire_start(&client, &lock, 0);
    ok(status == REDLOCK_ALREADY_HELD || status == REDLOCK_PENDING, "r11: acquired: %s",
       redlock_strerror(status));
    status = release(1000);
    ok(status == REDLOCK_OK || (how == REDLOCK_LOST && status != REDLOCK_INVALID_ARGUMENT),
       "r11: released: %s", redlock_strerror(status));
    fake_pass(&client, 50 * MS);
    is_int((int)nodes_with(&lock), 0, "r11: no key is left");
    if (status == REDLOCK_INVALID_ARGUMENT || status == REDLOCK_PENDING)
        return;
    memory_is_not_used_any_more();
}

/* A release may also be started while an acquire or an extension is in progress. It completes once. */
static void r11_released_at_any_moment(int what, int blocking)
{
    static const char *const whats[] = {"an acquire", "a wait", "an extension",
                                        "automatic extensions"};
    unsigned us, refused = 0, unended = 0, twice = 0, left = 0;

    for (us = 0; us < 8000; us += 250) {
        begin_with_defaults(3);
        warm_up();
        if (what == 1)
            held_by("other", 0, 1);
        fake_nodes[0].delay_us = 3 * MS;
        if (what >= 2)
            acquire(0);
        if (what < 2)
            redlock_acquire_start(&client, &lock, 5000);
        if (what == 2)
            redlock_extend_start(&client, &lock);
        if (what == 3) {
            redlock_auto_extend_start(&client, &lock, 100);
            fake_pass(&client, 3330 * MS);
        }
        fake_pass(&client, what == 1 ? us * 50 : us);
        if (blocking) {
            int status = release(500);
            refused += status == REDLOCK_INVALID_ARGUMENT;
            unended += status == REDLOCK_PENDING;
        } else {
            int status = (int)redlock_release_start(&client, &lock, 500);
            refused += status == REDLOCK_INVALID_ARGUMENT;
            unended += status == REDLOCK_PENDING && wait_for(&lock, 1000 * MS) == REDLOCK_PENDING;
        }
        fake_pass(&client, 1000 * MS);
        twice += redlock_next_completed(&client) != NULL;
        left += nodes_with(&lock);
    }
    is_int((int)refused, 0, "r11: released during %s, %s: always accepted", whats[what],
           blocking ? "blocking" : "by events");
    is_int((int)unended, 0, "r11: always completed");
    is_int((int)twice, 0, "r11: reported once");
    is_int((int)left, 0, "r11: no key is left");
}

/* A quorum of nodes is busy for a moment. A release that waits is not over before that: a program that ends then would leave the
   keys. Without end of the errors it ends in time. */
static void r11_released_after_temporary_errors(void)
{
    const char *busy = "-BUSY Redis is busy running a script.\r\n";
    uint64_t start;
    int i;

    begin_with_defaults(3);
    is_int(acquire(0), REDLOCK_OK, "r11: held");
    fake_pass(&client, 20 * MS);
    for (i = 0; i < 2; i++) {
        fake_nodes[i].reply = busy;
        fake_nodes[i].reply_once = 1;
    }
    start = fake_now_us;
    is_int(release(1000), REDLOCK_OK, "r11: released, two of three are busy for a moment");
    ok(since(start) <= 100 * MS, "r11: after %ld us", since(start));
    is_int((int)fake_keys_left(), 0, "r11: no key is left");
    is_int(acquire(0), REDLOCK_OK, "r11: held");
    fake_pass(&client, 20 * MS);
    for (i = 0; i < 2; i++) {
        fake_nodes[i].reply = busy;
        fake_nodes[i].reply_once = 0;
    }
    fake_logged = 0;
    start = fake_now_us;
    is_int(release(220), REDLOCK_UNCONFIRMED, "r11: two of three are busy for longer");
    is_int((int)since(start), 220 * MS, "r11: until the wait is over");
    ok(fake_count(0, 'D') + fake_count(0, 'N') <= 7, "r11: they are not asked all the time");
    fake_nodes[0].reply = fake_nodes[1].reply = NULL;
    fake_pass(&client, 500 * MS);
    is_int(fake_keys_left() == 0, REPEATS, "r11: it is repeated after that");
}

/* A host that hangs was never sent the lock: a release does not wait for it. */
static void r11_a_release_asks_nodes_that_may_have_the_key(void)
{
    uint64_t start;

    begin_with_defaults(3);
    fake_nodes[2].never_up = 1;
    is_int(acquire(0), REDLOCK_OK, "r11: held on two of three");
    start = fake_now_us;
    is_int(release(100), REDLOCK_OK, "r11: released");
    ok(since(start) < 10 * MS, "r11: at once: %ld us", since(start));
    is_int(acquire(0), REDLOCK_OK, "r11: held again");
    start = fake_now_us;
    release(0);
    ok(since(start) < 10 * MS, "r11: without a wait, at once: %ld us", since(start));
}

int main(void)
{
    static const enum redlock_status ends[] = {REDLOCK_EXTEND_LIMIT, REDLOCK_LOST,
                                               REDLOCK_CANCELLED};
    int what, blocking, i;

    r11_release_goes_to_all_nodes();
    r11_without_a_wait_no_node_is_late();
    r11_outcomes(0);
    r11_outcomes(1);
    r11_outcomes(4);
    r11_a_release_that_was_sent_again_is_no_loss(1);
    r11_a_release_that_was_sent_again_is_no_loss(3);
    r11_a_loss_is_reported_by_other_nodes();
    r11_an_unreachable_member();
    r11_release_without_waiting();
    r11_a_release_during_a_release();
    r11_released_again();
    r11_released_again_after_one_node_lost_it();
    r11_released_again_after_a_late_set();
    r11_released_again_without_waiting();
    r11_released_again_after_a_cancel();
    r11_released_after_the_pause();
    r11_a_cancelled_release_ends();
    if (!REDLOCK_MINIMAL) {
        r11_native_commands_are_detected();
        r11_versions();
        r11_native_commands_that_fail_later();
        r11_servers_without_hashes();
        r11_without_a_wait_by_script();
        r11_cancelled_by_script();
        r11_native_commands_and_scripts();
        r11_native_commands_know_one_key();
    } else {
        r11_left_out();
    }
    for (i = 0; i < 3 && !REDLOCK_MINIMAL; i++) {
        r11_released_before_the_end_is_reported(ends[i], 0);
        r11_released_before_the_end_is_reported(ends[i], 1);
        r11_extended_before_the_end_is_reported(ends[i]);
    }
    for (what = 0; what < 3 + !REDLOCK_MINIMAL; what++)
        for (blocking = 0; blocking < 2; blocking++)
            r11_released_at_any_moment(what, blocking);
    r11_released_without_waiting();
    r11_released_after_temporary_errors();
    r11_a_release_asks_nodes_that_may_have_the_key();
    return done_testing();
}
