/* lock_test.c - the rules of the lock, one by one, on simulated servers with a simulated clock. "r04" is rule
   4 in the head of redlock.c or node.c. "T19" is a known failure of another Redlock client. Failures that
   this library cannot have are not tested. T42 and T44: the library measures the remaining time with its own
   clock. T48 and T49: there are no semaphores and no read locks. T50: the library does not call the caller's
   work.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "one_lock.h"

static void begin_without_pauses(unsigned count)
{
    memset(&settings, 0, sizeof settings);
    settings.retry_delay_ms = REDLOCK_NONE;
    begin(count);
}

/* Another client deletes "k" on the nodes from..to. */
static void delete_on(int from, int to)
{
    for (; from <= to; from++)
        fake_delete(from, "k");
}

static unsigned votes(redlock_mask mask)
{
    unsigned n = 0;

    for (; mask != 0; mask = (redlock_mask)(mask & (mask - 1)))
        n++;
    return n;
}

/* ---- R1 ------------------------------------------------------------------------------------- */

static void r01_new_token_for_every_attempt(void)
{
    unsigned i, j, same = 0, sets;

    begin_with_defaults(5);
    held_by("other", 0, 4);
    is_int(acquire(3000), REDLOCK_TIMEOUT, "r01: another client holds it all the time");
    sets = fake_count(0, 'S');
    ok(sets > 3, "r01: %u attempts", sets);
    for (i = 0; i < fake_logged; i++)
        for (j = 0; j < i; j++)
            same += fake_log[i].kind == 'S' && fake_log[j].kind == 'S' &&
                    fake_log[i].node == fake_log[j].node &&
                    strcmp(fake_log[i].token, fake_log[j].token) == 0;
    is_int((int)same, 0, "r01: no token is sent to a node twice");
    for (i = 0, same = 0; i < fake_logged; i++)
        same += fake_log[i].kind == 'S' && fake_log[i].ttl_ms != 10000;
    is_int((int)same, 0, "T11: the ttl is the same on every retry");
}

static void r01_a_set_is_never_sent_again(void)
{
    begin_with_defaults(3);
    warm_up();
    fake_nodes[1].reply = ""; /* receives the SET and closes the connection without a reply */
    fake_nodes[1].reply_once = 1;
    fake_nodes[2].delay_us = 30 * MS;
    is_int(acquire(0), REDLOCK_OK, "r01: two of three grant, one connection breaks");
    fake_pass(&client, 200 * MS);
    is_int((int)fake_count(1, 'S'), 1, "r01 T41: the SET on the broken connection is not repeated");
}

static void r01_t1_is_read_before_the_first_byte(void)
{
    uint64_t start;

    begin_with_defaults(5);
    warm_up();
    fake_transmit_us = 100 * MS;
    start = fake_now_us;
    is_int(acquire(0), REDLOCK_OK, "r01: slow transmit");
    is_int((int)(lock.valid_until_us - start), 10000 * MS - 100 * MS - 2 * MS - 1,
           "r01: the validity starts before the first byte is sent");
}

/* ---- R2, R3 --------------------------------------------------------------------------------- */

static void r02_all_nodes_at_once(void)
{
    unsigned i, others = 0;

    begin_with_defaults(5);
    warm_up();
    acquire(0);
    is_int((int)fake_logged, 5, "r02: five commands");
    for (i = 0; i < 5; i++)
        others += fake_log[i].at_us != fake_log[0].at_us || fake_log[i].kind != 'S' ||
                  strcmp(fake_log[i].token, fake_log[0].token) != 0;
    is_int((int)others, 0, "r02: the same SET to all, sent before any reply");
}

static void r03_wall_clocks_decide_nothing(void)
{
    static const uint64_t clocks[] = {0, (uint64_t)1 << 50, ((uint64_t)1 << 50) + 10000000};
    unsigned i;

    for (i = 0; i < 3; i++) {
        begin_with_defaults(3);
        fake_wall_us = clocks[i];
        is_int(acquire(0), REDLOCK_OK, "r03 T10: acquired with any wall clock");
        ok(fake_find(0, "k", 1)->until_us == fake_log[fake_logged - 1].at_us + 10000 * MS,
           "r03 T10: the key expires after its ttl by the server's clock");
        fake_wall_us += (uint64_t)3600000 * MS;
        ok(redlock_remaining_ms(&client, &lock) > 9800,
           "r03 T10: a change of the wall clock does not shorten the validity");
    }
}

static void r03_decides_at_the_quorum(void)
{
    uint64_t start;
    unsigned i;

    begin_with_defaults(5);
    warm_up();
    for (i = 0; i < 5; i++)
        fake_nodes[i].delay_us = (i + 1) * 10 * MS;
    start = fake_now_us;
    is_int(acquire(0), REDLOCK_OK, "r03: held");
    is_int((int)since(start), 30 * MS, "r03: at the third grant");
    is_int(lock.granted, 7, "r03: with the three votes");
}

/* Validity is T1 + ttl - drift: 10000 - 100 - 2 ms. The replies arrive 1 us before its end, or at its end. */
static void r03_validity_must_be_positive(void)
{
    static const struct {
        uint64_t late_us;
        int status;
    } cases[] = {{9897999, REDLOCK_OK - 1 + 1}, {9898000, REDLOCK_TOO_LATE}};
    unsigned i;

    for (i = 0; i < 2; i++) {
        begin_with_defaults(3);
        warm_up();
        fake_sleep_us = cases[i].late_us - 1 - 1000;
        is_int(acquire(0), cases[i].status, "r03 T2 T18: asleep for %lu us of the ttl",
               (unsigned long)cases[i].late_us);
        is_int((int)redlock_remaining_ms(&client, &lock), 0, "r03: no validity left");
        if (cases[i].status != REDLOCK_OK)
            is_int((int)fake_keys_left(), 0, "r03 T19: a lock acquired too late is rolled back");
    }
}

static void r03_drift_has_a_minimum(void)
{
    uint64_t start;

    begin_with_defaults(1);
    lock.ttl_ms = 10;
    fake_nodes[0].delay_us = 0;
    start = fake_now_us;
    is_int(acquire(0), REDLOCK_OK, "r03 T17: ttl of 10 ms");
    is_int((int)(lock.valid_until_us - start), 10 * MS - 100 - 2 * MS - 1,
           "r03 T17: drift is 1 percent and 2 ms");
    release(0);
    settings.drift_ppm = REDLOCK_NONE;
    begin(1);
    warm_up();
    start = fake_now_us;
    acquire(0);
    is_int((int)(lock.valid_until_us - start), 9998 * MS - 1,
           "r03: with a ratio of 0 the drift is 2 ms");
}

static void r03_quorum(void)
{
    static const struct {
        unsigned count, quorum, free;
        int status;
    } cases[] = {
        {1, 0, 1, REDLOCK_OK},        {2, 0, 2, REDLOCK_OK},   {2, 0, 1, REDLOCK_CONTENDED},
        {3, 0, 2, REDLOCK_OK},        {3, 0, 1, REDLOCK_HELD}, {4, 0, 3, REDLOCK_OK},
        {4, 0, 2, REDLOCK_CONTENDED}, {5, 0, 3, REDLOCK_OK},   {5, 0, 2, REDLOCK_HELD},
        {7, 0, 4, REDLOCK_OK},        {7, 0, 3, REDLOCK_HELD}, {9, 0, 5, REDLOCK_OK},
        {9, 0, 4, REDLOCK_HELD},      {5, 4, 4, REDLOCK_OK},   {5, 4, 3, REDLOCK_CONTENDED},
        {5, 5, 4, REDLOCK_CONTENDED}, {5, 5, 5, REDLOCK_OK},
    };
    unsigned i;

    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (cases[i].count > REDLOCK_NODES_MAX)
            continue; /* the limit of this build */
        memset(&settings, 0, sizeof settings);
        settings.quorum = cases[i].quorum;
        begin(cases[i].count);
        held_by("other", (int)cases[i].free, (int)cases[i].count - 1);
        is_int(acquire(0), cases[i].status, "r03 T1 T5: %u of %u nodes free, quorum %u",
               cases[i].free, cases[i].count, cases[i].quorum);
        release(100);
        is_int((int)fake_keys_left(), (int)(cases[i].count - cases[i].free),
               "r03 T1: no key of ours is left");
    }
}

/* ---- R4, R5 --------------------------------------------------------------------------------- */

/* Whether every SET is followed by a release of its token on its connection, except on node `but` (-1: none). */
static int each_set_is_released(int but)
{
    unsigned i, j;

    for (i = 0; i < fake_logged; i++) {
        if (fake_log[i].kind != 'S' || fake_log[i].node == but)
            continue;
        for (j = i + 1; j < fake_logged; j++)
            if (fake_log[j].kind == 'D' && fake_log[j].node == fake_log[i].node &&
                fake_log[j].epoch == fake_log[i].epoch &&
                strcmp(fake_log[j].token, fake_log[i].token) == 0)
                break;
        if (j == fake_logged)
            return 0;
    }
    return 1;
}

