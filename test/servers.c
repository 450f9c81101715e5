/* servers.c - see servers.h.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#ifdef __linux__
#define _GNU_SOURCE /* prctl */
#endif
#include "servers.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

static char folder[80];
static pid_t owner;
static struct server *all;
static unsigned all_count;
static const char *const *more_options;

long now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (long)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void sleep_ms(long ms)
{
    struct timespec left = {ms / 1000, ms % 1000 * 1000000};

    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        continue;
}

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

/* ---- The end: also from a signal handler, so with nothing but system calls ------------------- */

static void remove_files(void)
{
    char path[120];
    unsigned i;

    if (folder[0] == '\0')
        return;
    for (i = 0; i < all_count; i++) {
        unlink(all[i].local + 5);
        snprintf(path, sizeof path, "%s/%u.log", folder, i);
        unlink(path);
    }
    rmdir(folder);
    folder[0] = '\0';
}

void servers_stop(void)
{
    unsigned i;

    if (getpid() != owner) /* a child of the test that exits */
        return;
    for (i = 0; i < all_count; i++)
        if (all[i].pid > 0)
            kill(all[i].pid, SIGKILL);
    for (i = 0; i < all_count; i++) {
        if (all[i].pid > 0)
            waitpid(all[i].pid, NULL, 0);
        if (all[i].fd >= 0)
            close(all[i].fd);
        all[i].pid = 0;
        all[i].fd = -1;
    }
    remove_files();
    all_count = 0;
}

static void on_signal(int number)
{
    servers_stop();
    signal(number, SIG_DFL);
    raise(number);
}

static void catch_signals(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    unsigned i;

    for (i = 0; i < sizeof numbers / sizeof *numbers; i++)
        signal(numbers[i], on_signal);
}

/* ---- Starting ------------------------------------------------------------------------------- */

static int free_port(void)
{
    struct sockaddr_in address;
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || bind(fd, (struct sockaddr *)(void *)&address, sizeof address) != 0 ||
        getsockname(fd, (struct sockaddr *)(void *)&address, &size) != 0)
        fail("no free port", strerror(errno));
    close(fd);
    return ntohs(address.sin_port);
}

/* In the child: becomes a redis-server. */
static void become_server(const struct server *server)
{
    const char *words[40] = {"redis-server",    "--bind", "127.0.0.1",  "--save",  "",
                             "--appendonly",    "no",     "--loglevel", "warning", "--unixsocket",
                             server->local + 5, "--dir",  folder,       "--port"};
    char port[12], log[120];
    unsigned used = 14, i;

    snprintf(port, sizeof port, "%d", server->port);
    snprintf(log, sizeof log, "%s/%u.log", folder, (unsigned)(server - all));
    words[used++] = port;
    words[used++] = "--logfile";
    words[used++] = log;
    for (i = 0; more_options != NULL && more_options[i] != NULL && used < 39; i++)
        words[used++] = more_options[i];
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* not even kill -9 of the test leaves servers behind */
    if (getppid() != owner)
        _exit(1);
#endif
    execvp(words[0], (char *const *)(void *)words);
    fprintf(stderr, "redis-server: %s (make deps installs it)\n", strerror(errno));
    _exit(127);
}

static void spawn(struct server *server)
{
    fflush(stdout);
    server->pid = fork();
    if (server->pid < 0)
        fail("fork", strerror(errno));
    if (server->pid == 0)
        become_server(server);
}

/* Waits until it answers. 0 when it has ended, or does not within 20 s. */
static int comes_up(struct server *server)
{
    char reply[64];
    long end = now_ms() + 20000;

    while (now_ms() < end) {
        if (waitpid(server->pid, NULL, WNOHANG) == server->pid) {
            server->pid = 0;
            return 0;
        }
        if (strcmp(server_ask(server, reply, sizeof reply, "PING", NULL), "PONG") == 0)
            return 1;
        sleep_ms(5);
    }
    return 0;
}

static void start(struct server *server, unsigned index)
{
    int tries;

    for (tries = 0; tries < 5; tries++) { /* somebody else may take the port meanwhile */
        server->fd = -1;
        server->port = free_port();
        snprintf(server->address, sizeof server->address, "127.0.0.1:%d", server->port);
        snprintf(server->local, sizeof server->local, "unix:%s/%u.sock", folder, index);
        spawn(server);
        if (comes_up(server))
            return;
        if (server->pid > 0)
            server_kill(server);
    }
    fail("redis-server", "does not come up");
}

