#include "device/soc.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "sim/platform/catalog.hpp"

namespace hcclsim::device {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

Soc table_soc(std::string_view name) {
  std::vector<std::string> notes;
  return find_soc(name, notes);
}

std::string error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_input);
    return error.what();
  }
  return "no error";
}

struct PublishedPeak {
  const char* name;
  double fp16_tera;
  std::uint32_t vector_cores;
  double hbm_gib;
};

// The vendor's platform files: cores × 8192 × clock, rounded to whole TFLOPS.
TEST(Soc, PeaksAreThoseOfThePlatformFiles) {
  const PublishedPeak table[] = {
      {"Ascend910A", 262, 32, 32},     {"Ascend910ProA", 288, 32, 32},  {"Ascend910PremiumA", 320, 32, 32},
      {"old-910B", 221, 30, 32},       {"Ascend910ProB", 283, 30, 32},  {"Ascend910B1", 364, 48, 64},
      {"Ascend910B2", 354, 48, 64},    {"Ascend910B2C", 354, 48, 64},   {"Ascend910B3", 295, 40, 64},
      {"Ascend910B4", 246, 40, 32},    {"Ascend910B4-1", 246, 40, 32},  {"Ascend910_9391", 364, 48, 64},
      {"Ascend910_9392", 364, 48, 64}, {"Ascend910_9381", 354, 48, 64}, {"Ascend910_9382", 354, 48, 64},
      {"Ascend910_9372", 295, 40, 64}, {"Ascend910_9362", 246, 40, 32},
  };
  EXPECT_EQ(std::size(table), sim::soc_entries().size());
  for (const PublishedPeak& row : table) {
    const Soc found = table_soc(row.name);
    EXPECT_NEAR(peak_flops(found, DataType::fp16) / 1e12, row.fp16_tera, 1.0) << row.name;
    EXPECT_EQ(found.vector_cores, row.vector_cores) << row.name;
    EXPECT_EQ(static_cast<double>(found.hbm_bytes), row.hbm_gib * 0x1p30) << row.name;
  }
}

TEST(Soc, PeaksPerType) {
  const Soc a1 = table_soc("910A");
  EXPECT_DOUBLE_EQ(peak_flops(a1, DataType::fp16), 32 * 8192 * 1e9);
  EXPECT_DOUBLE_EQ(peak_flops(a1, DataType::int8), 2 * 32 * 8192 * 1e9);  // 512 TOPS at Hot Chips 2019
  EXPECT_EQ(peak_flops(a1, DataType::bf16), 0);
  EXPECT_DOUBLE_EQ(peak_flops(a1, DataType::fp32), peak_flops(a1, DataType::fp16));  // computed in fp16
  EXPECT_DOUBLE_EQ(a1.hbm_bandwidth, 1.024e12);
  const Soc b2 = table_soc("910B2");
  EXPECT_NEAR(peak_flops(b2, DataType::bf16), 353.9e12, 0.1e12);
  EXPECT_NEAR(peak_flops(b2, DataType::fp32), 99.5e12, 0.1e12);
  EXPECT_NEAR(peak_flops(table_soc("910B3"), DataType::fp32), 83e12, 0.1e12);
  EXPECT_NEAR(peak_flops(table_soc("910B4"), DataType::fp32), 75e12, 0.1e12);
  EXPECT_EQ(peak_flops(b2, DataType::fp64), 0);
  EXPECT_DOUBLE_EQ(b2.hbm_bandwidth, 1.6 * 0x1p40);
  EXPECT_DOUBLE_EQ(table_soc("910B4").hbm_bandwidth, 0.8 * 0x1p40);
}

TEST(Soc, RuntimeLimits) {
  const Soc a1 = table_soc("910A");
  EXPECT_EQ(a1.streams, 2048U);
  EXPECT_EQ(a1.events, 65535U);
  EXPECT_EQ(a1.notifies, 1024U);
  const Soc a3 = table_soc("910_9391");
  EXPECT_EQ(a3.streams, 1984U);
  EXPECT_EQ(a3.events, 65536U);
  EXPECT_EQ(a3.notifies, 8192U);
}

