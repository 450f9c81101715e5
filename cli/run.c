/* run.c - redlock run: holds a lock while a job runs, and ends the job before the lock expires.

   The lock is valid until its deadline D, which each renewal moves. If no renewal has succeeded shortly before D, the lock counts as
   lost: the job gets SIGTERM, and SIGKILL at D. The guard (job.c) knows D, too. This is final, because a renewal that succeeds then
   cannot take the signal back.

   A signal that asks redlock to end asks the job to end. The lock is renewed until the job is over.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RENEWED_TTL_MIN_MS = 1000 };

/* When the lock is lost: the time between SIGTERM and SIGKILL is a sixth of the ttl, but at most this. That between SIGKILL and D is
   a twentieth, as killing takes its time where there are many processes, or a busy machine. */
enum { MARGIN_MAX_MS = 5000, KILLING_MAX_MS = 500 };

/* A guard that has not killed the job so long after its time is killed itself; with a short ttl after half of the time between
   SIGKILL and D, so that redlock has the other half. */
enum { GUARD_LATE_MS = 100 };

/* The lock is not on all nodes for so long: a message says so, as fewer servers may fail then. */
enum { SPARE_MS = 60000 };

static struct session session;

/* The state of the run. */
static struct {
    const char *name; /* NAME, or NAME/3.1 of a slot */
    pid_t self;
    int lost;                 /* 1: the lock is lost, or was about to be: exit status 79 */
    uint64_t acquired_us;     /* T1 of the acquisition */
    uint64_t deadline_us;     /* D */
    uint64_t margin_us;       /* between SIGTERM and D when the lock is lost */
    uint64_t killing_us;      /* between SIGKILL and D */
    uint64_t take_over_us;    /* when a guard that does not react is killed */
    unsigned extended;        /* lock->extended at that time */
    uint64_t fail_us;         /* no message before this time says that a renewal has failed */
    int is_failing;           /* 1: a message has reported a failed renewal */
    uint32_t reasons;         /* a hash of the reasons that it had */
    uint64_t spare_us;        /* when the lock was on all nodes last, or it was acquired */
    int has_no_spare;         /* 1: a message has said that it is not on all nodes */
    int interrupted;          /* 1: Ctrl-C has reached command and redlock alike */
    int is_asked;             /* 1: a signal has asked redlock, and so the job, to end */
    redlock_mask up, holding; /* nodes reported as connected; nodes reported to have the lock */
    redlock_mask members;     /* as in the lock, at the last turn */
} run = {.take_over_us = UINT64_MAX};

/* ---- Options ---- */

static void check_options(void)
{
    long margin_ms = options.ttl_ms / 6 < MARGIN_MAX_MS ? options.ttl_ms / 6 : MARGIN_MAX_MS;
    long killing_ms = options.ttl_ms / 20 < KILLING_MAX_MS ? options.ttl_ms / 20 : KILLING_MAX_MS;

    if (options.ttl_ms < RENEWED_TTL_MIN_MS)
        die(EXIT_USAGE, "--ttl: at least 1 s, as a renewal takes time");
    run.killing_us = (uint64_t)killing_ms * 1000;
    if (options.kill_after_ms >= 0 && options.kill_after_ms < margin_ms)
        margin_ms = options.kill_after_ms;
    run.margin_us = (uint64_t)margin_ms * 1000 + run.killing_us;
    if (options.ttl_ms < options.node_timeout_ms * 10)
        say(LOG_WARNING,
            "--node-timeout is more than a tenth of the ttl: a node that hangs delays renewals");
}

/* ---- The command ---- */

static void set_number(const char *name, unsigned long long number)
{
    char text[24];

    snprintf(text, sizeof text, "%llu", number);
    setenv(name, text, 1);
}

/* A variable with which systemd names the process that is meant: from now on that is the command. */
static void set_pid(const char *name)
{
    const char *pid = getenv(name);

    if (pid != NULL && atol(pid) == (long)run.self)
        set_number(name, (unsigned long long)getpid());
}

