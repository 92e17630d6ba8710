"""run, tune, search and measure: a simulation each, in the helper; typed results.

Keywords are the options of the command of the same name with "_" for "-": `--hcom-parallel on` is hcom_parallel=True.
Lists are lists, True and False are on and off, numbers of a time are seconds and of a bandwidth bytes per second; texts
are as the command takes them ("100us", "20GBps").
"""

from __future__ import annotations

import csv
import json
import os
import re
from pathlib import Path
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Type, TypeVar, Union, cast

from . import _core, description, errors, helper, hooks, nn, options, records, reports, results, searches, settings
from .powerSGD_hook import PowerSGDState

Result = TypeVar("Result", bound=records.Record)

# The file that rows of gradients are written to.
_gradients_name = "gradients.csv"

#: What gradients may be given as: a CSV file, or rows of (name, bytes, ready_s), as tuples or mappings.
Gradients = Union[str, "os.PathLike[str]", Iterable[Union[Tuple[str, int, float], Mapping[str, object]]]]


def call_with(
    words: Tuple[str, ...],
    arguments: Iterable[Union[str, "os.PathLike[str]"]],
    keywords: Mapping[str, object],
    kind: Type[records.Record] = records.Remarked,
    progress: Optional[helper.Progress] = None,
    folder: Optional[Path] = None,
) -> object:
    """Calls the command of these words with arguments and keywords. Returns its JSON as a `kind`, of a command without
    JSON its text. `folder` is a temporary one: files in it are named without it, and the command has its own there. Raises
    CheckFailed, which has the same as its result, if it found a difference."""
    command = options.command(*words)
    form = ["--format=json"] if command.has_format else []
    # A file may be called as an option is.
    behind = [f"./{argument}" if argument.startswith("-") else argument for argument in [os.fspath(one) for one in arguments]]
    given = command.arguments(keywords)
    try:
        finished = helper.call([*words, *given, *form, *behind], progress=progress, folder=folder)
    except errors.Error as failed:
        failed.message = command.in_keywords(failed.message, given)
        failed.result = _read(str(failed.result), [], kind, bool(form))
        raise
    output = finished.output if folder is None else finished.output.replace(f"{folder}/", "")
    found = _read(output, finished.remarks, kind, bool(form))
    if finished.status == 1:
        difference = errors.CheckFailed(f"{' '.join(words)} has found a difference", "check", 1)
        difference.result = found
        raise difference
    return found


def _read(output: str, remarks: List[str], kind: Type[records.Record], is_json: bool) -> object:
    """What a command printed; None for nothing, or JSON that an error cut short."""
    if not is_json:
        return output
    try:
        result = records.of_json(json.loads(output), kind)
    except ValueError:
        return None
    if isinstance(result, records.Remarked):
        object.__setattr__(result, "remarks", remarks)
    return result


def _with_settings(words: Tuple[str, ...], folder: Path, keywords: Mapping[str, Any], use_settings: bool) -> Dict[str, Any]:
    """The keywords over what the script has set, as far as the command takes it."""
    known = options.command(*words).by_keyword
    given = {key: value for key, value in keywords.items() if value is not None}
    chosen = settings.current.beside(given, folder) if use_settings else {}
    merged = {**{key: value for key, value in chosen.items() if key in known}, **given}
    inputs = merged.pop("inputs", ())
    if isinstance(merged.get("model"), nn.Cell):
        described = description.write(merged.pop("model"), inputs, folder)
        merged = {**{key: value for key, value in described.items() if key in known}, **merged}
    elif inputs != ():
        raise TypeError("inputs go with a Cell: run(model=cell, inputs=[Tensor(…)])")
    if merged.get("compress") is False:  # no hook, whatever was registered
        del merged["compress"]
    if "gradients" in merged and not isinstance(merged["gradients"], (str, os.PathLike)):
        merged["gradients"] = _gradients_file(folder, merged["gradients"])
    return merged


