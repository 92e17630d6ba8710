#include "cli/print/plan/redistribution_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/json.hpp"
#include "cli/options/hccl_options.hpp"
#include "cli/terminal/output.hpp"
#include "hccl/comm/communicator.hpp"

namespace hcclsim::cli {
namespace {

using Kind = hccl::RedistributionKind;

std::string shape_text(const models::Shape& shape) { return fmt::format("{}", fmt::join(shape.sizes(), "x")); }

/// What a step does to which axes.
std::string axes_text(const hccl::RedistributionStep& step) {
  if (step.kind == Kind::all_to_all) return fmt::format("cut {}, join {}", step.split_dim, step.concat_dim);
  if (step.kind == Kind::all_gather) return fmt::format("join {}", step.dim);
  return step.kind == Kind::slice ? fmt::format("cut {}", step.dim) : "";
}

/// "4 groups: 0,4 1,5 …".
std::string groups_text(const hccl::RedistributionStep& step) {
  if (step.kind == Kind::reshape) return "";
  constexpr std::size_t shown = 2;
  const std::vector<std::vector<Rank>> groups = step.groups();
  std::string text;
  for (std::size_t i = 0; i < std::min(shown, groups.size()); ++i) {
    text += (i == 0 ? "" : " ") + hccl::rank_ranges(groups[i]);
  }
  return groups.size() > shown ? fmt::format("{} … {} groups", text, groups.size()) : text;
}

Json json_of(const hccl::RedistributionStep& step, const std::optional<study::CollectiveOfStep>& collective,
             Bytes element) {
  const bool exchange = step.kind == Kind::all_to_all;
  const bool reshape = step.kind == Kind::reshape;
  const auto only = [](bool applies, std::uint64_t value) { return applies ? Json(value) : Json(); };
  Json groups = Json::array();
  if (!reshape) {
    for (const std::vector<Rank>& group : step.groups()) groups.push_back(group);
  }
  return {{"op", name_of(step.kind)},
          {"dim", only(!exchange && !reshape, step.dim)},
          {"split_dim", only(exchange, step.split_dim)},
          {"concat_dim", only(exchange, step.concat_dim)},
          {"group_size", reshape ? 1U : step.ranks()},
          {"groups", std::move(groups)},
          {"before", step.before.sizes()},
          {"after", step.after.sizes()},
          {"bytes", step.bytes(element)},
          {"sent_bytes", reshape ? 0 : step.sent(element)},
          {"algorithm", collective.has_value() ? Json(collective->algorithm) : Json()},
          {"time_s", collective.has_value() ? Json(collective->time) : Json()}};
}

}  // namespace

std::string redistribution_text(const study::RedistributionTimes& times, const study::RedistributionSpec& spec) {
  const Bytes element = size_of(spec.type);
  std::string text = fmt::format("{} of {} -> {} of {}, {}, {} devices, on {}\n", to_string(spec.from),
                                 shape_text(spec.from.shape), to_string(spec.to), shape_text(spec.to.shape),
                                 name_of(spec.type), spec.from.devices.devices(), times.on.platform);
  if (times.steps.empty()) text += "Every device has its part already: no steps.\n";
  Table table("<step|<axes|<groups|<before|<after|bytes|sent|time us|<algorithm");
  for (std::size_t i = 0; i < times.steps.size(); ++i) {
    const hccl::RedistributionStep& step = times.steps[i];
    const auto& collective = times.collectives[i];
    table.add_row({std::string(name_of(step.kind)), axes_text(step), groups_text(step), shape_text(step.before),
                   shape_text(step.after), fmt::to_string(step.bytes(element)),
                   collective.has_value() ? fmt::to_string(step.sent(element)) : "-",
                   collective.has_value() ? microseconds(collective->time, 2) : "-",
                   collective.has_value() ? collective->algorithm : ""});
  }
  if (!times.steps.empty()) {
    text += table.to_string() + fmt::format("Collectives, one behind the other: {} us\n", microseconds(times.total, 2));
  }
  return text + remarks_text(times.on.unmodelled, times.on.notes);
}

std::string redistribution_json(const study::RedistributionTimes& times, const study::RedistributionSpec& spec) {
  const auto layout_json = [](const hccl::TensorLayout& layout) {
    Json map = Json::array();
    for (const std::vector<std::uint32_t>& axes : layout.map) map.push_back(axes);
    return Json{
        {"device_matrix", layout.devices.sizes}, {"tensor_map", std::move(map)}, {"shape", layout.shape.sizes()}};
  };
  Json steps = Json::array();
  for (std::size_t i = 0; i < times.steps.size(); ++i) {
    steps.push_back(json_of(times.steps[i], times.collectives[i], size_of(spec.type)));
  }
  Json json{{"format_version", 1},
            {"platform", times.on.platform},
            {"npu", times.on.npu},
            {"launch", name_of(spec.launch)},
            {"dtype", name_of(spec.type)},
            {"alltoall", spec.rules.all_to_all},
            {"from", layout_json(spec.from)},
            {"to", layout_json(spec.to)},
            {"steps", std::move(steps)},
            {"total_s", times.total},
            {"notes", times.on.notes}};
  if (!times.on.unmodelled.empty()) json["not_modelled"] = times.on.unmodelled;
  if (!times.on.rank_table.empty()) json["rank_table"] = times.on.rank_table;
  return json.dump(2) + '\n';
}

std::string redistribution_csv(const study::RedistributionTimes& times, const study::RedistributionSpec& spec) {
  const Bytes element = size_of(spec.type);
  std::string text = "op,dim,split_dim,concat_dim,group_size,before,after,bytes,sent_bytes,time_s\n";
  for (std::size_t i = 0; i < times.steps.size(); ++i) {
    const hccl::RedistributionStep& step = times.steps[i];
    const bool exchange = step.kind == Kind::all_to_all;
    const bool reshape = step.kind == Kind::reshape;
    const auto only = [](bool applies, std::uint32_t dim) { return applies ? fmt::to_string(dim) : std::string(); };
    text += fmt::format("{},{},{},{},{},{},{},{},{},{}\n", name_of(step.kind), only(!exchange && !reshape, step.dim),
                        only(exchange, step.split_dim), only(exchange, step.concat_dim), reshape ? 1U : step.ranks(),
                        shape_text(step.before), shape_text(step.after), step.bytes(element),
                        reshape ? 0 : step.sent(element),
                        times.collectives[i].has_value() ? fmt::format("{}", times.collectives[i]->time) : "");
  }
  return text;
}

}  // namespace hcclsim::cli
