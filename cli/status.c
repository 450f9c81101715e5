/* status.c - redlock status: the holder of each lock, on how many nodes and for how long; how many clients wait.

   The child of a node reads the keys of the names, or finds those that match a pattern with SCAN, some hundred at a time so that the
   server stays free for others. The parent concludes from what all nodes have.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "ask.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    LOCKS_MAX = 10000, /* of one node */
    BATCH = 100,       /* keys that are asked for at once */
    SCAN_LEAST =
        250, /* COUNT of SCAN: if each of so many keys matches, the answer has room for them */
    SCAN_MOST = 4000, /* the server serves no other client for about a millisecond */
    SCAN_FEW = 64,    /* below so many matches COUNT grows */
    LIMIT_MS = 10000, /* for patterns that have many keys */
    NO_END = -1,      /* in place of a remaining time */
    UNKNOWN_TIME = -2,
    UNKNOWN_COUNT = -1
};

/* A key on one node. */
struct seen {
    char key[REDLOCK_KEY_MAX + 1];
    char value[VALUE_MAX + 1]; /* its beginning; of a key that is no string: its type, or "" */
    size_t size;               /* of the whole value */
    long left_ms;              /* or NO_END, UNKNOWN_TIME */
    long waiting;              /* or UNKNOWN_COUNT */
    int is_string;             /* 0: it is not a lock */
};

/* What one node has. */
struct view {
    struct result result;
    unsigned count;
    int is_cut; /* 1: there are more keys */
    int is_odd; /* 1: some keys cannot be those of a lock */
    struct seen seen[LOCKS_MAX];
};

static struct view *views;
static char **names; /* names and patterns */
static int name_count;

static struct view *view_of(unsigned i)
{
    return &views[i];
}

/* The name of a slot, from 1. */
static void name_slot(char name[REDLOCK_KEY_MAX + 1], unsigned number)
{
    slot_name(name, names[0], (unsigned)options.slots, number);
}

/* ---- In the child of a node ---- */

static int tell_key(struct talk *talk, const char *key)
{
    char queue[REDLOCK_KEY_MAX + SUFFIX_MAX];

    snprintf(queue, sizeof queue, "%s%s", key, QUEUE_SUFFIX);
    return tell(talk, "GET", key, NULL) && tell(talk, "PTTL", key, NULL) &&
           tell(talk, "ZCARD", queue, NULL);
}

/* Takes the answers. Returns 1 if there is such a key, 0 if there is none, or the conversation has failed. */
static int hear_key(struct talk *talk, struct seen *seen)
{
    size_t kept;
    int is_there;

    if (!hear(talk))
        return 0;
    seen->is_string = is_kind(talk, RESP_STRING);
    is_there = seen->is_string || is_error(talk, "WRONGTYPE");
    if (!is_there && !is_kind(talk, RESP_NIL))
        return refuses(talk);
    if (seen->is_string) {
        seen->size = talk->item[0].size;
        kept = seen->size < VALUE_MAX ? seen->size : VALUE_MAX;
        memcpy(seen->value, text_of(talk), kept);
        seen->value[kept] = '\0';
    }
    if (!hear(talk))
        return 0;
    seen->left_ms = UNKNOWN_TIME; /* PTTL may be denied */
    if (is_kind(talk, RESP_INTEGER) && number_of(talk) == -2)
        is_there = 0; /* it has expired since */
    else if (is_kind(talk, RESP_INTEGER))
        seen->left_ms = number_of(talk) < LONG_MAX / 2 ? (long)number_of(talk) : LONG_MAX / 2;
    if (!hear(talk))
        return 0;
    seen->waiting = is_kind(talk, RESP_INTEGER) ? (long)number_of(talk) : UNKNOWN_COUNT;
    return is_there;
}

