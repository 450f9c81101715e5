/* lock_calls_test.c - the calls: arguments, memory, many locks at once, keys, labels, adoption, fork.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "one_lock.h"

static void multi_key_lock(void)
{
    static const struct redlock_key more[] = {REDLOCK_KEY("l"), REDLOCK_KEY("m")};
    static const struct redlock_key long_one[] = {{"0123456789012345678901234567890123456789"
                                                   "0123456789012345678901234567890123456789",
                                                   REDLOCK_KEY_MAX}};
    unsigned i, n;

    begin_with_defaults(3);
    set_extra_keys(&lock, more, 2);
    is_int(acquire(0), REDLOCK_OK, "multi-key: all keys are free");
    fake_pass(&client, 10 * MS);
    is_int((int)fake_keys_left(), 9, "multi-key: three keys on each node");
    fake_pass(&client, 5000 * MS);
    is_int(extend(), REDLOCK_OK, "multi-key: extended");
    fake_pass(&client, 6000 * MS);
    is_int((int)fake_keys_left(), 9, "multi-key: all keys are extended");
    fake_delete(0, "l");
    is_int(extend(), REDLOCK_OK, "multi-key: one key is missing on one node: extended");
    fake_pass(&client, 10 * MS);
    is_int((int)fake_keys_left(), !REDLOCK_MINIMAL ? 9 : 8,
           "multi-key: the missing key is repaired");
    is_int(release(100), REDLOCK_OK, "multi-key: released");
    fake_pass(&client, 10 * MS);
    is_int((int)fake_keys_left(), 0, "multi-key: no key is left");
    for (n = 0; n < 3; n++) {
        begin_with_defaults(3);
        set_extra_keys(&lock, more, 2);
        for (i = 0; i < 2; i++)
            fake_put((int)i, n == 0 ? "k" : n == 1 ? "l" : "m", "other", 60000);
        is_int(acquire(0), REDLOCK_HELD, "multi-key: another client has one key on two nodes");
        fake_pass(&client, 10 * MS);
        is_int((int)fake_keys_left(), 2, "multi-key: no key of ours is left");
    }
    begin_with_defaults(3);
    acquire(0);
    fake_pass(&client, 10 * MS);
    set_extra_keys(&lock, more, 1);
    is_int(release(100), REDLOCK_EXPIRED, "multi-key: EXPIRED if one of the keys does not exist");
    fake_pass(&client, 10 * MS);
    is_int((int)fake_keys_left(), 0, "multi-key: the existing key is deleted");
    set_extra_keys(&lock, long_one, 1);
    is_int(acquire(0), REDLOCK_INVALID_ARGUMENT, "multi-key: too many bytes in all keys");
    if (REDLOCK_MINIMAL)
        return;
    memset(&settings, 0, sizeof settings);
    settings.retry_delay_ms = settings.retry_delay_max_ms = 5000;
    begin(3);
    for (i = 0; i < 3; i++)
        fake_put((int)i, "m", "other", 60000);
    set_extra_keys(&lock, more, 2);
    redlock_acquire_start(&client, &lock, 60000);
    fake_pass(&client, 100 * MS);
    for (i = 0; i < 3; i++)
        fake_delete((int)i, "m");
    fake_pass(&client, 10 * MS);
    is_int(lock.status, REDLOCK_OK, "r07: notified when any of several keys is deleted");
}

/* A second client adopts the lock of the first. */
static void adoption(void)
{
    static struct redlock_client second;
    static struct redlock_node second_nodes[3];
    struct redlock_lock mine, theirs;
    char holder[] = "0123456789abcdef0123456789abcdef01234567somebody";
    unsigned i;

    begin_with_defaults(3);
    acquire(0);
    fake_pass(&client, 10 * MS);
    mine = lock;
    redlock_abandon(&client, &lock);
    redlock_deinit(&client);
    memset(second_nodes, 0, sizeof second_nodes);
    for (i = 0; i < 3; i++)
        second_nodes[i].address = nodes[i].address;
    redlock_init(&second, fake_io(), second_nodes, 3, NULL);
    redlock_lock_init(&theirs, "k", 10000);
    is_int((int)redlock_adopt(&second, &theirs, 5000), REDLOCK_INVALID_ARGUMENT,
           "adopt: no members");
    theirs.members = 0x0e;
    is_int((int)redlock_adopt(&second, &theirs, 5000), REDLOCK_INVALID_ARGUMENT,
           "adopt: a majority, but one of them is no node of this client");
    is_int((int)redlock_adopt(&second, NULL, 5000), REDLOCK_INVALID_ARGUMENT, "adopt: no lock");
    theirs.members = mine.members;
    is_int((int)redlock_adopt(&second, &theirs, 5000), REDLOCK_INVALID_ARGUMENT,
           "adopt: no generation is known");
    hand_over(&theirs, &mine);
    theirs.generation[0] = theirs.generation[1] = 0;
    is_int((int)redlock_adopt(&second, &theirs, 5000), REDLOCK_INVALID_ARGUMENT,
           "adopt: that of one member only");
    hand_over(&theirs, &mine);
    set_holder(&theirs, holder, sizeof holder);
    is_int((int)redlock_adopt(&second, &theirs, 5000), REDLOCK_OK,
           "adopt: with token, members and generations");
    ok(redlock_holder_label(&theirs)[0] == '\0',
       "adopt: what stood in the buffer before is no holder");
    is_int((int)redlock_remaining_ms(&second, &theirs), 5000, "adopt: for the remaining time");
    is_int((int)redlock_extend(&second, &theirs), REDLOCK_OK, "adopt: extended");
    ok(redlock_remaining_ms(&second, &theirs) > 9800, "adopt: for its ttl");
    is_int((int)redlock_adopt(&second, &theirs, 1), REDLOCK_ALREADY_HELD, "adopt: held already");
    is_int((int)redlock_release(&second, &theirs, 100), REDLOCK_OK, "adopt: released");
    fake_pass(&second, 10 * MS);
    is_int((int)fake_keys_left(), 0, "adopt: no key is left");
    theirs.token[0] ^= 1;
    held_by("other", 0, 2);
    is_int((int)redlock_adopt(&second, &theirs, 5000), REDLOCK_OK, "adopt: a wrong token");
    is_int((int)redlock_extend(&second, &theirs), REDLOCK_LOST,
           "adopt: the extension finds that the lock is not held");
    is_int((int)fake_keys_left(), 3, "adopt: the other client's keys are unchanged");
    redlock_deinit(&second);
}

