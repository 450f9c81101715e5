/* talk.c - see talk.h. The decoder stores only the beginning of a string, but its cursor shows where the string ends. The
   bytes of an answer stay in the receive buffer, so the whole string is in the bytes before the cursor.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "talk.h"

#include <poll.h>
#include <string.h>

struct talk talks[REDLOCK_NODES_MAX];
static const struct redlock_io *io; /* of all talks; NULL: none has begun */
static const char too_long[] = "its answer is too long";

void talk_close(struct talk *talk, const char *why)
{
    redlock_set_error(&talk->node, why, NULL);
    io->shut(io->context, &talk->node);
    talk->state = TALK_CLOSED;
    talk->items = 0;
}

/* Stores one part of an answer. The two protocol bytes after a text make room for its NUL. `end` is the cursor. */
static void take_item(struct talk *talk, const struct resp_item *from, uint8_t *end)
{
    struct talk_item *to = &talk->item[talk->items++];

    to->kind = from->kind;
    to->depth = from->depth;
    to->size = from->size;
    to->integer = from->integer;
    to->text = "";
    if (from->kind == RESP_STATUS || from->kind == RESP_ERROR || from->kind == RESP_STRING) {
        char *text = (char *)end - 2 - from->size, *arguments;
        end[-2] = '\0';
        if (from->kind == RESP_ERROR && (arguments = strstr(text, ", with args")) != NULL)
            *arguments = '\0'; /* the server repeats the command, with its password */
        to->text = text;
    }
}

/* Reads what has arrived. */
static void receive(struct talk *talk)
{
    int got = io->receive(io->context, &talk->node, talk->bytes + talk->used,
                          sizeof talk->bytes - talk->used);

    talk->used += got > 0 ? (size_t)got : 0;
    while (talk->state == TALK_WAITS && talk->done < talk->used) {
        const uint8_t *cursor = talk->bytes + talk->done;
        enum resp_event event = resp_read(&talk->reader, &cursor, talk->bytes + talk->used);
        talk->done = (size_t)(cursor - talk->bytes);
        if (event == RESP_BAD || (event != RESP_MORE && talk->items == TALK_ITEMS)) {
            talk_close(talk, event == RESP_BAD ? "does not speak the Redis protocol" : too_long);
            return;
        }
        if (event != RESP_MORE)
            take_item(talk, &talk->reader.item, talk->bytes + talk->done);
        if (event == RESP_REPLY) {
            talk->state = TALK_RESTS;
            talk->has_answered = 1;
            talk->rtt_us = now_us() - talk->sent_us;
        }
    }
    if (got < 0)
        talk_close(talk, "closed by the server");
    else if (talk->state == TALK_WAITS && talk->used == sizeof talk->bytes)
        talk_close(talk, too_long);
}

static void transmit(struct talk *talk)
{
    int is_first = talk->node.error[0] == '\0';
    int sent =
        io->transmit(io->context, &talk->node, talk->bytes + talk->done, talk->used - talk->done);

    if (sent < 0 && is_first) /* the server may have sent the reason before it closed */
        talk->node.error[0] = '\0';
    talk->done += sent < 0 ? talk->used - talk->done : (size_t)sent;
    if (talk->done == talk->used) { /* from now on the bytes are those of the answer */
        talk->used = talk->done = 0;
        talk->state = TALK_WAITS;
    }
}

static void handle_event(struct talk *talk)
{
    int ready;

    if (talk->state == TALK_CONNECTS) {
        ready = io->ready(io->context, &talk->node);
        if (ready > 0)
            talk->state = TALK_RESTS;
        else if (ready < 0)
            talk_close(talk, "no connection");
    } else if (talk->state == TALK_SENDS) {
        transmit(talk);
    } else {
        receive(talk);
    }
}

/* Lists the talks that wait, and their descriptors. Returns how many. */
static unsigned list_busy(struct pollfd *fds, struct talk **busy)
{
    unsigned i, wanted, n = 0;

    for (i = 0; i < target_count; i++) {
        if (talks[i].state == TALK_CLOSED || talks[i].state == TALK_RESTS)
            continue;
        wanted = io_events(&talks[i].node,
                           talks[i].state == TALK_WAITS ? REDLOCK_READABLE : REDLOCK_WRITABLE);
        fds[n].fd = (int)talks[i].node.handle;
        fds[n].events = wanted == REDLOCK_READABLE ? POLLIN : POLLOUT;
        fds[n].revents = 0;
        busy[n++] = &talks[i];
    }
    return n;
}

