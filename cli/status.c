/* status.c - who holds a lock: redlock status, release --force, and what a value tells about its holder.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "talk.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- Values ---- */

/* What a value of ours tells about its holder. */
struct holder {
    char host[80], label[120];
    long pid;
    long long since_ms; /* since 1970 */
};

uint32_t hash_more(uint32_t hash, const char *bytes, size_t size)
{
    for (; size > 0; size--)
        hash = (hash ^ (uint8_t)*bytes++) * 16777619U;
    return hash;
}

void id_of(char id[ID_TEXT], const char *value, size_t size)
{
    snprintf(id, ID_TEXT, "%08lx", (unsigned long)hash_more(HASH_BEGIN, value, size));
}

/* The next part of `*at` up to a colon or the end, decoded. 0: there is none. */
static int next_part(const char **at, char *part, size_t room)
{
    size_t size;

    if (**at != ':')
        return 0;
    ++*at;
    size = strcspn(*at, ":");
    snprintf(part, room, "%.*s", (int)size, *at);
    percent_decode(part);
    *at += size;
    return 1;
}

/* 1 if the value is one of ours that says who it is. */
static int parse_holder(struct holder *holder, const char *value)
{
    char number[24];

    memset(holder, 0, sizeof *holder);
    if (strspn(value, "0123456789abcdef") != TOKEN_DIGITS)
        return 0;
    value += TOKEN_DIGITS;
    if (!next_part(&value, holder->host, sizeof holder->host) ||
        !next_part(&value, number, sizeof number))
        return 0;
    holder->pid = strtol(number, NULL, 10);
    if (!next_part(&value, number, sizeof number))
        return 0;
    holder->since_ms = strtoll(number, NULL, 10);
    if (holder->pid < 1 || holder->since_ms < 0 ||
        holder->since_ms > 253402300799999) /* year 9999 */
        return 0;
    return next_part(&value, holder->label, sizeof holder->label);
}

void json_holder(const char *value)
{
    struct holder holder;

    if (!parse_holder(&holder, value))
        return;
    printf(",\"holder\":{\"host\":");
    json_string(holder.host);
    printf(",\"pid\":%ld", holder.pid);
    json_member("label", holder.label);
    printf(",\"since_ms\":%lld}", holder.since_ms);
}

void describe_holder(char *out, size_t room, const char *value)
{
    struct holder holder;
    char id[ID_TEXT], text[sizeof holder + 40];

    id_of(id, value, strlen(value));
    if (!parse_holder(&holder, value))
        snprintf(text, sizeof text, "id %s", id);
    else if (holder.label[0] != '\0')
        snprintf(text, sizeof text, "%s/%ld (%s)", holder.host, holder.pid, holder.label);
    else
        snprintf(text, sizeof text, "%s/%ld", holder.host, holder.pid);
    printable(out, room, text);
}

/* ---- Asking ---- */

enum { NO_END = -1, NOT_TOLD = -2 };

/* What one node says. */
struct view {
    enum { ABSENT, PRESENT, FOREIGN, FAILED } kind; /* FOREIGN: no string, so no lock */
    char type[16];                                  /* of what is foreign; "": not told */
    char value[VALUE_MAX + 1];
    char id[ID_TEXT]; /* of the whole value, */
    size_t size;      /* as this is */
    long left_ms;     /* or one of these two: */
    int same;         /* as what most have */
};

/* What all say, and what it comes to. */
struct picture {
    struct view view[REDLOCK_NODES_MAX];
    char error[REDLOCK_NODES_MAX][REDLOCK_ERROR_MAX + 1];
    unsigned answers, best, holding; /* nodes that answered; one that has what most have; so many */
    long left_ms;                    /* as a quorum sees it */
    enum { UNKNOWN, FREE, HELD, IN_USE } state; /* IN_USE: by something foreign */
};

static int longest_first(const void *a, const void *b)
{
    long left = *(const long *)a, right = *(const long *)b;

    return left < right ? 1 : left > right ? -1 : 0;
}

static int equal(const struct view *a, const struct view *b)
{
    if (a->kind == FOREIGN && b->kind == FOREIGN)
        return strcmp(a->type, b->type) == 0;
    return a->kind == PRESENT && b->kind == PRESENT && a->size == b->size &&
           memcmp(a->value, b->value, a->size < VALUE_MAX ? a->size : VALUE_MAX) == 0;
}

/* Held: a quorum has one value; for as long as the quorum-th of them says. */
static void conclude(struct picture *picture)
{
    unsigned i, n, same;
    long left[REDLOCK_NODES_MAX];

    for (i = 0; i < target_count; i++) {
        picture->answers += picture->view[i].kind != FAILED;
        for (n = same = 0; n < target_count; n++)
            same += (unsigned)equal(&picture->view[i], &picture->view[n]);
        if (same > picture->holding) {
            picture->holding = same;
            picture->best = i;
        }
    }
    for (i = n = 0; i < target_count; i++) {
        struct view *view = &picture->view[i];
        view->same = equal(view, &picture->view[picture->best]);
        if (view->same)
            left[n++] = view->left_ms == NO_END ? 0x7fffffff : view->left_ms;
    }
    qsort(left, n, sizeof *left, longest_first);
    if (picture->holding >= quorum()) {
        picture->state = picture->view[picture->best].kind == FOREIGN ? IN_USE : HELD;
        picture->left_ms = left[quorum() - 1];
    } else if (picture->answers >= quorum() &&
               picture->holding + (target_count - picture->answers) < quorum()) {
        picture->state = FREE;
    } /* else it depends on those that do not answer */
}

