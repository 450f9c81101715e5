/* torture_test.c - each system call that net.c makes fails, in turn, in each way that it can: once, and
   from then on. Meanwhile a lock is acquired, extended and released on real servers. The results of the client must
   be true, nothing may hang, crash or leave a descriptor open, and the client must work after the fault.

   The linker puts these functions in the place of the real ones (--wrap, see Makefile). With REDLOCK_WITHOUT_... (net.c)
   the library works as on a system that lacks a function or flag; the test checks that it is not used.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* ppoll */
#include "redlock.h"
#include "servers.h"
#include "side.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- How a call fails ----------------------------------------------------------------------- */

enum call {
    SOCKET,
    SETSOCKOPT,
    CONNECT,
    GETSOCKOPT,
    GETPEERNAME,
    GETSOCKNAME,
    SEND,
    RECV,
    CLOSE,
    FCNTL,
    POLL,
    PPOLL,
    GETTIME,
    GETRANDOM,
    OPEN,
    READ,
    GETADDRINFO,
    INDEXTONAME,
    ATFORK,
    CALLS
};

static const char *const call_names[CALLS] = {
    "socket",      "setsockopt",  "connect",        "getsockopt",    "getpeername",
    "getsockname", "send",        "recv",           "close",         "fcntl",
    "poll",        "ppoll",       "clock_gettime",  "getrandom",     "open",
    "read",        "getaddrinfo", "if_indextoname", "pthread_atfork"};

/* Which of the optional functions and flags this build uses. */
#ifdef REDLOCK_WITHOUT_GETRANDOM /* and getentropy: the device */
enum { HAS_GETRANDOM = 0 };
#else
enum { HAS_GETRANDOM = 1 };
#endif
#ifdef REDLOCK_WITHOUT_PPOLL
enum { HAS_PPOLL = 0 };
#else
enum { HAS_PPOLL = 1 };
#endif
#ifdef REDLOCK_WITHOUT_SOCK_CLOEXEC
enum { HAS_SOCK_CLOEXEC = 0 };
#else
enum { HAS_SOCK_CLOEXEC = 1 };
#endif
#ifdef REDLOCK_WITHOUT_CLOCK_BOOTTIME
enum { HAS_BOOTTIME = 0 };
#else
enum { HAS_BOOTTIME = 1 };
#endif
#ifdef REDLOCK_WITHOUT_MSG_NOSIGNAL
enum { HAS_NOSIGNAL = 0 };
#else
enum { HAS_NOSIGNAL = 1 };
#endif

static int is_used(enum call call)
{
    switch (call) {
    case POLL:
        return !HAS_PPOLL;
    case PPOLL:
        return HAS_PPOLL;
    case GETTIME:
        return HAS_BOOTTIME;
    case GETRANDOM:
        return HAS_GETRANDOM;
    default:
        return 1;
    }
}

/* Results that are not -1 with an errno: one byte, half of the bytes, 0, a wrong answer, all poll flags. */
enum { SHORT = 10000, HALF, NOTHING, FALSE_ANSWER, ALL_BAD };

/* The worst effect of a fault that happens once. */
enum cost {
    NO_VOTE, /* one node does not vote */
    NO_HARM, /* no connection is lost */
    NO_LOCK  /* without a random token no lock is acquired */
};

struct way {
    enum call call;
    int error; /* an errno, or one of these */
    int done;  /* the real call is made, too: the kernel has done the work, but reports an error */
    enum cost cost;
};

/* After this fault, even if it happens once, the client waits for a connection that is never established. */
static const struct way lost_packet = {CONNECT, EINPROGRESS, 0, NO_VOTE};

