#include "base/json.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace hcclsim {
namespace {

const Json::Object no_members;

/// Whether all items are lists of a text and a value.
bool are_members(const Json::List& items) {
  return std::all_of(items.begin(), items.end(),
                     [](const Json& item) { return item.is_array() && item.size() == 2 && item.front().is_string(); });
}

}  // namespace

Json::Json() noexcept : value_(nullptr) {}
Json::Json(Boolean value) noexcept : value_(value.value) {}
Json::Json(Signed value) noexcept : value_(value.value) {}
Json::Json(Unsigned value) noexcept : value_(value.value) {}
Json::Json(double value) noexcept : value_(value) {}
Json::Json(const char* text) : value_(std::string(text)) {}
Json::Json(std::string_view text) : value_(std::string(text)) {}
Json::Json(std::string text) : value_(std::move(text)) {}
Json::Json(const Json& other) = default;
Json::Json(Json&& other) noexcept = default;
Json& Json::operator=(const Json& other) = default;
Json& Json::operator=(Json&& other) noexcept = default;
Json::~Json() = default;

Json::Json(std::initializer_list<Item> items) : Json(array(items)) {
  List& elements = list();
  if (!are_members(elements)) return;
  Object members;
  members.reserve(elements.size());
  for (Json& element : elements) {
    List& pair = element.list();
    members.push_back({std::move(std::get<std::string>(pair[0].value_)), std::move(pair[1])});
  }
  value_ = std::move(members);
}

Json Json::object() {
  Json json;
  json.value_ = Object();
  return json;
}

Json Json::array() {
  Json json;
  json.value_ = List();
  return json;
}

Json Json::array(std::initializer_list<Item> items) {
  Json json = array();
  json.list().reserve(items.size());
  for (const Item& item : items) json.list().push_back(std::move(item.value_));
  return json;
}

bool Json::is_null() const { return std::holds_alternative<std::nullptr_t>(value_); }
bool Json::is_boolean() const { return std::holds_alternative<bool>(value_); }
bool Json::is_number() const { return is_number_integer() || is_number_float(); }
bool Json::is_number_integer() const { return std::holds_alternative<std::int64_t>(value_) || is_number_unsigned(); }
bool Json::is_number_unsigned() const { return std::holds_alternative<std::uint64_t>(value_); }
bool Json::is_number_float() const { return std::holds_alternative<double>(value_); }
bool Json::is_string() const { return std::holds_alternative<std::string>(value_); }
bool Json::is_array() const { return std::holds_alternative<List>(value_); }
bool Json::is_object() const { return std::holds_alternative<Object>(value_); }

bool Json::boolean() const {
  if (!is_boolean()) internal_error("JSON: {} is neither true nor false", dump());
  return std::get<bool>(value_);
}

double Json::number() const {
  if (const auto* value = std::get_if<double>(&value_)) return *value;
  return is_number_unsigned() ? static_cast<double>(unsigned_integer()) : static_cast<double>(signed_integer());
}

std::int64_t Json::signed_integer() const {
  if (const auto* value = std::get_if<std::int64_t>(&value_)) return *value;
  if (const auto* value = std::get_if<std::uint64_t>(&value_)) return static_cast<std::int64_t>(*value);
  if (const auto* value = std::get_if<double>(&value_)) return static_cast<std::int64_t>(*value);
  internal_error("JSON: {} is no number", dump());
}

std::uint64_t Json::unsigned_integer() const {
  if (const auto* value = std::get_if<double>(&value_)) return static_cast<std::uint64_t>(*value);
  return static_cast<std::uint64_t>(signed_integer());
}

const std::string& Json::text() const {
  if (!is_string()) internal_error("JSON: {} is no string", dump());
  return std::get<std::string>(value_);
}

const Json::List& Json::list() const {
  if (!is_array()) internal_error("JSON: {} is no list", dump());
  return std::get<List>(value_);
}

Json::List& Json::list() { return const_cast<List&>(std::as_const(*this).list()); }  // NOLINT: of this one

std::size_t Json::size() const {
  if (is_array()) return list().size();
  if (is_object()) return items().size();
  return is_null() ? 0 : 1;
}

const Json* Json::begin() const { return is_null() ? nullptr : list().data(); }

const Json& Json::at(std::size_t index) const {
  if (index >= list().size()) internal_error("JSON: a list of {} has no element {}", size(), index);
  return list()[index];
}

void Json::push_back(Json value) {
  if (is_null()) value_ = List();
  list().push_back(std::move(value));
}

const Json::Object& Json::items() const {
  if (is_null()) return no_members;
  if (!is_object()) internal_error("JSON: {} is no object", dump());
  return std::get<Object>(value_);
}

const Json* Json::find(std::string_view key) const {
  if (!is_object()) return nullptr;
  for (const Member& member : items()) {
    if (member.key == key) return &member.value;
  }
  return nullptr;
}

const Json& Json::at(std::string_view key) const {
  const Json* const value = find(key);
  if (value == nullptr) internal_error("JSON: {} has no key {}", dump(), key);
  return *value;
}

Json& Json::operator[](std::string_view key) {
  if (is_null()) value_ = Object();
  if (const Json* const value = find(key)) return const_cast<Json&>(*value);  // NOLINT: of this one
  return append(std::string(key), Json());
}

Json& Json::append(std::string key, Json value) {
  static_cast<void>(items());
  Object& members = std::get<Object>(value_);
  members.push_back({std::move(key), std::move(value)});
  return members.back().value;
}

Json Json::value(std::string_view key, const Json& otherwise) const {
  const Json* const value = find(key);
  return value == nullptr ? otherwise : *value;
}

void Json::update(const Json& other) {
  for (const auto& [key, value] : other.items()) (*this)[key] = value;
}

void Json::sort_keys() {
  if (is_array()) {
    for (Json& element : list()) element.sort_keys();
  } else if (is_object()) {
    Object& members = std::get<Object>(value_);
    for (Member& member : members) member.value.sort_keys();
    std::sort(members.begin(), members.end(), [](const Member& a, const Member& b) { return a.key < b.key; });
  }
}

bool operator==(const Json& a, const Json& b) {
  if (a.is_number() && b.is_number()) {
    if (a.is_number_float() || b.is_number_float()) return a.number() == b.number();
    const auto negative = [](const Json& json) { return !json.is_number_unsigned() && json.signed_integer() < 0; };
    return negative(a) == negative(b) && a.unsigned_integer() == b.unsigned_integer();
  }
  return a.value_ == b.value_;
}

}  // namespace hcclsim
