/* check.c - redlock check: what makes locks on these nodes unsafe or fragile. The conversation with a node fills in its findings; what
   concerns several nodes is found afterwards. A finding is printed once, with the nodes that it is about.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "ask.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* The larger the worse. */
enum verdict {
    PASS,
    UNKNOWN, /* the node does not permit to ask */
    WARN,
    FAIL,  /* the node has no vote, which costs availability only */
    UNSAFE /* its vote may be false: one such node can be enough for two holders */
};

enum {
    COUNT,
    REACH,
    KIND,
    DISTINCT,
    PAIR,
    LOCK,
    DURABLE,
    RESTART,
    EVICTION,
    REPLICAS,
    CLOCK,
    LATENCY,
    CHECKS
};

enum {
    ROUNDS = 100,      /* of SET, for the latency */
    LATENCY_MS = 1500, /* the limit for these */
    LIMIT_MS = 8000,   /* for all of a node */
    PROBE_MS = 2000,   /* the least ttl of a key, in case this program is killed */
    PATIENCE =
        24 /* multiples of the node timeout that such a key lives: 6 questions, each FIRST_TIMES as long */
};

static const struct check {
    const char *name, *why, *fix;
} checks[CHECKS] = {
    {"node count", "a lock needs a majority: an even number helps no more than one less",
     "3 or 5 servers that fail independently"},
    {"reachable", "a node that does not answer in time, or does not let the client in, has no vote",
     "see that it runs, its address, bind, protected-mode, firewalls; or raise --node-timeout"},
    {"server kind", "replicas, sentinels and clusters lose locks with a failover",
     "independent masters, with cluster-enabled no"},
    {"distinct servers",
     "one server with two votes makes a false majority; one machine fails as one",
     "each server once, no two on one machine"},
    {"failover pair", "when a replica is promoted it does not have the last locks",
     "servers that share no data set"},
    {"lock commands", "a lock is SET NX PX; extending and releasing it is a script",
     "see the error"},
    {"survives restart", "a node that forgets locks lets a second holder in",
     "longest-ttl in the configuration of all programs; or appendfsync always"},
    {"recent restart", "locks from before may still be held",
     "longest-ttl in the configuration of all programs; or wait that long (RestartSec=)"},
    {"eviction", "a lock may be thrown away, as any key with a ttl",
     "maxmemory-policy noeviction, with room; a server for locks alone"},
    {"replicas", "a promoted replica does not have the last locks",
     "no replicas, no automatic failover, min-replicas-to-write 0"},
    {"clock", "if the clock is corrected, keys expire early or late by the same amount",
     "time synchronisation (chrony, ntpd) that slews, there and here"},
    {"latency", "answers after the node timeout are lost votes",
     "--node-timeout of four times the p99, at least 250ms; a faster disk or network, a nearer "
     "node"},
};

struct finding {
    enum verdict verdict;
    const char *fix; /* NULL: that of the error in `value`, or of the check */
    char value[160];
};

/* What is known about one node. */
struct exam {
    struct result result;
    struct finding finding[CHECKS];
    char version[24];
    char run_id[48], replid[48], replid2[48]; /* "": not known */
    int accepts;                              /* 1: it has accepted a SET */
    uint32_t rounds, p50_us, p99_us;          /* of SET */
};

static struct exam *exams;
static char probe[48]; /* the beginning of the names of the keys that are set */

