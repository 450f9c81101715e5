/* cli_test.c - redlock(1) from its users' view: the program that REDLOCK names (default build/redlock) on real servers.
   cli_test SCENARIO runs one scenario; without an argument it lists all, for `prove -j`. It checks exactly that some
   things never happen: two holders at once, a key or a process left behind, a password shown. Time limits are
   generous, because the machine may be paused for seconds.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* pipe2, prctl */
#include "program.h"
#include "proxy.h"
#include "servers.h"
#include "tap.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <regex.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

enum { NODES = 5 };

/* Every password here contains it, and no program may ever print it. */
#define SECRET "hunter2"

static struct server servers[NODES];
static unsigned node_count;
static const char *self, *program;
static char reply[4096];

static long long now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (long long)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* ---- Nodes ---- */

/* A list of addresses, each with the text `before`. Valid until the next call. */
static const char *list_of(unsigned count, const char *before)
{
    static char list[1024];
    unsigned i;

    list[0] = '\0';
    for (i = 0; i < count; i++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s%s", i > 0 ? "," : "",
                 before, servers[i].address);
    return list;
}

/* Starts the servers, and sets REDLOCK_NODES for the programs. */
static void nodes(unsigned count)
{
    node_count = count;
    servers_start(servers, count, NULL);
    setenv("REDLOCK_NODES", list_of(count, ""), 1);
}

/* A proxy in front of each of three nodes; REDLOCK_NODES names the proxies. */
static struct proxy *proxies;

