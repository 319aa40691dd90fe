"""A recipe for Conan 2 of the library alone. Its dependencies are those of the system (packages_build of apps/setup.sh), so
that no registry is needed:  conan create cmake/packaging/conan"""

import os
import re

from conan import ConanFile
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")


class VitConan(ConanFile):
    name = "vit"
    description = "Vision Transformers on CPUs with 2D axial RoPE"
    settings = "os", "compiler", "build_type", "arch"
    options = {"shared": [True, False]}
    default_options = {"shared": True}

    def set_version(self):
        text = load(self, os.path.join(ROOT, "CMakeLists.txt"))
        self.version = re.search(r"project\(vit VERSION ([0-9.]+)", text).group(1)

    def export_sources(self):
        for pattern in ("CMakeLists.txt", "LICENSE", "cmake/*", "vit/*", "data/model/*", "data/labels/*"):
            copy(self, pattern, src=ROOT, dst=self.export_sources_folder)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        for name, value in {"APPS": "OFF", "TESTS": "OFF"}.items():
            toolchain.cache_variables[f"VIT_BUILD_{name}"] = value
        toolchain.cache_variables["VIT_OPENCV"] = "OFF"
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", src=self.source_folder, dst=os.path.join(self.package_folder, "licenses"))

    def package_info(self):
        self.cpp_info.libs = ["vit"]
        self.cpp_info.set_property("cmake_find_mode", "none")  # the package brings its own vit-config.cmake
        self.cpp_info.builddirs = [os.path.join("lib", "cmake", "vit")]
