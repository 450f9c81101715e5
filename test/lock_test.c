/* lock_test.c - the rules of the lock, one by one, on simulated servers with a simulated clock. "r04" is rule
   4 in the head of redlock.c or node.c. "T19" is a way in which another Redlock client was seen to fail. What
   cannot happen here has no test: T42 and T44, as the library measures the time left on its own clock; T48 and
   T49, as there are no semaphores and no locks for readers; T50, as nothing wraps the caller's work.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "one_lock.h"

static void begin_without_pauses(unsigned count)
{
    memset(&settings, 0, sizeof settings);
    settings.retry_delay_ms = REDLOCK_NONE;
    begin(count);
}

/* "k" is gone from the nodes from..to. */
static void deleted_on(int from, int to)
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
    is_int(acquire(3000), REDLOCK_TIMEOUT, "r01: waits in vain");
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
    fake_nodes[1].says = ""; /* takes the SET, closes the connection instead of answering */
    fake_nodes[1].says_once = 1;
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
           "r01: validity counts from before the first byte left");
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
    is_int((int)others, 0, "r02: the same SET, without waiting for one another");
}

static void r03_wall_clocks_decide_nothing(void)
{
    static const uint64_t clocks[] = {0, (uint64_t)1 << 50, ((uint64_t)1 << 50) + 10000000};
    unsigned i;

    for (i = 0; i < 3; i++) {
        begin_with_defaults(3);
        fake_wall_us = clocks[i];
        is_int(acquire(0), REDLOCK_OK, "r03 T10: whatever the time is here");
        ok(fake_find(0, "k", 1)->until_us == fake_log[fake_logged - 1].at_us + 10000 * MS,
           "r03 T10: the key lives for its ttl, by the server's clock");
        fake_wall_us += (uint64_t)3600000 * MS;
        ok(redlock_remaining_ms(&client, &lock) > 9800, "r03 T10: and is held for as long here");
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

/* Validity is T1 + ttl - drift: 10000 - 100 - 2 ms. The replies come in time by a hair, or not. */
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
        is_int((int)redlock_remaining_ms(&client, &lock), 0, "r03: nothing left");
        if (cases[i].status != REDLOCK_OK)
            is_int((int)fake_keys_left(), 0, "r03 T19: what came too late is undone");
    }
}

static void r03_drift_has_a_floor(void)
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
    is_int((int)(lock.valid_until_us - start), 9998 * MS - 1, "r03: without a ratio 2 ms are left");
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
            continue; /* another build has more */
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

/* Every SET is followed by a release of the same token down the same connection. */
static int each_set_is_undone(int but)
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
    fake_nodes[3].says = "-LOADING Redis is loading the dataset in memory\r\n";
    fake_nodes[4].hung = 1;
    is_int(acquire(0), REDLOCK_CONTENDED, "r04: one grant, two refusals, an error, a hung node");
    is_int(lock.granted << 8 | lock.refused, 0x106, "r04: the votes");
    if (REDLOCK_DIAGNOSIS)
        is_int(lock.failed, 0x8, "r04: the failure");
    ok(has_error(3, "LOADING"), "r04: and why: %s", nodes[3].error);
    fake_resume(4);
    is_int((int)fake_keys_left(), 2, "r04 T6 T37: no key of ours is left, also where it hung");
    is_int((int)fake_count(-1, 'D'), 5, "r04: the release went to all five");
    ok(each_set_is_undone(-1), "r05 T7: each after its SET, down the same connection");
}

/* Its connection broke before it had answered any SET, but after the handshake: it is connected again at
   once for the release that it is owed, and the key does not stay for its ttl. */
static void r04_release_after_the_first_answer_is_lost(void)
{
    begin_with_defaults(3);
    fake_nodes[0].deaf_to_set = 1;
    is_int(acquire(0), REDLOCK_OK, "r04: held by two, the third's first answer is due");
    fake_pass(&client, 5 * MS);
    fake_break(0);
    is_int(release(100), REDLOCK_OK, "r04: and released");
    fake_pass(&client, 5 * MS);
    is_int((int)fake_keys_left(), 0, "r04: also where the connection broke");
}

/* A server that closes the connection after the handshake is not connected for each attempt: once more at
   once, then after pauses. */
static void r05_greetings_alone_are_no_use(void)
{
    unsigned i;

    begin_with_defaults(3);
    fake_nodes[0].says = "";
    for (i = 0; i < 100; i++) {
        acquire(0);
        fake_pass(&client, 10 * MS);
        release(100);
        fake_pass(&client, 10 * MS);
    }
    ok(fake_nodes[0].dials > 4 && fake_nodes[0].dials < 12, "r05: dialled %d times in 2 s",
       fake_nodes[0].dials);
    fake_nodes[0].says = NULL;
    fake_pass(&client, 3000 * MS);
    acquire(0);
    fake_pass(&client, 10 * MS);
    is_int(lock.members, 7, "r05: and works when it does");
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
    is_int(lock.status, REDLOCK_HELD, "r04: decided without the node that takes no bytes");
    fake_nodes[0].full = 0;
    fake_pass(&client, 10 * MS);
    is_int((int)fake_count(0, 'S'), 1, "r04: then the SET goes");
    is_int((int)fake_count(0, 'D'), 1, "r04: and the release after it");
    is_int((int)fake_keys_left(), 2, "r04: no key of ours is left");
}

/* More releases are owed to it than the send buffer holds: it is disconnected, so that none of the SETs
   that wait in the buffer can ever run. */
static void r04_a_node_that_takes_no_bytes_is_given_up(void)
{
    static const char label[REDLOCK_LABEL_MAX + 1]; /* so that fewer find room */
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
    is_int((int)fake_keys_left(), 2, "r04: and no key of ours is left");
}

static void r04_t8_cancel_undoes(void)
{
    begin_with_defaults(3);
    warm_up();
    fake_nodes[1].delay_us = fake_nodes[2].delay_us = 40 * MS;
    redlock_acquire_start(&client, &lock, 5000);
    fake_pass(&client, 5 * MS);
    is_int(lock.granted, 1, "r04 T8: one of three has granted");
    redlock_cancel(&client, &lock);
    redlock_tick(&client);
    ok(redlock_next_completed(&client) == &lock, "r04 T8: cancelled at once");
    is_int(lock.status, REDLOCK_CANCELLED, "r04 T8: and says so");
    is_int((int)fake_count(-1, 'D'), 3, "r04 T8: released on all three");
    fake_pass(&client, 100 * MS);
    is_int((int)fake_keys_left(), 0, "r04 T8: no key is left");
    redlock_cancel(&client, &lock);
    is_int(lock.status, REDLOCK_CANCELLED, "cancel of what is over does nothing");
}

static void r04_cancel_in_every_state(void)
{
    unsigned us;

    for (us = 0; us < 400; us += 7) {
        begin_with_defaults(3);
        held_by("other", 0, 1);
        redlock_acquire_start(&client, &lock, 5000);
        fake_pass(&client, us * MS);
        redlock_cancel(&client, &lock);
        fake_pass(&client, 60 * MS);
        if (lock.status != REDLOCK_CANCELLED || fake_keys_left() != 2 ||
            redlock_next_completed(&client) != &lock)
            break;
    }
    ok(us >= 400, "r04: cancelled at any moment of a wait, nothing is left (%u ms)", us);
}

static void r05_unwanted_answers_are_dropped(void)
{
    memset(&settings, 0, sizeof settings);
    settings.retries = REDLOCK_NONE;
    begin(3);
    warm_up();
    held_by("other", 1, 2);
    fake_nodes[0].delay_us = 80 * MS; /* its grant comes long after the attempt is lost */
    is_int(acquire(0), REDLOCK_HELD, "r05: lost before the slow grant came");
    fake_nodes[1].server.keys[0].name.size = 0; /* the other one has gone from node 1 */
    fake_nodes[2].delay_us = 200 * MS;
    redlock_acquire_start(&client, &lock, 0);
    fake_pass(&client, 45 * MS);
    is_int(lock.granted, 2, "r05: the late grant of attempt 1 is no vote for attempt 2");
    fake_pass(&client, 300 * MS);
    is_int((int)fake_keys_left(), 1, "r05: no key of ours is left");
}

/* The queue of a slow node is full: the release of a cancelled attempt shares the slot that is reserved for
   releases, but not with the SET before it, which has another reply. */
static void r05_a_full_queue_keeps_answers_apart(void)
{
    struct redlock_lock many[REDLOCK_PIPELINE_MAX - 1];
    unsigned i;

    if (REDLOCK_PIPELINE_MAX > 100)
        return; /* more than a fake server can hold */
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
    ok(nodes[0].state == REDLOCK_NODE_READY && fake_nodes[0].dials == 1,
       "r05: the connection lives on: %s", nodes[0].error);
    redlock_deinit(&client);
}

/* More attempts than there is room for: they begin in the order of their starts, also when more come
   meanwhile. */
static void who_waits_for_room_is_in_line(void)
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
            fake_pass(&client, 100); /* some are answered, more come */
    }
    fake_pass(&client, 100 * MS);
    for (i = 0; i < fake_logged; i++)
        if (fake_log[i].node == 0 && fake_log[i].kind == 'S')
            in_line += strcmp(fake_log[i].key, keys[begun++]) == 0;
    is_int((int)begun, 40, "r02: all of 40 were asked for");
    is_int((int)in_line, 40, "r02: in the order in which they were started");
}

/* What must end a connection, and the error that the user then reads. */
static void r05_nonsense_disconnects(void)
{
    static const struct {
        const char *says, *error;
    } cases[] = {
        {"HTTP/1.1 400 Bad Request\r\n\r\n", "does not speak RESP"},
        {"$99999999999999999999\r\n", "does not speak RESP"},
        {"$1073741824\r\n", "does not speak RESP"},
        {"*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n", "unexpected reply"},
        {"*100000\r\n", "unexpected reply"},
        {":1\r\n", "unexpected reply"},
        {"+QUEUED\r\n", "unexpected reply"},
        {"$2\r\nOK\r\n", "unexpected reply"},
        {"+OK\r\n+OK\r\n+OK\r\n", "unexpected reply"},
        {"+OK\r\n-ERR unasked\r\n-ERR unasked\r\n", "unsolicited: ERR unasked"},
        {"", "closed by the server"},
    };
    unsigned i;

    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin_with_defaults(3);
        warm_up();
        fake_nodes[0].says = cases[i].says;
        fake_nodes[0].delay_us = 0;
        is_int(acquire(0), REDLOCK_OK, "r05: the others decide");
        fake_pass(&client, 5 * MS);
        ok(has_error(0, cases[i].error), "r05: \"%.12s\": %s", cases[i].says, nodes[0].error);
        ok(nodes[0].state != REDLOCK_NODE_READY, "r05: and is disconnected");
    }
}

/* A push is no answer, whatever it says. */
static void r05_a_push_is_no_answer(void)
{
    begin_with_defaults(3);
    warm_up();
    fake_nodes[0].says = ">2\r\n+invalidate\r\n*0\r\n";
    is_int(acquire(0), REDLOCK_OK, "r05: the others decide");
    fake_pass(&client, 5 * MS);
    is_int(nodes[0].state, REDLOCK_NODE_READY, "r05: a push ends no connection");
    is_int(lock.granted & 1, 0, "r05: nor is it a vote");
}

static void r05_unasked_greeting_disconnects(void)
{
    begin_with_defaults(3);
    fake_nodes[0].greets = "-ERR max number of clients reached\r\n";
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
    is_int((int)fake_keys_left(), 0, "r05: nothing left");
}

static void r05_stalled_connection(void)
{
    uint64_t start;
    int dials, i;

    begin_with_defaults(3);
    warm_up();
    fake_nodes[2].hung = 1;
    acquire(0);
    fake_pass(&client, 900 * MS);
    is_int(nodes[2].state, REDLOCK_NODE_READY, "r05: an answer is due for 0.9 s");
    fake_pass(&client, 150 * MS);
    is_int(nodes[2].state, REDLOCK_NODE_DOWN, "r05: for more than stall_ms: closed");
    ok(has_error(2, "no reply"), "r05: %s", nodes[2].error);
    fake_nodes[1].refuses = fake_nodes[2].refuses = 1;
    release(10);
    fake_break(1);
    start = fake_now_us;
    is_int(acquire(0), REDLOCK_UNREACHABLE, "r05: two of three are down");
    ok(since(start) < 40 * MS, "r05: which is known without waiting (%ld us)", since(start));
    fake_pass(&client, 10000 * MS);
    dials = fake_nodes[2].dials;
    for (i = 0; i < 1000; i++) { /* asked again and again for 10 s */
        acquire(0);
        fake_pass(&client, 10 * MS);
    }
    dials = fake_nodes[2].dials - dials;
    ok(dials >= 4 && dials <= 20, "r05: a refused node is dialled with pauses: %d times", dials);
    fake_nodes[1].refuses = fake_nodes[2].refuses = fake_nodes[2].hung = 0;
    is_int(acquire(5000), REDLOCK_OK, "r05: and works again when it is back");
}

/* A caller that works for longer than stall_ms reads late what came in time. */
static void r05_who_does_not_listen_sees_no_stall(void)
{
    begin_with_defaults(3);
    warm_up();
    fake_nodes[2].delay_us = 20 * MS;
    is_int(acquire(0), REDLOCK_OK, "r05: two decide, the third's answer is due");
    fake_now_us += 1500 * MS;
    is_int(release(100), REDLOCK_OK, "r05: released 1.5 s later");
    fake_pass(&client, 50 * MS);
    is_int(fake_nodes[2].dials, 1, "r05: the third's connection stays: %s", nodes[2].error);
    is_int((int)fake_keys_left(), 0, "r05: and no key");
    is_int(acquire(0), REDLOCK_OK, "r05: once more");
    fake_break(2);
    fake_now_us += 1500 * MS;
    is_int(release(100), REDLOCK_OK, "r05: when it broke meanwhile");
    fake_pass(&client, 50 * MS);
    ok(strstr(nodes[2].error, "stall_ms") == NULL, "r05: it is said that it did: %s",
       nodes[2].error);
}

/* ---- R6 ------------------------------------------------------------------------------------- */

static void r06_a_lost_attempt_ends_when_it_is_lost(void)
{
    uint64_t start;

    begin_with_defaults(5);
    warm_up();
    held_by("other", 0, 2);
    fake_nodes[3].hung = fake_nodes[4].hung = 1;
    start = fake_now_us;
    is_int(acquire(0), REDLOCK_HELD, "r06: held by another on three, two hang");
    ok(since(start) <= 3 * MS, "r06: known after two round trips, %ld us", since(start));
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
    is_int(acquire(0), REFUSED_BY_SEVERAL, "r06: no retries: split");
    is_int((int)fake_count(0, 'S'), 1, "r06 T12: also after a split vote");
    settings.retries = 3;
    begin(3);
    held_by("other", 0, 2);
    is_int(acquire(60000), REDLOCK_HELD, "r06: three retries");
    is_int((int)fake_count(0, 'S'), 4, "r06: four attempts");
    begin_with_defaults(3);
    held_by("other", 0, 2);
    is_int(acquire(0), REDLOCK_HELD, "r06: do not wait");
    is_int((int)fake_count(0, 'S'), 1, "r06: for a holder");
    begin_with_defaults(4);
    held_by("a", 0, 0);
    held_by("b", 1, 1);
    is_int(acquire(0), REDLOCK_CONTENDED, "r06: nor for contention");
    is_int((int)fake_count(0, 'S'), 1 + 5, "r06: but with five quick retries, as redlock.h says");
}

/* The pauses between attempts: 100 ms, growing by half, up to 1 s, each within half of it. */
static void r06_pauses_are_random_and_grow(void)
{
    uint64_t last = 0, shortest = REDLOCK_NEVER, longest = 0;
    unsigned i, expected = 100, wrong = 0, seen = 0;

    begin_with_defaults(1);
    held_by("other", 0, 0);
    is_int(acquire(20000), REDLOCK_TIMEOUT, "r06: wait of 20 s is over");
    for (i = 0; i < fake_logged; i++) {
        uint64_t pause = fake_log[i].at_us - last;
        if (fake_log[i].kind != 'S')
            continue;
        if (last != 0 && fake_log[i].at_us - fake_log[0].at_us < 19000 * MS) {
            pause -= 2000; /* two round trips */
            wrong += pause < expected * 500 || pause > expected * 1500;
            shortest = pause * 100 / expected < shortest ? pause * 100 / expected : shortest;
            longest = pause * 100 / expected > longest ? pause * 100 / expected : longest;
            expected = expected + (expected + 1) / 2 < 1000 ? expected + (expected + 1) / 2 : 1000;
            seen++;
        }
        last = fake_log[i].at_us;
    }
    ok(wrong == 0 && seen > 10, "r06: %u pauses, all within half of what is expected", seen);
    ok(longest > shortest + 40000, "r06: and not all alike");
    ok(last >= fake_log[0].at_us + 19990 * MS && last <= fake_log[0].at_us + 20010 * MS,
       "r06: the last attempt is made when the wait ends");
}

static void r06_two_clients_pause_differently(void)
{
    uint8_t first[20];

    begin_with_defaults(1);
    acquire(0);
    memcpy(first, lock.token, sizeof first);
    release(10);
    acquire(0);
    ok(memcmp(first, lock.token, sizeof first) != 0, "T16: every token is another");
}

/* 5 nodes refuse it for three others; 4 nodes are halved. The others are gone after 5 ms. */
static void r06_split_is_tried_again_quickly(unsigned count)
{
    uint64_t start;

    begin_with_defaults(count);
    warm_up();
    fake_put(0, "k", "a", 5);
    fake_put(1, "k", "b", 5);
    if (count == 5)
        fake_put(2, "k", "c", 5);
    start = fake_now_us;
    is_int(acquire(0), REDLOCK_OK, "r06: a split vote that dissolves within 5 ms");
    ok(fake_count(0, 'S') > 1 && since(start) < 40 * MS, "r06: %u quick attempts, %ld us",
       fake_count(0, 'S'), since(start));
}