/* A program starts an acquire, and an extension of another lock, and then becomes a daemon. */
static void forks_while_it_acquires(void)
{
    struct redlock_lock second, *first_done, *second_done;

    begin_with_defaults(3);
    warm_up();
    redlock_lock_init(&second, "l", 10000);
    redlock_acquire(&client, &second, 0);
    fake_pass(&client, 10 * MS);
    redlock_acquire_start(&client, &lock, 1000);
    redlock_extend_start(&client, &second);
    fake_logged = 0;
    fake_forks++;
    fake_pass(&client, 100 * MS);
    first_done = redlock_next_completed(&client);
    second_done = redlock_next_completed(&client);
    ok(first_done != NULL && second_done != NULL && first_done != second_done,
       "fork: both operations complete in the child");
    is_int(lock.status, REDLOCK_FORKED, "fork: the acquire has not succeeded");
    is_int(second.status, REDLOCK_FORKED, "fork: nor has the extension");
    is_int((int)fake_logged, 0, "fork: nothing is sent");
    redlock_deinit(&client);
}

static void forks(void)
{
    begin_with_defaults(3);
    acquire(0);
    fake_forks++;
    is_int((int)redlock_extend_start(&client, &lock), REDLOCK_FORKED, "fork: no extension");
    is_int((int)redlock_release_start(&client, &lock, 0), REDLOCK_FORKED, "fork: no release");
    is_int((int)redlock_auto_extend_start(&client, &lock, 1), REDLOCK_FORKED,
           "fork: no automatic extension");
    is_int(acquire(0), REDLOCK_FORKED, "fork: no acquire");
    is_int((int)fake_count(-1, 'D'), 0, "fork: nothing is sent");
    redlock_deinit(&client);
}

static void invalid_arguments_send_nothing(void)
{
    static char long_key[65537 + 1]; /* its length has 17 bits, key_size 16 */
    struct redlock_lock bad;
    struct redlock_client zero;

    memset(long_key, 'k', sizeof long_key - 1);
    begin_with_defaults(3);
    memset(&zero, 0, sizeof zero);
    is_int(acquire(0), REDLOCK_OK, "acquired");
    fake_pass(&client, 5 * MS);
    fake_logged = 0;
    is_int(acquire(0), REDLOCK_ALREADY_HELD, "acquire of a held lock");
    redlock_release_start(&client, &lock, 0);
    is_int((int)redlock_acquire(&client, &lock, 0), REDLOCK_INVALID_ARGUMENT,
           "acquire during a release");
    is_int((int)redlock_extend(&client, &lock), REDLOCK_INVALID_ARGUMENT,
           "extend during a release");
    is_int((int)redlock_release(&client, &lock, 0), REDLOCK_UNCONFIRMED,
           "release during a release");
    begin_with_defaults(3);
#define REFUSED(what, change)                                                                      \
    redlock_lock_init(&bad, "k", 1000);                                                            \
    change;                                                                                        \
    is_int((int)redlock_acquire(&client, &bad, 0), REDLOCK_INVALID_ARGUMENT, what)
    REFUSED("no key", bad.key = NULL);
    REFUSED("empty key", bad.key_size = 0);
    REFUSED("long key", bad.key_size = REDLOCK_KEY_MAX + 1);
    REFUSED("very long key", redlock_lock_init(&bad, long_key, 1000));
    REFUSED("NULL as the key", redlock_lock_init(&bad, NULL, 1000));
    REFUSED("ttl 0", bad.ttl_ms = 0);
    REFUSED("ttl of 9 ms", bad.ttl_ms = 9);
    REFUSED("ttl of 2^31 ms", bad.ttl_ms = 0x80000000U);
    if (REDLOCK_LABEL_MAX > 0) {
        REFUSED("label without bytes", set_label(&bad, NULL, 1));
        REFUSED("long label", set_label(&bad, "x", REDLOCK_LABEL_MAX + 1));
        REFUSED("no token at all", set_token_is_label(&bad, 1));
    }
    is_int((int)redlock_acquire(&client, NULL, 0), REDLOCK_INVALID_ARGUMENT, "no lock");
    is_int((int)redlock_acquire(NULL, &bad, 0), REDLOCK_INVALID_ARGUMENT, "no client");
    is_int((int)redlock_acquire(&zero, &bad, 0), REDLOCK_INVALID_ARGUMENT, "a client without init");
    is_int((int)redlock_remaining_ms(NULL, NULL), 0,
           "redlock_remaining_ms without client and lock");
    is_int((int)redlock_remaining_ms(&client, NULL), 0, "redlock_remaining_ms without a lock");
    is_int((int)redlock_remaining_ms(&zero, &bad), 0,
           "redlock_remaining_ms of a client without init");
    redlock_cancel(&client, NULL);
    redlock_cancel(NULL, &bad);
    redlock_abandon(&client, NULL);
    redlock_abandon(NULL, &bad);
    redlock_deinit(NULL);
    redlock_deinit(&zero);
    is_int((int)fake_logged, 0, "nothing was sent");
    is_int(fake_nodes[0].connects, 0, "no connection was made");
}