/* The types of keys that are no strings; they may be denied. */
static void ask_types(struct talk *talk, struct seen *seen, unsigned count)
{
    unsigned i;

    for (i = 0; i < count; i++)
        if (!seen[i].is_string)
            tell(talk, "TYPE", seen[i].key, NULL);
    for (i = 0; i < count; i++)
        if (!seen[i].is_string && hear(talk) && is_kind(talk, RESP_STATUS))
            printable(seen[i].value, 32, text_of(talk));
}

/* Asks for some keys with one write. Those that exist go to the view. */
static void read_keys(struct talk *talk, struct view *view, char keys[][REDLOCK_KEY_MAX + 1],
                      unsigned count)
{
    unsigned i, first = view->count;

    for (i = 0; i < count; i++)
        tell_key(talk, keys[i]);
    for (i = 0; i < count && talk->result->error[0] == '\0'; i++) {
        struct seen *seen = &view->seen[view->count];
        strcpy(seen->key, keys[i]);
        if (!hear_key(talk, seen)) /* each answer is read, or the next question would get it */
            continue;
        if (view->count < LOCKS_MAX - 1)
            view->count++;
        else
            view->is_cut = 1;
    }
    if (!view->is_cut)
        ask_types(talk, &view->seen[first], view->count - first);
}

/* Whether a key from SCAN is that of a lock. */
static int is_of_a_lock(struct view *view, const struct part *key)
{
    size_t prefix = strlen(options.prefix);

    if (key->kind != RESP_STRING || strncmp(key->text, options.prefix, prefix) != 0 ||
        is_beside_a_lock(key->text))
        return 0;
    if (key->size > prefix && key->size <= REDLOCK_KEY_MAX && strlen(key->text) == key->size)
        return 1;
    view->is_odd = 1;
    return 0;
}

/* One step of SCAN: the next keys go to `keys`, and the cursor is moved. Returns how many parts the answer has; 0: the conversation has
   failed. */
static unsigned scan_step(struct talk *talk, const char *pattern, unsigned count, char cursor[24])
{
    char number[12];

    snprintf(number, sizeof number, "%u", count);
    if (!ask(talk, "SCAN", cursor, "MATCH", pattern, "COUNT", number, NULL))
        return 0;
    if (talk->items < 3 || talk->item[1].kind != RESP_STRING || talk->item[1].size >= 24) {
        refuses(talk);
        return 0;
    }
    strcpy(cursor, talk->item[1].text);
    return talk->items;
}

/* Finds keys that match, and reads them. Few matches in one answer promise few in the next, because SCAN has no order. */
static void scan(struct talk *talk, struct view *view, const char *pattern)
{
    static char keys[ANSWER_ITEMS][REDLOCK_KEY_MAX + 1];
    char cursor[24] = "0";
    unsigned i, n, found, items, count = SCAN_LEAST;

    do {
        items = scan_step(talk, pattern, count, cursor);
        for (i = 3, found = 0; i < items; i++)
            if (is_of_a_lock(view, &talk->item[i]))
                strcpy(keys[found++], talk->item[i].text);
        for (i = 0; i < found && !view->is_cut; i += n) {
            n = found - i < BATCH ? found - i : BATCH;
            read_keys(talk, view, keys + i, n);
        }
        count = items >= SCAN_FEW ? SCAN_LEAST : count < SCAN_MOST ? 2 * count : count;
    } while (strcmp(cursor, "0") != 0 && !view->is_cut && talk->result->error[0] == '\0');
}

/* Writes the text with a backslash before each of these characters. Returns the end. */
static char *put_escaped(char *out, const char *text, const char *special)
{
    for (; *text != '\0'; text++) {
        if (strchr(special, *text) != NULL)
            *out++ = '\\';
        *out++ = *text;
    }
    *out = '\0';
    return out;
}

/* The pattern for SCAN: the prefix, and the user's pattern, in which only * and ? have a meaning. */
static void scan_names(struct talk *talk, struct view *view, const char *name)
{
    char pattern[2 * REDLOCK_KEY_MAX + 2];

    put_escaped(put_escaped(pattern, options.prefix, "*?[]\\"), name, "[]\\");
    scan(talk, view, pattern);
}

