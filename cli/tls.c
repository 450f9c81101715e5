/* tls.c - the I/O callbacks of this program: names_io(), or with `make cli TLS=1` mbedTLS for nodes whose address is rediss:.
   The certificate of such a node is checked, and is for the host in its address, or for --sni.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "cli.h"

#ifdef REDLOCK_CLI_TLS
#include "extra/redlock_tls.h"

#include <mbedtls/error.h>
#include <mbedtls/version.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* `status` and others ask each node in a separate child, and each child has a handshake. */
#if (MBEDTLS_VERSION_NUMBER >= 0x04000000 && MBEDTLS_VERSION_NUMBER < 0x04010000) ||               \
    (MBEDTLS_VERSION_NUMBER < 0x03060600 && defined(MBEDTLS_USE_PSA_CRYPTO))
#error                                                                                             \
    "this mbedTLS gives forked children equal random numbers (CVE-2026-25835): use 4.1, 3.6.6, or a version without MBEDTLS_USE_PSA_CRYPTO"
#endif

/* What the files of certificates and key have had at one time. */
struct contents {
    struct redlock_tls tls;
    uint32_t hash; /* of the files */
    struct contents *before;
};

/* What was read last, for all clients; and what the connection of each node uses. */
static struct contents *loaded, *in_use[REDLOCK_NODES_MAX];
static char trouble[700]; /* why the files cannot be used */

/* Notes the reason. Returns -1. */
static int refuses(const char *file, const char *why)
{
    snprintf(trouble, sizeof trouble, "%s: %s", file, why);
    return -1;
}

/* The certificates of authorities that this system trusts; the last of the usual files if there is none. */
static const char *system_bundle(void)
{
    static const char *const paths[] = {"/etc/ssl/certs/ca-certificates.crt", /* Debian, Alpine */
                                        "/etc/pki/tls/certs/ca-bundle.crt",   /* Fedora */
                                        "/etc/ssl/ca-bundle.pem",             /* SUSE */
                                        "/etc/ssl/cert.pem"};                 /* BSD, macOS */
    const char *path = getenv("SSL_CERT_FILE");
    size_t i = 0;

    if (path != NULL && path[0] != '\0')
        return path;
    while (i < sizeof paths / sizeof *paths - 1 && access(paths[i], R_OK) != 0)
        i++;
    return paths[i];
}

static const char *authorities(void)
{
    return options.cacert != NULL ? options.cacert : system_bundle();
}

/* Adds a file to the hash. Returns 0, or -1 if it cannot be read. */
static int hash_file(uint32_t *hash, const char *path)
{
    char bytes[4096];
    struct stat status;
    FILE *file;
    size_t size;

    if (path == NULL)
        return 0;
    if ((file = fopen(path, "re")) == NULL)
        return refuses(path, options.cacert != NULL || path == options.cert || path == options.key
                                 ? strerror(errno)
                                 : "this system's list of trusted authorities cannot be read: name "
                                   "a file with --cacert");
    if (fstat(fileno(file), &status) == 0 && S_ISDIR(status.st_mode)) {
        fclose(file);
        return refuses(path, "a directory: name one file, which may have many certificates");
    }
    while ((size = fread(bytes, 1, sizeof bytes, file)) > 0)
        *hash = hash_more(*hash, bytes, size);
    fclose(file);
    return 0;
}

static int hash_files(uint32_t *hash)
{
    *hash = HASH_BEGIN;
    return hash_file(hash, authorities()) != 0 || hash_file(hash, options.cert) != 0 ||
                   hash_file(hash, options.key) != 0
               ? -1
               : 0;
}

static int parse_files(struct redlock_tls *tls)
{
    int code = redlock_tls_init(tls, names_io(), authorities(), options.cert, options.key);
    const char *wrong = options.key;
    char why[128];

    if (code == 0)
        return 0;
    mbedtls_strerror(code, why, sizeof why);
    if (tls->authorities.raw.len == 0)
        wrong = authorities();
    else if (tls->certificate.raw.len == 0)
        wrong = options.cert;
    else if (mbedtls_pk_get_bitlen(&tls->key) != 0)
        snprintf(why, sizeof why, "this is not the key of the certificate");
    redlock_tls_free(tls);
    return refuses(wrong, why);
}

/* Reads the files that the options name, unless they are as before. Returns 0, or -1 if they cannot be used: then those that were
   read before stay in use. */
