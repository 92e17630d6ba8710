#pragma once

#include "base/input_file.hpp"
#include "models/data/picture.hpp"

/// CIFAR-10 in its binary version: files of records without a header, each of one byte with the label (0 to 9) and
/// 3072 with the image (3 channels of 32 x 32, red first). A folder stands for its data_batch_*.bin in the order of
/// their names, or for test_batch.bin if it has no others. Labels are read at once, images when they are asked for.
namespace hcclsim::models {

class Cifar10 final : public Dataset {
 public:
  Cifar10(const SampleForm& form, const std::string& path);

  [[nodiscard]] std::uint64_t size() const override { return labels_.size(); }
  [[nodiscard]] bool shuffles() const override { return true; }
  void read(std::uint64_t sample, Batch& batch, std::uint32_t slot) const override;
  [[nodiscard]] std::string describe() const override;

 private:
  void open(const std::string& path);

  std::string path_;
  std::vector<InputFile> files_;
  std::vector<std::uint64_t> first_;  ///< sample in the first record of each file
  std::vector<std::uint8_t> labels_;
};

}  // namespace hcclsim::models
