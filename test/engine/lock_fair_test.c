/* lock_fair_test.c - the wait queue of a lock (R19), on simulated servers. A round trip takes 1 ms, and so does a notification.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "one_lock.h"

/* Tokens of other clients: their first eight characters are their names in the queue. */
#define HOLDER "0123abcd-of-another-client"
#define FIRST "aaaaaaaa-of-another-client"
#define SECOND "bbbbbbbb-of-another-client"
#define THIRD "cccccccc-of-another-client"

/* Another client stands in the queue of "k" on the nodes from..to, in front of all that begin to wait now; those with a smaller
   `since` are in front of it. */
static void stands(const char *token, uint64_t since, int from, int to)
{
    for (; from <= to; from++) {
        struct mini_waiter *at = fake_nodes[from].server.waiters;
        while (at->key.size != 0)
            at++;
        at->key.size = 1;
        at->key.bytes[0] = 'k';
        memcpy(at->name, token, 8);
        at->since = since;
        at->until_us = at->leased_until_us = UINT64_MAX;
        at->answer_ms = 5;
    }
}

static unsigned in_queue(int node)
{
    unsigned i, n = 0;

    for (i = 0; i < MINI_WAITERS; i++)
        n += fake_nodes[node].server.waiters[i].key.size != 0;
    return n;
}

/* A fair client of `count` nodes that has just held the lock for longer than a round trip. */
static void begin_fair(unsigned count)
{
    memset(&settings, 0, sizeof settings);
    settings.fair = 1;
    begin(count);
    acquire(0);
    fake_pass(&client, 5 * MS);
    release(1000);
    fake_pass(&client, 100 * MS);
    fake_logged = 0;
}

/* Each run draws other random numbers. */
static void draw(unsigned run)
{
    uint8_t unused[32];

    fake_io()->entropy(NULL, unused, run);
}

static void wait_for_it(void)
{
    redlock_acquire_start(&client, &lock, 20000);
    fake_pass(&client, 10 * MS);
}

/* Another client holds the lock on all of `count` nodes. The lock waits behind so many other waiters, three at most. */
static void wait_behind(unsigned others, unsigned count)
{
    static const char *const names[] = {FIRST, SECOND, THIRD};
    unsigned i;

    begin_fair(count);
    held_by(HOLDER, 0, (int)count - 1);
    for (i = 0; i < others; i++)
        stands(names[i], 1 + i, 0, (int)count - 1);
    wait_for_it();
}

/* Another client takes the lock, and the servers notify. */
static void taken_by(const char *token, int from, int to)
{
    for (; from <= to; from++) {
        fake_put(from, "k", "", 1);
        fake_delete(from, "k");
        fake_put(from, "k", token, 60000);
    }
}

/* The server tells the waiter that it comes near. */
static void wake(int from, int to)
{
    char own[32];
    unsigned i;

    memcpy(own, "k:", 2);
    for (i = 0; i < 4; i++)
        sprintf(own + 2 + 2 * i, "%02x", lock.token[i]);
    for (; from <= to; from++) {
        fake_put(from, own, "", 1);
        fake_delete(from, own);
    }
}