/* Without diagnosis a quorum that refuses is a holder: no quick retry. */
static void r06_a_split_is_taken_for_a_holder(void)
{
    begin_with_defaults(5);
    held_by("a", 0, 0);
    held_by("b", 1, 1);
    held_by("c", 2, 2);
    is_int(acquire(0), REDLOCK_HELD, "r06: three of five refuse it: held");
    is_int((int)fake_count(0, 'S'), 1, "r06: one attempt");
    begin_with_defaults(5);
    held_by("a", 0, 1);
    is_int(acquire(0), REDLOCK_OK, "r06: two of five refuse it: acquired");
    begin_with_defaults(4);
    held_by("a", 0, 0);
    held_by("b", 1, 1);
    is_int(acquire(0), REDLOCK_CONTENDED, "r06: two of four grant it, two refuse: split");
    ok(fake_count(0, 'S') > 1, "r06: which is tried again at once: %u attempts",
       fake_count(0, 'S'));
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
    is_int(acquire(0), REFUSED_BY_SEVERAL,
           "r06 T45: refused by all, but no one has a quorum: split");
    begin(5);
    held_by("one", 0, 2);
    held_by("two", 3, 4);
    is_int(acquire(0), REDLOCK_HELD, "r06: one of two has a quorum: held");
    begin(3);
    fake_nodes[0].says = fake_nodes[1].says = "-NOPERM this user has no permissions\r\n";
    is_int(acquire(60000), REDLOCK_DENIED, "r06: permission denied, not waited for");
    ok(has_error(0, "NOPERM"), "r06: in the server's words: %s", nodes[0].error);
    begin(3);
    fake_nodes[0].refuses = fake_nodes[1].refuses = 1;
    is_int(acquire(0), REDLOCK_UNREACHABLE, "r06: two of three refuse the connection");
    ok(has_error(1, "refused"), "r06: %s", nodes[1].error);
    is_int(acquire(500), REDLOCK_UNREACHABLE, "r06: also at the end of the wait: not _TIMEOUT");
    begin(3);
    held_by("one", 0, 2);
    is_int(acquire(500), REDLOCK_TIMEOUT, "r06: a holder for all of the wait");
}

/* An error on a quorum: is it one that a wait may outlast? In the words of servers, some of them from within a
   script. */
static void r06_which_errors_pass(void)
{
    static const struct {
        int outcome;
        const char *says;
    } cases[] = {
        {REDLOCK_DENIED, "-NOAUTH Authentication required.\r\n"},
        {REDLOCK_DENIED, "-NOPERM this user has no permissions\r\n"},
        {REDLOCK_DENIED, "-WRONGPASS invalid username-password pair\r\n"},
        {REDLOCK_DENIED, "-READONLY You can't write against a read only replica.\r\n"},
        {REDLOCK_DENIED, "-WRONGTYPE Operation against a key\r\n"},
        {REDLOCK_DENIED, "-MOVED 1234 127.0.0.1:6379\r\n"},
        {REDLOCK_DENIED, "-ASK 1234 127.0.0.1:6379\r\n"},
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
        fake_nodes[0].says = fake_nodes[1].says = cases[i].says;
        is_int(acquire(500), cases[i].outcome, "r06: %.12s", cases[i].says + 1);
    }
}

/* Two of three do not grant the lock: one because another client has it, one because it is away. The third
   decides whether another client has a quorum. */
static void r06_lost_but_not_known_why(void)
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
            is_int(acquire(0), REDLOCK_HELD, "r06: two of three say who has it");
            is_int((int)fake_keys_left(), 2, "r06: and nothing is left of us");
            is_int(acquire(200), REDLOCK_TIMEOUT, "r06: for all of the wait");
            fake_delete((int)slow, "k");
            is_int(acquire(0), REDLOCK_CONTENDED, "r06: each of two has another");
            fake_nodes[slow].hung = 1;
            is_int(acquire(0), REDLOCK_UNREACHABLE, "r06: one of three is no quorum");
        }
}

static void r06_wait_gets_it_when_it_is_free(void)
{
    uint64_t start;

    begin_with_defaults(5);
    fake_put(0, "k", "other", 700);
    fake_put(1, "k", "other", 700);
    fake_put(2, "k", "other", 700);
    start = fake_now_us;
    is_int(acquire(5000), REDLOCK_OK, "r06: waits for the holder's ttl to pass");
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
    is_int(acquire(0), REDLOCK_OK, "T13: all idle connections were dead: dialled again, and held");
    for (i = 0; i < 3; i++)
        fake_break(i);
    is_int(extend(), REDLOCK_OK, "T13: the same for an extension");
    for (i = 0; i < 3; i++)
        fake_break(i);
    is_int(release(100), REDLOCK_OK, "T13 T40: and for a release");
    fake_pass(&client, 10 * MS);
    is_int((int)fake_keys_left(), 0, "T13: nothing left");
}

/* Each attempt fails at once and is retried at once: this must not go on for ever within one tick. */
static void r06_no_pause_still_ends(void)
{
    uint64_t start;
    int i;

    begin_without_pauses(3);
    for (i = 0; i < 3; i++)
        fake_nodes[i].refuses = 1;
    start = fake_now_us;
    is_int(acquire(5), REDLOCK_UNREACHABLE, "r06: no pause and no node: it ends");
    ok(since(start) >= 5 * MS && since(start) < 6 * MS, "r06: with the wait, after %ld us",
       since(start));
}

/* Pauses are multiples of the round trip. A reply that waits until the next call makes no round trip
   longer. */
static void r06_round_trips_are_not_idle_time(void)
{
    int i;

    begin_with_defaults(3);
    for (i = 0; i < 3; i++)
        fake_nodes[i].delay_us = i < 2 ? MS : 3 * MS;
    for (i = 0; i < 20; i++) {
        is_int(acquire(0), REDLOCK_OK, "r06: held by two of three");
        fake_now_us += 500 * MS; /* the third answers meanwhile */
        is_int(release(100), REDLOCK_OK, "r06: and released");
        fake_now_us += 500 * MS;
    }
    for (i = 0; i < 2; i++)
        is_int((int)nodes[i].rtt_us, (int)MS, "r06: node %d: its delay", i);
    is_int((int)nodes[2].rtt_us, 3 * MS, "r06: node 2: measured by its handshake only");
    fake_nodes[2].delay_us = MS;
    fake_nodes[0].hung = 1;
    is_int(acquire(0), REDLOCK_OK, "r06: now it is needed");
    ok(nodes[2].rtt_us >= MS && nodes[2].rtt_us < 3 * MS, "r06: and measured: %lu us",
       (unsigned long)nodes[2].rtt_us);
}

/* ---- R7 ------------------------------------------------------------------------------------- */

/* `count` nodes on which another has "k", and a lock that waits for it and pauses for seconds. */
static void begin_waiting(unsigned count)
{
    memset(&settings, 0, sizeof settings);
    settings.retry_delay_ms = settings.retry_delay_max_ms = 5000;
    begin(count);
    held_by("other", 0, (int)count - 1);
    redlock_acquire_start(&client, &lock, 60000);
    fake_pass(&client, 100 * MS);
}

/* Four nodes, another client has three: the attempt fails with two refusals and a grant, and only the
   replies to its rollback tell that this is no contention. Found by sim.c. */
static void r06_even_nodes_tell_a_holder_too(void)
{
    begin_with_defaults(4);
    held_by("another", 1, 3);
    acquire(0);
    release(100);
    fake_nodes[3].delay_us = 3 * MS;
    is_int(acquire(0), REDLOCK_DIAGNOSIS ? REDLOCK_HELD : REDLOCK_CONTENDED,
           "r06: three of four are another's, one answers late: held");
    fake_delete(3, "k");
    is_int(acquire(0), REDLOCK_CONTENDED, "r06: two of four are another's: split");
}

static void r07_pushes_end_the_pause(void)
{
    int i;

    begin_waiting(5);
    is_int((int)fake_count(0, 'S'), 1, "r07: one attempt, and a pause of seconds");
    fake_delete(0, "k");
    fake_delete(1, "k");
    fake_pass(&client, 100 * MS);
    is_int((int)fake_count(0, 'S'), 1, "r07: two of five free: it goes on waiting");
    fake_delete(2, "k");
    fake_pass(&client, 10 * MS);
    is_int(lock.status, REDLOCK_OK, "r07: three of five free: it has the lock within milliseconds");
    is_int((int)fake_count(0, 'S'), 2, "r07: with one more attempt");
    begin_waiting(3);
    for (i = 0; i < 3; i++) {
        fake_delete(i, "k");
        held_by("another", i, i);
    }
    fake_pass(&client, 100 * MS);
    is_int(lock.status, REDLOCK_PENDING, "r07: a push is a hint: another was faster");
    is_int((int)fake_count(0, 'S'), 2, "r07: after one attempt more it goes on waiting");
    deleted_on(0, 2);
    fake_pass(&client, 10 * MS);
    is_int(lock.status, REDLOCK_OK, "r07: and is woken again");
}

/* A waiter that failed for lack of voters is not helped by a free key. Otherwise waiters notify one another
   with their releases, as fast as the network is: found by sim.c. */
static void r07_not_for_want_of_voters(void)
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
    deleted_on(0, 2);
    fake_pass(&client, 100 * MS);
    is_int((int)fake_count(0, 'S'), 1, "r07: nobody votes: no attempt before its time");
}

static void r07_wakes_at_random_moments(void)
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
        deleted_on(0, 2);
        at[n] = fake_now_us;
        fake_pass(&client, 10 * MS);
        at[n] = fake_logged > 0 ? fake_log[0].at_us - at[n] : 0;
        for (j = 0; j < n; j++)
            same += at[j] / 100 == at[n] / 100;
    }
    ok(same < 60, "r07: those that are woken do not ask all at one moment (%u pairs of 190)", same);
}

/* The lock is gone from all nodes, and another's at once. Microseconds until the next attempt. */
static long woken_in_vain(void)
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

/* If all waiters tried at each release, they would get in each other's way. */
static void r07_in_vain_stands_back(void)
{
    unsigned i, soon = 0, later = 0;
    long first;

    begin_waiting(3);
    first = woken_in_vain();
    ok(first >= 0 && first < 2 * (long)MS, "r07: woken for the first time: at once (%ld us)",
       first);
    for (i = 0; i < 5; i++)
        woken_in_vain();
    for (i = 0; i < 60; i++) {
        long us = woken_in_vain();
        soon += us >= 0 && us < 2 * (long)MS;
        later += us >= 2 * (long)MS;
    }
    ok(soon >= 8 && later >= 20 && soon + later == 60,
       "r07: often in vain: at once %u times, later %u, of 60", soon, later);
}

static void r07_without_pushes(void)
{
    unsigned i;

    begin_with_defaults(3);
    for (i = 0; i < 3; i++)
        fake_nodes[i].server.no_pushes = 1;
    held_by("other", 0, 2);
    redlock_acquire_start(&client, &lock, 60000);
    fake_pass(&client, 10 * MS);
    deleted_on(0, 2);
    fake_pass(&client, 30 * MS);
    is_int(lock.status, REDLOCK_PENDING, "r07: no permission for CLIENT TRACKING: not told");
    fake_pass(&client, 200 * MS);
    is_int(lock.status, REDLOCK_OK, "r07: and got after the pause");
}

static void r07_left_out(void)
{
    begin_waiting(3);
    deleted_on(0, 2);
    fake_pass(&client, 100 * MS);
    is_int(lock.status, REDLOCK_PENDING, "r07 left out: a waiter is not told");
    fake_pass(&client, 10000 * MS);
    is_int(lock.status, REDLOCK_OK, "r07 left out: and has it after its pause");
    is_int((int)(fake_count(-1, 'T') + fake_count(-1, 'C')), 0,
           "r07 left out: no server is asked to track keys");
}

/* "k" is gone from all nodes. Is the waiter notified? */
static int is_told(void)
{
    deleted_on(0, 2);
    fake_pass(&client, 10 * MS);
    return lock.status == REDLOCK_OK;
}

/* Servers need not remember what clients have read for any other purpose. */
static void r07_who_is_refused_asks_to_be_told(void)
{
    static const struct {
        const char *says;
        int told, asked_again;
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
    is_int((int)fake_count(-1, 'C'), 0, "r07: who gets it does not ask to be told");
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin_with_defaults(3);
        warm_up();
        for (n = 0; n < 3; n++)
            fake_nodes[n].server.caching = cases[i].says;
        held_by("other", 0, 2);
        redlock_acquire_start(&client, &lock, 60000);
        fake_pass(&client, 10 * MS);
        is_int((int)fake_count(-1, 'C'), 3, "r07: who is refused asks for it");
        is_int(is_told(), cases[i].told, "r07: told, as answered: %.7s",
               cases[i].says != NULL ? cases[i].says : "+OK");
        fake_pass(&client, 2000 * MS);
        is_int(lock.status, REDLOCK_OK, "r07: after a pause at the latest");
        redlock_next_completed(&client);
        release(100);
        held_by("other", 0, 2);
        fake_logged = 0;
        acquire(0);
        fake_pass(&client, 10 * MS);
        is_int((int)fake_count(-1, 'C'), cases[i].asked_again ? 3 : 0, "r07: asked again, if so");
        is_int((int)fake_count(-1, 'D'), 3, "r07: and undone");
    }
    begin_with_defaults(3);
    warm_up();
    fake_nodes[0].server.caching = ":1\r\n";
    held_by("other", 0, 2);
    is_int(acquire(0), REDLOCK_HELD, "r07: to be told is not needed");
    fake_pass(&client, 10 * MS);
    ok(has_error(0, "unexpected reply"), "r05: nonsense disconnects: %s", nodes[0].error);
}

static void r07_other_keys(void)
{
    char key[64];
    int i;

    begin_waiting(3);
    for (i = 0; i < 3; i++) {
        fake_nodes[i].session.tracked[1].bytes[0] = 'l'; /* it once read that one */
        fake_nodes[i].session.tracked[1].size = 1;
        fake_put(i, "l", "x", 60000);
        fake_delete(i, "l");
    }
    fake_pass(&client, 100 * MS);
    is_int((int)fake_count(0, 'S'), 1, "r07: another key is no reason to wake up");
    memset(key, 'k', 63); /* the decoder keeps less than that of a string */
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
    is_int(lock.status, REDLOCK_OK, "r07: a long key is");
}

/* Five waiters for one lock in one client: one of them is notified, the next one after its release. */
static void r07_one_is_woken(void)
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
    deleted_on(0, 2);
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
    is_int((int)wrong, 0, "r07: five in one client get it in turn, at once after one another");
    is_int((int)fake_count(0, 'S'), 5, "r07: with one attempt each");
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
       "r08: by the time that had passed");
    is_int(lock.extended, 1, "r08: counted");
    is_int((int)votes(lock.members), 5, "r08: all five are members");
    fake_transmit_us = 200 * MS;
    before = fake_now_us;
    extend();
    is_int((int)(lock.valid_until_us - before), 10000 * MS - 102 * MS - 1,
           "r08: from before the first byte of the extension");
}

/* Two nodes run the SET after the lock has ended: they hold our key, but prove nothing. */
static void r08_only_members_count(void)
{
    begin_with_defaults(5);
    warm_up();
    lock.ttl_ms = 500;
    fake_nodes[3].delay_us = fake_nodes[4].delay_us = 600 * MS;
    is_int(acquire(0), REDLOCK_OK, "r08: three grant in time");
    fake_pass(&client, 610 * MS); /* the two others after the end */
    is_int((int)votes(lock.members), 3, "r08: who granted after the end is no member");
    fake_nodes[3].delay_us = fake_nodes[4].delay_us = 1000;
    fake_put(0, "k", (const char *)fake_log[0].token, 5000);
    fake_put(3, "k", (const char *)fake_log[0].token, 5000);
    fake_put(4, "k", (const char *)fake_log[0].token, 5000);
    is_int(extend(), REDLOCK_LOST, "r08: our key on three nodes, one of them a member: lost");
    is_int((int)redlock_remaining_ms(&client, &lock), 0, "r08: and over");
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
    fake_nodes[3].deaf_to_set = fake_nodes[4].deaf_to_set = 1;
    fake_nodes[3].says = fake_nodes[4].says = NULL;
    acquire(0);
    fake_break(3);
    fake_break(4);
    fake_pass(&client, 10 * MS);
    fake_nodes[3].deaf_to_set = fake_nodes[4].deaf_to_set = 0;
    is_int((int)votes(lock.members), 3, "r08: two SETs were run and never answered");
    fake_nodes[0].delay_us = fake_nodes[1].delay_us = fake_nodes[2].delay_us = 5 * MS;
    is_int(extend(), REDLOCK_OK, "r08: extended by the members");
    is_int((int)votes(lock.members), 3, "r09: a SET may have run after the round began");
    is_int(extend(), REDLOCK_OK, "r08: and again");
    is_int((int)votes(lock.members), 5, "r08: the others confirmed it, and are members now");
    fake_nodes[0].hung = fake_nodes[1].hung = 1;
    is_int(extend(), REDLOCK_OK, "r08: and count in the next round");
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
    ok(lock.valid_until_us == before, "r08 T23: the old validity stands");
    is_int((int)fake_count(-1, 'D'), 0, "r08 T23: nothing is undone");
    for (i = 0; i < 3; i++)
        fake_resume((int)i);
    is_int(extend(), REDLOCK_OK, "r08 T23: and the next one works");
}

static void r08_extension_never_shortens(void)
{
    begin_with_defaults(3);
    lock.ttl_ms = 60000;
    acquire(0);
    fake_pass(&client, 10 * MS);
    lock.ttl_ms = 1000;
    is_int(extend(), REDLOCK_OK, "r08 T31: an extension by 1 s while 60 s are left");
    ok(redlock_remaining_ms(&client, &lock) > 59000, "r08 T31: the 60 s stand here");
    ok(fake_find(0, "k", 1)->until_us > fake_now_us + 59000 * MS, "r08 T31: and on the node");
    fake_pass(&client, 59000 * MS);
    lock.ttl_ms = 5000;
    is_int(extend(), REDLOCK_OK, "r08: 5 s more when 1 s is left is no shortening");
}

