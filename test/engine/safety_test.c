/* safety_test.c - one test for each error that two independent reviews of the lock found, as a user would
   have seen it. Servers, network and clock are simulated. A test of a case that had no error says "regression
   test". "r08" is rule 8 in the head of redlock.c.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "one_lock.h"

enum { MANY = 3000 };

/* For the tests with many locks: one key per lock. */
static struct redlock_lock many[MANY];
static char many_keys[MANY][8];
static struct mini_key more_keys[3 * MANY];

/* Breaks the connection to node i, and refuses new ones. */
static void make_unreachable(int i)
{
    fake_nodes[i].refuses = 1;
    fake_break(i);
}

/* Both connecting to node i and a reply take `us`. */
static void set_distance(int i, uint64_t us)
{
    fake_nodes[i].connect_us = fake_nodes[i].delay_us = us;
}

/* Whether the key of `of` on node i contains the token of `of`. */
static int has_token(int i, const struct redlock_lock *of)
{
    const struct mini_key *key = fake_find(i, of->key, of->key_size);
    char token[2 * sizeof of->token + 1];
    unsigned n;

    for (n = 0; n < sizeof of->token; n++)
        sprintf(token + 2 * n, "%02x", of->token[n]);
    return key != NULL && key->value_size >= 2 * sizeof of->token &&
           memcmp(key->value, token, 32) ==
               0; /* behind it is the generation, which a repair changes */
}

static unsigned nodes_with(const struct redlock_lock *of)
{
    unsigned i, n = 0;

    for (i = 0; i < client.priv.count; i++)
        n += (unsigned)has_token((int)i, of);
    return n;
}

/* The number of nodes that would grant the lock to another client now. */
static unsigned nodes_free(void)
{
    unsigned i, n = 0;

    for (i = 0; i < client.priv.count; i++)
        n += fake_find((int)i, lock.key, lock.key_size) == NULL;
    return n;
}

/* Lets time pass until the validity ends. 0: before that a quorum of nodes was free, so another client could
   have acquired the lock. */
static int others_cannot_acquire(void)
{
    while (redlock_remaining_ms(&client, &lock) > 0) {
        if (nodes_free() >= client.priv.quorum)
            return 0;
        fake_pass(&client, 5 * MS);
    }
    return 1;
}

/* Sets up `lock` as one of `kind_names`. 0: this build lacks the feature. */
static int make_kind(unsigned kind)
{
    static const struct redlock_key other_key = {"l", 1};

    if (kind == 1 && (REDLOCK_MINIMAL || REDLOCK_KEY_MAX < 12))
        return 0;
    if (kind == 2 && REDLOCK_MINIMAL)
        return 0;
    set_extra_keys(&lock, kind == 1 ? &other_key : NULL, kind == 1);
    set_use_fencing(&lock, kind == 2);
    return 1;
}

static const char *const kind_names[] = {"one key", "two keys", "with a fencing token"};

/* ---- Commands that arrive late: R8, R9, R9 -------------------------------------------------- */

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
    is_int(acquire(0), REDLOCK_OK, "r08: %s: held on two of three", kind_names[kind]);
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

/* The key expires on nodes 0 and 2; only node 1 was extended. Another client holds the lock on nodes 0 and 2
   and releases it. Then a delayed command to node 2 creates our key there again. The result of the next
   extension. */
static int extended_after_another_had_it(void)
{
    unsigned i, sent;

    fake_pass(&client, 8000 * MS);
    make_unreachable(0);
    make_unreachable(2);
    ok(extend() != REDLOCK_OK && has_token(1, &lock), "r08: extended on one node only");
    fake_pass(&client, 2500 * MS);
    fake_nodes[0].refuses = fake_nodes[2].refuses = 0;
    is_int((int)redlock_remaining_ms(&client, &lock), 0, "r08: no validity is left");
    is_int((int)nodes_free(), 2, "r08: two nodes are free for another client");
    fake_put(0, "k", "other", 100);
    fake_put(2, "k", "other", 100);
    fake_pass(&client, 50 * MS);
    fake_delete(0, "k");
    fake_delete(2, "k");
    for (i = sent = 0; i < 4; i++)
        sent += fake_arrive(2);
    ok(sent > 0 && has_token(2, &lock), "r08: a delayed command creates our key again");
    return extend();
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
           kind_names[kind]);
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

/* ---- The key is on every healthy node: R2 ---------------------------------------------------- */

/* Whether any one node may lose its keys without a free quorum for another client. */
static int survives_an_empty_restart(const struct redlock_lock *of)
{
    return client.priv.count - nodes_with(of) + 1 < client.priv.quorum;
}

/* Serves the client until the operation of `one` has completed, for `us` at most. Its status. */
static int wait_for(struct redlock_lock *one, uint64_t us)
{
    uint64_t end_us = fake_now_us + us;
    struct redlock_lock *done;

    while (fake_now_us < end_us) {
        fake_pass(&client, 500);
        while ((done = redlock_next_completed(&client)) != NULL)
            if (done == one)
                return (int)done->status;
    }
    return REDLOCK_PENDING;
}

/* A new client, some nodes are farther away. If the client sent the SET only to the near nodes, it would hold
   a bare quorum. A second client could then acquire the lock when one node restarts without its keys. */
static void r02_a_new_client_locks_every_node(unsigned count, unsigned near, uint64_t near_us,
                                              uint64_t farther_us, int blocking)
{
    unsigned i;
    int status;

    begin_with_defaults(count);
    for (i = 0; i < count; i++)
        set_distance((int)i, i < near ? near_us : near_us + farther_us);
    if (blocking) {
        status = acquire(0);
    } else {
        redlock_acquire_start(&client, &lock, 0);
        status = wait_for(&lock, 1000 * MS);
        fake_pass(&client, 100 * MS);
    }
    is_int(status, REDLOCK_OK, "r02: held: %u nodes %d ms away, %u of them %d ms farther, %s",
           count, (int)(near_us / MS), count - near, (int)(farther_us / MS),
           blocking ? "blocking" : "by events");
    is_int((int)nodes_with(&lock), (int)count, "r02: on every node");
    ok(survives_an_empty_restart(&lock), "r02: one node may lose its keys");
    if (blocking) {
        fake_pass(&client, 100 * MS + near_us + farther_us);
        is_int(lock.members, (1 << count) - 1, "r02: all are members");
    }
}

static void r02_a_new_client(void)
{
    static const uint64_t near_us[] = {100, 1 * MS, 30 * MS, 90 * MS, 150 * MS};
    static const uint64_t farther_us[] = {6 * MS, 20 * MS};
    unsigned i, n;
    int blocking;

    for (i = 0; i < 5; i++)
        for (n = 0; n < 2; n++)
            for (blocking = 0; blocking < 2; blocking++) {
                r02_a_new_client_locks_every_node(3, 2, near_us[i], farther_us[n], blocking);
                r02_a_new_client_locks_every_node(5, 4, near_us[i], farther_us[n], blocking);
                r02_a_new_client_locks_every_node(5, 3, near_us[i], farther_us[n], blocking);
            }
}

/* An attempt does not wait long for a node that is down. A regression test. */
static void r02_a_short_wait_for_a_dead_node(void)
{
    uint64_t start;

    begin_with_defaults(3);
    fake_nodes[2].never_up = 1;
    start = fake_now_us;
    is_int(acquire(0), REDLOCK_OK, "r02: acquired, one node never connects");
    ok(since(start) <= 250 * MS, "r02: with one wait for its connection: %ld us", since(start));
    release(100);
    start = fake_now_us;
    is_int(acquire(0), REDLOCK_OK, "r02: acquired again");
    ok(since(start) <= 10 * MS, "r02: without a second wait: %ld us", since(start));
    begin_with_defaults(3);
    fake_nodes[2].refuses = 1;
    start = fake_now_us;
    is_int(acquire(0), REDLOCK_OK, "r02: acquired, one node refuses connections");
    ok(since(start) <= 10 * MS, "r02: without a wait: %ld us", since(start));
}

/* Sets up `count` locks of one minute with different keys, and room for these keys on each node. */
static void make_many(unsigned count)
{
    unsigned i;

    fake_unlogged = 1;
    for (i = 0; i < client.priv.count && (i + 1) * count <= 3 * MANY; i++) {
        fake_nodes[i].server.more = &more_keys[i * count];
        fake_nodes[i].server.more_room = count;
    }
    if (i < client.priv.count)
        mini_fail("no room for so many keys");
    memset(more_keys, 0, sizeof more_keys);
    for (i = 0; i < count; i++) {
        sprintf(many_keys[i], "k%04u", i);
        redlock_lock_init(&many[i], many_keys[i], strlen(many_keys[i]), 60000);
    }
}

/* Serves the client until `count` operations have completed, for `us` at most. How many completed with REDLOCK_OK. */
static unsigned serve_many(unsigned count, uint64_t us)
{
    uint64_t end_us = fake_now_us + us;
    unsigned ended = 0, good = 0;
    struct redlock_lock *done;

    while (ended < count && fake_now_us < end_us) {
        fake_pass(&client, 500);
        while ((done = redlock_next_completed(&client)) != NULL) {
            good += done->status == REDLOCK_OK;
            ended++;
        }
    }
    return good;
}

/* More locks at once than a queue has room for. A healthy node whose queue was full until the decision must
   still be sent the SET. */
static void r02_many_at_once_are_on_every_node(unsigned count, int warm)
{
    unsigned i, everywhere = 0, safe = 0;

    begin_with_defaults(5);
    if (warm)
        warm_up();
    for (i = 0; i < 5; i++)
        set_distance((int)i, warm ? (1 + i) * 500 : (1 + 3 * i) * MS);
    make_many(count);
    for (i = 0; i < count; i++)
        redlock_acquire_start(&client, &many[i], 20000);
    is_int((int)serve_many(count, 20000 * MS), (int)count, "r02: %u locks at once, %s: all held",
           count, warm ? "connected" : "on a new client");
    /* the slowest node needs this long with a queue of three commands */
    fake_pass(&client, (warm ? 1500 : 6000) * MS);
    for (i = 0; i < count; i++) {
        everywhere += nodes_with(&many[i]) == 5;
        safe += (unsigned)survives_an_empty_restart(&many[i]);
    }
    is_int((int)safe, (int)count, "r02: one node may lose its keys");
    is_int((int)everywhere, (int)count, "r02: each is on all five nodes");
    redlock_deinit(&client);
}

/* A node that comes back while the lock is held is sent the SET. Otherwise one restart without keys would be
   enough for a second holder. */
static void r02_a_node_that_comes_back_is_sent_the_set(int how)
{
    static const char *const hows[] = {"refused", "did not connect", "accepted no bytes"};

    begin_with_defaults(3);
    if (how == 2)
        warm_up();
    fake_nodes[2].refuses = how == 0;
    fake_nodes[2].never_up = how == 1;
    fake_nodes[2].full = how == 2;
    is_int(acquire(0), REDLOCK_OK, "r02: held on two of three, the third %s", hows[how]);
    fake_pass(&client, 600 * MS);
    fake_nodes[2].refuses = fake_nodes[2].never_up = fake_nodes[2].full = 0;
    fake_pass(&client, 4000 * MS);
    ok(has_token(2, &lock), "r02: the third has the key when it is back");
    is_int((int)fake_count(2, 'S'), 1, "r02: one SET was sent");
    is_int(lock.failed, 0, "r02: no node has failed any more");
    ok(survives_an_empty_restart(&lock), "r02: one node may lose its keys");
    is_int(extend(), REDLOCK_OK, "r02: extended");
    fake_pass(&client, 20 * MS);
    is_int(lock.members, 7, "r02: all are members");
    fake_restart(0);
    is_int(extend(), REDLOCK_OK, "r02: extended after the restart of another node");
    is_int(release(100), REDLOCK_OK, "r02: released");
    fake_pass(&client, 100 * MS);
    is_int((int)fake_keys_left(), 0, "r02: no key is left");
}

/* The same after an extension that failed because another node hung for a moment, after one that succeeded,
   and during auto-extension. */
static void r02_also_after_extensions(int what)
{
    static const char *const whats[] = {"a failed extension", "an extension",
                                        "automatic extensions"};

    begin_with_defaults(3);
    lock.ttl_ms = 30000;
    fake_nodes[2].refuses = 1;
    is_int(acquire(0), REDLOCK_OK, "r02: held on two of three");
    fake_pass(&client, 100 * MS);
    fake_nodes[1].hung = what == 0;
    if (what < 2)
        is_int(extend(), what == 0 ? REDLOCK_UNREACHABLE : REDLOCK_OK, "r02: extended");
    else
        redlock_auto_extend_start(&client, &lock, 100);
    fake_resume(1);
    fake_pass(&client, 100 * MS);
    fake_nodes[2].refuses = 0;
    fake_pass(&client, 4000 * MS);
    ok(has_token(2, &lock), "r02: the third has the key when it is back, after %s", whats[what]);
    if (what == 2)
        redlock_cancel(&client, &lock);
    fake_pass(&client, 10 * MS);
    redlock_next_completed(&client);
    is_int(release(100), REDLOCK_OK, "r02: released");
}

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

/* A node is not sent the SET after the lock has ended: the key would block other clients. A regression test. */
static void r02_not_after_its_end(int how)
{
    static const char *const hows[] = {"expired", "was released", "was abandoned", "was lost"};

    begin_with_defaults(3);
    lock.ttl_ms = 2000;
    fake_nodes[2].never_up = how < 2;
    fake_nodes[2].refuses = how >= 2;
    is_int(acquire(0), REDLOCK_OK, "r02: held on two of three");
    fake_pass(&client, 300 * MS);
    if (how == 1)
        release(0);
    if (how == 2)
        redlock_abandon(&client, &lock);
    if (how == 3) {
        fake_delete(0, "k");
        fake_delete(1, "k");
        held_by("other", 0, 1);
        is_int(extend(), REDLOCK_LOST, "r02: another client has it");
    }
    if (how == 0)
        fake_pass(&client, 2000 * MS);
    fake_nodes[2].refuses = fake_nodes[2].never_up = 0;
    fake_pass(&client, 4000 * MS);
    is_int((int)fake_count(2, 'S'), 0, "r02: the lock %s: no SET is sent to the third node",
           hows[how]);
}

/* A release at any moment while a node comes back. A regression test. */
static void r02_released_while_a_node_comes_back(void)
{
    unsigned us, left = 0;

    for (us = 0; us < 6000; us += 100) {
        begin_with_defaults(3);
        set_distance(2, 1 * MS);
        fake_nodes[2].never_up = 1;
        acquire(0);
        fake_pass(&client, 300 * MS);
        fake_nodes[2].never_up = 0;
        fake_pass(&client, us);
        release(us % 200 ? 100 : 0);
        fake_pass(&client, 4000 * MS);
        left += fake_keys_left();
    }
    is_int((int)left, 0, "r02: released at any moment, no key is left");
}

