"""The world of a script: how many ranks there are, on which servers, and which of them it is."""

from __future__ import annotations

import functools
import json
import os
from numbers import Integral
from typing import Any, Mapping, NamedTuple, Optional, Tuple, Union, cast

from . import errors, helper, settings

default_platform = "atlas800-9000"


class World(NamedTuple):
    """All ranks; those of a server follow each other."""

    size: int
    rank: int
    #: (server, place on it) of every rank.
    places: Tuple[Tuple[int, int], ...]
    is_910a: bool

    def server_of(self, rank: int) -> int:
        """Number of the server that a rank is on."""
        return self.places[rank][0]

    def place_of(self, rank: int) -> int:
        """Which NPU of its server a rank is."""
        return self.places[rank][1]


def init(
    platform: "Union[str, os.PathLike[str], None]" = None,
    npus: Optional[int] = None,
    rank: Optional[int] = None,
    rank_table: "Union[str, os.PathLike[str], None]" = None,
) -> World:
    """Says where this script runs: `platform` file or name, the first `npus` of it, as which `rank`; or an HCCL rank
    table. Functions of hccl.manage.api count with it, and run() takes it as its default.

    Raises TypeError for npus or a rank that are no int, BadInput for a platform or rank table that is none, ValueError for
    more NPUs than there are or a rank that is none of the world's; what was said before stays then.
    """
    for name, value in (("npus", npus), ("rank", rank)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, Integral)):
            raise TypeError(f"{name} must be int, not {type(value).__name__}")
    chosen = settings.current
    before = (chosen.platform, chosen.npus, chosen.rank, chosen.rank_table)
    chosen.platform = None if platform is None else os.fspath(platform)
    chosen.npus = None if npus is None else int(npus)
    chosen.rank = None if rank is None else int(rank)
    chosen.rank_table = None if rank_table is None else os.fspath(rank_table)
    try:
        return current()
    except BaseException:
        chosen.platform, chosen.npus, chosen.rank, chosen.rank_table = before
        raise


def current() -> World:
    """The world as it is set, or as RANK_TABLE_FILE, RANK_SIZE and RANK_ID say, or the default platform's."""
    chosen = settings.current
    platform = chosen.platform or default_platform
    facts = _platform(helper.command_path(), platform, _changed(platform))
    table = chosen.rank_table or os.environ.get("RANK_TABLE_FILE")
    per_server = facts["npus"] // facts["servers"]
    if table:
        places = _table_places(table)
    else:
        size = chosen.npus if chosen.npus is not None else _of_environment("RANK_SIZE", facts["npus"])
        if not 1 <= size <= facts["npus"]:
            raise ValueError(f"{platform} has {facts['npus']} NPUs, not {size}")
        places = tuple((npu // per_server, npu % per_server) for npu in range(size))
    rank = chosen.rank if chosen.rank is not None else _of_environment("RANK_ID", 0)
    if not 0 <= rank < len(places):
        raise ValueError(f"rank must be from 0 to {len(places) - 1}, not {rank}")
    socs = "".join(facts["soc"])
    return World(len(places), rank, places, any(name in socs for name in ("910A", "910ProA", "910PremiumA", "910ProB")))


def _of_environment(name: str, default: int) -> int:
    text = os.environ.get(name)
    if not text:
        return default
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{name} in the environment must be a whole number, not {text!r}") from None


def _changed(platform: str) -> float:
    """When a file was changed, so that what is remembered of it is its own."""
    return os.path.getmtime(platform) if os.path.exists(platform) else 0


@functools.lru_cache(maxsize=64)
def _platform(_command: str, platform: str, _changed_at: float) -> Mapping[str, Any]:
    return cast(Mapping[str, Any], json.loads(helper.call(["platform", "show", platform, "--format=json"]).output))


def _table_places(path: str) -> Tuple[Tuple[int, int], ...]:
    """Servers and devices of the ranks of an HCCL rank table, which the command checks when it runs."""
    try:
        with open(path, encoding="utf-8") as file:
            table = json.load(file)
        places = {
            int(device["rank_id"]): (number, int(device["device_id"]))
            for number, server in enumerate(table["server_list"])
            for device in server["device"]
        }
        return tuple(places[rank] for rank in range(len(places)))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise errors.of_kind("rank-table", 2, f"{path}: is no rank table: {type(error).__name__}: {error}") from None
