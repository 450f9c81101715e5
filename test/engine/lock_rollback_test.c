/* lock_rollback_test.c - R4: what a lock leaves on its nodes is deleted, when an attempt has failed or was
   cancelled, and when a lock is lost or released.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "many_locks.h"
#include "one_lock.h"

/* But not to those that have refused the lock, if the caller neither waits nor asks for the holder. */
static void r04_release_goes_to_every_asked_node(int wants_holder)
{
    static char holder[50];

    memset(&settings, 0, sizeof settings);
    settings.retries = REDLOCK_NONE;
    begin(5);
    warm_up();
    client.priv.refuse_hashes =
        client.priv.all;    /* after an error to a hash a script would follow */
    held_by("other", 1, 2); /* 0: granted. 1, 2: refused. 3: an error. 4: hangs */
    fake_nodes[3].reply = "-LOADING Redis is loading the dataset in memory\r\n";
    fake_nodes[4].hung = 1;
    if (wants_holder)
        set_holder(&lock, holder, sizeof holder);
    is_int(acquire(0), REDLOCK_CONTENDED, "r04: one grant, two refusals, an error, a hung node");
    is_int(lock.granted << 8 | lock.refused, 0x106, "r04: the votes");
    is_int(lock.failed, 0x8, "r04: the failure");
    ok(has_error(3, "LOADING"), "r04: its error: %s", nodes[3].error);
    fake_resume(4);
    is_int((int)fake_keys_left(), 2, "r04: no key of ours is left, nor on the hung node");
    if (wants_holder) {
        is_int((int)fake_count(-1, 'D'), 5, "r04: the release went to all five");
        ok(each_set_is_released(-1), "r05: each after its SET, on the same connection");
    } else {
        is_int((int)fake_count(-1, 'D'), 3, "r04: the release went to those that may have the key");
        is_int((int)(fake_count(1, 'D') + fake_count(2, 'D')), 0, "r04: not to the two others");
    }
}

/* A node had lost the key, and was repaired, before the lock was lost. */
static void r04_a_lost_lock_is_released_where_it_was_refused(void)
{
    begin_with_defaults(3);
    acquire(0);
    fake_pass(&client, 20 * MS);
    delete_on(0, 1);
    held_by("other", 1, 1);
    fake_nodes[1].delay_us = 20 * MS;
    is_int(extend(), REDLOCK_LOST, "r04: two of three have lost the key");
    ok((lock.refused & 1) != 0, "r04: the first one told so");
    fake_pass(&client, 50 * MS);
    is_int((int)nodes_with(&lock), 0, "r04: what its repair has created is deleted");
}

/* The most frequent case: the lock is held, and the caller does not wait. */
static void r04_a_refused_attempt_sends_no_release(void)
{
    begin_with_defaults(5);
    warm_up();
    held_by("other", 0, 4);
    is_int(acquire(0), REDLOCK_HELD, "r04: another client has the lock");
    fake_pass(&client, 50 * MS);
    is_int((int)fake_logged, 5, "r04: five commands in all");
    is_int(acquire(100), REDLOCK_TIMEOUT, "r04: a waiter");
    is_int((int)fake_count(-1, 'D'), (int)fake_count(-1, 'S') - 5,
           "r04: sends the releases, whose replies tell it what changes");
    if (REDLOCK_LABEL_MAX == 0)
        return;
    set_label(&lock, "mine", 4);
    set_token_is_label(&lock, 1);
    fake_put(0, "k", "mine", 60000);
    fake_logged = 0;
    is_int(acquire(0), REDLOCK_HELD, "r04: the token is a label");
    fake_pass(&client, 50 * MS);
    ok(fake_count(-1, 'D') == 5 && fake_find(0, "k", 1) == NULL,
       "r04: which an earlier attempt may have left: released");
}

/* The connection of node 0 breaks after the handshake, but before the first reply to a SET. The client
   connects again at once for the release, so that the key does not stay until its ttl is over. */
