/* fork_shim.c - preloaded into a program, it lets the first or second fork fail (REDLOCK_FORK=fail1, fail2), or sends SIGTERM
   or SIGALRM just before that fork (term1, term2, alrm1, alrm2), or SIGTERM before execvp (exec), or pauses for 3 s (wait1, wait2).
   With REDLOCK_FORK=hang each process that the program has forked hangs in poll. With REDLOCK_FORK=list such a process creates
   the file that LISTED names when it has listed a folder, and waits for that of TELL; with REDLOCK_FORK=nofolder it can list no
   folder; with REDLOCK_FORK=stray it kills with SIGKILL only its children, and creates the file that STRAY names instead of killing
   another process. With REDLOCK_FORK=stoplate the program and such a process stop themselves once, when the first timer of
   timer_create has gone off; with REDLOCK_FORK=killlate such a process kills itself then, and the program stops itself. The resolver takes a minute for the name "hangs.invalid";
   REDLOCK_HOSTS names a file with lines of a name and its numeric addresses. With REDLOCK_SKIP a sleep of eight seconds or more
   returns at once, and the clocks of the process move on by its length; not of processes that it has forked. A wait for a
   server must be shorter: were it skipped, a busy machine would seem to lose its servers. REDLOCK_SUSPENDED names a file with
   the microseconds for which the system was suspended: the clocks are ahead by this, and timers go off at once when it has
   grown. REDLOCK_ENTROPY names a file: until it exists, the system's generator of random bytes is not initialized, as soon
   after boot. A write to stderr that has the text REDLOCK_BLOCKS blocks, as on a disk that hangs, until the file exists that
   TELL names. REDLOCK_DENIES is the name of a function and a number: that call of the function fails, counted from the start of the
   program on, for fcntl, open, pipe, prctl, socketpair, timer_create and timer_settime.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

static pid_t first; /* the process that has loaded this */
static long long skipped_ns;
static long long due_ns; /* when the timer goes off, by the clocks of this file; 0: it does not */
static pid_t timed;      /* the process that has created first_timer, its first one */
static timer_t first_timer;
static long long wake_ns; /* when that goes off; 0: it does not */

__attribute__((constructor)) static void begin(void)
{
    first = getpid();
}

/* 1: REDLOCK_FORK has this value, and this process was forked by the program. */
static int is_forked_with(const char *value)
{
    const char *what = getenv("REDLOCK_FORK");

    return what != NULL && strcmp(what, value) == 0 && getpid() != first;
}

/* 1: this call fails. A child goes on to count. */
static int is_denied(const char *function)
{
    static int calls;
    const char *what = getenv("REDLOCK_DENIES");
    size_t size = strlen(function);

    if (what == NULL || strncmp(what, function, size) != 0 || what[size] != ' ' ||
        atoi(what + size) != ++calls)
        return 0;
    errno = EPERM;
    return 1;
}

int fcntl(int fd, int what, ...)
{
    va_list more;
    long value;

    va_start(more, what);
    value = va_arg(more, long);
    va_end(more);
    return is_denied("fcntl") ? -1 : (int)syscall(SYS_fcntl, fd, what, value);
}

