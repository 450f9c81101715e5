#!/bin/sh
# model.sh BUILD_DIR [full] - checks the models with spin: what must hold does, over all states; and each
# rule that is taken out is noticed. TAP. `full` adds the longer runs (some minutes, 4 GB at most).
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

# Most runs of extensions let one attempt of two extend (EXTC=1): the other one acquires and releases. Repairs multiply
# the states, so most runs with repairs have a ttl of two ticks: T=2 is enough for each of their mutants to fail.
table() {
    cat <<'END'
holds|redlock|-DC=2|R3: two clients, three nodes, clocks that drift
holds|redlock|-DC=2 -DT=6 -DD=2|R3: more drift, longer ttl
holds|redlock|-DN=4 -DC=2 -DT=3|R3: four nodes
holds|redlock|-DC=2 -DT=3 -DEXT -DLATEXT -DHEAL -DEXTC=1|R2, R8, R8b, R9: extensions, repairs, abandoned connections
holds|redlock|-DC=2 -DT=2 -DEXT -DHEAL -DEXTC=1 -DLATE=0 -DVANISH=1 -DPROMPT|R9: a key vanishes; repairs are answered in time
holds|redlock|-DC=2 -DK=1 -DQUAR=4|R14: a crash that loses keys, and quarantine
holds|fence|-DC=2|R16: two attempts, three nodes, keys and messages lost at any moment
holds|fence|-DN=4 -DC=2 -DINIT=1|R16: four nodes
holds|fence|-DC=2 -DEXTCHK|R8: an extension proves continuity without a clock, if only voters of the acquisition count
holds|fence|-DC=2 -DLOSS=1 -DCLOCK=10|R16: a lost count, and proposals by good clocks
v[k]==0|redlock|-DC=2 -DDRIFT=0|without: drift
v[k]==0|redlock|-DC=2 -DT=6 -DD=2 -DDRIFT=1|without: enough drift
v[k]==0|redlock|-DC=2 -DNOELAPSED|without: the time that acquiring took
v[k]==0|redlock|-DC=2 -DT=3 -DEXT -DEXTC=1 -DEXTNOELAPSED|without: the time that extending took
v[k]==0|redlock|-DC=3 -DT=3 -DBLINDDEL|without: the compare in a release
v[k]==0|redlock|-DC=2 -DT=3 -DEXT -DEXTC=1 -DBLINDEXT|without: the compare in an extension
v[k]==0|redlock|-DC=2 -DT=3 -DEXT -DTTL2=2 -DEXTC=1 -DSHORTEN|R8, without: extensions that never shorten
v[k]==0|redlock|-DC=2 -DK=1|without: quarantine after a crash
v[k]==0|redlock|-DC=2 -DK=1 -DQUAR=2|without: a quarantine that is long enough
v[k]==0|redlock|-DC=3 -DT=3 -DK=1 -DQUAR=1|without: a quarantine that is long enough
v[k]==0|redlock|-DN=4 -DC=2 -DQSZ=2|without: a quorum above the half
before[c]|redlock|-DC=2 -DT=2 -DEXT -DHEAL -DEXTC=1 -DLATE=0 -DVANISH=1 -DPROMPT -DSAMEROUND|R9, without: a later round
lost[c]|redlock|-DC=2 -DT=2 -DEXT -DLATEXT -DHEAL -DEXTC=1 -DRECREATE|R9, without: repaired nodes not counting at once
lost[c]|redlock|-DC=2 -DT=2 -DEXT -DLATEXT -DEXTC=1 -DANYMEMBER|R8, without: only members counting
lost[c]|redlock|-DC=2 -DT=2 -DEXT -DLATEXT -DHEAL -DEXTC=1 -DREPAIRSUSPECT|R8b, without: one unanswered command that creates the key
lost[c]|redlock|-DC=2 -DT=2 -DEXT -DLATEXT -DHEAL -DEXTC=1 -DSETDOUBT|R8b, without: nodes suspect because of a SET
aft[k]|fence|-DC=2 -DEXTCHK -DEXTANY|without: only members counting
aft[k]|fence|-DC=2 -DEXTCHK -DEXTLATE|without clocks: late grants do not count
f[k]==f[c]|fence|-DC=2 -DACK_OWNED|without: the same count, a second round that takes a larger one
f[k]==f[c]|fence|-DC=2 -DNO_ROUND2|without: the second round
f[k]==f[c]|fence|-DC=2 -DACK_BLIND|without: the compare in the second round
f[k]==f[c]|fence|-DC=2 -DLOSS=1|without: counts that are kept
END
    [ "${1:-}" != full ] || cat <<'END'
before[c]|redlock|-DC=2 -DT=2 -DEXT -DHEAL -DEXTC=1 -DLATE=0 -DVANISH=1|R9, without: a round that began before a repair was answered makes no member
before[c]|redlock|-DC=2 -DT=2 -DEXT -DLATEXT -DHEAL -DEXTC=1 -DVANISH=2 -DFRESH|two keys vanish: another client counts a vote that the node forgot before the repair
holds|redlock|-DC=2 -DT=2 -DEXT -DLATEXT -DHEAL -DEXTC=1 -DVANISH=1 -DFRESH|R9: a key vanishes
before[c]|redlock|-DC=2 -DT=2 -DEXT -DLATEXT -DHEAL -DEXTC=1 -DVANISH=1 -DFRESH -DSAMEROUND|R9, without: a later round
holds|redlock|-DC=2 -DT=2 -DEXT -DLATEXT -DHEAL -DEXTC=1 -DADOPT|R8b: another process adopts the lock
lost[c]|redlock|-DC=2 -DT=2 -DEXT -DLATEXT -DHEAL -DEXTC=1 -DNOSUSPECT|R8b, without: suspect nodes
lost[c]|redlock|-DC=2 -DT=2 -DEXT -DLATEXT -DHEAL -DEXTC=1 -DADOPT -DADOPTALL|R8b, without: what an adopter does not know is suspect
lost[c]|redlock|-DC=2 -DT=2 -DEXT -DLATEXT -DHEAL -DEXTC=1 -DOLDROUND|R8b, without: repairs of former rounds
lost[c]|redlock|-DC=2 -DT=2 -DEXT -DLATEXT -DHEAL -DEXTC=1 -DBLINDREPAIR|R8b, without: asking before a repair
lost[c]|redlock|-DC=2 -DT=2 -DEXT -DLATEXT -DHEAL -DEXTC=1 -DK=1 -DKEEP -DFIRSTDOUBT|R8b, without: every abandoned connection
lost[c]|redlock|-DC=2 -DT=2 -DEXT -DLATEXT -DHEAL -DEXTC=1 -DADOPT -DK=1 -DKEEP -DHEARDBEFORE|R8b, without: unheard
v[k]==0|redlock|-DC=2 -DT=2 -DEXT -DLATEXT -DHEAL -DEXTC=1 -DK=1|R14 with repairs, without: quarantine after a crash
holds|redlock|-DC=2 -DT=2 -DEXT -DLATEXT -DHEAL -DEXTC=1 -DK=1 -DQUAR=2|R14: a crash that loses keys, quarantine, and repairs
holds|redlock|-DC=2 -DT=2 -DEXT -DLATEXT -DHEAL -DEXTC=1 -DADOPT -DK=1 -DKEEP|R8b: an adopter does not know the restarted process
holds|redlock|-DN=4 -DC=2 -DT=2 -DEXT -DHEAL -DEXTC=1 -DLATE=0|R9: four nodes
holds|redlock|-DC=2 -DT=2 -DEXT -DHEAL -DLATE=0|R9: both clients extend and repair
holds|redlock|-DC=2 -DT=3 -DEXT -DLATEXT -DHEAL -DEXTC=1 -DADOPT|R8b: another process adopts the lock, longer ttl
holds|redlock|-DC=2 -DT=3 -DEXT -DLATEXT -DHEAL -DEXTC=1 -DK=1 -DKEEP|R8b: a restart that keeps the keys
holds|redlock|-DC=2 -DT=3 -DEXT -DLATEXT -DHEAL -DEXTC=1 -DKILL|R8b: a former connection that the server has closed
holds|redlock|-DC=2 -DT=2 -DEXT -DLATEXT -DHEAL -DEXTC=1 -DVANISH=1 -DFRESH -DKILL|R8b, R9: the same, and a key vanishes
holds|redlock|-DC=2 -DT=3 -DEXT -DLATEXT -DEXTC=1|R2, R8: extensions, also after the validity has ended
holds|redlock|-DC=2 -DT=3 -DEXT -DTTL2=2 -DEXTC=1|R8: extensions by two ttls
holds|redlock|-DC=2 -DT=3 -DEXT -DTTL2=2 -DLATEXT -DEXTC=1|R8: extensions by two ttls, also late ones
holds|redlock|-DN=5 -DC=2 -DT=3|R3: five nodes
holds|redlock|-DC=3 -DT=3|R3: three clients
holds|redlock|-DC=2 -DT=3 -DEXT|R8: both clients extend
holds|redlock|-DC=2 -DK=2 -DQUAR=4|R14: two crashes
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
    case $variant in # compiling takes longer than a small run
    *REPAIRSUSPECT | *NOSUSPECT | *FIRSTDOUBT) optimize='-O1 -DREVERSE' ;; # finds it in half the time, or less
    *EXT*) optimize=-O1 ;;
    *) optimize=-O0 ;;
    esac
    # shellcheck disable=SC2086 # a list of words
    if (cd "$folder" && spin $variant -a "$here/$model.pml" >spin.out 2>&1 &&
        gcc $optimize -w -DSAFETY -DCOLLAPSE -DMEMLIM=4000 -o pan pan.c 2>gcc.out &&
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
