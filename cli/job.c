/* job.c - the job of redlock run: the command and all processes that come from it. Starts the job, signals it, and knows whether
   a process of it is left.

   On Linux this process is the subreaper of the job: a process whose parent has ended becomes a child of this process. So the job
   is all descendants of this process but the guard, whatever process groups they have made. /proc lists them. Without /proc the
   job is the process group of the command.

   The guard is a second process that kills the job at a deadline, or at once when this process dies. So neither a killed nor a
   stopped redlock leaves a job without its lock. When this process is dead, there is no subreaper any more: so the guard finds the
   job by the mark in its environment, too.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "cli.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <time.h>
#endif

/* 0 is a group, too: one whose leader is outside of this PID namespace. */
enum { NO_GROUP = -1 };

enum { KILL_ROUNDS = 100, KILL_LOOKS = 3, KILL_PAUSE_MS = 10 };

static struct {
    pid_t keeper;         /* the process that holds the lock */
    pid_t command, guard; /* 0: there is none */
    int guard_fd;
    int own_group;    /* the command has its own process group */
    int has_terminal; /* 1: its group has been lent the terminal */
    const char *name; /* of the lock, for messages */
    const char *mark; /* a word that only the environment of this job has */
    siginfo_t end;    /* of the command; si_pid 0: it lives */
} job;

/* ---- The processes of the job ---- */

struct process {
    pid_t pid, parent, group;
    int has_ended; /* a zombie */
};

/* Returns 0 if there is no such process. A zombie with threads lives: only its first thread has ended. */
static int read_process(pid_t pid, struct process *process)
{
    char text[512], state = 'Z';
    int parent, group;
    long threads = 0;
    const char *end;

    read_proc(pid, "stat", text, sizeof text);
    end = strrchr(text, ')'); /* the name of the program, before this, may have blanks */
    if (end == NULL || sscanf(end + 1,
                              " %c %d %d %*d %*d %*d %*d %*d %*d %*d %*d %*d %*d %*d %*d %*d %*d "
                              "%ld",
                              &state, &parent, &group, &threads) != 4)
        return 0;
    process->pid = pid;
    process->parent = parent;
    process->group = group;
    process->has_ended = (state == 'Z' || state == 'X') && threads <= 1;
    return 1;
}

/* Lists all processes. Returns how many; 0: there is no /proc, or no memory. The caller frees the list. */
static unsigned read_processes(struct process **list)
{
    DIR *folder = opendir("/proc");
    struct dirent *entry;
    unsigned count = 0, room = 0;

    *list = NULL;
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        if (count == room) {
            struct process *longer = realloc(*list, (room += 512) * sizeof **list);
            if (longer == NULL) {
                count = 0;
                break;
            }
            *list = longer;
        }
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9')
            count += (unsigned)read_process((pid_t)atol(entry->d_name), &(*list)[count]);
    }
    if (folder != NULL)
        closedir(folder);
    return count;
}

/* 1: the process has the mark of this job in its environment. */
static int is_marked(pid_t pid)
{
    static char text[16384];
    size_t used = 0, mark = strlen(job.mark);
    ssize_t size;
    char path[40];
    int fd, found = 0;

    snprintf(path, sizeof path, "/proc/%ld/environ", (long)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && !found && (size = read(fd, text + used, sizeof text - used)) > 0) {
        used += (size_t)size;
        found = memmem(text, used, job.mark, mark) != NULL;
        if (used >= mark) { /* the mark may begin at the end of this part */
            memmove(text, text + used - (mark - 1), mark - 1);
            used = mark - 1;
        }
    }
    if (fd >= 0)
        close(fd);
    return found;
}

static void put_first(struct process *list, unsigned *members, unsigned i)
{
    struct process process = list[i];

    list[i] = list[*members];
    list[(*members)++] = process;
}

/* Moves the processes of the job to the front of the list. Returns how many. The guard also goes by the mark: when the keeper dies,
   the rest of the job gets another parent before the guard gets one. */
