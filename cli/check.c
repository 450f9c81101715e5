/* check.c - redlock check: sends the same questions to all nodes at the same time. A node that hangs, fails or denies gets no
   more questions, or fewer. Each wait has a limit.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "check.h"
#include "talk.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

struct exam exams[REDLOCK_NODES_MAX];
/* A key for each node, and one key that is set on all nodes: a server where it exists already is listed twice. */
static char keys[REDLOCK_NODES_MAX + 1][REDLOCK_KEY_MAX + 1];

const char *const setting_names[SETTINGS] = {"appendfsync", "no-appendfsync-on-rewrite", "save",
                                             "min-replicas-to-write", "timeout"};

enum {
    WORDS = 8,
    PATIENCE = 4, /* multiples of the node's timeout */
    READINGS = 20,
    CLOCK_US = 750000, /* the longest time for repeated TIME */
    LATENCY_US =
        1500000, /* for repeated SET; the whole check takes less than 10 s if each answer takes 0.2 s */
};

static const char release_script[] =
    "if redis.call('get',KEYS[1])==ARGV[1]then return redis.call('del',KEYS[1])end return 0";
static const char extend_script[] = "local c,k=redis.call,KEYS[1]if c('get',k)==ARGV[1]then return "
                                    "c('pexpire',k,math.max(ARGV[2],c('pttl',k)))end return 0";
static const char token[] = "redlock check", wrong_token[] = "of another";
/* The TTL of the keys, in case this program is killed; so long that the keys do not expire while a slow node answers. */
static long probe_ms;
static char probe_text[24];
static uint64_t keys_end_us;

/* ---- Asking ---- */

/* In a question: stands for the node's own key. */
static const char own_key[] = "";

/* Errors after which the server answers no questions. */
static int ends_all(const struct talk *talk)
{
    return talk_is_error(talk, "NOAUTH") || talk_is_error(talk, "DENIED") ||
           talk_is_error(talk, "ERR max number of clients");
}

/* Asks all nodes; a NULL ends the arguments. The answers are in the talks, the errors in the exams. The first answer must
   come within the node's timeout, later ones within the longer time after which the library would reconnect. */
static void ask(enum question question, const char *first, ...)
{
    const char *word[WORDS] = {NULL}, *next;
    unsigned i, w, words = 0;
    va_list more;

    va_start(more, first);
    for (next = first; next != NULL && words < WORDS; next = va_arg(more, const char *))
        word[words++] = next;
    va_end(more);
    for (i = 0; i < target_count; i++) {
        const char *own[WORDS];
        for (w = 0; w < words; w++)
            own[w] = word[w] == own_key ? keys[i] : word[w];
        talk_send(&talks[i], words, own);
    }
    talks_wait((uint32_t)options.node_timeout_ms * (question == ASK_HELLO ? 1 : PATIENCE));
    for (i = 0; i < target_count; i++) {
        char *refusal = exams[i].refusal[question];
        if (talks[i].items == 0)
            continue;
        if (!talk_is_error(&talks[i], ""))
            exams[i].answered |= 1U << question;
        else if (refusal[0] == '\0')
            snprintf(refusal, sizeof exams[i].refusal[0], "%s", talks[i].item[0].text);
        if (ends_all(&talks[i]))
            talk_close(&talks[i], talks[i].item[0].text);
    }
}

/* The answer of node i; NULL if there is none, or if it is an error. */
static const struct talk_item *answer_of(unsigned i)
{
    return talks[i].items > 0 && !talk_is_error(&talks[i], "") ? talks[i].item : NULL;
}

static int is_integer(unsigned i, long long least, long long most)
{
    const struct talk_item *answer = answer_of(i);

    return answer != NULL && answer->kind == RESP_INTEGER && answer->integer >= least &&
           answer->integer <= most;
}

static int is_kind(unsigned i, enum resp_kind kind)
{
    return answer_of(i) != NULL && answer_of(i)->kind == kind;
}

static int is_ok(unsigned i)
{
    return is_kind(i, RESP_STATUS);
}

static int is_nil(unsigned i)
{
    return is_kind(i, RESP_NIL);
}

/* ---- Kind, version, settings, clock ---- */

