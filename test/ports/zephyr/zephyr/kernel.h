/* kernel.h - a stand-in for Zephyr's header: the calls that examples/zephyr uses, on POSIX.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include <stdint.h>
#include <time.h>

static inline int64_t k_uptime_ticks(
    void) /* 10000 in a second, as CONFIG_SYS_CLOCK_TICKS_PER_SEC */
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 10000 + now.tv_nsec / 100000;
}

static inline uint64_t k_ticks_to_us_floor64(uint64_t ticks)
{
    return ticks * 100;
}

static inline int32_t k_msleep(int32_t ms)
{
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};

    return nanosleep(&time, NULL) == 0 ? 0 : 1;
}
