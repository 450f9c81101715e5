/* lock_repair_test.c - R9: a node that has lost the key gets it again, and becomes a member when that proves
   something.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "one_lock.h"

static void r09_no_repair_of_other_nodes_after_the_end(void)
{
    hold_two_of_three(MS);
    held_by("another", 2, 2);
    fake_pass(&client,
              9900 *
                  MS); /* the validity has ended because of the drift, the keys have not expired */
    fake_delete(2, "k");
    is_int(extend(), REDLOCK_OK, "r09: extended after the end: the members still have it");
    fake_pass(&client, 10 * MS);
    ok(fake_find(2, "k", 1) == NULL, "r09: but the key is created on no other node");
}

/* An extension runs long after it was sent. Meanwhile the lock has expired, and another client may have held
   and released it. The extension must not create the key again, because its success would mean that we held
   the lock all the time. Found by sim.c. */
static void r09_a_late_extension_creates_no_key(void)
{
    int i;

    memset(&settings, 0, sizeof settings);
    settings.stall_ms = 600000;
    begin(3);
    is_int(acquire(0), REDLOCK_OK, "r09: held");
    fake_pass(&client, 10 * MS);
    for (i = 0; i < 3; i++)
        fake_nodes[i].hung = 1;
    is_int(extend(), REDLOCK_UNREACHABLE, "r09: all nodes hang");
    fake_pass(&client, 30000 * MS);
    for (i = 0; i < 3; i++)
        fake_resume(i);
    fake_pass(&client, 10 * MS);
    is_int(extend(), REDLOCK_LOST, "r09: expired, and not created again");
    fake_pass(&client, 10 * MS);
    is_int((int)fake_keys_left(), 0, "r09: no key is left");
}

/* A repair without a reply may run at any time. So a later confirmation of that node proves nothing, unless
   it comes on the same connection, where replies have the order of their commands. */
static void r09_a_repair_without_a_reply(void)
{
    int breaks; /* 1: the connection breaks; 2: another server process as well */

    for (breaks = 0; breaks < 3; breaks++) {
        memset(&settings, 0, sizeof settings);
        settings.stall_ms = 600000;
        begin(3);
        warm_up();
        held_by("another", 2, 2);
        is_int(acquire(0), REDLOCK_OK, "r09: held on two of three");
        fake_pass(&client, 10 * MS);
        fake_delete(2, "k");
        fake_nodes[0].delay_us = fake_nodes[1].delay_us = 5 * MS;
        redlock_extend_start(&client, &lock);
        fake_pass(&client, MS / 2);
        fake_nodes[2].hung = 1; /* after its reply that the key is missing */
        fake_pass(&client, 10 * MS);
        is_int(lock.status, REDLOCK_OK, "r09: extended by two, the third hangs");
        redlock_next_completed(&client);
        fake_pass(&client, 100 * MS);
        if (breaks)
            fake_break(2);
        if (breaks == 2)
            fake_nodes[2].server.run = 777;
        fake_resume(2);
        fake_pass(&client, 100 * MS);
        is_int(extend(), REDLOCK_OK, "r09: extended");
        fake_pass(&client, 10 * MS);
        is_int(extend(), REDLOCK_OK, "r09: extended again");
        is_int(lock.members, 7, "r09: %s: the third is a member",
               breaks == 0   ? "same connection"
               : breaks == 1 ? "its connection broke"
                             : "another process");
        release(100);
    }
}

static void r09_an_extension_repairs(void)
{
    int i, round, lost = 0;

    begin_with_defaults(5);
    acquire(0);
    for (round = 0; round < 4; round++)
        for (i = 0; i < 5; i++) {
            lose_keys(i);
            fake_pass(&client, 1000 * MS);
            lost += extend() != REDLOCK_OK;
            fake_pass(&client, 20 * MS);
            lost += extend() != REDLOCK_OK;
            fake_pass(&client, 20 * MS);
            lost += fake_find(i, "k", 1) == NULL || votes(lock.members) != 5;
        }
    is_int(lost, 0, "r09: five nodes lose their keys one after the other, four times: still held");
    is_int((int)fake_count(-1, 'S'), 5, "r09: no further SET");
    release(100);
    fake_pass(&client, 10 * MS);
    is_int((int)fake_keys_left(), 0, "r09: repaired keys are released with the others");
}

