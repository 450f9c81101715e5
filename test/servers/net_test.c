/* net_test.c - net.c: addresses, names, descriptors, signals, and faulty servers on real sockets.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "redlock.h"
#include "servers.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct server servers[3];
static struct redlock_node nodes[3];
static struct redlock_client client;
static struct redlock_lock lock;
/* The longest node_timeout_ms that the TTL permits; a node that sends half a reply fails after 5 s. */
static const struct redlock_settings patient = {.node_timeout_ms = 5000, .stall_ms = 5000};

/* Nodes 1 and 2 are real servers, node 0 is `address`. */
static void begin(const char *address)
{
    memset(nodes, 0, sizeof nodes);
    nodes[0].address = address;
    nodes[1].address = servers[0].address;
    nodes[2].address = servers[1].address;
    if (redlock_init(&client, redlock_posix(), nodes, 3, &patient) != REDLOCK_OK)
        ok(0, "init");
    redlock_lock_init(&lock, "key", 20000);
}

/* ---- A faulty server ------------------------------------------------------------------------- */

struct hostile {
    const char *says; /* sent after each piece that it receives; NULL: nothing */
    int at_once;      /* sent when the connection is accepted, instead */
    int closes;       /* then closes the connection */
    int drips;        /* sends byte by byte */
};

/* The replies to HELLO 3 and to INFO; in a minimal build to SELECT. */
#if REDLOCK_MINIMAL
static const struct hostile polite = {"+OK\r\n", 0, 0, 0};
#else
static const struct hostile polite = {"%1\r\n$4\r\nrole\r\n$6\r\nmaster\r\n*0\r\n", 0, 0, 0};
#endif

static void hostile_say(int fd, const struct hostile *how)
{
    size_t i, size = how->says != NULL ? strlen(how->says) : 0;

    for (i = 0; i < size; i += how->drips ? 1 : size) {
        if (send(fd, how->says + i, how->drips ? 1 : size, MSG_NOSIGNAL) <= 0)
            return;
        if (how->drips)
            sleep_ms(1);
    }
}

static void hostile_serve(int listener, const struct hostile *first, const struct hostile *how)
{
    char bytes[4096];
    int fd;

    while ((fd = accept(listener, NULL, NULL)) >= 0) {
        if (how->at_once)
            hostile_say(fd, how);
        if (first != NULL && recv(fd, bytes, sizeof bytes, 0) > 0)
            hostile_say(fd, first);
        while (recv(fd, bytes, sizeof bytes, 0) > 0) {
            if (!how->at_once)
                hostile_say(fd, how);
            if (how->closes)
                break;
        }
        shutdown(fd,
                 SHUT_WR); /* close() with unread bytes would reset the connection, not end it */
        while (recv(fd, bytes, sizeof bytes, 0) > 0)
            ;
        close(fd);
    }
    _exit(0);
}

/* `first`: what it sends first on each connection; NULL: it is faulty from the first byte on. */
static pid_t hostile_start(const struct hostile *first, const struct hostile *how, char *address,
                           size_t size)
{
    int fd = listen_on(address, size);
    pid_t child, parent = getpid();

    fflush(stdout);
    child = fork();
    if (child == 0) {
        end_with(parent);
        hostile_serve(fd, first, how);
    }
    close(fd);
    return child;
}

/* Serves the client while node 0 is in one of these two states and has no error, 15 s at most. */
static void serve_while(enum redlock_node_state one, enum redlock_node_state other)
{
    const struct redlock_io *io = redlock_posix();
    long until = now_ms() + 15000;
    uint8_t events[3];
    unsigned i;

    while ((nodes[0].state == one || nodes[0].state == other) && nodes[0].error[0] == '\0' &&
           now_ms() < until) {
        uint64_t wait_us = redlock_tick(&client);
        for (i = 0; i < 3; i++)
            events[i] = (uint8_t)redlock_wanted_events(&client, i);
        io->wait(NULL, nodes, 3, wait_us < 20000 ? wait_us : 20000, events);
        for (i = 0; i < 3; i++)
            redlock_handle_events(&client, i, events[i]);
    }
}