int open(const char *path, int flags, ...)
{
    va_list more;
    int mode;

    va_start(more, flags);
    mode = (flags & O_CREAT) != 0 ? va_arg(more, int) : 0;
    va_end(more);
    return is_denied("open") ? -1 : (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int pipe(int fd[2])
{
    return is_denied("pipe") ? -1 : (int)syscall(SYS_pipe2, fd, 0);
}

int prctl(int what, ...)
{
    va_list more;
    long value;

    va_start(more, what);
    value = va_arg(more, long);
    va_end(more);
    return is_denied("prctl") ? -1 : (int)syscall(SYS_prctl, what, value, 0L, 0L, 0L);
}

int socketpair(int family, int type, int protocol, int fd[2])
{
    return is_denied("socketpair") ? -1 : (int)syscall(SYS_socketpair, family, type, protocol, fd);
}

int timer_create(clockid_t clock, struct sigevent *event, timer_t *timer)
{
    int (*real)(clockid_t, struct sigevent *, timer_t *), result;
    void *found = dlsym(RTLD_NEXT, "timer_create");

    memcpy(&real, &found, sizeof real);
    result = is_denied("timer_create") ? -1 : real(clock, event, timer);
    if (result == 0 && timed != getpid()) {
        timed = getpid();
        first_timer = *timer;
        wake_ns = 0;
    }
    return result;
}

static long long ns_of(const struct timespec *time)
{
    return time->tv_sec * 1000000000LL + time->tv_nsec;
}

int timer_settime(timer_t timer, int flags, const struct itimerspec *at, struct itimerspec *before)
{
    int (*real)(timer_t, int, const struct itimerspec *, struct itimerspec *);
    void *found = dlsym(RTLD_NEXT, "timer_settime");

    memcpy(&real, &found, sizeof real);
    if (timed == getpid() && timer == first_timer)
        wake_ns = ns_of(&at->it_value);
    return is_denied("timer_settime") ? -1 : real(timer, flags, at, before);
}

static void create(const char *path)
{
    close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
}

/* Waits for a file, a minute at most. */
static void wait_for(const char *path)
{
    int turns = 0;

    while (access(path, F_OK) != 0 && turns++ < 3000)
        usleep(20000);
}

static long long suspended_ns(void)
{
    static const volatile long long none, *shift_us;
    const char *path = getenv("REDLOCK_SUSPENDED");
    int fd = shift_us == NULL && path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *there = MAP_FAILED;

    if (fd >= 0) {
        there = mmap(NULL, sizeof none, PROT_READ, MAP_SHARED, fd, 0);
        close(fd);
    }
    if (shift_us == NULL)
        shift_us = there != MAP_FAILED ? there : &none;
    return *shift_us * 1000;
}

static void set_ns(struct timespec *time, long long ns)
{
    time->tv_sec = (time_t)(ns / 1000000000);
    time->tv_nsec = (long)(ns % 1000000000);
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int result = (int)syscall(SYS_clock_gettime, clock, now);

    if (result == 0)
        set_ns(now, ns_of(now) + skipped_ns + suspended_ns());
    return result;
}

int timerfd_settime(int fd, int flags, const struct itimerspec *at, struct itimerspec *before)
{
    struct itimerspec real = *at;

    due_ns = ns_of(&at->it_value);
    if (due_ns != 0)
        set_ns(&real.it_value, due_ns - skipped_ns - suspended_ns());
    return (int)syscall(SYS_timerfd_settime, fd, flags, &real, before);
}

static long long left_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now);
    return due_ns - ns_of(&now);
}

/* Stops or kills this process, once, when its first timer has gone off. */
static void end_late(void)
{
    const char *what = getenv("REDLOCK_FORK");
    static pid_t late;
    struct timespec now;

    if (what == NULL || (strcmp(what, "stoplate") != 0 && strcmp(what, "killlate") != 0) ||
        timed != getpid() || wake_ns == 0 || late == getpid())
        return;
    clock_gettime(CLOCK_BOOTTIME, &now);
    if (ns_of(&now) < wake_ns)
        return;
    late = getpid();
    usleep(2000);
    raise(strcmp(what, "killlate") == 0 && getpid() != first ? SIGKILL : SIGSTOP);
}

static int poll_late(struct pollfd *fds, nfds_t count, int timeout)
{
    int (*real)(struct pollfd *, nfds_t, int), ready, error;
    void *found = dlsym(RTLD_NEXT, "poll");

    memcpy(&real, &found, sizeof real);
    ready = real(fds, count, timeout);
    error = errno;
    end_late();
    errno = error;
    return ready;
}

int poll(struct pollfd *fds, nfds_t count, int timeout)
{
    int ready, by_timer = timeout < 0 && due_ns != 0;

    while (is_forked_with("hang"))
        sleep(1);
    if (by_timer && getpid() == first && getenv("REDLOCK_SKIP") != NULL &&
        left_ns() >= 8000000000LL) {
        ready = poll_late(fds, count, 1); /* in which answers come */
        if (ready == 0)
            skipped_ns += left_ns();
        return ready;
    }
    while (by_timer && getenv("REDLOCK_SUSPENDED") != NULL) {
        ready = poll_late(fds, count, 20);
        if (ready != 0 || left_ns() <= 0)
            return ready;
    }
    return poll_late(fds, count, timeout);
}

