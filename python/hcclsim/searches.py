"""Results of tune, search and measure, with fields and types as docs/formats.md describes them."""

from __future__ import annotations

from typing import Dict, List, Optional

from .details import Explanation, Failure, Folded, Link, Range, Routing, Trial
from .records import OpenRecord, Record, Records, Remarked


class Chained(Record):
    """A segment of a split, by the cost."""

    first: int
    last: int
    bytes: int
    start_s: float
    end_s: float
    followed_until_s: float
    waits_for: str


class Split(Record):
    """A split of gradients by the last index of each segment, and its times; of stages a fusion in its place."""

    name: str
    k: int
    numbering: str
    by_idx: Optional[List[int]]
    by_size: Optional[List[float]]
    all_reduce_fusion_config: List[int]
    all_reduce_fusion_config_exact: bool
    segments: int
    finish_s: float
    exposed_s: float
    step_s: Optional[float]
    simulated_finish_s: Optional[float]
    simulated_step_s: Optional[float]
    bound_s: Optional[float]
    gap: Optional[float]
    simulated_gap: Optional[float]
    witness: Optional[int]
    critical_chain: Records[Chained]
    timeline: Records[Chained]
    followers_s: float
    premises: List[str]
    brute_force_s: Optional[float]
    preferred: Optional[str]
    fusion: str
    collectives: int
    step_time_s: float


class Regret(Record):
    """How the best split fares under another condition."""

    best_by_idx: List[int]
    best_end_s: float
    end_s: float
    regret_s: float
    in_proportion_to: str


class BreakEven(Record):
    """The speed of links at which compression pays."""

    links: str
    used_Bps: Optional[float]
    bandwidth_Bps: Optional[float]
    at: Optional[Trial]
    slowest: Trial
    fastest: Trial


class TuneResult(Remarked):
    """The best split of a step's gradients, and what else was tried; with stages the best fusion, with `compress` the
    speeds of links at which compression pays."""

    format_version: int
    model: str
    platform: str
    npu: str
    npus: int
    hbm_contention: str
    gradients: int
    bytes: int
    hcom_parallel: bool
    backward_end_s: float
    objective: str
    cost: OpenRecord
    best: Split
    best_by_cost: Split
    strategies: Records[Split]
    by_segments: Records[Split]
    two_links: OpenRecord
    shared_link: OpenRecord
    jitter: OpenRecord
    bandwidth_range: OpenRecord
    link_speeds: OpenRecord
    sensitivity: Records[Regret]

    # With stages or optimizer_parallel.
    stages: int
    micro_batches: int
    optimizer_parallel: str
    given: Split
    trials: Records[Trial]
    bound_s: Optional[float]
    gap: Optional[float]
    proved: bool

    # With compress.
    compression: str
    bytes_before: int
    bytes_after: int
    plain_step_s: float
    compressed_step_s: float
    saved_s: float
    break_even: Records[BreakEven]


class FoundPlan(Record):
    """A plan of a search: degrees of parallelism, and what they come to."""

    command: str
    step_time_s: Optional[float]
    bound_s: float
    hbm_peak_bytes: int
    data: int
    model: int
    context: int
    context_kind: str
    experts: int
    stages: int
    chunks: int
    micro_batches: int
    micro_batch_size: int
    recompute: str
    optimizer_parallel: str
    sequence_parallel: bool
    vocabulary_parallel: bool
    mp_comm_recompute: bool
    reductions: str


class OperatorStrategy(Record):
    """How an operator is cut."""

    operator: str
    strategy: str


class Compared(Record):
    """Strategies that were compared with those found."""

    name: str
    step_time_s: Optional[float]
    hbm_peak_bytes: Optional[int]
    fits: bool
    refused: str


class SearchResult(Remarked):
    """The outcome of a search of strategies or of plans."""

    format_version: int
    mode: str
    model: str
    platform: str
    npu: str
    npus: int
    step_time_s: Optional[float]

    # With mode="plan".
    global_batch: int
    prune: str
    plans: int
    simulated: int
    rejected: Dict[str, int]
    pareto: Records[FoundPlan]

    # With other modes.
    stages: int
    devices: int
    samples: int
    cost: float
    dynamic_programming_cost: Optional[float]
    bound: Optional[float]
    kept_operators: Optional[int]
    eliminated_operators: Optional[int]
    candidates: int
    strategies: Records[OperatorStrategy]
    compared: Records[Compared]
    command: str


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
    folded: Folded
    uncertainty: Range
    routing: Routing


class Measurement(Remarked):
    """A collective at one or many sizes."""

    format_version: int
    platform: str
    npu: str
    rank_table: str
    launch: str
    warmups: int
    iterations: int
    method: str
    rows: Records[MeasuredRow]
    checked: OpenRecord
    faults: List[str]
    links: Records[Link]
    links_used: int
    explain: Records[Explanation]
    error: Failure
