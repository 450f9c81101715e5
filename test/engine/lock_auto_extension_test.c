/* lock_auto_extension_test.c - R10: automatic extensions, and the limit of extensions.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "one_lock.h"

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

/* A server loses its keys all the time. The first repair after a renewal is followed by an extension that makes the node a member
   soon, and the others wait for the next renewal. Such an extension counts nowhere, and the lock is not held longer. */
static void r10_repairs_do_not_count(void)
{
    unsigned i;

    begin_auto_extension(3, 4);
    client.priv.settings.extend_max = 5;
    fake_logged = 0;
    for (i = 0; i < 163; i++) {
        fake_pass(&client, 30 * MS);
        fake_delete(2, "k");
    }
    is_int(lock.status, REDLOCK_PENDING, "r10: repairs all the time, and four extensions");
    is_int((int)fake_count(0, 'E'), 4 + 3, "r10: and one for each but the last that made a member");
    fake_pass(&client, 210 * MS);
    is_int(lock.status, REDLOCK_EXTEND_LIMIT, "r10: the limit is reported at the same time");
    is_int((int)lock.extended, 4, "r10: the others do not count");
    is_int(extend(), REDLOCK_OK, "r10: nor against extend_max");
    release(100);
}

/* A node that was repaired causes an early extension in each operation, also if it caused one in the operation before. */
static void r10_each_operation_may_extend_early(void)
{
    begin_auto_extension(3, 100);
    fake_delete(2, "k");
    fake_pass(&client, 1200 * MS);
    is_int(lock.members, 7, "r10: repaired by the first extension, a member by an early one");
    redlock_cancel(&client, &lock);
    fake_pass(&client, 10 * MS);
    fake_delete(2, "k");
    is_int(extend(), REDLOCK_OK, "r10: repaired by hand");
    fake_pass(&client, 10 * MS);
    is_int(lock.members, 3, "r10: no member by that");
    redlock_auto_extend_start(&client, &lock, 100);
    fake_pass(&client, 200 * MS);
    is_int(lock.members, 7, "r10: a member by an early extension of the next operation");
    release(100);
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
        ok(lock.status == REDLOCK_PENDING && lock.extended >= 4, "r10: extended %u times",
           lock.extended);
        for (i = 0; i < 3; i++)
            fake_nodes[i].hung = 1;
        fake_pass(&client, 10000 * MS);
        is_int(lock.status, REDLOCK_LOST, "r10: the loss is reported");
    }
}

