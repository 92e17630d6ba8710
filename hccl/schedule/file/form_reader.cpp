#include "hccl/schedule/file/form_reader.hpp"

#include <array>
#include <cstdlib>

#include "base/error.hpp"
#include "base/text.hpp"

namespace hcclsim::hccl {
namespace {

/// Largest magnitude of a coefficient: sums of three of them times a position, round or queue stay far from overflow.
constexpr std::int32_t largest_coefficient = std::int32_t{1} << 30;

}  // namespace

bool FormReader::at_end() {
  while (next_ < text_.size() && text_[next_] == ' ') ++next_;
  return next_ == text_.size();
}

bool FormReader::take(char symbol) {
  if (at_end() || text_[next_] != symbol) return false;
  ++next_;
  return true;
}

bool FormReader::take(std::string_view word) {
  if (peek_word() != word) return false;
  next_ += word.size();
  return true;
}

std::string_view FormReader::peek_word() {
  if (at_end()) return {};
  std::size_t end = next_;
  while (end < text_.size() && ((text_[end] >= 'a' && text_[end] <= 'z') || text_[end] == '_')) ++end;
  return text_.substr(next_, end - next_);
}

Linear FormReader::linear() {
  std::array<std::int64_t, 4> sum{};  // base, p, r, q
  bool negative = take('-');
  do {
    const std::optional<std::int32_t> factor = take_number<std::int32_t>(largest_coefficient);
    if (factor.has_value()) static_cast<void>(take('*'));
    const std::size_t variable = take_variable();
    if (!factor.has_value() && variable == 0) fail("a number, p, r or q");
    sum[variable] += (negative ? -1 : 1) * std::int64_t{factor.value_or(1)};
    if (std::abs(sum[variable]) > largest_coefficient)
      fail(fmt::format("a sum of numbers up to {}", largest_coefficient));
    negative = false;
  } while (take('+') || (negative = take('-')));
  const auto narrow = [](std::int64_t number) { return static_cast<std::int32_t>(number); };
  return {narrow(sum[0]), narrow(sum[1]), narrow(sum[2]), narrow(sum[3])};
}

Buffer FormReader::buffer() {
  for (const Buffer buffer : {Buffer::input, Buffer::output, Buffer::scratch, Buffer::ccl}) {
    if (take(name_of(buffer))) return buffer;
  }
  fail("input, output, scratch or ccl");
}

void FormReader::require_end(std::string_view what) {
  if (!at_end()) fail(what);
}

void FormReader::fail(std::string_view expected) {
  const std::string found = at_end() ? "it ends" : fmt::format("'{}' stands", printable(text_.substr(next_)));
  bad_input("schedule", "'{}': {} at character {}, where {} should be", printable(text_), found, next_ + 1, expected);
}

std::size_t FormReader::take_variable() {
  if (take(std::string_view("p"))) return 1;
  if (take(std::string_view("r"))) return 2;
  return take(std::string_view("q")) ? 3 : 0;
}

}  // namespace hcclsim::hccl