static void r19_only_waiters_enter(void)
{
    static const struct redlock_key more[] = {{"l", 1}};

    begin_fair(3);
    held_by(HOLDER, 0, 2);
    is_int(acquire(0), REDLOCK_HELD, "r19: wait_ms 0: held");
    is_int((int)fake_count(-1, 'W'), 0, "r19: wait_ms 0: no queue");
    wait_for_it();
    fake_pass(&client, 500 * MS);
    ok(fake_count(0, 'W') > 1, "r19: a waiter enters it, and looks again");
    is_int((int)in_queue(0), 1, "r19: it stands there once");
    redlock_cancel(&client, &lock);
    fake_pass(&client, 5 * MS);
    is_int((int)in_queue(0), 0, "r19: cancelled: it takes itself out");
    stands(FIRST, 1, 0, 2);
    acquire(200);
    is_int((int)in_queue(0), 1, "r19: and so it does at the end of its wait, but nobody else");
    if (!REDLOCK_MINIMAL) {
        begin_fair(3);
        held_by(HOLDER, 0, 2);
        set_extra_keys(&lock, more, 1);
        acquire(100);
        is_int((int)fake_count(-1, 'W'), 0, "r19: not with several keys");
        release(100);
        is_int((int)fake_count(-1, 'U'), 0, "r19: nor a release of them");
    }
    begin_with_defaults(3);
    held_by(HOLDER, 0, 2);
    acquire(100);
    is_int((int)fake_count(-1, 'W'), 0, "r19: not by default");
    held_by(HOLDER, 0, -1);
    delete_on(0, 2);
    acquire(100);
    release(100);
    is_int((int)fake_count(-1, 'U'), 0, "r19: nor a release by default");
}

/* Without a queue a waiter retries after a random part of a round trip. */
static void r19_the_first_asks_at_once(void)
{
    unsigned run, late = 0, free_before;

    for (run = 0; run < 20; run++) {
        begin_fair(5);
        draw(run);
        held_by(HOLDER, 0, 4);
        wait_for_it();
        delete_on(0, 2);
        fake_pass(&client, 2050);
        late += lock.status != REDLOCK_OK;
    }
    is_int((int)late, 0,
           "r19: the first waiter asks as soon as a quorum is free, in 20 runs of 20");
    wait_behind(0, 5);
    free_before = fake_count(-1, 'S');
    delete_on(0, 1);
    fake_pass(&client, 20 * MS);
    is_int((int)fake_count(-1, 'S'), (int)free_before, "r19: not before");
}

static void r19_the_second_waits_for_the_first(void)
{
    unsigned asked, looked;

    wait_behind(1, 3);
    asked = fake_count(0, 'S');
    looked = fake_count(0, 'W');
    delete_on(0, 2);
    fake_pass(&client, 1300);
    is_int((int)fake_count(0, 'W'), (int)looked, "r19: the second waiter does not look at once");
    fake_pass(&client, 400);
    is_int((int)fake_count(0, 'W'), (int)looked + 1, "r19: but half a round trip later");
    fake_pass(&client, 1200);
    is_int((int)fake_count(0, 'S'), (int)asked,
           "r19: it lets the first one ask for two round trips");
    fake_pass(&client, 1700);
    is_int(lock.status, REDLOCK_OK, "r19: then it asks: the first is dead");
    release(1000);
    is_int((int)in_queue(0), 1, "r19: its release tells the first one to look");
    fake_pass(&client, 6 * MS);
    acquire(0);
    release(1000);
    is_int((int)in_queue(0), 0, "r19: it has not, so the next release takes it out of the queue");

    wait_behind(1, 3);
    looked = fake_count(0, 'W');
    delete_on(0, 2);
    wake(0, 2);
    fake_pass(&client, 1300);
    is_int((int)fake_count(0, 'W'), (int)looked,
           "r19: nor does it look at once when the release tells it, too");

    wait_behind(1, 3);
    asked = fake_count(0, 'S');
    delete_on(0, 2);
    fake_pass(&client, 1900); /* it has looked when the lock was free */
    taken_by(FIRST, 0, 2);
    fake_pass(&client, 20 * MS);
    is_int((int)fake_count(0, 'S'), (int)asked, "r19: it does not ask when the first one has it");
    delete_on(0, 2);
    fake_pass(&client, 2050);
    is_int(lock.status, REDLOCK_OK, "r19: it is the first now: the holder does not count");
}

