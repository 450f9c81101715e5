/* process.c - signals, children, clock, sleep and name of the process; what /proc tells. Calls no other file of the program.

   A handler writes each signal into a pipe, which ends sleep_on. So a signal interrupts nothing else, and signals are read in the
   order in which they came.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#if CLI_LINUX
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#endif

/* ---- Name ---- */

static char *words_begin, *words_end; /* of the command line that the system shows */

void process_begin(int count, char **words)
{
    if (count == 0)
        return;
    words_begin = words[0];
    words_end = words[count - 1] + strlen(words[count - 1]) + 1;
}

void rename_process(const char *name)
{
    size_t room = (size_t)(words_end - words_begin);

#if CLI_LINUX
    prctl(PR_SET_NAME, name);
#endif
    memset(words_begin, 0, room);
    snprintf(words_begin, room, "%s", name);
}

/* Closes the descriptors from the first to the last. */
static void close_range_of(int first, int last)
{
    int fd;

#if CLI_LINUX && defined(SYS_close_range)
    if (first > last || syscall(SYS_close_range, (unsigned)first, (unsigned)last, 0U) == 0)
        return;
#endif
    for (fd = first; fd <= last && fd < 1024; fd++)
        close(fd);
}

void become_quiet_process(const char *name, int line, int other)
{
    int low = line < other ? line : other, high = line < other ? other : line;
    sigset_t all;

    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    setsid();
    rename_process(name);
    close_range_of(0, low - 1);
    close_range_of(low + 1, high - 1);
    close_range_of(high + 1, 0x7fffffff);
}

size_t read_proc(long pid, const char *file, char *text, size_t room)
{
    size_t used = 0;
    ssize_t size = 1;
    char path[64];
    int fd;

    snprintf(path, sizeof path, "/proc/%ld/%s", pid, file);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && used < room - 1 && (size = read(fd, text + used, room - 1 - used)) > 0)
        used += (size_t)size;
    if (fd >= 0)
        close(fd);
    text[used] = '\0';
    return used;
}

/* ---- Signals ---- */

/* The number of SIGRTMIN+3 where systemd and docker send it. Each C library keeps another number of these signals for itself. */
enum { STOP_OF_A_CONTAINER = 37 };

/* Handled from signals_begin on. */
static const int at_begin[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGTERM,
                               SIGUSR1, SIGUSR2, SIGCHLD, SIGTTIN};
/* Handled from signals_begin on, too: they end this process, which withdraws from the nodes first, until they are for the command. */
static const int fatal[] = {SIGALRM, SIGVTALRM,          SIGPROF, SIGIO,
#ifdef __linux__
                            SIGPWR,  STOP_OF_A_CONTAINER
#endif
};
/* Handled from signals_pass_on on. */
static const int for_command[] = {SIGWINCH, SIGTTOU};

/* The signals of a write: nobody reads any more; the file must not grow; a process in the background must not print. */
static const int write_signals[] = {SIGPIPE, SIGXFSZ, SIGTTOU};

#define LENGTH(array) (sizeof(array) / sizeof *(array))

enum { BY_SYSTEM = 0x80 }; /* beside the number of a signal, in the pipe */

static int pipe_in = -1, pipe_out = -1; /* the pipe of the signals: its read end, its write end */
static int timer = -1;                  /* of sleep_on; -1: none yet, or the system has none */
#if CLI_LINUX
/* The timers of wake_at go off so long after its time. One is not enough: a process that is stopped when its timer has gone off, and before
   it has acted, would stay stopped. */
static const unsigned waker_ms[] = {0, 20, 100, 1000};
static timer_t wakers[LENGTH(waker_ms)];
static unsigned waker_count; /* that this process has created */
#endif
static int asked_by;  /* see ending_signal */
static int passes_on; /* 1: signals_pass_on was called */
static struct sigaction inherited_write_signals[LENGTH(write_signals)];
static sigset_t inherited_mask;

