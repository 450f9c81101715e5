/* judge.c - the checks of redlock check: a small function for each, which examines the answers of a node.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "check.h"
#include "talk.h"

#include <arpa/inet.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static void finds(struct finding *finding, enum verdict verdict, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void finds(struct finding *finding, enum verdict verdict, const char *format, ...)
{
    va_list arguments;

    finding->verdict = verdict;
    va_start(arguments, format);
    vsnprintf(finding->value, sizeof finding->value, format, arguments);
    va_end(arguments);
}

/* Returns 1 if this question was answered; else the finding says why not. */
static int knows(struct finding *finding, const struct exam *exam, enum question question)
{
    static const char *const names[QUESTIONS] = {"hello", "time", "set",  "get",
                                                 "pttl",  "eval", "info", "config|get"};
    const char *refusal = exam->refusal[question];

    if ((exam->answered & (1U << question)) != 0)
        return 1;
    if (strncmp(refusal, "NOPERM", 6) == 0)
        finds(finding, SKIPPED, "no permission: +%s", names[question]);
    else if (strncmp(refusal, "ERR unknown command", 19) == 0)
        finds(finding, SKIPPED, "no such command there: %s", names[question]);
    else if (refusal[0] != '\0')
        finds(finding, SKIPPED, "%s", refusal);
    else
        finds(finding, SKIPPED, exam->error[0] != '\0' ? "not reached" : "not asked");
    return 0;
}

/* The same for a setting. */
static int knows_setting(struct finding *finding, const struct exam *exam, enum setting setting)
{
    if ((exam->settings & (1U << setting)) != 0)
        return 1;
    if (knows(finding, exam, ASK_CONFIG))
        finds(finding, SKIPPED, "it has no setting %s", setting_names[setting]);
    return 0;
}

/* A field of INFO; "" (number_of: -1) if there is no such field. */
struct field {
    char text[128];
};

static struct field field_of(const char *info, const char *name)
{
    struct field field = {""};

    if (info != NULL)
        talk_field(info, name, field.text, sizeof field.text);
    return field;
}

static long long number_of(const char *info, const char *name)
{
    const struct field field = field_of(info, name);

    return field.text[0] != '\0' ? count_of(field.text) : -1;
}

static int begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

long long count_of(const char *text)
{
    const long long most = 4000000000000;
    long long count = strtoll(text, NULL, 10);

    return count < 0 ? 0 : count < most ? count : most;
}

uint32_t percentile(const struct exam *exam, unsigned percent)
{
    return exam->rtts > 0 ? exam->rtt_us[(exam->rtts - 1) * percent / 100] : 0;
}

/* ---- Reachable, and of the right kind ---- */

static void judge_count(struct finding *finding, const struct exam *exam)
{
    unsigned survives = (target_count - 1) / 2;

    (void)exam;
    if (target_count == 1)
        finds(finding, WARN, "1: none may fail");
    else if (target_count % 2 == 0)
        finds(finding, WARN, "%u: %u may fail, as with %u", target_count, survives,
              target_count - 1);
    else if (target_count > 9)
        finds(finding, WARN, "%u: each lock asks all of them", target_count);
    else
        finds(finding, PASS, "%u: %u may fail", target_count, survives);
}

static int is_full(const struct exam *exam)
{
    return begins(exam->error, "ERR max number of clients");
}

static int lacks_credentials(const struct exam *exam)
{
    return !is_full(exam) && !begins(exam->error, "DENIED") &&
           (begins(exam->error, "NOAUTH") ||
            (exam->refused != NULL && strcmp(exam->refused, "AUTH") == 0));
}

static int lacks_database(const struct exam *exam)
{
    return exam->refused != NULL && strcmp(exam->refused, "SELECT") == 0;
}

static void judge_reach(struct finding *finding, const struct exam *exam)
{
    if (exam->error[0] != '\0' && !is_full(exam) && !lacks_credentials(exam) &&
        !lacks_database(exam))
        finds(finding, FAIL, "%s", exam->error);
}

static void judge_credentials(struct finding *finding, const struct exam *exam)
{
    if (lacks_credentials(exam))
        finds(finding, FAIL, "%s",
              begins(exam->error, "NOAUTH") ? "NOAUTH: the server wants a password" : exam->error);
    else if (exam->answered == 0)
        finds(finding, SKIPPED, "not reached");
    else if (exam->is_open)
        finds(finding, WARN, "a password is given, but the server wants none");
}

