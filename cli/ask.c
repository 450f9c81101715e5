/* ask.c - see ask.h. The decoder keeps the beginning of a string only, but its cursor shows where the string ends. The bytes of an
   answer stay in memory, so the whole string stands before the cursor. Strings that are too long make room for others: only their
   beginning stays.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "ask.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- In the child ---- */

/* The first error counts. */
static int fails(struct talk *talk, enum redlock_fault fault, const char *why)
{
    if (talk->result->error[0] == '\0') {
        talk->result->fault = fault;
        snprintf(talk->result->error, sizeof talk->result->error, "%s", why);
    }
    return 0;
}

/* The same for a connection: the I/O table may have said why. A port that expects TLS closes a connection without it unheard. */
static int breaks(struct talk *talk, const char *why)
{
    static const char hint[] = "; does this port expect TLS?";
    int is_unheard = talk->result->is_up && !talk->has_heard && talk->url->tls == 0 &&
                     strncmp(talk->url->address, "unix:", 5) != 0;
    char text[REDLOCK_ERROR_MAX + 1];

    snprintf(text, sizeof text, "%.*s%s", (int)(sizeof text - sizeof hint),
             talk->node.error[0] != '\0' ? talk->node.error : why, is_unheard ? hint : "");
    return fails(
        talk, talk->node.fault != REDLOCK_FAULT_NONE ? talk->node.fault : REDLOCK_FAULT_CONNECTION,
        text);
}

/* The kind of an error in the server's words. The denials are the list of rl_is_denial in command.c, which is private to the library:
   keep them equal, so that all verbs end with the same status. A cluster that is down, and a command that the server does not have,
   are denials here, too. */
static enum redlock_fault fault_of(const char *error)
{
    static const char *const denials[] = {
        "NOAUTH", "NOPERM", "WRONGPASS", "DENIED",          "READONLY",       "WRONGTYPE",
        "MOVED",  "ASK",    "CROSSSLOT", "ERR The user ex", "ERR ACL failure"};
    size_t i;

    for (i = 0; i < sizeof denials / sizeof *denials; i++)
        if (strncmp(error, denials[i], strlen(denials[i])) == 0)
            return REDLOCK_FAULT_DENIED;
    if (is_cluster_down(error))
        return REDLOCK_FAULT_ROLE;
    return strncmp(error, "ERR ", 4) == 0 && strstr(error, "nknown command") != NULL
               ? REDLOCK_FAULT_DENIED
               : REDLOCK_FAULT_REPLIED;
}

int refuses(struct talk *talk)
{
    const char *why = is_error(talk, "") ? text_of(talk) : "unexpected reply";

    return fails(talk, fault_of(why), why[0] != '\0' ? why : "an error without a text");
}

/* Waits for these events until this time; UINT64_MAX: for ever. It may return earlier while a connect is under way. Ends this process with
   its parent, which is the reader of the pipe. */
static void wait_for(struct talk *talk, unsigned events, uint64_t until_us)
{
    unsigned wanted = io_events(&talk->node, events);
    struct pollfd fds[2 + ADDRESSES_MAX] = {{(int)talk->node.handle, poll_events(wanted), 0},
                                            {talk->parent, 0, 0}};
    uint64_t now = now_us(), wait_us = UINT64_MAX;
    unsigned count = 2 + names_watch(&talk->node, fds + 2, &wait_us);

    if (io_has_bytes(&talk->node))
        return;
    if (wait_us < UINT64_MAX - now && now + wait_us < until_us)
        until_us = now + wait_us;
    poll(fds, count, poll_ms(until_us, now));
    if (fds[1].revents != 0)
        _exit(0);
    names_serve(&talk->node);
}

/* Returns 1 when the connection is made, -1 when it has failed. While a name has addresses that were not tried, the node is not silent:
   the parent is not to give it up. */
static int is_made(struct talk *talk)
{
    uint64_t try_us = (uint64_t)options.node_timeout_ms * (FIRST_TIMES - 1) * 1000;
    int up = 0, has_more;

    while (up == 0) {
        has_more = names_has_more(&talk->node);
        wait_for(talk, REDLOCK_WRITABLE, has_more ? now_us() + try_us : UINT64_MAX);
        if (has_more)
            talk->result->heard_us = now_us();
        up = talk->io->ready(talk->io->context, &talk->node);
    }
    return up;
}

