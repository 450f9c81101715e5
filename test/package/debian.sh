#!/bin/sh
# debian.sh BUILD_DIR VERSION - the Debian packages of packaging/debian, built from the release in a folder of their own: lintian
# has no error, and a program uses the packages, unpacked into another folder. As TAP.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
set -u
build=$(cd "$1" && pwd)
folder=$build/debian
version=$2
. test/lib/tap.sh
rm -rf "$folder"
mkdir -p "$folder/root"
library=libredlock${version%.*}
unset MAKEFLAGS MFLAGS MAKELEVEL # of the make around this

packages() {
    cp "$build/redlock-$version.tar.gz" "$folder/redlock_$version.orig.tar.gz" && cd "$folder" && tar -xzf "redlock_$version.orig.tar.gz" &&
        cd "redlock-$version" && cp -R packaging/debian debian && dpkg-buildpackage -us -uc 2>&1 &&
        ls ../*.deb
}
check 'dpkg-buildpackage' packages
[ $failed = 0 ] || done_testing # all else is about the result
tests() { grep '^All tests successful' "$folder/log.packages"; }
cp "$folder/log" "$folder/log.packages"
check 'it has run tests' tests
warnings() { # the first upload of a package closes the bug that asks for it: there is none
    lintian --fail-on error,warning --suppress-tags initial-upload-closes-no-bugs --allow-root "$folder/redlock_$version-1_$(dpkg --print-architecture).changes"
}
check 'lintian has no error and no warning' warnings
unpacked() {
    for package in "$library" libredlock-dev redlock; do
        dpkg-deb -x "$folder/${package}_$version-1_$(dpkg --print-architecture).deb" "$folder/root" || return 1
    done
}
check 'the packages are unpacked' unpacked
lib=$folder/root/usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)
hardened() { # the flags of dpkg-buildflags have arrived
    for file in "$lib/libredlock.so.$version" "$folder/root/usr/bin/redlock"; do
        readelf -d "$file" | grep -q BIND_NOW || { echo "$file"; return 1; }
    done
}
check 'the library and the program are hardened' hardened
uses() {
    printf '#include <redlock.h>\nint main(void) { return redlock_version() != REDLOCK_VERSION_NUMBER; }\n' >"$folder/app.c"
    # shellcheck disable=SC2046 # a list of flags
    gcc "$folder/app.c" -o "$folder/app" $(PKG_CONFIG_SYSROOT_DIR=$folder/root PKG_CONFIG_PATH=$lib/pkgconfig pkg-config --cflags --libs redlock) &&
        LD_LIBRARY_PATH=$lib "$folder/app" && readelf -d "$folder/app" | grep -q "NEEDED.*\[libredlock.so.${version%.*}\]"
}
check 'a program is built with libredlock-dev, and runs with the library' uses
runs() { "$folder/root/usr/bin/redlock" version | grep -x "redlock $version" && zgrep -q 'redlock' "$folder/root/usr/share/man/man1/redlock.1.gz"; }
check 'the program runs, and has its man page' runs
pages() { [ -s "$folder/root/usr/share/man/man3/redlock_acquire.3.gz" ]; }
check 'libredlock-dev has the man pages of the functions' pages
one_licence() { ! find "$folder/root" -name LICENSE | grep . && [ -s "$folder/root/usr/share/doc/$library/copyright" ]; }
check 'the licence is in the file copyright' one_licence
done_testing
