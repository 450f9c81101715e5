/* lock_extension_test.c - extensions, repair, automatic extension (R8 to R10).

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
    is_int(extend(), REDLOCK_UNREACHABLE, "r08 T23: three of five hang");
    is_int((int)since(start), 50 * MS, "r15 T33: known after node_timeout_ms");
    ok(lock.valid_until_us == before, "r08 T23: the old validity is unchanged");
    is_int((int)fake_count(-1, 'D'), 0, "r08 T23: nothing is rolled back");
    for (i = 0; i < 3; i++)
        fake_resume((int)i);
    is_int(extend(), REDLOCK_OK, "r08 T23: the next extension succeeds");
}

static void r08_extension_never_shortens(void)
{
    begin_with_defaults(3);
    lock.ttl_ms = 60000;
    acquire(0);
    fake_pass(&client, 10 * MS);
    lock.ttl_ms = 1000;
    is_int(extend(), REDLOCK_OK, "r08 T31: an extension by 1 s while 60 s are left");
    ok(redlock_remaining_ms(&client, &lock) > 59000, "r08 T31: the 60 s are left in the client");
    ok(fake_find(0, "k", 1)->until_us > fake_now_us + 59000 * MS, "r08 T31: and on the node");
    fake_pass(&client, 59000 * MS);
    lock.ttl_ms = 5000;
    is_int(extend(), REDLOCK_OK, "r08: extended by 5 s when 1 s is left");
}

static void r08_extension_compares_tokens(void)
{
    unsigned i;

    begin_with_defaults(3);
    is_int(extend(), REDLOCK_LOST, "r08 T20: extension of what was never acquired");
    is_int((int)fake_logged, 0, "r08 T20: nothing is sent");
    acquire(0);
    fake_pass(&client, 10 * MS);
    for (i = 0; i < 2; i++)
        fake_nodes[i].server.keys[0].name.size = 0;
    held_by("other", 0, 1);
    is_int(extend(), REDLOCK_LOST, "r08 T22: another client has it on two of three");
    is_int((int)redlock_remaining_ms(&client, &lock), 0, "r08: no validity is left");
    ok(memcmp(fake_find(0, "k", 1)->value, "other", 5) == 0,
       "r08 T21: the other client's key is unchanged");
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
    is_int(extend(), REDLOCK_UNREACHABLE, "r08 T34: the process slept through the new validity");
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
    is_int(extend(), REDLOCK_UNREACHABLE, "r15 T33: 10 ms are left, two of three hang");
    ok(since(start) <= 10 * MS, "r15 T33: it took %ld us", since(start));
}

/* Held on nodes 0 and 1 of three. Node 2 is free, and replies after `delay_us`. */
static void hold_two_of_three(uint64_t delay_us)
{
    memset(&settings, 0, sizeof settings);
    settings.stall_ms = 600000;
    begin(3);
    warm_up();
    held_by("another", 2, 2);
    acquire(0);
    fake_pass(&client, 10 * MS);
    fake_delete(2, "k");
    fake_nodes[2].delay_us = delay_us;
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

static void r10_number_of_extensions_is_limited(void)
{
    unsigned i, done = 0;

    memset(&settings, 0, sizeof settings);
    settings.extend_max = 3;
    begin(3);
    acquire(0);
    for (i = 0; i < 3; i++)
        done += extend() == REDLOCK_OK;
    fake_logged = 0;
    is_int((int)done, 3, "r10: three extensions");
    is_int(extend(), REDLOCK_EXTEND_LIMIT, "r10: no fourth extension");
    is_int((int)fake_logged, 0, "r10: nothing is sent");
    ok(redlock_remaining_ms(&client, &lock) > 9000, "r10: the validity is unchanged");
    release(10);
    is_int(acquire(0), REDLOCK_OK, "r10: acquired again");
    is_int(extend(), REDLOCK_OK, "r10: the count starts at 0");
    settings.extend_max = REDLOCK_NONE;
    begin(3);
    acquire(0);
    is_int(extend(), REDLOCK_EXTEND_LIMIT, "r10: extend_max REDLOCK_NONE: no extension");
}

/* `extended` counts the extensions that succeeded since the lock was acquired or adopted. */
static void r10_extended_counts_successes(void)
{
    begin_with_defaults(3);
    acquire(0);
    is_int(lock.extended, 0, "r10: acquired: no extension is counted");
    extend();
    extend();
    is_int(lock.extended, 2, "r10: two extensions are counted");
    fake_nodes[0].hung = fake_nodes[1].hung = 1;
    is_int(extend(), REDLOCK_UNREACHABLE, "r10: two of three nodes hang");
    is_int(lock.extended, 2, "r10: an extension that failed is not counted");
    fake_nodes[0].hung = fake_nodes[1].hung = 0;
    fake_pass(&client, 20 * MS);
    is_int(extend(), REDLOCK_OK, "r10: they reply again");
    is_int(lock.extended, 3, "r10: counted since the acquire, not since the failure");
    release(100);
    is_int(lock.extended, 3, "r10: released: the count stays");
    is_int(acquire(0), REDLOCK_OK, "r10: acquired once more");
    is_int(lock.extended, 0, "r10: an acquire clears the count");
    extend();
    redlock_abandon(&client, &lock);
    if (!REDLOCK_MINIMAL) {
        is_int((int)redlock_adopt(&client, &lock, 5000), REDLOCK_OK, "r10: adopted");
        is_int(lock.extended, 0, "r10: redlock_adopt clears the count, too");
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

static void begin_auto_extension(unsigned count, unsigned extensions)
{
    begin_with_defaults(count);
    lock.ttl_ms = 3000;
    acquire(0);
    fake_pass(&client, 10 * MS);
    redlock_next_completed(&client);
    is_int(redlock_auto_extend_start(&client, &lock, extensions), REDLOCK_PENDING,
           "r10: automatic extension");
}

static void r10_automatic_extension(void)
{
    unsigned i, late = 0;

    begin_auto_extension(5, 1000);
    for (i = 0; i < 1000; i++) {
        fake_pass(&client, 100 * MS);
        late += redlock_remaining_ms(&client, &lock) < 1900;
    }
    is_int((int)late, 0, "r10: for 100 s nearly two thirds of 3 s are always left");
    is_int(lock.status, REDLOCK_PENDING, "r10: in progress");
    ok(lock.extended >= 99 && lock.extended <= 101, "r10: extended each second: %u", lock.extended);
    redlock_release_start(&client, &lock, 1000);
    is_int((int)redlock_remaining_ms(&client, &lock), 0,
           "r10: not held after the release was started");
    fake_logged = 0;
    fake_pass(&client, 5000 * MS);
    is_int((int)fake_count(-1, 'E'), 0, "r10: no extension after the release was started");
    is_int(lock.status, REDLOCK_OK, "r10: released");
    is_int((int)fake_keys_left(), 0, "r10: no key is left");
}

static void r10_extension_limit(void)
{
    begin_auto_extension(3, 4);
    fake_pass(&client, 4900 * MS);
    is_int(lock.status, REDLOCK_PENDING, "r10: four extensions");
    fake_pass(&client, 200 * MS);
    is_int(lock.status, REDLOCK_EXTEND_LIMIT,
           "r10: the limit is reported when a fifth extension is due");
    ok(redlock_next_completed(&client) == &lock, "r10: the operation has completed");
    ok(redlock_remaining_ms(&client, &lock) > 1800, "r10: the lock is still held: %lu ms",
       (unsigned long)redlock_remaining_ms(&client, &lock));
    is_int(extend(), REDLOCK_OK, "r10: it can be extended by redlock_extend");
    is_int(release(100), REDLOCK_OK, "r10: and released");
}

static void r10_loss_is_reported_by_the_clock(void)
{
    uint64_t until;
    unsigned i;

    begin_auto_extension(5, 1000);
    fake_pass(&client, 1500 * MS);
    until = lock.valid_until_us;
    for (i = 0; i < 5; i++)
        fake_nodes[i].hung = 1;
    fake_pass(&client, until - fake_now_us - 1 * MS);
    is_int(lock.status, REDLOCK_PENDING, "r10: all nodes hang: not lost before the validity ends");
    ok(fake_count(-1, 'E') == 0 || lock.extended == 1, "r10: although extensions failed");
    fake_pass(&client, 1 * MS);
    is_int(lock.status, REDLOCK_LOST, "r10: lost when the validity ends");
    ok(fake_now_us <= until + 1, "r10: not later than that");
    is_int((int)redlock_remaining_ms(&client, &lock), 0, "r10: no validity is left");
}

/* settings.retries is for acquires only. */
static void r10_loss_whatever_the_retries(void)
{
    static const uint32_t retries[] = {REDLOCK_NONE, 1, 254};
    unsigned i, n;

    for (n = 0; n < 3; n++) {
        memset(&settings, 0, sizeof settings);
        settings.retries = retries[n];
        begin(3);
        acquire(0);
        redlock_auto_extend_start(&client, &lock, 1000);
        fake_pass(&client, 15000 * MS);
        ok(lock.status == REDLOCK_PENDING && lock.extended >= 4, "r10 T25: extended %u times",
           lock.extended);
        for (i = 0; i < 3; i++)
            fake_nodes[i].hung = 1;
        fake_pass(&client, 10000 * MS);
        is_int(lock.status, REDLOCK_LOST, "r10 T25: the loss is reported");
    }
}

/* Releasing an expired lock of the same key does not stop the auto-extension of the newer lock. */
static void r10_two_of_one_key(void)
{
    struct redlock_lock old;

    begin_with_defaults(3);
    redlock_lock_init(&old, "k", 1, 10000);
    redlock_acquire(&client, &old, 0);
    fake_pass(&client, 11000 * MS); /* it expires */
    acquire(0);
    redlock_auto_extend_start(&client, &lock, 1000);
    is_int((int)redlock_release(&client, &old, 100), REDLOCK_LOST,
           "r10 T29: an expired lock is released");
    fake_pass(&client, 20000 * MS);
    ok(lock.status == REDLOCK_PENDING && lock.extended >= 5,
       "r10 T29: the newer lock was extended %u times", lock.extended);
}

static void r10_extended_after_temporary_failures(void)
{
    static const char *const reply[] = {
        "-OOM command not allowed when used memory > 'maxmemory'.\r\n",
        "-LOADING Redis is loading the dataset in memory\r\n",
        "-BUSY Redis is busy running a script.\r\n",
        "-MISCONF Redis is configured to save RDB snapshots\r\n",
        "-TRYAGAIN x\r\n",
        "-CLUSTERDOWN x\r\n",
        "-MASTERDOWN x\r\n",
        "-NOREPLICAS x\r\n",
        "-NOPERM x\r\n",
        "-READONLY x\r\n",
        "-ERR whatever\r\n",
        "+nonsense\r\n",
        "",
    };
    unsigned n, i;

    for (n = 0; n < sizeof reply / sizeof *reply; n++) {
        begin_auto_extension(3, 1000);
        for (i = 0; i < 3; i++)
            fake_nodes[i].reply = reply[n];
        fake_pass(&client, 2500 * MS);
        is_int(lock.status, REDLOCK_PENDING, "r10: \"%.12s\": not lost", reply[n]);
        for (i = 0; i < 3; i++)
            fake_nodes[i].reply = NULL;
        fake_pass(&client, 2500 * MS);
        ok(lock.status == REDLOCK_PENDING && redlock_remaining_ms(&client, &lock) > 1500,
           "r10: extended when the nodes work again");
    }
}

/* The backoff before a connect ends early enough to extend the lock before it expires. */
static void r10_extended_although_nodes_are_back_late(void)
{
    unsigned n, i, extended = 0;

    for (n = 0; n < 60; n++) {
        begin_auto_extension(3, 1000);
        for (i = 0; i < 3; i++) {
            fake_nodes[i].refuses = 1;
            fake_break((int)i);
        }
        fake_pass(&client, (2300 + n * 10) * MS);
        for (i = 0; i < 3; i++)
            fake_nodes[i].refuses = 0;
        fake_pass(&client, 2500 * MS);
        extended += lock.status == REDLOCK_PENDING;
    }
    is_int((int)extended, 60,
           "r10 r05: extended when nodes are back 50 to 640 ms before the validity ends");
}

/* Extensions fail at once, with a retry pause of 0, until the validity ends. */
static void r10_extensions_that_fail_at_once_are_no_busy_loop(void)
{
    uint64_t until;
    unsigned i;

    begin_without_pauses(3);
    acquire(0);
    fake_pass(&client, 10 * MS);
    redlock_next_completed(&client);
    redlock_auto_extend_start(&client, &lock, 1000);
    for (i = 0; i < 3; i++) {
        fake_nodes[i].refuses = 1;
        fake_break((int)i);
    }
    until = lock.valid_until_us;
    fake_waits = 0;
    fake_pass(&client, until - fake_now_us - 1);
    is_int(lock.status, REDLOCK_PENDING,
           "r10: all nodes refuse: not lost before the validity ends");
    ok(fake_waits < 20000, "r10: not a busy loop: %u waits", fake_waits);
    fake_pass(&client, 2);
    is_int(lock.status, REDLOCK_LOST, "r10: lost when the validity ends");
}

static void r10_lost_to_another(void)
{
    int i;

    begin_auto_extension(3, 1000);
    for (i = 0; i < 2; i++) {
        fake_delete(i, "k");
        held_by("other", i, i);
    }
    fake_pass(&client, 1200 * MS);
    is_int(lock.status, REDLOCK_LOST, "r10 T27: another client has it: lost at the next extension");
    fake_logged = 0;
    fake_pass(&client, 5000 * MS);
    is_int((int)fake_count(-1, 'E'), 0, "r10 T27: no further extension");
    ok(fake_find(0, "k", 1) != NULL && fake_find(2, "k", 1) == NULL,
       "r10: the other client's key stays, ours is released");
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

/* Lost, because only one node was reachable until the validity ended. After that a late repair creates the
   key again on this node. */
static void r10_lost_is_not_released(void)
{
    char mine[2 * sizeof lock.token + 1];
    int i;

    begin_auto_extension(5, 1000);
    snprintf(mine, sizeof mine, "%.40s", fake_find(0, "k", 1)->value);
    delete_on(1, 2);
    for (i = 3; i < 5; i++) {
        fake_nodes[i].refuses = 1;
        fake_break(i);
    }
    fake_pass(&client, 20000 * MS);
    is_int(lock.status, REDLOCK_LOST, "r10: one of five is left: lost");
    redlock_next_completed(&client);
    fake_put(0, "k", mine, 10000);
    is_int(release(100), REDLOCK_EXPIRED, "r11: the release of a lost lock reports EXPIRED");
    is_int((int)fake_keys_left(), 0, "r11: the key of the late repair is deleted");
}

static void r10_release_and_cancel_at_any_moment(void)
{
    unsigned us, wrong = 0;

    for (us = 0; us < 2200; us += 13) {
        begin_with_defaults(3);
        lock.ttl_ms = 3000;
        fake_nodes[1].delay_us = 20 * MS;
        acquire(0);
        redlock_auto_extend_start(&client, &lock, 100);
        fake_pass(&client, us * MS);
        redlock_cancel(&client, &lock);
        redlock_tick(&client);
        wrong += lock.status != REDLOCK_CANCELLED || redlock_next_completed(&client) != &lock ||
                 redlock_remaining_ms(&client, &lock) == 0;
        redlock_auto_extend_start(&client, &lock, 100);
        fake_pass(&client, us * MS);
        wrong += redlock_release_start(&client, &lock, 100) != REDLOCK_PENDING;
        fake_pass(&client, 100 * MS);
        wrong += lock.status != REDLOCK_OK || fake_keys_left() != 0;
    }
    is_int((int)wrong, 0, "r10: cancelled and released at any moment");
}

/* The replies to an extension in progress are not taken for replies to the release. */
static void r10_release_while_extending(void)
{
    int i;

    begin_auto_extension(3, 100);
    for (i = 0; i < 3; i++)
        fake_nodes[i].delay_us = 40 * MS;
    fake_logged = 0;
    while (fake_count(-1, 'E') < 3)
        fake_pass(&client, 10 * MS);
    for (i = 0; i < 3; i++) {
        fake_delete(i, "k");
        held_by("other", i, i);
    }
    redlock_release_start(&client, &lock, 1000);
    fake_pass(&client, 200 * MS);
    is_int(lock.status, REDLOCK_LOST, "r10: taken during an extension: the release reports it");
}

static void r10_one_rate(void)
{
    unsigned i;

    begin_with_defaults(3);
    lock.ttl_ms = 3000;
    for (i = 0; i < 200; i++) {
        acquire(0);
        redlock_auto_extend_start(&client, &lock, 1000);
        fake_pass(&client, 10 * MS);
        redlock_release_start(&client, &lock, 100);
        fake_pass(&client, 10 * MS);
        redlock_next_completed(&client);
    }
    acquire(0);
    redlock_auto_extend_start(&client, &lock, 1000);
    fake_logged = 0;
    fake_pass(&client, 9990 * MS);
    is_int((int)fake_count(0, 'E'), 9,
           "r10 T26: after 200 earlier locks still one extension a second");
}

static void r10_left_out(void)
{
    begin_with_defaults(3);
    acquire(0);
    fake_pass(&client, 10 * MS);
    fake_logged = 0;
    is_int(redlock_auto_extend_start(&client, &lock, 1), REDLOCK_INVALID_ARGUMENT,
           "r10 left out: no automatic extension");
    ok(has_invalid("extensions"), "r10 left out: the reason: %s",
       redlock_invalid_argument(&client));
    fake_pass(&client, 5000 * MS);
    is_int((int)fake_logged, 0, "r10 left out: nothing is sent");
    is_int(lock.status, REDLOCK_OK, "r10 left out: the lock is still held");
    is_int(extend(), REDLOCK_OK, "r10 left out: it can be extended by redlock_extend");
    is_int(release(100), REDLOCK_OK, "r10 left out: released");
}

static void r10_invalid_auto_extensions(void)
{
    begin_with_defaults(3);
    is_int(redlock_auto_extend_start(&client, &lock, 1), REDLOCK_LOST, "r10: not held");
    acquire(0);
    is_int(redlock_auto_extend_start(&client, &lock, 0), REDLOCK_INVALID_ARGUMENT,
           "r10: 0 extensions");
    is_int(redlock_auto_extend_start(&client, &lock, 65535), REDLOCK_INVALID_ARGUMENT,
           "r10: too many extensions");
    is_int(redlock_auto_extend_start(&client, &lock, 65534), REDLOCK_PENDING,
           "r10: the largest number of extensions");
    is_int(redlock_auto_extend_start(&client, &lock, 1), REDLOCK_INVALID_ARGUMENT,
           "r10: started twice");
    is_int(redlock_extend_start(&client, &lock), REDLOCK_INVALID_ARGUMENT,
           "r10: redlock_extend during auto-extension");
    is_int(redlock_acquire_start(&client, &lock, 0), REDLOCK_INVALID_ARGUMENT,
           "r10: redlock_acquire during auto-extension");
    redlock_abandon(&client, &lock);
    is_int(lock.status, REDLOCK_PENDING,
           "r10: redlock_abandon has no effect during auto-extension");
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
    is_int((int)lock.extended, 1, "r02: by one extension");
    fake_pass(&client, 5000 * MS);
    is_int((int)lock.extended, 1, "r02: no further one before a third of the ttl");
    release(100);
}

/* Without a limit the lock is extended for longer than 65534 extensions last. */
static void r10_extensions_without_a_limit(void)
{
    unsigned i;

    begin_with_defaults(3);
    is_int(acquire(0), REDLOCK_OK, "r10: held");
    redlock_auto_extend_start(&client, &lock, REDLOCK_NO_LIMIT);
    lock.ttl_ms = 10;
    for (i = 0; i < 320 && lock.status == REDLOCK_PENDING; i++) {
        fake_pass(&client, 1000 * MS);
        fake_logged = 0;
    }
    is_int(lock.status, REDLOCK_PENDING, "r10: still extended");
    is_int((int)lock.extended, UINT16_MAX, "r10: more often than is counted");
    redlock_deinit(&client);
}

/* The same after a repair; but the last automatic extension is not spent on that. */
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
    is_int(lock.members, extensions > 3 ? 7 : 3, "r09: a member soon, of %u extensions",
           extensions);
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

int main(void)
{
    if (!REDLOCK_MINIMAL) {
        r02_a_node_without_room_becomes_a_member_soon();
        r10_extensions_without_a_limit();
        r09_a_repaired_node_becomes_a_member_soon(100);
        r09_a_repaired_node_becomes_a_member_soon(3);
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
    r09_no_repair_of_other_nodes_after_the_end();
    r09_a_late_extension_creates_no_key();
    r10_number_of_extensions_is_limited();
    r10_extended_counts_successes();
    if (!REDLOCK_MINIMAL) {
        r08_asked_late_while_it_extends_itself();
        r09_a_lost_lock_is_not_repaired();
        r09_an_extension_repairs();
        r09_repaired_nodes_do_not_count_at_once();
        r09_a_repaired_node_counts_when_it_has_confirmed();
        r09_repair_by_a_later_round();
        r09_a_repair_without_a_reply();
        r10_automatic_extension();
        r10_extension_limit();
        r10_loss_is_reported_by_the_clock();
        r10_loss_whatever_the_retries();
        r10_two_of_one_key();
        r10_extended_after_temporary_failures();
        r10_extended_although_nodes_are_back_late();
        r10_extensions_that_fail_at_once_are_no_busy_loop();
        r10_lost_to_another();
        r10_lost_is_not_released();
        r10_release_and_cancel_at_any_moment();
        r10_release_while_extending();
        r10_one_rate();
        r10_invalid_auto_extensions();
    } else {
        r09_left_out();
        r10_left_out();
    }
    return done_testing();
}
