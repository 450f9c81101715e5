/* lock_holder_test.c - what a refused lock knows of its holder, and for how long it is held.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "one_lock.h"

/* Another client has two of three nodes, so the third one grants each attempt. That looks like contention, until quick
   retries have not helped. */
static void r06_a_holder_on_few_nodes(void)
{
    begin_with_defaults(3);
    warm_up();
    held_by("other", 1, 2);
    is_int(acquire(0), REDLOCK_HELD, "r06: another client has two of three nodes: held");
    is_int((int)fake_count(0, 'S'), 6, "r06: after five quick retries");
    settings.retries = REDLOCK_NONE;
    begin(3);
    fake_put(0, "k", "a third", 10000);
    held_by("other", 1, 1);
    is_int(acquire(0), REDLOCK_CONTENDED, "r06: two clients have a node each: contention");
}

static void holder_of_the_lock(void)
{
    enum { KNOWN = RESP_TEXT_MAX - 6 }; /* in front of it the reply has the time: "60000 " */
    char holder[16] = "?", longer[64] = "?";

    begin_with_defaults(3);
    held_by("0123456789abcdef-host7", 0, 2);
    is_int(acquire(0), REDLOCK_HELD, "holder: refused");
    set_holder(&lock, holder, sizeof holder);
    is_int(acquire(0), REDLOCK_HELD, "holder: refused, with a buffer for the holder");
    ok(strncmp(holder, "0123456789abcde", KNOWN) == 0,
       "holder: cut off at the size of the buffer: %s", holder);
    set_holder(&lock, longer, sizeof longer);
    acquire(0);
    ok(strncmp(longer, "0123456789abcdef-host7", KNOWN) == 0,
       "holder: the whole token, or what RESP_TEXT_MAX has room for: %s", longer);
    set_holder(&lock, NULL, sizeof longer);
    is_int(acquire(0), REDLOCK_HELD, "holder: refused, with a size but no buffer");
    ok(redlock_holder_label(&lock)[0] == '\0', "holder: no label where there is no buffer");
}

/* Without diagnosis the holder is not asked for. */
static void diagnosis_left_out(void)
{
    begin_with_defaults(3);
    held_by("0123456789abcdef0123456789abcdef01234567-host7", 0, 2);
    is_int(acquire(0), REDLOCK_HELD, "holder left out: refused by a quorum: held");
    is_int(acquire(300), REDLOCK_TIMEOUT, "holder left out: also during all of wait_ms");
    fake_pass(&client, 10 * MS);
    ok(redlock_holder_label(&lock)[0] == '\0', "holder left out: no label of a holder");
}

/* Two clients have the two keys of a lock: the expiry is that of the client that is named as the holder. */
static void expiry_with_several_holders(void)
{
    static const struct redlock_key second = {"k2", 2};
    char holder[16];
    int i;

    begin_with_defaults(3);
    for (i = 0; i < 3; i++) {
        fake_put(i, "k", "for 7 s", 7000);
        fake_put(i, "k2", "for 60 s", 60000);
    }
    set_extra_keys(&lock, &second, 1);
    set_holder(&lock, holder, sizeof holder);
    is_int(acquire(0), REDLOCK_HELD, "holder: refused by two holders");
    ok(strcmp(holder, "for 7 s") == 0 && lock.holder_left_ms <= 7000, "holder: %s, for %lu ms",
       holder, (unsigned long)lock.holder_left_ms);
}

