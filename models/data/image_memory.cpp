#include "models/data/image_memory.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

namespace hcclsim::models {
namespace {

/// Bytes at a place of a file; 0 behind its end.
template <std::size_t count>
std::array<std::uint8_t, count> bytes_at(const InputFile& file, std::uint64_t offset) {
  std::array<std::uint8_t, count> bytes{};
  static_cast<void>(file.read_some(offset, std::as_writable_bytes(std::span(bytes))));
  return bytes;
}

std::uint32_t number(std::uint8_t high, std::uint8_t low) { return (std::uint32_t{high} << 8U) | low; }

bool is_png(const InputFile& file) {
  constexpr std::array<std::uint8_t, 8> signature{0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  return bytes_at<8>(file, 0) == signature;
}

/// The compressed bytes, in a block that doubles as it grows, until they are inflated into lines; then the lines and
/// the pixels, with an alpha channel if a colour may stand for it (tRNS); then the pixels and those of the form asked
/// for. Of an interlaced image also the pixels of one pass, half of all.
Bytes png_memory(const InputFile& file, const StoredImage& image) {
  constexpr std::uint64_t place_of_interlacing = 28;
  const bool interlaced = bytes_at<1>(file, place_of_interlacing).front() != 0;
  const Bytes lines = image.bytes() + image.height;
  const Bytes pixels = image.pixels() * (image.channels + image.channels % 2) * image.bytes_per_value;
  return lines + std::max(pixels + (interlaced ? pixels / 2 : 0), 3 * file.size());
}

/// The frame of a JPEG file.
struct JpegFrame {
  bool progressive = false;
  std::uint64_t samples = 0;  ///< of all components, in whole blocks
};

/// `at` is where the frame's content begins, behind its length.
JpegFrame read_frame(const InputFile& file, std::uint64_t at, bool progressive) {
  constexpr std::uint64_t block = 8;
  struct Sampling {
    std::uint64_t across = 1;
    std::uint64_t down = 1;
  };
  const auto head = bytes_at<6>(file, at);
  const std::uint64_t height = number(head[1], head[2]);
  const std::uint64_t width = number(head[3], head[4]);
  std::vector<Sampling> components;
  Sampling most;
  for (std::uint64_t i = 0; i < head[5]; ++i) {
    const std::uint32_t factors = bytes_at<2>(file, at + head.size() + 3 * i)[1];
    components.push_back({factors >> 4U, factors & 15U});
    most = {std::max(most.across, components.back().across), std::max(most.down, components.back().down)};
  }
  const auto blocks = [](std::uint64_t length, std::uint64_t factor) {
    return (length + block * factor - 1) / (block * factor);
  };
  JpegFrame frame{.progressive = progressive};
  for (const Sampling& component : components) {
    frame.samples +=
        blocks(width, most.across) * component.across * blocks(height, most.down) * component.down * block * block;
  }
  return frame;
}

/// The frame follows in a chain of segments, each with its length (ITU T.81, B.1.1); none where the chain is damaged.
std::optional<JpegFrame> find_frame(const InputFile& file) {
  constexpr std::uint8_t baseline = 0xc0;
  constexpr std::uint8_t progressive = 0xc2;
  constexpr std::uint64_t behind_begin_of_image = 2;
  for (std::uint64_t at = behind_begin_of_image; at < file.size();) {
    const auto [mark, kind, high, low] = bytes_at<4>(file, at);
    if (mark != 0xff) return std::nullopt;
    if (kind >= baseline && kind <= progressive) return read_frame(file, at + 4, kind == progressive);
    at += kind == 0xff ? 1 : 2 + std::max(number(high, low), 2U);
  }
  return std::nullopt;
}

/// The samples of each component, with the coefficients of two bytes of a progressive image, and the pixels.
Bytes jpeg_memory(const StoredImage& image, const JpegFrame& frame) {
  return frame.samples * (frame.progressive ? 3 : 1) + image.bytes();
}

}  // namespace

Bytes decoding_memory(const InputFile& file, const StoredImage& image) {
  if (is_png(file)) return png_memory(file, image);
  if (bytes_at<2>(file, 0) == std::array<std::uint8_t, 2>{0xff, 0xd8}) {
    const std::optional<JpegFrame> frame = find_frame(file);
    constexpr std::uint64_t samples_per_value = 3;  // progressive, without smaller components
    return frame.has_value() ? jpeg_memory(image, *frame) : (1 + samples_per_value) * image.bytes();
  }
  return image.bytes();
}

}  // namespace hcclsim::models