static int connects(struct talk *talk)
{
    int up = talk->io->dial(talk->io->context, &talk->node) == 0 && is_made(talk) > 0;

    talk->result->is_up = up;
    talk->result->heard_us = now_us();
    return up || breaks(talk, "no connection");
}

/* A server may send the reason before it closes the connection: then that is read first. */
static int sends(struct talk *talk)
{
    size_t sent = 0;

    while (sent < talk->to_send) {
        int moved = talk->io->transmit(talk->io->context, &talk->node, talk->question + sent,
                                       talk->to_send - sent);
        if (moved < 0) {
            talk->to_send = 0;
            return 0;
        }
        sent += (size_t)moved;
        if (sent < talk->to_send)
            wait_for(talk, REDLOCK_WRITABLE, UINT64_MAX);
    }
    talk->to_send = 0;
    return 1;
}

/* Encodes a command behind those that were not sent yet. Returns 0 if there is no room. */
static int puts_words(struct talk *talk, unsigned words, const char *const *word)
{
    struct resp_writer writer = {0};
    unsigned i;

    writer.bytes = talk->question;
    writer.size = sizeof talk->question;
    writer.used = talk->to_send;
    resp_put_command(&writer, words);
    for (i = 0; i < words; i++)
        resp_put_text(&writer, word[i]);
    if (!writer.overflow)
        talk->to_send = writer.used;
    return !writer.overflow;
}

static int tell_list(struct talk *talk, const char *word, va_list more)
{
    const char *all[QUESTION_WORDS];
    unsigned words = 0;

    for (; word != NULL && words < QUESTION_WORDS; word = va_arg(more, const char *))
        all[words++] = word;
    if (talk->result->error[0] != '\0')
        return 0;
    if (puts_words(talk, words, all))
        return 1;
    sends(talk); /* if that fails, hear() tells */
    return puts_words(talk, words, all) ||
           fails(talk, REDLOCK_FAULT_ARGUMENT, "the question is too long");
}

int tell(struct talk *talk, const char *word, ...)
{
    va_list more;
    int told;

    va_start(more, word);
    told = tell_list(talk, word, more);
    va_end(more);
    return told;
}

/* The text of the part that has just been decoded, if only its beginning is kept. Moves the bytes behind the part. */
static const char *keep_beginning(struct talk *talk)
{
    char *text = (char *)talk->bytes + talk->kept;

    memcpy(text, talk->reader.item.text, RESP_TEXT_MAX + 1);
    talk->kept += RESP_TEXT_MAX + 1;
    talk->used -= talk->done - talk->kept;
    memmove(talk->bytes + talk->kept, talk->bytes + talk->done, talk->used - talk->kept);
    talk->done = talk->kept;
    return text;
}

/* The same if all of it is kept. The two protocol bytes behind a text make room for its NUL. */
static const char *keep_all(struct talk *talk)
{
    char *end = (char *)talk->bytes + talk->done - 2;

    *end = '\0';
    return end - talk->reader.item.size;
}

/* Stores one part of the answer. */
static void take_part(struct talk *talk)
{
    const struct resp_item *from = &talk->reader.item;
    struct part *to = &talk->item[talk->items++];
    int is_text =
        from->kind == RESP_STATUS || from->kind == RESP_ERROR || from->kind == RESP_STRING;
    char *arguments;

    to->kind = from->kind;
    to->size = from->size;
    to->integer = from->integer;
    to->text = "";
    if (is_text)
        to->text = talk->is_cut || (talk->items > 1 && from->size > PART_BYTES)
                       ? keep_beginning(talk)
                       : keep_all(talk);
    talk->kept = talk->done;
    talk->is_cut = 0;
    if (from->kind == RESP_ERROR && (arguments = strstr(to->text, ", with args")) != NULL)
        *arguments = '\0'; /* the server repeats the command, with its password */
}

/* Decodes the bytes that are there. Returns 1 if the answer is complete, -1 if it is none. */
static int decode(struct talk *talk)
{
    while (talk->done < talk->used) {
        const uint8_t *at = talk->bytes + talk->done;
        enum resp_event event = resp_read(&talk->reader, &at, talk->bytes + talk->used);
        talk->done = (size_t)(at - talk->bytes);
        if (event == RESP_BAD) {
            fails(talk, REDLOCK_FAULT_PROTOCOL, "does not speak RESP");
            return -1;
        }
        if (event == RESP_MORE)
            return 0;
        if (talk->items == ANSWER_ITEMS) {
            fails(talk, REDLOCK_FAULT_PROTOCOL, "its answer is too long");
            return -1;
        }
        take_part(talk);
        if (event == RESP_REPLY)
            return 1;
    }
    return 0;
}