static pid_t nodes_behind_proxies(void)
{
    char list[300];
    pid_t proxy;
    int i;

    nodes(3);
    proxies =
        mmap(NULL, 3 * sizeof *proxies, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (i = 0; i < 3; i++)
        proxies[i].to = servers[i].port;
    proxy = proxies_start(proxies, 3);
    snprintf(list, sizeof list, "%s,%s,%s", proxies[0].address, proxies[1].address,
             proxies[2].address);
    setenv("REDLOCK_NODES", list, 1);
    return proxy;
}

/* From now on each byte is so long under way to the nodes, and back. */
static void set_distance(int ms)
{
    int i;

    for (i = 0; i < 3; i++) {
        proxies[i].ms = ms;
        proxies[i].mode = PROXY_DELAY;
    }
}

#define ask(n, ...) server_ask(&servers[n], reply, sizeof reply, __VA_ARGS__, NULL)
#define ask_all(...)                                                                               \
    do {                                                                                           \
        unsigned ask_n;                                                                            \
        for (ask_n = 0; ask_n < node_count; ask_n++)                                               \
            ask(ask_n, __VA_ARGS__);                                                               \
    } while (0)

/* On how many nodes this key has this value. */
static int with_value(const char *key, const char *value)
{
    unsigned i;
    int count = 0;

    for (i = 0; i < node_count; i++)
        count += strcmp(ask(i, "GET", key), value) == 0;
    return count;
}

static int with_key(const char *key)
{
    unsigned i;
    int count = 0;

    for (i = 0; i < node_count; i++)
        count += strcmp(ask(i, "EXISTS", key), "1") == 0;
    return count;
}

/* Waits, because a slow node may still get the key. */
static int on_most(const char *key)
{
    return until(with_key(key) > (int)node_count / 2, WAIT_MS);
}

static int on_all(const char *key)
{
    return until(with_key(key) == (int)node_count, WAIT_MS);
}

static long pttl(unsigned n, const char *key)
{
    return strtol(ask(n, "PTTL", key), NULL, 10);
}

/* The TTL on the node where the key expires last. */
static long longest(const char *key)
{
    unsigned i;
    long most = -2;

    for (i = 0; i < node_count; i++)
        if (pttl(i, key) > most)
            most = strtol(reply, NULL, 10);
    return most;
}

/* Never to pid 0, which means the whole process group of the test. */
static void signal_to(pid_t pid, int number)
{
    if (pid > 0)
        kill(pid, number);
}

/* How many nodes have a key of a lock, or a wait queue that lasts longer than 10 s. */
static int with_keys_left(void)
{
    static const char script[] =
        "local n=0 for _,k in ipairs(redis.call('keys','redlock:*'))do local "
        "ms=redis.call('pttl',k)"
        "if k:sub(-5)~=':wait'or ms<0 or ms>10000 then n=n+1 end end return n";
    unsigned i;
    int count = 0;

    for (i = 0; i < node_count; i++)
        count += strcmp(ask(i, "EVAL", script, "0"), "0") != 0;
    return count;
}

/* Waits, because late releases may be on their way. */
static void no_key_left(const char *when)
{
    until(with_keys_left() == 0, 6000);
    is_int(with_keys_left(), 0, "no key is left %s", when);
}

static void pause_all(void)
{
    unsigned i;

    for (i = 0; i < node_count; i++)
        server_pause(&servers[i]);
}

static void resume_all(void)
{
    unsigned i;

    for (i = 0; i < node_count; i++)
        server_resume(&servers[i]);
}

/* ---- A command that records its life ---- */

/* In a file that the command and the test map. */
struct beat {
    volatile pid_t pid;
    volatile long long first_us, last_us; /* the first and the last time when it ran */
    volatile int heard[65];               /* how often it got each signal */
    volatile long long term_us;           /* when it got the first SIGTERM */
    volatile int stop;                    /* set by the test: the command ends with status 5 */
};

static struct beat *beat;

static void hear(int number)
{
    beat->heard[number]++;
    if (number == SIGTERM && beat->term_us == 0)
        beat->term_us = now_us();
}

static const char *beat_path(const char *name)
{
    static char path[4][120];
    static unsigned turn;
    char *to = path[turn++ % 4];

    snprintf(to, sizeof *path, "%s/%s", programs_folder(), name);
    return to;
}

static struct beat *map_beat(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    struct beat *map;

    if (fd < 0 || ftruncate(fd, sizeof *map) != 0)
        exit(1);
    map = mmap(NULL, sizeof *map, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (map == MAP_FAILED)
        exit(1);
    return map;
}

/* Starts another process and ends, and so on: each new one has another pid, session and process group. */
static void move_on(void)
{
    signal(SIGTERM, SIG_IGN);
    while (!beat->stop) {
        pid_t next = fork();
        if (next > 0)
            _exit(0);
        setsid();
        beat->pid = getpid();
        beat->last_us = now_us();
        if (next < 0 || beat->last_us > beat->first_us + 60000000)
            return;
        sleep_ms(1);
    }
}

/* beat FILE moves: move_on, for a minute at most.
   beat FILE [polite] [CHILD'S FILE]: runs until the test sets `stop`, at most five minutes. With "polite" it also ends
   after SIGTERM; its child does not. */
static int be_a_command(char **words)
{
    const int signals[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH, SIGCONT};
    long long end = now_us() + 300000000;
    int polite = words[1] != NULL && strcmp(words[1], "polite") == 0;
    size_t i;

    beat = map_beat(words[0]);
    if (words[1] != NULL && strcmp(words[1], "moves") == 0) {
        beat->first_us = now_us();
        move_on();
        return 5;
    }
    if (words[1] != NULL && words[1 + polite] != NULL && fork() == 0) {
        beat = map_beat(words[1 + polite]);
        polite = 0;
    }
    for (i = 0; i < sizeof signals / sizeof *signals; i++)
        signal(signals[i], hear);
    beat->pid = getpid();
    beat->first_us = now_us();
    while (now_us() < end && !beat->stop && !(polite && beat->heard[SIGTERM])) {
        struct timespec pause = {0, 2000000};
        beat->last_us = now_us();
        nanosleep(&pause, NULL);
    }
    return 5;
}

static int beats(const struct beat *of)
{
    return until(of->first_us != 0, WAIT_MS);
}

/* Whether its output matches this extended expression, in which ^ and $ are the ends of a line. */
static int shows(struct program from, const char *pattern)
{
    regex_t regex;
    int found;

    if (regcomp(&regex, pattern, REG_EXTENDED | REG_NEWLINE | REG_NOSUB) != 0)
        exit(1);
    found = regexec(&regex, wrote(from, 'o'), 0, NULL, 0) == 0;
    regfree(&regex);
    if (!found)
        fprintf(stderr, "# no %s in\n# %s\n", pattern, wrote(from, 'o'));
    return found;
}

/* Copies the first line of its output. */
static char *line_of(struct program from, char line[300])
{
    snprintf(line, 300, "%.*s", (int)strcspn(wrote(from, 'o'), "\n"), wrote(from, 'o'));
    return line;
}

static const char *write_file(const char *name, mode_t mode, const char *text)
{
    static char path[4][120];
    static unsigned turn;
    char *to = path[turn++ % 4];
    int fd;

    snprintf(to, sizeof *path, "%s/%s.secret", programs_folder(), name);
    unlink(to);
    fd = open(to, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    dprintf(fd, "%s", text);
    fchmod(fd, mode);
    close(fd);
    return to;
}

static int token_was_used(int status)
{
    unsetenv("REDLOCK_TOKEN");
    return status;
}

/* redlock() with this token in the environment. */
#define redlock_with(token, ...)                                                                   \
    (setenv("REDLOCK_TOKEN", token, 1), token_was_used(redlock(__VA_ARGS__)))

/* ---- Exit statuses and what the command gets ---- */

static void close_stderr(void)
{
    close(2);
}

/* The system says "No such file" of a command whose interpreter is missing. */
static void missing_interpreters(void)
{
    char path[300];

    nodes(3);
    is_int(redlock("run", "x", write_file("absent", 0700, "#! /no/such/shell -e\nexit 3\n"), NULL),
           127, "a script without its interpreter: 127");
    ok(strstr(wrote(last, 'e'), "absent.secret: its interpreter is missing: /no/such/shell -e\n") !=
           NULL,
       "the message names it: %s", wrote(last, 'e'));
    snprintf(path, sizeof path, "%s", write_file("windows", 0700, "#!/bin/sh\r\nexit 3\r\n"));
    is_int(redlock("run", "x", path, NULL), 127, "a script with CR LF: 127");
    ok(strstr(wrote(last, 'e'), "windows.secret: its interpreter is missing: /bin/sh") != NULL &&
           strstr(wrote(last, 'e'), " (its lines end in CR LF)\n") != NULL,
       "the message says so: %s", wrote(last, 'e'));
    *strrchr(path, '/') = '\0';
    setenv("FOLDER", path, 1);
    is_int(redlock("run", "x", "env", "PATH=/none", program, "run", "y", "windows.secret", NULL),
           127, "in no folder of PATH: 127");
    ok(strstr(wrote(last, 'e'), "windows.secret: No such file or directory\n") != NULL,
       "the message: %s", wrote(last, 'e'));
    is_int(redlock("run", "x", "sh", "-c", "PATH=/none:$FOLDER:$PATH exec \"$@\"", "sh", program,
                   "run", "y", "windows.secret", NULL),
           127, "in a folder of PATH: 127");
    ok(strstr(wrote(last, 'e'), "windows.secret: its interpreter is missing: ") != NULL,
       "the message: %s", wrote(last, 'e'));
}

static void exit_statuses(void)
{
    nodes(3);
    is_int(redlock("run", "x", "true", NULL), 0, "the command's status: 0");
    is_int(redlock("run", "x", "sh", "-c", "exit 7", NULL), 7, "the command's status: 7");
    is_int(redlock("run", "x", "-c", "exit 255", NULL), 255, "the command's status: 255");
    is_int(redlock("run", "x", "-c", "kill -SEGV $$", NULL), 139,
           "128 + the command's signal: SEGV");
    is_int(redlock("run", "x", "-c", "kill -KILL $$", NULL), 137,
           "128 + the command's signal: KILL");
    is_int(redlock("run", "x", "no-such-command", NULL), 127, "not found");
    ok(strstr(wrote(last, 'e'), "redlock: no-such-command: ") != NULL,
       "stderr has: redlock: no-such-command: ");
    is_int(redlock("run", "x", "", NULL), 64, "an empty word as the command");
    ok(strstr(wrote(last, 'e'), "redlock: run: COMMAND is an empty word") != NULL, "says so: %s",
       wrote(last, 'e'));
    setup.before = close_stderr;
    is_int(redlock("run", "x", "no-such-command", NULL), 127, "not found, without stderr");
    is_int(redlock("run", "-n", "10", "no-such-command", "true", NULL), 127,
           "-n with a time, as if it were -w");
    ok(strstr(wrote(last, 'e'), "10 was the NAME of the lock, and no-such-command the command; -w "
                                "takes a time, -n does not\n") != NULL,
       "a message says what the words were: %s", wrote(last, 'e'));
    redlock("run", "x", "no-such-command", NULL);
    ok(strstr(wrote(last, 'e'), "NAME") == NULL, "not if the name is no number: %s",
       wrote(last, 'e'));
    is_int(redlock("run", "x", "/etc/passwd", NULL), 126, "not executable");
    is_int(redlock("run", "x", "/", NULL), 126, "a directory");
    is_int(redlock("run", "x", write_file("script", 0700, "exit $#"), "a", "b", NULL), 2,
           "a script without #! is run by /bin/sh");
    setenv("P", program, 1);
    setenv("D", programs_folder(), 1);
    setup.instead = "sh";
    is_int(redlock("-c", "PATH=$D:$PATH exec \"$P\" run x script.secret a 'b c' d", NULL), 3,
           "also one that is found in PATH");
    no_key_left("after these");
}

static void is_text(const char *got, const char *expected, const char *what)
{
    if (!ok(strcmp(got, expected) == 0, "%s", what))
        fprintf(stderr, "# got \"%s\", expected \"%s\"\n", got, expected);
}

static void words(void)
{
    nodes(3);
    redlock("run", "x", "echo", "a", "b", NULL);
    is_text(wrote(last, 'o'), "a b\n", "the command gets its arguments, and no others");
    redlock("run", "-n", "-t", "9", "x", "echo", "-x", "--y", "-n", "--", "z", NULL);
    is_text(wrote(last, 'o'), "-x --y -n -- z\n",
            "options after the command belong to the command");
    redlock("run", "-n", "x", "--", "echo", "a", NULL);
    is_text(wrote(last, 'o'), "a\n", "NAME -- COMMAND");
    redlock("run", "-n", "--", "x", "echo", "a", NULL);
    is_text(wrote(last, 'o'), "a\n", "-- NAME COMMAND");
    redlock("run", "-n", "x", "echo", "", "a  b", NULL);
    is_text(wrote(last, 'o'), " a  b\n", "empty words and blanks");
    redlock("run", "-n", "x", "-c", "echo $((1 + 1)) 'a  b'", NULL);
    is_text(wrote(last, 'o'), "2 a  b\n", "-c");
    redlock("run", "-n", "x", "--command", "echo c", NULL);
    is_text(wrote(last, 'o'), "c\n", "--command");
    is_int(redlock("run", "x", "-c", "echo", "a", NULL), 64, "-c takes one word");
    is_int(redlock("run", "x", "-c", NULL), 64, "-c alone");
    is_int(redlock("run", "x", "--", NULL), 64, "no command after --");
    is_int(redlock("run", "x", NULL), 64, "no command");
    is_int(redlock("run", NULL), 64, "no name");
    is_int(redlock("run", "", "true", NULL), 64, "an empty name");
    is_int(redlock("status", "", NULL), 64, "status of an empty name");
    is_int(redlock("status", "--mine", NULL), 64, "status --mine without a name");
    is_int(redlock("status", "--mine", "x", "y", NULL), 64, "status --mine of two names");
    is_int(redlock("status", "--here", "x*", NULL), 64, "status --here of a pattern");
    is_int(redlock("status", "--here", "--mine", "x", NULL), 64, "status --here --mine");
    is_int(redlock("status", "--slots", "2", "x", "y", NULL), 64, "status --slots of two names");
    is_int(redlock("acquire", "-t", "9", NULL), 64, "acquire without a name");
    is_int(redlock("acquire", "-t", "9", "x", "y", NULL), 64, "acquire of two names");
    is_int(redlock("acquire", "x", NULL), 64, "acquire without -t");
    is_int(redlock("run", "--auth-file=redis://:" SECRET "@h", "x", "true", NULL), 64,
           "--auth-file is gone");
    is_int(redlock("release", "x", NULL), 64, "release without a token");
    is_int(redlock("release", "x", "secret", NULL), 64, "a token as a word, where others see it");
    ok(strstr(wrote(last, 'e'), "REDLOCK_TOKEN") != NULL &&
           strstr(wrote(last, 'e'), "secret") == NULL,
       "says where it belongs: %s", wrote(last, 'e'));
    is_int(redlock_with("", "release", "x", NULL), 64, "an empty token");
    is_int(redlock("nonsense", NULL), 64, "no such verb");
    is_text(wrote(last, 'e'), "redlock: nonsense: no such verb: see redlock help\n",
            "the message names the verb");
    is_int(redlock("--nodes=redis://:" SECRET "@h", "status", "x", NULL), 64,
           "an option before the verb");
    is_text(wrote(last, 'e'),
            "redlock: --nodes: options belong behind the verb: see redlock help\n",
            "the message has no password");
    redlock("-Nredis://:" SECRET "@h", "status", "x", NULL);
    redlock("redis://:" SECRET "@h", "status", "x", NULL);
    is_int(redlock(NULL), 64, "no verb");
    no_key_left("after these");
}

static size_t longest_line(const char *text)
{
    size_t longest = 0, size;

    for (; *text != '\0'; text += size + (text[size] != '\0')) {
        size = strcspn(text, "\n");
        longest = size > longest ? size : longest;
    }
    return longest;
}

static void options(void)
{
    static const char *const bad[][2] = {
        {"-w", "x"},   {"-w", "-1"},   {"-w", "1x"},      {"-w", ""},
        {"-w", "1 s"}, {"-w", "inf"},  {"-w", "nan"},     {"-w", "99999999999999d"},
        {"-w", "."},   {"-w", "0x10"}, {"-w", "1e3"},     {"-t", ".5"},
        {"-t", "0"},   {"-k", "x"},    {"-E", "256"},     {"-E", "-1"},
        {"-E", "x"},   {"-E", ""},     {"--nosuch", "x"}, {"-z", "x"}};
    static const char *const good[][2] = {
        {"-w", ".007"}, {"-w", "250ms"}, {"-w", "2m"},        {"-w", "1h"},       {"-w", "1d"},
        {"-w", "0"},    {"-t", "9"},     {"-k", "60"},        {"-k", "0"},        {"-E", "0"},
        {"-E", "255"},  {"-l", ""},      {"-l", "a b\n\"%:"}, {"--min-hold", "0"}};
    size_t i;
    int status;

    nodes(3);
    for (i = 0; i < sizeof bad / sizeof *bad; i++) {
        is_int(redlock("run", bad[i][0], bad[i][1], "x", "echo", "ran", NULL), 64, "%s '%s'",
               bad[i][0], bad[i][1]);
        ok(strncmp(wrote(last, 'e'), "redlock: ", 9) == 0 && *wrote(last, 'o') == '\0',
           "a message, and the command does not run");
    }
    for (i = 0; i < sizeof good / sizeof *good; i++)
        is_int(redlock("run", good[i][0], good[i][1], "x", "true", NULL), 0, "%s '%s'", good[i][0],
               good[i][1]);
    status = redlock("run", "-t", "1", "x", "true", NULL);
    ok(status == 0 || status == 79, "-t 1: 0, or 79 if the lock is lost before the end (%d)",
       status);
    is_int(redlock("status", "-n", "x", NULL), 64, "-n is no option of status");
    is_int(redlock("run", "--json", "x", "true", NULL), 64, "--json is no option of run");
    is_int(redlock("run", "-w", NULL), 64, "an option without its argument");
    is_int(redlock("run", "-nw5", "--wait=6", "-E0", "x", "-c", "exit 3", NULL), 3,
           "letters in one word, arguments in the word, and after =");
    is_int(redlock("run", "-nw", "5", "-", "-c", "exit 3", NULL), 3, "a name of one dash");
    is_int(redlock("acquire", "--fence=1", "-t", "9", "x", NULL), 64, "an argument to a flag");
    is_text(wrote(last, 'e'), "redlock: --fence takes no argument\n", "the message names the flag");
    is_int(redlock("run", "--no-such=" SECRET, "x", "true", NULL), 64, "no such option");
    is_int(redlock("run", "-wx", NULL), 64, "a duration that is none");
    is_text(wrote(last, 'e'),
            "redlock: --wait x: this is no time: write 1.5, 250ms, 2m, 1h or 1d; at most 24d\n",
            "the message says how to write one");
    is_int(redlock("run", "--new-group", "x", "true", NULL), 64, "an option that is gone");
    is_text(wrote(last, 'e'),
            "redlock: --new-group is gone: redlock run NAME setsid -w COMMAND; not without /proc\n",
            "the message says what to use instead");
    is_int(redlock("run", "--conf", "5", "x", "true", NULL), 64, "an abbreviation of two options");
    is_int(redlock("run", "--nonb", "x", "-c", "exit 3", NULL), 3, "an abbreviation of one option");
    is_int(redlock("status", "-q", "x", "--", "-v", NULL), 1, "after -- there are no options");
    ok(strstr(wrote(last, 'o'), "\n-v ") != NULL, "-v is a name there");
    is_int(redlock("acquire", "-t", "50ms", "x", NULL), 64, "too short a TTL");
    is_int(redlock("acquire", "-t", "9", "-n", "-E", "0", "x", NULL), 64,
           "acquire -E 0 would look as if the lock were held");
    is_int(redlock("run", "x", "-n", "true", NULL), 64, "an option after NAME");
    is_text(wrote(last, 'e'),
            "redlock: run: -n: options belong before NAME; NAME -- COMMAND if this is a command\n",
            "the message says so");
    is_int(redlock("run", "x", "--", "-n", NULL), 127, "a command that begins with a dash");
    unsetenv("REDLOCK_NODE_TIMEOUT");
    status = redlock("run", "-t", "2", "x", "true", NULL);
    ok(status == 0 ? *wrote(last, 'e') == '\0' : status == 79 || status == 69,
       "-t 2: no message about a default");
    setenv("REDLOCK_NODE_TIMEOUT", "3", 1);
    is_int(redlock("status", "x", "-v", NULL), 1, "status: options after the name");
    is_int(redlock("version", NULL), 0, "version");
    is_int(redlock("-V", NULL), 0, "-V");
    ok(strncmp(wrote(last, 'o'), "redlock 0.", 10) == 0, "-V is printed to stdout");
    for (i = 0; i < 6; i++) {
        static const char *const verbs[][2] = {
            {NULL, "usage: "},
            {"run", "--ttl TTL               life of the lock if the host fails; default 30s\n"},
            {"acquire", "--ttl TTL               life of the lock, which is not renewed; required"},
            {"release", "--force ID"},
            {"status", "--mine"},
            {"check", "--ttl TTL               the longest ttl in use; default 30s\n"}};
        redlock("help", verbs[i][0], NULL);
        ok(strstr(wrote(last, 'o'), verbs[i][1]) != NULL, "help %s has %s",
           verbs[i][0] != NULL ? verbs[i][0] : "", verbs[i][1]);
        is_int(longest_line(wrote(last, 'o')) <= 80, 1, "its lines have at most 80 columns");
    }
    is_int(redlock("help", NULL), 0, "help");
    ok(strncmp(wrote(last, 'o'), "usage:", 6) == 0, "help is printed to stdout");
    is_int(redlock("-h", NULL), 0, "-h");
    for (i = 0; i < 4; i++) {
        static const char *const ask[4][3] = {{"acquire", "--help", NULL},
                                              {"acquire", "-t", NULL},
                                              {"help", "acquire", NULL},
                                              {"acquire", "-h", "x"}};
        if (i == 1)
            status = redlock("acquire", "-t", "9", "--help", NULL);
        else
            status = redlock(ask[i][0], ask[i][1], ask[i][2], NULL);
        is_int(status, 0, "help for a verb");
        ok(strstr(wrote(last, 'o'), "usage: redlock acquire -t TTL") &&
               strstr(wrote(last, 'o'), "\n  -w, --wait TIME ") &&
               strstr(wrote(last, 'o'), "\n      --fence ") &&
               strstr(wrote(last, 'o'), "--min-hold") == NULL,
           "help for a verb has its options, and no others");
    }
    redlock("run", "x", "printf", "%s", "--help", NULL);
    is_text(wrote(last, 'o'), "--help", "--help after the command belongs to the command");
    is_int(redlock("run", "--help", NULL), 0, "help for run");
    ok(strstr(wrote(last, 'o'), "\n  -c, --command TEXT ") != NULL &&
           strstr(wrote(last, 'o'), "\n  -h, --help ") != NULL,
       "help for run has -c and --help");
    is_int(redlock("help", "nonsense", NULL), 64, "help for an unknown verb");
    setenv("POSIXLY_CORRECT", "1",
           1); /* changes getopt_long of some C libraries, and not that of a static program */
    redlock("status", "x", "--json", "--", "--y", NULL);
    unsetenv("POSIXLY_CORRECT");
    ok(count_of(wrote(last, 'o'), "\"name\":\"x\"") == 1 &&
           count_of(wrote(last, 'o'), "\"name\":\"--y\"") == 1 &&
           count_of(wrote(last, 'o'), "\n") == 2,
       "an option behind a name, then -- and a name: %s", wrote(last, 'o'));
    no_key_left("after these");
}

static void names(void)
{
    static const char *const odd[] = {"a b",  "a\nb",     "a\tb\"c'", "a:b", "a%3Ab", "[a]",
                                      "{x}y", "\xff\xfe", "--",       "é",   "../x",  "a@b"};
    char key[400], longest[256];
    size_t i;

    nodes(3);
    for (i = 0; i < sizeof odd / sizeof *odd; i++) {
        snprintf(key, sizeof key, "redlock:%s", odd[i]);
        is_int(redlock("acquire", "-t", "60", "--", odd[i], NULL), 0, "a name: '%s'", odd[i]);
        ok(on_most(key), "its key is the prefix and the name");
        is_int(redlock("status", "--", odd[i], NULL), 0, "status finds it");
    }
    ask_all("FLUSHALL");
    memset(longest, 'n', sizeof longest);
    longest[255 - 8] = '\0';
    is_int(redlock("run", longest, "true", NULL), 0, "the longest name");
    is_int(redlock("status", longest, NULL), 1, "status of the longest name");
    longest[255 - 8] = 'n';
    longest[255 - 8 + 1] = '\0';
    is_int(redlock("run", longest, "true", NULL), 64, "a name that is a byte too long");
    is_int(redlock("status", longest, NULL), 64, "status of a name that is too long");
    is_int(redlock("run", "--prefix", "", "bare", "-c", "exit 4", NULL), 4, "no prefix");
    setenv("REDLOCK_PREFIX", "app:", 1);
    redlock("acquire", "-t", "60", "x", NULL);
    ok(on_most("app:x"), "REDLOCK_PREFIX");
    redlock("acquire", "-t", "60", "--prefix", "b:", "x", NULL);
    ok(on_most("b:x"), "--prefix overrides REDLOCK_PREFIX");
}

static void refused_once(const char *word, const char *option, const char *value, const char *name)
{
    is_int(redlock(word, option, value, name, NULL), 64, "%s %s, a name of %lu bytes: 64", word,
           option, (unsigned long)strlen(name));
    is_int(count_of(wrote(last, 'e'), "\n"), 1, "one message: %s", wrote(last, 'e'));
    ok(strstr(wrote(last, 'e'), "the name of a lock") != NULL ||
           strstr(wrote(last, 'e'), "no lock has a key") != NULL,
       "it says why");
}

/* A prefix or a name that is not usable is refused before a node is asked, with one message. */
static void too_long(void)
{
    static char prefix[901], name[249];
    char file[1000];

    nodes(3);
    memset(prefix, 'p', sizeof prefix - 1);
    setenv("REDLOCK_PREFIX", prefix, 1);
    is_int(redlock("status", NULL), 64, "REDLOCK_PREFIX of 900 bytes: 64");
    is_text(wrote(last, 'e'), "redlock: the prefix has at most 254 bytes\n", "it says why");
    unsetenv("REDLOCK_PREFIX");
    prefix[255] = '\0';
    is_int(redlock("status", "--prefix", prefix, NULL), 64, "--prefix of 255 bytes: 64");
    is_int(redlock("check", "--prefix", prefix, NULL), 3, "check: 3");
    is_text(wrote(last, 'e'), "redlock: the prefix has at most 254 bytes\n", "it says why");
    snprintf(file, sizeof file, "prefix = %s\n", prefix);
    is_int(redlock("status", "--config", write_file("c", 0600, file), NULL), 64,
           "255 bytes in the configuration file: 64");
    prefix[254] = '\0';
    is_int(redlock("status", "--prefix", prefix, NULL), 1, "--prefix of 254 bytes: status");
    is_int(redlock("run", "--prefix", prefix, "x", "-c", "exit 4", NULL), 4, "and run");
    is_int(redlock("check", "--prefix", prefix, NULL), 3, "check sets longer keys than status: 3");
    is_int(count_of(wrote(last, 'e'), "\n"), 1, "one message: %s", wrote(last, 'e'));
    memset(name, 'n', sizeof name - 1);
    refused_once("release", "--force", "12345678", name);
    refused_once("release", "--force", "12345678", "");
    refused_once("release", "--force", "12345678", "a:wait");
    name[246] = '\0';
    refused_once("status", "--slots", "3", name);
    is_int(redlock("release", "--force", "12345678", name, NULL), 79, "246 bytes: no such holder");
}

/* The library has keys of its own beside that of a lock: a lock of such a name would disturb it, or wait for ever. */
static void reserved_names(void)
{
    static const char *const reserved[] = {"a:wait", "a:fence", "a:wait:0123456789abcdef", "wait",
                                           "fence"};
    static const char *const others[] = {"await", "a:waiter", "a:wait:", "a:wait:0123456789abcdeg",
                                         "a:0123456789abcdef"};
    size_t i;

    nodes(3);
    is_int(redlock("run", "--fence", "a", "true", NULL), 0, "a counter of fencing tokens is there");
    for (i = 0; i < sizeof reserved / sizeof *reserved; i++) {
        is_int(redlock("run", "-n", reserved[i], "echo", "ran", NULL), 64, "run %s", reserved[i]);
        ok(strstr(wrote(last, 'e'), reserved[i]) != NULL && *wrote(last, 'o') == '\0',
           "a message names it, and the command does not run");
        is_int(redlock("acquire", "-n", "-t", "60", reserved[i], NULL), 64, "acquire %s",
               reserved[i]);
        is_int(redlock("status", reserved[i], NULL), 64, "status %s", reserved[i]);
    }
    for (i = 0; i < sizeof others / sizeof *others; i++)
        is_int(redlock("run", "-n", others[i], "true", NULL), 0, "run %s", others[i]);
}

static void environment(void)
{
    struct program run;
    char expected[64], nodes_file[300], *path = realpath(program, NULL);

    nodes(3);
    setenv("REDLOCK_VERBOSE", "yes", 1);
    redlock("run", "x", "true", NULL);
    ok(strstr(wrote(last, 'e'), "acquired on") != NULL, "REDLOCK_VERBOSE");
    setenv("REDLOCK_VERBOSE", "False", 1);
    redlock("run", "x", "true", NULL);
    is_text(wrote(last, 'e'), "", "REDLOCK_VERBOSE=False");
    unsetenv("REDLOCK_VERBOSE");
    setenv("REDISCLI_AUTH", "", 1);
    setenv("P", path != NULL ? path : "", 1);
    free(path);
    run = start("run", "-t", "20", "a:b", "-c",
                "echo $REDLOCK_NAME $REDLOCK_TTL_MS $REDLOCK_HOLDER_PID"
                " ${REDLOCK_HELD%=*} $((${#REDLOCK_HELD} - ${#REDLOCK_NAME}));"
                "\"$P\" status \"$REDLOCK_NAME\" | grep -c \" $REDLOCK_ID \"; exit 3",
                NULL);
    is_int(ends(&run), 3, "a command that uses its own lock");
    snprintf(expected, sizeof expected, "a:b 20000 %d redlock%%3Aa%%3Ab 29\n1\n", run.pid);
    is_text(wrote(run, 'o'), expected, "REDLOCK_NAME, _TTL_MS, _HOLDER_PID, _HELD, _ID");
    is_int(
        redlock("run", "x", "-c", "test -n \"$REDLOCK_NODES\" && test -z \"$REDLOCK_FENCE\"", NULL),
        0, "the command gets REDLOCK_NODES, and no REDLOCK_FENCE without --fence");
    is_int(redlock("run", "x", "-c", "test -z \"$LISTEN_PID$WATCHDOG_PID\"", NULL), 0,
           "no LISTEN_PID where there was none");
    is_int(redlock("run", "x", "-c", "test -z \"$REDLOCK_TOKEN\" && \"$P\" release x", NULL), 64,
           "the command gets no token, so it cannot release its own lock by mistake");
    is_int(redlock("run", "x", "-c",
                   "export REDLOCK_TOKEN=\"${REDLOCK_HELD#*=}\"; \"$P\" release x", NULL),
           64, "REDLOCK_HELD is no token");
    setup.instead = "sh";
    is_int(redlock("-c",
                   "LISTEN_PID=$$ WATCHDOG_PID=1 exec \"$P\" run x -c "
                   "'test $LISTEN_PID = $$ && test $WATCHDOG_PID = 1'",
                   NULL),
           0, "LISTEN_PID that is redlock's becomes the command's, and no other");
    is_int(
        redlock("run", "--prefix", "p:", "x", "-c", "\"$P\" status x && \"$P\" run x true", NULL),
        64, "--prefix: the command has the same prefix");
    ok(shows(last, "^x +held "), "--prefix: status in the command: held");
    is_int(redlock("run", "--prefix", "", "x", "-c", "\"$P\" status x", NULL), 0,
           "an empty prefix: the command has it, too");
    snprintf(nodes_file, sizeof nodes_file, "node = %s\nnode = %s\nnode = %s\nprefix = q:\n",
             servers[0].address, servers[1].address, servers[2].address);
    write_file("c", 0600, nodes_file);
    unsetenv("REDLOCK_NODES");
    setenv("D", programs_folder(), 1);
    setup.instead = "sh";
    is_int(redlock("-c",
                   "cd \"$D\" && exec \"$P\" run --config c.secret x -c "
                   "'cd /; \"$P\" status x'",
                   NULL),
           0, "--config");
    is_int(redlock("run", "-N", list_of(3, ""), "x", "-c", "\"$P\" status x", NULL), 0,
           "-N: the command has the same nodes");
    setenv("REDLOCK_NODES", list_of(3, ""), 1);
    no_key_left("after these");
}

static void nested(void)
{
    static const char *const names[] = {"x", "a:b", "a%3Ab", "%", ":", "a b"};
    char longest_name[256];
    size_t i;

    nodes(3);
    setenv("P", program, 1);
    for (i = 0; i < sizeof names / sizeof *names; i++) {
        setenv("N", names[i], 1);
        is_int(redlock("run", names[i], "-c", "\"$P\" run \"$N\" true", NULL), 64, "%s within %s",
               names[i], names[i]);
        is_int(redlock("run", "outer", "-c",
                       "\"$P\" run \"$N\" -- \"$P\" run other -- \"$P\" run \"$N\" true", NULL),
               64, "%s within two other locks", names[i]);
    }
    is_int(redlock("run", "a:b", "-c", "\"$P\" run a%3Ab -- \"$P\" run a true", NULL), 0,
           "names that only look alike");
    is_int(redlock("run", "xy", "-c", "\"$P\" run x -- \"$P\" run y true", NULL), 0,
           "parts of the name are other names");
    memset(longest_name, ' ', sizeof longest_name - 1);
    longest_name[sizeof longest_name - 1] = '\0';
    setenv("N", longest_name, 1);
    longest_name[sizeof longest_name - 2] = '!';
    is_int(redlock("run", "--prefix", "", longest_name, "-c", "\"$P\" run \"$N\" true", NULL), 0,
           "names of 255 bytes that differ in the last one");
    is_int(redlock("run", "--slots", "2", "x", "-c", "\"$P\" run --slots 2 x -c 'exit 7'", NULL), 7,
           "a slot within a slot, while one is free");
    is_int(redlock("run", "--slots", "1", "x", "-c", "\"$P\" run --slots 1 x true", NULL), 64,
           "a slot within the only slot");
    is_int(redlock("run", "x", "-c", "\"$P\" acquire -t 9 x", NULL), 64, "acquire within run");
    ok(strstr(wrote(last, 'e'), "x is held by a program that called this one") != NULL,
       "acquire within run: the message says why");
    is_int(redlock("run", "x", "-c", "\"$P\" acquire -t 9 y", NULL), 0,
           "acquire of another name within run");
    ask_all("DEL", "redlock:y");
    no_key_left("after these");
}

/* A process that the command leaves behind inherits REDLOCK_HELD. Once the command has ended, nothing is held above. */
static void nested_no_more(void)
{
    struct program run;

    nodes(3);
    setenv("P", program, 1);
    run = start("run", "x", "-c",
                "(while kill -0 $REDLOCK_HOLDER_PID; do sleep .1; done; "
                "\"$P\" run x echo ran; echo left with $?) & exit 4",
                NULL);
    is_int(ends(&run), 4, "a command leaves a process behind");
    ok(writes(run, 'o', "left with"), "which asks for the lock itself later");
    ok(strstr(wrote(run, 'o'), "left with 0") != NULL, "and gets it");
    no_key_left("then");
}

/* In new user and PID namespaces, where no process of the outside has a number. */
static int in_pid_namespace(const char *script)
{
    return redlock("run", "x", "unshare", "-Urpf", "sh", "-c", script, NULL);
}

/* `redlock status --mine` asks for a lock that is held now, by a redlock around the caller. */
static void held(void)
{
    struct program run;
    char line[300], forged[400];

    nodes(3);
    setenv("P", program, 1);
    is_int(redlock("status", "--mine", "x", NULL), 1, "nobody holds it");
    is_int(redlock("run", "x", "-c", "\"$P\" status --mine x", NULL), 0, "in the command");
    is_int(redlock("run", "x", "-c", "\"$P\" status --mine y", NULL), 1,
           "in the command: another name");
    is_int(redlock("run", "x", "-c", "\"$P\" run y -- \"$P\" status --mine x", NULL), 0,
           "in a command of a command");
    is_int(redlock("run", "--slots", "2", "x", "-c", "\"$P\" status --mine $REDLOCK_NAME", NULL), 0,
           "in a slot");
    is_int(redlock("run", "x", "-c", "\"$P\" release --force $REDLOCK_ID x; \"$P\" status --mine x",
                   NULL),
           1, "released");
    if (redlock("run", "x", "unshare", "-Urpf", "true", NULL) != 0) {
        skip("creating a PID namespace is not permitted");
    } else {
        is_int(in_pid_namespace("\"$P\" status --mine x"), 0, "in another PID namespace");
        is_int(in_pid_namespace("\"$P\" run x true"), 64,
               "in another PID namespace: waiting for itself");
    }
    is_int(redlock("run", "x", "-c", "\"$P\" status --mine x || exec \"$P\" run -n x false; exit 9",
                   NULL),
           9, "a script that calls itself under a lock");

    run = start("run", "x", "-c", "echo $REDLOCK_HELD; read line", NULL);
    ok(writes(run, 'o', "\n"), "a job that ends");
    line_of(run, line);
    signal_to(run.pid, SIGTERM);
    ends(&run);
    run = start("run", "x", "-c", "echo id $REDLOCK_ID; exec sleep 60", NULL);
    ok(writes(run, 'o', "\n"), "and another job");
    setenv("REDLOCK_HELD", line, 1);
    is_int(redlock("status", "--mine", "x", NULL), 1, "what an earlier job has left behind");
    is_int(redlock("run", "-n", "x", "true", NULL), 75, "it does not wait for itself");
    snprintf(forged, sizeof forged, "redlock%%3Ax=%.8s", strstr(wrote(run, 'o'), "id ") + 3);
    setenv("REDLOCK_HELD", forged, 1);
    is_int(redlock("status", "--mine", "x", NULL), 1, "the id of the holder is no proof");
    unsetenv("REDLOCK_HELD");
    is_int(redlock("status", "--mine", "x", NULL), 1, "beside the command");
    is_int(redlock("status", "--here", "x", NULL), 0, "beside the command, --here");
    server_pause(&servers[0]);
    server_pause(&servers[1]);
    setenv("REDLOCK_NODE_TIMEOUT", ".3", 1);
    is_int(redlock("status", "--here", "x", NULL), 69, "two of three hang");
    setenv("REDLOCK_NODE_TIMEOUT", "3", 1);
    resume_all();
    signal_to(run.pid, SIGTERM);
    ends(&run);
    is_int(redlock("status", "--here", "x", NULL), 1, "the job has ended");
    no_key_left("then");
}

/* A probe asks whether a process of this host holds the lock. */
static void held_here(void)
{
    static const char hex[] = "0123456789abcdef0123456789abcdef01234567";
    long long now_unix_ms = (long long)time(NULL) * 1000;
    char host[65] = "", value[300];

    nodes(3);
    gethostname(host, sizeof host - 1);
    snprintf(value, sizeof value, "%s:%s:%d:%lld:job", hex, host, getpid(), now_unix_ms);
    ask_all("SET", "redlock:x", value, "PX", "60000");
    is_int(redlock("status", "--here", "x", NULL), 0, "a process of this host");
    snprintf(value, sizeof value, "%s:%s.other:%d:%lld:job", hex, host, getpid(), now_unix_ms);
    ask_all("SET", "redlock:x", value, "PX", "60000");
    is_int(redlock("status", "--here", "x", NULL), 1, "a process of another host");
    snprintf(value, sizeof value, "%s:%s:%d:%lld:job", hex, host, 0x7ffffff0, now_unix_ms);
    ask_all("SET", "redlock:x", value, "PX", "60000");
    is_int(redlock("status", "--here", "x", NULL), 1, "a process that does not live");
    ask_all("SET", "redlock:x", hex, "PX", "60000");
    is_int(redlock("status", "--here", "x", NULL), 1, "a value without a host");
    ask_all("DEL", "redlock:x");
}

/* A server that was restarted has lost its locks, and would grant them again. */
static void longest_ttl(void)
{
    struct beat *a = map_beat(beat_path("a"));
    struct program run;
    char token[300];
    int votes = 0;

    nodes(3);
    is_int(redlock("run", "--longest-ttl", "60", "x", "true", NULL), 64,
           "longest-ttl is no option of the command line");
    setenv("REDLOCK_LONGEST_TTL", "20", 1);
    is_int(redlock("run", "-t", "30", "x", "true", NULL), 64, "a ttl that is longer: 64");
    ok(strstr(wrote(last, 'e'), "longest-ttl") != NULL, "it says why");
    setenv("REDLOCK_LONGEST_TTL", "2", 1); /* the servers will soon be so old */
    ok(until(votes || (votes = redlock("run", "-n", "x", "true", NULL) == 0), WAIT_MS),
       "then the default of --ttl is not longer");
    redlock("acquire", "-t", "1", "x", NULL);
    ok(redlock_with(line_of(last, token), "release", "x", NULL) != 64, "nor that of release");
    unsetenv("REDLOCK_LONGEST_TTL");
    ask_all("FLUSHALL");
    run = start("run", "-t", "30", "x", self, "beat", beat_path("a"), NULL);
    ok(beats(a) && on_all("redlock:x"), "held");
    server_kill(&servers[0]);
    server_kill(&servers[1]);
    server_restart(&servers[0]);
    server_restart(&servers[1]);
    setenv("REDLOCK_LONGEST_TTL", "10m", 1);
    is_int(redlock("run", "-n", "x", "echo", "ran", NULL), 69,
           "a majority was restarted: 69, although it grants the lock");
    is_text(wrote(last, 'o'), "", "no second command runs");
    ok(strstr(wrote(last, 'e'), "may have lost locks") != NULL, "it says why: %s",
       wrote(last, 'e'));
    write_file("longest", 0600, "longest-ttl = 10m\n");
    unsetenv("REDLOCK_LONGEST_TTL");
    is_int(redlock("run", "-n", "--config", beat_path("longest.secret"), "x", "true", NULL), 69,
           "longest-ttl in the configuration file");
    a->stop = 1;
    ends(&run);
    ask_all("FLUSHALL");
}

/* ---- Signals and descriptors of the caller ---- */

static void odd_caller(void)
{
    sigset_t set;

    signal(SIGCHLD, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGUSR2, SIG_IGN);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGRTMAX); /* some C libraries use the first real-time signals */
    sigprocmask(SIG_BLOCK, &set, NULL);
}

static void close_all(void)
{
    close(0);
    close(1);
    close(2);
}

static void write_or_end(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        _exit(99);
    close(fd);
}

/* The process is user 1000 there; so it has no privileges after it has executed a program. */
static void enter_mount_namespace(void)
{
    char users[40], groups[40];

    snprintf(users, sizeof users, "1000 %lu 1", (unsigned long)getuid());
    snprintf(groups, sizeof groups, "1000 %lu 1", (unsigned long)getgid());
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
        _exit(99);
    write_or_end("/proc/self/setgroups", "deny");
    write_or_end("/proc/self/uid_map", users);
    write_or_end("/proc/self/gid_map", groups);
}

/* In a mount namespace where no device exists, as in some containers. The files of the test may be in /dev/shm. */
static void close_all_without_dev(void)
{
    char shared[40];
    int fd;

    enter_mount_namespace();
    fd = open("/dev/shm", O_PATH | O_CLOEXEC);
    snprintf(shared, sizeof shared, "/proc/self/fd/%d", fd);
    if (mount("none", "/dev", "tmpfs", 0, NULL) != 0)
        _exit(99);
    if (fd >= 0 && (mkdir("/dev/shm", 0700) != 0 ||
                    mount(shared, "/dev/shm", NULL, MS_BIND | MS_REC, NULL) != 0))
        _exit(98);
    close_all();
}

static void hide_proc(void)
{
    enter_mount_namespace();
    if (mount("none", "/proc", "tmpfs", 0, NULL) != 0)
        _exit(99);
}

static unsigned long long mask_of(const char *text, const char *name)
{
    const char *at = strstr(text, name);

    return at != NULL ? strtoull(at + strlen(name), NULL, 16) : 1;
}

static void one_caller(void (*caller)(void), const char *what)
{
    const char *look = "/proc/self/status";
    struct program direct, below;
    unsigned long long child = 1ULL << (SIGCHLD - 1);

    setup.before = caller;
    setup.instead = "grep";
    direct = start("^Sig", look, NULL);
    is_int(ends(&direct), 0, "%s, directly", what);
    setup.before = caller;
    below = start("run", "x", "grep", "^Sig", look, NULL);
    is_int(ends(&below), 0, "%s, below redlock", what);
    ok(mask_of(wrote(below, 'o'), "SigBlk:") == mask_of(wrote(direct, 'o'), "SigBlk:"),
       "%s: the same signals are blocked", what);
    ok(mask_of(wrote(below, 'o'), "SigIgn:") == (mask_of(wrote(direct, 'o'), "SigIgn:") & ~child),
       "%s: the same signals are ignored, except SIGCHLD", what);
}

/* How many of a process's first descriptors are connections. */
static int sockets_among(pid_t pid, int most)
{
    char path[64], what[64];
    int fd, count = 0;

    for (fd = 0; fd < most; fd++) {
        snprintf(path, sizeof path, "/proc/%ld/fd/%d", (long)pid, fd);
        count += readlink(path, what, sizeof what) > 7 && memcmp(what, "socket:", 7) == 0;
    }
    return count;
}

static void closed_descriptors(void (*closer)(void), const char *what)
{
    struct beat *a = map_beat(beat_path("a"));
    struct program run;

    setup.before = closer;
    is_int(redlock("run", "x", "-c", "test ! -e /proc/$$/fd/2 && exit 6", NULL), 6,
           "%s that has closed 0, 1, 2: they are also closed in the command", what);
    setup.before = closer;
    a->stop = 0;
    a->first_us = 0;
    run = start("run", "x", self, "beat", beat_path("a"), NULL);
    beats(a);
    is_int(sockets_among(run.pid, 3), 0, "%s that has closed 0, 1, 2: no message goes to a node",
           what);
    a->stop = 1;
    is_int(ends(&run), 5, "%s that has closed 0, 1, 2: the command's status", what);
}

static void callers(void)
{
    struct beat *a = map_beat(beat_path("a"));
    struct program run;
    int fd[2];

    nodes(3);
    one_caller(NULL, "a common caller");
    one_caller(odd_caller, "a caller that ignores and blocks signals");
    setup.before = odd_caller;
    is_int(redlock("run", "x", "-c", "exit 7", NULL), 7, "such a caller gets the command's status");
    setup.before = odd_caller; /* as nohup does */
    run = start("run", "x", self, "beat", beat_path("a"), "polite", NULL);
    beats(a);
    signal_to(run.pid, SIGHUP);
    signal_to(run.pid, SIGUSR2);
    sleep_ms(300);
    ok(a->heard[SIGHUP] == 0 && !has_ended(run), "an ignored HUP does not reach the command");
    a->stop = 1;
    is_int(ends(&run), 5, "an ignored HUP: the command's status");

    pipe2(fd, O_CLOEXEC);
    ok(write(fd[1], "by stdin", 8) == 8, "a pipe for stdin");
    close(fd[1]);
    setup.input = fd[0];
    redlock("run", "x", "cat", NULL);
    is_text(wrote(last, 'o'), "by stdin", "the command reads stdin");
    close(fd[0]);
    redlock("run", "x", "-c", "ls /proc/$$/fd", NULL);
    is_text(wrote(last, 'o'), "0\n1\n2\n", "the command has no descriptor of redlock");
    closed_descriptors(close_all, "a caller");
    unsetenv("REDLOCK_CONFIG");
    setup.before = close_all_without_dev;
    if (redlock("version", NULL) == 99)
        skip("creating a mount namespace is not permitted");
    else
        closed_descriptors(close_all_without_dev, "a caller without /dev");
    no_key_left("after these");
}

/* ---- Conflicts ---- */

static void conflicts(void)
{
    long begin;

    nodes(3);
    ask_all("SET", "redlock:x", "another's");
    is_int(redlock("run", "-n", "x", "echo", "ran", NULL), 75, "-n: held");
    ok(strstr(wrote(last, 'e'), "redlock: x: held by another client: id ") != NULL,
       "the message names the holder");
    ok(*wrote(last, 'o') == '\0', "-n: held: the command does not run");
    ok(strstr(wrote(last, 'e'), "; it never expires\n") != NULL, "and that the key never expires");
    redlock("run", "-v", "-w", "1.5", "x", "true", NULL);
    ok(strstr(wrote(last, 'e'), "waiting for x, held by id ") != NULL &&
           strstr(wrote(last, 'e'), "; it never expires\n") != NULL,
       "so does the message of a waiter");
    redlock("status", "x", NULL);
    ok(shows(last, "^x +held +3/3 +no end "), "and status");
    is_int(redlock("run", "-w", "0", "x", "true", NULL), 75, "-w 0 is -n");
    is_int(redlock("run", "-n", "-E", "0", "x", "true", NULL), 0, "-E 0");
    is_text(wrote(last, 'e'), "", "-E 0: no message, so cron sends no mail");
    is_int(redlock("run", "-v", "-n", "-E", "0", "x", "true", NULL), 0, "-E 0 -v");
    ok(strstr(wrote(last, 'e'), "x: held by another client: id ") != NULL, "-v: the holder");
    is_int(redlock("run", "-n", "-E", "255", "x", "true", NULL), 255, "-E 255");
    is_int(redlock("run", "-n", "-q", "x", "true", NULL), 75, "-q");
    is_text(wrote(last, 'e'), "", "-q: no message");
    begin = now_ms();
    is_int(redlock("run", "-w", ".4", "x", "true", NULL), 75, "-w .4");
    ok(now_ms() - begin >= 400, "run -w waits 0.4 s (%ld ms)", now_ms() - begin);
    begin = now_ms();
    is_int(redlock("acquire", "-t", "9", "-w", "400ms", "x", NULL), 75, "acquire -w");
    ok(now_ms() - begin >= 400, "acquire -w waits 0.4 s");
    is_int(redlock("acquire", "-t", "9", "-n", "-E", "3", "x", NULL), 3, "acquire -E");
    is_text(wrote(last, 'o'), "", "acquire -E: prints no token");
    is_int(with_value("redlock:x", "another's"), 3, "the other client's value is untouched");
    ask_all("PEXPIRE", "redlock:x", "1500");
    is_int(redlock("run", "x", "-c", "exit 4", NULL), 4,
           "a waiter acquires the lock when it expires");
    ask(0, "SET", "redlock:x", "one");
    ask(1, "SET", "redlock:x", "two");
    is_int(redlock("run", "-n", "x", "true", NULL), 75, "a vote that stays split: 75");
    ask_all("DEL", "redlock:x");
    no_key_left("after these");
}

/* -E 0 means "the job runs elsewhere". That is reported only if one holder has a majority. */
static void nobody_holds_it(void)
{
    static const char *const value[] = {"one", "two", "three", "four", "five"};
    unsigned i;

    nodes(5);
    setenv("REDLOCK_NODE_TIMEOUT", "2", 1); /* the healthy servers must answer in time */
    ask(0, "SET", "redlock:x", "stale");
    server_pause(&servers[3]);
    server_pause(&servers[4]);
    is_int(redlock("run", "-n", "-E", "0", "x", "echo", "ran", NULL), 69,
           "two of five hang, one has a stale value: 69");
    ok(strstr(wrote(last, 'e'), "taken on 1") != NULL &&
           strstr(wrote(last, 'e'), servers[3].address) != NULL,
       "the message counts votes and names the nodes");
    is_text(wrote(last, 'o'), "", "the command does not run");
    is_int(redlock("run", "-w", ".5", "-E", "0", "x", "true", NULL), 69, "also with -w: 69");
    is_int(redlock("acquire", "-n", "-t", "60", "-E", "3", "x", NULL), 69, "also acquire: 69");
    ask(1, "SET", "redlock:x", "another's");
    ask(2, "SET", "redlock:x", "another's");
    resume_all();
    ask(3, "SET", "redlock:x", "another's");
    is_int(redlock("run", "-n", "-E", "0", "x", "true", NULL), 0, "one holder has a majority: -E");
    for (i = 0; i < 5; i++)
        ask(i, "SET", "redlock:x", value[i]);
    is_int(redlock("run", "-n", "x", "true", NULL), 75, "each node has another holder: 75");
    ask_all("DEL", "redlock:x");
    no_key_left("after these");
}

static void two_of_three_down(void)
{
    struct program run;
    char token[300];
    unsigned i;

    nodes(3);
    redlock("acquire", "-t", "60", "y", NULL);
    line_of(last, token);
    ask(0, "DEL", "redlock:y");
    server_kill(&servers[1]);
    server_kill(&servers[2]);
    setenv("REDLOCK_NODE_TIMEOUT", ".25", 1);
    is_int(redlock("run", "-n", "x", "echo", "ran", NULL), 69, "refused: 69");
    ok(strstr(wrote(last, 'e'), servers[1].address) && strstr(wrote(last, 'e'), servers[2].address),
       "the message names the nodes");
    ok(*wrote(last, 'o') == '\0', "the command does not run");
    is_text(ask(0, "KEYS", "*"), "", "no partial key");
    is_int(redlock("acquire", "-n", "-t", "9", "x", NULL), 69, "acquire");
    is_int(redlock_with(token, "release", "y", NULL), 69, "release");
    ok(strncmp(wrote(last, 'e'),
               "redlock: y: no quorum: 1 of 3 nodes confirmed the release, 2 needed; the lock "
               "expires with its ttl at the latest\n",
               102) == 0,
       "one node says that the key is not there: %s", wrote(last, 'e'));
    is_int(redlock("release", "--force", "00000000", "x", NULL), 69, "force");
    is_int(redlock("status", "x", NULL), 69, "status");
    for (i = 1; i < 3; i++) {
        server_restart(&servers[i]);
        server_pause(&servers[i]);
    }
    is_int(redlock("run", "-n", "x", "echo", "ran", NULL), 69, "hung: 69");
    is_text(ask(0, "KEYS", "*"), "", "no partial key");
    is_int(redlock("status", "x", NULL), 69, "status");
    is_int(count_of(wrote(last, 'e'), ": no answer within 1000 ms\n"), 1,
           "status: it says why, once for both nodes: %s", wrote(last, 'e'));
    is_int(redlock("acquire", "-n", "-t", "9", "x", NULL), 69, "acquire");
    is_int(redlock_with(token, "release", "y", NULL), 69, "release");
    setenv("REDLOCK_TOKEN", token, 1); /* else a script would go on after Ctrl-C */
    run = start("release", "--node-timeout", "1", "y", NULL);
    unsetenv("REDLOCK_TOKEN");
    sleep_ms(100);
    signal_to(run.pid, SIGINT);
    is_int(ends(&run), -SIGINT, "release: ends by SIGINT");
    resume_all();
    no_key_left("on the servers that hung");
}

static void unavailable(void)
{
    struct program run;
    long begin;

    nodes(3);
    server_kill(&servers[1]);
    server_kill(&servers[2]);
    begin = now_ms();
    setenv("REDLOCK_UNAVAILABLE_TIMEOUT", "1", 1);
    is_int(redlock("run", "x", "true", NULL), 69, "--unavailable-timeout 1");
    unsetenv("REDLOCK_UNAVAILABLE_TIMEOUT");
    ok(now_ms() - begin >= 1000, "--unavailable-timeout 1: after 1 s (%ld ms)", now_ms() - begin);
    begin = now_ms();
    setenv("REDLOCK_UNAVAILABLE_TIMEOUT", "0", 1);
    is_int(redlock("run", "-w", "1.5", "x", "true", NULL), 69, "-w with no quorum");
    unsetenv("REDLOCK_UNAVAILABLE_TIMEOUT");
    ok(now_ms() - begin >= 1500, "-w with no quorum waits 1.5 s (%ld ms)", now_ms() - begin);
    is_text(ask(0, "KEYS", "redlock:*"), "", "no partial key");
    setenv("REDLOCK_UNAVAILABLE_TIMEOUT", "0", 1);
    run = start("run", "x", "-c", "exit 4", NULL);
    unsetenv("REDLOCK_UNAVAILABLE_TIMEOUT");
    sleep_ms(1500);
    ok(!has_ended(run), "--unavailable-timeout 0: still waits");
    server_restart(&servers[1]);
    is_int(ends(&run), 4, "--unavailable-timeout 0: acquires the lock when a quorum is back");
    server_restart(&servers[2]);
    ask_all("SET", "redlock:x", "another's");
    setenv("REDLOCK_UNAVAILABLE_TIMEOUT", "3", 1);
    run = start("run", "x", "-c", "exit 4", NULL);
    unsetenv("REDLOCK_UNAVAILABLE_TIMEOUT");
    sleep_ms(5000);
    ok(!has_ended(run), "a quorum that refuses counts as available: still waits");
    ask_all("DEL", "redlock:x");
    is_int(ends(&run), 4, "acquires the lock when it is released");
    no_key_left("after these");
}

/* Starts the program while no server runs, and the servers a second later. Returns its exit status. */
static int before_the_servers(const char *verb, const char *option, const char *name)
{
    struct program run;
    unsigned i;
    int is_run = strcmp(verb, "run") == 0;

    for (i = 0; i < node_count; i++)
        server_kill(&servers[i]);
    run = start(verb, option, name, is_run ? "-c" : NULL, "exit 4", NULL);
    sleep_ms(1000);
    for (i = 0; i < node_count; i++)
        server_restart(&servers[i]);
    return ends(&run);
}

/* -n waits for servers, and not for a holder. So does release. */
static void servers_come_later(void)
{
    static const char *const options[] = {"--appendonly", "yes", "--appendfsync", "always", NULL};
    char token[300];
    long begin;

    node_count = 3;
    servers_start(servers, 3, options);
    setenv("REDLOCK_NODES", list_of(3, ""), 1);
    setenv("REDLOCK_UNAVAILABLE_TIMEOUT", "60", 1);
    is_int(before_the_servers("run", "-n", "x"), 4, "run -n: the servers come later");
    is_int(before_the_servers("run", "-w0", "x"), 4, "run -w 0");
    is_int(redlock("acquire", "-n", "-t", "600", "x", NULL), 0, "acquire");
    setenv("REDLOCK_TOKEN", line_of(last, token), 1);
    is_int(redlock("run", "-n", "x", "true", NULL), 75, "a holder is not waited for");
    setenv("REDLOCK_NODE_TIMEOUT", ".2", 1); /* the least time of release is four times this */
    is_int(before_the_servers("release", "x", NULL), 0, "release");
    unsetenv("REDLOCK_UNAVAILABLE_TIMEOUT");
    server_kill(&servers[1]);
    server_kill(&servers[2]);
    begin = now_ms();
    is_int(redlock("acquire", "-n", "-t", "60", "x", NULL), 69, "acquire -n without servers");
    ok(now_ms() - begin >= 2000, "after two seconds (%ld ms)", now_ms() - begin);
    ok(strstr(wrote(last, 'e'), "Connection refused") != NULL, "which says why");
    setenv("REDLOCK_UNAVAILABLE_TIMEOUT", "0.1", 1);
    is_int(redlock("run", "-n", "--slots", "2", "x", "true", NULL), 69, "a slot, with a limit");
    ok(strstr(wrote(last, 'e'), "Connection refused") != NULL, "which says why");
}

/* The servers hang during a release, for so long that it is sent again. The second one finds no key. So nobody knows whether the lock
   had expired before: that is no loss, and no success. */
static void released_by_hung_servers(void)
{
    struct program release;
    char token[300];
    unsigned i;

    nodes(3);
    setenv("REDLOCK_UNAVAILABLE_TIMEOUT", "60", 1);
    setenv("REDLOCK_NODE_TIMEOUT", ".05", 1);
    is_int(redlock("acquire", "-t", "600", "x", NULL), 0, "acquire");
    setenv("REDLOCK_TOKEN", line_of(last, token), 1);
    for (i = 0; i < 3; i++)
        server_pause(&servers[i]);
    release = start("release", "x", NULL);
    sleep_ms(3000);
    for (i = 0; i < 3; i++)
        server_resume(&servers[i]);
    is_int(ends(&release), 69, "release");
    ok(strstr(wrote(release, 'e'), "x: the lock was released, or had expired before: ") != NULL,
       "it says that both may be: %s", wrote(release, 'e'));
    no_key_left("then");
    is_int(redlock("release", "x", NULL), 79, "once more: no lock has this token");
}

/* The same if the connections break before the replies come, and the client is connected again at once. */
static void released_by_broken_connections(void)
{
    struct program release;
    char token[300];
    pid_t proxy;
    unsigned i;

    proxy = nodes_behind_proxies();
    setenv("REDLOCK_NODE_TIMEOUT", "2", 1);
    is_int(redlock("acquire", "-t", "600", "x", NULL), 0, "acquire");
    setenv("REDLOCK_TOKEN", line_of(last, token), 1);
    set_distance(300);
    release = start("release", "x", NULL);
    ok(until(with_key("redlock:x") == 0, WAIT_MS), "the servers have deleted the keys");
    for (i = 0; i < 3; i++)
        proxies[i].mode = PROXY_DROP; /* their replies are under way */
    is_int(ends(&release), 69, "release");
    ok(strstr(wrote(release, 'e'), "x: the lock was released, or had expired before: ") != NULL,
       "it says that both may be: %s", wrote(release, 'e'));
    signal_to(proxy, SIGKILL);
    waitpid(proxy, NULL, 0);
}

/* Nodes that accept connections and say nothing, for longer than --unavailable-timeout: also the attempt that is to find
   the cause is given up. */
static void unavailable_and_slow(void)
{
    nodes(3);
    server_pause(&servers[1]);
    server_pause(&servers[2]);
    setenv("REDLOCK_UNAVAILABLE_TIMEOUT", "0.2", 1);
    is_int(redlock("run", "x", "true", NULL), 69, "a timeout that is shorter than an attempt");
    unsetenv("REDLOCK_UNAVAILABLE_TIMEOUT");
    ok(strstr(wrote(last, 'e'), "x: no quorum: ") != NULL, "says why");
    setenv("REDLOCK_UNAVAILABLE_TIMEOUT", "0.2", 1);
    is_int(redlock("acquire", "-t", "60", "x", NULL), 69, "acquire");
    unsetenv("REDLOCK_UNAVAILABLE_TIMEOUT");
    ok(strstr(wrote(last, 'e'), "x: no quorum: ") != NULL, "says so");
    server_resume(&servers[1]);
    server_resume(&servers[2]);
    no_key_left("then");
}

/* All servers begin to answer when 1.6 times of --node-timeout are over, as behind a slow tunnel: no verb gives up. */
static void slow_first_answer(void)
{
    static const char *const line[][5] = {{"run", "x", "true", NULL},
                                          {"run", "-n", "x", "true", NULL},
                                          {"acquire", "-t", "60", "y", NULL},
                                          {"status", "z", NULL},
                                          {"status", "--here", "z", NULL},
                                          {"status", NULL},
                                          {"release", "z", NULL}};
    static const int statuses[] = {0, 0, 0, 0, 1, 0, 0}; /* acquire has ended */
    pid_t proxy = nodes_behind_proxies();
    struct program run;
    char token[300];
    size_t i, n;

    setenv("REDLOCK_NODE_TIMEOUT", "1", 1);
    redlock("acquire", "-t", "90", "z", NULL);
    setenv("REDLOCK_TOKEN", line_of(last, token), 1);
    for (i = 0; i < sizeof line / sizeof *line; i++) {
        for (n = 0; n < 3; n++)
            proxies[n].mode = PROXY_HOLE;
        run = start(line[i][0], line[i][1], line[i][2], line[i][3], line[i][4], NULL);
        sleep_ms(1600);
        for (n = 0; n < 3; n++)
            proxies[n].mode = PROXY_PASS;
        is_int(ends(&run), statuses[i], "%s %s", line[i][0], line[i][1] != NULL ? line[i][1] : "");
    }
    signal_to(proxy, SIGKILL);
    waitpid(proxy, NULL, 0);
    ask_all("FLUSHALL");
}

static long long start_at_us;

static void wait_for_the_others(void)
{
    struct timespec at = {start_at_us / 1000000, start_at_us % 1000000 * 1000};

    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

static void thirty(void)
{
    enum { PROGRAMS = 30, ROUNDS = 50 };
    struct program runs[PROGRAMS];
    int round, i, winners, losers, right = 0;

    nodes(5);
    setenv("REDLOCK_NODE_TIMEOUT", "2", 1);
    for (round = 0; round < ROUNDS; round++) {
        start_at_us = now_us() + 100000;
        for (i = 0; i < PROGRAMS; i++) {
            setup.before = wait_for_the_others;
            runs[i] = start("acquire", "-n", "-t", "60", "x", NULL);
        }
        for (i = winners = losers = 0; i < PROGRAMS; i++) {
            int status = ends(&runs[i]);
            winners += status == 0;
            losers += status == 75;
        }
        right += winners == 1 && losers == PROGRAMS - 1;
        if (winners != 1 || losers != PROGRAMS - 1)
            fprintf(stderr, "# round %d: %d winners, %d losers\n", round, winners, losers);
        ask_all("FLUSHALL");
    }
    is_int(right, ROUNDS,
           "%d programs at the same moment: one runs, the others end with 75, each time", PROGRAMS);
}

/* A script whose stderr is no terminal. */
static void long_wait(void)
{
    struct program waiter, slot, quiet, watched;
    long begin;

    nodes(3);
    ask_all("SET", "redlock:x", "another's");
    ask_all("SET", "redlock:x/2.1", "another's");
    ask_all("SET", "redlock:x/2.2", "another's");
    begin = now_ms();
    waiter = start("run", "x", "true", NULL);
    slot = start("run", "--slots", "2", "x", "true", NULL);
    quiet = start("acquire", "-q", "-t", "60", "x", NULL);
    watched = start("run", "-v", "x", "true", NULL);
    ok(writes(watched, 'e', "redlock: waiting for x, held by id ") && now_ms() - begin < 25000,
       "with -v a message comes after a second (%ld ms)", now_ms() - begin);
    is_text(wrote(waiter, 'e'), "", "without, there is none yet");
    ok(writes(waiter, 'e', "redlock: waiting for x, held by id "), "then a line says for whom");
    ok(now_ms() - begin > 29000, "after 30 s (%ld ms)", now_ms() - begin);
    ok(writes(slot, 'e', "redlock: waiting for x: all 2 slots are held\n"), "also with --slots");
    ok(until(count_of(wrote(watched, 'e'), "waiting for x") > 2, WAIT_MS),
       "with -v it comes again and again");
    is_int(count_of(wrote(waiter, 'e'), "\n"), 1, "without, once: %s", wrote(waiter, 'e'));
    is_text(wrote(quiet, 'e'), "", "with -q it does not come");
    signal_to(quiet.pid, SIGTERM);
    is_int(ends(&quiet), -SIGTERM, "one is ended");
    ask_all("FLUSHALL");
    is_int(ends(&waiter) + ends(&slot) + ends(&watched), 0, "the others get the lock");
}

/* ---- Signals ---- */

static void term_while_waiting(void)
{
    enum { SIGNALS = 10 };
    const int signals[SIGNALS] = {SIGTERM,   SIGINT,  SIGHUP, SIGQUIT, SIGALRM,
                                  SIGVTALRM, SIGPROF, SIGIO,  SIGPWR,  SIGRTMIN + 3};
    struct program run[SIGNALS], acquire;
    size_t i;

    nodes(3);
    ask(0, "SET", "redlock:x", "another's"); /* on the third server each attempt sets its key */
    ask(1, "SET", "redlock:x", "another's");
    for (i = 0; i < SIGNALS; i++)
        run[i] = start("run", "x", "echo", "ran", NULL);
    acquire = start("acquire", "-t", "60", "x", NULL);
    sleep_ms(700);
    for (i = 0; i < SIGNALS; i++)
        signal_to(run[i].pid, signals[i]);
    signal_to(acquire.pid, SIGTERM);
    for (i = 0; i < SIGNALS; i++) {
        is_int(ends(&run[i]), -signals[i], "run, while waiting: ends by signal %d", signals[i]);
        is_text(wrote(run[i], 'o'), "", "run, while waiting: the command does not run");
    }
    is_int(ends(&acquire), -SIGTERM, "acquire, while waiting: ends by SIGTERM");
    is_text(wrote(acquire, 'o'), "", "acquire, while waiting: prints no token");
    is_text(ask(0, "ZCARD", "redlock:x:wait"), "0", "no waiter is left in the queue");
    is_int(with_value("redlock:x", "another's"), 2, "the other client's values are untouched");
    ask(0, "DEL", "redlock:x");
    ask(1, "DEL", "redlock:x");
    no_key_left("of the waiters");
}

/* The command hears only what was sent while it ran: a signal from the wait would end it before it has a handler, or stop
   it for as long as the lock is renewed. */
static char journal[60]; /* JOURNAL_STREAM; "": that of stderr */

/* In the child: stderr is the journal. */
static void be_journal(void)
{
    struct stat status;
    char text[60];

    if (fstat(STDERR_FILENO, &status) != 0)
        _exit(125);
    snprintf(text, sizeof text, "%lu:%lu", (unsigned long)status.st_dev,
             (unsigned long)status.st_ino);
    setenv("JOURNAL_STREAM", journal[0] != '\0' ? journal : text, 1);
}

/* Each line has its level for the journal, also that of the guard. */
static void journal_levels(void)
{
    struct program run;
    const char *at;

    nodes(3);
    setup.before = be_journal;
    is_int(redlock("acquire", "x", NULL), 64, "an error");
    is_text(wrote(last, 'e'), "<3>redlock: acquire: -t TTL is required: the lock is not renewed\n",
            "<3>");
    setup.before = be_journal;
    is_int(redlock("run", "-v", "x", "-c", "sleep 60 & exit 4", NULL), 4, "notices");
    ok(strncmp(wrote(last, 'e'), "<7>redlock: x: acquired on ", 27) == 0, "<7>: %s",
       wrote(last, 'e'));
    ok(strstr(wrote(last, 'e'), "\n<5>redlock: x: the command has ended; 1 process of it ") != NULL,
       "<5>, of the guard: %s", wrote(last, 'e'));
    is_int(count_of(wrote(last, 'e'), "redlock: "), count_of(wrote(last, 'e'), ">redlock: "),
           "each line has a level");
    at = strstr(wrote(last, 'e'), "without the lock: ");
    signal_to(at != NULL ? atoi(at + 18) : 0, SIGKILL);
    setup.before = be_journal;
    run = start("run", "-t", "60", "x", "-c", "exec sleep 300", NULL);
    on_most("redlock:x");
    ask_all("SET", "redlock:y", "another's");
    setup.before = be_journal;
    is_int(redlock("run", "-n", "y", "true", NULL), 75, "held by another client");
    ok(strncmp(wrote(last, 'e'), "<5>redlock: y: ", 15) == 0, "<5>: %s", wrote(last, 'e'));
    server_kill(&servers[2]);
    setup.before = be_journal;
    redlock("status", "x", NULL);
    ok(strncmp(wrote(last, 'e'), "<4>redlock: ", 12) == 0, "<4>: %s", wrote(last, 'e'));
    server_restart(&servers[2]);
    signal_to(run.pid, SIGTERM);
    ends(&run);
    snprintf(journal, sizeof journal, "1:2");
    setup.before = be_journal;
    is_int(redlock("acquire", "x", NULL), 64, "stderr is not the journal of JOURNAL_STREAM");
    ok(strncmp(wrote(last, 'e'), "redlock: ", 9) == 0, "no level: %s", wrote(last, 'e'));
    ask_all("FLUSHALL");
}

/* SIGTTIN from a process, not from a terminal, stops no waiter: it would lose its place in the queue. */
static void ttin_while_waiting(void)
{
    struct program run;

    nodes(3);
    ask_all("SET", "redlock:x", "another's");
    run = start("run", "-v", "x", "-c", "echo ran; exit 4", NULL);
    ok(writes(run, 'e', "waiting"), "it waits");
    signal_to(run.pid, SIGTTIN);
    ok(until(heard_signals(run.pid), WAIT_MS), "SIGTTIN is delivered");
    ask_all("DEL", "redlock:x");
    is_int(ends(&run), 4, "it still waits, and runs the command");
    no_key_left("then");
}

/* Kills a child that redlock has from its caller. Returns 1 when redlock has taken note of its end. */
static int is_reaped(struct program run, pid_t guard)
{
    pid_t child = child_of(run.pid, guard);

    signal_to(child, SIGKILL);
    return child > 0 && until(kill(child, 0) != 0, WAIT_MS);
}

/* No child stays a zombie while redlock waits: process 1 of a container gets those of others. */
static void children_of_the_caller(void)
{
    struct program run;
    pid_t guard;

    nodes(3);
    ask_all("SET", "redlock:x", "another's");
    setenv("P", program, 1);
    setup.instead = "sh";
    run = start("-c", "sleep 300 & sleep 300 & exec \"$P\" run -v --min-hold 300 x true", NULL);
    ok(writes(run, 'e', "waiting"), "it waits");
    ok(is_reaped(run, 0), "a child ends meanwhile");
    ask_all("DEL", "redlock:x");
    ok(writes(run, 'e', "--min-hold keeps the lock for "), "it stays");
    guard = child_of(run.pid, 0);
    if (!is_called(guard, "rl-guard"))
        guard = child_of(run.pid, guard);
    ok(is_reaped(run, guard), "a child ends meanwhile");
    signal_to(run.pid, SIGTERM);
    is_int(ends(&run), 0, "the status of the command");
    ask_all("FLUSHALL");
}

static void other_signals_while_waiting(void)
{
    static const int signals[] = {SIGUSR1, SIGUSR2, SIGTSTP};
    struct program run;
    int status;
    size_t i;

    nodes(3);
    for (i = 0; i < sizeof signals / sizeof *signals; i++) {
        ask_all("SET", "redlock:x", "another's");
        run = start("run", "-v", "x", "-c", "echo ran; exit 4", NULL);
        ok(writes(run, 'e', "waiting"), "it waits");
        signal_to(run.pid, signals[i]);
        until(has_ended(run), 300);
        signal_to(run.pid, SIGCONT);
        ask_all("DEL", "redlock:x");
        status = ends(&run); /* either may come first: the signal, or the lock */
        if (signals[i] == SIGTSTP || status != -signals[i]) {
            is_int(status, 4, "signal %d does not reach the command", signals[i]);
            is_text(wrote(run, 'o'), "ran\n", "which runs");
        } else {
            is_text(wrote(run, 'o'), "", "or the signal ends redlock itself");
        }
        no_key_left("then");
    }
}

static void signals_while_running(void)
{
    static const int signals[] = {SIGTERM, SIGHUP, SIGQUIT, SIGINT, SIGUSR1, SIGUSR2, SIGWINCH};
    struct beat *a = map_beat(beat_path("a")), *b = map_beat(beat_path("b"));
    struct program run;
    size_t i;

    nodes(3);
    run = start("run", "-t", "6", "x", self, "beat", beat_path("a"), beat_path("b"), NULL);
    ok(beats(a) && beats(b), "a command and its child");
    for (i = 0; i < sizeof signals / sizeof *signals; i++) {
        signal_to(run.pid, signals[i]);
        ok(until(a->heard[signals[i]] >= 1, WAIT_MS), "signal %d reaches the command", signals[i]);
        if (i < 4)
            ok(until(b->heard[signals[i]] >= 1, WAIT_MS), "signal %d reaches its child",
               signals[i]);
    }
    signal_to(run.pid, SIGTERM);
    ok(until(a->heard[SIGTERM] == 2, WAIT_MS), "a second SIGTERM");
    sleep_ms(7000); /* longer than the TTL */
    ok(!has_ended(run) && on_all("redlock:x"), "the lock is held until the command ends");
    a->stop = b->stop = 1;
    is_int(ends(&run), 5, "the command's status");
    no_key_left("then");
    run = start("run", "x", "-c", "echo up; sleep 60", NULL);
    writes(run, 'o', "up");
    signal_to(run.pid, SIGTERM);
    is_int(ends(&run), 128 + SIGTERM, "a command that ends by SIGTERM: 143");
    no_key_left("then");
}

static void fork_fails(void)
{
    static const struct {
        const char *moment;
        int status;
    } moments[] = {{"term1", -SIGTERM}, {"alrm1", -SIGALRM}, {"fail1", 71}, {"fail2", 71}};
    char shim[300];
    size_t i;

    nodes(3);
    snprintf(shim, sizeof shim, "%.*s/fork_shim.so", (int)(strrchr(self, '/') - self), self);
    setenv("ASAN_OPTIONS", "verify_asan_link_order=0", 0);
    for (i = 0; i < sizeof moments / sizeof *moments; i++) {
        setenv("LD_PRELOAD", shim, 1);
        setenv("REDLOCK_FORK", moments[i].moment, 1);
        is_int(redlock("run", "-t", "60", "x", "-c", "echo ran", NULL), moments[i].status,
               "at a fork: %s", moments[i].moment);
        unsetenv("LD_PRELOAD");
        is_text(wrote(last, 'o'), "", "the command does not run");
        if (moments[i].status == 71)
            ok(strstr(wrote(last, 'e'), "redlock: x: the command cannot be started: ") != NULL,
               "the message has the name: %s", wrote(last, 'e'));
        no_key_left("then");
    }
    setenv("LD_PRELOAD", shim, 1);
    setenv("REDLOCK_FORK", "fail1", 1);
    is_int(redlock("status", "-N", servers[0].address, "x", NULL), 71, "status, without a process");
    is_int(redlock("check", "-N", servers[0].address, NULL), 3, "check, without a process");
    is_int(redlock("status", "x", NULL), 1, "status, with a process for two of three nodes");
    setenv("REDLOCK_FORK", "exec", 1);
    is_int(redlock("run", "-t", "60", "x", "-c", "echo ran", NULL), 143,
           "SIGTERM just before exec");
    unsetenv("LD_PRELOAD");
    is_text(wrote(last, 'o'), "", "SIGTERM just before exec: the command does not run");
    no_key_left("then");
    setenv("LD_PRELOAD", shim, 1);
    setenv("REDLOCK_FORK", "wait2", 1);
    is_int(redlock("run", "-t", "2", "x", "-c", "echo ran", NULL), 79,
           "a pause until the lock has expired, before the command begins: 79");
    /* the guard, which goes on in time, or redlock, which has given it up by then */
    ok(strstr(wrote(last, 'e'), "expired") != NULL, "it says so: %s", wrote(last, 'e'));
    ok(strstr(wrote(last, 'o'), "ran") == NULL, "the command does not run");
    setenv("REDLOCK_FORK", "wait1", 1);
    is_int(redlock("run", "-t", "2", "--keep-going", "x", "-c", "echo ran", NULL), 79,
           "the same with --keep-going");
    unsetenv("LD_PRELOAD");
    is_text(wrote(last, 'o'), "", "a pause until the lock has expired: the command does not run");
    no_key_left("then");
}

/* From now on the programs have the shim's functions. */
static void preload_shim(void)
{
    char shim[300];

    snprintf(shim, sizeof shim, "%.*s/fork_shim.so", (int)(strrchr(self, '/') - self), self);
    setenv("ASAN_OPTIONS", "verify_asan_link_order=0", 0);
    setenv("LD_PRELOAD", shim, 1);
}

/* A lock that is held for weeks is renewed more often than 16 bits count: with a ttl of 30 s after 7.6 days. Its pauses of
   10 s are skipped, but no wait for a server: that takes 7.5 s at most, a quarter of the ttl. */
static void renewed_for_weeks(void)
{
    enum { RENEWALS = 66000, LINE = sizeof "redlock: x: renewed; 29 s left\n" - 1 };
    struct program run;
    struct stat file;
    char messages[120];

    nodes(3);
    preload_shim();
    setenv("REDLOCK_SKIP", "1", 1);
    setenv("REDLOCK_NODE_TIMEOUT", "1", 1); /* stall_ms is four of these */
    run = start("run", "-v", "-t", "30", "x", "-c", "unset LD_PRELOAD; exec sleep 600", NULL);
    unsetenv("LD_PRELOAD");
    unsetenv("REDLOCK_SKIP");
    snprintf(messages, sizeof messages, "%s/%d.e", programs_folder(), run.number);
    ok(until(has_ended(run) || (stat(messages, &file) == 0 && file.st_size > RENEWALS * LINE),
             300000),
       "as many renewals");
    ok(!has_ended(run), "the command still runs: %s", wrote(run, 'e'));
    signal_to(run.pid, SIGTERM);
    is_int(ends(&run), 128 + SIGTERM, "until it is told to end");
    no_key_left("then");
}

/* ---- The lock's end ---- */

/* Starts a command that catches and ignores all signals, with such a child, under the lock `name`. */
static struct program start_deaf(const char *name, struct beat *maps[2], const char *option,
                                 const char *value)
{
    char first[40], second[40];
    struct program run;

    snprintf(first, sizeof first, "%s.1", name);
    snprintf(second, sizeof second, "%s.2", name);
    maps[0] = map_beat(beat_path(first));
    maps[1] = map_beat(beat_path(second));
    run = start("run", "-v", "-t", "9", "-k", "3", option, value, name, self, "beat",
                beat_path(first), beat_path(second), NULL);
    ok(beats(maps[0]) && beats(maps[1]), "%s: two processes", name);
    return run;
}

/* The second holder's command began after both processes of the first one had ended. */
static void never_both(const char *what, struct beat *const first[2], const struct beat *second)
{
    long long end = first[0]->last_us > first[1]->last_us ? first[0]->last_us : first[1]->last_us;

    ok(beats(second), "%s: another client acquires the lock", what);
    ok(second->first_us > end, "%s: the first command had ended %lld ms before", what,
       (second->first_us - end) / 1000);
}

/* Waits until both are gone: the kernel may take a moment after a kill. */
static int are_gone(struct beat *const pair[2])
{
    return until(!lives(pair[0]->pid) && !lives(pair[1]->pid), WAIT_MS);
}

/* When all nodes hang, the command gets SIGTERM at D - 1.5 s and is killed at D, also if redlock is stopped. */
static void nodes_hang(void)
{
    struct beat *a[2], *b[2], *c = map_beat(beat_path("c")), *d = map_beat(beat_path("d"));
    struct program runs, stops, waits[2];
    long long paused_us;

    nodes(3);
    setenv("REDLOCK_NODE_TIMEOUT", ".3", 1);
    runs = start_deaf("x", a, "-l", "");
    stops = start_deaf("y", b, "-l", "");
    setenv("REDLOCK_UNAVAILABLE_TIMEOUT", "0", 1);
    waits[0] = start("run", "-t", "9", "x", self, "beat", beat_path("c"), NULL);
    unsetenv("REDLOCK_UNAVAILABLE_TIMEOUT");
    setenv("REDLOCK_UNAVAILABLE_TIMEOUT", "0", 1);
    waits[1] = start("run", "-t", "9", "y", self, "beat", beat_path("d"), NULL);
    unsetenv("REDLOCK_UNAVAILABLE_TIMEOUT");
    ok(writes(runs, 'e', "renewed") && writes(stops, 'e', "renewed"), "both locks are renewed");
    pause_all();
    paused_us = now_us();
    ok(until(a[0]->heard[SIGTERM] && a[1]->heard[SIGTERM], WAIT_MS),
       "command and child get SIGTERM");
    ok(a[0]->term_us - paused_us > 1000000, "SIGTERM is not sent before D - 1.5 s");
    ok(a[0]->term_us - paused_us < 9000000, "SIGTERM is not sent after D (%lld ms)",
       (a[0]->term_us - paused_us) / 1000);
    ok(until(b[0]->heard[SIGTERM] && b[1]->heard[SIGTERM], WAIT_MS),
       "those of the other lock, too");
    signal_to(stops.pid, SIGSTOP);
    while (now_us() - paused_us < 11000000) /* the keys have expired; the kill at D may be late */
        sleep_ms(10);
    resume_all();
    is_int(ends(&runs), 79, "redlock runs: 79");
    never_both("redlock runs", a, c);
    ok(a[0]->last_us - a[0]->term_us > 500000, "the command had time to end (%lld ms)",
       (a[0]->last_us - a[0]->term_us) / 1000);
    never_both("stopped", b, d);
    ok(are_gone(a) && are_gone(b), "no process of the commands is left");
    signal_to(stops.pid, SIGCONT);
    is_int(ends(&stops), 79, "the stopped redlock continues: 79");
    ok(strstr(wrote(runs, 'e'), "; the command is ended\n") &&
           strstr(wrote(runs, 'e'), "renewal failed: fewer than 2 of 3 nodes"),
       "messages: %s", wrote(runs, 'e'));
    c->stop = d->stop = 1;
    is_int(ends(&waits[0]), 5, "the second holder of x: its command's status");
    is_int(ends(&waits[1]), 5, "the second holder of y: its command's status");
    /* nodes that hung may have run commands since, which set keys with a TTL of 9 s */
    is_int(servers_keys_left("redlock:*", 15000), 0, "no key is left then");
}

static void supervisor_dies(void)
{
    struct beat *a[2], *b[2], *c[2], *e = map_beat(beat_path("e"));
    struct program killed, stopped, both, waits;
    long long begin;
    pid_t guard;

    nodes(3);
    killed = start_deaf("killed", a, "-t", "60");
    stopped = start_deaf("stopped", b, "-l", "");
    both = start_deaf("both", c, "-t", "60");
    waits = start("run", "stopped", self, "beat", beat_path("e"), NULL);
    signal_to(stopped.pid, SIGSTOP);
    begin = now_us();
    signal_to(killed.pid, SIGKILL);
    ok(until(!lives(a[0]->pid) && !lives(a[1]->pid), 30000),
       "kill -9: all are gone, long before the lock expires (%lld ms)", (now_us() - begin) / 1000);
    is_int(ends(&killed), -SIGKILL, "kill -9: the status");
    ok(on_most("redlock:killed"), "kill -9: the lock stays until it expires");
    ok(writes(killed, 'e', "was killed"), "kill -9: the guard prints a message");

    guard = child_of(both.pid, 0);
    ok(guard != 0, "there is a guard");
    ok(is_called(both.pid, "redlock") && until(!is_called(guard, "redlock"), WAIT_MS) &&
           is_called(guard, "rl-guard"),
       "killall -9 redlock does not find the guard");
    signal_to(both.pid, SIGSTOP); /* so that it does not see the guard die */
    signal_to(guard, SIGKILL);
    signal_to(both.pid, SIGKILL);
    ok(until(!lives(c[0]->pid), 30000), "kill -9 of guard and redlock: the command is gone");
    is_int(ends(&both), -SIGKILL, "kill -9 of guard and redlock: the status");
    signal_to(c[1]->pid, SIGKILL);

    never_both("kill -STOP", b, e);
    ok(are_gone(b), "kill -STOP: no process of the command is left");
    signal_to(stopped.pid, SIGCONT);
    is_int(ends(&stopped), 79, "the stopped redlock continues: 79");
    ok(on_all("redlock:stopped"),
       "the stopped redlock continues: the new holder's lock is untouched");
    e->stop = 1;
    is_int(ends(&waits), 5, "the new holder: its command's status");
    ask_all("FLUSHALL");
}

static void await_renewal(struct program run)
{
    int before = count_of(wrote(run, 'e'), "renewed");

    ok(until(count_of(wrote(run, 'e'), "renewed") > before, WAIT_MS), "it is renewed");
}

/* A majority of nodes loses the key, or has another client's value; nodes restart, two at a time. */
static void keys_vanish(void)
{
    struct beat *a[2], *b[2], *c[2];
    struct program flushed, stolen, repaired;
    unsigned i;
    int is_repaired;

    nodes(5);
    repaired = start_deaf("repaired", c, "-l", "");
    on_all("redlock:repaired");
    await_renewal(repaired);
    await_renewal(repaired); /* now all nodes are confirmed */
    server_restart(&servers[0]);
    server_restart(&servers[1]);
    is_repaired = on_all("redlock:repaired");
    await_renewal(repaired);
    ok(is_repaired, "two nodes have lost the key: it is repaired there");
    server_restart(&servers[2]);
    server_restart(&servers[3]);
    is_repaired = on_all("redlock:repaired");
    ok(is_repaired && !has_ended(repaired),
       "two other nodes have lost the key: it is repaired there");
    c[0]->stop = c[1]->stop = 1;
    is_int(ends(&repaired), 5, "the command gets no signal");

    stolen = start_deaf("stolen", b, "-t", "18");
    flushed = start_deaf("flushed", a, "-t", "18");
    await_renewal(flushed);
    /* so that no renewal repairs the first nodes before all are deleted */
    signal_to(flushed.pid, SIGSTOP);
    for (i = 0; i < 3; i++)
        ask(i, "DEL", "redlock:flushed");
    signal_to(flushed.pid, SIGCONT);
    for (i = 0; i < 3; i++)
        ask(i, "SET", "redlock:stolen", "another's");
    ok(until(b[0]->heard[SIGTERM] && b[1]->heard[SIGTERM], WAIT_MS),
       "a majority has another client's value: TERM");
    is_int(ends(&stolen), 79, "a majority has another client's value: 79");
    is_int(with_value("redlock:stolen", "another's"), 3, "the other client's value is untouched");
    ok(b[0]->last_us - b[0]->term_us < 9000000,
       "a majority has another client's value: KILL soon after");
    ok(until(a[0]->heard[SIGTERM] && a[1]->heard[SIGTERM], WAIT_MS),
       "a majority has lost the key: TERM");
    is_int(ends(&flushed), 79, "a majority has lost the key: 79");
    ok(are_gone(a), "no process of the command is left");
    ok(strstr(wrote(flushed, 'e'), "; the command is ended\n") != NULL, "a message");
    ask_all("DEL", "redlock:stolen");
    no_key_left("then");
}

static void min_hold(void)
{
    struct program run;
    long begin = now_ms();

    nodes(5);
    is_int(redlock("run", "-n", "--min-hold", "2", "x", "-c", "exit 3", NULL), 3,
           "--min-hold: the status of the command");
    ok(now_ms() - begin >= 2000, "redlock stays until the time is over (%ld ms)", now_ms() - begin);
    no_key_left("then");
    run = start("run", "-v", "-n", "-t", "9", "--min-hold", "50", "y", "-c", "exit 4", NULL);
    ok(writes(run, 'e', "--min-hold keeps the lock for "), "the command has ended");
    is_int(redlock("run", "-n", "y", "true", NULL), 75, "no other client acquires it meanwhile");
    begin = now_ms();
    signal_to(run.pid, SIGTERM);
    is_int(ends(&run), 4, "a signal ends the wait: the status of the command");
    ok(on_most("redlock:y") && longest("redlock:y") > 50000 - 9000 - (now_ms() - begin),
       "and the lock stays for its ttl");
    ask_all("FLUSHALL");
    run = start("run", "-v", "-n", "--min-hold", "60", "x", "true", NULL);
    ok(writes(run, 'e', "--min-hold keeps the lock for "), "the command has ended");
    signal_to(run.pid, SIGKILL);
    is_int(ends(&run), -SIGKILL, "redlock is killed then");
    ok(on_most("redlock:x") && longest("redlock:x") > 20000, "the lock stays");
    ask_all("FLUSHALL");
    is_int(redlock("run", "-n", "--min-hold", ".2", "x", "sleep", "1", NULL), 0,
           "--min-hold below the time of the command");
    is_int(redlock("run", "-n", "--min-hold", "1", "x", "no-such-command", NULL), 127,
           "--min-hold with a command that is not found");
    no_key_left("then");
}

/* A signal that has ended the job ends redlock, too. The lock is not released: it stays on the nodes for --min-hold. */
static void min_hold_and_a_signal(void)
{
    struct beat *a = map_beat(beat_path("a"));
    struct program run;
    int terminal;

    nodes(3);
    run = start("run", "-t", "9", "--min-hold", "300", "x", self, "beat", beat_path("a"), "polite",
                NULL);
    ok(beats(a) && on_all("redlock:x"), "it runs");
    signal_to(run.pid, SIGTERM);
    is_int(ends(&run), 5, "SIGTERM: the status of the command");
    ok(with_key("redlock:x") == 3 && longest("redlock:x") > 200000, "the lock stays");
    run = start_on_terminal(&terminal, "run", "--min-hold", "300", "y", "-c",
                            "echo up; exec sleep 300", NULL);
    screen(terminal, "up");
    type(terminal, "\x03");
    is_int(ends(&run), -SIGINT, "Ctrl-C ends both");
    ok(on_most("redlock:y") && longest("redlock:y") > 200000, "the lock stays");
    close(terminal);
    ask_all("FLUSHALL");
}

/* A majority that is away at the end does not shorten --min-hold. */
static void min_hold_and_no_majority(void)
{
    struct beat *a = map_beat(beat_path("a")), *b = map_beat(beat_path("b"));
    struct program run, next;
    long long begin = now_us();
    char list[300];
    pid_t proxy;

    nodes(3);
    proxies =
        mmap(NULL, 2 * sizeof *proxies, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    proxies[0].to = servers[1].port;
    proxies[1].to = servers[2].port;
    proxies[0].mode = proxies[1].mode = PROXY_PASS;
    proxy = proxies_start(proxies, 2);
    snprintf(list, sizeof list, "%s,%s,%s", servers[0].address, proxies[0].address,
             proxies[1].address);
    setenv("REDLOCK_NODES", list, 1);
    run = start("run", "--node-timeout", ".25", "-t", "3", "--min-hold", "9", "x", self, "beat",
                beat_path("a"), NULL);
    ok(beats(a) && on_all("redlock:x"), "it runs");
    begin = now_us();
    proxies[0].mode = proxies[1].mode = PROXY_RESET;
    a->stop = 1;
    is_int(ends(&run), 5, "it ends while two of three are away");
    ok(now_us() - begin > 7500000, "when --min-hold is over (%lld ms)", (now_us() - begin) / 1000);
    proxies[0].mode = proxies[1].mode = PROXY_PASS;
    next = start("run", "x", self, "beat", beat_path("b"), NULL);
    ok(beats(b), "the next one runs");
    b->stop = 1;
    is_int(ends(&next), 5, "the next one ends");
    run = start("run", "-v", "-t", "3", "--min-hold", "7", "y", "sleep", "1", NULL);
    is_int(ends(&run), 0, "a command that is shorter than --min-hold");
    ok(count_of(wrote(run, 'e'), "failed") == 0, "no renewal fails meanwhile");
    signal_to(proxy, SIGKILL);
    waitpid(proxy, NULL, 0);
    ask_all("FLUSHALL");
}

static void nodes_down_at_the_end(void)
{
    struct beat *a = map_beat(beat_path("a")), *b = map_beat(beat_path("b")),
                *c = map_beat(beat_path("c"));
    static const char unconfirmed[] = ": no quorum: 0 of 3 nodes confirmed the release, 2 needed; "
                                      "the lock expires with its ttl at the latest\n";
    struct program plain, held, killed;
    long begin;

    nodes(3);
    setenv("REDLOCK_NODE_TIMEOUT", ".25", 1);
    plain = start("run", "x", self, "beat", beat_path("a"), NULL);
    held = start("run", "--min-hold", "1", "y", self, "beat", beat_path("b"), NULL);
    killed = start("run", "z", self, "beat", beat_path("c"), NULL);
    ok(beats(a) && beats(b) && beats(c), "three run");
    pause_all();
    a->stop = b->stop = 1;
    begin = now_ms();
    is_int(ends(&plain), 5, "all nodes hang: the command's status");
    is_int(ends(&held), 5, "all nodes hang, with --min-hold: the command's status");
    ok(now_ms() - begin < 20000, "all nodes hang: ends before the lock expires (%ld ms)",
       now_ms() - begin);
    ok(strstr(wrote(plain, 'e'), unconfirmed) != NULL && strstr(wrote(held, 'e'), unconfirmed),
       "all nodes hang: a message: %s", wrote(plain, 'e'));
    resume_all();
    server_kill(&servers[0]);
    server_kill(&servers[1]);
    server_kill(&servers[2]);
    c->stop = 1;
    begin = now_ms();
    is_int(ends(&killed), 5, "all nodes are gone: the command's status");
    ok(now_ms() - begin < 20000, "all nodes are gone: ends before the lock expires (%ld ms)",
       now_ms() - begin);
}

/* The command has ended in time, but redlock was stopped. Another client has the lock by now; or the kernel continues redlock before the
   lock expires. */
static void taken_after_the_end(void)
{
    struct beat *a = map_beat(beat_path("a")), *b = map_beat(beat_path("b"));
    struct program run;

    nodes(3);
    run = start("run", "-t", "9", "x", self, "beat", beat_path("a"), NULL);
    ok(beats(a), "a command");
    signal_to(run.pid, SIGSTOP);
    a->stop = 1;
    ok(until(child_of(run.pid, 0) == 0, WAIT_MS), "it ends, and so does the guard");
    ask_all("SET", "redlock:x", "another's");
    signal_to(run.pid, SIGCONT);
    is_int(ends(&run), 79, "another client has the lock when redlock continues: 79");
    ok(strstr(wrote(run, 'e'), "another client took the name before the lock was released") != NULL,
       "the message does not speak of the command: %s", wrote(run, 'e'));
    ask_all("FLUSHALL");
    run = start("run", "-t", "9", "x", self, "beat", beat_path("b"), NULL);
    ok(beats(b), "another command");
    signal_to(run.pid, SIGSTOP);
    b->stop = 1;
    is_int(ends(&run), 5, "redlock is continued in time: the command's status");
    is_int(with_key("redlock:x"), 0, "and the lock is released");
}

/* Another client acquired the lock before the command ended, and no renewal has noticed: the status must not be that of
   the command. */
static void overlap(void)
{
    struct beat *a = map_beat(beat_path("a")), *b = map_beat(beat_path("b"));
    struct program plain, held;

    nodes(3);
    plain = start("run", "x", self, "beat", beat_path("a"), NULL);
    held = start("run", "--min-hold", "1", "y", self, "beat", beat_path("b"), NULL);
    ok(beats(a) && beats(b), "two run");
    ask_all("SET", "redlock:x", "another's");
    ask_all("SET", "redlock:y", "another's");
    a->stop = b->stop = 1;
    is_int(ends(&plain), 79, "another client has the lock when the command ends: 79");
    ok(strstr(wrote(plain, 'e'), "redlock: x: ") != NULL, "stderr has: redlock: x: ");
    is_int(ends(&held), 79, "the same with --min-hold: 79");
    is_int(with_value("redlock:x", "another's") + with_value("redlock:y", "another's"), 6,
           "the other client's values are untouched");
    ask_all("FLUSHALL");
}

static void two_hundred(void)
{
    int i, good = 0;

    nodes(3);
    for (i = 0; i < 200; i++)
        good += redlock("run", "-n", "x", "true", NULL) == 0;
    is_int(good, 200, "two hundred runs, one after the other");
    no_key_left("then");
}

/* `redlock acquire` waits for the slower nodes after a majority has granted the lock. */
static void everywhere(void)
{
    char name[12], key[24];
    int i, good = 0;

    nodes(3);
    for (i = 0; i < 60; i++) {
        snprintf(name, sizeof name, "k%d", i);
        snprintf(key, sizeof key, "redlock:%s", name);
        good += redlock("acquire", "-t", "60", "--node-timeout", "20", name, NULL) == 0 &&
                with_key(key) == 3;
    }
    is_int(good, 60, "acquired sixty times, always on all three nodes");
}

/* Another client has the lock on two of three nodes, and the third is down. The result must not depend on which node
   answers or fails first. */
static void held_with_a_node_down(void)
{
    int i, good = 0;

    nodes(3);
    ask(0, "SET", "redlock:x", "another's");
    ask(1, "SET", "redlock:x", "another's");
    server_kill(&servers[2]);
    for (i = 0; i < 60; i++)
        good += redlock("run", "-n", "x", "true", NULL) == 75;
    is_int(good, 60, "sixty times: held by another client");
}

/* stderr is a full pipe without a reader. */
static void fill_stderr(void)
{
    static const char junk[4096];
    int full[2];

    if (pipe(full) != 0)
        return;
    fcntl(full[1], F_SETFL, O_NONBLOCK);
    while (write(full[1], junk, sizeof junk) > 0 || write(full[1], junk, 1) > 0)
        continue;
    fcntl(full[1], F_SETFL, 0);
    dup2(full[1], 2);
}

static void nobody_listens(void)
{
    struct program run;

    nodes(3);
    setup.before = fill_stderr;
    run = start("run", "-t", "3", "-k", "1", "--node-timeout", "0.2", "x", "sleep", "60", NULL);
    ok(on_most("redlock:x"), "stderr is a full pipe: the lock is acquired");
    pause_all();
    is_int(ends(&run), 79, "stderr is a full pipe: redlock ends the command, and itself");
    resume_all();
}

static void stopped_command(void)
{
    struct program run;
    char line[300];

    nodes(3);
    run = start("run", "x", "-c", "echo $$; kill -STOP $$", NULL);
    ok(writes(run, 'o', "\n") && until(is_stopped(atoi(line_of(run, line))), WAIT_MS),
       "a command that stops itself");
    signal_to(run.pid, SIGTERM);
    is_int(ends(&run), 143, "SIGTERM reaches the stopped command");
    no_key_left("then");
}

/* Orphans are given to the first process of a container, or to a process that asks for them. */
static void ask_for_orphans(void)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1);
}

/* How many children of this process have ended, and were not waited for. */
static int zombies_of(pid_t parent)
{
    char command[100], count[12] = "";
    FILE *file;

    snprintf(command, sizeof command, "grep -ls ') Z %d ' /proc/[0-9]*/stat | wc -l", parent);
    file = popen(command, "r");
    if (file == NULL || fgets(count, sizeof count, file) == NULL)
        exit(1);
    pclose(file);
    return atoi(count);
}

static void orphans(void)
{
    struct program run;
    long begin;

    nodes(3);
    setup.before = ask_for_orphans;
    run = start("run", "x", "-c",
                "(sleep .1 & sleep .2 & sleep .3 &); sleep 1; echo left; exec sleep 60", NULL);
    ok(writes(run, 'o', "left"), "a command leaves three processes behind");
    ok(until(zombies_of(run.pid) + zombies_of(child_of(run.pid, 0)) == 0, 3000),
       "when they end, nothing is left of them");
    signal_to(run.pid, SIGTERM);
    is_int(ends(&run), 143, "the command's status");
    begin = now_ms();
    setup.before = ask_for_orphans;
    run = start("run", "-k", "30", "x", "-c",
                "trap 'exit 9' TERM; (trap '' TERM; echo up; exec sleep 3) & wait", NULL);
    ok(writes(run, 'o', "up"), "a command with a child that ignores SIGTERM");
    signal_to(run.pid, SIGTERM);
    is_int(ends(&run), 9, "the command ends, and then the process that it leaves behind");
    ok(now_ms() - begin < 25000, "redlock ends before the time of -k is over");
    redlock("run", "x", "true", NULL);
    redlock("run", "--slots", "2", "x", "true", NULL);
    sleep_ms(1000);
    is_int(zombies_of(getpid()), 0, "redlock itself leaves no process to its caller");
    no_key_left("then");
}

static void group_has_time(void)
{
    struct beat *pair[2] = {map_beat(beat_path("a")), map_beat(beat_path("b"))};
    struct program run;

    nodes(3);
    run = start("run", "-k", "3", "x", "-c",
                "sh -c 'trap \"sleep 0.4; echo cleaned; exit\" TERM; echo up; while :; do sleep "
                "0.05; done'; :",
                NULL);
    ok(writes(run, 'o', "up"), "a shell and its child");
    signal_to(run.pid, SIGTERM);
    is_int(ends(&run), 143, "the shell ends by SIGTERM: 143");
    ok(strstr(wrote(run, 'o'), "cleaned") != NULL, "its child has time to end");
    run = start("run", "-k", "1", "x", "timeout", "300", self, "beat", beat_path("a"), "polite",
                beat_path("b"), NULL);
    ok(beats(pair[0]) && beats(pair[1]), "a command that leads a group");
    signal_to(run.pid, SIGTERM);
    ok(ends(&run) != TOO_LONG && are_gone(pair), "what it has started is killed, too");
}

/* ---- The whole job ---- */

/* A shell, and its child, which hears SIGTERM and does not end by it. `before` stands before the child's words. */
static struct program start_script(const char *name, struct beat **child, const char *before,
                                   const char *option, const char *value)
{
    static char script[4][400];
    static unsigned turn;
    char *to = script[turn++ % 4];
    struct program run;

    *child = map_beat(beat_path(name));
    snprintf(to, sizeof *script, "echo $$; %s %s beat %s; :", before, self, beat_path(name));
    run = start("run", "-v", "-t", "60", option, value, name, "-c", to, NULL);
    ok(beats(*child), "%s: a script and its child", name);
    return run;
}

static pid_t shell_of(struct program run)
{
    char line[300];

    return atoi(line_of(run, line));
}

/* A stop ends the shell. Its child needs longer: the lock is kept for it, at most for -k. */
static void stop_of_a_script(void)
{
    struct beat *a, *b, *c, *d = map_beat(beat_path("d")), *e = map_beat(beat_path("e"));
    struct beat *f = map_beat(beat_path("f"));
    struct program slow, deaf, shell, waits[2], away;
    long long begin;

    nodes(3);
    slow = start_script("slow", &a, "", "-k", "5");
    deaf = start_script("deaf", &b, "", "-k", "1");
    shell = start_script("shell", &c, "", "-k", "5");
    waits[0] = start("run", "slow", self, "beat", beat_path("d"), NULL);
    waits[1] = start("run", "deaf", self, "beat", beat_path("e"), NULL);
    signal_to(slow.pid, SIGTERM);
    ok(until(!lives(shell_of(slow)) && a->heard[SIGTERM], WAIT_MS), "SIGTERM ends the shell");
    sleep_ms(1500);
    ok(lives(a->pid) && !has_ended(slow) && d->first_us == 0, "the lock is kept for its child");
    a->stop = 1;
    is_int(ends(&slow), 128 + SIGTERM, "until the child ends: 143");
    ok(beats(d) && d->first_us > a->last_us, "then the next holder begins");
    signal_to(deaf.pid, SIGTERM);
    is_int(ends(&deaf), 128 + SIGTERM, "a child that does not end: 143");
    ok(beats(e) && e->first_us > b->last_us && !lives(b->pid),
       "it is killed before the next begins");
    ok(b->last_us - b->term_us >= 500000, "after -k (%lld ms)", (b->last_us - b->term_us) / 1000);

    signal_to(shell_of(shell), SIGKILL);
    ok(until(!lives(shell_of(shell)), WAIT_MS), "the shell alone is killed");
    begin = now_us();
    is_int(ends(&shell), 128 + SIGKILL, "the shell alone is killed: 137");
    ok(now_us() - begin > 3000000 && !lives(c->pid), "its child has the time of -k");
    is_int(count_of(wrote(shell, 'e'), "lost"), 0, "the lock is not lost");

    setenv("SELF", self, 1);
    setenv("BEAT", beat_path("f"), 1);
    away = start("run", "away", "-c", "$SELF beat $BEAT & sleep .3; exit 4", NULL);
    is_int(ends(&away), 4, "a command that ends by itself is not waited for");
    ok(lives(f->pid), "a process that it has left lives on");
    d->stop = e->stop = f->stop = 1;
    is_int(ends(&waits[0]), 5, "the next holder");
    is_int(ends(&waits[1]), 5, "the other next holder");
    no_key_left("then");
}

/* A shell that ignores SIGTERM, and its child, which hears SIGTERM and does not end by it. */
static struct program start_stubborn(const char *name, struct beat **child, const char *ttl,
                                     const char *option, const char *value, const char *more)
{
    static char script[8][400];
    static unsigned turn;
    char *to = script[turn++ % 8];
    struct program run;

    *child = map_beat(beat_path(name));
    snprintf(to, sizeof *script, "trap '' TERM; %s beat %s; exit $?", self, beat_path(name));
    run = start("run", "-v", "-t", ttl, option, value, more, name, "-c", to, NULL);
    ok(beats(*child), "%s: a script and its child", name);
    return run;
}

/* How long the job has lived after SIGTERM, in milliseconds. */
static long lived_ms(const struct beat *child)
{
    return (long)((child->last_us - child->term_us) / 1000);
}

/* With -k a job that was asked to end has this time, as with timeout(1): also a command that ignores SIGTERM. */
static void kill_after(void)
{
    struct beat *a, *c, *d, *e, *next = map_beat(beat_path("next"));
    struct program killed, none, late, without, orderly, waits;

    nodes(3);
    killed = start_stubborn("killed", &a, "30", "-k", "10", "-n");
    none = start_stubborn("none", &c, "15", "--keep-going", "-n", "-k5");
    late = start_stubborn("late", &d, "9", "--keep-going", "-n", "-k2");
    without = start_stubborn("without", &e, "6", "--label", "", "-n");
    orderly = start("run", "-t", "18", "-k", "6", "orderly", "-c",
                    "trap 'sleep 1; exit 7' TERM; echo up; while :; do sleep .1; done", NULL);
    waits = start("run", "killed", self, "beat", beat_path("next"), NULL);
    ok(writes(orderly, 'o', "up"), "all run");
    sleep_ms(
        3000); /* the next renewal comes before the end of -k, and notices the loss of "none" */
    signal_to(killed.pid, SIGTERM);
    signal_to(none.pid, SIGTERM);
    signal_to(without.pid, SIGTERM);
    signal_to(orderly.pid, SIGTERM);
    ask_all("DEL", "redlock:none");
    ask_all("DEL", "redlock:late");
    is_int(ends(&orderly), 7, "a job that ends within -k: its own status");
    sleep_ms(3000);
    ok(!has_ended(killed) && next->first_us == 0, "the lock is held while -k lasts");
    signal_to(killed.pid, SIGTERM);
    ok(until(a->heard[SIGTERM] > 1, WAIT_MS), "a second SIGTERM");
    is_int(ends(&killed), 128 + SIGKILL, "a job that ignores SIGTERM is killed after -k: 137");
    ok(beats(next) && next->first_us > a->last_us, "then the next holder begins");
    ok(lived_ms(a) > 7000 && lived_ms(a) < 13000, "the second SIGTERM adds no time (%ld ms)",
       lived_ms(a));
    ok(strstr(wrote(killed, 'e'), "renewed") && !strstr(wrote(killed, 'e'), "lost"),
       "the lock was renewed meanwhile");
    ok(strstr(wrote(killed, 'e'), "has not ended within 10.0 s: it is killed") != NULL,
       "a message: %s", wrote(killed, 'e'));

    is_int(ends(&none), 79, "--keep-going: 79");
    ok(lived_ms(c) < 15000,
       "--keep-going: a job that was asked to end is killed all the same (%ld ms)", lived_ms(c));
    ok(writes(late, 'e', "the command goes on"), "--keep-going: the command goes on");
    signal_to(late.pid, SIGTERM);
    is_int(ends(&late), 79, "--keep-going, asked to end later: 79");
    ok(lived_ms(d) < 15000, "--keep-going, asked to end later: killed after -k (%ld ms)",
       lived_ms(d));
    ok(!has_ended(without) && lives(e->pid) && on_all("redlock:without"),
       "without -k the command lives on, and the lock is held");
    e->stop = next->stop = 1;
    is_int(ends(&without), 5, "without -k: the command's status");
    is_int(ends(&waits), 5, "the next holder");
    no_key_left("then");
}

/* The job ends in time, while redlock is stopped until the lock has expired. */
static void kill_after_and_a_pause(void)
{
    struct program run;

    nodes(3);
    run =
        start("run", "-t", "12", "-k", "4", "x", "-c",
              "trap 'echo asked; sleep 1; exit 7' TERM; echo up; while :; do sleep .1; done", NULL);
    ok(writes(run, 'o', "up"), "a command");
    signal_to(run.pid, SIGTERM);
    ok(writes(run, 'o', "asked"), "it is asked to end");
    signal_to(run.pid, SIGSTOP);
    sleep_ms(14000);
    signal_to(run.pid, SIGCONT);
    is_int(ends(&run), 7, "it has ended before the lock expired: its own status");
    no_key_left("then");
}

/* What is left of a job is a process that starts another one and ends, again and again. No look at the processes of this machine
   sees all of them at one moment. */
static void moving_process(void)
{
    struct beat *moving = map_beat(beat_path("moving")), *next = map_beat(beat_path("next"));
    struct program run, waits;
    char script[400];

    nodes(3);
    snprintf(script, sizeof script, "echo $$; %s beat %s moves & sleep 300; :", self,
             beat_path("moving"));
    run = start("run", "-t", "60", "-k", "20", "x", "-c", script, NULL);
    ok(beats(moving), "a process of the job moves on");
    waits = start("run", "x", self, "beat", beat_path("next"), NULL);
    signal_to(shell_of(run), SIGKILL);
    ok(until(!lives(shell_of(run)), WAIT_MS), "the shell is killed");
    sleep_ms(3000);
    ok(!has_ended(run) && next->first_us == 0, "the lock is kept for the process");
    moving->stop = 1;
    is_int(ends(&run), 128 + SIGKILL, "until it ends: 137");
    ok(beats(next) && next->first_us > moving->last_us, "then the next holder begins");
    next->stop = 1;
    is_int(ends(&waits), 5, "the next holder");
    no_key_left("then");
}

/* Without /proc the job is the process group of the command. The search for leaks also needs /proc: with sanitizers redlock ends
   with 1. */
static void without_proc(void)
{
    int expected = strstr(program, "-san") != NULL ? 1 : 128 + SIGKILL;
    struct beat *a = map_beat(beat_path("a"));
    struct program run;
    char script[400];

    nodes(3);
    snprintf(script, sizeof script, "%s beat %s & sleep .5; kill -KILL $$", self, beat_path("a"));
    setup.before = hide_proc;
    if (redlock("version", NULL) == 99) {
        skip("creating a mount namespace is not permitted");
        return;
    }
    setup.before = hide_proc;
    run = start("run", "-t", "9", "-k", "2", "x", "-c", script, NULL);
    ok(beats(a), "a script and its child");
    is_int(ends(&run), expected, "the script ends by a signal: 137");
    ok(!lives(a->pid), "its child is killed after -k");
    no_key_left("then");
}

/* A loss ends all processes of the job, in whatever group they are. */
static void loss_ends_all(void)
{
    static const char *const names[] = {"timeout", "setsid", "plain"};
    struct beat *child[3];
    struct program run[3];
    size_t i;

    nodes(3);
    run[0] = start_script("timeout", &child[0], "timeout 300", "-k", "5");
    run[1] = start_script("setsid", &child[1], "setsid", "-k", "5");
    run[2] = start_script("plain", &child[2], "", "-l", "");
    for (i = 0; i < 3; i++) {
        char key[40];
        snprintf(key, sizeof key, "redlock:%s", names[i]);
        ask_all("DEL", key);
    }
    for (i = 0; i < 3; i++) {
        is_int(ends(&run[i]), 79, "%s: the lock is lost: 79", names[i]);
        ok(child[i]->heard[SIGTERM] > 0, "%s: SIGTERM reaches the child of the shell", names[i]);
        ok(!lives(child[i]->pid), "%s: the child of the shell is killed", names[i]);
    }
    no_key_left("then");
}

/* The same when redlock is killed, stopped, or asked to end. */
static void guard_ends_all(void)
{
    struct beat *a, *b, *d;
    struct program killed, stopped, asked;

    nodes(3);
    killed = start_script("killed", &a, "timeout 300", "-k", "5");
    stopped = start_script("stopped", &b, "timeout 300", "-k", "5");
    asked = start_script("asked", &d, "timeout 300", "-k", "5");
    signal_to(stopped.pid, SIGSTOP);
    signal_to(killed.pid, SIGKILL);
    is_int(ends(&killed), -SIGKILL, "redlock is killed");
    ok(until(!lives(a->pid), WAIT_MS), "the child of timeout is killed");
    signal_to(asked.pid, SIGTERM);
    is_int(ends(&asked), 128 + SIGTERM, "redlock is asked to end");
    ok(d->heard[SIGTERM] > 0 && !lives(d->pid), "the child of timeout gets SIGTERM, and is killed");
    ok(until(!lives(b->pid), 60000 + WAIT_MS),
       "redlock is stopped: the child of timeout is killed when the ttl is over");
    signal_to(stopped.pid, SIGCONT);
    is_int(ends(&stopped), 79, "redlock is stopped: 79");
    ask_all("FLUSHALL");
}

/* Both in a PID namespace, where the leader of the process group is outside: the group is 0 there. */
static void ends_all_in_a_namespace(void)
{
    char command[400], line[300];
    int status;
    FILE *out;

    snprintf(
        command, sizeof command,
        "for how in -pf -Urpf; do unshare $how --mount-proc true || continue; unshare $how "
        "--mount-proc sh -c '\"%s\" loss_ends_all && \"%s\" guard_ends_all' >%s 2>&1; exit; done; "
        "exit 2",
        self, self, beat_path("out"));
    status = system(command);
    if (WEXITSTATUS(status) == 2)
        skip("creating a PID namespace is not permitted");
    else
        is_int(status, 0, "a loss, and the guard, end all in a PID namespace");
    out = status != 0 ? fopen(beat_path("out"), "re") : NULL;
    while (out != NULL && fgets(line, sizeof line, out) != NULL)
        fprintf(stderr, "# %s", line);
    if (out != NULL)
        fclose(out);
}

/* ---- Messages ---- */

static int pipe_ends[2];

/* The messages of -v about nodes and renewals while a majority answers, and about a wait without a majority. */
static void verbose(void)
{
    struct program run, quiet, waits;
    char lost[200], back[200];
    const char *at;
    int renewals;

    nodes(3);
    run = start("run", "-v", "-t", "3", "x", "sleep", "60", NULL);
    ok(on_all("redlock:x") && writes(run, 'e', "x: renewed; "), "-v: on all nodes, and renewed");
    renewals = count_of(wrote(run, 'e'), "x: renewed; ");
    ask(0, "DEL", "redlock:x");
    snprintf(lost, sizeof lost, "x: %.31s does not have the lock any more\n", servers[0].address);
    snprintf(back, sizeof back, "x: %.31s has the lock\n", servers[0].address);
    ok(until(count_of(wrote(run, 'e'), "x: renewed; ") > renewals + 4, WAIT_MS),
       "-v: renewed again");
    at = strstr(wrote(run, 'e'), lost);
    ok(at != NULL && strstr(at, back) != NULL, "-v: a node lost the lock, and then has it again");
    is_int(count_of(wrote(run, 'e'), lost), 1, "-v: no later renewal says that it is lost");
    signal_to(run.pid, SIGTERM);
    ends(&run);
    quiet = start("run", "-t", "24", "y", "sleep", "60", NULL);
    run = start("run", "-v", "-t", "15", "x", "sleep", "60", NULL);
    ok(writes(run, 'e', "x: acquired on ") && writes(run, 'e', " of 3 nodes: 127.0.0.1:"),
       "-v: acquired");
    ok(writes(run, 'e', "x: renewed; 1"), "-v: renewed, with more than 9 s left");
    snprintf(lost, sizeof lost, "x: the connection to %.31s is lost: ", servers[0].address);
    snprintf(back, sizeof back, "x: connected to %.31s", servers[0].address);
    server_kill(&servers[0]);
    ok(writes(run, 'e', lost), "-v: the connection to a node is lost");
    server_restart(&servers[0]);
    ok(writes(run, 'e', back), "-v: the node is connected again");
    signal_to(run.pid, SIGTERM);
    is_int(ends(&run), 143, "-v: the command's status");
    server_kill(&servers[0]);
    server_kill(&servers[1]);
    ok(writes(quiet, 'e', "y: renewal failed: fewer than 2 of 3 nodes confirmed it; "),
       "without -v: renewal fails without a majority");
    setenv("REDLOCK_UNAVAILABLE_TIMEOUT", "0", 1);
    waits = start("run", "-v", "z", "true", NULL);
    unsetenv("REDLOCK_UNAVAILABLE_TIMEOUT");
    ok(writes(waits, 'e', "waiting for z: 1 of 3 nodes reachable"),
       "-v: a waiter reports how many nodes are reachable");
    server_restart(&servers[0]);
    server_restart(&servers[1]);
    is_int(ends(&waits), 0, "the waiter acquires the lock when the nodes are back");
    signal_to(quiet.pid, SIGTERM);
    ends(&quiet);
    server_kill(&servers[0]);
    snprintf(lost, sizeof lost, "redlock:   %.31s: connect: ", servers[0].address);
    is_int(redlock("run", "-v", "w", "true", NULL), 0, "a node is down: run -v");
    ok(strstr(wrote(last, 'e'), "w: acquired on 2 of 3 nodes: ") != NULL,
       "run -v: acquired on two");
    ok(strstr(wrote(last, 'e'), lost) != NULL, "run -v says why not on the third");
    is_int(redlock("acquire", "-v", "-t", "9", "w", NULL), 0, "a node is down: acquire -v");
    ok(strstr(wrote(last, 'e'), "w: acquired on 2 of 3 nodes: ") != NULL,
       "acquire -v: acquired on two");
    ok(strstr(wrote(last, 'e'), lost) != NULL, "acquire -v says why not on the third");
    server_restart(&servers[0]);
    ok(strstr(wrote(quiet, 'e'), "_ms") == NULL, "no message has a name of the library");
    ask_all("FLUSHALL");
}

/* Two of three servers are down for a while: each reason is printed once, not with each renewal that fails. */
static void reasons_once(void)
{
    static const char *const durable[] = {"--appendonly", "yes", "--appendfsync", "always", NULL};
    char reason[120];
    struct program run;
    unsigned i;
    int failed;

    node_count = 3;
    servers_start(servers, 3, durable);
    setenv("REDLOCK_NODES", list_of(3, ""), 1);
    run = start("run", "-t", "40", "x", "sleep", "100", NULL);
    ok(on_all("redlock:x"), "a lock");
    for (i = 0; i < 2; i++)
        server_kill(&servers[i]);
    snprintf(reason, sizeof reason, "redlock:   %.31s, %.31s: connect: ", servers[0].address,
             servers[1].address);
    /* a server that is killed in its handshake is said to have closed the connection at first */
    ok(writes(run, 'e', reason), "renewal fails, and it is said why");
    failed = count_of(wrote(run, 'e'), "x: renewal failed: ");
    ok(until(count_of(wrote(run, 'e'), "x: renewal failed: ") > failed, WAIT_MS),
       "renewal fails again");
    is_int(count_of(wrote(run, 'e'), reason), 1, "it is said once why: %s", wrote(run, 'e'));
    for (i = 0; i < 2; i++)
        server_restart(&servers[i]);
    ok(writes(run, 'e', "x: renewal works again; "), "renewal works again");
    for (i = 0; i < 2; i++)
        server_kill(&servers[i]);
    ok(until(count_of(wrote(run, 'e'), reason) >= 2, WAIT_MS),
       "and when it fails again it is said again");
    signal_to(run.pid, SIGKILL);
    ends(&run);
    for (i = 0; i < 2; i++)
        server_restart(&servers[i]);
    ask_all("FLUSHALL");
}

/* The lock is not on all nodes for longer than a minute: a message also without -v. The shim shifts the clock of the program. */
static void not_on_all_nodes(void)
{
    static const long long minute_us = 61000000;
    struct program run;
    char reason[100], path[300];
    int fd;

    nodes(3);
    server_kill(&servers[0]);
    snprintf(path, sizeof path, "%s/shift", programs_folder());
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, sizeof minute_us) != 0)
        exit(1);
    preload_shim();
    setenv("REDLOCK_SUSPENDED", path, 1);
    run = start("run", "-t", "900", "x", "env", "-u", "LD_PRELOAD", "sh", "-c",
                "echo runs; exec sleep 600", NULL);
    unsetenv("LD_PRELOAD");
    unsetenv("REDLOCK_SUSPENDED");
    ok(writes(run, 'o', "runs\n"), "a job, whose lock is on two of three nodes");
    is_text(wrote(run, 'e'), "", "which is no message yet");
    ok(pwrite(fd, &minute_us, sizeof minute_us, 0) == sizeof minute_us, "a minute passes");
    close(fd);
    ok(writes(run, 'e', "x: the lock has been on 2 of 3 nodes for a minute, 2 needed\n"),
       "then there is one");
    snprintf(reason, sizeof reason, "redlock:   %.31s: connect: ", servers[0].address);
    ok(writes(run, 'e', reason), "it says why");
    server_restart(&servers[0]);
    ok(writes(run, 'e', "x: the lock is on all nodes again\n"), "and that it is over");
    is_int(count_of(wrote(run, 'e'), "\n"), 3, "once: %s", wrote(run, 'e'));
    signal_to(run.pid, SIGTERM);
    is_int(ends(&run), 128 + SIGTERM, "the command's status");
    no_key_left("then");
}

