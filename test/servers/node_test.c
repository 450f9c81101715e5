/* node_test.c - real redis-servers as users configure them: passwords, permissions, databases, one server
   under two addresses, restarts without data, no memory; and long operations: notification, auto-extension,
   repair, fencing tokens. The names have the rule, as in test/engine. Time is real: the test waits.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "lock_options.h"
#include "redlock.h"
#include "servers.h"
#include "side.h"
#include "tap.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NODES = 5 };

struct side {
    struct redlock_node nodes[NODES];
    struct redlock_client client;
    struct redlock_lock lock;
    unsigned count;
};

static struct server servers[NODES];
static char text[8192];
/* The machine may be paused for seconds: a server that must answer has more time than that. */
static const struct redlock_settings patient = {
    .node_timeout_ms = 8000, .stall_ms = 15000, .extend_max = 65535};

/* A client of `count` servers and a lock "redlock:key" of 20 s, not set up yet. */
static void prepare(struct side *side, unsigned count)
{
    unsigned i;

    memset(side, 0, sizeof *side);
    side->count = count;
    for (i = 0; i < count; i++)
        side->nodes[i].address = servers[i].address;
    redlock_lock_init(&side->lock, "redlock:key", 20000);
}

static void set_up(struct side *side, const struct redlock_settings *settings)
{
    if (redlock_init(&side->client, redlock_posix(), side->nodes, side->count, settings) !=
        REDLOCK_OK)
        ok(0, "init: %s", side->nodes[0].error);
}

/* Rounds to agree on a fencing token. */
static unsigned confirms(const struct redlock_lock *lock)
{
#if !REDLOCK_MINIMAL
    return lock->priv.attempt.confirms;
#else
    (void)lock;
    return 0;
#endif
}

static int notifies(const struct redlock_node *node)
{
#if !REDLOCK_MINIMAL
    return node->priv.notifies;
#else
    (void)node;
    return 0;
#endif
}

/* A client of three servers, guarded against restarts by this longest_ttl_ms; with 0 not guarded. */
static void begin_guarded(struct side *side, uint32_t longest_ttl_ms)
{
    struct redlock_settings settings = patient;

    settings.longest_ttl_ms = longest_ttl_ms;
    prepare(side, 3);
    if (longest_ttl_ms != 0)
        side->lock.ttl_ms = longest_ttl_ms;
    set_up(side, &settings);
}

static void begin(struct side *side, unsigned count)
{
    prepare(side, count);
    set_up(side, &patient);
}

static int acquire(struct side *side, uint32_t wait_ms)
{
    return (int)redlock_acquire(&side->client, &side->lock, wait_ms);
}

static int release(struct side *side)
{
    return (int)redlock_release(&side->client, &side->lock, 5000);
}

/* One command to the servers from..to; the last reply is in `text`. */
static void tell(unsigned from, unsigned to, const char *a, const char *b, const char *c,
                 const char *d)
{
    for (; from <= to; from++)
        server_ask(&servers[from], text, sizeof text, a, b, c, d, NULL);
}

static void end(struct side *side)
{
    settle(&side->client); /* a command in flight could arrive after the FLUSHALL */
    redlock_deinit(&side->client);
    tell(0, NODES - 1, "FLUSHALL", NULL, NULL, NULL);
}

static int is_held(struct side *side)
{
    return redlock_remaining_ms(&side->client, &side->lock) > 0;
}

/* Acquires and releases another lock, so that all nodes are connected: otherwise a majority could decide the next
   operation before the slowest node is connected. */
static void meet_all(struct side *side)
{
    struct redlock_lock other;

    redlock_lock_init(&other, "redlock:other", 20000);
    redlock_acquire(&side->client, &other, 0);
    settle(&side->client);
    redlock_release(&side->client, &other, 5000);
    settle(&side->client);
    redlock_abandon(&side->client, &other);
}

/* The same until all nodes are connected again: there is a pause before a failed node is connected. */
static void meet_all_again(struct side *side)
{
    long until = now_ms() + 30000;
    unsigned i, up = 0;

    while (up < side->client.priv.count && now_ms() < until) {
        meet_all(side);
        for (i = up = 0; i < side->client.priv.count; i++)
            up += side->nodes[i].state == REDLOCK_NODE_READY;
        sleep_ms(20);
    }
}

/* Acquires with these credentials on three servers; returns the status. */
static int try_as(struct side *side, const char *user, const char *password, uint32_t database)
{
    unsigned i;
    int status;

    prepare(side, 3);
    for (i = 0; i < 3; i++) {
        side->nodes[i].user = user;
        side->nodes[i].password = password;
        side->nodes[i].database = database;
    }
    set_up(side, &patient);
    meet_all(side);
    status = acquire(side, 0);
    settle(&side->client);
    return status;
}

/* ---- R12 ------------------------------------------------------------------------------------ */