/* Adds the lock to those that are held around the command. */
static void add_held(void)
{
    const char *above = getenv("REDLOCK_HELD"), *held = held_key(session.key);
    size_t room = (above != NULL ? strlen(above) : 0) + strlen(held) + MARK_TEXT + 2;
    char *list = must_allocate(room, 1), mark[MARK_TEXT];

    put_mark(mark, session.value);
    snprintf(list, room, "%s%s%s=%s", above != NULL ? above : "",
             above != NULL && *above != '\0' ? ":" : "", held, mark);
    setenv("REDLOCK_HELD", list, 1);
    free(list);
}

static void set_environment(void)
{
    const struct redlock_lock *lock = session.lock;
    char id[ID_TEXT];

    export_options();
    id_of(id, session.value);
    setenv("REDLOCK_NAME", run.name, 1);
    if (options.slots > 0)
        setenv("REDLOCK_SLOT", strrchr(run.name, '.') + 1, 1);
    else
        unsetenv("REDLOCK_SLOT"); /* may be set by a redlock run that called this one */
    setenv("REDLOCK_ID", id, 1);
    set_number("REDLOCK_TTL_MS", lock->ttl_ms);
    set_number("REDLOCK_HOLDER_PID", (unsigned long long)run.self);
    if (options.fence)
        set_number("REDLOCK_FENCE", lock->fencing_token);
    else
        unsetenv("REDLOCK_FENCE"); /* likewise */
    add_held();
    set_pid("LISTEN_PID");
    set_pid("WATCHDOG_PID");
}

/* ---- While it runs ---- */

static uint64_t before_deadline(uint64_t us)
{
    return run.deadline_us > us ? run.deadline_us - us : 0;
}

/* When the lock counts as lost. */
static uint64_t stop_us(void)
{
    return before_deadline(run.margin_us);
}

/* The deadline has moved. */
static void renewed(void)
{
    run.deadline_us = session.lock->valid_until_us;
    run.extended = session.lock->extended;
    job_set_deadline(before_deadline(run.killing_us));
}

/* The lock is lost: ends the job, by D at the latest; with --keep-going it goes on. Comes before all messages, because a write to stderr
   may block: so the job has its time between SIGTERM and SIGKILL in full. */
static void lose(void)
{
    uint64_t kill_us = before_deadline(run.killing_us), now = now_us();
    uint64_t late_us = (uint64_t)GUARD_LATE_MS * 1000;

    if (now + run.margin_us - run.killing_us < kill_us) /* another client may have the lock */
        kill_us = now + run.margin_us - run.killing_us;
    run.lost = 1;
    if (options.keep_going)
        return;
    job_lose(kill_us);
    if (late_us > run.killing_us / 2)
        late_us = run.killing_us / 2;
    /* This process may not have run for a while. Then the guard did not run either, perhaps, and runs only now. */
    run.take_over_us = (kill_us > now ? kill_us : now) + late_us;
}

static long seconds_left(uint64_t now)
{
    return run.deadline_us > now ? (long)((run.deadline_us - now) / 1000000) : 0;
}

/* The nodes that have the lock. A node that has not answered the present extension has it as before. */
static redlock_mask find_holding(void)
{
    const struct redlock_lock *lock = session.lock;
    unsigned gone = lock->refused | (run.members & ~(unsigned)lock->members);

    run.members = lock->members;
    return (redlock_mask)((run.holding & ~gone) | granted_by(&session));
}

