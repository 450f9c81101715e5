#!/bin/sh
# snippets.sh BUILD_DIR - compiles and runs every code block of README.md and docs/*.md on real servers whose users have
# exactly the permissions that README gives. As TAP. The word behind ``` says what a block is:
#
#     c, cpp    a program (has main; its first line is the command that builds and runs it), or statements for one:
#               `c held` starts with the lock held, the key of `c lost` is deleted while it runs; `c epoll` follows
#               the adapter of examples/loops/epoll.c: it runs until it has lost its lock and acquired it again
#     sh        a script; `sh acl` sets the permissions, and is run once for each server
#     sql       for sqlite3, cmake for a project, cron for a crontab
#     conf      a configuration of redis-server
#     text      output, and what depends on the machine: not run
#
# Ports 7001 to 7005 in them are replaced by free ones.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
set -u
build=$1
. test/lib/servers.sh
. test/lib/tap.sh

# The excluded pages have blocks for other machines, or for developers of the library.
files=$(tools/files.sh) || exit 1
texts=$(echo "$files" | grep -xE 'README\.md|docs/[^/]*\.md' | grep -vxE 'docs/(embedded|platforms|design|sizes)\.md')

# ---- Servers, with the permissions

start_nodes 5
# shellcheck disable=SC2086 # a list of words
set -- $ports
all=$ports # hold_ports changes $ports later
to_ports="s/\\b7001\\b/$1/g; s/\\b7002\\b/$2/g; s/\\b7003\\b/$3/g; s/\\b7004\\b/$4/g; s/\\b7005\\b/$5/g"
first_port=$1
admin() { # PORT WORD ... - as a user with all permissions, because the default user has only README's
    port=$1
    shift
    redis-cli -p "$port" --no-auth-warning --user admin --pass admin "$@"
}
rules=$(awk '/^```sh acl$/ { inside = 1; next } /^```/ { inside = 0 } inside' README.md)
permit() { # the user that README creates, and the default user with the same rules
    [ -n "$rules" ] || return 1
    for port in $all; do
        redis-cli -p "$port" ACL SETUSER admin on '>admin' '~*' '+@all' | grep -qx OK || return 1
        echo "$rules" | sed "s/7001/$port/" | sh | grep -qx OK || return 1
        echo "$rules" | sed "s/redis-cli -p 7001 ACL SETUSER locker on '>PASSWORD'/redis-cli -p $port ACL SETUSER default resetkeys -@all nopass/" |
            sh | grep -qx OK || return 1
        redis-cli -p "$port" SET other:key value | grep -q NOPERM || return 1
        redis-cli -p "$port" FLUSHALL | grep -q NOPERM || return 1
    done
}
check 'the permissions that README gives are set, and no others' permit

# ---- The blocks

blocks=$folder/blocks
mkdir "$blocks"
# shellcheck disable=SC2086 # a list of words
awk -v folder="$blocks" '
    FNR == 1 { inside = 0 }
    /^```/ && inside { inside = 0; close(file); next }
    /^```/ {
        inside = 1
        name = FILENAME
        gsub(/.*\/|\.md$/, "", name)
        file = folder "/" sprintf("%s-%03d", name, FNR)
        info = substr($0, 4)
        print FILENAME ":" FNR, file, info
        printf "" > file
        next
    }
    inside { print > file }' $texts >"$folder/list"
known_kinds() {
    ! grep -vE '^[^ ]+ [^ ]+ (c|c held|c lost|c epoll|cpp|sh|sh acl|sql|cmake|cron|conf|text)$' "$folder/list" && [ -s "$folder/list" ]
}
check 'each block says what it is' known_kinds

# A copy of the sources: the blocks write into it.
tree=$folder/tree
mkdir "$tree"
echo "$files" | tar -c -T - | tar -x -C "$tree" || exit 1
cd "$tree" || exit 1
REDLOCK_NODES=$nodes
REDLOCK_NODE_TIMEOUT=5s # a machine may be paused for a second
PKG_CONFIG_PATH=$folder/usr/lib/pkgconfig
LD_LIBRARY_PATH=$folder/usr/lib
PATH=$tree/build:$PATH
export REDLOCK_NODES REDLOCK_NODE_TIMEOUT PKG_CONFIG_PATH LD_LIBRARY_PATH PATH
unset REDLOCK_CONFIG REDLOCK_PREFIX REDLOCK_HELD REDLOCK_NAME REDLOCK_TOKEN
strict='-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror'