static void r19_one_far_behind_is_notified(void)
{
    unsigned asked, looked;

    wait_behind(2, 3);
    asked = fake_count(-1, 'S');
    looked = fake_count(0, 'W');
    delete_on(0, 2);
    held_by(FIRST, 0, 2);
    fake_pass(&client, 30 * MS);
    is_int((int)fake_count(-1, 'S'), (int)asked, "r19: the third waiter does not ask");
    is_int((int)fake_count(0, 'W'), (int)looked, "r19: nor look");
    wake(0, 0);
    fake_pass(&client, 5 * MS);
    is_int((int)fake_count(0, 'W'), (int)looked, "r19: one node is no quorum");
    wake(1, 2);
    fake_pass(&client, 1100);
    is_int((int)fake_count(0, 'W'), (int)looked + 1, "r19: it looks when it comes near");
    fake_pass(&client, 2000 * MS);
    ok(fake_count(0, 'W') > looked + 1, "r19: it looks from time to time in any case");
    is_int((int)fake_count(-1, 'S'), (int)asked, "r19: and does not ask");
}

/* All in front of it are dead: it has seen that the lock is free, and asks half a round trip later for each of them. */
static void r19_a_free_lock_is_not_left_alone(void)
{
    wait_behind(3, 3);
    delete_on(0, 2);
    wake(0, 2);
    fake_pass(&client, 3300);
    is_int(lock.status, REDLOCK_PENDING, "r19: three in front: not at once");
    fake_pass(&client, 1700);
    is_int(lock.status, REDLOCK_OK, "r19: half a round trip later for each");

    wait_behind(2, 3);
    delete_on(0, 2);
    wake(0, 2);
    fake_pass(&client, 1500);
    taken_by(THIRD, 0, 2);
    fake_logged = 0;
    fake_pass(&client, 30 * MS);
    is_int((int)fake_count(-1, 'S'), 0, "r19: not if somebody else has taken it meanwhile");
    is_int((int)fake_count(-1, 'W'), 0, "r19: nor is there a look");
}

static void r19_the_place_is_that_of_a_quorum(void)
{
    begin_fair(5);
    held_by(HOLDER, 0, 4);
    stands(FIRST, 1, 0, 1);
    stands(SECOND, 2, 0, 1);
    wait_for_it();
    delete_on(0, 4);
    fake_pass(&client, 2050);
    is_int(lock.status, REDLOCK_OK, "r19: the first on three of five nodes is the first");
    begin_fair(5);
    held_by(HOLDER, 0, 4);
    stands(FIRST, 1, 0, 2);
    wait_for_it();
    delete_on(0, 4);
    fake_pass(&client, 2050);
    is_int(lock.status, REDLOCK_PENDING, "r19: the first on two is not");
    begin_fair(5);
    fake_nodes[2].server.no_queue = fake_nodes[3].server.no_queue = 1;
    held_by(HOLDER, 0, 4);
    stands(FIRST, 1, 4, 4);
    stands(SECOND, 2, 4, 4);
    wait_for_it();
    delete_on(0, 4);
    fake_pass(&client, 5 * MS);
    is_int(lock.status, REDLOCK_PENDING, "r19: nor the first on two, if two more do not tell");
}

static void r19_the_name_stays(void)
{
    unsigned i, names = 0, tokens = 0;
    const char *last = NULL;

    wait_behind(0, 3);
    for (i = 0; i < 5; i++) {
        delete_on(0, 1);
        held_by(SECOND, 0, 1); /* it is notified, and refused again */
        fake_pass(&client, 20 * MS);
    }
    for (i = 0; i < fake_logged; i++) {
        if (fake_log[i].kind != 'S' || fake_log[i].node != 0)
            continue;
        names += last != NULL && memcmp(fake_log[i].token, last, 8) == 0;
        tokens += last == NULL || memcmp(fake_log[i].token + 8, last + 8, 32) != 0;
        last = fake_log[i].token;
    }
    is_int((int)tokens, 6, "r19 r01: six attempts, each with another token");
    is_int((int)names, 5, "r19: all with the same name");
}

/* The client holds the lock and releases it; another client may wait. `wait_ms` is that of the release. */
static void hold_and_release(int others, uint32_t wait_ms)
{
    begin_fair(3);
    acquire(0);
    fake_pass(&client, 5 * MS);
    if (others)
        stands(FIRST, 1, 0, 2);
    release(wait_ms);
}

