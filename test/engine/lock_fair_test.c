/* lock_fair_test.c - the wait queue of a lock (R19), on simulated servers. A round trip takes 1 ms, and so does a notification.
   lock_turns_test.c has many clients.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "core.h"
#include "one_lock.h"

/* Other clients: their names in the queue. */
#define HOLDER "0123abcd-of-another-client"
#define FIRST "aaaaaaaaaaaaaaaa"
#define SECOND "bbbbbbbbbbbbbbbb"
#define THIRD "cccccccccccccccc"
#define FOURTH "dddddddddddddddd"

enum { LONG_PAUSE = 600000, TWO_TRIPS = 2 * MS + 300 };

/* Another client stands in the queue of "k" on the nodes from..to, in front of all that begin to wait now; those with a smaller
   `since` are in front of it. */
static void stands(const char *name, uint64_t since, int from, int to)
{
    for (; from <= to; from++) {
        struct mini_waiter *at = fake_nodes[from].server.waiters;
        while (at->key.size != 0)
            at++;
        memset(at, 0, sizeof *at);
        at->key.size = 1;
        at->key.bytes[0] = 'k';
        memcpy(at->name, name, sizeof at->name);
        at->since = since;
        at->until_us = at->leased_until_us = UINT64_MAX;
        at->answer_ms = 5;
    }
}

static struct mini_waiter *entry(int node, const char *name)
{
    unsigned i;

    for (i = 0; i < MINI_WAITERS; i++) {
        struct mini_waiter *at = &fake_nodes[node].server.waiters[i];
        if (at->key.size != 0 && (name == NULL || memcmp(at->name, name, sizeof at->name) == 0))
            return at;
    }
    return NULL;
}

static unsigned in_queue(int node)
{
    unsigned i, n = 0;

    for (i = 0; i < MINI_WAITERS; i++)
        n += fake_nodes[node].server.waiters[i].key.size != 0;
    return n;
}

static void leaves(const char *name, int from, int to)
{
    for (; from <= to; from++)
        if (entry(from, name) != NULL)
            entry(from, name)->key.size = 0;
}

/* So many attempts have reached the node: through the gate, or without it. */
static unsigned attempts(int node, int gate)
{
    unsigned i, n = 0;

    for (i = 0; i < fake_logged; i++)
        n += fake_log[i].node == node && (fake_log[i].kind == 'S' || fake_log[i].kind == 'F') &&
             fake_log[i].queues == gate;
    return n;
}

static void set_fair(uint32_t pause_ms)
{
    memset(&settings, 0, sizeof settings);
    settings.fair = 1;
    settings.retry_delay_ms = settings.retry_delay_max_ms = pause_ms;
}

/* A fair client of `count` nodes, which is connected, with pauses of 10 min: only what a test does leads to an attempt. */
static void begin_fair(unsigned count)
{
    set_fair(LONG_PAUSE);
    begin(count);
    warm_up();
}

static void wait_for_it(void)
{
    redlock_acquire_start(&client, &lock, 3600000);
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
    fake_logged = 0;
}

/* The servers from..to tell a waiter. */
static void tell(const struct redlock_lock *to_whom, int from, int to)
{
    char lease[200];

    put_lease(lease, to_whom);
    for (; from <= to; from++) {
        fake_put(from, lease, "", 1);
        fake_delete(from, lease);
    }
}

/* Another client's release: the key is gone, and the first two are told; or only this one. */
static void released(int from, int to)
{
    delete_on(from, to);
    tell(&lock, from, to);
}

/* Sends bytes to the client, as node i. */
static void push(int i, const char *bytes)
{
    struct fake_node *n = &fake_nodes[i];
    unsigned size = (unsigned)strlen(bytes);

    memcpy(n->out + n->out_used, bytes, size);
    n->out_used += size;
    n->due[n->dues].end = n->out_used;
    n->due[n->dues++].ready_us = fake_now_us;
}

static void push_all(const char *bytes)
{
    int i;

    for (i = 0; i < 3; i++)
        push(i, bytes);
}

/* ---- The gate ------------------------------------------------------------------------------- */

static void r19_only_waiters_enter(void)
{
    static const struct redlock_key more[] = {{"l", 1}};

    begin_fair(3);
    held_by(HOLDER, 0, 2);
    is_int(acquire(0), REDLOCK_HELD, "r19: wait_ms 0: held");
    is_int((int)attempts(0, 1), 0, "r19: wait_ms 0: it passes the gate");
    is_int((int)in_queue(0), 0, "r19: and enters no queue");
    set_fair(100);
    begin(3);
    held_by(HOLDER, 0, 2);
    wait_for_it();
    fake_pass(&client, 2000 * MS);
    ok(attempts(0, 1) > 1 && attempts(0, 0) == 0, "r19: a waiter enters it, and asks again");
    is_int((int)in_queue(0), 1, "r19: it stands there once");
    begin(3);
    held_by(HOLDER, 0, 2);
    set_extra_keys(&lock, more, 1);
    acquire(100);
    is_int((int)attempts(0, 1), 0, "r19: not with several keys");
    begin(3);
    held_by(HOLDER, 0, 2);
    set_label(&lock, "job-7", 5);
    lock.token_is_label = 1;
    acquire(100);
    is_int((int)attempts(0, 1), 0, "r19: not with a token that the caller chose");
    begin_with_defaults(3);
    held_by(HOLDER, 0, 2);
    acquire(100);
    is_int((int)attempts(0, 1), 0, "r19: not by default");
    is_int((int)in_queue(0), 0, "r19: there is no queue");
    delete_on(0, 2);
    is_int(acquire(100), REDLOCK_OK, "r19: acquired");
    fake_logged = 0;
    release(100);
    ok(fake_logged > 0 && !fake_log[0].queues, "r19: nor a release by default");
}

static void r19_nobody_waits(void)
{
    uint64_t start;

    begin_fair(5);
    start = fake_now_us;
    is_int(acquire(1000), REDLOCK_OK, "r19: nobody competes for it: acquired");
    ok(since(start) <= MS + 100, "r19: within one round trip, %ld us", since(start));
    is_int((int)in_queue(0), 0, "r19: there is no queue");
    is_int(release(1000), REDLOCK_OK, "r19: released");
    is_int((int)fake_keys_left(), 0, "r19: no key is left");
}

/* A client that takes the lock again at once stands behind those that wait, and so does a newcomer. */
static void r19_newcomers_stand_behind(void)
{
    begin_fair(3);
    stands(FIRST, 1, 0, 2);
    redlock_acquire_start(&client, &lock, 20000);
    fake_pass(&client, 2 * MS);
    is_int(lock.status, REDLOCK_PENDING, "r19: the lock is free, but somebody waits for it");
    is_int((int)in_queue(0), 2, "r19: the newcomer stands behind");
    is_int((int)entry(0, FIRST)->answer_ms, 0, "r19: and tells the one in front");
    is_int((int)fake_keys_left(), 0, "r19: no key is set");
    leaves(FIRST, 0, 2);
    fake_pass(&client, 6 * MS);
    is_int(lock.status, REDLOCK_OK,
           "r19: that one has left: it asks again a few round trips later");
}

static void r19_a_dead_waiter_loses_its_place(void)
{
    int i;

    begin_fair(3);
    stands(FIRST, 1, 0, 2);
    stands(SECOND, 2, 0, 2);
    for (i = 0; i < 3; i++)
        entry(i, FIRST)->leased_until_us = fake_now_us;
    redlock_acquire_start(&client, &lock, 20000);
    fake_pass(&client, 2 * MS);
    is_int((int)in_queue(0), 2, "r19: one whose lease is over is out");
    is_int(lock.status, REDLOCK_PENDING, "r19: the other one in front is told");
    fake_pass(&client, 20 * MS);
    is_int(lock.status, REDLOCK_OK, "r19: it has not asked: then it is dead, too");
    is_int((int)in_queue(0), 0, "r19: the one that has the lock stands in no queue");
}

/* The attempt reaches a node late, so that by the clock of that node it began to wait later. */
static void r19_the_moment_is_agreed_on(void)
{
    begin_fair(5);
    held_by(HOLDER, 0, 4);
    fake_nodes[0].hung = 1;
    wait_for_it();
    fake_pass(&client, 30 * MS);
    fake_resume(0);
    is_int((int)in_queue(0), 1, "r19: it stands in the queue once");
    ok(entry(0, NULL)->since == entry(1, NULL)->since, "r19: all nodes have the same moment");
}

/* No node could be reached when it began to wait. */
static void r19_it_waits_since_its_call(void)
{
    uint64_t start, since;
    int i;

    set_fair(50);
    begin(3);
    held_by(HOLDER, 0, 2);
    for (i = 0; i < 3; i++)
        fake_nodes[i].refuses = 1;
    start = fake_now_us;
    redlock_acquire_start(&client, &lock, 3600000);
    fake_pass(&client, 500 * MS);
    for (i = 0; i < 3; i++)
        fake_nodes[i].refuses = 0;
    fake_pass(&client, 5000 * MS);
    is_int((int)in_queue(0), 1, "r19: it stands in the queue when the nodes are back");
    since = entry(0, NULL)->since - ((uint64_t)1 << 40);
    ok(since >= start / MS && since < start / MS + 10, "r19: from the moment of its call: %ld ms",
       (long)(since - start / MS));
}

/* The first waiter reaches too few nodes, or its votes come too late. It leaves the queue, and does not take the free lock from
   others until a quorum replies in time. */
static void r19_one_that_cannot_get_it_gives_up_its_place(int is_late)
{
    uint64_t released_us;
    int i;

    begin_fair(3);
    held_by(HOLDER, 0, 2);
    lock.ttl_ms = 2000;
    wait_for_it();
    is_int((int)in_queue(0), 1, "r19: it stands in the queue");
    for (i = 0; i < 3; i++) {
        set_distance(i, is_late ? 700 * MS : MS);
        fake_nodes[i].hung = !is_late && i > 0;
    }
    released(0, 2);
    if (!is_late) /* the node that it reaches says where it stands */
        fake_put(0, "k", HOLDER, 5000);
    released_us = fake_now_us;
    fake_pass(&client, 9000 * MS);
    is_int((int)in_queue(0), 0, "r19: it cannot get the free lock: it leaves the queue");
    is_int((int)fake_keys_left(), 0, "r19: its key is gone");
    fake_logged = 0;
    fake_pass(&client, 1300000 * MS);
    ok(attempts(0, 1) > 0, "r19: from time to time it asks whether it could");
    is_int((int)in_queue(0), 0, "r19: it enters no queue for that");
    is_int((int)fake_keys_left(), 0, "r19: nor takes the lock");
    stands(FIRST, ((uint64_t)1 << 40) + released_us / MS, 0, 2);
    for (i = 0; i < 3; i++) {
        entry(i, FIRST)->answer_ms = 100000000;
        set_distance(i, MS);
        if (fake_nodes[i].hung)
            fake_resume(i);
        fake_nodes[i].hung = 0;
    }
    fake_pass(&client, 1300000 * MS);
    is_int(lock.status, REDLOCK_PENDING, "r19: when it can, it stands behind the others");
    is_int((int)in_queue(0), 2, "r19: in the queue");
    leaves(FIRST, 0, 2);
    released(0, 2);
    fake_pass(&client, 10 * MS);
    is_int(lock.status, REDLOCK_OK, "r19: and gets the lock");
}

