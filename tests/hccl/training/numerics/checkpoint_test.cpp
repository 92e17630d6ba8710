#include "hccl/training/numerics/checkpoint.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "base/counter_random.hpp"
#include "base/error.hpp"

namespace hcclsim::hccl {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

/// Values of a tensor that reveal every change of a bit: infinities, NaNs with payload, −0, subnormals, and others.
std::vector<float> tensor_values(std::size_t elements, std::uint64_t stream) {
  std::vector<float> values(elements);
  for (std::size_t i = 0; i < elements; ++i) {
    values[i] = std::bit_cast<float>(static_cast<std::uint32_t>(counter_bits(7, stream, i)));
  }
  const std::vector<std::uint32_t> special{0x7f800000, 0xff800000, 0x7fc12345, 0xffa00001, 0x80000000, 1};
  for (std::size_t i = 0; i < std::min(elements, special.size()); ++i) values[i] = std::bit_cast<float>(special[i]);
  return values;
}

Checkpoint small_checkpoint() {
  Checkpoint checkpoint;
  checkpoint.model = "mlp:3,2";
  checkpoint.parameters = {{"fc1.weight", {2, 3}}, {"fc1.bias", {2}}};
  checkpoint.tensors = {"weights", "momentum"};
  checkpoint.iteration = 12;
  checkpoint.seed = std::numeric_limits<std::uint64_t>::max();
  checkpoint.optimizer = "momentum";
  checkpoint.optimizer_steps = 11;
  checkpoint.loss_scale = 65536;
  checkpoint.loss_scale_streak = 3;
  checkpoint.settings = {{"beta2", "0.999"}, {"weight-decay", "0"}};
  checkpoint.iteration_ends = {0.125, 0.1 + 0.2};
  checkpoint.options = {{"communication", "fp16"}, {"npus", "2"}, {"data", "images:a\xff folder that is not UTF-8"}};
  return checkpoint;
}

/// Elements of all tensors of a checkpoint, in the order of the file.
std::vector<std::uint64_t> tensor_sizes(const Checkpoint& checkpoint) {
  std::vector<std::uint64_t> sizes;
  for (std::size_t kind = 0; kind < checkpoint.tensors.size(); ++kind) {
    for (const CheckpointParameter& parameter : checkpoint.parameters) sizes.push_back(parameter.elements());
  }
  return sizes;
}

void save(const std::string& path, const Checkpoint& checkpoint) {
  CheckpointWriter writer(path, checkpoint);
  std::uint64_t stream = 0;
  for (const std::uint64_t elements : tensor_sizes(checkpoint)) writer.write(tensor_values(elements, stream++));
  writer.commit();
}

class CheckpointTest : public testing::Test {
 protected:
  CheckpointTest() : folder_(fs::temp_directory_path() / fmt::format("hcclsim-checkpoint-{}", ::getpid())) {
    fs::create_directory(folder_);
  }
  ~CheckpointTest() override { fs::remove_all(folder_); }

  [[nodiscard]] std::string path(const std::string& name) const { return (folder_ / name).string(); }
  [[nodiscard]] std::string contents(const std::string& name) const {
    std::stringstream text;
    text << std::ifstream(path(name), std::ios::binary).rdbuf();
    return text.str();
  }
  /// What the reader says against a file of these bytes.
  [[nodiscard]] std::string refusal(const std::string& bytes) const {
    std::ofstream(path("damaged"), std::ios::binary) << bytes;
    return refusal_of_file("damaged");
  }
  [[nodiscard]] std::string refusal_of_file(const std::string& name) const {
    try {
      const CheckpointReader reader(path(name));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::bad_input);
      EXPECT_EQ(error.kind(), "checkpoint");
      EXPECT_THAT(error.what(), HasSubstr(path(name)));
      return error.what();
    }
    return {};
  }
  [[nodiscard]] std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

 private:
  fs::path folder_;
};

void expect_same_file(const std::string& path, const Checkpoint& checkpoint) {
  CheckpointReader reader(path);
  EXPECT_EQ(reader.checkpoint(), checkpoint);
  std::uint64_t stream = 0;
  for (const std::uint64_t elements : tensor_sizes(checkpoint)) {
    const std::vector<float> expected = tensor_values(elements, stream++);
    std::vector<float> values(elements);
    reader.read(values);
    EXPECT_TRUE(std::ranges::equal(std::as_bytes(std::span(values)), std::as_bytes(std::span(expected))))
        << "tensor " << stream - 1;
  }
}

TEST_F(CheckpointTest, ComesBackBitByBit) {
  save(path("a"), small_checkpoint());
  expect_same_file(path("a"), small_checkpoint());
  save(path("b"), small_checkpoint());
  EXPECT_EQ(contents("a"), contents("b"));
}

TEST_F(CheckpointTest, TheHeaderAloneIsRead) {
  save(path("a"), small_checkpoint());
  EXPECT_EQ(read_checkpoint_header(path("a")), small_checkpoint());
}

