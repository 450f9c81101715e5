/* server_test.c - the library against real redis-servers that die, hang, lose keys, refuse commands. The names have the
   rule, as in test/engine. No check depends on the speed of the machine: a check that depends on time waits.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "proxy.h"
#include "redlock.h"
#include "servers.h"
#include "side.h"
#include "tap.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NODES = 5 };

struct side {
    struct redlock_node nodes[NODES];
    struct redlock_client client;
    struct redlock_lock lock;
};

static struct server servers[NODES];
static char text[8192];

/* The machine may be paused for seconds: a server that must answer has more time than that. */
static const struct redlock_settings patient = {.node_timeout_ms = 8000, .stall_ms = 15000};
static const struct redlock_settings hasty = {.node_timeout_ms = 100, .stall_ms = 4000};

static void begin(struct side *side, unsigned count, const struct redlock_settings *settings)
{
    unsigned i;

    memset(side, 0, sizeof *side);
    for (i = 0; i < count; i++)
        side->nodes[i].address = servers[i].address;
    if (redlock_init(&side->client, redlock_posix(), side->nodes, count, settings) != REDLOCK_OK)
        ok(0, "init");
    redlock_lock_init(&side->lock, "key", 20000);
}

static void end(struct side *side)
{
    unsigned i;

    redlock_deinit(&side->client);
    for (i = 0; i < NODES; i++)
        server_ask(&servers[i], text, sizeof text, "FLUSHALL", NULL);
}

static int acquire(struct side *side, uint32_t wait_ms)
{
    return (int)redlock_acquire(&side->client, &side->lock, wait_ms);
}

static int release(struct side *side)
{
    return (int)redlock_release(&side->client, &side->lock, 5000);
}

/* The value of "key" on server i. */
static const char *value(unsigned i)
{
    return server_ask(&servers[i], text, sizeof text, "GET", "key", NULL);
}

/* The same, waiting up to 10 s for a SET that the quorum did not need. */
static const char *value_in_time(unsigned i)
{
    long until = now_ms() + 10000;

    while (strcmp(value(i), "(nil)") == 0 && now_ms() < until)
        sleep_ms(5);
    return text;
}

static void on_the_wire(void)
{
    struct side a, b;
    unsigned i;
    long pttl;

    begin(&a, 5, &patient);
    begin(&b, 5, &patient);
    acquire(&a, 0); /* so that all connections are up */
    settle(&a.client);
    release(&a);
    settle(&a.client);
    is_int(acquire(&a, 0), REDLOCK_OK, "acquired");
    ok(redlock_remaining_ms(&a.client, &a.lock) <= 19798, "validity is below ttl - drift");
    server_ask(&servers[0], text, sizeof text, "CLIENT", "LIST", NULL);
    ok(REDLOCK_MINIMAL || strstr(text, " name=redlock ") != NULL, "CLIENT LIST shows its name");
    is_int(acquire(&b, 0), REDLOCK_HELD, "another client is refused");
    is_int((int)redlock_extend(&a.client, &a.lock), REDLOCK_OK, "extended");
    for (i = 0; i < 3; i++)
        ok(strlen(value_in_time(i)) == 40 && strspn(text, "0123456789abcdef") == 40,
           "the value is 40 hex digits: %s", text);
    pttl = strtol(server_ask(&servers[0], text, sizeof text, "PTTL", "key", NULL), NULL, 10);
    ok(pttl > 0 && pttl <= 20000, "the key has a TTL in milliseconds: %ld", pttl);
    is_int((int)redlock_extend(&b.client, &b.lock), REDLOCK_LOST,
           "the refused client cannot extend the lock");
    is_int(release(&b), REDLOCK_EXPIRED, "the refused client cannot release the lock");
    is_int(release(&a), REDLOCK_OK, "released");
    is_int((int)servers_keys_left("*", 10000), 0, "no key is left");
    is_int(acquire(&b, 20000), REDLOCK_OK, "the other client acquires it now");
    is_int(release(&b), REDLOCK_OK, "the other client releases it");
    is_int((int)servers_keys_left("*", 10000), 0, "no key is left");
    redlock_deinit(&a.client);
    end(&b);
}

/* Another library locks with SET NX PX: the two exclude each other. */
static void another_library(void)
{
    struct side a;
    char holder[8];
    unsigned i;

    begin(&a, 5, &patient);
    for (i = 0; i < 3; i++)
        server_ask(&servers[i], text, sizeof text, "SET", "key", "theirs", "NX", "PX", "60000",
                   NULL);
    a.lock.holder = holder;
    a.lock.holder_size = sizeof holder;
    is_int(acquire(&a, 0), REDLOCK_HELD, "held by another library");
    ok(strcmp(holder, "theirs") == 0, "the holder is %s", holder);
    ok(a.lock.holder_left_ms > 0 && a.lock.holder_left_ms <= 60000, "its key expires in %lu ms",
       (unsigned long)a.lock.holder_left_ms);
    ok(strcmp(value(0), "theirs") == 0, "its key is untouched: %s", text);
    for (i = 0; i < 3; i++)
        server_ask(&servers[i], text, sizeof text, "DEL", "key", NULL);
    is_int((int)servers_keys_left("*", 10000), 0, "r04: the failed attempt leaves no key");
    is_int(acquire(&a, 5000), REDLOCK_OK, "free: acquired");
    for (i = 0; i < NODES; i++) /* a SET that is still under way makes no member in time to vote */
        value_in_time(i);
    for (i = 0; i < 3; i++)
        server_ask(&servers[i], text, sizeof text, "SET", "key", "theirs", NULL);
    redlock_extend(&a.client, &a.lock);
    is_int(a.lock.status, REDLOCK_LOST, "r08: stolen: lost (refused %x, failed %x: %s)",
           a.lock.refused, a.lock.failed, a.nodes[2].error);
    is_int(release(&a), REDLOCK_LOST, "r11: a release reports the loss, too");
    ok(strcmp(value(1), "theirs") == 0, "the thief's key is untouched: %s", text);
    end(&a);
}

