/* servers.c - see servers.h.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#ifdef __linux__
#define _GNU_SOURCE /* prctl */
#endif
#include "servers.h"

#include <arpa/inet.h>
#include <dirent.h>
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

enum { ASK_WORDS = 16, WORDS = 48 };

static char folder[80];
static char logs[SERVERS_MAX][120];
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

void end_with(pid_t parent)
{
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* also after kill -9 of the test no process is left */
#endif
    if (getppid() != parent)
        _exit(1);
}

int open_descriptors(void)
{
    DIR *all_of_them = opendir("/dev/fd"); /* valgrind reports a closed one that is asked for */
    int count = 0;

    if (all_of_them == NULL)
        fail("/dev/fd", strerror(errno));
    while (readdir(all_of_them) != NULL)
        count++;
    closedir(all_of_them);
    return count;
}

/* ---- Signals -------------------------------------------------------------------------------- */

static sigset_t ending_signals(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    return set;
}

/* Blocks signals while a server's process and its `pid` field may differ, because the handler relies on the field. */
static sigset_t hold_signals(void)
{
    sigset_t set = ending_signals(), before;

    sigprocmask(SIG_BLOCK, &set, &before);
    return before;
}

static void allow_signals(sigset_t before)
{
    sigprocmask(SIG_SETMASK, &before, NULL);
}

/* ---- The end -------------------------------------------------------------------------------- */

/* Removes the files that every server has. Runs also in a signal handler: system calls only. */
static void remove_known(void)
{
    unsigned i;

    for (i = 0; i < all_count; i++) {
        unlink(all[i].local + 5);
        unlink(logs[i]);
    }
    rmdir(folder);
}

/* Removes also other files, such as those of --appendonly. Links are removed, not followed. */
static void remove_tree(const char *path, int depth)
{
    DIR *list = opendir(path);
    struct dirent *entry;
    char inner[512];

    while (list != NULL && (entry = readdir(list)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name) >= (int)sizeof inner)
            continue;
        if (unlink(inner) != 0 && depth > 0)
            remove_tree(inner, depth - 1);
    }
    if (list != NULL)
        closedir(list);
    rmdir(path);
}

/* Runs also in a signal handler: system calls only. */
static void end_servers(void)
{
    unsigned i;

    for (i = 0; i < all_count; i++)
        if (all[i].pid > 0)
            kill(all[i].pid, SIGKILL);
    for (i = 0; i < all_count; i++) {
        if (all[i].pid > 0)
            waitpid(all[i].pid, NULL, 0);
        if (all[i].fd >= 0)
            close(all[i].fd);
        if (all[i].held >= 0)
            close(all[i].held);
        all[i].pid = 0;
        all[i].fd = all[i].held = -1;
    }
    remove_known();
}

void servers_stop(void)
{
    sigset_t before;

    if (getpid() != owner || folder[0] == '\0') /* in a child of the test, or called before */
        return;
    before = hold_signals();
    end_servers();
    remove_tree(folder, 4);
    all_count = 0;
    folder[0] = '\0';
    allow_signals(before);
}

static void on_signal(int number)
{
    if (getpid() == owner && folder[0] != '\0')
        end_servers();
    signal(number, SIG_DFL);
    raise(number);
}

/* While one of these signals is handled the others are blocked. */
static void catch_signals(void)
{
    struct sigaction action;

    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    action.sa_mask = ending_signals();
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
}

/* ---- Starting ------------------------------------------------------------------------------- */

int hold_port(char *address, size_t size)
{
    struct sockaddr_in own;
    socklen_t length = sizeof own;
    int yes = 1, fd = socket(AF_INET, SOCK_STREAM, 0);

    memset(&own, 0, sizeof own);
    own.sin_family = AF_INET;
    own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) != 0 ||
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
        bind(fd, (struct sockaddr *)(void *)&own, sizeof own) != 0 ||
        getsockname(fd, (struct sockaddr *)(void *)&own, &length) != 0)
        fail("no free port", strerror(errno));
    snprintf(address, size, "127.0.0.1:%d", ntohs(own.sin_port));
    return fd;
}

