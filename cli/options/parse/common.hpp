#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/options/parse/command.hpp"
#include "sim/fabric/routing.hpp"
#include "sim/faults/fault.hpp"
#include "sim/platform/edit.hpp"

/// Options that several commands have.
namespace hcclsim::cli {

/// Adds --levels, the levels of a hierarchy as hccl::parse_levels takes them.
Option& add_levels_option(Command& command, std::string& levels);

/// Adds --format, one of the words.
Option& add_format_option(Command& command, std::string& format, const std::vector<std::string>& words);

/// Adds --launch, graph or op.
Option& add_launch_option(Command& command, std::string& launch, const std::string& help);

/// Adds -o, the file that a command writes; - is standard output.
Option& add_output_option(Command& command, const std::string& names, std::string& file);

/// Adds `--set TARGET=VALUE`, which may be given several times: edits of the platform in their order; and before these
/// `--npu-hosts PATTERN --soc NAME`, which makes hosts NPUs.
void add_platform_edits(Command& command, std::vector<sim::PlatformEdit>& edits);

/// Adds `--fault FAULT`, which may be given several times.
Option& add_faults(Command& command, std::vector<sim::Fault>& faults);
/// Adds --routing, and --routing-seeds, the number of seeds of its hash that are compared, 20 by default.
void add_routing_options(Command& command, std::optional<sim::Routing>& routing, std::uint32_t& seeds);

}  // namespace hcclsim::cli
