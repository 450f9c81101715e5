/* interop.c - our library and node-redlock want the same lock. Who is inside is judged by files, not by
   Redis: a marker that only one can create, a count that only one at a time may read and write, and the
   times of entering and leaving, which must not overlap. TAP; see interop.sh.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "redlock.h"
#include "servers.h"
#include "tap.h"

#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { NODES = 5, OURS = 2, THEIRS = 2, TURNS_MAX = 100000, ANSWER_MS = 30000 };

static struct server servers[NODES];
static struct redlock_node nodes[NODES];
static struct redlock_client client;
static struct redlock_lock lock;
static const char *script; /* client.js */
static const char *folder; /* of the files that judge; emptied by interop.sh */

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now); /* that of node's process.hrtime */
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void begin(uint32_t ttl_ms)
{
    static const struct redlock_settings patient = {
        .node_timeout_ms = 1000, .stall_ms = 5000, .retry_delay_ms = 4, .retry_delay_max_ms = 8};
    int i;

    memset(nodes, 0, sizeof nodes);
    for (i = 0; i < NODES; i++)
        nodes[i].address = servers[i].address;
    redlock_init(&client, redlock_posix(), nodes, NODES, &patient);
    redlock_lock_init(&lock, "interop", ttl_ms);
}

static void forget_all_keys(void)
{
    char reply[64];
    int i;

    for (i = 0; i < NODES; i++)
        server_ask(&servers[i], reply, sizeof reply, "FLUSHALL", NULL);
}

static int acquire(uint32_t wait_ms)
{
    return (int)redlock_acquire(&client, &lock, wait_ms);
}

static int release(void)
{
    return (int)redlock_release(&client, &lock, 5000);
}

/* ---- A node process that does as it is told ------------------------------------------------- */

struct other {
    pid_t pid;
    int in, out; /* its stdin and stdout */
};

/* Becomes "node client.js", these words, the servers' addresses. */
static void become_node(const char *const *words)
{
    const char *arguments[16] = {"node", script};
    int i, n = 2;

    for (; *words != NULL; words++)
        arguments[n++] = *words;
    for (i = 0; i < NODES; i++)
        arguments[n++] = servers[i].address;
    execvp("node", (char *const *)(uintptr_t)arguments);
    _exit(127);
}

static struct other start_talker(void)
{
    static const char *const words[] = {"talk", NULL};
    struct other other;
    int to[2], from[2];

    fflush(stdout);
    if (pipe(to) != 0 || pipe(from) != 0 || (other.pid = fork()) < 0)
        exit(1);
    if (other.pid == 0) {
        dup2(to[0], 0);
        dup2(from[1], 1);
        close(to[1]);
        close(from[0]);
        become_node(words);
    }
    close(to[0]);
    close(from[1]);
    other.in = to[1];
    other.out = from[0];
    fcntl(other.in, F_SETFD, FD_CLOEXEC);
    fcntl(other.out, F_SETFD, FD_CLOEXEC);
    return other;
}