int set_both(const int line[2], int what, int flags)
{
    if (fcntl(line[0], what, flags) == 0 && fcntl(line[1], what, flags) == 0)
        return 1;
    close(line[0]);
    close(line[1]);
    return 0;
}

int open_pipe(int line[2])
{
    return pipe(line) == 0 && set_both(line, F_SETFD, FD_CLOEXEC);
}

int are_descriptors_left(unsigned count)
{
    int fds[2 * SLEEP_MAX], error;
    unsigned n = 0;

    while (n < count && n < LENGTH(fds) && (fds[n] = dup(pipe_in)) >= 0)
        n++;
    error = errno;
    count -= n;
    while (n > 0)
        close(fds[--n]);
    errno = error;
    return count == 0;
}

/* 1: no process has sent the signal. */
static int is_of_system(const siginfo_t *info)
{
    return info->si_code >= 0 && info->si_code != SI_USER && info->si_code != SI_QUEUE;
}

static void note(int number, siginfo_t *info, void *context)
{
    uint8_t byte = (uint8_t)(number | (is_of_system(info) ? BY_SYSTEM : 0));
    int before = errno;
    ssize_t written = write(pipe_out, &byte, 1);

    (void)written; /* if the pipe is full, it ends sleep_on already */
    (void)context;
    errno = before;
}

/* Blocks or unblocks one signal. */
static void set_mask(int how, int number)
{
    sigset_t mask;

    sigemptyset(&mask);
    sigaddset(&mask, number);
    sigprocmask(how, &mask, NULL);
}

/* Handles a signal. One that the caller ignores stays ignored: nohup ignores HUP, `&` ignores INT. */
static void handle(int number)
{
    struct sigaction action = {0}, inherited;

    if (sigaction(number, NULL, &inherited) == 0 && inherited.sa_handler == SIG_IGN &&
        number != SIGCHLD)
        return;
    action.sa_sigaction = note;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    sigaction(number, &action, NULL);
    set_mask(SIG_UNBLOCK, number);
}

static void stop_handling(int number)
{
    struct sigaction action;

    if (sigaction(number, NULL, &action) == 0 && (action.sa_flags & SA_SIGINFO) != 0 &&
        action.sa_sigaction == note)
        signal(number, SIG_DFL);
}

void ignore_write_signals(void)
{
    struct sigaction action = {0};
    size_t i;

    action.sa_handler = SIG_IGN;
    for (i = 0; i < LENGTH(write_signals); i++)
        sigaction(write_signals[i], &action, &inherited_write_signals[i]);
}

static int open_signal_pipe(void)
{
    int line[2];

    if (!open_pipe(line) || !set_both(line, F_SETFL, O_NONBLOCK)) /* it would block next_signal */
        return 0;
    pipe_in = line[0];
    pipe_out = line[1];
    return 1;
}

int signals_begin(void)
{
    size_t i;

    if (pipe_in >= 0)
        return 1;
    if (!open_signal_pipe())
        return 0;
    sigprocmask(SIG_BLOCK, NULL, &inherited_mask);
    for (i = 0; i < LENGTH(at_begin); i++)
        handle(at_begin[i]);
    for (i = 0; i < LENGTH(fatal); i++)
        handle(fatal[i]);
    ignore_write_signals();
    return 1;
}

void signals_pass_on(void)
{
    size_t i;

    /* SIGTTOU is the last of these. It stops the job; a message is printed all the same (text.c). */
    sigaction(SIGTTOU, &inherited_write_signals[LENGTH(write_signals) - 1], NULL);
    for (i = 0; i < LENGTH(for_command); i++)
        handle(for_command[i]);
    passes_on = 1;
}

void signals_restore(void)
{
    size_t i;

    for (i = 0; i < LENGTH(at_begin); i++) /* SIGCHLD was ignored, maybe: that would break wait() */
        stop_handling(at_begin[i]);
    for (i = 0; i < LENGTH(for_command); i++)
        stop_handling(for_command[i]);
    for (i = 0; i < LENGTH(fatal); i++)
        stop_handling(fatal[i]);
    for (i = 0; i < LENGTH(write_signals); i++)
        sigaction(write_signals[i], &inherited_write_signals[i], NULL);
    sigprocmask(SIG_SETMASK, &inherited_mask, NULL);
}

