#!/bin/sh
# macos.sh BUILD_DIR VERSION - make with the tools of macOS, from the release: imitations that refuse what those tools refuse, BWK's
# awk, and no other tool in PATH. The libraries are those of this machine all the same; `make cross` links real ones. As TAP.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
set -u
build=$(cd "$1" && pwd)
folder=$build/macos
version=$2
. test/lib/tap.sh
rm -rf "$folder"
mkdir -p "$folder/bin"
tar -C "$folder" -xzf "$build/redlock-$version.tar.gz"
source=$folder/redlock-$version
name=libredlock.${version%.*}.dylib

for tool in sh make gcc as ld sed cat cmp mkdir dirname rm mv ln find grep sort xargs head tr gzip shasum perl true; do
    ln -s "$(command -v $tool)" "$folder/bin"
done
ln -s "$(command -v original-awk)" "$folder/bin/awk"
ln -s "$(command -v tar)" "$folder/bin/gtar" # of a package manager
tool() { # NAME - the tool's text is on standard input
    { echo '#!/bin/sh' && cat; } >"$folder/bin/$1" && chmod +x "$folder/bin/$1"
}
refusing() { # NAME PATTERN - the tool without these options; $option is the one that is looked at
    tool "$1" <<END
for option in "\$@"; do
    case \$option in $2) echo "$1: illegal option -- \$option" >&2; exit 1 ;; esac
done
exec $(command -v "$1") "\$@"
END
}
refusing ar '[rcsdtpx]*D*'
refusing install '--* | -D | -t | -T'
refusing cp '--* | -[rRPpfi]*[adlsu]*'
echo 'echo Darwin' | tool uname
echo 'echo "bsdtar 3.5.3 - libarchive 3.5.3"' | tool tar
# Apple's linker has -install_name in place of -soname; it is kept in the place of the soname, where readelf finds it.
tool cc <<'END'
for option in "$@"; do
    shift
    case $option in
    *-soname*) echo 'ld: unknown option: -soname' >&2; exit 1 ;;
    -Wl,-install_name,*) option=-Wl,-soname,${option#-Wl,-install_name,} ;;
    esac
    set -- "$@" "$option"
done
exec gcc "$@"
END
on_macos() { env -i PATH="$folder/bin" make -s -C "$source" CFLAGS=-O0 "$@"; }

archive() { on_macos && [ "$(ar t "$source/build/libredlock.a" | grep -c '\.o$')" -ge 9 ]; }
check 'make' archive
no_archive() { ! on_macos B=failed AR='ar -x'; }
check 'make, and ar fails: make does, too' no_archive
has_name() { # FILE NAME
    readelf -d "$1" >"$folder/dynamic" && grep SONAME "$folder/dynamic" && grep -qF "[$2]" "$folder/dynamic"
}
shared() { on_macos shared && has_name "$source/build/libredlock.$version.dylib" "/usr/local/lib/$name"; }
check 'make shared: a .dylib whose name is where it is to be installed' shared
installed() {
    prefix="$folder/its prefix"
    on_macos install PREFIX="$prefix" && has_name "$prefix/lib/$name" "$prefix/lib/$name" && cmp "$prefix/lib/$name" "$prefix/lib/libredlock.dylib" &&
        [ -z "$(find "$prefix" -name '*.so*')" ] && [ -s "$prefix/share/man/man3/redlock_acquire.3" ] && "$prefix/bin/redlock" version | grep "$version"
}
check 'make install, in a folder with a space' installed
own_tls() { # Homebrew's; apt-get is not asked
    on_macos -n cli TLS=1 MBEDTLS_PREFIX=/opt/mbedtls >"$folder/said" && grep -q -e '-isystem /opt/mbedtls/include -L/opt/mbedtls/lib' "$folder/said" &&
        ! grep deps.sh "$folder/said"
}
check 'make cli TLS=1 with an mbedTLS in another folder' own_tls
cat >"$folder/app.c" <<'END'
#include <redlock.h>
int main(void)
{
    return redlock_version() != REDLOCK_VERSION_NUMBER;
}
END
finds() {
    printf 'cmake_minimum_required(VERSION 3.14)\nproject(app C)\nfind_package(redlock REQUIRED)\nadd_executable(app app.c)
target_link_libraries(app redlock::redlock)\n' >"$folder/CMakeLists.txt"
    cmake -S "$folder" -B "$folder/app" -DCMAKE_PREFIX_PATH="$folder/its prefix" && cmake --build "$folder/app" && "$folder/app/app" &&
        readelf -d "$folder/app/app" | grep "NEEDED.*$name"
}
check 'CMake finds that library' finds
refused() { # the reason comes before anything is written
    ! on_macos release 2>"$folder/said" && cat "$folder/said" && grep -q 'release: .*TAR=' "$folder/said" && [ ! -e "$source/build/redlock-$version" ]
}
check 'make release: without GNU tar it says so' refused
release() { on_macos release TAR=gtar && cmp "$source/build/redlock-$version.tar.gz" "$build/redlock-$version.tar.gz"; }
check 'make release TAR=gtar: the same bytes, also without sha256sum' release
done_testing
