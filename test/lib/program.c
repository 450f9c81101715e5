/* program.c - see program.h.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* forkpty */
#include "program.h"
#include "servers.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORDS = 40, TEXT = 65536 };

struct program_setup setup;
struct program last;
long wait_ms = 60000;
static const char *program_path;
static char folder[80];
static int started;

static void remove_files(void)
{
    DIR *list = opendir(folder);
    struct dirent *entry;

    while (list != NULL && (entry = readdir(list)) != NULL)
        unlinkat(dirfd(list), entry->d_name, 0);
    if (list != NULL)
        closedir(list);
    rmdir(folder);
}

/* A write to a busy disk may stall. The tests also execute files of their own, which some containers do not permit there. */
static int has_shared_memory(void)
{
    struct statvfs system;

    return access("/dev/shm", W_OK) == 0 && statvfs("/dev/shm", &system) == 0 &&
           (system.f_flag & ST_NOEXEC) == 0;
}

void programs_begin(const char *path)
{
    program_path = path;
    snprintf(folder, sizeof folder, "%s/redlock-cli-XXXXXX",
             has_shared_memory() ? "/dev/shm" : "/tmp");
    if (mkdtemp(folder) == NULL) {
        perror(folder);
        exit(1);
    }
    atexit(remove_files);
}

void programs_use(const char *path)
{
    program_path = path;
}

const char *programs_folder(void)
{
    return folder;
}

static void file_of(char path[100], int number, char stream)
{
    snprintf(path, 100, "%s/%d.%c", folder, number, stream);
}

