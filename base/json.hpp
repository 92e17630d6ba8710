#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

/// JSON as a value: what is printed for programs, what is read from files, what processes send each other. Objects keep
/// the order in which their keys came. nlohmann-json reads and writes the text, behind json_text.cpp alone: a file that
/// includes its headers takes several times as long to compile.
namespace hcclsim {

class Json;

/// Containers: vectors, arrays, sets and maps, but not texts and not JSON itself.
template <typename Type>
concept JsonContainer =
    !std::convertible_to<const Type&, std::string_view> && !std::same_as<Type, Json> && requires(const Type& elements) {
  elements.begin() != elements.end();
};

class Json {
 public:
  struct Member;
  class Item;
  using List = std::vector<Json>;
  using Object = std::vector<Member>;

  // A value is written where JSON is meant, so these convert.
  // NOLINTBEGIN(google-explicit-constructor)
  Json() noexcept;
  Json(std::nullptr_t) noexcept : Json() {}
  template <std::same_as<bool> Bool>  // a pointer is no truth value
  Json(Bool value) noexcept : Json(Boolean{value}) {}
  template <std::integral Integer>
  requires(!std::same_as<Integer, bool>) Json(Integer value)
  noexcept : Json(widest(value)) {}
  Json(double value) noexcept;
  Json(const char* text);
  Json(std::string_view text);
  Json(std::string text);
  /// A map with texts as keys becomes an object; any other container becomes the list of its elements.
  template <JsonContainer Container>
  Json(const Container& elements) : Json(array()) {
    if constexpr (requires { typename Container::mapped_type; }) {
      *this = object();
      for (const auto& [key, value] : elements) append(std::string(key), value);
    } else {
      for (const auto& element : elements) push_back(element);
    }
  }
  /// A pair, such as a name and its figure, becomes a list of two.
  template <typename First, typename Second>
  Json(const std::pair<First, Second>& pair) : Json({pair.first, pair.second}) {}
  /// {{"a", 1}, {"b", 2}} is an object, as all its items are lists of a text and a value; {1, 2} is a list.
  Json(std::initializer_list<Item> items);
  // NOLINTEND(google-explicit-constructor)
  Json(const Json& other);
  Json(Json&& other) noexcept;
  Json& operator=(const Json& other);
  Json& operator=(Json&& other) noexcept;
  ~Json();

  /// An empty object; an empty list; a list, whatever its items are.
  [[nodiscard]] static Json object();
  [[nodiscard]] static Json object(std::initializer_list<Item> items) { return items; }
  [[nodiscard]] static Json array();
  [[nodiscard]] static Json array(std::initializer_list<Item> items);

  /// Parses text that hcclsim wrote; throws Error(internal) if it is not JSON. Text of users is read by
  /// parse_json_text().
  [[nodiscard]] static Json parse(std::string_view text);
  /// The same for any text; nothing if it is not JSON, or nested more than deepest_nesting deep.
  [[nodiscard]] static std::optional<Json> try_parse(std::string_view text);

  /// The text on one line without blanks, or on lines that are indented by `indent` blanks per level. Bytes that are
  /// not UTF-8 become U+FFFD; numbers that JSON cannot express become null.
  [[nodiscard]] std::string dump(std::optional<unsigned> indent = std::nullopt) const;

  [[nodiscard]] bool is_null() const;
  [[nodiscard]] bool is_boolean() const;
  [[nodiscard]] bool is_number() const;
  [[nodiscard]] bool is_number_integer() const;   ///< without a fraction or exponent in its text
  [[nodiscard]] bool is_number_unsigned() const;  ///< … and not negative
  [[nodiscard]] bool is_number_float() const;
  [[nodiscard]] bool is_string() const;
  [[nodiscard]] bool is_array() const;
  [[nodiscard]] bool is_object() const;

  /// The value as a bool, a number, a string, or a vector of these; throws Error(internal) if it is of another kind.
  template <typename Type>
  [[nodiscard]] Type get() const {
    if constexpr (std::same_as<Type, bool>) {
      return boolean();
    } else if constexpr (std::floating_point<Type>) {
      return number();
    } else if constexpr (std::signed_integral<Type>) {
      return static_cast<Type>(signed_integer());
    } else if constexpr (std::unsigned_integral<Type>) {
      return static_cast<Type>(unsigned_integer());
    } else if constexpr (std::same_as<Type, std::string>) {
      return text();
    } else {
      Type elements;
      for (const Json& element : *this) elements.push_back(element.get<typename Type::value_type>());
      return elements;
    }
  }
  /// The text of a string, without a copy.
  [[nodiscard]] const std::string& text() const;

