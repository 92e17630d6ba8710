#include "study/files/foreign/megatron/flags.hpp"

// Mixtures of experts.
namespace hcclsim::study {
namespace megatron_experts {

using enum MegatronFlagKind;

constexpr std::string_view no_experts = "the network has no experts";
constexpr std::string_view waiting_rows =
    "all-to-alls of experts wait for nothing beside them, so that the step is slower than the real one";
constexpr std::string_view kept_in_experts =
    "results inside of experts are kept, not computed again: more memory is accounted than is taken, and the step is "
    "faster than the real one";
constexpr std::string_view one_permutation = "rows go to their experts and back in one kernel each, as here";
constexpr std::string_view router_kernels =
    "small kernels of a router are left out, so that the step is a little faster than the real one";
constexpr std::string_view known_to_none =
    "no public version of Megatron or MindSpeed knows it, and the program would stop";
constexpr std::string_view other_ways =
    "rows go to their experts by all-to-alls between all ranks that share them; other ways are not simulated";

constexpr MegatronFlag flags[] = {
    {"num-experts", mapped, 1, "", "0,1", no_experts},
    {"moe-ffn-hidden-size", mapped, 1, "", "", no_experts},
    {"moe-router-topk", mapped, 1, "", "", no_experts},
    {"first-k-dense-replace", mapped, 1, "", "", no_experts},
    {"moe-layer-freq", mapped, 1, "", "", no_experts},
    {"moe-token-dispatcher-type", mapped, 1, "", "", no_experts},
    {"expert-model-parallel-size", mapped, 1, "", "1", no_experts},
    {"expert-tensor-parallel-size", mapped, 1, "", "", no_experts},
    {"moe-expert-capacity-factor", mapped, 1, "num-experts", "", no_experts},
    {"n-shared-experts", mapped, 1, "num-experts", "0", no_experts},
    {"moe-shared-expert-intermediate-size", mapped, 1, "num-experts", "0", no_experts},
    {"shared-expert-gate", mapped, 0, "n-shared-experts|moe-shared-expert-intermediate-size", "", no_experts},
    {"moe-alltoall-overlap-comm", left_out, 0, "num-experts", "", waiting_rows},
    {"moe-allgather-overlap-comm", left_out, 0, "num-experts", "", waiting_rows},
    {"overlap-moe-expert-parallel-comm", left_out, 0, "num-experts", "", waiting_rows},
    {"moe-fb-overlap", left_out, 0, "num-experts", "",
     "forward and backward of two micro-batches do not overlap, and neither do the all-to-alls in them, so that the "
     "step is slower than the real one"},
    {"moe-shared-expert-overlap", left_out, 0, "n-shared-experts|moe-shared-expert-intermediate-size", "",
     waiting_rows},
    {"moe-zero-memory", left_out, 1, "num-experts", "disable", kept_in_experts},
    {"moe-zero-memory-num-layers", left_out, 1, "moe-zero-memory", "", kept_in_experts},
    {"moe-layer-recompute", left_out, 0, "num-experts", "", kept_in_experts},
    {"num-zero-experts", mapped, 1, "num-experts", "0", no_experts},
    {"moe-tp-extend-ep", mapped, 0, "num-experts", "", no_experts},
    {"moe-extended-tp", mapped, 0, "num-experts", "", no_experts},
    {"moe-permutation-async-comm", no_effect, 0, "num-experts", "", "by itself it moves nothing"},
    {"moe-grouped-gemm", no_effect, 0, "num-experts", "", "experts of a rank are one product, as here"},
    {"moe-permute-fusion", no_effect, 0, "num-experts", "", one_permutation},
    {"use-fused-moe-token-permute-and-unpermute", no_effect, 0, "num-experts", "", one_permutation},
    {"moe-pad-expert-input-to-capacity", no_effect, 0, "moe-expert-capacity-factor", "",
     "experts have places for all rows of their capacity, as here"},
    {"gemm-gradient-accumulation-fusion", left_out, 0, "num-experts", "",
     "kernels of their own add the experts' gradients up, not the products that make them, so that the step is slower "
     "than the real one"},
    {"fix-router", no_effect, 0, "num-experts", "", "experts are used evenly, as with --moe-imbalance 0"},
    {"moe-router-load-balancing-type", left_out, 1, "num-experts", "none", router_kernels},
    {"moe-aux-loss-coeff", left_out, 1, "num-experts", "0,0.0,0.,none", router_kernels},
    {"moe-comm-aux-loss-coeff", left_out, 1, "num-experts", "0,0.0,0.,none", router_kernels},
    {"moe-device-level-aux-loss-coeff", left_out, 1, "num-experts", "0,0.0,0.,none", router_kernels},
    {"moe-router-dtype", left_out, 1, "num-experts", "0,0.0,0.,none", router_kernels},
    {"moe-router-score-function", left_out, 1, "num-experts", "0,0.0,0.,none", router_kernels},
    {"moe-router-num-groups", left_out, 1, "num-experts", "0,1", router_kernels},
    {"moe-router-group-topk", left_out, 1, "num-experts", "0,0.0,0.,none", router_kernels},
    {"moe-router-topk-scaling-factor", left_out, 1, "num-experts", "0,0.0,0.,none", router_kernels},
    {"moe-input-jitter-eps", left_out, 1, "num-experts", "0,0.0,0.,none", router_kernels},
    {"moe-router-topk-limited-devices", left_out, 1, "num-experts", "0,0.0,0.,none", router_kernels},
    {"seq-aux", left_out, 0, "num-experts", "", router_kernels},
    {"router-gating-in-fp32", left_out, 0, "num-experts", "", router_kernels},
    {"moe-router-fp32", left_out, 0, "num-experts", "", router_kernels},
    {"norm-topk-prob", left_out, 0, "num-experts", "", router_kernels},
    {"moe-router-pre-softmax", left_out, 0, "num-experts", "", router_kernels},
    {"input-jitter", no_effect, 0, "num-experts", "", "it switches noise of the router off"},
    {"moe-router-enable-expert-bias", left_out, 0, "num-experts", "",
     "sums of how often experts are used, and their allreduce at the end of a step, are left out, so that the step is "
     "a little faster than the real one"},
    {"moe-unperm2-mem-optim", refused, MegatronFlag::any, "", "", known_to_none},
    {"moe-zerc", refused, MegatronFlag::any, "", "", known_to_none},
    {"num-layers-per-virtual-pipeline-stag", refused, MegatronFlag::any, "", "", known_to_none},
    {"moe-enable-deepep", refused, MegatronFlag::any, "num-experts", "", other_ways},
    {"moe-deepep-num-sms", refused, MegatronFlag::any, "num-experts", "", other_ways},
    {"moe-hierarchical-alltoallv", refused, MegatronFlag::any, "num-experts", "", other_ways},
    {"moe-bmm-mc2", refused, MegatronFlag::any, "num-experts", "", other_ways},
};

}  // namespace megatron_experts

std::span<const MegatronFlag> megatron_flags_of_experts() { return megatron_experts::flags; }

}  // namespace hcclsim::study
