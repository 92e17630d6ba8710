#include "study/compare/sweep/slurm.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/error.hpp"
#include "tests/study/compare/sweep/sample_points.hpp"

namespace hcclsim::study {
namespace {

TEST(Slurm, ScriptIsAnArrayOfShards) {
  const SlurmOptions options{
      .tasks = 8, .cpus_per_task = 4, .partition = "npu", .time = "1:00:00", .others = {"--mem=4G"}};
  EXPECT_EQ(slurm_script("/data/big sweep.db", options, "/usr/bin/hcclsim sweep run", "run --batch 16,32"),
            "#!/bin/sh\n"
            "#SBATCH --job-name=hcclsim-sweep\n"
            "#SBATCH --array=1-8\n"
            "#SBATCH --cpus-per-task=4\n"
            "#SBATCH --output='/data/big sweep.db.slurm/shard-%A-%a.log'\n"
            "#SBATCH --partition=npu\n"
            "#SBATCH --time=1:00:00\n"
            "#SBATCH --mem=4G\n"
            "exec /usr/bin/hcclsim sweep run --jobs 4 --shard \"$SLURM_ARRAY_TASK_ID/8\" "
            "'/data/big sweep.db.slurm'\"/shard-$SLURM_ARRAY_JOB_ID-$SLURM_ARRAY_TASK_ID.db\" run --batch 16,32\n");
}

TEST(Slurm, TasksByState) {
  const SlurmTasks tasks = parse_slurm_tasks(
      "RUNNING\nPENDING\n CONFIGURING \nREQUEUED\nCOMPLETED\nTIMEOUT\nCOMPLETING\nOUT_OF_MEMORY\nTIMEOUT\nNEW_STATE\n",
      12);
  EXPECT_EQ(tasks.running, 3U);  // one of a state that nobody knows yet
  EXPECT_EQ(tasks.pending, 3U);
  EXPECT_EQ(tasks.ended, 6U);
  EXPECT_EQ(to_string(tasks), "12 tasks: 3 pending, 3 running, 6 ended (1 OUT_OF_MEMORY, 2 TIMEOUT)");
  for (const char* const state : {"FAILED", "CANCELLED", "NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "DEADLINE"}) {
    EXPECT_EQ(to_string(parse_slurm_tasks(state, 1)),
              fmt::format("1 tasks: 0 pending, 0 running, 1 ended (1 {})", state));
  }
  EXPECT_EQ(to_string(parse_slurm_tasks("", 3)), "3 tasks: 0 pending, 0 running, 3 ended");
}

TEST(Slurm, NumberOfTheJob) {
  EXPECT_EQ(parse_job_id("1234\n"), "1234");
  EXPECT_EQ(parse_job_id("sbatch: warning: 4 nodes are down\n77;cluster\n"), "77");
  EXPECT_THROW(static_cast<void>(parse_job_id("sbatch: all is well\n")), Error);
}

TEST(Slurm, ShardsByJobAndTask) {
  const std::string database = new_database();
  const std::string folder = slurm_folder(database);
  std::filesystem::remove_all(folder);
  EXPECT_THAT(shard_databases(database), testing::IsEmpty());
  std::filesystem::create_directories(folder);
  for (const char* const name : {"shard-9-2.db", "shard-10-1.db", "shard-9-10.db", "shard-9-2.log", "sweep.sh"}) {
    std::ofstream(folder + '/' + name) << "";
  }
  EXPECT_THAT(shard_databases(database),
              testing::ElementsAre(folder + "/shard-9-2.db", folder + "/shard-10-1.db", folder + "/shard-9-10.db"));
  std::filesystem::remove_all(folder);
}

TEST(Slurm, RefusesAJobFileOfSomethingElse) {
  const std::string database = new_database();
  EXPECT_EQ(slurm_job(database).id, "");
  std::filesystem::create_directories(slurm_folder(database));
  for (const char* const text : {"[1]", "garbage", "", R"({"job": 7, "tasks": 2})", R"({"job": "7", "tasks": "2"})",
                                 R"({"job": "7", "tasks": -2})", R"({"job": "7", "tasks": 1e30})"}) {
    std::ofstream(slurm_folder(database) + "/job.json") << text;
    EXPECT_THROW(static_cast<void>(slurm_job(database)), Error) << text;
  }
  std::filesystem::remove_all(slurm_folder(database));
}

}  // namespace
}  // namespace hcclsim::study
