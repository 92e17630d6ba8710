#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "hccl/schedule/schedule.hpp"

/// The closed forms of a schedule as people write them: p is the position in the group, r the round, q the queue.
///
///     number    7   p+1   2r-1   8-p+r
///     peer      p+1         that position, modulo the size of the group
///               flip r      the own position with bit r flipped
///     range     output[p-r-1 of 8][0 of 4]      slice 0 of 4 of slice p-r-1 (modulo 8) of 8
///               output[2p of 8 count 2]         two slices
///               output[p of 8 ordered]          the slice of the place where position p of the group stands
///               output[half r+1 of 8]           the window that p keeps after r+1 halvings of 8 slices
///               output[half r+1 of 8 peer]      that of the one it exchanges with in the last halving
///               output[p of 8 group 1]          p is the position in group 1 instead of the strand's
///               scratch[p of 8] slot q stride 1024    at byte 1024·q; the cuts give the length only
///
/// The parse functions throw Error(bad_input, "schedule") that quotes the text and says where it is wrong.
namespace hcclsim::hccl {

/// Of a text that can be read and says what cannot be.
class ImpossibleForm : public Error {
 public:
  explicit ImpossibleForm(const std::string& problem) : Error(ErrorCode::bad_input, "schedule", problem) {}
};

[[nodiscard]] std::string text_of(const Linear& number);
[[nodiscard]] Linear parse_linear(std::string_view text);

/// The text leaves out the peer's group, which is a field of its own. Not for a peer of kind none.
[[nodiscard]] std::string text_of(const Peer& peer);
[[nodiscard]] Peer parse_peer(std::string_view text, std::uint16_t group);

/// A group is named only if it is not `strand_group`.
[[nodiscard]] std::string text_of(const Range& range, std::uint16_t strand_group);
[[nodiscard]] Range parse_range(std::string_view text, std::uint16_t strand_group);

}  // namespace hcclsim::hccl
