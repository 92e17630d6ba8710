#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "device/soc.hpp"

/// Values of HCCL's environment variables as text: whole numbers of a range, and words in upper or lower case. Also the
/// variables that HCCL documents but that do not affect the simulation (sockets, RDMA retries, logs, white lists): they
/// are checked too, because a value that HCCL refuses would stop a real run.
namespace hcclsim::hccl {

struct WholeRange {
  std::uint64_t lowest = 0;
  std::uint64_t highest = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t step = 1;   ///< values are multiples of it
  std::string_view unit{};  ///< in the plural; empty: none
};

/// A number of the range in decimal digits alone, or nothing.
[[nodiscard]] std::optional<std::uint64_t> parse_whole(std::string_view text, const WholeRange& range);
/// "a whole number of seconds from 120 to 7200".
[[nodiscard]] std::string to_string(const WholeRange& range);

[[nodiscard]] std::string upper_case(std::string_view text);

/// "910A", "A2", "A3": the products of a generation in messages.
[[nodiscard]] std::string_view product_of(device::Generation generation);

/// For a variable that does not affect the simulation: what is accepted, if the value is not. Empty if it is accepted,
/// and for all other variables.
[[nodiscard]] std::string refused_by(std::string_view variable, std::string_view value, device::Generation generation);

}  // namespace hcclsim::hccl