static void r09_repaired_nodes_do_not_count_at_once(void)
{
    begin_with_defaults(5);
    acquire(0);
    fake_pass(&client, 10 * MS);
    is_int((int)votes(lock.members), 5, "r09: five members");
    lose_keys(0);
    lose_keys(1);
    lose_keys(2);
    is_int(extend(), REDLOCK_LOST,
           "r09: three of five lost the key: another client may have held the lock");
    fake_pass(&client, 10 * MS);
    is_int((int)fake_keys_left(), 0, "r09: the repaired and the remaining keys are released");
    begin_with_defaults(3);
    acquire(0);
    fake_pass(&client, 10 * MS);
    lose_keys(0);
    fake_nodes[1].hung = 1;
    is_int(extend(), REDLOCK_UNREACHABLE, "r09: one lost the key, one hangs");
    is_int((int)votes(lock.members), 2,
           "r09: the repaired node is not a member after a failed round");
    fake_resume(1);
    fake_nodes[2].hung = 1;
    is_int(extend(), REDLOCK_UNREACHABLE, "r09: it does not count in the next round");
    fake_resume(2);
    fake_nodes[0].delay_us = 0;
    fake_nodes[2].delay_us = 2 * MS;
    is_int(extend(), REDLOCK_OK, "r09: two old members and the repaired node confirm a round");
    is_int((int)votes(lock.members), 3, "r09: the repaired node is a member");
    fake_nodes[1].hung = 1;
    is_int(extend(), REDLOCK_OK, "r09: then the repaired node counts");
}

static void r09_a_repaired_node_counts_when_it_has_confirmed(void)
{
    begin_with_defaults(3);
    acquire(0);
    fake_pass(&client, 10 * MS);
    fake_nodes[2].delay_us = 2 * MS;
    lose_keys(0);
    fake_nodes[0].delay_us = 100;
    is_int(extend(), REDLOCK_OK, "r09: two members confirm it, the third is repaired");
    fake_nodes[1].hung = 1;
    is_int(extend(), REDLOCK_UNREACHABLE,
           "r09: a repair does not prove that we held the lock before");
    fake_resume(1);
    fake_pass(&client, 20 * MS);
    is_int(extend(), REDLOCK_OK, "r09: the repaired node confirms the next round");
    fake_pass(&client, 20 * MS);
    fake_nodes[1].hung = 1;
    is_int(extend(), REDLOCK_OK, "r09: then it counts instead of a member that hangs");
}

static void r09_repair_by_a_later_round(void)
{
    begin_with_defaults(3);
    acquire(0);
    fake_pass(&client,
              9950 *
                  MS); /* the validity has ended because of the drift, the keys have not expired */
    is_int((int)redlock_remaining_ms(&client, &lock), 0, "r09: no validity is left");
    lose_keys(0);
    is_int(extend(), REDLOCK_OK, "r08: two members still have the key: extended");
    fake_pass(&client, 5 * MS);
    ok(fake_find(0, "k", 1) != NULL, "r09: held again, so the third node is repaired");
}

/* Without repair a lost key is not created again, and its node is never a member again. The lock is held as
   long as a quorum of members is left. */
static void r09_left_out(void)
{
    int i;

    begin_with_defaults(5);
    acquire(0);
    fake_pass(&client, 10 * MS);
    for (i = 0; i < 2; i++) {
        lose_keys(i);
        is_int(extend(), REDLOCK_OK, "r09 left out: %d of five lost the key: extended", i + 1);
        fake_pass(&client, 20 * MS);
        is_int(extend(), REDLOCK_OK, "r09 left out: extended again");
        fake_pass(&client, 20 * MS);
        ok(fake_find(i, "k", 1) == NULL, "r09 left out: the key is not created again");
        is_int((int)votes(lock.members), 4 - i, "r09 left out: the node is no longer a member");
    }
    lose_keys(2);
    is_int(extend(), REDLOCK_LOST, "r09 left out: three of five lost the key: lost");
    fake_pass(&client, 20 * MS);
    is_int((int)fake_keys_left(), 0, "r09 left out: the remaining keys are released");
    for (i = 0; i < (int)fake_logged && !fake_log[i].repairs; i++)
        continue;
    is_int(i, (int)fake_logged, "r09 left out: no extension could have created the key");
}

