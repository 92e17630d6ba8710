#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

/// Gradients have two numberings. In production order, which HCCL uses, index 0 is the gradient that back-propagation
/// finishes first; in parameter order, which MindSpore uses, index 0 is the parameter that the forward pass uses first.
/// A segment is a run of gradients in production order that one allreduce carries; its parameters need not be a run in
/// parameter order, because branches (the shortcut of a residual block) are finished in an order of their own.
namespace hcclsim::hccl {

/// Gradients first … last in production order, both included.
struct Segment {
  std::uint32_t first = 0;
  std::uint32_t last = 0;

  [[nodiscard]] std::uint32_t tensors() const { return last - first + 1; }
  friend bool operator==(const Segment&, const Segment&) = default;
};

/// A run of indices in parameter order, both ends included.
struct ParameterRange {
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  friend bool operator==(const ParameterRange&, const ParameterRange&) = default;
};

/// Segments 0 … last_indices[0], last_indices[0] + 1 … last_indices[1], and so on; the indices ascend strictly.
[[nodiscard]] std::vector<Segment> segments_from_last_indices(std::span<const std::uint32_t> last_indices);

/// The parameters of a segment as ascending runs. `parameter_of[i]` is the index, in parameter order, of the parameter
/// whose gradient has index i in production order.
[[nodiscard]] std::vector<ParameterRange> parameter_ranges(Segment segment,
                                                           std::span<const std::uint32_t> parameter_of);

/// Elements that each rank adds a multiple of to the segments that are padded: as many per rank as Megatron-LM pads its
/// buckets of gradients to (megatron/core/distributed/param_and_grad_buffer.py: 128), so that every part of a
/// hierarchical reduction, too, is as long as all others and begins at a multiple of 128 bytes.
inline constexpr std::uint64_t padding_elements_per_rank = 128;

/// Elements of a reduction over `ranks` that is filled up with zeros until all ranks have equal parts.
[[nodiscard]] constexpr std::uint64_t padded_elements(std::uint64_t elements, std::uint64_t ranks) {
  const std::uint64_t unit = padding_elements_per_rank * ranks;
  return (elements + unit - 1) / unit * unit;
}

/// "[0,107] [108,160]".
[[nodiscard]] std::string to_string(std::span<const Segment> segments);
/// "0-53,55,58-160".
[[nodiscard]] std::string to_string(std::span<const ParameterRange> ranges);

/// The line that HCCL logs when it has split the gradients (CANN's documentation shows it: "gradient segment result").
[[nodiscard]] std::string segment_log_line(std::span<const Segment> segments);

}  // namespace hcclsim::hccl
