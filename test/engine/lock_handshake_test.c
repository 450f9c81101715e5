/* lock_handshake_test.c - R12 to R14: what a connection begins with, which server is behind it, and what that
   server may have lost.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "one_lock.h"

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
    is_int(fake_nodes[0].session.named, !REDLOCK_MINIMAL, "r12: the connection has a name");
    is_int(fake_nodes[1].session.resp3, 0, "r12: RESP2 with the server without HELLO");
    release(100);
    held_by("other", 0, 2);
    acquire(1);
    ok(!fake_nodes[1].session.tracking && (REDLOCK_MINIMAL || fake_nodes[0].session.tracking),
       "r12: no notifications over RESP2");
    fake_nodes[1].server.old = 0; /* it is upgraded */
    fake_break(1);
    acquire(1);
    fake_pass(&client, 20 * MS);
    acquire(1);
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

/* The password may change while the node has no connection: the next login uses the new one. */
static void r12_a_password_that_changes(void)
{
    char password[] = "first";

    begin_with_defaults(1);
    redlock_deinit(&client);
    nodes[0].password = fake_nodes[0].server.password = password;
    is_int((int)redlock_init(&client, fake_io(), nodes, 1, NULL), REDLOCK_OK, "r12: redlock_init");
    is_int(acquire(0), REDLOCK_OK, "r12: logged in with the first password");
    fake_nodes[0].server.password = "second-and-longer";
    is_int(extend(), REDLOCK_OK, "r12: a connection that is up stays");
    fake_break(0);
    fake_pass(&client, 10 * MS);
    ok(nodes[0].state == REDLOCK_NODE_IDLE || nodes[0].state == REDLOCK_NODE_DOWN,
       "r12: it breaks");
    memset(password, 'x', sizeof password - 1); /* the memory of the first one is the caller's */
    nodes[0].password = "second-and-longer";
    is_int(extend(), REDLOCK_OK, "r12: logged in with the second password");
    is_int(release(100), REDLOCK_OK, "r12: released");
}

/* A password became longer than the send buffer, which redlock_init has refused: no lock, but no endless loop, and the connection
   is given up, so the password may be corrected. */
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
    fake_pass(&client, 2000 * MS);
    is_int(nodes[0].state, REDLOCK_NODE_DOWN, "r12: it is disconnected");
    nodes[0].password = NULL;
    is_int(acquire(0), REDLOCK_OK, "r12: acquired with the right password");
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
    fake_nodes[0].server.hello = "%3\r\n$17\r\navailability-zone\r\n$4\r\nmode\r\n"
                                 "$8\r\nsentinel\r\n$4\r\nrole\r\n$4\r\nrole\r\n$6\r\nmaster\r\n";
    is_int(acquire(0), REDLOCK_OK, "r12: a value is not the name of the next one");
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

/* ---- One server, one vote: R13 -------------------------------------------------------------- */

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

/* ---- Servers that may have lost keys: R14 --------------------------------------------------- */

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
    is_int(extend(), REDLOCK_OK, "r14: also in the next round");
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

/* A server restarts empty with a wall clock that is late, and the clock is corrected: by its uptime the process is an hour old. A
   client that had a reply of the former process knows better. */
static void r14_a_clock_that_was_stepped(int restarts_twice)
{
    begin_with_old_servers();
    warm_up();
    fake_pass(&client, 10000 * MS);
    is_int(acquire(0), REDLOCK_OK, "r14: the client has a reply of the process");
    release(100);
    fake_pass(&client, 10 * MS);
    held_by("other", 1, 1);
    if (restarts_twice) {
        fake_restart(0);
        is_int(acquire(0), REDLOCK_CONTENDED, "r14: restarted: no vote");
        fake_pass(&client, 5000 * MS);
        fake_break(0);
    } else {
        fake_restart(0);
    }
    fake_nodes[0].server.age_s = 3600;
    is_int(acquire(0), REDLOCK_CONTENDED, "r14: an hour old by its clock, but no vote%s",
           restarts_twice ? ", as the same process was younger" : "");
    ok(has_error(0, "not voting"), "r14: its error: %s", nodes[0].error);
    fake_pass(&client, (restarts_twice ? 17000 : 22050) * MS);
    is_int(acquire(0), REDLOCK_CONTENDED, "r14: not before 20 s, drift and 2 s since that reply");
    fake_pass(&client, 300 * MS);
    is_int(acquire(0), REDLOCK_OK, "r14: then it votes");
}

