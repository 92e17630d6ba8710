#include "hccl/parallel/segments/segment.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace hcclsim::hccl {

std::vector<Segment> segments_from_last_indices(std::span<const std::uint32_t> last_indices) {
  std::vector<Segment> segments;
  segments.reserve(last_indices.size());
  std::uint32_t first = 0;
  for (const std::uint32_t last : last_indices) {
    segments.push_back({first, last});
    first = last + 1;
  }
  return segments;
}

std::vector<ParameterRange> parameter_ranges(Segment segment, std::span<const std::uint32_t> parameter_of) {
  const auto members = parameter_of.subspan(segment.first, segment.tensors());
  std::vector<std::uint32_t> parameters(members.begin(), members.end());
  std::sort(parameters.begin(), parameters.end());
  std::vector<ParameterRange> ranges;
  for (const std::uint32_t parameter : parameters) {
    if (!ranges.empty() && ranges.back().last + 1 == parameter) {
      ranges.back().last = parameter;
    } else {
      ranges.push_back({parameter, parameter});
    }
  }
  return ranges;
}

std::string to_string(std::span<const Segment> segments) {
  std::string text;
  for (const Segment& segment : segments) {
    text += fmt::format("{}[{},{}]", text.empty() ? "" : " ", segment.first, segment.last);
  }
  return text;
}

std::string to_string(std::span<const ParameterRange> ranges) {
  std::string text;
  for (const ParameterRange& range : ranges) {
    if (!text.empty()) text += ',';
    text += range.first == range.last ? fmt::format("{}", range.first) : fmt::format("{}-{}", range.first, range.last);
  }
  return text;
}

std::string segment_log_line(std::span<const Segment> segments) {
  return fmt::format("gradient segment result: segment num: {}, segment index list: {}", segments.size(),
                     to_string(segments));
}

}  // namespace hcclsim::hccl
