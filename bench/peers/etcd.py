# etcd.py - the lock of etcd, through its JSON gateway on one connection. Called as lib.sh says. It has no settings: etcd queues
# and notifies waiters. A call that fails, or is not answered within a second, goes to the next member, for five seconds.
# The mode "leader" prints the addresses, that of the leader first.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
import base64
import http.client
import itertools
import json
import os
import sys
import threading
import time

import slots

mode, number, setting = sys.argv[1:4]
slot = slots.divide(mode)
# With failed servers a key of an earlier client may live on for the TTL of its lease.
NAME = base64.b64encode(b'etcd' if mode in ('pairs', 'contend') else b'etcd-%d' % os.getpid()).decode()


def now():
    return time.monotonic_ns() / 1000


class Client:
    def __init__(self):
        self.members = itertools.cycle([http.client.HTTPConnection(address, timeout=1) for address in sys.argv[4:]])
        self.member = next(self.members)

    def call(self, path, **body):
        until = now() + 5e6
        while True:
            try:
                self.member.request('POST', '/v3/' + path, json.dumps(body))
                answer = json.load(self.member.getresponse())
                if 'error' not in answer:
                    return answer
            except (OSError, http.client.HTTPException, ValueError) as error:
                answer = {'error': str(error)}
            self.member.close()
            if now() > until:
                raise TimeoutError('etcd: %s' % answer['error'])
            self.member = next(self.members)


def keep_alive():
    other = Client()
    while True:
        time.sleep(2)
        other.call('lease/keepalive', ID=lease)


def leader_first():
    """Waits until all members answer and agree on the leader."""
    while True:
        try:
            states = {}
            for address in sys.argv[4:]:
                member = http.client.HTTPConnection(address, timeout=1)
                member.request('POST', '/v3/maintenance/status', '{}')
                states[address] = json.load(member.getresponse())
            if len({state['leader'] for state in states.values()}) == 1:
                return sorted(states, key=lambda a: states[a]['header']['member_id'] != states[a]['leader'])
        except (OSError, http.client.HTTPException, ValueError, KeyError):
            pass
        time.sleep(0.1)


def acquire():
    return client.call('lock/lock', name=NAME, lease=lease)['key']


def release(key):
    client.call('lock/unlock', key=key)


if mode == 'leader':
    print(*leader_first())
    sys.exit()
client = Client()
lease = client.call('lease/grant', TTL=10)['ID']
threading.Thread(target=keep_alive, daemon=True).start()
if mode == 'pairs':
    for _ in range(int(number)):
        start = now()
        release(acquire())
        print('%.1f' % (now() - start))
elif mode == 'contend':
    until = now() + int(number) * 1000
    while now() < until:
        print('W %.1f' % now())
        key = acquire()
        print('A %.1f' % now())
        time.sleep(0.008)
        print('R %.1f' % now())
        release(key)
        time.sleep(0.005)
else:
    slots.measure(slot, int(number), acquire, release)
