/* url.h - node addresses as people write them: redis://user:password@host:port/db and its kin. A
   module of its own: it knows neither locks nor sockets, and redlock.c does not need it.

   A list of nodes is a text: NODE, separated by commas, blanks or line ends.

       NODE = host | host:port | v4 | v4:port | [v6] | [v6]:port | URL
            | /path/of.sock [?options] | unix:/path/of.sock [?options]
       URL  = redis|rediss|valkey|valkeys :// [user:password@] host [:port] [/database] [?options]
            | unix|redis+unix|redis+socket|redis-socket :// [user:password@] /path [?options]
       options = db=N or database=N or virtual_host=N, timeout=MILLISECONDS, joined by &

   Schemes and hosts in upper case are the same; a v6 may name an interface, [fe80::1%eth0], whose %
   is %25 in a URL. `:password@` is a password without a user. `x@` is refused: some clients read it
   as a user, some as a password. The user ends at the first colon, both at the last @ before the
   first slash, so an @ in a password needs no escape; a comma, a blank, a slash, a % do: %2C, %20,
   %2F, %25. A plus is a plus. Sources: RFC 3986; the "redis" scheme in IANA's registry; for what is
   more, what the clients of Redis and Valkey accept.

   No allocation, no global; calls mem* and str* only. Any thread.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#ifndef REDLOCK_URL_H
#define REDLOCK_URL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef REDLOCK_API
#define REDLOCK_API
#endif
#ifndef REDLOCK_URL_MAX
#define REDLOCK_URL_MAX 255 /* bytes of an address, a user, a password: each of them */
#endif
#ifndef REDLOCK_URL_PASSWORD_MAX
#define REDLOCK_URL_PASSWORD_MAX REDLOCK_URL_MAX /* for longer passwords: tokens of a cloud */
#endif

struct redlock_url {
    /* "host:port", "[v6]:port", "unix:/path", in lower case and with the port: equal for equal
       nodes. For redlock_resolve, or for struct redlock_node if it is numeric. It holds no secret,
       so this is what to print. "": the list has ended. */
    char address[REDLOCK_URL_MAX + 1];
    char user[REDLOCK_URL_MAX + 1];              /* decoded; "": none */
    char password[REDLOCK_URL_PASSWORD_MAX + 1]; /* decoded; "": none */
    uint32_t database;                           /* 0: the first, or not said */
    uint32_t timeout_ms;                         /* 1..600000; 0: not said */
    uint8_t tls;                                 /* 1: rediss, valkeys */
};

/* Reads the next node of a list and moves *at behind it; at the end of the list url->address is "".
   NULL; or what is wrong in a constant English sentence, which holds nothing of the list, with *at
   at the byte that is wrong. Never trust *at to be printable: there may be a password. */
REDLOCK_API const char *redlock_url_next(const char **at, struct redlock_url *url);

#ifdef __cplusplus
}
#endif
#endif
