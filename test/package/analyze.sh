#!/bin/sh
# analyze.sh BUILD_DIR - static analysis of the library by three programs, as TAP, also of the single file, where gcc looks into
# calls of all its parts. A finding fails. Below are the checks that are off, and why.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
folder=$1/analyze
one=$1/single/redlock_all.c
files="$(sed -n 's/^CORE = //p' Makefile) net.c extra/url.c"
minimal='-DREDLOCK_MINIMAL=1'
number=0
failed=0
mkdir -p "$folder"
for tool in gcc clang clang-tidy cppcheck; do
    command -v $tool >/dev/null || { echo "Bail out! $tool is not installed: make deps"; exit 1; }
done

# report NAME - fails if $folder/findings has a finding
report() {
    number=$((number + 1))
    if [ -s "$folder/findings" ]; then
        failed=1
        echo "not ok $number - $1"
        sed 's/^/# /' "$folder/findings"
    else
        echo "ok $number - $1"
    fi
}

for options in '' "$minimal"; do
    for file in $files "$one"; do
        # shellcheck disable=SC2086 # a list of words
        gcc -std=c99 -O2 -fanalyzer -I. $options -c "$file" -o "$folder/object" 2>&1
    done >"$folder/findings"
    report "gcc -fanalyzer $options"
done

# Of a user's build: what gcc sees over all files, and when it unrolls loops.
# shellcheck disable=SC2086 # a list of words
gcc -std=c99 -O3 -flto=auto -Wall -Wextra -I. -shared -fPIC $files -o "$folder/object" >"$folder/findings" 2>&1
report "gcc -O3 -flto"

# Also of a user's build: gcc's -Wextra has this one, clang's has not.
for file in $files "$one"; do
    clang -std=c99 -I. -Wimplicit-fallthrough -fsyntax-only "$file" 2>&1
done >"$folder/findings"
report "clang -Wimplicit-fallthrough"

# clang-analyzer is what scan-build runs. Off:
# easily-swappable-parameters     calls of sockets and of this library have them; prototypes name them
# implicit-widening               products that are indices, or whose factors have small ranges
# reserved-identifier, dcl37, 51  programs are meant to define _POSIX_C_SOURCE and _GNU_SOURCE
# narrowing-conversions           short events of poll(); gcc's -Wconversion reports the rest
# and of version 19:
# include-cleaner                 the library is to include redlock.h, which has the other public headers
# assignment-in-if-condition      a condition that begins with what a call has returned
# inc-dec-in-conditions           in C the order of && is defined
# casting-through-void            struct sockaddr, and the settings as an array of numbers
# too-small-loop-variable         a comparison with an enumerator, which is an int
# int09                           an enumerator that stands for the first of several
clang-tidy --quiet --checks='-*,bugprone-*,cert-*,clang-analyzer-*,misc-*,portability-*,-bugprone-easily-swappable-parameters,-bugprone-implicit-widening-of-multiplication-result,-bugprone-reserved-identifier,-cert-dcl37-c,-cert-dcl51-cpp,-bugprone-narrowing-conversions,-misc-include-cleaner,-bugprone-assignment-in-if-condition,-bugprone-inc-dec-in-conditions,-bugprone-casting-through-void,-bugprone-too-small-loop-variable,-cert-int09-c' \
    $files -- -std=c99 2>"$folder/log" >"$folder/findings"
grep -q ' error: ' "$folder/log" && cat "$folder/log" >>"$folder/findings"
report clang-tidy

# Off:           unusedFunction      the functions of the public interface
#                redundantContinue   the body of an empty loop
#                variableScope       variables are declared at the head of a function
#                constVariable, constParameter   functions of one kind have the same parameters
#                normalCheckLevelMaxBranches   no finding: the usual depth of the analysis
#                knownConditionTrueFalse, unsignedLessThanZero, duplicateValueTernary   feature switches are constants in conditions
cppcheck --quiet --max-configs=64 --std=c99 --enable=warning,style,performance,portability --inconclusive \
    --suppress=missingIncludeSystem --suppress=unusedFunction --suppress=redundantContinue --suppress=variableScope \
    --suppress=constVariablePointer --suppress=constParameterPointer --suppress=knownConditionTrueFalse --suppress=unsignedLessThanZero --suppress=duplicateValueTernary --suppress=normalCheckLevelMaxBranches \
    $files >"$folder/findings" 2>&1
report cppcheck
echo "1..$number"
exit $failed