/* Two nodes say in one tick that the key is missing. The lock is lost then, so nothing is repaired. */
static void r09_a_lost_lock_is_not_repaired(void)
{
    unsigned i, repairs = 0;

    begin_with_defaults(3);
    acquire(0);
    fake_delete(0, "k");
    fake_delete(1, "k");
    held_by("other", 1, 1);
    fake_logged = 0;
    is_int(extend(), REDLOCK_LOST, "r09: a majority of nodes has not the key: lost");
    is_int((int)lock.granted, 4, "r09: the third extended it");
    is_int((int)lock.refused, 3, "r09: `refused` names the two");
    for (i = 0; i < fake_logged; i++)
        repairs += fake_log[i].kind == 'E' && fake_log[i].repairs;
    is_int((int)repairs, 0, "r09: no node is sent a repair of a lost lock");

    begin_with_defaults(3);
    acquire(0);
    fake_delete(0, "k");
    redlock_extend_start(&client, &lock);
    fake_pass(&client, 1 * MS);
    is_int(lock.status, REDLOCK_OK, "r09: extended by two of three");
    fake_nodes[0].hung = 1; /* while it is repaired */
    fake_delete(1, "k");
    fake_delete(2, "k");
    is_int(extend(), REDLOCK_LOST, "r09: lost, by the two nodes that reply");
    is_int((int)lock.refused, 6, "r09: `refused` names these");

    begin_with_defaults(3);
    warm_up();
    acquire(0);
    fake_delete(0, "k");
    fake_delete(1, "k");
    redlock_extend_start(&client, &lock);
    fake_pass(&client, 1);
    fake_now_us += 1 * MS;
    redlock_handle_events(&client, 0, REDLOCK_READABLE);
    redlock_handle_events(&client, 1, REDLOCK_READABLE);
    redlock_cancel(&client, &lock);
    fake_pass(&client, 1 * MS);
    is_int(lock.status, REDLOCK_CANCELLED, "r09: cancelled when two replies are there");
    fake_logged = 0;
    is_int(extend(), REDLOCK_LOST, "r09: lost, as these have not the key");
    is_int((int)fake_count(-1, 'E'), 0, "r09: without a question");
    is_int((int)lock.refused, 3, "r09: `refused` names them");
}

/* The same after a repair: by an extension that does not count. */
static void r09_a_repaired_node_becomes_a_member_soon(unsigned extensions)
{
    begin_with_defaults(3);
    warm_up();
    lock.ttl_ms = 3000;
    is_int(acquire(0), REDLOCK_OK, "r09: held");
    redlock_auto_extend_start(&client, &lock, extensions);
    fake_pass(&client, 1010 * MS);
    is_int((int)lock.extended, 1, "r09: extended by itself");
    fake_delete(2, "k");
    fake_pass(&client, 1000 * MS);
    is_int(lock.extended == 2 && lock.members == 3, 1, "r09: extended, the third is repaired");
    fake_pass(&client, 100 * MS);
    is_int(lock.members, 7, "r09: a member soon, of %u extensions", extensions);
    is_int(lock.status, REDLOCK_PENDING, "r09: the last one is left");
    release(100);
}

/* But not while it has no vote: then it becomes no member, however often it is asked. */
static void r09_a_repaired_node_without_a_vote(void)
{
    unsigned i;

    memset(&settings, 0, sizeof settings);
    settings.longest_ttl_ms = 30000;
    begin(3);
    for (i = 0; i < 3; i++)
        fake_nodes[i].server.age_s = 1000;
    warm_up();
    lock.ttl_ms = 3000;
    is_int(acquire(0), REDLOCK_OK, "r09: held");
    redlock_auto_extend_start(&client, &lock, 100);
    fake_pass(&client, 10 * MS);
    lose_keys(2);
    fake_nodes[2].server.age_s = 0;
    fake_pass(&client, 1000 * MS);
    ok(lock.extended == 1 && has_token(2, &lock), "r09: extended, the third is repaired");
    fake_pass(&client, 900 * MS);
    is_int((int)lock.extended, 1, "r09: not extended for its sake");
    is_int(lock.members, 3, "r09: it is no member");
    release(100);
}

