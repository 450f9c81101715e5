/* resp.c - fuzzing the decoder: whatever the bytes, cut anywhere, it says the same as in one piece.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "resp.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A digest of all that is said of these bytes, fed in pieces of at most `piece`. */
static uint64_t decode(const uint8_t *data, size_t size, size_t piece)
{
    struct resp_reader reader;
    uint64_t digest = 14695981039346656037U;
    size_t done = 0, turns = 0;

    memset(&reader, 0, sizeof reader);
    while (done < size) {
        size_t part = size - done < piece ? size - done : piece;
        const uint8_t *at = data + done, *end = at + part;
        enum resp_event event = RESP_ITEM;
        while (at != end && event != RESP_BAD) {
            event = resp_read(&reader, &at, end);
            if (++turns > 4 * size + 8 || (event == RESP_MORE && at != end))
                abort();
            if (event == RESP_MORE)
                continue;
            if (reader.item.text_used > RESP_TEXT_MAX || reader.item.text[reader.item.text_used])
                abort();
            digest = (digest ^ (uint8_t)event ^ (uint64_t)reader.item.kind << 8 ^
                      (uint64_t)reader.item.integer << 16 ^ reader.item.size) *
                     1099511628211U;
        }
        if (event == RESP_BAD)
            return digest;
        done += part;
    }
    return digest;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 0 &&
        decode(data + 1, size - 1, size) != decode(data + 1, size - 1, 1U + data[0] % 8))
        abort();
    return 0;
}
