/* status.c - redlock status: the holder of a lock; and redlock list: the locks with the prefix, and their holders. List reads the
   names with SCAN, a few at a time, so that no server is blocked; it has limits for names, bytes and time.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "look.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The line about a lock: "NAME: held  id 5f0c12ab  by host/1 (label)  since ...  22.4 s left  3/3 nodes". */
static void print_state(const char *name, const struct picture *picture)
{
    const struct view *best = &picture->view[picture->best];
    struct holder holder;
    char who[WHO_MAX + 1], text[32];

    printable(who, sizeof who, name);
    printf("%s: %s", who, state_name(picture));
    if (picture->state == HELD) {
        printf("  id %s", best->id);
        if (parse_holder(&holder, best->value)) {
            time_t seconds = (time_t)(holder.since_ms / 1000);
            const struct tm *since = gmtime(&seconds); /* strftime costs a static build 8 KB */
            describe_holder(who, sizeof who, best->value);
            printf("  by %s  since %d-%02d-%02d %02d:%02d:%02dZ", who, since->tm_year + 1900,
                   since->tm_mon + 1, since->tm_mday, since->tm_hour, since->tm_min, since->tm_sec);
        }
        printf("  %s", left_text(text, picture->left_ms));
    } else if (picture->state == IN_USE) {
        printf("  by something that is not a lock: %s", type_of(best));
    }
}

/* The same as members of a JSON object. */
static void json_state(const char *name, const struct picture *picture)
{
    const struct view *best = &picture->view[picture->best];

    json_string(name);
    printf(",\"state\":\"%s\"", state_name(picture));
    if (picture->state == HELD) {
        printf(",\"id\":\"%s\",\"remaining_ms\":%ld", best->id, picture->left_ms);
        json_holder(best->value);
    }
}

/* ---- redlock status ---- */

/* What a node has, in a word. */
static const char *kind_name(const struct view *view, const struct picture *picture)
{
    static const char *const names[] = {"absent", "other", "foreign", "error"};

    return view->same && picture->state == HELD ? "same" : names[view->kind];
}

static void print_text(const char *name, const struct picture *picture, long waiting)
{
    char who[WHO_MAX + 1], text[32];
    unsigned i;

    print_state(name, picture);
    if (waiting > 0)
        printf("  %ld wait%s", waiting, waiting == 1 ? "s" : "");
    printf("  %u/%u nodes\n", picture->state >= HELD ? picture->holding : picture->answers,
           target_count);
    for (i = 0; i < target_count; i++) {
        const struct view *view = &picture->view[i];
        printf("  %-24s %-*s", targets[i].url.address, view->kind == ABSENT ? 0 : 9,
               kind_name(view, picture));
        printable(who, sizeof who, picture->error[i]);
        if (view->kind != ABSENT)
            printf("%s", view->kind == FAILED ? who : left_text(text, view->left_ms));
        if (view->kind == FOREIGN)
            printf("  %s", type_of(view));
        else if (view->kind == PRESENT && !(view->same && picture->state == HELD))
            printf("  id %s", view->id);
        printf("\n");
    }
}

static void print_json(const char *name, const struct picture *picture, long waiting)
{
    unsigned i;

    json_begin("status");
    printf(",\"quorum\":%u,\"nodes\":%u,\"name\":", quorum(), target_count);
    json_state(name, picture);
    if (waiting != UNKNOWN_COUNT)
        printf(",\"waiting\":%ld", waiting);
    printf(",\"node\":[");
    for (i = 0; i < target_count; i++) {
        const struct view *view = &picture->view[i];
        printf("%s{\"url\":", i > 0 ? "," : "");
        json_string(targets[i].url.address);
        json_member("value", kind_name(view, picture));
        if (view->kind == PRESENT)
            json_member("id", view->id);
        else if (view->kind == FOREIGN)
            json_member("type", type_of(view));
        else if (view->kind == FAILED)
            json_member("error", picture->error[i]);
        if (view->kind == PRESENT || view->kind == FOREIGN)
            printf(",\"pttl_ms\":%ld", view->left_ms);
        printf("}");
    }
    printf("]}\n");
}

