#include "base/units.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <span>

#include "base/error.hpp"
#include "base/names.hpp"

namespace hcclsim {
namespace {

struct DataTypeRow {
  DataType type;
  std::string_view name;
  Bytes size;
};

constexpr std::array<DataTypeRow, 12> data_types{{
    {DataType::int8, "int8", 1},
    {DataType::int16, "int16", 2},
    {DataType::int32, "int32", 4},
    {DataType::int64, "int64", 8},
    {DataType::uint8, "uint8", 1},
    {DataType::uint16, "uint16", 2},
    {DataType::uint32, "uint32", 4},
    {DataType::uint64, "uint64", 8},
    {DataType::fp16, "fp16", 2},
    {DataType::bf16, "bf16", 2},
    {DataType::fp32, "fp32", 4},
    {DataType::fp64, "fp64", 8},
}};

constexpr std::array<std::string_view, 4> reduce_ops{"sum", "prod", "max", "min"};

struct Unit {
  std::string_view suffix;
  double factor;
};

/// "25GBps" as its number times the factor of its unit.
double parse_in_units(std::string_view what, std::string_view text, std::span<const Unit> units) {
  if (const std::optional<Quantity> quantity = parse_quantity(text); quantity.has_value()) {
    for (const Unit& unit : units) {
      if (unit.suffix != quantity->unit) continue;
      const double value = quantity->number * unit.factor;
      if (!std::isfinite(value)) bad_input("unit", "'{}' is too large for a {}", text, what);
      return value;
    }
  }
  const auto named = units.subspan(units.front().suffix.empty() ? 1 : 0);  // a number alone
  bad_input("unit", "'{}' is not a {}: a number followed by one of {}", text, what, names_in(named, &Unit::suffix));
}

constexpr std::array<Unit, 26> bandwidth_units{{
    {"Bps", 1},
    {"kBps", 1e3},
    {"MBps", 1e6},
    {"GBps", 1e9},
    {"TBps", 1e12},
    {"PBps", 1e15},
    {"EBps", 1e18},
    {"KiBps", 0x1p10},
    {"MiBps", 0x1p20},
    {"GiBps", 0x1p30},
    {"TiBps", 0x1p40},
    {"PiBps", 0x1p50},
    {"EiBps", 0x1p60},
    {"bps", 1.0 / 8},
    {"kbps", 1e3 / 8},
    {"Mbps", 1e6 / 8},
    {"Gbps", 1e9 / 8},
    {"Tbps", 1e12 / 8},
    {"Pbps", 1e15 / 8},
    {"Ebps", 1e18 / 8},
    {"Kibps", 0x1p10 / 8},
    {"Mibps", 0x1p20 / 8},
    {"Gibps", 0x1p30 / 8},
    {"Tibps", 0x1p40 / 8},
    {"Pibps", 0x1p50 / 8},
    {"Eibps", 0x1p60 / 8},
}};

constexpr std::array<Unit, 8> duration_units{
    {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}, {"ps", 1e-12}, {"m", 60}, {"h", 3600}, {"d", 86400}}};

constexpr std::array<Unit, 13> size_units{{{"", 1},
                                           {"B", 1},
                                           {"kB", 1e3},
                                           {"KB", 1e3},
                                           {"MB", 1e6},
                                           {"GB", 1e9},
                                           {"TB", 1e12},
                                           {"KiB", 0x1p10},
                                           {"MiB", 0x1p20},
                                           {"GiB", 0x1p30},
                                           {"TiB", 0x1p40},
                                           {"K", 0x1p10},
                                           {"M", 0x1p20}}};

}  // namespace

Bytes size_of(DataType type) { return data_types[static_cast<std::size_t>(type)].size; }

std::string_view name_of(DataType type) { return data_types[static_cast<std::size_t>(type)].name; }

std::string_view name_of(ReduceOp op) { return reduce_ops[static_cast<std::size_t>(op)]; }

DataType parse_data_type(std::string_view name) {
  for (const DataTypeRow& row : data_types) {
    if (row.name == name) return row.type;
  }
  if (name == "bfp16") return DataType::bf16;  // HCCL's word
  if (name == "int128") bad_input("dtype", "int128 is not simulated: the wire has elements of up to 8 bytes");
  bad_input("dtype", "unknown data type '{}'; accepted: {}, bfp16 for bf16", name,
            names_in(data_types, &DataTypeRow::name));
}

ReduceOp parse_reduce_op(std::string_view name) {
  for (std::size_t i = 0; i < reduce_ops.size(); ++i) {
    if (reduce_ops[i] == name) return static_cast<ReduceOp>(i);
  }
  bad_input("reduce-op", "unknown reduction '{}'; accepted: sum, prod, max, min", name);
}

std::optional<Quantity> parse_quantity(std::string_view text) {
  Quantity quantity;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), quantity.number);
  if (error != std::errc() || !std::isfinite(quantity.number)) return std::nullopt;
  quantity.unit = text.substr(static_cast<std::size_t>(rest - text.data()));
  return quantity;
}

BytesPerSecond parse_bandwidth(std::string_view text) { return parse_in_units("bandwidth", text, bandwidth_units); }

Seconds parse_duration(std::string_view text) { return parse_in_units("duration", text, duration_units); }

Bytes parse_bytes(std::string_view text) {
  const double bytes = parse_in_units("size", text, size_units);
  if (bytes < 0 || bytes > 0x1p63) bad_input("unit", "size '{}' must be between 0 and 2^63 bytes", text);
  return static_cast<Bytes>(std::llround(bytes));
}

}  // namespace hcclsim
