#!/bin/sh
# model.sh BUILD_DIR [full] - checks the models with spin: what must hold does, over all states; and each
# rule that is taken out is noticed. TAP. `full` adds the longer runs (half an hour, 2.1 GB at most).
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

# Most runs of extensions let one attempt of two extend (EXTC=1): the other one acquires and releases. A ttl of two
# ticks (T=2) is enough for each mutant of generations to fail; a quarantine that is too short needs three.
table() {
    cat <<'END'
holds|redlock|-DC=2|R3: two clients, three nodes, clocks that drift
holds|redlock|-DC=2 -DT=6 -DD=2|R3: more drift, longer ttl
holds|redlock|-DN=4 -DC=2 -DT=3|R3: four nodes
holds|redlock|-DC=2 -DT=2 -DEXT -DEXTC=1 -DSTALE -DDEAD|R2, R8, R9: extensions, repairs, late commands, late replies
holds|redlock|-DC=2 -DT=2 -DEXT -DEXTC=1 -DDEAD -DVANISH=1 -DOWN|R9: a key of the holder vanishes
holds|redlock|-DC=2 -DT=2 -DEXT -DEXTC=1 -DDEAD -DADOPT|R9: another process adopts the lock
holds|redlock|-DC=2 -DK=1 -DQUAR=4|R14: a crash that loses keys, and quarantine
holds|fence|-DC=2|R16: two attempts, three nodes, keys and messages lost at any moment
holds|fence|-DN=4 -DC=2 -DINIT=1|R16: four nodes
holds|fence|-DC=2 -DEXTCHK|R8: an extension proves continuity without a clock, if only voters of the acquisition count
holds|fence|-DC=2 -DLOSS=1 -DCLOCK=10|R16: a lost count, and proposals by good clocks
v[k]==0|redlock|-DC=2 -DDRIFT=0|without: drift
v[k]==0|redlock|-DC=2 -DT=6 -DD=2 -DDRIFT=1|without: enough drift
v[k]==0|redlock|-DC=2 -DNOELAPSED|without: the time that acquiring took
v[k]==0|redlock|-DC=2 -DT=3 -DEXT -DEXTC=1 -DDEAD -DNOCREATE -DEXTNOELAPSED|without: the time that extending took
v[k]==0|redlock|-DC=3 -DT=3 -DBLINDDEL|without: the compare in a release
lost[c]|redlock|-DC=2 -DT=2 -DEXT -DEXTC=1 -DNOCREATE -DBLINDEXT|without: the compare in an extension
v[k]==0|redlock|-DC=2 -DT=3 -DEXT -DTTL2=2 -DEXTC=1 -DDEAD -DNOCREATE -DSHORTEN|R8, without: extensions that never shorten
v[k]==0|redlock|-DC=2 -DK=1|without: quarantine after a crash
v[k]==0|redlock|-DC=2 -DK=1 -DQUAR=2|without: a quarantine that is long enough
v[k]==0|redlock|-DC=3 -DT=3 -DK=1 -DQUAR=1|without: a quarantine that is long enough
v[k]==0|redlock|-DN=4 -DC=2 -DQSZ=2|without: a quorum above the half
lost[c]|redlock|-DC=2 -DT=2 -DEXT -DEXTC=1 -DSAMEGEN|R9, without: a new generation in each command that creates the key
lost[c]|redlock|-DC=2 -DT=2 -DEXT -DEXTC=1 -DDEAD -DANYMEMBER|R8, without: only members counting
lost[c]|redlock|-DC=2 -DT=2 -DEXT -DEXTC=1 -DDEAD -DNOFRESH|R9, without: a generation that was known before the round began
v[k]==0|redlock|-DC=2 -DT=2 -DEXT -DEXTC=1 -DNOCREATE -DSTALE -DDELAY -DOLDVOTE|R8, without: votes only in the round that was asked
lost[c]|redlock|-DC=2 -DT=2 -DEXT -DEXTC=1 -DKEEPMEM|R9, without: another generation takes the membership
lost[c]|redlock|-DC=2 -DT=2 -DEXT -DEXTC=1 -DDEAD -DGONEMEM|R9, without: a key that is gone takes the membership, when it is missed or at the first generation after that
lost[c]|redlock|-DC=2 -DT=2 -DEXT -DEXTC=1 -DDEAD -DRECREATE|R9, without: repaired nodes not counting at once
lost[c]|redlock|-DC=2 -DT=2 -DEXT -DEXTC=1 -DDEAD -DJOINANY|R8, without: only a round that succeeded makes members
lost[c]|redlock|-DC=2 -DT=2 -DEXT -DEXTC=1 -DDEAD -DSTALE -DLATEWON|R9, without: known before the round that succeeded, and not only before the present one
lost[c]|redlock|-DC=2 -DT=2 -DEXT -DEXTC=1 -DDEAD -DGRANTANY|R8, without: late grants only while the lock is valid
aft[k]|fence|-DC=2 -DEXTCHK -DEXTANY|without: only members counting
aft[k]|fence|-DC=2 -DEXTCHK -DEXTLATE|without clocks: late grants do not count
f[k]==f[c]|fence|-DC=2 -DACK_OWNED|without: the same count, a second round that takes a larger one
f[k]==f[c]|fence|-DC=2 -DNO_ROUND2|without: the second round
f[k]==f[c]|fence|-DC=2 -DACK_BLIND|without: the compare in the second round
f[k]==f[c]|fence|-DC=2 -DLOSS=1|without: counts that are kept
END
    [ "${1:-}" != full ] || cat <<'END'
holds|redlock|-DC=2 -DT=2 -DEXT -DEXTC=1 -DSTALE|R2, R8, R9: extensions, with what is known of keys that have gone
holds|redlock|-DC=2 -DT=2 -DEXT -DEXTC=1 -DSTALE -DDELAY -DNOCREATE|R8: each yes is under way for any time; no repairs
holds|redlock|-DC=2 -DT=2 -DEXT -DEXTC=1 -DSTALE -DVANISH=1|R9: a key of any client vanishes, with what is known of keys that have gone
holds|redlock|-DC=2 -DT=2 -DEXT -DEXTC=1 -DSTALE -DDEAD -DVANISH=2 -DOWN|R9: two keys of the holder vanish
holds|redlock|-DC=2 -DT=2 -DEXT -DEXTC=1 -DSTALE -DDEAD -DVANISH=3 -DOWN|R9: three keys of the holder vanish
before[c]|redlock|-DC=2 -DT=2 -DEXT -DEXTC=1 -DSTALE -DDEAD -DVANISH=2|two keys vanish: another client counts a vote that the node has forgotten
holds|redlock|-DC=2 -DT=2 -DEXT -DEXTC=1 -DSTALE -DDEAD -DVANISH=2 -DVOID|R9: two keys vanish, and no forgotten vote counts
holds|redlock|-DC=2 -DT=2 -DEXT -DEXTC=1 -DSTALE -DADOPT|R9: another process adopts the lock, with what is known of keys that have gone
holds|redlock|-DC=2 -DT=2 -DEXT -DEXTC=1 -DSTALE -DADOPT -DVANISH=1|R9: the same, and a key vanishes
holds|redlock|-DC=2 -DT=3 -DEXT -DEXTC=1 -DSTALE -DDEAD|R2, R8, R9: longer ttl
holds|redlock|-DC=2 -DT=3 -DEXT -DEXTC=1 -DSTALE -DDEAD -DTTL2=2|R8: extensions by two ttls
holds|redlock|-DC=2 -DT=2 -DEXT -DEXTC=1 -DSTALE -DDEAD -DK=1 -DQUAR=2|R14: a crash that loses keys, and repairs
holds|redlock|-DC=2 -DT=3 -DEXT -DEXTC=1 -DSTALE -DDEAD -DTTL2=2 -DSHORT -DK=1 -DQUAR=3|R14: the same, and extensions shorter than the ttl
holds|redlock|-DC=2 -DT=3 -DEXT -DEXTC=1 -DSTALE -DDEAD -DTTL2=2 -DSHORT -DK=1 -DQUAR=3 -DSOME|R14: the same, and a node may keep its key, also with an earlier end
holds|redlock|-DC=2 -DT=2 -DEXT -DEXTC=1 -DSTALE -DDEAD -DK=1 -DQUAR=2 -DADOPT|R14: a crash that loses keys, and another process adopts the lock
holds|redlock|-DN=4 -DC=2 -DT=2 -DEXT -DEXTC=1 -DSTALE -DDEAD|R8, R9: four nodes
holds|redlock|-DC=2 -DT=2 -DEXT -DSTALE -DDEAD|R8, R9: both clients extend and repair
holds|redlock|-DN=5 -DC=2 -DT=3|R3: five nodes
holds|redlock|-DC=3 -DT=3|R3: three clients
holds|redlock|-DC=2 -DK=2 -DQUAR=4|R14: two crashes
holds|redlock|-DC=2 -DT=2 -DEXT -DEXTC=1 -DSTALE -DVANISH=1 -DKEEPGONE|not needed, R9: a key that is gone takes membership and generation
holds|redlock|-DC=2 -DT=2 -DEXT -DEXTC=1 -DSTALE -DDEAD -DVANISH=1 -DUNASKED|not needed, R8: a yes to the round that makes a member
holds|redlock|-DC=2 -DT=2 -DEXT -DEXTC=1 -DSTALE -DDEAD -DGRANTOLD|not needed, R9: a later round for a late grant
before[c]|redlock|-DC=2 -DT=2 -DEXT -DEXTC=1 -DDEAD -DVANISH=1 -DSAMEROUND|R9, without: a later round for repaired nodes
lost[c]|redlock|-DC=2 -DT=2 -DEXT -DEXTC=1 -DADOPT -DADOPTANY|R9, without: generations that are handed over
before[c]|redlock|-DC=2 -DT=2 -DEXT -DEXTC=1 -DADOPT -DVANISH=1 -DADOPTVALID|R9, without: the same, but the first one that a member tells is taken while the lock is valid
lost[c]|redlock|-DC=2 -DT=2 -DEXT -DEXTC=1 -DADOPT -DADOPTSAME|R9, without: other generations in the repairs of an adopter
v[k]==0|redlock|-DC=2 -DT=2 -DEXT -DEXTC=1 -DDEAD -DK=1|R14 with repairs, without: quarantine after a crash
v[k]==0|redlock|-DC=2 -DT=3 -DEXT -DEXTC=1 -DSTALE -DDEAD -DTTL2=2 -DSHORT -DK=1 -DQUAR=3 -DQUARSET|R14, without: a round in which a node has no vote makes it no member
lost[c]|redlock|-DC=2 -DT=3 -DEXT -DEXTC=1 -DSTALE -DDEAD -DTTL2=2 -DSHORT -DK=1 -DQUAR=3 -DQUARLATE|R14, without: nor later, by a yes that comes when it has one
v[k]==0|redlock|-DC=2 -DT=3 -DEXT -DEXTC=1 -DSTALE -DDEAD -DTTL2=2 -DSHORT -DK=1 -DQUAR=3 -DQUARGRANT|R14, without: nor does its grant
v[k]==0|redlock|-DC=2 -DT=3 -DEXT -DEXTC=1 -DSTALE -DDEAD -DTTL2=2 -DSHORT -DK=1 -DQUAR=3 -DADOPT -DQUARADOPT|R14, without: an adopter takes only generations of members
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
    case "$expected $variant" in # compiling takes longer than a small run
    holds*EXT* | *KEEPMEM | *ADOPT* | *VANISH* | *EXT*QUAR*) optimize=-O1 ;;
    *) optimize=-O0 ;;
    esac
    [ "$expected" = holds ] || optimize="$optimize -DREVERSE" # finds most of them in half the time, or less
    # shellcheck disable=SC2086 # a list of words
    if (cd "$folder" && spin $variant -a "$here/$model.pml" >spin.out 2>&1 &&
        gcc $optimize -w -DSAFETY -DCOLLAPSE -DMEMLIM=4000 -o pan pan.c 2>gcc.out &&
        timeout 7200 ./pan -m500000 >pan.out 2>&1); then
        states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' "$folder/pan.out")
        failed=$(sed -n 's/^pan:1: assertion violated //p' "$folder/pan.out" | head -n 1)
        cost=$(sed -n 's/^pan: elapsed time \([0-9]*\).*/\1 s/p; s/^ *\([0-9]*\)[.0-9]*[^0-9]*total actual memory usage$/\1 MB/p' \
            "$folder/pan.out" | sort -k 2 | paste -s -d ' ')
        if grep -q -e 'max search depth too small' -e 'Search not completed' -e 'out of memory' \
            "$folder/pan.out" && [ -z "$failed" ]; then
            verdict="not all states were searched"
        elif [ "$expected" = holds ] && [ -z "$failed" ] && grep -q 'errors: 0' "$folder/pan.out"; then
            verdict= note="holds, $states states, all of them; $cost"
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
