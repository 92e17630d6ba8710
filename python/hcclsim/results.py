"""Results with their fields and types: what docs/formats.md describes, as records.

A field that a run does not have is absent from the record, as from the JSON: `"stages" in result`. Units stand in the names.
"""

from __future__ import annotations

from typing import Dict, List, Optional

import numpy
import numpy.typing

from .records import Record, Records, Remarked

Floats = numpy.typing.NDArray[numpy.float64]


class Segment(Record):
    """A run of gradients that one allreduce carries; `first` and `last` are numbers in production order."""

    first: int
    last: int
    tensors: int
    bytes: int
    share: float
    ready_s: float
    start_s: float
    end_s: float
    algorithm: str
    algbw_Bps: float
    busbw_Bps: float
    hidden: float
    limited_by: Optional[str]
    parameters: List[List[int]]


class Span(Record):
    """From a start to an end."""

    start_s: float
    end_s: float


class TracePoints(Record):
    """Dates of an iteration on a rank, in seconds since fp_start."""

    fp_start_s: float
    fp_end_s: float
    bp_start_s: float
    bp_end_s: float
    allreduce: Records[Span]
    iteration_end_s: float


class Gradient(Record):
    """A gradient in production order, and when it is there."""

    index: int
    name: str
    bytes: int
    ready_s: float


class RankPhases(Record):
    """Phases of the ranks from `first` to `last`, which are alike."""

    first: int
    last: int
    step_time_s: float
    bp_end_s: float
    communication_start_s: Optional[float]
    communication_end_s: Optional[float]
    exposed_communication_s: float


class Effect(Record):
    """The step at both ends of the range of one assumption."""

    assumption: str
    fast_s: float
    slow_s: float


class Range(Record):
    """Of a time over what is assumed."""

    fastest_s: float
    slowest_s: float
    effects: Records[Effect]


class Exposed(Record):
    """Time in which computing waits, by what it waits for."""

    messages: float
    gradients: float
    weights: float
    checks: float
    results: float
    operators: float


class Memory(Record):
    """HBM of an NPU at its peak, in bytes."""

    weights: int
    gradients: int
    optimizer: int
    activations: int
    gathered: int
    buffers: int
    compression: int


class Stage(Record):
    """A stage of a pipeline."""

    stage: int
    ranks: List[int]
    layers: List[int]
    step_s: float
    compute_s: float
    bubble_s: float
    host_s: float
    wait_s: float
    exposed_s: Exposed
    ideal_bubble_s: float
    live_cells: int
    hbm_peak_bytes: int
    hbm: Memory


class Parallel(Record):
    """How a step is spread over NPUs."""

    data: int
    model: int
    stages: int
    micro_batches: int
    micro_batch_size: int
    chunks: int
    schedule: str
    fusion: str
    optimizer_parallel: str
    shard_ranks: int
    ideal_step_s: float
    input_bytes_per_rank: int
    input_bytes: int


class Throughput(Record):
    """Samples, tokens and model FLOPs per second; `mfu` and `hfu` are parts of `peak_flops`."""

    samples_per_s: float
    tokens_per_s: float
    mfu: float
    hfu: float
    peak_flops: float
    peak_dtype: str


class Folded(Record):
    """Ranks that were simulated for all that are alike."""

    classes: int
    ranks_simulated: int


class Iteration(Record):
    """A step with real gradients."""

    iteration: int
    loss: float
    accuracy: float
    gradient_norm: float
    learning_rate: float
    loss_scale: Optional[float]
    overflow: bool
    skipped: bool
    step_time_s: float
    compression_error: Optional[float]
    plain_loss: Optional[float]


class Numerics(Record):
    """A training with real gradients."""

    timed_shape: str
    computed_shape: str
    dtype: str
    data: str
    seed: int
    saved: Optional[str]
    failure: Optional[str]
    diverged_iteration: Optional[int]
    requested_iterations: int
    iterations: Records[Iteration]