/* With -v: how many connections were lost since the lock was acquired, and are not back. */
static int lost_connections(struct program run)
{
    return count_of(wrote(run, 'e'), " is lost: ") - count_of(wrote(run, 'e'), ": connected to ");
}

/* The servers hang, and continue before the lock expires. */
static void works_again(void)
{
    const char *reasons = "redlock:   ", *at, *limit;
    struct program run;

    nodes(3);
    setenv("REDLOCK_NODE_TIMEOUT", ".3", 1);
    run = start("run", "-v", "-t", "20", "x", "sleep", "60", NULL);
    on_all("redlock:x");
    pause_all();
    ok(writes(run, 'e', "x: renewal failed: fewer than 2 of 3 nodes confirmed it; "),
       "renewal fails");
    ok(writes(run, 'e', reasons), "the next line says why");
    at = strstr(wrote(run, 'e'), reasons);
    limit = at != NULL ? strstr(at, " in time (300 ms)") : NULL;
    ok(limit != NULL && limit < strchr(at, '\n'), "it has the limit: %s", wrote(run, 'e'));
    ok(writes(run, 'e', " is lost: no reply in time (300 ms)"), "-v: the connections are lost");
    resume_all();
    ok(writes(run, 'e', "x: renewal works again; "), "renewal works again");
    ok(until(lost_connections(run) == 0, WAIT_MS), "all nodes are connected");
    signal_to(run.pid, SIGTERM);
    is_int(ends(&run), 143, "the command's status");
    ok(strstr(wrote(run, 'e'), "_ms") == NULL, "no message has a name of the library");
    no_key_left("then");
}