static void finds(struct exam *exam, int check, enum verdict verdict, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static void finds(struct exam *exam, int check, enum verdict verdict, const char *format, ...)
{
    struct finding *finding = &exam->finding[check];
    va_list arguments;

    finding->verdict = verdict;
    finding->fix = NULL;
    va_start(arguments, format);
    vsnprintf(finding->value, sizeof finding->value, format, arguments);
    va_end(arguments);
}

/* ---- In the child of a node: what the server says of itself ---- */

static long long number_in(const struct talk *talk, const char *field)
{
    char value[32];

    field_of(talk, field, value, sizeof value);
    return value[0] != '\0' ? strtoll(value, NULL, 10) : -1;
}

static void judge_kind(struct exam *exam, const char *mode, const char *role)
{
    if (strcmp(mode, "standalone") != 0)
        finds(exam, KIND, UNSAFE, "%s", mode);
    else if (strcmp(role, "master") == 0)
        finds(exam, KIND, PASS, "standalone master");
    else
        finds(exam, KIND, FAIL, "%s", role);
}

static double megabytes(long long bytes)
{
    return (double)bytes / 1048576;
}

static void judge_memory(const struct talk *talk, struct exam *exam)
{
    long long most = number_in(talk, "maxmemory"), used = number_in(talk, "used_memory");
    char policy[32];

    field_of(talk, "maxmemory_policy", policy, sizeof policy);
    if (most > 0 && strcmp(policy, "noeviction") != 0)
        finds(exam, EVICTION, UNSAFE, "%s at %.1f MB", policy, megabytes(most));
    else if (most > 0 && used >= most)
        finds(exam, EVICTION, WARN, "noeviction, and full: %.1f of %.1f MB", megabytes(used),
              megabytes(most));
    else if (most > 0 && used > most / 10 * 8)
        finds(exam, EVICTION, WARN, "noeviction, and almost full: %.1f of %.1f MB", megabytes(used),
              megabytes(most));
    else
        finds(exam, EVICTION, PASS, most > 0 ? "noeviction" : "no limit");
}

static void judge_replicas(const struct talk *talk, struct exam *exam)
{
    long long replicas = number_in(talk, "connected_slaves");
    char failover[32];

    field_of(talk, "master_failover_state", failover, sizeof failover);
    if (failover[0] != '\0' && strcmp(failover, "no-failover") != 0)
        finds(exam, REPLICAS, UNSAFE, "%s", failover);
    else if (replicas > 0)
        finds(exam, REPLICAS, WARN, "%lld: only good if none is ever promoted", replicas);
    else
        finds(exam, REPLICAS, PASS, "none");
}

/* How many seconds a restarted node must have no vote. With `longest-ttl`: as long as the library waits (rl_votes_from_now), which adds
   the drift of the clocks, 1 % and 3 ms at most, and 2 s. */
static long long quarantine_s(void)
{
    long long longest_ms = options.longest_ttl_ms;

    return longest_ms > 0 ? (longest_ms + longest_ms / 100 + 2003 + 999) / 1000
                          : options.ttl_ms / 1000 + 1;
}

/* The programs wait as `longest-ttl` says, so a node that forgets its locks is only missing for a while. */
static void judge_restart(struct exam *exam, long long up_s)
{
    long long rest_s = quarantine_s() - up_s;

    if (up_s < 0) {
        finds(exam, RESTART, UNKNOWN, "it does not tell");
    } else if (rest_s <= 0) {
        finds(exam, RESTART, PASS, "up for %lld s", up_s);
    } else if (options.longest_ttl_ms > 0) {
        finds(exam, RESTART, FAIL, "up for %lld s: with longest-ttl no vote for %lld s more", up_s,
              rest_s);
        exam->finding[RESTART].fix = "wait";
    } else {
        finds(exam, RESTART, UNSAFE, "up for %lld s: back too early, keep it out for %lld s more",
              up_s, rest_s);
    }
}

/* The value of a setting; "" if CONFIG GET is not permitted, or there is no such setting. */
static void ask_setting(struct talk *talk, const char *name, char value[32])
{
    value[0] = '\0';
    if (ask_any(talk, "CONFIG", "GET", name, NULL) && talk->items == 3)
        snprintf(value, 32, "%s", talk->item[2].text);
}

static void judge_durability(struct talk *talk, struct exam *exam, int has_aof, long long up_s)
{
    char fsync[32] = "", rewrite[32] = "";
    const char *wrong;

    if (has_aof) {
        ask_setting(talk, "appendfsync", fsync);
        ask_setting(talk, "no-appendfsync-on-rewrite", rewrite);
    }
    if (strcmp(fsync, "always") == 0 && strcmp(rewrite, "no") == 0) {
        finds(exam, DURABLE, PASS, "appendfsync always");
        if (options.longest_ttl_ms > 0) /* the programs do not ask for this setting */
            judge_restart(exam, up_s);
        else
            finds(exam, RESTART, PASS, "it forgets nothing");
        return;
    }
    judge_restart(exam, up_s);
    wrong = !has_aof                       ? "no AOF: a restart loses locks"
            : fsync[0] == '\0'             ? "not known: CONFIG GET is not permitted"
            : strcmp(fsync, "always") != 0 ? "appendfsync is not always: power loss loses locks"
                                           : "appendfsync always, but not during rewrites";
    finds(exam, DURABLE, options.longest_ttl_ms > 0 ? PASS : WARN, "%s%s", wrong,
          options.longest_ttl_ms > 0 ? "; longest-ttl keeps it out then" : "");
}

/* Without INFO an unsafe node may stay unnoticed. */
static void miss_info(struct exam *exam, const char *why)
{
    static const int of_info[] = {KIND, DISTINCT, DURABLE, EVICTION},
                     others[] = {PAIR, RESTART, REPLICAS};
    size_t n;

    for (n = 0; n < sizeof of_info / sizeof *of_info; n++)
        finds(exam, of_info[n], WARN, "not known: INFO: %.120s", why);
    for (n = 0; n < sizeof others / sizeof *others; n++)
        finds(exam, others[n], UNKNOWN, "not known: INFO: %.120s", why);
}

static void judge_info(struct talk *talk, struct exam *exam)
{
    char role[16], mode[16];
    long long up_s;
    int has_aof;

    if (!ask_any(talk, "INFO", NULL))
        return;
    if (is_error(talk, "NOAUTH") || is_error(talk, "DENIED") ||
        is_error(talk, "ERR max number of clients")) {
        refuses(talk); /* so the server will answer nothing */
        return;
    }
    if (!is_kind(talk, RESP_STRING)) {
        miss_info(exam, text_of(talk));
        return;
    }
    field_of(talk, "run_id", exam->run_id, sizeof exam->run_id);
    field_of(talk, "master_replid", exam->replid, sizeof exam->replid);
    field_of(talk, "master_replid2", exam->replid2, sizeof exam->replid2);
    field_of(talk, "redis_version", exam->version, sizeof exam->version);
    field_of(talk, "role", role, sizeof role);
    field_of(talk, "redis_mode", mode, sizeof mode);
    judge_kind(exam, mode, role);
    judge_memory(talk, exam);
    judge_replicas(talk, exam);
    up_s = number_in(talk, "uptime_in_seconds");
    has_aof = number_in(talk, "aof_enabled") == 1;
    judge_durability(talk, exam, has_aof, up_s); /* the last: it asks again */
}

/* ---- In the child of a node: what is tried ---- */

static void judge_clock(struct talk *talk, struct exam *exam)
{
    double here, there, doubt;

    if (!ask_any(talk, "TIME", NULL))
        return;
    if (talk->items != 3) {
        finds(exam, CLOCK, UNKNOWN, "not known: TIME: %.120s", text_of(talk));
        return;
    }
    doubt = (double)talk->rtt_us / 2e6;
    here = (double)redlock_posix()->wall_us(NULL) / 1e6 - doubt;
    there = strtod(talk->item[1].text, NULL) + strtod(talk->item[2].text, NULL) / 1e6;
    if (here - there > 1 + doubt && options.longest_ttl_ms > 0) /* so its uptime will be too long */
        finds(exam, CLOCK, WARN,
              "%+.1f s from the clock here: once corrected, longest-ttl may let it vote too early",
              there - here);
    else if (there - here > 1 + doubt || here - there > 1 + doubt)
        finds(exam, CLOCK, WARN, "%+.1f s from the clock here", there - here);
    else
        finds(exam, CLOCK, PASS, "within 1 s of the clock here");
}

/* The answer to a command of a lock is an error, so the node has no vote; or it is wrong, which proves something only if the key
   cannot have expired. */
static int judge_answer(struct talk *talk, struct exam *exam, const char *what, int is_right,
                        uint64_t end_us)
{
    if (is_right)
        return 1;
    if (talk->result->error[0] != '\0')
        return 0; /* the connection is lost */
    if (is_error(talk, ""))
        finds(exam, LOCK, FAIL, "%s: %.120s", what, text_of(talk));
    else if (now_us() < end_us)
        finds(exam, LOCK, UNSAFE, "%s: not what was asked for", what);
    return 0;
}

/* The commands of a lock, with the answers that it needs. */
static int try_a_lock(struct talk *talk, struct exam *exam, const char *key, const char *ttl,
                      uint64_t end_us)
{
    static const char extend[] = "local c,k=redis.call,KEYS[1]if c('get',k)==ARGV[1]then return "
                                 "c('pexpire',k,math.max(ARGV[2],c('pttl',k)))end return 0";
    static const char release[] =
        "if redis.call('get',KEYS[1])==ARGV[1]then return redis.call('del',KEYS[1])end return 0";
    static const char mine[] = "redlock check", other[] = "of another";

    exam->accepts =
        ask_any(talk, "SET", key, mine, "NX", "PX", ttl, NULL) && is_kind(talk, RESP_STATUS);
    return judge_answer(talk, exam, "SET NX PX", exam->accepts, end_us) &&
           judge_answer(talk, exam, "SET NX PX of what is held",
                        ask_any(talk, "SET", key, other, "NX", "PX", ttl, NULL) &&
                            is_kind(talk, RESP_NIL),
                        end_us) &&
           judge_answer(talk, exam, "extension",
                        ask_any(talk, "EVAL", extend, "1", key, mine, ttl, NULL) &&
                            number_of(talk) == 1,
                        end_us) &&
           judge_answer(talk, exam, "release by another",
                        ask_any(talk, "EVAL", release, "1", key, other, NULL) &&
                            number_of(talk) == 0,
                        end_us) &&
           judge_answer(talk, exam, "release",
                        ask_any(talk, "EVAL", release, "1", key, mine, NULL) &&
                            number_of(talk) == 1,
                        end_us);
}

static void judge_latency(struct talk *talk, struct exam *exam, const char *key)
{
    uint64_t until_us = now_us() + (uint64_t)LATENCY_MS * 1000;
    uint32_t us[ROUNDS];
    unsigned n = 0;
    long p99_ms;

    while (n < ROUNDS && now_us() < until_us &&
           ask(talk, "SET", key, "redlock check", "PX", "1000", NULL))
        us[n++] = (uint32_t)talk->rtt_us;
    ask_any(talk, "DEL", key, NULL); /* if that is denied, the key expires */
    if (n == 0)
        return;
    sort_times(us, n);
    exam->rounds = n;
    exam->p50_us = us[n / 2];
    exam->p99_us = us[n * 99 / 100];
    p99_ms = (long)(exam->p99_us / 1000);
    finds(exam, LATENCY,
          p99_ms >= options.node_timeout_ms      ? FAIL
          : p99_ms > options.node_timeout_ms / 4 ? WARN
                                                 : PASS,
          "p50 %.1f ms, p99 %.1f ms of %ld ms", (double)exam->p50_us / 1000,
          (double)exam->p99_us / 1000, options.node_timeout_ms);
}

/* The key that is set on node i. Exits if it is too long. */
static void probe_key(char key[REDLOCK_KEY_MAX + 1], unsigned i)
{
    char name[64];

    snprintf(name, sizeof name, "%s-%u", probe, i);
    key_of(key, name);
}

static void converse(struct talk *talk, unsigned i, void *result)
{
    long ttl_ms = PATIENCE * options.node_timeout_ms;
    char key[REDLOCK_KEY_MAX + 1], ttl[24];
    struct exam *exam = result;

    if (talk->result->is_open) {
        finds(exam, REACH, WARN, "a password is given, but the server wants none");
        exam->finding[REACH].fix = "leave the password out, or require one: requirepass, ACL";
    }
    probe_key(key, i);
    ttl_ms = ttl_ms > PROBE_MS ? ttl_ms : PROBE_MS;
    snprintf(ttl, sizeof ttl, "%ld", ttl_ms);
    judge_info(talk, exam);
    judge_clock(talk, exam);
    if (try_a_lock(talk, exam, key, ttl, now_us() + (uint64_t)ttl_ms * 1000))
        judge_latency(talk, exam, key);
    else
        finds(exam, LATENCY, UNKNOWN, "not measured");
    if (exam->finding[KIND].verdict == FAIL && exam->accepts)
        exam->finding[KIND].verdict = UNSAFE; /* a replica that accepts writes, and loses them */
}

/* ---- All nodes together ---- */

static int same_server(unsigned i, unsigned n)
{
    if (strcmp(targets[i].address, targets[n].address) == 0)
        return targets[i].error == NULL;
    return exams[i].run_id[0] != '\0' && strcmp(exams[i].run_id, exams[n].run_id) == 0;
}

/* Compares addresses without their ports; all unix sockets are on one machine. */
static int same_machine(unsigned i, unsigned n)
{
    const char *one = targets[i].address, *other = targets[n].address;
    const char *end = strncmp(one, "unix:", 5) == 0 ? one + 4 : strrchr(one, ':');

    return end != NULL && strncmp(one, other, (size_t)(end - one) + 1) == 0;
}

static void compare(unsigned i, unsigned n)
{
    const char *other = targets[n].url.address;
    struct exam *exam = &exams[i];

    if (n < i && same_server(i, n))
        finds(exam, DISTINCT, UNSAFE, "the same server as %s", other);
    if (exam->result.error[0] != '\0' || exams[n].result.error[0] != '\0')
        return;
    if (n < i && exam->finding[DISTINCT].verdict == PASS && same_machine(i, n))
        finds(exam, DISTINCT, WARN, "on one machine with %s", other);
    if (same_server(i, n) || exam->replid[0] == '\0' || exams[n].replid[0] == '\0')
        return;
    if (strcmp(exam->replid, exams[n].replid) == 0)
        finds(exam, PAIR, UNSAFE, "one data set with %s", other);
    else if (strcmp(exam->replid2, exams[n].replid) == 0)
        finds(exam, PAIR, WARN, "was a replica of %s", other);
}

/* A node with which the conversation has failed. */
static void miss_all(struct exam *exam)
{
    int n;

    for (n = KIND; n < CHECKS; n++)
        if (exam->finding[n].verdict == PASS && exam->finding[n].value[0] == '\0')
            finds(exam, n, UNKNOWN, "not reached");
    finds(exam, REACH, FAIL, "%.150s", exam->result.error);
    if (exam->result.fault == REDLOCK_FAULT_TLS)
        exam->finding[REACH].fix =
            "certificates, their names and dates: --cacert, --cert, --key, --sni";
}

static void judge_all(void)
{
    unsigned i, n, spare = (target_count - 1) / 2;

    finds(&exams[0], COUNT,
          target_count % 2 == 0 || target_count == 1 || target_count > 9 ? WARN : PASS,
          "%u: %u may fail%s", target_count, spare,
          target_count > 9 ? "; each lock asks all of them" : "");
    for (i = 0; i < target_count; i++) {
        if (exams[i].result.error[0] != '\0')
            miss_all(&exams[i]);
        for (n = 0; n < target_count; n++)
            if (n != i)
                compare(i, n);
    }
}

/* ---- Output ---- */

static const char *const verdict_names[] = {"pass", "unknown", "warn", "fail", "unsafe"};
static const char *const status_names[] = {"OK", "WARNING", "CRITICAL"};

static int is_same(const struct finding *a, const struct finding *b)
{
    return a->verdict == b->verdict && strcmp(a->value, b->value) == 0;
}

/* 1: another node before this one has the same finding, so it has been printed. */
static int is_told(int check, unsigned i)
{
    unsigned n = 0;

    while (n < i && !is_same(&exams[n].finding[check], &exams[i].finding[check]))
        n++;
    return n < i;
}

static const char *fix_of(int check, const struct finding *finding)
{
    const char *fix = finding->fix;

    if (fix == NULL && (check == REACH || check == LOCK || check == RESTART))
        fix = fix_for(finding->value);
    return fix != NULL ? fix : checks[check].fix;
}

/* Behind the findings of a check: why they matter, and what to do, each once. */
static void print_advice(int check)
{
    unsigned i, n;

    print("        why: %s\n", checks[check].why);
    for (i = 0; i < target_count; i++) {
        const char *fix = fix_of(check, &exams[i].finding[check]);
        for (n = 0; n < i && (exams[n].finding[check].verdict < WARN ||
                              fix_of(check, &exams[n].finding[check]) != fix);
             n++)
            continue;
        if (exams[i].finding[check].verdict >= WARN && n == i)
            print("        fix: %s\n", fix);
    }
}

/* Prints a check, each finding once, with the nodes that have it. */
static void print_text(int check)
{
    char text[4 * sizeof exams->finding->value];
    unsigned i, n;
    int is_bad = 0;

    for (i = 0; i < (check == COUNT ? 1 : target_count); i++) {
        const struct finding *finding = &exams[i].finding[check];
        if (is_told(check, i) || (finding->verdict < WARN && !options.verbose))
            continue;
        printable(text, sizeof text, finding->value);
        print("%-8s%-18s%s", verdict_names[finding->verdict], checks[check].name, text);
        for (n = i; n < target_count && check != COUNT; n++)
            if (is_same(&exams[n].finding[check], finding))
                print("%s%s", n == i ? "  [" : " ", targets[n].url.address);
        print(check != COUNT ? "]\n" : "\n");
        is_bad |= finding->verdict >= WARN;
    }
    if (is_bad)
        print_advice(check);
}

/* The names of the checks that have findings, on the first line. */
static void print_names(void)
{
    const char *before = ": ";
    unsigned i;
    int n;

    for (n = 0; n < CHECKS; n++) {
        for (i = 0; i < target_count && exams[i].finding[n].verdict < WARN; i++)
            continue;
        if (i < target_count) {
            print("%s%s", before, checks[n].name);
            before = ", ";
        }
    }
}

static void print_nodes(void)
{
    char version[sizeof exams->version * 4];
    unsigned i;

    for (i = 0; i < target_count; i++) {
        printable(version, sizeof version, exams[i].version);
        print("node    %s", targets[i].url.address);
        if (version[0] != '\0')
            print("  version %s", version);
        if (exams[i].rounds > 0)
            print("  p50 %.1f ms, p99 %.1f ms", (double)exams[i].p50_us / 1000,
                  (double)exams[i].p99_us / 1000);
        print("\n");
    }
}

/* The same as a line of JSON for each finding. */
static void print_json(int check)
{
    unsigned i, n;

    for (i = 0; i < (check == COUNT ? 1 : target_count); i++) {
        const struct finding *finding = &exams[i].finding[check];
        if (is_told(check, i))
            continue;
        json_begin("check");
        json_member("check", checks[check].name);
        json_member("result", verdict_names[finding->verdict]);
        json_member("value", finding->value);
        print(",\"on\":[");
        for (n = i; n < target_count && check != COUNT; n++)
            if (is_same(&exams[n].finding[check], finding)) {
                print(n == i ? "" : ",");
                json_string(targets[n].url.address);
            }
        print("]");
        if (finding->verdict >= WARN) {
            json_member("why", checks[check].why);
            json_member("fix", fix_of(check, finding));
        }
        print("}\n");
    }
}

static void print_json_nodes(void)
{
    unsigned i;

    for (i = 0; i < target_count; i++) {
        json_begin("check");
        json_member("node", targets[i].url.address);
        json_member("version", exams[i].version);
        if (exams[i].rounds > 0)
            print(",\"p50_ms\":%.3f,\"p99_ms\":%.3f", (double)exams[i].p50_us / 1000,
                  (double)exams[i].p99_us / 1000);
        print("}\n");
    }
}

/* Returns the exit status, and how many nodes have no failure. */
static int sum_up(unsigned *usable)
{
    enum verdict worst = PASS, of_node;
    unsigned i;
    int n;

    for (i = *usable = 0; i < target_count; i++) {
        for (n = 0, of_node = PASS; n < CHECKS; n++)
            if (exams[i].finding[n].verdict > of_node)
                of_node = exams[i].finding[n].verdict;
        *usable += of_node < FAIL;
        worst = of_node > worst ? of_node : worst;
    }
    return worst == UNSAFE || *usable < quorum() ? EXIT_CRITICAL : worst >= WARN ? EXIT_WARNING : 0;
}

int verb_check(int count, char **words)
{
    char random[33], key[REDLOCK_KEY_MAX + 1];
    struct patience patience;
    unsigned usable;
    int n, status;

    (void)words;
    if (count != 0)
        die(EXIT_USAGE, "check: unexpected argument");
    if (options.ttl_ms < TTL_MIN_MS)
        die(EXIT_USAGE, "check: --ttl: at least %d ms", (int)TTL_MIN_MS);
    nodes_read();
    put_random(random, 16);
    snprintf(probe, sizeof probe, "check:%s", random);
    probe_key(key, target_count - 1); /* none is longer */
    patience.step_ms = options.node_timeout_ms * FIRST_TIMES;
    patience.rest_ms = patience.limit_ms = LIMIT_MS + patience.step_ms; /* each node is examined */
    exams = ask_nodes(converse, sizeof *exams, &patience);
    judge_all();
    status = sum_up(&usable);
    if (options.json) {
        json_begin("check");
        json_member("status", status_names[status]);
        print(",\"nodes\":%u,\"quorum\":%u,\"usable\":%u}\n", target_count, quorum(), usable);
        for (n = 0; n < CHECKS; n++)
            print_json(n);
        print_json_nodes();
    } else {
        print("REDLOCK %s - %u of %u nodes usable, quorum %u", status_names[status], usable,
              target_count, quorum());
        print_names();
        print("\n");
        for (n = 0; n < CHECKS && !options.quiet; n++)
            print_text(n);
        if (!options.quiet)
            print_nodes();
    }
    must_be_written();
    return status;
}
