/* writer.c - one put into a writer of SIZE bytes, of which any number is used: no byte outside of them is written, and the
   writer is valid afterwards. By induction this is true after any number of puts.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "any.h"
#include "resp.c"

#ifndef SIZE
#define SIZE 32
#endif

static uint8_t out[SIZE];
static char word[SIZE + 16]; /* longer than any that fits */

int main(void)
{
    struct resp_writer w = {out, SIZE, 0, 0};
    unsigned size = any_of(0, sizeof word), tail = any_of(0, sizeof word), which = any_of(0, 6);
    unsigned used = any_of(0, SIZE);

    ANY(out);
    ANY(word);
    word[sizeof word - 1] = '\0';
    w.overflow = (int)any_of(0, 1);
    //@ split which;
    //@ split used;
    w.used = used;
    //@ split size > 0;
    //@ split tail > 0;
    switch (which) {
    case 0:
        resp_put_command(&w, any_of(0, UINT32_MAX));
        break;
    case 1:
        resp_put_bytes(&w, word, size);
        break;
    case 2:
        resp_put_text(&w, word);
        break;
    case 3:
        resp_put_number(&w, any_of(0, UINT32_MAX));
        break;
    case 4:
        resp_put_raw(&w, size > 0 ? word : NULL, size);
        break;
    case 5:
        resp_put_joined(&w, size > 0 ? word : NULL, size, tail > 0 ? word : NULL, tail);
        break;
    default:
        size = any_of(0, SIZE / 2 + 1); /* more is refused at once */
        //@ split size;
        resp_put_hex(&w, (const uint8_t *)word, size, tail > 0 ? word : NULL, tail);
        break;
    }
    //@ check within: w.used <= w.size;
    //@ check kept: w.bytes == (uint8_t *)out && w.size == SIZE;
    //@ check overflow: 0 <= w.overflow <= 1;
    return 0;
}