/* Asks the nodes with something foreign what it is; that may not be permitted. */
static void ask_types(const char *key, struct picture *picture)
{
    const char *type[2] = {"TYPE", key};
    unsigned i;

    for (i = 0; i < target_count; i++)
        if (picture->view[i].kind == FOREIGN)
            talk_send(&talks[i], 2, type);
    talks_wait((uint32_t)options.node_timeout_ms);
    for (i = 0; i < target_count; i++)
        if (picture->view[i].kind == FOREIGN && talks[i].items > 0 &&
            talks[i].item[0].kind == RESP_STATUS)
            snprintf(picture->view[i].type, sizeof picture->view[i].type, "%s",
                     talks[i].item[0].text);
}

static void look_at(const char *key, struct picture *picture)
{
    const char *get[2] = {"GET", key}, *pttl[2] = {"PTTL", key};
    uint32_t timeout_ms = (uint32_t)options.node_timeout_ms;
    unsigned i;

    memset(picture, 0, sizeof *picture);
    talks_open(timeout_ms);
    talks_ask(timeout_ms, 2, get);
    for (i = 0; i < target_count; i++) {
        struct view *view = &picture->view[i];
        const struct talk_item *answer = &talks[i].item[0];
        view->kind = FAILED;
        if (talks[i].items == 0)
            continue;
        if (talk_is_error(&talks[i], "WRONGTYPE")) {
            view->kind = FOREIGN;
            continue;
        }
        talk_note_error(&talks[i]);
        view->kind = answer->kind == RESP_STRING ? PRESENT
                     : answer->kind == RESP_NIL  ? ABSENT
                                                 : FAILED;
        view->size = answer->size;
        if (view->kind == PRESENT) {
            memcpy(view->value, answer->text, answer->size < VALUE_MAX ? answer->size : VALUE_MAX);
            id_of(view->id, view->value, strlen(view->value)); /* all that `run` sees of it */
        }
    }
    talks_ask(timeout_ms, 2, pttl);
    for (i = 0; i < target_count; i++) {
        const struct talk_item *answer = &talks[i].item[0];
        struct view *view = &picture->view[i];
        if (talks[i].items == 0 || answer->kind != RESP_INTEGER)
            view->left_ms = NOT_TOLD;
        else if (answer->integer == -2)
            view->kind = ABSENT; /* it ended in between */
        else
            view->left_ms = (long)answer->integer;
        memcpy(picture->error[i], talks[i].node.error, sizeof picture->error[i]);
    }
    ask_types(key, picture);
    talks_close();
    conclude(picture);
}

/* "zset", or in other words that it is none of ours. */
static const char *type_of(const struct view *view)
{
    return view->type[0] != '\0' ? view->type : "another type";
}

int describe_foreign(char *out, size_t room, const char *key)
{
    struct picture picture;
    unsigned i;

    out[0] = '\0';
    look_at(key, &picture);
    for (i = 0; i < target_count; i++) {
        size_t used = strlen(out);
        if (picture.view[i].kind == FOREIGN)
            snprintf(out + used, room - used, "%s%s on %s", used > 0 ? ", " : "",
                     type_of(&picture.view[i]), targets[i].url.address);
    }
    return out[0] != '\0';
}

int find_by_id(const char *key, const char *id, char *value, size_t *size)
{
    struct picture picture;
    unsigned i;

    look_at(key, &picture);
    for (i = 0; i < target_count; i++) { /* first that which most nodes have */
        const struct view *view = &picture.view[(picture.best + i) % target_count];
        if (view->kind == PRESENT && strcmp(id, view->id) == 0) {
            memcpy(value, view->value, sizeof view->value);
            *size = view->size;
            return 1;
        }
    }
    return picture.state == UNKNOWN ? -1 : 0;
}

/* Of a long value, or one with NULs, its beginning and its size are compared. */
enum redlock_status release_value(const char *key, const char *value, size_t size,
                                  struct session *session)
{
    static const char script[] = "local v=redis.call('get',KEYS[1])return v and #v==ARGV[2]+0 and "
                                 "v:sub(1,#ARGV[1])==ARGV[1]and redis.call('del',KEYS[1])or 0";
    const uint32_t timeout_ms = (uint32_t)options.node_timeout_ms;
    char number[24];
    const char *words[] = {"EVAL", script, "1", key, value, number};
    unsigned i, answered = 0;