TEST_F(CheckpointTest, AHeaderThatSaysWhatCannotBeIsRefused) {
  const auto refusal_with = [&](void (*change)(Checkpoint&)) {
    Checkpoint checkpoint = small_checkpoint();
    change(checkpoint);
    save(path("a"), checkpoint);
    return refusal_of_file("a");
  };
  EXPECT_THAT(refusal_with([](Checkpoint& it) { it.iteration = std::numeric_limits<std::uint64_t>::max(); }),
              HasSubstr("says that 18446744073709551615 iterations are done; accepted: up to 2147483648"));
  EXPECT_THAT(refusal_with([](Checkpoint& it) { it.optimizer_steps = 13; }), HasSubstr("13 updates in 12 iterations"));
  EXPECT_THAT(refusal_with([](Checkpoint& it) { it.iteration_ends.pop_back(); }), HasSubstr("dates of 1 NPUs"));
  EXPECT_THAT(refusal_with([](Checkpoint& it) { it.iteration_ends[0] = -1; }), HasSubstr("dates of 2 NPUs"));
  EXPECT_THAT(refusal_with([](Checkpoint& it) { it.iteration_ends[0] = HUGE_VAL; }), HasSubstr("dates of 2 NPUs"));
  EXPECT_EQ(refusal_with([](Checkpoint& it) { it.iteration_ends.clear(); }), "");
}

TEST(CheckpointOfAnotherRun, ChangedSettingsAreNamed) {
  const Checkpoint file = small_checkpoint();
  Checkpoint run = file;
  EXPECT_THAT(changed_settings(file, run), testing::IsEmpty());
  run.settings = {{"beta2", "0.9"}, {"label-smoothing", "0.1"}, {"weight-decay", "0"}};
  EXPECT_THAT(changed_settings(file, run), testing::ElementsAre("beta2 0.999 -> 0.9"));
  require_same_run("file", file, run);
}

TEST_F(CheckpointTest, TensorsOfSeveralPieces) {
  Checkpoint checkpoint = small_checkpoint();
  checkpoint.parameters = {{"exactly.two", {2, 1U << 20U}}, {"scalar", {}}, {"one.more", {(1U << 20U) + 1}}};
  checkpoint.tensors = {"weights"};
  save(path("a"), checkpoint);
  expect_same_file(path("a"), checkpoint);
}

TEST_F(CheckpointTest, WithoutParametersOrTensorsOfTheOptimizer) {
  Checkpoint checkpoint = small_checkpoint();
  checkpoint.parameters.clear();
  save(path("a"), checkpoint);
  expect_same_file(path("a"), checkpoint);
}

TEST_F(CheckpointTest, TheBytesAreThoseOfTheFormat) {
  save(path("a"), small_checkpoint());
  const std::string bytes = contents("a");
  EXPECT_EQ(bytes.substr(0, 12), std::string("HCCLCKPT\1\0\0\0", 12));
  // Header and four tensors of one piece each.
  EXPECT_EQ(bytes.substr(bytes.size() - 16, 4), std::string(4, '\0'));
  EXPECT_EQ(bytes.substr(bytes.size() - 8), std::string("\5\0\0\0\0\0\0\0", 8));
}

TEST_F(CheckpointTest, EveryFlippedBitIsRefused) {
  save(path("a"), small_checkpoint());
  const std::string bytes = contents("a");
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    ASSERT_NE(refusal(damaged), "") << "bit " << bit % 8 << " of byte " << bit / 8;
  }
}

TEST_F(CheckpointTest, EveryTruncationIsRefused) {
  save(path("a"), small_checkpoint());
  const std::string bytes = contents("a");
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    ASSERT_NE(refusal(bytes.substr(0, length)), "") << length << " bytes";
  }
  EXPECT_NE(refusal(bytes + '\0'), "");
  EXPECT_NE(refusal(bytes + bytes), "");
}

TEST_F(CheckpointTest, SaysWhatIsWrong) {
  save(path("a"), small_checkpoint());
  std::string bytes = contents("a");
  EXPECT_THAT(refusal(""), HasSubstr("is empty"));
  EXPECT_THAT(refusal("a text that is no checkpoint at all"), HasSubstr("does not begin with HCCLCKPT"));
  EXPECT_THAT(refusal(bytes.substr(0, bytes.size() / 2)), HasSubstr("cut short"));
  bytes[100] = static_cast<char>(bytes[100] ^ 1);
  EXPECT_THAT(refusal(bytes), HasSubstr("record 0 at byte 12 has a wrong checksum"));
  bytes[8] = 2;
  EXPECT_THAT(refusal(bytes), AllOf(HasSubstr("version 2"), HasSubstr("reads version 1")));
  EXPECT_THAT(refusal_of_file("missing"), HasSubstr("No such file"));
  EXPECT_THAT(refusal_of_file("."), HasSubstr("it is a folder"));
}