static void r04_release_goes_to_every_asked_node(void)
{
    memset(&settings, 0, sizeof settings);
    settings.retries = REDLOCK_NONE;
    begin(5);
    warm_up();
    held_by("other", 1, 2); /* 0: granted. 1, 2: refused. 3: an error. 4: hangs */
    fake_nodes[3].reply = "-LOADING Redis is loading the dataset in memory\r\n";
    fake_nodes[4].hung = 1;
    is_int(acquire(0), REDLOCK_CONTENDED, "r04: one grant, two refusals, an error, a hung node");
    is_int(lock.granted << 8 | lock.refused, 0x106, "r04: the votes");
    is_int(lock.failed, 0x8, "r04: the failure");
    ok(has_error(3, "LOADING"), "r04: its error: %s", nodes[3].error);
    fake_resume(4);
    is_int((int)fake_keys_left(), 2, "r04 T6 T37: no key of ours is left, nor on the hung node");
    is_int((int)fake_count(-1, 'D'), 5, "r04: the release went to all five");
    ok(each_set_is_released(-1), "r05 T7: each after its SET, on the same connection");
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

/* A server closes each connection after the handshake. The client reconnects once at once, then only after a
   backoff, and not for each attempt. */
static void r05_backoff_although_the_handshake_succeeds(void)
{
    unsigned i;

    begin_with_defaults(3);
    fake_nodes[0].reply = "";
    for (i = 0; i < 100; i++) {
        acquire(0);
        fake_pass(&client, 10 * MS);
        release(100);
        fake_pass(&client, 10 * MS);
    }
    ok(fake_nodes[0].connects > 4 && fake_nodes[0].connects < 12, "r05: %d connects in 2 s",
       fake_nodes[0].connects);
    fake_nodes[0].reply = NULL;
    fake_pass(&client, 3000 * MS);
    acquire(0);
    fake_pass(&client, 10 * MS);
    is_int(lock.members, 7, "r05: the node is a member when its connection works again");
    release(100);
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
        redlock_lock_init(&more[i], "k", 1, 10000);
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

/* A node owes a reply for nearly stall_ms when it begins to keep the send buffer full. It is disconnected when
   stall_ms are over: the time of a node that accepts no bytes may be longer. Found by sim.c. */
static void r05_a_full_buffer_gives_no_more_time(void)
{
    static const char label[REDLOCK_LABEL_MAX + 1]; /* for long commands */
    struct redlock_lock more[40];
    unsigned i;

    memset(&settings, 0, sizeof settings);
    settings.node_timeout_ms = 400;
    settings.stall_ms = 1000;
    begin(3);
    warm_up();
    held_by("other", 1, 2);
    fake_nodes[0].hung = 1;
    is_int(acquire(0), REDLOCK_HELD, "r05: refused by two nodes, the third hangs");
    fake_pass(&client, 900 * MS);
    fake_nodes[0].full = 1;
    for (i = 0; i < 40; i++) {
        redlock_lock_init(&more[i], "k", 1, 10000);
        set_label(&more[i], label, REDLOCK_LABEL_MAX);
        redlock_acquire_start(&client, &more[i], 0);
    }
    fake_pass(&client, 50 * MS);
    is_int(nodes[0].state, REDLOCK_NODE_READY, "r05: it owes the reply for less than stall_ms");
    fake_pass(&client, 55 * MS);
    ok(nodes[0].state != REDLOCK_NODE_READY, "r05: stall_ms are over");
    fake_pass(&client, 45 * MS); /* with short queues the locks take several round trips */
    ok(more[39].status == REDLOCK_HELD, "r05: then the locks are asked for: %s",
       redlock_strerror(more[39].status));
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
    redlock_lock_init(&other, "other", 5, 10000);
    is_int((int)redlock_acquire(&client, &other, 500), REDLOCK_OK,
           "r04: the others go on without a node that replies early");
    redlock_deinit(&client);
}

static void r04_t8_cancel_rolls_back(void)
{
    begin_with_defaults(3);
    warm_up();
    fake_nodes[1].delay_us = fake_nodes[2].delay_us = 40 * MS;
    redlock_acquire_start(&client, &lock, 5000);
    fake_pass(&client, 5 * MS);
    is_int(lock.granted, 1, "r04 T8: one of three has granted");
    redlock_cancel(&client, &lock);
    redlock_tick(&client);
    ok(redlock_next_completed(&client) == &lock, "r04 T8: the operation completes at once");
    is_int(lock.status, REDLOCK_CANCELLED, "r04 T8: the status is REDLOCK_CANCELLED");
    is_int((int)fake_count(-1, 'D'), 3, "r04 T8: released on all three");
    fake_pass(&client, 100 * MS);
    is_int((int)fake_keys_left(), 0, "r04 T8: no key is left");
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

static void r05_late_replies_are_dropped(void)
{
    memset(&settings, 0, sizeof settings);
    settings.retries = REDLOCK_NONE;
    begin(3);
    warm_up();
    held_by("other", 1, 2);
    fake_nodes[0].delay_us = 80 * MS; /* its grant arrives long after the attempt has failed */
    is_int(acquire(0), REDLOCK_HELD, "r05: the attempt fails before the slow grant arrives");
    fake_nodes[1].server.keys[0].name.size = 0; /* the other client's key expires on node 1 */
    fake_nodes[2].delay_us = 200 * MS;
    redlock_acquire_start(&client, &lock, 0);
    fake_pass(&client, 45 * MS);
    is_int(lock.granted, 2, "r05: the late grant of attempt 1 is no vote for attempt 2");
    fake_pass(&client, 300 * MS);
    is_int((int)fake_keys_left(), 1, "r05: no key of ours is left");
}

/* The queue of a slow node is full. Releases whose replies are dropped share one slot. The SET before them
   must have a slot for itself, because its reply has another form. */
static void r05_a_full_queue_keeps_replies_apart(void)
{
    struct redlock_lock many[REDLOCK_PIPELINE_MAX - 1];
    unsigned i;

    if (REDLOCK_PIPELINE_MAX > 100)
        return; /* a simulated server has no room for so many keys */
    begin_with_defaults(1);
    warm_up();
    fake_nodes[0].hung = 1;
    for (i = 0; i < REDLOCK_PIPELINE_MAX - 1; i++) {
        redlock_lock_init(&many[i], &"abcdefghijklmnopqrstuvwxyz"[i % 26], 1, 10000);
        redlock_acquire_start(&client, &many[i], 1000);
        fake_pass(&client, 0);
    }
    redlock_cancel(&client, &many[i - 1]);
    fake_pass(&client, 60 * MS);
    fake_resume(0);
    fake_pass(&client, 100 * MS);
    ok(nodes[0].state == REDLOCK_NODE_READY && fake_nodes[0].connects == 1,
       "r05: the connection stays up: %s", nodes[0].error);
    redlock_deinit(&client);
}

/* More attempts than the queue has room for: they begin in the order in which they were started, also when
   more are started meanwhile. */
static void r02_attempts_wait_in_line_for_room(void)
{
    static struct redlock_lock many[40];
    static char keys[40][4];
    unsigned i, begun = 0, in_line = 0;

    begin_with_defaults(3);
    warm_up();
    fake_logged = 0;
    for (i = 0; i < 40; i++) {
        snprintf(keys[i], sizeof keys[i], "m%02u", i);
        redlock_lock_init(&many[i], keys[i], 3, 10000);
        redlock_acquire_start(&client, &many[i], 1000);
        redlock_tick(&client);
        if (i % 10 == 9)
            fake_pass(&client, 100); /* some replies arrive, then more are started */
    }
    fake_pass(&client, 100 * MS);
    for (i = 0; i < fake_logged; i++)
        if (fake_log[i].node == 0 && fake_log[i].kind == 'S')
            in_line += strcmp(fake_log[i].key, keys[begun++]) == 0;
    is_int((int)begun, 40, "r02: all 40 attempts are sent");
    is_int((int)in_line, 40, "r02: in the order in which they were started");
}

/* A node is connected when more locks are held than it has room for. It is sent all of them, although none of those that have
   completed is taken. */
static void r02_completed_locks_share_a_late_node(void)
{
    static struct redlock_lock many[40];
    static char keys[40][4];
    unsigned i, held = 0, found = 0;

    begin_with_defaults(3);
    fake_nodes[2].refuses = 1;
    warm_up();
    for (i = 0; i < 40; i++) {
        snprintf(keys[i], sizeof keys[i], "l%02u", i);
        redlock_lock_init(&many[i], keys[i], 3, 60000);
        redlock_acquire_start(&client, &many[i], 5000);
    }
    fake_pass(&client, 2000 * MS);
    for (i = 0; i < 40; i++)
        held += many[i].status == REDLOCK_OK;
    fake_nodes[2].refuses = 0;
    fake_pass(&client, 4000 * MS);
    for (i = 0; i < 40; i++)
        found += fake_find(2, keys[i], 3) != NULL;
    is_int((int)held, 40, "r02: 40 locks are held on two of three nodes");
    is_int((int)found, 40, "r02: and on the third when it is back");
}

/* The error after a list. */
#define A_LIST "unexpected reply"

/* Replies that must close the connection, and the error of the node. */
static void r05_nonsense_disconnects(void)
{
    static const struct {
        const char *reply, *error;
    } cases[] = {
        {"HTTP/1.1 400 Bad Request\r\n\r\n", "does not speak RESP"},
        {"$99999999999999999999\r\n", "does not speak RESP"},
        {"$1073741824\r\n", "does not speak RESP"},
        {"*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n", A_LIST},
        {"*100000\r\n", A_LIST},
        {":1\r\n", "unexpected reply"},
        {"+QUEUED\r\n", "unexpected reply"},
        {"+NO\r\n", "unexpected reply"},
        {"$2\r\nOK\r\n", "unexpected reply"},
        {"+OK\r\n+OK\r\n+OK\r\n", "unexpected reply"},
        {"+OK\r\n-ERR unasked\r\n-ERR unasked\r\n", "unsolicited: ERR unasked"},
        {"", "closed by the server"},
    };
    unsigned i;

    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin_with_defaults(3);
        warm_up();
        fake_nodes[0].reply = cases[i].reply;
        fake_nodes[0].delay_us = 0;
        is_int(acquire(0), REDLOCK_OK, "r05: the others decide");
        fake_pass(&client, 5 * MS);
        ok(has_error(0, cases[i].error), "r05: \"%.12s\": %s", cases[i].reply, nodes[0].error);
        ok(nodes[0].state != REDLOCK_NODE_READY, "r05: the node is disconnected");
    }
}

/* RESP3 pushes are not replies to commands. */
static void r05_a_push_is_not_a_reply(void)
{
    begin_with_defaults(3);
    warm_up();
    fake_nodes[0].reply = ">2\r\n+invalidate\r\n*0\r\n";
    is_int(acquire(0), REDLOCK_OK, "r05: the others decide");
    fake_pass(&client, 5 * MS);
    is_int(nodes[0].state == REDLOCK_NODE_READY, REDLOCK_NOTIFICATION,
           "r05: a push does not close the connection, unless the client knows RESP2 only");
    is_int(lock.granted & 1, 0, "r05: a push is not a vote");
}

static void r05_an_unsolicited_first_reply_disconnects(void)
{
    begin_with_defaults(3);
    fake_nodes[0].first_bytes = "-ERR max number of clients reached\r\n";
    fake_nodes[0].delay_us = 0;
    fake_nodes[0].hung = 1;
    is_int(acquire(0), REDLOCK_OK, "r05: the others decide");
    ok(has_error(0, "ERR max number"), "r05: %s", nodes[0].error);
}

static void r05_one_byte_at_a_time(void)
{
    unsigned i;

    begin_with_defaults(5);
    for (i = 0; i < 5; i++)
        fake_nodes[i].drip = 1;
    is_int(acquire(0), REDLOCK_OK, "r05: one byte per packet: acquire");
    is_int(extend(), REDLOCK_OK, "r05: extend");
    is_int(release(100), REDLOCK_OK, "r05: release");
    fake_pass(&client, 10 * MS);
    is_int((int)fake_keys_left(), 0, "r05: no key is left");
}

static void r05_stalled_connection(void)
{
    uint64_t start;
    int connects, i;

    begin_with_defaults(3);
    warm_up();
    fake_nodes[2].hung = 1;
    acquire(0);
    fake_pass(&client, 900 * MS);
    is_int(nodes[2].state, REDLOCK_NODE_READY, "r05: a reply is due for 0.9 s: connected");
    fake_pass(&client, 150 * MS);
    is_int(nodes[2].state, REDLOCK_NODE_DOWN,
           "r05: a reply is due for more than stall_ms: disconnected");
    ok(has_error(2, "no reply"), "r05: %s", nodes[2].error);
    fake_nodes[1].refuses = fake_nodes[2].refuses = 1;
    release(10);
    fake_break(1);
    start = fake_now_us;
    is_int(acquire(0), REDLOCK_UNREACHABLE, "r05: two of three are down");
    ok(since(start) < 40 * MS, "r05: the failure is reported without waiting (%ld us)",
       since(start));
    fake_pass(&client, 10000 * MS);
    connects = fake_nodes[2].connects;
    for (i = 0; i < 1000; i++) { /* 10 s of attempts */
        acquire(0);
        fake_pass(&client, 10 * MS);
    }
    connects = fake_nodes[2].connects - connects;
    ok(connects >= 4 && connects <= 20,
       "r05: backoff between connects that are refused: %d in 10 s", connects);
    fake_nodes[1].refuses = fake_nodes[2].refuses = fake_nodes[2].hung = 0;
    is_int(acquire(5000), REDLOCK_OK, "r05: acquired when the nodes are back");
}

/* The process sleeps for longer than stall_ms while a long reply comes. It is read before the node is given up. */
static void r05_a_paused_process_reads_a_long_reply(void)
{
    char holder[60];
    unsigned i;

    begin_with_defaults(3);
    warm_up();
    set_holder(&lock, holder, sizeof holder);
    held_by("0123456789012345678901234567890123456789, the label of the holder", 0, 2);
    for (i = 0; i < 3; i++) {
        redlock_acquire_start(&client, &lock, 0);
        redlock_tick(&client);
        fake_sleep_us = 2000 * MS;
        fake_pass(&client, 1000 * MS);
        fake_sleep_us = 2000 * MS;
        fake_pass(&client, 500 * MS);
        is_int((int)lock.status, REDLOCK_HELD, "r05: refused, after a pause in the rollback");
    }
    is_int(fake_nodes[0].connects, 1, "r05: the connection stays up");
}

static void r05_a_connection_breaks_beside_a_held_lock(void)
{
    unsigned zeros = 0;

    begin_with_defaults(3);
    is_int(acquire(0), REDLOCK_OK, "r05: held");
    fake_pass(&client, 10 * MS);
    fake_break(2);
    redlock_handle_events(&client, 2, REDLOCK_READABLE);
    while (zeros < 10 && redlock_tick(&client) == 0)
        zeros++;
    ok(zeros < 10, "r05: the next wait is not for nothing: %u ticks returned 0", zeros);
    is_int(release(100), REDLOCK_OK, "r05: released");
}

/* Each tick completes another lock, so that none is followed by a wait. */
static void r05_a_stall_between_complete_locks(void)
{
    struct redlock_lock other;
    unsigned ms, zeros = 0;

    begin_with_defaults(3);
    warm_up();
    fake_pass(&client, 10 * MS);
    fake_nodes[2].hung = 1;
    redlock_lock_init(&other, "other", 5, 10000);
    redlock_acquire_start(&client, &lock, 0);
    for (ms = 0; ms < 1100; ms++) {
        redlock_acquire_start(&client, &other, 0);
        redlock_cancel(&client, &other);
        zeros += redlock_tick(&client) == 0;
        while (redlock_next_completed(&client) != NULL)
            ;
        fake_now_us += MS;
        redlock_handle_events(&client, 0, REDLOCK_READABLE);
        redlock_handle_events(&client, 1, REDLOCK_READABLE);
    }
    is_int((int)zeros, 1100, "r05: each tick completes a lock");
    is_int(lock.status, REDLOCK_OK, "r05: one of them is held");
    ok(nodes[2].state != REDLOCK_NODE_READY && has_error(2, "no reply in time"),
       "r05: the hung node is given up: %s", nodes[2].error);
}

/* The caller does not call the library for longer than stall_ms. A reply that arrived meanwhile is in time. */
static void r05_an_idle_caller_causes_no_stall(void)
{
    begin_with_defaults(3);
    warm_up();
    fake_nodes[2].delay_us = 20 * MS;
    is_int(acquire(0), REDLOCK_OK, "r05: two nodes decide, the third has not replied yet");
    fake_now_us += 1500 * MS;
    is_int(release(100), REDLOCK_OK, "r05: released 1.5 s later");
    fake_pass(&client, 50 * MS);
    is_int(fake_nodes[2].connects, 1, "r05: the third connection stays up: %s", nodes[2].error);
    is_int((int)fake_keys_left(), 0, "r05: no key is left");
    is_int(acquire(0), REDLOCK_OK, "r05: acquired again");
    fake_break(2);
    fake_now_us += 1500 * MS;
    is_int(release(100), REDLOCK_OK, "r05: released after the third connection broke");
    fake_pass(&client, 50 * MS);
    ok(strstr(nodes[2].error, "stall_ms") == NULL,
       "r05: the error names the broken connection, not a stall: %s", nodes[2].error);
}

/* ---- R6 ------------------------------------------------------------------------------------- */

static void r06_a_failed_attempt_ends_early(void)
{
    uint64_t start;

    begin_with_defaults(5);
    warm_up();
    held_by("other", 0, 2);
    fake_nodes[3].hung = fake_nodes[4].hung = 1;
    start = fake_now_us;
    is_int(acquire(0), REDLOCK_HELD, "r06: another client holds it on three nodes, two hang");
    ok(since(start) <= 3 * MS, "r06: reported within three round trips, %ld us", since(start));
}

static void r06_number_of_attempts(void)
{
    memset(&settings, 0, sizeof settings);
    settings.retries = REDLOCK_NONE;
    begin(3);
    held_by("other", 0, 2);
    is_int(acquire(60000), REDLOCK_HELD, "r06 T12: no retries: held");
    is_int((int)fake_count(0, 'S'), 1, "r06 T12: one attempt");
    held_by("second", 0, 0);
    begin(3);
    held_by("a", 0, 0);
    held_by("b", 1, 1);
    held_by("c", 2, 2);
    is_int(acquire(0), REDLOCK_CONTENDED, "r06: no retries: contention");
    is_int((int)fake_count(0, 'S'), 1, "r06 T12: also after a split vote");
    settings.retries = 3;
    begin(3);
    held_by("other", 0, 2);
    is_int(acquire(60000), REDLOCK_HELD, "r06: three retries");
    is_int((int)fake_count(0, 'S'), 4, "r06: four attempts");
    begin_with_defaults(3);
    held_by("other", 0, 2);
    is_int(acquire(0), REDLOCK_HELD, "r06: wait_ms 0: held");
    is_int((int)fake_count(0, 'S'), 1, "r06: wait_ms 0: one attempt when there is a holder");
    begin_with_defaults(4);
    held_by("a", 0, 0);
    held_by("b", 1, 1);
    is_int(acquire(0), REDLOCK_CONTENDED, "r06: wait_ms 0: contention");
    is_int((int)fake_count(0, 'S'), 1 + 5, "r06: wait_ms 0: five quick retries, as redlock.h says");
}

/* The pauses between attempts: 100 ms, growing by half, up to 1 s, each within half of it. */
static void r06_pauses_are_random_and_grow(void)
{
    uint64_t last = 0, shortest = REDLOCK_NEVER, longest = 0;
    unsigned i, expected = 100, wrong = 0, seen = 0;

    begin_with_defaults(1);
    held_by("other", 0, 0);
    is_int(acquire(20000), REDLOCK_TIMEOUT, "r06: timeout after 20 s");
    for (i = 0; i < fake_logged; i++) {
        uint64_t pause = fake_log[i].at_us - last;
        if (fake_log[i].kind != 'S')
            continue;
        if (last != 0 && fake_log[i].at_us - fake_log[0].at_us < 19000 * MS) {
            pause -= 3001; /* two round trips, and what is added to each pause */
            wrong += pause < expected * 500 || pause > expected * 1500;
            shortest = pause * 100 / expected < shortest ? pause * 100 / expected : shortest;
            longest = pause * 100 / expected > longest ? pause * 100 / expected : longest;
            expected = expected + (expected + 1) / 2 < 1000 ? expected + (expected + 1) / 2 : 1000;
            seen++;
        }
        last = fake_log[i].at_us;
    }
    ok(wrong == 0 && seen > 10, "r06: %u pauses, each within 50 percent of the expected one", seen);
    ok(longest > shortest + 40000, "r06: the pauses are random");
    ok(last >= fake_log[0].at_us + 19990 * MS && last <= fake_log[0].at_us + 20010 * MS,
       "r06: the last attempt is made when the wait ends");
}

static void r01_tokens_differ(void)
{
    uint8_t first[20];

    begin_with_defaults(1);
    acquire(0);
    memcpy(first, lock.token, sizeof first);
    release(10);
    acquire(0);
    ok(memcmp(first, lock.token, sizeof first) != 0, "T16: each acquire has a new token");
}

/* Contention: on 5 nodes three other clients have keys, on 4 nodes two have. All these keys expire after 5 ms. */
static void r06_contention_is_retried_quickly(unsigned count)
{
    uint64_t start;

    begin_with_defaults(count);
    warm_up();
    fake_put(0, "k", "a", 5);
    fake_put(1, "k", "b", 5);
    if (count == 5)
        fake_put(2, "k", "c", 5);
    start = fake_now_us;
    is_int(acquire(0), REDLOCK_OK, "r06: contention that ends within 5 ms");
    ok(fake_count(0, 'S') > 1 && since(start) < 40 * MS, "r06: %u quick attempts, %ld us",
       fake_count(0, 'S'), since(start));
}

static void r06_results_are_distinct(void)
{
    begin_with_defaults(5);
    held_by("one", 0, 4);
    is_int(acquire(0), REDLOCK_HELD, "r06: one holder on all nodes");
    begin(5);
    held_by("one", 0, 1);
    held_by("two", 2, 3);
    held_by("three", 4, 4);
    is_int(acquire(0), REDLOCK_CONTENDED,
           "r06 T45: refused by all, but no other client has a quorum: contention");
    begin(5);
    held_by("one", 0, 2);
    held_by("two", 3, 4);
    is_int(acquire(0), REDLOCK_HELD, "r06: one of two other clients has a quorum: held");
    begin(3);
    fake_nodes[0].reply = fake_nodes[1].reply = "-NOPERM this user has no permissions\r\n";
    is_int(acquire(60000), REDLOCK_DENIED, "r06: permission denied, without a wait");
    ok(has_error(0, "NOPERM"), "r06: the error is the server's text: %s", nodes[0].error);
    begin(3);
    fake_nodes[0].refuses = fake_nodes[1].refuses = 1;
    is_int(acquire(0), REDLOCK_UNREACHABLE, "r06: two of three refuse the connection");
    ok(has_error(1, "refused"), "r06: %s", nodes[1].error);
    is_int(acquire(500), REDLOCK_UNREACHABLE,
           "r06: also at the end of wait_ms, not REDLOCK_TIMEOUT");
    begin(3);
    held_by("one", 0, 2);
    is_int(acquire(500), REDLOCK_TIMEOUT, "r06: another client holds it during all of wait_ms");
}

/* Two of three nodes reply with an error. Permanent errors end the wait (DENIED), temporary ones do not. The
   texts are those of servers; some come from a script. */
static void r06_permanent_and_temporary_errors(void)
{
    static const struct {
        int outcome;
        const char *reply;
    } cases[] = {
        {REDLOCK_DENIED, "-NOAUTH Authentication required.\r\n"},
        {REDLOCK_DENIED, "-NOPERM this user has no permissions\r\n"},
        {REDLOCK_DENIED, "-WRONGPASS invalid username-password pair\r\n"},
        {REDLOCK_DENIED, "-READONLY You can't write against a read only replica.\r\n"},
        {REDLOCK_DENIED, "-WRONGTYPE Operation against a key\r\n"},
        {REDLOCK_DENIED, "-MOVED 1234 127.0.0.1:6379\r\n"},
        {REDLOCK_DENIED, "-ASK 1234 127.0.0.1:6379\r\n"},
        {REDLOCK_DENIED, "-CROSSSLOT Keys in request don't hash to the same slot\r\n"},
        {REDLOCK_DENIED, "-ERR The user executing the script can't run this command\r\n"},
        {REDLOCK_DENIED, "-ERR ACL failure in script: No permissions\r\n"},
        {REDLOCK_UNREACHABLE, "-LOADING Redis is loading the dataset in memory\r\n"},
        {REDLOCK_UNREACHABLE, "-BUSY Redis is busy running a script.\r\n"},
        {REDLOCK_UNREACHABLE, "-OOM command not allowed when used memory > 'maxmemory'.\r\n"},
        {REDLOCK_UNREACHABLE, "-MISCONF Redis is configured to save RDB snapshots\r\n"},
        {REDLOCK_UNREACHABLE, "-TRYAGAIN Multiple keys request during rehashing of slot\r\n"},
        {REDLOCK_UNREACHABLE, "-CLUSTERDOWN Hash slot not served\r\n"},
        {REDLOCK_UNREACHABLE, "-MASTERDOWN Link with MASTER is down\r\n"},
        {REDLOCK_UNREACHABLE, "-NOREPLICAS Not enough good replicas to write.\r\n"},
        {REDLOCK_UNREACHABLE, "-ERR something else\r\n"},
    };
    unsigned i;

    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin_with_defaults(3);
        warm_up();
        fake_nodes[0].reply = fake_nodes[1].reply = cases[i].reply;
        is_int(acquire(500), cases[i].outcome, "r06: %.12s", cases[i].reply + 1);
    }
}

/* Two of three nodes do not grant the lock: on one another client has the key, the other is down. The attempt
   has failed, but only the third node can show whether another client has a quorum. */
static void r06_failed_but_the_reason_is_still_open(void)
{
    unsigned slow, warm;

    for (warm = 0; warm < 2; warm++)
        for (slow = 0; slow < 2; slow++) {
            begin_with_defaults(3);
            if (warm)
                warm_up();
            else
                fake_nodes[2].refuses = 1;
            fake_break(2);
            fake_nodes[2].refuses = 1;
            held_by("other", 0, 1);
            fake_nodes[slow].delay_us = 5 * MS;
            is_int(acquire(0), REDLOCK_HELD, "r06: two of three name one holder");
            is_int((int)fake_keys_left(), 2, "r06: no key of ours is left");
            is_int(acquire(200), REDLOCK_TIMEOUT, "r06: the holder keeps it during all of wait_ms");
            fake_delete((int)slow, "k");
            is_int(acquire(0), REDLOCK_CONTENDED,
                   "r06: one node grants, one refuses, one is down: contention");
            fake_nodes[slow].hung = 1;
            is_int(acquire(0), REDLOCK_UNREACHABLE, "r06: one of three replies: no quorum");
        }
}

/* Two nodes refuse, and one of them with a token that was left behind. The third one has not replied yet: it may name the holder. */
static void r06_the_slowest_node_names_the_holder(void)
{
    begin_with_defaults(3);
    warm_up();
    fake_put(0, "k", "left behind", 10000);
    held_by("other", 1, 2);
    fake_nodes[2].delay_us = 5 * MS;
    is_int(acquire(0), REDLOCK_HELD, "r06: two of three name one holder, one of them late");
    fake_put(2, "k", "a third", 10000);
    is_int(acquire(0), REDLOCK_CONTENDED, "r06: each names another one");
    fake_nodes[2].hung = 1;
    is_int(acquire(0), REDLOCK_HELD,
           "r06: two name another one, and one hangs: it may have been held");
}

static void r06_a_waiter_acquires_after_expiry(void)
{
    uint64_t start;

    begin_with_defaults(5);
    fake_put(0, "k", "other", 700);
    fake_put(1, "k", "other", 700);
    fake_put(2, "k", "other", 700);
    start = fake_now_us;
    is_int(acquire(5000), REDLOCK_OK, "r06: waits until the holder's keys expire");
    ok(since(start) >= 700 * MS && since(start) < 1400 * MS, "r06: after %ld us", since(start));
}

/* T13: connections that the server closed between two calls. */
static void r06_dead_connections_are_replaced(void)
{
    int i;

    begin_with_defaults(3);
    warm_up();
    for (i = 0; i < 3; i++)
        fake_break(i);
    is_int(acquire(0), REDLOCK_OK, "T13: all idle connections were dead: reconnected, acquired");
    for (i = 0; i < 3; i++)
        fake_break(i);
    is_int(extend(), REDLOCK_OK, "T13: all connections were dead: extended");
    for (i = 0; i < 3; i++)
        fake_break(i);
    is_int(release(100), REDLOCK_OK, "T13 T40: all connections were dead: released");
    fake_pass(&client, 10 * MS);
    is_int((int)fake_keys_left(), 0, "T13: no key is left");
}

/* Each attempt fails at once and is retried at once. This must not become an endless loop within one tick. */
static void r06_no_pause_still_ends(void)
{
    uint64_t start;
    int i;

    begin_without_pauses(3);
    for (i = 0; i < 3; i++)
        fake_nodes[i].refuses = 1;
    start = fake_now_us;
    is_int(acquire(5), REDLOCK_UNREACHABLE, "r06: no pause, no reachable node: fails");
    ok(since(start) >= 5 * MS && since(start) < 6 * MS, "r06: at the end of wait_ms, after %ld us",
       since(start));
}

/* Attempts that wait for no reply, because no node may vote: without a pause they would flood servers that have just
   started. */
static void r06_no_pause_is_no_flood(void)
{
    memset(&settings, 0, sizeof settings);
    settings.retry_delay_ms = REDLOCK_NONE;
    settings.longest_ttl_ms = 60000;
    begin(3);
    is_int(acquire(10), REDLOCK_UNREACHABLE, "r06: no pause, no node may vote: fails");
    ok(fake_count(-1, 'S') <= 3 * 12, "r06: an attempt in a millisecond: %u commands",
       fake_count(-1, 'S'));
}

/* Pauses are multiples of the round trip, so rtt_us must not contain the time that a reply waits for the
   caller's next call. */
static void r06_round_trips_are_not_idle_time(void)
{
    int i;

    begin_with_defaults(3);
    for (i = 0; i < 3; i++)
        fake_nodes[i].delay_us = i < 2 ? MS : 3 * MS;
    for (i = 0; i < 20; i++) {
        is_int(acquire(0), REDLOCK_OK, "r06: held by two of three");
        fake_now_us += 500 * MS; /* the third replies meanwhile */
        is_int(release(100), REDLOCK_OK, "r06: released");
        fake_now_us += 500 * MS;
    }
    is_int(acquire(0), REDLOCK_OK, "r06: held by two of three once more");
    for (i = 0; i < 20; i++) {
        fake_now_us += 500 * MS;
        is_int(extend(), REDLOCK_OK, "r06: extended");
    }
    is_int(release(100), REDLOCK_OK, "r06: released after extensions");
    fake_now_us += 500 * MS;
    for (i = 0; i < 2; i++)
        is_int((int)nodes[i].rtt_us, (int)MS, "r06: rtt_us of node %d is its delay", i);
    is_int((int)nodes[2].rtt_us, 3 * MS, "r06: rtt_us of node 2 is that of its handshake");
    fake_nodes[2].delay_us = MS;
    fake_nodes[0].hung = 1;
    is_int(acquire(0), REDLOCK_OK, "r06: acquired; the reply of node 2 is needed now");
    ok(nodes[2].rtt_us >= MS && nodes[2].rtt_us < 3 * MS,
       "r06: and its round trip is measured: %lu us", (unsigned long)nodes[2].rtt_us);
}

/* ---- R7 ------------------------------------------------------------------------------------- */

/* Another client has "k" on all `count` nodes. `lock` waits for it, with pauses of 5 s. */
static void begin_waiting(unsigned count)
{
    memset(&settings, 0, sizeof settings);
    settings.retry_delay_ms = settings.retry_delay_max_ms = 5000;
    begin(count);
    held_by("other", 0, (int)count - 1);
    redlock_acquire_start(&client, &lock, 60000);
    fake_pass(&client, 100 * MS);
}

/* Another client has the key on three of four nodes. The attempt has failed after two refusals and a grant.
   Only the replies to its rollback show that there is a holder and no contention. Found by sim.c. */
static void r06_a_holder_on_an_even_number_of_nodes(void)
{
    begin_with_defaults(4);
    held_by("another", 1, 3);
    acquire(0);
    release(100);
    fake_nodes[3].delay_us = 3 * MS;
    is_int(acquire(0), REDLOCK_HELD,
           "r06: another client has three of four nodes, one replies late: held");
    fake_delete(3, "k");
    is_int(acquire(0), REDLOCK_CONTENDED, "r06: another client has two of four nodes: contention");
}

static void r07_notifications_end_the_pause(void)
{
    int i;

    begin_waiting(5);
    is_int((int)fake_count(0, 'S'), 1, "r07: one attempt, then a pause of seconds");
    fake_delete(0, "k");
    fake_delete(1, "k");
    fake_pass(&client, 100 * MS);
    is_int((int)fake_count(0, 'S'), 1,
           "r07: free on two of five nodes: the waiter goes on waiting");
    fake_delete(2, "k");
    fake_pass(&client, 10 * MS);
    is_int(lock.status, REDLOCK_OK, "r07: free on three of five nodes: acquired within 10 ms");
    is_int((int)fake_count(0, 'S'), 2, "r07: with one more attempt");
    begin_waiting(3);
    for (i = 0; i < 3; i++) {
        fake_delete(i, "k");
        held_by("another", i, i);
    }
    fake_pass(&client, 100 * MS);
    is_int(lock.status, REDLOCK_PENDING,
           "r07: a notification is not a grant: another client was faster");
    is_int((int)fake_count(0, 'S'), 2, "r07: one more attempt, then the waiter goes on waiting");
    delete_on(0, 2);
    fake_pass(&client, 10 * MS);
    is_int(lock.status, REDLOCK_OK, "r07: acquired after the next notification");
}

/* An attempt that failed because too few nodes may vote is not retried when the key is deleted. Otherwise
   waiters would notify each other with their rollbacks without a pause. Found by sim.c. */
static void r07_no_notification_without_voters(void)
{
    int i;

    memset(&settings, 0, sizeof settings);
    settings.longest_ttl_ms = 20000; /* all have just started */
    settings.retry_delay_ms = settings.retry_delay_max_ms = 10000;
    begin(3);
    redlock_acquire_start(&client, &lock, 60000);
    fake_pass(&client, 100 * MS);
    for (i = 0; i < 3; i++)
        held_by("another", i, i);
    delete_on(0, 2);
    fake_pass(&client, 100 * MS);
    is_int((int)fake_count(0, 'S'), 1, "r07: no node may vote: no retry before the pause is over");
}

static void r07_retries_at_random_moments(void)
{
    static struct redlock_lock draws;
    uint64_t at[20];
    unsigned n, i, j, same = 0;

    for (n = 0; n < 20; n++) {
        begin_waiting(3);
        redlock_lock_init(&draws, "x", 1, 999);
        for (i = 0; i < n; i++) {
            redlock_acquire(&client, &draws, 0);
            redlock_release(&client, &draws, 100);
        }
        fake_logged = 0;
        delete_on(0, 2);
        at[n] = fake_now_us;
        fake_pass(&client, 10 * MS);
        at[n] = fake_logged > 0 ? fake_log[0].at_us - at[n] : 0;
        for (j = 0; j < n; j++)
            same += at[j] / 100 == at[n] / 100;
    }
    ok(same < 60, "r07: notified waiters retry at random moments (%u pairs of 190 at the same)",
       same);
}

/* A spurious notification: the key is deleted on all nodes, and another client has it again at once.
   Microseconds until the next attempt, -1: none within 700 ms. */
static long notify_spuriously(void)
{
    uint64_t start = fake_now_us;
    int i;

    fake_logged = 0;
    for (i = 0; i < 3; i++) {
        fake_delete(i, "k");
        held_by("another", i, i);
    }
    fake_pass(&client, 700 * MS); /* above 512 round trips */
    return fake_logged > 0 ? (long)(fake_log[0].at_us - start) : -1;
}

/* A waiter that was often notified in vain skips some notifications, to avoid a thundering herd. */
static void r07_backs_off_after_spurious_notifications(void)
{
    unsigned i, soon = 0, later = 0;
    long first;

    begin_waiting(3);
    first = notify_spuriously();
    ok(first >= 0 && first < 2 * (long)MS, "r07: first notification: retried at once (%ld us)",
       first);
    for (i = 0; i < 5; i++)
        notify_spuriously();
    for (i = 0; i < 60; i++) {
        long us = notify_spuriously();
        soon += us >= 0 && us < 2 * (long)MS;
        later += us >= 2 * (long)MS;
    }
    ok(soon >= 8 && later >= 20 && soon + later == 60,
       "r07: after many spurious ones: %u retries at once, %u later, of 60", soon, later);
}

static void r07_without_notifications(void)
{
    unsigned i;

    begin_with_defaults(3);
    for (i = 0; i < 3; i++)
        fake_nodes[i].server.no_pushes = 1;
    held_by("other", 0, 2);
    redlock_acquire_start(&client, &lock, 60000);
    fake_pass(&client, 10 * MS);
    delete_on(0, 2);
    fake_pass(&client, 30 * MS);
    is_int(lock.status, REDLOCK_PENDING, "r07: no permission for CLIENT TRACKING: not notified");
    fake_pass(&client, 200 * MS);
    is_int(lock.status, REDLOCK_OK, "r07: acquired after the pause");
}

static void r07_left_out(void)
{
    begin_waiting(3);
    delete_on(0, 2);
    fake_pass(&client, 100 * MS);
    is_int(lock.status, REDLOCK_PENDING, "r07 left out: a waiter is not notified");
    fake_pass(&client, 10000 * MS);
    is_int(lock.status, REDLOCK_OK, "r07 left out: acquired after the pause");
    is_int((int)(fake_count(-1, 'T') + fake_count(-1, 'C')), 0,
           "r07 left out: no server is asked to track keys");
}

/* Deletes "k" on all nodes: is the waiter notified? */
static int is_notified(void)
{
    delete_on(0, 2);
    fake_pass(&client, 10 * MS);
    return lock.status == REDLOCK_OK;
}

/* Tracking costs memory on the servers, so only refused attempts ask for it. */
static void r07_only_refused_attempts_ask_for_tracking(void)
{
    static const struct {
        const char *reply;
        int notified, asked_again;
    } cases[] = {
        {NULL, 1, 1},
        {"-NOPERM this user has no permissions to run the 'client|caching' command\r\n", 0, 0},
        {"-BUSY Redis is busy running a script.\r\n", 0, 1},
    };
    unsigned i, n;

    begin_with_defaults(3);
    acquire(0);
    fake_pass(&client, 10 * MS);
    extend();
    release(100);
    is_int((int)fake_count(-1, 'C'), 0, "r07: a granted attempt does not ask for tracking");
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin_with_defaults(3);
        warm_up();
        for (n = 0; n < 3; n++)
            fake_nodes[n].server.caching = cases[i].reply;
        held_by("other", 0, 2);
        redlock_acquire_start(&client, &lock, 60000);
        fake_pass(&client, 10 * MS);
        is_int((int)fake_count(-1, 'C'), 3, "r07: a refused attempt asks for tracking");
        is_int(is_notified(), cases[i].notified, "r07: notified or not after the reply %.7s",
               cases[i].reply != NULL ? cases[i].reply : "+OK");
        fake_pass(&client, 2000 * MS);
        is_int(lock.status, REDLOCK_OK, "r07: acquired after a pause at the latest");
        redlock_next_completed(&client);
        release(100);
        held_by("other", 0, 2);
        fake_logged = 0;
        acquire(0);
        fake_pass(&client, 10 * MS);
        is_int((int)fake_count(-1, 'C'), cases[i].asked_again ? 3 : 0,
               "r07: tracking is asked for again unless it is denied");
        is_int((int)fake_count(-1, 'D'), 3, "r07: rolled back");
    }
    begin_with_defaults(3);
    warm_up();
    fake_nodes[0].server.caching = ":1\r\n";
    held_by("other", 0, 2);
    is_int(acquire(0), REDLOCK_HELD, "r07: refused; a bad reply to CLIENT CACHING changes no vote");
    fake_pass(&client, 10 * MS);
    ok(has_error(0, "unexpected reply"), "r05: an unexpected reply disconnects: %s",
       nodes[0].error);
}

