#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "hccl/ps/job.hpp"
#include "hccl/ps/wire.hpp"

/// What training with parameter servers is asked for, beside the run that says what is trained and where: a RunSpec
/// whose NPUs are the workers'.
namespace hcclsim::study {

/// Where servers run, as it is given: "npu" behind the workers, "npu:8,9" on these NPUs, "cpu" on the CPUs of the
/// platform's servers in turn, "cpu:0,1" on these.
struct PsHosts {
  bool cpu = false;
  std::vector<std::uint32_t> numbers{};  ///< empty: as many as are needed, in their order
};
/// Throws Error(bad_input, "option").
[[nodiscard]] PsHosts parse_ps_hosts(std::string_view text);

struct PsSpec {
  std::uint32_t servers = 1;
  PsHosts hosts{};
  std::vector<std::uint32_t> worker_npus{};  ///< empty: the first of the platform, as many as the run has
  std::vector<std::string> marked{};         ///< patterns of parameters on servers, with *; empty: all
  bool asynchronous = false;
  std::optional<std::uint32_t> staleness{};

  hccl::PsGeneration generation = hccl::PsGeneration::classic;
  std::vector<hccl::PsRequest> requests{};
  std::vector<hccl::PsFailure> failures{};
  std::map<std::string, Seconds> node_delays{};
  Seconds node_start = 10;
  hccl::PsRecovery recovery{};
  std::optional<Seconds> node_timeout{};  ///< none: the generation's
  std::optional<Seconds> cluster_timeout{};

  Seconds call = 20e-6;                              ///< software time of a message
  Seconds poll = 100e-6;                             ///< between two questions of a worker that has to wait
  std::optional<BytesPerSecond> server_bandwidth{};  ///< none: of the host

  std::uint64_t cache_rows = 0;  ///< vocab_cache_size
  std::string ids = "uniform";
  bool init_in_server = false;
};

/// Memory bandwidth of a server on a CPU host: one socket of Kunpeng 920 with eight channels of DDR4-2933.
inline constexpr BytesPerSecond cpu_bandwidth = 8 * 2933e6 * 8;

/// Sets what the keys of set_ps_context say: enable_ps, config_file_path, scheduler_manage_port, enable_ssl,
/// client_password, server_password, server_mode, ms_role, worker_num, server_num, scheduler_ip, scheduler_port; as
/// text "key=value, key=value" of Python literals. `workers` is set by worker_num. Throws Error(bad_input) of kind
/// "value-error" or "type-error".
void apply_ps_context(std::string_view text, PsSpec& spec, std::optional<Rank>& workers);
/// The same for variables of the environment, "MS_SERVER_NUM=2,MS_ROLE=MS_WORKER".
void apply_ps_environment(std::string_view text, PsSpec& spec, std::optional<Rank>& workers);

}  // namespace hcclsim::study
