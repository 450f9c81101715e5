/* lock_release_test.c - releases and rollbacks (R4, R11).

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "one_lock.h"

/* Whether every SET is followed by a release of its token on its connection, except on node `but` (-1: none). */
static int each_set_is_released(int but)
{
    unsigned i, j;

    for (i = 0; i < fake_logged; i++) {
        if (fake_log[i].kind != 'S' || fake_log[i].node == but)
            continue;
        for (j = i + 1; j < fake_logged; j++)
            if (strchr("DN", fake_log[j].kind) != NULL && fake_log[j].node == fake_log[i].node &&
                fake_log[j].epoch == fake_log[i].epoch &&
                strcmp(fake_log[j].token, fake_log[i].token) == 0)
                break;
        if (j == fake_logged)
            return 0;
    }
    return 1;
}

static unsigned releases_of(int i)
{
    return fake_count(i, 'D') + fake_count(i, 'N');
}

static void r04_release_goes_to_every_asked_node(void)
{
    memset(&settings, 0, sizeof settings);
    settings.retries = REDLOCK_NONE;
    begin(5);
    warm_up();
    held_by("other", 1, 2); /* 0: granted. 1, 2: refused. 3: an error. 4: hangs */
    fake_nodes[3].reply = "-LOADING Redis is loading the dataset in memory\r\n";
    fake_nodes[4].hung = 1;
    is_int(acquire(0), REDLOCK_CONTENDED, "r04: one grant, two refusals, an error, a hung node");
    is_int(lock.granted << 8 | lock.refused, 0x106, "r04: the votes");
    is_int(lock.failed, 0x8, "r04: the failure");
    ok(has_error(3, "LOADING"), "r04: its error: %s", nodes[3].error);
    fake_resume(4);
    is_int((int)fake_keys_left(), 2, "r04 T6 T37: no key of ours is left, nor on the hung node");
    is_int((int)fake_count(-1, 'D'), 5, "r04: the release went to all five");
    ok(each_set_is_released(-1), "r05 T7: each after its SET, on the same connection");
}

/* The connection of node 0 breaks after the handshake, but before the first reply to a SET. The client
   connects again at once for the release, so that the key does not stay until its ttl is over. */
static void r04_release_after_the_first_reply_is_lost(void)
{
    begin_with_defaults(3);
    fake_nodes[0].drops_set_reply = 1;
    is_int(acquire(0), REDLOCK_OK, "r04: two nodes grant it, the third has not replied yet");
    fake_pass(&client, 5 * MS);
    fake_break(0);
    is_int(release(100), REDLOCK_OK, "r04: released");
    fake_pass(&client, 5 * MS);
    is_int((int)fake_keys_left(), 0, "r04: no key is left, not even where the connection broke");
}

static void r04_release_outlasts_a_full_buffer(void)
{
    begin_with_defaults(3);
    warm_up();
    held_by("other", 1, 2);
    fake_nodes[0].full = 1; /* the SET for node 0 stays in our buffer */
    redlock_acquire_start(&client, &lock, 0);
    fake_pass(&client, 0);
    fake_pass(&client, 10 * MS);
    is_int(lock.status, REDLOCK_HELD, "r04: decided without the node that accepts no bytes");
    fake_nodes[0].full = 0;
    fake_pass(&client, 10 * MS);
    is_int((int)fake_count(0, 'S'), 1, "r04: the SET is sent when the node accepts bytes");
    is_int((int)fake_count(0, 'D'), 1, "r04: the release follows it");
    is_int((int)fake_keys_left(), 2, "r04: no key of ours is left");
}

static void r04_t8_cancel_rolls_back(void)
{
    begin_with_defaults(3);
    warm_up();
    fake_nodes[1].delay_us = fake_nodes[2].delay_us = 40 * MS;
    redlock_acquire_start(&client, &lock, 5000);
    fake_pass(&client, 5 * MS);
    is_int(lock.granted, 1, "r04 T8: one of three has granted");
    redlock_cancel(&client, &lock);
    redlock_tick(&client);
    ok(redlock_next_completed(&client) == &lock, "r04 T8: the operation completes at once");
    is_int(lock.status, REDLOCK_CANCELLED, "r04 T8: the status is REDLOCK_CANCELLED");
    is_int((int)fake_count(-1, 'D'), 3, "r04 T8: released on all three");
    fake_pass(&client, 100 * MS);
    is_int((int)fake_keys_left(), 0, "r04 T8: no key is left");
    redlock_cancel(&client, &lock);
    is_int(lock.status, REDLOCK_CANCELLED, "redlock_cancel after the end changes nothing");
}

