# servers.sh - for shell scripts, which read it in (`.`): a temporary $folder, and real redis-servers in it, which end with
# the script; if it is killed, by the kernel.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
folder=$(mktemp -d)
servers='' # their pids
trap 'stop_servers; rm -rf "$folder"' EXIT
trap 'exit 1' HUP INT PIPE TERM

# tied COMMAND ... - for what goes to the background: it ends with the script, however that ends.
tied() {
    exec setpriv --pdeathsig KILL "$@"
}

# until_so COMMAND ... - succeeds as soon as that does, within half a minute or more.
until_so() {
    tries=0
    until "$@" >/dev/null 2>&1; do
        tries=$((tries + 1))
        [ $tries -lt 600 ] || return 1
        sleep 0.05
    done
}

# ask NAME WORD ... - what this server answers
ask() {
    socket=$folder/$1.sock
    shift
    redis-cli -s "$socket" "$@" 2>&1
}

# start_server NAME [OPTION ...] - one on $folder/NAME.sock, without a port unless the options say so; it answers. Its pid
# is $server, and the last of $servers.
start_server() {
    name=$1
    shift
    tied redis-server --bind 127.0.0.1 --port 0 --unixsocket "$folder/$name.sock" --save '' --dir "$folder" \
        --logfile "$folder/$name.log" "$@" &
    server=$!
    servers="$servers $server"
    until_so answers "$name" $server && [ "$(ask "$name" ping)" = PONG ] && return
    echo "redis-server $name does not come up: $(tail -n 3 "$folder/$name.log" 2>&1)" >&2
    exit 1
}
answers() { # NAME PID - or has ended
    [ "$(ask "$1" ping)" = PONG ] || ! kill -0 "$2"
}

# hold_ports COUNT - so many ports of loopback, in $ports. While the script runs nobody gets one by chance, as another
# program's own end of a connection, say; a server may still be told to listen there. See hold_port in servers.h.
hold_ports() {
    rm -f "$folder/ports"
    tied perl -MIO::Socket::INET -e '
        push @held, IO::Socket::INET->new(LocalAddr => "127.0.0.1", ReuseAddr => 1) || die "no free port: $!\n" for 1 .. shift;
        open my $file, ">", shift or die $!;
        print $file join(" ", map { $_->sockport } @held), "\n";
        close $file;
        sleep' "$1" "$folder/ports" >/dev/null &
    until_so grep -q . "$folder/ports" || exit 1
    ports=$(cat "$folder/ports")
}

# start_nodes COUNT - so many servers with a port, after which each is named; their addresses with commas in $nodes.
start_nodes() {
    hold_ports "$1"
    nodes=''
    for port in $ports; do
        start_server "$port" --port "$port"
        nodes=$nodes${nodes:+,}127.0.0.1:$port
    done
}

stop_servers() {
    # shellcheck disable=SC2086 # a list of words
    [ -z "$servers" ] || { kill -KILL $servers; wait $servers; } 2>/dev/null || true # the shell's message about those that were killed
    servers=''
}
