/* job_test.c - the processes of `redlock run`, on real servers: which of them end, when and how, whatever happens to redlock, its guard
   and the command. REDLOCK names the program (default build/redlock). job_test SCENARIO runs one scenario; without an argument it
   lists all, for `prove -j`; a number behind SCENARIO is how often each pair of stops and kills is tried. The witness of most is a file that all processes of a job keep open and locked with flock(2): the
   kernel knows if one of them lives when the next job begins.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* SIGPWR, prctl, __WALL */
#include "program.h"
#include "servers.h"
#include "tap.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

enum { NODES = 3 };

static struct server servers[NODES];
static const char *self, *program;
static char reply[4096];

static void nodes(void)
{
    char list[200] = "";
    unsigned i;

    servers_start(servers, NODES, NULL);
    for (i = 0; i < NODES; i++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%.31s ", servers[i].address);
    setenv("REDLOCK_NODES", list, 1);
}

#define ask(n, ...) server_ask(&servers[n], reply, sizeof reply, __VA_ARGS__, NULL)

static int with_key(const char *key)
{
    unsigned i;
    int count = 0;

    for (i = 0; i < NODES; i++)
        count += strcmp(ask(i, "EXISTS", key), "1") == 0;
    return count;
}

static void delete_key(const char *key)
{
    unsigned i;

    for (i = 0; i < NODES; i++)
        ask(i, "DEL", key);
}

/* Never to pid 0, which means the whole process group of the test. */
static void signal_to(pid_t pid, int number)
{
    if (pid > 0)
        kill(pid, number);
}

static void set_path(const char *name, const char *file)
{
    char path[120];

    snprintf(path, sizeof path, "%s/%s", programs_folder(), file);
    setenv(name, path, 1);
}

static void preload_shim(void)
{
    char shim[300];

    snprintf(shim, sizeof shim, "%.*s/fork_shim.so", (int)(strrchr(self, '/') - self), self);
    setenv("ASAN_OPTIONS", "verify_asan_link_order=0", 0);
    setenv("LD_PRELOAD", shim, 1);
}

/* Runs a script as the job `x`, with one option. The shim in redlock and its guard does what REDLOCK_FORK says; the job has no shim. */
static struct program start_shimmed(const char *what, const char *option, const char *value,
                                    const char *script)
{
    struct program run;

    preload_shim();
    setenv("REDLOCK_FORK", what, 1);
    run = start("run", option, value, "x", "env", "-u", "LD_PRELOAD", "sh", "-c", script, NULL);
    unsetenv("LD_PRELOAD");
    return run;
}

/* A part of a script waits until the test calls tell(). */
#define UNTIL_TOLD "while [ ! -e \"$TELL\" ]; do sleep .05; done; "

static void tell(void)
{
    close(open(getenv("TELL"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
}

/* ---- Jobs ---- */

/* The beginning of each job: it opens and locks the witness, and says if a process of another job still has it. */
#define BEGIN "exec 9>>\"$WITNESS\"; flock -n 9 || echo overlap; echo shell $$; "

/* Processes of several kinds, which also have it open: a child; a daemon without an environment; one that ignores what asks it to
   end; one whose parent has ended; and a chain of processes that always start another one and end. */
static const char many[] =
    BEGIN "sh -c 'echo child $$; exec sleep 300' & "
          "setsid env -i sh -c 'echo daemon $$; exec sleep 300' & "
          "setsid sh -c 'trap \"\" TERM INT HUP; echo deaf $$; while :; do sleep 1; done' & "
          "(setsid sh -c 'echo orphan $$; exec sleep 300' &); "
          "\"$SELF\" chain & wait; echo waited; exit 4";

/* The next holder. */
static const char next[] = BEGIN "echo next";

/* The process that the job calls so, in a line "NAME PID" of its output. 0 if there is none in time. */
static pid_t process(struct program run, const char *name)
{
    char part[40];
    const char *at = NULL, *text;

    snprintf(part, sizeof part, "%s ", name);
    until((at = strstr(text = wrote(run, 'o'), part)) != NULL && strchr(at, '\n') != NULL, WAIT_MS);
    (void)text;
    return at != NULL ? atoi(at + strlen(part)) : 0;
}

static pid_t guard_of(struct program run)
{
    pid_t guard = 0;

    until((guard = child_of(run.pid, 0)) != 0 && is_called(guard, "rl-guard"), WAIT_MS);
    return guard;
}

/* The parent of a process; 0 if there is no such process. */
static pid_t parent_of(pid_t pid)
{
    char path[40], line[200];
    pid_t parent = 0;
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/status", pid);
    file = fopen(path, "r");
    while (file != NULL && parent == 0 && fgets(line, sizeof line, file) != NULL)
        sscanf(line, "PPid: %d", &parent);
    if (file != NULL)
        fclose(file);
    return parent;
}

/* Waits until all processes of `many` run. */
static void all_run(struct program run)
{
    ok(process(run, "child") && process(run, "daemon") && process(run, "deaf") &&
           process(run, "orphan") && process(run, "chain"),
       "processes of several kinds run");
}

/* Whether a process has the witness. */
static int is_witnessed(void)
{
    int fd = open(getenv("WITNESS"), O_RDONLY | O_CLOEXEC);
    int has = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0;

    if (fd >= 0)
        close(fd);
    return has;
}

static void nobody_is_left(const char *when)
{
    ok(!is_witnessed(), "%s: no process of the job is left", when);
}

/* The next holder begins, and no process of an earlier job lives then. */
static void next_is_alone(struct program *run, const char *when)
{
    ok(writes(*run, 'o', "next\n"), "%s: the next holder begins", when);
    ok(strstr(wrote(*run, 'o'), "overlap") == NULL, "%s: no process of the job is left then", when);
    is_int(ends(run), 0, "%s: the next holder ends", when);
}

static void release(const char *name)
{
    char key[60];

    snprintf(key, sizeof key, "redlock:%s", name);
    delete_key(key);
}

/* A process that starts another one and ends, and so on: each has another pid, session and process group. */
static int be_a_chain(void)
{
    long end = now_ms() + 120000;

    printf("chain %d\n", getpid());
    fflush(stdout);
    while (now_ms() < end) {
        if (fork() != 0)
            _exit(0);
        setsid();
        sleep_ms(1);
    }
    return 0;
}

static void say_signal(int number)
{
    char text[20];
    int size = snprintf(text, sizeof text, "got %d\n", number);

    if (write(1, text, (size_t)size) != size)
        _exit(1);
}

/* A process that says which signals it gets, with its pid before. SIGUSR1 ends it with status 6. */
static int be_a_counter(void)
{
    int i;

    for (i = 1; i <= SIGRTMAX; i++)
        if (i != SIGCHLD && i != SIGTTOU)
            signal(i, say_signal);
    signal(SIGUSR1, SIG_DFL);
    printf("counter %d\n", getpid());
    fflush(stdout);
    for (i = 0; i < 6000; i++)
        sleep_ms(20);
    return 6;
}

/* The system hides this process from its user, where /proc has the mount option hidepid, as it hides redlock when a node has a password. */
static int be_hidden(void)
{
    prctl(PR_SET_DUMPABLE, 0);
    return be_a_counter();
}

/* Processes that wait for their children as sudo, su and a shell with job control do: each says if its child has stopped. */
static int be_a_watcher(void)
{
    int status = 0, levels = 8;
    pid_t child = 0;

    signal(SIGTERM, SIG_IGN); /* but for the last one */
    while (levels > 0 && (child = fork()) == 0)
        levels--;
    if (child == 0) {
        signal(SIGTERM, SIG_DFL);
        printf("up\n");
        fflush(stdout);
        sleep_ms(120000);
        return 1;
    }
    while (waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status))
        say_signal(WSTOPSIG(status));
    return levels == 8 ? 4 : 0;
}

/* ---- redlock and its guard die or stop ---- */

static void redlock_killed(void)
{
    struct program run, waits;

    nodes();
    run = start("run", "-t", "5", "x", "-c", many, NULL);
    all_run(run);
    waits = start("run", "x", "-c", next, NULL);
    signal_to(run.pid, SIGKILL);
    is_int(ends(&run), -SIGKILL, "redlock is killed");
    ok(writes(run, 'e', "redlock is gone: the job was killed"), "the guard says so");
    nobody_is_left("redlock is killed");
    next_is_alone(&waits, "redlock is killed");
}

static void guard_killed(void)
{
    struct program run, waits;

    nodes();
    run = start("run", "-t", "60", "x", "-c", many, NULL);
    all_run(run);
    waits = start("run", "x", "-c", next, NULL);
    signal_to(guard_of(run), SIGKILL);
    is_int(ends(&run), 128 + SIGKILL, "the guard is killed: so is the job: 137");
    ok(strstr(wrote(run, 'e'), "the guard is gone: the job was killed") != NULL, "redlock says so");
    next_is_alone(&waits, "the guard is killed");
}

static void redlock_stopped(void)
{
    struct program run, waits;

    nodes();
    run = start("run", "-t", "10", "x", "-c", many, NULL);
    all_run(run);
    waits = start("run", "x", "-c", next, NULL);
    signal_to(run.pid, SIGSTOP);
    next_is_alone(&waits, "redlock is stopped");
    is_int(ends(&run), 79, "the kernel continues redlock when the lock is about to expire: 79");
    ok(strstr(wrote(run, 'e'), "redlock did not run for ") != NULL &&
           strstr(wrote(run, 'e'), "; the command ") != NULL,
       "redlock says why: %s", wrote(run, 'e'));
}

static long long hang_all(const char *key);
static void wake_all(void);

/* The same, and the nodes hang, so the release takes its time. Meanwhile the guard does not say that redlock does not run. */
static void redlock_stopped_and_nodes_hang(void)
{
    struct program run;

    nodes();
    run = start("run", "-t", "6", "x", "-c", BEGIN "exec sleep 300", NULL);
    ok(process(run, "shell") != 0, "a job");
    hang_all("redlock:x");
    /* The kernel continues it at the deadline: then it is stopped again, so that the guard reports the end of the job first. */
    ok(until((signal_to(run.pid, SIGSTOP), !is_witnessed()), WAIT_MS), "the guard kills the job");
    signal_to(run.pid, SIGCONT);
    is_int(ends(&run), 79, "redlock is stopped, and the nodes hang: 79");
    ok(strstr(wrote(run, 'e'), "redlock does not run") == NULL, "one message says why: %s",
       wrote(run, 'e'));
    wake_all();
}

/* The command stops it at once: it has not looked at the lock yet. */
static void redlock_stopped_at_the_start(void)
{
    struct program run;

    nodes();
    run = start("run", "-t", "2", "x", "-c",
                "read a b c p d </proc/$PPID/stat; kill -STOP $p; exec sleep 60", NULL);
    is_int(ends(&run), 79, "redlock is continued, and the command is killed: 79");
    ok(strstr(wrote(run, 'e'), "redlock did not run for ") != NULL, "redlock says why: %s",
       wrote(run, 'e'));
}

/* redlock is stopped when it waits for the guard, which is about to start the command. */
static void redlock_stopped_early(void)
{
    struct program run;
    pid_t guard;

    nodes();
    run = start_shimmed("wait2", "-t", "12", "exit 4");
    ok(until((guard = child_of(run.pid, 0)) != 0, WAIT_MS), "the guard, which pauses");
    ok(until(sleeps(run.pid), WAIT_MS), "redlock, which waits for its report");
    signal_to(run.pid, SIGSTOP);
    ok(until(!lives(guard), WAIT_MS), "the command ends while redlock does not run");
    ok(until(with_key("redlock:x") == 0, WAIT_MS), "and the lock expires");
    signal_to(run.pid, SIGCONT);
    is_int(ends(&run), 4, "redlock goes on: the status of the command: %s", wrote(run, 'e'));
}

static void guard_stopped(void)
{
    struct program run;

    nodes();
    run = start("run", "-t", "30", "x", "-c", BEGIN "exec sleep 300", NULL);
    ok(process(run, "shell") != 0, "a job");
    signal_to(guard_of(run), SIGSTOP);
    signal_to(run.pid, SIGTERM);
    is_int(ends(&run), 128 + SIGTERM, "a guard that is stopped is continued, and ends the job");
    nobody_is_left("then");
}

/* The guard is stopped before it has started the command; and while --min-hold keeps the lock, when it has told that the job is
   over. */
static void guard_stopped_early_or_late(void)
{
    struct program run;

    nodes();
    run = start_shimmed("wait2", "-t", "60", "exit 4");
    ok(until(child_of(run.pid, 0) != 0, WAIT_MS), "the guard, which pauses");
    signal_to(child_of(run.pid, 0), SIGSTOP);
    is_int(ends(&run), 4, "it is continued, and starts the command");
    run = start_shimmed("wait2", "-t", "2", "exit 4");
    is_int(ends(&run), 79, "the pause is longer than the lock lives: 79");
    ok(writes(
           run, 'e',
           "guard did not react in time: the job was killed\nredlock: x: the lock expired before"),
       "redlock does not wait for the guard: %s", wrote(run, 'e'));
    run =
        start("run", "-v", "--min-hold", "3", "x", "-c", "sleep 300 & echo left $!; exit 5", NULL);
    ok(writes(run, 'e', "--min-hold keeps the lock"), "a command that has left a process");
    signal_to(guard_of(run), SIGSTOP);
    is_int(ends(&run), 5, "the guard is continued, and redlock ends");
    ok(writes(run, 'e', "goes on without the lock"), "the guard has named that process");
    signal_to(process(run, "left"), SIGKILL);
}

/* The guard hangs, and the lock is lost. */
static void guard_hangs(void)
{
    struct program run;

    nodes();
    run = start_shimmed("hang", "-t", "6", many);
    all_run(run);
    release("x");
    is_int(ends(&run), 79, "the guard hangs, and the lock is lost: 79");
    nobody_is_left("the guard hangs");
}

/* The kernel kills the command then. What it has started goes on: this is documented. */
static void both_killed(void)
{
    struct program run;
    pid_t guard, shell, child;

    nodes();
    run = start("run", "-t", "60", "x", "-c", BEGIN "sh -c 'echo child $$; exec sleep 300' & wait",
                NULL);
    guard = guard_of(run);
    shell = process(run, "shell");
    child = process(run, "child");
    signal_to(run.pid, SIGSTOP); /* so that it does not see the guard die */
    signal_to(guard, SIGKILL);
    signal_to(run.pid, SIGKILL);
    is_int(ends(&run), -SIGKILL, "both are killed");
    ok(until(!lives(shell), WAIT_MS), "the command is killed");
    ok(lives(child), "its child goes on");
    signal_to(child, SIGKILL);
}

/* A process that was started elsewhere, with a copy of the job's environment, is not of the job. */
static void unrelated_process(void)
{
    static char text[65536];
    char *words[] = {"sleep", "300", NULL}, *variables[400], path[64], *at;
    struct program run;
    pid_t other;
    size_t size, count = 0;
    FILE *file;

    nodes();
    run = start("run", "x", "-c", BEGIN "exec sleep 300", NULL);
    snprintf(path, sizeof path, "/proc/%d/environ", process(run, "shell"));
    file = fopen(path, "r");
    size = file != NULL ? fread(text, 1, sizeof text - 1, file) : 0;
    for (at = text; at < text + size && count < 399; at += strlen(at) + 1)
        variables[count++] = at;
    variables[count] = NULL;
    fclose(file);
    other = fork();
    if (other == 0) {
        execve("/bin/sleep", words, variables);
        _exit(1);
    }
    signal_to(run.pid, SIGKILL);
    is_int(ends(&run), -SIGKILL, "redlock is killed");
    ok(writes(run, 'e', "was killed"), "and the job");
    nobody_is_left("then");
    ok(lives(other), "a process with a copy of its environment lives on");
    signal_to(other, SIGKILL);
    waitpid(other, NULL, 0);
}

/* Children that redlock has from the program that has executed it are not of the job. */
static void strangers(void)
{
    struct program run;
    pid_t stranger;

    nodes();
    setup.instead = "sh";
    run = start("-c", "sleep 300 & echo stranger $!; exec \"$P\" run x -c 'true'", NULL);
    is_int(ends(&run), 0, "a shell that has a child executes redlock");
    stranger = process(run, "stranger");
    ok(lives(stranger) && strstr(wrote(run, 'e'), "without the lock") == NULL,
       "the child lives on, and no message is about it: %s", wrote(run, 'e'));
    signal_to(stranger, SIGKILL);
    setup.instead = "sh";
    run = start("-c", "sleep 300 & echo stranger $!; exec \"$P\" run x -c \"$MANY\"", NULL);
    all_run(run);
    stranger = process(run, "stranger");
    signal_to(child_of(run.pid, stranger), SIGKILL);
    is_int(ends(&run), 128 + SIGKILL, "the guard is killed");
    nobody_is_left("the guard is killed");
    ok(lives(stranger), "the child that redlock had before lives on");
    signal_to(stranger, SIGKILL);
}

/* The process cannot open one more descriptor. */
static void use_up_descriptors(pid_t pid)
{
    struct rlimit limit = {0, 0};
    struct dirent *entry;
    char path[40];
    DIR *folder;

    snprintf(path, sizeof path, "/proc/%d/fd", pid);
    folder = opendir(path);
    while (folder != NULL && (entry = readdir(folder)) != NULL)
        if (entry->d_name[0] != '.' && (rlim_t)atoi(entry->d_name) >= limit.rlim_max)
            limit.rlim_max = (rlim_t)atoi(entry->d_name) + 1;
    if (folder != NULL)
        closedir(folder);
    limit.rlim_cur = limit.rlim_max;
    prlimit(pid, RLIMIT_NOFILE, &limit, NULL);
}

/* The guard is killed when redlock has no descriptor left. Renewals come before. */
static void guard_killed_without_descriptors(void)
{
    struct program run;
    pid_t stranger, guard;
    int renewals;

    nodes();
    setup.instead = "sh";
    run = start("-c", "sleep 300 & echo stranger $!; exec \"$P\" run -v -t 6 x -c \"$MANY\"", NULL);
    all_run(run);
    stranger = process(run, "stranger");
    guard = parent_of(process(run, "shell"));
    use_up_descriptors(run.pid);
    renewals = count_of(wrote(run, 'e'), "x: renewed");
    ok(until(count_of(wrote(run, 'e'), "x: renewed") > renewals + 1, WAIT_MS), "two renewals");
    signal_to(guard, SIGKILL);
    is_int(ends(&run), 128 + SIGKILL, "the guard is killed: %s", wrote(run, 'e'));
    nobody_is_left("the guard is killed");
    ok(lives(stranger), "the child that redlock had before lives on");
    signal_to(stranger, SIGKILL);
}

/* ---- The lock is lost ---- */

static void lock_lost(void)
{
    struct program run, waits;
    const char *at;
    long begin;

    nodes();
    run = start("run", "-t", "30", "x", "-c", many, NULL);
    all_run(run);
    begin = now_ms();
    release("x");
    waits = start("run", "-t", "5", "y", "-c", "exit 0", NULL);
    is_int(ends(&waits), 0, "another lock works");
    is_int(ends(&run), 79, "the lock is lost: 79");
    ok(now_ms() - begin < 30000, "long before its ttl (%ld ms)", now_ms() - begin);
    at = strstr(wrote(run, 'e'), "x: renewal failed: ");
    ok(at == NULL || strncmp(strchr(at, '\n'), "\nredlock:   127.0.0.1:", 21) == 0,
       "a message about the renewal has its reasons: %s", wrote(run, 'e'));
    nobody_is_left("the lock is lost");
}

static long long wall_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

static int compare(const void *one, const void *other)
{
    long long a = *(const long long *)one, b = *(const long long *)other;

    return (a > b) - (a < b);
}

/* The nodes hang from now on. Returns when fewer than two of three have the key, by wall_ms(): not earlier than D. Writes stop first,
   so that no renewal comes between the question and the hang. */
static long long hang_all(const char *key)
{
    long long expires[NODES];
    unsigned i;

    for (i = 0; i < NODES; i++)
        ask(i, "CLIENT", "PAUSE", "60000", "WRITE");
    for (i = 0; i < NODES; i++) {
        expires[i] = atoll(ask(i, "PTTL", key));
        expires[i] += wall_ms();
        server_pause(&servers[i]);
    }
    qsort(expires, NODES, sizeof *expires, compare);
    return expires[1];
}

static void wake_all(void)
{
    unsigned i;

    for (i = 0; i < NODES; i++)
        server_resume(&servers[i]);
    for (i = 0; i < NODES; i++)
        ask(i, "CLIENT", "UNPAUSE");
}

/* A command that ignores SIGTERM writes the time again and again, and a line when it gets SIGTERM. */
#define BEATS                                                                                      \
    "trap 'echo told >>\"$BEATS\"' TERM; echo shell $$; while :; do date +%s%N >>\"$BEATS\"; "     \
    "sleep .02; done"

/* The first time after SIGTERM, and the last one; 0: none. By wall_ms(). */
static void read_beats(long long *told, long long *end)
{
    FILE *file = fopen(getenv("BEATS"), "r");
    char line[40];
    int is_told = 0;

    *told = *end = 0;
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        is_told |= strcmp(line, "told\n") == 0;
        if (strlen(line) < 20) /* also a line that the end of the job has cut */
            continue;
        *end = atoll(line) / 1000000;
        *told = is_told && *told == 0 ? *end : *told;
    }
    if (file != NULL)
        fclose(file);
    unlink(getenv("BEATS"));
}

/* What is measured may be wrong once, because this machine was paused at that moment. */
enum { TRIES = 3 };

/* SIGTERM comes first, to all, and SIGKILL before the lock expires. The nodes hang, so that D is as late as it can be. */
static void lock_expires(void)
{
    static const char job[] =
        BEGIN "setsid env -i sh -c 'trap \"echo told; exit\" TERM; echo daemon $$; while :; do "
              "sleep .1; done' & " BEATS;
    struct program run, waits;
    long long expiry, told, end = 0;
    int i, in_time = 0;

    nodes();
    setenv("REDLOCK_NODE_TIMEOUT", ".3", 1);
    setenv("REDLOCK_UNAVAILABLE_TIMEOUT", "60", 1); /* of the next holder */
    for (i = 0; i < TRIES && !in_time; i++) {
        run = start("run", "-t", "10", "x", "-c", job, NULL);
        ok(process(run, "daemon") != 0 && with_key("redlock:x") >= 2, "a job");
        waits = start("run", "x", "-c", next, NULL);
        expiry = hang_all("redlock:x");
        is_int(ends(&run), 79, "no node answers: 79");
        nobody_is_left("no node answers");
        ok(strstr(wrote(run, 'o'), "told\n") != NULL, "SIGTERM came first");
        ok(strstr(wrote(run, 'e'), "renewal failed: fewer than 2 of 3 nodes confirmed it; ") !=
                   NULL &&
               strstr(wrote(run, 'e'), "x: the lock was not renewed in time; the command is ended"),
           "the messages: %s", wrote(run, 'e'));
        wake_all();
        next_is_alone(&waits, "the nodes are back");
        read_beats(&told, &end);
        in_time = told > 0 && end < expiry;
        printf("# the last sign of the job is %lld ms before the lock expires\n", expiry - end);
    }
    ok(in_time, "the job was killed before the lock expired");
}

/* Helpers of the script that executes redlock leave daemons: before redlock starts; when redlock has the lock, and has not started its guard
   yet; later; and later, where the helper that lives has started another one. */
static const char helpers[] =
    "daemon() { (sh -c \"echo $1 \\$\\$; exec sleep 300\" &); }; daemon before; "
    "{ while [ ! -e \"$LISTED\" ]; do sleep .05; done; daemon during; } & "
    "{ " UNTIL_TOLD "daemon after; } & "
    "{ (" UNTIL_TOLD "daemon grandchild); exec sleep 300; } & echo helper $!; "
    "exec \"$P\" run -v -t 6 x env -u LD_PRELOAD sh -c \"$MANY\"";

static void daemons_of_strangers(void)
{
    static const char *const names[] = {"before", "during", "after", "grandchild", "helper"};
    struct program run;
    pid_t daemons[5], guard;
    int renewals, i;

    nodes();
    setup.instead = "sh";
    preload_shim();
    setenv("REDLOCK_FORK", "wait1", 1);
    run = start("-c", helpers, NULL);
    unsetenv("LD_PRELOAD");
    ok(until(with_key("redlock:x") >= 2, WAIT_MS), "redlock has the lock, and pauses");
    sleep_ms(500);
    close(open(getenv("LISTED"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    all_run(run);
    guard = parent_of(process(run, "shell")); /* redlock has other children, too */
    ok(is_called(guard, "rl-guard"), "the guard");
    tell();
    for (i = 0; i < 5; i++)
        ok((daemons[i] = process(run, names[i])) != 0, "a daemon, which was left %s", names[i]);
    renewals = count_of(wrote(run, 'e'), "x: renewed");
    ok(until(count_of(wrote(run, 'e'), "x: renewed") > renewals + 1, WAIT_MS), "two renewals");
    signal_to(guard, SIGKILL);
    is_int(ends(&run), 128 + SIGKILL, "the guard is killed");
    nobody_is_left("the guard is killed");
    for (i = 0; i < 5; i++) {
        ok(lives(daemons[i]), "not of the job, and alive: %s", names[i]);
        signal_to(daemons[i], SIGKILL);
    }
}

/* A child that redlock had before ends, and a process of the job gets its number. */
static void number_of_a_stranger(void)
{
    static const char job[] = "while kill -0 $S 2>/dev/null; do sleep .05; done; echo $((S-1)) "
                              ">/proc/sys/kernel/ns_last_pid; "
                              "sleep 300 & echo $! $S >\"$TELL\"; kill -9 $PPID; wait";
    static const char script[] =
        "sh -c 'sleep .5 & export S=$!; exec \"$P\" run x sh -c \"$JOB\"'; echo status $?; "
        "read reused S <\"$TELL\"; [ $reused = $S ] && echo reused; kill -0 $reused || echo killed";
    struct program run;

    nodes();
    setenv("JOB", job, 1);
    setup.instead = "unshare";
    if (redlock("-Urpf", "--mount-proc", "sh", "-c", "echo 100 >/proc/sys/kernel/ns_last_pid",
                NULL) != 0) {
        skip("setting the next process number of a PID namespace is not permitted");
        return;
    }
    setup.instead = "unshare";
    run = start("-Urpf", "--mount-proc", "sh", "-c", script, NULL);
    is_int(ends(&run), 0, "a PID namespace ends");
    ok(strstr(wrote(run, 'o'), "status 137\nreused\nkilled\n") != NULL,
       "a process of the job with the number of an earlier stranger is killed: %s",
       wrote(run, 'o'));
}

/* ---- Two faults: redlock and its guard are stopped and killed one after the other ---- */

/* Processes that only a subreaper finds: in a session of their own, without an environment, without a parent. */
static const char scattered[] = BEGIN
    "(setsid env -i sh -c 'echo daemon $$; exec sleep 300' &); "
    "setsid env -i sh -c '(sh -c \"echo orphan \\$\\$; exec sleep 300\" &); exec sleep 300' & "
    "wait";

enum { PAIR_SIGNALS = 3, BATCH = 5, LATE_MS = 500 };

/* Signals for redlock (positive) and for its guard (negative), in this order. */
static const int pairs[][PAIR_SIGNALS] = {
    {-SIGSTOP, SIGKILL}, {SIGSTOP, -SIGKILL},          {-SIGSTOP, SIGSTOP},
    {SIGSTOP, -SIGSTOP}, {-SIGSTOP, SIGSTOP, SIGKILL}, {SIGSTOP, -SIGSTOP, -SIGKILL},
};
enum { PAIRS = sizeof pairs / sizeof *pairs };

/* One job of a batch. Each has a lock and a witness of its own. */
struct victim {
    struct program run;
    char name[12], key[24];
    long free_ms,
        gone_ms; /* when the lock was free, and when the job was gone, by now_ms(); 0: not yet */
};

static void use_witness(const char *name)
{
    char file[30];

    snprintf(file, sizeof file, "witness.%s", name);
    set_path("WITNESS", file);
}

static void start_victim(struct victim *victim, unsigned number)
{
    memset(victim, 0, sizeof *victim);
    snprintf(victim->name, sizeof victim->name, "x%u", number);
    snprintf(victim->key, sizeof victim->key, "redlock:%s", victim->name);
    use_witness(victim->name);
    victim->run = start("run", "-t", "2", victim->name, "-c", scattered, NULL);
}

/* Looks until the lock of each job is free, and the job is gone, or has lived for ten times as long as it may. Returns how long this process was
   paused meanwhile, in ms: the jobs may have been paused, too. */
static long watch_victims(struct victim *victims)
{
    long end = now_ms() + 10000, before = now_ms(), pause = 0, now;
    unsigned i, open = BATCH;

    while (open > 0 && (now = now_ms()) < end) {
        pause = now - before > pause ? now - before : pause;
        before = now;
        for (open = i = 0; i < BATCH; i++) {
            use_witness(victims[i].name);
            if (victims[i].gone_ms == 0 && !is_witnessed())
                victims[i].gone_ms = now_ms();
            if (victims[i].free_ms == 0 && with_key(victims[i].key) < 2)
                victims[i].free_ms = now_ms();
            open += victims[i].free_ms == 0 ||
                    (victims[i].gone_ms == 0 && now < victims[i].free_ms + 10 * LATE_MS);
        }
        sleep_ms(5);
    }
    return pause;
}

/* Ends what is left of a job. Returns how long it has lived beyond its lock, in ms. */
static long end_victim(struct victim *victim, pid_t guard)
{
    long late = victim->gone_ms != 0 ? victim->gone_ms - victim->free_ms : 10 * LATE_MS;
    const char *const names[] = {"shell", "daemon", "orphan"};
    unsigned i;

    for (i = 0; victim->gone_ms == 0 && i < 3; i++)
        signal_to(process(victim->run, names[i]), SIGKILL);
    if (victim->gone_ms == 0) {
        signal_to(victim->run.pid, SIGKILL);
        signal_to(guard, SIGKILL);
    }
    ends(&victim->run);
    return late;
}

/* Returns by how much the last job of the batch was late, in ms, without what this machine was paused. */
static long stop_and_kill(const int *signals)
{
    struct victim victims[BATCH];
    pid_t guards[BATCH];
    long late, latest = -10000, pause;
    unsigned i, n;

    for (i = 0; i < BATCH; i++)
        start_victim(&victims[i], i);
    for (i = 0; i < BATCH; i++) {
        guards[i] = guard_of(victims[i].run);
        if (!process(victims[i].run, "shell") || !process(victims[i].run, "daemon") ||
            !process(victims[i].run, "orphan"))
            ok(0, "a job: %s", wrote(victims[i].run, 'e'));
    }
    for (i = 0; i < BATCH; i++)
        for (n = 0; n < PAIR_SIGNALS && signals[n] != 0; n++)
            signal_to(signals[n] > 0 ? victims[i].run.pid : guards[i], abs(signals[n]));
    pause = watch_victims(victims);
    for (i = 0; i < BATCH; i++) {
        late = end_victim(&victims[i], guards[i]);
        latest = late > latest ? late : latest;
    }
    return latest - (pause > 100 ? pause : 0);
}

static const char *signal_text(int number)
{
    static char text[PAIR_SIGNALS][40];
    static unsigned turn;
    char *to = text[turn++ % PAIR_SIGNALS];

    snprintf(to, sizeof *text, "%s%s",
             number == 0  ? ""
             : number > 0 ? ", redlock "
                          : ", guard ",
             number == 0              ? ""
             : abs(number) == SIGKILL ? "killed"
                                      : "stopped");
    return to;
}

static int rounds = BATCH; /* of each kind: the second argument of this program */

/* No process of the job lives for longer than LATE_MS when the lock is free, so that another client may have it. */
static void stops_and_kills(void)
{
    int kind, round;

    nodes();
    for (kind = 0; kind < PAIRS; kind++) {
        long late = -10000;
        for (round = 0; round < rounds; round += BATCH) {
            long last_one = stop_and_kill(pairs[kind]);
            late = last_one > late ? last_one : late;
        }
        ok(late < LATE_MS, "%d jobs%s%s%s: the last one was gone %ld ms after its lock", round,
           signal_text(pairs[kind][0]), signal_text(pairs[kind][1]), signal_text(pairs[kind][2]),
           late);
    }
}

/* The kernel has continued both at the deadline, and only then both are stopped, or redlock is stopped and the guard is killed: neither has
   acted yet. The kernel continues them again. */
static void stopped_after_the_deadline(void)
{
    static const char *const kinds[] = {"stoplate", "killlate"};
    static const char deaf[] = BEGIN "trap '' TERM; (setsid env -i sh -c 'echo daemon $$; exec "
                                     "sleep 300' &); exec sleep 300";
    struct program run;
    size_t i;

    nodes();
    for (i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        run = start_shimmed(kinds[i], "-t", "6", deaf);
        ok(process(run, "shell") != 0 && process(run, "daemon") != 0, "a job");
        release("x");
        is_int(ends(&run), 79, "%s: redlock ends: %s", kinds[i], wrote(run, 'e'));
        nobody_is_left(kinds[i]);
        signal_to(process(run, "shell"), SIGKILL);
        signal_to(process(run, "daemon"), SIGKILL);
    }
}

/* From now on the guard does not run, and does not die when it is killed, as in a frozen cgroup. Returns 0 if this is not permitted. */
static int freeze(pid_t guard)
{
    int status;

    return ptrace(PTRACE_SEIZE, guard, NULL, PTRACE_O_TRACEEXIT) == 0 &&
           ptrace(PTRACE_INTERRUPT, guard, NULL, NULL) == 0 &&
           waitpid(guard, &status, __WALL) == guard;
}

static void thaw(pid_t guard)
{
    int status, i;

    for (i = 0; i < 5 && waitpid(guard, &status, __WALL | WNOHANG) == guard && WIFSTOPPED(status);
         i++) {
        ptrace(PTRACE_CONT, guard, NULL, NULL);
        sleep_ms(20);
    }
}

/* The guard cannot die, and the nodes hang. In every second round redlock is stopped, too. The first time the guard is frozen until redlock
   has ended. */
static void guard_frozen(void)
{
    struct program run;
    long long expiry, gone;
    pid_t guard;
    int round;

    nodes();
    setenv("REDLOCK_NODE_TIMEOUT", ".3", 1);
    for (round = 0; round < rounds; round++) {
        run = start("run", "-t", "2", "x", "-c", scattered, NULL);
        guard = guard_of(run);
        ok(process(run, "shell") && process(run, "daemon") && process(run, "orphan"), "a job");
        if (!freeze(guard)) {
            skip("tracing a process is not permitted");
            return;
        }
        if (round % 2 == 1)
            signal_to(run.pid, SIGSTOP);
        expiry = hang_all("redlock:x");
        (void)until(!is_witnessed() || wall_ms() > expiry + 10 * LATE_MS, WAIT_MS);
        gone = wall_ms();
        ok(gone < expiry + LATE_MS, "the guard is frozen%s: the job is gone %lld ms after its lock",
           round % 2 == 1 ? ", and redlock is stopped" : "", gone - expiry);
        if (round > 0)
            thaw(guard);
        is_int(ends(&run), 79, "redlock ends: %s", wrote(run, 'e'));
        thaw(guard);
        wake_all();
    }
}

/* A job whose lock is lost has no more time than -k says, so redlock waits longer for a renewal: TERM comes 1 s and the time of the
   kill before D, not 5 s. */
static void lost_and_kill_after(void)
{
    struct program run;
    long long expiry = 0, told = 0, end = 0;
    int i, in_time = 0;

    nodes();
    setenv("REDLOCK_NODE_TIMEOUT", ".3", 1);
    for (i = 0; i < TRIES && !in_time; i++) {
        run = start("run", "-t", "30", "-k", "1", "x", "-c", BEATS, NULL);
        ok(process(run, "shell") != 0 && with_key("redlock:x") >= 2, "a job with -k 1");
        expiry = hang_all("redlock:x");
        is_int(ends(&run), 79, "no node answers: 79");
        wake_all();
        read_beats(&told, &end);
        in_time = told > 0 && expiry - told < 3000 && end - told < 3000 && end < expiry;
    }
    ok(in_time, "SIGTERM comes %lld ms before the lock expires, the last sign of the job %lld ms",
       expiry - told, expiry - end);
}

/* The lock is lost, and a message about it blocks, as stderr is on a disk that hangs. The job has its time between SIGTERM and SIGKILL
   all the same. There is one node, so that its answer is the loss. */
static void slow_stderr(void)
{
    static const char *const blocks[] = {" does not have the lock any more",
                                         "renewal failed: ", "the lock is lost: "};
    static const char job[] =
        "trap 'echo told; exit' TERM; echo shell $$; while :; do sleep .1; done";
    struct program run;
    size_t i;

    nodes();
    setenv("REDLOCK_NODES", servers[0].address, 1);
    for (i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        unlink(getenv("TELL"));
        preload_shim();
        setenv("REDLOCK_BLOCKS", blocks[i], 1);
        run = start("run", "-v", "-t", "30", "x", "env", "-u", "LD_PRELOAD", "sh", "-c", job, NULL);
        unsetenv("LD_PRELOAD");
        ok(process(run, "shell") != 0, "a job");
        release("x");
        ok(writes(run, 'o', "told\n"), "SIGTERM does not wait for the message \"%s\"", blocks[i]);
        ok(strstr(wrote(run, 'e'), blocks[i]) == NULL, "which is still blocked");
        tell();
        is_int(ends(&run), 79, "the lock is lost: 79");
        ok(strstr(wrote(run, 'e'), "x: the lock is lost: ") != NULL, "the message: %s",
           wrote(run, 'e'));
    }
}

static void keep_going(void)
{
    struct program run, killed;
    pid_t shell;

    nodes();
    run = start("run", "-t", "3", "--keep-going", "x", "-c", BEGIN UNTIL_TOLD "exit 5", NULL);
    killed = start("run", "--keep-going", "y", "-c", "echo shell $$; exec sleep 300", NULL);
    shell = process(killed, "shell");
    ok(process(run, "shell") != 0, "--keep-going: a job");
    release("x");
    ok(writes(run, 'e',
              "the lock is lost: it expired, or another client has it; the command goes "
              "on"),
       "the lock is lost: a message");
    sleep_ms(3500);
    ok(!has_ended(run) && is_witnessed(), "the command goes on, also when the ttl is over");
    tell();
    is_int(ends(&run), 79, "and ends: 79");
    signal_to(killed.pid, SIGKILL);
    is_int(ends(&killed), -SIGKILL, "redlock is killed");
    sleep_ms(1000);
    ok(lives(shell), "the command goes on");
    signal_to(shell, SIGKILL);
}

/* Preloads the shim. From now on the clocks of the programs are ahead by so many microseconds, 0 at first. */
static long long *begin_suspend(void)
{
    int fd = open(getenv("REDLOCK_SUSPENDED"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    long long *shift_us;

    if (fd < 0 || ftruncate(fd, sizeof *shift_us) != 0)
        exit(1);
    shift_us = mmap(NULL, sizeof *shift_us, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    preload_shim();
    return shift_us;
}

/* The system is suspended: its clock goes on, and no process runs. */
static void suspend(void)
{
    long long *shift_us = begin_suspend();
    struct program run;
    pid_t shell;
    long begin;

    nodes();
    run = start("run", "-t", "60", "x", "env", "-u", "LD_PRELOAD", "sh", "-c", many, NULL);
    unsetenv("LD_PRELOAD");
    all_run(run);
    shell = process(run, "shell");
    begin = now_ms();
    *shift_us = 100000000;
    is_int(ends(&run), 79, "a suspend of 100 s, with a ttl of 60 s: 79");
    ok(now_ms() - begin < 15000, "the job is ended at once (%ld ms)", now_ms() - begin);
    ok(!lives(shell), "the command is gone");
    nobody_is_left("after a suspend");
    ok(strstr(wrote(run, 'e'), "redlock did not run for ") != NULL, "redlock says why: %s",
       wrote(run, 'e'));
    ok(strstr(wrote(run, 'e'), "did not react") == NULL, "and does not blame the guard");
}

/* ---- The job ends ---- */

/* A signal ends the command. Nobody has told its child to end, and nobody has set a limit. */
static void command_killed(void)
{
    static const char script[] =
        BEGIN "sh -c 'trap \"echo told\" TERM; echo child $$; while [ ! -e \"$TELL\" ]; do sleep "
              ".05; done; echo clean' & wait";
    struct program run, waits;
    pid_t shell;

    nodes();
    run = start("run", "-t", "4", "x", "-c", script, NULL);
    shell = process(run, "shell");
    ok(process(run, "child") != 0, "a shell and its child");
    waits = start("run", "x", "-c", next, NULL);
    signal_to(shell, SIGKILL);
    ok(writes(run, 'o', "told\n"), "the shell is killed: its child gets SIGTERM");
    ok(writes(run, 'e', "; the lock is kept; -k sets a limit\n"), "after 5 s a message");
    ok(count_of(wrote(run, 'e'), "x: asked to end; ") == 1 &&
           count_of(wrote(run, 'e'), " left (") == 1,
       "names what is left: %s", wrote(run, 'e'));
    sleep_ms(2000);
    ok(!has_ended(run) && with_key("redlock:x") >= 2 && *wrote(waits, 'o') == '\0',
       "the lock is kept for longer than its ttl");
    tell();
    is_int(ends(&run), 128 + SIGKILL, "the child ends: 137");
    ok(strstr(wrote(run, 'o'), "clean\n") != NULL, "by itself");
    next_is_alone(&waits, "then");
}

/* The same program as the command, and behind a shell: it has the time that it needs. */
static void behind_a_shell(void)
{
    static const char slow[] = "sh -c 'trap \"sleep 7; echo clean; exit\" TERM; echo up; while :; "
                               "do sleep .1; done'";
    char behind[200];
    struct program direct, shell;

    nodes();
    snprintf(behind, sizeof behind, "%s; true", slow);
    direct = start("run", "x", "-c", slow, NULL);
    shell = start("run", "y", "-c", behind, NULL);
    ok(writes(direct, 'o', "up\n") && writes(shell, 'o', "up\n"), "both run");
    signal_to(direct.pid, SIGTERM);
    signal_to(shell.pid, SIGTERM);
    ends(&direct);
    is_int(ends(&shell), 128 + SIGTERM, "the shell ends by SIGTERM: 143");
    ok(strstr(wrote(direct, 'o'), "clean\n") && strstr(wrote(shell, 'o'), "clean\n"),
       "the program has 7 s in both cases");
}

/* The times in which this process ran, in ticks of 10 ms, and how often it has gone to sleep. */
struct work {
    long ticks, sleeps;
};

static struct work work_of(pid_t pid)
{
    struct work work = {0, 0};
    char path[40], line[1000];
    unsigned long user = 0, system = 0;
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    file = fopen(path, "r");
    if (file != NULL && fgets(line, sizeof line, file) != NULL)
        sscanf(strrchr(line, ')') + 1, " %*c %*d %*d %*d %*d %*d %*d %*d %*d %*d %*d %lu %lu",
               &user, &system);
    if (file != NULL)
        fclose(file);
    work.ticks = (long)(user + system);
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    file = fopen(path, "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        sscanf(line, "voluntary_ctxt_switches: %ld", &work.sleeps);
    if (file != NULL)
        fclose(file);
    return work;
}

/* Nobody looks for the end of a job that was asked to end: the kernel tells it. */
static void wait_costs_nothing(void)
{
    struct work before[2], after[2];
    struct program run;
    pid_t guard, child;

    nodes();
    run = start("run", "-t", "60", "x", "-c",
                BEGIN "sh -c 'trap \"\" TERM; echo child $$; read line; exec sleep 300' & wait",
                NULL);
    guard = guard_of(run);
    child = process(run, "child");
    ok(child != 0, "a shell and its child");
    signal_to(process(run, "shell"), SIGKILL);
    ok(until(child_of(guard, 0) == child, WAIT_MS), "the shell is killed, the child goes on");
    signal_to(child, SIGSTOP); /* the parent of a process that is stopped gets a signal */
    sleep_ms(1000);
    before[0] = work_of(run.pid);
    before[1] = work_of(guard);
    sleep_ms(3000);
    after[0] = work_of(run.pid);
    after[1] = work_of(guard);
    ok(after[0].sleeps + after[1].sleeps - before[0].sleeps - before[1].sleeps < 10,
       "redlock and its guard wake up %ld and %ld times in 3 s", after[0].sleeps - before[0].sleeps,
       after[1].sleeps - before[1].sleeps);
    ok(after[0].ticks + after[1].ticks - before[0].ticks - before[1].ticks < 10,
       "and run for %ld and %ld ticks", after[0].ticks - before[0].ticks,
       after[1].ticks - before[1].ticks);
    signal_to(child, SIGKILL);
    is_int(ends(&run), 128 + SIGKILL, "the child ends: 137");
}

/* -k is the time from the first SIGTERM to SIGKILL. It may be longer than the ttl. */
/* A ttl of 9 s is shorter than -k 12, and is not over where a busy machine renews the lock some seconds late. */
static void kill_after(void)
{
    struct program quick, longer;
    long begin;

    nodes();
    quick = start("run", "-t", "30", "-k", "2", "x", "-c", many, NULL);
    longer = start("run", "-t", "9", "-k", "12", "y", "-c",
                   "trap '' TERM; echo shell $$; while :; do sleep .1; done", NULL);
    all_run(quick);
    ok(process(longer, "shell") != 0, "a command that ignores SIGTERM");
    begin = now_ms();
    signal_to(longer.pid, SIGTERM);
    signal_to(quick.pid, SIGTERM);
    is_int(ends(&quick), 128 + SIGTERM, "-k 2: the shell ends by SIGTERM: 143");
    ok(now_ms() - begin >= 2000, "the rest has 2 s (%ld ms)", now_ms() - begin);
    nobody_is_left("-k 2");
    ok(strstr(wrote(quick, 'e'), "x: the job has not ended within 2.0 s: it is killed: ") != NULL,
       "the message names who was killed: %s", wrote(quick, 'e'));
    ok(writes(longer, 'e', "y: asked to end; "), "-k 12: after 5 s a message");
    ok(strstr(wrote(longer, 'e'), "; killed in ") != NULL, "has the time that is left");
    signal_to(longer.pid, SIGTERM);
    is_int(ends(&longer), 128 + SIGKILL, "-k 12, with a ttl of 9 s: 137");
    ok(now_ms() - begin >= 12000, "after 12 s (%ld ms)", now_ms() - begin);
    begin = now_ms();
    is_int(redlock("run", "-k", "60", "x", "-c", "exit 3", NULL), 3, "-k 60, with a ttl of 30 s");
}

/* Without -k the lock is kept, and the operator who sees no effect of SIGTERM is told why. */
static void term_ignored(void)
{
    struct program run;

    nodes();
    run = start("run", "x", "-c", "trap '' TERM; echo shell $$; " UNTIL_TOLD "exit 3", NULL);
    ok(process(run, "shell") != 0, "a command that ignores SIGTERM");
    signal_to(run.pid, SIGTERM);
    ok(writes(run, 'e', "x: asked to end; "), "a message after 5 s");
    ok(strstr(wrote(run, 'e'), " sh") != NULL, "names the command: %s", wrote(run, 'e'));
    ok(!has_ended(run), "the command goes on");
    tell();
    is_int(ends(&run), 3, "until it ends");
}

/* The lock is lost 3 s after SIGTERM. The message that is due after 5 s does not come: nobody keeps the lock for what is left. */
static void term_ignored_and_lost(void)
{
    struct program run;

    nodes();
    run = start("run", "-v", "-t", "30", "x", "-c",
                "trap '' TERM; echo shell $$; while :; do sleep .1; done", NULL);
    ok(process(run, "shell") != 0, "a command that ignores SIGTERM");
    ok(writes(run, 'e', "x: renewed"), "the next renewal is 10 s later");
    sleep_ms(7000);
    release("x");
    signal_to(run.pid, SIGTERM);
    is_int(ends(&run), 79, "the lock is lost when a message is due about a job that was asked: 79");
    ok(strstr(wrote(run, 'e'), "the lock is kept") == NULL, "it does not say that it is kept: %s",
       wrote(run, 'e'));
}

/* The message comes again every 30 s. They are skipped, as a suspend is. */
static void suspend_of_messages(void)
{
    long long *shift_us = begin_suspend();
    struct program run;

    nodes();
    run = start("run", "-t", "1h", "x", "env", "-u", "LD_PRELOAD", "sh", "-c",
                "trap '' TERM; echo shell $$; " UNTIL_TOLD "exit 3", NULL);
    unsetenv("LD_PRELOAD");
    ok(process(run, "shell") != 0, "a command that ignores SIGTERM");
    signal_to(run.pid, SIGTERM);
    ok(writes(run, 'e', "x: asked to end; "), "a message after 5 s");
    *shift_us = 20000000;
    sleep_ms(1000);
    is_int(count_of(wrote(run, 'e'), "x: asked to end; "), 1, "20 s later there is no other");
    *shift_us = 30000000;
    ok(until(count_of(wrote(run, 'e'), "x: asked to end; ") == 2, WAIT_MS), "30 s later there is");
    *shift_us = 60000000;
    ok(until(count_of(wrote(run, 'e'), "x: asked to end; ") == 3, WAIT_MS), "and again");
    tell();
    is_int(ends(&run), 3, "until it ends");
}

/* Whether the process has called exec with this program. */
static int executes(pid_t pid, const char *what)
{
    char path[40], name[20] = "";
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/comm", pid);
    file = fopen(path, "r");
    if (file != NULL) {
        (void)!fscanf(file, "%19s", name);
        fclose(file);
    }
    return strcmp(name, what) == 0;
}

/* A command that exits by itself ends the lock, whatever it leaves. */
static void left_behind(void)
{
    struct program run;
    char message[200];
    pid_t left;
    int early;

    nodes();
    run = start("run", "-t", "60", "x", "-c",
                "sh -c 'echo left $$; exec sleep 300' & while ! [ -e \"$TELL\" ]; do sleep .05; "
                "done; exit 4",
                NULL);
    left = process(run, "left");
    (void)until(executes(left, "sleep"), WAIT_MS);
    tell();
    is_int(ends(&run), 4, "the command exits: its status");
    ok(lives(left) && with_key("redlock:x") == 0, "a process that it has left lives on");
    snprintf(
        message, sizeof message,
        "redlock: x: the command has ended; 1 process of it goes on without the lock: %d sleep\n",
        left);
    ok(strcmp(wrote(run, 'e'), message) == 0, "a message names it: %s", wrote(run, 'e'));
    signal_to(left, SIGKILL);
    is_int(redlock("run", "-q", "x", "-c", "sleep 3 & exit 4", NULL), 4, "-q");
    ok(*wrote(last, 'e') == '\0', "no message");
    run = start("run", "--min-hold", "5", "x", "-c",
                "sleep 1 & echo short $!; sleep 60 & echo left $!", NULL);
    (void)until(!lives(process(run, "short")), WAIT_MS);
    sleep_ms(200);
    early =
        strstr(wrote(run, 'e'), "goes on without the lock") != NULL && with_key("redlock:x") > 0;
    ok(!early, "no message while --min-hold keeps the lock");
    left = process(run, "left");
    is_int(ends(&run), 0, "it is released");
    ok(writes(run, 'e', "1 process of it goes on without the lock"), "the message comes then");
    signal_to(left, SIGKILL);
}

/* The job gets no token, so a script that releases its own lock does not release the one around it. */
static void no_token(void)
{
    static const char step[] =
        "trap '\"$P\" release deploy' EXIT; token=$(\"$P\" acquire -t 60 -n deploy) || exit";
    struct program run;

    nodes();
    setenv("STEP", step, 1);
    run = start("run", "deploy", "-c",
                "sh -c \"$STEP\"; \"$P\" status deploy; env | grep REDLOCK_TOKEN; exit 5", NULL);
    is_int(ends(&run), 5, "a script with acquire and release inside of run");
    ok(strstr(wrote(run, 'o'), "deploy  held ") != NULL, "does not release the outer lock");
    ok(strstr(wrote(run, 'o'), "REDLOCK_TOKEN") == NULL, "the command has no token");
}

/* ---- Signals ---- */

static void signals(void)
{
    const int passed[] = {SIGUSR2, SIGALRM, SIGVTALRM,    SIGPROF,
                          SIGIO,   SIGPWR,  SIGRTMIN + 3, SIGWINCH};
    const int ending[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    struct program run;
    char line[20], script[300];
    size_t i;

    nodes();
    snprintf(script, sizeof script, "\"$SELF\" counter & exec \"$SELF\" counter");
    run = start("run", "-t", "4", "x", "-c", script, NULL);
    ok(until(count_of(wrote(run, 'o'), "counter ") == 2, WAIT_MS), "a command and its child");
    for (i = 0; i < sizeof passed / sizeof *passed; i++) {
        signal_to(run.pid, passed[i]);
        snprintf(line, sizeof line, "got %d\n", passed[i]);
        ok(writes(run, 'o', line), "signal %d reaches the command", passed[i]);
    }
    for (i = 0; i < sizeof ending / sizeof *ending; i++) {
        signal_to(run.pid, ending[i]);
        snprintf(line, sizeof line, "got %d\n", ending[i]);
        ok(until(count_of(wrote(run, 'o'), line) == 2, WAIT_MS),
           "signal %d reaches the command and its child", ending[i]);
    }
    signal_to(run.pid, SIGTTIN);
    signal_to(run.pid, SIGTTOU);
    sleep_ms(5000); /* longer than the ttl */
    for (i = 0; i < sizeof passed / sizeof *passed; i++) {
        snprintf(line, sizeof line, "got %d\n", passed[i]);
        is_int(count_of(wrote(run, 'o'), line), 1, "the command alone got signal %d, once",
               passed[i]);
    }
    ok(!has_ended(run) && with_key("redlock:x") >= 2,
       "TTIN and TTOU stop nothing: the lock is renewed");
    signal_to(run.pid, SIGUSR1);
    signal_to(run.pid, SIGKILL);
    ends(&run);
}

/* The guard has listed the job, to signal it, when the job starts one more process. That gets the signal, too; what a handler of the
   signal starts does not. */
static void started_meanwhile(void)
{
    struct program run;

    nodes();
    run =
        start_shimmed("list", "-t", "60",
                      "trap 'sh -c \"sleep 1; echo cleaned\"; exit 7' TERM; echo up; "
                      "while [ ! -e $LISTED ]; do sleep .02; done; sleep 300 & touch $TELL; wait");
    ok(writes(run, 'o', "up\n"), "a command that starts a process while the guard lists the job");
    signal_to(run.pid, SIGTERM);
    is_int(ends(&run), 7, "that process gets the signal, too, and the job ends");
    ok(strcmp(wrote(run, 'o'), "up\ncleaned\n") == 0,
       "what the handler has started does not get it: %s", wrote(run, 'o'));
}

/* The guard cannot list the processes: the system has no descriptor, or hides them. */
static void unseen_job(void)
{
    struct program run;

    nodes();
    run = start_shimmed("nofolder", "-t", "60",
                        "trap 'exit 7' TERM; echo up; while :; do sleep .05; done");
    ok(writes(run, 'o', "up\n"), "a job that the guard does not find");
    signal_to(run.pid, SIGTERM);
    is_int(ends(&run), 7, "its command gets the signal all the same");
}

/* The guard stops the job, to signal it. No process sees that its child has stopped: sudo and su would stop themselves. */
static void stops_unseen(void)
{
    struct program run;
    int i;

    nodes();
    for (i = 0; i < 5; i++) {
        run = start("run", "-t", "60", "x", self, "watcher", NULL);
        ok(writes(run, 'o', "up\n"), "eight processes, each the parent of the next one");
        signal_to(run.pid, SIGTERM);
        is_int(ends(&run), 4, "the last one ends, and so do the others");
        ok(strcmp(wrote(run, 'o'), "up\n") == 0, "none has seen that its child was stopped: %s",
           wrote(run, 'o'));
    }
}

/* The list of children that the system gives is longer than the buffer of the guard. No process but these gets SIGKILL. */
static void many_children(void)
{
    struct program run;

    nodes();
    run =
        start_shimmed("stray", "-k", "1",
                      "n=0; while [ $((n+=1)) -le 600 ]; do (trap '' HUP; exec sleep 300) & done; "
                      "echo up; wait");
    ok(writes(run, 'o', "up\n"), "a command with 600 children that ignore SIGHUP");
    signal_to(run.pid, SIGHUP);
    ok(writes(run, 'e', "the job has not ended within 1.0 s: it is killed"), "they are killed");
    is_int(ends(&run), 128 + SIGHUP, "all of them: the command had ended by SIGHUP");
    ok(access(getenv("STRAY"), F_OK) != 0, "and no other process");
}

/* The guard does not read for a while, so there is no room for more orders, when SIGTERM comes. */
static void many_signals(void)
{
    struct program run;
    int i;

    nodes();
    run = start_shimmed("list", "-t", "60", "trap '' HUP USR1; echo up; exec sleep 300");
    ok(writes(run, 'o', "up\n"), "a command that ignores SIGHUP and SIGUSR1");
    signal_to(run.pid, SIGHUP);
    ok(until(access(getenv("LISTED"), F_OK) == 0, WAIT_MS), "the guard does not read");
    for (i = 0; i < 4000; i++) {
        signal_to(run.pid, SIGUSR1);
        usleep(100);
    }
    signal_to(run.pid, SIGTERM);
    sleep_ms(100);
    tell();
    is_int(ends(&run), 128 + SIGTERM, "after thousands of signals SIGTERM ends the job");
}

/* Ctrl-C when the guard is there, and the command is not. */
static void interrupted_at_the_start(void)
{
    struct program run;
    int terminal;

    nodes();
    preload_shim();
    setenv("REDLOCK_FORK", "wait2", 1);
    run =
        start_on_terminal(&terminal, "run", "-t", "60", "x", "-c", "echo up; exec sleep 300", NULL);
    unsetenv("LD_PRELOAD");
    ok(until(child_of(run.pid, 0) != 0, WAIT_MS),
       "the guard, which pauses before it starts the command");
    type(terminal, "\003");
    is_int(ends(&run), -SIGINT, "Ctrl-C ends the command that begins then");
    close(terminal);
    preload_shim();
    run = start_on_terminal(&terminal, "run", "-t", "60", "x", "env", "-u", "LD_PRELOAD", self,
                            "counter", NULL);
    unsetenv("LD_PRELOAD");
    ok(until(child_of(run.pid, 0) != 0, WAIT_MS), "the guard, which pauses again");
    signal_to(run.pid, SIGSTOP);
    ok(strstr(screen(terminal, "counter "), "counter ") != NULL,
       "a command that begins while redlock does not run");
    type(terminal, "\003");
    ok(strstr(screen(terminal, "got 2"), "got 2") != NULL, "Ctrl-C reaches it");
    signal_to(run.pid, SIGCONT);
    ok(until(heard_signals(run.pid), WAIT_MS), "redlock goes on");
    signal_to(run.pid, SIGUSR2);
    ok(strstr(screen(terminal, "got 12"), "got 2") == NULL, "and does not repeat it");
    signal_to(run.pid, SIGUSR1);
    (void)ends(&run);
    close(terminal);
}

/* An alarm that the caller has set goes off in redlock, and reaches the command as it would without redlock. */
static void alarm_of_the_caller(void)
{
    nodes();
    setup.instead = "perl";
    is_int(redlock("-e", "alarm 2; exec @ARGV", program, "run", "x", "sleep", "300", NULL),
           128 + SIGALRM, "an alarm ends the command");
    setup.instead = "perl";
    is_int(redlock("-e", "alarm 1; exec @ARGV", program, "run", "x", "-c",
                   "trap 'exit 7' ALRM; while :; do sleep .1; done", NULL),
           7, "or it is handled there");
}

/* ---- The system denies a call ---- */

static void close_input(void)
{
    close(0);
}

/* Each call of these functions at the start fails once. The program says so with 71, or does without it; it does not hang. */
static void denied_calls(void)
{
    static const char *const functions[] = {"fcntl",      "pipe",         "prctl",
                                            "socketpair", "timer_create", "timer_settime"};
    enum { CALLS = 10 };
    char what[30];
    int status, call, denied;
    size_t i;

    nodes();
    for (i = 0; i < sizeof functions / sizeof *functions; i++) {
        for (denied = 0, call = 1; call <= CALLS; call++) {
            snprintf(what, sizeof what, "%s %d", functions[i], call);
            preload_shim();
            setenv("REDLOCK_DENIES", what, 1);
            status = redlock("run", "-t", "60", "x", "true", NULL);
            unsetenv("LD_PRELOAD");
            denied += status == 71;
            ok(status == 0 || (status == 71 && strncmp(wrote(last, 'e'), "redlock: ", 9) == 0 &&
                               strchr(wrote(last, 'e'), '\n') != NULL),
               "%s is denied: %d: %s", what, status, wrote(last, 'e'));
            ok(with_key("redlock:x") == 0, "the lock is released");
        }
        ok(denied > 0, "the program needs some of the calls of %s", functions[i]);
    }
    preload_shim();
    setenv("REDLOCK_DENIES", "open 1", 1);
    setup.before = close_input;
    is_int(redlock("run", "x", "true", NULL), 71,
           "a closed descriptor 0 that cannot be opened: 71");
    unsetenv("LD_PRELOAD");
    ok(strncmp(wrote(last, 'e'), "redlock: no descriptor: ", 24) == 0, "it says why: %s",
       wrote(last, 'e'));
}

/* ---- Pauses ---- */

/* redlock does not run for a while. The nodes are well, and no message says otherwise. */
static void pauses(void)
{
    struct program run;
    int i;

    nodes();
    for (i = 0; i < 3; i++) {
        run = start("run", "-v", "-t", "3", "x", "sleep", "3", NULL);
        ok(writes(run, 'e', "acquired on"), "a lock");
        sleep_ms(600);
        signal_to(run.pid, SIGSTOP);
        sleep_ms(650);
        signal_to(run.pid, SIGCONT);
        ends(&run);
        ok(strstr(wrote(run, 'e'), "renewal failed") == NULL, "a short pause: %s", wrote(run, 'e'));
    }
    run = start("run", "-v", "-t", "9", "x", "-c", UNTIL_TOLD "exit 4", NULL);
    ok(writes(run, 'e', "x: renewed"), "a lock that is renewed");
    signal_to(run.pid, SIGSTOP);
    sleep_ms(3500); /* longer than a third of the ttl: a renewal is due in this time */
    signal_to(run.pid, SIGCONT);
    ok(writes(run, 'e', "x: redlock did not run for "), "a pause of redlock is named");
    tell();
    is_int(ends(&run), 4, "the lock is renewed in time");
    ok(strstr(wrote(run, 'e'), "renewal failed") == NULL, "no message is about the nodes: %s",
       wrote(run, 'e'));
}

/* A renewal has failed when its nodes have had their time, so the message has a reason for each. */
static void reasons(void)
{
    struct program run;
    const char *at;
    unsigned i;

    nodes();
    setenv("REDLOCK_NODE_TIMEOUT", ".25", 1);
    run = start("run", "-t", "3", "x", "sleep", "300", NULL);
    ok(with_key("redlock:x") >= 2 || until(with_key("redlock:x") >= 2, WAIT_MS), "a lock");
    server_pause(&servers[0]);
    server_pause(&servers[1]);
    ok(writes(run, 'e', "x: renewal failed: "), "two of three nodes hang: a message");
    is_int(ends(&run), 79, "then the lock is lost");
    at = strstr(wrote(run, 'e'), "x: renewal failed: ");
    for (i = 0; i < 2; i++)
        ok(at != NULL && strstr(at, servers[i].address) != NULL &&
               strstr(at, servers[i].address) < strstr(at, "ended"),
           "the message has a reason for node %u: %s", i, at != NULL ? at : "");
    if (at != NULL)
        at = strchr(at, '\n') + 1;
    ok(at != NULL && strstr(at, " in time (250 ms)") != NULL &&
           strstr(at, " in time (250 ms)") - at < 60,
       "the first one is in the next line");
    server_resume(&servers[0]);
    server_resume(&servers[1]);
}

/* ---- Options that are gone ---- */

static void gone(void)
{
    static const struct {
        const char *verb, *option, *instead;
    } options[] = {
        {"run", "--foreground", "leave the option out"},
        {"run", "--new-group", "setsid"},
        {"run", "--signal=INT", "TERM"},
        {"run", "-s", "TERM"},
        {"run", "--on-lost=none", "--keep-going"},
        {"run", "--max-hold=5", "timeout"},
        {"run", "--no-guard", "guard"},
        {"run", "--status-fd=3", "redlock status --json"},
        {"run", "--preserve-status", "79"},
        {"run", "--also=y", "redlock run OTHER"},
        {"run", "-a", "redlock run OTHER"},
        {"run", "--unavailable-timeout=5", "REDLOCK_UNAVAILABLE_TIMEOUT"},
        {"acquire", "--unavailable-timeout=5", "REDLOCK_UNAVAILABLE_TIMEOUT"},
        {"status", "--auth-file=f", "configuration file"},
        {"acquire", "--sh", "token=$(redlock acquire"},
        {"acquire", "--json", "exit status"},
        {"release", "--json", "exit status"},
        {"check", "--read-only", "leave the option out"},
        {"check", "--strict", "the status 1"},
        {"check", "--nagios", "the first line"},
        {"check", "--prometheus", "redlock check --json"},
        {"check", "--clock-window=5", "leave the option out"},
    };
    static const char *const verbs[][2] = {{"extend", "choose a longer -t"},
                                           {"bench", "redlock check"},
                                           {"list", "redlock status"},
                                           {"held", "redlock status --mine NAME"}};
    char word[40];
    size_t i;

    nodes();
    for (i = 0; i < sizeof options / sizeof *options; i++) {
        is_int(redlock(options[i].verb, options[i].option, "x", "echo", "ran", NULL),
               strcmp(options[i].verb, "check") == 0 ? 3 : 64, "%s %s", options[i].verb,
               options[i].option);
        snprintf(word, sizeof word, "redlock: %.*s is gone: ", (int)strcspn(options[i].option, "="),
                 options[i].option);
        ok(strncmp(wrote(last, 'e'), word, strlen(word)) == 0 &&
               strstr(wrote(last, 'e'), options[i].instead) != NULL &&
               (*wrote(last, 'o') != '\0') == (strcmp(options[i].verb, "check") == 0),
           "says what to use: %s", wrote(last, 'e'));
    }
    is_int(redlock("acquire", "--max-hold=5", "-t", "5", "x", NULL), 64, "not of this verb");
    ok(strstr(wrote(last, 'e'), "no such option of acquire") != NULL, "says so");
    for (i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        is_int(redlock(verbs[i][0], "x", NULL), 64, "%s", verbs[i][0]);
        snprintf(word, sizeof word, "redlock: %s is gone: %s", verbs[i][0], verbs[i][1]);
        ok(strncmp(wrote(last, 'e'), word, strlen(word)) == 0, "says what to use: %s",
           wrote(last, 'e'));
    }
}

/* ---- Terminals ---- */

/* A shell with job control, on a terminal that does not show what is typed. */
static struct program shell(const char *name, int *terminal)
{
    int is_bash = strcmp(name, "bash") == 0;
    struct program run;

    setup.instead = name;
    run = is_bash ? start_on_terminal(terminal, "--norc", "--noprofile", "--noediting", "-im", NULL)
                  : start_on_terminal(terminal, "-im", NULL);
    type(*terminal, "stty -echo; PS1=; echo ready$((1+1))\n");
    ok(strstr(screen(*terminal, "ready2"), "ready2") != NULL, "%s on a terminal", name);
    return run;
}

static void leave(struct program *run, int terminal)
{
    type(terminal, "exit 0\n");
    is_int(ends(run), 0, "the shell ends");
    close(terminal);
}

static void pipelines(void)
{
    struct program run;
    int terminal;

    nodes();
    run = shell("bash", &terminal);
    type(terminal, "echo one | $P run x -c 'read a; echo got-$a; echo two' | sed s/two/three/\n");
    ok(strstr(screen(terminal, "three"), "got-one") != NULL, "in the middle of a pipeline");
    type(terminal, "$P run x -c 'echo up; exec sleep 300' | cat\n");
    ok(strstr(screen(terminal, "up"), "up") != NULL, "at its beginning");
    type(terminal, "\003");
    type(terminal, "echo end ${PIPESTATUS[0]}\n");
    ok(strstr(screen(terminal, "end 130"), "end 130") != NULL, "Ctrl-C ends the pipeline");
    nobody_is_left("then");
    leave(&run, terminal);
}

/* The shell says that a job is stopped. It does so before it reads the next line. */
static int is_stopped_job(int terminal)
{
    type(terminal, "jobs; echo all$((1+1))\n");
    return strstr(screen(terminal, "all2"), "topped") != NULL;
}

static void stop_and_continue_in(const char *name)
{
    int terminal;
    struct program run = shell(name, &terminal);
    pid_t own, command;
    const char *at;

    type(terminal, "$P run -t 60 x -c 'echo up $$.; read a; echo got-$a; sleep 2; echo done'\n");
    at = strstr(screen(terminal, "."), "up ");
    command = at != NULL ? atoi(at + 3) : 0;
    ok(command != 0, "a job in the foreground");
    type(terminal, "\032");
    ok(strstr(screen(terminal, "topped"), "topped") != NULL, "Ctrl-Z stops it");
    ok(until(is_stopped(command), WAIT_MS), "also the command, which would read what is typed");
    type(terminal, "echo so$((1+1)); bg\n");
    ok(strstr(screen(terminal, "so2"), "so2") != NULL, "the shell reads again");
    own = tcgetpgrp(terminal); /* the group of the shell */
    ok(until(is_stopped_job(terminal), WAIT_MS),
       "bg: it reads, and the shell shows that it is stopped");
    type(terminal, "fg\n");
    ok(until(tcgetpgrp(terminal) != own, WAIT_MS), "fg");
    type(terminal, "one\n");
    ok(strstr(screen(terminal, "got-one"), "got-one") != NULL, "fg: it reads");
    ok(strstr(screen(terminal, "done"), "done") != NULL, "and ends");
    type(terminal, "$P run -t 60 x -c 'stty sane; echo changed' &\n");
    ok(until(is_stopped_job(terminal), WAIT_MS),
       "a job that changes the terminal in the background is stopped, too");
    type(terminal, "fg\n");
    ok(strstr(screen(terminal, "changed"), "changed") != NULL, "fg: it changes the terminal");
    leave(&run, terminal);
}

static void stop_and_continue(void)
{
    nodes();
    stop_and_continue_in("bash");
    stop_and_continue_in("sh");
}

/* Ctrl-Z, and nobody continues the job before its lock expires. */
static void stopped_for_too_long(void)
{
    struct program run;
    int terminal;

    nodes();
    run = shell("bash", &terminal);
    type(terminal, "$P run -t 2 x -c 'echo up; exec sleep 300'\n");
    ok(strstr(screen(terminal, "up"), "up") != NULL, "a job in the foreground");
    type(terminal, "\032");
    ok(strstr(screen(terminal, "topped"), "topped") != NULL, "Ctrl-Z stops it");
    ok(strstr(screen(terminal, "the command "), "redlock did not run for ") != NULL,
       "redlock is continued before the lock expires, and says so");
    type(terminal, "sleep .5; jobs\n");
    ok(strstr(screen(terminal, "Exit 79"), "Exit 79") != NULL, "the shell shows status 79");
    leave(&run, terminal);
}

/* Ctrl-Z when the guard is there, and the command is not. */
static void ctrl_z_at_the_start(void)
{
    struct program run;
    int terminal;
    pid_t redlock, guard, command;

    nodes();
    preload_shim();
    setenv("SHIM", getenv("LD_PRELOAD"), 1);
    unsetenv("LD_PRELOAD");
    run = shell("bash", &terminal);
    type(terminal, "REDLOCK_FORK=wait2 LD_PRELOAD=$SHIM $P run -t 60 x env -u LD_PRELOAD sh -c "
                   "'" UNTIL_TOLD "echo told'\n");
    ok(until((redlock = child_of(run.pid, 0)) != 0, WAIT_MS), "redlock");
    ok(until((guard = child_of(redlock, 0)) != 0, WAIT_MS), "its guard, which pauses");
    type(terminal, "\032");
    ok(strstr(screen(terminal, "topped"), "topped") != NULL, "Ctrl-Z stops redlock");
    ok(until((command = child_of(guard, 0)) != 0, WAIT_MS), "the command begins");
    ok(until(is_stopped(command), WAIT_MS), "and is stopped, too");
    type(terminal, "fg\n");
    ok(until(!is_stopped(command) && !is_stopped(redlock), WAIT_MS), "fg continues both");
    tell();
    ok(strstr(screen(terminal, "told"), "told") != NULL, "the command ends");
    leave(&run, terminal);
}

/* Ctrl-C ends the command. Its child has got it, too, and cleans up: it gets no second signal, and the lock is kept. */
static void interrupted(void)
{
    struct program run;
    const char *at;
    pid_t child;
    int terminal, i;

    nodes();
    for (i = 0; i < 5; i++) {
        run = start_on_terminal(&terminal, "run", "x", "-c",
                                "\"$SELF\" counter & echo up.; exec sleep 300", NULL);
        at = strstr(screen(terminal, "up."), "counter ");
        if (at == NULL) /* the child is slower than the shell */
            at = strstr(screen(terminal, "counter "), "counter ");
        child = at != NULL ? atoi(at + 8) : 0;
        ok(child != 0, "a command and its child");
        sleep_ms(300);
        type(terminal, "\003");
        ok(strstr(screen(terminal, "got 2"), "got 2") != NULL, "Ctrl-C reaches the child");
        sleep_ms(1000);
        ok(!has_ended(run) && with_key("redlock:x") >= 2, "the lock is kept");
        signal_to(child, SIGALRM);
        ok(strstr(screen(terminal, "got 14"), "got 15") == NULL, "it gets no SIGTERM");
        signal_to(child, SIGUSR1);
        is_int(ends(&run), -SIGINT, "redlock ends by SIGINT");
        close(terminal);
    }
}

/* An interactive shell as the command: Ctrl-C is for it, and is no end of the job. */
static void inner_shell(void)
{
    struct program run;
    int terminal;

    nodes();
    run = shell("bash", &terminal);
    type(terminal, "$P run -k 1 -t 60 x bash --norc --noprofile -i; echo end $?\n");
    type(terminal, "echo in$((1+1))\n");
    ok(strstr(screen(terminal, "in2"), "in2") != NULL, "a shell as the command");
    type(terminal, "sh -c 'echo one$((1+1)); exec sleep 300'\n");
    ok(strstr(screen(terminal, "one2"), "one2") != NULL, "a command of it, in the foreground");
    type(terminal, "\003");
    sleep_ms(2500);
    type(terminal, "echo still$((1+1))\n");
    ok(strstr(screen(terminal, "still2"), "still2") != NULL,
       "Ctrl-C ends the shell's command, not the shell, and -k sets it no limit");
    type(terminal, "sh -c 'echo two$((1+1)); exec sleep 300'\n");
    ok(strstr(screen(terminal, "two2"), "two2") != NULL, "another one");
    type(terminal, "\032");
    ok(strstr(screen(terminal, "Stopped"), "Stopped") != NULL, "Ctrl-Z is for its command, too");
    type(terminal, "kill -KILL %1; sleep .5; exit 3\n");
    ok(strstr(screen(terminal, "end 3"), "end 3") != NULL, "its status");
    leave(&run, terminal);
}

/* ---- Where the system has no subreapers ---- */

/* The program of such a system stands beside the other one: no process of the job is found by descent. */
static void plain(void)
{
    static const char group[] =
        BEGIN "sh -c 'echo child $$; exec sleep 300' & "
              "sh -c 'trap \"echo told\" TERM; echo deaf $$; while :; do sleep .1; done' & wait";
    char path[300];
    struct program run, waits;
    int terminal;

    nodes();
    snprintf(path, sizeof path, "%.*s/redlock-plain", (int)(strrchr(self, '/') - self), self);
    programs_use(path);
    setenv("P", path, 1);
    is_int(redlock("run", "x", "-c", "exit 7", NULL), 7, "the command's status");
    is_int(redlock("run", "x", "-c", "kill -KILL $$", NULL), 137, "128 + the command's signal");
    is_int(redlock("run", "x", "no-such-command", NULL), 127, "not found");

    run = start("run", "-t", "5", "x", "-c", group, NULL);
    ok(process(run, "child") != 0 && process(run, "deaf") != 0, "a process group");
    waits = start("run", "x", "-c", next, NULL);
    signal_to(run.pid, SIGKILL);
    is_int(ends(&run), -SIGKILL, "redlock is killed");
    /* A process that nobody has waited for counts as one that lives: then it does not say that the job was killed. */
    ok(writes(run, 'e', "redlock is gone"), "the guard says so");
    nobody_is_left("redlock is killed");
    next_is_alone(&waits, "redlock is killed");

    run = start("run", "-t", "60", "x", "-c", group, NULL);
    ok(process(run, "child") != 0 && process(run, "deaf") != 0, "a process group");
    signal_to(guard_of(run), SIGKILL);
    is_int(ends(&run), 128 + SIGKILL, "the guard is killed: 137");
    nobody_is_left("the guard is killed");

    run = start("run", "-t", "10", "x", "-c", group, NULL);
    ok(process(run, "child") != 0 && process(run, "deaf") != 0, "a process group");
    waits = start("run", "x", "-c", next, NULL);
    signal_to(run.pid, SIGSTOP);
    next_is_alone(&waits, "redlock is stopped");
    signal_to(run.pid, SIGCONT);
    is_int(ends(&run), 79, "redlock goes on: 79");

    run = start("run", "-k", "7", "x", "-c", group, NULL);
    ok(process(run, "child") != 0 && process(run, "deaf") != 0, "a process group");
    signal_to(process(run, "shell"), SIGKILL);
    ok(writes(run, 'o', "told\n"), "the command is killed: the rest gets SIGTERM");
    ok(writes(run, 'e', "x: asked to end, and not all of the job has ended; killed in "),
       "after 5 s a message");
    is_int(ends(&run), 128 + SIGKILL, "-k is the limit: 137");
    nobody_is_left("-k is over");

    setenv("REDLOCK_NODE_TIMEOUT", "1", 1);
    run = start_on_terminal(&terminal, "run", "x", "-c", "echo shell $$; read a; exit 5", NULL);
    ok(strstr(screen(terminal, "shell"), "shell") != NULL, "on a terminal");
    type(terminal, "one\n");
    is_int(ends(&run), 5, "the command reads from the terminal");
    close(terminal);
}

/* The /proc of another PID namespace tells nothing: its numbers are those of other processes. */
static void foreign_proc(void)
{
    static const char job[] =
        BEGIN "sh -c 'trap \"\" TERM; echo child $$; while :; do sleep .1; done' & sleep 1; kill "
              "$REDLOCK_HOLDER_PID; wait";
    struct program run;

    nodes();
    setenv("JOB", job, 1);
    setup.instead = "unshare";
    if (redlock("-Urpf", "true", NULL) != 0) {
        skip("creating a PID namespace is not permitted");
        return;
    }
    setup.instead = "unshare";
    run = start("-Urpf", "sh", "-c",
                "sleep 300 & \"$P\" run -k 1 x -c \"$JOB\"; echo status $?; flock -n \"$WITNESS\" "
                "echo none; kill -0 $! && echo alive",
                NULL);
    ok(writes(run, 'o', "status 143\n"),
       "asked to end in a PID namespace with a foreign /proc: 143");
    is_int(ends(&run), 0, "it ends");
    ok(strstr(wrote(run, 'o'), "none\nalive\n") != NULL,
       "no process of the job is left then, and another one is: %s", wrote(run, 'o'));
    setup.instead = "unshare";
    /* The search for leaks starts a process, and none can be started there. */
    setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
    is_int(redlock("-Urp", program, "run", "x", "true", NULL), 71,
           "only the children would be in a PID namespace: 71");
    ok(strstr(wrote(last, 'e'), "unshare --pid needs --fork") != NULL, "it says why: %s",
       wrote(last, 'e'));
}

/* A process that /proc does not show, behind a shell. */
static void hidden_processes(void)
{
    static const char inner[] =
        "mount -t proc -o hidepid=2 proc /proc && exec setpriv --reuid 65534 --regid 65534 "
        "--clear-groups \"$P\" run -t 60 x sh -c '\"$SELF\" hidden; true'";
    char copy[2][140], command[500];
    struct program run;
    pid_t redlock_pid;

    nodes();
    snprintf(copy[0], sizeof *copy, "%s/program", programs_folder());
    snprintf(copy[1], sizeof *copy, "%s/self", programs_folder());
    snprintf(command, sizeof command, "cp '%s' '%s' && cp '%s' '%s' && chmod 755 '%s'", program,
             copy[0], self, copy[1], programs_folder());
    setup.instead = "sh";
    is_int(redlock("-c", command, NULL), 0, "copies of the programs, for another user");
    setenv("P", copy[0], 1);
    setenv("SELF", copy[1], 1);
    setup.instead = "unshare";
    if (getuid() != 0 ||
        redlock("-mpf", "--kill-child", "sh", "-c",
                "mount -t proc -o hidepid=2 proc /proc && exec setpriv --reuid 65534 "
                "--regid 65534 --clear-groups true",
                NULL) != 0) {
        skip("mounting /proc with hidepid is not permitted");
        return;
    }
    setup.instead = "unshare";
    run = start("-mpf", "--kill-child", "sh", "-c", inner, NULL);
    ok(process(run, "counter") != 0, "a hidden process behind a shell: %s", wrote(run, 'e'));
    redlock_pid = child_of(run.pid, 0);
    signal_to(redlock_pid, SIGTERM);
    ok(writes(run, 'o', "got 15\n"), "it gets SIGTERM");
    ok(writes(run, 'e', "x: asked to end; 1 process is left ("), "a message counts it: %s",
       wrote(run, 'e'));
    signal_to(redlock_pid, SIGKILL);
    ends(&run);
}

/* ---- Kills and stops at random ---- */

static unsigned dice(unsigned most)
{
    return (unsigned)rand() % most;
}

static char last_hit[40]; /* what hit() did */

/* Signals one of: redlock, the guard, the command, another process of the job. Returns whom it has stopped; 0: nobody. */
static pid_t hit(struct program run)
{
    static const char *const names[] = {"shell", "child", "daemon", "deaf", "orphan"};
    static const int numbers[] = {SIGKILL, SIGKILL, SIGSTOP, SIGTERM};
    int number = numbers[dice(4)];
    unsigned whom = dice(8);
    pid_t pid = whom < 2 ? run.pid : whom < 4 ? guard_of(run) : process(run, names[dice(5)]);

    snprintf(last_hit, sizeof last_hit, "signal %d to %s", number,
             whom < 2   ? "redlock"
             : whom < 4 ? "guard"
                        : "the job");
    printf("# %s\n", last_hit);
    signal_to(pid, number);
    return number == SIGSTOP ? pid : 0;
}

/* Jobs, one after the other. Each is hit, and then asked to end; meanwhile the next one waits for its lock. make test-cli hits 60
   jobs, of three builds. A job is killed a twentieth of the ttl before the lock expires: that must be enough on a busy machine. */
static void kills(void)
{
    enum { ROUNDS = 20 };
    unsigned seed = (unsigned)time(NULL);
    struct program run, waits;
    int round, overlaps = 0, overlapped, begun = 0;
    pid_t stopped;

    nodes();
    srand(seed);
    printf("# seed %u\n", seed);
    run = start("run", "-t", "12", "-k", "1", "x", "-c", many, NULL);
    for (round = 0; round < ROUNDS; round++) {
        if (process(run, "deaf") == 0 || process(run, "orphan") == 0)
            break;
        begun++;
        waits = start("run", "-t", "12", "-k", "1", "x", "-c", many, NULL);
        sleep_ms((long)dice(200));
        stopped = hit(run);
        sleep_ms((long)dice(500));
        signal_to(run.pid, SIGTERM);
        ok(process(waits, "shell") != 0, "round %d: the next job begins", round);
        signal_to(stopped, SIGCONT);
        ends(&run);
        overlapped = strstr(wrote(waits, 'o'), "overlap") != NULL;
        overlaps += overlapped;
        if (overlapped)
            fprintf(stderr, "# after %s a process was left\n%s%s", last_hit, wrote(run, 'e'),
                    wrote(waits, 'e'));
        run = waits;
    }
    signal_to(run.pid, SIGTERM);
    ends(&run);
    is_int(begun, ROUNDS, "as many jobs were hit");
    is_int(overlaps, 0, "no process of a job was left when the next one began");
    nobody_is_left("then");
}

static const struct scenario {
    const char *name;
    void (*run)(void);
} scenarios[] = {
    /* slow scenarios first */
    {"kills", kills},
    {"stops_and_kills", stops_and_kills},
    {"plain", plain},
    {"pauses", pauses},
    {"kill_after", kill_after},
    {"behind_a_shell", behind_a_shell},
    {"command_killed", command_killed},
    {"term_ignored", term_ignored},
    {"term_ignored_and_lost", term_ignored_and_lost},
    {"suspend_of_messages", suspend_of_messages},
    {"wait_costs_nothing", wait_costs_nothing},
    {"signals", signals},
    {"started_meanwhile", started_meanwhile},
    {"unseen_job", unseen_job},
    {"stops_unseen", stops_unseen},
    {"many_children", many_children},
    {"many_signals", many_signals},
    {"interrupted_at_the_start", interrupted_at_the_start},
    {"alarm_of_the_caller", alarm_of_the_caller},
    {"redlock_killed", redlock_killed},
    {"guard_killed", guard_killed},
    {"redlock_stopped", redlock_stopped},
    {"redlock_stopped_and_nodes_hang", redlock_stopped_and_nodes_hang},
    {"redlock_stopped_at_the_start", redlock_stopped_at_the_start},
    {"redlock_stopped_early", redlock_stopped_early},
    {"guard_stopped", guard_stopped},
    {"guard_stopped_early_or_late", guard_stopped_early_or_late},
    {"guard_hangs", guard_hangs},
    {"stopped_after_the_deadline", stopped_after_the_deadline},
    {"guard_frozen", guard_frozen},
    {"denied_calls", denied_calls},
    {"both_killed", both_killed},
    {"unrelated_process", unrelated_process},
    {"strangers", strangers},
    {"daemons_of_strangers", daemons_of_strangers},
    {"number_of_a_stranger", number_of_a_stranger},
    {"guard_killed_without_descriptors", guard_killed_without_descriptors},
    {"hidden_processes", hidden_processes},
    {"lock_lost", lock_lost},
    {"lock_expires", lock_expires},
    {"lost_and_kill_after", lost_and_kill_after},
    {"slow_stderr", slow_stderr},
    {"keep_going", keep_going},
    {"suspend", suspend},
    {"foreign_proc", foreign_proc},
    {"left_behind", left_behind},
    {"no_token", no_token},
    {"reasons", reasons},
    {"gone", gone},
    {"pipelines", pipelines},
    {"stop_and_continue", stop_and_continue},
    {"ctrl_z_at_the_start", ctrl_z_at_the_start},
    {"stopped_for_too_long", stopped_for_too_long},
    {"inner_shell", inner_shell},
    {"interrupted", interrupted},
};
enum { SCENARIOS = sizeof scenarios / sizeof *scenarios };

/* How many descendants of the test are left, besides the servers. The test adopts orphans. */
static int strays(void)
{
    unsigned i;
    int count;
    pid_t pid;

    for (i = 0; i < NODES; i++)
        server_kill(&servers[i]);
    for (count = 0; count < 9 && !until((pid = child_of(getpid(), 0)) == 0, 30000); count++)
        signal_to(pid, SIGKILL);
    return count;
}

/* What the scenarios' scripts use. */
static void set_environment(void)
{
    setenv("REDLOCK_NODE_TIMEOUT", "3", 1); /* the machine may be paused for a second */
    setenv("REDLOCK_CONFIG", "/dev/null", 1);
    unsetenv("JOURNAL_STREAM");
    setenv("P", program, 1);
    setenv("SELF", self, 1);
    setenv("MANY", many, 1);
    set_path("WITNESS", "witness");
    set_path("TELL", "tell");
    set_path("LISTED", "listed");
    set_path("STRAY", "stray");
    set_path("BEATS", "beats");
    set_path("REDLOCK_SUSPENDED", "suspended");
}

int main(int count, char **arguments)
{
    size_t i;

    self = arguments[0];
    if (count > 1 && strcmp(arguments[1], "chain") == 0)
        return be_a_chain();
    if (count > 1 && strcmp(arguments[1], "counter") == 0)
        return be_a_counter();
    if (count > 1 && strcmp(arguments[1], "hidden") == 0)
        return be_hidden();
    if (count > 1 && strcmp(arguments[1], "watcher") == 0)
        return be_a_watcher();
    for (i = 0; i < SCENARIOS && count < 2; i++)
        printf("%s\n", scenarios[i].name);
    if (count < 2)
        return 0;
    program = getenv("REDLOCK") != NULL ? getenv("REDLOCK") : "build/redlock";
    if (count > 2)
        rounds = atoi(arguments[2]);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    programs_begin(program);
    set_environment();
    for (i = 0; i < SCENARIOS && strcmp(scenarios[i].name, arguments[1]) != 0; i++)
        continue;
    if (i == SCENARIOS) {
        fprintf(stderr, "job_test: no such scenario: %s\n", arguments[1]);
        return 1;
    }
    scenarios[i].run();
    is_int(strays(), 0, "no process is left");
    return done_testing();
}
