/* check_test.c PROGRAM - `redlock check` on real servers. The test makes one thing at a time wrong on a
   server. The program must report it under the number of its check, with the expected verdict and exit
   status, and nothing else. Faults that a real server cannot produce come from a mock server.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "servers.h"
#include "tap.h"

#include <regex.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PASSWORD "pA55-w0rd" /* must not be in any output */

enum {
    FIRST, /* HEALTHY servers without a fault, with an AOF */
    HEALTHY = 5,
    PLAIN = HEALTHY, /* no AOF */
    OTHER,           /* no AOF; becomes a replica of PLAIN */
    ADRIFT,          /* its directory is removed */
    CLUSTER,
    SENTINEL,
    RENAMED, /* without the command CONFIG */
    SERVERS
};
static struct server servers[SERVERS];

static const char *program;
static const char *network; /* not NULL: there are addresses other than loopback */
static char record[200];    /* path of a file with all JSON output */
static char output[1 << 18];
static int status;

/* ---- Running the program -------------------------------------------------------------------- */

/* Runs `redlock check` with these nodes and options, and sets `output` and `status`. */
static void run(const char *nodes, const char *options)
{
    char command[1000];
    FILE *pipe;

    snprintf(command, sizeof command, "%s check --config /dev/null --node-timeout 4 %s 2>&1",
             program, options);
    setenv("REDLOCK_NODES", nodes, 1);
    pipe = popen(command, "r");
    if (pipe == NULL)
        exit(1);
    output[fread(output, 1, sizeof output - 1, pipe)] = '\0';
    status = pclose(pipe);
    status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if (!ok(strstr(output, PASSWORD) == NULL && strpbrk(output, "\x1b\r\t\x07") == NULL,
            "no password and no control character in the output"))
        fprintf(stderr, "# %s\n", output);
}

/* The same with --json, without measuring the clocks, and adds the output to `record`. */
static void check(const char *nodes, const char *options)
{
    char all[500];
    FILE *file;

    snprintf(all, sizeof all, "--json --clock-window 0 %s", options);
    run(nodes, all);
    file = fopen(record, "a");
    if (file != NULL) {
        fputs(output, file);
        fclose(file);
    }
}

/* Whether the output has this check with this verdict and a value that contains `value`. */
static int has(int id, const char *verdict, const char *value)
{
    char start[80];
    const char *at, *found, *end;

    snprintf(start, sizeof start, "\"id\":%d,\"result\":\"%s\",\"value\":", id, verdict);
    for (at = output; (at = strstr(at, start)) != NULL; at++) {
        found = strstr(at, value);
        end = strstr(at, ",\"why\":");
        if (found != NULL && end != NULL && found < end)
            return 1;
    }
    return 0;
}

static int count(const char *text)
{
    const char *at = output;
    int n = 0;

    for (; (at = strstr(at, text)) != NULL; at++)
        n++;
    return n;
}

static int complaints(void)
{
    return count("\"result\":\"warn\"") + count("\"result\":\"fail\"") +
           count("\"result\":\"unsafe\"");
}

/* Prints the verdicts other than pass and skip, after a test has failed. */
static void show(void)
{
    const char *line = output, *end;

    for (; *line != '\0'; line = *end != '\0' ? end + 1 : end) {
        end = line + strcspn(line, "\n");
        if (strstr(line, "result") == NULL || strstr(line, "result") > end ||
            (strncmp(strstr(line, "\"result"), "\"result\":\"pass", 14) != 0 &&
             strncmp(strstr(line, "\"result"), "\"result\":\"skip", 14) != 0))
            fprintf(stderr, "# %.*s\n", (int)(end - line), line);
    }
}

/* The last run has reported this and nothing else, and its exit status is `expected`. */
static void only(const char *name, int expected, int id, const char *verdict, const char *value)
{
    if (!ok(status == expected && has(id, verdict, value) && complaints() == 1, "%s: %d, %s", name,
            id, verdict)) {
        fprintf(stderr, "# status %d, %d complaints\n", status, complaints());
        show();
    }
}

/* The last run has reported this, perhaps with more, and its exit status is `expected`. */
static void also(const char *name, int expected, int id, const char *verdict, const char *value)
{
    if (!ok(status == expected && has(id, verdict, value), "%s: %d, %s", name, id, verdict)) {
        fprintf(stderr, "# status %d\n", status);
        show();
    }
}

/* ---- Servers -------------------------------------------------------------------------------- */

static const char *ask(int i, const char *command, const char *one, const char *two,
                       const char *three)
{
    static char reply[4096];

    return server_ask(&servers[i], reply, sizeof reply, command, one, two, three, NULL);
}

static void set(int i, const char *setting, const char *value)
{
    const char *reply = ask(i, "CONFIG", "SET", setting, value);

    if (strcmp(reply, "OK") != 0)
        printf("# CONFIG SET %s %s: %s\n", setting, value, reply);
}

/* Waits until the server's INFO contains `text`, for 20 s at most. */
static void wait_for(int i, const char *text)
{
    long until = now_ms() + 20000;

    while (strcmp(ask(i, "EVAL", "return redis.call('info'):find(ARGV[1],1,true) and 'yes' or 'no'",
                      "0", text),
                  "yes") != 0 &&
           now_ms() < until)
        sleep_ms(10);
}

/* "127.0.0.N:port": each healthy server has a different address, as if on a different machine; the others share one. */
static const char *at(int i)
{
    static char text[SERVERS][40];

    snprintf(text[i], sizeof text[i], "127.0.0.%d:%d", i < HEALTHY ? i + 1 : HEALTHY + 1,
             servers[i].port);
    return text[i];
}

/* The first three healthy servers. */
static const char *three(void)
{
    static char text[200];

    snprintf(text, sizeof text, "%s,%s,%s", at(0), at(1), at(2));
    return text;
}

/* Two healthy servers and `node`. */
static const char *with(const char *node)
{
    static char text[400];

    snprintf(text, sizeof text, "%s,%s,%s", at(1), at(2), node);
    return text;
}

