"""What schedule, platform, networks, show_plan and sweep give, with fields and types as docs/formats.md describes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, Optional, Sequence, TypedDict, Union

import numpy
import numpy.typing

from .details import CommReuse, Failure, Folded, Link
from .records import OpenRecord, Record, Records, Remarked

#: Whole numbers: bytes of gradients.
Integers = Union[Sequence[int], "numpy.typing.NDArray[numpy.integer[Any]]"]
#: A row per segment: its first and its last gradient.
Cuts = numpy.typing.NDArray[numpy.uint32]


class Checkpoint(TypedDict):
    """What read_checkpoint() gives: a dict."""

    model: str
    iteration: int
    seed: int
    optimizer: str
    optimizer_steps: int
    loss_scale: float
    iteration_ends_s: List[float]
    #: By kind ("weights", "velocity", … or "gradients") and parameter.
    tensors: Dict[str, Dict[str, numpy.typing.NDArray[numpy.float32]]]


class Together(Record):
    """A schedule beside others."""

    time_s: float
    device_time_s: float
    slow_down: float
    limited_by: str


class TimedSchedule(Record):
    """How long a schedule takes."""

    file: str
    collective: str
    algorithm: str
    ranks: int
    bytes: int
    dtype: str
    on_npus: List[int]
    time_s: float
    device_time_s: float
    algbw_Bps: float
    busbw_Bps: float
    limited_by: str
    transfers: int
    simulated_iterations: int
    folded: Folded
    together: Together
    links: Records[Link]
    links_used: int


class Timing(Remarked):
    """schedule.time(): schedules in their order, and with together=True all of them."""

    format_version: int
    platform: str
    npu: str
    npus: int
    rank_table: str
    launch: str
    network: str
    warmups: int
    iterations: int
    schedules: Records[TimedSchedule]
    links: Records[Link]
    links_used: int
    makespan_s: float
    faults: List[str]


class Bytes(Record):
    """A range of a buffer of a rank."""

    rank: int
    buffer: str
    offset: int
    length: int


class Place(Record):
    """A task of a schedule."""

    rank: int
    stage: int
    queue: int
    number: int
    round: int
    task: str


class Finding(Record):
    """What is wrong with a schedule."""

    kind: str
    message: str
    ranks: List[int]
    tasks: Records[Place]
    bytes: Records[Bytes]


class Level(Record):
    """A level of the proof (docs/checker.md)."""

    level: str
    ok: bool
    count: int
    findings: Records[Finding]
    #: Why it was left out.
    reason: str


class Check(Remarked):
    """schedule.check(): the verdict, and findings of every level."""

    format_version: int
    ok: bool
    verdict: str
    levels: Records[Level]
    order: OpenRecord
    distances: OpenRecord
    timing: OpenRecord


class Execution(Remarked):
    """schedule.execute(): values that were compared."""

    format_version: int
    file: str
    collective: str
    algorithm: str
    ranks: int
    bytes: int
    dtype: str
    op: str
    seed: int
    ok: bool
    elements: int
    wrong: int
    additions: int
    largest_difference: float
    bound: float
    first_wrong: Optional[OpenRecord]


class Differences(Remarked):
    """schedule.diff() of two schedules, `a` and `b`."""

    format_version: int
    a: str
    b: str
    equal: bool
    compared_ranks: int
    fields: Records[OpenRecord]
    stages: Records[OpenRecord]
    time: OpenRecord


class ShownTask(Record):
    """A task of a rank with all its numbers."""

    rank: int
    stage: int
    queue: int
    round: int
    kind: str
    peer: int
    notify: int
    bytes: int
    source: Records[Bytes]
    destination: Records[Bytes]


class ShownSchedule(Remarked):
    """schedule.show(): the fields of its file, or with `ranks` their tasks."""

    algorithm: str
    collective: str
    ranks: int
    elements: int
    tasks: Records[ShownTask]

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...


class SpeedsOfLinks(Record):
    """Links with equal figures, or one on the way between two NPUs."""

    name: str
    count: int
    first: str
    last: str
    duplex: bool
    shared: bool
    kind: str
    nominal_Bps: float
    low_Bps: float
    used_Bps: float
    high_Bps: float
    write_Bps: float
    read_Bps: float
    latency_s: float


class Route(Record):
    """The way between two NPUs."""

    source: int
    destination: int
    transport: str
    links: Records[SpeedsOfLinks]
    write_Bps: float
    read_Bps: float
    alpha_s: Dict[str, float]


class Platform(Remarked):
    """platform.show(): what a platform has."""

    format_version: int
    platform: str
    name: str
    npus: int
    servers: int
    super_pods: int
    soc: Dict[str, int]
    links: Records[SpeedsOfLinks]
    tasks: Dict[str, str]
    route: Route


class KnownNetwork(Record):
    """networks.listing(): a network that comes with hcclsim."""

    name: str
    title: str
    note: str


class Listing(Remarked):
    """All networks that come with hcclsim."""

    models: Records[KnownNetwork]


class Layer(Record):
    """An operator of a network."""

    name: str
    operator: str
    output: List[int]
    parameters: int
    forward_flops: int
    backward_flops: int


class NetworkParameter(Record):
    """A parameter of a network."""

    parameter_index: int
    name: str
    shape: List[int]
    elements: int


class NetworkGradient(Record):
    """A gradient of a network, in production order."""

    production_index: int
    parameter_index: int
    name: str
    elements: int
    bytes: int
    cumulative_share_percent: float
    kernel: int


class Kernel(Record):
    """A kernel as it is launched; its kind is kernel["class"]."""

    kernel: int
    name: str
    phase: str
    dtype: str
    m: int
    n: int
    k: int
    groups: int
    flops: int
    read_bytes: int
    written_bytes: int


class Network(Remarked):
    """networks.show()."""

    format_version: int
    model: str
    input: List[int]
    batch: int
    amp: str
    optimizer: str
    parameters: int
    active_parameters: int
    parameter_tensors: int
    gradient_bytes: int
    forward_flops: int
    backward_flops: int
    forward_kernels: int
    backward_kernels: int
    update_kernels: int
    activation_peak_bytes: int
    layers: Records[Layer]
    parameter_list: Records[NetworkParameter]
    gradients: Records[NetworkGradient]
    kernel_list: Records[Kernel]


class Group(Record):
    """A group of a plan."""

    name: str
    ranks: List[int]


class PlannedCollective(Record):
    """A collective of a plan."""

    name: str
    family: int
    kind: str
    ranks: int
    elements: int
    counts: List[int]
    dtype: str
    root: int
    algorithm: str


class Message(Record):
    """A message of a plan."""

    name: str
    bytes: int


class PlannedTask(Record):
    """A task of a stream: kernels, a collective, an end of a message, or work of the host."""

    stream: int
    phase: str
    chunk: int
    micro_batch: int
    after: List[int]
    segment: int
    kernels: OpenRecord
    collective: int
    send: OpenRecord
    receive: OpenRecord
    host_s: float
    input: OpenRecord
    host_copy: OpenRecord


class Role(Record):
    """What ranks that do the same do."""

    stage: int
    streams: List[str]
    tasks: Records[PlannedTask]
    ahead: List[int]


class Plan(Record):
    """show_plan(): streams, tasks and groups of a step."""

    format_version: int
    families: List[Records[Group]]
    collectives: Records[PlannedCollective]
    messages: Records[Message]
    roles: Records[Role]
    role_of: List[int]
    comm_reuse: CommReuse


class PlanCheck(Record):
    """check_plan(): how much was proved."""

    ok: bool
    tasks: int
    roles: int
    ranks: int
    ideal_step_s: float


class Point(Record):
    """A point of a sweep: its figures, and besides an attribute for each input, by its keyword."""

    point: int
    id: str
    command: str
    #: As texts, by option.
    inputs: OpenRecord
    version: str
    platform_hash: str
    status: str
    #: Why its result would be another one today.
    stale: str
    step_time_s: float
    images_per_s: float
    exposed_communication_s: float
    hbm_peak_bytes: float
    time_s: float
    algbw_Bps: float
    busbw_Bps: float
    goodput: float
    restarts: int
    #: The JSON of its command.
    result: OpenRecord
    error: Failure

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...
