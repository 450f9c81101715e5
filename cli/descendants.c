/* descendants.c - the processes of the job: finds, signals and counts them, for the guard, and for redlock when the guard is dead. They
   are the descendants of this process, whatever they have done to groups, sessions and environments: it is a subreaper, which
   becomes the parent of each descendant whose parent has ended. So the job is empty when this process has no child.

   Where the system has no subreapers, or Linux has no /proc, the job is plain: without a terminal the process group that the
   command leads; with a terminal the command alone, because the terminal would stop a group of its own.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "cli.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#if CLI_LINUX
#include <sys/prctl.h>
#endif

enum { NAMED = 3 };       /* how many processes a message names */
enum { EMPTY_LOOKS = 5 }; /* so many looks in a row that find no process show that there is none */

/* A process that is stopped while it kills the job is continued after this time. */
enum { WAKE_MS = 20 };

struct numbers {
    pid_t *pid;
    unsigned count, room;
};

static struct {
    int is_plain, leads_group;
    pid_t command; /* 0: none yet */
    int has_ended; /* the command, as `end` says */
    struct job_end end;
    pid_t keeper; /* redlock */
    /* Children of redlock that are not of the job: a shell had started them, and then executed redlock; or they are orphans of such
       processes. */
    struct numbers strangers;
} job;

struct process {
    pid_t pid, parent, group;
    int above; /* in the list of the job: the index of its parent; -1: it is a child of this process */
    int is_stopped;
    int has_ended; /* a zombie */
    long threads;
    int can_start; /* 1: it may start another process now: it does not wait for a disk, for a tracer, or in vfork, and is not stopped */
    int runs;      /* set by stop_more. 1: it may not have stopped yet */
};

/* 1: a thread in this state may start another process. */
static int can_run(char state)
{
    return state == 'R' || state == 'S';
}

enum { STAT_TEXT = 512 };

/* Reads /proc/PID/FILE, the state of a process or thread. Returns the fields behind the name of the program, which may have blanks; NULL
   if there is no such process. */
static const char *read_stat(pid_t pid, const char *file, char text[STAT_TEXT])
{
    const char *end;

    read_proc(pid, file, text, STAT_TEXT);
    end = strrchr(text, ')');
    return end != NULL ? end + 1 : NULL;
}

/* Returns 0 if there is no such process. A zombie with threads lives: only its first thread has ended. */
static int read_process(pid_t pid, struct process *process)
{
    char text[STAT_TEXT], state = 'Z';
    const char *fields = read_stat(pid, "stat", text);
    int parent, group;

    if (fields == NULL ||
        sscanf(fields,
               " %c %d %d %*d %*d %*d %*d %*d %*d %*d %*d %*d %*d %*d %*d %*d %*d "
               "%ld",
               &state, &parent, &group, &process->threads) != 4)
        return 0;
    process->pid = pid;
    process->parent = parent;
    process->group = group;
    process->is_stopped = state == 'T';
    process->has_ended = (state == 'Z' || state == 'X') && process->threads <= 1;
    process->can_start = can_run(state);
    return 1;
}

/* Lists all processes, or the first ones if the memory ends. Returns how many; 0: there is no /proc. The caller frees the list. */
static unsigned list_processes(struct process **list)
{
    DIR *folder = opendir("/proc");
    struct dirent *entry;
    unsigned count = 0, room = 0;

    *list = NULL;
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        if (count == room) {
            struct process *longer = realloc(*list, (room += 512) * sizeof **list);
            if (longer == NULL)
                break;
            *list = longer;
        }
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9')
            count += (unsigned)read_process((pid_t)atol(entry->d_name), &(*list)[count]);
    }
    if (folder != NULL)
        closedir(folder);
    return count;
}

/* If the memory ends, the number is left out. */
static void add_number(struct numbers *to, pid_t pid)
{
    pid_t *longer = to->pid;

    if (to->count == to->room) {
        longer = realloc(longer, (to->room += 64) * sizeof *longer);
        if (longer == NULL) {
            to->room = to->count;
            return;
        }
        to->pid = longer;
    }
    to->pid[to->count++] = pid;
}