void servers_start(struct server *servers, unsigned count, const char *const *options)
{
    const char *parent = getenv("TMPDIR");
    unsigned i;

    snprintf(folder, sizeof folder, "%.40s/redlock-XXXXXX", parent != NULL ? parent : "/tmp");
    if (mkdtemp(folder) == NULL)
        fail(folder, strerror(errno));
    owner = getpid();
    all = servers;
    all_count = 0;
    more_options = options;
    atexit(servers_stop);
    catch_signals();
    memset(servers, 0, count * sizeof *servers);
    for (i = 0; i < count; i++) {
        all_count = i + 1;
        start(&servers[i], i);
    }
}

static void hang_up(struct server *server)
{
    if (server->fd >= 0)
        close(server->fd);
    server->fd = -1;
}

void server_kill(struct server *server)
{
    kill(server->pid, SIGKILL);
    waitpid(server->pid, NULL, 0);
    server->pid = 0;
    hang_up(server);
}

void server_restart(struct server *server)
{
    if (server->pid > 0)
        server_kill(server);
    spawn(server);
    if (!comes_up(server))
        fail(server->address, "does not come up again");
}

void server_pause(struct server *server)
{
    int status;

    kill(server->pid, SIGSTOP);
    waitpid(server->pid, &status, WUNTRACED); /* until it has stopped */
}

void server_resume(struct server *server)
{
    kill(server->pid, SIGCONT);
}

/* ---- The other client ----------------------------------------------------------------------- */

static int connected(struct server *server)
{
    struct timeval limit = {10, 0};
    struct sockaddr_in to;

    if (server->fd >= 0)
        return 1;
    memset(&to, 0, sizeof to);
    to.sin_family = AF_INET;
    to.sin_port = htons((uint16_t)server->port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    server->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (server->fd < 0)
        return 0;
    fcntl(server->fd, F_SETFD, FD_CLOEXEC);
    setsockopt(server->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(server->fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    if (connect(server->fd, (struct sockaddr *)(void *)&to, sizeof to) == 0)
        return 1;
    hang_up(server);
    return 0;
}

static int next_line(int fd, char *line, size_t size)
{
    size_t used = 0;

    while (used + 1 < size && recv(fd, line + used, 1, 0) == 1)
        if (line[used++] == '\n' && used >= 2) {
            line[used - 2] = '\0';
            return 1;
        }
    return 0;
}

static void append(char *reply, size_t size, const char *text)
{
    if (reply[0] != '\0')
        strncat(reply, " ", size - strlen(reply) - 1);
    strncat(reply, text, size - strlen(reply) - 1);
}

/* Appends one reply; arrays within arrays come out flat. */
static int next_reply(int fd, char *reply, size_t size)
{
    char line[4096];
    long left = 1, length;

    for (; left > 0; left--) {
        if (!next_line(fd, line, sizeof line))
            return 0;
        length = strtol(line + 1, NULL, 10);
        if (line[0] == '*') {
            left += length > 0 ? length : 0;
        } else if (line[0] == '$' && length < 0) {
            append(reply, size, "(nil)");
        } else if (line[0] == '$') {
            if (length + 3 > (long)sizeof line ||
                recv(fd, line, (size_t)length + 2, MSG_WAITALL) != length + 2)
                return 0;
            line[length] = '\0';
            append(reply, size, line);
        } else {
            append(reply, size, line[0] == '-' ? line : line + 1);
        }
    }
    return 1;
}

const char *server_ask(struct server *server, char *reply, size_t size, ...)
{
    char command[4096];
    const char *word;
    unsigned words = 0;
    size_t used;
    va_list list;

    va_start(list, size);
    while (va_arg(list, const char *) != NULL)
        words++;
    va_end(list);
    used = (size_t)snprintf(command, sizeof command, "*%u\r\n", words);
    va_start(list, size);
    while ((word = va_arg(list, const char *)) != NULL && used < sizeof command)
        used += (size_t)snprintf(command + used, sizeof command - used, "$%zu\r\n%s\r\n",
                                 strlen(word), word);
    va_end(list);
    reply[0] = '\0';
    if (used >= sizeof command)
        fail("server_ask", "command too long");
    if (!connected(server) || send(server->fd, command, used, MSG_NOSIGNAL) != (ssize_t)used ||
        !next_reply(server->fd, reply, size)) {
        hang_up(server);
        snprintf(reply, size, "(no answer)");
    }
    return reply;
}
