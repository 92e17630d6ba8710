"""Which files belong to the repository, for the checks in this folder."""

import subprocess
from pathlib import Path

CPP_SUFFIXES = (".cpp", ".hpp")


def files(root):
    """Files of the repository as paths relative to root, sorted: what git tracks or would track, without git all."""
    listing = subprocess.run(
        ["git", "-c", "safe.directory=*", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=False,
    )
    if listing.returncode == 0:
        names = (Path(line) for line in listing.stdout.splitlines())
    else:
        names = (path.relative_to(root) for path in Path(root).rglob("*"))
    # A deleted file stays listed until the deletion is staged.
    return sorted({name for name in names if (Path(root) / name).is_file() and name.parts[0] not in ("build", "out")})