static unsigned find_job(struct process *list, unsigned count)
{
    int is_guard = getpid() != job.keeper, is_orphaned = is_guard && getppid() != job.keeper;
    pid_t parent = is_orphaned ? job.command : job.keeper;
    unsigned members = 0, done = 0, i;

    for (i = 0; i < count && is_guard; i++)
        if (list[i].pid != getpid() && (list[i].pid == job.command || is_marked(list[i].pid)))
            put_first(list, &members, i);
    for (;;) {
        for (i = members; i < count; i++)
            if (list[i].parent == parent && list[i].pid != job.guard && list[i].pid != getpid())
                put_first(list, &members, i);
        if (done == members)
            return members;
        parent = list[done++].pid;
    }
}

/* What one look at the processes of this machine has found of the job. */
struct look {
    int works; /* 0: the processes cannot be listed */
    unsigned living, ended;
};

/* Sends a signal to the processes of the job that are not in this group (NO_GROUP: to all), and not the command; 0: to none. */
static struct look signal_outside(pid_t group, int number)
{
    struct process *list;
    unsigned count = read_processes(&list), members, i;
    struct look look = {count > 0, 0, 0};

    members = find_job(list, count);
    for (i = 0; i < members; i++) {
        if (list[i].has_ended)
            look.ended++;
        else
            look.living++;
        if (number != 0 && list[i].group != group && list[i].pid != job.command)
            kill(list[i].pid, number);
    }
    free(list);
    return look;
}

/* The command leads a group: its own, or one that it has made, as timeout(1) does in the foreground. */
static int leads_group(void)
{
    pid_t group = getpgid(job.command);

    return job.own_group || group == job.command || group < 0;
}

int job_shares_group(void)
{
    return getpgid(job.command) == getpgrp();
}

int job_has_own_group(void)
{
    return job.own_group;
}

/* Returns 0 if the signal could not be sent. It is no failure if the command has ended; its group may have processes all the
   same. */
int job_signal_command(int number)
{
    static int is_said;

    if (kill(leads_group() ? -job.command : job.command, number) == 0 || errno == ESRCH)
        return 1;
    if (!is_said++)
        say(LOG_ERROR, "the command cannot be signalled: %s", strerror(errno));
    return 0;
}

void job_signal_rest(int number, int by_terminal)
{
    signal_outside(by_terminal && job_shares_group() ? getpgrp()
                   : leads_group()                   ? job.command
                                                     : NO_GROUP,
                   number);
}

void job_end(int number)
{
    job_signal_command(number);
    job_signal_rest(number, 0);
    if (number != SIGKILL)
        job_signal_command(SIGCONT); /* a stopped command would not get the signal */
}

/* A look at the processes misses one that has started another one, and has ended before its own turn: the names of all are read
   first. Processes of the job that have ended stay until job_reap_orphans: so if a second look finds no more of them, the first
   one has missed none. */
int job_is_empty(void)
{
    struct look first = signal_outside(NO_GROUP, 0), second;

    if (!first.works) {
        waitpid(job.command, NULL, WNOHANG); /* a zombie counts as a member of its group */
        return kill(-job.command, 0) != 0;
    }
    if (first.living > 0)
        return 0;
    second = signal_outside(NO_GROUP, 0);
    return second.living == 0 && second.ended == first.ended;
}

int job_has_ended(siginfo_t *end)
{
    if (job.end.si_pid == 0) /* job_is_empty may have removed the zombie since */
        waitid(P_PID, (id_t)job.command, &job.end, WEXITED | WNOHANG | WNOWAIT);
    *end = job.end;
    return end->si_pid == job.command;
}

/* The signal that has stopped (WSTOPPED) or continued (WCONTINUED) the command since the last call; 0: none. */
static int signalled_by(int change)
{
    siginfo_t info = {0};

    return waitid(P_PID, (id_t)job.command, &info, change | WNOHANG) == 0 &&
                   info.si_pid == job.command
               ? info.si_status
               : 0;
}

int job_stopped_by(void)
{
    return signalled_by(WSTOPPED);
}

int job_was_continued(void)
{
    return signalled_by(WCONTINUED) != 0;
}

/* The process may be the first one of a container, or the subreaper. Command and guard are not removed here: their pids are still
   used. */