TEST(Soc, NamesIgnoreCaseAndPrefix) {
  for (const char* name : {"910A", "910a", "Ascend910A", "ascend910a", "ASCEND910A"}) {
    EXPECT_EQ(table_soc(name).name, "Ascend910A") << name;
  }
  EXPECT_EQ(table_soc("Ascend910_9391").name, "Ascend910_9391");
  EXPECT_EQ(table_soc("old-910b").cube_cores, 30U);
}

TEST(Soc, NotesSayWhatIsNotCalibrated) {
  std::vector<std::string> notes;
  (void)find_soc("910A", notes);
  EXPECT_THAT(notes, IsEmpty());
  (void)find_soc("910B2", notes);
  EXPECT_THAT(notes, UnorderedElementsAre(AllOf(HasSubstr("convolution"), HasSubstr("Ascend910A"))));
  notes.clear();
  (void)find_soc("910B3", notes);
  EXPECT_THAT(notes, UnorderedElementsAre(AllOf(HasSubstr("convolution"), HasSubstr("Ascend910A")),
                                          AllOf(HasSubstr("matrix product"), HasSubstr("Ascend910B2"))));
}

TEST(Soc, TheAmbiguousNameWarns) {
  std::vector<std::string> notes;
  EXPECT_EQ(find_soc("Ascend910B", notes).name, "Ascend910B2");
  ASSERT_FALSE(notes.empty());
  EXPECT_THAT(notes[0], AllOf(HasSubstr("30-core"), HasSubstr("old-910B"), HasSubstr("Ascend910B1")));
}

TEST(Soc, UnknownNameListsTheKnown) {
  for (const char* name : {"910Z", "", "Ascend", "910"}) {
    SCOPED_TRACE(fmt::format("'{}'", name));
    const std::string message = error_of([name] { (void)table_soc(name); });
    EXPECT_THAT(message, AllOf(HasSubstr("unknown SoC"), HasSubstr("Ascend910A"), HasSubstr("Ascend910_9362")));
  }
}

const PropertyLookup no_zone = [](std::string_view) { return std::nullopt; };

sim::Npu host(std::map<std::string, std::string> properties) {
  return {.name = "npu-3", .soc = "Ascend910A", .server = 0, .device = 3, .properties = std::move(properties)};
}

TEST(ResolveSoc, PropertiesReplaceTheTable) {
  std::vector<std::string> notes;
  const Soc found = resolve_soc(host({{"cube_cores", "16"},
                                      {"vector_cores", "20"},
                                      {"clock_ghz", "1.5"},
                                      {"hbm_bytes", "16GiB"},
                                      {"hbm_bandwidth", "2TBps"},
                                      {"l2_bytes", "8MiB"},
                                      {"t0_us", "3"},
                                      {"efficiency_conv", "0.5"},
                                      {"efficiency_matmul", "1"},
                                      {"streams", "10"},
                                      {"events", "20"},
                                      {"notifies", "30"}}),
                                no_zone, notes);
  EXPECT_THAT(notes, IsEmpty());
  EXPECT_EQ(found.cube_cores, 16U);
  EXPECT_EQ(found.vector_cores, 20U);
  EXPECT_EQ(found.clock_ghz, 1.5);
  EXPECT_EQ(found.hbm_bytes, Bytes{16} << 30);
  EXPECT_EQ(found.hbm_bandwidth, 2e12);
  EXPECT_EQ(found.l2_bytes, Bytes{8} << 20);
  EXPECT_DOUBLE_EQ(found.t0, 3e-6);
  EXPECT_EQ(found.efficiency_conv, 0.5);
  EXPECT_EQ(found.efficiency_matmul, 1);
  EXPECT_EQ(found.streams, 10U);
  EXPECT_EQ(found.events, 20U);
  EXPECT_EQ(found.notifies, 30U);
}

TEST(ResolveSoc, MissingPropertiesAreNotedOnce) {
  std::vector<std::string> notes;
  (void)resolve_soc(host({{"hbm_bytes", "32GiB"}}), no_zone, notes);
  (void)resolve_soc(host({{"hbm_bytes", "32GiB"}}), no_zone, notes);
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_THAT(notes[0], AllOf(HasSubstr("Ascend910A"), HasSubstr("clock_ghz"), ::testing::Not(HasSubstr("t0_us")),
                              ::testing::Not(HasSubstr("hbm_bytes"))));
}