static void r04_release_after_the_first_reply_is_lost(void)
{
    begin_with_defaults(3);
    fake_nodes[0].drops_set_reply = 1;
    is_int(acquire(0), REDLOCK_OK, "r04: two nodes grant it, the third has not replied yet");
    fake_pass(&client, 5 * MS);
    fake_break(0);
    is_int(release(100), REDLOCK_OK, "r04: released");
    fake_pass(&client, 5 * MS);
    is_int((int)fake_keys_left(), 0, "r04: no key is left, not even where the connection broke");
}

static void r04_release_outlasts_a_full_buffer(void)
{
    begin_with_defaults(3);
    warm_up();
    held_by("other", 1, 2);
    fake_nodes[0].full = 1; /* the SET for node 0 stays in our buffer */
    redlock_acquire_start(&client, &lock, 0);
    fake_pass(&client, 0);
    fake_pass(&client, 10 * MS);
    is_int(lock.status, REDLOCK_HELD, "r04: decided without the node that accepts no bytes");
    fake_nodes[0].full = 0;
    fake_pass(&client, 10 * MS);
    is_int((int)fake_count(0, 'S'), 1, "r04: the SET is sent when the node accepts bytes");
    is_int((int)fake_count(0, 'D'), 1, "r04: the release follows it");
    is_int((int)fake_keys_left(), 2, "r04: no key of ours is left");
}

static void r04_t8_cancel_rolls_back(void)
{
    begin_with_defaults(3);
    warm_up();
    fake_nodes[1].delay_us = fake_nodes[2].delay_us = 40 * MS;
    redlock_acquire_start(&client, &lock, 5000);
    fake_pass(&client, 5 * MS);
    is_int(lock.granted, 1, "r04: one of three has granted");
    redlock_cancel(&client, &lock);
    redlock_tick(&client);
    ok(redlock_next_completed(&client) == &lock, "r04: the operation completes at once");
    is_int(lock.status, REDLOCK_CANCELLED, "r04: the status is REDLOCK_CANCELLED");
    is_int((int)fake_count(-1, 'D'), 3, "r04: released on all three");
    fake_pass(&client, 100 * MS);
    is_int((int)fake_keys_left(), 0, "r04: no key is left");
    redlock_cancel(&client, &lock);
    is_int(lock.status, REDLOCK_CANCELLED, "redlock_cancel after the end changes nothing");
}

static void r04_cancel_in_every_state(void)
{
    unsigned ms;

    for (ms = 0; ms < 400; ms += 7) {
        begin_with_defaults(3);
        held_by("other", 0, 1);
        redlock_acquire_start(&client, &lock, 5000);
        fake_pass(&client, ms * MS);
        redlock_cancel(&client, &lock);
        fake_pass(&client, 60 * MS);
        if (lock.status != REDLOCK_CANCELLED || fake_keys_left() != 2 ||
            redlock_next_completed(&client) != &lock)
            break;
    }
    ok(ms >= 400, "r04: cancelled at any moment of a wait: no key is left (%u ms)", ms);
}

/* The third node is ready in the same tick in which the cancel is seen. */
static void r04_a_cancelled_attempt_asks_nobody(void)
{
    begin_with_defaults(3);
    fake_nodes[2].connect_us = 120 * MS;
    fake_nodes[2].delay_us = 10 * MS;
    redlock_acquire_start(&client, &lock, 5000);
    fake_pass(&client, 50 * MS);
    fake_nodes[0].delay_us = fake_nodes[1].delay_us = 100 * MS;
    fake_pass(&client, 75 * MS);
    is_int((int)fake_count(-1, 'S'), 2,
           "r04: two nodes are asked, the third one is in its handshake");
    fake_now_us += 10 * MS;
    redlock_handle_events(&client, 2, REDLOCK_READABLE);
    redlock_cancel(&client, &lock);
    redlock_tick(&client);
    is_int(nodes[2].state, REDLOCK_NODE_READY, "r04: now it is ready");
    is_int((int)fake_count(2, 'S'), 0, "r04: but the attempt is cancelled, and does not ask it");
    is_int((int)fake_count(-1, 'D'), 2, "r04: released on the two");
}

