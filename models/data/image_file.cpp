#include "models/data/image_file.hpp"

#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_ONLY_JPEG
#define STBI_ONLY_PNG
#define STBI_ONLY_PNM
#define STBI_NO_STDIO
#define STBI_MAX_DIMENSIONS 65536
#include <stb/stb_image.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "base/text.hpp"
#include "models/data/image_header.hpp"

namespace hcclsim::models {
namespace {

constexpr std::uint64_t most_pixel_bytes = (std::uint64_t{1} << 31U) - 1;

/// A file as stb_image reads it.
class Source {
 public:
  explicit Source(const InputFile& file) : file_(file) {}

  [[nodiscard]] static stbi_io_callbacks callbacks() { return {read, skip, at_end}; }
  /// Whether more was asked for where nothing was left.
  [[nodiscard]] bool overrun() const { return overrun_; }

 private:
  static int read(void* user, char* to, int bytes) {
    auto& source = *static_cast<Source*>(user);
    const auto got =
        source.file_.read_some(source.offset_, std::as_writable_bytes(std::span(to, static_cast<std::size_t>(bytes))));
    source.overrun_ = source.overrun_ || got.empty();
    source.offset_ += got.size();
    return static_cast<int>(got.size());
  }
  static void skip(void* user, int bytes) {
    auto& source = *static_cast<Source*>(user);
    // A negative number takes back what was read ahead.
    source.offset_ = static_cast<std::uint64_t>(static_cast<std::int64_t>(source.offset_) + bytes);
  }
  static int at_end(void* user) {
    const auto& source = *static_cast<Source*>(user);
    return source.offset_ >= source.file_.size() ? 1 : 0;
  }

  const InputFile& file_;
  std::uint64_t offset_ = 0;
  bool overrun_ = false;
};

/// The first bytes of a file, as a text.
std::string_view begin_of(const InputFile& file, std::span<char> buffer) {
  const auto got = file.read_some(0, std::as_writable_bytes(buffer));
  return {buffer.data(), got.size()};
}

bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

void require_accepted(const InputFile& file, const StoredImage& image) {
  if (image.width < 1 || image.height < 1 || image.width > STBI_MAX_DIMENSIONS || image.height > STBI_MAX_DIMENSIONS) {
    file.fail("has {}x{} pixels; accepted: 1 to {} per side", image.width, image.height, STBI_MAX_DIMENSIONS);
  }
  if (image.bytes() > most_pixel_bytes) {
    file.fail("has {}x{} pixels, which are {} bytes; accepted: up to {}", image.width, image.height, image.bytes(),
              most_pixel_bytes);
  }
}

/// The first four words of a PPM or PGM file: its kind, width, height and largest value; and where the last one ends.
struct NetpbmHeader {
  std::array<std::string_view, 4> words;
  std::size_t end = 0;
};

NetpbmHeader netpbm_header(const InputFile& file, std::string_view begin) {
  NetpbmHeader header;
  std::size_t at = 0;
  for (std::string_view& word : header.words) {
    while (at < begin.size() && (is_blank(begin[at]) || begin[at] == '#')) {
      if (begin[at] != '#') {
        ++at;
      } else {
        at = std::min(begin.find_first_of("\n\r", at), begin.size());
      }
    }
    const std::size_t first = at;
    while (at < begin.size() && !is_blank(begin[at])) ++at;
    word = begin.substr(first, at - first);
  }
  if (at == begin.size()) file.fail("has no pixels behind its header, or a header of more than {} bytes", begin.size());
  if (header.words[0].size() != 2) file.fail("begins with '{}' instead of P5 or P6", printable(header.words[0]));
  header.end = at;
  return header;
}

/// stb_image takes numbers and values of any range as they are, and pixels that a file does not have as they come. So
/// these are looked at before.
StoredImage netpbm_image(const InputFile& file, std::string_view begin) {
  const NetpbmHeader header = netpbm_header(file, begin);
  const std::optional<std::uint32_t> width = parse_number<std::uint32_t>(header.words[1]);
  const std::optional<std::uint32_t> height = parse_number<std::uint32_t>(header.words[2]);
  if (!width.has_value() || !height.has_value()) {
    file.fail("has '{} {}' in place of its width and height", printable(header.words[1]), printable(header.words[2]));
  }
  StoredImage image{.height = *height, .width = *width, .channels = begin.starts_with("P6") ? 3U : 1U};
  image.decoding = image.bytes();
  require_accepted(file, image);
  if (header.words[3] != "255") {
    file.fail("has {} as its largest value; accepted of PPM and PGM: 255", printable(header.words[3]));
  }
  const std::uint64_t there = file.size() - header.end - 1;
  if (there < image.bytes()) {
    file.fail("is cut short: {} bytes of pixels for an image of {}x{}, which needs {}", there, *width, *height,
              image.bytes());
  }
  return image;
}

/// stb_image is not asked what a file is: where it does not find one form to the end, it looks for others in its midst.
StoredImage image_of(const InputFile& file) {
  constexpr std::size_t most_header_bytes = 16384;
  std::vector<char> buffer(most_header_bytes);
  const std::string_view begin = begin_of(file, buffer);
  if (begin.starts_with("P2") || begin.starts_with("P3")) {
    file.fail("is a PPM or PGM image as text ({}); accepted are binary ones (P5, P6), PNG and JPEG",
              begin.substr(0, 2));
  }
  if (begin.starts_with("P5") || begin.starts_with("P6")) return netpbm_image(file, begin);
  const std::optional<StoredImage> image = stored_image(file);
  if (!image.has_value()) {
    file.fail(
        "is no image that can be read; accepted: PNG, JPEG, binary PPM and PGM (P5, P6), up to {} pixels per side",
        STBI_MAX_DIMENSIONS);
  }
  require_accepted(file, *image);
  return *image;
}

}  // namespace

ImageHeader read_image_header(const InputFile& file) {
  const StoredImage image = image_of(file);
  return {.size = {.channels = image.channels <= 2 ? 1U : 3U, .height = image.height, .width = image.width},
          .decoding = image.decoding};
}

DecodedImage::DecodedImage(const InputFile& file)
    : size_(read_image_header(file).size), pixels_(nullptr, stbi_image_free) {
  check_jpeg(file);
  Source source(file);
  const stbi_io_callbacks callbacks = Source::callbacks();
  int width = 0;
  int height = 0;
  int channels = 0;
  pixels_.reset(
      stbi_load_from_callbacks(&callbacks, &source, &width, &height, &channels, static_cast<int>(size_.channels)));
  if (source.overrun()) file.fail("is cut short: the image goes on behind its last byte");
  if (pixels_ == nullptr) file.fail("is a damaged image: {}", stbi_failure_reason());
  if (static_cast<std::uint32_t>(width) != size_.width || static_cast<std::uint32_t>(height) != size_.height) {
    file.fail("is a damaged image: its header says {}x{} pixels, decoded were {}x{}", size_.width, size_.height, width,
              height);
  }
}

Picture DecodedImage::picture() const { return {size_, {pixels_.get(), size_.elements()}, Picture::Order::by_pixel}; }

}  // namespace hcclsim::models