/* The path of `name` in the directory of the test. */
static const char *name_in(char path[200], const char *name)
{
    snprintf(path, 200, "%.*s/%s", (int)(strrchr(servers[0].local, '/') - servers[0].local - 5),
             servers[0].local + 5, name);
    return path;
}

static void start_all(void)
{
    static char bus[32]; /* default: the port + 10000, which may be too large */
    static const char *cluster[] = {"--cluster-enabled", "yes", "--cluster-port", NULL, NULL};
    static const char *const renamed[] = {"--rename-command", "CONFIG", "", NULL};
    static const char *const plain[] = {"--appendonly", "no", NULL};
    static const char *sentinel[] = {NULL, "--sentinel", NULL};
    static const char *adrift[] = {"--appendonly", "no", "--dir", NULL, NULL};
    static const char *common[] = {
        "--appendonly", "yes",       "--appendfsync", "always",    "--protected-mode",
        "no",           "--bind",    "127.0.0.1",     "127.0.0.2", "127.0.0.3",
        "127.0.0.4",    "127.0.0.5", "127.0.0.6",     "-::1",      NULL,
        NULL,           NULL};
    static char file[200], folder[200];
    int i;

    if (network != NULL) {
        common[14] = "10.11.12.13";
        common[15] = "192.0.2.13";
    }
    servers_start(servers, SERVERS, common);
    sentinel[0] = name_in(file, "sentinel.conf");
    fclose(fopen(file, "w"));
    adrift[3] = name_in(folder, "adrift");
    mkdir(folder, 0700);
    hold_port(bus, sizeof bus);
    cluster[3] = strchr(bus, ':') + 1;
    servers[PLAIN].options = servers[OTHER].options = plain;
    servers[ADRIFT].options = adrift;
    servers[CLUSTER].options = cluster;
    servers[SENTINEL].options = sentinel;
    servers[RENAMED].options = renamed;
    for (i = PLAIN; i < SERVERS; i++)
        server_restart(&servers[i]);
    rmdir(folder);
}

/* ---- A mock server -------------------------------------------------------------------------- */

/* How the mock server differs from a healthy one. */
struct fault {
    const char *first_bytes; /* is sent first; then the connection is closed */
    const char *info;        /* the first lines of INFO */
    /* a command with this word gets this reply; "": none; NULL: closes the connection */
    const char *word, *answer;
    double rate;   /* relative: its clock is faster by this */
    long ahead_ms; /* and was ahead by this */
    int delays;    /* each INFO reports one more delayed fsync */
    long delay_ms; /* before each reply */
    long slow_ms;  /* before the reply to every 50th SET, so that p99 is slow */
};

static pid_t mock_pid;

