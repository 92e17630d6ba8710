#include "hccl/schedule/file/expressions.hpp"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <charconv>
#include <limits>
#include <optional>

#include "base/error.hpp"

namespace hcclsim::hccl {
namespace {

/// Largest magnitude of a coefficient: sums of three of them times a position, round or queue stay far from overflow.
constexpr std::int32_t largest_coefficient = std::int32_t{1} << 30;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return c >= 'a' && c <= 'z'; }

/// Reads a closed form from left to right.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  [[nodiscard]] bool at_end() {
    skip_blanks();
    return next_ == text_.size();
  }

  /// Takes the symbol if it is next.
  bool take(char symbol) {
    if (at_end() || text_[next_] != symbol) return false;
    ++next_;
    return true;
  }

  /// Takes the word if it is next, as a whole.
  bool take(std::string_view word) {
    if (peek_word() != word) return false;
    next_ += word.size();
    return true;
  }

  std::string_view peek_word() {
    skip_blanks();
    std::size_t end = next_;
    while (end < text_.size() && is_letter(text_[end])) ++end;
    return text_.substr(next_, end - next_);
  }

  template <typename Number>
  std::optional<Number> take_number(Number largest = std::numeric_limits<Number>::max()) {
    skip_blanks();
    if (next_ == text_.size() || !is_digit(text_[next_])) return std::nullopt;
    Number number{};
    const auto [end, error] = std::from_chars(text_.data() + next_, text_.data() + text_.size(), number);
    if (error != std::errc() || number > largest) fail(fmt::format("a number up to {}", largest));
    next_ = static_cast<std::size_t>(end - text_.data());
    return number;
  }

  template <typename Number>
  Number number(std::string_view what) {
    const std::optional<Number> number = take_number<Number>();
    if (!number.has_value()) fail(what);
    return *number;
  }

  Linear linear() {
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

  void require_end(std::string_view what) {
    if (!at_end()) fail(what);
  }

  [[noreturn]] void fail(std::string_view expected) {
    skip_blanks();
    const std::string found =
        next_ == text_.size() ? "it ends" : fmt::format("'{}' stands", text_.substr(next_, text_.size()));
    bad_input("schedule", "'{}': {} at character {}, where {} should be", text_, found, next_ + 1, expected);
  }

 private:
  void skip_blanks() {
    while (next_ < text_.size() && text_[next_] == ' ') ++next_;
  }

  /// 1 for p, 2 for r, 3 for q, 0 for anything else.
  std::size_t take_variable() {
    if (take(std::string_view("p"))) return 1;
    if (take(std::string_view("r"))) return 2;
    return take(std::string_view("q")) ? 3 : 0;
  }

  std::string_view text_;
  std::size_t next_ = 0;
};

void add_term(std::string& text, std::int64_t factor, std::string_view variable) {
  if (factor == 0) return;
  if (factor < 0) {
    text += '-';
  } else if (!text.empty()) {
    text += '+';
  }
  const std::int64_t size = std::abs(factor);
  if (size != 1 || variable.empty()) text += std::to_string(size);
  text += variable;
}

/// A sum that begins with a positive term if it has one.
std::string sum_text(std::int64_t base, std::int64_t position, std::int64_t round, std::int64_t queue) {
  std::string text;
  const bool base_first = base > 0 && (position < 0 || (position == 0 && (round < 0 || (round == 0 && queue < 0))));
  if (base_first) add_term(text, base, "");
  add_term(text, position, "p");
  add_term(text, round, "r");
  add_term(text, queue, "q");
  if (!base_first) add_term(text, base, "");
  return text.empty() ? "0" : text;
}

std::string text_of(const Cut& cut, std::uint16_t strand_group) {
  static constexpr std::array<std::string_view, 3> kinds{"block ", "", "half "};
  std::string text =
      fmt::format("[{}{} of {}", kinds[static_cast<std::size_t>(cut.kind)], text_of(cut.index), cut.parts);
  if (cut.count != 1) text += fmt::format(" count {}", cut.count);
  if (cut.step != 1) text += fmt::format(" step {}", cut.step);
  if (cut.neighbours != 1) text += fmt::format(" by {}", cut.neighbours);
  if (cut.ordered) text += " ordered";
  if (cut.peer) text += " peer";
  if (cut.group != strand_group) text += fmt::format(" group {}", cut.group);
  return text + ']';
}