/* In a build without a feature its settings are refused, not ignored. Its fields are not in struct
   redlock_lock: test/package/switches.sh. */
static void settings_of_missing_features_are_refused(void)
{
    static const struct redlock_key more[] = {{"m", 1}};
    struct redlock_settings guarded = {.longest_ttl_ms = 20000};

    begin_with_defaults(3);
    if (!REDLOCK_MINIMAL) {
        set_extra_keys(&lock, more, 1);
        is_int(acquire(0), REDLOCK_OK, "multi-key locks: in this build");
        begin_with_defaults(3);
    }
    if (!REDLOCK_MINIMAL) {
        set_use_fencing(&lock, 1);
        is_int(acquire(0), REDLOCK_OK, "fencing tokens: in this build");
    }
    is_int((int)redlock_init(&client, fake_io(), nodes, 3, &guarded),
           !REDLOCK_MINIMAL ? REDLOCK_OK : REDLOCK_INVALID_ARGUMENT,
           "the delay after a restart: in this build, or refused");
    if (REDLOCK_MINIMAL)
        ok(has_invalid("longest_ttl_ms"), "%s", redlock_invalid_argument(&client));
    begin_with_defaults(3);
    lock.members = 7;
    lock.generation[0] = lock.generation[1] = 1;
    is_int((int)redlock_adopt(&client, &lock, 1000),
           !REDLOCK_MINIMAL ? REDLOCK_OK : REDLOCK_INVALID_ARGUMENT,
           "the transfer of a lock: in this build, or refused");
    is_int(extend(), REDLOCK_LOST, "which no node has");
}

static void drift_above_half_of_the_ttl(void)
{
    memset(&settings, 0, sizeof settings);
    settings.drift_ppm = 500000;
    begin(3);
    lock.ttl_ms = 10;
    is_int(acquire(0), REDLOCK_OK, "ttl 10 ms, drift 7 ms");
    redlock_abandon(&client, &lock);
    memset(&settings, 0, sizeof settings);
}

static void invalid_settings(void)
{
    static const struct {
        struct redlock_settings settings;
        const char *name;
    } cases[] = {
        {{.quorum = 2}, "quorum"},
        {{.quorum = 6}, "quorum"},
        {{.quorum = REDLOCK_NONE}, "quorum"},
        {{.node_timeout_ms = 60001}, "node_timeout_ms"},
        {{.stall_ms = 600001}, "stall_ms"},
        {{.retry_delay_ms = 600001}, "retry_delay_ms"},
        {{.retry_jitter_pct = 101}, "retry_jitter_pct"},
        {{.retry_growth_pct = 1001}, "retry_growth_pct"},
        {{.retry_delay_max_ms = 600001}, "retry_delay_max_ms"},
        {{.drift_ppm = 500001}, "drift_ppm"},
        {{.extend_max = 65536}, "extend_max"},
    };
    unsigned i;

    begin_with_defaults(5);
    redlock_deinit(&client);
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        is_int((int)redlock_init(&client, fake_io(), nodes, 5, &cases[i].settings),
               REDLOCK_INVALID_ARGUMENT, "setting out of range: %s", cases[i].name);
        ok(has_invalid(cases[i].name), "it is named: %s", redlock_invalid_argument(&client));
    }
    memset(&client, 0xaa, sizeof client);
    is_int((int)redlock_init(&client, fake_io(), nodes, 0, NULL), REDLOCK_INVALID_ARGUMENT,
           "no nodes");
    redlock_deinit(&client);
    ok(client.priv.nodes == NULL, "deinit after a failed init");
    is_int((int)redlock_init(&client, fake_io(), nodes, REDLOCK_NODES_MAX + 1, NULL),
           REDLOCK_INVALID_ARGUMENT, "too many nodes");
    is_int((int)redlock_init(&client, NULL, nodes, 3, NULL), REDLOCK_INVALID_ARGUMENT, "no io");
    is_int((int)redlock_init(NULL, fake_io(), nodes, 3, NULL), REDLOCK_INVALID_ARGUMENT,
           "no client");
    is_int((int)redlock_init(&client, fake_io(), NULL, 3, NULL), REDLOCK_INVALID_ARGUMENT,
           "NULL nodes");
    nodes[2].address = nodes[1].address;
    is_int((int)redlock_init(&client, fake_io(), nodes, 3, NULL), REDLOCK_INVALID_ARGUMENT,
           "one address twice");
    ok(has_error(2, "same server"), "the error names it: %s", nodes[2].error);
    nodes[2].address = NULL;
    is_int((int)redlock_init(&client, fake_io(), nodes, 3, NULL), REDLOCK_INVALID_ARGUMENT,
           "no address");
}

static void labels(void)
{
    begin_with_defaults(3);
    set_label(&lock, "\r\nhost\0 7", 9);
    is_int(acquire(0), REDLOCK_OK, "a label with CR LF NUL");
    ok(fake_find(0, "k", 1)->value_size == 49 &&
           memcmp(fake_find(0, "k", 1)->value + 40, "\r\nhost\0 7", 9) == 0,
       "the label follows the random part");
    is_int(extend(), REDLOCK_OK, "extend compares token and label");
    is_int(release(100), REDLOCK_OK, "release compares token and label");
    set_token_is_label(&lock, 1);
    is_int(acquire(0), REDLOCK_OK, "token_is_label: acquired");
    ok(fake_find(0, "k", 1)->value_size == 9, "token_is_label: the value is the label only");
    release(100);
    held_by("other", 0, 2);
    fake_logged = 0;
    is_int(acquire(5000), REDLOCK_HELD, "token_is_label: held by another client");
    is_int((int)fake_count(0, 'S'), 1, "r01: token_is_label: one attempt");
}