/* No node answers for a time, again and again. */
static void r19_one_that_is_late_again_and_again(void)
{
    unsigned k;
    int i;

    set_fair(100);
    begin(3);
    warm_up();
    held_by(HOLDER, 0, 2);
    lock.ttl_ms = 1000;
    wait_for_it();
    for (k = 0; k < 7; k++) {
        fake_pass(&client, 5000 * MS);
        ok(lock.priv.fair.entered == 7 && lock.priv.fair.probes == 0,
           "r19: %u times late: it stands in the queue again", k);
        for (i = 0; i < 3; i++)
            fake_nodes[i].hung = 1;
        fake_pass(&client, 3000 * MS);
        is_int(lock.priv.fair.probes, k < 5 ? 1 << k : 16, "r19: late, so many probes follow");
        for (i = 0; i < 3; i++)
            fake_resume(i);
        fake_pass(&client, 5 * MS);
        ok(k == 0 || lock.priv.fair.entered == 0, "r19: it has left the queue");
        if (k < 4)
            continue;
        fake_pass(&client, 600 * MS); /* some probes have succeeded */
        fake_logged = 0;
        for (i = 0; i < 5; i++) {
            push_all(">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n");
            fake_pass(&client, 10 * MS);
        }
        ok(lock.priv.fair.probes > 0 && attempts(0, 1) <= 1,
           "r19: a notification hastens no probe: %u in 50 ms", attempts(0, 1));
    }
}

/* The nodes are 100 ms away, which is longer than a vote may take, and the client knows it. */
static void begin_too_far(void)
{
    int i;

    begin_fair(3);
    for (i = 0; i < 3; i++)
        set_distance(i, 100 * MS);
    lock.ttl_ms = 300;
    for (i = 0; i < 40; i++) {
        redlock_acquire_start(&client, &lock, 100);
        fake_pass(&client, 500 * MS);
    }
}

/* A round trip takes longer than a vote may. */
static void r19_one_that_is_too_far_asks_first(void)
{
    int i;

    begin_too_far();
    fake_logged = 0;
    redlock_acquire_start(&client, &lock, 60);
    fake_pass(&client, 10 * MS);
    is_int((int)attempts(0, 1), 1, "r19: it asks once");
    is_int((int)fake_keys_left(), 0, "r19: and does not take the lock, as its votes would be late");
    fake_pass(&client, 140 * MS);
    is_int(lock.status, REDLOCK_UNREACHABLE, "r19: it says so");
    for (i = 0; i < 3; i++)
        set_distance(i, MS);
    fake_logged = 0;
    is_int(acquire(1000), REDLOCK_OK, "r19: the way is short again: acquired");
    is_int((int)attempts(0, 1), 2, "r19: as soon as it knows");
    is_int(lock.priv.op.attempts, 1, "r19: what it asked before does not count as an attempt");
}

/* Three locks of one client: one holds the key, one probes, as its votes would be late, and one stands in the queue, behind two
   waiters of others. The servers do not notify the client of its own release: it notifies the one in the queue, although the other
   one has waited longer. */
static void r19_a_release_passes_over_one_that_probes(void)
{
    struct redlock_lock probing, queued;
    int i, before;

    begin_fair(3);
    for (i = 0; i < 3; i++)
        set_distance(i, 100 * MS);
    for (i = 0; i < 40; i++) {
        acquire(1000);
        release(1000);
    }
    is_int(acquire(1000), REDLOCK_OK, "r19: one has the lock");
    stands(FIRST, 1, 0, 2);
    stands(SECOND, 2, 0, 2);
    redlock_lock_init(&probing, "k", 300);
    redlock_lock_init(&queued, "k", 10000);
    redlock_acquire_start(&client, &probing, 3600000);
    fake_pass(&client, 150 * MS);
    redlock_acquire_start(&client, &queued, 3600000);
    fake_pass(&client, 150 * MS);
    is_int(probing.priv.fair.entered, 0, "r19: one probes");
    is_int(queued.priv.fair.entered, 7, "r19: one stands in the queue");
    before = queued.priv.op.attempts;
    redlock_release_start(&client, &lock, 1000);
    fake_pass(
        &client,
        400 * MS); /* the release takes 100 ms; by its own timer the waiter looks 450 ms after it */
    is_int(lock.status, REDLOCK_OK, "r19: released");
    ok(queued.priv.op.attempts > before, "r19: the one in the queue is notified, and asks");
    redlock_release(&client, &queued, 0);
    redlock_release(&client, &probing, 0);
    redlock_deinit(&client);
}

/* The wait ends behind a probe of a free lock. */
static void r19_a_probe_names_no_holder(void)
{
    char holder[50] = "";
    int i;

    begin_too_far();
    for (i = 0; i < 3; i++)
        set_distance(i, 30 * MS);
    lock.holder = holder;
    lock.holder_size = sizeof holder;
    is_int(acquire(20), REDLOCK_TIMEOUT, "r19: the wait is over when a probe is answered");
    ok(holder[0] == '\0', "r19: the lock is free: no holder, %s", holder);
    begin_fair(3);
    for (i = 0; i < 3; i++) {
        stands(FIRST, 1, i, i);
        entry(i, FIRST)->answer_ms = 1000;
    }
    lock.holder = holder;
    lock.holder_size = sizeof holder;
    is_int(acquire(20), REDLOCK_TIMEOUT, "r19: somebody stands in front");
    ok(holder[0] == '\0', "r19: no holder, %s", holder);
}

/* By their clocks it began to wait at three different moments: the attempt reaches the nodes one after the other. */
static void r19_the_moment_is_the_median(const int *order)
{
    uint64_t moments[3];
    int i;

    begin_fair(5);
    held_by(HOLDER, 0, 4);
    for (i = 0; i < 5; i++)
        fake_nodes[i].hung = 1;
    wait_for_it();
    for (i = 0; i < 3; i++) {
        fake_resume(order[i]);
        moments[i] = entry(order[i], NULL)->since;
        fake_pass(&client, 10 * MS);
    }
    ok(moments[0] < moments[1] && moments[1] < moments[2], "r19: three moments");
    tell(&lock, 0, 2);
    fake_pass(&client, 5 * MS);
    for (i = 0; i < 3; i++)
        ok(entry(i, NULL)->since == moments[1], "r19: the one in the middle counts, node %d", i);
}

static void r19_a_lease_lasts_for_three_pauses(void)
{
    uint64_t left_us;

    set_fair(1000);
    begin(3);
    held_by(HOLDER, 0, 2);
    wait_for_it();
    left_us = entry(0, NULL)->leased_until_us - fake_now_us;
    ok(left_us > 3900 * MS && left_us <= 4000 * MS,
       "r19: a lease lasts for three pauses, and 1 s: %ld ms", (long)(left_us / MS));
}

static void r19_tokens_are_fresh(void)
{
    unsigned i, n = 0, same = 0;
    uint8_t name[8];
    const char *last = NULL;

    wait_behind(0, 3);
    memcpy(name, lock.priv.fair.name, sizeof name);
    for (i = 0; i < 5; i++) {
        released(0, 1);
        held_by(HOLDER, 0, 1);
        fake_pass(&client, 20 * MS);
    }
    for (i = 0; i < fake_logged; i++) {
        if (fake_log[i].kind != 'S' || fake_log[i].node != 0)
            continue;
        n++;
        same += last != NULL && memcmp(fake_log[i].token, last, 4) == 0;
        last = fake_log[i].token;
    }
    ok(n == 5 && same == 0, "r19 r01: %u attempts, each with another token", n);
    ok(memcmp(name, lock.priv.fair.name, sizeof name) == 0, "r19: all with the same name");
    ok(memcmp(name, lock.token, sizeof name) != 0, "r19: which is no part of the token");
    is_int((int)in_queue(0), 1, "r19: it stands there once");
}

/* Two nodes grant it, three refuse it. */
static void r19_a_rollback_puts_it_back(void)
{
    uint64_t began;

    begin_fair(5);
    held_by(HOLDER, 0, 4);
    wait_for_it();
    began = entry(0, NULL)->since;
    fake_pass(&client, 100 * MS);
    delete_on(0, 1);
    tell(&lock, 0, 4);
    fake_pass(&client, 10 * MS);
    is_int((int)fake_keys_left(), 3, "r19: our keys are gone again");
    is_int((int)in_queue(0), 1, "r19: it stands in the queue of a node that had granted it");
    ok(entry(0, NULL)->since == began, "r19: at its place");
    ok(entry(0, NULL)->leased_until_us > fake_now_us + 1000 * MS, "r19: with its lease");
}

/* ---- Who asks ------------------------------------------------------------------------------- */

/* From then on the client draws other random numbers for each `run`. */
static void skip_random(unsigned run)
{
    uint8_t unused;

    for (; run > 0; run--)
        fake_io()->entropy(NULL, &unused, 1);
}

static void r19_the_first_asks_at_once(void)
{
    unsigned i, late = 0;

    for (i = 0; i < 20; i++) {
        wait_behind(0, 5);
        skip_random(i);
        released(0, 2);
        fake_pass(&client, TWO_TRIPS);
        late += lock.status != REDLOCK_OK;
    }
    is_int((int)late, 0, "r19: the first waiter asks as soon as a quorum tells it, in 20 runs");
    wait_behind(0, 5);
    released(0, 1);
    fake_pass(&client, 1400);
    is_int((int)attempts(0, 1), 0, "r19: not before");
    fake_pass(&client, 2000);
    is_int((int)attempts(0, 1), 1, "r19: but one or two round trips later, if others tell nothing");
    wait_behind(0, 5);
    delete_on(0, 2);
    fake_pass(&client, TWO_TRIPS);
    is_int(lock.status, REDLOCK_OK, "r19: also when the lock expires, so that nobody tells it");
}