/* The client acquires the lock again; its first commands arrive. */
static void ask_again(void)
{
    fake_logged = 0;
    redlock_acquire_start(&client, &lock, 20000);
    fake_pass(&client, 500);
}

static void r19_looks_first_after_a_release(void)
{
    hold_and_release(1, 1000);
    ask_again();
    ok(fake_count(-1, 'S') == 0 && fake_count(-1, 'W') == 3,
       "r19: somebody waits: the client that had the lock stands behind them");
    taken_by(FIRST, 0, 2);
    fake_pass(&client, 20 * MS);
    is_int((int)fake_count(-1, 'S'), 0, "r19: so the waiter has it");
    is_int((int)in_queue(0), 2, "r19: both are in the queue");
    hold_and_release(0, 1000);
    ask_again();
    is_int((int)fake_count(-1, 'S'), 3, "r19: nobody waits: it asks at once");
    hold_and_release(1, 1000);
    redlock_lock_init(&lock, "l", 10000);
    is_int(acquire(1000), REDLOCK_OK, "r19: for another key it asks at once");
    is_int((int)fake_count(-1, 'W'), 0, "r19: without a look");
    fake_pass(&client, 5 * MS);
    release(1000);
    redlock_lock_init(&lock, "k", 10000);
    fake_pass(&client, 20 * MS);
    ask_again();
    is_int((int)fake_count(-1, 'S'), 3, "r19: and so it does some round trips later");
}

/* When a release has told a waiter to look, the waiter has three of its round trips for that, and 1 s at most. */
static void r19_a_lease_ends_when_it_was_told(void)
{
    int i;

    wait_behind(0, 3);
    is_int((int)fake_nodes[0].server.waiters[0].answer_ms, 4, "r19: three round trips, and 1 ms");
    begin_fair(3);
    settings.node_timeout_ms = 5000;
    settings.stall_ms = 10000;
    begin(3);
    for (i = 0; i < 3; i++)
        fake_nodes[i].delay_us = 800 * MS;
    for (i = 0; i < 3; i++) { /* the time of the replies becomes known */
        acquire(0);
        fake_pass(&client, 2000 * MS);
        release(5000);
    }
    held_by(HOLDER, 0, 2);
    redlock_acquire_start(&client, &lock, 20000);
    fake_pass(&client, 5000 * MS);
    is_int((int)fake_nodes[0].server.waiters[0].answer_ms, 1000, "r19: 1 s at most");
}

/* Node 0 has kept the key of a holder, node 1 is free, and node 2 does not answer: the lock is neither free nor taken. */
static void r19_looks_have_an_end(void)
{
    wait_behind(0, 3);
    fake_nodes[2].refuses = 1;
    fake_break(2);
    delete_on(1, 1);
    fake_logged = 0;
    fake_pass(&client, 2000 * MS);
    ok(fake_count(1, 'W') >= 20 && fake_count(1, 'W') < 60,
       "r19: a waiter that sees no holder looks a few times, and then in pauses: %u",
       fake_count(1, 'W'));
}

/* Again and again it sees that the lock is free, and others take it: that is no reason to become slow. */
static void r19_holders_renew_the_patience(void)
{
    int i;

    wait_behind(2, 3);
    for (i = 0; i < 24; i++) {
        delete_on(0, 2);
        wake(0, 2);
        fake_pass(&client, 1500);
        taken_by(THIRD, 0, 2);
        fake_pass(&client, 3 * MS);
        wake(0, 2);
        fake_pass(&client, 3 * MS);
    }
    is_int(lock.status, REDLOCK_PENDING, "r19: many others were faster");
    delete_on(0, 2);
    wake(0, 2);
    fake_pass(&client, 6 * MS);
    is_int(lock.status, REDLOCK_OK, "r19: then it asks as soon as before");
}

