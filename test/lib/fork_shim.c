/* fork_shim.c - preloaded into a program, it lets the first or second fork fail (REDLOCK_FORK=fail1, fail2), or sends
   SIGTERM just before that fork (term1, term2) or before execvp (exec), or pauses for 3 s (wait1, wait2). With REDLOCK_FORK=parent a process that has lost its parent
   does not see it: a dying parent is such a parent for a moment. The resolver takes a minute for the name
   "hangs.invalid"; REDLOCK_HOSTS names a file with lines of a name and its numeric addresses. With REDLOCK_SKIP a sleep of eight seconds or more returns at once, and the clocks move on by its length. A wait
   for a server must be shorter: were it skipped, a busy machine would seem to lose its servers.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

static long long skipped_ns;

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int result = (int)syscall(SYS_clock_gettime, clock, now);
    long long ns;

    if (result != 0 || skipped_ns == 0)
        return result;
    ns = now->tv_sec * 1000000000LL + now->tv_nsec + skipped_ns;
    now->tv_sec = (time_t)(ns / 1000000000);
    now->tv_nsec = (long)(ns % 1000000000);
    return result;
}

int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *time, const sigset_t *mask)
{
    const struct timespec moment = {0, 100000}; /* in which answers come */
    int skips = time != NULL && time->tv_sec >= 8 && getenv("REDLOCK_SKIP") != NULL, ready;
    int (*real)(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *);
    void *found = dlsym(RTLD_NEXT, "ppoll");

    memcpy(&real, &found, sizeof real);
    ready = real(fds, count, skips ? &moment : time, mask);
    if (skips && ready == 0)
        skipped_ns += time->tv_sec * 1000000000LL + time->tv_nsec;
    return ready;
}

static pid_t parent_at_fork;

pid_t getppid(void)
{
    const char *what = getenv("REDLOCK_FORK");

    if (what != NULL && strcmp(what, "parent") == 0 && parent_at_fork != 0)
        return parent_at_fork;
    return (pid_t)syscall(SYS_getppid);
}

pid_t fork(void)
{
    static int forks;
    const char *what = getenv("REDLOCK_FORK");
    pid_t pid;
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
            raise(SIGTERM);
    }
    pid = real();
    if (pid == 0)
        parent_at_fork = (pid_t)syscall(SYS_getppid);
    return pid;
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
