/* cli_tls.c - redlock(1) with TLS on real servers: certificates good and bad, a demanded client certificate, versions of TLS,
   handshakes that fail. Run by test/ports/tls.sh: its argument is a folder of certificates. REDLOCK names the program. The servers
   also have a port without TLS, which the test uses to check their keys.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "program.h"
#include "servers.h"
#include "tap.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { NODES = 3 };

static struct server servers[NODES];
static const char *folder, *program;
static struct {
    char address[32], url[48], certificate[120], key[120], authorities[120];
    const char *options[13];
} over_tls[NODES];

/* ---- Servers -------------------------------------------------------------------------------- */

/* Restarts server i with this certificate. `clients`: "yes" if clients must have a certificate, else "no". `versions` of TLS: as
   in redis.conf. */
static void serve(unsigned i, const char *certificate, const char *clients, const char *versions)
{
    const char *options[] = {"--tls-port",
                             strchr(over_tls[i].address, ':') + 1,
                             "--tls-cert-file",
                             over_tls[i].certificate,
                             "--tls-key-file",
                             over_tls[i].key,
                             "--tls-ca-cert-file",
                             over_tls[i].authorities,
                             "--tls-auth-clients",
                             clients,
                             "--tls-protocols",
                             versions,
                             NULL};

    snprintf(over_tls[i].certificate, sizeof over_tls[i].certificate, "%s/%s.pem", folder,
             certificate);
    snprintf(over_tls[i].key, sizeof over_tls[i].key, "%s/%s.key", folder, certificate);
    snprintf(over_tls[i].authorities, sizeof over_tls[i].authorities, "%s/%s.pem", folder,
             strcmp(certificate, "stranger") == 0 && clients[0] == 'y' ? "other-ca" : "ca");
    memcpy(over_tls[i].options, options, sizeof options);
    servers[i].options = over_tls[i].options;
    server_restart(&servers[i]);
}

#define ANY_VERSION "TLSv1.2 TLSv1.3"

static void serve_all(const char *certificate, const char *clients, const char *versions)
{
    unsigned i;

    for (i = 0; i < NODES; i++)
        serve(i, certificate, clients, versions);
}