/* Reads the keys of all names that are no patterns. */
static void read_names(struct talk *talk, struct view *view)
{
    char keys[BATCH][REDLOCK_KEY_MAX + 1], name[REDLOCK_KEY_MAX + 1];
    unsigned i, used = 0,
                count = options.slots > 0 ? (unsigned)options.slots : (unsigned)name_count;

    for (i = 0; i < count; i++) {
        if (options.slots > 0)
            name_slot(name, i + 1);
        else if (!is_pattern(names[i]))
            snprintf(name, sizeof name, "%s", names[i]);
        else
            continue;
        key_of(keys[used++], name);
        if (used == BATCH) {
            read_keys(talk, view, keys, used);
            used = 0;
        }
    }
    read_keys(talk, view, keys, used);
}

/* A node of a cluster answers SCAN, although it serves no lock, or only those of its slots. Only a command with a key shows that. */
static void ask_for_cluster(struct talk *talk)
{
    if (ask_any(talk, "GET", options.prefix, NULL) &&
        (is_error(talk, "CLUSTERDOWN") || is_error(talk, "MOVED")))
        refuses(talk);
}

static void converse(struct talk *talk, unsigned i, void *result)
{
    int n;

    (void)i;
    read_names(talk, result);
    for (n = 0; n < name_count && options.slots == 0; n++)
        if (is_pattern(names[n])) {
            if (talk->result->unfinished == NULL) { /* the first pattern */
                talk->result->unfinished = "SCAN is not over";
                ask_for_cluster(talk);
            }
            scan_names(talk, result, names[n]);
        }
    ask_run_id(talk);
}

/* ---- The conclusion from all nodes ---- */

/* What the nodes have of one key. */
struct lock {
    const char *name;
    enum { UNKNOWN, FREE, HELD, IN_USE } state; /* IN_USE: by a key that is not a lock */
    const struct seen *best; /* one of the most frequent value; NULL: no node has the key */
    unsigned nodes;          /* how many have it */
    unsigned taken, is_free; /* how many have any value; how many have none, and no error */
    long left_ms; /* until fewer than a quorum of nodes have the value; or as in struct seen */
    long waiting; /* the largest number that a quorum confirms */
};

static int by_key(const void *one, const void *other)
{
    return strcmp(((const struct seen *)one)->key, ((const struct seen *)other)->key);
}

/* 1: this node is the same server as one before it. */
static int counts_once(unsigned i)
{
    return view_of(i)->result.fault == REDLOCK_FAULT_SAME_SERVER;
}

/* What node i has of the lock of this name, which may be from a node: so it is not checked. */
static const struct seen *find(unsigned i, const char *name)
{
    struct seen wanted;

    if (counts_once(i))
        return NULL;
    snprintf(wanted.key, sizeof wanted.key, "%s%s", options.prefix, name);
    return bsearch(&wanted, view_of(i)->seen, view_of(i)->count, sizeof wanted, by_key);
}

/* Whether two nodes have the same holder. */
static int equal(const struct seen *a, const struct seen *b)
{
    if (!a->is_string || !b->is_string)
        return a->is_string == b->is_string && strcmp(a->value, b->value) == 0;
    return a->size == b->size &&
           same_value(a->value, b->value, a->size < VALUE_MAX ? a->size : VALUE_MAX);
}

static int longest_first(const void *a, const void *b)
{
    long left = *(const long *)a, right = *(const long *)b;

    left = left == NO_END ? LONG_MAX : left;
    right = right == NO_END ? LONG_MAX : right;
    return left < right ? 1 : left > right ? -1 : 0;
}

static int largest_first(const void *a, const void *b)
{
    long left = *(const long *)a, right = *(const long *)b;

    return left < right ? 1 : left > right ? -1 : 0;
}

