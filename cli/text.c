/* text.c - messages, durations, numbers, hex digits, JSON and names with escapes.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "cli.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int may_wait = 1;

/* ---- Writing: a descriptor may be non-blocking, as a caller with an event loop has made it. ---- */

enum { READER_MS = 5000 }; /* a reader of stderr that has read nothing for so long is dead */

/* Waits until more can be written, for wait_ms at most; -1: for ever. Returns 0 if the time is over, or a signal asks this process
   to end. With 0 no signal is taken: while a job runs, signals are for the job. */
static int wait_for_room(int fd, int wait_ms)
{
    struct pollfd fds[2] = {{fd, POLLOUT, 0},
                            {wait_ms != 0 ? signals_descriptor() : -1, POLLIN, 0}};
    uint64_t until_us;
    int found;

    if (wait_ms < 0 && is_asked_to_end())
        wait_ms = READER_MS;
    until_us = wait_ms < 0 ? UINT64_MAX : now_us() + (uint64_t)wait_ms * 1000;
    do
        found = poll(fds, 2, poll_ms(until_us, now_us()));
    while (wait_ms != 0 && fds[0].revents == 0 && (found > 0 || (found < 0 && errno == EINTR)) &&
           !is_asked_to_end());
    return found > 0 && fds[0].revents != 0;
}

/* Returns 1 if all bytes have been written. The reader has wait_ms for each part; -1: any time. No write is longer than a pipe takes
   at once, so a descriptor that blocks does not keep this process from seeing a signal. */
static int write_all(int fd, const char *bytes, size_t size, int wait_ms)
{
    int flags = fcntl(fd, F_GETFL);
    ssize_t moved;

    if (wait_ms > 0 && flags >= 0 && (flags & O_NONBLOCK) == 0)
        wait_ms = -1; /* as with each program, its reader may take any time */
    while (size > 0) {
        if (!wait_for_room(fd, wait_ms))
            return 0;
        moved = write(fd, bytes, size < PIPE_BUF ? size : PIPE_BUF);
        if (moved > 0) {
            bytes += moved;
            size -= (size_t)moved;
        } else if (moved == 0 || (errno != EINTR && errno != EAGAIN && errno != EWOULDBLOCK)) {
            return 0;
        }
    }
    return 1;
}

/* What was printed, and is not written yet. */
static struct {
    char bytes[16384]; /* no print() is longer than a part of this */
    size_t used;
    int failed;
} printed;

int print_to(int fd)
{
    if (!printed.failed && !write_all(fd, printed.bytes, printed.used, -1))
        printed.failed = 1;
    printed.used = 0;
    return !printed.failed;
}

void print(const char *format, ...)
{
    va_list arguments;
    size_t room;
    int size, tries = 2;

    do {
        room = sizeof printed.bytes - printed.used;
        va_start(arguments, format);
        size = vsnprintf(printed.bytes + printed.used, room, format, arguments);
        va_end(arguments);
    } while (size >= 0 && (size_t)size >= room && --tries > 0 && print_to(STDOUT_FILENO));
    if (size >= 0 && (size_t)size < room)
        printed.used += (size_t)size;
    else
        printed.failed = 1;
}

/* One write for each line, because other processes may also write to stderr. While a lock is held a line is dropped if the write
   would block. */
void say(enum level level, const char *format, ...)
{
    static int is_dead; /* 1: nobody reads; no further message waits */
    char text[1024], line[1500], all[sizeof line + 20], prefix[8] = "";
    sigset_t stop, before;
    va_list arguments;
    int size;

    if (options.quiet ? level > LOG_WARNING : level == LOG_DEBUG && !options.verbose)
        return;
    if (options.log_levels)
        snprintf(prefix, sizeof prefix, "<%d>", (int)level);
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    printable(line, sizeof line, text);
    if (!may_wait && !wait_for_room(STDERR_FILENO, 0))
        return;
    sigemptyset(&stop);
    sigaddset(&stop, SIGTTOU); /* a process in the background prints as well */
    sigprocmask(SIG_BLOCK, &stop, &before);
    size = snprintf(all, sizeof all, "%sredlock: %s\n", prefix, line);
    if (!write_all(STDERR_FILENO, all, (size_t)size, may_wait && !is_dead ? READER_MS : 0))
        is_dead |= may_wait;
    sigprocmask(SIG_SETMASK, &before, NULL);
}

void die(int status, const char *format, ...)
{
    char text[1024], line[1500];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    say(LOG_ERROR, "%s", text);
    if (options.failure == 0)
        exit(status);
    printable(line, sizeof line, text);
    if (!options.json)
        print("REDLOCK UNKNOWN - %s\n", line);
    is_written();
    exit(options.failure);
}

void *must_allocate(size_t count, size_t size)
{
    void *memory = calloc(count, size);

    if (memory == NULL)
        die(EXIT_SYSTEM, "no memory");
    return memory;
}

int public_size(const char *word)
{
    return (int)strcspn(word, "=:@/");
}

int is_written(void)
{
    return print_to(STDOUT_FILENO);
}

void must_be_written(void)
{
    if (!is_written())
        die(EXIT_SYSTEM, "the result cannot be written");
}

long parse_duration(const char *text)
{
    static const struct {
        const char *name;
        double ms;
    } units[] = {{"ms", 1}, {"s", 1e3}, {"m", 60e3}, {"h", 3600e3}, {"d", 86400e3}, {"", 1e3}};
    double value = 0, place = 1;
    size_t i;

    if (!isdigit((unsigned char)text[0]) && !(text[0] == '.' && isdigit((unsigned char)text[1])))
        return -1;
    for (; isdigit((unsigned char)*text); text++)
        value = value * 10 + (*text - '0');
    if (*text == '.')
        for (text++; isdigit((unsigned char)*text); text++)
            value += (*text - '0') * (place /= 10);
    for (i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(text, units[i].name) == 0) {
            if (value * units[i].ms > 0 && value * units[i].ms < 1)
                return 1; /* not 0, which means "no wait" or "no limit" */
            value = value * units[i].ms + 0.5;
            return value <= 0x7fffffff ? (long)value : -1;
        }
    return -1;
}

