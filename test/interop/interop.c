/* interop.c - our library and node-redlock want the same lock. Who is inside is judged by files, not by
   Redis: a marker that only one can create, a count that only one at a time may read and write, and the
   times of entering and leaving, which must not overlap. TAP; see interop.sh.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "redlock.h"
#include "servers.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { NODES = 5, OURS = 2, THEIRS = 2, TURNS_MAX = 100000 };

static struct server servers[NODES];
static struct redlock_node nodes[NODES];
static struct redlock client;
static struct redlock_lock lock;
static char folder[] = "/tmp/redlock-interop-XXXXXX";
static const char *script; /* client.js */

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void begin(uint32_t ttl_ms)
{
    static const struct redlock_settings patient = {
        .node_timeout_ms = 1000, .stall_ms = 5000, .retry_delay_ms = 4, .retry_delay_max_ms = 8};
    int i;

    memset(nodes, 0, sizeof nodes);
    for (i = 0; i < NODES; i++)
        nodes[i].address = servers[i].address;
    redlock_init(&client, redlock_posix(), nodes, NODES, &patient);
    redlock_lock_init(&lock, "interop", 7, ttl_ms);
}

static const char *path(char *text, size_t size, const char *what)
{
    snprintf(text, size, "%s/%s", folder, what);
    return text;
}

static long read_count(void)
{
    char name[80], digits[32] = "";
    FILE *file = fopen(path(name, sizeof name, "t.count"), "r");

    if (file != NULL) {
        (void)!fgets(digits, sizeof digits, file);
        fclose(file);
    }
    return strtol(digits, NULL, 10);
}

static void write_count(long count)
{
    char name[80];
    FILE *file = fopen(path(name, sizeof name, "t.count"), "w");

    if (file != NULL) {
        fprintf(file, "%ld\n", count);
        fclose(file);
    }
}

/* One of ours. The same as contend() in client.js. */
static void contend(long seconds, int unlocked)
{
    char name[80], marker[80];
    long until = now_ms() + seconds * 1000;
    FILE *log;

    snprintf(name, sizeof name, "%s/t.ours.%ld", folder, (long)getpid());
    path(marker, sizeof marker, "t.inside");
    log = fopen(name, "w");
    srand((unsigned)getpid());
    begin(10000);
    while (log != NULL && now_ms() < until) {
        uint64_t asked = now_ns(), entered;
        int fd;
        long count;
        if (!unlocked && redlock_acquire(&client, &lock, 10000) != REDLOCK_OK)
            continue;
        entered = now_ns();
        fd = open(marker, O_CREAT | O_EXCL | O_WRONLY, 0600);
        count = read_count();
        sleep_ms(rand() % 3);
        write_count(count + 1);
        if (fd >= 0) {
            close(fd);
            unlink(marker);
        }
        fprintf(log, "%" PRIu64 " %" PRIu64 " %" PRIu64 " %d\n", entered, now_ns(), asked, fd >= 0);
        if (!unlocked)
            redlock_release(&client, &lock, 1000);
        sleep_ms(rand() % 4);
    }
    if (log != NULL)
        fclose(log);
    redlock_deinit(&client);
    _exit(0);
}

/* Starts client.js with these words and the servers' addresses; its stdin and stdout. */
static pid_t start_node(int *in, int *out, const char *const *words)
{
    const char *arguments[16] = {"node", script};
    int to[2], from[2], i, n = 2;
    pid_t child;

    if (pipe(to) != 0 || pipe(from) != 0)
        exit(1);
    for (; *words != NULL; words++)
        arguments[n++] = *words;
    for (i = 0; i < NODES; i++)
        arguments[n++] = servers[i].address;
    fflush(stdout);
    child = fork();
    if (child == 0) {
        dup2(to[0], 0);
        dup2(from[1], 1);
        close(to[1]);
        close(from[0]);
        execvp("node", (char *const *)(uintptr_t)arguments);
        _exit(127);
    }
    close(to[0]);
    close(from[1]);
    *in = to[1];
    *out = from[0];
    return child;
}

/* A line from it, without its end. */
static const char *line_of(int out)
{
    static char line[400];
    size_t used = 0;

    while (used < sizeof line - 1 && read(out, line + used, 1) == 1 && line[used] != '\n')
        used++;
    line[used] = '\0';
    return line;
}

struct turn {
    uint64_t entered, left;
};

static int by_time(const void *a, const void *b)
{
    uint64_t x = ((const struct turn *)a)->entered, y = ((const struct turn *)b)->entered;

    return x < y ? -1 : x > y;
}

struct result {
    long turns, alone, overlaps, count;
    uint64_t longest; /* wait, ns */
    long of_ours, of_theirs;
};

static void read_logs(const char *pattern, struct turn *turns, struct result *r, long *mine)
{
    char name[100], text[200];
    glob_t found;
    size_t i;

    path(name, sizeof name, pattern);
    if (glob(name, 0, NULL, &found) != 0)
        return;
    for (i = 0; i < found.gl_pathc; i++) {
        FILE *file = fopen(found.gl_pathv[i], "r");
        while (file != NULL && r->turns < TURNS_MAX && fgets(text, sizeof text, file) != NULL) {
            uint64_t asked;
            int alone;
            if (sscanf(text, "%" SCNu64 " %" SCNu64 " %" SCNu64 " %d", &turns[r->turns].entered,
                       &turns[r->turns].left, &asked, &alone) != 4)
                continue;
            if (turns[r->turns].entered - asked > r->longest)
                r->longest = turns[r->turns].entered - asked;
            r->alone += alone;
            r->turns++;
            ++*mine;
        }
        if (file != NULL)
            fclose(file);
        unlink(found.gl_pathv[i]);
    }
    globfree(&found);
}

