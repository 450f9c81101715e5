/* libc_test.c - compares the small C library of the static program (cli/static/libc.c) with the system's.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "tap.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The functions of cli/static/libc.c get other names. */
int small_vfprintf(FILE *file, const char *format, va_list arguments);
int small_vsnprintf(char *text, size_t room, const char *format, va_list arguments);
char *small_fgets(char *line, int room, FILE *file);
size_t small_mbstowcs(wchar_t *to, const char *text, size_t room);
void *small_malloc(size_t size);
void *small_calloc(size_t count, size_t size);
void *small_realloc(void *piece, size_t size);
void small_free(void *piece);
long small_strtol(const char *text, char **end, int base);
long long small_strtoll(const char *text, char **end, int base);
unsigned long small_strtoul(const char *text, char **end, int base);
unsigned long long small_strtoull(const char *text, char **end, int base);
char *small_strstr(const char *text, const char *part);
void small_qsort(void *elements, size_t count, size_t size,
                 int (*compare)(const void *one, const void *other));
struct tm *small_gmtime(const time_t *moment);
#define gmtime small_gmtime
#define vfprintf small_vfprintf
#define vsnprintf small_vsnprintf
#define fgets small_fgets
#define mbstowcs small_mbstowcs
#define malloc small_malloc
#define calloc small_calloc
#define realloc small_realloc
#define free small_free
#define strtol small_strtol
#define strtoll small_strtoll
#define strtoul small_strtoul
#define strtoull small_strtoull
#define strstr small_strstr
#define qsort small_qsort
#include "../cli/static/libc.c"
#undef gmtime
#undef vfprintf
#undef vsnprintf
#undef fgets
#undef mbstowcs
#undef malloc
#undef calloc
#undef realloc
#undef free
#undef strtol
#undef strtoll
#undef strtoul
#undef strtoull
#undef strstr
#undef qsort

static int differ;

/* The output is cut at `room`, and no byte after it is written. */
static void __attribute__((format(printf, 2, 3))) compare_cut(size_t room, const char *format, ...)
{
    char theirs[64], ours[64];
    va_list arguments;
    int want, got;

    memset(theirs, '#', sizeof theirs);
    memset(ours, '#', sizeof ours);
    va_start(arguments, format);
    want = vsnprintf(theirs, room, format, arguments);
    va_end(arguments);
    va_start(arguments, format);
    got = small_vsnprintf(ours, room, format, arguments);
    va_end(arguments);
    if (want != got || memcmp(ours, theirs, sizeof ours) != 0) {
        fprintf(stderr, "# %s in %u: %d, not %d\n", format, (unsigned)room, got, want);
        differ++;
    }
}

static void __attribute__((format(printf, 1, 2))) compare(const char *format, ...)
{
    char theirs[9000], ours[9000] = "";
    FILE *file = fmemopen(ours, sizeof ours, "w");
    va_list arguments;
    int want, got;

    va_start(arguments, format);
    want = vsnprintf(theirs, sizeof theirs, format, arguments);
    va_end(arguments);
    va_start(arguments, format);
    got = small_vfprintf(file, format, arguments);
    va_end(arguments);
    fclose(file);
    if (want != got || strcmp(ours, theirs) != 0) {
        fprintf(stderr, "# %s: \"%s\" (%d), not \"%s\" (%d)\n", format, ours, got, theirs, want);
        differ++;
    }
}

static void prints(void)
{
    static const long long numbers[] = {
        0,       1,       -1,       9,        10,        -10,       255,        -256,
        INT_MAX, INT_MIN, LONG_MAX, LONG_MIN, LLONG_MAX, LLONG_MIN, 1000000007, 42};
    static const double fractions[] = {0,         0.04, 0.06,        0.5001, 1.25001,
                                       99.996,    1e6,  123456.7894, -0.26,  -12.34,
                                       999.99951, 3e9,  1e-7,        59.9996};
    static char longest[5000];
    size_t i;

    memset(longest, 'x', sizeof longest - 1);
    for (i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        long long n = numbers[i];
        compare("%d|%u|%x|%X|%02d|%5d|%-5d|%05d|%+d", (int)n, (unsigned)n, (unsigned)n, (unsigned)n,
                (int)n, (int)n, (int)n, (int)n, (int)n);
        compare("%ld|%lu|%lx|%08lx|%04lx|%8lu|%2u", (long)n, (unsigned long)n, (unsigned long)n,
                (unsigned long)n, (unsigned long)n, (unsigned long)n, (unsigned)n);
        compare("%lld|%llu|%llx|%02X|%02x", n, (unsigned long long)n, (unsigned long long)n,
                (unsigned)n, (unsigned)n);
    }
    for (i = 0; i < sizeof fractions / sizeof *fractions; i++) {
        double f = fractions[i];
        compare("%.0f|%.1f|%.2f|%.3f|%.6f|%f", f + 0.01, f, f, f, f, f);
        compare("%9.3f|%+.3f|%+.4f|%-9.1f|%09.2f", f, f, f, f, f);
    }
    compare("%s|%9s|%-9s|%.2s|%.*s|%-*s|%*s|%.200s|%c%c", "abc", "abc", "abc", "abc", 1, "abc", 6,
            "abc", 6, "abc", "abc", 'x', '%');
    compare("%%|%s|", "");
    compare("%s%s", longest, longest);
    compare("plain");
    is_int(differ, 0, "printf");
    for (i = 0; i <= 20; i++) {
        compare_cut(i, "%s:%d", "some-host", 6379);
        compare_cut(i, "%5s|%03d", "ab", 7);
        compare_cut(i, "%s", "");
    }
    is_int(differ, 0, "snprintf, into buffers of any size");
}

