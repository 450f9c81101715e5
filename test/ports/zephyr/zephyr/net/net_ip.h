/* net_ip.h - as kernel.h

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#ifndef STAND_IN_NET_IP_H
#define STAND_IN_NET_IP_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define sockaddr sockaddr_storage /* Zephyr's holds each family */
#define sa_family ss_family

static inline struct sockaddr_in *net_sin(struct sockaddr *address)
{
    return (struct sockaddr_in *)address;
}

/* "192.0.2.1:80", "[2001:db8::1]:80"; the port may be missing. */
static inline bool net_ipaddr_parse(const char *text, size_t size, struct sockaddr *address)
{
    char host[64];
    char *end;
    unsigned long port;

    memcpy(host, text, size);
    host[size] = '\0';
    if (host[0] == '[') {
        if ((end = strchr(host, ']')) == NULL)
            return false;
        *end++ = '\0';
        if (inet_pton(AF_INET6, host + 1, &((struct sockaddr_in6 *)address)->sin6_addr) != 1)
            return false;
        address->sa_family = AF_INET6;
    } else {
        end = strchr(host, ':');
        if (end != NULL && strchr(end + 1, ':') == NULL)
            *end = '\0';
        if (inet_pton(AF_INET, host, &net_sin(address)->sin_addr) != 1)
            return false;
        address->sa_family = AF_INET;
        if (end == NULL)
            return true;
        *end = ':';
    }
    if (*end == '\0')
        return true;
    port = strtoul(end + 1, &end, 10);
    if (*end != '\0' || port > 65535)
        return false;
    net_sin(address)->sin_port = htons((uint16_t)port);
    return true;
}

#endif
