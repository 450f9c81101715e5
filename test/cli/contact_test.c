/* contact_test.c - the first contact of redlock(1) with its servers: name servers that are dead, slow, or answer for one family of
   addresses only, and addresses that swallow packets. Runs in a network namespace with an empty packet filter (see partition.sh), and
   has a name server and a resolv.conf there. contact_test SCENARIO runs one scenario; without an argument it lists all.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* unshare */
#include "program.h"
#include "servers.h"
#include "tap.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NODES = 3 };

/* Of the name servers: nothing answers at the first one; the second one is a child of the test. */
#define DEAD_SERVER "127.0.0.61"
#define LIVE_SERVER "127.0.0.62"
/* Of each node: the filter drops all packets to the first one. */
#define HOLE "127.0.0.2"
#define ADDRESS "127.0.0.8"
#define OTHER_ADDRESS "127.0.0.9"

static struct server servers[NODES];

static void shell(const char *command)
{
    if (system(command) != 0) {
        printf("Bail out! %s\n", command);
        exit(1);
    }
}

/* ---- A name server ---- */

enum { TYPE_A = 1, TYPE_AAAA = 28, HEADER = 12, NOT_IMPLEMENTED = 4, TRUNCATED = 0x02 };

/* What the name server answers, shared with the test. */
static struct answers {
    volatile int drops_aaaa;   /* 1: a question for AAAA has no answer */
    volatile int refuses_aaaa; /* 1: its answer is NOTIMP */
    volatile int truncates;    /* 1: an answer over UDP says only that it is too long */
    volatile int count;        /* of these; each name has them all */
    volatile uint32_t address[8];
} * answers;

/* Appends the addresses to a question of `size` bytes. Returns the size of both. */
static size_t add_addresses(uint8_t *packet, size_t size)
{
    static const uint8_t record[] = {0xc0, HEADER, 0, TYPE_A, 0, 1, 0, 0, 0, 1, 0, 4};
    int n;

    packet[7] = (uint8_t)answers->count;
    for (n = 0; n < answers->count; n++) {
        uint32_t address = answers->address[n];
        memcpy(packet + size, record, sizeof record);
        memcpy(packet + size + sizeof record, &address, 4);
        size += sizeof record + 4;
    }
    return size;
}

/* Makes an answer of a question of `size` bytes. Returns its size; 0: none. */
static size_t answer(uint8_t *packet, size_t size, int over_udp)
{
    size_t end = HEADER;
    int type;

    while (end < size && packet[end] != 0)
        end += packet[end] + 1U;
    end += 5; /* the empty label, type and class; what follows is dropped */
    if (end > size)
        return 0;
    type = packet[end - 4] << 8 | packet[end - 3];
    if (type == TYPE_AAAA && answers->drops_aaaa)
        return 0;
    packet[2] = 0x80 | (packet[2] & 1); /* an answer */
    packet[3] = 0x80;                   /* recursion is available */
    memset(packet + 6, 0, 6);
    if (type == TYPE_AAAA && answers->refuses_aaaa)
        packet[3] |= NOT_IMPLEMENTED;
    else if (over_udp && answers->truncates)
        packet[2] |= TRUNCATED;
    else if (type == TYPE_A)
        return add_addresses(packet, end);
    return end;
}

static int bind_to(int type)
{
    struct sockaddr_in at = {0};
    int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);

    at.sin_family = AF_INET;
    at.sin_port = htons(53);
    inet_pton(AF_INET, LIVE_SERVER, &at.sin_addr);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) != 0) {
        perror("the name server");
        exit(1);
    }
    return fd;
}

static void serve_udp(int fd)
{
    uint8_t packet[1024];
    struct sockaddr_in from;
    socklen_t from_size = sizeof from;
    ssize_t got;

    while ((got = recvfrom(fd, packet, 512, 0, (struct sockaddr *)&from, &from_size)) >= 0) {
        size_t size = answer(packet, (size_t)got, 1);
        if (size > 0)
            sendto(fd, packet, size, 0, (struct sockaddr *)&from, from_size);
    }
}

/* Each message begins with its size. A resolver sends its questions together. */
static void serve_connection(int fd)
{
    uint8_t questions[1024], packet[1024];
    ssize_t got, at, size;
    size_t reply;

    while ((got = recv(fd, questions, sizeof questions, 0)) > 0)
        for (at = 0; at + 2 <= got; at += 2 + size) {
            size = questions[at] << 8 | questions[at + 1];
            if (size > 512 || at + 2 + size > got)
                return;
            memcpy(packet + 2, questions + at + 2, (size_t)size);
            reply = answer(packet + 2, (size_t)size, 0);
            packet[0] = (uint8_t)(reply >> 8);
            packet[1] = (uint8_t)reply;
            if (reply > 0)
                send(fd, packet, reply + 2, MSG_NOSIGNAL);
        }
}