static int has_answer(const struct talk *talk)
{
    return talk->state == TALK_WAITS && io_has_bytes(&talk->node);
}

/* When the wait ends for this node: a first answer may take FIRST_TIMES as long while a majority has not answered. */
static uint64_t end_of(const struct talk *talk, uint64_t begin_us, uint64_t timeout_us)
{
    unsigned i, done = 0;

    for (i = 0; i < target_count; i++)
        done += talks[i].state == TALK_RESTS;
    return begin_us + timeout_us * (talk->has_answered || done >= quorum() ? 1 : FIRST_TIMES);
}

/* Waits until each node is connected or has answered, or the time is over. An answer that has arrived counts, even if this
   process was paused beyond that time. */
void talks_wait(uint32_t timeout_ms)
{
    uint64_t begin = now_us(), timeout_us = (uint64_t)timeout_ms * 1000, now, until, end;
    struct pollfd fds[REDLOCK_NODES_MAX];
    struct talk *busy[REDLOCK_NODES_MAX];
    unsigned i, n;

    while ((n = list_busy(fds, busy)) > 0) {
        now = now_us();
        for (i = 0, until = UINT64_MAX; i < n; i++) {
            end = has_answer(busy[i]) ? now : end_of(busy[i], begin, timeout_us);
            if (end < until)
                until = end;
        }
        poll(fds, n, now < until ? (int)((until - now + 999) / 1000) : 0);
        for (i = 0; i < n; i++)
            if (fds[i].revents != 0 || has_answer(busy[i]))
                handle_event(busy[i]);
        for (i = 0; i < n; i++)
            if (fds[i].revents == 0 && !has_answer(busy[i]) &&
                now >= end_of(busy[i], begin, timeout_us))
                talk_close(busy[i], busy[i]->state == TALK_CONNECTS ? "no connection in time"
                                                                    : "no answer in time");
    }
}

void talk_send(struct talk *talk, unsigned words, const char *const *word)
{
    struct resp_writer writer = {0};
    unsigned i;

    if (talk->state == TALK_CLOSED)
        return;
    talk->items = 0;
    writer.bytes = talk->bytes;
    writer.size = sizeof talk->bytes;
    resp_put_command(&writer, words);
    for (i = 0; i < words; i++)
        resp_put_text(&writer, word[i]);
    talk->used = writer.used;
    talk->done = 0;
    talk->state = TALK_SENDS;
    talk->sent_us = now_us();
}

void talks_ask(uint32_t timeout_ms, unsigned words, const char *const *word)
{
    unsigned i;

    for (i = 0; i < target_count; i++)
        talk_send(&talks[i], words, word);
    talks_wait(timeout_ms);
}

/* A server without a password accepts all clients, so its error after AUTH is not a refusal. */
static int wants_no_password(const struct talk *talk)
{
    return talk_is_error(talk, "ERR AUTH <password> called without any password") ||
           talk_is_error(talk, "ERR Client sent AUTH, but no password is set");
}

/* Closes a connection. The server may have repeated the password in its error. */
static void refuse(struct talk *talk, const char *question, const char *password)
{
    const char *error = talk->item[0].text;
    const char *secret = password[0] != '\0' ? strstr(error, password) : NULL;
    char text[1024];
    size_t size = secret != NULL ? (size_t)(secret - error) : strlen(error);

    snprintf(text, sizeof text, "%.*s", (int)size, error);
    if (size == 0) /* the error begins like the password */
        snprintf(text, sizeof text, "refuses %s", question);
    talk->refused = question;
    talk_close(talk, text);
}

/* Closes the connections whose answer is an error. */
static void must_be_fine(const char *question)
{
    unsigned i;

    for (i = 0; i < target_count; i++)
        if (wants_no_password(&talks[i]))
            talks[i].is_open = 1;
        else if (talk_is_error(&talks[i], ""))
            refuse(&talks[i], question, targets[i].url.password);
}

