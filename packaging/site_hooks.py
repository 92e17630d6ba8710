"""What mkdocs is told of the site: Debian's theme names scripts that its package does not have under these names."""

import re
import shutil
from pathlib import Path
from typing import Any

# What the theme's own script of this name does that the pages need: tables get the looks of the theme.
TABLES = "document.querySelectorAll('div.rst-content table').forEach(table => table.classList.add('docutils'));\n"
JQUERY = Path("/usr/share/javascript/jquery/jquery.min.js")


def for_browsers_of_today(page: str) -> str:
    """A page without the script for browsers that are long gone."""
    return re.sub(r"<!--\[if lt IE 9\]>.*?<!\[endif\]-->", "", page, flags=re.DOTALL)


def on_post_page(output: str, **_: Any) -> str:
    """Called for each page of docs."""
    return for_browsers_of_today(output)


def on_post_template(output_content: str, **_: Any) -> str:
    """Called for the pages of the theme: search, 404."""
    return for_browsers_of_today(output_content)


def on_post_build(config: Any, **_: Any) -> None:
    """Puts the scripts where the pages look for them."""
    scripts = Path(config["site_dir"], "js")
    wanted = set(re.findall(r'src="js/([^"]+)"', Path(config["site_dir"], "index.html").read_text(encoding="utf-8")))
    for name in wanted:
        if not (scripts / name).exists() and name.startswith("jquery") and JQUERY.exists():
            shutil.copy(JQUERY, scripts / name)
    if not (scripts / "theme_extra.js").exists():
        (scripts / "theme_extra.js").write_text(TABLES, encoding="utf-8")
