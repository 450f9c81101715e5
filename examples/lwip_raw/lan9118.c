/* lan9118.c - see lan9118.h. Register names and bits are those of the data sheet.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "lan9118.h"
#include "board.h"

#include "lwip/etharp.h"
#include "lwip/pbuf.h"

enum { BASE = 0x40200000, INTERRUPT = 13 };
enum {
    RX_DATA = 0x00,
    TX_DATA = 0x20,
    RX_STATUS = 0x40,
    IRQ_CFG = 0x54,
    INT_STS = 0x58,
    INT_EN = 0x5c,
    FIFO_INT = 0x68,
    TX_CFG = 0x70,
    HW_CFG = 0x74,
    RX_FIFO_INF = 0x7c,
    TX_FIFO_INF = 0x80,
    MAC_CSR_CMD = 0xa4,
    MAC_CSR_DATA = 0xa8
};
enum { MAC_CR = 1, MAC_ADDRH = 2, MAC_ADDRL = 3, MAC_MII_ACC = 6, MAC_MII_DATA = 7 };
enum { PHY_STATUS = 1, PHY_INTERRUPTS = 29, PHY_MASK = 30 };
enum { RECEIVED = 0x8, CABLE = 0x40000 }; /* of INT_STS, INT_EN */

#define REGISTER(offset) BOARD_REGISTER((uint32_t)BASE + (offset))

static volatile uint8_t waiting;

/* ---- Registers behind registers ------------------------------------------------------------- */

static uint32_t mac_command(uint32_t command)
{
    REGISTER(MAC_CSR_CMD) = 0x80000000u | command;
    while (REGISTER(MAC_CSR_CMD) & 0x80000000u)
        ;
    return REGISTER(MAC_CSR_DATA);
}

static uint32_t mac_read(uint32_t number)
{
    return mac_command(0x40000000u | number);
}

static void mac_write(uint32_t number, uint32_t value)
{
    REGISTER(MAC_CSR_DATA) = value;
    (void)mac_command(number);
}

static void phy_command(uint32_t number, uint32_t write)
{
    mac_write(MAC_MII_ACC, 1u << 11 | number << 6 | write << 1 | 1);
    while (mac_read(MAC_MII_ACC) & 1)
        ;
}

static uint32_t phy_read(uint32_t number)
{
    phy_command(number, 0);
    return mac_read(MAC_MII_DATA);
}

/* ---- Frames --------------------------------------------------------------------------------- */

static err_t lan9118_send(struct netif *netif, struct pbuf *frame)
{
    uint32_t word = 0, size = frame->tot_len, n = 0;
    const struct pbuf *part;
    u16_t i;

    (void)netif;
    if ((REGISTER(TX_FIFO_INF) & 0xffff) < size + 12)
        return ERR_MEM;                /* TCP sends it again */
    REGISTER(TX_DATA) = 0x3000 | size; /* first and last segment of a frame */
    REGISTER(TX_DATA) = size << 16 | size;
    for (part = frame; part != NULL; part = part->next)
        for (i = 0; i < part->len; i++) {
            word |= (uint32_t)((const uint8_t *)part->payload)[i] << 8 * (n % 4);
            if (++n % 4 == 0 || n == size) {
                REGISTER(TX_DATA) = word;
                word = 0;
            }
        }
    return ERR_OK;
}

/* A frame for which there is no pbuf is read and dropped. */
static void receive_frame(struct netif *netif)
{
    uint32_t status = REGISTER(RX_STATUS), word = 0;
    u16_t size = (u16_t)(status >> 16 & 0x3fff), n = 0, i; /* with its 4 bytes of checksum */
    struct pbuf *frame = pbuf_alloc(PBUF_RAW, size, PBUF_POOL), *part = frame;

    for (i = 0; n < size; n++, i++) {
        if (n % 4 == 0)
            word = REGISTER(RX_DATA);
        for (; part != NULL && i == part->len; i = 0)
            part = part->next;
        if (part != NULL)
            ((uint8_t *)part->payload)[i] = (uint8_t)(word >> 8 * (n % 4));
    }
    if (frame == NULL)
        return;
    pbuf_realloc(frame, (u16_t)(size - 4));
    if ((status & 0x8000) || netif->input(frame, netif) != ERR_OK) /* bit 15: damaged */
        pbuf_free(frame);
}

/* ---- The netif ------------------------------------------------------------------------------ */

static void notice_cable(struct netif *netif)
{
    (void)phy_read(PHY_INTERRUPTS); /* reading clears them */
    (void)phy_read(PHY_STATUS);     /* the former state, */
    if (phy_read(PHY_STATUS) & 4)   /* and the present one */
        netif_set_link_up(netif);
    else
        netif_set_link_down(netif);
}

/* The controller's interrupt stays active until its cause is handled. So this handler disables it; lan9118_poll handles the cause
   and enables it again. */
void board_interrupt(void)
{
    REGISTER(INT_EN) = 0;
    waiting = 1;
}

int lan9118_waiting(void)
{
    return waiting;
}

/* A frame that arrives after INT_STS was cleared sets it again, and causes an interrupt when INT_EN is set. */
void lan9118_poll(struct netif *netif)
{
    uint32_t causes = REGISTER(INT_STS);

    waiting = 0;
    REGISTER(INT_STS) = causes;
    if (causes & CABLE)
        notice_cable(netif);
    while (REGISTER(RX_FIFO_INF) & 0xff0000)
        receive_frame(netif);
    REGISTER(INT_EN) = RECEIVED | CABLE;
}

err_t lan9118_start(struct netif *netif)
{
    uint32_t low, high, i;

    REGISTER(HW_CFG) = 1; /* reset */
    while (REGISTER(HW_CFG) & 1)
        ;
    low = mac_read(MAC_ADDRL); /* from its EEPROM */
    high = mac_read(MAC_ADDRH);
    for (i = 0; i < 6; i++)
        netif->hwaddr[i] = (uint8_t)(i < 4 ? low >> 8 * i : high >> 8 * (i - 4));
    netif->hwaddr_len = 6;
    netif->mtu = 1500;
    netif->flags = NETIF_FLAG_BROADCAST | NETIF_FLAG_ETHARP | NETIF_FLAG_ETHERNET;
    netif->name[0] = 'e';
    netif->name[1] = 'n';
    netif->output = etharp_output;
    netif->linkoutput = lan9118_send;

    mac_write(MAC_MII_DATA,
              0x50); /* interrupts when the cable is pulled or the speed is negotiated */
    phy_command(PHY_MASK, 1);
    REGISTER(TX_CFG) = 6;        /* enabled; no status of sent frames, which nothing would read */
    REGISTER(FIFO_INT) = 0;      /* an interrupt with the first frame */
    REGISTER(IRQ_CFG) = 0x111;   /* active high */
    mac_write(MAC_CR, 0x10000c); /* sends, receives; full duplex */
    notice_cable(netif);
    REGISTER(INT_EN) = RECEIVED | CABLE;
    BOARD_REGISTER(0xe000e100) = 1u << INTERRUPT;
    return ERR_OK;
}
