"""What names and expressions of a script stand for, as far as it can be told without executing it."""

from __future__ import annotations

import ast
import json
import operator
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Set, Union

#: Methods that change a list or a dict.
CHANGING = {"append", "extend", "insert", "remove", "pop", "clear", "sort", "reverse", "update", "setdefault", "popitem"}

#: Most elements of a range, which is written out, and most characters of a text that is put together.
LONGEST = 65536

_ARITHMETIC = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv}

#: Calls of one argument that leave it as it is.
_SAME = ("as_bytes", "as_text", "as_str", "as_str_any")


class ScriptError(Exception):
    """What cannot be read, with file and line."""


class NoLiteral(ScriptError):
    """What is no literal."""

    #: Whether it names options of the command line that stand in the place of the literal.
    has_options = False

    def or_option(self, *options: str) -> NoLiteral:
        """The error with such options, unless it names some."""
        if self.has_options or not options:
            return self
        told = str(self)
        error = NoLiteral(f"{told}{', or' if '; give ' in told else '; give'} {' or '.join(options)}")
        error.has_options = True
        return error


class Known(NamedTuple):
    """The value of a name, and the line that it is from."""

    value: Any
    line: int


class Differs(NamedTuple):
    """A name has one value by one branch and another one by another."""

    text: str
    #: The options of the command line that decide between the branches.
    hint: str


#: What a name stands for: a value, or several; a call, or a part of an object such as op.parameter_map; None: something
#: else.
Meaning = Union[Known, Differs, ast.expr, None]


def line_of(node: ast.AST) -> int:
    """The line that a node begins in."""
    return getattr(node, "lineno", 1)


