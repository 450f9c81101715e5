/* FreeRTOS_IP.h - see FreeRTOS.h

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#define FreeRTOS_htons(port) ((uint16_t)((uint16_t)((port) << 8) | (uint16_t)(port) >> 8))

typedef union {
    uint32_t ulIP_IPv4;
    uint8_t xIP_IPv6[16];
} IP_Address_t;