static void judge_database(struct finding *finding, const struct exam *exam)
{
    unsigned long mine = exam->target->url.database, first = targets[0].url.database;

    if (lacks_database(exam))
        finds(finding, UNSAFE, "%lu: %s", mine, exam->error);
    else if (mine != first)
        finds(finding, WARN, "%lu here, %lu on the first node", mine, first);
    else
        finds(finding, PASS, "%lu", mine);
}

static void judge_kind(struct finding *finding, const struct exam *exam)
{
    if (exam->mode[0] == '\0')
        knows(finding, exam, ASK_INFO);
    else if (strcmp(exam->mode, "standalone") != 0)
        finds(finding, UNSAFE, "%s", exam->mode);
    else
        finds(finding, PASS, "%s", exam->mode);
}

static void judge_role(struct finding *finding, const struct exam *exam)
{
    if (exam->role[0] == '\0')
        knows(finding, exam, ASK_INFO);
    else if (strcmp(exam->role, "master") == 0)
        finds(finding, PASS, "master");
    else if (exam->accepts)
        finds(finding, UNSAFE, "%s that accepts writes, and loses them", exam->role);
    else
        finds(finding, FAIL, "%s", exam->role);
}

static int same_server(const struct exam *a, const struct exam *b)
{
    const struct field one = field_of(a->info, "run_id"), other = field_of(b->info, "run_id");

    if (strcmp(a->target->address, b->target->address) == 0)
        return a->target->error == NULL;
    return one.text[0] != '\0' && strcmp(one.text, other.text) == 0;
}

/* Compares addresses without their ports; all unix sockets are on one machine. */
static int same_machine(const struct exam *a, const struct exam *b)
{
    const char *one = a->target->address, *other = b->target->address;
    const char *end = begins(one, "unix:") ? one + 4 : strrchr(one, ':');

    return end != NULL && strncmp(one, other, (size_t)(end - one) + 1) == 0;
}

static void judge_distinct(struct finding *finding, const struct exam *exam)
{
    const struct exam *other;

    for (other = exams; other < exam; other++)
        if (same_server(exam, other)) {
            finds(finding, UNSAFE, "the same server as %s", other->name);
            return;
        }
    if (exam->twin) {
        finds(finding, UNSAFE, "a key that was set through another node is here");
        return;
    }
    if (exam->info == NULL && !exam->accepts) {
        knows(finding, exam, ASK_INFO);
        return;
    }
    for (other = exams; other < exam; other++)
        if (same_machine(exam, other))
            finds(finding, WARN, "on one machine with %s", other->name);
}

static void judge_pair(struct finding *finding, const struct exam *exam)
{
    const struct field mine = field_of(exam->info, "master_replid");
    const struct field before = field_of(exam->info, "master_replid2");
    const struct exam *other;

    if (!knows(finding, exam, ASK_INFO))
        return;
    for (other = exams; other < exams + target_count; other++) {
        const struct field theirs = field_of(other->info, "master_replid");
        if (other == exam || theirs.text[0] == '\0' || same_server(exam, other))
            continue;
        if (strcmp(mine.text, theirs.text) == 0)
            finds(finding, UNSAFE, "one data set with %s", other->name);
        else if (strcmp(before.text, theirs.text) == 0)
            finds(finding, WARN, "was a replica of %s", other->name);
    }
}

/* ---- The commands of a lock ---- */

static void judge_lock(struct finding *finding, const struct exam *exam)
{
    if (exam->problem[0] != '\0')
        finds(finding, exam->lies ? UNSAFE : FAIL, "%s", exam->problem);
    else
        knows(finding, exam, ASK_SET);
}

static void judge_expiry(struct finding *finding, const struct exam *exam)
{
    /* The longest and the shortest TTL that fits the observations; a server rounds to a millisecond, up or down. */
    uint64_t most_us = exam->gone_us - exam->born_us;
    uint64_t least_us = exam->alive_us > exam->set_us ? exam->alive_us - exam->set_us : 0;

    if (exam->born_us == 0)
        knows(finding, exam, ASK_SET);
    else if (exam->gone_us == 0 && exam->alive_us == 0)
        knows(finding, exam, ASK_GET);
    else if (exam->gone_us != 0 && most_us < (EXPIRY_MS - 3) * 1000)
        finds(finding, UNSAFE, "a key of %d ms was gone after %.0f ms", EXPIRY_MS,
              (double)most_us / 1000);
    else if (least_us > EXPIRY_MS * 1500)
        finds(finding, WARN, "a key of %d ms was there after %.0f ms", EXPIRY_MS,
              (double)least_us / 1000);
    else
        finds(finding, PASS, "a key of %d ms was gone after %.0f ms at most", EXPIRY_MS,
              (double)most_us / 1000);
}

