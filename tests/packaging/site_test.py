"""The site of docs builds, and all that its pages name is in it: site_test.py MKDOCS ROOT FOLDER."""

import re
import subprocess
import sys
from pathlib import Path


def missing(site: Path) -> list[str]:
    """Names in pages that lead nowhere, each with its page; and scripts and styles of other computers."""
    found = []
    for page in sorted(site.rglob("*.html")):
        if page.name == "404.html":  # its names are from the root of a server
            continue
        text = page.read_text(encoding="utf-8")
        code = re.sub(r"<(code|pre)\b.*?</\1>", "", text, flags=re.DOTALL)
        for name in re.findall(r'(?:href|src)="([^"#?]+)', code):
            if re.match("https?:|data:|mailto:", name):
                continue
            if not (page.parent / name).exists():
                found.append(f"{page.relative_to(site)}: {name}")
        for name in re.findall(r'<(?:script|link)[^>]*(?:src|href)="(https?:[^"]+)"', text):
            found.append(f"{page.relative_to(site)}: {name}")
    return found


def main() -> None:
    mkdocs, root, site = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    subprocess.run([mkdocs, "build", "--strict", "--quiet", "--clean", "--site-dir", str(site)], cwd=root, check=True)
    lost = missing(site)
    if lost:
        sys.exit("\n".join(lost))
    if not (site / "search" / "search_index.json").exists():
        sys.exit("no index to search in")
    print("all names lead somewhere")


if __name__ == "__main__":
    main()
