/* nodes.c - the list of nodes, with passwords, from options, environment or files; reading the files.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "cli.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

/* What the system accepts: 107 on Linux. */
enum { SOCKET_PATH_MAX = sizeof((struct sockaddr_un *)0)->sun_path - 1 };

/* Why an optional file was not read; NULL if it was read or does not exist. */
static const char *unread;

/* A file that is read by lines. */
struct source {
    FILE *file;
    mode_t mode;
    const char *path;
    unsigned line; /* the last one that was read */
};

/* Why the file cannot be used. */
static char trouble[700];

/* Notes the reason. Returns -1. */
static int __attribute__((format(printf, 1, 2))) refuses(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(trouble, sizeof trouble, format, arguments);
    va_end(arguments);
    return -1;
}

/* Returns 0, or -1 with the reason in errno, too. Refuses pipes and the like with EINVAL, because they might block, unless the user
   has named one. */
static int open_source(struct source *source, const char *path, int may_be_pipe)
{
    struct stat status = {0};

    source->path = path;
    source->line = 0;
    if (stat(path, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISCHR(status.st_mode) &&
        !(may_be_pipe && S_ISFIFO(status.st_mode))) {
        errno = EINVAL;
        return refuses("%s: not a regular file", path);
    }
    source->mode = status.st_mode;
    source->file = fopen(path, "re");
    return source->file != NULL ? 0 : refuses("%s: %s", path, strerror(errno));
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
   credentials in this way. Returns 0 if it is private, or -1. */
static int check_privacy(const struct source *source)
{
    struct stat status;
    mode_t others = S_IRWXG | S_IRWXO;

    if (fstat(fileno(source->file), &status) != 0)
        return refuses("%s: %s", source->path, strerror(errno));
    if (status.st_uid == 0)
        others = S_IWGRP | S_IRWXO;
    return (status.st_mode & others) == 0
               ? 0
               : refuses("%s: the file has a password, and other users can read it: chmod 600",
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

/* Passes one line to `add`. Returns 0, or -1 if it is wrong. */
static int take_line(const struct source *source, char *line, add_line *add)
{
    char where[300], *value, *end;

    cut_comment(line);
    snprintf(where, sizeof where, "%.250s: line %u", source->path, source->line);
    if (line[0] == '\0')
        return 0;
    value = strchr(line, '=');
    if (value == NULL || value == line)
        return refuses("%s: this line is not key = value", where);
    for (end = value; end > line && isspace((unsigned char)end[-1]); end--)
        continue;
    *end = '\0';
    value++;
    if (strncmp(line, "node", 4) == 0 && nodes_have_password(value) && check_privacy(source) != 0)
        return -1;
    if (add(line, value + strspn(value, " \t"), where) != 0)
        return refuses("%s: no such key: %.*s", where, public_size(line), line);
    return 0;
}

/* Passes all lines to `add`, and closes the file. Returns 0, or -1 if the file cannot be used. */
static int read_source(struct source *source, add_line *add)
{
    char line[4 * REDLOCK_URL_PASSWORD_MAX], wrong[100]; /* each byte of a password may be %XX */
    int result = 0;

    while (result == 0 && read_line(source, line, sizeof line, wrong))
        result = take_line(source, line, add);
    fclose(source->file);
    if (result == 0 && wrong[0] != '\0')
        result = refuses("%s: line %u: %s", source->path, source->line, wrong);
    return result;
}

int config_load(const char *path, int must_be, add_line *add)
{
    struct source source;

    if (open_source(&source, path, must_be) != 0) {
        if (must_be || errno == EINVAL)
            die(EXIT_CONFIG, "%s", trouble);
        if (errno != ENOENT) /* for example only root may read it; it may not be needed */
            say(LOG_DEBUG, "%s: not read: %s", path, unread = strerror(errno));
        return 0;
    }
    if (read_source(&source, add) != 0)
        die(EXIT_CONFIG, "%s", trouble);
    return S_ISFIFO(source.mode);
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

/* ---- A changed password ---- */

static struct {
    const struct redlock_url *node; /* in the list */
    struct redlock_url found;       /* in the file; without a password: it is not there */
} renewal;

static int note_password(const char *key, const char *value, const char *where)
{
    const char *at = value;
    struct redlock_url url;

    (void)where;
    if (strcmp(key, "node") != 0 && strcmp(key, "nodes") != 0)
        return 0;
    while (redlock_url_next(&at, &url) == NULL && url.address[0] != '\0')
        if (strcmp(url.address, renewal.node->address) == 0 &&
            strcmp(url.user, renewal.node->user) == 0)
            renewal.found = url;
    return 0;
}

void nodes_renew_password(unsigned i)
{
    struct redlock_url *url = &targets[i].url;
    static int is_told; /* 1: a message has said that the file cannot be used */
    struct source source;

    if (options.nodes_file == NULL || url->password[0] == '\0')
        return;
    renewal.node = url;
    renewal.found.password[0] = '\0';
    if (open_source(&source, options.nodes_file, 0) != 0 ||
        read_source(&source, note_password) != 0) {
        if (!is_told)
            say(LOG_WARNING, "%s; the passwords that were read before stay in use", trouble);
        is_told = 1;
        return;
    }
    is_told = 0;
    if (renewal.found.password[0] == '\0' || strcmp(renewal.found.password, url->password) == 0)
        return;
    hide_memory();
    strcpy(url->password, renewal.found.password);
    say(LOG_DEBUG, "%s: its password has changed in %s", url->address, options.nodes_file);
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

static const char password_fix[] =
    "user and password in the address, the configuration file or REDISCLI_AUTH";
static const char cluster_fix[] = "an independent server without cluster-enabled";

static const struct {
    const char *error, *fix;
} fixes[] = {
    {"NOPERM",
     "permit +set +get +del +pexpire +pttl +eval on the prefix; redlock(1), NODES, has more"},
    {"NOAUTH", password_fix},
    {"WRONGPASS", password_fix},
    {"refuses AUTH", password_fix},
    {"CLUSTERDOWN", cluster_fix},
    {"MOVED", cluster_fix},
    {"OOM", "a larger maxmemory, or fewer keys; a server for locks alone"},
    {"MISCONF", "see its log, and whether the disk is full"},
    {"READONLY", "name its master, or end replicaof"},
    {"NOREPLICAS", "min-replicas-to-write 0"},
    {"BUSY", "wait, or SCRIPT KILL; a server for locks alone"},
    {"LOADING", "wait until it has read its keys"},
    {"max number of clients", "a larger maxclients; find clients that do not close connections"},
};

const char *fix_for(const char *error)
{
    size_t n = 0;

    while (n < sizeof fixes / sizeof *fixes && strstr(error, fixes[n].error) == NULL)
        n++;
    return n < sizeof fixes / sizeof *fixes ? fixes[n].fix : NULL;
}

int is_cluster_down(const char *error)
{
    return strstr(error, "CLUSTERDOWN") != NULL;
}

/* What to do about the reasons, each once. */
static void say_fixes(enum level level, const char *const *reason)
{
    unsigned i, n;

    for (i = 0; i < target_count; i++) {
        const char *fix = fix_for(reason[i]);
        for (n = 0; n < i && fix_for(reason[n]) != fix; n++)
            continue;
        if (fix != NULL && n == i)
            say(level, "  fix: %s; see also redlock check", fix);
    }
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
    if (level <= LOG_WARNING)
        say_fixes(level, reason);
}

/* 1: the target is a name that has an address. */
static int is_named(unsigned i)
{
    return names_count(i) > 0;
}

/* Two targets have one address. One name may come to mean the same server as another: then each keeps its text, and the comparison of
   run_ids counts one vote. But two texts for one address are a mistake in the list. */
static void tell_apart(unsigned i, unsigned n)
{
    int is_repeated = strcmp(targets[n].url.address, targets[i].url.address) == 0;

    if (is_repeated || (!is_named(i) && !is_named(n)))
        die(EXIT_CONFIG, "%s and %s are the same node, which would vote twice",
            targets[n].url.address, targets[i].url.address);
    names_put_text(is_named(i) ? i : n);
}

void nodes_load(void)
{
    unsigned i, n;

    nodes_read();
    for (i = 0; i < target_count; i++)
        for (n = 0; n < i; n++)
            if (strcmp(targets[n].address, targets[i].address) == 0 ||
                strcmp(targets[n].url.address, targets[i].url.address) == 0)
                tell_apart(i, n);
}

void nodes_read(void)
{
    const char *at = options.nodes, *wrong;
    struct redlock_url url;
    uint32_t longest_ms = 0;
    unsigned slowest = 0;

    if (at == NULL)
        die(EXIT_CONFIG,
            "no nodes: name them with -N, REDLOCK_NODES, or \"node = ...\" in %s%s%s%s",
            options.config, unread != NULL ? " (" : "", unread != NULL ? unread : "",
            unread != NULL ? ")" : "");
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
        if (strncmp(url.address, "unix:", 5) == 0 && strlen(url.address + 5) > SOCKET_PATH_MAX)
            die(EXIT_CONFIG, "%s: the path of a socket has at most %d bytes", url.address,
                (int)SOCKET_PATH_MAX);
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