static void hostile_servers(void)
{
    static const struct {
        struct hostile how;
        const char *error;
    } cases[] = {
        {{"HTTP/1.1 400 Bad Request\r\n\r\n", 0, 1, 0}, "does not speak RESP"},
        {{"$99999999999\r\n", 0, 0, 0}, "does not speak RESP"},
        {{"*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n", 0, 0, 0},
         " "}, /* unfinished; without lists not RESP: any error */
        {{":7\r\n", 0, 0, 0}, "unexpected reply"},
        {{"+O", 0, 1, 0}, "closed by the server"},
        {{NULL, 0, 1, 0}, "closed by the server"},
        {{"+OK\r\n+OK\r\n+OK\r\n", 0, 0, 0},
         ""}, /* unsolicited, or the wrong reply to a later command: any error */
        {{"-ERR max number of clients reached\r\n", 1, 0, 0}, "max number of clients"},
        {{"$5\r\nhello", 0, 0, 1}, "unexpected reply"},
    };
    enum { CASES = sizeof cases / sizeof *cases };
    unsigned n, i;

    for (n = 0; n < 2 * CASES; n++) { /* as replies to the handshake, then to a command of a lock */
        char address[40];
        const struct hostile *first = n < CASES ? NULL : &polite;
        pid_t child = hostile_start(first, &cases[i = n % CASES].how, address, sizeof address);
        begin(address);
        is_int((int)redlock_acquire(&client, &lock, 5000), REDLOCK_OK,
               "faulty server %u: the other nodes decide", n);
        serve_while(REDLOCK_NODE_CONNECTING, REDLOCK_NODE_HANDSHAKE); /* the others may be faster */
        redlock_extend(&client, &lock);
        serve_while(REDLOCK_NODE_READY, REDLOCK_NODE_HANDSHAKE);
        ok(nodes[0].error[0] != '\0' &&
               (cases[i].how.drips || strstr(nodes[0].error, cases[i].error) != NULL),
           "faulty server %u: the node's error: %s", n, nodes[0].error);
        is_int((int)redlock_release(&client, &lock, 5000), REDLOCK_OK, "faulty server %u: released",
               n);
        redlock_deinit(&client);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
}

static void honest_but_slow(void)
{
    static const struct hostile how = {"+OK\r\n", 0, 0, 1};
    char address[40];
    pid_t child = hostile_start(&polite, &how, address, sizeof address);

    begin(address);
    server_pause(&servers[1]);
    is_int((int)redlock_acquire(&client, &lock, 0), REDLOCK_OK,
           "a reply of one byte per packet is a vote");
    is_int(lock.granted & 1, 1, "the quorum needed this vote");
    server_resume(&servers[1]);
    redlock_release(&client, &lock, 5000);
    redlock_deinit(&client);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

/* ---- Addresses and names -------------------------------------------------------------------- */

/* Whether addresses may have the name of an interface. */
#ifdef REDLOCK_WITHOUT_IF_NAMETOINDEX
enum { INTERFACES = 0 };
#else
enum { INTERFACES = 1 };
#endif

static void bad_addresses(void)
{
    static const char *const bad[] = {
        "localhost:6379",
        "127.0.0.1",
        "127.0.0.1:",
        "127.0.0.1:0",
        "127.0.0.1:65536",
        "127.0.0.1:99999999999999999999",
        "127.0.0.1:x",
        "127.0.0.1:6379x",
        ":6379",
        "[::1]",
        "[::1]x:1",
        "[]:1",
        "unix:",
        "256.1.1.1:1",
        "[fe80::1%nosuchcard]:1",
        "[fe80::1%nosuchcard]",
        "[fe80::1%nosuchcard]:0",
        "[fe80:1%lo]:1",
        "[%lo]:1",
        "[12345::1]:1",
        "::1:6379",
        "2001:db8::1:5",
        "[127.0.0.1]:6379",
        "a%host:6379",
        "[::1%a-card-with-a-name-that-is-longer-than-any-that-a-card-ever-had]:1"};
    char path[200] = "unix:/";
    unsigned i;

    memset(path + 6, '%', sizeof path - 7);
    path[sizeof path - 1] = '\0';
    for (i = 0; i <= sizeof bad / sizeof *bad; i++) {
        const char *address = i < sizeof bad / sizeof *bad ? bad[i] : path;
        enum redlock_status status;

        memset(nodes, 0, sizeof nodes);
        nodes[0].address = address;
        nodes[1].address = servers[0].address;
        nodes[2].address = servers[1].address;
        status = redlock_init(&client, redlock_posix(), nodes, 3, &patient);
        if (INTERFACES && strstr(address, "::1%") != NULL &&
            strstr(address, "]:1") != NULL) { /* an interface with this name may be added later */
            is_int((int)status, REDLOCK_OK, "\"%.30s\": an unknown interface is accepted", address);
            redlock_lock_init(&lock, "key", 20000);
            is_int((int)redlock_acquire(&client, &lock, 0), REDLOCK_OK, "the other nodes decide");
            redlock_release(&client, &lock, 5000);
        } else {
            is_int((int)status, REDLOCK_INVALID_ARGUMENT, "\"%.30s\" is refused", address);
            is_int((int)nodes[0].fault, REDLOCK_FAULT_ARGUMENT, "its fault is the argument");
        }
        ok(strstr(nodes[0].error, strncmp(address, "unix:", 5) == 0
                                      ? "no socket path, or too long: unix:"
                                      : "not a numeric address") != NULL,
           "the node's error: %s", nodes[0].error);
        redlock_deinit(&client);
    }
}

/* The servers listen on 127.0.0.1 only. An IPv6 connect is refused, or the machine has no IPv6; yet the address is
   valid. */
static void good_addresses(void)
{
    static const char *const hosts[] = {"[::1]", "[::1%lo]"};
    char address[40];
    unsigned i;

    for (i = 0; i < 1 + INTERFACES; i++) {
        snprintf(address, sizeof address, "%s:%d", hosts[i], servers[0].port);
        begin(address);
        redlock_acquire(&client, &lock, 0);
        serve_while(REDLOCK_NODE_CONNECTING, REDLOCK_NODE_CONNECTING);
        ok(strstr(nodes[0].error, "connect") != NULL || strstr(nodes[0].error, "socket") != NULL,
           "an IPv6 address is connected to: %s", nodes[0].error);
        redlock_release(&client, &lock, 5000);
        redlock_deinit(&client);
    }
    begin("unix:/nonexistent/redis.sock");
    redlock_acquire(&client, &lock, 0);
    ok(strstr(nodes[0].error, "No such file") != NULL, "a unix path is connected to: %s",
       nodes[0].error);
    redlock_release(&client, &lock, 5000);
    redlock_deinit(&client);
}

static void names(void)
{
    static const int errors[] = {0,           EAI_AGAIN,  EAI_BADFLAGS, EAI_FAIL,
                                 EAI_FAMILY,  EAI_MEMORY, EAI_NONAME,   EAI_OVERFLOW,
                                 EAI_SERVICE, EAI_SYSTEM, EAI_SOCKTYPE};
    char text[64];
    unsigned i;

    is_int(redlock_resolve("127.0.0.1:7001", text, sizeof text), 0, "resolve an IPv4 address");
    ok(strcmp(text, "127.0.0.1:7001") == 0, "the result is the same: %s", text);
    is_int(redlock_resolve("[::1]:7001", text, sizeof text), 0, "resolve an IPv6 address");
    ok(strcmp(text, "[::1]:7001") == 0, "the result has brackets: %s", text);
    is_int(redlock_resolve("[fe80::1%lo]:7001", text, sizeof text),
           INTERFACES ? 0 : REDLOCK_RESOLVE_INVALID, "resolve one with an interface");
    ok(!INTERFACES || strcmp(text, "[fe80::1%lo]:7001") == 0, "the result has the interface: %s",
       text);
    is_int(redlock_resolve("[fe80::1%lo]:7001", text, 12), REDLOCK_RESOLVE_INVALID,
           "no room for the port");
    is_int(redlock_resolve("[fe80::1%lo]:7001", text, 9), REDLOCK_RESOLVE_INVALID,
           "no room for the interface");
    is_int(redlock_resolve("[fe80::1%lo]:7001", text, 6), REDLOCK_RESOLVE_INVALID,
           "no room for the address");
    is_int(redlock_resolve("unix:/a/b", text, sizeof text), 0, "resolve a unix path");
    ok(strcmp(text, "unix:/a/b") == 0, "the result is the same: %s", text);
    is_int(redlock_resolve("127.1:7001", text, sizeof text), 0,
           "resolve what is a name for inet_pton, without a file of names");
    ok(strcmp(text, "127.0.0.1:7001") == 0, "the result is an address: %s", text);
    is_int(redlock_resolve("2001:db8::1:5", text, sizeof text), REDLOCK_RESOLVE_INVALID,
           "an IPv6 address without brackets: its end is no port");
    is_int(redlock_resolve("[127.0.0.1]:7001", text, sizeof text), REDLOCK_RESOLVE_INVALID,
           "an IPv4 address in them");
    is_int(redlock_resolve("127.1", text, sizeof text), REDLOCK_RESOLVE_INVALID, "no port");
    is_int(redlock_resolve("127.1:http", text, sizeof text), REDLOCK_RESOLVE_INVALID,
           "a port by name");
    is_int(redlock_resolve("127.0.0.1:7001", text, 14), REDLOCK_RESOLVE_INVALID,
           "a buffer that is a byte too small");
    is_int(redlock_resolve("127.0.0.1:7001", text, 5), REDLOCK_RESOLVE_INVALID,
           "a buffer too small for the host");
    is_int(redlock_resolve("127.0.0.1:7001", text, 3), REDLOCK_RESOLVE_INVALID,
           "a buffer of 3 bytes");
    is_int(redlock_resolve("unix:/a/b", text, 9), REDLOCK_RESOLVE_INVALID,
           "a buffer too small for the path");

    for (i = 0; i < sizeof errors / sizeof *errors; i++)
        ok(REDLOCK_RESOLVE_INVALID != errors[i], "no code of getaddrinfo means this: %d",
           errors[i]);
}

/* ---- Descriptors and signals ---------------------------------------------------------------- */

static void descriptors(void)
{
    int before = open_descriptors(), inherited = 0, fd;

    begin(servers[2].local);
    redlock_acquire(&client, &lock, 0);
    for (fd = 0; fd < 3; fd++)
        if (nodes[fd].handle >= 0)
            inherited += !(fcntl((int)nodes[fd].handle, F_GETFD) & FD_CLOEXEC);
    is_int(inherited, 0, "no descriptor is inherited by a child process");
    redlock_release(&client, &lock, 5000);
    redlock_deinit(&client);
    is_int(open_descriptors(), before, "all descriptors are closed");
}

static int option(int fd, int level, int name)
{
    int value = -1;
    socklen_t size = sizeof value;

    return getsockopt(fd, level, name, &value, &size) == 0 ? value : -1;
}

/* docs/settings.md: a dead idle connection is noticed after 30 s. idle_test sees it, where it may have a network. */
static void keep_alive(void)
{
    int fd;

    begin(servers[2].local);
    redlock_acquire(&client, &lock, 5000);
    fd = (int)nodes[1].handle;
    is_int(option(fd, SOL_SOCKET, SO_KEEPALIVE), 1, "an idle connection is probed");
#if defined(TCP_KEEPIDLE) && defined(TCP_KEEPINTVL) && defined(TCP_KEEPCNT)
    is_int(option(fd, IPPROTO_TCP, TCP_KEEPIDLE) +
               option(fd, IPPROTO_TCP, TCP_KEEPINTVL) * option(fd, IPPROTO_TCP, TCP_KEEPCNT),
           30, "its end is noticed after so many seconds");
#endif
    is_int(option((int)nodes[0].handle, SOL_SOCKET, SO_KEEPALIVE), 0, "a unix socket is not");
    redlock_release(&client, &lock, 5000);
    redlock_deinit(&client);
}

static void no_descriptors(void)
{
    struct rlimit limit, old;
    int i, wanted = REDLOCK_UNREACHABLE;

    begin("127.0.0.1:1");
    getrlimit(RLIMIT_NOFILE, &old);
    limit = old;
    limit.rlim_cur = 0; /* no new descriptor at all */
    setrlimit(RLIMIT_NOFILE, &limit);
#if defined(REDLOCK_WITHOUT_GETRANDOM) && defined(REDLOCK_WITHOUT_GETENTROPY)
    wanted = REDLOCK_NO_ENTROPY; /* the random device needs a descriptor, too */
#endif
    is_int((int)redlock_acquire(&client, &lock, 0), wanted, "no descriptors left");
    setrlimit(RLIMIT_NOFILE, &old);
    for (i = 0; i < 3; i++)
        ok(strstr(nodes[i].error, "socket") != NULL,
           "no descriptors left: the error of node %d: %s", i, nodes[i].error);
    is_int((int)redlock_acquire(&client, &lock, 10000), REDLOCK_OK,
           "descriptors are available again: acquired");
    setrlimit(RLIMIT_NOFILE, &limit); /* as a sandbox does: poll refuses more of them than that */
    is_int((int)redlock_extend(&client, &lock), REDLOCK_OK, "no descriptors left: extended");
    setrlimit(RLIMIT_NOFILE, &old);
    redlock_release(&client, &lock, 5000);
    redlock_deinit(&client);
}

static unsigned waits;

static void counted_wait(void *context, struct redlock_node *n, unsigned count, uint64_t timeout_us,
                         uint8_t *events)
{
    waits++;
    redlock_posix()->wait(context, n, count, timeout_us, events);
}

/* All descriptors are taken, and poll refuses to wait for them: a hung server is waited for, but not in a busy loop. */
static void no_poll(void)
{
    struct redlock_io io = *redlock_posix();
    struct rlimit limit, old;

    io.wait = counted_wait;
    begin(servers[2].address);
    redlock_deinit(&client);
    redlock_init(&client, &io, nodes, 3, NULL);
    redlock_acquire(&client, &lock, 10000);
    server_pause(&servers[0]);
    server_pause(&servers[1]);
    getrlimit(RLIMIT_NOFILE, &old);
    limit = old;
    limit.rlim_cur = 0;
    setrlimit(RLIMIT_NOFILE, &limit);
    waits = 0;
    is_int((int)redlock_extend(&client, &lock), REDLOCK_UNREACHABLE, "poll fails: not extended");
    setrlimit(RLIMIT_NOFILE, &old);
    ok(waits < 500, "poll fails: no busy loop, %u waits", waits); /* each of them at least 1 ms */
    server_resume(&servers[0]);
    server_resume(&servers[1]);
    is_int((int)redlock_release(&client, &lock, 5000), REDLOCK_OK, "released");
    redlock_deinit(&client);
}

static uint64_t longest_us;

static void measured_wait(void *context, struct redlock_node *n, unsigned count,
                          uint64_t timeout_us, uint8_t *events)
{
    longest_us = timeout_us > longest_us ? timeout_us : longest_us;
    redlock_posix()->wait(context, n, count, timeout_us, events);
}

/* A release with a wait of 0 sleeps in no state of the lock, also while servers hang. */
static void release_at_once(void)
{
    static const char *const states[] = {"held", "in an acquire", "in an extension",
                                         "in an extension that servers do not answer",
                                         "in an acquire that servers do not answer"};
    struct redlock_io io = *redlock_posix();
    unsigned i, j;

    io.wait = measured_wait;
    for (i = 0; i < sizeof states / sizeof *states; i++) {
        begin(servers[2].address);
        redlock_deinit(&client);
        redlock_init(&client, &io, nodes, 3, NULL);
        if (i != 1 && i != 4)
            is_int((int)redlock_acquire(&client, &lock, 10000), REDLOCK_OK, "acquired");
        for (j = 0; j < 3 && i >= 3; j++)
            server_pause(&servers[j]);
        if (i == 1 || i == 4)
            redlock_acquire_start(&client, &lock, 10000);
        else if (i != 0)
            redlock_extend_start(&client, &lock);
        for (j = 0; j < 3; j++)
            redlock_tick(&client);
        longest_us = 0;
        redlock_release(&client, &lock, 0);
        ok(longest_us == 0, "a release with a wait of 0 does not sleep: %s", states[i]);
        for (j = 0; j < 3 && i >= 3; j++)
            server_resume(&servers[j]);
        redlock_deinit(&client);
        ok(servers_keys_left("*", 30000) == 0, "no key is left");
    }
}

static void high_descriptors(void)
{
    struct rlimit limit;
    int fd, high;

    getrlimit(RLIMIT_NOFILE, &limit);
    high = limit.rlim_cur > 2100 ? 2000 : (int)limit.rlim_cur - 100;
    begin("127.0.0.1:1");
    redlock_acquire(&client, &lock, 0);
    for (fd = 1; fd < 3; fd++) { /* as in a program with thousands of files */
        int moved = fcntl((int)nodes[fd].handle, F_DUPFD_CLOEXEC, high);
        close((int)nodes[fd].handle);
        nodes[fd].handle = moved;
    }
    is_int((int)redlock_extend(&client, &lock), REDLOCK_OK, "descriptor %d: poll, not select",
           (int)nodes[2].handle);
    is_int((int)redlock_release(&client, &lock, 5000), REDLOCK_OK, "released");
    redlock_deinit(&client);
}

static void on_alarm(int number)
{
    (void)number;
}

/* A signal each millisecond does no harm; a SIGPIPE would end the test. */
static void signals(void)
{
    struct itimerval often = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
    struct sigaction action;
    int i, good = 0;

    signal(SIGPIPE, SIG_DFL);
    memset(&action, 0, sizeof action);
    action.sa_handler = on_alarm; /* without SA_RESTART */
    sigaction(SIGALRM, &action, NULL);
    begin(servers[2].local);
    setitimer(ITIMER_REAL, &often, NULL);
    for (i = 0; i < 100; i++) {
        int j;
        good += redlock_acquire(&client, &lock, 0) == REDLOCK_OK;
        good += redlock_release(&client, &lock, 5000) == REDLOCK_OK;
        for (j = 0; j < 3 && i % 10 == 0; j++)
            shutdown((int)nodes[j].handle, SHUT_RDWR); /* the next send would raise SIGPIPE */
    }
    setitimer(ITIMER_REAL, &never, NULL);
    is_int(good, 200, "EINTR and SIGPIPE: 100 locks are acquired and released");
    redlock_deinit(&client);
}

static int sigpipe_is_in(int (*get)(sigset_t *))
{
    sigset_t set;

    sigemptyset(&set);
    get(&set);
    return sigismember(&set, SIGPIPE);
}

static int blocked(sigset_t *set)
{
    return sigprocmask(SIG_BLOCK, NULL, set);
}

/* The library prevents SIGPIPE without changing the program's blocked and pending signals. */
static void own_signals(void)
{
    sigset_t set;
    const struct timespec at_once = {0, 0};
    int before;

    signal(SIGPIPE, SIG_DFL);
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    for (before = 0; before < 2; before++) {
        begin(servers[2].local);
        redlock_acquire(&client, &lock, 0);
        shutdown((int)nodes[1].handle, SHUT_RDWR);
        if (before) { /* the program has blocked SIGPIPE, and one is pending */
            sigprocmask(SIG_BLOCK, &set, NULL);
            raise(SIGPIPE);
        }
        is_int(redlock_posix()->transmit(NULL, &nodes[1], "x", 1), -1, "SIGPIPE: a send fails: %s",
               nodes[1].error);
        is_int(sigpipe_is_in(blocked), before, "SIGPIPE is blocked as before");
        is_int(sigpipe_is_in(sigpending), before, "SIGPIPE is pending as before");
        redlock_release(&client, &lock, 5000);
        redlock_deinit(&client);
    }
    sigtimedwait(&set, NULL, &at_once);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
}

int main(void)
{
    servers_start(servers, 3, NULL);
    names();
    bad_addresses();
    good_addresses();
    hostile_servers();
    honest_but_slow();
    descriptors();
    keep_alive();
    no_descriptors();
    no_poll();
    release_at_once();
    high_descriptors();
    signals();
    own_signals();
    return done_testing();
}
