/* socket.h - as kernel.h

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <unistd.h>

#include "net_ip.h"

#define ZSOCK_POLLIN POLLIN
#define ZSOCK_POLLOUT POLLOUT
#define ZSOCK_POLLERR POLLERR
#define ZSOCK_POLLHUP POLLHUP
#define ZSOCK_POLLNVAL POLLNVAL
#define ZSOCK_MSG_DONTWAIT MSG_DONTWAIT
#define ZVFS_F_SETFL F_SETFL
#define ZVFS_O_NONBLOCK O_NONBLOCK
#define zsock_pollfd pollfd
#define zsock_socket socket
#define zsock_close close
#define zsock_fcntl fcntl
#define zsock_setsockopt setsockopt
#define zsock_getsockopt getsockopt
#define zsock_recv recv

static inline int zsock_connect(int fd, const struct sockaddr *address, socklen_t size)
{
    (void)size;
    return connect(fd, (const void *)address,
                   address->sa_family == AF_INET ? sizeof(struct sockaddr_in)
                                                 : sizeof(struct sockaddr_in6));
}

static inline ssize_t zsock_send(int fd, const void *bytes, size_t size, int flags)
{
    return send(fd, bytes, size, flags | MSG_NOSIGNAL);
}

static inline int zsock_poll(struct zsock_pollfd *fds, int count, int timeout_ms)
{
    return poll(fds, (nfds_t)count, timeout_ms);
}
