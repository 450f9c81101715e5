/* net.c - struct redlock_io for POSIX: sockets, poll(), clock, entropy, names. The only file of
   the library with system headers. Firmware without POSIX leaves it out and has another struct
   redlock_io.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#if defined(__FreeBSD__) || defined(__NetBSD__) || defined(__OpenBSD__)
#if !defined(_POSIX_C_SOURCE) && !defined(_XOPEN_SOURCE)
#define NET_BSD /* each of these would hide what is not in POSIX */
#endif
#elif !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L /* before any system header */
#endif
#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* ppoll */
#endif
#if defined(__APPLE__) && !defined(_DARWIN_C_SOURCE)
#define _DARWIN_C_SOURCE /* SO_NOSIGPIPE */
#endif

#include "redlock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#ifndef CLOCK_MONOTONIC
#error                                                                                             \
    "net.c needs POSIX.1-2008: include it before any system header, or compile with -D_POSIX_C_SOURCE=200809L"
#endif

/* On NuttX /dev/urandom begins with the same bytes after each boot, unless it has a hardware
   generator or the board seeds its entropy pool. Two boards with one token would take each other's
   lock for their own. */
#ifdef __NuttX__
#include <nuttx/config.h>
#if defined(CONFIG_DEV_URANDOM) && !defined(CONFIG_DEV_URANDOM_ARCH) &&                            \
    !(defined(CONFIG_DEV_URANDOM_RANDOM_POOL) && defined(CONFIG_BOARD_INITRNGSEED))
#error                                                                                             \
    "/dev/urandom would repeat itself after each boot: set CONFIG_DEV_URANDOM_ARCH, or CONFIG_DEV_URANDOM_RANDOM_POOL and CONFIG_BOARD_INITRNGSEED, or clear CONFIG_DEV_URANDOM and bring your own `entropy` in struct redlock_io"
#endif
#endif

/* ---- What some systems lack ----------------------------------------------------------------- */

/* With REDLOCK_WITHOUT_... a function or a flag is not used where it exists either. */

/* The functions of <sys/random.h> came with glibc 2.25, musl 1.1.20, Android 9 and macOS 10.12; a
   toolchain may have a newer header than its target. A compiler that cannot be asked for a header
   is older. On Linux getrandom is better: getentropy may block soon after boot. */
#if (defined(__linux__) || defined(__APPLE__)) && defined(__has_include)
#if __has_include(<sys/random.h>) && (!defined(__ANDROID_API__) || __ANDROID_API__ >= 28) &&        \
    (!defined(__GLIBC__) || __GLIBC__ > 2 || __GLIBC_MINOR__ >= 25)
#include <sys/random.h>
#define NET_RANDOM_H
#endif
#endif
#ifdef __NetBSD__
#include <sys/param.h> /* its version */
#endif
#if defined(NET_RANDOM_H) && defined(__linux__) && !defined(REDLOCK_WITHOUT_GETRANDOM)
#define NET_GETRANDOM
#elif defined(REDLOCK_WITHOUT_GETENTROPY) /* the device remains */
#elif defined(NET_RANDOM_H)
#define NET_GETENTROPY
#elif defined(NET_BSD)
#if defined(__OpenBSD__) || (defined(__FreeBSD__) && __FreeBSD__ >= 12) ||                         \
    (defined(__NetBSD__) && __NetBSD_Version__ >= 1000000000)
#define NET_GETENTROPY
#endif
#endif

/* NuttX has the names of interfaces only if it is asked to. */
#if !defined(REDLOCK_WITHOUT_IF_NAMETOINDEX) &&                                                    \
    (!defined(__NuttX__) || defined(CONFIG_NETDEV_IFINDEX))
#include <net/if.h>
#define NET_INTERFACES
#endif

/* ppoll is declared only with _GNU_SOURCE. If a program has included a header of glibc before,
   defining it here is too late. */
#if defined(__linux__) && (!defined(__GLIBC__) || defined(__USE_GNU)) &&                           \
    !defined(REDLOCK_WITHOUT_PPOLL)
#define NET_PPOLL
#endif
#if defined(SOCK_CLOEXEC) && !defined(REDLOCK_WITHOUT_SOCK_CLOEXEC)
#define NET_SOCK_CLOEXEC SOCK_CLOEXEC
#else
#define NET_SOCK_CLOEXEC 0
#endif
/* On FreeBSD 13 it is another name for CLOCK_UPTIME. */
#if defined(CLOCK_BOOTTIME) && !defined(__FreeBSD__) && !defined(REDLOCK_WITHOUT_CLOCK_BOOTTIME)
#define NET_CLOCK CLOCK_BOOTTIME
#endif
#if defined(MSG_NOSIGNAL) && !defined(REDLOCK_WITHOUT_MSG_NOSIGNAL)
#define NET_SEND_FLAGS MSG_NOSIGNAL
#else
#define NET_SEND_FLAGS 0
#ifndef SO_NOSIGPIPE
#include <signal.h>
#define NET_BLOCKS_SIGPIPE
#endif
#endif