static void passwords(void)
{
    struct side a;
    unsigned i;

    tell(0, 2, "CONFIG", "SET", "requirepass", "right secret\r\n$1");
    is_int(try_as(&a, NULL, "right secret\r\n$1", 0), REDLOCK_OK, "r12: a password");
    is_int(release(&a), REDLOCK_OK, "r12: released");
    end(&a);
    is_int(try_as(&a, "default", "right secret\r\n$1", 0), REDLOCK_OK, "r12: user and password");
    release(&a);
    end(&a);
    is_int(try_as(&a, NULL, "wrong secret", 0), REDLOCK_DENIED, "r12: a wrong password");
    for (i = 0; i < 3; i++)
        ok(strstr(a.nodes[i].error, "WRONGPASS") != NULL &&
               strstr(a.nodes[i].error, "secret") == NULL,
           "r12: node %u: %s", i, a.nodes[i].error);
    end(&a);
    is_int(try_as(&a, NULL, NULL, 0), REDLOCK_DENIED, "r12: no password");
    ok(strstr(a.nodes[0].error, "NOAUTH") != NULL, "r12: %s", a.nodes[0].error);
    end(&a);
    tell(0, 2, "CONFIG", "SET", "requirepass", "");
}

/* Each permission taken away from a user, in turn: the error names it. */
static void lacking(const char *user)
{
    static const char *const needed[] = {
        "set",  "get",  "del",   "pexpire",
        "pttl", "eval", "exists"}; /* the last one for fencing tokens */
    struct side a;
    unsigned i, n;
    char sign[16], quoted[16];

    for (i = 0; i < 3; i++)
        server_ask(&servers[i], text, sizeof text, "ACL", "SETUSER", user, "reset", "on", ">secret",
                   "~redlock:*", "+set", "+get", "+del", "+pexpire", "+pttl", "+eval", "+exists",
                   NULL);
    for (n = 0; n < 6 + !REDLOCK_MINIMAL; n++) {
        int status;

        snprintf(sign, sizeof sign, "-%s", needed[n]);
        snprintf(quoted, sizeof quoted, "'%s'", needed[n]);
        tell(0, 2, "ACL", "SETUSER", user, sign);
        sign[0] = '+';
        status = try_as(&a, user, "secret", 0);
        if (n == 6) {
            release(&a);
            set_use_fencing(&a.lock, 1);
            acquire(&a, 0);
        } else if (status == REDLOCK_OK) {
            redlock_extend(&a.client, &a.lock);
            settle(&a.client);
            if (a.nodes[0].error[0] == '\0')
                release(&a);
        }
        settle(&a.client);
        ok(strstr(a.nodes[0].error, sign) != NULL || strstr(a.nodes[0].error, quoted) != NULL,
           "r12: %s without %s: %s", user, needed[n], a.nodes[0].error);
        end(&a);
        tell(0, 2, "ACL", "SETUSER", user, sign);
    }
    tell(0, 2, "ACL", "DELUSER", user, NULL);
}

/* Whether node 0 notifies a client with these credentials that waits for a lock of another one. A node that is slower than the
   decision is not asked for that: another try. */
static int asked_to_notify(const char *user, const char *password, int expected)
{
    struct side holder, waiter;
    int i, found;

    is_int(try_as(&holder, user, password, 0), REDLOCK_OK, "r12: acquired");
    is_int(try_as(&waiter, user, password, 0), REDLOCK_HELD, "r12: held by another client");
    for (i = 0; i == 0 || (i < 20 && notifies(&waiter.nodes[0]) != expected); i++) {
        acquire(&waiter, 1);
        settle(&waiter.client);
    }
    found = notifies(&waiter.nodes[0]);
    is_int(waiter.nodes[0].state, REDLOCK_NODE_READY, "r12: node 0 is ready");
    release(&holder);
    redlock_deinit(&holder.client);
    redlock_deinit(&waiter.client);
    return found;
}

/* The permissions that the README names. */
static void permissions(void)
{
    struct side a;
    unsigned i, n;

    lacking("locker");
    lacking("a-user-whose-name-leaves-no-room");
    for (i = 0; i < 3; i++)
        server_ask(&servers[i], text, sizeof text, "ACL", "SETUSER", "locker", "reset", "on",
                   ">secret", "~redlock:*", "+set", "+get", "+del", "+pexpire", "+pttl", "+eval",
                   NULL);
    is_int(try_as(&a, "locker", "secret", 0), REDLOCK_OK, "r12: the least permissions: acquire");
    is_int((int)redlock_extend(&a.client, &a.lock), REDLOCK_OK, "r12: extend");
    is_int(release(&a), REDLOCK_OK, "r12: release");
    end(&a);
    is_int(try_as(&a, "locker", "secret", 3), REDLOCK_DENIED, "r12: another database needs more");
    ok(strstr(a.nodes[0].error, "NOPERM") != NULL, "r12: %s", a.nodes[0].error);
    end(&a);
    for (n = 0; n < 2; n++) { /* without this permission no client is notified. R7 */
        int permitted = !REDLOCK_MINIMAL && n == 1;

        if (n == 1)
            tell(0, 2, "ACL", "SETUSER", "locker", "+client|tracking");
        is_int(asked_to_notify("locker", "secret", permitted), permitted, "r12: %s",
               n == 0 ? "no permission: no notification" : "the permission: notification");
    }
    tell(0, 2, "ACL", "DELUSER", "locker", NULL);
}

