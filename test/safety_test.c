/* safety_test.c - what an independent review of the lock found, as a user would have met it: one test for each
   case, on simulated servers, network and clock. "r08" is rule 8 in the head of redlock.c.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "one_lock.h"

enum { MANY = 3000 };

/* Of the tests with many locks: each with a key of its own. */
static struct redlock_lock many[MANY];
static char many_keys[MANY][8];
static struct mini_key more_keys[3 * MANY];

/* Node i can't be connected to, also not on the connection that there is. */
static void unreachable(int i)
{
    fake_nodes[i].refuses = 1;
    fake_break(i);
}

/* A connection takes so long, an answer too. */
static void distance(int i, uint64_t us)
{
    fake_nodes[i].connect_us = fake_nodes[i].delay_us = us;
}

/* 1: the key of `of` on node i has its token. */
static int has_token(int i, const struct redlock_lock *of)
{
    const struct mini_key *key = fake_find(i, of->key, of->key_size);
    char token[2 * sizeof of->token + 1];
    unsigned n;

    for (n = 0; n < sizeof of->token; n++)
        sprintf(token + 2 * n, "%02x", of->token[n]);
    return key != NULL && key->value_size >= 2 * sizeof of->token &&
           memcmp(key->value, token, 2 * sizeof of->token) == 0;
}

static unsigned nodes_with(const struct redlock_lock *of)
{
    unsigned i, n = 0;

    for (i = 0; i < client.priv.count; i++)
        n += (unsigned)has_token((int)i, of);
    return n;
}

/* On how many nodes another client would be given the lock now. */
static unsigned nodes_free(void)
{
    unsigned i, n = 0;

    for (i = 0; i < client.priv.count; i++)
        n += fake_find((int)i, lock.key, lock.key_size) == NULL;
    return n;
}

/* Lets time pass up to the end of the validity, and sees whether another could have got the lock before it. */
static int others_are_kept_out(void)
{
    while (redlock_remaining_ms(&client, &lock) > 0) {
        if (nodes_free() >= client.priv.quorum)
            return 0;
        fake_pass(&client, 5 * MS);
    }
    return 1;
}

/* The lock in some of its forms: one key; two keys; with a fencing token. 0: this build has it not. */
static int make_kind(unsigned kind)
{
    static const struct redlock_key other_key = {"l", 1};

    if (kind == 1 && (!REDLOCK_MULTI_KEY || REDLOCK_KEY_MAX < 12))
        return 0;
    if (kind == 2 && !REDLOCK_FENCING)
        return 0;
    set_extra_keys(&lock, kind == 1 ? &other_key : NULL, kind == 1);
    set_use_fencing(&lock, kind == 2);
    return 1;
}

static const char *const kind_names[] = {"one key", "two keys", "with a fencing token"};

/* ---- Commands that arrive late: R8, R8b, R9 -------------------------------------------------- */

/* An extension to 5 s is lost in the network together with its connection; the next one, to 60 s, succeeds. When the
   network delivers the old one, the holder would have 60 s by its own account, and on that node 5 s: another
   client gets the lock while the holder works. */
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
    is_int(extend(), REDLOCK_OK, "r08: one to 60 s overtakes it on a new connection");
    ok(redlock_remaining_ms(&client, &lock) > 59000, "r08: and is believed");
    ok(fake_arrive(1) > 0, "r08: the first one arrives");
    ok(others_are_kept_out(), "r08: nobody else can get the lock while it is valid");
}

/* Of several that are under way at once, from as many connections. */
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
    ok(others_are_kept_out(), "r08: nobody else can get the lock while it is valid");
}

/* A smaller ttl than what is left: nothing is taken away from the lock, neither here nor on the nodes. */
static void r08_a_smaller_ttl_takes_nothing_away(void)
{
    uint64_t until_us;

    begin_with_defaults(3);
    lock.ttl_ms = 60000;
    is_int(acquire(0), REDLOCK_OK, "r08: held for 60 s");
    until_us = lock.valid_until_us;
    lock.ttl_ms = 5000;
    is_int(extend(), REDLOCK_OK, "r08: an extension to 5 s is no error");
    ok(lock.valid_until_us == until_us, "r08: and takes nothing off the 60 s");
    fake_pass(&client, 20 * MS);
    ok(fake_find(0, "k", 1)->until_us >= until_us && fake_find(1, "k", 1)->until_us >= until_us &&
           fake_find(2, "k", 1)->until_us >= until_us,
       "r08: nor does any node");
    is_int(release(100), REDLOCK_OK, "r08: released");
}

/* The key expires on nodes 0 and 2, node 1 alone was still extended. Another client has the lock on 0 and 2
   and releases it. Then a command that was on its way to node 2 creates our key there again. */
static int extended_after_another_had_it(void)
{
    unsigned i, sent;

    fake_pass(&client, 8000 * MS);
    unreachable(0);
    unreachable(2);
    ok(extend() != REDLOCK_OK && has_token(1, &lock), "r08: extended on one node only");
    fake_pass(&client, 2500 * MS);
    fake_nodes[0].refuses = fake_nodes[2].refuses = 0;
    is_int((int)redlock_remaining_ms(&client, &lock), 0, "r08: its time is over");
    is_int((int)nodes_free(), 2, "r08: another client takes two nodes");
    fake_put(0, "k", "other", 100);
    fake_put(2, "k", "other", 100);
    fake_pass(&client, 50 * MS);
    fake_delete(0, "k");
    fake_delete(2, "k");
    for (i = sent = 0; i < 4; i++)
        sent += fake_arrive(2);
    ok(sent > 0 && has_token(2, &lock), "r08: a late command sets our token again");
    return extend();
}

/* The SET of node 2 is lost in the network with its connection, an extension repairs the node and counts it from then
   on. If it arrives after another client had the lock, an extension would say that we have held it all the time: a
   reader of that success would work with data that somebody else has changed. */
static void r08_a_late_set_is_no_proof(unsigned kind)
{
    begin_with_defaults(3);
    if (!make_kind(kind))
        return;
    warm_up();
    fake_hold(2);
    is_int(acquire(0), REDLOCK_OK, "r08: %s: held on two of three, the SET of the third is lost",
           kind_names[kind]);
    fake_pass(&client, 1200 * MS);
    is_int(extend(), REDLOCK_OK, "r08: extended, and repaired on a new connection");
    fake_pass(&client, 3000 * MS);
    extend();
    fake_pass(&client, 20 * MS);
    ok(extended_after_another_had_it() != REDLOCK_OK,
       "r08: the extension does not say that it was ours all the time");
}

/* If the server of such a node is another process since, the late command is gone: then the node counts again, or a
   lock would not outlive the restart of its nodes one after the other. A guard. */
static void r08_a_new_process_has_no_late_commands(void)
{
    int i;

    begin_with_defaults(3);
    warm_up();
    fake_hold(2);
    is_int(acquire(0), REDLOCK_OK, "r08: the SET of the third node is lost");
    fake_pass(&client, 1200 * MS);
    fake_restart(2);
    for (i = 0; i < 4; i++) {
        is_int(extend(), REDLOCK_OK, "r08: extended");
        fake_pass(&client, 700 * MS);
    }
    is_int(lock.members, 7, "r08: its node was restarted and repaired: a member");
    fake_restart(0);
    is_int(extend(), REDLOCK_OK, "r08: so another node may be restarted");
    is_int(release(100), REDLOCK_OK, "r08: released");
}

/* Starts an extension, and once node 2 was asked whether it has the key the packets of that connection are lost. */
static int extend_with_lost_repair(void)
{
    unsigned n, asked = fake_count(2, 'E');

    redlock_extend_start(&client, &lock);
    fake_pass(&client, 0);
    for (n = 0; n < 400 && fake_count(2, 'E') == asked; n++)
        fake_pass(&client, 50);
    fake_hold(2);
    fake_pass(&client, 60 * MS);
    ok(redlock_next_completed(&client) == &lock, "r08: the extension has ended");
    return lock.status;
}

/* Two repairs of node 2 are unanswered, on two connections, with a restart of the server between them;
   later commands are answered. The first repair cannot run any more, the second can. */
static void r09_every_unanswered_repair_is_remembered(void)
{
    unsigned i;

    begin_with_defaults(3);
    for (i = 0; i < 2; i++)
        fake_nodes[i].delay_us = 3 * MS;
    warm_up();
    is_int(acquire(0), REDLOCK_OK, "r09: held");
    fake_pass(&client, 20 * MS);
    fake_delete(2, "k");
    is_int(extend_with_lost_repair(), REDLOCK_OK, "r09: the key is gone, its repair is lost");
    fake_pass(&client, 1200 * MS);
    fake_restart(2);
    is_int(extend_with_lost_repair(), REDLOCK_OK, "r09: restarted; another repair is lost");
    fake_pass(&client, 1200 * MS);
    is_int(extend(), REDLOCK_OK, "r09: what is sent next is answered");
    fake_pass(&client, 20 * MS);
    extend();
    fake_pass(&client, 20 * MS);
    ok(extended_after_another_had_it() != REDLOCK_OK,
       "r09: the repair that arrives late is not taken for the lock");
}

/* The same without a restart: the later of two unanswered repairs arrives. A guard. */
static void r09_the_later_of_two_unanswered_repairs(void)
{
    begin_with_defaults(3);
    fake_nodes[0].delay_us = fake_nodes[1].delay_us = 3 * MS;
    warm_up();
    is_int(acquire(0), REDLOCK_OK, "r09: held");
    fake_pass(&client, 20 * MS);
    fake_delete(2, "k");
    is_int(extend_with_lost_repair(), REDLOCK_OK, "r09: the key is gone, its repair is lost");
    fake_pass(&client, 1200 * MS);
    is_int(extend_with_lost_repair(), REDLOCK_OK, "r09: the next one too");
    fake_pass(&client, 1200 * MS);
    is_int(extend(), REDLOCK_OK, "r09: what is sent next is answered");
    fake_pass(&client, 20 * MS);
    extend();
    fake_pass(&client, 20 * MS);
    ok(extended_after_another_had_it() != REDLOCK_OK,
       "r09: the repair that arrives late is not taken for the lock");
}

/* ---- The lock is on every healthy node: R2 --------------------------------------------------- */

/* 0: whichever node restarts empty, another client could then have a quorum. */
static int survives_an_empty_restart(const struct redlock_lock *of)
{
    return client.priv.count - nodes_with(of) + 1 < client.priv.quorum;
}

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

/* A new client, of whose nodes some are a little farther away, has the lock on a bare quorum: one node that restarts
   without its keys then lets a second client in. */
