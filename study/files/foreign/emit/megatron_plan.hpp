#pragma once

#include <map>
#include <string>
#include <vector>

#include "study/files/foreign/emit/emit.hpp"

namespace hcclsim::study {

/// Arguments of a program by their names, without dashes: their words.
using Arguments = std::map<std::string, std::vector<std::string>>;

/// What a script says of its layers.
struct ScriptLayers {
  std::uint64_t layers = 0;     ///< of run
  std::uint64_t of_script = 1;  ///< layers of run that each one of the script stands for
  bool pairs = false;           ///< a sample is two answers
};

/// Sets Megatron's arguments of how a step is spread, in the place of those that `arguments` have.
void set_megatron_plan(Arguments& arguments, const EmittedRun& run, const ScriptLayers& script);
/// Sets those of the network, of types, the optimizer and reductions. Throws Error(bad_input, "foreign") for a network
/// of another family.
void set_megatron_training(Arguments& arguments, const EmittedRun& run);

}  // namespace hcclsim::study
