/* run.c - redlock run: holds a lock while a job runs, and ends the job before the lock expires.

   The lock is valid until its deadline D, which each renewal moves. If no renewal has succeeded shortly before D, the lock counts as
   lost: the job gets SIGTERM, and SIGKILL at D. The guard (job.c) knows D, too. This is final, because a renewal that succeeds then
   cannot take the signal back.

   A signal that asks redlock to end asks the job to end. The lock is renewed until the job is over.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "talk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RENEWED_TTL_MIN_MS = 1000 };

/* The time between SIGTERM and D when the lock is lost: a sixth of the ttl, but at most this. A tenth of that is for SIGKILL, which
   takes its time where there are many processes. */
enum { MARGIN_MAX_MS = 5000 };

/* A guard that has not killed the job so long after its time is killed itself. */
enum { GUARD_LATE_MS = 100 };

static struct session session;

/* The state of the run. */
static struct {
    const char *lock_name; /* for the command: NAME, or NAME/3 of a slot */
    const char *name;      /* for messages; with -a all names */
    char mark[TOKEN_DIGITS + 1];
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
    int interrupted;          /* 1: Ctrl-C has reached command and redlock alike */
    redlock_mask up, holding; /* nodes reported as connected; nodes reported to have the lock */
    redlock_mask members;     /* as in the lock, at the last turn */
    redlock_mask twins;       /* nodes reported as the same server as another one */
} run = {.take_over_us = UINT64_MAX};

/* ---- Options ---- */

static void check_options(int has_timeout)
{
    long margin_ms = options.ttl_ms / 6 < MARGIN_MAX_MS ? options.ttl_ms / 6 : MARGIN_MAX_MS;

    if (options.ttl_ms < RENEWED_TTL_MIN_MS)
        die(EXIT_USAGE, "--ttl: at least 1 s, as a renewal takes time");
    run.killing_us = (uint64_t)margin_ms * 100;
    if (options.kill_after_ms >= 0 && options.kill_after_ms < margin_ms)
        margin_ms = options.kill_after_ms;
    run.margin_us = (uint64_t)margin_ms * 1000 + run.killing_us;
    if (has_timeout && options.ttl_ms < options.node_timeout_ms * 10)
        say(LOG_WARNING,
            "--node-timeout is more than a tenth of the ttl: a node that hangs delays renewals");
}

/* ---- Names ---- */

