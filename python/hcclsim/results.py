"""The result of run() with its fields and types: what docs/formats.md describes, as records.

A field that a run does not have is absent from the record, as from the JSON: `"stages" in result`. Units stand in the names.
"""

from __future__ import annotations

from typing import Dict, List, Optional

import numpy
import numpy.typing

from .details import (
    Advice,
    Baseline,
    Checkpoints,
    CommReuse,
    Eager,
    Event,
    Explanation,
    Failure,
    Faults,
    Folded,
    Goodput,
    GradientChecks,
    InputPipeline,
    Job,
    Link,
    Mapping,
    Node,
    PeakTensor,
    Range,
    Routing,
    StepSpread,
    Table,
    Traffic,
    WorkerStep,
)
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


class LimitedBy(Record):
    """Shares of the step of the stage that computes most."""

    stage: int
    compute: float
    bubble: float
    exposed: Exposed
    host: float
    wait: float


class Parallel(Record):
    """How a step is spread over NPUs."""

    data: int
    model: int
    context: int
    context_kind: str
    sequence_parallel: bool
    vocabulary_parallel: bool
    experts: int
    expert_skew: float
    expert_seed: int
    strategy: str
    loaded_strategy: str
    search_mode: str
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


class HookLog(Record):
    """What PyTorch's hook would have logged."""

    settings: str
    log: List[str]


class ReplicaDifference(Record):
    """How far replicas are apart at the end."""

    bits: int
    largest: float


class GradientError(Record):
    """Rounding errors of the reduced gradient of one step."""

    iteration: int
    largest: float
    bound: float
    worst_ratio: float
    additions: int
    elements: int
    all_elements: int
    vanished: int
    overflowed: int
    not_numbers: int


class GradientCheck(Record):
    """A gradient, and the quotient of differences that it must be near to."""

    parameter: str
    element: int
    gradient: float
    quotient: float
    tolerance: float
    verdict: str


class Numerics(Record):
    """A training with real gradients."""

    timed_shape: str
    timed_type: str
    computed_shape: str
    too_large_shape: Optional[str]
    dtype: str
    round: str
    data: str
    shuffle: bool
    seed: int
    gradients_mean: bool
    micro_batches: int
    loaded: Optional[str]
    changed_settings: List[str]
    saved: Optional[str]
    saved_iteration: Optional[int]
    saved_gradients: str
    save_refused: bool
    failure: Optional[str]
    diverged_iteration: Optional[int]
    requested_iterations: int
    compression: HookLog
    iterations: Records[Iteration]
    replica_difference: Optional[ReplicaDifference]
    gradient_error: Optional[GradientError]
    gradient_check: Records[GradientCheck]
    #: With parameter servers: of every worker, and of the same steps without servers.
    steps: Records[WorkerStep]
    allreduce_losses: List[float]


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
    """A training step, simulated. Parameter servers (mode="ps") and concurrent jobs have fields of their own."""

    format_version: int
    model: str
    platform: str
    npus: int
    batch: int
    rank: int
    iterations: int
    amp: str
    framework: str
    hcom_parallel: bool
    launch: str
    network: str
    hbm_contention: str
    mapping: Mapping
    folded: Folded
    settings: Dict[str, str]
    segment_log: str
    segments: Records[Segment]
    trace: TracePoints
    gradients: Records[Gradient]
    step_time_s: float
    step_spread: StepSpread
    error: Failure
    faults: Faults
    ranks: Records[RankPhases]
    images_per_s: float
    compute_s: float
    exposed_communication_s: float
    free_s: float
    data_aug_bound_s: Optional[float]
    input_pipeline: InputPipeline
    eager: Eager
    checkpoints: Checkpoints
    forward_s: float
    backward_s: float
    hbm_peak_bytes: int
    hbm_peak_rank: int
    parallel: Parallel
    limited_by: LimitedBy
    stages: Records[Stage]
    traffic: Records[Traffic]
    peak_tensors: Records[PeakTensor]
    throughput: Throughput
    comm_reuse: CommReuse
    goodput: Goodput
    uncertainty: Optional[Range]
    routing: Routing
    advice: Optional[Advice]
    rank_table: str
    baseline: Baseline
    explain: Records[Explanation]
    links: Records[Link]
    links_used: int
    links_without_host_copies: bool
    loss_scale: str
    clip_norm: Optional[float]
    gradient_checks: GradientChecks
    compression: Compression
    numerics: Optional[Numerics]

    # With concurrent=…
    jobs: Records[Job]

    # With mode="ps".
    mode: str
    npu: str
    workers: int
    servers: int
    protocol: str
    staleness_bound: Optional[int]
    parameters_on_servers: int
    bytes_on_servers: int
    parameters_by_allreduce: int
    bytes_by_allreduce: int
    samples_per_s: float
    allreduce_step_time_s: float
    ready_s: float
    end_s: float
    failure: Optional[str]
    transfers: int
    nodes: Records[Node]
    steps: Records[WorkerStep]
    staleness: List[int]
    tables: Records[Table]
    events: Records[Event]
    moved_bytes: int
    moved_state_bytes: int

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
