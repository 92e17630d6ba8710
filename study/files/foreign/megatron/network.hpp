#pragma once

#include <cstdint>
#include <string>

#include "study/files/foreign/megatron/arguments.hpp"

namespace hcclsim::study {

/// The family of networks that arguments describe.
enum class MegatronFamily { bert, gpt, decoder };

/// What several parts of the mapping ask of the network.
struct MegatronNetwork {
  MegatronFamily family = MegatronFamily::decoder;
  std::string layer_spec;   ///< module of --spec, which says what a layer is made of: "qwen3_spec"; may be empty
  bool experts = false;     ///< --num-experts is above 1
  bool latent = false;      ///< latent attention (MLA)
  bool compressed = false;  ///< compressed attention, as DeepSeek-V4 has it
  std::uint64_t layers_of_one = 1;  ///< of run, for each layer of the script
};

[[nodiscard]] MegatronNetwork find_megatron_network(MegatronArguments& arguments);

/// Maps which network it is, its layers, widths, heads, norms and biases.
void map_megatron_model(MegatronArguments& arguments, const MegatronNetwork& network);
/// Maps the experts in the place of second halves, if there are some.
void map_megatron_experts(MegatronArguments& arguments, const MegatronNetwork& network);
/// Maps the rows of the table of tokens.
void map_megatron_vocabulary(MegatronArguments& arguments, const MegatronNetwork& network);
/// Maps adapters beside frozen weights, and documents in a row.
void map_megatron_tuning(MegatronArguments& arguments, const MegatronNetwork& network);
/// Maps ranks, the NPUs that they are on, and how the step is spread over them.
void map_megatron_ranks(MegatronArguments& arguments, const MegatronNetwork& network);

}  // namespace hcclsim::study