  /// Number of values of a list or object; 0 for null, 1 for all other values.
  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] bool empty() const { return size() == 0; }

  /// The elements of a list; null has none.
  [[nodiscard]] const Json* begin() const;
  [[nodiscard]] const Json* end() const { return begin() + (is_array() ? size() : 0); }
  [[nodiscard]] const Json& front() const { return at(std::size_t{0}); }
  [[nodiscard]] const Json& back() const { return at(size() - 1); }
  [[nodiscard]] Json& back() { return const_cast<Json&>(std::as_const(*this).back()); }  // NOLINT: of this one
  [[nodiscard]] const Json& at(std::size_t index) const;
  [[nodiscard]] const Json& operator[](std::size_t index) const { return at(index); }
  [[nodiscard]] Json& operator[](std::size_t index) { return const_cast<Json&>(at(index)); }  // NOLINT: of this one
  /// Null becomes a list.
  void push_back(Json value);

  /// The members of an object; null has none.
  [[nodiscard]] const Object& items() const;
  [[nodiscard]] const Json* find(std::string_view key) const;  ///< nullptr without it, or if this is no object
  [[nodiscard]] bool contains(std::string_view key) const { return find(key) != nullptr; }
  [[nodiscard]] const Json& at(std::string_view key) const;
  [[nodiscard]] const Json& operator[](std::string_view key) const { return at(key); }
  /// Adds a member at the end; its key must not be in the object.
  Json& append(std::string key, Json value);
  /// Adds the key if it is not there; null becomes an object.
  [[nodiscard]] Json& operator[](std::string_view key);
  template <std::same_as<char> Char>  // "key" is no index
  [[nodiscard]] const Json& operator[](const Char* key) const {
    return at(std::string_view(key));
  }
  template <std::same_as<char> Char>
  [[nodiscard]] Json& operator[](const Char* key) {
    return (*this)[std::string_view(key)];
  }
  /// The value of a key, or `otherwise` if there is no such key.
  [[nodiscard]] Json value(std::string_view key, const Json& otherwise) const;
  /// Takes over the members of another object, in place of members with the same key.
  void update(const Json& other);
  /// Orders the members of this object, and of all that it holds, by key.
  void sort_keys();

  /// Numbers are equal by their values; objects with their members in the same order.
  friend bool operator==(const Json& a, const Json& b);

 private:
  using Value = std::variant<std::nullptr_t, bool, std::int64_t, std::uint64_t, double, std::string, List, Object>;
  struct Boolean {
    bool value;
  };
  struct Signed {
    std::int64_t value;
  };
  struct Unsigned {
    std::uint64_t value;
  };
  explicit Json(Boolean value) noexcept;
  explicit Json(Signed value) noexcept;
  explicit Json(Unsigned value) noexcept;
  static Signed widest(std::signed_integral auto value) { return {value}; }
  static Unsigned widest(std::unsigned_integral auto value) { return {value}; }

  [[nodiscard]] bool boolean() const;
  [[nodiscard]] double number() const;
  [[nodiscard]] std::int64_t signed_integer() const;
  [[nodiscard]] std::uint64_t unsigned_integer() const;
  [[nodiscard]] List& list();
  [[nodiscard]] const List& list() const;

  Value value_;
};

/// Types that convert to JSON.
template <typename Type>
concept JsonSource =
    !std::same_as<Type, Json> && !std::same_as<Type, Json::Item> && std::convertible_to<const Type&, Json>;

struct Json::Member {
  std::string key;
  Json value;

  friend bool operator==(const Member& a, const Member& b) = default;
};

/// An element of a braced list: a value, or another braced list.
class Json::Item {
 public:
  // NOLINTBEGIN(google-explicit-constructor)
  Item(std::initializer_list<Item> items) : value_(items) {}
  Item(Json value) : value_(std::move(value)) {}
  template <JsonSource Type>
  Item(const Type& value) : value_(value) {}
  // NOLINTEND(google-explicit-constructor)

 private:
  friend class Json;
  mutable Json value_;  ///< taken by the one list that it is written for
};

/// A string in the form of JSON, with quotes and in ASCII.
[[nodiscard]] std::string ascii_json(std::string_view text);

/// Parses JSON that a user gives, without comments. Throws Error(bad_input, kind) for text that is not JSON, for
/// objects and lists nested more than deepest_nesting deep and for a key that an object has twice (all with line and
/// column), and for numbers beyond the range of a double. With `repeated`, which receives the path of each key that is
/// there twice, such as servers[2].id, the last value counts.
[[nodiscard]] Json parse_json_text(std::string_view text, const std::string& file, std::string_view kind,
                                   std::vector<std::string>* repeated = nullptr);

}  // namespace hcclsim