Cut parse_cut(Reader& reader, std::uint16_t strand_group) {
  Cut cut;
  cut.group = strand_group;
  if (reader.take(std::string_view("block"))) cut.kind = Cut::Kind::block;
  if (reader.take(std::string_view("half"))) cut.kind = Cut::Kind::halving;
  const bool halving = cut.kind == Cut::Kind::halving;
  cut.index = reader.linear();
  if (!reader.take(std::string_view("of"))) reader.fail("'of' and a number of parts");
  cut.parts = reader.number<std::uint32_t>("a number of parts");
  while (!reader.take(']')) {
    if (!halving && reader.take(std::string_view("count"))) {
      cut.count = reader.number<std::uint32_t>("a number of parts");
    } else if (!halving && reader.take(std::string_view("step"))) {
      cut.step = reader.number<std::uint32_t>("a distance of parts");
    } else if (!halving && reader.take(std::string_view("ordered"))) {
      cut.ordered = true;
    } else if (cut.kind == Cut::Kind::slice && reader.take(std::string_view("by"))) {
      cut.neighbours = reader.number<std::uint32_t>("a number of slices");
    } else if (halving && reader.take(std::string_view("peer"))) {
      cut.peer = true;
    } else if (reader.take(std::string_view("group"))) {
      cut.group = reader.number<std::uint16_t>("the number of a group");
    } else {
      reader.fail(halving                        ? "']', peer or group"
                  : cut.kind == Cut::Kind::block ? "']', count, step, ordered or group"
                                                 : "']', count, step, by, ordered or group");
    }
  }
  return cut;
}

}  // namespace

std::string text_of(const Linear& number) { return sum_text(number.base, number.position, number.round, number.queue); }

Linear parse_linear(std::string_view text) {
  Reader reader(text);
  const Linear number = reader.linear();
  reader.require_end("'+', '-' or the end");
  return number;
}

std::string text_of(const Peer& peer) {
  if (peer.kind == Peer::Kind::flip) return "flip " + text_of(peer.value);
  return sum_text(peer.value.base, std::int64_t{peer.value.position} + 1, peer.value.round, peer.value.queue);
}

Peer parse_peer(std::string_view text, std::uint16_t group) {
  Reader reader(text);
  const bool flips = reader.take(std::string_view("flip"));
  Peer peer{flips ? Peer::Kind::flip : Peer::Kind::offset, group, reader.linear()};
  if (!flips) --peer.value.position;
  reader.require_end("'+', '-' or the end");
  return peer;
}

std::string text_of(const Range& range, std::uint16_t strand_group) {
  std::string text(name_of(range.buffer));
  for (const Cut& cut : range.cuts) text += text_of(cut, strand_group);
  if (range.slot_stride != 0) text += fmt::format(" slot {} stride {}", text_of(range.slot), range.slot_stride);
  return text;
}

Range parse_range(std::string_view text, std::uint16_t strand_group) {
  Reader reader(text);
  Range range;
  bool named = false;
  for (const Buffer buffer : {Buffer::input, Buffer::output, Buffer::scratch, Buffer::ccl}) {
    if (named || !reader.take(name_of(buffer))) continue;
    range.buffer = buffer;
    named = true;
  }
  if (!named) reader.fail("input, output, scratch or ccl");
  while (reader.take('[')) range.cuts.push_back(parse_cut(reader, strand_group));
  if (reader.take(std::string_view("slot"))) {
    range.slot = reader.linear();
    if (!reader.take(std::string_view("stride"))) reader.fail("'stride' and its bytes");
    range.slot_stride = reader.number<Bytes>("the bytes of a slot");
    if (range.slot_stride == 0) bad_input("schedule", "'{}': the stride of slots must be at least 1 byte", text);
  }
  reader.require_end("'[', slot or the end");
  return range;
}

}  // namespace hcclsim::hccl