static void r08_compares(void)
{
    unsigned i;

    begin_with_defaults(3);
    is_int(extend(), REDLOCK_LOST, "r08 T20: extension of what was never acquired");
    is_int((int)fake_logged, 0, "r08 T20: asks nobody");
    acquire(0);
    fake_pass(&client, 10 * MS);
    for (i = 0; i < 2; i++)
        fake_nodes[i].server.keys[0].name.size = 0;
    held_by("other", 0, 1);
    is_int(extend(), REDLOCK_LOST, "r08 T22: another has it on two of three");
    is_int((int)redlock_remaining_ms(&client, &lock), 0, "r08: it is over at once");
    ok(memcmp(fake_find(0, "k", 1)->value, "other", 5) == 0,
       "r08 T21: and the other's is untouched");
    is_int(release(100), RELEASED_TAKEN, "r11: a release says that another has it");
    is_int((int)fake_keys_left(), 2, "r11: and takes away only what was ours");
}

/* The first SET is still unanswered on a hung node when the lock is lost and acquired anew. */
static void r05_a_lost_lock_leaves_no_votes(void)
{
    unsigned i;

    begin_with_defaults(3);
    warm_up();
    fake_nodes[2].hung = 1;
    is_int(acquire(0), REDLOCK_OK, "r05: two of three, the third has not answered");
    fake_nodes[0].server.keys[0].name.size = fake_nodes[1].server.keys[0].name.size = 0;
    held_by("other", 1, 1);
    is_int(extend(), REDLOCK_LOST, "r05: lost");
    redlock_acquire_start(&client, &lock, 0);
    redlock_tick(&client);
    fake_nodes[2].drip = 1;
    fake_resume(2); /* answers OK to the first SET, and to what came after it */
    fake_now_us += MS;
    for (i = 0; i < 5; i++)
        redlock_handle_events(&client, 2, REDLOCK_READABLE);
    redlock_tick(&client);
    is_int(lock.granted & 4, 0, "r05: the grant of the lost lock is no vote for the new one");
    fake_pass(&client, 100 * MS);
    is_int(lock.status, REDLOCK_OK, "r05: the answer to the new SET is");
}

static void r08_extension_that_comes_too_late(void)
{
    begin_with_defaults(3);
    warm_up();
    acquire(0);
    fake_pass(&client, 10 * MS);
    fake_sleep_us = 9900 * MS;
    is_int(extend(), REDLOCK_UNREACHABLE, "r08 T34: the process slept through the new validity");
    is_int((int)redlock_remaining_ms(&client, &lock), 0, "r08: nothing is left of the old one");
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
    is_int(lock.status, REDLOCK_CANCELLED, "r08: cancelled before it was answered");
    ok(redlock_next_completed(&client) == &lock, "r08: and is told so");
    ok(lock.valid_until_us == valid_until_us && votes(lock.members) == 3,
       "r08: the old validity stands, the answers are dropped");
    is_int(extend(), REDLOCK_OK, "r08: and it can be extended");
}

static void r08_no_longer_than_what_is_left(void)
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

/* Held on nodes 0 and 1 of three; node 2 answers `delay_us` later. */
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

static void r08_answers_that_come_late(void)
{
    struct redlock_lock before;
    int forgets;

    hold_two_of_three(20 * MS);
    is_int(extend(), REDLOCK_OK, "r08: two of three confirm it");
    is_int(lock.members, 3, "r08: the third has not answered yet");
    fake_pass(&client, 50 * MS);
    is_int(fake_find(2, "k", 1) != NULL, REDLOCK_REPAIR,
           "r09: the key was gone there, and is repaired");
    is_int(lock.members, 3, "r09: but that came after the round: no member");
    is_int(extend(), REDLOCK_OK, "r08: two of three confirm it again");
    fake_pass(&client, 30 * MS);
    is_int(lock.members, REDLOCK_REPAIR ? 7 : 3, "r08: and the third, later: a member");
    fake_delete(2, "k");
    extend();
    fake_pass(&client, 30 * MS);
    is_int(lock.members, 3, "r08: it was gone there: no member");
    hold_two_of_three(11000 * MS);
    is_int(extend(), REDLOCK_OK, "r08: two of three confirm it");
    fake_pass(&client, 12000 * MS);
    is_int(lock.members, 3, "r08: who answers when it is over does not become a member");
    for (forgets = 0; forgets < 2; forgets++) {
        hold_two_of_three(20 * MS);
        extend();
        if (forgets)
            redlock_abandon(&client, &lock);
        else
            is_int(release(100), REDLOCK_OK, "r08: released");
        fake_pass(&client, 5 * MS);
        before = lock;
        fake_pass(&client, 100 * MS);
        ok(memcmp(&before, &lock, sizeof lock) == 0,
           "r08: nothing is written to what is given back");
    }
}

/* "Set" and "not yours any more" in one piece: the later word counts. */
static void r08_a_late_grant_and_its_loss(void)
{
    begin_with_defaults(3);
    warm_up();
    fake_nodes[2].delay_us = 20 * MS;
    is_int(acquire(0), REDLOCK_OK, "r08: held on two of three, and on the third");
    fake_nodes[2].server.used = 0;
    held_by("another", 2, 2);
    is_int(extend(), REDLOCK_OK, "r08: where another has it now");
    fake_pass(&client, 50 * MS);
    is_int(lock.members, 3, "r08: the third is no member");
}

static void r09_no_healing_of_others_after_the_end(void)
{
    hold_two_of_three(MS);
    held_by("another", 2, 2);
    fake_pass(&client, 9900 * MS); /* over for us, with the drift; not for the servers */
    fake_delete(2, "k");
    is_int(extend(), REDLOCK_OK, "r09: extended after the end: the members still have it");
    fake_pass(&client, 10 * MS);
    ok(fake_find(2, "k", 1) == NULL, "r09: but it is set on no other node");
}

/* An extension that runs long after it was sent: the lock has expired, another client has had it and has
   released it. It must not create the key again: a success would prove that we held the lock all the time.
   Found by sim.c. */
static void r09_nothing_comes_back_from_the_dead(void)
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
    is_int(extend(), REDLOCK_LOST, "r09: its time is over, and it is not set again");
    fake_pass(&client, 10 * MS);
    is_int((int)fake_keys_left(), 0, "r09: no key is left");
}

/* A node whose reply to a repair never came may be repaired at any time: what it says then proves nothing,
   unless it says so on the same connection, where replies come in order. */
static void r09_a_healing_without_an_answer(void)
{
    int breaks; /* 1: the connection; 2: the server, and another process comes */

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
        fake_nodes[2].hung = 1; /* after it has said that the key is gone */
        fake_pass(&client, 10 * MS);
        is_int(lock.status, REDLOCK_OK, "r09: extended there, while the third hangs");
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
        is_int(extend(), REDLOCK_OK, "r09: and again");
        is_int(
            lock.members, breaks == 0 || (breaks == 2 && REDLOCK_RESTART_GUARD) ? 7 : 3, "r09: %s",
            breaks == 0   ? "the third has answered all: it is a member"
            : breaks == 1 ? "the third's connection broke: it is none"
                          : "the third is another process now: it is a member, if that is known");
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
    is_int(extend(), REDLOCK_EXTEND_LIMIT, "r10: and no fourth");
    is_int((int)fake_logged, 0, "r10: asks nobody");
    ok(redlock_remaining_ms(&client, &lock) > 9000, "r10: what is left is left");
    release(10);
    is_int(acquire(0), REDLOCK_OK, "r10: acquired anew");
    is_int(extend(), REDLOCK_OK, "r10: it counts from none");
    settings.extend_max = REDLOCK_NONE;
    begin(3);
    acquire(0);
    is_int(extend(), REDLOCK_EXTEND_LIMIT, "r10: REDLOCK_NONE: none at all");
}

/* ---- R9 ------------------------------------------------------------------------------------- */

/* Node i restarts without its keys. */
static void forget_all(int i)
{
    fake_nodes[i].server.used = 0;
    fake_break(i);
}

static void r09_an_extension_heals(void)
{
    int i, round, lost = 0;

    begin_with_defaults(5);
    acquire(0);
    for (round = 0; round < 4; round++)
        for (i = 0; i < 5; i++) {
            forget_all(i);
            fake_pass(&client, 1000 * MS);
            lost += extend() != REDLOCK_OK;
            fake_pass(&client, 20 * MS);
            lost += extend() != REDLOCK_OK;
            fake_pass(&client, 20 * MS);
            lost += fake_find(i, "k", 1) == NULL || votes(lock.members) != 5;
        }
    is_int(lost, 0, "r09: five nodes forget it, one after the other, four times: still held");
    is_int((int)fake_count(-1, 'S'), 5, "r09: without a new SET");
    release(100);
    fake_pass(&client, 10 * MS);
    is_int((int)fake_keys_left(), 0, "r09: and healed keys are released with the others");
}

static void r09_healed_nodes_do_not_count_at_once(void)
{
    begin_with_defaults(5);
    acquire(0);
    fake_pass(&client, 10 * MS);
    is_int((int)votes(lock.members), 5, "r09: five members");
    forget_all(0);
    forget_all(1);
    forget_all(2);
    is_int(extend(), REDLOCK_LOST, "r09: three forgot it: another may have had it meanwhile");
    fake_pass(&client, 10 * MS);
    is_int((int)fake_keys_left(), 0, "r09: what was healed and what was left is cleared away");
    begin_with_defaults(3);
    acquire(0);
    fake_pass(&client, 10 * MS);
    forget_all(0);
    fake_nodes[1].hung = 1;
    is_int(extend(), REDLOCK_UNREACHABLE, "r09: one forgot it, one hangs");
    is_int((int)votes(lock.members), 2, "r09: what was healed in vain is no member");
    fake_resume(1);
    fake_nodes[2].hung = 1;
    is_int(extend(), REDLOCK_UNREACHABLE, "r09: nor does it count in the next round");
    fake_resume(2);
    fake_nodes[0].delay_us = 0;
    fake_nodes[2].delay_us = 2 * MS;
    is_int(extend(), REDLOCK_OK, "r09: but a round of two old members makes it one");
    is_int((int)votes(lock.members), 3, "r09: of three");
    fake_nodes[1].hung = 1;
    is_int(extend(), REDLOCK_OK, "r09: and then it counts");
}

static void r09_a_healed_node_counts_when_it_has_confirmed(void)
{
    begin_with_defaults(3);
    acquire(0);
    fake_pass(&client, 10 * MS);
    fake_nodes[2].delay_us = 2 * MS;
    forget_all(0);
    fake_nodes[0].delay_us = 100;
    is_int(extend(), REDLOCK_OK, "r09: two members confirm it, the third is healed");
    fake_nodes[1].hung = 1;
    is_int(extend(), REDLOCK_UNREACHABLE, "r09: which proves nothing of the time before that");
    fake_resume(1);
    fake_pass(&client, 20 * MS);
    is_int(extend(), REDLOCK_OK, "r09: it confirms the next round");
    fake_pass(&client, 20 * MS);
    fake_nodes[1].hung = 1;
    is_int(extend(), REDLOCK_OK, "r09: and counts then, instead of one that hangs");
}

static void r09_no_healing_after_the_end(void)
{
    begin_with_defaults(3);
    acquire(0);
    fake_pass(&client, 9950 * MS); /* drift: it is over for us, not for the servers */
    is_int((int)redlock_remaining_ms(&client, &lock), 0, "r09: over");
    forget_all(0);
    is_int(extend(), REDLOCK_OK, "r08: two members still have it: nobody else had it meanwhile");
    fake_pass(&client, 5 * MS);
    ok(fake_find(0, "k", 1) != NULL, "r09: and as it is held again, it is repaired");
}

/* Without repair the key is not created again. A node that restarts empty is never a member again: the lock
   lives as long as a quorum of members is left. */
static void r09_left_out(void)
{
    int i;

    begin_with_defaults(5);
    acquire(0);
    fake_pass(&client, 10 * MS);
    for (i = 0; i < 2; i++) {
        forget_all(i);
        is_int(extend(), REDLOCK_OK, "r09 left out: %d of five forgot it: extended", i + 1);
        fake_pass(&client, 20 * MS);
        is_int(extend(), REDLOCK_OK, "r09 left out: and once more");
        fake_pass(&client, 20 * MS);
        ok(fake_find(i, "k", 1) == NULL, "r09 left out: the key is not created again");
        is_int((int)votes(lock.members), 4 - i, "r09 left out: the node is no member any more");
    }
    forget_all(2);
    is_int(extend(), REDLOCK_LOST, "r09 left out: the third of five forgot it: lost");
    fake_pass(&client, 20 * MS);
    is_int((int)fake_keys_left(), 0, "r09 left out: what was left is cleared away");
    for (i = 0; i < (int)fake_logged && !fake_log[i].heals; i++)
        continue;
    is_int(i, (int)fake_logged, "r09 left out: no extension could have created the key");
}

/* ---- R10: automatic extension --------------------------------------------------------------- */

static void begin_kept(unsigned count, unsigned extensions)
{
    begin_with_defaults(count);
    lock.ttl_ms = 3000;
    acquire(0);
    fake_pass(&client, 10 * MS);
    redlock_next_completed(&client);
    is_int(redlock_auto_extend_start(&client, &lock, extensions), REDLOCK_PENDING, "r10: kept");
}

static void r10_kept_by_itself(void)
{
    unsigned i, gaps = 0;

    begin_kept(5, 1000);
    for (i = 0; i < 1000; i++) {
        fake_pass(&client, 100 * MS);
        gaps += redlock_remaining_ms(&client, &lock) < 1900;
    }
    is_int((int)gaps, 0, "r10: 100 s: two thirds of 3 s are always left");
    is_int(lock.status, REDLOCK_PENDING, "r10: in progress");
    ok(lock.extended >= 99 && lock.extended <= 101, "r10: extended each second: %u", lock.extended);
    redlock_release_start(&client, &lock, 1000);
    is_int((int)redlock_remaining_ms(&client, &lock), 0, "r10: released: not held from then on");
    fake_logged = 0;
    fake_pass(&client, 5000 * MS);
    is_int((int)fake_count(-1, 'E'), 0, "r10: no extension after the release was started");
    is_int(lock.status, REDLOCK_OK, "r10: released");
    is_int((int)fake_keys_left(), 0, "r10: everywhere");
}

static void r10_kept_up_to_a_limit(void)
{
    begin_kept(3, 4);
    fake_pass(&client, 4900 * MS);
    is_int(lock.status, REDLOCK_PENDING, "r10: four extensions");
    fake_pass(&client, 200 * MS);
    is_int(lock.status, REDLOCK_EXTEND_LIMIT, "r10: the limit is told when a fifth would be due");
    ok(redlock_next_completed(&client) == &lock, "r10: as the end of an operation");
    ok(redlock_remaining_ms(&client, &lock) > 1800, "r10: and the lock is still held: %lu ms",
       (unsigned long)redlock_remaining_ms(&client, &lock));
    is_int(extend(), REDLOCK_OK, "r10: it can be extended by hand");
    is_int(release(100), REDLOCK_OK, "r10: and released");
}

static void r10_loss_is_told_by_the_clock(void)
{
    uint64_t until;
    unsigned i;

    begin_kept(5, 1000);
    fake_pass(&client, 1500 * MS);
    until = lock.valid_until_us;
    for (i = 0; i < 5; i++)
        fake_nodes[i].hung = 1;
    fake_pass(&client, until - fake_now_us - 1 * MS);
    is_int(lock.status, REDLOCK_PENDING, "r10: all hang: not lost before the validity is over");
    ok(fake_count(-1, 'E') == 0 || lock.extended == 1, "r10: though extensions failed");
    fake_pass(&client, 1 * MS);
    is_int(lock.status, REDLOCK_LOST, "r10: lost when it is over, to the millisecond");
    ok(fake_now_us <= until + 1, "r10: not later");
    is_int((int)redlock_remaining_ms(&client, &lock), 0, "r10: nothing is left");
}

/* Whatever the caller's settings for retries. */
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
        is_int(lock.status, REDLOCK_LOST, "r10 T25: and its loss is told");
    }
}

/* An old handle of the same key is released: the newer one goes on. */
static void r10_two_of_one_key(void)
{
    struct redlock_lock old;

    begin_with_defaults(3);
    redlock_lock_init(&old, "k", 1, 10000);
    redlock_acquire(&client, &old, 0);
    fake_pass(&client, 11000 * MS); /* its time is over */
    acquire(0);
    redlock_auto_extend_start(&client, &lock, 1000);
    is_int((int)redlock_release(&client, &old, 100), RELEASED_TAKEN, "r10 T29: a stale handle");
    fake_pass(&client, 20000 * MS);
    ok(lock.status == REDLOCK_PENDING && lock.extended >= 5,
       "r10 T29: the newer one was extended %u times since", lock.extended);
}

static void r10_kept_through_failures(void)
{
    static const char *const says[] = {
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

    for (n = 0; n < sizeof says / sizeof *says; n++) {
        begin_kept(3, 1000);
        for (i = 0; i < 3; i++)
            fake_nodes[i].says = says[n];
        fake_pass(&client, 2500 * MS);
        is_int(lock.status, REDLOCK_PENDING, "r10: \"%.12s\" is no loss", says[n]);
        for (i = 0; i < 3; i++)
            fake_nodes[i].says = NULL;
        fake_pass(&client, 2500 * MS);
        ok(lock.status == REDLOCK_PENDING && redlock_remaining_ms(&client, &lock) > 1500,
           "r10: and it is kept once that is over");
    }
}

/* The growing pauses between connects end before the lock does. */
static void r10_kept_though_nodes_come_back_late(void)
{
    unsigned n, i, kept = 0;

    for (n = 0; n < 50; n++) {
        begin_kept(3, 1000);
        for (i = 0; i < 3; i++) {
            fake_nodes[i].refuses = 1;
            fake_break((int)i);
        }
        fake_pass(&client, (2300 + n * 10) * MS);
        for (i = 0; i < 3; i++)
            fake_nodes[i].refuses = 0;
        fake_pass(&client, 2500 * MS);
        kept += lock.status == REDLOCK_PENDING;
    }
    is_int((int)kept, 50, "r10 r05: kept when nodes come back 150 to 640 ms before its end");
}

/* Extensions that fail at once, without a pause between them and up to the last microsecond. */
static void r10_failing_at_once_is_no_loop(void)
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
    is_int(lock.status, REDLOCK_PENDING, "r10: all refuse: not lost before the validity is over");
    ok(fake_waits < 20000, "r10: and it is no loop without a pause: %u waits", fake_waits);
    fake_pass(&client, 2);
    is_int(lock.status, REDLOCK_LOST, "r10: lost when it is over");
}