static void drop_number(struct numbers *from, pid_t pid)
{
    unsigned i = 0;

    while (i < from->count && from->pid[i] != pid)
        i++;
    if (i < from->count)
        from->pid[i] = from->pid[--from->count];
}

/* Adds the children of a thread, also those that the system hides elsewhere. Returns 0 if there is no such thread, or the system has no
   such list. */
static int add_children(struct numbers *to, pid_t pid, const char *thread)
{
    char path[64], text[2048];
    long number = 0;
    ssize_t size, i;
    int fd;

    snprintf(path, sizeof path, "/proc/%ld/task/%.20s/children", (long)pid, thread);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && (size = read(fd, text, sizeof text)) > 0)
        for (i = 0; i < size; i++) {
            if (text[i] == ' ')
                add_number(to, (pid_t)number);
            number = text[i] == ' ' ? 0 : number * 10 + (text[i] - '0');
        }
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* Adds the children of this process, which has one thread. Returns 0 if they cannot be listed: the system has no descriptor. */
static int add_own_children(struct numbers *to)
{
    struct process *list;
    char thread[24];
    unsigned count, i;

    snprintf(thread, sizeof thread, "%ld", (long)getpid());
    if (add_children(to, getpid(), thread))
        return 1;
    count = list_processes(&list);
    for (i = 0; i < count; i++)
        if (list[i].parent == getpid())
            add_number(to, list[i].pid);
    free(list);
    return count > 0;
}

static int is_stranger(pid_t pid)
{
    unsigned i = 0;

    while (i < job.strangers.count && job.strangers.pid[i] != pid)
        i++;
    return i < job.strangers.count && getpid() == job.keeper;
}

/* Reads a process that may be hidden: then only its group is known. Returns 0 if there is no such process. */
static int read_child(pid_t pid, pid_t parent, struct process *process)
{
    memset(process, 0, sizeof *process);
    if (read_process(pid, process))
        return process->parent == parent;
    process->pid = pid;
    process->parent = parent;
    process->group = getpgid(pid);
    process->threads = 1;
    return process->group >= 0;
}

/* Adds the children of this process that the list lacks, because the system hides them (mount option hidepid of /proc). Returns how
   many processes the list has then. */
static unsigned add_hidden(struct process **list, unsigned count, pid_t parent)
{
    struct numbers children = {0};
    struct process *longer;
    struct dirent *entry;
    unsigned listed, all = count, i;
    char path[40];
    DIR *folder;

    snprintf(path, sizeof path, "/proc/%ld/task", (long)parent);
    folder = opendir(path);
    while (folder != NULL && (entry = readdir(folder)) != NULL)
        if (entry->d_name[0] != '.')
            add_children(&children, parent, entry->d_name);
    if (folder != NULL)
        closedir(folder);
    for (i = 0; i < children.count; i++) {
        for (listed = 0; listed < count && (*list)[listed].pid != children.pid[i]; listed++)
            continue;
        if (listed < count || (longer = realloc(*list, (all + 1) * sizeof **list)) == NULL)
            continue;
        *list = longer;
        all += (unsigned)read_child(children.pid[i], parent, &longer[all]);
    }
    free(children.pid);
    return all;
}

/* Lists the processes of the job, parents first. */
static unsigned list_job(struct process **found, int with_hidden)
{
    struct process *list, process;
    unsigned count = list_processes(&list), members = 0, done = 0, i;
    pid_t parent = getpid();

    for (;;) {
        if (with_hidden)
            count = add_hidden(&list, count, parent);
        *found = list;
        for (i = members; i < count; i++)
            if (list[i].parent == parent && !is_stranger(list[i].pid)) {
                process = list[i];
                process.above = (int)done - 1;
                list[i] = list[members];
                list[members++] = process;
            }
        if (done == members)
            return members;
        parent = list[done++].pid;
    }
}

/* The argument of kill() for a plain job. */
static pid_t plain_target(void)
{
    return job.leads_group ? -job.command : job.command;
}

/* 1: a process of a plain job lives. */
static int is_plain_left(void)
{
    return job.command > 0 && (job.leads_group || !job.has_ended) &&
           (kill(plain_target(), 0) == 0 || errno == EPERM);
}

