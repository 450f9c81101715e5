/* holder.c - what the value of a key says about the holder: an id; host, process and label if redlock(1) wrote the value; and the mark
   in REDLOCK_HELD, which run.c sets: the proof that a lock is held around a program.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "cli.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int ends_with(const char *key, size_t size, const char *suffix)
{
    size_t end = strlen(suffix);

    return size > end && memcmp(key + size - end, suffix, end) == 0;
}

int is_beside_a_lock(const char *key)
{
    size_t size = strlen(key);

    if (ends_with(key, size, QUEUE_SUFFIX) || ends_with(key, size, COUNTER_SUFFIX))
        return 1;
    return size > SUFFIX_MAX && ends_with(key, size - WAITER_NAME, QUEUE_SUFFIX ":") &&
           strspn(key + size - WAITER_NAME, "0123456789abcdef") == WAITER_NAME;
}

uint32_t hash_more(uint32_t hash, const char *bytes, size_t size)
{
    for (; size > 0; size--)
        hash = (hash ^ (uint8_t)*bytes++) * 16777619U;
    return hash;
}

/* Whether the value begins as those of the library. */
static int is_token(const char *value)
{
    return strspn(value, "0123456789abcdef") >= TOKEN_DIGITS;
}

int same_value(const char *one, const char *other, size_t size)
{
    if (!is_token(one) || !is_token(other))
        return memcmp(one, other, size) == 0;
    return memcmp(one, other, OWNER_DIGITS) == 0 &&
           memcmp(one + TOKEN_DIGITS, other + TOKEN_DIGITS, size - TOKEN_DIGITS) == 0;
}

void id_of(char id[ID_TEXT], const char *value)
{
    int is_ours = is_token(value);
    const char *rest = value + (is_ours ? TOKEN_DIGITS : 0);
    uint32_t hash = hash_more(HASH_BEGIN, value, is_ours ? OWNER_DIGITS : 0);

    snprintf(id, ID_TEXT, "%08lx", (unsigned long)hash_more(hash, rest, strlen(rest)));
}

void put_mark(char mark[MARK_TEXT], const char *value)
{
    size_t size = is_token(value) ? OWNER_DIGITS : 0;
    uint32_t one = hash_more(HASH_BEGIN, "mark", 4), other = hash_more(HASH_BEGIN, "other", 5);

    snprintf(mark, MARK_TEXT, "%08lx%08lx", (unsigned long)hash_more(one, value, size),
             (unsigned long)hash_more(other, value, size));
}

const char *held_key(const char *key)
{
    static char held[3 * REDLOCK_KEY_MAX + 1];

    percent_encode(held, sizeof held, key);
    return held;
}

const char *mark_of(const char *key)
{
    const char *list = getenv("REDLOCK_HELD"), *held = held_key(key), *found = NULL;

    while (list != NULL && *list != '\0') {
        size_t part = strcspn(list, "=:");
        if (part == strlen(held) && memcmp(list, held, part) == 0 && list[part] == '=')
            found = list + part + 1; /* the last one is the innermost */
        list += strcspn(list, ":");
        list += *list == ':';
    }
    return found;
}

int has_mark(const char *value, const char *mark)
{
    char right[MARK_TEXT];

    put_mark(right, value);
    return strcspn(mark, ":") == sizeof right - 1 && strncmp(mark, right, sizeof right - 1) == 0;
}

/* Decodes the next part of `*at`, up to a colon or the end. Returns 0 if there is none. */
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

int parse_holder(struct holder *holder, const char *value)
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
    holder->started_ms = strtoll(number, NULL, 10);
    if (holder->pid < 1 || holder->started_ms < 0 ||
        holder->started_ms > 253402300799999) /* year 9999 */
        return 0;
    return next_part(&value, holder->label, sizeof holder->label);
}

void name_host(char host[HOST_MAX + 1])
{
    char name[256] = "?", text[3 * sizeof name];
    size_t size;

    gethostname(name, sizeof name - 1);
    percent_encode(text, sizeof text, name);
    size = strlen(text);
    snprintf(host, HOST_MAX + 1, "%s", text + (size > HOST_MAX ? size - HOST_MAX : 0));
}

int is_here(const struct holder *holder)
{
    char host[HOST_MAX + 1];

    name_host(host);
    percent_decode(host);
    return strcmp(host, holder->host) == 0 && (kill((pid_t)holder->pid, 0) == 0 || errno != ESRCH);
}

void json_holder(const char *value)
{
    struct holder holder;

    if (!parse_holder(&holder, value))
        return;
    print(",\"holder\":{\"host\":");
    json_string(holder.host);
    print(",\"pid\":%ld", holder.pid);
    json_member("label", holder.label);
    print(",\"started_ms\":%lld}", holder.started_ms);
}

void describe_holder(char *out, size_t room, const char *value)
{
    struct holder holder;
    char id[ID_TEXT], text[sizeof holder + 40];

    id_of(id, value);
    if (!parse_holder(&holder, value))
        snprintf(text, sizeof text, "id %s", id);
    else if (holder.label[0] != '\0')
        snprintf(text, sizeof text, "%s/%ld (%s)", holder.host, holder.pid, holder.label);
    else
        snprintf(text, sizeof text, "%s/%ld", holder.host, holder.pid);
    printable(out, room, text);
}