static void r02_a_new_client_locks_every_node(unsigned count, unsigned near, uint64_t near_us,
                                              uint64_t farther_us, int blocking)
{
    unsigned i;
    int status;

    begin_with_defaults(count);
    for (i = 0; i < count; i++)
        distance((int)i, i < near ? near_us : near_us + farther_us);
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
    ok(survives_an_empty_restart(&lock), "r02: one that restarts empty lets nobody in");
    if (blocking) {
        fake_pass(&client, 100 * MS + near_us + farther_us);
        is_int(lock.members, (1 << count) - 1, "r02: and each is a member");
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

/* Nodes that never answer are not waited for long. A guard. */
static void r02_a_dead_node_costs_little(void)
{
    uint64_t start;

    begin_with_defaults(3);
    fake_nodes[2].never_up = 1;
    start = fake_now_us;
    is_int(acquire(0), REDLOCK_OK, "r02: a node that never connects");
    ok(since(start) <= 250 * MS, "r02: is waited for once: %ld us", since(start));
    release(100);
    start = fake_now_us;
    is_int(acquire(0), REDLOCK_OK, "r02: again");
    ok(since(start) <= 10 * MS, "r02: and not again: %ld us", since(start));
    begin_with_defaults(3);
    fake_nodes[2].refuses = 1;
    start = fake_now_us;
    is_int(acquire(0), REDLOCK_OK, "r02: a node that refuses connections");
    ok(since(start) <= 10 * MS, "r02: is not waited for at all: %ld us", since(start));
}

/* `count` locks with keys of their own, for one minute each, and room for so many keys on each node. */
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

/* Serves the client until `count` operations have ended, or so long; how many ended with REDLOCK_OK. */
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

/* As many as a busy process asks for at once: where the queue of a node was full when the others had decided, that node
   is never asked, though it is healthy. */
static void r02_many_at_once_are_on_every_node(unsigned count, int warm)
{
    unsigned i, everywhere = 0, safe = 0;

    begin_with_defaults(5);
    if (warm)
        warm_up();
    for (i = 0; i < 5; i++)
        distance((int)i, warm ? (1 + i) * 500 : (1 + 3 * i) * MS);
    make_many(count);
    for (i = 0; i < count; i++)
        redlock_acquire_start(&client, &many[i], 20000);
    is_int((int)serve_many(count, 20000 * MS), (int)count, "r02: %u locks at once, %s: all held",
           count, warm ? "connected" : "on a new client");
    fake_pass(&client,
              (warm ? 1500 : 6000) * MS); /* the slowest node, with queues for three commands */
    for (i = 0; i < count; i++) {
        everywhere += nodes_with(&many[i]) == 5;
        safe += (unsigned)survives_an_empty_restart(&many[i]);
    }
    is_int((int)safe, (int)count, "r02: an empty restart of a node lets nobody into any of them");
    is_int((int)everywhere, (int)count, "r02: each is on all five nodes");
    redlock_deinit(&client);
}

/* A node that comes back while the lock is held is given the lock. Without, each holder of such a lock is one more
   restart away from a second one. */
static void r02_a_node_that_comes_back_is_given_the_lock(int how)
{
    static const char *const hows[] = {"refused", "did not connect", "took no bytes"};

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
    ok(has_token(2, &lock), "r02: when the third is back it is given the lock");
    is_int((int)fake_count(2, 'S'), 1, "r02: by one SET");
    ok(survives_an_empty_restart(&lock), "r02: now another may restart empty");
    is_int(extend(), REDLOCK_OK, "r02: extended");
    fake_pass(&client, 20 * MS);
    is_int(lock.members, 7, "r02: all are members");
    fake_restart(0);
    is_int(extend(), REDLOCK_OK, "r02: and with one that has restarted");
    is_int(release(100), REDLOCK_OK, "r02: released");
    fake_pass(&client, 100 * MS);
    is_int((int)fake_keys_left(), 0, "r02: on all nodes");
}

/* Whatever is done with the lock until then: an extension that fails, as another node does not answer for a moment; one
   that succeeds; automatic ones. */
static void r02_it_is_given_the_lock_after_extensions(int what)
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
    ok(has_token(2, &lock), "r02: the third is back, and is given the lock after %s", whats[what]);
    if (what == 2)
        redlock_cancel(&client, &lock);
    fake_pass(&client, 10 * MS);
    redlock_next_completed(&client);
    is_int(release(100), REDLOCK_OK, "r02: released");
}

/* A node that grants the lock only now proves nothing about the time before. Here a member restarted
   without its keys, and another client had the lock and released it meanwhile: an extension must not say
   that it was ours all the time. */
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
    ok(has_token(2, &lock), "r08: the third is back and is given the lock, others had it before");
    ok(extend() != REDLOCK_OK, "r08: the extension does not say that it was ours all the time");
}

/* But not when the lock has ended meanwhile, in any way: that key would block others. A guard. */
static void r02_not_after_its_end(int how)
{
    static const char *const hows[] = {"expired", "was released", "was forgotten", "was lost"};

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
        is_int(extend(), REDLOCK_LOST, "r02: another has it");
    }
    if (how == 0)
        fake_pass(&client, 2000 * MS);
    fake_nodes[2].refuses = fake_nodes[2].never_up = 0;
    fake_pass(&client, 4000 * MS);
    is_int((int)fake_count(2, 'S'), 0, "r02: it %s: the third node is not sent the SET any more",
           hows[how]);
}

/* The release may be called at any moment of this. A guard. */
static void r02_released_while_a_node_comes_back(void)
{
    unsigned us, left = 0;

    for (us = 0; us < 6000; us += 100) {
        begin_with_defaults(3);
        distance(2, 1 * MS);
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

/* Gives the lock to `second` with so much time left. */
static void hand_over(struct redlock_lock *second, uint32_t remaining_ms)
{
    struct redlock_lock mine = lock;

    redlock_abandon(&client, &lock);
    redlock_lock_init(second, "k", 1, mine.ttl_ms);
    memcpy(second->token, mine.token, sizeof mine.token);
    second->members = mine.members;
    is_int((int)redlock_adopt(&client, second, remaining_ms), REDLOCK_OK,
           "adopted with %lu ms left", (unsigned long)remaining_ms);
}

/* All servers are healthy, not one extension is sent, and then the lock is lost. */
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
        hand_over(&second, left_ms[i]);
        fake_logged = 0;
        redlock_auto_extend_start(&client, &second, 1000);
        fake_pass(&client, 20 * MS);
        at_once = fake_count(-1, 'E');
        ok(left_ms[i] > 10000 || at_once >= 3, "r10: %u extensions were sent at once", at_once);
        fake_pass(&client, 35000 * MS);
        is_int(second.status, REDLOCK_PENDING, "r10: it is held 35 s later");
        ok(redlock_remaining_ms(&client, &second) > 15000, "r10: with %lu ms left",
           (unsigned long)redlock_remaining_ms(&client, &second));
    }
}

/* An extension by hand fails, since no node answers for a moment. Automatic ones are started then: the first must not
   be later than the end of the lock. */
static void r10_kept_after_a_failed_extension(void)
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
    ok(fake_count(-1, 'E') >= 3, "r10: automatic ones begin at once");
    fake_pass(&client, 20000 * MS);
    is_int(lock.status, REDLOCK_PENDING, "r10: and it is held 20 s later");
}

/* A lock whose automatic extensions have ended in one of three ways, which redlock_next_completed has not told yet. */
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
    is_int((int)lock.status, (int)how, "r11: its automatic extensions have ended: %s",
           redlock_strerror((int)how));
}

/* After the release the memory is the caller's: nothing of the library writes to it or follows it. */
static void memory_is_ours_again(void)
{
    struct redlock_lock poison, next;

    memset(&poison, 0xa5, sizeof poison);
    memcpy(&lock, &poison, sizeof lock);
    redlock_lock_init(&next, "next", 4, 3000);
    redlock_acquire_start(&client, &next, 1000);
    is_int(wait_for(&next, 3000 * MS), REDLOCK_OK, "r11: another lock is acquired");
    is_int((int)redlock_release(&client, &next, 100), REDLOCK_OK, "r11: and released");
    fake_pass(&client, 5000 * MS);
    ok(memcmp(&lock, &poison, sizeof lock) == 0, "r11: the memory of the first is left alone");
    ok(redlock_next_completed(&client) == NULL, "r11: and it is told no more");
    redlock_deinit(&client);
}

static void r11_released_before_its_end_is_told(enum redlock_status how, int blocking)
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
    is_int((int)redlock_remaining_ms(&client, &lock), 0, "r11: and not held");
    if (status == REDLOCK_INVALID_ARGUMENT || status == REDLOCK_PENDING)
        return; /* its memory is not ours */
    memory_is_ours_again();
}

/* What else may be called then leaves it in a state in which it can be released. */
static void r11_extended_before_its_end_is_told(enum redlock_status how)
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
       "r11: and released: %s", redlock_strerror(status));
    fake_pass(&client, 50 * MS);
    is_int((int)nodes_with(&lock), 0, "r11: no key is left");
    if (status == REDLOCK_INVALID_ARGUMENT || status == REDLOCK_PENDING)
        return;
    memory_is_ours_again();
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
    is_int((int)refused, 0, "r11: released during %s, %s: never refused", whats[what],
           blocking ? "blocking" : "by events");
    is_int((int)unended, 0, "r11: always ended");
    is_int((int)twice, 0, "r11: told once");
    is_int((int)left, 0, "r11: and no key is left");
}

/* ---- A new client, and one that is far away: R6, R15 ------------------------------------------ */

/* All servers are healthy. A client with connections holds all 3,000 locks. A new one held 252, and
   reported for the rest that the nodes cannot be reached. */
static void r06_a_burst_on_a_new_client(unsigned count)
{
    unsigned i;

    begin_with_defaults(3);
    make_many(count);
    for (i = 0; i < 3; i++)
        distance((int)i, REDLOCK_PIPELINE_MAX < 8 || REDLOCK_SEND_MAX < 800 ? 100 : 1 * MS);
    for (i = 0; i < count; i++)
        redlock_acquire_start(&client, &many[i], 0);
    is_int((int)serve_many(count, 20000 * MS), (int)count, "r06: %u at once on a new client",
           count);
    redlock_deinit(&client);
}

/* One node fails: that costs the burst no lock. */
static void r06_a_burst_with_a_node_in_trouble(int how)
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

/* No node can be reached: an acquire without a wait says so, also behind others that wait. */
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
    is_int(i, 10, "r06: each of ten without a wait is told within stall_ms (%ld us)", since(start));
    is_int((int)patient.status, REDLOCK_PENDING, "r06: the one with a wait goes on");
    redlock_deinit(&client);
    is_int((int)patient.status, REDLOCK_CANCELLED, "r06: until the client ends");
}