static void dead_servers(void)
{
    struct side a;
    unsigned i;

    begin(&a, 5, &patient);
    server_kill(&servers[0]);
    server_kill(&servers[1]);
    is_int(acquire(&a, 0), REDLOCK_OK, "two of five servers are dead: exactly three grant");
    is_int(a.lock.granted, 0x1c, "the votes are those of the other three");
    is_int((int)redlock_extend(&a.client, &a.lock), REDLOCK_OK, "extended");
    is_int(release(&a), REDLOCK_OK, "released");
    server_kill(&servers[2]);
    is_int(acquire(&a, 0), REDLOCK_UNREACHABLE, "three of five dead: no quorum");
    ok(a.nodes[0].error[0] != '\0' && a.nodes[1].error[0] != '\0' && a.nodes[2].error[0] != '\0',
       "each dead node has an error: %s", a.nodes[0].error);
    for (i = 0; i < 3; i++)
        server_restart(&servers[i]);
    is_int(acquire(&a, 20000), REDLOCK_OK, "the servers are back: acquired");
    is_int(release(&a), REDLOCK_OK, "released");
    is_int((int)servers_keys_left("*", 10000), 0, "no key is left");
    end(&a);
}

static void hung_servers(void)
{
    struct side a;
    unsigned i;
    long start;

    begin(&a, 5, &hasty);
    is_int(acquire(&a, 20000), REDLOCK_OK, "no server hangs: acquired");
    is_int(release(&a), REDLOCK_OK, "released");
    server_pause(&servers[0]);
    server_pause(&servers[1]);
    is_int(acquire(&a, 20000), REDLOCK_OK, "two of five servers hang: acquired");
    is_int(release(&a), REDLOCK_OK, "released");
    server_pause(&servers[2]);
    start = now_ms();
    is_int(acquire(&a, 0), REDLOCK_UNREACHABLE, "r15: three hang: no quorum");
    ok(now_ms() - start < 20000, "r15: three hang: the call ends in time");
    for (i = 0; i < 3; i++)
        server_resume(&servers[i]);
    is_int((int)servers_keys_left("*", 10000), 0,
           "r04 r05: the servers continue: the failed attempt leaves no key");
    is_int(acquire(&a, 20000), REDLOCK_OK, "the servers continue: acquired");
    is_int(release(&a), REDLOCK_OK, "released");
    end(&a);
}

static void connections_that_break(void)
{
    struct side a;
    unsigned i;

    begin(&a, 5, &patient);
    is_int(acquire(&a, 0), REDLOCK_OK, "connected");
    settle(&a.client);
    for (i = 0; i < 5; i++)
        server_ask(&servers[i], text, sizeof text, "CLIENT", "KILL", "TYPE", "normal", "SKIPME",
                   "yes", NULL);
    is_int((int)redlock_extend(&a.client, &a.lock), REDLOCK_OK, "CLIENT KILL, then extend");
    settle(&a.client);
    is_int((int)redlock_extend(&a.client, &a.lock), REDLOCK_OK, "a second extension");
    /* after a connection that broke before its first reply there is a pause */
    settle(&a.client);
    for (i = 0; i < 5; i++)
        server_ask(&servers[i], text, sizeof text, "CLIENT", "KILL", "TYPE", "normal", "SKIPME",
                   "yes", NULL);
    is_int(release(&a), REDLOCK_OK, "CLIENT KILL, then release");
    settle(&a.client);
    for (i = 0; i < 5; i++)
        server_ask(&servers[i], text, sizeof text, "CLIENT", "KILL", "TYPE", "normal", "SKIPME",
                   "yes", NULL);
    is_int(acquire(&a, 0), REDLOCK_OK, "CLIENT KILL, then acquire, without waiting");
    for (i = 0; i < 5; i++)
        server_ask(&servers[i], text, sizeof text, "SCRIPT", "FLUSH", NULL);
    is_int((int)redlock_extend(&a.client, &a.lock), REDLOCK_OK, "SCRIPT FLUSH, then extend");
    is_int(release(&a), REDLOCK_OK, "SCRIPT FLUSH, then release");
    settle(&a.client);
    is_int((int)servers_keys_left("*", 10000), 0, "no key is left");
    end(&a);
}

/* Nothing has come for stall_ms, and the servers are busy when the lock is released: the client connects anew, and sends the
   release again. So each server runs two, of which the second finds no key, or that of a waiter. */
static void r11_busy_at_the_release(unsigned count, int contended)
{
    struct side a, waiter;
    unsigned i, changed = 0;
    long until;

    begin(&a, count, NULL);
    begin(&waiter, count, &patient);
    a.lock.ttl_ms = 60000;
    is_int(acquire(&a, 20000), REDLOCK_OK, "r11: held on %u servers", count);
    settle(&a.client);
    if (contended) {
        redlock_acquire_start(&waiter.client, &waiter.lock, 60000);
        settle(&waiter.client);
    }
    sleep_ms(1500);
    for (i = 0; i < count; i++)
        server_pause(&servers[i]);
    redlock_release_start(&a.client, &a.lock, 20000);
    for (until = now_ms() + 20000; changed < count && now_ms() < until;) {
        serve(&a.client, 1);
        for (i = changed = 0; i < count; i++)
            changed += a.nodes[i].state != REDLOCK_NODE_READY;
    }
    is_int((int)changed, (int)count, "r11: the servers are busy, the client connects anew");
    for (i = 0; i < count; i++)
        server_resume(&servers[i]);
    if (contended)
        serve(&waiter.client, 60000);
    serve(&a.client, 20000);
    is_int(a.lock.status, REDLOCK_OK, "r11: released%s",
           contended ? ", a waiter has the lock" : "");
    if (contended)
        is_int(waiter.lock.status, REDLOCK_OK, "r11: the waiter has it");
    redlock_deinit(&waiter.client);
    end(&a);
}

