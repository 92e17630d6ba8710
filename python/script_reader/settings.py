"""What a script has set on the way through it that is being read, and what people are told of it."""

from __future__ import annotations

import ast
from typing import Any, Callable, Collection, Dict, List, NamedTuple, Optional, Tuple, Union

from branches import Fork, hint
from held import Conflict, Held, Things, conflict
from tables import AS_THE_RUN, IN_PLACE_OF, ONCE, REPLACED_IN_PART, SERVERS
from values import NoLiteral, ScriptError, Values, line_of


class Setting(NamedTuple):
    """Something that the script sets, and what became of it."""

    line: int
    what: str
    became: str
    #: The script does not say it, or under a condition.
    is_assumed: bool = False
    #: The conditions.
    when: str = ""

    @property
    def told(self) -> str:
        """What became of it, and when."""
        return ", ".join(text for text in (self.became, self.when) if text)


class Settings:
    """Things that are set, each with the branches around it. `given` are the options of the command line, which count first;
    `has_branches`: some of them say which branches are taken."""

    def __init__(self, values: Values, given: Collection[str], has_branches: bool) -> None:
        self.values = values
        self.given = given
        self.has_branches = has_branches
        self.things: Things = {}
        self.told: List[Setting] = []
        #: Forks whose way is not known, with that which is being read.
        self.ways: List[Tuple[Fork, int]] = []
        #: How deep it is in ways that the command line names by a line.
        self.depth_of_chosen = 0

    def literals(self, node: ast.Call, names: Tuple[str, ...], defaults: Optional[Dict[str, Any]] = None) -> List[Any]:
        """Arguments of a call, which are literals."""
        values = dict(defaults or {})
        called = self.values.last_name(node.func)
        if len(node.args) > len(names):
            raise self.error(node, f"{called} takes {len(names)} arguments")
        values.update({name: self.values.literal(value, name) for name, value in zip(names, node.args)})
        for keyword in node.keywords:
            if keyword.arg is None:
                raise self.values.no_literal(node, f"**{ast.unparse(keyword.value)} is no literal; the script is read, not executed")
            if keyword.arg not in names:
                raise self.error(node, f"{called} has no argument {keyword.arg!r}")
            values[keyword.arg] = self.values.literal(keyword.value, keyword.arg)
        missing = [name for name in names if name not in values]
        if missing:
            raise self.error(node, f"{called} needs {missing[0]}")
        return [values[name] for name in names]

    def truth(self, node: ast.AST, key: str, value: Any) -> bool:
        if not isinstance(value, bool):
            raise self.error(node, f"{key} must be True or False, not {value!r}")
        return value

    def is_given(self, *options: str) -> bool:
        return any(option in self.given for option in options)

    def has_conditions(self) -> bool:
        """Whether what is being read stands in one of several branches."""
        return self.has_branches or any(len(fork.ways) > 1 for fork, _ in self.ways)

    def held(self, node: ast.AST, value: Any, target: str = "") -> Held:
        ways = tuple((fork.line, number) for fork, number in self.ways)
        return Held(value, line_of(node), target, ways, self.depth_of_chosen > 0)

    def is_certain(self, held: Union[Held, Conflict]) -> bool:
        """Whether what was set has been set wherever the script is now."""
        return isinstance(held, Held) and set(held.ways) <= {(fork.line, number) for fork, number in self.ways}

    def _decides(self, held: Union[Held, Conflict]) -> str:
        """Options of the command line that decide between a setting and the one that is being read."""
        lines = [f"--branch {held.line}"] if isinstance(held, Held) and held.ways else []
        return " or ".join([*lines, *([hint(self.ways[-1][0])] if self.ways else [])])

    def set_first(self, node: ast.AST, thing: str, value: Any) -> bool:
        """Notes a setting of which the first one counts; whether this one does."""
        before = self.things.get(thing)
        held = self.held(node, value)
        if before is None:
            self.things[thing] = held
        elif isinstance(before, Held) and before.value != value and not self.is_certain(before):
            self.things[thing] = conflict(before, held, self._decides(before))
        return self.things[thing] is held

    def rule_out(self, thing: str, other: str, named: Callable[[str, Any], str]) -> None:
        """Notes that a thing was set beside another one: both count where the other one is set for certain, or else one of
        them does. `named` says a thing with its value."""
        before, held = self.things.get(other), self.things.get(thing)
        if not isinstance(before, Held) or not isinstance(held, Held):
            return
        if self.is_certain(before) and not (before.chosen and held.ways):
            return
        one, two = before._replace(value=named(other, before.value)), held._replace(value=named(thing, held.value))
        found = conflict(one, two, self._decides(before))
        if isinstance(found, Conflict):
            self.things[thing] = self.things[other] = found
        else:
            del self.things[thing if found is one else other]

    def set_once(self, node: ast.AST, thing: str, value: Any, target: str = "") -> bool:
        """Notes a setting of which a run has one; whether it is new. The same target may be assigned anew."""
        before = self.things.get(thing)
        held = self.held(node, value, target)
        again = isinstance(before, Held) and bool(target) and before.target == target
        if before is None or again or (isinstance(before, Held) and before.value == value):
            self.things[thing] = held
        else:
            self.things[thing] = conflict(before, held, self._decides(before))
        return not isinstance(before, Held) or before.value != value

    def use_once(self, node: ast.AST, what: str, thing: str, value: Any, target: str = "") -> None:
        is_new = self.set_once(node, thing, value, target)
        self.tell(node, what, ONCE[thing][0].format(value) if is_new else "as before")

    def tell(self, node: ast.AST, what: str, became: str, is_assumed: bool = False) -> None:
        when = ", ".join(dict.fromkeys(fork.ways[number].when for fork, number in self.ways if fork.ways[number].when))
        self.told.append(Setting(line_of(node), what, became, is_assumed or bool(when) or AS_THE_RUN in became, when))

    def amend(self, told: int, became: str) -> None:
        """Says something else of what became of a setting."""
        self.told[told] = self.told[told]._replace(became=became, is_assumed=True)

    def error(self, node: ast.AST, message: str) -> ScriptError:
        return self.values.error(node, message)

    def or_given(self, node: ast.AST, thing: str, what: str, read: Callable[[], None]) -> None:
        """Reads a setting; what is no literal may stand beside an option of the command line that is in its place."""
        places = IN_PLACE_OF.get(thing, ())
        given = [option for option in places if option in self.given and not (option == "--mode" and SERVERS in self.given)]
        first = len(self.told)
        try:
            read()
        except NoLiteral as error:
            if not given or error.has_options:
                raise error.or_option(*places[:1]) from None
            self.tell(node, what, f"not read: {given[0]} is given")
            return
        for told in range(first, len(self.told) if given and thing not in REPLACED_IN_PART else first):
            self.amend(told, f"no effect: {given[0]} is given")