void talks_open(uint32_t timeout_ms)
{
    char database[12];
    unsigned i;

    if (io == NULL)
        io = io_open();
    for (i = 0; i < target_count; i++) {
        memset(&talks[i], 0, offsetof(struct talk, item));
        talks[i].node.address = targets[i].address;
        talks[i].node.handle = -1;
        talks[i].node.user_data = io_name_of(i);
        talks[i].state = io->dial(io->context, &talks[i].node) == 0 ? TALK_CONNECTS : TALK_CLOSED;
    }
    talks_wait(timeout_ms);
    for (i = 0; i < target_count; i++) {
        const struct redlock_url *url = &targets[i].url;
        const char *auth[3];
        auth[0] = "AUTH";
        auth[1] = url->user[0] != '\0' ? url->user : url->password;
        auth[2] = url->password;
        if (url->password[0] != '\0')
            talk_send(&talks[i], url->user[0] != '\0' ? 3 : 2, auth);
    }
    talks_wait(timeout_ms);
    must_be_fine("AUTH");
    for (i = 0; i < target_count; i++) {
        const char *select[2] = {"SELECT", database};
        snprintf(database, sizeof database, "%lu", (unsigned long)targets[i].url.database);
        if (targets[i].url.database != 0)
            talk_send(&talks[i], 2, select);
    }
    talks_wait(timeout_ms);
    must_be_fine("SELECT");
}

void talks_close(void)
{
    unsigned i;

    for (i = 0; i < target_count; i++)
        if (talks[i].state != TALK_CLOSED) {
            io->shut(io->context, &talks[i].node);
            talks[i].state = TALK_CLOSED;
        }
}

unsigned talks_vote(unsigned words, const char *const *word, unsigned votes[3])
{
    unsigned i, silent = 0;

    memset(votes, 0, 3 * sizeof *votes);
    talks_open((uint32_t)options.node_timeout_ms);
    talks_ask((uint32_t)options.node_timeout_ms, words, word);
    for (i = 0; i < target_count; i++) {
        const struct talk_item *answer = &talks[i].item[0];
        if (talks[i].items > 0 && answer->kind == RESP_INTEGER && answer->integer >= 0 &&
            answer->integer <= 2) {
            votes[answer->integer]++;
        } else {
            silent++;
            talk_note_error(&talks[i]);
        }
    }
    talks_close();
    return silent;
}

int talk_field(const char *info, const char *field, char *value, size_t room)
{
    size_t size = strlen(field);
    const char *at = info;

    while (*at != '\0' && (strncmp(at, field, size) != 0 || at[size] != ':')) {
        at += strcspn(at, "\n");
        at += *at == '\n';
    }
    if (*at == '\0')
        return 0;
    snprintf(value, room, "%.*s", (int)strcspn(at + size + 1, "\r\n"), at + size + 1);
    return 1;
}

int talk_is_error(const struct talk *talk, const char *prefix)
{
    return talk->items > 0 && talk->item[0].kind == RESP_ERROR &&
           strncmp(talk->item[0].text, prefix, strlen(prefix)) == 0;
}

/* Other errors pass: LOADING, too many clients. */
int is_denial(const char *error)
{
    static const char replied[] = "replied: "; /* the library's word, as "needs" is */
    static const char *const first[] = {"NOPERM",          "NOAUTH",   "WRONGPASS",
                                        "DENIED",          "READONLY", "ERR The user ex",
                                        "ERR ACL failure", "needs +"};
    size_t i;

    if (strncmp(error, replied, sizeof replied - 1) == 0)
        error += sizeof replied - 1;
    for (i = 0; i < sizeof first / sizeof *first; i++)
        if (strncmp(error, first[i], strlen(first[i])) == 0)
            return 1;
    return strncmp(error, "ERR ", 4) == 0 && strstr(error, "nknown command") != NULL;
}

static int is_denied(const struct talk *talk)
{
    return is_denial(talk->node.error) ||
           (talk->refused != NULL && strcmp(talk->refused, "AUTH") == 0 &&
            strncmp(talk->node.error, "ERR max number of clients", 25) != 0);
}

enum redlock_status talks_failure(void)
{
    unsigned i, denied = 0;

    for (i = 0; i < target_count; i++)
        denied += (unsigned)is_denied(&talks[i]);
    return denied > target_count - quorum() ? REDLOCK_DENIED : REDLOCK_UNREACHABLE;
}

void talk_note_error(struct talk *talk)
{
    if (talk->items > 0)
        redlock_set_error(&talk->node,
                          talk_is_error(talk, "") ? talk->item[0].text : "unexpected reply", NULL);
}