/* Copies the name, and all names for messages: the guard overwrites the arguments of the command line. */
static void set_names(const char *name)
{
    static char first[REDLOCK_KEY_MAX + 1], all[1024];
    size_t used = (size_t)snprintf(all, sizeof all, "%s", name);
    unsigned i;

    snprintf(first, sizeof first, "%s", name);
    run.lock_name = first;
    run.name = all;
    for (i = 0; i < options.also_count && used < sizeof all; i++)
        used += (size_t)snprintf(all + used, sizeof all - used, ", %s", options.also[i]);
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

static void add_held(const void *key, size_t size)
{
    const char *above = getenv("REDLOCK_HELD"), *held = held_key(key, size);
    size_t room = (above != NULL ? strlen(above) : 0) + strlen(held) + sizeof run.mark + 2;
    char *list = must_allocate(room, 1);

    snprintf(list, room, "%s%s%s=%s", above != NULL ? above : "",
             above != NULL && *above != '\0' ? ":" : "", held, run.mark);
    setenv("REDLOCK_HELD", list, 1);
    free(list);
}

static void set_environment(void)
{
    const struct redlock_lock *lock = session.lock;
    char id[ID_TEXT];
    unsigned i;

    export_options();
    id_of(id, session.value);
    setenv("REDLOCK_NAME", run.lock_name, 1);
    if (options.slots > 0)
        setenv("REDLOCK_SLOT", strrchr(run.lock_name, '.') + 1, 1);
    else
        unsetenv("REDLOCK_SLOT"); /* may be set by a redlock run that called this one */
    setenv("REDLOCK_ID", id, 1);
    set_number("REDLOCK_TTL_MS", lock->ttl_ms);
    set_number("REDLOCK_HOLDER_PID", (unsigned long long)run.self);
    if (options.fence)
        set_number("REDLOCK_FENCE", lock->fencing_token);
    else
        unsetenv("REDLOCK_FENCE"); /* likewise */
    add_held(lock->key, lock->key_size);
    for (i = 0; i < lock->extra_key_count; i++)
        add_held(lock->extra_keys[i].bytes, lock->extra_keys[i].size);
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

/* Ends the job, by D at the latest; with --keep-going it goes on. */
static void lose(uint64_t now, const char *why)
{
    uint64_t kill_us = before_deadline(run.killing_us);

    if (now + run.margin_us - run.killing_us < kill_us) /* another client may have the lock */
        kill_us = now + run.margin_us - run.killing_us;

    run.lost = 1;
    redlock_cancel(&session.client, session.lock);
    if (!options.keep_going) { /* before the message: the reader of stderr may be slow */
        job_set_deadline(kill_us);
        job_ask(SIGTERM);
        run.take_over_us = kill_us + (uint64_t)GUARD_LATE_MS * 1000;
    }
    say(LOG_ERROR, "%s: %s%s", run.name, why,
        options.keep_going ? "; the command goes on" : "; the command is ended");
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

/* A server that is listed twice has one vote, so fewer servers may fail than the list says. */
static void look_for_twin(unsigned i)
{
    redlock_mask bit = (redlock_mask)(1U << i);

    if ((run.twins & bit) != 0 || session.nodes[i].fault != REDLOCK_FAULT_SAME_SERVER)
        return;
    run.twins |= bit;
    say(LOG_WARNING, "%s: %s is the same server as another node, and has no vote", run.name,
        targets[i].url.address);
}

/* Warns of a server that is listed twice. With -v: says which nodes were lost or came back since the last turn. */
static void look_at_nodes(void)
{
    redlock_mask holding = find_holding();
    unsigned i;

    for (i = 0; i < target_count; i++) {
        const struct redlock_node *node = &session.nodes[i];
        const char *address = targets[i].url.address;
        redlock_mask bit = (redlock_mask)(1U << i);
        int is_up = (run.up & bit) != 0;
        look_for_twin(i);
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

/* 1: an operation on the lock has completed. Operations on abandoned slots are ignored. */
static int has_completed(void)
{
    const struct redlock_lock *lock;

    while ((lock = redlock_next_completed(&session.client)) != NULL)
        if (lock == session.lock)
            return 1;
    return 0;
}

/* 1: the present extension can get no quorum any more: too many nodes refused it, failed, or did not answer in time. */
static int has_failed(void)
{
    const struct redlock_lock *lock = session.lock;
    unsigned open = lock->granted | ~(unsigned)(lock->refused | lock->failed);

    return count_nodes((redlock_mask)(lock->members & open)) < quorum();
}

/* Reports a renewal, or that it has failed. */
static void report_renewal(uint64_t now)
{
    struct redlock_lock *lock = session.lock;

    /* lock->extended counts to 65,535 only; the deadline of --min-hold may be later than that of a renewal */
    if (lock->valid_until_us > run.deadline_us || lock->extended > run.extended) {
        renewed();
        say(run.is_failing ? LOG_NOTICE : LOG_DEBUG, "%s: %s; %ld s left", run.name,
            run.is_failing ? "renewal works again" : "renewed", seconds_left(now));
        run.is_failing = 0;
        run.fail_us = 0;
    } else if (has_failed() && now >= run.fail_us) {
        run.is_failing = 1;
        run.fail_us = now + (uint64_t)lock->ttl_ms * 200;
        say(LOG_WARNING, "%s: renewal failed: %u of %u nodes confirmed it; %ld s left", run.name,
            count_nodes(lock->granted), target_count, seconds_left(now));
        say_errors(&session, LOG_WARNING);
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
    struct redlock_lock *lock = session.lock;
    int ended = has_completed();

    if (run.lost)
        return;
    look_at_nodes();
    report_pause(now, pause_us);
    report_renewal(now);
    if (now >= stop_us())
        lose(now, cause_of_delay(now, pause_us));
    else if (ended && lock->status == REDLOCK_EXTEND_LIMIT) /* the library has a limit */
        redlock_auto_extend_start(&session.client, lock, UINT16_MAX - 1);
    else if (ended)
        lose(now, status_text(lock->status));
}

/* Forwards signals to the job, which is in the same process group: a signal of the terminal has reached that group already. */
static void forward_signals(void)
{
    int number, by_terminal;

    while ((number = next_signal(&by_terminal)) != 0)
        if (number == SIGCHLD) {
            job_serve_children();
        } else if (number == SIGTTIN || number == SIGTTOU) {
            if (by_terminal) /* the command uses the terminal in the background, and was stopped: the shell has to know */
                stop_by_terminal(number);
        } else if (is_ending(number) && by_terminal) {
            run.interrupted |= number == SIGINT;
            job_spread(number);
        } else if (is_ending(number)) {
            job_ask(number);
        } else if (!by_terminal) {
            job_pass(number);
        }
}

/* One turn of the loop, which also ends when the job is over. */
static void turn_with_job(void)
{
    struct pollfd fds[SLEEP_MAX];
    uint64_t wait_us = session_watch(&session, fds);

    fds[target_count] = (struct pollfd){job_line(), POLLIN, 0};
    sleep_on(fds, target_count + 1, wait_us, run.lost ? run.take_over_us : stop_us());
    session_serve(&session, fds);
}

/* Waits until the job is over. */
static struct job_end supervise(void)
{
    struct job_end end;
    uint64_t now;

    last_pause_us(&now);
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
        if (is_over)
            return end;
        look_at_lock(now, pause_us);
        forward_signals();
        turn_with_job();
    }
}

/* ---- The end ---- */

/* Gives each key a random value, and a TTL that ends with --min-hold, later or earlier than before. So the token is no longer
   valid, as after a release: an extension with it fails from now on. A lock of another client has another value, so this
   script does not change it, even if the script runs late. */
static enum redlock_status keep_keys_for(uint64_t rest_us)
{
    static const char script[] =
        "local s=0 for _,k in ipairs(KEYS)do local v=redis.call('get',k)if v==ARGV[1]then "
        "redis.call('set',k,ARGV[2],'PX',ARGV[3])elseif v then s=1 elseif s==0 then s=2 end end "
        "return s"; /* 0: all keys had the token; 1: another client holds one; 2: one is gone */
    const struct redlock_lock *lock = session.lock;
    char value[VALUE_MAX + 1], rest_ms[24], count[12], keys[ALSO_MAX][REDLOCK_KEY_MAX + 1];
    const char *words[ALSO_MAX + 7] = {"EVAL", script, count, session.key};
    unsigned i, at = 4, says[3], silent;

    for (i = 0; i < lock->extra_key_count; i++, at++) {
        snprintf(keys[i], sizeof keys[i], "%.*s", (int)lock->extra_keys[i].size,
                 (const char *)lock->extra_keys[i].bytes);
        words[at] = keys[i];
    }
    snprintf(count, sizeof count, "%u", at - 3);
    words[at++] = session.value;
    words[at++] = value;
    words[at++] = rest_ms;
    put_random(value, TOKEN_DIGITS / 2);
    strcpy(value + TOKEN_DIGITS, session.value + TOKEN_DIGITS);
    snprintf(rest_ms, sizeof rest_ms, "%llu", (unsigned long long)(rest_us + 999) / 1000);
    silent = talks_vote(at, words, says);
    session_take_errors(&session);
    return says[0] >= quorum()            ? REDLOCK_OK
           : says[0] + silent >= quorum() ? REDLOCK_UNCONFIRMED
           : says[1] > 0                  ? REDLOCK_LOST
                                          : REDLOCK_EXPIRED;
}

/* How long --min-hold still lasts, in microseconds. 0: it is over, or lasts less than 50 ms. */
static uint64_t hold_left_us(void)
{
    uint64_t now = now_us(), end = run.acquired_us + (uint64_t)options.min_hold_ms * 1000;

    return options.min_hold_ms > 0 && end > now + 50000 ? end - now : 0;
}

static void end_hold(void)
{
    uint64_t left_us;
    struct redlock_lock *lock = session.lock;
    enum redlock_status status;
    int held = !run.lost;

    if (lock->status == REDLOCK_PENDING) /* ends the renewals */
        redlock_cancel(&session.client, lock);
    while (lock->status == REDLOCK_PENDING)
        turn(&session, UINT64_MAX);
    redlock_next_completed(&session.client);
    if (held && hold_left_us() > 0) /* a node that is connected late gets the key, too */
        session_settle(&session);
    left_us = held ? hold_left_us() : 0;
    if (left_us > 0) {
        status = keep_keys_for(left_us);
        redlock_abandon(&session.client, lock);
    } else {
        status =
            session_release(&session); /* later replies than those of a quorum are not waited for */
    }
    if (held)
        status = look_for_loss(&session, run.name, status);
    if (status == REDLOCK_LOST && held) {
        say(LOG_ERROR, "%s: another client took the name before the lock was released", run.name);
        run.lost = 1;
    } else if (status != REDLOCK_OK && held) {
        say(LOG_WARNING, "%s: %s", run.name, status_text(status));
        say_errors(&session, LOG_WARNING);
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

/* Acquires with a ttl of at least --min-hold: so nothing must succeed at the end for the lock to remain so long. */
static void set_first_ttl(void)
{
    unsigned i;

    if (options.min_hold_ms > options.ttl_ms)
        for (i = 0; i < session.lock_count; i++)
            session.locks[i].ttl_ms = (uint32_t)options.min_hold_ms;
}

static int any_denies(void)
{
    unsigned i = 0;

    while (i < target_count && !is_denial(session.nodes[i].error))
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
    unsigned i;

    may_wait = 0;
    run.self = getpid();
    run.deadline_us = session.lock->valid_until_us;
    run.extended = session.lock->extended;
    snprintf(run.mark, sizeof run.mark, "%.*s", TOKEN_DIGITS, session.value);
    run.holding = granted_by(&session);
    run.members = session.lock->members;
    for (i = 0; i < target_count; i++)
        run.up = (redlock_mask)(run.up | (session.nodes[i].state == REDLOCK_NODE_READY) << i);
    say_acquired(&session, run.name);
}

/* The lock that the options ask for. */
static void open_lock(const char *name)
{
    if (options.slots > 0 && options.also_count > 0)
        die(EXIT_USAGE, "--slots and -a exclude each other: a slot has one name");
    if (options.fence && options.also_count > 0)
        die(EXIT_USAGE, "--fence and -a exclude each other: a fencing token belongs to one name");
    session_open(&session, name);
    if (options.slots > 0)
        session_slots(&session, name, (unsigned)options.slots);
    if (options.also_count > 0)
        session_extra(&session, options.also, options.also_count);
    session_sign(&session);
    set_first_ttl();
}

/* Acquires the lock, or exits. */
static enum redlock_status take_lock(void)
{
    enum redlock_status status = take(&session, run.name);

    run.acquired_us = now_us();
    if (status == REDLOCK_OK && (status = try_to_renew()) != REDLOCK_OK) {
        say(LOG_ERROR, "%s: the lock cannot be renewed; the command is not started", run.name);
        session_release(&session);
    }
    if (is_asked_to_end())
        withdraw();
    if (status == REDLOCK_OK && options.slots > 0)
        run.lock_name = run.name = session.key + strlen(options.prefix);
    return status;
}

int verb_run(int count, char **words)
{
    char **command = command_of(count, words);
    enum redlock_status status;
    struct job_end end;
    struct job_setup setup = {.set_environment = set_environment};
    int has_timeout = options.node_timeout_ms >= 0;
    int goes;

    set_names(words[0]);
    nodes_load();
    check_options(has_timeout);
    if (options.label == NULL)
        options.label =
            strrchr(command[0], '/') != NULL ? strrchr(command[0], '/') + 1 : command[0];
    open_lock(words[0]);
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
        say(LOG_ERROR, "the command cannot be started: %s", strerror(errno));
        session_release(&session);
        session_close(&session);
        return EXIT_SYSTEM;
    }
    renewed();
    redlock_auto_extend_start(&session.client, session.lock, UINT16_MAX - 1);
    end = supervise();
    end_hold();
    job_finish();
    session_finish(&session);
    session_close(&session);
    if (run.lost)
        return EXIT_LOST;
    if (run.interrupted && end.by_signal && end.number == SIGINT)
        end_by(SIGINT); /* so that a loop of a shell ends, as it would without this program */
    return end.by_signal ? 128 + end.number : end.number;
}
