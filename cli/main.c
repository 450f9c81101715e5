/* main.c - redlock(1): its verbs.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct verb {
    const char *name;
    int bit;
    int (*function)(int count, char **words);
    const char *usage, *does;
} verbs[] = {
    {"run", RUN, verb_run, "[options] NAME COMMAND [ARG]... | NAME -c 'SHELL COMMAND'",
     "hold a lock while a command runs"},
    {"acquire", ACQUIRE, verb_acquire, "-t TTL [options] NAME",
     "acquire a lock and print its token"},
    {"release", RELEASE, verb_release, "[options] NAME [-] | --force ID NAME", "release a lock"},
    {"status", STATUS, verb_status, "[options] [NAME | PATTERN]...", "show the holders of locks"},
    {"check", CHECK, verb_check, "[options]", "look for what makes locks on these nodes unsafe"},
};
enum { VERBS = sizeof verbs / sizeof *verbs };

/* Verbs of version 0.3 that are gone, and what to use instead. */
static const struct {
    const char *name, *instead;
} gone[] = {
    {"extend", "choose a longer -t, or redlock run NAME COMMAND, which renews the lock"},
    {"bench", "redlock check, which measures p50 and p99 of each node"},
    {"list", "redlock status, or redlock status 'PATTERN'"},
    {"held", "redlock status --mine NAME, or --here"},
};

static void say_if_gone(const char *name)
{
    size_t i;

    for (i = 0; i < sizeof gone / sizeof *gone; i++)
        if (strcmp(name, gone[i].name) == 0)
            die(EXIT_USAGE, "%s is gone: %s", name, gone[i].instead);
}

static void usage(void)
{
    int i;

    for (i = 0; i < VERBS; i++)
        print("%s redlock %-8s%s\n", i == 0 ? "usage:" : "      ", verbs[i].name, verbs[i].usage);
    print("       redlock help [VERB] | version\n\n");
    for (i = 0; i < VERBS; i++)
        print("  %-9s%s\n", verbs[i].name, verbs[i].does);
    print("\nNodes: -N host1,host2,host3, REDLOCK_NODES, or node = ... in /etc/redlock.conf.\n"
          "Options of a verb: redlock VERB --help. The manual: man redlock.\n");
}

static void help(const struct verb *verb)
{
    print("usage: redlock %s %s\n%s\n\n", verb->name, verb->usage, verb->does);
    options_help(verb->bit);
    print("\nTimes are seconds, or 250ms, 2m, 1h, 1d. The manual: man redlock.\n");
}

static const struct verb *find_verb(const char *name)
{
    int i;

    for (i = 0; i < VERBS; i++)
        if (strcmp(name, verbs[i].name) == 0)
            return &verbs[i];
    return NULL;
}

/* For completion: the verbs, or the options of one. */
static int list(const char *name)
{
    const struct verb *verb = name != NULL ? find_verb(name) : NULL;
    unsigned i;

    for (i = 0; i < VERBS && name == NULL; i++)
        print("%s\n", verbs[i].name);
    if (verb != NULL)
        options_list(verb->bit);
    return name == NULL || verb != NULL ? 0 : EXIT_USAGE;
}

/* If descriptor 0, 1 or 2 is closed, a connection would get its number, and messages would go to a node. This opens a descriptor
   that cannot be written to, so printing fails as it should. O_CLOEXEC: the command still finds them closed. */
static void fill_gaps(void)
{
    int fd;

    do
        fd = open("/", O_RDONLY | O_CLOEXEC); /* exists everywhere */
    while (fd >= 0 && fd <= 2);
    if (fd > 2)
        close(fd);
    for (fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            die(EXIT_SYSTEM, "no descriptor: %s", strerror(errno));
}

static int is_one_of(const char *word, const char *one, const char *other)
{
    return strcmp(word, one) == 0 || strcmp(word, other) == 0;
}

/* Returns the exit status of the verb. */
static int do_verb(const struct verb *verb, int count, char **words)
{
    count = options_take(verb->bit, verb->name, count, words);
    if (count >= 0)
        return verb->function(count, words);
    help(verb);
    must_be_written();
    return 0;
}

int main(int count, char **words)
{
    const char *name = count > 1 ? words[1] : "", *next = count > 2 ? words[2] : "";
    const struct verb *verb = find_verb(name);
    int result = 0;

    process_begin(count, words);
    fill_gaps();
    if (verb != NULL)
        return do_verb(verb, count - 1, words + 1); /* words[0] of a verb is its name */
    if (is_one_of(name, "version", "--version") || strcmp(name, "-V") == 0) {
        print("redlock %s\n", REDLOCK_VERSION);
    } else if (is_one_of(name, "help", "--help") && strcmp(next, "--options") == 0) {
        result = list(words[3]);
    } else if (strcmp(name, "help") == 0 && (verb = find_verb(next)) != NULL) {
        help(verb);
    } else if ((is_one_of(name, "help", "--help") || strcmp(name, "-h") == 0) && next[0] == '\0') {
        usage();
    } else if (name[0] == '\0') {
        usage();
        print_to(STDERR_FILENO);
        return EXIT_USAGE;
    } else {
        if (strcmp(name, "help") == 0)
            name = next;
        say_if_gone(name);
        die(EXIT_USAGE, "%.*s: %s: see redlock help", public_size(name), name,
            name[0] == '-' ? "options belong behind the verb" : "no such verb");
    }
    must_be_written();
    return result;
}