static void r04_cancel_in_every_state(void)
{
    unsigned ms;

    for (ms = 0; ms < 400; ms += 7) {
        begin_with_defaults(3);
        held_by("other", 0, 1);
        redlock_acquire_start(&client, &lock, 5000);
        fake_pass(&client, ms * MS);
        redlock_cancel(&client, &lock);
        fake_pass(&client, 60 * MS);
        if (lock.status != REDLOCK_CANCELLED || fake_keys_left() != 2 ||
            redlock_next_completed(&client) != &lock)
            break;
    }
    ok(ms >= 400, "r04: cancelled at any moment of a wait: no key is left (%u ms)", ms);
}

/* The third node is ready in the same tick in which the cancel is seen. */
static void r04_a_cancelled_attempt_asks_nobody(void)
{
    begin_with_defaults(3);
    fake_nodes[2].connect_us = 120 * MS;
    fake_nodes[2].delay_us = 10 * MS;
    redlock_acquire_start(&client, &lock, 5000);
    fake_pass(&client, 50 * MS);
    fake_nodes[0].delay_us = fake_nodes[1].delay_us = 100 * MS;
    fake_pass(&client, 75 * MS);
    is_int((int)fake_count(-1, 'S'), 2,
           "r04: two nodes are asked, the third one is in its handshake");
    fake_now_us += 10 * MS;
    redlock_handle_events(&client, 2, REDLOCK_READABLE);
    redlock_cancel(&client, &lock);
    redlock_tick(&client);
    is_int(nodes[2].state, REDLOCK_NODE_READY, "r04: now it is ready");
    is_int((int)fake_count(2, 'S'), 0, "r04: but the attempt is cancelled, and does not ask it");
    is_int((int)fake_count(-1, 'D'), 2, "r04: released on the two");
}

static void r11_release_goes_to_all_nodes(void)
{
    begin_with_defaults(5);
    warm_up();
    fake_nodes[4].hung = 1;
    acquire(0);
    is_int(release(1000), REDLOCK_OK, "r11: released while one hangs");
    fake_resume(4);
    is_int((int)releases_of(4), 1, "r11 T6: it is also sent to the node that has not replied");
    is_int((int)fake_keys_left(), 0, "r11 T6: no key is left");
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
    is_int(release(100), REDLOCK_EXPIRED, "r11 T40: the release is repeated");
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
    redlock_lock_init(&other, "o", 1, 10000);
    is_int((int)redlock_acquire(&client, &other, 0), REDLOCK_OK, "r11: acquired");
    fake_pass(&client, 1 * MS);
    for (i = 0; i < 5; i++)
        fake_nodes[i].delay_us = i < 3 ? 5 * MS : 30 * MS;
    redlock_release_start(&client, &other, 1000);
    fake_pass(&client, 1 * MS);
    redlock_release_start(&client, &other, 1000);
    while (redlock_next_completed(&client) == NULL)
        fake_pass(&client, 1 * MS);
    is_int((int)other.status, REDLOCK_EXPIRED, "r11: the first release has deleted the keys");
    memset(&other, 0xaa, sizeof other);
    was = other;
    fake_pass(&client, 200 * MS);
    ok(memcmp(&was, &other, sizeof was) == 0, "r11: a released lock is not written to");
}

