/* nodes.c - the nodes: from options, environment or a file, with their passwords; and the files themselves.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "cli.h"

#include <ctype.h>
#include <errno.h>
#include <netdb.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

struct target targets[REDLOCK_NODES_MAX];
unsigned target_count;

unsigned quorum(void)
{
    return target_count / 2 + 1;
}

/* Reads lines of a file without blanks at both ends; 0 at its end. */
static int next_line(FILE *file, char *line, int room, unsigned *number)
{
    size_t size;

    if (fgets(line, room, file) == NULL)
        return 0;
    ++*number;
    if (strchr(line, '\n') == NULL && !feof(file))
        die(EXIT_CONFIG, "line %u is longer than %d bytes", *number, room - 2);
    for (size = strlen(line); size > 0 && isspace((unsigned char)line[size - 1]); size--)
        line[size - 1] = '\0';
    size = strspn(line, " \t");
    memmove(line, line + size, strlen(line + size) + 1);
    return 1;
}

/* A password in it is no secret. Who is not root may get a file of root's through his group: so systemd hands
   out credentials. */
static void must_be_private(FILE *file, const char *path)
{
    struct stat status;
    mode_t others = S_IRWXG | S_IRWXO;

    if (fstat(fileno(file), &status) != 0)
        die(EXIT_CONFIG, "%s: %s", path, strerror(errno));
    if (status.st_uid == 0 && geteuid() != 0)
        others = S_IWGRP | S_IRWXO;
    if (!S_ISREG(status.st_mode) || (status.st_mode & others) != 0)
        die(EXIT_CONFIG, "%s: others may read it, so nothing in it is a secret: chmod 600", path);
}

void config_load(const char *path, int must_be,
                 int (*add)(const char *key, const char *value, const char *where))
{
    char line[4096], where[300];
    FILE *file = fopen(path, "re");
    unsigned number = 0;

    if (file == NULL) {
        if (must_be || errno != ENOENT)
            die(EXIT_CONFIG, "%s: %s", path, strerror(errno));
        return;
    }
    while (next_line(file, line, sizeof line, &number)) {
        char *value = strchr(line, '='), *end;
        snprintf(where, sizeof where, "%.250s: line %u", path, number);
        if (line[0] == '\0' || line[0] == '#')
            continue;
        if (value == NULL || value == line)
            die(EXIT_CONFIG, "%s: not of the form key = value", where);
        for (end = value; end > line && isspace((unsigned char)end[-1]); end--)
            continue;
        *end = '\0';
        value++;
        if (strchr(value, '@') != NULL)
            must_be_private(file, path);
        if (add(line, value + strspn(value, " \t"), where) != 0)
            die(EXIT_CONFIG, "%s: no such key: %s", where, line);
    }
    fclose(file);
}

/* The file's one line: "password" or "user:password". */
static void read_auth_file(const char *path, char *line, int room)
{
    FILE *file = fopen(path, "re");
    unsigned number = 0;

    if (file == NULL)
        die(EXIT_CONFIG, "%s: %s", path, strerror(errno));
    must_be_private(file, path);
    if (!next_line(file, line, room, &number) || line[0] == '\0')
        die(EXIT_CONFIG, "%s: no password in it", path);
    fclose(file);
}

static struct {
    int fd;
    struct termios before;
} terminal;

/* A signal at the question: shows again what is typed, and is then what it would have been. */
static void put_back(int number)
{
    tcsetattr(terminal.fd, TCSAFLUSH, &terminal.before);
    raise(number);
}

