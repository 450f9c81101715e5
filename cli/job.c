/* job.c - the job of redlock run: the command, and all processes that come from it (descendants.c).

       redlock (holds the lock; subreaper) --- line --- rl-guard (subreaper) --- command --- ...

   The guard starts the command. It kills the job at the deadline of the lock, and at once when redlock dies: then the line ends. If the
   guard dies, redlock is the next subreaper: it gets the job as its children, and kills it. The guard knows nothing of locks and
   nodes, and redlock nothing of processes.

   Both may be stopped, too. The kernel continues both at the deadline (wake_at), and the guard when redlock dies.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#if CLI_LINUX
#include <sys/prctl.h>
#endif

/* When the guard says which processes are left of a job that was asked to end: first, and then again and again. */
enum { FIRST_NOTICE_MS = 5000, NOTICE_MS = 30000 };

/* When a signal has ended the command, redlock may have got it too: it has this time to pass the signal on. */
enum { REDLOCK_TELLS_MS = 500 };

/* How long the guard waits until a job has stopped that it is about to signal. */
enum { STOP_MS = 1000 };

/* In a plain job nothing tells that it is empty. */
enum { PLAIN_LOOK_MS = 100 };

/* How often redlock looks at the guard that is about to start the command. */
enum { START_LOOK_MS = 100 };

enum { NAMES_MAX = 120 };

/* From redlock to the guard. SEEN: redlock has read that the job is over. */
enum kind { START, DEADLINE, PASS, SPREAD, ASK, SEEN, LOSE };
struct order {
    enum kind what;
    int number;  /* PASS, SPREAD, ASK: a signal */
    uint64_t us; /* DEADLINE, LOSE */
};

/* From the guard to redlock: when the command has begun, and when the job is over. */
struct report {
    pid_t command; /* -1: the system denies it, for the reason `error` */
    int error;
    struct job_end end;
};

static const char *lock_name; /* for messages */
static int line = -1;         /* to the other process */
static pid_t guard_pid;       /* in redlock */

/* ---- The command ---- */

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

/* Opens the file of a command, as execvp finds it. Returns -1 if there is none. */
static int open_command(const char *command)
{
    const char *folder = getenv("PATH"), *end;
    char path[4096];
    int fd = -1;

    if (strchr(command, '/') != NULL)
        return open(command, O_RDONLY | O_CLOEXEC);
    for (; fd < 0 && folder != NULL; folder = *end == ':' ? end + 1 : NULL) {
        end = folder + strcspn(folder, ":");
        snprintf(path, sizeof path, "%.*s%s%s", (int)(end - folder), folder,
                 end > folder ? "/" : "", command);
        fd = open(path, O_RDONLY | O_CLOEXEC);
    }
    return fd;
}

/* Says why a command is not executed. "No such file" may be the interpreter of a script, or the dynamic loader of a program. */
static void say_not_executed(const char *command, int error)
{
    char first[300];
    int fd = error == ENOENT ? open_command(command) : -1;
    ssize_t size = fd >= 0 ? read(fd, first, sizeof first - 1) : 0;

    first[size > 0 ? size : 0] = '\0';
    first[strcspn(first, "\n")] = '\0';
    if (fd < 0)
        say(LOG_ERROR, "%s: %s", command, strerror(error));
    else if (strncmp(first, "#!", 2) != 0)
        say(LOG_ERROR, "%s: its interpreter is missing", command);
    else
        say(LOG_ERROR, "%s: its interpreter is missing: %s%s", command,
            first + 2 + strspn(first + 2, " \t"),
            strchr(first, '\r') != NULL ? " (its lines end in CR LF)" : "");
}

/* The child of the guard. It is in the process group of redlock, so the terminal, `kill 0` and a shell treat it as they would
   without redlock. */