static void expiry_of_the_holder(void)
{
    char holder[16];
    uint32_t left_ms;
    int i;

    begin_with_defaults(5);
    for (i = 0; i < 5; i++)
        fake_put(i, "k", "somebody", 7000);
    set_holder(&lock, holder, sizeof holder);
    for (i = 0; i < 5; i++) {
        fake_pass(&client, 20 * MS);
        fake_logged = 0;
        fake_nodes[i].delay_us = 5 * MS;
        is_int(acquire(0), REDLOCK_HELD, "holder: refused");
        left_ms = lock.holder_left_ms;
        ok(left_ms <= 7000 && left_ms > 6500, "holder: its expiry: %lu ms", (unsigned long)left_ms);
        ok(strncmp(holder, "somebody", RESP_TEXT_MAX) == 0, "holder: the token of that client: %s",
           holder);
        fake_nodes[i].delay_us = 0;
    }
    for (i = 0; i < 5; i++)
        fake_put(i, "k", "somebody", 0);
    acquire(0);
    ok(lock.holder_left_ms == 0xffffffff, "holder: keys without a ttl");
    delete_on(0, 4);
    is_int(acquire(0), REDLOCK_OK, "holder: acquired");
    ok(lock.holder_left_ms == 0, "holder: holder_left_ms is cleared");
    is_int(release(1000), REDLOCK_OK, "holder: released");
    for (i = 0; i < 5; i++) {
        fake_put(i, "k", "somebody", 5000);
        fake_nodes[i].server.no_pttl = 1;
    }
    is_int(acquire(0), REDLOCK_HELD, "holder: refused, PTTL is not permitted");
    ok(lock.holder_left_ms == 0 && strncmp(holder, "somebody", RESP_TEXT_MAX) == 0 &&
           nodes[0].error[0] == '\0',
       "holder: the token is known, the expiry is not, without an error");
}

/* While an acquire waits, each attempt tells the present holder. */
static void holder_of_each_attempt(unsigned fair)
{
    char holder[16] = "";

    memset(&settings, 0, sizeof settings);
    settings.fair = fair;
    begin(3);
    held_by("first", 0, 2);
    set_holder(&lock, holder, sizeof holder);
    redlock_acquire_start(&client, &lock, 60000);
    fake_pass(&client, 100 * MS);
    ok(strcmp(holder, "first") == 0, "holder: known while it waits: %s", holder);
    held_by("second", 0, 2);
    fake_pass(&client, 5000 * MS);
    ok(strcmp(holder, "second") == 0, "holder: the next one, while it waits: %s", holder);
    ok(lock.status == REDLOCK_PENDING && lock.holder_left_ms < 60000 && lock.holder_left_ms > 50000,
       "holder: its expiry: %lu ms", (unsigned long)lock.holder_left_ms);
    redlock_release(&client, &lock, 0);
    redlock_deinit(&client);
}

/* A reply that arrives after the operation must not write to the lock. */
static void a_late_reply_about_the_holder(void)
{
    struct redlock_lock other_use;
    char holder[16];

    begin_with_defaults(3);
    held_by("somebody", 0, 2);
    acquire(0);
    fake_pass(&client, 10 * MS);
    fake_nodes[2].delay_us = 20 * MS;
    set_holder(&lock, holder, sizeof holder);
    is_int(acquire(0), REDLOCK_HELD, "holder: two of three refuse it");
    memset(&other_use, 0xff, sizeof other_use);
    lock = other_use;
    fake_pass(&client, 100 * MS);
    ok(memcmp(&lock, &other_use, sizeof lock) == 0, "holder: its reply is dropped");
}

/* The operation ends before the third node has named the holder. The bytes arrive one at a time, and the token has each
   length. */
static void a_reply_about_the_holder_in_pieces(void)
{
    static const char name[] = "somebody-else-has-it";
    struct redlock_lock other_use;
    char holder[16];
    unsigned touched = 0, between = 0;
    int size, i;

    memset(&other_use, 0xff, sizeof other_use);
    for (size = 1; size < 20; size++) {
        begin_with_defaults(3);
        warm_up();
        for (i = 0; i < 3; i++)
            fake_put(i, "k", i < 2 ? name + size : "x", 60000);
        fake_nodes[1].drip = fake_nodes[2].drip = 1;
        set_holder(&lock, holder, sizeof holder);
        acquire(0);
        between += nodes[1].priv.count > 0;
        lock = other_use;
        fake_pass(&client, 100 * MS);
        touched += memcmp(&lock, &other_use, sizeof lock) != 0;
    }
    is_int((int)touched, 0, "holder: late replies do not write to the lock");
    ok(between > 0, "holder: a reply was late %u times", between);
}

