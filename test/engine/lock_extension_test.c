/* lock_extension_test.c - R8, extensions: who confirms them, what they prove, and what late commands and
   replies do.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "one_lock.h"

static void r08_extension_moves_validity(void)
{
    uint64_t before;

    begin_with_defaults(5);
    acquire(0);
    before = lock.valid_until_us;
    fake_pass(&client, 4000 * MS);
    is_int(extend(), REDLOCK_OK, "r08: extended");
    ok(lock.valid_until_us - before >= 4000 * MS && lock.valid_until_us - before < 4010 * MS,
       "r08: the validity moves by the time that has passed");
    is_int(lock.extended, 1, "r08: counted");
    is_int((int)votes(lock.members), 5, "r08: all five are members");
    fake_transmit_us = 200 * MS;
    before = fake_now_us;
    extend();
    is_int((int)(lock.valid_until_us - before), 10000 * MS - 102 * MS - 1,
           "r08: the new validity starts before the first byte of the extension");
}

/* Two nodes run the SET after the validity has ended. They have our key, but another client may have held the
   lock before. */
static void r08_only_members_count(void)
{
    begin_with_defaults(5);
    warm_up();
    lock.ttl_ms = 500;
    fake_nodes[3].delay_us = fake_nodes[4].delay_us = 600 * MS;
    is_int(acquire(0), REDLOCK_OK, "r08: three grant in time");
    fake_pass(&client, 610 * MS); /* the two others grant it after the validity */
    is_int((int)votes(lock.members), 3,
           "r08: a node that granted after the validity is not a member");
    fake_nodes[3].delay_us = fake_nodes[4].delay_us = 1000;
    fake_put(0, "k", (const char *)fake_log[0].token, 5000);
    fake_put(3, "k", (const char *)fake_log[0].token, 5000);
    fake_put(4, "k", (const char *)fake_log[0].token, 5000);
    is_int(extend(), REDLOCK_LOST, "r08: our key on three nodes, one of them a member: lost");
    is_int((int)redlock_remaining_ms(&client, &lock), 0, "r08: no validity is left");
}

static void r08_late_grants_make_members(void)
{
    begin_with_defaults(5);
    warm_up();
    fake_nodes[3].delay_us = fake_nodes[4].delay_us = 20 * MS;
    acquire(0);
    is_int((int)votes(lock.members), 3, "r08: three members at the decision");
    fake_pass(&client, 30 * MS);
    is_int((int)votes(lock.members), 5, "r08: the late grants make five");
    fake_nodes[0].hung = fake_nodes[1].hung = 1;
    is_int(extend(), REDLOCK_OK, "r08: so two of the first three may hang");
}

static void r08_confirmed_nodes_count_from_the_next_round(void)
{
    begin_with_defaults(5);
    warm_up();
    fake_nodes[3].drops_set_reply = fake_nodes[4].drops_set_reply = 1;
    fake_nodes[3].reply = fake_nodes[4].reply = NULL;
    acquire(0);
    fake_break(3);
    fake_break(4);
    fake_pass(&client, 10 * MS);
    fake_nodes[3].drops_set_reply = fake_nodes[4].drops_set_reply = 0;
    is_int((int)votes(lock.members), 3, "r08: two SETs ran and were never answered: not members");
    fake_nodes[0].delay_us = fake_nodes[1].delay_us = fake_nodes[2].delay_us = 5 * MS;
    is_int(extend(), REDLOCK_OK, "r08: extended by the members");
    is_int((int)votes(lock.members), 3, "r09: a SET may have run after the round began");
    is_int(extend(), REDLOCK_OK, "r08: extended again");
    is_int((int)votes(lock.members), 5, "r08: the two others confirmed it and are members now");
    fake_nodes[0].hung = fake_nodes[1].hung = 1;
    is_int(extend(), REDLOCK_OK, "r08: and count as votes in the next round");
}