/* The nodes tell the waiter one after the other. If it drew a delay each time, nearly all runs would ask in the first half. */
static void r19_the_delay_is_drawn_once(void)
{
    unsigned i, soon = 0;
    int n;

    for (i = 0; i < 40; i++) {
        wait_behind(1, 5);
        skip_random(i);
        for (n = 0; n < 5; n++) {
            released(n, n);
            fake_pass(&client, 50);
        }
        fake_pass(&client, 2450);
        soon += attempts(0, 1);
    }
    ok(soon >= 10 && soon <= 30, "r19: %u of 40 ask in the first half of the round trip", soon);
}

static void r19_the_second_asks_later(void)
{
    unsigned i, early = 0;

    for (i = 0; i < 20; i++) {
        wait_behind(1, 3);
        skip_random(i);
        released(0, 2);
        fake_pass(&client, 2200);
        early += attempts(0, 1);
    }
    is_int((int)early, 0,
           "r19: the second waiter leaves the first one a round trip, and half a ms, in 20 runs");
    leaves(FIRST, 0, 2);
    fake_pass(&client, 2500);
    is_int(lock.status, REDLOCK_OK, "r19: but one or two round trips later");
    wait_behind(1, 3);
    released(0, 2);
    held_by(FIRST, 0, 2);
    leaves(FIRST, 0, 2);
    fake_pass(&client, 6 * MS);
    is_int((int)attempts(0, 1), 1, "r19: the first one has it: one attempt, ");
    released(0, 2);
    fake_pass(&client, TWO_TRIPS);
    is_int(lock.status, REDLOCK_OK, "r19: which has told that it is the first now");
}

static void r19_one_far_behind_is_told(void)
{
    wait_behind(3, 3);
    delete_on(0, 2);
    held_by(FIRST, 0, 2);
    fake_pass(&client, 40 * MS);
    is_int((int)attempts(0, 1), 0, "r19: the fourth waiter does not ask when the lock changes");
    tell(&lock, 1, 1);
    fake_pass(&client, 10 * MS);
    is_int((int)attempts(0, 1), 1, "r19: it asks when a node tells it");
}

/* Another client has the key on node 0; the waiter is the first of all. */
static void r19_a_minority_is_no_obstacle(void)
{
    wait_behind(0, 3);
    released(1, 2);
    fake_pass(&client, TWO_TRIPS);
    is_int(lock.status, REDLOCK_OK, "r19: a quorum is free, and tells it");
}

/* Node 0 has three waiters in front of it, the others none. */
static void r19_the_longest_queue_counts(void)
{
    begin_fair(3);
    held_by(HOLDER, 0, 2);
    stands(FIRST, 1, 0, 0);
    stands(SECOND, 2, 0, 0);
    stands(THIRD, 3, 0, 0);
    wait_for_it();
    fake_logged = 0;
    delete_on(0, 2);
    fake_pass(&client, 40 * MS);
    is_int((int)attempts(0, 1), 0, "r19: the fourth waiter of one node is far behind on all");
}

/* The lock is taken again and again, by waiters in front that are alive. One that is far behind looks whether that is so, less and
   less often. It does so for a quorum of nodes only. */
static void r19_one_far_behind_looks(void)
{
    unsigned i;

    wait_behind(3, 3);
    delete_on(0, 0);
    fake_pass(&client, 1000 * MS);
    is_int((int)attempts(0, 1), 0,
           "r19: the key is gone on one node: the fourth waiter does not ask");
    for (i = 0; i < 80; i++) {
        delete_on(0, 2);
        held_by(i % 2 ? FIRST : SECOND, 0, 2);
        fake_pass(&client, 100 * MS);
        if (i == 3)
            is_int((int)attempts(0, 1), 0, "r19: on all: it leaves those in front 0.4 s");
        if (i == 4)
            is_int((int)attempts(0, 1), 1, "r19: then it asks");
    }
    ok(attempts(0, 1) >= 3 && attempts(0, 1) <= 5,
       "r19: the others have their turns: it asks %u times in 8 s", attempts(0, 1));
    fake_pass(&client, 20000 * MS);
    fake_logged = 0;
    fake_pass(&client, 100000 * MS);
    is_int((int)attempts(0, 1), 0, "r19: one of them has it for long: it does not ask");
}

/* The lock is free for long, and those in front have been notified: they are alive, but slow. */
static void r19_those_in_front_are_slow(void)
{
    int i;

    wait_behind(3, 3);
    for (i = 0; i < 3; i++) {
        entry(i, FIRST)->answer_ms = 60000;
        entry(i, SECOND)->answer_ms = 60000;
    }
    delete_on(0, 2);
    fake_pass(&client, 480 * MS);
    ok(attempts(0, 1) >= 2 && attempts(0, 1) <= 5,
       "r19: nobody has notified the first two: %u attempts", attempts(0, 1));
    fake_pass(&client, 6000 * MS);
    ok(attempts(0, 1) >= 8 && attempts(0, 1) <= 14,
       "r19: they have time to come: %u attempts in 6 s", attempts(0, 1));
    for (i = 0; i < 3; i++)
        entry(i, FIRST)->leased_until_us = entry(i, SECOND)->leased_until_us = fake_now_us;
    fake_pass(&client, 16000 * MS);
    is_int(lock.status, REDLOCK_OK, "r19: they are dead now: acquired");
}

/* It asked soon, because nobody had notified the first two; then one of them had the lock. */
static void r19_those_in_front_have_come(void)
{
    int i;

    wait_behind(3, 3);
    for (i = 0; i < 3; i++)
        entry(i, FIRST)->answer_ms = entry(i, SECOND)->answer_ms = 60000;
    delete_on(0, 2);
    fake_pass(&client, 455 * MS);
    ok(attempts(0, 1) >= 1, "r19: it looks");
    held_by(FIRST, 0, 2);
    fake_pass(&client, 50 * MS);
    fake_logged = 0;
    delete_on(0, 2);
    fake_pass(&client, 1500 * MS);
    is_int((int)attempts(0, 1), 1, "r19: then it looks once after the next release");
}

/* Those in front are dead. The first two were notified, the others have leases of seconds. */
static void r19_many_in_front_are_dead(void)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz";
    char name[17];
    unsigned k, i;
    uint64_t start;

    begin_fair(3);
    held_by(HOLDER, 0, 2);
    for (k = 0; k < 26; k++) {
        memset(name, letters[k], 16);
        stands(name, 1 + k, 0, 2);
    }
    wait_for_it();
    for (i = 0; i < 3; i++)
        entry((int)i, FIRST)->leased_until_us = entry((int)i, SECOND)->leased_until_us =
            fake_now_us;
    start = fake_now_us;
    fake_logged = 0;
    delete_on(0, 2);
    is_int(wait_for(&lock, 560 * MS), REDLOCK_OK, "r19: 26 in front are dead: acquired");
    ok(since(start) > 450 * MS, "r19: when they had time for their turns: after %ld ms",
       since(start) / 1000);
    ok(attempts(0, 1) <= 12, "r19: with %u attempts", attempts(0, 1));
}

/* The same, but one of them is alive: it was notified like the others, and came. */
static void r19_one_among_the_dead_is_alive(void)
{
    int i;

    wait_behind(3, 3);
    for (i = 0; i < 3; i++) {
        entry(i, FIRST)->leased_until_us = entry(i, SECOND)->leased_until_us = fake_now_us;
        entry(i, THIRD)->answer_ms = 100;
    }
    delete_on(0, 2);
    fake_pass(&client, 500 * MS);
    is_int((int)in_queue(0), 2, "r19: the dead are out, and the third one has time to come");
    is_int((int)entry(0, THIRD)->answer_ms, 0, "r19: it was notified");
    is_int(lock.status, REDLOCK_PENDING, "r19: the fourth one waits for it");
}

/* It asks for the first time when the lock is free, and those in front are dead. */
static void r19_a_newcomer_behind_the_dead(void)
{
    static const char *const names[] = {FIRST, SECOND, THIRD, FOURTH};
    int i, k;

    begin_fair(3);
    for (k = 0; k < 4; k++)
        stands(names[k], 1 + (uint64_t)k, 0, 2);
    for (i = 0; i < 3; i++)
        entry(i, FIRST)->leased_until_us = entry(i, SECOND)->leased_until_us = fake_now_us;
    redlock_acquire_start(&client, &lock, 20000);
    is_int(wait_for(&lock, 60 * MS), REDLOCK_OK, "r19: a newcomer finds a free lock: acquired");
    begin_fair(3);
    for (k = 0; k < 4; k++)
        stands(names[k], 1 + (uint64_t)k, 0, 2);
    for (i = 0; i < 3; i++)
        entry(i, FIRST)->answer_ms = entry(i, SECOND)->answer_ms = 0;
    redlock_acquire_start(&client, &lock, 20000);
    fake_pass(&client, 400 * MS);
    is_int((int)attempts(0, 1), 1, "r19: the first two have been notified: it asks once");
    for (i = 0; i < 3; i++)
        entry(i, FIRST)->leased_until_us = entry(i, SECOND)->leased_until_us = fake_now_us;
    is_int(wait_for(&lock, 150 * MS), REDLOCK_OK, "r19: but they do not come: it looks");
}

/* Two nodes refuse it and tell it, while the replies of the others are due; the third one does both at once. */
static void r19_told_while_it_asks(void)
{
    int i;

    begin_fair(5);
    held_by(HOLDER, 0, 4);
    for (i = 0; i < 5; i++)
        fake_nodes[i].hung = 1;
    wait_for_it();
    for (i = 0; i < 2; i++) {
        fake_resume(i);
        fake_pass(&client, 5 * MS);
        tell(&lock, i, i);
        fake_pass(&client, 5 * MS);
    }
    ok(lock.priv.attempt.asked != 0 && attempts(0, 1) == 1, "r19: its attempt has not failed yet");
    fake_resume(2);
    tell(&lock, 2, 2);
    fake_pass(&client, 1500);
    is_int((int)attempts(0, 1), 2, "r19: it asks again at once: three nodes have told it");
}

