#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "hccl/comm/group_name.hpp"
#include "hccl/parallel/segments/segment.hpp"

/// How HCCL cuts the gradients of a group into segments, each carried by one allreduce: after given gradients
/// (set_split_strategy_by_idx), by percentages of the bytes (set_split_strategy_by_size), or by default at 96.54 % and
/// 3.46 %. A size setting counts before an index setting, and both before the default; the first setting of a kind
/// that a group gets stays. Percentages become indices by the vendor's binary search over float32 sums, which does not
/// always find the nearest gradient, and is followed here to the letter (CANN Python API, gradient segmentation).
/// All errors are Error(bad_input) of kind "split"; their messages say what was meant where that can be guessed.
namespace hcclsim::hccl {

/// Documented limit of segments per group (HCCL_MAX_SEGMENT_NUM); the vendor's library does not enforce it.
inline constexpr std::size_t max_segments = 8;
/// Default split in percent of the bytes: the vendor's best cut of ResNet50.
inline constexpr double default_first_percent = 96.54;

/// Reads "20,100,159" or the Python list "[20, 100, 159]": whole numbers from 0 to 2^32 − 1.
[[nodiscard]] std::vector<std::uint32_t> parse_index_list(std::string_view text);
/// Reads MindSpore's list (fusion_index.hpp): the same, and ascending.
[[nodiscard]] std::vector<std::uint32_t> parse_fusion_index(std::string_view text);
/// Reads "60,20,20", "96.54,3.46" or the Python list "[60, 20, 20]": finite percentages, not negative.
[[nodiscard]] std::vector<double> parse_size_list(std::string_view text);

/// What to do for a group that has neither an index nor a size setting. Only the first exists in HCCL; the others are
/// there to compare with.
enum class FallbackSplit : std::uint8_t {
  vendor_default,  ///< 96.54 / 3.46 %
  none,            ///< one segment
  each,            ///< one segment per gradient
};

/// The settings that one rank has made for its groups.
class SplitStrategies {
 public:
  /// `caller` is the rank that makes the settings, of `world_size`; `allow_many_segments` lifts the limit of eight.
  SplitStrategies(Rank caller, Rank world_size, bool allow_many_segments = false);

  /// Makes a group known beside the world group. Its ranks are world ranks, without repetition.
  void create_group(const std::string& name, std::vector<Rank> ranks);

  /// Cuts after these gradients (production order). Whether the last index is the last gradient shows in resolve().
  void set_split_strategy_by_idx(std::vector<std::uint32_t> last_indices, std::string_view group = world_group);
  /// Cuts by percentages of the bytes; they sum to 100 within 1e-6.
  void set_split_strategy_by_size(std::vector<double> percentages, std::string_view group = world_group);
  /// Used by groups without a setting.
  void set_fallback(FallbackSplit fallback) { fallback_ = fallback; }

  /// Segments of a group whose gradients, in production order, have these sizes. They cover every gradient once.
  [[nodiscard]] std::vector<Segment> resolve(std::string_view group, std::span<const Bytes> gradient_sizes) const;

  /// Settings that had no effect, and why: one sentence each, in the order of the calls.
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

 private:
  struct Settings {
    std::vector<Rank> ranks;  ///< ascending; empty for the world group
    std::vector<std::uint32_t> last_indices;
    std::vector<double> percentages;
  };
  Settings& settings_of_callers_group(std::string_view group);
  /// Makes `list` the setting if there is none yet, else notes that it is ignored.
  template <typename Value>
  void keep_first(std::string_view what, std::string_view group, std::vector<Value>& setting, std::vector<Value> list);

  Rank caller_;
  Rank world_size_;
  bool allow_many_segments_;
  FallbackSplit fallback_ = FallbackSplit::vendor_default;
  std::map<std::string, Settings, std::less<>> groups_;
  std::vector<std::string> notes_;
};

/// The last indices that HCCL derives from percentages of the bytes; they ascend and end with the last gradient. There
/// are fewer than percentages when an early one reaches the last gradient.
[[nodiscard]] std::vector<std::uint32_t> last_indices_by_size(std::span<const double> percentages,
                                                              std::span<const Bytes> gradient_sizes);

}  // namespace hcclsim::hccl
