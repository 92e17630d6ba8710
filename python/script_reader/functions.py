"""What functions of a script change outside of themselves: parts of objects, and names that are not their own."""

from __future__ import annotations

import ast
from typing import Dict, Iterator, List, Set, Tuple, Union

from values import CHANGING, Meaning, alike, dotted, owner

Function = Union[ast.FunctionDef, ast.AsyncFunctionDef]


class Functions:
    """Functions of a script, by name."""

    def __init__(self, tree: ast.AST) -> None:
        #: What is changed outside of functions, with its line.
        self._outside = [(getattr(part, "lineno", 0), _target(part)) for part in _outside_of_functions(tree) if _target(part)]
        #: What a function changes outside of itself.
        self._changes: Dict[str, Dict[str, Meaning]] = {}
        #: Its parameters, and those of them that it changes inside.
        self._parameters: Dict[str, Tuple[List[str], Set[str]]] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._changes

    def changed_behind(self, node: Function) -> Set[str]:
        """What the script changes behind a function, which may be called behind that."""
        return {name for line, name in self._outside if line > (node.end_lineno or 0)}

    def record(self, node: Function, before: Dict[str, Meaning], after: Dict[str, Meaning]) -> Dict[str, Meaning]:
        """Notes what a function changes, and returns it. `before`: names at the begin of its body, `after`: at the end."""
        parameters = [part.arg for part in (*node.args.posonlyargs, *node.args.args)]
        inside = {_changed_inside(part) for part in _outside_of_functions(node)}
        self._parameters[node.name] = (parameters, inside)
        own = {part.arg for part in ast.walk(node.args) if isinstance(part, ast.arg)}
        own |= {part.id for part in _outside_of_functions(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
        changes: Dict[str, Meaning] = {}
        for part in _outside_of_functions(node):
            if isinstance(part, (ast.Global, ast.Nonlocal)):
                own -= set(part.names)
            elif isinstance(part, ast.Call):  # of a function that changes something
                changes.update(self._changes.get(ast.unparse(part.func).split(".")[-1], {}))
        is_new = {name for name, meaning in after.items() if name not in before or before[name] is not meaning}
        changed = {name: after[name] for name in after if name in is_new and name not in own}
        self._changes[node.name] = {**changes, **changed}
        return changed

    def changed_by(self, call: ast.Call, name: str, names: Dict[str, Meaning]) -> List[str]:
        """Names that stand for something else behind a call of a function. Those of self are of the object that it is called of."""
        is_own = isinstance(call.func, ast.Attribute) and dotted(call.func.value) == "self"
        changes = self._changes.get(name, {}).items()
        return [one for one, its in changes if one in names and (is_own or not one.startswith("self.")) and not alike(names[one], its)]

    def changed_arguments(self, call: ast.Call, name: str) -> List[ast.expr]:
        """Arguments of a call that the function changes inside."""
        parameters, changed = self._parameters.get(name, ([], set()))
        if parameters and isinstance(call.func, ast.Attribute) and parameters[0] in ("self", "cls"):
            parameters = parameters[1:]
        given = [*zip(parameters, call.args), *((keyword.arg, keyword.value) for keyword in call.keywords)]
        return [argument for parameter, argument in given if parameter in changed]


def _outside_of_functions(node: ast.AST) -> Iterator[ast.AST]:
    """All of a node but what is in functions and classes below it."""
    for part in ast.iter_child_nodes(node):
        if not isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            yield part
            yield from _outside_of_functions(part)


def _target(node: ast.AST) -> str:
    """The name of what a part of a statement assigns or changes; or empty."""
    if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Store):
        return dotted(node)
    return _changed_inside(node)


def _changed_inside(node: ast.AST) -> str:
    """The name of the object that a part of a statement changes; or empty."""
    if isinstance(node, ast.AugAssign):
        return owner(node.target)
    if isinstance(node, (ast.Subscript, ast.Attribute)) and (not isinstance(node.ctx, ast.Load) or getattr(node, "attr", "") in CHANGING):
        return owner(node.value)
    return ""