/* Two of each take turns for so many seconds; with `unlocked` one of ours does not ask. */
static struct result take_turns(const char *seconds, int unlocked)
{
    static struct turn turns[TURNS_MAX];
    char file[80];
    const char *const words[] = {"contend", path(file, sizeof file, "t"), seconds, "no", NULL};
    struct result r;
    pid_t children[OURS + THEIRS];
    long i;
    int in, out;

    memset(&r, 0, sizeof r);
    write_count(0);
    for (i = 0; i < THEIRS; i++)
        children[i] = start_node(&in, &out, words);
    fflush(stdout);
    for (; i < OURS + THEIRS; i++)
        if ((children[i] = fork()) == 0)
            contend(strtol(seconds, NULL, 10) + 1, unlocked && i == THEIRS);
    for (i = 0; i < OURS + THEIRS; i++)
        waitpid(children[i], NULL, 0);
    read_logs("t.ours.*", turns, &r, &r.of_ours);
    read_logs("t.node.*", turns, &r, &r.of_theirs);
    qsort(turns, (size_t)r.turns, sizeof *turns, by_time);
    for (i = 1; i < r.turns; i++)
        r.overlaps += turns[i].entered < turns[i - 1].left;
    r.count = read_count();
    path(file, sizeof file, "t.inside");
    unlink(file);
    return r;
}

static void both_take_turns(const char *seconds)
{
    struct result r = take_turns(seconds, 0);

    printf("# %ld turns: ours %ld, theirs %ld; longest wait %lu ms\n", r.turns, r.of_ours,
           r.of_theirs, (unsigned long)(r.longest / 1000000));
    ok(r.turns >= 500, "two of ours and two of theirs take %ld turns", r.turns);
    is_int(r.turns - r.alone, 0, "each is alone inside");
    is_int(r.overlaps, 0, "no two at one time");
    is_int(r.count, r.turns, "no count is lost");
    ok(r.of_ours * 10 >= r.turns, "ours get their turns: %ld", r.of_ours);
    ok(r.of_theirs * 10 >= r.turns, "theirs get their turns: %ld", r.of_theirs);
    r = take_turns("3", 1);
    ok(r.turns - r.alone > 0 && r.overlaps > 0 && r.count != r.turns,
       "one that does not ask for the lock is seen: %ld not alone, %ld at one time, %ld counts "
       "lost",
       r.turns - r.alone, r.overlaps, r.turns - r.count);
}

static void held_by_theirs(void)
{
    const char *const words[] = {"hold", "20000", NULL};
    const char *const shortly[] = {"hold", "2000", NULL};
    int in, out;
    pid_t child = start_node(&in, &out, words);

    ok(strcmp(line_of(out), "held") == 0, "node-redlock holds it");
    begin(20000);
    is_int((int)redlock_acquire(&client, &lock, 0), REDLOCK_HELD, "it is refused to ours");
    is_int((int)redlock_extend(&client, &lock), REDLOCK_LOST, "and ours can't extend it");
    close(in);
    ok(strcmp(line_of(out), "released") == 0, "it releases it");
    waitpid(child, NULL, 0);
    is_int((int)redlock_acquire(&client, &lock, 10000), REDLOCK_OK, "ours gets it");
    redlock_release(&client, &lock, 5000);
    close(out);
    child = start_node(&in, &out, shortly);
    ok(strcmp(line_of(out), "held") == 0, "node-redlock holds it for 2 s");
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    is_int((int)redlock_acquire(&client, &lock, 20000), REDLOCK_OK, "it is killed: ours gets it");
    redlock_release(&client, &lock, 5000);
    close(in);
    close(out);
    redlock_deinit(&client);
}

static void held_by_ours(void)
{
    const char *const words[] = {"hold", "20000", NULL};
    int in, out, tries;
    pid_t child;

    begin(20000);
    is_int((int)redlock_acquire(&client, &lock, 10000), REDLOCK_OK, "ours holds it");
    child = start_node(&in, &out, words);
    ok(strncmp(line_of(out), "refused", 7) == 0, "it is refused to node-redlock");
    waitpid(child, NULL, 0);
    close(in);
    close(out);
    is_int((int)redlock_extend(&client, &lock), REDLOCK_OK, "and still ours: extended");
    lock.ttl_ms = 20000;
    is_int((int)redlock_release(&client, &lock, 5000), REDLOCK_OK, "and released");
    redlock_deinit(&client);
    begin(1500);
    fflush(stdout);
    if (fork() == 0) { /* a holder that crashes */
        redlock_deinit(&client);
        begin(1500);
        redlock_acquire(&client, &lock, 10000);
        kill(getpid(), SIGKILL);
    }
    wait(NULL);
    for (tries = 0; tries < 60; tries++) { /* it does not wait by itself here */
        int held;
        child = start_node(&in, &out, words);
        held = strcmp(line_of(out), "held") == 0;
        close(in);
        if (held)
            line_of(out);
        waitpid(child, NULL, 0);
        close(out);
        if (held)
            break;
    }
    ok(tries < 60, "ours is killed: node-redlock gets it");
    redlock_deinit(&client);
}

int main(int argc, char **argv)
{
    char file[80];

    if (argc != 3 || mkdtemp(folder) == NULL) {
        fprintf(stderr, "usage: interop client.js SECONDS\n");
        return 2;
    }
    alarm(600); /* whatever happens */
    script = argv[1];
    signal(SIGPIPE, SIG_IGN);
    servers_start(servers, NODES, NULL);
    held_by_theirs();
    held_by_ours();
    both_take_turns(argv[2]);
    unlink(path(file, sizeof file, "t.count"));
    rmdir(folder);
    return done_testing();
}
