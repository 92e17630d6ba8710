#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "cli/options/parse/origins.hpp"
#include "hccl/collective/algorithm.hpp"
#include "hccl/settings/config.hpp"

/// Options with the meaning of HCCL's environment variables (docs/hccl_variables.md). An option counts before its
/// variable, and a blank one (--hccl-algo '') is as if neither were there. Values are checked when the chip is known,
/// by hccl::read_hccl_config.
namespace hcclsim::cli {

/// The values of --hccl-algo and the options behind it. They stay in their places, which the options of a command know,
/// when others are assigned to them.
inline constexpr std::size_t hccl_option_count = 10;
using HcclOptions = std::array<std::string, hccl_option_count>;

void add_hccl_options(Command& command, HcclOptions& options);

/// What variables HCCL_… of the environment and the options set, one setting of a variable, in alphabetical order.
/// Throws Error(bad_input, "option") for a kind of link that is none.
[[nodiscard]] std::vector<hccl::HcclSetting> hccl_settings(const OptionOrigins& origins, const HcclOptions& options);

/// Throws Error(bad_input, "option") if beside --hccl-algo another option says the whole algorithm: that with `key`,
/// whose value it is, or --levels. Where HCCL_ALGO is in the environment, the option counts, with a note.
void require_one_algorithm(const OptionOrigins& origins, const HcclOptions& options, const std::string& key,
                           hccl::Algorithm algorithm);

/// Line of a report that names settings without effect; nothing if there are none.
[[nodiscard]] std::string unmodelled_line(const std::vector<std::string>& origins);
/// That line and a line for each note.
[[nodiscard]] std::string remarks_text(const std::vector<std::string>& unmodelled,
                                       const std::vector<std::string>& notes);
/// The same to standard error: where standard output has no place for them.
void print_remarks_apart(const std::vector<std::string>& unmodelled, const std::vector<std::string>& notes);

}  // namespace hcclsim::cli