/* Finds the most frequent value among what the nodes have. */
static void count_nodes_of(struct lock *lock, const struct seen *const *seen)
{
    unsigned i, n, same;

    for (i = 0; i < target_count; i++) {
        for (n = same = 0; n < target_count && seen[i] != NULL; n++)
            same += seen[n] != NULL && equal(seen[i], seen[n]);
        if (same > lock->nodes) {
            lock->nodes = same;
            lock->best = seen[i];
        }
    }
}

/* A lock is held if a quorum of nodes has the same value. It is free if the nodes that do not answer could not change that. */
static struct lock conclude(const char *name)
{
    struct lock lock = {name, UNKNOWN, NULL, 0, 0, 0, UNKNOWN_TIME, UNKNOWN_COUNT};
    const struct seen *seen[REDLOCK_NODES_MAX];
    long left[REDLOCK_NODES_MAX], waiting[REDLOCK_NODES_MAX];
    unsigned i, lefts = 0, counts = 0, silent = 0;

    for (i = 0; i < target_count; i++) {
        seen[i] = find(i, name);
        silent += seen[i] == NULL && view_of(i)->result.error[0] != '\0' && !counts_once(i);
        lock.is_free += seen[i] == NULL && view_of(i)->result.error[0] == '\0';
    }
    count_nodes_of(&lock, seen);
    for (i = 0; i < target_count && lock.best != NULL; i++) {
        lock.taken += seen[i] != NULL;
        if (seen[i] != NULL && seen[i]->waiting != UNKNOWN_COUNT)
            waiting[counts++] = seen[i]->waiting;
        if (seen[i] != NULL && equal(seen[i], lock.best))
            left[lefts++] = seen[i]->left_ms;
    }
    if (lock.nodes >= quorum()) {
        lock.state = lock.best->is_string ? HELD : IN_USE;
        qsort(left, lefts, sizeof *left, longest_first);
        lock.left_ms = left[quorum() - 1];
        qsort(waiting, counts, sizeof *waiting, largest_first);
        if (counts >= quorum())
            lock.waiting = waiting[quorum() - 1];
    } else if (lock.nodes + silent < quorum()) {
        lock.state = FREE;
    }
    return lock;
}

/* ---- The rows ---- */

static struct lock *rows;
static unsigned row_count;
static char (*slots)[REDLOCK_KEY_MAX + 1]; /* their names */

static void add_row(const char *name)
{
    rows[row_count++] = conclude(name);
}

/* 1: one of the words is this name, and not a pattern of the same text. */
static int is_named(const char *name)
{
    int n = 0;

    while (n < name_count && (is_pattern(names[n]) || strcmp(names[n], name) != 0))
        n++;
    return n < name_count;
}

static int by_text(const void *one, const void *other)
{
    return strcmp(*(const char *const *)one, *(const char *const *)other);
}

/* The keys that were found, each once. */
static void add_found(size_t total)
{
    const char **found = must_allocate(total + 1, sizeof *found);
    size_t count = 0, n, prefix = strlen(options.prefix);
    unsigned i, k;

    for (i = 0; i < target_count; i++)
        for (k = 0; k < view_of(i)->count; k++)
            found[count++] = view_of(i)->seen[k].key + prefix;
    qsort(found, count, sizeof *found, by_text);
    for (n = 0; n < count; n++)
        if ((n == 0 || strcmp(found[n], found[n - 1]) != 0) && !is_named(found[n]))
            add_row(found[n]);
    free(found);
}

/* First the names, in their order, then what the patterns have found. */
static void make_rows(void)
{
    size_t total = 0;
    unsigned i;
    int n;

    for (i = 0; i < target_count; i++) {
        total += view_of(i)->count;
        qsort(view_of(i)->seen, view_of(i)->count, sizeof *view_of(i)->seen, by_key);
    }
    slots = must_allocate((size_t)options.slots + 1, sizeof *slots);
    rows = must_allocate(total + (size_t)name_count + (size_t)options.slots, sizeof *rows);
    for (i = 0; i < (unsigned)options.slots; i++) {
        name_slot(slots[i], i + 1);
        add_row(slots[i]);
    }
    for (n = 0; n < name_count && options.slots == 0; n++)
        if (!is_pattern(names[n]))
            add_row(names[n]);
    if (options.slots == 0)
        add_found(total);
}

