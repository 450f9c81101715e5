/* any.h - shared by the harnesses: unknown bytes, and an unknown number in a range.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#ifndef ANY_H
#define ANY_H

#include "__fc_builtin.h"

#include <stddef.h>
#include <stdint.h>

#define ANY(object) Frama_C_make_unknown((char *)&(object), sizeof(object))

static unsigned any_of(unsigned least, unsigned most)
{
    return (unsigned)Frama_C_long_long_interval(least, most);
}

/* How many bits are set. */
static inline unsigned rl_bits(unsigned mask)
{
    unsigned n = 0;

    for (; mask != 0; mask &= mask - 1)
        n++;
    return n;
}

#endif
