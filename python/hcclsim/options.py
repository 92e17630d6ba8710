"""Keywords of Python and options of the command, from the command's own table: `hcclsim options`."""

from __future__ import annotations

import difflib
import functools
import inspect
import json
import os
import re
import textwrap
from typing import Any, Callable, Dict, Iterable, List, Mapping, Sequence, Tuple, TypeVar, cast

import numpy

from . import errors, helper

Function = TypeVar("Function", bound=Callable[..., Any])

# What functions decide for themselves.
_of_functions = {"format", "help", "html"}


class Option:
    """An option or argument as the table has it."""

    def __init__(self, told: Mapping[str, Any]) -> None:
        self.names: List[str] = told["names"]
        self.is_argument: bool = told["argument"]
        self.is_flag: bool = told["flag"]
        self.several: bool = told["several"]
        self.required: bool = told["required"]
        self.value: str = told["value"]
        self.accepted: str = told["accepted"]
        self.default: str = told["default"]
        self.group: str = told["group"]
        self.help: str = told["help"]

    @property
    def name(self) -> str:
        """"--hcom-parallel", or the name of an argument."""
        return next(iter(self.long_names), self.names[0])

    @property
    def long_names(self) -> List[str]:
        """"--hcom-parallel" and its aliases."""
        return [name for name in self.names if name.startswith("--")]

    @property
    def keywords(self) -> List[str]:
        """hcom_parallel, one of each long name; a word of Python's has "_" after it: from_."""
        words = [name[2:].replace("-", "_") for name in self.long_names]
        return [word + "_" if word in ("from", "import", "class", "in", "global") else word for word in words]

    @property
    def is_switch(self) -> bool:
        """Whether its values are on and off."""
        return self.accepted == "on|off"

    def arguments(self, keyword: str, value: Any) -> List[str]:
        """The words of the command line; none for None, and for False of a flag. Raises TypeError."""
        if value is None:
            return []
        value = _plain(value)
        if self.is_flag:
            if not isinstance(value, bool):
                raise TypeError(f"{keyword} must be True or False, not {value!r}")
            return [self.name] if value else []
        if isinstance(value, Mapping) and self.value == "TARGET=VALUE":
            value = [f"{target}={_text(self, keyword, setting)}{_unit(target, setting)}" for target, setting in value.items()]
        if isinstance(value, Mapping) and not self.is_literal:
            value = [f"{key}={_text(self, keyword, item)}" for key, item in value.items()]
        if is_list(value) and not self.is_literal:
            texts = [_text(self, keyword, item) for item in value]
            if not texts:
                raise TypeError(f"{keyword} must not be empty")
            # Of several values each may have commas of its own.
            return [f"{self.name}={text}" for text in texts] if self.several else [f"{self.name}={','.join(texts)}"]
        text = _text(self, keyword, value)
        # Behind "=" an empty text would be taken for a missing one.
        return [f"{self.name}={text}"] if text else [self.name, ""]

    @property
    def is_literal(self) -> bool:
        """Whether its value is a literal of Python, as MindSpore's context has."""
        return self.group.startswith("MindSpore") and self.value == "VALUE"


def is_list(value: Any) -> bool:
    """Whether a value is several: a list, tuple, range or array."""
    return isinstance(value, Iterable) and not isinstance(value, (str, bytes, Mapping, os.PathLike))


def _unit(target: str, value: Any) -> str:
    """The unit of a number of a property, which is seconds or bytes per second."""
    units = {"latency": "s", "bandwidth": "Bps"}
    return "" if isinstance(value, (str, bool)) else units.get(target.rpartition(".")[2], "")


def _plain(value: Any) -> Any:
    """A number or bool of NumPy's as Python's."""
    return value.item() if isinstance(value, numpy.generic) or (isinstance(value, numpy.ndarray) and not value.ndim) else value


def _text(option: Option, keyword: str, value: Any) -> str:
    value = _plain(value)
    if isinstance(value, os.PathLike):
        return str(os.fspath(value))
    if isinstance(value, str):
        return value
    if option.is_literal:
        return repr(value)
    if isinstance(value, bool):
        if "on|off" in option.accepted or option.default in ("on", "off"):
            return "on" if value else "off"
        if not value and option.default == "none":
            return "none"
        raise TypeError(f"{keyword} cannot be {value}; accepted: {option.accepted or option.value}")
    if isinstance(value, (int, float)):
        return repr(value) + {"TIME": "s", "SPEED": "Bps"}.get(option.value, "")
    raise TypeError(f"{keyword} cannot be {value!r}")


#: Functions that have another name than their command.
_functions = {
    ("collective",): "measure",
    ("plan", "check"): "check_plan",
    ("plan", "show"): "show_plan",
    ("schedule", "run"): "schedule.execute",
    ("models", "show"): "networks.show",
    ("models", "list"): "networks.listing",
}