/* Warns of a server that is listed twice. With -v: says which nodes were lost or came back since the last turn. */
static void look_at_nodes(void)
{
    redlock_mask holding = find_holding();
    unsigned i;

    say_duplicates(&session, run.name);
    for (i = 0; i < target_count; i++) {
        const struct redlock_node *node = &session.nodes[i];
        const char *address = targets[i].url.address;
        redlock_mask bit = (redlock_mask)(1U << i);
        int is_up = (run.up & bit) != 0;
        if (is_up && node->state == REDLOCK_NODE_DOWN)
            say(LOG_DEBUG, "%s: the connection to %s is lost: %s", run.name, address,
                error_of(&session, i));
        if (!is_up && node->state == REDLOCK_NODE_READY)
            say(LOG_DEBUG, "%s: connected to %s", run.name, address);
        if ((is_up && node->state == REDLOCK_NODE_DOWN) ||
            (!is_up && node->state == REDLOCK_NODE_READY))
            run.up = (redlock_mask)(run.up ^ bit);
        if (((run.holding ^ holding) & bit) != 0)
            say(LOG_DEBUG, "%s: %s %s", run.name, address,
                (holding & bit) != 0 ? "has the lock" : "does not have the lock any more");
    }
    run.holding = holding;
}

/* Says that the lock is not on all nodes for a minute, and that it is on all again. Renewals that fail have messages of their own. */
static void look_at_spare(uint64_t now)
{
    unsigned count = count_nodes(run.holding);

    if (count == target_count) {
        if (run.has_no_spare)
            say(LOG_NOTICE, "%s: the lock is on all nodes again", run.name);
        run.has_no_spare = 0;
        run.spare_us = now;
    } else if (!run.has_no_spare && !run.is_failing && count >= quorum() &&
               now - run.spare_us >= (uint64_t)SPARE_MS * 1000) {
        run.has_no_spare = 1;
        say(LOG_WARNING, "%s: the lock has been on %u of %u nodes for a minute, %u needed",
            run.name, count, target_count, quorum());
        say_errors(&session, LOG_WARNING, "it does not have the lock");
    }
}

/* 1: an operation on the lock has completed. */
static int has_completed(void)
{
    return redlock_next_completed(&session.client) != NULL;
}

/* 1: the present extension can get no quorum any more: too many nodes refused it, failed, or did not answer in time. */
static int has_failed(void)
{
    const struct redlock_lock *lock = session.lock;
    unsigned open = lock->granted | ~(unsigned)(lock->refused | lock->failed);

    return count_nodes((redlock_mask)(lock->members & open)) < quorum();
}

/* Takes note of a renewal. Returns 1 if there was one. */
static int has_renewed(void)
{
    const struct redlock_lock *lock = session.lock;

    /* lock->extended counts to 65,535 only; the deadline of --min-hold may be later than that of a renewal */
    if (lock->valid_until_us <= run.deadline_us && lock->extended <= run.extended)
        return 0;
    renewed();
    return 1;
}

/* Returns 1 if other reasons were reported last, or none. */
static int has_new_reasons(void)
{
    const redlock_mask refused = session.lock->refused;
    uint32_t hash = hash_more(HASH_BEGIN, (const char *)&refused, sizeof refused),
             before = run.reasons;
    unsigned i;

    for (i = 0; i < target_count; i++)
        hash = hash_more(hash, error_of(&session, i), strlen(error_of(&session, i)) + 1);
    run.reasons = hash;
    return hash != before;
}

/* Reports a renewal, or that it has failed. */
static void report_renewal(uint64_t now, int is_renewed)
{
    const struct redlock_lock *lock = session.lock;

    if (is_renewed) {
        say(run.is_failing ? LOG_NOTICE : LOG_DEBUG, "%s: %s; %ld s left", run.name,
            run.is_failing ? "renewal works again" : "renewed", seconds_left(now));
        run.is_failing = 0;
        run.reasons = 0;
        run.fail_us = 0;
    } else if (has_failed() && now >= run.fail_us) {
        run.is_failing = 1;
        run.fail_us = now + (uint64_t)lock->ttl_ms * 200;
        say(LOG_WARNING, "%s: renewal failed: fewer than %u of %u nodes confirmed it; %ld s left",
            run.name, quorum(), target_count, seconds_left(now));
        if (has_new_reasons())
            say_errors(&session, LOG_WARNING,
                       "the lock is not there any more, or another client has it");
    }
}

/* Says that this process did not run for so long. What looks like a node that did not answer may be this, so the nodes get the time
   first that they did not have. */