static void two_names_two_locks(void)
{
    struct redlock_lock other;

    begin_with_defaults(3);
    redlock_lock_init(&other, "k2", 10000);
    is_int(acquire(0), REDLOCK_OK, "one name");
    is_int((int)redlock_acquire(&client, &other, 0), REDLOCK_OK,
           "another name, at the same time");
    is_int(release(100), REDLOCK_OK, "released");
    ok(redlock_remaining_ms(&client, &other) > 9000, "the other lock is still held");
    redlock_release(&client, &other, 100);
}

static void binary_keys(void)
{
    begin_with_defaults(3);
    init_bytes(&lock, "a\0b\r\nDEL x", 10, 10000);
    is_int(acquire(0), REDLOCK_OK, "a key with NUL CR LF");
    ok(fake_find(1, "a\0b\r\nDEL x", 10) != NULL, "the key is stored with all its bytes");
    is_int(release(100), REDLOCK_OK, "released");
    is_int((int)fake_keys_left(), 0, "no key is left");
}

static void no_entropy_no_lock(void)
{
    unsigned times = 0;

    begin_with_defaults(3);
    fake_no_entropy = 1;
    is_int(acquire(1000), REDLOCK_NO_ENTROPY, "no random bytes");
    is_int((int)fake_count(-1, 'S'), 0, "no SET is sent");
    fake_no_entropy = 0;
    is_int(acquire(1000), REDLOCK_OK, "acquired when there are random bytes again");
    begin_with_defaults(3);
    warm_up();
    held_by("other", 0, 1);
    redlock_acquire_start(&client, &lock, 60000);
    redlock_tick(&client);
    fake_no_entropy = 1;
    for (times = 0; times < 40 && redlock_next_completed(&client) == NULL; times++)
        fake_pass(&client, 1000 * MS);
    fake_no_entropy = 0;
    is_int(lock.status, REDLOCK_NO_ENTROPY, "no random bytes for a retry");
    is_int((int)fake_keys_left(), 2, "no key of ours is left");
}

/* 2,147,483,647 ms do not fit into 32 bits as microseconds. */
static void remaining_of_the_longest_ttl(void)
{
    uint32_t left;

    begin_with_defaults(3);
    redlock_lock_init(&lock, "k", 0x7fffffff);
    is_int(acquire(0), REDLOCK_OK, "a ttl of 24 days");
    left = redlock_remaining_ms(&client, &lock);
    ok(left <= (lock.valid_until_us - fake_now_us) / 1000 && left > 2125000000U,
       "remaining time, rounded down by little: %lu ms", (unsigned long)left);
    fake_pass(&client, (uint64_t)86400000 * MS);
    is_int((long)(left - redlock_remaining_ms(&client, &lock)) / 1000, 86400,
           "a day less after a day");
    release(100);
}

static void clock_that_steps_back(void)
{
    long left;

    begin_with_defaults(3);
    acquire(0);
    fake_now_us -= 3600000 * (uint64_t)MS;
    left = (long)redlock_remaining_ms(&client, &lock);
    ok(left > 9000, "a clock that stepped back by an hour: %ld ms left", left);
    fake_now_us += 4000 * (uint64_t)MS;
    is_int(left - (long)redlock_remaining_ms(&client, &lock), 4000,
           "and 4 s later 4 s less, without another call");
    release(100);
    begin_with_defaults(3);
    acquire(0);
    fake_pass(&client, 1000 * MS);
    fake_now_us -= 5000 * (uint64_t)MS;
    redlock_tick(&client);
    is_int(extend(), REDLOCK_OK, "extended after the clock stepped back");
    ok(lock.valid_until_us <= fake_now_us + 15000 * (uint64_t)MS,
       "the validity is at most 5 s longer");
    redlock_abandon(&client, &lock);
}

/* The clock of many boards counts microseconds in 32 bits: it wraps after 71 minutes. The validity goes on, and so does a wait. */
static void clock_that_wraps(void)
{
    uint64_t start;

    begin_with_defaults(3);
    fake_now_us = ((uint64_t)1 << 41) - 5000 * (uint64_t)MS; /* 5 s before the wrap */
    fake_clock_bits = 32;
    is_int(acquire(0), REDLOCK_OK, "a clock of 32 bits: held");
    fake_pass(&client, 7000 * (uint64_t)MS);
    ok(redlock_remaining_ms(&client, &lock) < 3000, "after the wrap: %lu ms left of 10 s",
       (unsigned long)redlock_remaining_ms(&client, &lock));
    fake_pass(&client, 4000 * (uint64_t)MS);
    is_int((int)redlock_remaining_ms(&client, &lock), 0, "it expires");
    release(100);
    fake_now_us = ((uint64_t)1 << 41) + ((uint64_t)1 << 32) - 100 * (uint64_t)MS;
    redlock_tick(&client);
    held_by("other", 0, 2);
    start = fake_now_us;
    is_int(acquire(300), REDLOCK_TIMEOUT, "an acquire of 300 ms ends behind the wrap");
    ok(since(start) >= 290 * MS && since(start) < 500 * MS, "in time: %ld us", since(start));
    redlock_deinit(&client);
}

