#include "models/data/netpbm.hpp"

#include <array>

namespace hcclsim::models {

namespace {

constexpr std::uint32_t max_picture_side = 65536;
constexpr std::uint32_t max_value = 65535;
constexpr int end_of_file = -1;

bool is_blank(int c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool is_digit(int c) { return c >= '0' && c <= '9'; }

/// Reads the text part of a file character by character.
class Scanner {
 public:
  Scanner(const InputFile& file, std::uint64_t offset) : file_(file), offset_(offset) {}

  [[nodiscard]] std::uint64_t offset() const { return offset_; }

  /// The next character, or end_of_file.
  int take() {
    const int c = look();
    if (c != end_of_file) ++offset_;
    return c;
  }

  /// A decimal number behind blanks and comments, at most `largest`.
  std::uint32_t take_number(std::string_view what, std::uint32_t largest) {
    skip_blanks();
    const std::uint64_t begin = offset_;
    if (look() == end_of_file) file_.fail("ends at byte {}, before {}", begin, what);
    std::uint64_t number = 0;
    while (is_digit(look()) && number <= largest) number = number * 10 + static_cast<std::uint64_t>(take() - '0');
    const bool whole = look() == end_of_file || look() == '#' || is_blank(look());
    if (offset_ == begin || (!whole && number <= largest)) file_.fail("byte {}: {} is not a number", begin, what);
    if (number > largest) file_.fail("byte {}: {} is larger than {}", begin, what, largest);
    return static_cast<std::uint32_t>(number);
  }

 private:
  int look() {
    if (offset_ < block_begin_ || offset_ >= block_begin_ + block_.size()) {
      block_begin_ = offset_;
      block_ = file_.read_some(offset_, buffer_);
      if (block_.empty()) return end_of_file;
    }
    return std::to_integer<int>(block_[offset_ - block_begin_]);
  }

  void skip_blanks() {
    for (int c = look(); is_blank(c) || c == '#'; c = look()) {
      if (take() != '#') continue;
      while (look() != '\n' && look() != end_of_file) take();
    }
  }

  const InputFile& file_;
  std::uint64_t offset_;
  std::array<std::byte, 4096> buffer_{};
  std::span<std::byte> block_;
  std::uint64_t block_begin_ = 0;
};

void read_binary(const InputFile& file, const NetpbmHeader& header, std::span<std::uint32_t> values) {
  const std::size_t width = header.largest > 255 ? 2 : 1;
  std::vector<std::byte> bytes(values.size() * width);
  file.read(header.data_offset, bytes);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::byte* value = bytes.data() + i * width;
    values[i] = std::to_integer<std::uint32_t>(value[0]);
    if (width == 2) values[i] = values[i] << 8U | std::to_integer<std::uint32_t>(value[1]);
    if (values[i] > header.largest) {
      file.fail("byte {}: the value {} is larger than the largest, {}", header.data_offset + i * width, values[i],
                header.largest);
    }
  }
}

}  // namespace

NetpbmHeader read_netpbm_header(const InputFile& file) {
  Scanner scanner(file, 0);
  const bool netpbm = scanner.take() == 'P';
  const int form = scanner.take();
  if (!netpbm || (form != '2' && form != '3' && form != '5' && form != '6')) {
    file.fail("is not an image in PPM or PGM format: it does not begin with P2, P3, P5 or P6");
  }
  NetpbmHeader header;
  header.plain = form == '2' || form == '3';
  header.size.channels = form == '3' || form == '6' ? 3 : 1;
  header.size.width = scanner.take_number("the width", max_picture_side);
  header.size.height = scanner.take_number("the height", max_picture_side);
  header.largest = scanner.take_number("the largest value", max_value);
  if (header.size.pixels() == 0) file.fail("the image has {}x{} pixels", header.size.width, header.size.height);
  if (header.largest == 0) file.fail("the largest value of the image is 0; accepted: 1 to 65535");
  if (!is_blank(scanner.take())) file.fail("byte {}: no pixels behind the header", scanner.offset());
  header.data_offset = scanner.offset();

  // A value of a plain file has a digit, and a blank before the next one.
  const std::uint64_t elements = header.size.elements();
  const std::uint64_t needed = header.plain ? 2 * elements - 1 : elements * (header.largest > 255 ? 2 : 1);
  if (file.size() - header.data_offset < needed) {
    file.fail("is cut short: {} bytes of pixels for an image of {}x{}, which needs {}{}",
              file.size() - header.data_offset, header.size.width, header.size.height, header.plain ? "at least " : "",
              needed);
  }
  return header;
}

Picture read_netpbm(const InputFile& file) {
  const NetpbmHeader header = read_netpbm_header(file);
  const std::size_t channels = header.size.channels;
  const std::uint64_t pixels = header.size.pixels();
  std::vector<std::uint32_t> values(header.size.elements());
  if (header.plain) {
    Scanner scanner(file, header.data_offset);
    for (std::uint32_t& value : values) value = scanner.take_number("a pixel's value", header.largest);
  } else {
    read_binary(file, header, values);
  }
  Picture picture{header.size, std::vector<float>(values.size())};
  const auto largest = static_cast<float>(header.largest);
  for (std::size_t i = 0; i < values.size(); ++i) {
    picture.values[i % channels * pixels + i / channels] = static_cast<float>(values[i]) / largest;
  }
  return picture;
}

}  // namespace hcclsim::models
