#!/bin/sh
# vendor.sh BUILD_DIR VERSION SOURCE ... - the library in the ways that users build it, from the release and never from this
# checkout: the single file with other compilers, as C++, static, twice in one program; installed; with pkg-config, CMake
# and Meson. SOURCE: the library's files. As TAP.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
set -u
here=$(pwd)
build=$here/$1
folder=$build/vendor
version=$2
. test/lib/tap.sh
rm -rf "$folder"
mkdir -p "$folder/one"
shift 2
tar -C "$folder" -xzf "$build/redlock-$version.tar.gz"
source=$folder/redlock-$version
cp "$source/single/redlock_all.c" "$source/single/redlock_core.c" "$source/single/redlock.h" "$folder/one"

# A user's program: exit status 0 if the library that it was linked with has this version and works.
cat >"$folder/app.c" <<'END'
#include <redlock.h>
int main(void)
{
    struct redlock_node node = {0};
    struct redlock_client client;
    struct redlock_lock lock;
    int wrong;

    node.address = "127.0.0.1:1";
    wrong = redlock_version() != REDLOCK_VERSION_NUMBER || redlock_init(&client, redlock_posix(), &node, 1, NULL) != REDLOCK_OK;
    redlock_lock_init(&lock, "key", 1000);
    wrong = wrong || redlock_acquire(&client, &lock, 0) != REDLOCK_UNREACHABLE;
    redlock_deinit(&client);
    return wrong;
}
END

# A program with nine nodes and no -D for the compiler; its structs must be those of the library.
cat >"$folder/nine.c" <<'END'
#include <redlock.h>
#include <string.h>
static struct redlock_node nodes[9];
static const char *addresses[] = {"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3", "127.0.0.1:4", "127.0.0.1:5",
                                  "127.0.0.1:6", "127.0.0.1:7", "127.0.0.1:8", "127.0.0.1:9"};
static struct {
    struct redlock_client client;
    char behind[4096];
} it;
int main(void)
{
    unsigned i;

    memset(it.behind, 'x', sizeof it.behind);
    for (i = 0; i < 9; i++)
        nodes[i].address = addresses[i];
    if (REDLOCK_NODES_MAX != 9 || redlock_init(&it.client, redlock_posix(), nodes, 9, NULL) != REDLOCK_OK)
        return 1;
    redlock_deinit(&it.client);
    for (i = 0; i < sizeof it.behind; i++)
        if (it.behind[i] != 'x')
            return 2;
    return 0;
}
END

# ---- The single file ----

cd "$folder/one" || exit 1
for compiler in gcc clang; do
    check "$compiler -std=c99" $compiler -std=c99 -O2 -Wall -Wextra -Wpedantic -Werror -c redlock_all.c -o one.o
    for std in c11 c17 gnu17 c2x; do # the optimizer, which takes most of the time, sees no difference
        check "$compiler -std=$std" $compiler -std=$std -O0 -Wall -Wextra -Wpedantic -Werror -c redlock_all.c -o one.o
    done
done
check tcc tcc -c redlock_all.c -o one.o
check "32 bits" gcc -m32 -isystem /usr/include/x86_64-linux-gnu -std=c99 -O2 -Wall -Wextra -Wpedantic -Werror -c redlock_all.c -o one.o
check musl musl-gcc -std=c99 -O2 -Wall -Wextra -Werror -c redlock_all.c -o one.o
for std in c++11 c++17 c++20; do
    check "as $std" g++ -std=$std -x c++ -Wall -Wextra -c redlock_all.c -o one.o
    check "as $std, clang" clang++ -std=$std -x c++ -Wall -Wextra -Wno-deprecated -c redlock_all.c -o one.o
done
for feature in $(sed -n 's/^#ifndef \(REDLOCK_[A-Z0-9_]*\)$/\1/p' "$source/redlock_config.h" | sed '1,/^REDLOCK_MINIMAL$/d; /_MAX$/d'); do
    check "without $feature" gcc -std=c99 -O1 -Wall -Wextra -Wpedantic -Werror -D$feature=0 -c redlock_all.c -o one.o
done
check "minimal" gcc -std=c99 -O2 -Wall -Wextra -Wpedantic -Werror -DREDLOCK_MINIMAL=1 -c redlock_all.c -o one.o
check "beside macros of the program" gcc -std=c99 -Wall -Wextra -Werror -DKEY=1 -DTOKEN=2 -DTTL=3 -DEVAL=4 -DUSER=5 -DPASSWORD=6 \
    -DDATABASE=7 -DINFO=8 -DNAME=9 -DROLE=10 -DMODE=11 -DCOUNTER=12 -DPATIENCE=13 -c redlock_all.c -o one.o
