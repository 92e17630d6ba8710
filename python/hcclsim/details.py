"""Parts of results that only some options give, such as advice=True or links=3: records as in results.py."""

from __future__ import annotations

from typing import Dict, List, Optional

from .records import Record, Records


class Failure(Record):
    """What ended a simulation, or a point of a sweep."""

    kind: str
    exit_status: int
    message: str


class Member(Record):
    """A rank that was simulated for all that do the same: "0-7,16"."""

    simulated: int
    ranks: str


class Folded(Record):
    """Ranks that were simulated for all that are alike."""

    classes: int
    ranks_simulated: int
    members: Records[Member]


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


class Trial(Record):
    """A split, a fusion or a speed of links that was tried."""

    split_by_size: Optional[List[float]]
    split_by_idx: Optional[List[int]]
    fusion_index: Optional[List[int]]
    fusion: str
    collectives: int
    step_time_s: float
    factor: float
    plain_step_s: float
    compressed_step_s: float
    saved_s: float


class Advice(Record):
    """What the split guide advises, and what its trials come to: run(advice=True)."""

    scenario: int
    sentence: str
    try_best: bool
    trials: Records[Trial]
    one_npu_step_s: float
    other_hcom_parallel: str
    other_hcom_parallel_step_s: float


class Share(Record):
    """What a link carries for one purpose, or for one job."""

    purpose: str
    stage: int
    name: str
    bytes: int
    bytes_per_step: float
    load: float
    share: float


class Link(Record):
    """A busy link; between whom its transfers were is link["from"] and link["to"]."""

    name: str
    kind: str
    to: str
    shared: bool
    capacity_Bps: float
    bytes: int
    busy_s: float
    utilisation: float
    utilisation_while_busy: float
    most_transfers: int
    shares: Records[Share]
    #: Of run(concurrent=…): the sum over the jobs.
    load: float
    jobs: Records[Share]


class NodeLink(Record):
    """A link by which messages reach ("in") or leave ("out") a node of parameter servers."""

    name: str
    direction: str
    capacity_Bps: float
    bytes: float
    utilisation: float


class Tried(Record):
    """An algorithm, and its time by formula and by simulation."""

    algorithm: str
    chosen: bool
    formula: Optional[str]
    formula_s: Optional[float]
    simulated_s: Optional[float]


class Refused(Record):
    """An algorithm that cannot be used here."""

    algorithm: str
    reason: str


class Explanation(Record):
    """Why an algorithm was chosen."""

    title: str
    bytes: int
    rule: str
    algorithms: Records[Tried]
    refused: Records[Refused]


class StepSpread(Record):
    """Distances of iteration ends, where they differ."""

    steps: int
    least_s: float
    p50_s: float
    p99_s: float
    most_s: float


class Faults(Record):
    """What went wrong, and the steps with it."""

    given: List[str]
    steps_s: List[float]
    step_time_without_s: Optional[float]


class InputPipeline(Record):
    """How batches come to an NPU that waits for them."""

    images_per_s: float
    npus_of_server: int
    prefetch_depth: int
    samples: int
    batch_s: float
    copied_bytes: int
    copy_s: float
    data_wait_s: float


class Eager(Record):
    """What the host does with exec="eager"."""

    host_launch_s: float
    issued: int
    issuing_s: float


class Checkpoints(Record):
    """Checkpoints that the rank writes."""

    bytes: int
    time_s: float
    behind_iterations: List[int]


class Traffic(Record):
    """What a rank sends in a step, by stage and kind."""

    stage: int
    kind: str
    group_size: int
    count: int
    bytes_per_rank: int


class PeakTensor(Record):
    """A tensor that is in the HBM at its peak."""

    made_by: str
    bytes: int
    copies: int


class Streams(Record):
    """Operators and streams of a role."""

    operators: int
    compute_streams: int
    communication_streams: int
    secondary_streams: int
    streams: int
    assumed_compile_s: float


class ReuseRole(Record):
    """Ranks that do the same, before and after the reuse of operators."""

    stage: int
    first_rank: int
    ranks: int
    candidates: int
    classes: int
    replaced: int
    before: Streams
    after: Streams


class ReuseClass(Record):
    """Operators that are alike; their name is one["class"]."""

    tasks: int
    calls: List[int]
    reused: bool
    reason: Optional[str]


class CommReuse(Record):
    """What comm_reuse=N saves."""

    limit: int
    tasks_per_stream: int
    stream_limit: int
    roles: Records[ReuseRole]
    classes: Records[ReuseClass]


class Interval(Record):
    """A job of days with a checkpoint every so many steps."""

    checkpoint_every: int
    goodput: float
    goodput_least: float
    goodput_most: float
    failures: float
    total_s: float
    steps_s: float
    checkpoints_s: float
    lost_s: float
    restarts_s: float


class Goodput(Record):
    """A job of days with failures: run(mtbf=…)."""

    steps: int
    step_s: float
    mtbf_s: float
    checkpoint_bytes: int
    checkpoint_s: float
    restart_s: float
    runs: int
    asked: Interval
    optimum: Optional[Interval]


class Routing(Record):
    """The step with other seeds of the routing, and with an ideal one."""

    times_s: List[float]
    first_seed: int
    mean_s: float
    worst_s: float
    worst_seed: int
    ideal_s: Optional[float]
    no_ideal: str


class Difference(Record):
    """A figure that differs from its baseline."""

    part: str
    place: str
    figure: str
    baseline: object
    now: object
    relative: Optional[float]


class Baseline(Record):
    """How a run compares with a stored one."""

    file: str
    tolerance: float
    equal: bool
    figures: int
    differences: Records[Difference]


class OverflowFlag(Record):
    """The allreduce of the flag of an overflow."""

    algorithm: str
    start_s: float
    end_s: float


class GradientChecks(Record):
    """When reduced gradients are looked at."""

    start_s: float
    kernels_end_s: float
    overflow_flag: Optional[OverflowFlag]
    end_s: float


class Mapped(Record):
    """A setting of another program, and the option that it became; or why it has none."""

    option: str
    value: str
    source: str
    place: str
    reason: str


class Mapping(Record):
    """What became of a file of another program."""

    program: str
    file: str
    options: Records[Mapped]
    not_simulated: Records[Mapped]
    without_effect: Records[Mapped]


class Node(Record):
    """A worker, a server or the scheduler of parameter servers."""

    name: str
    rank: Optional[int]
    host: str
    sent_bytes: Dict[str, int]
    received_bytes: Dict[str, int]
    lost_bytes: int
    placed_bytes: int
    busy_s: float
    waited_s: float
    links: Records[NodeLink]


class WorkerStep(Record):
    """A step of a worker of parameter servers."""

    worker: int
    step: int
    start_s: float
    computed_s: float
    end_s: float
    held_s: float
    loss: float
    accuracy: float


class Table(Record):
    """A table of embeddings, and its cache."""

    name: str
    look_ups: int
    rows: int
    misses: int
    evicted: int
    fetched_bytes: int
    written_back_bytes: int
    waits: int


class Event(Record):
    """What happened in the cluster of parameter servers."""

    time_s: float
    node: str
    event: str
    state: str


class Job(Record):
    """One of several jobs at the same time."""

    name: str
    model: str
    npus_list: List[int]
    rank: int
    start_s: float
    iterations: int
    steps: int
    hbm_contention: str
    step_time_s: float
    alone_s: float
    slow_down: float
    exposed_communication_s: float
    alone_exposed_communication_s: float
    folded: Folded
    not_modelled: List[str]
    notes: List[str]
