#!/bin/sh
# docs.sh BUILD_DIR - the man pages: one for each public function, complete, accepted by mandoc, with prototypes that compile.
# The texts: files, anchors, make targets and tests that they name exist; spelling and length. As TAP. Without AWK in the
# environment, all of it again with gawk, mawk and busybox awk.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
set -u
build=$1/docs
man=$1/man/man3
number=0 status=0
mkdir -p "$build"
: >"$build/complaints"
files=$(tools/files.sh) || exit 1

awk() { # a warning is a failure, see the last check
    # shellcheck disable=SC2086 # "busybox awk"
    command ${AWK:-awk} "$@" 2>>"$build/complaints"
}
# check WHAT WRONG - passes when WRONG is empty, or shows it
check() {
    number=$((number + 1))
    if [ -z "$2" ]; then
        echo "ok $number - $1"
    else
        echo "not ok $number - $1"
        echo "$2" | sed 's/^/# /'
        echo "# failed: $1" >&2
        echo "$2" | sed 's/^/# /' | head -n 20 >&2
        status=1
    fi
}

# ---- Man pages

# The preprocessor finds the functions in a way that does not depend on man.awk, which is checked here.
functions=$(printf '#include "redlock.h"\n#include "extra/url.h"\n' |
    gcc -E -P -I. -DREDLOCK_API=PUBLIC -DRESP_API=PUBLIC - | tr '\n' ' ' | tr ';' '\n' |
    sed -n 's/.*PUBLIC [^(]*[ *]\([a-z_0-9]*\)(.*/\1/p')
count=$(echo "$functions" | wc -l)
missing=
for function in $functions; do
    mandoc -T ascii "$man/$function.3" 2>/dev/null | sed "s/.$(printf '\b')//g" >"$build/page"
    sed -n '/^NAME/,/^SYNOPSIS/p' "$build/page" | grep -q "[ ,]${function}[ ,]" &&
        sed -n '/^SYNOPSIS/,/^DESCRIPTION/p' "$build/page" | grep -q "^ *${function}(" &&
        [ "$(sed -n '/^DESCRIPTION/,/^[A-CE-Z]/p' "$build/page" | wc -l)" -gt 3 ] || missing="$missing $function"
    sed '1,/^SYNOPSIS/d; /^DESCRIPTION/,$d' "$build/page"
done | sed 's/^ *\(#include .*\)/\1\n#undef redlock_init\n#undef redlock_lock_init/' >"$build/synopses.c" # also macros
[ "$count" -gt 20 ] || missing="only $count functions are found at all"
check "each of $count functions has a man page that names, declares and describes it" "$missing"
check 'the prototypes of the synopses compile with the headers' \
    "$(gcc -std=c99 -Wall -Wextra -Wpedantic -Werror -I. -c "$build/synopses.c" -o "$build/synopses.o" 2>&1)"
check 'each function of redlock.h and url.h: parameters, return value, blocking time, an example' "$(
    for function in $functions; do
        case $function in redlock_*) ;; *) continue ;; esac
        page=$man/$function.3
        grep -q '^\.Sh PARAMETERS' "$page" || echo "$function: PARAMETERS"
        grep -q '^\.Sh RETURN VALUES' "$page" || echo "$function: RETURN VALUES"
        grep -q '^\.Sh BLOCKING TIME' "$page" || echo "$function: BLOCKING TIME (tools/man.awk says where it comes from)"
        grep -q '^\.Sh EXAMPLES' "$page" && grep -h -A 99 "^# $function\$" docs/man/*.txt | awk 'NR > 1 && /^# / { exit } { print }' |
            grep -q '^EXAMPLES' || echo "$function: EXAMPLES in docs/man"
        ! grep -q '^No description\.' "$page" || echo "$function: a parameter without a description in docs/man"
    done
)"
check 'each page of a call that checks for fork() has REDLOCK_FORKED' "$(grep -l '^\.Ft "enum redlock_status"' "$man"/redlock_*.3 | grep -vE '/redlock_(lock_)?init' |
    { read -r first && printf '%s\n' "$first" && cat || echo 'none is found'; } |
    while read -r page; do grep -q '^\.It .*REDLOCK_FORKED' "$page" || echo "$page"; done)"
check 'no page has a rule number, a private struct or a line for authors' \
    "$(grep -nE '(^|[ ;])R[0-9]+[a-z]?([ .,]|$)|^Private|^ *What the man pages say' "$man"/*.3)"
check 'docs/man has no function that does not exist' "$(sed -n 's/^# \([a-z_]*\)$/\1/p' docs/man/*.txt | grep -vx all | while read -r function; do
    echo "$functions" | grep -qx "$function" || echo "$function"
done)"
check 'mandoc has no warning, except for the missing date' \
    "$(find "$man" "$1/man/man7" -type f | sort | xargs mandoc -T lint -W warning 2>&1 | grep -v 'missing date, using "": Dd$')"
check 'redlock(7) has the present version' "$(grep -q "^\\.Os redlock $(sed -n 's/.*REDLOCK_VERSION "\(.*\)"/\1/p' redlock.h)\$" "$1/man/man7/redlock.7" || echo missing)"
rm -rf "$build/again"
mkdir "$build/again"
awk -v folder="$build/again" -f tools/man.awk docs/man/*.txt redlock.h redlock_config.h resp.h extra/url.h
check 'the pages are the same when they are generated again' "$(diff -r "$man" "$build/again" 2>&1)"
# The pages also have the comments that follow a declaration on its line; those of results matter most.
check 'each result has a description' "$(sed -n 's/^    \(REDLOCK_[A-Z_]*\) = -*[0-9]*,* *\/\* .*/\1/p' redlock.h |
    while read -r result; do grep -A 1 "^.It .*$result = " "$man/redlock.3" | grep -qv '^\.It' || echo "$result"; done)"