static void judge_version(struct finding *finding, const struct exam *exam)
{
    char *at;
    unsigned long major = strtoul(exam->version, &at, 10);
    unsigned long minor = *at == '.' ? strtoul(at + 1, &at, 10) : 0;
    unsigned long patch = *at == '.' ? strtoul(at + 1, &at, 10) : 0;

    if (major == 0) { /* no sscanf: it costs 12 KB of a static program */
        if (knows(finding, exam, ASK_INFO))
            finds(finding, SKIPPED, "it does not tell");
        return;
    }
    finds(finding, PASS, "%s", exam->version);
    if (major < 6 || (major == 6 && minor < 2))
        finding->verdict = WARN;
    if (major < 2 || (major == 2 && (minor < 6 || (minor == 6 && patch < 12))))
        finding->verdict = FAIL;
}

/* ---- Keeping locks ---- */

static void judge_durable(struct finding *finding, const struct exam *exam)
{
    const char *fsync = exam->setting[SETTING_FSYNC];

    if (!knows(finding, exam, ASK_INFO))
        return;
    if (number_of(exam->info, "aof_enabled") != 1) {
        finds(finding, WARN, "no AOF: a restart loses locks");
        return;
    }
    if (!knows_setting(finding, exam, SETTING_FSYNC) ||
        !knows_setting(finding, exam, SETTING_NO_FSYNC))
        return;
    if (strcmp(fsync, "always") != 0)
        finds(finding, WARN, "AOF %s: after power loss the last locks are gone", fsync);
    else if (strcmp(exam->setting[SETTING_NO_FSYNC], "no") != 0)
        finds(finding, WARN, "AOF always, but not during rewrites");
    else
        finds(finding, PASS, "AOF always");
}

static int failed(const struct exam *exam, const char *status)
{
    const struct field field = field_of(exam->info, status);

    return strcmp(field.text, "err") == 0;
}

static void judge_disk(struct finding *finding, const struct exam *exam)
{
    if (!knows(finding, exam, ASK_INFO))
        return;
    if (failed(exam, "aof_last_write_status"))
        finds(finding, FAIL, "the AOF can't be written");
    else if (failed(exam, "rdb_last_bgsave_status")) {
        int may_matter =
            (exam->settings & (1U << SETTING_SAVE)) == 0 || exam->setting[SETTING_SAVE][0] != '\0';
        finds(finding, may_matter ? FAIL : WARN, "the last snapshot failed");
    } else if (failed(exam, "aof_last_bgrewrite_status"))
        finds(finding, WARN, "the last rewrite of the AOF failed");
}

/* Indices of some checks in the table. */
enum { ROLE = 5, DISTINCT = 6, DURABLE = 11, EVICTION = 14, BUSY = 16 };

static void judge_restart(struct finding *finding, const struct exam *exam)
{
    long long up_ms = number_of(exam->info, "uptime_in_seconds") * 1000;

    if (!knows(finding, exam, ASK_INFO))
        return;
    if (exam->finding[DURABLE].verdict == PASS)
        finds(finding, PASS, "it forgets nothing");
    else if (up_ms < 0)
        finds(finding, SKIPPED, "it does not tell");
    else if (up_ms <= options.ttl_ms)
        finds(finding, UNSAFE, "up for %lld s: back too early, keep it out for %lld s more",
              up_ms / 1000, (options.ttl_ms - up_ms) / 1000 + 1);
    else
        finds(finding, PASS, "up for %lld s", up_ms / 1000);
}

static void judge_eviction(struct finding *finding, const struct exam *exam)
{
    long long most = number_of(exam->info, "maxmemory");
    long long used = number_of(exam->info, "used_memory");
    const struct field policy = field_of(exam->info, "maxmemory_policy");

    if (!knows(finding, exam, ASK_INFO))
        return;
    if (most > 0 && strcmp(policy.text, "noeviction") != 0)
        finds(finding, UNSAFE, "%s at %lld MB; evicted: %lld", policy.text, most >> 20,
              number_of(exam->info, "evicted_keys"));
    else if (most > 0 && used > most / 10 * 8)
        finds(finding, WARN, "%lld of %lld MB used: new locks are refused soon", used >> 20,
              most >> 20);
    else
        finds(finding, PASS, "%s", most > 0 ? "noeviction" : "no limit");
}