/* Two nodes name two holders: `holder` and `holder_left_ms` are of the same one, which is the last that was heard. */
static void expiry_of_the_holder_that_is_named(void)
{
    char holder[16];
    unsigned i, n;

    begin_with_defaults(3);
    warm_up();
    fake_put(1, "k", "first", 60000);
    fake_put(2, "k", "second", 20000);
    set_holder(&lock, holder, sizeof holder);
    redlock_acquire_start(&client, &lock, 0);
    redlock_tick(&client);
    for (i = 0; i < 3; i++) {
        fake_now_us += MS;
        redlock_handle_events(&client, i, REDLOCK_READABLE);
    }
    redlock_tick(&client);
    fake_now_us += 2 * MS;
    fake_nodes[1].drip = 1;
    for (n = 0; n < 100 && holder[0] == '\0'; n++)
        redlock_handle_events(&client, 1, REDLOCK_READABLE);
    fake_nodes[1].drip = 0;
    redlock_handle_events(&client, 2, REDLOCK_READABLE);
    redlock_handle_events(&client, 1, REDLOCK_READABLE);
    redlock_tick(&client);
    ok(strcmp(holder, "second") == 0, "holder: one of two, %s", holder);
    ok(lock.holder_left_ms <= 20000, "holder: the expiry is not that of the other one");
}

/* An attempt is refused, and its replies arrive one byte at a time. The release begins after each number of bytes. */
static void r11_a_release_between_two_replies(void)
{
    struct redlock_lock other_use;
    char holder[64];
    unsigned touched = 0, between = 0, bytes, n;
    int i;

    memset(&other_use, 0xff, sizeof other_use);
    for (bytes = 0; bytes < 100; bytes++) {
        begin_with_defaults(3);
        warm_up();
        fake_put(1, "k", "somebody-whose-token-is-longer", 60000);
        fake_put(2, "k", "x", 60000);
        set_holder(&lock, holder, sizeof holder);
        set_label(&lock, "mine", 4 * (REDLOCK_LABEL_MAX > 3));
        set_token_is_label(&lock, REDLOCK_LABEL_MAX > 3); /* then the release is not repeated */
        redlock_acquire_start(&client, &lock, 0);
        for (n = 0; n < bytes; n++) {
            fake_nodes[1].drip = fake_nodes[2].drip = 0; /* commands are sent whole */
            redlock_tick(&client);
            fake_nodes[1].drip = fake_nodes[2].drip = 1;
            fake_now_us += MS / 10;
            for (i = 0; i < 3; i++)
                redlock_handle_events(&client, (unsigned)i, REDLOCK_READABLE);
        }
        between += lock.status == REDLOCK_PENDING && holder[0] != '\0' && nodes[1].priv.count > 0;
        fake_nodes[1].drip = fake_nodes[2].drip = 0;
        redlock_release(&client, &lock, 0);
        lock = other_use;
        fake_pass(&client, 200 * MS);
        touched += memcmp(&lock, &other_use, sizeof lock) != 0;
    }
    is_int((int)touched, 0, "r11: no reply is due to a released lock");
    ok(between > 0, "r11: between two replies to the rollback, %u times", between);
}

/* A lock that others had is taken over: what the failed acquire has left is not of the lock that is held now. */
static void a_failed_lock_is_adopted(void)
{
    char holder[16];

    begin_with_defaults(3);
    held_by("another", 0, 2);
    set_holder(&lock, holder, sizeof holder);
    is_int(acquire(0), REDLOCK_HELD, "adopt: another client has it");
    ok(lock.holder_left_ms != 0 && lock.refused != 0, "adopt: for how long is known");
    lock.members = 7;
    lock.generation[0] = lock.generation[1] = 1;
    is_int((int)redlock_adopt(&client, &lock, 5000), REDLOCK_OK,
           "adopt: a lock that failed before");
    ok(holder[0] == '\0' && lock.holder_left_ms == 0, "adopt: no holder is known any more");
    is_int(lock.granted | lock.refused | lock.failed, 0, "adopt: no node has voted yet");
}

int main(void)
{
    r06_a_holder_on_few_nodes();
    if (REDLOCK_MINIMAL) {
        diagnosis_left_out();
        return done_testing();
    }
    holder_of_the_lock();
    expiry_of_the_holder();
    holder_of_each_attempt(0);
    if (REDLOCK_FAIR)
        holder_of_each_attempt(1);
    a_late_reply_about_the_holder();
    r11_a_release_between_two_replies();
    expiry_of_the_holder_that_is_named();
    a_reply_about_the_holder_in_pieces();
    if (!REDLOCK_MINIMAL) {
        a_failed_lock_is_adopted();
        expiry_with_several_holders();
    }
    return done_testing();
}