check 'docs/errors.md has each result' "$(sed -n 's/^    \(REDLOCK_[A-Z_]*\) = -*[0-9]*,* *\/\* .*/\1/p' redlock.h |
    grep -v _NODE_ | while read -r result; do grep -q "^| .$result" docs/errors.md || echo "$result"; done)"
check 'docs/errors.md has each error text of a node' "$(sed -n '/^static const char rl_error_texts/,/";$/ { /[^0]"$/ { N; s/"\n *"//; }; s/.*"\(.*\)\\0".*/\1/p; }' command.c |
    { read -r first && printf '%s\n' "$first" && cat || echo 'none is found'; } |
    while read -r text; do [ "$text" = replied ] || grep -qF "\`${text%:}\`" docs/errors.md || echo "$text"; done)"
settings=$(printf '#include "redlock.h"\n' | gcc -E -P -I. - | awk '/^struct redlock_settings/ { inside = 1 } inside' | awk '/^}/ { exit } /;/ { gsub(/.* |;/, ""); print }')
check 'docs/settings.md has each setting' "$([ "$(echo "$settings" | wc -l)" -gt 8 ] || echo "only: $settings"
    for setting in $settings; do grep -q "^| .$setting" docs/settings.md || echo "$setting"; done)"
check 'docs/platforms.md has each callback' "$(printf '#include "redlock.h"\n' | gcc -E -P -I. - | sed -n '/^struct redlock_io/,/^}/s/.*(\*\([a-z_]*\))(.*/\1/p' |
    { read -r first && printf '%s\n' "$first" && cat || echo 'none is found'; } |
    while read -r callback; do grep -q "^| .$callback. |" docs/platforms.md || echo "$callback"; done)"
io_of() { awk '/^struct redlock_io \{/ { inside = 1 } inside; /^\}/ { inside = 0 }' "$@" | tr -s ' \n' ' '; }
check 'docs/platforms.md has struct redlock_io as it is in redlock.h' "$(
    printf '#include "redlock.h"\n' | gcc -E -P -I. - | io_of >"$build/io"
    grep -q entropy "$build/io" || echo 'none is found'
    io_of docs/platforms.md | diff - "$build/io")"
limit() { # MACRO HOSTED - its value
    # shellcheck disable=SC2046 # an expression
    echo $(($(printf '#include "redlock.h"\nvalue=%s\n' "$1" | gcc -E -P -I. -DREDLOCK_HOSTED="$2" - | sed -n 's/^value=//p')))
}
check 'docs/settings.md has each limit, switch and option of the headers' "$(
    { sed -n 's/^#ifndef \(RE[A-Z_0-9]*\)$/\1/p' redlock_config.h redlock.h resp.h | grep -vE '_H$|_API$'
      printf '#include "redlock.h"\n' | gcc -E -P -I. - | sed -n '/^struct redlock_lock {/,/uint8_t use_fencing/p' | sed '1,/ priv;/d' |
          sed -n 's/.*[ *]\([a-z_]*\);$/\1/p'
    } | { read -r first && printf '%s\n' "$first" && cat || echo 'none is found'; } |
    while read -r name; do grep -q "\`$name\`" docs/settings.md || grep -q "\`$name=1\`" docs/settings.md || echo "$name"; done)"
check 'docs/settings.md has the limits and their defaults' "$(
    rows=$(sed -n 's/^| `\(RE[A-Z_]*_MAX\)` |.*| \([0-9]*\) | \([0-9]*\) |$/\1 \2 \3/p' docs/settings.md)
    [ "$(echo "$rows" | wc -l)" -gt 5 ] || echo "only: $rows"
    echo "$rows" | while read -r name hosted other; do
        [ "$(limit "$name" 1) $(limit "$name" 0)" = "$hosted $other" ] || echo "$name: $(limit "$name" 1), $(limit "$name" 0)"
    done)"