    snprintf(number, sizeof number, "%lu", (unsigned long)size);
    talks_open(timeout_ms);
    talks_ask(timeout_ms, sizeof words / sizeof *words, words);
    for (i = 0; i < target_count; i++) {
        const struct talk_item *answer = &talks[i].item[0];
        int is_told = talks[i].items > 0 && answer->kind == RESP_INTEGER;
        answered += (unsigned)is_told;
        if (is_told && answer->integer == 1)
            session->lock.granted = (redlock_mask)(session->lock.granted | 1U << i);
        talk_note_error(&talks[i]);
        memcpy(session->nodes[i].error, talks[i].node.error, sizeof talks[i].node.error);
    }
    talks_close();
    return answered < quorum()          ? REDLOCK_UNCONFIRMED
           : session->lock.granted == 0 ? REDLOCK_LOST
                                        : REDLOCK_OK;
}

/* ---- redlock status ---- */

static const char *const state_names[] = {"unknown", "free", "held", "in use"};

/* "22.4 s left". */
static const char *left(char text[32], long ms)
{
    if (ms >= 0x7fffffff || ms == NO_END)
        snprintf(text, 32, "without end");
    else if (ms == NOT_TOLD)
        snprintf(text, 32, "it is not told how long");
    else
        snprintf(text, 32, "%ld.%ld s left", ms / 1000, ms % 1000 / 100);
    return text;
}

static void print_text(const char *name, const struct picture *picture)
{
    const struct view *best = &picture->view[picture->best];
    struct holder holder;
    char who[WHO_MAX + 1], text[32];
    unsigned i;

    printable(who, sizeof who, name);
    printf("%s: %s", who, state_names[picture->state]);
    if (picture->state == HELD) {
        printf("  id %s", best->id);
        if (parse_holder(&holder, best->value)) {
            time_t seconds = (time_t)(holder.since_ms / 1000);
            const struct tm *since = gmtime(&seconds); /* strftime costs a static build 8 KB */
            describe_holder(who, sizeof who, best->value);
            printf("  by %s  since %d-%02d-%02d %02d:%02d:%02dZ", who, since->tm_year + 1900,
                   since->tm_mon + 1, since->tm_mday, since->tm_hour, since->tm_min, since->tm_sec);
        }
        printf("  %s", left(text, picture->left_ms));
    } else if (picture->state == IN_USE) {
        printf("  by something that is not a lock: %s", type_of(best));
    }
    printf("  %u/%u nodes\n", picture->state >= HELD ? picture->holding : picture->answers,
           target_count);
    for (i = 0; i < target_count; i++) {
        const struct view *view = &picture->view[i];
        printf("  %-24s ", targets[i].url.address);
        if (view->kind == FAILED) {
            printable(who, sizeof who, picture->error[i]);
            printf("error    %s\n", who);
        } else if (view->kind == ABSENT)
            printf("absent\n");
        else if (view->kind == FOREIGN)
            printf("foreign  %s  %s\n", left(text, view->left_ms), type_of(view));
        else if (view->same && picture->state == HELD)
            printf("same     %s\n", left(text, view->left_ms));
        else
            printf("other    %s  id %s\n", left(text, view->left_ms), view->id);
    }
}

static void print_json(const char *name, const struct picture *picture)
{
    const struct view *best = &picture->view[picture->best];
    unsigned i;

    json_begin("status");
    json_member("name", name);
    printf(",\"state\":\"%s\",\"quorum\":%u,\"nodes\":%u", state_names[picture->state], quorum(),
           target_count);
    if (picture->state == HELD) {
        printf(",\"id\":\"%s\",\"remaining_ms\":%ld", best->id, picture->left_ms);
        json_holder(best->value);
    }
    printf(",\"node\":[");
    for (i = 0; i < target_count; i++) {
        const struct view *view = &picture->view[i];
        printf("%s{\"url\":", i > 0 ? "," : "");
        json_string(targets[i].url.address);
        printf(",\"value\":\"%s\"", view->kind == FAILED                   ? "error"
                                    : view->kind == ABSENT                 ? "absent"
                                    : view->kind == FOREIGN                ? "foreign"
                                    : view->same && picture->state == HELD ? "same"
                                                                           : "other");
        if (view->kind == PRESENT)
            printf(",\"id\":\"%s\",\"pttl_ms\":%ld", view->id, view->left_ms);
        else if (view->kind == FOREIGN)
            json_member("type", type_of(view));
        else if (view->kind == FAILED)
            json_member("error", picture->error[i]);
        printf("}");
    }
    printf("]}\n");
}

int verb_status(int count, char **words)
{
    struct picture picture;
    char key[REDLOCK_KEY_MAX + 1];

    if (count != 1)
        die(EXIT_USAGE, "status: one NAME");
    nodes_load();
    key_of(key, words[0]);
    look_at(key, &picture);
    if (options.json)
        print_json(words[0], &picture);
    else
        print_text(words[0], &picture);
    must_be_written();
    return picture.state >= HELD ? 0 : picture.state == FREE ? 1 : EXIT_UNAVAILABLE;
}