static void become(char **command, pid_t parent, const struct job_setup *setup)
{
    int error;

    if (job_leads_group())
        setpgid(0, 0);
#if CLI_LINUX
    /* redlock and the guard may be killed together */
    if (!job_is_plain() && !options.keep_going && prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) {
        say(LOG_ERROR, "%s: the command cannot be started: %s", lock_name, strerror(errno));
        _exit(EXIT_SYSTEM);
    }
#endif
    if (getppid() != parent)
        _exit(EXIT_SYSTEM);
    setup->set_environment();
    if (now_us() >= setup->deadline_us) {
        say(LOG_ERROR, "%s: the lock expired before the command was started", lock_name);
        _exit(EXIT_LOST);
    }
    signals_restore();
    execute(command);
    error = errno;
    ignore_write_signals(); /* the status is the same if the message cannot be written */
    say_not_executed(command[0], error);
    _exit(error == ENOENT ? 127 : 126);
}

/* ---- The guard ---- */

static struct {
    pid_t group;          /* that of redlock and the command */
    uint64_t deadline_us; /* of the lock. UINT64_MAX: the job goes on without it */
    uint64_t limit_us;    /* of --kill-after. UINT64_MAX: none */
    uint64_t ask_us;      /* when to ask what a killed command has left; UINT64_MAX: never */
    uint64_t notice_us;   /* of the next message about a job that was asked to end */
    int is_asked;         /* 1: the job was asked to end */
    int by_terminal;      /* the last signal that a terminal has sent to the job */
} guard = {0, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, 0, 0};

static uint64_t first_of(uint64_t one, uint64_t other)
{
    return one < other ? one : other;
}

static void signal_job(int number, pid_t except)
{
    job_signal(number, except, first_of(now_us() + (uint64_t)STOP_MS * 1000, guard.deadline_us));
}

/* Asks the job to end, with this signal if it is not 0. The time of --kill-after begins with the first one, as in timeout(1). */
static void ask(int number)
{
    uint64_t now = now_us();

    if (!guard.is_asked) {
        guard.notice_us = now + (uint64_t)FIRST_NOTICE_MS * 1000;
        if (options.kill_after_ms >= 0)
            guard.limit_us = now + (uint64_t)options.kill_after_ms * 1000;
    }
    guard.is_asked = 1;
    guard.ask_us = UINT64_MAX;
    signal_job(number, NO_GROUP);
}

/* Says which processes are left. */
static void say_left(uint64_t now)
{
    char names[NAMES_MAX], then[60];
    unsigned count = job_name(names, sizeof names);

    guard.notice_us = now + (uint64_t)NOTICE_MS * 1000;
    if (guard.limit_us != UINT64_MAX)
        snprintf(then, sizeof then, "killed in %ld s",
                 (long)((guard.limit_us - now + 999999) / 1000000));
    else
        snprintf(then, sizeof then, "%s-k sets a limit",
                 options.keep_going ? "" : "the lock is kept; ");
    if (count == 0)
        say(LOG_NOTICE, "%s: asked to end, and not all of the job has ended; %s", lock_name, then);
    else
        say(LOG_NOTICE, "%s: asked to end; %u process%s left (%s); %s", lock_name, count,
            count == 1 ? " is" : "es are", names, then);
}

/* Returns the end of a message. */
static const char *kill_all(void)
{
    char names[NAMES_MAX];

    if (job_kill())
        return ": the job was killed";
    job_name(names, sizeof names);
    say(LOG_ERROR, "%s: a process of the job cannot be killed%s%s", lock_name,
        names[0] != '\0' ? ": " : "", names);
    return "";
}

/* Takes the orders that have arrived. Returns 0 if redlock is dead. */
static int take_orders(void)
{
    struct order order;
    struct job_end end;
    ssize_t size;

    while ((size = recv(line, &order, sizeof order, MSG_DONTWAIT)) == sizeof order)
        switch (order.what) {
        case DEADLINE:
            guard.deadline_us = order.us;
            break;
        case PASS:
            if (!job_has_ended(&end))
                kill(job_command(), order.number);
            break;
        case SPREAD:
            guard.by_terminal = order.number;
            signal_job(order.number, guard.group);
            break;
        case ASK:
            ask(order.number);
            break;
        case LOSE:
            guard.deadline_us = order.us;
            ask(SIGTERM);
            guard.notice_us = UINT64_MAX; /* the lock is not kept for what is left */
            break;
        case START:
        case SEEN:
            break;
        }
    return size < 0 && errno == EAGAIN;
}