class Values:
    """Names of a script, "cut" or "self.state", with what they stand for at the place that is being read."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.names: Dict[str, Meaning] = {}
        self._imported: Dict[str, str] = {}
        #: Names of parts of what a name stands for, as far as they were assigned.
        self._parts: Dict[str, Set[str]] = {}
        #: Names whose calls are being looked at.
        self._open: Set[str] = set()
        #: Whether a condition holds, where that is known.
        self.holds: Callable[[ast.expr], Optional[bool]] = lambda test: None

    def error(self, node: ast.AST, message: str) -> ScriptError:
        """An error with file and line."""
        return ScriptError(f"{self.path}:{line_of(node)}: {message}")

    def error_in(self, line: int, message: str) -> ScriptError:
        """The same for a line."""
        return ScriptError(f"{self.path}:{line}: {message}")

    def no_literal(self, node: ast.AST, message: str) -> NoLiteral:
        """An error of what is no literal, with file and line."""
        return NoLiteral(f"{self.path}:{line_of(node)}: {message}")

    def import_as(self, name: str, original: str) -> None:
        """`from module import original as name`."""
        self._imported[name] = original
        self._bind(name, None)

    def assign(self, target: ast.expr, value: ast.expr) -> None:
        """`target = value`, of a name, a part of an object, or several of them."""
        name = dotted(target)
        if name:
            self._bind(name, self._meaning(value))
        elif isinstance(target, (ast.Tuple, ast.List)) and isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts):
            for part, meaning in zip(target.elts, [self._meaning(part) for part in value.elts]):
                if dotted(part):
                    self._bind(dotted(part), meaning)
                else:
                    self.change(part)
        else:
            self.change(target)

    def change(self, target: ast.expr) -> None:
        """What a target stands for is not known from here on."""
        if isinstance(target, (ast.Tuple, ast.List)):
            for part in target.elts:
                self.change(part)
        elif isinstance(target, ast.Starred):
            self.change(target.value)
        elif isinstance(target, ast.Subscript):
            self.change_inside(target.value)
        elif dotted(target):
            self._bind(dotted(target), None)

    def change_inside(self, node: ast.expr) -> None:
        """What is in an object is not known from here on, whichever of its names it is reached by."""
        name = owner(node)
        meaning = self.names.get(name)
        inside = _mutable(meaning)
        for other, its in self.names.items():
            if (inside and inside & _mutable(its)) or (isinstance(meaning, Differs) and its is meaning):
                self.names[other] = None
        if name:
            self._bind(name, None)

    def _bind(self, name: str, meaning: Meaning) -> None:
        """A name stands for something new, whose parts are not known."""
        for part in self._parts.get(name, ()):
            self.names[part] = None
        whole = name
        while "." in whole:
            whole = whole.rpartition(".")[0]
            self._parts.setdefault(whole, set()).add(name)
        self.names[name] = meaning

    def merge(self, ways: List[Dict[str, Meaning]], hint: str = "") -> None:
        """Names behind a branch, of whose ways one was taken: those that differ are not known. A variable that one way alone
        sets is used where that was taken; a part of an object may have been set elsewhere. `hint`: the options of the
        command line that decide."""
        merged: Dict[str, Meaning] = {}
        for name in dict.fromkeys(name for way in ways for name in way):
            found = [way.get(name) for way in ways if name in way or "." in name]
            told = [meaning for meaning in found if meaning is not None]
            if all(alike(found[0], other) for other in found):
                merged[name] = found[0]
            elif len(told) == 1 and isinstance(told[0], (ast.Call, ast.Attribute, ast.Subscript)):
                merged[name] = told[0]  # a part of an object, whose settings count as those under a condition do
            else:
                merged[name] = _differing(found, hint)
        self.names = merged

    def resolved(self, node: ast.expr) -> ast.expr:
        """A call or a part of an object in the place of a name that stands for it."""
        meaning = self.names.get(dotted(node))
        return meaning if isinstance(meaning, ast.expr) else node

    def last_name(self, node: ast.expr) -> str:
        """"as_bytes" of tf.compat.as_bytes; empty for what has no name."""
        meaning = self.names.get(dotted(node))
        if isinstance(meaning, ast.Attribute):
            return meaning.attr
        if isinstance(node, ast.Name):
            return self._imported.get(node.id, node.id)
        return node.attr if isinstance(node, ast.Attribute) else ""

    def literal(self, node: ast.expr, what: str) -> Any:
        """A literal, also with names in it that were given one; texts that are put together, sums of numbers,
        tf.compat.as_bytes(…), json.dumps(…), list(range(…)). Raises ScriptError."""
        meaning = self.names.get(dotted(node))
        if isinstance(meaning, Differs):
            raise self.no_literal(node, f"{what} is {ast.unparse(node)}, which is {meaning.text}; give {meaning.hint}")
        try:
            return self._value(node, what)
        except (ValueError, TypeError, SyntaxError, ArithmeticError, MemoryError):
            shown = self.resolved(node)
            told = f"{what} is no literal: {ast.unparse(shown)}; the script is read, not executed"
            raise self.no_literal(shown, told) from None

    def _meaning(self, value: ast.expr) -> Meaning:
        name = dotted(value)
        if name in self.names:
            return self.names[name]
        try:
            return Known(self._value(value, ""), line_of(value))
        except (ScriptError, ValueError, TypeError, SyntaxError, ArithmeticError, MemoryError):
            pass
        if isinstance(value, ast.Subscript):
            return ast.copy_location(ast.Subscript(self.resolved(value.value), value.slice, value.ctx), value)
        return value if isinstance(value, (ast.Call, ast.Attribute, ast.IfExp)) else None

    def _value(self, node: ast.expr, what: str) -> Any:
        name = dotted(node)
        meaning = self.names.get(name)
        if isinstance(meaning, Known):
            return meaning.value
        if isinstance(meaning, ast.IfExp):
            return self._value_of(name, meaning, what)
        if isinstance(node, (ast.List, ast.Tuple)):
            items = [self._value(item, what) for item in node.elts]
            return items if isinstance(node, ast.List) else tuple(items)
        if isinstance(node, ast.Dict) and None not in node.keys:
            keys = [self._value(key, what) for key in node.keys if key is not None]
            return dict(zip(keys, (self._value(value, what) for value in node.values)))
        if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
            return self._sum(node, what)
        if isinstance(node, ast.JoinedStr):
            return "".join(str(self._value(part, what)) for part in node.values)
        if isinstance(node, ast.FormattedValue) and node.format_spec is None and node.conversion == -1:
            return self._value(node.value, what)
        if isinstance(node, ast.IfExp):
            return self._chosen(node, what)
        if isinstance(node, ast.Call):
            return self._call(node, what)
        if is_mode(node, self):
            return node.attr.lower()  # type: ignore[attr-defined]
        return ast.literal_eval(node)

    def _chosen(self, node: ast.IfExp, what: str) -> Any:
        holds = self.holds(node.test)
        if holds is not None:
            return self._value(node.body if holds else node.orelse, what)
        first, second = self._value(node.body, what), self._value(node.orelse, what)
        if type(first) is not type(second) or first != second:
            written = ast.unparse(node.test)
            told = f"{first!r} if {written} holds, else {second!r}; give --branch {written!r}, or --branch 'not {written}'"
            raise self.no_literal(node, f"{what or ast.unparse(node)} is {told}")
        return first

    def _value_of(self, name: str, call: ast.expr, what: str) -> Any:
        if name in self._open:  # x = f(x)
            raise ValueError(what)
        self._open.add(name)
        try:
            return self._value(call, what)
        finally:
            self._open.discard(name)

    def _sum(self, node: ast.BinOp, what: str) -> Any:
        left, right = self._value(node.left, what), self._value(node.right, what)
        numbers = all(isinstance(one, (int, float)) and not isinstance(one, bool) for one in (left, right))
        texts = isinstance(node.op, ast.Add) and type(left) is type(right) and isinstance(left, (str, bytes, list, tuple))
        if not (numbers and max(abs(left), abs(right)) < 2**64) and not (texts and len(left) + len(right) <= LONGEST):
            raise ValueError(what)
        return _ARITHMETIC[type(node.op)](left, right)

    def _call(self, node: ast.Call, what: str) -> Any:
        name = self.last_name(node.func)
        if name == "encode" and isinstance(node.func, ast.Attribute) and not node.args and not node.keywords:
            return self._value(node.func.value, what)
        if node.keywords:
            raise ValueError(what)
        if name == "range":
            numbers = range(*(self._value(argument, what) for argument in node.args))
            if len(numbers) > LONGEST:
                raise self.error(node, f"{what} is too long: {ast.unparse(node)}")
            return numbers
        if len(node.args) != 1:
            raise ValueError(what)
        inner = self._value(node.args[0], what)
        if name in _SAME:
            return inner
        if name in ("list", "tuple"):
            return list(inner) if name == "list" else tuple(inner)
        if name == "dumps":
            return json.dumps(inner)
        raise ValueError(what)


def dotted(node: Optional[ast.AST]) -> str:
    """"self.state"; empty for what is no chain of names."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        owner = dotted(node.value)
        return f"{owner}.{node.attr}" if owner else ""
    return ""


