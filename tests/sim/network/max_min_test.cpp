#include "sim/network/max_min.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <random>
#include <stdexcept>

#include "tests/sim/simulate.hpp"
#include "tests/support/simulation.hpp"

// The solver by itself: small systems, whose rates a comment works out, and random ones against the definition.
namespace hcclsim::sim {
namespace {

using testing::ElementsAre;

/// Its flows share the capacity; or each of them gets the whole of it, where the link is a FATPIPE.
struct TestLink {
  std::string name;
  BytesPerSecond capacity = 0;
  bool shared = true;
};

constexpr bool fat_pipe = false;  // is not shared

/// The links that a flow crosses.
using LinkNames = std::vector<std::string>;

/// A platform of one NPU and these links.
class LinksFile {
 public:
  explicit LinksFile(const std::vector<TestLink>& links)
      : path_(std::filesystem::temp_directory_path() / fmt::format("hcclsim_max_min_{}.xml", ::getpid())) {
    std::ofstream file(path_);
    file << R"(<?xml version="1.0"?><!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">)"
         << R"(<platform version="4.1"><zone id="test" routing="Full">)"
         << R"(<host id="npu" speed="1Gf"><prop id="npu" value="Ascend910A"/></host>)";
    for (const TestLink& link : links) {
      file << fmt::format(R"(<link id="{}" bandwidth="{}Bps" latency="0us" sharing_policy="{}"/>)", link.name,
                          link.capacity, link.shared ? "SHARED" : "FATPIPE");
    }
    file << "</zone></platform>";
  }
  LinksFile(const LinksFile&) = delete;
  LinksFile& operator=(const LinksFile&) = delete;
  ~LinksFile() { std::filesystem::remove(path_); }

  [[nodiscard]] std::string path() const { return path_; }

