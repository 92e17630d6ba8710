#include "sim/platform/edit.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "base/error.hpp"
#include "sim/cluster.hpp"

namespace hcclsim::sim {
namespace {

using testing::HasSubstr;

const std::string atlas = HCCLSIM_PLATFORM_DIR "/atlas800-9000.xml";

/// What is wrong with these edits of a file; empty if nothing.
std::string fault_of(const std::vector<PlatformEdit>& edits, const std::string& path = atlas) {
  try {
    const EditedPlatform edited(path, edits);
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

const Link& link_of(const Cluster& cluster, const std::string& name) {
  for (const Link& link : cluster.links()) {
    if (link.name == name) return link;
  }
  throw std::runtime_error("no link " + name);
}

TEST(PlatformEdit, TakesTargetAndValueApart) {
  const PlatformEdit edit = parse_platform_edit("link[hccs-[01]-*].bandwidth=20GBps");
  EXPECT_EQ(edit.target, "link[hccs-[01]-*].bandwidth");
  EXPECT_EQ(edit.value, "20GBps");
}

TEST(PlatformEdit, MakesHostsNpus) {
  const PlatformEdit edit = npus_edit("node-*", "Ascend910B2");
  EXPECT_EQ(edit.target, "host[node-*].npu");
  EXPECT_NO_THROW(check_edit_target(edit.target));
  EXPECT_TRUE(make_npus(std::array{PlatformEdit{"link[a].bandwidth", "1GBps"}, edit}));
  EXPECT_FALSE(make_npus(std::array{PlatformEdit{"link[a].bandwidth", "1GBps"}}));
}

TEST(PlatformEdit, RefusesOtherForms) {
  const auto message = [](const char* text) -> std::string {
    try {
      static_cast<void>(parse_platform_edit(text));
      return {};
    } catch (const Error& error) {
      return error.what();
    }
  };
  EXPECT_THAT(message("link[a].bandwidth"), HasSubstr("has no value"));
  EXPECT_THAT(message("link[a].bandwidth="), HasSubstr("has no value"));
  EXPECT_THAT(message("link.bandwidth=1GBps"), HasSubstr("not the property of a platform"));
  EXPECT_THAT(message("link[].bandwidth=1GBps"), HasSubstr("not the property of a platform"));
  EXPECT_THAT(message("links[a].bandwidth=1GBps"), HasSubstr("none of link, npu, host, cluster and platform"));
  EXPECT_THAT(message("link[a].bandwith=1GBps"), HasSubstr("did you mean bandwidth"));
  EXPECT_THAT(message("npu[a].speed=1"), HasSubstr("keys of npu: cube_cores"));
  EXPECT_THAT(message("platform.sdma=1"), HasSubstr("unknown key 'sdma'"));
}

TEST(PlatformEdit, ABandwidthIsAFigureWithoutARange) {
  const std::vector<PlatformEdit> edits{{"link[hccs-0-?].bandwidth", "18GBps"}, {"link[hccs-0-1].latency", "7us"}};
  const Cluster cluster(atlas, edits);
  const Link& edited = link_of(cluster, "hccs-0-1_UP");
  // The file has 10 GB/s, from 10 to 19.3, advertised as 30.
  EXPECT_DOUBLE_EQ(edited.bandwidth, 18e9);
  EXPECT_DOUBLE_EQ(edited.low, 18e9);
  EXPECT_DOUBLE_EQ(edited.high, 18e9);
  EXPECT_DOUBLE_EQ(edited.nominal, 30e9);
  EXPECT_DOUBLE_EQ(edited.write, 18e9);
  EXPECT_DOUBLE_EQ(edited.latency, 7e-6);
  const Link& other = link_of(cluster, "hccs-1-2_UP");
  EXPECT_DOUBLE_EQ(other.bandwidth, 10e9);
  EXPECT_DOUBLE_EQ(other.high, 19.3e9);
  EXPECT_NE(other.latency, 7e-6);
  EXPECT_EQ(cluster.path(), atlas);
}

TEST(PlatformEdit, SpeedsOfTasksKeepTheirRatioToABandwidth) {
  const std::string path = HCCLSIM_PLATFORM_DIR "/atlas800t-a2-x2.xml";  // RoCE: read 22.49, write 22.6 of 22.6 GB/s
  const Cluster cluster(path, std::vector<PlatformEdit>{{"link[roce-0].bandwidth", "11.3GBps"}});
  const Link& edited = link_of(cluster, "roce-0_UP");
  EXPECT_DOUBLE_EQ(edited.read, 22.49e9 / 2);
  EXPECT_DOUBLE_EQ(edited.write, 11.3e9);
  EXPECT_DOUBLE_EQ(edited.low, 11.3e9);
  EXPECT_DOUBLE_EQ(edited.high, 11.3e9);
}

TEST(PlatformEdit, TheSpeedOfATaskHasNoRangeEither) {
  const std::string path = HCCLSIM_PLATFORM_DIR "/atlas800t-a2-x2.xml";
  const Cluster own(path, std::vector<PlatformEdit>{{"link[roce-0].read", "15GBps"}});
  EXPECT_DOUBLE_EQ(link_of(own, "roce-0_UP").read, 15e9);
  EXPECT_DOUBLE_EQ(link_of(own, "roce-0_UP").low, 22.6e9);
  EXPECT_DOUBLE_EQ(link_of(own, "roce-0_UP").high, 22.6e9);
  EXPECT_DOUBLE_EQ(link_of(own, "roce-1_UP").low, 20e9);
  const Cluster kind(path, std::vector<PlatformEdit>{{"platform.link.roce.write", "15GBps"}});
  EXPECT_DOUBLE_EQ(link_of(kind, "roce-1_UP").write, 15e9);
  EXPECT_DOUBLE_EQ(link_of(kind, "roce-1_UP").high, 22.6e9);
  EXPECT_DOUBLE_EQ(link_of(kind, "hccs-0-1_UP").high, 25.74e9);
}

TEST(PlatformEdit, ARangeThatIsGivenAfterTheBandwidthCounts) {
  const Cluster cluster(
      atlas, std::vector<PlatformEdit>{{"link[hccs-*].bandwidth", "18GBps"}, {"link[hccs-*].low", "12GBps"}});
  EXPECT_DOUBLE_EQ(link_of(cluster, "hccs-0-1_UP").low, 12e9);
  EXPECT_DOUBLE_EQ(link_of(cluster, "hccs-0-1_UP").high, 18e9);
}

TEST(PlatformEdit, LaterEditsCount) {
  const std::vector<PlatformEdit> edits{{"link[*].bandwidth", "8GBps"}, {"link[pcie-0-4].bandwidth", "16GBps"}};
  const Cluster cluster(atlas, edits);
  EXPECT_DOUBLE_EQ(link_of(cluster, "hccs-0-1_DOWN").bandwidth, 8e9);
  EXPECT_DOUBLE_EQ(link_of(cluster, "pcie-0-4_UP").bandwidth, 16e9);
}

TEST(PlatformEdit, PropertiesOfNpusAndTasks) {
  const std::vector<PlatformEdit> edits{{"npu[npu-[0-3]].hbm_bytes", "16GiB"}, {"platform.sdma.setup_us", "0.25"}};
  const Cluster cluster(atlas, edits);
  EXPECT_EQ(cluster.npu(3).properties.at("hbm_bytes"), "16GiB");
  EXPECT_FALSE(cluster.npu(4).properties.contains("hbm_bytes"));
  EXPECT_EQ(cluster.property("sdma.setup_us"), "0.25");
}

TEST(PlatformEdit, SaysWhatMatchesNothingAndWhatCannotBe) {
  EXPECT_EQ(fault_of({{"link[hccs*].bandwidth", "20GBps"}}), "");
  EXPECT_THAT(fault_of({{"link[hcs-0-1].latency", "1us"}}),
              AllOf(HasSubstr("--set link[hcs-0-1].latency=1us"), HasSubstr("did you mean hccs-0-1")));
  EXPECT_THAT(fault_of({{"npu[cpu-0].streams", "12"}}), HasSubstr("it has 8 of them, from npu-0 to npu-7"));
  EXPECT_THAT(fault_of({{"cluster[*].bandwidth", "1GBps"}}), HasSubstr("it has none"));
  EXPECT_THAT(fault_of({{"link[hccs*].bandwidth", "20"}}), HasSubstr("has no unit"));
  EXPECT_THAT(fault_of({{"link[hccs*].latency", "-1us"}}), HasSubstr("--set link[hccs*].latency=-1us"));
  EXPECT_THAT(fault_of({{"npu[*].clock_ghz", "fast"}}), HasSubstr("clock_ghz"));
}

TEST(PlatformEdit, LinksOfACluster) {
  const std::string path = testing::TempDir() + "platform_edit_cluster.xml";
  std::ofstream(path) << R"(<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1"><cluster id="tree" prefix="npu-" suffix="" radical="0-3" speed="1Tf" bw="10GBps" lat="1us" topology="FAT_TREE"
 topo_parameters="2;2,2;1,2;1,1"><prop id="npu" value="Ascend910A"/></cluster></platform>)";
  const std::vector<PlatformEdit> edits{{"cluster[tree].bandwidth", "3GBps"}, {"cluster[t*].latency", "2us"}};
  const EditedPlatform edited(path, edits);
  std::ostringstream text;
  text << std::ifstream(edited.path()).rdbuf();
  EXPECT_THAT(text.str(), AllOf(HasSubstr("bw=\"3GBps\""), HasSubstr("lat=\"2us\"")));
  std::filesystem::remove(path);
}

/// A pair of NPUs on a RoCE link each, of a kind that has a range; and the same in a cluster.
std::string pair(const std::string& bandwidth) {
  const std::string npu = "<prop id=\"npu\" value=\"910A\"/>";
  return "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
         "<platform version=\"4.1\"><zone id=\"z\" routing=\"Full\">"
         "<prop id=\"link.roce.low\" value=\"20GBps\"/><prop id=\"link.roce.high\" value=\"25GBps\"/>"
         "<host id=\"a\" speed=\"1Gf\">" +
         npu + "</host><host id=\"b\" speed=\"1Gf\">" + npu +
         "</host>"
         "<link id=\"l\" bandwidth=\"" +
         bandwidth +
         "\" latency=\"0us\"><prop id=\"kind\" value=\"roce\"/></link>"
         "<route src=\"a\" dst=\"b\"><link_ctn id=\"l\"/></route></zone></platform>";
}

TEST(PlatformEdit, ALinkOfTheFileThatIsOutsideTheRangeOfItsKindKeepsItsFigure) {
  const std::string path = testing::TempDir() + "platform_edit_pair.xml";
  for (const auto& [bandwidth, low, high] : {std::tuple("2GBps", 2e9, 2e9), std::tuple("40GBps", 40e9, 40e9),
                                             std::tuple("22GBps", 20e9, 25e9), std::tuple("25GBps", 20e9, 25e9)}) {
    std::ofstream(path) << pair(bandwidth);
    const Cluster cluster(path);
    EXPECT_DOUBLE_EQ(link_of(cluster, "l").low, low) << bandwidth;
    EXPECT_DOUBLE_EQ(link_of(cluster, "l").high, high) << bandwidth;
  }
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace hcclsim::sim