static void completion_is_reported_at_once(void)
{
    unsigned i;

    begin_with_defaults(3);
    warm_up();
    redlock_acquire_start(&client, &lock, 0);
    redlock_tick(&client);
    fake_now_us += 2 * MS;
    for (i = 0; i < 3; i++)
        redlock_handle_events(&client, i, REDLOCK_READABLE);
    is_int((int)redlock_tick(&client), 0, "redlock_tick returns 0 when an operation has completed");
    ok(redlock_tick(&client) > 0,
       "the next redlock_tick does not, whether the lock was fetched or not");
    ok(redlock_next_completed(&client) == &lock && redlock_next_completed(&client) == NULL,
       "redlock_next_completed returns the lock once");
}

/* More locks than pending requests: all are acquired. */
static void many_at_once(void)
{
    enum { MANY = 60 };
    static struct redlock_lock many[MANY];
    static char names[MANY][8];
    unsigned i, held = 0, done = 0;

    begin_with_defaults(5);
    for (i = 0; i < MANY; i++) {
        names[i][0] = 'k';
        names[i][1] = (char)('0' + i / 10);
        names[i][2] = (char)('0' + i % 10);
        redlock_lock_init(&many[i], names[i], 10000);
        redlock_acquire_start(&client, &many[i], 0);
    }
    fake_pass(&client, 200 * MS);
    for (i = 0; i < MANY; i++)
        held += many[i].status == REDLOCK_OK;
    while (redlock_next_completed(&client) != NULL)
        done++;
    is_int((int)held, MANY, "%d locks at once: all held", MANY);
    is_int((int)done, MANY, "each is reported once");
    for (i = 0; i < MANY; i++)
        redlock_release_start(&client, &many[i], 1000);
    fake_pass(&client, 200 * MS);
    for (i = 0, held = 0; i < MANY; i++)
        held += many[i].status == REDLOCK_OK;
    is_int((int)held, MANY, "all are released");
    is_int((int)fake_keys_left(), 0, "no key is left");
}

static void many_with_a_hung_node(void)
{
    enum { MANY = 60 };
    static struct redlock_lock many[MANY];

    begin_with_defaults(5);
    warm_up();
    fake_nodes[4].hung = 1;
    is_int((int)acquire_many(many, MANY), MANY,
           "r05: a hung node with a full queue does not delay the others");
}

static void ended_locks_are_not_written_to(void)
{
    struct redlock_lock *memory = &lock, was;

    memset(&was, 0xaa, sizeof was);
    begin_with_defaults(3);
    warm_up();
    fake_nodes[2].delay_us = 30 * MS;
    acquire(0);
    redlock_abandon(&client, &lock);
    memset(memory, 0xaa, sizeof *memory); /* its memory is the caller's */
    fake_pass(&client, 100 * MS);
    ok(memcmp(memory, &was, sizeof was) == 0,
       "r05: a late grant does not write to an abandoned lock");
    begin(3);
    warm_up();
    fake_nodes[2].delay_us = 30 * MS;
    acquire(0);
    release(100);
    memset(memory, 0xaa, sizeof *memory);
    fake_pass(&client, 100 * MS);
    ok(memcmp(memory, &was, sizeof was) == 0, "r05: nor to a released one");
    begin(3);
    redlock_acquire_start(&client, &lock, 1000);
    redlock_tick(&client);
    redlock_deinit(&client);
    is_int(lock.status, REDLOCK_CANCELLED, "deinit cancels operations in progress");
    is_int(nodes[0].handle == -1, 1, "deinit closes the connections");
    redlock_deinit(&client);
}

static void texts_left_out(void)
{
    int status, said = 0;

    for (status = 2; status > -20; status--)
        said += redlock_strerror(status) == NULL || redlock_strerror(status)[0] != '\0';
    is_int(said, 0,
           "texts left out: redlock_strerror returns "
           ", never NULL");
    begin_with_defaults(3);
    lock.key_size = 0;
    is_int(acquire(0), REDLOCK_INVALID_ARGUMENT, "texts left out: no key");
    ok(redlock_invalid_argument(&client)[0] == '\0' && redlock_invalid_argument(NULL)[0] == '\0',
       "texts left out: no reason");
    redlock_set_error(&nodes[0], "what", "why");
    ok(nodes[0].error[0] == '\0', "texts left out: redlock_set_error stores nothing");
}

/* The compiler reports a new result that has no case here. */
static int has_a_text(enum redlock_status status)
{
    switch (status) {
    case REDLOCK_PENDING:
    case REDLOCK_OK:
    case REDLOCK_HELD:
    case REDLOCK_CONTENDED:
    case REDLOCK_UNREACHABLE:
    case REDLOCK_DENIED:
    case REDLOCK_TOO_LATE:
    case REDLOCK_TIMEOUT:
    case REDLOCK_LOST:
    case REDLOCK_EXPIRED:
    case REDLOCK_UNCONFIRMED:
    case REDLOCK_EXTEND_LIMIT:
    case REDLOCK_CANCELLED:
    case REDLOCK_INVALID_ARGUMENT:
    case REDLOCK_NO_ENTROPY:
    case REDLOCK_FORKED:
    case REDLOCK_ALREADY_HELD:
        return 1;
    }
    return 0;
}

static void texts(void)
{
    int status;

    for (status = 2; status > -20; status--) {
        const char *text = redlock_strerror(status);
        if (text == NULL || strlen(text) < 4 || strlen(text) > 79 ||
            has_a_text((enum redlock_status)status) == (strcmp(text, "unknown") == 0))
            break;
    }
    is_int(status, -20, "a text for every status");
    ok(strcmp(redlock_strerror(REDLOCK_PENDING), "in progress") == 0 &&
           strcmp(redlock_strerror(REDLOCK_CONTENDED), "contention: no client got a quorum") == 0 &&
           strcmp(redlock_strerror(REDLOCK_ALREADY_HELD), "already held by this client") == 0,
       "the texts differ");
}

