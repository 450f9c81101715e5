/* holder.c - what the value of a key says about the holder: an id; also host, process and label if redlock(1) wrote the value.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

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
