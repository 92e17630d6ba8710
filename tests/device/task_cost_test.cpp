#include "device/task_cost.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/error.hpp"

namespace hcclsim::device {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Properties = std::map<std::string, std::string, std::less<>>;

TaskCosts read(const Properties& properties, std::vector<std::string>& notes) {
  const PropertyLookup lookup = [&properties](std::string_view key) -> std::optional<std::string> {
    const auto found = properties.find(key);
    return found == properties.end() ? std::nullopt : std::optional(found->second);
  };
  return read_task_costs(lookup, notes);
}

TEST(TaskCosts, DefaultsAreTheTaskTable) {
  const TaskCosts costs;
  EXPECT_DOUBLE_EQ(costs.notify_record, 1e-6);
  EXPECT_DOUBLE_EQ(costs.notify_record_local, 0.5e-6);
  EXPECT_DOUBLE_EQ(costs.notify_wait, 0.02e-6);
  EXPECT_EQ(costs.launch, 0);
  EXPECT_DOUBLE_EQ(costs.issue.base, 10e-6);
  EXPECT_EQ(costs.issue.task, 0);
  EXPECT_FALSE(costs.issue.each_starts);
  EXPECT_DOUBLE_EQ(costs.transfer_setup(sim::Transport::sdma, 0), 0.6e-6);
  EXPECT_DOUBLE_EQ(costs.transfer_setup(sim::Transport::sdma, 512 * 1024 - 1), 0.6e-6);
  EXPECT_DOUBLE_EQ(costs.transfer_setup(sim::Transport::sdma, 512 * 1024), 1.5e-6);
  EXPECT_DOUBLE_EQ(costs.transfer_setup(sim::Transport::rdma, 1), 7e-6);
  EXPECT_DOUBLE_EQ(costs.transfer_setup(sim::Transport::rdma, 1 << 30), 7e-6);
  EXPECT_DOUBLE_EQ(costs.local_reduce(0), 0.6e-6);
  EXPECT_DOUBLE_EQ(costs.local_reduce(1'000'000), 100.6e-6);
}

TEST(TaskCosts, ReadFromProperties) {
  std::vector<std::string> notes;
  const TaskCosts costs = read({{"notify.record_us", "2"},
                                {"notify.record_local_us", "3"},
                                {"notify.wait_us", "0"},
                                {"sdma.setup_us", "4"},
                                {"sdma.setup_large_us", "5"},
                                {"sdma.large_bytes", "1MiB"},
                                {"rdma.setup_us", "6"},
                                {"reduce.setup_us", "7"},
                                {"reduce.bandwidth", "20GBps"},
                                {"launch_us", "8.5"},
                                {"op.base_us", "9.5"},
                                {"op.task_us", "0.25"},
                                {"op.base.send-recv_us", "30"},
                                {"op.issue", "task"}},
                               notes);
  EXPECT_TRUE(notes.empty());
  EXPECT_DOUBLE_EQ(costs.notify_record, 2e-6);
  EXPECT_DOUBLE_EQ(costs.notify_record_local, 3e-6);
  EXPECT_EQ(costs.notify_wait, 0);
  EXPECT_DOUBLE_EQ(costs.transfer_setup(sim::Transport::sdma, (1 << 20) - 1), 4e-6);
  EXPECT_DOUBLE_EQ(costs.transfer_setup(sim::Transport::sdma, 1 << 20), 5e-6);
  EXPECT_DOUBLE_EQ(costs.transfer_setup(sim::Transport::rdma, 1 << 20), 6e-6);
  EXPECT_DOUBLE_EQ(costs.local_reduce(2'000'000), 107e-6);
  EXPECT_DOUBLE_EQ(costs.launch, 8.5e-6);
  EXPECT_DOUBLE_EQ(costs.issue.base_for("allreduce"), 9.5e-6);
  EXPECT_DOUBLE_EQ(costs.issue.base_for("send-recv"), 30e-6);
  EXPECT_DOUBLE_EQ(costs.issue.task, 0.25e-6);
  EXPECT_TRUE(costs.issue.each_starts);
}

TEST(TaskCosts, MissingPropertiesAreNoted) {
  std::vector<std::string> notes;
  const TaskCosts costs = read({{"rdma.setup_us", "9"}}, notes);
  EXPECT_DOUBLE_EQ(costs.rdma_setup, 9e-6);
  EXPECT_DOUBLE_EQ(costs.sdma_setup, 0.6e-6);
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_THAT(notes[0],
              AllOf(HasSubstr("sdma.setup_us"), HasSubstr("launch_us"), ::testing::Not(HasSubstr("rdma.setup_us"))));
}

TEST(TaskCosts, BadPropertiesAreNamed) {
  const std::pair<const char*, const char*> bad[] = {
      {"notify.record_us", "-1"}, {"notify.wait_us", "1us"},     {"sdma.setup_us", ""}, {"sdma.large_bytes", "big"},
      {"reduce.bandwidth", "10"}, {"reduce.bandwidth", "0GBps"}, {"launch_us", "nan"},  {"rdma.setup_us", "1e9"},
  };
  for (const auto& [key, value] : bad) {
    SCOPED_TRACE(fmt::format("{} = '{}'", key, value));
    std::vector<std::string> notes;
    try {
      (void)read({{key, value}}, notes);
      ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::bad_input);
      EXPECT_THAT(error.what(), HasSubstr(key));
    }
  }
}

}  // namespace
}  // namespace hcclsim::device