TEST_F(CheckpointTest, ExchangedRecordsAreRefused) {
  Checkpoint checkpoint = small_checkpoint();
  checkpoint.parameters = {{"a", {4}}, {"b", {4}}, {"c", {4}}};
  checkpoint.tensors = {"weights"};
  save(path("a"), checkpoint);
  const std::string bytes = contents("a");
  // Before the footer stand the records of b and c: a frame of 8 bytes, 16 of values, and 6 of fields.
  const std::size_t record = 30;
  const std::size_t begin = bytes.size() - 16 - 2 * record;
  std::string exchanged = bytes;
  exchanged.replace(begin, record, bytes, begin + record, record);
  exchanged.replace(begin + record, record, bytes, begin, record);
  EXPECT_THAT(refusal(exchanged), HasSubstr("lacks elements 0 to 3 of the weights of b"));
  std::string without_c = bytes;
  without_c.erase(begin + record, record);
  EXPECT_THAT(refusal(without_c), HasSubstr("lacks elements 0 to 3 of the weights of c"));
}

TEST_F(CheckpointTest, FullDiskLeavesThePreviousOne) {
  save(path("a"), small_checkpoint());
  const std::string before = contents("a");
  Checkpoint large = small_checkpoint();
  large.parameters = {{"large", {1U << 16U}}};
  large.tensors = {"weights"};
  // A limit on the size of files makes the write fail in its middle, as a full disk does.
  const rlimit limit{1 << 16, RLIM_INFINITY};
  rlimit unlimited{};
  ::getrlimit(RLIMIT_FSIZE, &unlimited);
  std::signal(SIGXFSZ, SIG_IGN);
  ::setrlimit(RLIMIT_FSIZE, &limit);
  std::string message;
  try {
    save(path("a"), large);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_input);
    EXPECT_EQ(error.kind(), "output");
    message = error.what();
  }
  ::setrlimit(RLIMIT_FSIZE, &unlimited);
  EXPECT_THAT(message, HasSubstr(path("a")));
  EXPECT_EQ(contents("a"), before);
  EXPECT_EQ(files(), 1);
  EXPECT_THROW(save("/dev/full", small_checkpoint()), Error);
}

TEST_F(CheckpointTest, AbandonedWriterLeavesThePreviousOne) {
  save(path("a"), small_checkpoint());
  const std::string before = contents("a");
  { CheckpointWriter(path("a"), small_checkpoint()).write(tensor_values(6, 0)); }
  EXPECT_EQ(contents("a"), before);
  EXPECT_EQ(files(), 1);
}

TEST_F(CheckpointTest, TensorsOfAnotherSizeAreADefect) {
  CheckpointWriter writer(path("a"), small_checkpoint());
  EXPECT_THROW(writer.write(tensor_values(5, 0)), Error);
  EXPECT_THROW(writer.commit(), Error);
}

std::string difference(const std::function<void(Checkpoint&)>& change) {
  Checkpoint run = small_checkpoint();
  change(run);
  try {
    require_same_run("file", small_checkpoint(), run);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_input);
    EXPECT_EQ(error.kind(), "checkpoint");
    return error.what();
  }
  return {};
}

TEST(CheckpointOfAnotherRun, IsNamed) {
  EXPECT_EQ(difference([](Checkpoint& run) { run.iteration = run.optimizer_steps = run.loss_scale_streak = 0; }), "");
  EXPECT_EQ(difference([](Checkpoint& run) { run.model = "lenet"; }),
            "file was saved with model mlp:3,2, this run has lenet; load it with the settings it was saved with");
  EXPECT_THAT(difference([](Checkpoint& run) { run.parameters.pop_back(); }),
              HasSubstr("number of parameters 2, this run has 1"));
  EXPECT_THAT(difference([](Checkpoint& run) { run.parameters[1].name = "b"; }),
              HasSubstr("parameter 1 named fc1.bias, this run has b"));
  EXPECT_THAT(difference([](Checkpoint& run) {
                run.parameters[0].shape = {3, 2};
              }),
              HasSubstr("the shape of fc1.weight: 2x3, this run has 3x2"));
  EXPECT_THAT(difference([](Checkpoint& run) { run.optimizer = "adam"; }), HasSubstr("optimizer momentum"));
  EXPECT_THAT(difference([](Checkpoint& run) { run.tensors = {"weights"}; }), HasSubstr("weights, momentum"));
  EXPECT_THAT(difference([](Checkpoint& run) { run.seed = 1; }), HasSubstr("this run has 1;"));
  EXPECT_THAT(difference([](Checkpoint& run) { run.options["communication"] = "fp32"; }),
              HasSubstr("gradients sent in fp16, this run has fp32"));
  EXPECT_THAT(difference([](Checkpoint& run) { run.options.erase("communication"); }),
              HasSubstr("gradients sent in fp16, this run has none"));
  EXPECT_THAT(difference([](Checkpoint& run) { run.options["clip"] = "1"; }), HasSubstr("clip none, this run has 1"));
  EXPECT_THAT(difference([](Checkpoint& run) {
                run.options["compress"] = "fp16";
                run.options["buckets"] = "0-1";
              }),
              HasSubstr("--compress none, this run has fp16"));
}

}  // namespace
}  // namespace hcclsim::hccl
