#!/bin/sh
# fsync.sh - a server with `appendfsync always` flushes a write to its disk before it replies: with one io-thread and with
# four, strace sees the write of the command to the file, fdatasync, and then the reply. docs/servers.md rests on it. As TAP.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
set -u
. test/lib/tap.sh
. test/lib/servers.sh

# observed THREADS - the order of the system calls for one SET
observed() {
    rm -rf "$folder/data"
    mkdir "$folder/data"
    tied strace -f -y -s 200 -e trace=write,writev,pwrite64,sendto,sendmsg,fdatasync,fsync -o "$folder/trace" \
        setpriv --pdeathsig KILL redis-server --port 0 --unixsocket "$folder/traced.sock" --dir "$folder/data" --save '' \
        --appendonly yes --appendfsync always --io-threads "$1" >"$folder/server" 2>&1 &
    tracer=$!
    until_so answers traced $tracer && [ "$(ask traced ping)" = PONG ] || { cat "$folder/server"; return 1; }
    ask traced set a-key-of-this-test its-value
    ask traced shutdown nosave
    wait $tracer
    # The last numbers of these lines are what counts: the file, the flush, the reply.
    grep -n -e '[.]aof.*a-key-of-this-test' -e 'f\(data\)*sync([0-9]*<[^>]*[.]aof' -e '"+OK' "$folder/trace" | cut -c1-160
    awk '
        /[.]aof.*a-key-of-this-test/ { written = NR }
        written && !flushed && /f(data)?sync\([0-9]*<[^>]*[.]aof/ { flushed = NR }
        written && /"\+OK/ { replied = NR; exit }
        END { exit !(written && flushed && replied && written < flushed && flushed < replied) }' "$folder/trace"
}
check 'with one io-thread: written, flushed, replied' observed 1
check 'with four io-threads: written, flushed, replied' observed 4
done_testing
