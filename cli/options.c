/* options.c - the options of all verbs. Each option is one entry of a table, for the command line, the environment and the
   configuration file; the first of these that sets an option counts. nodes.c reads the file.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "cli.h"

#include <getopt.h>
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
    .unavailable_ms = FOREVER_MS,
    .conflict_status = EXIT_HELD,
};

enum kind { FLAG, TEXT, PATH, NODE_LIST, DURATION, NUMBER };

static const struct option_spec { /* small members together, to save memory */
    const char *name;
    char letter;
    uint8_t kind;
    uint16_t verbs;
    int32_t most; /* of a number */
    void *value;
    const char *environment;
    const char *argument, *does; /* for help; argument "": the option takes none */
} specs[] = {
    {"nodes", 'N', NODE_LIST, ALL, 0, &options.nodes, "REDLOCK_NODES", "LIST",
     "the nodes, separated by commas or blanks"},
    {"config", 0, PATH, ALL, 0, &options.config, "REDLOCK_CONFIG", "FILE",
     "configuration instead of /etc/redlock.conf"},
    {"cacert", 0, PATH, ALL, 0, &options.cacert, "REDLOCK_CACERT", "FILE",
     "rediss: authorities instead of the system's"},
    {"cert", 0, PATH, ALL, 0, &options.cert, "REDLOCK_CERT", "FILE",
     "rediss: certificate of this client"},
    {"key", 0, PATH, ALL, 0, &options.key, "REDLOCK_KEY", "FILE", "rediss: key of --cert"},
    {"sni", 0, TEXT, ALL, 0, &options.sni, "REDLOCK_SNI", "NAME",
     "rediss: name in the certificates, not the host"},
    {"prefix", 0, TEXT, ALL, 0, &options.prefix, "REDLOCK_PREFIX", "TEXT",
     "beginning of each key; default redlock:"},
    {"node-timeout", 0, DURATION, ALL, 0, &options.node_timeout_ms, "REDLOCK_NODE_TIMEOUT", "TIME",
     "time for one node in one attempt; default 250ms"},
    {"longest-ttl", 0, DURATION, IN_FILE, 0, &options.longest_ttl_ms, "REDLOCK_LONGEST_TTL", "TIME",
     "give no vote to a node that started less than this ago"},
    {"verbose", 'v', FLAG, ALL, 0, &options.verbose, "REDLOCK_VERBOSE", "", "say what happens"},
    {"quiet", 'q', FLAG, ALL, 0, &options.quiet, NULL, "", "say warnings and errors only"},
    {"slots", 0, NUMBER, RUN | STATUS, SLOTS_MAX, &options.slots, NULL, "N",
     "N holders at once: locks NAME/N.1 to NAME/N.N"},
    {"json", 0, FLAG, STATUS | CHECK, 0, &options.json, NULL, "", "print the result as JSON"},
    {"ttl", 't', DURATION, RUN, 0, &options.ttl_ms, NULL, "TTL",
     "life of the lock if the host fails; default 30s"},
    {"ttl", 't', DURATION, ACQUIRE, 0, &options.ttl_ms, NULL, "TTL",
     "life of the lock, which is not renewed; required"},
    {"ttl", 't', DURATION, CHECK, 0, &options.ttl_ms, NULL, "TTL",
     "the longest ttl in use; default 30s"},
    {"nonblock", 'n', FLAG, RUN | ACQUIRE, 0, &options.nonblock, NULL, "",
     "do not wait for a holder; wait 2s for nodes"},
    {"wait", 'w', DURATION, RUN | ACQUIRE, 0, &options.wait_ms, NULL, "TIME",
     "give up after this time; default: never"},
    {"conflict-exit-code", 'E', NUMBER, RUN | ACQUIRE, 255, &options.conflict_status, NULL, "N",
     "status if another client holds it; default 75"},
    {"unavailable-timeout", 0, DURATION, IN_FILE, 0, &options.unavailable_ms,
     "REDLOCK_UNAVAILABLE_TIMEOUT", "TIME",
     "give up without a quorum after this; default 10s, and 2s with -n"},
    {"label", 'l', TEXT, RUN | ACQUIRE, 0, &options.label, NULL, "TEXT",
     "what status shows beside host and process"},
    {"fence", 0, FLAG, RUN | ACQUIRE, 0, &options.fence, NULL, "", "acquire a fencing token too"},
    {"kill-after", 'k', DURATION, RUN, 0, &options.kill_after_ms, NULL, "TIME",
     "from the first signal to SIGKILL; default: never"},
    {"keep-going", 0, FLAG, RUN, 0, &options.keep_going, NULL, "",
     "do not end the command when the lock is lost"},
    {"min-hold", 0, DURATION, RUN, 0, &options.min_hold_ms, NULL, "TIME",
     "keep the lock at least for this time"},
    {"mine", 0, FLAG, STATUS, 0, &options.mine, NULL, "",
     "status 0 if the caller runs under it, else 1"},
    {"here", 0, FLAG, STATUS, 0, &options.here, NULL, "",
     "status 0 if a process of this host has it, else 1"},
    {"force", 0, TEXT, RELEASE, 0, &options.force, NULL, "ID",
     "release the lock of the holder that has this ID"},
};
enum { SPECS = sizeof specs / sizeof *specs };