/* Writes the configuration that docs/servers.md shows, word for word, without this word. Returns its size. */
static size_t write_documented(const char *path, const char *without)
{
    FILE *from = fopen("docs/servers.md", "r"), *to = fopen(path, "w");
    char line[400] = "";
    size_t size = 0;

    if (from == NULL || to == NULL)
        return 0;
    while (strcmp(line, "```conf\n") != 0 && fgets(line, sizeof line, from) != NULL)
        continue;
    while (fgets(line, sizeof line, from) != NULL && strcmp(line, "```\n") != 0) {
        char *word = without != NULL ? strstr(line, without) : NULL;

        if (word != NULL)
            memmove(word, word + strlen(without), strlen(word + strlen(without)) + 1);
        size += (size_t)fprintf(to, "%s", line);
    }
    fclose(from);
    fclose(to);
    return size;
}

/* Three servers with that configuration. Redis 6.0 answers HELLO with NOPERM there, unless it is permitted. */
static void documented_configuration(const char *without)
{
    static char file[300];
    const char *const options[] = {file, NULL};
    const char *what = without != NULL ? without : " as it is";
    struct side a;
    unsigned i;

    tell(0, 0, "CONFIG", "GET", "dir", NULL);
    snprintf(file, sizeof file, "%.200s/documented.conf", text + strlen("dir "));
    ok(write_documented(file, without) > 200, "r12: the documented configuration%s", what);
    for (i = 0; i < 3; i++) {
        servers[i].options = options;
        server_restart(&servers[i]);
    }
    is_int(try_as(&a, "locker", "PASSWORD", 0), REDLOCK_OK, "r12: acquired");
    for (i = 0; i < 3; i++)
        ok(a.nodes[i].state == REDLOCK_NODE_READY && a.nodes[i].error[0] == '\0',
           "r12: node %u is ready: %s", i, a.nodes[i].error);
    is_int((int)redlock_extend(&a.client, &a.lock), REDLOCK_OK, "r12: extended");
    is_int(release(&a), REDLOCK_OK, "r12: released");
    set_use_fencing(&a.lock, 1);
    is_int(acquire(&a, 0), REDLOCK_OK, "r12: acquired with a fencing token");
    is_int(release(&a), REDLOCK_OK, "r12: released");
    settle(&a.client);
    redlock_deinit(&a.client);
    if (without == NULL)
        is_int(asked_to_notify("locker", "PASSWORD", !REDLOCK_MINIMAL), !REDLOCK_MINIMAL,
               "r12: with notification");
    for (i = 0; i < 3; i++) {
        servers[i].options = NULL;
        server_restart(&servers[i]);
    }
}

static void databases(void)
{
    struct side a;

    is_int(try_as(&a, NULL, NULL, 9), REDLOCK_OK, "r12: database 9");
    tell(0, 0, "INFO", "keyspace", NULL, NULL);
    ok(strstr(text, "db9:keys=1") != NULL && strstr(text, "db0:") == NULL,
       "r12: database 9 has the key");
    is_int(release(&a), REDLOCK_OK, "r12: database 9: released");
    end(&a);
    is_int(try_as(&a, NULL, NULL, 4000000), REDLOCK_UNREACHABLE, "r12: no such database");
    ok(strstr(a.nodes[0].error, "DB index") != NULL, "r12: %s", a.nodes[0].error);
    is_int((int)servers_keys_left("*", 0), 0, "r12: no key was set in another database");
    end(&a);
}

/* Makes two servers sentinels, or servers again. A sentinel needs a configuration file that it can write. */
static void sentinels(int on)
{
    static char files[2][300];
    unsigned i;

    for (i = 0; i < 2; i++) {
        const char *const options[] = {files[i], "--sentinel", NULL};
        FILE *file;
        if (on) {
            tell(i, i, "CONFIG", "GET", "dir", NULL);
            snprintf(files[i], sizeof files[i], "%.200s/%u.sentinel", text + strlen("dir "), i);
            file = fopen(files[i], "w");
            if (file != NULL)
                fclose(file);
            servers[i].options = options;
        }
        server_restart(&servers[i]);
        servers[i].options = NULL;
    }
}

static void not_a_node(void)
{
    struct side a;

    tell(0, 1, "REPLICAOF", "127.0.0.1", "1", NULL);
    is_int(try_as(&a, NULL, NULL, 0), REDLOCK_DENIED, "r12: two of three are replicas");
    ok(strstr(a.nodes[0].error, "replica") != NULL, "r12: %s", a.nodes[0].error);
    tell(0, 1, "REPLICAOF", "NO", "ONE", NULL);
    end(&a);
    sentinels(1);
    is_int(try_as(&a, NULL, NULL, 0), !REDLOCK_MINIMAL ? REDLOCK_DENIED : REDLOCK_UNREACHABLE,
           "r12: two of three are sentinels");
    ok(strstr(a.nodes[0].error, !REDLOCK_MINIMAL ? "sentinel" : "unknown command") != NULL,
       "r12: %s", a.nodes[0].error);
    redlock_deinit(&a.client);
    sentinels(0);
}