static void r10_lost_to_another(void)
{
    int i;

    begin_kept(3, 1000);
    for (i = 0; i < 2; i++) {
        fake_delete(i, "k");
        held_by("other", i, i);
    }
    fake_pass(&client, 1200 * MS);
    is_int(lock.status, REDLOCK_LOST, "r10 T27: taken by another: lost at the next extension");
    fake_logged = 0;
    fake_pass(&client, 5000 * MS);
    is_int((int)fake_count(-1, 'E'), 0, "r10 T27: and not extended any more");
    ok(fake_find(0, "k", 1) != NULL && fake_find(2, "k", 1) == NULL,
       "r10: the other's key stays, what was ours is cleared away");
}

/* Lost because no quorum could be asked during its whole validity. A late repair has created the key again
   on one node since then, but only after the end. */
static void r10_lost_is_not_released(void)
{
    char mine[2 * sizeof lock.token + 1];
    int i;

    begin_kept(5, 1000);
    snprintf(mine, sizeof mine, "%.40s", fake_find(0, "k", 1)->value);
    deleted_on(1, 2);
    for (i = 3; i < 5; i++) {
        fake_nodes[i].refuses = 1;
        fake_break(i);
    }
    fake_pass(&client, 20000 * MS);
    is_int(lock.status, REDLOCK_LOST, "r10: one of five is left: lost");
    redlock_next_completed(&client);
    fake_put(0, "k", mine, 10000);
    is_int(release(100), REDLOCK_EXPIRED, "r11: what was lost is not released, but gone");
    is_int((int)fake_keys_left(), 0, "r11: and deleted where it was set again");
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

/* The answers to an extension that is under way are not taken for those to the release. */
static void r10_release_while_extending(void)
{
    int i;

    begin_kept(3, 100);
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
    is_int(lock.status, RELEASED_TAKEN,
           "r10: extended, taken, released: the release says the truth");
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
    is_int((int)fake_count(0, 'E'), 9, "r10 T26: locked 200 times before: still one each second");
}

static void r10_left_out(void)
{
    begin_with_defaults(3);
    acquire(0);
    fake_pass(&client, 10 * MS);
    fake_logged = 0;
    is_int(redlock_auto_extend_start(&client, &lock, 1), REDLOCK_INVALID_ARGUMENT,
           "r10 left out: no automatic extension");
    ok(has_invalid("extensions"), "r10 left out: and it is said why: %s",
       redlock_invalid_argument(&client));
    fake_pass(&client, 5000 * MS);
    is_int((int)fake_logged, 0, "r10 left out: nothing is sent");
    is_int(lock.status, REDLOCK_OK, "r10 left out: it is held as before");
    is_int(extend(), REDLOCK_OK, "r10 left out: it can be extended by hand");
    is_int(release(100), REDLOCK_OK, "r10 left out: and released");
}

static void r10_bad_keeps(void)
{
    begin_with_defaults(3);
    is_int(redlock_auto_extend_start(&client, &lock, 1), REDLOCK_LOST, "r10: what is not held");
    acquire(0);
    is_int(redlock_auto_extend_start(&client, &lock, 0), REDLOCK_INVALID_ARGUMENT,
           "r10: no extensions");
    is_int(redlock_auto_extend_start(&client, &lock, 65535), REDLOCK_INVALID_ARGUMENT,
           "r10: too many");
    is_int(redlock_auto_extend_start(&client, &lock, 65534), REDLOCK_PENDING, "r10: the most");
    is_int(redlock_auto_extend_start(&client, &lock, 1), REDLOCK_INVALID_ARGUMENT,
           "r10: kept already");
    is_int(redlock_extend_start(&client, &lock), REDLOCK_INVALID_ARGUMENT,
           "r10: extended by itself");
    is_int(redlock_acquire_start(&client, &lock, 0), REDLOCK_INVALID_ARGUMENT, "r10: acquired");
    redlock_abandon(&client, &lock);
    is_int(lock.status, REDLOCK_PENDING, "r10: a kept lock is not forgotten");
}

/* ---- R12 to R14 ----------------------------------------------------------------------------- */

static void r12_greeting(void)
{
    unsigned i, first = 0;

    begin_with_defaults(3);
    for (i = 0; i < 3; i++) {
        nodes[i].password = fake_nodes[i].server.password = "secret\r\n$1";
        nodes[i].database = 7;
    }
    fake_nodes[1].server.old = 1;
    fake_nodes[1].delay_us = 2 * MS;
    is_int(acquire(0), REDLOCK_OK, "r12: HELLO, AUTH and SELECT, and then the lock");
    is_int((int)votes(lock.members), 2, "r12: by the two that know HELLO");
    fake_pass(&client, 20 * MS);
    is_int(extend(), REDLOCK_OK, "r12: extended");
    fake_pass(&client, 20 * MS);
    is_int(fake_nodes[1].dials, 2, "r12: an old server is dialled again, for AUTH to come first");
    is_int(fake_nodes[0].session.database + fake_nodes[1].session.database +
               fake_nodes[2].session.database,
           21, "r12: all in database 7");
    for (i = 0; i < fake_logged && fake_log[i].kind != 'S'; i++)
        first += fake_log[i].node == 0 && strchr("HLI", fake_log[i].kind) != NULL;
    is_int((int)first, 2 + REDLOCK_RESTART_GUARD, "r12: the whole greeting is there before a SET");
    fake_break(1);
    extend();
    fake_pass(&client, 20 * MS);
    is_int(fake_nodes[1].dials, 3, "r12: it is remembered what it does not know");
}

/* Without RESP3 there is no HELLO: AUTH, with a user if there is one, then SELECT. One of them is always
   sent, as a hung server accepts connections (R5). Replies are RESP2. A replica is noticed when it refuses
   to write. */
static void r12_left_out(void)
{
    static const char expected[][4] = {"LI", "ALI", "ALI"}; /* INFO if it is asked for */
    unsigned n, i, seen, wrong;

    begin_with_defaults(3);
    for (n = 1; n < 3; n++) {
        nodes[n].database = 7;
        nodes[n].password = fake_nodes[n].server.password = "secret\r\n$1";
    }
    nodes[2].user = "somebody";
    is_int(acquire(0), REDLOCK_OK, "r12 left out: AUTH and SELECT, and then the lock");
    fake_pass(&client, 20 * MS);
    is_int(lock.members, 7, "r12 left out: on all nodes");
    for (n = 0; n < 3; n++) {
        seen = wrong = 0;
        for (i = 0; i < fake_logged && fake_log[i].kind != 'S'; i++)
            if (fake_log[i].node == (int)n)
                wrong += fake_log[i].kind != expected[n][seen++];
        ok(wrong == 0 && seen == strlen(expected[n]) - !REDLOCK_RESTART_GUARD,
           "r12 left out: node %u is greeted so, and not otherwise", n);
        is_int(fake_nodes[n].session.database, n > 0 ? 7 : 0, "r12 left out: its database");
        is_int(fake_nodes[n].dials, 1, "r12 left out: on its first connection");
        is_int(fake_nodes[n].session.resp3, 0, "r12 left out: which speaks RESP2");
    }
    is_int(release(100), REDLOCK_OK, "r12 left out: released");
    held_by("other", 0, 2);
    is_int(acquire(0), REDLOCK_HELD, "r12 left out: refused, as RESP2 says it");
    fake_nodes[0].says = fake_nodes[1].says =
        "-READONLY You can't write against a read only replica.\r\n";
    is_int(acquire(0), REDLOCK_DENIED, "r12 left out: a replica denies it");
}

/* HELLO fills the buffer: the rest of the handshake follows it, before any command of a lock. */
static void r12_a_greeting_in_pieces(void)
{
    static char secret[REDLOCK_SEND_MAX];
    unsigned i, room;

    for (room = REDLOCK_SEND_MAX - 1; room > 0; room--) { /* the longest that fits */
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
           fake_count(-1, REDLOCK_RESP3 ? 'H' : 'A') == 3 && i > (REDLOCK_RESTART_GUARD ? 5 : 2),
       "r12: greeted in full, then asked");
    is_int(release(100), REDLOCK_OK, "r12: and released");
}

static void r12_wrong_password(void)
{
    unsigned i;

    begin_with_defaults(3);
    for (i = 0; i < 3; i++)
        fake_nodes[i].server.password = "right";
    nodes[0].password = "wrong-secret";
    fake_nodes[2].server.old = 1;
    nodes[2].user = "somebody"; /* goes into its AUTH, as the password does */
    nodes[2].password = "wrong-secret";
    is_int(acquire(60000), REDLOCK_DENIED, "r12: wrong or no password: denied, not waited for");
    fake_pass(&client, 10 * MS);
    acquire(0);
    ok(has_error(0, "WRONGPASS"), "r12: %s", nodes[0].error);
    ok(has_error(1, "NOAUTH"), "r12: %s", nodes[1].error);
    ok(has_error(2, "WRONGPASS"), "r12: old: %s", nodes[2].error);
    for (i = 0; i < 3; i++)
        ok(strstr(nodes[i].error, "secret") == NULL, "r12: no trouble has the password in it");
    is_int((int)fake_count(-1, 'S'), 0, "r12: and nothing was asked for");
}

#define LONG_NAME "a-user-whose-name-leaves-no-room"
#define IN_SCRIPT "-ERR ACL failure in script: User " LONG_NAME " has no permissions to run the "

/* Servers name the command that a user lacks behind the name of the user, or not at all. The error names it, or
   the few that it can be. The text of Redis 6 is longer than what is kept, so its cause is unknown. */
static void r12_a_denial_names_the_permissions(void)
{
    static const struct {
        char operation; /* 'a'cquire, 'f'enced, 'm'ulti-key, 'e'xtend, 'r'elease, 'd'urable */
        const char *says, *error;
    } cases[] = {
        {'a', "-NOPERM User " LONG_NAME " has no permissions to run the 'set' command\r\n",
         "needs +set"},
        {'a', "-NOPERM User me has no permissions to run the 'set' command\r\n",
         "replied: NOPERM User me has no permissions to run the 'set'"},
        {'a', "-NOPERM No permissions to access a key\r\n", " ~KEY: NOPERM No permissions to ac"},
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
        {'d', "-NOPERM User " LONG_NAME " has no permissions to run the 'waitaof' command\r\n",
         "needs +waitaof "},
    };
    static const struct redlock_key other = {"other", 5};
    unsigned i;

    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        char operation = cases[i].operation;

        if ((operation == 'f' && !REDLOCK_FENCING) || (operation == 'm' && !REDLOCK_MULTI_KEY) ||
            (operation == 'd' && !REDLOCK_DURABLE) || RESP_TEXT_MAX < 63)
            continue;
        memset(&settings, 0, sizeof settings);
        settings.durable = operation == 'd';
        begin(3);
        warm_up();
        set_use_fencing(&lock, operation == 'f');
        set_extra_keys(&lock, &other, operation == 'm');
        if (operation == 'e' || operation == 'r')
            acquire(0);
        if (operation == 'd')
            fake_nodes[0].server.synced = cases[i].says;
        else
            fake_nodes[0].says = cases[i].says;
        if (operation == 'e')
            extend();
        else if (operation == 'r')
            release(1000);
        else
            acquire(0);
        fake_pass(&client, 20 * MS);
        ok(has_error(0, cases[i].error), "r12: %c: %s", operation, nodes[0].error);
    }
}

static void r12_a_server_without_a_password_to_give(void)
{
    begin_with_defaults(1);
    fake_nodes[0].server.old = 1;
    is_int(acquire(0), REDLOCK_OK, "r12: an old server that wants no password");
    is_int(fake_nodes[0].dials, 1, "r12: is not dialled again");
}

static void r12_not_a_node(void)
{
    static const struct {
        const char *hello, *error;
    } cases[] = {
        {"%2\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$7\r\nreplica\r\n", "replica"},
        {"*4\r\n$4\r\nrole\r\n$5\r\nslave\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n", "replica"},
        {"%1\r\n$4\r\nmode\r\n$8\r\nsentinel\r\n", "sentinel"},
        {"-DENIED Redis is running in protected mode\r\n", "DENIED"},
    };
    unsigned i;

    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin_with_defaults(1);
        fake_nodes[0].server.hello = cases[i].hello;
        is_int(acquire(0), REDLOCK_DENIED, "r12: not a node");
        ok(has_error(0, cases[i].error), "r12: %s", nodes[0].error);
    }
    begin_with_defaults(1); /* names and values in other places mean nothing */
    fake_nodes[0].server.hello = "%2\r\n$7\r\nmodules\r\n*2\r\n$4\r\nmode\r\n$8\r\nsentinel\r\n"
                                 "$4\r\nrole\r\n$6\r\nmaster\r\n";
    is_int(acquire(0), REDLOCK_OK, "r12: what a module is called does not matter");
    begin_with_defaults(1);
    fake_nodes[0].server.hello = "-LOADING Redis is loading the dataset in memory\r\n";
    is_int(acquire(0), REDLOCK_UNREACHABLE, "r12: loading is no denial");
    fake_nodes[0].server.hello = NULL;
    fake_pass(&client, 200 * MS);
    is_int(acquire(0), REDLOCK_OK, "r12: and passes");
}

static void r12_bad_nodes_are_refused(void)
{
    static char secret[REDLOCK_SEND_MAX];

    begin_with_defaults(3);
    memset(secret, 'x', sizeof secret - 1);
    nodes[1].password = secret;
    is_int(redlock_init(&client, fake_io(), nodes, 3, NULL), REDLOCK_INVALID_ARGUMENT,
           "r12: a password that is too long");
    ok(has_error(1, "too long"), "r12: %s", nodes[1].error);
    nodes[1].password = NULL;
    nodes[2].user = "me";
    is_int(redlock_init(&client, fake_io(), nodes, 3, NULL), REDLOCK_INVALID_ARGUMENT,
           "r12: a user without a password");
    ok(has_error(2, "without a password"), "r12: %s", nodes[2].error);
}

static void r13_one_server_one_vote(void)
{
    begin_with_defaults(3);
    fake_nodes[0].server.run = fake_nodes[1].server.run = fake_nodes[2].server.run = 12345;
    is_int(acquire(0), REDLOCK_DENIED, "r13: one server listed three times is no quorum");
    ok(has_error(2, "same server"), "r13: and says so: %s", nodes[2].error);
    begin_with_defaults(3);
    fake_nodes[0].server.run = fake_nodes[2].server.run = 12345;
    is_int(acquire(0), REDLOCK_OK, "r13: listed twice, and another: two votes of three");
    fake_pass(&client, 10 * MS);
    is_int((int)votes(lock.members), 2, "r13: not three");
    is_int(fake_nodes[2].dials, 1,
           "r05: what failed after an answer is not dialled at once either");
    begin_with_defaults(3);
    fake_nodes[0].server.run = fake_nodes[2].server.run = 12345;
    fake_nodes[0].server.no_info = fake_nodes[2].server.no_info = 1;
    acquire(0);
    fake_pass(&client, 10 * MS);
    is_int((int)votes(lock.members), 3, "r13: where INFO is not permitted it can't be seen");
}

/* Without the restart guard no server is asked for its run_id: one that is listed twice has two votes. */
static void r13_left_out(void)
{
    begin_with_defaults(3);
    fake_nodes[0].server.run = fake_nodes[1].server.run = fake_nodes[2].server.run = 12345;
    is_int(acquire(0), REDLOCK_OK, "r13 left out: one server listed three times");
    fake_pass(&client, 10 * MS);
    is_int((int)votes(lock.members), 3, "r13 left out: has three votes");
    is_int((int)fake_count(-1, 'I'), 0, "r13 left out: and is not asked for INFO");
    forget_all(0);
    fake_nodes[0].server.age_s = 0;
    is_int(release(100), REDLOCK_OK, "r14 left out: released");
    is_int(acquire(0), REDLOCK_OK, "r14 left out: one that has just started");
    fake_pass(&client, 200 * MS);
    ok(lock.granted & 1, "r14 left out: votes at once");
    is_int((int)fake_count(-1, 'I'), 0, "r14 left out: and is not asked for its age");
}

static void r14_a_restarted_server_does_not_vote(void)
{
    unsigned i;

    memset(&settings, 0, sizeof settings);
    settings.longest_ttl_ms = 20000;
    begin(3);
    for (i = 0; i < 3; i++)
        fake_nodes[i].server.age_s = 100;
    is_int(acquire(0), REDLOCK_OK, "r14: old servers vote");
    release(100);
    fake_pass(&client, 10 * MS);
    forget_all(0);
    fake_nodes[0].server.age_s = 0;
    held_by("other", 1, 1);
    is_int(acquire(0), REDLOCK_CONTENDED, "r14: the restarted one does not, though it says yes");
    ok(has_error(0, "not voting"), "r14: and why: %s", nodes[0].error);
    fake_pass(&client, 30 * MS);
    is_int((int)fake_keys_left(), 1, "r14: what it was asked for is undone there too");
    fake_pass(&client, 22050 * MS);
    is_int(acquire(0), REDLOCK_CONTENDED, "r14: not before 20 s, drift and 2 s have passed");
    fake_pass(&client, 200 * MS);
    is_int(acquire(0), REDLOCK_OK, "r14: then it votes again");
    release(100);
    lock.ttl_ms = 20001;
    is_int(acquire(0), REDLOCK_INVALID_ARGUMENT, "r14: a longer ttl than the longest is refused");
}

/* An age of n seconds may be little more than n - 1, and the process before may end a second late. */
static void r14_the_age_that_a_server_says(void)
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
        is_int(acquire(0), REDLOCK_OK, "r14: a connection that lasts proves it");
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
    fake_break(0); /* it kept its keys, but the client cannot know */
    fake_nodes[1].hung = 1;
    is_int(extend(), REDLOCK_UNREACHABLE, "r14: a restarted member confirms nothing");
    is_int((int)votes(lock.members), 3, "r14: that is no loss");
    fake_resume(1);
    for (i = 0; i < 2; i++) {
        is_int(extend(), REDLOCK_OK, "r14: the others do");
        fake_pass(&client, 7000 * MS);
    }
    fake_nodes[1].hung = 1;
    is_int(extend(), REDLOCK_UNREACHABLE, "r14: it has a vote again, but its word is in doubt");
    fake_resume(1);
    is_int(extend(), REDLOCK_OK, "r14: the others confirm it");
    fake_pass(&client, 10 * MS);
    is_int(extend(), REDLOCK_OK, "r14: once more, with its answer in time");
    fake_nodes[1].hung = 1;
    is_int(extend(), REDLOCK_OK, "r14: and counts again after a round without doubt");
}

