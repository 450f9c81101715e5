#!/bin/sh
# cli_docs.sh BUILD_DIR - documentation and files of the program. The man page names each option, verb, exit status and
# variable of the sources, and no other. Its examples and those in cli/examples work on real servers. Completion. As TAP.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
set -u
LC_ALL=C.UTF-8
export LC_ALL
PATH=$(cd "$1" && pwd):$PATH # for the examples, which call "redlock"
. test/lib/servers.sh
. test/lib/tap.sh

silent() { # succeeds if the command prints nothing
    [ -z "$("$@" 2>&1 | tee /dev/stderr)" ]
}
# same FILE FILE - both have the same words, and are not empty
same() {
    sort -u "$1" >"$folder/left"
    sort -u "$2" >"$folder/right"
    [ -s "$folder/left" ] && diff "$folder/left" "$folder/right"
}

# ---- The man page ----

check 'mandoc has no warning' silent mandoc -T lint -W warning cli/redlock.1
check 'groff has no warning' silent sh -c 'groff -man -ww -T utf8 -z cli/redlock.1'
check 'the man page has the present version' grep -q "\"redlock $(sed -n 's/.*REDLOCK_VERSION "\(.*\)"/\1/p' redlock.h)\"" cli/redlock.1
mandoc -T utf8 -O width=1000 cli/redlock.1 | sed 's/.'"$(printf '\b')"'//g' >"$folder/page"
section() { # NAME - from its heading to the next one
    awk -v name="$1" '/^[A-Z]/ { inside = $0 == name } inside' "$folder/page"
}
# the notes list features that do not exist
awk '/^[A-Z]/ { inside = $0 != "NOTES" } inside' "$folder/page" | sed 's/jq .*//; s/^ *set -e$//' >"$folder/body"

# without those that are only in the file
sed -n '/option_spec {/,/^};/p' cli/options.c | grep -v ' IN_FILE,' >"$folder/specs"
sed -n 's/^    {"\([a-z-]*\)", .*/--\1/p' "$folder/specs" >"$folder/options"
sed -n "s/^    {\"\([a-z-]*\)\", '\(.\)'.*/-\2 --\1/p" "$folder/specs" >"$folder/pairs"
sed -n 's/^ \{7\}-\(.*, -\)\{0,1\}\(-[a-z-]*\).*/-\2/p' "$folder/body" >"$folder/named"
check 'the page describes all options, and no other' same "$folder/options" "$folder/named"
grep -o -e '--[a-z][a-z-]*' "$folder/body" >"$folder/named"
check 'the page mentions no other option' same "$folder/options" "$folder/named"
sed -n 's/^  *\(-[A-Za-z]\)[A-Z ]*, \(--[a-z-]*\).*/\1 \2/p' "$folder/body" >"$folder/named"
check 'each option has its letter' same "$folder/pairs" "$folder/named"
(cut -d ' ' -f 1 "$folder/pairs" && echo -c) >"$folder/letters"
grep -o -e '[[ ]-[A-Za-z]\b' "$folder/body" | tr -d '[ ' >"$folder/named"
check 'the page mentions no other letter' same "$folder/letters" "$folder/named"
sed -n 's/^    {"\([a-z]*\)", [A-Z]*, verb_.*/\1/p' cli/main.c >"$folder/verbs"
section DESCRIPTION | sed -n 's/^ \{7\}\([a-z]*\)\( .*\)\{0,1\}$/\1/p' >"$folder/named"
all_named() { ! sort -u "$folder/verbs" | grep -vxFf "$folder/named" && [ -s "$folder/verbs" ]; }
check 'the page describes all verbs' all_named