/* Nodes that neither answer nor refuse, one after the other. An acquire without a wait ends within the
   bound that the header names, and once it is known that they fail, not after a second each time. */
static void r15_no_wait_on_dead_nodes(unsigned count)
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
    ok(slow <= 150, "r15: most are told at once: %u of 300 are not", slow);
}

/* With the default settings, on any ordinary network. */
static void r15_far_away(uint64_t rtt_us, uint32_t wait_ms, unsigned count)
{
    unsigned i;

    begin_with_defaults(count);
    for (i = 0; i < count; i++)
        distance((int)i, rtt_us);
    is_int(acquire(wait_ms), REDLOCK_OK, "r15: %u nodes %d ms away, waiting %lu ms: acquired",
           count, (int)(rtt_us / MS), (unsigned long)wait_ms);
    fake_pass(&client, 1000 * MS);
    is_int((int)nodes_with(&lock), (int)count, "r15: on all nodes");
    is_int(extend(), REDLOCK_OK, "r15: extended");
    is_int(release(1000), REDLOCK_OK, "r15: released");
    fake_pass(&client, 1000 * MS);
    is_int((int)fake_keys_left(), 0, "r15: on all nodes");
    is_int(acquire(0), REDLOCK_OK, "r15: and acquired again");
    held_by("other", 0, (int)count - 1);
    is_int(release(1000), RELEASED_TAKEN, "r15: taken by another");
    is_int(acquire(0), REDLOCK_HELD, "r15: and told that another has it");
}

static void r15_any_ordinary_network(void)
{
    static const uint64_t rtts_us[] = {26 * MS, 60 * MS, 150 * MS};
    unsigned i;

    for (i = 0; i < 3; i++) {
        r15_far_away(rtts_us[i], 0, 3);
        r15_far_away(rtts_us[i], 5000, 5);
    }
}

/* ---- A lock that is handed over: R8b ---------------------------------------------------------- */

/* Ends this client, as its process does, and takes its lock over in the next one, with so much time left. */
static int adopted_by_another(uint32_t remaining_ms)
{
    struct redlock_lock mine = lock;

    redlock_abandon(&client, &lock);
    redlock_deinit(&client);
    redlock_init(&client, fake_io(), nodes, 3, &settings);
    redlock_lock_init(&lock, "k", 1, mine.ttl_ms);
    memcpy(lock.token, mine.token, sizeof lock.token);
    lock.members = mine.members;
    return (int)redlock_adopt(&client, &lock, remaining_ms);
}

/* The SET of node 2 was on its way when the process handed its lock over. The other process repairs that
   node. If it trusted the node from then on, it would hold the lock although another client had it
   meanwhile. */
static void r08_what_the_other_process_sent_may_arrive_late(void)
{
    int i;

    begin_with_defaults(3);
    warm_up();
    fake_hold(2);
    is_int(acquire(0), REDLOCK_OK, "r08: held on two of three, the SET of the third is lost");
    is_int(lock.members, 3, "r08: which is no member");
    is_int(adopted_by_another(9000), REDLOCK_OK, "r08: another process adopts it");
    for (i = 0; i < 3; i++) {
        is_int(extend(), REDLOCK_OK, "r08: and extends it");
        fake_pass(&client, 1000 * MS);
    }
    extend();
    fake_pass(&client, 20 * MS);
    ok(extended_after_another_had_it() != REDLOCK_OK,
       "r08: the extension does not say that it was ours all the time");
}

/* Otherwise the adopter would be the holder for longer than the key lives. */
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

/* Two addresses lead to one server, the third node is dead: there is no majority. The first connection
   breaks at some moment, and the second one is up only then. */
/* An extension near the end of the validity connects at once, as a later one would be too late. But not where that
   changes nothing. */
static void r05_a_node_that_denies_us_has_its_pause(void)
{
    int dials;

    begin_with_defaults(3);
    fake_nodes[2].server.run = fake_nodes[0].server.run;
    fake_nodes[2].connect_us = 5 * MS;
    lock.ttl_ms = 300;
    is_int(acquire(0), REDLOCK_OK, "r05: two servers, one of them twice");
    fake_pass(&client, 200 * MS);
    fake_nodes[2].connect_us = 100;
    fake_nodes[0].delay_us = fake_nodes[1].delay_us = 30 * MS;
    dials = fake_nodes[2].dials;
    is_int(extend(), REDLOCK_OK, "r05: extended");
    dials = fake_nodes[2].dials - dials;
    ok(dials <= 2, "r05: the second name is dialled %d times", dials);
}

static void r13_not_by_a_connection_that_broke(void)
{
    unsigned us, wrong = 0;

    for (us = 0; us < 12000; us += 250) {
        begin_with_defaults(3);
        fake_nodes[1].server.run = fake_nodes[0].server.run;
        fake_nodes[2].refuses = 1;
        distance(0, 1 * MS);
        distance(1, 4 * MS);
        redlock_acquire_start(&client, &lock, 0);
        fake_pass(&client, us);
        if (fake_nodes[0].connected)
            fake_break(0);
        wrong += wait_for(&lock, 3000 * MS) == REDLOCK_OK;
    }
    is_int((int)wrong, 0,
           "r13: two names of one server are one vote, whenever a connection breaks");
}

/* Nor by one that is down for long while the other name is connected for the first time. */
static void r13_not_by_a_server_that_was_there_before(void)
{
    begin_with_defaults(3);
    lock.ttl_ms = 2000; /* node 0 keeps its key for so long */
    fake_nodes[1].server.run = fake_nodes[0].server.run;
    fake_nodes[1].refuses = 1;
    is_int(acquire(0), REDLOCK_OK, "r13: held, one of three can't be reached");
    unreachable(0);
    fake_nodes[1].refuses = 0;
    is_int(release(0), REDLOCK_UNCONFIRMED, "r13: released");
    fake_pass(&client, 3000 * MS);
    ok(acquire(0) != REDLOCK_OK, "r13: the server that is down has no second name");
    ok(has_error(1, "same server"), "r13: %s", nodes[1].error);
    fake_nodes[0].refuses = 0;
    fake_pass(&client, 3000 * MS);
    is_int(acquire(3000), REDLOCK_OK, "r13: when it is up again it votes");
}

/* ---- Fencing tokens: R16 ---------------------------------------------------------------------- */

static void make_fenced(void)
{
    set_use_fencing(&lock, 1);
}

/* The clock of one client is far in the future. Afterwards no client could acquire this lock again. */
static void r16_a_wrong_wall_clock(uint64_t wrong_us, const char *name)
{
    uint64_t fence = 0, before = 0;
    unsigned i, grew = 0;

    begin_with_defaults(3);
    make_fenced();
    fake_wall_us = wrong_us;
    if (acquire(0) == REDLOCK_OK)
        fence = fencing_token_of(&lock);
    release(100);
    fake_wall_us = (uint64_t)1 << 50;
    for (i = 0; i < 20; i++) {
        if (acquire(0) != REDLOCK_OK)
            break;
        before = fence;
        fence = fencing_token_of(&lock);
        grew += fence > before;
        release(100);
        fake_pass(&client, 10 * MS);
    }
    is_int((int)i, 20, "r16: a wall clock of %s us: others are granted the lock", name);
    is_int((int)grew, 20, "r16: with tokens that grow");
    ok(fence < ((uint64_t)1 << 53) - 1000000, "r16: and are not used up");
}

/* The count of a lock is at its end, after such a client of an older version: what is refused changes nothing. */
static void r16_a_count_at_its_end(void)
{
    static const char end[] = "9007199254740991";
    unsigned i, same = 0;

    begin_with_defaults(3);
    make_fenced();
    for (i = 0; i < 3; i++)
        fake_put((int)i, "k:fence", end, 0);
    is_int(acquire(0), REDLOCK_UNREACHABLE, "r16: a count that is at its end is refused");
    for (i = 0; i < 3; i++) {
        const struct mini_key *count = fake_find((int)i, "k:fence", 7);
        same += count != NULL && memcmp(count->value, end, sizeof end - 1) == 0;
    }
    is_int((int)same, 3, "r16: and stays as it was");
    is_int((int)nodes_with(&lock), 0, "r16: as does the lock");
}

/* A caller that forgets to look at the result takes lock.fencing_token to the resource. It must be refused there: 0 always is. */
static void fence_is_0(int status, int expected)
{
    is_int(status, expected, "r16: failed: %s", redlock_strerror(expected));
    ok(fencing_token_of(&lock) == 0, "r16: so there is no fencing token");
}

/* As a lock that was held before. */
static void begin_fenced(void)
{
    begin_with_defaults(3);
    make_fenced();
    warm_up();
}

static void all_say(const char *words)
{
    int i;

    for (i = 0; i < 3; i++)
        fake_nodes[i].says = words;
}

static void r16_no_token_without_the_lock(void)
{
    int i;

    begin_fenced();
    held_by("other", 0, 2);
    fence_is_0(acquire(0), REDLOCK_HELD);
    fence_is_0(acquire(300), REDLOCK_TIMEOUT);
    begin_fenced();
    held_by("other", 0, 0);
    held_by("another", 1, 1);
    fence_is_0(acquire(0), REFUSED_BY_SEVERAL);
    begin_fenced();
    for (i = 0; i < 3; i++)
        unreachable(i);
    fence_is_0(acquire(0), REDLOCK_UNREACHABLE);
    begin_fenced();
    all_say("-NOPERM x\r\n");
    fence_is_0(acquire(0), REDLOCK_DENIED);
    begin_fenced();
    fake_sleep_us = 9900 * MS;
    fence_is_0(acquire(0), REDLOCK_TOO_LATE);
    begin_fenced();
    acquire(0);
    release(100);
    fake_no_entropy = 1;
    for (i = 0; i < 30 && acquire(0) == REDLOCK_OK; i++)
        release(100);
    fence_is_0(lock.status, REDLOCK_NO_ENTROPY);
    begin_fenced();
    held_by("other", 0, 2);
    redlock_acquire_start(&client, &lock, 5000);
    fake_pass(&client, 500);
    redlock_cancel(&client, &lock);
    fake_pass(&client, 100 * MS);
    fence_is_0(lock.status, REDLOCK_CANCELLED);
    begin_fenced();
    redlock_acquire_start(&client, &lock, 5000);
    fake_pass(&client, 500);
    redlock_deinit(&client);
    fence_is_0(lock.status, REDLOCK_CANCELLED);
    begin_fenced();
    held_by("other", 0, 2);
    redlock_acquire_start(&client, &lock, 5000);
    fake_pass(&client, 10 * MS); /* it waits */
    fence_is_0(release(100), REDLOCK_EXPIRED);
}

