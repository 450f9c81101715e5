# redis_py.py - the lock of redis-py, on the first node only. Called by peers.sh, which describes the arguments. Default
# settings: tries every 100 ms; best: every millisecond.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
import sys
import time

import redis

mode, number, setting, address = sys.argv[1:5]
host, port = address.split(':')
server = redis.Redis(host=host, port=int(port))
lock = server.lock('redis-py', timeout=10, sleep=0.001 if setting == 'best' else 0.1)


def now():
    return time.monotonic_ns() / 1000


if mode == 'pairs':
    for _ in range(int(number)):
        start = now()
        lock.acquire()
        lock.release()
        print('%.1f' % (now() - start))
else:
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