/* A file of the folder. Valid until the eighth next call. */
static const char *file(const char *name)
{
    static char paths[8][160];
    static unsigned turn;
    char *path = paths[turn++ % 8];

    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

/* ---- The program ---------------------------------------------------------------------------- */

/* 1: the last program wrote this to stderr or stdout; else shows what it wrote. */
static int said(const char *text)
{
    int found = strstr(wrote(last, 'e'), text) != NULL || strstr(wrote(last, 'o'), text) != NULL;

    if (!found)
        fprintf(stderr, "# it wrote: %s%s\n", wrote(last, 'e'), wrote(last, 'o'));
    return found;
}

/* A lock that no majority of these nodes grants, and its status, end with 69 and these words. The verbs connect in different ways:
   `acquire` through the library, `status` with plain commands. */
static void refuses(const char *what, const char *list, const char *words)
{
    setenv("REDLOCK_UNAVAILABLE_TIMEOUT", "1", 1);
    is_int(redlock("acquire", "-n", "-t", "60", "-N", list, "x", NULL), 78,
           "%s: acquire ends with 78", what);
    unsetenv("REDLOCK_UNAVAILABLE_TIMEOUT");
    ok(said(words), "%s: acquire says: %s", what, words);
    is_int(redlock("status", "-N", list, "x", NULL), 78, "%s: status ends with 78", what);
    ok(said(words), "%s: status says: %s", what, words);
}

/* ---- Tests ---------------------------------------------------------------------------------- */

static void works(const char *what)
{
    char token[400];

    is_int(redlock("acquire", "-t", "60", "x", NULL), 0, "%s: acquire", what);
    snprintf(token, sizeof token, "%.300s", wrote(last, 'o'));
    token[strcspn(token, "\n")] = '\0';
    is_int(redlock("status", "x", NULL), 0, "%s: status", what);
    setenv("REDLOCK_TOKEN", token, 1);
    is_int(redlock("release", "x", NULL), 0, "%s: release", what);
    unsetenv("REDLOCK_TOKEN");
    is_int((long)servers_keys_left("redlock:*", 10000), 0, "%s: no key is left", what);
}

static void verbs(void)
{
    works("all with TLS");
    is_int(redlock("run", "x", "-c", "exit 4", NULL), 4, "run: the status of the command");
    is_int(redlock("status", NULL), 1, "status of all: no lock is held");
    redlock("check", NULL);
    is_int(count_of(wrote(last, 'o'), "p50 "), NODES, "check: all nodes answer");
}

/* Options from the command line, the environment, a file; the system's bundle. */
static void where_options_come_from(void)
{
    char text[1000], path[200];
    FILE *config;

    unsetenv("REDLOCK_CACERT");
    is_int(redlock("status", "--cacert", file("ca.pem"), "x", NULL), 1, "--cacert");
    snprintf(path, sizeof path, "%s/config", folder);
    config = fopen(path, "w");
    fprintf(config, "cacert = %s\nsni = redis.example\n", file("ca.pem"));
    fclose(config);
    is_int(redlock("status", "--config", path, "x", NULL), 1, "cacert and sni in a file");
    setenv("SSL_CERT_FILE", file("ca.pem"), 1);
    is_int(redlock("status", "x", NULL), 1, "without --cacert: the system's bundle");
    setenv("SSL_CERT_FILE", file("other-ca.pem"), 1);
    refuses("the system does not know the authority", getenv("REDLOCK_NODES"),
            "tls: the certificate is of an unknown authority");
    unsetenv("SSL_CERT_FILE");
    snprintf(text, sizeof text, "cd %s && %s run --cacert ca.pem x -c 'cd / && %s status x'",
             folder, program, program);
    setup.instead = "/bin/sh";
    is_int(redlock("-c", text, NULL), 0, "a relative path is absolute for the command of run");
    ok(said("x     held "), "  which sees the lock");
    setenv("REDLOCK_CACERT", file("ca.pem"), 1);
}

static void names(void)
{
    char list[64];

    is_int(redlock("status", "--sni", "redis.example", "x", NULL), 1, "--sni: a name");
    is_int(redlock("status", "--sni", "127.0.0.1", "x", NULL), 1, "--sni: an address");
    is_int(redlock("status", "--sni", "redis.example.", "x", NULL), 1, "--sni: a dot at the end");
    is_int(redlock("status", "--sni", "redi.example", "x", NULL), 78, "--sni: another name");
    ok(said("tls: the certificate is for another name than redi.example"), "  it says which");
    snprintf(list, sizeof list, "rediss://127.1%s", strchr(over_tls[0].address, ':'));
    refuses("a name that is resolved to the right address", list,
            "tls: the certificate is for another name than 127.1");
    serve(0, "elsewhere", "no", ANY_VERSION);
    refuses("another host", over_tls[0].url,
            "tls: the certificate is for another name than 127.0.0.1");
    redlock("check", "-N", over_tls[0].url, NULL);
    ok(said("tls: the certificate is for another name than 127.0.0.1"), "check says it, too");
    ok(strstr(wrote(last, 'o'), "fix: certificates, their names and dates: ") != NULL,
       "  and what to do");
    works("one node is another host");
    serve(0, "expired", "no", ANY_VERSION);
    refuses("an expired certificate", over_tls[0].url, "tls: the certificate has expired");
    serve(0, "stranger", "no", ANY_VERSION);
    refuses("another authority", over_tls[0].url,
            "tls: the certificate is of an unknown authority");
    serve(0, "clients-only", "no", ANY_VERSION);
    refuses("a certificate for clients", over_tls[0].url,
            "tls: the certificate is for clients only (extendedKeyUsage)");
    serve(0, "server", "no", ANY_VERSION);
}

static void client_certificates(void)
{
    const char *const list = over_tls[0].url;

    serve(0, "server", "yes", ANY_VERSION);
    refuses("the server demands a certificate", list, "or a client certificate is required");
    setenv("REDLOCK_CERT", file("other-client.pem"), 1);
    setenv("REDLOCK_KEY", file("other-client.key"), 1);
    refuses("a certificate of another authority", list,
            "tls: the server rejects the client certificate: unknown authority");
    setenv("REDLOCK_CERT", file("client.pem"), 1);
    setenv("REDLOCK_KEY", file("client.key"), 1);
    works("the right certificate");
    is_int(redlock("status", "--key", file("server.key"), "x", NULL), 78, "another key: 78");
    ok(said("server.key: this is not the key of the certificate"), "  it says why");
    unsetenv("REDLOCK_KEY");
    is_int(redlock("status", "x", NULL), 78, "a certificate without a key: 78");
    ok(said("--key is missing"), "  it says why");
    unsetenv("REDLOCK_CERT");
    is_int(redlock("acquire", "-t", "9", "--cacert", file("none.pem"), "x", NULL), 78,
           "a missing file: 78");
    ok(said("none.pem: No such file"), "  it says why");
    is_int(redlock("status", "--cacert", folder, "x", NULL), 78, "a directory: 78");
    ok(said(": a directory: name one file"), "  it says what to use");
    is_int(redlock("status", "--cacert", file("ca.key"), "x", NULL), 78, "no certificate in it");
    ok(said("ca.key: "), "  it names the file");
    serve(0, "server", "no", ANY_VERSION);
}

static void versions(void)
{
    serve_all("server", "no", "TLSv1.2");
    works("TLS 1.2 only");
    serve_all("server", "no", ANY_VERSION);
    works("TLS 1.2 and 1.3");
    serve(0, "server", "no", "TLSv1.3");
    refuses("TLS 1.3 only", over_tls[0].url, "tls: the server does not accept TLS 1.2");
    serve(0, "server", "no", ANY_VERSION);
}

/* Accepts the program's connection, replies, and keeps the connection until the program ends. */
static void replies(int listener, const char *url, const char *bytes)
{
    struct pollfd fd = {listener, POLLIN, 0};
    int connection;

    last = start("status", "-N", url, "x", NULL);
    connection = poll(&fd, 1, (int)WAIT_MS) == 1 ? accept(listener, NULL, NULL) : -1;
    if (connection >= 0 && bytes != NULL)
        (void)send(connection, bytes, strlen(bytes), MSG_NOSIGNAL);
    if (bytes == NULL)
        close(connection);
    is_int(ends(&last), 78, "status ends with 78");
    if (bytes != NULL)
        close(connection);
}

static void not_tls(void)
{
    char address[32], url[48], list[200];
    int listener = listen_on(address, sizeof address);

    snprintf(url, sizeof url, "rediss://%s", address);
    replies(listener, url, "-ERR Protocol error\r\n");
    ok(said("tls: the server does not speak TLS on this port"), "a reply that is not TLS");
    replies(listener, url, "HTTP/1.1 400 Bad Request\r\n\r\n");
    ok(said("tls: the server does not speak TLS on this port"), "a reply of HTTP");
    replies(listener, url, NULL);
    ok(said("tls: closed by the server during the handshake; does this port speak TLS?"),
       "no reply: closed");
    close(listener);
    snprintf(url, sizeof url, "rediss://%.31s", servers[0].address);
    is_int(redlock("status", "--node-timeout", "300ms", "-N", url, "x", NULL), 69,
           "TLS to a port of redis-server without TLS: 69");
    ok(said("TLS port?") || said("does not speak TLS"), "  it asks for the port");
    is_int(redlock("status", "-N", over_tls[0].address, "x", NULL), 69, "no TLS to a TLS port: 69");
    ok(said("; does this port expect TLS?"), "  it asks for the port");
    redlock("run", "-n", "-N", over_tls[0].address, "x", "true", NULL);
    ok(said("; does this port expect TLS?"), "  run asks the same");
    snprintf(list, sizeof list, "%s %.31s %.31s", over_tls[0].url, servers[1].address,
             servers[2].address);
    is_int(redlock("run", "-N", list, "x", "-c", "exit 4", NULL), 4, "one of three with TLS: run");
    is_int(redlock("status", "-N", list, "x", NULL), 1, "one of three with TLS: status");
}

/* 1: the server's side of a connection to its TLS port has bytes that the server has not read. */
static int has_unread_bytes(unsigned i)
{
    unsigned port, state, unread, wanted = (unsigned)atoi(strchr(over_tls[i].address, ':') + 1);
    FILE *table = fopen("/proc/net/tcp", "r");
    char line[300];
    int found = 0;

    while (table != NULL && fgets(line, sizeof line, table) != NULL)
        if (sscanf(line, " %*u: %*x:%x %*x:%*x %x %*x:%x", &port, &state, &unread) == 3)
            found |= port == wanted && state == 1 && unread > 0;
    if (table != NULL)
        fclose(table);
    return found;
}

static void killed_in_the_handshake(void)
{
    server_pause(&servers[0]);
    last = start("status", "-N", over_tls[0].url, "x", NULL);
    ok(until(has_unread_bytes(0), WAIT_MS), "the server has the beginning of the handshake");
    server_kill(&servers[0]);
    is_int(ends(&last), 78, "killed in the handshake: status ends with 78");
    ok(said("tls: closed by the server during the handshake"), "  it says why");
    is_int(redlock("run", "x", "-c", "exit 4", NULL), 4, "one node is down: run works");
    serve(0, "server", "no", ANY_VERSION);
    server_pause(&servers[0]);
    last = start("run", "x", "-c", "exit 4", NULL);
    ok(until(has_unread_bytes(0) || has_ended(last), WAIT_MS), "run connects to it");
    server_kill(&servers[0]);
    is_int(ends(&last), 4, "killed in the handshake, one of three: run works");
    serve(0, "server", "no", ANY_VERSION);
}

static void hung(void)
{
    server_pause(&servers[0]);
    is_int(redlock("status", "--node-timeout", "300ms", "-N", over_tls[0].url, "x", NULL), 69,
           "a hung server: status ends with 69");
    ok(said("no TLS connection within "), "  it says why");
    setenv("REDLOCK_UNAVAILABLE_TIMEOUT", "500ms", 1);
    is_int(redlock("acquire", "-n", "-t", "60", "--node-timeout", "300ms", "-N", over_tls[0].url,
                   "x", NULL),
           69, "a hung server: acquire ends with 69");
    unsetenv("REDLOCK_UNAVAILABLE_TIMEOUT");
    ok(said("is this a TLS port?"), "  it says why");
    is_int(redlock("run", "x", "-c", "exit 4", NULL), 4, "one of three hangs: run works");
    server_resume(&servers[0]);
    is_int((long)servers_keys_left("redlock:*", 10000), 0, "no key is left");
}

/* A lock is renewed over TLS while a server is killed and comes back. */
static void renewed(void)
{
    struct program run = start("run", "-t", "6", "-v", "x", "sh", "-c",
                               "trap 'exit 5' USR1; "
                               "while :; do sleep 0.1; done",
                               NULL);
    int before;

    ok(writes(run, 'e', "renewed"), "run renews its lock");
    server_kill(&servers[0]);
    before = count_of(wrote(run, 'e'), "renewed");
    ok(until(count_of(wrote(run, 'e'), "renewed") > before, WAIT_MS), "after a server was killed");
    serve(0, "server", "no", ANY_VERSION);
    ok(until(servers_keys_left("redlock:x", 0) == NODES, WAIT_MS), "it is repaired there");
    kill(run.pid, SIGUSR1);
    is_int(ends(&run), 5, "run ends with the status of its command");
    is_int((long)servers_keys_left("redlock:*", 10000), 0, "no key is left");
}

/* Copies a file of the folder over another one in place: a reader may see half of it. */
static void copy(const char *from, const char *to)
{
    char bytes[8192];
    FILE *in = fopen(file(from), "r"), *out = fopen(file(to), "w");

    fwrite(bytes, 1, fread(bytes, 1, sizeof bytes, in), out);
    fclose(in);
    fclose(out);
}

/* 1: server i has the lock of this process; a waiter has it for a moment where the key is gone. */
static int has_lock_of(unsigned i, struct program holder)
{
    char reply[400], pid[24];

    snprintf(pid, sizeof pid, ":%ld:", (long)holder.pid);
    return strstr(server_ask(&servers[i], reply, sizeof reply, "GET", "redlock:x", NULL), pid) !=
           NULL;
}

/* 1: server i gets the lock again, and votes in a renewal, so that the next server may fail. */
static int is_repaired(unsigned i, struct program run)
{
    int before;

    if (!until(has_lock_of(i, run), WAIT_MS))
        return 0;
    before = count_of(wrote(run, 'e'), ": renewed; ");
    return until(count_of(wrote(run, 'e'), ": renewed; ") > before + 1, WAIT_MS);
}

/* The servers get certificates of another authority, and demand those of clients, one server after the other. A client that did not
   read its files again could use none of them. */
static void changed_files(void)
{
    struct program run, waits;
    int i;

    copy("ca.pem", "now-ca.pem");
    copy("client.pem", "now.pem");
    copy("client.key", "now.key");
    setenv("REDLOCK_CACERT", file("now-ca.pem"), 1);
    setenv("REDLOCK_CERT", file("now.pem"), 1);
    setenv("REDLOCK_KEY", file("now.key"), 1);
    run = start("run", "-t", "9", "-v", "x", "sh", "-c",
                "trap 'exit 5' USR1; while :; do sleep 0.1; done", NULL);
    ok(writes(run, 'e', "renewed"), "a holder");
    waits = start("run", "-t", "9", "-v", "x", "-c", "exit 4", NULL);
    ok(writes(waits, 'e', "held by"), "a waiter");
    copy("other-client.pem", "now.pem"); /* of the key that comes last */
    serve(0, "server", "no", ANY_VERSION);
    ok(writes(run, 'e', "now.key: this is not the key of the certificate; the certificates that "),
       "half of the files: the old ones stay in use");
    ok(is_repaired(0, run), "it is repaired there");
    copy("other-client.key", "now.key");
    copy("other-ca.pem", "now-ca.pem");
    for (i = 0; i < NODES; i++) {
        serve((unsigned)i, "stranger", "yes", ANY_VERSION);
        ok(is_repaired((unsigned)i, run), "server %d has another authority, and is repaired", i);
    }
    kill(run.pid, SIGUSR1);
    is_int(ends(&run), 5, "run ends with the status of its command");
    is_int(ends(&waits), 4, "the waiter gets the lock");
    is_int((long)servers_keys_left("redlock:*", 10000), 0, "no key is left");
}

int main(int argc, char **argv)
{
    char list[NODES * sizeof over_tls[0].url] = "";
    int i;

    if (argc != 2 || getenv("REDLOCK") == NULL ||
        (program = realpath(getenv("REDLOCK"), NULL)) == NULL)
        return 2;
    folder = argv[1];
    programs_begin(program);
    servers_start(servers, NODES, NULL);
    for (i = 0; i < NODES; i++) {
        hold_port(over_tls[i].address, sizeof over_tls[i].address);
        snprintf(over_tls[i].url, sizeof over_tls[i].url, "rediss://%.31s", over_tls[i].address);
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s ", over_tls[i].url);
    }
    serve_all("server", "no", ANY_VERSION);
    setenv("REDLOCK_NODES", list, 1);
    setenv("REDLOCK_CACERT", file("ca.pem"), 1);
    setenv("REDLOCK_NODE_TIMEOUT", "3", 1); /* the machine may be paused for a second */
    setenv("REDLOCK_CONFIG", "/dev/null", 1);
    unsetenv("JOURNAL_STREAM");
    verbs();
    where_options_come_from();
    names();
    client_certificates();
    versions();
    not_tls();
    killed_in_the_handshake();
    hung();
    renewed();
    changed_files();
    return done_testing();
}
