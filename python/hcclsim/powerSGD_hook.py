"""PowerSGD: the module torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook, by its names.

    from hcclsim import powerSGD_hook as powerSGD
    hcclsim.register_comm_hook(powerSGD.PowerSGDState(matrix_approximation_rank=2), powerSGD.powerSGD_hook)
"""

from __future__ import annotations

import logging
from typing import Dict, Tuple

from .results import RunResult

_logger = logging.getLogger(__name__)


class PowerSGDState:
    """State of the PowerSGD hooks; the fields and defaults are PyTorch's.

    After a run of its hook, `iter` and compression_stats() are those of that run, as after a training; each run begins
    anew, or with the checkpoint that it loads. Raises TypeError for what is no number, ValueError if start_powerSGD_iter
    is 1 or less with error feedback or warm start, since buckets are rebuilt after the first step.
    """

    #: Steps that the last run has done.
    iter: int
    #: Elements of the gradients in its compressed steps, and of what was sent in their place.
    total_numel_before_compression: int
    total_numel_after_compression: int

    def __init__(
        self,
        process_group: object = None,
        matrix_approximation_rank: int = 1,
        start_powerSGD_iter: int = 1_000,
        min_compression_rate: float = 2,
        use_error_feedback: bool = True,
        warm_start: bool = True,
        orthogonalization_epsilon: float = 0,
        random_seed: int = 0,
        compression_stats_logging_frequency: int = 10_000,
        batch_tensors_with_same_shape: bool = False,
    ) -> None:
        for name, value, kinds in (
            ("matrix_approximation_rank", matrix_approximation_rank, (int,)),
            ("start_powerSGD_iter", start_powerSGD_iter, (int,)),
            ("min_compression_rate", min_compression_rate, (int, float)),
            ("orthogonalization_epsilon", orthogonalization_epsilon, (int, float)),
            ("random_seed", random_seed, (int,)),
            ("compression_stats_logging_frequency", compression_stats_logging_frequency, (int,)),
        ):
            if isinstance(value, bool) or not isinstance(value, kinds):
                raise TypeError(f"{name} must be {' or '.join(kind.__name__ for kind in kinds)}, not {type(value).__name__}")
        if (use_error_feedback or warm_start) and start_powerSGD_iter <= 1:
            raise ValueError(
                f"start_powerSGD_iter must be more than 1 with use_error_feedback or warm_start, it is {start_powerSGD_iter}"
            )
        self.process_group = process_group
        self.matrix_approximation_rank = matrix_approximation_rank
        self.start_powerSGD_iter = start_powerSGD_iter
        self.min_compression_rate = min_compression_rate
        self.use_error_feedback = use_error_feedback
        self.warm_start = warm_start
        self.orthogonalization_epsilon = orthogonalization_epsilon
        self.random_seed = random_seed
        self.compression_stats_logging_frequency = max(1, compression_stats_logging_frequency)
        self.batch_tensors_with_same_shape = batch_tensors_with_same_shape
        self.iter = 0
        self.total_numel_before_compression = 0
        self.total_numel_after_compression = 0

    def compression_stats(self) -> Tuple[float, int, int]:
        """Of all compressed steps: the rate, and elements before and after compression; zeros if there was none."""
        before, after = self.total_numel_before_compression, self.total_numel_after_compression
        return (before / after if after > 0 else 0, before, after)

    def take(self, result: RunResult) -> None:
        """Takes iter and statistics from the result of a run of this hook."""
        if "compression" not in result:
            return
        found = result.compression
        steps = result.numerics.iterations if "numerics" in result and result.numerics is not None else None
        self.iter = steps[-1].iteration if steps else found.plain_iterations + found.compressed_iterations
        self.total_numel_before_compression = found.compression_stats.before
        self.total_numel_after_compression = found.compression_stats.after

    def __getstate__(self) -> Dict[str, object]:
        _logger.warning("the process group is no part of a stored state")
        return {key: value for key, value in self.__dict__.items() if key != "process_group"}

    def __setstate__(self, state: Dict[str, object]) -> None:
        self.__dict__.update(state)
        self.process_group = None
        _logger.warning("the process group of a loaded state is the world group")


def _powersgd(kind: str, state: PowerSGDState) -> str:
    if not isinstance(state, PowerSGDState):
        raise TypeError(f"the state of {kind} must be a PowerSGDState, not {type(state).__name__}")
    keys = {
        "rank": state.matrix_approximation_rank,
        "start": state.start_powerSGD_iter,
        "min-compression-rate": state.min_compression_rate,
        "error-feedback": _on(state.use_error_feedback),
        "warm-start": _on(state.warm_start),
        "epsilon": state.orthogonalization_epsilon,
        "seed": state.random_seed,
        "batch-tensors-with-same-shape": _on(state.batch_tensors_with_same_shape),
        "compression-stats-logging-frequency": state.compression_stats_logging_frequency,
    }
    return f"{kind}:" + ",".join(f"{key}={value}" for key, value in keys.items())


def _on(value: bool) -> str:
    return "on" if value else "off"


def powerSGD_hook(state: PowerSGDState) -> str:
    """PowerSGD per parameter: the settings of the hook, for register_comm_hook."""
    return _powersgd("powersgd", state)


def batched_powerSGD_hook(state: PowerSGDState) -> str:
    """PowerSGD of a whole bucket as one square matrix: the settings of the hook, for register_comm_hook."""
    return _powersgd("batched-powersgd", state)
