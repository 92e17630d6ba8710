#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "models/data/dataset.hpp"

/// Images of any source in the form that a network takes. A network of images gets them in its own size (bilinear
/// between the centres of pixels; beyond the outermost centres the edge goes on; reducing does not average) and its own
/// channels: grey to colour by repetition, colour to grey as 0.299 R + 0.587 G + 0.114 B. A network of features gets
/// all values in the order channel, row, column, and must have as many features. Values from 0 to 1 become
/// (value − 0.5) / 0.25, from −2 to 2.
namespace hcclsim::models {

struct PictureSize {
  std::uint32_t channels = 1;  ///< 1 grey, 3 colour
  std::uint32_t height = 1;
  std::uint32_t width = 1;

  [[nodiscard]] std::uint64_t pixels() const { return std::uint64_t{height} * width; }
  [[nodiscard]] std::uint64_t elements() const { return pixels() * channels; }
};

/// The pixels of an image, one byte per value; 255 is full brightness. The bytes are somebody else's.
struct Picture {
  enum class Order : std::uint8_t {
    by_channel,  ///< channel, row, column
    by_pixel,    ///< row, column, channel
  };

  PictureSize size;
  std::span<const std::uint8_t> bytes;
  Order order = Order::by_channel;

  /// From 0 to 1.
  [[nodiscard]] float value(std::uint32_t channel, std::uint64_t pixel) const {
    const std::uint64_t at =
        order == Order::by_channel ? channel * size.pixels() + pixel : pixel * size.channels + channel;
    return static_cast<float>(bytes[at]) / 255;
  }
};

/// Throws Error(bad_input) of kind "data", beginning with `where`, if images of this size cannot be given to a network.
void require_fit(std::string_view where, const PictureSize& size, const SampleForm& form);

/// Puts a picture that fits in the network's form.
void fit(const Picture& picture, const SampleForm& form, std::span<float> out);

/// "3x32x32", or "3x32x32 resized to 3x64x64" if the network takes another size.
[[nodiscard]] std::string describe(const PictureSize& size, const SampleForm& form);

}  // namespace hcclsim::models