/* From the terminal, unseen. */
static void ask_for_password(char *line, int room)
{
    static const int ending[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    enum { ENDING = sizeof ending / sizeof *ending };
    FILE *file = fopen("/dev/tty", "r+e");
    struct sigaction action = {0}, were[ENDING];
    struct termios unseen;
    unsigned number = 0, i;
    int got;

    if (file == NULL || tcgetattr(terminal.fd = fileno(file), &terminal.before) != 0)
        die(EXIT_CONFIG, "--askpass: no terminal");
    unseen = terminal.before;
    unseen.c_lflag &= ~(tcflag_t)ECHO;
    action.sa_handler = put_back;
    action.sa_flags = (int)SA_RESETHAND; /* so that raise() ends us */
    sigaddset(&action.sa_mask, SIGTTOU); /* in the background too */
    for (i = 0; i < ENDING; i++) {
        sigaction(ending[i], NULL, &were[i]);
        if (were[i].sa_handler != SIG_IGN)
            sigaction(ending[i], &action, NULL);
    }
    tcsetattr(terminal.fd, TCSAFLUSH, &unseen);
    fputs("Password of the nodes: ", file);
    fflush(file);
    got = next_line(file, line, room, &number);
    tcsetattr(terminal.fd, TCSAFLUSH, &terminal.before);
    for (i = 0; i < ENDING; i++)
        sigaction(ending[i], &were[i], NULL);
    fputc('\n', file);
    fclose(file);
    if (!got || line[0] == '\0')
        die(EXIT_CONFIG, "--askpass: no password");
}

/* The password for nodes whose address has none: "" if there is none. `line` may be "user:password". */
static void find_password(char *line, int room)
{
    const char *said = getenv("REDISCLI_AUTH");

    line[0] = '\0';
    if (options.askpass)
        ask_for_password(line, room);
    else if (options.auth_file != NULL)
        read_auth_file(options.auth_file, line, room);
    else if (said != NULL)
        snprintf(line, (size_t)room, ":%s", said);
}

static void give_password(struct redlock_url *url, const char *line)
{
    const char *colon = strchr(line, ':'), *password = colon != NULL ? colon + 1 : line;
    size_t user = colon != NULL ? (size_t)(colon - line) : 0;

    if (line[0] == '\0' || url->password[0] != '\0')
        return;
    if (user >= sizeof url->user || strlen(password) >= sizeof url->password)
        die(EXIT_CONFIG, "user or password is too long");
    memcpy(url->user, line, user);
    url->user[user] = '\0';
    strcpy(url->password, password);
}

/* Nobody but root is to read our memory from now on. */
static void hide_memory(void)
{
#ifdef __linux__
    prctl(PR_SET_DUMPABLE, 0);
#endif
}

static void look_up(struct target *target)
{
    int failed = redlock_resolve(target->url.address, target->address, sizeof target->address);

    if (failed != 0)
        target->trouble = failed == -1 ? "too long an address" : gai_strerror(failed);
}

void nodes_load(void)
{
    unsigned i, n;

    nodes_read();
    for (i = 0; i < target_count; i++) {
        if (targets[i].trouble != NULL)
            die(EXIT_CONFIG, "%s: %s", targets[i].url.address, targets[i].trouble);
        for (n = 0; n < i; n++)
            if (strcmp(targets[n].address, targets[i].address) == 0)
                die(EXIT_CONFIG, "%s and %s are the same node: it would vote twice",
                    targets[n].url.address, targets[i].url.address);
    }
}

void nodes_read(void)
{
    const char *at = options.nodes, *wrong;
    struct redlock_url url;
    char line[2 * REDLOCK_URL_MAX + 2];
    uint32_t longest_ms = 0;

    if (at == NULL)
        die(EXIT_CONFIG, "no nodes: name them by -N, REDLOCK_NODES, or \"node = ...\" in "
                         "/etc/redlock.conf");
    find_password(line, sizeof line);
    for (;;) {
        if ((wrong = redlock_url_next(&at, &url)) != NULL)
            die(EXIT_CONFIG, "node %u, column %ld of the list: %s", target_count + 1,
                (long)(at - options.nodes) + 1, wrong);
        if (url.address[0] == '\0')
            break;
        if (target_count == REDLOCK_NODES_MAX)
            die(EXIT_CONFIG, "more than %d nodes", REDLOCK_NODES_MAX);
        if (url.tls)
            die(EXIT_CONFIG, "%s: TLS is not built in: reach it through stunnel, or a unix socket",
                url.address);
        give_password(&url, line);
        if (url.password[0] != '\0')
            hide_memory();
        targets[target_count].url = url;
        look_up(&targets[target_count]);
        if (url.timeout_ms > longest_ms)
            longest_ms = url.timeout_ms;
        target_count++;
    }
    if (target_count == 0)
        die(EXIT_CONFIG, "no nodes in the list");
    if (options.node_timeout_ms < 0)
        options.node_timeout_ms = longest_ms > 0 ? (long)longest_ms : 250;
    if (options.node_timeout_ms < 1 || options.node_timeout_ms > 60000)
        die(EXIT_CONFIG, "--node-timeout: 1ms to 60s");
    memset(line, 0, sizeof line);
}
