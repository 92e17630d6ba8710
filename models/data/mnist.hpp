#pragma once

#include "base/input_file.hpp"
#include "models/data/picture.hpp"

/// MNIST and what is stored like it: a folder with train-images-idx3-ubyte and train-labels-idx1-ubyte (or, if these
/// are not there, the same of t10k-). Numbers in the headers are of 4 bytes, the highest first: magic 2051, images,
/// rows, columns, then a byte per pixel; magic 2049, labels, then a byte per label. Labels are read at once, images
/// when they are asked for.
namespace hcclsim::models {

class Mnist final : public Dataset {
 public:
  Mnist(const SampleForm& form, const std::string& folder);

  [[nodiscard]] std::uint64_t size() const override { return labels_.size(); }
  [[nodiscard]] bool shuffles() const override { return true; }
  void read(std::uint64_t sample, Batch& batch, std::uint32_t slot) const override;
  [[nodiscard]] std::string describe() const override;

 private:
  /// `set`: "train" or "t10k".
  Mnist(const SampleForm& form, const std::string& folder, std::string_view set);
  void read_images_header();
  void read_labels(const InputFile& file);

  InputFile images_;
  std::uint32_t count_ = 0;  ///< of images
  PictureSize picture_size_;
  std::vector<std::uint8_t> labels_;
};

}  // namespace hcclsim::models