/* ---- R16 ------------------------------------------------------------------------------------ */

static void begin_fenced(unsigned count)
{
    begin_with_defaults(count);
    set_use_fencing(&lock, 1);
}

/* ---- R18 ------------------------------------------------------------------------------------ */

/* Servers that have run for long, but may have forgotten all the same. */
static void begin_marked(unsigned count)
{
    unsigned i;

    memset(&settings, 0, sizeof settings);
    settings.longest_ttl_ms = 20000;
    begin(count);
    set_use_fencing(&lock, 1);
    for (i = 0; i < count; i++)
        fake_nodes[i].server.age_s = 1000;
}

static const struct mini_key *marker(int node)
{
    return fake_find(node, "redlock::run", 12);
}

static void r18_no_vote_without_a_marker(void)
{
    int i;

    begin_marked(3);
    is_int(acquire(0), REDLOCK_UNREACHABLE, "r18: servers that were never marked do not vote");
    ok(has_error(0, "not voting: node may have lost locks (quarantine)"), "r18: and why: %s",
       nodes[0].error);
    is_int((int)fake_keys_left(), 0, "r18: nor do they take a key");
    fake_pass(&client, 19900 * MS);
    is_int(acquire(0), REDLOCK_UNREACHABLE, "r18: not before 20 s have passed");
    fake_pass(&client, 200 * MS);
    is_int(acquire(0), REDLOCK_OK, "r18: then they do");
    fake_pass(&client, 10 * MS);
    is_int((int)votes(lock.members), 3, "r18: all of them");
    for (i = 0; i < 3; i++)
        ok(marker(i) != NULL, "r18: marked");
    is_int(release(100), REDLOCK_OK, "r18: released");

    begin_fenced(3);
    is_int(acquire(0), REDLOCK_OK, "r18: only with longest_ttl_ms");
    ok(marker(0) == NULL, "r18: else nothing is marked");
}

/* The connection stays, and so does the age of the server. */
static void r18_all_keys_are_gone(void)
{
    struct mini_word name = {"redlock::run", 12}, other = {"4711", 4};
    int i;

    begin_marked(3);
    acquire(0);
    fake_pass(&client, 20100 * MS);
    for (i = 0; i < 2; i++) {
        if (i == 0)
            fake_nodes[0].server.used = 0;
        else
            mini_store(&fake_nodes[0].server, name, other, marker(0)->until_us);
        held_by("other", 1, 1);
        is_int(acquire(0), REDLOCK_CONTENDED, "r18: %s: it has no vote",
               i == 0 ? "all is gone" : "what it has is another's");
        ok(has_error(0, "not voting"), "r18: and why: %s", nodes[0].error);
        fake_pass(&client, 20100 * MS);
        is_int(acquire(0), REDLOCK_OK, "r18: 20 s later it has");
        is_int(release(100), REDLOCK_OK, "r18: released");
        fake_delete(1, "k");
    }
    is_int(fake_nodes[0].dials, 1, "r18: on the same connection");
    fake_nodes[0].refuses = 1;
    fake_break(0);
    fake_pass(&client, 10 * MS);
    is_int(acquire(0), REDLOCK_OK, "r18: each marker names the run of its own server");
}

/* A vote that the server gave to another client may be forgotten too: if the server were repaired, it would
   have two votes. */
static void r18_no_healing_either(void)
{
    begin_marked(3);
    acquire(0);
    fake_pass(&client, 20100 * MS);
    is_int(acquire(0), REDLOCK_OK, "r18: held");
    fake_pass(&client, 10 * MS);
    fake_nodes[0].server.used = 0;
    is_int(extend(), REDLOCK_OK, "r18: extended by two");
    fake_pass(&client, 10 * MS);
    is_int((int)votes(lock.members), 2, "r18: the third does not count");
    ok(fake_find(0, "k", 1) == NULL && marker(0) != NULL, "r18: it is marked, not healed");
    ok(has_error(0, "not voting"), "r18: %s", nodes[0].error);
    fake_pass(&client, 9000 * MS);
    is_int(extend(), REDLOCK_OK, "r18: extended once more");
    fake_pass(&client, 9000 * MS);
    is_int(extend(), REDLOCK_OK, "r18: nor yet after 18 s");
    fake_pass(&client, 2100 * MS);
    ok(fake_find(0, "k", 1) == NULL, "r18: not healed");
    is_int(extend(), REDLOCK_OK, "r18: after 20 s");
    fake_pass(&client, 10 * MS);
    ok(fake_find(0, "k", 1) != NULL, "r18: it is");
    is_int(extend(), REDLOCK_OK, "r18: and once more");
    fake_pass(&client, 10 * MS);
    fake_nodes[1].hung = 1;
    is_int(extend(), REDLOCK_OK, "r18: then it counts");
}

static void r18_where_info_is_denied(void)
{
    begin_marked(3);
    fake_nodes[1].server.no_info = 1;
    acquire(0);
    fake_pass(&client, 22300 * MS);
    is_int(acquire(0), REDLOCK_OK, "r18: without INFO r14 alone is left");
    fake_pass(&client, 10 * MS);
    is_int((int)votes(lock.members), 3, "r18: on that server");
    ok(marker(1) == NULL && marker(2) != NULL, "r18: which is not marked");
}

/* All clients connect to a server that has crashed as soon as it is back, while it loads its file. */
static void r18_connected_while_it_loads(void)
{
    begin_marked(3);
    fake_nodes[1].server.loading = 1;
    fake_nodes[1].says = "-LOADING Redis is loading the dataset in memory\r\n";
    acquire(0);
    fake_pass(&client, 100 * MS);
    fake_nodes[1].server.loading = 0;
    fake_nodes[1].says = NULL;
    acquire(0);
    fake_pass(&client, 22300 * MS);
    is_int(acquire(0), REDLOCK_OK, "r18: loaded, and old enough");
    fake_pass(&client, 10 * MS);
    ok(marker(1) != NULL, "r18: its marker is looked at");
    release(100);
    fake_nodes[1].server.used = 0; /* FLUSHALL */
    held_by("other", 0, 0);
    is_int(acquire(0), REDLOCK_CONTENDED, "r18: and tells that it has forgotten");
}

/* 8 hours ahead when it was started, say. */
static void r18_a_clock_that_is_set_back(void)
{
    begin_marked(3);
    acquire(0);
    fake_pass(&client, 20100 * MS);
    is_int(acquire(0), REDLOCK_OK, "r18: all are marked");
    fake_pass(&client, 10 * MS);
    is_int(release(100), REDLOCK_OK, "r18: released");
    mini_find(&fake_nodes[0].server, "redlock::run", 12)->until_us += 28800000 * (uint64_t)1000;
    held_by("other", 1, 1);
    is_int(acquire(0), REDLOCK_CONTENDED, "r18: the clock of one is set back: no vote");
    fake_pass(&client, 20100 * MS);
    is_int(acquire(0), REDLOCK_OK, "r18: for 20 s, not for 8 hours");
}

/* Another client of the same servers has another longest_ttl_ms. */
static void r18_each_has_its_own_longest(void)
{
    static const uint32_t theirs_ms[] = {100, 0x7fffffff};
    struct redlock_settings other_settings;
    struct redlock_node others[3];
    struct redlock_lock theirs;
    struct redlock_client other;
    int i, kind;

    for (kind = 0; kind < 2; kind++) {
        begin_marked(3);
        memset(&other_settings, 0, sizeof other_settings);
        memset(others, 0, sizeof others);
        other_settings.longest_ttl_ms = theirs_ms[kind];
        for (i = 0; i < 3; i++)
            others[i].address = nodes[i].address;
        redlock_init(&other, fake_io(), others, 3, &other_settings);
        redlock_lock_init(&theirs, "t", 1, 100);
        set_use_fencing(&theirs, 1);
        redlock_acquire(&other, &theirs, 0); /* it is the first, and marks all */
        fake_pass(&other, 10 * MS);
        redlock_deinit(&other);
        acquire(0);
        fake_pass(&client, 1000 * MS);
        is_int(acquire(0), REDLOCK_UNREACHABLE, "r18: not before our 20 s are over, with %lu ms",
               (unsigned long)theirs_ms[kind]);
        fake_pass(&client, 20000 * MS);
        is_int(acquire(0), REDLOCK_OK, "r18: then it has a vote");
    }
}

/* Sets the count of "k" on node i. */
static void count_is(int i, const char *digits)
{
    fake_delete(i, "k:fence");
    fake_put(i, "k:fence", digits, 0x7fffffff);
}

static void r16_one_round_trip(void)
{
    uint64_t first, start;

    begin_fenced(5);
    is_int(acquire(0), REDLOCK_OK, "r16: fenced");
    ok(fencing_token_of(&lock) == fake_wall_us,
       "r16: the token is what was proposed: the wall clock");
    is_int((int)(fake_count(-1, 'S') + fake_count(-1, 'R')), 0, "r16: in one round");
    first = fencing_token_of(&lock);
    release(100);
    fake_pass(&client, 10 * MS);
    start = fake_now_us;
    is_int(acquire(0), REDLOCK_OK, "r16: again, with a wall clock that stands still");
    is_int((int)since(start), 1 * MS, "r16: in one round trip");
    ok(fencing_token_of(&lock) == first + 1, "r16: the next token is larger");
    is_int(extend(), REDLOCK_OK, "r16: extended");
    ok(fencing_token_of(&lock) == first + 1, "r16: an extension keeps the token");
    ok(fake_find(0, "k:fence", 7)->until_us == UINT64_MAX, "r16 T47: and the count has no ttl");
    release(100);
    fake_wall_us -= 1000000;
    is_int(acquire(0), REDLOCK_OK, "r16: with a wall clock that went back");
    ok(fencing_token_of(&lock) == first + 2, "r16: it still grows");
}

static void r16_agrees_on_the_largest(void)
{
    begin_fenced(5);
    fake_wall_us = 1;
    warm_up();
    count_is(0, "10");
    count_is(1, "20");
    count_is(2, "30");
    is_int(acquire(0), REDLOCK_OK, "r16: five nodes, four counts");
    ok(fencing_token_of(&lock) == 31, "r16: the largest: %lu",
       (unsigned long)fencing_token_of(&lock));
    fake_pass(&client, 10 * MS);
    is_int((int)fake_count(-1, 'R'), 5, "r16: after a second round, on all");
    is_int((int)votes(lock.members), 5, "r16: and all are members");
    release(100);
    acquire(0);
    ok(fencing_token_of(&lock) == 32, "r16: then all count alike");
    is_int((int)fake_count(-1, 'R'), 5, "r16: and one round is enough");
}

/* A node whose count has risen meanwhile does not agree, though the key is ours there. Otherwise two
   clients could get one token: the other one was refused everywhere else, and had the key there for a
   moment. */
static void r16_a_higher_count_does_not_agree(void)
{
    begin_fenced(3);
    fake_wall_us = 1;
    warm_up();
    count_is(0, "10");
    count_is(1, "20");
    fake_nodes[2].hung = 1;
    redlock_acquire_start(&client, &lock, 0);
    fake_pass(&client, 500); /* 11 and 21 are on their way */
    count_is(1, "40");
    fake_pass(&client, 20 * MS);
    is_int(lock.status, REDLOCK_OK, "r16: two of three, and one's count rises meanwhile");
    ok(fencing_token_of(&lock) == 40, "r16: agreed on in a third round: %lu",
       (unsigned long)fencing_token_of(&lock));
    is_int((int)fake_count(0, 'R'), 2, "r16: which is the second that raises");
}

static void r16_raising_has_an_end(void)
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
    count_is(0, "10");
    redlock_acquire_start(&client, &lock, 0);
    count_is(1, "15");
    for (i = 20; i < 400 && lock.status == REDLOCK_PENDING; i++) {
        fake_pass(&client, 200);
        sprintf(digits, "%u0", i);
        count_is(i & 1, digits);
    }
    ok(lock.status != REDLOCK_PENDING && lock.status != REDLOCK_OK,
       "r16: counts that always rise end the attempt: %s", redlock_strerror(lock.status));
    ok(fake_count(0, 'R') <= 4, "r16: after %u rounds", fake_count(0, 'R'));
    fake_resume(2);
    fake_pass(&client, 100 * MS);
    is_int((int)fake_keys_left() - 2, 0, "r16: and only the counts that the test set are left");
}

static void r16_refused(void)
{
    static const char *const says[] = {":0\r\n", ":-3\r\n", ":9007199254740992\r\n", "+OK\r\n"};
    unsigned i;

    begin_fenced(5);
    held_by("other", 0, 2);
    is_int(acquire(0), REDLOCK_HELD, "r16: held by another");
    fake_pass(&client, 10 * MS);
    is_int((int)fake_keys_left(), 3, "r16: undone");
    for (i = 0; i < 4; i++) {
        begin_fenced(3);
        warm_up();
        fake_nodes[0].says = says[i];
        is_int(acquire(0), REDLOCK_OK, "r16: the others decide");
        fake_pass(&client, 5 * MS);
        ok(nodes[0].state != REDLOCK_NODE_READY, "r16: %.8s is no count", says[i]);
    }
    if (!REDLOCK_MULTI_KEY)
        return;
    set_extra_keys(&lock, NULL, 1);
    redlock_abandon(&client, &lock);
    is_int(acquire(0), REDLOCK_INVALID_ARGUMENT, "r16: not with several keys");
}

/* Two clients' attempts in every order that a few hundred random delays give, and keys that vanish
   between the rounds: what is acquired later has the larger token, and no two are the same. */
static void r16_order(void)
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
            wrong += fencing_token_of(&lock) <= last;
            last = fencing_token_of(&lock);
            for (j = 0; j < taken; j++)
                twice += all[j] == last;
            all[taken++] = last;
            fake_pass(&client, dice >> 18 & 2047);
            for (j = 0; j < 3 && dice >> 31; j++) /* it expires on some nodes */
                fake_delete((int)j, "k");
        }
        release(100);
    }
    ok(taken > 200, "r16: %u acquisitions with nodes that come and go", taken);
    is_int((int)(wrong + twice), 0, "r16: each with a larger token than those before it");
}

/* ---- R17 ------------------------------------------------------------------------------------ */

static const char on_disk[] = "*2\r\n:1\r\n:0\r\n", not_in_time[] = "*2\r\n:0\r\n:7\r\n";

/* Votes are durable. The servers from..to answer WAITAOF so; the others have the write on disk. */
static void begin_durable(unsigned count, int from, int to, const char *says)
{
    int i;

    memset(&settings, 0, sizeof settings);
    settings.durable = 1;
    begin(count);
    for (i = 0; i < (int)count; i++)
        fake_nodes[i].server.synced = i >= from && i <= to ? says : on_disk;
}

static void r17_counts_what_is_on_disk(void)
{
    begin_durable(5, 1, 0, NULL);
    is_int(acquire(0), REDLOCK_OK, "r17: acquired");
    fake_pass(&client, 20 * MS);
    is_int((int)fake_count(-1, 'W'), 5, "r17: each was asked whether it has it on disk");
    is_int(extend(), REDLOCK_OK, "r17: extended");
    is_int((int)votes(lock.members), 5, "r17: late ones are members, too");
    fake_pass(&client, 20 * MS);
    is_int((int)fake_count(-1, 'W'), 10, "r17: asked again");
    is_int(release(1000), REDLOCK_OK, "r17: released");
    fake_pass(&client, 20 * MS);
    is_int((int)fake_count(-1, 'W'), 10, "r17: for which it is not asked");
    is_int((int)fake_keys_left(), 0, "r17: no key is left");
    held_by("other", 0, 2);
    is_int(acquire(0), REDLOCK_HELD, "r17: a refusal needs no disk");
    is_int((int)fake_keys_left(), 3, "r17: and is undone");
}

static void r17_and_nothing_else(void)
{
    static const struct {
        const char *says, *error;
        int talks; /* on the same connection from then on, so that the key is soon gone */
    } cases[] = {
        {not_in_time, "vote not confirmed on disk in time (WAITAOF)", 1},
        {NULL, "unknown com", 1},
        {"-ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.\r\n",
         "ERR WAITAOF can", 1},
        {"*1\r\n:1\r\n", "vote not confirmed on disk in time (WAITAOF)", 1},
        {"*0\r\n", "vote not confirmed on disk in time (WAITAOF)", 1},
        {"", "no reply in time", 0},
        {"+OK\r\n", "unexpected reply", 0},
        {":1\r\n", "unexpected reply", 0},
        {"*2\r\n+1\r\n+1\r\n", "unexpected reply", 0},
    };
    unsigned i;

    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin_durable(5, 0, 2, cases[i].says);
        is_int(acquire(0), REDLOCK_UNREACHABLE, "r17: three of five say: %.30s",
               cases[i].says != NULL ? cases[i].says : "what is that?");
        ok(has_error(1, cases[i].error), "r17: %s", nodes[1].error);
        fake_pass(&client, 2000 * MS);
        if (cases[i].talks)
            is_int((int)fake_keys_left(), 0, "r17: and it is undone");
        begin_durable(5, 0, 1, cases[i].says);
        is_int(acquire(0), REDLOCK_OK, "r17: two of them do no harm");
        is_int((int)votes(lock.members), 3, "r17: and are no members");
        is_int(extend(), REDLOCK_OK, "r17: nor when it is extended");
        is_int((int)votes(lock.members), 3, "r17: again no members");
        is_int(release(1000), REDLOCK_OK, "r17: released");
        fake_pass(&client, 2000 * MS);
        if (cases[i].talks)
            is_int((int)fake_keys_left(), 0, "r17: everywhere");
    }
}

