/* histogram_test.c - compares the histogram of redlock bench with the sorted values.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "../../cli/bench.c"
#include "tap.h"

enum { VALUES = 20000 };

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/* Values below 2^bits, equally many in each octave: a quantile is at least the true value, and at most 1 % above it. */
static void compare(unsigned bits)
{
    static struct histogram histogram;
    static uint64_t values[VALUES];
    uint64_t state = 88172645463325252U;
    unsigned i, permille, wrong = 0;

    memset(&histogram, 0, sizeof histogram);
    for (i = 0; i < VALUES; i++) {
        state ^= state << 13; /* xorshift64 */
        state ^= state >> 7;
        state ^= state << 17;
        values[i] = (state >> 8) % ((uint64_t)1 << (1 + state % bits));
        record(&histogram, values[i]);
    }
    qsort(values, VALUES, sizeof *values, by_size);
    for (permille = 1; permille <= 1000; permille++) {
        uint64_t exact = values[(uint64_t)VALUES * permille / 1000 - 1],
                 got = quantile(&histogram, permille);
        wrong += got < exact || got > exact + exact / 100;
    }
    ok(wrong == 0, "%u bits: %u of 1000 quantiles are wrong", bits, wrong);
    ok(histogram.min_us == values[0] && histogram.max_us == values[VALUES - 1] &&
           histogram.count == VALUES,
       "%u bits: least value, largest value, count", bits);
}

int main(void)
{
    static struct histogram histogram;
    unsigned bits;

    ok(quantile(&histogram, 999) == 0 && mean_us(&histogram) == 0, "an empty histogram: 0");
    for (bits = 4; bits <= 25; bits += 7)
        compare(bits);
    record(&histogram, 3);
    record(&histogram, (uint64_t)1 << 40); /* above the last slot */
    ok(quantile(&histogram, 500) == 3 && histogram.max_us == (uint64_t)1 << 40,
       "a value above the last slot");
    return done_testing();
}