static void report_pause(uint64_t now, uint64_t pause_us)
{
    int is_long = pause_us > (uint64_t)session.lock->ttl_ms * 100; /* a tenth of the ttl */

    if (pause_us == 0)
        return;
    run.fail_us = now + (uint64_t)options.node_timeout_ms * 1000;
    if (now < stop_us())
        say(is_long ? LOG_WARNING : LOG_DEBUG,
            "%s: redlock did not run for %ld.%ld s (stopped, or the host was paused or is "
            "overloaded); renewing",
            run.name, (long)(pause_us / 1000000), (long)(pause_us / 100000 % 10));
}

/* Why the lock was not renewed in time. Valid until the next call. */
static const char *cause_of_delay(uint64_t now, uint64_t pause_us)
{
    static char text[100];
    const char *what =
        now >= run.deadline_us ? "the lock has expired" : "the lock was not renewed in time";

    if (pause_us == 0)
        return what;
    snprintf(text, sizeof text, "redlock did not run for %ld.%ld s: %s", (long)(pause_us / 1000000),
             (long)(pause_us / 100000 % 10), what);
    return text;
}

/* Checks the lock after each turn of the loop. */
static void look_at_lock(uint64_t now, uint64_t pause_us)
{
    int ended = has_completed(), is_renewed, is_late;

    if (run.lost)
        return;
    is_renewed = has_renewed();
    is_late = now >= stop_us();
    if (is_late || ended)
        lose();
    look_at_nodes();
    report_pause(now, pause_us);
    report_renewal(now, is_renewed);
    if (!run.lost)
        look_at_spare(now);
    if (!run.lost)
        return;
    say(LOG_ERROR, "%s: %s%s", run.name,
        is_late ? cause_of_delay(now, pause_us) : status_text(session.lock->status),
        options.keep_going ? "; the command goes on" : "; the command is ended");
    redlock_cancel(&session.client, session.lock); /* not earlier: the messages need its state */
}

static void note_signal(int number, int by_terminal)
{
    run.interrupted |= number == SIGINT && by_terminal;
    run.is_asked |= is_ending(number);
}

/* Forwards signals to the job, which is in the same process group: a signal of the terminal has reached that group already. */
static void forward_signals(void)
{
    int number, by_terminal;

    while ((number = next_signal(&by_terminal)) != 0) {
        note_signal(number, by_terminal);
        if (number == SIGCHLD) {
            job_serve_children();
        } else if (number == SIGTTIN || number == SIGTTOU) {
            if (by_terminal) /* the command uses the terminal in the background, and was stopped: the shell has to know */
                stop_by_terminal(number);
        } else if (is_ending(number) && by_terminal) {
            job_spread(number);
        } else if (is_ending(number)) {
            job_ask(number);
        } else if (!by_terminal) {
            job_pass(number);
        }
    }
}

/* One turn of the loop, which also ends when the job is over. */
static void turn_with_job(void)
{
    struct pollfd fds[SLEEP_MAX];
    unsigned count;
    uint64_t wait_us = session_watch(&session, fds, &count);

    fds[count] = job_watch();
    sleep_on(fds, count + 1, wait_us, run.lost ? run.take_over_us : stop_us());
    session_serve(&session, fds);
}

/* Ctrl-C may have ended the job before this process took note of it. */
static void note_signals(void)
{
    int number, by_terminal;

    while ((number = next_signal(&by_terminal)) != 0)
        note_signal(number, by_terminal);
}

/* Waits until the job is over. */
static struct job_end supervise(void)
{
    struct job_end end;
    uint64_t now;

    for (;;) {
        /* this process may be stopped at each place: the pause must not come before the end */
        int is_over = job_take(&end);
        uint64_t pause_us = last_pause_us(&now);
        if (!is_over && now >= run.take_over_us) {
            job_take_over(&end);
            is_over = 1;
        }
        if (is_over && end.is_late && !run.lost) {
            run.lost = 1;
            say(LOG_ERROR, "%s: %s; the command was killed", run.name,
                cause_of_delay(now, pause_us));
        }
        if (is_over) {
            note_signals();
            return end;
        }
        look_at_lock(now, pause_us);
        forward_signals();
        turn_with_job();
    }
}

