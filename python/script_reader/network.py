"""Which network a script trains. It is built by code, which is not executed: an option of the command line says it."""

from __future__ import annotations

import json
import subprocess
from typing import Collection, List, Optional

from reader import Reader
from settings import Setting
from tables import NETWORKS, SHAPES
from values import ScriptError

#: What `hcclsim run` trains unless it is told otherwise.
_USUAL = "resnet50"


def network_of(reader: Reader, command: str, given: Collection[str]) -> List[Setting]:
    """What is said of the network, for people; nothing where an option says which it is. The last index of HCCL's split is
    that of the last gradient: raises ScriptError where the network has others, with those that fit. MindSpore's list may end
    before."""
    if not NETWORKS.isdisjoint(given):
        return []
    names = _names(command)
    mentioned = [name for name in names if _letters(name) in reader.words]
    told = f"{_USUAL}, as no option says which network is trained; --model NAME does"
    if mentioned:
        told += f", such as {', '.join(mentioned)}, which the script mentions"
    if reader.last_index is None or not SHAPES.isdisjoint(given):
        return [Setting(1, "network", told, True)]
    index, line, is_whole = reader.last_index
    usual = _gradients(command, _USUAL) or 0
    if usual == index + 1:
        return [Setting(line, "network", f"{told}; it has {index + 1} gradients, as the split says, which ends at index {index}", True)]
    if usual > index and not is_whole:  # the others are a segment of their own
        return [Setting(1, "network", told, True)]
    fitting = [name for name in names if _gradients(command, name) == index + 1]
    if _gradients(command, _USUAL, "--fc-bias=off") == index + 1:
        fitting.insert(0, f"{_USUAL} --fc-bias off")
    proposed = "no network of 'hcclsim models list' has as many; --gradients FILE takes those of another one"
    if fitting:
        proposed = f"networks with as many: {', '.join(f'--model {name}' for name in fitting)}"
    said = f"the split ends at index {index}, the last one of {index + 1} gradients{'' if is_whole else ' or more'}; {_USUAL} has {usual}"
    if is_whole:
        raise ScriptError(f"{reader.path}:{line}: {said}; {proposed}")
    return [Setting(line, "network", f"{told}; {said}; {proposed}", True)]


def _letters(name: str) -> str:
    return name.replace("-", "").replace("_", "")


def _names(command: str) -> List[str]:
    models = json.loads(_answer(command, "list") or '{"models": []}')["models"]
    return [model["name"] for model in models if ":" not in model["name"]]


def _gradients(command: str, name: str, *options: str) -> Optional[int]:
    """How many parameters a network has, each with a gradient; None: it has no such options."""
    answer = _answer(command, "show", name, *options)
    return None if answer is None else int(json.loads(answer)["parameter_tensors"])


def _answer(command: str, *words: str) -> Optional[str]:
    done = subprocess.run([command, "models", *words, "--format", "json"], capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else None