static const struct way ways[] = {
    {SOCKET, EMFILE, 0, NO_VOTE},
    {SOCKET, ENFILE, 0, NO_VOTE},
    {SOCKET, ENOBUFS, 0, NO_VOTE},
    {SOCKET, ENOMEM, 0, NO_VOTE},
    {SOCKET, EACCES, 0, NO_VOTE},
    {SOCKET, EAFNOSUPPORT, 0, NO_VOTE},
    {SOCKET, EPROTONOSUPPORT, 0, NO_VOTE},
    {SOCKET, EINVAL, 0, NO_VOTE},
    {SETSOCKOPT, ENOPROTOOPT, 0, NO_HARM},
    {SETSOCKOPT, EINVAL, 0, NO_HARM},
    {SETSOCKOPT, ENOMEM, 0, NO_HARM},
    {CONNECT, ECONNREFUSED, 0, NO_VOTE},
    {CONNECT, ETIMEDOUT, 0, NO_VOTE},
    {CONNECT, ENETUNREACH, 0, NO_VOTE},
    {CONNECT, EHOSTUNREACH, 0, NO_VOTE},
    {CONNECT, EADDRNOTAVAIL, 0, NO_VOTE},
    {CONNECT, EACCES, 0, NO_VOTE},
    {CONNECT, EPERM, 0, NO_VOTE},
    {CONNECT, EAGAIN, 0, NO_VOTE},
    {CONNECT, EALREADY, 0, NO_VOTE},
    {CONNECT, ENOENT, 0, NO_VOTE},
    {CONNECT, EINTR, 1, NO_HARM},
    {CONNECT, EINPROGRESS, 1, NO_HARM},
    {GETSOCKOPT, ENOBUFS, 0, NO_VOTE},
    {GETSOCKOPT, EINVAL, 0, NO_VOTE},
    {GETSOCKOPT, FALSE_ANSWER, 0, NO_VOTE}, /* SO_ERROR is ECONNREFUSED */
    {GETPEERNAME, ENOTCONN, 0, NO_HARM},
    {GETPEERNAME, ENOBUFS, 0, NO_VOTE},
    {GETPEERNAME, EINVAL, 0, NO_VOTE},
    {GETSOCKNAME, ENOBUFS, 0, NO_HARM},
    {GETSOCKNAME, FALSE_ANSWER, 0, NO_VOTE}, /* the peer's name: connected to itself */
    {SEND, EAGAIN, 0, NO_HARM},
    {SEND, EINTR, 0, NO_HARM},
    {SEND, EPIPE, 0, NO_VOTE},
    {SEND, ECONNRESET, 0, NO_VOTE},
    {SEND, ECONNRESET, 1, NO_VOTE},
    {SEND, ENOBUFS, 0, NO_VOTE},
    {SEND, ENOMEM, 0, NO_VOTE},
    {SEND, ETIMEDOUT, 0, NO_VOTE},
    {SEND, EACCES, 0, NO_VOTE},
    {SEND, SHORT, 1, NO_HARM},
    {SEND, HALF, 1, NO_HARM},
    {SEND, NOTHING, 0, NO_HARM},
    {RECV, EAGAIN, 0, NO_HARM},
    {RECV, EINTR, 0, NO_HARM},
    {RECV, ECONNRESET, 0, NO_VOTE},
    {RECV, ECONNRESET, 1, NO_VOTE},
    {RECV, ETIMEDOUT, 0, NO_VOTE},
    {RECV, ENOMEM, 0, NO_VOTE},
    {RECV, ENOTCONN, 0, NO_VOTE},
    {RECV, SHORT, 1, NO_HARM},
    {RECV, HALF, 1, NO_HARM},
    {RECV, NOTHING, 0, NO_VOTE}, /* the end of the stream */
    {CLOSE, EINTR, 1, NO_HARM},
    {CLOSE, EIO, 1, NO_HARM},
    {FCNTL, EINVAL, 0, NO_VOTE}, /* only F_SETFL: without it a call could block */
    {POLL, EINTR, 0, NO_HARM},
    {POLL, ENOMEM, 0, NO_HARM},
    {POLL, NOTHING, 0, NO_HARM},
    {POLL, FALSE_ANSWER, 0, NO_HARM},
    {POLL, ALL_BAD, 0, NO_HARM},
    {PPOLL, EINTR, 0, NO_HARM},
    {PPOLL, ENOMEM, 0, NO_HARM},
    {PPOLL, EINVAL, 0, NO_HARM},
    {PPOLL, NOTHING, 0, NO_HARM},      /* the timeout, too early */
    {PPOLL, FALSE_ANSWER, 0, NO_HARM}, /* a count, but no flags */
    {PPOLL, ALL_BAD, 0, NO_HARM},      /* all flags, though nothing is ready */
    {GETTIME, EINVAL, 0, NO_HARM},
    {GETRANDOM, EAGAIN, 0, NO_LOCK},
    {GETRANDOM, EINTR, 0, NO_HARM},
    {GETRANDOM, ENOSYS, 0, NO_HARM},
    {GETRANDOM, EPERM, 0, NO_HARM}, /* a sandbox that does not permit it */
    {GETRANDOM, SHORT, 1, NO_HARM},
    {OPEN, EMFILE, 0, NO_LOCK},
    {OPEN, ENFILE, 0, NO_LOCK},
    {OPEN, ENOENT, 0, NO_LOCK},
    {OPEN, EACCES, 0, NO_LOCK},
    {OPEN, EINTR, 0, NO_LOCK},
    {READ, EINTR, 0, NO_HARM},
    {READ, EIO, 0, NO_LOCK},
    {READ, EAGAIN, 0, NO_LOCK},
    {READ, SHORT, 1, NO_HARM},
    {READ, NOTHING, 0, NO_LOCK},
};
enum { WAYS = sizeof ways / sizeof *ways };

