# late.py TARGET FILE - passes on what comes on a port of loopback, which it writes to FILE, to the server TARGET and back. After
# SIGUSR1 each reply is 200 ms late.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
import asyncio
import signal
import sys

late = 0


def send(writer, piece):
    if not writer.is_closing():
        writer.write(piece)


async def pass_on(reader, writer, is_reply):
    loop = asyncio.get_running_loop()
    while True:
        piece = await reader.read(65536)
        if not piece:
            break
        loop.call_later(late if is_reply else 0, send, writer, piece)
    loop.call_later(late, writer.close)


async def serve(reader, writer):
    host, port = sys.argv[1].split(':')
    to_read, to_write = await asyncio.open_connection(host, int(port))
    await asyncio.gather(pass_on(reader, to_write, False), pass_on(to_read, writer, True), return_exceptions=True)


async def main():
    def delay():
        global late
        late = 0.2

    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, delay)
    server = await asyncio.start_server(serve, '127.0.0.1', 0)
    with open(sys.argv[2], 'w') as file:
        file.write('127.0.0.1:%d\n' % server.sockets[0].getsockname()[1])
    await server.serve_forever()

asyncio.run(main())