/* Node 0 has kept a stale key, and node 2 does not notify, so it is not looked at. */
static void r19_a_node_without_notification_votes(void)
{
    begin_fair(3);
    fake_nodes[2].server.no_pushes = 1;
    fake_break(2);
    fake_pass(&client, 100 * MS);
    held_by(HOLDER, 0, 2);
    wait_for_it();
    delete_on(1, 2);
    fake_pass(&client, 3000 * MS);
    is_int(lock.status, REDLOCK_OK, "r19: a quorum is free, one of them unseen: it asks in time");
}

static void r19_a_release_that_does_not_wait(void)
{
    hold_and_release(1, 0);
    ask_again();
    ok(fake_count(-1, 'S') == 0 && fake_count(-1, 'W') == 3,
       "r19: it does not know whether somebody waits: it stands behind them");
}

/* The notifications come while the replies to a look are on their way, and are read together. */
static void r19_notified_while_it_looks(void)
{
    unsigned looked;

    wait_behind(2, 3);
    looked = fake_count(0, 'W');
    while (fake_count(0, 'W') == looked) /* its pause is over */
        fake_pass(&client, 100);
    looked = fake_count(0, 'W');
    wake(0, 2);
    fake_sleep_us = 5 * MS;
    fake_pass(&client, 20 * MS);
    ok(fake_count(0, 'W') > looked, "r19: it looks again");
}

/* Waiters that give up in any way leave the queue. */
static void r19_all_that_give_up_leave(void)
{
    int i;

    begin_fair(3);
    held_by(HOLDER, 0, 2);
    wait_for_it();
    is_int((int)in_queue(0), 1, "r19: it waits");
    fake_now_us += 3000 * MS;
    redlock_release_start(&client, &lock, 0);
    fake_pass(&client, 5 * MS);
    is_int((int)in_queue(0), 0, "r19: released while it waits: it leaves the queue");
    is_int(nodes[0].state, REDLOCK_NODE_READY, "r19: also when the client was not served for long");
    settings.retries = 2;
    begin(3);
    held_by(HOLDER, 0, 2);
    wait_for_it();
    for (i = 0; i < 3; i++) { /* it is notified, and refused again */
        delete_on(0, 1);
        held_by(SECOND, 0, 1);
        fake_pass(&client, 20 * MS);
    }
    is_int(lock.status, REDLOCK_HELD, "r19: all attempts are used up");
    is_int((int)in_queue(0), 0, "r19: it leaves the queue");
}

static void r19_short_holds_need_no_queue(void)
{
    begin_fair(3);
    acquire(0);
    release(1000);
    fake_pass(&client, 100 * MS);
    held_by(HOLDER, 0, 2);
    fake_logged = 0;
    redlock_acquire_start(&client, &lock, 20000);
    fake_pass(&client, 3900 * MS);
    is_int((int)fake_count(-1, 'W'), 0,
           "r19: a client with a short hold stays outside of the queue");
    fake_pass(&client, 2500 * MS);
    ok(fake_count(0, 'W') > 0, "r19: for the time of a lease");
    begin(3);
    held_by(HOLDER, 0, 2);
    wait_for_it();
    is_int((int)fake_count(0, 'W'), 1, "r19: one that has never held a lock enters it at once");
}

/* Without a place a waiter is notified and retries as without a queue. */
static void r19_without_permission(void)
{
    int i;

    begin_fair(3);
    held_by(HOLDER, 0, 2);
    for (i = 0; i < 3; i++)
        fake_nodes[i].server.no_queue = 1;
    wait_for_it();
    is_int((int)fake_count(0, 'W'), 1, "r19: no node keeps a queue");
    delete_on(0, 2);
    fake_pass(&client, 2100);
    is_int(lock.status, REDLOCK_OK, "r19: a notification still leads to the lock");
    is_int(release(1000), REDLOCK_OK, "r19: and it is released");
    begin_fair(3);
    held_by(HOLDER, 0, 2);
    fake_nodes[0].reply = "-ERR unknown command\r\n";
    fake_nodes[1].reply = "-ERR unknown command\r\n";
    fake_pass(&client, 10 * MS);
    redlock_acquire_start(&client, &lock, 300);
    fake_pass(&client, 500 * MS);
    ok(lock.status != REDLOCK_PENDING, "r19: errors to all commands: it ends in time");
}

