/* clock_shim.c - preloaded into redis-server and into test programs, it shifts their wall clock while they run. The file
   that REDLOCK_CLOCKS names has the shift in microseconds for each process id. Other clocks are not shifted.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* syscall */
#include "clock_shim.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const struct clock_shift *shifts;

static const struct clock_shift *find_shifts(void)
{
    static const struct clock_shift none[CLOCK_SHIFTS];
    const char *path = getenv("REDLOCK_CLOCKS");
    int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *there = MAP_FAILED;

    if (fd >= 0) {
        there = mmap(NULL, sizeof none, PROT_READ, MAP_SHARED, fd, 0);
        close(fd);
    }
    return there != MAP_FAILED ? (const struct clock_shift *)there : none;
}

static long long shift_us(void)
{
    pid_t self = getpid();
    int i;

    if (shifts == NULL)
        shifts = find_shifts();
    for (i = 0; i < CLOCK_SHIFTS; i++)
        if (shifts[i].pid == self)
            return shifts[i].us;
    return 0;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int result = (int)syscall(SYS_clock_gettime, clock, now);
    long long us;

    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        us = now->tv_sec * 1000000LL + now->tv_nsec / 1000 + shift_us();
        now->tv_sec = (time_t)(us / 1000000);
        now->tv_nsec = (long)(us % 1000000) * 1000;
    }
    return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct timespec time;

    (void)zone;
    clock_gettime(CLOCK_REALTIME, &time);
    now->tv_sec = time.tv_sec;
    now->tv_usec = time.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *out)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    if (out != NULL)
        *out = now.tv_sec;
    return now.tv_sec;
}
