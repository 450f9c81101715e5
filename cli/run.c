/* run.c - redlock run: holds a lock while a command runs, and ends the command before the lock expires.

   The lock is valid until its deadline D, which each renewal moves. If no renewal has succeeded by D - kill_after, the command
   gets SIGTERM, and SIGKILL at D. A second process, the guard, knows D. The guard also kills the command at D, or at once when
   the supervisor, this process, dies. So neither a killed nor a stopped supervisor leaves a command running without the lock.
   Neither can end a process that leaves the process group (setsid).

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "talk.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <time.h>
#endif

enum { RENEWED_TTL_MIN_MS = 1000 };

static struct session session;

/* The state of the run. */
static struct {
    const char *lock_name; /* for the command: NAME, or NAME/3 of a slot */
    const char *name;      /* for messages; with -a all names */
    pid_t child, guard;    /* 0: there is none */
    int guard_fd;
    int own_group;                             /* the command has its own process group */
    enum { RUNNING, STOPPING, STOPPED } phase; /* STOPPED: there is nothing more to do */
    int lost;                 /* 1: the lock is lost, or was about to be: exit status 79 */
    int at_most;              /* 1: not lost: only the time of --max-hold is over */
    uint64_t acquired_us;     /* T1 of the acquisition */
    uint64_t deadline_us;     /* D */
    uint64_t kill_us;         /* when STOPPING turns to STOPPED, by SIGKILL */
    uint64_t warn_us;         /* when a renewal is late */
    int is_failing;           /* 1: a message has reported a failed renewal */
    int interrupted;          /* 1: Ctrl-C has reached command and supervisor alike */
    redlock_mask up, holding; /* nodes reported as connected; nodes reported to have the lock */
    redlock_mask members;     /* as in the lock, at the last turn */
} run;

/* ---- Options ---- */

static const struct {
    const char *name;
    int number;
} signals[] = {{"HUP", SIGHUP},   {"INT", SIGINT},   {"QUIT", SIGQUIT}, {"TERM", SIGTERM},
               {"USR1", SIGUSR1}, {"USR2", SIGUSR2}, {"KILL", SIGKILL}};

static int stop_signal;
static const char *const on_lost_names[] = {"term", "kill", "none"};
static enum { ON_LOST_TERM, ON_LOST_KILL, ON_LOST_NONE, ON_LOST_UNKNOWN } on_lost;

static void check_options(void)
{
    const char *signal = options.signal;
    long shortest_ms;
    size_t i;

    if (options.ttl_ms < RENEWED_TTL_MIN_MS)
        die(EXIT_USAGE, "--ttl: at least 1 s, as a renewal takes time");
    if (options.kill_after_ms > options.ttl_ms / 3)
        die(EXIT_USAGE, "--kill-after: at most a third of the ttl");
    if (options.max_hold_ms == 0)
        die(EXIT_USAGE, "--max-hold: 0 would end the command at once");
    if (options.max_hold_ms >= 0 && options.kill_after_ms > options.max_hold_ms)
        die(EXIT_USAGE, "--kill-after: at most --max-hold");
    shortest_ms = options.max_hold_ms >= 0 && options.max_hold_ms < options.ttl_ms
                      ? options.max_hold_ms
                      : options.ttl_ms;
    if (options.kill_after_ms < 0)
        options.kill_after_ms = shortest_ms / 6 < 5000 ? shortest_ms / 6 : 5000;
    while (on_lost < ON_LOST_UNKNOWN && strcmp(options.on_lost, on_lost_names[on_lost]) != 0)
        on_lost++;
    if (options.max_hold_ms >= 0 && on_lost == ON_LOST_NONE)
        die(EXIT_USAGE,
            "--max-hold ends the command, and --on-lost none does not: use one of them");
    if (options.foreground && options.new_group)
        die(EXIT_USAGE, "--foreground and --new-group exclude each other");
    if (options.keep && options.min_hold_ms > 0)
        die(EXIT_USAGE, "--keep and --min-hold exclude each other");
    if (strncasecmp(signal, "SIG", 3) == 0)
        signal += 3;
    for (i = 0; i < sizeof signals / sizeof *signals; i++)
        if (strcasecmp(signal, signals[i].name) == 0)
            stop_signal = signals[i].number;
    if (stop_signal == 0)
        die(EXIT_USAGE, "--signal: HUP, INT, QUIT, TERM, USR1, USR2 or KILL");
    if (on_lost == ON_LOST_UNKNOWN)
        die(EXIT_USAGE, "--on-lost: term, kill or none");
    if (options.status_fd >= 0 && /* the command needs 0 to 2 too */
        fcntl((int)options.status_fd, F_SETFD, options.status_fd > 2 ? FD_CLOEXEC : 0) != 0)
        die(EXIT_USAGE, "--status-fd %ld: %s", options.status_fd, strerror(errno));
    if (options.ttl_ms < options.node_timeout_ms * 10)
        say(LOG_WARNING,
            "--node-timeout is more than a tenth of the ttl: a node that hangs delays renewals");
}

