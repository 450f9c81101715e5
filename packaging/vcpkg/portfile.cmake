# An overlay port, out of a checkout or an unpacked release: vcpkg install redlock --overlay-ports=.../packaging/vcpkg
# Not run with vcpkg itself yet: test/package/packages.sh runs it with a stand-in for the functions that it calls.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
get_filename_component(SOURCE_PATH "${CURRENT_PORT_DIR}/../.." ABSOLUTE)
vcpkg_cmake_configure(SOURCE_PATH "${SOURCE_PATH}")
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/redlock)
vcpkg_fixup_pkgconfig()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