/* Makes room for more bytes. Those of a long string are not needed, but for its beginning, which the decoder has. Returns 0 if there is
   none. */
static int has_room(struct talk *talk)
{
    size_t beginning = talk->kept + RESP_TEXT_MAX + 1;

    if (talk->used == sizeof talk->bytes && talk->done > beginning) {
        talk->used = talk->done = beginning;
        talk->is_cut = 1;
    }
    return talk->used < sizeof talk->bytes;
}

int hear(struct talk *talk)
{
    int heard, got;

    if (talk->result->error[0] != '\0')
        return 0;
    if (talk->to_send > 0)
        sends(talk);
    talk->items = 0;
    talk->used -= talk->done;
    memmove(talk->bytes, talk->bytes + talk->done, talk->used);
    talk->done = talk->kept = 0;
    while ((heard = decode(talk)) == 0) {
        if (!has_room(talk))
            return fails(talk, REDLOCK_FAULT_PROTOCOL, "its answer is too long");
        wait_for(talk, REDLOCK_READABLE, UINT64_MAX);
        got = talk->io->receive(talk->io->context, &talk->node, talk->bytes + talk->used,
                                sizeof talk->bytes - talk->used);
        if (got < 0)
            return breaks(talk, "closed by the server");
        talk->used += (size_t)got;
        talk->has_heard |= got > 0;
        talk->result->heard_us = now_us();
    }
    return heard > 0;
}

static int ask_list(struct talk *talk, const char *word, va_list more)
{
    uint64_t begin_us = now_us();

    if (!tell_list(talk, word, more) || !hear(talk))
        return 0;
    talk->rtt_us = now_us() - begin_us;
    return 1;
}

int ask_any(struct talk *talk, const char *word, ...)
{
    va_list more;
    int heard;

    va_start(more, word);
    heard = ask_list(talk, word, more);
    va_end(more);
    return heard;
}

int ask(struct talk *talk, const char *word, ...)
{
    va_list more;
    int heard;

    va_start(more, word);
    heard = ask_list(talk, word, more);
    va_end(more);
    return heard && is_error(talk, "") ? refuses(talk) : heard;
}

int is_kind(const struct talk *talk, enum resp_kind kind)
{
    return talk->items > 0 && talk->item[0].kind == kind;
}

int is_error(const struct talk *talk, const char *prefix)
{
    return is_kind(talk, RESP_ERROR) && strncmp(talk->item[0].text, prefix, strlen(prefix)) == 0;
}

const char *text_of(const struct talk *talk)
{
    return talk->items > 0 ? talk->item[0].text : "";
}

long long number_of(const struct talk *talk)
{
    return is_kind(talk, RESP_INTEGER) ? talk->item[0].integer : -1;
}

void field_of(const struct talk *talk, const char *field, char *value, size_t room)
{
    size_t size = strlen(field);
    const char *at = text_of(talk);

    while (*at != '\0' && (strncmp(at, field, size) != 0 || at[size] != ':')) {
        at += strcspn(at, "\n");
        at += *at == '\n';
    }
    snprintf(value, room, "%.*s", *at != '\0' ? (int)strcspn(at + size + 1, "\r\n") : 0,
             *at != '\0' ? at + size + 1 : "");
}

void ask_run_id(struct talk *talk)
{
    struct result *result = talk->result;

    if (result->error[0] != '\0')
        return;
    result->is_complete = 1;
    if (ask_any(talk, "INFO", "server", NULL)) {
        field_of(talk, "run_id", result->run_id, sizeof result->run_id);
    } else {
        result->fault = REDLOCK_FAULT_NONE;
        result->error[0] = '\0';
    }
}

/* The server refuses AUTH, in many words. It may have repeated the password, which is cut off. A part of the first word would
   mislead. */
static int refuses_login(struct talk *talk)
{
    const char *error = text_of(talk), *secret = strstr(error, talk->url->password);
    size_t size = secret != NULL ? (size_t)(secret - error) : strlen(error);
    char text[REDLOCK_ERROR_MAX + 1];

    snprintf(text, sizeof text, "%.*s", (int)size, error);
    return fails(talk,
                 strncmp(text, "ERR max number of clients", 25) == 0 ? REDLOCK_FAULT_REPLIED
                                                                     : REDLOCK_FAULT_DENIED,
                 size > 0 && size >= strcspn(error, " ") ? text : "refuses AUTH");
}