static double wall(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void answer(int fd, const char *question, const struct fault *fault)
{
    static const char info[] =
        "redis_version:7.0.15\r\nredis_mode:standalone\r\nrole:master\r\nuptime_in_seconds:"
        "999999\r\n"
        "maxmemory:0\r\naof_enabled:1\r\nloading:0\r\nmaster_failover_state:no-failover\r\n";
    static const char hello[] =
        "*14\r\n+server\r\n+redis\r\n+version\r\n+7.0.15\r\n+proto\r\n:2\r\n+id\r\n:3\r\n"
        "+mode\r\n+standalone\r\n+role\r\n+master\r\n+modules\r\n*0\r\n";
    static double start, born;
    static int infos, sets, plain_sets, evals;
    char text[2000], more[40] = "";
    const char *reply = text;

    if (start == 0)
        start = wall();
    sleep_ms(fault->delay_ms);
    if (fault->word != NULL && strstr(question, fault->word) != NULL) {
        if (fault->answer == NULL)
            _exit(0);
        reply = fault->answer;
    } else if (strstr(question, "\r\nINFO\r\n") != NULL) {
        size_t size;
        if (fault->delays)
            snprintf(more, sizeof more, "aof_delayed_fsync:%d\r\n", infos++);
        size = strlen(more) + strlen(fault->info != NULL ? fault->info : "") + strlen(info);
        snprintf(text, sizeof text, "$%zu\r\n%s%s%s\r\n", size, more,
                 fault->info != NULL ? fault->info : "", info);
    } else if (strstr(question, "\r\nHELLO\r\n") != NULL) {
        reply = hello;
    } else if (strstr(question, "\r\nTIME\r\n") != NULL) {
        double now = wall() + (wall() - start) * fault->rate + (double)fault->ahead_ms / 1000;
        snprintf(text, sizeof text, "*2\r\n$10\r\n%010.0f\r\n$6\r\n%06.0f\r\n", (double)(long)now,
                 (double)(long)((now - (double)(long)now) * 1e6));
    } else if (strstr(question, "\r\nCONFIG\r\n") != NULL) {
        int fsync = strstr(question, "\r\nappendfsync\r\n") != NULL,
            no = strstr(question, "\r\nno-") != NULL;
        snprintf(text, sizeof text, "*2\r\n+name\r\n+%s\r\n", fsync ? "always" : no ? "no" : "0");
    } else if (strstr(question, "\r\nNX\r\n") != NULL) {
        reply = ++sets == 3 ? "$-1\r\n" : "+OK\r\n"; /* the third SET is the second for its key */
    } else if (strstr(question, "\r\nSET\r\n") != NULL) {
        if (++plain_sets % 50 == 0)
            sleep_ms(fault->slow_ms);
        born = strstr(question, "\r\n300\r\n") != NULL ? wall() : 0;
        reply = "+OK\r\n";
    } else if (strstr(question, "\r\nEVAL\r\n") != NULL) {
        reply = ++evals == 3 ? ":0\r\n" : ":1\r\n"; /* the third release has a wrong token */
    } else if (strstr(question, "\r\nPTTL\r\n") != NULL) {
        reply = ":1000\r\n";
    } else {
        reply = wall() - born < 0.3 ? "$1\r\nx\r\n" : "$-1\r\n";
    }
    (void)!write(fd, reply, strlen(reply));
}

/* Starts the mock server in a process, sets `mock_pid`, and returns its address. */
static const char *start_mock(const struct fault *fault)
{
    static char address[40];
    pid_t parent = getpid();
    int listener = listen_on(address, sizeof address), fd;
    char question[4000];
    ssize_t size;

    mock_pid = fork();
    if (mock_pid != 0) {
        close(listener);
        return address;
    }
    end_with(parent);
    while ((fd = accept(listener, NULL, NULL)) >= 0) {
        if (fault->first_bytes != NULL) {
            (void)!write(fd, fault->first_bytes, strlen(fault->first_bytes));
            shutdown(fd, SHUT_WR);
        }
        while ((size = read(fd, question, sizeof question - 1)) > 0) {
            question[size] = '\0';
            if (fault->first_bytes == NULL)
                answer(fd, question, fault);
        }
        close(fd);
    }
    _exit(0);
}

/* Checks two healthy servers and the mock server. */
static void check_mock(struct fault fault, const char *options)
{
    check(with(start_mock(&fault)), options);
    kill(mock_pid, SIGKILL);
    waitpid(mock_pid, NULL, 0);
}

/* Waits, because a late release may be on its way. */
static int becomes_empty(int i)
{
    long until = now_ms() + 6000;

    while (strcmp(ask(i, "DBSIZE", NULL, NULL, NULL), "0") != 0)
        if (now_ms() > until)
            return 0;
        else
            sleep_ms(5);
    return 1;
}

static const char quick[] = "--read-only";

/* ---- The checks, by their numbers ----------------------------------------------------------- */

static void healthy(void)
{
    char five[300];
    int i;

    snprintf(five, sizeof five, "%s,%s,%s,%s,%s", at(0), at(1), at(2), at(3), at(4));
    for (i = 0; i < 3; i++) {
        check(five, "--clock-window 0.5 --strict");
        ok(status == 0 && complaints() == 0 && count("\"result\":\"pass\"") == 1 + 5 * 24,
           "five healthy servers: all checks pass");
        if (status != 0)
            show();
    }
    for (i = 0; i < HEALTHY; i++)
        ok(becomes_empty(i), "no key is left");
    check(three(), quick);
    ok(status == 0 && has(9, "skip", "not asked") && has(19, "skip", "no time") &&
           has(20, "skip", "not asked"),
       "read-only: checks that need SET are skipped");
}

static void c01_count(void)
{
    char nodes[400] = "";
    int i;

    check(at(0), quick);
    only("one node", 1, 1, "warn", "1: none may fail");
    snprintf(nodes, sizeof nodes, "%s,%s", at(0), at(1));
    check(nodes, quick);
    only("two nodes", 1, 1, "warn", "2: 0 may fail");
    nodes[0] = '\0';
    for (i = 1; i <= 11; i++)
        snprintf(nodes + strlen(nodes), sizeof nodes - strlen(nodes), "127.0.1.%d:1 ", i);
    check(nodes, quick);
    also("eleven nodes", 2, 1, "warn", "11: each");
}

static void c02_reach(void)
{
    char nodes[200];

    check(with("127.0.1.1:1"), quick);
    only("connection refused", 1, 2, "fail", "refused");
    snprintf(nodes, sizeof nodes, "%s,127.0.1.1:1,127.0.1.2:1", at(0));
    check(nodes, quick);
    also("a majority is unreachable", 2, 2, "fail", "refused");
    check(with("a..b:1"), quick);
    only("an invalid name", 1, 2, "fail", "cannot resolve the name");
    server_pause(&servers[0]);
    check(three(), "--read-only --node-timeout 1");
    server_resume(&servers[0]);
    only("hangs", 1, 2, "fail", "no answer in time");
    check_mock(
        (struct fault){.first_bytes = "-DENIED Redis is running in protected mode because\r\n"},
        quick);
    only("protected mode", 1, 2, "fail", "DENIED Redis is running in protected mode");
    check_mock((struct fault){.first_bytes = "HTTP/1.1 400 Bad Request\r\n\r\n"}, quick);
    only("not Redis", 1, 2, "fail", "does not speak");
    check_mock((struct fault){.word = "INFO", .answer = ""}, "--read-only --node-timeout 1");
    only("hangs at INFO", 1, 2, "fail", "no answer in time");
    ok(has(12, "skip", "not reached"), "checks that need its reply are skipped");
    check_mock((struct fault){.word = "INFO"}, quick);
    only("closes the connection at INFO", 1, 2, "fail", "closed by the server");
}

static void c03_credentials(void)
{
    char node[200];

    set(0, "requirepass", PASSWORD "2");
    check(three(), quick);
    only("no password", 1, 3, "fail", "NOAUTH: the server wants a password");
    snprintf(node, sizeof node, "redis://:%s@%s", PASSWORD, at(0));
    check(with(node), quick);
    only("wrong password", 1, 3, "fail", "WRONGPASS");
    snprintf(node, sizeof node, "redis://:%s2@%s", PASSWORD, at(0));
    check(with(node), quick);
    is_int(status, 0, "right password");
    ask(0, "AUTH", PASSWORD "2", NULL, NULL);
    set(0, "requirepass", "");
    check(with(node), quick);
    only("a password that the server does not need", 1, 3, "warn", "the server wants none");
    check_mock((struct fault){0}, quick);
    is_int(status, 0, "the mock server without a fault");
}

static void c04_database(void)
{
    char node[200];

    snprintf(node, sizeof node, "redis://%s/99", at(0));
    check(with(node), quick);
    also("no such database", 2, 4, "unsafe", "99: ERR DB index is out of range");
    ok(has(4, "warn", "") == 0, "no warning for the other nodes");
    snprintf(node, sizeof node, "redis://%s/1", at(0));
    check(with(node), quick);
    only("another database", 1, 4, "warn", "1 here, 0 on the first");
}

static void c05_kind(void)
{
    check(with(at(CLUSTER)), quick);
    only("cluster", 2, 5, "unsafe", "cluster");
    check(with(at(CLUSTER)), "");
    also("cluster without slots", 2, 9, "fail", "CLUSTERDOWN");
    check(with(at(SENTINEL)), quick);
    also("sentinel", 2, 5, "unsafe", "sentinel");
    check_mock((struct fault){.word = "HELLO",
                              .answer = "-ERR unknown command 'HELLO'\r\n",
                              .info = "redis_mode:cluster\r\n"},
               quick);
    only("cluster, from INFO", 2, 5, "unsafe", "cluster");
}

static void c06_c08_c16_replicas(void)
{
    char port[12], nodes[200];

    snprintf(port, sizeof port, "%d", servers[PLAIN].port);
    set(PLAIN, "repl-diskless-sync-delay", "0");
    ask(OTHER, "REPLICAOF", "127.0.0.1", port, NULL);
    wait_for(OTHER, "master_link_status:up");
    check(with(at(OTHER)), "--read-only --ttl 0.1");
    also("replica", 1, 6, "fail", "replica");
    check(with(at(OTHER)), "--ttl 100");
    also("replica", 2, 9, "fail", "READONLY");
    set(OTHER, "replica-read-only", "no");
    check(with(at(OTHER)), "--ttl 0.1");
    also("replica that accepts writes", 2, 6, "unsafe", "accepts writes");
    snprintf(nodes, sizeof nodes, "%s,%s,%s", at(0), at(PLAIN), at(OTHER));
    check(nodes, quick);
    also("master and its replica", 2, 8, "unsafe", "one data set with 127.0.0.6");
    also("master of a replica", 2, 16, "warn", "1: only good");
    wait_for(PLAIN, "state=online"); /* FAILOVER needs a connected replica */
    server_pause(&servers[OTHER]);
    ask(PLAIN, "SET", "something", "that is not there yet", NULL);
    ask(PLAIN, "FAILOVER", "TIMEOUT", "30000", NULL);
    check(with(at(PLAIN)), quick);
    also("failover", 2, 16, "unsafe", "waiting-for-sync");
    ask(PLAIN, "FAILOVER", "ABORT", NULL, NULL);
    server_resume(&servers[OTHER]);
    wait_for(PLAIN, "state=online");
    ask(OTHER, "REPLICAOF", "NO", "ONE", NULL);
    check(nodes, "--read-only --ttl 0.1");
    also("promoted replica", 1, 8, "warn", "was a replica of 127.0.0.6");
    ok(!has(8, "unsafe", "") && has(6, "pass", "master"), "it is a master now");
    set(0, "min-replicas-to-write", "1");
    check(three(), quick);
    only("replicas are wanted", 1, 16, "warn", "min-replicas-to-write 1");
    check(three(), "");
    also("replicas are missing", 1, 9, "fail", "NOREPLICAS");
    set(0, "min-replicas-to-write", "0");
}

static void c07_distinct(void)
{
    char node[300];
    int i;

    check(with(at(1)), quick);
    only("one address twice", 2, 7, "unsafe", "the same server as 127.0.0.2");
    ok(strstr(output, "#3\"") != NULL, "the duplicate is numbered");
    snprintf(node, sizeof node, "127.0.1.1:1,%s,127.0.1.1:1", at(1));
    check(node, quick);
    also("one unreachable address twice", 2, 7, "unsafe", "the same server as 127.0.1.1:1");
    snprintf(node, sizeof node, "127.0.0.1:%d", servers[1].port);
    check(with(node), quick);
    only("one server, two addresses", 2, 7, "unsafe", "the same server as 127.0.0.2");
    snprintf(node, sizeof node, "[::1]:%d", servers[1].port);
    check(with(node), quick);
    if (has(2, "fail", ""))
        skip("this machine has no IPv6");
    else
        only("one server, v4 and v6", 2, 7, "unsafe", "the same server as");
    check(with(servers[1].local), quick);
    only("one server, TCP and unix socket", 2, 7, "unsafe", "the same server as");
    snprintf(node, sizeof node, "redis://%s/3", at(1));
    check(with(node), quick);
    also("one server, two databases", 2, 7, "unsafe", "the same server as");
    snprintf(node, sizeof node, "127.0.0.2:%d", servers[0].port);
    check(with(node), quick);
    only("two servers, one machine", 1, 7, "warn", "on one machine with 127.0.0.2");
    for (i = 0; i < 3; i++)
        ask(i, "ACL", "SETUSER", "default", "-info");
    check(with(servers[1].local), "");
    also("one server, twice, without permission for INFO", 2, 7, "unsafe",
         "a key that was set through another");
    check(three(), "");
    ok(status == 1 && has(7, "pass", "") && !has(7, "warn", ""),
       "three servers without permission for INFO");
    check(three(), quick);
    ok(status == 1 && has(7, "warn", "not known: no permission: +info") && !has(7, "pass", ""),
       "read-only, without permission for INFO: a warning");
    for (i = 0; i < 3; i++)
        ask(i, "ACL", "SETUSER", "default", "+info");
}

/* Sends a command on a new connection, which is returned, and does not wait for the reply. */
static int send_only(int i, const char *text)
{
    struct server other = servers[i];
    char reply[8];
    int fd;

    other.fd = -1;
    server_ask(&other, reply, sizeof reply, "PING", NULL);
    fd = other.fd;
    (void)!write(fd, text, strlen(text));
    return fd;
}

static void c09_c17_lock(void)
{
    long until = now_ms() + 20000;
    int fd;

    ask(0, "ACL", "SETUSER", "default", "-eval");
    check(three(), "");
    only("no permission for scripts", 1, 9, "fail", "NOPERM");
    ask(0, "ACL", "SETUSER", "default", "+eval");
    ask(0, "ACL", "SETUSER", "default", "-pexpire");
    check(three(), "");
    only("no permission within scripts", 1, 9, "fail", "extension: ");
    ask(0, "ACL", "SETUSER", "default", "+pexpire");
    set(0, "busy-reply-threshold", "50");
    fd = send_only(0, "EVAL \"while true do end\" 0\r\n");
    while (strncmp(ask(0, "PING", NULL, NULL, NULL), "-BUSY", 5) != 0 && now_ms() < until)
        sleep_ms(10);
    check(three(), quick);
    only("a script runs on", 1, 17, "fail", "BUSY");
    check(three(), "");
    also("a script runs on", 1, 9, "fail", "BUSY");
    ask(0, "SCRIPT", "KILL", NULL, NULL);
    while (strncmp(ask(0, "PING", NULL, NULL, NULL), "-BUSY", 5) == 0 && now_ms() < until)
        sleep_ms(10);
    close(fd);
    set(0, "busy-reply-threshold", "5000");
    check_mock((struct fault){.word = "\r\nNX\r\n", .answer = "+OK\r\n"}, "");
    only("grants a held lock", 2, 9, "unsafe", "SET NX PX of what is held");
    check_mock((struct fault){.word = "\r\nEVAL\r\n", .answer = ":1\r\n"}, "");
    only("releases with a wrong token", 2, 9, "unsafe", "release by another");
    check_mock((struct fault){.word = "\r\nINFO\r\n",
                              .answer = "-LOADING Redis is loading the dataset in memory\r\n"},
               quick);
    only("loading, INFO is refused", 1, 17, "fail", "LOADING");
    check_mock((struct fault){.info = "loading:1\r\n"}, quick);
    only("loading", 1, 17, "fail", "loading");
    check_mock((struct fault){.info = "async_loading:1\r\n"}, quick);
    only("loading while serving", 1, 17, "fail", "loading");
    check_mock(
        (struct fault){.word = "\r\nSET\r\n", .answer = "-ERR unknown command '\033[31m\a'\r\n"},
        "");
    only("control characters", 1, 9, "fail", "ERR unknown command '\\\\x1b[31m\\\\x07'");
}

static void c10_expiry(void)
{
    int tries = 0;

    do /* tries again: not found if the machine is paused during the life of the key */
        check_mock((struct fault){.word = "*2\r\n$3\r\nGET", .answer = "$-1\r\n"}, "");
    while (complaints() != 1 && ++tries < 3);
    only("keys expire early", 2, 10, "unsafe", "a key of 300 ms was gone after");
    do
        check_mock((struct fault){.word = "*2\r\n$3\r\nGET", .answer = "$1\r\nx\r\n"}, "");
    while (complaints() != 1 && ++tries < 6);
    only("keys expire late", 1, 10, "warn", "a key of 300 ms was there after");
}

static void c11_version(void)
{
    static const char unknown[] = "-ERR unknown command 'HELLO'\r\n";

    check_mock(
        (struct fault){.word = "HELLO", .answer = unknown, .info = "redis_version:5.0.14\r\n"},
        quick);
    only("5.0", 1, 11, "warn", "5.0.14");
    check_mock(
        (struct fault){.word = "HELLO", .answer = unknown, .info = "redis_version:6.0.16\r\n"},
        quick);
    only("6.0", 1, 11, "warn", "6.0.16");
    check_mock(
        (struct fault){.word = "HELLO", .answer = unknown, .info = "redis_version:6.2.0\r\n"},
        quick);
    is_int(status, 0, "6.2");
    check_mock(
        (struct fault){.word = "HELLO", .answer = unknown, .info = "redis_version:2.6.11\r\n"},
        quick);
    only("2.6.11", 1, 11, "fail", "2.6.11");
}

static void c12_c14_restart(void)
{
    long until;

    set(0, "appendfsync", "everysec");
    check(three(), "--read-only --ttl 0.1");
    only("everysec", 1, 12, "warn", "AOF everysec");
    set(0, "appendfsync", "always");
    set(0, "no-appendfsync-on-rewrite", "yes");
    check(three(), "--read-only --ttl 0.1");
    only("no-appendfsync-on-rewrite", 1, 12, "warn", "not during rewrites");
    set(0, "no-appendfsync-on-rewrite", "no");
    check(with(at(RENAMED)), "--read-only --ttl 0.1");
    only("no CONFIG", 1, 12, "warn", "not known: no such command there: config");
    check_mock((struct fault){.word = "\r\nappendfsync\r\n", .answer = "*0\r\n"}, quick);
    only("no such setting", 1, 12, "warn", "not known: it has no setting appendfsync");
    check(with(at(RENAMED)), "--read-only --strict");
    also("no CONFIG, with --strict", 2, 12, "warn", "no such command");
    server_restart(&servers[PLAIN]);
    check(with(at(PLAIN)), "--read-only --ttl 600");
    also("has just started", 2, 14, "unsafe", "s: back too early");
    check(with(at(PLAIN)), "--read-only --strict --ttl 0.1");
    also("no AOF, with --strict", 2, 12, "warn", "no AOF");
    until = now_ms() + 20000;
    while (strcmp(ask(PLAIN, "EVAL", "return redis.call('info'):match'uptime_in_seconds:(%d+)'",
                      "0", NULL),
                  "0") == 0 &&
           now_ms() < until)
        sleep_ms(50);
    check(with(at(PLAIN)), "--read-only --ttl 0.1");
    only("no AOF, started long ago", 1, 12, "warn", "no AOF: a restart loses locks");
    check(with(at(PLAIN)), "--read-only --ttl 0.1 --strict");
    only("no AOF, with --strict", 2, 12, "warn", "no AOF");
}

static void c13_disk(void)
{
    ask(ADRIFT, "BGREWRITEAOF", NULL, NULL, NULL);
    wait_for(ADRIFT, "aof_last_bgrewrite_status:err");
    check(with(at(ADRIFT)), "--read-only --ttl 0.1");
    also("AOF can't be rewritten", 1, 13, "warn", "rewrite");
    ask(ADRIFT, "BGSAVE", NULL, NULL, NULL);
    wait_for(ADRIFT, "rdb_last_bgsave_status:err");
    check(with(at(ADRIFT)), "--read-only --ttl 0.1");
    also("snapshot failed, no snapshots are configured", 1, 13, "warn", "snapshot");
    set(ADRIFT, "save", "3600 1");
    check(with(at(ADRIFT)), "--read-only --ttl 0.1");
    also("snapshot failed", 1, 13, "fail", "snapshot");
    check(with(at(ADRIFT)), "--ttl 3");
    also("writes are refused", 1, 9, "fail", "MISCONF");
    check_mock((struct fault){.info = "aof_last_write_status:err\r\n"}, quick);
    only("AOF can't be written", 1, 13, "fail", "can't be written");
}

static void c15_eviction(void)
{
    static const char *const policies[] = {"volatile-lru",    "volatile-lfu", "volatile-ttl",
                                           "volatile-random", "allkeys-lru",  "allkeys-lfu",
                                           "allkeys-random"};
    size_t i;

    set(0, "maxmemory", "1gb");
    for (i = 0; i < sizeof policies / sizeof *policies; i++) {
        set(0, "maxmemory-policy", policies[i]);
        check(three(), quick);
        only("eviction", 2, 15, "unsafe", policies[i]);
    }
    set(0, "maxmemory-policy", "noeviction");
    check(three(), quick);
    is_int(status, 0, "noeviction, with room");
    set(0, "maxmemory", "1");
    check(three(), quick);
    only("noeviction, without room", 1, 15, "warn", "new locks are refused soon");
    check(three(), "");
    also("noeviction, without room", 1, 9, "fail", "OOM");
    set(0, "maxmemory", "0");
}

static void c18_c19_clock(void)
{
    check_mock((struct fault){.ahead_ms = -2550}, quick);
    only("its clock is behind", 1, 18, "warn", "-2.5");
    check_mock((struct fault){.rate = 0.1}, "--read-only --clock-window 0.5");
    only("its clock is fast", 2, 19, "unsafe", "moved by +0.");
    check_mock((struct fault){.rate = -0.1}, "--read-only --clock-window 0.5");
    only("its clock is slow", 2, 19, "unsafe", "moved by -0.");
    check_mock((struct fault){.rate = 0.006}, "--read-only --clock-window 2");
    only("its clock is a little fast", 1, 19, "warn", "moved by +0.0");
}

static void c20_latency(void)
{
    long begin = now_ms();

    check_mock((struct fault){.delay_ms = 160}, "--clock-window 5");
    ok(now_ms() - begin < 10000, "with a slow node check ends within 10 s (%ld ms)",
       now_ms() - begin);
    ok(has(20, "pass", "SET: p99 ") && has(18, "pass", ""), "the latency is measured");
    check_mock((struct fault){.slow_ms = 700}, "--node-timeout 2");
    only("slow", 1, 20, "warn", "SET: p99 ");
    check_mock((struct fault){.slow_ms = 700}, "--node-timeout 2 --ttl 5");
    also("slow, compared with the ttl", 1, 20, "fail", "SET: p99 ");
    check_mock((struct fault){.slow_ms = 1100}, "--node-timeout 1");
    also("slow, compared with --node-timeout", 1, 20, "fail", "SET: p99 ");
    check_mock((struct fault){.word = "\r\nSET\r\n", .answer = "-ERR no\r\n"}, "");
    ok(has(20, "pass", "") && has(20, "skip", "ERR no"), "no latency of refused commands");
}

static void c21_stalls(void)
{
    check_mock((struct fault){.info = "latest_fork_usec:4500000\r\n"}, quick);
    only("a long fork", 1, 21, "warn", "the last fork took 4500 ms");
    check_mock((struct fault){.delays = 1}, quick);
    only("a slow disk", 1, 21, "warn", "writes waited");
    check_mock((struct fault){.info = "aof_delayed_fsync:7\r\n"}, quick);
    is_int(status, 0, "a disk that was slow long ago");
}

static void c22_clients(void)
{
    long until = now_ms() + 20000;

    while (now_ms() < until && /* the connection of the test is the last one */
           strstr(ask(0, "INFO", "clients", NULL, NULL), "connected_clients:1\r") == NULL)
        sleep_ms(20);
    set(0, "maxclients", "2");
    check(three(), quick);
    only("only one more client is permitted", 1, 22, "warn", "2 of 2");
    set(0, "maxclients", "1");
    check(three(), quick);
    only("too many clients", 1, 22, "fail", "max number of clients");
    set(0, "maxclients", "1000");
    check(three(), quick);
    only("a client was rejected before", 1, 22, "warn", "rejected: 1");
    ask(0, "CONFIG", "RESETSTAT", NULL, NULL);
}

static void c23_shared(void)
{
    char from[12];
    int i;

    ask(0, "FLUSHALL", NULL, NULL, NULL);
    check(three(), quick);
    only("FLUSHALL", 1, 23, "warn", "FLUSHALL or FLUSHDB since it started: 1");
    ask(0, "CONFIG", "RESETSTAT", NULL, NULL);
    ask(0, "FLUSHDB", NULL, NULL, NULL);
    check(three(), quick);
    only("FLUSHDB", 1, 23, "warn", "FLUSHALL or FLUSHDB since it started: 1");
    ask(0, "CONFIG", "RESETSTAT", NULL, NULL);
    /* in parts, because one long script may make a slow machine reply BUSY */
    for (i = 0; i < 30; i++) {
        snprintf(from, sizeof from, "%d", i * 10000);
        ask(PLAIN, "EVAL", "for i=1,10000 do redis.call('set',ARGV[1]+i,1)end", "0", from);
    }
    ask(PLAIN, "EVAL", "redis.call('select',2)redis.call('set','one',1)", "0", NULL);
    check(with(at(PLAIN)), "--read-only --ttl 0.1");
    also("many keys", 1, 23, "warn", "300001 keys");
    ask(PLAIN, "EVAL", "return #redis.call('keys','*')", "0", NULL);
    check(with(at(PLAIN)), "--read-only --ttl 0.1");
    also("slow KEYS", 1, 23, "warn", "KEYS stops it for");
}

static void c24_exposure(void)
{
    char node[200], named[200], reply[100];

    if (network == NULL) {
        skip("no network namespace: loopback addresses only");
        return;
    }
    snprintf(node, sizeof node, "10.11.12.13:%d", servers[0].port);
    check(with(node), quick);
    only("no password", 1, 24, "warn", "no password");
    set(0, "protected-mode", "yes");
    check(with(node), quick);
    only("protected mode", 1, 2, "fail", "DENIED");
    set(0, "protected-mode", "no");
    ask(0, "CONFIG", "RESETSTAT", NULL, NULL);
    set(0, "requirepass", PASSWORD);
    snprintf(node, sizeof node, "redis://:%s@10.11.12.13:%d", PASSWORD, servers[0].port);
    check(with(node), quick);
    only("user default", 1, 24, "warn", "user default");
    ask(0, "AUTH", PASSWORD, NULL, NULL);
    server_ask(&servers[0], reply, sizeof reply, "ACL", "SETUSER", "named", "on", ">" PASSWORD,
               "~*", "+@all", NULL);
    snprintf(named, sizeof named, "redis://named:%s@10.11.12.13:%d", PASSWORD, servers[0].port);
    check(with(named), quick);
    is_int(status, 0, "a named user");
    ask(0, "ACL", "SETUSER", "default", "-config");
    check(with(node), "--read-only --ttl 0.1");
    only("user default, without all permissions", 1, 12, "warn", "no permission: +config|get");
    ask(0, "ACL", "SETUSER", "default", "+config");
    snprintf(node, sizeof node, "redis://:%s@192.0.2.13:%d", PASSWORD, servers[0].port);
    check(with(node), quick);
    only("public network", 1, 24, "warn", "public network");
    set(0, "requirepass", "");
}

static void c25_idle(void)
{
    int tries = 0;

    set(0, "timeout", "10");
    check(three(), quick);
    only("idle connections are closed", 1, 25, "warn", "timeout 10");
    set(0, "timeout", "1");
    do /* tries again: more is reported if the machine is paused */
        check(three(), "--read-only --clock-window 3");
    while (complaints() != 1 && ++tries < 3);
    only("idle connections are closed soon", 1, 25, "warn", "timeout 1");
    ask(0, "PING", NULL, NULL, NULL); /* connects again: this connection was closed, too */
    set(0, "timeout", "11");
    check(three(), quick);
    is_int(status, 0, "idle connections are open for more than a third of the ttl");
    set(0, "timeout", "0");
}

/* ---- Permissions and output ----------------------------------------------------------------- */

/* Users with the permissions that the manual page names, for locks and for check. */
static void permissions(void)
{
    static const char *const users[] = {"locker", "checker"};
    char nodes[2][400] = {"", ""}, reply[100];
    int i, user;

    for (i = 0; i < 3; i++) {
        for (user = 0; user < 2; user++)
            server_ask(&servers[i], reply, sizeof reply, "ACL", "SETUSER", users[user], "reset",
                       "on", ">" PASSWORD, "~redlock:*", "+set", "+get", "+del", "+pexpire",
                       "+pttl", "+eval", NULL);
        server_ask(&servers[i], reply, sizeof reply, "ACL", "SETUSER", users[1], "+info", "+time",
                   "+config|get", NULL);
        for (user = 0; user < 2; user++)
            snprintf(nodes[user] + strlen(nodes[user]), sizeof nodes[user] - strlen(nodes[user]),
                     "redis://%s:%s@%s ", users[user], PASSWORD, at(i));
    }
    check(nodes[0], "--clock-window 0.1");
    ok(status == 1 && complaints() == 6 && has(15, "warn", "not known: no permission: +info") &&
           has(12, "warn", "not known: no permission: +info") &&
           has(18, "skip", "no permission: +time") && has(9, "pass", "") &&
           has(6, "pass", "master"),
       "permissions for locks: persistence and eviction are not known, other checks are skipped");
    ok(strstr(output, "\"skipped\":33}") != NULL, "JSON: skipped checks are counted");
    run(nodes[0], "--clock-window 0.1");
    ok(status == 1 && strstr(output, "usable, 33 checks skipped\n") != NULL,
       "text: skipped checks are counted");
    run(nodes[0], "--clock-window 0.1 --nagios");
    ok(status == 1 && strstr(output, "usable, 33 checks skipped; ") != NULL &&
           strstr(output, " skipped=33 ") != NULL && strstr(output, "eviction: not known") != NULL,
       "Nagios: skipped checks are counted");
    run(nodes[0], "--clock-window 0.1 --prometheus");
    ok(status == 1 && strstr(output, "\nredlock_checks_skipped 33\n") != NULL,
       "Prometheus: skipped checks are counted");
    check(nodes[1], "--clock-window 0.1");
    ok(status == 0 && count("\"result\":\"pass\"") == 1 + 3 * 24,
       "permissions for check: nothing is skipped");
    if (status != 0)
        show();
    check(three(), "--prefix ''");
    is_int(status, 0, "another prefix");
    check(nodes[0], "--prefix 'other:'");
    also("a prefix without permission", 2, 9, "fail", "NOPERM");
}

static void secrets(void)
{
    check_mock((struct fault){0}, quick);
    check(with("redis://x:" PASSWORD "@127.0.1.1:1"), quick);
    ok(has(2, "fail", "refused") && strstr(output, "127.0.1.1:1") != NULL,
       "a password in an address");
}

/* A server that does not know AUTH repeats the command, with the password, in its error. */
static void echo(void)
{
    struct fault fault = {
        .word = "\r\nAUTH\r\n",
        .answer = "-ERR unknown command 'AUTH', with args beginning with: '" PASSWORD "', \r\n"};
    char node[100];

    snprintf(node, sizeof node, "redis://:%s@%s", PASSWORD, start_mock(&fault));
    check(with(node), quick);
    kill(mock_pid, SIGKILL);
    waitpid(mock_pid, NULL, 0);
    only("a server without AUTH", 1, 3, "fail", "ERR unknown command 'AUTH'");
}

/* Whether every line of the output matches the pattern. */
static int all_lines_are(const char *pattern)
{
    char copy[sizeof output], *line;
    regex_t regex;
    int good = 1;

    if (regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB) != 0)
        return 0;
    strcpy(copy, output);
    for (line = strtok(copy, "\n"); line != NULL; line = strtok(NULL, "\n"))
        if (regexec(&regex, line, 0, NULL, 0) != 0) {
            fprintf(stderr, "# %s\n", line);
            good = 0;
        }
    regfree(&regex);
    return good;
}

