#!/bin/sh
# model.sh BUILD_DIR [full] - checks the models with spin: what must hold does, over all states; and each
# rule that is taken out is missed. TAP. `full` adds the runs of millions of states (some minutes, 6 GB).
#
# A line of the table: what is expected | model | variant | what it shows. Expected: "holds", or the
# assertion that must fail.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
set -u
build=${1:?folder for the builds}/model
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$build"

table() {
    cat <<'END'
holds|redlock|-DC=2|R3: two clients, three nodes, clocks that drift
holds|redlock|-DC=2 -DT=6 -DD=2|R3: more drift, longer ttl
holds|redlock|-DN=4 -DC=2 -DT=3|R3: four nodes
holds|redlock|-DC=2 -DEXT|R8: with extensions
holds|redlock|-DC=2 -DEXT -DLATEXT|R8: also after the validity is over
holds|redlock|-DC=2 -DK=1 -DQUAR=4|R14: a crash that forgets, and its guard
holds|redlock|-DC=2 -DK=1 -DQUAR=4 -DMARK|R18: a server that is flushed and runs on, and its marker
holds|redlock|-DC=2 -DT=3 -DEXT -DHEAL|R9: extensions that heal
holds|fence|-DC=2|R16: two attempts, three nodes, keys and messages lost at any moment
holds|fence|-DN=4 -DC=2 -DINIT=1|R16: four nodes
holds|fence|-DC=2 -DEXTCHK|R8: an extension proves that nobody else had it, without a clock
holds|fence|-DC=2 -DLOSS=1 -DCLOCK=10|R16: a lost count, and proposals by good clocks
v[k]==0|redlock|-DC=2 -DDRIFT=0|without: drift
v[k]==0|redlock|-DC=2 -DT=6 -DD=2 -DDRIFT=1|without: enough drift
v[k]==0|redlock|-DC=2 -DNOELAPSED|without: the time that asking took
v[k]==0|redlock|-DC=2 -DEXT -DEXTNOELAPSED|without: the time that extending took
v[k]==0|redlock|-DC=3 -DT=3 -DBLINDDEL|without: the compare in a release
v[k]==0|redlock|-DC=2 -DEXT -DBLINDEXT|without: the compare in an extension
v[k]==0|redlock|-DC=2 -DK=1|without: the guard after a crash
v[k]==0|redlock|-DC=2 -DK=1 -DQUAR=2|without: a guard that is long enough
v[k]==0|redlock|-DC=3 -DT=3 -DK=1 -DQUAR=1 -DMARK|without: a quarantine that is long enough
v[k]==0|redlock|-DN=4 -DC=2 -DQSZ=2|without: a quorum above the half
lost[c]|redlock|-DC=2 -DEXT -DRECREATE|without: healed nodes not counting at once
lost[c]|redlock|-DC=2 -DEXT -DLATEXT -DANYMEMBER|without: only members counting
aft[k]|fence|-DC=2 -DEXTCHK -DEXTANY|without: only members counting
f[k]==f[c]|fence|-DC=2 -DACK_OWNED|without: the same count, a second round that takes a larger one
f[k]==f[c]|fence|-DC=2 -DNO_ROUND2|without: the second round
f[k]==f[c]|fence|-DC=2 -DACK_BLIND|without: the compare in the second round
f[k]==f[c]|fence|-DC=2 -DLOSS=1|without: counts that are kept
END
    [ "${1:-}" != full ] || cat <<'END'
holds|redlock|-DN=5 -DC=2 -DT=3|R3: five nodes
holds|redlock|-DC=3 -DT=3|R3: three clients
holds|redlock|-DC=3 -DT=3 -DEXT|R8: three clients, with extensions
holds|redlock|-DC=2 -DEXT -DLATEXT -DHEAL|R9: extensions that heal, also late ones
holds|redlock|-DC=2 -DK=2 -DQUAR=4|R14: two crashes
holds|redlock|-DC=2 -DT=3 -DEXT -DLATEXT -DK=1 -DQUAR=3|R14: a crash, and extensions
holds|redlock|-DC=2 -DT=3 -DEXT -DHEAL -DK=1 -DQUAR=4|R9, R14: a crash, and extensions that heal
holds|redlock|-DC=3 -DT=3 -DK=1 -DQUAR=3 -DMARK|R18: three clients
holds|redlock|-DC=2 -DT=3 -DEXT -DHEAL -DK=1 -DQUAR=3 -DMARK|R9, R18: a flush, and extensions that heal
v[k]==0|redlock|-DC=2 -DT=3 -DEXT -DHEAL -DK=1 -DQUAR=3 -DMARK -DBLINDHEAL|without: the marker looked at by who heals
aft[k]|fence|-DC=2 -DEXTCHK -DDUP|R1, without: a SET sent once only
holds|fence|-DC=3|R16: three attempts
holds|fence|-DN=5 -DC=2|R16: five nodes
END
}

number=0 wrong=0
table "${2:-}" >"$build/table"
while IFS='|' read -r expected model variant what; do
    number=$((number + 1))
    folder=$build/$number
    rm -rf "$folder"
    mkdir -p "$folder"
    verdict="did not run"
    # shellcheck disable=SC2086 # a list of words
    if (cd "$folder" && spin $variant -a "$here/$model.pml" >spin.out 2>&1 &&
        gcc -O2 -w -DSAFETY -DCOLLAPSE -DMEMLIM=6000 -o pan pan.c 2>gcc.out &&
        timeout 1800 ./pan -m200000 >pan.out 2>&1); then
        states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' "$folder/pan.out")
        failed=$(sed -n 's/^pan:1: assertion violated //p' "$folder/pan.out" | head -n 1)
        if grep -q -e 'max search depth too small' -e 'Search not completed' -e 'out of memory' \
            "$folder/pan.out" && [ -z "$failed" ]; then
            verdict="not all states were searched"
        elif [ "$expected" = holds ] && [ -z "$failed" ] && grep -q 'errors: 0' "$folder/pan.out"; then
            verdict= note="holds, $states states, all of them"
        elif [ "$expected" != holds ] && [ "${failed#*"$expected"}" != "$failed" ]; then
            verdict= note="violated, as it must be: $failed"
        else
            verdict="$states states; violated: ${failed:-nothing}"
        fi
    fi
    if [ -z "$verdict" ]; then
        echo "ok $number - $model, $what: $note"
        rm -rf "$folder"
    else
        wrong=$((wrong + 1))
        echo "not ok $number - $model, $what: $verdict"
    fi
done <"$build/table"
echo "1..$number"
[ "$wrong" -eq 0 ]