/* ---- Rollback and release on a node that fails: R4, R11 ---------------------------------------- */

/* Node 0 has our key, and is busy for a while when it is to delete the key. The key would stay for its ttl:
   no client could have the lock on this node. */
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
        fake_nodes[0].says = words;
        redlock_release_start(&client, &lock, 100);
    } else {
        held_by("other", 1, 2);
        redlock_acquire_start(&client, &lock, 0);
        fake_pass(&client, 0);
        fake_nodes[0].says = words;
    }
    was = lock;
    ok(has_token(0, &was), "r04: node 0, %lu us slower, has our key (%s), and says %.10s for %u ms",
       (unsigned long)slower_us, kind_names[kind], words, busy_ms);
    fake_pass(&client, busy_ms * MS);
    ok(has_token(0, &was), "r04: so it is still there");
    fake_nodes[0].says = NULL;
    fake_pass(&client, 4000 * MS);
    ok(!has_token(0, &was), "r04: when that is over it is deleted soon");
    is_int((int)lock.status, released ? REDLOCK_OK : REDLOCK_HELD, "r04: the result is as ever");
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

static void free_on_all_nodes(const char *key)
{
    int i;

    for (i = 0; i < 3; i++)
        fake_delete(i, key);
}

/* A client ends while a lock of it waits. When the same memory is used again, by a new client, a waiter must be told as
   soon as the lock is free, not after its pause of many seconds. */
static void r07_notified_after_a_deinit_while_waiting(int waits_again)
{
    struct redlock_lock next;

    begin_with_long_pauses();
    held_by("other", 0, 2);
    redlock_acquire_start(&client, &lock, 60000);
    fake_pass(&client, 100 * MS);
    is_int((int)lock.status, REDLOCK_PENDING, "r07: it waits");
    redlock_deinit(&client);
    is_int((int)lock.status, REDLOCK_CANCELLED, "r07: the client ends");
    redlock_init(&client, fake_io(), nodes, 3, &settings);
    redlock_lock_init(&next, "k", 1, 10000);
    if (!waits_again) {
        free_on_all_nodes("k");
        is_int(acquire(0), REDLOCK_OK, "r07: another client: the lock is used again");
        is_int(release(100), REDLOCK_OK, "r07: and released");
        held_by("other", 0, 2);
    }
    redlock_acquire_start(&client, waits_again ? &lock : &next, 60000);
    fake_pass(&client, 100 * MS);
    free_on_all_nodes("k");
    is_int(wait_for(waits_again ? &lock : &next, 500 * MS), REDLOCK_OK,
           "r07: who waits then is notified");
    redlock_deinit(&client);
}

#if REDLOCK_MULTI_KEY
/* One lock waits for k0 and k1, another for k0 alone, and k1 is not released. When k0 is released, the
   second lock gets it at once: the first cannot use it. */
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
    free_on_all_nodes("k0");
    is_int(wait_for(&one, 1000 * MS), REDLOCK_OK,
           "r07: a free key is not lost to a waiter for two");
    is_int((int)both.status, REDLOCK_PENDING, "r07: which goes on to wait");
    redlock_release(&client, &one, 100);
    free_on_all_nodes("k1");
    is_int(wait_for(&both, 1000 * MS), REDLOCK_OK, "r07: until both keys are free");
    redlock_release(&client, &both, 100);
    redlock_deinit(&client);
}
#endif

/* More locks than there is room for: an acquire with a wait of 100 ms ends within that, and what an attempt
   takes. */
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
    ok(took <= (100 + 3 * 50) * MS, "r06: all have ended within their wait: %ld us", took);
    fake_pass(&client, 1000 * MS);
    for (i = 0; i < COUNT; i++)
        left += many[i].status == REDLOCK_OK ? 0 : nodes_with(&many[i]);
    is_int((int)left, 0, "r06: and those that did not get it have left no key");
    redlock_deinit(&client);
}

/* ---- Connections: R5, R12 --------------------------------------------------------------------- */

/* Nothing of a lock is sent before the database is chosen: a release would go to the wrong one, and the key stay. */
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

/* A password that fills most of the queue leaves no room for the rest of the handshake. */
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
    is_int((int)failed, 0, "r12: locked with each");
    is_int((int)overtaken, 0, "r12: with none a command overtakes SELECT");
    is_int((int)left, 0, "r12: and no key is left");
}

/* An operator corrects what the nodes deny, and the next call works: at once without a wait, else within
   it. */
static void r05_repaired_permissions(uint32_t wait_ms, const char *hello)
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
                fake_pass(&client, (1 + times * 150) * MS);
            }
            for (i = 0; i < 3; i++)
                fake_nodes[i].server.password = fake_nodes[i].server.hello = NULL;
            start = fake_now_us;
            failed += acquire(wait_ms) != REDLOCK_OK;
            slow += since(start) > 100 * MS;
        }
    is_int((int)failed, 0, "r05: %s, waiting %lu ms: the first call after the repair gets it",
           hello == NULL ? "a password" : "a permission", (unsigned long)wait_ms);
    if (wait_ms == 0)
        is_int((int)slow, 0, "r05: within 100 ms");
}

/* Of five nodes one is dead and one hangs; the kernel of the latter accepts connections all the same. Two grants and a
   refusal are no majority: that is clear at once, not after node_timeout_ms. */
static void r05_a_hung_node_costs_no_time(void)
{
    unsigned i, slow = 0, wrong = 0;
    uint64_t start;

    memset(&settings, 0, sizeof settings);
    settings.retries = REDLOCK_NONE;
    begin(5);
    warm_up();
    unreachable(3);
    fake_nodes[4].hung = 1;
    held_by("other", 2, 2);
    for (i = 0; i < 30; i++) { /* until it has been noticed */
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
    is_int((int)wrong, 0, "r05: nor gets the lock");
    fake_resume(4);
    for (i = 0; i < 40 && acquire(0) != REDLOCK_OK; i++)
        fake_pass(&client, 100 * MS);
    is_int((int)lock.status, REDLOCK_OK, "r05: when it answers again it votes");
    release(100);
    fake_pass(&client, 100 * MS);
    is_int((int)fake_keys_left(), 1, "r05: and no key of ours is left");
}

/* ---- Smaller ones ----------------------------------------------------------------------------- */

#if REDLOCK_MULTI_KEY
/* It would be acquired, and its release say that it had ended. */
static void same_key_twice(void)
{
    static const struct redlock_key once[] = {{"k", 1}}, twice[] = {{"l", 1}, {"l", 1}},
                                    none[] = {{"l", 1}, {"kk", 2}};

    begin_with_defaults(3);
    set_extra_keys(&lock, once, 1);
    is_int(acquire(0), REDLOCK_INVALID_ARGUMENT, "keys: the first once more is refused");
    set_extra_keys(&lock, twice, 2);
    if (REDLOCK_KEY_MAX > 22)
        is_int(acquire(0), REDLOCK_INVALID_ARGUMENT, "keys: the second once more too");
    is_int((int)fake_logged, 0, "keys: before anything was sent");
    set_extra_keys(&lock, none, 2);
    if (REDLOCK_KEY_MAX > 24)
        is_int(acquire(0), REDLOCK_OK, "keys: those that only begin alike are two");
}
#endif

/* The results of an extension are those that are documented for it. */
static void r08_results_of_an_extension(void)
{
    begin_with_defaults(3);
    acquire(0);
    fake_pass(&client, 10 * MS);
    fake_sleep_us = 9900 * MS;
    is_int(extend(), REDLOCK_UNREACHABLE, "r08: a success that comes too late is none");
}

/* The extension before was for a shorter ttl than the lock is still valid: nodes that it repaired have the key for
   that ttl only. */
static void r10_a_third_of_a_shorter_ttl(void)
{
    begin_with_defaults(3);
    lock.ttl_ms = 30000;
    acquire(0);
    fake_delete(2, "k");
    lock.ttl_ms = 1500;
    is_int(extend(), REDLOCK_OK, "r10: extended with a shorter ttl");
    fake_logged = 0;
    redlock_auto_extend_start(&client, &lock, 1000);
    fake_pass(&client, 490 * MS);
    is_int((int)fake_count(-1, 'E'), 0, "r10: not yet a third of that");
    fake_pass(&client, 30 * MS);
    ok(fake_count(2, 'E') >= 1, "r10: the repaired node is extended in time");
}

static void r10_kept_with_another_ttl(void)
{
    begin_with_defaults(3);
    acquire(0);
    lock.ttl_ms = 3000;
    redlock_auto_extend_start(&client, &lock, 100);
    fake_pass(&client, 30000 * MS);
    is_int((int)lock.status, REDLOCK_PENDING, "r10: kept with another ttl than it was acquired");
    ok(lock.extended >= 15, "r10: extended %lu times", (unsigned long)lock.extended);
}

/* `extended` is the caller's bound on how long a lock can be kept: it never begins anew. */
static void r10_extended_does_not_wrap(void)
{
    begin_with_defaults(1);
    acquire(0);
    lock.extended = 65534; /* as they are then */
    redlock_auto_extend_start(&client, &lock, 5);
    fake_pass(&client, 60000 * MS);
    is_int((int)lock.status, REDLOCK_EXTEND_LIMIT, "r10: five extensions more");
    ok(lock.extended >= 65535, "r10: have made it no smaller: %lu", (unsigned long)lock.extended);
}

/* A release is not sent before the handshake is answered: the server may reject the client by now. */
static void r12_nothing_behind_a_handshake(void)
{
    int i;

    begin_with_defaults(3);
    redlock_deinit(&client);
    nodes[0].password = fake_nodes[0].server.password = "right";
    is_int((int)redlock_init(&client, fake_io(), nodes, 3, NULL), REDLOCK_OK, "r12: begins");
    warm_up();
    held_by("other", 1, 2);
    for (i = 0; i < 3; i++)
        fake_nodes[i].delay_us = i == 0 ? 5 * MS : MS;
    redlock_acquire_start(&client, &lock, 0);
    fake_pass(&client, MS / 2);
    fake_break(0);
    fake_nodes[0].server.password = "changed";
    fake_pass(&client, 200 * MS);
    is_int(lock.status, REDLOCK_HELD, "r12: two others have it");
    is_int((int)fake_count(0, 'D'), 0, "r12: nothing was sent behind a handshake that failed");
}

/* A server, or a proxy, repeats what the client sent in an unusual error. */
static void r12_no_password_in_trouble(void)
{
    static const char *const hellos[] = {
        "-ERR invalid AUTH hunter2-and-more\r\n",
        "-ERR Syntax error in HELLO option 'hunter2-and-more'\r\n",
        "-ERR Protocol error: 'hunter2-and-more'\r\n",
        "-hunter2-and-more\r\n",
        "-ERR 01234567890123456789012345678901234567890123456 hunter2-and-more\r\n",
    };
    unsigned i;

    for (i = 0; i < sizeof hellos / sizeof *hellos; i++) {
        begin_with_defaults(1);
        redlock_deinit(&client);
        nodes[0].password = "hunter2-and-more";
        fake_nodes[0].server.hello = hellos[i];
        redlock_init(&client, fake_io(), nodes, 1, NULL);
        ok(acquire(0) != REDLOCK_OK, "r12: a server that is none");
        ok(nodes[0].error[0] != '\0' && strstr(nodes[0].error, "hunter") == NULL,
           "r12: no password in \"%s\"", nodes[0].error);
        redlock_deinit(&client);
    }
}

/* Two other clients have a node each, and the third is ours: no client holds the lock. If the tokens of the
   two were told apart by few bits, some of these pairs would look like one holder. */
static void r06_holders_are_told_apart(void)
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
    is_int((int)wrong, 0, "r06: 2,000 pairs of tokens: none is taken for one holder");
}