/* Makes `fd` a copy of `given`; if that is 0, a file in `folder`, or /dev/null for input. */
static void put_at(int fd, int number, char stream, int given)
{
    char path[100];

    file_of(path, number, stream);
    if (given == 0)
        given = open(stream == 'i' ? "/dev/null" : path,
                     stream == 'i' ? O_RDONLY : O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (given != fd)
        dup2(given, fd);
    else
        fcntl(fd, F_SETFD, 0);
}

static void become(const char **words, int number, int on_terminal)
{
    sigset_t none;
    int fd, i;

    if (!on_terminal) {
        put_at(0, number, 'i', setup.input);
        put_at(1, number, 'o', setup.output);
        put_at(2, number, 'e', 0);
    }
    for (fd = 3; fd < 256; fd++)
        close(fd);
    for (i = 1; i < 32; i++)
        signal(i, SIG_DFL); /* the parent of the test may ignore some */
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (setup.before != NULL)
        setup.before();
    execvp(words[0], (char *const *)(void *)words);
    perror(words[0]);
    _exit(125);
}

static struct program start_list(int *terminal, const char *word, va_list more)
{
    struct program program = {0, ++started};
    const char *words[WORDS] = {setup.instead != NULL ? setup.instead : program_path, word};
    unsigned count = 2;

    while (word != NULL && (words[count++] = va_arg(more, const char *)) != NULL && count < WORDS)
        continue;
    fflush(stdout);
    program.pid = terminal != NULL ? forkpty(terminal, NULL, NULL, NULL) : fork();
    if (program.pid == 0)
        become(words, program.number, terminal != NULL);
    if (program.pid < 0) {
        perror("fork");
        exit(1);
    }
    memset(&setup, 0, sizeof setup);
    return program;
}

struct program start(const char *word, ...)
{
    struct program program;
    va_list more;

    va_start(more, word);
    program = start_list(NULL, word, more);
    va_end(more);
    return program;
}

struct program start_on_terminal(int *terminal, const char *word, ...)
{
    struct program program;
    va_list more;

    va_start(more, word);
    program = start_list(terminal, word, more);
    va_end(more);
    return program;
}

int waited(int happened, long ms)
{
    if (!happened && ms >= wait_ms)
        wait_ms = 10000;
    return happened;
}

int has_ended(struct program program)
{
    siginfo_t info = {0};

    return waitid(P_PID, (id_t)program.pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == program.pid;
}

int ends(struct program *program)
{
    int status = 0, over = until(has_ended(*program), WAIT_MS);

    if (!over)
        kill(program->pid, SIGKILL);
    if (waitpid(program->pid, &status, 0) != program->pid || !over)
        return TOO_LONG;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

int redlock(const char *word, ...)
{
    va_list more;

    va_start(more, word);
    last = start_list(NULL, word, more);
    va_end(more);
    return ends(&last);
}

const char *wrote(struct program program, char stream)
{
    static char text[4][TEXT];
    static unsigned turn;
    char path[100], *to = text[turn++ % 4];
    ssize_t size;
    int fd;

    file_of(path, program.number, stream);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    size = fd >= 0 ? read(fd, to, TEXT - 1) : 0;
    if (fd >= 0)
        close(fd);
    to[size > 0 ? size : 0] = '\0';
    return to;
}

int writes(struct program program, char stream, const char *text)
{
    return until(strstr(wrote(program, stream), text) != NULL, WAIT_MS);
}

int count_of(const char *text, const char *part)
{
    int count = 0;

    while ((text = strstr(text, part)) != NULL) {
        count++;
        text += strlen(part);
    }
    return count;
}

/* Reads this file of a process from /proc; "" if there is no such process. */
static const char *proc_file(const char *pid, const char *file, char *text, size_t room)
{
    char path[64];
    ssize_t size = 0;
    int fd;

    snprintf(path, sizeof path, "/proc/%.20s/%s", pid, file);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        size = read(fd, text, room - 1);
        close(fd);
    }
    text[size > 0 ? size : 0] = '\0';
    return text;
}

/* Z where there is no such process. */
static char state_of(const char *pid, int *parent)
{
    char text[512];
    const char *end = strrchr(proc_file(pid, "stat", text, sizeof text), ')');
    char state = 'Z';

    *parent = 0;
    if (end != NULL)
        sscanf(end + 1, " %c %d", &state, parent);
    return state;
}

/* The parent of a process; 0 if there is no such process, or it is a zombie. */
static pid_t parent_of(const char *pid)
{
    int parent;
    char state = state_of(pid, &parent);

    return state == 'Z' || state == 'X' ? 0 : parent;
}

int lives(pid_t pid)
{
    char text[24];

    snprintf(text, sizeof text, "%ld", (long)pid);
    return parent_of(text) != 0;
}

static char state_of_pid(pid_t pid)
{
    char text[24];
    int parent;

    snprintf(text, sizeof text, "%ld", (long)pid);
    return state_of(text, &parent);
}

int sleeps(pid_t pid)
{
    return state_of_pid(pid) == 'S';
}

int is_stopped(pid_t pid)
{
    return state_of_pid(pid) == 'T';
}

int is_called(pid_t pid, const char *part)
{
    char number[24], text[4096];

    snprintf(number, sizeof number, "%ld", (long)pid);
    return strstr(proc_file(number, "comm", text, sizeof text), part) != NULL ||
           strstr(proc_file(number, "cmdline", text, sizeof text), part) != NULL;
}

int heard_signals(pid_t pid)
{
    char number[24], text[4096];
    const char *pending;

    snprintf(number, sizeof number, "%ld", (long)pid);
    pending = strstr(proc_file(number, "status", text, sizeof text), "ShdPnd:");
    return pending != NULL && strtoull(pending + 7, NULL, 16) == 0;
}

pid_t child_of(pid_t parent, pid_t except)
{
    DIR *list = opendir("/proc");
    struct dirent *entry;
    pid_t found = 0;

    while (list != NULL && found == 0 && (entry = readdir(list)) != NULL)
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
            parent_of(entry->d_name) == parent && atoi(entry->d_name) != except)
            found = atoi(entry->d_name);
    if (list != NULL)
        closedir(list);
    return found;
}

/* Reads from a terminal until `part` has come. Returns what was read; valid until the next call. */
const char *screen(int terminal, const char *part)
{
    static char text[8192];
    struct pollfd fd = {terminal, POLLIN, 0};
    long end = now_ms() + WAIT_MS;
    size_t used = 0;
    ssize_t size;

    do {
        text[used] = '\0';
        if (strstr(text, part) != NULL)
            break;
        size = poll(&fd, 1, 100) > 0 ? read(terminal, text + used, sizeof text - 1 - used) : 0;
        used += size > 0 ? (size_t)size : 0;
        if (size < 0)
            break;
    } while (now_ms() < end);
    text[used] = '\0';
    return text;
}

void type(int terminal, const char *keys)
{
    if (write(terminal, keys, strlen(keys)) < 0)
        perror("terminal");
}