class Command:
    """A command of hcclsim, such as ("schedule", "check")."""

    def __init__(self, words: Tuple[str, ...], told: Mapping[str, Any]) -> None:
        self.words = words
        self.help: str = told["help"]
        self.options = [Option(option) for option in told["options"]]
        self.by_keyword: Dict[str, Option] = {}
        for option in self.options:
            if option.is_argument or option.name[2:] in _of_functions:
                continue
            for keyword in option.keywords:
                self.by_keyword[keyword] = option

    @property
    def has_format(self) -> bool:
        """Whether it prints JSON when asked to."""
        return any(option.name == "--format" for option in self.options)

    def arguments(self, keywords: Mapping[str, Any]) -> List[str]:
        """Words behind the command's name. Raises TypeError for a keyword that it does not have."""
        for keyword in keywords:
            self.option(keyword)
        given = self.chosen(keyword for keyword, value in keywords.items() if value is not None)
        return [word for option, keyword in given.items() for word in option.arguments(keyword, keywords[keyword])]

    def chosen(self, keywords: Iterable[str]) -> Dict[Option, str]:
        """The options that keywords stand for. Raises TypeError for one that it does not have, and for two names of one."""
        chosen: Dict[Option, str] = {}
        for keyword in keywords:
            other = chosen.setdefault(self.option(keyword), keyword)
            if other != keyword:
                raise TypeError(f"{other} and {keyword} are the same; give one of them")
        return chosen

    def option(self, keyword: str) -> Option:
        """The option that a keyword stands for. Raises TypeError if there is none."""
        found = self.by_keyword.get(keyword)
        if found is None:
            near = self._near(keyword)
            meant = f"; did you mean {near}?" if near else ""
            raise TypeError(f"{self.function}() has no keyword {keyword!r}{meant}")
        return found

    def _near(self, keyword: str) -> str:
        """A keyword that may have been meant: of one word more, as global_batch of batch, with the same letters, or spelt
        alike; "" without one."""
        longer = [one for one in self.by_keyword if keyword in one.split("_")]
        turned = [one for one in self.by_keyword if sorted(one) == sorted(keyword)]
        near = difflib.get_close_matches(keyword, longer, 1, 0) or turned or difflib.get_close_matches(keyword, self.by_keyword, 1)
        return near[0] if near else ""

    @property
    def function(self) -> str:
        """Its name in this package: "measure", "schedule.time"."""
        return _functions.get(self.words, ".".join(self.words))

    def in_keywords(self, message: str, arguments: Sequence[str] = ()) -> str:
        """A message of the command in words of Python: "hcom_parallel" for "--hcom-parallel", "numerics=True" for
        "--numerics", and help() for --help. Values in `arguments` stay as they are."""
        words = {name: self._in_python(option, name) for option in self.options for name in option.long_names}
        own = {value for value in (argument.partition("=")[2] for argument in arguments) if "--" in value}
        texts = sorted({f"'{text}'" if text in words else text for text in own}, key=len, reverse=True)
        pattern = "|".join([*(re.escape(text) for text in texts), r"(?<![\w-])--[a-z][a-z0-9-]*"])
        told = re.sub(pattern, lambda found: words.get(found[0], found[0]), message)
        return re.sub(r"See 'hcclsim [a-z ]+ --help'\.", f"See help(hcclsim.{self.function}).", told)

    def _in_python(self, option: Option, name: str) -> str:
        """What stands for an option of the command in Python; the command itself where no keyword does."""
        keyword = dict(zip(option.long_names, option.keywords))[name]
        if keyword not in self.by_keyword:
            return name if name == "--help" else f"hcclsim {' '.join(self.words)} {name}"
        return f"{keyword}=True" if option.is_flag else keyword


@functools.lru_cache(maxsize=None)
def _table(_path: str) -> Mapping[str, Any]:
    return cast(Mapping[str, Any], json.loads(helper.call(["options"]).output))


def command(*words: str) -> Command:
    """The command of these words."""
    told = _table(helper.command_path())
    for word in words:
        told = next(one for one in told["commands"] if one["name"] == word)
    return Command(words, told)


def signature(of: Command, first: Sequence[inspect.Parameter] = ()) -> inspect.Signature:
    """The signature that help() shows: `first`, then a keyword for each option."""
    parameters = list(first)
    taken = {parameter.name for parameter in first}
    for option in of.options:
        keyword = option.keywords[0] if option.keywords else ""
        if option.is_argument or keyword in taken or keyword not in of.by_keyword:
            continue
        parameters.append(inspect.Parameter(keyword, inspect.Parameter.KEYWORD_ONLY, default=None))
        taken.add(keyword)
        if keyword == "model":  # which may be a Cell with inputs
            parameters.append(inspect.Parameter("inputs", inspect.Parameter.KEYWORD_ONLY, default=()))
    return inspect.Signature(parameters)


def keyword_docs(of: Command) -> str:
    """A line or two per keyword, in the groups of the command's help."""
    groups: Dict[str, List[str]] = {}
    for option in of.options:
        if option.is_argument or not option.keywords or option.keywords[0] not in of.by_keyword:
            continue
        takes = "bool" if option.is_flag or option.is_switch else option.accepted or option.value
        default = f" [{option.default}]" if option.default else ""
        lines = textwrap.wrap(f"{', '.join(option.keywords)}: {takes}{default}. {option.help}", 110, subsequent_indent="        ")
        groups.setdefault(option.group, []).append("\n".join("    " + line for line in lines))
    return "\n\n".join(f"{group}:\n" + "\n".join(lines) for group, lines in groups.items())


def of_command(*words: str) -> Callable[[Function], Function]:
    """Decorator of functions that take the options of a command as keywords: help() shows all of them."""

    def document(function: Function) -> Function:
        try:
            described = command(*words)
        except (OSError, errors.Error):  # who calls it will be told that there is no command
            return function
        named = [one for one in inspect.signature(function).parameters.values() if one.kind is not one.VAR_KEYWORD]
        setattr(function, "__signature__", signature(described, named))
        function.__doc__ = f"{inspect.cleandoc(function.__doc__ or '')}\n\n{keyword_docs(described)}"
        return function

    return document