static void send_report(struct report report)
{
    ssize_t sent = send(line, &report, sizeof report, 0);

    (void)sent; /* if redlock is dead, nobody needs it */
}

/* Says what goes on when a command has exited by itself: processes that it has left in the background. */
static void say_what_goes_on(void)
{
    char names[NAMES_MAX];
    unsigned count = job_reap() ? job_name(names, sizeof names) : 0;

    if (count > 0)
        say(LOG_NOTICE,
            "%s: the command has ended; %u process%s of it go%s on without the lock: %s", lock_name,
            count, count == 1 ? "" : "es", count == 1 ? "es" : "", names);
}

/* The job is over. `is_late`: it may have ended only after the deadline. If there is something to say, this process waits until redlock
   closes the line, when the lock is released. */
static void end_guard(int is_late)
{
    struct report over = {job_command(), 0, {0, 0, 0}};
    struct pollfd closed = {line, POLLIN, 0};
    int is_left = job_reap();

    wake_at(UINT64_MAX);
    if (!job_has_ended(&over.end)) { /* it cannot be killed */
        over.end.by_signal = 1;
        over.end.number = SIGKILL;
    }
    over.end.is_late = is_late;
    send_report(over);
    /* Else each process that ends would end the sleep below, and stay a zombie. */
    signal(SIGCHLD, SIG_IGN);
    is_late = is_late && !guard.is_asked; /* else redlock runs, and says it */
    while ((is_left || is_late) && poll(&closed, 1, is_late ? 1000 : -1) > 0 && take_orders())
        is_late = 0; /* redlock runs again */
    if (is_late && closed.revents == 0)
        say(LOG_ERROR,
            "%s: redlock does not run, and the lock is about to expire: the job was killed",
            lock_name);
    if (is_left)
        say_what_goes_on();
    _exit(0);
}

/* Kills the job when its time is over. The message comes later, because a write to stderr may block. */
static void end_in_time(uint64_t now)
{
    char names[NAMES_MAX] = "";
    int is_late = now >= guard.deadline_us;

    if (!is_late && now < guard.limit_us)
        return;
    if (!is_late)
        job_name(names, sizeof names);
    kill_all();
    if (!is_late)
        say(LOG_WARNING, "%s: the job has not ended within %ld.%ld s: it is killed%s%s", lock_name,
            options.kill_after_ms / 1000, options.kill_after_ms % 1000 / 100,
            names[0] != '\0' ? ": " : "", names);
    end_guard(is_late);
}

static void sleep_of_guard(uint64_t wake_us)
{
    struct pollfd from = {line, POLLIN, 0};

    wake_us = first_of(first_of(guard.deadline_us, guard.limit_us), wake_us);
    wake_us = first_of(first_of(guard.ask_us, guard.notice_us), wake_us);
    wake_at(guard.deadline_us);
    sleep_on(&from, 1, UINT64_MAX, wake_us);
    ending_signal(); /* SIGCHLD has ended the sleep, and is done with */
}