/* ---- R13, R14 ------------------------------------------------------------------------------- */

static void one_server_in_two_places(void)
{
    struct side a;

    prepare(&a, 3);
    a.nodes[1].address = servers[0].local;
    a.nodes[2].address = servers[0].address;
    a.nodes[2].database = 1;
    ok(redlock_init(&a.client, redlock_posix(), a.nodes, 3, &patient) != REDLOCK_OK,
       "r13: an address that is listed twice is refused");
    a.nodes[2].address = servers[1].address;
    a.nodes[2].database = 0;
    set_up(&a, &patient);
    is_int(acquire(&a, 0), REDLOCK_OK, "r13: one server by port and by path, and another server");
    settle(&a.client);
    ok(a.lock.members == 5 || a.lock.members == 6, "r13: the two servers have two votes: %x",
       a.lock.members);
    release(&a);
    server_kill(&servers[1]);
    acquire(&a, 0);
    ok(a.lock.status == REDLOCK_UNREACHABLE || a.lock.status == REDLOCK_DENIED,
       "r13: one server alone is no quorum of three: %s", redlock_strerror(a.lock.status));
    ok(strstr(a.nodes[0].error, "same server") != NULL ||
           strstr(a.nodes[1].error, "same server") != NULL,
       "r13: the node's error says why: %s", a.nodes[1].error);
    server_restart(&servers[1]);
    end(&a);
}

/* Ways in which server 1 loses its keys. */
static void crash(void)
{
    server_kill(&servers[1]);
    server_restart(&servers[1]);
}

static void flush(void)
{
    tell(1, 1, "FLUSHALL", NULL, NULL, NULL);
}

/* A holds the lock on nodes 0 and 1 only, node 1 loses the key. Whether B then acquires it on nodes 1 and 2. */
static int second_holder(uint32_t longest_ttl_ms, void (*forget)(void))
{
    struct side a, b;
    long until = now_ms() + 60000;
    int both;

    begin_guarded(&a, longest_ttl_ms);
    begin_guarded(&b, longest_ttl_ms);
    while (longest_ttl_ms != 0 && now_ms() < until && /* servers that are old enough */
           (acquire(&a, 0) != REDLOCK_OK || release(&a) != REDLOCK_OK ||
            acquire(&b, 0) != REDLOCK_OK || release(&b) != REDLOCK_OK))
        sleep_ms(50);
    servers_keys_left("redlock:key", 10000);
    tell(2, 2, "SET", "redlock:key", "in the way", NULL);
    if (acquire(&a, 30000) != REDLOCK_OK) /* once server 1 is old enough */
        ok(0, "r14: two of three: %s", a.nodes[1].error);
    settle(&a.client); /* so that server 2 has refused the lock before its key is deleted */
    tell(2, 2, "DEL", "redlock:key", NULL, NULL);
    forget();
    acquire(&b, a.lock.ttl_ms / 2);
    both = is_held(&a) && is_held(&b);
    redlock_deinit(&a.client);
    end(&b);
    return both;
}

/* docs/safety.md says so: longest_ttl_ms does not help against it. */
static void r14_a_flush_is_not_noticed(void)
{
    int tries, both = 0;

    if (REDLOCK_MINIMAL)
        return;
    for (tries = 0; tries < 10 && !both; tries++) /* a try fails if the machine pauses for 3 s */
        both = second_holder(3000, flush);
    ok(both, "r14: the age of a server does not show a FLUSHALL: two holders");
}

static void a_crash_that_forgets(void)
{
    struct redlock_settings guarded = patient;
    struct side a;
    long until;

    is_int(second_holder(0, crash), 1, "r14: a crash without longest_ttl_ms: two holders");
    is_int(second_holder(3000, crash), 0, "r14: a crash with longest_ttl_ms: one holder");
    server_kill(&servers[0]);
    server_kill(&servers[1]);
    server_restart(&servers[0]);
    server_restart(&servers[1]);
    prepare(&a, 3);
    guarded.longest_ttl_ms = 600000;
    set_up(&a, &guarded);
    meet_all(&a);
    is_int(acquire(&a, 0), REDLOCK_UNREACHABLE, "r14: servers that have just started do not vote");
    settle(&a.client);
    ok(strstr(a.nodes[0].error, "not voting") != NULL, "r14: %s", a.nodes[0].error);
    end(&a);
    prepare(&a, 3);
    guarded.longest_ttl_ms = a.lock.ttl_ms = 2000;
    set_up(&a, &guarded);
    until = now_ms() + 60000;
    while (acquire(&a, 0) != REDLOCK_OK && now_ms() < until)
        sleep_ms(50);
    is_int(a.lock.status, REDLOCK_OK, "r14: they vote when they are older than longest_ttl_ms");
    release(&a);
    end(&a);
}

/* ---- R7, R9, R10 ---------------------------------------------------------------------------- */

