/* run.c - redlock run: holds a lock while a job runs, and ends the job before the lock expires.

   The lock is valid until its deadline D, which each renewal moves. If no renewal has succeeded by D - kill_after, the job gets
   SIGTERM, and SIGKILL at D. The guard (job.c) knows D, too.

       state      the lock is   ends
       RUNNING    renewed       when the command has ended: OVER; DRAINING if a signal has ended it, or has asked it to end;
                                when the job is asked to end, with -k: DRAINING; when the lock is lost: STOPPING, or LET_GO
       DRAINING   renewed       when the job is empty: OVER; at kill_us: KILLING; when the lock is lost: STOPPING
       STOPPING   lost          when the job is empty: OVER; at kill_us: KILLING
       KILLING    as before     when the job is empty, or cannot be killed: OVER
       LET_GO     lost          when the command has ended: OVER; when the job is asked to end, with -k: STOPPING. Only with
                                --on-lost none
       OVER       as before     the lock is released

   A state that has a kill_us keeps it, or gets an earlier one. "With -k": a user has given --kill-after. Its default is no limit
   for a command that was asked to end, because a program that stops redlock, such as systemd, has a limit itself.

   The job is the command and all that it has started (job.c). What a command leaves in the background when it exits by itself
   is not waited for.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "talk.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { RENEWED_TTL_MIN_MS = 1000, LOOK_MS = 100, KILL_MS = 20 };

/* How long a process may take to end after SIGKILL. One that waits for a disk ends only when the disk has answered. */
enum { KILLED_MS = 10000 };

static struct session session;

/* The state of the run. */
static struct {
    const char *lock_name; /* for the command: NAME, or NAME/3 of a slot */
    const char *name;      /* for messages; with -a all names */
    char mark[TOKEN_DIGITS + 1];
    enum { RUNNING, DRAINING, STOPPING, KILLING, LET_GO, OVER } state;
    int is_asked;             /* 1: a signal has asked the job to end */
    int lost;                 /* 1: the lock is lost, or was about to be: exit status 79 */
    int at_most;              /* 1: not lost: only the time of --max-hold is over */
    uint64_t acquired_us;     /* T1 of the acquisition */
    uint64_t deadline_us;     /* D */
    unsigned extended;        /* lock->extended at that time */
    uint64_t kill_us;         /* when DRAINING or STOPPING turns to KILLING */
    uint64_t warn_us;         /* when a renewal is late */
    int is_failing;           /* 1: a message has reported a failed renewal */
    int interrupted;          /* 1: Ctrl-C has reached command and supervisor alike */
    int wants_terminal;       /* 1: the command was stopped because it uses the terminal */
    redlock_mask up, holding; /* nodes reported as connected; nodes reported to have the lock */
    redlock_mask members;     /* as in the lock, at the last turn */
    redlock_mask twins;       /* nodes reported as the same server as another one */
} run = {.kill_us = UINT64_MAX};

/* ---- Options ---- */

static const struct {
    const char *name;
    int number;
} signals[] = {{"HUP", SIGHUP},   {"INT", SIGINT},   {"QUIT", SIGQUIT}, {"TERM", SIGTERM},
               {"USR1", SIGUSR1}, {"USR2", SIGUSR2}, {"KILL", SIGKILL}};

static int stop_signal;
static int goes_on;        /* 1: the command goes on when the lock is lost */
static int has_kill_after; /* 1: a user has given --kill-after */

