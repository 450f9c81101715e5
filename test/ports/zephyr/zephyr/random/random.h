/* random.h - as kernel.h

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include <stddef.h>
#include <stdio.h>

static inline int sys_csrand_get(void *bytes, size_t size)
{
    FILE *device = fopen("/dev/urandom", "rb");
    size_t got = device != NULL ? fread(bytes, 1, size, device) : 0;

    if (device != NULL)
        fclose(device);
    return got == size ? 0 : -5;
}
