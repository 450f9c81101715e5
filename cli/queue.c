/* queue.c - the queue of this machine's waiters for the same slots, or for the same several names; for one name the nodes keep
   the queue. Only the first waiter asks the nodes, so a release notifies one waiter instead of all. The queue is advisory, for the
   programs of one user. No lock depends on the queue, and each waiter also makes an attempt from time to time.

   The queue of a lock is a byte range lock on one byte of a file; the first waiter holds it. A child process waits for it,
   because the call blocks. The parent then holds it, too, because both share the open file description.

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
static pid_t waiter; /* the child that waits; 0: none */

/* Opens the file of this user; returns -1 if it is not safe to use. */
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

/* The byte for the locks of this session, a hash of nodes and keys. */
static struct flock byte_of(const struct session *session)
{
    struct flock byte = {0};
    uint32_t hash[2] = {HASH_BEGIN, 0};
    unsigned i, n;

    for (n = 0; n < 2; n++) {
        for (i = 0; i < target_count; i++) {
            const struct redlock_url *url = &targets[i].url;
            hash[n] = hash_more(hash[n], url->address, strlen(url->address) + 1);
            hash[n] = hash_more(hash[n], (const char *)&url->database, sizeof url->database);
        }
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
    waiter = fork_process();
    if (waiter == 0) {
#ifdef __linux__
        prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
        _exit(getppid() != parent || fcntl(queue_fd, F_OFD_SETLKW, &byte) != 0);
    }
    return waiter < 0; /* without a child there is no waiting */
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

#else /* without open file description locks all waiters ask the nodes */

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
