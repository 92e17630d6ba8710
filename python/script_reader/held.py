"""What a script has set, thing by thing, on the way through it that is being read."""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, NamedTuple, Sequence, Tuple, Union

from branches import Fork, hint
from values import ScriptError, Values


class Held(NamedTuple):
    """The value of a thing, and where it was set. An error stands for a value that is not read: it is raised if it counts."""

    value: Any
    line: int
    #: The target of the assignment, which may be assigned anew.
    target: str = ""
    #: The forks around it, each with the number of its way.
    ways: Tuple[Tuple[int, int], ...] = ()
    #: The command line names a line of its way.
    chosen: bool = False


class Conflict(NamedTuple):
    """Values of a thing of which one counts, and nobody knows which."""

    text: str
    line: int
    #: The options that decide; "": only an option in the place of the thing does.
    hint: str


#: Things, in the order in which they were set.
Things = Dict[str, Union[Held, Conflict]]


class Reset:
    """The value of what is reset: as if it had not been set."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reset)

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "reset"


def reset(things: Things, kind: str, held: Held) -> Things:
    """Things behind a reset of a kind, which is a setting like others."""
    return {**{thing: setting for thing, setting in things.items() if _kind(thing) != kind}, _reset_of(kind): held}


def _reset_of(kind: str) -> str:
    return f"{kind}: reset"


def keys(things: Things, kind: str) -> List[str]:
    """What is set of a kind: "server_num" of "set_ps_context: server_num"."""
    told = {thing: setting for thing, setting in things.items() if not isinstance(setting, Held) or not isinstance(setting.value, Reset)}
    return [thing[len(kind) + 2 :] for thing in told if thing.startswith(f"{kind}: ")]


def conflict(one: Union[Held, Conflict, None], other: Union[Held, Conflict, None], told: str) -> Union[Held, Conflict]:
    """Two settings that contradict each other: one that the command line chose counts."""
    if isinstance(one, Conflict) or isinstance(other, Conflict):
        return one if isinstance(one, Conflict) else other  # type: ignore[return-value]
    places = [setting for setting in (one, other) if setting is not None]
    chosen = [setting for setting in places if setting.chosen]
    if len(chosen) == 1:
        return chosen[0]
    if len(places) == 1:
        return Conflict(f"{_shown(places[0].value)} in line {places[0].line} and not set in another branch", places[0].line, told)
    first, second = sorted(places, key=lambda setting: setting.line)
    return Conflict(
        f"{_shown(first.value)} in line {first.line} and {_shown(second.value)} in line {second.line}", second.line, told
    )


def sets_anything(before: Things, after: Things) -> bool:
    """Whether something was set between two places of a way."""
    return any(setting is not before.get(thing) for thing, setting in after.items())


def merged(before: Things, after: Sequence[Things], fork: Fork, may_pass: bool) -> Things:
    """What is set behind a fork, of whose ways one is taken, or none where `may_pass`. A way that sets nothing of a kind is
    as if another one was taken: what stands under a condition counts."""
    result: Things = {}
    for kind in dict.fromkeys(_kind(thing) for things in (before, *after) for thing in things):
        of_kind = [{thing: setting for thing, setting in things.items() if _kind(thing) == kind} for things in (before, *after)]
        result.update(_merged_kind(kind, of_kind[0], of_kind[1:], fork, may_pass))
    return result


def _kind(thing: str) -> str:
    """Of "set_ps_context: server_num" what comes first."""
    return thing.split(":")[0]


def _merged_kind(kind: str, before: Things, after: Sequence[Things], fork: Fork, may_pass: bool) -> Things:
    ways = [things for things in after if sets_anything(before, things)]
    if not ways:
        return before
    result = dict(ways[0])
    for things in ways[1:]:
        result = _joined(kind, result, things, {**result, **things}, hint(fork))
        # Options that decide between these ways come first: they may rule out those of inner ones.
        for thing, setting in result.items():
            if isinstance(setting, Conflict) and setting is not before.get(thing):
                result[thing] = setting._replace(hint=hint(fork) or setting.hint)
    if may_pass or len(ways) < len(after):
        result = _joined(kind, result, before, before, hint(fork))
    return result


def _joined(kind: str, first: Things, second: Things, over: Iterable[str], told: str) -> Things:
    """What is set after one of two ways, which contradict each other in some of the things `over`."""
    marker = _reset_of(kind)
    result = {**first, **{thing: setting for thing, setting in second.items() if thing == marker}}
    for thing in over:
        one, other = (things.get(thing, things.get(marker)) for things in (first, second))
        if thing != marker and not _same(one, other):
            result[thing] = conflict(one, other, told)
    return result


def counting(things: Things, thing: str, values: Values, options: Sequence[str]) -> Any:
    """The value of a thing that is set. Raises ScriptError where settings contradict each other; `options` of the command
    line are in its place."""
    setting = things[thing]
    if isinstance(setting, Held):
        if isinstance(setting.value, ScriptError):
            raise setting.value
        return setting.value
    decide = ", or ".join(text for text in (setting.hint, " or ".join(options)) if text)
    raise values.error_in(setting.line, f"{thing} is {setting.text}; give {decide}")


def _same(one: Union[Held, Conflict, None], other: Union[Held, Conflict, None]) -> bool:
    if isinstance(one, Held) and isinstance(other, Held):
        if isinstance(one.value, ScriptError) and isinstance(other.value, ScriptError):
            return True  # neither is read
        return type(one.value) is type(other.value) and bool(one.value == other.value)
    return one is other


def _shown(value: Any) -> str:
    return "no literal" if isinstance(value, ScriptError) else str(value) if isinstance(value, str) else repr(value)