/* ---- Output ---- */

static const char *state_of(const struct lock *lock)
{
    static const char *const states[] = {"unknown", "free", "held", "in use"};

    return states[lock->state];
}

static const char *left_text(char text[32], long ms)
{
    const long minute = 60000, hour = 60 * minute, day = 24 * hour;

    if (ms == NO_END)
        snprintf(text, 32, "no end");
    else if (ms == UNKNOWN_TIME)
        snprintf(text, 32, "?");
    else if (ms < 10 * minute)
        snprintf(text, 32, "%ld.%ld s", ms / 1000, ms % 1000 / 100);
    else
        snprintf(text, 32, "%ld %s",
                 ms / (ms < 5 * hour  ? minute
                       : ms < 5 * day ? hour
                                      : day),
                 ms < 5 * hour  ? "min"
                 : ms < 5 * day ? "h"
                                : "d");
    return text;
}

/* "2026-11-27T01:10:12Z"; strftime would cost a static program 8 KB. */
static void put_time(char *text, size_t room, long long ms)
{
    time_t seconds = (time_t)(ms / 1000);
    const struct tm *at = gmtime(&seconds);

    snprintf(text, room, "%d-%02d-%02dT%02d:%02d:%02dZ", at->tm_year + 1900, at->tm_mon + 1,
             at->tm_mday, at->tm_hour, at->tm_min, at->tm_sec);
}

/* With -v: what each node has. */
static void print_nodes(const struct lock *lock)
{
    char left[32], id[ID_TEXT], why[WHO_MAX + 1];
    unsigned i;

    for (i = 0; i < target_count; i++) {
        const struct seen *seen = find(i, lock->name);
        print("    %-24s ", targets[i].url.address);
        if (seen == NULL) {
            printable(why, sizeof why, view_of(i)->result.error);
            print("%s\n", why[0] != '\0' ? why : "free");
        } else if (!seen->is_string) {
            print("%s  %s\n", seen->value[0] != '\0' ? seen->value : "another type",
                  left_text(left, seen->left_ms));
        } else {
            id_of(id, seen->value);
            print("%s  %s\n", id, left_text(left, seen->left_ms));
        }
    }
}

static void print_row(const struct lock *lock, int width)
{
    char name[WHO_MAX + 1], who[WHO_MAX + 1] = "-", id[ID_TEXT] = "-", left[32] = "-",
                                          begin[80] = "-", waits[24] = "-";
    struct holder holder;

    printable(name, sizeof name, lock->name);
    if (lock->state == HELD) {
        id_of(id, lock->best->value);
        left_text(left, lock->left_ms);
        if (parse_holder(&holder, lock->best->value)) {
            describe_holder(who, sizeof who, lock->best->value);
            put_time(begin, sizeof begin, holder.started_ms);
        }
        if (lock->waiting != UNKNOWN_COUNT)
            snprintf(waits, sizeof waits, "%ld", lock->waiting);
    } else if (lock->state == IN_USE) {
        snprintf(who, sizeof who, "%s, which is not a lock",
                 lock->best->value[0] != '\0' ? lock->best->value : "another type");
    }
    print("%-*s  %-7s  %2u/%-2u  %8s  %4s  %-20s  %-8s  %s\n", width, name, state_of(lock),
          lock->nodes, target_count, left, waits, begin, id, who);
    if (options.verbose)
        print_nodes(lock);
}

static void print_table(void)
{
    char name[WHO_MAX + 1];
    int width = 4, size;
    unsigned n;

    for (n = 0; n < row_count; n++) {
        printable(name, sizeof name, rows[n].name);
        size = (int)strlen(name);
        width = size > width ? size : width;
    }
    width = width < 40 ? width : 40;
    if (row_count > 0 && !options.quiet)
        print("%-*s  %-7s  %5s  %8s  %4s  %-20s  %-8s  %s\n", width, "NAME", "STATE", "NODES",
              "LEFT", "WAIT", "STARTED", "ID", "HOLDER");
    for (n = 0; n < row_count; n++)
        print_row(&rows[n], width);
}

