"""Where a script goes one way or another, and which way is taken.

A way is taken where its condition is known: by a literal, by names of literals, or by the command line (`--branch`).
Otherwise all ways are read, each from what holds before them, and settings that differ between them contradict each other.
"""

from __future__ import annotations

import ast
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

from values import ScriptError, Values

#: Texts that scripts compare the device with: one of them holds.
_DEVICES = frozenset(("Ascend", "GPU", "CPU", "Davinci"))

#: Texts that say nothing of what they are compared with.
_TRUTHS = frozenset(("True", "False", "true", "false", ""))

_EQUAL = (ast.Eq, ast.Is, ast.In)
_UNEQUAL = (ast.NotEq, ast.IsNot, ast.NotIn)


class Way(NamedTuple):
    """Statements, and when they are executed, for people."""

    when: str
    statements: Sequence[ast.stmt]


class Fork(NamedTuple):
    """A statement of which one way, or none, is taken."""

    line: int
    ways: Sequence[Way]
    #: What decides between two ways: the first one is taken where it holds.
    test: Optional[ast.expr] = None


def leaves(statements: Sequence[ast.stmt]) -> bool:
    """Whether nothing behind these statements is executed."""
    last = statements[-1]
    if isinstance(last, ast.Expr) and isinstance(last.value, ast.Call):
        return ast.unparse(last.value.func) in ("exit", "quit", "sys.exit", "os._exit")
    return isinstance(last, (ast.Return, ast.Raise, ast.Break, ast.Continue))


def fork_of_if(node: ast.If, otherwise: Optional[Sequence[ast.stmt]] = None) -> Fork:
    """`if`, and what stands for `else`; `otherwise`: what is done else, if it is more than that."""
    rest = node.orelse if otherwise is None else otherwise
    ways = (Way(f"if line {node.lineno} holds", node.body), Way(f"if line {node.lineno} does not hold", rest))
    return Fork(node.lineno, ways, node.test)


class _Decision(NamedTuple):
    """A text of `--branch`."""

    text: str
    line: Optional[int]
    #: The expression that holds; None: a word that some expression is equal to.
    expression: Optional[ast.expr]


class Branches:
    """What is known of conditions. `chosen` are the values of `--branch`: a line of the way that is taken, a text that the
    script compares something with, or a condition that holds."""

    def __init__(self, values: Values, chosen: Sequence[str], tree: ast.AST) -> None:
        self._values = values
        self._decisions = [_decision(text) for text in chosen]
        self._used: Set[str] = set()
        #: Texts that an expression is compared with, by the expression.
        self._texts: Dict[str, Set[str]] = {}
        for node in ast.walk(tree):
            for subject, texts in _comparisons(node):
                self._texts.setdefault(subject, set()).update(texts)

    def taken(self, fork: Fork) -> Tuple[Optional[Way], bool]:
        """The only way that is taken, and whether the command line names a line of it; (None, False): it is not known."""
        for decision in self._decisions:
            for way in fork.ways:
                if decision.line is not None and _spans(fork, way, decision.line):
                    self._used.add(decision.text)
                    return way, True
        holds = None if fork.test is None else self.holds(fork.test)
        return (None, False) if holds is None else (fork.ways[0 if holds else 1], False)

    def holds(self, test: ast.expr) -> Optional[bool]:
        """Whether a condition holds; None: it is not known."""
        chosen = self._chosen(test)
        if chosen is not None:
            return chosen
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            inner = self.holds(test.operand)
            return None if inner is None else not inner
        if isinstance(test, ast.BoolOp):
            parts = [self.holds(part) for part in test.values]
            decisive = isinstance(test.op, ast.Or)
            return decisive if decisive in parts else None if None in parts else not decisive
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            return self._compared(test)
        try:
            return bool(self._values.literal(test, ""))
        except ScriptError:
            return None

    def require_used(self) -> None:
        """Raises ScriptError for a text of `--branch` that decides nothing."""
        for decision in self._decisions:
            if decision.text not in self._used:
                raise ScriptError(
                    f"{self._values.path}: --branch {decision.text} decides nothing: it is a line of a branch, a text that a condition "
                    "compares something with, or a condition that holds"
                )

    def _chosen(self, test: ast.expr) -> Optional[bool]:
        written = ast.unparse(test)
        for decision in self._decisions:
            told = decision.expression
            if told is None:
                continue
            if ast.unparse(told) == written:
                self._used.add(decision.text)
                return True
            if isinstance(told, ast.UnaryOp) and isinstance(told.op, ast.Not) and ast.unparse(told.operand) == written:
                self._used.add(decision.text)
                return False
        return None

    def _compared(self, test: ast.Compare) -> Optional[bool]:
        equal = isinstance(test.ops[0], _EQUAL)
        if not equal and not isinstance(test.ops[0], _UNEQUAL):
            return None
        if ast.unparse(test.left) == "__name__":
            return equal
        for subject, texts in _comparisons(test):
            for word, decision in self._words(subject):
                self._used.add(decision.text)
                return (word in texts) == equal
        try:
            left, right = (self._values.literal(side, "") for side in (test.left, test.comparators[0]))
        except ScriptError:
            return None
        is_in = isinstance(test.ops[0], (ast.In, ast.NotIn))
        try:
            return bool((left in right if is_in else left == right) == equal)
        except TypeError:
            return None

    def _words(self, subject: str) -> Iterator[Tuple[str, _Decision]]:
        """Texts that an expression is equal to by the command line."""
        known = self._texts.get(subject, set())
        for decision in self._decisions:
            told = decision.expression
            if decision.line is None and (decision.text in known or (decision.text in _DEVICES and known & _DEVICES)):
                yield decision.text, decision
            elif isinstance(told, ast.Compare) and isinstance(told.ops[0], ast.Eq):
                for of, texts in _comparisons(told):
                    if of == subject:
                        yield next(iter(texts)), decision