/* Options of version 0.3 that are gone, and what to use instead. */
static const struct {
    int verb;
    char letter;
    const char *name, *instead;
} gone[] = {
    {RUN, 0, "foreground", "the command always shares the terminal; leave the option out"},
    {RUN, 0, "new-group", "redlock run NAME setsid -w COMMAND; not without /proc"},
    {RUN, 's', "signal", "the job gets TERM, which a trap of a shell can translate"},
    {RUN, 0, "on-lost", "--keep-going is what none was; term is the default"},
    {RUN, 0, "max-hold", "redlock run NAME timeout TIME COMMAND"},
    {RUN, 0, "no-guard", "the guard starts the command; leave the option out"},
    {RUN, 0, "status-fd", "the exit status, -v, and redlock status --json"},
    {RUN, 0, "preserve-status", "the status of a lost lock is always 79"},
    {RUN, 'a', "also", "redlock run NAME redlock run OTHER COMMAND, names in one order"},
    {RUN | ACQUIRE, 0, "unavailable-timeout",
     "a key of the configuration file, and REDLOCK_UNAVAILABLE_TIMEOUT"},
    {ALL, 0, "auth-file",
     "passwords belong into the configuration file, mode 600, or REDISCLI_AUTH"},
    {ACQUIRE, 0, "sh", "token=$(redlock acquire -t TTL NAME)"},
    {ACQUIRE | RELEASE, 0, "json", "acquire prints the token; the exit status tells the rest"},
    {CHECK, 0, "read-only", "check sets its own keys for a moment; leave the option out"},
    {CHECK, 0, "strict", "the status 1 is for warnings"},
    {CHECK, 0, "nagios", "the first line and the status are what plugins print; -q prints no more"},
    {CHECK, 0, "prometheus", "redlock check --json"},
    {CHECK, 0, "clock-window", "check does not watch clocks any more; leave the option out"},
};

static uint8_t source_of
    [SPECS]; /* 1: set on the command line, 2: in the environment, 3: in the file; 0: not set */

