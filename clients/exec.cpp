#include "clients/exec.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <string_view>
#include <system_error>

#include "base/error.hpp"
#include "clients/server/hosts/hosts.hpp"
#include "clients/server/hosts/programs.hpp"
#include "clients/server/simulator.hpp"
#include "study/platform/fault_notes.hpp"
#include "study/platform/on_platform.hpp"

namespace hcclsim::clients {
namespace {

constexpr Seconds usual_connect_timeout = 120;

/// What of HCCL's variables has an effect on programs.
std::vector<std::string_view> obeyed_variables(const ExecSpec& spec) {
  std::vector<std::string_view> obeyed{
      "HCCL_ALGO",         "HCCL_BUFFSIZE",           "HCCL_CONNECT_TIMEOUT",         "HCCL_DETERMINISTIC",
      "HCCL_EXEC_TIMEOUT", "HCCL_INTER_HCCS_DISABLE", "HCCL_RDMA_QPS_PER_CONNECTION", "HCCL_MULTI_QP_THRESHOLD"};
  const hccl::HcclSetting* const expansion = find_setting(spec.platform.hccl_settings, "HCCL_OP_EXPANSION_MODE");
  if (expansion != nullptr && expansion->value != "AIV") obeyed.emplace_back("HCCL_OP_EXPANSION_MODE");
  return obeyed;
}

Seconds connect_timeout_of(const ExecSpec& spec) {
  const hccl::HcclSetting* const setting = find_setting(spec.platform.hccl_settings, "HCCL_CONNECT_TIMEOUT");
  return setting == nullptr ? usual_connect_timeout : std::strtod(setting->value.c_str(), nullptr);
}

/// The number of processes on each server; throws if the platform has too few servers.
std::uint32_t per_server_of(const ExecSpec& spec, const sim::Cluster& cluster) {
  std::uint32_t devices = 0;
  for (Rank npu = 0; npu < cluster.size(); ++npu) devices += cluster.npu(npu).server == 0 ? 1 : 0;
  const std::uint32_t per_server = spec.per_server > 0 ? spec.per_server : devices;
  const std::uint32_t servers = (spec.processes + per_server - 1) / per_server;
  if (servers > cluster.servers()) {
    bad_input("option", "--processes {}: {} on a server need {} servers, {} has {}", spec.processes, per_server,
              servers, cluster.path(), cluster.servers());
  }
  return per_server;
}

void check_traced(const ExecSpec& spec, const sim::Cluster& cluster) {
  for (const Rank npu : spec.traced) {
    if (npu < cluster.size()) continue;
    bad_input("option", "--trace-ranks {}: {} has NPUs 0 to {}", npu, cluster.path(), cluster.size() - 1);
  }
}

/// Whether the command lies where it was built, beside the libraries for programs.
bool is_where_it_was_built(const std::filesystem::path& folder) {
  std::error_code error;
  return std::filesystem::exists(folder / "clients/libascendcl.so", error);
}

std::filesystem::path folder_of_command() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
}

/// A folder, absolute or from that of the command, that has to have the file.
std::string folder_with(const char* file, const char* folder) {
  std::error_code error;
  const std::filesystem::path path = folder_of_command() / folder;
  if (std::filesystem::exists(path / file, error)) return std::filesystem::weakly_canonical(path).string();
  bad_input("program",
            "{} is neither where it is built nor where it is installed: ./bootstrap build builds it, or "
            "cmake --build FOLDER --target clients",
            file);
}

std::string library_folder() {
  return folder_with("libascendcl.so", is_where_it_was_built(folder_of_command()) ? "clients" : HCCLSIM_LIBRARY_PATH);
}

}  // namespace

std::string compiler_flags() {
  const bool is_built = is_where_it_was_built(folder_of_command());
  const std::string headers = folder_with("hccl/hccl.h", is_built ? HCCLSIM_SOURCE_HEADERS : HCCLSIM_HEADER_PATH);
  const std::string libraries = library_folder();
  for (const char* const other : {"libhccl.so", "libmpi.so"}) static_cast<void>(folder_with(other, libraries.c_str()));
  return fmt::format("-I{} -L{} -lhccl -lascendcl -lmpi", headers, libraries);
}

ExecResult exec(const ExecSpec& spec, const std::function<void(const ExecTrace&)>& use) {
  if (spec.words.empty()) bad_input("option", "no program: hcclsim exec … -- PROGRAM ARGUMENT…");
  const std::string libraries = library_folder();
  // What a child writes to standard error is kept for a crash: programs get this one.
  const int standard_error = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
  const auto simulate = [&](study::LoadedPlatform& platform) {
    std::vector<Rank> all(platform.cluster.size());
    std::iota(all.begin(), all.end(), Rank{0});
    const std::uint32_t per_server = per_server_of(spec, platform.cluster);
    const SimulatorOptions options{
        .launch = spec.launch,
        .connect_timeout = connect_timeout_of(spec),
        .faults = sim::FaultPlan::of(platform.cluster, spec.faults, platform.cluster.size(), all),
        .traced = spec.traces_all ? all : spec.traced,
        .wall_timeout_s = spec.wall_timeout_s,
        .poison = spec.poison};
    check_traced(spec, platform.cluster);
    ExecResult result{.unmodelled = platform.unmodelled, .notes = platform.notes};
    study::note_faults(spec.faults, result.notes, "the programs begin");
    Programs programs({.words = spec.words,
                       .processes = spec.processes,
                       .library_path = libraries,
                       .standard_error = standard_error});
    programs.start();
    Hosts hosts(programs, spec.processes, per_server);
    Simulator simulator(platform, hosts, options);
    const auto show_trace = [&] {
      if (options.traced.empty() || !use) return;
      ExecTrace trace{.spans = simulator.trace(), .npus = options.traced};
      trace.plan.roles.resize(1);
      trace.plan.role_of.assign(platform.cluster.size(), 0);
      use(trace);
    };
    try {
      simulator.run();
    } catch (const Error& error) {
      if (error.code() == ErrorCode::simulated_failure) show_trace();
      throw;
    }
    show_trace();
    result.notes.insert(result.notes.end(), hosts.notes().begin(), hosts.notes().end());
    return result;
  };
  const auto obeyed = obeyed_variables(spec);
  ExecResult result = study::on_platform(spec.platform, obeyed, simulate);
  ::close(standard_error);
  return result;
}

}  // namespace hcclsim::clients
