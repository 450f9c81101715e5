# slots.py - the modes "faults" and "load" of lib.sh, for locks whose calls block: 64 processes for 64 locks at a time.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
import os
import signal
import sys
import time


def divide(mode):
    """The number of this process: 0 to 63 in the mode "load", else 0."""
    slot = 0
    while mode == 'load' and slot < 63 and os.fork():
        slot += 1
    return slot


def measure(slot, ms, acquire, release):
    """release gets what acquire has returned, which is true when it has succeeded. Any exception is a failure."""
    def noted(what, operation):
        note(what)
        try:
            result = operation()
        except Exception:
            result = False
        note('-' if result is False else '+')
        if result is False:
            time.sleep(0.01)
        return result

    def note(what):
        if logged:
            os.write(1, b'%s %d %.1f\n' % (what.encode(), slot, time.monotonic_ns() / 1000))

    def work(seconds):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            held = noted('a', acquire)
            if held is not False:
                noted('r', lambda: release(held))

    logged = False
    work(1)
    os.write(1, b'idle\n')
    sys.stdin.read()
    signal.alarm(ms // 1000 + 10)
    logged = True
    work(ms / 1000)
    try:
        while True:
            os.wait()
    except ChildProcessError:
        pass