static void r11_native_commands_are_detected(void)
{
    static const struct {
        int native, denied;
        unsigned scripts, natives; /* sent to each server in four cycles */
    } cases[] = {{0, 0, 1, 3}, {1, 0, 0, 4}, {2, 0, 0, 4},
                 {4, 0, 4, 1}, {7, 0, 0, 4}, {7, 1, 4, 1}};
    unsigned i, n;

    for (n = 0; n < sizeof cases / sizeof *cases; n++) {
        unsigned wrong = 0;
        begin_native(3, cases[n].native);
        for (i = 0; i < 3; i++)
            fake_nodes[i].server.no_native = cases[n].denied;
        acquire_and_release(4);
        for (i = 0; i < 3; i++)
            wrong += fake_count((int)i, 'D') != cases[n].scripts ||
                     fake_count((int)i, 'N') != cases[n].natives || nodes[i].error[0] != '\0' ||
                     fake_nodes[i].connects != 1;
        is_int(
            (int)wrong, 0, "r11: %d%s: %u scripts and %u native releases in four cycles, no error",
            cases[n].native, cases[n].denied ? ", denied" : "", cases[n].scripts, cases[n].natives);
        for (i = 0; i < 3; i++)
            fake_break((int)i);
        fake_pass(&client, 20 * MS);
        acquire_and_release(1);
        is_int((int)fake_count(0, cases[n].native & 3 ? 'N' : 'D'),
               (int)(cases[n].native & 3 ? cases[n].natives : cases[n].scripts) + 1,
               "r11: tried again on the next connection");
    }
}

/* The caller lowers ttl_ms while it holds the lock. A release that failed for a time is repeated for as long as the key lives. */
static void r04_repeated_for_the_longer_ttl(void)
{
    begin_with_defaults(3);
    warm_up();
    lock.ttl_ms = 20000;
    is_int(acquire(0), REDLOCK_OK, "r04: held for 20 s");
    lock.ttl_ms = 100;
    fake_nodes[0].reply = "-BUSY Redis is busy running a script.\r\n";
    is_int(release(100), REDLOCK_OK, "r04: released with a shorter ttl, one node is busy");
    fake_pass(&client, 8000 * MS);
    fake_nodes[0].reply = NULL;
    fake_pass(&client, 4000 * MS);
    ok(!REPEATS || fake_keys_left() == 0, "r04: no key is left");
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
        is_int(release(1000), REDLOCK_OK, "r11 T39: the native command fails: released");
        is_int((int)fake_keys_left(), 0, "r11 T39: no key is left");
        fake_pass(&client, 20 * MS);
        for (i = 0; i < 5; i++)
            wrong += fake_count((int)i, 'N') != 1 || fake_count((int)i, 'D') != 1 ||
                     nodes[i].error[0] != '\0' || fake_nodes[i].connects != 1;
        is_int((int)wrong, 0,
               "r11: by script; the server's error, which contains the token, is dropped");
        fake_logged = 0;
        acquire_and_release(1);
        is_int((int)fake_count(-1, 'N'), 0, "r11: no native command is tried again");
    }
}

/* There is room for the release, but not for the native command after it, even after a byte was sent to make
   room. The commands to the next node must be complete all the same. */
static void r02_a_full_buffer_cuts_no_command(void)
{
    static char key[64];
    struct redlock_lock locks[2];
    unsigned i;

    begin_native(3, 0);
    memset(key, 'a', sizeof key);
    lock.key = key;
    lock.key_size = 64;
    is_int(acquire(0), REDLOCK_OK, "r02: held");
    fake_pass(&client, 20 * MS);
    fake_nodes[0].drip = 1;
    for (i = 0; i < 2; i++) {
        redlock_lock_init(&locks[i], key, 62 + i, 10000);
        redlock_acquire_start(&client, &locks[i], 0);
    }
    redlock_release_start(&client, &lock, 1000);
    fake_pass(&client, 20 * MS);
    is_int(lock.status, REDLOCK_OK, "r02: released while one node accepts byte after byte");
    fake_nodes[0].drip = 0;
    fake_pass(&client, 20 * MS);
    is_int((int)fake_count(-1, 'D'), 3, "r02: the release was sent to all three");
}