int listen_on(char *address, size_t size)
{
    int fd = hold_port(address, size);

    if (listen(fd, 64) != 0)
        fail(address, strerror(errno));
    return fd;
}

/* Appends words up to NULL. Returns the new count. */
static unsigned add(const char **words, unsigned used, const char *const *more)
{
    while (more != NULL && *more != NULL && used < WORDS - 1)
        words[used++] = *more++;
    return used;
}

/* In the child: becomes a redis-server. */
static void become_server(const struct server *server)
{
    char port[12], log_of_keys[16], snapshot[16];
    const char *const file =
        server->options != NULL && server->options[0][0] == '/' ? server->options[0] : NULL;
    const char *const first[] = {"redis-server", file, NULL};
    const char *const usual[] = {"--bind",
                                 "127.0.0.1",
                                 "--save",
                                 "",
                                 "--appendonly",
                                 "no",
                                 "--loglevel",
                                 "warning",
                                 "--unixsocket",
                                 server->local + 5,
                                 "--dir",
                                 folder,
                                 "--port",
                                 port,
                                 "--logfile",
                                 logs[server - all],
                                 "--appendfilename",
                                 log_of_keys, /* they share the folder */
                                 "--dbfilename",
                                 snapshot,
                                 NULL};
    const char *words[WORDS] = {NULL};
    unsigned used = add(words, 0, first);

    snprintf(port, sizeof port, "%d", server->port);
    snprintf(log_of_keys, sizeof log_of_keys, "%d.aof", (int)(server - all));
    snprintf(snapshot, sizeof snapshot, "%d.rdb", (int)(server - all));
    used = add(words, used, usual);
    used = add(words, used, more_options);
    add(words, used, file != NULL ? server->options + 1 : server->options);
    end_with(owner);
    execvp(words[0], (char *const *)(void *)words);
    _exit(errno == ENOENT ? 127 : 126);
}

static void spawn(struct server *server)
{
    sigset_t before = hold_signals();

    fflush(stdout);
    unlink(server->local + 5); /* a killed server leaves its socket */
    server->pid = fork();
    if (server->pid == 0) {
        allow_signals(before);
        become_server(server);
    }
    allow_signals(before);
    if (server->pid < 0)
        fail("fork", strerror(errno));
}

/* Whether the server has ended. Exits if redis-server is not installed. */
static int ended(struct server *server)
{
    sigset_t before = hold_signals();
    int status = 0, over = waitpid(server->pid, &status, WNOHANG) == server->pid;

    if (over)
        server->pid = 0;
    allow_signals(before);
    if (over && WIFEXITED(status) && WEXITSTATUS(status) == 127)
        fail("redis-server not found", "run make deps");
    return over;
}

/* Waits until the server answers, also with -LOADING, or -NOAUTH and -NOPERM. Returns 0 if it has ended, or does not answer within 20 s. */
static int answers(struct server *server)
{
    char reply[64];
    long end = now_ms() + 20000;

    while (now_ms() < end) {
        if (ended(server))
            return 0;
        if (strcmp(server_ask(server, reply, sizeof reply, "PING", NULL), "PONG") == 0 ||
            strncmp(reply, "-LOADING", 8) == 0 || strncmp(reply, "-NO", 3) == 0)
            return 1;
        sleep_ms(5);
    }
    return 0;
}

static void start(struct server *server, unsigned index)
{
    server->fd = server->held = -1;
    server->held = hold_port(server->address, sizeof server->address);
    server->port = atoi(strchr(server->address, ':') + 1);
    snprintf(server->local, sizeof server->local, "unix:%s/%u.sock", folder, index);
    snprintf(logs[index], sizeof logs[index], "%s/%u.log", folder, index);
    spawn(server);
    if (!answers(server))
        fail(server->address, "does not start");
}