static void stand_guard(void)
{
    struct job_end end;

    for (;;) {
        int is_left = job_reap(), has_ended = job_has_ended(&end);
        uint64_t now = now_us(); /* later: so what has ended by this time had ended in time */
        if (has_ended && !guard.is_asked) {
            if (!end.by_signal)
                is_left = 0; /* what the command leaves when it exits is not waited for */
            else if (is_left && guard.ask_us == UINT64_MAX)
                guard.ask_us = now + (uint64_t)REDLOCK_TELLS_MS * 1000;
            else if (is_left && now >= guard.ask_us) /* a terminal has told the rest, too */
                ask(end.number == guard.by_terminal ? 0 : SIGTERM);
        }
        if (!is_left)
            end_guard(now >= guard.deadline_us);
        end_in_time(now);
        if (now >= guard.notice_us)
            say_left(now);
        sleep_of_guard(job_is_plain() && has_ended ? now + (uint64_t)PLAIN_LOOK_MS * 1000
                                                   : UINT64_MAX);
        if (take_orders())
            continue;
        if (!options.keep_going)
            say(LOG_ERROR, "%s: redlock is gone%s", lock_name, kill_all());
        _exit(0);
    }
}

/* A signal that a terminal has sent to the group may have come when the command was not there yet. Then it is pending here, because the
   guard was in that group until now. */