/* Redis 6.0 also notifies the client whose script changed a key: here its own key, at each look. */
static void r19_its_own_look_is_no_notification(void)
{
    unsigned looked;
    int i;

    begin_fair(3);
    for (i = 0; i < 3; i++)
        fake_nodes[i].server.tells_caller = 1;
    held_by(HOLDER, 0, 2);
    stands(FIRST, 1, 0, 2);
    wait_for_it();
    fake_pass(&client,
              2000 * MS); /* from the second look on each changes the key of the one before */
    looked = fake_count(0, 'W');
    fake_pass(&client, 500 * MS);
    ok(fake_count(0, 'W') < looked + 5, "r19: a look does not lead to the next one");
    delete_on(0, 2);
    fake_pass(&client, 10 * MS);
    is_int(lock.status, REDLOCK_OK, "r19: and the waiter asks when it is its turn");
}

static void r19_a_release_tells_the_queue(void)
{
    wait_behind(1, 3);
    delete_on(0, 2);
    fake_pass(&client, 20 * MS);
    is_int(lock.status, REDLOCK_OK, "r19: the second one has it");
    stands(SECOND, UINT64_MAX / 2, 0, 2);
    fake_pass(&client, 5 * MS);
    is_int(release(1000), REDLOCK_OK, "r19: released");
    is_int((int)in_queue(0), 2, "r19: it has left, and told two to look");
    fake_pass(&client, 6 * MS);
    is_int(acquire(0), REDLOCK_OK, "r19: none of them asks");
    is_int(release(1000), REDLOCK_OK, "r19: released");
    is_int((int)in_queue(0), 0, "r19: it has taken them out: they have not looked");
    is_int((int)fake_keys_left(), 0, "r19: no key is left");
}

static void r19_a_lost_lock_is_released(void)
{
    begin_fair(3);
    is_int(acquire(0), REDLOCK_OK, "r19: held");
    held_by(HOLDER, 0, 2);
    is_int(release(1000), REDLOCK_LOST, "r19: another client has taken it: the release says so");
    is_int(nodes[0].state, REDLOCK_NODE_READY, "r19: the node is not disconnected");
}

static void r19_the_wait_ends_in_time(void)
{
    uint64_t start, end;
    unsigned i, last = 0;

    begin_fair(3);
    held_by(HOLDER, 0, 2);
    stands(FIRST, 1, 0, 2);
    start = fake_now_us;
    is_int(acquire(3000), REDLOCK_TIMEOUT, "r19: the lock is not released");
    end = fake_now_us;
    for (i = 0; i < fake_logged; i++)
        if (fake_log[i].kind == 'S')
            last = i;
    ok(end - start <= 3010 * MS, "r19: it waits for 3 s, and not for %ld ms",
       (long)(end - start) / MS);
    ok(fake_log[last].at_us >= start + 2990 * MS, "r19: the last attempt is made then");
}

/* After each of these the struct is the caller's. */
static void r19_no_reply_goes_to_a_struct_that_is_the_callers(void)
{
    unsigned run;
    int i;

    for (run = 0; run < 3; run++) {
        struct redlock_lock copy;

        begin_fair(5);
        held_by(HOLDER, 0, 4);
        redlock_acquire_start(&client, &lock, run == 2 ? 200 : 20000);
        fake_pass(&client, 10 * MS);
        fake_nodes[3].hung = fake_nodes[4].hung = 1;
        for (i = 0; i < 2; i++) { /* from both the replies to two looks are due */
            wake(0, 2);
            fake_pass(&client, 3 * MS);
        }
        fake_pass(&client, run == 2 ? 1200 * MS : 0);
        if (run == 0)
            redlock_cancel(&client, &lock);
        if (run == 1)
            redlock_release(&client, &lock, 0);
        fake_pass(&client, 300);
        memset(&lock, 0xa5, sizeof lock);
        memcpy(&copy, &lock, sizeof lock);
        for (i = 3; i < 5; i++)
            fake_resume(i);
        fake_pass(&client, 20 * MS);
        ok(memcmp(&copy, &lock, sizeof lock) == 0, "r19: %s: the struct is not written to",
           run == 0   ? "cancelled"
           : run == 1 ? "released"
                      : "timed out");
    }
}