/* ---- Names ---- */

/* Copies the name, and all names for messages: the guard overwrites the arguments of the command line. */
static void set_names(const char *name)
{
    static char first[REDLOCK_KEY_MAX + 1], all[1024];
    size_t used = (size_t)snprintf(all, sizeof all, "%s", name);
    unsigned i;

    snprintf(first, sizeof first, "%s", name);
    run.lock_name = first;
    run.name = all;
    for (i = 0; i < options.also_count && used < sizeof all; i++)
        used += (size_t)snprintf(all + used, sizeof all - used, ", %s", options.also[i]);
}

/* ---- The command ---- */

static void set_number(const char *name, unsigned long long number)
{
    char text[24];

    snprintf(text, sizeof text, "%llu", number);
    setenv(name, text, 1);
}

static void add_held(const void *key, size_t size)
{
    const char *above = getenv("REDLOCK_HELD"), *held = held_key(key, size);
    size_t room = (above != NULL ? strlen(above) : 0) + strlen(held) + 24;
    char *list = must_allocate(room, 1);

    snprintf(list, room, "%s%s%s=%ld", above != NULL ? above : "",
             above != NULL && *above != '\0' ? ":" : "", held, (long)getppid());
    setenv("REDLOCK_HELD", list, 1);
    free(list);
}

