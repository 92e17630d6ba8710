#include "base/input_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

namespace hcclsim {
namespace {

namespace fs = std::filesystem;

class InputFileTest : public testing::Test {
 protected:
  InputFileTest() : folder_(fs::temp_directory_path() / fmt::format("hcclsim-input-{}", ::getpid())) {
    fs::create_directory(folder_);
    std::ofstream(path("a")) << "0123456789";
  }
  ~InputFileTest() override { fs::remove_all(folder_); }

  [[nodiscard]] std::string path(const std::string& name) const { return (folder_ / name).string(); }

 private:
  fs::path folder_;
};

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_input);
    EXPECT_EQ(error.kind(), "thing");
    return error.what();
  }
  return {};
}

TEST_F(InputFileTest, ReadsFromAnyPlace) {
  const InputFile first(path("a"), "thing");
  InputFile moved(path("a"), "thing");
  const InputFile file(std::move(moved));
  EXPECT_EQ(file.size(), 10);
  std::array<char, 4> text{};
  file.read(6, std::as_writable_bytes(std::span(text)));
  EXPECT_EQ(std::string(text.data(), 4), "6789");
  file.read(0, std::as_writable_bytes(std::span(text)));
  EXPECT_EQ(std::string(text.data(), 4), "0123");
  EXPECT_EQ(file.read_some(8, std::as_writable_bytes(std::span(text))).size(), 2);
  EXPECT_EQ(error_of([&] { file.read(7, std::as_writable_bytes(std::span(text))); }),
            path("a") + ": ends at byte 10, 1 bytes too early");
  EXPECT_EQ(error_of([&] { file.fail("record {}", 3); }), path("a") + ": record 3");
}

TEST_F(InputFileTest, RefusesWhatCannotBeRead) {
  const auto opening = [&](const std::string& name) { return error_of([&] { const InputFile file(name, "thing"); }); };
  EXPECT_EQ(opening(path("missing")), "cannot read " + path("missing") + ": No such file or directory");
  EXPECT_EQ(opening(""), "cannot read '': No such file or directory");
  EXPECT_EQ(opening(path("")), "cannot read " + path("") + ": it is a folder");
  EXPECT_EQ(opening("/dev/zero"), "cannot read /dev/zero: it is a device");
  EXPECT_EQ(opening("/proc/self/mem"), "cannot read /proc/self/mem: Input/output error");
}

TEST_F(InputFileTest, ReadsFilesThatSayNoSize) {
  EXPECT_NE(read_text_file("/proc/self/status", "thing").find("VmSize:"), std::string::npos);
}

TEST_F(InputFileTest, ReadsAPipeAtOnce) {
  std::string sent(300'000, 'x');
  sent += "end";
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  std::thread writer([&] {
    EXPECT_EQ(::write(ends[1], sent.data(), sent.size()), static_cast<ssize_t>(sent.size()));
    ::close(ends[1]);
  });
  EXPECT_EQ(read_text_file("/dev/fd/" + std::to_string(ends[0]), "thing"), sent);
  writer.join();
  ::close(ends[0]);
}

TEST_F(InputFileTest, WaitsForTheWriterOfANamedPipe) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  std::thread writer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    std::ofstream(path("pipe")) << "late";
  });
  EXPECT_EQ(read_text_file(path("pipe"), "thing"), "late");
  writer.join();
}

TEST_F(InputFileTest, WaitsForASlowWriterOfANamedPipe) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  std::thread writer([&] {
    std::ofstream pipe(path("pipe"));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    pipe << "la" << std::flush;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    pipe << "te";
  });
  EXPECT_EQ(read_text_file(path("pipe"), "thing"), "late");
  writer.join();
}

TEST_F(InputFileTest, DoesNotWaitForEverForAWriter) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(error_of([&] { static_cast<void>(read_text_file(path("pipe"), "thing")); }),
            "cannot read " + path("pipe") + ": no program has opened this pipe to write for 5 s");
  // One that writes nothing ends it.
  std::thread writer([&] { std::ofstream(path("pipe")).flush(); });
  EXPECT_EQ(read_text_file(path("pipe"), "thing"), "");
  writer.join();
}

TEST_F(InputFileTest, TextIsUtf8) {
  const auto check = [](const std::string& text) { return error_of([&] { require_utf8(text, "f", "thing"); }); };
  EXPECT_EQ(check("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80 \x01\n"), "");
  EXPECT_EQ(check("a\nb\xe9\n"), "f:2: \\xE9 is no character in UTF-8; save the file in this encoding");
  EXPECT_EQ(check("\xc0\x80"), "f:1: \\xC0 is no character in UTF-8; save the file in this encoding");
  EXPECT_EQ(check("a\xe2\x82"), "f:1: \\xE2 is no character in UTF-8; save the file in this encoding");
  std::ofstream(path("a")) << "0\xff";
  EXPECT_EQ(read_whole_file(path("a"), "thing"), "0\xff");
  EXPECT_EQ(error_of([&] { static_cast<void>(read_text_file(path("a"), "thing")); }),
            path("a") + ":1: \\xFF is no character in UTF-8; save the file in this encoding");
}

}  // namespace
}  // namespace hcclsim