static int logs_in(struct talk *talk)
{
    const struct redlock_url *url = talk->url;
    int has_user = url->user[0] != '\0';
    char database[12];

    if (url->password[0] != '\0') {
        if (!ask_any(talk, "AUTH", has_user ? url->user : url->password,
                     has_user ? url->password : NULL, NULL))
            return 0;
        talk->result->is_open = is_error(talk, "ERR AUTH <password> called without any password") ||
                                is_error(talk, "ERR Client sent AUTH, but no password is set");
        if (is_error(talk, "") && !talk->result->is_open)
            return refuses_login(talk);
    }
    snprintf(database, sizeof database, "%lu", (unsigned long)url->database);
    return url->database == 0 || ask(talk, "SELECT", database, NULL);
}

/* The life of the child: its last act is a byte for the parent, 1 if all went well. */
static void talk_to(unsigned i, const struct redlock_io *io, int parent, struct result *result,
                    void (*converse)(struct talk *talk, unsigned i, void *result))
{
    struct talk *talk = must_allocate(1, sizeof *talk);
    ssize_t written;
    uint8_t is_well;

#ifdef SIGPIPE
    signal(SIGPIPE, SIG_IGN);
#endif
    talk->url = &targets[i].url;
    talk->io = io;
    talk->parent = parent;
    talk->result = result;
    talk->node.address = targets[i].address;
    talk->node.handle = -1;
    talk->node.user_data = io_name_of(i);
    if (connects(talk) && logs_in(talk))
        converse(talk, i, result);
    result->is_over = 1;
    is_well = result->error[0] == '\0';
    written = write(parent, &is_well, 1);
    (void)written; /* the end of the process tells, too */
    _exit(0);
}

/* ---- In the parent ---- */

/* The results of all nodes, `size` bytes each. */
struct results {
    char *bytes;
    size_t size;
};

static struct result *result_at(const struct results *all, unsigned i)
{
    return (struct result *)(void *)(all->bytes + i * all->size);
}

/* When the wait for the nodes that are not over ends, if no more of them is heard. */
static uint64_t end_of(const struct results *all, long step_ms)
{
    uint64_t latest_us = 0;
    unsigned i;

    for (i = 0; i < target_count; i++)
        if (!result_at(all, i)->is_over && result_at(all, i)->heard_us > latest_us)
            latest_us = result_at(all, i)->heard_us;
    return latest_us + (uint64_t)step_ms * 1000;
}

/* The wait for all nodes. macOS and BSD have a union wait. */
struct waiting {
    uint64_t begin_us, end_us; /* it ends then, also if nodes still send */
    long silent_ms;            /* how long a node may be silent */
    char when[48];             /* in which time the nodes were to answer, for messages */
};

/* A quorum has ended well: the others have a rest of time. */
static void wait_for_the_rest(struct waiting *wait, const struct patience *patience)
{
    uint64_t now = now_us(), took_us = now - wait->begin_us,
             rest_us = (uint64_t)patience->rest_ms * 1000;

    wait->silent_ms = patience->step_ms;
    rest_us = took_us > rest_us ? took_us : rest_us;
    if (now + rest_us >= wait->end_us)
        return;
    wait->end_us = now + rest_us;
    snprintf(wait->when, sizeof wait->when, ", though a quorum of nodes has given all");
}

/* Waits until all children have ended, or are late. */
static struct waiting wait_for_all(int line, const struct results *all,
                                   const struct patience *patience)
{
    uint64_t now = now_us(), end_us;
    struct waiting wait = {now, now + (uint64_t)patience->limit_ms * 1000,
                           options.node_timeout_ms * FIRST_TIMES, ""};
    struct pollfd fd = {line, POLLIN, 0};
    uint8_t bytes[REDLOCK_NODES_MAX];
    unsigned well = 0, before;
    ssize_t size = 1, n;

    snprintf(wait.when, sizeof wait.when, " within %ld ms", patience->limit_ms);
    while (size > 0) {
        end_us = end_of(all, wait.silent_ms);
        end_us = end_us < wait.end_us ? end_us : wait.end_us;
        now = now_us();
        if (poll(&fd, 1, poll_ms(end_us, now)) > 0) {
            size = read(line, bytes, sizeof bytes); /* 0: all have ended */
            for (n = 0, before = well; n < size; n++)
                well += bytes[n];
            if (before < quorum() && well >= quorum())
                wait_for_the_rest(&wait, patience);
        } else if (now >= end_us) {
            break;
        }
    }
    return wait;
}