/* The value that follows this name in the answer, a map or a flat list. */
static void take_pair(unsigned i, const char *name, char *value, size_t room)
{
    const struct talk_item *item = talks[i].item;
    unsigned n;

    for (n = 1; n + 1 < talks[i].items; n++)
        if (item[n].depth == 1 && strcmp(item[n].text, name) == 0) {
            snprintf(value, room, "%s", item[n + 1].text);
            return;
        }
}

static void ask_hello(void)
{
    unsigned i;

    ask(ASK_HELLO, "HELLO", "2", NULL);
    for (i = 0; i < target_count; i++) {
        struct exam *exam = &exams[i];
        if (answer_of(i) == NULL)
            continue;
        take_pair(i, "server", exam->server, sizeof exam->server);
        take_pair(i, "version", exam->version, sizeof exam->version);
        take_pair(i, "mode", exam->mode, sizeof exam->mode);
        take_pair(i, "role", exam->role, sizeof exam->role);
    }
}

static long long delayed_fsyncs(const char *info)
{
    char value[24] = "0";

    talk_field(info, "aof_delayed_fsync", value, sizeof value);
    return count_of(value);
}

static void ask_info(void)
{
    unsigned i;

    ask(ASK_INFO, "INFO", NULL);
    for (i = 0; i < target_count; i++) {
        struct exam *exam = &exams[i];
        if (!is_kind(i, RESP_STRING))
            continue;
        exam->info = strdup(answer_of(i)->text);
        if (exam->info == NULL)
            die(EXIT_SYSTEM, "no memory");
        exam->delayed_fsyncs = -delayed_fsyncs(exam->info);
        if (exam->version[0] == '\0') {
            talk_field(exam->info, "redis_version", exam->version, sizeof exam->version);
            talk_field(exam->info, "redis_mode", exam->mode, sizeof exam->mode);
            talk_field(exam->info, "role", exam->role, sizeof exam->role);
        }
    }
    ask(ASK_INFO, "INFO", "commandstats", NULL);
    for (i = 0; i < target_count; i++)
        if (is_kind(i, RESP_STRING))
            exams[i].stats = strdup(answer_of(i)->text);
}

static void ask_info_again(void)
{
    unsigned i;

    ask(ASK_INFO, "INFO", "persistence", NULL);
    for (i = 0; i < target_count; i++)
        exams[i].delayed_fsyncs = is_kind(i, RESP_STRING)
                                      ? exams[i].delayed_fsyncs + delayed_fsyncs(answer_of(i)->text)
                                      : 0;
}

static void ask_settings(void)
{
    unsigned i, n;

    for (n = 0; n < SETTINGS; n++) {
        ask(ASK_CONFIG, "CONFIG", "GET", setting_names[n], NULL);
        for (i = 0; i < target_count; i++)
            if (answer_of(i) != NULL && talks[i].items == 3) {
                snprintf(exams[i].setting[n], sizeof exams[i].setting[n], "%s",
                         talks[i].item[2].text);
                exams[i].settings |= 1U << n;
            }
    }
}

/* The best of several readings of the clocks: the one with the shortest round trip. */
static void read_clocks(unsigned which)
{
    const struct redlock_io *io = redlock_posix();
    uint64_t start_us = now_us();
    unsigned i, round;

    for (round = 0; round < READINGS && now_us() - start_us < CLOCK_US; round++) {
        long long wall_us;
        ask(ASK_TIME, "TIME", NULL);
        wall_us = (long long)io->wall_us(NULL) - (long long)now_us();
        for (i = 0; i < target_count; i++) {
            struct reading *best = &exams[i].clock[which];
            const struct talk *talk = &talks[i];
            if (answer_of(i) == NULL || talk->items != 3 ||
                (best->at_us != 0 && best->rtt_us <= talk->rtt_us))
                continue;
            best->rtt_us = talk->rtt_us;
            best->at_us = talk->sent_us + talk->rtt_us / 2;
            best->ahead_us = count_of(talk->item[1].text) * 1000000 + count_of(talk->item[2].text) -
                             (long long)best->at_us;
            best->ahead_wall_us = best->ahead_us - wall_us;
        }
    }
}

/* ---- The commands of a lock ---- */

