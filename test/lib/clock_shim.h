/* clock_shim.h - what stands in the file that clock_shim.c reads.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#ifndef CLOCK_SHIM_H
#define CLOCK_SHIM_H

#include <sys/types.h>

enum { CLOCK_SHIFTS = 32 };

struct clock_shift {
    volatile pid_t pid; /* 0: this place is free */
    volatile long long us;
};

#endif