/* ---- Late repairs --------------------------------------------------------------------------- */

/* Starts an extension. When it was sent to node 2, all that follows on that connection is delayed, the repair
   included. The result of the extension. */
static int extend_with_delayed_repair(void)
{
    unsigned n, asked = fake_count(2, 'E');

    redlock_extend_start(&client, &lock);
    fake_pass(&client, 0);
    for (n = 0; n < 400 && fake_count(2, 'E') == asked; n++)
        fake_pass(&client, 50);
    fake_hold(2);
    fake_pass(&client, 60 * MS);
    ok(redlock_next_completed(&client) == &lock, "r08: the extension has completed");
    return lock.status;
}

/* Two repairs of node 2 are unanswered. The later one arrives. A regression test. */
static void r09_the_later_of_two_unanswered_repairs(void)
{
    begin_with_defaults(3);
    fake_nodes[0].delay_us = fake_nodes[1].delay_us = 3 * MS;
    warm_up();
    is_int(acquire(0), REDLOCK_OK, "r09: held");
    fake_pass(&client, 20 * MS);
    fake_delete(2, "k");
    is_int(extend_with_delayed_repair(), REDLOCK_OK,
           "r09: the key is missing, its repair is delayed");
    fake_pass(&client, 1200 * MS);
    is_int(extend_with_delayed_repair(), REDLOCK_OK, "r09: the next repair would be delayed, too");
    fake_pass(&client, 1200 * MS);
    is_int(extend(), REDLOCK_OK, "r09: extended, the next commands are answered");
    fake_pass(&client, 20 * MS);
    extend();
    fake_pass(&client, 20 * MS);
    ok(extended_after_another_had_it() != REDLOCK_OK,
       "r09: the extension fails, because the key is that of a delayed repair");
}

/* Two nodes have extended the lock; the repair of node 2 has been sent, but has not run. */
static void begin_unanswered_repair(void)
{
    unsigned n, asked;

    begin_with_defaults(3);
    fake_nodes[0].delay_us = fake_nodes[1].delay_us = 3 * MS;
    warm_up();
    is_int(acquire(0), REDLOCK_OK, "r09: held");
    fake_pass(&client, 20 * MS);
    fake_delete(2, "k");
    asked = fake_count(2, 'E');
    redlock_extend_start(&client, &lock);
    fake_pass(&client, 0);
    for (n = 0; n < 400 && fake_count(2, 'E') == asked; n++)
        fake_pass(&client, 50);
    fake_nodes[2].hung = 1;
    fake_pass(&client, 20 * MS);
    ok(redlock_next_completed(&client) == &lock && lock.status == REDLOCK_OK,
       "r09: extended by two");
    ok(!has_token(2, &lock), "r09: the repair of the third has not run");
}

/* The repair runs after the next round has begun, and another client held the lock in between. */
static void r09_a_repair_of_the_round_before(void)
{
    begin_unanswered_repair();
    is_int(extend(), REDLOCK_OK, "r09: extended by the next round");
    fake_delete(1, "k");
    fake_put(1, "k", "other", 100);
    fake_put(2, "k", "other", 100);
    fake_delete(1, "k");
    fake_delete(2, "k");
    fake_resume(2);
    fake_pass(&client, 20 * MS);
    is_int((int)lock.members, 3, "r09: the third is not a member");
    ok(extend() != REDLOCK_OK, "r09: the extension fails, because another client held the lock");
    redlock_deinit(&client);
}

/* The repair is answered after the next round has begun, but before the node is sent the extension of this
   round, because it had no free request. */