/* ---- Addresses ------------------------------------------------------------------------------ */

union net_address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_un local;
};

static const char net_local_prefix[] = "unix:";

/* Copies `size` bytes and a NUL. Returns 0 if they do not fit. */
static int net_copy(char *to, size_t room, const char *from, size_t size)
{
    if (size >= room)
        return 0;
    memcpy(to, from, size);
    to[size] = '\0';
    return 1;
}

/* Splits "host:port" or "[v6]:port". Returns the port; 0 if the address has no such form: without
   brackets the end of an IPv6 address would be the port. */
static uint16_t net_split(const char *address, char *host, size_t room)
{
    const char *start = address, *end = strrchr(address, ':'), *digit;
    unsigned long port = 0;
    int bracketed, v6;

    if (end == NULL)
        return 0;
    for (digit = end + 1; *digit >= '0' && *digit <= '9' && port <= 65535; digit++)
        port = port * 10 + (unsigned long)(*digit - '0');
    if (*digit != '\0' || port > 65535)
        return 0;
    bracketed = *start == '[' && end[-1] == ']';
    start += bracketed;
    end -= bracketed;
    v6 = strchr(start, ':') < end;
    if (v6 != bracketed)
        return 0;
    return end > start && net_copy(host, room, start, (size_t)(end - start)) ? (uint16_t)port : 0;
}

/* "fe80::1%eth0": the part after % is the name of the interface. */
static int net_parse_v6(char *host, struct sockaddr_in6 *out)
{
#ifdef NET_INTERFACES
    char *scope = strchr(host, '%');

    if (scope != NULL)
        *scope++ = '\0';
#endif
    if (inet_pton(AF_INET6, host, &out->sin6_addr) != 1)
        return 0;
    out->sin6_family = AF_INET6;
#ifdef NET_INTERFACES
    if (scope != NULL && (out->sin6_scope_id = if_nametoindex(scope)) == 0)
        return 0;
#endif
    return 1;
}

/* Parses a node's address. It must be numeric, because a name lookup would block. Returns its
   size, or 0. If only the interface is unknown, the family is set all the same. */
static socklen_t net_parse(const char *address, union net_address *out)
{
    char host[96]; /* with room for the name of an interface */
    uint16_t port;

    memset(out, 0, sizeof *out);
    if (strncmp(address, net_local_prefix, sizeof net_local_prefix - 1) == 0) {
        const char *path = address + sizeof net_local_prefix - 1;
        size_t size = strlen(path);
        out->local.sun_family = AF_UNIX;
        if (size == 0 || !net_copy(out->local.sun_path, sizeof out->local.sun_path, path, size))
            return 0;
        return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size + 1);
    }
    if ((port = net_split(address, host, sizeof host)) == 0)
        return 0;
    if (inet_pton(AF_INET, host, &out->v4.sin_addr) == 1) {
        out->v4.sin_family = AF_INET;
        out->v4.sin_port = htons(port);
        return sizeof out->v4;
    }
    memset(out, 0, sizeof *out);
    if (!net_parse_v6(host, &out->v6))
        return 0;
    out->v6.sin6_port = htons(port);
    return sizeof out->v6;
}

/* Returns 0 if it does not fit. */
static int net_append(char *text, size_t room, const char *more)
{
    size_t used = strlen(text);

    return net_copy(text + used, room - used, more, strlen(more));
}

/* Appends "%eth0". Returns 0 if there is no room, or the interface does not exist any more. */
static int net_append_scope(char *text, size_t room, unsigned index)
{
#ifdef NET_INTERFACES
    char name[IF_NAMESIZE];

    return if_indextoname(index, name) != NULL && net_append(text, room, "%") &&
           net_append(text, room, name);
#else
    (void)text;
    (void)room;
    (void)index;
    return 0;
#endif
}

/* Writes "10.0.0.1", or "[fe80::1%eth0]". Returns 0 if there is no room, or a name is missing. */
static int net_print(const union net_address *address, char *text, size_t size)
{
    if (address->any.sa_family == AF_INET)
        return inet_ntop(AF_INET, &address->v4.sin_addr, text, (socklen_t)size) != NULL;
    text[0] = '[';
    if (inet_ntop(AF_INET6, &address->v6.sin6_addr, text + 1, (socklen_t)size - 1) == NULL)
        return 0;
    if (address->v6.sin6_scope_id != 0 && !net_append_scope(text, size, address->v6.sin6_scope_id))
        return 0;
    return net_append(text, size, "]");
}