static void servers_that_refuse(void)
{
    struct side a;
    unsigned i;

    begin(&a, 3, &patient);
    for (i = 0; i < 2; i++)
        server_ask(&servers[i], text, sizeof text, "ACL", "SETUSER", "default", "-set", NULL);
    is_int(acquire(&a, 60000), REDLOCK_DENIED,
           "r06: no permission on two of three: the call does not wait");
    ok(strstr(a.nodes[0].error, "NOPERM") != NULL, "the server's error text: %s", a.nodes[0].error);
    for (i = 0; i < 2; i++)
        server_ask(&servers[i], text, sizeof text, "ACL", "SETUSER", "default", "+@all", NULL);
    for (i = 0; i < 3; i++)
        server_ask(&servers[i], text, sizeof text, "RPUSH", "key", "not a lock", NULL);
    is_int(acquire(&a, 0), REDLOCK_HELD, "the key is a list: held");
    for (i = 0; i < 1000 && strstr(a.nodes[0].error, "WRONGTYPE") == NULL; i++) {
        acquire(&a, 0); /* the two others may have decided before this node was connected again */
        settle(&a.client);
        sleep_ms(5);
    }
    ok(strstr(a.nodes[0].error, "WRONGTYPE") != NULL, "the key is a list: %s", a.nodes[0].error);
    ok(strcmp(server_ask(&servers[0], text, sizeof text, "LLEN", "key", NULL), "1") == 0,
       "the list is untouched");
    server_ask(&servers[2], text, sizeof text, "DEL", "key", NULL);
    for (i = 0; i < 2; i++) {
        server_ask(&servers[i], text, sizeof text, "DEL", "key", NULL);
        server_ask(&servers[i], text, sizeof text, "REPLICAOF", "127.0.0.1", "1", NULL);
    }
    is_int(acquire(&a, 60000), REDLOCK_DENIED, "r06: two of three are replicas");
    ok(strstr(a.nodes[1].error, "READONLY") != NULL, "the replica's error: %s", a.nodes[1].error);
    for (i = 0; i < 2; i++)
        server_ask(&servers[i], text, sizeof text, "REPLICAOF", "NO", "ONE", NULL);
    end(&a);
}

/* How often server 0 has run a command. */
static long calls_of(const char *command)
{
    server_ask(&servers[0], text, sizeof text, "EVAL",
               "return redis.call('info','commandstats'):match('cmdstat_'..ARGV[1]..':calls=(%d+)')"
               "or'0'",
               "0", command, NULL);
    return atol(text);
}

static int knows(const char *command)
{
    server_ask(&servers[0], text, sizeof text, command, NULL);
    return strstr(text, "unknown command") == NULL;
}

/* DELIFEQ or DELEX, if the server has it, else EVALSHA; also when the permission is withdrawn. */
static void own_commands(void)
{
    enum { ROUNDS = 20 };
    int i, bad = 0;
    const char *native = knows("DELIFEQ") ? "delifeq" : knows("DELEX") ? "delex" : "evalsha";
    struct side a;

    begin(&a, 5, &patient);
    server_ask(&servers[0], text, sizeof text, "CONFIG", "RESETSTAT", NULL);
    for (i = 0; i < ROUNDS; i++) {
        bad += acquire(&a, 20000) != REDLOCK_OK;
        bad += release(&a) != REDLOCK_OK;
        settle(&a.client);
    }
    is_int(bad, 0, "r11: %d rounds", ROUNDS);
    ok(!REDLOCK_MINIMAL ? calls_of(native) >= ROUNDS - 3 && calls_of("eval") < 10
                        : calls_of("eval") > ROUNDS,
       "r11: released by %s", !REDLOCK_MINIMAL ? native : "script");
    acquire(&a, 20000);
    settle(&a.client);
    for (i = 0; i < 5; i++) {
        server_ask(&servers[i], text, sizeof text, "ACL", "SETUSER", "default", "-delifeq", NULL);
        server_ask(&servers[i], text, sizeof text, "ACL", "SETUSER", "default", "-delex", NULL);
        server_ask(&servers[i], text, sizeof text, "SCRIPT", "FLUSH", NULL);
    }
    is_int(release(&a), REDLOCK_OK, "r11: the permission is withdrawn: released by script");
    settle(&a.client);
    ok(servers_keys_left("key", 0) <= 2, "r11: at least three servers have deleted the key");
    for (i = 0; i < 5; i++)
        bad += a.nodes[i].error[0] != '\0';
    is_int(bad, 0, "r11: no node has an error");
    for (i = 0; i < 5; i++) {
        server_ask(&servers[i], text, sizeof text, "DEL", "key", NULL);
        server_ask(&servers[i], text, sizeof text, "ACL", "SETUSER", "default", "+@all", NULL);
    }
    is_int(acquire(&a, 20000), REDLOCK_OK, "r11: the permission is back: acquired");
    is_int(release(&a), REDLOCK_OK, "r11: the permission is back: released");
    settle(&a.client);
    is_int((int)servers_keys_left("*", 10000), 0, "no key is left");
    end(&a);
}

