#include "cli/print/run/run_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include <filesystem>
#include <utility>

#include "cli/print/run/host_report.hpp"
#include "hccl/comm/communicator.hpp"
#include "models/zoo/choices.hpp"

namespace hcclsim::cli {
namespace {

std::string split_name(const study::RunResult& result, const RunOptions& options) {
  if (!result.gradient_rule.empty()) return result.gradient_rule;
  const bool is_set = options.spec.sets_split_of(options.spec.simulation.rank);
  if (is_set && options.spec.split_by_size.has_value())
    return fmt::format("by size {}", fmt::join(*options.spec.split_by_size, ","));
  if (is_set && options.spec.split_by_idx.has_value())
    return fmt::format("by index {}", fmt::join(*options.spec.split_by_idx, ","));
  return options.split == "default" ? "default 96.54/3.46" : options.split;
}

/// Types in which gradients are reduced.
std::string communication_types(const study::RunSpec& spec) {
  if (!spec.gradient_sync.has_value()) return std::string(name_of(spec.communication_type));
  const models::Precision& precision = spec.precision;
  if (spec.gradient_sync->in_fp32) return std::string(name_of(DataType::fp32));
  const bool several = spec.gradient_sync->as_used && precision.compute != precision.weight;
  const std::string kept(name_of(precision.weight));
  return several ? fmt::format("{} and {}", kept, name_of(precision.compute)) : kept;
}

/// Options of the simulated step that the report does not hold otherwise.
std::vector<std::pair<std::string, std::string>> settings_of(const RunOptions& options) {
  const device::SkewOptions& skew = options.spec.skew;
  std::vector<std::string> edits;
  for (const sim::PlatformEdit& edit : options.spec.platform.edits) edits.push_back(edit.target + "=" + edit.value);
  std::vector<std::string> profiles;
  for (const std::string& file : options.spec.profiles)
    profiles.push_back(std::filesystem::path(file).filename().string());
  std::vector<std::string> groups;
  for (const hccl::Communicator& group : options.spec.step.groups) {
    groups.push_back(fmt::format("{}={}", group.name, fmt::join(group.ranks, ",")));
  }
  const auto number = [](const auto& value) { return value.has_value() ? fmt::to_string(*value) : std::string(); };
  std::vector<std::pair<std::string, std::string>> settings{
      {"input", number(options.spec.model.input)},
      {"classes", number(options.spec.model.classes)},
      {"fc-bias", options.spec.model.fc_bias ? "on" : "off"},
      {"profile", fmt::format("{}", fmt::join(profiles, ","))},
      {"optimizer", std::string(models::name_of(options.spec.optimizer))},
      {"comm-dtype", communication_types(options.spec)},
      {"allreduce", std::string(hccl::name_of(options.spec.step.allreduce))},
      {"levels", options.levels},
      {"set", fmt::format("{}", fmt::join(edits, " "))},
      {"start-skew", fmt::format("{}", skew.start_skew)},
      {"speed-factors", fmt::format("{}", fmt::join(skew.speeds, ","))},
      {"speed-spread", fmt::format("{}", skew.speed_spread)},
      {"jitter", fmt::format("{}", skew.jitter)},
      {"seed", fmt::format("{}", skew.seed)}};
  std::vector<std::string> faults;
  for (const sim::Fault& fault : options.spec.faults) faults.push_back(fault.text);
  const auto& fused = options.spec.fused_attention;
  const auto& routing = options.spec.platform.routing;
  const models::ModelOptions& model = options.spec.model;
  const std::string capacity = model.dropless               ? "dropless"
                               : model.capacity.has_value() ? fmt::format("{}", *model.capacity)
                                                            : "";
  std::vector<std::string> dims;
  for (const auto& [name, size] : model.onnx.dims) dims.push_back(fmt::format("{}={}", name, size));
  if (const std::string npus = hccl::rank_ranges(options.spec.platform.rank_table.npus_list); !npus.empty()) {
    settings.emplace_back("npus-list", npus);
  }
  for (const models::ModelChoice& choice : models::model_choices()) {
    if (choice.key == "input" || choice.key == "classes") continue;  // above
    if (const auto chosen = chosen_text(choice, model); chosen.has_value()) settings.emplace_back(choice.key, *chosen);
  }
  const std::array<std::pair<const char*, std::string>, 13> where_given{
      {{"moe-capacity", capacity},
       {"onnx-dim", fmt::format("{}", fmt::join(dims, ","))},
       {"unsupported", model.onnx.unsupported.has_value() ? fmt::format("time={:.6g}s", *model.onnx.unsupported) : ""},
       {"fused-attention", fused.has_value() ? (*fused ? "on" : "off") : ""},
       {"compress",
        options.spec.step.compression.has_value() ? to_string(options.spec.step.compression->settings) : ""},
       {"pad-segments", options.spec.step.pad_segments ? "on" : ""},
       {"profile-model", options.spec.profile_model},
       {"group", fmt::format("{}", fmt::join(groups, " "))},
       {"split-group", options.spec.split_group},
       {"jitter-shape", skew.shape == device::JitterShape::normal ? "" : std::string(name_of(skew.shape))},
       {"fault", fmt::format("{}", fmt::join(faults, ", "))},
       {"hbm-contention", options.spec.simulation.hbm_contention ? "on" : ""},
       {"routing", routing.has_value() ? text_of(*routing) : ""}}};
  for (const auto& [name, value] : where_given) {
    if (!value.empty()) settings.emplace_back(name, value);
  }
  add_host_settings(options.spec, settings);
  for (const hccl::HcclSetting& setting : options.spec.platform.hccl_settings) {
    settings.emplace_back(setting.variable, setting.value);
  }
  return settings;
}

/// Those of the options that the first lines do not tell.
std::vector<std::pair<std::string, std::string>> changed_settings_of(const RunOptions& options) {
  auto settings = settings_of(options);
  const auto usual = settings_of(RunOptions{});
  std::erase_if(settings, [&](const auto& setting) {
    return setting.first == "comm-dtype" || setting.first == "profile" ||
           std::find(usual.begin(), usual.end(), setting) != usual.end();
  });
  const hccl::SimulationOptions defaults;
  if (options.spec.simulation.rank != defaults.rank)
    settings.emplace_back("rank", fmt::to_string(options.spec.simulation.rank));
  if (options.spec.simulation.iterations != defaults.iterations) {
    settings.emplace_back("iterations", fmt::to_string(options.spec.simulation.iterations));
  }
  return settings;
}

/// Gradients and the optimizer are of training.
std::string precision_text(const study::RunSpec& spec) {
  if (!spec.step.shape.forward_only) return to_string(spec.precision);
  return fmt::format("parameters {}, compute {}", name_of(spec.precision.weight), name_of(spec.precision.compute));
}

}  // namespace

RunReport::RunReport(study::RunResult result, const RunOptions& options)
    : study::RunResult(std::move(result)),
      amp(precision_text(options.spec)),
      framework(options.spec.step.framework == study::Framework::mindspore ? "mindspore" : "tf"),
      hcom_parallel(options.spec.step.hcom_parallel),
      launch(name_of(options.spec.step.launch)),
      split(split_name(*this, options)),
      explain_uncertainty(options.explain_uncertainty),
      explain_memory(options.explain_memory),
      lists_links(options.links > 0),
      loss_scale(options.loss_scale),
      clip_norm(options.spec.clip_norm),
      settings(settings_of(options)),
      changed_settings(changed_settings_of(options)),
      mapping(options.launch_file.mapping) {}

}  // namespace hcclsim::cli
