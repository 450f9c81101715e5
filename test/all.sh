#!/bin/sh
# PROGRAMS=... all.sh TARGET ... - makes each target, three at a time, because tests mostly wait. Lists at the end what ran.
# Fails if a target fails, or if no check ran. Shows the output of a target that has failed.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
set -u

# one FOLDER TARGET - makes it; writes "VERDICT CHECKS" into the folder, and prints it.
one() {
    start=$(date +%s) log=$1/$2.log verdict=passed
    ${MAKE:-make} -s -j 2 DEPS=no "$2" >"$log" 2>&1 || verdict=FAILED
    if grep -q '^[^ ]* \.* skipped: ' "$log" && [ $verdict = passed ]; then
        verdict=SKIPPED
    fi
    checks=$(sed -n 's/^Files=[0-9]*, Tests=\([0-9]*\),.*/\1/p' "$log" | awk '{ n += $1 } END { print n + 0 }')
    # in one write: other lanes print, too
    { [ $verdict != FAILED ] || cat "$log"
      [ $verdict != SKIPPED ] || sed -n 's/^[^ ]* \.* skipped: /# not run here: /p' "$log"
      printf '%-16s %s  %5d checks  %3d s\n' "$2" "$verdict" "$checks" $(($(date +%s) - start)) | tee "$1/$2"
    } >"$log.shown" 2>&1
    cat "$log.shown"
}

if [ "$1" = one ]; then
    one "$2" "$3"
    exit 0 # the folder has its verdict
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' HUP INT PIPE # after TERM the shell would wait for its child
start=$(date +%s)
printf '%s\n' "$@" | xargs -n 1 -P 3 "$0" one "$folder"
echo
echo "What ran:"
for target in "$@"; do
    cat "$folder/$target" 2>/dev/null || echo "$target FAILED 0 checks: no result"
done | tee "$folder/all"
awk -v programs="$PROGRAMS" -v seconds=$(($(date +%s) - start)) '
    { checks += $3; count[$2]++ }
    END {
        print checks " checks in all, " seconds " s; programs: " programs
        print count["passed"] + 0 " passed, " count["FAILED"] + 0 " failed, " count["SKIPPED"] + 0 " skipped"
        exit count["FAILED"] > 0 || checks == 0
    }' "$folder/all"
