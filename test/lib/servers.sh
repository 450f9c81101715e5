# servers.sh - for shell scripts, which source it (`.`): a temporary $folder, and real redis-servers in it. The servers end with
# the script; if the script is killed, the kernel ends them.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
folder=$(mktemp -d)
servers='' # their pids
trap 'stop_servers; rm -rf "$folder"' EXIT
trap 'exit 1' HUP INT PIPE TERM

# tied COMMAND ... - for the background: the command ends with the script, however that ends.
tied() {
    exec setpriv --pdeathsig KILL "$@"
}

# until_so COMMAND ... - repeats the command until it succeeds, for half a minute or more.
until_so() {
    tries=0
    until "$@" >/dev/null 2>&1; do
        tries=$((tries + 1))
        [ $tries -lt 600 ] || return 1
        sleep 0.05
    done
}

# ask NAME WORD ... - prints the answer of this server
ask() {
    socket=$folder/$1.sock
    shift
    redis-cli -s "$socket" "$@" 2>&1
}

# start_server NAME [OPTION ...] - a server on $folder/NAME.sock, without a port unless the options have one. Returns when
# it answers. Its pid is $server, and the last of $servers.
start_server() {
    name=$1
    shift
    tied redis-server --bind 127.0.0.1 --port 0 --unixsocket "$folder/$name.sock" --save '' --dir "$folder" \
        --logfile "$folder/$name.log" "$@" &
    server=$!
    servers="$servers $server"
    until_so answers "$name" $server && [ "$(ask "$name" ping)" = PONG ] && return
    echo "redis-server $name does not start: $(tail -n 3 "$folder/$name.log" 2>&1)" >&2
    exit 1
}
answers() { # NAME PID - succeeds when the server answers, and also when it has ended
    [ "$(ask "$1" ping)" = PONG ] || ! kill -0 "$2"
}

# hold_ports COUNT - reserves COUNT ports of loopback, in $ports. While the script runs, the kernel gives none of them to another
# program that binds to port 0, but a server can listen there. See hold_port in servers.h.
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

# start_nodes COUNT - starts COUNT servers; the name of each is its port. $nodes has their addresses, with commas.
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
    [ -z "$servers" ] || { kill -KILL $servers; wait $servers; } 2>/dev/null || true # hides the shell's messages about killed processes
    servers=''
}
