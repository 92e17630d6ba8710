"""hcclsim: the communication of training on Ascend-like NPU clusters, simulated.

    import hcclsim
    result = hcclsim.run(model="resnet50", platform="atlas800t-a2", hcom_parallel=True, split_by_size=[80, 20])
    result.step_time_s
    result.gradients.to_pandas()

run, tune, search, measure and the modules sweep, schedule, platform, networks simulate; init, set_auto_parallel_context,
set_ps_context, register_comm_hook and the package hccl set what run() then uses; nn, ops and Layout describe networks. Units: seconds, bytes, bytes per second.
"""

from . import default_hooks, errors, networks, nn, ops, platform, powerSGD_hook, schedule, sweep
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
from .default_hooks import bf16_compress_hook, fp16_compress_hook
from .errors import BadInput, CheckFailed, Error, InternalError, SimulatedFailure
from .experiments import Training, check_plan, measure, read_checkpoint, run, search, segments, show_plan, tune
from .hooks import register_comm_hook, registered_comm_hook
from .layout import Layout
from .powerSGD_hook import PowerSGDState, batched_powerSGD_hook
from .records import Record, Records
from .regions import shard
from .results import RunResult
from .searches import Measurement, SearchResult, TuneResult
from .settings import reset
from .tracing import Parameter, Tensor
from .world import World, init

__all__ = [
    "BadInput",
    "CheckFailed",
    "Error",
    "GRAPH_MODE",
    "InternalError",
    "Layout",
    "Measurement",
    "PYNATIVE_MODE",
    "ParallelMode",
    "Parameter",
    "PowerSGDState",
    "Record",
    "Records",
    "RunResult",
    "SearchResult",
    "SimulatedFailure",
    "Tensor",
    "Training",
    "TuneResult",
    "World",
    "batched_powerSGD_hook",
    "bf16_compress_hook",
    "check_plan",
    "default_hooks",
    "errors",
    "fp16_compress_hook",
    "get_auto_parallel_context",
    "get_ps_context",
    "init",
    "measure",
    "networks",
    "nn",
    "ops",
    "platform",
    "powerSGD_hook",
    "read_checkpoint",
    "register_comm_hook",
    "registered_comm_hook",
    "reset",
    "reset_auto_parallel_context",
    "reset_ps_context",
    "run",
    "schedule",
    "search",
    "segments",
    "set_auto_parallel_context",
    "set_context",
    "set_param_ps",
    "set_ps_context",
    "shard",
    "show_plan",
    "sweep",
    "tune",
]
