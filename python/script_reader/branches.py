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

_BRANCHING = (ast.If, ast.Try, ast.FunctionDef, ast.AsyncFunctionDef, *([ast.Match] if hasattr(ast, "Match") else []))

#: Calls that end the script.
_ENDS = ("exit", "quit", "sys.exit", "os._exit")


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


def fork_of_if(node: ast.If, otherwise: Optional[Sequence[ast.stmt]] = None) -> Fork:
    """`if`, and what stands for `else`; `otherwise`: what is done else, if it is more than that."""
    rest = node.orelse if otherwise is None else otherwise
    ways = (Way(f"if line {node.lineno} holds", node.body), Way(f"if line {node.lineno} does not hold", rest))
    return Fork(node.lineno, ways, node.test)


def fork_of_choice(node: ast.expr, test: ast.expr, then: Sequence[ast.expr], otherwise: Sequence[ast.expr]) -> Fork:
    """Parts of an expression of which a test decides which are evaluated."""
    parts = [[ast.copy_location(ast.Expr(part), part) for part in side] for side in (then, otherwise)]
    line = node.lineno
    return Fork(line, (Way(f"if line {line} holds", parts[0]), Way(f"if line {line} does not hold", parts[1])), test)


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
        #: Texts that an expression is compared with, by the expression.
        self._texts: Dict[str, Set[str]] = {}
        for node in ast.walk(tree):
            for subject, texts in _comparisons(node):
                self._texts.setdefault(subject, set()).update(texts)
        self._unused = {decision.text for decision in self._decisions if not self._may_decide(decision, tree)}

    def taken(self, fork: Fork) -> Tuple[Optional[Way], bool]:
        """The only way that is taken, and whether the command line names a line of it; (None, False): it is not known."""
        for decision in self._decisions:
            for way in fork.ways:
                if decision.line is not None and _spans(fork, way, decision.line):
                    self._unused.discard(decision.text)
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

    def leaves(self, statements: Sequence[ast.stmt]) -> bool:
        """Whether nothing behind these statements is executed."""
        return any(self._leaves(statement) for statement in statements)

    def _leaves(self, statement: ast.stmt) -> bool:
        if isinstance(statement, ast.If):
            fork = fork_of_if(statement)
            way, _ = self.taken(fork)
            return all(self.leaves(one.statements) for one in ([way] if way else fork.ways))
        if isinstance(statement, (ast.With, ast.AsyncWith)):
            return self.leaves(statement.body)
        if isinstance(statement, ast.Try):
            bodies = [[*statement.body, *statement.orelse], *(handler.body for handler in statement.handlers)]
            return self.leaves(statement.finalbody) or all(self.leaves(body) for body in bodies)
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            return ast.unparse(statement.value.func) in _ENDS
        return isinstance(statement, (ast.Return, ast.Raise, ast.Break, ast.Continue))

    def require_used(self) -> None:
        """Raises ScriptError for a text of `--branch` that decides nothing."""
        for text in sorted(self._unused):
            raise ScriptError(
                f"{self._values.path}: --branch {text} decides nothing: it is a line of a branch, a text that a condition "
                "compares something with, or a condition that holds"
            )

    def _chosen(self, test: ast.expr) -> Optional[bool]:
        written = ast.unparse(test)
        for decision in self._decisions:
            told = decision.expression
            if told is None:
                continue
            if ast.unparse(told) == written:
                return True
            if isinstance(told, ast.UnaryOp) and isinstance(told.op, ast.Not) and ast.unparse(told.operand) == written:
                return False
        return None

    def _compared(self, test: ast.Compare) -> Optional[bool]:
        equal = isinstance(test.ops[0], _EQUAL)
        if not equal and not isinstance(test.ops[0], _UNEQUAL):
            return None
        if ast.unparse(test.left) == "__name__":
            return equal
        try:
            left, right = (self._side(side) for side in (test.left, test.comparators[0]))
        except ScriptError:
            return None
        is_in = isinstance(test.ops[0], (ast.In, ast.NotIn))
        try:
            return bool((left in right if is_in else left == right) == equal)
        except TypeError:
            return None

    def _side(self, node: ast.expr) -> Any:
        """What a side of a comparison is: first by the command line, then by the script. Raises ScriptError."""
        for word in self._words(ast.unparse(node)):
            return word
        return self._values.literal(node, "")

    def _may_decide(self, decision: _Decision, tree: ast.AST) -> bool:
        """Whether a text of --branch has to do with some branch of the script, be it in one that is not taken."""
        told, line = decision.expression, decision.line
        if line is not None:
            return any(isinstance(node, _BRANCHING) and node.lineno <= line <= (node.end_lineno or 0) for node in ast.walk(tree))
        known = set().union(*self._texts.values())
        if decision.text in known or (decision.text in _DEVICES and known & _DEVICES):
            return True
        if told is None:
            return False
        if any(subject in self._texts for subject, _ in _comparisons(told)):
            return True
        written = ast.unparse(told.operand if isinstance(told, ast.UnaryOp) else told)
        return any(ast.unparse(test) == written for node in ast.walk(tree) for test in _tests(node))

    def _words(self, subject: str) -> Iterator[str]:
        """Texts that an expression is equal to by the command line."""
        known = self._texts.get(subject, set())
        for decision in self._decisions:
            told = decision.expression
            if decision.line is None and (decision.text in known or (decision.text in _DEVICES and known & _DEVICES)):
                yield decision.text
            elif isinstance(told, ast.Compare) and isinstance(told.ops[0], ast.Eq):
                for of, texts in _comparisons(told):
                    if of == subject:
                        yield next(iter(texts))


def hint(fork: Fork) -> str:
    """The options of the command line that decide which way is taken."""
    words = {text for _, texts in _comparisons(fork.test) for text in texts}
    if words & _DEVICES:
        return "--branch Ascend"
    for word in sorted(words - _TRUTHS):
        return f"--branch {word}"
    lines = [way.statements[0].lineno if way.statements else None for way in fork.ways]
    told = [f"--branch {line}" for line in lines if line is not None and lines.count(line) == 1]
    if len(told) < 2 and fork.test is not None:  # the others have no line of their own
        sides = (fork.test, _negated(fork.test))
        told += [f"--branch {ast.unparse(side)!r}" for line, side in zip(lines, sides) if line is None or lines.count(line) > 1]
    return " or ".join(told)


def _negated(test: ast.expr) -> ast.expr:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return test.operand
    return ast.UnaryOp(ast.Not(), test)


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


def _tests(node: ast.AST) -> Iterator[ast.expr]:
    """The conditions that a statement or an expression depends on."""
    if isinstance(node, (ast.If, ast.IfExp, ast.While)):
        yield node.test
    elif isinstance(node, ast.BoolOp):
        yield from node.values
    elif isinstance(node, ast.UnaryOp):
        yield node.operand


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
