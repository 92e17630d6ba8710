#pragma once

#include <cstdint>

#include "base/input_file.hpp"
#include "base/units.hpp"

/// What must be known of an image before stb_image 2.27 may read it: the memory that it takes, and what it does not
/// check itself.
namespace hcclsim::models {

/// An image as its file holds it.
struct StoredImage {
  std::uint32_t height = 1;
  std::uint32_t width = 1;
  std::uint32_t channels = 1;  ///< with the alpha channel
  std::uint32_t bytes_per_value = 1;

  [[nodiscard]] std::uint64_t pixels() const { return std::uint64_t{height} * width; }
  [[nodiscard]] Bytes bytes() const { return pixels() * channels * bytes_per_value; }
};

/// Fails for a JPEG file with Huffman tables that stb_image would write beyond. Other files are left alone.
void check_jpeg(const InputFile& file);

/// Most memory that decoding the image of `file` takes: all buffers that live at once, counted where they are the most.
/// Looks at the file's header only.
[[nodiscard]] Bytes decoding_memory(const InputFile& file, const StoredImage& image);

}  // namespace hcclsim::models