/* Redis 6.0 keeps no queue. */
static int servers_keep_queues(void)
{
    server_ask(&servers[0], text, sizeof text, "INFO", "server", NULL);
    ok(strstr(text, "redis_version:") != NULL, "r19: the server tells its version");
    return strstr(text, "redis_version:6.0.") == NULL;
}

/* The scripts of the wait queue are sent once on a connection, and then their hashes; again, when the server has forgotten them,
   or the permission for hashes is withdrawn. */
static void hashes(void)
{
    enum { ROUNDS = 20 };
    static const char *const parts[] = {"each script once, then hashes", "hashes",
                                        "scripts again, as the server has forgotten them"};
    const struct redlock_settings settings = {.fair = 1, .node_timeout_ms = 5000};
    struct side a;
    int i, n, scripts, wanted[3], bad = 0;

    if (!REDLOCK_FAIR)
        return;
    scripts = servers_keep_queues() ? 2 : 1; /* that of the release, and the gate */
    wanted[0] = scripts * (ROUNDS - 1);
    wanted[1] = scripts * ROUNDS;
    wanted[2] = 1;
    begin(&a, 1, &settings);
    for (n = 0; n < 3; n++) {
        if (n == 2)
            server_ask(&servers[0], text, sizeof text, "SCRIPT", "FLUSH", NULL);
        server_ask(&servers[0], text, sizeof text, "CONFIG", "RESETSTAT", NULL);
        for (i = 0; i < ROUNDS; i++) {
            bad += acquire(&a, 20000) != REDLOCK_OK;
            bad += release(&a) != REDLOCK_OK;
        }
        is_int(bad, 0, "r11: fair: %d rounds", ROUNDS);
        is_int((int)calls_of("evalsha"), wanted[n], "r11: %s", parts[n]);
    }
    end(&a);
    server_ask(&servers[0], text, sizeof text, "ACL", "SETUSER", "default", "-evalsha", NULL);
    begin(&a, 1, &settings);
    for (i = 0; i < 3; i++) {
        bad += acquire(&a, 20000) != REDLOCK_OK;
        bad += release(&a) != REDLOCK_OK;
    }
    is_int(bad, 0, "r11: fair: hashes are not permitted");
    server_ask(&servers[0], text, sizeof text, "ACL", "SETUSER", "default", "+@all", NULL);
    is_int((int)servers_keys_left("*", 10000), 0, "no key is left");
    end(&a);
}

static void other_addresses(void)
{
    struct side a;
    unsigned i;

    begin(&a, 3, &patient);
    for (i = 0; i < 3; i++)
        a.nodes[i].address = servers[i].local;
    is_int(acquire(&a, 0), REDLOCK_OK, "over unix sockets");
    is_int((int)redlock_extend(&a.client, &a.lock), REDLOCK_OK, "extended");
    is_int(release(&a), REDLOCK_OK, "released");
    is_int((int)servers_keys_left("*", 10000), 0, "no key is left");
    end(&a);
}

static void an_expired_lock(void)
{
    struct side a, b;
    long until = now_ms() + 30000;

    begin(&a, 3, &patient);
    begin(&b, 3, &patient);
    a.lock.ttl_ms = 300;
    while (acquire(&a, 0) != REDLOCK_OK && now_ms() < until) /* each node has 75 ms only */
        continue;
    is_int(a.lock.status, REDLOCK_OK, "a lock of 300 ms");
    is_int(acquire(&b, 20000), REDLOCK_OK, "no deadlock: another client acquires the expired lock");
    is_int((int)redlock_remaining_ms(&a.client, &a.lock), 0,
           "no validity was left for the first client");
    until = now_ms() + 15000;
    do /* again each node has 75 ms only */
        redlock_extend(&a.client, &a.lock);
    while (a.lock.status == REDLOCK_UNREACHABLE && now_ms() < until);
    is_int(a.lock.status, REDLOCK_LOST, "the first client cannot extend the other's lock");
    is_int(release(&a), REDLOCK_LOST, "the first client cannot release the other's lock");
    is_int(release(&b), REDLOCK_OK, "the other client releases its lock");
    redlock_deinit(&a.client);
    end(&b);
}

/* A child process that acquires the lock again and again, together with others. The holder creates a file exclusively,
   in the servers' folder: that fails if another process is inside. */
static void contend(int rounds)
{
    struct side a;
    char name[160];
    int won = 0, failed = 0, tries;

    snprintf(name, sizeof name, "%.110s.inside", servers[0].local + strlen("unix:"));
    begin(&a, 5, &patient);
    for (tries = 0; won < rounds && tries < 100 * rounds; tries++) {
        FILE *inside;
        if (acquire(&a, 10000) != REDLOCK_OK)
            continue;
        inside = fopen(name, "wx"); /* fails if the file exists */
        failed += inside == NULL && redlock_remaining_ms(&a.client, &a.lock) > 0;
        if (inside != NULL) {
            fclose(inside);
            remove(name);
        }
        won++;
        redlock_release(&a.client, &a.lock, 5000);
    }
    /* a process that ends with unread replies resets the connection, and the server would not read the release */
    settle(&a.client);
    _exit(failed > 0 ? 1 : won == rounds ? 0 : 2);
}

