#!/bin/sh
# docs.sh BUILD_DIR - the man pages: one for each public function, set without a complaint, with prototypes that
# compile. And the texts: what they name (files, make targets, tests, rules) is there. As TAP.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
set -u
build=$1/docs
man=$1/man/man3
number=0 status=0
mkdir -p "$build"

# check WHAT WRONG - passes when WRONG is empty, or shows it
check() {
    number=$((number + 1))
    if [ -z "$2" ]; then
        echo "ok $number - $1"
    else
        echo "not ok $number - $1"
        echo "$2" | sed 's/^/# /'
        status=1
    fi
}

# ---- Man pages

# Found by the preprocessor, not in the way of man.awk.
functions=$(printf '#include "redlock.h"\n#include "url.h"\n' |
    gcc -E -P -I. -DREDLOCK_API=PUBLIC -DRESP_API=PUBLIC - | tr '\n' ' ' | tr ';' '\n' |
    sed -n 's/.*PUBLIC [^(]*[ *]\([a-z_0-9]*\)(.*/\1/p')
count=$(echo "$functions" | wc -l)
missing=
for function in $functions; do
    mandoc -T ascii "$man/$function.3" 2>/dev/null | sed "s/.$(printf '\b')//g" >"$build/page"
    sed -n '/^NAME/,/^SYNOPSIS/p' "$build/page" | grep -q "[ ,]${function}[ ,]" &&
        sed -n '/^SYNOPSIS/,/^DESCRIPTION/p' "$build/page" | grep -q "^ *${function}(" &&
        [ "$(sed -n '/^DESCRIPTION/,/^[RS]/p' "$build/page" | wc -l)" -gt 3 ] || missing="$missing $function"
    sed '1,/^SYNOPSIS/d; /^DESCRIPTION/,$d' "$build/page"
done >"$build/synopses.c"
[ "$count" -gt 30 ] || missing="only $count functions are found at all"
check "each of $count functions has a man page that names, declares and describes it" "$missing"
check 'what their synopses say compiles with the headers' \
    "$(gcc -std=c99 -Wall -Wextra -Wpedantic -Werror -I. -c "$build/synopses.c" -o "$build/synopses.o" 2>&1)"
check 'mandoc has no complaint, but for the date that they are not to have' \
    "$(find "$man" -type f | sort | xargs mandoc -T lint -W warning 2>&1 | grep -v 'missing date, using "": Dd$')"
mkdir -p "$build/again"
awk -v folder="$build/again" -f docs/man.awk redlock.h resp.h url.h
check 'made again they are the same' "$(diff -r "$man" "$build/again" 2>&1)"
# The comments behind things are in the pages too; these matter most.
check 'no result is without its meaning' "$(sed -n 's/^    \(REDLOCK_[A-Z_]*\) = -*[0-9]*,* *\/\* .*/\1/p' redlock.h |
    while read -r result; do grep -A 1 "^.It .*$result = " "$man/redlock.3" | grep -qv '^\.It' || echo "$result"; done)"

# ---- Texts

# Without comments: what is to be written there later.
texts=$(find . -name '*.md' ! -path './build/*' ! -path "./$1/*" | sort)
for text in $texts; do
    sed '/^<!--/,/-->$/d' "$text" | awk -v text="${text#./}" '{ print text ": " $0 }'
done >"$build/texts"

# named PATTERN - FILE: NAME for each that is named in the texts between `` or ()
named() {
    awk -v pattern="$1" '{
        text = substr($1, 1, length($1) - 1)
        while (match($0, pattern)) { print text, substr($0, RSTART + 1, RLENGTH - 2); $0 = substr($0, RSTART + RLENGTH - 1) }
    }' "$build/texts"
}
missing=$(named '\\]\\([^)# ]*[)#]' | sed 's/ (/ /' | while read -r text name; do
    name=${name#(}
    case $name in http*: | http*) continue ;; esac
    [ -z "$name" ] || [ -e "$(dirname "$text")/$name" ] || echo "$text: $name"
done)
check 'links lead to files' "$missing"
missing=$(named '`[a-z][a-z_0-9/.-]*(\.(c|h|hpp|cpp|md|sh|awk|pml|svg)|/)`' | while read -r text name; do
    [ -e "$name" ] || [ -e "$(dirname "$text")/$name" ] || [ "${name#build/}" != "$name" ] ||
        [ -n "$(find . -name "$name" ! -path './build/*')" ] || echo "$text: $name"
done)
check 'files that are named are there' "$missing"
${MAKE:-make} -pnq 2>/dev/null | sed -n 's/^\([a-z][a-z-]*\):.*/\1/p' | sort -u >"$build/targets"
check 'make targets that are named are there' "$(named '`make [a-z-]+[ `]' | while read -r text _ name; do
    grep -qx -e "${name%\`}" "$build/targets" || echo "$text: make $name"
done)"
check 'tests, functions, settings that are named are there' "$(named '`[a-z]+[0-9]*_[a-z_0-9]*[a-z0-9]`' | sort -u |
    while read -r text name; do
        grep -rqwF -e "$name" --include='*.[ch]' --include='*.?pp' --include='*.sh' --include=Makefile ./*.* Makefile test examples bench ||
            echo "$text: $name"
    done)"
version=$(sed -n 's/^#define REDLOCK_VERSION "\(.*\)"/\1/p' redlock.h)
check 'one version everywhere' "$(
    [ "$(sed -n 's/^## \([0-9.]*\),.*/\1/p' CHANGELOG.md | head -n 1)" = "$version" ] || echo CHANGELOG.md
    grep -q "version: '$version'" meson.build || echo meson.build
    grep -q "\"version\": \"$version\"" docs/platforms.md || echo docs/platforms.md
    [ "$(echo "$version" | awk -F . '{ print 1000000 * $1 + 1000 * $2 + $3 }')" = \
        "$(sed -n 's/^#define REDLOCK_VERSION_NUMBER \([0-9]*\).*/\1/p' redlock.h)" ] || echo REDLOCK_VERSION_NUMBER
)"
check 'each source says its licence' "$(find . -type f \( -name '*.[ch]' -o -name '*.?pp' -o -name '*.sh' -o -name '*.awk' \
    -o -name '*.pml' -o -name '*.js' -o -name Makefile -o -name CMakeLists.txt -o -name meson.build \) \
    ! -path './build/*' ! -path "./$1/*" ! -path '*/node_modules/*' -exec grep -L 'SPDX-License-Identifier: MIT' {} +)"

echo "1..$number"
exit $status