/* A connection that ends is no restart. The same process is no older than it was by its clock before. */
static void r14_the_same_process(void)
{
    begin_with_old_servers();
    fake_now_us = 1000 * MS; /* the client's clock is younger than the servers */
    held_by("other", 1, 1);
    is_int(acquire(0), REDLOCK_OK, "r14: an old server votes");
    release(100);
    fake_break(0);
    is_int(acquire(0), REDLOCK_OK, "r14: and on its next connection");
    begin_with_old_servers();
    fake_nodes[0].server.age_s = 0;
    held_by("other", 1, 1);
    is_int(acquire(0), REDLOCK_CONTENDED, "r14: a server that has just started does not vote");
    fake_break(0);
    fake_nodes[0].server.age_s = 3600;
    is_int(acquire(0), REDLOCK_CONTENDED, "r14: nor when its clock was stepped since then");
}

/* The last reply of the former process is as old as it is, also if the connection ends in the tick that reads the reply. */
static void r14_the_last_reply_of_a_process(void)
{
    begin_with_old_servers();
    warm_up();
    fake_pass(&client, 30000 * MS);
    held_by("other", 1, 1);
    fake_restart(0);
    fake_nodes[0].server.age_s = 3600;
    fake_nodes[0].drip = 1; /* its run_id comes after its first reply */
    is_int(acquire(0), REDLOCK_OK, "r14: no reply for longer than 22 s: its uptime is believed");
    fake_nodes[0].drip = 0;
    release(100);
    fake_pass(&client, 30000 * MS);
    redlock_acquire_start(&client, &lock, 0);
    redlock_tick(&client);
    gap(1 * MS);
    redlock_handle_events(&client, 0, REDLOCK_READABLE);
    fake_restart(0);
    fake_nodes[0].server.age_s = 3600;
    redlock_handle_events(&client, 0, REDLOCK_READABLE);
    fake_pass(&client, 100 * MS);
    release(100);
    is_int(acquire(0), REDLOCK_CONTENDED, "r14: a reply just before the end counts");
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
    set_use_fencing(&lock, 1);
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

int main(void)
{
    if (!REDLOCK_MINIMAL) {
        r12_handshake();
        r12_hello_refused_in_any_words();
        r12_auth_counts_where_hello_does_not();
        r12_not_a_node();
    } else {
        r12_left_out();
    }
    r12_a_handshake_in_pieces();
    r12_a_password_that_changes();
    r12_a_password_that_grew();
    r12_wrong_password();
    r12_a_denial_names_the_permissions();
    r12_invalid_nodes_are_refused();
    if (!REDLOCK_MINIMAL) {
        r13_one_server_one_vote();
        r13_connected_while_it_loads();
        r14_a_restarted_server_does_not_vote();
        r14_the_age_of_a_server();
        r14_a_member_keeps_its_vote();
        r14_a_repaired_node_has_no_vote();
        r14_an_age_that_is_not_known_any_more();
        r14_a_clock_that_was_stepped(0);
        r14_a_clock_that_was_stepped(1);
        r14_the_same_process();
        r14_the_last_reply_of_a_process();
    } else {
        r13_left_out();
    }
    if (!REDLOCK_MINIMAL) {
        r13_not_by_a_connection_that_broke();
        r13_not_by_an_address_that_is_down();
        r13_two_servers_exchange_their_addresses(0);
        r13_two_servers_exchange_their_addresses(1);
        r14_a_vote_from_the_second_round_on();
    }
    r13_an_extension_of_a_broken_connection(0);
    r13_an_extension_of_a_broken_connection(1);
    r12_a_long_password();
    r12_only_releases_behind_a_handshake();
    if (!REDLOCK_MINIMAL) {
        r12_no_password_in_errors();
        r12_a_password_does_not_hide_the_reason();
    }
    error_texts_are_safe();
    return done_testing();
}
