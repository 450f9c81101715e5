/* options.c - the options of all verbs. An option is one line of a table, whether it comes from the command line, the
   environment or the configuration file; the first of these that sets it counts.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "cli.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

struct options options = {
    .prefix = "redlock:",
    .node_timeout_ms = FOREVER_MS,
    .wait_ms = FOREVER_MS,
    .ttl_ms = FOREVER_MS,
    .kill_after_ms = FOREVER_MS,
    .max_hold_ms = FOREVER_MS,
    .unavailable_ms = 10000,
    .duration_ms = FOREVER_MS,
    .clock_window_ms = 5000,
    .conflict_status = EXIT_HELD,
    .status_fd = -1,
    .count = -1,
    .clients = 1,
    .signal = "TERM",
    .on_lost = "term",
};

enum kind { FLAG, TEXT, NODE_LIST, NAMES, DURATION, NUMBER };

static struct option_spec {
    const char *name;
    char letter;
    int verbs;
    enum kind kind;
    void *value;
    long most; /* of a number */
    const char *environment;
    const char *argument, *does; /* for help; "": it takes none */
    int said;                    /* 1: on the command line, 2: in the environment, 3: in the file */
} specs[] = {
    {"nodes", 'N', ALL, NODE_LIST, &options.nodes, 0, "REDLOCK_NODES", "LIST",
     "the nodes, separated by commas or blanks", 0},
    {"config", 0, ALL, TEXT, &options.config, 0, "REDLOCK_CONFIG", "FILE",
     "configuration instead of /etc/redlock.conf", 0},
    {"auth-file", 0, ALL, TEXT, &options.auth_file, 0, "REDLOCK_AUTH_FILE", "FILE",
     "file with password or user:password", 0},
    {"askpass", 0, ALL, FLAG, &options.askpass, 0, NULL, "", "ask for the password", 0},
    {"no-auth-warning", 0, ALL, FLAG, &options.no_auth_warning, 0, NULL, "",
     "no warning about a password on the command line", 0},
    {"prefix", 0, ALL, TEXT, &options.prefix, 0, "REDLOCK_PREFIX", "TEXT",
     "beginning of each key; default redlock:", 0},
    {"node-timeout", 0, ALL, DURATION, &options.node_timeout_ms, 0, "REDLOCK_NODE_TIMEOUT", "TIME",
     "time for one node in one attempt; default 250ms", 0},
    {"verbose", 'v', ALL, FLAG, &options.verbose, 0, "REDLOCK_VERBOSE", "", "say what happens", 0},
    {"quiet", 'q', ALL, FLAG, &options.quiet, 0, NULL, "", "say warnings and errors only", 0},
    {"log-prefix", 0, ALL, FLAG, &options.log_levels, 0, NULL, "",
     "begin messages with their level, as journald reads it", 0},
    {"also", 'a', RUN, NAMES, NULL, 0, NULL, "NAME", "a further name of the lock; may be repeated",
     0},
    {"slots", 0, RUN, NUMBER, &options.slots, SLOTS_MAX, NULL, "N",
     "N holders at once: locks NAME/1 to NAME/N", 0},
    {"json", 0, ALL & ~RUN, FLAG, &options.json, 0, NULL, "", "print the result as JSON", 0},
    {"ttl", 't', RUN | ACQUIRE | EXTEND | CHECK | BENCH, DURATION, &options.ttl_ms, 0, NULL, "TTL",
     "life of the lock, or longest ttl in use", 0},
    {"nonblock", 'n', RUN | ACQUIRE, FLAG, &options.nonblock, 0, NULL, "",
     "do not wait for a holder", 0},
    {"wait", 'w', RUN | ACQUIRE, DURATION, &options.wait_ms, 0, NULL, "TIME",
     "give up after this time; default: never", 0},
    {"conflict-exit-code", 'E', RUN | ACQUIRE, NUMBER, &options.conflict_status, 255, NULL, "N",
     "status if another client holds it; default 75", 0},
    {"unavailable-timeout", 0, RUN | ACQUIRE, DURATION, &options.unavailable_ms, 0, NULL, "TIME",
     "give up without a quorum after this; default 10s", 0},
    {"label", 'l', RUN | ACQUIRE, TEXT, &options.label, 0, NULL, "TEXT",
     "text about the holder, which status shows", 0},
    {"anonymous", 0, RUN | ACQUIRE, FLAG, &options.anonymous, 0, NULL, "",
     "write nothing about the holder to the nodes", 0},
    {"fence", 0, RUN | ACQUIRE, FLAG, &options.fence, 0, NULL, "", "acquire a fencing token too",
     0},
    {"sh", 0, ACQUIRE, FLAG, &options.shell, 0, NULL, "", "print assignments for eval", 0},
    {"kill-after", 'k', RUN, DURATION, &options.kill_after_ms, 0, NULL, "TIME",
     "time from the first signal to SIGKILL", 0},
    {"signal", 's', RUN, TEXT, &options.signal, 0, NULL, "SIGNAL",
     "first signal when the lock is lost; default TERM", 0},
    {"on-lost", 0, RUN, TEXT, &options.on_lost, 0, NULL, "WHAT", "term, kill or none", 0},
    {"no-renew", 0, RUN, FLAG, &options.no_renew, 0, NULL, "", "do not renew the lock", 0},
    {"max-hold", 0, RUN, DURATION, &options.max_hold_ms, 0, NULL, "TIME",
     "end the command before this time", 0},
    {"min-hold", 0, RUN, DURATION, &options.min_hold_ms, 0, NULL, "TIME",
     "keep the lock at least for this time", 0},
    {"keep", 0, RUN, FLAG, &options.keep, 0, NULL, "", "do not release: the lock expires", 0},
    {"foreground", 0, RUN, FLAG, &options.foreground, 0, NULL, "",
     "let the command use the terminal", 0},
    {"new-group", 0, RUN, FLAG, &options.new_group, 0, NULL, "",
     "give the command its own process group", 0},
    {"no-guard", 0, RUN, FLAG, &options.no_guard, 0, NULL, "",
     "no second process that ends the command", 0},
    {"status-fd", 0, RUN, NUMBER, &options.status_fd, 65535, NULL, "N",
     "write events to this descriptor", 0},
    {"preserve-status", 0, RUN, FLAG, &options.preserve_status, 0, NULL, "",
     "the command's status also if the lock was lost", 0},
    {"clear-env", 0, RUN, FLAG, &options.clear_env, 0, NULL, "",
     "hide nodes and passwords from the command", 0},
    {"force", 0, RELEASE, FLAG, &options.force, 0, NULL, "",
     "take the lock from its holder; needs --id", 0},
    {"id", 0, RELEASE, TEXT, &options.id, 0, NULL, "ID", "the holder, as status prints it", 0},
    {"yes", 0, RELEASE, FLAG, &options.yes, 0, NULL, "", "do not ask", 0},
    {"read-only", 0, CHECK, FLAG, &options.read_only, 0, NULL, "", "write nothing to the nodes", 0},
    {"require-durable", 0, CHECK, FLAG, &options.require_durable, 0, NULL, "",
     "nodes that may forget locks are a failure", 0},
    {"strict", 0, CHECK, FLAG, &options.strict, 0, NULL, "", "warnings are failures", 0},
    {"nagios", 0, CHECK, FLAG, &options.nagios, 0, NULL, "",
     "print one line, as monitoring plugins do", 0},
    {"prometheus", 0, CHECK, FLAG, &options.prometheus, 0, NULL, "", "print metrics", 0},
    {"clock-window", 0, CHECK, DURATION, &options.clock_window_ms, 0, NULL, "TIME",
     "time to watch the clocks; default 5s", 0},
    {"count", 'n', BENCH, NUMBER, &options.count, 100000000, NULL, "COUNT",
     "number of cycles, or of rounds with --contend", 0},
    {"duration", 'd', BENCH, DURATION, &options.duration_ms, 0, NULL, "TIME", "time to measure", 0},
    {"clients", 'c', BENCH, NUMBER, &options.clients, 1000, NULL, "N",
     "clients at the same time; default 1", 0},
    {"contend", 0, BENCH, FLAG, &options.contend, 0, NULL, "", "all clients want one lock", 0},
    {"csv", 0, BENCH, FLAG, &options.csv, 0, NULL, "", "print lines as redis-benchmark --csv", 0},
};
enum { SPECS = sizeof specs / sizeof *specs };