def _gradients_file(folder: Path, gradients: Any) -> Path:
    """Rows of (name, bytes, ready_s) in production order, or a DataFrame with these columns, as the CSV file that
    --gradients reads."""
    if hasattr(gradients, "to_dict") and hasattr(gradients, "columns"):
        gradients = gradients.to_dict("records")
    if not isinstance(gradients, Iterable):
        raise TypeError(f"gradients are a file, a DataFrame or rows of (name, bytes, ready_s), not {gradients!r}")
    several = list(gradients)
    if not several:
        raise TypeError("gradients must not be empty")
    path = folder / _gradients_name
    with open(path, "w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(("name", "bytes", "ready_s"))
        for number, row in enumerate(several):
            try:
                name, size, ready = (row["name"], row["bytes"], row["ready_s"]) if isinstance(row, Mapping) else row
                rows.writerow((name, int(size), repr(float(ready))))
            except (TypeError, ValueError, KeyError) as error:
                raise TypeError(f"gradient {number} must be (name, bytes, ready_s), not {row!r}: {error}") from None
    return path


def _of_rows(message: str, folder: Path) -> str:
    """A message about the file of gradients as one about the rows that it was written from, which count from 0."""
    file = re.escape(str(folder / _gradients_name))
    return re.sub(rf"{file}:(\d+)", lambda found: f"gradient {int(found[1]) - 2}", message)


def _simulate(
    words: Tuple[str, ...], kind: Type[Result], keywords: Mapping[str, Any], progress: Optional[helper.Progress], use_settings: bool
) -> Result:
    if progress is not None and not callable(progress):
        raise TypeError(f"progress must be a function of a text, not {progress!r}")
    with settings.Folder() as folder:
        merged = _with_settings(words, folder, keywords, use_settings)
        try:
            return cast(Result, call_with(words, [], merged, kind, progress, folder))
        except errors.Error as failed:
            failed.message = _of_rows(failed.message, folder)
            failed.message += settings.origins(failed.message, merged, keywords)
            raise


@options.of_command("run")
def run(
    *, progress: Optional[helper.Progress] = None, use_settings: bool = True, keep_gradients: bool = False, **keywords: Any
) -> results.RunResult:
    """Simulates training steps of a network on a platform; with numerics=True with real gradients.

    What the script has set before (splits, groups, contexts, hooks, init) counts where no keyword says otherwise, unless
    use_settings is False; compress=False is without the hook. `progress` gets a line of text some times per second, from
    another thread; what it raises ends the run. `gradients` also takes rows of (name, bytes, ready_s) in place of a file,
    and `model` a Cell (hcclsim.nn) with `inputs`, a list of Tensors.

    Returns a RunResult: step_time_s, trace (seconds since fp_start), segments, gradients, ranks, parallel, stages,
    hbm_peak_bytes, notes, and with numerics its losses; with keep_gradients also `reduced_gradients`, those of the last
    iteration: a dict by parameter of float32 arrays of the parameters' shapes, summed over micro-batches, reduced over
    replicas (their mean unless gradients_mean is False), before clipping and without loss scale. Raises TypeError for an
    unknown keyword, BadInput, SimulatedFailure, CheckFailed.
    """
    state = settings.current.hook_state
    with settings.Folder() as folder:
        chosen = dict(keywords)
        if keep_gradients and not chosen.get("save_gradients"):
            chosen["save_gradients"] = folder / "gradients"
        result = _simulate(("run",), results.RunResult, chosen, progress, use_settings)
        if keep_gradients:
            gradients = read_checkpoint(chosen["save_gradients"])["tensors"]["gradients"]
            object.__setattr__(result, "reduced_gradients", gradients)
    if isinstance(state, PowerSGDState) and use_settings and keywords.get("compress") is None:
        state.take(result)
    return result


@options.of_command("tune")
def tune(*, progress: Optional[helper.Progress] = None, use_settings: bool = True, **keywords: Any) -> searches.TuneResult:
    """Finds the best split of the gradients of a step, with its proof; in stages the best fusion; with `compress` the
    link speed below which compression pays. Keywords, settings and exceptions as of run()."""
    return _simulate(("tune",), searches.TuneResult, keywords, progress, use_settings)


@options.of_command("search")
def search(*, progress: Optional[helper.Progress] = None, use_settings: bool = True, **keywords: Any) -> searches.SearchResult:
    """Finds ways to spread a step over NPUs: mode="plan" over degrees of parallelism by simulation, others over
    strategies of operators. Keywords, settings and exceptions as of run()."""
    return _simulate(("search",), searches.SearchResult, keywords, progress, use_settings)


@options.of_command("collective")
def measure(
    collective: str = "allreduce", *, progress: Optional[helper.Progress] = None, use_settings: bool = True, **keywords: Any
) -> searches.Measurement:
    """Measures a collective at one or many sizes, and checks its results, as hccl_test does. `size` may be a list.

    Returns a Measurement: rows with bytes, time_s, algbw_Bps, busbw_Bps, algorithm, check. Raises as run() does.
    """
    with settings.Folder() as folder:
        merged = _with_settings(("collective",), folder, keywords, use_settings)
        sizes = merged.pop("size", None)
        several = options.is_list(sizes)
        if several and len(sizes) == 0:
            raise TypeError("size must not be empty")
        found = [
            cast(
                searches.Measurement,
                call_with(("collective",), [collective], {**merged, "size": size}, searches.Measurement, progress, folder),
            )
            for size in (sizes if several else [sizes])
        ]
    for one in found[1:]:
        found[0].rows.extend(one.rows)
        found[0].notes.extend(note for note in one.notes if note not in found[0].notes)
    return found[0]


@options.of_command("plan", "check")
def check_plan(*, use_settings: bool = True, **keywords: Any) -> reports.PlanCheck:
    """Proves that the plan of a step comes to an end: every message has its other end and nothing waits in a circle."""
    return _simulate(("plan", "check"), reports.PlanCheck, keywords, None, use_settings)


@options.of_command("plan", "show")
def show_plan(*, use_settings: bool = True, **keywords: Any) -> reports.Plan:
    """What the streams of every role do in a step: streams, tasks, groups."""
    return _simulate(("plan", "show"), reports.Plan, keywords, None, use_settings)


def segments(
    gradient_bytes: reports.Integers,
    by_size: Optional[Sequence[float]] = None,
    by_idx: Optional[Sequence[int]] = None,
    allow_many_segments: bool = False,
) -> reports.Cuts:
    """How HCCL cuts gradients, without a simulation.

    gradient_bytes: bytes of each gradient, in the order in which back-propagation produces them, as a list or an array;
    by_size: percentages of the bytes, by_idx: last gradient of each segment; by_size counts before by_idx, and without
    both the default is 96.54 and 3.46 percent. allow_many_segments: more than 8, the most that HCCL documents.

    Returns an array of uint32, shape (segments, 2): first and last gradient of each. Raises errors.SplitError for settings
    that HCCL refuses.
    """
    return _core.segments(cast(Sequence[int], gradient_bytes), by_size, by_idx, allow_many_segments)


def read_checkpoint(path: Union[str, "os.PathLike[str]"]) -> reports.Checkpoint:
    """What a checkpoint holds, or the gradients that run(save_gradients=...) has written.

    Returns a dict: model, iteration, seed, optimizer, optimizer_steps, loss_scale, iteration_ends_s (seconds, per NPU) and
    tensors, a dict by kind ("weights", "velocity", ... or "gradients") of dicts by parameter of float32 arrays of the
    parameters' shapes. Raises errors.CheckpointError for a file that is damaged or none.
    """
    return cast(reports.Checkpoint, _core.read_checkpoint(path))


class Training:
    """A training run whose keywords are chosen first: `model = Training(model="resnet50"); model.run()`.

    Stands where scripts have a DistributedDataParallel: register_comm_hook is a method of it.
    """

    def __init__(self, **keywords: Any) -> None:
        self.keywords = dict(keywords)
        self._hook: Optional[str] = None
        self._state: Any = None

    def register_comm_hook(self, state: Any, hook: Any) -> None:
        """Puts a hook in the place of this training's allreduces; raises as hcclsim.register_comm_hook does."""
        if self._hook is not None:
            raise RuntimeError("a communication hook is registered already; there can be one")
        self._hook = hooks.settings_of(state, hook)
        self._state = state

    def run(self, **keywords: Any) -> results.RunResult:
        """run() with the keywords of this training, and these over them."""
        chosen = {**self.keywords, **keywords}
        own = self._hook is not None and chosen.get("compress") is None
        result = run(**{**chosen, "compress": self._hook} if own else chosen)
        if own and isinstance(self._state, PowerSGDState):
            self._state.take(result)
        return result

    def tune(self, **keywords: Any) -> searches.TuneResult:
        """tune() with the keywords of this training, and these over them."""
        return tune(**{**self.keywords, **keywords})