static void r08_failed_extension_changes_nothing(void)
{
    uint64_t before, start;
    unsigned i;

    begin_with_defaults(5);
    acquire(0);
    fake_pass(&client, 10 * MS);
    before = lock.valid_until_us;
    for (i = 0; i < 3; i++)
        fake_nodes[i].hung = 1;
    start = fake_now_us;
    is_int(extend(), REDLOCK_UNREACHABLE, "r08: three of five hang");
    is_int((int)since(start), 50 * MS, "r15: known after node_timeout_ms");
    ok(lock.valid_until_us == before, "r08: the old validity is unchanged");
    is_int((int)fake_count(-1, 'D'), 0, "r08: nothing is rolled back");
    for (i = 0; i < 3; i++)
        fake_resume((int)i);
    is_int(extend(), REDLOCK_OK, "r08: the next extension succeeds");
}

static void r08_extension_never_shortens(void)
{
    begin_with_defaults(3);
    lock.ttl_ms = 60000;
    acquire(0);
    fake_pass(&client, 10 * MS);
    lock.ttl_ms = 1000;
    is_int(extend(), REDLOCK_OK, "r08: an extension by 1 s while 60 s are left");
    ok(redlock_remaining_ms(&client, &lock) > 59000, "r08: the 60 s are left in the client");
    ok(fake_find(0, "k", 1)->until_us > fake_now_us + 59000 * MS, "r08: and on the node");
    fake_pass(&client, 59000 * MS);
    lock.ttl_ms = 5000;
    is_int(extend(), REDLOCK_OK, "r08: extended by 5 s when 1 s is left");
}

static void r08_extension_compares_tokens(void)
{
    unsigned i;

    begin_with_defaults(3);
    is_int(extend(), REDLOCK_LOST, "r08: extension of what was never acquired");
    is_int((int)fake_logged, 0, "r08: nothing is sent");
    acquire(0);
    fake_pass(&client, 10 * MS);
    for (i = 0; i < 2; i++)
        fake_nodes[i].server.keys[0].name.size = 0;
    held_by("other", 0, 1);
    is_int(extend(), REDLOCK_LOST, "r08: another client has it on two of three");
    is_int((int)redlock_remaining_ms(&client, &lock), 0, "r08: no validity is left");
    ok(memcmp(fake_find(0, "k", 1)->value, "other", 5) == 0,
       "r08: the other client's key is unchanged");
    is_int(release(100), REDLOCK_LOST, "r11: the release reports that another client has it");
    is_int((int)fake_keys_left(), 2, "r11: only our key is deleted");
}

/* The first SET is still unanswered on a hung node when the lock is lost and acquired again. */
static void r05_grants_of_a_lost_lock_do_not_count(void)
{
    unsigned i;

    begin_with_defaults(3);
    warm_up();
    fake_nodes[2].hung = 1;
    is_int(acquire(0), REDLOCK_OK, "r05: two of three grant it, the third has not replied");
    fake_nodes[0].server.keys[0].name.size = fake_nodes[1].server.keys[0].name.size = 0;
    held_by("other", 1, 1);
    is_int(extend(), REDLOCK_LOST, "r05: lost");
    redlock_acquire_start(&client, &lock, 0);
    redlock_tick(&client);
    fake_nodes[2].drip = 1;
    fake_resume(2); /* replies OK to the first SET, then to the later commands */
    fake_now_us += MS;
    for (i = 0; i < 5; i++)
        redlock_handle_events(&client, 2, REDLOCK_READABLE);
    redlock_tick(&client);
    is_int(lock.granted & 4, 0, "r05: the grant of the lost lock is no vote for the new one");
    fake_pass(&client, 100 * MS);
    is_int(lock.status, REDLOCK_OK, "r05: the grant of the new SET is a vote");
}

static void r08_extension_that_comes_too_late(void)
{
    begin_with_defaults(3);
    warm_up();
    acquire(0);
    fake_pass(&client, 10 * MS);
    fake_sleep_us = 9900 * MS;
    is_int(extend(), REDLOCK_UNREACHABLE, "r08: the process slept through the new validity");
    is_int((int)redlock_remaining_ms(&client, &lock), 0, "r08: nor is the old validity left");
}

