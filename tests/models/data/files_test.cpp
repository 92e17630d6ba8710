// The readers of CIFAR-10 and MNIST on small files.

#include <gmock/gmock.h>

#include <thread>

#include "tests/models/data/data_folder.hpp"

namespace hcclsim::models {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

/// A value of an image that shows where it comes from.
int pixel(int image, int i) { return (image * 37 + i * 7) % 256; }

std::string image_bytes(int image, int count) {
  std::string bytes;
  for (int i = 0; i < count; ++i) bytes += static_cast<char>(pixel(image, i));
  return bytes;
}

/// Records of CIFAR-10 with these labels; images are numbered from `first`.
std::string cifar(const std::vector<int>& labels, int first = 0) {
  std::string bytes;
  for (const int label : labels) bytes += static_cast<char>(label) + image_bytes(first++, 3072);
  return bytes;
}

std::string big_endian(std::uint32_t number) {
  std::string bytes;
  for (const unsigned shift : {24U, 16U, 8U, 0U}) bytes += static_cast<char>(number >> shift & 0xffU);
  return bytes;
}

std::string mnist_images(std::uint32_t count, std::uint32_t rows, std::uint32_t columns) {
  std::string bytes = big_endian(2051) + big_endian(count) + big_endian(rows) + big_endian(columns);
  for (std::uint32_t i = 0; i < count; ++i) bytes += image_bytes(static_cast<int>(i), static_cast<int>(rows * columns));
  return bytes;
}

std::string mnist_labels(const std::string& labels) {
  return big_endian(2049) + big_endian(static_cast<std::uint32_t>(labels.size())) + labels;
}

const Graph colour32 = image_network({1, 3, 32, 32}, 10);
const Graph grey28 = image_network({1, 1, 28, 28}, 10);

class Cifar10Test : public DataFolderTest {};

TEST_F(Cifar10Test, FilesOfAFolderInOrder) {
  write("data_batch_2.bin", cifar({3}, 2));
  write("data_batch_1.bin", cifar({9, 0}));
  write("test_batch.bin", cifar({5}));
  write("batches.meta.txt", "airplane");
  const auto dataset = open_dataset("cifar10:" + path(), colour32, 1);
  EXPECT_EQ(dataset->size(), 3);
  EXPECT_TRUE(dataset->shuffles());
  EXPECT_EQ(dataset->describe(), "CIFAR-10, 3 images of 3x32x32 in 2 files of " + path());
  const Batch batch = batch_of(*dataset, {2, 0, 1});
  EXPECT_THAT(batch.labels, ElementsAre(3, 9, 0));
  ASSERT_EQ(batch.inputs.size(), 3 * 3072);
  for (int slot = 0; slot < 3; ++slot) {
    for (int i = 0; i < 3072; ++i) {
      EXPECT_NEAR(batch.inputs[slot * 3072 + i], normal(pixel((slot + 2) % 3, i)), 1e-6) << slot << " " << i;
    }
  }
}

TEST_F(Cifar10Test, OneFileAndTheTestSet) {
  write("test_batch.bin", cifar({5, 6}));
  EXPECT_EQ(open_dataset("cifar10:" + path("test_batch.bin"), colour32, 1)->size(), 2);
  EXPECT_EQ(open_dataset("cifar10:" + path(), colour32, 1)->size(), 2);
}

TEST_F(Cifar10Test, FeedsANetworkOfAnotherSize) {
  write("data_batch_1.bin", cifar({5}));
  const Graph graph = image_network({1, 3, 64, 64}, 10);
  const auto dataset = open_dataset("cifar10:" + path(), graph, 1);
  EXPECT_THAT(dataset->describe(), HasSubstr("3x32x32 resized to 3x64x64"));
  const Batch batch = batch_of(*dataset, {0});
  ASSERT_EQ(batch.inputs.size(), 3 * 64 * 64);
  EXPECT_NEAR(batch.inputs.front(), normal(pixel(0, 0)), 1e-6);
  EXPECT_NEAR(batch.inputs.back(), normal(pixel(0, 3071)), 1e-6);
  // Between the first two pixels: three quarters of the one, a quarter of the other.
  EXPECT_NEAR(batch.inputs[1], normal(0.75 * pixel(0, 0) + 0.25 * pixel(0, 1)), 1e-6);
}

TEST_F(Cifar10Test, ManyThreadsReadTheSame) {
  write("data_batch_1.bin", cifar(std::vector<int>(20, 1)));
  const auto dataset = open_dataset("cifar10:" + path(), colour32, 1);
  std::vector<std::uint64_t> all;
  for (std::uint64_t i = 0; i < 20; ++i) all.push_back(i);
  const Batch expected = batch_of(*dataset, all);
  std::vector<Batch> batches(4);
  {
    std::vector<std::jthread> threads;
    threads.reserve(batches.size());
    for (Batch& batch : batches) threads.emplace_back([&] { fill(batch, *dataset, all); });
  }
  EXPECT_THAT(batches, testing::Each(testing::Field(&Batch::inputs, expected.inputs)));
}

TEST_F(Cifar10Test, BadFiles) {
  const std::string source = "cifar10:" + path();
  EXPECT_THAT(open_error(source, colour32), AllOf(HasSubstr(path()), HasSubstr("neither data_batch_*.bin nor")));
  EXPECT_THAT(open_error(source + "/missing", colour32), HasSubstr("missing: No such file or directory"));
  const auto error_with = [&](const std::string& bytes, const Graph& graph = colour32) {
    write("data_batch_1.bin", bytes);
    const std::string message = open_error(source, graph);
    EXPECT_THAT(message, HasSubstr(path("data_batch_1.bin")));
    return message;
  };
  EXPECT_THAT(error_with(""), HasSubstr("the file is empty"));
  EXPECT_THAT(error_with(cifar({1, 2}).substr(0, 5000)), HasSubstr("has 5000 bytes, no multiple of the 3073"));
  EXPECT_THAT(error_with(cifar({1, 2}).substr(0, 5000)), HasSubstr("record 1 is cut short"));
  EXPECT_THAT(error_with(cifar({1, 2, 10})),
              HasSubstr("record 2 (byte 6146) has label 10; CIFAR-10 has labels 0 to 9"));
  EXPECT_THAT(error_with("\x1f\x8b\x08 compressed"), HasSubstr("compressed with gzip; unpack it"));
  const Graph five = image_network({1, 3, 32, 32}, 5);
  EXPECT_THAT(error_with(cifar({4, 5}), five),
              HasSubstr("record 1 has label 5, but the network has 5 classes (labels 0 to 4)"));
  const Graph two_channels = image_network({1, 2, 32, 32}, 10);
  EXPECT_THAT(open_error(source, two_channels), HasSubstr("the network takes 2"));
  const Graph features = image_network({1, 100}, 10);
  EXPECT_THAT(open_error(source, features), HasSubstr("3x32x32 have 3072 values, but the network takes 100 features"));
}

TEST_F(Cifar10Test, FileThatShrinksLater) {
  write("data_batch_1.bin", cifar({1, 2}));
  const auto dataset = open_dataset("cifar10:" + path(), colour32, 1);
  std::filesystem::resize_file(path("data_batch_1.bin"), 4000);
  EXPECT_THAT(data_error([&] { (void)batch_of(*dataset, {1}); }), HasSubstr("ends at byte 4000, 2146 bytes too early"));
}

class MnistTest : public DataFolderTest {
 protected:
  void write_set(const std::string& set, const std::string& images, const std::string& labels) const {
    write(set + "-images-idx3-ubyte", images);
    write(set + "-labels-idx1-ubyte", labels);
  }
  /// The message about a training set of these bytes.
  [[nodiscard]] std::string error_with(const std::string& images, const std::string& labels) const {
    write_set("train", images, labels);
    return open_error("mnist:" + path(), grey28);
  }
};

TEST_F(MnistTest, ImagesAndLabels) {
  write_set("train", mnist_images(3, 28, 28), mnist_labels("\x07\x01\x09"));
  write_set("t10k", mnist_images(1, 28, 28), mnist_labels("\x02"));
  const auto dataset = open_dataset("mnist:" + path(), grey28, 1);
  EXPECT_EQ(dataset->size(), 3);
  EXPECT_EQ(dataset->describe(), "MNIST, 3 images of 1x28x28 in " + path("train-images-idx3-ubyte"));
  const Batch batch = batch_of(*dataset, {2, 0});
  EXPECT_THAT(batch.labels, ElementsAre(9, 7));
  for (int i = 0; i < 784; ++i) {
    EXPECT_NEAR(batch.inputs[i], normal(pixel(2, i)), 1e-6) << "pixel " << i;
    EXPECT_NEAR(batch.inputs[784 + i], normal(pixel(0, i)), 1e-6) << "pixel " << i;
  }
}

TEST_F(MnistTest, TestSetInOtherForms) {
  write_set("t10k", mnist_images(2, 4, 5), mnist_labels("\x02\x03"));
  const Batch features = batch_of(*open_dataset("mnist:" + path(), image_network({1, 20}, 10), 1), {1});
  ASSERT_EQ(features.inputs.size(), 20);
  for (int i = 0; i < 20; ++i) EXPECT_NEAR(features.inputs[i], normal(pixel(1, i)), 1e-6) << "pixel " << i;
  const Graph graph = image_network({1, 3, 4, 5}, 10);
  const Batch colour = batch_of(*open_dataset("mnist:" + path(), graph, 1), {1});
  ASSERT_EQ(colour.inputs.size(), 60);
  for (int i = 0; i < 60; ++i) EXPECT_NEAR(colour.inputs[i], normal(pixel(1, i % 20)), 1e-6) << "value " << i;
}

TEST_F(MnistTest, BadFiles) {
  EXPECT_THAT(open_error("mnist:" + path("missing"), grey28), HasSubstr("there is no folder " + path("missing")));
  EXPECT_THAT(open_error("mnist:" + path(), grey28), HasSubstr("has neither train-images-idx3-ubyte nor t10k-images"));
  write("train-images-idx3-ubyte.gz", "x");
  EXPECT_THAT(open_error("mnist:" + path(), grey28), HasSubstr("train-images-idx3-ubyte.gz is compressed; unpack"));
  write("train-images-idx3-ubyte", mnist_images(2, 28, 28));
  EXPECT_THAT(open_error("mnist:" + path(), grey28), HasSubstr("train-labels-idx1-ubyte: No such file"));
  EXPECT_THAT(open_error("mnist:" + path("train-images-idx3-ubyte"), grey28), HasSubstr("not a folder:"));

  const std::string small = mnist_images(2, 2, 3);
  for (std::size_t length = 0; length < small.size(); ++length) {
    ASSERT_NE(error_with(small.substr(0, length), mnist_labels("\x01\x02")), "") << length << " bytes";
  }
  const std::string images = mnist_images(2, 28, 28);
  const std::string labels = mnist_labels("\x01\x02");
  EXPECT_EQ(error_with(images, labels), "");
  EXPECT_THAT(error_with("", labels), HasSubstr("images-idx3-ubyte: the file is empty"));
  EXPECT_THAT(error_with("ab", labels), HasSubstr("ends at byte 2"));
  EXPECT_THAT(error_with(labels, images), HasSubstr("begins with 2049; images of MNIST begin with 2051"));
  EXPECT_THAT(error_with(images, images), HasSubstr("begins with 2051; labels of MNIST begin with 2049"));
  EXPECT_THAT(error_with(images.substr(0, 1000), labels),
              HasSubstr("has 1000 bytes, but by its header 1584: it is cut"));
  EXPECT_THAT(error_with(images + "x", labels), HasSubstr("by its header 1584: it is damaged"));
  EXPECT_THAT(error_with(images, labels.substr(0, 9)), HasSubstr("has 9 bytes, but by its header 10"));
  EXPECT_THAT(error_with(images, mnist_labels("\x01")), HasSubstr("has 1 labels for the 2 images of"));
  EXPECT_THAT(
      error_with(images, mnist_labels("\x01\x0a")),
      HasSubstr("train-labels-idx1-ubyte: record 1 has label 10, but the network has 10 classes (labels 0 to 9)"));
  EXPECT_THAT(error_with(mnist_images(0, 28, 28), mnist_labels("")), HasSubstr("has 0 images"));
  EXPECT_THAT(error_with(big_endian(2051) + big_endian(~0U) + big_endian(~0U) + big_endian(~0U), labels),
              HasSubstr("accepted: at least one image of 1 to 4096 pixels"));
}

}  // namespace
}  // namespace hcclsim::models
