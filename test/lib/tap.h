/* tap.h - the Test Anything Protocol, for `prove`: one line per check, the plan at the end.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#ifndef TAP_H
#define TAP_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static unsigned tap_checks, tap_failures;

#if defined(__GNUC__)
__attribute__((format(printf, 4, 0)))
#endif
static int
tap_line(int good, const char *file, int line, const char *format, va_list arguments)
{
    char name[300];

    vsnprintf(name, sizeof name, format, arguments);
    printf("%sok %u - %s\n", good ? "" : "not ", ++tap_checks, name);
    fflush(stdout);
    if (!good) { /* `prove` hides what goes to stdout */
        tap_failures++;
        fprintf(stderr, "# failed: %u - %s\n# %s:%d\n", tap_checks, name, file, line);
        if (getenv("REDLOCK_FIRST_FAILURE") !=
            NULL) /* it is the last: all else would be time lost */
            exit(1);
    }
    return good;
}

#if defined(__GNUC__)
__attribute__((format(printf, 4, 5)))
#endif
static inline int
tap_ok(int good, const char *file, int line, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    tap_line(good, file, line, format, arguments);
    va_end(arguments);
    return good;
}

#if defined(__GNUC__)
__attribute__((format(printf, 5, 6)))
#endif
static inline int
tap_is(long got, long expected, const char *file, int line, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    tap_line(got == expected, file, line, format, arguments);
    va_end(arguments);
    if (got != expected)
        fprintf(stderr, "# got %ld, expected %ld\n", got, expected);
    return got == expected;
}

/* Both return whether the check passed. The name is a printf format and its arguments. */
#define ok(condition, ...) tap_ok((condition) != 0, __FILE__, __LINE__, __VA_ARGS__)
#define is_int(got, expected, ...) tap_is((got), (expected), __FILE__, __LINE__, __VA_ARGS__)

/* A check that cannot be made here: it counts as skipped, with the reason. */
static inline void skip(const char *why)
{
    printf("ok %u # SKIP %s\n", ++tap_checks, why);
    fflush(stdout);
}

/* Prints the plan; the exit status of the program: a test of nothing has failed. */
static inline int done_testing(void)
{
    printf("1..%u\n", tap_checks);
    return tap_failures > 0 || tap_checks == 0;
}

#endif