/* The holder is another library: it compares and deletes, and does not notify waiters. */
static void notified_by_another_library(void)
{
    static const char script[] = "if redis.call('get',KEYS[1])==ARGV[1] then return "
                                 "redis.call('del',KEYS[1]) end return 0";
    struct redlock_settings slow = patient;
    struct side a;
    unsigned i, attempts;

    slow.retry_delay_ms = slow.retry_delay_max_ms = 600000;
    prepare(&a, 5);
    set_up(&a, &slow);
    for (i = 0; i < 5; i++)
        server_ask(&servers[i], text, sizeof text, "SET", "redlock:key", "theirs", "PX", "60000",
                   NULL);
    redlock_acquire_start(&a.client, &a.lock, 60000);
    settle(&a.client); /* all have refused it */
    attempts = a.lock.priv.op.attempts;
    is_int(a.lock.status, REDLOCK_PENDING, "r07: all nodes have refused the lock: it waits");
    for (i = 0; i < 5; i++)
        server_ask(&servers[i], text, sizeof text, "EVAL", script, "1", "redlock:key", "theirs",
                   NULL);
    serve(&a.client, 20000);
    is_int(a.lock.status, REDLOCK_OK, "r07: a release of another library notifies it");
    is_int((int)(a.lock.priv.op.attempts - attempts), 1, "r07: one attempt is enough");
    release(&a);
    for (i = 0; i < 5; i++)
        server_ask(&servers[i], text, sizeof text, "SET", "redlock:key", "crashed", "PX", "700",
                   NULL);
    redlock_acquire_start(&a.client, &a.lock, 60000);
    serve(&a.client, 20000);
    is_int(a.lock.status, REDLOCK_OK, "r07: the expiry of a crashed holder's lock notifies it");
    release(&a);
    end(&a);
}

/* Whether server i has the key with this lock's token. */
static int has_key(const struct redlock_lock *lock, unsigned i)
{
    char mine[2 * sizeof lock->token + 1];
    unsigned n;

    for (n = 0; n < sizeof lock->token; n++)
        snprintf(mine + 2 * n, 3, "%02x", lock->token[n]);
    tell(i, i, "GET", "redlock:key", NULL, NULL);
    return strncmp(text, mine, 32) == 0; /* behind it is the generation, which a repair changes */
}

/* Five servers without data on disk restart, one after the other, twice. */
static void held_through_restarts(void)
{
    struct side a, b;
    unsigned round, i, gaps = 0, stolen = 0, few = 0;
    int whole;

    begin(&a, 5);
    begin(&b, 5);
    meet_all(&a);
    is_int(acquire(&a, 0), REDLOCK_OK, "r09: held");
    settle(
        &a.client); /* on all five: with three confirmed nodes the first restart would lose the lock */
    a.lock.ttl_ms = 20000;
    redlock_auto_extend_start(&a.client, &a.lock, 60000);
    for (round = 0; round < 2; round++)
        for (i = 0; i < 5; i++) {
            long until = now_ms() + 20000;
            server_kill(&servers[i]);
            server_restart(&servers[i]);
            /* extend now rather than wait for auto-extension; at least twice, because a repaired node counts
               only in the next round */
            do {
                redlock_cancel(&a.client, &a.lock);
                serve(&a.client, 5);
                redlock_extend(&a.client, &a.lock);
                redlock_auto_extend_start(&a.client, &a.lock, 60000);
                serve(&a.client, 20);
                gaps += !is_held(&a);
                stolen += acquire(&b, 0) == REDLOCK_OK;
                whole =
                    a.lock.members == 31 && has_key(&a.lock, i); /* i may not have answered yet */
            } while (!whole && now_ms() < until);
            few += !whole;
        }
    is_int((int)gaps, 0, "r09: held all the time");
    is_int((int)stolen, 0, "r09: no other client ever acquired it");
    is_int((int)few, 0, "r09: on all five nodes after each restart");
    is_int(a.lock.status, REDLOCK_PENDING, "r10: auto-extension goes on");
    is_int(release(&a), REDLOCK_OK, "r09: released");
    is_int((int)servers_keys_left("*", 10000), 0, "r09: no key is left");
    redlock_deinit(&b.client);
    end(&a);
}

static void lost_when_all_hang(void)
{
    struct side a;
    unsigned i, tries;

    begin(&a, 3);
    a.lock.ttl_ms = 3000;
    for (tries = 0; tries < 5; tries++) { /* the lock is rightly lost if the machine is paused */
        acquire(&a, 20000);
        redlock_auto_extend_start(&a.client, &a.lock, 1000);
        serve(&a.client, 3500);
        if (a.lock.status == REDLOCK_PENDING)
            break;
        release(&a);
    }
    is_int(a.lock.status, REDLOCK_PENDING, "r10: a lock of 3 s is extended for longer");
    for (i = 0; i < 3; i++)
        server_pause(&servers[i]);
    serve(&a.client, 60000);
    is_int(a.lock.status, REDLOCK_LOST, "r10: all servers hang: lost");
    ok(!is_held(&a), "r10: all servers hang: no validity left");
    for (i = 0; i < 3; i++)
        server_resume(&servers[i]);
    is_int((int)servers_keys_left("*", 10000), 0, "r10: no key is left");
    end(&a);
}