# The program around statements: three nodes, a client, a lock; the lock is held or not.
cat >"$folder/around.c" <<'END'
#include "redlock.h"
#include "url.h"
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifndef TTL_MS
#define TTL_MS 30000
#endif
int main(void)
{
    static struct redlock_node nodes[3] = {
        {.address = "127.0.0.1:7001"}, {.address = "127.0.0.1:7002"}, {.address = "127.0.0.1:7003"}};
    static struct redlock_client client;
    static struct redlock_lock lock;
    struct redlock_settings settings;
    enum redlock_status status;
    uint8_t events[3];
    unsigned i = 0;

    memset(&settings, 0, sizeof settings);
    memset(events, 0, sizeof events);
    status = redlock_init(&client, redlock_posix(), nodes, 3, &settings);
    redlock_lock_init(&lock, "redlock:snippet", TTL_MS);
#ifdef HELD
    status = redlock_acquire(&client, &lock, 0);
    if (status != REDLOCK_OK)
        return 3;
#endif
    {
#include BLOCK
    }
    redlock_release(&client, &lock, 100);
    redlock_deinit(&client);
    return (int)(i - i) + (events[0] > 3) + 0 * (int)settings.quorum + (status > REDLOCK_PENDING);
}
END

program() { # FILE COMPILER - by the command in its first line
    command=$(sed -n '1s,^/\* \(.* && \./.*\) \*/$,\1,p' "$1")
    [ -n "$command" ] || { echo 'no command in the first line'; return 1; }
    file=$(echo "$command" | tr ' ' '\n' | grep -v '^build/' | grep '\.c[p]*$' | while read -r word; do echo "$files" | grep -qx "$word" || echo "$word"; done)
    [ -n "$file" ] || { echo "no new source file in: $command"; return 1; }
    cp "$1" "$file"
    # shellcheck disable=SC2086 # a list of words
    $2 $strict -I. -Iextra -fsyntax-only "$file" && timeout 60 sh -euc "$command"
}
statements() { # FILE KIND
    sed "$to_ports" "$folder/around.c" >around.c
    # shellcheck disable=SC2046,SC2086 # lists of words
    gcc -std=c99 -D_POSIX_C_SOURCE=200809L $strict -I. -Iextra -DBLOCK="\"$1\"" \
        $(case $2 in *held*) echo -DHELD ;; *lost*) echo -DTTL_MS=900 ;; esac) \
        around.c build/libredlock.a -pthread -o around || return 1
    case $2 in *lost*)
        { sleep 0.5; for port in $all; do redis-cli -p "$port" DEL redlock:snippet; done; } & ;;
    esac
    timeout 60 ./around
}
is_free() { # PORT
    [ "$(redis-cli -p "$1" EXISTS redlock:collector)" = 0 ]
}
epoll_program() { # FILE - the program loses its lock, acquires it again, and releases it
    { sed '/^\/\* ---- The example/,$d' examples/loops/epoll.c; cat "$1"; } >collector.c
    # shellcheck disable=SC2086 # a list of words
    gcc -std=c99 -D_POSIX_C_SOURCE=200809L $strict -I. -Iextra collector.c build/libredlock.a -o collector || return 1
    tied ./collector >collector.out 2>&1 &
    collector=$!
    until_so grep -q working collector.out
    for port in $all; do redis-cli -p "$port" DEL redlock:collector; done
    until_so awk '/^stop working: /  { lost = 1 } /^working/ && lost { again = 1 } END { exit !again }' collector.out
    kill -TERM $collector
    wait $collector || return 1
    cat collector.out
    [ "$(grep -c '^release: ' collector.out)" = 1 ] || return 1
    for port in $all; do until_so is_free "$port" || return 1; done # one of them may be late
}
sql() { # FILE - the first statement once; the second with a token, and with a smaller one
    {
        echo 'CREATE TABLE pumps (id INTEGER PRIMARY KEY, state TEXT); INSERT INTO pumps VALUES (7, 0);'
        printf '.param set :state 1\n.param set :token 1763900000000001\n'
        cat "$1"
        printf 'SELECT changes();\n.param set :token 1763900000000000\n'
        grep '^UPDATE' "$1"
        echo 'SELECT changes();'
    } | sqlite3 :memory: >"$folder/rows"
    [ "$(tr '\n' ' ' <"$folder/rows")" = '1 0 ' ]
}
cmake_project() { # FILE
    mkdir -p "$folder/project" && ln -sfn "$tree" "$folder/project/redlock" && cp lock.c "$folder/project" || return 1
    { printf 'cmake_minimum_required(VERSION 3.10)\nproject(app C)\nadd_executable(app lock.c)\n'; cat "$1"; } >"$folder/project/CMakeLists.txt"
    cmake -S "$folder/project" -B "$folder/project/build" && cmake --build "$folder/project/build" && "$folder/project/build/app"
}
conf() { # FILE - a server with this configuration accepts the user, also with a new password
    hold_ports 1
    { sed "s/^port .*/port $ports/; s/^bind .*/bind 127.0.0.1/" "$1"; echo "dir $folder"; } >"$folder/redis.conf"
    tied redis-server "$folder/redis.conf" >"$folder/redis.log" &
    servers="$servers $!"
    until_so answers_port "$ports" && redis-cli -p "$ports" PING | grep NOAUTH &&
        REDLOCK_NODES=redis://locker:PASSWORD@127.0.0.1:$ports redlock run name -- echo held | grep -x held &&
        redis-cli -p "$ports" --no-auth-warning --user admin --pass ADMIN-PASSWORD ACL SETUSER locker '>NEW' '<PASSWORD' | grep -x OK &&
        REDLOCK_NODES=redis://locker:NEW@127.0.0.1:$ports redlock run name -- echo held | grep -x held
}
answers_port() { redis-cli -p "$1" PING | grep .; }
cron() { # FILE - runs its commands, with `true` instead of the job
    grep -vE '^(#|[A-Z_]+=|([0-9*/,-]+ +){5}[a-z]+ +/usr/local/bin/redlock run .* /[a-z/.-]+$)' "$1" && return 1
    sed -n 's,.* /usr/local/bin/\(redlock run .*\) /[^ ]*$,\1 true,p' "$1" >cron.sh
    [ -s cron.sh ] && sh -eu cron.sh
}