static void r07_other_keys(void)
{
    char key[64];
    int i;

    begin_waiting(3);
    for (i = 0; i < 3; i++) {
        fake_nodes[i].session.tracked[1].bytes[0] = 'l'; /* as if the session had read "l" */
        fake_nodes[i].session.tracked[1].size = 1;
        fake_put(i, "l", "x", 60000);
        fake_delete(i, "l");
    }
    fake_pass(&client, 100 * MS);
    is_int((int)fake_count(0, 'S'), 1, "r07: no notification by another key");
    memset(key, 'k', 63); /* longer than the part of a string that the decoder stores */
    key[63] = '\0';
    memset(&settings, 0, sizeof settings);
    settings.retry_delay_ms = settings.retry_delay_max_ms = 5000;
    begin(3);
    for (i = 0; i < 3; i++)
        fake_put(i, key, "other", 60000);
    redlock_lock_init(&lock, key, 63, 10000);
    redlock_acquire_start(&client, &lock, 60000);
    fake_pass(&client, 100 * MS);
    for (i = 0; i < 3; i++)
        fake_delete(i, key);
    fake_pass(&client, 10 * MS);
    is_int(lock.status, REDLOCK_OK, "r07: notified by a long key");
}

/* Five waiters for one lock in one client: one of them is notified, the next one after its release. */
static void r07_one_waiter_is_notified(void)
{
    struct redlock_lock more[5];
    unsigned i, held, turn, wrong = 0;

    begin_waiting(3);
    redlock_cancel(&client, &lock);
    for (i = 0; i < 5; i++) {
        redlock_lock_init(&more[i], "k", 1, 10000);
        redlock_acquire_start(&client, &more[i], 60000);
    }
    fake_pass(&client, 100 * MS);
    fake_logged = 0;
    delete_on(0, 2);
    for (turn = 0; turn < 5; turn++) {
        fake_pass(&client, 10 * MS);
        while (redlock_next_completed(&client) != NULL)
            continue;
        for (i = 0, held = 0; i < 5; i++)
            if (redlock_remaining_ms(&client, &more[i]) > 0) {
                held++;
                redlock_release_start(&client, &more[i], 100);
            }
        wrong += held != 1;
    }
    is_int((int)wrong, 0,
           "r07: five waiters of one client acquire one after the other within 10 ms");
    is_int((int)fake_count(0, 'S'), 5, "r07: with one attempt each");
}

/* The waiter that was notified is cancelled before it asks: then the other one retries. */
static void r07_a_cancelled_waiter_passes_on(void)
{
    struct redlock_lock second;
    unsigned steps;

    begin_waiting(3);
    redlock_lock_init(&second, "k", 1, 10000);
    redlock_acquire_start(&client, &second, 60000);
    fake_pass(&client, 100 * MS);
    fake_logged = 0;
    delete_on(0, 2);
    for (steps = 0; steps < 1000 && !lock.priv.op.notified && !second.priv.op.notified; steps++)
        fake_pass(&client, 10);
    ok(lock.priv.op.notified != second.priv.op.notified, "r07: one of two waiters is notified");
    is_int((int)fake_count(0, 'S'), 0, "r07: it has not asked yet");
    redlock_cancel(&client, lock.priv.op.notified ? &lock : &second);
    fake_pass(&client, 20 * MS);
    ok(lock.status == REDLOCK_OK || second.status == REDLOCK_OK, "r07: the other one retries");
}

/* ---- R8, R10 -------------------------------------------------------------------------------- */

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
        is_int(lock.members, breaks == 0 || (breaks == 2 && REDLOCK_RESTART_GUARD) ? 7 : 3,
               "r09: %s",
               breaks == 0   ? "same connection: the third is a member"
               : breaks == 1 ? "its connection broke: the third is not a member"
                             : "another process: a member, if the build reads run_id");
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

