#!/bin/sh
# fsync.sh FOLDER - a server with `appendfsync always` flushes a write to its disk before it replies: with one io-thread and with
# four, strace sees the write of the command to the file, fdatasync, and then the reply. docs/servers.md rests on it. As TAP.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
set -u
folder=$1/fsync
rm -rf "$folder"
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
. test/lib/tap.sh

# observed THREADS - the order of the system calls for one SET
observed() {
    port=$((20000 + $$ % 20000 + $1))
    strace -f -y -s 200 -e trace=write,writev,pwrite64,sendto,sendmsg,fdatasync,fsync -o "$folder/trace" \
        redis-server --port $port --bind 127.0.0.1 --dir "$folder" --save '' --appendonly yes --appendfsync always \
        --io-threads "$1" >"$folder/server" 2>&1 &
    tracer=$!
    i=0
    until redis-cli -p $port ping 2>/dev/null | grep -q PONG; do
        i=$((i + 1))
        [ $i -lt 100 ] || { cat "$folder/server"; kill $tracer; return 1; }
        sleep 0.1
    done
    redis-cli -p $port set a-key-of-this-test its-value
    redis-cli -p $port shutdown nosave 2>/dev/null
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
