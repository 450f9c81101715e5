/* tls.c - the I/O callbacks of this program: names_io(), or with `make cli TLS=1` mbedTLS for nodes whose address is rediss:.
   The certificate of such a node is checked, and is for the host in its address, or for --sni.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "cli.h"

#ifdef REDLOCK_CLI_TLS
#include "extra/redlock_tls.h"

#include <mbedtls/error.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Certificates and key, for all clients. */
static struct redlock_tls loaded;
static int is_loaded;

/* The certificates of authorities that this system trusts. */
static const char *system_bundle(void)
{
    static const char *const paths[] = {"/etc/ssl/certs/ca-certificates.crt", /* Debian, Alpine */
                                        "/etc/pki/tls/certs/ca-bundle.crt",   /* Fedora */
                                        "/etc/ssl/ca-bundle.pem",             /* SUSE */
                                        "/etc/ssl/cert.pem"};                 /* BSD, macOS */
    const char *path = getenv("SSL_CERT_FILE");
    size_t i;

    if (path != NULL && path[0] != '\0')
        return path;
    for (i = 0; i < sizeof paths / sizeof *paths; i++)
        if (access(paths[i], R_OK) == 0)
            return paths[i];
    die(EXIT_CONFIG, "this system has no list of trusted authorities: name a file with --cacert");
}

static void must_be_readable(const char *path)
{
    FILE *file = fopen(path, "re");

    if (file == NULL)
        die(EXIT_CONFIG, "%s: %s", path, strerror(errno));
    fclose(file);
}

/* Reads the files that the options name. */
static void load(void)
{
    const char *authorities = options.cacert != NULL ? options.cacert : system_bundle(), *wrong;
    char why[128];
    int code;

    if ((options.cert != NULL) != (options.key != NULL))
        die(EXIT_CONFIG, "%s is missing: --cert and --key belong together",
            options.cert != NULL ? "--key" : "--cert");
    must_be_readable(authorities);
    if (options.cert != NULL) {
        must_be_readable(options.cert);
        must_be_readable(options.key);
    }
    code = redlock_tls_init(&loaded, names_io(), authorities, options.cert, options.key);
    if (code == 0)
        return;
    mbedtls_strerror(code, why, sizeof why);
    wrong = options.key;
    if (loaded.authorities.raw.len == 0)
        wrong = authorities;
    else if (loaded.certificate.raw.len == 0)
        wrong = options.cert;
    else if (mbedtls_pk_get_type(&loaded.key) != MBEDTLS_PK_NONE)
        snprintf(why, sizeof why, "this is not the key of the certificate");
    die(EXIT_CONFIG, "%s: %s", wrong, why);
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

    if (needed && !is_loaded)
        load();
    is_loaded |= needed;
    tls = must_allocate(1, sizeof *tls);
    if (needed) {
        redlock_tls_share(tls, &loaded);
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

/* The host of an address, without port, brackets and interface. */
static void copy_host(char *host, const char *address)
{
    int is_v6 = address[0] == '[';
    size_t size = strcspn(address + is_v6, is_v6 ? "%]" : ":");

    memcpy(host, address + is_v6, size);
    host[size] = '\0';
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