static void draw_keys(void)
{
    char random[33], name[48];
    unsigned i;

    probe_ms = 6 * PATIENCE * options.node_timeout_ms; /* 6 questions */
    probe_ms = probe_ms > 2000 ? probe_ms : 2000;
    snprintf(probe_text, sizeof probe_text, "%ld", probe_ms);
    for (i = 0; i <= target_count; i++) {
        put_random(random, 16);
        snprintf(name, sizeof name, "check:%s", random);
        key_of(keys[i], name);
    }
}

/* Sets a new key on all nodes at once. A server where the key exists already got it through another address. */
static void look_for_twins(void)
{
    const char *shared = keys[target_count];
    unsigned i;

    ask(ASK_SET, "SET", shared, token, "NX", "PX", probe_text, NULL);
    for (i = 0; i < target_count; i++) {
        exams[i].twin = is_nil(i);
        exams[i].accepts = is_ok(i);
    }
    ask(ASK_EVAL, "EVAL", release_script, "1", shared, token, NULL);
}

/* Each node must give the answer that a lock needs; otherwise exam->problem names the command. After keys_end_us a wrong answer
   proves nothing, because a key may have expired while this program or another node was paused. */
static void must_be(const char *what, int (*is)(unsigned i))
{
    int late = now_us() >= keys_end_us;
    unsigned i;

    for (i = 0; i < target_count; i++) {
        struct exam *exam = &exams[i];
        if (exam->problem[0] != '\0' || talks[i].items == 0 || is(i) ||
            (late && answer_of(i) != NULL))
            continue;
        exam->lies = answer_of(i) != NULL;
        snprintf(exam->problem, sizeof exam->problem, "%s: %s", what,
                 exam->lies ? "not what was asked for" : talks[i].item[0].text);
    }
}

static int is_0(unsigned i)
{
    return is_integer(i, 0, 0);
}

static int is_1(unsigned i)
{
    return is_integer(i, 1, 1);
}

/* A denied PTTL is no problem, because a lock does not need it. */
static int is_left(unsigned i)
{
    return answer_of(i) == NULL || is_integer(i, 1, probe_ms);
}

static void try_a_lock(void)
{
    keys_end_us = now_us() + (uint64_t)probe_ms * 1000;
    ask(ASK_SET, "SET", own_key, token, "NX", "PX", probe_text, NULL);
    must_be("SET NX PX", is_ok);
    ask(ASK_SET, "SET", own_key, wrong_token, "NX", "PX", probe_text, NULL);
    must_be("SET NX PX of what is held", is_nil);
    ask(ASK_PTTL, "PTTL", own_key, NULL);
    must_be("PTTL", is_left);
    ask(ASK_EVAL, "EVAL", extend_script, "1", own_key, token, probe_text, NULL);
    must_be("extension", is_1);
    ask(ASK_EVAL, "EVAL", release_script, "1", own_key, wrong_token, NULL);
    must_be("release by another", is_0);
    ask(ASK_EVAL, "EVAL", release_script, "1", own_key, token, NULL);
    must_be("release", is_1);
}

/* Measures by the clock here when a key with a TTL of EXPIRY_MS expires; gives up after three times that time. */
static void watch_expiry(void)
{
    uint64_t start_us = now_us();
    char expiry[12];
    int watching = 1;
    unsigned i;

    snprintf(expiry, sizeof expiry, "%d", EXPIRY_MS);
    ask(ASK_SET, "SET", own_key, token, "PX", expiry, NULL);
    for (i = 0; i < target_count; i++)
        if (is_ok(i)) {
            exams[i].born_us = talks[i].sent_us;
            exams[i].set_us = talks[i].sent_us + talks[i].rtt_us;
        }
    while (watching && now_us() - start_us < EXPIRY_MS * 3000) {
        ask(ASK_GET, "GET", own_key, NULL);
        watching = 0;
        for (i = 0; i < target_count; i++) {
            struct exam *exam = &exams[i];
            if (exam->born_us == 0 || exam->gone_us != 0 || answer_of(i) == NULL)
                continue;
            if (is_nil(i))
                exam->gone_us = talks[i].sent_us + talks[i].rtt_us;
            else
                exam->alive_us = talks[i].sent_us;
            watching |= exam->gone_us == 0;
        }
        poll(NULL, 0, 5);
    }
}

