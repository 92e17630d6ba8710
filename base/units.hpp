#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// The quantities every folder speaks of. They are aliases, so that arithmetic stays plain; a name that is not one of
/// these types carries its unit itself (`_us`, `_ghz`).
namespace hcclsim {

using Seconds = double;
using Bytes = std::uint64_t;
using BytesPerSecond = double;
using Flops = double;

/// Number of an NPU in the cluster, or of a process in a communicator: 0 … size − 1.
using Rank = std::uint32_t;

inline constexpr Seconds microsecond = 1e-6;
inline constexpr double giga = 1e9;

/// Element types of HCCL (HcclDataType) that buffers and kernels can have.
enum class DataType : std::uint8_t { int8, int16, int32, int64, uint8, uint16, uint32, uint64, fp16, bf16, fp32, fp64 };

/// Reduction operators of HCCL (HcclReduceOp).
enum class ReduceOp : std::uint8_t { sum, prod, max, min };

/// Bytes of one element.
[[nodiscard]] Bytes size_of(DataType type);
[[nodiscard]] std::string_view name_of(DataType type);
[[nodiscard]] constexpr bool is_float(DataType type) {
  return type == DataType::fp16 || type == DataType::bf16 || type == DataType::fp32 || type == DataType::fp64;
}
[[nodiscard]] std::string_view name_of(ReduceOp op);
/// Inverse of name_of; throws Error(bad_input) that lists the accepted names.
[[nodiscard]] DataType parse_data_type(std::string_view name);
[[nodiscard]] ReduceOp parse_reduce_op(std::string_view name);

/// A number and what follows it: "20GBps" is 20 and "GBps".
struct Quantity {
  double number = 0;
  std::string_view unit;  ///< part of the text that was parsed
};

/// Nothing if the text does not begin with a finite number.
[[nodiscard]] std::optional<Quantity> parse_quantity(std::string_view text);

/// Parses "25GBps", "200Gbps", "1e9Bps" (SimGrid's units, decimal and binary prefixes); throws Error(bad_input).
[[nodiscard]] BytesPerSecond parse_bandwidth(std::string_view text);
/// Parses "1.5us", "600ns", "2ms", "1s"; throws Error(bad_input).
[[nodiscard]] Seconds parse_duration(std::string_view text);
/// Parses "32GiB", "100MB", "512KiB", "123"; throws Error(bad_input).
[[nodiscard]] Bytes parse_bytes(std::string_view text);

}  // namespace hcclsim