static void many_processes(void)
{
    enum { CHILDREN = 4, ROUNDS = 25 };
    struct side unused;
    pid_t children[CHILDREN], parent = getpid();
    int i, status, bad = 0;

    for (i = 0; i < CHILDREN; i++) {
        fflush(stdout);
        children[i] = fork();
        if (children[i] == 0) {
            end_with(parent);
            contend(ROUNDS);
        }
    }
    for (i = 0; i < CHILDREN; i++)
        bad += waitpid(children[i], &status, 0) != children[i] || status != 0;
    is_int(bad, 0, "%d processes acquire the lock %d times each, never two at once", CHILDREN,
           ROUNDS);
    is_int((int)servers_keys_left("*", 10000), 0, "no key is left");
    begin(&unused, 1, NULL);
    end(&unused);
}

/* Waiters of a lock, each a client. Only notifications end their pauses, because these would last for minutes. */
enum { WAITERS = 4 };
static struct side holder, waiters[WAITERS];

static void begin_waiters(int fenced)
{
    struct redlock_settings fair = patient;
    unsigned i;

    fair.fair = 1;
    fair.retry_delay_ms = fair.retry_delay_max_ms = 600000;
    begin(&holder, 5, &fair);
    holder.lock.use_fencing = (uint8_t)fenced;
    is_int(acquire(&holder, 0), REDLOCK_OK, "r19: a client holds the lock");
    for (i = 0; i < WAITERS; i++) {
        begin(&waiters[i], 5, &fair);
        waiters[i].lock.use_fencing = (uint8_t)fenced;
        sleep_ms(20); /* a place is that of a moment, in ms */
        redlock_acquire_start(&waiters[i].client, &waiters[i].lock, 600000);
        settle(&waiters[i].client);
    }
}

static void end_waiters(void)
{
    unsigned i;

    for (i = 0; i < WAITERS; i++)
        redlock_deinit(&waiters[i].client);
    end(&holder);
}

/* Each gets the lock while only it is served, so it does not matter how fast it is. */
static void r19_waiters_in_order(int fenced)
{
    uint64_t token = 0;
    unsigned i, wrong = 0;

    begin_waiters(fenced);
    is_int((int)servers_keys_left("key:wait", 0), servers_keep_queues() ? 5 : 0,
           "r19: five nodes keep a queue, on Redis 6.0 none");
    is_int(release(&holder), REDLOCK_OK, "r19: released");
    for (i = 0; i < WAITERS; i++) {
        serve(&waiters[i].client, 20000);
        is_int(waiters[i].lock.status, REDLOCK_OK, "r19: waiter %u gets the lock", i);
        wrong += waiters[i].lock.priv.op.attempts != 2;
        if (fenced)
            ok(waiters[i].lock.fencing_token > token, "r19: with a larger fencing token");
        token = waiters[i].lock.fencing_token;
        is_int(release(&waiters[i]), REDLOCK_OK, "r19: and releases it");
    }
    is_int((int)wrong, 0, "r19: each has asked twice: at first, and when it was its turn");
    is_int((int)servers_keys_left("key:wait", 10000), 0, "r19: no queue is left");
    is_int((int)servers_keys_left("key:wait:*", 10000), 0, "r19: nor a lease");
    is_int((int)servers_keys_left("key", 10000), 0, "r19: nor the lock");
    end_waiters();
}

static void limit_memory(int first, int last, const char *bytes)
{
    for (; first <= last; first++)
        server_ask(&servers[first], text, sizeof text, "CONFIG", "SET", "maxmemory", bytes, NULL);
}

/* A server that refuses DEL keeps the key: the release must say so. */
static void r19_a_release_that_is_denied(void)
{
    unsigned i;

    begin_waiters(0);
    for (i = 0; i < 5; i++)
        server_ask(&servers[i], text, sizeof text, "ACL", "SETUSER", "default", "-del", NULL);
    ok(redlock_release(&holder.client, &holder.lock, 500) != REDLOCK_OK,
       "r19: DEL is denied: the release is not confirmed");
    for (i = 0; i < 5; i++)
        server_ask(&servers[i], text, sizeof text, "ACL", "SETUSER", "default", "+del", NULL);
    end_waiters();
}

/* A server without memory refuses SET and ZADD, also in a script, but not DEL. */
static void r19_without_memory(void)
{
    unsigned i;

    begin_waiters(0);
    limit_memory(0, 1, "1");
    release(&holder);
    for (i = 0; i < 3; i++) {
        serve(&waiters[i].client, 20000);
        is_int(waiters[i].lock.status, REDLOCK_OK,
               "r19: two nodes are out of memory: waiter %u gets the lock", i);
        is_int(release(&waiters[i]), REDLOCK_OK, "r19: and releases it");
    }
    limit_memory(0, 1, "0");
    serve(&waiters[3].client, 20000);
    is_int(waiters[3].lock.status, REDLOCK_OK, "r19: they have memory again: the last waiter");
    limit_memory(0, 4, "1");
    is_int(release(&waiters[3]), REDLOCK_OK, "r19: no node has memory: released");
    limit_memory(0, 4, "0");
    end_waiters();
}

static void r19_dead_waiters(void)
{
    begin_waiters(0);
    redlock_deinit(&waiters[0].client);
    release(&holder);
    serve(&waiters[1].client, 20000);
    is_int(waiters[1].lock.status, REDLOCK_OK, "r19: the first waiter is dead: the second has it");
    release(&waiters[1]);
    serve(&waiters[2].client, 20000);
    is_int(waiters[2].lock.status, REDLOCK_OK, "r19: then the third");
    end_waiters();
}

/* A child process with waiters behind a network that delays all bytes. Their votes may take 15 ms, so hardly an attempt of these
   waiters can succeed. */
