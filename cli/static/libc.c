/* libc.c - for the static program: smaller versions of functions that are large in musl. They replace musl's because they
   are linked first. Memory: the program allocates little, at its start (options; getaddrinfo, fopen), so free does
   nothing. printf: the conversions d i u x X c s f only, with flags - 0 +, width and precision; %f below
   10^12. gmtime: from 1970 on, without the day of the week and of the year. Sorting: for some hundred elements. mbstowcs:
   counts only, as getaddrinfo asks it to. With musl's own the program is 23 KB larger.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

/* ---- Memory ---- */

enum { ALIGNMENT = 16, POOL = 65536 }; /* a piece without room there is mapped */

static char pool[POOL] __attribute__((aligned(ALIGNMENT)));
static size_t used;

/* The size of a piece stands before it. */
static size_t *size_of(void *piece)
{
    return (size_t *)(void *)((char *)piece - ALIGNMENT);
}

void *malloc(size_t size)
{
    size_t whole = ALIGNMENT + (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    char *piece = pool + used;

    if (size > PTRDIFF_MAX || whole > POOL - used) {
        piece = size > PTRDIFF_MAX
                    ? MAP_FAILED
                    : mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (piece == MAP_FAILED) {
            errno = ENOMEM;
            return NULL;
        }
    } else {
        used += whole;
    }
    piece += ALIGNMENT;
    *size_of(piece) = size;
    return piece;
}

void free(void *piece)
{
    (void)piece;
}

void *calloc(size_t count, size_t size) /* both are clear */
{
    return size == 0 || count <= SIZE_MAX / size ? malloc(count * size) : NULL;
}

void *realloc(void *piece, size_t size)
{
    void *larger = malloc(size);

    if (piece != NULL && larger != NULL)
        memcpy(larger, piece, *size_of(piece) < size ? *size_of(piece) : size);
    return larger;
}

/* ---- printf ---- */

/* Collects what is printed: a message is one write(). Without a file it is cut where the room ends. */
struct sink {
    FILE *file;
    char *bytes;
    size_t room, used;
    int count; /* of bytes, in all */
};

static void put(struct sink *sink, const char *text, size_t size)
{
    sink->count += (int)size;
    for (; size > 0; size--) {
        if (sink->used == sink->room) {
            if (sink->file == NULL)
                return;
            fwrite(sink->bytes, 1, sink->used, sink->file);
            sink->used = 0;
        }
        sink->bytes[sink->used++] = *text++;
    }
}

static void pad(struct sink *sink, char with, int width)
{
    for (; width > 0; width--)
        put(sink, &with, 1);
}

/* One conversion. */
struct spec {
    int left, zero, plus, width, precision; /* precision -1: none */
};

static int number_of(const char **at, va_list *arguments)
{
    int number = 0;

    if (**at == '*') {
        ++*at;
        return va_arg(*arguments, int);
    }
    for (; **at >= '0' && **at <= '9'; ++*at)
        number = number * 10 + (**at - '0');
    return number;
}

static struct spec read_spec(const char **at, va_list *arguments)
{
    struct spec spec = {0, 0, 0, 0, -1};

    for (;; ++*at)
        if (**at == '-')
            spec.left = 1;
        else if (**at == '0')
            spec.zero = 1;
        else if (**at == '+')
            spec.plus = 1;
        else
            break;
    spec.width = number_of(at, arguments);
    if (**at == '.') {
        ++*at;
        spec.precision = number_of(at, arguments);
    }
    return spec;
}

/* A text in its width; zeros stand behind the sign. */
static void put_text(struct sink *sink, const struct spec *spec, const char *text, size_t size)
{
    int fill = spec->width > (int)size ? spec->width - (int)size : 0;

    if (spec->zero && !spec->left && size > 0 && (*text == '-' || *text == '+')) {
        put(sink, text++, 1);
        size--;
    }
    if (!spec->left)
        pad(sink, spec->zero ? '0' : ' ', fill);
    put(sink, text, size);
    if (spec->left)
        pad(sink, ' ', fill);
}

/* With a point before the last `decimals` digits, if there are any. */
static void put_number(struct sink *sink, const struct spec *spec, unsigned long long value,
                       int negative, unsigned base, int decimals, int upper)
{
    char text[40], *at = text + sizeof text;
    int digits = 0;

    do {
        if (decimals > 0 && digits == decimals)
            *--at = '.';
        *--at = (upper ? "0123456789ABCDEF" : "0123456789abcdef")[value % base];
        value /= base;
        digits++;
    } while (value > 0 || digits <= decimals);
    if (negative || spec->plus)
        *--at = negative ? '-' : '+';
    put_text(sink, spec, at, (size_t)(text + sizeof text - at));
}

static void put_double(struct sink *sink, const struct spec *spec, double value)
{
    int decimals = spec->precision < 0 ? 6 : spec->precision, i;
    int negative = value < 0;

    if (negative)
        value = -value;
    for (i = 0; i < decimals; i++)
        value *= 10;
    put_number(sink, spec, value < 1e18 ? (unsigned long long)(value + 0.5) : ULLONG_MAX, negative,
               10, decimals, 0);
}

static void convert(struct sink *sink, const char **at, va_list *arguments)
{
    struct spec spec = read_spec(at, arguments);
    unsigned long long value;
    const char *text;
    int longs = 0;
    char c;

    for (; **at == 'l'; ++*at)
        longs++;
    switch (c = *(*at)++) {
    case 's':
        text = va_arg(*arguments, const char *);
        put_text(sink, &spec, text,
                 spec.precision < 0 ? strlen(text) : strnlen(text, (size_t)spec.precision));
        break;
    case 'c':
        c = (char)va_arg(*arguments, int);
        put_text(sink, &spec, &c, 1);
        break;
    case 'f':
        put_double(sink, &spec, va_arg(*arguments, double));
        break;
    case 'd':
    case 'i':
        value = longs == 0   ? (unsigned long long)va_arg(*arguments, int)
                : longs == 1 ? (unsigned long long)va_arg(*arguments, long)
                             : (unsigned long long)va_arg(*arguments, long long);
        put_number(sink, &spec, (long long)value < 0 ? -value : value, (long long)value < 0, 10, 0,
                   0);
        break;
    case 'u':
    case 'x':
    case 'X':
        value = longs == 0   ? va_arg(*arguments, unsigned)
                : longs == 1 ? va_arg(*arguments, unsigned long)
                             : va_arg(*arguments, unsigned long long);
        spec.plus = 0;
        put_number(sink, &spec, value, 0, c == 'u' ? 10 : 16, 0, c == 'X');
        break;
    default: /* '%' */
        put(sink, &c, 1);
    }
}

static void print(struct sink *sink, const char *format, va_list arguments)
{
    va_list copy; /* a pointer to the argument itself has another type */

    va_copy(copy, arguments);
    while (*format != '\0') {
        size_t plain = strcspn(format, "%");
        put(sink, format, plain);
        format += plain;
        if (*format == '%') {
            format++;
            convert(sink, &format, &copy);
        }
    }
    va_end(copy);
}

int vfprintf(FILE *file, const char *format, va_list arguments)
{
    char bytes[2048];
    struct sink sink = {file, bytes, sizeof bytes, 0, 0};

    print(&sink, format, arguments);
    fwrite(bytes, 1, sink.used, file);
    return sink.count;
}

int vsnprintf(char *text, size_t room, const char *format, va_list arguments)
{
    struct sink sink = {NULL, text, room > 0 ? room - 1 : 0, 0, 0};

    print(&sink, format, arguments);
    if (room > 0)
        text[sink.used] = '\0';
    return sink.count;
}

/* ---- Texts and sorting ---- */

char *fgets(char *line, int room, FILE *file)
{
    int size = 0, c = 0;

    while (size < room - 1 && c != '\n' && (c = getc_unlocked(file)) != EOF)
        line[size++] = (char)c;
    if (size == 0 || ferror(file))
        return NULL;
    line[size] = '\0';
    return line;
}

size_t mbstowcs(wchar_t *to, const char *text, size_t room)
{
    (void)to;
    (void)room;
    return strlen(text);
}

static unsigned digit_of(char c)
{
    return c >= '0' && c <= '9'   ? (unsigned)(c - '0')
           : c >= 'a' && c <= 'z' ? (unsigned)(c - 'a' + 10)
           : c >= 'A' && c <= 'Z' ? (unsigned)(c - 'A' + 10)
                                  : 36;
}

/* Up to `most`. */
static unsigned long long read_number(const char *text, char **end, int base,
                                      unsigned long long most, int *negative)
{
    unsigned long long value = 0;
    const char *at = text + strspn(text, " \t\n\v\f\r");

    *negative = *at == '-';
    at += *at == '-' || *at == '+';
    if ((base == 0 || base == 16) && at[0] == '0' && (at[1] | 32) == 'x' && digit_of(at[2]) < 16) {
        at += 2;
        base = 16;
    }
    if (base == 0)
        base = *at == '0' ? 8 : 10;
    if (digit_of(*at) < (unsigned)base)
        text = at;
    for (; digit_of(*at) < (unsigned)base; text = ++at)
        if (value > (most - digit_of(*at)) / (unsigned)base) {
            value = most;
            errno = ERANGE;
        } else if (value < most) {
            value = value * (unsigned)base + digit_of(*at);
        }
    if (end != NULL)
        memcpy(end, &text, sizeof text); /* drops const */
    return value;
}

long long strtoll(const char *text, char **end, int base)
{
    int negative;
    unsigned long long value = read_number(text, end, base, LLONG_MAX, &negative);

    return negative ? -(long long)value : (long long)value;
}

unsigned long long strtoull(const char *text, char **end, int base)
{
    int negative;
    unsigned long long value = read_number(text, end, base, ULLONG_MAX, &negative);

    return negative ? -value : value;
}

long strtol(const char *text, char **end, int base)
{
    return (long)strtoll(text, end, base);
}

unsigned long strtoul(const char *text, char **end, int base)
{
    return (unsigned long)strtoull(text, end, base);
}

char *strstr(const char *text, const char *part)
{
    size_t size = strlen(part);
    char *found = NULL;

    for (; *text != '\0' && strncmp(text, part, size) != 0; text++)
        continue;
    if (*text != '\0' || size == 0)
        memcpy(&found, &text, sizeof text);
    return found;
}

void qsort(void *elements, size_t count, size_t size,
           int (*compare)(const void *one, const void *other))
{
    char *base = elements, *at, c;
    size_t i, n;

    for (i = 1; i < count; i++)
        for (at = base + i * size; at > base && compare(at - size, at) > 0; at -= size)
            for (n = 0; n < size; n++) {
                c = at[n];
                at[n] = at[n - size];
                at[n - size] = c;
            }
}

/* ---- The date ---- */

/* In years that begin with March the day of the leap year is the last one. */
struct tm *gmtime(const time_t *moment)
{
    static struct tm date;
    long days = (long)(*moment / 86400) + 719468,
         seconds = (long)(*moment % 86400);        /* from 0000-03-01 */
    long era = days / 146097, day = days % 146097; /* 400 years */
    long year = (day - day / 1460 + day / 36524 - day / 146096) / 365, month;

    day -= year * 365 + year / 4 - year / 100;
    month = (5 * day + 2) / 153;
    date.tm_mday = (int)(day - (153 * month + 2) / 5 + 1);
    date.tm_mon = (int)(month < 10 ? month + 2 : month - 10);
    date.tm_year = (int)(year + era * 400 - 1900 + (month >= 10));
    date.tm_hour = (int)(seconds / 3600);
    date.tm_min = (int)(seconds / 60 % 60);
    date.tm_sec = (int)(seconds % 60);
    return &date;
}
