/* decoder.c - resp_read from every valid state over any bytes. Two proofs; the second uses the result of the first:

   STEP: one byte; within a line or string any number of bytes. The state is valid afterwards: by induction it is always valid.
   else: all of resp_read, over N bytes from any offset: the cursor stays within them. N is larger than the text of an item.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "any.h"
#include "resp.h"

#define N (RESP_TEXT_MAX + 65)

static uint8_t input[N];

/* The contract that STEP shows. 1 and 2: RESP_IN_TEXT, RESP_AT_LINE_FEED. */
/*@ requires nul: r->item.text[RESP_TEXT_MAX] == 0;
    assigns \result, *cursor \from *r, *cursor, **cursor, end;
    assigns r->item.text[0 .. RESP_TEXT_MAX], r->item.text_used, r->item.size, r->priv.state
        \from *r, **cursor, indirect:*cursor, indirect:end;
    ensures event: \result == RESP_MORE || \result == RESP_BAD;
    ensures taken: \subset(*cursor, input + (0 .. N));
    ensures state: 1 <= r->priv.state <= 2;
    ensures used: r->item.text_used <= RESP_TEXT_MAX;
    ensures nul: r->item.text[RESP_TEXT_MAX] == 0; */
static enum resp_event resp_take(struct resp_reader *r, const uint8_t **cursor, const uint8_t *end);

#include "resp.c"

static struct resp_reader reader;

int main(void)
{
    unsigned from = any_of(0, N - 1);
    const uint8_t *cursor = input + from;
    enum resp_event event = RESP_MORE;

    ANY(input);
    ANY(reader);
    //@ admit reader.priv.state <= RESP_AT_FAILED;
    //@ admit reader.priv.level <= RESP_DEPTH_MAX;
    //@ admit reader.priv.skipped <= RESP_SIZE_MAX + 1;
    //@ admit reader.item.text_used <= RESP_TEXT_MAX;
    //@ admit reader.item.kind <= RESP_PUSH;
    reader.item.text[RESP_TEXT_MAX] = '\0';
#ifdef STEP
    //@ split reader.priv.state;
    if (reader.priv.state == RESP_IN_TEXT) {
        //@ split from;
        cursor = input + from;
        event = resp_take(&reader, &cursor, input + N);
        //@ check forward: (const uint8_t *)input + from <= cursor;
        //@ check taken: 1 <= reader.priv.state <= 2;
    } else {
        uint8_t byte = input[0];
        //@ split byte;
        input[0] = byte;
        cursor = input;
        event = resp_read(&reader, &cursor, input + 1);
        //@ check end: cursor <= (const uint8_t *)input + 1;
    }
#else
    event = resp_read(&reader, &cursor, input + N);
#endif
    //@ check event: -1 <= event <= 2;
    //@ check cursor: (const uint8_t *)input <= cursor <= (const uint8_t *)input + N;
    //@ check state: reader.priv.state <= RESP_AT_FAILED;
    //@ check level: reader.priv.level <= RESP_DEPTH_MAX;
    //@ check skipped: reader.priv.skipped <= RESP_SIZE_MAX + 1;
    //@ check used: reader.item.text_used <= RESP_TEXT_MAX;
    //@ check nul: reader.item.text[RESP_TEXT_MAX] == 0;
    //@ check kind: reader.item.kind <= RESP_PUSH;
    return 0;
}