/* Ends a child. Returns 0 if the child had ended before. */
static int kill_child(pid_t child)
{
    int status = 0;

    if (waitpid(child, &status, WNOHANG) == child)
        return 0;
    kill(child, SIGKILL);
    return !wait_for_child(child, &status) || WIFSIGNALED(status); /* else it was about to end */
}

/* A child that has to be killed is late: its node was silent for so long, or has answered until the wait ended. The message has these
   limits and not what was measured, so that it is the same for all such nodes. */
static void end_child(unsigned i, pid_t child, struct result *result, const struct waiting *wait)
{
    uint64_t heard_us = result->heard_us; /* first: the child may still note a later time */
    int was_silent = now_us() - heard_us >= (uint64_t)wait->silent_ms * 1000;
    int is_late = child > 0 && kill_child(child);
    const char *what = result->is_up             ? "answer"
                       : targets[i].url.tls != 0 ? "TLS connection"
                                                 : "connection";

    if (result->is_over || result->is_complete || result->error[0] != '\0')
        return;
    result->fault = REDLOCK_FAULT_TIMEOUT;
    if (child <= 0)
        snprintf(result->error, sizeof result->error, "the system denies a process");
    else if (!is_late)
        snprintf(result->error, sizeof result->error, "the process that asks it has ended");
    else if (was_silent)
        snprintf(result->error, sizeof result->error, "no %s within %ld ms%s", what,
                 wait->silent_ms,
                 !result->is_up && targets[i].url.tls != 0 ? "; is this a TLS port?" : "");
    else
        snprintf(result->error, sizeof result->error, "%s%s",
                 result->unfinished != NULL ? result->unfinished : "not all answers", wait->when);
}

/* A server that is listed twice counts once: the first of its nodes that has answered. */
static void mark_duplicate(const struct results *all, unsigned i)
{
    struct result *result = result_at(all, i);
    unsigned n = 0;

    if (result->run_id[0] == '\0' || result->error[0] != '\0')
        return;
    while (n < i && (result_at(all, n)->error[0] != '\0' ||
                     strcmp(result_at(all, n)->run_id, result->run_id) != 0))
        n++;
    if (n == i)
        return;
    result->fault = REDLOCK_FAULT_SAME_SERVER;
    snprintf(result->error, sizeof result->error, "is the same server as %.100s: it counts once",
             targets[n].url.address);
}

/* Cleared memory that children share, or MAP_FAILED. */
static void *shared_memory(size_t size)
{
#ifdef MAP_ANONYMOUS
    return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
#else /* POSIX has files only */
    FILE *file = tmpfile();
    void *memory = MAP_FAILED;

    if (file != NULL && ftruncate(fileno(file), (off_t)size) == 0)
        memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
    if (file != NULL)
        fclose(file);
    return memory;
#endif
}

void *ask_nodes(void (*converse)(struct talk *talk, unsigned i, void *result), size_t size,
                const struct patience *patience)
{
    const struct redlock_io *io = io_open();
    struct results all = {shared_memory(size * target_count), size};
    pid_t child[REDLOCK_NODES_MAX];
    struct waiting wait;
    unsigned i, begun = 0;
    int line[2];

    if (all.bytes == MAP_FAILED || !open_pipe(line))
        die(EXIT_SYSTEM, "no memory, or no pipe: %s", strerror(errno));
    for (i = 0; i < target_count; i++) {
        result_at(&all, i)->heard_us = now_us();
        if ((child[i] = fork_process()) == 0) {
            close(line[0]);
            talk_to(i, io, line[1], result_at(&all, i), converse);
        }
        begun += child[i] > 0;
    }
    close(line[1]);
    if (begun < quorum())
        die(EXIT_SYSTEM, "the system denies a process");
    wait = wait_for_all(line[0], &all, patience);
    for (i = 0; i < target_count; i++)
        end_child(i, child[i], result_at(&all, i), &wait);
    close(line[0]); /* not earlier: it ends the children */
    for (i = 0; i < target_count; i++)
        mark_duplicate(&all, i);
    io_close(io);
    return all.bytes;
}
