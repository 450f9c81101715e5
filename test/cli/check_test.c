/* check_test.c PROGRAM - `redlock check` on real servers. The test makes one thing at a time wrong on a
   server. The program must report it under the name of its check, with the expected verdict and exit
   status, and nothing else. Faults that a real server cannot produce come from a mock server.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "servers.h"
#include "tap.h"

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
static char record[200]; /* path of a file with all JSON output */
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

/* The same with --json, and adds the output to `record`. */
static void check(const char *nodes, const char *options)
{
    char all[500];
    FILE *file;

    snprintf(all, sizeof all, "--json %s", options);
    run(nodes, all);
    file = fopen(record, "a");
    if (file != NULL) {
        fputs(output, file);
        fclose(file);
    }
}

/* Whether the output has this check with this verdict and a value that contains `value`. */
static int has(const char *name, const char *verdict, const char *value)
{
    char start[120];
    const char *at, *found, *end;

    snprintf(start, sizeof start, "\"check\":\"%s\",\"result\":\"%s\",\"value\":", name, verdict);
    for (at = output; (at = strstr(at, start)) != NULL; at++) {
        found = strstr(at, value);
        end = strstr(at, ",\"on\":");
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

/* Prints the verdicts other than pass, after a test has failed. */
static void show(void)
{
    const char *line = output, *end;

    for (; *line != '\0'; line = *end != '\0' ? end + 1 : end) {
        end = line + strcspn(line, "\n");
        if (strstr(line, "result") == NULL || strstr(line, "result") > end ||
            strncmp(strstr(line, "\"result"), "\"result\":\"pass", 14) != 0)
            fprintf(stderr, "# %.*s\n", (int)(end - line), line);
    }
}

/* The last run has reported this and nothing else, and its exit status is `expected`. */
static void only(const char *name, int expected, const char *id, const char *verdict,
                 const char *value)
{
    if (!ok(status == expected && has(id, verdict, value) && complaints() == 1, "%s: %s, %s", name,
            id, verdict)) {
        fprintf(stderr, "# status %d, %d complaints\n", status, complaints());
        show();
    }
}

/* The last run has reported this, perhaps with more, and its exit status is `expected`. */
static void also(const char *name, int expected, const char *id, const char *verdict,
                 const char *value)
{
    if (!ok(status == expected && has(id, verdict, value), "%s: %s, %s", name, id, verdict)) {
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

/* Waits until the server has run for so long, for 20 s at most. */
static void until_up(int i, long seconds)
{
    long until = now_ms() + 20000;

    while (strtol(ask(i, "EVAL", "return redis.call('info'):match'uptime_in_seconds:(%d+)'", "0",
                      NULL),
                  NULL, 10) < seconds &&
           now_ms() < until)
        sleep_ms(50);
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
        "127.0.0.4",    "127.0.0.5", "127.0.0.6",     "-::1",      NULL};
    static char file[200], folder[200];
    int i;

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
    long ahead_ms; /* its clock is ahead by this */
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
    static int sets, plain_sets, evals;
    char text[2000];
    const char *reply = text;

    sleep_ms(fault->delay_ms);
    if (fault->word != NULL && strstr(question, fault->word) != NULL) {
        if (fault->answer == NULL)
            _exit(0);
        reply = fault->answer;
    } else if (strstr(question, "\r\nINFO\r\n") != NULL) {
        size_t size = strlen(fault->info != NULL ? fault->info : "") + strlen(info);
        snprintf(text, sizeof text, "$%zu\r\n%s%s\r\n", size,
                 fault->info != NULL ? fault->info : "", info);
    } else if (strstr(question, "\r\nTIME\r\n") != NULL) {
        double now = wall() + (double)fault->ahead_ms / 1000;
        snprintf(text, sizeof text, "*2\r\n$10\r\n%010.0f\r\n$6\r\n%06.0f\r\n", (double)(long)now,
                 (double)(long)((now - (double)(long)now) * 1e6));
    } else if (strstr(question, "\r\nCONFIG\r\n") != NULL) {
        int fsync = strstr(question, "\r\nappendfsync\r\n") != NULL,
            no = strstr(question, "\r\nno-") != NULL;
        snprintf(text, sizeof text, "*2\r\n+name\r\n+%s\r\n", fsync ? "always" : no ? "no" : "0");
    } else if (strstr(question, "\r\nNX\r\n") != NULL) {
        reply = ++sets == 2 ? "$-1\r\n" : "+OK\r\n";
    } else if (strstr(question, "\r\nSET\r\n") != NULL) {
        if (++plain_sets % 50 == 0)
            sleep_ms(fault->slow_ms);
        reply = "+OK\r\n";
    } else if (strstr(question, "\r\nEVAL\r\n") != NULL) {
        reply = ++evals == 2 ? ":0\r\n" : ":1\r\n"; /* the first release has a wrong token */
    } else {
        reply = ":1\r\n";
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

/* Waits until the connection of this test is the only one. */
static void until_one_client(int i)
{
    long until = now_ms() + 20000;

    while (now_ms() < until &&
           strstr(ask(i, "INFO", "clients", NULL, NULL), "connected_clients:1\r") == NULL)
        sleep_ms(20);
}

/* ---- The checks ----------------------------------------------------------------------------- */

static void healthy(void)
{
    char five[300];
    int i;

    snprintf(five, sizeof five, "%s,%s,%s,%s,%s", at(0), at(1), at(2), at(3), at(4));
    for (i = 0; i < 3; i++) {
        check(five, "");
        ok(status == 0 && complaints() == 0 && count("\"result\":\"unknown\"") == 0 &&
               strstr(output, "\"usable\":5}") != NULL && count("\"p99_ms\":") == 5,
           "five healthy servers: all checks pass");
        if (status != 0)
            show();
    }
    for (i = 0; i < HEALTHY; i++)
        ok(becomes_empty(i), "no key is left");
}

static void node_count(void)
{
    char nodes[400] = "";
    int i;

    check(at(0), "");
    only("one node", 1, "node count", "warn", "1: 0 may fail");
    snprintf(nodes, sizeof nodes, "%s,%s", at(0), at(1));
    check(nodes, "");
    only("two nodes", 1, "node count", "warn", "2: 0 may fail");
    nodes[0] = '\0';
    for (i = 1; i <= 11; i++)
        snprintf(nodes + strlen(nodes), sizeof nodes - strlen(nodes), "127.0.1.%d:1 ", i);
    check(nodes, "");
    also("eleven nodes", 2, "node count", "warn", "11: 5 may fail; each lock asks all of them");
    is_int(count("\"check\":\"reachable\""), 1, "a finding of eleven nodes is printed once");
}

static void reach(void)
{
    char nodes[200];
    long begin;

    check(with("127.0.1.1:1"), "");
    only("connection refused", 1, "reachable", "fail", "refused");
    ok(has("eviction", "unknown", "not reached"), "its other checks are not known");
    snprintf(nodes, sizeof nodes, "%s,127.0.1.1:1,127.0.1.2:1", at(0));
    check(nodes, "");
    only("a majority is unreachable", 2, "reachable", "fail", "refused");
    check(with("a..b:1"), "");
    only("an invalid name", 1, "reachable", "fail", "cannot resolve the name");
    server_pause(&servers[0]);
    begin = now_ms();
    check(three(), "--node-timeout 1");
    server_resume(&servers[0]);
    only("hangs", 1, "reachable", "fail", "no answer within ");
    ok(now_ms() - begin < 20000, "check does not hang with it (%ld ms)", now_ms() - begin);
    check_mock(
        (struct fault){.first_bytes = "-DENIED Redis is running in protected mode because\r\n"},
        "");
    only("protected mode", 1, "reachable", "fail", "DENIED Redis is running in protected mode");
    check_mock((struct fault){.first_bytes = "HTTP/1.1 400 Bad Request\r\n\r\n"}, "");
    only("not Redis", 1, "reachable", "fail", "does not speak");
    check_mock((struct fault){.word = "INFO", .answer = ""}, "--node-timeout 1");
    only("hangs at INFO", 1, "reachable", "fail", "no answer within ");
    check_mock((struct fault){.word = "INFO"}, "");
    only("closes the connection at INFO", 1, "reachable", "fail", "closed by the server");
    until_one_client(0);
    set(0, "maxclients", "1");
    check(three(), "");
    set(0, "maxclients", "1000");
    only("too many clients", 1, "reachable", "fail", "max number of clients");
    ok(strstr(output, "a larger maxclients") != NULL, "the advice belongs to this error");
}

static void credentials(void)
{
    char node[200];

    set(0, "requirepass", PASSWORD "2");
    check(three(), "");
    only("no password", 1, "reachable", "fail", "NOAUTH");
    snprintf(node, sizeof node, "redis://:%s@%s", PASSWORD, at(0));
    check(with(node), "");
    only("wrong password", 1, "reachable", "fail", "WRONGPASS");
    ok(strstr(output, "user and password in the address") != NULL,
       "the advice belongs to this error");
    snprintf(node, sizeof node, "redis://:PASS@%s", at(0));
    check(with(node), "");
    only("a password that is a part of the error", 1, "reachable", "fail", "refuses AUTH");
    ok(strstr(output, "user and password in the address") != NULL,
       "the advice is the same without the error");
    ok(strstr(output, "or does not let the client in, has no vote") != NULL,
       "so does the reason: the node has answered");
    snprintf(node, sizeof node, "redis://:%s2@%s", PASSWORD, at(0));
    check(with(node), "");
    is_int(status, 0, "right password");
    ask(0, "AUTH", PASSWORD "2", NULL, NULL);
    set(0, "requirepass", "");
    check(with(node), "");
    only("a password that the server does not need", 1, "reachable", "warn",
         "the server wants none");
    ok(strstr(output, "leave the password out") != NULL, "the advice belongs to this finding");
    check_mock((struct fault){0}, "");
    is_int(status, 0, "the mock server without a fault");
    snprintf(node, sizeof node, "redis://%s/99", at(0));
    check(with(node), "");
    only("no such database", 1, "reachable", "fail", "ERR DB index is out of range");
}

static void kind(void)
{
    check(with(at(CLUSTER)), "--ttl 0.1");
    also("cluster", 2, "server kind", "unsafe", "cluster");
    also("cluster without slots", 2, "lock commands", "fail", "CLUSTERDOWN");
    check(with(at(SENTINEL)), "--ttl 0.1");
    also("sentinel", 2, "server kind", "unsafe", "sentinel");
}

static void replicas(void)
{
    char port[12], nodes[200];

    snprintf(port, sizeof port, "%d", servers[PLAIN].port);
    set(PLAIN, "repl-diskless-sync-delay", "0");
    ask(OTHER, "REPLICAOF", "127.0.0.1", port, NULL);
    wait_for(OTHER, "master_link_status:up");
    check(with(at(OTHER)), "--ttl 0.1");
    also("replica", 1, "server kind", "fail", "slave");
    also("replica", 1, "lock commands", "fail", "READONLY");
    set(OTHER, "replica-read-only", "no");
    check(with(at(OTHER)), "--ttl 0.1");
    also("replica that accepts writes", 2, "server kind", "unsafe", "slave");
    snprintf(nodes, sizeof nodes, "%s,%s,%s", at(0), at(PLAIN), at(OTHER));
    check(nodes, "--ttl 0.1");
    also("master and its replica", 2, "failover pair", "unsafe", "one data set with 127.0.0.6");
    also("master of a replica", 2, "replicas", "warn", "1: only good");
    wait_for(PLAIN, "state=online"); /* FAILOVER needs a connected replica */
    server_pause(&servers[OTHER]);
    ask(PLAIN, "SET", "something", "that is not there yet", NULL);
    ask(PLAIN, "FAILOVER", "TIMEOUT", "30000", NULL);
    check(with(at(PLAIN)), "--node-timeout 1");
    also("failover", 2, "replicas", "unsafe", "waiting-for-sync");
    ask(PLAIN, "FAILOVER", "ABORT", NULL, NULL);
    server_resume(&servers[OTHER]);
    wait_for(PLAIN, "state=online");
    ask(OTHER, "REPLICAOF", "NO", "ONE", NULL);
    check(nodes, "--ttl 0.1");
    also("promoted replica", 1, "failover pair", "warn", "was a replica of 127.0.0.6");
    ok(!has("failover pair", "unsafe", "") && !has("server kind", "fail", ""),
       "it is a master now");
    set(0, "min-replicas-to-write", "1");
    check(three(), "");
    only("replicas are missing", 1, "lock commands", "fail", "NOREPLICAS");
    set(0, "min-replicas-to-write", "0");
}

static void distinct(void)
{
    char node[300];
    int i;

    check(with(at(1)), "");
    only("one address twice", 2, "distinct servers", "unsafe", "the same server as 127.0.0.2");
    snprintf(node, sizeof node, "127.0.1.1:1,%s,127.0.1.1:1", at(1));
    check(node, "");
    also("one unreachable address twice", 2, "distinct servers", "unsafe",
         "the same server as 127.0.1.1:1");
    snprintf(node, sizeof node, "127.0.0.1:%d", servers[1].port);
    check(with(node), "");
    only("one server, two addresses", 2, "distinct servers", "unsafe",
         "the same server as 127.0.0.2");
    snprintf(node, sizeof node, "[::1]:%d", servers[1].port);
    check(with(node), "");
    if (has("reachable", "fail", ""))
        skip("this machine has no IPv6");
    else
        only("one server, v4 and v6", 2, "distinct servers", "unsafe", "the same server as");
    check(with(servers[1].local), "");
    only("one server, TCP and unix socket", 2, "distinct servers", "unsafe", "the same server as");
    snprintf(node, sizeof node, "redis://%s/3", at(1));
    check(with(node), "");
    only("one server, two databases", 2, "distinct servers", "unsafe", "the same server as");
    snprintf(node, sizeof node, "127.0.0.2:%d", servers[0].port);
    check(with(node), "");
    only("two servers, one machine", 1, "distinct servers", "warn",
         "on one machine with 127.0.0.2");
    for (i = 0; i < 3; i++)
        ask(i, "ACL", "SETUSER", "default", "-info");
    check(three(), "");
    ok(status == 1 && has("distinct servers", "warn", "not known: INFO: NOPERM") &&
           has("eviction", "warn", "not known: INFO: NOPERM") && has("lock commands", "pass", "") &&
           complaints() == 4,
       "without permission for INFO: a warning for what may stay unnoticed");
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

static void lock_commands(void)
{
    long until = now_ms() + 20000;
    int fd;

    ask(0, "ACL", "SETUSER", "default", "-eval");
    check(three(), "");
    only("no permission for scripts", 1, "lock commands", "fail", "extension: NOPERM");
    ok(strstr(output, "permit +set +get") != NULL, "the advice belongs to this error");
    ask(0, "ACL", "SETUSER", "default", "+eval");
    ask(0, "ACL", "SETUSER", "default", "-pexpire");
    check(three(), "");
    only("no permission within scripts", 1, "lock commands", "fail", "extension: ");
    ask(0, "ACL", "SETUSER", "default", "+pexpire");
    set(0, "busy-reply-threshold", "50");
    fd = send_only(0, "EVAL \"while true do end\" 0\r\n");
    while (strncmp(ask(0, "PING", NULL, NULL, NULL), "-BUSY", 5) != 0 && now_ms() < until)
        sleep_ms(10);
    check(three(), "");
    also("a script runs on", 1, "lock commands", "fail", "BUSY");
    ask(0, "SCRIPT", "KILL", NULL, NULL);
    while (strncmp(ask(0, "PING", NULL, NULL, NULL), "-BUSY", 5) == 0 && now_ms() < until)
        sleep_ms(10);
    close(fd);
    set(0, "busy-reply-threshold", "5000");
    check_mock((struct fault){.word = "\r\nNX\r\n", .answer = "+OK\r\n"}, "");
    only("grants a held lock", 2, "lock commands", "unsafe", "SET NX PX of what is held");
    check_mock((struct fault){.word = "\r\nEVAL\r\n", .answer = ":1\r\n"}, "");
    only("releases with a wrong token", 2, "lock commands", "unsafe", "release by another");
    check_mock((struct fault){.word = "\r\nINFO\r\n",
                              .answer = "-LOADING Redis is loading the dataset in memory\r\n"},
               "");
    also("loading, INFO is refused", 1, "eviction", "warn", "LOADING");
    check_mock(
        (struct fault){.word = "\r\nSET\r\n", .answer = "-ERR unknown command '\033[31m\a'\r\n"},
        "");
    only("control characters", 1, "lock commands", "fail",
         "ERR unknown command '\\u001b[31m\\u0007'");
    ok(has("latency", "unknown", "not measured"), "no latency of refused commands");
}

static void restart(void)
{
    set(0, "appendfsync", "everysec");
    check(three(), "--ttl 0.1");
    only("everysec", 1, "survives restart", "warn", "appendfsync is not always");
    set(0, "appendfsync", "always");
    set(0, "no-appendfsync-on-rewrite", "yes");
    check(three(), "--ttl 0.1");
    only("no-appendfsync-on-rewrite", 1, "survives restart", "warn", "not during rewrites");
    set(0, "no-appendfsync-on-rewrite", "no");
    check(with(at(RENAMED)), "--ttl 0.1");
    only("no CONFIG", 1, "survives restart", "warn", "not known: CONFIG GET is not permitted");
    server_restart(&servers[PLAIN]);
    check(with(at(PLAIN)), "--ttl 600");
    also("has just started", 2, "recent restart", "unsafe", "s: back too early");
    ok(strstr(output, "longest-ttl in the configuration of all programs") != NULL,
       "the advice names longest-ttl");
    until_up(1, 15);
    until_up(2, 15); /* longer than longest-ttl, so they have a vote */
    server_restart(&servers[PLAIN]);
    setenv("REDLOCK_LONGEST_TTL", "10s", 1);
    check(with(at(PLAIN)), "");
    only("has just started, with longest-ttl", 1, "recent restart", "fail", "no vote for ");
    ok(strstr(output, "\"fix\":\"wait\"") != NULL, "the advice is another one then");
    server_restart(&servers[0]);
    check(three(), "");
    only("appendfsync always does not help then", 1, "recent restart", "fail", "no vote for ");
    check_mock((struct fault){.info = "uptime_in_seconds:11\r\n"}, "");
    only("the library waits a little longer", 1, "recent restart", "fail", "no vote for 2 s more");
    check_mock((struct fault){.info = "uptime_in_seconds:13\r\n"}, "");
    is_int(status, 0, "and no longer than that");
    unsetenv("REDLOCK_LONGEST_TTL");
    check(three(), "");
    ok(status == 0 && has("recent restart", "pass", "it forgets nothing"),
       "without longest-ttl it does");
    until_up(PLAIN, 4);
    check(with(at(PLAIN)), "--ttl 0.1");
    only("no AOF, started long ago", 1, "survives restart", "warn",
         "no AOF: a restart loses locks");
    setenv("REDLOCK_LONGEST_TTL", "100ms", 1);
    check(with(at(PLAIN)), "");
    ok(status == 0 && has("survives restart", "pass", "longest-ttl keeps it out"),
       "no AOF, with longest-ttl");
    unsetenv("REDLOCK_LONGEST_TTL");
    ask(ADRIFT, "BGSAVE", NULL, NULL, NULL);
    wait_for(ADRIFT, "rdb_last_bgsave_status:err");
    set(ADRIFT, "save", "3600 1");
    check(with(at(ADRIFT)), "--ttl 0.1");
    also("writes are refused", 1, "lock commands", "fail", "MISCONF");
}

static void eviction(void)
{
    static const char *const policies[] = {"volatile-lru",    "volatile-lfu", "volatile-ttl",
                                           "volatile-random", "allkeys-lru",  "allkeys-lfu",
                                           "allkeys-random"};
    size_t i;

    set(0, "maxmemory", "1gb");
    for (i = 0; i < sizeof policies / sizeof *policies; i++) {
        set(0, "maxmemory-policy", policies[i]);
        check(three(), "");
        only("eviction", 2, "eviction", "unsafe", policies[i]);
    }
    set(0, "maxmemory-policy", "noeviction");
    check(three(), "");
    is_int(status, 0, "noeviction, with room");
    set(0, "maxmemory", "1");
    check(three(), "");
    also("noeviction, without room", 1, "eviction", "warn", "noeviction, and full");
    also("noeviction, without room", 1, "lock commands", "fail", "OOM");
    ok(strstr(output, "a larger maxmemory") != NULL, "the advice belongs to this error");
    set(0, "maxmemory", "0");
}

static void clock_and_latency(void)
{
    long begin = now_ms();

    check_mock((struct fault){.ahead_ms = -2550}, "");
    only("its clock is behind", 1, "clock", "warn", "-2.");
    setenv("REDLOCK_LONGEST_TTL", "10s", 1);
    check_mock((struct fault){.ahead_ms = -2550}, "");
    only("so its uptime will be too long", 1, "clock", "warn",
         "longest-ttl may let it vote too early");
    check_mock((struct fault){.ahead_ms = 3000}, "");
    ok(has("clock", "warn", "clock here") && strstr(output, "too early") == NULL,
       "but not if its clock is ahead");
    unsetenv("REDLOCK_LONGEST_TTL");
    check_mock((struct fault){.ahead_ms = 3000}, "");
    only("its clock is ahead", 1, "clock", "warn", "+");
    begin = now_ms();
    check_mock((struct fault){.delay_ms = 160}, "");
    ok(now_ms() - begin < 10000, "with a slow node check ends within 10 s (%ld ms)",
       now_ms() - begin);
    ok(has("latency", "pass", "p50 16") && has("clock", "pass", ""), "the latency is measured");
    check_mock((struct fault){.slow_ms = 700}, "--node-timeout 2");
    only("slow", 1, "latency", "warn", "p50 ");
    check_mock((struct fault){.slow_ms = 1100}, "--node-timeout 1");
    only("slow, compared with --node-timeout", 1, "latency", "fail", "p50 ");
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
    check(nodes[0], "");
    ok(status == 1 && complaints() == 4 && has("eviction", "warn", "not known: INFO: NOPERM") &&
           has("survives restart", "warn", "not known: INFO: NOPERM") &&
           has("clock", "unknown", "not known: TIME: NOPERM") && has("lock commands", "pass", ""),
       "permissions for locks: persistence and eviction are not known");
    check(nodes[1], "");
    ok(status == 0 && complaints() == 0 && count("\"result\":\"unknown\"") == 0,
       "permissions for check: all is known");
    if (status != 0)
        show();
    check(three(), "--prefix ''");
    is_int(status, 0, "another prefix");
    check(nodes[0], "--prefix 'other:'");
    also("a prefix without permission", 2, "lock commands", "fail", "NOPERM");
}

static void secrets(void)
{
    struct fault fault = {
        .word = "\r\nAUTH\r\n",
        .answer = "-ERR unknown command 'AUTH', with args beginning with: '" PASSWORD "', \r\n"};
    char node[100];

    check(with("redis://x:" PASSWORD "@127.0.1.1:1"), "");
    ok(has("reachable", "fail", "refused") && strstr(output, "127.0.1.1:1") != NULL,
       "a password in an address");
    snprintf(node, sizeof node, "redis://:%s@%s", PASSWORD, start_mock(&fault));
    check(with(node), ""); /* it repeats the command, with the password, in its error */
    kill(mock_pid, SIGKILL);
    waitpid(mock_pid, NULL, 0);
    only("a server without AUTH", 1, "reachable", "fail", "ERR unknown command 'AUTH'");
}

static void forms(void)
{
    char nodes[300], command[300];

    run(three(), "");
    ok(status == 0 && strncmp(output, "REDLOCK OK - 3 of 3 nodes usable, quorum 2\n", 43) == 0 &&
           count("\nnode    127.0.0.") == 3 && count(" p50 ") == 3 && count("\n") == 4,
       "text: one line for all nodes, and one for each node");
    run(three(), "-v");
    ok(count("\npass    ") >= 12 && count("why: ") == 0, "-v: also the checks that pass");
    run(three(), "-q");
    is_int(count("\n"), 1, "-q: one line");
    snprintf(nodes, sizeof nodes, "%s,127.0.1.1:1,127.0.1.2:1", at(0));
    run(nodes, "");
    ok(status == 2 &&
           strncmp(output, "REDLOCK CRITICAL - 1 of 3 nodes usable, quorum 2: reachable\n", 60) ==
               0 &&
           count("\nfail    reachable         connect: Connection refused  "
                 "[127.0.1.1:1 127.0.1.2:1]\n") == 1 &&
           count("        why: ") == 1 && count("        fix: ") == 1,
       "text: a fault of two nodes is printed once, with a reason and a fix");
    snprintf(nodes, sizeof nodes, "%s,127.0.1.1:1", at(0));
    run(nodes, "-q");
    ok(strcmp(output,
              "REDLOCK CRITICAL - 1 of 2 nodes usable, quorum 2: node count, reachable\n") == 0,
       "-q: the line names the findings, each once: %s", output);
    snprintf(command, sizeof command, "perl -MJSON::PP -ne 'decode_json($_)' %s", record);
    ok(system(command) == 0, "each line of all JSON output is valid");
}

static void usage(void)
{
    run(three(), "--no-such-option");
    is_int(status, 3, "an unknown option");
    run(three(), "--nagios");
    ok(status == 3 && strstr(output, "--nagios is gone: ") != NULL, "an option that is gone");
    run(three(), "a-word");
    is_int(status, 3, "an argument without an option");
    run("", "");
    is_int(status, 3, "no nodes");
    run("redis://x@y", "");
    is_int(status, 3, "an invalid address");
    run(three(), "--ttl soon");
    is_int(status, 3, "an invalid value");
    run(three(), "--ttl 0");
    is_int(status, 3, "a ttl that no lock can have");
    run(three(), "--config /no/such/file");
    is_int(status, 3, "a missing file");
}

int main(int words, char **word)
{
    static void (*const parts[])(void) = {
        healthy,           node_count,  reach,         credentials, kind,
        replicas,          distinct,    lock_commands, restart,     eviction,
        clock_and_latency, permissions, secrets,       forms,       usage};
    size_t i;

    program = words > 1 ? word[1] : "build/redlock";
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
