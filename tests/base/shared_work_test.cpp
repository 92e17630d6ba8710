#include "base/shared_work.hpp"

#include <gtest/gtest.h>

#include "base/child_process.hpp"

namespace hcclsim {
namespace {

TEST(SharedWork, IsCountedByChildren) {
  SharedWork work;
  work.plan(2);
  run_in_child([&work] {
    work.plan(3);
    work.done();
  });
  work.done();
  EXPECT_EQ(work.planned(), 5U);
  EXPECT_EQ(work.completed(), 2U);
}

}  // namespace
}  // namespace hcclsim
