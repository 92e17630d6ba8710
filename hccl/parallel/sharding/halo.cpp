#include "hccl/parallel/sharding/halo.hpp"

#include "base/error.hpp"

namespace hcclsim::hccl {

models::Border border_of_part(std::string_view op, const models::Window& window, std::uint32_t input,
                              std::uint32_t output, std::uint32_t parts) {
  const std::uint32_t pixels = input / parts;
  if (window.kernel <= window.stride) {
    if (window.padding != 0 || pixels % window.stride != 0) {
      bad_input("strategy",
                "{}: {} pixels cannot be cut into {} parts for a {}x{} window with stride {} and padding {}; without "
                "overlap there must be no padding, and parts must be multiples of the stride",
                op, input, parts, window.kernel, window.kernel, window.stride, window.padding);
    }
    return {};
  }
  if (output * window.stride != input || window.kernel < window.stride + window.padding) {
    bad_input(
        "strategy",
        "{}: {} pixels that a {}x{} window with stride {} and padding {} makes {} cannot be cut into equal parts; "
        "those that it makes, times the stride, must be those that it reads",
        op, input, window.kernel, window.kernel, window.stride, window.padding, output);
  }
  const models::Border border{window.padding, window.kernel - window.stride - window.padding};
  if (border.before > pixels || border.behind > pixels) {
    bad_input("strategy", "{}: parts of {} pixels are smaller than the {} and {} pixels that neighbours need", op,
              pixels, border.behind, border.before);
  }
  return border;
}

}  // namespace hcclsim::hccl