static pid_t begin_slow_waiters(struct proxy *proxies)
{
    struct redlock_settings fair = patient;
    pid_t parent = getpid(), child;
    unsigned i, n;

    fflush(stdout);
    child = fork();
    if (child != 0)
        return child;
    end_with(parent);
    fair.fair = 1;
    for (i = 0; i < WAITERS; i++) {
        begin(&waiters[i], 5, &fair);
        for (n = 0; n < 5; n++)
            waiters[i].nodes[n].address = proxies[n].address;
        waiters[i].lock.ttl_ms = 60;
        redlock_acquire_start(&waiters[i].client, &waiters[i].lock, 600000);
    }
    for (;;)
        for (i = 0; i < WAITERS; i++) {
            serve(&waiters[i].client, 2);
            if (waiters[i].lock.status != REDLOCK_PENDING)
                redlock_acquire_start(&waiters[i].client, &waiters[i].lock, 600000);
        }
}

static unsigned turns_in(struct side *side, long ms)
{
    long until = now_ms() + ms;
    unsigned turns = 0;

    while (now_ms() < until)
        if (acquire(side, 20000) == REDLOCK_OK) {
            turns++;
            release(side);
        }
    return turns;
}

/* The link of one site is slow: it costs the others less than half of their turns. */
static void r19_a_slow_site(void)
{
    static struct proxy proxies[5];
    struct redlock_settings fair = patient;
    unsigned i, without = 0, beside = 0, tries;
    pid_t network, slow;

    for (i = 0; i < 5; i++) {
        proxies[i].to = servers[i].port;
        proxies[i].mode = PROXY_DELAY;
    }
    network = proxies_start(proxies, 5);
    fair.fair = 1;
    begin(&holder, 5, &fair);
    for (tries = 0; tries < 3 && (without == 0 || beside * 2 < without); tries++) {
        without = turns_in(&holder, 1000);
        slow = begin_slow_waiters(proxies);
        turns_in(&holder, 1000);
        beside = turns_in(&holder, 1000);
        kill(slow, SIGKILL);
        waitpid(slow, NULL, 0);
    }
    ok(without > 0 && beside * 2 >= without,
       "r19: %u turns in a second beside %d waiters that cannot get it, %u without them", beside,
       WAITERS, without);
    kill(network, SIGKILL);
    waitpid(network, NULL, 0);
    end(&holder);
}

/* Sends the same command to all. */
static void ask_all(const char *a, const char *b, const char *c, const char *d, const char *e)
{
    unsigned i;

    for (i = 0; i < NODES; i++)
        server_ask(&servers[i], text, sizeof text, a, b, c, d, e, NULL);
}

/* The counter, or the lock, is a list: with the queue the answer is the same as without it. */
static void r19_a_list_at(const char *name, int fair, enum redlock_status status)
{
    struct redlock_settings settings = patient;

    settings.fair = (uint32_t)fair;
    begin(&holder, 5, &settings);
    holder.lock.use_fencing = 1;
    ask_all("RPUSH", name, "x", "y", NULL);
    is_int(acquire(&holder, 300), status, "r19: a list at %s, fair %d: %s", name, fair,
           redlock_strerror(status));
    end(&holder);
}

/* Holders that know no queue. */
static void r19_a_foreign_holder(void)
{
    unsigned i;

    begin_waiters(0);
    for (i = 0; i < 5; i++)
        server_ask(&servers[i], text, sizeof text, "SET", "key", "theirs", "PX", "60000", NULL);
    for (i = 0; i < 5; i++)
        server_ask(&servers[i], text, sizeof text, "DEL", "key", NULL);
    serve(&waiters[0].client, 20000);
    is_int(waiters[0].lock.status, REDLOCK_OK, "r19: a release of another library notifies");
    serve(&waiters[1].client, 20);
    for (i = 0; i < 5; i++)
        server_ask(&servers[i], text, sizeof text, "PEXPIRE", "key", "1", NULL);
    serve(&waiters[1].client, 20000);
    is_int(waiters[1].lock.status, REDLOCK_OK, "r19: and so does the end of a dead holder's lock");
    end_waiters();
}

/* Two nodes die, and one restarts without its queue. */
static void r19_dead_nodes(void)
{
    begin_waiters(0);
    server_kill(&servers[0]);
    server_kill(&servers[1]);
    release(&holder);
    serve(&waiters[0].client, 20000);
    is_int(waiters[0].lock.status, REDLOCK_OK, "r19: two of five nodes are dead: the first has it");
    server_restart(&servers[0]);
    server_restart(&servers[1]);
    release(&waiters[0]);
    serve(&waiters[1].client, 20000);
    is_int(waiters[1].lock.status, REDLOCK_OK, "r19: they are back without a queue: the next");
    end_waiters();
}

/* How many scripts the servers have run since the last CONFIG RESETSTAT. */
static unsigned long scripts(void)
{
    unsigned long sum = 0;
    unsigned i;

    for (i = 0; i < NODES; i++) {
        const char *at =
            strstr(server_ask(&servers[i], text, sizeof text, "INFO", "commandstats", NULL),
                   "cmdstat_eval:calls=");
        sum += at != NULL ? strtoul(at + sizeof "cmdstat_eval:calls=" - 1, NULL, 10) : 0;
    }
    return sum;
}

