#include "cli/options/point_command.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/child_process.hpp"
#include "base/error.hpp"
#include "cli/terminal/interruption.hpp"
#include "study/shipped_platforms.hpp"

namespace hcclsim::cli {
namespace {

using testing::HasSubstr;

/// Run with measured gradients; the hashes are those of its files.
study::Point point_with_gradients() {
  const std::string gradients = testing::TempDir() + "point_command_gradients.csv";
  std::ofstream(gradients) << "name,bytes,ready_us\nb,400000,100\na,400000,200\n";
  study::Point point{.command = "run", .inputs = {{"gradients", gradients}}};
  point.files = {{"platform", study::find_platform("atlas800-9000")}, {"gradients", gradients}};
  for (const auto& [input, path] : point.files) point.hashes[input] = study::content_hash_of_file(path);
  return point;
}

std::string fault_of(const study::Point& point) {
  const Interruption interruption;
  try {
    // A process loads one platform.
    return run_in_child([&] {
      static_cast<void>(group_loader(interruption)(point)(point));
      return std::string();
    });
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_input);
    return error.what();
  }
}

TEST(PointCommand, FilesThatChangeWhileASweepRunsAreErrors) {
  EXPECT_EQ(fault_of(point_with_gradients()), "");
  for (const char* const input : {"platform", "gradients"}) {
    SCOPED_TRACE(input);
    study::Point point = point_with_gradients();
    point.hashes[input] = study::content_hash("what it was");
    EXPECT_THAT(fault_of(point), HasSubstr(point.files[input] + ": has changed since the sweep began"));
  }
}

}  // namespace
}  // namespace hcclsim::cli
