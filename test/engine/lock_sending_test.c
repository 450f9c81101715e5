/* lock_sending_test.c - R2, R5: the send buffer that all nodes share, and the requests of each node, with
   more commands than there is room for.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "many_locks.h"
#include "one_lock.h"

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
        redlock_lock_init(&more[i], "k", 10000);
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

/* The queue of a slow node is full. Releases whose replies are dropped share one slot. The SET before them
   must have a slot for itself, because its reply has another form. */
static void r05_a_full_queue_keeps_replies_apart(void)
{
    struct redlock_lock some[REDLOCK_PIPELINE_MAX - 1];
    unsigned i;

    if (REDLOCK_PIPELINE_MAX > 100)
        return; /* a simulated server has no room for so some keys */
    begin_with_defaults(1);
    warm_up();
    fake_nodes[0].hung = 1;
    for (i = 0; i < REDLOCK_PIPELINE_MAX - 1; i++) {
        init_bytes(&some[i], &"abcdefghijklmnopqrstuvwxyz"[i % 26], 1, 10000);
        redlock_acquire_start(&client, &some[i], 1000);
        fake_pass(&client, 0);
    }
    redlock_cancel(&client, &some[i - 1]);
    fake_pass(&client, 60 * MS);
    fake_resume(0);
    fake_pass(&client, 100 * MS);
    ok(nodes[0].state == REDLOCK_NODE_READY && fake_nodes[0].connects == 1,
       "r05: the connection stays up: %s", nodes[0].error);
    redlock_deinit(&client);
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

/* The longest commands that the limits permit. The smallest REDLOCK_SEND_MAX that compiles has a few bytes more. */
static void longest_commands(void)
{
    static char key[REDLOCK_KEY_MAX + 1], label[REDLOCK_LABEL_MAX + 11], holder[9];
    struct redlock_key more;
    int kind, i;

    memset(key, 'k', REDLOCK_KEY_MAX);
    memset(label, 'l', sizeof label);
    for (kind = 0; kind < 3; kind++) {
        memset(&settings, 0, sizeof settings);
        begin(3);
        init_bytes(&lock, key, REDLOCK_KEY_MAX, 0x7fffffff);
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
    init_bytes(&lock, key, REDLOCK_KEY_MAX, 0x7fffffff);
    set_label(&lock, label, REDLOCK_LABEL_MAX);
    set_holder(&lock, holder, sizeof holder);
    for (i = 0; i < 3; i++)
        fake_put(i, key, "another", 60000);
    is_int(acquire(0), REDLOCK_HELD, "longest commands: refused");
    is_int(strcmp(holder, !REDLOCK_MINIMAL ? "another" : ""), 0,
           "longest commands: the holder is named");
}

/* There is room for the release, but not for the native command after it, even after a byte was sent to make
   room. The commands to the next node must be complete all the same. */
static void r02_a_full_buffer_cuts_no_command(void)
{
    static char key[64];
    struct redlock_lock locks[2];
    unsigned i;

    begin_with_defaults(3);
    memset(key, 'a', sizeof key);
    lock.key = key;
    lock.key_size = 64;
    is_int(acquire(0), REDLOCK_OK, "r02: held");
    fake_pass(&client, 20 * MS);
    fake_nodes[0].drip = 1;
    for (i = 0; i < 2; i++) {
        init_bytes(&locks[i], key, 62 + i, 10000);
        redlock_acquire_start(&client, &locks[i], 0);
    }
    redlock_release_start(&client, &lock, 1000);
    fake_pass(&client, 20 * MS);
    is_int(lock.status, REDLOCK_OK, "r02: released while one node accepts byte after byte");
    fake_nodes[0].drip = 0;
    fake_pass(&client, 20 * MS);
    is_int((int)fake_count(-1, 'D'), 3, "r02: the release was sent to all three");
}

/* ---- Connections that break while room is made ---------------------------------------------- */

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
    static struct redlock_lock some[4];
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
            redlock_lock_init(&some[i], keys[i], 10000);
            set_holder(&some[i], holder, sizeof holder);
            redlock_acquire_start(&client, &some[i], 0);
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
    static struct redlock_lock some[3];
    static char keys[3][REDLOCK_KEY_MAX];
    static const struct redlock_key more[] = {{"x", 1}, {"y", 1}, {"z", 1}};
    char holder[8];
    unsigned size, mine, i, without = 0;

    for (size = 1; size < REDLOCK_KEY_MAX - 14; size++)
        for (mine = 1; mine < REDLOCK_KEY_MAX; mine++) {
            begin_with_defaults(3);
            for (i = 0; i < 3; i++) {
                memset(keys[i], 'a' + (int)i, sizeof keys[i]);
                init_bytes(&some[i], keys[i], i == 0 ? mine : size, 10000);
                set_extra_keys(&some[i], &more[i], i > 0);
                if (i > 0)
                    redlock_acquire(&client, &some[i], 0);
            }
            for (i = 1; i < 3; i++) {
                struct mini_word name, value = {"somebody", 8};
                name.bytes = keys[0];
                name.size = mine;
                mini_store(&fake_nodes[i].server, name, value, UINT64_MAX);
            }
            set_holder(&some[0], holder, sizeof holder);
            redlock_acquire_start(&client, &some[0], 0);
            redlock_tick(&client);
            for (i = 1; i < 3; i++)
                redlock_release_start(&client, &some[i], 1000);
            read_replies();
            without += (unsigned)reconnects_without_handshake();
        }
    is_int((int)without, 0, "r12: each connection begins with a handshake");
}

/* The servers have closed the connections. The client finds this while it sends bytes to make room for more
   commands. */
static void many_on_a_dead_connection(void)
{
    enum { SOME = 40 };
    static struct redlock_lock some[SOME];
    unsigned i;

    begin_with_defaults(3);
    warm_up();
    for (i = 0; i < 3; i++)
        fake_break((int)i);
    is_int((int)acquire_many(some, SOME), SOME, "%d locks on dead connections: all held",
           SOME);
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
        init_bytes(&other, key, size, 10000);
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
        set_use_fencing(&lock, 1);
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

int main(void)
{
    r05_a_full_buffer_gives_no_more_time();
    r05_a_full_queue_keeps_replies_apart();
    r05_a_burst_is_sent_at_once();
    r05_a_node_that_is_slow_to_accept_bytes();
    r05_room_again_in_the_same_tick();
    r05_replies_make_no_room();
    r05_a_loss_costs_no_connection();
    r05_a_paused_process_disconnects_no_node();
    longest_commands();
    r04_a_connection_breaks_while_room_is_made();
    many_on_a_dead_connection();
    r05_a_break_while_room_is_made();
    r05_a_break_after_an_earlier_failure();
    if (!REDLOCK_MINIMAL)
        r05_a_break_before_the_next_command();
    if (!REDLOCK_MINIMAL) {
        r02_a_full_buffer_cuts_no_command();
        r12_nothing_is_queued_on_a_broken_connection();
    }
    return done_testing();
}