/* The caller lowers ttl_ms while it holds the lock. A release that failed for a time is repeated for as long as the key lives. */
static void r04_repeated_for_the_longer_ttl(void)
{
    begin_with_defaults(3);
    warm_up();
    lock.ttl_ms = 20000;
    is_int(acquire(0), REDLOCK_OK, "r04: held for 20 s");
    lock.ttl_ms = 100;
    fake_nodes[0].reply = "-BUSY Redis is busy running a script.\r\n";
    is_int(release(100), REDLOCK_OK, "r04: released with a shorter ttl, one node is busy");
    fake_pass(&client, 8000 * MS);
    fake_nodes[0].reply = NULL;
    fake_pass(&client, 4000 * MS);
    ok(!REPEATS || fake_keys_left() == 0, "r04: no key is left");
}

/* The client that adopts a lock has sent no command of it, but its key lives as long. */
static void r04_repeated_for_an_adopted_lock(void)
{
    if (REDLOCK_MINIMAL)
        return;
    begin_with_defaults(3);
    warm_up();
    is_int(acquire(0), REDLOCK_OK, "r04: held for 10 s");
    redlock_abandon(&client, &lock);
    is_int((int)redlock_adopt(&client, &lock, 9000), REDLOCK_OK, "r04: adopted");
    fake_nodes[0].reply = "-BUSY Redis is busy running a script.\r\n";
    is_int(release(100), REDLOCK_OK, "r04: released, one node is busy");
    fake_pass(&client, 2000 * MS);
    fake_nodes[0].reply = NULL;
    fake_pass(&client, 4000 * MS);
    ok(!REPEATS || fake_keys_left() == 0, "r04: the adopted lock leaves no key");
}

/* A release that was sent is not repeated while its reply is due, nor after it. */
static void r04_a_release_is_sent_once(void)
{
    unsigned sent;

    begin_with_defaults(3);
    warm_up();
    fake_pass(&client, 1000 * MS);
    acquire(0);
    fake_pass(&client, 10 * MS);
    fake_logged = 0;
    fake_nodes[2].hung = 1;
    is_int(release(100), REDLOCK_OK, "r04: one of three hangs");
    fake_pass(&client, 500 * MS);
    fake_resume(2);
    sent = releases_of(2);
    fake_pass(&client, 1000 * MS);
    is_int((int)sent, (int)releases_of(0), "r04: it is sent the release as often as the others");
    is_int((int)releases_of(2), (int)sent, "r04: and not again when it has replied");
    begin_with_defaults(3); /* so that the script releases */
    warm_up();
    acquire(0);
    fake_pass(&client, 10 * MS);
    fake_logged = 0;
    fake_nodes[2].reply = "-BUSY Redis is busy running a script.\r\n";
    fake_nodes[2].reply_once = 1;
    is_int(release(100), REDLOCK_OK, "r04: one of three is busy");
    fake_delete(2, "k");
    fake_pass(&client, 1000 * MS);
    is_int((int)fake_count(2, 'D'), REPEATS ? 2 : 1,
           "r04: it is repeated once, as the key is gone then");
}

/* A release that is owed to a node is given up when the key has expired, and another takes its place. The reply to
   the first comes after all. It says nothing of the second. */
static void r04_a_reply_to_a_release_that_was_given_up(void)
{
    static const struct redlock_key more = {"m", 1};
    struct redlock_lock second;

    if (!REPEATS || REDLOCK_PIPELINE_MAX < 8)
        return; /* the reply to the second release would be dropped, for want of a request */
    memset(&settings, 0, sizeof settings);
    settings.stall_ms = 60000;
    begin(3);
    warm_up();
    fake_pass(&client, 1000 * MS);
    lock.ttl_ms = 500;
    set_extra_keys(&lock, &more, 1); /* so that the script releases it */
    acquire(0);
    fake_pass(&client, 10 * MS);
    fake_nodes[2].hung = 1;
    is_int(release(100), REDLOCK_OK, "r04: one of three hangs");
    fake_pass(&client, 1000 * MS);
    redlock_lock_init(&second, "l", 30000);
    is_int((int)redlock_acquire(&client, &second, 0), REDLOCK_OK, "r04: another lock");
    fake_hold(2); /* the SET of the second lock is there, its release is on the way */
    is_int((int)redlock_release(&client, &second, 100), REDLOCK_OK, "r04: is released, too");
    fake_resume(2);
    fake_pass(&client, 10 * MS);
    ok(fake_find(2, "l", 1) != NULL, "r04: the third node runs the first release and the SET");
    fake_break(2); /* and what was on the way is lost */
    fake_pass(&client, 3000 * MS);
    ok(fake_find(2, "l", 1) == NULL, "r04: it is sent the second release again");
}