/* ---- R9 ------------------------------------------------------------------------------------- */

/* Node i loses its keys, and its connection breaks. */
static void lose_keys(int i)
{
    fake_nodes[i].server.used = 0;
    fake_break(i);
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

/* ---- R10: automatic extension --------------------------------------------------------------- */

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
    fake_nodes[2].drops_set_reply = 1;
    acquire(0);
    fake_pass(&client, 5 * MS);
    fake_break(2); /* the SET may run once more, so nothing is repaired there. R8b */
    fake_delete(2, "k");
    is_int(extend(), REDLOCK_OK, "r09: extended by two of three");
    fake_pass(&client, 20 * MS);
    is_int((int)lock.refused, 4, "r09: the third has not the key, and is not repaired");
    fake_nodes[2].hung = 1;
    fake_delete(0, "k");
    fake_delete(1, "k");
    is_int(extend(), REDLOCK_LOST, "r09: lost, before the third replies again");
    is_int((int)lock.refused, 3, "r09: `refused` names those that have replied to this extension");

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

/* ---- R12 to R14 ----------------------------------------------------------------------------- */

static void r12_handshake(void)
{
    unsigned i, commands = 0;

    begin_with_defaults(3);
    for (i = 0; i < 3; i++) {
        nodes[i].password = fake_nodes[i].server.password = "secret\r\n$1";
        nodes[i].database = 7;
    }
    fake_nodes[1].server.old = 1;
    fake_nodes[1].delay_us = 2 * MS;
    is_int(acquire(0), REDLOCK_OK, "r12: acquired after HELLO, AUTH and SELECT");
    fake_pass(&client, 20 * MS);
    is_int(extend(), REDLOCK_OK, "r12: extended");
    ok(fake_find(1, "k", 1) != NULL, "r12: also on the node that does not know HELLO");
    fake_pass(&client, 20 * MS);
    is_int(fake_nodes[1].connects, 1, "r12: on its first connection");
    is_int(fake_nodes[0].session.database + fake_nodes[1].session.database +
               fake_nodes[2].session.database,
           21, "r12: all in database 7");
    for (i = 0; i < fake_logged && fake_log[i].kind != 'S'; i++)
        commands += fake_log[i].node == 0 && strchr("HLI", fake_log[i].kind) != NULL;
    is_int((int)commands, 2 + REDLOCK_RESTART_GUARD,
           "r12: the whole handshake is sent before a SET");
    is_int(fake_nodes[1].session.resp3, 0, "r12: RESP2 with the server without HELLO");
    release(100);
    held_by("other", 0, 2);
    acquire(0);
    ok(fake_count(1, 'C') == 0 && (!REDLOCK_NOTIFICATION || fake_count(0, 'C') > 0),
       "r12: no notifications over RESP2");
    fake_nodes[1].server.old = 0; /* it is upgraded */
    fake_break(1);
    acquire(0);
    fake_pass(&client, 20 * MS);
    acquire(0);
    is_int(fake_nodes[1].connects, 2, "r12: its second connection");
    is_int(fake_nodes[1].session.resp3, 1, "r12: RESP3 when it has HELLO");
    ok(!REDLOCK_NOTIFICATION || fake_count(1, 'C') > 0, "r12: with notifications");
}

/* Servers, proxies and hosted services refuse HELLO in many words. Each connection then uses AUTH and RESP2. */
static void r12_hello_refused(const char *hello)
{
    char beginning[20] = "";
    unsigned i, secret;
    uint64_t start;

    for (secret = 0; secret < 2; secret++) {
        begin_with_defaults(3);
        start = fake_now_us;
        for (i = 0; i < 3; i++) {
            nodes[i].database = 7;
            nodes[i].user = secret ? "me" : NULL;
            nodes[i].password = secret ? "hunter2" : NULL;
            fake_nodes[i].server.password = nodes[i].password;
            fake_nodes[i].server.hello = hello;
        }
        is_int(acquire(0), REDLOCK_OK, "r12: %s password, %s", secret ? "a" : "no", hello);
        fake_pass(&client, 20 * MS);
        ok(lock.members == 7 && nodes[0].error[0] == '\0' && fake_nodes[0].connects == 1,
           "r12: all nodes have the lock, on one connection each, without an error: %s",
           nodes[0].error);
        is_int(fake_nodes[0].session.database, 7, "r12: in the database");
        is_int((int)fake_count(-1, 'A'), secret ? 3 : 0,
               "r12: AUTH is sent if there is a password");
        is_int(release(100), REDLOCK_OK, "r12: released");
        fake_break(0);
        fake_pass(&client, MS); /* the client notices */
        redlock_acquire_start(&client, &lock, 0);
        do
            fake_pass(&client, MS / 10);
        while (nodes[0].state != REDLOCK_NODE_READY && since(start) < 1000 * MS);
        ok(nodes[0].state == REDLOCK_NODE_READY && nodes[0].error[0] == '\0',
           "r12: the handshake is over: %s", nodes[0].error);
        redlock_cancel(&client, &lock);
        fake_pass(&client, 20 * MS);
        redlock_next_completed(&client);
    }
    nodes[0].password = nodes[1].password = "wrong-secret";
    fake_break(0);
    fake_break(1);
    fake_pass(&client, 1 * MS);
    is_int(acquire(60000), REDLOCK_DENIED, "r12: a wrong password is a denial");
    memcpy(beginning, hello + 1, sizeof beginning - 1);
    ok(has_error(0, ", AUTH: WRONGPASS") && (RESP_TEXT_MAX < 63 || has_error(0, beginning)) &&
           strstr(nodes[0].error, "secret") == NULL,
       "r12: the error has what HELLO and AUTH replied: %s", nodes[0].error);
}

static void r12_hello_refused_in_any_words(void)
{
    static const char *const hellos[] = {
        "-ERR unknown command `HELLO`, with args beginning with: `3`\r\n",
        "-ERR unsupported command 'hello'\r\n",
        "-ERR unknown or unsupported command 'HELLO'\r\n",
        "-ERR HELLO is not supported for your account\r\n",
        "-NOPERM this user has no permissions to run the 'hello' command or its subcommand\r\n",
        "-NOPROTO unsupported protocol version\r\n",
        "-ERR Protocol version is not an integer or out of range\r\n",
    };
    unsigned i;

    for (i = 0; i < sizeof hellos / sizeof *hellos; i++)
        r12_hello_refused(hellos[i]);
    begin_with_defaults(1);
    nodes[0].password = fake_nodes[0].server.password = "hunter2";
    fake_nodes[0].server.hello = "-NOAUTH Authentication required.\r\n";
    is_int(acquire(0), REDLOCK_OK, "r12: a proxy that wants AUTH before HELLO");
    begin_with_defaults(1);
    fake_nodes[0].server.hello = "-NOAUTH HELLO must be called with the client authenticated\r\n";
    is_int(acquire(60000), REDLOCK_DENIED, "r12: NOAUTH, and there is no password");
    ok(has_error(0, "replied: NOAUTH") && fake_count(0, 'S') == 0, "r12: %s", nodes[0].error);
    begin_with_defaults(1);
    fake_nodes[0].server.hello = "-BUSY Redis is busy running a script.\r\n";
    is_int(acquire(0), REDLOCK_UNREACHABLE, "r12: a temporary error");
    fake_nodes[0].server.hello = NULL;
    fake_pass(&client, 200 * MS);
    is_int(acquire(0), REDLOCK_OK, "r12: acquired after it");
    is_int(fake_nodes[0].session.resp3, 1, "r12: with RESP3");
}

/* HELLO with a password logs in to a server without one, where AUTH is an error. A server before Redis 6 has another
   error for a wrong password. */
static void r12_auth_counts_where_hello_does_not(void)
{
    begin_with_defaults(1);
    nodes[0].password = "hunter2";
    fake_nodes[0].server.auth = "-ERR AUTH <password> called without any password configured\r\n";
    is_int(acquire(0), REDLOCK_OK, "r12: a password, and a server that needs none");
    ok(nodes[0].error[0] == '\0', "r12: no error: %s", nodes[0].error);
    begin_with_defaults(1);
    nodes[0].password = "hunter2";
    fake_nodes[0].server.old = 1;
    fake_nodes[0].server.auth = "-ERR invalid password\r\n";
    is_int(acquire(60000), REDLOCK_DENIED, "r12: a wrong password before Redis 6");
    ok(has_error(0, "ERR unknown command") && has_error(0, "AUTH: ERR invalid password"),
       "r12: what HELLO and AUTH replied: %s", nodes[0].error);
    begin_with_defaults(1);
    nodes[0].password = "hunter2";
    fake_nodes[0].server.old = 1;
    fake_nodes[0].server.auth = "-LOADING Redis is loading the dataset in memory\r\n";
    is_int(acquire(0), REDLOCK_UNREACHABLE, "r12: a temporary error to AUTH is no denial");
}

/* Without RESP3 the handshake is AUTH, if there is a password, and SELECT, without HELLO. SELECT is always
   sent, because a hung server accepts connections, too (R5). Replies are RESP2. A replica is detected when it
   refuses a write. */
static void r12_left_out(void)
{
    static const char expected[][4] = {"LI", "ALI", "ALI"}; /* without 'I', INFO, in some builds */
    unsigned n, i, seen, wrong;

    begin_with_defaults(3);
    for (n = 1; n < 3; n++) {
        nodes[n].database = 7;
        nodes[n].password = fake_nodes[n].server.password = "secret\r\n$1";
    }
    nodes[2].user = "somebody";
    is_int(acquire(0), REDLOCK_OK, "r12 left out: acquired after AUTH and SELECT");
    fake_pass(&client, 20 * MS);
    is_int(lock.members, 7, "r12 left out: on all nodes");
    for (n = 0; n < 3; n++) {
        seen = wrong = 0;
        for (i = 0; i < fake_logged && fake_log[i].kind != 'S'; i++)
            if (fake_log[i].node == (int)n)
                wrong += fake_log[i].kind != expected[n][seen++];
        ok(wrong == 0 && seen == strlen(expected[n]) - !REDLOCK_RESTART_GUARD,
           "r12 left out: the handshake of node %u", n);
        is_int(fake_nodes[n].session.database, n > 0 ? 7 : 0, "r12 left out: the database");
        is_int(fake_nodes[n].connects, 1, "r12 left out: one connection");
        is_int(fake_nodes[n].session.resp3, 0, "r12 left out: the replies are RESP2");
    }
    is_int(release(100), REDLOCK_OK, "r12 left out: released");
    held_by("other", 0, 2);
    is_int(acquire(0), REDLOCK_HELD, "r12 left out: a RESP2 reply refuses it");
    fake_nodes[0].reply = fake_nodes[1].reply =
        "-READONLY You can't write against a read only replica.\r\n";
    is_int(acquire(0), REDLOCK_DENIED, "r12 left out: a replica denies it");
}

/* HELLO fills the buffer: the rest of the handshake follows it, before any command of a lock. */
static void r12_a_handshake_in_pieces(void)
{
    static char secret[REDLOCK_SEND_MAX];
    unsigned i, room;

    for (room = REDLOCK_SEND_MAX - 1; room > 0; room--) { /* the longest password that fits */
        memset(secret, 'x', room);
        secret[room] = '\0';
        begin_with_defaults(3);
        for (i = 0; i < 3; i++)
            nodes[i].password = fake_nodes[i].server.password = secret;
        if (redlock_init(&client, fake_io(), nodes, 3, NULL) == REDLOCK_OK)
            break;
    }
    is_int(acquire(0), REDLOCK_OK, "r12: with a password of %u bytes", room);
    for (i = 0; i < fake_logged && fake_log[i].kind != 'S'; i++)
        continue;
    ok(fake_count(-1, 'I') == (REDLOCK_RESTART_GUARD ? 3 : 0) &&
           fake_count(-1, REDLOCK_NOTIFICATION ? 'H' : 'A') == 3 &&
           i > (REDLOCK_RESTART_GUARD ? 5 : 2),
       "r12: the whole handshake is sent before the SETs");
    is_int(release(100), REDLOCK_OK, "r12: released");
}

/* One node grants the lock, one refuses it, and the third is being connected: when that fails, the outcome is known. */
static void r05_a_connect_that_fails_ends_the_wait(void)
{
    memset(&settings, 0, sizeof settings);
    settings.retries = REDLOCK_NONE;
    begin(3);
    warm_up();
    held_by("other", 1, 1);
    fake_nodes[2].connect_us = 1000 * MS;
    fake_break(2);
    fake_pass(&client, 1 * MS);
    redlock_acquire_start(&client, &lock, 0);
    fake_pass(&client, 120 * MS);
    ok(lock.status == REDLOCK_PENDING && fake_count(-1, 'S') > 0, "r05: asked, and undecided");
    fake_break(2);
    fake_pass(&client, 10 * MS);
    ok(lock.status != REDLOCK_PENDING, "r05: the connect has failed: %s",
       redlock_strerror(lock.status));
    redlock_next_completed(&client);
}

/* A password became longer than the send buffer, although it must not change after redlock_init: no lock, but no endless loop. */
static void r12_a_password_that_grew(void)
{
    static char password[REDLOCK_SEND_MAX + 1];

    memset(password, 0, sizeof password);
    password[0] = 'p';
    begin_with_defaults(1);
    nodes[0].password = password;
    memset(password, 'p', sizeof password - 1);
    is_int(acquire(0), REDLOCK_UNREACHABLE, "r12: a password that does not fit any more");
    ok(has_error(0, "no reply"), "r12: %s", nodes[0].error);
}

static void r12_wrong_password(void)
{
    unsigned i;

    begin_with_defaults(3);
    for (i = 0; i < 3; i++)
        fake_nodes[i].server.password = "right";
    nodes[0].password = "wrong-secret";
    fake_nodes[2].server.old = 1;
    nodes[2].user = "somebody"; /* the AUTH of this server has user and password */
    nodes[2].password = "wrong-secret";
    is_int(acquire(60000), REDLOCK_DENIED,
           "r12: wrong or missing passwords: denied, without a wait");
    fake_pass(&client, 10 * MS);
    acquire(0);
    ok(has_error(0, "WRONGPASS"), "r12: %s", nodes[0].error);
    ok(has_error(1, "NOAUTH"), "r12: %s", nodes[1].error);
    ok(has_error(2, "WRONGPASS"), "r12: a server without HELLO: %s", nodes[2].error);
    for (i = 0; i < 3; i++)
        ok(strstr(nodes[i].error, "secret") == NULL,
           "r12: the error does not contain the password");
    is_int((int)fake_count(-1, 'S'), 0, "r12: no SET is sent");
    begin_with_defaults(1);
    fake_nodes[0].server.password = "right";
    nodes[0].password = "WRONG"; /* where the error of the node is cut off */
    is_int(acquire(0), REDLOCK_DENIED, "r12: WRONGPASS means denied, whatever the password is");
}

#define LONG_NAME "a-user-whose-name-leaves-no-room"
#define IN_SCRIPT "-ERR ACL failure in script: User " LONG_NAME " has no permissions to run the "

/* Servers write the missing command after the name of the user, or not at all. Where the text is cut off
   before it, the error of the node lists the permissions that the operation needs. The script error of Redis
   6 is cut off before its cause. */
static void r12_a_denial_names_the_permissions(void)
{
    static const struct {
        char operation; /* 'a'cquire, 'f'enced, 'm'ulti-key, 'e'xtend, 'r'elease, 'd'urable */
        const char *reply, *error;
    } cases[] = {
        {'a', "-NOPERM User " LONG_NAME " has no permissions to run the 'set' command\r\n",
         "needs +set"},
        {'a', "-NOPERM User me has no permissions to run the 'set' command\r\n",
         "replied: NOPERM User me has no permissions to run the 'set'"},
        {'a', "-NOPERM No permissions to access a key\r\n", " ~KEY: NOPERM No permissions to ac"},
        {'m', "-CROSSSLOT Keys in request don't hash to the same slot\r\n",
         "needs hash tags, {KEY}: CROSSSLOT Keys in request don't hash to the same slot"},
        {'a', "-BUSY Redis is busy running a script. You can only call\r\n", "replied: BUSY"},
        {'f', "-OOM command not allowed when used memory > 'max'. script: 1\r\n", "replied: OOM"},
        {'f', "-ERR The user executing the script can't run this command or subcommand\r\n",
         "needs +exists "},
        {'f', "-ERR Error running script (call to f_6016c884387da1faec6136a61618e4d02eb36314)\r\n",
         "needs +exists "},
        {'f', IN_SCRIPT "'exists' command script: 1\r\n", "needs +exists "},
        {'m', IN_SCRIPT "'exists' command script: 1\r\n", "needs +exists "},
        {'e', IN_SCRIPT "'pttl' command script: 1\r\n", "needs +eval +get +set +pexpire +pttl "},
        {'r', IN_SCRIPT "'del' command script: 1\r\n", "needs +del +eval +get "},
        {'r', "-@user_script: 1: The user executing the script can't run this command\r\n",
         "needs +del +eval +get "},
    };
    static const struct redlock_key other = {"other", 5};
    unsigned i;

    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        char operation = cases[i].operation;

        if ((operation == 'f' && !REDLOCK_FENCING) || (operation == 'm' && REDLOCK_MINIMAL) ||
            RESP_TEXT_MAX < 63)
            continue;
        memset(&settings, 0, sizeof settings);
        begin(3);
        warm_up();
        set_use_fencing(&lock, operation == 'f');
        set_extra_keys(&lock, &other, operation == 'm');
        if (operation == 'e' || operation == 'r')
            acquire(0);
        fake_nodes[0].reply = cases[i].reply;
        if (operation == 'e')
            extend();
        else if (operation == 'r')
            release(1000);
        else
            acquire(0);
        fake_pass(&client, 20 * MS);
        ok(has_error(0, cases[i].error), "r12: %c: \"%s\" in: %s", operation, cases[i].error,
           nodes[0].error);
    }
    begin_with_defaults(3); /* 1 of 3 nodes denies, so the lock is held */
    fake_nodes[0].reply = "-NOPERM x\r\n";
    acquire(0);
    release(1000);
    fake_nodes[0].reply = "-X\r\n";
    fake_nodes[1].reply = "-\x7f\r\n";
    acquire(0);
    fake_pass(&client, 20 * MS);
    ok(has_error(1, "replied: ?"), "r12: a control character is replaced: %s", nodes[1].error);
    ok(has_error(0, "replied: X"), "r12: a shorter error has no part of the one before: %s",
       nodes[0].error);
}