# <windows.h> and other system headers define these: as nothing, as a word, with arguments. System headers that ours include come
# before, as they would break, too.
headers_beside() { # COMPILER ... DEFINES - all our headers behind them, in either order
    defines=$1
    shift
    cplusplus=
    case $1 in *++) cplusplus='redlock.hpp' ;; esac
    for order in 'resp.h redlock_config.h redlock.h extra/url.h extra/redlock_tls.h' 'extra/redlock_tls.h extra/url.h redlock.h'; do
        {
            printf '#include <%s>\n' stddef.h stdint.h string.h mbedtls/ssl.h
            [ -z "$cplusplus" ] || printf '#include <%s>\n' chrono cstdint stdexcept string utility vector
            echo "$defines"
            printf '#include "%s"\n' $order ${cplusplus:+extra/$cplusplus}
        } >"$folder/beside" && "$@" -I"$source" -Wall -Wextra -Wpedantic -Werror -fsyntax-only "$folder/beside" || return 1
    done
}
names='near far small interface min max ERROR IN OUT'
as_nothing=$(printf '#define %s\n' $names)
as_words=$(printf '#define %s 1 garbage\n' $names)
as_windows='#define near
#define far
#define small char
#define interface struct
#define min(a, b) (((a) < (b)) ? (a) : (b))
#define max(a, b) (((a) > (b)) ? (a) : (b))
#define ERROR 0
#define IN
#define OUT'
for language in 'gcc -std=c99 -x c' 'clang -std=c99 -x c' 'g++ -std=c++11 -x c++' 'clang++ -std=c++20 -x c++'; do
    # shellcheck disable=SC2086 # a list of words
    {
        check "the headers beside macros that are nothing: $language" headers_beside "$as_nothing" $language
        check "the headers beside macros that are words: $language" headers_beside "$as_words" $language
        check "the headers beside the macros of windows.h: $language" headers_beside "$as_windows" $language
    }
done
check "with app.c" gcc -std=c99 -I. "$folder/app.c" redlock_all.c -o app
check "the program runs" ./app
cat >list.c <<'END'
#include "redlock.h"
#include <string.h>
int main(void)
{
    const char *list = "a:1,redis://:word@b:2,c:3";
    struct redlock_url url;
    unsigned count = 0;

    while (redlock_url_next(&list, &url) == NULL && url.address[0] != '\0')
        count += strlen(url.address) == 3 && (strcmp(url.address, "b:2") != 0 || strcmp(url.password, "word") == 0);
    return count != 3;
}
END
listed() { gcc -std=c99 -Wall -Wextra -Werror -I. list.c redlock_all.c -o list && ./list; }
check "a list of nodes with the single file" listed
exported() { # only names with our prefixes
    gcc -c redlock_all.c -o one.o && ! nm -g --defined-only one.o | awk '{ print $3 }' | grep -v '^redlock_\|^resp_'
}
check "exports redlock_ and resp_ only" exported

printf '#include <stdio.h>\n#include "redlock_all.c"\n' >late.c
check "the single file after a system header" gcc -Wall -Wextra -Werror -c late.c -o late.o
strict() { ! gcc -std=c99 -c late.c -o late.o 2>late.log && sed -n '/error:/{p;q}' late.log | grep 'net.c needs POSIX'; }
check "the single file after a system header that hides POSIX: a clear #error" strict

for name in a b; do
    cat >$name.c <<END
#define REDLOCK_API static
#include "redlock_all.c"
int use_$name(void);
int use_$name(void)
{
    struct redlock_client client;
    return (int)redlock_init(&client, redlock_posix(), NULL, 0, NULL);
}
END
done
echo 'int use_a(void); int use_b(void); int main(void) { return use_a() != use_b(); }' >twice.c
check "static, twice in one program" gcc -std=c99 -Wall -Wno-unused-function -Werror a.c b.c twice.c -o twice
check "that program runs" ./twice
nothing() { ! nm -g --defined-only twice | grep 'redlock_\|resp_'; }
check "that program exports no redlock_ or resp_" nothing
for name in a b; do
    sed "s/#define REDLOCK_API static/__attribute__((visibility(\"default\"))) int use_$name(void);/; s/redlock_all.c/redlock.h/" \
        $name.c >hidden_$name.c
    check "hidden in a shared library" gcc -fPIC -shared -fvisibility=hidden hidden_$name.c redlock_all.c -o libhidden_$name.so
    only() { nm -D --defined-only libhidden_$name.so | awk '{ print $3 }' | grep -qx "use_$name" &&
        ! nm -D --defined-only libhidden_$name.so | grep 'redlock_\|resp_'; }
    check "that shared library exports only use_$name" only
