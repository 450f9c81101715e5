/* process.c - signals, clock, sleep and name of the process; what /proc tells. Calls no other file of the program.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "cli.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
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

#ifdef __linux__
    prctl(PR_SET_NAME, name);
#endif
    memset(words_begin, 0, room);
    snprintf(words_begin, room, "%s", name);
}

void become_quiet_process(const char *name, int line, int other)
{
    sigset_t all;
    int fd;

    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    setpgid(0, 0);
    rename_process(name);
    for (fd = 0; fd < 1024; fd++)
        if (fd != line && fd != other)
            close(fd);
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

/* The signals that the program handles. They are blocked except in sleep_on and is_asked_to_end, so that no handler
   runs between two statements. */
static const int handled[] = {SIGHUP,  SIGINT,   SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2,
                              SIGCHLD, SIGWINCH, SIGCONT, SIGTSTP}; /* SIGTSTP is the last */
enum { HANDLED = sizeof handled / sizeof *handled };

/* The signals of a write: nobody reads any more; the file must not grow; a process in the background must not print. */
static const int write_signals[] = {SIGPIPE, SIGXFSZ, SIGTTOU};
enum { WRITE_SIGNALS = sizeof write_signals / sizeof *write_signals };

static volatile sig_atomic_t arrived[HANDLED], from_terminal[HANDLED];
static struct sigaction inherited[HANDLED], inherited_write_signals[WRITE_SIGNALS];
static sigset_t inherited_mask, sleeping_mask;

static unsigned place_of(int number)
{
    unsigned i = 0;

    while (i < HANDLED - 1 && handled[i] != number)
        i++;
    return i;
}

static void note(int number, siginfo_t *info, void *context)
{
    (void)context;
    arrived[place_of(number)] = 1;
    from_terminal[place_of(number)] = info->si_code > 0; /* the kernel sent it */
}

/* A terminal that hangs up sends SIGHUP to the leader of the session only. */
static int is_for_all(unsigned i)
{
    return from_terminal[i] && !(handled[i] == SIGHUP && getsid(0) == getpid());
}

/* Handles one of the signals. One that the caller ignores stays ignored: nohup ignores HUP, `&` ignores INT. */
static void handle(unsigned i)
{
    struct sigaction action = {0};

    action.sa_sigaction = note;
    action.sa_flags = SA_SIGINFO;
    sigdelset(&sleeping_mask, handled[i]);
    sigaction(handled[i], &action, &inherited[i]);
    if (inherited[i].sa_handler == SIG_IGN && handled[i] != SIGCHLD)
        sigaction(handled[i], &inherited[i], NULL);
}

void ignore_write_signals(void)
{
    struct sigaction action = {0};
    unsigned i;

    action.sa_handler = SIG_IGN;
    for (i = 0; i < WRITE_SIGNALS; i++)
        sigaction(write_signals[i], &action, &inherited_write_signals[i]);
}

void signals_begin(void)
{
    static int begun;
    sigset_t mask;
    unsigned i;

    if (begun++)
        return;
    sigemptyset(&mask);
    for (i = 0; i < HANDLED - 1; i++)
        sigaddset(&mask, handled[i]);
    sigprocmask(SIG_BLOCK, &mask, &inherited_mask);
    sleeping_mask = inherited_mask;
    for (i = 0; i < HANDLED - 1; i++)
        handle(i);
    sigaction(SIGTSTP, NULL, &inherited[HANDLED - 1]);
    ignore_write_signals();
}

void signals_restore(void)
{
    unsigned i;

    for (i = 0; i < HANDLED; i++)
        sigaction(handled[i], &inherited[i], NULL);
    signal(SIGCHLD, SIG_DFL); /* a program that ignores it cannot wait for children */
    for (i = 0; i < WRITE_SIGNALS; i++)
        sigaction(write_signals[i], &inherited_write_signals[i], NULL);
    sigprocmask(SIG_SETMASK, &inherited_mask, NULL);
}

/* Blocks or unblocks one signal. */
static void set_mask(int how, int number)
{
    sigset_t mask;

    sigemptyset(&mask);
    sigaddset(&mask, number);
    sigprocmask(how, &mask, NULL);
}

/* What the signal does to a process that does not handle it. */
static void raise_default(int number)
{
    signal(number, SIG_DFL);
    raise(number);
    set_mask(SIG_UNBLOCK, number);
}

void signals_add_stop(void)
{
    set_mask(SIG_BLOCK, SIGTSTP);
    handle(HANDLED - 1);
}

/* Not by SIGSTOP: without a shell that could continue this process, the system does not stop it. */
void stop_by_terminal(void)
{
    struct sigaction handler;

    sigaction(SIGTSTP, NULL, &handler);
    raise_default(SIGTSTP);
    set_mask(SIG_BLOCK, SIGTSTP);
    sigaction(SIGTSTP, &handler, NULL);
}

void forget_other_signals(void)
{
    unsigned i;

    for (i = 0; i < HANDLED; i++)
        if (!is_ending(handled[i]))
            arrived[i] = 0;
}

int next_signal(int *by_terminal)
{
    unsigned i;

    for (i = 0; i < HANDLED; i++)
        if (arrived[i]) {
            arrived[i] = 0;
            *by_terminal = is_for_all(i);
            return handled[i];
        }
    return 0;
}

int is_ending(int number)
{
    return number == SIGHUP || number == SIGINT || number == SIGQUIT || number == SIGTERM;
}

int ending_signal(void)
{
    unsigned i;

    for (i = 0; i < HANDLED; i++)
        if (arrived[i] && is_ending(handled[i]))
            return handled[i];
    return 0;
}

int is_asked_to_end(void)
{
    struct pollfd none;

    ppoll(&none, 0, &(struct timespec){0, 0}, &sleeping_mask); /* delivers pending signals */
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

/* ---- Clock and sleep ---- */

uint64_t now_us(void)
{
    return redlock_posix()->now_us(NULL);
}

void sleep_on(struct pollfd *fds, unsigned count, uint64_t wait_us, uint64_t until_us)
{
    uint64_t now = now_us();
    struct timespec time;

    if (until_us <= now)
        wait_us = 0;
    else if (until_us - now < wait_us)
        wait_us = until_us - now;
    if (wait_us > 60000000)
        wait_us = 60000000;
    time.tv_sec = (time_t)(wait_us / 1000000);
    time.tv_nsec = (long)(wait_us % 1000000) * 1000;
    ppoll(fds, count, &time, &sleeping_mask);
}