void job_reap_orphans(void)
{
    siginfo_t end = {0};

    while (waitid(P_ALL, 0, &end, WEXITED | WNOHANG | WNOWAIT) == 0 && end.si_pid != 0 &&
           end.si_pid != job.command && end.si_pid != job.guard) {
        waitpid(end.si_pid, NULL, 0);
        end.si_pid = 0;
    }
}

/* ---- The guard ---- */

int job_has_guard(void)
{
    return job.guard > 0;
}

void job_finish(void)
{
    job_takes_terminal();
    if (job.guard > 0) {
        kill(job.guard, SIGKILL);
        waitpid(job.guard, NULL, 0);
        job.guard = 0;
    }
    if (job.command > 0)
        waitpid(job.command, NULL, 0);
    while (waitpid(-1, NULL, WNOHANG) > 0) /* orphans */
        continue;
}

/* A descriptor that becomes readable at a time of now_us(), which counts during suspend. The timeout of poll() does not count
   then, and would end too late. Returns -1 if the system has no such descriptor. */
static int open_alarm(void)
{
#ifdef __linux__
    return timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC);
#else
    return -1;
#endif
}

static void set_alarm(int fd, uint64_t moment_us)
{
#ifdef __linux__
    struct itimerspec moment = {{0, 0}, {0, 0}};

    moment.it_value.tv_sec = (time_t)(moment_us / 1000000);
    moment.it_value.tv_nsec = (long)(moment_us % 1000000) * 1000 + 1; /* 0 would mean never */
    timerfd_settime(fd, TFD_TIMER_ABSTIME, &moment, NULL);
#else
    (void)fd;
    (void)moment_us;
#endif
}

/* In the guard: kills the job, until some looks in a row find nothing of it: a process may start another one between a look and
   the kill. Returns 0 if the command cannot be killed. */
static int kill_job(void)
{
    int round, empty = 0, killed = 0;

    for (round = 0; round < KILL_ROUNDS && empty < KILL_LOOKS; round++) {
        killed = job_signal_command(SIGKILL);
        empty = signal_outside(NO_GROUP, SIGKILL).living > 0 ? 0 : empty + 1;
        poll(NULL, 0, KILL_PAUSE_MS);
    }
    return killed;
}

/* Waits for data from a pipe; only the supervisor has the other end. The supervisor writes deadlines; the end of the stream means
   that the supervisor is dead. */
static void stand_guard(int line, uint64_t deadline_us)
{
    struct pollfd fds[2] = {{line, POLLIN, 0}, {-1, POLLIN, 0}};

    become_quiet_process("rl-guard", /* killall -9 redlock must not kill the guard */
                         line, STDERR_FILENO);
    fds[1].fd = open_alarm();
    for (;;) {
        uint64_t now = now_us(), left_ms = deadline_us > now ? (deadline_us - now + 999) / 1000 : 0;
        set_alarm(fds[1].fd, deadline_us);
        poll(fds, 2, left_ms > 60000 ? 60000 : (int)left_ms);
        if (fds[0].revents != 0) {
            if (read(line, &deadline_us, sizeof deadline_us) != sizeof deadline_us) {
                if (kill_job())
                    say(LOG_ERROR, "%s: the supervisor is gone; the command was killed", job.name);
                _exit(0);
            }
        } else if (now_us() >= deadline_us) {
            int killed = kill_job();
            if (poll(fds, 1, 1000) == 0 && killed) /* else the supervisor killed it */
                say(LOG_ERROR,
                    "%s: the supervisor does not react, and the lock is about to expire; the "
                    "command was killed",
                    job.name);
            _exit(0);
        }
    }
}

/* Returns 0 if the system denies a process or a pipe. */
static int start_guard(uint64_t deadline_us)
{
    int line[2];

    job.guard = 0;
    if (pipe2(line, O_CLOEXEC) != 0)
        return 0;
    job.guard = fork();
    if (job.guard == 0) {
        close(line[1]);
        stand_guard(line[0], deadline_us);
    }
    close(line[0]);
    fcntl(line[1], F_SETFL, O_NONBLOCK);
    job.guard_fd = line[1];
    return job.guard > 0;
}