def owner(node: ast.expr) -> str:
    """The name of the object that an expression is a part of: "a.b" of a.b["c"][0] and of a.b.get("c"); or empty."""
    while not dotted(node):
        if isinstance(node, (ast.Subscript, ast.Attribute, ast.Starred)):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func.value
        else:
            return ""
    return dotted(node)


def _mutable(meaning: Any) -> Set[int]:
    """Which lists and dicts a meaning holds: equal numbers are one object."""
    value = meaning.value if isinstance(meaning, Known) else meaning
    if isinstance(value, dict):
        return {id(value)}.union(*map(_mutable, value.values()))
    if isinstance(value, (list, tuple)) and not isinstance(value, Differs):
        return ({id(value)} if isinstance(value, list) else set()).union(*map(_mutable, value))
    return set()


def is_mode(node: ast.expr, values: Values) -> bool:
    """ParallelMode.DATA_PARALLEL, also with a module before it."""
    return isinstance(node, ast.Attribute) and values.last_name(node.value) == "ParallelMode"


def alike(one: Meaning, other: Meaning) -> bool:
    if isinstance(one, ast.expr) and isinstance(other, ast.expr):
        return ast.dump(one) == ast.dump(other)
    if isinstance(one, Known) and isinstance(other, Known):
        return type(one.value) is type(other.value) and bool(one.value == other.value)
    return type(one) is type(other) and one == other


def _differing(found: List[Meaning], hint: str) -> Meaning:
    """What stands for a name that has several meanings."""
    known = sorted({one.line: one for one in found if isinstance(one, Known)}.values(), key=lambda one: one.line)
    told = [f"{one.value!r} in line {one.line}" for one in known]
    if not hint or not told:
        return None
    if not all(isinstance(one, Known) for one in found):
        told.append("not known in another branch")
    return Differs(" and ".join(told), hint)