# ---- Texts

# Without comments, which may have notes for authors.
texts=$(echo "$files" | grep '\.md$')
for text in $texts; do
    sed '/^<!--/,/-->$/d' "$text" | awk -v text="$text" '{ print text ": " $0 }'
done >"$build/texts"
# All pages except the table of sizes.
pages=$(echo "$texts" | grep -xE '(README|SECURITY|CONTRIBUTING|docs/[^/]*)\.md' | grep -vx docs/sizes.md)

# named PATTERN - FILE: NAME for each that is named in the texts between `` or ()
named() {
    awk -v pattern="$1" '{
        text = substr($1, 1, length($1) - 1)
        while (match($0, pattern)) { print text, substr($0, RSTART + 1, RLENGTH - 2); $0 = substr($0, RSTART + RLENGTH - 1) }
    }' "$build/texts"
}
missing=$(named '[]][(][^)# ]*[)#]' | sed 's/ (/ /' | while read -r text name; do
    name=${name#(}
    case $name in http*: | http*) continue ;; esac
    [ -z "$name" ] || [ -e "$(dirname "$text")/$name" ] || echo "$text: $name"
done)
check 'files that links name exist' "$missing"
awk '/^[^ ]*: #+ / { # FILE#anchor of each heading, as GitHub makes them
    text = substr($1, 1, length($1) - 1)
    sub(/^[^ ]*: #+ /, "")
    $0 = tolower($0)
    gsub(/[^a-z0-9 _-]/, "")
    gsub(/ /, "-")
    print text "#" $0 }' "$build/texts" >"$build/anchors"
check 'headings that links name exist' "$(named '[]][(][^) ]*#[^) ]*[)]' | while read -r text name; do
    name=${name#(}
    case $name in http*) continue ;; esac
    file=${name%%#*}
    [ -n "$file" ] && file=$(dirname "$text")/$file || file=$text
    file=$(echo "$file" | sed 's,^\./,,; s,[^/.]*/\.\./,,')
    grep -qxF "$file#${name#*#}" "$build/anchors" || echo "$text: $name"
done)"
check 'each page is linked from docs/index.md' "$(for page in $pages CHANGELOG.md docs/sizes.md; do
    case $page in docs/index.md) continue ;; docs/*) name=${page#docs/} ;; *) name=../$page ;; esac
    grep -qF "]($name)" docs/index.md || echo "$page"
done)"
missing=$(named '`[a-z][a-z_0-9/.-]*([.](c|h|hpp|cpp|md|sh|awk|pml|svg)|/)`' | while read -r text name; do
    [ -e "$name" ] || [ -e "$(dirname "$text")/$name" ] || [ "${name#build/}" != "$name" ] ||
        [ -n "$(find . -path ./build -prune -o -name "$name" -print)" ] || echo "$text: $name"
done)
# files that a reader or an install creates
check 'files that are named exist' "$(echo "$missing" | grep -vE '((redlock_all|redlock_core|lock|backup|pump)[.](c|cpp)|redlock_limits[.]h)$')"
${MAKE:-make} -pnq 2>/dev/null | sed -n 's/^\([a-z][a-z-]*\):.*/\1/p' | sort -u >"$build/targets"
check 'make targets that are named exist' "$(named '`make [a-z -]+[ `]' | while read -r text _ names; do
    for name in $(echo "$names" | tr -d '`'); do
        grep -qx -e "$name" "$build/targets" || echo "$text: make $name"
    done
done)"
check 'tests, functions, settings that are named exist' "$(named '`[a-z]+[0-9]*_[a-z_0-9]*[a-z0-9]`' | sort -u |
    while read -r text name; do
        ! grep -q "^| [^|]*\`$name\`.*| .*|" CHANGELOG.md || [ "$text" != CHANGELOG.md ] || continue # the table of renames
        grep -rqwF -e "$name" --include='*.[ch]' --include='*.?pp' --include='*.sh' --include=Makefile ./*.* Makefile test examples bench ||
            echo "$text: $name"
    done)"
check 'functions named in pictures exist' "$(cat docs/*.svg bench/*.svg | grep -o 'redlock_[a-z_]*' | sort -u | while read -r name; do
    echo "$functions" | grep -qx "$name" || echo "$name"
done)"
version=$(sed -n 's/^#define REDLOCK_VERSION "\(.*\)"/\1/p' redlock.h)
check 'one version everywhere' "$(
    [ "$(sed -n 's/^## \([0-9.]*\),.*/\1/p' CHANGELOG.md | head -n 1)" = "$version" ] || echo CHANGELOG.md
    grep -qF "$version" README.md || echo README.md
    grep -q "version: '$version'" meson.build || echo meson.build
    [ "$(echo "$version" | awk -F . '{ print 1000000 * $1 + 1000 * $2 + $3 }')" = \
        "$(sed -n 's/^#define REDLOCK_VERSION_NUMBER \([0-9]*\).*/\1/p' redlock.h)" ] || echo REDLOCK_VERSION_NUMBER
)"
check 'each source file names its licence' "$(echo "$files" |
    grep -E '\.([ch]|.pp|sh|awk|pml|js)$|(^|/)(Makefile|CMakeLists\.txt|meson\.build)$' | xargs grep -L 'SPDX-License-Identifier: MIT')"