/* Waits for a child, at most until then; then it is killed. Whether it ended unkilled, with status 0. */
static int ends_well(pid_t child, long until)
{
    int status = -1;

    while (waitpid(child, &status, WNOHANG) == 0) {
        if (now_ms() >= until)
            kill(child, SIGKILL);
        sleep_ms(5);
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void end_talker(struct other *other)
{
    close(other->in); /* the end of its stdin is its end */
    ok(ends_well(other->pid, now_ms() + ANSWER_MS), "node-redlock ends");
    close(other->out);
}

/* Its answer to a line. */
static const char *tell(const struct other *other, const char *command)
{
    static char line[400];
    struct pollfd readable = {other->out, POLLIN, 0};
    long until = now_ms() + ANSWER_MS, left;
    size_t used = 0;

    if (write(other->in, command, strlen(command)) < 0 || write(other->in, "\n", 1) != 1)
        return "(it is gone)";
    while (used < sizeof line - 1 && (left = until - now_ms()) > 0 &&
           poll(&readable, 1, (int)left) > 0 && read(other->out, line + used, 1) == 1) {
        if (line[used++] == '\n') {
            line[used - 1] = '\0';
            return line;
        }
    }
    return "(no answer)";
}

static void answers(const struct other *other, const char *command, const char *expected,
                    const char *what)
{
    const char *answer = tell(other, command);

    if (!ok(strncmp(answer, expected, strlen(expected)) == 0, "%s", what))
        printf("# %s: %s, expected %s\n", command, answer, expected);
}

/* ---- One holds, the other asks -------------------------------------------------------------- */

/* Ours is made to believe that it holds the lock, with a token that no server has. */
static void pretend(void)
{
    memset(lock.token, 0x5a, sizeof lock.token);
    memset(lock.generation, 0x5a, sizeof lock.generation);
    lock.members = (1 << NODES) - 1;
    is_int((int)redlock_adopt(&client, &lock, 10000), REDLOCK_OK, "ours pretends to hold it");
}

static void one_key(const struct other *other)
{
    begin(20000);
    answers(other, "acquire interop 20000", "held", "node-redlock holds it");
    is_int(acquire(0), REDLOCK_HELD, "it is refused to ours");
    pretend();
    is_int((int)redlock_extend(&client, &lock), REDLOCK_LOST, "the servers let ours not extend it");
    pretend();
    is_int(release(), REDLOCK_LOST, "nor release it");
    answers(other, "extend interop 20000", "extended", "node-redlock has it still: extended");
    is_int(acquire(0), REDLOCK_HELD, "and refused to ours again");
    answers(other, "release interop", "released", "released");
    is_int(acquire(0), REDLOCK_OK, "ours gets it at once");

    answers(other, "acquire interop 20000", "refused", "it is refused to node-redlock");
    answers(other, "extend interop 20000", "refused", "which can't extend what it had");
    answers(other, "pretend interop", "pretends", "it pretends to hold it");
    answers(other, "extend interop 20000", "refused", "the servers let it not extend it");
    answers(other, "release interop", "refused", "nor release it");
    is_int((int)redlock_extend(&client, &lock), REDLOCK_OK, "ours has it still: extended");
    answers(other, "acquire interop 20000", "refused", "and refused to node-redlock again");
    is_int(release(), REDLOCK_OK, "released");
    answers(other, "acquire interop 20000", "held", "node-redlock gets it at once");
    answers(other, "release interop", "released", "released");
    redlock_deinit(&client);
}

static void several_keys(const struct other *other)
{
    static const struct redlock_key second = {"interop-2", 9};

    begin(20000);
    lock.extra_keys = &second;
    lock.extra_key_count = 1;
    answers(other, "acquire interop-2 20000", "held", "node-redlock holds the second key");
    is_int(acquire(0), REDLOCK_HELD, "both are refused to ours");
    answers(other, "acquire interop 20000", "held", "and the first is left free");
    answers(other, "release interop", "released", "released");
    answers(other, "release interop-2", "released", "both");
    is_int(acquire(0), REDLOCK_OK, "ours holds both");
    answers(other, "acquire interop 20000", "refused", "the first is refused to node-redlock");
    answers(other, "acquire interop-2 20000", "refused", "so is the second");
    answers(other, "acquire interop-2,interop 20000", "refused", "so are both");
    is_int((int)redlock_extend(&client, &lock), REDLOCK_OK, "ours extends both");
    is_int(release(), REDLOCK_OK, "and releases them");
    answers(other, "acquire interop-2,interop 20000", "held", "node-redlock holds both");
    is_int(acquire(0), REDLOCK_HELD, "both are refused to ours");
    answers(other, "release interop-2,interop", "released", "released");
    redlock_deinit(&client);
}

static void fencing_token(const struct other *other)
{
    uint64_t before;

    begin(20000);
    lock.use_fencing = 1;
    is_int(acquire(0), REDLOCK_OK, "ours holds it with a fencing token");
    before = lock.fencing_token;
    answers(other, "acquire interop 20000", "refused", "it is refused to node-redlock");
    is_int(release(), REDLOCK_OK, "released");
    answers(other, "acquire interop 20000", "held", "node-redlock has it in between");
    is_int(acquire(0), REDLOCK_HELD, "it is refused to ours with a fencing token");
    answers(other, "release interop", "released", "released");
    is_int(acquire(0), REDLOCK_OK, "ours holds it again");
    ok(lock.fencing_token > before, "the fencing token has grown: %" PRIu64 ", %" PRIu64, before,
       lock.fencing_token);
    is_int(release(), REDLOCK_OK, "released");
    redlock_deinit(&client);
}

/* ---- A holder is killed --------------------------------------------------------------------- */

enum { SHORT_MS = 3000 };

/* Not before its ttl has passed, counted from before it asked (redis counts whole milliseconds). */
static void not_too_early(long asked)
{
    long passed = now_ms() - asked;

    ok(passed >= SHORT_MS - 2, "not before the ttl of %d ms has passed: %ld ms", SHORT_MS, passed);
}

static void theirs_is_killed(void)
{
    struct other other = start_talker();
    long asked;

    begin(20000);
    answers(&other, "acquire warm 1000", "held", "another node-redlock");
    asked = now_ms();
    answers(&other, "acquire interop 3000", "held", "holds it for 3 s");
    kill(other.pid, SIGKILL);
    waitpid(other.pid, NULL, 0);
    is_int(acquire(20000), REDLOCK_OK, "it is killed: ours gets it");
    not_too_early(asked);
    is_int(release(), REDLOCK_OK, "released");
    close(other.in);
    close(other.out);
    redlock_deinit(&client);
}

/* A child holds the lock and says so with its status; it waits to be killed, for a minute at most. */
static void hold_until_killed(int out)
{
    char status;

    begin(SHORT_MS);
    status = acquire(10000) == REDLOCK_OK ? 'y' : 'n';
    (void)!write(out, &status, 1);
    sleep_ms(60000);
    _exit(0);
}

static void ours_is_killed(const struct other *other)
{
    int from[2];
    char status = '?';
    long asked = now_ms(), until = asked + ANSWER_MS;
    struct pollfd readable = {-1, POLLIN, 0};
    pid_t child;

    fflush(stdout);
    if (pipe(from) != 0 || (child = fork()) < 0)
        exit(1);
    if (child == 0)
        hold_until_killed(from[1]);
    readable.fd = from[0];
    if (poll(&readable, 1, ANSWER_MS) > 0)
        (void)!read(from[0], &status, 1);
    ok(status == 'y', "another of ours holds it for 3 s");
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    while (strcmp(tell(other, "acquire interop 20000"), "held") != 0 && now_ms() < until)
        sleep_ms(10);
    ok(now_ms() < until, "it is killed: node-redlock gets it");
    not_too_early(asked);
    answers(other, "release interop", "released", "released");
    close(from[0]);
    close(from[1]);
}

/* ---- Both take turns ------------------------------------------------------------------------ */

static const char *path(char *text, size_t size, const char *what)
{
    snprintf(text, size, "%s/%s", folder, what);
    return text;
}

static long read_count(void)
{
    char name[400], digits[32] = "";
    FILE *file = fopen(path(name, sizeof name, "t.count"), "r");

    if (file != NULL) {
        (void)!fgets(digits, sizeof digits, file);
        fclose(file);
    }
    return strtol(digits, NULL, 10);
}

static void write_count(long count)
{
    char name[400];
    FILE *file = fopen(path(name, sizeof name, "t.count"), "w");

    if (file != NULL) {
        fprintf(file, "%ld\n", count);
        fclose(file);
    }
}

/* One of ours. The same as contend() in client.js. */
static void contend(long seconds, int ignore)
{
    char name[400], marker[400];
    long until = now_ms() + seconds * 1000;
    FILE *log;

    snprintf(name, sizeof name, "%s/t.ours.%ld", folder, (long)getpid());
    path(marker, sizeof marker, "t.inside");
    log = fopen(name, "w");
    srand((unsigned)getpid());
    begin(10000);
    while (log != NULL && now_ms() < until) {
        uint64_t asked = now_ns(), entered;
        int fd;
        long count;
        if (!ignore && acquire(1000) != REDLOCK_OK)
            continue;
        entered = now_ns();
        fd = open(marker, O_CREAT | O_EXCL | O_WRONLY, 0600);
        count = read_count();
        sleep_ms(rand() % 3);
        write_count(count + 1);
        if (fd >= 0) {
            close(fd);
            unlink(marker);
        }
        fprintf(log, "%" PRIu64 " %" PRIu64 " %" PRIu64 " %d\n", entered, now_ns(), asked, fd >= 0);
        if (!ignore)
            redlock_release(&client, &lock, 1000);
        sleep_ms(rand() % 4);
    }
    redlock_deinit(&client);
    _exit(log == NULL || fclose(log) != 0);
}

struct turn {
    uint64_t entered, left;
};

struct party {
    long turns, longest_ms;
};

struct result {
    long turns, alone, overlaps, count, bad_ends;
    struct party ours, theirs;
};

static int by_time(const void *a, const void *b)
{
    uint64_t x = ((const struct turn *)a)->entered, y = ((const struct turn *)b)->entered;

    return x < y ? -1 : x > y;
}

static void read_logs(const char *pattern, struct turn *turns, struct result *r, struct party *mine)
{
    char name[400], text[200];
    glob_t found;
    size_t i;

    if (glob(path(name, sizeof name, pattern), 0, NULL, &found) != 0)
        return;
    for (i = 0; i < found.gl_pathc; i++) {
        FILE *file = fopen(found.gl_pathv[i], "r");
        while (file != NULL && r->turns < TURNS_MAX && fgets(text, sizeof text, file) != NULL) {
            struct turn *turn = &turns[r->turns];
            uint64_t asked;
            int alone;
            long waited;
            if (sscanf(text, "%" SCNu64 " %" SCNu64 " %" SCNu64 " %d", &turn->entered, &turn->left,
                       &asked, &alone) != 4)
                continue;
            waited = (long)((turn->entered - asked) / 1000000);
            if (waited > mine->longest_ms)
                mine->longest_ms = waited;
            r->alone += alone;
            r->turns++;
            mine->turns++;
        }
        if (file != NULL)
            fclose(file);
        unlink(found.gl_pathv[i]);
    }
    globfree(&found);
}

/* Two of each take turns for so many seconds; the first of each in its mode (see client.js), where
   ours knows "ignore" only. */
static struct result take_turns(long seconds, const char *ours, const char *theirs)
{
    static struct turn turns[TURNS_MAX];
    char file[400], time[12];
    const char *words[] = {"contend", path(file, sizeof file, "t"), time, "lock", NULL};
    pid_t children[OURS + THEIRS];
    struct result r;
    uint64_t left = 0;
    long i;

    memset(&r, 0, sizeof r);
    snprintf(time, sizeof time, "%ld", seconds);
    forget_all_keys();
    write_count(0);
    fflush(stdout);
    for (i = 0; i < OURS + THEIRS; i++) {
        words[3] = i == 0 || strcmp(theirs, "retry") == 0 ? theirs : "lock";
        if ((children[i] = fork()) != 0)
            continue;
        if (i < THEIRS)
            become_node(words);
        contend(seconds, i == THEIRS && strcmp(ours, "ignore") == 0);
    }
    for (i = 0; i < OURS + THEIRS; i++)
        r.bad_ends += !ends_well(children[i], now_ms() + seconds * 1000 + ANSWER_MS);
    read_logs("t.ours.*", turns, &r, &r.ours);
    read_logs("t.node.*", turns, &r, &r.theirs);
    qsort(turns, (size_t)r.turns, sizeof *turns, by_time);
    for (i = 0; i < r.turns; i++) {
        r.overlaps += turns[i].entered < left;
        left = turns[i].left > left ? turns[i].left : left;
    }
    r.count = read_count();
    unlink(path(file, sizeof file, "t.inside"));
    printf("# %ld turns in %ld s: ours %ld, longest wait %ld ms; theirs %ld, longest wait %ld ms\n",
           r.turns, seconds, r.ours.turns, r.ours.longest_ms, r.theirs.turns, r.theirs.longest_ms);
    return r;
}

static void never_two(const struct result *r)
{
    is_int(r->turns - r->alone, 0, "each is alone inside");
    is_int(r->overlaps, 0, "no two at one time");
    is_int(r->count, r->turns, "no count is lost");
    is_int(r->bad_ends, 0, "each ends by itself");
}

static void both_take_turns(long seconds)
{
    struct result r = take_turns(seconds, "lock", "lock");

    ok(r.turns >= 50 * seconds, "two of ours and two of theirs take %ld turns", r.turns);
    never_two(&r);
    ok(r.ours.turns * 10 >= r.turns, "ours get their turns: %ld", r.ours.turns);
    ok(r.theirs.turns * 10 >= r.turns, "theirs get their turns: %ld", r.theirs.turns);
}

/* With its own retries, each 20 of about 5 ms, which block all clients that want the lock: a figure, and
   still never two holders. Why: see ask() in client.js. */
static void own_retries(void)
{
    struct result r = take_turns(5, "lock", "retry");

    ok(r.turns > 0, "node-redlock retries by itself: %ld turns", r.turns);
    never_two(&r);
}

static void one_ignores_the_lock(const char *ours, const char *theirs, const char *who)
{
    struct result r = take_turns(2, ours, theirs);

    ok(r.turns - r.alone > 0 && r.overlaps > 0 && r.count != r.turns,
       "one of %s does not ask for the lock: the checker sees %ld not alone, %ld at one time, %ld "
       "counts lost",
       who, r.turns - r.alone, r.overlaps, r.turns - r.count);
}

int main(int argc, char **argv)
{
    struct other other;

    if (argc != 4) {
        fprintf(stderr, "usage: interop client.js FOLDER SECONDS\n");
        return 2;
    }
    alarm(600); /* whatever happens */
    script = argv[1];
    folder = argv[2];
    signal(SIGPIPE, SIG_IGN);
    servers_start(servers, NODES, NULL);
    other = start_talker();
    one_key(&other);
    several_keys(&other);
    fencing_token(&other);
    theirs_is_killed();
    ours_is_killed(&other);
    end_talker(&other);
    one_ignores_the_lock("ignore", "lock", "ours");
    one_ignores_the_lock("lock", "ignore", "theirs");
    own_retries();
    both_take_turns(strtol(argv[3], NULL, 10));
    return done_testing();
}
