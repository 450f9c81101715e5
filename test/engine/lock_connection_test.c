/* lock_connection_test.c - connections: replies in order, stalls, backoff, handshakes, restarted servers (R5, R12 to R14).

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "one_lock.h"

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
    acquire(0); /* connects it */
    fake_pass(&client, 10 * MS);
    release(100);
    acquire(0);
    fake_pass(&client, 10 * MS);
    is_int(lock.members, 7, "r05: the node is a member when its connection works again");
    release(100);
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
    is_int(nodes[0].state == REDLOCK_NODE_READY, !REDLOCK_MINIMAL,
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

/* A server closes a connection with an unanswered command, and the client is paused when it has seen that. The connection is
   closed once, for the first reason. Found by sim.c. */
static void r05_a_broken_connection_does_not_stall(void)
{
    if (REDLOCK_NODES_MAX < 5)
        return;
    begin_with_defaults(5);
    warm_up();
    fake_nodes[0].hung = fake_nodes[1].hung = 1;
    redlock_acquire_start(&client, &lock, 0);
    fake_pass(&client, 20 * MS);
    is_int(lock.status, REDLOCK_OK, "r05: three nodes decide, two do not reply");
    fake_break(0);
    fake_now_us += 1100 * MS;
    fake_receive_us = 1100 * MS;
    redlock_tick(&client);
    ok(has_error(0, "closed by the server"), "r05: closed, and not late: %s", nodes[0].error);
}

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
    is_int((int)commands, 2 + !REDLOCK_MINIMAL, "r12: the whole handshake is sent before a SET");
    is_int(fake_nodes[1].session.resp3, 0, "r12: RESP2 with the server without HELLO");
    release(100);
    held_by("other", 0, 2);
    acquire(0);
    ok(!fake_nodes[1].session.tracking && (REDLOCK_MINIMAL || fake_nodes[0].session.tracking),
       "r12: no notifications over RESP2");
    fake_nodes[1].server.old = 0; /* it is upgraded */
    fake_break(1);
    acquire(0);
    fake_pass(&client, 20 * MS);
    acquire(0);
    is_int(fake_nodes[1].connects, 2, "r12: its second connection");
    is_int(fake_nodes[1].session.resp3, 1, "r12: RESP3 when it has HELLO");
    ok(REDLOCK_MINIMAL || fake_nodes[1].session.tracking, "r12: with notifications");
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
        release(100); /* in whatever state it is */
        fake_pass(&client, 20 * MS);
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
        ok(wrong == 0 && seen == strlen(expected[n]) - REDLOCK_MINIMAL,
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
    ok(fake_count(-1, 'I') == (!REDLOCK_MINIMAL ? 3 : 0) &&
           fake_count(-1, !REDLOCK_MINIMAL ? 'H' : 'A') == 3 && i > (!REDLOCK_MINIMAL ? 5 : 2),
       "r12: the whole handshake is sent before the SETs");
    is_int(release(100), REDLOCK_OK, "r12: released");
}

/* A NAT has dropped the idle connections in silence. The first operation finds that, connects again, and succeeds. */
static void r05_half_open_connections(unsigned count, int what)
{
    uint64_t start;
    unsigned i;
    int status;

    begin_with_defaults(3);
    warm_up();
    if (what != 'a')
        acquire(0);
    fake_pass(&client, 5000 * MS);
    for (i = 0; i < count; i++)
        fake_hold((int)i);
    start = fake_now_us;
    status = what == 'a' ? acquire(0) : what == 'e' ? extend() : release(500);
    is_int(status, REDLOCK_OK, "r05: %u of three connections are half open: %c", count, what);
    ok(since(start) < 200 * MS, "r05: after %ld us", since(start));
    redlock_deinit(&client);
}

/* A server that hangs on a busy connection is not connected again before stall_ms. */
static void r05_a_busy_connection_is_not_half_open(void)
{
    int connects;

    begin_with_defaults(3);
    warm_up();
    acquire(0);
    fake_pass(&client, 500 * MS);
    connects = fake_nodes[2].connects;
    fake_nodes[2].hung = 1;
    extend();
    fake_pass(&client, 300 * MS);
    is_int(fake_nodes[2].connects, connects, "r05: a server that hangs keeps its connection");
    redlock_deinit(&client);
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
    fake_pass(&client, 30 * MS);
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

        if ((operation == 'f' && REDLOCK_MINIMAL) || (operation == 'm' && REDLOCK_MINIMAL) ||
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

/* A member that restarts with its keys tells the generation that was known. So it has not lost our key, and counts. */
static void r14_a_member_keeps_its_vote(void)
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
    fake_break(0);
    fake_nodes[1].hung = 1;
    is_int(extend(), REDLOCK_OK, "r14: a restarted member counts");
    is_int((int)votes(lock.members), 3, "r14: three members");
}

/* A member that restarts empty, and is repaired, may have lost the grant of another client, which still counts there. So it is no member
   before that must have expired. */
static void r14_a_repaired_node_has_no_vote(void)
{
    unsigned i;

    memset(&settings, 0, sizeof settings);
    settings.longest_ttl_ms = 10000;
    begin(3);
    for (i = 0; i < 3; i++)
        fake_nodes[i].server.age_s = 100;
    acquire(0);
    fake_pass(&client, 10 * MS);
    lose_keys(0);
    fake_nodes[0].server.age_s = 0;
    for (i = 0; i < 3; i++) {
        is_int(extend(), REDLOCK_OK, "r14: extended by the two others");
        fake_pass(&client, 10 * MS);
    }
    ok(fake_find(0, "k", 1) != NULL, "r14: the restarted one is repaired at once");
    is_int((int)votes(lock.members), 2, "r14: but is no member");
    ok(has_error(0, "not voting"), "r14: its error: %s", nodes[0].error);
    fake_pass(&client, 6000 * MS);
    is_int(extend(), REDLOCK_OK, "r14: extended");
    fake_pass(&client, 6300 * MS);
    is_int(extend(), REDLOCK_OK, "r14: extended when it votes again");
    fake_pass(&client, 10 * MS);
    is_int((int)votes(lock.members), 3, "r14: then it is a member");
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
    is_int(strcmp(holder, !REDLOCK_MINIMAL ? "another" : ""), 0,
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

/* The servers have closed the connections. The client finds this while it sends bytes to make room for more
   commands. */
static void many_on_a_dead_connection(void)
{
    enum { MANY = 40 };
    static struct redlock_lock many[MANY];
    unsigned i;

    begin_with_defaults(3);
    warm_up();
    for (i = 0; i < 3; i++)
        fake_break((int)i);
    is_int((int)acquire_many(many, MANY), MANY, "T13: %d locks on dead connections: all held",
           MANY);
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

int main(void)
{
    if (REDLOCK_PIPELINE_MAX == 2 || REDLOCK_READ_MAX == 1) { /* the other tests need more */
        r05_a_paused_process_reads_a_long_reply();
        r05_room_after_a_reply();
        r12_an_old_server_without_a_password(7);
        return done_testing();
    }
    r05_backoff_although_the_handshake_succeeds();
    r04_a_node_that_accepts_no_bytes_is_disconnected();
    r05_a_full_buffer_gives_no_more_time();
    r04_a_node_that_replies_early_is_disconnected();
    r05_late_replies_are_dropped();
    r05_a_full_queue_keeps_replies_apart();
    r05_nonsense_disconnects();
    r05_a_push_is_not_a_reply();
    r05_an_unsolicited_first_reply_disconnects();
    r05_one_byte_at_a_time();
    r05_stalled_connection();
    r05_a_connection_breaks_beside_a_held_lock();
    r05_a_stall_between_complete_locks();
    r05_an_idle_caller_causes_no_stall();
    r05_a_broken_connection_does_not_stall();
    r05_a_paused_process_reads_a_long_reply();
    r05_a_connect_that_fails_ends_the_wait();
    r05_half_open_connections(2, 'a');
    r05_half_open_connections(3, 'a');
    r05_half_open_connections(3, 'e');
    r05_half_open_connections(3, 'r');
    r05_a_busy_connection_is_not_half_open();
    r05_any_event_ends_a_connect();
    r04_a_connection_breaks_while_room_is_made();
    if (!REDLOCK_MINIMAL) {
        r12_handshake();
        r12_hello_refused_in_any_words();
        r12_auth_counts_where_hello_does_not();
        r12_not_a_node();
    } else {
        r12_left_out();
    }
    r12_a_handshake_in_pieces();
    r12_a_password_that_grew();
    r12_wrong_password();
    r12_a_denial_names_the_permissions();
    r12_an_old_server_without_a_password(0);
    r12_an_old_server_without_a_password(7);
    r12_invalid_nodes_are_refused();
    if (!REDLOCK_MINIMAL) {
        r13_one_server_one_vote();
        r13_connected_while_it_loads();
        r14_a_restarted_server_does_not_vote();
        r14_the_age_of_a_server();
        r14_a_member_keeps_its_vote();
        r14_a_repaired_node_has_no_vote();
        r14_an_age_that_is_not_known_any_more();
    } else {
        r13_left_out();
    }
    if (!REDLOCK_MINIMAL) {
        r05_backoff_while_an_adopted_lock_is_extended();
        r05_backoff_before_the_validity_ends();
        r12_nothing_is_queued_on_a_broken_connection();
    }
    longest_commands();
    many_on_a_dead_connection();
    error_texts_are_safe();
    return done_testing();
}