/* The former holder has abandoned a lock that another client has adopted, or that nobody has. It can do no harm any
   more. */
static void an_abandoned_lock(void)
{
    static struct redlock_client second;
    static struct redlock_node second_nodes[3];
    struct redlock_lock theirs, was;
    int i;

    begin_with_defaults(3);
    warm_up();
    is_int(acquire(0), REDLOCK_OK, "abandoned: held");
    redlock_cancel(&client, &lock);
    fake_pass(&client, 10 * MS);
    is_int(extend(), REDLOCK_OK, "abandoned: a cancel of a held lock has no effect");
    redlock_lock_init(&theirs, "k", 10000);
    hand_over(&theirs, &lock);
    for (i = 0; i < 3; i++)
        second_nodes[i].address = &"3\0004\0005"[2 * i];
    redlock_init(&second, fake_io(), second_nodes, 3, NULL);
    if (!REDLOCK_MINIMAL)
        is_int((int)redlock_adopt(&second, &theirs, 5000), REDLOCK_OK, "abandoned: adopted");
    redlock_abandon(&client, &lock);
    is_int((int)redlock_remaining_ms(&client, &lock), 0, "abandoned: not held any more");
    is_int(extend(), REDLOCK_LOST, "abandoned: cannot be extended");
    is_int(release(100), REDLOCK_EXPIRED, "abandoned: nor released");
    fake_pass(&client, 10 * MS);
    is_int((int)fake_keys_left(), 3, "abandoned: the keys are those of the other client");
    redlock_deinit(&second);
    was = lock;
    redlock_cancel(&client, &lock);
    fake_pass(&client, 10 * MS);
    ok(memcmp(&was, &lock, sizeof was) == 0, "abandoned: a cancel has no effect");
    redlock_lock_init(&lock, "m", 10000);
    redlock_acquire_start(&client, &lock, 0);
    redlock_abandon(&client, &lock);
    fake_pass(&client, 10 * MS);
    is_int(lock.status, REDLOCK_OK, "abandoned: not while it is in progress");
    redlock_abandon(&client, &lock);
}

/* What the nodes replied to an earlier operation is not said of one that ends before any node is asked. */
static void votes_of_the_last_operation(void)
{
    begin_with_defaults(3);
    acquire(0);
    release(100);
    is_int((int)votes(lock.granted), 3, "votes: all nodes deleted the key");
    is_int(release(100), REDLOCK_EXPIRED, "votes: released again");
    is_int((int)votes(lock.granted), 0, "votes: by no node");
    held_by("other", 0, 2);
    acquire(0);
    is_int((int)votes(lock.refused), 3, "votes: refused by all nodes");
    redlock_acquire_start(&client, &lock, 0);
    redlock_cancel(&client, &lock);
    fake_pass(&client, 10 * MS);
    is_int(lock.status, REDLOCK_CANCELLED, "votes: cancelled before it was sent");
    is_int((int)votes(lock.refused), 0, "votes: refused by no node");
    if (REDLOCK_MINIMAL)
        return;
    begin_with_defaults(3);
    acquire(0);
    redlock_auto_extend_start(&client, &lock, 1);
    is_int((int)votes(lock.granted), 3, "votes: those of the acquire, until the first extension");
}

/* A lock of a client with five nodes ended before all had replied. It is used with a client of one node, behind which
   something else stands in memory. */
static void a_lock_of_a_former_client(int in_progress)
{
    static struct redlock_client second;
    static struct redlock_node second_nodes[5], was[5];
    int i;

    begin_with_defaults(5);
    warm_up();
    for (i = 0; i < 5; i++)
        fake_nodes[i].hung = 1;
    if (in_progress) {
        redlock_acquire_start(&client, &lock, 1000);
        fake_pass(&client, 5 * MS);
    } else {
        is_int(acquire(0), REDLOCK_UNREACHABLE, "former client: no node replies");
    }
    redlock_deinit(&client);
    memset(second_nodes, 0, sizeof second_nodes);
    second_nodes[0].address = "6";
    for (i = 1; i < 5; i++)
        second_nodes[i].priv.count = 1;
    memcpy(was, second_nodes, sizeof was);
    redlock_init(&second, fake_io(), second_nodes, 1, NULL);
    if (!in_progress)
        redlock_release(&second, &lock, 0);
    is_int((int)redlock_acquire(&second, &lock, 0), REDLOCK_OK, "former client: used with another");
    ok(memcmp(second_nodes + 1, was + 1, 4 * sizeof *was) == 0,
       "former client: the memory behind the nodes of the other is unchanged");
    is_int((int)redlock_release(&second, &lock, 100), REDLOCK_OK, "former client: and released");
    redlock_deinit(&second);
    redlock_abandon(&client, &lock);
    ok(redlock_remaining_ms(&client, &lock) == 0, "former client: abandoned after both");
}