static struct {
    int armed;             /* only the library's calls fail, not those of the test */
    int old;               /* getrandom fails like on an old kernel */
    int deaf;              /* socket ignores SOCK_NONBLOCK, and F_GETFL has the flag all the same */
    const struct way *way; /* NULL: none, calls are only counted */
    unsigned nth;          /* which call fails, from 1 */
    int forever;           /* also all calls after that */
    unsigned made[CALLS], struck;
    int types, flags; /* all bits that were passed to socket and send */
} plan;

/* Whether this call fails now. Sets errno. */
static int fails(enum call call)
{
    unsigned made;

    if (!plan.armed)
        return 0;
    if (call == GETRANDOM && plan.old) {
        errno = ENOSYS;
        return 1;
    }
    made = ++plan.made[call];
    if (plan.way == NULL || plan.way->call != call ||
        (plan.forever ? made < plan.nth : made != plan.nth))
        return 0;
    plan.struck++;
    errno = plan.way->error < SHORT ? plan.way->error : 0;
    return 1;
}

/* How many of `size` bytes a short send or recv transfers. */
static size_t part(size_t size)
{
    return plan.way->error == SHORT ? 1 : (size + 1) / 2;
}

#define WRAPPED(type, name, ...)                                                                   \
    type __real_##name(__VA_ARGS__);                                                               \
    type __wrap_##name(__VA_ARGS__);                                                               \
    type __wrap_##name(__VA_ARGS__)

WRAPPED(int, socket, int family, int type, int protocol)
{
    if (plan.armed)
        plan.types |= type;
    if (plan.deaf)
        type &= ~SOCK_NONBLOCK;
    return fails(SOCKET) ? -1 : __real_socket(family, type, protocol);
}

WRAPPED(int, setsockopt, int fd, int level, int name, const void *value, socklen_t size)
{
    return fails(SETSOCKOPT) ? -1 : __real_setsockopt(fd, level, name, value, size);
}

WRAPPED(int, connect, int fd, const struct sockaddr *to, socklen_t size)
{
    if (!fails(CONNECT))
        return __real_connect(fd, to, size);
    if (plan.way->done)
        (void)__real_connect(fd, to, size);
    errno = plan.way->error;
    return -1;
}

WRAPPED(int, getsockopt, int fd, int level, int name, void *value, socklen_t *size)
{
    int refused = ECONNREFUSED;

    if (!fails(GETSOCKOPT))
        return __real_getsockopt(fd, level, name, value, size);
    if (plan.way->error != FALSE_ANSWER)
        return -1;
    memcpy(value, &refused, sizeof refused);
    return 0;
}

WRAPPED(int, getpeername, int fd, struct sockaddr *name, socklen_t *size)
{
    return fails(GETPEERNAME) ? -1 : __real_getpeername(fd, name, size);
}

WRAPPED(int, getsockname, int fd, struct sockaddr *name, socklen_t *size)
{
    if (!fails(GETSOCKNAME))
        return __real_getsockname(fd, name, size);
    return plan.way->error == FALSE_ANSWER ? __real_getpeername(fd, name, size) : -1;
}

WRAPPED(ssize_t, send, int fd, const void *bytes, size_t size, int flags)
{
    if (plan.armed)
        plan.flags |= flags;
    if (!fails(SEND))
        return __real_send(fd, bytes, size, flags);
    if (plan.way->error >= SHORT)
        return plan.way->done ? __real_send(fd, bytes, part(size), flags) : 0;
    if (plan.way->done)
        (void)__real_send(fd, bytes, size, flags);
    errno = plan.way->error;
    return -1;
}

