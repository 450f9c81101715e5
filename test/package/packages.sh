#!/bin/sh
# packages.sh BUILD_DIR VERSION SOURCE ... - the manifests for other package managers and build systems: each is of this version
# and builds exactly the library's sources, SOURCE (on firmware without net.c; on others with url.c). None of those tools is
# needed. CMake, Python or Kconfig evaluates their files, with mocks for the few functions that the tool would provide. As TAP.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
set -u
folder=$1/packages
version=$2
shift 2
top=$(pwd)
python=/usr/bin/python3 # Debian's, which finds the modules of Debian's packages
[ -x $python ] || python=python3
. test/lib/tap.sh
rm -rf "$folder"
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
core=$(printf '%s\n' "$@" | grep -vx net.c | sort | xargs)
all=$(printf '%s\n' "$@" url.c | sort | xargs)

# same WHAT EXPECTED GOT
same() {
    [ "$2" = "$3" ] && return
    echo "$1: \"$3\", not \"$2\""
    return 1
}
# Sorts words, from one line or several, into one line.
words() {
    tr ' ;' '\n\n' | sed '/^$/d' | sort | xargs
}
# complete SOURCE ... - these files make a library that needs nothing but libc, without a warning.
complete() {
    rm -rf "$folder/alone"
    mkdir "$folder/alone"
    cp "$@" "$top"/*.h "$folder/alone"
    (cd "$folder/alone" && gcc -std=c99 -Wall -Wextra -Wpedantic -Werror $definitions -fPIC -shared -Wl,--no-undefined ./*.c -o all.so)
}
definitions=
objects() { # ARCHIVE - the sources that it was made of
    ar t "$1" | sed 's/\(\.c\)*\.o$/.c/' | words
}

# Those of PlatformIO, ESP-IDF and Zephyr stand in the top folder, because these tools take a repository as it is.
registered='redlock, MIT, the redlock authors'

# ---- PlatformIO ----

"$python" - >"$folder/library" <<'END'
import json
manifest = json.load(open("library.json"))
print(manifest["version"])
print(*[filter[2:-1] for filter in manifest["build"]["srcFilter"] if filter[:2] == "+<"])
print(manifest["build"]["srcDir"], manifest["build"]["includeDir"], len(manifest["description"]) <= 255)
print(manifest["name"], manifest["license"], *[author["name"] for author in manifest["authors"]], sep=", ")
END
platformio() {
    same version "$version" "$(sed -n 1p "$folder/library")" && same sources "$core" "$(sed -n 2p "$folder/library" | words)" &&
        same folders '. . True' "$(sed -n 3p "$folder/library")" && same 'fields of the registry' "$registered" "$(sed -n 4p "$folder/library")"
}
check "PlatformIO: library.json" platformio
# shellcheck disable=SC2046 # a list of words
check "PlatformIO: its sources make a complete library" complete $(sed -n 2p "$folder/library")

# ---- ESP-IDF ----

esp_idf() {
    same fields "$version $registered" "$("$python" -c 'import yaml; it = yaml.safe_load(open("idf_component.yml"))
print(it["version"], ", ".join([it["tags"][1], it["license"], *it["maintainers"]]))')" || return 1
    cat >"$folder/esp.cmake" <<END
function(idf_component_register)
    cmake_parse_arguments(it "" "" "SRCS;INCLUDE_DIRS;REQUIRES" \${ARGV})
    file(WRITE $folder/esp "\${it_SRCS}\n\${it_INCLUDE_DIRS}\n\${it_UNPARSED_ARGUMENTS}\n")
endfunction()
set(ESP_PLATFORM 1)
include($top/CMakeLists.txt)
END
    cmake -P "$folder/esp.cmake" && same sources "$core" "$(sed -n 1p "$folder/esp" | words)" &&
        same 'include folder' . "$(sed -n 2p "$folder/esp")" && same 'other arguments' '' "$(sed -n 3p "$folder/esp")"
}
check "ESP-IDF: idf_component.yml, and the guard in CMakeLists.txt" esp_idf

# ---- Zephyr ----

module() {
    same module 'redlock zephyr zephyr/Kconfig' "$("$python" - <<'END'
import yaml
module = yaml.safe_load(open("zephyr/module.yml"))
print(module["name"], module["build"]["cmake"], module["build"]["kconfig"])
END
)"
}
check "Zephyr: module.yml" module
# zephyr CONFIG=VALUE ... - passes the result of Kconfig to CMakeLists.txt, whose result is in zephyr.sources, .folders,
# .definitions.
zephyr() {
    rm -f "$folder"/zephyr.*
    "$python" - "$@" >"$folder/zephyr.cmake" <<'END' || return 1
import sys, kconfiglib
kconfig = kconfiglib.Kconfig("zephyr/Kconfig", warn_to_stderr=False)
for setting in sys.argv[1:]:
    name, value = setting.split("=")
    if not kconfig.syms[name].set_value(value):
        sys.exit(setting + " is refused")
for name, symbol in kconfig.syms.items():
    if name.startswith("REDLOCK") and symbol.str_value not in ("", "n"):
        print('set(CONFIG_%s "%s")' % (name, symbol.str_value))
if kconfig.warnings:
    sys.exit("\n".join(kconfig.warnings))
END
    cat >>"$folder/zephyr.cmake" <<END
set(ZEPHYR_CURRENT_MODULE_DIR "$top")
function(zephyr_library_named name)
endfunction()
function(zephyr_library_sources)
    file(APPEND $folder/zephyr.sources "\${ARGV}\n")
endfunction()
function(zephyr_include_directories)
    file(APPEND $folder/zephyr.folders "\${ARGV}\n")
endfunction()
function(zephyr_compile_definitions)
    file(APPEND $folder/zephyr.definitions "\${ARGV}\n")
endfunction()
include($top/zephyr/CMakeLists.txt)
END
    cmake -P "$folder/zephyr.cmake"
}
nothing() { zephyr && [ ! -e "$folder/zephyr.sources" ] && [ ! -e "$folder/zephyr.definitions" ]; }
check "Zephyr: builds nothing without CONFIG_REDLOCK" nothing
sources() {
    zephyr REDLOCK=y && same sources "$core" "$(sed "s|$top/||g" "$folder/zephyr.sources" | words)" &&
        same folders "$top" "$(cat "$folder/zephyr.folders")"
}
check "Zephyr: the sources" sources
sockets() {
    zephyr REDLOCK=y REDLOCK_SOCKETS=y && grep -qx "$top/examples/zephyr/redlock_zephyr.c" "$folder/zephyr.sources" &&
        grep -qx "$top/examples/zephyr" "$folder/zephyr.folders" && [ -s examples/zephyr/redlock_zephyr.c ]
}
check "Zephyr: with the I/O table" sockets
# All limits and switches of the headers, as "NAME=VALUE", with the values that they have on firmware.
in_headers() { # [FLAG]
    for name in $(sed -n 's/^#ifndef \(RE[A-Z]*_[A-Z_0-9]*\)$/\1/p' redlock_config.h redlock.h resp.h | grep -v -e '_H$' -e '_API$' -e '_HOSTED$' | sort -u); do
        printf '#include "redlock.h"\nchar value[1 + (%s)];\n' "$name" >"$folder/value.c"
        # shellcheck disable=SC2086 # no flag, or one
        gcc -DREDLOCK_HOSTED=0 ${1-} -I. -c "$folder/value.c" -o "$folder/value.o" &&
            printf '%s=%d\n' "$name" $((0x$(nm -S "$folder/value.o" | awk '$4 == "value" { print $2 }') - 1))
    done
}
defaults() {
    zephyr REDLOCK=y && same switches "$(in_headers | words)" "$(words <"$folder/zephyr.definitions")" &&
        zephyr REDLOCK=y REDLOCK_MINIMAL=y &&
        same 'switches of the minimum' "$(in_headers -DREDLOCK_MINIMAL=1 | words)" "$(words <"$folder/zephyr.definitions")"
}
check "Zephyr: Kconfig has each limit and switch of the headers, with its default" defaults
ranges() { # from the library's #errors; the first range of a limit is that of the most builds
    limits=$(awk '/^config .*_MAX$/ { name = $2; sub(/REDLOCK_RESP_/, "RESP_", name) } name && /^\trange/ { print name, $2, $3; name = "" }' zephyr/Kconfig)
    [ "$(echo "$limits" | wc -l)" -ge 11 ] || return 1
    echo "$limits" | while read -r name least most; do
        grep -F "\"$name must be $least..$most" redlock_config.h resp.c || { echo "$name: not $least to $most"; return 1; }
    done
}
check "Zephyr: Kconfig has the range of each limit" ranges
all_features() { # 0|1 - all features off, or all but MINIMAL on; then the library compiles, and the other defaults are those of the headers
    features=$(sed -n 's/^config \(REDLOCK_[A-Z_0-9]*\)$/\1/p; /^	bool/s/.*/bool/p' zephyr/Kconfig | sed '/^REDLOCK_SOCKETS$/,/bool/d' | awk '/bool/ && last { print last } { last = $0 }')
    [ -n "$features" ] || return 1
    [ "$1" = 0 ] || features=$(echo "$features" | grep -vx REDLOCK_MINIMAL)
    # shellcheck disable=SC2046 # a list of words
    zephyr REDLOCK=y $(echo "$features" | sed "s/\$/=$(echo "$1" | tr 01 ny)/") || return 1
    same features "$(echo "$features" | sed "s/\$/=$1/" | words)" "$(grep -Fx "$(echo "$features" | sed "s/\$/=$1/")" "$folder/zephyr.definitions" | words)" || return 1
    definitions=$(sed 's/^/-D/' "$folder/zephyr.definitions" | xargs)
    same switches "$(in_headers "$(echo "$definitions" | tr ' ' '\n' | grep -e '=[01]$' -e SEND_MAX | grep -v -e OWED -e LABEL | xargs)" | words)" "$(words <"$folder/zephyr.definitions")" || return 1
    # shellcheck disable=SC2046 # a list of words
    complete $(cat "$folder/zephyr.sources" | tr ';' ' ')
}
check "Zephyr: compiles with all features off" all_features 0
check "Zephyr: compiles with all features on" all_features 1
definitions=