static void late_commands(void)
{
    unsigned kind;

    for (kind = 0; kind < 3; kind++)
        r08_a_late_extension_does_not_shorten(kind);
    r08_late_extensions_of_several_ttls();
    r08_a_smaller_ttl_takes_nothing_away();
    for (kind = 0; kind < 3; kind++)
        r08_a_late_set_is_no_proof(kind);
    if (!REDLOCK_REPAIR)
        return;
    if (REDLOCK_RESTART_GUARD) { /* else another process is not known as one */
        r08_a_new_process_has_no_late_commands();
        r09_every_unanswered_repair_is_remembered();
    }
    r09_the_later_of_two_unanswered_repairs();
}

static void every_node(void)
{
    int how;

    r02_a_new_client();
    r02_a_dead_node_costs_little();
    r02_many_at_once_are_on_every_node(40, 0);
    r02_many_at_once_are_on_every_node(40, 1);
    r02_many_at_once_are_on_every_node(1000, 0);
    r02_many_at_once_are_on_every_node(1000, 1);
    for (how = 0; how < 3; how++)
        r02_a_node_that_comes_back_is_given_the_lock(how);
    for (how = 0; how < 2 + REDLOCK_AUTO_EXTEND; how++)
        r02_it_is_given_the_lock_after_extensions(how);
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

    r10_adopted_with_little_left_is_extended_at_once();
    r10_kept_after_a_failed_extension();
    r10_kept_with_another_ttl();
    r10_a_third_of_a_shorter_ttl();
    r10_extended_does_not_wrap();
    for (i = 0; i < 3; i++) {
        r11_released_before_its_end_is_told(ends[i], 0);
        r11_released_before_its_end_is_told(ends[i], 1);
        r11_extended_before_its_end_is_told(ends[i]);
    }
}

static void releases(void)
{
    int what, blocking;

    for (what = 0; what < 3 + REDLOCK_AUTO_EXTEND; what++)
        for (blocking = 0; blocking < 2; blocking++)
            r11_released_at_any_moment(what, blocking);
}

static void rules(void)
{
    r08_what_the_other_process_sent_may_arrive_late();
    r08_no_more_time_than_the_ttl();
    if (REDLOCK_RESTART_GUARD) {
        r13_not_by_a_connection_that_broke();
        r05_a_node_that_denies_us_has_its_pause();
        r13_not_by_a_server_that_was_there_before();
    }
    r04_temporary_errors();
    r06_time_in_line_counts();
    r12_a_long_password();
    r05_repaired_permissions(0, NULL);
    r05_repaired_permissions(1000, NULL);
    if (REDLOCK_RESP3)
        r05_repaired_permissions(
            0, "-NOPERM this user has no permissions to run the 'hello' command\r\n");
    r05_a_hung_node_costs_no_time();
    r08_results_of_an_extension();
    if (REDLOCK_RESP3 && REDLOCK_ERROR_TEXTS)
        r12_no_password_in_trouble();
    if (REDLOCK_DIAGNOSIS)
        r06_holders_are_told_apart();
}

static void fencing_tokens(void)
{
    const uint64_t most = (uint64_t)1 << 53;

    r16_a_wrong_wall_clock(most, "2^53");
    r16_a_wrong_wall_clock(most - 1, "2^53 - 1");
    r16_a_wrong_wall_clock(most + 1, "2^53 + 1");
    r16_a_wrong_wall_clock((uint64_t)1 << 63, "2^63");
    r16_a_wrong_wall_clock(UINT64_MAX, "2^64 - 1");
    r16_a_count_at_its_end();
    r16_no_token_without_the_lock();
}

/* ---- One command at a time that creates the key: R8b ------------------------------------------- */

/* How many of the extensions that node 2 was sent could create the key. */
static unsigned repairs_sent(void)
{
    unsigned i, count = 0;

    for (i = 0; i < fake_logged; i++)
        count += fake_log[i].node == 2 && fake_log[i].kind == 'E' && fake_log[i].heals;
    return count;
}

/* The SET is under way, on the connection that is still in use: an extension must not create the key as well. If that
   connection broke then, one of the two could run long after the other. */
static void r08b_no_repair_behind_an_unanswered_set(void)
{
    begin_with_defaults(3);
    warm_up();
    fake_hold(2);
    is_int(acquire(0), REDLOCK_OK, "r08b: held, a SET is unanswered");
    is_int(extend(), REDLOCK_OK, "r08b: extended");
    fake_arrive(2);
    is_int((int)fake_count(2, 'S'), 1, "r08b: the SET was sent there");
    is_int((int)fake_count(2, 'E'), 1, "r08b: and the extension");
    is_int((int)repairs_sent(), 0, "r08b: which does not create the key");
}

/* A repair is unanswered, the next round begins, then the connection breaks: it may still run. */
static void r08b_no_repair_after_an_unanswered_one(void)
{
    memset(&settings, 0, sizeof settings);
    settings.stall_ms = 600000;
    begin(3);
    fake_nodes[0].delay_us = fake_nodes[1].delay_us = 3 * MS;
    warm_up();
    is_int(acquire(0), REDLOCK_OK, "r08b: held");
    fake_pass(&client, 20 * MS);
    fake_delete(2, "k");
    is_int(extend_with_lost_repair(), REDLOCK_OK, "r08b: the key is gone, its repair is lost");
    is_int(extend(), REDLOCK_OK, "r08b: extended again");
    fake_break(2);
    fake_pass(&client, 20 * MS);
    is_int(extend(), REDLOCK_OK, "r08b: and on a new connection");
    fake_pass(&client, 20 * MS);
    is_int((int)repairs_sent(), 0, "r08b: there is no other repair");
    ok(fake_arrive(2) > 0 && repairs_sent() == 1, "r08b: the first arrives");
}

/* So it is when the SET was sent only after the decision. */
static void r08b_no_repair_behind_a_late_set(void)
{
    begin_with_defaults(3);
    unreachable(2);
    is_int(acquire(0), REDLOCK_OK, "r08b: held by two nodes");
    fake_nodes[2].refuses = 0;
    fake_nodes[2].says = ""; /* breaks the connection instead of an answer */
    fake_nodes[2].says_once = 1;
    fake_pass(&client, 3000 * MS);
    ok(fake_count(2, 'S') == 1 && fake_nodes[2].says == NULL, "r08b: the third is sent it, later");
    is_int(extend(), REDLOCK_OK, "r08b: extended");
    fake_pass(&client, 20 * MS);
    ok(fake_count(2, 'E') > 0, "r08b: there, too");
    is_int((int)repairs_sent(), 0, "r08b: and the key is not created");
}

/* Our token is there, so the SET has run. When the key is lost later it can be repaired. */
static void r08b_repair_after_proof(void)
{
    begin_with_defaults(3);
    warm_up();
    fake_nodes[2].deaf_to_set = 1;
    is_int(acquire(0), REDLOCK_OK, "r08b: held, a SET has run and is not answered");
    fake_break(2);
    fake_pass(&client, 10 * MS);
    fake_nodes[2].deaf_to_set = 0;
    is_int(extend(), REDLOCK_OK, "r08b: extended");
    fake_pass(&client, 10 * MS);
    is_int(lock.members, 3, "r09: the SET may have run after the round began");
    is_int(extend(), REDLOCK_OK, "r08b: extended again");
    fake_pass(&client, 10 * MS);
    is_int(lock.members, 7, "r08b: the node had our token before it: a member");
    fake_delete(2, "k");
    is_int(extend(), REDLOCK_OK, "r08b: it loses the key");
    fake_pass(&client, 10 * MS);
    ok(fake_find(2, "k", 1) != NULL, "r08b: and has it again");
}

/* The lock is adopted: the client that had it may have sent a repair to the process that node 2 is now. That it is not
   the process that we knew proves nothing; that it is another one later does. */
static void r08b_what_is_adopted_is_of_an_unknown_process(void)
{
    struct redlock_lock second;

    begin_with_defaults(3);
    warm_up();
    unreachable(2);
    is_int(acquire(0), REDLOCK_OK, "r08b: held by two nodes");
    fake_restart(2);
    hand_over(&second, 9000);
    fake_nodes[2].refuses = 0;
    fake_pass(&client, 3000 * MS);
    is_int(redlock_extend(&client, &second), REDLOCK_OK, "r08b: extended");
    fake_pass(&client, 3000 * MS);
    is_int(redlock_extend(&client, &second), REDLOCK_OK, "r08b: on three nodes");
    fake_pass(&client, 20 * MS);
    is_int((int)repairs_sent(), 0, "r08b: another process than before the hand-over: no repair");
    fake_restart(2);
    fake_pass(&client, 100 * MS);
    is_int(redlock_extend(&client, &second), REDLOCK_OK, "r08b: extended again");
    fake_pass(&client, 100 * MS);
    is_int(redlock_extend(&client, &second), REDLOCK_OK, "r08b: and again");
    fake_pass(&client, 20 * MS);
    is_int(repairs_sent() > 0, REDLOCK_RESTART_GUARD,
           "r08b: another process than at the hand-over: a repair");
}

/* Node 2 is sent the SET after the decision, and the extension after that was decided too. It has not confirmed a
   round yet. */