/* The library was compiled with other limits than the program: its structs are longer. */
static void other_sizes_are_refused(void)
{
    enum { COMMON = offsetof(struct redlock_client_private, process) }; /* depends on no limit */
    unsigned char before[sizeof client > sizeof lock ? sizeof client : sizeof lock];

    memset(&client, 0x5a, sizeof client);
    memset(before, 0x5a, sizeof before);
    is_int((int)redlock_init_sized(&client, fake_io(), nodes, 3, NULL, REDLOCK_SIZES + 1),
           REDLOCK_INVALID_ARGUMENT, "other limits: refused");
    ok(REDLOCK_MINIMAL || strstr(redlock_invalid_argument(&client), "limits") != NULL,
       "other limits: the text is: %s", redlock_invalid_argument(&client));
    ok(memcmp(before, (unsigned char *)&client + COMMON, sizeof client - COMMON) == 0,
       "other limits: nothing is written that another struct may not have");
    is_int((int)redlock_acquire(&client, &lock, 0), REDLOCK_INVALID_ARGUMENT,
           "other limits: no client");
    redlock_deinit(&client);
    ok(memcmp(before, (unsigned char *)&client + COMMON, sizeof client - COMMON) == 0,
       "other limits: redlock_deinit does nothing");
    memset(&client, 0, sizeof client);
    memset(&lock, 0x5a, sizeof lock);
    memcpy(before, &lock, sizeof lock);
    is_int((int)redlock_lock_init_sized(&lock, "k", 10000, REDLOCK_SIZES + 1),
           REDLOCK_INVALID_ARGUMENT, "other limits: a lock is refused");
    ok(memcmp(before, &lock, sizeof lock) == 0, "other limits: nothing is written to the lock");
}

/* Why a node did not vote, for programs; what an error of a server means is in lock_waiting_test.c. */
static void fault_of(int expected, const char *what)
{
    acquire(0);
    is_int(nodes[0].fault, expected, "fault: %s", what);
    redlock_deinit(&client);
    begin_with_defaults(3);
}

static void faults(void)
{
    begin_with_defaults(3);
    fault_of(REDLOCK_FAULT_NONE, "none");
    fake_nodes[0].refuses = 1;
    fault_of(REDLOCK_FAULT_CONNECTION, "the connection is refused");
    fake_nodes[0].never_up = fake_nodes[1].never_up = 1;
    fault_of(REDLOCK_FAULT_TIMEOUT, "no connection in time");
    fake_nodes[0].hung = fake_nodes[1].hung = 1;
    fault_of(REDLOCK_FAULT_TIMEOUT, "no reply in time");
    fake_nodes[0].first_bytes = "HTTP/1.1 400 Bad Request\r\n";
    fault_of(REDLOCK_FAULT_PROTOCOL, "it does not speak RESP");
    fake_nodes[0].reply = ":7\r\n";
    fault_of(REDLOCK_FAULT_PROTOCOL, "a reply that is none to the command");
    fake_nodes[0].reply = "";
    fault_of(REDLOCK_FAULT_CONNECTION, "the connection is lost");
    fake_nodes[0].server.password = "hunter2";
    nodes[0].password = "another";
    fault_of(REDLOCK_FAULT_DENIED, "a wrong password");
    nodes[0].user = "locker";
    nodes[0].password = NULL;
    is_int((int)redlock_init(&client, fake_io(), nodes, 3, NULL), REDLOCK_INVALID_ARGUMENT,
           "fault: a user without a password is refused");
    is_int(nodes[0].fault, REDLOCK_FAULT_ARGUMENT, "fault: which is an argument");
    if (!REDLOCK_MINIMAL) {
        begin_with_defaults(3);
        fake_nodes[0].server.run = fake_nodes[1].server.run = 12345;
        acquire(0);
        ok((nodes[0].fault == REDLOCK_FAULT_SAME_SERVER) ^
               (nodes[1].fault == REDLOCK_FAULT_SAME_SERVER),
           "fault: one of two is the same server");
        begin_with_defaults(3);
        fake_nodes[0].server.hello = "%1\r\n$4\r\nrole\r\n$7\r\nreplica\r\n";
        fault_of(REDLOCK_FAULT_ROLE, "a replica");
        settings.longest_ttl_ms = 20000;
        begin(3);
        fake_nodes[0].server.age_s = 3;
        fault_of(REDLOCK_FAULT_QUARANTINED, "it may have lost keys");
    }
    begin_with_defaults(3);
    fake_nodes[0].reply = "-OOM command not allowed\r\n";
    fake_nodes[0].reply_once = 1;
    acquire(0);
    is_int(nodes[0].fault, REDLOCK_FAULT_MEMORY, "fault: out of memory");
    release(1000);
    acquire(0);
    fake_pass(&client, 10 * MS);
    is_int(nodes[0].fault, REDLOCK_FAULT_NONE, "fault: none after a vote");
    redlock_deinit(&client);
}

/* A node on the stack has any bytes before it is set up. */
static void a_node_on_the_stack(void)
{
    struct redlock_node node;

    memset(&node, 0x5a, sizeof node);
    redlock_node_init(&node, "3");
    is_int((int)redlock_init(&client, fake_io(), &node, 1, NULL), REDLOCK_OK,
           "redlock_node_init: the client is set up");
    ok(node.user == NULL && node.password == NULL && node.database == 0 && node.error[0] == '\0',
       "redlock_node_init: all else is cleared");
    redlock_deinit(&client);
}

/* One turn after the other is a loop. */
static void turns(void)
{
    struct redlock_lock *completed = NULL;
    unsigned i;

    begin_with_defaults(3);
    redlock_acquire_start(&client, &lock, 0);
    for (i = 0; i < 100 && completed == NULL; i++)
        completed = redlock_turn(&client, 100 * MS);
    ok(completed == &lock && lock.status == REDLOCK_OK, "redlock_turn: acquired, and returned");
    ok(redlock_turn(&client, 0) == NULL, "redlock_turn: once");
    redlock_deinit(&client);
}