/* What the signal does to a process that does not handle it. */
static void raise_default(int number)
{
    signal(number, SIG_DFL);
    raise(number);
    set_mask(SIG_UNBLOCK, number);
}

void stop_by_terminal(int number)
{
    raise_default(number);
    handle(number);
}

/* The terminal sends these to the whole group in the foreground, or in the background. When it hangs up, only the leader of the
   session gets SIGHUP. */
static int is_of_terminal(int number)
{
    return number == SIGINT || number == SIGQUIT || number == SIGWINCH || number == SIGTTIN ||
           number == SIGTTOU || (number == SIGHUP && getsid(0) != getpid());
}

int next_signal(int *by_terminal)
{
    uint8_t byte;

    if (pipe_in < 0 || read(pipe_in, &byte, 1) != 1)
        return 0;
    *by_terminal = (byte & BY_SYSTEM) != 0 && is_of_terminal(byte & ~BY_SYSTEM);
    return byte & ~BY_SYSTEM;
}

int signals_descriptor(void)
{
    return pipe_in;
}

int is_ending(int number)
{
    return number == SIGHUP || number == SIGINT || number == SIGQUIT || number == SIGTERM;
}

/* 1: the signal is for this process, and ends it as it would without a handler. */
static int is_fatal(int number)
{
    size_t i = 0;

    while (i < LENGTH(fatal) && fatal[i] != number)
        i++;
    return i < LENGTH(fatal) && !passes_on;
}

int ending_signal(void)
{
    int number, by_terminal;

    while ((number = next_signal(&by_terminal)) != 0)
        if (asked_by == 0 && (is_ending(number) || is_fatal(number)))
            asked_by = number;
        else if (number == SIGTTIN && by_terminal) /* another process of the group has read */
            stop_by_terminal(number);
    return asked_by;
}

int is_asked_to_end(void)
{
    return ending_signal() != 0;
}

void end_by(int number)
{
    raise_default(number);
    _exit(128 + number);
}

void end_by_signal(void)
{
    end_by(ending_signal());
}

/* ---- Children ---- */

pid_t fork_process(void)
{
    sigset_t all, before;
    pid_t pid;

    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    pid = fork();
    if (pid != 0) {
        sigprocmask(SIG_SETMASK, &before, NULL);
        return pid;
    }
    close(pipe_in); /* pipe and timer are those of the parent */
    close(pipe_out);
    close(timer);
    pipe_in = pipe_out = timer = -1;
#if CLI_LINUX
    waker_count = 0; /* the system does not copy them */
#endif
    return 0;
}

void watch_children(void)
{
    if (open_signal_pipe())
        handle(SIGCHLD);
}

int wait_for_child(pid_t child, int *status)
{
    uint64_t until_us = now_us() + (uint64_t)KILLED_MS * 1000;
    int pause_ms = 1;
    pid_t taken;

    while ((taken = waitpid(child, status, WNOHANG | WUNTRACED)) == 0 ||
           (taken == child && WIFSTOPPED(*status))) {
        if (taken == child)
            kill(child, SIGCONT);
        if (now_us() >= until_us)
            return 0;
        poll(NULL, 0, pause_ms);
        pause_ms = pause_ms < 50 ? pause_ms * 2 : 50;
    }
    return taken == child;
}

/* ---- Clock and sleep ---- */

/* How late this process must be to have been paused. */
enum { PAUSE_US = 200000 };

static uint64_t woke_us;   /* when this process was awake last */
static uint64_t paused_us; /* see last_pause_us */

uint64_t now_us(void)
{
    return redlock_posix()->now_us(NULL);
}

