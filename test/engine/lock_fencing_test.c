/* lock_fencing_test.c - R16, fencing tokens.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "one_lock.h"

static void begin_fenced(unsigned count)
{
    begin_with_defaults(count);
    set_use_fencing(&lock, 1);
}

/* Sets the fencing counter of "k" on node i. */
static void set_counter(int i, const char *digits)
{
    fake_delete(i, "k:fence");
    fake_put(i, "k:fence", digits, 0x7fffffff);
}

static void r16_one_round_trip(void)
{
    uint64_t first, start;

    begin_fenced(5);
    is_int(acquire(0), REDLOCK_OK, "r16: acquired with a fencing token");
    ok(lock.fencing_token == fake_wall_us, "r16: the token is the proposal, the wall clock");
    is_int((int)(fake_count(-1, 'S') + fake_count(-1, 'R')), 0, "r16: in one round");
    first = lock.fencing_token;
    release(100);
    fake_pass(&client, 10 * MS);
    start = fake_now_us;
    is_int(acquire(0), REDLOCK_OK, "r16: acquired again, the wall clock has not advanced");
    is_int((int)since(start), 1 * MS, "r16: in one round trip");
    ok(lock.fencing_token == first + 1, "r16: the next token is larger");
    is_int(extend(), REDLOCK_OK, "r16: extended");
    ok(lock.fencing_token == first + 1, "r16: an extension keeps the token");
    ok(fake_find(0, "k:fence", 7)->until_us == UINT64_MAX, "r16: the counter has no ttl");
    release(100);
    fake_wall_us -= 1000000;
    is_int(acquire(0), REDLOCK_OK, "r16: acquired, the wall clock was set back");
    ok(lock.fencing_token == first + 2, "r16: the token still grows");
}

static void r16_agrees_on_the_largest(void)
{
    begin_fenced(5);
    fake_wall_us = 1;
    warm_up();
    set_counter(0, "10");
    set_counter(1, "20");
    set_counter(2, "30");
    is_int(acquire(0), REDLOCK_OK, "r16: five nodes, four different counters");
    ok(lock.fencing_token == 31, "r16: the token is the largest counter: %lu",
       (unsigned long)lock.fencing_token);
    fake_pass(&client, 10 * MS);
    is_int((int)fake_count(-1, 'R'), 5, "r16: after a second round on all nodes");
    is_int((int)votes(lock.members), 5, "r16: all are members");
    release(100);
    acquire(0);
    ok(lock.fencing_token == 32, "r16: then all counters are equal");
    is_int((int)fake_count(-1, 'R'), 5, "r16: and one round is enough");
}

/* A node whose counter has grown meanwhile does not agree, although our key is there. Otherwise two clients
   could get the same token. The other client had the key on this node for a moment, and was refused on the
   rest. */
static void r16_a_larger_counter_does_not_agree(void)
{
    begin_fenced(3);
    fake_wall_us = 1;
    warm_up();
    set_counter(0, "10");
    set_counter(1, "20");
    fake_nodes[2].hung = 1;
    redlock_acquire_start(&client, &lock, 0);
    fake_pass(&client, 500); /* the replies 11 and 21 are under way */
    set_counter(1, "40");
    fake_pass(&client, 20 * MS);
    is_int(lock.status, REDLOCK_OK, "r16: two of three reply, and one counter grows meanwhile");
    ok(lock.fencing_token == 40, "r16: agreed in a third round: %lu",
       (unsigned long)lock.fencing_token);
    is_int((int)fake_count(0, 'R'), 2, "r16: the second round that proposes the maximum");
}

static void r16_rounds_of_agreement_are_limited(void)
{
    unsigned i;
    char digits[12];

    memset(&settings, 0, sizeof settings);
    settings.retries = REDLOCK_NONE;
    begin(3);
    set_use_fencing(&lock, 1);
    fake_wall_us = 1;
    warm_up();
    fake_nodes[2].hung = 1;
    set_counter(0, "10");
    redlock_acquire_start(&client, &lock, 0);
    set_counter(1, "15");
    for (i = 20; i < 400 && lock.status == REDLOCK_PENDING; i++) {
        fake_pass(&client, 200);
        sprintf(digits, "%u0", i);
        set_counter(i & 1, digits);
    }
    ok(lock.status != REDLOCK_PENDING && lock.status != REDLOCK_OK,
       "r16: counters that keep growing end the attempt: %s", redlock_strerror(lock.status));
    ok(fake_count(0, 'R') <= 4, "r16: after %u rounds", fake_count(0, 'R'));
    fake_resume(2);
    fake_pass(&client, 100 * MS);
    is_int((int)fake_keys_left() - 2, 0, "r16: no key is left but the counters of the test");
}

