/* queue.c - the queue of this machine's waiters for the same lock: only the first of them asks the nodes. So a release wakes
   one waiter and not all of them, and the others need no connections. The queue is voluntary, for the programs of one user.
   No lock depends on it, and each waiter also makes attempts from time to time.

   The queue of a lock is a byte of one file, which the first waiter locks. A child process waits for the byte, because that
   blocks. Its parent then has the byte too, because both have the same open file.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "cli.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#ifdef F_OFD_SETLKW

static int queue_fd = -1;
static pid_t waiter; /* 0: we need not wait */

/* The file of this user; -1: there is none that is safe to use. */
static int open_queue(void)
{
    char path[40];
    struct stat status;
    int fd;

    snprintf(path, sizeof path, "/tmp/redlock-%lu", (unsigned long)geteuid());
    fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    if (fd >= 0 &&
        (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || status.st_uid != geteuid())) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* Which byte belongs to the locks of this session. */
static struct flock byte_of(const struct session *session)
{
    struct flock byte = {0};
    uint32_t hash[2] = {HASH_BEGIN, 0};
    unsigned i, n;

    for (n = 0; n < 2; n++) {
        for (i = 0; i < target_count; i++)
            hash[n] =
                hash_more(hash[n], targets[i].url.address, strlen(targets[i].url.address) + 1);
        for (i = 0; i < session->lock->extra_key_count; i++)
            hash[n] = hash_more(hash[n], session->lock->extra_keys[i].bytes,
                                session->lock->extra_keys[i].size);
        hash[n] = hash_more(hash[n], session->key, strlen(session->key)) + session->lock_count;
    }
    byte.l_type = F_WRLCK;
    byte.l_whence = SEEK_SET;
    byte.l_start = (off_t)((uint64_t)(hash[0] & 0x3fffffff) << 32 | hash[1]);
    byte.l_len = 1;
    return byte;
}

int queue_enter(const struct session *session)
{
    struct flock byte = byte_of(session);
    pid_t parent = getpid();

    queue_fd = open_queue();
    if (queue_fd < 0 || fcntl(queue_fd, F_OFD_SETLK, &byte) == 0)
        return 1;
    waiter = fork();
    if (waiter == 0) {
#ifdef __linux__
        prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
        _exit(getppid() != parent || fcntl(queue_fd, F_OFD_SETLKW, &byte) != 0);
    }
    return waiter < 0; /* without a child we do not wait */
}

int queue_is_first(void)
{
    if (waiter > 0 && waitpid(waiter, NULL, WNOHANG) == waiter)
        waiter = 0;
    return waiter <= 0;
}

void queue_leave(void)
{
    if (waiter > 0) {
        kill(waiter, SIGKILL);
        waitpid(waiter, NULL, 0);
    }
    if (queue_fd >= 0)
        close(queue_fd);
    queue_fd = -1;
    waiter = 0;
}

#else /* without such locks all waiters ask the nodes */

int queue_enter(const struct session *session)
{
    (void)session;
    return 1;
}

int queue_is_first(void)
{
    return 1;
}

void queue_leave(void)
{
}

#endif
