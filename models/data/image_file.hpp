#pragma once

#include <cstdint>
#include <memory>

#include "base/input_file.hpp"
#include "base/units.hpp"
#include "models/data/picture.hpp"

/// Images in files: PNG, JPEG, and binary PPM and PGM, decoded by stb_image. An alpha channel is left out, 16 bits of a
/// value are reduced to 8. Limits: 65536 pixels per side, 2^31 − 1 bytes of pixels; PPM and PGM with values up to 255.
/// What is wrong with a file is Error(bad_input) of the file's kind.
namespace hcclsim::models {

struct ImageHeader {
  PictureSize size;
  Bytes decoding = 0;  ///< most memory that decode() takes
};

/// Size of an image, from its first bytes.
[[nodiscard]] ImageHeader read_image_header(const InputFile& file);

/// The pixels of an image.
class DecodedImage {
 public:
  /// Decodes the file; one that is cut short is refused.
  explicit DecodedImage(const InputFile& file);
  /// Good as long as this object.
  [[nodiscard]] Picture picture() const;

 private:
  PictureSize size_;
  std::unique_ptr<std::uint8_t, void (*)(void*)> pixels_;
};

}  // namespace hcclsim::models
