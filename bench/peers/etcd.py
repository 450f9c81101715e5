# etcd.py - the lock of etcd, through its JSON gateway on one connection. Called by peers.sh, which describes the arguments.
# It has no settings: etcd queues and notifies waiters.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
import base64
import http.client
import json
import sys
import time

mode, number, setting, address = sys.argv[1:5]
server = http.client.HTTPConnection(address)
NAME = base64.b64encode(b'etcd').decode()


def now():
    return time.monotonic_ns() / 1000


def call(path, **body):
    server.request('POST', '/v3/' + path, json.dumps(body))
    answer = json.load(server.getresponse())
    if 'error' in answer:
        sys.exit('etcd: ' + answer['error'])
    return answer


lease = call('lease/grant', TTL=30)['ID']


def acquire():
    return call('lock/lock', name=NAME, lease=lease)['key']


def release(key):
    call('lock/unlock', key=key)


if mode == 'pairs':
    for _ in range(int(number)):
        start = now()
        release(acquire())
        print('%.1f' % (now() - start))
else:
    until = now() + int(number) * 1000
    while now() < until:
        print('W %.1f' % now())
        key = acquire()
        print('A %.1f' % now())
        time.sleep(0.008)
        print('R %.1f' % now())
        release(key)
        time.sleep(0.005)