/* A guard that was killed is replaced. job_reap_orphans removes it. */
void job_set_deadline(uint64_t deadline_us)
{
    if (job.guard <= 0 ||
        write(job.guard_fd, &deadline_us, sizeof deadline_us) == sizeof deadline_us ||
        errno != EPIPE)
        return;
    close(job.guard_fd);
    say(LOG_WARNING, start_guard(deadline_us)
                         ? "the guard process is gone; another one was started"
                         : "the guard process is gone, and no other one can be started");
}

/* ---- Start ---- */

/* Returns 1 if this process is in the foreground of a terminal, whatever stdin is. A command with its own process group would be
   stopped when it reads from the terminal. */
static int is_in_foreground(void)
{
    int fd = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC), is;

    if (fd < 0)
        return 0;
    is = tcgetpgrp(fd) == getpgrp();
    close(fd);
    return is;
}

/* Makes the process group the foreground of the terminal. Returns 1 if that worked. */
static int set_foreground(pid_t group)
{
    int fd = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC), done;

    if (fd < 0)
        return 0;
    done = tcsetpgrp(fd, group) == 0; /* SIGTTOU is ignored */
    close(fd);
    return done;
}

int job_lend_terminal(void)
{
    if (job.own_group && !options.new_group && is_in_foreground())
        job.has_terminal = set_foreground(job.command);
    return job.has_terminal;
}

int job_takes_terminal(void)
{
    int had = job.has_terminal;

    if (had)
        set_foreground(getpgrp());
    job.has_terminal = 0;
    return had;
}

/* Returns if the command cannot be executed, with the reason in errno. A script without #! is executed by a shell: some C
   libraries do not do that in execvp. */
static void execute(char **command)
{
    static char shell[] = "/bin/sh", dash_c[] = "-c", script[] = "exec \"$@\"";
    char *first[] = {shell, dash_c, script, shell}, **by_shell;
    enum { FIRST = sizeof first / sizeof *first };
    size_t count = 0;

    execvp(command[0], command);
    if (errno != ENOEXEC)
        return;
    while (command[count] != NULL)
        count++;
    by_shell = must_allocate(FIRST + count + 1, sizeof *by_shell);
    memcpy(by_shell, first, sizeof first);
    memcpy(by_shell + FIRST, command, count * sizeof *command);
    execv(shell, by_shell);
}

/* The child: waits for a byte, then executes the command. */
static void become(char **command, int go, const struct job_setup *setup)
{
    char byte;
    int status;

    if (job.own_group)
        setpgid(0, 0);
#ifdef __linux__
    if (setup->ends_with_lock)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
    if (read(go, &byte, 1) != 1 || getppid() != job.keeper)
        _exit(EXIT_SYSTEM); /* the parent did not permit the command, or died before prctl */
    setup->set_environment();
    signals_restore();
    execute(command);
    status = errno == ENOENT ? 127 : 126;
    ignore_write_signals(); /* the status is the same if the message cannot be written */
    say(LOG_ERROR, "%s: %s", command[0], strerror(errno));
    _exit(status);
}

int job_start(char **command, const struct job_setup *setup)
{
    int go[2], goes;

    job.keeper = getpid();
    job.name = setup->name;
    job.mark = setup->mark;
    job.own_group = !options.foreground && (options.new_group || !is_in_foreground());
    if (job.own_group) /* the terminal does not send Ctrl-Z to the command then */
        signals_add_stop();
#ifdef __linux__
    prctl(PR_SET_CHILD_SUBREAPER, 1);
#endif
    if (pipe2(go, O_CLOEXEC) != 0 || (job.command = fork()) < 0)
        return -1;
    if (job.command == 0) {
        close(go[1]);
        become(command, go[0], setup);
    }
    close(go[0]);
    if (job.own_group)
        setpgid(job.command, job.command);
    if (setup->ends_with_lock && !options.no_guard && !start_guard(setup->deadline_us))
        return -1; /* when this process exits, the pipe is closed, and the child ends */
    if (is_asked_to_end() || now_us() >= setup->deadline_us)
        goes = 0;
    else
        goes = write(go[1], "", 1) == 1 ? 1 : -1;
    close(go[1]);
    return goes;
}
