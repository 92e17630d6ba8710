"""hcclsim: the communication of training on Ascend-like NPU clusters, simulated.

    import hcclsim
    result = hcclsim.run(model="resnet50", platform="atlas800t-a2", hcom_parallel=True, split_by_size=[80, 20])
    result.step_time_s
    result.gradients.to_pandas()

run, tune, search, measure and the modules sweep, schedule, platform, networks simulate; init, set_auto_parallel_context,
set_ps_context, register_comm_hook and the package hccl set what run() then uses; nn, ops and Layout describe networks. Units: seconds, bytes, bytes per second.
"""

from . import errors, networks, nn, ops, platform, schedule, sweep
from ._core import read_checkpoint, segments
from .context import (
    GRAPH_MODE,
    PYNATIVE_MODE,
    ParallelMode,
    get_auto_parallel_context,
    get_ps_context,
    reset_auto_parallel_context,
    reset_ps_context,
    set_auto_parallel_context,
    set_context,
    set_param_ps,
    set_ps_context,
)
from .errors import BadInput, CheckFailed, Error, InternalError, SimulatedFailure
from .experiments import Training, check_plan, measure, run, search, show_plan, tune
from .hooks import (
    PowerSGDState,
    batched_powerSGD_hook,
    bf16_compress_hook,
    fp16_compress_hook,
    powerSGD_hook,
    register_comm_hook,
    registered_comm_hook,
)
from .layout import Layout
from .records import Measurement, Record, Records, RunResult, SearchResult, TuneResult
from .regions import shard
from .settings import reset
from .tracing import Parameter, Tensor
from .world import World, init

__all__ = [name for name in dir() if not name.startswith("_")]