static void pass_pending(pid_t command)
{
    static const int numbers[] = {SIGHUP, SIGINT, SIGQUIT, SIGTSTP};
    sigset_t pending;
    size_t i;

    sigpending(&pending);
    for (i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (sigismember(&pending, numbers[i]))
            kill(command, numbers[i]);
}

/* The system continues the guard if it is stopped at the deadline, or when redlock dies; and it gives the guard the orphans of the job.
   Returns 0, with the reason in errno, if the system denies one of these. */
static int is_prepared(void)
{
#if CLI_LINUX
    if ((!job_is_plain() && prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) ||
        prctl(PR_SET_PDEATHSIG, SIGCONT) != 0)
        return 0;
#endif
    return wake_at(guard.deadline_us);
}

/* The child of redlock. All signals are blocked. */
static void be_guard(char **command, const struct job_setup *setup)
{
    struct report began = {-1, 0, {0, 0, 0}};
    struct order order;
    pid_t self = getpid();
    int is_ready;

    guard.group = getpgrp();
    if (!options.keep_going)
        guard.deadline_us = setup->deadline_us;
    is_ready = is_prepared();
    began.error = errno;
    if (recv(line, &order, sizeof order, 0) != sizeof order)
        _exit(0); /* the command is not to start */
    if (is_ready) {
        began.command = fork_process();
        began.error = errno;
    }
    if (began.command == 0)
        become(command, self, setup);
    if (job_leads_group() && began.command > 0)
        setpgid(began.command, began.command); /* whichever of the two is first */
    become_quiet_process("rl-guard",           /* killall -9 redlock must not kill the guard */
                         line, STDERR_FILENO);
    watch_children();
    job_is_of(began.command);
    if (began.command > 0)
        pass_pending(began.command);
    send_report(began);
    if (began.command < 0)
        _exit(0);
    stand_guard();
}

/* ---- In redlock ---- */

static int open_line(int pair[2])
{
    return socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0 && set_both(pair, F_SETFD, FD_CLOEXEC);
}

/* Orders for which the line had no room: the last one of each kind, which replaces the earlier ones. START: there is none. */
static struct order unsent[LOSE + 1];

/* Does not block, because the guard may not read. Then a signal for the command alone is dropped, and other orders are sent later. */
static void send_order(enum kind what, int number, uint64_t us)
{
    struct order order = {what, number, us};

    unsent[what].what = START;
    if (send(line, &order, sizeof order, MSG_DONTWAIT) < 0 && errno == EAGAIN && what != PASS)
        unsent[what] = order; /* if the guard is dead, job_take says so */
}

/* Returns 1 if the line has no room for some of these orders. */
static int send_unsent(void)
{
    int left = 0, i;

    for (i = START; i <= LOSE; i++) {
        if (unsent[i].what != START)
            send_order(unsent[i].what, unsent[i].number, unsent[i].us);
        left |= unsent[i].what != START;
    }
    return left;
}

/* Waits for the first report, and continues a guard that was stopped. Returns 0 if there is none in time. */
static int is_begun(struct report *began, uint64_t until_us)
{
    struct pollfd reported = {line, POLLIN, 0};
    ssize_t size;

    while (poll(&reported, 1, START_LOOK_MS) <= 0 && now_us() < until_us)
        job_serve_children();
    /* Also when the time is over: this process may have been stopped for so long. */
    size = recv(line, began, sizeof *began, MSG_DONTWAIT);
    if (size < 0 && errno == EAGAIN)
        return 0;
    if (size != sizeof *began)
        began->command = 0; /* the guard is dead: job_take says so */
    return 1;
}

int job_start(char **command, const struct job_setup *setup)
{
    struct report began = {0, 0, {0, 0, 0}};
    int pair[2];

    lock_name = setup->name;
    job_begin();
    if ((!options.keep_going && !wake_at(setup->deadline_us)) || !open_line(pair) ||
        (guard_pid = fork_process()) < 0)
        return -1;
    line = pair[guard_pid == 0];
    close(pair[guard_pid != 0]);
    if (guard_pid == 0)
        be_guard(command, setup);
    if (is_asked_to_end() || now_us() >= setup->deadline_us) {
        job_finish();
        return 0;
    }
    signals_pass_on(); /* not earlier: ALRM ends this process until then, and would be forgotten */
    send_order(START, 0, 0);
    if (!is_begun(&began, setup->deadline_us)) {
        job_take_over(&began.end);
        return 0;
    }
    if (began.command < 0) {
        job_finish();
        errno = began.error;
        return -1;
    }
    job_is_of(began.command);
    return 1;
}

struct pollfd job_watch(void)
{
    return (struct pollfd){line, send_unsent() ? POLLIN | POLLOUT : POLLIN, 0};
}

void job_set_deadline(uint64_t deadline_us)
{
    job_find_strangers(guard_pid); /* again and again: a child that lives may have left orphans */
    if (options.keep_going)
        return;
    send_order(DEADLINE, 0, deadline_us);
    wake_at(deadline_us);
}

void job_pass(int number)
{
    send_order(PASS, number, 0);
}

void job_spread(int number)
{
    send_order(SPREAD, number, 0);
}

void job_ask(int number)
{
    send_order(ASK, number, 0);
}

void job_lose(uint64_t deadline_us)
{
    unsent[DEADLINE].what = START; /* it must not come later than this one */
    send_order(LOSE, 0, deadline_us);
    wake_at(deadline_us);
}

/* The guard is dead. `why`: the end of "the guard ...". */
static void take_over(struct job_end *end, const char *why)
{
    close(line); /* killing needs a descriptor, and there may be no other */
    line = -1;
    say(LOG_ERROR, "%s: the guard %s%s", lock_name, why, kill_all());
    end->by_signal = 1;
    end->number = SIGKILL;
    end->is_late = 0;
    wake_at(UINT64_MAX);
}

int job_take(struct job_end *end)
{
    struct report over;
    ssize_t size = recv(line, &over, sizeof over, MSG_DONTWAIT);

    if (size < 0 && errno == EAGAIN)
        return 0;
    if (size == sizeof over) {
        *end = over.end;
        send_order(SEEN, 0, 0);
        wake_at(UINT64_MAX);
    } else {
        take_over(end, "is gone");
    }
    return 1;
}

void job_take_over(struct job_end *end)
{
    kill(guard_pid, SIGKILL); /* it may not die: the job is killed all the same */
    take_over(end, "did not react in time");
}

void job_serve_children(void)
{
    siginfo_t info = {0};

    if (waitid(P_PID, (id_t)guard_pid, &info, WSTOPPED | WNOHANG) == 0 && info.si_pid == guard_pid)
        kill(guard_pid, SIGCONT);
    if (job_take_strangers(guard_pid) > 0 && guard_pid > 0) /* it may have left orphans */
        job_find_strangers(guard_pid);
}

void job_finish(void)
{
    int status = 0;

    close(line);
    wait_for_child(guard_pid, &status);
    while (waitpid(-1, NULL, WNOHANG) > 0)
        continue;
}