static const char *copy_of(const char *text)
{
    const char *copy = strdup(text);

    if (copy == NULL)
        die(EXIT_SYSTEM, "no memory");
    return copy;
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

/* A flag in the environment. "" also means no. */
static int is_yes(const char *value)
{
    return value[0] != '\0' && strcmp(value, "0") != 0 && strcasecmp(value, "no") != 0 &&
           strcasecmp(value, "false") != 0 && strcasecmp(value, "off") != 0;
}

/* Returns NULL, or the error in a duration or a number. */
static const char *check_number(const struct option_spec *spec, long number)
{
    if (number < 0 || (number == 0 && spec->value == &options.slots))
        return spec->kind == DURATION
                   ? "this is no time: write 1.5, 250ms, 2m, 1h or 1d; at most 24d"
                   : "not a number, or out of range";
    if (spec->value == &options.node_timeout_ms && (number < 1 || number > TIMEOUT_MAX_MS))
        return "1ms to 60s";
    return NULL;
}

/* Returns NULL, or the error in the value; also checks the value if another source has set the option already. */
static const char *set(const struct option_spec *spec, const char *value, uint8_t source)
{
    uint8_t *from = &source_of[spec - specs];
    long number = spec->kind == DURATION ? parse_duration(value)
                  : spec->kind == NUMBER ? parse_number(value, spec->most)
                                         : 1;
    const char *wrong = check_number(spec, number);

    if (wrong != NULL || (*from != 0 && *from < source))
        return wrong;
    *from = source;
    switch ((enum kind)spec->kind) {
    case FLAG:
        *(int *)spec->value = value == NULL || is_yes(value);
        break;
    case TEXT:
    case PATH:
        *(const char **)spec->value = copy_of(value);
        break;
    case NODE_LIST:
        add_to_list(spec->value, value);
        break;
    case DURATION:
    case NUMBER:
        *(long *)spec->value = number;
        break;
    }
    return NULL;
}

/* A line of the configuration file. */
static int take_from_file(const char *key, const char *value, const char *where)
{
    const char *wrong;
    unsigned i;

    if (strcmp(key, "auth-file") == 0)
        die(EXIT_CONFIG, "%s: auth-file is gone: user and password belong into the addresses",
            where);

    for (i = 0; i < SPECS; i++)
        if ((specs[i].verbs == ALL || specs[i].verbs == IN_FILE) && specs[i].kind != FLAG &&
            specs[i].value != &options.config &&
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

    if ((value = getenv("REDLOCK_AUTH_FILE")) != NULL && value[0] != '\0')
        die(EXIT_CONFIG, "REDLOCK_AUTH_FILE is gone: user and password belong into the addresses");
    for (i = 0; i < SPECS; i++)
        if (specs[i].environment != NULL && (value = getenv(specs[i].environment)) != NULL &&
            (value[0] != '\0' || specs[i].value == &options.prefix) && /* the prefix may be empty */
            (wrong = set(&specs[i], value, 2)) != NULL)
            die(EXIT_CONFIG, "%s: %s", specs[i].environment, wrong);
}

/* The option is the path of a file, relative to the present folder. */
static int is_relative(const struct option_spec *spec)
{
    return spec->kind == PATH && **(const char **)spec->value != '/';
}

void export_options(void)
{
    static char path[2 * PATH_MAX]; /* absolute, because the command may change its folder */
    unsigned i;

    for (i = 0; i < SPECS; i++) {
        const struct option_spec *spec = &specs[i];
        const char *text = NULL;
        if (spec->environment == NULL || spec->kind == FLAG || source_of[i] == 0)
            continue;
        if (source_of[i] == 3 && !is_relative(spec) && !options.config_is_pipe)
            continue; /* the command reads the same file */
        if (spec->value == &options.config && options.config_is_pipe) {
            unsetenv(spec->environment);
            continue;
        }
        if (source_of[i] == 3 && spec->kind == NODE_LIST && nodes_have_password(options.nodes))
            continue;
        if (spec->kind == DURATION)
            snprintf(path, sizeof path, "%ldms", *(long *)spec->value);
        else
            text = *(const char **)spec->value;
        if (is_relative(spec) && strlen(text) < PATH_MAX && getcwd(path, PATH_MAX) != NULL) {
            strcat(path, "/");
            text = strcat(path, text);
        }
        setenv(spec->environment, text != NULL ? text : path, 1);
    }
}

/* ---- The command line ---- */

enum {
    IS_NO_OPTION = 1, /* getopt_long's value for a word, if the letters begin with "-" */
    NO_LETTER = 256 /* its value of an option without a letter is this and the place in the table */
};

static int value_of(unsigned i)
{
    return specs[i].letter != 0 ? specs[i].letter : NO_LETTER + (int)i;
}

/* The option of this verb that has this value. NULL: none. */
static const struct option_spec *option_of(int verb, int value)
{
    unsigned i;

    for (i = 0; i < SPECS; i++)
        if ((specs[i].verbs & verb) != 0 && value_of(i) == value)
            return &specs[i];
    return NULL;
}

/* Hides a password from users that list processes. */
static void overwrite(char *argument)
{
    if (!nodes_have_password(argument))
        return;
    memset(argument, '*', strlen(argument));
    say(LOG_WARNING, "other users may have seen the password on the command line: use "
                     "REDLOCK_NODES or a file");
}

/* Says what is wrong with an option that getopt_long did not accept. The message does not have the text after "=", which may be a
   password. */
static void refuse_option(int verb, const char *verb_name, const char *word, int is_missing)
{
    const struct option_spec *spec = option_of(verb, optopt);
    char text[80];
    size_t i;

    if (is_missing)
        die(EXIT_USAGE, "--%s: an argument is missing", spec->name);
    if (spec != NULL || optopt == 'h')
        die(EXIT_USAGE, "--%s takes no argument", spec != NULL ? spec->name : "help");
    if (optopt != 0)
        snprintf(text, sizeof text, "-%c", optopt);
    else
        snprintf(text, sizeof text, "%.*s", (int)strcspn(word, "="), word);
    for (i = 0; i < sizeof gone / sizeof *gone; i++)
        if ((gone[i].verb & verb) != 0 &&
            (optopt != 0 ? gone[i].letter == optopt : strcmp(gone[i].name, text + 2) == 0))
            die(EXIT_USAGE, "%s is gone: %s", text, gone[i].instead);
    die(EXIT_USAGE, "%s: no such option of %s: see redlock %s --help", text, verb_name, verb_name);
}

static void take_option(const struct option_spec *spec, char *argument)
{
    const char *wrong = set(spec, argument, 1);

    if (wrong != NULL)
        die(EXIT_USAGE, "--%s %s: %s", spec->name, argument, wrong);
    if (spec->kind == NODE_LIST)
        overwrite(argument);
}

/* Fills in the options of this verb for getopt_long. */
static void list_options(int verb, char *letters, struct option *longs)
{
    unsigned i;

    /* "+": the options behind the first word are those of a command. "-": those behind any word are redlock's; this mode ignores
       POSIXLY_CORRECT, which not all C libraries know. */
    *letters++ = verb == RUN ? '+' : '-';
    *letters++ = ':';
    *letters++ = 'h';
    longs->name = "help";
    longs++->val = 'h';
    for (i = 0; i < SPECS; i++) {
        int has_argument = specs[i].kind != FLAG;
        if ((specs[i].verbs & verb) == 0)
            continue;
        longs->name = specs[i].name;
        longs->has_arg = has_argument ? required_argument : no_argument;
        longs++->val = value_of(i);
        if (specs[i].letter == 0)
            continue;
        *letters++ = specs[i].letter;
        if (has_argument)
            *letters++ = ':';
    }
}

/* The first word is the verb. Leaves the words that are no options, and returns how many they are; -1: help is asked for. */
static int take_words(int verb, const char *name, int count, char **words)
{
    char letters[3 + 2 * SPECS + 1] = "";
    struct option longs[1 + SPECS + 1] = {0};
    int value, left = 0;

    list_options(verb, letters, longs);
    opterr = 0; /* glibc would print a password that stands behind the "=" of an unknown option */
    while ((value = getopt_long(count, words, letters, longs, NULL)) != -1) {
        if (value == 'h')
            return -1;
        if (value == ':' || value == '?')
            refuse_option(verb, name, words[optind - 1], value == ':');
        else if (value == IS_NO_OPTION)
            words[left++] = optarg; /* optind is behind it */
        else
            take_option(option_of(verb, value), optarg);
    }
    memmove(words + left, words + optind, (size_t)(count - optind + 1) * sizeof *words);
    return left + count - optind;
}

/* Returns 1 if stderr goes to systemd's journal: $JOURNAL_STREAM has its device and inode. See systemd.exec(5). */
static int is_journal(void)
{
    const char *journal = getenv("JOURNAL_STREAM");
    struct stat status;
    char is[50];

    if (journal == NULL || fstat(STDERR_FILENO, &status) != 0)
        return 0;
    snprintf(is, sizeof is, "%lu:%lu", (unsigned long)status.st_dev, (unsigned long)status.st_ino);
    return strcmp(journal, is) == 0;
}

int options_take(int verb, const char *name, int count, char **words)
{
    int must_be;

    options.log_levels = is_journal();
    if (verb == CHECK)
        options.failure = EXIT_UNKNOWN;
    count = take_words(verb, name, count, words);
    if (count < 0)
        return count;
    take_from_environment();
    must_be = options.config != NULL;
    if (!must_be)
        options.config = "/etc/redlock.conf";
    options.config_is_pipe = config_load(options.config, must_be, take_from_file);
    if (source_of[0] == 3 && !options.config_is_pipe) /* the first option is --nodes */
        options.nodes_file = options.config;
    if (strlen(options.prefix) >= REDLOCK_KEY_MAX) /* a name has one byte at least */
        die(EXIT_USAGE, "the prefix has at most %d bytes", REDLOCK_KEY_MAX - 1);
    if (options.ttl_ms < 0 && verb != ACQUIRE)
        options.ttl_ms = options.longest_ttl_ms > 0 && options.longest_ttl_ms < TTL_DEFAULT_MS
                             ? options.longest_ttl_ms
                             : TTL_DEFAULT_MS;
    return count;
}

static void help_line(char letter, const char *name, const char *argument, const char *does)
{
    char left[40];

    snprintf(left, sizeof left, "%c%c%s --%s %s", letter != 0 ? '-' : ' ',
             letter != 0 ? letter : ' ', letter != 0 ? "," : " ", name, argument);
    print("  %-28s%s\n", left, does);
}

void options_help(int verb)
{
    unsigned i;

    for (i = 0; i < SPECS; i++)
        if ((specs[i].verbs & verb) != 0)
            help_line(specs[i].letter, specs[i].name, specs[i].argument, specs[i].does);
    if (verb == RUN)
        help_line('c', "command", "TEXT", "behind NAME: run this with /bin/sh");
    help_line('h', "help", "", "print this");
}

void options_list(int verb)
{
    unsigned i;

    for (i = 0; i < SPECS; i++) {
        const char *end = specs[i].kind == FLAG ? "" : "=";
        if ((specs[i].verbs & verb) == 0)
            continue;
        if (specs[i].letter != 0)
            print("-%c%s\n", specs[i].letter, end);
        print("--%s%s\n", specs[i].name, end);
    }
}
