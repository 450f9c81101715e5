#!/bin/sh
# PROGRAMS=... all.sh TARGET ... - makes each target, one after the other, and says at the end what ran. Fails if one
# of them fails, or if no check was made. The output of each is shown when it has failed.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
set -u
log=$(mktemp)
trap 'rm -f "$log"' EXIT
passed=0 failed=0 skipped=0 checks=0 summary=
for target in "$@"; do
    start=$(date +%s)
    if ${MAKE:-make} -s -j 2 "$target" >"$log" 2>&1; then
        verdict=passed passed=$((passed + 1))
    else
        verdict=FAILED failed=$((failed + 1))
        cat "$log"
    fi
    if grep -q '^[^ ]* \.* skipped: ' "$log" && [ $verdict = passed ]; then
        verdict=SKIPPED passed=$((passed - 1)) skipped=$((skipped + 1))
        sed -n 's/^[^ ]* \.* skipped: /# not run here: /p' "$log"
    fi
    count=$(sed -n 's/^Files=[0-9]*, Tests=\([0-9]*\),.*/\1/p' "$log" | awk '{ n += $1 } END { print n + 0 }')
    checks=$((checks + count))
    line=$(printf '%-16s %s  %5d checks  %3d s' "$target" "$verdict" "$count" $(($(date +%s) - start)))
    echo "$line"
    summary="$summary$line
"
done
echo
echo "What ran:"
printf '%s' "$summary"
echo "$checks checks in all; programs: $PROGRAMS"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$checks" -gt 0 ]