static void r16_refused(void)
{
    static const char *const reply[] = {":0\r\n", ":-3\r\n", ":9007199254740992\r\n", "+OK\r\n"};
    unsigned i;

    begin_fenced(5);
    held_by("other", 0, 2);
    is_int(acquire(0), REDLOCK_HELD, "r16: another client holds it");
    fake_pass(&client, 10 * MS);
    is_int((int)fake_keys_left(), 3, "r16: rolled back");
    for (i = 0; i < 4; i++) {
        begin_fenced(3);
        warm_up();
        fake_nodes[0].reply = reply[i];
        is_int(acquire(0), REDLOCK_OK, "r16: the others decide");
        fake_pass(&client, 5 * MS);
        ok(nodes[0].state != REDLOCK_NODE_READY, "r16: disconnected after the invalid counter %.8s",
           reply[i]);
    }
    if (REDLOCK_MINIMAL)
        return;
    set_extra_keys(&lock, NULL, 1);
    redlock_abandon(&client, &lock);
    is_int(acquire(0), REDLOCK_INVALID_ARGUMENT, "r16: invalid together with extra keys");
}

/* 400 acquires with random delays, nodes that hang, and keys that are deleted between the acquires. Each
   token must be larger than all before it, and no two may be equal. */
static void r16_tokens_grow(void)
{
    uint64_t last = 0, all[400];
    unsigned i, j, taken = 0, wrong = 0, twice = 0;
    uint32_t dice = 7;

    begin_fenced(3);
    fake_wall_us = 1;
    for (i = 0; i < 400; i++) {
        for (j = 0; j < 3; j++) {
            dice = dice * 1664525U + 1013904223U;
            fake_nodes[j].delay_us = 500 + (dice >> 20);
            if (dice >> 30 == 0) {
                fake_nodes[j].hung = !fake_nodes[j].hung;
                fake_resume((int)j);
            }
            fake_nodes[j].hung = dice >> 29 == 1;
        }
        if (acquire(0) == REDLOCK_OK) {
            wrong += lock.fencing_token <= last;
            last = lock.fencing_token;
            for (j = 0; j < taken; j++)
                twice += all[j] == last;
            all[taken++] = last;
            fake_pass(&client, dice >> 18 & 2047);
            for (j = 0; j < 3 && dice >> 31; j++) /* as if it had expired */
                fake_delete((int)j, "k");
        }
        release(100);
    }
    ok(taken > 200, "r16: %u acquires, nodes hang and resume", taken);
    is_int((int)(wrong + twice), 0, "r16: each token is larger than those before it");
}

/* The second round on a fencing token: nodes that have granted are members although they do not reply to it. */
static void r16_who_granted_is_a_member(void)
{
    begin_fenced(3);
    fake_wall_us = 1;
    warm_up();
    set_counter(0, "10");
    redlock_acquire_start(&client, &lock, 0);
    fake_pass(&client, 500);
    fake_nodes[2].hung = 1; /* it has granted, and its reply is under way */
    fake_pass(&client, 20 * MS);
    is_int(lock.status, REDLOCK_OK, "r16: two of three agree on the token");
    is_int((int)lock.members, 7, "r16: the third has granted, and is a member");
}

/* A node that is slower than the others grants it in the second round, and agrees when that is decided. */
static void r16_who_granted_late_is_a_member(void)
{
    begin_fenced(3);
    fake_wall_us = 1;
    warm_up();
    set_counter(0, "10");
    set_counter(1, "20");
    fake_nodes[0].delay_us = fake_nodes[1].delay_us = 2 * MS;
    fake_nodes[2].delay_us = 3 * MS;
    is_int(acquire(0), REDLOCK_OK, "r16: agreed in a second round");
    is_int(lock.granted, 3, "r16: which two nodes have decided");
    fake_pass(&client, 20 * MS);
    fake_nodes[0].hung = 1;
    is_int(extend(), REDLOCK_OK, "r16: the third is a member, too: extended without the first");
}

/* The connection of node 2 breaks before it replies to the FENCE, which runs. On a new connection it agrees when that is decided: in which
   generation it has the key is not known, so it is no member. */
static void r16_who_agrees_late_is_no_member(void)
{
    begin_fenced(3);
    fake_wall_us = 1;
    warm_up();
    set_counter(0, "10");
    set_counter(1, "20");
    fake_nodes[0].delay_us = fake_nodes[1].delay_us = 10 * MS;
    fake_hold(2);
    redlock_acquire_start(&client, &lock, 0);
    fake_pass(&client, 1 * MS);
    fake_break(2);
    fake_arrive(2);
    ok(fake_find(2, "k", 1) != NULL, "r16: the FENCE runs after its connection broke");
    fake_pass(&client, 9500); /* the reply to the handshake is under way */
    fake_nodes[2].delay_us = 20 * MS;
    fake_pass(&client, 10 * MS);
    is_int(lock.status, REDLOCK_OK, "r16: the others agree");
    is_int((int)fake_count(2, 'R'), 1, "r16: node 2 was asked, too");
    fake_pass(&client, 30 * MS);
    is_int(lock.granted, 7, "r16: it agrees late");
    is_int(lock.members, 3, "r16: it is no member");
}