done
check "two such shared libraries in one program" gcc twice.c ./libhidden_a.so ./libhidden_b.so -o twice
check "that program runs, too" ./twice
# redlock_core.c with the headers that every compiler brings along, and these functions of a C library
mkdir core
cat >core/string.h <<'END'
#include <stddef.h>
void *memcpy(void *restrict, const void *restrict, size_t);
void *memset(void *, int, size_t);
void *memchr(const void *, int, size_t);
int memcmp(const void *, const void *, size_t);
int strcmp(const char *, const char *);
int strncmp(const char *, const char *, size_t);
char *strchr(const char *, int);
char *strstr(const char *, const char *);
size_t strlen(const char *);
END
firmware() { # OPTION ... - calls these functions, and the compiler's for 64-bit products, 32-bit quotients and switches only
    arm-none-eabi-gcc "$@" -mthumb -std=c99 -Os -Wall -Wextra -Wpedantic -Werror -ffreestanding -nostdinc \
        -isystem "$(arm-none-eabi-gcc -print-file-name=include)" -isystem core -c redlock_core.c -o core.o &&
        ! arm-none-eabi-nm -u core.o | awk '{ print $2 }' | grep -vE '^(mem|str|__gnu_thumb1_case|__aeabi_lmul$|__aeabi_uidiv(mod)?$)'
}
for cpu in cortex-m0plus cortex-m4; do
    check "redlock_core.c for firmware on $cpu, without a system header" firmware -mcpu=$cpu
    check "redlock_core.c for firmware on $cpu, minimal" firmware -mcpu=$cpu -DREDLOCK_MINIMAL=1
done
cd "$here" || exit 1

# ---- The soname ----

# Callers own the structs. So a library whose structs have another size than those of a release must not be loaded by its programs.
soname="libredlock.so.${version%.*}"
sizes() { # of the structs in this tree: node, lock, client
    for struct in node lock client; do
        printf '#include "redlock.h"\nchar size_of[sizeof(struct redlock_%s)];\n' $struct >"$folder/size.c"
        gcc -I"$source" -c "$folder/size.c" -o "$folder/size.o" &&
            echo $((0x$(nm -S "$folder/size.o" | awk '$4 == "size_of" { print $2 }')))
    done | xargs
}
soname_of() { # VERSION - as the Makefile names it
    ${MAKE:-make} -C "$source" -nB shared VERSION="$1" | sed -n 's/.*-soname,\([^ ]*\) .*/\1/p'
}
sonames() {
    [ "$(soname_of "$version")" = "$soname" ] || return 1
    tree=$(sizes)
    awk -F ' *[|] *' '$3 == "x86-64, core" { print $2, $8, $9, $10 }' "$source/docs/sizes.md" >"$folder/releases"
    [ "$(wc -l <"$folder/releases")" -ge 3 ] || return 1
    while read -r release recorded; do
        [ "$recorded" != "$tree" ] && [ "$(soname_of "$release")" = "$soname" ] || continue
        echo "node, lock and client have $tree bytes, and $recorded in $release, which has the same soname, $soname."
        echo "Set the next minor version in redlock.h. Is $release not released yet? Then \`make size RECORD=yes\`."
        return 1
    done <"$folder/releases"
}
check "the soname differs from that of each release whose structs have other sizes" sonames
has_soname() { # FILE - exactly this one
    readelf -d "$1" >"$folder/dynamic" && grep -F "SONAME" "$folder/dynamic" && grep -q "SONAME.*\[$soname\]" "$folder/dynamic"
}
needs_soname() { readelf -d "$1" | grep -q "NEEDED.*\[$soname\]"; }

# ---- The release ----

again() { # FOLDER - made in FOLDER, with another umask, time zone and language
    umask=$(umask)
    umask 077
    TZ=Asia/Tokyo LC_ALL=C.UTF-8 ${MAKE:-make} -s -C "$1" release B="$folder/again"
    umask "$umask"
    cmp "$build/redlock-$version.tar.gz" "$folder/again/redlock-$version.tar.gz"
}
check "a second build of the release is the same, byte for byte" again "$here"
rm -rf "$folder/again"
check "a build from the release is the same, byte for byte" again "$source"
lacks() { # without the file there is no release, and make says this. git is kept from finding a checkout around us
    mv "$source/$1" "$folder/lacking"
    GIT_CEILING_DIRECTORIES=$folder ${MAKE:-make} -s -C "$source" release B="$folder/again" 2>"$folder/lacks"
    made=$?
    mv "$folder/lacking" "$source/$1"
    rm -rf "$folder/again"
    [ $made -ne 0 ] && grep "$2" "$folder/lacks"
}
check "without one of its files there is no release" lacks docs/cpp.md cpp.md
check "without a list of files the release says so" lacks SHA256SUMS '^neither SHA256SUMS nor git lists the files'
listed() { # SHA256SUMS lists each file and no other
    (cd "$build" && sha256sum -c "redlock-$version.tar.gz.sha256") && cd "$source" && sha256sum --quiet -c SHA256SUMS &&
        sed 's/^[^ ]*  //' SHA256SUMS >"$folder/listed" &&
        find . -type f ! -name SHA256SUMS | sed 's|^\./||' | LC_ALL=C sort | cmp - "$folder/listed"
}
check "the checksums are right, and cover all files" listed
cd "$here" || exit 1
has() { # files that another step would have to make
    for file in single/redlock_all.c single/redlock_core.c single/redlock.h man/man1/redlock.1 man/man3/redlock.3 man/man3/redlock_acquire.3 man/man7/redlock.7 "$@"; do
        [ -s "$source/$file" ] || return 1
    done
}
check "the single file, the man pages and all sources are in it" has "$@" extra/url.c Makefile
compiler_only() { # PATH has no other tool, the folder no other file
    mkdir "$folder/bin" "$folder/empty"
    for tool in gcc as ld; do ln -s "$(command -v $tool)" "$folder/bin"; done
    cp "$source/single/redlock_all.c" "$source/single/redlock.h" "$folder/app.c" "$folder/empty"
    (cd "$folder/empty" && env -i PATH="$folder/bin" gcc -std=c99 -I. app.c redlock_all.c -o app && ./app)
}
check "a compiler is enough to build a program with the single file" compiler_only
musl_only() { # PATH has no redis-server, and no apt-get
    for tool in sh make musl-gcc sed cat cmp mkdir dirname rm id; do ln -s "$(command -v $tool)" "$folder/bin" || return 1; done
    env -i PATH="$folder/bin" REALGCC=gcc ${MAKE:-make} -s -C "$source" B=out-static CFLAGS=-O0 cli-static && "$source/out-static/redlock-static" version
}
check "make and musl-gcc are enough to build the static program" musl_only

