"""Writes stubs of functions whose keywords are options of the command, and of errors: make_stubs.py PACKAGES.

Every keyword gets the type of its values, and every kind of error has its class, so that editors complete and check
calls; the rest of the packages is typed in its sources.
"""

import ast
import json
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List

NUMBER = "int | float"


def type_of(option: Dict[str, Any]) -> str:
    """The type of a keyword's values."""
    accepted = option["accepted"]
    if option["flag"]:
        return "bool"
    if accepted in ("on|off", "on|off|True|False"):
        return "bool | str"
    # A capital alone stands for a value: "F|dropless".
    if "|" in accepted and all(word and word[0].isalnum() and not (len(word) == 1 and word.isupper()) for word in accepted.split("|")):
        words = ", ".join(repr(word) for word in accepted.split("|"))
        return f"Literal[{words}]"
    if option["group"].startswith("MindSpore"):
        return "object"
    kinds = ["str"]
    if option["names"] == ["--gradients"]:
        kinds.append("Iterable[Tuple[str, int, float] | Mapping[str, object]]")
    if option["names"] == ["--model"]:
        kinds.append("nn.Cell")
    if option["file"] or option["value"] in ("FILE", "DIR"):
        kinds.append("os.PathLike[str]")
    if ".." in accepted or option["value"] in ("TIME", "SPEED", "UINT", "N", "COUNT"):
        kinds.append(NUMBER)
    if option["value"] == "LIST" or option["several"] or option["value"].endswith(",..."):
        kinds.append("Sequence[object]")
    if option["value"] == "TARGET=VALUE":
        kinds.append("Mapping[str, object]")
    return " | ".join(kinds)


def keywords_of(command: Dict[str, Any], taken: List[str]) -> List[str]:
    """Lines of the parameters of a function, for each name of an option."""
    lines = []
    for option in command["options"]:
        if option["argument"] or any(name in ("--format", "--html") for name in option["names"]):
            continue
        for name in option["names"]:
            word = name[2:].replace("-", "_")
            if not name.startswith("--") or word in taken:
                continue
            if word in ("from", "import", "class", "in", "global"):
                word += "_"
            lines.append(f"    {word}: {type_of(option)} | None = ...,")
            taken.append(word)
            if word == "model":
                lines.append("    inputs: nn.Tensor | Iterable[nn.Tensor] = ...,")
    return lines


def stub_of_function(node: ast.FunctionDef, command: Dict[str, Any]) -> List[str]:
    """Its own parameters, then a keyword per option."""
    own = [ast.unparse(argument) for argument in node.args.args]
    own = [f"{text} = ..." if number >= len(own) - len(node.args.defaults) else text for number, text in enumerate(own)]
    lines = [f"def {node.name}("]
    lines += [f"    {text}," for text in own]
    lines.append(f"    *{ast.unparse(node.args.vararg)}," if node.args.vararg else "    *,")
    lines += [f"    {ast.unparse(argument)} = ..., " .rstrip() for argument in node.args.kwonlyargs]
    taken = [argument.arg for argument in (*node.args.args, *node.args.kwonlyargs)]
    lines += keywords_of(command, taken)
    lines.append(f") -> {ast.unparse(node.returns)}: ...")
    return lines


def command_words(node: ast.FunctionDef) -> List[str]:
    """The words of @options.of_command("plan", "check"); empty without."""
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "options.of_command":
            return [ast.literal_eval(argument) for argument in decorator.args]
    return []


def stub_of_class(node: ast.ClassDef) -> List[str]:
    """Methods with their types."""
    bases = f"({', '.join(ast.unparse(base) for base in node.bases)})" if node.bases else ""
    lines = [f"class {node.name}{bases}:"]
    for item in node.body:
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            lines.append(f"    {item.target.id}: {ast.unparse(item.annotation)}")
        if isinstance(item, ast.FunctionDef) and item.name == "__init__":
            for line in ast.walk(item):
                if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Attribute):
                    lines.append(f"    {line.target.attr}: {ast.unparse(line.annotation)}")
        if isinstance(item, ast.FunctionDef) and (not item.name.startswith("_") or item.name == "__init__"):
            item.body = [ast.Expr(ast.Constant(...))]
            lines += ["    " + line for line in ast.unparse(item).splitlines()]
    return [*lines, ""] if len(lines) > 1 else [f"{lines[0]} ...", ""]