/* NULL, or the error. */
static const char *add_name(const char *name)
{
    if (options.also_count == ALSO_MAX)
        return "too many names";
    options.also[options.also_count++] = name;
    return NULL;
}

static void add_to_list(char **list, const char *more)
{
    size_t used = *list != NULL ? strlen(*list) : 0;
    char *longer = realloc(*list, used + strlen(more) + 2);

    if (longer == NULL)
        die(EXIT_SYSTEM, "no memory");
    longer[used] = ' ';
    strcpy(longer + used + (used > 0), more);
    *list = longer;
}

/* What a flag says in environment or file: "0", "no", "" are no. */
static int is_yes(const char *value)
{
    return value[0] != '\0' && strcmp(value, "0") != 0 && strcasecmp(value, "no") != 0;
}

/* NULL, or the error in the value. */
static const char *set(struct option_spec *spec, const char *value, int source)
{
    long number = 0;

    if (spec->said != 0 && spec->said < source)
        return NULL;
    spec->said = source;
    switch (spec->kind) {
    case FLAG:
        *(int *)spec->value = value == NULL || is_yes(value);
        break;
    case TEXT:
        if ((*(const char **)spec->value = strdup(value)) == NULL)
            die(EXIT_SYSTEM, "no memory");
        break;
    case NODE_LIST:
        add_to_list(spec->value, value);
        break;
    case NAMES:
        return add_name(value);
    case DURATION:
        *(long *)spec->value = number = parse_duration(value);
        return number < 0 ? "not a duration, as 1.5, 250ms, 2m, 1h; 24 days at most" : NULL;
    case NUMBER:
        *(long *)spec->value = number = parse_number(value, spec->most);
        return number < 0 || (number == 0 && spec->value == &options.slots)
                   ? "not a number, or out of range"
                   : NULL;
    }
    return NULL;
}