def hint(fork: Fork) -> str:
    """The options of the command line that decide which way is taken."""
    words = {text for _, texts in _comparisons(fork.test) for text in texts}
    if words & _DEVICES:
        return "--branch Ascend"
    for word in sorted(words - _TRUTHS):
        return f"--branch {word}"
    lines = [f"--branch {way.statements[0].lineno}" for way in fork.ways if way.statements]
    if len(lines) == 1 and fork.test is not None:
        lines.append(f"--branch {ast.unparse(ast.UnaryOp(ast.Not(), fork.test))!r}")
    return " or ".join(lines)


def _decision(text: str) -> _Decision:
    if text.isdecimal():
        return _Decision(text, int(text), None)
    try:
        return _Decision(text, None, ast.parse(text, mode="eval").body)
    except (SyntaxError, ValueError):
        return _Decision(text, None, None)


def _spans(fork: Fork, way: Way, line: int) -> bool:
    """Whether a line is one of the way; that of `if` itself is one of the first."""
    if not way.statements:
        return False
    first = fork.line if way is fork.ways[0] else way.statements[0].lineno
    return first <= line <= (way.statements[-1].end_lineno or 0)


def _comparisons(node: Optional[ast.AST]) -> Iterator[Tuple[str, Set[str]]]:
    """What a comparison compares with texts, and these: x == "a", "a" == x, x in ("a", "b")."""
    if isinstance(node, ast.BoolOp):
        for part in node.values:
            yield from _comparisons(part)
    if isinstance(node, ast.UnaryOp):
        yield from _comparisons(node.operand)
    if not isinstance(node, ast.Compare) or len(node.ops) != 1 or not isinstance(node.ops[0], (*_EQUAL, *_UNEQUAL)):
        return
    for subject, other in ((node.left, node.comparators[0]), (node.comparators[0], node.left)):
        items: List[Any] = other.elts if isinstance(other, (ast.Tuple, ast.List, ast.Set)) else [other]
        texts = {item.value for item in items if isinstance(item, ast.Constant) and isinstance(item.value, str)}
        if texts and len(texts) == len(items) and not isinstance(subject, ast.Constant):
            yield ast.unparse(subject), texts