static void r08_who_is_asked_late_confirms_the_next_round(void)
{
    begin_with_defaults(3);
    unreachable(2);
    is_int(acquire(0), REDLOCK_OK, "r08: held by two nodes");
    fake_nodes[2].refuses = 0;
    fake_pass(&client, 3000 * MS);
    ok(fake_find(2, "k", 1) != NULL, "r08: the third is sent it later");
    unreachable(2);
    fake_pass(&client, 10 * MS);
    is_int(extend(), REDLOCK_OK, "r08: extended on two");
    fake_nodes[2].refuses = 0;
    fake_logged = 0;
    fake_pass(&client, 3000 * MS);
    ok(fake_count(2, 'E') > 0, "r08: on the third later, too");
    fake_nodes[1].hung = 1;
    is_int(extend(), REDLOCK_UNREACHABLE, "r08: it does not stand in for another");
    fake_resume(1);
    fake_pass(&client, 20 * MS);
    is_int(extend(), REDLOCK_OK, "r08: all three confirm a round");
    fake_pass(&client, 20 * MS);
    fake_nodes[1].hung = 1;
    is_int(extend(), REDLOCK_OK, "r08: from then on it does");
}

/* The caller looks at the status and never asks which lock is complete. The third node is ready only later. */
static void r02_a_complete_lock_that_is_not_taken(void)
{
    begin_with_defaults(3);
    fake_nodes[2].connect_us = 300 * MS;
    redlock_acquire_start(&client, &lock, 0);
    fake_pass(&client, 200 * MS);
    is_int(lock.status, REDLOCK_OK, "r02: held by two nodes");
    ok(fake_find(2, "k", 1) == NULL, "r02: the third is not connected yet");
    fake_pass(&client, 200 * MS);
    ok(fake_find(2, "k", 1) != NULL, "r02: it is sent the SET when it is");
}

/* A token that the caller chose may be in use again when a release would be repeated: it is not. */
static void r04_a_chosen_token_is_not_released_again(void)
{
    begin_with_defaults(3);
    warm_up();
    set_label(&lock, "mine", 4);
    set_token_is_label(&lock, 1);
    is_int(acquire(0), REDLOCK_OK, "r04: held with a token of ours");
    fake_nodes[0].says = "-BUSY Redis is busy running a script.\r\n";
    fake_nodes[0].says_once = 1;
    is_int(release(100), REDLOCK_OK, "r04: released, but one node was busy");
    fake_delete(0, "k");
    is_int(acquire(0), REDLOCK_OK, "r04: held again, with the same token");
    fake_pass(&client, 1000 * MS);
    is_int((int)fake_keys_left(), 3, "r04: and not released behind our back");
    is_int(release(100), REDLOCK_OK, "r04: released");
}

/* ---- What a wait is for: R4, R6, R15 ------------------------------------------------------------ */

/* A wait that is shorter than connecting takes is no reason to fail: without any wait it would not. */
static void r06_a_short_wait_on_a_new_client(void)
{
    int i;

    begin_with_defaults(3);
    for (i = 0; i < 3; i++)
        distance(i, 20 * MS);
    is_int(acquire(5), REDLOCK_OK, "r06: a wait of 5 ms, and nodes at 20 ms");
}

/* The way to the servers gets longer while connections are up. */
static void r15_a_distance_that_grows(void)
{
    int i;

    begin_with_defaults(3);
    warm_up();
    for (i = 0; i < 3; i++)
        fake_nodes[i].delay_us = 120 * MS;
    for (i = 1; i <= 6 && acquire(0) != REDLOCK_OK; i++)
        fake_pass(&client, 300 * MS);
    ok(i <= 3, "r15: held at the try number %d", i);
}

static void r04_not_longer_than_the_key_lives(void)
{
    unsigned sent;

    begin_with_defaults(3);
    warm_up();
    lock.ttl_ms = 1000;
    is_int(acquire(0), REDLOCK_OK, "r04: held for 1 s");
    fake_nodes[0].says = "-BUSY Redis is busy running a script.\r\n";
    is_int(release(100), REDLOCK_OK, "r04: released, but one node is busy");
    fake_pass(&client, 2000 * MS);
    sent = fake_count(0, 'D');
    ok(sent > 5, "r04: it is sent the release again and again: %u times", sent);
    fake_pass(&client, 2000 * MS);
    is_int((int)fake_count(0, 'D'), (int)sent, "r04: until the key has expired");
}

/* ---- The send buffer, requests and their roles ------------------------------------------------- */

/* More locks than the buffer holds at once, where it is not very small. They start in one tick. */
enum { BURST = REDLOCK_PIPELINE_MAX > 200 ? 200 : REDLOCK_PIPELINE_MAX - 1 };

static void start_many(unsigned from, unsigned to, uint32_t wait_ms)
{
    for (; from < to; from++)
        redlock_acquire_start(&client, &many[from], wait_ms);
}

/* Node i takes so many bytes more. */
static void take_bytes(int i, unsigned size)
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
           "r05: a burst is sent at once, whatever the buffer holds");
    redlock_deinit(&client);
}

/* Node 0 takes nothing, so the buffer fills; then it takes all. There is room now, although node 4 was never
   sent anything. */
static void r05_a_node_that_is_slow_to_take_bytes(void)
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
    ok(before < BURST, "r05: a node takes nothing: %u locks are asked for", before);
    take_bytes(0, REDLOCK_SEND_MAX);
    fake_pass(&client, 1 * MS);
    ok(fake_count(1, 'S') > before + 2, "r05: it takes all of that: %u", fake_count(1, 'S'));
    fake_pass(&client, 100 * MS);
    for (i = 0; i < BURST && many[i].status == REDLOCK_OK; i++) {
    }
    is_int((int)i, BURST, "r05: it costs no lock");
    ok(many[i - 1].valid_until_us >= many[0].valid_until_us + 10 * MS,
       "r06: the time of those that waited for room has begun later");
    redlock_deinit(&client);
}

/* A node that is far away is slower to take bytes, too. */
static void r15_a_far_node_takes_its_time(void)
{
    int i, epoch;

    begin_with_defaults(3);
    for (i = 0; i < 3; i++)
        distance(i, 100 * MS);
    warm_up();
    fake_pass(&client, 300 * MS);
    make_many(BURST);
    epoch = fake_nodes[0].epoch;
    fake_nodes[0].full = 1;
    start_many(0, BURST, 1000);
    fake_pass(&client, 120 * MS);
    fake_nodes[0].full = 0;
    is_int((int)serve_many(BURST, 3000 * MS), BURST, "r15: a burst, 100 ms away: all are held");
    is_int(fake_nodes[0].epoch, epoch, "r15: and no connection is given up");
    redlock_deinit(&client);
}

/* Node 0 replies to what it was sent before, so it is no stall, but takes nothing more. The SET waits in our buffer; its
   release has no room there. */
static void r04_a_node_that_replies_but_takes_nothing(void)
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
    is_int(lock.status, REDLOCK_HELD, "r04: refused by two, the third takes no bytes");
    fake_nodes[0].full = 0;
    fake_pass(&client, 1000 * MS);
    ok(fake_find(0, "k", 1) == NULL, "r04: what waited for it is not run any more");
    redlock_deinit(&client);
}

/* All requests of a hung node are in use: what is cancelled ends at once, because one is kept for releases, and they
   share it. */
static void r04_a_release_finds_a_request(void)
{
    unsigned i, ended = 0;

    begin_with_defaults(1);
    warm_up();
    make_many(REDLOCK_PIPELINE_MAX + 3);
    fake_nodes[0].hung = 1;
    nodes[0].priv.useful = 1;
    for (i = 0; i < REDLOCK_PIPELINE_MAX + 3; i++) {
        start_many(i, i + 1, 1000);
        redlock_tick(&client);
    }
    for (i = 0; i < 3 && i < REDLOCK_PIPELINE_MAX; i++)
        redlock_cancel(&client, &many[i]);
    redlock_tick(&client);
    while (redlock_next_completed(&client) != NULL)
        ended++;
    is_int((int)ended, (int)i, "r04: cancelled behind %d requests, at once",
           REDLOCK_PIPELINE_MAX - 1);
    redlock_deinit(&client);
}

/* The connection to a node with a part of the buffer breaks while another node makes room for its handshake: it is
   connected again when its locks know that they get no reply from the old one. */
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
    ok(nodes[0].state == REDLOCK_NODE_IDLE, "r05: broken while room was made");
    fake_pass(&client, 3000 * MS);
    ok(nodes[0].state == REDLOCK_NODE_READY && fake_nodes[0].epoch == 2,
       "r05: connected again, once: %d", fake_nodes[0].epoch);
    for (i = 0; i < BURST && many[i].status == REDLOCK_OK; i++) {
    }
    is_int((int)i, BURST, "r05: it costs no lock");
    redlock_deinit(&client);
}

/* Node 1 closes its connection, which is noticed when room is made for the command to node 0: what is only for node 1
   is not sent on it any more. */
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
        warm_up(); /* sets the markers, which have to be old */
        fake_pass(&client, 61000 * MS);
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

/* The only node hangs: nothing comes from anywhere, and yet its stall is noticed. */
static void r05_a_stall_in_silence(void)
{
    begin_with_defaults(1);
    warm_up();
    is_int(acquire(0), REDLOCK_OK, "r05: held");
    fake_pass(&client, 100 * MS);
    fake_nodes[0].hung = 1;
    is_int(extend(), REDLOCK_UNREACHABLE, "r05: the only node hangs");
    fake_pass(&client, 2000 * MS);
    ok(nodes[0].state != REDLOCK_NODE_READY, "r05: it is given up");
}

/* The memory of a lock whose operation has ended is the caller's: what comes late does not write to it. */
static int is_left_alone(uint64_t us)
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
    is_int(wait_for(&lock, 3000 * MS), REDLOCK_LOST, "r05: lost in a sleep");
    ok(is_left_alone(6000 * MS), "r05: the third replies later, to nobody");
}

/* Node 2 does not have the key any more, and its replies come byte by byte: the repair is sent between the extension's
   and that of WAITAOF. */
static void r17_a_no_is_said_once(void)
{
    int i;

    memset(&settings, 0, sizeof settings);
    settings.durable = 1;
    begin(3);
    for (i = 0; i < 3; i++)
        fake_nodes[i].server.synced = "*2\r\n:1\r\n:0\r\n";
    is_int(acquire(0), REDLOCK_OK, "r17: held on disk");
    fake_pass(&client, 10 * MS);
    fake_delete(2, "k");
    fake_nodes[2].drip = 1;
    is_int(extend(), REDLOCK_OK, "r17: extended");
    fake_pass(&client, 10 * MS);
    is_int((int)repairs_sent(), 1, "r17: and repaired once");
}

