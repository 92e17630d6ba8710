#include "device/soc.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "base/error.hpp"
#include "base/names.hpp"
#include "sim/platform/catalog.hpp"

namespace hcclsim::device {
namespace {

// The cube of the 910A generation has no fp32. The graph engine then casts the inputs of convolutions and matrix
// products to fp16 (its precision mode allow_fp32_to_fp16), so the cube runs at the fp16 rate while memory carries
// fp32.
constexpr double a1_fp32 = 1;

// A2: peaks of the device profiles in the vendor's modelling tool, fp32 over bf16 in TFLOPS. Its bf16 figures are those
// of cores × 8192 × clock of B2, B3 and B4; B1 and the A3 dies with as many cores as B2 take the ratio of B2.
constexpr double b2_fp32 = 99.5 / 353.9;
constexpr double b3_fp32 = 83.0 / 294.9;
constexpr double b4_fp32 = 75.0 / 245.8;

double fp32_rate(const sim::SocEntry& entry, Generation generation) {
  constexpr std::uint32_t b2_cores = 24;
  constexpr double b4_clock_ghz = 1.5;
  if (generation == Generation::a1) return a1_fp32;
  if (entry.cube_cores == b2_cores) return b2_fp32;
  return entry.clock_ghz == b4_clock_ghz ? b4_fp32 : b3_fp32;
}

Generation generation_of(const sim::SocEntry& entry) {
  switch (entry.server->topology) {
    case sim::ServerTopology::hccs_groups:
      return Generation::a1;
    case sim::ServerTopology::hccs_mesh:
      return Generation::a2;
    case sim::ServerTopology::ub_plane:
      return Generation::a3;
  }
  internal_error("{} has no generation", entry.name);
}

constexpr std::uint16_t bit(DataType type) { return static_cast<std::uint16_t>(1U << static_cast<unsigned>(type)); }
constexpr std::uint8_t bit(ReduceOp op) { return static_cast<std::uint8_t>(1U << static_cast<unsigned>(op)); }

constexpr std::uint16_t bits(std::initializer_list<DataType> types) {
  std::uint16_t all = 0;
  for (const DataType type : types) all = static_cast<std::uint16_t>(all | bit(type));
  return all;
}

/// What all SoCs of a generation share.
struct GenerationRow {
  double bf16_rate;
  double efficiency_matmul;
  std::string_view matmul_source;
  double slower_kernels;
  Bytes l0c;
  InlineReduce inline_reduce;
};

// Solved by tests/device/calibration_test.cpp, which fails when kernels or costs change so that they no longer hold.
// One NPU, published step times of ResNet50 v1.5 in mixed precision: 17.9 ms at batch 32 (MindSpore 0.2.0) and 121 ms
// at batch 256 (MindSpore 0.5.0), both on Ascend910A. Other batches, clocks and software: ±10 %; single phases: ±20 %.
constexpr Seconds t0_910a = 4.622 * microsecond;
constexpr double efficiency_conv_910a = 0.4167;
// BERT-Large pre-training, sequence 128, batch 96, on Ascend910A: 269 sequences/s (MindSpore 0.5.0).
constexpr double efficiency_matmul_910a = 0.3229;
// Large square bf16 products on 910B (CANN 8.0): 328 TFLOPS measured, 353.9 TFLOPS peak; what unfilled rounds and
// writing blocks take (matmul_cost.hpp) is not in it.
constexpr double efficiency_matmul_910b = 0.9456;

// No step of A2 or A3 was fitted, only a bare product. Published steps of LLaMA-2 on A2 (docs/validation.md), which
// count with the framework's launches and casts, take up to 1.8 times as long as their kernels do here.
constexpr double slower_kernels_a2 = 0.8;

// The vendor's platform_config/*.ini: l0_c_size. L2 is read at 110 and written at 86 bytes per cycle and core in all of
// them (l2_read_rate, l2_write_rate: CoreMemory's defaults).
constexpr Bytes l0c_a1 = Bytes{256} << 10U;
constexpr Bytes l0c_a2 = Bytes{128} << 10U;

// Inline reductions: HCCL's own conditions; the 910A generation needs 128-byte alignment, for the later ones no
// condition is given.
constexpr std::uint16_t a2_types =
    bits({DataType::fp32, DataType::fp16, DataType::int8, DataType::int16, DataType::int32, DataType::bf16});
constexpr std::uint8_t a2_ops = bit(ReduceOp::sum) | bit(ReduceOp::max) | bit(ReduceOp::min);
constexpr std::array<GenerationRow, 3> generation_table{{
    {0, efficiency_matmul_910a, "Ascend910A", 0.1, l0c_a1, {bit(DataType::fp32), bit(ReduceOp::sum), 128}},
    {1, efficiency_matmul_910b, "Ascend910B2", slower_kernels_a2, l0c_a2, {a2_types, a2_ops, 1}},
    {1, efficiency_matmul_910b, "Ascend910B2", slower_kernels_a2, l0c_a2, {a2_types, a2_ops, 1}},
}};

Soc make_soc(const sim::SocEntry& entry) {
  const Generation generation = generation_of(entry);
  const GenerationRow& row = generation_table[static_cast<std::size_t>(generation)];
  const sim::RuntimeLimits limits = runtime_limits(entry);
  return {.name = std::string(entry.name),
          .generation = generation,
          .cube_cores = entry.cube_cores,
          .vector_cores = entry.vector_cores,
          .clock_ghz = entry.clock_ghz,
          .cube = {.int8 = 2, .bf16 = row.bf16_rate, .fp32 = fp32_rate(entry, generation)},
          .hbm_bytes = entry.hbm_gib << 30U,
          .hbm_bandwidth = parse_bandwidth(entry.hbm_bandwidth),
          .l2_bytes = entry.l2_mib << 20U,
          .t0 = t0_910a,
          .efficiency_conv = efficiency_conv_910a,
          .efficiency_matmul = row.efficiency_matmul,
          .core = {.l0c = row.l0c},
          .conv_source = "Ascend910A",
          .matmul_source = std::string(row.matmul_source),
          .slower_kernels = row.slower_kernels,
          .streams = limits.streams,
          .events = limits.events,
          .notifies = limits.notifies,
          .inline_reduce = row.inline_reduce};
}

void add_once(std::vector<std::string>& notes, std::string note) {
  if (std::find(notes.begin(), notes.end(), note) == notes.end()) notes.push_back(std::move(note));
}

Soc look_up(std::string_view name, std::vector<std::string>& notes) {
  if (std::string note = sim::ambiguous_soc(name); !note.empty()) add_once(notes, std::move(note));
  if (const sim::SocEntry* const entry = sim::soc_of_property(name); entry != nullptr) return make_soc(*entry);
  bad_input("soc", "unknown SoC '{}'; known: {}", name, names_in(sim::soc_entries(), &sim::SocEntry::name));
}

void note_calibration(const Soc& soc, std::vector<std::string>& notes) {
  if (soc.conv_source != soc.name && !soc.conv_source.empty()) {
    add_once(notes, fmt::format("{}: kernel overhead {:.2f} us and convolution efficiency {:.3f} were calibrated on {}",
                                soc.name, soc.t0 / microsecond, soc.efficiency_conv, soc.conv_source));
  }
  if (soc.matmul_source != soc.name && !soc.matmul_source.empty()) {
    add_once(notes, fmt::format("{}: matrix product efficiency {:.3f} was calibrated on {}", soc.name,
                                soc.efficiency_matmul, soc.matmul_source));
  }
}

}  // namespace

Soc find_soc(std::string_view name, std::vector<std::string>& notes) {
  Soc soc = look_up(name, notes);
  note_calibration(soc, notes);
  return soc;
}

Soc resolve_soc(const sim::Npu& npu, const PropertyLookup& zone, std::vector<std::string>& notes) {
  Soc soc;
  try {
    soc = look_up(npu.soc, notes);
  } catch (const Error& error) {
    bad_input("platform", "host {}: property npu: {}", npu.name, error.what());
  }
  const PropertyLookup find = [&](std::string_view key) -> std::optional<std::string> {
    const auto property = npu.properties.find(std::string(key));
    return property == npu.properties.end() ? zone(fmt::format("npu.{}", key)) : std::optional(property->second);
  };
  PropertyReader host("host " + npu.name, find);
  host.count("cube_cores", soc.cube_cores);
  host.count("vector_cores", soc.vector_cores);
  host.real("clock_ghz", 1e-3, 100, 1, soc.clock_ghz);
  host.quantity("hbm_bytes", parse_bytes, soc.hbm_bytes);
  host.quantity("hbm_bandwidth", parse_bandwidth, soc.hbm_bandwidth);
  host.quantity("l2_bytes", parse_bytes, soc.l2_bytes);
  host.count("streams", soc.streams);
  host.count("events", soc.events);
  host.count("notifies", soc.notifies);
  // Calibrated figures belong to the cost model, not to the platform: a file need not state them. Where it does, they
  // are the user's own, and no note on their calibration is added.
  PropertyReader calibration("host " + npu.name, find);
  const bool own_t0 = calibration.real("t0_us", 0, 1e6, microsecond, soc.t0);
  const bool own_conv = calibration.real("efficiency_conv", 1e-6, 1, 1, soc.efficiency_conv);
  if (own_t0 && own_conv) soc.conv_source.clear();
  if (calibration.real("efficiency_matmul", 1e-6, 1, 1, soc.efficiency_matmul)) {
    soc.matmul_source.clear();
    soc.slower_kernels = Soc{}.slower_kernels;
  }
  note_calibration(soc, notes);
  if (!host.missing().empty()) {
    add_once(notes, fmt::format("{}: not in the platform file, from the table of SoCs: {}", soc.name,
                                fmt::join(host.missing(), ", ")));
  }
  return soc;
}

double cube_rate(const Soc& soc, DataType type) {
  switch (type) {
    case DataType::fp16:
      return 1;
    case DataType::bf16:
      return soc.cube.bf16;
    case DataType::fp32:
      return soc.cube.fp32;
    case DataType::int8:
    case DataType::uint8:
      return soc.cube.int8;
    default:
      return 0;
  }
}

Flops peak_flops(const Soc& soc, DataType type) {
  constexpr double operations_per_cycle = 2 * 16 * 16 * 16;
  return soc.cube_cores * operations_per_cycle * soc.clock_ghz * giga * cube_rate(soc, type);
}

bool inline_reduce(const Soc& soc, DataType type, ReduceOp op, Bytes alignment, sim::Transport transport) {
  const InlineReduce& can = soc.inline_reduce;
  return (transport == sim::Transport::sdma || can.over_rdma) && (can.types & bit(type)) != 0 &&
         (can.ops & bit(op)) != 0 && alignment % can.alignment == 0;
}

}  // namespace hcclsim::device