/* Which slots of this name are held: their numbers go to `slots`. Returns how many. A node that does not permit EVAL does not say. */
static unsigned find_slots(const char *key, unsigned slots[SLOTS_MAX])
{
    static char slot[LOOK_MANY][REDLOCK_KEY_MAX + 5];
    const char *keys[LOOK_MANY];
    struct picture picture;
    unsigned i, n, many, count = 0;

    talks_open((uint32_t)options.node_timeout_ms);
    for (i = 0; i < SLOTS_MAX; i += many) {
        many = SLOTS_MAX - i < LOOK_MANY ? SLOTS_MAX - i : LOOK_MANY;
        for (n = 0; n < many; n++) {
            snprintf(slot[n], sizeof *slot, "%s/%u", key, i + n + 1);
            keys[n] = slot[n];
        }
        look_many(keys, many);
        for (n = 0; n < many; n++) {
            look_take(n, &picture);
            if (picture.state == HELD)
                slots[count++] = i + n + 1;
        }
    }
    talks_close();
    return count;
}

static void print_slots(const char *name, const unsigned *slots, unsigned count)
{
    char text[WHO_MAX + 1];
    unsigned i;

    printable(text, sizeof text, name);
    if (options.json) {
        json_begin("status");
        printf(",\"quorum\":%u,\"nodes\":%u,\"name\":", quorum(), target_count);
        json_string(name);
        printf(",\"state\":\"held\",\"slots\":[");
    } else {
        printf("%s: held  slot ", text);
    }
    for (i = 0; i < count; i++)
        printf("%s%u", i > 0 ? "," : "", slots[i]);
    printf(options.json ? "]}\n" : "\n");
}

int verb_status(int count, char **words)
{
    unsigned slots[SLOTS_MAX], held = 0;
    long waiting = UNKNOWN_COUNT;
    struct picture picture;
    char key[REDLOCK_KEY_MAX + 1];

    if (count != 1)
        die(EXIT_USAGE, "status: exactly one NAME is required");
    nodes_load();
    key_of(key, words[0]);
    look_at(key, &picture, (uint32_t)options.node_timeout_ms);
    if (picture.state == FREE)
        held = find_slots(key, slots);
    else if (picture.state == HELD)
        waiting = count_waiters(key, (uint32_t)options.node_timeout_ms);
    if (held > 0)
        print_slots(words[0], slots, held);
    else if (options.json)
        print_json(words[0], &picture, waiting);
    else
        print_text(words[0], &picture, waiting);
    must_be_written();
    return held > 0                ? 0
           : picture.state >= HELD ? 0
           : picture.state == FREE ? 1
                                   : exit_status(talks_failure());
}

/* ---- redlock held ---- */

int verb_held(int count, char **words)
{
    char key[REDLOCK_KEY_MAX + 1];
    struct picture picture;
    struct holder holder;
    const char *mark, *value;

    if (count != 1)
        die(EXIT_USAGE, "held: exactly one NAME is required");
    nodes_load();
    key_of(key, words[0]);
    mark = mark_of(key, strlen(key));
    if (mark == NULL && !options.here)
        return 1;
    look_at(key, &picture, (uint32_t)options.node_timeout_ms);
    if (picture.state == UNKNOWN) {
        say(LOG_ERROR, "%s: %s", words[0], status_text(talks_failure()));
        return exit_status(talks_failure());
    }
    value = picture.view[picture.best].value;
    return picture.state == HELD &&
                   ((mark != NULL && has_mark(value, mark)) ||
                    (options.here && parse_holder(&holder, value) && is_here(&holder)))
               ? 0
               : 1;
}

/* ---- redlock list: the names ---- */

enum {
    LIST_KEYS = 10000,   /* the largest number of keys */
    LIST_BYTES = 262144, /* of all keys together */
    LIST_MS = 5000,      /* the limit for the names, and again for the holders */
    LIST_STEP = 250 /* keys that a server examines in one SCAN: takes a fraction of a millisecond */
};

static struct {
    char bytes[LIST_BYTES]; /* keys, each with a NUL */
    uint32_t used;
    uint32_t key[LIST_KEYS]; /* offset of each in `bytes`, sorted by key */
    unsigned count;
    int odd;         /* 1: some keys are too long for a lock of redlock, or have a NUL */
    const char *cut; /* why the list is not complete; NULL if it is complete */
} found;

