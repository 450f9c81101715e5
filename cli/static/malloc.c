/* malloc.c - memory for the static program: musl's own allocator is 7 KB, and what is allocated is little, at the
   start, and kept: options, and what getaddrinfo and fopen need. So nothing is given back.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 16, POOL = 262144 };

static char pool[POOL] __attribute__((aligned(ALIGNMENT)));
static size_t used;

/* Before each piece stands its size. */
static size_t *size_of(void *piece)
{
    return (size_t *)(void *)((char *)piece - ALIGNMENT);
}

void *malloc(size_t size)
{
    char *piece = pool + used + ALIGNMENT;

    if (size > POOL - used - 2 * ALIGNMENT || POOL - used < 2 * ALIGNMENT) {
        errno = ENOMEM;
        return NULL;
    }
    used += ALIGNMENT + (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    *size_of(piece) = size;
    return piece;
}

void free(void *piece)
{
    (void)piece;
}

void *calloc(size_t count, size_t size) /* the pool is clear */
{
    return size == 0 || count <= SIZE_MAX / size ? malloc(count * size) : NULL;
}

void *realloc(void *piece, size_t size)
{
    void *larger = malloc(size);

    if (piece != NULL && larger != NULL)
        memcpy(larger, piece, *size_of(piece) < size ? *size_of(piece) : size);
    return larger;
}