void servers_start(struct server *servers, unsigned count, const char *const *options)
{
    const char *parent = getenv("TMPDIR");
    unsigned i;

    if (count > SERVERS_MAX)
        fail("servers_start", "too many");
    if (parent == NULL || strlen(parent) > 60) /* the path of a unix socket must be short */
        parent = "/tmp";
    snprintf(folder, sizeof folder, "%.60s/redlock-XXXXXX", parent);
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

static void disconnect(struct server *server)
{
    if (server->fd >= 0)
        close(server->fd);
    server->fd = -1;
}

void server_kill(struct server *server)
{
    sigset_t before = hold_signals();

    if (server->pid > 0) { /* kill(0) would be this program and its whole process group */
        kill(server->pid, SIGKILL);
        waitpid(server->pid, NULL, 0);
    }
    server->pid = 0;
    disconnect(server);
    allow_signals(before);
}

void server_restart(struct server *server)
{
    server_kill(server);
    spawn(server);
    if (!answers(server))
        fail(server->address, "does not restart");
}

void server_pause(struct server *server)
{
    int status;

    if (server->pid <= 0)
        return;
    kill(server->pid, SIGSTOP);
    waitpid(server->pid, &status, WUNTRACED); /* until it has stopped */
}

void server_resume(struct server *server)
{
    if (server->pid > 0)
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
    disconnect(server);
    return 0;
}

/* Receives exactly `size` bytes. With SO_RCVTIMEO a process that was stopped and continued (Ctrl-Z) gets EINTR. */
static int receive(int fd, char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t got = recv(fd, bytes, size, 0);
        if (got == 0 || (got < 0 && errno != EINTR))
            return 0;
        if (got > 0) {
            bytes += got;
            size -= (size_t)got;
        }
    }
    return 1;
}

static int next_line(int fd, char *line, size_t size)
{
    size_t used = 0;

    while (used + 1 < size && receive(fd, line + used, 1))
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

/* Appends one reply; nested arrays are flattened. */
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
            if (length + 3 > (long)sizeof line || !receive(fd, line, (size_t)length + 2))
                return 0;
            line[length] = '\0';
            append(reply, size, line);
        } else {
            append(reply, size, line[0] == '-' ? line : line + 1);
        }
    }
    return 1;
}

/* Writes the command. Returns its size, or 0 if it is too long. */
static size_t encode(char *command, size_t room, unsigned count, const void *const *words,
                     const size_t *sizes)
{
    size_t used = (size_t)snprintf(command, room, "*%u\r\n", count);
    unsigned i;

    for (i = 0; i < count; i++) {
        if (used + sizes[i] + 32 > room)
            return 0;
        used += (size_t)snprintf(command + used, room - used, "$%zu\r\n", sizes[i]);
        memcpy(command + used, words[i], sizes[i]);
        memcpy(command + used + sizes[i], "\r\n", 2);
        used += sizes[i] + 2;
    }
    return used;
}

const char *server_ask_binary(struct server *server, char *reply, size_t size, unsigned count,
                              const void *const *words, const size_t *sizes)
{
    char command[8192];
    size_t used = encode(command, sizeof command, count, words, sizes);

    if (used == 0)
        fail("server_ask", "command too long");
    reply[0] = '\0';
    if (!connected(server) || send(server->fd, command, used, MSG_NOSIGNAL) != (ssize_t)used ||
        !next_reply(server->fd, reply, size)) {
        disconnect(server);
        snprintf(reply, size, "(no answer)");
    }
    return reply;
}

const char *server_ask(struct server *server, char *reply, size_t size, ...)
{
    const void *words[ASK_WORDS];
    size_t sizes[ASK_WORDS];
    const char *word;
    unsigned count = 0;
    va_list list;

    va_start(list, size);
    while ((word = va_arg(list, const char *)) != NULL) {
        if (count == ASK_WORDS)
            fail("server_ask", "too many words");
        words[count] = word;
        sizes[count++] = strlen(word);
    }
    va_end(list);
    return server_ask_binary(server, reply, size, count, words, sizes);
}

unsigned servers_keys_left(const char *pattern, long wait_ms)
{
    long until = now_ms() + wait_ms;
    char reply[64];
    unsigned i, left;

    for (;; sleep_ms(5)) {
        for (i = left = 0; i < all_count; i++)
            left += strcmp(server_ask(&all[i], reply, sizeof reply, "EVAL",
                                      "return#redis.call('keys',ARGV[1])", "0", pattern, NULL),
                           "0") != 0;
        if (left == 0 || now_ms() >= until)
            return left;
    }
}