static void r08_a_cancelled_extension(void)
{
    uint64_t valid_until_us;

    begin_with_defaults(3);
    warm_up();
    acquire(0);
    fake_pass(&client, 1000 * MS);
    valid_until_us = lock.valid_until_us;
    is_int((int)redlock_extend_start(&client, &lock), REDLOCK_PENDING, "r08: an extension");
    redlock_tick(&client); /* it is sent */
    redlock_cancel(&client, &lock);
    fake_pass(&client, 20 * MS);
    is_int(lock.status, REDLOCK_CANCELLED, "r08: cancelled before the replies");
    ok(redlock_next_completed(&client) == &lock, "r08: and reported as completed");
    ok(lock.valid_until_us == valid_until_us && votes(lock.members) == 3,
       "r08: the old validity is unchanged, the replies are dropped");
    is_int(extend(), REDLOCK_OK, "r08: the lock can be extended");
}

static void r15_an_extension_ends_with_the_validity(void)
{
    uint64_t start;

    begin_with_defaults(3);
    acquire(0);
    fake_pass(&client, 10 * MS);
    fake_nodes[0].hung = fake_nodes[1].hung = 1;
    fake_pass(&client, lock.valid_until_us - fake_now_us - 10 * MS);
    start = fake_now_us;
    is_int(extend(), REDLOCK_UNREACHABLE, "r15: 10 ms are left, two of three hang");
    ok(since(start) <= 10 * MS, "r15: it took %ld us", since(start));
}

static void r08_late_replies(void)
{
    struct redlock_lock before;
    int abandons;

    hold_two_of_three(20 * MS);
    is_int(extend(), REDLOCK_OK, "r08: two of three confirm it");
    is_int(lock.members, 3, "r08: the third has not replied yet");
    fake_pass(&client, 50 * MS);
    is_int(fake_find(2, "k", 1) != NULL, !REDLOCK_MINIMAL,
           "r09: the key was missing on the third and is created again");
    is_int(lock.members, 3, "r09: repaired after the round: not a member");
    is_int(extend(), REDLOCK_OK, "r08: two of three confirm the next one");
    fake_pass(&client, 30 * MS);
    is_int(lock.members, !REDLOCK_MINIMAL ? 7 : 3, "r08: the third confirms it later: a member");
    fake_delete(2, "k");
    extend();
    fake_pass(&client, 30 * MS);
    is_int(lock.members, 3, "r08: the key was missing there: not a member");
    hold_two_of_three(11000 * MS);
    is_int(extend(), REDLOCK_OK, "r08: two of three confirm it");
    fake_pass(&client, 12000 * MS);
    is_int(lock.members, 3, "r08: a node that replies after the validity is not a member");
    for (abandons = 0; abandons < 2; abandons++) {
        hold_two_of_three(20 * MS);
        extend();
        if (abandons)
            redlock_abandon(&client, &lock);
        else
            is_int(release(100), REDLOCK_OK, "r08: released");
        fake_pass(&client, 5 * MS);
        before = lock;
        fake_pass(&client, 100 * MS);
        ok(memcmp(&before, &lock, sizeof lock) == 0,
           "r08: late replies do not write to a lock that is released or abandoned");
    }
}

/* The grant and the refusal of a later extension arrive together: the later reply counts. */
static void r08_a_late_grant_and_its_loss(void)
{
    begin_with_defaults(3);
    warm_up();
    fake_nodes[2].delay_us = 20 * MS;
    is_int(acquire(0), REDLOCK_OK, "r08: held on two of three; the third grants it, too");
    fake_nodes[2].server.used = 0;
    held_by("another", 2, 2);
    is_int(extend(), REDLOCK_OK, "r08: extended; another client has the third now");
    fake_pass(&client, 50 * MS);
    is_int(lock.members, 3, "r08: the third is not a member");
}

