/* report.c - the findings of redlock check: as text, as JSON, for monitoring plugins, for Prometheus. Checks
   that passed or were skipped are in the text only with -v.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "check.h"

#include <ctype.h>
#include <string.h>

static const char *const status_names[] = {"OK", "WARNING", "CRITICAL"};
static const char *const verdict_names[] = {"skip", "pass", "warn", "fail", "unsafe"};

static const char *name_of(const struct finding *finding)
{
    return verdict_names[finding->verdict - SKIPPED];
}

static double ms(uint32_t us)
{
    return (double)us / 1000;
}

static double offset_s(const struct exam *exam)
{
    return (double)exam->clock[0].ahead_wall_us / 1e6;
}

/* ---- Text ---- */

static void print_verdict(const struct exam *exam, unsigned n)
{
    const struct finding *finding = &exam->finding[n];
    const char *letter = name_of(finding);

    if (finding->verdict < WARN && !options.verbose)
        return;
    printf("  ");
    for (; *letter != '\0'; letter++)
        putchar(toupper((unsigned char)*letter));
    printf("%*s%2u %-*s%s\n", 8 - (int)strlen(name_of(finding)), "", n + 1,
           finding->value[0] != '\0' ? 18 : 0, checks[n].name, finding->value);
    if (finding->verdict >= WARN)
        printf("          why: %s\n          fix: %s\n", checks[n].why, checks[n].fix);
}

/* How many checks were skipped. */
static void print_skipped(const char *before, unsigned count)
{
    if (count > 0)
        printf("%s%u check%s skipped", before, count, count > 1 ? "s" : "");
}

static void print_node(const struct exam *exam)
{
    unsigned n, skipped = 0;

    printf("%s", exam->name);
    if (exam->version[0] != '\0')
        printf("  %s %s %s", exam->server, exam->version, exam->role);
    if (exam->rtts > 0)
        printf("  p50 %.1f p99 %.1f ms", ms(percentile(exam, 50)), ms(percentile(exam, 99)));
    if (exam->clock[0].at_us != 0)
        printf("  offset %+.3f s", offset_s(exam));
    for (n = 1; n < CHECKS; n++)
        skipped += exam->finding[n].verdict == SKIPPED;
    print_skipped("  ", skipped);
    printf(skipped > 0 && !options.verbose ? " (-v says why)\n" : "\n");
    for (n = 1; n < CHECKS; n++)
        print_verdict(exam, n);
}

static void print_text(const struct verdict_of_all *all)
{
    unsigned i;

    printf("REDLOCK %s  %u node%s, quorum %u, %u usable", status_names[all->status], target_count,
           target_count > 1 ? "s" : "", quorum(), all->usable);
    print_skipped(", ", all->skipped);
    printf("\n");
    if (options.quiet)
        return;
    print_verdict(&exams[0], 0);
    for (i = 0; i < target_count; i++)
        print_node(&exams[i]);
}

/* ---- JSON: a line for all nodes, then for each node a line, and a line for each of its checks ---- */

static void print_json_check(const struct exam *exam, unsigned n, int of_all)
{
    printf("{\"node\":");
    if (of_all)
        printf("null");
    else
        json_string(exam->name);
    json_member("check", checks[n].name);
    printf(",\"id\":%u", n + 1);
    json_member("result", name_of(&exam->finding[n]));
    json_member("value", exam->finding[n].value);
    json_member("why", checks[n].why);
    json_member("fix", checks[n].fix);
    printf("}\n");
}

static void print_json(const struct verdict_of_all *all)
{
    unsigned i, n;

    json_begin("check");
    json_member("status", status_names[all->status]);
    printf(",\"nodes\":%u,\"quorum\":%u,\"usable\":%u,\"skipped\":%u}\n", target_count, quorum(),
           all->usable, all->skipped);
    print_json_check(&exams[0], 0, 1);
    for (i = 0; i < target_count; i++) {
        const struct exam *exam = &exams[i];
        printf("{\"node\":");
        json_string(exam->name);
        json_member("server", exam->server);
        json_member("version", exam->version);
        json_member("role", exam->role);
        if (exam->rtts > 0)
            printf(",\"p50_ms\":%.3f,\"p99_ms\":%.3f", ms(percentile(exam, 50)),
                   ms(percentile(exam, 99)));
        if (exam->clock[0].at_us != 0)
            printf(",\"offset_s\":%.6f", offset_s(exam));
        printf("}\n");
        for (n = 1; n < CHECKS; n++)
            print_json_check(exam, n, 0);
    }
}

/* ---- Nagios: one line, text and then numbers after a | ---- */