static void no_memory(void)
{
    struct side a, b;

    begin(&a, 3);
    begin(&b, 3);
    meet_all(&b);
    is_int(acquire(&a, 0), REDLOCK_OK, "held");
    settle(&a.client);
    tell(0, 2, "CONFIG", "SET", "maxmemory", "1");
    b.lock.key = "redlock:other";
    b.lock.key_size = 13;
    is_int(acquire(&b, 0), REDLOCK_UNREACHABLE, "servers without memory grant no new lock");
    settle(&b.client);
    ok(strstr(b.nodes[0].error, "OOM") != NULL, "%s", b.nodes[0].error);
    is_int((int)redlock_extend(&a.client, &a.lock), REDLOCK_OK,
           "servers without memory extend a held lock");
    is_int(release(&a), REDLOCK_OK, "servers without memory release a held lock");
    tell(0, 2, "CONFIG", "SET", "maxmemory", "0");
    redlock_deinit(&b.client);
    end(&a);
}

/* A lock is held on three servers. One of them stops granting locks, and another lock is acquired; then a second one
   stops. `error` is in their replies. Ends with both servers repaired and the lock released. */
static void out_of_service(const char *what, const char *error, void (*begin_it)(unsigned),
                           void (*end_it)(unsigned))
{
    struct side a, b;

    begin(&a, 3);
    begin(&b, 3);
    a.lock.ttl_ms = 60000; /* longer than the test takes on a slow machine */
    b.lock.key = "redlock:other";
    b.lock.key_size = 13;
    meet_all(&a);
    meet_all(&b);
    is_int(acquire(&a, 0), REDLOCK_OK, "%s: held before", what);
    settle(&a.client);
    begin_it(0);
    meet_all(&b);
    is_int(acquire(&b, 0), REDLOCK_OK, "%s: the other two servers are enough", what);
    settle(&b.client);
    ok(strstr(b.nodes[0].error, error) != NULL, "%s: the first node's error: %s", what,
       b.nodes[0].error);
    is_int(release(&b), REDLOCK_OK, "%s: released", what);
    begin_it(1);
    is_int(acquire(&b, 0), REDLOCK_UNREACHABLE, "%s: one of three servers is not enough", what);
    is_int((int)redlock_extend(&a.client, &a.lock), REDLOCK_UNREACHABLE,
           "%s: one of three servers is not enough for an extension", what);
    ok(redlock_remaining_ms(&a.client, &a.lock) > 0, "%s: the held lock is still valid", what);
    is_int((int)redlock_release(&a.client, &a.lock, 500), REDLOCK_UNCONFIRMED,
           "%s: one of three servers does not confirm a release", what);
    end_it(0);
    end_it(1);
    is_int(acquire(&b, 30000), REDLOCK_OK, "%s: when it is over a lock is acquired", what);
    meet_all_again(&a);
    release(&a); /* once more, for the nodes that had not confirmed */
    release(&b);
    settle(&a.client);
    settle(&b.client);
    is_int((int)servers_keys_left("*", 10000), 0, "%s: no key is left", what);
    redlock_deinit(&b.client);
    end(&a);
}

/* The path of server i's snapshots, in its folder. */
static const char *snapshot_of(unsigned i)
{
    static char path[300];

    tell(i, i, "CONFIG", "GET", "dir", NULL);
    snprintf(path, sizeof path, "%.200s/%u.rdb", text + strlen("dir "), i);
    return path;
}

/* Server i's last snapshot has failed: the path of the file is a folder. */
static void break_snapshots(unsigned i)
{
    long until = now_ms() + 10000;

    mkdir(snapshot_of(i), 0700);
    tell(i, i, "CONFIG", "SET", "save", "3600 1");
    for (; now_ms() < until && strstr(text, "rdb_last_bgsave_status:err") == NULL; sleep_ms(5)) {
        tell(i, i, "BGSAVE", NULL, NULL, NULL);
        tell(i, i, "INFO", "persistence", NULL, NULL);
    }
}

static void mend_snapshots(unsigned i)
{
    tell(i, i, "CONFIG", "SET", "save", "");
    rmdir(snapshot_of(i));
}

/* Server i runs a script that does not end. A child process sends it, and waits for its answer. */
static pid_t waiting[NODES];

static void run_endless_script(unsigned i)
{
    long until = now_ms() + 10000;

    tell(i, i, "CONFIG", "SET", "lua-time-limit", "5");
    fflush(stdout);
    waiting[i] = fork();
    if (waiting[i] == 0) {
        servers[i].fd = -1; /* the child needs a separate connection */
        tell(i, i, "EVAL", "while true do end", "0", NULL);
        _exit(0);
    }
    for (text[0] = '\0'; now_ms() < until && strstr(text, "BUSY") == NULL; sleep_ms(5))
        tell(i, i, "GET", "redlock:key", NULL, NULL);
}

static void end_endless_script(unsigned i)
{
    tell(i, i, "SCRIPT", "KILL", NULL, NULL);
    waitpid(waiting[i], NULL, 0);
}

