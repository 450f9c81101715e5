/* text.c - messages, durations, numbers, hex digits, JSON and names with escapes.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "cli.h"

#include <ctype.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int may_wait = 1;

/* One write for each line: others may write there too. While a lock is held a line is lost rather than waited for. */
static void __attribute__((format(printf, 2, 0)))
say_list(enum level level, const char *format, va_list arguments)
{
    struct pollfd fd = {STDERR_FILENO, POLLOUT, 0};
    char line[1024], prefix[8] = "";
    int size;

    if (options.log_levels)
        snprintf(prefix, sizeof prefix, "<%d>", (int)level);
    size = snprintf(line, sizeof line, "%sredlock: ", prefix);
    vsnprintf(line + size, sizeof line - (size_t)size - 1, format, arguments);
    if (!may_wait && (poll(&fd, 1, 0) != 1 || (fd.revents & POLLOUT) == 0))
        return;
    fprintf(stderr, "%s\n", line);
}

void say(enum level level, const char *format, ...)
{
    va_list arguments;

    if (options.quiet ? level > LOG_WARNING : level == LOG_DEBUG && !options.verbose)
        return;
    va_start(arguments, format);
    say_list(level, format, arguments);
    va_end(arguments);
}

void die(int status, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    say_list(LOG_ERROR, format, arguments);
    va_end(arguments);
    exit(options.failure != 0 ? options.failure : status);
}

int is_written(void)
{
    /* an error may be from before, with nothing left to write */
    return fflush(stdout) == 0 && !ferror(stdout);
}

void must_be_written(void)
{
    if (!is_written())
        die(EXIT_SYSTEM, "can't write the result");
}

void event(const char *format, ...)
{
    struct pollfd fd = {(int)options.status_fd, POLLOUT, 0};
    char line[1024];
    va_list arguments;
    int size;

    if (options.status_fd < 0 || poll(&fd, 1, 0) != 1 || (fd.revents & POLLOUT) == 0)
        return;
    va_start(arguments, format);
    size = vsnprintf(line, sizeof line - 1, format, arguments);
    va_end(arguments);
    if (size > (int)sizeof line - 2)
        size = (int)sizeof line - 2;
    line[size] = '\n';
    if (write(fd.fd, line, (size_t)size + 1) < 0)
        options.status_fd = -1; /* nobody reads it any more */
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
                return 1; /* not 0, which has a meaning of its own */
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

/* How long the UTF-8 character is that begins here; 0: there is none. RFC 3629. */
static size_t utf8_size(const unsigned char *at, size_t left)
{
    size_t size = *at < 0x80   ? 1
                  : *at < 0xc2 ? 0
                  : *at < 0xe0 ? 2
                  : *at < 0xf0 ? 3
                  : *at < 0xf5 ? 4
                               : 0;
    size_t i;

    if (size > left)
        return 0;
    for (i = 1; i < size; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    if ((*at == 0xe0 && at[1] < 0xa0) || (*at == 0xed && at[1] > 0x9f) ||
        (*at == 0xf0 && at[1] < 0x90) || (*at == 0xf4 && at[1] > 0x8f))
        return 0; /* too long a form, a surrogate, beyond U+10FFFF */
    return size;
}

void json_begin(const char *verb)
{
    printf("{\"schema\":1,\"verb\":\"%s\"", verb);
}

void json_string(const char *text)
{
    const unsigned char *at = (const unsigned char *)text, *end = at + strlen(text);

    putchar('"');
    while (at < end) {
        size_t n = utf8_size(at, (size_t)(end - at));
        if (n == 0)
            printf("\\ufffd");
        else if (*at == '"' || *at == '\\')
            printf("\\%c", *at);
        else if (*at < 0x20 || *at == 0x7f)
            printf("\\u%04x", *at);
        else
            fwrite(at, 1, n, stdout);
        at += n > 0 ? n : 1;
    }
    putchar('"');
}

void json_member(const char *name, const char *text)
{
    printf(",\"%s\":", name);
    json_string(text);
}

void percent_encode(char *out, size_t room, const char *text)
{
    size_t used = 0;

    for (; *text != '\0' && used + 4 <= room; text++)
        if (isalnum((unsigned char)*text) || strchr("-_.~", *text) != NULL)
            out[used++] = *text;
        else
            used += (size_t)sprintf(out + used, "%%%02X", (unsigned char)*text);
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

void defuse(char *text)
{
    for (; *text != '\0'; text++)
        if ((unsigned char)*text < 0x20 || (unsigned char)*text >= 0x7f)
            *text = '?'; /* of what is beyond ASCII some drives a terminal, too */
}