/* The grant that comes after the decision makes a member, a late refusal does not. */
static void r08_late_grants_and_refusals(void)
{
    begin_with_defaults(3);
    warm_up();
    fake_nodes[2].delay_us = 20 * MS;
    is_int(acquire(0), REDLOCK_OK, "r08: two of three are fast");
    is_int((int)lock.members, 3, "r08: the third has not replied");
    fake_pass(&client, 30 * MS);
    is_int((int)lock.members, 7, "r08: a late grant makes a member");
    is_int((int)lock.granted, 7, "r08: and is shown");
    release(100);
    fake_pass(&client, 30 * MS);
    fake_put(2, "k", "other", 60000);
    is_int(acquire(0), REDLOCK_OK, "r08: the third has the key of another client");
    fake_pass(&client, 30 * MS);
    is_int((int)lock.members, 3, "r08: a late refusal makes no member");
    is_int((int)lock.refused, 4, "r08: but is shown");
}

/* A late grant and the loss of its key are read at once. The node must not be a member when it is repaired. */
static void r08_a_late_grant_and_its_loss_at_once(void)
{
    begin_with_defaults(3);
    warm_up();
    fake_nodes[2].delay_us = 20 * MS;
    is_int(acquire(0), REDLOCK_OK, "r08: two of three are fast");
    fake_delete(2, "k");
    is_int(extend(), REDLOCK_OK, "r08: these confirm an extension");
    fake_now_us += 30 * MS;
    fake_pass(&client, 1 * MS);
    is_int((int)lock.members, 3, "r08: the third had granted, but has no key: no member");

    begin_with_defaults(3);
    warm_up();
    fake_nodes[2].delay_us = 20 * MS;
    is_int(acquire(0), REDLOCK_OK, "r08: two of three are fast");
    fake_delete(2, "k");
    held_by("other", 2, 2);
    is_int(extend(), REDLOCK_OK, "r08: these confirm an extension");
    fake_now_us += 30 * MS;
    fake_pass(&client, 1 * MS);
    is_int((int)(lock.granted << 8 | lock.refused), 0x304,
           "r08: the third had granted, but refuses now: its last vote is shown");
}

/* A lock that extends itself is sent to a node that was not there. The grant comes during an extension, so the node becomes
   a member by the next one only. */
static void r08_asked_late_while_it_extends_itself(void)
{
    memset(&settings, 0, sizeof settings);
    settings.stall_ms = 60000;
    begin(3);
    fake_nodes[2].refuses = 1;
    is_int(acquire(0), REDLOCK_OK, "r08: held on two of three");
    redlock_auto_extend_start(&client, &lock, 100);
    fake_pass(&client, 100 * MS);
    fake_nodes[0].delay_us = fake_nodes[1].delay_us = 40 * MS;
    fake_nodes[2].refuses = 0;
    while (nodes[2].state != REDLOCK_NODE_HANDSHAKE)
        fake_pass(&client, 100);
    fake_nodes[2].delay_us = lock.priv.due_us + 20 * MS - fake_now_us;
    fake_pass(&client, lock.priv.due_us + 30 * MS - fake_now_us);
    is_int((int)fake_count(2, 'S'), 1, "r08: the third is sent the SET");
    is_int((int)lock.extended, 0, "r08: and grants it during an extension");
    fake_pass(&client, 20 * MS);
    is_int((int)lock.extended, 1, "r08: which the two confirm");
    is_int((int)lock.members, 3, "r08: the third has not confirmed it");
    release(0);
}

/* A burst of locks: node 2 has no room for one more command when the two others have decided. It is sent the lock then,
   and must not stay without a vote for a third of the ttl. */
static void r02_a_node_without_room_becomes_a_member_soon(void)
{
    begin_with_defaults(3);
    warm_up();
    lock.ttl_ms = 30000;
    client.priv.full = 4;
    is_int(acquire(0), REDLOCK_OK, "r02: held on two of three");
    client.priv.full = 0;
    redlock_auto_extend_start(&client, &lock, 100);
    fake_pass(&client, 10 * MS);
    is_int((int)fake_count(2, 'S'), 1, "r02: the third is sent the SET");
    is_int(lock.members, 3, "r02: after the decision: no member by that");
    fake_pass(&client, 200 * MS);
    is_int(lock.members, 7, "r02: a member soon");
    is_int((int)fake_count(0, 'E'), 1, "r02: by one extension");
    fake_pass(&client, 5000 * MS);
    is_int((int)fake_count(0, 'E'), 1, "r02: no further one before a third of the ttl");
    is_int((int)lock.extended, 0, "r10: it came early, and does not count");
    release(100);
}

