/* lwipopts.h - lwIP 2.1 for this board: no operating system, the raw API, TCP over IPv4, an address by DHCP. The pools are large
   enough for NODES connections that transfer at once; `make lwip-board` prints their sizes.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#ifndef LWIPOPTS_H
#define LWIPOPTS_H

#ifndef NODES
#define NODES 5 /* Redis servers */
#endif

#define NO_SYS 1
#define SYS_LIGHTWEIGHT_PROT 0 /* interrupts do not call lwIP here */
#define LWIP_NETCONN 0
#define LWIP_SOCKET 0
#define LWIP_STATS 0
#define LWIP_DHCP 1
#define DHCP_DOES_ARP_CHECK 0
#define IP_FRAG 0
#define IP_REASSEMBLY 0
#define LWIP_RAW 0
#define ARP_TABLE_SIZE 4 /* servers behind one router share its entry */

/* A command is smaller than a segment, and an answer much smaller. */
#define TCP_MSS 536
#define TCP_WND (2 * TCP_MSS)
#define TCP_SND_BUF (2 * TCP_MSS)
#define TCP_SND_QUEUELEN 6
#define TCP_QUEUE_OOSEQ 0
#define TCP_OVERSIZE 128 /* room for the next command in the same pbuf */

/* A closed connection keeps its pcb until the server has confirmed the close, or another connection needs the pcb. */
#define MEMP_NUM_TCP_PCB (2 * NODES)
#define MEMP_NUM_TCP_PCB_LISTEN 1
#define MEMP_NUM_TCP_SEG (TCP_SND_QUEUELEN * NODES)
#define MEMP_NUM_PBUF 2
#define PBUF_POOL_SIZE (3 * NODES) /* received frames: TCP_WND of each server, and others */
#define PBUF_POOL_BUFSIZE (TCP_MSS + 40 + PBUF_LINK_HLEN)
#define MEM_ALIGNMENT 4
#define MEM_SIZE (1024 * NODES) /* unconfirmed segments, and DHCP */

#endif