/* Releasing an expired lock of the same key does not stop the auto-extension of the newer lock. */
static void r10_two_of_one_key(void)
{
    struct redlock_lock old;

    begin_with_defaults(3);
    redlock_lock_init(&old, "k", 10000);
    redlock_acquire(&client, &old, 0);
    fake_pass(&client, 11000 * MS); /* it expires */
    acquire(0);
    redlock_auto_extend_start(&client, &lock, 1000);
    is_int((int)redlock_release(&client, &old, 100), REDLOCK_LOST,
           "r10: an expired lock is released");
    fake_pass(&client, 20000 * MS);
    ok(lock.status == REDLOCK_PENDING && lock.extended >= 5,
       "r10: the newer lock was extended %u times", lock.extended);
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
    is_int(lock.status, REDLOCK_LOST, "r10: another client has it: lost at the next extension");
    fake_logged = 0;
    fake_pass(&client, 5000 * MS);
    is_int((int)fake_count(-1, 'E'), 0, "r10: no further extension");
    ok(fake_find(0, "k", 1) != NULL && fake_find(2, "k", 1) == NULL,
       "r10: the other client's key stays, ours is released");
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
    is_int((int)fake_count(0, 'E'), 9, "r10: after 200 earlier locks still one extension a second");
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

/* Abandons `lock` and adopts it as `second`, with `remaining_ms` left. */
static void hand_off(struct redlock_lock *second, uint32_t remaining_ms)
{
    struct redlock_lock mine = lock;

    redlock_abandon(&client, &lock);
    redlock_lock_init(second, "k", mine.ttl_ms);
    hand_over(second, &mine);
    is_int((int)redlock_adopt(&client, second, remaining_ms), REDLOCK_OK,
           "adopted with %lu ms left", (unsigned long)remaining_ms);
}

/* An adopted lock may have much less time left than its ttl. Auto-extension must begin before this time is over. */
static void r10_adopted_with_little_left_is_extended_at_once(void)
{
    static const uint32_t left_ms[] = {500, 5000, 9900, 15000, 29000};
    struct redlock_lock second;
    unsigned i, at_once;

    for (i = 0; i < 5; i++) {
        begin_with_defaults(3);
        lock.ttl_ms = 30000;
        acquire(0);
        fake_pass(&client, (29600 - left_ms[i]) * MS);
        hand_off(&second, left_ms[i]);
        fake_logged = 0;
        redlock_auto_extend_start(&client, &second, 1000);
        fake_pass(&client, 20 * MS);
        at_once = fake_count(-1, 'E');
        ok(left_ms[i] > 10000 || at_once >= 3, "r10: %u extensions were sent at once", at_once);
        fake_pass(&client, 35000 * MS);
        is_int(second.status, REDLOCK_PENDING, "r10: still extended 35 s later");
        ok(redlock_remaining_ms(&client, &second) > 15000, "r10: %lu ms are left",
           (unsigned long)redlock_remaining_ms(&client, &second));
    }
}

/* redlock_extend fails because all nodes hang for a moment. If auto-extension is started then, its first
   extension must be sent before the validity ends. */
static void r10_auto_extension_after_a_failed_extension(void)
{
    int i;

    begin_with_defaults(3);
    lock.ttl_ms = 9000;
    acquire(0);
    fake_pass(&client, 7000 * MS);
    for (i = 0; i < 3; i++)
        fake_nodes[i].hung = 1;
    is_int(extend(), REDLOCK_UNREACHABLE, "r10: an extension fails");
    for (i = 0; i < 3; i++)
        fake_resume(i);
    fake_pass(&client, 20 * MS);
    fake_logged = 0;
    redlock_auto_extend_start(&client, &lock, 1000);
    fake_pass(&client, 20 * MS);
    ok(fake_count(-1, 'E') >= 3, "r10: auto-extension begins at once");
    fake_pass(&client, 20000 * MS);
    is_int(lock.status, REDLOCK_PENDING, "r10: still extended 20 s later");
}

static void r10_auto_extension_with_another_ttl(void)
{
    begin_with_defaults(3);
    acquire(0);
    lock.ttl_ms = 3000;
    redlock_auto_extend_start(&client, &lock, 100);
    fake_pass(&client, 30000 * MS);
    is_int((int)lock.status, REDLOCK_PENDING,
           "r10: extended with another ttl than that of the acquire");
    ok(lock.extended >= 15, "r10: extended %lu times", (unsigned long)lock.extended);
}

/* An extension with a ttl below the remaining validity: a node that it repaired has the key only for the
   shorter ttl. So auto-extension must use a third of the shorter ttl. */
static void r10_a_third_of_a_shorter_ttl(void)
{
    begin_with_defaults(3);
    lock.ttl_ms = 30000;
    acquire(0);
    fake_delete(2, "k");
    lock.ttl_ms = 1500;
    is_int(extend(), REDLOCK_OK, "r10: extended with a shorter ttl");
    fake_pass(&client, 20 * MS);
    is_int(extend(), REDLOCK_OK, "r10: once more: the repaired node is a member");
    fake_pass(&client, 20 * MS);
    fake_logged = 0;
    redlock_auto_extend_start(&client, &lock, 1000);
    fake_pass(&client, 450 * MS);
    is_int((int)fake_count(-1, 'E'), 0, "r10: no extension before a third of the shorter ttl");
    fake_pass(&client, 50 * MS);
    ok(fake_count(2, 'E') >= 1, "r10: the repaired node is extended in time");
}

/* Callers limit the time of a lock by `extended`, so it must not wrap to 0. */
static void r10_extended_does_not_wrap(void)
{
    begin_with_defaults(1);
    acquire(0);
    lock.extended = 65534; /* as after so many extensions */
    redlock_auto_extend_start(&client, &lock, 5);
    fake_pass(&client, 60000 * MS);
    is_int((int)lock.status, REDLOCK_EXTEND_LIMIT, "r10: five more extensions");
    ok(lock.extended >= 65535, "r10: `extended` has not wrapped: %lu",
       (unsigned long)lock.extended);
}

int main(void)
{
    r10_number_of_extensions_is_limited();
    r10_extended_counts_successes();
    if (REDLOCK_MINIMAL) {
        r10_left_out();
        return done_testing();
    }
    r10_extensions_without_a_limit();
    r10_automatic_extension();
    r10_extension_limit();
    r10_repairs_do_not_count();
    r10_each_operation_may_extend_early();
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
    r10_adopted_with_little_left_is_extended_at_once();
    r10_auto_extension_after_a_failed_extension();
    r10_auto_extension_with_another_ttl();
    r10_a_third_of_a_shorter_ttl();
    r10_extended_does_not_wrap();
    return done_testing();
}