pid_t fork(void)
{
    static int forks;
    const char *what = getenv("REDLOCK_FORK");
    pid_t (*real)(void);
    void *found = dlsym(RTLD_NEXT, "fork");

    memcpy(&real, &found, sizeof real);
    if (what != NULL && strlen(what) == 5 && what[4] - '0' == ++forks) {
        if (what[0] == 'f') {
            errno = EAGAIN;
            return -1;
        }
        if (what[0] == 'w')
            sleep(3);
        else
            raise(what[0] == 'a' ? SIGALRM : SIGTERM);
    }
    return real();
}

int execvp(const char *file, char *const words[])
{
    const char *what = getenv("REDLOCK_FORK");
    int (*real)(const char *, char *const[]);
    void *found = dlsym(RTLD_NEXT, "execvp");

    memcpy(&real, &found, sizeof real);
    if (what != NULL && strcmp(what, "exec") == 0)
        raise(SIGTERM);
    return real(file, words);
}

DIR *opendir(const char *name)
{
    DIR *(*real)(const char *);
    void *found = dlsym(RTLD_NEXT, "opendir");

    memcpy(&real, &found, sizeof real);
    if (!is_forked_with("nofolder"))
        return real(name);
    errno = ENFILE;
    return NULL;
}

int closedir(DIR *folder)
{
    int (*real)(DIR *);
    void *found = dlsym(RTLD_NEXT, "closedir");

    memcpy(&real, &found, sizeof real);
    if (is_forked_with("list")) {
        create(getenv("LISTED"));
        wait_for(getenv("TELL"));
    }
    return real(folder);
}

static int is_child(pid_t pid)
{
    char path[40], text[200] = "";
    const char *end;
    int fd, parent = 0;

    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && read(fd, text, sizeof text - 1) > 0 && (end = strrchr(text, ')')) != NULL)
        sscanf(end, ") %*c %d", &parent);
    if (fd >= 0)
        close(fd);
    return parent == getpid();
}

int kill(pid_t pid, int number)
{
    if (number == SIGKILL && is_forked_with("stray") && !is_child(pid)) {
        create(getenv("STRAY"));
        errno = ESRCH;
        return -1;
    }
    return (int)syscall(SYS_kill, pid, number);
}

ssize_t getrandom(void *bytes, size_t size, unsigned flags)
{
    const char *path = getenv("REDLOCK_ENTROPY");

    if (path != NULL && access(path, F_OK) != 0) {
        errno = EAGAIN;
        return -1;
    }
    return syscall(SYS_getrandom, bytes, size, flags);
}

ssize_t write(int fd, const void *bytes, size_t size)
{
    const char *part = getenv("REDLOCK_BLOCKS");

    if (fd == STDERR_FILENO && part != NULL && memmem(bytes, size, part, strlen(part)) != NULL)
        wait_for(getenv("TELL"));
    return syscall(SYS_write, fd, bytes, size);
}

typedef int resolver(const char *, const char *, const struct addrinfo *, struct addrinfo **);

/* Looks a name up in the file: no address if it is not there. */
static int look_up_in(const char *path, const char *name, resolver *real,
                      const struct addrinfo *hints, struct addrinfo **result)
{
    FILE *file = fopen(path, "re");
    struct addrinfo **next = result;
    char line[300], *word = NULL, *rest;

    *result = NULL;
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        word = strtok_r(line, " \n", &rest);
        if (word == NULL || strcmp(word, name) != 0)
            continue;
        while ((word = strtok_r(NULL, " \n", &rest)) != NULL)
            if (real(word, NULL, hints, next) == 0)
                next = &(*next)->ai_next;
    }
    if (file != NULL)
        fclose(file);
    return *result != NULL ? 0 : EAI_NONAME;
}

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                struct addrinfo **result)
{
    resolver *real;
    void *found = dlsym(RTLD_NEXT, "getaddrinfo");
    const char *hosts = getenv("REDLOCK_HOSTS");

    memcpy(&real, &found, sizeof real);
    if (name != NULL && strcmp(name, "hangs.invalid") == 0)
        sleep(60);
    if (name != NULL && hosts != NULL)
        return look_up_in(hosts, name, real, hints, result);
    return real(name, service, hints, result);
}