 private:
  std::filesystem::path path_;
};

FlowId start(MaxMin& rates, const Cluster& cluster, const LinkNames& names) {
  std::vector<LinkId> ids;
  for (const std::string& name : names) {
    const auto link = std::ranges::find(cluster.links(), name, &Link::name);
    if (link == cluster.links().end()) throw std::runtime_error("no link " + name);
    ids.push_back(static_cast<LinkId>(link - cluster.links().begin()));
  }
  const FlowId flow = rates.add(ids);
  rates.start(flow);
  return flow;
}

/// Rates of flows that start together.
std::vector<double> rates_of(const Cluster& cluster, const std::vector<LinkNames>& flows) {
  MaxMin solver(cluster);
  std::vector<FlowId> ids;
  for (const LinkNames& flow : flows) ids.push_back(start(solver, cluster, flow));
  (void)solver.solve();
  std::vector<double> rates;
  for (const FlowId id : ids) rates.push_back(solver.rate(id));
  return rates;
}

std::vector<double> rates_on(const std::vector<TestLink>& links, const std::vector<LinkNames>& flows) {
  const LinksFile file(links);
  return numbers_of_child([&] { return rates_of(Cluster(file.path()), flows); });
}

TEST(MaxMin, AFlowAloneGetsTheLeastCapacityOnItsWay) {
  EXPECT_THAT(rates_on({{"up", 7}, {"trunk", 3}, {"down", 5}}, {{"up", "trunk", "down"}}), ElementsAre(3));
}

TEST(MaxMin, FlowsOfOneLinkShareItEqually) {
  EXPECT_THAT(rates_on({{"port", 12}}, {{"port"}, {"port"}, {"port"}, {"port"}}), ElementsAre(3, 3, 3, 3));
}

TEST(MaxMin, FlowsWithoutACommonLinkDoNotMeet) {
  EXPECT_THAT(rates_on({{"left", 10}, {"right", 8}}, {{"left"}, {"right"}, {"right"}}), ElementsAre(10, 4, 4));
}

TEST(MaxMin, WhatOneBottleneckLeavesGoesToTheFlowsOfAnother) {
  // The trunk allows its three flows 9 / 3 = 3 each, less than the 12 / 2 = 6 of the port. One of the three crosses the
  // port as well and leaves 12 - 3 = 9 of it.
  EXPECT_THAT(rates_on({{"port", 12}, {"trunk", 9}}, {{"port"}, {"port", "trunk"}, {"trunk"}, {"trunk"}}),
              ElementsAre(9, 3, 3, 3));
}

TEST(MaxMin, BottlenecksAreSolvedOneAfterTheOther) {
  // Narrow allows 6 / 2 = 3 to each of two flows; middle 12 - 3 = 9 to the next; wide 20 - 9 = 11 to the last.
  EXPECT_THAT(rates_on({{"wide", 20}, {"middle", 12}, {"narrow", 6}},
                       {{"narrow"}, {"narrow", "middle"}, {"middle", "wide"}, {"wide"}}),
              ElementsAre(3, 3, 9, 11));
}

TEST(MaxMin, AFatPipeGivesEachFlowItsWholeCapacity) {
  EXPECT_THAT(rates_on({{"pipe", 5, fat_pipe}}, {{"pipe"}, {"pipe"}, {"pipe"}}), ElementsAre(5, 5, 5));
  // Of several the least counts, and not a shared link that allows more.
  EXPECT_THAT(rates_on({{"pipe", 5, fat_pipe}, {"pin", 4, fat_pipe}, {"port", 12}}, {{"pipe", "port", "pin"}}),
              ElementsAre(4));
}

TEST(MaxMin, WhatAFatPipeKeepsFromAFlowGoesToTheOthers) {
  // Fair would be 12 / 3 = 4. The first may have only 2; of the 10 that are left the second, instead of 5, may have
  // only 4.5; the third has 12 - 2 - 4.5 = 5.5.
  EXPECT_THAT(rates_on({{"port", 12}, {"pin", 2, fat_pipe}, {"pipe", 4.5, fat_pipe}},
                       {{"pin", "port"}, {"port", "pipe"}, {"port"}}),
              ElementsAre(2, 4.5, 5.5));
  // A pipe that is wider than the fair share, 12 / 2 = 6, keeps nothing from its flow.
  EXPECT_THAT(rates_on({{"port", 12}, {"wide", 6.5, fat_pipe}}, {{"port", "wide"}, {"port"}}), ElementsAre(6, 6));
}

TEST(MaxMin, LinksHaveTheCapacitiesInUse) {
  const auto half_of_pcie = [](LinkValues values) {
    return numbers_of_child([&] {
      Cluster cluster(platform("lab.xml"));
      cluster.use(everywhere(values));
      return rates_of(cluster, {{"pcie"}, {"pcie"}});
    });
  };
  // 16 GB/s; 12 at the low end of its range.
  EXPECT_THAT(half_of_pcie(LinkValues::used), ElementsAre(8e9, 8e9));
  EXPECT_THAT(half_of_pcie(LinkValues::low), ElementsAre(6e9, 6e9));
}

/// Flows that come and go, by name. Each solution adds a line to the text: the flows that solve() returned, each with
/// its new rate.
class Story {
 public:
  explicit Story(const Cluster& cluster) : cluster_(cluster), rates_(cluster) {}