${MAKE:-make} -s build/libredlock.a >/dev/null || exit 1
while read -r place file kind; do
    sed "$to_ports" "$file" >"$file.here"
    case $kind in
    c*)
        if [ "$kind" = 'c epoll' ]; then
            check "$place: the program keeps, loses, acquires and releases its lock" epoll_program "$file.here"
        elif grep -q 'main(' "$file"; then
            case $kind in cpp) compiler='g++ -std=c++11' ;; *) compiler='gcc -std=c99' ;; esac
            check "$place: the program compiles and runs" program "$file.here" "$compiler"
        elif [ "$kind" = cmake ]; then
            check "$place: the project builds and runs" cmake_project "$file.here"
        elif [ "$kind" = conf ]; then
            check "$place: a server with it grants the lock" conf "$file"
        elif [ "$kind" = cron ]; then
            check "$place: the crontab has a valid form, and its command runs" cron "$file.here"
        else
            check "$place: the statements compile and run" statements "$file.here" "$kind"
        fi ;;
    'sh acl') ;; # permit() has run it
    sh) check "$place: the script runs" timeout 300 sh -euc ". '$file.here'" ;;
    sql) check "$place: a newer token is accepted, an older one refused" sql "$file.here" ;;
    esac
done <"$folder/list"

# A user with README's permissions: no call may fail, and no node may report that a feature is denied.
cat >"$folder/permitted.c" <<'END'
#include "redlock.h"
#include <stdio.h>
static int fails(const char *what, const struct redlock_node *nodes, enum redlock_status status)
{
    unsigned i;
    int failed = status != REDLOCK_OK;
    for (i = 0; i < 3; i++)
        failed |= nodes[i].error[0] != '\0';
    printf("%s: %s; %s\n", what, redlock_strerror(status), nodes[0].error);
    return failed;
}
int main(void)
{
    static struct redlock_node nodes[3] = {
        {.address = "127.0.0.1:7001"}, {.address = "127.0.0.1:7002"}, {.address = "127.0.0.1:7003"}};
    static const struct redlock_key more = {"redlock:more", 12};
    static struct redlock_client client;
    static struct redlock_lock lock;
    unsigned i;
    int failed = 0;

    for (i = 0; i < 3; i++) {
        nodes[i].user = "locker";
        nodes[i].password = "PASSWORD";
    }
    failed |= fails("init", nodes, redlock_init(&client, redlock_posix(), nodes, 3, NULL));
    for (i = 0; i < 2; i++) {
        redlock_lock_init(&lock, "redlock:key", 30000);
        lock.use_fencing = i == 0;
        lock.extra_keys = &more;
        lock.extra_key_count = i == 1;
        failed |= fails("acquire", nodes, redlock_acquire(&client, &lock, 0));
        failed |= fails("extend", nodes, redlock_extend(&client, &lock));
        failed |= fails("release", nodes, redlock_release(&client, &lock, 1000));
    }
    redlock_deinit(&client);
    return failed;
}
END
permitted() {
    sed "$to_ports" "$folder/permitted.c" >permitted.c
    gcc -std=c99 -I. -Iextra permitted.c build/libredlock.a -o permitted && ./permitted
}
check 'the permissions are enough for fencing tokens, extra keys, extensions, releases' permitted

