# redis_py.py - the lock of redis-py, on the first node only. Called as lib.sh says. Default settings: tries every 100 ms, no
# time limit for a reply; best: every millisecond, and half a second for a reply.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
import os
import sys
import time

import redis

import slots

mode, number, setting, address = sys.argv[1:5]
host, port = address.split(':')
slot = slots.divide(mode)
limit = 0.5 if setting == 'best' else None
server = redis.Redis(host=host, port=int(port), socket_timeout=limit)
name = 'redis-py' if mode in ('pairs', 'contend') else 'redis-py-%d' % os.getpid()
lock = server.lock(name, timeout=10, sleep=0.001 if setting == 'best' else 0.1)


def now():
    return time.monotonic_ns() / 1000


if mode == 'pairs':
    for _ in range(int(number)):
        start = now()
        lock.acquire()
        lock.release()
        print('%.1f' % (now() - start))
elif mode == 'contend':
    until = now() + int(number) * 1000
    while now() < until:
        print('W %.1f' % now())
        while not lock.acquire(blocking_timeout=1):
            if now() > until:
                sys.exit()
        print('A %.1f' % now())
        time.sleep(0.008)
        print('R %.1f' % now())
        lock.release()
        time.sleep(0.005)
else:
    slots.measure(slot, int(number), lambda: lock.acquire(blocking_timeout=5), lambda held: lock.release())
