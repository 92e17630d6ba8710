#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "base/error.hpp"
#include "models/data/dataset.hpp"
#include "models/graph_builder.hpp"

/// For tests of data sources: a folder for small files, tiny networks, and the message of an Error.
namespace hcclsim::models {

/// An empty folder that is removed at the end of the test.
class DataFolderTest : public testing::Test {
 protected:
  DataFolderTest() : folder_(std::filesystem::temp_directory_path() / fmt::format("hcclsim-data-{}", ::getpid())) {
    std::filesystem::create_directory(folder_);
  }
  ~DataFolderTest() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::string path(const std::string& name = {}) const {
    return name.empty() ? folder_.string() : (folder_ / name).string();
  }
  void write(const std::string& name, const std::string& bytes) const {
    std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
    std::ofstream(path(name), std::ios::binary) << bytes;
  }

 private:
  std::filesystem::path folder_;
};

/// A network of images with one linear operator.
inline Graph image_network(const Shape& input, std::uint32_t classes) {
  GraphBuilder builder("tiny images", input);
  const OperatorId flat = builder.flatten("flatten", GraphBuilder::input());
  const OperatorId logits = builder.linear("fc", flat, classes, true);
  return std::move(builder).finish(logits);
}

/// The message of the data error that `action` throws; empty if it throws none.
inline std::string data_error(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_input);
    EXPECT_EQ(error.kind(), "data");
    return error.what();
  }
  return {};
}

inline std::string open_error(const std::string& source, const Graph& graph) {
  return data_error([&] { (void)open_dataset(source, graph, 1); });
}

inline Batch batch_of(const Dataset& dataset, const std::vector<std::uint64_t>& samples) {
  Batch batch;
  fill(batch, dataset, samples);
  return batch;
}

/// What a value of 0 to 255 becomes.
inline float normal(double value) { return static_cast<float>((value / 255 - 0.5) / 0.25); }

}  // namespace hcclsim::models