/* Its later connections have a handshake, too, although HELLO is left out: a hung server accepts connections. */
static void r12_an_old_server_without_a_password(uint32_t database)
{
    uint64_t start;

    begin_with_defaults(1);
    fake_nodes[0].server.old = 1;
    nodes[0].database = database;
    start = fake_now_us;
    is_int(acquire(0), REDLOCK_OK, "r12: a server without HELLO, no password");
    ok(since(start) < 10 * MS, "r12: at once, after %ld us", since(start));
    is_int(fake_nodes[0].connects, 1, "r12: one connection is enough");
    release(100);
    fake_break(0);
    fake_pass(&client, 20 * MS);
    start = fake_now_us;
    is_int(acquire(0), REDLOCK_OK, "r12: acquired on the next connection");
    ok(since(start) < 10 * MS, "r12: at once, after %ld us", since(start));
    release(100);
    fake_break(0);
    fake_nodes[0].hung = 1;
    redlock_acquire_start(&client, &lock, 0);
    fake_pass(&client, 20 * MS);
    is_int((int)nodes[0].state, REDLOCK_NODE_HANDSHAKE,
           "r12: a connection to a hung server is not ready");
}

static void r12_not_a_node(void)
{
    static const struct {
        const char *hello, *error;
    } cases[] = {
        {"%2\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$7\r\nreplica\r\n", "replica"},
        {"*4\r\n$4\r\nrole\r\n$5\r\nslave\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n", "replica"},
        {"%1\r\n$4\r\nmode\r\n$8\r\nsentinel\r\n", "sentinel"},
    };
    unsigned i;

    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin_with_defaults(1);
        fake_nodes[0].server.hello = cases[i].hello;
        is_int(acquire(0), REDLOCK_DENIED, "r12: a server that cannot be a node");
        ok(has_error(0, cases[i].error), "r12: %s", nodes[0].error);
    }
    begin_with_defaults(1); /* the server replies, and closes the connection */
    fake_nodes[0].closes_at_hello = 1;
    fake_nodes[0].server.hello = "-DENIED Redis is running in protected mode\r\n";
    is_int(acquire(60000), REDLOCK_DENIED, "r12: protected mode");
    ok(has_error(0, "replied: DENIED"), "r12: %s", nodes[0].error);
    begin_with_defaults(1);
    fake_nodes[0].closes_at_hello = 1;
    fake_nodes[0].server.hello = "-ERR max number of clients reached\r\n";
    is_int(acquire(0), REDLOCK_UNREACHABLE, "r12: too many clients are temporary");
    ok(has_error(0, "replied: ERR max number"), "r12: %s", nodes[0].error);
    begin_with_defaults(1); /* a TLS port; a proxy that does not know HELLO */
    fake_nodes[0].closes_at_hello = 1;
    fake_nodes[0].server.hello = "";
    is_int(acquire(0), REDLOCK_UNREACHABLE, "r12: the connection is closed at HELLO");
    ok(has_error(0, "closed by the server during the handshake; does this port expect TLS?"),
       "r12: %s", nodes[0].error);
    begin_with_defaults(1); /* names and values of a nested reply are ignored */
    fake_nodes[0].server.hello = "%2\r\n$7\r\nmodules\r\n*2\r\n$4\r\nmode\r\n$8\r\nsentinel\r\n"
                                 "$4\r\nrole\r\n$6\r\nmaster\r\n";
    is_int(acquire(0), REDLOCK_OK, "r12: the name of a module does not matter");
    begin_with_defaults(1);
    nodes[0].database = 1;
    fake_nodes[0].server.hello =
        "%1\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n:1\r\n"; /* :1 to SELECT */
    is_int(acquire(0), REDLOCK_UNREACHABLE, "r12: a number is no reply to SELECT");
    ok(has_error(0, "unexpected reply"), "r12: %s", nodes[0].error);
    begin_with_defaults(1);
    fake_nodes[0].server.hello = "-LOADING Redis is loading the dataset in memory\r\n";
    is_int(acquire(0), REDLOCK_UNREACHABLE, "r12: LOADING is temporary");
    fake_nodes[0].server.hello = NULL;
    fake_pass(&client, 200 * MS);
    is_int(acquire(0), REDLOCK_OK, "r12: acquired after it");
}

static void r12_invalid_nodes_are_refused(void)
{
    static char secret[REDLOCK_SEND_MAX];

    begin_with_defaults(3);
    memset(secret, 'x', sizeof secret - 1);
    nodes[1].password = secret;
    is_int(redlock_init(&client, fake_io(), nodes, 3, NULL), REDLOCK_INVALID_ARGUMENT,
           "r12: a password that is too long");
    ok(has_error(1, "exceed"), "r12: %s", nodes[1].error);
    nodes[1].password = NULL;
    nodes[2].user = "me";
    is_int(redlock_init(&client, fake_io(), nodes, 3, NULL), REDLOCK_INVALID_ARGUMENT,
           "r12: a user without password");
    ok(has_error(2, "without password"), "r12: %s", nodes[2].error);
}

static void r13_one_server_one_vote(void)
{
    begin_with_defaults(3);
    fake_nodes[0].server.run = fake_nodes[1].server.run = fake_nodes[2].server.run = 12345;
    is_int(acquire(0), REDLOCK_DENIED, "r13: one server listed three times: no quorum");
    ok(has_error(2, "same server"), "r13: the error says why: %s", nodes[2].error);
    begin_with_defaults(3);
    fake_nodes[0].server.run = fake_nodes[2].server.run = 12345;
    is_int(acquire(0), REDLOCK_OK,
           "r13: one server listed twice, and another one: two votes of three");
    fake_pass(&client, 10 * MS);
    is_int((int)votes(lock.members), 2, "r13: two members");
    is_int(fake_nodes[2].connects, 1, "r05: no reconnect at once after a rejected handshake");
    begin_with_defaults(3);
    fake_nodes[0].server.run = fake_nodes[2].server.run = 12345;
    fake_nodes[0].server.no_info = fake_nodes[2].server.no_info = 1;
    acquire(0);
    fake_pass(&client, 10 * MS);
    is_int((int)votes(lock.members), 3, "r13: without permission for INFO it is not detected");
}

/* Without the restart guard the client does not read the run_id: a server that is listed twice has two votes. */
static void r13_left_out(void)
{
    begin_with_defaults(3);
    fake_nodes[0].server.run = fake_nodes[1].server.run = fake_nodes[2].server.run = 12345;
    is_int(acquire(0), REDLOCK_OK, "r13 left out: one server listed three times");
    fake_pass(&client, 10 * MS);
    is_int((int)votes(lock.members), 3, "r13 left out: three votes");
    is_int((int)fake_count(-1, 'I'), 0, "r13 left out: no INFO is sent");
    lose_keys(0);
    fake_nodes[0].server.age_s = 0;
    is_int(release(100), REDLOCK_OK, "r14 left out: released");
    is_int(acquire(0), REDLOCK_OK, "r14 left out: acquired after a restart");
    fake_pass(&client, 200 * MS);
    ok(lock.granted & 1, "r14 left out: the restarted node votes at once");
    is_int((int)fake_count(-1, 'I'), 0, "r14 left out: no INFO is sent");
}

/* Three servers that have run for longer than the longest ttl. */
static void begin_with_old_servers(void)
{
    unsigned i;

    memset(&settings, 0, sizeof settings);
    settings.longest_ttl_ms = 20000;
    begin(3);
    for (i = 0; i < 3; i++)
        fake_nodes[i].server.age_s = 100;
}

/* After a crash all clients connect to the server at once, while it loads its file and cannot tell its run_id. */
static void r13_connected_while_it_loads(void)
{
    begin_with_defaults(3);
    fake_nodes[1].server.loading = 1;
    fake_nodes[1].reply = "-LOADING Redis is loading the dataset in memory\r\n";
    acquire(0);
    fake_pass(&client, 100 * MS);
    is_int((int)nodes[1].priv.run, 0, "r13: a server that loads its file cannot tell its run_id");
    release(100);
    fake_nodes[1].server.loading = 0;
    fake_nodes[1].reply = NULL;
    fake_pass(&client, 5000 * MS);
    acquire(0);
    fake_pass(&client, 100 * MS);
    ok(nodes[1].priv.run != 0, "r13: it is asked again, on another connection");
    is_int((int)votes(lock.members), 3, "r13: three members");
}

static void r14_a_restarted_server_does_not_vote(void)
{
    begin_with_old_servers();
    is_int(acquire(0), REDLOCK_OK, "r14: servers that have run for long vote");
    release(100);
    fake_pass(&client, 10 * MS);
    lose_keys(0);
    fake_nodes[0].server.age_s = 0;
    held_by("other", 1, 1);
    is_int(acquire(0), REDLOCK_CONTENDED, "r14: the vote of the restarted one does not count");
    ok(has_error(0, "not voting"), "r14: its error: %s", nodes[0].error);
    fake_pass(&client, 30 * MS);
    is_int((int)fake_keys_left(), 1, "r14: rolled back on the restarted one, too");
    fake_pass(&client, 22050 * MS);
    is_int(acquire(0), REDLOCK_CONTENDED, "r14: not before 20 s, drift and 2 s have passed");
    fake_pass(&client, 200 * MS);
    is_int(acquire(0), REDLOCK_OK, "r14: then it votes again");
    release(100);
    lock.ttl_ms = 20001;
    is_int(acquire(0), REDLOCK_INVALID_ARGUMENT, "r14: a ttl above longest_ttl_ms is refused");
}

/* An age of n seconds may be little more than n - 1 seconds. One second more, because the process before it
   may have ended later than this one started. */
static void r14_the_age_of_a_server(void)
{
    static const struct {
        int age_s, no_info, votes;
    } cases[] = {{22, 0, 0}, {23, 0, 1}, {-3598, 0, 0}, {1000, 1, 0}};
    unsigned i;

    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        memset(&settings, 0, sizeof settings);
        settings.longest_ttl_ms = 20000;
        begin(1);
        fake_nodes[0].server.age_s = cases[i].age_s;
        fake_nodes[0].server.no_info = cases[i].no_info;
        is_int(acquire(0) == REDLOCK_OK, cases[i].votes, "r14: age %d s%s", cases[i].age_s,
               cases[i].no_info ? ", but INFO is not permitted" : "");
        release(0);
        fake_pass(&client, 22300 * MS);
        is_int(acquire(0), REDLOCK_OK, "r14: votes after 22.3 s on one connection");
    }
}

static void r14_extensions_too(void)
{
    unsigned i;

    memset(&settings, 0, sizeof settings);
    settings.longest_ttl_ms = 10000;
    begin(3);
    for (i = 0; i < 3; i++)
        fake_nodes[i].server.age_s = 100;
    acquire(0);
    fake_pass(&client, 10 * MS);
    fake_nodes[0].server.age_s = 0;
    fake_break(0); /* it has its keys, but the client cannot know */
    fake_nodes[1].hung = 1;
    is_int(extend(), REDLOCK_UNREACHABLE, "r14: a restarted member has no vote");
    is_int((int)votes(lock.members), 3, "r14: the lock is not lost");
    fake_resume(1);
    for (i = 0; i < 2; i++) {
        is_int(extend(), REDLOCK_OK, "r14: extended by the two others");
        fake_pass(&client, 7000 * MS);
    }
    fake_nodes[1].hung = 1;
    is_int(extend(), REDLOCK_UNREACHABLE,
           "r14: it may vote again, but may have lost the key meanwhile");
    fake_resume(1);
    is_int(extend(), REDLOCK_OK, "r14: extended by the two others, it confirms as well");
    fake_pass(&client, 10 * MS);
    is_int(extend(), REDLOCK_OK, "r14: extended again");
    fake_nodes[1].hung = 1;
    is_int(extend(), REDLOCK_OK, "r14: it counts after a round that it has confirmed");
}

/* ---- R16 ------------------------------------------------------------------------------------ */

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
    ok(fake_find(0, "k:fence", 7)->until_us == UINT64_MAX, "r16 T47: the counter has no ttl");
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

/* A stall is never shorter than the time that a reply may take. */
static void r15_a_stall_is_longer_than_node_timeout(void)
{
    int i;

    memset(&settings, 0, sizeof settings);
    settings.node_timeout_ms = 2500;
    begin(3);
    warm_up();
    for (i = 0; i < 3; i++)
        fake_nodes[i].hung = 1;
    redlock_acquire_start(&client, &lock, 0);
    fake_pass(&client, 2400 * MS);
    is_int((int)lock.status, REDLOCK_PENDING, "r15: waits for node_timeout_ms");
    for (i = 0; i < 3; i++)
        fake_nodes[i].hung = 0;
    fake_pass(&client, 3000 * MS);
    is_int((int)fake_keys_left(), 0, "r15: rolled back");
}

/* A request takes its place until all its replies have come: whoever finds none in between is told when there is one.
   With two places, of which one is for rollbacks, no later reply tells it. */
static void r05_room_after_a_reply(void)
{
    struct redlock_lock many[REDLOCK_PIPELINE_MAX];
    unsigned i, held = 0;

    if (REDLOCK_PIPELINE_MAX > 26)
        return;
    begin_with_defaults(1);
    warm_up();
    fake_nodes[0].drip = 1;
    for (i = 0; i < REDLOCK_PIPELINE_MAX; i++) {
        redlock_lock_init(&many[i], &"abcdefghijklmnopqrstuvwxyz"[i], 1, 10000);
        redlock_acquire_start(&client, &many[i], 1000);
    }
    fake_pass(&client, 1100 * MS);
    for (i = 0; i < REDLOCK_PIPELINE_MAX; i++)
        held += many[i].status == REDLOCK_OK;
    is_int((int)held, REDLOCK_PIPELINE_MAX, "r05: one lock more than there is room for");
    redlock_deinit(&client);
}

/* ---- Multi-key locks, adoption, holder, fork ------------------------------------------------ */