long parse_number(const char *text, long most)
{
    long value = 0;

    if (*text == '\0')
        return -1;
    for (; isdigit((unsigned char)*text) && value <= most; text++)
        value = value * 10 + (*text - '0');
    return *text == '\0' && value <= most ? value : -1;
}

static int compare_times(const void *one, const void *other)
{
    uint32_t a = *(const uint32_t *)one, b = *(const uint32_t *)other;

    return (a > b) - (a < b);
}

void sort_times(uint32_t *us, size_t count)
{
    if (count > 0)
        qsort(us, count, sizeof *us, compare_times);
}

void put_hex(char *out, const uint8_t *bytes, size_t size)
{
    size_t i;

    for (i = 0; i < size; i++)
        sprintf(out + 2 * i, "%02x", bytes[i]);
}

void put_random(char *out, size_t size)
{
    uint8_t bytes[20];

    if (redlock_posix()->entropy(NULL, bytes, size) != 0)
        die(EXIT_SYSTEM, "no random bytes");
    put_hex(out, bytes, size);
}

/* Decodes the UTF-8 character that begins at `text`. Returns its size; 0 if it is not valid. RFC 3629. */
static size_t read_utf8(const char *text, uint32_t *code)
{
    const unsigned char *at = (const unsigned char *)text;
    size_t size = *at < 0x80   ? 1
                  : *at < 0xc2 ? 0
                  : *at < 0xe0 ? 2
                  : *at < 0xf0 ? 3
                  : *at < 0xf5 ? 4
                               : 0;
    size_t i;

    *code = size < 2 ? *at : *at & (0x7fU >> size);
    for (i = 1; i < size; i++) {
        if ((at[i] & 0xc0) != 0x80) /* also at the end of the text */
            return 0;
        *code = *code << 6 | (at[i] & 0x3f);
    }
    if ((size == 3 && (*code < 0x800 || (*code >= 0xd800 && *code < 0xe000))) ||
        (size == 4 && (*code < 0x10000 || *code > 0x10ffff)))
        return 0; /* an overlong form, a surrogate, or above U+10FFFF */
    return size;
}

/* Returns 1 for characters that control a terminal, are invisible, or change the direction of writing. */
static int is_control(uint32_t code)
{
    static const uint32_t ranges[][2] = {{0, 0x1f},        {0x7f, 0x9f},     {0x61c, 0x61c},
                                         {0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f},
                                         {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe007f}};
    size_t i;

    for (i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (code >= ranges[i][0] && code <= ranges[i][1])
            return 1;
    return 0;
}

void printable(char *out, size_t room, const char *text)
{
    char part[12];
    size_t used = 0;

    while (*text != '\0') {
        uint32_t code;
        size_t size = read_utf8(text, &code), width;
        if (size == 0 || (code < 0x80 && is_control(code)))
            width = (size_t)sprintf(part, "\\x%02x", (unsigned char)*text);
        else if (is_control(code))
            width = (size_t)sprintf(part, "\\u%04lx", (unsigned long)code);
        else
            width = (size_t)sprintf(part, "%.*s", (int)size, text);
        if (used + width >= room)
            break;
        memcpy(out + used, part, width);
        used += width;
        text += size > 0 ? size : 1;
    }
    out[used] = '\0';
}

void json_begin(const char *verb)
{
    print("{\"schema\":2,\"verb\":\"%s\"", verb);
}

void json_string(const char *text)
{
    print("\"");
    while (*text != '\0') {
        uint32_t code;
        size_t size = read_utf8(text, &code);
        if (size == 0)
            print("\\ufffd");
        else if (code == '"' || code == '\\')
            print("\\%c", (int)code);
        else if (code > 0xffff && is_control(code))
            print("\\u%04lx\\u%04lx", (unsigned long)(0xd7c0 + (code >> 10)),
                  (unsigned long)(0xdc00 + (code & 0x3ff)));
        else if (is_control(code))
            print("\\u%04lx", (unsigned long)code);
        else
            print("%.*s", (int)size, text);
        text += size > 0 ? size : 1;
    }
    print("\"");
}

void json_member(const char *name, const char *text)
{
    print(",\"%s\":", name);
    json_string(text);
}

void percent_encode(char *out, size_t room, const char *text)
{
    size_t used = 0;
    uint32_t code;

    while (*text != '\0') {
        size_t size = read_utf8(text, &code);
        size += size == 0; /* a byte that is not UTF-8 */
        if (used + 3 * size >= room)
            break; /* never writes a part of a character */
        for (; size > 0; size--, text++)
            if (isalnum((unsigned char)*text) || strchr("-_.~", *text) != NULL)
                out[used++] = *text;
            else
                used += (size_t)sprintf(out + used, "%%%02X", (unsigned char)*text);
    }
    out[used] = '\0';
}

void percent_decode(char *text)
{
    char *to = text, digits[3] = "";

    for (; *text != '\0'; text++)
        if (*text == '%' && isxdigit((unsigned char)text[1]) && isxdigit((unsigned char)text[2])) {
            memcpy(digits, text + 1, 2);
            *to++ = (char)strtol(digits, NULL, 16);
            text += 2;
        } else {
            *to++ = *text;
        }
    *to = '\0';
}