static void serve_tcp(int listener)
{
    int fd;

    while ((fd = accept(listener, NULL, NULL)) >= 0) {
        serve_connection(fd);
        close(fd);
    }
}

static void start_name_server(void)
{
    pid_t test = getpid();
    int udp = bind_to(SOCK_DGRAM), tcp = bind_to(SOCK_STREAM);

    listen(tcp, 16);
    if (fork() == 0) {
        end_with(test);
        if (fork() == 0) {
            end_with(getppid());
            serve_tcp(tcp);
        }
        serve_udp(udp);
        _exit(0);
    }
    close(udp);
    close(tcp);
}

/* ---- The names of the nodes ---- */

static void name_nodes(const char *first, const char *second)
{
    struct in_addr address;

    inet_pton(AF_INET, first, &address);
    answers->address[0] = address.s_addr;
    inet_pton(AF_INET, second, &address);
    answers->address[1] = address.s_addr;
    answers->count = strcmp(first, second) == 0 ? 1 : 2;
}

/* The programs of this test have this file in place of the system's. Returns 0 if that is not permitted. */
static int replace_file(const char *path, const char *text)
{
    char own[200];
    int fd;

    snprintf(own, sizeof own, "%s/%s", programs_folder(), strrchr(path, '/') + 1);
    fd = open(own, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        exit(1);
    close(fd);
    return access(path, F_OK) != 0 || mount(own, path, NULL, MS_BIND, NULL) == 0;
}

/* Names are looked up at these name servers only. Returns 0 if a private mount is not permitted. */
static int set_resolver(const char *lines)
{
    return access("/etc/resolv.conf", F_OK) == 0 && unshare(CLONE_NEWNS) == 0 &&
           mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           replace_file("/etc/nsswitch.conf", "hosts: files dns\n") &&
           replace_file("/etc/resolv.conf", lines);
}

/* Three servers with names. */
static void begin(const char *resolver)
{
    static const char *const options[] = {"--bind", "127.0.0.1", ADDRESS, OTHER_ADDRESS, NULL};
    char list[200] = "";
    unsigned i;

    if (!set_resolver(resolver)) {
        printf("1..0 # SKIP a private /etc/resolv.conf is not permitted\n");
        exit(0);
    }
    shell("nft add rule ip redlock input ip daddr " HOLE " drop");
    shell("nft add rule ip redlock input ip daddr " DEAD_SERVER " drop");
    servers_start(servers, NODES, options);
    for (i = 0; i < NODES; i++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "node%u.test.:%d ", i,
                 servers[i].port);
    setenv("REDLOCK_NODES", list, 1);
    answers =
        mmap(NULL, sizeof *answers, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    name_nodes(ADDRESS, ADDRESS);
    start_name_server();
}

/* ---- Scenarios ---- */

/* A lock of this name for each program that is to release it. */
static void take(const char *name)
{
    char token[200];

    is_int(redlock("acquire", "-w", "60", "-t", "600", name, NULL), 0, "acquire -w");
    snprintf(token, sizeof token, "%s", wrote(last, 'o'));
    token[strcspn(token, "\n")] = '\0';
    setenv("REDLOCK_TOKEN", token, 1);
}

/* All verbs work, at the same time, because each may have to wait. `r` is held, and released. */
static void all_work(const char *when)
{
    struct program run_n = start("run", "-n", "a", "sh", "-c", "exit 4", NULL);
    struct program run_w = start("run", "-w", "3", "b", "sh", "-c", "exit 5", NULL);
    struct program acquire = start("acquire", "-n", "-t", "60", "c", NULL);
    struct program release = start("release", "r", NULL);
    struct program status = start("status", "d", NULL);

    is_int(ends(&run_n), 4, "%s: run -n", when);
    is_int(ends(&run_w), 5, "%s: run -w 3", when);
    is_int(ends(&acquire), 0, "%s: acquire -n", when);
    is_int(ends(&release), 0, "%s: release", when);
    is_int(ends(&status), 1, "%s: status", when);
}

/* The first of two name servers is dead, so each lookup takes five seconds with glibc. */
static void dead_name_server(void)
{
    begin("nameserver " DEAD_SERVER "\nnameserver " LIVE_SERVER "\n");
    take("r");
    all_work("the first name server is dead");
}

/* The resolver would wait for the other family for longer than any program here. */
#define ONE_FAMILY "nameserver " LIVE_SERVER "\noptions timeout:30 attempts:1\n"

static void no_answer_for_aaaa(void)
{
    begin(ONE_FAMILY);
    answers->drops_aaaa = 1;
    take("r");
    all_work("no answer for AAAA");
}

static void no_support_for_aaaa(void)
{
    begin(ONE_FAMILY);
    answers->refuses_aaaa = 1;
    take("r");
    all_work("AAAA is not implemented");
}

/* An answer that is too long for UDP. */
static void answer_over_tcp(void)
{
    begin(ONE_FAMILY);
    answers->truncates = 1;
    take("r");
    all_work("answers over TCP");
}

/* The first address of each name swallows packets. One attempt to connect takes longer than -w 3, and than -n waits. */
static void first_address_is_a_hole(void)
{
    begin("nameserver " LIVE_SERVER "\n");
    take("r");
    name_nodes(HOLE, ADDRESS);
    setenv("REDLOCK_NODE_TIMEOUT", "5", 1);
    all_work("the first address is a hole");
    is_int(redlock("run", "-n", "e", "sh", "-c", "! ls -l /proc/$$/fd | grep socket:", NULL), 0,
           "the command has none of the sockets");
}

/* Each name has eight addresses, and only the last one does not swallow packets. The program dials one every 250 ms. The resolver puts
   those first that have the most bits in common with 127.0.0.1. */
static void last_address_answers(void)
{
    unsigned n;

    begin("nameserver " LIVE_SERVER "\n");
    shell("nft add rule ip redlock input ip daddr 127.0.0.3-127.0.0.8 drop");
    for (n = 0; n < 8; n++)
        answers->address[n] = htonl(0x7f000002 + n); /* 127.0.0.2 to OTHER_ADDRESS */
    answers->count = 8;
    is_int(redlock("status", "a", NULL), 1, "status");
    is_int(redlock("release", "--force", "00000000", "a", NULL), 79, "release --force");
    ok(redlock("check", NULL) < 3 && strstr(wrote(last, 'o'), "fail    reachable") == NULL,
       "check reaches all nodes: %s", wrote(last, 'o'));
}

/* The first address swallows packets, and the names move to it while the lock is held: one attempt to connect takes longer than the ttl. */
static void move_to_a_hole(void)
{
    struct program run;

    begin("nameserver " LIVE_SERVER "\n");
    setenv("REDLOCK_NODE_TIMEOUT", "5", 1);
    run = start("run", "-v", "-t", "6", "a", "sh", "-c", "echo began; sleep 10; exit 4", NULL);
    ok(writes(run, 'o', "began"), "the command runs");
    name_nodes(HOLE, OTHER_ADDRESS);
    shell("nft add rule ip redlock input ip daddr " ADDRESS " reject with tcp reset");
    is_int(ends(&run), 4, "the lock is held until the command has ended");
    ok(strstr(wrote(run, 'e'), "has another address now") != NULL, "at the other address");
}

static const struct {
    const char *name;
    void (*run)(void);
} scenarios[] = {
    {"dead_name_server", dead_name_server},
    {"no_answer_for_aaaa", no_answer_for_aaaa},
    {"no_support_for_aaaa", no_support_for_aaaa},
    {"answer_over_tcp", answer_over_tcp},
    {"first_address_is_a_hole", first_address_is_a_hole},
    {"last_address_answers", last_address_answers},
    {"move_to_a_hole", move_to_a_hole},
};
enum { SCENARIOS = sizeof scenarios / sizeof *scenarios };

int main(int count, char **arguments)
{
    size_t i;

    for (i = 0; i < SCENARIOS && count < 2; i++)
        printf("%s\n", scenarios[i].name);
    if (count < 2)
        return 0;
    programs_begin(getenv("REDLOCK") != NULL ? getenv("REDLOCK") : "build/redlock");
    setenv("REDLOCK_CONFIG", "/dev/null", 1);
    for (i = 0; i < SCENARIOS && strcmp(scenarios[i].name, arguments[1]) != 0; i++)
        continue;
    if (i == SCENARIOS) {
        fprintf(stderr, "contact_test: no such scenario: %s\n", arguments[1]);
        return 1;
    }
    scenarios[i].run();
    return done_testing();
}