static void multi_key_lock(void)
{
    static const struct redlock_key more[] = {{"l", 1}, {"m", 1}};
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
    if (!REDLOCK_NOTIFICATION)
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

/* The longest commands that the limits permit. The smallest REDLOCK_SEND_MAX that compiles has a few bytes more. */
static void longest_commands(void)
{
    static char key[REDLOCK_KEY_MAX + 1], label[REDLOCK_LABEL_MAX + 1], holder[9];
    struct redlock_key more;
    int kind, i;

    memset(key, 'k', REDLOCK_KEY_MAX);
    memset(label, 'l', sizeof label);
    for (kind = 0; kind < 3; kind++) {
        memset(&settings, 0, sizeof settings);
        begin(3);
        redlock_lock_init(&lock, key, REDLOCK_KEY_MAX, 0x7fffffff);
        set_label(&lock, label, REDLOCK_LABEL_MAX);
        if (kind == 1)
            set_use_fencing(&lock, 1);
        if (kind == 2 && !REDLOCK_MINIMAL && REDLOCK_KEY_MAX > 22) {
            lock.key_size = REDLOCK_KEY_MAX - 21;
            more.bytes = label;
            more.size = 11;
            set_extra_keys(&lock, &more, 1);
        }
        fake_wall_us = ((uint64_t)1 << 53) - 10;
        is_int(acquire(0), REDLOCK_OK, "longest commands: acquire");
        fake_pass(&client, 10 * MS);
        is_int(extend(), REDLOCK_OK, "longest commands: extend");
        is_int(release(100), REDLOCK_OK, "longest commands: release");
    }
    begin_with_defaults(3);
    redlock_lock_init(&lock, key, REDLOCK_KEY_MAX, 0x7fffffff);
    set_label(&lock, label, REDLOCK_LABEL_MAX);
    set_holder(&lock, holder, sizeof holder);
    for (i = 0; i < 3; i++)
        fake_put(i, key, "another", 60000);
    is_int(acquire(0), REDLOCK_HELD, "longest commands: refused");
    is_int(strcmp(holder, REDLOCK_TEXTS ? "another" : ""), 0,
           "longest commands: the holder is named");
}

/* An event loop reports a connect that has failed, or is complete, as readable only. */
static void r05_any_event_ends_a_connect(void)
{
    begin_with_defaults(1);
    fake_nodes[0].connect_us = 5 * MS;
    redlock_acquire_start(&client, &lock, 1000);
    redlock_tick(&client);
    is_int((int)nodes[0].state, REDLOCK_NODE_CONNECTING, "r05: connecting");
    fake_now_us += 5 * MS;
    redlock_handle_events(&client, 0, REDLOCK_READABLE);
    is_int((int)nodes[0].state, REDLOCK_NODE_HANDSHAKE, "r05: connected");
}

/* No validity is left to an adopted lock, so nothing is too late for it: servers that close each connection are not
   connected again and again. */
static void r05_backoff_while_an_adopted_lock_is_extended(void)
{
    int i, most = 0;

    begin_with_defaults(3);
    for (i = 0; i < 3; i++)
        fake_nodes[i].first_bytes = "-ERR max number of clients reached\r\n";
    lock.members = 7;
    is_int((int)redlock_adopt(&client, &lock, 0), REDLOCK_OK, "r05: adopted");
    is_int((int)redlock_extend(&client, &lock), REDLOCK_UNREACHABLE, "r05: not extended");
    for (i = 0; i < 3; i++)
        most = fake_nodes[i].connects > most ? fake_nodes[i].connects : most;
    ok(most >= 1 && most <= 4, "r05: with pauses in between: %d connections", most);
    for (i = 0; i < 40; i++) {
        fake_pass(&client, 25 * MS);
        redlock_extend(&client, &lock);
    }
    ok(fake_nodes[0].connects <= 10, "r05: also when it is tried for a second: %d connections",
       fake_nodes[0].connects);
}

/* Two servers close each connection at once, and a third one hangs, until the validity ends. A pause would last
   longer than that, so the two are connected sooner, but not again and again. */
static void r05_backoff_before_the_validity_ends(void)
{
    int i, most = 0;

    begin_with_defaults(5);
    for (i = 0; i < 5; i++)
        fake_nodes[i].delay_us = fake_nodes[i].connect_us = 50;
    acquire(0);
    redlock_auto_extend_start(&client, &lock, 1000);
    fake_nodes[2].hung = 1;
    for (i = 3; i < 5; i++) {
        fake_nodes[i].first_bytes = "-ERR max number of clients reached\r\n";
        fake_nodes[i].connects = 0;
        fake_break(i);
    }
    fake_pass(&client, lock.valid_until_us - fake_now_us - 1);
    is_int(lock.status, REDLOCK_PENDING, "r05: not extended by two of five");
    for (i = 3; i < 5; i++)
        most = fake_nodes[i].connects > most ? fake_nodes[i].connects : most;
    ok(most >= 6 && most <= 600, "r05: with pauses in between: %d connections in 10 s", most);
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
    redlock_lock_init(&theirs, "k", 1, 10000);
    is_int((int)redlock_adopt(&second, &theirs, 5000), REDLOCK_INVALID_ARGUMENT,
           "adopt: no members");
    theirs.members = 0x0e;
    is_int((int)redlock_adopt(&second, &theirs, 5000), REDLOCK_INVALID_ARGUMENT,
           "adopt: a majority, but one of them is no node of this client");
    is_int((int)redlock_adopt(&second, NULL, 5000), REDLOCK_INVALID_ARGUMENT, "adopt: no lock");
    memcpy(theirs.token, mine.token, sizeof theirs.token);
    theirs.members = mine.members;
    set_holder(&theirs, holder, sizeof holder);
    is_int((int)redlock_adopt(&second, &theirs, 5000), REDLOCK_OK, "adopt: with token and members");
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

static void holder_of_the_lock(void)
{
    char holder[16] = "?", longer[64] = "?";

    begin_with_defaults(3);
    held_by("0123456789abcdef-host7", 0, 2);
    is_int(acquire(0), REDLOCK_HELD, "holder: refused");
    set_holder(&lock, holder, sizeof holder);
    is_int(acquire(0), REDLOCK_HELD, "holder: refused, with a buffer for the holder");
    ok(strcmp(holder, "0123456789abcde") == 0, "holder: cut off at the size of the buffer: %s",
       holder);
    set_holder(&lock, longer, sizeof longer);
    acquire(0);
    ok(strncmp(longer, "0123456789abcdef-host7", RESP_TEXT_MAX) == 0,
       "holder: the whole token, or RESP_TEXT_MAX bytes of it: %s", longer);
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
    is_int((int)fake_count(-1, 'P'), 0, "holder left out: no PTTL is sent");
}

/* Two clients have the two keys of a lock: the expiry is that of the one who is named. */
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

/* The holder with most nodes becomes known with the last reply. When it expires is not known yet: the time that is there is
   that of another client. */
static void expiry_of_another_holder(void)
{
    char holder[16];
    unsigned i;

    memset(&settings, 0, sizeof settings);
    settings.retries = REDLOCK_NONE;
    begin(3);
    warm_up();
    fake_put(0, "k", "for 60 s", 60000);
    fake_put(1, "k", "for 7 s", 7000);
    fake_put(2, "k", "for 60 s", 60000);
    set_holder(&lock, holder, sizeof holder);
    redlock_acquire_start(&client, &lock, 0);
    redlock_tick(&client);
    for (i = 0; i < 3; i++) /* the replies to the rollback come one after the other */
        fake_nodes[i].delay_us = (i + 1) * MS;
    fake_pass(&client, 4 * MS - 1);
    ok(strcmp(holder, "for 7 s") == 0 && lock.holder_left_ms <= 7000,
       "holder: one of two that have one node each: %s", holder);
    fake_nodes[2].drip = 1;
    fake_now_us++;
    for (i = 0; i < 3000 && lock.status == REDLOCK_PENDING; i++) {
        redlock_handle_events(&client, 2, REDLOCK_READABLE);
        redlock_tick(&client);
    }
    is_int(lock.status, REDLOCK_HELD, "holder: two of three name one");
    ok(strcmp(holder, "for 60 s") == 0, "holder: the one with most nodes: %s", holder);
    ok(lock.holder_left_ms == 0, "holder: its expiry is not known: %lu",
       (unsigned long)lock.holder_left_ms);
}

static void expiry_of_the_holder(void)
{
    char holder[16];
    uint32_t left_ms;
    int i;

    begin_with_defaults(5);
    for (i = 0; i < 5; i++)
        fake_put(i, "k", i == 1 ? "a leftover key" : "somebody", i == 1 ? 60000 : 7000);
    is_int(acquire(0), REDLOCK_HELD, "holder: refused");
    ok(lock.holder_left_ms == 0 && fake_count(-1, 'P') == 0,
       "holder: without a buffer no PTTL is sent");
    set_holder(&lock, holder, sizeof holder);
    for (i = 0; i < 5; i++) {
        fake_pass(&client, 20 * MS);
        fake_logged = 0;
        fake_nodes[i].delay_us = 5 * MS;
        ok(acquire(0) != REDLOCK_OK, "holder: refused, with a buffer: PTTL is sent");
        left_ms = lock.holder_left_ms;
        ok(left_ms <= 7000 && left_ms > 6500,
           "holder: the expiry of the client with most nodes: %lu ms", (unsigned long)left_ms);
        ok(strncmp(holder, "somebody", RESP_TEXT_MAX) == 0, "holder: the token of that client: %s",
           holder);
        ok(fake_count(-1, 'P') <= fake_count(-1, 'D'),
           "holder: at most one PTTL with each rollback");
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

/* A reply to PTTL that arrives after the operation must not write to the lock. */
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
    is_int((int)fake_count(2, 'P'), 1, "holder: PTTL was sent to the third node");
    ok(memcmp(&lock, &other_use, sizeof lock) == 0, "holder: its reply is dropped");
}

/* The operation ends after the third node has named the holder, but before its reply to PTTL. The bytes
   arrive one at a time, and the token has each length. */
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
        between += lock.refused == 7 && nodes[2].priv.count > 0;
        lock = other_use;
        fake_pass(&client, 100 * MS);
        touched += memcmp(&lock, &other_use, sizeof lock) != 0;
    }
    is_int((int)touched, 0, "holder: late replies do not write to the lock");
    ok(between > 0, "holder: a reply was late %u times", between);
}

/* Two nodes name two holders. The first one tells the expiry after the second one has told all: `holder` and
   `holder_left_ms` are of the same holder. */
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

/* An attempt is refused, and its replies arrive one byte at a time. The release begins after each number of bytes, also
   when the holder is named and the reply to PTTL is still due. */
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
        between += lock.status == REDLOCK_PENDING && nodes[2].priv.count > 0 &&
                   !(lock.priv.unanswered & 4);
        fake_nodes[1].drip = fake_nodes[2].drip = 0;
        redlock_release(&client, &lock, 0);
        lock = other_use;
        fake_pass(&client, 200 * MS);
        touched += memcmp(&lock, &other_use, sizeof lock) != 0;
    }
    is_int((int)touched, 0, "r11: no reply is due to a released lock");
    ok(between > 0, "r11: between the reply to the rollback and that to PTTL, %u times", between);
}

/* Waits 2 ms and reads all replies that have arrived. */
static void read_replies(void)
{
    unsigned i;

    fake_now_us += 2 * MS;
    for (i = 0; i < 3; i++)
        redlock_handle_events(&client, i, REDLOCK_READABLE);
}

/* Breaks the connection to node 0. Whether the next connection begins without a handshake. */
static int reconnects_without_handshake(void)
{
    unsigned i;

    fake_break(0);
    fake_logged = 0;
    fake_pass(&client, 3000 * MS);
    for (i = 0; i < fake_logged && fake_log[i].node != 0; i++)
        continue;
    return i < fake_logged && strchr("HAL", fake_log[i].kind) == NULL;
}

/* A rollback is queued. Then the client sends bytes to make room for the command after it, and finds that the
   connection is broken. Keys of all sizes, so that the buffer is full before each of the commands. */
static void r04_a_connection_breaks_while_room_is_made(void)
{
    static struct redlock_lock many[4];
    static char keys[4][REDLOCK_KEY_MAX];
    char holder[8];
    unsigned size, i, left = 0, without = 0;

    for (size = 2; size <= REDLOCK_KEY_MAX; size++) {
        begin_with_defaults(3);
        warm_up();
        for (i = 0; i < 4; i++) {
            memset(keys[i], 'a' + (int)i, size);
            keys[i][size - 1] = '\0';
            fake_put(1, keys[i], "somebody", 60000);
            fake_put(2, keys[i], "somebody", 60000);
            redlock_lock_init(&many[i], keys[i], size - 1, 10000);
            set_holder(&many[i], holder, sizeof holder);
            redlock_acquire_start(&client, &many[i], 0);
        }
        redlock_tick(&client); /* node 0 grants, the others do not */
        read_replies();
        without += (unsigned)reconnects_without_handshake();
        for (i = 0; i < 4; i++)
            left += fake_find(0, keys[i], size - 1) != NULL;
    }
    ok(left == 0, "r04: grants are rolled back on the next connection (%u are left)", left);
    is_int((int)without, 0, "r12: the next connection begins with a handshake");
}

#if !REDLOCK_MINIMAL
/* The same with the releases of two multi-key locks before the rollback. The connection has not tried the
   server's own release command yet, because this command knows one key only. With some sizes there is room
   for the rollback, but not for the command after it. */
static void r12_nothing_is_queued_on_a_broken_connection(void)
{
    static struct redlock_lock many[3];
    static char keys[3][REDLOCK_KEY_MAX];
    static const struct redlock_key more[] = {{"x", 1}, {"y", 1}, {"z", 1}};
    char holder[8];
    unsigned size, mine, i, without = 0;

    for (size = 1; size < REDLOCK_KEY_MAX - 14; size++)
        for (mine = 1; mine < REDLOCK_KEY_MAX; mine++) {
            begin_with_defaults(3);
            for (i = 0; i < 3; i++) {
                memset(keys[i], 'a' + (int)i, sizeof keys[i]);
                redlock_lock_init(&many[i], keys[i], i == 0 ? mine : size, 10000);
                set_extra_keys(&many[i], &more[i], i > 0);
                if (i > 0)
                    redlock_acquire(&client, &many[i], 0);
            }
            for (i = 1; i < 3; i++) {
                struct mini_word name, value = {"somebody", 8};
                name.bytes = keys[0];
                name.size = mine;
                mini_store(&fake_nodes[i].server, name, value, UINT64_MAX);
            }
            set_holder(&many[0], holder, sizeof holder);
            redlock_acquire_start(&client, &many[0], 0);
            redlock_tick(&client);
            for (i = 1; i < 3; i++)
                redlock_release_start(&client, &many[i], 1000);
            read_replies();
            without += (unsigned)reconnects_without_handshake();
        }
    is_int((int)without, 0, "r12: each connection begins with a handshake");
}
#endif

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

/* ---- R11, R15 ------------------------------------------------------------------------------- */

static void r11_release_goes_to_all_nodes(void)
{
    begin_with_defaults(5);
    warm_up();
    fake_nodes[4].hung = 1;
    acquire(0);
    is_int(release(1000), REDLOCK_OK, "r11: released while one hangs");
    fake_resume(4);
    is_int((int)fake_count(4, 'D'), 1, "r11 T6: it is also sent to the node that has not replied");
    is_int((int)fake_keys_left(), 0, "r11 T6: no key is left");
    ok(each_set_is_released(-1), "r05: after each SET");
}

/* Servers with a release command of their own. `native`: 1 DELIFEQ, 2 DELEX, 4 EVALSHA, or their sum. */
static void begin_native(unsigned count, int native)
{
    unsigned i;

    begin_with_defaults(count);
    for (i = 0; i < count; i++)
        fake_nodes[i].server.native = native;
}

static void acquire_and_release(unsigned times)
{
    for (; times > 0; times--) {
        is_int(acquire(0), REDLOCK_OK, "r11: acquired");
        is_int(release(1000), REDLOCK_OK, "r11: released");
        fake_pass(&client, 20 * MS);
    }
    is_int((int)fake_keys_left(), 0, "r11: no key is left");
}

static void r11_outcomes(int native)
{
    int i;

    begin_native(3, native);
    is_int(release(100), REDLOCK_EXPIRED, "r11: never acquired");
    acquire_and_release(3); /* the client learns which commands there are */
    acquire(0);
    is_int(release(100), REDLOCK_OK, "r11: released");
    is_int(release(100), REDLOCK_EXPIRED, "r11: released twice");
    is_int((int)redlock_remaining_ms(&client, &lock), 0, "r11: no validity is left");
    acquire(0);
    fake_pass(&client, 11000 * MS);
    is_int(release(100), REDLOCK_EXPIRED, "r11: expired");
    acquire(0);
    fake_pass(&client, 11000 * MS);
    held_by("other", 0, 2);
    is_int(release(100), REDLOCK_LOST, "r11: expired, another client has it");
    is_int((int)fake_keys_left(), 3, "r11: the other client's keys are left");
    begin_native(3, native);
    acquire_and_release(3);
    acquire(0);
    fake_pass(&client, 10 * MS);
    for (i = 0; i < 2; i++)
        fake_nodes[i].hung = 1;
    is_int(release(70), REDLOCK_UNCONFIRMED, "r11: two of three hang");
    for (i = 0; i < 2; i++)
        fake_resume(i);
    is_int(release(100), REDLOCK_EXPIRED, "r11 T40: the release is repeated");
}

static void r11_an_unreachable_member(void)
{
    begin_with_defaults(5);
    warm_up();
    fake_nodes[3].refuses = fake_nodes[4].refuses = 1;
    fake_break(3);
    fake_break(4);
    is_int(acquire(0), REDLOCK_OK, "r11: three of five");
    fake_nodes[3].refuses = fake_nodes[4].refuses = 0;
    fake_pass(&client, 3000 * MS);
    fake_nodes[0].refuses = 1;
    fake_break(0);
    is_int(release(1000), REDLOCK_OK,
           "r11: two nodes delete it, two have no key, one is down: released");
}

static void r11_release_without_waiting(void)
{
    uint64_t start;

    begin_with_defaults(3);
    acquire(0);
    start = fake_now_us;
    is_int(release(0), REDLOCK_UNCONFIRMED, "r11: sent, without waiting for the replies");
    is_int((int)since(start), 0, "r11: without a wait");
    is_int((int)fake_count(-1, 'D'), 3, "r11: the commands are sent");
    is_int((int)fake_keys_left(), 0, "r11: and have run");
}

/* A release is started again before the replies to the first one: these are no votes in the second. When it is complete
   the library does not write to the lock, although other replies are due. */
static void r11_a_release_during_a_release(void)
{
    struct redlock_lock other, was;
    unsigned i;

    begin_with_defaults(5);
    warm_up();
    redlock_lock_init(&other, "o", 1, 10000);
    is_int((int)redlock_acquire(&client, &other, 0), REDLOCK_OK, "r11: acquired");
    fake_pass(&client, 1 * MS);
    for (i = 0; i < 5; i++)
        fake_nodes[i].delay_us = i < 3 ? 5 * MS : 30 * MS;
    redlock_release_start(&client, &other, 1000);
    fake_pass(&client, 1 * MS);
    redlock_release_start(&client, &other, 1000);
    while (redlock_next_completed(&client) == NULL)
        fake_pass(&client, 1 * MS);
    is_int((int)other.status, REDLOCK_EXPIRED, "r11: the first release has deleted the keys");
    memset(&other, 0xaa, sizeof other);
    was = other;
    fake_pass(&client, 200 * MS);
    ok(memcmp(&was, &other, sizeof was) == 0, "r11: a released lock is not written to");
}

static void r11_native_commands_are_detected(void)
{
    static const struct {
        int native, denied;
        unsigned scripts, natives; /* sent to each server in four cycles */
    } cases[] = {{0, 0, 4, 3}, {1, 0, 1, 4}, {2, 0, 2, 4}, {3, 0, 1, 4},
                 {4, 0, 3, 4}, {7, 0, 1, 4}, {7, 1, 4, 3}};
    unsigned i, n;

    for (n = 0; n < sizeof cases / sizeof *cases; n++) {
        unsigned wrong = 0;
        begin_native(3, cases[n].native);
        for (i = 0; i < 3; i++)
            fake_nodes[i].server.no_native = cases[n].denied;
        acquire_and_release(4);
        for (i = 0; i < 3; i++)
            wrong += fake_count((int)i, 'D') != cases[n].scripts ||
                     fake_count((int)i, 'N') != cases[n].natives || nodes[i].error[0] != '\0' ||
                     fake_nodes[i].connects != 1;
        is_int(
            (int)wrong, 0, "r11: %d%s: %u scripts and %u native releases in four cycles, no error",
            cases[n].native, cases[n].denied ? ", denied" : "", cases[n].scripts, cases[n].natives);
        for (i = 0; i < 3; i++)
            fake_break((int)i);
        fake_pass(&client, 20 * MS);
        acquire_and_release(1);
        is_int((int)fake_count(0, 'D'), (int)cases[n].scripts + 1,
               "r11: detected again on the next connection");
    }
}