/* A line of the configuration file. */
static int take_from_file(const char *key, const char *value, const char *where)
{
    const char *wrong;
    unsigned i;

    for (i = 0; i < SPECS; i++)
        if (specs[i].verbs == ALL && specs[i].kind != FLAG && specs[i].value != &options.config &&
            strcmp(specs[i].name, strcmp(key, "node") == 0 ? "nodes" : key) == 0) {
            if (specs[i].kind == NODE_LIST)
                nodes_check(value, where);
            if ((wrong = set(&specs[i], value, 3)) != NULL)
                die(EXIT_CONFIG, "%s: %s: %s", where, key, wrong);
            return 0;
        }
    return -1;
}

static void take_from_environment(void)
{
    const char *value, *wrong;
    unsigned i;

    for (i = 0; i < SPECS; i++)
        if (specs[i].environment != NULL && (value = getenv(specs[i].environment)) != NULL &&
            (value[0] != '\0' || specs[i].value == &options.prefix) && /* which may be empty */
            (wrong = set(&specs[i], value, 2)) != NULL)
            die(EXIT_CONFIG, "%s: %s", specs[i].environment, wrong);
}

void export_options(void)
{
    static char path[2 * PATH_MAX]; /* the command may change the folder */
    unsigned i;

    for (i = 0; i < SPECS; i++) {
        const struct option_spec *spec = &specs[i];
        const char *text = NULL;
        if (spec->environment == NULL || spec->kind == FLAG || spec->said == 0 || spec->said == 3)
            continue; /* the command reads the same file */
        if (spec->kind == DURATION)
            snprintf(path, sizeof path, "%ldms", *(long *)spec->value);
        else
            text = *(const char **)spec->value;
        if ((spec->value == &options.config || spec->value == &options.auth_file) && *text != '/' &&
            getcwd(path, sizeof path - strlen(text) - 1) != NULL) {
            strcat(path, "/");
            text = strcat(path, text);
        }
        setenv(spec->environment, text != NULL ? text : path, 1);
    }
}

/* An option of this verb, by letter, or by name if that is 0; NULL: there is none. */
static struct option_spec *find_option(int verb, char letter, const char *name, size_t size)
{
    unsigned i;

    for (i = 0; i < SPECS; i++)
        if ((specs[i].verbs & verb) != 0 &&
            (letter != 0 ? specs[i].letter == letter
                         : strlen(specs[i].name) == size && memcmp(specs[i].name, name, size) == 0))
            return &specs[i];
    return NULL;
}

/* Hides a password from users that list processes. */
static void overwrite(char *argument)
{
    if (strchr(argument, '@') == NULL)
        return;
    memset(argument, '*', strlen(argument));
    if (!options.no_auth_warning)
        say(LOG_WARNING, "other users may have seen the password on the command line: use "
                         "REDLOCK_NODES or a file");
}

/* Without what follows "=", which may be a password. */
static void no_such_option(const char *word, size_t size, const char *verb)
{
    die(EXIT_USAGE, "%.*s: no such option of %s: see redlock %s --help", (int)size, word, verb,
        verb);
}

