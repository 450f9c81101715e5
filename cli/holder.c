/* holder.c - what the value of a key says about the holder: an id; also host, process and label if redlock(1) wrote the value.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "cli.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
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

size_t same_until(const char *value, size_t size, size_t *from)
{
    size_t digits = strspn(value, "0123456789abcdef");

    *from = digits >= TOKEN_DIGITS && size >= TOKEN_DIGITS ? TOKEN_DIGITS : size;
    return *from == TOKEN_DIGITS ? TOKEN_DIGITS - 8 : size;
}

void id_of(char id[ID_TEXT], const char *value, size_t size)
{
    size_t from, until = same_until(value, size, &from);
    uint32_t hash = hash_more(HASH_BEGIN, value, until);

    snprintf(id, ID_TEXT, "%08lx", (unsigned long)hash_more(hash, value + from, size - from));
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

void name_host(char host[HOST_MAX + 1])
{
    char name[256] = "?", text[3 * sizeof name];
    size_t size;

    gethostname(name, sizeof name - 1);
    percent_encode(text, sizeof text, name);
    size = strlen(text);
    snprintf(host, HOST_MAX + 1, "%s", text + (size > HOST_MAX ? size - HOST_MAX : 0));
}

/* When the process began, in milliseconds since 1970; 0 if that is not known. */
static long long begin_of(long pid)
{
#ifdef __linux__
    char text[512];
    const char *end;
    unsigned long long ticks;
    struct timespec wall, boot;

    read_proc(pid, "stat", text, sizeof text);
    end = strrchr(text, ')'); /* the name of the program, before this, may have blanks */
    if (end == NULL ||
        sscanf(end + 1,
               " %*c %*d %*d %*d %*d %*d %*d %*d %*d %*d %*d %*d %*d %*d %*d %*d "
               "%*d %*d %*d %llu",
               &ticks) != 1 ||
        clock_gettime(CLOCK_REALTIME, &wall) != 0 || clock_gettime(CLOCK_BOOTTIME, &boot) != 0)
        return 0;
    return (long long)(wall.tv_sec - boot.tv_sec) * 1000 + (wall.tv_nsec - boot.tv_nsec) / 1000000 +
           (long long)(ticks * 1000 / (unsigned long long)sysconf(_SC_CLK_TCK));
#else
    (void)pid;
    return 0;
#endif
}

int is_here(const struct holder *holder)
{
    char host[HOST_MAX + 1];

    name_host(host);
    percent_decode(host);
    return strcmp(host, holder->host) == 0 &&
           (kill((pid_t)holder->pid, 0) == 0 || errno != ESRCH) &&
           begin_of(holder->pid) <= holder->since_ms + 2000; /* the wall clock may have been set */
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

int ends_as_queue(const char *key)
{
    size_t size = strlen(key), end = sizeof QUEUE_SUFFIX - 1;

    return size > end && strcmp(key + size - end, QUEUE_SUFFIX) == 0;
}

int ends_as_waiter(const char *key)
{
    size_t size = strlen(key);
    const char *end = key + size - (size > LEASE_SUFFIX ? LEASE_SUFFIX : size);

    return size > LEASE_SUFFIX && strncmp(end, QUEUE_SUFFIX ":", sizeof QUEUE_SUFFIX) == 0 &&
           strspn(end + sizeof QUEUE_SUFFIX, "0123456789abcdef") == WAITER_NAME;
}