static void forms(void)
{
    struct fault fault = {.word = "\r\nSET\r\n", .answer = "-ERR it's 5|6\r\n"};
    char nodes[300], command[300];

    run(three(), "--clock-window 0");
    ok(status == 0 &&
           strncmp(output, "REDLOCK OK  3 nodes, quorum 2, 3 usable, 3 checks skipped\n", 58) ==
               0 &&
           count("\n") == 4,
       "text: one line for all nodes, and one for each node");
    run(three(), "--clock-window 0 -v");
    ok(count("  PASS ") == 1 + 3 * 23 && count("  SKIP ") == 3,
       "-v: also the checks that pass or are skipped");
    run(three(), "--clock-window 0 -q");
    is_int(count("\n"), 1, "-q: one line");
    snprintf(nodes, sizeof nodes, "%s,%s,127.0.1.1:1", at(0), at(1));
    run(nodes, "--clock-window 0");
    ok(status == 1 && strncmp(output, "REDLOCK WARNING  3 nodes, quorum 2, 2 usable, ", 46) == 0 &&
           strstr(output, "  FAIL     2 reachable") != NULL &&
           strstr(output, "\n          why: a node that does not") != NULL &&
           strstr(output, "\n          fix: see that it runs") != NULL,
       "text: each fault has a reason and a fix");
    run(nodes, "--clock-window 0 --nagios");
    ok(status == 1 && count("\n") == 1 &&
           all_lines_are("^REDLOCK WARNING - 2 of 3 nodes usable, [0-9]+ checks skipped; "
                         "127.0.1.1:1 reachable: [^|']+ [|] usable=2;3:;2:;0;3 skipped=[0-9]+"
                         "( '[^'=]+'=-?[0-9.]+(ms|s)(;-?[0-9.]*:?[0-9.]*)*)+$"),
       "nagios: one line with performance data");
    run(with(start_mock(&fault)), "--clock-window 0 --nagios");
    kill(mock_pid, SIGKILL);
    waitpid(mock_pid, NULL, 0);
    ok(strstr(output, "ERR it?s 5?6") != NULL && count("|") == 1,
       "nagios: a server's error cannot begin the performance data");
    snprintf(nodes, sizeof nodes, "%s,%s,%s", at(0), at(1), at(1));
    run(nodes, "--clock-window 0 --prometheus");
    ok(status == 2 && count("\nredlock_node_up{") == 3 &&
           count("\nredlock_node_rtt_seconds{") == 6 &&
           count("\nredlock_node_clock_offset_seconds{") == 3 &&
           strstr(output, "\nredlock_status 2\n") != NULL &&
           all_lines_are(
               "^(# HELP [a-z_]+ .+|# TYPE [a-z_]+ gauge|"
               "redlock_[a-z_]+([{][a-z]+=\"[^\"]*\"(,[a-z]+=\"[^\"]*\")*[}])? -?[0-9.]+)$"),
       "prometheus: the text format");
    snprintf(command, sizeof command, "perl -MJSON::PP -ne 'decode_json($_)' %s", record);
    ok(system(command) == 0, "each line of all JSON output is valid");
}

