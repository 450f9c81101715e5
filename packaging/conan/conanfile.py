# A recipe for Conan 2, out of a checkout or an unpacked release: conan create packaging/conan
# Not run with Conan itself yet: test/package/packages.sh runs it with a stand-in for the few functions that it calls.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
import os

from conan import ConanFile
from conan.tools.cmake import CMake, cmake_layout
from conan.tools.files import copy


class Redlock(ConanFile):
    name = "redlock"
    version = "0.5.0"
    license = "MIT"
    description = "A distributed lock over N independent Redis servers (Redlock)"
    settings = "os", "compiler", "build_type", "arch"
    options = {"shared": [True, False], "fPIC": [True, False]}
    default_options = {"shared": False, "fPIC": True}
    generators = "CMakeToolchain"

    def layout(self):
        cmake_layout(self)

    def export_sources(self):
        top = os.path.join(self.recipe_folder, "..", "..")
        for pattern in ("*.c", "*.h", "CMakeLists.txt", "LICENSE"):
            copy(self, pattern, top, self.export_sources_folder, excludes="*/*")
        for pattern in ("extra/*", "tools/headers.sh", "packaging/redlock.pc.in"):
            copy(self, pattern, top, self.export_sources_folder)

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))

    def package_info(self):
        self.cpp_info.libs = ["redlock"]
        self.cpp_info.includedirs = ["include/redlock"]
        self.cpp_info.system_libs = ["pthread"]