/* redlock itself does not run for so long that a renewal is late: no node has failed. */
static void late_renewal(void)
{
    struct program run;

    nodes(3);
    run = start("run", "-v", "-t", "15", "x", "sleep", "60", NULL);
    ok(writes(run, 'e', "acquired "), "the lock is acquired");
    signal_to(run.pid, SIGSTOP);
    sleep_ms(8000);
    signal_to(run.pid, SIGCONT);
    ok(writes(run, 'e', ": renewed;"),
       "redlock was stopped for half of the TTL: the lock is renewed");
    ok(strstr(wrote(run, 'e'), "renewal failed") == NULL, "no message speaks of the nodes");
    signal_to(run.pid, SIGTERM);
    is_int(ends(&run), 143, "the command's status");
    no_key_left("then");
}

/* Two addresses of one server. It has one vote, so the lock needs all of the other nodes. */
static void listed_twice(void)
{
    char list[300];
    const char *messages;
    struct program run;

    nodes(4);
    snprintf(list, sizeof list, "%s,%s,%s", servers[0].address, servers[0].local,
             servers[1].address);
    run = start("run", "-q", "-t", "3", "-N", list, "x", "-c", "sleep 3; exit 4", NULL);
    is_int(ends(&run), 4, "a server is listed twice: the lock is held");
    messages = wrote(run, 'e');
    is_int(count_of(messages, "is the same server as another node"), 1, "one warning: %s",
           messages);
    is_int(redlock("acquire", "-q", "-t", "60", "-N", list, "y", NULL), 0, "the same by acquire");
    ok(count_of(wrote(last, 'e'), "is the same server as another node") == 1 &&
           strstr(wrote(last, 'e'), ": 2 votes of 3, none may fail\n") != NULL,
       "one warning, which says what it costs: %s", wrote(last, 'e'));
    is_int(redlock("acquire", "-q", "-t", "60", "-N", list_of(4, ""), "-N", servers[3].local, "z",
                   NULL),
           0, "one of five is listed twice");
    ok(strstr(wrote(last, 'e'), "is the same server as another node: 4 votes of 5, 1 may fail\n") !=
           NULL,
       "one may fail: %s", wrote(last, 'e'));
    ask_all("FLUSHALL");
    no_key_left("then");
}

/* The addresses of these servers, each a letter from "a" on, for -N. */
static const char *letters(const char *names)
{
    static char lists[2][300];
    static unsigned turn;
    char *list = lists[turn++ % 2];

    for (list[0] = '\0'; *names != '\0'; names++)
        snprintf(list + strlen(list), sizeof lists[0] - strlen(list), "%s%s",
                 list[0] != '\0' ? "," : "", servers[*names - 'a'].address);
    return list;
}

/* Clients with these two lists want one lock. The first gets it on a bare majority: the servers `down` are down, and come back.
   Returns the exit status of the second. */
static int second_of_lists(const char *first, const char *down, const char *second)
{
    const char *each;

    ask_all("FLUSHALL");
    for (each = down; *each != '\0'; each++)
        server_kill(&servers[*each - 'a']);
    is_int(redlock("acquire", "-q", "-n", "-t", "600", "-N", letters(first), "x", NULL), 0,
           "a client with the servers %s has the lock", first);
    for (each = down; *each != '\0'; each++)
        server_restart(&servers[*each - 'a']);
    return redlock("acquire", "-q", "-n", "-t", "600", "-N", letters(second), "x", NULL);
}

/* What docs/servers.md says of a list that changes. */
static void lists_that_change(void)
{
    nodes(5);
    is_int(second_of_lists("abc", "c", "abcd"), 75, "one more of three: not for a second client");
    is_int(second_of_lists("abcd", "d", "abcde"), 75, "one more of four");
    is_int(second_of_lists("abcde", "ad", "abcd"), 75, "one fewer of five");
    is_int(second_of_lists("abcd", "a", "abc"), 75, "one fewer of four");
    is_int(second_of_lists("abc", "c", "abcde"), 0, "two more: two have the lock");
    is_int(second_of_lists("abc", "a", "abd"), 0, "one in place of another: two have the lock");
    ask_all("FLUSHALL");
    no_key_left("then");
}

/* A server that is listed twice counts once, also where nodes are only asked: the lock is on one server of two, of a list of three. */
static void counted_once(void)
{
    char list[300], id[20], twice[200], value[300];
    const char *at;

    nodes(2);
    redlock("acquire", "-q", "-t", "600", "half", NULL);
    ok(on_all("redlock:half"), "a lock on both servers");
    at = strchr(ask(0, "GET", "redlock:half"), ':'); /* of the host; then comes the process */
    at = at != NULL ? strchr(at + 1, ':') : NULL;
    snprintf(value, sizeof value, "%.*s:%d%s", at != NULL ? (int)(at - reply) : 0, reply, getpid(),
             at != NULL ? strchr(at + 1, ':') : "");
    ask_all("SET", "redlock:half", value);
    is_int(redlock("status", "--here", "half", NULL), 0, "of a process of this host that lives");
    ask(1, "DEL", "redlock:half");
    snprintf(list, sizeof list, "%s,%s,%s", servers[0].address, servers[0].local,
             servers[1].address);
    is_int(redlock("status", "-N", list, "half", NULL), 1, "it is on one server: free");
    ok(shows(last, "^half +free +1/3 "), "on 1 of 3 nodes: %s", wrote(last, 'o'));
    snprintf(twice, sizeof twice, "redlock:   %.120s: is the same server as %.31s",
             servers[0].local, servers[0].address);
    ok(strstr(wrote(last, 'e'), twice) != NULL, "a warning: %s", wrote(last, 'e'));
    is_int(redlock("status", "--here", "-N", list, "half", NULL), 1, "--here");
    is_int(redlock("status", "-v", "-N", list, "half", NULL), 1, "-v");
    ok(count_of(wrote(last, 'o'), "is the same server as ") == 1, "-v says it, too: %s",
       wrote(last, 'o'));
    server_kill(&servers[1]);
    is_int(redlock("status", "-N", list, "half", NULL), 69, "one server is down, and one is left");
    ok(strstr(wrote(last, 'e'), "status: no quorum: 1 of 3 nodes answered, 2 needed\n") != NULL,
       "no quorum: %s", wrote(last, 'e'));
    redlock("status", "--json", "-N", servers[0].address, "half", NULL);
    at = strstr(wrote(last, 'o'), "\"id\":\"");
    snprintf(id, sizeof id, "%.8s", at != NULL ? at + 6 : "");
    is_int(redlock("release", "-N", list, "--force", id, "half", NULL), 69, "release --force");
    ok(strstr(wrote(last, 'e'), "half: no quorum: 1 of 3 nodes answered, 2 needed\n") != NULL,
       "no quorum: %s", wrote(last, 'e'));
    server_restart(&servers[1]);
    ask_all("FLUSHALL");
    no_key_left("then");
}

/* Whether this node's counter is at least this fencing token. */
static int knows(unsigned n, unsigned long long token)
{
    return strtoull(ask(n, "GET", "redlock:x:fence"), NULL, 10) >= token;
}

static void fence(void)
{
    unsigned long long before = 0, now;
    int i;

    nodes(3);
    for (i = 0; i < 6; i++) {
        if (i == 4) /* without this node a quorum must still know the last token */
            ask(!knows(0, before) ? 0 : !knows(2, before) ? 2 : 1, "FLUSHALL");
        if (i % 2 == 0)
            is_int(redlock("run", "--fence", "x", "-c", "echo $REDLOCK_FENCE", NULL), 0, "--fence");
        else
            is_int(redlock("run", "--fence", "x", "printenv", "REDLOCK_FENCE", NULL), 0, "--fence");
        now = strtoull(wrote(last, 'o'), NULL, 10);
        ok(now > before, "the fencing token grows: %llu", now);
        before = now;
    }
}

/* ---- Tokens ---- */

static void tokens(void)
{
    char token[300], value[300], line[300];

    nodes(3);
    is_int(redlock("acquire", "-t", "60", "-l", "a:b c", "x", NULL), 0, "acquire");
    line_of(last, token);
    ok(strspn(token, "0123456789abcdef") == 40 && strstr(token, ":a%3Ab%20c") != NULL,
       "prints the token: %s", token);
    ok(on_most("redlock:x") && with_value("redlock:x", token) == with_key("redlock:x"),
       "it is the value that the nodes have");
    snprintf(value, sizeof value, "%s", token);
    value[3] = value[3] == '0' ? '1' : '0';
    is_int(redlock_with(value, "release", "x", NULL), 79, "release with another token");
    ok(with_value("redlock:x", token) > 1, "the value is untouched");
    setenv("REDLOCK_TOKEN", "", 1);
    is_int(redlock("release", "x", NULL), 64, "REDLOCK_TOKEN is empty");
    ok(strstr(wrote(last, 'e'), "token is missing") != NULL, "the message says that it is missing");
    unsetenv("REDLOCK_TOKEN");
    is_int(redlock_with(token, "release", "x", NULL), 0, "release");
    no_key_left("then");
    is_int(redlock_with(token, "release", "x", NULL), 79, "release a second time: 79");

    redlock("acquire", "-t", "60", "-l", "", "x", NULL);
    line_of(last, token);
    is_int((long)strlen(token), 40, "no label: the value has only the random token");
    if (pipe2(pipe_ends, O_CLOEXEC) == 0)
        dprintf(pipe_ends[1], "%s\n", token);
    close(pipe_ends[1]);
    setup.input = pipe_ends[0];
    is_int(redlock("release", "x", "-", NULL), 0, "a token by stdin");
    close(pipe_ends[0]);
    is_int(redlock("release", "x", "-", NULL), 64, "no token on stdin");
    redlock("acquire", "-t", "60", "--fence", "x", NULL);
    snprintf(value, sizeof value, "%.280s", wrote(last, 'o'));
    ok(count_of(value, "\n") == 2 && atoll(strchr(value, '\n') + 1) > 0,
       "--fence: a second line has the fencing token");
    is_int(redlock_with(value, "release", "x", NULL), 0, "release with both lines");
    ask_all("DEL", "redlock:x:fence");
    no_key_left("then");
    redlock("acquire", "-t", "60", "x", NULL);
    line_of(last, token);
    snprintf(line, sizeof line, "%s,%s,%s", servers[2].address, servers[1].address,
             servers[0].address);
    is_int(redlock_with(token, "release", "-N", line, "x", NULL), 0,
           "release with the nodes in another order");
    no_key_left("then");
    redlock("acquire", "-t", "60", "x", NULL);
    line_of(last, token);
    snprintf(value, sizeof value, "%s", token);
    value[39] = value[39] == '0' ? '1' : '0'; /* as a node that was repaired has it */
    ask(1, "SET", "redlock:x", value, "PX", "60000");
    is_int(redlock_with(token, "release", "x", NULL), 0, "release after a repair of a node");
    no_key_left("then");
}

/* A text that is no token is refused before any node is asked. */
static void token_form(void)
{
    static const char right[] = "0123456789012345678901234567890123456789";
    char token[300], bad[400], dots[290];
    size_t i;

    nodes(3);
    redlock("acquire", "-t", "60", "-l", "job", "x", NULL);
    line_of(last, token);
    memset(dots, '.', sizeof dots);
    memcpy(dots, token, strlen(token));
    dots[sizeof dots - 1] = '\0';
    for (i = 0; i < 6; i++) {
        static const char *const before[6] = {"f", right, "A", " ", "", ""};
        const char *behind[6] = {token, token, token + 1, token, token + 1, dots};
        snprintf(bad, sizeof bad, "%s%.300s", before[i], behind[i]);
        is_int(redlock_with(bad, "release", "x", NULL), 64, "release '%.60s': 64", bad);
        ok(strstr(wrote(last, 'e'), "not a token") != NULL, "stderr has: not a token");
    }
    ok(with_value("redlock:x", token) > 1, "the lock is untouched");
    is_int(redlock_with(token, "release", "x", NULL), 0, "release");
    no_key_left("then");
}