/* Each round has node_timeout_ms. */
static void r16_the_second_round_has_its_own_time(void)
{
    int i;

    begin_fenced(3);
    fake_wall_us = 1;
    warm_up();
    fake_logged = 0;
    for (i = 0; i < 3; i++)
        fake_nodes[i].delay_us = 40 * MS;
    set_counter(0, "10");
    set_counter(1, "20");
    is_int(acquire(0), REDLOCK_OK, "r16: two rounds of 40 ms");
    is_int((int)fake_count(0, 'F'), 1, "r16: in one attempt");
}

/* A node agrees, and loses its connection and its keys before the others have agreed. */
static void r16_an_agreement_of_a_broken_connection(void)
{
    begin_fenced(3);
    fake_wall_us = 1;
    warm_up();
    fake_nodes[0].delay_us = 1 * MS;
    fake_nodes[1].delay_us = 20 * MS;
    set_counter(1, "20");
    fake_nodes[2].hung = 1;
    redlock_acquire_start(&client, &lock, 0);
    fake_pass(&client, 30 * MS);
    is_int(lock.status, REDLOCK_PENDING, "r16: one of three has agreed");
    fake_restart(0);
    fake_pass(&client, 15 * MS);
    ok(lock.status != REDLOCK_OK, "r16: another agrees, but the first may vote elsewhere by now");
}

static void r16_left_out(void)
{
    begin_with_defaults(3);
    lock.use_fencing = 1;
    is_int(acquire(0), REDLOCK_INVALID_ARGUMENT, "r16: refused where fencing tokens are left out");
    is_int((int)fake_logged, 0, "r16: nothing is sent");
}

/* ---- Wall clocks, and no token without the lock --------------------------------------------- */

/* The wall clock of one client is far in the future. It must not use up the fencing tokens, so that no client
   could acquire the lock again. */
static void r16_a_wrong_wall_clock(uint64_t wrong_us, const char *name)
{
    uint64_t token = 0, before = 0;
    unsigned i, grew = 0;

    begin_with_defaults(3);
    set_use_fencing(&lock, 1);
    fake_wall_us = wrong_us;
    if (acquire(0) == REDLOCK_OK)
        token = lock.fencing_token;
    release(100);
    fake_wall_us = (uint64_t)1 << 50;
    for (i = 0; i < 20; i++) {
        if (acquire(0) != REDLOCK_OK)
            break;
        before = token;
        token = lock.fencing_token;
        grew += token > before;
        release(100);
        fake_pass(&client, 10 * MS);
    }
    is_int((int)i, 20, "r16: a wall clock of %s us: later clients acquire the lock", name);
    is_int((int)grew, 20, "r16: the tokens grow");
    ok(token < ((uint64_t)1 << 53) - 1000000, "r16: the tokens are not used up");
}

/* The fencing counter is at its maximum, because of such a client of an older version. An acquire fails and
   changes nothing. */
static void r16_a_counter_at_its_maximum(void)
{
    static const char largest[] = "9007199254740991";
    unsigned i, same = 0;

    begin_with_defaults(3);
    set_use_fencing(&lock, 1);
    for (i = 0; i < 3; i++)
        fake_put((int)i, "k:fence", largest, 0);
    is_int(acquire(0), REDLOCK_UNREACHABLE, "r16: no larger counter: not acquired");
    for (i = 0; i < 3; i++) {
        const struct mini_key *counter = fake_find((int)i, "k:fence", 7);
        same += counter != NULL && memcmp(counter->value, largest, sizeof largest - 1) == 0;
    }
    is_int((int)same, 3, "r16: the counters are unchanged");
    is_int((int)nodes_with(&lock), 0, "r16: no key is left");
}

static void begin_fenced_and_connected(void)
{
    begin_fenced(3);
    warm_up();
}

/* A caller that ignores the result would use lock.fencing_token all the same. It must be 0 then, which every
   resource refuses. */
static void token_is_0(int status, int expected)
{
    is_int(status, expected, "r16: failed: %s", redlock_strerror(expected));
    ok(lock.fencing_token == 0, "r16: the fencing token is 0");
}

static void all_reply(const char *words)
{
    int i;

    for (i = 0; i < 3; i++)
        fake_nodes[i].reply = words;
}

