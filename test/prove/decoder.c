/* decoder.c - resp_read from every valid state over any bytes. Three proofs; each uses the result of the one before:

   KEEP: resp_keep, with any number of bytes stored before, and any number of new bytes.
   STEP: one byte; within a line or string any number of bytes. The state is valid afterwards: by induction it is always valid.
   else: all of resp_read, over N bytes from any offset: the cursor stays within them. N is larger than the text of an item.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "any.h"
#include "resp.h"

#define N (RESP_TEXT_MAX + 65)

static uint8_t input[N];

/* The contract that KEEP shows. */
/*@ requires used: item->text_used <= RESP_TEXT_MAX;
    requires nul: item->text[RESP_TEXT_MAX] == 0;
    requires bytes: size == 0 || \valid_read(bytes + (0 .. size - 1));
    assigns item->text[0 .. RESP_TEXT_MAX], item->text_used \from item->text_used, bytes[0 .. size - 1], size;
    ensures used: item->text_used <= RESP_TEXT_MAX;
    ensures nul: item->text[RESP_TEXT_MAX] == 0; */
static void resp_keep(struct resp_item *item, const uint8_t *bytes, size_t size);

/* The contract that STEP shows. 1 to 3: RESP_IN_LINE, RESP_IN_STRING, RESP_AT_CR. */
/*@ requires used: r->item.text_used <= RESP_TEXT_MAX;
    assigns \result \from at, end;
    assigns r->item.text[0 .. RESP_TEXT_MAX], r->item.text_used, r->item.size, r->priv.left, r->priv.state
        \from *r, *at, indirect:at, indirect:end;
    ensures taken: \subset(\result, input + (0 .. N));
    ensures forward: at <= \result <= end;
    ensures state: 1 <= r->priv.state <= 3;
    ensures used: r->item.text_used <= RESP_TEXT_MAX;
    ensures nul: r->item.text[RESP_TEXT_MAX] == 0; */
static const uint8_t *resp_take(struct resp_reader *r, const uint8_t *at, const uint8_t *end);

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
    //@ admit reader.item.text_used <= RESP_TEXT_MAX;
    //@ admit reader.item.kind <= RESP_PUSH;
    reader.item.text[RESP_TEXT_MAX] = '\0';
#ifdef KEEP
    //@ split reader.item.text_used;
    resp_keep(&reader.item, input, from);
#elif defined STEP
    //@ split reader.priv.state;
    if (reader.priv.state == RESP_IN_LINE || reader.priv.state == RESP_IN_STRING) {
        //@ split from;
        cursor = resp_take(&reader, input + from, input + N);
        //@ check taken: 1 <= reader.priv.state <= 3;
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
    //@ check used: reader.item.text_used <= RESP_TEXT_MAX;
    //@ check nul: reader.item.text[RESP_TEXT_MAX] == 0;
    //@ check kind: reader.item.kind <= RESP_PUSH;
    return 0;
}