/* A server that runs a script during the handshake cannot report its run_id: it does not vote before it can. */
static void r13_connected_when_it_was_busy(void)
{
    struct side a;
    long until = now_ms() + 60000;

    if (REDLOCK_MINIMAL)
        return;
    begin_guarded(&a, 2000);
    run_endless_script(1);
    acquire(&a, 0);
    settle(&a.client);
    ok(strstr(a.nodes[1].error, "BUSY") != NULL, "r13: %s", a.nodes[1].error);
    end_endless_script(1);
    while (a.nodes[1].priv.run == 0 && now_ms() < until) {
        acquire(&a, 0);
        settle(&a.client);
        release(&a);
        sleep_ms(50);
    }
    ok(a.nodes[1].priv.run != 0, "r13: its run_id is known when the script has ended");
    end(&a);
}

/* Server i restarts and loads keys for longer than the test takes, 5 ms for each. */
static void load(unsigned i)
{
    static const char *const slowly[] = {"--key-load-delay", "5000",
                                         "--loading-process-events-interval-bytes", "1024", NULL};

    tell(i, i, "EVAL", "for i=1,20000 do redis.call('set','x'..i,'y')end", "0", NULL);
    tell(i, i, "SAVE", NULL, NULL, NULL);
    servers[i].options = slowly;
    server_restart(&servers[i]);
    servers[i].options = NULL;
}

static void end_load(unsigned i)
{
    long until = now_ms() + 30000;

    tell(i, i, "CONFIG", "SET", "key-load-delay", "0");
    for (text[0] = '\0'; now_ms() < until && strcmp(text, "PONG") != 0; sleep_ms(5))
        tell(i, i, "PING", NULL, NULL, NULL);
    tell(i, i, "EVAL", "for i=1,20000 do redis.call('del','x'..i)end", "0", NULL);
    unlink(snapshot_of(i));
}

/* Server i is a member of a cluster that was never set up. Its second port is chosen, because the default, 10000 above
   the first, may be too large. */
static int bus[3]; /* sockets that reserve the second ports */

static void join_a_cluster(unsigned i)
{
    static char address[32], file[12];
    static const char *alone[] = {
        "--cluster-enabled", "yes", "--cluster-config-file", file, "--cluster-port", NULL, NULL};

    bus[i] = hold_port(address, sizeof address);
    alone[5] = strchr(address, ':') + 1;
    snprintf(file, sizeof file, "%u.conf", i);
    servers[i].options = alone;
    server_restart(&servers[i]);
    servers[i].options = NULL;
}

static void leave_the_cluster(unsigned i)
{
    server_restart(&servers[i]);
    close(bus[i]);
}

/* In a cluster the keys of a script must be in one slot: a retry does not help, hash tags do. One server is a whole cluster. */
static void one_slot(void)
{
    static const struct redlock_key other = {"{redlock:ab}:b", 14};
    struct side a;
    long until = now_ms() + 30000;

    prepare(&a, 1);
    join_a_cluster(0);
    tell(0, 0, "CLUSTER", "ADDSLOTSRANGE", "0", "16383");
    is_int(strcmp(text, "OK"), 0, "r06: a cluster of one server: %s", text);
    for (text[0] = '\0'; now_ms() < until && strstr(text, "cluster_state:ok") == NULL; sleep_ms(20))
        tell(0, 0, "CLUSTER", "INFO", NULL, NULL);
    set_up(&a, &patient);
    set_extra_keys(&a.lock, &other, 1);
    is_int(acquire(&a, 60000), REDLOCK_DENIED, "r06: keys in two slots");
    settle(&a.client);
    ok(strstr(a.nodes[0].error, "needs hash tags, {KEY}: CROSSSLOT") != NULL, "r06: %s",
       a.nodes[0].error);
    a.lock.key = "{redlock:ab}:a";
    a.lock.key_size = 14;
    is_int(acquire(&a, 60000), REDLOCK_OK, "r06: with a hash tag");
    is_int(release(&a), REDLOCK_OK, "r06: released");
    redlock_deinit(&a.client);
    leave_the_cluster(0);
}

static int has_option(const char *option)
{
    tell(0, 0, "CONFIG", "GET", option, NULL);
    return text[0] != '\0';
}

static void servers_out_of_service(void)
{
    out_of_service("snapshots fail", "MISCONF", break_snapshots, mend_snapshots);
    out_of_service("an endless script", "BUSY", run_endless_script, end_endless_script);
    r13_connected_when_it_was_busy();
    if (has_option("loading-process-events-interval-bytes"))
        out_of_service("loading", "LOADING", load, end_load);
    else
        skip("loading: a server before Redis 7.0 cannot be made to load slowly enough");
    if (has_option("cluster-port") && !REDLOCK_MINIMAL)
        one_slot();
    if (has_option("cluster-port"))
        out_of_service("no cluster yet", "CLUSTERDOWN", join_a_cluster, leave_the_cluster);
    else
        skip("no cluster yet: the second port of a server before Redis 7.0 cannot be chosen");
}

/* ---- R16 ------------------------------------------------------------------------------------ */

/* Counters differ and keys vanish; yet each acquisition that begins after the end of the last one must have a larger
   token. */