# ---- CMake and Meson ----

cmake_sources() {
    cmake -S . -B "$folder/cmake" && cmake --build "$folder/cmake" && same sources "$all" "$(objects "$folder/cmake/libredlock.a")"
}
check "CMake: the sources" cmake_sources
meson_sources() {
    meson setup "$folder/meson" . && meson introspect --targets --projectinfo "$folder/meson" >"$folder/meson.json" &&
        "$python" - "$folder/meson.json" >"$folder/meson.got" <<'END'
import json, os, sys
introspected = json.load(open(sys.argv[1]))
print(introspected["projectinfo"]["version"])
print(*[os.path.basename(file) for target in introspected["targets"] for sources in target["target_sources"] for file in sources.get("sources", [])])
END
    same version "$version" "$(sed -n 1p "$folder/meson.got")" && same sources "$all" "$(sed -n 2p "$folder/meson.got" | words)"
}
check "Meson: the version and the sources" meson_sources

# A program that finds a package with CMake, in this folder.
consumes() {
    mkdir "$1/app"
    printf '#include <redlock.h>\n#include <url.h>\nint main(void) { return redlock_version() != REDLOCK_VERSION_NUMBER; }\n' >"$1/app/app.c"
    printf 'cmake_minimum_required(VERSION 3.10)\nproject(app C)\nfind_package(redlock %s EXACT REQUIRED)\nadd_executable(app app.c)
target_link_libraries(app redlock::redlock)\n' "$version" >"$1/app/CMakeLists.txt"
    cmake -S "$1/app" -B "$1/app/out" -DCMAKE_PREFIX_PATH="$2" && cmake --build "$1/app/out" && "$1/app/out/app"
}