/* Prints the findings, the worst first. */
static void print_worst(void)
{
    unsigned i, n;
    int verdict;

    for (verdict = UNSAFE; verdict >= WARN; verdict--)
        for (i = 0; i < target_count; i++)
            for (n = i == 0 ? 0 : 1; n < CHECKS; n++)
                if ((int)exams[i].finding[n].verdict == verdict)
                    printf("; %s%s%s: %s", n > 0 ? exams[i].name : "", n > 0 ? " " : "",
                           checks[n].name, exams[i].finding[n].value);
}

static void print_nagios(const struct verdict_of_all *all)
{
    unsigned i;

    printf("REDLOCK %s - %u of %u nodes usable", status_names[all->status], all->usable,
           target_count);
    print_skipped(", ", all->skipped);
    print_worst();
    printf(" | usable=%u;%u:;%u:;0;%u skipped=%u", all->usable, target_count, quorum(),
           target_count, all->skipped);
    for (i = 0; i < target_count; i++) {
        if (exams[i].rtts > 0)
            printf(" 'p99 %s'=%.3fms;%.1f;%ld;0", exams[i].name, ms(percentile(&exams[i], 99)),
                   (double)options.node_timeout_ms / 4, options.node_timeout_ms);
        if (exams[i].clock[0].at_us != 0)
            printf(" 'offset %s'=%.6fs;-1:1", exams[i].name, offset_s(&exams[i]));
    }
    printf("\n");
}

/* ---- Prometheus: text for the textfile collector of node_exporter ---- */

/* Opens the labels of a node's value. */
static void print_label(const char *name, const struct exam *exam)
{
    printf("redlock_%s{", name);
    metric_label(stdout, "node", exam->name);
}

static void print_prometheus(const struct verdict_of_all *all)
{
    unsigned i, n;

    metric_number("status", "0 OK, 1 warning, 2 critical", (unsigned)all->status);
    metric_number("nodes_usable", "Nodes without a failure", all->usable);
    metric_number("checks_skipped", "Checks that were not made, of all nodes", all->skipped);
    metric_number("quorum", "Nodes that a lock needs", quorum());
    metric_begin("node_up", "1: the node was asked all there is to ask");
    for (i = 0; i < target_count; i++) {
        print_label("node_up", &exams[i]);
        printf("} %d\n", exams[i].error[0] == '\0');
    }
    metric_begin("node_check",
                 "0 pass, 1 warning, 2 failure, 3 unsafe; skipped checks are not here");
    for (i = 0; i < target_count; i++)
        for (n = 0; n < CHECKS; n++)
            if (exams[i].finding[n].verdict != SKIPPED) {
                print_label("node_check", &exams[i]);
                printf(",check=\"%s\"} %d\n", checks[n].name, (int)exams[i].finding[n].verdict);
            }
    metric_begin("node_rtt_seconds", "Time that a SET takes");
    for (i = 0; i < target_count; i++)
        for (n = 50; n <= 99 && exams[i].rtts > 0; n += 49) {
            print_label("node_rtt_seconds", &exams[i]);
            printf(",quantile=\"0.%s\"} %.6f\n", n == 50 ? "5" : "99",
                   ms(percentile(&exams[i], n)) / 1000);
        }
    metric_begin("node_clock_offset_seconds", "The node's wall clock less the one here");
    for (i = 0; i < target_count; i++)
        if (exams[i].clock[0].at_us != 0) {
            print_label("node_clock_offset_seconds", &exams[i]);
            printf("} %.6f\n", offset_s(&exams[i]));
        }
}

/* Text from servers must not control a terminal, nor begin the figures of --nagios. */
static void clean(char *text, size_t room)
{
    char raw[sizeof exams[0].name];

    snprintf(raw, sizeof raw, "%s", text);
    printable(text, room, raw);
    if (options.nagios)
        while ((text = strpbrk(text, "|'")) != NULL)
            *text = '?';
}

void report(const struct verdict_of_all *all)
{
    unsigned i, n;

    for (i = 0; i < target_count; i++) {
        struct exam *exam = &exams[i];
        clean(exam->name, sizeof exam->name);
        clean(exam->server, sizeof exam->server);
        clean(exam->version, sizeof exam->version);
        clean(exam->role, sizeof exam->role);
        for (n = 0; n < CHECKS; n++)
            clean(exam->finding[n].value, sizeof exam->finding[n].value);
    }
    if (options.json)
        print_json(all);
    else if (options.nagios)
        print_nagios(all);
    else if (options.prometheus)
        print_prometheus(all);
    else
        print_text(all);
}