/* KEY:wait is something else: it stays as it is, and those that wait for KEY get it. */
static void r19_another_key_is_left_alone(const char *what, const char *command, const char *a,
                                          const char *b, const char *ends, const char *size)
{
    long left;
    unsigned i;

    begin_waiters(0);
    for (i = 0; i < WAITERS; i++)
        redlock_deinit(&waiters[i].client);
    release(&holder);
    ask_all("DEL", "key:wait", NULL, NULL, NULL);
    ask_all(command, "key:wait", a, b, NULL);
    if (ends != NULL)
        ask_all("PEXPIRE", "key:wait", ends, NULL, NULL);
    is_int(acquire(&holder, 10000), REDLOCK_OK, "r19: %s at KEY:wait: acquired", what);
    begin(&waiters[0], 5, &patient);
    waiters[0].client.priv.settings.fair = 1;
    redlock_acquire_start(&waiters[0].client, &waiters[0].lock, 600000);
    settle(&waiters[0].client);
    is_int(release(&holder), REDLOCK_OK, "r19: released");
    serve(&waiters[0].client, 20000);
    is_int(waiters[0].lock.status, REDLOCK_OK, "r19: a waiter gets it");
    is_int(release(&waiters[0]), REDLOCK_OK, "r19: and releases it");
    for (i = 0; i < NODES; i++) {
        left = atol(server_ask(&servers[i], text, sizeof text, "PTTL", "key:wait", NULL));
        ok(ends != NULL ? left > 30000 : left == -1, "r19: its time to live is untouched: %ld",
           left);
        server_ask(&servers[i], text, sizeof text, size, "key:wait", NULL);
        ok(strcmp(text, strcmp(size, "GET") == 0     ? "token"
                        : strcmp(size, "ZCARD") == 0 ? "1"
                                                     : "2") == 0,
           "r19: it is untouched: %s", text);
    }
    end_waiters();
}

/* A user who may use the key of the lock only: not that of the queue, nor a lease. */
static void r19_a_user_for_one_key(void)
{
    static struct side user[2];
    unsigned i, n;

    ask_all("ACL", "SETUSER", "one", "reset", NULL);
    for (i = 0; i < NODES; i++)
        server_ask(&servers[i], text, sizeof text, "ACL", "SETUSER", "one", "on", ">pw", "~key",
                   "+@all", NULL);
    for (i = 0; i < 2; i++) {
        struct redlock_settings fair = patient;
        fair.fair = 1;
        fair.retry_delay_ms = fair.retry_delay_max_ms = 600000;
        begin(&user[i], 5, &fair);
        for (n = 0; n < NODES; n++) {
            user[i].nodes[n].user = "one";
            user[i].nodes[n].password = "pw";
        }
    }
    is_int(acquire(&user[0], 10000), REDLOCK_OK, "r19: a user for one key: acquired");
    redlock_acquire_start(&user[1].client, &user[1].lock, 600000);
    settle(&user[1].client);
    is_int((int)servers_keys_left("key:*", 0), 0, "r19: no node keeps a queue");
    is_int(release(&user[0]), REDLOCK_OK, "r19: released");
    serve(&user[1].client, 20000);
    is_int(user[1].lock.status, REDLOCK_OK, "r19: a waiter is notified");
    release(&user[1]);
    ask_all("ACL", "DELUSER", "one", NULL, NULL);
    redlock_deinit(&user[1].client);
    end(&user[0]);
}

/* A user who may use all keys, but not ZADD. */
static void r19_zadd_is_denied(void)
{
    ask_all("ACL", "SETUSER", "default", "-zadd", NULL);
    begin_waiters(0);
    is_int((int)servers_keys_left("key:wait*", 0), 0,
           "r19: ZADD is denied: neither a queue nor a lease");
    is_int(release(&holder), REDLOCK_OK, "r19: released");
    serve(&waiters[0].client, 20000);
    is_int(waiters[0].lock.status, REDLOCK_OK, "r19: a waiter is notified");
    release(&waiters[0]);
    ask_all("ACL", "SETUSER", "default", "+zadd", NULL);
    end_waiters();
}

static void r19_all_keys_are_gone(void)
{
    begin_waiters(0);
    ask_all("FLUSHALL", NULL, NULL, NULL, NULL);
    serve(&waiters[0].client, 20000);
    is_int(waiters[0].lock.status, REDLOCK_OK, "r19: FLUSHALL: the first waiter has the lock");
    end_waiters();
}

/* The servers remember one key for all clients that are to be notified, and tell a client at once that they have forgotten its
   other keys. */
static void r19_a_small_tracking_table(void)
{
    long until;
    unsigned i;

    ask_all("CONFIG", "SET", "tracking-table-max-keys", "1", NULL);
    begin_waiters(0);
    ask_all("CONFIG", "RESETSTAT", NULL, NULL, NULL);
    for (until = now_ms() + 2000; now_ms() < until;)
        for (i = 0; i < WAITERS; i++)
            serve(&waiters[i].client, 2);
    ok(scripts() < WAITERS * 5 * 2 * 40, "r19: a small tracking table: %lu scripts in 2 s",
       scripts());
    ask_all("CONFIG", "SET", "tracking-table-max-keys", "1000000", NULL);
    end_waiters();
}

/* Concurrent acquires with wait_ms 0: one of them gets the lock. */
static void without_waiting_one_wins(void)
{
    enum { SIDES = 8, ROUNDS = 10 };
    static struct side sides[SIDES];
    struct redlock_io io = *redlock_posix();
    int round, i, wrong = 0, winners = 0;

    for (i = 0; i < SIDES; i++)
        begin(&sides[i], 5, &patient);
    for (round = 0; round < ROUNDS; round++) {
        int pending = SIDES, holders = 0;
        long until = now_ms() + 60000;
        for (i = 0; i < SIDES; i++)
            redlock_acquire_start(&sides[i].client, &sides[i].lock, 0);
        while (pending > 0 && now_ms() < until) {
            for (i = 0; i < SIDES; i++) {
                uint8_t events[NODES];
                unsigned n;
                redlock_tick(&sides[i].client);
                for (n = 0; n < NODES; n++)
                    events[n] = (uint8_t)redlock_wanted_events(&sides[i].client, n);
                io.wait(NULL, sides[i].nodes, NODES, 0, events);
                for (n = 0; n < NODES; n++)
                    redlock_handle_events(&sides[i].client, n, events[n]);
                redlock_tick(&sides[i].client);
                pending -= redlock_next_completed(&sides[i].client) != NULL;
            }
        }
        for (i = 0; i < SIDES; i++)
            holders += sides[i].lock.status == REDLOCK_OK;
        wrong += holders > 1;
        winners += holders;
        for (i = 0; i < SIDES; i++)
            if (sides[i].lock.status == REDLOCK_OK)
                release(&sides[i]);
        servers_keys_left("*", 10000);
    }
    is_int(wrong, 0, "r06: %d clients, %d rounds: never two holders", SIDES, ROUNDS);
    ok(winners >= ROUNDS / 2, "r06: one client acquired the lock in %d rounds", winners);
    for (i = 0; i < SIDES; i++)
        end(&sides[i]);
}