/* A member whose extension is not on its disk does not confirm the extension. */
static void r17_extensions(void)
{
    unsigned i;

    begin_durable(3, 1, 0, NULL);
    warm_up();
    acquire(0);
    fake_pass(&client, 20 * MS);
    for (i = 0; i < 2; i++) /* no answer, or an empty one, is none as the last was */
        fake_nodes[i].server.synced = i == 0 ? not_in_time : "*0\r\n";
    is_int(extend(), REDLOCK_UNREACHABLE, "r17: one of three has the extension on disk");
    ok(redlock_remaining_ms(&client, &lock) > 9000, "r17: the old validity stands");
    for (i = 0; i < 2; i++)
        fake_nodes[i].server.synced = on_disk;
    is_int(extend(), REDLOCK_OK, "r17: all of them");
    fake_delete(0, "k");
    fake_nodes[0].server.synced = not_in_time;
    is_int(extend(), REDLOCK_OK, "r17: two of them, and one is healed");
    fake_pass(&client, 20 * MS);
    is_int((int)(lock.members & 1), 0, "r17: not to its disk, so it is no member");
    fake_nodes[0].server.synced = on_disk;
    extend();
    fake_pass(&client, 20 * MS);
    extend();
    is_int((int)(lock.members & 1), REDLOCK_REPAIR, "r17: later it is");
}

/* Replies for locks that are gone: no memory of these is written to. */
static void r17_answers_that_come_late(void)
{
    struct redlock_lock other, was;
    unsigned i, round;

    for (round = 0; round < 2; round++) {
        begin_durable(3, 1, 0, NULL);
        warm_up();
        for (i = 0; i < 3; i++) {
            fake_nodes[i].delay_us = 20 * MS;
            fake_nodes[i].server.synced = round == 0 ? on_disk : "";
        }
        redlock_lock_init(&other, "o", 1, 10000);
        redlock_acquire_start(&client, &other, 0);
        fake_pass(&client, (round == 0 ? 1 : 22) * MS); /* before any; between the two */
        redlock_cancel(&client, &other);
        while (redlock_next_completed(&client) == NULL)
            fake_pass(&client, 1 * MS);
        memset(&other, 0xaa, sizeof other);
        was = other;
        for (i = 0; i < 3 && round == 1; i++)
            fake_break((int)i);
        fake_pass(&client, 200 * MS);
        ok(memcmp(&was, &other, sizeof was) == 0, "r17: a lock that is gone is not touched");
        is_int((int)fake_keys_left(), 0, "r17: nor left");
        for (i = 0; i < 3; i++) {
            fake_nodes[i].delay_us = 0;
            fake_nodes[i].server.synced = on_disk;
        }
        is_int(acquire(0), REDLOCK_OK, "r17: answers and questions still belong together");
        is_int(release(1000), REDLOCK_OK, "r17: released");
    }
}

/* The lock is given up between the two answers. */
static void r17_half_an_answer(void)
{
    unsigned i, byte;

    begin_durable(3, 1, 0, NULL);
    warm_up();
    for (i = 0; i < 3; i++)
        fake_nodes[i].delay_us = 5 * MS;
    redlock_acquire_start(&client, &lock, 0);
    fake_pass(&client, 1 * MS);
    fake_now_us += 10 * MS;
    for (i = 0; i < 3; i++) {
        fake_nodes[i].drip = 1;
        for (byte = 0; byte < 7; byte++) /* +OK, and the beginning of the next */
            redlock_handle_events(&client, i, REDLOCK_READABLE);
        fake_nodes[i].drip = 0;
    }
    redlock_tick(&client);
    is_int((int)lock.status, REDLOCK_PENDING, "r17: three grants are no lock yet");
    is_int((int)lock.granted, 0, "r17: nor are they told as such");
    redlock_cancel(&client, &lock);
    fake_pass(&client, 100 * MS);
    is_int((int)fake_keys_left(), 0, "r17: cancelled between two answers");
    ok(fake_nodes[0].dials == 1 && fake_nodes[1].dials == 1, "r17: on the same connections");
}

static void r17_connections_that_break(void)
{
    unsigned i;

    begin_durable(3, 0, 0, "");
    warm_up();
    is_int(acquire(0), REDLOCK_OK, "r17: acquired, one WAITAOF is open");
    fake_break(0);
    fake_nodes[0].server.synced = on_disk;
    fake_pass(&client, 20 * MS);
    is_int(extend(), REDLOCK_OK, "r17: extended");
    fake_pass(&client, 200 * MS);
    extend();
    is_int((int)votes(lock.members), REDLOCK_REPAIR ? 3 : 2,
           "r17: the one that broke is a member in the end");
    fake_nodes[1].server.synced = fake_nodes[2].server.synced = "";
    redlock_extend_start(&client, &lock);
    fake_pass(&client, 5 * MS);
    fake_break(1);
    fake_break(2);
    fake_nodes[1].server.synced = fake_nodes[2].server.synced = on_disk;
    fake_pass(&client, 20 * MS);
    ok(redlock_next_completed(&client) == &lock && lock.status == REDLOCK_OK,
       "r17: an extension is sent again where it broke: %s", redlock_strerror(lock.status));
    for (i = 0; i < 3; i++)
        fake_nodes[i].delay_us = 20 * MS;
    redlock_extend_start(&client, &lock);
    fake_pass(&client, 5 * MS);
    fake_break(0);
    fake_break(1);
    fake_pass(&client, 100 * MS);
    ok(redlock_next_completed(&client) == &lock && lock.status == REDLOCK_OK,
       "r17: and where it broke before any answer: %s", redlock_strerror(lock.status));
    is_int(release(1000), REDLOCK_OK, "r17: released");
    fake_pass(&client, 200 * MS);
    is_int((int)fake_keys_left(), 0, "r17: no key is left");
}

/* A grant that was to be confirmed when the connection broke is not confirmed by the next connection. */
static void r17_not_another_connections_answer(void)
{
    int i;

    begin_durable(3, 0, 2, "");
    warm_up();
    acquire(0);
    for (i = 0; i < 3; i++) {
        fake_break(i);
        fake_nodes[i].server.synced = on_disk;
    }
    fake_pass(&client, 20000 * MS);
    held_by("other", 0, 2);
    is_int(acquire(0), REDLOCK_HELD, "r17: refused, whatever the last connection had granted");
}

/* Nodes 3 and 4 refuse an extension, or have no memory, and are silent then. The lock has ended, and its
   memory is the caller's, when their connections break. */
static void r17_a_no_is_final(void)
{
    struct redlock_lock other, was;
    int round, i;

    for (round = 0; round < 2; round++) {
        begin_durable(5, 1, 0, NULL);
        warm_up();
        redlock_lock_init(&other, "o", 1, 10000);
        for (i = 3; i < 5 && round == 0; i++)
            fake_put(i, "o", "another", 60000);
        is_int((int)redlock_acquire(&client, &other, 0), REDLOCK_OK, "r17: acquired");
        fake_pass(&client, 20 * MS);
        for (i = 3; i < 5; i++) {
            fake_nodes[i].server.synced = "";
            fake_nodes[i].says = round == 0 ? NULL : "-OOM no\r\n";
        }
        is_int((int)redlock_extend(&client, &other), REDLOCK_OK, "r17: three of five extend it");
        fake_pass(&client, 5 * MS);
        for (i = 3; i < 5; i++)
            fake_nodes[i].hung = 1;
        is_int((int)redlock_release(&client, &other, 100), REDLOCK_OK, "r17: released");
        memset(&other, 0xaa, sizeof other);
        was = other;
        for (i = 3; i < 5; i++) {
            fake_nodes[i].hung = 0;
            fake_break(i);
        }
        fake_pass(&client, 200 * MS);
        ok(memcmp(&was, &other, sizeof was) == 0, "r17: nobody writes to what is no lock any more");
    }
}

/* WAITAOF takes up to two seconds where the file is written once a second: no stall. */
static void r17_a_slow_disk_is_no_stall(void)
{
    int i;

    memset(&settings, 0, sizeof settings);
    settings.durable = 1;
    settings.node_timeout_ms = 2500;
    begin(3);
    for (i = 0; i < 3; i++)
        fake_nodes[i].server.synced = on_disk;
    warm_up();
    for (i = 0; i < 3; i++)
        fake_nodes[i].server.synced = "";
    redlock_acquire_start(&client, &lock, 0);
    fake_pass(&client, 2400 * MS);
    is_int((int)lock.status, REDLOCK_PENDING, "r17: waits as long as node_timeout_ms says");
    fake_pass(&client, 3000 * MS);
    is_int((int)fake_keys_left(), 0, "r17: and undoes it on the same connections");
}

static void r17_many_keys_and_tokens(void)
{
    static const struct redlock_key more[] = {{"m", 1}};
    uint64_t last;
    int i;

    begin_durable(5, 0, 0, not_in_time);
    set_extra_keys(&lock, more, 1);
    if (REDLOCK_MULTI_KEY) {
        is_int(acquire(0), REDLOCK_OK, "r17: several keys");
        is_int((int)(lock.members & 1), 0, "r17: but where they are not on disk");
        is_int(release(1000), REDLOCK_OK, "r17: released");
    }
    if (!REDLOCK_FENCING)
        return;
    set_extra_keys(&lock, NULL, 0);
    set_use_fencing(&lock, 1);
    fake_wall_us = 0;
    for (i = 0; i < 5; i++)
        fake_put(i, "k:fence", i % 2 ? "7" : "90", 0x7fffffff);
    is_int(acquire(0), REDLOCK_OK, "r17: with a fencing token");
    ok(fencing_token_of(&lock) >= 8, "r17: %lu", (unsigned long)fencing_token_of(&lock));
    last = fencing_token_of(&lock);
    is_int(release(1000), REDLOCK_OK, "r17: released");
    fake_pass(&client, 20 * MS);
    is_int(acquire(0), REDLOCK_OK, "r17: and another");
    ok(fencing_token_of(&lock) > last, "r17: which is larger: %lu",
       (unsigned long)fencing_token_of(&lock));
    is_int(release(1000), REDLOCK_OK, "r17: released");
    fake_pass(&client, 20 * MS);
    is_int((int)fake_keys_left(), 0, "r17: no key is left");
}

/* ---- Several keys, adoption, holder, fork --------------------------------------------------- */

static void several_keys(void)
{
    static const struct redlock_key more[] = {{"l", 1}, {"m", 1}};
    static const struct redlock_key long_one[] = {{"0123456789012345678901234567890123456789"
                                                   "0123456789012345678901234567890123456789",
                                                   REDLOCK_KEY_MAX}};
    unsigned i, n;

    begin_with_defaults(3);
    set_extra_keys(&lock, more, 2);
    is_int(acquire(0), REDLOCK_OK, "several keys: all free");
    fake_pass(&client, 10 * MS);
    is_int((int)fake_keys_left(), 9, "several keys: on every node all three");
    fake_pass(&client, 5000 * MS);
    is_int(extend(), REDLOCK_OK, "several keys: extended");
    fake_pass(&client, 6000 * MS);
    is_int((int)fake_keys_left(), 9, "several keys: all of them");
    fake_delete(0, "l");
    is_int(extend(), REDLOCK_OK, "several keys: one is gone on one node: healed");
    fake_pass(&client, 10 * MS);
    is_int((int)fake_keys_left(), REDLOCK_REPAIR ? 9 : 8, "several keys: all are there again");
    is_int(release(100), REDLOCK_OK, "several keys: released");
    fake_pass(&client, 10 * MS);
    is_int((int)fake_keys_left(), 0, "several keys: all of them");
    for (n = 0; n < 3; n++) {
        begin_with_defaults(3);
        set_extra_keys(&lock, more, 2);
        for (i = 0; i < 2; i++)
            fake_put((int)i, n == 0 ? "k" : n == 1 ? "l" : "m", "other", 60000);
        is_int(acquire(0), REDLOCK_HELD, "several keys: another has one of them on two nodes");
        fake_pass(&client, 10 * MS);
        is_int((int)fake_keys_left(), 2, "several keys: none of ours is left");
    }
    begin_with_defaults(3);
    acquire(0);
    fake_pass(&client, 10 * MS);
    set_extra_keys(&lock, more, 1);
    is_int(release(100), REDLOCK_EXPIRED, "several keys: one that was never there is told");
    fake_pass(&client, 10 * MS);
    is_int((int)fake_keys_left(), 0, "several keys: and the rest is released");
    set_extra_keys(&lock, long_one, 1);
    is_int(acquire(0), REDLOCK_INVALID_ARGUMENT, "several keys: too long together");
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
    is_int(lock.status, REDLOCK_OK, "r07: woken when any of several keys goes");
}

/* As long as the limits allow: with the smallest REDLOCK_SEND_MAX that compiles, to a few bytes. */
static void longest_commands(void)
{
    static char key[REDLOCK_KEY_MAX], label[REDLOCK_LABEL_MAX + 1];
    struct redlock_key more;
    int kind, i;

    memset(key, 'k', sizeof key);
    memset(label, 'l', sizeof label);
    for (kind = 0; kind < 5; kind++) {
        memset(&settings, 0, sizeof settings);
        settings.longest_ttl_ms = kind >= 3 && REDLOCK_RESTART_GUARD ? 0x7fffffff : 0;
        settings.durable = kind == 4 ? REDLOCK_DURABLE : 0;
        begin(3);
        for (i = 0; i < 3; i++) {
            fake_nodes[i].server.age_s = 100000000;
            fake_nodes[i].server.synced = "*2\r\n:1\r\n:0\r\n";
        }
        redlock_lock_init(&lock, key, sizeof key, 0x7fffffff);
        set_label(&lock, label, REDLOCK_LABEL_MAX);
        if (kind == 1 || kind >= 3)
            set_use_fencing(&lock, 1);
        if (kind == 2 && REDLOCK_MULTI_KEY && REDLOCK_KEY_MAX > 22) {
            lock.key_size = sizeof key - 21;
            more.bytes = label;
            more.size = 11;
            set_extra_keys(&lock, &more, 1);
        }
        fake_wall_us = ((uint64_t)1 << 53) - 10;
        if (kind >= 3 && REDLOCK_MARKER) {
            is_int(acquire(0), REDLOCK_UNREACHABLE, "longest commands: with a marker");
            fake_pass(&client, 10 * MS);
            fake_now_us += (uint64_t)0x7fffffff * MS;
        }
        is_int(acquire(0), REDLOCK_OK, "longest commands: acquire");
        fake_pass(&client, 10 * MS);
        is_int(extend(), REDLOCK_OK, "longest commands: extend");
        is_int(release(100), REDLOCK_OK, "longest commands: release");
    }
}

/* What one client holds another takes over. */
static void adoption(void)
{
    static struct redlock_client second;
    static struct redlock_node second_nodes[3];
    struct redlock_lock mine, theirs;
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
    is_int((int)redlock_adopt(&second, NULL, 5000), REDLOCK_INVALID_ARGUMENT, "adopt: nothing");
    memcpy(theirs.token, mine.token, sizeof theirs.token);
    theirs.members = mine.members;
    is_int((int)redlock_adopt(&second, &theirs, 5000), REDLOCK_OK, "adopt: token and members");
    is_int((int)redlock_remaining_ms(&second, &theirs), 5000, "adopt: for what was left");
    is_int((int)redlock_extend(&second, &theirs), REDLOCK_OK, "adopt: extended");
    ok(redlock_remaining_ms(&second, &theirs) > 9800, "adopt: by its ttl");
    is_int((int)redlock_adopt(&second, &theirs, 1), REDLOCK_ALREADY_HELD, "adopt: held already");
    is_int((int)redlock_release(&second, &theirs, 100), REDLOCK_OK, "adopt: and released");
    fake_pass(&second, 10 * MS);
    is_int((int)fake_keys_left(), 0, "adopt: nothing is left");
    theirs.token[0] ^= 1;
    held_by("other", 0, 2);
    is_int((int)redlock_adopt(&second, &theirs, 5000), REDLOCK_OK, "adopt: a wrong token");
    is_int((int)redlock_extend(&second, &theirs), REDLOCK_LOST, "adopt: is found out");
    is_int((int)fake_keys_left(), 3, "adopt: and changes nothing");
    redlock_deinit(&second);
}

static void who_holds_it(void)
{
    char holder[16] = "?", longer[64] = "?";

    begin_with_defaults(3);
    held_by("0123456789abcdef-host7", 0, 2);
    is_int(acquire(0), REDLOCK_HELD, "holder: refused");
    set_holder(&lock, holder, sizeof holder);
    is_int(acquire(0), REDLOCK_HELD, "holder: refused, and asked who has it");
    ok(strcmp(holder, "0123456789abcde") == 0, "holder: as much as there is room for: %s", holder);
    set_holder(&lock, longer, sizeof longer);
    acquire(0);
    ok(strncmp(longer, "0123456789abcdef-host7", RESP_TEXT_MAX) == 0,
       "holder: all of it, or of what is kept of an answer: %s", longer);
}

/* Without diagnosis no node is asked for the holder, and none is named. */
static void diagnosis_left_out(void)
{
    begin_with_defaults(3);
    held_by("0123456789abcdef0123456789abcdef01234567-host7", 0, 2);
    is_int(acquire(0), REDLOCK_HELD, "holder left out: refused by a quorum is held");
    is_int(acquire(300), REDLOCK_TIMEOUT, "holder left out: also for all of a wait");
    fake_pass(&client, 10 * MS);
    ok(redlock_holder_label(&lock)[0] == '\0', "holder left out: no holder is told");
    is_int((int)fake_count(-1, 'P'), 0, "holder left out: nobody is asked for how long");
}