WRAPPED(ssize_t, recv, int fd, void *bytes, size_t size, int flags)
{
    if (!fails(RECV))
        return __real_recv(fd, bytes, size, flags);
    if (plan.way->error >= SHORT)
        return plan.way->done ? __real_recv(fd, bytes, part(size), flags) : 0;
    if (plan.way->done)
        (void)__real_recv(fd, bytes, size, flags);
    errno = plan.way->error;
    return -1;
}

WRAPPED(int, close, int fd)
{
    int result = __real_close(fd);

    return fails(CLOSE) ? -1 : result;
}

WRAPPED(int, fcntl, int fd, int command, ...)
{
    va_list arguments;
    int value;

    va_start(arguments, command);
    value = va_arg(arguments, int);
    va_end(arguments);
    if (plan.deaf && command == F_GETFL)
        return __real_fcntl(fd, command, value) | O_NONBLOCK;
    return command == F_SETFL && fails(FCNTL) ? -1 : __real_fcntl(fd, command, value);
}

/* The result of a poll or ppoll that fails. */
static int polled(struct pollfd *fds, nfds_t count)
{
    nfds_t i;

    for (i = 0; i < count; i++)
        fds[i].revents = (short)(plan.way->error == ALL_BAD && fds[i].fd >= 0
                                     ? POLLIN | POLLOUT | POLLERR | POLLHUP | POLLNVAL
                                     : 0);
    return plan.way->error < SHORT ? -1 : plan.way->error == NOTHING ? 0 : (int)count;
}

WRAPPED(int, poll, struct pollfd *fds, nfds_t count, int timeout)
{
    return fails(POLL) ? polled(fds, count) : __real_poll(fds, count, timeout);
}

WRAPPED(int, ppoll, struct pollfd *fds, nfds_t count, const struct timespec *timeout,
        const sigset_t *mask)
{
    return fails(PPOLL) ? polled(fds, count) : __real_ppoll(fds, count, timeout, mask);
}

/* Only CLOCK_BOOTTIME, which a kernel may lack; the other clocks never fail. */
WRAPPED(int, clock_gettime, clockid_t clock, struct timespec *now)
{
    return clock == CLOCK_BOOTTIME && fails(GETTIME) ? -1 : __real_clock_gettime(clock, now);
}

WRAPPED(ssize_t, getrandom, void *bytes, size_t size, unsigned flags)
{
    if (!fails(GETRANDOM))
        return __real_getrandom(bytes, size, flags);
    return !plan.old && plan.way->error == SHORT ? __real_getrandom(bytes, 1, flags) : -1;
}

WRAPPED(int, open, const char *path, int flags, ...)
{
    return fails(OPEN) ? -1 : __real_open(path, flags, 0);
}

WRAPPED(ssize_t, read, int fd, void *bytes, size_t size)
{
    if (!fails(READ))
        return __real_read(fd, bytes, size);
    return plan.way->error < SHORT      ? -1
           : plan.way->error == NOTHING ? 0
                                        : __real_read(fd, bytes, 1);
}

WRAPPED(int, getaddrinfo, const char *host, const char *port, const struct addrinfo *hints,
        struct addrinfo **found)
{
    return fails(GETADDRINFO) ? plan.way->error : __real_getaddrinfo(host, port, hints, found);
}

WRAPPED(char *, if_indextoname, unsigned index, char *name)
{
    if (!fails(INDEXTONAME))
        return __real_if_indextoname(index, name);
    errno = plan.way->error;
    return NULL;
}

WRAPPED(int, pthread_atfork, void (*before)(void), void (*parent)(void), void (*child)(void))
{
    return fails(ATFORK) ? plan.way->error : __real_pthread_atfork(before, parent, child);
}

/* ---- A client, from init to deinit ------------------------------------------------------------ */

enum { NODES = 3, WAIT_MS = 30 };

static struct server servers[NODES];
static char text[200];
static const char *complaint; /* what was wrong */
static unsigned dials[NODES];

static int counting_dial(void *context, struct redlock_node *node)
{
    dials[node->priv.index]++;
    return redlock_posix()->dial(context, node);
}

static void complain(const char *what)
{
    if (complaint == NULL)
        complaint = what;
}

