#include "sim/platform_catalog.hpp"

#include <gtest/gtest.h>

#include "device/soc.hpp"

namespace hcclsim::device {
namespace {

// The platform files and the cost model take the data of an NPU from two tables: they must agree.
TEST(PlatformCatalog, ItsNpusAreThoseOfTheSocTable) {
  for (const sim::SocEntry& entry : sim::soc_entries()) {
    std::vector<std::string> notes;
    const Soc soc = find_soc(entry.name, notes);
    EXPECT_EQ(soc.name, entry.name);
    EXPECT_EQ(soc.cube_cores, entry.cube_cores) << entry.name;
    EXPECT_EQ(soc.clock_ghz, entry.clock_ghz) << entry.name;
    if (entry.hbm_gib != 0) {
      EXPECT_EQ(soc.hbm_bytes, entry.hbm_gib << 30) << entry.name;
    }
  }
}

}  // namespace
}  // namespace hcclsim::device