/* All nodes tell it while its next attempt is on the way to them, where it is refused after that. */
static void r19_told_before_the_reply(void)
{
    char lease[200], bytes[300];
    int i, round;

    wait_behind(0, 3);
    put_lease(lease, &lock);
    snprintf(bytes, sizeof bytes, ">2\r\n$10\r\ninvalidate\r\n*1\r\n$%u\r\n%s\r\n",
             (unsigned)strlen(lease), lease);
    for (i = 0; i < 3; i++)
        fake_nodes[i].hung = 1;
    for (round = 0; round < 2; round++) { /* the first time it asks */
        for (i = 0; i < 3; i++)
            push(i, bytes);
        fake_pass(&client, 2 * MS);
    }
    for (i = 0; i < 3; i++)
        fake_resume(i);
    fake_pass(&client, 40 * MS);
    is_int((int)attempts(0, 1), 1, "r19: refused after it was told: it does not ask again at once");
}

static void r19_told_for_nothing_for_long(void)
{
    unsigned i, before;

    wait_behind(0, 3);
    for (i = 0; i < 3; i++)
        fake_put((int)i, "k", HOLDER, 3600000);
    for (i = 0; i < 30; i++) {
        tell(&lock, 0, 2);
        fake_pass(&client, 10 * MS);
    }
    before = attempts(0, 1);
    ok(before >= 7 && before <= 16, "r19: it is told for nothing 30 times: %u attempts", before);
    fake_pass(&client, 700000 * MS); /* one attempt, after a pause */
    before = attempts(0, 1);
    tell(&lock, 0, 2);
    fake_pass(&client, 1100 * MS);
    is_int((int)(attempts(0, 1) - before), 1, "r19: after a pause it asks again within a second");
    for (i = 0; i < 12; i++) {
        delete_on(0, 2);
        held_by(i % 2 ? FIRST : SECOND, 0, 2);
        fake_pass(&client, 1100 * MS);
    }
    fake_logged = 0;
    for (i = 0; i < 3; i++) {
        tell(&lock, 0, 2);
        fake_pass(&client, 10 * MS);
    }
    is_int((int)attempts(0, 1), 3, "r19: others have had it: it asks at once when it is told");
}

/* The same, but others take the lock three times a second. */
static void r19_told_for_nothing_between_turns(void)
{
    unsigned i, k;

    set_fair(0);
    begin(3);
    held_by(HOLDER, 0, 2);
    wait_for_it();
    fake_logged = 0;
    for (i = 0; i < 30; i++) {
        for (k = 0; k < 3; k++)
            fake_put((int)k, "k", i % 2 ? FIRST : SECOND, 3600000);
        for (k = 0; k < 30; k++) {
            tell(&lock, 0, 2);
            fake_pass(&client, 10 * MS);
        }
    }
    ok(attempts(0, 1) >= 20 && attempts(0, 1) <= 90,
       "r19: told for nothing all the time, between turns: %u attempts in 9 s", attempts(0, 1));
}

/* Others take the lock all the time. */
static void r19_told_by_others_for_long(void)
{
    unsigned i, before, asked;

    wait_behind(0, 3);
    for (i = 0; i < 100; i++) {
        for (before = 0; before < 3; before++)
            fake_put((int)before, "k", i % 2 ? FIRST : SECOND, 3600000);
        tell(&lock, 0, 2);
        fake_pass(&client, 10 * MS);
    }
    is_int((int)attempts(0, 1), 24,
           "r19: it is told 100 times that another one has it: 24 attempts");
    for (i = asked = 0; i < 20; i++) { /* at once in one of three cases, at random */
        fake_pass(&client, 700000 * MS);
        before = attempts(0, 1);
        tell(&lock, 0, 2);
        fake_pass(&client, 10 * MS);
        asked += attempts(0, 1) > before;
    }
    ok(asked > 0, "r19: after a pause it asks again when it is told, %u times of %u", asked, i);
}

static void r19_told_for_nothing(void)
{
    unsigned i;

    set_fair(0);
    begin(3);
    held_by(HOLDER, 0, 2);
    wait_for_it();
    fake_logged = 0;
    for (i = 0; i < 1000; i++) { /* for 10 s */
        tell(&lock, 0, 2);
        fake_pass(&client, 10 * MS);
    }
    ok(attempts(0, 1) >= 22 && attempts(0, 1) <= 30,
       "r19: told for nothing all the time: %u attempts in 10 s", attempts(0, 1));
    delete_on(0, 2);
    fake_pass(&client, 2000 * MS);
    is_int(lock.status, REDLOCK_OK, "r19: it gets the lock in time");
}

/* The one in front never asks, but its lease does not end. */
static void r19_a_free_lock_is_asked_for_seldom(void)
{
    unsigned i;

    set_fair(0);
    begin(3);
    warm_up();
    stands(FIRST, 1, 0, 2);
    for (i = 0; i < 3; i++)
        fake_nodes[i].server.waiters[0].answer_ms = 1000000;
    redlock_acquire_start(&client, &lock, 3600000);
    fake_pass(&client, 10000 * MS);
    ok(attempts(0, 1) > 14 && attempts(0, 1) < 40, "r19: %u attempts in 10 s", attempts(0, 1));
    fake_logged = 0;
    tell(&lock, 0, 2);
    fake_pass(&client, 30 * MS);
    ok(attempts(0, 1) >= 3, "r19: when it is told, it comes back soon again: %u in 30 ms",
       attempts(0, 1));
}