/* A release by DELEX, to which node 2 replies late that it has deleted nothing: the key has another generation than the
   client knows. The script follows at once. */
static void r04_a_late_reply_to_a_native_release(void)
{
    char value[41];
    const struct mini_key *key;
    int i;

    if (!REPEATS || REDLOCK_MINIMAL)
        return;
    begin_with_defaults(3);
    for (i = 0; i < 3; i++)
        fake_nodes[i].server.native = 2;
    is_int(acquire(0), REDLOCK_OK, "r04: held");
    fake_pass(&client, 10 * MS);
    key = fake_find(2, "k", 1);
    memcpy(value, key->value, 40);
    value[40] = '\0';
    value[32] = value[32] == '0' ? '1' : '0';
    fake_put(2, "k", value, 60000);
    fake_nodes[2].hung = 1;
    is_int(release(100), REDLOCK_OK, "r04: one of three hangs");
    fake_pass(&client, 1);
    fake_resume(2);
    fake_pass(&client, 3 * MS);
    is_int((int)fake_count(2, 'N'), 1, "r04: it deletes nothing");
    ok(fake_find(2, "k", 1) == NULL, "r04: the script does");
}

/* A release that a node has not answered is sent again on a new connection, without any other call. */
static void r04_a_repeated_release_connects(void)
{
    begin_with_defaults(3);
    warm_up();
    acquire(0);
    fake_pass(&client, 10 * MS);
    fake_hold(2);
    is_int(release(100), REDLOCK_OK, "r04: two of three have answered");
    fake_break(2);
    fake_pass(&client, 2000 * MS);
    is_int((int)fake_keys_left(), REPEATS ? 0 : 1,
           "r04: the third is connected and sent the release again");
}

/* A node hangs, and the connection to another one is not up in time: the release is kept for both, although there may be
   one place only. */
static void r04_one_place_for_all_nodes(void)
{
    if (REDLOCK_NODES_MAX < 5)
        return;
    begin_with_defaults(5);
    warm_up();
    acquire(0);
    fake_pass(&client, 20 * MS);
    fake_nodes[3].hung = 1;
    fake_nodes[4].never_up = 1;
    fake_break(4);
    fake_pass(&client, 1 * MS);
    is_int(release(500), REDLOCK_OK, "r04: released, one of five hangs, another connects");
    fake_pass(&client, 100 * MS);
    fake_nodes[4].never_up = 0;
    fake_resume(3);
    fake_pass(&client, 3000 * MS);
    is_int((int)fake_keys_left(), REPEATS ? 0 : 1, "r04: both are sent the release");
}

/* The lock is held on three nodes, and all replies have come. */
static void begin_held(void)
{
    begin_with_defaults(3);
    warm_up();
    acquire(0);
    fake_pass(&client, 20 * MS);
}

/* The connection to a node breaks twice while the lock is released. The release is sent again when the node is back. */
static void r04_a_release_that_broke_twice(void)
{
    begin_held();
    fake_nodes[1].hung = 1;
    fake_nodes[2].reply = "";
    is_int(release(300), REDLOCK_UNCONFIRMED,
           "r04: one of three hangs, another closes each connection");
    fake_nodes[2].reply = NULL;
    fake_resume(1);
    fake_pass(&client, 5000 * MS);
    is_int((int)fake_keys_left(), REPEATS ? 0 : 1, "r04: all are sent the release");
}