  void start(const std::string& flow, const LinkNames& links) { flows_[flow] = sim::start(rates_, cluster_, links); }
  void remove(const std::string& flow) {
    rates_.remove(flows_.at(flow));
    flows_.erase(flow);
  }
  void solve() {
    const auto changed = rates_.solve();
    std::vector<std::string> flows;
    for (const auto& [name, id] : flows_) {
      if (std::ranges::count(changed, id) > 0) flows.push_back(fmt::format("{} {}", name, rates_.rate(id)));
    }
    if (flows.size() != changed.size()) flows.emplace_back("flows twice, or that are gone");
    text_ += flows.empty() ? "nothing\n" : fmt::format("{}\n", fmt::join(flows, ", "));
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  const Cluster& cluster_;
  MaxMin rates_;
  std::map<std::string, FlowId> flows_;
  std::string text_;
};

std::string told_on(const std::vector<TestLink>& links, const std::function<void(Story&)>& events) {
  const LinksFile file(links);
  return run_in_child([&] {
    const Cluster cluster(file.path());
    Story story(cluster);
    events(story);
    return story.text();
  });
}

TEST(MaxMin, WithoutFlowsNothingChanges) {
  const auto events = [](Story& story) {
    story.solve();
    story.start("a", {"port"});
    story.solve();
    story.solve();
    story.remove("a");
    story.solve();
  };
  EXPECT_EQ(told_on({{"port", 12}}, events), "nothing\na 12\nnothing\nnothing\n");
}

TEST(MaxMin, SharesFollowTheFlowsThatComeAndGo) {
  const auto events = [](Story& story) {
    story.start("a", {"port"});
    story.solve();  // 12 / 1
    story.start("b", {"port"});
    story.solve();  // 12 / 2
    story.start("c", {"port"});
    story.start("d", {"port"});
    story.solve();  // 12 / 4
    story.remove("a");
    story.solve();  // 12 / 3
    story.remove("c");
    story.start("e", {"port"});
    story.solve();  // still 12 / 3: only the new one has another rate than before
    story.remove("b");
    story.remove("d");
    story.solve();  // 12 / 1
  };
  EXPECT_EQ(told_on({{"port", 12}}, events),
            "a 12\n"
            "a 6, b 6\n"
            "a 3, b 3, c 3, d 3\n"
            "b 4, c 4, d 4\n"
            "e 4\n"
            "e 12\n");
}

TEST(MaxMin, OnlyFlowsThatAreJoinedByAChainOfLinksChange) {
  const auto events = [](Story& story) {
    story.start("left", {"a"});
    story.start("right", {"b"});
    story.start("far", {"c"});
    story.solve();
    story.start("bridge", {"a", "b"});
    story.solve();  // b allows 8 / 2 = 4, and 10 - 4 = 6 are left of a
    story.start("again", {"b"});
    story.solve();  // b allows 8 / 3 only, which is less than a allows
    story.remove("again");
    story.remove("bridge");
    story.solve();
    story.start("farther", {"c"});
    story.solve();
  };
  EXPECT_EQ(told_on({{"a", 10}, {"b", 8}, {"c", 6}}, events), fmt::format("far 6, left 10, right 8\n"
                                                                          "bridge 4, left 6, right 4\n"
                                                                          "again {0}, bridge {0}, left {1}, right {0}\n"
                                                                          "left 10, right 8\n"
                                                                          "far 3, farther 3\n",
                                                                          8.0 / 3, 10 - 8.0 / 3));
}

TEST(MaxMin, AFlowThatKeepsItsRateIsNotReported) {
  const auto events = [](Story& story) {
    story.start("slow", {"narrow", "wide"});
    story.start("fast", {"wide"});
    story.solve();  // 2, and the 12 - 2 = 10 that are left
    story.start("other", {"wide"});
    story.solve();  // slow still has 2, less than 12 / 3; the others 10 / 2 each
  };
  EXPECT_EQ(told_on({{"narrow", 2}, {"wide", 12}}, events), "fast 10, slow 2\nfast 5, other 5\n");
}

TEST(MaxMin, AFatPipeJoinsNobody) {
  const auto events = [](Story& story) {
    story.start("a", {"pipe", "left"});
    story.start("b", {"pipe", "right"});
    story.solve();
    story.start("c", {"left"});
    story.solve();  // 8 / 2
    story.remove("b");
    story.solve();
  };
  EXPECT_EQ(told_on({{"pipe", 5, fat_pipe}, {"left", 8}, {"right", 4}}, events), "a 5, b 4\na 4, c 4\nnothing\n");
}

TEST(MaxMin, AFlowDoesNotFlowBeforeItsStart) {
  const LinksFile file({{"port", 12}});
  struct Rates {
    double waits = 0;
    double flows = 0;
  };
  const auto rates = test::in_child([&] {
    const Cluster cluster(file.path());
    const std::vector<LinkId> port{0};
    MaxMin solver(cluster);
    const FlowId waits = solver.add(port);
    const FlowId flows = solver.add(port);
    solver.start(flows);
    (void)solver.solve();
    std::vector<Rates> seen{{solver.rate(waits), solver.rate(flows)}};
    solver.start(waits);
    (void)solver.solve();
    seen.push_back({solver.rate(waits), solver.rate(flows)});
    return seen;
  });
  const Rates& before = rates.front();
  EXPECT_EQ(before.waits, 0);
  EXPECT_EQ(before.flows, 12);
  const Rates& after = rates.back();
  EXPECT_EQ(after.waits, 6);
  EXPECT_EQ(after.flows, 6);
}

TEST(MaxMin, TheIdOfARemovedFlowIsUsedAgainAndItsRateIsForgotten) {
  const LinksFile file({{"port", 12}, {"trunk", 9}});
  struct Found {
    bool same_id = false;
    double before_solve = 0;
    double after_solve = 0;
  };
  const Found found = test::in_child([&] {
    const Cluster cluster(file.path());
    MaxMin solver(cluster);
    const FlowId first = start(solver, cluster, {"port"});
    (void)solver.solve();
    solver.remove(first);
    const FlowId second = start(solver, cluster, {"trunk"});
    Found seen{.same_id = second == first, .before_solve = solver.rate(second)};
    (void)solver.solve();
    seen.after_solve = solver.rate(second);
    return seen;
  });
  EXPECT_TRUE(found.same_id);
  EXPECT_EQ(found.before_solve, 0);
  EXPECT_EQ(found.after_solve, 9);
}

/// Max-min fair rates by their definition: all flows are raised together until a link is full, which stops its flows;
/// the others go on.
std::vector<double> raised_together(const std::vector<TestLink>& links, const std::vector<LinkNames>& flows) {
  std::vector<double> rate(flows.size(), 0);
  std::vector<bool> stopped(flows.size(), false);
  const auto crosses = [&](std::size_t flow, const TestLink& link) {
    return std::ranges::count(flows[flow], link.name) > 0;
  };
  // By how much a link lets each of its flows be raised that are not stopped; infinite if there are none.
  const auto room_on = [&](const TestLink& link) {
    double used = 0;
    int raised = 0;
    for (std::size_t flow = 0; flow < flows.size(); ++flow) {
      if (!crosses(flow, link)) continue;
      used = link.shared ? used + rate[flow] : std::max(used, stopped[flow] ? 0 : rate[flow]);
      if (!stopped[flow]) ++raised;
    }
    if (raised == 0) return std::numeric_limits<double>::infinity();
    return (link.capacity - used) / (link.shared ? raised : 1);
  };
  while (std::ranges::count(stopped, false) > 0) {
    double step = std::numeric_limits<double>::infinity();
    for (const TestLink& link : links) step = std::min(step, room_on(link));
    for (std::size_t flow = 0; flow < flows.size(); ++flow) {
      if (!stopped[flow]) rate[flow] += step;
    }
    std::vector<bool> stops = stopped;
    for (const TestLink& link : links) {
      if (room_on(link) > 1e-12 * link.capacity) continue;
      for (std::size_t flow = 0; flow < flows.size(); ++flow) stops[flow] = stops[flow] || crosses(flow, link);
    }
    stopped = stops;
  }
  return rate;
}

TEST(MaxMin, TheDefinitionGivesTheRatesWorkedOutAbove) {
  EXPECT_THAT(raised_together({{"wide", 20}, {"middle", 12}, {"narrow", 6}},
                              {{"narrow"}, {"narrow", "middle"}, {"middle", "wide"}, {"wide"}}),
              ElementsAre(3, 3, 9, 11));
  EXPECT_THAT(raised_together({{"port", 12}, {"pin", 2, fat_pipe}, {"pipe", 4.5, fat_pipe}},
                              {{"pin", "port"}, {"port", "pipe"}, {"port"}}),
              ElementsAre(2, 4.5, 5.5));
}

/// A flow after one of many solutions.
struct Seen {
  int solution = 0;
  double before = 0;      ///< its rate, 0 when new
  bool reported = false;  ///< solve() returned it
  double kept_up = 0;     ///< its rate by the solver that has seen all flows come and go
  double afresh = 0;      ///< by a solver that saw those of now start together
  double defined = 0;     ///< by definition
};

const std::vector<TestLink> random_links{{"a", 2},
                                         {"b", 3},
                                         {"c", 3},
                                         {"d", 5},
                                         {"e", 8},
                                         {"f", 12},
                                         {"g", 12},
                                         {"h", 17},
                                         {"pin", 1, fat_pipe},
                                         {"pipe", 4, fat_pipe}};

/// Some links on a way, each once.
LinkNames random_way(std::mt19937_64& random) {
  LinkNames names;
  for (const TestLink& link : random_links) names.push_back(link.name);
  std::shuffle(names.begin(), names.end(), random);
  names.resize(1 + random() % 4);
  return names;
}

/// Flows come and go at random; what is seen of all that flow after each solution.
std::vector<Seen> random_traffic(const Cluster& cluster, int solutions) {
  std::mt19937_64 random(20);
  MaxMin solver(cluster);
  std::vector<FlowId> ids;
  std::vector<LinkNames> ways;
  std::vector<Seen> all;
  for (int solution = 0; solution < solutions; ++solution) {
    for (auto leaving = random() % 4; leaving > 0 && !ids.empty(); --leaving) {
      const auto at = static_cast<std::ptrdiff_t>(random() % ids.size());
      solver.remove(ids[static_cast<std::size_t>(at)]);
      ids.erase(ids.begin() + at);
      ways.erase(ways.begin() + at);
    }
    // More come than go in the first half, fewer in the second.
    for (auto coming = random() % (solution < solutions / 2 ? 5 : 3); coming > 0; --coming) {
      ways.push_back(random_way(random));
      ids.push_back(start(solver, cluster, ways.back()));
    }
    std::vector<double> before;
    for (const FlowId id : ids) before.push_back(solver.rate(id));
    const auto reported = solver.solve();
    const std::vector<double> afresh = rates_of(cluster, ways);
    const std::vector<double> defined = raised_together(random_links, ways);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      all.push_back({.solution = solution,
                     .before = before[i],
                     .reported = std::ranges::count(reported, ids[i]) > 0,
                     .kept_up = solver.rate(ids[i]),
                     .afresh = afresh[i],
                     .defined = defined[i]});
    }
  }
  return all;
}

TEST(MaxMin, KeptUpRatesAreThoseOfAFreshSolverAndOfTheDefinition) {
  const LinksFile file(random_links);
  const auto all = test::in_child([&] { return random_traffic(Cluster(file.path()), 400); });
  EXPECT_GT(all.size(), 2000U);
  for (const Seen& seen : all) {
    SCOPED_TRACE(fmt::format("solution {}", seen.solution));
    EXPECT_NEAR(seen.kept_up, seen.defined, 1e-9 * seen.defined);
    EXPECT_NEAR(seen.kept_up, seen.afresh, 1e-12 * seen.afresh);
    EXPECT_EQ(seen.reported, seen.kept_up != seen.before);
  }
}

}  // namespace
}  // namespace hcclsim::sim
