#include "cli/options/training/precision_options.hpp"

#include <string>

#include "cli/options/parse/common.hpp"

namespace hcclsim::cli {

void add_precision_options(Command& command, PrecisionOptions& options) {
  command.add("--amp", parsed(models::parse_amp, options.amp, "O0|O2|O3"), "Mixed precision")
      .value_name("")
      .with_default("O2");
  const auto add = [&](const char* name, std::optional<DataType>& type, const char* help) {
    command
        .add(name,
             one_of({"fp32", "fp16", "bf16", "bfp16"},
                    [&type](const std::string& word) { type = parse_data_type(word); }),
             help)
        .value_name("");
  };
  add("--param-dtype", options.weight, "Type of the parameters [fp32; with --amp O3 fp16]");
  add("--compute-dtype", options.compute, "Type of products and activations [fp16; with --amp O0 fp32]");
  add("--grad-dtype", options.gradient,
      "Type of the gradients that the backward pass writes [fp32, or that of --param-dtype]");
  add("--optimizer-dtype", options.optimizer, "Type of optimizer states and updates [fp32; with --amp O3 fp16]");
  command.add("--master-weights", on_off(options.master_weights),
              "The optimizer keeps its own copy of the parameters [on if its type is the more exact one]");
}

models::Precision chosen_precision(const PrecisionOptions& options) {
  models::Precision precision = models::precision_of(options.amp);
  precision.weight = options.weight.value_or(precision.weight);
  precision.compute = options.compute.value_or(precision.compute);
  precision.gradient = options.gradient.value_or(options.weight.value_or(precision.gradient));
  precision.optimizer = options.optimizer.value_or(precision.optimizer);
  const bool finer = size_of(precision.optimizer) > size_of(precision.weight);
  precision.master_weights = options.master_weights.value_or(finer);
  require_precision(precision);
  return precision;
}

}  // namespace hcclsim::cli
