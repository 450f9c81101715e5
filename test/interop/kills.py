# kills.py LOG PORT SECONDS ADDRESS - takes turns with the lock of redis-py, for kills.c.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
import os
import random
import socket
import sys
import time

import redis
from redis.exceptions import RedisError

log, port, seconds, address = sys.argv[1:]
client = redis.Redis.from_url("redis://" + address)
until = time.monotonic() + float(seconds)
out = os.open(log, os.O_WRONLY | os.O_APPEND)
while time.monotonic() < until:
    lock = client.lock("interop", timeout=3, sleep=0.005, blocking_timeout=1)
    try:
        if not lock.acquire():
            continue
    except RedisError:  # the server was killed
        time.sleep(0.02)
        continue
    # Only one process can listen on the port, and the system closes it with the process.
    with socket.socket() as witness:
        try:
            witness.bind(("127.0.0.1", int(port)))
            witness.listen()
            event = b"alone"
        except OSError:
            event = b"overlaps"
        os.write(out, b"theirs %d %s\n" % (os.getpid(), event))
        time.sleep(random.random() * 0.005)
        os.write(out, b"theirs %d leaves\n" % os.getpid())
    try:
        lock.release()
    except RedisError:  # the same, or it had expired: a LockError
        pass
    time.sleep(random.random() * 0.01)