def stub_of_errors(package: Path) -> str:
    """The stub of hcclsim.errors: its classes and functions, and a class for each kind that has none of its own."""
    errors = runpy.run_path(str(package / "errors.py"))
    own = stub_of_module(ast.parse((package / "errors.py").read_text(encoding="utf-8")), {})
    kinds = sorted(one.__name__ for one in errors["_by_kind"].values())
    return own + "".join(f"class {name}(Error): ...\n" for name in kinds if f"class {name}(" not in own)


def stub_of(path: Path, table: Dict[str, Any]) -> str:
    """The stub of a module; empty if no function of it has a command's keywords."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    if not any(isinstance(node, ast.FunctionDef) and command_words(node) for node in tree.body):
        return ""
    return stub_of_module(tree, table)


def stub_of_module(tree: ast.Module, table: Dict[str, Any]) -> str:
    typing = "Callable, Dict, Iterable, List, Literal, Mapping, Optional, Sequence, Tuple, Type, TypeVar, Union"
    lines = ["import os", "from pathlib import Path", f"from typing import {typing}", ""]
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.level:
            lines.append(ast.unparse(node))
        elif isinstance(node, ast.Assign) and not ast.unparse(node.targets[0]).startswith("_"):
            lines.append(ast.unparse(node))
        elif isinstance(node, ast.ClassDef):
            lines += ["", *stub_of_class(node)]
        elif isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            words = command_words(node)
            if words:
                command = table
                for word in words:
                    command = next(one for one in command["commands"] if one["name"] == word)
                lines += ["", *stub_of_function(node, command)]
            else:
                node.body = [ast.Expr(ast.Constant(...))]
                node.decorator_list = []
                lines += ["", ast.unparse(node)]
    # Who calls may give anything there, and gets what must be looked at.
    return re.sub(r"\bAny\b", "object", "\n".join(lines)) + "\n"


def main() -> None:
    package = Path(sys.argv[1]) / "hcclsim"
    table = json.loads(subprocess.run([os.environ["HCCLSIM_COMMAND"], "options"], check=True, capture_output=True).stdout)
    for path in sorted(package.glob("*.py")):
        stub = stub_of(path, table)
        if stub:
            path.with_suffix(".pyi").write_text(stub, encoding="utf-8")
    (package / "errors.pyi").write_text(stub_of_errors(package), encoding="utf-8")
    (package / "_core.pyi").write_text(CORE, encoding="utf-8")


CORE = '''import os
from typing import Dict, List, Optional, Sequence, Union

import numpy
import numpy.typing

class AutoParallelContext:
    def __init__(self, compat: bool = ...) -> None: ...
    def set(self, key: str, value: object) -> None: ...
    def get(self, key: str) -> object: ...
    def read(self, key: str) -> object: ...
    def is_set(self, key: str) -> bool: ...
    def reset(self) -> None: ...
    def set_graph_mode(self, graph_mode: bool) -> None: ...
    def set_device_target(self, target: str) -> None: ...
    @property
    def graph_mode(self) -> bool: ...
    @property
    def device_target(self) -> str: ...
    @property
    def keys(self) -> List[str]: ...
    @property
    def warnings(self) -> List[str]: ...

def segments(
    gradient_bytes: Sequence[int],
    by_size: Optional[Sequence[float]] = ...,
    by_idx: Optional[Sequence[int]] = ...,
    allow_many_segments: bool = ...,
) -> numpy.typing.NDArray[numpy.uint32]: ...
def check_compression(text: str) -> str: ...
def read_checkpoint(path: Union[str, os.PathLike[str]]) -> Dict[str, object]: ...
'''

if __name__ == "__main__":
    main()