static void judge_replicas(struct finding *finding, const struct exam *exam)
{
    const struct field failover = field_of(exam->info, "master_failover_state");
    long long replicas;

    if (!knows(finding, exam, ASK_INFO))
        return;
    if (failover.text[0] != '\0' && strcmp(failover.text, "no-failover") != 0) {
        finds(finding, UNSAFE, "%s", failover.text);
        return;
    }
    replicas = number_of(exam->info, "connected_slaves");
    if (replicas > 0)
        finds(finding, WARN, "%lld: only good if none is ever promoted", replicas);
    else if (strtol(exam->setting[SETTING_REPLICAS], NULL, 10) > 0)
        finds(finding, WARN, "min-replicas-to-write %s", exam->setting[SETTING_REPLICAS]);
    else
        finds(finding, PASS, "none");
}

static void judge_busy(struct finding *finding, const struct exam *exam)
{
    unsigned q;

    for (q = 0; q < QUESTIONS; q++)
        if (begins(exam->refusal[q], "BUSY") || begins(exam->refusal[q], "LOADING")) {
            finds(finding, FAIL, "%s", exam->refusal[q]);
            return;
        }
    if (!knows(finding, exam, ASK_INFO))
        return;
    if (number_of(exam->info, "loading") > 0 || number_of(exam->info, "async_loading") > 0)
        finds(finding, FAIL, "loading its keys");
}

/* ---- Time ---- */

static double seconds(long long us)
{
    return (double)us / 1e6;
}

static long long size_of(long long value)
{
    return value < 0 ? -value : value;
}

static void judge_offset(struct finding *finding, const struct exam *exam)
{
    const struct reading *clock = &exam->clock[0];

    if (!knows(finding, exam, ASK_TIME))
        return;
    finds(finding,
          size_of(clock->ahead_wall_us) - (long long)clock->rtt_us / 2 >= 1000000 ? WARN : PASS,
          "%+.3f s from the clock here", seconds(clock->ahead_wall_us));
}

static void judge_rate(struct finding *finding, const struct exam *exam)
{
    const struct reading *first = &exam->clock[0], *last = &exam->clock[1];
    long long moved_us = last->ahead_us - first->ahead_us;
    /* the clock has moved at least by this */
    long long sure_us = size_of(moved_us) - (long long)(first->rtt_us + last->rtt_us) / 2;
    double window_us = (double)(last->at_us - first->at_us), percent;

    if (!knows(finding, exam, ASK_TIME))
        return;
    if (last->at_us == 0 || first->at_us == 0) {
        finds(finding, SKIPPED, "watched for no time");
        return;
    }
    percent = 100.0 * (double)sure_us / window_us;
    finds(finding,
          percent > 1                         ? UNSAFE
          : percent > 0.1 || sure_us > 100000 ? WARN
                                              : PASS,
          "moved by %+.4f s in %.1f s", seconds(moved_us), window_us / 1e6);
}

static void judge_latency(struct finding *finding, const struct exam *exam)
{
    uint64_t p99_us = percentile(exam, 99), timeout_us = (uint64_t)options.node_timeout_ms * 1000;

    if (exam->rtts == 0)
        knows(finding, exam, ASK_SET);
    else if (p99_us >= timeout_us || p99_us > (uint64_t)options.ttl_ms * 100)
        finds(finding, FAIL, "SET: p99 %.1f ms", (double)p99_us / 1000);
    else
        finds(finding, p99_us > timeout_us / 4 ? WARN : PASS, "SET: p99 %.1f ms of %ld ms",
              (double)p99_us / 1000, options.node_timeout_ms);
}

static void judge_stalls(struct finding *finding, const struct exam *exam)
{
    long long fork_us = number_of(exam->info, "latest_fork_usec");

    if (!knows(finding, exam, ASK_INFO))
        return;
    if (fork_us > options.node_timeout_ms * 1000)
        finds(finding, WARN, "the last fork took %lld ms", fork_us / 1000);
    else if (exam->delayed_fsyncs > 0)
        finds(finding, WARN, "%lld writes waited for the disk just now", exam->delayed_fsyncs);
}

/* ---- Other users ---- */

