#include "sim/platform/catalog.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <optional>

#include "base/error.hpp"
#include "device/soc.hpp"

namespace hcclsim::device {
namespace {

/// What the platform files state of their NPUs, read as a run reads it, is what the table has: a run on a shipped file
/// and one on a file that states nothing are the same. And nothing is missing in the shipped files.
TEST(PlatformCatalog, WhatThePlatformFilesStateIsWhatTheSocTableHas) {
  for (const sim::SocEntry& entry : sim::soc_entries()) {
    const sim::Npu npu{.name = "npu-0", .soc = std::string(entry.name), .properties = {}};
    const auto values = sim::npu_values(entry);
    std::vector<std::string> notes;
    const Soc table = find_soc(entry.name, notes);
    std::vector<std::string> file_notes;
    const Soc file = resolve_soc(
        npu,
        [&](std::string_view key) -> std::optional<std::string> {
          for (const auto& [name, value] : values) {
            if (key == fmt::format("npu.{}", name)) return value;
          }
          return std::nullopt;
        },
        file_notes);
    EXPECT_EQ(file_notes, notes) << entry.name;
    EXPECT_EQ(file.cube_cores, table.cube_cores) << entry.name;
    EXPECT_EQ(file.vector_cores, table.vector_cores) << entry.name;
    EXPECT_EQ(file.clock_ghz, table.clock_ghz) << entry.name;
    EXPECT_EQ(file.hbm_bytes, table.hbm_bytes) << entry.name;
    EXPECT_DOUBLE_EQ(file.hbm_bandwidth, table.hbm_bandwidth) << entry.name;
    EXPECT_EQ(file.l2_bytes, table.l2_bytes) << entry.name;
    EXPECT_EQ(file.streams, table.streams) << entry.name;
    EXPECT_EQ(file.events, table.events) << entry.name;
    EXPECT_EQ(file.notifies, table.notifies) << entry.name;
  }
}

/// The check of platform files and the cost model accept the same: the ends of each range, and nothing beyond.
TEST(PlatformCatalog, TheRangesOfPropertiesAreThoseOfTheCostModel) {
  const auto accepted = [](std::string_view key, const std::string& value) {
    std::vector<std::string> notes;
    try {
      const sim::Npu npu{.name = "n", .soc = "Ascend910A", .properties = {{std::string(key), value}}};
      static_cast<void>(resolve_soc(
          npu, [](std::string_view) { return std::nullopt; }, notes));
      return true;
    } catch (const Error&) {
      return false;
    }
  };
  for (const sim::NpuProperty& property : sim::npu_properties()) {
    using enum sim::NpuProperty::Form;
    if (property.form == bytes || property.form == bandwidth) {
      EXPECT_TRUE(accepted(property.key, property.form == bytes ? "1B" : "1Bps")) << property.key;
      EXPECT_FALSE(accepted(property.key, property.form == bytes ? "0B" : "0Bps")) << property.key;
      continue;
    }
    EXPECT_TRUE(accepted(property.key, fmt::format("{}", property.lowest))) << property.key;
    EXPECT_TRUE(accepted(property.key, fmt::format("{}", property.highest))) << property.key;
    EXPECT_FALSE(accepted(property.key, fmt::format("{}", property.lowest - 1e-7))) << property.key;
    EXPECT_FALSE(accepted(property.key, fmt::format("{}", property.highest + 1))) << property.key;
    EXPECT_EQ(accepted(property.key, "0.5"), property.form == number) << property.key;
    EXPECT_FALSE(accepted(property.key, "abc")) << property.key;
  }
}

}  // namespace
}  // namespace hcclsim::device