static void fencing(void)
{
    static const char *const counts[] = {"10", "3000", "200", "77", "9"};
    struct redlock_io io = *redlock_posix();
    struct side a, b;
    uint64_t last;
    unsigned i, wrong = 0, raised = 0;

    io.wall_us = NULL; /* so that only the counters decide */
    prepare(&a, 5);
    prepare(&b, 5);
    redlock_init(&a.client, &io, a.nodes, 5, &patient);
    set_up(&b, &patient);
    set_use_fencing(&a.lock, 1);
    set_use_fencing(&b.lock, 1);
    for (i = 0; i < 5; i++)
        tell(i, i, "SET", "redlock:key:fence", counts[i], NULL);
    is_int(acquire(&a, 0), REDLOCK_OK, "r16: five servers with different counters");
    last = a.lock.fencing_token;
    ok(last >= 78 && last <= 3001, "r16: a token above the counters of three servers: %lu",
       (unsigned long)last); /* at least 78: the servers with 9, 10 and 77 may answer first */
    for (i = 0; i < 60; i++) {
        serve(&a.client, 5);
        tell(i % 5, i % 5, "DEL", "redlock:key", NULL, NULL); /* as if the key had expired there */
        tell((i + 1) % 5, (i + 1) % 5, "INCR", "redlock:key:fence", NULL, NULL);
        tell((i + 2) % 5, (i + 2) % 5, "INCR", "redlock:key:fence", NULL, NULL);
        release(&a);
        if (acquire(&a, 5000) != REDLOCK_OK)
            wrong++;
        wrong += a.lock.fencing_token <= last;
        raised += confirms(&a.lock) > 0;
        last = a.lock.fencing_token;
    }
    is_int((int)wrong, 0, "r16: sixty acquisitions, each with a larger token");
    ok(raised > 5, "r16: %u of them needed a second round", raised);
    release(&a);
    is_int(acquire(&b, 5000), REDLOCK_OK, "r16: a client with a wall clock");
    ok(b.lock.fencing_token > 1700000000000000, "r16: its token is the time: %lu",
       (unsigned long)b.lock.fencing_token);
    last = b.lock.fencing_token;
    release(&b);
    is_int(acquire(&a, 5000), REDLOCK_OK, "r16: then a client without a wall clock");
    ok(a.lock.fencing_token > last, "r16: its token is larger than that: %lu",
       (unsigned long)a.lock.fencing_token);
    tell(0, 0, "GET", "redlock:key:fence", NULL, NULL);
    ok(strspn(text, "0123456789") == strlen(text), "r16: the counter is written as digits: %s",
       text);
    release(&a);
    settle(&a.client); /* otherwise the slowest server would count after the SET */
    settle(&b.client);
    for (i = 0; i < 5; i++)
        tell(i, i, "SET", "redlock:key:fence", "9007199254740990", NULL);
    is_int(acquire(&a, 5000), REDLOCK_OK, "r16: the last token that Lua can count");
    release(&a);
    is_int(acquire(&a, 0), REDLOCK_UNREACHABLE, "r16: no token after the last one");
    settle(&a.client);
    ok(strstr(a.nodes[0].error, "fencing token too large") != NULL, "r16: %s", a.nodes[0].error);
    redlock_deinit(&b.client);
    end(&a);
}

static void several_keys(void)
{
    static const struct redlock_key more[] = {{"redlock:b", 9}, {"redlock:c", 9}};
    struct side a, b;

    begin(&a, 3);
    begin(&b, 3);
    set_extra_keys(&a.lock, more, 2);
    is_int(acquire(&a, 0), REDLOCK_OK, "several keys: acquired");
    b.lock.key = "redlock:c";
    b.lock.key_size = 9;
    is_int(acquire(&b, 0), REDLOCK_HELD, "several keys: another client is refused one of them");
    is_int((int)redlock_extend(&a.client, &a.lock), REDLOCK_OK, "several keys: extended");
    is_int(release(&a), REDLOCK_OK, "several keys: released");
    is_int((int)servers_keys_left("*", 10000), 0, "several keys: all of them are released");
    is_int(acquire(&b, 5000), REDLOCK_OK, "several keys: another client holds one of them");
    settle(&b.client);
    is_int(acquire(&a, 0), REDLOCK_HELD, "several keys: all of them are refused");
    settle(&a.client);
    tell(0, 2, "EXISTS", "redlock:key", "redlock:b", NULL);
    ok(strcmp(text, "0") == 0, "several keys: none of them is set");
    release(&b);
    redlock_deinit(&b.client);
    end(&a);
}

int main(void)
{
    servers_start(servers, NODES, NULL);
    passwords();
    permissions();
    documented_configuration(NULL);
    documented_configuration(" +hello");
    databases();
    not_a_node();
    one_server_in_two_places();
    a_crash_that_forgets();
    r14_a_flush_is_not_noticed();
    if (!REDLOCK_MINIMAL)
        notified_by_another_library();
    held_through_restarts();
    lost_when_all_hang();
    no_memory();
    servers_out_of_service();
    if (!REDLOCK_MINIMAL) {
        fencing();
    }
    if (!REDLOCK_MINIMAL)
        several_keys();
    return done_testing();
}