/* The node has said who holds the lock; its connection breaks before it says for how long, while another is still to say
   who. */
static void r05_an_answer_is_not_lost_again(void)
{
    char holder[40];
    int i;

    memset(&settings, 0, sizeof settings);
    settings.retries = REDLOCK_NONE;
    begin(3);
    warm_up();
    held_by("a", 0, 0);
    held_by("b", 1, 2);
    set_holder(&lock, holder, sizeof holder);
    redlock_acquire_start(&client, &lock, 0);
    fake_pass(&client, 999);
    fake_nodes[1].delay_us = fake_nodes[2].delay_us = 30 * MS;
    fake_nodes[0].delay_us = 0;
    fake_nodes[0].drip = 1;
    fake_now_us++;
    for (i = 0; i < 3000 && fake_count(0, 'D') == 0; i++) { /* byte by byte */
        redlock_handle_events(&client, (unsigned)i % 3, REDLOCK_READABLE);
        redlock_tick(&client);
    }
    fake_nodes[0].says = "";
    fake_nodes[0].says_once = 1;
    fake_nodes[0].drip = 0;
    fake_pass(&client, 100 * MS);
    ok(fake_nodes[0].says == NULL && lock.status != REDLOCK_PENDING, "r05: others hold it: %s",
       redlock_strerror(lock.status));
    is_int((int)fake_count(0, 'D'), 1, "r05: the first was sent one release");
}

/* Two rounds to agree. A grant that comes in the second is no vote there; nor is a reply to the first in the next. */
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
    fake_pass(&client, 10 * MS);
    is_int(lock.status, REDLOCK_OK, "r16: held");
    is_int((int)fake_count(0, 'R'), late == 1 ? 2 : 1, "r16: in as few rounds as it takes");
    redlock_next_completed(&client);
    redlock_abandon(&client, &lock);
    ok(is_left_alone(100 * MS), "r16: and what comes later goes to nobody");
}

/* The connection breaks when both the SET and an extension are unanswered: the extension is sent again. */
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
    is_int((int)fake_count(2, 'E'), 1,
           "r08: the third is sent the extension on its next connection");
    fake_pass(&client, 30 * MS);
    is_int(lock.status, REDLOCK_OK, "r08: extended");
}

/* Node 0 has granted the lock and restarts empty before node 1 grants it: another may hold it on 0 and 2. */
static void r03_a_vote_of_a_broken_connection(int fenced)
{
    memset(&settings, 0, sizeof settings);
    settings.retries = REDLOCK_NONE;
    begin(3);
    warm_up();
    if (fenced)
        make_fenced();
    held_by("other", 2, 2);
    fake_nodes[1].delay_us = 20 * MS;
    redlock_acquire_start(&client, &lock, 0);
    fake_pass(&client, 10 * MS);
    is_int(lock.granted, 1, "r03: granted by the first");
    fake_restart(0);
    fake_pass(&client, 100 * MS);
    ok(lock.status != REDLOCK_OK && lock.status != REDLOCK_PENDING,
       "r03: which has restarted before the second has granted it: %s",
       redlock_strerror(lock.status));
}

/* Node 2 has confirmed the extension, and its connection breaks before node 1 does: it is asked again. It may have
   restarted empty; and connected again under another of its addresses it would vote twice. */
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
    is_int(lock.granted, 4, "r13: extended by the third");
    if (restarts)
        fake_restart(2);
    else
        fake_break(2);
    fake_pass(&client, 60 * MS);
    is_int((int)fake_count(2, 'E'), restarts && REDLOCK_REPAIR ? 3 : 2,
           "r13: which is asked again");
    ok((lock.status == REDLOCK_OK) != restarts, "r13: and may say something else: %s",
       redlock_strerror(lock.status));
}

/* ---- What a second review found ------------------------------------------------------------------ */

/* The rollback is unanswered when the attempt has ended; then the node can't write, but says how long the key lives. That
   is no answer to the release. */
static void r04_a_time_to_live_is_no_answer(void)
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
    fake_nodes[0].says = "-MISCONF Redis is configured to save RDB snapshots\r\n";
    fake_nodes[0].says_once = 1;
    fake_pass(&client, 60 * MS);
    is_int(lock.status, REDLOCK_UNREACHABLE, "r04: failed");
    ok(fake_nodes[0].says == NULL && fake_find(0, "k", 1) != NULL,
       "r04: the release gets a temporary error");
    fake_pass(&client, 1000 * MS);
    ok(fake_find(0, "k", 1) == NULL, "r04: and is repeated");
    redlock_deinit(&client);
}

/* Held by three nodes, just before an extension; two of them have lost the key by then. */
static void about_to_be_lost(void)
{
    begin_with_defaults(3);
    lock.ttl_ms = 30000;
    acquire(0);
    redlock_auto_extend_start(&client, &lock, 100);
    fake_pass(&client, 9900 * MS);
    fake_delete(0, "k");
    fake_delete(1, "k");
}

/* The third is connected again meanwhile: that is sent the release when it is up. */
static void r04_a_loss_with_a_node_that_connects(void)
{
    about_to_be_lost();
    fake_nodes[2].connect_us = 50 * MS;
    fake_break(2);
    fake_pass(&client, 140 * MS);
    is_int(lock.status, REDLOCK_LOST, "r04: lost at once");
    ok(fake_find(2, "k", 1) != NULL, "r04: one node is not up");
    fake_pass(&client, 500 * MS);
    ok(fake_find(2, "k", 1) == NULL, "r04: it is sent the release when it is");
}

/* The third is busy. */
static void r04_a_loss_and_a_temporary_error(void)
{
    about_to_be_lost();
    fake_nodes[2].says = "-BUSY Redis is busy running a script.\r\n";
    fake_pass(&client, 300 * MS);
    is_int(lock.status, REDLOCK_LOST, "r04: lost at once");
    ok(fake_find(2, "k", 1) != NULL, "r04: one node can't delete the key");
    fake_nodes[2].says = NULL;
    fake_pass(&client, 500 * MS);
    ok(fake_find(2, "k", 1) == NULL, "r04: it does when it can");
}

/* The release of the first lock is answered, byte by byte, and its place is that of another lock's release, which gets
   a temporary error. What else is said of the first is no answer to the second. */
static void r04_a_time_to_live_of_another(void)
{
    char holder[64];
    int i;

    if (REDLOCK_PIPELINE_MAX < 8)
        return; /* another order of the commands */
    memset(&settings, 0, sizeof settings);
    settings.retries = REDLOCK_NONE;
    begin(3);
    warm_up();
    unreachable(1);
    unreachable(2);
    fake_pass(&client, 10 * MS);
    make_many(1);
    set_holder(&lock, holder, sizeof holder);
    redlock_acquire_start(&client, &lock, 0);
    redlock_tick(&client);
    redlock_cancel(&client, &lock);
    redlock_tick(&client);
    start_many(0, 1, 0);
    redlock_tick(&client);
    ok(client.priv.owed[0].todo == 1, "r04: one release is unanswered");
    fake_nodes[0].drip = 1;
    fake_now_us += 2 * MS;
    for (i = 0; i < 3000 && client.priv.owed[0].todo != 0; i++) {
        redlock_handle_events(&client, 0, REDLOCK_READABLE);
        redlock_tick(&client);
    }
    fake_nodes[0].says = "-MISCONF Redis is configured to save RDB snapshots\r\n";
    fake_nodes[0].says_once = 1;
    fake_nodes[0].drip = 0;
    redlock_cancel(&client, &many[0]);
    fake_pass(&client, 10 * MS);
    ok(fake_nodes[0].says == NULL && has_token(0, &many[0]),
       "r04: the other gets a temporary error");
    fake_pass(&client, 1000 * MS);
    ok(!has_token(0, &many[0]), "r04: and is repeated");
    redlock_deinit(&client);
}

/* Node 0 takes nothing, so the buffer is full, and a lock is lost: that is no reason to hang up on the others. */
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
       "r05: the nodes that take all keep their connections");
    fake_pass(&client, 100 * MS);
    is_int(fake_nodes[1].epoch, 1, "r05: for good");
    redlock_deinit(&client);
}

/* A far node takes nothing for a while. A rollback finds no room, but the near nodes take all that they are sent. */
static void r04_a_far_node_costs_no_near_one(void)
{
    if (BURST < 200)
        return;
    memset(&settings, 0, sizeof settings);
    settings.retries = REDLOCK_NONE;
    begin(3);
    distance(0, 100 * MS);
    warm_up();
    fake_pass(&client, 300 * MS);
    ok(nodes[0].rtt_us > 50 * MS, "r04: one is far away");
    make_many(BURST);
    held_by("other", 1, 2);
    redlock_acquire_start(&client, &lock, 0);
    redlock_tick(&client);
    fake_nodes[0].full = 1;
    start_many(0, BURST, 1000);
    fake_pass(&client, 130 * MS);
    is_int(lock.status, REDLOCK_HELD, "r04: refused by the near ones");
    ok(fake_nodes[1].connected && fake_nodes[2].connected, "r04: which keep their connections");
    redlock_deinit(&client);
}

/* A far node takes nothing. However far it is, the near ones wait for room half as long as a vote may take. */
static void r15_a_far_node_holds_up_no_near_one(void)
{
    if (BURST < 200)
        return;
    begin_with_defaults(3);
    distance(0, 100 * MS);
    warm_up();
    fake_pass(&client, 300 * MS);
    ok(nodes[0].rtt_us > 50 * MS, "r15: one is far away");
    make_many(BURST);
    is_int(acquire(0), REDLOCK_OK, "r15: held");
    fake_nodes[0].full = 1;
    start_many(0, BURST, 1000);
    fake_pass(&client, 10 * MS);
    ok(client.priv.jammed, "r15: the far one takes nothing");
    is_int(extend(), REDLOCK_OK, "r15: it does not hold up an extension");
    redlock_deinit(&client);
}

/* Node 0 takes nothing, but replies to what it was sent before, one every 20 ms. It does not hold up the others for
   longer than one that is silent. */
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
    ok(client.priv.jammed, "r05: a node takes nothing, but replies");
    fake_pass(&client, 200 * MS);
    is_int(extend(), REDLOCK_OK, "r05: after 200 ms it does not hold up an extension");
    redlock_deinit(&client);
}

/* The process stood still, and the clock is asked before the sockets: node 0 takes all by now. */
static void r05_room_after_a_pause(void)
{
    if (BURST < 200)
        return;
    begin_with_defaults(3);
    warm_up();
    make_many(BURST);
    fake_nodes[0].full = 1;
    start_many(0, BURST, 1000);
    fake_pass(&client, 1 * MS);
    ok(client.priv.jammed, "r05: a node takes nothing");
    fake_nodes[0].full = 0;
    fake_now_us += 500 * MS;
    fake_pass(&client, 10 * MS);
    ok(fake_nodes[0].connected, "r05: it does after a pause, and is not given up");
    redlock_deinit(&client);
}