void job_find_strangers(pid_t guard)
{
    struct numbers found = {0};
    siginfo_t info = {0};
    int is_listed;

    if (job.is_plain)
        return;
    is_listed = add_own_children(&found);
    drop_number(&found, guard);
    /* Only now: the guard lived when the list was made, so the list has no orphan of the job. */
    if (!is_listed ||
        (guard > 0 && (waitid(P_PID, (id_t)guard, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
                       info.si_pid != 0))) {
        free(found.pid);
        return;
    }
    free(job.strangers.pid);
    job.strangers = found;
}

int job_take_strangers(pid_t guard)
{
    siginfo_t info = {0};
    int taken = 0;

    while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid > 0 &&
           info.si_pid != guard) {
        drop_number(&job.strangers,
                    info.si_pid); /* the number may be that of another process soon */
        waitpid(info.si_pid, NULL, 0);
        info.si_pid = 0;
        taken++;
    }
    return taken;
}

/* 1: descendants can be found: there is a /proc, and it is that of the PID namespace of this process. */
static int can_descend(void)
{
#if CLI_LINUX
    char text[24] = "";

    return readlink("/proc/self", text, sizeof text - 1) > 0 && atol(text) == (long)getpid() &&
           prctl(PR_SET_CHILD_SUBREAPER, 1) == 0;
#else
    return 0;
#endif
}

int job_is_possible(void)
{
#if CLI_LINUX
    static const char path[] = "/proc/self/ns/pid_for_children";
    char own[40] = "", next[40] = ""; /* empty: the namespace has no process yet */
    struct stat status;

    if (readlink("/proc/self/ns/pid", own, sizeof own - 1) <= 0 || lstat(path, &status) != 0)
        return 1; /* without /proc, or before Linux 4.12, nobody says so */
    return readlink(path, next, sizeof next - 1) > 0 && strcmp(own, next) == 0;
#else
    return 1;
#endif
}

void job_begin(void)
{
    int terminal;

    job.is_plain = !can_descend();
    job.keeper = getpid();
    if (!job.is_plain) {
        job_find_strangers(0);
        return;
    }
    terminal = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);
    job.leads_group = terminal < 0;
    if (terminal >= 0)
        close(terminal);
}

int job_is_plain(void)
{
    return job.is_plain;
}

int job_leads_group(void)
{
    return job.leads_group;
}

pid_t job_command(void)
{
    return job.command;
}

void job_is_of(pid_t command)
{
    job.command = command;
}

/* 1: a thread of the process may start another process now. The state of a process is that of its first thread. */
static int has_running_thread(pid_t pid)
{
    char path[40], file[40], text[STAT_TEXT], state;
    struct dirent *entry;
    const char *fields;
    DIR *folder;
    int found = 0;

    snprintf(path, sizeof path, "/proc/%ld/task", (long)pid);
    folder = opendir(path);
    while (folder != NULL && !found && (entry = readdir(folder)) != NULL) {
        snprintf(file, sizeof file, "task/%.20s/stat", entry->d_name);
        fields = read_stat(pid, file, text);
        found = fields != NULL && sscanf(fields, " %c", &state) == 1 && can_run(state);
    }
    if (folder != NULL)
        closedir(folder);
    return found;
}

/* Stops the processes of the job whose parents have stopped. Returns how many may run still. */
static unsigned stop_more(struct process *list, unsigned members)
{
    unsigned running = 0, i;

    for (i = 0; i < members; i++) {
        int may_stop = list[i].above < 0 || !list[list[i].above].runs;
        list[i].runs = list[i].threads > 1 ? has_running_thread(list[i].pid) : list[i].can_start;
        if (may_stop && !list[i].is_stopped && kill(list[i].pid, SIGSTOP) != 0)
            list[i].runs = 0;
        running += (unsigned)list[i].runs;
    }
    return running;
}

/* Stops the job, and lists it when no process of it can start another one any more. Without this, a process that is started between
   the list and the signal would not get the signal. A process has stopped when the system says so: until then a fork may be under
   way. The list is made once more then, because one process may have started another one, and stopped, while the first list was made.

   Parents stop before their children, and are continued behind them: sudo and su stop themselves when their child has stopped, and
   a shell with job control goes on to its next command. */
