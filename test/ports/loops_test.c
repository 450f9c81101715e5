/* loops_test.c FOLDER - runs the examples of examples/loops, all at once, each also under valgrind, and kills and
   restarts a server meanwhile. FOLDER has the programs.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "servers.h"
#include "tap.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SERVERS = 3, MAJORITY = 2, LOOPS = 7, RUNS = 2 * LOOPS, LOCKS = 2, PATIENCE_MS = 60000 };
/* So many characters of a value are the same on all nodes. The number of the command that wrote it follows. */
enum { OWNER = 32 };

static const char *const loops[LOOPS] = {"epoll",    "descriptor", "libuv",   "libev",
                                         "libevent", "glib",       "sd_event"};
static const char *const sides[LOCKS] = {"left", "right"};

static struct server servers[SERVERS];

static struct run {
    char name[40]; /* also the prefix of its locks */
    int valgrind;
    pid_t pid;   /* 0: it has ended */
    FILE *file;  /* its output */
    size_t mark; /* where `says` begins to look */
    int status;
    long cpu_ms;
    char tokens[LOCKS][100]; /* of its locks, since they were acquired */
    unsigned on[LOCKS];      /* how many servers have that token */
    unsigned lost;           /* how often no majority had that token */
} runs[RUNS];

/* Its output so far; valid until the next call. */
static const char *output(const struct run *run)
{
    static char text[65536];
    ssize_t size = pread(fileno(run->file), text, sizeof text - 1, 0);

    text[size > 0 ? size : 0] = '\0';
    return text;
}

/* Whether its output since the mark has a line with "NAME/left: STEP: " and then `what`, and the same for "right". */
static int says(const struct run *run, const char *step, const char *what)
{
    const char *text = output(run), *line, *word;
    char start[120];
    unsigned i, found = 0;

    for (i = 0; i < LOCKS; i++) {
        snprintf(start, sizeof start, "redlock:%s/%s: %s: ", run->name, sides[i], step);
        for (line = strstr(text + run->mark, start); line != NULL; line = strstr(line + 1, start))
            if ((word = strstr(line, what)) != NULL && word < strchr(line, '\n'))
                break;
        found += line != NULL;
    }
    return found == LOCKS;
}

static void become(const struct run *run, const char *program)
{
    const char *words[10 + SERVERS] = {"valgrind", "--error-exitcode=99", "--leak-check=full",
                                       "--track-fds=yes"};
    unsigned used = run->valgrind ? 4 : 0, i;
    int fd;

    words[used++] = program;
    words[used++] = run->name;
    words[used++] = "600"; /* seconds; the test ends it before */
    for (i = 0; i < SERVERS; i++)
        words[used++] = servers[i].address;
    dup2(fileno(run->file), 1);
    dup2(fileno(run->file), 2);
    for (fd = 3; fd < 1024; fd++)
        close(fd);
    execvp(words[0], (char *const *)(void *)words);
    _exit(127);
}

static void start_all(const char *folder)
{
    char program[300];
    pid_t own = getpid();
    unsigned i;

    fflush(stdout);
    for (i = 0; i < RUNS; i++) {
        struct run *run = &runs[i];
        memset(run, 0, sizeof *run);
        run->valgrind = i >= LOOPS;
        snprintf(run->name, sizeof run->name, "%s%s", loops[i % LOOPS],
                 run->valgrind ? "-valgrind" : "");
        snprintf(program, sizeof program, "%s/%s", folder, loops[i % LOOPS]);
        if ((run->file = tmpfile()) == NULL || (run->pid = fork()) < 0) {
            perror("loops_test");
            exit(1);
        }
        if (run->pid == 0) {
            end_with(own);
            become(run, program);
        }
    }
}

static long cpu_ms_of_children(void)
{
    struct rusage usage;

    getrusage(RUSAGE_CHILDREN, &usage);
    return (long)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000 +
           (long)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000;
}

/* Whether it has ended. Then notes its status and CPU time. */
static int over(struct run *run)
{
    long before = cpu_ms_of_children();

    if (run->pid != 0 && waitpid(run->pid, &run->status, WNOHANG) == run->pid) {
        run->cpu_ms = cpu_ms_of_children() - before;
        run->pid = 0;
    }
    return run->pid == 0;
}

/* Asks the servers whether the lock still has its first token. Before it was acquired they may have the token of an
   attempt that is rolled back. */