static void judge_room(struct finding *finding, const struct exam *exam)
{
    long long clients = number_of(exam->info, "connected_clients");
    long long most = number_of(exam->info, "maxclients");
    long long rejected = number_of(exam->info, "rejected_connections");

    if (is_full(exam)) {
        finds(finding, FAIL, "%s", exam->error);
        return;
    }
    if (!knows(finding, exam, ASK_INFO))
        return;
    finds(finding, rejected > 0 || (most > 0 && clients * 10 >= most * 8) ? WARN : PASS,
          "%lld of %lld, rejected: %lld", clients, most, rejected);
    if (most < 0 && rejected <= 0) /* before 6.2 INFO has no maximum */
        finds(finding, PASS, "%lld", clients);
}

/* A number in "cmdstat_keys:calls=1,usec=2,usec_per_call=2.00". */
static long long stat_of(const struct exam *exam, const char *command, const char *name)
{
    const struct field stat = field_of(exam->stats, command);
    const char *at = strstr(stat.text, name);

    return at != NULL ? count_of(at + strlen(name)) : 0;
}

/* Keys of all databases: "db0:keys=1,expires=0,avg_ttl=0". */
static long long keys_of(const char *info)
{
    const char *at = info;
    long long keys = 0;

    while (at != NULL && (at = strstr(at, "\ndb")) != NULL) {
        at++;
        if (begins(at + 2 + strspn(at + 2, "0123456789"), ":keys="))
            keys += count_of(strchr(at, '=') + 1);
    }
    return keys;
}

static void judge_shared(struct finding *finding, const struct exam *exam)
{
    long long keys = keys_of(exam->info), slow_us = stat_of(exam, "cmdstat_keys", "usec_per_call=");
    long long flushes =
        stat_of(exam, "cmdstat_flushall", "calls=") + stat_of(exam, "cmdstat_flushdb", "calls=");

    if (!knows(finding, exam, ASK_INFO))
        return;
    if (flushes > 0)
        finds(finding, WARN, "FLUSHALL or FLUSHDB since it started: %lld", flushes);
    else if (slow_us > 10000)
        finds(finding, WARN, "KEYS stops it for %lld ms", slow_us / 1000);
    else
        finds(finding, keys > 100000 ? WARN : PASS, "%lld keys", keys);
}

/* Loopback: 2, private networks: 1, all others: 0. */
static int privacy(const char *address)
{
    unsigned char b[16];
    char host[64];

    if (begins(address, "unix:"))
        return 2;
    snprintf(host, sizeof host, "%s", address + (*address == '['));
    host[strcspn(host, *address == '[' ? "]%" : ":")] = '\0';
    if (inet_pton(AF_INET, host, b) == 1)
        return b[0] == 127 ? 2
                           : b[0] == 10 || (b[0] == 172 && b[1] >> 4 == 1) ||
                                 (b[0] == 192 && b[1] == 168) || (b[0] == 169 && b[1] == 254) ||
                                 (b[0] == 100 && b[1] >> 6 == 1);
    if (inet_pton(AF_INET6, host, b) == 1)
        return memcmp(b, &in6addr_loopback, 16) == 0
                   ? 2
                   : (b[0] & 0xfe) == 0xfc || (b[0] == 0xfe && b[1] >> 6 == 2);
    return 0;
}

static void judge_exposure(struct finding *finding, const struct exam *exam)
{
    const struct redlock_url *url = &exam->target->url;
    int is_default = url->user[0] == '\0' || strcmp(url->user, "default") == 0;

    if (exam->answered == 0)
        finds(finding, SKIPPED, "not reached");
    else if (privacy(exam->target->address) == 2)
        finds(finding, PASS, "this machine");
    else if (url->password[0] == '\0')
        finds(finding, WARN, "it requires no password");
    else if (privacy(exam->target->address) == 0)
        finds(finding, WARN, "password and locks in plain text over a public network");
    else if (is_default && (exam->answered & (1U << ASK_CONFIG)) != 0)
        finds(finding, WARN, "user default, who may do everything");
}

static void judge_idle(struct finding *finding, const struct exam *exam)
{
    long idle_s;

    if (!knows_setting(finding, exam, SETTING_TIMEOUT))
        return;
    idle_s = strtol(exam->setting[SETTING_TIMEOUT], NULL, 10);
    finds(finding, idle_s > 0 && idle_s <= options.ttl_ms / 3000 ? WARN : PASS, "timeout %ld",
          idle_s);
}

/* ---- The table ---- */