/* On how many servers the key has the lock's token: a repair changes all but 32 digits. */
static unsigned owned(const struct redlock_lock *lock)
{
    char mine[2 * sizeof lock->token + 1];
    unsigned i, count = 0;

    for (i = 0; i < sizeof lock->token; i++)
        snprintf(mine + 2 * i, 3, "%02x", lock->token[i]);
    for (i = 0; i < NODES; i++)
        count +=
            strncmp(server_ask(&servers[i], text, sizeof text, "GET", "key", NULL), mine, 32) == 0;
    return count;
}

/* Makes the call; complains if it takes more than a minute. */
static int timed(enum redlock_status (*call)(struct redlock_client *, struct redlock_lock *,
                                             uint32_t),
                 struct redlock_client *client, struct redlock_lock *lock)
{
    long began = now_ms();
    int status;

    plan.armed = 1;
    status = (int)call(client, lock, WAIT_MS);
    plan.armed = 0;
    if (now_ms() - began > 60000)
        complain("a call took far too long");
    return status;
}

static enum redlock_status extend(struct redlock_client *client, struct redlock_lock *lock,
                                  uint32_t none)
{
    (void)none;
    return redlock_extend(client, lock);
}

/* No node has an error. */
static int no_errors(const struct redlock_node *nodes)
{
    unsigned i;

    for (i = 0; i < NODES; i++)
        if (nodes[i].error[0] != '\0')
            return 0;
    return 1;
}

static void extend_and_release(struct redlock_client *client, struct redlock_lock *lock)
{
    int status;

    if (redlock_remaining_ms(client, lock) == 0)
        complain("acquired, but no validity left");
    if (owned(lock) < 2)
        complain("acquired without a majority");
    status = timed(extend, client, lock);
    if (status == REDLOCK_OK && owned(lock) < 2)
        complain("extended without a majority");
    if (status == REDLOCK_LOST)
        complain("lost, though no other client took it");
    status = timed(redlock_release, client, lock);
    if (status == REDLOCK_OK && owned(lock) > 1)
        complain("released, but a majority has the key");
    if (status != REDLOCK_OK && status != REDLOCK_UNCONFIRMED)
        complain("the release says that the lock was not held");
    if (lock->valid_until_us != 0)
        complain("held after the release");
}

/* Returns whether the acquire succeeded. The fault ends before the client is used once more. `once`: the fault affects
   one node once, and no time limit matters. */
static int use(struct redlock_client *client, struct redlock_node *nodes, int once)
{
    struct redlock_lock lock;
    int status, got, i;

    redlock_lock_init(&lock, "key", 30000);
    status = timed(redlock_acquire, client, &lock);
    got = status == REDLOCK_OK;
    if (got)
        extend_and_release(client, &lock);
    else if (status == REDLOCK_UNREACHABLE && no_errors(nodes))
        complain("unreachable, but no node has an error");
    else if (status != REDLOCK_UNREACHABLE && status != REDLOCK_NO_ENTROPY)
        complain(redlock_strerror(status));
    settle(client);
    for (i = 0; i < NODES && once; i++)
        if (plan.way->cost == NO_HARM && (dials[i] != 1 || nodes[i].state != REDLOCK_NODE_READY))
            complain("a connection was lost");
    /* the first random bytes are the token; later ones are for a repair or a pause */
    if (once && plan.struck > 0 && got != (plan.way->cost != NO_LOCK || plan.nth > 1))
        complain(got ? "locked without a random token" : "not locked");
    plan.way = NULL;
    if (once && servers_keys_left("*", 10000) > 0)
        complain("a key was left");
    redlock_lock_init(&lock, "another",
                      3000); /* TTL: a disconnected server may keep the key for this time */
    if (redlock_acquire(client, &lock, 20000) != REDLOCK_OK)
        complain("no lock can be acquired after the fault");
    else
        redlock_release(client, &lock, 20000);
    return got;
}

