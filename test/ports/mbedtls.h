/* mbedtls.h - the headers of mbedTLS as those of another version: with -DSTAND_IN=MBEDTLS_VERSION_NUMBER. It declares the
   functions that redlock_tls.c calls and that differ between the versions, as that version declares them. It shows that the
   sources compile; `make test-tls MBEDTLS_PREFIX=folder` runs them with a version.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include <mbedtls/error.h>
#include <mbedtls/net_sockets.h>
#include <mbedtls/pk.h>
#include <mbedtls/ssl.h>
#include <mbedtls/version.h>
#include <psa/crypto.h>

#undef MBEDTLS_VERSION_NUMBER
#define MBEDTLS_VERSION_NUMBER STAND_IN
#undef MBEDTLS_USE_PSA_CRYPTO

#define mbedtls_pk_parse_keyfile stand_in_parse_keyfile
#define mbedtls_pk_check_pair stand_in_check_pair
#if STAND_IN >= 0x03000000 && STAND_IN < 0x04000000
int stand_in_parse_keyfile(mbedtls_pk_context *key, const char *file, const char *password,
                           int (*random)(void *, unsigned char *, size_t), void *context);
int stand_in_check_pair(const mbedtls_pk_context *certificate, const mbedtls_pk_context *key,
                        int (*random)(void *, unsigned char *, size_t), void *context);
#else
int stand_in_parse_keyfile(mbedtls_pk_context *key, const char *file, const char *password);
int stand_in_check_pair(const mbedtls_pk_context *certificate, const mbedtls_pk_context *key);
#endif

#if STAND_IN < 0x04000000
#define mbedtls_ssl_conf_rng stand_in_conf_rng
void stand_in_conf_rng(mbedtls_ssl_config *config, int (*random)(void *, unsigned char *, size_t),
                       void *context);
#endif

#if STAND_IN >= 0x03020000
#define mbedtls_ssl_conf_min_tls_version stand_in_min_version
#define mbedtls_ssl_conf_max_tls_version stand_in_max_version
#define MBEDTLS_SSL_VERSION_TLS1_2 0x0303
void stand_in_min_version(mbedtls_ssl_config *config, int version);
void stand_in_max_version(mbedtls_ssl_config *config, int version);
#else
#define mbedtls_ssl_conf_min_version stand_in_min_version
#undef MBEDTLS_SSL_MAJOR_VERSION_3
#undef MBEDTLS_SSL_MINOR_VERSION_3
#define MBEDTLS_SSL_MAJOR_VERSION_3 3
#define MBEDTLS_SSL_MINOR_VERSION_3 3
void stand_in_min_version(mbedtls_ssl_config *config, int major, int minor);
#endif

/* What 4.0 has no longer. */
#if STAND_IN >= 0x04000000
#pragma GCC poison mbedtls_ssl_conf_rng mbedtls_ssl_conf_min_version mbedtls_pk_get_type
#endif
