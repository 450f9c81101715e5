/* fork_shim.c - preloaded into a program, it lets the first or second fork fail (REDLOCK_FORK=fail1, fail2), or sends
   SIGTERM just before that fork (term1, term2) or before execvp (exec). The resolver takes a minute for the name
   "hangs.invalid".

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

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
        raise(SIGTERM);
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

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                struct addrinfo **result)
{
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    void *found = dlsym(RTLD_NEXT, "getaddrinfo");

    memcpy(&real, &found, sizeof real);
    if (name != NULL && strcmp(name, "hangs.invalid") == 0)
        sleep(60);
    return real(name, service, hints, result);
}