/* A lock is complete, and another node grants it before the program asks which lock is. */
static void a_late_grant_of_a_completed_lock(void)
{
    begin_with_defaults(3);
    warm_up();
    fake_nodes[2].delay_us = 20 * MS;
    redlock_acquire_start(&client, &lock, 0);
    fake_pass(&client, 50 * MS);
    is_int(lock.status, REDLOCK_OK, "completed: held, and the third node has granted it, too");
    ok(redlock_next_completed(&client) == &lock, "completed: the lock is returned");
    release(100);
}

/* ---- Late commands -------------------------------------------------------------------------- */

/* An extension to 5 s is delayed in the network, and its connection breaks. The next extension, to 60 s,
   succeeds. If the delayed extension shortened the key on its node, the key would expire after 5 s. Another
   client could then acquire the lock, although the holder counts on 60 s. */
static void r08_a_late_extension_does_not_shorten(unsigned kind)
{
    begin_with_defaults(3);
    if (!make_kind(kind))
        return;
    lock.ttl_ms = 5000;
    fake_nodes[2].refuses = 1;
    is_int(acquire(0), REDLOCK_OK, "r08: %s: held on two of three", kind_name(kind));
    fake_pass(&client, 100 * MS);
    fake_hold(1);
    is_int(extend(), REDLOCK_UNREACHABLE, "r08: an extension to 5 s is under way to one of them");
    fake_pass(&client, 1500 * MS);
    lock.ttl_ms = 60000;
    is_int(extend(), REDLOCK_OK, "r08: an extension to 60 s overtakes it on a new connection");
    ok(redlock_remaining_ms(&client, &lock) > 59000, "r08: the validity is 60 s");
    ok(fake_arrive(1) > 0, "r08: the delayed extension arrives");
    ok(others_cannot_acquire(), "r08: no other client can acquire the lock while it is valid");
}

/* The same with several delayed extensions on several connections. */
static void r08_late_extensions_of_several_ttls(void)
{
    static const uint32_t ttls[] = {20000, 13000, 30000};
    unsigned i;

    begin_with_defaults(3);
    fake_nodes[2].refuses = 1;
    is_int(acquire(0), REDLOCK_OK, "r08: held on two of three");
    fake_pass(&client, 100 * MS);
    for (i = 0; i < 3; i++) {
        fake_hold(1);
        lock.ttl_ms = ttls[i];
        is_int(extend(), REDLOCK_UNREACHABLE, "r08: an extension is under way to one of them");
        fake_pass(&client, 1500 * MS);
        lock.ttl_ms = 12000;
        is_int(extend(), REDLOCK_OK, "r08: the next one succeeds");
    }
    lock.ttl_ms = 60000;
    is_int(extend(), REDLOCK_OK, "r08: extended to 60 s");
    for (i = 0; i < 3; i++)
        ok(fake_arrive(1) > 0, "r08: late extension %u arrives", i);
    ok(others_cannot_acquire(), "r08: no other client can acquire the lock while it is valid");
}

/* An extension with a ttl below the remaining time shortens neither the validity nor the keys. */
static void r08_a_smaller_ttl_shortens_nothing(void)
{
    uint64_t until_us;

    begin_with_defaults(3);
    lock.ttl_ms = 60000;
    is_int(acquire(0), REDLOCK_OK, "r08: held for 60 s");
    until_us = lock.valid_until_us;
    lock.ttl_ms = 5000;
    is_int(extend(), REDLOCK_OK, "r08: extended to 5 s");
    ok(lock.valid_until_us == until_us, "r08: the validity is unchanged");
    fake_pass(&client, 20 * MS);
    ok(fake_find(0, "k", 1)->until_us >= until_us && fake_find(1, "k", 1)->until_us >= until_us &&
           fake_find(2, "k", 1)->until_us >= until_us,
       "r08: no key is shortened");
    is_int(release(100), REDLOCK_OK, "r08: released");
}