class CompressionStats(Record):
    """As PowerSGDState.compression_stats() of PyTorch, in elements."""

    rate: float
    before: int
    after: int


class Compression(Record):
    """What a hook does to a step."""

    settings: str
    start: int
    elements_before: int
    elements_after: int
    bytes_before: int
    bytes_after: int
    rate: float
    plain_step_s: float
    compressed_step_s: float
    saved_s: float
    plain_iterations: int
    compressed_iterations: int
    compression_stats: CompressionStats
    hbm_bytes: Dict[str, int]


class RunResult(Remarked):
    """A training step, simulated."""

    model: str
    platform: str
    npus: int
    batch: int
    rank: int
    iterations: int
    framework: str
    network: str
    step_time_s: float
    images_per_s: float
    compute_s: float
    exposed_communication_s: float
    free_s: float
    hbm_peak_bytes: int
    trace: TracePoints
    segments: Records[Segment]
    gradients: Records[Gradient]
    ranks: Records[RankPhases]
    parallel: Parallel
    stages: Records[Stage]
    throughput: Throughput
    uncertainty: Range
    folded: Folded
    compression: Compression
    numerics: Optional[Numerics]

    #: With run(keep_gradients=True): the reduced gradients of the last iteration, by parameter.
    reduced_gradients: Dict[str, numpy.typing.NDArray[numpy.float32]]

    def losses(self) -> Floats:
        """Mean loss of every iteration with real gradients, shape (iterations,), float64. Raises ValueError without."""
        numerics = self.get("numerics")
        if not isinstance(numerics, Numerics):
            raise ValueError("this run has no real gradients: run(numerics=True)")
        return numerics.iterations.column("loss")

    def ready_times_s(self) -> Floats:
        """Seconds since fp_start at which each gradient is there, shape (gradients,), in production order."""
        return self.gradients.column("ready_s")

    def _headline(self) -> str:
        return f"{self.get('model')} on {self.get('npus')} NPUs of {self.get('platform')}: {1e3 * self.step_time_s:.3f} ms per step"


class Split(Record):
    """A split of gradients by the last index of each segment, and its times."""

    name: str
    by_idx: Optional[List[int]]
    by_size: List[float]
    segments: int
    finish_s: float
    exposed_s: float
    step_s: Optional[float]
    simulated_finish_s: Optional[float]
    simulated_step_s: Optional[float]
    bound_s: float
    gap: float


class TuneResult(Remarked):
    """The best split of a step's gradients, and what else was tried."""

    model: str
    platform: str
    npus: int
    gradients: int
    bytes: int
    objective: str
    best: Split
    best_by_cost: Split
    strategies: Records[Split]
    by_segments: Records[Split]
    sensitivity: Records[Record]


class FoundPlan(Record):
    """A plan of a search: degrees of parallelism, and what they come to."""

    command: str
    step_time_s: Optional[float]
    bound_s: float
    hbm_peak_bytes: int
    data: int
    model: int
    stages: int
    chunks: int
    micro_batches: int
    micro_batch_size: int
    recompute: str
    optimizer_parallel: str


class SearchResult(Remarked):
    """The outcome of a search of strategies or of plans."""

    mode: str
    model: str
    platform: str
    npus: int
    plans: int
    simulated: int
    step_time_s: Optional[float]
    pareto: Records[FoundPlan]
    strategies: Records[Record]


class MeasuredRow(Record):
    """A collective at one size."""

    op: str
    ranks: int
    bytes: int
    dtype: str
    time_s: float
    algbw_Bps: float
    busbw_Bps: float
    algorithm: str
    formula_s: Optional[float]
    bound_s: float
    limited_by: Optional[str]
    check: str
    uncertainty: Range


class Measurement(Remarked):
    """A collective at one or many sizes."""

    platform: str
    npu: str
    launch: str
    warmups: int
    iterations: int
    rows: Records[MeasuredRow]