# ---- Language

check 'README: at most 100 columns' "$(awk 'length > 100 { print FILENAME ":" FNR ": " length }' README.md)"
# shellcheck disable=SC2086 # a list of words
check 'pages: at most 130 columns, except tables' "$(awk '!/^[|]/ && length > 130 { print FILENAME ":" FNR ": " length }' $pages)"
# Sentences end at a full stop, an empty line, a heading, an item, a table. Text between `` is one word, as is a link's address.
check 'README: at most 30 words in a sentence' "$(awk '
    function end_paragraph(    n, i, sentences, words) {
        gsub(/[]][(][^)]*[)]/, "]", held)
        gsub(/`[^`]*`/, "code", held)
        n = split(held, sentences, /[.?!:]["*)]* +/)
        for (i = 1; i <= n; i++) if (split(sentences[i], words, / +/) > 30) print sentences[i]
        held = ""
    }
    /^```/ { end_paragraph(); code = !code; next }
    code { next }
    /^ *$/ || /^[|#>!]/ { end_paragraph(); next }
    /^ *([*-]|[0-9]+[.]) / { end_paragraph(); sub(/^ *([*-]|[0-9]+[.]) /, "") }
    { held = held $0 " " }
    END { end_paragraph() }' README.md)"
# shellcheck disable=SC2086 # a list of words
check 'spelling' "$(codespell --ignore-words test/package/words.txt $pages CHANGELOG.md $(echo "$files" |
    grep -xE 'docs/man/.*\.txt|docs/redlock\.7|cli/redlock\.1|[^/]*\.(h|hpp)|examples/.*\.[ch]') 2>&1)"
# shellcheck disable=SC2086 # a list of words
check 'the terms of the field, no home-made terms' "$(grep -nwiE \
    'dialled|greeting|greeted|wake-up|undoing|healing|healed|hang up|hangs up|gives it back|lets go|be it|to be had|of yours|by itself|oftener|blots' \
    $pages docs/man/*.txt docs/redlock.7 cli/redlock.1 | grep -v ' --by-itself ')"
acl() { awk -v file="$1" '/^```sh/ { inside = 1; next } /^```/ { inside = 0 } inside && /ACL SETUSER/, /[^\\]$/' "$1"; }
check 'README and docs/servers.md give the same permissions' "$([ -n "$(acl README.md)" ] && [ "$(acl README.md)" = "$(acl docs/servers.md)" ] || { acl README.md; acl docs/servers.md; })"

# README's four figures for firmware are those of docs/embedded.md, rounded.
embedded() { # ROW COLUMN - without commas
    awk -F ' *[|] *' -v row="$1" -v column="$2" '$2 == row { gsub(",", "", $(column + 2)); print $(column + 2); exit }' docs/embedded.md 2>/dev/null
}
check 'README and docs/embedded.md have the same figures' "$(
    all=$(tr '\n' ' ' <README.md)
    for figure in "$(embedded 'flash: redlock' 3 | awk '{ printf "takes %.0f KB of flash", $1 / 1000 }')" \
        "$(embedded 'flash: redlock' 1 | awk '{ printf "the default one %.0f KB", $1 / 1000 }')" \
        "$(embedded 'RAM: client, nodes, one lock' 3 | awk '{ printf "five nodes and one lock take %.1f KB of RAM", $1 / 1000 }')" \
        "$(embedded 'stack in use at most, interrupts included' 3 | awk '{ printf "at most %d bytes of stack", $1 }')"; do
        case $all in *"$figure"*) [ -n "$figure" ] || echo 'a row is missing in docs/embedded.md' ;; *) echo "not in README: $figure" ;; esac
    done)"

check "${AWK:-awk} has no warning" "$(cat "$build/complaints")"
if [ -z "${AWK:-}" ]; then
    for awk in gawk mawk 'busybox awk'; do
        check "all of it with $awk" "$(AWK=$awk sh "$0" "$1" 2>&1 | grep -v '^ok \|^1\.\.')"
    done
fi
echo "1..$number"
exit $status
