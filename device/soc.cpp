#include "device/soc.hpp"

#include <algorithm>
#include <optional>

#include "base/error.hpp"
#include "sim/platform/catalog.hpp"

namespace hcclsim::device {
namespace {

// Cores, clock, L2 and memory size: the vendor's platform_config/*.ini of CANN 8.1, which also give the cube of
// 16×16×16 multiply-adds per cycle for all of them.

constexpr Bytes mebibyte = Bytes{1} << 20;
constexpr Bytes gibibyte = Bytes{1} << 30;
constexpr double tebi = 0x1p40;

struct SocRow {
  std::string_view name;
  Generation generation;
  std::uint32_t cube_cores;
  std::uint32_t vector_cores;
  double clock_ghz;
  double fp32_rate;
  Bytes hbm_bytes;
  BytesPerSecond hbm_bandwidth;
  Bytes l2_bytes;
};

// 910A generation: the platform files give 32 bytes per cycle and core at the memory side; 32 cores at 1.0 GHz make
// 1.024 TB/s. (1.2 TB/s is often quoted, but not by the vendor.)
constexpr BytesPerSecond a1_bandwidth(double cores, double clock_ghz) { return 32 * cores * clock_ghz * giga; }

// The cube of the 910A generation has no fp32. The graph engine then casts the inputs of convolutions and matrix
// products to fp16 (its precision mode allow_fp32_to_fp16), so the cube runs at the fp16 rate while memory carries
// fp32.
constexpr double a1_fp32 = 1;

// A2: peaks of the device profiles in the vendor's modelling tool, fp32 over bf16 in TFLOPS. Its bf16 figures are those
// of cores × 8192 × clock of B2, B3 and B4; B1 and the A3 dies with as many cores as B2 take the ratio of B2.
constexpr double b2_fp32 = 99.5 / 353.9;
constexpr double b3_fp32 = 83.0 / 294.9;
constexpr double b4_fp32 = 75.0 / 245.8;

// A2: 1.6 TiB/s, the bin of 32 GiB 0.8 TiB/s (the same tool). A3: 3.2 TB/s per package of two dies (the paper on
// CloudMatrix384, arXiv 2506.12708); its bin of 32 GiB has no published figure and takes that of the A2 bin.
constexpr BytesPerSecond a2_bandwidth = 1.6 * tebi;
constexpr BytesPerSecond bin32_bandwidth = 0.8 * tebi;
constexpr BytesPerSecond a3_bandwidth = 1.6e12;

using enum Generation;
// Memory of the 910A generation: 32 GB of HBM2 (MLPerf v1.0 system descriptions of Ascend 910 and 910 ProA); for
// PremiumA and the 30-core bins no figure is published and the same is assumed. "old-910B" is the bin of 30 cores that
// was sold as Ascend910B before the A2 generation took the name.
constexpr std::array<SocRow, 17> soc_table{{
    {"Ascend910A", a1, 32, 32, 1.00, a1_fp32, 32 * gibibyte, a1_bandwidth(32, 1.00), 32 * mebibyte},
    {"Ascend910ProA", a1, 32, 32, 1.10, a1_fp32, 32 * gibibyte, a1_bandwidth(32, 1.10), 32 * mebibyte},
    {"Ascend910PremiumA", a1, 32, 32, 1.22, a1_fp32, 32 * gibibyte, a1_bandwidth(32, 1.22), 32 * mebibyte},
    {"old-910B", a1, 30, 30, 0.90, a1_fp32, 32 * gibibyte, a1_bandwidth(30, 0.90), 32 * mebibyte},
    {"Ascend910ProB", a1, 30, 30, 1.15, a1_fp32, 32 * gibibyte, a1_bandwidth(30, 1.15), 32 * mebibyte},
    {"Ascend910B1", a2, 24, 48, 1.85, b2_fp32, 64 * gibibyte, a2_bandwidth, 192 * mebibyte},
    {"Ascend910B2", a2, 24, 48, 1.80, b2_fp32, 64 * gibibyte, a2_bandwidth, 192 * mebibyte},
    {"Ascend910B2C", a2, 24, 48, 1.80, b2_fp32, 64 * gibibyte, a2_bandwidth, 192 * mebibyte},
    {"Ascend910B3", a2, 20, 40, 1.80, b3_fp32, 64 * gibibyte, a2_bandwidth, 192 * mebibyte},
    {"Ascend910B4", a2, 20, 40, 1.50, b4_fp32, 32 * gibibyte, bin32_bandwidth, 96 * mebibyte},
    {"Ascend910B4-1", a2, 20, 40, 1.50, b4_fp32, 32 * gibibyte, bin32_bandwidth, 168 * mebibyte},
    {"Ascend910_9391", a3, 24, 48, 1.85, b2_fp32, 64 * gibibyte, a3_bandwidth, 192 * mebibyte},
    {"Ascend910_9392", a3, 24, 48, 1.85, b2_fp32, 64 * gibibyte, a3_bandwidth, 192 * mebibyte},
    {"Ascend910_9381", a3, 24, 48, 1.80, b2_fp32, 64 * gibibyte, a3_bandwidth, 192 * mebibyte},
    {"Ascend910_9382", a3, 24, 48, 1.80, b2_fp32, 64 * gibibyte, a3_bandwidth, 192 * mebibyte},
    {"Ascend910_9372", a3, 20, 40, 1.80, b3_fp32, 64 * gibibyte, a3_bandwidth, 192 * mebibyte},
    {"Ascend910_9362", a3, 20, 40, 1.50, b4_fp32, 32 * gibibyte, bin32_bandwidth, 168 * mebibyte},
}};

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
  std::uint32_t streams;
  std::uint32_t events;
  std::uint32_t notifies;
  InlineReduce inline_reduce;
};

// Solved by tests/device/calibration_test.cpp, which fails when kernels or costs change so that they no longer hold.
// One NPU, published step times of ResNet50 v1.5 in mixed precision: 17.9 ms at batch 32 (MindSpore 0.2.0) and 121 ms
// at batch 256 (MindSpore 0.5.0), both on Ascend910A. Other batches, clocks and software: ±10 %; single phases: ±20 %.
constexpr Seconds t0_910a = 4.622 * microsecond;
constexpr double efficiency_conv_910a = 0.4167;
// BERT-Large pre-training, sequence 128, batch 96, on Ascend910A: 269 sequences/s (MindSpore 0.5.0).
constexpr double efficiency_matmul_910a = 0.3261;
// Large square bf16 products on 910B (CANN 8.0): 328 TFLOPS measured, 353.9 TFLOPS peak.
constexpr double efficiency_matmul_910b = 328.0 / 353.9;

// Streams, events and notifies: the runtime's development guide. Inline reductions: HCCL's own conditions; the 910A
// generation needs 128-byte alignment, for the later ones no condition is given.
constexpr std::uint16_t a2_types =
    bits({DataType::fp32, DataType::fp16, DataType::int8, DataType::int16, DataType::int32, DataType::bf16});
constexpr std::uint8_t a2_ops = bit(ReduceOp::sum) | bit(ReduceOp::max) | bit(ReduceOp::min);
constexpr std::array<GenerationRow, 3> generation_table{{
    {0, efficiency_matmul_910a, "Ascend910A", 2048, 65535, 1024, {bit(DataType::fp32), bit(ReduceOp::sum), 128}},
    {1, efficiency_matmul_910b, "Ascend910B2", 1984, 65536, 8192, {a2_types, a2_ops, 1}},
    {1, efficiency_matmul_910b, "Ascend910B2", 1984, 65536, 8192, {a2_types, a2_ops, 1}},
}};

Soc make_soc(const SocRow& row) {
  const GenerationRow& generation = generation_table[static_cast<std::size_t>(row.generation)];
  return {.name = std::string(row.name),
          .generation = row.generation,
          .cube_cores = row.cube_cores,
          .vector_cores = row.vector_cores,
          .clock_ghz = row.clock_ghz,
          .cube = {.int8 = 2, .bf16 = generation.bf16_rate, .fp32 = row.fp32_rate},
          .hbm_bytes = row.hbm_bytes,
          .hbm_bandwidth = row.hbm_bandwidth,
          .l2_bytes = row.l2_bytes,
          .t0 = t0_910a,
          .efficiency_conv = efficiency_conv_910a,
          .efficiency_matmul = generation.efficiency_matmul,
          .conv_source = "Ascend910A",
          .matmul_source = std::string(generation.matmul_source),
          .streams = generation.streams,
          .events = generation.events,
          .notifies = generation.notifies,
          .inline_reduce = generation.inline_reduce};
}

void add_once(std::vector<std::string>& notes, std::string note) {
  if (std::find(notes.begin(), notes.end(), note) == notes.end()) notes.push_back(std::move(note));
}

Soc look_up(std::string_view name, std::vector<std::string>& notes) {
  if (std::string note = sim::ambiguous_soc(name); !note.empty()) add_once(notes, std::move(note));
  const sim::SocEntry* const entry = sim::soc_of_property(name);
  for (const SocRow& row : soc_table) {
    if (entry != nullptr && row.name == entry->name) return make_soc(row);
  }
  bad_input("soc", "unknown SoC '{}'; known: {}", name, fmt::join(soc_names(), ", "));
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

std::vector<std::string> soc_names() {
  std::vector<std::string> names;
  names.reserve(soc_table.size());
  for (const SocRow& row : soc_table) names.emplace_back(row.name);
  return names;
}

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
  if (calibration.real("efficiency_matmul", 1e-6, 1, 1, soc.efficiency_matmul)) soc.matmul_source.clear();
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
  return transport == sim::Transport::sdma && (can.types & bit(type)) != 0 && (can.ops & bit(op)) != 0 &&
         alignment % can.alignment == 0;
}

}  // namespace hcclsim::device