# ---- Commands in README's text

servers_target() { # `make servers`, and the ports that it names
    tied make -s servers PORT=17001 >"$folder/servers" &
    started=$!
    until_so grep -q '^export REDLOCK_NODES=127.0.0.1:17001,.*:17005$' "$folder/servers"
    found=$?
    kill -TERM $started
    wait $started
    return $found
}
if grep -q '`make servers`' README.md; then
    check 'README: make servers starts five servers and prints their addresses' servers_target
    no_port() { # no number, or too few ports after it; as the shell reads abc, its servers would have the ports 0 to 4
        for port in abc 0 65532; do
            timeout 10 make -s servers PORT=$port >"$folder/servers" 2>&1
            [ $? -eq 2 ] && cat "$folder/servers" && grep '^servers: PORT' "$folder/servers" || return 1
        done
    }
    check 'README: make servers refuses what is no port' no_port
fi
pkg_config() {
    command=$(sed -n 's/.*`\(cc app.c \$(pkg-config [^`]*\)`.*/\1/p' README.md)
    cp lock.c app.c && [ -n "$command" ] && make -s install PREFIX="$folder/usr" && sh -euc "$command" && ./a.out
}
check 'README: the command with pkg-config works after make install' pkg_config
meson_project() {
    line=$(sed -n "s/.*\`\(dependency([^\`]*\)\`.*/\1/p" README.md)
    [ -n "$line" ] && mkdir -p "$folder/meson/subprojects" && ln -sfn "$tree" "$folder/meson/subprojects/redlock" &&
        cp lock.c "$folder/meson" && printf "project('app', 'c')\nexecutable('app', 'lock.c', dependencies: %s)\n" "$line" >"$folder/meson/meson.build" &&
        env -u PKG_CONFIG_PATH meson setup "$folder/meson/build" "$folder/meson" && meson compile -C "$folder/meson/build" && "$folder/meson/build/app"
}
check 'README: the line for Meson works' meson_project

# ---- Without a server

first=$(awk '$1 ~ /^README/ && $3 == "c" { print $2; exit }' "$folder/list")
without_servers() {
    hold_ports 3
    # shellcheck disable=SC2086 # a list of words
    set -- $ports
    sed "s/7001/$1/; s/7002/$2/; s/7003/$3/" "$first" >lonely.c
    gcc -std=c99 -I. -Iextra lonely.c build/libredlock.a -o lonely || return 1
    timeout 1 ./lonely >"$folder/out" 2>"$folder/err"
    [ $? -eq 1 ] && [ ! -s "$folder/out" ] && cat "$folder/err" && [ "$(wc -l <"$folder/err")" -eq 4 ] &&
        grep -q 'too few nodes' "$folder/err" && [ "$(grep -c ': .*refused' "$folder/err")" -eq 3 ]
}
check 'README: without a server the first program says so, and why of each node, within a second' without_servers
with_a_name() {
    sed 's/127.0.0.1:7003/localhost:7003/' "$first" >lonely.c
    gcc -std=c99 -I. -Iextra lonely.c build/libredlock.a -o lonely && ! ./lonely 2>"$folder/err" || return 1
    cat "$folder/err"
    grep -q '^localhost:7003: not a numeric address' "$folder/err"
}
check 'README: the first program says which address is not numeric' with_a_name
grep -q . "$folder/list" && [ "$first_port" ] && done_testing