static void r16_no_token_without_the_lock(void)
{
    int i;

    begin_fenced_and_connected();
    held_by("other", 0, 2);
    token_is_0(acquire(0), REDLOCK_HELD);
    token_is_0(acquire(300), REDLOCK_TIMEOUT);
    begin_fenced_and_connected();
    settings.retries = REDLOCK_NONE;
    begin(3);
    set_use_fencing(&lock, 1);
    held_by("other", 0, 0);
    held_by("another", 1, 1);
    token_is_0(acquire(0), REDLOCK_CONTENDED);
    begin_fenced_and_connected();
    for (i = 0; i < 3; i++)
        make_unreachable(i);
    token_is_0(acquire(0), REDLOCK_UNREACHABLE);
    begin_fenced_and_connected();
    all_reply("-NOPERM x\r\n");
    token_is_0(acquire(0), REDLOCK_DENIED);
    begin_fenced_and_connected();
    fake_sleep_us = 9900 * MS;
    token_is_0(acquire(0), REDLOCK_TOO_LATE);
    begin_fenced_and_connected();
    acquire(0);
    release(100);
    fake_no_entropy = 1;
    for (i = 0; i < 30 && acquire(0) == REDLOCK_OK; i++)
        release(100);
    token_is_0(lock.status, REDLOCK_NO_ENTROPY);
    begin_fenced_and_connected();
    held_by("other", 0, 2);
    redlock_acquire_start(&client, &lock, 5000);
    fake_pass(&client, 500);
    redlock_cancel(&client, &lock);
    fake_pass(&client, 100 * MS);
    token_is_0(lock.status, REDLOCK_CANCELLED);
    begin_fenced_and_connected();
    redlock_acquire_start(&client, &lock, 5000);
    fake_pass(&client, 500);
    redlock_deinit(&client);
    token_is_0(lock.status, REDLOCK_CANCELLED);
    begin_fenced_and_connected();
    held_by("other", 0, 2);
    redlock_acquire_start(&client, &lock, 5000);
    fake_pass(&client, 10 * MS); /* its first attempt has failed */
    token_is_0(release(100), REDLOCK_EXPIRED);
}

/* A fencing token needs a second round. A late grant of the first round is not a vote in the second, nor is a
   late reply of the second in a third. */
static void r16_replies_to_earlier_rounds(int late)
{
    char counter[24];

    begin_with_defaults(3);
    warm_up();
    set_use_fencing(&lock, 1);
    sprintf(counter, "%llu", (unsigned long long)fake_wall_us + 100);
    fake_put(0, "k:fence", counter, 0);
    fake_nodes[2].delay_us = late == 0 ? 1500 : 1000;
    redlock_acquire_start(&client, &lock, 0);
    fake_pass(&client, 500);
    fake_nodes[2].delay_us = late == 1 ? 1500 : 30 * MS;
    sprintf(counter, "%llu", (unsigned long long)fake_wall_us + 500);
    if (late == 1)
        fake_put(1, "k:fence", counter, 0);
    fake_pass(&client, 1 * MS);
    if (late == 1) /* node 1 replies last in the third round */
        fake_nodes[1].delay_us = 3 * MS;
    fake_pass(&client, 9 * MS);
    is_int(lock.status, REDLOCK_OK, "r16: held");
    is_int((int)fake_count(0, 'R'), late == 1 ? 2 : 1, "r16: the number of further rounds");
    redlock_next_completed(&client);
    redlock_abandon(&client, &lock);
    ok(stays_unchanged(100 * MS), "r16: later replies do not write to the lock");
}

int main(void)
{
    const uint64_t most = (uint64_t)1 << 53;
    int late;

    if (REDLOCK_MINIMAL) {
        r16_left_out();
        return done_testing();
    }
    r16_one_round_trip();
    r16_agrees_on_the_largest();
    r16_a_larger_counter_does_not_agree();
    r16_rounds_of_agreement_are_limited();
    r16_refused();
    r16_tokens_grow();
    r16_who_granted_is_a_member();
    r16_who_granted_late_is_a_member();
    r16_who_agrees_late_is_no_member();
    r16_the_second_round_has_its_own_time();
    r16_an_agreement_of_a_broken_connection();
    r16_a_wrong_wall_clock(most, "2^53");
    r16_a_wrong_wall_clock(most - 1, "2^53 - 1");
    r16_a_wrong_wall_clock(most + 1, "2^53 + 1");
    r16_a_wrong_wall_clock((uint64_t)1 << 63, "2^63");
    r16_a_wrong_wall_clock(UINT64_MAX, "2^64 - 1");
    r16_a_counter_at_its_maximum();
    r16_no_token_without_the_lock();
    for (late = 0; late < 3; late++)
        r16_replies_to_earlier_rounds(late);
    return done_testing();
}