static void for_how_long(void)
{
    char holder[16];
    uint64_t left_us;
    int i;

    begin_with_defaults(5);
    for (i = 0; i < 5; i++)
        fake_put(i, "k", i == 1 ? "a key that is left" : "somebody", i == 1 ? 60000 : 7000);
    is_int(acquire(0), REDLOCK_HELD, "holder: refused");
    ok(holder_until(&lock) == 0 && fake_count(-1, 'P') == 0, "holder: nobody asked for how long");
    set_holder(&lock, holder, sizeof holder);
    for (i = 0; i < 5; i++) {
        fake_pass(&client, 20 * MS);
        fake_logged = 0;
        fake_nodes[i].delay_us = 5 * MS;
        ok(acquire(0) != REDLOCK_OK, "holder: refused, and asked for how long");
        left_us = holder_until(&lock) - fake_now_us;
        ok(left_us <= 7000 * MS && left_us > 6500 * MS, "holder: as who has most nodes: %lu us",
           (unsigned long)left_us);
        ok(strncmp(holder, "somebody", RESP_TEXT_MAX) == 0, "holder: who is %s", holder);
        ok(fake_count(-1, 'P') <= fake_count(-1, 'D'), "holder: once with each undoing");
        fake_nodes[i].delay_us = 0;
    }
    for (i = 0; i < 5; i++)
        fake_put(i, "k", "somebody", 0);
    acquire(0);
    ok(holder_until(&lock) == REDLOCK_NEVER, "holder: without end");
    deleted_on(0, 4);
    is_int(acquire(0), REDLOCK_OK, "holder: nobody");
    ok(holder_until(&lock) == 0, "holder: for no time");
    is_int(release(1000), REDLOCK_OK, "holder: released");
    for (i = 0; i < 5; i++) {
        fake_put(i, "k", "somebody", 5000);
        fake_nodes[i].server.no_pttl = 1;
    }
    is_int(acquire(0), REDLOCK_HELD, "holder: refused, where PTTL is not permitted");
    ok(holder_until(&lock) == 0 && strncmp(holder, "somebody", RESP_TEXT_MAX) == 0 &&
           nodes[0].error[0] == '\0',
       "holder: who it is is told, and no trouble made of the rest");
}

/* A reply that comes when the lock is the caller's again. */
static void for_how_long_too_late(void)
{
    struct redlock_lock other_use;
    char holder[16];

    begin_with_defaults(3);
    held_by("somebody", 0, 2);
    acquire(0);
    fake_pass(&client, 10 * MS);
    fake_nodes[2].delay_us = 20 * MS;
    set_holder(&lock, holder, sizeof holder);
    is_int(acquire(0), REDLOCK_HELD, "holder: two of three say so");
    memset(&other_use, 0xff, sizeof other_use);
    lock = other_use;
    fake_pass(&client, 100 * MS);
    is_int((int)fake_count(2, 'P'), 1, "holder: the third was asked too");
    ok(memcmp(&lock, &other_use, sizeof lock) == 0, "holder: its answer finds nobody");
}

/* The operation ends when the third node has named the holder, but not yet for how long it has the lock. Bytes come
   one at a time, and names have all lengths. */
static void for_how_long_in_between(void)
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
    is_int((int)touched, 0, "holder: whenever it comes, an answer finds nobody");
    ok(between > 0, "holder: %u times after all was decided", between);
}

/* 2 ms later all that has come is read. */
static void hear_all(void)
{
    unsigned i;

    fake_now_us += 2 * MS;
    for (i = 0; i < 3; i++)
        redlock_handle_events(&client, i, REDLOCK_READABLE);
}

/* The connection to node 0 breaks before the next byte: does the next one begin with a handshake? */
static int breaks_and_is_not_greeted(void)
{
    unsigned i;

    fake_break(0);
    fake_logged = 0;
    fake_pass(&client, 3000 * MS);
    for (i = 0; i < fake_logged && fake_log[i].node != 0; i++)
        continue;
    return i < fake_logged && strchr("HAL", fake_log[i].kind) == NULL;
}

/* A rollback is queued, then room is made for what goes with it, and the connection turns out to be broken.
   Keys of all sizes, so that each of the commands is the one that finds no room. */
static void r04_a_connection_breaks_while_room_is_made(void)
{
    static struct redlock_lock many[4];
    static char keys[4][REDLOCK_KEY_MAX];
    char holder[8];
    unsigned size, i, kept = 0, ungreeted = 0;
    /* without diagnosis an attempt does not wait for the replies to its rollback: what is lost is sent
       again later, for a few locks */
    unsigned most = !REDLOCK_DIAGNOSIS && REDLOCK_OWED_MAX < 4 ? 4 - REDLOCK_OWED_MAX : 0;

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
        hear_all();
        ungreeted += (unsigned)breaks_and_is_not_greeted();
        for (i = 0; i < 4; i++)
            kept += fake_find(0, keys[i], size - 1) != NULL;
    }
    ok(kept <= most * (REDLOCK_KEY_MAX - 1),
       "r04: what was granted is undone on the next connection (%u are left)", kept);
    is_int((int)ungreeted, 0, "r12: which begins with a greeting");
}

#if REDLOCK_MULTI_KEY
/* The same with releases of two other locks before it, on a connection that has not tried the server's own
   command yet, as these have several keys. With some sizes there is room for the rollback, but not for what
   follows it. */
static void r12_nothing_is_queued_on_a_broken_connection(void)
{
    static struct redlock_lock many[3];
    static char keys[3][REDLOCK_KEY_MAX];
    static const struct redlock_key more[] = {{"x", 1}, {"y", 1}, {"z", 1}};
    char holder[8];
    unsigned size, mine, i, ungreeted = 0;

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
            hear_all();
            ungreeted += (unsigned)breaks_and_is_not_greeted();
        }
    is_int((int)ungreeted, 0, "r12: each connection begins with a greeting");
}
#endif

static void forks(void)
{
    begin_with_defaults(3);
    acquire(0);
    fake_forks++;
    is_int((int)redlock_extend_start(&client, &lock), REDLOCK_FORKED, "fork: no extension");
    is_int((int)redlock_release_start(&client, &lock, 0), REDLOCK_FORKED, "fork: no release");
    is_int((int)redlock_auto_extend_start(&client, &lock, 1), REDLOCK_FORKED, "fork: no keeping");
    is_int(acquire(0), REDLOCK_FORKED, "fork: no acquire");
    is_int((int)fake_count(-1, 'D'), 0, "fork: not a byte");
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
    is_int((int)fake_count(4, 'D'), 1, "r11 T6: it went to the one that never answered too");
    is_int((int)fake_keys_left(), 0, "r11 T6: no key is left");
    ok(each_set_is_undone(-1), "r05: behind each SET");
}

/* Servers that know a command of their own which releases: 1 DELIFEQ, 2 DELEX, 4 EVALSHA. */
static void begin_native(unsigned count, int native)
{
    unsigned i;

    begin_with_defaults(count);
    for (i = 0; i < count; i++)
        fake_nodes[i].server.native = native;
}

static void take_and_give(unsigned times)
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
    take_and_give(3); /* and it is found out which commands there are */
    acquire(0);
    is_int(release(100), REDLOCK_OK, "r11: released");
    is_int(release(100), REDLOCK_EXPIRED, "r11: twice");
    is_int((int)redlock_remaining_ms(&client, &lock), 0, "r11: nothing is left");
    acquire(0);
    fake_pass(&client, 11000 * MS);
    is_int(release(100), REDLOCK_EXPIRED, "r11: ended by its ttl");
    acquire(0);
    fake_pass(&client, 11000 * MS);
    held_by("other", 0, 2);
    is_int(release(100), RELEASED_TAKEN, "r11: ended, and another has it");
    is_int((int)fake_keys_left(), 3, "r11: which stays");
    begin_native(3, native);
    take_and_give(3);
    acquire(0);
    fake_pass(&client, 10 * MS);
    for (i = 0; i < 2; i++)
        fake_nodes[i].hung = 1;
    is_int(release(70), REDLOCK_UNCONFIRMED, "r11: two of three hang");
    for (i = 0; i < 2; i++)
        fake_resume(i);
    is_int(release(100), REDLOCK_EXPIRED, "r11 T40: may be repeated");
}

static void r11_a_dead_member_is_no_loss(void)
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
    is_int(release(1000), REDLOCK_OK, "r11: two deleted, two have none, one dead: released");
}

static void r11_not_waited_for(void)
{
    uint64_t start;

    begin_with_defaults(3);
    acquire(0);
    start = fake_now_us;
    is_int(release(0), REDLOCK_UNCONFIRMED, "r11: sent, the answers are not waited for");
    is_int((int)since(start), 0, "r11: in no time");
    is_int((int)fake_count(-1, 'D'), 3, "r11: the bytes have left");
    is_int((int)fake_keys_left(), 0, "r11: and done their work");
}

static void r11_own_commands_are_found_out(void)
{
    static const struct {
        int native, denied;
        unsigned scripts, natives; /* to each server, in four rounds */
    } cases[] = {{0, 0, 4, 3}, {1, 0, 1, 4}, {2, 0, 2, 4}, {3, 0, 1, 4},
                 {4, 0, 3, 4}, {7, 0, 1, 4}, {7, 1, 4, 3}};
    unsigned i, n;

    for (n = 0; n < sizeof cases / sizeof *cases; n++) {
        unsigned wrong = 0;
        begin_native(3, cases[n].native);
        for (i = 0; i < 3; i++)
            fake_nodes[i].server.no_native = cases[n].denied;
        take_and_give(4);
        for (i = 0; i < 3; i++)
            wrong += fake_count((int)i, 'D') != cases[n].scripts ||
                     fake_count((int)i, 'N') != cases[n].natives || nodes[i].error[0] != '\0' ||
                     fake_nodes[i].dials != 1;
        is_int((int)wrong, 0, "r11: %d%s: %u scripts and %u others in four rounds, no trouble",
               cases[n].native, cases[n].denied ? ", denied" : "", cases[n].scripts,
               cases[n].natives);
        for (i = 0; i < 3; i++)
            fake_break((int)i);
        fake_pass(&client, 20 * MS);
        take_and_give(1);
        is_int((int)fake_count(0, 'D'), (int)cases[n].scripts + 1,
               "r11: and again on the next connection");
    }
}

static void r11_left_out(void)
{
    begin_native(3, 7);
    take_and_give(4);
    is_int((int)fake_count(-1, 'D'), 12, "r11 left out: released by script");
    is_int((int)fake_count(-1, 'N'), 0, "r11 left out: and by nothing else");
}

/* The command is gone, in mid-connection: behind a proxy, or the right to it was taken back. */
static void r11_own_commands_that_are_gone(void)
{
    unsigned i, n, others = 0;

    for (n = 0; n < 4; n++) {
        int native = n < 2 ? 4 : 2, denied = n % 2;
        begin_native(5, native);
        take_and_give(4);
        acquire(0);
        for (i = 0; i < 5; i++) {
            fake_nodes[i].server.native = denied ? native : 0;
            fake_nodes[i].server.no_native = denied;
        }
        fake_logged = 0;
        is_int(release(1000), REDLOCK_OK, "r11 T39: unknown from now on: released all the same");
        is_int((int)fake_keys_left(), 0, "r11 T39: everywhere");
        fake_pass(&client, 20 * MS);
        for (i = 0; i < 5; i++)
            others += fake_count((int)i, 'N') != n / 2 + 1 || fake_count((int)i, 'D') != 1 ||
                      nodes[i].error[0] != '\0' || fake_nodes[i].dials != 1;
        is_int((int)others, 0, "r11: by script, and without a word of it, as the token is in it");
        fake_logged = 0;
        take_and_give(1);
        is_int((int)fake_count(-1, 'N'), 0, "r11: nor is any tried again");
    }
}

static void r11_own_commands_are_tried_once(void)
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
    is_int((int)fake_count(-1, 'D'), 6, "r11: two releases under way");
    is_int((int)fake_count(-1, 'N'), 3, "r11: one try with them");
}

/* There is room for the release, but not for the try behind it, although a byte was sent to make some: what
   the next node is sent is whole all the same. */
static void r02_room_that_is_made(void)
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
    is_int(lock.status, REDLOCK_OK, "r02: released while one takes byte by byte");
    fake_nodes[0].drip = 0;
    fake_pass(&client, 20 * MS);
    is_int((int)fake_count(-1, 'D'), 3, "r02: on all three");
}

static void r11_own_commands_say_less(void)
{
    begin_native(3, 1);
    take_and_give(1);
    held_by("other", 0, 2);
    fake_logged = 0;
    is_int(acquire(0), REDLOCK_HELD, "r11: an attempt is undone by script");
    is_int((int)fake_count(-1, 'N'), 0, "r11: which tells who has it");
    begin_native(3, 1);
    take_and_give(1);
    acquire(0);
    fake_nodes[1].says = fake_nodes[2].says = "";
    fake_nodes[1].says_once = fake_nodes[2].says_once = 1;
    is_int(release(1000), REDLOCK_OK, "r11: two connections break under it: sent again");
    is_int((int)fake_keys_left(), 0, "r11: and done");
    begin_native(3, 1);
    take_and_give(1);
    acquire(0);
    fake_nodes[1].says = "+OK\r\n";
    is_int(release(1000), REDLOCK_OK, "r11: one answers nonsense to it");
    fake_pass(&client, 5 * MS);
    ok(has_error(1, "unexpected reply"), "r11: and is told so: %s", nodes[1].error);
    begin_native(3, 1);
    take_and_give(1);
    acquire(0);
    is_int(release(0), REDLOCK_UNCONFIRMED, "r11: not waited for");
    is_int((int)fake_keys_left(), 0, "r11: but sent");
    fake_pass(&client, 20 * MS);
    is_int(nodes[0].state, REDLOCK_NODE_READY, "r11: and its answer is read and dropped");
}

#if REDLOCK_MULTI_KEY
static void r11_own_commands_know_one_key(void)
{
    static const struct redlock_key more = {"k2", 2};

    unsigned n;

    for (n = 0; n < 4; n++) {
        begin_native(3, 7);
        take_and_give(n);
        set_extra_keys(&lock, &more, 1);
        fake_logged = 0;
        take_and_give(2);
        is_int((int)fake_count(-1, 'N'), 0, "r11: several keys are released by script");
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
    is_int((int)since(start), 50 * MS, "r15: for node_timeout_ms");
    start = fake_now_us;
    is_int(acquire(500), REDLOCK_UNREACHABLE, "r15: and with a wait");
    ok(since(start) <= (500 + 150) * MS, "r15: wait_ms + 3 * node_timeout_ms at most: %ld us",
       since(start));
    begin(5);
    for (i = 0; i < 3; i++)
        fake_nodes[i].never_up = 1;
    start = fake_now_us;
    is_int(acquire(0), REDLOCK_UNREACHABLE, "r15: three connections never come up");
    is_int((int)since(start) / MS, 1001, "r15: for stall_ms");
    ok(has_error(0, "no connection"), "r15: %s", nodes[0].error);
    is_int(nodes[0].state, REDLOCK_NODE_DOWN, "r15: then it is given up");
    start = fake_now_us;
    is_int(acquire(0), REDLOCK_UNREACHABLE, "r15: and asked again");
    is_int((int)since(start), MS, "r15: they are known to be down");
    begin(3);
    acquire(0);
    for (i = 0; i < 3; i++)
        fake_nodes[i].hung = 1;
    start = fake_now_us;
    is_int(release(80), REDLOCK_UNCONFIRMED, "r15: all hang at release");
    is_int((int)since(start), 80 * MS, "r15: for wait_ms");
}

static unsigned flooded;

/* Node 0 sends something unsolicited, nearly without end: the test has to end. */
static int flood(void *context, struct redlock_node *node, void *bytes, size_t size)
{
    static const char push[] = ">1\r\n:1\r\n";
    size_t i;

    if (node != &nodes[0] || flooded >= 100 * 1000 * 1000)
        return fake_io()->receive(context, node, bytes, size);
    fake_now_us += 10;
    for (i = 0; i < size; i++)
        ((char *)bytes)[i] = push[flooded++ % (sizeof push - 1)];
    return (int)size;
}

/* Other nodes and the caller have their share of the loop. */
static void r15_a_chatty_node_does_not_hold_the_loop(void)
{
    struct redlock_io io = *fake_io();
    uint64_t start;

    begin_with_defaults(3);
    io.receive = flood;
    is_int(redlock_init(&client, &io, nodes, 3, &settings), REDLOCK_OK, "r15: a node that talks");
    flooded = 0;
    start = fake_now_us;
    is_int(acquire(0), REDLOCK_OK, "r15: the others are heard");
    ok(flooded > 0 && since(start) < 150 * MS, "r15: after %u bytes of it, in %ld us", flooded,
       since(start));
    is_int(release(1000), REDLOCK_OK, "r15: also at the end");
    redlock_deinit(&client);
}

static void r15_a_short_ttl_is_not_waited_out(void)
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

static void bad_arguments_reach_nobody(void)
{
    struct redlock_lock bad;
    struct redlock_client zero;

    begin_with_defaults(3);
    memset(&zero, 0, sizeof zero);
    is_int(acquire(0), REDLOCK_OK, "a lock in use:");
    fake_pass(&client, 5 * MS);
    fake_logged = 0;
    is_int(acquire(0), REDLOCK_ALREADY_HELD, "T32: acquired twice");
    redlock_release_start(&client, &lock, 0);
    is_int((int)redlock_acquire(&client, &lock, 0), REDLOCK_INVALID_ARGUMENT,
           "acquired in progress");
    is_int((int)redlock_extend(&client, &lock), REDLOCK_INVALID_ARGUMENT, "extended in progress");
    is_int((int)redlock_release(&client, &lock, 0), REDLOCK_UNCONFIRMED,
           "but released in any state");
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
    is_int((int)redlock_remaining_ms(NULL, NULL), 0, "remaining of nothing");
    is_int((int)redlock_remaining_ms(&client, NULL), 0, "of no lock");
    is_int((int)redlock_remaining_ms(&zero, &bad), 0, "with a client without init");
    redlock_cancel(&client, NULL);
    redlock_cancel(NULL, &bad);
    redlock_abandon(&client, NULL);
    redlock_abandon(NULL, &bad);
    redlock_deinit(NULL);
    redlock_deinit(&zero);
    is_int((int)fake_logged, 0, "nothing was sent");
    is_int(fake_nodes[0].dials, 0, "nobody was dialled");
}

/* A setting of a feature that a build lacks is refused, never ignored. The fields of such a feature are not in
   struct redlock_lock: test/switches.sh. */
static void what_is_left_out_is_refused(void)
{
    static const struct redlock_key more[] = {{"m", 1}};
    struct redlock_settings durable = {.durable = 1}, guarded = {.longest_ttl_ms = 20000};

    begin_with_defaults(3);
    if (REDLOCK_MULTI_KEY) {
        set_extra_keys(&lock, more, 1);
        is_int(acquire(0), REDLOCK_OK, "several keys: in this build");
        begin_with_defaults(3);
    }
    if (REDLOCK_FENCING) {
        set_use_fencing(&lock, 1);
        is_int(acquire(0), REDLOCK_OK, "fencing tokens: in this build");
    }
    is_int((int)redlock_init(&client, fake_io(), nodes, 3, &durable),
           REDLOCK_DURABLE ? REDLOCK_OK : REDLOCK_INVALID_ARGUMENT,
           "durable votes: in this build, or refused");
    if (!REDLOCK_DURABLE)
        ok(has_error(0, "durable"), "%s", nodes[0].error);
    begin_with_defaults(3);
    is_int((int)redlock_init(&client, fake_io(), nodes, 3, &guarded),
           REDLOCK_RESTART_GUARD ? REDLOCK_OK : REDLOCK_INVALID_ARGUMENT,
           "the delay after a restart: in this build, or refused");
    if (!REDLOCK_RESTART_GUARD)
        ok(has_error(0, "longest_ttl_ms"), "%s", nodes[0].error);
}

static void bad_drift(void)
{
    memset(&settings, 0, sizeof settings);
    settings.drift_ppm = 500000;
    begin(3);
    lock.ttl_ms = 10;
    is_int(acquire(0), REDLOCK_OK, "ttl 10 ms, drift 7 ms");
    redlock_abandon(&client, &lock);
    memset(&settings, 0, sizeof settings);
}

static void bad_settings(void)
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
        {{.durable = 2}, "durable"},
    };
    unsigned i;

    begin_with_defaults(5);
    redlock_deinit(&client);
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        is_int((int)redlock_init(&client, fake_io(), nodes, 5, &cases[i].settings),
               REDLOCK_INVALID_ARGUMENT, "T52: setting out of range: %s", cases[i].name);
        ok(has_error(0, cases[i].name), "and named: %s", nodes[0].error);
    }
    memset(&client, 0xaa, sizeof client);
    is_int((int)redlock_init(&client, fake_io(), nodes, 0, NULL), REDLOCK_INVALID_ARGUMENT,
           "no nodes");
    redlock_deinit(&client);
    ok(client.priv.nodes == NULL, "deinit after a failed init is harmless");
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
    ok(has_error(2, "same address"), "and named: %s", nodes[2].error);
    nodes[2].address = NULL;
    is_int((int)redlock_init(&client, fake_io(), nodes, 3, NULL), REDLOCK_INVALID_ARGUMENT,
           "no address");
}

