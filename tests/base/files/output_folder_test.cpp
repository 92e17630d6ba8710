#include "base/files/output_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/output_file.hpp"
#include "tests/support/refusal.hpp"

namespace hcclsim {
namespace {

namespace fs = std::filesystem;

/// A folder of its own for a test, whose name is given.
std::string fresh(const std::string& name) {
  const std::string path = testing::TempDir() + "output_folder_" + name;
  fs::remove_all(path);
  fs::create_directory(path);
  return path;
}

void put(OutputFolder& folder, const std::string& name, const std::string& text) {
  folder.make_folder(fs::path(name).parent_path().string());
  OutputFile file = folder.file(name);
  file.write(text);
  file.commit();
}

std::vector<std::string> names_in(const std::string& path) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(path)) names.push_back(entry.path().filename());
  return names;
}

TEST(OutputFolder, AppearsWhole) {
  const std::string above = fresh("whole");
  OutputFolder folder(above + "/set/");
  EXPECT_THAT(names_in(above), testing::IsEmpty());
  put(folder, "a/one.txt", "1");
  put(folder, "a/b/two.txt", "2");
  EXPECT_FALSE(fs::exists(above + "/set"));
  folder.commit();
  EXPECT_THAT(names_in(above), testing::ElementsAre("set"));
  EXPECT_TRUE(fs::exists(above + "/set/a/b/two.txt"));
}

TEST(OutputFolder, NothingStaysWithoutCommit) {
  const std::string above = fresh("nothing");
  {
    OutputFolder folder(above + "/set");
    put(folder, "a/one.txt", "1");
  }
  EXPECT_THAT(names_in(above), testing::IsEmpty());
}

TEST(OutputFolder, TakesThePlaceOfAnEmptyFolder) {
  const std::string above = fresh("empty");
  fs::create_directory(above + "/set");
  OutputFolder folder(above + "/set");
  put(folder, "a/one.txt", "1");
  folder.commit();
  EXPECT_THAT(names_in(above + "/set"), testing::ElementsAre("a"));
}

TEST(OutputFolder, RemovesWhatAKilledWriterLeft) {
  const std::string above = fresh("killed");
  fs::create_directories(above + "/set.hcclsim-12345.part/a");
  fs::create_directories(above + "/set.12345.part");       // of a user
  fs::create_directories(above + "/set.hcclsim-x.part");   // another name
  fs::create_directories(above + "/sets.hcclsim-1.part");  // of another folder
  OutputFolder folder(above + "/set");
  put(folder, "a/one.txt", "1");
  folder.commit();
  EXPECT_THAT(names_in(above),
              testing::UnorderedElementsAre("set", "set.12345.part", "set.hcclsim-x.part", "sets.hcclsim-1.part"));
}

TEST(OutputFolder, FillsAFolder) {
  const std::string above = fresh("filled");
  const auto fill = [&](const std::string& text, bool commit) {
    OutputFolder folder(above + "/new/set", OutputFolder::Existing::is_filled);
    put(folder, "one.txt", text);
    put(folder, "a/two.txt", text);
    if (commit) folder.commit();
  };
  fill("1", false);
  EXPECT_THAT(names_in(above), testing::IsEmpty());
  fill("1", true);
  std::ofstream(above + "/new/set/own.txt") << "own";
  fill("22", false);
  EXPECT_EQ(fs::file_size(above + "/new/set/one.txt"), 1);
  fill("22", true);
  EXPECT_THAT(names_in(above + "/new/set"), testing::UnorderedElementsAre("one.txt", "a", "own.txt"));
  EXPECT_EQ(fs::file_size(above + "/new/set/one.txt"), 2);
  EXPECT_EQ(fs::file_size(above + "/new/set/a/two.txt"), 2);
  EXPECT_THAT(names_in(above), testing::ElementsAre("new"));
}

TEST(OutputFolder, NamesAFileByItsPlace) {
  const std::string above = fresh("named");
  OutputFolder folder(above + "/set");
  folder.make_folder("");
  OutputFile file = folder.file("one.txt");
  const rlimit limit{1 << 16, RLIM_INFINITY};
  std::signal(SIGXFSZ, SIG_IGN);
  ::setrlimit(RLIMIT_FSIZE, &limit);
  EXPECT_EQ(test::refusal("output", [&] { file.write(std::string(1 << 17, 'x')); }),
            "cannot write " + above + "/set/one.txt: File too large");
}

TEST(OutputFolder, RefusesWhatItCannotWrite) {
  const std::string above = fresh("refused");
  fs::create_directory(above + "/full");
  std::ofstream(above + "/full/x") << "x";
  const auto refusal = [](const std::string& path) {
    return test::refusal("output", [&] { static_cast<void>(OutputFolder(path)); });
  };
  EXPECT_EQ(refusal(above + "/full"),
            "cannot write " + above + "/full: the folder is there and not empty; give a new one");
  EXPECT_EQ(refusal(above + "/full/x"), "cannot write " + above + "/full/x: Not a directory");
  EXPECT_EQ(refusal(above + "/no/set"), "cannot write " + above + "/no/set: No such file or directory");
  EXPECT_EQ(refusal(""), "the path of an output folder is empty");
}

}  // namespace
}  // namespace hcclsim
