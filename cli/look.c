/* look.c - see look.h.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "look.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* ---- The conclusion ---- */

static int longest_first(const void *a, const void *b)
{
    long left = *(const long *)a, right = *(const long *)b;

    left = left == NO_END ? LONG_MAX : left;
    right = right == NO_END ? LONG_MAX : right;
    return left < right ? 1 : left > right ? -1 : 0;
}

static int equal(const struct view *a, const struct view *b)
{
    size_t size = a->size < VALUE_MAX ? a->size : VALUE_MAX;

    if (a->kind == FOREIGN && b->kind == FOREIGN)
        return strcmp(a->type, b->type) == 0;
    if (a->kind != PRESENT || b->kind != PRESENT || a->size != b->size)
        return 0;
    return same_value(a->value, b->value, size);
}

/* A lock is held if a quorum of nodes has the same value. It expires when fewer than a quorum of these nodes have the value. */
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
            left[n++] = view->left_ms;
    }
    qsort(left, n, sizeof *left, longest_first);
    if (picture->holding >= quorum()) {
        picture->state = picture->view[picture->best].kind == FOREIGN ? IN_USE : HELD;
        picture->left_ms = left[quorum() - 1];
    } else if (picture->answers >= quorum() &&
               picture->holding + (target_count - picture->answers) < quorum()) {
        picture->state = FREE;
    } /* else UNKNOWN: it depends on the nodes that do not answer */
}

static void take_value(struct view *view, const struct talk_item *item, size_t size)
{
    size_t kept = item->size < VALUE_MAX ? item->size : VALUE_MAX;

    view->kind = PRESENT;
    view->size = size;
    memcpy(view->value, item->text, kept);
    view->value[kept] = '\0';
    id_of(view->id, view->value);
}

/* The reply to PTTL. */
static void take_left(struct view *view, const struct talk_item *item)
{
    const long most = LONG_MAX - 1000; /* has room for rounding up */

    if (item->kind != RESP_INTEGER)
        view->left_ms = UNKNOWN_TIME;
    else if (item->integer == -2)
        view->kind = ABSENT; /* it expired between GET and PTTL */
    else
        view->left_ms = item->integer < most ? (long)item->integer : most;
}

/* ---- One key ---- */

/* Asks the nodes with a foreign key for its type; the answer may be a denial. */
static void ask_types(const char *key, struct picture *picture, uint32_t timeout_ms)
{
    const char *type[2] = {"TYPE", key};
    unsigned i;

    for (i = 0; i < target_count; i++)
        if (picture->view[i].kind == FOREIGN)
            talk_send(&talks[i], 2, type);
    talks_wait(timeout_ms);
    for (i = 0; i < target_count; i++)
        if (picture->view[i].kind == FOREIGN && talks[i].items > 0 &&
            talks[i].item[0].kind == RESP_STATUS)
            printable(picture->view[i].type, sizeof picture->view[i].type, talks[i].item[0].text);
}

void look_at(const char *key, struct picture *picture, uint32_t timeout_ms)
{
    const char *get[2] = {"GET", key}, *pttl[2] = {"PTTL", key};
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
        if (answer->kind == RESP_STRING)
            take_value(view, answer, answer->size);
        else if (answer->kind == RESP_NIL)
            view->kind = ABSENT;
        else
            talk_note_error(&talks[i]);
    }
    talks_ask(timeout_ms, 2, pttl);
    for (i = 0; i < target_count; i++) {
        if (talks[i].items > 0)
            take_left(&picture->view[i], &talks[i].item[0]);
        else
            picture->view[i].left_ms = UNKNOWN_TIME;
        memcpy(picture->error[i], talks[i].node.error, sizeof picture->error[i]);
    }
    ask_types(key, picture, timeout_ms);
    talks_close();
    conclude(picture);
}

/* ---- The wait queue ---- */

static int largest_first(const void *a, const void *b)
{
    long left = *(const long *)a, right = *(const long *)b;

    return left < right ? 1 : left > right ? -1 : 0;
}

long count_waiters(const char *key, uint32_t timeout_ms)
{
    char queue[REDLOCK_KEY_MAX + sizeof QUEUE_SUFFIX];
    const char *count[2] = {"ZCARD", queue};
    long waiting[REDLOCK_NODES_MAX];
    unsigned i, answers = 0;

    snprintf(queue, sizeof queue, "%s%s", key, QUEUE_SUFFIX);
    talks_open(timeout_ms);
    talks_ask(timeout_ms, 2, count);
    for (i = 0; i < target_count; i++) {
        const struct talk_item *answer = &talks[i].item[0];
        waiting[i] = UNKNOWN_COUNT;
        if (talks[i].items > 0 && answer->kind == RESP_INTEGER) {
            waiting[i] = (long)answer->integer;
            answers++;
        }
    }
    talks_close();
    qsort(waiting, target_count, sizeof *waiting, largest_first);
    return answers >= quorum() ? waiting[quorum() - 1] : UNKNOWN_COUNT;
}

