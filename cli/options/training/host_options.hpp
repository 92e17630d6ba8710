#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/options/parse/origins.hpp"
#include "study/spec/run_spec.hpp"

/// Options of `hcclsim run` that say what hosts do for a step: how they launch it, and how its batches come.
namespace hcclsim::cli {

struct HostOptions {
  std::string exec = "sink";                  ///< or "eager"
  std::optional<double> launch_us{};          ///< to issue a kernel; none: what is assumed
  std::optional<double> images_per_second{};  ///< of the data workers of a server; none: any number
  std::uint32_t prefetch = study::HostSpec{}.prefetch;
};

void add_host_options(Command& command, HostOptions& options);

/// Eager execution issues collectives one by one, unless --launch says otherwise. Throws Error(bad_input, "option").
void finish_host_options(const OptionOrigins& origins, const HostOptions& options, study::RunSpec& spec);

}  // namespace hcclsim::cli