static void check_options(int has_timeout)
{
    const char *signal = options.signal;
    long shortest_ms;
    size_t i;

    if (options.ttl_ms < RENEWED_TTL_MIN_MS)
        die(EXIT_USAGE, "--ttl: at least 1 s, as a renewal takes time");
    if (options.kill_after_ms > options.ttl_ms / 3)
        die(EXIT_USAGE, "--kill-after: at most a third of the ttl");
    if (options.max_hold_ms == 0)
        die(EXIT_USAGE, "--max-hold: 0 would end the command at once");
    if (options.max_hold_ms >= 0 && options.kill_after_ms > options.max_hold_ms)
        die(EXIT_USAGE, "--kill-after: at most --max-hold");
    shortest_ms = options.max_hold_ms >= 0 && options.max_hold_ms < options.ttl_ms
                      ? options.max_hold_ms
                      : options.ttl_ms;
    has_kill_after = options.kill_after_ms >= 0;
    if (!has_kill_after)
        options.kill_after_ms = shortest_ms / 6 < 5000 ? shortest_ms / 6 : 5000;
    goes_on = strcmp(options.on_lost, "none") == 0;
    if (!goes_on && strcmp(options.on_lost, "term") != 0)
        die(EXIT_USAGE, "--on-lost: term or none; --signal is the first signal");
    if (options.max_hold_ms >= 0 && goes_on)
        die(EXIT_USAGE,
            "--max-hold ends the command, and --on-lost none does not: use one of them");
    if (options.foreground && options.new_group)
        die(EXIT_USAGE, "--foreground and --new-group exclude each other");
    if (strncasecmp(signal, "SIG", 3) == 0)
        signal += 3;
    for (i = 0; i < sizeof signals / sizeof *signals; i++)
        if (strcasecmp(signal, signals[i].name) == 0)
            stop_signal = signals[i].number;
    if (stop_signal == 0)
        die(EXIT_USAGE, "--signal: HUP, INT, QUIT, TERM, USR1, USR2 or KILL");
    if (options.status_fd >= 0 && /* the command needs 0 to 2 too */
        fcntl((int)options.status_fd, F_SETFD, options.status_fd > 2 ? FD_CLOEXEC : 0) != 0)
        die(EXIT_USAGE, "--status-fd %ld: %s", options.status_fd, strerror(errno));
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

    if (pid != NULL && atol(pid) == (long)getppid())
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
    id_of(id, session.value, strlen(session.value));
    setenv("REDLOCK_NAME", run.lock_name, 1);
    if (options.slots > 0)
        setenv("REDLOCK_SLOT", strrchr(run.lock_name, '/') + 1, 1);
    else
        unsetenv("REDLOCK_SLOT"); /* may be set by a redlock run that called this one */
    setenv("REDLOCK_TOKEN", token_of(&session), 1);
    setenv("REDLOCK_ID", id, 1);
    set_number("REDLOCK_TTL_MS", lock->ttl_ms);
    set_number("REDLOCK_HOLDER_PID", (unsigned long long)getppid());
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

static uint64_t end_us(void)
{
    uint64_t most_us = options.max_hold_ms < 0
                           ? UINT64_MAX
                           : run.acquired_us + (uint64_t)options.max_hold_ms * 1000;

    return run.deadline_us < most_us ? run.deadline_us : most_us;
}

static uint64_t stop_us(void)
{
    uint64_t margin_us = (uint64_t)options.kill_after_ms * 1000, end = end_us();

    return end > margin_us ? end - margin_us : 0;
}

/* The deadline has moved. */
static void renewed(void)
{
    run.deadline_us = session.lock->valid_until_us;
    run.extended = session.lock->extended;
    /* the lock is renewed every third of the ttl */
    run.warn_us = now_us() + (uint64_t)session.lock->ttl_ms * 400;
    job_set_deadline(end_us());
}

/* Ends the job, by kill_us at the latest. This is final, because a renewal that succeeds now cannot take the signal back. With
   --on-lost none a loss sends no signal and sets no limit; a job that has a limit already keeps it. */
static void stop(uint64_t kill_us, const char *why)
{
    int lets_go = goes_on && run.state == RUNNING;

    run.lost = 1;
    run.state = lets_go ? LET_GO : STOPPING;
    if (!goes_on && kill_us < run.kill_us)
        run.kill_us = kill_us;
    redlock_cancel(&session.client, session.lock);
    job_set_deadline(run.kill_us);
    if (!goes_on) /* before the message: the reader of stderr may be slow */
        job_end(stop_signal);
    event("lost");
    say(LOG_ERROR, "%s: %s%s", run.name, why,
        lets_go ? "; the command goes on" : "; the command is ended");
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

    if ((run.twins & bit) != 0 ||
        strcmp(session.nodes[i].error, "is the same server as another node") != 0)
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

static int is_renewed(void)
{
    return run.state == RUNNING || run.state == DRAINING;
}

/* Reports a renewal, or that it is late. If this process did not run when that report was due, the nodes first get the time that
   they did not have. */
static void report_renewal(uint64_t now)
{
    struct redlock_lock *lock = session.lock;

    /* lock->extended counts to 65,535 only; the deadline of --min-hold may be later than that of a renewal */
    if (lock->valid_until_us > run.deadline_us || lock->extended > run.extended) {
        renewed();
        event("renewed %lu", (unsigned long)redlock_remaining_ms(&session.client, lock));
        say(run.is_failing ? LOG_NOTICE : LOG_DEBUG, "%s: %s; %ld s left", run.name,
            run.is_failing ? "renewal works again" : "renewed", seconds_left(now));
        run.is_failing = 0;
    } else if (now >= run.warn_us + (uint64_t)LOOK_MS * 1000) {
        run.warn_us = now + (uint64_t)options.node_timeout_ms * 1000;
    } else if (now >= run.warn_us) {
        unsigned n = count_nodes(lock->granted);
        run.is_failing = 1;
        event("renew-failed %u/%u", n, target_count);
        say(LOG_WARNING, "%s: renewal failed: %u of %u nodes confirmed it; %ld s left", run.name, n,
            target_count, seconds_left(now));
        say_errors(&session, LOG_WARNING);
        run.warn_us = now + (uint64_t)lock->ttl_ms * 200;
    }
}

/* Checks the lock after each turn of the loop. */
static void look_at_lock(uint64_t now)
{
    struct redlock_lock *lock = session.lock;
    int ended = has_completed();
    uint64_t soon = now + (uint64_t)options.kill_after_ms * 1000;

    if (!is_renewed())
        return;
    look_at_nodes();
    report_renewal(now);
    if (now >= stop_us()) {
        run.at_most = end_us() < run.deadline_us;
        stop(end_us(),
             run.at_most ? "the time of --max-hold is over" : "the lock was not renewed in time");
    } else if (ended && lock->status == REDLOCK_EXTEND_LIMIT) { /* the library has a limit */
        redlock_auto_extend_start(&session.client, lock, UINT16_MAX - 1);
    } else if (ended) {
        stop(soon < end_us() ? soon : end_us(), status_text(lock->status));
    }
}

/* From now on the job has this time to end. */
static void set_limit(uint64_t now)
{
    run.kill_us = now + (uint64_t)options.kill_after_ms * 1000;
}

/* Asks the job to end. With -k the first such signal sets the limit, as in timeout(1): a further one does not move it. */
static void ask_to_end(int number)
{
    job_end(number);
    if (!has_kill_after || (run.state != RUNNING && run.state != LET_GO))
        return;
    run.state = run.state == RUNNING ? DRAINING : STOPPING;
    set_limit(now_us());
}

/* Forwards signals to the job. A signal from the terminal has reached the command already if it is in the same group. A command
   such as timeout(1) leaves that group. */
static void forward_signals(void)
{
    int number, by_terminal;

    while ((number = next_signal(&by_terminal)) != 0) {
        int has_reached = by_terminal && job_shares_group();
        run.interrupted |= number == SIGINT && by_terminal && !job_has_own_group();
        run.is_asked |= is_ending(number);
        if (is_ending(number) && !has_reached)
            ask_to_end(number);
        else if (is_ending(number))
            job_signal_rest(number, by_terminal);
        if (number == SIGCONT && job_lend_terminal())
            run.wants_terminal = 0;
        if (number == SIGCHLD || has_reached || is_ending(number) ||
            (!job_has_own_group() && (number == SIGCONT || number == SIGWINCH)))
            continue;
        job_signal_command(number);
        if (number == SIGTSTP && by_terminal) { /* until then the shell has not its terminal back */
            stop_by_terminal();
            job_signal_command(SIGCONT);
        }
    }
}

/* The command is stopped because it uses the terminal: when this process is in the foreground, the command gets the terminal. A
   shell may send no SIGCONT: for bash this process was never stopped. */
static void lend_wanted_terminal(void)
{
    if (run.wants_terminal && job_lend_terminal()) {
        run.wants_terminal = 0;
        job_signal_command(SIGCONT);
    }
}

/* Notes that the command runs again, or reports that it is stopped. No message after Ctrl-Z in the same group, because the shell
   reports that. */
static void look_at_stop(void)
{
    int number;

    if (job_was_continued()) /* maybe not by this process */
        run.wants_terminal = 0;
    number = job_stopped_by();
    if (number == 0 || (number == SIGTSTP && !job_has_own_group()))
        return;
    if (job_takes_terminal()) { /* Ctrl-Z has reached the command only */
        stop_by_terminal();
        return;
    }
    run.wants_terminal = number == SIGTTIN || number == SIGTTOU;
    say(LOG_WARNING, "%s: the command is stopped%s; the lock is still renewed", run.name,
        run.wants_terminal ? " because it uses the terminal, which needs --foreground" : "");
}

/* The command has ended, and the lock is held: what of the job is left gets --kill-after to end. */
static void drain(uint64_t now)
{
    if (job_is_empty())
        return;
    run.state = DRAINING;
    set_limit(now);
    say(LOG_NOTICE,
        "%s: the command has ended, and processes that it started have not: they have %ld.%ld s",
        run.name, options.kill_after_ms / 1000, options.kill_after_ms % 1000 / 100);
}

/* The next state of the job; `end` is NULL while the command lives. */
static void advance(uint64_t now, const siginfo_t *end)
{
    if (run.state == RUNNING && end != NULL && (end->si_code != CLD_EXITED || run.is_asked))
        drain(now);
    if ((run.state == DRAINING || run.state == STOPPING) && now >= run.kill_us) {
        if (run.state == DRAINING)
            say(LOG_WARNING, "%s: the job has not ended within %ld.%ld s: it is killed", run.name,
                options.kill_after_ms / 1000, options.kill_after_ms % 1000 / 100);
        run.state = KILLING;
        run.kill_us = now + (uint64_t)KILLED_MS * 1000;
    }
    if (run.state == KILLING) /* again and again: a process may have started another one */
        job_end(SIGKILL);
    if (end == NULL)
        return;
    if (run.state == RUNNING || run.state == LET_GO || job_is_empty()) {
        run.state = OVER;
    } else if (run.state == KILLING && now >= run.kill_us) {
        say(LOG_ERROR, "%s: a process of the command cannot be killed", run.name);
        run.state = OVER;
    }
}

/* When the state may change without an event. */
static uint64_t wake_us(uint64_t now, int ended)
{
    uint64_t wake = run.state == KILLING          ? now + (uint64_t)KILL_MS * 1000
                    : ended || run.wants_terminal ? now + (uint64_t)LOOK_MS * 1000
                                                  : UINT64_MAX;

    if ((run.state == DRAINING || run.state == STOPPING) && run.kill_us < wake)
        wake = run.kill_us;
    if (is_renewed() && stop_us() < wake)
        wake = stop_us();
    return is_renewed() && run.warn_us < wake ? run.warn_us : wake;
}

/* Waits for the end of the job. The command stays a zombie, so that no other process gets its pid yet. */
static siginfo_t supervise(void)
{
    siginfo_t end = {0};

    for (;;) {
        uint64_t now =
            now_us(); /* before job_has_ended(), because this process may be paused in between */
        int ended = job_has_ended(&end);
        if (ended)
            is_asked_to_end(); /* takes a signal that came after the last turn, and ended the command */
        if (!ended || !job_has_guard() || end.si_code != CLD_EXITED ||
            (run.state != RUNNING && !job_is_empty()))
            look_at_lock(now); /* else it ended in time: otherwise the guard would have killed it */
        forward_signals();
        advance(now, ended ? &end : NULL);
        if (run.state == OVER)
            return end;
        look_at_stop();
        lend_wanted_terminal();
        job_reap_orphans();
        turn(&session, wake_us(now, ended));
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
    int held = !run.lost || run.at_most;

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
        status = session_release(&session);
        if (status == REDLOCK_OK) /* a quorum has: later replies are not waited for */
            event("released");
        else
            event("release-failed %u/%u", count_nodes(lock->granted), target_count);
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

static int status_of(const siginfo_t *end)
{
    return end->si_code == CLD_EXITED ? end->si_status : 128 + end->si_status;
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
    job_finish();
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
    char id[ID_TEXT];
    unsigned i;

    may_wait = 0;
    forget_other_signals(); /* they came before the command: it would have no handler for them yet */
    run.deadline_us = session.lock->valid_until_us;
    run.extended = session.lock->extended;
    snprintf(run.mark, sizeof run.mark, "%.*s", TOKEN_DIGITS, session.value);
    id_of(id, session.value, strlen(session.value));
    event("acquired %s %lu", id,
          (unsigned long)redlock_remaining_ms(&session.client, session.lock));
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
    siginfo_t end;
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
    setup.ends_with_lock = !goes_on;
    setup.name = run.name;
    setup.mark = run.mark;
    setup.deadline_us = run.deadline_us;
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
    event("exit %d", status_of(&end));
    job_finish();
    end_hold();
    session_finish(&session);
    session_close(&session);
    if (run.lost && !options.preserve_status)
        return EXIT_LOST;
    if (run.interrupted && end.si_code == CLD_KILLED && end.si_status == SIGINT)
        end_by(SIGINT); /* so that a loop of a shell ends, as it would without this program */
    return status_of(&end);
}