/* The password of a node was changed while the lock was held, and is changed back before the key expires. */
static void r04_a_release_that_was_denied_for_a_time(void)
{
    begin_held();
    fake_nodes[2].server.password = "another";
    fake_break(2);
    fake_pass(&client, 20 * MS);
    is_int(release(300), REDLOCK_OK, "r04: released, although one of three refuses the password");
    fake_nodes[2].server.password = NULL;
    fake_pass(&client, 5000 * MS);
    is_int((int)fake_keys_left(), REPEATS ? 0 : 1, "r04: it is sent the release when it does not");
}

/* A node refuses the password once while the lock is released, then is busy. */
static void r04_a_release_that_was_denied_and_postponed(void)
{
    begin_held();
    fake_nodes[1].server.password = "another";
    fake_break(1);
    fake_nodes[0].delay_us = fake_nodes[2].delay_us = 400 * MS;
    redlock_release_start(&client, &lock, 2000);
    fake_pass(&client, 20 * MS);
    fake_nodes[1].server.password = NULL;
    fake_nodes[1].reply = "-BUSY Redis is busy running a script.\r\n";
    fake_pass(&client, 500 * MS);
    is_int(lock.status, REDLOCK_OK, "r04: released on two of three");
    fake_nodes[1].reply = NULL;
    fake_pass(&client, 4000 * MS);
    is_int((int)fake_keys_left(), REPEATS ? 0 : 1, "r04: the third is sent the release again");
}

/* ---- A node that accepts no bytes, or replies early ----------------------------------------- */

/* The send buffer has no room for all releases that node 0 must be sent. The client disconnects it, so that
   no SET that waits in the buffer can ever run. */
static void r04_a_node_that_accepts_no_bytes_is_disconnected(void)
{
    static const char label[REDLOCK_LABEL_MAX + 1]; /* for long commands */
    struct redlock_lock more[8];
    unsigned i;

    begin_with_defaults(3);
    warm_up();
    held_by("other", 1, 2);
    fake_nodes[0].full = 1;
    for (i = 0; i < 8; i++) {
        redlock_lock_init(&more[i], "k", 10000);
        set_label(&more[i], label, REDLOCK_LABEL_MAX);
        redlock_acquire_start(&client, &more[i], 0);
    }
    fake_pass(&client, 400 * MS);
    for (i = 0; i < 8; i++)
        ok(more[i].status == REDLOCK_HELD, "r04 r15: full buffer, lock %u: %s", i,
           redlock_strerror(more[i].status));
    fake_nodes[0].full = 0;
    fake_pass(&client, 3000 * MS);
    is_int((int)fake_keys_left(), 2, "r04: no key of ours is left on any node");
}

/* The server sends these bytes before it is sent a command. */
static void reply_early(int i, const char *bytes)
{
    struct fake_node *n = &fake_nodes[i];
    size_t size = strlen(bytes);

    memcpy(n->out + n->out_used, bytes, size);
    n->out_used += (unsigned)size;
    n->due[n->dues].end = n->out_used;
    n->due[n->dues++].ready_us = fake_now_us;
}

/* A server replies to commands before it was sent them, and accepts no bytes. It owes no reply, but must not keep the
   buffer full for ever. */
static void r04_a_node_that_replies_early_is_disconnected(void)
{
    struct redlock_lock other;
    unsigned i;

    begin_with_defaults(3);
    for (i = 0; i < 4; i++)
        warm_up(); /* until it tries no further commands that release */
    fake_unlogged = 1;
    fake_nodes[2].full = 1;
    for (i = 0; i < 1000 && nodes[2].state == REDLOCK_NODE_READY; i++) {
        if (i % 2 == 0)
            redlock_acquire_start(&client, &lock, 5000);
        else
            redlock_release_start(&client, &lock, 1000);
        redlock_tick(&client);
        if (nodes[2].priv.count > 0)
            reply_early(2, i % 2 == 0 ? "+OK\r\n" : ":1\r\n");
        fake_pass(&client, 2 * MS);
        if (lock.status == REDLOCK_PENDING)
            break; /* the buffer is full */
    }
    ok(i > 0 && i < 1000, "r04: the buffer is full after %u commands", i);
    redlock_lock_init(&other, "other", 10000);
    is_int((int)redlock_acquire(&client, &other, 500), REDLOCK_OK,
           "r04: the others go on without a node that replies early");
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

/* ---- Temporary errors ----------------------------------------------------------------------- */

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
       (unsigned long)slower_us, kind_name(kind), words, busy_ms);
    fake_pass(&client, busy_ms * MS);
    ok(has_token(0, &was), "r04: the key is still there");
    fake_nodes[0].reply = NULL;
    fake_pass(&client, 4000 * MS);
    is_int(!has_token(0, &was), REPEATS, "r04: the key is deleted soon after the errors end");
    is_int((int)lock.status, released ? REDLOCK_OK : REDLOCK_HELD,
           "r04: the result does not change");
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