/* The server does not notify the client that released the lock. */
static void r19_locks_of_one_client(void)
{
    enum { WAITERS = 6 };
    static struct redlock_lock many[WAITERS];
    unsigned i, n, done = 0, turns = 0;

    begin_fair(3);
    is_int(acquire(0), REDLOCK_OK, "r19: a client holds the lock");
    for (i = 0; i < WAITERS; i++) {
        redlock_lock_init(&many[i], "k", 10000);
        redlock_acquire_start(&client, &many[i], 20000);
        fake_pass(&client, 20 * MS);
    }
    fake_logged = 0;
    release(1000);
    fake_pass(&client, 3 * MS);
    ok(fake_count(0, 'W') <= 2, "r19: two of its waiters look: %u", fake_count(0, 'W'));
    for (; done < WAITERS && turns < 20; turns++) {
        fake_pass(&client, 8 * MS);
        if (many[done].status != REDLOCK_OK)
            break;
        redlock_release(&client, &many[done++], 1000);
    }
    is_int(
        (int)done, WAITERS,
        "r19: its other locks get it in the order in which they began to wait, within 8 ms each");
    /* Three others stood in front, and had the lock since the last look */
    begin_fair(3);
    is_int(acquire(0), REDLOCK_OK, "r19: a client holds the lock");
    stands(FIRST, 1, 0, 2);
    stands(SECOND, 2, 0, 2);
    stands(THIRD, 3, 0, 2);
    redlock_lock_init(&many[0], "k", 10000);
    redlock_acquire_start(&client, &many[0], 20000);
    fake_pass(&client, 20 * MS);
    for (i = 0; i < 3; i++)
        for (n = 0; n < MINI_WAITERS; n++)
            if (fake_nodes[i].server.waiters[n].since < 4)
                fake_nodes[i].server.waiters[n].key.size = 0;
    release(1000);
    fake_pass(&client, 8 * MS);
    is_int(many[0].status, REDLOCK_OK, "r19: the server has told its waiter, and does not notify");
}

int main(void)
{
    if (!REDLOCK_FAIR) {
        memset(&settings, 0, sizeof settings);
        settings.fair = 1;
        is_int(redlock_init(&client, fake_io(), nodes, 1, &settings), REDLOCK_INVALID_ARGUMENT,
               "r19: left out: the setting is refused");
        return done_testing();
    }
    r19_only_waiters_enter();
    r19_the_first_asks_at_once();
    r19_the_second_waits_for_the_first();
    r19_one_far_behind_is_notified();
    r19_a_free_lock_is_not_left_alone();
    r19_the_place_is_that_of_a_quorum();
    r19_the_name_stays();
    r19_looks_first_after_a_release();
    r19_a_lease_ends_when_it_was_told();
    r19_looks_have_an_end();
    r19_holders_renew_the_patience();
    r19_a_node_without_notification_votes();
    r19_a_release_that_does_not_wait();
    r19_notified_while_it_looks();
    r19_all_that_give_up_leave();
    r19_short_holds_need_no_queue();
    r19_without_permission();
    r19_its_own_look_is_no_notification();
    r19_a_release_tells_the_queue();
    r19_a_lost_lock_is_released();
    r19_the_wait_ends_in_time();
    r19_no_reply_goes_to_a_struct_that_is_the_callers();
    r19_locks_of_one_client();
    return done_testing();
}