static void measure_latency(void)
{
    uint64_t start_us = now_us();
    unsigned i, round;

    for (round = 0; round < ROUNDS && now_us() - start_us < LATENCY_US; round++) {
        ask(ASK_SET, "SET", own_key, token, "PX", probe_text, NULL);
        for (i = 0; i < target_count; i++)
            if (is_ok(i))
                exams[i].rtt_us[exams[i].rtts++] = (uint32_t)talks[i].rtt_us;
    }
    for (i = 0; i < target_count; i++)
        sort_times(exams[i].rtt_us, exams[i].rtts);
    ask(ASK_EVAL, "EVAL", release_script, "1", own_key, token, NULL);
}

/* ---- The verb ---- */

/* Sends a command twice a second, because a server may close idle connections. */
static void wait_until(uint64_t until_us)
{
    uint64_t now;

    while ((now = now_us()) < until_us) {
        poll(NULL, 0, until_us - now < 500000 ? (int)((until_us - now + 999) / 1000) : 500);
        ask(ASK_TIME, "TIME", NULL);
    }
}

static void examine(void)
{
    uint64_t start_us;
    unsigned i;

    talks_open((uint32_t)options.node_timeout_ms);
    ask_hello();
    start_us = now_us();
    read_clocks(0);
    ask_info(); /* before the test commands, which change commandstats */
    if (!options.read_only) {
        look_for_twins();
        try_a_lock();
        watch_expiry();
        measure_latency();
    }
    ask_settings();
    if (options.clock_window_ms > 0) {
        wait_until(start_us + (uint64_t)options.clock_window_ms * 1000);
        read_clocks(1);
    }
    ask_info_again();
    talks_close();
    for (i = 0; i < target_count; i++) {
        memcpy(exams[i].error, talks[i].node.error, sizeof exams[i].error);
        exams[i].refused = talks[i].refused;
        exams[i].is_open = talks[i].is_open;
    }
}

/* Appends to a name, which has room. */
static void append(char *name, const char *mark, unsigned long number)
{
    sprintf(name + strlen(name), "%s%lu", mark, number);
}

/* Makes the names unique, because monitoring systems do not accept a series twice. */
static void name_nodes(void)
{
    unsigned i, n;

    for (i = 0; i < target_count; i++) {
        const struct redlock_url *url = &targets[i].url;
        exams[i].target = &targets[i];
        strcpy(exams[i].name, url->address);
        if (url->database != 0)
            append(exams[i].name, "/", url->database);
        for (n = 0; n < i && strcmp(exams[n].name, exams[i].name) != 0; n++)
            continue;
        if (n < i)
            append(exams[i].name, "#", i + 1);
    }
}

static struct verdict_of_all sum_up(void)
{
    struct verdict_of_all all = {0, 0, 0};
    enum verdict worst_of_all = PASS;
    unsigned i, n;

    for (i = 0; i < target_count; i++) {
        enum verdict worst = PASS;
        for (n = 0; n < CHECKS; n++) {
            if (exams[i].finding[n].verdict > worst)
                worst = exams[i].finding[n].verdict;
            all.skipped += exams[i].finding[n].verdict == SKIPPED;
        }
        all.usable += worst < FAIL;
        worst_of_all = worst > worst_of_all ? worst : worst_of_all;
    }
    if (worst_of_all == UNSAFE || all.usable < quorum() || (options.strict && worst_of_all >= WARN))
        all.status = EXIT_CRITICAL;
    else if (worst_of_all >= WARN)
        all.status = EXIT_WARNING;
    return all;
}

int verb_check(int count, char **words)
{
    struct verdict_of_all all;

    (void)words;
    if (count != 0)
        die(EXIT_USAGE, "check: unexpected argument");
    if (options.json + options.nagios + options.prometheus > 1)
        die(EXIT_USAGE, "check: one of --json, --nagios, --prometheus");
    if (options.ttl_ms < TTL_MIN_MS)
        die(EXIT_USAGE, "check: --ttl: at least %d ms", (int)TTL_MIN_MS);
    nodes_read();
    name_nodes();
    draw_keys();
    examine();
    judge_all();
    all = sum_up();
    report(&all);
    must_be_written();
    return all.status;
}
