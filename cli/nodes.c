/* nodes.c - the list of nodes, with passwords, from options, environment or files; reading the files.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "cli.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

unsigned quorum(void)
{
    return target_count / 2 + 1;
}

/* Why an optional file was not read; NULL if it was read or does not exist. */
static const char *unread;

/* A file that is read by lines. */
struct source {
    FILE *file;
    const char *path;
    unsigned line; /* the last one that was read */
};

/* Returns 0 if the file cannot be read, with the reason in errno. Refuses pipes and the like, because they might block. */
static int open_source(struct source *source, const char *path)
{
    struct stat status;

    source->path = path;
    source->line = 0;
    if (stat(path, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISCHR(status.st_mode))
        die(EXIT_CONFIG, "%s: not a regular file", path);
    source->file = fopen(path, "re");
    return source->file != NULL;
}

/* Reads a line, and removes blanks at both ends. Returns 0 at the end of the file, or if the line cannot be used: then `wrong`
   is not empty. */
static int read_line(struct source *source, char *line, size_t room, char wrong[100])
{
    size_t size = 0;
    int c;

    wrong[0] = '\0';
    while ((c = getc(source->file)) > 0 && c != '\n' && size < room - 1)
        line[size++] = (char)c;
    source->line++;
    if (ferror(source->file))
        snprintf(wrong, 100, "%s", strerror(errno));
    else if (c == '\0')
        snprintf(wrong, 100, "it has a NUL byte");
    else if (c != EOF && c != '\n')
        snprintf(wrong, 100, "longer than %lu bytes", (unsigned long)(room - 1));
    if (wrong[0] != '\0' || (c == EOF && size == 0))
        return 0;
    while (size > 0 && isspace((unsigned char)line[size - 1]))
        size--;
    line[size] = '\0';
    size = strspn(line, " \t");
    memmove(line, line + size, strlen(line + size) + 1);
    return 1;
}

/* The same, but exits if the line cannot be used. */
static int next_line(struct source *source, char *line, size_t room)
{
    char wrong[100];
    int got = read_line(source, line, room, wrong);

    if (wrong[0] != '\0')
        die(EXIT_CONFIG, "%s: line %u: %s", source->path, source->line, wrong);
    return got;
}

int nodes_have_password(const char *list)
{
    const char *at = list;
    struct redlock_url url;

    do
        if (redlock_url_next(&at, &url) != NULL)
            return strchr(list, '@') != NULL;
    while (url.address[0] != '\0' && url.password[0] == '\0');
    return url.password[0] != '\0';
}

/* A password that other users can read is not secret. A file of root may be readable by a group, because systemd passes
   credentials in this way. */
static void must_be_private(const struct source *source)
{
    struct stat status;
    mode_t others = S_IRWXG | S_IRWXO;

    if (fstat(fileno(source->file), &status) != 0)
        die(EXIT_CONFIG, "%s: %s", source->path, strerror(errno));
    if (status.st_uid == 0)
        others = S_IWGRP | S_IRWXO;
    if ((status.st_mode & others) != 0)
        die(EXIT_CONFIG, "%s: the file has a password, and other users can read it: chmod 600",
            source->path);
}

/* A comment begins at the start of a line or after a blank, so that a # in a password does not begin a comment. */
static void cut_comment(char *line)
{
    char *at = line;

    while ((at = strchr(at, '#')) != NULL && at != line && !isspace((unsigned char)at[-1]))
        at++;
    for (; at != NULL && at > line && isspace((unsigned char)at[-1]); at--)
        continue;
    if (at != NULL)
        *at = '\0';
}

void config_load(const char *path, int must_be,
                 int (*add)(const char *key, const char *value, const char *where))
{
    char line[4096], where[300];
    struct source source;

    if (!open_source(&source, path)) {
        if (must_be)
            die(EXIT_CONFIG, "%s: %s", path, strerror(errno));
        if (errno != ENOENT) /* for example only root may read it; it may not be needed */
            say(LOG_DEBUG, "%s: not read: %s", path, unread = strerror(errno));
        return;
    }
    while (next_line(&source, line, sizeof line)) {
        char *value, *end;
        cut_comment(line);
        snprintf(where, sizeof where, "%.250s: line %u", path, source.line);
        if (line[0] == '\0')
            continue;
        value = strchr(line, '=');
        if (value == NULL || value == line)
            die(EXIT_CONFIG, "%s: this line is not key = value", where);
        for (end = value; end > line && isspace((unsigned char)end[-1]); end--)
            continue;
        *end = '\0';
        value++;
        if (strncmp(line, "node", 4) == 0 && nodes_have_password(value))
            must_be_private(&source);
        if (add(line, value + strspn(value, " \t"), where) != 0)
            die(EXIT_CONFIG, "%s: no such key: %.*s", where, public_size(line), line);
    }
    fclose(source.file);
}

/* The password for nodes whose address has none. */
static void give_password(struct redlock_url *url)
{
    const char *said = getenv("REDISCLI_AUTH");

    if (said == NULL || url->password[0] != '\0')
        return;
    if (strlen(said) >= sizeof url->password)
        die(EXIT_CONFIG, "the password in REDISCLI_AUTH is too long");
    url->user[0] = '\0';
    strcpy(url->password, said);
}

/* From now on only root can read the memory of this process. */
static void hide_memory(void)
{
#ifdef __linux__
    prctl(PR_SET_DUMPABLE, 0);
#endif
}

/* ---- The list ---- */

void nodes_check(const char *list, const char *where)
{
    const char *at = list, *wrong;
    struct redlock_url url;

    do
        if ((wrong = redlock_url_next(&at, &url)) != NULL)
            die(EXIT_CONFIG, "%s: column %ld of the value: %s", where, (long)(at - list) + 1,
                wrong);
    while (url.address[0] != '\0');
}

void say_reasons(enum level level, const char *const *reason)
{
    char list[800];
    unsigned i, n;

    for (i = 0; i < target_count; i++) {
        for (n = 0; n < i && strcmp(reason[n], reason[i]) != 0; n++)
            continue;
        if (n < i || reason[i][0] == '\0')
            continue; /* told already, or none */
        list[0] = '\0';
        for (; n < target_count; n++) {
            size_t used = strlen(list);
            if (strcmp(reason[n], reason[i]) == 0)
                snprintf(list + used, sizeof list - used, "%s%.255s", used > 0 ? ", " : "",
                         targets[n].url.address);
        }
        say(level, "  %s: %s", list, reason[i]);
    }
}

void nodes_load(void)
{
    unsigned i, n;

    nodes_read();
    for (i = 0; i < target_count; i++)
        for (n = 0; n < i; n++)
            if (strcmp(targets[n].address, targets[i].address) == 0)
                die(EXIT_CONFIG, "%s and %s are the same node, which would vote twice",
                    targets[n].url.address, targets[i].url.address);
}

void nodes_read(void)
{
    const char *at = options.nodes, *wrong;
    struct redlock_url url;
    uint32_t longest_ms = 0;
    unsigned slowest = 0;

    if (at == NULL)
        die(EXIT_CONFIG,
            "no nodes: name them with -N, REDLOCK_NODES, or \"node = ...\" in "
            "/etc/redlock.conf%s%s%s",
            unread != NULL ? " (" : "", unread != NULL ? unread : "", unread != NULL ? ")" : "");
    for (;;) {
        if ((wrong = redlock_url_next(&at, &url)) != NULL)
            die(EXIT_CONFIG, "node %u, column %ld of the list: %s", target_count + 1,
                (long)(at - options.nodes) + 1, wrong);
        if (url.address[0] == '\0')
            break;
        if (target_count == REDLOCK_NODES_MAX)
            die(EXIT_CONFIG, "more than %d nodes", REDLOCK_NODES_MAX);
        if (url.tls && !HAS_TLS)
            die(EXIT_CONFIG,
                "%s: this program was built without TLS: build it with `make cli TLS=1`, or use "
                "stunnel or a unix socket",
                url.address);
        give_password(&url);
        if (url.password[0] != '\0' || (url.tls && options.key != NULL))
            hide_memory();
        targets[target_count].url = url;
        if (url.timeout_ms > longest_ms) {
            longest_ms = url.timeout_ms;
            slowest = target_count;
        }
        target_count++;
    }
    if (target_count == 0)
        die(EXIT_CONFIG, "no nodes in the list");
    names_load();
    if (options.node_timeout_ms < 0)
        options.node_timeout_ms = longest_ms > 0 ? (long)longest_ms : 250;
    if (options.node_timeout_ms > TIMEOUT_MAX_MS)
        die(EXIT_CONFIG, "%s: the timeout in its address: 60s at most",
            targets[slowest].url.address);
}
