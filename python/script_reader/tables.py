"""What the reader of scripts knows by name."""

#: Keys of the NpuOptimizer that are known and change nothing of what is simulated, with what they do.
NO_EFFECT = {
    "use_off_line": "the network runs on the NPU, as simulated",
    "enable_data_pre_proc": "preprocessing of data on the device is not simulated",
    "iterations_per_loop": "steps of a loop on the device follow each other as simulated",
    "aoe_mode": "tuning of kernels is not simulated; 'hcclsim tune' tunes the split",
    "is_tailing_optimization": "see --hcom-parallel and --split",
    "min_group_size": "of fusion of collectives on dynamic shapes",
    "stream_max_parallel_num": "of streams of the engines of one NPU",
    "graph_run_mode": "training is simulated",
    **dict.fromkeys(("precision_mode", "customize_dtypes"), "see --amp"),
    **dict.fromkeys(("variable_memory_max_size", "graph_memory_max_size"), "see --hbm-check"),
    **dict.fromkeys(("op_select_implmode", "optypelist_for_implmode"), "of kernels"),
    **dict.fromkeys(("mix_compile_mode", "op_debug_level"), "of compilation"),
    **dict.fromkeys(("dump_path", "enable_dump", "enable_dump_debug", "dump_mode", "dump_step"), "of dumps"),
}

#: Keys of the NpuOptimizer that count.
PARAMETERS = ("hcom_parallel", "profiling_mode", "profiling_options")

#: The field of parameter_map that takes a value of each type.
FIELDS = {bool: "b", bytes: "s", str: "s", int: "i", float: "f"}

PROFILING_KEYS = ("output", "training_trace", "task_trace", "fp_point", "bp_point", "aicpu", "aic_metrics", "hccl")

#: What rewrite_options must be on Ascend.
REWRITING_OFF = {"remapping": ("OFF",), "memory_optimization": ("OFF", "NO_MEM_OPT")}

WORLD = "hccl_world_group"

#: Largest bucket of PyTorch's DistributedDataParallel unless told otherwise; MiB.
BUCKET_MB = 25

#: Arguments of PowerSGDState as keys of --compress.
STATE_KEYS = {
    "matrix_approximation_rank": "rank",
    "start_powerSGD_iter": "start",
    "min_compression_rate": "min-compression-rate",
    "use_error_feedback": "error-feedback",
    "warm_start": "warm-start",
    "orthogonalization_epsilon": "epsilon",
    "random_seed": "seed",
    "compression_stats_logging_frequency": "compression-stats-logging-frequency",
    "batch_tensors_with_same_shape": "batch-tensors-with-same-shape",
}

HOOKS = {
    "powerSGD_hook": "powersgd",
    "batched_powerSGD_hook": "batched-powersgd",
    "fp16_compress_hook": "fp16",
    "bf16_compress_hook": "bf16",
}

#: What people are told of options that the run decides.
AS_THE_RUN = "as the run has it"

#: Options of contexts that the run has anyway.
RUN_KEYS = ("device_num", "global_rank")

#: Other options of the command line for options of contexts.
OTHER_NAMES = {"device_num": ("--npus",), "global_rank": ("--rank",), "pipeline_stages": ("--stages", "--pp")}

#: Options of set_auto_parallel_context, and their former names.
CONTEXT_KEYS = (
    *("device_num", "global_rank", "gradients_mean", "gradient_fp32_sync", "loss_repeated_mean", "parallel_mode", "search_mode"),
    *("auto_parallel_search_mode", "sharding_propagation", "parameter_broadcast", "strategy_ckpt_load_file"),
    *("strategy_ckpt_save_file", "strategy_ckpt_config", "group_ckpt_save_file", "full_batch", "dataset_strategy"),
    *("enable_parallel_optimizer", "parallel_optimizer_config", "optimizer_weight_shard_size"),
    *("optimizer_weight_shard_aggregated_save", "enable_alltoall", "force_fp32_communication", "all_reduce_fusion_config"),
    *("comm_fusion", "pipeline_stages", "pipeline_segments", "pipeline_result_broadcast", "pipeline_config"),
    *("grad_accumulation_step", "communi_parallel_mode"),
)
FORMER_KEYS = {"mirror_mean": "gradients_mean", "cast_before_mirror": "gradient_fp32_sync"}

#: Those of set_ps_context.
SERVER_KEYS = (
    *("enable_ps", "config_file_path", "scheduler_manage_port", "enable_ssl", "client_password", "server_password"),
    *("server_mode", "ms_role", "worker_num", "server_num", "scheduler_ip", "scheduler_port"),
)

#: What stands for --mode among the options that are given if it says ps.
SERVERS = "--mode=ps"

#: Options of contexts that name files to be written.
OUTPUT_KEYS = ("strategy_ckpt_save_file", "group_ckpt_save_file")
#: Options of contexts that name files of checkpoints.
PATH_KEYS = ("strategy_ckpt_load_file", "strategy_ckpt_save_file", "strategy_ckpt_config", "group_ckpt_save_file")

#: Options of the command line that say which network is trained, and those that give the usual one another shape.
NETWORKS = frozenset(("--model", "--gradients", "--mindformers", "--megatron", "--config", "--profile"))
SHAPES = frozenset(("--fc-bias", "--classes", "--input"))

FUSIONS = ("--fusion", "--fusion-index")
SPLITS = ("--split", "--split-by-idx", "--split-by-size", *FUSIONS)
SPLIT_CALLS = ("set_split_strategy_by_idx", "set_split_strategy_by_size")
GROUPS = ("--group", "--split-group")

#: Things that a run has once, as options, and the options of the command line in their place.
ONCE = {
    "hcom_parallel": ("--hcom-parallel={}", ("--hcom-parallel",)),
    "compress": ("--compress={}", ("--compress",)),
    "DistributedDataParallel": (
        "--framework=mindspore --hcom-parallel=on",
        ("--framework", *(option for option in SPLITS if option not in FUSIONS)),
    ),
    "bucket_cap_mb": ("--fusion=size:{}", ("--fusion", "--framework", *SPLITS)),
}

#: Options of the command line beside which calls, and keys of parameter_map, need not be literals; first that of the call.
IN_PLACE_OF = {
    "set_split_strategy_by_idx": ("--split-by-idx", *SPLITS),
    "set_split_strategy_by_size": ("--split-by-size", *SPLITS),
    "create_group": ("--split", *SPLITS, *GROUPS),
    "register_comm_hook": ("--compress",),
    "DistributedDataParallel": ("--fusion", *SPLITS),
    **dict.fromkeys(("set_auto_parallel_context", "reset_auto_parallel_context"), ("--context",)),
    "set_ps_context": ("--ps-context", "--mode"),
    "parameter_map": ("--hcom-parallel", "--step-trace"),
    "hcom_parallel": ("--hcom-parallel",),
    "profiling_mode": ("--step-trace",),
    "profiling_options": ("--step-trace",),
}

#: Of these such an option replaces a part.
REPLACED_IN_PART = ("DistributedDataParallel", "parameter_map")