static void r11_left_out(void)
{
    begin_native(3, 7);
    acquire_and_release(4);
    is_int((int)fake_count(-1, 'D'), 12, "r11 left out: released by script");
    is_int((int)fake_count(-1, 'N'), 0, "r11 left out: no native command is sent");
}

/* The native command fails on a connection where it has worked: a proxy has switched servers, or the
   permission was withdrawn. */
static void r11_native_commands_that_fail_later(void)
{
    unsigned i, n, wrong = 0;

    for (n = 0; n < 4; n++) {
        int native = n < 2 ? 4 : 2, denied = n % 2;
        begin_native(5, native);
        acquire_and_release(4);
        acquire(0);
        for (i = 0; i < 5; i++) {
            fake_nodes[i].server.native = denied ? native : 0;
            fake_nodes[i].server.no_native = denied;
        }
        fake_logged = 0;
        is_int(release(1000), REDLOCK_OK, "r11 T39: the native command fails: released");
        is_int((int)fake_keys_left(), 0, "r11 T39: no key is left");
        fake_pass(&client, 20 * MS);
        for (i = 0; i < 5; i++)
            wrong += fake_count((int)i, 'N') != n / 2 + 1 || fake_count((int)i, 'D') != 1 ||
                     nodes[i].error[0] != '\0' || fake_nodes[i].connects != 1;
        is_int((int)wrong, 0,
               "r11: by script; the server's error, which contains the token, is dropped");
        fake_logged = 0;
        acquire_and_release(1);
        is_int((int)fake_count(-1, 'N'), 0, "r11: no native command is tried again");
    }
}

/* Two releases by DELIFEQ are under way. The reply to the first is an error, the second worked: DELIFEQ is known, and not the
   command that would be tried next. */
static void r11_an_error_between_native_releases(void)
{
    struct redlock_lock locks[3];
    unsigned i;

    begin_native(1, 1);
    acquire_and_release(4);
    for (i = 0; i < 3; i++) {
        redlock_lock_init(&locks[i], &"abc"[i], 1, 10000);
        redlock_acquire(&client, &locks[i], 0);
    }
    fake_nodes[0].reply = "-ERR once\r\n";
    fake_nodes[0].reply_once = 1;
    redlock_release_start(&client, &locks[0], 100);
    redlock_release_start(&client, &locks[1], 100);
    fake_pass(&client, 20 * MS);
    fake_logged = 0;
    redlock_release(&client, &locks[2], 100);
    is_int((int)fake_count(0, 'N'), 1, "r11: an error between native releases: released by one");
    is_int((int)fake_count(0, 'D'), 0, "r11: without the script");
    is_int((int)fake_keys_left(), 0, "r11: no key is left");
}

static void r11_native_commands_are_tried_once(void)
{
    struct redlock_lock locks[2];
    unsigned i;

    begin_native(3, 0);
    for (i = 0; i < 2; i++) {
        redlock_lock_init(&locks[i], &"ab"[i], 1, 10000);
        redlock_acquire(&client, &locks[i], 0);
    }
    for (i = 0; i < 2; i++)
        redlock_release_start(&client, &locks[i], 1000);
    redlock_tick(&client);
    is_int((int)fake_count(-1, 'D'), 6, "r11: two releases in progress");
    is_int((int)fake_count(-1, 'N'), 3, "r11: one native command is tried");
}

/* There is room for the release, but not for the native command after it, even after a byte was sent to make
   room. The commands to the next node must be complete all the same. */
static void r02_a_full_buffer_cuts_no_command(void)
{
    static char key[64];
    struct redlock_lock locks[2];
    unsigned i;

    begin_native(3, 0);
    memset(key, 'a', sizeof key);
    lock.key = key;
    lock.key_size = 64;
    is_int(acquire(0), REDLOCK_OK, "r02: held");
    fake_pass(&client, 20 * MS);
    fake_nodes[0].drip = 1;
    for (i = 0; i < 2; i++) {
        redlock_lock_init(&locks[i], key, 62 + i, 10000);
        redlock_acquire_start(&client, &locks[i], 0);
    }
    redlock_release_start(&client, &lock, 1000);
    fake_pass(&client, 20 * MS);
    is_int(lock.status, REDLOCK_OK, "r02: released while one node accepts byte after byte");
    fake_nodes[0].drip = 0;
    fake_pass(&client, 20 * MS);
    is_int((int)fake_count(-1, 'D'), 3, "r02: the release was sent to all three");
}

static void r11_native_commands_and_scripts(void)
{
    begin_native(3, 1);
    acquire_and_release(1);
    held_by("other", 0, 2);
    fake_logged = 0;
    is_int(acquire(0), REDLOCK_HELD, "r11: a failed attempt is rolled back by script");
    is_int((int)fake_count(-1, 'N'), 0,
           "r11: not by the native command, which does not report the holder");
    begin_native(3, 1);
    acquire_and_release(1);
    acquire(0);
    fake_nodes[1].reply = fake_nodes[2].reply = "";
    fake_nodes[1].reply_once = fake_nodes[2].reply_once = 1;
    is_int(release(1000), REDLOCK_OK, "r11: two connections break before the reply: sent again");
    is_int((int)fake_keys_left(), 0, "r11: no key is left");
    begin_native(3, 1);
    acquire_and_release(1);
    acquire(0);
    fake_nodes[1].reply = "+OK\r\n";
    is_int(release(1000), REDLOCK_OK, "r11: one node sends an unexpected reply");
    fake_pass(&client, 5 * MS);
    ok(has_error(1, "unexpected reply"), "r11: its error: %s", nodes[1].error);
    begin_native(3, 1);
    acquire_and_release(1);
    acquire(0);
    is_int(release(0), REDLOCK_UNCONFIRMED, "r11: released without a wait");
    is_int((int)fake_keys_left(), 0, "r11: no key is left");
    fake_pass(&client, 20 * MS);
    is_int(nodes[0].state, REDLOCK_NODE_READY, "r11: its reply is read and dropped");
}

#if !REDLOCK_MINIMAL
static void r11_native_commands_know_one_key(void)
{
    static const struct redlock_key more = {"k2", 2};

    unsigned n;

    for (n = 0; n < 4; n++) {
        begin_native(3, 7);
        acquire_and_release(n);
        set_extra_keys(&lock, &more, 1);
        fake_logged = 0;
        acquire_and_release(2);
        is_int((int)fake_count(-1, 'N'), 0, "r11: multi-key locks are released by script");
    }
}
#endif

static void r15_everything_is_bounded(void)
{
    uint64_t start;
    unsigned i;

    begin_with_defaults(5);
    warm_up();
    for (i = 0; i < 3; i++)
        fake_nodes[i].hung = 1;
    start = fake_now_us;
    is_int(acquire(0), REDLOCK_UNREACHABLE, "r15 T14: three of five hang");
    is_int((int)since(start), 50 * MS, "r15: after node_timeout_ms");
    start = fake_now_us;
    is_int(acquire(500), REDLOCK_UNREACHABLE, "r15: also with wait_ms");
    ok(since(start) <= (500 + 100) * MS, "r15: wait_ms + 2 * node_timeout_ms at most: %ld us",
       since(start));
    begin(5);
    for (i = 0; i < 3; i++)
        fake_nodes[i].never_up = 1;
    start = fake_now_us;
    is_int(acquire(0), REDLOCK_UNREACHABLE, "r15: three connections never come up");
    is_int((int)since(start) / MS, 1001, "r15: after stall_ms");
    ok(has_error(0, "no connection"), "r15: %s", nodes[0].error);
    is_int(nodes[0].state, REDLOCK_NODE_DOWN, "r15: the connect is given up");
    start = fake_now_us;
    is_int(acquire(0), REDLOCK_UNREACHABLE, "r15: another acquire");
    is_int((int)since(start), MS, "r15: fails at once, the nodes are known to be down");
    begin(3);
    acquire(0);
    for (i = 0; i < 3; i++)
        fake_nodes[i].hung = 1;
    start = fake_now_us;
    is_int(release(80), REDLOCK_UNCONFIRMED, "r15: all nodes hang during the release");
    is_int((int)since(start), 80 * MS, "r15: after wait_ms");
}

static unsigned flood_bytes;

/* Node 0 sends pushes without a pause: 100 MB at most, so that the test ends. */
static int flood(void *context, struct redlock_node *node, void *bytes, size_t size)
{
    static const char push[] = ">1\r\n:1\r\n";
    size_t i;

    if (node != &nodes[0] || flood_bytes >= 100 * 1000 * 1000)
        return fake_io()->receive(context, node, bytes, size);
    fake_now_us += 50;
    for (i = 0; i < size; i++)
        ((char *)bytes)[i] = push[flood_bytes++ % (sizeof push - 1)];
    return (int)size;
}

/* The client must also serve the other nodes, and return to the caller. */
static void r15_a_chatty_node_does_not_hold_the_loop(void)
{
    struct redlock_io io = *fake_io();
    uint64_t start;

    begin_with_defaults(3);
    io.receive = flood;
    is_int(redlock_init(&client, &io, nodes, 3, &settings), REDLOCK_OK,
           "r15: a node that sends pushes without a pause");
    flood_bytes = 0;
    start = fake_now_us;
    is_int(acquire(0), REDLOCK_OK, "r15: the two others grant it");
    ok(flood_bytes > 0 && since(start) < 150 * MS, "r15: after %u bytes of pushes, in %ld us",
       flood_bytes, since(start));
    is_int(release(1000), REDLOCK_OK, "r15: released");
    redlock_deinit(&client);
}

static void r15_an_attempt_takes_a_quarter_of_the_ttl_at_most(void)
{
    uint64_t start;

    begin_with_defaults(3);
    warm_up();
    lock.ttl_ms = 100;
    fake_nodes[0].hung = fake_nodes[1].hung = 1;
    start = fake_now_us;
    acquire(0);
    is_int((int)since(start), 25 * MS, "r15: a quarter of the ttl at most");
}

/* ---- Arguments, memory, many at once -------------------------------------------------------- */

static void invalid_arguments_send_nothing(void)
{
    struct redlock_lock bad;
    struct redlock_client zero;

    begin_with_defaults(3);
    memset(&zero, 0, sizeof zero);
    is_int(acquire(0), REDLOCK_OK, "acquired");
    fake_pass(&client, 5 * MS);
    fake_logged = 0;
    is_int(acquire(0), REDLOCK_ALREADY_HELD, "T32: acquire of a held lock");
    redlock_release_start(&client, &lock, 0);
    is_int((int)redlock_acquire(&client, &lock, 0), REDLOCK_INVALID_ARGUMENT,
           "acquire during a release");
    is_int((int)redlock_extend(&client, &lock), REDLOCK_INVALID_ARGUMENT,
           "extend during a release");
    is_int((int)redlock_release(&client, &lock, 0), REDLOCK_UNCONFIRMED,
           "release during a release");
    begin_with_defaults(3);
#define REFUSED(what, change)                                                                      \
    redlock_lock_init(&bad, "k", 1, 1000);                                                         \
    change;                                                                                        \
    is_int((int)redlock_acquire(&client, &bad, 0), REDLOCK_INVALID_ARGUMENT, what)
    REFUSED("no key", bad.key = NULL);
    REFUSED("empty key", bad.key_size = 0);
    REFUSED("long key", bad.key_size = REDLOCK_KEY_MAX + 1);
    REFUSED("very long key", redlock_lock_init(&bad, "k", 65537, 1000));
    REFUSED("T53: ttl 0", bad.ttl_ms = 0);
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
    if (REDLOCK_FENCING) {
        set_use_fencing(&lock, 1);
        is_int(acquire(0), REDLOCK_OK, "fencing tokens: in this build");
    }
    is_int((int)redlock_init(&client, fake_io(), nodes, 3, &guarded),
           REDLOCK_RESTART_GUARD ? REDLOCK_OK : REDLOCK_INVALID_ARGUMENT,
           "the delay after a restart: in this build, or refused");
    if (!REDLOCK_RESTART_GUARD)
        ok(has_invalid("longest_ttl_ms"), "%s", redlock_invalid_argument(&client));
    begin_with_defaults(3);
    lock.members = 7;
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
               REDLOCK_INVALID_ARGUMENT, "T52: setting out of range: %s", cases[i].name);
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
    redlock_lock_init(&other, "k2", 2, 10000);
    is_int(acquire(0), REDLOCK_OK, "T15: one name");
    is_int((int)redlock_acquire(&client, &other, 0), REDLOCK_OK,
           "T15: another name, at the same time");
    is_int(release(100), REDLOCK_OK, "T15: released");
    ok(redlock_remaining_ms(&client, &other) > 9000, "T15: the other lock is still held");
    redlock_release(&client, &other, 100);
}

