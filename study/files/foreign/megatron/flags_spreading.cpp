#include "study/files/foreign/megatron/flags.hpp"

// How a step is spread over ranks, what overlaps, and types.
namespace hcclsim::study {
namespace megatron_spreading {

using enum MegatronFlagKind;

constexpr std::string_view idle = "it does not come to bear with the other arguments";
constexpr std::string_view no_fused_products =
    "products and the collectives around them do not overlap, so that the step is slower than the real one";
constexpr std::string_view one_dimension =
    "ranks share operators in one dimension, so that collectives are of more ranks and larger: the step is slower than "
    "the real one";
constexpr std::string_view other_types =
    "types are those of --compute-dtype, --grad-dtype and --optimizer-dtype of run";
constexpr std::string_view other_sharing =
    "replicas that share weights are --optimizer-parallel zero3 of run, which takes none of these";
constexpr std::string_view no_option = "no option of run stands for it";

constexpr MegatronFlag flags[] = {
    {"micro-batch-size", mapped, 1, "", "", idle},
    {"global-batch-size", mapped, 1, "", "", idle},
    {"tensor-model-parallel-size", mapped, 1, "", "1", idle},
    {"pipeline-model-parallel-size", mapped, 1, "", "1", idle},
    {"context-parallel-size", mapped, 1, "", "1", idle},
    {"num-layers-per-virtual-pipeline-stage", mapped, 1, "", "", idle},
    {"num-virtual-stages-per-pipeline-rank", mapped, 1, "", "", idle},
    {"num-layer-list", mapped, 1, "", "", idle},
    {"noop-layers", mapped, 1, "", "", idle},
    {"schedules-method", mapped, 1, "", "", idle},
    {"context-parallel-algo", mapped, 1, "", "", idle},
    {"cp-comm-type", mapped, 1, "", "", idle},
    {"decoder-first-pipeline-num-layers", mapped, 1, "", "", idle},
    {"decoder-last-pipeline-num-layers", mapped, 1, "", "", idle},
    {"ddp-bucket-size", mapped, 1, "", "", idle},
    {"rampup-batch-size", mapped, MegatronFlag::any, "", "", "the step is one of the whole batch"},
    {"sequence-parallel", mapped, 0, "", "", idle},
    {"use-distributed-optimizer", mapped, 0, "", "", idle},
    {"overlap-grad-reduce", mapped, 0, "", "", idle},
    {"overlap-param-gather", mapped, 0, "", "", idle},
    {"accumulate-allreduce-grads-in-fp32", mapped, 0, "", "", idle},
    {"grad-reduce-in-bf16", mapped, 0, "", "", idle},
    {"pipeline-model-parallel-layout", mapped, 1, "", "", idle},
    {"use-ascend-coc", no_effect, 0, "tensor-model-parallel-size", "",
     "without slices or fused kernels it changes nothing"},
    {"coc-fused-kernel", left_out, 0, "use-ascend-coc", "", no_fused_products},
    {"coc-parallel-num", left_out, 1, "use-ascend-coc", "1", no_fused_products},
    {"use-ascend-mc2", left_out, 0, "tensor-model-parallel-size", "", no_fused_products},
    {"tp-comm-overlap", left_out, 0, "tensor-model-parallel-size", "", no_fused_products},
    {"tp-2d", left_out, 0, "tensor-model-parallel-size", "", one_dimension},
    {"tp-x", left_out, 1, "tp-2d", "", one_dimension},
    {"tp-y", left_out, 1, "tp-2d", "", one_dimension},
    {"ulysses-degree-in-cp", no_effect, 1, "context-parallel-size", "",
     "it says how a hybrid way shares positions, which is simulated as a ring"},
    {"cp-window-size", left_out, 1, "context-parallel-size", "1",
     "keys and values go round one ring, not round rings of rings, so that the step is slower than the real one where "
     "they do not hide"},
    {"use-cp-send-recv-overlap", no_effect, 0, "context-parallel-size", "",
     "ranks of a ring send and receive at once, as here"},
    {"use-fused-ring-attention-update", no_effect, 0, "context-parallel-size", "",
     "what the blocks of a ring give is put together in one kernel, as here"},
    {"attention-mask-type", mapped, 1, "", "", "attention is causal, as here"},
    {"calculate-per-token-loss", left_out, 0, "", "",
     "the loss is divided by the tokens of a micro-batch, not of the step: an allreduce of one number is left out"},
    {"hccl-op-mode", left_out, MegatronFlag::any, "", "",
     "which engine of an NPU moves the bytes of each communicator is --hccl-op-expansion-mode for all of them, so that "
     "the step may be faster or slower than the real one"},
    {"enable-high-availability", refused, 0, "", "", "optimizer states that are kept twice are not simulated"},
    {"npu-deterministic", mapped, 0, "", "", "collectives are deterministic"},
    {"ai-framework", left_out, 1, "", "",
     "what the host takes to issue kernels depends on it: --exec eager with --host-launch-us; the step is faster than "
     "the real one where the host is slower than the NPU"},
    {"bf16", mapped, 0, "", "", "types are told"},
    {"fp16", mapped, 0, "", "", "types are told"},
    {"loss-scale", mapped, 1, "", "", "it counts with --fp16"},
    {"params-dtype", refused, MegatronFlag::any, "", "", other_types},
    {"main-grads-dtype", refused, MegatronFlag::any, "", "", other_types},
    {"main-params-dtype", refused, MegatronFlag::any, "", "", other_types},
    {"exp-avg-dtype", refused, MegatronFlag::any, "", "", other_types},
    {"exp-avg-sq-dtype", refused, MegatronFlag::any, "", "", other_types},
    {"fp16-lm-cross-entropy", refused, MegatronFlag::any, "", "", other_types},
    {"num-layers-at-start-in-bf16", refused, MegatronFlag::any, "", "", other_types},
    {"num-layers-at-end-in-bf16", refused, MegatronFlag::any, "", "", other_types},
    {"megatron-fsdp-main-grads-dtype", refused, MegatronFlag::any, "", "", other_types},
    {"data-parallel-sharding-strategy", refused, MegatronFlag::any, "", "", other_sharing},
    {"use-custom-fsdp", refused, MegatronFlag::any, "", "", other_sharing},
    {"use-megatron-fsdp", refused, MegatronFlag::any, "", "", other_sharing},
    {"use-torch-fsdp2", refused, MegatronFlag::any, "", "", other_sharing},
    {"optimizer-cpu-offload", refused, MegatronFlag::any, "", "", no_option},
    {"optimizer-offload-fraction", refused, MegatronFlag::any, "", "", no_option},
    {"overlap-cpu-optimizer-d2h-h2d", refused, MegatronFlag::any, "", "", no_option},
    {"offload-optimizer-states", refused, MegatronFlag::any, "", "", no_option},
    {"cpu-offloading", refused, MegatronFlag::any, "", "", no_option},
    {"cpu-offloading-num-layers", refused, MegatronFlag::any, "", "", no_option},
    {"adaptive-recompute-device-size", refused, MegatronFlag::any, "", "", no_option},
    {"adaptive-recompute-device-swap", refused, MegatronFlag::any, "", "", no_option},
    {"swap-modules", refused, MegatronFlag::any, "", "", no_option},
    {"account-for-embedding-in-pipeline-split", refused, MegatronFlag::any, "", "", no_option},
    {"account-for-loss-in-pipeline-split", refused, MegatronFlag::any, "", "", no_option},
    {"pipeline-model-parallel-split-rank", refused, MegatronFlag::any, "", "", no_option},
    {"standalone-embedding-stage", refused, MegatronFlag::any, "", "", no_option},
    {"hierarchical-context-parallel-sizes", refused, MegatronFlag::any, "", "", no_option},
    {"use-ring-exchange-p2p", refused, MegatronFlag::any, "", "", no_option},
    {"defer-embedding-wgrad-compute", refused, MegatronFlag::any, "", "", no_option},
    {"wgrad-deferral-limit", refused, MegatronFlag::any, "", "", no_option},
    {"delay-grad-reduce", refused, MegatronFlag::any, "", "", no_option},
    {"delay-param-gather", refused, MegatronFlag::any, "", "", no_option},
    {"delay-wgrad-compute", refused, MegatronFlag::any, "", "", no_option},
    {"pp2vpp", refused, MegatronFlag::any, "", "", no_option},
    {"use-nanopipe", refused, MegatronFlag::any, "", "", no_option},
    {"dualpipev-dw-detach", refused, MegatronFlag::any, "", "", no_option},
    {"use-tp-pp-dp-mapping", refused, MegatronFlag::any, "", "", no_option},
    {"microbatch-group-size-per-virtual-pipeline-stage", refused, MegatronFlag::any, "", "", no_option},
    {"micro-batch-sync-interval", refused, MegatronFlag::any, "", "", no_option},
    {"num-distributed-optimizer-instances", refused, MegatronFlag::any, "", "", no_option},
    {"ddp-average-in-collective", refused, MegatronFlag::any, "", "", no_option},
    {"ddp-num-buckets", refused, MegatronFlag::any, "", "", no_option},
    {"ddp-pad-buckets-for-high-nccl-busbw", refused, MegatronFlag::any, "", "", no_option},
    {"no-align-grad-reduce", refused, MegatronFlag::any, "", "", no_option},
    {"no-align-param-gather", refused, MegatronFlag::any, "", "", no_option},
    {"overlap-param-gather-with-optimizer-step", refused, MegatronFlag::any, "", "", no_option},
    {"gradient-reduce-div-fusion", refused, MegatronFlag::any, "", "", no_option},
    {"gradient-accumulation-fusion", refused, MegatronFlag::any, "", "", no_option},
    {"no-scatter-gather-tensors-in-pipeline", refused, MegatronFlag::any, "", "", no_option},
    {"decrease-batch-size-if-needed", refused, MegatronFlag::any, "", "", no_option},
    {"hccl-group-buffer", refused, MegatronFlag::any, "", "", no_option},
    {"hccl-group-buffer-adaptive", refused, MegatronFlag::any, "", "", no_option},
    {"cuda-graph-scope", refused, MegatronFlag::any, "", "", no_option},
    {"cuda-graph-warmup-steps", refused, MegatronFlag::any, "", "", no_option},
    {"enable-cuda-graph", refused, MegatronFlag::any, "", "", no_option},
    {"external-cuda-graph", refused, MegatronFlag::any, "", "", no_option},
    {"flash-decode", refused, MegatronFlag::any, "", "", no_option},
    {"tp-comm-bootstrap-backend", refused, MegatronFlag::any, "", "", no_option},
    {"tp-comm-overlap-cfg", refused, MegatronFlag::any, "", "", no_option},
    {"tp-comm-overlap-rs-dgrad", refused, MegatronFlag::any, "", "", no_option},
    {"disable-tp-comm-bulk-dgrad", refused, MegatronFlag::any, "", "", no_option},
    {"disable-tp-comm-bulk-wgrad", refused, MegatronFlag::any, "", "", no_option},
    {"disable-tp-comm-overlap-ag", refused, MegatronFlag::any, "", "", no_option},
    {"disable-tp-comm-overlap-rs", refused, MegatronFlag::any, "", "", no_option},
    {"disable-tp-comm-split-ag", refused, MegatronFlag::any, "", "", no_option},
    {"disable-tp-comm-split-rs", refused, MegatronFlag::any, "", "", no_option},
    {"use-ema", refused, MegatronFlag::any, "", "", no_option},
    {"use-precision-aware-optimizer", refused, MegatronFlag::any, "", "", no_option},
    {"optimizer-selection", refused, MegatronFlag::any, "", "", no_option},
    {"use-unpad", refused, MegatronFlag::any, "", "", no_option},
    {"use-nd-matmul", refused, MegatronFlag::any, "", "", no_option},
    {"memory-fragmentation", refused, MegatronFlag::any, "", "", no_option},
    {"layerwise-disaggregated-training", refused, 0, "", "",
     "two sites that share a network with parallelism of their own are not simulated"},
};

}  // namespace megatron_spreading

std::span<const MegatronFlag> megatron_flags_of_spreading() { return megatron_spreading::flags; }

}  // namespace hcclsim::study