(sed -n 's/^ *EXIT_[A-Z]* = \([0-9]*\).*/\1/p' cli/cli.h && printf '0\n1\n126\n127\n') >"$folder/statuses"
section 'EXIT STATUS' | sed -n 's/^ \{7\}\([0-9]*\)\(, \([0-9]*\)\)\{0,1\}\( .*\)\{0,1\}$/\1 \3/p' | tr ' ' '\n' | grep . >"$folder/named"
# the page has the statuses of check in a sentence
section 'EXIT STATUS' | sed -n 's/^ *check ends with \([0-9, ]*\)or \([0-9]\):.*/\1 \2/p' | tr -s ', ' '\n' >>"$folder/named"
grep -q EXIT_UNKNOWN cli/cli.h || printf '2\n3\n' >>"$folder/statuses"
check 'all exit statuses, and no other' same "$folder/statuses" "$folder/named"
grep -oh '[("]REDLOCK_[A-Z_]*"\|"REDISCLI_AUTH"\|"JOURNAL_STREAM"\|"LISTEN_PID"\|"WATCHDOG_PID"\|"SSL_CERT_FILE"' cli/*.c | tr -d '("' | grep -vx REDLOCK_AUTH_FILE >"$folder/variables" # which is refused
section ENVIRONMENT | grep -o '[A-Z]*_[A-Z_]*' >"$folder/named"
check 'all environment variables, and no other' same "$folder/variables" "$folder/named"

# ---- The files ----

# The picture of the layers in cli.h, as "FILE LINE GROUP": the number of its line, and the group of files that may use each other.
layers() {
    sed -n '/^ \{7\}[a-z]*\.c/p' cli/cli.h | sed 's/^ *//; s/   .*//' | awk -F '  ' '{
        for (i = 1; i <= NF; i++) { n = split($i, file, " "); for (k = 1; k <= n; k++) print file[k], NR, NR "." i } }'
}
downwards() {
    layers >"$folder/layers"
    for file in cli/*.c; do
        name=${file#cli/}
        grep -q "^$name " "$folder/layers" || { echo "$name is not in the picture"; return 1; }
        gcc -w -O0 -c -I. -D_GNU_SOURCE -DREDLOCK_KEY_MAX=255 -DREDLOCK_LABEL_MAX=250 -DRESP_TEXT_MAX=255 -DREDLOCK_SEND_MAX=2040 \
            "$file" -o "$folder/$name.o" || return 1
        nm -g "$folder/$name.o" | awk -v file="$name" '{ print $(NF - 1) == "U" ? "needs" : "has", file, $NF }'
    done >"$folder/symbols"
    awk 'FILENAME ~ /layers/ { line[$1] = $2; group[$1] = $3; next }
        $1 == "has" { owner[$3] = $2; next }
        { need[++n] = $3; by[n] = $2 }
        END { for (i = 1; i <= n; i++) { to = owner[need[i]]; from = by[i]
            if (to != "" && need[i] != "options" && to != from && group[from] != group[to]) { found++; if (line[from] >= line[to]) { print from " uses " need[i] " of " to; bad = 1 } } }
            exit bad || found < 50 }' "$folder/layers" "$folder/symbols"
}
check 'files use only files below them in the picture of cli.h' downwards

# ---- Examples ----

for n in 1 2 3; do
    start_server $n
done
export REDLOCK_NODES="$folder/1.sock,$folder/2.sock,$folder/3.sock"
export REDLOCK_NODE_TIMEOUT=5s # a machine may be paused for a second
unset REDLOCK_CONFIG REDLOCK_PREFIX REDLOCK_HELD REDLOCK_NAME

# All lines that call a verb, reduced to "redlock run ... NAME COMMAND".
for file in cli/examples/* "$folder/page"; do
    [ "$file" != "$folder/page" ] || { section EXAMPLES >"$folder/examples"; file=$folder/examples; }
    grep -v '^#' "$file" | grep -o 'redlock \(run\|acquire\|release\|status\|check\) [^|]*'
done | sort -u >"$folder/calls"
known() { # each option in the examples belongs to its verb
    while read -r _ verb words; do
        grep -qx "$verb" "$folder/verbs" || continue # a verb that this program does not have
        redlock help --options "$verb" >"$folder/theirs"
        for word in $words; do
            case $word in
            -[a-zA-Z] | --[a-z]*) grep -qx -e "$word=\{0,1\}" "$folder/theirs" || { echo "$verb $word"; return 1; } ;;
            esac
        done
    done <"$folder/calls"
    [ "$(wc -l <"$folder/calls")" -gt 10 ]
}
check 'examples use only options that their verb has' known
runs() { # replaces absolute paths of commands by `true`; succeeds
    grep '^redlock run .* [./][^ ]*$' "$folder/calls" >"$folder/runs"
    [ "$(wc -l <"$folder/runs")" -ge 4 ] || return 1
    sed -i 's/--min-hold [0-9]*/--min-hold 1/' "$folder/runs" # redlock stays so long
    while read -r line; do
        echo "$line"
        sh -c "${line% *} true" || return 1
    done <"$folder/runs"
}
check 'the examples of redlock run work' runs
script() {
    { echo 'step1() { redlock status deploy; }; step2() { step1; }'
        section EXAMPLES | sed -n '/^ *set -e$/p; /token=/,/step2/p'; } >"$folder/script"
    sh "$folder/script" | tee /dev/stderr | grep -c '^deploy  *held ' | grep -qx 2 && ! redlock status deploy
}
check 'the lock for several commands is held during both, and not after' script
ended_script() { # bash runs the EXIT trap after any signal, and dash does not
    { echo 'step1() { redlock status deploy; }; step2() { kill $$; }'
        section EXAMPLES | sed -n '/^ *set -e$/p; /token=/,/step2/p'; } >"$folder/script"
    sh "$folder/script" | tee /dev/stderr | grep -q '^deploy  *held ' && ! redlock status deploy
}
check 'nor after a signal' ended_script
lost_script() { # the lock is gone before the script releases it
    { echo 'step1() { :; }; step2() { for n in 1 2 3; do redis-cli -s "$folder/$n.sock" DEL redlock:deploy; done; }'
        section EXAMPLES | sed -n '/^ *set -e$/p; /token=/,/step2/p'; } >"$folder/script"
    folder=$folder sh "$folder/script"
    [ $? -eq 79 ]
}
check 'it ends with 79 if the lock is lost before it is released' lost_script
itself() {
    { section EXAMPLES | sed -n '/redlock status --mine/p'; echo 'echo "$REDLOCK_NAME $1"'; } >"$folder/itself"
    chmod +x "$folder/itself"
    sed -i '1i #!/bin/sh' "$folder/itself"
    "$folder/itself" word | grep -qx 'nightly word'
}
check 'the script that starts itself again under a lock' itself