/* ---- Several keys ---- */

/* Items of the answer for each key: its value, or its type as a status; its size; its PTTL. */
enum { KEY_ITEMS = 3 };

void look_many(const char *const *keys, unsigned count)
{
    static const char script[] =
        "local c,r,n=redis.pcall,{},tonumber(ARGV[1])for _,k in ipairs(KEYS)do local "
        "v,s=c('get',k),0 "
        "if type(v)=='table'then if v.err:sub(1,9)~='WRONGTYPE'then return v end "
        "v=c('type',k)elseif v "
        "then s=#v v=v:sub(1,n)end r[#r+1]=v r[#r+1]=s r[#r+1]=c('pttl',k)end return r";
    const char *words[LOOK_MANY + 4] = {"EVAL", script};
    char number[12], most[12];
    unsigned i;

    snprintf(number, sizeof number, "%u", count);
    snprintf(most, sizeof most, "%d", (int)VALUE_MAX);
    words[2] = number;
    memcpy(&words[3], keys, count * sizeof *keys);
    words[3 + count] = most;
    talks_ask((uint32_t)options.node_timeout_ms, count + 4, words);
    for (i = 0; i < target_count; i++)
        if (talks[i].items < 1 + count * KEY_ITEMS)
            talk_note_error(&talks[i]);
}

void look_take(unsigned n, struct picture *picture)
{
    unsigned i, place = 1 + n * KEY_ITEMS; /* the first item is the list */

    memset(picture, 0, sizeof *picture);
    for (i = 0; i < target_count; i++) {
        struct view *view = &picture->view[i];
        const struct talk_item *item = &talks[i].item[place];
        view->kind = FAILED;
        if (talks[i].items < place + KEY_ITEMS)
            continue;
        if (item->kind == RESP_STRING)
            take_value(view, item, (size_t)item[1].integer);
        else if (item->kind == RESP_NIL)
            view->kind = ABSENT;
        else
            view->kind = FOREIGN;
        if (item->kind == RESP_STATUS)
            printable(view->type, sizeof view->type, item->text);
        if (view->kind != ABSENT)
            take_left(view, &item[2]);
    }
    conclude(picture);
}

/* ---- In words ---- */

const char *state_name(const struct picture *picture)
{
    static const char *const names[] = {"unknown", "free", "held", "in use"};

    return names[picture->state];
}

const char *type_of(const struct view *view)
{
    return view->type[0] != '\0' ? view->type : "another type";
}

const char *left_text(char text[32], long ms)
{
    if (ms == NO_END)
        snprintf(text, 32, "never expires");
    else if (ms == UNKNOWN_TIME)
        snprintf(text, 32, "time left unknown");
    else
        snprintf(text, 32, "%ld.%ld s left", ms / 1000, ms % 1000 / 100);
    return text;
}

/* Returns on how many nodes the key is foreign. */
static unsigned describe_foreign(char *out, size_t room, const struct picture *picture)
{
    unsigned i, count = 0;
    int size;

    for (i = 0; i < target_count; i++)
        if (picture->view[i].kind == FOREIGN) {
            size = snprintf(out, room, "%s%s on %s", count++ > 0 ? ", " : "",
                            type_of(&picture->view[i]), targets[i].url.address);
            size = (size_t)size < room ? size : (int)room - 1;
            out += size;
            room -= (size_t)size;
        }
    return count;
}

unsigned find_foreign(char *out, size_t room, const char *const *keys, unsigned count,
                      unsigned *which)
{
    unsigned i, n, many, found = 0;
    struct picture picture;

    talks_open((uint32_t)options.node_timeout_ms);
    for (i = 0; i < count && found == 0; i += many) {
        many = count - i < LOOK_MANY ? count - i : LOOK_MANY;
        look_many(keys + i, many);
        for (n = 0; n < many && found == 0; n++) {
            look_take(n, &picture);
            found = describe_foreign(out, room, &picture);
            *which = i + n;
        }
    }
    talks_close();
    return found;
}

int find_by_id(const char *key, const char *id, char *value, size_t *size)
{
    struct picture picture;
    unsigned i;

    look_at(key, &picture, (uint32_t)options.node_timeout_ms);
    for (i = 0; i < target_count; i++) { /* the most frequent value first */
        const struct view *view = &picture.view[(picture.best + i) % target_count];
        if (view->kind == PRESENT && strcmp(id, view->id) == 0) {
            memcpy(value, view->value, sizeof view->value);
            *size = view->size;
            return 1;
        }
    }
    return picture.state == UNKNOWN ? -1 : 0;
}