static void r09_a_repair_that_the_round_waits_for(void)
{
    begin_unanswered_repair();
    client.priv.full = 4;
    redlock_extend_start(&client, &lock);
    redlock_tick(&client);
    fake_resume(2);
    fake_pass(&client, 20 * MS);
    is_int(lock.status, REDLOCK_OK, "r09: extended");
    ok(has_token(2, &lock), "r09: the third is repaired");
    is_int((int)lock.members, 3, "r09: this round does not make the third a member");
    redlock_next_completed(&client);
    is_int(extend(), REDLOCK_OK, "r09: extended again");
    fake_pass(&client, 20 * MS);
    is_int((int)extend(), REDLOCK_OK, "r09: and again");
    is_int((int)lock.members, 7, "r09: a later round makes the third a member");
    redlock_deinit(&client);
}

/* The key is missing on node 2. Its reply arrives after the decision, and the key is repaired then. */
static void r09_a_late_repair_is_no_failure(void)
{
    begin_with_defaults(3);
    warm_up();
    is_int(acquire(0), REDLOCK_OK, "r09: held");
    fake_pass(&client, 10 * MS);
    fake_delete(2, "k");
    fake_nodes[2].delay_us = 5 * MS;
    is_int(extend(), REDLOCK_OK, "r09: extended by two");
    is_int(lock.failed, 0, "r09: no node has failed");
    fake_pass(&client, 50 * MS);
    ok(has_token(2, &lock), "r09: the third is repaired");
    is_int(lock.failed, 0, "r09: the repaired node has not failed");
    is_int(lock.granted, 7, "r09: it has replied yes at last");
    is_int(lock.refused, 0, "r09: so its no is over");
    redlock_deinit(&client);
}

/* Node 2 is away during an extension, and loses the key. It is asked when it is back, and repaired at once: the next extension
   may be far. */
static void r09_a_node_that_is_back_is_repaired(void)
{
    begin_with_defaults(3);
    lock.ttl_ms = 30000;
    is_int(acquire(0), REDLOCK_OK, "r09: held");
    fake_pass(&client, 10 * MS);
    make_unreachable(2);
    fake_pass(&client, 10 * MS);
    fake_delete(2, "k");
    is_int(extend(), REDLOCK_OK, "r09: extended by two");
    fake_nodes[2].refuses = 0;
    fake_pass(&client, 4000 * MS);
    ok(has_token(2, &lock), "r09: the third is repaired after the decision");
    release(100);
}

/* How many of the extensions to node 2 could create the key. */
static unsigned repairs_sent(void)
{
    unsigned i, count = 0;

    for (i = 0; i < fake_logged; i++)
        count += fake_log[i].node == 2 && fake_log[i].kind == 'E' && fake_log[i].repairs;
    return count;
}

/* The process sleeps until after the validity, and only then reads that the key is missing. */
static void r09_no_repair_after_the_end(void)
{
    begin_with_defaults(3);
    warm_up();
    lock.ttl_ms = 1000;
    is_int(acquire(0), REDLOCK_OK, "r09: held for 1 s");
    fake_pass(&client, 950 * MS);
    fake_delete(2, "k");
    fake_nodes[0].hung = fake_nodes[1].hung = 1;
    redlock_extend_start(&client, &lock);
    redlock_tick(&client);
    fake_sleep_us = 500 * MS;
    fake_pass(&client, 600 * MS);
    is_int(lock.status, REDLOCK_UNREACHABLE, "r09: not extended");
    is_int((int)redlock_remaining_ms(&client, &lock), 0, "r09: no validity is left");
    is_int((int)repairs_sent(), 0, "r09: no repair is sent");
    ok(fake_find(2, "k", 1) == NULL, "r09: the key does not block other clients");
    redlock_deinit(&client);
}

/* Our token on the node proves that the SET has run. When the node loses the key later, the key may be repaired. */
static void r09_repair_after_proof(void)
{
    begin_with_defaults(3);
    warm_up();
    fake_nodes[2].drops_set_reply = 1;
    is_int(acquire(0), REDLOCK_OK, "r09: held, a SET has run without a reply");
    fake_break(2);
    fake_pass(&client, 10 * MS);
    fake_nodes[2].drops_set_reply = 0;
    is_int(extend(), REDLOCK_OK, "r09: extended");
    fake_pass(&client, 10 * MS);
    is_int(lock.members, 3, "r09: the SET may have run after the round began");
    is_int(extend(), REDLOCK_OK, "r09: extended again");
    fake_pass(&client, 10 * MS);
    is_int(lock.members, 7, "r09: the node had our token before this round: a member");
    fake_delete(2, "k");
    is_int(extend(), REDLOCK_OK, "r09: extended, the node has lost the key");
    fake_pass(&client, 10 * MS);
    ok(fake_find(2, "k", 1) != NULL, "r09: the key is repaired");
}

