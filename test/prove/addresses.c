/* addresses.c - redlock_url_next over any list of up to N bytes. One proof for each FUNCTION of url.c: for any text of up to N
   bytes, and any previous content of the struct, it reads within the text and writes within the struct. Where the text would
   give too many cases, a called function is replaced by its contract below; a separate proof shows that contract.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "any.h"
#include "extra/url.c"

#ifndef N
#define N 24
#endif

static char list[N + 1];
static struct redlock_url url;
static struct url_text text;
static const char *wrong;
static const char sentence[] = "what is wrong";

/*@ predicate here(char *p) = \subset(p, list + (0 .. N));
    predicate is_text(char *at, char *end) = here(at) && here(end) && 0 <= end - at;
    predicate goes_on(char *before, char *at, char *end) = here(at) && before <= at <= end;
    predicate is_ended(struct redlock_url *u) =
        u->address[REDLOCK_URL_MAX] == 0 && u->user[REDLOCK_URL_MAX] == 0 && u->password[REDLOCK_URL_MAX] == 0;
    predicate is_sentence(char *p) = p == \null || p == (char *)sentence;
    predicate is_string(char *p) = p == \null || \valid_read(p); */

/* What a function returns: `sentence` if it is replaced by its contract, any string if it is the one that is proved. */
#define RETURNS(function) (FUNCTION == function ? is_string(\result) : is_sentence(\result))

/*@ requires text: is_text(text->at, text->end);
    requires to: most == REDLOCK_URL_MAX && to[most] == 0; // as both maxima are by default
    assigns \result \from &sentence, indirect:*text, indirect:list[0 .. N];
    assigns text->at \from text->at;
    assigns to[0 .. REDLOCK_URL_MAX] \from list[0 .. N];
    ensures to: to[REDLOCK_URL_MAX] == 0;
    ensures at: goes_on(\old(text->at), text->at, text->end);
    ensures sentence: RETURNS(3); */
static const char *url_decode(struct url_text *text, char *to, size_t most, int least);

/*@ requires text: is_text(text->at, text->end);
    assigns \result \from &sentence, indirect:*text, indirect:list[0 .. N];
    assigns text->at \from text->at;
    assigns *number \from list[0 .. N];
    ensures at: goes_on(\old(text->at), text->at, text->end);
    ensures sentence: RETURNS(4); */
static const char *url_number(struct url_text *text, uint32_t least, uint32_t most,
                              uint32_t *number);

/*@ requires text: is_text(text.at, text.end);
    requires ended: is_ended(url);
    assigns \result \from &sentence, indirect:text, indirect:list[0 .. N];
    assigns *wrong \from text.at;
    assigns url->user[0 .. REDLOCK_URL_MAX], url->password[0 .. REDLOCK_URL_MAX] \from list[0 .. N];
    ensures ended: is_ended(url);
    ensures wrong: goes_on(\old(text.at), *wrong, \old(text.end));
    ensures sentence: RETURNS(5); */
static const char *url_user(struct url_text text, const char **wrong, struct redlock_url *url);

/*@ requires text: is_text(text->at, text->end);
    requires ended: is_ended(url);
    assigns \result \from &sentence, indirect:*text, indirect:list[0 .. N];
    assigns text->at \from text->at;
    assigns url->address[0 .. REDLOCK_URL_MAX] \from list[0 .. N];
    ensures ended: is_ended(url);
    ensures at: goes_on(\old(text->at), text->at, text->end);
    ensures sentence: RETURNS(7); */
static const char *url_host(struct url_text *text, struct redlock_url *url, int in_url);

/*@ requires text: is_text(text->at, text->end);
    assigns \result \from &sentence, indirect:*text, indirect:list[0 .. N];
    assigns text->at \from text->at;
    assigns url->database, url->timeout_ms \from list[0 .. N];
    ensures at: goes_on(\old(text->at), text->at, text->end);
    ensures sentence: RETURNS(8); */
static const char *url_options(struct url_text *text, struct redlock_url *url, int has_database);

/*@ requires text: is_text(text->at, text->end);
    requires ended: is_ended(url);
    assigns \result \from &sentence, indirect:*text, indirect:list[0 .. N];
    assigns text->at \from text->at;
    assigns *url \from list[0 .. N];
    ensures ended: is_ended(url);
    ensures at: goes_on(\old(text->at), text->at, text->end);
    ensures sentence: RETURNS(10); */
static const char *url_rest(struct url_text *text, char scheme, struct redlock_url *url);

int main(void)
{
    static const char *const words[] = {"rediss://", "redis+socket://", "unix:/",
                                        "virtual_host=", "%25"};
    unsigned size = any_of(0, N), which = any_of(0, 4);
    uint32_t number = 0;

    ANY(list);
    ANY(url);
    url.address[REDLOCK_URL_MAX] = url.user[REDLOCK_URL_MAX] = url.password[REDLOCK_URL_MAX] = '\0';
    //@ split size;
    text.end = list + N;
    text.at = text.end - size;
    (void)words, (void)which, (void)number;
#if FUNCTION == 1
    //@ split which;
    url_take(&text, words[which]);
#elif FUNCTION == 2
    url_until(&text, (char)any_of(0, 255));
#elif FUNCTION == 3
    url_decode(&text, url.user, REDLOCK_URL_MAX, (int)any_of(0, 32));
#elif FUNCTION == 4
    url_number(&text, any_of(0, 1), any_of(1, 0x7fffffff), &number);
#elif FUNCTION == 5
    url_user(text, &wrong, &url);
#elif FUNCTION == 6
    if (text.at < text.end) /* the caller has found a [ */
        url_v6(&text, &url, (int)any_of(0, 1));
#elif FUNCTION == 7
    url_host(&text, &url, (int)any_of(0, 1));
#elif FUNCTION == 8
    url_options(&text, &url, (int)any_of(0, 1));
#elif FUNCTION == 9
    url_scheme(&text, &url);
#elif FUNCTION == 10
    url_rest(&text, any_of(0, 1) ? 't' : 'u', &url);
#else
    list[N] = '\0';
    redlock_url_next(&text.at, &url);
#endif
    //@ check at: (const char *)list <= text.at <= (const char *)list + N;
    //@ check end: text.end == (const char *)list + N;
    //@ check ended: is_ended(&url);
    return 0;
}
