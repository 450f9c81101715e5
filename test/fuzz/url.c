/* url.c - fuzzing the parser of addresses: an error within the text, or nodes whose addresses are read
   back as they are.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "extra/url.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = (char *)malloc(size + 1); /* no longer than it must be: the sanitizer watches */
    struct redlock_url url, again;
    const char *at = text, *trouble, *back;
    size_t nodes = 0;

    if (text == NULL)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    do {
        trouble = redlock_url_next(&at, &url);
        if (at < text || at > text + strlen(text) || ++nodes > size + 1)
            abort();
        back = url.address;
        if (trouble == NULL && url.address[0] != '\0' && memcmp(url.address, "unix:", 5) != 0 &&
            (redlock_url_next(&back, &again) != NULL || strcmp(url.address, again.address) != 0))
            abort();
    } while (trouble == NULL && url.address[0] != '\0');
    free(text);
    return 0;
}
