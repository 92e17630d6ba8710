#include "sim/platform/catalog.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/error.hpp"
#include "base/names.hpp"
#include "base/text.hpp"

namespace hcclsim::sim {
namespace {

// Order of the figures: used, nominal, low, high, read, write. Sources in full: platforms/README.md.

constexpr std::string_view hixl = "measured, HIXL";

constexpr std::array<LinkSpeed, 3> speeds_910a{{
    {"hccs", 10, 30, 10, 19.3, 0, 0, "HCCL's constant"},
    {"pcie", 27.2, 32, 13.6, 32, 0, 0, "0.85 x PCIe 4.0 x16"},
    {"roce", 10, 12.5, 10, 12.5, 0, 0, "0.8 x 100 Gb/s"},
}};

constexpr std::array<LinkSpeed, 3> speeds_a2{{
    {"hccs", 19.3, 28, 18.3, 25.74, 0, 0, "measured, HCCL send-receive"},
    {"pcie", 27.2, 32, 13.6, 32, 0, 0, "0.85 x PCIe 4.0 x16"},
    {"roce", 22.6, 25, 20, 25, 22.49, 22.6, hixl},
}};

constexpr std::array<LinkSpeed, 3> speeds_a3{{
    {"sio", 204, 240, 204, 224, 0, 0, "0.85 x nominal"},
    {"ub", 148.1, 196, 124.1, 196, 148.1, 123.5, hixl},
    {"roce", 22.65, 25, 20, 25, 22.61, 22.65, hixl},
}};

// The host issues the tasks of a collective one after the other. One public record of a server of eight 910B: allreduce
// of up to 64 KB 41.06 us, all of it, so 44 tasks take 0.933 us each; send-receive of 8 bytes 33.254 us.
constexpr std::string_view per_call = "host, per collective in op mode";
constexpr std::string_view per_task = "host, per task of the rank in op mode";
// The scheduler of 910A knows no task graphs (FFTS+ came with A2): it starts what it is given.
constexpr std::string_view per_message = "host, per message in op mode, in place of op.base_us";
constexpr std::array<TaskCost, 4> issue_910a{{
    {"op.base_us", "0", per_call},
    {"op.task_us", "0.933", per_task},
    {"op.base.send-recv_us", "27.656", per_message},
    {"op.issue", "task", "a task may start when it is issued"},
}};
constexpr std::string_view vector_launch = "host, per collective that vector cores carry out";
constexpr std::string_view vector_access = "first byte or flag of another NPU's memory, by a vector core";
constexpr std::array<TaskCost, 5> issue_a2{{
    {"op.base_us", "0", per_call},
    {"op.task_us", "0.933", per_task},
    {"op.base.send-recv_us", "27.656", per_message},
    {"aiv.launch_us", "2", vector_launch},
    {"aiv.access_us", "1", vector_access},
}};
constexpr std::array<TaskCost, 4> issue_a3{{
    {"op.base_us", "10", per_call},
    {"op.task_us", "0", per_task},
    {"aiv.launch_us", "2", vector_launch},
    {"aiv.access_us", "1.5", vector_access},
}};

constexpr ServerModel atlas_800_9000{"Atlas 800 (model 9000)",
                                     ServerTopology::hccs_groups,
                                     8,
                                     0,
                                     speeds_910a,
                                     speeds_910a[1],
                                     LinkSpeed{},
                                     0.0,
                                     issue_910a};

constexpr ServerModel atlas_800t_a2{
    "Atlas 800T A2", ServerTopology::hccs_mesh, 8, 0, speeds_a2, speeds_a2[1], LinkSpeed{}, 0.0, issue_a2};

// 48 nodes are the largest super-pod published (384 NPUs of two dies).
constexpr ServerModel atlas_900_a3{"Atlas 900 A3",
                                   ServerTopology::ub_plane,
                                   16,
                                   48,
                                   speeds_a3,
                                   {"ub", 33.9, 40, 33.9, 33.9, 0, 0, hixl},
                                   {"ub", 143.2, 196, 104.5, 196, 143.2, 119.7, hixl},
                                   1.0,
                                   issue_a3};

// Cores, clock, L2 and memory size: the vendor's platform_config/*.ini of CANN 8.1, which also give the cube of
// 16×16×16 multiply-adds per cycle for all of them.
//
// Memory of the 910A generation: 32 GB of HBM2 (MLPerf v1.0 system descriptions of Ascend 910 and 910 ProA); for
// PremiumA and the 30-core bins no figure is published and the same is assumed. Its speed: the platform files give 32
// bytes per cycle and core at the memory side; 32 cores at 1.0 GHz make 1.024 TB/s. (1.2 TB/s is often quoted, but not
// by the vendor.) A2: 1.6 TiB/s, the bin of 32 GiB 0.8 TiB/s (device profiles in the vendor's modelling tool). A3: 3.2
// TB/s per package of two dies (the paper on CloudMatrix384, arXiv 2506.12708); its bin of 32 GiB has no published
// figure and takes that of the A2 bin.
//
// "old-910B" is the bin of 30 cores that was sold as Ascend910B before the A2 generation took the name.
constexpr std::array<SocEntry, 17> socs{{
    {"Ascend910A", &atlas_800_9000, 32, 32, 1.00, 32, "1.024TBps", 32},
    {"Ascend910ProA", &atlas_800_9000, 32, 32, 1.10, 32, "1.1264TBps", 32},
    {"Ascend910PremiumA", &atlas_800_9000, 32, 32, 1.22, 32, "1.24928TBps", 32},
    {"old-910B", &atlas_800_9000, 30, 30, 0.90, 32, "864GBps", 32},
    {"Ascend910ProB", &atlas_800_9000, 30, 30, 1.15, 32, "1.104TBps", 32},
    {"Ascend910B1", &atlas_800t_a2, 24, 48, 1.85, 64, "1.6TiBps", 192},
    {"Ascend910B2", &atlas_800t_a2, 24, 48, 1.80, 64, "1.6TiBps", 192},
    {"Ascend910B2C", &atlas_800t_a2, 24, 48, 1.80, 64, "1.6TiBps", 192},
    {"Ascend910B3", &atlas_800t_a2, 20, 40, 1.80, 64, "1.6TiBps", 192},
    {"Ascend910B4", &atlas_800t_a2, 20, 40, 1.50, 32, "0.8TiBps", 96},
    {"Ascend910B4-1", &atlas_800t_a2, 20, 40, 1.50, 32, "0.8TiBps", 168},
    {"Ascend910_9391", &atlas_900_a3, 24, 48, 1.85, 64, "1.6TBps", 192},
    {"Ascend910_9392", &atlas_900_a3, 24, 48, 1.85, 64, "1.6TBps", 192},
    {"Ascend910_9381", &atlas_900_a3, 24, 48, 1.80, 64, "1.6TBps", 192},
    {"Ascend910_9382", &atlas_900_a3, 24, 48, 1.80, 64, "1.6TBps", 192},
    {"Ascend910_9372", &atlas_900_a3, 20, 40, 1.80, 64, "1.6TBps", 192},
    {"Ascend910_9362", &atlas_900_a3, 20, 40, 1.50, 32, "0.8TiBps", 168},
}};

/// A name that two chips have had, and the one that it is taken for.
constexpr std::string_view ambiguous = "910b";
constexpr std::string_view ambiguous_meaning = "910b2";

using Form = NpuProperty::Form;
constexpr double most_units = 1e9;
constexpr std::array<NpuProperty, 12> properties{{
    {"cube_cores", Form::count, 1, most_units},
    {"vector_cores", Form::count, 1, most_units},
    {"clock_ghz", Form::number, 1e-3, 100},
    {"hbm_bytes", Form::bytes},
    {"hbm_bandwidth", Form::bandwidth},
    {"l2_bytes", Form::bytes},
    {"streams", Form::count, 1, most_units},
    {"events", Form::count, 1, most_units},
    {"notifies", Form::count, 1, most_units},
    {"t0_us", Form::number, 0, 1e6},
    {"efficiency_conv", Form::number, 1e-6, 1},
    {"efficiency_matmul", Form::number, 1e-6, 1},
}};

constexpr std::array<TaskCost, 10> costs{{
    {"notify.record_us", "1", "Notify Record to another NPU"},
    {"notify.record_local_us", "0.5", "Notify Record to a queue of the same NPU"},
    {"notify.wait_us", "0.02", "Notify Wait whose record has arrived"},
    {"sdma.setup_us", "0.6", "SDMA transfer below sdma.large_bytes, before its bytes flow"},
    {"sdma.setup_large_us", "1.5", "SDMA transfer from sdma.large_bytes on"},
    {"sdma.large_bytes", "524288", "size from which an SDMA transfer is large"},
    {"rdma.setup_us", "7", "RDMA transfer, before its bytes flow"},
    {"reduce.setup_us", "0.6", "reduction on an AI core"},
    {"reduce.bandwidth", "10GBps", "speed of a reduction on an AI core"},
    {"launch_us", "0", "a collective in graph mode, on the host: 0, as its tasks are loaded in advance"},
}};

constexpr std::array<std::string_view, 10> collectives{"allreduce", "reduce-scatter", "allgather", "broadcast",
                                                       "reduce",    "scatter",        "gather",    "alltoall",
                                                       "send-recv", "barrier"};

/// The name without the prefix "Ascend", and for A3 dies without "910_".
std::string_view short_name(std::string_view name) {
  for (const std::string_view prefix : {std::string_view("Ascend"), std::string_view("910_")}) {
    if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
  }
  return name;
}

/// Lower case, without the prefix "ascend".
std::string bare_name(std::string_view name) {
  const std::string bare = in_lower_case(name);
  constexpr std::string_view prefix = "ascend";
  return bare.starts_with(prefix) ? bare.substr(prefix.size()) : bare;
}

}  // namespace

// The runtime's development guide.
RuntimeLimits runtime_limits(const SocEntry& soc) {
  if (soc.server == &atlas_800_9000) return {2048, 65535, 1024};
  return {1984, 65536, 8192};
}

const LinkSpeed& ServerModel::speed(std::string_view kind) const {
  for (const LinkSpeed& speed : speeds) {
    if (speed.kind == kind) return speed;
  }
  internal_error("{} has no link of kind {}", title, kind);
}

std::span<const SocEntry> soc_entries() { return socs; }

std::span<const NpuProperty> npu_properties() { return properties; }

std::vector<std::pair<std::string_view, std::string>> npu_values(const SocEntry& soc) {
  const RuntimeLimits limits = runtime_limits(soc);
  return {{"cube_cores", fmt::to_string(soc.cube_cores)},    {"vector_cores", fmt::to_string(soc.vector_cores)},
          {"clock_ghz", fmt::to_string(soc.clock_ghz)},      {"hbm_bytes", fmt::format("{}GiB", soc.hbm_gib)},
          {"hbm_bandwidth", std::string(soc.hbm_bandwidth)}, {"l2_bytes", fmt::format("{}MiB", soc.l2_mib)},
          {"streams", fmt::to_string(limits.streams)},       {"events", fmt::to_string(limits.events)},
          {"notifies", fmt::to_string(limits.notifies)}};
}

const SocEntry* soc_of_property(std::string_view value) {
  std::string bare = bare_name(value);
  if (bare == ambiguous) bare = ambiguous_meaning;
  const auto* const found =
      std::find_if(socs.begin(), socs.end(), [&](const SocEntry& soc) { return bare_name(soc.name) == bare; });
  return found == socs.end() ? nullptr : found;
}

BytesPerSecond host_bandwidth(std::string_view soc) {
  const SocEntry* const entry = soc_of_property(soc);
  if (entry == nullptr) internal_error("'{}' is no SoC of the catalogue", soc);
  return entry->server->host.used * giga;
}

std::string ambiguous_soc(std::string_view value) {
  if (bare_name(value) != ambiguous) return {};
  return fmt::format(
      "'{}' is read as Ascend910B2; it is also the old name of a 30-core bin of the 910A generation: say Ascend910B1, "
      "B2, B3, B4 or old-910B",
      value);
}

const SocEntry& find_soc_entry(std::string_view name) {
  for (const SocEntry& soc : socs) {
    if (short_name(soc.name) == short_name(name)) return soc;
  }
  std::string_view hint;
  if (short_name(name) == "910B") {
    hint = "; '910B' means two things: state 910B1, 910B2, 910B3 or 910B4 for A2, old-910B for the 30-core bin of 910A";
  } else if (short_name(name) == "A3" || short_name(name) == "910C") {
    hint = "; state the die, such as 910_9391";
  }
  bad_input("soc", "--soc: unknown NPU type '{}'; accepted, with or without 'Ascend': {}{}", name,
            names_in(socs, &SocEntry::name), hint);
}

std::span<const TaskCost> task_costs() { return costs; }

std::span<const std::string_view> issued_collectives() { return collectives; }

std::vector<std::string> time_properties() {
  std::vector<std::string> properties{"op.base_us", "op.task_us", "aiv.launch_us", "aiv.access_us"};
  for (const TaskCost& cost : costs) {
    if (cost.property.ends_with("_us")) properties.emplace_back(cost.property);
  }
  for (const std::string_view name : collectives) properties.push_back(fmt::format("op.base.{}_us", name));
  return properties;
}

}  // namespace hcclsim::sim
