#include "sim/platform_catalog.hpp"

#include <array>
#include <string>

#include "base/error.hpp"

namespace hcclsim::sim {
namespace {

// Order of the figures: used, nominal, low, high, read, write. Sources: platforms/README.md.

constexpr std::array<LinkSpeed, 3> speeds_910a{{
    {"hccs", 14, 30, 10, 19.3, 0, 0},
    {"pcie", 27.2, 32, 13.6, 32, 0, 0},
    {"roce", 10, 12.5, 10, 12.5, 0, 0},
}};

constexpr std::array<LinkSpeed, 3> speeds_a2{{
    {"hccs", 25.74, 28, 18.3, 28, 25.74, 19.37},
    {"pcie", 27.2, 32, 13.6, 32, 0, 0},
    {"roce", 22.6, 25, 20, 25, 22.49, 22.6},
}};

constexpr std::array<LinkSpeed, 3> speeds_a3{{
    {"sio", 204, 240, 204, 224, 0, 0},
    {"ub", 148.1, 196, 124.1, 196, 148.1, 123.5},
    {"roce", 22.65, 25, 20, 25, 22.61, 22.65},
}};

constexpr ServerModel atlas_800_9000{
    "Atlas 800 (model 9000)", ServerTopology::hccs_groups, 8, 0, speeds_910a, speeds_910a[1], LinkSpeed{}, 0.0};

constexpr ServerModel atlas_800t_a2{
    "Atlas 800T A2", ServerTopology::hccs_mesh, 8, 0, speeds_a2, speeds_a2[1], LinkSpeed{}, 0.0};

// 48 nodes are the largest super-pod published (384 NPUs of two dies).
constexpr ServerModel atlas_900_a3{"Atlas 900 A3",
                                   ServerTopology::ub_plane,
                                   16,
                                   48,
                                   speeds_a3,
                                   {"ub", 33.9, 40, 33.9, 33.9, 0, 0},
                                   {"ub", 143.2, 196, 104.5, 196, 143.2, 119.7},
                                   1.0};

constexpr std::array<SocEntry, 17> socs{{
    {"Ascend910A", &atlas_800_9000, 32, 1.00, 32},
    {"Ascend910ProA", &atlas_800_9000, 32, 1.10, 32},
    {"Ascend910PremiumA", &atlas_800_9000, 32, 1.22, 0},
    {"old-910B", &atlas_800_9000, 30, 0.90, 0},
    {"Ascend910ProB", &atlas_800_9000, 30, 1.15, 0},
    {"Ascend910B1", &atlas_800t_a2, 24, 1.85, 64},
    {"Ascend910B2", &atlas_800t_a2, 24, 1.80, 64},
    {"Ascend910B2C", &atlas_800t_a2, 24, 1.80, 64},
    {"Ascend910B3", &atlas_800t_a2, 20, 1.80, 64},
    {"Ascend910B4", &atlas_800t_a2, 20, 1.50, 32},
    {"Ascend910B4-1", &atlas_800t_a2, 20, 1.50, 32},
    {"Ascend910_9391", &atlas_900_a3, 24, 1.85, 64},
    {"Ascend910_9392", &atlas_900_a3, 24, 1.85, 64},
    {"Ascend910_9381", &atlas_900_a3, 24, 1.80, 64},
    {"Ascend910_9382", &atlas_900_a3, 24, 1.80, 64},
    {"Ascend910_9372", &atlas_900_a3, 20, 1.80, 64},
    {"Ascend910_9362", &atlas_900_a3, 20, 1.50, 32},
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
    {"launch_us", "0", "launch of a task: 0 in graph mode, where tasks are loaded in advance"},
}};

/// The name without the prefix "Ascend", and for A3 dies without "910_".
std::string_view short_name(std::string_view name) {
  for (const std::string_view prefix : {std::string_view("Ascend"), std::string_view("910_")}) {
    if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
  }
  return name;
}

}  // namespace

const LinkSpeed& ServerModel::speed(std::string_view kind) const {
  for (const LinkSpeed& speed : speeds) {
    if (speed.kind == kind) return speed;
  }
  internal_error("{} has no link of kind {}", title, kind);
}

std::span<const SocEntry> soc_entries() { return socs; }

const SocEntry& find_soc_entry(std::string_view name) {
  std::string accepted;
  for (const SocEntry& soc : socs) {
    if (short_name(soc.name) == short_name(name)) return soc;
    accepted += accepted.empty() ? "" : ", ";
    accepted += soc.name;
  }
  std::string_view hint;
  if (short_name(name) == "910B") {
    hint = "; '910B' means two things: state 910B1, 910B2, 910B3 or 910B4 for A2, old-910B for the 30-core bin of 910A";
  } else if (short_name(name) == "A3" || short_name(name) == "910C") {
    hint = "; state the die, such as 910_9391";
  }
  bad_input("soc", "--soc: unknown NPU type '{}'; accepted, with or without 'Ascend': {}{}", name, accepted, hint);
}

std::span<const TaskCost> task_costs() { return costs; }

}  // namespace hcclsim::sim
