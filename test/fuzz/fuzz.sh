#!/bin/sh
# fuzz.sh BUILD_DIR SECONDS - each target for so long, with ASan and UBSan, from the seeds in test/fuzz/seeds and
# from what earlier runs found in BUILD_DIR/fuzz. Prints what it reached; an input that fails is kept there.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
set -u
folder=${1:?folder for the builds}/fuzz
seconds=${2:?how long each, in seconds}
status=0 number=0
mkdir -p "$folder"
echo 1..3
for target in resp url client; do
    number=$((number + 1))
    mkdir -p "$folder/$target-corpus"
    case $target in
    resp) sources=resp.c ;;
    url) sources=extra/url.c ;;
    client) sources=$(sed -n 's/^CORE = //p' Makefile) ;;
    esac
    # shellcheck disable=SC2086 # several sources
    clang -std=c99 -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -I. test/fuzz/$target.c \
        $sources -o "$folder/$target" || exit 1
    if "$folder/$target" -max_total_time="$seconds" -max_len=2048 -timeout=10 -print_final_stats=1 \
        -artifact_prefix="$folder/" "$folder/$target-corpus" test/fuzz/seeds/$target >"$folder/$target.log" 2>&1; then
        verdict=ok
    else
        verdict='not ok' status=1
        tail -n 40 "$folder/$target.log" >&2
    fi
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$folder/$target.log")
    reached=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$folder/$target.log" | tail -n 1)
    echo "$verdict $number - $target: ${runs:-?} inputs in $seconds s, ${reached:-?} edges reached"
done
exit $status