/* Uses a new client, with a fault. Returns whether the fault happened. */
static int try(const struct way *way, unsigned nth, int forever, int *got)
{
    static const struct redlock_settings hasty = {
        .node_timeout_ms = 30, .stall_ms = 60, .retry_delay_ms = 10, .retry_delay_max_ms = 10};
    static const struct redlock_settings patient = {.node_timeout_ms = 8000, .stall_ms = 15000};
    int hasty_limits = forever || way == &lost_packet;
    struct redlock_io io = *redlock_posix();
    struct redlock_node nodes[NODES];
    struct redlock_client client;
    int before = open_descriptors(), i;

    io.dial = counting_dial;
    memset(dials, 0, sizeof dials);
    memset(nodes, 0, sizeof nodes);
    memset(plan.made, 0, sizeof plan.made);
    for (i = 0; i < NODES; i++)
        nodes[i].address = i == 2 ? servers[i].local : servers[i].address;
    plan.way = way;
    plan.nth = nth;
    plan.forever = forever;
    plan.struck = 0;
    complaint = NULL;
    redlock_init(&client, &io, nodes, NODES, hasty_limits ? &hasty : &patient);
    *got = use(&client, nodes, !hasty_limits);
    plan.way = way->call == CLOSE ? way : NULL;
    plan.armed = 1;
    redlock_deinit(&client);
    plan.armed = 0;
    if (open_descriptors() != before)
        complain("a descriptor stays open");
    for (i = 0; i < NODES; i++)
        server_ask(&servers[i], text, sizeof text, "FLUSHALL", NULL);
    return plan.struck > 0;
}

static const char *describe(const struct way *way)
{
    static const char *const words[] = {"one byte", "half", "0", "a false answer", "all errors"};

    return way->error >= SHORT ? words[way->error - SHORT] : strerror(way->error);
}

/* Lets each call in turn fail in this way, up to the last call that a client makes, or `most`. */
static void torture(const struct way *way, unsigned most)
{
    unsigned nth, struck = 0, got = 0, tries = 0;
    int forever, acquired;

    plan.old = way->call == OPEN || way->call == READ;
    for (forever = 0; forever < 2; forever++)
        for (nth = 1; nth <= most; nth++) {
            int hit = try(way, nth, forever, &acquired);
            if (complaint != NULL)
                ok(0, "%s: %s, at call %u%s: %s", call_names[way->call], describe(way), nth,
                   forever ? " and all later calls" : "", complaint);
            if (!hit)
                break;
            tries++;
            struck += plan.struck;
            got += acquired != 0;
        }
    plan.old = 0;
    ok(struck > 0, "%s: %s%s: %u faults in %u clients, %u locks acquired", call_names[way->call],
       describe(way), way->done ? ", after the real call" : "", struck, tries, got);
}

/* A client without a fault calls the functions that this build uses, and no other. */
static void calls(void)
{
    static const struct way none = {CALLS, 0, 0, NO_HARM};
    enum call call;
    int got;

    plan.types = plan.flags = 0;
    try(&none, 1, 0, &got);
    ok(got && complaint == NULL, "no fault: a lock is acquired");
    for (call = CLOSE; call <= GETRANDOM; call++)
        is_int(plan.made[call] > 0, is_used(call), "no fault: %s is%s called", call_names[call],
               is_used(call) ? "" : " not");
    is_int(plan.made[READ] > 0, !HAS_GETRANDOM,
           "no fault: the random device is read only without getrandom");
    is_int((plan.types & SOCK_CLOEXEC) != 0, HAS_SOCK_CLOEXEC, "no fault: SOCK_CLOEXEC");
    is_int((plan.flags & MSG_NOSIGNAL) != 0, HAS_NOSIGNAL, "no fault: MSG_NOSIGNAL");
}

/* ---- Other faults ----------------------------------------------------------------------------- */

static void names(void)
{
    static const struct way failures[] = {
        {GETADDRINFO, EAI_AGAIN, 0, NO_VOTE},  {GETADDRINFO, EAI_FAIL, 0, NO_VOTE},
        {GETADDRINFO, EAI_MEMORY, 0, NO_VOTE}, {GETADDRINFO, EAI_NONAME, 0, NO_VOTE},
        {GETADDRINFO, EAI_SYSTEM, 0, NO_VOTE}, {INDEXTONAME, ENXIO, 0, NO_VOTE},
        {INDEXTONAME, EMFILE, 0, NO_VOTE},
    };
    unsigned i;

    for (i = 0; i < sizeof failures / sizeof *failures; i++) {
        int status;
        memset(plan.made, 0, sizeof plan.made);
        plan.way = &failures[i];
        plan.nth = 1;
        plan.armed = 1;
        status = redlock_resolve("[fe80::1%lo]:7001", text, sizeof text);
        plan.armed = 0;
        is_int(status,
               failures[i].call == INDEXTONAME ? REDLOCK_RESOLVE_INVALID : failures[i].error,
               "%s: %d", call_names[failures[i].call], failures[i].error);
    }
}

