#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Chakra files byte by byte, as the wire format of Protocol Buffers has it: field numbers are written down here again,
/// so that a wrong one in the reader shows.
namespace hcclsim::test {

class Message {
 public:
  Message& varint(std::uint32_t field, std::uint64_t value) {
    add_varint(std::uint64_t{field} << 3U);
    add_varint(value);
    return *this;
  }
  Message& text(std::uint32_t field, std::string_view value) {
    add_varint((std::uint64_t{field} << 3U) | 2U);
    add_varint(value.size());
    bytes_ += value;
    return *this;
  }
  Message& fixed64(std::uint32_t field, double value) {
    add_varint((std::uint64_t{field} << 3U) | 1U);
    char raw[sizeof value];  // NOLINT(*-avoid-c-arrays)
    std::memcpy(raw, &value, sizeof value);
    bytes_.append(raw, sizeof value);
    return *this;
  }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }
  /// Behind its length.
  [[nodiscard]] std::string delimited() const {
    Message length;
    length.add_varint(bytes_.size());
    return length.bytes_ + bytes_;
  }

 private:
  void add_varint(std::uint64_t value) {
    for (; value >= 0x80U; value >>= 7U) bytes_ += static_cast<char>((value & 0x7fU) | 0x80U);
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};

/// Chakra's numbers of node types and collectives.
namespace chakra {
inline constexpr std::uint64_t metadata = 1;
inline constexpr std::uint64_t load = 2;
inline constexpr std::uint64_t compute = 4;
inline constexpr std::uint64_t send = 5;
inline constexpr std::uint64_t receive = 6;
inline constexpr std::uint64_t collective = 7;
inline constexpr std::int64_t all_reduce = 0;
inline constexpr std::int64_t all_gather = 2;
inline constexpr std::int64_t reduce_scatter = 7;
inline constexpr std::int64_t barrier = 9;
}  // namespace chakra

inline std::string integer(std::string_view name, std::int64_t value) {
  return Message().text(1, name).varint(9, static_cast<std::uint64_t>(value)).bytes();  // int64_val
}

struct ChakraNode {
  std::uint64_t id = 0;
  std::uint64_t type = chakra::compute;
  std::uint64_t micros = 0;
  std::vector<std::uint64_t> after{};  ///< data_deps
  std::vector<std::string> attributes{};
  std::string name{};
  std::vector<std::uint64_t> control{};  ///< ctrl_deps
  std::string values{};                  ///< of inputs

  [[nodiscard]] std::string delimited() const {
    Message node;
    if (id != 0) node.varint(1, id);
    if (!name.empty()) node.text(2, name);
    if (type != 0) node.varint(3, type);
    for (const std::uint64_t other : control) node.varint(4, other);  // not packed, which readers take, too
    Message packed;
    if (!after.empty()) {
      std::string ids;
      for (const std::uint64_t other : after) ids += Message().varint(0, other).bytes().substr(1);
      node.text(5, ids);
    }
    if (micros != 0) node.varint(7, micros);
    if (!values.empty()) node.text(8, Message().text(1, values).bytes());
    for (const std::string& attribute : attributes) node.text(10, attribute);
    return node.delimited();
  }
};

inline std::string chakra_file(const std::vector<ChakraNode>& nodes) {
  std::string bytes = Message().text(1, "0.0.4").delimited();
  for (const ChakraNode& node : nodes) bytes += node.delimited();
  return bytes;
}

inline ChakraNode compute_node(std::uint64_t id, std::uint64_t micros, std::vector<std::uint64_t> after = {}) {
  return {.id = id, .micros = micros, .after = std::move(after)};
}
inline ChakraNode collective_node(std::uint64_t id, std::int64_t type, std::int64_t bytes,
                                  std::vector<std::uint64_t> after = {}, std::string_view group = "") {
  ChakraNode node{.id = id, .type = chakra::collective, .after = std::move(after)};
  node.attributes = {integer("comm_type", type), integer("comm_size", bytes)};
  if (!group.empty()) node.attributes.push_back(Message().text(1, "pg_name").text(29, group).bytes());
  return node;
}
inline ChakraNode message_node(std::uint64_t id, std::uint64_t type, std::int64_t peer, std::int64_t bytes,
                               std::vector<std::uint64_t> after, std::int64_t tag) {
  ChakraNode node{.id = id, .type = type, .after = std::move(after)};
  node.attributes = {integer(type == chakra::send ? "comm_dst" : "comm_src", peer), integer("comm_size", bytes),
                     integer("comm_tag", tag)};
  return node;
}
inline ChakraNode send_node(std::uint64_t id, std::int64_t to, std::int64_t bytes,
                            std::vector<std::uint64_t> after = {}, std::int64_t tag = 0) {
  return message_node(id, chakra::send, to, bytes, std::move(after), tag);
}
inline ChakraNode receive_node(std::uint64_t id, std::int64_t from, std::int64_t bytes,
                               std::vector<std::uint64_t> after = {}, std::int64_t tag = 0) {
  return message_node(id, chakra::receive, from, bytes, std::move(after), tag);
}

}  // namespace hcclsim::test