/* A line for each lock. */
static void print_json(const struct lock *lock)
{
    char id[ID_TEXT];

    json_begin("status");
    json_member("name", lock->name);
    json_member("state", state_of(lock));
    print(",\"on\":%u,\"nodes\":%u,\"quorum\":%u", lock->nodes, target_count, quorum());
    if (lock->state == HELD) {
        id_of(id, lock->best->value);
        json_member("id", id);
        if (lock->left_ms == NO_END)
            print(",\"left_ms\":null");
        else if (lock->left_ms != UNKNOWN_TIME)
            print(",\"left_ms\":%ld", lock->left_ms);
        json_holder(lock->best->value);
        if (lock->waiting != UNKNOWN_COUNT)
            print(",\"waiting\":%ld", lock->waiting);
    } else if (lock->state == IN_USE) {
        json_member("type", lock->best->value);
    }
    print("}\n");
}

/* How many of the rows are held, or in use by something else, which is not free either; and how many are unknown. */
static void count_rows(unsigned *held, unsigned *unknown)
{
    unsigned n;

    *held = *unknown = 0;
    for (n = 0; n < row_count; n++) {
        *held += rows[n].state >= HELD;
        *unknown += rows[n].state == UNKNOWN;
    }
}

/* With --slots, after their lines: how many are held. */
static void print_slots(void)
{
    char name[WHO_MAX + 1];
    unsigned held, unknown;

    count_rows(&held, &unknown);
    if (options.json) {
        json_begin("status");
        json_member("name", names[0]);
        print(",\"slots\":%ld,\"held\":%u,\"unknown\":%u}\n", options.slots, held, unknown);
    } else if (!options.quiet) {
        printable(name, sizeof name, names[0]);
        print("%s: %u of %ld slots held", name, held, options.slots);
        if (unknown > 0)
            print(", %u unknown", unknown);
        print("\n");
    }
}

/* ---- The verb ---- */

/* How many nodes have answered all questions. */
static unsigned count_answers(void)
{
    unsigned i, answered = 0;

    for (i = 0; i < target_count; i++)
        answered += view_of(i)->result.error[0] == '\0';
    return answered;
}

/* A node that has too many locks does not tell of the others. As long as a quorum of nodes has fewer, it counts as a node that has not
   answered all questions. Returns 1 if too many nodes are so. */
static int are_too_many(void)
{
    unsigned i, cut = 0;

    for (i = 0; i < target_count; i++)
        cut += view_of(i)->is_cut != 0;
    if (cut > target_count - quorum())
        return 1;
    for (i = 0; i < target_count; i++)
        if (view_of(i)->is_cut && view_of(i)->result.error[0] == '\0') {
            view_of(i)->result.fault = REDLOCK_FAULT_REPLIED;
            snprintf(view_of(i)->result.error, sizeof view_of(i)->result.error,
                     "has more than %d locks: ask for fewer with a PATTERN", (int)LOCKS_MAX - 1);
        }
    return 0;
}

/* Names the nodes that have not answered all questions, with their errors; behind a message that says how many. */
static void say_silent(void)
{
    const char *reason[REDLOCK_NODES_MAX];
    unsigned i;

    for (i = 0; i < target_count; i++)
        reason[i] = view_of(i)->result.error;
    say_reasons(LOG_WARNING, reason);
}

/* Too few nodes answer; or those that do cannot tell whether a lock is held. */
static int failure(void)
{
    enum redlock_fault faults[REDLOCK_NODES_MAX];
    unsigned i, n, answered = count_answers();

    for (i = 0; i < target_count; i++)
        faults[i] = view_of(i)->result.fault;
    if (answered < quorum())
        say_no_quorum("status", answered, what_failed(faults));
    for (n = 0; n < row_count && answered >= quorum(); n++)
        if (rows[n].state == UNKNOWN)
            say_no_holder(rows[n].name, rows[n].is_free, rows[n].taken);
    say_silent();
    return failure_status(faults);
}