/* If pthread_atfork fails, the library compares process ids to detect a fork. */
static void forks(void)
{
    static const struct way failure = {ATFORK, ENOMEM, 0, NO_VOTE};
    const struct redlock_io *io = redlock_posix();
    pid_t child;
    uint32_t parent;
    int status;

    plan.way = &failure;
    plan.nth = 1;
    plan.armed = 1;
    parent = io->process(io->context);
    plan.armed = 0;
    is_int((long)plan.made[ATFORK], 1, "pthread_atfork fails");
    is_int((long)io->process(io->context), (long)parent, "the same process has the same number");
    child = fork();
    if (child == 0)
        _exit(io->process(io->context) == parent);
    ok(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0,
       "a child process has another number");
}

/* The servers have closed their idle connections, and the process has no descriptor left for others. The
   nodes must report that, as the logs of the servers do not. */
static void no_new_sockets(const struct way *way)
{
    struct redlock_node nodes[NODES];
    struct redlock_lock lock;
    struct redlock_client client;
    int i, status;

    memset(nodes, 0, sizeof nodes);
    for (i = 0; i < NODES; i++)
        nodes[i].address = servers[i].address;
    redlock_init(&client, redlock_posix(), nodes, NODES, NULL);
    redlock_lock_init(&lock, "key", 30000);
    is_int((int)redlock_acquire(&client, &lock, 20000), REDLOCK_OK, "%s: a lock is acquired",
           call_names[way->call]);
    redlock_release(&client, &lock, 20000);
    settle(&client);
    for (i = 0; i < NODES; i++)
        server_ask(&servers[i], text, sizeof text, "CLIENT", "KILL", "TYPE", "normal", NULL);
    plan.way = way;
    plan.nth = 1;
    plan.forever = plan.armed = 1;
    memset(plan.made, 0, sizeof plan.made);
    status = (int)redlock_acquire(&client, &lock, 0);
    plan.armed = 0;
    is_int(status, REDLOCK_UNREACHABLE, "%s: all connections are closed, none can be made",
           call_names[way->call]);
    for (i = 0; i < NODES; i++)
        ok(strstr(nodes[i].error, strerror(way->error)) != NULL, "%s: the node's error is \"%s\"",
           call_names[way->call], nodes[i].error);
    redlock_deinit(&client);
}

/* NuttX where a modem or a Wi-Fi chip has the sockets: SOCK_NONBLOCK has no effect, and F_GETFL does not tell. Where a
   socket blocked, the library would wait for a hung server for ever. */
static void ignored_flag(void)
{
    struct redlock_node nodes[NODES];
    struct redlock_client client;
    struct redlock_lock lock;
    int i, blocking = 0;

    memset(nodes, 0, sizeof nodes);
    for (i = 0; i < NODES; i++)
        nodes[i].address = i == 2 ? servers[i].local : servers[i].address;
    redlock_init(&client, redlock_posix(), nodes, NODES, NULL);
    redlock_lock_init(&lock, "key", 30000);
    plan.deaf = 1;
    alarm(120); /* ends a call that blocks */
    is_int((int)redlock_acquire(&client, &lock, 20000), REDLOCK_OK, "SOCK_NONBLOCK is ignored");
    settle(&client);
    plan.deaf = 0;
    for (i = 0; i < NODES; i++)
        blocking += (__real_fcntl((int)nodes[i].handle, F_GETFL, 0) & O_NONBLOCK) == 0;
    is_int(blocking, 0, "SOCK_NONBLOCK is ignored: no socket blocks");
    redlock_release(&client, &lock, 20000);
    alarm(0);
    redlock_deinit(&client);
}

int main(int count, char **words)
{
    static const struct way no_descriptors = {SOCKET, EMFILE, 0, NO_VOTE};
    static const struct way blocks = {FCNTL, EINVAL, 0, NO_VOTE};
    unsigned most = count > 1 ? (unsigned)atoi(words[1]) : 6, i;

    forks();
    names();
    servers_start(servers, NODES, NULL);
    calls();
    ignored_flag();
    for (i = 0; i < WAYS; i++)
        if (is_used(ways[i].call))
            torture(&ways[i], most);
    torture(&lost_packet, most);
    no_new_sockets(&no_descriptors);
    no_new_sockets(&blocks);
    return done_testing();
}
