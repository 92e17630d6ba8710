"""What functions of a script change outside of themselves: parts of objects, and names declared global or nonlocal."""

from __future__ import annotations

import ast
from typing import Dict, Iterator, List, Set, Tuple, Union

from values import Meaning, alike, dotted

Function = Union[ast.FunctionDef, ast.AsyncFunctionDef]


class Functions:
    """Functions of a script, by name."""

    def __init__(self, tree: ast.AST) -> None:
        self._shared = {name for node in ast.walk(tree) if isinstance(node, (ast.Global, ast.Nonlocal)) for name in node.names}
        #: What is assigned outside of functions, with its line.
        self._assigned = list(_assigned_outside(tree))
        #: What a function changes outside of itself.
        self._changes: Dict[str, Dict[str, Meaning]] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._changes

    def assigned_behind(self, node: Function) -> Set[str]:
        """What the script assigns behind a function, which may be called behind that."""
        return {name for name, line in self._assigned if line > (node.end_lineno or 0)}

    def record(self, node: Function, before: Dict[str, Meaning], after: Dict[str, Meaning]) -> Dict[str, Meaning]:
        """Notes what a function changes, and returns it. `before`: names at the begin of its body, `after`: at the end."""
        changes = {
            name: meaning
            for name, meaning in after.items()
            if ("." in name or name in self._shared) and (name not in before or before[name] is not meaning)
        }
        self._changes[node.name] = changes
        return changes

    def changed_by(self, call: ast.Call, name: str, names: Dict[str, Meaning]) -> List[str]:
        """Names that stand for something else behind a call of a function. Those of self are of the object that it is called of."""
        is_own = isinstance(call.func, ast.Attribute) and dotted(call.func.value) == "self"
        changes = self._changes.get(name, {}).items()
        return [one for one, its in changes if one in names and (is_own or not one.startswith("self.")) and not alike(names[one], its)]


def _assigned_outside(node: ast.AST) -> Iterator[Tuple[str, int]]:
    for part in ast.iter_child_nodes(node):
        if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            continue
        if isinstance(part, (ast.Name, ast.Attribute)) and isinstance(part.ctx, ast.Store) and dotted(part):
            yield dotted(part), part.lineno
        yield from _assigned_outside(part)
