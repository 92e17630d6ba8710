#include "study/files/foreign/megatron/flags.hpp"

// Kernels, and what is kept, computed again or swapped.
namespace hcclsim::study {
namespace megatron_kernels {

using enum MegatronFlagKind;

constexpr std::string_view idle = "it does not come to bear with the other arguments";
constexpr std::string_view eight_bits =
    "products are timed in the types of run; in 8 bits they take about half, and their casts some of it back: the step "
    "is slower than the real one";
constexpr std::string_view whole_loss =
    "logits and loss are computed at once, not in parts: more memory is accounted than is taken";
constexpr std::string_view with_full_recompute = "it counts with --recompute-granularity full alone";
constexpr std::string_view all_layers_again = "the number is left out: results of all layers are computed again";
constexpr std::string_view no_recompute_in_bubbles =
    "layers are computed again when their gradients have come, not while the rank waits for them, so that the step is "
    "slower than the real one";
constexpr std::string_view no_option = "no option of run stands for it";

constexpr MegatronFlag flags[] = {
    {"use-flash-attn", mapped, 0, "", "", "the attention is fused"},
    {"attention-backend", mapped, 1, "", "", idle},
    {"optimizer", mapped, 1, "", "", idle},
    {"clip-grad", mapped, 1, "", "", idle},
    {"log-interval", mapped, 1, "", "", idle},
    {"shape-order", left_out, 1, "", "SBH",
     "copies into the order of axes that the attention takes are left out, so that the step is a little faster than "
     "the real one"},
    {"use-fused-rmsnorm", no_effect, 0, "", "", "a norm is one kernel, as here"},
    {"use-fused-rotary-pos-emb", no_effect, 0, "", "", "positions are turned in one kernel per tensor, as here"},
    {"no-bias-swiglu-fusion", left_out, 0, "", "",
     "SwiGLU is one kernel here, not four, so that the step is faster than the real one"},
    {"no-gradient-accumulation-fusion", no_effect, 0, "", "", "kernels of their own add gradients up, as here"},
    {"no-check-for-nan-in-loss-and-grad", no_effect, 0, "", "", "gradients are not looked through, as here"},
    {"check-for-nan-in-loss-and-grad", no_effect, 0, "", "", "gradients are not looked through, as here"},
    {"transformer-impl", no_effect, 1, "", "", "both have the same products and kernels"},
    {"fp8-format", left_out, 1, "", "", eight_bits},
    {"fp8-recipe", left_out, 1, "fp8-format|fp8-hybrid|fp8-e4m3", "", eight_bits},
    {"fp8-reuse-quantized-weight", left_out, 0, "fp8-format|fp8-hybrid|fp8-e4m3", "", eight_bits},
    {"fp8-amax-compute-algo", left_out, MegatronFlag::any, "fp8-format|fp8-hybrid|fp8-e4m3", "", eight_bits},
    {"fp8-amax-history-len", left_out, MegatronFlag::any, "fp8-format|fp8-hybrid|fp8-e4m3", "", eight_bits},
    {"fp8-interval", left_out, MegatronFlag::any, "fp8-format|fp8-hybrid|fp8-e4m3", "", eight_bits},
    {"fp8-margin", left_out, MegatronFlag::any, "fp8-format|fp8-hybrid|fp8-e4m3", "", eight_bits},
    {"fp8-param-gather", left_out, MegatronFlag::any, "fp8-format|fp8-hybrid|fp8-e4m3", "", eight_bits},
    {"fp8-hybrid", left_out, MegatronFlag::any, "", "", eight_bits},
    {"fp8-e4m3", left_out, MegatronFlag::any, "", "", eight_bits},
    {"qat-scheme", refused, 1, "", "", "weights that are rounded to few bits while training are not simulated"},
    {"loss-compute-mode", left_out, 1, "", "default", whole_loss},
    {"loss-chunk-size", left_out, 1, "loss-compute-mode", "", whole_loss},
    {"o2-optimizer", left_out, 0, "", "",
     "moments of the optimizer are accounted in fp32: 4 bytes of a parameter more than are taken, and their casts are "
     "left out, so that the step is a little faster than the real one"},
    {"use-fusion-attn-v2", no_effect, 0, "", "", "it is the fused attention of run"},
    {"use-fused-sdpa-with-recompute", no_effect, 0, "", "", "it is the fused attention of run"},
    {"recompute-granularity", mapped, 1, "", "", with_full_recompute},
    {"recompute-method", mapped, 1, "", "", with_full_recompute},
    {"recompute-num-layers", mapped, 1, "", "", with_full_recompute},
    {"recompute-activations", mapped, 0, "", "", with_full_recompute},
    {"checkpoint-activations", mapped, 0, "", "", with_full_recompute},
    {"enable-recompute-layers-per-pp-rank", mapped, 0, "", "", with_full_recompute},
    {"recompute-activation-function", mapped, 0, "", "", idle},
    {"recompute-norm", mapped, 0, "", "", idle},
    {"recompute-activation-function-num-layers", left_out, 1, "recompute-activation-function", "", all_layers_again},
    {"recompute-norm-num-layers", left_out, 1, "recompute-norm", "", all_layers_again},
    {"recompute-in-advance", left_out, 0, "recompute-granularity", "", no_recompute_in_bubbles},
    {"recompute-in-bubble", left_out, 0, "recompute-granularity", "", no_recompute_in_bubbles},
    {"recompute-modules", refused, MegatronFlag::any, "", "", no_option},
    {"distribute-saved-activations", refused, MegatronFlag::any, "", "", no_option},
    {"reduce-recompute-for-last-chunk", refused, MegatronFlag::any, "", "", no_option},
    {"recompute-activation-function-in-advance", refused, MegatronFlag::any, "", "", no_option},
    {"swap-attention", left_out, 0, "", "",
     "results of the attention stay on the NPU: more memory is accounted than is taken; ways to the host and back are "
     "left out, so that the step is faster than the real one where they do not hide"},
    {"swap-optimizer", left_out, 0, "", "",
     "states of the optimizer stay on the NPU: 12 bytes of each of its parameters more are accounted than are taken; "
     "their way to the host and back is left out, so that the step is faster than the real one"},
    {"swap-optimizer-times", no_effect, 1, "swap-optimizer", "",
     "it says in how many pieces states come from the host"},
    {"reuse-fp32-param", left_out, 0, "", "",
     "weights in bf16 are accounted beside those in fp32 whose halves they are: 2 bytes of a parameter of the "
     "optimizer more than are taken"},
};

}  // namespace megatron_kernels

std::span<const MegatronFlag> megatron_flags_of_kernels() { return megatron_kernels::flags; }

}  // namespace hcclsim::study
