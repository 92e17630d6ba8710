#include "models/onnx/module/thin_file.hpp"

#include <array>
#include <cstdint>

#include "base/input_file.hpp"
#include "models/onnx/model_file.hpp"

namespace hcclsim::models::onnx {
namespace {

/// Of tensors whose numbers take more bytes no numbers are read, whatever their type.
constexpr std::uint64_t most_bytes = 8 * static_cast<std::uint64_t>(max_values);

/// Fields of onnx.proto: those on the way to numbers.
constexpr std::uint64_t graph_of_model = 7;
constexpr std::uint64_t initializer_of_graph = 5;

enum class Level : std::uint8_t { model, graph, tensor };

void append_varint(std::uint64_t value, std::string& to) {
  for (; value >= 0x80; value >>= 7U) to.push_back(static_cast<char>((value & 0x7FU) | 0x80U));
  to.push_back(static_cast<char>(value));
}

/// Copies messages field by field.
class ThinCopy {
 public:
  explicit ThinCopy(const InputFile& from) : from_(from), size_(from.size()) {}

  /// The message that ends at `end`.
  bool copy(Level level, std::uint64_t end, std::string& to) {
    while (at_ < end) {
      std::uint64_t tag = 0;
      if (!read_varint(tag) || !copy_field(level, tag, end, to)) return false;
    }
    return at_ == end;
  }

 private:
  bool copy_field(Level level, std::uint64_t tag, std::uint64_t end, std::string& to) {
    append_varint(tag, to);
    std::uint64_t value = 0;
    switch (tag & 7U) {
      case 0:
        if (!read_varint(value)) return false;
        append_varint(value, to);
        return true;
      case 1:
        return copy_bytes(8, to);
      case 5:
        return copy_bytes(4, to);
      case 2:
        break;
      default:
        return false;
    }
    if (!read_varint(value) || at_ > end || value > end - at_) return false;
    const std::uint64_t field = tag >> 3U;
    const bool inner =
        (level == Level::model && field == graph_of_model) || (level == Level::graph && field == initializer_of_graph);
    if (inner) {
      std::string message;
      if (!copy(level == Level::model ? Level::graph : Level::tensor, at_ + value, message)) return false;
      append_varint(message.size(), to);
      to += message;
      return true;
    }
    if (level == Level::tensor && value > most_bytes) {
      at_ += value;
      append_varint(0, to);
      return at_ <= size_;
    }
    append_varint(value, to);
    return copy_bytes(value, to);
  }

  bool read_varint(std::uint64_t& value) {
    value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (at_ >= size_) return false;
      const auto byte = std::to_integer<std::uint8_t>(next());
      value |= static_cast<std::uint64_t>(byte & 0x7FU) << shift;
      if ((byte & 0x80U) == 0) return true;
    }
    return false;
  }

  bool copy_bytes(std::uint64_t count, std::string& to) {
    if (count > size_ - at_) return false;
    const std::size_t before = to.size();
    to.resize(before + count);
    from_.read(at_, std::as_writable_bytes(std::span(to).subspan(before)));
    at_ += count;
    return true;
  }

  std::byte next() {
    if (at_ < window_begin_ || at_ - window_begin_ >= window_.size()) {
      window_begin_ = at_;
      window_ = from_.read_some(at_, buffer_);
      if (window_.empty()) from_.fail("the file has become shorter while it was read");
    }
    return window_[at_++ - window_begin_];
  }

  const InputFile& from_;
  std::uint64_t size_;
  std::uint64_t at_ = 0;
  std::array<std::byte, 4096> buffer_{};
  std::span<std::byte> window_{};  // of the buffer, with the bytes from window_begin_ on
  std::uint64_t window_begin_ = 0;
};

}  // namespace

std::optional<std::string> read_without_weights(const std::string& path) {
  const InputFile from(path, "onnx");
  std::string bytes;
  if (!ThinCopy(from).copy(Level::model, from.size(), bytes)) return std::nullopt;
  return bytes;
}

}  // namespace hcclsim::models::onnx
