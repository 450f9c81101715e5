/* figures.h - shared by the benchmarks: a clock, quantiles, and raw numbers as lines of CSV.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#ifndef FIGURES_H
#define FIGURES_H

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline double now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static inline int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* Sorts the values. */
static inline double quantile(double *values, long count, double q)
{
    qsort(values, (size_t)count, sizeof *values, by_size);
    return values[(size_t)((double)(count - 1) * q)];
}

/* Appends "table,who,x,unit,value" to the file that the environment variable FIGURES names, if there is one. */
static inline void figure(const char *table, const char *who, double x, const char *unit,
                          double value)
{
    const char *path = getenv("FIGURES");
    FILE *file = path != NULL ? fopen(path, "a") : NULL;

    if (file == NULL)
        return;
    fprintf(file, "%s,%s,%g,%s,%.3f\n", table, who, x, unit, value);
    fclose(file);
}

#endif
