#include "cli/print/run/parallel_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "cli/terminal/output.hpp"

namespace hcclsim::cli {
namespace {

constexpr double gibibyte_of_table = 0x1p30;
constexpr std::size_t most_stage_rows = 16;
constexpr std::size_t most_tensor_rows = 20;

std::string gib(Bytes bytes) { return fmt::format("{:.2f}", static_cast<double>(bytes) / gibibyte_of_table); }

struct ExposedKind {
  const char* name;
  Seconds study::ExposedTimes::*time;
};
constexpr std::array<ExposedKind, 6> exposed_kinds{{{"messages", &study::ExposedTimes::messages},
                                                    {"gradients", &study::ExposedTimes::gradients},
                                                    {"weights", &study::ExposedTimes::weights},
                                                    {"checks", &study::ExposedTimes::checks},
                                                    {"results", &study::ExposedTimes::results},
                                                    {"operators", &study::ExposedTimes::operators}}};

/// Kinds that keep some stage waiting.
std::vector<ExposedKind> kinds_of(const study::ParallelResult& parallel) {
  std::vector<ExposedKind> kinds;
  for (const ExposedKind& kind : exposed_kinds) {
    const auto waits = [&](const study::StageFigures& stage) { return stage.exposed.*kind.time > 0; };
    if (std::ranges::any_of(parallel.stages, waits)) kinds.push_back(kind);
  }
  return kinds;
}

/// compute + bubble + exposed communication + host + wait = step; without a column of hosts that hold up no stage.
std::string stage_table(const study::ParallelResult& parallel) {
  const std::vector<ExposedKind> kinds = kinds_of(parallel);
  std::vector<Table::Column> columns{
      {"stage"}, {"ranks", Table::Align::left}, {"layers", Table::Align::left}, {"compute"}, {"bubble"}};
  for (const ExposedKind& kind : kinds) {
    columns.push_back({fmt::format("{}{}", &kind == kinds.data() ? "exposed: " : "", kind.name)});
  }
  const bool hosts = std::ranges::any_of(parallel.stages, [](const auto& stage) { return stage.host > 0; });
  if (hosts) columns.push_back({"host"});
  for (const char* const title : {"wait", "step", "live", "HBM GiB"}) columns.push_back({title});
  Table table(std::move(columns));
  const std::size_t count = parallel.stages.size();
  for (std::size_t i = 0; i < count; ++i) {
    if (count > most_stage_rows && i >= most_stage_rows / 2 && i + most_stage_rows / 2 < count) continue;
    const study::StageFigures& stage = parallel.stages[i];
    std::vector<std::string> row{fmt::format("{}", stage.stage),
                                 stage.ranks == 1
                                     ? fmt::format("{}", stage.first_rank)
                                     : fmt::format("{}-{}", stage.first_rank, stage.first_rank + stage.ranks - 1),
                                 stage.layers.empty() ? "all" : fmt::format("{}", fmt::join(stage.layers, "+")),
                                 milliseconds(stage.compute), milliseconds(stage.bubble)};
    for (const ExposedKind& kind : kinds) row.push_back(milliseconds(stage.exposed.*kind.time));
    if (hosts) row.push_back(milliseconds(stage.host));
    row.push_back(milliseconds(stage.wait));
    row.push_back(milliseconds(stage.step));
    row.push_back(fmt::format("{}", stage.live_cells));
    row.push_back(gib(stage.hbm.peak()));
    table.add_row(std::move(row));
  }
  return fmt::format("By stage, in ms (compute + bubble + exposed communication{} + wait = step):\n",
                     hosts ? " + host" : "") +
         table.to_string("  ") +
         (count > most_stage_rows ? fmt::format("  ({} stages in the middle are not shown)\n", count - most_stage_rows)
                                  : "");
}

/// What the step of the most loaded stage is made of, largest part first.
std::string limit_line(const study::ParallelResult& parallel) {
  const study::StageFigures& stage = parallel.most_loaded();
  const auto percent = [&](Seconds time) { return fmt::format("{:.1f}", time / stage.step * 100); };
  std::vector<std::string> exposed;
  for (const ExposedKind& kind : exposed_kinds) {
    const Seconds time = stage.exposed.*kind.time;
    if (time > 0) exposed.push_back(fmt::format("{} {}", kind.name, percent(time)));
  }
  std::vector<std::pair<Seconds, std::string>> parts{
      {stage.compute, "compute"}, {stage.bubble, "bubble"},        {stage.exposed.sum(), "exposed communication"},
      {stage.host, "host"},       {stage.wait, "wait for others"},
  };
  std::ranges::stable_sort(parts, std::ranges::greater(), &std::pair<Seconds, std::string>::first);
  std::vector<std::string> texts;
  for (const auto& [time, name] : parts) {
    if (time <= 0) continue;
    texts.push_back(fmt::format("{} {} %", name, percent(time)));
    if (name.starts_with("exposed") && exposed.size() > 1)
      texts.back() += fmt::format(" ({})", fmt::join(exposed, ", "));
    if (name.starts_with("exposed") && exposed.size() == 1) {
      texts.back() += fmt::format(" ({})", exposed.front().substr(0, exposed.front().find(' ')));
    }
  }
  return fmt::format("Limited by{}: {}\n",
                     parallel.stages.size() > 1 ? fmt::format(" (stage {}, which computes most)", stage.stage) : "",
                     fmt::join(texts, ", "));
}

/// Shares of the step.
Json limit_json(const study::ParallelResult& parallel) {
  const study::StageFigures& stage = parallel.most_loaded();
  Json exposed = Json::object();
  for (const ExposedKind& kind : exposed_kinds) exposed.append(kind.name, stage.exposed.*kind.time / stage.step);
  return {
      {"stage", stage.stage},          {"compute", stage.compute / stage.step}, {"bubble", stage.bubble / stage.step},
      {"exposed", std::move(exposed)}, {"host", stage.host / stage.step},       {"wait", stage.wait / stage.step}};
}

std::string memory_line(const RunReport& report) {
  const device::HbmAccount& hbm = report.hbm;
  return fmt::format(
      "HBM of rank {}, GiB: weights {} + gradients {} + optimizer {} + activations {} + gathered {} + buffers {}{} = "
      "{}{}\n",
      report.rank, gib(hbm.weights), gib(hbm.gradients), gib(hbm.optimizer_state), gib(hbm.activations),
      gib(hbm.gathered), gib(hbm.communication),
      hbm.compression > 0 ? fmt::format(" + compression {}", gib(hbm.compression)) : "", gib(hbm.peak()),
      hbm.host > 0 ? fmt::format("; in the memory of the host {}", gib(hbm.host)) : "");
}

std::string traffic_table(const study::ParallelResult& parallel, std::uint32_t stage) {
  Table table("<kind|ranks|count|MB sent by a rank");
  bool any = false;
  for (const study::Traffic& traffic : parallel.traffic) {
    if (traffic.stage != stage) continue;
    any = true;
    table.add_row({traffic.kind, fmt::format("{}", traffic.group_size), fmt::format("{}", traffic.count),
                   fmt::format("{:.2f}", static_cast<double>(traffic.bytes) / 1e6)});
  }
  return any ? fmt::format("Communication of stage {} per step:\n", stage) + table.to_string("  ") : "";
}

std::string peak_table(const RunReport& report) {
  Table table("<made by|MB|copies");
  const auto& tensors = report.parallel->peak_tensors;
  for (std::size_t i = 0; i < std::min(tensors.size(), most_tensor_rows); ++i) {
    table.add_row({tensors[i].kernel, fmt::format("{:.2f}", static_cast<double>(tensors[i].bytes) / 1e6),
                   fmt::format("{}", tensors[i].copies)});
  }
  return fmt::format("Activations alive at the peak of rank {}, {} tensors, largest first:\n", report.rank,
                     tensors.size()) +
         table.to_string("  ");
}

std::string sharing_text(const study::ParallelResult& parallel) {
  std::string text = fmt::format("optimizer parallel {}", parallel.sharing);
  if (parallel.sharing == "dealt") return text + fmt::format(" to {} ranks", parallel.data);
  if (parallel.whole == parallel.parameters) return text + " without effect: every parameter stays whole";
  text += fmt::format(" over {} ranks", parallel.shard);
  if (parallel.whole > 0) text += fmt::format(" ({} of {} parameters stay whole)", parallel.whole, parallel.parameters);
  return text;
}

/// ", operators shared by 4 ranks, norms and sums by rows".
std::string operators_text(const study::OperatorParallel& operators) {
  std::string text;
  if (operators.model > 1) text += fmt::format(", operators shared by {} ranks", operators.model);
  if (operators.context > 1) {
    text += fmt::format(", positions shared by {} ({})", operators.context, name_of(operators.context_kind));
  }
  if (operators.sequence) text += ", sequence parallel";
  if (operators.vocabulary) text += ", vocabulary parallel";
  if (operators.experts > 1) text += fmt::format(", experts shared by {} ranks", operators.experts);
  if (operators.whole_experts()) text += ", each expert whole";
  if (operators.expert_skew > 0) {
    text += fmt::format(" (uneven by {:g}, seed {})", operators.expert_skew, operators.expert_seed);
  }
  for (const std::string* const file : {&operators.strategy, &operators.loaded}) {
    if (!file->empty()) text += ", strategies of " + *file;
  }
  if (operators.search.has_value()) text += fmt::format(", strategies by {}", name_of(*operators.search));
  return text;
}

}  // namespace

std::string parallel_head(const RunReport& report) {
  const study::ParallelResult& parallel = *report.parallel;
  const hccl::PipelineShape& shape = parallel.shape;
  const std::string replicas = fmt::format("{} replica{}", parallel.data, parallel.data == 1 ? "" : "s");
  std::string text = fmt::format("{}, {} x {} ({}): ", study::network_title(*report.program), report.npus, report.npu,
                                 report.platform);
  if (shape.stages > 1) {
    text += fmt::format("{} stages{} x {}, {}", shape.stages,
                        shape.chunks > 1 ? fmt::format(" of {} chunks", shape.chunks) : "", replicas,
                        name_of(shape.schedule));
  } else {
    text += replicas;
  }
  text += operators_text(parallel.operators);
  if (parallel.sharing != "off") text += ", " + sharing_text(parallel);
  if (shape.forward_only) {
    return text + fmt::format(", forward only\nBatch {}, {}\n", report.batch_text(), report.amp);
  }
  return text + fmt::format("\nBatch {}, {}, {}, reductions {} the backward pass, {}\n", report.batch_text(),
                            report.amp, report.gradients_text(), report.hcom_parallel ? "beside" : "behind",
                            report.split_text());
}

std::string parallel_text(const RunReport& report) {
  const study::ParallelResult& parallel = *report.parallel;
  std::string text = limit_line(parallel) + stage_table(parallel);
  if (parallel.shape.stages > 1) {
    text += fmt::format("With links that take no time: {} ms\n", milliseconds(parallel.ideal));
  }
  text += memory_line(report);
  const std::uint32_t stage = report.rank / parallel.stages.front().ranks;
  text += traffic_table(parallel, stage);
  if (report.explain_memory) text += peak_table(report);
  return text;
}

std::string memory_text(const RunReport& report) {
  if (!report.explain_memory) return {};
  return memory_line(report) + peak_table(report);
}

std::string input_line(const RunReport& report) {
  if (!report.input.has_value() || !report.input->by_strategy) return {};
  const auto megabytes = [](Bytes bytes) { return fmt::format("{:.3f} MB", static_cast<double>(bytes) / 1e6); };
  return fmt::format("Input read per step: {} by each rank{}, {} by all\n", megabytes(report.input->bytes),
                     report.input->whole ? " (the samples of all replicas)" : "", megabytes(report.input->all_ranks));
}

std::string throughput_line(const study::Throughput& throughput) {
  constexpr double seconds_per_day = 86400;
  const bool tokens = throughput.tokens_per_second > 0;
  const double per_second = tokens ? throughput.tokens_per_second : throughput.samples_per_second;
  const char* const what = tokens ? "tokens" : "samples";
  std::string text = fmt::format("{:.0f} {}/s, {:.3f} billion {}/day   MFU {:.1f} %", per_second, what,
                                 per_second * seconds_per_day / giga, what, throughput.mfu * 100);
  if (throughput.hfu > throughput.mfu) text += fmt::format(", HFU {:.1f} %", throughput.hfu * 100);
  return text + fmt::format(" of {:.1f} T{}/s per NPU ({} dense)\n", throughput.peak / 1e12, "FLOP",
                            name_of(throughput.peak_type));
}

Json throughput_json(const study::Throughput& throughput) {
  const double tokens = throughput.tokens_per_second;
  return {{"samples_per_s", throughput.samples_per_second},
          {"tokens_per_s", tokens > 0 ? Json(tokens) : Json(nullptr)},
          {"mfu", throughput.mfu},
          {"hfu", throughput.hfu},
          {"peak_flops", throughput.peak},
          {"peak_dtype", name_of(throughput.peak_type)}};
}

void add_parallel_json(Json& json, const RunReport& report) {
  const study::ParallelResult& parallel = *report.parallel;
  json["parallel"] = {{"data", parallel.data},
                      {"model", parallel.operators.model},
                      {"stages", parallel.shape.stages},
                      {"micro_batches", parallel.shape.micro_batches},
                      {"micro_batch_size", parallel.micro_batch},
                      {"chunks", parallel.shape.chunks},
                      {"schedule", name_of(parallel.shape.schedule)},
                      {"fusion", parallel.fusion.empty() ? report.split : parallel.fusion},
                      {"optimizer_parallel", parallel.sharing},
                      {"shard_ranks", parallel.shard},
                      {"ideal_step_s", parallel.ideal}};
  if (parallel.operators.context > 1) {
    json["parallel"]["context"] = parallel.operators.context;
    json["parallel"]["context_kind"] = name_of(parallel.operators.context_kind);
  }
  if (parallel.operators.sequence) json["parallel"]["sequence_parallel"] = true;
  if (parallel.operators.vocabulary) json["parallel"]["vocabulary_parallel"] = true;
  if (parallel.operators.whole_experts()) json["parallel"]["expert_model"] = 1;
  if (parallel.operators.experts > 1) {
    json["parallel"]["experts"] = parallel.operators.experts;
    json["parallel"]["expert_skew"] = parallel.operators.expert_skew;
    json["parallel"]["expert_seed"] = parallel.operators.expert_seed;
  }
  if (!parallel.operators.strategy.empty()) json["parallel"]["strategy"] = parallel.operators.strategy;
  if (parallel.operators.search.has_value()) json["parallel"]["search_mode"] = name_of(*parallel.operators.search);
  if (!parallel.operators.loaded.empty()) json["parallel"]["loaded_strategy"] = parallel.operators.loaded;
  if (parallel.shape.forward_only) json["parallel"]["forward_only"] = true;
  if (report.input.has_value()) {
    json["parallel"]["input_bytes_per_rank"] = report.input->bytes;
    json["parallel"]["input_bytes"] = report.input->all_ranks;
  }
  json["limited_by"] = limit_json(parallel);
  Json stages = Json::array();
  for (const study::StageFigures& stage : parallel.stages) {
    Json exposed = Json::object();
    for (const ExposedKind& kind : exposed_kinds) exposed.append(kind.name, stage.exposed.*kind.time);
    stages.push_back({{"stage", stage.stage},
                      {"ranks", Json::array({stage.first_rank, stage.first_rank + stage.ranks - 1})},
                      {"layers", stage.layers},
                      {"step_s", stage.step},
                      {"compute_s", stage.compute},
                      {"bubble_s", stage.bubble},
                      {"host_s", stage.host},
                      {"wait_s", stage.wait},
                      {"exposed_s", std::move(exposed)},
                      {"ideal_bubble_s", stage.ideal_bubble},
                      {"live_cells", stage.live_cells},
                      {"hbm_peak_bytes", stage.hbm.peak()},
                      {"hbm",
                       {{"weights", stage.hbm.weights},
                        {"gradients", stage.hbm.gradients},
                        {"optimizer", stage.hbm.optimizer_state},
                        {"activations", stage.hbm.activations},
                        {"gathered", stage.hbm.gathered},
                        {"buffers", stage.hbm.communication},
                        {"compression", stage.hbm.compression}}}});
    if (stage.hbm.host > 0) stages[stages.size() - 1]["host_memory_bytes"] = stage.hbm.host;
  }
  json["stages"] = std::move(stages);
  Json traffic = Json::array();
  for (const study::Traffic& one : parallel.traffic) {
    traffic.push_back({{"stage", one.stage},
                       {"kind", one.kind},
                       {"group_size", one.group_size},
                       {"count", one.count},
                       {"bytes_per_rank", one.bytes}});
  }
  json["traffic"] = std::move(traffic);
  if (!report.explain_memory) return;
  Json tensors = Json::array();
  for (const hccl::LiveAtPeak& tensor : parallel.peak_tensors) {
    tensors.push_back({{"made_by", tensor.kernel}, {"bytes", tensor.bytes}, {"copies", tensor.copies}});
  }
  json["peak_tensors"] = std::move(tensors);
}

}  // namespace hcclsim::cli