static unsigned stop_job(struct process **list, uint64_t until_us)
{
    unsigned members, running;
    int stopped_looks = 0;

    for (;;) {
        members = list_job(list, 1);
        running = stop_more(*list, members);
        stopped_looks = running > 0 ? 0 : stopped_looks + 1;
        if (stopped_looks == 2 || now_us() >= until_us)
            return members;
        free(*list);
        if (running > 0)
            poll(NULL, 0, 1);
    }
}

unsigned job_signal(int number, pid_t except, uint64_t until_us)
{
    int stops = is_ending(number);
    struct process *list;
    unsigned members, living = 0, i;
    /* 1: the command is in the list, or is not to be signalled beside it: it has ended; or this is redlock, which does not know
       whether the command has ended, and its number may be that of another process by now. */
    int has_command = job.has_ended || getpid() == job.keeper;

    if (job.is_plain) {
        if (except != NO_GROUP || !is_plain_left())
            return 0;
        kill(plain_target(), number);
        return kill(plain_target(), SIGCONT) == 0;
    }
    /* What is hidden gets SIGKILL as a child of this process, when its parents are dead. */
    members = stops ? stop_job(&list, until_us) : list_job(&list, number != SIGKILL);
    for (i = 0; i < members; i++) {
        living += !list[i].has_ended;
        has_command |= list[i].pid == job.command;
        if (list[i].group != except)
            kill(list[i].pid, number);
    }
    if (!has_command && except == NO_GROUP) /* the system hides it, or has no memory for a list */
        kill(job.command, number);
    for (i = members; i-- > 0;)
        if (stops || (list[i].group != except && list[i].is_stopped))
            kill(list[i].pid, SIGCONT);
    free(list);
    return living;
}

unsigned job_name(char *text, size_t room)
{
    struct process *list = NULL;
    unsigned members = job.is_plain ? 0 : list_job(&list, 1), living = 0, i;
    size_t used = 0;
    char name[32];

    text[0] = '\0';
    for (i = 0; i < members; i++) {
        if (list[i].has_ended || living++ >= NAMED)
            continue;
        read_proc(list[i].pid, "comm", name, sizeof name);
        name[strcspn(name, "\n")] = '\0';
        used += (size_t)snprintf(text + used, room - used, "%s%ld%s%s", living > 1 ? ", " : "",
                                 (long)list[i].pid, name[0] != '\0' ? " " : "", name);
    }
    if (living > NAMED)
        snprintf(text + used, room - used, ", ...");
    free(list);
    return living;
}

int job_reap(void)
{
    siginfo_t info;

    for (;;) {
        info.si_pid = 0;
        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG) != 0)
            return job.is_plain && is_plain_left();
        if (info.si_pid == 0)
            return 1;
        drop_number(&job.strangers, info.si_pid);
        if (info.si_pid == job.command) {
            job.has_ended = 1;
            job.end.by_signal = info.si_code != CLD_EXITED;
            job.end.number = info.si_status;
        }
    }
}

int job_has_ended(struct job_end *end)
{
    *end = job.end;
    return job.has_ended;
}

/* Kills the children of this process. That is fast, for a process that starts another one and ends, again and again: it is a child
   when its parent has ended. Returns 0 if there is none. */
static int kill_children(void)
{
    struct numbers children = {0};
    int is_left = !add_own_children(&children);
    unsigned i;

    for (i = 0; i < children.count; i++)
        if (!is_stranger(children.pid[i])) {
            kill(children.pid[i], SIGKILL);
            is_left = 1;
        }
    free(children.pid);
    return is_left;
}

int job_kill(void)
{
    uint64_t until_us = now_us() + (uint64_t)KILLED_MS * 1000;
    int pause_ms = 1, empty = 0, is_left;

    while (job_reap()) {
        wake_at(now_us() + (uint64_t)WAKE_MS * 1000);
        is_left = !job.is_plain && kill_children();
        is_left |= job_signal(SIGKILL, NO_GROUP, 0) > 0;
        empty = is_left ? 0 : empty + 1;
        if (job.strangers.count > 0 && empty == EMPTY_LOOKS)
            return 1; /* these children are strangers */
        if (now_us() >= until_us)
            return 0;
        poll(NULL, 0, pause_ms);
        pause_ms = pause_ms < 50 ? pause_ms * 2 : 50;
    }
    return 1;
}
