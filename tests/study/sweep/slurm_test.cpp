#include "study/sweep/slurm.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/error.hpp"
#include "tests/study/sweep/sample_points.hpp"

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
            "#SBATCH --output='/data/big sweep.db.slurm/shard-%a.log'\n"
            "#SBATCH --partition=npu\n"
            "#SBATCH --time=1:00:00\n"
            "#SBATCH --mem=4G\n"
            "exec /usr/bin/hcclsim sweep run --jobs 4 --shard \"$SLURM_ARRAY_TASK_ID/8\" "
            "'/data/big sweep.db.slurm'\"/shard-$SLURM_ARRAY_TASK_ID.db\" run --batch 16,32\n");
}

TEST(Slurm, TasksByState) {
  const SlurmTasks tasks = parse_slurm_tasks("RUNNING\nPENDING\n PENDING \nCOMPLETED\nFAILED\nCOMPLETING\n", 10);
  EXPECT_EQ(tasks.running, 2U);
  EXPECT_EQ(tasks.pending, 2U);
  EXPECT_EQ(tasks.ended, 6U);
  EXPECT_EQ(parse_slurm_tasks("", 3).ended, 3U);
}

TEST(Slurm, RefusesAJobFileOfSomethingElse) {
  const std::string database = new_database();
  EXPECT_EQ(slurm_job(database).id, "");
  std::filesystem::create_directories(slurm_folder(database));
  std::ofstream(slurm_folder(database) + "/job.json") << "[1]";
  EXPECT_THROW(static_cast<void>(slurm_job(database)), Error);
  std::filesystem::remove_all(slurm_folder(database));
}

}  // namespace
}  // namespace hcclsim::study
