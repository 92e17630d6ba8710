#include "study/communication/replay/chakra/attributes.hpp"

#include <limits>

namespace hcclsim::study {
namespace {

using chakra_format::AttributeProto;

std::optional<std::int64_t> signed_of(std::uint64_t value) {
  if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

}  // namespace

std::optional<std::int64_t> integer_of(const AttributeProto& attribute) {
  switch (attribute.value_case()) {
    case AttributeProto::kInt32Val:
      return attribute.int32_val();
    case AttributeProto::kInt64Val:
      return attribute.int64_val();
    case AttributeProto::kUint32Val:
      return attribute.uint32_val();
    case AttributeProto::kUint64Val:
      return signed_of(attribute.uint64_val());
    case AttributeProto::kSint32Val:
      return attribute.sint32_val();
    case AttributeProto::kSint64Val:
      return attribute.sint64_val();
    case AttributeProto::kFixed32Val:
      return attribute.fixed32_val();
    case AttributeProto::kFixed64Val:
      return signed_of(attribute.fixed64_val());
    case AttributeProto::kSfixed32Val:
      return attribute.sfixed32_val();
    case AttributeProto::kSfixed64Val:
      return attribute.sfixed64_val();
    default:
      return std::nullopt;
  }
}

std::optional<double> number_of(const AttributeProto& attribute) {
  if (attribute.has_double_val()) return attribute.double_val();
  if (attribute.has_float_val()) return attribute.float_val();
  const std::optional<std::int64_t> integer = integer_of(attribute);
  if (!integer.has_value()) return std::nullopt;
  return static_cast<double>(*integer);
}

std::optional<bool> truth_of(const AttributeProto& attribute) {
  if (attribute.has_bool_val()) return attribute.bool_val();
  const std::optional<std::int64_t> integer = integer_of(attribute);
  if (!integer.has_value()) return std::nullopt;
  return *integer != 0;
}

std::optional<std::string> text_of(const AttributeProto& attribute) {
  if (attribute.has_string_val()) return attribute.string_val();
  const std::optional<std::int64_t> integer = integer_of(attribute);
  if (!integer.has_value()) return std::nullopt;
  return std::to_string(*integer);
}

std::optional<std::vector<std::uint64_t>> counts_of(const AttributeProto& attribute) {
  if (!attribute.has_uint64_list()) return std::nullopt;
  const auto& values = attribute.uint64_list().values();
  return std::vector<std::uint64_t>(values.begin(), values.end());
}

}  // namespace hcclsim::study
