#include "hccl/schedule/file/expressions.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdlib>

#include "base/error.hpp"
#include "base/files/nesting.hpp"
#include "base/text.hpp"
#include "hccl/schedule/file/form_reader.hpp"

namespace hcclsim::hccl {
namespace {

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

Cut parse_cut(FormReader& reader, std::uint16_t strand_group) {
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
  FormReader reader(text);
  const Linear number = reader.linear();
  reader.require_end("'+', '-' or the end");
  return number;
}

std::string text_of(const Peer& peer) {
  if (peer.kind == Peer::Kind::flip) return "flip " + text_of(peer.value);
  return sum_text(peer.value.base, std::int64_t{peer.value.position} + 1, peer.value.round, peer.value.queue);
}

Peer parse_peer(std::string_view text, std::uint16_t group) {
  FormReader reader(text);
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
  FormReader reader(text);
  Range range;
  range.buffer = reader.buffer();
  while (reader.take('[')) {
    if (range.cuts.size() == deepest_nesting) {
      bad_input("schedule", "'{}': a range has more than {} cuts", printable(text), deepest_nesting);
    }
    range.cuts.push_back(parse_cut(reader, strand_group));
  }
  if (reader.take(std::string_view("slot"))) {
    range.slot = reader.linear();
    if (!reader.take(std::string_view("stride"))) reader.fail("'stride' and its bytes");
    range.slot_stride = reader.number<Bytes>("the bytes of a slot");
    reader.require_end("the end");
    if (range.slot_stride == 0) {
      throw ImpossibleForm(fmt::format("'{}': the stride of slots must be at least 1 byte", text));
    }
  }
  reader.require_end("'[', slot or the end");
  return range;
}

}  // namespace hcclsim::hccl