check "the Makefile of the release builds" ${MAKE:-make} -s -C "$source" B=out
check "the Makefile of the release builds with clang" ${MAKE:-make} -s -C "$source" B=out-clang CC=clang CFLAGS=-O0 all shared cli
logging() { # COMMAND ... - with a compiler that writes its arguments to $folder/commands
    printf '#!/bin/sh\necho "$*" >>"%s/commands"\nexec gcc "$@"\n' "$folder" >"$folder/logging-gcc" && chmod +x "$folder/logging-gcc" &&
        rm -f "$folder/commands" && env CC="$folder/logging-gcc" "$@" && [ "$(wc -l <"$folder/commands")" -gt 5 ]
}
all_have() { # FLAG [COMMANDS] - each command of the compiler, or each that this pattern leaves
    ! grep -v -e "${2:-^$}" "$folder/commands" | grep -v -e "$1"
}
environment() { # headers.sh only preprocesses (-E), and what compiles (-c) does not link
    logging CFLAGS='-O1 -g0' CPPFLAGS=-DFROM_CPPFLAGS LDFLAGS=-Wl,-z,relro,-z,now ${MAKE:-make} -s -C "$source" B=out-environment \
        install DESTDIR="$folder/environment" PREFIX=/usr && all_have '-DFROM_CPPFLAGS -O1 -g0' && all_have '-z,relro,-z,now' ' -[cE] ' || return 1
    for file in lib/libredlock.so bin/redlock; do
        readelf -d "$folder/environment/usr/$file" | grep -q BIND_NOW || { echo "$file"; return 1; }
    done
}
check "CFLAGS, CPPFLAGS and LDFLAGS of the environment are in each command" environment
command_line() { logging CFLAGS=-O0 ${MAKE:-make} -s -C "$source" B=out-environment CFLAGS=-O1 all && all_have -O1 && ! grep -e -O0 "$folder/commands"; }
check "CFLAGS of the command line win" command_line
warned() { # as a new version of a compiler would
    echo '#warning "of a new compiler"' >"$folder/warning.h"
    CPPFLAGS="-include $folder/warning.h" ${MAKE:-make} -s -C "$source" B=out-environment all shared cli 2>&1 | tee "$folder/warnings" &&
        grep -q 'warning: .*of a new compiler' "$folder/warnings" && [ -x "$source/out-environment/redlock" ]
}
rm -rf "$source/out-environment"
check "a warning does not stop the build" warned
library_only() {
    ${MAKE:-make} -s -C "$source" B=out-lib CFLAGS=-O0 install-lib DESTDIR="$folder/lib-root" PREFIX=/usr LIBDIR=/usr/lib/here && [ ! -e "$source/out-lib/redlock" ] || return 1
    for file in redlock.h redlock.hpp redlock_config.h redlock_limits.h redlock_private.h resp.h url.h; do echo include/redlock/$file; done >"$folder/expected"
    for file in cmake/redlock/redlockConfig.cmake cmake/redlock/redlockConfigVersion.cmake libredlock.a libredlock.so \
        "$soname" "libredlock.so.$version" pkgconfig/redlock.pc; do echo lib/here/$file; done >>"$folder/expected"
    echo share/doc/redlock/LICENSE >>"$folder/expected"
    (cd "$folder/lib-root/usr" && find . ! -type d | sed 's|^\./||' | LC_ALL=C sort) >"$folder/got"
    LC_ALL=C sort "$folder/expected" | diff - "$folder/got"
}
check "make install-lib: the library and its packages only" library_only
check "the Makefile of the release installs" ${MAKE:-make} -s -C "$source" B=out CFLAGS=-O0 install PREFIX="$folder/prefix"
public_only() { ! nm -D --defined-only "$folder/prefix/lib/libredlock.so" | awk '{ print $3 }' | grep -v '^redlock_\|^resp_'; }
check "the shared library exports redlock_ and resp_ only" public_only
check "the shared library has the soname" has_soname "$folder/prefix/lib/libredlock.so"
readable() { # what root installs whose files are private
    (umask 077 && ${MAKE:-make} -s -C "$source" B=out-private CFLAGS=-O0 install PREFIX="$folder/private") &&
        ! find "$folder/private" ! -type l ! -perm -o+r | grep .
}
check "all users can read what is installed with a umask of 077" readable
flags_build() { # LIBRARY_PATH FLAG ... - with these flags of pkg-config
    path=$1
    shift
    [ $# -gt 2 ] && gcc "$folder/app.c" "$@" -o "$folder/app" && LD_LIBRARY_PATH=$path "$folder/app"
}
package() {
    # shellcheck disable=SC2046 # a list of flags
    flags_build "$2" $(PKG_CONFIG_PATH=$1 pkg-config --cflags --libs redlock) && needs_soname "$folder/app"
}
licence() { cmp "$source/LICENSE" "$1/share/doc/redlock/LICENSE"; }
check "the licence is installed" licence "$folder/prefix"
moved() { # the folders of an install, at another place
    cp -RP "$folder/prefix" "$folder/moved" && flags=$(PKG_CONFIG_PATH=$folder/moved/lib/pkgconfig pkg-config --define-prefix --cflags --libs redlock) &&
        ! echo "$flags" | grep "$folder/prefix" && flags_build "$folder/moved/lib" $flags && needs_soname "$folder/app"
}
check "pkg-config --define-prefix finds a library that was moved" moved
check "pkg-config finds the library; the program is linked with the shared one" package "$folder/prefix/lib/pkgconfig" "$folder/prefix/lib"
archive() {
    gcc "$folder/app.c" -I"$folder/prefix/include/redlock" "$folder/prefix/lib/libredlock.a" -pthread -o "$folder/app" && "$folder/app"
}
check "a program linked with the static library" archive
refused() { # COMPILER FLAG ... - by one #error, and no other
    ! "$@" -fsyntax-only "$folder/app.c" 2>"$folder/refused" && cat "$folder/refused" &&
        grep 'error: #error "REDLOCK_NODES_MAX is 7 in the installed library' "$folder/refused" &&
        [ "$(grep -c 'error:' "$folder/refused")" -eq 1 ]
}
headers=$folder/prefix/include/redlock
check "a program with another limit than the installed library is refused" refused gcc -I"$headers" -DREDLOCK_NODES_MAX=16
check "a C++ program with another limit is refused" refused g++ -x c++ -I"$headers" -DREDLOCK_NODES_MAX=16
same_limit() { gcc -Wall -Wextra -Wpedantic -Werror -I"$headers" -DREDLOCK_NODES_MAX=7 -fsyntax-only "$folder/app.c"; }
check "a program that defines the same limit is accepted" same_limit
nine() { # PKG_CONFIG_PATH LIBRARY_PATH
    PKG_CONFIG_PATH=$1 gcc "$folder/nine.c" $(PKG_CONFIG_PATH=$1 pkg-config --cflags --libs redlock) -o "$folder/nine" &&
        LD_LIBRARY_PATH=$2 "$folder/nine"
}
make_nine() { # also: the Makefile builds files again whose limits have changed
    ${MAKE:-make} -s -C "$source" B=out CFLAGS=-O0 LIMITS=-DREDLOCK_NODES_MAX=9 install PREFIX="$folder/nine-prefix" &&
        nine "$folder/nine-prefix/lib/pkgconfig" "$folder/nine-prefix/lib"
}
check "a library with other limits passes them to programs" make_nine
program() { # its version, and that of its man page; no node answers; bash completes its verbs
    "$folder/prefix/bin/redlock" version | grep -qx "redlock $version" &&
        grep -q "\"redlock $version\"" "$folder/prefix/share/man/man1/redlock.1" || return 1
    "$folder/prefix/bin/redlock" status -N 127.0.0.1:1 name
    [ $? -eq 69 ] && PATH=$folder/prefix/bin:$PATH bash -c '. "$1"; COMP_WORDS=(redlock ru) COMP_CWORD=1
        _redlock redlock ru redlock && [ "${COMPREPLY[*]}" = run ]' - "$folder/prefix/share/bash-completion/completions/redlock"
}
check "the program, its man page, its completion" program

# ---- CMake ----

# cmake_with NAME LINE [OPTION ...]
cmake_with() {
    mkdir -p "$folder/$1"
    printf 'cmake_minimum_required(VERSION 3.14)\nproject(app C)\n%s\nadd_executable(app %s)\ntarget_link_libraries(app redlock::redlock)\n' \
        "$2" "$folder/app.c" >"$folder/$1/CMakeLists.txt"
    consumer=$folder/$1
    shift 2
    cmake -S "$consumer" -B "$consumer/out" "$@" && cmake --build "$consumer/out" && "$consumer/out/app"
}
check "CMake: find_package after make install" cmake_with installed "find_package(redlock ${version%.*} REQUIRED)" \
    -DCMAKE_PREFIX_PATH="$folder/prefix"
shared() { needs_soname "$folder/installed/out/app"; }
check "CMake: the program uses the shared library" shared
check "CMake: find_package with BUILD_SHARED_LIBS=OFF" cmake_with static "find_package(redlock $version EXACT REQUIRED)" -DCMAKE_PREFIX_PATH="$folder/prefix" \
    -DBUILD_SHARED_LIBS=OFF
not_shared() { ! readelf -d "$folder/static/out/app" | grep 'libredlock'; }
check "CMake: the program contains the static library" not_shared
refuses() { # VERSION ... - because of the version, not because no package was found
    for other in "$@"; do
        ! cmake_with "refused-$other" "find_package(redlock $other REQUIRED)" -DCMAKE_PREFIX_PATH="$folder/prefix" || return 1
        grep -q 'considered but not accepted' "$folder/log" || return 1
    done
}
check "CMake: find_package refuses another version" refuses "${version%.*}.99" 0.1 1.0
staged() { # the files of another machine under a separate root, with a LIBDIR that is not lib
    ${MAKE:-make} -s -C "$source" B=out CFLAGS=-O0 install DESTDIR="$folder/root" PREFIX=/usr LIBDIR=/usr/lib/some-where &&
        cmake_with staged "find_package(redlock REQUIRED)" -Dredlock_DIR="$folder/root/usr/lib/some-where/cmake/redlock" &&
        PKG_CONFIG_SYSROOT_DIR=$folder/root package "$folder/root/usr/lib/some-where/pkgconfig" "$folder/root/usr/lib/some-where"
}
check "CMake and pkg-config: installed with DESTDIR, used under a sysroot" staged
spaces() { # in DESTDIR, and in all other folders
    ${MAKE:-make} -s -C "$source" B=out CFLAGS=-O0 install DESTDIR="$folder/its root" PREFIX="/its prefix" &&
        cmake_with spaces "find_package(redlock REQUIRED)" -Dredlock_DIR="$folder/its root/its prefix/lib/cmake/redlock" || return 1
    ${MAKE:-make} -s -C "$source" B=out CFLAGS=-O0 install PREFIX="$folder/its prefix" LIBDIR="$folder/its prefix/a lib" || return 1
    eval "gcc '$folder/app.c' $(PKG_CONFIG_PATH="$folder/its prefix/a lib/pkgconfig" pkg-config --cflags --libs redlock) -o '$folder/app'" &&
        LD_LIBRARY_PATH="$folder/its prefix/a lib" "$folder/app" && [ -x "$folder/its prefix/bin/redlock" ]
}
check "CMake and pkg-config: installed in folders with spaces in their names" spaces
check "CMake: add_subdirectory" cmake_with add "add_subdirectory($source redlock)"
check "CMake: FetchContent" cmake_with fetch "include(FetchContent)
FetchContent_Declare(redlock URL file://$build/redlock-$version.tar.gz)
FetchContent_MakeAvailable(redlock)"
cmake_install() {
    cmake -S "$source" -B "$folder/cmake" -DCMAKE_INSTALL_PREFIX="$folder/cmake-prefix" && cmake --build "$folder/cmake" &&
        cmake --install "$folder/cmake"
}
check "CMake: install" cmake_install
check "CMake: the licence is installed" licence "$folder/cmake-prefix"
# shellcheck disable=SC2046 # a list of flags
cmake_package() { flags_build '' $(PKG_CONFIG_PATH=$folder/cmake-prefix/lib/pkgconfig pkg-config "$@" --cflags --libs redlock); }
check "CMake: pkg-config finds the static library" cmake_package
cmake_elsewhere() { # with another prefix than that of the configuration, in which there is a space
    cmake --install "$folder/cmake" --prefix "$folder/cmake other" &&
        eval "flags_build '' $(PKG_CONFIG_PATH="$folder/cmake other/lib/pkgconfig" pkg-config --cflags --libs redlock)" &&
        grep "^prefix=$folder/cmake\\\\ other\$" "$folder/cmake other/lib/pkgconfig/redlock.pc"
}
check "CMake: the same with cmake --install --prefix" cmake_elsewhere
cmake_shared() { # with a folder of its own for libraries
    cmake -S "$source" -B "$folder/cmake-shared" -DCMAKE_INSTALL_PREFIX="$folder/cmake-shared-prefix" -DCMAKE_INSTALL_LIBDIR=lib/here \
        -DBUILD_SHARED_LIBS=ON && cmake --build "$folder/cmake-shared" && cmake --install "$folder/cmake-shared" &&
        package "$folder/cmake-shared-prefix/lib/here/pkgconfig" "$folder/cmake-shared-prefix/lib/here"
}
check "CMake: pkg-config finds the shared library" cmake_shared
subproject() { # installs nothing of ours with a program around it
    cmake --install "$folder/add/out" --prefix "$folder/add-prefix" && ! find "$folder/add-prefix" -name '*redlock*' | grep .
}
check "CMake: a subproject is not installed" subproject
check "CMake: find_package after cmake --install" cmake_with find "find_package(redlock ${version%.*} REQUIRED)" -DCMAKE_PREFIX_PATH="$folder/cmake-prefix"
cmake_nine() {
    cmake -S "$source" -B "$folder/cmake-nine" -DCMAKE_INSTALL_PREFIX="$folder/cmake-nine-prefix" -DCMAKE_C_FLAGS=-DREDLOCK_NODES_MAX=9 &&
        cmake --build "$folder/cmake-nine" && cmake --install "$folder/cmake-nine" &&
        gcc "$folder/nine.c" -I"$folder/cmake-nine-prefix/include/redlock" "$folder/cmake-nine-prefix/lib/libredlock.a" -pthread \
            -o "$folder/nine" && "$folder/nine"
}
check "CMake: a library with other limits passes them to programs" cmake_nine
cmake_release_nine() { # the limit is a flag of the build type, and the compiler is two words, as with ccache
    CC='env gcc' cmake -S "$source" -B "$folder/cmake-nine" -DCMAKE_INSTALL_PREFIX="$folder/cmake-nine-prefix" -DCMAKE_BUILD_TYPE=Release \
        -DCMAKE_C_FLAGS_RELEASE=-DREDLOCK_NODES_MAX=9 && cmake --build "$folder/cmake-nine" && cmake --install "$folder/cmake-nine" &&
        gcc "$folder/nine.c" -I"$folder/cmake-nine-prefix/include/redlock" "$folder/cmake-nine-prefix/lib/libredlock.a" -pthread \
            -o "$folder/nine" && "$folder/nine"
}
rm -rf "$folder/cmake-nine" "$folder/cmake-nine-prefix"
check "CMake: the same with CC='env gcc', and as a flag of the build type" cmake_release_nine
cmake_types_nine() { # one folder for several build types: the limit is a flag of the type that is installed
    cmake -G 'Ninja Multi-Config' -S "$source" -B "$folder/cmake-types" -DCMAKE_INSTALL_PREFIX="$folder/cmake-types-prefix" \
        -DCMAKE_C_FLAGS_RELEASE=-DREDLOCK_NODES_MAX=9 && cmake --build "$folder/cmake-types" --config Release &&
        cmake --install "$folder/cmake-types" --config Release &&
        gcc "$folder/nine.c" -I"$folder/cmake-types-prefix/include/redlock" "$folder/cmake-types-prefix/lib/libredlock.a" -pthread \
            -o "$folder/nine" && "$folder/nine"
}
check "CMake: the same with a generator for several build types" cmake_types_nine
cmake_target_nine() { # the limit is the target's
    mkdir "$folder/target-nine"
    printf 'cmake_minimum_required(VERSION 3.14)\nproject(app C)\nadd_subdirectory(%s redlock)\n%s\nadd_executable(app %s)\n%s\n' "$source" \
        'target_compile_definitions(redlock PUBLIC REDLOCK_NODES_MAX=9)' "$folder/nine.c" 'target_link_libraries(app redlock::redlock)' \
        >"$folder/target-nine/CMakeLists.txt"
    cmake -S "$folder/target-nine" -B "$folder/target-nine/out" -DREDLOCK_INSTALL=ON -DCMAKE_INSTALL_PREFIX="$folder/target-nine-prefix" &&
        cmake --build "$folder/target-nine/out" && "$folder/target-nine/out/app" && cmake --install "$folder/target-nine/out" &&
        gcc "$folder/nine.c" -I"$folder/target-nine-prefix/include/redlock" "$folder/target-nine-prefix/lib/libredlock.a" -pthread \
            -o "$folder/nine" && "$folder/nine"
}
check "CMake: limits as a property of the target, in the same build and installed" cmake_target_nine
parent() { # options and definitions of a program around it
    cmake_with parent "set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_UNITY_BUILD ON)
add_compile_definitions(\"TITLE=a program\" \"QUOTED=\\\"a b\\\"\" \"TWICE(x)=2*(x)\" \$<\$<CONFIG:Debug>:IS_DEBUG> REDLOCK_NODES_MAX=9)
add_compile_options(-Wall \"-DWORDS=a b\" -DREDLOCK_KEY_MAX=80)
add_subdirectory($source redlock)" "$@" -DREDLOCK_INSTALL=ON -DCMAKE_INSTALL_PREFIX="$folder/parent-prefix" && cmake --install "$folder/parent/out" &&
        grep 'define REDLOCK_NODES_MAX 9' "$folder/parent-prefix/include/redlock/redlock_limits.h" &&
        grep 'define REDLOCK_KEY_MAX 80' "$folder/parent-prefix/include/redlock/redlock_limits.h"
    installed=$?
    rm -rf "$folder/parent" "$folder/parent-prefix"
    return $installed
}
check "CMake: in a program with hidden symbols, unity builds and definitions" parent
check "CMake: the same, as a shared library" parent -DBUILD_SHARED_LIBS=ON
sysroot() { # a cross compiler that finds the headers of libc only in the folder that CMake tells it
    printf '#!/bin/sh\nexec gcc --sysroot=/nonexistent "$@"\n' >"$folder/cross-gcc" && chmod +x "$folder/cross-gcc" &&
        cmake -S "$source" -B "$folder/sysroot" -DCMAKE_C_COMPILER="$folder/cross-gcc" -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSROOT=/ \
            -DCMAKE_INSTALL_PREFIX="$folder/sysroot-prefix" && cmake --build "$folder/sysroot" && cmake --install "$folder/sysroot"
}
check "CMake: install with a cross compiler and CMAKE_SYSROOT" sysroot
cross() {
    cmake -S "$source" -B "$folder/shared" -DBUILD_SHARED_LIBS=ON && cmake --build "$folder/shared" &&
        has_soname "$folder/shared/libredlock.so"
}
check "CMake: a shared library with the soname" cross

# ---- Meson ----

mkdir -p "$folder/meson/subprojects"
cp -R "$source" "$folder/meson/subprojects/redlock"
cp "$folder/app.c" "$folder/meson"
cat >"$folder/meson/meson.build" <<'END'
project('app', 'c')
executable('app', 'app.c', dependencies: dependency('redlock', fallback: ['redlock', 'redlock_dep']))
END
meson_build() {
    rm -rf "$folder/meson/out"
    meson setup "$folder/meson/out" "$folder/meson" --wrap-mode=nodownload "$@" && meson compile -C "$folder/meson/out" &&
        "$folder/meson/out/app"
}
check "Meson: a subproject" meson_build
meson_waits() { # a program must not read a header while it is written
    ninja -C "$folder/meson/out" -t query app.p/app.c.o | grep '|| subprojects/redlock/redlock\.h'
}
check "Meson: its program waits for our headers" meson_waits
check "Meson: a subproject in a unity build" meson_build --unity=on
meson_install() {
    meson setup "$folder/meson-own" "$source" --prefix="$folder/meson-prefix" --libdir=lib && meson install -C "$folder/meson-own"
}
check "Meson: install" meson_install
check "Meson: the soname" has_soname "$folder/meson-prefix/lib/libredlock.so"
check "Meson: pkg-config finds the library" package "$folder/meson-prefix/lib/pkgconfig" "$folder/meson-prefix/lib"
check "Meson: the licence is installed" licence "$folder/meson-prefix"
check "Meson: CMake finds the library through pkg-config" env PKG_CONFIG_PATH="$folder/meson-prefix/lib/pkgconfig" sh -c '
    printf "%s\n" "cmake_minimum_required(VERSION 3.14)" "project(app C)" "find_package(PkgConfig REQUIRED)" \
        "pkg_check_modules(redlock REQUIRED IMPORTED_TARGET redlock)" "add_executable(app $1)" "target_link_libraries(app PkgConfig::redlock)" \
        >"$2/CMakeLists.txt" && cmake -S "$2" -B "$2/out" && cmake --build "$2/out" && "$2/out/app"' - "$folder/app.c" "$(mkdir -p "$folder/through" && echo "$folder/through")"
meson_nine() {
    meson setup "$folder/meson-nine" "$source" --prefix="$folder/meson-nine-prefix" --libdir=lib -Dc_args=-DREDLOCK_NODES_MAX=9 &&
        meson install -C "$folder/meson-nine" && nine "$folder/meson-nine-prefix/lib/pkgconfig" "$folder/meson-nine-prefix/lib"
}
check "Meson: a library with other limits passes them to programs" meson_nine
meson_again() { # a new version of a header comes into a folder that has been built
    cp -R "$source" "$folder/again" && meson setup "$folder/again/out" "$folder/again" && meson compile -C "$folder/again/out" &&
        echo '/* new */' >>"$folder/again/extra/redlock.hpp" && meson compile -C "$folder/again/out" &&
        cmp "$folder/again/extra/redlock.hpp" "$folder/again/out/redlock.hpp"
}
check "Meson: the headers to install are made again when one has changed" meson_again
done_testing