int redlock_resolve(const char *name, char *text, size_t size)
{
    struct addrinfo hints, *found;
    const char *port = strrchr(name, ':');
    char host[96];
    int failed, fits;

    if (strncmp(name, net_local_prefix, sizeof net_local_prefix - 1) == 0)
        return net_copy(text, size, name, strlen(name)) ? 0 : REDLOCK_RESOLVE_INVALID;
    if (net_split(name, host, sizeof host) == 0 || size < 4)
        return REDLOCK_RESOLVE_INVALID;
    memset(&hints, 0, sizeof hints);
    hints.ai_socktype = SOCK_STREAM;
    if ((failed = getaddrinfo(host, NULL, &hints, &found)) != 0)
        return failed;
    fits = net_print((const union net_address *)(const void *)found->ai_addr, text, size) &&
           net_append(text, size, port);
    freeaddrinfo(found);
    return fits ? 0 : REDLOCK_RESOLVE_INVALID;
}

/* ---- Sockets -------------------------------------------------------------------------------- */

static int net_fd(const struct redlock_node *node)
{
    return (int)node->handle;
}

/* Small packets go at once. The end of an idle connection that a NAT or a load balancer forgets in
   silence is noticed: TCP asks the server after 15 s of silence, then each 5 s, and gives up when
   three questions have no answer, after 30 s. docs/settings.md has these times. A system that lacks
   an option has times of its own, often hours. While a reply is owed, stall_ms is the limit, so
   TCP_USER_TIMEOUT is not needed. If an option fails, its part is missing: no error. */
static void net_tune(int fd)
{
    static const struct {
        int level, name, value;
    } options[] = {
        {IPPROTO_TCP, TCP_NODELAY, 1}, /* without the delay of Nagle */
        {SOL_SOCKET, SO_KEEPALIVE, 1}, /* asks an idle server */
#if defined(TCP_KEEPIDLE)
        {IPPROTO_TCP, TCP_KEEPIDLE, 15},
#elif defined(TCP_KEEPALIVE) /* macOS */
        {IPPROTO_TCP, TCP_KEEPALIVE, 15},
#endif
#ifdef TCP_KEEPINTVL
        {IPPROTO_TCP, TCP_KEEPINTVL, 5},
#endif
#ifdef TCP_KEEPCNT
        {IPPROTO_TCP, TCP_KEEPCNT, 3},
#endif
    };
    unsigned i;

    for (i = 0; i < sizeof options / sizeof *options; i++)
        (void)setsockopt(fd, options[i].level, options[i].name, &options[i].value,
                         sizeof options[i].value);
}

/* A non-blocking socket that child processes do not inherit, and that raises no SIGPIPE.
   SOCK_NONBLOCK would save a system call, but NuttX ignores it where a modem or a Wi-Fi chip has
   the sockets, and F_GETFL has the flag all the same. */
