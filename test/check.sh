#!/bin/sh
# check.sh <COMMANDS - runs each line, the command of a test program, eight at a time. Needs nothing but the shell: counts the
# checks of the Test Anything Protocol itself. Fails if a program fails, makes another number of checks than it has planned,
# or none.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
set -u

# one FOLDER COMMAND - writes "VERDICT CHECKS SKIPPED" into the folder; prints the output of a command that has failed.
one() {
    log=$(mktemp "$1/XXXXXX") verdict=passed
    # shellcheck disable=SC2086 # a list of words
    $2 >"$log" 2>&1 || verdict=FAILED
    checks=$(grep -c '^ok ' "$log")
    grep -qx "1\.\.$checks" "$log" && [ "$checks" -gt 0 ] || verdict=FAILED
    [ $verdict = passed ] || { grep -v '^ok ' "$log"; echo "FAILED: $2"; } >&2
    sed -n 's/^ok [0-9]* # SKIP /# not run here: /p' "$log"
    echo "$verdict $checks $(grep -c '^ok [0-9]* # SKIP ' "$log")" >"$log.verdict"
}

if [ "${1:-}" = one ]; then
    one "$2" "$3"
    exit 0 # the folder has its verdict
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' HUP INT PIPE TERM
start=$(date +%s)
cat >"$folder/commands"
xargs -P 8 -I '{}' "$0" one "$folder" '{}' <"$folder/commands"
cat "$folder"/*.verdict | awk -v programs="$(wc -l <"$folder/commands")" -v seconds=$(($(date +%s) - start)) '
    { checks += $2 - $3; skipped += $3; count[$1]++ }
    END {
        print "check: " checks + 0 " checks passed, " skipped + 0 " skipped; of " programs + 0 " programs " count["passed"] + 0 " passed; " seconds " s"
        exit programs == 0 || count["passed"] != programs
    }'
