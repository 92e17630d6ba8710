"""Platform files: the clusters that are simulated."""

from __future__ import annotations

import os
from typing import List, Optional, Union, cast

from . import helper, options, reports
from .experiments import call_with


def names() -> List[str]:
    """Platforms that come with hcclsim."""
    lines = helper.call(["platform", "list"]).output.splitlines()[1:]  # below the titles
    return [line.split()[0] for line in lines if line and not line[0].isspace()]


def show(platform: Union[str, "os.PathLike[str]"] = "atlas800-9000", *, route: Optional[str] = None) -> reports.Platform:
    """What a platform has: npus, servers, soc, links with their speeds; `route`="0:9" also the way between two NPUs."""
    return cast(reports.Platform, call_with(("platform", "show"), [platform], {"route": route}, reports.Platform))


def check(platform: Union[str, "os.PathLike[str]"]) -> str:
    """What is wrong with a platform file: raises BadInput with file and line; returns what is worth a remark."""
    return str(call_with(("platform", "check"), [platform], {}))


@options.of_command("platform", "generate")
def generate(**keywords: object) -> str:
    """The text of a platform file: soc, servers, fabric and others."""
    return str(call_with(("platform", "generate"), [], keywords))