static int net_socket(int family)
{
    int fd = socket(family, SOCK_STREAM | NET_SOCK_CLOEXEC, 0);
#ifdef SO_NOSIGPIPE
    int on = 1;
#endif

    if (fd < 0)
        return -1;
    if (fcntl(fd, F_SETFL, O_NONBLOCK) != 0) {
        (void)close(fd);
        return -1;
    }
    if (NET_SOCK_CLOEXEC == 0)
        (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    if (family != AF_UNIX)
        net_tune(fd);
#ifdef SO_NOSIGPIPE
    (void)setsockopt(fd, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on);
#endif
    return fd;
}

/* Says what is wrong with an address that net_parse does not accept. */
static void net_refuse(struct redlock_node *node, const char *otherwise)
{
    int local = strncmp(node->address, net_local_prefix, sizeof net_local_prefix - 1) == 0;

    redlock_set_error(node, local ? "no socket path, or too long" : otherwise, node->address);
}

static int net_dial(void *context, struct redlock_node *node)
{
    union net_address to;
    socklen_t size = net_parse(node->address, &to);
    int fd;

    (void)context;
    if (size == 0) {
        net_refuse(node, "not a numeric address");
        return -1;
    }
    if ((fd = net_socket(to.any.sa_family)) < 0) {
        redlock_set_error(node, "socket", strerror(errno));
        return -1;
    }
    /* After EINTR the connect is in progress, as after EINPROGRESS. EAGAIN means that the queue of
       a unix socket is full, and that no connect is in progress: it is a failure, like a
       refusal. */
    if (connect(fd, &to.any, size) != 0 && errno != EINPROGRESS && errno != EINTR) {
        redlock_set_error(node, "connect", strerror(errno));
        (void)close(fd);
        return -1;
    }
    node->handle = fd;
    return 0;
}

/* Lets redlock_init refuse a host name. An unknown interface after % is accepted, because it may
   be added later. */
static int net_check(void *context, struct redlock_node *node)
{
    union net_address to;

    (void)context;
    if (net_parse(node->address, &to) != 0 || to.any.sa_family == AF_INET6)
        return 0;
    net_refuse(node, "not a numeric address (see redlock_resolve)");
    return -1;
}

static int net_ready(void *context, struct redlock_node *node)
{
    union {
        struct sockaddr any;
        struct sockaddr_in6 v6; /* a longer unix address is truncated: only its family is read */
    } peer, own;
    socklen_t peer_size = sizeof peer, own_size = sizeof own, size = sizeof(int);
    int error = 0;

    (void)context;
    memset(&peer, 0, sizeof peer);
    if (getsockopt(net_fd(node), SOL_SOCKET, SO_ERROR, &error, &size) != 0)
        error = errno;
    if (error == 0 && getpeername(net_fd(node), &peer.any, &peer_size) != 0) {
        if (errno == ENOTCONN)
            return 0;
        error = errno;
    }
    if (error != 0) {
        redlock_set_error(node, "connect", strerror(error));
        return -1;
    }
    /* TCP may connect a socket to itself, if its local port happens to be the port that it
       connects to. */
    if (peer.any.sa_family != AF_UNIX && getsockname(net_fd(node), &own.any, &own_size) == 0 &&
        own_size == peer_size && memcmp(&own, &peer, own_size) == 0) {
        redlock_set_error(node, "connect", "no listener (TCP self-connect)");
        return -1;
    }
    return 1;
}

static int net_would_block(int error)
{
    return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

/* send() without SIGPIPE. If the system has no flag and no option for that, SIGPIPE is blocked in
   this thread meanwhile; a signal from this call is consumed, a signal that was pending before
   stays pending. */
static ssize_t net_send(int fd, const void *bytes, size_t size)
{
#ifdef NET_BLOCKS_SIGPIPE
    const struct timespec at_once = {0, 0};
    sigset_t broken_pipe, pending, old;
    ssize_t moved;
    int error;

    (void)sigemptyset(&broken_pipe);
    (void)sigaddset(&broken_pipe, SIGPIPE);
    (void)pthread_sigmask(SIG_BLOCK, &broken_pipe, &old);
    (void)sigpending(&pending);
    moved = send(fd, bytes, size, NET_SEND_FLAGS);
    error = errno;
    if (moved < 0 && error == EPIPE && sigismember(&pending, SIGPIPE) == 0)
        (void)sigtimedwait(&broken_pipe, NULL, &at_once);
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    errno = error;
    return moved;
#else
    return send(fd, bytes, size, NET_SEND_FLAGS);
#endif
}

static int net_transmit(void *context, struct redlock_node *node, const void *bytes, size_t size)
{
    ssize_t moved = net_send(net_fd(node), bytes, size);

    (void)context;
    if (moved >= 0)
        return (int)moved;
    if (net_would_block(errno))
        return 0;
    redlock_set_error(node, "send", strerror(errno));
    return -1;
}

static int net_receive(void *context, struct redlock_node *node, void *bytes, size_t size)
{
    ssize_t moved = recv(net_fd(node), bytes, size, 0);

    (void)context;
    if (moved > 0)
        return (int)moved;
    if (moved < 0 && net_would_block(errno))
        return 0;
    redlock_set_error(node, "receive", moved == 0 ? "closed by the server" : strerror(errno));
    return -1;
}

static void net_shut(void *context, struct redlock_node *node)
{
    (void)context;
    (void)close(net_fd(
        node)); /* no second try after EINTR: another thread may have the descriptor by then */
    node->handle = -1;
}

/* ---- Time, entropy, waiting ----------------------------------------------------------------- */

/* CLOCK_BOOTTIME if there is one: CLOCK_MONOTONIC does not count while the machine is suspended,
   and a device that resumes after its TTL would believe that it still holds the lock. */
static uint64_t net_now_us(void *context)
{
    struct timespec now = {0, 0};

    (void)context;
#ifdef NET_CLOCK
    if (clock_gettime(NET_CLOCK, &now) != 0)
#endif
        (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static uint64_t net_wall_us(void *context)
{
    struct timespec now = {0, 0};

    (void)context;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* The number of forks between the first process and this one. These are the only variables of the
   library. getpid() would be two more system calls for each lock; it is used only if
   pthread_atfork fails. */
static uint32_t net_forks;
static int net_counts_forks;

static void net_forked(void)
{
    net_forks++;
}

static void net_watch_forks(void)
{
    net_counts_forks = pthread_atfork(NULL, NULL, net_forked) == 0;
}

static uint32_t net_process(void *context)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)context;
    (void)pthread_once(&once, net_watch_forks);
    return net_counts_forks ? net_forks : (uint32_t)getpid();
}

/* The last way: it needs a descriptor, and a file that a chroot may lack and that pledge and other
   sandboxes forbid. */
static int net_device_entropy(uint8_t *bytes, size_t size)
{
    int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    unsigned tries;

    if (fd < 0)
        return -1;
    for (tries = 0; size > 0 && tries < 1000; tries++) {
        ssize_t got = read(fd, bytes, size);
        if (got > 0) {
            bytes += got;
            size -= (size_t)got;
        } else if (got == 0 || errno != EINTR) {
            break;
        }
    }
    (void)close(fd);
    return size == 0 ? 0 : -1;
}

static int net_entropy(void *context, void *bytes, size_t size)
{
    (void)context;
#ifdef NET_GETRANDOM
    /* up to 256 bytes come whole or not at all. EAGAIN: the generator is not initialized yet, soon
       after boot; then the device would give predictable bytes */
    ssize_t got = getrandom(bytes, size, GRND_NONBLOCK);
    if (got == (ssize_t)size)
        return 0;
    if (got < 0 && errno == EAGAIN)
        return -1;
#elif defined(NET_GETENTROPY)
    if (getentropy(bytes, size) == 0) /* 256 bytes at most */
        return 0;
#endif
    return net_device_entropy((uint8_t *)bytes, size);
}

/* ppoll() if there is one, with microseconds, because a notified waiter retries within less than a
   millisecond; else poll(). poll() rounds up, because waking up too early would only spin.
   Neither counts the time for which the machine is suspended, as the clock of the library does. So
   a wait ends after a second at most: then the caller reads the clock, and renews a lock, or sees
   that it is lost, within a second of the resume. */
static int net_poll(struct pollfd *fds, unsigned count, uint64_t timeout_us)
{
    uint64_t most_us = 1000000, us = timeout_us < most_us ? timeout_us : most_us;

#ifdef NET_PPOLL
    struct timespec time;
    time.tv_sec = (time_t)(us / 1000000);
    time.tv_nsec = (long)(us % 1000000) * 1000;
    return ppoll(fds, (nfds_t)count, timeout_us == REDLOCK_NEVER ? NULL : &time, NULL);
#else
    return poll(fds, (nfds_t)count, timeout_us == REDLOCK_NEVER ? -1 : (int)((us + 999) / 1000));
#endif
}

static void net_wait(void *context, struct redlock_node *nodes, unsigned count, uint64_t timeout_us,
                     uint8_t *events)
{
    const struct timespec moment = {0, 1000000};
    struct pollfd fds[REDLOCK_NODES_MAX];
    unsigned i;
    int ready;

    (void)context;
    for (i = 0; i < count; i++) {
        fds[i].fd = events[i] != 0 ? net_fd(&nodes[i]) : -1;
        fds[i].events = (short)((events[i] & REDLOCK_READABLE ? POLLIN : 0) |
                                (events[i] & REDLOCK_WRITABLE ? POLLOUT : 0));
        fds[i].revents = 0;
    }
    ready = net_poll(fds, count, timeout_us);
    if (ready < 0 && errno != EINTR) {
        /* EINVAL where a sandbox has set the limit of descriptors to 0. Each may be ready, so each
           is tried */
        (void)nanosleep(&moment, NULL);
        return;
    }
    for (i = 0; i < count; i++) {
        short got = ready > 0 ? fds[i].revents : 0;
        unsigned bad = (got & (POLLERR | POLLHUP | POLLNVAL)) != 0;
        events[i] = (uint8_t)((got & POLLIN || bad ? REDLOCK_READABLE : 0) |
                              (got & POLLOUT || bad ? REDLOCK_WRITABLE : 0));
    }
}

const struct redlock_io *redlock_posix(void)
{
    static const struct redlock_io posix = {net_dial, net_ready,   net_transmit, net_receive,
                                            net_shut, net_now_us,  net_entropy,  net_wait,
                                            NULL,     net_wall_us, net_process,  net_check};

    return &posix;
}