/* A node with a longer round trip also has the lock when acquire ends. */
static void far_node(void)
{
    char list[300], name[12], key[24];
    pid_t proxy;
    int i, good = 0;
    long begin;

    nodes(3);
    proxies =
        mmap(NULL, sizeof *proxies, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    proxies->to = servers[2].port;
    proxies->mode = PROXY_DELAY;
    proxy = proxies_start(proxies, 1);
    snprintf(list, sizeof list, "%s,%s,%s", servers[0].address, servers[1].address,
             proxies->address);
    begin = now_ms();
    for (i = 0; i < 10; i++) {
        snprintf(name, sizeof name, "k%d", i);
        snprintf(key, sizeof key, "redlock:%s", name);
        redlock("acquire", "-N", list, "-t", "60", name, NULL);
        good += with_key(key) == 3;
    }
    ok(now_ms() - begin < 25000, "acquire ends when all nodes have answered (%ld ms)",
       now_ms() - begin);
    is_int(good, 10, "acquired ten times, always on all three nodes, one of them far away");
    server_pause(&servers[2]);
    is_int(redlock("acquire", "-t", "6", "--node-timeout", "12", "z", NULL), 0,
           "a node that hangs does not use up the validity");
    server_resume(&servers[2]);
    signal_to(proxy, SIGKILL);
    waitpid(proxy, NULL, 0);
}

/* The id that `redlock status` prints. */
static void id_of(const char *name, char id[9])
{
    const char *at;

    redlock("status", "--json", name, NULL);
    at = strstr(wrote(last, 'o'), "\"id\":\"");
    snprintf(id, 9, "%.8s", at != NULL ? at + 6 : "");
}

static void force(void)
{
    char id[9], other[9], token[300];
    static const char *const values[] = {"opaque", "0123456789abcdef", "a:b:c", "\xff\x01"};
    static const int sizes[4] = {249, 250, 251, 2500};
    static char huge[2502];
    size_t i;

    nodes(3);
    redlock("acquire", "-t", "60", "x", NULL);
    line_of(last, token);
    id_of("x", id);
    snprintf(other, sizeof other, "%s", id);
    other[7] = other[7] == '0' ? '1' : '0';
    is_int(redlock("release", "--force", other, "x", NULL), 79, "--force with a wrong id");
    snprintf(huge, sizeof huge, "redlock: x: no holder has the id %s\n", other);
    is_text(wrote(last, 'e'), huge, "--force says so, and no more");
    is_int(redlock("release", "--force", "", "x", NULL), 79, "--force with an empty id");
    is_int(redlock("release", "--force", "x", NULL), 64, "--force without an id");
    ok(with_value("redlock:x", token) > 1, "the lock is untouched");
    is_int(redlock("release", "--force", id, "x", NULL), 0, "--force with the right id");
    no_key_left("then");
    redlock("acquire", "-t", "60", "x", NULL);
    line_of(last, token);
    is_int(redlock("release", "--force", id, "x", NULL), 79,
           "--force with the id of a former holder: 79");
    ok(with_value("redlock:x", token) > 1, "the new holder's lock is untouched");
    memset(huge, 'v', sizeof huge - 1);
    for (i = 0; i < 4;
         i++) { /* values as long as the longest token, a byte less, more, much more */
        huge[sizes[i]] = '\0';
        ask_all("SET", "redlock:x", huge);
        id_of("x", id);
        redlock("run", "-n", "x", "true", NULL);
        ok(strstr(wrote(last, 'e'), id) != NULL, "%d bytes: run prints the same id as status",
           sizes[i]);
        ask(0, "APPEND", "redlock:x", "w");
        is_int(redlock("release", "--force", id, "x", NULL), 0, "--force releases it");
        if (i == 0) /* an id is made of the first 250 bytes */
            ok(until(with_key("redlock:x") == 1, WAIT_MS),
               "a node with another value keeps its key");
        ask_all("DEL", "redlock:x");
        huge[sizes[i]] = 'v';
    }
    ask_all("SET", "redlock:x", "another's");
    id_of("x", id);
    ask_all("REPLICAOF", "127.0.0.1", "1");
    is_int(redlock("release", "--force", id, "x", NULL), 77, "--force on replicas: 77");
    ask_all("REPLICAOF", "NO", "ONE");
    ask_all("DEL", "redlock:x");
    for (i = 0; i < sizeof values / sizeof *values; i++) {
        ask_all("SET", "redlock:x", values[i]);
        id_of("x", id);
        is_int((long)strlen(id), 8, "an opaque value has an id");
        is_int(redlock("release", "--force", id, "x", NULL), 0, "--force releases an opaque value");
        no_key_left("then");
    }
}

static void status(void)
{
    static char huge[3500];
    struct program run;
    char token[300];

    nodes(3);
    is_int(redlock("status", "x", NULL), 1, "free: 1");
    ok(shows(last, "^NAME +STATE ") && shows(last, "^x +free +0/3 "), "free: the output");
    is_int(redlock("status", "-q", "x", NULL), 1, "-q");
    is_int(count_of(wrote(last, 'o'), "\n"), 1, "-q: no heading");
    run = start("run", "-t", "60", "-l", "my\nlabel\x1b[1m\xc2\x9b", "x", "sleep", "60", NULL);
    on_most("redlock:x");
    is_int(redlock("status", "-v", "y", "x", NULL), 0, "one of two names is held: 0");
    snprintf(token, sizeof token, "/%d (my\\x0alabel\\x1b[1m\\u009b)\n", run.pid);
    ok(strstr(wrote(last, 'o'), token) != NULL, "held: the holder, without control characters");
    ok(shows(last, "^y +free ") &&
           shows(last, "^x +held +[23]/3 +[0-9.]+ s +0  2[-0-9]+T[0-9:]+Z "),
       "held: its nodes, the time left, and when it began");
    ok(count_of(wrote(last, 'o'), "    127.0.0.1:") == 6, "-v: each node");
    ask(0, "GET", "redlock:x");
    ok(strstr(wrote(last, 'o'), reply) == NULL && *reply != '\0', "the token is not shown");
    snprintf(token, 41, "%.40s", reply);
    ok(strstr(wrote(last, 'o'), token) == NULL, "the random part of the token is not shown");
    ask(0, "SET", "redlock:x", "other");
    server_kill(&servers[1]);
    is_int(redlock("status", "x", NULL), 69,
           "one node has the value, one another value, one is down: 69");
    ok(shows(last, "^x +unknown ") && strstr(wrote(last, 'e'), servers[1].address), "unknown");
    server_restart(&servers[1]);
    is_int(redlock("status", "x", NULL), 1,
           "one node has the value, one another value, one none: 1");
    signal_to(run.pid, SIGTERM);
    ends(&run);
    ask_all("FLUSHALL");
    redlock("acquire", "-t", "60", "-l", "b\u00e4ckup \u65e5\u672c \U0001f512\u202e\xc2\x9b\xff",
            "y\x1b[2J\n<3>z\u202e", NULL);
    is_text(wrote(last, 'e'), "", "a label, a name with control characters");
    redlock("run", "-n", "y\x1b[2J\n<3>z\u202e", "true", NULL);
    ok(strstr(wrote(last, 'e'), "redlock: y\\x1b[2J\\x0a<3>z\\u202e: ") != NULL &&
           count_of(wrote(last, 'e'), "\n") == 1,
       "messages escape control characters");
    ok(strstr(wrote(last, 'e'), "(b\u00e4ckup \u65e5\u672c \U0001f512\\u202e\\u009b\\xff)") != NULL,
       "messages have other UTF-8 unchanged");
    redlock("status", "y\x1b[2J\n<3>z\u202e", NULL);
    ok(strstr(wrote(last, 'o'), "\ny\\x1b[2J\\x0a<3>z\\u202e  held ") != NULL,
       "status escapes control characters");
    redlock("status", "--json", "y\x1b[2J\n<3>z\u202e", NULL);
    ok(strstr(wrote(last, 'o'), "\"y\\u001b[2J\\u000a<3>z\\u202e\"") != NULL &&
           strstr(wrote(last, 'o'),
                  "\"b\u00e4ckup \u65e5\u672c \U0001f512\\u202e\\u009b\\ufffd\"") != NULL,
       "JSON escapes control characters");
    ask_all("FLUSHALL");
    ask_all("SET", "redlock:x", "no end");
    is_int(redlock("status", "x", NULL), 0, "a key without a TTL");
    ok(shows(last, "^x +held +3/3 +no end "), "a key without a TTL: no end");
    redlock("status", "--json", "x", NULL);
    ok(strstr(wrote(last, 'o'), "\"left_ms\":null,") != NULL, "a key without a TTL: in JSON null");
    ask_all("PEXPIRE", "redlock:x", "8639990000"); /* not yet a round number */
    redlock("status", "x", NULL);
    ok(shows(last, "^x +held +3/3 +99 d "), "a TTL of almost 100 days: the time left");
    ask_all("PEXPIRE", "redlock:x", "3000000");
    redlock("status", "x", NULL);
    ok(shows(last, "^x +held +3/3 +(50|49) min "), "50 minutes");
    ask_all("PEXPIRE", "redlock:x", "35900000");
    redlock("status", "x", NULL);
    ok(shows(last, "^x +held +3/3 +9 h "), "almost ten hours");
    memset(huge, 'v', sizeof huge - 1);
    ask_all("SET", "redlock:x", huge);
    is_int(redlock("status", "x", NULL), 0, "a huge value");
    is_int(redlock("run", "-n", "x", "true", NULL), 75, "a huge value: held");
    ask_all("SET", "redlock:x", "0123456789012345678901234567890123456789:host:7:1:job");
    ask_all("SETRANGE", "redlock:x", "60000", ".");
    is_int(redlock("status", "x", NULL), 0, "a huge value that begins like one of redlock");
    ok(shows(last, "^x +held .* host/7 [(]job[)]$"), "status shows its holder");
    ask_all("DEL", "redlock:x");
    ask_all("LPUSH", "redlock:x", "a", "b");
    is_int(redlock("status", "x", NULL), 0, "a list: the name is in use");
    ok(shows(last, "^x +in use +3/3 .* list, which is not a lock$"),
       "a list: status prints the type");
    redlock("status", "--json", "x", NULL);
    ok(strstr(wrote(last, 'o'), "\"state\":\"in use\"") && strstr(wrote(last, 'o'), "\"list\""),
       "a list: JSON has the type");
    is_int(redlock("run", "-n", "x", "echo", "ran", NULL), 75, "run: in use");
    is_text(wrote(last, 'o'), "", "run: in use: the command does not run");
    ok(strstr(wrote(last, 'e'), "not a lock: on 127.0.0.1:") != NULL,
       "run: in use: the message has the nodes");
    is_int(redlock("run", "-n", "-E", "0", "x", "true", NULL), 0, "run -E 0: in use");
    ok(strstr(wrote(last, 'e'), "not a lock") != NULL, "stderr has: not a lock");
    ask_all("DEL", "redlock:x");
    no_key_left("then");
}

/* A majority of nodes answers, and still cannot tell whether the lock is held. */
static void undecided(void)
{
    char text[120];

    nodes(3);
    ask(0, "SET", "redlock:x", "one");
    server_kill(&servers[2]);
    is_int(redlock("status", "x", NULL), 69, "one has it, one is free, one is down: 69");
    ok(strstr(wrote(last, 'e'), "redlock: x: no client has a quorum: free on 1, taken on 1, "
                                "unknown on 1 of 3 nodes\n") != NULL &&
           strstr(wrote(last, 'e'), servers[2].address) != NULL,
       "the message counts them, and names the node that is down: %s", wrote(last, 'e'));
    ok(strstr(wrote(last, 'e'), "no quorum: ") == NULL,
       "it does not say that a majority is missing");
    is_int(redlock("status", "x*", NULL), 69, "a pattern that finds only this lock: 69");
    ok(strstr(wrote(last, 'e'), "x: no client has a quorum: free on 1, ") != NULL,
       "the same words");
    is_int(redlock("status", "--here", "x", NULL), 69, "--here: 69");
    ok(strstr(wrote(last, 'e'), "x: no client has a quorum: free on 1, ") != NULL,
       "the same words");
    is_int(redlock("run", "-n", "x", "true", NULL), 69, "run -n: 69");
    ok(strstr(wrote(last, 'e'), "x: no client has a quorum: free on 1, taken on 1, ") != NULL,
       "so says run -n: %s", wrote(last, 'e'));
    ask(1, "SET", "redlock:x", "two");
    is_int(redlock("status", "x", NULL), 69, "two have different values, one is down: 69");
    ok(strstr(wrote(last, 'e'), ": free on 0, taken on 2, unknown on 1 of 3 nodes\n") != NULL,
       "the message counts both as taken");
    ask(0, "SET", "redlock:x", "two");
    is_int(redlock("status", "x", NULL), 0, "two have the same value, one is down: 0");
    snprintf(text, sizeof text,
             "redlock: status: only 2 of 3 nodes count\nredlock:   %.31s: ", servers[2].address);
    ok(strncmp(wrote(last, 'e'), text, strlen(text)) == 0, "a headline, then the node: %s",
       wrote(last, 'e'));
    ask(0, "SET", "redlock:y", "one");
    is_int(redlock("status", "y", "x", NULL), 0, "one of two names is held, the other unknown: 0");
    is_int(redlock("status", "y", "z", NULL), 69, "one is free, the other unknown: 69");
}

/* The processes that ask the nodes are killed, long before a node is late. */
static void askers_die(void)
{
    struct program run;
    pid_t child;
    int i;

    nodes(3);
    pause_all();
    run = start("status", "--node-timeout", "60", "x", NULL);
    for (i = 0; i < 3; i++) {
        ok(until((child = child_of(run.pid, 0)) > 0, WAIT_MS), "a process asks");
        signal_to(child, SIGKILL);
        until(!lives(child), WAIT_MS);
    }
    is_int(ends(&run), 69, "nobody has answered: 69");
    resume_all();
    is_int(count_of(wrote(run, 'e'), ": the process that asks it has ended\n"), 1,
           "the message says why: %s", wrote(run, 'e'));
}

/* The name is in use by something that is not a lock: each verb reports this. */
static void foreign_keys(void)
{
    struct beat *a = map_beat(beat_path("a")), *b = map_beat(beat_path("b"));
    struct program run, held;
    char token[300], text[200];

    nodes(3);
    redlock("acquire", "-t", "60", "x", NULL);
    line_of(last, token);
    run = start("run", "y", self, "beat", beat_path("a"), NULL);
    held = start("run", "--min-hold", "1", "z", self, "beat", beat_path("b"), NULL);
    ok(beats(a) && beats(b), "two run");
    ask_all("DEL", "redlock:x", "redlock:y", "redlock:z");
    ask_all("ZADD", "redlock:x", "1", "m");
    ask_all("ZADD", "redlock:y", "1", "m");
    ask_all("ZADD", "redlock:z", "1", "m");
    snprintf(text, sizeof text, "x: the name is in use by something that is not a lock: on %.10s",
             servers[0].address); /* of the nodes that decided it */
    is_int(redlock_with(token, "release", "x", NULL), 79, "release: 79");
    ok(strstr(wrote(last, 'e'), text) != NULL, "release: the message has a node");
    is_int(count_of(wrote(last, 'e'), "\n"), 1, "release: one message: %s", wrote(last, 'e'));
    redlock("status", "--json", "x", NULL);
    ok(strstr(wrote(last, 'o'), "\"type\":\"zset\"}") != NULL, "status --json: the type");
    a->stop = b->stop = 1;
    is_int(ends(&run), 79, "run, when its command ends: 79");
    ok(strstr(wrote(run, 'e'), "y: the name is in use by") != NULL,
       "stderr has: y: the name is in use by");
    ok(strstr(wrote(run, 'e'), "another client") == NULL, "no other message contradicts it: %s",
       wrote(run, 'e'));
    is_int(ends(&held), 79, "run --min-hold, when its command ends: 79");
    is_int(redlock("run", "-n", "x", "true", NULL), 75, "run with such a name: 75");
    ok(strstr(wrote(last, 'e'), text) != NULL, "the message has the nodes: %s", wrote(last, 'e'));
    is_int(redlock("run", "-w", "1", "x", "true", NULL), 75, "run -w with such a name: 75");
    ok(strstr(wrote(last, 'e'), text) != NULL, "the message has the nodes: %s", wrote(last, 'e'));
    run = start("run", "-v", "x", "true", NULL);
    snprintf(text, sizeof text, "redlock: waiting for x\nredlock:   %.20s", servers[0].address);
    ok(writes(run, 'e', text), "run that waits for such a name: a node and a reason follow: %s",
       wrote(run, 'e'));
    signal_to(run.pid, SIGTERM);
    is_int(ends(&run), -SIGTERM, "and SIGTERM ends it");
    ask_all("FLUSHALL");
}

/* ---- Nodes ---- */

static void is_config_error(const char *list, const char *what, const char *column)
{
    is_int(redlock("run", "-N", list, "x", "true", NULL), 78, "%s: 78", what);
    ok(strstr(wrote(last, 'e'), column) != NULL, "%s: the message has '%s'", what, column);
}

static void node_lists(void)
{
    static char huge[20000];
    char list[300], file[600], longest[120];
    const char *path;

    nodes(3);
    is_config_error("redis://:" SECRET "@127.0.0.1,redis://h:99999", "a bad port",
                    "node 2, column ");
    is_config_error("redis://u:" SECRET "@h:port", "a word as port", "column 21");
    is_config_error("redis://u:pa/" SECRET "@h", "a / in a password",
                    "a port is a number from 1 to 65535; in a password / is %2F, % is %25, ");
    is_config_error("redis://u:pa," SECRET "@h", "a comma in a password", "a comma is %2C");
    is_config_error("http://u:" SECRET "@h", "an unknown scheme", "node 1, column 1 of");
    is_config_error("rediss://:" SECRET "@h", "TLS", "stunnel");
    is_config_error("valkeys://h", "TLS",
                    "h:6379: this program was built without TLS: build it with `make cli TLS=1`");
    is_config_error("redis://" SECRET "@h", "x@", "user:password@");
    memset(longest, 's', sizeof longest);
    longest[0] = '/';
    longest[108] = '\0';
    is_config_error(longest, "a socket with a path of 108 bytes", "at most 107 bytes");
    longest[107] = '\0';
    is_int(redlock("run", "-n", "-N", longest, "x", "true", NULL), 69,
           "one of 107 bytes, without a server: 69");
    is_config_error("redis://:" SECRET "@h/1?db=2", "two databases", "twice");
    is_config_error("redis://:" SECRET "@h/abc", "a word as database", "column");
    is_config_error("redis://:%zz" SECRET "@h", "a broken escape", "%");
    is_config_error("", "an empty list", "no nodes");
    is_config_error(" , ,", "nothing in the list", "no nodes");
    is_int(redlock("run", "-n", "-N", "no-such-host.invalid", "x", "true", NULL), 69,
           "an unknown host name: 69");
    ok(strstr(wrote(last, 'e'), "no-such-host.invalid:6379: cannot resolve") != NULL,
       "stderr has: no-such-host.invalid:6379: cannot resolve");
    snprintf(list, sizeof list, "%s,no-such-host.invalid,nor-this.invalid", list_of(2, ""));
    is_int(redlock("run", "-n", "-N", list, "x", "true", NULL), 69,
           "two of four nodes are no quorum");
    snprintf(list, sizeof list, "%s,no-such-host.invalid", list_of(2, ""));
    is_int(redlock("run", "-n", "-N", list, "x", "-c", "exit 4", NULL), 4,
           "two of three nodes are a quorum");
    redlock("status", "-N", list, "x", NULL);
    ok(shows(last, "^x +free ") && strstr(wrote(last, 'e'), "cannot resolve the name"),
       "status shows the node that is not resolved");
    snprintf(list, sizeof list, "redis://u:" SECRET "@[::1]:%d,[0:0::1]:%d", servers[0].port,
             servers[0].port);
    is_config_error(list, "the same node in two notations", "the same node");
    snprintf(list, sizeof list, "redis://u:" SECRET "@127.1:%d,127.1:%d", servers[0].port,
             servers[0].port);
    is_config_error(list, "the same name twice", "the same node");
    snprintf(list, sizeof list, "127.0.0.1:%d/0", servers[0].port);
    is_config_error(list, "a path without a scheme", "column");
    is_int(redlock("run", "--node=redis://:" SECRET "@h", "x", "true", NULL), 64,
           "an abbreviated option");
    is_int(redlock("run", "--nodez=redis://:" SECRET "@h", "x", "true", NULL), 64,
           "a misspelt option");
    is_int(redlock("status", "x", "--quiet=redis://:" SECRET "@h", NULL), 64, "a value for a flag");
    unsetenv("REDLOCK_NODES");
    is_int(redlock("run", "x", "true", NULL), 78, "no nodes: 78");
    is_int(redlock("check", NULL), 3, "check without nodes: 3");
    ok(strncmp(wrote(last, 'o'), "REDLOCK UNKNOWN - no nodes: ", 28) == 0 &&
           count_of(wrote(last, 'o'), "\n") == 1,
       "the first line is for monitoring plugins: %s", wrote(last, 'o'));
    is_int(redlock("check", "--json", NULL), 3, "check --json without nodes: 3");
    is_text(wrote(last, 'o'), "", "the line is not JSON");
    path = write_file("c", 0600, "prefix = p:\n");
    is_int(redlock("run", "--config", path, "x", "true", NULL), 78, "a file without nodes: 78");
    ok(strstr(wrote(last, 'e'), path) != NULL && strstr(wrote(last, 'e'), "/etc/") == NULL,
       "the message names the file: %s", wrote(last, 'e'));
    unsetenv("REDLOCK_NODE_TIMEOUT");
    is_int(redlock("status", "-N", "h:1,redis://h:2?timeout=70000", "x", NULL), 78,
           "a timeout of 70 s in an address");
    setenv("REDLOCK_NODE_TIMEOUT", "3", 1);
    is_text(wrote(last, 'e'), "redlock: h:2: the timeout in its address: 60s at most\n",
            "the message names the node");

    snprintf(list, sizeof list, "redis://%.31s/0 unix://%.119s?timeout=900, 127.1:%d",
             servers[0].address, servers[1].local + 5, servers[2].port);
    is_int(redlock("run", "-v", "-N", list, "x", "-c", "exit 3", NULL), 3,
           "several forms of address");
    is_int(redlock("acquire", "-t", "60", "-N", servers[0].address, "-N", servers[1].local,
                   "--nodes", servers[2].address, "y", NULL),
           0, "-N three times");
    ok(on_most("redlock:y"), "-N three times: all nodes are used");
    ask_all("FLUSHALL");

    snprintf(list, sizeof list, "%s/redis@1.sock", programs_folder());
    ok(symlink(servers[2].local + strlen("unix:"), list) == 0, "a socket with @ in its path");
    is_int(redlock("run", "-N", servers[0].address, "-N", list, "-N", servers[1].address, "x",
                   "true", NULL),
           0, "on the command line");
    is_text(wrote(last, 'e'), "", "no warning about a password");
    snprintf(file, sizeof file, "prefix = p@:\nnode = %s, %s\nnode = %s\n", servers[0].address,
             list, servers[1].address);
    is_int(redlock("run", "--config", write_file("c", 0644, file), "x", "true", NULL), 0,
           "in a configuration file that others may read");

    snprintf(file, sizeof file,
             "# ours\n\n  node = %s\nnode=%s\n\tnode =\t%s  \nprefix = p:\nnode-timeout = 2\n",
             servers[0].address, servers[1].address, servers[2].local);
    is_int(redlock("acquire", "-t", "60", "--config", write_file("c", 0644, file), "y", NULL), 0,
           "a configuration file");
    ok(on_most("p:y"), "a configuration file sets nodes and prefix");
    setenv("REDLOCK_CONFIG", write_file("c", 0644, file), 1);
    is_int(redlock("status", "y", NULL), 0, "REDLOCK_CONFIG");
    is_int(redlock("status", "--config", "/nonexistent", "y", NULL), 78, "a missing file: 78");
    is_int(redlock("status", "--config", write_file("c", 0600, "nodess = a\n"), "y", NULL), 78,
           "no such key: 78");
    ok(strstr(wrote(last, 'e'), "line 1") != NULL, "stderr has: line 1");
    is_int(redlock("status", "--config",
                   write_file("c", 0600, "redis://u:" SECRET "@h?timeout=500\n"), "y", NULL),
           78, "an address without a key");
    ok(strstr(wrote(last, 'e'), "line 1: no such key: redis\n") != NULL,
       "the message has no password");
    is_int(redlock("status", "--config", write_file("c", 0600, "node\n"), "y", NULL), 78,
           "a key without a value");
    is_int(redlock("status", "--config", programs_folder(), "y", NULL), 78, "a folder: 78");
    ok(strstr(wrote(last, 'e'), "not a regular file") != NULL, "stderr has: not a regular file");
    is_int(redlock("status", "--config", write_file("c", 0600, "config = /x\n"), "y", NULL), 78,
           "a file that names another file: 78");
    ok(strstr(wrote(last, 'e'), "line 1: no such key: config") != NULL,
       "stderr has: line 1: no such key: config");
    redlock("status", "--config", write_file("c", 0600, "\nnode = a, b:c # d\n"), "y", NULL);
    ok(strstr(wrote(last, 'e'), "c.secret: line 2: column 6 of the value: a port") != NULL,
       "a bad address in a file: the message has file, line and column");
    memset(huge, 'x', sizeof huge - 1);
    memcpy(huge, "\nnode = ", 8);
    redlock("status", "--config", write_file("c", 0600, huge), "y", NULL);
    ok(strstr(wrote(last, 'e'), "c.secret: line 2: longer than") != NULL,
       "a long line: the message has file and line");
    path = write_file("c", 0600, "prefix = a\nprefix = b");
    ok(truncate(path, 30) == 0 && redlock("status", "--config", path, "y", NULL) == 78,
       "NUL bytes in a file: 78"); /* truncate() appends them */
    ok(strstr(wrote(last, 'e'), "c.secret: line 2: it has a NUL byte") != NULL,
       "NUL bytes in a file: the message has file and line");
    snprintf(file, sizeof file, "node = %s # the first\nnode=%s\t#b\n #\nnode=%s\nprefix = p:#\n",
             servers[0].address, servers[1].address, servers[2].local);
    redlock("acquire", "-t", "60", "--config", write_file("c", 0644, file), "z", NULL);
    ok(on_most("p:#z"), "comments after values; a # that begins no comment");
    setenv("REDLOCK_NODES", list_of(3, ""), 1);
    is_int(redlock("status", "--config", write_file("c", 0600, "node-timeout = x\n"), "y", NULL),
           78, "a wrong duration, although the environment has a valid one");
    is_int(redlock("status", "--config", write_file("c", 0600, "\nnode-timeout = 61\n"), "y", NULL),
           78, "too long a timeout");
    ok(strstr(wrote(last, 'e'), "c.secret: line 2: node-timeout: 1ms to 60s") != NULL,
       "too long a timeout: the message has file and line");
    is_int(redlock("status", "--node-timeout", "0", "y", NULL), 64, "too short a timeout");
}

/* In a mount namespace: an /etc with a configuration file that the program may not read. */
static void closed_config(void)
{
    enter_mount_namespace();
    if (mount("none", "/etc", "tmpfs", 0, NULL) != 0)
        _exit(99);
    write_or_end("/etc/redlock.conf", "node = other\n");
    chmod("/etc/redlock.conf", 0);
}

static void default_config(void)
{
    nodes(3);
    unsetenv("REDLOCK_CONFIG");
    setup.before = closed_config;
    if (redlock("version", NULL) == 99) {
        skip("creating a mount namespace is not permitted");
        return;
    }
    setup.before = closed_config;
    is_int(redlock("run", "-N", list_of(3, ""), "x", "-c", "exit 4", NULL), 4,
           "/etc/redlock.conf is not readable: -N works");
    setup.before = closed_config;
    is_int(redlock("status", "x", NULL), 1,
           "/etc/redlock.conf is not readable: REDLOCK_NODES works");
    unsetenv("REDLOCK_NODES");
    setup.before = closed_config;
    is_int(redlock("status", "x", NULL), 78, "/etc/redlock.conf is not readable, no nodes: 78");
    ok(strstr(wrote(last, 'e'), "/etc/redlock.conf (Permission denied)") != NULL,
       "stderr has: /etc/redlock.conf (Permission denied)");
    setup.before = closed_config;
    is_int(redlock("status", "--config", "/etc/redlock.conf", "-N", "x", "y", NULL), 78,
           "a file that --config names must be readable: 78");
}

/* ---- Many waiters, and names ---- */

/* Milliseconds from the end of the holder until all these waiters have ended; -1 if one of them failed. */
static long hand_off_ms(int count)
{
    struct beat *a = map_beat(beat_path("a"));
    struct program holder, waiter[20];
    int i, right = 0;
    long begin;

    memset(a, 0, sizeof *a);
    holder = start("run", "x", self, "beat", beat_path("a"), NULL);
    beats(a);
    for (i = 0; i < count; i++)
        waiter[i] = start("run", "x", "true", NULL);
    sleep_ms(500);
    a->stop = 1;
    begin = now_ms();
    ends(&holder);
    for (i = 0; i < count; i++)
        right += ends(&waiter[i]) == 0;
    return right == count ? now_ms() - begin : -1;
}

/* A release notifies the first waiter in the queue: that takes less than the 2 s after which each waiter makes an
   attempt anyway. A slow machine needs more time, which runs one after the other show. If the machine is paused, another
   try follows. */
static void hand_off(void)
{
    enum { WAITERS = 12 };
    long begin, alone_ms, took_ms = -1;
    int i, tries, at_once = 0;

    nodes(3);
    for (tries = 0; tries < 3 && !at_once; tries++) {
        begin = now_ms();
        for (i = 0; i < WAITERS; i++)
            redlock("run", "x", "true", NULL);
        alone_ms = now_ms() - begin;
        if ((took_ms = hand_off_ms(WAITERS)) < 0)
            break;
        at_once = took_ms < 1000 + 3 * alone_ms;
    }
    ok(took_ms >= 0, "%d waiters acquire the lock, one after the other", (int)WAITERS);
    ok(at_once, "each waiter acquires the lock without a pause (%ld ms in all)", took_ms);
    no_key_left("then");
}

/* A resolver that hangs delays the program by a second if a quorum has addresses, and not by a minute if none has. */
static void slow_names(void)
{
    char list[200];

    nodes(2);
    snprintf(list, sizeof list, "%s,hangs.invalid", list_of(2, ""));
    preload_shim();
    is_int(redlock("run", "-N", list, "x", "-c", "exit 4", NULL), 4,
           "the resolver hangs for one of three names: run");
    is_int(redlock("status", "-N", list, "x", NULL), 1,
           "the resolver hangs for one of three names: status");
    is_int(redlock("acquire", "-n", "-t", "9", "-N", "hangs.invalid", "x", NULL), 69,
           "the resolver hangs for the only name: 69");
    unsetenv("LD_PRELOAD");
    ok(strstr(wrote(last, 'e'), "the resolver has not answered yet") != NULL,
       "stderr has: the resolver has not answered yet");
    no_key_left("then");
}

/* How many threads a process has. */
static int threads_of(pid_t pid)
{
    char path[64];
    struct stat status;

    snprintf(path, sizeof path, "/proc/%ld/task", (long)pid);
    return stat(path, &status) == 0 ? (int)status.st_nlink - 2 : 0;
}

/* SIGTERM ends the program while it looks a name up: other threads do that, one for each family of addresses. It is process 1 of a PID namespace, where the kernel
   drops a signal that has no handler. */
static void names_that_hang(void)
{
    static const char *const rights[] = {"-pf", "-Urpf"};
    struct program run;
    pid_t pid = 0;
    int i = 0;

    preload_shim();
    setup.instead = "unshare";
    while (i < 2 && redlock(rights[i], "true", NULL) != 0) {
        setup.instead = "unshare";
        i++;
    }
    if (i == 2) {
        skip("creating a PID namespace is not permitted");
        return;
    }
    setup.instead = "unshare";
    run =
        start(rights[i], "--mount-proc", program, "run", "-N", "hangs.invalid", "x", "true", NULL);
    ok(until((pid = child_of(run.pid, 0)) > 0 && threads_of(pid) == 3, WAIT_MS), "it looks up");
    signal_to(pid, SIGTERM);
    is_int(ends(&run), 128 + SIGTERM, "process 1: SIGTERM ends it");
    is_text(wrote(run, 'e'), "", "without a message");
    run = start("acquire", "-t", "9", "-N", "hangs.invalid", "x", NULL);
    ok(until(threads_of(run.pid) == 3, WAIT_MS), "it looks up");
    signal_to(run.pid, SIGTERM);
    is_int(ends(&run), -SIGTERM, "any other process: SIGTERM ends it");
}

/* Soon after boot the system has no random bytes yet. They are waited for, as servers are. */
static void no_random_bytes(void)
{
    char path[300];
    struct program run, slots;

    nodes(3);
    snprintf(path, sizeof path, "%s/entropy", programs_folder());
    setenv("REDLOCK_ENTROPY", path, 1);
    preload_shim();
    setenv("REDLOCK_UNAVAILABLE_TIMEOUT", "1", 1);
    is_int(redlock("run", "-n", "x", "echo", "ran", NULL), 71, "no random bytes, and -n: 71");
    is_int(redlock("run", "x", "echo", "ran", NULL), 71, "none within unavailable-timeout: 71");
    setenv("REDLOCK_UNAVAILABLE_TIMEOUT", "60", 1);
    is_int(redlock("acquire", "-w", "1", "-t", "60", "x", NULL), 71, "none within -w: 71");
    ok(strcmp(wrote(last, 'e'), "redlock: x: no random bytes\n") == 0, "it says so: %s",
       wrote(last, 'e'));
    run = start("run", "-v", "x", "sh", "-c", "exit 4", NULL);
    slots = start("run", "-v", "--slots", "2", "y", "sh", "-c", "exit 5", NULL);
    ok(writes(run, 'e', "waiting for x: no random bytes yet\n") &&
           writes(slots, 'e', "waiting for y: no random bytes yet\n"),
       "they are waited for, also for a slot");
    close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    is_int(ends(&run), 4, "the command runs when there are random bytes");
    is_int(ends(&slots), 5, "also that of a slot");
    unsetenv("LD_PRELOAD");
    no_key_left("then");
}

/* The file of the shim's resolver: the first nodes have one address, the others another. */
static void name_nodes(unsigned count, const char *first, const char *others)
{
    const char *path = getenv("REDLOCK_HOSTS");
    char fresh[300];
    FILE *hosts;
    unsigned i;

    snprintf(fresh, sizeof fresh, "%.290s.new", path);
    hosts = fopen(fresh, "w");
    for (i = 0; i < 3; i++)
        fprintf(hosts, "node%u.test %s\n", i, i < count ? first : others);
    fclose(hosts);
    rename(fresh, path);
}

/* Three servers at 127.0.0.2, as node0.test to node2.test. */
static void begin_with_names(void)
{
    static const char *const addresses[] = {"--bind", "127.0.0.1", "127.0.0.2", NULL};
    char list[200] = "", hosts[300];
    unsigned i;

    node_count = 3;
    servers_start(servers, 3, addresses);
    for (i = 0; i < 3; i++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "node%u.test:%d ", i,
                 servers[i].port);
    setenv("REDLOCK_NODES", list, 1);
    snprintf(hosts, sizeof hosts, "%s/hosts", programs_folder());
    setenv("REDLOCK_HOSTS", hosts, 1);
    preload_shim();
}

/* From now on nothing answers at this address, such as 0x7f000009, and the port of this server: the queue of a listener is full. */
static void open_hole(unsigned i, uint32_t address)
{
    struct sockaddr_in at = {0};
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), n;

    at.sin_family = AF_INET;
    at.sin_port = htons((uint16_t)servers[i].port);
    at.sin_addr.s_addr = htonl(address);
    if (bind(listener, (struct sockaddr *)&at, sizeof at) != 0 || listen(listener, 0) != 0)
        exit(1);
    for (n = 0; n < 3; n++) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        (void)!connect(fd, (struct sockaddr *)&at, sizeof at);
    }
}

/* A name has several addresses, and servers listen at one of them: localhost is ::1 and 127.0.0.1, say. */
static void all_addresses(void)
{
    begin_with_names();
    name_nodes(3, "127.0.0.9 127.0.0.8 127.0.0.2", "");
    is_int(redlock("status", "x", NULL), 1, "the third address is the right one: status");
    is_int(redlock("acquire", "-n", "-t", "60", "x", NULL), 0, "acquire");
    is_int(redlock("run", "-n", "y", "-c", "exit 4", NULL), 4, "run");
    name_nodes(3, "127.0.0.9", "");
    is_int(redlock("acquire", "-n", "-t", "60", "x", NULL), 69, "no address is right");
    open_hole(0, 0x7f000008);
    open_hole(0, 0x7f000009);
    open_hole(1, 0x7f000008);
    open_hole(1, 0x7f000009);
    name_nodes(3, "127.0.0.9 127.0.0.8 127.0.0.2", "");
    is_int(redlock("run", "z", "-c", "exit 4", NULL), 4, "two addresses do not answer: run");
    is_int(redlock("status", "z", NULL), 1, "status");
    is_int(redlock("check", "--ttl", ".1", NULL), 1, "check");
    is_int(redlock("release", "--force", "00000000", "z", NULL), 79, "release --force");
}

static void names_that_appear(void)
{
    struct program waiter;

    begin_with_names();
    is_int(redlock("acquire", "-n", "-t", "60", "x", NULL), 69, "no name has an address");
    ok(strstr(wrote(last, 'e'), "cannot resolve the name: ") != NULL, "it says so");
    setenv("REDLOCK_UNAVAILABLE_TIMEOUT", "60", 1);
    waiter = start("run", "-v", "x", "sh", "-c", "exit 4", NULL);
    unsetenv("REDLOCK_UNAVAILABLE_TIMEOUT");
    ok(writes(waiter, 'e', "waiting"), "a program waits for them");
    name_nodes(3, "127.0.0.2", "");
    is_int(ends(&waiter), 4, "the lock is acquired when they have one");
    /* the third node may not be needed, nor looked up again by then */
    ok(count_of(wrote(waiter, 'e'), ".test:") >= 2 &&
           count_of(wrote(waiter, 'e'), " has an address now: 127.0.0.2:") >= 2,
       "which it says");
}

/* Two names of the list come to mean one server: it has one vote, and all verbs work. */
static void names_that_merge(void)
{
    char list[200], token[300];

    begin_with_names();
    name_nodes(3, "127.0.0.2", "");
    snprintf(list, sizeof list, "node0.test:%d node1.test:%d node2.test:%d", servers[0].port,
             servers[0].port, servers[2].port);
    setenv("REDLOCK_NODES", list, 1);
    is_int(redlock("run", "-n", "x", "-c", "exit 4", NULL), 4, "run");
    ok(strstr(wrote(last, 'e'),
              "is the same server as another node: 2 votes of 3, none may fail") != NULL,
       "warns: %s", wrote(last, 'e'));
    is_int(redlock("acquire", "-n", "-t", "60", "x", NULL), 0, "acquire");
    setenv("REDLOCK_TOKEN", line_of(last, token), 1);
    is_int(redlock("status", "-v", "x", NULL), 0, "status");
    ok(strstr(wrote(last, 'e'), "is the same server as") != NULL, "says so: %s", wrote(last, 'e'));
    is_int(redlock("release", "x", NULL), 0, "release");
    snprintf(list, sizeof list, "127.0.0.2:%d node1.test:%d node2.test:%d", servers[0].port,
             servers[0].port, servers[2].port);
    setenv("REDLOCK_NODES", list, 1);
    is_int(redlock("run", "-n", "x", "-c", "exit 4", NULL), 4, "a number and a name");
    ask_all("ACL", "SETUSER", "default", "-info"); /* then the servers tell no run_id */
    is_int(redlock("run", "-n", "x", "-c", "exit 4", NULL), 4, "without +info");
    ok(strstr(wrote(last, 'e'), "2 votes of 3, none may fail") != NULL, "warns: %s",
       wrote(last, 'e'));
    server_kill(&servers[2]);
    is_int(redlock("run", "-n", "x", "true", NULL), 69, "one vote is no quorum, also later");
    unsetenv("LD_PRELOAD");
}