TEST(ResolveSoc, TheZoneStandsInForHosts) {
  const PropertyLookup zone = [](std::string_view key) -> std::optional<std::string> {
    if (key == "npu.clock_ghz") return "1.5";
    if (key == "npu.cube_cores") return "0";
    return std::nullopt;
  };
  std::vector<std::string> notes;
  const Soc found = resolve_soc(host({{"cube_cores", "16"}}), zone, notes);
  EXPECT_EQ(found.clock_ghz, 1.5);
  EXPECT_EQ(found.cube_cores, 16U);
  EXPECT_THAT(notes.at(0), AllOf(HasSubstr("hbm_bytes"), ::testing::Not(HasSubstr("clock_ghz"))));
  EXPECT_THAT(error_of([&] { (void)resolve_soc(host({}), zone, notes); }), HasSubstr("cube_cores"));
}

TEST(ResolveSoc, BadPropertiesNameHostAndProperty) {
  const std::pair<const char*, const char*> bad[] = {
      {"cube_cores", "0"},        {"cube_cores", "-4"},
      {"cube_cores", "3.5"},      {"cube_cores", "many"},
      {"clock_ghz", "0"},         {"clock_ghz", "1GHz"},
      {"clock_ghz", "nan"},       {"hbm_bytes", "0"},
      {"hbm_bytes", "32 apples"}, {"hbm_bytes", "-1GiB"},
      {"hbm_bandwidth", "0Bps"},  {"hbm_bandwidth", "1.2"},
      {"hbm_bandwidth", ""},      {"t0_us", "-1"},
      {"efficiency_conv", "0"},   {"efficiency_conv", "1.01"},
      {"efficiency_matmul", "x"}, {"streams", "99999999999"},
      {"l2_bytes", "inf"},
  };
  for (const auto& [key, value] : bad) {
    const std::string message = error_of([key = key, value = value] {
      std::vector<std::string> notes;
      (void)resolve_soc(host({{key, value}}), no_zone, notes);
    });
    EXPECT_THAT(message, AllOf(HasSubstr("host npu-3"), HasSubstr(key))) << key << " = " << value;
  }
  sim::Npu unknown = host({});
  unknown.soc = "Ascend9000";
  std::vector<std::string> notes;
  EXPECT_THAT(error_of([&] { (void)resolve_soc(unknown, no_zone, notes); }),
              AllOf(HasSubstr("npu-3"), HasSubstr("Ascend9000")));
}

TEST(InlineReduce, FirstGenerationSumsAlignedFp32Only) {
  const Soc a1 = table_soc("910A");
  using enum sim::Transport;
  EXPECT_TRUE(inline_reduce(a1, DataType::fp32, ReduceOp::sum, 128, sdma));
  EXPECT_TRUE(inline_reduce(a1, DataType::fp32, ReduceOp::sum, 4096, sdma));
  EXPECT_FALSE(inline_reduce(a1, DataType::fp32, ReduceOp::sum, 64, sdma));
  EXPECT_FALSE(inline_reduce(a1, DataType::fp16, ReduceOp::sum, 128, sdma));
  EXPECT_FALSE(inline_reduce(a1, DataType::fp32, ReduceOp::max, 128, sdma));
  EXPECT_FALSE(inline_reduce(a1, DataType::fp32, ReduceOp::sum, 128, rdma));
}

TEST(InlineReduce, LaterGenerations) {
  using enum DataType;
  for (const char* name : {"910B1", "910_9391"}) {
    const Soc found = table_soc(name);
    for (const DataType type : {int8, int16, int32, int64, uint8, uint16, uint32, uint64, fp16, bf16, fp32, fp64}) {
      SCOPED_TRACE(fmt::format("{} {}", name, name_of(type)));
      const bool can = type == fp32 || type == fp16 || type == int8 || type == int16 || type == int32 || type == bf16;
      for (const ReduceOp op : {ReduceOp::sum, ReduceOp::max, ReduceOp::min}) {
        EXPECT_EQ(inline_reduce(found, type, op, 1, sim::Transport::sdma), can) << name_of(op);
        EXPECT_FALSE(inline_reduce(found, type, op, 1, sim::Transport::rdma)) << name_of(op);
      }
      EXPECT_FALSE(inline_reduce(found, type, ReduceOp::prod, 1, sim::Transport::sdma));
    }
  }
}

}  // namespace
}  // namespace hcclsim::device