static void many_locks_in_flight(void)
{
    enum { MANY = 100 };
    static struct redlock_lock locks[MANY];
    static char names[MANY][8];
    struct redlock_io io = *redlock_posix();
    struct side a;
    struct redlock_lock *lock;
    int i, held = 0, released = 0;
    long until = now_ms() + 60000;

    begin(&a, 5, &patient);
    for (i = 0; i < MANY; i++) {
        snprintf(names[i], sizeof names[i], "k%02u", (unsigned)i % 100);
        redlock_lock_init(&locks[i], names[i], 60000);
        redlock_acquire_start(&a.client, &locks[i], 0);
    }
    while (released < MANY && now_ms() < until) {
        uint8_t events[NODES];
        uint64_t wait_us;
        unsigned n;

        redlock_tick(&a.client);
        while ((lock = redlock_next_completed(&a.client)) != NULL) {
            if (lock->status != REDLOCK_OK)
                until = 0;
            else if (lock->valid_until_us != 0 && ++held > 0)
                redlock_release_start(&a.client, lock, 10000);
            else
                released++;
        }
        wait_us = redlock_tick(&a.client);
        for (n = 0; n < NODES; n++)
            events[n] = (uint8_t)redlock_wanted_events(&a.client, n);
        io.wait(NULL, a.nodes, NODES, wait_us < 100000 ? wait_us : 100000, events);
        for (n = 0; n < NODES; n++)
            redlock_handle_events(&a.client, n, events[n]);
    }
    is_int(held, MANY, "%d locks at once over the same connections: all held", MANY);
    is_int(released, MANY, "%d locks at once: all released", MANY);
    is_int((int)servers_keys_left("*", 10000), 0, "no key is left");
    end(&a);
}

/* Parent and child draw different tokens; and a child cannot use its parent's client. */
static void a_forked_process(void)
{
    struct side a, b;
    char first[64] = "", second[64];
    int status = -1;
    pid_t child;

    begin(&a, 1, &patient);
    fflush(stdout);
    child = fork();
    if (child == 0) {
        int forked = acquire(&a, 0);
        begin(&b, 1, &patient);
        acquire(&b, 0);
        redlock_deinit(&b.client);
        redlock_deinit(&a.client);
        exit(forked == REDLOCK_FORKED ? 0 : 1);
    }
    waitpid(child, &status, 0);
    is_int(status, 0, "fork: REDLOCK_FORKED in the child");
    snprintf(first, sizeof first, "%.40s", value(0));
    server_ask(&servers[0], text, sizeof text, "DEL", "key", NULL);
    is_int(acquire(&a, 0), REDLOCK_OK, "fork: the parent can use its client");
    snprintf(second, sizeof second, "%.40s", value(0));
    ok(strlen(first) == 40 && strlen(second) == 40 && strcmp(first, second) != 0,
       "different tokens of child and parent: %s %s", first, second);
    release(&a);
    end(&a);
}

int main(void)
{
    unsigned i;
    int fair;

    servers_start(servers, NODES, NULL);
    on_the_wire();
    another_library();
    dead_servers();
    hung_servers();
    connections_that_break();
    for (i = 0; i < 4; i++)
        r11_busy_at_the_release(i % 2 ? 3 : 1, i > 1);
    servers_that_refuse();
    own_commands();
    hashes();
    other_addresses();
    an_expired_lock();
    many_processes();
    if (REDLOCK_FAIR) {
        r19_waiters_in_order(0);
        if (!REDLOCK_MINIMAL)
            r19_waiters_in_order(1);
        r19_a_release_that_is_denied();
        r19_without_memory();
        r19_dead_waiters();
        r19_a_slow_site();
        for (fair = 0; fair < 2 && !REDLOCK_MINIMAL; fair++) {
            r19_a_list_at("key:fence", fair, REDLOCK_DENIED);
            r19_a_list_at("key", fair, REDLOCK_TIMEOUT);
        }
        r19_a_foreign_holder();
        r19_dead_nodes();
        r19_another_key_is_left_alone("a lock", "SET", "token", NULL, "90000", "GET");
        r19_another_key_is_left_alone("a list", "RPUSH", "x", "y", "90000", "LLEN");
        r19_another_key_is_left_alone("another sorted set", "ZADD", "1", "x", NULL, "ZCARD");
        r19_another_key_is_left_alone("a queue of version 0.3", "ZADD", "1", "0123abcd", "90000",
                                      "ZCARD");
        r19_a_user_for_one_key();
        r19_zadd_is_denied();
        r19_all_keys_are_gone();
        r19_a_small_tracking_table();
    }
    without_waiting_one_wins();
    many_locks_in_flight();
    a_forked_process();
    return done_testing();
}