/* So many waiters stand in front of it, 100 ms away, that a pause of 20 min would suffice for their turns. */
static void r19_a_long_queue(const char *place, int is_far)
{
    static char reply[80];
    int i;

    set_fair(LONG_PAUSE);
    settings.node_timeout_ms = 300;
    begin(3);
    sprintf(reply, "$%u\r\n", (unsigned)(sizeof "1700000000000  60000 " - 1 + strlen(place) + 4));
    sprintf(reply + strlen(reply), "1700000000000 %s 60000 abcd\r\n", place);
    for (i = 0; i < 3; i++)
        set_distance(i, 100 * MS);
    warm_up();
    for (i = 0; i < 3; i++)
        fake_nodes[i].reply = reply;
    redlock_acquire_start(&client, &lock, 3600000);
    fake_pass(&client, 500 * MS);
    for (i = 0; i < 3; i++)
        push(i, ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n");
    fake_logged = 0;
    fake_pass(&client, 1000 * MS);
    is_int((int)attempts(0, 1), !is_far, "r19: behind %s others: whether it heeds the lock", place);
    fake_pass(&client, 910000 * MS);
    ok(attempts(0, 1) >= 1, "r19: it asks after 15 min at the latest");
}

/* At its first attempt a waiter does not know that so many stand in front, so its lease is short. It asks before that is over. */
static void r19_a_lease_outlasts_the_first_pause(void)
{
    static const char reply[] = "$29\r\n1700000000000 1000 60000 abcd\r\n";
    int i;

    set_fair(1000);
    begin(3);
    warm_up();
    for (i = 0; i < 3; i++)
        fake_nodes[i].reply = reply;
    redlock_acquire_start(&client, &lock, 3600000);
    fake_pass(&client, 10 * MS);
    fake_logged = 0;
    fake_pass(&client, 3900 * MS);
    is_int((int)attempts(0, 1), 1, "r19: behind 1,000 others: it renews its first lease of 4 s");
    fake_pass(&client, 6000 * MS);
    is_int((int)attempts(0, 1), 1, "r19: the second one lasts longer");
}

static void r19_no_pause_has_a_floor(void)
{
    set_fair(REDLOCK_NONE);
    settings.retry_delay_max_ms = 1;
    begin(3);
    held_by(HOLDER, 0, 2);
    redlock_acquire_start(&client, &lock, 3600000);
    fake_pass(&client, 1000 * MS);
    ok(attempts(0, 1) < 125, "r19: without pauses: %u attempts in a second", attempts(0, 1));
}

/* Redis 6.0 also notifies the client whose script changed a key: here its own lease, at each attempt. */
static void r19_an_old_server_keeps_no_queue(void)
{
    int i;

    set_fair(100);
    begin(3);
    for (i = 0; i < 3; i++)
        fake_nodes[i].server.tells_caller = 1;
    held_by(HOLDER, 0, 2);
    wait_for_it();
    fake_pass(&client, 5000 * MS);
    ok(attempts(0, 1) == 0 && attempts(0, 0) > 3, "r19: Redis 6.0 is asked without the gate");
    delete_on(0, 2);
    fake_pass(&client, 20 * MS);
    is_int(lock.status, REDLOCK_OK, "r19: and notifies as without a queue");
}

/* The longest key: its lease key must be known to the end. A lease of another waiter differs only there. */
static void r19_long_keys(void)
{
    static char key[REDLOCK_KEY_MAX + 1];
    struct redlock_lock other;
    unsigned size = sizeof key - 1;
    int i, fits = size + 22 <= RESP_TEXT_MAX &&
                  size + 22 <= sizeof fake_nodes[0].session.tracked[0].bytes;

    memset(key, 'x', size);
    begin_fair(3);
    for (i = 0; i < 3 && fits; i++)
        mini_store(&fake_nodes[i].server, (struct mini_word){key, size},
                   (struct mini_word){HOLDER, sizeof HOLDER - 1}, UINT64_MAX);
    redlock_lock_init(&lock, key, 10000);
    if (!fits)
        return;
    wait_for_it();
    fake_logged = 0;
    other = lock;
    other.priv.fair.name[7] ^= 1;
    for (i = 0; i < 3; i++) { /* as if it had read that lease */
        char lease[200];
        put_lease(lease, &other);
        fake_nodes[i].session.tracked[30].size = (unsigned)strlen(lease);
        memcpy(fake_nodes[i].session.tracked[30].bytes, lease, strlen(lease));
    }
    tell(&other, 0, 2);
    fake_pass(&client, 10 * MS);
    is_int((int)attempts(0, 1), 0, "r19: a long key: the lease of another waiter is not its own");
    tell(&lock, 0, 2);
    fake_pass(&client, 10 * MS);
    is_int((int)attempts(0, 1), 1, "r19: its own lease is");
}

/* A lock with several keys waits in no queue: the client's waiter in the queue does not take its notification. */
static void r19_beside_a_lock_without_queue(void)
{
    static const struct redlock_key more[] = {{"l", 1}};
    struct redlock_lock second;

    wait_behind(3, 3);
    redlock_lock_init(&second, "k", 10000);
    set_extra_keys(&second, more, 1);
    redlock_acquire_start(&client, &second, 3600000);
    fake_pass(&client, 100 * MS);
    is_int(second.status, REDLOCK_PENDING, "r19: a lock with two keys waits, too");
    fake_logged = 0;
    delete_on(0, 2);
    fake_pass(&client, 20 * MS);
    is_int(second.status, REDLOCK_OK, "r19: it is acquired");
    is_int((int)attempts(0, 1), 0, "r19: the one far behind in the queue does not ask");
}

/* Two nodes are gone when it asks: this is no matter of turns. */
static void r19_without_a_quorum(void)
{
    set_fair(LONG_PAUSE);
    settings.retry_delay_ms = 20;
    settings.retry_growth_pct = 10;
    begin(3);
    warm_up();
    held_by(HOLDER, 0, 2);
    wait_for_it();
    make_unreachable(1);
    make_unreachable(2);
    lock.priv.fair.told_here = 1;
    tell(&lock, 0, 2);
    fake_pass(&client, 1000 * MS);
    fake_logged = 0;
    fake_pass(&client, 1000 * MS);
    ok(attempts(0, 1) > 3 && attempts(0, 1) < 50,
       "r19: without a quorum it pauses as without a queue: %u attempts", attempts(0, 1));
}

/* FLUSHALL: the keys of waiters are gone, too. */
static void r19_all_keys_are_gone(int fair)
{
    int i;

    set_fair(LONG_PAUSE);
    settings.fair = (uint32_t)fair;
    begin(3);
    held_by(HOLDER, 0, 2);
    wait_for_it();
    for (i = 0; i < 3; i++) {
        memset(fake_nodes[i].server.waiters, 0, sizeof fake_nodes[i].server.waiters);
        fake_nodes[i].server.used = 0;
        push(i, ">2\r\n$10\r\ninvalidate\r\n_\r\n");
    }
    fake_pass(&client, 10 * MS);
    is_int(lock.status, REDLOCK_OK, "r19 r07: FLUSHALL wakes a waiter, fair %d", fair);
}

/* ---- Those that give up --------------------------------------------------------------------- */

static void r19_all_that_give_up_leave(void)
{
    int i;
    unsigned logged;

    wait_behind(0, 3);
    is_int((int)in_queue(0), 1, "r19: it waits");
    redlock_cancel(&client, &lock);
    fake_pass(&client, 5 * MS);
    is_int((int)in_queue(0), 0, "r19: cancelled: it leaves the queue");
    wait_behind(0, 3);
    fake_now_us += 3000 * MS;
    logged = fake_logged;
    is_int(redlock_release_start(&client, &lock, 1000), REDLOCK_PENDING, "r19: released");
    is_int((int)fake_logged, (int)logged, "r19: a start sends nothing");
    fake_pass(&client, 5 * MS);
    is_int((int)in_queue(0), 0, "r19: released while it waits: it leaves the queue");
    is_int(nodes[0].state, REDLOCK_NODE_READY, "r19: also when the client was not served for long");
    wait_behind(0, 3);
    tell(&lock, 0, 2);
    fake_pass(&client, 1200); /* its attempt is under way */
    redlock_cancel(&client, &lock);
    fake_pass(&client, 5 * MS);
    is_int(lock.status, REDLOCK_CANCELLED, "r19: cancelled while it asks");
    is_int((int)in_queue(0), 0, "r19: it leaves the queue");
    begin_fair(3);
    held_by(HOLDER, 0, 2);
    is_int(acquire(100), REDLOCK_TIMEOUT, "r19: the wait is over");
    fake_pass(&client, 5 * MS);
    is_int((int)in_queue(0), 0, "r19: it leaves the queue, too");
    set_fair(LONG_PAUSE);
    settings.retries = 2;
    begin(3);
    held_by(HOLDER, 0, 2);
    wait_for_it();
    for (i = 0; i < 3; i++) {
        tell(&lock, 0, 2);
        fake_pass(&client, 20 * MS);
    }
    is_int(lock.status, REDLOCK_HELD, "r19: all attempts are used up");
    is_int((int)in_queue(0), 0, "r19: it leaves the queue, too");
}

static int begun, used_io; /* calls of an I/O table since `begun` */

static int counting_transmit(void *context, struct redlock_node *node, const void *bytes,
                             size_t size)
{
    used_io += begun;
    return fake_io()->transmit(context, node, bytes, size);
}

static int counting_entropy(void *context, void *bytes, size_t size)
{
    used_io += begun;
    return fake_io()->entropy(context, bytes, size);
}

/* The sockets accept nothing, and the buffer is full: what sends would try to make room at once. */
static void r19_a_start_only_writes_into_memory(void)
{
    static struct redlock_lock more[200], second, third;
    struct redlock_io io = *fake_io();
    unsigned i;

    wait_behind(0, 3);
    redlock_lock_init(&second, "k", 10000);
    redlock_lock_init(&third, "n", 10000);
    redlock_acquire_start(&client, &second, 60000);
    fake_pass(&client, 10 * MS);
    for (i = 0; i < 3; i++)
        fake_nodes[i].full = 1;
    for (i = 0; i < 200 && !client.priv.jammed; i++) {
        redlock_lock_init(&more[i], "m", 10000);
        redlock_acquire_start(&client, &more[i], 0);
        redlock_tick(&client);
    }
    ok(client.priv.jammed || REDLOCK_SEND_MAX > 8000, "r19: the send buffer is full");
    io.transmit = counting_transmit;
    io.entropy = counting_entropy;
    client.priv.io = &io;
    begun = 1;
    redlock_release_start(&client, &lock, 1000);
    redlock_cancel(&client, &second);
    redlock_release_start(&client, &second, 0);
    redlock_release_start(&client, &more[0], 1000);
    redlock_acquire_start(&client, &third, 1000);
    is_int(used_io, 0, "r19: a start, or a cancel, calls nothing of the I/O table but the clock");
    redlock_tick(&client);
    ok(used_io > 0, "r19: the next tick does");
    for (i = 0; i < 3; i++)
        fake_nodes[i].full = 0;
    fake_pass(&client, 200 * MS);
    is_int((int)in_queue(0), 0, "r19: both have left the queue");
    begun = 0;
    redlock_deinit(&client);
}

/* Node 1 is in its handshake, for another lock, when the waiter gives up. */
static void r19_it_leaves_the_nodes_that_are_ready(void)
{
    struct redlock_lock other;

    wait_behind(0, 3);
    fake_break(1);
    fake_nodes[1].delay_us = 20 * MS;
    fake_pass(&client, 1 * MS);
    redlock_lock_init(&other, "m", 10000);
    redlock_acquire_start(&client, &other, 0);
    fake_pass(&client, 5 * MS);
    is_int(nodes[1].state, REDLOCK_NODE_HANDSHAKE, "r19: a node is in its handshake");
    redlock_cancel(&client, &lock);
    fake_pass(&client, 5 * MS);
    ok(in_queue(0) == 0 && in_queue(2) == 0, "r19: the waiter leaves the queues of the others");
    fake_pass(&client, 100 * MS);
    is_int(other.status, REDLOCK_OK, "r19: the other lock is acquired");
    is_int((int)fake_count(1, 'D'), 0, "r19: that node was sent nothing");
}

/* What a waiter does that is told and gives up. */
enum { BEFORE_IT_ASKS, WHILE_IT_ASKS, WHILE_IT_WAITS_FOR_OTHERS };

/* Two locks of the client wait, one of another client between them, and one behind. The one that is told gives up: the other one must
   not wait for its pause. */
static void r19_a_hand_off_is_passed_on(int releases, int when)
{
    static const char *const whens[] = {"before it asks", "while it asks", "when it was refused"};
    struct redlock_lock second;
    unsigned asked;

    begin_fair(3);
    held_by(HOLDER, 0, 2);
    wait_for_it();
    stands(SECOND, entry(0, NULL)->since + 1, 0, 2); /* it never asks */
    fake_pass(&client, 10 * MS);
    redlock_lock_init(&second, "k", 10000);
    redlock_acquire_start(&client, &second, 60000);
    fake_pass(&client, 20 * MS);
    if (when == WHILE_IT_WAITS_FOR_OTHERS) {
        stands(FIRST, 1, 0, 2);
        stands(FOURTH, 2, 0, 2);
    }
    stands(THIRD, UINT64_MAX / 2, 0, 2);
    entry(0, THIRD)->answer_ms = 1000;
    released(0, 2);
    fake_pass(&client, 1000);
    for (asked = 0; when != BEFORE_IT_ASKS && attempts(2, 1) == 0 && asked < 100; asked++)
        fake_pass(&client, 20);
    if (when == WHILE_IT_WAITS_FOR_OTHERS)
        fake_pass(&client, 1500);
    leaves(FIRST, 0, 2);
    leaves(FOURTH, 0, 2);
    if (releases)
        redlock_release(&client, &lock, 0);
    else
        redlock_cancel(&client, &lock);
    fake_pass(&client, 40 * MS);
    is_int(second.status, REDLOCK_OK, "r19: the other one gets the lock: %s %s",
           releases ? "released" : "cancelled", whens[when]);
    redlock_release(&client, &second, 1000);
    is_int((int)in_queue(0), 1, "r19: both have left the queue");
    is_int((int)entry(0, THIRD)->answer_ms, 0, "r19: the third one is told");
    redlock_deinit(&client);
}

/* Delivers what is under way to the client, which is served only behind that. */
static void deliver(void)
{
    unsigned i;

    fake_now_us += 2 * MS;
    for (i = 0; i < 3; i++)
        redlock_handle_events(&client, i, REDLOCK_READABLE);
}

/* Between two waiters of the client stood another one. The first gives up between what tells it and its next step: by servers, or by the holder, which is a
   lock of the same client. */
static void r19_given_up_as_it_is_told(int here)
{
    struct redlock_lock holder, second;

    begin_fair(3);
    redlock_lock_init(&holder, "k", 10000);
    if (here)
        redlock_acquire(&client, &holder, 0);
    else
        held_by(HOLDER, 0, 2);
    stands(SECOND, 1, 0, 2); /* the first two are those that servers tell */
    stands(THIRD, 2, 0, 2);
    wait_for_it();
    stands(FIRST, entry(0, NULL)->since + 1, 0, 2);
    redlock_lock_init(&second, "k", 10000);
    redlock_acquire_start(&client, &second, 60000);
    fake_pass(&client, 20 * MS);
    leaves(FIRST, 0, 2);
    leaves(SECOND, 0, 2);
    leaves(THIRD, 0, 2);
    if (here) {
        redlock_release_start(&client, &holder, 1000);
        redlock_tick(&client);
    } else {
        released(0, 2);
    }
    deliver();
    redlock_cancel(&client, &lock);
    fake_pass(&client, 12 * MS);
    is_int(lock.status, REDLOCK_CANCELLED, "r19: cancelled as it is told");
    is_int(second.status, REDLOCK_OK, "r19: the other one gets the lock, here %d", here);
}

/* The first two waiters of a client give up before they have heard that the lock is free. */
static void r19_two_give_up_before_they_are_told(void)
{
    struct redlock_lock second, third;

    begin_fair(3);
    held_by(HOLDER, 0, 2);
    wait_for_it();
    redlock_lock_init(&second, "k", 10000);
    redlock_lock_init(&third, "k", 10000);
    redlock_acquire_start(&client, &second, 60000);
    fake_pass(&client, 20 * MS);
    redlock_acquire_start(&client, &third, 60000);
    fake_pass(&client, 20 * MS);
    released(0, 2);
    redlock_cancel(&client, &lock);
    redlock_cancel(&client, &second);
    fake_pass(&client, 12 * MS);
    is_int(third.status, REDLOCK_OK, "r19: two give up: the third one gets the lock");
    redlock_deinit(&client);
}

/* ---- The holder ----------------------------------------------------------------------------- */

static void r19_a_release_tells_the_first_two(void)
{
    begin_fair(3);
    is_int(acquire(1000), REDLOCK_OK, "r19: held");
    stands(FIRST, 1, 0, 2);
    stands(SECOND, 2, 0, 2);
    stands(THIRD, 3, 0, 2);
    entry(0, FIRST)->leased_until_us = fake_now_us;
    is_int(release(1000), REDLOCK_OK, "r19: released");
    is_int((int)in_queue(0), 2, "r19: the dead one is out");
    ok(entry(0, SECOND)->answer_ms == 0 && entry(0, THIRD)->answer_ms == 0,
       "r19: the two behind it are told");
    ok(entry(1, FIRST)->answer_ms == 0 && entry(1, THIRD)->answer_ms == 5,
       "r19: elsewhere the first two are");
    is_int((long)(entry(1, FIRST)->leased_until_us - fake_now_us) / MS, 4,
           "r19: their leases end when they had time to ask");
    begin_fair(3);
    is_int(acquire(0), REDLOCK_OK, "r19: held, by a client that did not wait");
    stands(FIRST, 1, 0, 2);
    is_int(release(0), REDLOCK_UNCONFIRMED, "r19: released, without a wait");
    is_int((int)entry(0, FIRST)->answer_ms, 0, "r19: that tells, too");
}

static void r19_a_lost_lock_is_released(void)
{
    begin_fair(3);
    is_int(acquire(0), REDLOCK_OK, "r19: held");
    stands(FIRST, 1, 0, 2);
    held_by(HOLDER, 0, 2);
    is_int(release(1000), REDLOCK_LOST, "r19: another client has taken it: the release says so");
    is_int((int)entry(0, FIRST)->answer_ms, 5, "r19: and tells nobody");
    is_int(nodes[0].state, REDLOCK_NODE_READY, "r19: the node is not disconnected");
}

/* Node 2 does not answer the release, and is sent it again later. */
static void r19_a_repeated_release_leaves(void)
{
    begin_fair(3);
    held_by(HOLDER, 2, 2);
    is_int(acquire(1000), REDLOCK_OK, "r19: held by two of three");
    fake_pass(&client, 10 * MS);
    is_int((int)in_queue(2), 1, "r19: it stands in the queue of the third");
    fake_nodes[2].reply = "-BUSY Redis is busy\r\n";
    is_int(release(100), REDLOCK_OK, "r19: released");
    fake_pass(&client, 100 * MS);
    fake_nodes[2].reply = NULL;
    fake_pass(&client, 3000 * MS);
    is_int((int)in_queue(2), REPEATS ? 0 : 1, "r19: the release that is repeated leaves it");
}

/* Node 0 has no free request: it is sent the release without being asked for its reply. */
/* A release that failed for a time is repeated when the lock is the caller's again. The server does not notify the client that
   has sent it. */
static void r19_a_repeated_release_notifies_its_client(int fair)
{
    static struct redlock_lock other;
    int i;

    set_fair(LONG_PAUSE);
    settings.fair = (uint32_t)fair;
    begin(3);
    warm_up();
    is_int(acquire(1000), REDLOCK_OK, "r19: held");
    redlock_lock_init(&other, "k", 10000);
    redlock_acquire_start(&client, &other, 3600000);
    fake_pass(&client, 10 * MS);
    client.priv.refuse_hashes = client.priv.all; /* a hash would be followed by the script */
    for (i = 0; i < 3; i++) {
        fake_nodes[i].reply = "-BUSY Redis is busy\r\n";
        fake_nodes[i].reply_once = 1;
    }
    is_int(release(0), REDLOCK_UNCONFIRMED, "r19: the servers are busy: not released");
    is_int(wait_for(&other, 1000 * MS), REPEATS ? REDLOCK_OK : REDLOCK_PENDING,
           "r19: fair %d: the release is repeated, and a waiter of this client has the lock", fair);
}

static void r19_a_release_without_a_reply_tells(void)
{
    begin_fair(1);
    is_int(acquire(1000), REDLOCK_OK, "r19: held");
    stands(FIRST, 1, 0, 0);
    stands(SECOND, 2, 0, 0);
    stands(THIRD, 3, 0, 0);
    client.priv.full = 1;
    is_int(release(0), REDLOCK_UNCONFIRMED,
           "r19: the node has no free request: released, without a reply");
    fake_pass(&client, 10 * MS);
    is_int((int)fake_keys_left(), 0, "r19: the key is gone");
    ok(entry(0, FIRST)->answer_ms == 0 && entry(0, SECOND)->answer_ms == 0,
       "r19: the first two are told");
}

/* Node 0 answers late, and has no free request: a rollback without a reply puts the waiter back, too. */
static void r19_a_rollback_without_a_reply_puts_it_back(void)
{
    begin_fair(3);
    held_by(HOLDER, 0, 2);
    fake_nodes[0].hung = 1;
    redlock_acquire_start(&client, &lock, 3600000);
    redlock_tick(&client);
    client.priv.full = 1;
    fake_pass(&client, 10 * MS);
    fake_resume(0);
    fake_pass(&client, 10 * MS);
    ok(in_queue(0) == 1 && in_queue(1) == 1, "r19: it stands in the queues of both nodes");
    redlock_deinit(&client);
}

/* The key has changed hands while two locks of the client stand far behind in the queue. Nobody meant one of these, so when it gives
   up it tells the other one nothing. */
static void r19_one_far_behind_tells_nobody(void)
{
    struct redlock_lock other;

    wait_behind(2, 3);
    redlock_lock_init(&other, "k", 10000);
    redlock_acquire_start(&client, &other, 3600000);
    fake_pass(&client, 10 * MS);
    delete_on(0, 2);
    held_by(HOLDER, 0, 2);
    fake_pass(&client, 10 * MS); /* 36 ms later both look whether those in front are dead */
    fake_logged = 0;
    redlock_cancel(&client, &lock);
    fake_pass(&client, 20 * MS);
    is_int((int)lock.status, REDLOCK_CANCELLED, "r19: a waiter far behind gives up");
    is_int((int)attempts(0, 1), 0, "r19: which tells the other one nothing");
    redlock_release(&client, &other, 0);
    redlock_deinit(&client);
}

/* Two keys with the same hash: waiters are searched for by that. */
static void r19_other_keys_are_not_told(void)
{
    static const char held[] = "key-422789", another[] = "key-639192";
    struct redlock_lock other;

    is_int((long)rl_hash(held, 10, 10), (long)rl_hash(another, 10, 10), "r19: keys with one hash");
    begin_fair(3);
    redlock_lock_init(&lock, held, 10000);
    is_int(acquire(0), REDLOCK_OK, "r19: held");
    redlock_lock_init(&other, another, 10000);
    fake_put(0, another, HOLDER, 60000);
    fake_put(1, another, HOLDER, 60000);
    redlock_acquire_start(&client, &other, 60000);
    fake_pass(&client, 10 * MS);
    fake_logged = 0;
    release(1000);
    fake_pass(&client, 10 * MS);
    is_int((int)attempts(0, 1), 0, "r19: a release does not tell the waiter of another key");
}

static void r19_fencing(void)
{
    uint64_t token;

    begin_fair(3);
    set_use_fencing(&lock, 1);
    is_int(acquire(1000), REDLOCK_OK, "r19 r16: with a fencing token");
    token = lock.fencing_token;
    release(1000);
    held_by(HOLDER, 0, 2);
    wait_for_it();
    is_int((int)in_queue(0), 1, "r19 r16: it waits in the queue");
    released(0, 2);
    fake_pass(&client, 3 * MS);
    is_int(lock.status, REDLOCK_OK, "r19 r16: acquired");
    ok(lock.fencing_token > token, "r19 r16: the token has grown");
}

static void r19_the_holder_is_known(void)
{
    char holder[60];

    begin_fair(3);
    held_by(HOLDER, 0, 2);
    set_holder(&lock, holder, sizeof holder);
    redlock_acquire_start(&client, &lock, 60000);
    fake_pass(&client, 2 * MS);
    is_int((int)fake_count(0, 'D'), 0, "r19: a node that has refused it is sent no rollback");
    ok(strcmp(holder, HOLDER) == 0, "r19: the gate tells who has the lock: %s", holder);
    ok(lock.holder_left_ms > 59000 && lock.holder_left_ms <= 60000, "r19: and for how long");
}

/* ---- Nodes that cannot keep the queue ------------------------------------------------------- */

static void r19_without_permission(void)
{
    static struct redlock_lock other;
    int i;

    begin_fair(3);
    held_by(HOLDER, 0, 2);
    for (i = 0; i < 3; i++)
        fake_nodes[i].server.no_queue = 1;
    wait_for_it();
    is_int((int)in_queue(0), 0, "r19: no node keeps a queue");
    delete_on(0, 2);
    fake_pass(&client, 3 * MS);
    is_int(lock.status, REDLOCK_OK, "r19: a notification still leads to the lock");
    is_int(release(1000), REDLOCK_OK, "r19: and it is released");
    begin_fair(3);
    for (i = 0; i < 3; i++) {
        fake_nodes[i].reply = "-NOPERM No permissions to access a key\r\n";
        fake_nodes[i].reply_once = 1;
    }
    is_int(acquire(1000), REDLOCK_OK, "r19: the user may use the key of the lock only: acquired");
    ok(attempts(0, 1) == 1 && attempts(0, 0) == 1 && lock.priv.op.attempts == 1,
       "r19: without the gate, in the same attempt");
    begin_fair(3);
    warm_up();
    redlock_lock_init(&other, "other", 10000);
    client.priv.refuse_hashes = client.priv.all; /* a hash would be followed by the script first */
    for (i = 0; i < 3; i++)
        fake_nodes[i].reply = "-NOPERM No permissions to access a key\r\n";
    redlock_acquire_start(&client, &lock, 1000);
    redlock_acquire_start(&client, &other, 1000);
    redlock_tick(&client);
    for (i = 0; i < 3; i++)
        fake_nodes[i].reply = NULL;
    fake_pass(&client, 20 * MS);
    ok(lock.status == REDLOCK_OK && other.status == REDLOCK_OK,
       "r19: so with two locks whose gates are under way: %s, %s", redlock_strerror(lock.status),
       redlock_strerror(other.status));
    begin_fair(3);
    held_by(HOLDER, 0, 2);
    fake_nodes[0].reply = "-ERR unknown command\r\n";
    fake_nodes[1].reply = "-ERR unknown command\r\n";
    redlock_acquire_start(&client, &lock, 300);
    fake_pass(&client, 500 * MS);
    ok(lock.status != REDLOCK_PENDING, "r19: errors to all commands: it ends in time");
}

/* A key that is no lock is held; a server that is a replica for a moment, and a key that the user may not use, are denied. Other locks
   of the same connection still stand in the queue. `once`: only the gate is answered so. */
static void r19_an_error_of_one_lock(const char *error, int once, enum redlock_status status)
{
    struct redlock_lock bad;
    int i;

    begin_fair(3);
    redlock_lock_init(&bad, "bad", 10000);
    for (i = 0; i < 3; i++) {
        fake_nodes[i].reply = error;
        fake_nodes[i].reply_once = once;
    }
    is_int((int)redlock_acquire(&client, &bad, 10), status, "r19: %.10s: %s", error,
           redlock_strerror(status));
    for (i = 0; i < 3; i++)
        fake_nodes[i].reply = NULL;
    fake_pass(&client, 100 * MS);
    fake_logged = 0;
    held_by(HOLDER, 0, 2);
    wait_for_it();
    is_int(fake_nodes[0].connects, 1, "r19: the connection is the same");
    is_int((int)attempts(0, 0), 0, "r19: another lock does not pass the gate");
    is_int((int)in_queue(0), 1, "r19: it stands in the queue");
    redlock_deinit(&client);
}

/* A lock k:wait is a key like others. */
static void r19_another_key_is_left_alone(void)
{
    const struct mini_key *key;
    int i;

    begin_fair(3);
    held_by(HOLDER, 0, 2);
    for (i = 0; i < 3; i++)
        fake_put(i, "k:wait", "token", 60000);
    wait_for_it();
    is_int((int)in_queue(0), 0, "r19: no node keeps a queue");
    delete_on(0, 2);
    fake_pass(&client, 5 * MS);
    is_int(lock.status, REDLOCK_OK, "r19: acquired");
    is_int(release(1000), REDLOCK_OK, "r19: released");
    key = fake_find(0, "k:wait", 6);
    ok(key != NULL && key->until_us > fake_now_us + 59000 * MS, "r19: the other lock is untouched");
}

/* A node that does not notify would keep its waiters waiting: without permission, or because it does not know HELLO. */
static void r19_nodes_without_notification(int old)
{
    begin_fair(3);
    fake_nodes[2].server.no_pushes = !old;
    fake_nodes[2].server.old = old;
    fake_break(2);
    fake_pass(&client, 100 * MS);
    stands(FIRST, 1, 2, 2);
    held_by(HOLDER, 0, 2);
    wait_for_it();
    ok(attempts(1, 1) == 1 && attempts(2, 0) == 1 && attempts(2, 1) == 0,
       "r19: it passes the gate of the node that does not notify");
    released(0, 2);
    fake_pass(&client, 3 * MS);
    is_int(lock.status, REDLOCK_OK, "r19: two of three tell it");
    release(1000);
    leaves(FIRST, 2, 2);
    held_by(HOLDER, 0, 1);
    wait_for_it();
    ok(in_queue(0) == 1 && in_queue(2) == 0, "r19: its rollback does not enter there, either");
    fake_nodes[2].server.no_pushes = fake_nodes[2].server.old = 0;
    fake_break(2);
    fake_pass(&client, 10 * MS);
    fake_logged = 0;
    tell(&lock, 0, 1);
    fake_pass(&client, 20 * MS);
    ok(attempts(0, 1) == 1 && attempts(2, 1) == 1, "r19: another connection notifies: the gate");
}

/* The gate refuses with a text. */
static void r19_nonsense(void)
{
    begin_fair(3);
    held_by(HOLDER, 1, 2);
    fake_nodes[0].reply = ":0\r\n";
    wait_for_it();
    ok(nodes[0].state != REDLOCK_NODE_READY && has_error(0, "unexpected reply"),
       "r19: 0 is no reply of the gate");
}

static void r19_reserved_keys(void)
{
    static const char *const reserved[] = {"k:wait", ":wait", "k:wait:0123456789abcdef"};
    static const char *const others[] = {"wait",
                                         "k:wait:",
                                         "k:wait:0123456789abcde",
                                         "k:wait:0123456789abcdeg",
                                         "k:wait:0123456789abcdef0",
                                         "k:waiting"};
    unsigned i;

    begin_fair(1);
    for (i = 0; i < sizeof reserved / sizeof *reserved; i++) {
        redlock_lock_init(&lock, reserved[i], 10000);
        is_int(acquire(0), REDLOCK_INVALID_ARGUMENT, "r19: %s is the key of a queue", reserved[i]);
        ok(has_invalid("key"), "r19: it says so");
    }
    for (i = 0; i < sizeof others / sizeof *others; i++) {
        redlock_lock_init(&lock, others[i], 10000);
        is_int(acquire(0), REDLOCK_OK, "r19: %s is not", others[i]);
        release(1000);
    }
    begin_with_defaults(1);
    redlock_lock_init(&lock, "k:wait", 10000);
    is_int(acquire(0), REDLOCK_OK, "r19: without `fair` it is a key like others");
}

/* ---- Times, and memory ---------------------------------------------------------------------- */

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

/* A waiter whose pause is over stands in line for connections when a server tells it. It stays there: else it would not see that
   they are up. */
static void r19_told_in_line(void)
{
    int i;

    set_fair(100);
    settings.stall_ms = 60000;
    begin(3);
    held_by(HOLDER, 0, 2);
    wait_for_it();
    for (i = 1; i < 3; i++) {
        fake_nodes[i].connect_us = 2000 * MS;
        fake_break(i);
    }
    fake_pass(&client, 1000 * MS);
    fake_logged = 0;
    tell(&lock, 0, 0);
    fake_pass(&client, 2000 * MS);
    ok(attempts(0, 1) > 0, "r19: a waiter that is told in line asks when the connections are up");
    redlock_release(&client, &lock, 0);
    redlock_deinit(&client);
}

/* After each of these the struct is the caller's. */
/* A waiter gives up while the send buffer is full. */
static void r19_leaves_when_there_is_room(void)
{
    static struct redlock_lock more[400];
    unsigned i;

    begin_fair(3);
    held_by(HOLDER, 0, 2);
    redlock_acquire_start(&client, &lock, 3600000);
    fake_pass(&client, 10 * MS);
    is_int((int)in_queue(0), 1, "r19: it waits");
    for (i = 0; i < 3; i++)
        fake_nodes[i].full = 1;
    for (i = 0; i < 400 && !client.priv.jammed; i++) {
        redlock_lock_init(&more[i], "m", 10000);
        redlock_acquire_start(&client, &more[i], 0);
        redlock_tick(&client);
    }
    redlock_cancel(&client, &lock);
    fake_pass(&client, 1 * MS);
    is_int(lock.status, REDLOCK_CANCELLED, "r19: cancelled at once");
    for (i = 0; i < 3; i++)
        fake_nodes[i].full = 0;
    fake_pass(&client, 500 * MS);
    is_int((int)(in_queue(0) + in_queue(1) + in_queue(2)), REPEATS ? 0 : 3,
           "r19: its name goes when there is room");
    redlock_deinit(&client);
}

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
        for (i = 0; i < 2; i++) { /* from both the replies to two attempts are due */
            tell(&lock, 0, 2);
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

/* The server does not notify the client that released the lock. `at_once`: one tick starts all waiters, so they have the same
   moment, and the servers sort them by their names. */
static void r19_locks_of_one_client(int at_once)
{
    enum { WAITERS = 20 };
    static struct redlock_lock many[WAITERS];
    unsigned i, done = 0, turns = 0, most = 0;

    begin_fair(3);
    is_int(acquire(0), REDLOCK_OK, "r19: a client holds the lock");
    for (i = 0; i < WAITERS; i++) {
        redlock_lock_init(&many[i], "k", 10000);
        redlock_acquire_start(&client, &many[i], 20000);
        fake_pass(&client, at_once ? 0 : 20 * MS);
    }
    fake_pass(&client, 20 * MS);
    fake_logged = 0;
    release(1000);
    for (; done < WAITERS && turns < 40; turns++) {
        fake_pass(&client, 8 * MS);
        for (i = 0; i < WAITERS && many[i].valid_until_us == 0; i++)
            continue;
        if (i == WAITERS || (!at_once && i != done))
            break;
        redlock_release(&client, &many[i], 1000);
        done++;
    }
    is_int((int)done, WAITERS,
           "r19: its other locks get it in the order in which they began to wait, in 8 ms each");
    for (i = 0; i < WAITERS; i++)
        most = many[i].priv.op.attempts > most ? many[i].priv.op.attempts : most;
    ok(most <= 3U + 2 * (unsigned)at_once, "r19: with few attempts each: %u", most);
}

/* The lock is released when the first attempt of another waiter is under way: its moment is not agreed on yet. */
static void r19_a_newcomer_of_one_client(void)
{
    struct redlock_lock first, second;

    begin_fair(3);
    is_int(acquire(0), REDLOCK_OK, "r19: a client holds the lock");
    redlock_lock_init(&first, "k", 10000);
    redlock_lock_init(&second, "k", 10000);
    stands(FIRST, 1, 0, 2);
    stands(SECOND, 2, 0, 2);
    redlock_acquire_start(&client, &first, 20000);
    fake_pass(&client, 20 * MS);
    leaves(FIRST, 0, 2); /* so it does not know that it is the first now */
    leaves(SECOND, 0, 2);
    redlock_acquire_start(&client, &second, 20000);
    redlock_tick(&client);
    is_int(release(0), REDLOCK_UNCONFIRMED, "r19: released, without a wait");
    fake_pass(&client, 8 * MS);
    is_int(first.status, REDLOCK_OK, "r19: the waiter gets it, and not the newcomer");
    redlock_deinit(&client);
}

/* A server has forgotten the script of the gate, or permits no hashes any more, and is sent the script at once. But if the other
   servers have decided before, nothing is sent: an extension would create the key there. */
static void r11_the_gate_by_hash(int denied)
{
    int late;

    for (late = 0; late < 2; late++) {
        begin_fair(3);
        is_int(acquire(1000), REDLOCK_OK, "r11: acquired");
        is_int(release(1000), REDLOCK_OK, "r11: released");
        fake_pass(&client, 20 * MS);
        fake_logged = 0;
        fake_nodes[2].server.scripts = 0;
        fake_nodes[2].server.no_native = denied;
        fake_nodes[2].delay_us = late ? 10 * MS : 0;
        is_int(acquire(1000), REDLOCK_OK, "r11: one of three servers %s",
               denied ? "permits no hashes" : "has forgotten the scripts");
        fake_pass(&client, 50 * MS);
        is_int((int)attempts(2, 1), late ? 1 : 2, "r11: %s",
               late ? "too late" : "the script itself");
        is_int((int)fake_count(2, 'E'), 0, "r11: and nothing else");
        is_int(nodes[2].priv.no_queue, 0, "r11: it keeps its queue");
        is_int(lock.members, late ? 0x3 : 0x7, "r11: the members");
        is_int(release(1000), REDLOCK_OK, "r11: released");
        fake_pass(&client, 50 * MS);
        is_int((int)fake_keys_left(), 0, "r11: no key is left");
    }
}

/* Servers that know no hashes: the script comes with the next attempt. In the same one it might run twice, because the gate may have
   run behind such an error. */
/* Servers that are far away have forgotten the script of the gate: the script has as much time for its reply as the hash. */
static void r11_a_far_gate_is_forgotten(void)
{
    int i;

    set_fair(100);
    begin(3);
    for (i = 0; i < 3; i++)
        set_distance(i, 100 * MS);
    for (i = 0; i < 20; i++) {
        acquire(5000);
        release(5000);
        fake_pass(&client, 300 * MS);
    }
    for (i = 0; i < 3; i++)
        fake_nodes[i].server.native = 4; /* knows no hash */
    is_int(acquire(5000), REDLOCK_OK, "r11: the gate is forgotten: acquired");
    is_int(lock.priv.op.attempts, 1, "r11: in one attempt");
    release(5000);
}

/* A server that runs another script for long refuses all commands, and says nothing of hashes. */
static void r11_a_busy_server_knows_hashes(void)
{
    begin_fair(1);
    is_int(acquire(1000), REDLOCK_OK, "r11: acquired");
    is_int(release(1000), REDLOCK_OK, "r11: released");
    is_int(acquire(1000), REDLOCK_OK, "r11: acquired");
    fake_nodes[0].reply = "-BUSY Redis is busy running a script\r\n";
    fake_nodes[0].reply_once = 1;
    is_int(release(1000), REDLOCK_OK, "r11: the server was busy: released");
    fake_logged = 0;
    is_int(acquire(1000), REDLOCK_OK, "r11: acquired");
    is_int(release(1000), REDLOCK_OK, "r11: released");
    is_int((int)fake_count(0, 'd'), 1, "r11: by the hash");
}

static void r11_a_gate_without_hashes(void)
{
    int i, n;

    set_fair(100);
    begin(3);
    for (i = 0; i < 3; i++)
        fake_nodes[i].server.no_hash = "-ERR unknown command 'EVALSHA'\r\n";
    for (n = 0; n < 4; n++) {
        is_int(acquire(1000), REDLOCK_OK, "r11: acquired");
        is_int(release(1000), REDLOCK_OK, "r11: released");
        is_int(lock.priv.op.attempts, n == 1 ? 2 : 1, "r11: one attempt more for the first hash");
        fake_pass(&client, 20 * MS);
    }
    is_int((int)fake_keys_left(), 0, "r11: no key is left");
}

/* The servers refuse the hash of a release without a wait. A waiter of the same client, which the servers do not tell, must not have
   asked before the script came. */
static void r11_a_hand_off_without_a_wait(int denied)
{
    static struct redlock_lock next;
    int i;

    begin_fair(3);
    is_int(acquire(0), REDLOCK_OK, "r11: held");
    redlock_lock_init(&next, "k", 10000);
    redlock_acquire_start(&client, &next, 60000);
    fake_pass(&client, 20 * MS);
    for (i = 0; i < 3; i++) {
        fake_nodes[i].server.scripts = 0;
        fake_nodes[i].server.no_native = denied;
    }
    is_int(release(0), REDLOCK_UNCONFIRMED, "r11: released without a wait");
    fake_pass(&client, 20 * MS);
    is_int(next.status, REDLOCK_OK, "r11: its waiter gets the lock, denied %d", denied);
    redlock_deinit(&client);
}

int main(void)
{
    static const int up[] = {0, 1, 2}, down[] = {2, 1, 0};
    int when;

    if (!REDLOCK_FAIR) {
        memset(&settings, 0, sizeof settings);
        settings.fair = 1;
        is_int(redlock_init(&client, fake_io(), nodes, 1, &settings), REDLOCK_INVALID_ARGUMENT,
               "r19: left out: the setting is refused");
        return done_testing();
    }
    if (RESP_TEXT_MAX < 1 + 22 + 20) { /* the key "k" has no queue */
        begin_fair(3);
        held_by(HOLDER, 0, 2);
        is_int(acquire(300), REDLOCK_TIMEOUT, "r19: a build that does not know whole lease keys");
        is_int((int)attempts(0, 1), 0, "r19: has no queue");
        return done_testing();
    }
    r11_the_gate_by_hash(0);
    r11_the_gate_by_hash(1);
    r11_a_gate_without_hashes();
    r11_a_far_gate_is_forgotten();
    r11_a_busy_server_knows_hashes();
    r11_a_hand_off_without_a_wait(0);
    r11_a_hand_off_without_a_wait(1);
    r19_only_waiters_enter();
    r19_nobody_waits();
    r19_newcomers_stand_behind();
    r19_a_dead_waiter_loses_its_place();
    r19_the_moment_is_agreed_on();
    r19_it_waits_since_its_call();
    r19_one_that_cannot_get_it_gives_up_its_place(0);
    r19_one_that_cannot_get_it_gives_up_its_place(1);
    r19_one_that_is_late_again_and_again();
    r19_one_that_is_too_far_asks_first();
    r19_a_release_passes_over_one_that_probes();
    r19_a_probe_names_no_holder();
    r19_the_moment_is_the_median(up);
    r19_the_moment_is_the_median(down);
    r19_a_lease_lasts_for_three_pauses();
    r19_tokens_are_fresh();
    r19_a_rollback_puts_it_back();
    r19_the_first_asks_at_once();
    r19_the_second_asks_later();
    r19_the_delay_is_drawn_once();
    r19_one_far_behind_is_told();
    r19_a_minority_is_no_obstacle();
    r19_the_longest_queue_counts();
    r19_one_far_behind_looks();
    r19_those_in_front_are_slow();
    r19_those_in_front_have_come();
    r19_a_newcomer_behind_the_dead();
    r19_many_in_front_are_dead();
    r19_one_among_the_dead_is_alive();
    r19_told_while_it_asks();
    r19_told_for_nothing();
    r19_told_before_the_reply();
    r19_told_for_nothing_for_long();
    r19_told_for_nothing_between_turns();
    r19_told_by_others_for_long();
    r19_a_free_lock_is_asked_for_seldom();
    r19_no_pause_has_a_floor();
    r19_an_old_server_keeps_no_queue();
    r19_long_keys();
    r19_a_long_queue("1", 0);
    r19_a_long_queue("65536", 1);
    r19_a_lease_outlasts_the_first_pause();
    r19_beside_a_lock_without_queue();
    r19_without_a_quorum();
    r19_all_keys_are_gone(0);
    r19_all_keys_are_gone(1);
    r19_all_that_give_up_leave();
    r19_a_start_only_writes_into_memory();
    r19_it_leaves_the_nodes_that_are_ready();
    for (when = BEFORE_IT_ASKS; when <= WHILE_IT_WAITS_FOR_OTHERS; when++) {
        r19_a_hand_off_is_passed_on(0, when);
        r19_a_hand_off_is_passed_on(1, when);
    }
    r19_given_up_as_it_is_told(0);
    r19_given_up_as_it_is_told(1);
    r19_two_give_up_before_they_are_told();
    r19_a_release_tells_the_first_two();
    r19_a_lost_lock_is_released();
    r19_a_repeated_release_leaves();
    r19_a_repeated_release_notifies_its_client(0);
    r19_a_repeated_release_notifies_its_client(1);
    r19_a_release_without_a_reply_tells();
    r19_a_rollback_without_a_reply_puts_it_back();
    r19_one_far_behind_tells_nobody();
    r19_other_keys_are_not_told();
    r19_fencing();
    r19_the_holder_is_known();
    r19_without_permission();
    r19_an_error_of_one_lock(
        "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n", 0,
        REDLOCK_TIMEOUT);
    r19_an_error_of_one_lock("-READONLY You can't write against a read only replica.\r\n", 1,
                             REDLOCK_DENIED);
    r19_an_error_of_one_lock("-NOPERM No permissions to access a key\r\n", 0, REDLOCK_DENIED);
    r19_another_key_is_left_alone();
    r19_nodes_without_notification(0);
    r19_nodes_without_notification(1);
    r19_nonsense();
    r19_reserved_keys();
    r19_the_wait_ends_in_time();
    r19_told_in_line();
    r19_leaves_when_there_is_room();
    r19_no_reply_goes_to_a_struct_that_is_the_callers();
    r19_locks_of_one_client(0);
    r19_locks_of_one_client(1);
    r19_a_newcomer_of_one_client();
    return done_testing();
}
