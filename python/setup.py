"""Builds the command and the module with CMake, and puts them into the package: `pip install --no-build-isolation .`"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import Extension, find_packages, setup
from setuptools.command.build_ext import build_ext

HERE = Path(__file__).parent.resolve()
SOURCES = HERE.parent


class CMakeBuild(build_ext):
    """The whole of CMake's build in place of a compiler's call."""

    def build_extension(self, ext: Extension) -> None:
        package = Path(self.get_ext_fullpath(ext.name)).parent.resolve()
        build = Path(os.environ.get("HCCLSIM_PYTHON_BUILD") or Path(self.build_temp).resolve() / "cmake")
        configure = [
            "cmake", "-S", str(SOURCES), "-B", str(build), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
            "-DHCCLSIM_PYTHON=ON", f"-DPython_EXECUTABLE={sys.executable}", "-DCMAKE_INSTALL_LIBDIR=lib",
        ]
        if "HCCLSIM_PYTHON_BUILD" not in os.environ:
            configure.append("-DBUILD_TESTING=OFF")
        subprocess.run(configure, check=True)
        jobs = os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL") or str(os.cpu_count() or 1)
        targets = ["hcclsim", "hcclsim_simgrid", "python_package"]
        subprocess.run(["cmake", "--build", str(build), "--parallel", jobs, "--target", *targets], check=True)
        # The package holds what an installed command has around it: bin, lib, share.
        install = ["cmake", "--install", str(build), "--prefix", str(package), "--component", "command"]
        subprocess.run(install, check=True)
        for built in (build / "python" / "hcclsim").iterdir():
            if built.suffix in (".so", ".pyi", ".txt"):
                shutil.copy2(built, package / built.name)


setup(
    version=(SOURCES / "VERSION").read_text(encoding="utf-8").strip(),
    packages=find_packages(include=["hcclsim*", "hccl*"]),
    package_data={"hcclsim": ["py.typed"]},
    ext_modules=[Extension("hcclsim._core", sources=[])],
    cmdclass={"build_ext": CMakeBuild},
)
