/* FreeRTOS_Sockets.h - see FreeRTOS.h

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#define FREERTOS_AF_INET 2
#define FREERTOS_SOCK_STREAM 1
#define FREERTOS_IPPROTO_TCP 6
#define FREERTOS_SO_RCVTIMEO 0
#define FREERTOS_SO_SNDTIMEO 1
#define FREERTOS_MSG_PEEK 4
#define FREERTOS_SHUT_RDWR 2
#define FREERTOS_INVALID_SOCKET ((Socket_t) ~(uintptr_t)0)

typedef struct xSOCKET *Socket_t;
typedef struct xSOCKET const *ConstSocket_t;
typedef struct xSOCKET_SET *SocketSet_t;
typedef struct xSOCKET_SET const *ConstSocketSet_t;
typedef enum eSELECT_EVENT {
    eSELECT_READ = 0x0001,
    eSELECT_WRITE = 0x0002,
    eSELECT_EXCEPT = 0x0004,
    eSELECT_ALL = 0x000F
} eSelectEvent_t;

struct freertos_sockaddr {
    uint8_t sin_len;
    uint8_t sin_family;
    uint16_t sin_port;
    uint32_t sin_flowinfo;
    IP_Address_t sin_address;
};

Socket_t FreeRTOS_socket(BaseType_t domain, BaseType_t type, BaseType_t protocol);
BaseType_t FreeRTOS_setsockopt(Socket_t s, int32_t level, int32_t option, const void *value,
                               size_t size);
BaseType_t FreeRTOS_connect(Socket_t s, const struct freertos_sockaddr *to, uint32_t size);
BaseType_t FreeRTOS_issocketconnected(ConstSocket_t s);
BaseType_t FreeRTOS_send(Socket_t s, const void *bytes, size_t size, BaseType_t flags);
BaseType_t FreeRTOS_recv(Socket_t s, void *bytes, size_t size, BaseType_t flags);
BaseType_t FreeRTOS_tx_space(ConstSocket_t s);
BaseType_t FreeRTOS_shutdown(Socket_t s, BaseType_t how);
BaseType_t FreeRTOS_closesocket(Socket_t s);
BaseType_t FreeRTOS_inet_pton(BaseType_t family, const char *text, void *address);
SocketSet_t FreeRTOS_CreateSocketSet(void);
void FreeRTOS_FD_SET(Socket_t s, SocketSet_t set, EventBits_t bits);
void FreeRTOS_FD_CLR(Socket_t s, SocketSet_t set, EventBits_t bits);
EventBits_t FreeRTOS_FD_ISSET(const ConstSocket_t s, const ConstSocketSet_t set);
BaseType_t FreeRTOS_select(SocketSet_t set, TickType_t ticks);
