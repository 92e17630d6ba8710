#include "base/output_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "base/child_process.hpp"
#include "base/error.hpp"
#include "tests/support/refusal.hpp"

namespace hcclsim {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

/// An empty folder that is removed at the end of the test.
class OutputFileTest : public testing::Test {
 protected:
  OutputFileTest() : folder_(fs::temp_directory_path() / fmt::format("hcclsim-output-{}", ::getpid())) {
    fs::create_directory(folder_);
  }
  ~OutputFileTest() override { fs::remove_all(folder_); }

  [[nodiscard]] std::string path(const std::string& name) const { return (folder_ / name).string(); }
  [[nodiscard]] std::string contents(const std::string& name) const {
    std::stringstream text;
    text << std::ifstream(path(name)).rdbuf();
    return text.str();
  }
  [[nodiscard]] std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

 private:
  fs::path folder_;
};

std::string output_error(const std::string& path) {
  return test::refusal("output", [&] { write_file_atomically(path, "new"); });
}

TEST_F(OutputFileTest, ReplacesAFile) {
  write_file_atomically(path("a"), "old");
  write_file_atomically(path("a"), "new");
  EXPECT_EQ(contents("a"), "new");
  EXPECT_EQ(files(), 1);
}

TEST_F(OutputFileTest, LeavesTheOldFileUntilCommit) {
  write_file_atomically(path("a"), "old");
  {
    OutputFile file(path("a"));
    file.write("half");
    EXPECT_EQ(contents("a"), "old");
  }
  EXPECT_EQ(contents("a"), "old");
  EXPECT_EQ(files(), 1);
}

TEST_F(OutputFileTest, MakesFoldersOnlyWhenItCommits) {
  using enum OutputFile::Folders;
  { OutputFile(path("new/folder/a"), are_made).write("half"); }
  EXPECT_EQ(files(), 0);
  OutputFile file(path("new/folder/a"), are_made);
  file.write("all");
  EXPECT_EQ(files(), 0);
  file.commit();
  EXPECT_EQ(contents("new/folder/a"), "all");
  write_file_atomically(path("plain"), "x");
  EXPECT_THROW(OutputFile(path("plain/a"), are_made), Error);
}

TEST_F(OutputFileTest, AKilledProcessLeavesNothing) {
  EXPECT_THROW((void)run_in_child([&]() -> std::string {
                 OutputFile file(path("a"));
                 file.write("half");
                 std::abort();
               }),
               Error);
  EXPECT_EQ(files(), 0);
}

TEST_F(OutputFileTest, FollowsSymbolicLinksToNothing) {
  fs::create_symlink("second", path("first"));
  fs::create_symlink(path("target"), path("second"));
  write_file_atomically(path("first"), "new");
  EXPECT_TRUE(fs::is_symlink(path("first")));
  EXPECT_TRUE(fs::is_symlink(path("second")));
  EXPECT_TRUE(fs::is_regular_file(path("target")));
  fs::create_symlink("round", path("round"));
  EXPECT_THROW(write_file_atomically(path("round"), "new"), Error);
  EXPECT_TRUE(fs::is_symlink(path("round")));
}

TEST_F(OutputFileTest, RemovesWhatAKilledWriterLeft) {
  // The last is what a killed writer left; the others are a user's own.
  const std::vector<std::string> own{"a.123.tmp", "a.tmp", "a.hcclsim-.tmp", "a.hcclsim-12x.tmp", "b.hcclsim-123.tmp"};
  for (const std::string& name : own) std::ofstream(path(name)) << "old";
  std::ofstream(path("a.hcclsim-123.tmp")) << "old";
  OutputFile other(path("a"));  // writes, and so has its own
  write_file_atomically(path("a"), "new");
  EXPECT_FALSE(fs::exists(path("a.hcclsim-123.tmp")));
  for (const std::string& name : own) EXPECT_TRUE(fs::exists(path(name))) << name;
  other.write("newer");
  other.commit();
  EXPECT_EQ(fs::file_size(path("a")), 5);
}

TEST_F(OutputFileTest, FollowsSymbolicLinks) {
  write_file_atomically(path("a"), "old");
  fs::create_symlink("a", path("link"));
  write_file_atomically(path("link"), "new");
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(contents("a"), "new");
}

TEST_F(OutputFileTest, WritesDevicesDirectly) {
  write_file_atomically("/dev/null", "new");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_EQ(output_error("/dev/full"), "cannot write /dev/full: No space left on device");
}

TEST_F(OutputFileTest, FullDiskLeavesNothing) {
  // A limit on the size of files makes the write fail in its middle, as a full disk does.
  const rlimit limit{1 << 16, RLIM_INFINITY};
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, SIG_IGN);
  ::setrlimit(RLIMIT_FSIZE, &limit);
  EXPECT_THROW(write_file_atomically(path("big"), std::string(1 << 17, 'x')), Error);
  ::setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(files(), 0);
}

TEST_F(OutputFileTest, PathsThatCannotBeWritten) {
  EXPECT_THAT(output_error(""), HasSubstr("is empty"));
  EXPECT_THAT(output_error(path("missing/a")), HasSubstr("missing/a: No such file or directory"));
  EXPECT_THAT(output_error(path("")), HasSubstr("Is a directory"));
  EXPECT_THAT(output_error(path(std::string(300, 'n'))), HasSubstr("File name too long"));
  EXPECT_EQ(files(), 0);
}

}  // namespace
}  // namespace hcclsim
