#include "models/lowering/precision.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.hpp"

namespace hcclsim::models {
namespace {

constexpr std::array<std::string_view, 3> amp_names{"O0", "O2", "O3"};

}  // namespace

std::string_view name_of(Amp amp) { return amp_names.at(static_cast<std::size_t>(amp)); }

Amp parse_amp(std::string_view name) {
  const auto* const found = std::ranges::find(amp_names, name);
  if (found != amp_names.end()) return static_cast<Amp>(found - amp_names.begin());
  bad_input("option", "unknown precision level '{}'; use O0 (all fp32), O2 (mixed) or O3 (all fp16)", name);
}

std::string to_string(const Precision& precision) {
  for (const Amp amp : {Amp::o0, Amp::o2, Amp::o3}) {
    if (precision == precision_of(amp)) return std::string(name_of(amp));
  }
  return fmt::format("parameters {}, compute {}, gradients {}, optimizer {}{}", name_of(precision.weight),
                     name_of(precision.compute), name_of(precision.gradient), name_of(precision.optimizer),
                     precision.master_weights ? " with master weights" : "");
}

void require_precision(const Precision& precision) {
  const auto require = [](std::string_view what, DataType type) {
    if (type == DataType::fp32 || type == DataType::fp16 || type == DataType::bf16) return;
    bad_input("option", "{} {}: accepted: fp32, fp16, bf16", what, name_of(type));
  };
  require("--param-dtype", precision.weight);
  require("--compute-dtype", precision.compute);
  require("--grad-dtype", precision.gradient);
  require("--optimizer-dtype", precision.optimizer);
  if (size_of(precision.optimizer) < size_of(precision.weight)) {
    bad_input("option", "--optimizer-dtype {}: less exact than the parameters, which are {} (--param-dtype)",
              name_of(precision.optimizer), name_of(precision.weight));
  }
  if (precision.master_weights && precision.optimizer == precision.weight) {
    bad_input("option", "--master-weights on: the parameters are {} as the optimizer is; there is nothing to copy",
              name_of(precision.weight));
  }
}

}  // namespace hcclsim::models
