#pragma once

#include "base/input_file.hpp"
#include "models/data/picture.hpp"

/// Images of the Netpbm family: grey (PGM: P5, in plain text P2) and colour (PPM: P6, in plain text P3), with a largest
/// value of 1 to 65535 (two bytes per value from 256 on, the higher one first) and comments in the header. What stands
/// behind the image is ignored. Errors are Error(bad_input) of kind "data" with the file and the byte.
namespace hcclsim::models {

struct NetpbmHeader {
  PictureSize size;
  bool plain = false;
  std::uint32_t largest = 255;    ///< the value of full brightness
  std::uint64_t data_offset = 0;  ///< first byte of the pixels
};

/// Reads the header and checks that the file is long enough for its pixels.
[[nodiscard]] NetpbmHeader read_netpbm_header(const InputFile& file);

[[nodiscard]] Picture read_netpbm(const InputFile& file);

}  // namespace hcclsim::models
