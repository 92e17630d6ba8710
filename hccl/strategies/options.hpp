#pragma once

#include <cstdint>
#include <string_view>

#include "base/units.hpp"

/// What the strategy searches can be told. The defaults are MindSpore's on Ascend (set_algo_parameters and its context
/// of the cost model); sizes in costs are bytes, a cost itself has no unit.
namespace hcclsim::hccl {

struct SearchOptions {
  Rank devices = 1;              ///< of a stage, 1 … 1024
  bool enable_alltoall = false;  ///< an axis of the devices changes the tensor's axis that it cuts by one exchange
  bool training = true;          ///< else the network is only applied: what counts is the forward pass

  bool fully_use_devices = true;                ///< strategies use all devices or one
  bool elementwise_op_strategy_follow = false;  ///< element-wise operators have the layout of their first input
  bool tensor_slice_align_enable = false;      ///< sizes of slices of a matrix product are multiples of the next number
  std::uint32_t tensor_slice_align_size = 16;  ///< 1 … 1024
  bool enable_algo_approxi = false;            ///< lists of costs are thinned out
  double algo_approxi_epsilon = 0.1;           ///< by how much, relative, a cost that is left out may be better; (0, 1]

  Bytes device_memory = Bytes{16} << 30U;
  double alpha = 1;                       ///< weight of computation
  double beta = 400;                      ///< weight of communication
  double gamma = 0.001;                   ///< share of the communication of parameters that is not hidden, 0 … 1
  double communication_threshold = 2048;  ///< bytes up to which a message costs the same
  double communication_constant = 3072;   ///< what it costs then
  double communication_bias = 1024;       ///< what is added to larger ones
  double rp_matmul_mem_coef = 0.1;        ///< recursive search: weight of the memory of a matrix product's whole weight
  bool triangle_star_strategy_overwrite =
      true;  ///< costs of the other operators count where a triangle or star is folded
};

inline constexpr Rank max_search_devices = 1024;
/// What can be done where nothing fits into SearchOptions::device_memory.
inline constexpr std::string_view memory_advice =
    "by the cost model, which counts what all passes keep: give more with --device-memory, or fewer samples with "
    "--global-batch";

/// Throws Error(bad_input, "search") that names the option, its value and what is accepted.
void check(const SearchOptions& options);

}  // namespace hcclsim::hccl
