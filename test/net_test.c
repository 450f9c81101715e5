/* net_test.c - net.c: addresses, names, descriptors, and servers on real sockets that are none.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "redlock.h"
#include "servers.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
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
/* As patient as the ttl permits; what is half said is given up after 5 s. */
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
    redlock_lock_init(&lock, "key", 3, 20000);
}

/* ---- A server that is none ------------------------------------------------------------------ */

struct hostile {
    const char *says; /* after each piece that it receives; NULL: nothing */
    int greets;       /* says it at once, unasked */
    int closes;       /* and closes the connection */
    int drips;        /* byte by byte */
};

/* To HELLO 3, to CLIENT TRACKING, and to the question which server it is. */
#if REDLOCK_NOTIFICATION
static const struct hostile polite = {"%1\r\n$4\r\nrole\r\n$6\r\nmaster\r\n+OK\r\n*0\r\n", 0, 0, 0};
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
        if (how->greets)
            hostile_say(fd, how);
        if (first != NULL && recv(fd, bytes, sizeof bytes, 0) > 0)
            hostile_say(fd, first);
        while (recv(fd, bytes, sizeof bytes, 0) > 0) {
            if (!how->greets)
                hostile_say(fd, how);
            if (how->closes)
                break;
        }
        shutdown(fd, SHUT_WR); /* closing with bytes unread would be a reset, not an end */
        while (recv(fd, bytes, sizeof bytes, 0) > 0)
            ;
        close(fd);
    }
    _exit(0);
}

/* `first`: its first reply on each connection; NULL: it is hostile from the first byte on. */
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
        {{"*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n", 0, 0, 0}, " "}, /* too deep, or no answer */
        {{":7\r\n", 0, 0, 0}, "unexpected reply"},
        {{"+O", 0, 1, 0}, "closed by the server"},
        {{NULL, 0, 1, 0}, "closed by the server"},
        {{"+OK\r\n+OK\r\n+OK\r\n", 0, 0, 0}, ""}, /* unasked, or wrong for what was asked since */
        {{"-ERR max number of clients reached\r\n", 1, 0, 0}, "max number of clients"},
        {{"$5\r\nhello", 0, 0, 1}, "unexpected reply"},
    };
    enum { CASES = sizeof cases / sizeof *cases };
    unsigned n, i;

    for (n = 0; n < 2 * CASES; n++) { /* to the handshake, and to a command of a lock */
        char address[40];
        const struct hostile *first = n < CASES ? NULL : &polite;
        pid_t child = hostile_start(first, &cases[i = n % CASES].how, address, sizeof address);
        begin(address);
        is_int((int)redlock_acquire(&client, &lock, 5000), REDLOCK_OK,
               "hostile %u: the others decide", n);
        serve_while(REDLOCK_NODE_CONNECTING, REDLOCK_NODE_HANDSHAKE); /* the others were faster */
        redlock_extend(&client, &lock);
        if (strncmp(cases[i].error, "wrong kind", 10) == 0 && cases[i].how.drips)
            kill(child, SIGTERM); /* half a reply without end: a hang, then a lost connection */
        serve_while(REDLOCK_NODE_READY, REDLOCK_NODE_HANDSHAKE);
        ok(nodes[0].error[0] != '\0' &&
               (cases[i].how.drips || strstr(nodes[0].error, cases[i].error) != NULL),
           "hostile %u: found out: %s", n, nodes[0].error);
        is_int((int)redlock_release(&client, &lock, 5000), REDLOCK_OK, "hostile %u: released", n);
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
           "one byte per packet is a vote too");
    is_int(lock.granted & 1, 1, "and was needed");
    server_resume(&servers[1]);
    redlock_release(&client, &lock, 5000);
    redlock_deinit(&client);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

/* ---- Addresses and names -------------------------------------------------------------------- */

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
        "[12345::1]:1",
        "[::1%a-card-with-a-name-that-is-longer-than-any-that-a-card-ever-had]:1"};
    char path[200] = "unix:/";
    unsigned i;

    memset(path + 6, 'a', sizeof path - 7);
    path[sizeof path - 1] = '\0';
    for (i = 0; i <= sizeof bad / sizeof *bad; i++) {
        const char *address = i < sizeof bad / sizeof *bad ? bad[i] : path;
        enum redlock_status status;

        memset(nodes, 0, sizeof nodes);
        nodes[0].address = address;
        nodes[1].address = servers[0].address;
        nodes[2].address = servers[1].address;
        status = redlock_init(&client, redlock_posix(), nodes, 3, &patient);
        if (strchr(address, '%') != NULL) { /* that interface may come up later */
            is_int((int)status, REDLOCK_OK, "\"%.30s\" may be an address one day", address);
            redlock_lock_init(&lock, "key", 3, 20000);
            is_int((int)redlock_acquire(&client, &lock, 0), REDLOCK_OK, "the others decide");
            redlock_release(&client, &lock, 5000);
        } else {
            is_int((int)status, REDLOCK_INVALID_ARGUMENT, "\"%.30s\" is refused", address);
        }
        ok(strstr(nodes[0].error, "not a numeric address") != NULL, "and it is named: %s",
           nodes[0].error);
        redlock_deinit(&client);
    }
}