/* lock.operation, redlock_invalid_argument and redlock_holder_label. */
static void operations_and_arguments(void)
{
    char holder[100];

    begin_with_defaults(3);
    is_int(lock.operation, REDLOCK_OP_NONE, "operation: none at first");
    is_int(acquire(0), REDLOCK_OK, "acquired");
    is_int(lock.operation, REDLOCK_OP_ACQUIRE, "operation: acquire");
    is_int(acquire(0), REDLOCK_ALREADY_HELD, "acquired twice");
    is_int(extend(), REDLOCK_OK, "extended");
    is_int(lock.operation, REDLOCK_OP_EXTEND, "operation: extend");
    if (!REDLOCK_MINIMAL) {
        redlock_auto_extend_start(&client, &lock, 5);
        is_int(lock.operation, REDLOCK_OP_AUTO_EXTEND, "operation: automatic extension");
    }
    is_int(release(1000), REDLOCK_OK, "released");
    is_int(lock.operation, REDLOCK_OP_RELEASE, "operation: release");
    lock.ttl_ms = 3;
    is_int(acquire(0), REDLOCK_INVALID_ARGUMENT, "a ttl of 3 ms");
    if (!REDLOCK_MINIMAL) {
        ok(strcmp(redlock_invalid_argument(&client), "ttl_ms") == 0,
           "the invalid argument is the ttl: %s", redlock_invalid_argument(&client));
        lock.ttl_ms = 10000;
        lock.key_size = 0;
        acquire(0);
        ok(strcmp(redlock_invalid_argument(&client), "key") == 0,
           "the invalid argument is the key: %s", redlock_invalid_argument(&client));
        ok(strcmp(redlock_invalid_argument(NULL), "client") == 0,
           "the invalid argument is the client");
    }
    redlock_lock_init(&lock, "k", 10000);
    set_holder(&lock, holder, sizeof holder);
    if (!REDLOCK_MINIMAL) {
        strcpy(holder, "0123456789abcdef0123456789abcdef01234567host-1:99");
        ok(strcmp(redlock_holder_label(&lock), "host-1:99") == 0, "the label of a holder");
        strcpy(holder, "0123456789abcdef0123456789abcdef01234567");
        ok(redlock_holder_label(&lock)[0] == '\0', "a token without a label");
        strcpy(holder, "a token of another library, which is not hexadecimal");
        ok(redlock_holder_label(&lock)[0] == '\0', "a token of another library has no label");
    }
    set_holder(&lock, holder, 0);
    ok(redlock_holder_label(&lock)[0] == '\0', "without a buffer for the holder there is no label");
}

/* The remaining time cannot exceed the ttl: the key would expire before the validity of the new holder. */
static void r08_no_more_time_than_the_ttl(void)
{
    begin_with_defaults(3);
    acquire(0);
    is_int(adopted_by_another(10001), REDLOCK_INVALID_ARGUMENT,
           "adopt: 10,001 ms of a ttl of 10 s");
    is_int((int)redlock_remaining_ms(&client, &lock), 0, "adopt: not held");
    redlock_deinit(&client);
    begin_with_defaults(3);
    acquire(0);
    is_int(adopted_by_another(10000), REDLOCK_OK, "adopt: 10,000 ms of a ttl of 10 s");
    is_int(release(100), REDLOCK_OK, "adopt: released");
}

#if !REDLOCK_MINIMAL
/* A release of a lock with the same key twice would report REDLOCK_EXPIRED. */
static void same_key_twice(void)
{
    static const struct redlock_key once[] = {{"k", 1}}, twice[] = {{"l", 1}, {"l", 1}},
                                    none[] = {{"l", 1}, {"kk", 2}},
                                    missing[] = {{"l", 1}, {NULL, 1}};

    begin_with_defaults(3);
    set_extra_keys(&lock, once, 1);
    is_int(acquire(0), REDLOCK_INVALID_ARGUMENT, "keys: `key` again in extra_keys: refused");
    set_extra_keys(&lock, twice, 2);
    if (REDLOCK_KEY_MAX > 22)
        is_int(acquire(0), REDLOCK_INVALID_ARGUMENT, "keys: the same extra key twice: refused");
    set_extra_keys(&lock, missing, 2);
    is_int(acquire(0), REDLOCK_INVALID_ARGUMENT, "keys: an extra key that is NULL: refused");
    ok(has_invalid("extra_keys"), "the reason: %s", redlock_invalid_argument(&client));
    is_int((int)fake_logged, 0, "keys: nothing is sent");
    set_extra_keys(&lock, none, 2);
    if (REDLOCK_KEY_MAX > 24)
        is_int(acquire(0), REDLOCK_OK, "keys: keys with the same beginning are different");
}
#endif

int main(void)
{
    an_abandoned_lock();
    votes_of_the_last_operation();
    a_lock_of_a_former_client(1);
    a_lock_of_a_former_client(0);
    forks();
    forks_while_it_acquires();
    clock_that_wraps();
    other_sizes_are_refused();
    a_node_on_the_stack();
    faults();
    turns();
    invalid_arguments_send_nothing();
    settings_of_missing_features_are_refused();
    drift_above_half_of_the_ttl();
    invalid_settings();
    two_names_two_locks();
    binary_keys();
    no_entropy_no_lock();
    remaining_of_the_longest_ttl();
    clock_that_steps_back();
    completion_is_reported_at_once();
    many_at_once();
    many_with_a_hung_node();
    ended_locks_are_not_written_to();
    if (!REDLOCK_MINIMAL) {
        multi_key_lock();
        adoption();
    }
    if (REDLOCK_LABEL_MAX >= 9)
        labels();
    if (!REDLOCK_MINIMAL)
        texts();
    else
        texts_left_out();
    is_int((int)redlock_version(), REDLOCK_VERSION_NUMBER, "version");
    operations_and_arguments();
    if (!REDLOCK_MINIMAL)
        r08_no_more_time_than_the_ttl();
#if !REDLOCK_MINIMAL
    same_key_twice();
#endif
    return done_testing();
}