/* The index of the key, or the index where it must be inserted. */
static unsigned place_of(const char *key)
{
    unsigned low = 0, high = found.count;

    while (low < high) {
        unsigned middle = (low + high) / 2;
        if (strcmp(found.bytes + found.key[middle], key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void add_key(const char *key, size_t size)
{
    unsigned at = place_of(key);

    if (at < found.count && strcmp(found.bytes + found.key[at], key) == 0)
        return;
    if (size > REDLOCK_KEY_MAX + SUFFIX_MAX || strlen(key) != size) {
        found.odd = 1;
    } else if (size > REDLOCK_KEY_MAX) {
        /* the counter, the queue and the leases of a long name are no locks either */
        found.odd |= !is_beside_a_lock(key);
    } else if (found.count == LIST_KEYS || size >= LIST_BYTES - found.used) {
        found.cut = "there are too many keys";
    } else {
        memmove(&found.key[at + 1], &found.key[at], (found.count - at) * sizeof *found.key);
        found.key[at] = found.used;
        memcpy(found.bytes + found.used, key, size + 1);
        found.used += (uint32_t)size + 1;
        found.count++;
    }
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
static void make_pattern(char *out, const char *pattern)
{
    out = put_escaped(out, options.prefix, "*?[]\\");
    put_escaped(out, pattern, "[]\\");
}

/* Takes one answer to SCAN: the cursor, then the keys. Returns 0 if there are no more. A node that does not permit SCAN is not
   asked again. */
static int take_page(struct talk *talk, char cursor[24])
{
    unsigned i;

    if (talk->items < 3 || talk->item[1].kind != RESP_STRING || talk->item[1].size > 23) {
        talk_note_error(talk);
        talk_close(talk, "");
        return 0;
    }
    strcpy(cursor, talk->item[1].text);
    for (i = 3; i < talk->items && found.cut == NULL; i++)
        if (talk->item[i].kind == RESP_STRING &&
            strncmp(talk->item[i].text, options.prefix, strlen(options.prefix)) == 0)
            add_key(talk->item[i].text, talk->item[i].size);
    return strcmp(cursor, "0") != 0;
}

/* Asks all nodes at the same time, each with its own cursor. */
static void find_keys(const char *pattern)
{
    uint64_t until_us = now_us() + (uint64_t)LIST_MS * 1000;
    static char cursor[REDLOCK_NODES_MAX][24];
    char step[12];
    const char *words[6] = {"SCAN", NULL, "MATCH", pattern, "COUNT", step};
    int goes[REDLOCK_NODES_MAX], more = 1;
    unsigned i;

    snprintf(step, sizeof step, "%d", (int)LIST_STEP);
    for (i = 0; i < target_count; i++) {
        strcpy(cursor[i], "0");
        goes[i] = 1;
    }
    while (more && found.cut == NULL) {
        more = 0;
        for (i = 0; i < target_count; i++) {
            words[1] = cursor[i];
            if (goes[i])
                talk_send(&talks[i], 6, words);
        }
        talks_wait((uint32_t)options.node_timeout_ms);
        for (i = 0; i < target_count; i++) {
            goes[i] = goes[i] && take_page(&talks[i], cursor[i]);
            more |= goes[i];
        }
        if (more && now_us() > until_us)
            found.cut = "it takes too long";
    }
}

/* ---- redlock list: the holders ---- */

/* For the textfile collector of Prometheus, which wants all values of a metric together: they are kept here until the end. */
static struct metric {
    const char *name, *help;
    FILE *values;
    char *text;
    size_t size;
} metrics[] = {
    {"lock_held", "1: a holder has the lock on a majority of the nodes", NULL, NULL, 0},
    {"lock_remaining_seconds", "Until the lock expires on a majority of the nodes", NULL, NULL, 0},
    {"lock_nodes", "Nodes that have the same holder", NULL, NULL, 0},
};
enum { METRICS = sizeof metrics / sizeof *metrics };

static void begin_metrics(void)
{
    unsigned i;

    for (i = 0; i < METRICS; i++)
        if ((metrics[i].values = open_memstream(&metrics[i].text, &metrics[i].size)) == NULL)
            die(EXIT_SYSTEM, "no memory");
}

static void add_metrics(const char *name, const struct picture *picture)
{
    const struct view *best = &picture->view[picture->best];
    char clean[WHO_MAX + 1], who[WHO_MAX + 1];
    unsigned i;

    printable(clean, sizeof clean, name);
    for (i = 0; i < METRICS; i++) {
        fprintf(metrics[i].values, "redlock_%s{", metrics[i].name);
        metric_label(metrics[i].values, "name", clean);
        if (i == 0 && picture->state == HELD) {
            describe_holder(who, sizeof who, best->value);
            fputc(',', metrics[i].values);
            metric_label(metrics[i].values, "holder", who);
        }
        fprintf(metrics[i].values, "} ");
    }
    fprintf(metrics[0].values, "%d\n", picture->state == HELD);
    if (picture->state == HELD && picture->left_ms == NO_END)
        fprintf(metrics[1].values, "+Inf\n");
    else
        fprintf(metrics[1].values, "%.3f\n",
                picture->state == HELD && picture->left_ms > 0 ? (double)picture->left_ms / 1000
                                                               : 0);
    fprintf(metrics[2].values, "%u\n", picture->holding);
}

static void print_metrics(unsigned answered, int complete)
{
    unsigned i;

    for (i = 0; i < METRICS; i++) {
        if (fclose(metrics[i].values) != 0)
            die(EXIT_SYSTEM, "no memory");
        metric_begin(metrics[i].name, metrics[i].help);
        printf("%s", metrics[i].text);
        free(metrics[i].text);
    }
    metric_number("list_complete", "1: all locks are here", (unsigned)complete);
    metric_number("list_nodes", "Nodes that have answered", answered);
}

static void print_lock(const char *name, const struct picture *picture, int is_first)
{
    if (options.prometheus) {
        add_metrics(name, picture);
        return;
    }
    if (options.json) {
        printf("%s{\"name\":", is_first ? "" : ",");
        json_state(name, picture);
        printf(",\"on\":%u}", picture->holding);
        return;
    }
    print_state(name, picture);
    printf("  %s%u/%u nodes\n", picture->state == FREE ? "left over on " : "", picture->holding,
           target_count);
}

/* Asks for the holders, some locks at a time, and prints them. */
static void print_locks(void)
{
    uint64_t until_us = now_us() + (uint64_t)LIST_MS * 1000;
    size_t prefix = strlen(options.prefix);
    const char *keys[LOOK_MANY];
    struct picture picture;
    unsigned i, n, count, printed = 0;

    for (i = 0; i < found.count; i += count) {
        for (count = 0; count < LOOK_MANY && i + count < found.count; count++)
            keys[count] = found.bytes + found.key[i + count];
        if (now_us() > until_us) {
            found.cut = "it takes too long";
            break;
        }
        look_many(keys, count);
        for (n = 0; n < count; n++) {
            look_take(n, &picture);
            if (picture.holding > 0 && !is_beside_a_lock(keys[n]))
                print_lock(keys[n] + prefix, &picture, printed++ == 0);
        }
    }
}

/* Prints the nodes that have not answered all questions. Returns how many nodes have. */
static unsigned say_silent(void)
{
    unsigned i, answered = 0;

    for (i = 0; i < target_count; i++)
        if (talks[i].node.error[0] != '\0')
            say(LOG_WARNING, "%s: %s", targets[i].url.address, talks[i].node.error);
        else
            answered++;
    return answered;
}

int verb_list(int count, char **words)
{
    char pattern[2 * REDLOCK_KEY_MAX + 2], key[REDLOCK_KEY_MAX + 1];
    unsigned answered;

    if (count > 1)
        die(EXIT_USAGE, "list: at most one PATTERN");
    nodes_load();
    if (options.json && options.prometheus)
        die(EXIT_USAGE, "list: one of --json, --prometheus");
    if (options.prometheus)
        begin_metrics();
    key_of(key, count > 0 ? words[0] : "*"); /* exits if it is longer than a key */
    make_pattern(pattern, count > 0 ? words[0] : "*");
    if (options.json) {
        json_begin("list");
        printf(",\"quorum\":%u,\"nodes\":%u,\"locks\":[", quorum(), target_count);
    }
    talks_open((uint32_t)options.node_timeout_ms);
    find_keys(pattern);
    print_locks();
    answered = say_silent();
    talks_close();
    if (found.odd)
        say(LOG_WARNING,
            "keys were left out: they are too long for a lock of redlock, or have a NUL byte");
    if (found.cut != NULL)
        say(LOG_ERROR, "the list is not complete: %s; ask for fewer with a PATTERN", found.cut);
    if (answered < quorum())
        say(LOG_ERROR, "%s: %u of %u", status_text(talks_failure()), answered, target_count);
    if (options.prometheus)
        print_metrics(answered, found.cut == NULL && answered >= quorum());
    if (options.json)
        printf("],\"ok\":%u,\"complete\":%s}\n", answered,
               found.cut == NULL && answered >= quorum() ? "true" : "false");
    must_be_written();
    return answered < quorum() ? exit_status(talks_failure())
           : found.cut != NULL ? EXIT_UNAVAILABLE
                               : 0;
}