# ---- Conan ----

conan() {
    mkdir -p "$folder/conan/conan/tools"
    cat >"$folder/conan/conan/__init__.py" <<'END'
class ConanFile:
    pass
END
    : >"$folder/conan/conan/tools/__init__.py"
    cat >"$folder/conan/conan/tools/files.py" <<'END'
import fnmatch, os, shutil
def copy(recipe, pattern, src, dst, excludes=None):
    for where, _, files in os.walk(src):
        for file in files:
            name = os.path.relpath(os.path.join(where, file), src)
            if fnmatch.fnmatch(name, pattern) and not (excludes and fnmatch.fnmatch(name, excludes)):
                os.makedirs(os.path.dirname(os.path.join(dst, name)), exist_ok=True)
                shutil.copy(os.path.join(src, name), os.path.join(dst, name))
END
    cat >"$folder/conan/conan/tools/cmake.py" <<'END'
import subprocess
def cmake_layout(recipe):
    pass
class CMake:
    def __init__(self, recipe):
        self.recipe = recipe
    def configure(self):
        subprocess.check_call(["cmake", "-S", self.recipe.source_folder, "-B", self.recipe.build_folder,
                               "-DCMAKE_INSTALL_PREFIX=" + self.recipe.package_folder])
    def build(self):
        subprocess.check_call(["cmake", "--build", self.recipe.build_folder])
    def install(self):
        subprocess.check_call(["cmake", "--install", self.recipe.build_folder])
END
    PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$folder/conan:packaging/conan "$python" - "$folder/conan" "$version" <<'END' || return 1
import os, sys, types
import conanfile
folder, version = sys.argv[1:]
recipe = conanfile.Redlock()
assert recipe.version == version, recipe.version
recipe.recipe_folder = os.path.abspath("packaging/conan")
recipe.export_sources_folder = recipe.source_folder = folder + "/source"
recipe.build_folder, recipe.package_folder = folder + "/build", folder + "/package"
recipe.cpp_info = types.SimpleNamespace()
for step in "layout", "export_sources", "build", "package", "package_info":
    getattr(recipe, step)()
assert os.path.exists(recipe.package_folder + "/licenses/LICENSE")
for include in recipe.cpp_info.includedirs:
    assert os.path.exists(os.path.join(recipe.package_folder, include, "redlock.h"))
assert os.path.exists(recipe.package_folder + "/lib/lib%s.a" % recipe.cpp_info.libs[0])
END
    same sources "$all" "$(objects "$folder/conan/package/lib/libredlock.a")" && consumes "$folder/conan" "$folder/conan/package"
}
check "Conan: the version, the sources, and a program that uses the package" conan