/* ---- Automatic extensions: R10, R11 ---------------------------------------------------------- */

/* Abandons `lock` and adopts it as `second`, with `remaining_ms` left. */
static void hand_off(struct redlock_lock *second, uint32_t remaining_ms)
{
    struct redlock_lock mine = lock;

    redlock_abandon(&client, &lock);
    redlock_lock_init(second, "k", 1, mine.ttl_ms);
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

/* The auto-extension of `lock` has ended with the status `how`, which redlock_next_completed has not reported yet. */
static void begin_ended(enum redlock_status how)
{
    int i;

    begin_with_defaults(3);
    lock.ttl_ms = 3000;
    is_int(acquire(0), REDLOCK_OK, "r11: held");
    fake_pass(&client, 10 * MS);
    redlock_auto_extend_start(&client, &lock, how == REDLOCK_EXTEND_LIMIT ? 1 : 100);
    if (how == REDLOCK_CANCELLED)
        redlock_cancel(&client, &lock);
    for (i = 0; how == REDLOCK_LOST && i < 3; i++) {
        fake_delete(i, "k");
        held_by("other", i, i);
    }
    fake_pass(&client, 2500 * MS);
    is_int((int)lock.status, (int)how, "r11: auto-extension has ended: %s",
           redlock_strerror((int)how));
}

/* After the release the memory is the caller's: the library neither writes to it nor follows pointers in it. */
static void memory_is_not_used_any_more(void)
{
    struct redlock_lock poison, next;

    memset(&poison, 0xa5, sizeof poison);
    memcpy(&lock, &poison, sizeof lock);
    redlock_lock_init(&next, "next", 4, 3000);
    redlock_acquire_start(&client, &next, 1000);
    is_int(wait_for(&next, 3000 * MS), REDLOCK_OK, "r11: another lock is acquired");
    is_int((int)redlock_release(&client, &next, 100), REDLOCK_OK, "r11: another lock is released");
    fake_pass(&client, 5000 * MS);
    ok(memcmp(&lock, &poison, sizeof lock) == 0,
       "r11: the memory of the released lock is unchanged");
    ok(redlock_next_completed(&client) == NULL, "r11: the released lock is not reported again");
    redlock_deinit(&client);
}

static void r11_released_before_the_end_is_reported(enum redlock_status how, int blocking)
{
    int status;

    begin_ended(how);
    if (blocking) {
        status = release(1000);
    } else {
        status = (int)redlock_release_start(&client, &lock, 1000);
        ok(status != REDLOCK_INVALID_ARGUMENT, "r11: a release is started");
        status = status == REDLOCK_PENDING ? wait_for(&lock, 2000 * MS) : status;
    }
    if (how == REDLOCK_LOST)
        ok(status == REDLOCK_LOST || status == REDLOCK_EXPIRED, "r11: released: %s",
           redlock_strerror(status));
    else
        is_int(status, REDLOCK_OK, "r11: released");
    fake_pass(&client, 50 * MS);
    is_int((int)nodes_with(&lock), 0, "r11: no key is left");
    is_int((int)redlock_remaining_ms(&client, &lock), 0, "r11: no validity is left");
    if (status == REDLOCK_INVALID_ARGUMENT || status == REDLOCK_PENDING)
        return; /* its memory is still the library's */
    memory_is_not_used_any_more();
}

/* A release that is not repeated, because the token is the caller's: replies that come later are dropped. R4 */
static void r11_released_without_waiting(void)
{
    unsigned i;

    begin_with_defaults(3);
    set_label(&lock, "mine", 4);
    set_token_is_label(&lock, 1);
    is_int(acquire(0), REDLOCK_OK, "r11: held, and the token is a label");
    fake_pass(&client, 10 * MS);
    for (i = 0; i < 3; i++)
        fake_nodes[i].delay_us = 20 * MS;
    is_int(release(0), REDLOCK_UNCONFIRMED, "r11: released without waiting for a reply");
    memory_is_not_used_any_more();
}

/* An extension and an acquire at that moment leave the lock in a state in which it can be released. */
static void r11_extended_before_the_end_is_reported(enum redlock_status how)
{
    int status;

    begin_ended(how);
    status = extend();
    ok(status == (how == REDLOCK_LOST ? REDLOCK_LOST : REDLOCK_OK) ||
           status == REDLOCK_INVALID_ARGUMENT,
       "r11: extended: %s", redlock_strerror(status));
    status = (int)redlock_acquire_start(&client, &lock, 0);
    ok(status == REDLOCK_ALREADY_HELD || status == REDLOCK_PENDING, "r11: acquired: %s",
       redlock_strerror(status));
    status = release(1000);
    ok(status == REDLOCK_OK || (how == REDLOCK_LOST && status != REDLOCK_INVALID_ARGUMENT),
       "r11: released: %s", redlock_strerror(status));
    fake_pass(&client, 50 * MS);
    is_int((int)nodes_with(&lock), 0, "r11: no key is left");
    if (status == REDLOCK_INVALID_ARGUMENT || status == REDLOCK_PENDING)
        return;
    memory_is_not_used_any_more();
}

/* A release may also be started while an acquire or an extension is in progress. It completes once. */
static void r11_released_at_any_moment(int what, int blocking)
{
    static const char *const whats[] = {"an acquire", "a wait", "an extension",
                                        "automatic extensions"};
    unsigned us, refused = 0, unended = 0, twice = 0, left = 0;

    for (us = 0; us < 8000; us += 250) {
        begin_with_defaults(3);
        warm_up();
        if (what == 1)
            held_by("other", 0, 1);
        fake_nodes[0].delay_us = 3 * MS;
        if (what >= 2)
            acquire(0);
        if (what < 2)
            redlock_acquire_start(&client, &lock, 5000);
        if (what == 2)
            redlock_extend_start(&client, &lock);
        if (what == 3) {
            redlock_auto_extend_start(&client, &lock, 100);
            fake_pass(&client, 3330 * MS);
        }
        fake_pass(&client, what == 1 ? us * 50 : us);
        if (blocking) {
            int status = release(500);
            refused += status == REDLOCK_INVALID_ARGUMENT;
            unended += status == REDLOCK_PENDING;
        } else {
            int status = (int)redlock_release_start(&client, &lock, 500);
            refused += status == REDLOCK_INVALID_ARGUMENT;
            unended += status == REDLOCK_PENDING && wait_for(&lock, 1000 * MS) == REDLOCK_PENDING;
        }
        fake_pass(&client, 1000 * MS);
        twice += redlock_next_completed(&client) != NULL;
        left += nodes_with(&lock);
    }
    is_int((int)refused, 0, "r11: released during %s, %s: always accepted", whats[what],
           blocking ? "blocking" : "by events");
    is_int((int)unended, 0, "r11: always completed");
    is_int((int)twice, 0, "r11: reported once");
    is_int((int)left, 0, "r11: no key is left");
}

/* ---- A new client, and one that is far away: R6, R15 ------------------------------------------ */

/* All servers are healthy. A new client must acquire all 3,000 locks, as a connected one does. It acquired
   252, and reported REDLOCK_UNREACHABLE for the others. */
static void r06_a_burst_on_a_new_client(unsigned count)
{
    unsigned i;

    begin_with_defaults(3);
    make_many(count);
    for (i = 0; i < 3; i++)
        set_distance((int)i, REDLOCK_PIPELINE_MAX < 8 || REDLOCK_SEND_MAX < 800 ? 100 : 1 * MS);
    for (i = 0; i < count; i++)
        redlock_acquire_start(&client, &many[i], 0);
    is_int((int)serve_many(count, 20000 * MS), (int)count, "r06: %u at once on a new client",
           count);
    redlock_deinit(&client);
}

/* All locks are acquired although one node fails. */
static void r06_a_burst_with_a_failed_node(int how)
{
    static const char *const hows[] = {"refuses", "does not connect", "hangs"};
    enum { COUNT = 300 };
    unsigned i;

    begin_with_defaults(3);
    make_many(COUNT);
    fake_nodes[2].refuses = how == 0;
    fake_nodes[2].never_up = how == 1;
    fake_nodes[2].hung = how == 2;
    for (i = 0; i < COUNT; i++)
        redlock_acquire_start(&client, &many[i], 0);
    is_int((int)serve_many(COUNT, 20000 * MS), COUNT,
           "r06: %u at once on a new client, one node %s", (unsigned)COUNT, hows[how]);
    redlock_deinit(&client);
}

/* No node is reachable. An acquire with wait_ms 0 reports this soon, although another acquire is waiting before it. */
static void r06_no_wait_behind_a_long_one(int how)
{
    struct redlock_lock patient;
    uint64_t start;
    int i;

    begin_with_defaults(3);
    for (i = 0; i < 3; i++) {
        fake_nodes[i].refuses = how == 0;
        fake_nodes[i].never_up = how == 1;
        fake_nodes[i].hung = how == 2;
    }
    redlock_lock_init(&patient, "other", 5, 10000);
    redlock_acquire_start(&client, &patient, 60000);
    for (i = 0; i < 10; i++) {
        fake_pass(&client, 777 * MS);
        start = fake_now_us;
        redlock_acquire_start(&client, &lock, 0);
        if (wait_for(&lock, 20000 * MS) != REDLOCK_UNREACHABLE || since(start) > 1200 * MS)
            break;
    }
    is_int(i, 10, "r06: ten acquires without a wait fail within stall_ms (%ld us)", since(start));
    is_int((int)patient.status, REDLOCK_PENDING, "r06: the acquire with a wait is in progress");
    redlock_deinit(&client);
    is_int((int)patient.status, REDLOCK_CANCELLED, "r06: redlock_deinit cancels it");
}

/* The nodes become unreachable one after the other, without refusing connections. An acquire with wait_ms 0
   ends within the bound that redlock.h names. When the client knows that the nodes fail, most calls end at
   once and not after a second. */
static void r15_no_wait_for_dead_nodes(unsigned count)
{
    unsigned i, n, run, slow = 0;
    long longest = 0;

    for (run = 0; run < 10; run++) {
        begin_with_defaults(count);
        warm_up();
        for (i = 0; i < count; i++) {
            fake_nodes[i].never_up = 1;
            fake_break((int)i);
            acquire(0);
            release(0);
            fake_pass(&client, (137 + run * 13 + i * 71) * MS);
        }
        fake_pass(&client, 1500 * MS);
        for (n = 0; n < 30; n++) {
            uint64_t start = fake_now_us;
            acquire(0);
            slow += since(start) > 150 * MS;
            longest = since(start) > longest ? since(start) : longest;
            fake_pass(&client, (n * 131 + run * 7) % 500 * MS);
        }
    }
    ok(longest <= 1150 * MS, "r15: %u nodes that do not connect: the longest call took %ld us",
       count, longest);
    ok(slow <= 150, "r15: most calls fail at once: %u of 300 do not", slow);
}

/* The default settings work over these distances. */
static void r15_far_away(uint64_t rtt_us, uint32_t wait_ms, unsigned count)
{
    unsigned i;

    begin_with_defaults(count);
    for (i = 0; i < count; i++)
        set_distance((int)i, rtt_us);
    is_int(acquire(wait_ms), REDLOCK_OK, "r15: %u nodes %d ms away, waiting %lu ms: acquired",
           count, (int)(rtt_us / MS), (unsigned long)wait_ms);
    fake_pass(&client, 1000 * MS);
    is_int((int)nodes_with(&lock), (int)count, "r15: on all nodes");
    is_int(extend(), REDLOCK_OK, "r15: extended");
    is_int(release(1000), REDLOCK_OK, "r15: released");
    fake_pass(&client, 1000 * MS);
    is_int((int)fake_keys_left(), 0, "r15: no key is left");
    is_int(acquire(0), REDLOCK_OK, "r15: acquired again");
    held_by("other", 0, (int)count - 1);
    is_int(release(1000), REDLOCK_LOST, "r15: another client has it: lost");
    is_int(acquire(0), REDLOCK_HELD, "r15: another client has it: held");
}

static void r15_distances(void)
{
    static const uint64_t rtts_us[] = {26 * MS, 60 * MS, 150 * MS};
    unsigned i;

    for (i = 0; i < 3; i++) {
        r15_far_away(rtts_us[i], 0, 3);
        r15_far_away(rtts_us[i], 5000, 5);
    }
}

/* ---- Hand-off to another process: R9 --------------------------------------------------------- */

/* Ends the client, as its process would, and adopts the lock in a new client, with `remaining_ms` left. */
static int adopted_by_another(uint32_t remaining_ms)
{
    struct redlock_lock mine = lock;

    redlock_abandon(&client, &lock);
    redlock_deinit(&client);
    redlock_init(&client, fake_io(), nodes, 3, &settings);
    redlock_lock_init(&lock, "k", 1, mine.ttl_ms);
    hand_over(&lock, &mine);
    return (int)redlock_adopt(&client, &lock, remaining_ms);
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

/* ---- One server, one vote: R13 ---------------------------------------------------------------- */

/* Near the end of the validity an extension connects without the backoff, because the next moment would be
   too late. This must not happen for a node that was rejected as a duplicate. */
static void r05_backoff_for_a_rejected_node(void)
{
    int connects;

    begin_with_defaults(3);
    fake_nodes[2].server.run = fake_nodes[0].server.run;
    fake_nodes[2].connect_us = 5 * MS;
    lock.ttl_ms = 300;
    is_int(acquire(0), REDLOCK_OK, "r05: acquired on two servers, one of them is listed twice");
    fake_pass(&client, 200 * MS);
    fake_nodes[2].connect_us = 100;
    fake_nodes[0].delay_us = fake_nodes[1].delay_us = 30 * MS;
    connects = fake_nodes[2].connects;
    is_int(extend(), REDLOCK_OK, "r05: extended");
    connects = fake_nodes[2].connects - connects;
    ok(connects <= 2, "r05: %d connects to the second address", connects);
}

/* Two addresses lead to one server, and the third node is down: there is no quorum. The first connection
   breaks at some moment, and the second is up only after it. */
static void r13_not_by_a_connection_that_broke(void)
{
    unsigned us, wrong = 0;

    for (us = 0; us < 12000; us += 250) {
        begin_with_defaults(3);
        fake_nodes[1].server.run = fake_nodes[0].server.run;
        fake_nodes[2].refuses = 1;
        set_distance(0, 1 * MS);
        set_distance(1, 4 * MS);
        redlock_acquire_start(&client, &lock, 0);
        fake_pass(&client, us);
        if (fake_nodes[0].connected)
            fake_break(0);
        wrong += wait_for(&lock, 3000 * MS) == REDLOCK_OK;
    }
    is_int((int)wrong, 0,
           "r13: two addresses of one server have one vote, whenever a connection breaks");
}

/* Nor have they two votes when the server's first address is down, and the second is connected for the first time. */
static void r13_not_by_an_address_that_is_down(void)
{
    begin_with_defaults(3);
    lock.ttl_ms = 2000; /* then the key of node 0 expires */
    fake_nodes[1].server.run = fake_nodes[0].server.run;
    fake_nodes[1].refuses = 1;
    is_int(acquire(0), REDLOCK_OK, "r13: held, one of three is unreachable");
    make_unreachable(0);
    fake_nodes[1].refuses = 0;
    is_int(release(0), REDLOCK_UNCONFIRMED, "r13: released");
    fake_pass(&client, 3000 * MS);
    ok(acquire(0) != REDLOCK_OK, "r13: the second address of the server has no vote");
    ok(has_error(1, "same server"), "r13: %s", nodes[1].error);
    fake_nodes[0].refuses = 0;
    fake_pass(&client, 3000 * MS);
    is_int(acquire(3000), REDLOCK_OK, "r13: acquired when the first address is up again");
}

/* Two servers exchange their addresses: the address of each node leads to the server that the other node had. Each server has
   one vote again, and not for ever none. */
static void r13_two_servers_exchange_their_addresses(int unreachable)
{
    const char *address;
    int i;

    begin_with_defaults(3);
    warm_up();
    for (i = 0; i < 3; i++)
        fake_break(i);
    fake_nodes[2].refuses = unreachable;
    fake_pass(&client, 10 * MS);
    address = nodes[0].address;
    nodes[0].address = nodes[1].address;
    nodes[1].address = address;
    acquire(0);
    release(100);
    fake_pass(&client, 1000 * MS);
    is_int(acquire(0), REDLOCK_OK, "r13: two servers have exchanged their addresses");
    fake_pass(&client, 1000 * MS);
    is_int(extend(), REDLOCK_OK, "r13: extended");
    ok((lock.granted & 3) == 3, "r13: each of them has a vote: %x", lock.granted);
}

/* ---- Fencing tokens: R16 ---------------------------------------------------------------------- */

static void make_fenced(void)
{
    set_use_fencing(&lock, 1);
}

/* The wall clock of one client is far in the future. It must not use up the fencing tokens, so that no client
   could acquire the lock again. */
static void r16_a_wrong_wall_clock(uint64_t wrong_us, const char *name)
{
    uint64_t token = 0, before = 0;
    unsigned i, grew = 0;

    begin_with_defaults(3);
    make_fenced();
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
    make_fenced();
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

/* A caller that ignores the result would use lock.fencing_token all the same. It must be 0 then, which every
   resource refuses. */
static void token_is_0(int status, int expected)
{
    is_int(status, expected, "r16: failed: %s", redlock_strerror(expected));
    ok(lock.fencing_token == 0, "r16: the fencing token is 0");
}

static void begin_fenced(void)
{
    begin_with_defaults(3);
    make_fenced();
    warm_up();
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

    begin_fenced();
    held_by("other", 0, 2);
    token_is_0(acquire(0), REDLOCK_HELD);
    token_is_0(acquire(300), REDLOCK_TIMEOUT);
    begin_fenced();
    settings.retries = REDLOCK_NONE;
    begin(3);
    make_fenced();
    held_by("other", 0, 0);
    held_by("another", 1, 1);
    token_is_0(acquire(0), REDLOCK_CONTENDED);
    begin_fenced();
    for (i = 0; i < 3; i++)
        make_unreachable(i);
    token_is_0(acquire(0), REDLOCK_UNREACHABLE);
    begin_fenced();
    all_reply("-NOPERM x\r\n");
    token_is_0(acquire(0), REDLOCK_DENIED);
    begin_fenced();
    fake_sleep_us = 9900 * MS;
    token_is_0(acquire(0), REDLOCK_TOO_LATE);
    begin_fenced();
    acquire(0);
    release(100);
    fake_no_entropy = 1;
    for (i = 0; i < 30 && acquire(0) == REDLOCK_OK; i++)
        release(100);
    token_is_0(lock.status, REDLOCK_NO_ENTROPY);
    begin_fenced();
    held_by("other", 0, 2);
    redlock_acquire_start(&client, &lock, 5000);
    fake_pass(&client, 500);
    redlock_cancel(&client, &lock);
    fake_pass(&client, 100 * MS);
    token_is_0(lock.status, REDLOCK_CANCELLED);
    begin_fenced();
    redlock_acquire_start(&client, &lock, 5000);
    fake_pass(&client, 500);
    redlock_deinit(&client);
    token_is_0(lock.status, REDLOCK_CANCELLED);
    begin_fenced();
    held_by("other", 0, 2);
    redlock_acquire_start(&client, &lock, 5000);
    fake_pass(&client, 10 * MS); /* its first attempt has failed */
    token_is_0(release(100), REDLOCK_EXPIRED);
}

/* ---- Rollback and release on a node that fails: R4, R11 ---------------------------------------- */

/* Node 0 has our key, and replies with a temporary error when it is sent the release. The release must be
   repeated. Otherwise the key would block this node for other clients until its ttl is over. */
static void r04_deleted_after_a_temporary_error(const char *words, unsigned busy_ms, int released,
                                                unsigned kind, uint64_t slower_us)
{
    struct redlock_lock was;

    begin_with_defaults(3);
    if (!make_kind(kind))
        return;
    warm_up();
    lock.ttl_ms = 60000;
    fake_nodes[0].delay_us += slower_us;
    if (released) {
        is_int(acquire(0), REDLOCK_OK, "r11: held");
        fake_pass(&client, 20 * MS);
        fake_nodes[0].reply = words;
        redlock_release_start(&client, &lock, 100);
    } else {
        held_by("other", 1, 2);
        redlock_acquire_start(&client, &lock, 0);
        fake_pass(&client, 0);
        fake_nodes[0].reply = words;
    }
    was = lock;
    ok(has_token(0, &was),
       "r04: node 0, %lu us slower, has our key (%s), and replies %.10s for %u ms",
       (unsigned long)slower_us, kind_names[kind], words, busy_ms);
    fake_pass(&client, busy_ms * MS);
    ok(has_token(0, &was), "r04: the key is still there");
    fake_nodes[0].reply = NULL;
    fake_pass(&client, 4000 * MS);
    is_int(!has_token(0, &was), REPEATS, "r04: the key is deleted soon after the errors end");
    is_int((int)lock.status, released ? REDLOCK_OK : REDLOCK_HELD,
           "r04: the result does not change");
}

/* A quorum of nodes is busy for a moment. A release that waits is not over before that: a program that ends then would leave the
   keys. Without end of the errors it ends in time. */
static void r11_released_after_temporary_errors(void)
{
    const char *busy = "-BUSY Redis is busy running a script.\r\n";
    uint64_t start;
    int i;

    begin_with_defaults(3);
    is_int(acquire(0), REDLOCK_OK, "r11: held");
    fake_pass(&client, 20 * MS);
    for (i = 0; i < 2; i++) {
        fake_nodes[i].reply = busy;
        fake_nodes[i].reply_once = 1;
    }
    start = fake_now_us;
    is_int(release(1000), REDLOCK_OK, "r11: released, two of three are busy for a moment");
    ok(since(start) <= 100 * MS, "r11: after %ld us", since(start));
    is_int((int)fake_keys_left(), 0, "r11: no key is left");
    is_int(acquire(0), REDLOCK_OK, "r11: held");
    fake_pass(&client, 20 * MS);
    for (i = 0; i < 2; i++) {
        fake_nodes[i].reply = busy;
        fake_nodes[i].reply_once = 0;
    }
    fake_logged = 0;
    start = fake_now_us;
    is_int(release(220), REDLOCK_UNCONFIRMED, "r11: two of three are busy for longer");
    is_int((int)since(start), 220 * MS, "r11: until the wait is over");
    ok(fake_count(0, 'D') + fake_count(0, 'N') <= 7, "r11: they are not asked all the time");
    fake_nodes[0].reply = fake_nodes[1].reply = NULL;
    fake_pass(&client, 500 * MS);
    is_int(fake_keys_left() == 0, REPEATS, "r11: it is repeated after that");
}

static void r04_temporary_errors(void)
{
    static const char *const errors[] = {
        "-BUSY Redis is busy running a script.\r\n",
        "-LOADING Redis is loading the dataset in memory\r\n",
        "-MISCONF Redis is configured to save RDB snapshots\r\n",
        "-NOREPLICAS Not enough good replicas to write.\r\n",
    };
    static const unsigned busy_ms[] = {20, 300, 3000};
    unsigned i, n;

    int released;

    for (released = 0; released < 2; released++) {
        for (i = 0; i < 4; i++)
            for (n = 0; n < 3; n++)
                r04_deleted_after_a_temporary_error(errors[i], busy_ms[n], released, 0, 0);
        for (n = 1; n < 3; n++)
            r04_deleted_after_a_temporary_error(errors[0], 300, released, n, 0);
        r04_deleted_after_a_temporary_error(errors[0], 300, released, 0, 5 * MS);
    }
}

/* ---- Waiting: R6, R7 -------------------------------------------------------------------------- */

static void begin_with_long_pauses(void)
{
    memset(&settings, 0, sizeof settings);
    settings.retry_delay_ms = settings.retry_delay_max_ms = 20000;
    begin(3);
}

static void delete_on_all_nodes(const char *key)
{
    int i;

    for (i = 0; i < 3; i++)
        fake_delete(i, key);
}

/* redlock_deinit while a lock waits. When a new client uses the same memory, a waiter must be notified as
   soon as the lock is free, not after its pause of 20 s. */
static void r07_notified_after_a_deinit_while_waiting(int waits_again)
{
    struct redlock_lock next;

    begin_with_long_pauses();
    held_by("other", 0, 2);
    redlock_acquire_start(&client, &lock, 60000);
    fake_pass(&client, 100 * MS);
    is_int((int)lock.status, REDLOCK_PENDING, "r07: the lock waits");
    redlock_deinit(&client);
    is_int((int)lock.status, REDLOCK_CANCELLED, "r07: redlock_deinit cancels it");
    redlock_init(&client, fake_io(), nodes, 3, &settings);
    redlock_lock_init(&next, "k", 1, 10000);
    if (!waits_again) {
        delete_on_all_nodes("k");
        is_int(acquire(0), REDLOCK_OK, "r07: acquired with a new client");
        is_int(release(100), REDLOCK_OK, "r07: released");
        held_by("other", 0, 2);
    }
    redlock_acquire_start(&client, waits_again ? &lock : &next, 60000);
    fake_pass(&client, 100 * MS);
    delete_on_all_nodes("k");
    is_int(wait_for(waits_again ? &lock : &next, 500 * MS), REDLOCK_OK,
           "r07: a waiter of the new client is notified");
    redlock_deinit(&client);
}

/* A release that does not wait for replies notifies the waiters of its client, too: servers do not. */
static void r07_released_without_waiting(void)
{
    struct redlock_lock next;

    begin_with_long_pauses();
    is_int(acquire(0), REDLOCK_OK, "r07: held");
    redlock_lock_init(&next, "k", 1, 10000);
    redlock_acquire_start(&client, &next, 60000);
    fake_pass(&client, 50 * MS);
    is_int(release(0), REDLOCK_UNCONFIRMED, "r07: released without waiting");
    is_int(wait_for(&next, 1000 * MS), REDLOCK_OK, "r07: a waiter of the same client is notified");
    redlock_release(&client, &next, 100);
    redlock_deinit(&client);
}

#if !REDLOCK_MINIMAL
/* One lock waits for k0 and k1, another for k0 only. When k0 is released, but not k1, the second lock must be
   notified, because the first cannot be acquired yet. */
static void r07_overlapping_keys(int order)
{
    static const struct redlock_key k1 = {"k1", 2};
    struct redlock_lock both, one;
    int i;

    begin_with_long_pauses();
    for (i = 0; i < 3; i++) {
        fake_put(i, "k0", "other", 60000);
        fake_put(i, "k1", "another", 60000);
    }
    redlock_lock_init(&both, "k0", 2, 10000);
    set_extra_keys(&both, &k1, 1);
    redlock_lock_init(&one, "k0", 2, 10000);
    redlock_acquire_start(&client, order ? &one : &both, 60000);
    fake_pass(&client, 50 * MS);
    redlock_acquire_start(&client, order ? &both : &one, 60000);
    fake_pass(&client, 50 * MS);
    delete_on_all_nodes("k0");
    is_int(wait_for(&one, 1000 * MS), REDLOCK_OK,
           "r07: the waiter for k0 is notified, not the waiter for k0 and k1");
    is_int((int)both.status, REDLOCK_PENDING, "r07: the waiter for both goes on waiting");
    redlock_release(&client, &one, 100);
    delete_on_all_nodes("k1");
    is_int(wait_for(&both, 1000 * MS), REDLOCK_OK, "r07: it is notified when both keys are free");
    redlock_release(&client, &both, 100);
    redlock_deinit(&client);
}
#endif

/* More locks than the queue has room for. An acquire with a wait of 100 ms ends after this time and the time
   of one attempt. */
static void r06_time_in_line_counts(void)
{
    enum { COUNT = 60 };
    uint64_t start;
    unsigned i, left = 0;
    long took;

    begin_with_defaults(3);
    warm_up();
    make_many(COUNT);
    for (i = 0; i < 3; i++)
        fake_nodes[i].delay_us = 45 * MS;
    start = fake_now_us;
    for (i = 0; i < COUNT; i++)
        redlock_acquire_start(&client, &many[i], 100);
    serve_many(COUNT, 10000 * MS);
    took = since(start);
    ok(took <= (100 + 3 * 50) * MS, "r06: all have completed in time: %ld us", took);
    fake_pass(&client, 1000 * MS);
    for (i = 0; i < COUNT; i++)
        left += many[i].status == REDLOCK_OK ? 0 : nodes_with(&many[i]);
    is_int((int)left, 0, "r06: failed acquires have left no key");
    redlock_deinit(&client);
}

/* ---- Connections: R5, R12 --------------------------------------------------------------------- */

/* Whether no command of a lock was sent to the node before SELECT: in the wrong database a release would not
   find the key. */
static int nothing_before_select(int node)
{
    unsigned i;
    int epoch = 0, selected = 0;

    for (i = 0; i < fake_logged; i++) {
        if (fake_log[i].node != node)
            continue;
        if (fake_log[i].epoch != epoch)
            selected = 0;
        epoch = fake_log[i].epoch;
        selected |= fake_log[i].kind == 'L';
        if (!selected && strchr("HA", fake_log[i].kind) == NULL)
            return 0;
    }
    return selected;
}

/* A password that fills most of the send buffer leaves no room for the rest of the handshake. */
static void r12_a_long_password(void)
{
    static char password[REDLOCK_SEND_MAX];
    unsigned size, tried = 0, overtaken = 0, left = 0, failed = 0;
    int i, wait_ms;

    memset(password, 'p', sizeof password);
    for (size = REDLOCK_SEND_MAX - 160; size < REDLOCK_SEND_MAX - 1; size++)
        for (wait_ms = 0; wait_ms <= 100; wait_ms += 100) {
            begin_with_defaults(3);
            redlock_deinit(&client);
            password[size] = '\0';
            for (i = 0; i < 3; i++) {
                nodes[i].password = fake_nodes[i].server.password = password;
                nodes[i].database = 1;
            }
            if (redlock_init(&client, fake_io(), nodes, 3, NULL) == REDLOCK_OK) {
                tried++;
                failed += acquire(0) != REDLOCK_OK;
                fake_pass(&client, 20 * MS);
                fake_break(0);
                fake_pass(&client, 5 * MS);
                release((uint32_t)wait_ms);
                fake_pass(&client, 3000 * MS);
                overtaken += !nothing_before_select(0);
                left += fake_keys_left();
                redlock_deinit(&client);
            }
            password[size] = 'p';
        }
    ok(tried > 100, "r12: %u passwords of up to REDLOCK_SEND_MAX bytes", tried);
    is_int((int)failed, 0, "r12: acquired with each");
    is_int((int)overtaken, 0, "r12: no command is sent before SELECT");
    is_int((int)left, 0, "r12: no key is left");
}

/* An operator corrects the password or the permissions. The next acquire succeeds: at once with wait_ms 0,
   otherwise within wait_ms, however often it was denied before. */
static void r05_corrected_permissions(uint32_t wait_ms, const char *hello)
{
    unsigned times, calls, failed = 0, slow = 0;
    int i;

    for (calls = 1; calls <= 12; calls++)
        for (times = 0; times < 4; times++) {
            uint64_t start;
            begin_with_defaults(3);
            for (i = 0; i < 3; i++) {
                fake_nodes[i].server.password = hello == NULL ? "right" : NULL;
                fake_nodes[i].server.hello = hello;
            }
            for (i = 0; i < (int)calls; i++) {
                failed += acquire(0) != REDLOCK_DENIED;
                fake_pass(&client,
                          (100 + times * 150) * MS); /* the pause before the next connect */
            }
            for (i = 0; i < 3; i++)
                fake_nodes[i].server.password = fake_nodes[i].server.hello = NULL;
            start = fake_now_us;
            failed += acquire(wait_ms) != REDLOCK_OK;
            slow += since(start) > 100 * MS;
        }
    is_int((int)failed, 0,
           "r05: %s, waiting %lu ms: the first acquire after the correction succeeds",
           hello == NULL ? "a password" : "a permission", (unsigned long)wait_ms);
    if (wait_ms == 0)
        is_int((int)slow, 0, "r05: within 100 ms");
}

/* Of five nodes one is down and one hangs, but still accepts connections. After two grants and a refusal the
   attempt must fail at once, not after node_timeout_ms. */
static void r05_a_hung_node_costs_no_time(void)
{
    unsigned i, slow = 0, wrong = 0;
    uint64_t start;

    memset(&settings, 0, sizeof settings);
    settings.retries = REDLOCK_NONE;
    begin(5);
    warm_up();
    make_unreachable(3);
    fake_nodes[4].hung = 1;
    held_by("other", 2, 2);
    for (i = 0; i < 30; i++) { /* until the client knows that it hangs */
        acquire(0);
        fake_pass(&client, 50 * MS);
    }
    fake_unlogged = 1;
    for (i = 0; i < 400; i++) {
        start = fake_now_us;
        wrong += acquire(0) == REDLOCK_OK;
        slow += since(start) > 10 * MS;
        fake_pass(&client, 5 * MS);
        if (i % 100 == 99)
            held_by("other", 2, 2);
    }
    is_int((int)slow, 0, "r05: none of 400 attempts waits for the hung node");
    is_int((int)wrong, 0, "r05: none succeeds");
    fake_resume(4);
    for (i = 0; i < 40 && acquire(0) != REDLOCK_OK; i++)
        fake_pass(&client, 100 * MS);
    is_int((int)lock.status, REDLOCK_OK, "r05: acquired when the hung node replies again");
    release(100);
    fake_pass(&client, 100 * MS);
    is_int((int)fake_keys_left(), 1, "r05: no key of ours is left");
}

/* ---- Smaller errors --------------------------------------------------------------------------- */

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

static void r08_results_of_an_extension(void)
{
    begin_with_defaults(3);
    acquire(0);
    fake_pass(&client, 10 * MS);
    fake_sleep_us = 9900 * MS;
    is_int(extend(), REDLOCK_UNREACHABLE,
           "r08: confirmed after the validity: UNREACHABLE, as documented");
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

/* Nothing but a release is sent before the handshake is answered: the server may reject the handshake, as here. The SET of the
   attempt is not sent again. */
static void r12_only_releases_behind_a_handshake(void)
{
    int i;

    begin_with_defaults(3);
    redlock_deinit(&client);
    nodes[0].password = fake_nodes[0].server.password = "right";
    is_int((int)redlock_init(&client, fake_io(), nodes, 3, NULL), REDLOCK_OK, "r12: redlock_init");
    warm_up();
    held_by("other", 1, 2);
    for (i = 0; i < 3; i++)
        fake_nodes[i].delay_us = i == 0 ? 5 * MS : MS;
    redlock_acquire_start(&client, &lock, 0);
    fake_pass(&client, MS / 2);
    fake_break(0);
    fake_nodes[0].server.password = "changed";
    fake_pass(&client, 200 * MS);
    is_int(lock.status, REDLOCK_HELD, "r12: another client has two nodes");
    is_int((int)fake_count(0, 'S'), 1, "r12: no SET behind a handshake that failed");
}

/* A server or a proxy may repeat the client's command in its error. */
static void r12_no_password_in_errors(void)
{
    static const char *const hellos[] = {
        "-ERR invalid AUTH hunter2-and-more\r\n",
        "-ERR Syntax error in HELLO option 'hunter2-and-more'\r\n",
        "-ERR Protocol error: 'hunter2-and-more'\r\n",
        "-hunter2-and-more\r\n",
        "-hunter2-and-more is wrong\r\n",
        "-ERR 01234567890123456789012345678901234567890123456 hunter2-and-more\r\n",
    };
    unsigned i;

    for (i = 0; i < sizeof hellos / sizeof *hellos; i++) {
        begin_with_defaults(1);
        redlock_deinit(&client);
        nodes[0].password = "hunter2-and-more";
        fake_nodes[0].server.hello = fake_nodes[0].server.auth = hellos[i];
        redlock_init(&client, fake_io(), nodes, 1, NULL);
        ok(acquire(0) != REDLOCK_OK, "r12: HELLO and AUTH are answered with an error");
        ok(nodes[0].error[0] != '\0' && strstr(nodes[0].error, "hunter") == NULL,
           "r12: no password in \"%s\"", nodes[0].error);
        redlock_deinit(&client);
    }
}

/* A wrong password that the server's error text has by chance: the code of the error says why all the same. */
static void r12_a_password_does_not_hide_the_reason(void)
{
    static const char *const passwords[] = {"W", "WRONG", "WRONGPASS", "WRONGPASS invalid", "in"};
    unsigned i;

    for (i = 0; i < sizeof passwords / sizeof *passwords; i++) {
        begin_with_defaults(1);
        redlock_deinit(&client);
        nodes[0].password = passwords[i];
        fake_nodes[0].server.password = "right";
        redlock_init(&client, fake_io(), nodes, 1, NULL);
        is_int((int)acquire(0), REDLOCK_DENIED, "r12: a wrong password: %s", passwords[i]);
        ok(strncmp(nodes[0].error, "replied: WRONGPASS", 18) == 0, "r12: the reason is there: %s",
           nodes[0].error);
        redlock_deinit(&client);
    }
    begin_with_defaults(1);
    redlock_deinit(&client);
    nodes[0].password = "ERR";
    fake_nodes[0].server.old = 1;
    fake_nodes[0].server.auth = "-ERR invalid password\r\n";
    redlock_init(&client, fake_io(), nodes, 1, NULL);
    is_int((int)acquire(0), REDLOCK_DENIED, "r12: before Redis 6");
    ok(strstr(nodes[0].error, "invalid password") != NULL, "r12: the reason is there: %s",
       nodes[0].error);
    redlock_deinit(&client);
}

/* Two other clients have one node each, and we have the third: no client holds the lock. If the engine
   compared too few bits of their tokens, some of these pairs would look like one holder. */
static void r06_holders_are_distinguished(void)
{
    char token[48];
    unsigned i, wrong = 0;

    memset(&settings, 0, sizeof settings);
    settings.retries = REDLOCK_NONE;
    begin(3);
    warm_up();
    fake_unlogged = 1;
    held_by("0123456789abcdef0123456789abcdef01234567", 1, 1);
    for (i = 0; i < 2000; i++) {
        sprintf(token, "%08x89abcdef0123456789abcdef01234567", i * 2654435761U);
        fake_put(1, "k", "0123456789abcdef0123456789abcdef01234567", 60000);
        fake_put(2, "k", token, 60000);
        wrong += acquire(0) != REDLOCK_CONTENDED;
    }
    is_int((int)wrong, 0, "r06: none of 2,000 pairs of tokens is taken for one holder");
}

static void late_commands(void)
{
    unsigned kind;

    for (kind = 0; kind < 3; kind++)
        r08_a_late_extension_does_not_shorten(kind);
    r08_late_extensions_of_several_ttls();
    r08_a_smaller_ttl_shortens_nothing();
    for (kind = 0; kind < 3; kind++)
        r08_a_late_set_is_no_proof(kind);
    if (REDLOCK_MINIMAL)
        return;
    if (!REDLOCK_MINIMAL) { /* without it another process is not detected */
        r08_a_new_process_has_no_late_commands();
    }
    r09_the_later_of_two_unanswered_repairs();
}

static void every_node(void)
{
    int how;

    r02_a_new_client();
    r02_a_short_wait_for_a_dead_node();
    r02_many_at_once_are_on_every_node(40, 0);
    r02_many_at_once_are_on_every_node(40, 1);
    r02_many_at_once_are_on_every_node(1000, 0);
    r02_many_at_once_are_on_every_node(1000, 1);
    for (how = 0; how < 3; how++)
        r02_a_node_that_comes_back_is_sent_the_set(how);
    for (how = 0; how < 2 + !REDLOCK_MINIMAL; how++)
        r02_also_after_extensions(how);
    r08_a_node_that_was_away_proves_nothing();
    for (how = 0; how < 4; how++)
        r02_not_after_its_end(how);
    r02_released_while_a_node_comes_back();
}

static void automatic_extensions(void)
{
    static const enum redlock_status ends[] = {REDLOCK_EXTEND_LIMIT, REDLOCK_LOST,
                                               REDLOCK_CANCELLED};
    unsigned i;

    if (!REDLOCK_MINIMAL)
        r10_adopted_with_little_left_is_extended_at_once();
    r10_auto_extension_after_a_failed_extension();
    r10_auto_extension_with_another_ttl();
    r10_a_third_of_a_shorter_ttl();
    r10_extended_does_not_wrap();
    for (i = 0; i < 3; i++) {
        r11_released_before_the_end_is_reported(ends[i], 0);
        r11_released_before_the_end_is_reported(ends[i], 1);
        r11_extended_before_the_end_is_reported(ends[i]);
    }
}

static void releases(void)
{
    int what, blocking;

    for (what = 0; what < 3 + !REDLOCK_MINIMAL; what++)
        for (blocking = 0; blocking < 2; blocking++)
            r11_released_at_any_moment(what, blocking);
}

static void rules(void)
{
    if (!REDLOCK_MINIMAL) {
        r08_a_delayed_set_of_the_other_process();
        r08_no_more_time_than_the_ttl();
    }
    if (!REDLOCK_MINIMAL) {
        r13_not_by_a_connection_that_broke();
        r05_backoff_for_a_rejected_node();
        r13_not_by_an_address_that_is_down();
        r13_two_servers_exchange_their_addresses(0);
        r13_two_servers_exchange_their_addresses(1);
    }
    r04_temporary_errors();
    r11_released_after_temporary_errors();
    r06_time_in_line_counts();
    r12_a_long_password();
    r05_corrected_permissions(0, NULL);
    r05_corrected_permissions(1000, NULL);
    if (!REDLOCK_MINIMAL)
        r05_corrected_permissions(
            0, "-NOAUTH HELLO must be called with the client already authenticated\r\n");
    r05_a_hung_node_costs_no_time();
    r08_results_of_an_extension();
    if (!REDLOCK_MINIMAL) {
        r12_no_password_in_errors();
        r12_a_password_does_not_hide_the_reason();
    }
    r06_holders_are_distinguished();
}

/* A server that has restarted may vote again between the two rounds of an attempt with a fencing token. It agrees to the token,
   and so has a vote for the extension, too. */
static void r14_a_vote_from_the_second_round_on(void)
{
    struct mini_word counter = {"k:fence", 7}, large = {"77", 2};
    uint64_t end_us;
    int i;

    memset(&settings, 0, sizeof settings);
    settings.longest_ttl_ms = 20000;
    begin(3);
    for (i = 0; i < 3; i++)
        fake_nodes[i].server.age_s = 1000;
    make_fenced();
    fake_wall_us = 1;
    warm_up();
    fake_break(2);
    fake_nodes[2].server.age_s = 0;
    fake_pass(&client, 10 * MS);
    end_us = fake_now_us + 22202 * MS; /* 20 s and their drift, and 2 s */
    is_int(acquire(0), REDLOCK_OK, "r14: the third has restarted, and may not vote yet");
    is_int(release(100), REDLOCK_OK, "r14: released");
    fake_pass(&client, end_us - 30 * MS - fake_now_us);
    mini_store(&fake_nodes[1].server, counter, large, UINT64_MAX);
    for (i = 0; i < 3; i++)
        fake_nodes[i].delay_us = 20 * MS;
    redlock_acquire_start(&client, &lock, 0);
    fake_pass(&client, 25 * MS);
    fake_nodes[0].hung = 1;
    is_int(wait_for(&lock, 60 * MS), REDLOCK_OK, "r14: two agree to a token, also the third");
    is_int(extend(), REDLOCK_OK, "r14: the same two extend");
    release(100);
}

static void fencing_tokens(void)
{
    const uint64_t most = (uint64_t)1 << 53;

    r16_a_wrong_wall_clock(most, "2^53");
    r16_a_wrong_wall_clock(most - 1, "2^53 - 1");
    r16_a_wrong_wall_clock(most + 1, "2^53 + 1");
    r16_a_wrong_wall_clock((uint64_t)1 << 63, "2^63");
    r16_a_wrong_wall_clock(UINT64_MAX, "2^64 - 1");
    r16_a_counter_at_its_maximum();
    r16_no_token_without_the_lock();
    if (!REDLOCK_MINIMAL)
        r14_a_vote_from_the_second_round_on();
}

/* ---- Repairs: R9 ----------------------------------------------------------------------------- */

/* How many of the extensions to node 2 could create the key. */
static unsigned repairs_sent(void)
{
    unsigned i, count = 0;

    for (i = 0; i < fake_logged; i++)
        count += fake_log[i].node == 2 && fake_log[i].kind == 'E' && fake_log[i].repairs;
    return count;
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

/* The caller reads the status and never calls redlock_next_completed. A node that is connected later must be
   sent the SET all the same. */
static void r02_without_redlock_next_completed(void)
{
    begin_with_defaults(3);
    fake_nodes[2].connect_us = 300 * MS;
    redlock_acquire_start(&client, &lock, 0);
    fake_pass(&client, 200 * MS);
    is_int(lock.status, REDLOCK_OK, "r02: held on two nodes");
    ok(fake_find(2, "k", 1) == NULL, "r02: the third is not connected yet");
    fake_pass(&client, 200 * MS);
    ok(fake_find(2, "k", 1) != NULL, "r02: the third is sent the SET when it is connected");
}

/* A lock that is acquired again after a release that nobody confirmed, while a node is down. That node must be sent the
   SET when it is back, although it was sent that of the first acquire. */
static void r02_a_lock_that_is_used_again(void)
{
    begin_with_defaults(3);
    warm_up();
    is_int(acquire(0), REDLOCK_OK, "r02: held");
    is_int(release(0), REDLOCK_UNCONFIRMED, "r02: the replies to the release are not waited for");
    fake_pass(&client, 20 * MS);
    make_unreachable(2);
    fake_pass(&client, 20 * MS);
    is_int(acquire(0), REDLOCK_OK, "r02: held again, on two nodes");
    fake_nodes[2].refuses = 0;
    fake_pass(&client, 2000 * MS);
    ok(has_token(2, &lock), "r02: the third node is sent the SET when it is back");
}

/* Nor is a node sent the SET after the validity has ended: its key would keep other clients out for the ttl. */
static void r02_nothing_is_sent_after_the_end(void)
{
    begin_with_defaults(3);
    fake_nodes[2].refuses = 1;
    redlock_acquire_start(&client, &lock, 0);
    fake_pass(&client, 200 * MS);
    is_int(lock.status, REDLOCK_OK, "r02: held on two nodes");
    fake_pass(&client, 10000 * MS);
    is_int((int)redlock_remaining_ms(&client, &lock), 0, "r02: the validity has ended");
    fake_nodes[2].refuses = 0;
    fake_pass(&client, 3000 * MS);
    is_int((int)fake_keys_left(), 0, "r02: the third node is not sent the SET any more");
}

/* A release with token_is_label is not repeated, because the caller may use the token again by then. */
static void r04_no_repeated_release_of_a_chosen_token(void)
{
    begin_with_defaults(3);
    warm_up();
    set_label(&lock, "mine", 4);
    set_token_is_label(&lock, 1);
    is_int(acquire(0), REDLOCK_OK, "r04: held with a token of the caller");
    fake_nodes[0].reply = "-BUSY Redis is busy running a script.\r\n";
    fake_nodes[0].reply_once = 1;
    is_int(release(100), REDLOCK_OK, "r04: released, one node was busy");
    fake_delete(0, "k");
    is_int(acquire(0), REDLOCK_OK, "r04: held again, with the same token");
    fake_pass(&client, 1000 * MS);
    is_int((int)fake_keys_left(), 3, "r04: the first release was not repeated");
    is_int(release(100), REDLOCK_OK, "r04: released");
}

/* ---- Waiting and distance: R4, R6, R15 ---------------------------------------------------------- */

/* A wait_ms that is shorter than a connect must not fail: wait_ms 0 would succeed. */
static void r06_a_short_wait_on_a_new_client(void)
{
    int i;

    begin_with_defaults(3);
    for (i = 0; i < 3; i++)
        set_distance(i, 20 * MS);
    is_int(acquire(5), REDLOCK_OK, "r06: acquired with wait_ms 5, the nodes are 20 ms away");
}

/* A program that calls the library from time to time only. Its last call failed, as no server ran. The pause
   before the next connect is long over, so the next call must connect. */
static void r05_a_pause_between_two_calls(void)
{
    int i;

    begin_with_defaults(3);
    for (i = 0; i < 3; i++)
        fake_nodes[i].refuses = 1;
    is_int(acquire(0), REDLOCK_UNREACHABLE, "r05: no server runs");
    for (i = 0; i < 3; i++)
        fake_nodes[i].refuses = 0;
    fake_now_us += 10000 * MS;
    is_int(acquire(0), REDLOCK_OK, "r05: 10 s later all run, and the lock is held");
    is_int(release(100), REDLOCK_OK, "r05: released");
}

/* The round trip gets longer while the connections are up. */
static void r15_a_distance_that_grows(void)
{
    int i;

    begin_with_defaults(3);
    warm_up();
    for (i = 0; i < 3; i++)
        fake_nodes[i].delay_us = 120 * MS;
    for (i = 1; i <= 6 && acquire(0) != REDLOCK_OK; i++)
        fake_pass(&client, 300 * MS);
    ok(i <= 3, "r15: held after %d attempts", i);
}

static void r04_repeated_until_the_key_has_expired(void)
{
    unsigned sent;

    begin_with_defaults(3);
    warm_up();
    lock.ttl_ms = 1000;
    is_int(acquire(0), REDLOCK_OK, "r04: held for 1 s");
    fake_nodes[0].reply = "-BUSY Redis is busy running a script.\r\n";
    is_int(release(100), REDLOCK_OK, "r04: released, one node is busy");
    fake_pass(&client, 2000 * MS);
    sent = fake_count(0, 'D');
    ok((sent >= 4 && sent <= 6) || !REPEATS,
       "r04: the release is repeated, after pauses that grow: sent %u times", sent);
    fake_pass(&client, 2000 * MS);
    is_int((int)fake_count(0, 'D'), (int)sent, "r04: not repeated after the key has expired");
}

/* ---- The send buffer, requests and their roles ------------------------------------------------- */

/* Locks that are started in one tick: more than the send buffer has room for, unless REDLOCK_PIPELINE_MAX is small. */
enum { BURST = REDLOCK_PIPELINE_MAX > 200 ? 200 : REDLOCK_PIPELINE_MAX - 1 };

static void start_many(unsigned from, unsigned to, uint32_t wait_ms)
{
    for (; from < to; from++)
        redlock_acquire_start(&client, &many[from], wait_ms);
}

/* Node i accepts `size` bytes, then none. */
static void accept_bytes(int i, unsigned size)
{
    fake_nodes[i].full = 0;
    fake_nodes[i].drip = 1;
    for (; size > 0; size--)
        redlock_handle_events(&client, (unsigned)i, REDLOCK_WRITABLE);
    fake_nodes[i].drip = 0;
    fake_nodes[i].full = 1;
}

static void r05_a_burst_is_sent_at_once(void)
{
    begin_with_defaults(3);
    warm_up();
    make_many(BURST);
    fake_unlogged = 0;
    start_many(0, BURST, 0);
    redlock_tick(&client);
    is_int((int)fake_count(1, 'S'), BURST,
           "r05: a burst is sent at once, although the buffer has no room for all");
    redlock_deinit(&client);
}

/* Node 0 accepts no bytes, so the buffer becomes full. Then node 0 accepts all: the buffer must have room
   again, although node 4 was never sent anything. */
static void r05_a_node_that_is_slow_to_accept_bytes(void)
{
    unsigned before, i;

    if (BURST < 200)
        return; /* no request is free before the buffer fills */
    begin_with_defaults(5);
    fake_nodes[4].refuses = 1;
    warm_up();
    make_many(BURST);
    fake_unlogged = 0;
    fake_nodes[0].full = 1;
    start_many(0, BURST, 1000);
    fake_pass(&client, 10 * MS);
    before = fake_count(1, 'S');
    ok(before < BURST, "r05: a node accepts no bytes: %u SETs are sent", before);
    accept_bytes(0, REDLOCK_SEND_MAX);
    fake_pass(&client, 1 * MS);
    ok(fake_count(1, 'S') > before + 2, "r05: it accepts them: %u SETs are sent",
       fake_count(1, 'S'));
    fake_pass(&client, 100 * MS);
    for (i = 0; i < BURST && many[i].status == REDLOCK_OK; i++) {
    }
    is_int((int)i, BURST, "r05: all are held");
    ok(many[i - 1].valid_until_us >= many[0].valid_until_us + 10 * MS,
       "r06: the validity of locks that waited for room begins later");
    redlock_deinit(&client);
}

/* Node 0 accepts no bytes while the buffer becomes full, and all of them at the end of the same tick. What waits for
   room must go on at once: no event tells of it. */
static void r05_room_again_in_the_same_tick(void)
{
    uint64_t start;
    int i;

    if (BURST < 200)
        return; /* no request is free before the buffer fills */
    begin_with_defaults(3);
    warm_up();
    make_many(BURST);
    for (i = 0; i < 3; i++)
        fake_nodes[i].delay_us = 30 * MS;
    fake_nodes[0].full_calls = 1;
    start_many(0, BURST - 1, 0);
    start = fake_now_us;
    is_int((int)redlock_acquire(&client, &many[BURST - 1], 0), REDLOCK_OK,
           "r05: room again in the same tick: held");
    is_int(since(start), 30 * MS, "r05: after one round trip");
    redlock_deinit(&client);
}

/* A node that is far away may accept bytes later. */
static void r15_a_far_node_accepts_bytes_late(void)
{
    int i, epoch;

    begin_with_defaults(3);
    for (i = 0; i < 3; i++)
        set_distance(i, 100 * MS);
    warm_up();
    fake_pass(&client, 300 * MS);
    make_many(BURST);
    epoch = fake_nodes[0].epoch;
    fake_nodes[0].full = 1;
    start_many(0, BURST, 1000);
    fake_pass(&client, 120 * MS);
    fake_nodes[0].full = 0;
    is_int((int)serve_many(BURST, 3000 * MS), BURST, "r15: a burst, 100 ms away: all are held");
    is_int(fake_nodes[0].epoch, epoch, "r15: no connection is closed");
    redlock_deinit(&client);
}

/* Node 0 replies to earlier commands, so there is no stall, but accepts no bytes. The SET waits in the send
   buffer, which has no room for its release. */
static void r04_a_node_that_replies_but_accepts_no_bytes(void)
{
    enum { REPLIES = 10 };
    int i;

    begin_with_defaults(3);
    warm_up();
    make_many(BURST);
    for (i = 0; i < REPLIES; i++) {
        fake_nodes[0].delay_us = (uint64_t)(i + 1) * 20 * MS;
        start_many((unsigned)i, (unsigned)i + 1, 0);
        redlock_tick(&client);
    }
    held_by("other", 1, 2);
    fake_nodes[0].full = 1;
    redlock_acquire_start(&client, &lock, 0);
    redlock_tick(&client);
    start_many(REPLIES, BURST, 0);
    fake_pass(&client, 150 * MS);
    is_int(lock.status, REDLOCK_HELD, "r04: refused by two, the third accepts no bytes");
    fake_nodes[0].full = 0;
    fake_pass(&client, 1000 * MS);
    ok(fake_find(0, "k", 1) == NULL, "r04: the SET that waited in the buffer never runs");
    redlock_deinit(&client);
}

/* All requests of a hung node are in use. A cancelled acquire completes at once, because one request is
   reserved for releases, which share it. */
static void r04_a_release_finds_a_request(void)
{
    unsigned i, ended = 0;

    begin_with_defaults(1);
    warm_up();
    make_many(REDLOCK_PIPELINE_MAX + 3);
    fake_nodes[0].hung = 1;
    nodes[0].priv.reconnect = 1;
    for (i = 0; i < REDLOCK_PIPELINE_MAX + 3; i++) {
        start_many(i, i + 1, 1000);
        redlock_tick(&client);
    }
    for (i = 0; i < 3 && i < REDLOCK_PIPELINE_MAX; i++)
        redlock_cancel(&client, &many[i]);
    redlock_tick(&client);
    while (redlock_next_completed(&client) != NULL)
        ended++;
    is_int((int)ended, (int)i, "r04: cancelled at once behind %d requests",
           REDLOCK_PIPELINE_MAX - 1);
    redlock_deinit(&client);
}

/* Node 0 has not accepted all bytes of the send buffer. Its connection breaks while room is made for the
   handshake of node 2. Node 0 must be connected again only after its locks know that they get no reply on the
   old connection. */
static void r05_a_break_while_room_is_made(void)
{
    unsigned i;

    if (BURST < 200)
        return; /* no request is free before the buffer fills */
    begin_with_defaults(3);
    warm_up();
    make_many(BURST);
    fake_nodes[0].full = 1;
    start_many(0, BURST, 1000);
    fake_nodes[2].connect_us = 5 * MS;
    fake_pass(&client, 0);
    fake_break(2);
    fake_pass(&client, 4 * MS);
    fake_now_us += 2 * MS;
    fake_nodes[0].full = 0;
    fake_break(0);
    redlock_handle_events(&client, 2, REDLOCK_WRITABLE);
    ok(nodes[0].state == REDLOCK_NODE_IDLE, "r05: the connection broke while room was made");
    fake_pass(&client, 3000 * MS);
    ok(nodes[0].state == REDLOCK_NODE_READY && fake_nodes[0].epoch == 2,
       "r05: connected once more: %d", fake_nodes[0].epoch);
    for (i = 0; i < BURST && many[i].status == REDLOCK_OK; i++) {
    }
    is_int((int)i, BURST, "r05: all are held");
    redlock_deinit(&client);
}

/* The only node has failed once, and served locks since. Its connection breaks while room is made for a command. The node
   must be connected again at once: the pause after that failure is over. */
static void r05_a_break_after_an_earlier_failure(void)
{
    static const char key[REDLOCK_KEY_MAX] = {0};
    struct redlock_lock other;
    uint64_t start;
    unsigned size;
    long took = 0;
    int status = REDLOCK_OK;

    for (size = 1; size <= REDLOCK_KEY_MAX && status == REDLOCK_OK && took < 10 * MS; size++) {
        begin_with_defaults(1);
        fake_unlogged = 1;
        fake_nodes[0].refuses = 1;
        acquire(0);
        fake_nodes[0].refuses = 0;
        fake_pass(&client, 3000 * MS);
        warm_up();
        redlock_lock_init(&other, key, size, 10000);
        fake_nodes[0].full = 1;
        while (client.priv.out.used + 80U < REDLOCK_SEND_MAX && !client.priv.jammed &&
               !client.priv.full) {
            redlock_acquire_start(&client, &other, 0);
            redlock_tick(&client);
            redlock_cancel(&client, &other);
            fake_pass(&client, 0);
        }
        fake_nodes[0].full = 0;
        fake_break(0);
        start = fake_now_us;
        status = acquire(0);
        took = since(start);
        redlock_deinit(&client);
    }
    ok(status == REDLOCK_OK && took < 10 * MS,
       "r05: a break while room is made behind keys of up to %u bytes: %s after %ld us", size - 1,
       redlock_strerror(status), took);
}

/* Node 1 closes its connection. The client finds this while it makes room for the command to node 0. After
   that it must not send the command for node 1 on the closed connection. */
static void r05_a_break_before_the_next_command(void)
{
    unsigned n;
    int i, epoch = 0;

    for (n = BURST < 200 ? 1 : 150; n < 168 && n <= BURST; n++) {
        memset(&settings, 0, sizeof settings);
        settings.longest_ttl_ms = 60000;
        begin(3);
        for (i = 0; i < 3; i++)
            fake_nodes[i].server.age_s = 100000;
        make_fenced();
        warm_up();
        make_many(BURST);
        epoch = fake_nodes[1].epoch;
        fake_nodes[1].full = 1;
        start_many(0, n, 0);
        redlock_tick(&client);
        fake_break(1);
        redlock_acquire_start(&client, &lock, 0);
        redlock_tick(&client);
        fake_nodes[1].full = 0;
        fake_pass(&client, 100 * MS);
        if (lock.status != REDLOCK_OK)
            break;
        redlock_deinit(&client);
    }
    ok(n == 168 || n == BURST + 1,
       "r05: %u locks, a connection breaks while room is made: %s, %d connections", n,
       redlock_strerror(lock.status), fake_nodes[1].epoch - epoch);
}

/* The only node hangs. The stall must be found although no event occurs. */
static void r05_a_stall_without_events(void)
{
    begin_with_defaults(1);
    warm_up();
    is_int(acquire(0), REDLOCK_OK, "r05: held");
    fake_pass(&client, 100 * MS);
    fake_nodes[0].hung = 1;
    is_int(extend(), REDLOCK_UNREACHABLE, "r05: the only node hangs");
    fake_pass(&client, 2000 * MS);
    ok(nodes[0].state != REDLOCK_NODE_READY, "r05: the connection is closed");
}

/* The memory of a lock that has ended is the caller's. Whether late replies leave it unchanged for `us`. */
static int stays_unchanged(uint64_t us)
{
    static const struct redlock_lock none;

    memset(&lock, 0, sizeof lock);
    fake_pass(&client, us);
    return memcmp(&lock, &none, sizeof lock) == 0;
}

static void r05_a_lost_lock_is_not_written_to(void)
{
    memset(&settings, 0, sizeof settings);
    settings.stall_ms = 60000;
    begin(3);
    lock.ttl_ms = 1000;
    is_int(acquire(0), REDLOCK_OK, "r05: held");
    redlock_auto_extend_start(&client, &lock, 100);
    fake_pass(&client, 300 * MS);
    fake_nodes[2].delay_us = 5000 * MS;
    fake_pass(&client, 100 * MS);
    is_int(lock.extended, 1, "r05: extended by two, the third is slow");
    fake_sleep_us = 2000 * MS;
    is_int(wait_for(&lock, 3000 * MS), REDLOCK_LOST, "r05: lost while the process sleeps");
    ok(stays_unchanged(6000 * MS), "r05: the late reply of the third does not write to the lock");
}

/* A fencing token needs a second round. A late grant of the first round is not a vote in the second, nor is a
   late reply of the second in a third. */
static void r16_replies_to_earlier_rounds(int late)
{
    char counter[24];

    begin_with_defaults(3);
    warm_up();
    make_fenced();
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

/* Node 0 grants the lock and restarts without its keys before node 1 grants it. Another client may hold the
   lock on nodes 0 and 2, so the grant of node 0 must not count. */
static void r03_a_vote_of_a_broken_connection(int use_fencing)
{
    memset(&settings, 0, sizeof settings);
    settings.retries = REDLOCK_NONE;
    begin(3);
    warm_up();
    if (use_fencing)
        make_fenced();
    held_by("other", 2, 2);
    fake_nodes[1].delay_us = 20 * MS;
    redlock_acquire_start(&client, &lock, 0);
    fake_pass(&client, 10 * MS);
    is_int(lock.granted, 1, "r03: granted by the first");
    fake_restart(0);
    fake_pass(&client, 100 * MS);
    ok(lock.status != REDLOCK_OK && lock.status != REDLOCK_PENDING,
       "r03: the first has restarted, its grant does not count: %s", redlock_strerror(lock.status));
}

/* Node 2 confirms the extension, and its connection breaks before node 1 confirms it. Node 2 must be asked
   again: it may have restarted without its keys, or be connected under another address, where it would vote
   twice. */
static void r13_an_extension_of_a_broken_connection(int restarts)
{
    begin_with_defaults(3);
    warm_up();
    is_int(acquire(0), REDLOCK_OK, "r13: held");
    fake_pass(&client, 20 * MS);
    fake_nodes[0].hung = 1;
    fake_nodes[1].delay_us = 20 * MS;
    redlock_extend_start(&client, &lock);
    fake_pass(&client, 10 * MS);
    is_int(lock.granted, 4, "r13: confirmed by the third");
    if (restarts)
        fake_restart(2);
    else
        fake_break(2);
    fake_pass(&client, 60 * MS);
    is_int((int)fake_count(2, 'E'), restarts && !REDLOCK_MINIMAL ? 3 : 2,
           "r13: the third is asked again");
    ok((lock.status == REDLOCK_OK) != restarts, "r13: its second reply counts: %s",
       redlock_strerror(lock.status));
}

/* ---- Errors that the second review found ---------------------------------------------------------- */

/* The rollback is unanswered when the attempt ends. Then the node replies to the release with a temporary
   error, and to PTTL with a time. The reply to PTTL must not count as a reply to the release. */
static void r04_a_reply_to_pttl_is_no_reply_to_the_release(void)
{
    char holder[64];

    memset(&settings, 0, sizeof settings);
    settings.retries = REDLOCK_NONE;
    begin(3);
    warm_up();
    set_holder(&lock, holder, sizeof holder);
    fake_nodes[1].hung = fake_nodes[2].hung = 1;
    redlock_acquire_start(&client, &lock, 0);
    fake_pass(&client, 20 * MS);
    ok(fake_find(0, "k", 1) != NULL, "r04: granted by one node, two hang");
    fake_nodes[0].reply = "-MISCONF Redis is configured to save RDB snapshots\r\n";
    fake_nodes[0].reply_once = 1;
    fake_pass(&client, 60 * MS);
    is_int(lock.status, REDLOCK_UNREACHABLE, "r04: failed");
    ok(fake_nodes[0].reply == NULL && fake_find(0, "k", 1) != NULL,
       "r04: the release gets a temporary error");
    fake_pass(&client, 1000 * MS);
    is_int(fake_find(0, "k", 1) == NULL, REPEATS, "r04: the release is repeated");
    redlock_deinit(&client);
}

/* Held on three nodes with auto-extension. Just before the next extension two of them lose the key. */
static void begin_loss(void)
{
    begin_with_defaults(3);
    lock.ttl_ms = 30000;
    acquire(0);
    redlock_auto_extend_start(&client, &lock, 100);
    fake_pass(&client, 9900 * MS);
    fake_delete(0, "k");
    fake_delete(1, "k");
}

/* The third node is being connected when the lock is lost. It must be sent the release when it is up. */
static void r04_a_loss_while_a_node_connects(void)
{
    begin_loss();
    fake_nodes[2].connect_us = 50 * MS;
    fake_break(2);
    fake_pass(&client, 140 * MS);
    is_int(lock.status, REDLOCK_LOST, "r04: lost at once");
    ok(fake_find(2, "k", 1) != NULL, "r04: the third node is not up yet");
    fake_pass(&client, 500 * MS);
    is_int(fake_find(2, "k", 1) == NULL, REPEATS, "r04: the key is deleted there when it is up");
}

/* The third node is busy when the lock is lost. */
static void r04_a_loss_and_a_temporary_error(void)
{
    begin_loss();
    fake_nodes[2].reply = "-BUSY Redis is busy running a script.\r\n";
    fake_pass(&client, 300 * MS);
    is_int(lock.status, REDLOCK_LOST, "r04: lost at once");
    ok(fake_find(2, "k", 1) != NULL, "r04: the third node cannot delete the key");
    fake_nodes[2].reply = NULL;
    fake_pass(&client, 500 * MS);
    is_int(fake_find(2, "k", 1) == NULL, REPEATS, "r04: the release is repeated");
}

/* The outcome of a release is known, but it waits for the connection to node 4. Meanwhile node 3 replies a temporary
   error to it, or breaks down. */
static void r04_another_reply_while_a_release_waits(const char *words)
{
    struct redlock_lock was;

    begin_with_defaults(5);
    warm_up();
    lock.ttl_ms = 60000;
    is_int(acquire(0), REDLOCK_OK, "r04: held");
    fake_pass(&client, 20 * MS);
    was = lock;
    fake_nodes[4].connect_us = 40 * MS;
    fake_break(4);
    fake_nodes[3].delay_us = 5 * MS;
    fake_nodes[3].hung = words == NULL;
    fake_nodes[3].reply = words;
    redlock_release_start(&client, &lock, 100);
    fake_pass(&client, 20 * MS);
    is_int(lock.status, REDLOCK_PENDING, "r04: the release waits for the connection to a node");
    if (words == NULL)
        fake_break(3);
    fake_nodes[3].hung = 0;
    fake_nodes[3].reply = NULL;
    ok(has_token(3, &was), "r04: another node still has the key");
    fake_pass(&client, 1000 * MS);
    is_int(lock.status, REDLOCK_OK, "r04: released");
    /* without an answer it is sent again on the next connection */
    is_int(nodes_with(&was) == 0, REPEATS || words == NULL, "r04: the key is deleted on both");
}

#if REDLOCK_OWED_MAX > 0
/* The reply to the release of a first lock arrives byte by byte. Then its entry in `owed` is used for the
   release of a second lock, which gets a temporary error. The reply to the PTTL of the first lock must not
   count as a reply to the second release. */
static void r04_a_reply_to_pttl_of_another_lock(void)
{
    char holder[64];
    int i;

    if (REDLOCK_PIPELINE_MAX < 8)
        return; /* with fewer requests the commands have another order */
    memset(&settings, 0, sizeof settings);
    settings.retries = REDLOCK_NONE;
    begin(3);
    warm_up();
    make_unreachable(1);
    make_unreachable(2);
    fake_pass(&client, 10 * MS);
    make_many(1);
    set_holder(&lock, holder, sizeof holder);
    redlock_acquire_start(&client, &lock, 0);
    redlock_tick(&client);
    redlock_cancel(&client, &lock);
    redlock_tick(&client);
    start_many(0, 1, 0);
    redlock_tick(&client);
    ok(client.priv.owed[0].unsent == 1, "r04: one release is unanswered");
    fake_nodes[0].drip = 1;
    fake_now_us += 2 * MS;
    for (i = 0; i < 3000 && client.priv.owed[0].unsent != 0; i++) {
        redlock_handle_events(&client, 0, REDLOCK_READABLE);
        redlock_tick(&client);
    }
    fake_nodes[0].reply = "-MISCONF Redis is configured to save RDB snapshots\r\n";
    fake_nodes[0].reply_once = 1;
    fake_nodes[0].drip = 0;
    redlock_cancel(&client, &many[0]);
    fake_pass(&client, 10 * MS);
    ok(fake_nodes[0].reply == NULL && has_token(0, &many[0]),
       "r04: the second release gets a temporary error");
    fake_pass(&client, 1000 * MS);
    ok(!has_token(0, &many[0]), "r04: the release is repeated");
    redlock_deinit(&client);
}
#else
static void r04_a_reply_to_pttl_of_another_lock(void)
{
}
#endif

/* Node 0 accepts no bytes, so the buffer is full, and a lock is lost. The other nodes must stay connected. */
static void r05_a_loss_costs_no_connection(void)
{
    if (BURST < 200)
        return; /* no request is free before the buffer fills */
    begin_with_defaults(3);
    warm_up();
    make_many(BURST);
    is_int(acquire(0), REDLOCK_OK, "r05: held");
    fake_pass(&client, 10 * MS);
    fake_delete(1, "k");
    fake_put(1, "k", "other", 60000);
    fake_delete(2, "k");
    fake_put(2, "k", "other", 60000);
    redlock_extend_start(&client, &lock);
    redlock_tick(&client);
    fake_nodes[0].full = 1;
    start_many(0, BURST, 1000);
    fake_pass(&client, 10 * MS);
    is_int(lock.status, REDLOCK_LOST, "r05: lost while the buffer is full");
    ok(fake_nodes[1].connected && fake_nodes[2].connected,
       "r05: the nodes that accept bytes stay connected");
    fake_pass(&client, 100 * MS);
    is_int(fake_nodes[1].epoch, 1, "r05: also later");
    redlock_deinit(&client);
}

/* A far node accepts no bytes for a while, and the buffer has no room for a rollback. The near nodes, which
   accept bytes, must stay connected. */
static void r04_near_nodes_stay_connected(void)
{
    if (BURST < 200)
        return;
    memset(&settings, 0, sizeof settings);
    settings.retries = REDLOCK_NONE;
    begin(3);
    set_distance(0, 100 * MS);
    warm_up();
    fake_pass(&client, 300 * MS);
    ok(nodes[0].rtt_us > 50 * MS, "r04: one node is far away");
    make_many(BURST);
    held_by("other", 1, 2);
    redlock_acquire_start(&client, &lock, 0);
    redlock_tick(&client);
    fake_nodes[0].full = 1;
    start_many(0, BURST, 1000);
    fake_pass(&client, 130 * MS);
    is_int(lock.status, REDLOCK_HELD, "r04: refused by the near nodes");
    ok(fake_nodes[1].connected && fake_nodes[2].connected, "r04: the near nodes stay connected");
    redlock_deinit(&client);
}

/* A far node accepts no bytes. The near nodes must wait for room in the buffer at most half as long as a vote
   may take, at any distance of the far node. */
static void r15_a_far_node_does_not_delay_the_near_ones(void)
{
    if (BURST < 200)
        return;
    begin_with_defaults(3);
    set_distance(0, 100 * MS);
    warm_up();
    fake_pass(&client, 300 * MS);
    ok(nodes[0].rtt_us > 50 * MS, "r15: one node is far away");
    make_many(BURST);
    is_int(acquire(0), REDLOCK_OK, "r15: held");
    fake_nodes[0].full = 1;
    start_many(0, BURST, 1000);
    fake_pass(&client, 10 * MS);
    ok(client.priv.jammed, "r15: the far node accepts no bytes, the buffer is full");
    is_int(extend(), REDLOCK_OK, "r15: the extension is not delayed");
    redlock_deinit(&client);
}

/* Node 0 accepts no bytes, but replies to earlier commands, one every 20 ms. It must not delay the others for
   longer than a node that is silent. */
static void r05_replies_make_no_room(void)
{
    enum { REPLIES = 20 };
    unsigned i;

    if (BURST < 200)
        return;
    begin_with_defaults(3);
    warm_up();
    make_many(BURST);
    is_int(acquire(0), REDLOCK_OK, "r05: held");
    fake_pass(&client, 10 * MS);
    for (i = 0; i < REPLIES; i++) {
        fake_nodes[0].delay_us = (uint64_t)(i + 1) * 20 * MS;
        start_many(i, i + 1, 0);
        redlock_tick(&client);
    }
    fake_nodes[0].full = 1;
    start_many(REPLIES, BURST, 1000);
    fake_pass(&client, 10 * MS);
    ok(client.priv.jammed, "r05: a node replies, but accepts no bytes; the buffer is full");
    fake_pass(&client, 200 * MS);
    is_int(extend(), REDLOCK_OK, "r05: after 200 ms an extension is not delayed");
    redlock_deinit(&client);
}

/* The process was paused, and reads the clock before the sockets. Node 0 accepts bytes again, so it must not
   be disconnected. */
static void r05_a_paused_process_disconnects_no_node(void)
{
    if (BURST < 200)
        return;
    begin_with_defaults(3);
    warm_up();
    make_many(BURST);
    fake_nodes[0].full = 1;
    start_many(0, BURST, 1000);
    fake_pass(&client, 1 * MS);
    ok(client.priv.jammed, "r05: a node accepts no bytes, the buffer is full");
    fake_nodes[0].full = 0;
    fake_now_us += 500 * MS;
    fake_pass(&client, 10 * MS);
    ok(fake_nodes[0].connected, "r05: after the pause it accepts bytes and stays connected");
    redlock_deinit(&client);
}

/* The process was paused while it connected. The handshake is sent after the pause, so no reply is late. */
static void r05_a_pause_while_it_connects(void)
{
    int i;

    begin_with_defaults(3);
    for (i = 0; i < 3; i++)
        fake_nodes[i].connect_us = 5 * MS;
    fake_sleep_us = 2000 * MS;
    is_int(acquire(0), REDLOCK_OK, "r05: paused while it connects, and held");
    is_int(fake_nodes[0].connects, 1, "r05: no connection is closed");
}

/* As r03_a_vote_of_a_broken_connection, but in one tick: the client finds the broken connection while it
   makes room for a release, just before the decision. */
static void r03_a_vote_of_a_connection_that_breaks_now(void)
{
    uint64_t took_us, least_us = 0;
    unsigned n, i;

    if (BURST < 200)
        return;
    for (n = 50; n < 150; n++) {
        memset(&settings, 0, sizeof settings);
        settings.retries = REDLOCK_NONE;
        begin(3);
        warm_up();
        make_many(n);
        start_many(0, n, 0);
        fake_pass(&client, 10 * MS);
        held_by("other", 2, 2);
        fake_nodes[1].delay_us = 20 * MS;
        redlock_acquire_start(&client, &lock, 0);
        fake_pass(&client, 10 * MS);
        fake_restart(0);
        fake_now_us += 15 * MS;
        for (i = 0; i < n; i++)
            redlock_release_start(&client, &many[i], 1000);
        redlock_handle_events(&client, 1, REDLOCK_READABLE);
        fake_transmit_us =
            1; /* 1 us for each call: one more than with fewer locks shows that room was made */
        took_us = fake_now_us;
        redlock_tick(&client);
        took_us = fake_now_us - took_us;
        redlock_deinit(&client);
        if (n == 50)
            least_us = took_us;
        if (took_us > least_us)
            break;
    }
    ok(n < 150, "r03: room was made for %u releases", n);
    ok(lock.status != REDLOCK_OK, "r03: a grant of the broken connection does not count: %s",
       redlock_strerror(lock.status));
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

/* redlock.h requires a monotonic clock. If the clock steps back nevertheless, the remaining time must not grow. */
static void r03_a_clock_that_steps_back(void)
{
    uint32_t left;

    begin_with_defaults(3);
    is_int(acquire(0), REDLOCK_OK, "r03: held");
    fake_pass(&client, 5000 * MS);
    left = redlock_remaining_ms(&client, &lock);
    fake_now_us -= 4000 * MS;
    redlock_tick(&client);
    ok(redlock_remaining_ms(&client, &lock) <= left,
       "r03: the clock steps back: %lu ms left, not %lu", (unsigned long)left,
       (unsigned long)redlock_remaining_ms(&client, &lock));
    redlock_deinit(&client);
}

/* A node that refuses connections is not connected again and again until the clock is where it was. */
static void r05_a_clock_that_steps_back(void)
{
    int before;

    begin_with_defaults(3);
    is_int(acquire(0), REDLOCK_OK, "r05: held");
    fake_nodes[2].refuses = 1;
    fake_break(2);
    fake_pass(&client, 10 * MS);
    before = fake_nodes[2].connects;
    fake_now_us -= 4000 * MS;
    extend();
    fake_pass(&client, 1000 * MS);
    ok(fake_nodes[2].connects <= before + 6,
       "r05: the clock steps back: connected %d times, after pauses that grow",
       fake_nodes[2].connects - before);
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
    redlock_lock_init(&lock, "k", 1, 10000);
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

/* ---- Blocking time ---------------------------------------------------------------------------- */

static uint32_t dice;

static unsigned roll(unsigned sides)
{
    dice = dice * 1664525U + 1013904223U;
    return (dice >> 8) % sides;
}

static int one_in(unsigned sides)
{
    return roll(sides) == 0;
}

/* Node i gets faults, or none. */
static void roll_faults(int i)
{
    static const char *const replies[] = {"-ERR no\r\n", "-BUSY no\r\n",  "-NOPERM no\r\n", "",
                                          ":0\r\n",      "$3\r\nabc\r\n", "+OK\r\n"};
    struct fake_node *n = &fake_nodes[i];

    n->refuses = one_in(5);
    n->never_up = one_in(6);
    n->hung = one_in(6);
    n->full = one_in(8);
    n->drip = one_in(10);
    n->drops_set_reply = one_in(10);
    n->server.loading = one_in(12);
    n->delay_us = roll(one_in(3) ? 120 * MS : 3 * MS);
    n->connect_us = roll(one_in(3) ? 150 * MS : 3 * MS);
    n->reply = one_in(8) ? replies[roll(sizeof replies / sizeof *replies)] : NULL;
    n->reply_once = one_in(2);
    if (one_in(8))
        fake_break(i);
    if (one_in(20))
        fake_restart(i);
    if (one_in(10))
        fake_put(i, "k", "other", 300 + roll(5000));
}

static uint64_t vote_us; /* the longest time for a vote since it was set to 0 */

static void note_vote_us(const struct redlock_node *all, unsigned count)
{
    unsigned i;

    for (i = 0; i < count; i++)
        if (vote_us < all[i].priv.timeout_us)
            vote_us = all[i].priv.timeout_us;
}

static void wait_and_note_votes(void *context, struct redlock_node *all, unsigned count,
                                uint64_t timeout_us, uint8_t *events)
{
    note_vote_us(all, count);
    fake_io()->wait(context, all, count, timeout_us, events);
}

/* How long redlock.h says that the call may block; without a wait for each attempt that it has made. */
static uint64_t promised_us(int call, uint32_t wait_ms, uint64_t us)
{
    uint64_t rest_us = settings.node_timeout_ms < 50 ? 2 * settings.node_timeout_ms * MS : 100 * MS;
    uint64_t connect_us = settings.stall_ms * (uint64_t)MS + rest_us;
    unsigned attempts = wait_ms == 0 && lock.priv.op.attempts > 0 ? lock.priv.op.attempts : 1;

    if (call > 0)
        return us + (call == 2 ? wait_ms * (uint64_t)MS : 0);
    return wait_ms * (uint64_t)MS +
           attempts * (us * 5 / 2 + connect_us + (lock.use_fencing ? 4 * us : 0));
}

/* The three calls in any order, on servers with any faults. Returns 0 if one takes longer than promised. */
static int rolled_calls_are_bounded(uint32_t seed)
{
    static struct redlock_io io;
    unsigned i, k, count;

    io = *fake_io();
    io.wait = wait_and_note_votes;
    dice = seed;
    memset(&settings, 0, sizeof settings);
    settings.node_timeout_ms = 5 + roll(100);
    settings.stall_ms = settings.node_timeout_ms * (1 + roll(20));
    count = 1 + roll(REDLOCK_NODES_MAX < 5 ? REDLOCK_NODES_MAX : 5);
    begin(count);
    client.priv.io = &io;
    fake_unlogged = 1;
    lock.ttl_ms = 1000 + roll(60000);
    set_use_fencing(&lock, !REDLOCK_MINIMAL && one_in(4));
    for (k = 0; k < 12; k++) {
        uint32_t wait_ms = one_in(2) ? roll(400) : 0;
        uint64_t start;
        int call = (int)roll(3);

        for (i = 0; i < count; i++)
            if (one_in(3))
                roll_faults((int)i);
        if (one_in(3))
            fake_pass(&client, roll(2000) * (uint64_t)MS);
        if (call == 0)
            redlock_abandon(&client, &lock);
        start = fake_now_us;
        vote_us = 0;
        (void)(call == 0 ? acquire(wait_ms) : call == 1 ? extend() : release(wait_ms));
        note_vote_us(nodes, count);
        if (since(start) > (long)promised_us(call, wait_ms, vote_us) + 2 * MS)
            return 0;
    }
    redlock_deinit(&client);
    return 1;
}

static void r15_blocking_calls_are_bounded(void)
{
    uint32_t seed, wrong = 0, first = 0;

    for (seed = 1; seed <= 10000; seed++)
        if (!rolled_calls_are_bounded(seed)) {
            wrong++;
            first = first == 0 ? seed : first;
        }
    ok(wrong == 0, "r15: %lu of 10,000 programs are blocked too long, first seed %lu",
       (unsigned long)wrong, (unsigned long)first);
}

static uint64_t next_change_us;
static long vote_ms; /* the longest time of a vote in this run */

/* A node hangs or goes on, or another client acquires or releases the lock there. */
static void change_a_node(unsigned count)
{
    static const char *const holders[] = {"a", "b", "c"};
    int i = (int)roll(count);

    switch (roll(4)) {
    case 0:
        fake_nodes[i].hung = 1;
        break;
    case 1:
        fake_resume(i);
        break;
    case 2:
        if (!fake_nodes[i].hung)
            fake_put(i, "k", holders[roll(3)], 60000);
        break;
    default:
        if (!fake_nodes[i].hung)
            fake_delete(i, "k");
    }
}

/* Meanwhile nodes change, some milliseconds after each other. */
static void wait_while_nodes_change(void *context, struct redlock_node *all, unsigned count,
                                    uint64_t timeout_us, uint8_t *events)
{
    uint64_t left_us = next_change_us > fake_now_us ? next_change_us - fake_now_us : 0;
    unsigned i;

    for (i = 0; i < count; i++)
        if ((long)((all[i].priv.timeout_us + MS - 1) / MS) > vote_ms)
            vote_ms = (long)((all[i].priv.timeout_us + MS - 1) / MS);
    fake_io()->wait(context, all, count, timeout_us < left_us ? timeout_us : left_us, events);
    if (fake_now_us < next_change_us)
        return;
    change_a_node(count);
    next_change_us = fake_now_us + (1 + roll(30)) * MS;
}

/* However nodes change, an acquire ends in the time that redlock.h promises: wait_ms and `votes` times node_timeout_ms.
   The nodes change so often that many attempts fail. */
static void r15_the_longest_acquire(uint32_t wait_ms, long votes)
{
    struct redlock_io io = *fake_io();
    unsigned run, i, late = 0, failed = 0;
    long longest_us = 0;

    io.wait = wait_while_nodes_change;
    for (run = 0; run < 2000; run++) {
        unsigned count = 3 + run % 3;
        uint64_t start;

        dice = run;
        vote_ms = 50;
        begin_with_defaults(count);
        warm_up();
        client.priv.io = &io;
        for (i = 0; i < 2 * count; i++)
            change_a_node(count);
        next_change_us = start = fake_now_us;
        failed += acquire(wait_ms) != REDLOCK_OK;
        late += since(start) > ((long)wait_ms + votes * vote_ms) * MS;
        if (vote_ms == 50 && since(start) > longest_us)
            longest_us = since(start);
    }
    ok(late == 0,
       "r15: an acquire that waits %lu ms takes at most %ld votes more: %u of 2000 do not",
       (unsigned long)wait_ms, votes, late);
    ok(longest_us > ((long)wait_ms + votes * 50 / 3) * MS,
       "r15: one takes more than a third of them: %ld us", longest_us);
    ok(failed > 500, "r15: %u fail", failed);
}

/* ---- Distances, and calls that are far apart --------------------------------------------------- */

/* Between two blocking calls nothing is read. */
static void gap(uint64_t us)
{
    fake_now_us += us;
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

#if REDLOCK_OWED_MAX > 0
/* Releases that do not wait for replies follow each other within a millisecond. The replies to the first ones make room
   for the last one, whose connection breaks. */
static void r04_a_burst_of_releases(void)
{
    enum { LOCKS = REDLOCK_OWED_MAX + 2 };
    struct redlock_lock locks[LOCKS];
    char keys[LOCKS][4];
    unsigned i;

    begin_with_defaults(3);
    for (i = 0; i < 3; i++)
        fake_nodes[i].delay_us = 50;
    warm_up();
    for (i = 0; i < LOCKS; i++) {
        snprintf(keys[i], sizeof keys[i], "%u", i);
        redlock_lock_init(&locks[i], keys[i], strlen(keys[i]), 10000);
        is_int(redlock_acquire(&client, &locks[i], 0), REDLOCK_OK, "r04: held");
        gap(10 * MS);
    }
    for (i = 0; i < LOCKS; i++) {
        fake_nodes[2].hung = i == LOCKS - 1;
        is_int(redlock_release(&client, &locks[i], 0), REDLOCK_UNCONFIRMED, "r04: released");
        gap(100);
    }
    fake_break(2);
    fake_nodes[2].hung = 0;
    fake_pass(&client, 1000 * MS);
    is_int((int)fake_keys_left(), 0, "r04: the last release is repeated, no key is left");
}
#endif

/* Node 2 fails: it is gone, hangs, never comes up, or refuses to create keys. */
static const char *const failure_names[] = {"gone", "hung", "never up", "out of memory"};

static void fail_node_2(unsigned how)
{
    fake_nodes[2].hung = how == 1;
    fake_nodes[2].never_up = how == 2;
    if (how == 3)
        fake_nodes[2].reply = "-OOM command not allowed when used memory > 'maxmemory'.\r\n";
    if (how == 0)
        make_unreachable(2);
    if (how == 2)
        fake_break(2);
}

/* So many calls until one succeeds; 20: none does. */
static int calls_until_ok(int (*call)(void), uint64_t gap_us)
{
    int calls;

    for (calls = 1; calls < 20; calls++) {
        gap(gap_us);
        if (call() == REDLOCK_OK)
            break;
    }
    return calls;
}

static int acquire_at_once(void)
{
    return acquire(0);
}

/* Nodes 0 and 2 are near, node 1 is far. When node 2 fails, the lock needs the far one. */
static void r15_a_far_node_is_needed(unsigned how, uint64_t rtt_us)
{
    int calls;

    begin_with_defaults(3);
    set_distance(1, rtt_us);
    warm_up();
    fake_pass(&client, 1000 * MS);
    fail_node_2(how);
    calls = calls_until_ok(acquire_at_once, 100 * MS);
    ok(calls <= 3, "r15: %s, the other one is far: acquired at call %d", failure_names[how], calls);
    calls = calls_until_ok(extend, 100 * MS);
    ok(calls <= 3, "r15: extended at call %d", calls);
    is_int(release(1000), REDLOCK_OK, "r15: released");
}

/* The round trip grows from 1 to 80 ms, and later to 300 ms, while calls are far apart. Node 2 may have failed. */
static void r15_a_distance_that_grows_between_calls(uint64_t gap_us, unsigned failed)
{
    int i, calls;

    begin_with_defaults(3);
    lock.ttl_ms = 120000;
    for (i = 0; i < 3; i++)
        set_distance(i, MS);
    warm_up();
    is_int(acquire(0), REDLOCK_OK, "r15: held");
    fake_pass(&client, 100 * MS);
    if (failed)
        make_unreachable(2);
    set_distance(1, 80 * MS);
    set_distance(2, 80 * MS);
    calls = calls_until_ok(extend, gap_us);
    ok(calls <= 4, "r15: 80 ms away: extended at call %d", calls); /* one finds idle connections */
    ok(nodes[1].rtt_us < 100 * MS, "r15: the gap is not measured: %lu us",
       (unsigned long)nodes[1].rtt_us);
    set_distance(1, 300 * MS);
    set_distance(2, 300 * MS);
    calls = calls_until_ok(extend, gap_us);
    ok(calls <= 5, "r15: 300 ms away: extended at call %d", calls);
}

/* One request at a time is timed, whatever is sent before and behind it. */
static void r15_a_round_trip_of_several_requests(void)
{
    unsigned i;

    begin_with_defaults(1);
    make_many(30);
    set_distance(0, 40 * MS);
    warm_up();
    fake_pass(&client, 1000 * MS);
    for (i = 0; i < 30 && i < REDLOCK_PIPELINE_MAX; i++) {
        start_many(i, i + 1, 1000);
        fake_pass(&client, 7 * MS);
    }
    fake_pass(&client, 100 * MS);
    ok(nodes[0].rtt_us > 39500 && nodes[0].rtt_us < 41500, "r15: a round trip of 40 ms: %lu us",
       (unsigned long)nodes[0].rtt_us);
    redlock_deinit(&client);
}

/* The replies come while the process is paused, between `wait` and the tick: they are in time. */
static void r15_a_pause_before_the_tick(void)
{
    begin_with_defaults(3);
    warm_up();
    is_int(acquire(0), REDLOCK_OK, "r15: held");
    redlock_extend_start(&client, &lock);
    redlock_tick(&client);
    gap(200 * MS);
    redlock_tick(&client);
    is_int(lock.status, REDLOCK_OK, "r15: the replies that are here count");
}

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
static void r09_a_lost_lock_is_not_repaired(void)
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

/* A host that hangs was never sent the lock: a release does not wait for it. */
static void r11_a_release_asks_nodes_that_may_have_the_key(void)
{
    uint64_t start;

    begin_with_defaults(3);
    fake_nodes[2].never_up = 1;
    is_int(acquire(0), REDLOCK_OK, "r11: held on two of three");
    start = fake_now_us;
    is_int(release(100), REDLOCK_OK, "r11: released");
    ok(since(start) < 10 * MS, "r11: at once: %ld us", since(start));
    is_int(acquire(0), REDLOCK_OK, "r11: held again");
    start = fake_now_us;
    release(0);
    ok(since(start) < 10 * MS, "r11: without a wait, at once: %ld us", since(start));
}

/* Node 2 hangs when locks are released, and then goes down. The release of another lock, which node 1 cannot run at
   first, must be repeated. */
static void r04_a_failed_node_uses_no_room(void)
{
    int i;

    begin_with_defaults(3);
    lock.ttl_ms = 60000;
    make_many(REDLOCK_OWED_MAX);
    for (i = 0; i < REDLOCK_OWED_MAX; i++) {
        many[i].ttl_ms = 60000;
        redlock_acquire(&client, &many[i], 0);
    }
    is_int(acquire(0), REDLOCK_OK, "r04: held");
    fake_pass(&client, 20 * MS);
    fake_nodes[2].hung = 1;
    for (i = 0; i < REDLOCK_OWED_MAX; i++)
        redlock_release(&client, &many[i], 100);
    fake_nodes[2].refuses = 1;
    fake_pass(&client, 2000 * MS);
    fake_nodes[1].reply = "-BUSY Redis is busy running a script.\r\n";
    release(50);
    fake_nodes[1].reply = NULL;
    fake_pass(&client, 1000 * MS);
    ok(fake_find(1, "k", 1) == NULL, "r04: the release is repeated where the node was busy");
}

/* All connections break while a lock is held, and break again before they are ready. The release meets nodes that
   are down, and is sent when they are back. */
static void r04_a_release_meets_nodes_that_are_down(uint32_t wait_ms)
{
    int i;

    begin_with_defaults(3);
    lock.ttl_ms = 60000;
    is_int(acquire(0), REDLOCK_OK, "r04: held");
    fake_pass(&client, 20 * MS);
    for (i = 0; i < 3; i++)
        fake_nodes[i].refuses = 1;
    for (i = 0; i < 3; i++)
        fake_break(i);
    is_int(extend(), REDLOCK_UNREACHABLE, "r04: all nodes refuse connections");
    is_int((int)nodes[0].state, REDLOCK_NODE_DOWN, "r04: a node is down");
    is_int(release(wait_ms), REDLOCK_UNCONFIRMED, "r04: released while all are down");
    for (i = 0; i < 3; i++)
        fake_nodes[i].refuses = 0;
    fake_pass(&client, 5000 * MS);
    is_int((int)fake_keys_left(), 0, "r04: no key is left when they are back");
}

/* Two servers are stopped for longer than stall_ms. Their connections are made again, and wait for the handshake. More locks
   than REDLOCK_OWED_MAX are released meanwhile. */
static void r04_releases_behind_a_handshake(void)
{
    unsigned i;
    int left = 0;

    begin_with_defaults(3);
    make_many(REDLOCK_OWED_MAX + 1);
    for (i = 0; i <= REDLOCK_OWED_MAX; i++) {
        many[i].ttl_ms = 60000;
        is_int((int)redlock_acquire(&client, &many[i], 0), REDLOCK_OK, "r04: held");
    }
    fake_pass(&client, 20 * MS);
    fake_nodes[1].hung = fake_nodes[2].hung = 1;
    redlock_extend(&client, &many[0]);
    fake_pass(&client, 1100 * MS);
    is_int((int)redlock_extend(&client, &many[0]), REDLOCK_UNREACHABLE, "r04: two servers hang");
    fake_pass(&client, 100 * MS);
    is_int((int)nodes[1].state, REDLOCK_NODE_HANDSHAKE, "r04: a hung server accepts connections");
    for (i = 0; i <= REDLOCK_OWED_MAX; i++)
        redlock_release(&client, &many[i], 20);
    fake_resume(1);
    fake_resume(2);
    fake_pass(&client, 2000 * MS);
    for (i = 0; i <= REDLOCK_OWED_MAX; i++)
        left += (fake_find(1, many_keys[i], 5) != NULL) + (fake_find(2, many_keys[i], 5) != NULL);
    is_int(left, 0, "r04: the releases ran behind the handshake");
}

static void distances_and_gaps(void)
{
    unsigned how;

    for (how = 0; how < 4; how++) {
        r15_a_far_node_is_needed(how, 80 * MS);
        r15_a_far_node_is_needed(how, 150 * MS);
    }
    r15_a_distance_that_grows_between_calls(800 * MS, 0);
    r15_a_distance_that_grows_between_calls(2000 * MS, 0);
    r15_a_distance_that_grows_between_calls(2000 * MS, 1);
    r15_a_pause_before_the_tick();
    r15_a_round_trip_of_several_requests();
    if (!REDLOCK_MINIMAL) {
        r09_a_slower_node_is_repaired(0);
        r09_a_slower_node_is_repaired(100 * MS);
        r09_closed_between_two_calls();
        r09_a_lost_lock_is_not_repaired();
    }
    r08_an_extension_right_behind_the_acquire();
#if REDLOCK_OWED_MAX > 0
    r04_a_burst_of_releases();
#endif
    r11_a_release_asks_nodes_that_may_have_the_key();
    r04_releases_behind_a_handshake();
    if (REDLOCK_OWED_MAX > 0) {
        r04_a_failed_node_uses_no_room();
        r04_a_release_meets_nodes_that_are_down(0);
        r04_a_release_meets_nodes_that_are_down(20);
    }
}

int main(void)
{
    int how;

    late_commands();
    distances_and_gaps();
    every_node();
    if (!REDLOCK_MINIMAL)
        automatic_extensions();
    releases();
    r06_a_burst_on_a_new_client(MANY);
    for (how = 0; how < 3; how++) {
        r06_a_burst_with_a_failed_node(how);
        r06_no_wait_behind_a_long_one(how);
    }
    r15_no_wait_for_dead_nodes(3);
    r15_no_wait_for_dead_nodes(5);
    r15_distances();
    rules();
    if (!REDLOCK_MINIMAL)
        fencing_tokens();
    if (!REDLOCK_MINIMAL) {
        r07_notified_after_a_deinit_while_waiting(0);
        r07_notified_after_a_deinit_while_waiting(1);
        r07_released_without_waiting();
    }
#if !REDLOCK_MINIMAL
    if (!REDLOCK_MINIMAL) {
        r07_overlapping_keys(0);
        r07_overlapping_keys(1);
    }
    same_key_twice();
#endif
    if (!REDLOCK_MINIMAL)
        r09_repair_after_proof();
    r02_without_redlock_next_completed();
    r02_nothing_is_sent_after_the_end();
    r02_a_lock_that_is_used_again();
    r08_a_node_asked_late_counts_in_the_next_round();
    r06_a_short_wait_on_a_new_client();
    r05_a_pause_between_two_calls();
    r15_a_distance_that_grows();
    r04_repeated_until_the_key_has_expired();
    if (REDLOCK_LABEL_MAX >= 4)
        r04_no_repeated_release_of_a_chosen_token();
    r11_released_without_waiting();
    r05_a_burst_is_sent_at_once();
    r05_a_node_that_is_slow_to_accept_bytes();
    r05_room_again_in_the_same_tick();
    r15_a_far_node_accepts_bytes_late();
    r04_a_node_that_replies_but_accepts_no_bytes();
    r04_another_reply_while_a_release_waits("-BUSY Redis is busy running a script.\r\n");
    r04_another_reply_while_a_release_waits(NULL);
    r04_a_release_finds_a_request();
    r05_a_break_while_room_is_made();
    r05_a_break_after_an_earlier_failure();
    if (!REDLOCK_MINIMAL)
        r05_a_break_before_the_next_command();
    r05_a_stall_without_events();
    if (!REDLOCK_MINIMAL)
        r05_a_lost_lock_is_not_written_to();
    if (!REDLOCK_MINIMAL)
        if (!REDLOCK_MINIMAL)
            for (how = 0; how < 3; how++)
                r16_replies_to_earlier_rounds(how);
    r08_an_extension_behind_a_late_set();
    r13_an_extension_of_a_broken_connection(0);
    r13_an_extension_of_a_broken_connection(1);
    for (how = 0; how <= !REDLOCK_MINIMAL; how++)
        r03_a_vote_of_a_broken_connection(how);
    r12_only_releases_behind_a_handshake();
    if (!REDLOCK_MINIMAL) {
        r04_a_reply_to_pttl_is_no_reply_to_the_release();
        r04_a_reply_to_pttl_of_another_lock();
    }
    if (!REDLOCK_MINIMAL) {
        r04_a_loss_while_a_node_connects();
        r04_a_loss_and_a_temporary_error();
    }
    r05_a_loss_costs_no_connection();
    r04_near_nodes_stay_connected();
    r15_a_far_node_does_not_delay_the_near_ones();
    r05_replies_make_no_room();
    r05_a_paused_process_disconnects_no_node();
    r05_a_pause_while_it_connects();
    r03_a_vote_of_a_connection_that_breaks_now();
    if (!REDLOCK_MINIMAL) {
        r09_no_repair_after_the_end();
        r09_a_late_repair_is_no_failure();
    }
    if (!REDLOCK_MINIMAL)
        r05_a_clock_that_steps_back();
    r03_a_clock_that_steps_back();
    if (!REDLOCK_MINIMAL) {
        r09_a_repair_of_the_round_before();
        r09_a_repair_that_the_round_waits_for();
    }
    operations_and_arguments();
    r15_blocking_calls_are_bounded();
    r15_the_longest_acquire(0, 15);
    r15_the_longest_acquire(200, 2);
    return done_testing();
}