/* The rollback is unanswered when the attempt ends. Then the node replies to the release with a temporary
   error, and to PTTL with a time. The reply to PTTL must not count as a reply to the release. */
static void r04_a_reply_to_pttl_is_no_reply_to_the_release(void)
{
    char holder[64];

    memset(&settings, 0, sizeof settings);
    settings.retries = REDLOCK_NONE;
    begin(3);
    warm_up();
    client.priv.refuse_hashes =
        client.priv.all; /* after an error to a hash a script would follow */
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
    client.priv.refuse_hashes =
        client.priv.all; /* after an error to a hash a script would follow */
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

/* ---- Losses --------------------------------------------------------------------------------- */

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

/* ---- Releases that are repeated ------------------------------------------------------------- */

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
        redlock_lock_init(&locks[i], keys[i], 10000);
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

int main(void)
{
    r04_repeated_for_the_longer_ttl();
    r04_repeated_for_an_adopted_lock();
    r04_release_goes_to_every_asked_node(0);
    if (!REDLOCK_MINIMAL)
        r04_release_goes_to_every_asked_node(1);
    r04_a_refused_attempt_sends_no_release();
    if (!REDLOCK_MINIMAL)
        r04_a_lost_lock_is_released_where_it_was_refused();
    r04_release_after_the_first_reply_is_lost();
    r04_release_outlasts_a_full_buffer();
    r04_t8_cancel_rolls_back();
    r04_cancel_in_every_state();
    r04_a_cancelled_attempt_asks_nobody();
    r04_one_place_for_all_nodes();
    r04_a_repeated_release_connects();
    r04_a_release_is_sent_once();
    r04_a_release_that_broke_twice();
    r04_a_release_that_was_denied_for_a_time();
    r04_a_release_that_was_denied_and_postponed();
    r04_a_reply_to_a_release_that_was_given_up();
    r04_a_late_reply_to_a_native_release();
    r04_a_node_that_accepts_no_bytes_is_disconnected();
    r04_a_node_that_replies_early_is_disconnected();
    r04_a_node_that_replies_but_accepts_no_bytes();
    r04_a_release_finds_a_request();
    r04_near_nodes_stay_connected();
    r04_temporary_errors();
    r04_repeated_until_the_key_has_expired();
    if (REDLOCK_LABEL_MAX >= 4)
        r04_no_repeated_release_of_a_chosen_token();
    r04_another_reply_while_a_release_waits("-BUSY Redis is busy running a script.\r\n");
    r04_another_reply_while_a_release_waits(NULL);
    if (!REDLOCK_MINIMAL) {
        r04_a_reply_to_pttl_is_no_reply_to_the_release();
        r04_a_reply_to_pttl_of_another_lock();
    }
    if (!REDLOCK_MINIMAL) {
        r04_a_loss_while_a_node_connects();
        r04_a_loss_and_a_temporary_error();
    }
#if REDLOCK_OWED_MAX > 0
    r04_a_burst_of_releases();
#endif
    r04_releases_behind_a_handshake();
    if (REDLOCK_OWED_MAX > 0) {
        r04_a_failed_node_uses_no_room();
        r04_a_release_meets_nodes_that_are_down(0);
        r04_a_release_meets_nodes_that_are_down(20);
    }
    return done_testing();
}
