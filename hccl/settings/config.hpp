#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "device/soc.hpp"
#include "hccl/settings/algo_setting.hpp"
#include "sim/fabric/routing.hpp"

/// The settings of HCCL as checked values: users give them by its environment variables HCCL_…, or by options of the
/// same meaning. Ranges, spellings and defaults are those that HCCL documents for each generation of the chip;
/// `docs/hccl_variables.md` has the table, and says how each setting affects the simulation. unmodelled() names the
/// variables that are set and have no effect, so that no run seems to have obeyed them.
namespace hcclsim::hccl {

/// One setting as the user gave it.
struct HcclSetting {
  std::string variable;  ///< "HCCL_ALGO"
  std::string value;     ///< blank: as if it were not set
  std::string origin;    ///< what messages call it: the variable, "--hccl-algo", or a line of a file
};

/// HCCL_DETERMINISTIC. All algorithms here reduce in a fixed order; the setting only excludes those that HCCL considers
/// not deterministic.
enum class Determinism : std::uint8_t { off, on, strict };

/// HCCL_OP_EXPANSION_MODE: where a collective is expanded into tasks, which are then given to the device.
enum class OpExpansion : std::uint8_t { host, host_ts, ai_cpu, ai_cpu_without_cache, aiv };

/// The defaults are those of 910A and A2.
struct HcclConfig {
  AlgoSetting algo;                              ///< HCCL_ALGO
  Bytes buffer_bytes = Bytes{200} << 20U;        ///< HCCL_BUFFSIZE, of each of a communicator's two buffers
  Determinism determinism = Determinism::off;    ///< HCCL_DETERMINISTIC
  Seconds exec_timeout = 1836;                   ///< HCCL_EXEC_TIMEOUT: longest wait for a notify; infinite: none
  OpExpansion op_expansion = OpExpansion::host;  ///< HCCL_OP_EXPANSION_MODE
  bool inter_hccs_disabled = false;              ///< HCCL_INTER_HCCS_DISABLE: RoCE between the servers of a super-pod

  /// HCCL_RDMA_QPS_PER_CONNECTION, HCCL_MULTI_QP_THRESHOLD
  sim::QueuePairs queue_pairs{};

  /// Device memory that a communicator takes for itself: one buffer to send, one to receive.
  [[nodiscard]] Bytes communicator_bytes() const { return 2 * buffer_bytes; }
};

/// Checks all settings, at most one per variable, and returns their values, or the generation's default where nothing
/// is set. Adds to `notes` what HCCL itself would not do, such as a mode of another generation. Notes on HCCL_ALGO
/// depend on the operator and are made in hccl/collective/selection/algo_notes.hpp. Throws Error(bad_input,
/// "environment") that names the origin, the value and what is accepted, also for variables of HCCL that do nothing
/// here.
[[nodiscard]] HcclConfig read_hccl_config(std::span<const HcclSetting> settings, device::Generation generation,
                                          std::vector<std::string>& notes);

/// The setting of the variable; null if there is none or its value is blank.
[[nodiscard]] const HcclSetting* find_setting(std::span<const HcclSetting> settings, std::string_view variable);

/// Origins of the settings that have no effect: those of variables that are not among `modelled`, in their order.
[[nodiscard]] std::vector<std::string> unmodelled(std::span<const HcclSetting> settings,
                                                  std::span<const std::string_view> modelled);

}  // namespace hcclsim::hccl