static void binary_keys(void)
{
    begin_with_defaults(3);
    redlock_lock_init(&lock, "a\0b\r\nDEL x", 10, 10000);
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
    redlock_lock_init(&lock, "k", 1, 0x7fffffff);
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
        redlock_lock_init(&many[i], names[i], 3, 10000);
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
    static const char names[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    static struct redlock_lock many[MANY];
    unsigned i, held = 0;

    begin_with_defaults(5);
    warm_up();
    fake_nodes[4].hung = 1;
    for (i = 0; i < MANY; i++) {
        redlock_lock_init(&many[i], &names[i], 1, 10000);
        redlock_acquire_start(&client, &many[i], 0);
    }
    fake_pass(&client, 40 * MS);
    for (i = 0; i < MANY; i++)
        held += many[i].status == REDLOCK_OK;
    is_int((int)held, MANY, "r05: a hung node with a full queue does not delay the others");
}

/* The servers have closed the connections. The client finds this while it sends bytes to make room for more
   commands. */
static void many_on_a_dead_connection(void)
{
    enum { MANY = 40 };
    static struct redlock_lock many[MANY];
    static const char names[] = "0123456789abcdefghijklmnopqrstuvwxyzABCD";
    unsigned i, held = 0;

    begin_with_defaults(3);
    warm_up();
    for (i = 0; i < 3; i++)
        fake_break((int)i);
    for (i = 0; i < MANY; i++) {
        redlock_lock_init(&many[i], &names[i], 1, 10000);
        redlock_acquire_start(&client, &many[i], 0);
    }
    fake_pass(&client, 40 * MS);
    for (i = 0; i < MANY; i++)
        held += many[i].status == REDLOCK_OK;
    is_int((int)held, MANY, "T13: %d locks on dead connections: all held", MANY);
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

static void error_texts_are_safe(void)
{
    begin_with_defaults(3);
    fake_nodes[0].reply = "-ERR unknown command 'EVAL', with args beginning with: 'x' '1' 'k'\r\n";
    acquire(0);
    fake_pass(&client, 10 * MS);
    ok(has_error(0, "unknown com") && strstr(nodes[0].error, "beginning") == NULL,
       "arguments that the server repeats are left out: %s", nodes[0].error);
    fake_nodes[1].reply = "-ERR \033[31m\001\377 red\r\n";
    release(100);
    ok(has_error(1, "?[31m?? red"), "control bytes are replaced: %s", nodes[1].error);
}

/* ---- Groups of tests -------------------------------------------------------------------------- */

static void acquiring(void)
{
    r01_new_token_for_every_attempt();
    r01_a_set_is_never_sent_again();
    r01_t1_is_read_before_the_first_byte();
    r02_all_nodes_at_once();
    r03_wall_clocks_decide_nothing();
    r03_decides_at_the_quorum();
    r03_validity_must_be_positive();
    r03_drift_has_a_minimum();
    r03_quorum();
    r04_release_goes_to_every_asked_node();
    r04_release_after_the_first_reply_is_lost();
    r04_release_outlasts_a_full_buffer();
    r05_backoff_although_the_handshake_succeeds();
    r04_a_node_that_accepts_no_bytes_is_disconnected();
    r05_a_full_buffer_gives_no_more_time();
    r04_a_node_that_replies_early_is_disconnected();
    r04_t8_cancel_rolls_back();
    r04_cancel_in_every_state();
    r04_a_cancelled_attempt_asks_nobody();
    r05_late_replies_are_dropped();
    r05_a_full_queue_keeps_replies_apart();
    r02_attempts_wait_in_line_for_room();
    r02_completed_locks_share_a_late_node();
    r05_nonsense_disconnects();
    r05_a_push_is_not_a_reply();
    r05_an_unsolicited_first_reply_disconnects();
    r05_one_byte_at_a_time();
    r05_stalled_connection();
    r05_a_connection_breaks_beside_a_held_lock();
    r05_a_stall_between_complete_locks();
    r05_an_idle_caller_causes_no_stall();
    r05_a_paused_process_reads_a_long_reply();
    r06_a_failed_attempt_ends_early();
    r06_number_of_attempts();
    r06_pauses_are_random_and_grow();
    r01_tokens_differ();
    r06_contention_is_retried_quickly(5);
    r06_contention_is_retried_quickly(4);
    r06_results_are_distinct();
    r06_permanent_and_temporary_errors();
    r06_failed_but_the_reason_is_still_open();
    r06_the_slowest_node_names_the_holder();
    r06_a_waiter_acquires_after_expiry();
    r06_dead_connections_are_replaced();
    r06_a_holder_on_an_even_number_of_nodes();
    r06_round_trips_are_not_idle_time();
    r06_no_pause_still_ends();
    if (REDLOCK_RESTART_GUARD)
        r06_no_pause_is_no_flood();
}

static void notification(void)
{
    r07_without_notifications();
    if (!REDLOCK_NOTIFICATION) {
        r07_left_out();
        return;
    }
    r07_notifications_end_the_pause();
    if (REDLOCK_RESTART_GUARD)
        r07_no_notification_without_voters();
    r07_retries_at_random_moments();
    r07_only_refused_attempts_ask_for_tracking();
    r07_other_keys();
    r07_backs_off_after_spurious_notifications();
    r07_one_waiter_is_notified();
    r07_a_cancelled_waiter_passes_on();
}

static void extensions(void)
{
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
    r09_no_repair_of_other_nodes_after_the_end();
    r09_a_late_extension_creates_no_key();
    r10_number_of_extensions_is_limited();
    if (REDLOCK_MINIMAL) {
        r09_left_out();
        return;
    }
    r09_a_lost_lock_is_not_repaired();
    r09_an_extension_repairs();
    r09_repaired_nodes_do_not_count_at_once();
    r09_a_repaired_node_counts_when_it_has_confirmed();
    r09_repair_by_a_later_round();
    r09_a_repair_without_a_reply();
}

static void automatic_extensions(void)
{
    if (REDLOCK_MINIMAL) {
        r10_left_out();
        return;
    }
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
}

static void handshakes(void)
{
    if (REDLOCK_NOTIFICATION) {
        r12_handshake();
        r12_hello_refused_in_any_words();
        r12_auth_counts_where_hello_does_not();
        r12_not_a_node();
    } else {
        r12_left_out();
    }
    r12_a_handshake_in_pieces();
    r05_a_connect_that_fails_ends_the_wait();
    r12_a_password_that_grew();
    r12_wrong_password();
    r12_a_denial_names_the_permissions();
    r12_an_old_server_without_a_password(0);
    r12_an_old_server_without_a_password(7);
    r12_invalid_nodes_are_refused();
}

static void restarts(void)
{
    if (!REDLOCK_RESTART_GUARD) {
        r13_left_out();
        return;
    }
    r13_one_server_one_vote();
    r13_connected_while_it_loads();
    r14_a_restarted_server_does_not_vote();
    r14_the_age_of_a_server();
    r14_extensions_too();
}

static void fencing_tokens(void)
{
    if (!REDLOCK_FENCING)
        return;
    r16_one_round_trip();
    r16_agrees_on_the_largest();
    r16_a_larger_counter_does_not_agree();
    r16_rounds_of_agreement_are_limited();
    r16_refused();
    r16_tokens_grow();
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
    is_int((int)redlock_adopt(&client, &lock, 5000), REDLOCK_OK,
           "adopt: a lock that failed before");
    ok(holder[0] == '\0' && lock.holder_left_ms == 0, "adopt: no holder is known any more");
    is_int(lock.granted | lock.refused | lock.failed, 0, "adopt: no node has voted yet");
}

static void diagnosis(void)
{
    if (!REDLOCK_TEXTS) {
        diagnosis_left_out();
        return;
    }
    holder_of_the_lock();
    expiry_of_the_holder();
    expiry_of_another_holder();
    if (!REDLOCK_MINIMAL)
        a_failed_lock_is_adopted();
    if (!REDLOCK_MINIMAL)
        expiry_with_several_holders();
    a_late_reply_about_the_holder();
    r11_a_release_between_two_replies();
    expiry_of_the_holder_that_is_named();
    a_reply_about_the_holder_in_pieces();
}

/* Where no reply is waited for, none is late. */
static void r11_without_a_wait_no_node_is_late(void)
{
    begin_with_defaults(3);
    acquire(0);
    is_int(release(0), REDLOCK_UNCONFIRMED, "r11: without a wait");
    ok(lock.failed == 0 && nodes[0].error[0] == '\0', "r11: no node is late: %x, %s", lock.failed,
       nodes[0].error);
}

static void releases(void)
{
    r11_release_goes_to_all_nodes();
    r11_without_a_wait_no_node_is_late();
    r11_outcomes(0);
    r11_outcomes(1);
    r11_outcomes(4);
    r11_an_unreachable_member();
    r11_release_without_waiting();
    r11_a_release_during_a_release();
    if (REDLOCK_MINIMAL) {
        r11_left_out();
        return;
    }
    r11_native_commands_are_detected();
    r11_native_commands_that_fail_later();
    r11_an_error_between_native_releases();
    r11_native_commands_are_tried_once();
    r02_a_full_buffer_cuts_no_command();
    r11_native_commands_and_scripts();
#if !REDLOCK_MINIMAL
    r11_native_commands_know_one_key();
#endif
}

/* ---- Rules that none of the tests above missed when they were taken out ---------------------------------- */

static void break_all(unsigned count, int refuses)
{
    unsigned i;

    for (i = 0; i < count; i++) {
        fake_nodes[i].refuses = refuses;
        if (refuses)
            fake_break((int)i);
    }
}

/* A quorum waits 100 ms at most for the connections to the rest, also when node_timeout_ms is long. */
static void r02_a_long_timeout_does_not_delay_a_new_client(void)
{
    uint64_t start;

    memset(&settings, 0, sizeof settings);
    settings.node_timeout_ms = 500;
    begin(3);
    fake_nodes[2].never_up = 1;
    start = fake_now_us;
    is_int(acquire(0), REDLOCK_OK, "r02: one of three never connects");
    ok(since(start) < 110 * MS, "r02: that takes 100 ms: %ld us", since(start));
}

/* The connection is slow, and so is each reply to the handshake: together they delay an attempt by 100 ms at most. */
static void r02_a_slow_handshake_does_not_delay_a_new_client(void)
{
    uint64_t start;
    int i;

    begin_with_defaults(3);
    fake_nodes[2].connect_us = fake_nodes[2].delay_us = 70 * MS;
    start = fake_now_us;
    is_int(acquire(0), REDLOCK_OK, "r02: one of three takes two round trips of 70 ms");
    ok(since(start) < 110 * MS, "r02: that takes 100 ms: %ld us", since(start));
    begin_with_defaults(5);
    for (i = 0; i < 5; i++)
        fake_nodes[i].connect_us = fake_nodes[i].delay_us = i < 3 ? 60 * MS : 80 * MS;
    start = fake_now_us;
    is_int(acquire(0), REDLOCK_OK, "r02: a quorum that is ready after 120 ms");
    is_int((int)since(start), 220 * MS, "r02: waits for the rest, which takes 160 ms");
}

/* Without a quorum an attempt waits for connections for stall_ms, however they share it with their handshakes. */
static void r02_connections_have_stall_ms(void)
{
    uint64_t start;

    begin_with_defaults(1);
    fake_nodes[0].connect_us = 600 * MS;
    fake_nodes[0].hung = 1;
    start = fake_now_us;
    is_int(acquire(0), REDLOCK_UNREACHABLE, "r02: the handshake is not answered");
    ok(since(start) <= 1000 * MS + 3 * 50 * MS, "r02: ends after stall_ms: %ld us", since(start));
    memset(&settings, 0, sizeof settings);
    settings.node_timeout_ms = 2;
    settings.stall_ms = 6;
    begin(1);
    fake_nodes[0].server.password = "secret";
    fake_nodes[0].delay_us = 100;
    is_int(acquire(0), REDLOCK_DENIED, "r02: without the password");
    fake_pass(&client, 1 * MS);
    start = fake_now_us;
    is_int(acquire(0), REDLOCK_DENIED,
           "r02: a pause before the next connect is longer than stall_ms");
    ok(since(start) <= 12 * MS, "r02: ends after stall_ms: %ld us", since(start));
}

/* An attempt does not wait for a node that has failed before, also not while it waits for another one. */
static void r02_a_node_that_failed_does_not_delay_the_others(void)
{
    uint64_t start;
    int i;

    begin_with_defaults(5);
    fake_nodes[3].never_up = fake_nodes[4].refuses = 1;
    redlock_acquire_start(&client, &lock, 0);
    redlock_tick(&client);
    fake_nodes[4].refuses = 0; /* the next connect does not fail, but takes long */
    fake_nodes[4].never_up = 1;
    fake_pass(&client, 110 * MS);
    is_int(lock.status, REDLOCK_OK,
           "r02: not for longer than 100 ms, when one that failed connects");
    ok(fake_nodes[4].connects > 1, "r02: it was connected meanwhile");
    begin_with_defaults(3);
    fake_nodes[2].refuses = 1;
    warm_up();
    fake_nodes[2].refuses = 0;
    fake_nodes[2].never_up = 1;
    fake_pass(&client, 3000 * MS);
    for (i = 0; i < 2; i++)
        fake_break(i);
    fake_pass(&client, 10 * MS);
    start = fake_now_us;
    is_int(acquire(0), REDLOCK_OK, "r02: all connect, one of them failed before");
    ok(since(start) < 10 * MS, "r02: at once: %ld us", since(start));
}

/* All connections were closed during a long pause: the retry waits for new ones, as the first attempt does. */
static void r02_a_retry_waits_for_connections(void)
{
    int i;

    memset(&settings, 0, sizeof settings);
    settings.retry_delay_ms = 1500;
    settings.retry_jitter_pct = settings.retry_growth_pct = REDLOCK_NONE;
    begin(3);
    warm_up();
    for (i = 0; i < 3; i++) {
        fake_put(i, "k", "other", 700);
        fake_nodes[i].connect_us = 200 * MS;
    }
    redlock_acquire_start(&client, &lock, 10000);
    fake_pass(&client, 300 * MS);
    for (i = 0; i < 3; i++)
        fake_break(i);
    fake_pass(&client, 1600 * MS);
    is_int(lock.status, REDLOCK_OK, "r02: acquired after a pause of 1.5 s and a connect of 0.2 s");
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

/* Each round has node_timeout_ms. */
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

/* A denial is no reason to wait. */
static void r06_denied_at_once(void)
{
    uint64_t start;
    int i;

    begin_with_defaults(3);
    warm_up();
    for (i = 0; i < 3; i++)
        fake_nodes[i].reply = "-NOPERM this user has no permissions\r\n";
    start = fake_now_us;
    is_int(acquire(1000), REDLOCK_DENIED, "r06: all nodes deny it");
    ok(since(start) < 100 * MS, "r06: at once, not after wait_ms: %ld us", since(start));
}

/* A release that nobody confirmed may be called again. */
static void r11_released_again(void)
{
    begin_with_defaults(3);
    acquire(0);
    break_all(3, 1);
    is_int(release(10), REDLOCK_UNCONFIRMED, "r11: all nodes are down");
    is_int((int)fake_keys_left(), 3, "r11: and keep the key");
    break_all(3, 0);
    is_int(release(1000), REDLOCK_OK, "r11: released when they are back");
    fake_pass(&client, 3000 * MS);
    ok(!REPEATS || fake_keys_left() == 0, "r11: no key is left");
}

/* Nor has a cancelled release deleted the keys of nodes that could not be reached. */
static void r11_released_again_after_a_cancel(void)
{
    begin_with_defaults(3);
    acquire(0);
    break_all(3, 1);
    redlock_release_start(&client, &lock, 5000);
    fake_pass(&client, 10 * MS);
    redlock_cancel(&client, &lock);
    fake_pass(&client, 100 * MS);
    is_int(lock.status, REDLOCK_CANCELLED, "r11: all nodes are down, the release is cancelled");
    is_int((int)fake_keys_left(), 3, "r11: they keep the key");
    break_all(3, 0);
    fake_pass(&client, 200 * MS);
    is_int(release(1000), REDLOCK_OK, "r11: released when they are back");
    is_int((int)fake_keys_left(), 0, "r11: no key is left");
}

/* No node can be reached, and an extension fails. All are back when the lock is released, but the pauses before the next
   connects are not over. The release has wait_ms for them. */
static void r11_released_after_the_pause(void)
{
    begin_with_defaults(3);
    acquire(0);
    break_all(3, 1);
    is_int(extend(), REDLOCK_UNREACHABLE, "r11: all nodes are down");
    fake_pass(&client, 2000 * MS);
    is_int(extend(), REDLOCK_UNREACHABLE, "r11: for some time");
    break_all(3, 0);
    is_int(release(1000), REDLOCK_OK,
           "r11: they are back, and the release waits for the connections");
    fake_pass(&client, 3000 * MS);
    ok(fake_keys_left() <= 1, "r11: a quorum has no key any more");
}

/* A release is cancelled: it ends after node_timeout_ms, not after its wait_ms. */
static void r11_a_cancelled_release_ends(void)
{
    int i;

    begin_with_defaults(3);
    acquire(0);
    fake_pass(&client, 10 * MS);
    for (i = 0; i < 3; i++)
        fake_nodes[i].hung = 1;
    redlock_release_start(&client, &lock, 5000);
    fake_pass(&client, 10 * MS);
    is_int(lock.status, REDLOCK_PENDING, "r11: no node replies");
    redlock_cancel(&client, &lock);
    fake_pass(&client, 50 * MS);
    is_int(lock.status, REDLOCK_CANCELLED, "r11: cancelled within node_timeout_ms");
}

static unsigned releases_of(int i)
{
    return fake_count(i, 'D') + fake_count(i, 'N');
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
    struct redlock_lock second;

    if (!REPEATS || REDLOCK_PIPELINE_MAX < 8)
        return; /* the reply to the second release would be dropped, for want of a request */
    memset(&settings, 0, sizeof settings);
    settings.stall_ms = 60000;
    begin(3);
    warm_up();
    fake_pass(&client, 1000 * MS);
    lock.ttl_ms = 500;
    acquire(0);
    fake_pass(&client, 10 * MS);
    fake_nodes[2].hung = 1;
    is_int(release(100), REDLOCK_OK, "r04: one of three hangs");
    fake_pass(&client, 1000 * MS);
    redlock_lock_init(&second, "l", 1, 30000);
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

/* Nodes that do not vote in time are shown, with an error. */
static void r15_who_was_too_slow(void)
{
    begin_with_defaults(3);
    warm_up();
    fake_nodes[1].hung = fake_nodes[2].hung = 1;
    is_int(acquire(0), REDLOCK_UNREACHABLE, "r15: two of three hang");
    is_int((int)lock.failed, 6, "r15: these have failed");
    ok(has_error(1, "no reply in time") && has_error(2, "no reply in time"), "r15: and say why");
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
    redlock_lock_init(&theirs, "k", 1, 10000);
    memcpy(theirs.token, lock.token, sizeof theirs.token);
    theirs.members = lock.members;
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
    redlock_lock_init(&lock, "m", 1, 10000);
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

/* A server restarts, and does not tell its age any more. That of the process before says nothing. */
static void r14_an_age_that_is_not_known_any_more(void)
{
    begin_with_old_servers();
    warm_up();
    fake_restart(0);
    fake_nodes[0].server.no_info = 1;
    held_by("other", 1, 1);
    is_int(acquire(0), REDLOCK_CONTENDED, "r14: a restarted server that denies INFO does not vote");
    ok(has_error(0, "not voting"), "r14: its error: %s", nodes[0].error);
}

static void rules_that_had_no_test(void)
{
    if (REDLOCK_RESTART_GUARD)
        r14_an_age_that_is_not_known_any_more();
    r04_one_place_for_all_nodes();
    an_abandoned_lock();
    votes_of_the_last_operation();
    a_lock_of_a_former_client(1);
    a_lock_of_a_former_client(0);
    if (!REDLOCK_MINIMAL)
        r08_asked_late_while_it_extends_itself();
    a_late_grant_of_a_completed_lock();
    r15_who_was_too_slow();
    r04_a_repeated_release_connects();
    r02_a_long_timeout_does_not_delay_a_new_client();
    r02_a_slow_handshake_does_not_delay_a_new_client();
    r02_connections_have_stall_ms();
    r02_a_node_that_failed_does_not_delay_the_others();
    r02_a_retry_waits_for_connections();
    r08_late_grants_and_refusals();
    r08_a_late_grant_and_its_loss_at_once();
    if (REDLOCK_FENCING) {
        r16_who_granted_is_a_member();
        r16_who_granted_late_is_a_member();
        r16_the_second_round_has_its_own_time();
        r16_an_agreement_of_a_broken_connection();
    }
    r06_denied_at_once();
    r11_released_again();
    r11_released_again_after_a_cancel();
    r11_released_after_the_pause();
    r11_a_cancelled_release_ends();
    r04_a_release_is_sent_once();
    r04_a_reply_to_a_release_that_was_given_up();
}

int main(void)
{
    if (REDLOCK_PIPELINE_MAX == 2 || REDLOCK_READ_MAX == 1) { /* the other tests need more */
        r05_a_paused_process_reads_a_long_reply();
        r05_room_after_a_reply();
        r12_an_old_server_without_a_password(7);
        return done_testing();
    }
    acquiring();
    notification();
    extensions();
    automatic_extensions();
    handshakes();
    restarts();
    fencing_tokens();
    if (!REDLOCK_MINIMAL)
        multi_key_lock();
    longest_commands();
    r05_any_event_ends_a_connect();
    if (!REDLOCK_MINIMAL)
        r05_backoff_while_an_adopted_lock_is_extended();
    if (!REDLOCK_MINIMAL)
        r05_backoff_before_the_validity_ends();
    if (!REDLOCK_MINIMAL)
        adoption();
    diagnosis();
    r04_a_connection_breaks_while_room_is_made();
#if !REDLOCK_MINIMAL
    r12_nothing_is_queued_on_a_broken_connection();
#endif
    forks();
    releases();
    r15_a_stall_is_longer_than_node_timeout();
    r15_everything_is_bounded();
    r15_an_attempt_takes_a_quarter_of_the_ttl_at_most();
    r15_a_chatty_node_does_not_hold_the_loop();
    invalid_arguments_send_nothing();
    settings_of_missing_features_are_refused();
    drift_above_half_of_the_ttl();
    invalid_settings();
    if (REDLOCK_LABEL_MAX >= 9)
        labels();
    two_names_two_locks();
    binary_keys();
    no_entropy_no_lock();
    remaining_of_the_longest_ttl();
    clock_that_steps_back();
    completion_is_reported_at_once();
    many_at_once();
    many_with_a_hung_node();
    many_on_a_dead_connection();
    ended_locks_are_not_written_to();
    if (REDLOCK_TEXTS)
        texts();
    else
        texts_left_out();
    is_int((int)redlock_version(), REDLOCK_VERSION_NUMBER, "version");
    error_texts_are_safe();
    rules_that_had_no_test();
    return done_testing();
}
