"""HCCL's settings: groups and splits."""

from __future__ import annotations

import ast
from typing import Any, List, NamedTuple, Optional, Set, Tuple

from held import counting
from settings import Settings
from tables import SPLITS, WORLD


#: Splits by the last index of each segment, and by percentages. HCCL takes both.
KINDS = ("by-idx", "by-size")


class Split(NamedTuple):
    """A split of HCCL's, and the group that has it."""

    values: List[Any]
    group: Any

    def __repr__(self) -> str:
        return f"{self.values}{'' if self.group == WORLD else f' of {self.group!r}'}"


class Hccl:
    """Reads create_group and the calls of the split API."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        #: The last index of a split and its line: that of the last gradient.
        self.last_index: Optional[Tuple[int, int]] = None

    def create_group(self, node: ast.Call) -> None:
        name, size, ranks = self._settings.literals(node, ("group", "rank_num", "rank_ids"))
        thing = f"group {name!r}"
        before = self._settings.things.get(thing)
        if before is not None and self._settings.is_certain(before):
            raise self._settings.error(node, f"the group {name!r} exists")
        if not isinstance(ranks, list) or len(ranks) != size:
            raise self._settings.error(node, f"rank_num is {size!r}, but rank_ids is {ranks!r}")
        self._settings.set_first(node, thing, ranks)
        self._settings.tell(node, f"create_group({name!r}, {size}, {ranks})", "counts where a split is set for it")

    def split_by_idx(self, node: ast.Call) -> None:
        values, group = self._list_and_group(node, "idxList")
        if not all(type(value) is int and value >= 0 for value in values):
            raise self._settings.error(node, f"idxList must hold ints from 0 on, not {values}")
        if any(later <= earlier for earlier, later in zip(values, values[1:])):
            raise self._settings.error(node, f"indices must ascend: {values}")
        self._split(node, "by-idx", values, group)

    def split_by_size(self, node: ast.Call) -> None:
        values, group = self._list_and_group(node, "dataSizeList")
        if not all(type(value) in (int, float) and value >= 0 for value in values):
            raise self._settings.error(node, f"dataSizeList must hold ints or floats from 0 on, not {values}")
        if not abs(sum(values) - 100) <= 1e-6:
            raise self._settings.error(node, f"percentages must sum to 100, not to {sum(values)}: {values}")
        self._split(node, "by-size", values, group)

    def _list_and_group(self, node: ast.Call, parameter: str) -> Tuple[List[Any], Any]:
        values, group = self._settings.literals(node, (parameter, "group"), {"group": WORLD})
        if not isinstance(values, list) or not values:
            raise self._settings.error(node, f"{parameter} must be a list with values, not {values!r}")
        return values, group

    def _split(self, node: ast.Call, kind: str, values: List[Any], group: Any) -> None:
        what = f"set_split_strategy_{kind.replace('-', '_')}({values}, {group!r})"
        if group != WORLD and f"group {group!r}" not in self._settings.things:
            raise self._settings.error(node, f"the group {group!r} does not exist; create_group makes it")
        is_first = self._settings.set_first(node, f"split: {kind}", Split(values, group))
        for other in KINDS:
            if is_first and other != kind:
                self._settings.rule_out(f"split: {kind}", f"split: {other}", lambda thing, split: f"{thing.split()[-1]} {split}")
        self._settings.tell(node, what, f"--split-{kind}={','.join(map(str, values))}" if is_first else "no effect: the first setting stays")

    def options(self) -> List[str]:
        """The options for splits, and for the group that has them."""
        if self._settings.is_given(*SPLITS):
            return []
        options: List[str] = []
        groups: Set[str] = set()
        for kind in KINDS:
            thing = f"split: {kind}"
            if thing not in self._settings.things:
                continue
            values, group = counting(self._settings.things, thing, self._settings.values, (f"--split-{kind}",))
            options.append(f"--split-{kind}={','.join(map(str, values))}")
            groups.add(group)
            if len(groups) > 1:
                raise self._settings.values.error_in(self._settings.things[thing].line, "splits are set for several groups; a run has those of one")
            if kind == "by-idx":
                self.last_index = (values[-1], self._settings.things[thing].line)
        for group in groups - {WORLD}:
            ranks = counting(self._settings.things, f"group {group!r}", self._settings.values, ("--group",))
            options += [f"--group={group}={','.join(map(str, ranks))}", f"--split-group={group}"]
        return options