/* Servers move to new addresses, one after the other, with their keys. */
static void names_that_move(void)
{
    char message[100];
    struct program run;
    unsigned i;
    int before;

    begin_with_names();
    name_nodes(3, "127.0.0.2", "");
    run = start("run", "-t", "6", "-v", "x", "sh", "-c",
                "trap 'exit 5' USR1; while :; do sleep 0.1; done", NULL);
    ok(writes(run, 'e', "renewed"), "the lock is renewed");
    for (i = 0; i < 3; i++) {
        name_nodes(i + 1, "127.0.0.3", "127.0.0.2");
        ok(strcmp(server_ask(&servers[i], reply, sizeof reply, "CONFIG", "SET", "bind",
                             "127.0.0.1 127.0.0.3", NULL),
                  "OK") == 0,
           "node %u moves", i);
        server_ask(&servers[i], reply, sizeof reply, "CLIENT", "KILL", "TYPE", "normal", NULL);
        snprintf(message, sizeof message, "node%u.test:%d has another address now: 127.0.0.3:", i,
                 servers[i].port);
        ok(writes(run, 'e', message), "stderr has its new address");
        before = count_of(wrote(run, 'e'), "renewed");
        ok(until(count_of(wrote(run, 'e'), "renewed") > before + 1, WAIT_MS), "renewed");
    }
    kill(run.pid, SIGUSR1);
    is_int(ends(&run), 5, "the job was not ended");
    no_key_left("then");
}

/* ---- Secrets ---- */

/* How many processes have this text on their command line. */
static int on_a_command_line(const char *word)
{
    DIR *list = opendir("/proc");
    struct dirent *entry;
    char path[300], text[4096];
    int found = 0;

    while (list != NULL && (entry = readdir(list)) != NULL) {
        ssize_t size = 0;
        int fd;
        snprintf(path, sizeof path, "/proc/%.20s/cmdline", entry->d_name);
        if (entry->d_name[0] < '1' || entry->d_name[0] > '9' || (fd = open(path, O_RDONLY)) < 0)
            continue;
        size = read(fd, text, sizeof text);
        close(fd);
        found += size > 0 && memmem(text, (size_t)size, word, strlen(word)) != NULL;
    }
    if (list != NULL)
        closedir(list);
    return found;
}

static void passwords(void)
{
    static const char fix[] = "redlock:   fix: user and password in the address, the configuration "
                              "file or REDISCLI_AUTH; see also redlock check\n";
    struct beat *a = map_beat(beat_path("a"));
    struct program run;
    char list[1024];

    nodes(3);
    setenv("REDISCLI_AUTH", SECRET, 1); /* servers without a password accept all clients */
    is_int(redlock("run", "x", "true", NULL), 0, "a password that no server needs: run");
    is_int(redlock("acquire", "-t", "60", "x", NULL), 0,
           "a password that no server needs: acquire");
    is_int(redlock("status", "x", NULL), 0, "a password that no server needs: status");
    is_int(redlock("run", "--min-hold", ".1", "y", "true", NULL), 0,
           "a password that no server needs: run --min-hold");
    unsetenv("REDISCLI_AUTH");
    ask_all("FLUSHALL");
    ask_all("ACL", "SETUSER", "me", "on", ">" SECRET, "~*", "+@all");
    ask_all("ACL", "SETUSER", "default", ">" SECRET "d", "resetpass", ">" SECRET "d");
    ask_all("AUTH", SECRET "d");
    setenv("REDLOCK_UNAVAILABLE_TIMEOUT", "0", 1);
    snprintf(list, sizeof list, "%040d", 0);
    is_int(redlock_with(list, "release", "x", NULL), 77, "release does not wait for a password");
    unsetenv("REDLOCK_UNAVAILABLE_TIMEOUT");
    is_int(redlock("run", "x", "true", NULL), 77, "without a password: 77");
    ok(strstr(wrote(last, 'e'), "NOAUTH") != NULL, "stderr has: NOAUTH");
    ok(strstr(wrote(last, 'e'), fix) != NULL, "and what to do: %s", wrote(last, 'e'));
    redlock("status", "x", NULL);
    ok(strstr(wrote(last, 'e'), fix) != NULL, "so does status: %s", wrote(last, 'e'));
    redlock("acquire", "-t", "9", "-N", list_of(3, "redis://:" SECRET "x@"), "x", NULL);
    ok(strstr(wrote(last, 'e'), "WRONGPASS") && count_of(wrote(last, 'e'), fix) == 1,
       "so does acquire with a wrong one: %s", wrote(last, 'e'));
    is_int(redlock("run", "-n", "-N", list_of(3, "redis://:" SECRET "x@"), "x", "true", NULL), 77,
           "a wrong password: 77");
    is_int(redlock("run", "-N", list_of(3, "redis://me:" SECRET "x@"), "x", "true", NULL), 77,
           "a wrong password of a user, with waiting: 77");
    setenv("REDLOCK_NODES", list_of(3, "redis://me:" SECRET "x@"), 1);
    is_int(redlock("acquire", "-t", "60", "x", NULL), 77, "a wrong password: acquire");
    is_int(redlock("status", "x", NULL), 77, "a wrong password: status");
    is_int(redlock("status", NULL), 77, "a wrong password: list");
    ok(strstr(wrote(last, 'e'), "status: no quorum: 0 of 3 nodes permit it, 2 needed\n") != NULL,
       "stderr has: no quorum: 0 of 3 nodes permit it, 2 needed");
    is_int(redlock("release", "--force", "00000000", "x", NULL), 77,
           "a wrong password: release --force");
    ok(strstr(wrote(last, 'e'), "x: no quorum: 0 of 3 nodes permit it, 2 needed\n") != NULL,
       "stderr has the same words");
    snprintf(list, sizeof list, "%040d", 0);
    is_int(redlock_with(list, "release", "x", NULL), 77, "a wrong password: release");
    is_int(count_of(wrote(last, 'e'), ": WRONGPASS "), 1, "it says why, once for all nodes");
    setenv("REDLOCK_NODES", list_of(3, ""), 1);
    is_int(redlock("status", "x", NULL), 77, "status without a password");
    snprintf(list, sizeof list, "%s", list_of(3, "redis://me:" SECRET "@"));
    run = start("run", "-v", "-N", list, "x", self, "beat", beat_path("a"), NULL);
    ok(beats(a), "a password in -N");
    snprintf(list, sizeof list, SECRET "@%s", servers[0].address); /* unique among all processes */
    is_int(on_a_command_line(list), 0, "a password in -N: on no command line");
    ok(strstr(wrote(run, 'e'), "may have seen the password") != NULL,
       "a password in -N: a warning");
    a->stop = 1;
    is_int(ends(&run), 5, "a password in -N: the command's status");
    snprintf(list, sizeof list, "--nodes=%s", list_of(3, "redis://me:" SECRET "@"));
    is_int(redlock("run", list, "x", "true", NULL), 0, "a password in --nodes=");
    setenv("REDISCLI_AUTH", SECRET "d", 1);
    is_int(redlock("run", "-v", "x", "true", NULL), 0, "REDISCLI_AUTH");
    is_int(redlock("status", "--json", "x", NULL), 1, "REDISCLI_AUTH: status");
    unsetenv("REDISCLI_AUTH");
    snprintf(list, sizeof list, "node = %.900s\n", list_of(3, "redis://me:" SECRET "@"));
    is_int(redlock("run", "-v", "--config", write_file("c", 0600, list), "x", "true", NULL), 77,
           "the environment overrides the configuration file");
    unsetenv("REDLOCK_NODES");
    is_int(redlock("run", "-v", "--config", write_file("c", 0600, list), "x", "true", NULL), 0,
           "a password in the configuration file");
    is_int(redlock("run", "--config", write_file("c", 0644, list), "x", "true", NULL), 78,
           "a configuration file with a password that others may read: 78");
    is_int(redlock("run", "--config", programs_folder(), "x", "true", NULL), 78, "a folder: 78");
    ok(strstr(wrote(last, 'e'), "not a regular file") != NULL, "stderr has: not a regular file");
    snprintf(list, sizeof list, "node = %.600s\nauth-file = /x\n", list_of(3, ""));
    is_int(redlock("run", "--config", write_file("c", 0600, list), "x", "true", NULL), 78,
           "an auth-file in the configuration file is gone: 78");
    ok(strstr(wrote(last, 'e'), "line 2: auth-file is gone") != NULL, "it says what to use");
    setenv("REDLOCK_AUTH_FILE", "/x", 1);
    is_int(redlock("status", "x", NULL), 78, "REDLOCK_AUTH_FILE is gone: 78");
    is_text(wrote(last, 'e'),
            "redlock: REDLOCK_AUTH_FILE is gone: user and password belong into the addresses\n",
            "it says what to use");
    setenv("REDLOCK_AUTH_FILE", "", 1);
    redlock("status", "x", NULL);
    ok(strstr(wrote(last, 'e'), "is gone") == NULL, "an empty one is none");
    unsetenv("REDLOCK_AUTH_FILE");
    snprintf(list, sizeof list, "node = %.600s\n", list_of(3, "redis://me:" SECRET "@"));
    setenv("REDISCLI_AUTH", SECRET "x", 1);
    is_int(redlock("run", "--config", write_file("c", 0600, list), "x", "true", NULL), 0,
           "a password in the configuration file comes before REDISCLI_AUTH");
    unsetenv("REDISCLI_AUTH");
    ask_all("DEL", "redlock:y");
    no_key_left("then");
}

/* Tokens of a cloud are passwords, too. */
static void long_passwords(void)
{
    static char password[4096 + 2], text[3 * 5100];
    struct program run;
    const char *config;
    unsigned i;

    nodes(3);
    unsetenv("REDLOCK_NODES");
    memset(password, 'p', sizeof password - 1);
    memcpy(password, SECRET, sizeof SECRET - 1);
    for (i = 0; i < 3; i++)
        snprintf(text + strlen(text), 5100, "node = redis://:%s@%s\n", password,
                 servers[i].address);
    is_int(redlock("run", "--config", write_file("c", 0600, text), "x", "true", NULL), 78,
           "4,097 bytes: 78");
    ok(strstr(wrote(last, 'e'), "too long") != NULL, "it says why");
    password[4096] = '\0';
    ask_all("CONFIG", "SET", "requirepass", password);
    ask_all("AUTH", password);
    text[0] = '\0';
    for (i = 0; i < 3; i++)
        snprintf(text + strlen(text), 5100, "node = redis://default:%s@%s\n", password,
                 servers[i].address);
    config = write_file("c", 0600, text);
    run = start("run", "-t", "3", "-v", "--config", config, "x", "-c", "sleep 4; exit 5", NULL);
    is_int(ends(&run), 5, "4,096 bytes: run");
    ok(strstr(wrote(run, 'e'), "acquired on ") != NULL, "on a majority");
    is_int(redlock("status", "--config", config, "x", NULL), 1, "4,096 bytes: status");
    setenv("REDISCLI_AUTH", password, 1);
    is_int(redlock("run", "-N", list_of(3, ""), "x", "true", NULL), 0,
           "4,096 bytes in REDISCLI_AUTH: run");
    unsetenv("REDISCLI_AUTH");
    no_key_left("then");
}

/* Writes the file that --config of the next test names; all nodes with this user and password. */
static const char *write_nodes(mode_t mode, const char *login)
{
    char list[1024];

    snprintf(list, sizeof list, "node = %.1000s\n", list_of(node_count, login));
    return write_file("c", mode, list);
}