metrics() { # FILE - what a textfile collector of Prometheus reads; fails if too few nodes answer
    [ "$(wc -l <"$1")" -eq 7 ] || return 1
    (cd "$folder" && sh "$1") && [ -f "$folder/locks.json" ] || return 1 # no lock is held
    (cd "$folder" && REDLOCK_NODES=127.0.0.1:1 sh "$1") && return 1
    (cd "$folder" && redlock run 'a "b"' sh "$1") | sort | tee /dev/stderr >"$folder/text"
    printf '%s\n' 'redlock_lock_held{name="a \"b\""} 1' 'redlock_lock_nodes{name="a \"b\""} 3' 'redlock_lock_waiting{name="a \"b\""} 0' | cmp - "$folder/text" || return 1
    odd=$(printf 'tab\t esc\033 backslash\\n del\177 quote" newline\nend')
    (cd "$folder" && redlock run "$odd" sh "$1") | tee /dev/stderr >"$folder/text"
    # with another escape than these three Prometheus refuses the whole file
    ! grep -vE '^redlock_lock_[a-z]+\{name="([^"\\]|\\\\|\\"|\\n)*"\} [0-9]+$' "$folder/text" &&
        printf 'redlock_lock_held{name="tab\t esc\033 backslash\\\\n del\177 quote\\" newline\\nend"} 1\n' >"$folder/first" &&
        head -n 1 "$folder/text" | cmp - "$folder/first" && [ "$(wc -l <"$folder/text")" -eq 3 ]
}
section EXAMPLES | sed -n '/redlock status --json/,/lock_waiting/p' >"$folder/metrics"
check 'metrics from JSON, with jq: the example of the page' metrics "$folder/metrics"
sed -n '/^redlock status --json/,/lock_waiting/p' docs/cli.md >"$folder/metrics"
check 'metrics from JSON, with jq: the example of docs/cli.md' metrics "$folder/metrics"