/* Reads files by lines, with buffers of 2 to 8 bytes. */
static void lines(void)
{
    static const char *const texts[] = {"", "\n", "a", "a\n", "ab\n\ncde\nf", "\n\n"};
    char theirs[8], ours[8], *want, *got;
    size_t i;
    int room, wrong = 0;

    for (i = 0; i < sizeof texts / sizeof *texts; i++)
        for (room = 2; room <= (int)sizeof ours; room++) {
            FILE *one = tmpfile(), *other = tmpfile();
            fputs(texts[i], one);
            fputs(texts[i], other);
            rewind(one);
            rewind(other);
            do {
                want = fgets(theirs, room, one);
                got = small_fgets(ours, room, other);
                wrong += (want == NULL) != (got == NULL) ||
                         (want != NULL && strcmp(ours, theirs) != 0) || !feof(one) != !feof(other);
            } while (want != NULL && got != NULL);
            fclose(one);
            fclose(other);
        }
    is_int(wrong, 0, "fgets");
    is_int((long)small_mbstowcs(NULL, "localhost", 0), (long)mbstowcs(NULL, "localhost", 0),
           "mbstowcs counts");
}

static void numbers(void)
{
    static const char *const texts[] = {"0",
                                        "1",
                                        "-1",
                                        " 42x",
                                        "+7",
                                        "0x1f",
                                        "0x",
                                        "08",
                                        "077",
                                        "",
                                        "abc",
                                        "- 1",
                                        "99999999999999999999",
                                        "-99999999999999999999",
                                        "9223372036854775807",
                                        "9223372036854775808",
                                        "18446744073709551615",
                                        "18446744073709551616",
                                        "ffff",
                                        "zz"};
    static const int bases[] = {0, 10, 16, 8};
    size_t i, b;
    int wrong = 0;

    for (i = 0; i < sizeof texts / sizeof *texts; i++)
        for (b = 0; b < 4; b++) {
            char *end[2];
            int is_same = strtoll(texts[i], &end[0], bases[b]) ==
                              small_strtoll(texts[i], &end[1], bases[b]) &&
                          end[0] == end[1];
            /* of negative numbers that are too large the result differs, and the program does not need it */
            if (texts[i][0] != '-' || strlen(texts[i]) < 19)
                is_same = is_same &&
                          strtoull(texts[i], &end[0], bases[b]) ==
                              small_strtoull(texts[i], &end[1], bases[b]) &&
                          end[0] == end[1];
            if (!is_same && strcmp(texts[i], "-99999999999999999999") != 0) {
                fprintf(stderr, "# %s in base %d\n", texts[i], bases[b]);
                wrong++;
            }
        }
    is_int(wrong, 0, "strtol");
}

static void dates(void)
{
    time_t moment;
    int wrong = 0;

    for (moment = 0; moment < 253402300800; moment += 86400 * 3 + 4567) { /* to the year 9999 */
        const struct tm *theirs = gmtime(&moment), *ours = small_gmtime(&moment);
        wrong += theirs->tm_year != ours->tm_year || theirs->tm_mon != ours->tm_mon ||
                 theirs->tm_mday != ours->tm_mday || theirs->tm_hour != ours->tm_hour ||
                 theirs->tm_min != ours->tm_min || theirs->tm_sec != ours->tm_sec;
    }
    is_int(wrong, 0, "gmtime");
}

static int by_value(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

int main(void)
{
    static const char text[] = "aabaabaaab";
    char *piece = small_malloc(5), *longer;
    int values[200], i, wrong = 0;

    prints();
    lines();
    numbers();
    dates();
    for (i = 0; i < 200; i++)
        values[i] = i * 7919 % 101;
    small_qsort(values, 200, sizeof *values, by_value);
    for (i = 1; i < 200; i++)
        wrong += values[i] < values[i - 1];
    is_int(wrong, 0, "qsort");
    ok(small_strstr(text, "aaab") == text + 6 && small_strstr(text, "") == text &&
           small_strstr(text, "x") == NULL && small_strstr("", "") != NULL,
       "strstr");
    memcpy(piece, "text", 5);
    longer = small_realloc(piece, 500);
    ok(strcmp(longer, "text") == 0 && longer != piece, "realloc");
    piece = small_calloc(1000, 5000);
    ok(piece != NULL && piece[0] == 0 && piece[4999999] == 0 && small_malloc(100) != NULL,
       "calloc of 5 MB");
    ok(small_malloc(SIZE_MAX - 5) == NULL && small_calloc(SIZE_MAX / 2, 4) == NULL,
       "malloc and calloc of more than there is");
    return done_testing();
}
