#include "models/data/image_header.hpp"

#include <algorithm>
#include <array>
#include <numeric>
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

/// Where the first segment of a JPEG file is: behind the mark of its begin, before which bytes 0xff may stand. Nothing
/// for other files.
std::optional<std::uint64_t> begin_of_segments(const InputFile& file) {
  constexpr std::uint8_t start_of_image = 0xd8;
  constexpr std::size_t most_before = 64;
  const auto begin = bytes_at<most_before>(file, 0);
  const auto* const mark = std::find_if(begin.begin(), begin.end(), [](std::uint8_t byte) { return byte != 0xff; });
  if (mark == begin.begin()) return std::nullopt;
  if (mark == begin.end()) file.fail("is no image that can be read: it begins with {} bytes 0xff", most_before);
  if (*mark != start_of_image) return std::nullopt;
  return static_cast<std::uint64_t>(mark - begin.begin()) + 1;
}

/// The frame of a JPEG file.
struct JpegFrame {
  bool progressive = false;
  std::uint32_t height = 0;
  std::uint32_t width = 0;
  std::uint32_t components = 0;
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
  JpegFrame frame{.progressive = progressive,
                  .height = number(head[1], head[2]),
                  .width = number(head[3], head[4]),
                  .components = head[5]};
  std::vector<Sampling> components;
  Sampling most;
  for (std::uint64_t i = 0; i < frame.components; ++i) {
    const std::uint32_t factors = bytes_at<2>(file, at + head.size() + 3 * i)[1];
    components.push_back({factors >> 4U, factors & 15U});
    most = {std::max(most.across, components.back().across), std::max(most.down, components.back().down)};
  }
  const auto blocks = [](std::uint64_t length, std::uint64_t factor) {
    return (length + block * factor - 1) / (block * factor);
  };
  for (const Sampling& component : components) {
    frame.samples += blocks(frame.width, most.across) * component.across * blocks(frame.height, most.down) *
                     component.down * block * block;
  }
  return frame;
}

/// The segments of a JPEG file up to the first scan, as stb_image finds them: bytes between segments are passed over,
/// and marks may be repeated (ITU T.81, B.1.1).
class JpegSegments {
 public:
  JpegSegments(const InputFile& file, std::uint64_t begin) : file_(file), end_(begin) {}

  /// Goes to the next segment; false at the first scan or the end.
  bool next() {
    for (at_ = end_; at_ + 3 < file_.size(); ++at_) {
      const auto [mark, kind, high, low] = bytes_at<4>(file_, at_);
      if (mark != 0xff || kind == 0xff) continue;
      constexpr std::uint8_t start_of_scan = 0xda;
      kind_ = kind;
      end_ = at_ + 2 + std::max(number(high, low), 2U);
      return kind != start_of_scan;
    }
    return false;
  }

  [[nodiscard]] std::uint8_t kind() const { return kind_; }
  /// Behind the length.
  [[nodiscard]] std::uint64_t content() const { return at_ + 4; }
  [[nodiscard]] std::uint64_t end() const { return end_; }

 private:
  const InputFile& file_;
  std::uint64_t at_ = 0;
  std::uint64_t end_;
  std::uint8_t kind_ = 0;
};

std::optional<JpegFrame> find_frame(const InputFile& file, std::uint64_t begin) {
  constexpr std::uint8_t baseline = 0xc0;
  constexpr std::uint8_t progressive = 0xc2;
  for (JpegSegments segments(file, begin); segments.next();) {
    const std::uint8_t kind = segments.kind();
    if (kind >= baseline && kind <= progressive) return read_frame(file, segments.content(), kind == progressive);
  }
  return std::nullopt;
}

constexpr std::uint8_t huffman_tables = 0xc4;

/// stb_image 2.27 takes tables with more codes than there are symbols, and writes behind its own.
void check_huffman_tables(const InputFile& file, std::uint64_t at, std::uint64_t end) {
  constexpr std::size_t lengths = 16;
  constexpr std::uint32_t most_codes = 256;
  while (at < end) {
    const auto table = bytes_at<1 + lengths>(file, at);
    const std::uint32_t codes = std::accumulate(table.begin() + 1, table.end(), 0U);
    if (codes > most_codes) file.fail("is a damaged image: a Huffman table at byte {} has {} codes", at, codes);
    at += table.size() + codes;
  }
}