static void tokens_of_the_caller(void)
{
    begin_with_defaults(3);
    set_label(&lock, "\r\nhost\0 7", 9);
    is_int(acquire(0), REDLOCK_OK, "a label with CR LF NUL");
    ok(fake_find(0, "k", 1)->value_size == 49 &&
           memcmp(fake_find(0, "k", 1)->value + 40, "\r\nhost\0 7", 9) == 0,
       "follows the random part");
    is_int(extend(), REDLOCK_OK, "is compared by extend");
    is_int(release(100), REDLOCK_OK, "and by release");
    set_token_is_label(&lock, 1);
    is_int(acquire(0), REDLOCK_OK, "a token of the caller's alone");
    ok(fake_find(0, "k", 1)->value_size == 9, "is the whole value");
    release(100);
    held_by("other", 0, 2);
    fake_logged = 0;
    is_int(acquire(5000), REDLOCK_HELD, "and good for one attempt");
    is_int((int)fake_count(0, 'S'), 1, "r01: only");
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
    ok(redlock_remaining_ms(&client, &other) > 9000, "T15: which does not touch the other");
    redlock_release(&client, &other, 100);
}

static void binary_keys(void)
{
    begin_with_defaults(3);
    redlock_lock_init(&lock, "a\0b\r\nDEL x", 10, 10000);
    is_int(acquire(0), REDLOCK_OK, "a key with NUL CR LF");
    ok(fake_find(1, "a\0b\r\nDEL x", 10) != NULL, "is one key");
    is_int(release(100), REDLOCK_OK, "and released");
    is_int((int)fake_keys_left(), 0, "nothing left");
}

static void no_entropy_no_lock(void)
{
    unsigned times = 0;

    begin_with_defaults(3);
    fake_no_entropy = 1;
    is_int(acquire(1000), REDLOCK_NO_ENTROPY, "no random bytes");
    is_int((int)fake_count(-1, 'S'), 0, "no lock was asked for");
    fake_no_entropy = 0;
    is_int(acquire(1000), REDLOCK_OK, "works again");
    begin_with_defaults(3);
    for (; (times + 2) * 20 <= REDLOCK_POOL_MAX;
         times++) { /* one more token, and the pool is empty */
        acquire(0);
        release(100);
    }
    held_by("other", 0, 1);
    redlock_acquire_start(&client, &lock, 60000);
    redlock_tick(&client);
    fake_no_entropy = 1;
    for (times = 0; times < 40 && redlock_next_completed(&client) == NULL; times++)
        fake_pass(&client, 1000 * MS);
    fake_no_entropy = 0;
    is_int(lock.status, REDLOCK_NO_ENTROPY,
           "no random bytes later on: tried again without, but not locked");
    is_int((int)fake_keys_left(), 2, "and nothing of ours is left");
}

/* 2,147,483,647 ms are more than 32 bits of microseconds. */
static void remaining_of_the_longest_ttl(void)
{
    uint32_t left;

    begin_with_defaults(3);
    redlock_lock_init(&lock, "k", 1, 0x7fffffff);
    is_int(acquire(0), REDLOCK_OK, "24 days");
    left = redlock_remaining_ms(&client, &lock);
    ok(left <= (lock.valid_until_us - fake_now_us) / 1000 && left > 2125000000U,
       "remaining: rounded down, but little: %lu ms", (unsigned long)left);
    fake_pass(&client, (uint64_t)86400000 * MS);
    is_int((long)(left - redlock_remaining_ms(&client, &lock)) / 1000, 86400,
           "a day less a day later");
    release(100);
}

static void clock_that_steps_back(void)
{
    begin_with_defaults(3);
    acquire(0);
    fake_pass(&client, 1000 * MS);
    fake_now_us -= 5000 * (uint64_t)MS;
    redlock_tick(&client);
    is_int(extend(), REDLOCK_OK, "a clock that steps back does no harm");
    ok(lock.valid_until_us <= fake_now_us + 15000 * (uint64_t)MS, "nor does it prolong for long");
    redlock_abandon(&client, &lock);
}

static void an_end_is_told_at_once(void)
{
    unsigned i;

    begin_with_defaults(3);
    warm_up();
    redlock_acquire_start(&client, &lock, 0);
    redlock_tick(&client);
    fake_now_us += 2 * MS;
    for (i = 0; i < 3; i++)
        redlock_handle_events(&client, i, REDLOCK_READABLE);
    is_int((int)redlock_tick(&client), 0, "a tick in which a lock has ended says: at once");
    ok(redlock_tick(&client) > 0, "but only that one, whether it was fetched or not");
    ok(redlock_next_completed(&client) == &lock && redlock_next_completed(&client) == NULL,
       "it is fetched once");
}

/* More locks than places: all get their turn. */
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
    is_int((int)done, MANY, "and all reported, once each");
    for (i = 0; i < MANY; i++)
        redlock_release_start(&client, &many[i], 1000);
    fake_pass(&client, 200 * MS);
    for (i = 0, held = 0; i < MANY; i++)
        held += many[i].status == REDLOCK_OK;
    is_int((int)held, MANY, "and all released");
    is_int((int)fake_keys_left(), 0, "nothing left");
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
    is_int((int)held, MANY, "r05: a hung node, whose places are used up, stops nobody");
}

/* The server has closed the connection, which is noticed while room is made for more commands. */
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
    is_int((int)held, MANY, "T13: %d locks on connections that were dead: all held", MANY);
}

static void over_is_over(void)
{
    struct redlock_lock *gone = &lock;

    begin_with_defaults(3);
    warm_up();
    fake_nodes[2].delay_us = 30 * MS;
    acquire(0);
    redlock_abandon(&client, &lock);
    memset(gone, 0xaa,
           sizeof *gone); /* its memory is the caller's: the late grant must not touch it */
    fake_pass(&client, 100 * MS);
    ok(((unsigned char *)gone)[sizeof *gone - 1] == 0xaa && gone->granted == 0xaaaa,
       "r05: a forgotten lock is not written to");
    begin(3);
    warm_up();
    fake_nodes[2].delay_us = 30 * MS;
    acquire(0);
    release(100);
    memset(gone, 0xaa, sizeof *gone);
    fake_pass(&client, 100 * MS);
    ok(gone->granted == 0xaaaa, "r05: nor a released one");
    begin(3);
    redlock_acquire_start(&client, &lock, 1000);
    redlock_tick(&client);
    redlock_deinit(&client);
    is_int(lock.status, REDLOCK_CANCELLED, "deinit cancels what is in progress");
    is_int(nodes[0].handle == -1, 1, "and hangs up");
    redlock_deinit(&client);
}

static void texts_left_out(void)
{
    int status, said = 0;

    for (status = 2; status > -20; status--)
        said += redlock_strerror(status) == NULL || redlock_strerror(status)[0] != '\0';
    is_int(said, 0, "texts left out: a result has an empty one, never NULL");
    begin_with_defaults(3);
    lock.key_size = 0;
    is_int(acquire(0), REDLOCK_INVALID_ARGUMENT, "texts left out: no key");
    ok(redlock_invalid_argument(&client)[0] == '\0' && redlock_invalid_argument(NULL)[0] == '\0',
       "texts left out: why is not said");
    redlock_set_error(&nodes[0], "what", "why");
    ok(nodes[0].error[0] == '\0', "texts left out: nor what an io says of a node");
}

/* A new result without a case here does not compile. */
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
           strcmp(redlock_strerror(REDLOCK_CONTENDED), "contention: no client obtained a quorum") ==
               0 &&
           strcmp(redlock_strerror(REDLOCK_ALREADY_HELD), "lock is already held by this client") ==
               0,
       "each its own");
}

static void no_token_in_trouble(void)
{
    begin_with_defaults(3);
    fake_nodes[0].says = "-ERR unknown command 'EVAL', with args beginning with: 'x' '1' 'k'\r\n";
    acquire(0);
    fake_pass(&client, 10 * MS);
    ok(has_error(0, "unknown com") && strstr(nodes[0].error, "beginning") == NULL,
       "what a server repeats of our words is left out: %s", nodes[0].error);
    fake_nodes[1].says = "-ERR \033[31m\001\377 red\r\n";
    release(100);
    ok(has_error(1, "?[31m?? red"), "nor do control bytes get through: %s", nodes[1].error);
}

/* ---- All of them ------------------------------------------------------------------------------ */

static void acquiring(void)
{
    r01_new_token_for_every_attempt();
    r01_a_set_is_never_sent_again();
    r01_t1_is_read_before_the_first_byte();
    r02_all_nodes_at_once();
    r03_wall_clocks_decide_nothing();
    r03_decides_at_the_quorum();
    r03_validity_must_be_positive();
    r03_drift_has_a_floor();
    r03_quorum();
    r04_release_goes_to_every_asked_node();
    r04_release_after_the_first_answer_is_lost();
    r04_release_outlasts_a_full_buffer();
    r05_greetings_alone_are_no_use();
    r04_a_node_that_takes_no_bytes_is_given_up();
    r04_t8_cancel_undoes();
    r04_cancel_in_every_state();
    r05_unwanted_answers_are_dropped();
    r05_a_full_queue_keeps_answers_apart();
    who_waits_for_room_is_in_line();
    r05_nonsense_disconnects();
    r05_a_push_is_no_answer();
    r05_unasked_greeting_disconnects();
    r05_one_byte_at_a_time();
    r05_stalled_connection();
    r05_who_does_not_listen_sees_no_stall();
    r06_a_lost_attempt_ends_when_it_is_lost();
    r06_number_of_attempts();
    r06_pauses_are_random_and_grow();
    r06_two_clients_pause_differently();
    if (REDLOCK_DIAGNOSIS)
        r06_split_is_tried_again_quickly(5);
    else
        r06_a_split_is_taken_for_a_holder();
    r06_split_is_tried_again_quickly(4);
    r06_results_are_distinct();
    r06_which_errors_pass();
    r06_lost_but_not_known_why();
    r06_wait_gets_it_when_it_is_free();
    r06_dead_connections_are_replaced();
    r06_even_nodes_tell_a_holder_too();
    r06_round_trips_are_not_idle_time();
    r06_no_pause_still_ends();
}

static void notification(void)
{
    r07_without_pushes();
    if (!REDLOCK_NOTIFICATION) {
        r07_left_out();
        return;
    }
    r07_pushes_end_the_pause();
    if (REDLOCK_RESTART_GUARD)
        r07_not_for_want_of_voters();
    r07_wakes_at_random_moments();
    r07_who_is_refused_asks_to_be_told();
    r07_other_keys();
    r07_in_vain_stands_back();
    r07_one_is_woken();
}

static void extensions(void)
{
    r08_extension_moves_validity();
    r08_only_members_count();
    r08_late_grants_make_members();
    r08_confirmed_nodes_count_from_the_next_round();
    r08_failed_extension_changes_nothing();
    r08_extension_never_shortens();
    r08_compares();
    r05_a_lost_lock_leaves_no_votes();
    r08_extension_that_comes_too_late();
    r08_a_cancelled_extension();
    r08_no_longer_than_what_is_left();
    r08_answers_that_come_late();
    r08_a_late_grant_and_its_loss();
    r09_no_healing_of_others_after_the_end();
    r09_nothing_comes_back_from_the_dead();
    r10_number_of_extensions_is_limited();
    if (!REDLOCK_REPAIR) {
        r09_left_out();
        return;
    }
    r09_an_extension_heals();
    r09_healed_nodes_do_not_count_at_once();
    r09_a_healed_node_counts_when_it_has_confirmed();
    r09_no_healing_after_the_end();
    r09_a_healing_without_an_answer();
}

static void automatic_extensions(void)
{
    if (!REDLOCK_AUTO_EXTEND) {
        r10_left_out();
        return;
    }
    r10_kept_by_itself();
    r10_kept_up_to_a_limit();
    r10_loss_is_told_by_the_clock();
    r10_loss_whatever_the_retries();
    r10_two_of_one_key();
    r10_kept_through_failures();
    r10_kept_though_nodes_come_back_late();
    r10_failing_at_once_is_no_loop();
    r10_lost_to_another();
    r10_lost_is_not_released();
    r10_release_and_cancel_at_any_moment();
    r10_release_while_extending();
    r10_one_rate();
    r10_bad_keeps();
}

static void handshakes(void)
{
    if (REDLOCK_RESP3) {
        r12_greeting();
        r12_not_a_node();
    } else {
        r12_left_out();
    }
    r12_a_greeting_in_pieces();
    r12_wrong_password();
    r12_a_denial_names_the_permissions();
    r12_a_server_without_a_password_to_give();
    r12_bad_nodes_are_refused();
}

static void restarts(void)
{
    if (!REDLOCK_RESTART_GUARD) {
        r13_left_out();
        return;
    }
    r13_one_server_one_vote();
    r14_a_restarted_server_does_not_vote();
    r14_the_age_that_a_server_says();
    r14_extensions_too();
    if (!REDLOCK_MARKER)
        return;
    r18_no_vote_without_a_marker();
    r18_all_keys_are_gone();
    if (REDLOCK_REPAIR)
        r18_no_healing_either();
    r18_where_info_is_denied();
    r18_connected_while_it_loads();
    r18_each_has_its_own_longest();
    r18_a_clock_that_is_set_back();
}

static void fencing_tokens(void)
{
    if (!REDLOCK_FENCING)
        return;
    r16_one_round_trip();
    r16_agrees_on_the_largest();
    r16_a_higher_count_does_not_agree();
    r16_raising_has_an_end();
    r16_refused();
    r16_order();
}

static void diagnosis(void)
{
    if (!REDLOCK_DIAGNOSIS) {
        diagnosis_left_out();
        return;
    }
    who_holds_it();
    for_how_long();
    for_how_long_too_late();
    for_how_long_in_between();
}

static void releases(void)
{
    r11_release_goes_to_all_nodes();
    r11_outcomes(0);
    r11_outcomes(1);
    r11_outcomes(4);
    r11_a_dead_member_is_no_loss();
    r11_not_waited_for();
    if (!REDLOCK_NATIVE_RELEASE) {
        r11_left_out();
        return;
    }
    r11_own_commands_are_found_out();
    r11_own_commands_that_are_gone();
    r11_own_commands_are_tried_once();
    r02_room_that_is_made();
    r11_own_commands_say_less();
#if REDLOCK_MULTI_KEY
    r11_own_commands_know_one_key();
#endif
}

static void durable_votes(void)
{
    if (!REDLOCK_DURABLE)
        return;
    r17_counts_what_is_on_disk();
    r17_and_nothing_else();
    r17_extensions();
    r17_answers_that_come_late();
    r17_half_an_answer();
    r17_connections_that_break();
    r17_not_another_connections_answer();
    r17_a_no_is_final();
    r17_a_slow_disk_is_no_stall();
    r17_many_keys_and_tokens();
}

int main(void)
{
    acquiring();
    notification();
    extensions();
    automatic_extensions();
    handshakes();
    restarts();
    fencing_tokens();
    if (REDLOCK_MULTI_KEY)
        several_keys();
    longest_commands();
    adoption();
    diagnosis();
    r04_a_connection_breaks_while_room_is_made();
#if REDLOCK_MULTI_KEY
    r12_nothing_is_queued_on_a_broken_connection();
#endif
    forks();
    releases();
    r15_everything_is_bounded();
    r15_a_short_ttl_is_not_waited_out();
    r15_a_chatty_node_does_not_hold_the_loop();
    bad_arguments_reach_nobody();
    what_is_left_out_is_refused();
    bad_drift();
    durable_votes();
    bad_settings();
    if (REDLOCK_LABEL_MAX >= 9)
        tokens_of_the_caller();
    two_names_two_locks();
    binary_keys();
    no_entropy_no_lock();
    remaining_of_the_longest_ttl();
    clock_that_steps_back();
    an_end_is_told_at_once();
    many_at_once();
    many_with_a_hung_node();
    many_on_a_dead_connection();
    over_is_over();
    if (REDLOCK_ERROR_TEXTS)
        texts();
    else
        texts_left_out();
    is_int((int)redlock_version(), REDLOCK_VERSION_NUMBER, "version");
    no_token_in_trouble();
    return done_testing();
}