/* ---- The end ---- */

/* --min-hold: the lock is renewed until this time is over, unless a signal asks this process to end, or has asked the job. It was
   acquired for so long, so no renewal must succeed. */
static void stay(void)
{
    uint64_t end_us = run.acquired_us + (uint64_t)options.min_hold_ms * 1000;

    if (options.min_hold_ms > 0 && now_us() < end_us)
        say(LOG_DEBUG, "%s: the command has ended; --min-hold keeps the lock for %ld s", run.name,
            (long)((end_us - now_us()) / 1000000) + 1);
    while (now_us() < end_us && !run.is_asked && !is_asked_to_end()) {
        turn(&session, end_us);
        job_serve_children();
        if (has_completed())
            return; /* lost: the release will say so */
    }
}

static void end_hold(void)
{
    struct redlock_lock *lock = session.lock;
    enum redlock_status status;
    int held = !run.lost;

    if (held && options.min_hold_ms > 0)
        stay();
    if (lock->status == REDLOCK_PENDING) /* ends the renewals */
        redlock_cancel(&session.client, lock);
    while (lock->status == REDLOCK_PENDING)
        turn(&session, UINT64_MAX);
    redlock_next_completed(&session.client);
    if (held && now_us() < run.acquired_us + (uint64_t)options.min_hold_ms * 1000 &&
        redlock_remaining_ms(&session.client, lock) > 0) {
        redlock_abandon(&session.client,
                        lock); /* a signal has ended the wait: the lock expires with its ttl */
        return;
    }
    status =
        session_release(&session); /* later replies than those of a quorum are not waited for */
    if (held && is_lost_to_foreign(&session, run.name, status)) {
        run.lost = 1;
    } else if (held && status == REDLOCK_LOST) {
        say(LOG_ERROR, "%s: another client took the name before the lock was released", run.name);
        run.lost = 1;
    } else if (held && status != REDLOCK_OK) {
        if (status == REDLOCK_UNCONFIRMED)
            say_unconfirmed(&session, run.name, LOG_WARNING);
        else
            say(LOG_WARNING, "%s: %s", run.name, status_text(status));
        say_errors(&session, LOG_WARNING, "");
    }
}

/* NAME COMMAND..., NAME -- COMMAND..., or NAME -c 'SHELL COMMAND'. */
static char **command_of(int count, char **words)
{
    static char shell[] = "/bin/sh", dash_c[] = "-c";
    static char *by_shell[4] = {shell, dash_c, NULL, NULL};

    if (count >= 2 && (strcmp(words[1], "-c") == 0 || strcmp(words[1], "--command") == 0)) {
        if (count != 3)
            die(EXIT_USAGE, "run: -c takes one word, in quotes");
        by_shell[2] = words[2];
        return by_shell;
    }
    words++;
    if (count >= 2 && strcmp(words[0], "--") == 0)
        words++;
    else if (count >= 2 && words[0][0] == '-')
        die(EXIT_USAGE,
            "run: %.*s: options belong before NAME; NAME -- COMMAND if this is a command",
            public_size(words[0]), words[0]);
    if (count < 2 || words[0] == NULL)
        die(EXIT_USAGE, "run: NAME and COMMAND are required");
    if (words[0][0] == '\0')
        die(EXIT_USAGE, "run: COMMAND is an empty word");
    return words;
}

/* The command is not started: releases the lock, and ends this process by the signal that asked for it, if one has. */
static void withdraw(void)
{
    session_release(&session);
    session_finish(&session);
    session_close(&session);
    if (is_asked_to_end())
        end_by_signal();
}

static int any_denies(void)
{
    unsigned i = 0;

    while (i < target_count && session.nodes[i].fault != REDLOCK_FAULT_DENIED)
        i++;
    return i < target_count;
}

/* One extension before the command starts. If the nodes deny it, the command would be killed when the first ttl is over. If they
   do not answer, later extensions may succeed. The first denial may end an extension, so the second one asks all nodes that have
   granted the lock by then. */