/* The SET to node 2 is delayed in the network, and its connection breaks. An extension repairs the node. If
   the SET runs after another client held the lock, our key on node 2 does not prove that we held the lock all
   the time. An extension that succeeded then would be wrong: the other client may have changed the protected
   data. */
static void r08_a_late_set_is_no_proof(unsigned kind)
{
    begin_with_defaults(3);
    if (!make_kind(kind))
        return;
    warm_up();
    fake_hold(2);
    is_int(acquire(0), REDLOCK_OK, "r08: %s: held on two of three, the SET to the third is delayed",
           kind_name(kind));
    fake_pass(&client, 1200 * MS);
    is_int(extend(), REDLOCK_OK, "r08: extended on a new connection");
    fake_pass(&client, 3000 * MS);
    extend();
    fake_pass(&client, 20 * MS);
    ok(extended_after_another_had_it() != REDLOCK_OK,
       "r08: the extension fails, because another client held the lock");
}

/* A delayed command cannot run in another server process. So a restarted node counts again; otherwise a lock
   would not survive a rolling restart. A regression test. */
static void r08_a_new_process_has_no_late_commands(void)
{
    int i;

    begin_with_defaults(3);
    warm_up();
    fake_hold(2);
    is_int(acquire(0), REDLOCK_OK, "r08: the SET to the third node is delayed");
    fake_pass(&client, 1200 * MS);
    fake_restart(2);
    for (i = 0; i < 4; i++) {
        is_int(extend(), REDLOCK_OK, "r08: extended");
        fake_pass(&client, 700 * MS);
    }
    is_int(lock.members, 7, "r08: the third was restarted and repaired: a member");
    fake_restart(0);
    is_int(extend(), REDLOCK_OK, "r08: extended after the restart of another node");
    is_int(release(100), REDLOCK_OK, "r08: released");
}

/* The SET to node 2 is delayed when the lock is handed off. The other process must not rely on its own repair
   of that node: the SET may run after another client held the lock. */
static void r08_a_delayed_set_of_the_other_process(void)
{
    int i;

    begin_with_defaults(3);
    warm_up();
    fake_hold(2);
    is_int(acquire(0), REDLOCK_OK, "r08: held on two of three, the SET to the third is delayed");
    is_int(lock.members, 3, "r08: two members");
    is_int(adopted_by_another(9000), REDLOCK_OK, "r08: another process adopts the lock");
    for (i = 0; i < 3; i++) {
        is_int(extend(), REDLOCK_OK, "r08: and extends it");
        fake_pass(&client, 1000 * MS);
    }
    extend();
    fake_pass(&client, 20 * MS);
    ok(extended_after_another_had_it() != REDLOCK_OK,
       "r08: the extension fails, because another client held the lock");
}

/* The connection breaks while the SET and an extension are unanswered: the next one is sent the command again. */
static void r08_an_extension_behind_a_late_set(void)
{
    begin_with_defaults(3);
    warm_up();
    fake_nodes[2].hung = 1;
    is_int(acquire(0), REDLOCK_OK, "r08: held on two of three");
    fake_nodes[0].delay_us = fake_nodes[1].delay_us = 20 * MS;
    redlock_extend_start(&client, &lock);
    fake_pass(&client, 1 * MS);
    fake_break(2);
    fake_nodes[2].hung = 0;
    fake_pass(&client, 10 * MS);
    is_int((int)fake_count(2, 'E'), 1, "r08: the third is sent the repair on its next connection");
    fake_pass(&client, 30 * MS);
    is_int(lock.status, REDLOCK_OK, "r08: extended");
}

/* ---- Nodes that are late -------------------------------------------------------------------- */

/* A node that grants the lock late does not prove that we held the lock before. Here a member restarts
   without its keys, and another client holds and releases the lock, before the third node grants it. An
   extension must not succeed with this node. */