# ---- vcpkg ----

vcpkg() {
    mkdir -p "$folder/vcpkg"
    cat >"$folder/vcpkg.cmake" <<END
set(CURRENT_PORT_DIR $top/packaging/vcpkg)
set(CURRENT_PACKAGES_DIR $folder/vcpkg/package)
function(run)
    execute_process(COMMAND \${ARGV} RESULT_VARIABLE failed)
    if(failed)
        message(FATAL_ERROR "\${ARGV}")
    endif()
endfunction()
function(vcpkg_cmake_configure)
    cmake_parse_arguments(it "" SOURCE_PATH "" \${ARGV})
    run(\${CMAKE_COMMAND} -S \${it_SOURCE_PATH} -B $folder/vcpkg/build -DCMAKE_INSTALL_PREFIX=\${CURRENT_PACKAGES_DIR})
endfunction()
function(vcpkg_cmake_install)
    run(\${CMAKE_COMMAND} --build $folder/vcpkg/build --target install)
endfunction()
function(vcpkg_cmake_config_fixup)
    cmake_parse_arguments(it "" CONFIG_PATH "" \${ARGV})
    file(MAKE_DIRECTORY \${CURRENT_PACKAGES_DIR}/share)
    file(RENAME \${CURRENT_PACKAGES_DIR}/\${it_CONFIG_PATH} \${CURRENT_PACKAGES_DIR}/share/redlock)
endfunction()
function(vcpkg_fixup_pkgconfig)
    file(STRINGS \${CURRENT_PACKAGES_DIR}/lib/pkgconfig/redlock.pc found REGEX "^Libs:")
    if(NOT found)
        message(FATAL_ERROR "no file for pkg-config")
    endif()
endfunction()
function(vcpkg_install_copyright)
    cmake_parse_arguments(it "" "" FILE_LIST \${ARGV})
    file(INSTALL \${it_FILE_LIST} DESTINATION \${CURRENT_PACKAGES_DIR}/share/redlock RENAME copyright)
endfunction()
include(\${CURRENT_PORT_DIR}/portfile.cmake)
END
    same manifest "redlock $version" "$("$python" -c 'import json; it = json.load(open("packaging/vcpkg/vcpkg.json")); print(it["name"], it["version"])')" &&
        cmake -P "$folder/vcpkg.cmake" && [ -s "$folder/vcpkg/package/share/redlock/copyright" ] &&
        [ -e "$folder/vcpkg/package/share/redlock/redlockConfig.cmake" ] &&
        same sources "$all" "$(objects "$folder/vcpkg/package/lib/libredlock.a")"
}
check "vcpkg: the version, the sources, and the place of the installed files" vcpkg

