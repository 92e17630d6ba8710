// The main function of the test programs. Each process has a folder of its own for temporary files, which goes when it
// ends: tests run side by side, and a file that two of them write under one name would be read half written.

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  std::string folder = (std::filesystem::temp_directory_path() / "hcclsim-test-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) {
    std::perror(folder.c_str());
    return EXIT_FAILURE;
  }
  folder += '/';
  ::setenv("TEST_TMPDIR", folder.c_str(), 1);  // testing::TempDir()
  ::setenv("TMPDIR", folder.c_str(), 1);       // std::filesystem::temp_directory_path(), and child processes
  const int status = RUN_ALL_TESTS();
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  return status;
}