/* ---- Calls that are far apart --------------------------------------------------------------- */

/* Node 2 replies later than the others, and restarts empty. Blocking calls must repair it. */
static void r09_a_slower_node_is_repaired(uint64_t gap_us)
{
    int i;

    begin_with_defaults(3);
    for (i = 0; i < 3; i++)
        fake_nodes[i].delay_us = i == 2 ? 1600 : 1000;
    warm_up();
    is_int(acquire(0), REDLOCK_OK, "r09: held");
    fake_pass(&client, 20 * MS);
    is_int(extend(), REDLOCK_OK, "r09: extended");
    fake_restart(2);
    for (i = 0; i < 20 && !(has_token(2, &lock) && lock.members == 7); i++) {
        gap(gap_us);
        is_int(extend(), REDLOCK_OK, "r09: extended while one node is empty");
    }
    ok(i < 20, "r09: the slower node has the key and is a member after %d calls", i);
}

/* The server has closed an idle connection between two calls. The lock must be on all nodes nevertheless. */
static void r09_closed_between_two_calls(void)
{
    int i;

    begin_with_defaults(3);
    warm_up();
    gap(1000 * MS);
    fake_break(2);
    gap(1000 * MS);
    is_int(acquire(0), REDLOCK_OK, "r09: one connection was closed: held");
    for (i = 0; i < 3; i++) {
        gap(100 * MS);
        is_int(extend(), REDLOCK_OK, "r09: extended");
    }
    ok(has_token(2, &lock), "r09: the third node has the key");
    is_int(lock.members, 7, "r09: and is a member");
}

/* A bare quorum holds the lock, and one of it has lost the key, as a late reply says. Another client may have had
   the lock: it is lost, and not repaired. */
static void r09_a_late_loss_is_not_repaired(void)
{
    begin_with_defaults(3);
    fake_nodes[2].refuses = 1;
    warm_up();
    is_int(acquire(0), REDLOCK_OK, "r09: held on two of three");
    fake_delete(1, "k");
    fake_nodes[1].delay_us = 60 * MS;
    redlock_extend_start(&client, &lock);
    is_int(wait_for(&lock, 1000 * MS), REDLOCK_UNREACHABLE, "r09: the second one is late");
    fake_pass(&client, 200 * MS);
    ok(fake_find(1, "k", 1) == NULL, "r09: it has lost the key, and is not repaired");
    is_int(extend(), REDLOCK_LOST, "r09: lost");
    is_int(lock.refused, 2, "r09: the votes say why");
}

int main(void)
{
    r09_no_repair_of_other_nodes_after_the_end();
    r09_a_late_extension_creates_no_key();
    if (REDLOCK_MINIMAL) {
        r09_left_out();
        return done_testing();
    }
    r09_a_repaired_node_becomes_a_member_soon(100);
    r09_a_repaired_node_becomes_a_member_soon(3);
    r09_a_repaired_node_without_a_vote();
    r09_a_lost_lock_is_not_repaired();
    r09_an_extension_repairs();
    r09_repaired_nodes_do_not_count_at_once();
    r09_a_repaired_node_counts_when_it_has_confirmed();
    r09_repair_by_a_later_round();
    r09_a_repair_without_a_reply();
    r09_the_later_of_two_unanswered_repairs();
    r09_a_repair_of_the_round_before();
    r09_a_repair_that_the_round_waits_for();
    r09_a_late_repair_is_no_failure();
    r09_a_node_that_is_back_is_repaired();
    r09_no_repair_after_the_end();
    r09_repair_after_proof();
    r09_a_slower_node_is_repaired(0);
    r09_a_slower_node_is_repaired(100 * MS);
    r09_closed_between_two_calls();
    r09_a_late_loss_is_not_repaired();
    return done_testing();
}