# ---- Debian ----

debian() {
    same version "redlock ($version-1) unstable; urgency=medium" "$(head -n 1 packaging/debian/changelog)" &&
        same packages "libredlock${version%.*} libredlock-dev redlock" "$(sed -n 's/^Package: //p' packaging/debian/control | xargs)" &&
        same dependency "Depends: libredlock${version%.*} (= \${binary:Version}), \${misc:Depends}" "$(grep '^Depends: libredlock' packaging/debian/control)" &&
        [ -s "packaging/debian/libredlock${version%.*}.install" ] && grep -q "redlock_$version.orig.tar.gz && cd redlock-$version\$" docs/packages.md
}
check "Debian: the version, and the soname in the names" debian

# ---- The recipes of docs/packages.md ----

recipes=$folder/recipes
mkdir -p "$recipes/include"
make_alone() { env -u MAKEFLAGS -u MAKELEVEL "${MAKE:-make}" "$@"; }
block() { # PATTERN - the block of the page that has this line
    awk -v pattern="$1" '/^```/ { if (found) exit; text = ""; next } { text = text $0 "\n" } $0 ~ pattern { found = 1 } END { printf "%s", text }' docs/packages.md
}
sources_in() { # FOLDER - those of a release
    mkdir -p "$1" && tools/files.sh >"$recipes/files" && tar -c -T "$recipes/files" | tar -x -C "$1"
}
has_flags() { # ROOT - -Wl,-z,now and -g have arrived in the shared library and the program
    for file in "$1/usr/lib/libredlock.so.$version" "$1/usr/bin/redlock"; do
        readelf -d "$file" | grep -q BIND_NOW && readelf -S "$file" | grep -q debug_info || { echo "$file"; return 1; }
    done
}
yocto() { # BitBake replaces its variables, exports the flags, and runs the functions with sh
    grep -q "redlock_$version.bb" docs/packages.md && sources_in "$recipes/yocto" && block '^LIC_FILES_CHKSUM' >"$recipes/yocto.bb" &&
        same licence "$(md5sum <LICENSE | cut -c 1-32)" "$(sed -n 's/^LIC_FILES.*md5=\(.*\)"$/\1/p' "$recipes/yocto.bb")" || return 1
    {
        # shellcheck disable=SC2016 # the variable is the recipe's
        echo 'set -eu; oe_runmake() { make $EXTRA_OEMAKE "$@"; }'
        sed -e '/^FILES/d' -e 's/^\([A-Z_]*\) = /\1=/' "$recipes/yocto.bb"
        echo 'do_compile; do_install'
    } >"$recipes/yocto.sh"
    (cd "$recipes/yocto" && env -u MAKEFLAGS -u MAKELEVEL PV="$version" D="$recipes/yocto-root" prefix=/usr libdir=/usr/lib mandir=/usr/share/man \
        CC=gcc AR=ar CFLAGS='-O0 -g' CPPFLAGS= LDFLAGS=-Wl,-z,now sh "$recipes/yocto.sh") && has_flags "$recipes/yocto-root"
}
check "Yocto: the recipe of docs/packages.md" yocto
buildroot() { # the commands, in the order in which generic-package runs them
    sources_in "$recipes/buildroot" && block '^REDLOCK_VERSION' | sed '/^\$(eval/d' >"$recipes/buildroot.mk" && cat >"$recipes/Makefile" <<END || return 1
TARGET_MAKE_ENV = PATH="$PATH"
TARGET_CONFIGURE_OPTS = \$(TARGET_MAKE_ENV) AR="ar" CC="gcc" CFLAGS="-O0 -g" CPPFLAGS="-D_LARGEFILE_SOURCE" LDFLAGS="-Wl,-z,now"
STAGING_DIR = $recipes/buildroot-staging
TARGET_DIR = $recipes/buildroot-root
include $recipes/buildroot.mk
$recipes/buildroot/built:
	\$(REDLOCK_BUILD_CMDS)
	\$(REDLOCK_INSTALL_STAGING_CMDS)
	\$(REDLOCK_INSTALL_TARGET_CMDS)
version:
	@echo \$(REDLOCK_VERSION)
END
    same version "$version" "$(make_alone -s -f "$recipes/Makefile" version)" && make_alone -f "$recipes/Makefile" "$recipes/buildroot/built" &&
        has_flags "$recipes/buildroot-root" && [ -s "$recipes/buildroot-staging/usr/include/redlock/redlock.h" ] &&
        [ ! -e "$recipes/buildroot-staging/usr/bin" ]
}
check "Buildroot: the recipe of docs/packages.md" buildroot
openwrt() { # flags are in the environment, the compiler is on the command line
    sources_in "$recipes/openwrt" && : >"$recipes/include/rules.mk" && block '^PKG_NAME' >"$recipes/openwrt.mk" &&
        cat >"$recipes/include/package.mk" <<END || return 1
INSTALL_DIR = install -d -m0755
INSTALL_BIN = install -m0755
PKG_INSTALL_DIR = $recipes/openwrt-root
MAKE_FLAGS = AR="ar" CC="gcc" CROSS="" ARCH="x86_64"
run = CFLAGS="-O0 -g" LDFLAGS="-Wl,-z,now" \$(MAKE) -C $recipes/openwrt \$(MAKE_FLAGS)
define BuildPackage
all:
	test "\$(PKG_NAME)-\$(PKG_VERSION)" = "redlock-$version"
	\$(run)
	\$(run) DESTDIR=\$(PKG_INSTALL_DIR) install
	\$(call Package/\$(1)/install,$recipes/openwrt-image)
endef
END
    make_alone TOPDIR="$recipes/include" INCLUDE_DIR="$recipes/include" -f "$recipes/openwrt.mk" && has_flags "$recipes/openwrt-root" &&
        "$recipes/openwrt-image/usr/bin/redlock" version
}
check "OpenWrt: the recipe of docs/packages.md" openwrt

# ---- CI ----

workflow() { # each step is a target; debian and ubuntu, gcc and clang; the table of sizes is uploaded
    "$python" - >"$folder/workflow" <<'END' || return 1
import yaml
jobs = yaml.safe_load(open(".github/workflows/test.yml"))["jobs"]
for job in jobs.values():
    for step in job["steps"]:
        if "run" in step:
            print(step["run"])
matrix = jobs["test"]["strategy"]["matrix"]
print("#", *matrix["image"], *matrix["compiler"], jobs["size"]["steps"][-1]["with"]["path"])
END
    grep '^# .*bookworm .*noble gcc clang size.txt$' "$folder/workflow" && grep -qx 'make demo' "$folder/workflow" &&
        grep -qx 'make test' "$folder/workflow" || return 1
    sed '/^#/d' "$folder/workflow" | while read -r make target rest; do
        [ "$target" != -s ] || target=${rest%% *}
        same "a step" make "$make" || return 1
        case $target in
        deps | deps-*) ;;
        *) grep -q -e "^$target:" -e "^$target .*:" Makefile test/test.mk bench/bench.mk || { echo "no target $target"; return 1; } ;;
        esac
    done
}
check "CI: it calls targets of the Makefile only" workflow
done_testing
