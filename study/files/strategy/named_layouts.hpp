#pragma once

#include <string>

#include "base/json.hpp"
#include "hccl/parallel/sharding/strategy.hpp"

/// A strategy by MindSpore's Layout: device_matrix and alias_name of its axes, and in the place of numbers of parts the
/// names of the axes that cut each axis of a tensor, "None" for nothing, a list for several:
///
///     ["layers.*.attention.qkv"]
///     device_matrix = [2, 4]
///     alias_name = ["dp", "mp"]
///     strategy = [["dp", "None"], ["mp", "None"]]
///     out_strategy = ["dp", "mp"]
namespace hcclsim::study {

/// Whether a table of a strategy file has one of the keys of a Layout.
[[nodiscard]] bool has_named_layouts(const Json& table);

/// Throws Error(bad_input) that begins with `where`, of the kinds that MindSpore raises: "type-error" for what is no
/// list of whole numbers or of names, "value-error" for names and sizes that do not fit (NamedDeviceMatrix), for a
/// strategy of numbers beside a Layout, and for an out_strategy without a strategy.
[[nodiscard]] hccl::LayoutStrategy read_named_layouts(const std::string& where, const Json& table);

}  // namespace hcclsim::study
