#include "base/user_error.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include "tests/support/refusal.hpp"

namespace hcclsim {
namespace {

TEST(UserError, OfTheSystemSayWhatToDo) {
  const auto refusal = [](int number) {
    return test::refusal("resources", [&] { refused_by_system("a pipe", number); });
  };
  EXPECT_EQ(refusal(EMFILE),
            "the system refuses a pipe: Too many open files; raise the limit of open files (ulimit -n)");
  EXPECT_EQ(refusal(EPERM), "the system refuses a pipe: Operation not permitted");
}

}  // namespace
}  // namespace hcclsim
