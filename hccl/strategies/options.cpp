#include "hccl/strategies/options.hpp"

#include <cmath>
#include <string_view>

#include "base/error.hpp"

namespace hcclsim::hccl {
namespace {

void require_positive(std::string_view option, double value) {
  if (!(std::isfinite(value) && value > 0)) bad_input("search", "{} must be a number above 0, got {}", option, value);
}

}  // namespace

void check(const SearchOptions& options) {
  if (options.devices < 1 || options.devices > max_search_devices) {
    bad_input("search", "strategies are searched for 1 to {} devices, got {}", max_search_devices, options.devices);
  }
  if (options.tensor_slice_align_size < 1 || options.tensor_slice_align_size > 1024) {
    bad_input("search", "tensor_slice_align_size must be 1 to 1024, got {}", options.tensor_slice_align_size);
  }
  if (!(options.algo_approxi_epsilon > 0 && options.algo_approxi_epsilon <= 1)) {
    bad_input("search", "algo_approxi_epsilon must be above 0 and at most 1, got {}", options.algo_approxi_epsilon);
  }
  if (options.device_memory == 0) bad_input("search", "device_memory must be at least 1 byte, got 0");
  require_positive("costmodel_alpha", options.alpha);
  require_positive("costmodel_beta", options.beta);
  if (!(options.gamma >= 0 && options.gamma <= 1)) {
    bad_input("search", "costmodel_gamma must be 0 to 1, got {}", options.gamma);
  }
  require_positive("costmodel_communi_threshold", options.communication_threshold);
  require_positive("costmodel_communi_const", options.communication_constant);
  require_positive("costmodel_communi_bias", options.communication_bias);
  require_positive("rp_matmul_mem_coef", options.rp_matmul_mem_coef);
}

}  // namespace hcclsim::hccl
