#pragma once

#include <cstdint>
#include <optional>

#include "base/input_file.hpp"
#include "base/units.hpp"

/// Headers of PNG and JPEG images, read before stb_image 2.27 decodes them: for their size, for the memory that
/// decoding takes, and for what it does not check itself.
namespace hcclsim::models {

/// An image as its file holds it.
struct StoredImage {
  std::uint32_t height = 1;
  std::uint32_t width = 1;
  std::uint32_t channels = 1;  ///< with the alpha channel
  std::uint32_t bytes_per_value = 1;
  Bytes decoding = 0;  ///< most memory that decoding takes: all buffers of stb_image that live at once

  [[nodiscard]] std::uint64_t pixels() const { return std::uint64_t{height} * width; }
  [[nodiscard]] Bytes bytes() const { return pixels() * channels * bytes_per_value; }
};

/// What the header of a PNG or JPEG file says; nothing for other files. Fails for damaged headers.
[[nodiscard]] std::optional<StoredImage> stored_image(const InputFile& file);

/// Fails for a JPEG file with Huffman tables that stb_image would write beyond. Other files are left alone.
void check_jpeg(const InputFile& file);

}  // namespace hcclsim::models
