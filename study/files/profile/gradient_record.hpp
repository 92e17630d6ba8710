#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "models/profile.hpp"
#include "study/files/profile/kernel_profile.hpp"

/// Gradients as the vendor's gradient tuning (AOE) records them, in production order.
namespace hcclsim::study {

/// `gradient_summary.csv`: sizes of the gradients, without times. Needed are the columns gradient_size(byte) and
/// trace_node_name; the rows of one graph (graph_id).
struct GradientSummary {
  struct Row {
    Bytes bytes = 0;
    std::string trace_node;  ///< kernel that the tuning puts behind the gradient, so that a profile dates it
    std::size_t line = 0;
  };
  std::string file;
  std::vector<Row> gradients;  ///< at least one
};

/// Of the rows of several graphs those whose graph_id is `graph`. Throws Error(bad_input) of kind "profile" with file
/// and line: a column missing, sizes that are no positive integers, rows of several graphs of which none is chosen, no
/// rows.
[[nodiscard]] GradientSummary parse_gradient_summary(std::string_view text, const std::string& file,
                                                     const std::string& graph = "");

/// The dates of the summary's gradients, by which they are ordered: the starts of their trace nodes in a profile of the
/// same run, since the first kernel of the iteration, as means over the iterations that have them all. Throws
/// Error(bad_input) that names a gradient whose node is not in the profile.
[[nodiscard]] models::GradientProfile dated(const GradientSummary& summary, const KernelProfile& kernels);

/// `*_gradient_fusion.json`, the library that the tuning writes: a list of records with modelhash and modelvalue, in it
/// gradientSize in bytes and gradientTime, the time in nanoseconds from the gradient before. The first time is a date
/// of the device and says nothing.
struct FusionRecord {
  std::string file;
  std::string model_hash;
  std::string model_name{};   ///< modelname, if the record has one
  std::string graph_id{};     ///< modelgraphid, likewise
  std::vector<Bytes> bytes;   ///< at least one
  std::vector<Seconds> gaps;  ///< to the gradient before; 0 for the first
};

/// The record whose modelhash, modelname or modelgraphid is `model`, or the only one. Throws Error(bad_input) of kind
/// "profile" with file and, as far as there is one, line or key: no JSON, not a list, keys missing, lists of different
/// lengths, sizes or times that are no whole numbers, no record of that model, records of several models of which none
/// is chosen, which it lists. Records of zeros, which the tuning has not filled in, do not count.
[[nodiscard]] FusionRecord parse_fusion_record(std::string_view text, const std::string& file,
                                               const std::string& model = "");

/// The record as a profile whose first gradient is ready at `first`.
[[nodiscard]] models::GradientProfile dated(const FusionRecord& record, Seconds first);

}  // namespace hcclsim::study
