#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.hpp"

/// Values as bytes, for another process of this program on this machine: numbers keep all their bits, texts all their
/// bytes. It takes numbers and enumerations, texts, pairs, tuples, arrays, optionals, vectors, maps, and structs of all
/// these, which need no word of their own: members of a plain struct are found by the compiler, so that none can be
/// forgotten. No struct may have a base, private members or more than 15; it fails to compile.
namespace hcclsim {
namespace codec {

/// Stands for any value when members are counted.
struct AnyValue {
  template <typename Type>
  operator Type() const {  // NOLINT(google-explicit-constructor): it is for this
    std::terminate();      // never called
  }
};

template <typename Struct, std::size_t... index>
consteval bool takes(std::index_sequence<index...> /*values*/) {
  return requires { Struct{(void(index), AnyValue{})...}; };
}

inline constexpr std::size_t most_members = 15;

/// A struct is initialised by as many values as it has members, and by no more.
template <typename Struct, std::size_t count = most_members + 1>
consteval std::size_t member_count() {
  if constexpr (count == 0 || takes<Struct>(std::make_index_sequence<count>())) {
    return count;
  } else {
    return member_count<Struct, count - 1>();
  }
}

/// All members, as a tuple of references.
template <typename Struct>
constexpr auto members_of(Struct& s) {
  constexpr std::size_t count = member_count<std::remove_const_t<Struct>>();
  // clang-format off
  if constexpr (count == 0) { return std::tie(); }
  else if constexpr (count == 1) { auto& [a] = s; return std::tie(a); }
  else if constexpr (count == 2) { auto& [a, b] = s; return std::tie(a, b); }
  else if constexpr (count == 3) { auto& [a, b, c] = s; return std::tie(a, b, c); }
  else if constexpr (count == 4) { auto& [a, b, c, d] = s; return std::tie(a, b, c, d); }
  else if constexpr (count == 5) { auto& [a, b, c, d, e] = s; return std::tie(a, b, c, d, e); }
  else if constexpr (count == 6) { auto& [a, b, c, d, e, f] = s; return std::tie(a, b, c, d, e, f); }
  else if constexpr (count == 7) { auto& [a, b, c, d, e, f, g] = s; return std::tie(a, b, c, d, e, f, g); }
  else if constexpr (count == 8) { auto& [a, b, c, d, e, f, g, h] = s; return std::tie(a, b, c, d, e, f, g, h); }
  else if constexpr (count == 9) { auto& [a, b, c, d, e, f, g, h, i] = s; return std::tie(a, b, c, d, e, f, g, h, i); }
  else if constexpr (count == 10) { auto& [a, b, c, d, e, f, g, h, i, j] = s; return std::tie(a, b, c, d, e, f, g, h, i, j); }
  else if constexpr (count == 11) {
    auto& [a, b, c, d, e, f, g, h, i, j, k] = s;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k);
  } else if constexpr (count == 12) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l] = s;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l);
  } else if constexpr (count == 13) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m] = s;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m);
  } else if constexpr (count == 14) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n] = s;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n);
  } else {
    static_assert(count == most_members, "a struct of more members");
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o] = s;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o);
  }
  // clang-format on
}

template <typename Type>
concept Number = std::is_arithmetic_v<Type> || std::is_enum_v<Type>;
template <typename Type>
concept TupleLike = requires {
  std::tuple_size<Type>::value;
};
/// Texts, vectors and maps.
template <typename Type>
concept Range = requires(Type range) {
  range.insert(range.end(), *range.begin());
  range.size();
};
template <typename Type>
concept Optional = requires(Type optional) {
  optional.has_value();
  optional.emplace();
};

template <typename Type>
void put(std::string& bytes, const Type& value) {
  if constexpr (Number<Type>) {
    std::array<char, sizeof(Type)> raw{};
    std::memcpy(raw.data(), &value, sizeof(Type));
    bytes.append(raw.data(), raw.size());
  } else if constexpr (std::is_same_v<Type, std::string>) {
    put(bytes, std::uint64_t{value.size()});
    bytes += value;
  } else if constexpr (Range<Type>) {
    put(bytes, std::uint64_t{value.size()});
    for (const auto& item : value) put(bytes, item);
  } else if constexpr (Optional<Type>) {
    put(bytes, value.has_value());
    if (value.has_value()) put(bytes, *value);
  } else if constexpr (TupleLike<Type>) {
    std::apply([&](const auto&... items) { (put(bytes, items), ...); }, value);
  } else {
    put(bytes, members_of(value));
  }
}

/// Takes bytes from the front of `bytes`.
inline std::string_view take_bytes(std::string_view& bytes, std::uint64_t count) {
  if (count > bytes.size()) internal_error("a result ends {} bytes too early", count - bytes.size());
  const std::string_view taken = bytes.substr(0, count);
  bytes.remove_prefix(count);
  return taken;
}

template <typename Type>
struct ItemOf {
  using Item = typename Type::value_type;
};
template <typename Type>
requires requires { typename Type::mapped_type; }
struct ItemOf<Type> {
  using Item = std::pair<typename Type::key_type, typename Type::mapped_type>;
};

template <typename Type>
void take(std::string_view& bytes, Type& value) {
  if constexpr (Number<Type>) {
    std::memcpy(&value, take_bytes(bytes, sizeof(Type)).data(), sizeof(Type));
  } else if constexpr (std::is_same_v<Type, std::string>) {
    std::uint64_t size = 0;
    take(bytes, size);
    value = take_bytes(bytes, size);
  } else if constexpr (Range<Type>) {
    std::uint64_t size = 0;
    take(bytes, size);
    for (; size > 0; --size) {
      typename ItemOf<Type>::Item item{};
      take(bytes, item);
      value.insert(value.end(), std::move(item));
    }
  } else if constexpr (Optional<Type>) {
    bool there = false;
    take(bytes, there);
    if (there) take(bytes, value.emplace());
  } else if constexpr (TupleLike<Type>) {
    std::apply([&](auto&... items) { (take(bytes, items), ...); }, value);
  } else {
    auto members = members_of(value);
    take(bytes, members);
  }
}

}  // namespace codec

/// The bytes of a value.
template <typename Type>
[[nodiscard]] std::string encoded(const Type& value) {
  std::string bytes;
  codec::put(bytes, value);
  return bytes;
}

/// The value of bytes that encoded() gave; throws Error(internal) if they are fewer or more.
template <typename Type>
[[nodiscard]] Type decoded(std::string_view bytes) {
  Type value{};
  codec::take(bytes, value);
  if (!bytes.empty()) internal_error("a result has {} bytes too many", bytes.size());
  return value;
}

}  // namespace hcclsim