static void r08_a_node_that_was_away_proves_nothing(void)
{
    begin_with_defaults(3);
    lock.ttl_ms = 30000;
    fake_nodes[2].never_up = 1;
    is_int(acquire(0), REDLOCK_OK, "r08: held on two of three");
    fake_pass(&client, 300 * MS);
    fake_restart(1);
    fake_put(1, "k", "other", 60000);
    fake_put(2, "k", "other", 60000);
    fake_pass(&client, 200 * MS); /* another client holds it now */
    fake_delete(1, "k");
    fake_delete(2, "k");
    fake_nodes[2].never_up = 0;
    fake_pass(&client, 4000 * MS);
    ok(has_token(2, &lock), "r08: the third has our key after another client had it");
    ok(extend() != REDLOCK_OK, "r08: the extension fails, because another client held the lock");
}

/* Node 2 is sent the SET after the decision, and the extension after the decision of its round. */
static void r08_a_node_asked_late_counts_in_the_next_round(void)
{
    begin_with_defaults(3);
    make_unreachable(2);
    is_int(acquire(0), REDLOCK_OK, "r08: held on two nodes");
    fake_nodes[2].refuses = 0;
    fake_pass(&client, 3000 * MS);
    ok(fake_find(2, "k", 1) != NULL, "r08: the third has the key later");
    make_unreachable(2);
    fake_pass(&client, 10 * MS);
    is_int(extend(), REDLOCK_OK, "r08: extended on two");
    fake_nodes[2].refuses = 0;
    fake_logged = 0;
    fake_pass(&client, 3000 * MS);
    ok(fake_count(2, 'E') > 0, "r08: the extension is sent to the third later");
    fake_nodes[1].hung = 1;
    is_int(extend(), REDLOCK_OK,
           "r08: the third had the key before a round that succeeded: it counts");
}

/* The late grants have come, but no call has read them when the extension begins. They make members, which vote. */
static void r08_an_extension_right_behind_the_acquire(void)
{
    begin_with_defaults(5);
    warm_up();
    fake_nodes[3].delay_us = fake_nodes[4].delay_us = 1200;
    is_int(acquire(0), REDLOCK_OK, "r08: held");
    is_int((int)votes(lock.members), 3, "r08: by three of five; two reply later");
    gap(400);
    fake_nodes[0].hung = 1;
    is_int(extend(), REDLOCK_OK, "r08: the two others confirm the extension");
}

static void r08_results_of_an_extension(void)
{
    begin_with_defaults(3);
    acquire(0);
    fake_pass(&client, 10 * MS);
    fake_sleep_us = 9900 * MS;
    is_int(extend(), REDLOCK_UNREACHABLE,
           "r08: confirmed after the validity: UNREACHABLE, as documented");
}

int main(void)
{
    unsigned kind;

    if (!REDLOCK_MINIMAL) {
        r02_a_node_without_room_becomes_a_member_soon();
    }
    r08_extension_moves_validity();
    r08_only_members_count();
    r08_late_grants_make_members();
    r08_confirmed_nodes_count_from_the_next_round();
    r08_failed_extension_changes_nothing();
    r08_extension_never_shortens();
    r08_extension_compares_tokens();
    r05_grants_of_a_lost_lock_do_not_count();
    r08_extension_that_comes_too_late();
    r08_a_cancelled_extension();
    r15_an_extension_ends_with_the_validity();
    r08_late_replies();
    r08_a_late_grant_and_its_loss();
    a_late_grant_of_a_completed_lock();
    r08_late_grants_and_refusals();
    r08_a_late_grant_and_its_loss_at_once();
    if (!REDLOCK_MINIMAL) {
        r08_asked_late_while_it_extends_itself();
    }
    for (kind = 0; kind < 3; kind++)
        r08_a_late_extension_does_not_shorten(kind);
    r08_late_extensions_of_several_ttls();
    r08_a_smaller_ttl_shortens_nothing();
    for (kind = 0; kind < 3; kind++)
        r08_a_late_set_is_no_proof(kind);
    if (!REDLOCK_MINIMAL) {
        r08_a_new_process_has_no_late_commands();
        r08_a_delayed_set_of_the_other_process();
    }
    r08_an_extension_behind_a_late_set();
    r08_a_node_that_was_away_proves_nothing();
    r08_a_node_asked_late_counts_in_the_next_round();
    r08_an_extension_right_behind_the_acquire();
    r08_results_of_an_extension();
    return done_testing();
}