static void set_environment(void)
{
    const struct redlock_lock *lock = session.lock;
    char id[ID_TEXT];
    unsigned i;

    export_options();
    id_of(id, session.value, strlen(session.value));
    setenv("REDLOCK_NAME", run.lock_name, 1);
    if (options.slots > 0)
        setenv("REDLOCK_SLOT", strrchr(run.lock_name, '/') + 1, 1);
    else
        unsetenv("REDLOCK_SLOT"); /* may be set by a redlock run that called this one */
    setenv("REDLOCK_TOKEN", token_of(&session), 1);
    setenv("REDLOCK_ID", id, 1);
    set_number("REDLOCK_TTL_MS", lock->ttl_ms);
    set_number("REDLOCK_HOLDER_PID", (unsigned long long)getppid());
    if (options.fence)
        set_number("REDLOCK_FENCE", lock->fencing_token);
    else
        unsetenv("REDLOCK_FENCE"); /* likewise */
    add_held(lock->key, lock->key_size);
    for (i = 0; i < lock->extra_key_count; i++)
        add_held(lock->extra_keys[i].bytes, lock->extra_keys[i].size);
    if (options.clear_env) {
        unsetenv("REDLOCK_NODES");
        unsetenv("REDLOCK_AUTH_FILE");
        unsetenv("REDISCLI_AUTH");
    }
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
static void become(char **command, int go, pid_t parent)
{
    char byte;
    int status;

    if (run.own_group)
        setpgid(0, 0);
#ifdef __linux__
    if (on_lost != ON_LOST_NONE)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
    if (read(go, &byte, 1) != 1 || getppid() != parent)
        _exit(EXIT_SYSTEM); /* the parent did not permit the command, or died before prctl */
    set_environment();
    signals_restore();
    execute(command);
    status = errno == ENOENT ? 127 : 126;
    ignore_write_signals(); /* the status is the same if the message cannot be written */
    say(LOG_ERROR, "%s: %s", command[0], strerror(errno));
    _exit(status);
}

/* The command leads a group: its own, or one that it has made, as timeout(1) does in the foreground. */
static int leads_group(void)
{
    pid_t group = getpgid(run.child);

    return run.own_group || group == run.child || group < 0;
}

/* Signals the command, with the group that it leads. Returns 0 if that failed. It is no failure if the command has ended; its group
   may have processes all the same. */
static int kill_command(int number)
{
    if (kill(leads_group() ? -run.child : run.child, number) == 0 || errno == ESRCH)
        return 1;
    say(LOG_ERROR, "the command cannot be signalled: %s", strerror(errno));
    return 0;
}

/* ---- The guard ---- */

/* Sends a deadline to the guard. Does not block: a guard that was stopped reads all deadlines when it continues. */
static void tell_guard(uint64_t deadline_us)
{
    if (run.guard == 0 ||
        write(run.guard_fd, &deadline_us, sizeof deadline_us) == sizeof deadline_us ||
        errno != EPIPE)
        return;
    run.guard = 0;
    if (run.phase == RUNNING)
        say(LOG_WARNING, "the guard process is gone");
}

/* Before the command's pid is free for another process, which the guard would kill. Nobody else might wait for the guard: in a
   container it would stay a zombie. */
static void end_guard(void)
{
    if (run.guard <= 0)
        return;
    kill(run.guard, SIGKILL);
    waitpid(run.guard, NULL, 0);
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

/* Waits for data from a pipe; only the supervisor has the other end. The supervisor writes deadlines; the end of the stream means
   that the supervisor is dead. */
static void stand_guard(int line)
{
    struct pollfd fds[2] = {{line, POLLIN, 0}, {-1, POLLIN, 0}};
    uint64_t deadline_us = run.deadline_us;
    sigset_t all;
    int fd;

    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    setpgid(0, 0);
    rename_process("rl-guard"); /* killall -9 redlock must not kill the guard */
    for (fd = 0; fd < 1024;
         fd++) /* the reader of an inherited pipe would wait until the guard ends */
        if (fd != line && fd != STDERR_FILENO)
            close(fd);
    fds[1].fd = open_alarm();
    for (;;) {
        uint64_t now = now_us(), left_ms = deadline_us > now ? (deadline_us - now + 999) / 1000 : 0;
        set_alarm(fds[1].fd, deadline_us);
        poll(fds, 2, left_ms > 60000 ? 60000 : (int)left_ms);
        if (fds[0].revents != 0) {
            if (read(line, &deadline_us, sizeof deadline_us) != sizeof deadline_us) {
                if (kill_command(SIGKILL))
                    say(LOG_ERROR, "%s: the supervisor is gone; the command was killed", run.name);
                _exit(0);
            }
        } else if (now_us() >= deadline_us) {
            int killed = kill_command(SIGKILL);
            if (poll(fds, 1, 1000) == 0 && killed) /* else the supervisor killed it */
                say(LOG_ERROR,
                    "%s: the supervisor does not react, and the lock is about to expire; the "
                    "command was killed",
                    run.name);
            _exit(0);
        }
    }
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

/* Forks the command, which waits, and the guard. Then the command is executed, unless a signal has asked this process to end.
   Returns 1 if the command is executed; 0 if it is not, and its process ends; -1 if the system denies a process or a pipe. */
static int start(char **command)
{
    pid_t parent = getpid();
    int guarded = !options.no_guard && on_lost != ON_LOST_NONE;
    int go[2], line[2], goes;

    run.own_group = !options.foreground && (options.new_group || !is_in_foreground());
    if (run.own_group) /* the terminal does not send Ctrl-Z to the command then */
        signals_add_stop();
    if (pipe2(go, O_CLOEXEC) != 0 || pipe2(line, O_CLOEXEC) != 0 || (run.child = fork()) < 0)
        return -1;
    if (run.child == 0) {
        close(go[1]);
        close(line[1]);
        become(command, go[0], parent);
    }
    close(go[0]);
    if (run.own_group)
        setpgid(run.child, run.child);
    if (guarded && (run.guard = fork()) < 0)
        return -1; /* when this process exits, the pipe is closed, and the child ends */
    if (guarded && run.guard == 0) {
        close(go[1]);
        close(line[1]);
        stand_guard(line[0]);
    }
    close(line[0]);
    fcntl(line[1], F_SETFL, O_NONBLOCK);
    run.guard_fd = line[1];
    goes = is_asked_to_end() ? 0 : write(go[1], "", 1) == 1 ? 1 : -1;
    close(go[1]);
    return goes;
}

/* ---- While it runs ---- */

static uint64_t end_us(void)
{
    uint64_t most_us = options.max_hold_ms < 0
                           ? UINT64_MAX
                           : run.acquired_us + (uint64_t)options.max_hold_ms * 1000;

    return run.deadline_us < most_us ? run.deadline_us : most_us;
}

static uint64_t stop_us(void)
{
    uint64_t margin_us = (uint64_t)options.kill_after_ms * 1000, end = end_us();

    return end > margin_us ? end - margin_us : 0;
}

/* The deadline has moved. */
static void renewed(void)
{
    run.deadline_us = session.lock->valid_until_us;
    run.warn_us = options.no_renew ? UINT64_MAX /* the lock is renewed every third of the ttl */
                                   : now_us() + (uint64_t)session.lock->ttl_ms * 400;
    tell_guard(end_us());
}

/* Ends the command, by kill_us at the latest. This is final, because a renewal that succeeds now cannot take the signal back. */
static void stop(uint64_t kill_us, const char *why)
{
    run.lost = 1;
    run.phase = on_lost == ON_LOST_NONE ? STOPPED : STOPPING;
    run.kill_us = on_lost == ON_LOST_KILL ? 0 : kill_us;
    redlock_cancel(&session.client, session.lock);
    tell_guard(kill_us);
    if (on_lost == ON_LOST_TERM) { /* before the message: the reader of stderr may be slow */
        kill_command(stop_signal);
        kill_command(SIGCONT); /* a stopped command would not get the signal */
    }
    event("lost");
    say(LOG_ERROR, "%s: %s%s", run.name, why,
        on_lost == ON_LOST_NONE ? "; the command goes on" : "; the command is ended");
}

static long seconds_left(uint64_t now)
{
    return run.deadline_us > now ? (long)((run.deadline_us - now) / 1000000) : 0;
}

/* The nodes that have the lock. A node that has not answered the present extension has it as before. */
static redlock_mask find_holding(void)
{
    const struct redlock_lock *lock = session.lock;
    unsigned gone = lock->refused | (run.members & ~(unsigned)lock->members);

    run.members = lock->members;
    return (redlock_mask)((run.holding & ~gone) | granted_by(&session));
}

/* With -v: says which nodes were lost or came back since the last turn. */
static void look_at_nodes(void)
{
    redlock_mask holding = find_holding();
    unsigned i;

    for (i = 0; i < target_count; i++) {
        const struct redlock_node *node = &session.nodes[i];
        const char *address = targets[i].url.address;
        redlock_mask bit = (redlock_mask)(1U << i);
        int is_up = (run.up & bit) != 0;
        if (is_up && node->state == REDLOCK_NODE_DOWN)
            say(LOG_DEBUG, "%s: the connection to %s is lost: %s", run.name, address,
                error_of(&session, i));
        if (!is_up && node->state == REDLOCK_NODE_READY)
            say(LOG_DEBUG, "%s: connected to %s", run.name, address);
        if ((is_up && node->state == REDLOCK_NODE_DOWN) ||
            (!is_up && node->state == REDLOCK_NODE_READY))
            run.up = (redlock_mask)(run.up ^ bit);
        if (((run.holding ^ holding) & bit) != 0)
            say(LOG_DEBUG, "%s: %s %s", run.name, address,
                (holding & bit) != 0 ? "has the lock" : "does not have the lock any more");
    }
    run.holding = holding;
}

/* 1: an operation on the lock has completed. Operations on abandoned slots are ignored. */
static int has_completed(void)
{
    const struct redlock_lock *lock;

    while ((lock = redlock_next_completed(&session.client)) != NULL)
        if (lock == session.lock)
            return 1;
    return 0;
}

/* Checks the lock after each turn of the loop. */
static void look_at_lock(uint64_t now)
{
    struct redlock_lock *lock = session.lock;
    int ended = has_completed();

    if (run.phase != RUNNING)
        return;
    look_at_nodes();
    if (lock->valid_until_us > run.deadline_us) { /* lock->extended counts to 65,535 only */
        renewed();
        event("renewed %lu", (unsigned long)redlock_remaining_ms(&session.client, lock));
        say(run.is_failing ? LOG_NOTICE : LOG_DEBUG, "%s: %s; %ld s left", run.name,
            run.is_failing ? "renewal works again" : "renewed", seconds_left(now));
        run.is_failing = 0;
    }
    if (ended &&
        lock->status == REDLOCK_EXTEND_LIMIT) { /* the library has a limit, this program has none */
        redlock_auto_extend_start(&session.client, lock, UINT16_MAX - 1);
    } else if (ended && now < stop_us()) {
        uint64_t soon = now + (uint64_t)options.kill_after_ms * 1000;
        stop(soon < end_us() ? soon : end_us(), status_text(lock->status));
    } else if (now >= stop_us()) {
        run.at_most = end_us() < run.deadline_us;
        stop(end_us(), run.at_most        ? "the time of --max-hold is over"
                       : options.no_renew ? "the ttl is over, and --no-renew was given"
                                          : "the lock was not renewed in time");
    }
    if (run.phase == RUNNING && now >= run.warn_us) {
        unsigned n = count_nodes(lock->granted);
        run.is_failing = 1;
        event("renew-failed %u/%u", n, target_count);
        say(LOG_WARNING, "%s: renewal failed: %u of %u nodes confirmed it; %ld s left", run.name, n,
            target_count, seconds_left(now));
        say_errors(&session, LOG_WARNING);
        run.warn_us = now + (uint64_t)lock->ttl_ms * 200;
    }
}

/* Forwards signals to the command. A signal from the terminal has reached the command already if it is in the same group. A
   command such as timeout(1) leaves that group. */
static void forward_signals(void)
{
    int number, by_terminal;

    while ((number = next_signal(&by_terminal)) != 0) {
        run.interrupted |= number == SIGINT && by_terminal && !run.own_group;
        if (number == SIGCHLD || (by_terminal && getpgid(run.child) == getpgrp()))
            continue;
        if (!run.own_group && (number == SIGCONT || number == SIGWINCH))
            continue;
        kill_command(number);
        if (number == SIGTSTP &&
            by_terminal) { /* until then the shell does not have its terminal back */
            stop_by_terminal();
            kill_command(SIGCONT);
        }
        if (is_ending(number)) /* a stopped command would not get the signal */
            kill_command(SIGCONT);
    }
}

static int has_ended(siginfo_t *end)
{
    return waitid(P_PID, (id_t)run.child, end, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           end->si_pid == run.child;
}

/* The first process of a container is the parent of the processes that the command leaves behind. Command and guard are not
   removed here: their pids are still used. */
static void reap_orphans(void)
{
    siginfo_t end = {0};

    while (waitid(P_ALL, 0, &end, WEXITED | WNOHANG | WNOWAIT) == 0 && end.si_pid != 0 &&
           end.si_pid != run.child && end.si_pid != run.guard) {
        waitpid(end.si_pid, NULL, 0);
        end.si_pid = 0;
    }
}

/* Reports that the command is stopped. No message after Ctrl-Z in the same group, because the shell reports that. */
static void report_stop(void)
{
    siginfo_t stop = {0};

    if (waitid(P_PID, (id_t)run.child, &stop, WSTOPPED | WNOHANG) != 0 ||
        stop.si_pid != run.child || (stop.si_status == SIGTSTP && !run.own_group))
        return;
    say(LOG_WARNING, "%s: the command is stopped%s; the lock is still renewed", run.name,
        stop.si_status == SIGTTIN || stop.si_status == SIGTTOU
            ? " because it uses the terminal, which needs --foreground"
            : "");
}

/* Waits for the end of the command. It stays a zombie, so that no other process gets its pid yet. */
static siginfo_t supervise(void)
{
    siginfo_t end = {0};

    for (;;) {
        uint64_t now =
            now_us(); /* before has_ended(), because this process may be paused in between */
        int ended = has_ended(&end);
        if (ended && run.guard != 0 && end.si_code == CLD_EXITED)
            return end; /* it ended in time: otherwise the guard would have killed it */
        if (ended)
            is_asked_to_end(); /* takes a Ctrl-C that came after the last turn, and ended the command */
        look_at_lock(now);
        if (run.phase == STOPPING && now >= run.kill_us) {
            kill_command(SIGKILL);
            run.phase = STOPPED;
        }
        forward_signals();
        if (ended)
            return end;
        report_stop();
        reap_orphans();
        turn(&session, run.phase == RUNNING    ? (stop_us() < run.warn_us ? stop_us() : run.warn_us)
                       : run.phase == STOPPING ? run.kill_us
                                               : now + 1000000);
    }
}

/* ---- The end ---- */

/* The command has ended after the signal; the rest of its group has time until kill_us. A zombie counts as a member, so the
   command's own is removed first, and then those of orphans. */
static void end_group(void)
{
    waitpid(run.child, NULL, 0);
    for (reap_orphans(); kill(-run.child, 0) == 0 && now_us() < run.kill_us; reap_orphans())
        poll(NULL, 0, 20);
    kill_command(SIGKILL);
}

/* Gives each key a random value, and a TTL that ends with --min-hold, later or earlier than before. So the token is no longer
   valid, as after a release: an extension with it fails from now on. A lock of another client has another value, so this
   script does not change it, even if the script runs late. */
static enum redlock_status keep_keys_for(uint64_t rest_us)
{
    static const char script[] =
        "local s=0 for _,k in ipairs(KEYS)do local v=redis.call('get',k)if v==ARGV[1]then "
        "redis.call('set',k,ARGV[2],'PX',ARGV[3])elseif v then s=1 elseif s==0 then s=2 end end "
        "return s"; /* 0: all keys had the token; 1: another client holds one; 2: one is gone */
    const struct redlock_lock *lock = session.lock;
    char value[VALUE_MAX + 1], rest_ms[24], count[12], keys[ALSO_MAX][REDLOCK_KEY_MAX + 1];
    const char *words[ALSO_MAX + 7] = {"EVAL", script, count, session.key};
    unsigned i, at = 4, says[3] = {0}, silent = 0;

    for (i = 0; i < lock->extra_key_count; i++, at++) {
        snprintf(keys[i], sizeof keys[i], "%.*s", (int)lock->extra_keys[i].size,
                 (const char *)lock->extra_keys[i].bytes);
        words[at] = keys[i];
    }
    snprintf(count, sizeof count, "%u", at - 3);
    words[at++] = session.value;
    words[at++] = value;
    words[at++] = rest_ms;
    put_random(value, TOKEN_DIGITS / 2);
    strcpy(value + TOKEN_DIGITS, session.value + TOKEN_DIGITS);
    snprintf(rest_ms, sizeof rest_ms, "%llu", (unsigned long long)(rest_us + 999) / 1000);
    talks_open((uint32_t)options.node_timeout_ms);
    talks_ask((uint32_t)options.node_timeout_ms, at, words);
    for (i = 0; i < target_count; i++) {
        const struct talk_item *answer = &talks[i].item[0];
        if (talks[i].items > 0 && answer->kind == RESP_INTEGER && answer->integer >= 0 &&
            answer->integer <= 2) {
            says[answer->integer]++;
        } else {
            silent++;
            talk_note_error(&talks[i]);
        }
        memcpy(session.nodes[i].error, talks[i].node.error, sizeof talks[i].node.error);
    }
    talks_close();
    return says[0] >= quorum()            ? REDLOCK_OK
           : says[0] + silent >= quorum() ? REDLOCK_UNCONFIRMED
           : says[1] > 0                  ? REDLOCK_LOST
                                          : REDLOCK_EXPIRED;
}

static void end_hold(void)
{
    uint64_t now = now_us(), hold_us = run.acquired_us + (uint64_t)options.min_hold_ms * 1000;
    struct redlock_lock *lock = session.lock;
    enum redlock_status status;
    int held = !run.lost || run.at_most;

    if (lock->status == REDLOCK_PENDING) /* ends the renewals */
        redlock_cancel(&session.client, lock);
    while (lock->status == REDLOCK_PENDING)
        turn(&session, UINT64_MAX);
    redlock_next_completed(&session.client);
    if (options.keep) {
        if (!run.lost)
            session_settle(&session);
        redlock_abandon(&session.client, lock);
        return;
    }
    if (options.min_hold_ms > 0 && hold_us > now + 50000 && held) {
        status = keep_keys_for(hold_us - now);
        redlock_abandon(&session.client, lock);
    } else {
        status = session_release(&session);
        event("released %u/%u", count_nodes(lock->granted), target_count);
    }
    if (held)
        status = look_for_loss(&session, run.name, status);
    if (status == REDLOCK_LOST && held) {
        say(LOG_ERROR, "%s: another client took the name before the command ended", run.name);
        run.lost = 1;
    } else if (status != REDLOCK_OK && held) {
        say(LOG_WARNING, "%s: %s", run.name, status_text(status));
        say_errors(&session, LOG_WARNING);
    }
}

static int status_of(const siginfo_t *end)
{
    return end->si_code == CLD_EXITED ? end->si_status : 128 + end->si_status;
}

/* NAME COMMAND..., NAME -- COMMAND..., or NAME -c 'SHELL COMMAND'. */
static char **command_of(int count, char **words)
{
    static char shell[] = "/bin/sh", dash_c[] = "-c";
    static char *by_shell[4] = {shell, dash_c, NULL, NULL};

    if (count >= 2 && (strcmp(words[1], "-c") == 0 || strcmp(words[1], "--command") == 0)) {
        if (count != 3)
            die(EXIT_USAGE, "run: -c takes one word, in quotes");
        by_shell[2] = words[2];
        return by_shell;
    }
    words++;
    if (count >= 2 && strcmp(words[0], "--") == 0)
        words++;
    if (count < 2 || words[0] == NULL)
        die(EXIT_USAGE, "run: NAME and COMMAND are required");
    return words;
}

/* Before the command began: releases the lock, and ends this process by the signal that asked for it. */
static void withdraw(void)
{
    end_guard();
    if (run.child > 0)
        waitpid(run.child, NULL, 0);
    session_release(&session);
    session_finish(&session);
    session_close(&session);
    end_by_signal();
}

static void begin_hold(void)
{
    char id[ID_TEXT];
    unsigned i;

    may_wait = 0;
    forget_other_signals(); /* they came before the command: it would have no handler for them yet */
    run.acquired_us = now_us();
    run.deadline_us = session.lock->valid_until_us;
    id_of(id, session.value, strlen(session.value));
    event("acquired %s %lu", id,
          (unsigned long)redlock_remaining_ms(&session.client, session.lock));
    run.holding = granted_by(&session);
    run.members = session.lock->members;
    for (i = 0; i < target_count; i++)
        run.up = (redlock_mask)(run.up | (session.nodes[i].state == REDLOCK_NODE_READY) << i);
    say_acquired(&session, run.name);
}

/* The lock that the options ask for. */
static void open_lock(const char *name)
{
    if (options.slots > 0 && options.also_count > 0)
        die(EXIT_USAGE, "--slots and -a exclude each other: a slot has one name");
    if (options.fence && options.also_count > 0)
        die(EXIT_USAGE, "--fence and -a exclude each other: a fencing token belongs to one name");
    session_open(&session, name);
    if (options.slots > 0)
        session_slots(&session, name, (unsigned)options.slots);
    if (options.also_count > 0)
        session_extra(&session, options.also, options.also_count);
    session_sign(&session);
}

/* Acquires the lock, or exits. */
static enum redlock_status take_lock(void)
{
    enum redlock_status status = take(&session, run.name);

    if (is_asked_to_end())
        withdraw();
    if (status == REDLOCK_OK && options.slots > 0)
        run.lock_name = run.name = session.key + strlen(options.prefix);
    return status;
}

int verb_run(int count, char **words)
{
    char **command = command_of(count, words);
    enum redlock_status status;
    siginfo_t end;
    int goes;

    set_names(words[0]);
    nodes_load();
    check_options();
    if (options.label == NULL)
        options.label =
            strrchr(command[0], '/') != NULL ? strrchr(command[0], '/') + 1 : command[0];
    open_lock(words[0]);
    status = take_lock();
    if (status != REDLOCK_OK) {
        session_finish(&session);
        session_close(&session);
        return explain(&session, run.name, status);
    }
    begin_hold();
    goes = start(command);
    if (goes == 0)
        withdraw();
    if (goes < 0) {
        say(LOG_ERROR, "the command cannot be started: %s", strerror(errno));
        session_release(&session);
        session_close(&session);
        return EXIT_SYSTEM;
    }
    renewed();
    if (!options.no_renew)
        redlock_auto_extend_start(&session.client, session.lock, UINT16_MAX - 1);
    end = supervise();
    event("exit %d", status_of(&end));
    if (run.phase == STOPPING && leads_group())
        end_group();
    end_guard();
    waitpid(run.child, NULL, 0);
    end_hold();
    session_finish(&session);
    session_close(&session);
    if (run.lost && !options.preserve_status)
        return EXIT_LOST;
    if (run.interrupted && end.si_code == CLD_KILLED && end.si_status == SIGINT)
        end_by(SIGINT); /* so that a loop of a shell ends, as it would without this program */
    return status_of(&end);
}