static void take_option(struct option_spec *spec, const char *word, char *argument)
{
    const char *wrong;

    if (argument == NULL && spec->kind != FLAG)
        die(EXIT_USAGE, "%s: an argument is missing", word);
    wrong = set(spec, argument, 1);
    if (wrong != NULL)
        die(EXIT_USAGE, "--%s %s: %s", spec->name, argument, wrong);
    if (spec->kind == NODE_LIST)
        overwrite(argument);
}

/* "--name", "--name=argument", "--name argument". Returns how many words it has; 0: it asks for help. */
static int take_long(int verb, const char *verb_name, char **words)
{
    const char *name = words[0] + 2;
    size_t size = strcspn(name, "=");
    struct option_spec *spec = find_option(verb, 0, name, size);

    if (strcmp(name, "help") == 0)
        return 0;
    if (spec == NULL)
        no_such_option(words[0], size + 2, verb_name);
    if (spec->kind == FLAG && name[size] == '=')
        die(EXIT_USAGE, "--%s takes no argument", spec->name);
    if (spec->kind == FLAG || name[size] == '=') {
        take_option(spec, words[0], spec->kind == FLAG ? NULL : words[0] + size + 3);
        return 1;
    }
    take_option(spec, words[0], words[1]);
    return 2;
}

/* "-n", "-nv", "-w5", "-w 5". The same. */
static int take_letters(int verb, const char *verb_name, char **words)
{
    char *at = words[0] + 1, letter[3] = "-";

    for (; *at != '\0'; at++) {
        struct option_spec *spec = find_option(verb, *at, NULL, 0);
        letter[1] = *at;
        if (*at == 'h')
            return 0;
        if (spec == NULL)
            no_such_option(letter, 2, verb_name);
        if (spec->kind == FLAG) {
            take_option(spec, letter, NULL);
            continue;
        }
        take_option(spec, letter, at[1] != '\0' ? at + 1 : words[1]);
        return at[1] != '\0' ? 1 : 2;
    }
    return 1;
}

/* The first word is the verb. The words of a command that `run` starts are not ours. */
static int take_words(int verb, const char *name, int count, char **words)
{
    int at = 1, left = 0, step;

    while (at < count && strcmp(words[at], "--") != 0) {
        if (words[at][0] != '-' || words[at][1] == '\0') {
            if (verb == RUN)
                break;
            words[left++] = words[at++];
            continue;
        }
        step = (words[at][1] == '-' ? take_long : take_letters)(verb, name, words + at);
        if (step == 0)
            return -1;
        at += step;
    }
    if (at < count && strcmp(words[at], "--") == 0)
        at++;
    while (at < count)
        words[left++] = words[at++];
    words[left] = NULL; /* a command ends there */
    return left;
}

/* 1: systemd's journal reads stderr, as $JOURNAL_STREAM says in numbers. systemd.exec(5). */
static int is_journal(void)
{
    const char *said = getenv("JOURNAL_STREAM");
    struct stat status;
    char is[50];

    if (said == NULL || fstat(STDERR_FILENO, &status) != 0)
        return 0;
    snprintf(is, sizeof is, "%lu:%lu", (unsigned long)status.st_dev, (unsigned long)status.st_ino);
    return strcmp(said, is) == 0;
}

int options_take(int verb, const char *name, int count, char **words)
{
    options.log_levels = is_journal();
    if (verb == CHECK)
        options.failure = EXIT_UNKNOWN;
    count = take_words(verb, name, count, words);
    if (count < 0)
        return count;
    take_from_environment();
    config_load(options.config != NULL ? options.config : "/etc/redlock.conf",
                options.config != NULL, take_from_file);
    if (options.ttl_ms < 0 && verb != ACQUIRE && verb != EXTEND)
        options.ttl_ms = TTL_DEFAULT_MS;
    return count;
}

void options_help(int verb)
{
    char left[40];
    unsigned i;

    for (i = 0; i < SPECS; i++) {
        const struct option_spec *spec = &specs[i];
        if ((spec->verbs & verb) == 0)
            continue;
        snprintf(left, sizeof left, "%c%c%s --%s %s", spec->letter != 0 ? '-' : ' ',
                 spec->letter != 0 ? spec->letter : ' ', spec->letter != 0 ? "," : " ", spec->name,
                 spec->argument);
        printf("  %-32s%s\n", left, spec->does);
    }
}

void options_list(int verb)
{
    unsigned i;

    for (i = 0; i < SPECS; i++) {
        const char *end = specs[i].kind == FLAG ? "" : "=";
        if ((specs[i].verbs & verb) == 0)
            continue;
        if (specs[i].letter != 0)
            printf("-%c%s\n", specs[i].letter, end);
        printf("--%s%s\n", specs[i].name, end);
    }
}