/* The same as r03_a_vote_of_a_broken_connection, in one tick: the connection breaks while room is made for a release,
   behind which the lock is decided. */
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
        fake_transmit_us = 1; /* counts them: one more than before says that room was made */
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
    ok(lock.status != REDLOCK_OK, "r03: what a node had granted before it broke does not count: %s",
       redlock_strerror(lock.status));
}

/* The process sleeps until the validity is over, and only then learns that the key is missing. */
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
    is_int((int)redlock_remaining_ms(&client, &lock), 0, "r09: nor held any more");
    is_int((int)repairs_sent(), 0, "r09: so it is not repaired");
    ok(fake_find(2, "k", 1) == NULL, "r09: and not in the way of others");
    redlock_deinit(&client);
}

/* A SET to node 2 is under way. Its address leads to another server for a while, which is refused, and then to the first
   one again: that may run the SET yet. */
static void r08b_another_server_for_a_while(void)
{
    begin_with_defaults(3);
    warm_up();
    fake_hold(2);
    is_int(acquire(0), REDLOCK_OK, "r08b: held, a SET is unanswered");
    fake_nodes[2].server.run = fake_nodes[0].server.run;
    fake_break(2);
    is_int(extend(), REDLOCK_OK, "r08b: extended");
    fake_pass(&client, 500 * MS);
    extend();
    fake_pass(&client, 500 * MS);
    ok(nodes[2].state != REDLOCK_NODE_READY && has_error(2, "same server"),
       "r08b: there is another server: %s", nodes[2].error);
    fake_nodes[2].server.run = 90002;
    fake_pass(&client, 4000 * MS);
    extend();
    fake_pass(&client, 4000 * MS);
    is_int(extend(), REDLOCK_OK, "r08b: extended");
    fake_pass(&client, 50 * MS);
    ok(nodes[2].state == REDLOCK_NODE_READY && fake_count(2, 'E') > 0,
       "r08b: the first one again, it is sent the extension");
    is_int((int)repairs_sent(), 0, "r08b: which does not create the key");
    redlock_deinit(&client);
}

/* redlock.h wants a clock that never steps back. With one that does the time left does not grow. */
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

/* The key is missing on node 2, which says so after the decision, and is repaired then. */
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
    is_int(lock.failed, 0, "r09: and has not failed");
    redlock_deinit(&client);
}

/* Held by two nodes, which extended it; the repair of node 2 is on its way. */
static void repair_on_its_way(void)
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

/* It runs after the next round began: another client had the lock in between. */
static void r09_a_repair_of_the_round_before(void)
{
    repair_on_its_way();
    is_int(extend(), REDLOCK_OK, "r09: the next round");
    fake_delete(1, "k");
    fake_put(1, "k", "other", 100);
    fake_put(2, "k", "other", 100);
    fake_delete(1, "k");
    fake_delete(2, "k");
    fake_resume(2);
    fake_pass(&client, 20 * MS);
    is_int((int)lock.members, 3, "r09: the third is no member");
    ok(extend() != REDLOCK_OK, "r09: the extension does not say that it was ours all the time");
    redlock_deinit(&client);
}

/* It is answered after the next round began, and before that asks the node, which had no room. */
static void r09_a_repair_that_the_round_waits_for(void)
{
    repair_on_its_way();
    client.priv.full = 4;
    redlock_extend_start(&client, &lock);
    redlock_tick(&client);
    fake_resume(2);
    fake_pass(&client, 20 * MS);
    is_int(lock.status, REDLOCK_OK, "r09: extended");
    ok(has_token(2, &lock), "r09: and repaired");
    is_int((int)lock.members, 3, "r09: the third is no member by this round");
    redlock_next_completed(&client);
    is_int(extend(), REDLOCK_OK, "r09: extended again");
    fake_pass(&client, 20 * MS);
    is_int((int)extend(), REDLOCK_OK, "r09: and again");
    is_int((int)lock.members, 7, "r09: but by a later one");
    redlock_deinit(&client);
}

/* What the last operation was, and what was wrong with a call. */
static void operations_and_arguments(void)
{
    char holder[100];

    begin_with_defaults(3);
    is_int(lock.operation, REDLOCK_OP_NONE, "no operation at first");
    is_int(acquire(0), REDLOCK_OK, "acquired");
    is_int(lock.operation, REDLOCK_OP_ACQUIRE, "that was an acquire");
    is_int(acquire(0), REDLOCK_ALREADY_HELD, "twice is told apart");
    is_int(extend(), REDLOCK_OK, "extended");
    is_int(lock.operation, REDLOCK_OP_EXTEND, "that was an extension");
    if (REDLOCK_AUTO_EXTEND) {
        redlock_auto_extend_start(&client, &lock, 5);
        is_int(lock.operation, REDLOCK_OP_AUTO_EXTEND, "this extends automatically");
    }
    is_int(release(1000), REDLOCK_OK, "released");
    is_int(lock.operation, REDLOCK_OP_RELEASE, "that was a release");
    lock.ttl_ms = 3;
    is_int(acquire(0), REDLOCK_INVALID_ARGUMENT, "a ttl of 3 ms");
    if (REDLOCK_ERROR_TEXTS) {
        ok(strcmp(redlock_invalid_argument(&client), "ttl_ms") == 0, "is named: %s",
           redlock_invalid_argument(&client));
        lock.ttl_ms = 10000;
        lock.key_size = 0;
        acquire(0);
        ok(strcmp(redlock_invalid_argument(&client), "key") == 0, "so is a key: %s",
           redlock_invalid_argument(&client));
        ok(strcmp(redlock_invalid_argument(NULL), "client") == 0, "and no client");
    }
    redlock_lock_init(&lock, "k", 1, 10000);
    set_holder(&lock, holder, sizeof holder);
    if (REDLOCK_DIAGNOSIS) {
        strcpy(holder, "0123456789abcdef0123456789abcdef01234567host-1:99");
        ok(strcmp(redlock_holder_label(&lock), "host-1:99") == 0, "the label of a holder");
        strcpy(holder, "0123456789abcdef0123456789abcdef01234567");
        ok(redlock_holder_label(&lock)[0] == '\0', "none");
        strcpy(holder, "a token of another library, which is not hexadecimal");
        ok(redlock_holder_label(&lock)[0] == '\0', "nor of another library");
    }
    set_holder(&lock, holder, 0);
    ok(redlock_holder_label(&lock)[0] == '\0', "nor where no holder is asked for");
}

int main(void)
{
    int how;

    late_commands();
    every_node();
    if (REDLOCK_AUTO_EXTEND)
        automatic_extensions();
    releases();
    r06_a_burst_on_a_new_client(MANY);
    for (how = 0; how < 3; how++) {
        r06_a_burst_with_a_node_in_trouble(how);
        r06_no_wait_behind_a_long_one(how);
    }
    r15_no_wait_on_dead_nodes(3);
    r15_no_wait_on_dead_nodes(5);
    r15_any_ordinary_network();
    rules();
    if (REDLOCK_FENCING)
        fencing_tokens();
    if (REDLOCK_NOTIFICATION) {
        r07_notified_after_a_deinit_while_waiting(0);
        r07_notified_after_a_deinit_while_waiting(1);
    }
#if REDLOCK_MULTI_KEY
    if (REDLOCK_NOTIFICATION) {
        r07_overlapping_keys(0);
        r07_overlapping_keys(1);
    }
    same_key_twice();
#endif
    r08b_no_repair_behind_an_unanswered_set();
    r08b_no_repair_behind_a_late_set();
    if (REDLOCK_REPAIR) {
        r08b_no_repair_after_an_unanswered_one();
        r08b_what_is_adopted_is_of_an_unknown_process();
        r08b_repair_after_proof();
    }
    r02_a_complete_lock_that_is_not_taken();
    r08_who_is_asked_late_confirms_the_next_round();
    r06_a_short_wait_on_a_new_client();
    r15_a_distance_that_grows();
    r04_not_longer_than_the_key_lives();
    if (REDLOCK_LABEL_MAX >= 4)
        r04_a_chosen_token_is_not_released_again();
    r05_a_burst_is_sent_at_once();
    r05_a_node_that_is_slow_to_take_bytes();
    r15_a_far_node_takes_its_time();
    r04_a_node_that_replies_but_takes_nothing();
    r04_a_release_finds_a_request();
    r05_a_break_while_room_is_made();
    if (REDLOCK_MARKER)
        r05_a_break_before_the_next_command();
    r05_a_stall_in_silence();
    if (REDLOCK_AUTO_EXTEND)
        r05_a_lost_lock_is_not_written_to();
    if (REDLOCK_DURABLE && REDLOCK_REPAIR)
        r17_a_no_is_said_once();
    if (REDLOCK_DIAGNOSIS)
        r05_an_answer_is_not_lost_again();
    if (REDLOCK_FENCING)
        for (how = 0; how < 3; how++)
            r16_replies_to_earlier_rounds(how);
    r08_an_extension_behind_a_late_set();
    r13_an_extension_of_a_broken_connection(0);
    r13_an_extension_of_a_broken_connection(1);
    for (how = 0; how <= REDLOCK_FENCING; how++)
        r03_a_vote_of_a_broken_connection(how);
    r12_nothing_behind_a_handshake();
    if (REDLOCK_DIAGNOSIS) {
        r04_a_time_to_live_is_no_answer();
        r04_a_time_to_live_of_another();
    }
    if (REDLOCK_AUTO_EXTEND) {
        r04_a_loss_with_a_node_that_connects();
        r04_a_loss_and_a_temporary_error();
    }
    r05_a_loss_costs_no_connection();
    r04_a_far_node_costs_no_near_one();
    r15_a_far_node_holds_up_no_near_one();
    r05_replies_make_no_room();
    r05_room_after_a_pause();
    r03_a_vote_of_a_connection_that_breaks_now();
    if (REDLOCK_REPAIR) {
        r09_no_repair_after_the_end();
        r09_a_late_repair_is_no_failure();
    }
    if (REDLOCK_RESTART_GUARD)
        r08b_another_server_for_a_while();
    r03_a_clock_that_steps_back();
    if (REDLOCK_REPAIR) {
        r09_a_repair_of_the_round_before();
        r09_a_repair_that_the_round_waits_for();
    }
    operations_and_arguments();
    return done_testing();
}
