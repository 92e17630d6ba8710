#include "study/files/profile/gradient_record.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <numeric>
#include <optional>
#include <set>
#include <unordered_map>

#include "base/csv.hpp"
#include "base/error.hpp"
#include "base/json.hpp"
#include "base/text.hpp"

namespace hcclsim::study {
namespace {

constexpr Bytes max_bytes = Bytes{1} << 50;

std::string title_of(const std::string& file) { return std::filesystem::path(file).stem().string(); }

/// A list of whole numbers in a record.
std::vector<std::uint64_t> numbers(const Json& record, const char* key, const std::string& file, std::size_t index) {
  const std::string path = fmt::format("[{}].modelvalue.{}", index, key);
  const Json* const value = record.find("modelvalue");
  if (value == nullptr || !value->is_object()) bad_input("profile", "{}: [{}].modelvalue is missing", file, index);
  const Json* const list = value->find(key);
  if (list == nullptr) bad_input("profile", "{}: {} is missing", file, path);
  if (!list->is_array()) bad_input("profile", "{}: {} must be a list of whole numbers", file, path);
  std::vector<std::uint64_t> result;
  for (std::size_t i = 0; i < list->size(); ++i) {
    const Json& entry = (*list)[i];
    if (!entry.is_number_unsigned()) {
      bad_input("profile", "{}: {}[{}] must be a whole number, got {}", file, path, i, entry.dump());
    }
    result.push_back(entry.get<std::uint64_t>());
  }
  return result;
}

/// A text or a number of a record, or nothing.
std::string text_of(const Json& record, const char* key) {
  const Json* const value = record.find(key);
  if (value == nullptr) return "";
  if (value->is_string()) return value->get<std::string>();
  return value->is_number_unsigned() ? fmt::to_string(value->get<std::uint64_t>()) : "";
}

std::optional<FusionRecord> read_record(const Json& json, const std::string& file, std::size_t index) {
  if (!json.is_object()) bad_input("profile", "{}: [{}] must be an object", file, index);
  const std::vector<std::uint64_t> sizes = numbers(json, "gradientSize", file, index);
  const std::vector<std::uint64_t> times = numbers(json, "gradientTime", file, index);
  if (sizes.size() != times.size()) {
    bad_input("profile", "{}: [{}].modelvalue has {} sizes in gradientSize, but {} times in gradientTime", file, index,
              sizes.size(), times.size());
  }
  const auto is_zero = [](std::uint64_t value) { return value == 0; };
  if (std::all_of(sizes.begin(), sizes.end(), is_zero)) return std::nullopt;
  FusionRecord record{.file = file, .model_hash = text_of(json, "modelhash"), .bytes = {}, .gaps = {}};
  record.model_name = text_of(json, "modelname");
  record.graph_id = text_of(json, "modelgraphid");
  constexpr Seconds longest_gap = 1e6;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const Seconds gap = i == 0 ? 0 : static_cast<double>(times[i]) * 1e-9;
    if (sizes[i] == 0 || sizes[i] > max_bytes) {
      bad_input("profile", "{}: [{}].modelvalue.gradientSize[{}] must be from 1 to {}, got {}", file, index, i,
                max_bytes, sizes[i]);
    }
    if (gap > longest_gap) {
      bad_input("profile", "{}: [{}].modelvalue.gradientTime[{}] = {} ns is more than {} s", file, index, i, times[i],
                longest_gap);
    }
    record.bytes.push_back(sizes[i]);
    record.gaps.push_back(gap);
  }
  return record;
}

/// A record in one line.
std::string description(const FusionRecord& record) {
  return fmt::format("hash {}{}{}: {} gradients, {} bytes", record.model_hash.empty() ? "(none)" : record.model_hash,
                     record.model_name.empty() ? "" : ", name " + record.model_name,
                     record.graph_id.empty() ? "" : ", graph " + record.graph_id, record.bytes.size(),
                     with_thousands(std::accumulate(record.bytes.begin(), record.bytes.end(), Bytes{0})));
}

}  // namespace