/// What looks like tables behind the begin of the first scan is none of its data, in which 0 follows on 0xff.
void check_later_tables(const InputFile& file, std::uint64_t from) {
  std::vector<std::uint8_t> piece(std::size_t{64} << 10U);
  for (std::uint64_t at = from; at < file.size(); at += piece.size() - 1) {
    const auto got = file.read_some(at, std::as_writable_bytes(std::span(piece))).size();
    for (std::size_t i = 0; i + 1 < got; ++i) {
      if (piece[i] != 0xff || piece[i + 1] != huffman_tables) continue;
      const std::uint64_t begin = at + i;
      const auto [high, low] = bytes_at<2>(file, begin + 2);
      check_huffman_tables(file, begin + 4, begin + 2 + number(high, low));
    }
  }
}

StoredImage jpeg_image(const InputFile& file, std::uint64_t begin) {
  const std::optional<JpegFrame> frame = find_frame(file, begin);
  if (!frame.has_value()) file.fail("is a damaged JPEG image, or cut short: no baseline or progressive frame is found");
  if (frame->components != 1 && frame->components != 3 && frame->components != 4) {
    file.fail("is a JPEG image of {} components; accepted: 1, 3 and 4", frame->components);
  }
  StoredImage image{.height = frame->height, .width = frame->width, .channels = frame->components >= 3 ? 3U : 1U};
  // The samples of each component, with the coefficients of two bytes of a progressive image, and the pixels.
  image.decoding = frame->samples * (frame->progressive ? 3 : 1) + image.bytes();
  return image;
}

/// The first chunk is the header (ISO 15948, 11.2.2).
StoredImage png_image(const InputFile& file) {
  constexpr std::uint64_t place = 16;
  const auto head = bytes_at<13>(file, place);
  if (bytes_at<4>(file, place - 4) != std::array<std::uint8_t, 4>{'I', 'H', 'D', 'R'} ||
      file.size() < place + head.size())
    file.fail("is a damaged PNG image, or cut short: it does not begin with a header");
  const auto side = [&](std::size_t at) {
    return number(head[at], head[at + 1]) << 16U | number(head[at + 2], head[at + 3]);
  };
  constexpr std::array<std::uint32_t, 7> channels_of_type{1, 0, 3, 4, 2, 0, 4};  // of a palette with alpha
  const std::uint8_t depth = head[8];
  const std::uint8_t type = head[9];
  const std::uint32_t channels = type < channels_of_type.size() ? channels_of_type.at(type) : 0;
  if (channels == 0) file.fail("is a damaged PNG image: there is no colour type {}", type);
  StoredImage image{
      .height = side(4), .width = side(0), .channels = channels, .bytes_per_value = depth == 16 ? 2U : 1U};
  // The compressed bytes, in a block that doubles as it grows, until they are inflated into lines; then the lines and
  // the pixels, with an alpha channel if a colour may stand for it (tRNS); then the pixels and those of the form asked
  // for. Of an interlaced image also the pixels of one pass, half of all.
  const bool interlaced = head[12] != 0;
  const Bytes lines = image.bytes() + image.height;
  const Bytes pixels = image.pixels() * (channels + channels % 2) * image.bytes_per_value;
  image.decoding = lines + std::max(pixels + (interlaced ? pixels / 2 : 0), 3 * file.size());
  return image;
}

}  // namespace

void check_jpeg(const InputFile& file) {
  const std::optional<std::uint64_t> begin = begin_of_segments(file);
  if (!begin.has_value()) return;
  JpegSegments segments(file, *begin);
  while (segments.next()) {
    if (segments.kind() == huffman_tables) check_huffman_tables(file, segments.content(), segments.end());
  }
  check_later_tables(file, segments.content());
}

std::optional<StoredImage> stored_image(const InputFile& file) {
  if (is_png(file)) return png_image(file);
  const std::optional<std::uint64_t> begin = begin_of_segments(file);
  if (begin.has_value()) return jpeg_image(file, *begin);
  return std::nullopt;
}

}  // namespace hcclsim::models