mkdir "$folder/units"
for unit in cli/examples/*.service cli/examples/*.timer; do # their commands do not exist here
    sed "s,/usr/local/bin/redlock,$(command -v redlock),; s,/usr/local/bin/collectord,/bin/true," "$unit" >"$folder/units/${unit##*/}"
done
check 'systemd-analyze has no warning about the units' silent systemd-analyze verify --man=no "$folder"/units/*
stops() { # systemd takes another status than 0, and another than these, for a failure
    redlock run stopped sleep 60 &
    until redlock status -q stopped >/dev/null; do kill -0 $! || return 1; done
    kill $!
    wait $!
    grep -qx "SuccessExitStatus=$?" cli/examples/redlock-standby.service
}
check 'systemd stops the standby service without a failure, when SIGTERM ends the daemon' stops
installed() { # cron and systemd do not search the folder where make install puts the program
    path=$(sed -n 's/^PREFIX = //p' Makefile)/bin/redlock
    section EXAMPLES >"$folder/examples"
    grep -h -e '^ *ExecStart=' -e '^ *0 2 ' cli/examples/* "$folder/examples" >"$folder/paths"
    cat "$folder/paths"
    ! grep -v "[ =]$path run " "$folder/paths" && [ "$(wc -l <"$folder/paths")" -ge 5 ]
}
check 'units and cron name the path where make install puts the program' installed
no_tokens() { # other users can see a command line
    [ -s "$folder/examples" ] && ! grep -iE 'redlock release .*token' "$folder/examples"
}
check 'no example puts a token on a command line' no_tokens
cron() { # five fields of a time, a user, a command; or a variable
    grep -v '^#' cli/examples/redlock.cron | grep -vE '^([0-9*/,-]+ +){5}[a-z]+ +/[a-z/]+/redlock run |^[A-Z_]+=[^ ]+$' && return 1
    grep -q '/redlock run ' cli/examples/redlock.cron
}
check 'the crontab has a valid form' cron

# ---- Completion ----

cat >"$folder/complete" <<'END'
# complete WORD ... - prints what bash would offer for the last word
. cli/redlock.bash
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_redlock redlock "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\n' "${COMPREPLY[@]}"
END
# offers WANT WORD ... - exactly these, joined by |
offers() {
    want=$1
    shift
    bash "$folder/complete" "$@" | sort -u | tr '\n' '|' >"$folder/offered"
    echo "offered: $(cat "$folder/offered")"
    [ "$(cat "$folder/offered")" = "$want|" ]
}
has_letters() {
    bash "$folder/complete" redlock acquire - | grep -x -e '-[A-Za-z]' | sort | tr -d '\n' | grep -qx -e '-E-N-l-n-q-t-v-w'
}
check 'completion of verbs' offers 'release|run' redlock r
check 'completion of a verb: its options' offers '--wait' redlock acquire --w
check 'completion of a verb: no options of another verb' offers '' redlock status --w
check 'completion of a verb: its letters' has_letters
check 'completion after an option that takes a value: no option' offers '' redlock run --wait -
check 'completion of file names' offers "$folder/page" redlock status --config "$folder/pag"
touch "$folder/two words"
check 'completion of a file name with a blank' offers "$folder/two words" redlock status --config "$folder/two"
check 'completion after the lock name: a command' offers 'systemd-analyze' redlock run -n -w 5 name systemd-analyz
check 'completion after options in one word' offers 'systemd-analyze' redlock run -nw 5 name systemd-analyz
check 'completion after an option with its value in one word' offers 'systemd-analyze' redlock run -w5 name systemd-analyz
check 'completion of a file name after =' offers "$folder/page" redlock status --config = "$folder/pag"
check 'completion after an address with a port' offers 'systemd-analyze' \
    redlock run -N 10.0.0.1 : 6379 --wait = 5 name systemd-analyz # bash splits words at : = @
check 'completion after a name with a colon' offers 'systemd-analyze' redlock run -n a : b systemd-analyz
check 'completion after the lock name and --: a command' offers 'systemd-analyze' redlock run -n name -- systemd-analyz
check 'completion after the command: file names' offers "$folder/page" redlock run name ls -l "$folder/pag"
done_testing
