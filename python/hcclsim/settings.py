"""What a script has set before it runs: contexts, groups, splits, hooks. `hcclsim.run()` uses all of it.

Every API that sets something (hccl.split.api, set_auto_parallel_context, register_comm_hook, …) writes here, and
`keywords()` says the same in options of the command.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Collection, Dict, List, Mapping, Optional, Tuple

from . import _core
from .errors import BadInput, Error

world_group = "hccl_world_group"

# Keywords of run() for one thing each.
_splits = ("split", "split_by_idx", "split_by_size", "fusion", "fusion_index")
_groups = ("group", "split_group")
_of_servers = ("ps_context", "ps_params", "init_in_server")

# Options of a context that other keywords of run() stand for; those of the same name do too.
_optimizer = ("enable_parallel_optimizer", "parallel_optimizer_config", "optimizer_weight_shard_size")
_fusion = ("comm_fusion", "all_reduce_fusion_config")
_of_context = {
    "npus": ("device_num",),
    "rank": ("global_rank",),
    "stages": ("pipeline_stages",),
    "pp": ("pipeline_stages",),
    "schedule": ("pipeline_config",),
    "chunks": ("pipeline_segments",),
    "vpp": ("pipeline_segments",),
    "optimizer_parallel": _optimizer,
    "fusion": _fusion,
    "fusion_index": _fusion,
    "comm_fusion": _fusion,
    "all_reduce_fusion_config": _fusion,
    "full_batch": ("dataset_strategy",),
    "dataset_strategy": ("full_batch",),
    "search_mode": ("auto_parallel_search_mode", "sharding_propagation"),
}


class Settings:
    """All settings of one rank's script."""

    def __init__(self) -> None:
        self.platform: Optional[str] = None
        self.npus: Optional[int] = None
        self.rank: Optional[int] = None
        self.rank_table: Optional[str] = None
        #: World ranks of each group that was created.
        self.groups: Dict[str, List[int]] = {}
        #: By group, the first list that was set; later ones have no effect, as in HCCL.
        self.split_by_idx: Dict[str, List[int]] = {}
        self.split_by_size: Dict[str, List[float]] = {}
        self.context = _core.AutoParallelContext()
        #: Options of the context that were set since the last reset, in their order.
        self.context_calls: List[Tuple[str, Any]] = []
        self.ps_context: Dict[str, Any] = {}
        #: Patterns of the parameters that servers keep.
        self.ps_parameters: List[str] = []
        #: Whether their tables of embeddings begin there.
        self.ps_init_in_server = False
        #: As --compress takes it; None: no hook.
        self.compression: Optional[str] = None
        #: The state of that hook.
        self.hook_state: Any = None

    def keywords(self, folder: Path, given: Collection[str] = ()) -> Dict[str, Any]:
        """What is set as keywords of run(). Files that are needed are written to `folder`; a context is without options
        that are given as keywords."""
        options: Dict[str, Any] = {
            "platform": self.platform,
            "npus": self.npus,
            "rank": self.rank,
            "rank_table": self.rank_table,
            "compress": self.compression,
        }
        options.update(self._split_keywords())
        if self.context_calls:
            options["context"] = self._context_file(folder, {*given, *(key for name in given for key in _of_context.get(name, ()))})
        if self.ps_context.get("enable_ps"):
            options["mode"] = "ps"
            options["ps_context"] = ", ".join(f"{key}={value}" for key, value in self.ps_context.items())
            if self.ps_parameters:
                options["ps_params"] = self.ps_parameters
            if self.ps_init_in_server:
                options["init_in_server"] = True
        return {key: value for key, value in options.items() if value is not None}

    def beside(self, given: Mapping[str, Any], folder: Path) -> Dict[str, Any]:
        """keywords() that count beside those that are given to a run: of what it has one, given ones drop all of them."""
        chosen = self.keywords(folder, given)
        dropped = set(given)
        for names in (_splits, _groups):
            if dropped.intersection(names):
                dropped.update(names)
        if given.get("mode", "ps") != "ps":
            dropped.update(_of_servers)
        everything = {**chosen, **given}
        if "rank_table" in everything and "platform" in everything:  # which says how many there are
            dropped.add("npus")
        return {key: value for key, value in chosen.items() if key not in dropped}

    def _split_keywords(self) -> Dict[str, Any]:
        named = sorted({*self.split_by_idx, *self.split_by_size})
        if not named:
            return {}
        if len(named) > 1:
            raise BadInput(f"splits are set for {', '.join(named)}: a run has those of one group", "split")
        group = named[0]
        options: Dict[str, Any] = {
            "split_by_idx": self.split_by_idx.get(group),
            "split_by_size": self.split_by_size.get(group),
        }
        if group != world_group:
            options["group"] = [f"{group}={','.join(map(str, self.groups[group]))}"]
            options["split_group"] = group
        return options

    def _context_file(self, folder: Path, dropped: Collection[str]) -> Path:
        """The context as calls of MindSpore, which the command reads and never executes."""
        mode = "GRAPH_MODE" if self.context.graph_mode else "PYNATIVE_MODE"
        lines = [
            "import mindspore",
            f"mindspore.set_context(mode=mindspore.{mode}, device_target={self.context.device_target!r})",
        ]
        lines.append("mindspore.set_auto_parallel_context()")
        lines += [f"mindspore.set_auto_parallel_context({key}={value!r})" for key, value in self.context_calls if key not in dropped]
        path = folder / "context.py"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path


current = Settings()

#: The function that sets what becomes a keyword.
_set_by = {
    "split_by_idx": "set_split_strategy_by_idx",
    "split_by_size": "set_split_strategy_by_size",
    "group": "create_group",
    "split_group": "create_group",
    "compress": "register_comm_hook",
    "context": "set_auto_parallel_context",
    "ps_context": "set_ps_context",
    "ps_params": "set_param_ps",
    "platform": "init",
    "npus": "init",
    "rank": "init",
    "rank_table": "init",
}


def origins(message: str, chosen: Collection[str], given: Collection[str]) -> str:
    """For an error that names keywords: which of them nobody gave, and what has set them; "" if there is none."""
    told = [
        f"{keyword} was set by {function}()"
        for keyword, function in _set_by.items()
        if keyword in chosen and keyword not in given and re.search(rf"(?<![\w-]){keyword}(?![\w-])", message)
    ]
    return f"; {', '.join(told)}: hcclsim.reset() forgets it" if told else ""


def reset() -> None:
    """Forgets everything that was set, in all packages."""
    vars(current).update(vars(Settings()))


class Folder:
    """A temporary folder for the files of one call. It goes with its guard, a process that removes it as soon as nobody
    holds the guard's standard input any more: at the end of the call, or of this process, killed or not."""

    def __enter__(self) -> Path:
        self._path = tempfile.mkdtemp(prefix="hcclsim-")
        # A session of its own: Ctrl-C is not for it.
        self._guard = subprocess.Popen(
            ["/bin/sh", "-c", 'cat; rm -rf -- "$0"', self._path], stdin=subprocess.PIPE, start_new_session=True
        )
        return Path(self._path)

    def __exit__(self, _kind: object, raised: Optional[BaseException], _trace: object) -> None:
        # Its files are nobody's who reads the message.
        if isinstance(raised, Error):
            raised.message = raised.message.replace(f"{self._path}/", "")
        self._guard.communicate()
