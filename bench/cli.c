/* cli.c - what the program costs: how long `redlock run` takes from its start to the lock, the memory of one that
   holds a lock, its size. On five real servers, for each program named; then the limits that we set ourselves.
   Build: make cli-figures

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "figures.h"
#include "servers.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SERVERS = 5, RUNS = 200, STATUS_FD = 3, START_LIMIT_US = 5000, MEMORY_LIMIT_KB = 2048 };

static char nodes[SERVERS * 40];

static void give_up(const char *what)
{
    perror(what);
    exit(1);
}

/* Starts `redlock run` with this command. *events: where its events can be read. */
static pid_t start(const char *program, const char *command, const char *word, int *events)
{
    int line[2];
    pid_t pid;

    fflush(stdout);
    if (pipe(line) != 0 || (pid = fork()) < 0)
        give_up("fork");
    if (pid == 0) {
        if (line[1] != STATUS_FD) {
            dup2(line[1], STATUS_FD);
            close(line[1]);
        }
        if (line[0] != STATUS_FD)
            close(line[0]);
        execl(program, "redlock", "run", "-N", nodes, "--status-fd", "3", "figures", command, word,
              (char *)NULL);
        give_up(program);
    }
    close(line[1]);
    *events = line[0];
    return pid;
}

/* The next event begins with "acquired". */
static void expect_acquired(int events)
{
    struct pollfd fd = {events, POLLIN, 0};
    char text[200] = "";

    if (poll(&fd, 1, 10000) != 1 || read(events, text, sizeof text - 1) <= 0 ||
        strncmp(text, "acquired ", 9) != 0) {
        fprintf(stderr, "cli: no lock: %s\n", text);
        exit(1);
    }
}

static void wait_for_end(pid_t pid, int want)
{
    int status;

    if (waitpid(pid, &status, 0) != pid || (want >= 0 && status != want)) {
        fprintf(stderr, "cli: ended with %x\n", (unsigned)status);
        exit(1);
    }
}

static double measure_start(const char *program)
{
    static double lock_us[RUNS], end_us[RUNS];
    unsigned i;
    int events;

    for (i = 0; i < RUNS; i++) {
        double begin = now_us();
        pid_t pid = start(program, "true", NULL, &events);
        expect_acquired(events);
        lock_us[i] = now_us() - begin;
        wait_for_end(pid, 0);
        end_us[i] = now_us() - begin;
        close(events);
    }
    printf("  start to lock        %8.2f ms in the median, 99 %%: %.2f; to the end of `run true`: "
           "%.2f\n",
           quantile(lock_us, RUNS, 0.5) / 1e3, quantile(lock_us, RUNS, 0.99) / 1e3,
           quantile(end_us, RUNS, 0.5) / 1e3);
    return quantile(lock_us, RUNS, 0.5);
}

/* A line of /proc/PID/status: kilobytes. 0: there is none. */
static long status_kb(long pid, const char *field)
{
    char path[64], line[200];
    long kb = 0;
    FILE *file;

    snprintf(path, sizeof path, "/proc/%ld/status", pid);
    if ((file = fopen(path, "r")) == NULL)
        return 0;
    while (fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, field, strlen(field)) == 0)
            kb = atol(line + strlen(field));
    fclose(file);
    return kb;
}

/* Of one that has held the lock for a while: itself, and its guard, the last of its children. */
static long measure_memory(const char *program)
{
    char path[64];
    long child[2] = {0, 0}, most = 0, pids[2];
    FILE *file;
    unsigned i;
    int events;
    pid_t pid = start(program, "sleep", "100", &events);

    expect_acquired(events);
    sleep_ms(300);
    snprintf(path, sizeof path, "/proc/%ld/task/%ld/children", (long)pid, (long)pid);
    if ((file = fopen(path, "r")) == NULL || fscanf(file, "%ld %ld", &child[0], &child[1]) != 2)
        give_up(path);
    fclose(file);
    pids[0] = pid;
    pids[1] = child[1];
    for (i = 0; i < 2; i++) {
        long kb = status_kb(pids[i], "VmHWM:");
        printf("  memory, %-12s %8ld kB resident, at most %ld; private of that %ld\n",
               i == 0 ? "supervisor" : "guard", status_kb(pids[i], "VmRSS:"), kb,
               status_kb(pids[i], "RssAnon:"));
        most = kb > most ? kb : most;
    }
    kill(pid, SIGTERM);
    wait_for_end(pid, -1);
    close(events);
    return most;
}

static void gate(const char *what, double value, double limit)
{
    printf("    %-18s %8.0f %s %.0f\n", what, value, value <= limit ? "<=" : "> MISSED:", limit);
}

int main(int argc, char **argv)
{
    static struct server servers[SERVERS]; /* ended after main */
    struct stat status;
    size_t used = 0;
    unsigned i;
    int program;

    servers_start(servers, SERVERS, NULL);
    for (i = 0; i < SERVERS; i++)
        used += (size_t)snprintf(nodes + used, sizeof nodes - used, "%s,", servers[i].address);
    for (program = 1; program < argc; program++) {
        double start_us;
        long memory_kb;
        if (stat(argv[program], &status) != 0)
            give_up(argv[program]);
        printf("%s\n  size                 %8ld bytes\n", argv[program], (long)status.st_size);
        start_us = measure_start(argv[program]);
        memory_kb = measure_memory(argv[program]);
        gate("start, us", start_us, START_LIMIT_US);
        gate("memory, kB", (double)memory_kb, MEMORY_LIMIT_KB);
        if (strstr(argv[program], "static") != NULL)
            gate("size, bytes", (double)status.st_size, 150 * 1024);
    }
    return 0;
}