/* The connections are lost, so each login from now on needs the new password. The holder renews its lock three times. */
static void relogin(struct program run, const char *what)
{
    int before;

    ask_all("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
    before = count_of(wrote(run, 'e'), ": renewed; ") + count_of(wrote(run, 'e'), "works again; ");
    ok(until(count_of(wrote(run, 'e'), ": renewed; ") + count_of(wrote(run, 'e'), "works again; ") >
                 before + 2,
             WAIT_MS) &&
           with_key("redlock:x") >= 2,
       "%s: the lock is renewed", what);
    is_int(count_of(wrote(run, 'e'), "WRONGPASS"), 0, "%s: no login fails", what);
}

static void changed_passwords(void)
{
    struct beat *a = map_beat(beat_path("a")), *b = map_beat(beat_path("b"));
    struct program run, waits;
    char config[120];

    nodes(3);
    unsetenv("REDLOCK_NODES");
    ask_all("CONFIG", "SET", "requirepass", SECRET "1");
    ask_all("AUTH", SECRET "1");
    snprintf(config, sizeof config, "%s", write_nodes(0600, "redis://:" SECRET "1@"));
    run =
        start("run", "-v", "-t", "6", "--config", config, "x", self, "beat", beat_path("a"), NULL);
    ok(beats(a), "a holder");
    waits =
        start("run", "-v", "-t", "6", "--config", config, "x", self, "beat", beat_path("b"), NULL);
    ok(writes(waits, 'e', "held by"), "a waiter");
    write_nodes(0600, "redis://:" SECRET "2@");
    ask_all("CONFIG", "SET", "requirepass", SECRET "2");
    relogin(run, "requirepass has changed, and the file");
    ok(!has_ended(waits) && b->pid == 0, "the waiter waits");
    write_nodes(0644, "redis://:" SECRET "3@");
    relogin(run, "a file that others can read");
    is_int(count_of(wrote(run, 'e'), "the passwords that were read before stay in use"), 1,
           "the message comes once");
    unlink(config);
    relogin(run, "the file is gone");
    write_nodes(0600, "redis://:" SECRET "2@");
    a->stop = 1;
    is_int(ends(&run), 5, "the holder ends with the status of its command");
    ok(beats(b), "the waiter gets the lock");
    ask_all("ACL", "SETUSER", "default", "resetpass", ">" SECRET "4");
    write_nodes(0600, "redis://:" SECRET "4@");
    relogin(waits, "ACL SETUSER");
    b->stop = 1;
    is_int(ends(&waits), 5, "and ends likewise");
    no_key_left("then");
}

/* Without passwords the file is not read again: its file system may hang, and the thread that renews would wait for it. */
/* A pipe can be read once: its passwords are kept, and the command does not read it. */
static void config_pipes(void)
{
    struct beat *a = map_beat(beat_path("a"));
    struct program run;
    char path[120], text[300];
    int to;

    nodes(3);
    unsetenv("REDLOCK_NODES");
    ask_all("CONFIG", "SET", "requirepass", SECRET);
    ask_all("AUTH", SECRET);
    setenv("P", program, 1);
    setenv("C", write_nodes(0600, "redis://:" SECRET "@"), 1);
    setup.instead = "sh";
    is_int(redlock("-c", "cat \"$C\" | \"$P\" run --config /dev/stdin x sh -c 'exit 4'", NULL), 4,
           "--config /dev/stdin, which is a pipe");
    setup.instead = "bash";
    is_int(redlock("-c", "\"$P\" status --config <(cat \"$C\") x", NULL), 1,
           "--config <(cat FILE)");
    setup.instead = "sh";
    is_int(redlock("-c", "\"$P\" status --config /dev/stdin x <\"$C\"", NULL), 1,
           "--config /dev/stdin, which is the file");
    snprintf(path, sizeof path, "%s/pipe.secret", programs_folder());
    mkfifo(path, 0644);
    run = start("status", "--config", path, "x", NULL);
    to = open(path, O_WRONLY | O_CLOEXEC);
    dprintf(to, "node = %s\n", list_of(3, "redis://:" SECRET "@"));
    close(to);
    is_int(ends(&run), 78, "a named pipe with a password that others can read: 78");
    chmod(path, 0600);
    run = start("run", "-v", "-t", "6", "--config", path, "x", self, "beat", beat_path("a"), NULL);
    to = open(path, O_WRONLY | O_CLOEXEC);
    dprintf(to, "node = %s\n", list_of(3, "redis://:" SECRET "@"));
    close(to);
    ok(beats(a), "a named pipe");
    relogin(run, "a named pipe");
    is_int(count_of(wrote(run, 'e'), "stay in use"), 0, "its end is no fault");
    a->stop = 1;
    is_int(ends(&run), 5, "the command has ended");
    run = start("run", "--config", path, "x", "-c",
                "echo \"$REDLOCK_CONFIG,$REDLOCK_NODES,$REDLOCK_PREFIX,$REDLOCK_NODE_TIMEOUT\"",
                NULL);
    to = open(path, O_WRONLY | O_CLOEXEC);
    dprintf(to, "prefix = p:\nnode = %s\n", list_of(3, "redis://:" SECRET "@"));
    close(to);
    is_int(ends(&run), 0, "a command that prints its environment");
    is_text(wrote(run, 'o'), ",,p:,3000ms\n", "it has all but the pipe and the passwords");
    setenv("REDISCLI_AUTH", SECRET, 1);
    setenv("REDLOCK_CONFIG", path, 1);
    run = start("run", "x", "-c", "test -z \"$REDLOCK_CONFIG\" && \"$P\" status x", NULL);
    to = open(path, O_WRONLY | O_CLOEXEC);
    snprintf(text, sizeof text, "node = %.250s\n", list_of(3, ""));
    dprintf(to, "%s", text);
    close(to);
    is_int(ends(&run), 0, "nodes without passwords are passed on");
    unsetenv("REDISCLI_AUTH");
    setenv("REDLOCK_CONFIG", "/dev/null", 1);
    no_key_left("then");
}

static void no_passwords(void)
{
    struct beat *a = map_beat(beat_path("a"));
    struct program run;
    char config[120];

    nodes(3);
    unsetenv("REDLOCK_NODES");
    snprintf(config, sizeof config, "%s", write_nodes(0600, ""));
    run =
        start("run", "-v", "-t", "3", "--config", config, "x", self, "beat", beat_path("a"), NULL);
    ok(beats(a), "a holder");
    write_file("c", 0600, "nonsense\n");
    relogin(run, "the file has no passwords");
    is_int(count_of(wrote(run, 'e'), "c.secret"), 0, "no message is about the file");
    a->stop = 1;
    is_int(ends(&run), 5, "the status of the command");
}

/* The only client that the servers accept is the test itself. That is no denial, with or without a password. */
static void full_servers(void)
{
    char lists[2][300];
    int i;

    nodes(3);
    snprintf(lists[0], sizeof *lists, "%s", list_of(3, ""));
    snprintf(lists[1], sizeof *lists, "%s", list_of(3, "redis://:" SECRET "@"));
    ask_all("CONFIG", "SET", "maxclients", "1");
    for (i = 0; i < 2; i++) {
        setenv("REDLOCK_NODES", lists[i], 1);
        is_int(redlock("run", "-n", "x", "true", NULL), 69, "list %d: run", i);
        is_int(redlock("status", "x", NULL), 69, "list %d: status", i);
        ok(strstr(wrote(last, 'e'), "ERR max number of clients") != NULL,
           "list %d: status has the error of the servers", i);
        is_int(redlock("status", NULL), 69, "list %d: list", i);
        ok(strstr(wrote(last, 'e'), "no quorum: 0 of 3 nodes answered, 2 needed\n") != NULL,
           "list %d: list says how many answered", i);
        is_int(redlock("release", "--force", "00000000", "x", NULL), 69, "list %d: release --force",
               i);
    }
    ask_all("CONFIG", "SET", "maxclients", "100");
    snprintf(lists[0], sizeof *lists, "redis://%s/99,redis://%s/99,redis://%s/99",
             servers[0].address, servers[1].address, servers[2].address);
    is_int(redlock("run", "-n", "-N", lists[0], "x", "true", NULL), 69, "no such database: run");
    is_int(redlock("status", "-N", lists[0], "x", NULL), 69, "no such database: status");
    setenv("REDLOCK_NODES", list_of(3, ""), 1);
    ask_all("CONFIG", "SET", "maxmemory", "1");
    is_int(redlock("run", "-n", "x", "true", NULL), 69, "no memory is left: run");
    ok(strstr(wrote(last, 'e'), "x: no quorum: 0 of 3 nodes granted, 2 needed\n") != NULL &&
           count_of(wrote(last, 'e'), "replied: OOM ") == 1,
       "no memory is left: the errors of a majority: %s", wrote(last, 'e'));
}

static void least_permissions(void)
{
    struct program run, waits;

    nodes(3);
    ask_all("ACL", "SETUSER", "locker", "reset", "on", ">" SECRET, "~redlock:*", "+set", "+get",
            "+del", "+pexpire", "+pttl", "+eval", "+evalsha");
    ask_all("ACL", "SETUSER", "reader", "reset", "on", ">" SECRET, "~redlock:*", "+get");
    ask_all("ACL", "SETUSER", "elsewhere", "reset", "on", ">" SECRET, "~app:*", "+@all");
    setenv("REDLOCK_NODES", list_of(3, "redis://locker:" SECRET "@"), 1);
    run = start("run", "-v", "-t", "6", "x", "-c", "sleep 7; exit 3", NULL);
    on_most("redlock:x");
    waits = start("run", "-v", "x", "-c", "exit 4", NULL);
    is_int(redlock("run", "-n", "x", "true", NULL), 75, "with seven permitted commands: run -n");
    is_int(ends(&run), 3, "with seven permitted commands: run");
    ok(count_of(wrote(run, 'e'), ": renewed;") >= 2, "with seven permitted commands: renewals");
    is_int(ends(&waits), 4, "with seven permitted commands: a waiter");
    is_int(redlock("run", "-t", "6", "--min-hold", "1", "x", "true", NULL), 0,
           "with seven permitted commands: --min-hold");
    is_int(redlock("run", "x", "true", NULL), 0,
           "with seven permitted commands: run after --min-hold");
    no_key_left("then");
    is_int(redlock("acquire", "-t", "60", "x", NULL), 0, "with seven permitted commands: acquire");
    redlock("status", "-N", list_of(3, "redis://reader:" SECRET "@"), "x", NULL);
    ok(shows(last, "^x +held +3/3 +[?] "), "status without permission for PTTL prints no time");
    is_int(redlock("run", "-n", "-N", list_of(3, "redis://reader:" SECRET "@"), "y", "true", NULL),
           77, "no permission for SET: 77");
    is_int(redlock("run", "-N", list_of(3, "redis://elsewhere:" SECRET "@"), "y", "true", NULL), 77,
           "no permission for the key, with waiting: 77");
    ok(strstr(wrote(last, 'e'), "NOPERM") != NULL, "stderr has: NOPERM");
    ask_all("DEL", "redlock:x");
}

/* A lock that cannot be renewed: the command would be killed after the first ttl. */
static void no_renewal(void)
{
    static const char *const without[] = {"-pexpire", "-eval", "-pttl"};
    unsigned k, named;
    size_t i;

    nodes(3);
    for (i = 0; i < sizeof without / sizeof *without; i++) {
        ask_all("ACL", "SETUSER", "locker", "reset", "on", ">" SECRET, "~redlock:*", "+set", "+get",
                "+del", "+pexpire", "+pttl", "+eval", "+evalsha", without[i],
                i == 1 ? "-evalsha" : without[i]);
        is_int(redlock("run", "-t", "6", "-N", list_of(3, "redis://locker:" SECRET "@"), "x",
                       "echo", "ran", NULL),
               77, "%s: 77", without[i]);
        is_text(wrote(last, 'o'), "", "the command does not run");
        for (k = named = 0; k < 3; k++)
            named += count_of(wrote(last, 'e'), servers[k].address) > 0;
        ok(strstr(wrote(last, 'e'), "x: the lock cannot be renewed") != NULL && named >= 2,
           "the message names the nodes of a majority, %u: %s", named, wrote(last, 'e'));
        /* one of three, if the third node has not answered yet */
        ok(strstr(wrote(last, 'e'), " of 3 nodes permit it, 2 needed\n") != NULL,
           "they do not permit it; it does not say how many granted the lock before: %s",
           wrote(last, 'e'));
        ask_all("FLUSHALL"); /* without EVAL the release is denied, too */
    }
}

/* ---- Names of hosts ---- */

static const char pod_name[] = "web-frontend-production-eu-central-1-7c9d8b6f5d-abcde-0123456789";

static void set_long_name(void)
{
    if (unshare(CLONE_NEWUSER | CLONE_NEWUTS) != 0 || sethostname(pod_name, 64) != 0)
        _exit(99);
}

/* The ends of long names differ: these of containers. */
static void long_host_name(void)
{
    nodes(3);
    setup.before = set_long_name;
    if (redlock("acquire", "-t", "60", "x", NULL) == 99) {
        skip("creating a namespace is not permitted");
        return;
    }
    redlock("status", "x", NULL);
    ok(strstr(wrote(last, 'o'), "7c9d8b6f5d-abcde-0123456789/") != NULL,
       "the end of a long host name is kept");
    ask_all("DEL", "redlock:x");
}

/* ---- Other kinds of servers ---- */

/* A process that accepts connections and sends these bytes, as another kind of server does. It ends with the test. */
static int babbles(char *address, size_t size, const char *what, size_t bytes)
{
    int fd = listen_on(address, size);
    pid_t parent = getpid(), pid = fork();

    if (pid == 0) {
        end_with(parent);
        for (;;) {
            int client = accept(fd, NULL, NULL);
            if (client >= 0 && write(client, what, bytes) < 0)
                close(client);
        }
    }
    close(fd);
    return pid;
}

static rlim_t most_descriptors = 4;

static void few_descriptors(void)
{
    struct rlimit few = {most_descriptors, most_descriptors};

    setrlimit(RLIMIT_NOFILE, &few);
}

/* Too few descriptors for all nodes: the program says so at once, and does not wait for the nodes. */
static void no_descriptors(void)
{
    int status;
    long begin;

    nodes(3);
    for (most_descriptors = 5; most_descriptors <= 16; most_descriptors++) {
        setup.before = few_descriptors;
        begin = now_ms();
        status = redlock("run", "x", "true", NULL);
        ok(status == (most_descriptors < 12 ? 71 : 0) && now_ms() - begin < 5000,
           "%d descriptors: status %d after %ld ms: %s", (int)most_descriptors, status,
           now_ms() - begin, wrote(last, 'e'));
        ok(status == 0 || strncmp(wrote(last, 'e'), "redlock: too few descriptors", 28) == 0,
           "the message says it");
    }
    setup.before = few_descriptors;
    most_descriptors = 5;
    is_int(redlock("status", "x", NULL), 1, "status needs no more than 5");
}

/* The message about a pipe says why there is none. */
static void no_pipes(void)
{
    nodes(3);
    setup.before = few_descriptors;
    is_int(redlock("run", "x", "true", NULL), 71, "run without pipes: 71");
    ok(strncmp(wrote(last, 'e'), "redlock: no pipe: ", 18) == 0, "it says why: %s",
       wrote(last, 'e'));
    setup.before = few_descriptors;
    is_int(redlock("status", "x", NULL), 71, "status without pipes: 71");
    ok(strncmp(wrote(last, 'e'), "redlock: no memory, or no pipe: ", 32) == 0, "it says why: %s",
       wrote(last, 'e'));
}

static void no_servers(void)
{
    static const char alert[] = "\x15\x03\x03\x00\x02\x02\x46", http[] = "HTTP/1.1 400 No\r\n\r\n";
    char address[8][32], silent[300], babble[300], one[300];
    int i, fd[3], pids[3];

    nodes(2);
    setenv("REDLOCK_NODE_TIMEOUT", ".25", 1);
    for (i = 0; i < 3; i++) {
        fd[i] = listen_on(address[i], sizeof *address);
        pids[i] = babbles(address[3 + i], sizeof *address, i < 2 ? alert : http,
                          i < 2 ? sizeof alert - 1 : sizeof http - 1);
    }
    snprintf(silent, sizeof silent, "%s,%s,%s", address[0], address[1], address[2]);
    snprintf(babble, sizeof babble, "%s,%s,%s", address[3], address[4], address[5]);
    snprintf(one, sizeof one, "%s,%s,%s", list_of(2, ""), address[0], address[3]);
    is_int(redlock("run", "-N", silent, "-n", "x", "true", NULL), 69,
           "servers that accept and never answer: run");
    is_int(redlock("status", "-N", silent, "x", NULL), 69,
           "servers that accept and never answer: status");
    is_int(redlock("run", "-N", babble, "-n", "x", "true", NULL), 69,
           "servers that speak TLS or HTTP: run");
    is_int(count_of(wrote(last, 'e'), ": does not speak RESP\n"), 1, "run says so: %s",
           wrote(last, 'e'));
    is_int(redlock("status", "-N", babble, "x", NULL), 69,
           "servers that speak TLS or HTTP: status");
    is_int(count_of(wrote(last, 'e'), ": does not speak RESP\n"), 1, "status says the same: %s",
           wrote(last, 'e'));
    is_int(redlock("run", "-N", one, "-n", "x", "true", NULL), 69,
           "two good ones of four are no quorum");
    *strrchr(one, ',') = '\0';
    is_int(redlock("run", "--node-timeout", "3", "-N", one, "-n", "x", "-c", "exit 3", NULL), 3,
           "two good ones of three are a quorum");
    for (i = 0; i < 3; i++) {
        close(fd[i]);
        signal_to(pids[i], SIGKILL);
        waitpid(pids[i], NULL, 0);
    }
    no_key_left("on the good servers");
}

/* A command that contains the first text gets the second as its answer. The last first text is "". */
typedef const char *answer[2];

/* Serves one connection. */
static void answer_all(int client, const answer *answers)
{
    FILE *from = fdopen(client, "r");
    char line[64], command[2048];
    size_t used, size;
    long words, i;

    while (fgets(line, sizeof line, from) != NULL) {
        for (words = strtol(line + 1, NULL, 10), used = 0; words > 0; words--) {
            size = fgets(line, sizeof line, from) != NULL ? strtoul(line + 1, NULL, 10) + 2 : 0;
            if (size >= sizeof command - used || fread(command + used, 1, size, from) != size)
                return;
            used += size;
        }
        command[used] = '\0';
        for (i = 0; strstr(command, answers[i][0]) == NULL; i++)
            continue;
        sleep_ms(1); /* a conversation without an end uses little processor time */
        dprintf(client, "%s", answers[i][1]);
    }
}

/* A process that answers like this. It ends with the test. */
static pid_t oracle(char *address, size_t size, const answer *answers)
{
    int fd = listen_on(address, size);
    pid_t parent = getpid(), pid = fork();

    if (pid == 0) {
        end_with(parent);
        signal(SIGCHLD, SIG_IGN);
        for (;;) {
            int client = accept(fd, NULL, NULL);
            if (fork() == 0) {
                answer_all(client, answers);
                _exit(0);
            }
            close(client);
        }
    }
    close(fd);
    return pid;
}

/* Answers of the wrong kind. */
static void odd_answers(void)
{
    static const answer answers[] = {
        {"SET\r\n", "+OK\r\n"},          {"pexpire", ":1\r\n"},  {"EVALSHA", "-NOSCRIPT none\r\n"},
        {"GET\r\n", ":5\r\n"},           {"SCAN\r\n", "*0\r\n"}, {"TRACKING", "+OK\r\n"},
        {"", "-ERR unknown command\r\n"}};
    static const answer types[] = {{"pcall", "*3\r\n+\x1b[2J\r\n:0\r\n:-1\r\n"},
                                   {"SCAN\r\n", "*2\r\n$1\r\n0\r\n*1\r\n$9\r\nredlock:x\r\n"},
                                   {"TYPE\r\n", "+\x1b[2J\r\n"},
                                   {"GET\r\n", "-WRONGTYPE\r\n"},
                                   {"", "-ERR unknown command\r\n"}};
    static const answer empty[] = {{"", "-\r\n"}};
    static const answer endless[] = {{"SCAN\r\n", "*2\r\n$1\r\n1\r\n*0\r\n"},
                                     {"", "-ERR unknown command\r\n"}};
    char address[32];
    pid_t liar = oracle(address, sizeof address, answers);

    setenv("REDLOCK_NODES", address, 1);
    is_int(redlock("status", "x", NULL), 69, "status: a number as value");
    ok(strstr(wrote(last, 'e'), "unexpected reply") != NULL, "status: the node has an error");
    is_int(redlock("status", NULL), 69, "status of all: an empty answer to SCAN");
    ok(strstr(wrote(last, 'e'), "unexpected reply") != NULL,
       "status of all: the node has an error");
    signal_to(liar, SIGKILL);
    waitpid(liar, NULL, 0);
    liar = oracle(address, sizeof address, types);
    setenv("REDLOCK_NODES", address, 1);
    is_int(redlock("status", "x", NULL), 0, "status: a type with control characters");
    is_int(count_of(wrote(last, 'o'), "\x1b") * 10 + count_of(wrote(last, 'o'), "\\x1b[2J"), 1,
           "status: escapes them");
    is_int(redlock("status", NULL), 0, "status of all: a type with control characters");
    is_int(count_of(wrote(last, 'o'), "\x1b") * 10 + count_of(wrote(last, 'o'), "\\x1b[2J"), 1,
           "status of all: escapes them");
    signal_to(liar, SIGKILL);
    waitpid(liar, NULL, 0);
    liar = oracle(address, sizeof address, empty);
    setenv("REDLOCK_NODES", address, 1);
    is_int(redlock("status", "x", NULL), 69, "status: errors without a text");
    ok(strstr(wrote(last, 'e'), ": an error without a text\n") != NULL, "status: says so: %s",
       wrote(last, 'e'));
    is_int(redlock("release", "--force", "00000000", "x", NULL), 69, "release --force");
    signal_to(liar, SIGKILL);
    waitpid(liar, NULL, 0);
    liar = oracle(address, sizeof address, endless);
    setenv("REDLOCK_NODES", address, 1);
    is_int(redlock("status", "--node-timeout", ".5", NULL), 69, "status of all: SCAN without end");
    ok(strstr(wrote(last, 'e'), ": SCAN is not over within 12000 ms\n") != NULL,
       "status of all: it says that there was no end: %s", wrote(last, 'e'));
    signal_to(liar, SIGKILL);
    waitpid(liar, NULL, 0);
}

/* Each denial has the same status for all verbs. */
static void denials(void)
{
    static const char *const errors[] = {
        "NOAUTH", "NOPERM", "WRONGPASS", "DENIED",          "READONLY",
        "MOVED",  "ASK",    "CROSSSLOT", "ERR The user ex", "ERR ACL failure"};
    char address[32], error[40];
    const answer answers[] = {
        {"GET\r\n", error}, {"SET\r\n", error}, {"", "-ERR unknown command\r\n"}};
    size_t i;

    for (i = 0; i < sizeof errors / sizeof *errors; i++) {
        pid_t cluster;
        snprintf(error, sizeof error, "-%s 1 127.0.0.1:2\r\n", errors[i]);
        cluster = oracle(address, sizeof address, answers);
        setenv("REDLOCK_NODES", address, 1);
        is_int(redlock("run", "-n", "x", "true", NULL), 77, "%s: run", errors[i]);
        ok(strstr(wrote(last, 'e'), "x: no quorum: 0 of 1 nodes permit it, 1 needed\n") != NULL,
           "run says that it is not permitted: %s", wrote(last, 'e'));
        is_int(redlock("status", "x", NULL), 77, "%s: status", errors[i]);
        ok(strstr(wrote(last, 'e'), ": no quorum: 0 of 1 nodes permit it, 1 needed\n") != NULL,
           "status says the same: %s", wrote(last, 'e'));
        is_int(redlock("release", "--force", "00000000", "x", NULL), 77, "%s: release --force",
               errors[i]);
        ok(strstr(wrote(last, 'e'), "x: no quorum: 0 of 1 nodes permit it, 1 needed\n") != NULL,
           "release --force says the same: %s", wrote(last, 'e'));
        signal_to(cluster, SIGKILL);
        waitpid(cluster, NULL, 0);
    }
}

/* Nodes of a cluster: no lock has a majority there. */
static void clusters(void)
{
    static const char *mode[] = {"--cluster-enabled", "yes", "--cluster-port", NULL, NULL};
    static const char *const keys[] = {"-CLUSTERDOWN Hash slot not served\r\n",
                                       "-MOVED 1 127.0.0.1:2\r\n"};
    char address[32], bus[32], error[60];
    const answer answers[] = {{"INFO", "-NOPERM no\r\n"},
                              {"SCAN\r\n", "*2\r\n$1\r\n0\r\n*0\r\n"},
                              {"GET\r\n", error},
                              {"SET\r\n", error},
                              {"", "-ERR unknown command\r\n"}};
    size_t i;
    pid_t cluster;

    for (i = 0; i < 2; i++) {
        snprintf(error, sizeof error, "%s", keys[i]);
        cluster = oracle(address, sizeof address, answers);
        setenv("REDLOCK_NODES", address, 1);
        is_int(redlock("status", NULL), 77, "%.8s: status of all", error + 1);
        ok(strstr(wrote(last, 'e'), "status: no quorum: 0 of 1 nodes permit it, 1 needed\n") &&
               count_of(wrote(last, 'e'), "an independent server without cluster-enabled") == 1,
           "it says so: %s", wrote(last, 'e'));
        is_int(redlock("status", "a*", "b*", NULL), 77, "status of patterns");
        is_int(redlock("status", "x", NULL), 77, "status of a name");
        is_int(redlock("run", "-n", "x", "true", NULL), 77, "run -n");
        ok(strstr(wrote(last, 'e'), "x: no quorum: 0 of 1 nodes permit it, 1 needed\n") &&
               count_of(wrote(last, 'e'), "an independent server without cluster-enabled") == 1,
           "it says so: %s", wrote(last, 'e'));
        is_int(redlock("acquire", "-w", "0.3", "-t", "60", "x", NULL), 77, "acquire -w");
        is_int(redlock("release", "--force", "00000000", "x", NULL), 77, "release --force");
        signal_to(cluster, SIGKILL);
        waitpid(cluster, NULL, 0);
    }
    node_count = 1;
    hold_port(bus, sizeof bus); /* by default the port + 10000, which may be too large */
    mode[3] = strchr(bus, ':') + 1;
    servers_start(servers, 1, mode);
    setenv("REDLOCK_NODES", servers[0].address, 1);
    is_int(redlock("status", NULL), 77, "a real server without slots: status of all");
    is_int(redlock("run", "-n", "x", "true", NULL), 77, "run");
}

/* ---- Output ---- */

/* Whether the output is one object of JSON that has this. Without the module of Perl only the text is looked at. */
static int is_json(struct program from, const char *has)
{
    int one_line = count_of(wrote(from, 'o'), "\n") == 1;

    setup.instead = "perl";
    if (redlock("-MJSON::PP", "-e", "1", NULL) != 0) {
        fprintf(stderr, "# without JSON::PP the form of JSON is not checked\n");
        return one_line && strstr(wrote(from, 'o'), has) != NULL;
    }
    setenv("SAID", wrote(from, 'o'), 1);
    setup.instead = "perl";
    redlock("-MJSON::PP", "-e", "print JSON::PP->new->canonical->encode(decode_json($ENV{SAID}))",
            NULL);
    if (strstr(wrote(last, 'o'), has) == NULL)
        fprintf(stderr, "# %s\n# is %s\n", getenv("SAID"), wrote(last, 'o'));
    return one_line && strstr(wrote(last, 'o'), has) != NULL;
}

#define is_object(has, ...)                                                                        \
    do {                                                                                           \
        redlock(__VA_ARGS__, NULL);                                                                \
        ok(is_json(last, has), "one object of JSON, with %s", has);                                \
    } while (0)
static void json(void)
{
    static const char name[] = "a\"\\\n\x01\xff\xc3\xa9";

    nodes(3);
    redlock("acquire", "-t", "60", name, NULL);
    is_object("\"state\":\"held\"", "status", "--json", name);
    is_object("\"holder\":{", "status", "--json", name);
    ask_all("FLUSHALL");
    is_object("\"state\":\"free\"", "status", "--json", name);
    ask_all("SET", "redlock:x", "v\"\\\xff");
    is_object("\"left_ms\":null", "status", "--json", "x");
    server_kill(&servers[0]);
    server_kill(&servers[1]);
    redlock("release", "--force", "00000000", "x", NULL);
    ok(strstr(wrote(last, 'e'), servers[0].address) != NULL, "release --force names the nodes");
    is_object("\"state\":\"unknown\"", "status", "--json", "x");
}

static void close_stdout(void)
{
    close(1);
}

/* No file can be longer than one block. */
static void limit_files(void)
{
    const struct rlimit most = {512, 512};

    setrlimit(RLIMIT_FSIZE, &most);
}

static void break_stderr(void)
{
    int fd[2];

    pipe2(fd, O_CLOEXEC);
    dup2(fd[1], 2);
    close(fd[0]);
    close(fd[1]);
}

static void no_place_to_print(void)
{
    static const char unwritten[] = "redlock: the result cannot be written\n";
    int full = open("/dev/full", O_WRONLY | O_CLOEXEC), block;

    nodes(3);
    setup.output = full;
    is_int(redlock("acquire", "-t", "60", "x", NULL), 71, "acquire to a full disk: 71");
    no_key_left("of a lock whose token was not printed");
    setup.before = close_stdout;
    is_int(redlock("acquire", "-t", "60", "x", NULL), 71, "acquire without stdout: 71");
    no_key_left("of a lock whose token was not printed");
    setup.output = full;
    is_int(redlock("status", "x", NULL), 71, "status to a full disk: 71");
    setup.output = full;
    is_int(redlock("help", NULL), 71, "help to a full disk: 71");
    is_text(wrote(last, 'e'), unwritten, "help to a full disk: a message");
    setup.output = full;
    is_int(redlock("run", "--help", NULL), 71, "help for a verb to a full disk: 71");
    is_text(wrote(last, 'e'), unwritten, "help for a verb to a full disk: a message");
    setup.output = full;
    is_int(redlock("version", NULL), 71, "version to a full disk: 71");
    is_text(wrote(last, 'e'), unwritten, "version to a full disk: a message");
    setup.output = full;
    is_int(redlock("run", "x", "-c", "exit 3", NULL), 3, "run to a full disk: prints nothing");
    close(full);

    block = open(beat_path("block"), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    ok(block >= 0 && ftruncate(block, 512) == 0, "a file that cannot grow");
    setup.before = limit_files;
    setup.output = block;
    is_int(redlock("acquire", "-t", "60", "x", NULL), 71, "acquire to such a file: 71");
    no_key_left("of a lock whose token was not printed");
    close(block);

    setup.before = break_stderr;
    is_int(redlock("run", "x", "no-such-command", NULL), 127,
           "nobody reads stderr: the status of a command that is not found");
    no_key_left("then");
}

/* A pipe that does not block, as programs with an event loop make it. It is full at first. */
enum { PIPE_ROOM = 4096 };
static int slow_pipe[2];

static void open_slow_pipe(void)
{
    static const char junk[PIPE_ROOM];
    int low[2];

    if (pipe2(low, O_CLOEXEC) != 0)
        exit(1);
    slow_pipe[0] = low[0];
    slow_pipe[1] = fcntl(low[1], F_DUPFD_CLOEXEC,
                         256); /* start() closes those below before setup.before runs */
    close(low[1]);
    if (slow_pipe[1] < 0 || fcntl(slow_pipe[1], F_SETPIPE_SZ, PIPE_ROOM) < 0 ||
        fcntl(slow_pipe[1], F_SETFL, O_NONBLOCK) != 0 ||
        write(slow_pipe[1], junk, sizeof junk) != sizeof junk)
        exit(1);
}

static void use_slow_stderr(void)
{
    dup2(slow_pipe[1], 2);
}

/* The same pipe, but a write to it blocks: as of a pager, or of a log whose reader hangs. */
static void open_blocking_pipe(void)
{
    open_slow_pipe();
    fcntl(slow_pipe[1], F_SETFL, 0);
}

/* A signal ends a program that waits for a reader. */
static void blocked_by_readers(void)
{
    struct program run;

    nodes(3);
    open_blocking_pipe();
    setup.output = slow_pipe[1];
    run = start("acquire", "-t", "600", "x", NULL);
    ok(until(with_key("redlock:x") == 3, WAIT_MS), "the lock is acquired, but its token cannot be printed");
    sleep_ms(500);
    signal_to(run.pid, SIGTERM);
    is_int(ends(&run), -SIGTERM, "SIGTERM ends acquire");
    no_key_left("then");
    ask_all("SET", "redlock:x", "v", "PX", "600000");
    setup.before = use_slow_stderr;
    run = start("run", "-v", "x", "true", NULL);
    sleep_ms(2000); /* it wants to say for whom it waits */
    signal_to(run.pid, SIGTERM);
    is_int(ends(&run), -SIGTERM, "SIGTERM ends the wait for the lock");
    setup.before = use_slow_stderr;
    run = start("run", "-n", "x", "true", NULL);
    sleep_ms(500);
    signal_to(run.pid, SIGTERM);
    is_int(ends(&run), 75, "run -n ends, without its message");
    close(slow_pipe[0]);
    close(slow_pipe[1]);
    ask_all("FLUSHALL");
}

/* Reads slowly what the program writes, up to its end. Returns the text without the first junk. */
static const char *read_slowly(size_t piece)
{
    static char text[1 << 20];
    size_t used = 0;
    ssize_t size;

    close(slow_pipe[1]);
    sleep_ms(300);
    while ((size = read(slow_pipe[0], text + used,
                        used + piece < sizeof text ? piece : sizeof text - 1 - used)) > 0) {
        used += (size_t)size;
        sleep_ms(1);
    }
    close(slow_pipe[0]);
    text[used] = '\0';
    return used > PIPE_ROOM ? text + PIPE_ROOM : "";
}

static void slow_readers(void)
{
    static const char *const line[][4] = {{"help", NULL},
                                          {"run", "--help", NULL},
                                          {"version", NULL},
                                          {"help", "--options", "run", NULL},
                                          {"check", "--json", NULL},
                                          {"check", "-v", NULL},
                                          {"status", "-v", "k1", NULL},
                                          {"acquire", "-t60", "y", NULL}};
    struct program run;
    const char *text;
    char token[300];
    int count;
    size_t i;

    nodes(3);
    ask_all("EVAL", "for i=1,3000 do redis.call('set','redlock:k'..i,'v','px',900000)end", "0");
    open_slow_pipe();
    setup.output = slow_pipe[1];
    run = start("status", "--json", NULL);
    count = count_of(read_slowly(PIPE_ROOM), "}\n");
    is_int(count, 3000, "status --json: all lines arrive");
    is_int(ends(&run), 0, "and its status is 0");
    for (i = 0; i < sizeof line / sizeof *line; i++) {
        open_slow_pipe();
        setup.output = slow_pipe[1];
        run = start(line[i][0], line[i][1], line[i][2], line[i][3], NULL);
        text = read_slowly(7);
        ok(*text != '\0' && text[strlen(text) - 1] == '\n', "%s %s: all arrives, %lu bytes",
           line[i][0], line[i][1] != NULL ? line[i][1] : "", (unsigned long)strlen(text));
        ok(ends(&run) <= (strcmp(line[i][0], "check") == 0 ? 2 : 0), "and its status is right");
        is_text(wrote(run, 'e'), "", "without a message");
    }
    snprintf(token, sizeof token, "%.290s", text);
    token[strcspn(token, "\n")] = '\0';
    ok(with_value("redlock:y", token) > 1, "the last one was the token: the lock is held");
    open_slow_pipe();
    setup.before = use_slow_stderr;
    run = start("status", "-N", "127.0.0.1:1,127.0.0.1:2", NULL);
    text = read_slowly(7);
    ok(strncmp(text, "redlock: status: no quorum: ", 28) == 0 &&
           strstr(text, "127.0.0.1:2: connect: Connection refused\n") != NULL,
       "all messages arrive: %s", text);
    is_int(ends(&run), 69, "and the status is right");
    open_slow_pipe();
    setup.before = use_slow_stderr;
    is_int(redlock("status", "-N", "127.0.0.1:1,127.0.0.1:2", NULL), 69,
           "nobody reads the messages, and the program ends");
    close(slow_pipe[0]);
    close(slow_pipe[1]);
    ask_all("FLUSHALL");
}

/* ---- Several holders, several names ---- */

/* Each line of the file has the begin and the end of a command. Returns the largest number that ran at once. */
static int most_at_once(const char *path, int *lines)
{
    static long long begin[200], end[200];
    FILE *file = fopen(path, "r");
    int i, n, most = 0, at_once;

    *lines = 0;
    while (file != NULL && *lines < 200 &&
           fscanf(file, "%lld %lld", &begin[*lines], &end[*lines]) == 2)
        ++*lines;
    if (file != NULL)
        fclose(file);
    for (i = 0; i < *lines; i++) {
        for (n = at_once = 0; n < *lines; n++)
            at_once += begin[n] <= begin[i] && begin[i] < end[n];
        most = at_once > most ? at_once : most;
    }
    return most;
}

static void slots(void)
{
    enum { WORKERS = 16 };
    struct beat *of[3] = {map_beat(beat_path("a")), map_beat(beat_path("b")),
                          map_beat(beat_path("c"))};
    struct program holder[3], worker[WORKERS], refused;
    long begin;
    int i, ended = 0, lines;

    nodes(3);
    for (i = 0; i < 2; i++)
        holder[i] = start("run", "--slots", "2", "x", self, "beat", beat_path(i ? "b" : "a"), NULL);
    ok(beats(of[0]) && beats(of[1]), "two slots are acquired");
    ok(on_all("redlock:x/2.1") && on_all("redlock:x/2.2"),
       "the two slots are the locks x/2.1 and x/2.2");
    is_int(redlock("status", "x/2.2", NULL), 0, "status of a slot");
    is_int(redlock("status", "--slots", "2", "x", NULL), 0, "status --slots: all are held");
    begin = now_ms();
    is_int(redlock("run", "-n", "--slots", "2", "x", "echo", "ran", NULL), 75,
           "-n: no slot is free");
    is_text(wrote(last, 'e'), "redlock: x: all 2 slots are held by other clients\n",
            "-n: the message");
    is_text(wrote(last, 'o'), "", "-n: the command does not run");
    is_int(redlock("run", "-n", "-E", "3", "--slots", "2", "x", "true", NULL), 3,
           "-E: no slot is free");
    is_int(redlock("run", "-w", ".5", "--slots", "2", "x", "true", NULL), 75,
           "-w: no slot is free");
    ok(now_ms() - begin >= 500, "-w waits 0.5 s (%ld ms)", now_ms() - begin);
    is_int(
        redlock("run", "-n", "--slots", "1", "x", "-c", "echo $REDLOCK_SLOT $REDLOCK_NAME", NULL),
        0, "another number of slots: other locks");
    is_text(wrote(last, 'o'), "1 x/1.1\n", "the command sees its slot");
    holder[2] = start("run", "--slots", "2", "x", self, "beat", beat_path("c"), NULL);
    refused = start("run", "--slots", "2", "x", "true", NULL);
    sleep_ms(500);
    ok(of[2]->first_us == 0 && !has_ended(refused), "two programs hold the slots, two wait");
    signal_to(refused.pid, SIGTERM);
    is_int(ends(&refused), -SIGTERM, "a waiter ends by SIGTERM");
    of[1]->stop = 1;
    is_int(ends(&holder[1]), 5, "a holder ends");
    ok(beats(of[2]) && of[2]->first_us > of[1]->last_us,
       "after that the other waiter acquires a slot");
    of[0]->stop = of[2]->stop = 1;
    is_int(ends(&holder[0]) + ends(&holder[2]), 10, "both holders end");
    no_key_left("then");

    setenv("LOG", beat_path("log"), 1);
    for (i = 0; i < WORKERS; i++)
        worker[i] = start("run", "--slots", "3", "x", "-c",
                          "b=$(date +%s%N); sleep .1; echo $b $(date +%s%N) >>\"$LOG\"", NULL);
    for (i = 0; i < WORKERS; i++)
        ended += ends(&worker[i]) == 0;
    is_int(ended, WORKERS, "%d programs with 3 slots: all run", (int)WORKERS);
    i = most_at_once(getenv("LOG"), &lines);
    is_int(lines, WORKERS, "each command runs once");
    ok(i <= 3, "never more than 3 commands run at once (%d)", i);
    no_key_left("then");
}

/* The key redlock:x is no slot, and its holder is not waited for. */
static void wait_for_slots(const char *slots, const char *message)
{
    struct program waiter[2];
    char id[9];
    int i;

    ask_all("SET", "redlock:x/1.1", "this one's");
    id_of("x", id);
    for (i = 0; i < 2; i++)
        waiter[i] = start("run", "-v", "--slots", slots, "x", "true", NULL);
    for (i = 0; i < 2; i++) {
        ok(writes(waiter[i], 'e', message), "two wait for --slots %s: '%s'", slots, message);
        ok(strstr(wrote(waiter[i], 'e'), id) == NULL, "the holder of another lock is not named");
    }
    for (i = 0; i < 2; i++) {
        signal_to(waiter[i].pid, SIGTERM);
        ends(&waiter[i]);
    }
}

/* Special cases of slots. */
static void odd_slots(void)
{
    struct beat *a = map_beat(beat_path("a"));
    struct program run;
    char name[20];
    long begin;
    int i, found = 0;

    nodes(3);
    setenv("P", program, 1);
    for (i = 1; i <= 8; i++) {
        snprintf(name, sizeof name, "redlock:x/8.%d", i);
        ask_all("SET", name, "another's");
    }
    for (i = 1; i <= 8; i++) {
        snprintf(name, sizeof name, "redlock:x/8.%d", i);
        ask_all("DEL", name);
        found += redlock("run", "-n", "--slots", "8", "x", "-c", "exit 4", NULL) == 4;
        ask_all("SET", name, "another's");
    }
    is_int(found, 8, "the only free slot of eight is found, whichever it is");
    for (i = 1; i <= 8; i += 2) {
        snprintf(name, sizeof name, "redlock:x/8.%d", i);
        run = start("run", "-w", "50", "--slots", "8", "x", "-c", "exit 4", NULL);
        sleep_ms(200);
        ask_all("DEL", name);
        begin = now_ms();
        is_int(ends(&run), 4, "slot %d becomes free: a waiter acquires it", i);
        ok(now_ms() - begin < 40000, "the waiter acquires it before the end of -w");
        ask_all("SET", name, "another's");
    }
    run = start("run", "--slots", "8", "x", self, "beat", beat_path("a"), NULL);
    sleep_ms(300);
    ask_all("DEL", "redlock:x/8.1", "redlock:x/8.2", "redlock:x/8.3", "redlock:x/8.4",
            "redlock:x/8.5", "redlock:x/8.6", "redlock:x/8.7", "redlock:x/8.8");
    ok(beats(a), "all slots become free at once: a waiter acquires one");
    ok(until(redlock("status", "-q", NULL) == 0 && count_of(wrote(last, 'o'), "\n") == 1, WAIT_MS),
       "the waiter keeps only one slot");
    a->stop = 1;
    is_int(ends(&run), 5, "the waiter: its command's status");
    is_int(redlock("run", "--slots", "0", "x", "true", NULL), 64, "--slots 0");
    is_int(redlock("run", "--slots", "257", "x", "true", NULL), 64, "--slots 257");
    is_int(redlock("run", "--slots", "x", "x", "true", NULL), 64, "--slots x");
    is_int(redlock("acquire", "--slots", "2", "-t", "9", "x", NULL), 64,
           "--slots is no option of acquire");
    is_int(redlock("run", "--slots", "2", "x", "-c", "\"$P\" status --slots 2 x", NULL), 1,
           "status --slots: one slot is free");
    ok(strstr(wrote(last, 'o'), "\nx: 1 of 2 slots held\n") != NULL, "the sum: %s",
       wrote(last, 'o'));
    ok(count_of(wrote(last, 'o'), "\nx/2.") == 2 && shows(last, "^x/2.[12] +free ") &&
           shows(last, "^x/2.[12] +held .*/[0-9]+ [(]sh[)]$"),
       "the free slot, and the holder of the other one");
    is_int(redlock("run", "--slots", "1", "x", "-c", "\"$P\" status --slots 1 x", NULL), 0,
           "status --slots: none is free");
    ok(strstr(wrote(last, 'o'), "\nx: 1 of 1 slots held\n") != NULL, "the sum: %s",
       wrote(last, 'o'));
    is_int(redlock("run", "--slots", "2", "x", "-c", "\"$P\" status --json --slots 2 x", NULL), 1,
           "status --slots --json");
    ok(strstr(wrote(last, 'o'), "}\n{\"schema\":2,\"verb\":\"status\",\"name\":\"x\","
                                "\"slots\":2,\"held\":1,\"unknown\":0}\n") != NULL,
       "the sum as the last line: %s", wrote(last, 'o'));
    is_int(redlock("status", "-q", "--slots", "2", "x", NULL), 1, "status -q --slots");
    is_int(count_of(wrote(last, 'o'), "\n"), 2, "-q: no heading, no sum");
    ask(0, "SET", "redlock:x/2.1", "value");
    server_kill(&servers[1]);
    is_int(redlock("status", "--slots", "2", "x", NULL), 1,
           "a slot is unknown, another one is free");
    ok(strstr(wrote(last, 'o'), "\nx: 0 of 2 slots held, 1 unknown\n") != NULL, "the sum: %s",
       wrote(last, 'o'));
    server_restart(&servers[1]);
    ask(0, "DEL", "redlock:x/2.1");
    is_int(redlock("run", "--slots", "2", "x", "-c", "\"$P\" status 'x/*'", NULL), 0,
           "a pattern that slots match");
    ok(shows(last, "^x/2.[12] +held "), "names the slot");
    is_int(redlock("run", "--slots", "2", "x", "-c",
                   "\"$P\" run -n --slots 3 x true && \"$P\" run -n x true && echo $REDLOCK_SLOT",
                   NULL),
           0, "another number of slots excludes nothing");
    ok(shows(last, "^[12]$"), "the command gets the number of its slot");
    is_int(redlock("status", "x", NULL), 1, "and then it is free");
    is_int(redlock("run", "--slots", "2", "--fence", "x", "-c", "test $REDLOCK_FENCE -gt 0", NULL),
           0, "--slots with a fencing token");
    is_int(redlock("run", "y", "-c", "test -z \"$REDLOCK_SLOT\"", NULL), 0,
           "no REDLOCK_SLOT without --slots");
    ask_all("FLUSHALL");
    for (i = 1; i <= 16; i++) {
        snprintf(name, sizeof name, "redlock:x/16.%d", i);
        ask_all("SET", name, "another's");
    }
    ask_all("SET", "redlock:x", "another's");
    wait_for_slots("16", "all 16 slots are held");
    wait_for_slots("1", "held by id ");
    server_pause(&servers[2]);
    begin = now_ms();
    is_int(redlock("run", "-n", "--node-timeout", "2", "--slots", "16", "x", "true", NULL), 75,
           "all slots are held, and a node hangs: 75");
    ok(now_ms() - begin < 20000,
       "a node that hangs costs its timeout once, not for each slot (%ld ms)", now_ms() - begin);
    server_resume(&servers[2]);
    ask_all("FLUSHALL");
    server_kill(&servers[0]);
    server_kill(&servers[1]);
    setenv("REDLOCK_NODE_TIMEOUT", ".25", 1);
    is_int(redlock("run", "-n", "--slots", "3", "z", "true", NULL), 69,
           "--slots without a quorum: 69");
    setenv("REDLOCK_UNAVAILABLE_TIMEOUT", "1", 1);
    is_int(redlock("run", "--slots", "3", "z", "true", NULL), 69,
           "--slots without a quorum for unavailable-timeout: 69");
    ok(strstr(wrote(last, 'e'), "z: no quorum: ") != NULL &&
           strstr(wrote(last, 'e'), servers[0].address) != NULL,
       "it says why: %s", wrote(last, 'e'));
    server_restart(&servers[0]);
    server_restart(&servers[1]);
    server_pause(&servers[0]);
    server_pause(&servers[1]);
    is_int(redlock("run", "--slots", "3", "z", "true", NULL), 69, "the same if they hang: 69");
    server_resume(&servers[0]);
    server_resume(&servers[1]);
    unsetenv("REDLOCK_UNAVAILABLE_TIMEOUT");
}

/* The nodes have different stale values: no client has a majority, so the job does not run elsewhere. */
static void stale_values_differ(void)
{
    nodes(3);
    setenv("REDLOCK_NODE_TIMEOUT", "5", 1); /* also on a slow machine all nodes must answer */
    ask(0, "SET", "redlock:x", "one");
    ask(1, "SET", "redlock:x", "two");
    ask(2, "SET", "redlock:x", "three");
    is_int(redlock("run", "-w", ".5", "x", "true", NULL), 75, "different stale values: run -w: 75");
    is_int(redlock("acquire", "-w", ".5", "-t", "9", "x", NULL), 75,
           "different stale values: acquire -w: 75");
    is_int(redlock("run", "-n", "x", "true", NULL), 75, "different stale values: run -n: 75");
    is_int(redlock("status", "x", NULL), 1, "different stale values: status: no client holds it");
    ask(2, "SET", "redlock:x", "two");
    is_int(redlock("run", "-w", ".5", "-E", "0", "x", "true", NULL), 0,
           "one value has a majority: -E");
    is_int(with_value("redlock:x", "two"), 2, "that value is untouched");
}

/* ---- The list ---- */

static void list(void)
{
    struct program run;
    char token[300];
    unsigned i;

    nodes(3);
    is_int(redlock("status", NULL), 1, "no locks: 1");
    is_text(wrote(last, 'o'), "", "no locks: prints nothing");
    is_int(redlock("status", "--json", "z*", NULL), 1, "no locks: --json");
    is_text(wrote(last, 'o'), "", "no locks: --json prints nothing");
    run = start("run", "-l", "my\x1b[1mjob", "--fence", "beta", "sleep", "60", NULL);
    on_all("redlock:beta");
    redlock("acquire", "-t", "60", "alpha", NULL);
    ask_all("SET", "redlock:opaque", "somebody's", "PX", "50000");
    ask_all("LPUSH", "redlock:queue", "1");
    ask(1, "SET", "redlock:remnant", "old", "PX", "50000");
    ask_all("SET", "other:key", "v");
    ask_all("SET", "redlock", "v");
    is_int(redlock("status", NULL), 0, "locks");
    is_int(redlock("status", "z*", NULL), 1, "a pattern that matches none of them: 1");
    is_int(redlock("status", "nope", "z*", NULL), 1, "the same, and the name of a free lock: 1");
    ok(shows(last, "^nope +free "), "the output has the name");
    is_int(redlock("status", "remn*", NULL), 1, "a pattern that matches only a key left over: 1");
    is_int(redlock("status", "nope", "q*", NULL), 0, "a pattern that matches a key in use: 0");
    is_int(redlock("status", NULL), 0, "locks, again");
    is_int(count_of(wrote(last, 'o'), "\n"), 6,
           "a heading and five lines, without the counter of fencing tokens");
    snprintf(token, sizeof token, "/%d (my\\x1b[1mjob)\n", run.pid);
    ok(strstr(wrote(last, 'o'), token) != NULL, "the holder, without control characters");
    ok(strstr(wrote(last, 'o'), "\nalpha ") < strstr(wrote(last, 'o'), "\nbeta ") &&
           shows(last, "^alpha +held +3/3 ") && shows(last, "^beta +held +3/3 ") &&
           shows(last, "^opaque +held +3/3 +[0-9.]+ s .* -$") &&
           shows(last, "^queue +in use +3/3 .* list, which is not a lock$") &&
           shows(last, "^remnant +free +1/3 "),
       "sorted by name; a key that is not a lock; a key that is left over");
    ask(0, "GET", "redlock:beta");
    snprintf(token, 41, "%.40s", reply);
    ok(strstr(wrote(last, 'o'), token) == NULL, "no token is shown");
    redlock("status", "--json", "b*", NULL);
    ok(is_json(last, "\"name\":\"beta\"") && strstr(wrote(last, 'o'), "alpha") == NULL,
       "a pattern, in JSON: a line for each lock");
    redlock("status", "-q", "zeta", "b?ta", "alpha", "a*", NULL);
    ok(strncmp(wrote(last, 'o'), "zeta ", 5) == 0 && count_of(wrote(last, 'o'), "\n") == 3 &&
           shows(last, "^beta +held ") && count_of(wrote(last, 'o'), "alpha ") == 1,
       "names, then what patterns find, each once");
    ask_all("SET", "redlock:we[ird\\", "somebody's", "PX", "50000");
    redlock("status", "-q", "we[*\\", NULL);
    ok(strncmp(wrote(last, 'o'), "we[ird", 6) == 0, "in a pattern only * and ? have a meaning");
    ask_all("DEL", "redlock:we[ird\\");
    for (i = 0; i < 3; i++) {
        ask(i, "INFO", "commandstats");
        ok(strstr(reply, "cmdstat_scan:") && strstr(reply, "cmdstat_keys:") == NULL,
           "SCAN, never KEYS");
        ask(i, "CONFIG", "RESETSTAT");
    }
    is_int(redlock("status", "free", NULL), 1, "a free lock");
    for (i = 0; i < 3; i++) {
        ask(i, "INFO", "commandstats");
        ok(strstr(reply, "cmdstat_eval") == NULL && strstr(reply, "cmdstat_get:calls=1,") &&
               strstr(reply, "cmdstat_pttl:calls=1,"),
           "costs each node one GET and one PTTL, and no script");
    }
    server_kill(&servers[0]);
    is_int(redlock("status", NULL), 0, "one node is down");
    ok(shows(last, "^beta +held +2/3 ") && strstr(wrote(last, 'e'), servers[0].address),
       "one node is down: the list is complete, and a message names the node");
    server_pause(&servers[1]);
    setenv("REDLOCK_NODE_TIMEOUT", "2", 1); /* the third must answer in time */
    is_int(redlock("status", NULL), 69, "another hangs: 69");
    ok(strstr(wrote(last, 'e'), "no quorum: 1 of 3 nodes answered, 2 needed\n") != NULL,
       "stderr has: no quorum: 1 of 3 nodes answered, 2 needed");
    server_resume(&servers[1]);
    signal_to(run.pid, SIGTERM);
    ends(&run);
}

/* Special names and prefixes, and many keys. */
static void odd_lists(void)
{
    static const char page[] = "$-1\r\n*2\r\n$1\r\n0\r\n*1\r\n$1\r\na\r\n",
                      repeats[] = "-ERR what is AUTH " SECRET "?\r\n";
    char long_key[401], address[32], node[80];
    pid_t liar;

    nodes(3);
    setenv("P", program, 1);
    liar = babbles(address, sizeof address, page, sizeof page - 1);
    is_int(redlock("status", "-N", address, NULL), 1, "a server lists a key without the prefix");
    is_text(wrote(last, 'o'), "", "it is left out");
    signal_to(liar, SIGKILL);
    waitpid(liar, NULL, 0);
    liar = babbles(address, sizeof address, repeats, sizeof repeats - 1);
    snprintf(node, sizeof node, "redis://:" SECRET "@%s", address);
    setenv("REDLOCK_NODES", node, 1);
    is_int(redlock("status", NULL), 77, "a server repeats the password");
    ok(strstr(wrote(last, 'e'), "ERR what is AUTH ") != NULL, "the message has the rest");
    redlock("status", "x", NULL);
    redlock("check", NULL);
    redlock("release", "--force", "0", "x", NULL);
    signal_to(liar, SIGKILL);
    waitpid(liar, NULL, 0);
    setenv("REDLOCK_NODES", list_of(3, ""), 1);
    ask_all("SET", "a[b]*\\:x", "v", "PX", "60000");
    ask_all("SET", "ab:y", "v", "PX", "60000");
    redlock("status", "-q", "--prefix", "a[b]*\\:", NULL);
    ok(strncmp(wrote(last, 'o'), "x  ", 3) == 0 && count_of(wrote(last, 'o'), "\n") == 1,
       "a prefix with wildcards of SCAN");
    redlock("status", "--prefix", "", "ab*", NULL);
    ok(shows(last, "^ab:y +held "), "no prefix");
    ask_all("SET", "redlock:\x1b[2J\n<3>", "v", "PX", "60000");
    redlock("status", "-q", NULL);
    ok(strncmp(wrote(last, 'o'), "\\x1b[2J\\x0a<3>  held ", 20) == 0,
       "a name with control characters of terminals");
    memset(long_key, 'n', sizeof long_key);
    memcpy(long_key, "redlock:", 8);
    long_key[400] = '\0';
    long_key[255] = '\0';
    redlock("run", "--fence", long_key + 8, "true", NULL);
    is_int(redlock("status", NULL), 0, "the counter of fencing tokens for the longest name");
    is_text(wrote(last, 'e'), "", "it is not a key that was left out");
    long_key[255] = 'n';
    ask_all("SET", long_key, "v");
    is_int(redlock("status", "-q", NULL), 0, "a key that is too long for a lock");
    ok(count_of(wrote(last, 'o'), "\n") == 1 && count_of(wrote(last, 'e'), "left out") == 1,
       "the long key is left out, with one message");
    ask_all("FLUSHALL");
    ask_all("EVAL", "redis.call('set','redlock:huge',string.rep('v',70000))", "0");
    is_int(redlock("status", NULL), 0, "a huge value");
    ok(shows(last, "^huge +held +3/3 +no end "), "a huge value: the lock is listed");
    ask_all("EVAL", "redis.call('set','redlock:huge',string.rep('v',700000))", "0");
    is_int(redlock("status", "huge", NULL), 0, "a value longer than any answer");
    ok(shows(last, "^huge +held +3/3 +no end "), "it is shown as well");
    ask_all("FLUSHALL");
    /* few enough for the limit of 10 s, also on a slow machine */
    ask_all("EVAL", "for i=1,1000 do redis.call('set','redlock:k'..i,'v','px',90000)end", "0");
    ask_all("EVAL", "for i=1,15000 do redis.call('set','k'..i,'v')end", "0");
    setup.instead = "sh";
    is_int(redlock("-c", "\"$P\" status >\"$0\" && grep -c '^k[0-9]*  *held  *3/3 ' \"$0\"",
                   beat_path("out"), NULL),
           0, "1000 locks among 16000 keys");
    is_text(wrote(last, 'o'), "1000\n", "all 1000 locks are listed");
    ask_all("EVAL", "for i=1,10001 do redis.call('set','redlock:k'..i,'run_id:v','px',90000)end",
            "0");
    is_int(redlock("status", "--json", NULL), 69, "more than 10000: 69");
    ok(strstr(wrote(last, 'e'), "ask for fewer") != NULL, "stderr has: ask for fewer");
    is_int(count_of(wrote(last, 'e'), "\n"), 1, "no value is taken for the answer to INFO: %s",
           wrote(last, 'e'));
    ask(0, "FLUSHALL");
    ask(1, "FLUSHALL");
    ask_all("SET", "redlock:x", "v", "PX", "60000");
    is_int(redlock("status", "x", "*", NULL), 0,
           "more than 10000 on one node only: the others answer");
    ok(shows(last, "^x +held +[23]/3 "), "the lock is listed");
    ok(strstr(wrote(last, 'e'), ": has more than 9999 locks: ask for fewer with a PATTERN\n") !=
           NULL,
       "a message names the node: %s", wrote(last, 'e'));
}

/* Keys that another client may write below the prefix, although no lock of this program has them. */
static void odd_keys(void)
{
    static const char *const prefixes[] = {"redlock:", ""};
    unsigned i;

    nodes(3);
    for (i = 0; i < 2; i++) {
        setenv("REDLOCK_PREFIX", prefixes[i], 1);
        ask_all("FLUSHALL");
        redlock("acquire", "-t", "60", "x", NULL);
        ask(0, "SET", prefixes[i], "v", "PX", "60000");
        is_int(redlock("status", NULL), 0, "prefix '%s': a key that is the prefix alone",
               prefixes[i]);
        ok(shows(last, "^x +held +3/3 "), "the lock is listed");
        is_int(count_of(wrote(last, 'e'), "\n"), 1, "one message: %s", wrote(last, 'e'));
        is_int(redlock("status", "-v", "--json", "*", NULL), 0, "--json with a pattern");
        ok(strstr(wrote(last, 'o'), "\"name\":\"x\"") != NULL, "the lock is listed");
    }
    unsetenv("REDLOCK_PREFIX");
    ask_all("FLUSHALL");
    ask_all("SET", "redlock:x", "v", "PX", "60000");
    ask_all("EVAL", "for i=1,2000 do redis.call('set','redlock:'..string.rep('k',700)..i,'v')end",
            "0");
    is_int(redlock("status", NULL), 0, "2000 keys of 700 bytes");
    ok(shows(last, "^x +held +3/3 ") && count_of(wrote(last, 'o'), "\n") == 2,
       "only the lock is listed: %s", wrote(last, 'e'));
    ask_all("FLUSHALL");
    ask_all("SET", "redlock:x", "v", "PX", "60000");
    ask_all("EVAL", "redis.call('set','redlock:'..string.rep('k',300000),'v')", "0");
    is_int(redlock("status", NULL), 0, "a key that is longer than an answer");
    ok(shows(last, "^x +held +3/3 ") && count_of(wrote(last, 'e'), "\n") == 1,
       "the lock is listed, with one message: %s", wrote(last, 'e'));
    ask_all("FLUSHALL");
    ask_all("SET", "redlock:*", "one", "PX", "60000");
    ask_all("SET", "redlock:a?", "two", "PX", "60000");
    is_int(redlock("status", "-v", NULL), 0, "names that are patterns, of other clients");
    ok(shows(last, "^[*] +held +3/3 ") && shows(last, "^a[?] +held +3/3 "), "both are listed: %s",
       wrote(last, 'o'));
    is_int(redlock("status", "a?", NULL), 0, "a name that is the text of its pattern");
    is_int(count_of(wrote(last, 'o'), "\na? "), 1, "it is listed, once: %s", wrote(last, 'o'));
    ask_all("FLUSHALL");
}

/* status could not tell such a name from a pattern. */
static void patterns_as_names(void)
{
    static const char *const patterns[] = {"*", "a?", "a*b", "?"};
    char token[300];
    size_t i;

    nodes(3);
    for (i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        is_int(redlock("run", "-n", patterns[i], "echo", "ran", NULL), 64, "run %s", patterns[i]);
        ok(strstr(wrote(last, 'e'), patterns[i]) != NULL && *wrote(last, 'o') == '\0',
           "a message names it, and the command does not run: %s", wrote(last, 'e'));
        is_int(redlock("run", "--slots", "2", patterns[i], "true", NULL), 64, "run --slots");
        is_int(redlock("acquire", "-n", "-t", "60", patterns[i], NULL), 64, "acquire %s",
               patterns[i]);
        is_int(with_keys_left(), 0, "nothing is acquired");
    }
    snprintf(token, sizeof token, "%040d", 0);
    ask_all("SET", "redlock:*", token, "PX", "60000");
    is_int(redlock_with(token, "release", "*", NULL), 0,
           "a lock of an earlier version can be released");
    no_key_left("then");
}

static int calls_of(unsigned i, const char *command)
{
    char text[40];
    const char *at;

    snprintf(text, sizeof text, "cmdstat_%s:calls=", command);
    ask(i, "INFO", "commandstats");
    at = strstr(reply, text);
    return at != NULL ? atoi(at + strlen(text)) : 0;
}

/* Slots of nodes that are 50 ms away. */
static void far_slots(void)
{
    pid_t proxy = nodes_behind_proxies();
    char names[150][8];
    const char *line[154] = {program, "status", "-q"};
    struct program many = {0};
    long begin;
    int i;

    ask_all("EVAL",
            "for i=1,256 do for n=1,256,(i==64 and 1 or 256) do "
            "redis.call('set','redlock:x/'..i..'.'..(i==64 and n or i),'v','px',90000)end end",
            "0");
    ask_all("CONFIG", "RESETSTAT");
    set_distance(25);
    begin = now_ms();
    is_int(redlock("run", "-w", "1", "--slots", "64", "x", "true", NULL), 75,
           "run -w 1 --slots 64: 75");
    ok(calls_of(0, "set") < 64, "it ends before it has asked for all slots: %d, %ld ms",
       calls_of(0, "set"), now_ms() - begin);
    ask_all("CONFIG", "RESETSTAT");
    begin = now_ms();
    is_int(redlock("run", "-n", "--slots", "64", "x", "true", NULL), 75, "run -n --slots 64: 75");
    is_int(calls_of(0, "set"), 64, "it asks for all slots, each once (%ld ms)", now_ms() - begin);
    set_distance(
        50); /* 256 round trips would take longer than status may: 10 s and four node timeouts */
    begin = now_ms();
    is_int(redlock("status", "--slots", "256", "x", NULL), 1, "status --slots 256");
    ok(strstr(wrote(last, 'o'), "\nx: 1 of 256 slots held\n") != NULL, "the sum (%ld ms): %s",
       now_ms() - begin, wrote(last, 'e'));
    ask_all("EVAL", "for i=1,150 do redis.call('lpush','redlock:k'..i,'v')end", "0");
    for (i = 0; i < 150; i++) {
        snprintf(names[i], sizeof names[i], "k%d", i + 1);
        line[3 + i] = names[i];
    }
    fflush(stdout);
    if ((many.pid = fork()) == 0) {
        dup2(open(beat_path("many"), O_RDWR | O_CREAT | O_CLOEXEC, 0600), 1);
        execv(program, (char *const *)(void *)line);
        _exit(125);
    }
    is_int(ends(&many), 0, "150 names, which are in use by lists");
    signal_to(proxy, SIGKILL);
    waitpid(proxy, NULL, 0);
    ask_all("FLUSHALL");
}

/* Servers that are 40 ms away, and have 200,000 keys of other programs. */
static void many_other_keys(void)
{
    pid_t proxy = nodes_behind_proxies();
    long begin;

    ask_all("EVAL", "for i=1,200000 do redis.call('set','k'..i,'v')end", "0");
    ask_all("EVAL", "for i=1,20 do redis.call('set','redlock:l'..i,'v','px',900000)end", "0");
    ask_all("CONFIG", "RESETSTAT");
    set_distance(20);
    begin = now_ms();
    is_int(redlock("status", "-q", NULL), 0, "200000 other keys");
    is_int(count_of(wrote(last, 'o'), " held "), 20, "all locks are listed (%ld ms)",
           now_ms() - begin);
    ok(calls_of(0, "scan") < 200, "with few questions: %d", calls_of(0, "scan"));
    ask_all("EVAL", "for i=1,4000 do redis.call('set','redlock:m'..i,'v','px',900000)end", "0");
    ask_all("EVAL", "for i=1,200000 do redis.call('del','k'..i)end", "0");
    is_int(redlock("status", "-q", "--json", NULL), 0, "4000 locks and no other keys");
    is_text(wrote(last, 'e'), "", "no answer is too long");
    signal_to(proxy, SIGKILL);
    waitpid(proxy, NULL, 0);
    ask_all("FLUSHALL");
}

/* A process that answers a byte every 0.4 s, for ever. */
static pid_t dripping_server(char *address, size_t size)
{
    int fd = listen_on(address, size), client;
    pid_t parent = getpid(), pid = fork();

    if (pid == 0) {
        end_with(parent);
        client = accept(fd, NULL, NULL);
        for (;;) {
            if (client < 0 || send(client, "+", 1, MSG_NOSIGNAL) < 0)
                client = accept(fd, NULL, NULL);
            sleep_ms(400);
        }
    }
    close(fd);
    return pid;
}

static void dripping_node(void)
{
    char address[32], list[200], id[9];
    pid_t dripping;
    long begin;

    nodes(2);
    dripping = dripping_server(address, sizeof address);
    snprintf(list, sizeof list, "%s,%s", list_of(2, ""), address);
    setenv("REDLOCK_NODES", list, 1);
    ask_all("SET", "redlock:x", "v", "PX", "90000");
    begin = now_ms();
    is_int(redlock("status", "x", NULL), 0, "two of three nodes have answered");
    ok(strstr(wrote(last, 'e'), ": not all answers, though a quorum of nodes has given all\n"),
       "the third is not waited for (%ld ms): %s", now_ms() - begin, wrote(last, 'e'));
    is_int(redlock("status", "--here", "x", NULL), 1, "--here");
    is_int(redlock("status", "-q", NULL), 0, "a list");
    ok(strstr(wrote(last, 'e'), ": SCAN is not over, though a quorum of nodes has given all\n"),
       "it says so: %s", wrote(last, 'e'));
    id_of("x", id);
    is_int(redlock("release", "--force", id, "x", NULL), 0, "release --force");
    server_kill(&servers[1]);
    is_int(redlock("status", "--node-timeout", ".7", "x", NULL), 69, "one of three has answered");
    ok(strstr(wrote(last, 'e'), ": not all answers within 12800 ms\n") != NULL,
       "two are waited for: %s", wrote(last, 'e'));
    signal_to(dripping, SIGKILL);
    waitpid(dripping, NULL, 0);
}

/* Values of other programs that are longer than the library accepts by default: 1 MB. */
static void large_values(void)
{
    char id[9];

    nodes(3);
    ask_all("EVAL", "redis.call('set','large',string.rep('v',1048577))", "0");
    ask_all("SET", "lock", "v");
    is_int(redlock("status", "--prefix", "", NULL), 0, "status of all keys");
    ok(shows(last, "^large +held +3/3 ") && shows(last, "^lock +held +3/3 "), "it lists both");
    is_int(redlock("run", "-n", "--prefix", "", "large", "true", NULL), 75, "run: held");
    setenv("REDLOCK_PREFIX", "", 1);
    id_of("large", id);
    is_int(redlock("release", "--force", id, "large", NULL), 0, "release --force");
    is_int(with_key("large"), 0, "the key is gone");
}

/* A user who may not list all locks. */
static void denied_lists(void)
{
    nodes(3);
    ask_all("SET", "redlock:k1", "v", "PX", "90000");
    ask_all("ACL", "SETUSER", "locker", "reset", "on", ">" SECRET, "~redlock:*", "+set", "+get",
            "+del", "+pexpire", "+pttl", "+eval");
    is_int(redlock("status", "-N", list_of(3, "redis://locker:" SECRET "@"), NULL), 77,
           "SCAN is not permitted: 77");
    ok(strstr(wrote(last, 'e'), "NOPERM") != NULL, "stderr has: NOPERM");
    ok(strstr(wrote(last, 'e'), "status: no quorum: 0 of 3 nodes permit it, 2 needed\n") != NULL,
       "it does not say that the nodes did not answer: %s", wrote(last, 'e'));
    ask_all("ACL", "SETUSER", "locker", "+scan");
    is_int(redlock("status", "-N", list_of(3, "redis://locker:" SECRET "@"), "k*", NULL), 0,
           "the README's permissions and SCAN are enough");
    ask_all("FLUSHALL");
    ask_all("EVAL", "for i=1,101 do redis.call('set','redlock:k'..i,'v','px',90000)end", "0");
    ask_all("SET", "redlock:another's", "v", "PX", "90000");
    ask_all("ACL", "SETUSER", "locker", "resetkeys", "~redlock:k*");
    is_int(redlock("status", "--json", "-N", list_of(3, "redis://locker:" SECRET "@"), NULL), 77,
           "one of the first 100 keys is not permitted: 77");
    ok(strstr(wrote(last, 'e'), "NOPERM") != NULL, "stderr has: NOPERM");
    is_int(redlock("status", "-N", list_of(3, "redis://locker:" SECRET "@"), "k*", NULL), 0,
           "a pattern without that key");
    is_int(redlock("status", "-N", list_of(3, "redis://locker:WRONGPASS@"), NULL), 77,
           "a refused login, with the first word of the error as its password: 77");
    ok(strstr(wrote(last, 'e'), "refuses AUTH") != NULL, "the message says so");
    is_int(redlock("status", "-N", list_of(3, "redis://locker:PASS@"), NULL), 77,
           "the same with a part of that word");
    ok(strstr(wrote(last, 'e'), "refuses AUTH") != NULL, "the message says so");
}

/* ---- The queue of waiters at the nodes: for one name ---- */

enum { TURNS = 3 };

/* On how many nodes so many stand in the queue. */
static int with_waiters(const char *count)
{
    unsigned i;
    int nodes_with = 0;

    for (i = 0; i < node_count; i++)
        nodes_with += strcmp(ask(i, "ZCARD", "redlock:x:wait"), count) == 0;
    return nodes_with;
}

/* A holder, and waiters that begin 0.3 s apart. Each writes its number when it has the lock; the first also runs. */
static void start_turns(struct program *holder, struct program waiter[TURNS])
{
    struct beat *a = map_beat(beat_path("a"));
    char command[400], number[12];
    int i;

    *holder = start("run", "x", self, "beat", beat_path("a"), NULL);
    ok(beats(a) && on_all("redlock:x"), "held");
    for (i = 0; i < TURNS; i++) {
        snprintf(command, sizeof command, "echo %d >>%s", i + 1, beat_path("turns"));
        if (i == 0)
            snprintf(command + strlen(command), sizeof command - strlen(command),
                     "; exec %s beat %s", self, beat_path("b"));
        snprintf(number, sizeof number, "%d", i + 1);
        waiter[i] = start("run", "x", "-c", command, NULL);
        ok(until(with_waiters(number) == 3, WAIT_MS), "a waiter: %s in the queue", number);
        sleep_ms(300);
    }
}

static const char *turns(void)
{
    static char text[100];
    FILE *file = fopen(beat_path("turns"), "r");
    size_t size = file != NULL ? fread(text, 1, sizeof text - 1, file) : 0;

    text[size] = '\0';
    if (file != NULL)
        fclose(file);
    return text;
}

static void waiters_in_turn(void)
{
    struct beat *a = map_beat(beat_path("a")), *b = map_beat(beat_path("b"));
    struct program holder, waiter[TURNS];
    int i, right = 0;

    nodes(3);
    start_turns(&holder, waiter);
    is_int(redlock("status", "x", NULL), 0, "status");
    ok(shows(last, "^x +held +3/3 +[0-9.]+ s +3 "), "status: how many wait");
    redlock("status", "--json", "x", NULL);
    ok(is_json(last, "\"waiting\":3}"), "status --json: how many wait");
    ask(1, "DEL", "redlock:x:wait");
    redlock("status", "x", NULL);
    ok(shows(last, "^x +held +3/3 +[0-9.]+ s +3 "), "status: a quorum of nodes counts");
    is_int(redlock("status", "-q", NULL), 0, "status of all");
    ok(shows(last, "^x +held ") && count_of(wrote(last, 'o'), "\n") == 1,
       "one line, without the queue");
    for (i = 1; i < TURNS;
         i++) /* else one of them may be faster than the first, on a busy machine */
        signal_to(waiter[i].pid, SIGSTOP);
    a->stop = 1;
    is_int(ends(&holder), 5, "the holder ends");
    ok(beats(b), "the first waiter has the lock");
    for (i = 1; i < TURNS; i++)
        signal_to(waiter[i].pid, SIGCONT);
    /* the second one was told, did not come, and has lost its place until it asks again */
    ok(until((redlock("status", "x", NULL), shows(last, "^x +held +3/3 +[0-9.]+ s +2 ")), WAIT_MS),
       "status: the holder does not count");
    b->stop = 1;
    is_int(ends(&waiter[0]), 5, "the first waiter ends");
    for (i = 1; i < TURNS; i++)
        right += ends(&waiter[i]) == 0;
    is_int(right, TURNS - 1, "all others had the lock");
    ok(strncmp(turns(), "1\n", 2) == 0 && count_of(turns(), "\n") == TURNS, "after it: %s",
       turns());
    ok(until(with_key("redlock:x:wait") == 0, 12000), "no queue is left");
    redlock("acquire", "-t", "60", "x", NULL);
    redlock("status", "x", NULL);
    ok(shows(last, "^x +held +3/3 +[0-9.]+ s +0 "), "status: nobody waits");
    redlock("status", "--json", "x", NULL);
    ok(is_json(last, "\"waiting\":0}"), "status --json: nobody waits");
    ask_all("DEL", "redlock:x");
    no_key_left("then");
}

/* The first waiter is stopped when the holder ends: the others do not wait for it. */
static void waiter_stops(void)
{
    struct beat *a = map_beat(beat_path("a")), *b = map_beat(beat_path("b"));
    struct program holder, waiter[TURNS];
    int i, right = 0;

    nodes(3);
    start_turns(&holder, waiter);
    signal_to(waiter[0].pid, SIGSTOP);
    a->stop = b->stop = 1;
    is_int(ends(&holder), 5, "the holder ends");
    for (i = 1; i < TURNS; i++)
        right += ends(&waiter[i]) == 0;
    is_int(right, TURNS - 1, "the first waiter is stopped: the others get the lock");
    signal_to(waiter[0].pid, SIGCONT);
    is_int(ends(&waiter[0]), 5, "the first waiter continues: it gets the lock");
    ok(strlen(turns()) == 6 && strcmp(turns() + 4, "1\n") == 0, "after them: %s", turns());
    no_key_left("then");
}

/* A user who may not enter the queue, or may not count it. */
static void waiters_without_turns(void)
{
    struct beat *a = map_beat(beat_path("a"));
    struct program holder, waiter;

    nodes(3);
    ask_all("ACL", "SETUSER", "locker", "reset", "on", ">" SECRET, "~redlock:*", "+@all", "-zadd",
            "-zcard");
    setenv("REDLOCK_NODES", list_of(3, "redis://locker:" SECRET "@"), 1);
    holder = start("run", "x", self, "beat", beat_path("a"), NULL);
    ok(beats(a) && on_all("redlock:x"), "held");
    waiter = start("run", "-v", "x", "true", NULL);
    ok(writes(waiter, 'e', "waiting for x, held by "), "a program waits");
    is_int(with_waiters("0"), 3, "it is in no queue");
    is_int(redlock("status", "x", NULL), 0, "status");
    ok(shows(last, "^x +held +3/3 +[0-9.]+ s +- "), "status does not say how many wait");
    redlock("status", "--json", "x", NULL);
    ok(is_json(last, "\"state\":\"held\"") && strstr(wrote(last, 'o'), "waiting") == NULL,
       "status --json does not say it");
    a->stop = 1;
    is_int(ends(&holder), 5, "the holder ends");
    is_int(ends(&waiter), 0, "the waiter gets the lock");
    no_key_left("then");
}

/* The permissions of the manual, and +scan: the server does not tell this user the type of the queue. */
static void permissions_for_turns(void)
{
    struct beat *a = map_beat(beat_path("a"));
    struct program waiter;

    nodes(3);
    ask_all("ACL", "SETUSER", "locker", "reset", "on", ">" SECRET, "~redlock:*", "+set", "+get",
            "+del", "+pexpire", "+pttl", "+eval");
    ask_all("ACL", "SETUSER", "locker", "+evalsha", "+exists", "+info", "+client|tracking");
    ask_all("ACL", "SETUSER", "locker", "+zadd", "+zrank", "+zrange", "+zrem", "+time", "+zcard",
            "+scan");
    setenv("REDLOCK_NODES", list_of(3, "redis://locker:" SECRET "@"), 1);
    redlock("acquire", "-t", "60", "x", NULL);
    waiter = start("run", "x", self, "beat", beat_path("a"), NULL);
    ok(until(with_waiters("1") == 3, WAIT_MS), "the recommended user: a waiter is in the queue");
    redlock("status", "x", NULL);
    ok(shows(last, "^x +held +3/3 +[0-9.]+ s +1 "), "status counts it");
    is_int(redlock("status", "-q", NULL), 0, "status of all");
    ok(shows(last, "^x +held ") && count_of(wrote(last, 'o'), "\n") == 1, "one line");
    ask_all("DEL", "redlock:x");
    ok(beats(a), "the waiter gets the lock");
    a->stop = 1;
    is_int(ends(&waiter), 5, "it ends");
    ok(until(with_key("redlock:x:wait") == 0, 12000), "no queue is left");
    ask(0, "ACL", "LOG");
    ok(strstr(reply, "zadd") == NULL && strstr(reply, "zrem") == NULL &&
           strstr(reply, "zrange") == NULL,
       "nothing of the queue was denied: %s", reply);
    no_key_left("then");
}

/* ---- Terminals ---- */

/* Ctrl-C has ended the command when redlock runs again. */
static void ctrl_c_and_the_end_at_once(void)
{
    struct program run;
    pid_t inner;
    int terminal;

    setup.instead = "bash";
    run = start_on_terminal(
        &terminal, "-c",
        "for i in 1 2; do $COMMAND run x -c 'echo up$i; exec sleep 60'; done; echo on", NULL);
    ok(strstr(screen(terminal, "up"), "up") != NULL, "the loop once more");
    inner = child_of(run.pid, 0);
    signal_to(inner, SIGSTOP);
    type(terminal, "\003");
    sleep_ms(300);
    signal_to(inner, SIGCONT);
    is_int(ends(&run), -SIGINT, "redlock sees both at once: the loop ends, too");
    close(terminal);
}

static void terminals(void)
{
    struct beat *a = map_beat(beat_path("a")), *c = map_beat(beat_path("c")),
                *d = map_beat(beat_path("d")), *e = map_beat(beat_path("e"));
    struct program run, quiet;
    int terminal;

    nodes(3);
    run = start_on_terminal(&terminal, "run", "x", self, "beat", beat_path("a"), NULL);
    ok(beats(a), "in the foreground of a terminal");
    type(terminal, "\003");
    ok(until(a->heard[SIGINT] > 0, WAIT_MS), "Ctrl-C reaches the command");
    type(terminal, "\034");
    ok(until(a->heard[SIGQUIT] > 0, WAIT_MS), "Ctrl-\\ reaches the command");
    ok(until(heard_signals(run.pid), WAIT_MS), "Ctrl-\\ reaches redlock");
    signal_to(run.pid, SIGINT);
    ok(until(a->heard[SIGINT] > 1, WAIT_MS), "redlock forwards a signal that is sent to it");
    sleep_ms(300);
    ok(a->heard[SIGINT] == 2 && a->heard[SIGQUIT] == 1, "the command gets each signal once");
    ok(getpgid(a->pid) == run.pid, "the command is in redlock's process group");
    a->stop = 1;
    is_int(ends(&run), 5, "in the foreground: the command's status");
    close(terminal);

    setenv("COMMAND", program, 1);
    setup.instead = "bash";
    run = start_on_terminal(
        &terminal, "-c",
        "for i in 1 2; do $COMMAND run x -c 'echo up$i; exec sleep 60'; done; echo on", NULL);
    ok(strstr(screen(terminal, "up"), "up") != NULL, "a loop of a shell");
    type(terminal, "\003");
    is_int(ends(&run), -SIGINT, "Ctrl-C ends the command, redlock, and the loop");
    close(terminal);
    ctrl_c_and_the_end_at_once();
    no_key_left("then");

    run = start_on_terminal(&terminal, "run", "x", "timeout", "99", self, "beat", beat_path("e"),
                            NULL);
    ok(beats(e) && getpgid(e->pid) != run.pid, "timeout leaves the foreground with its command");
    /* a signal before it waits for its command would end timeout only */
    ok(until(sleeps(getpgid(e->pid)), WAIT_MS), "timeout waits");
    type(terminal, "\003");
    ok(until(e->heard[SIGINT] > 0, WAIT_MS), "Ctrl-C reaches it all the same");
    signal_to(run.pid, SIGKILL);
    ok(until(!lives(e->pid), WAIT_MS), "it ends with redlock");
    ends(&run);
    close(terminal);

    setenv("COMMAND", program, 1);
    setenv("SELF", self, 1);
    setenv("BEAT", beat_path("d"), 1);
    setup.instead = "sh";
    run = start_on_terminal(&terminal, "-im", NULL);
    type(terminal, "$COMMAND run x $SELF beat $BEAT; echo got $?\n");
    ok(beats(d), "redlock run in an interactive shell");
    type(terminal, "\032");
    ok(strstr(screen(terminal, "Stopped"), "Stopped") != NULL,
       "Ctrl-Z stops redlock and the command");
    d->stop = 1;
    type(terminal, "fg; echo got $?\n");
    ok(strstr(screen(terminal, "got 5"), "got 5") != NULL, "fg continues them");
    type(terminal, "exit\n");
    is_int(ends(&run), 0, "the shell");
    close(terminal);

    setup.instead = "sh";
    run = start_on_terminal(&terminal, "-c",
                            "echo | $COMMAND run x -c 'read w </dev/tty; echo got $w'; echo end $?",
                            NULL);
    ok(on_most("redlock:x"), "stdin is a pipe");
    type(terminal, "hello\n");
    ok(strstr(screen(terminal, "end 0"), "got hello") != NULL,
       "stdin is a pipe: the command can read from the terminal");
    is_int(ends(&run), 0, "the shell");
    close(terminal);
    run = start("run", "x", self, "beat", beat_path("c"), NULL);
    ok(beats(c) && getpgid(c->pid) == getpgid(run.pid), "the same group without a terminal");
    quiet = start("run", "-w", "6", "x", "true", NULL);
    is_int(redlock("run", "-v", "-w", "5", "x", "true", NULL), 75, "-v");
    ok(strstr(wrote(last, 'e'), "waiting for x, held by ") != NULL,
       "-v: a message names the holder while waiting");
    is_int(ends(&quiet), 75, "without -v");
    is_int(count_of(wrote(quiet, 'e'), "\n"), 1, "without -v: only the message at the end");
    run = start_on_terminal(&terminal, "run", "x", "true", NULL);
    ok(strstr(screen(terminal, " s left"), "waiting for x, held by ") != NULL,
       "on a terminal: a message names the holder while waiting");
    type(terminal, "\003");
    is_int(ends(&run), -SIGINT, "Ctrl-C ends the wait");
    close(terminal);
    c->stop = 1;
    no_key_left("then");
}

/* A shell with job control, whose $COMMAND is the program. */
static struct program start_shell(const char *name, int *terminal)
{
    setenv("COMMAND", program, 1);
    setup.instead = name;
    return start_on_terminal(terminal, "-im", NULL);
}

/* Ctrl-Z gives the shell its terminal back, whatever redlock does. */
static void terminal_comes_back(void)
{
    static const char *const lines[] = {"$COMMAND run x true\n", "$COMMAND run y sleep 60\n",
                                        "$COMMAND run z sleep 60 &\n"};
    static const char *const when[] = {"waiting", "running", "from the background"};
    struct program shell;
    int terminal;
    size_t i;

    nodes(3);
    redlock("acquire", "-t", "600", "x", NULL);
    for (i = 0; i < sizeof lines / sizeof *lines; i++) {
        shell = start_shell("sh", &terminal);
        type(terminal, lines[i]);
        if (i > 0)
            on_all(i == 1 ? "redlock:y" : "redlock:z");
        if (i == 2)
            type(terminal, "fg\n");
        until(tcgetpgrp(terminal) != shell.pid, WAIT_MS); /* otherwise nothing would be stopped */
        sleep_ms(1000);
        type(terminal, "\032");
        sleep_ms(500);
        type(terminal, "echo so$((1+1))\n");
        ok(strstr(screen(terminal, "so2"), "so2") != NULL, "%s: the shell reads again", when[i]);
        close(terminal);
        signal_to(shell.pid, SIGKILL);
        ends(&shell);
    }
}

/* With stty tostop, a process in the background that prints is stopped. */
static void background_prints(void)
{
    struct program shell;
    int terminal;

    nodes(3);
    shell = start_shell("sh", &terminal);
    type(terminal, "stty tostop; $COMMAND run -v x no-such-command & wait $!; echo got $?\n");
    ok(strstr(screen(terminal, "got 127"), "got 127") != NULL,
       "a command that is not found, in the background");
    type(terminal, "exit\n");
    is_int(ends(&shell), 0, "the shell");
    close(terminal);
    no_key_left("then");
}

/* Only the leader of the session gets SIGHUP then: with ssh -t, that may be redlock. */
static void terminal_hangs_up(void)
{
    struct beat *a = map_beat(beat_path("a"));
    struct program run;
    int terminal;

    nodes(3);
    run = start_on_terminal(&terminal, "run", "x", self, "beat", beat_path("a"), NULL);
    ok(beats(a), "on a terminal");
    close(terminal);
    ok(until(a->heard[SIGHUP] > 0, WAIT_MS), "the terminal hangs up: the command gets HUP");
    a->stop = 1;
    is_int(ends(&run), 5, "the command's status");
    no_key_left("then");
}

/* Ctrl-C reaches the command without redlock, which then sets no limit. */
static void kill_after_at_a_terminal(void)
{
    struct beat *a = map_beat(beat_path("a"));
    struct program run;
    int terminal;

    nodes(3);
    run = start_on_terminal(&terminal, "run", "-k", "1", "x", self, "beat", beat_path("a"), NULL);
    ok(beats(a), "on a terminal");
    type(terminal, "\003");
    ok(until(a->heard[SIGINT] > 0, WAIT_MS), "Ctrl-C reaches the command");
    sleep_ms(3000);
    ok(lives(a->pid) && !has_ended(run), "Ctrl-C: -k is no limit");
    signal_to(run.pid, SIGTERM);
    is_int(ends(&run), 128 + SIGKILL, "SIGTERM: -k is the limit");
    close(terminal);
    no_key_left("then");
}

static void token_on_a_terminal(void)
{
    struct program run;
    char token[300];
    int terminal;

    nodes(3);
    redlock("acquire", "-t", "60", "x", NULL);
    line_of(last, token);
    run = start_on_terminal(&terminal, "release", "x", "-", NULL);
    until(tcgetpgrp(terminal) == run.pid, WAIT_MS); /* otherwise no process would get Ctrl-C */
    sleep_ms(300);
    type(terminal, "\003");
    is_int(ends(&run), -SIGINT, "Ctrl-C while a token is read");
    close(terminal);
    ok(with_value("redlock:x", token) > 1, "the lock is still held");
    run = start_on_terminal(&terminal, "release", "x", "-", NULL);
    type(terminal, token);
    type(terminal, "\n");
    is_int(ends(&run), 0, "a token that is typed: released");
    close(terminal);
    no_key_left("then");
}

/* ---- All of them ---- */

static const struct scenario {
    const char *name;
    void (*run)(void);
} scenarios[] = {
    /* slow scenarios first */
    {"long_wait", long_wait},
    {"thirty", thirty},
    {"keys_vanish", keys_vanish},
    {"nodes_hang", nodes_hang},
    {"supervisor_dies", supervisor_dies},
    {"signals_while_running", signals_while_running},
    {"renewed_for_weeks", renewed_for_weeks},
    {"two_of_three_down", two_of_three_down},
    {"unavailable", unavailable},
    {"servers_come_later", servers_come_later},
    {"unavailable_and_slow", unavailable_and_slow},
    {"released_by_hung_servers", released_by_hung_servers},
    {"released_by_broken_connections", released_by_broken_connections},
    {"slow_first_answer", slow_first_answer},
    {"verbose", verbose},
    {"works_again", works_again},
    {"late_renewal", late_renewal},
    {"listed_twice", listed_twice},
    {"lists_that_change", lists_that_change},
    {"terminals", terminals},
    {"terminal_comes_back", terminal_comes_back},
    {"terminal_hangs_up", terminal_hangs_up},
    {"background_prints", background_prints},
    {"long_host_name", long_host_name},
    {"least_permissions", least_permissions},
    {"no_pipes", no_pipes},
    {"no_descriptors", no_descriptors},
    {"no_servers", no_servers},
    {"callers", callers},
    {"slots", slots},
    {"odd_lists", odd_lists},
    {"odd_keys", odd_keys},
    {"patterns_as_names", patterns_as_names},
    {"far_slots", far_slots},
    {"many_other_keys", many_other_keys},
    {"dripping_node", dripping_node},
    {"large_values", large_values},
    {"denied_lists", denied_lists},
    {"odd_answers", odd_answers},
    {"denials", denials},
    {"clusters", clusters},
    {"odd_slots", odd_slots},
    {"list", list},
    {"stale_values_differ", stale_values_differ},
    {"waiters_in_turn", waiters_in_turn},
    {"waiter_stops", waiter_stops},
    {"waiters_without_turns", waiters_without_turns},
    {"permissions_for_turns", permissions_for_turns},
    {"hand_off", hand_off},
    {"two_hundred", two_hundred},
    {"overlap", overlap},
    {"taken_after_the_end", taken_after_the_end},
    {"nobody_listens", nobody_listens},
    {"stopped_command", stopped_command},
    {"group_has_time", group_has_time},
    {"stop_of_a_script", stop_of_a_script},
    {"kill_after", kill_after},
    {"kill_after_at_a_terminal", kill_after_at_a_terminal},
    {"kill_after_and_a_pause", kill_after_and_a_pause},
    {"without_proc", without_proc},
    {"moving_process", moving_process},
    {"loss_ends_all", loss_ends_all},
    {"guard_ends_all", guard_ends_all},
    {"ends_all_in_a_namespace", ends_all_in_a_namespace},
    {"orphans", orphans},
    {"everywhere", everywhere},
    {"held_with_a_node_down", held_with_a_node_down},
    {"nodes_down_at_the_end", nodes_down_at_the_end},
    {"exit_statuses", exit_statuses},
    {"words", words},
    {"options", options},
    {"names", names},
    {"too_long", too_long},
    {"reserved_names", reserved_names},
    {"environment", environment},
    {"nested", nested},
    {"nested_no_more", nested_no_more},
    {"held", held},
    {"held_here", held_here},
    {"longest_ttl", longest_ttl},
    {"conflicts", conflicts},
    {"nobody_holds_it", nobody_holds_it},
    {"term_while_waiting", term_while_waiting},
    {"journal_levels", journal_levels},
    {"ttin_while_waiting", ttin_while_waiting},
    {"children_of_the_caller", children_of_the_caller},
    {"other_signals_while_waiting", other_signals_while_waiting},
    {"fork_fails", fork_fails},
    {"min_hold", min_hold},
    {"min_hold_and_a_signal", min_hold_and_a_signal},
    {"min_hold_and_no_majority", min_hold_and_no_majority},
    {"no_renewal", no_renewal},
    {"counted_once", counted_once},
    {"fence", fence},
    {"tokens", tokens},
    {"token_form", token_form},
    {"far_node", far_node},
    {"force", force},
    {"status", status},
    {"undecided", undecided},
    {"askers_die", askers_die},
    {"foreign_keys", foreign_keys},
    {"node_lists", node_lists},
    {"slow_names", slow_names},
    {"no_random_bytes", no_random_bytes},
    {"all_addresses", all_addresses},
    {"names_that_hang", names_that_hang},
    {"names_that_merge", names_that_merge},
    {"reasons_once", reasons_once},
    {"not_on_all_nodes", not_on_all_nodes},
    {"missing_interpreters", missing_interpreters},
    {"names_that_appear", names_that_appear},
    {"names_that_move", names_that_move},
    {"default_config", default_config},
    {"passwords", passwords},
    {"long_passwords", long_passwords},
    {"changed_passwords", changed_passwords},
    {"config_pipes", config_pipes},
    {"no_passwords", no_passwords},
    {"full_servers", full_servers},
    {"json", json},
    {"no_place_to_print", no_place_to_print},
    {"slow_readers", slow_readers},
    {"blocked_by_readers", blocked_by_readers},
    {"token_on_a_terminal", token_on_a_terminal},
};
enum { SCENARIOS = sizeof scenarios / sizeof *scenarios };

/* Returns 1 if a program has printed this word. Files named .secret are the test's. */
static int shown(const char *word)
{
    char command[300];

    snprintf(command, sizeof command, "! grep -rl --exclude='*.secret' %s %s >&2", word,
             programs_folder());
    return system(command) != 0;
}

/* How many descendants of the test are left, besides the servers. The test adopts orphans. */
static int strays(void)
{
    unsigned i;
    int count;
    pid_t pid;

    for (i = 0; i < node_count; i++)
        server_kill(&servers[i]);
    /* a release waits for servers that are gone for four times REDLOCK_NODE_TIMEOUT */
    for (count = 0; count < 9 && !until((pid = child_of(getpid(), 0)) == 0, 30000); count++)
        signal_to(pid, SIGKILL);
    return count;
}

int main(int count, char **arguments)
{
    size_t i;

    self = arguments[0];
    if (count > 2 && strcmp(arguments[1], "beat") == 0)
        return be_a_command(arguments + 2);
    for (i = 0; i < SCENARIOS && count < 2; i++)
        printf("%s\n", scenarios[i].name);
    if (count < 2)
        return 0;
    program = getenv("REDLOCK") != NULL ? getenv("REDLOCK") : "build/redlock";
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    programs_begin(program);
    setenv("REDLOCK_NODE_TIMEOUT", "3", 1); /* the machine may be paused for a second */
    setenv("REDLOCK_CONFIG", "/dev/null", 1);
    unsetenv("JOURNAL_STREAM");
    for (i = 0; i < SCENARIOS && strcmp(scenarios[i].name, arguments[1]) != 0; i++)
        continue;
    if (i == SCENARIOS) {
        fprintf(stderr, "cli_test: no such scenario: %s\n", arguments[1]);
        return 1;
    }
    scenarios[i].run();
    is_int(shown(SECRET), 0, "no password was shown");
    is_int(shown("node_timeout_ms") + shown("stall_ms"), 0, "no name of the library was shown");
    is_int(strays(), 0, "no process is left");
    return done_testing();
}