short poll_events(unsigned wanted)
{
    return (short)((wanted & REDLOCK_READABLE ? POLLIN : 0) |
                   (wanted & REDLOCK_WRITABLE ? POLLOUT : 0));
}

int poll_ms(uint64_t until_us, uint64_t now)
{
    if (until_us == UINT64_MAX)
        return -1;
    return now < until_us ? (int)((until_us - now + 999) / 1000) : 0;
}

#if CLI_LINUX
/* A time of now_us() for a timer. UINT64_MAX: never. */
static struct itimerspec timer_time(uint64_t us)
{
    struct itimerspec at = {{0, 0}, {0, 0}};

    if (us != UINT64_MAX) {
        at.it_value.tv_sec = (time_t)(us / 1000000);
        at.it_value.tv_nsec = (long)(us % 1000000) * 1000 + 1; /* 0 would mean never */
    }
    return at;
}
#endif

/* Sets the timer to a time of now_us(), which counts during suspend. The timeout of poll() does not count then, and would end too
   late. Returns 0 if the system has no such timer. */
static int set_timer(uint64_t us)
{
#if CLI_LINUX
    struct itimerspec at = timer_time(us);

    if (timer < 0)
        timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC);
    return timer >= 0 && timerfd_settime(timer, TFD_TIMER_ABSTIME, &at, NULL) == 0;
#else
    (void)us;
    return 0;
#endif
}

int wake_at(uint64_t us)
{
#if CLI_LINUX
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGCONT};
    struct itimerspec at;
    unsigned i;

    for (i = 0; i < (us != UINT64_MAX ? LENGTH(waker_ms) : waker_count); i++) {
        if (i == waker_count && timer_create(CLOCK_BOOTTIME, &event, &wakers[i]) != 0)
            return 0;
        waker_count += i == waker_count;
        at = timer_time(us != UINT64_MAX ? us + (uint64_t)waker_ms[i] * 1000 : us);
        if (timer_settime(wakers[i], TIMER_ABSTIME, &at, NULL) != 0)
            return 0;
    }
#else
    (void)us;
#endif
    return 1;
}

/* The timeout of poll(), in milliseconds: -1 if the timer or the pipe of the signals ends it. */
static int timeout_until(uint64_t us, uint64_t now)
{
    uint64_t most_ms = pipe_in < 0 ? 50 : 1000; /* what nothing announces is looked for */

    if (us <= now)
        return 0;
    if (set_timer(us) && pipe_in >= 0)
        return -1;
    return (us - now) / 1000 < most_ms ? poll_ms(us, now) : (int)most_ms;
}

/* This process runs now, and should have run at `due_us`. */
static void note_delay(uint64_t due_us, uint64_t now)
{
    if (now > due_us && now - due_us > PAUSE_US)
        paused_us += now - due_us;
}

void sleep_on(struct pollfd *fds, unsigned count, uint64_t wait_us, uint64_t until_us)
{
    struct pollfd all[SLEEP_MAX + 2];
    uint64_t begin_us = now_us(), end_us;
    int timeout_ms;

    if (wait_us < UINT64_MAX - begin_us && begin_us + wait_us < until_us)
        until_us = begin_us + wait_us;
    if (until_us < begin_us)
        until_us = begin_us;
    timeout_ms = timeout_until(until_us, begin_us);
    memcpy(all, fds, count * sizeof *fds);
    all[count] = (struct pollfd){pipe_in, POLLIN, 0};
    all[count + 1] = (struct pollfd){timer, POLLIN, 0};
    if (poll(all, count + 2, timeout_ms) > 0)
        memcpy(fds, all, count * sizeof *fds);
    end_us = now_us();
    note_delay(woke_us, begin_us);
    note_delay(until_us, end_us);
    woke_us = end_us;
}

uint64_t last_pause_us(uint64_t *now)
{
    uint64_t pause_us;

    *now = now_us();
    note_delay(woke_us, *now);
    woke_us = *now;
    pause_us = paused_us;
    paused_us = 0;
    return pause_us;
}