static void r11_native_commands_and_scripts(void)
{
    begin_native(3, 1);
    acquire_and_release(1);
    held_by("other", 0, 2);
    fake_logged = 0;
    is_int(acquire(0), REDLOCK_HELD, "r11: a failed attempt is rolled back by script");
    is_int((int)fake_count(-1, 'N'), 0,
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

/* A lock is released twice, because the first time only one node could be reached, which had lost the key to another
   client. The second time another node has lost it, too: the lock was lost. */
static void r11_released_again_after_a_loss(void)
{
    begin_with_defaults(3);
    acquire(0);
    fake_pass(&client, 20 * MS);
    fake_nodes[1].hung = fake_nodes[2].hung = 1;
    delete_on(0, 1);
    held_by("other", 0, 1);
    is_int(release(10), REDLOCK_UNCONFIRMED, "r11: one of three replies");
    fake_resume(1);
    is_int(release(100), REDLOCK_LOST, "r11: two of three had lost the key");
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
    int status;

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
    status = release(1000);
    /* where releases are repeated, the cancelled one may have deleted the keys of a quorum by now */
    ok(status == REDLOCK_OK || (REPEATS && status == REDLOCK_EXPIRED),
       "r11: released when they are back: %s", redlock_strerror((enum redlock_status)status));
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

/* A release that was sent is not repeated while its reply is due, nor after it. */
static void r04_a_release_is_sent_once(void)
{
    unsigned sent;

    begin_with_defaults(3);
    warm_up();
    fake_pass(&client, 1000 * MS);
    acquire(0);
    fake_pass(&client, 10 * MS);
    fake_logged = 0;
    fake_nodes[2].hung = 1;
    is_int(release(100), REDLOCK_OK, "r04: one of three hangs");
    fake_pass(&client, 500 * MS);
    fake_resume(2);
    sent = releases_of(2);
    fake_pass(&client, 1000 * MS);
    is_int((int)sent, (int)releases_of(0), "r04: it is sent the release as often as the others");
    is_int((int)releases_of(2), (int)sent, "r04: and not again when it has replied");
    begin_with_defaults(3); /* so that the script releases */
    acquire(0);
    fake_pass(&client, 10 * MS);
    fake_logged = 0;
    fake_nodes[2].reply = "-BUSY Redis is busy running a script.\r\n";
    fake_nodes[2].reply_once = 1;
    is_int(release(100), REDLOCK_OK, "r04: one of three is busy");
    fake_delete(2, "k");
    fake_pass(&client, 1000 * MS);
    is_int((int)fake_count(2, 'D'), REPEATS ? 2 : 1,
           "r04: it is repeated once, as the key is gone then");
}

/* A release that is owed to a node is given up when the key has expired, and another takes its place. The reply to
   the first comes after all. It says nothing of the second. */
static void r04_a_reply_to_a_release_that_was_given_up(void)
{
    struct redlock_lock second;

    if (!REPEATS || REDLOCK_PIPELINE_MAX < 8)
        return; /* the reply to the second release would be dropped, for want of a request */
    memset(&settings, 0, sizeof settings);
    settings.stall_ms = 60000;
    begin(3);
    warm_up();
    fake_pass(&client, 1000 * MS);
    lock.ttl_ms = 500;
    acquire(0);
    fake_pass(&client, 10 * MS);
    fake_nodes[2].hung = 1;
    is_int(release(100), REDLOCK_OK, "r04: one of three hangs");
    fake_pass(&client, 1000 * MS);
    redlock_lock_init(&second, "l", 1, 30000);
    is_int((int)redlock_acquire(&client, &second, 0), REDLOCK_OK, "r04: another lock");
    fake_hold(2); /* the SET of the second lock is there, its release is on the way */
    is_int((int)redlock_release(&client, &second, 100), REDLOCK_OK, "r04: is released, too");
    fake_resume(2);
    fake_pass(&client, 10 * MS);
    ok(fake_find(2, "l", 1) != NULL, "r04: the third node runs the first release and the SET");
    fake_break(2); /* and what was on the way is lost */
    fake_pass(&client, 3000 * MS);
    ok(fake_find(2, "l", 1) == NULL, "r04: it is sent the second release again");
}

/* A release that a node has not answered is sent again on a new connection, without any other call. */
static void r04_a_repeated_release_connects(void)
{
    begin_with_defaults(3);
    warm_up();
    acquire(0);
    fake_pass(&client, 10 * MS);
    fake_hold(2);
    is_int(release(100), REDLOCK_OK, "r04: two of three have answered");
    fake_break(2);
    fake_pass(&client, 2000 * MS);
    is_int((int)fake_keys_left(), REPEATS ? 0 : 1,
           "r04: the third is connected and sent the release again");
}

/* A node hangs, and the connection to another one is not up in time: the release is kept for both, although there may be
   one place only. */
static void r04_one_place_for_all_nodes(void)
{
    if (REDLOCK_NODES_MAX < 5)
        return;
    begin_with_defaults(5);
    warm_up();
    acquire(0);
    fake_pass(&client, 20 * MS);
    fake_nodes[3].hung = 1;
    fake_nodes[4].never_up = 1;
    fake_break(4);
    fake_pass(&client, 1 * MS);
    is_int(release(500), REDLOCK_OK, "r04: released, one of five hangs, another connects");
    fake_pass(&client, 100 * MS);
    fake_nodes[4].never_up = 0;
    fake_resume(3);
    fake_pass(&client, 3000 * MS);
    is_int((int)fake_keys_left(), REPEATS ? 0 : 1, "r04: both are sent the release");
}

/* The lock is held on three nodes, and all replies have come. */
static void begin_held(void)
{
    begin_with_defaults(3);
    warm_up();
    acquire(0);
    fake_pass(&client, 20 * MS);
}

/* The connection to a node breaks twice while the lock is released. The release is sent again when the node is back. */
static void r04_a_release_that_broke_twice(void)
{
    begin_held();
    fake_nodes[1].hung = 1;
    fake_nodes[2].reply = "";
    is_int(release(300), REDLOCK_UNCONFIRMED,
           "r04: one of three hangs, another closes each connection");
    fake_nodes[2].reply = NULL;
    fake_resume(1);
    fake_pass(&client, 5000 * MS);
    is_int((int)fake_keys_left(), REPEATS ? 0 : 1, "r04: all are sent the release");
}

/* The password of a node was changed while the lock was held, and is changed back before the key expires. */
static void r04_a_release_that_was_denied_for_a_time(void)
{
    begin_held();
    fake_nodes[2].server.password = "another";
    fake_break(2);
    fake_pass(&client, 20 * MS);
    is_int(release(300), REDLOCK_OK, "r04: released, although one of three refuses the password");
    fake_nodes[2].server.password = NULL;
    fake_pass(&client, 5000 * MS);
    is_int((int)fake_keys_left(), REPEATS ? 0 : 1, "r04: it is sent the release when it does not");
}

/* A node refuses the password once while the lock is released, then is busy. */
static void r04_a_release_that_was_denied_and_postponed(void)
{
    begin_held();
    fake_nodes[1].server.password = "another";
    fake_break(1);
    fake_nodes[0].delay_us = fake_nodes[2].delay_us = 400 * MS;
    redlock_release_start(&client, &lock, 2000);
    fake_pass(&client, 20 * MS);
    fake_nodes[1].server.password = NULL;
    fake_nodes[1].reply = "-BUSY Redis is busy running a script.\r\n";
    fake_pass(&client, 500 * MS);
    is_int(lock.status, REDLOCK_OK, "r04: released on two of three");
    fake_nodes[1].reply = NULL;
    fake_pass(&client, 4000 * MS);
    is_int((int)fake_keys_left(), REPEATS ? 0 : 1, "r04: the third is sent the release again");
}

int main(void)
{
    r04_repeated_for_the_longer_ttl();
    r04_release_goes_to_every_asked_node();
    r04_release_after_the_first_reply_is_lost();
    r04_release_outlasts_a_full_buffer();
    r04_t8_cancel_rolls_back();
    r04_cancel_in_every_state();
    r04_a_cancelled_attempt_asks_nobody();
    r04_one_place_for_all_nodes();
    r04_a_repeated_release_connects();
    r04_a_release_is_sent_once();
    r04_a_release_that_broke_twice();
    r04_a_release_that_was_denied_for_a_time();
    r04_a_release_that_was_denied_and_postponed();
    r04_a_reply_to_a_release_that_was_given_up();
    r11_release_goes_to_all_nodes();
    r11_without_a_wait_no_node_is_late();
    r11_outcomes(0);
    r11_outcomes(1);
    r11_outcomes(4);
    r11_an_unreachable_member();
    r11_release_without_waiting();
    r11_a_release_during_a_release();
    r11_released_again();
    r11_released_again_after_a_loss();
    r11_released_again_after_a_late_set();
    r11_released_again_without_waiting();
    r11_released_again_after_a_cancel();
    r11_released_after_the_pause();
    r11_a_cancelled_release_ends();
    if (!REDLOCK_MINIMAL) {
        r11_native_commands_are_detected();
        r11_native_commands_that_fail_later();
        r02_a_full_buffer_cuts_no_command();
        r11_native_commands_and_scripts();
        r11_native_commands_know_one_key();
    } else {
        r11_left_out();
    }
    return done_testing();
}