GradientSummary parse_gradient_summary(std::string_view text, const std::string& file, const std::string& graph) {
  CsvFile csv(text, file, "profile");
  const std::size_t size = csv.column("gradient_size(byte)");
  const std::size_t node = csv.column("trace_node_name");
  const auto id = graph.empty() ? csv.find("graph_id") : std::optional(csv.column("graph_id"));
  GradientSummary summary{.file = file, .gradients = {}};
  std::set<std::string> ids;
  while (csv.next()) {
    const Bytes bytes = csv.count(size, max_bytes);
    if (id.has_value()) ids.insert(csv.field(*id));
    if (!graph.empty() && csv.field(*id) != graph) continue;
    if (ids.size() > 1 && graph.empty()) {
      csv.fail("rows of the graphs {}; choose one graph_id with --profile-model", fmt::join(ids, " and "));
    }
    summary.gradients.push_back({bytes, csv.field(node), csv.line_number()});
  }
  if (summary.gradients.empty() && !ids.empty()) {
    bad_input("profile", "{}: no gradients of graph_id '{}'; there are {}", file, graph, fmt::join(ids, ", "));
  }
  if (summary.gradients.empty()) bad_input("profile", "{}: no gradients below the line of column names", file);
  return summary;
}

models::GradientProfile dated(const GradientSummary& summary, const KernelProfile& kernels) {
  std::vector<std::optional<Seconds>> begin(kernels.iterations);
  std::unordered_map<std::string, std::vector<std::optional<Seconds>>> starts;
  for (const GradientSummary::Row& row : summary.gradients) starts[row.trace_node].resize(kernels.iterations);
  for (const MeasuredKernel& kernel : kernels.kernels) {
    if (!begin[kernel.iteration].has_value() && !kernel.communication) begin[kernel.iteration] = kernel.start;
    const auto node = starts.find(kernel.name);
    if (node == starts.end() || node->second[kernel.iteration].has_value()) continue;
    node->second[kernel.iteration] = kernel.start - begin[kernel.iteration].value_or(kernel.start);
  }
  std::vector<bool> whole(kernels.iterations, true);
  for (const auto& [name, dates] : starts) {
    for (std::size_t i = 0; i < whole.size(); ++i) whole[i] = whole[i] && dates[i].has_value();
  }
  const auto count = static_cast<double>(std::count(whole.begin(), whole.end(), true));
  models::GradientProfile profile{.title = title_of(summary.file), .file = summary.file, .gradients = {}};
  for (const GradientSummary::Row& row : summary.gradients) {
    const auto& dates = starts[row.trace_node];
    if (count == 0) {
      const bool seen = std::any_of(dates.begin(), dates.end(), [](const auto& date) { return date.has_value(); });
      if (seen) continue;
      bad_input("profile", "{}:{}: trace node '{}' is not in {}; give the profile of the same run", summary.file,
                row.line, row.trace_node, kernels.file);
    }
    Seconds sum = 0;
    for (std::size_t i = 0; i < whole.size(); ++i) sum += whole[i] ? *dates[i] : 0;
    const Seconds ready = sum / count;
    profile.gradients.push_back({row.trace_node, row.bytes, ready, row.line});
  }
  if (count == 0) bad_input("profile", "{}: no iteration has all trace nodes of {}", kernels.file, summary.file);
  std::stable_sort(profile.gradients.begin(), profile.gradients.end(),
                   [](const auto& a, const auto& b) { return a.ready_s < b.ready_s; });
  return profile;
}

FusionRecord parse_fusion_record(std::string_view text, const std::string& file, const std::string& model) {
  const Json json = parse_json_text(text, file, "profile");
  if (!json.is_array()) bad_input("profile", "{}: must be a list of records with modelhash and modelvalue", file);
  std::vector<FusionRecord> records;
  for (std::size_t i = 0; i < json.size(); ++i) {
    std::optional<FusionRecord> record = read_record(json[i], file, i);
    if (record.has_value()) records.push_back(std::move(*record));
  }
  if (records.empty()) bad_input("profile", "{}: no record is filled in", file);
  std::string list;
  for (const FusionRecord& record : records) list += "\n  " + description(record);
  if (!model.empty()) {
    std::erase_if(records, [&](const FusionRecord& record) {
      return record.model_hash != model && record.model_name != model && record.graph_id != model;
    });
  }
  if (records.empty()) bad_input("profile", "{}: no record of the model '{}'; there are{}", file, model, list);
  if (records.size() > 1) {
    bad_input("profile", "{}: records of {} models; choose one by hash, name or graph with --profile-model:{}", file,
              records.size(), list);
  }
  return std::move(records.front());
}

models::GradientProfile dated(const FusionRecord& record, Seconds first) {
  models::GradientProfile profile{.title = title_of(record.file), .file = record.file, .gradients = {}};
  Seconds ready = first;
  for (std::size_t i = 0; i < record.bytes.size(); ++i) {
    ready += record.gaps[i];
    profile.gradients.push_back({fmt::format("gradient {}", i), record.bytes[i], ready, i});
  }
  return profile;
}

}  // namespace hcclsim::study
