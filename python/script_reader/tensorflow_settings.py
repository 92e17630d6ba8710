"""TensorFlow's settings for Ascend: the NpuOptimizer, NPURunConfig, and the profiling of both."""

from __future__ import annotations

import ast
import difflib
import json
from typing import Any, List, Optional

from held import counting
from settings import Settings
from tables import FIELDS, NO_EFFECT, PARAMETERS, PROFILING_KEYS, REWRITING_OFF
from values import ScriptError


class TensorFlow:
    """Reads assignments of parameters and of rewrite options, and NPURunConfig."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        #: Where training_trace is to be written; None: it is not wanted.
        self.output: Optional[str] = None

    def assigned(self, target: ast.Attribute, node: ast.expr) -> None:
        owner = self._settings.values.resolved(target.value)
        if isinstance(owner, ast.Subscript) and self._settings.values.last_name(owner.value) == "parameter_map":
            what = f"{ast.unparse(target)} = {ast.unparse(node)}"
            self._settings.or_given(target, "parameter_map", what, lambda: self._assigned_parameter(target, owner, node))
        elif target.attr in REWRITING_OFF and self._settings.values.last_name(owner) == "rewrite_options":
            name = self._settings.values.last_name(node)
            accepted = REWRITING_OFF[target.attr]
            if name not in accepted:
                told = " or ".join(f"RewriterConfig.{one}" for one in accepted)
                raise self._settings.error(target, f"rewrite_options.{target.attr} must be {told} on Ascend, it is {name or ast.unparse(node)}")
            self._settings.tell(target, f"rewrite_options.{target.attr} = {name}", "as Ascend needs it")

    def _assigned_parameter(self, target: ast.Attribute, owner: ast.Subscript, node: ast.expr) -> None:
        key = self._settings.values.literal(owner.slice, "the key of parameter_map")
        what = f'parameter_map["{key}"] = {ast.unparse(node)}'
        if key in NO_EFFECT:
            self._settings.tell(target, what, f"no effect: {NO_EFFECT[key]}")
        else:
            self._settings.or_given(target, str(key), what, lambda: self._parameter(target, key, node))

    def _parameter(self, target: ast.Attribute, key: Any, node: ast.expr) -> None:
        if key not in PARAMETERS:
            near = difflib.get_close_matches(str(key), [*PARAMETERS, *NO_EFFECT], 1, 0.8)
            if near:
                raise self._settings.error(target, f"the NpuOptimizer has no {key!r} that is known here; did you mean {near[0]}?")
            self._settings.tell(target, f'parameter_map["{key}"] = {ast.unparse(node)}', "no effect: not known here")
            return
        value = self._settings.values.literal(node, f'parameter_map["{key}"]')
        name = ast.unparse(target)
        if key == "hcom_parallel":
            self._hcom_parallel(target, value, name)
        elif key == "profiling_mode":
            on = self._settings.truth(target, key, value)
            self._settings.set_once(target, key, on, name)
            self._settings.tell(target, f'parameter_map["{key}"] = {value!r}', "" if on else "no trace is written")
        else:
            self._profiling(target, value, name)
        field = FIELDS.get(type(value), target.attr)
        if field != target.attr:
            raise self._settings.error(target, f'parameter_map["{key}"]: {value!r} is set by .{field}, not by .{target.attr}')

    def _hcom_parallel(self, node: ast.AST, value: Any, target: str = "") -> None:
        on = self._settings.truth(node, "hcom_parallel", value)
        self._settings.use_once(node, f"hcom_parallel = {value}", "hcom_parallel", "on" if on else "off", target)

    def _profiling(self, node: ast.AST, value: Any, target: str = "") -> None:
        try:
            text = value.decode() if isinstance(value, bytes) else value
            told = json.loads(text)
        except (TypeError, ValueError) as error:
            raise self._settings.error(node, f"profiling_options is no JSON: {error}") from None
        if not isinstance(told, dict):
            raise self._settings.error(node, "profiling_options must be a JSON object")
        for key, item in told.items():
            if key not in PROFILING_KEYS:
                raise self._settings.error(node, f"profiling_options has no {key!r} that is known here")
            if not isinstance(item, str):
                raise self._settings.error(node, f"profiling_options: {key} must be a text, not {item!r}")
            if key == "training_trace" and item not in ("on", "off"):
                raise self._settings.error(node, f'profiling_options: {key} must be "on" or "off", not {item!r}')
        self._settings.set_once(node, "profiling_options", told, target)
        self._settings.tell(node, f"profiling_options = {text}", "")

    def run_config(self, node: ast.Call) -> None:
        for keyword in node.keywords:
            what = f"NPURunConfig({keyword.arg}={ast.unparse(keyword.value)})"
            value = keyword.value
            if keyword.arg == "hcom_parallel":
                read = lambda: self._hcom_parallel(node, self._settings.values.literal(value, "hcom_parallel"))
                self._settings.or_given(node, "hcom_parallel", what, read)
            elif keyword.arg == "profiling_config":
                self._settings.or_given(node, "profiling_options", what, lambda: self._profiling_config(value))
            else:
                name = keyword.arg or "**"
                self._settings.tell(node, f"NPURunConfig({name}=…)", f"no effect: {NO_EFFECT.get(name, 'not read')}")

    def _profiling_config(self, node: ast.expr) -> None:
        call = self._settings.values.resolved(node)
        if not isinstance(call, ast.Call) or self._settings.values.last_name(call.func) != "ProfilingConfig":
            raise self._settings.values.no_literal(node, "profiling_config must be a ProfilingConfig(…) of this script")
        enabled, told = self._settings.literals(call, ("enable_profiling", "profiling_options"), {"profiling_options": None})
        on = self._settings.truth(call, "enable_profiling", enabled)
        self._settings.set_once(call, "profiling_mode", on)
        self._settings.tell(call, f"enable_profiling = {enabled}", "" if on else "no trace is written")
        if told is not None:
            self._profiling(call, told)

    def options(self) -> List[str]:
        """Options for the points of the iteration trace, and self.output. Raises ScriptError."""
        options: List[str] = []
        on, told = (
            counting(self._settings.things, thing, self._settings.values, ("--step-trace",)) if thing in self._settings.things else None
            for thing in ("profiling_mode", "profiling_options")
        )
        if not on or told is None:
            return options
        if told.get("training_trace") == "on":
            if not told.get("output"):
                raise ScriptError(f"{self._settings.values.path}: training_trace is on, but profiling_options has no output")
            self.output = told["output"]
        for key, option in (("fp_point", "--fp-point"), ("bp_point", "--bp-point")):
            if told.get(key):
                options.append(f"{option}={told[key]}")
        return options