static void usage(void)
{
    run(three(), "--no-such-option");
    is_int(status, 3, "an unknown option");
    run(three(), "a-word");
    is_int(status, 3, "an argument without an option");
    run(three(), "--json --nagios");
    is_int(status, 3, "two output formats");
    run("", "");
    is_int(status, 3, "no nodes");
    run("redis://x@y", "");
    is_int(status, 3, "an invalid address");
    run(three(), "--ttl soon");
    is_int(status, 3, "an invalid value");
    run(three(), "--ttl 0");
    is_int(status, 3, "a ttl that no lock can have");
    run(three(), "--auth-file /no/such/file");
    is_int(status, 3, "a missing file");
}

int main(int words, char **word)
{
    static void (*const parts[])(void) = {healthy,
                                          c01_count,
                                          c02_reach,
                                          c03_credentials,
                                          c04_database,
                                          c05_kind,
                                          c06_c08_c16_replicas,
                                          c07_distinct,
                                          c09_c17_lock,
                                          c10_expiry,
                                          c11_version,
                                          c12_c14_restart,
                                          c13_disk,
                                          c15_eviction,
                                          c18_c19_clock,
                                          c20_latency,
                                          c21_stalls,
                                          c22_clients,
                                          c23_shared,
                                          c24_exposure,
                                          c25_idle,
                                          permissions,
                                          secrets,
                                          echo,
                                          forms,
                                          usage};
    size_t i;

    program = words > 1 ? word[1] : "build/redlock";
    network = getenv("REDLOCK_OWN_NETWORK");
    signal(SIGPIPE, SIG_IGN);
    if (access("/dev/shm", W_OK) == 0)
        setenv("TMPDIR", "/dev/shm", 0); /* a busy disk would be reported as slow */
    start_all();
    name_in(record, "record");
    for (i = 0; i < sizeof parts / sizeof *parts; i++) {
        long start = now_ms();
        parts[i]();
        printf("# part %d: %ld ms\n", (int)i, now_ms() - start);
    }
    return done_testing();
}
