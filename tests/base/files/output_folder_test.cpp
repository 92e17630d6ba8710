#include "base/files/output_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

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
  OutputFile file(folder.place_of(name));
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
  fs::create_directories(above + "/set.12345.part/a");
  fs::create_directories(above + "/set.x.part");   // another name
  fs::create_directories(above + "/sets.1.part");  // of another folder
  OutputFolder folder(above + "/set");
  put(folder, "a/one.txt", "1");
  folder.commit();
  EXPECT_THAT(names_in(above), testing::UnorderedElementsAre("set", "set.x.part", "sets.1.part"));
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