const struct check checks[CHECKS] = {
    {"node count", judge_count,
     "a lock needs a majority, so an even number helps no more than one less",
     "3 or 5 servers that fail independently"},
    {"reachable", judge_reach, "a node that does not answer in time has no vote",
     "see that it runs, its address, bind, protected-mode, firewalls; or raise --node-timeout"},
    {"credentials", judge_credentials, "a node that refuses us has no vote",
     "user and password: in the address, --auth-file, REDISCLI_AUTH; ACL: see the manual"},
    {"database", judge_database, "locks in another database are not seen: two may hold one",
     "the same database on all nodes, for all programs; 0 needs no permission"},
    {"server kind", judge_kind,
     "a cluster takes some names only and moves them, with a failover that loses locks",
     "independent servers, with cluster-enabled no"},
    {"role", judge_role, "a replica has no vote of its own", "name its master, or end replicaof"},
    {"distinct servers", judge_distinct,
     "one server with two votes makes a false majority; one machine fails as one",
     "each server once, each on a machine of its own"},
    {"failover pair", judge_pair, "when a replica is promoted it does not have the last locks",
     "servers that share no data set"},
    {"lock commands", judge_lock, "a lock is SET NX PX; extending and releasing it is a script",
     "permit +set +get +del +pexpire +pttl +eval on the prefix; the error says the rest"},
    {"expiry", judge_expiry, "a lock that ends before its time has two holders",
     "see to its clock: slew, don't step; in a virtual machine use the host's"},
    {"version", judge_version,
     "before 6.2: out of support, no or weak ACL; before 2.6.12: no SET NX PX",
     "Redis 6.2 or later, or Valkey"},
    {"survives restart", judge_durable, "a node that forgets locks lets a second holder in",
     "appendfsync always; or keep a restarted node out for the longest ttl (RestartSec=)"},
    {"disk errors", judge_disk, "a server that can't write refuses to (MISCONF)",
     "see its log, and whether the disk is full"},
    {"recent restart", judge_restart, "locks from before may still be held",
     "keep a restarted node out for the longest ttl (RestartSec=), or appendfsync always"},
    {"eviction", judge_eviction, "a lock may be thrown away, as any key with a ttl",
     "maxmemory-policy noeviction, with room; a server for locks alone"},
    {"replicas", judge_replicas, "a promoted replica does not have the last locks",
     "no replicas, no automatic failover, min-replicas-to-write 0"},
    {"busy", judge_busy, "while it loads or runs a long script it has no vote",
     "wait; SCRIPT KILL; a server for locks alone"},
    {"clock offset", judge_offset,
     "if the clock is corrected, keys expire early or late by the same amount",
     "time synchronisation (chrony, ntpd) that slews, there and here"},
    {"clock rate", judge_rate, "a lock allows for clocks that differ by 1 % of its ttl",
     "time synchronisation that slews; in a virtual machine the host's clock"},
    {"latency", judge_latency, "answers after the node's timeout are lost votes",
     "--node-timeout of four times the p99; a faster disk or network, a nearer node"},
    {"stalls", judge_stalls, "while it waits for fork or disk it has no vote",
     "fewer keys, no snapshots, transparent huge pages off; a disk of its own"},
    {"client limit", judge_room, "nodes that reject the connection cannot vote",
     "a larger maxclients; find the clients that do not close connections"},
    {"shared use", judge_shared, "FLUSHALL deletes locks; KEYS and large data sets stop the server",
     "a server for locks alone; deny +flushall +flushdb +keys to all"},
    {"exposure", judge_exposure, "a client that can write can take or delete any lock",
     "an ACL user with the prefix only; a private network, or stunnel"},
    {"idle close", judge_idle, "connections end between two renewals and must be made anew",
     "timeout 0"},
};

/* If one of these checks is not permitted, that is a warning, because without it an unsafe node may stay unnoticed. */
static const unsigned vital[] = {ROLE, DISTINCT, DURABLE, EVICTION};

/* Only for a node that was reached and is not busy: any other node has failed already. */
static void warn_of_skipped(struct exam *exam)
{
    char why[sizeof exam->finding[0].value];
    size_t i;

    if (exam->error[0] != '\0' || exam->finding[BUSY].verdict == FAIL)
        return;
    for (i = 0; i < sizeof vital / sizeof *vital; i++) {
        struct finding *finding = &exam->finding[vital[i]];
        if (finding->verdict == SKIPPED) {
            memcpy(why, finding->value, sizeof why);
            finds(finding, WARN, "not known: %.180s", why);
        }
    }
}

void judge_all(void)
{
    unsigned i, n;

    for (i = 0; i < target_count; i++) {
        for (n = 0; n < CHECKS; n++)
            checks[n].judge(&exams[i].finding[n], &exams[i]);
        warn_of_skipped(&exams[i]);
    }
}
