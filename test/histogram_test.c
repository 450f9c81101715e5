/* histogram_test.c - the histogram of redlock bench against the sorted values themselves.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "../cli/bench.c"
#include "tap.h"

enum { VALUES = 20000 };

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/* Values below 2^bits, as often in each octave: what is said is not below the truth, and at most 1 % above. */
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
        uint64_t truth = values[(uint64_t)VALUES * permille / 1000 - 1],
                 said = quantile(&histogram, permille);
        wrong += said < truth || said > truth + truth / 100;
    }
    ok(wrong == 0, "%u bits: %u of 1000 quantiles are wrong", bits, wrong);
    ok(histogram.min_us == values[0] && histogram.max_us == values[VALUES - 1] &&
           histogram.count == VALUES,
       "%u bits: least, most, how many", bits);
}

int main(void)
{
    static struct histogram histogram;
    unsigned bits;

    ok(quantile(&histogram, 999) == 0 && mean_us(&histogram) == 0, "of nothing: 0");
    for (bits = 4; bits <= 25; bits += 7)
        compare(bits);
    record(&histogram, 3);
    record(&histogram, (uint64_t)1 << 40); /* longer than it has slots for */
    ok(quantile(&histogram, 500) == 3 && histogram.max_us == (uint64_t)1 << 40,
       "longer than a minute");
    return done_testing();
}