static void look_at(struct run *run, unsigned side)
{
    char key[60], values[SERVERS][100];
    char *token = run->tokens[side];
    unsigned i, k;

    if (token[0] == '\0' && !says(run, "acquire", "held"))
        return;
    snprintf(key, sizeof key, "redlock:%s/%s", run->name, sides[side]);
    for (i = 0; i < SERVERS; i++) {
        values[i][0] = '\0';
        if (servers[i].pid != 0)
            server_ask(&servers[i], values[i], sizeof values[i], "GET", key, NULL);
        for (k = 0; k < i && token[0] == '\0'; k++)
            if (strncmp(values[i], values[k], OWNER) == 0 && strlen(values[i]) >= OWNER)
                strcpy(token, values[i]);
    }
    run->on[side] = 0;
    for (i = 0; i < SERVERS; i++)
        run->on[side] += token[0] != '\0' && strncmp(values[i], token, OWNER) == 0;
    run->lost += run->on[side] < MAJORITY;
}

/* Whether it has printed this for both locks, and all running servers have their keys. */
static int is_well(struct run *run, const char *step, const char *what)
{
    unsigned i, running = 0;

    for (i = 0; i < SERVERS; i++)
        running += servers[i].pid != 0;
    for (i = 0; i < LOCKS; i++)
        look_at(run, i);
    return says(run, step, what) && run->on[0] == running && run->on[1] == running;
}

/* Waits until is_well() for all runs; the next call looks only at later output. */
static void expect_all_well(const char *step, const char *what, const char *when)
{
    long until = now_ms() + PATIENCE_MS;
    unsigned i, missing = RUNS;

    while (missing > 0 && now_ms() < until) {
        sleep_ms(50);
        for (missing = i = 0; i < RUNS; i++)
            missing += !is_well(&runs[i], step, what) && !over(&runs[i]);
    }
    for (i = 0; i < RUNS; i++) {
        ok(is_well(&runs[i], step, what), "%s: both locks are on all servers that run, %s",
           runs[i].name, when);
        runs[i].mark = strlen(output(&runs[i]));
    }
}

/* Waits until all have ended, and kills those that do not end in time. */
static void end_all(void)
{
    long until = now_ms() + PATIENCE_MS;
    unsigned i;

    for (i = 0; i < RUNS; i++) {
        while (!over(&runs[i]) && now_ms() < until)
            sleep_ms(10);
        if (runs[i].pid != 0)
            kill(runs[i].pid, SIGKILL);
        while (!over(&runs[i]))
            sleep_ms(10);
    }
}

static void expect_end(const struct run *run, int status)
{
    int good = is_int(WIFEXITED(run->status) ? WEXITSTATUS(run->status) : -1, status,
                      "%s: ends with %d", run->name, status);

    if (run->valgrind)
        good &= ok(strstr(output(run), "FILE DESCRIPTORS: 3 open (3 std)") != NULL,
                   "%s: no descriptor left open", run->name);
    else /* typical: 4 ms in about 10 s */
        good &= ok(run->cpu_ms < 100, "%s: sleeps when there is nothing to do (%ld ms of CPU)",
                   run->name, run->cpu_ms);
    if (!good)
        fprintf(stderr, "# output:\n%s\n", output(run));
    fclose(run->file);
}

static void server_killed_and_restarted(const char *folder)
{
    unsigned i;

    start_all(folder);
    expect_all_well("acquire", "held", "at first");
    /* The server hangs for longer than the time between two extensions. So it has unread bytes when it is killed,
       and its connections are reset rather than closed. */
    server_pause(&servers[1]);
    sleep_ms(2000);
    server_kill(&servers[1]);
    expect_all_well("auto-extend", "2 of 3 nodes are connected", "without one of them");
    server_restart(&servers[1]);
    expect_all_well("auto-extend", "3 of 3 nodes are connected", "when it is back");
    for (i = 0; i < RUNS; i++)
        if (!over(&runs[i]))
            kill(runs[i].pid, SIGTERM);
    end_all();
    for (i = 0; i < RUNS; i++) {
        is_int(runs[i].lost, 0, "%s: a majority always had its tokens", runs[i].name);
        ok(says(&runs[i], "release", "done"), "%s: both locks are released", runs[i].name);
        expect_end(&runs[i], 0);
    }
    is_int(servers_keys_left("*", 10000), 0, "no key is left");
}

static void all_servers_dead(const char *folder)
{
    unsigned i;

    for (i = 0; i < SERVERS; i++)
        server_kill(&servers[i]);
    start_all(folder);
    end_all();
    for (i = 0; i < RUNS; i++) {
        ok(says(&runs[i], "acquire", "too few nodes") &&
               strstr(output(&runs[i]), "Connection refused") != NULL,
           "%s: reports why it cannot acquire without servers", runs[i].name);
        expect_end(&runs[i], 1);
    }
}

int main(int argc, char **argv)
{
    const char *folder = argc > 1 ? argv[1] : "build/loops";

    servers_start(servers, SERVERS, NULL);
    server_killed_and_restarted(folder);
    all_servers_dead(folder);
    return done_testing();
}
