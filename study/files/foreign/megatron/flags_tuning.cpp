#include "study/files/foreign/megatron/flags.hpp"

// Tuning, and rows of several documents.
namespace hcclsim::study {
namespace megatron_tuning {

using enum MegatronFlagKind;

constexpr std::string_view whole_samples =
    "samples are taken as long as --seq-length: what is really shorter takes less time, so that the step is slower "
    "than the real one";
constexpr std::string_view whole_rows =
    "each token sees its whole row; within its document there is less to compute, so that the step is slower than the "
    "real one";
constexpr std::string_view a_number = "a number inside kernels, of whatever value";
constexpr std::string_view keys_of_fsdp = "keys of FSDP2 stand for those of its YAML, which is not read";

constexpr MegatronFlag flags[] = {
    {"stage", mapped, 1, "", "", "it does not come to bear with the other arguments"},
    {"is-pairwise-dataset", mapped, 0, "", "", "--stage says what it trains"},
    {"is-instruction-dataset", no_effect, 0, "", "", "a step of tuning is one of training with other data"},
    {"no-pad-to-seq-lengths", left_out, 0, "", "", whole_samples},
    {"variable-seq-lengths", left_out, 0, "", "", whole_samples},
    {"pad-to-multiple-of", no_effect, 1, "", "", "samples are taken as long as --seq-length"},
    {"pack", no_effect, 0, "", "", "samples lie behind each other in rows of --seq-length, as here"},
    {"neat-pack", left_out, 0, "reset-attention-mask", "", whole_rows},
    {"reset-attention-mask", left_out, 0, "", "", whole_rows},
    {"reset-position-ids", left_out, 0, "", "",
     "positions are those of the row, and need no gather of each token's, so that the step is a little faster than the "
     "real one"},
    {"fix-sub-seq-length", mapped, 1, "reset-attention-mask", "", "attention is of whole rows"},
    {"lora-r", mapped, 1, "", "0", "it is off"},
    {"lora-target-modules", mapped, MegatronFlag::any, "lora-r", "", "adapters are off"},
    {"lora-fusion", left_out, 0, "lora-r", "",
     "products of adapters stand beside those of the frozen weights, and do not overlap with collectives, so that the "
     "step is slower than the real one"},
    {"lora-alpha", no_effect, 1, "", "", a_number},
    {"lu-lora-final-layer-index", left_out, 1, "lora-r", "",
     "all layers have adapters, and back-propagation goes through them all, so that the step is slower than the real "
     "one"},
    {"lu-lora-lr", no_effect, 1, "", "", a_number},
    {"lu-lora-lr-ratio", no_effect, 1, "", "", a_number},
    {"model.*", refused, MegatronFlag::any, "", "", keys_of_fsdp},
    {"data.*", refused, MegatronFlag::any, "", "", keys_of_fsdp},
    {"parallel.*", refused, MegatronFlag::any, "", "", keys_of_fsdp},
    {"training.*", refused, MegatronFlag::any, "", "", keys_of_fsdp},
    {"optimization.*", refused, MegatronFlag::any, "", "", keys_of_fsdp},
};

}  // namespace megatron_tuning

std::span<const MegatronFlag> megatron_flags_of_tuning() { return megatron_tuning::flags; }

}  // namespace hcclsim::study