/* Our servers listen on 127.0.0.1 only: IPv6 is refused, or there is none here, but the address is taken. */
static void good_addresses(void)
{
    static const char *const hosts[] = {"[::1]", "[::1%lo]"};
    char address[40];
    unsigned i;

    for (i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        snprintf(address, sizeof address, "%s:%d", hosts[i], servers[0].port);
        begin(address);
        redlock_acquire(&client, &lock, 0);
        serve_while(REDLOCK_NODE_CONNECTING, REDLOCK_NODE_CONNECTING);
        ok(strstr(nodes[0].error, "connect") != NULL || strstr(nodes[0].error, "socket") != NULL,
           "an IPv6 address is dialled: %s", nodes[0].error);
        redlock_release(&client, &lock, 5000);
        redlock_deinit(&client);
    }
    begin("unix:/nonexistent/redis.sock");
    redlock_acquire(&client, &lock, 0);
    ok(strstr(nodes[0].error, "No such file") != NULL, "a unix path is dialled: %s",
       nodes[0].error);
    redlock_release(&client, &lock, 5000);
    redlock_deinit(&client);
}

static void names(void)
{
    char text[64];

    is_int(redlock_resolve("127.0.0.1:7001", text, sizeof text), 0, "numbers are resolved");
    ok(strcmp(text, "127.0.0.1:7001") == 0, "to themselves: %s", text);
    is_int(redlock_resolve("[::1]:7001", text, sizeof text), 0, "of IPv6 too");
    ok(strcmp(text, "[::1]:7001") == 0, "with brackets: %s", text);
    is_int(redlock_resolve("[fe80::1%lo]:7001", text, sizeof text), 0, "and behind an interface");
    ok(strcmp(text, "[fe80::1%lo]:7001") == 0, "with its name: %s", text);
    is_int(redlock_resolve("[fe80::1%lo]:7001", text, 12), -1, "which is too long");
    is_int(redlock_resolve("[fe80::1%lo]:7001", text, 9), -1, "without which it just fits");
    is_int(redlock_resolve("[fe80::1%lo]:7001", text, 6), -1, "all of which is");
    is_int(redlock_resolve("unix:/a/b", text, sizeof text), 0, "a unix path");
    ok(strcmp(text, "unix:/a/b") == 0, "stays as it is: %s", text);
    is_int(redlock_resolve("localhost:7001", text, sizeof text), 0, "localhost");
    ok(strcmp(text, "127.0.0.1:7001") == 0 || strcmp(text, "[::1]:7001") == 0, "is %s", text);
    is_int(redlock_resolve("localhost", text, sizeof text), -1, "no port");
    is_int(redlock_resolve("localhost:http", text, sizeof text), -1, "a port by name");
    is_int(redlock_resolve("127.0.0.1:7001", text, 14), -1, "too small a buffer");
    is_int(redlock_resolve("127.0.0.1:7001", text, 5), -1, "or none for the host alone");
    is_int(redlock_resolve("127.0.0.1:7001", text, 3), -1, "far too small");
    is_int(redlock_resolve("unix:/a/b", text, 9), -1, "too small for a path");
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
    is_int(open_descriptors(), before, "all are closed");
}

static void no_descriptors(void)
{
    struct rlimit limit, old;
    int i, wanted = REDLOCK_UNREACHABLE;

    begin("127.0.0.1:1");
    getrlimit(RLIMIT_NOFILE, &old);
    limit = old;
    limit.rlim_cur = 0; /* none at all any more */
    setrlimit(RLIMIT_NOFILE, &limit);
#ifdef REDLOCK_WITHOUT_GETRANDOM
    wanted = REDLOCK_NO_ENTROPY; /* the device needs one too */
#endif
    is_int((int)redlock_acquire(&client, &lock, 0), wanted, "no descriptors left");
    setrlimit(RLIMIT_NOFILE, &old);
    for (i = 0; i < 3; i++)
        ok(strstr(nodes[i].error, "socket") != NULL, "node %d says why: %s", i, nodes[i].error);
    is_int((int)redlock_acquire(&client, &lock, 10000), REDLOCK_OK,
           "and works when there are again");
    redlock_release(&client, &lock, 5000);
    redlock_deinit(&client);
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

/* Interrupted a thousand times a second without harm; SIGPIPE would have ended us. */
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
            shutdown((int)nodes[j].handle, SHUT_RDWR); /* then writes meet a broken pipe */
    }
    setitimer(ITIMER_REAL, &never, NULL);
    is_int(good, 200, "EINTR and SIGPIPE: 100 locks taken and released all the same");
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

/* Whatever is done against SIGPIPE leaves the signals of the program as they were. */
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
        if (before) { /* the program has blocked it, and one is pending */
            sigprocmask(SIG_BLOCK, &set, NULL);
            raise(SIGPIPE);
        }
        is_int(redlock_posix()->transmit(NULL, &nodes[1], "x", 1), -1, "SIGPIPE: a send fails: %s",
               nodes[1].error);
        is_int(sigpipe_is_in(blocked), before, "it is blocked as before");
        is_int(sigpipe_is_in(sigpending), before, "and pending as before");
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
    no_descriptors();
    high_descriptors();
    signals();
    own_signals();
    return done_testing();
}