static enum redlock_status try_to_renew(void)
{
    struct redlock_lock *lock = session.lock;
    enum redlock_status status = redlock_extend(&session.client, lock);

    if (status == REDLOCK_UNREACHABLE) {
        session_settle(&session);
        status = redlock_extend(&session.client, lock);
    }
    lock->ttl_ms = (uint32_t)options.ttl_ms; /* an extension does not shorten */
    if (status != REDLOCK_UNREACHABLE)
        return status;
    return lock->granted == 0 && any_denies() ? REDLOCK_DENIED : REDLOCK_OK;
}

static void begin_hold(void)
{
    uint64_t now;
    unsigned i;

    may_wait = 0;
    last_pause_us(&now);                             /* a pause of the wait is none of the hold */
    run.name = session.key + strlen(options.prefix); /* the guard overwrites the command line */
    run.self = getpid();
    run.deadline_us = session.lock->valid_until_us;
    run.extended = session.lock->extended;
    run.holding = granted_by(&session);
    run.members = session.lock->members;
    for (i = 0; i < target_count; i++)
        run.up = (redlock_mask)(run.up | (session.nodes[i].state == REDLOCK_NODE_READY) << i);
    say_acquired(&session, run.name);
}

/* Acquires the lock, or exits. */
static enum redlock_status take_lock(void)
{
    enum redlock_status status = take(&session, run.name);

    run.acquired_us = run.spare_us = now_us();
    if (status == REDLOCK_OK && (status = try_to_renew()) != REDLOCK_OK) {
        say(LOG_ERROR, "%s: the lock cannot be renewed; the command is not started", run.name);
        session_release(&session);
    }
    if (is_asked_to_end())
        withdraw();
    return status;
}

/* `run -n 10 COMMAND`, as if -n were -w. */
static void say_what_words_were(const char *command, const struct job_end *end)
{
    if (!end->by_signal && end->number == 127 && parse_duration(run.name) >= 0)
        say(LOG_NOTICE,
            "%s was the NAME of the lock, and %s the command; -w takes a time, -n does not",
            run.name, command);
}

int verb_run(int count, char **words)
{
    char **command = command_of(count, words);
    enum redlock_status status;
    struct job_end end;
    struct job_setup setup = {.set_environment = set_environment};
    int goes;

    run.name = words[0];
    check_name(run.name);
    if (!job_is_possible())
        die(EXIT_SYSTEM,
            "run: the command would be in another PID namespace: unshare --pid needs --fork");
    check_options();
    if (options.label == NULL)
        options.label =
            strrchr(command[0], '/') != NULL ? strrchr(command[0], '/') + 1 : command[0];
    session_open(&session, words[0]);
    session_sign(&session);
    status = take_lock();
    if (status != REDLOCK_OK) {
        session_finish(&session);
        session_close(&session);
        return explain(&session, run.name, status);
    }
    begin_hold();
    setup.name = run.name;
    setup.deadline_us = before_deadline(run.killing_us);
    goes = job_start(command, &setup);
    if (goes == 0) {
        withdraw();
        say(LOG_ERROR, "%s: the lock expired before the command was started", run.name);
        return EXIT_LOST;
    }
    if (goes < 0) {
        say(LOG_ERROR, "%s: the command cannot be started: %s", run.name, strerror(errno));
        session_release(&session);
        session_close(&session);
        return EXIT_SYSTEM;
    }
    renewed();
    redlock_auto_extend_start(&session.client, session.lock, REDLOCK_NO_LIMIT);
    end = supervise();
    end_hold();
    job_finish();
    session_finish(&session);
    session_close(&session);
    if (run.lost)
        return EXIT_LOST;
    say_what_words_were(command[0], &end);
    if (run.interrupted && end.by_signal && end.number == SIGINT)
        end_by(SIGINT); /* so that a loop of a shell ends, as it would without this program */
    return end.by_signal ? 128 + end.number : end.number;
}
