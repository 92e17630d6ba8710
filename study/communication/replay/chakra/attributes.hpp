#pragma once

#include <study/communication/replay/chakra/chakra.pb.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// Attributes of Chakra nodes. Writers choose the integer type as they like, so any of them is read; a floating-point
/// number is no integer.
namespace hcclsim::study {

/// Beyond what Chakra's readers know: what a Plan has and the format has no field for. Others leave them out.
namespace chakra_attribute {
inline constexpr const char* own = "hcclsim.";                 ///< how they all begin
inline constexpr const char* duration = "hcclsim.duration_s";  ///< as a double; duration_micros is rounded
inline constexpr const char* stream = "hcclsim.stream";
inline constexpr const char* iteration = "hcclsim.iteration";
inline constexpr const char* data_type = "hcclsim.data_type";
inline constexpr const char* reduce_op = "hcclsim.reduce_op";
inline constexpr const char* root = "hcclsim.root";
inline constexpr const char* in_place = "hcclsim.in_place";
inline constexpr const char* collective = "hcclsim.collective";  ///< where Chakra has no number for it
inline constexpr const char* counts = "hcclsim.counts";
inline constexpr const char* ranks = "hcclsim.ranks";  ///< of GlobalMetadata: of the trace
inline constexpr const char* nodes = "hcclsim.nodes";  ///< of GlobalMetadata: of the file
}  // namespace chakra_attribute

// Nothing if the value is of another kind, or out of range.
[[nodiscard]] std::optional<std::int64_t> integer_of(const chakra_format::AttributeProto& attribute);
[[nodiscard]] std::optional<double> number_of(const chakra_format::AttributeProto& attribute);
[[nodiscard]] std::optional<bool> truth_of(const chakra_format::AttributeProto& attribute);
/// An integer is its decimal text.
[[nodiscard]] std::optional<std::string> text_of(const chakra_format::AttributeProto& attribute);
[[nodiscard]] std::optional<std::vector<std::uint64_t>> counts_of(const chakra_format::AttributeProto& attribute);

}  // namespace hcclsim::study