/* 0: at least one of the names, or of what the patterns have found, is held; of slots: all of them. 1: else. A lock of which
   nobody knows whether it is held is a failure only if the answer depends on it. is_cut: not all locks are known. */
static int answer(int is_cut)
{
    unsigned n, held, unknown, wanted = options.slots > 0 ? (unsigned)options.slots : 1;
    int is_odd = 0;

    count_rows(&held, &unknown);
    for (n = 0; n < target_count; n++)
        is_odd |= view_of(n)->is_odd;
    if (is_odd)
        say(LOG_WARNING,
            "keys were left out: they are too long for a lock, have a NUL byte, or are "
            "the prefix without a name");
    if (is_cut)
        say(LOG_ERROR, "there are more than %d locks: ask for fewer with a PATTERN",
            (int)LOCKS_MAX - 1);
    if (count_answers() < quorum() || (held < wanted && held + unknown >= wanted))
        return failure();
    if (count_answers() < target_count)
        say(LOG_WARNING, "status: only %u of %u nodes count", count_answers(), target_count);
    say_silent();
    if (is_cut)
        return EXIT_UNAVAILABLE;
    return held < wanted;
}

/* --mine, --here: 0 if the caller, or a process of this host, holds the lock. Prints nothing on stdout. */
static int answer_test(const char *mark)
{
    struct lock lock = rows[0];
    struct holder holder;

    if (lock.state == UNKNOWN)
        return failure();
    if (lock.state != HELD)
        return 1;
    if (options.mine)
        return !has_mark(lock.best->value, mark);
    return !(parse_holder(&holder, lock.best->value) && is_here(&holder));
}

static void check_words(int count)
{
    char key[REDLOCK_KEY_MAX + 1], name[REDLOCK_KEY_MAX + 1];
    int n, patterns = 0;

    for (n = 0; n < count; n++) {
        key_of(key, names[n]); /* exits if that is no name */
        patterns += is_pattern(names[n]);
    }
    if (options.mine && options.here)
        die(EXIT_USAGE, "status: one of --mine, --here");
    if ((options.mine || options.here || options.slots > 0) && (count != 1 || patterns > 0))
        die(EXIT_USAGE, "status: with --mine, --here and --slots exactly one NAME is required");
    if ((options.mine || options.here) && (options.slots > 0 || options.json))
        die(EXIT_USAGE, "status: --mine and --here print nothing: their answer is the exit status");
    if (options.slots > 0) {
        name_slot(name, (unsigned)options.slots); /* no other name of a slot is longer */
        key_of(key, name);
    }
}

int verb_status(int count, char **words)
{
    static char star[] = "*", *all[] = {star, NULL};
    const char *mark = NULL;
    char key[REDLOCK_KEY_MAX + 1];
    struct patience patience;
    unsigned row;
    int is_cut, result;

    names = count > 0 ? words : all;
    name_count = count > 0 ? count : 1;
    check_words(count);
    if (options.mine) {
        key_of(key, names[0]);
        if ((mark = mark_of(key)) == NULL)
            return 1;
    }
    nodes_load();
    patience.step_ms = patience.rest_ms = options.node_timeout_ms;
    patience.limit_ms = LIMIT_MS + options.node_timeout_ms * FIRST_TIMES;
    views = ask_nodes(converse, sizeof *views, &patience);
    is_cut = are_too_many();
    make_rows();
    if (options.mine || options.here)
        return answer_test(mark);
    if (options.json)
        for (row = 0; row < row_count; row++)
            print_json(&rows[row]);
    else
        print_table();
    if (options.slots > 0)
        print_slots();
    is_written(); /* before the messages */
    result = answer(is_cut);
    must_be_written();
    return result;
}