static int load(void)
{
    struct contents *next;
    uint32_t hash;

    if (hash_files(&hash) != 0)
        return -1;
    if (loaded != NULL && loaded->hash == hash)
        return 0;
    next = calloc(1, sizeof *next);
    if (next == NULL)
        return refuses("certificates", "no memory");
    if (parse_files(&next->tls) != 0) {
        free(next);
        return -1;
    }
    next->hash = hash;
    next->before = loaded;
    loaded = next;
    return 0;
}

/* Frees what no connection uses any more. */
static void free_unused(void)
{
    struct contents **at = &loaded->before, *each;
    unsigned i;

    while ((each = *at) != NULL) {
        for (i = 0; i < target_count && in_use[i] != each; i++)
            continue;
        if (i < target_count) {
            at = &each->before;
            continue;
        }
        *at = each->before;
        redlock_tls_free(&each->tls);
        free(each);
    }
}

/* 1: there is an address with rediss:. */
static int is_needed(void)
{
    unsigned i = 0;

    while (i < target_count && !targets[i].url.tls)
        i++;
    return i < target_count;
}

/* If no node needs TLS: a copy of names_io(), which does not use its context. */
const struct redlock_io *io_open(void)
{
    int needed = is_needed();
    struct redlock_tls *tls;

    if (needed && (options.cert != NULL) != (options.key != NULL))
        die(EXIT_CONFIG, "%s is missing: --cert and --key belong together",
            options.cert != NULL ? "--key" : "--cert");
    if (needed && load() != 0)
        die(EXIT_CONFIG, "%s", trouble);
    tls = must_allocate(1, sizeof *tls);
    if (needed) {
        redlock_tls_share(tls, &loaded->tls);
    } else {
        tls->io = *names_io();
        tls->io.context = tls;
    }
    return &tls->io;
}

void io_close(const struct redlock_io *io)
{
    void *tls = io->context;

    redlock_tls_free(tls);
    free(tls);
}

/* A session with other certificates is not resumed, because the server would not see the new one of this client. */
static void resume_nothing(struct redlock_tls *tls, const struct redlock_node *node)
{
    unsigned i;

    for (i = 0; i < REDLOCK_NODES_MAX; i++)
        if (tls->sessions[i].kept.node == node)
            tls->sessions[i].kept.checked_us = 0;
}

void io_renew(const struct redlock_io *io, const struct redlock_node *node)
{
    static int is_told; /* 1: a message has said that the files cannot be used */
    unsigned i = target_of(node);
    struct redlock_tls *tls = io->context;
    int failed;

    if (!targets[i].url.tls)
        return;
    failed = in_use[i] != NULL && load() != 0; /* the first connection uses what io_open has read */
    if (failed && !is_told)
        say(LOG_WARNING, "%s; the certificates that were read before stay in use", trouble);
    is_told = failed;
    if (in_use[i] != loaded)
        resume_nothing(tls, node);
    in_use[i] = loaded;
    tls->in_use = loaded->tls.in_use;
    free_unused();
}

/* The host of an address, without port, brackets and interface. */
static void copy_host(char *host, const char *address)
{
    int is_v6 = address[0] == '[';
    size_t size = strcspn(address + is_v6, is_v6 ? "%]" : ":");

    memcpy(host, address + is_v6, size);
    host[size] = '\0';
}

/* The dot at the end of a full name is for the resolver: certificates do not have it (RFC 6066). */
static void cut_dot(char *host)
{
    size_t size = strlen(host);

    if (size > 1 && host[size - 1] == '.')
        host[size - 1] = '\0';
}

void *io_name_of(unsigned i)
{
    static char names[REDLOCK_NODES_MAX][REDLOCK_URL_MAX + 1];

    if (!targets[i].url.tls)
        return redlock_tls_off;
    if (options.sni != NULL)
        snprintf(names[i], sizeof names[i], "%s", options.sni);
    else
        copy_host(names[i], targets[i].url.address);
    cut_dot(names[i]);
    return names[i];
}

/* The session of a node with TLS; else its link is NULL. */
unsigned io_events(const struct redlock_node *node, unsigned wanted)
{
    return redlock_tls_interest(node, wanted);
}

int io_has_bytes(const struct redlock_node *node)
{
    return redlock_tls_pending(node);
}

#else

const struct redlock_io *io_open(void)
{
    return names_io();
}

void io_close(const struct redlock_io *io)
{
    (void)io;
}

void io_renew(const struct redlock_io *io, const struct redlock_node *node)
{
    (void)io;
    (void)node;
}

void *io_name_of(unsigned i)
{
    (void)i;
    return NULL;
}

unsigned io_events(const struct redlock_node *node, unsigned wanted)
{
    (void)node;
    return wanted;
}

int io_has_bytes(const struct redlock_node *node)
{
    (void)node;
    return 0;
}
#endif
