"""The command `hcclsim` of an environment that the package is installed in."""

import os
import sys

from . import helper


def main() -> None:
    """Becomes the program of the package."""
    program = helper.command_path()
    os.execv(program, [program, *sys.argv[1:]])
