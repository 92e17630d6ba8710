#include "cli/commands/commands.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.hpp"
#include "cli/options/parse/common.hpp"
#include "cli/options/training/model_options.hpp"
#include "cli/options/training/precision_options.hpp"
#include "cli/terminal/output.hpp"
#include "models/lowering/lower.hpp"
#include "models/lowering/updates.hpp"
#include "models/zoo/zoo.hpp"
#include "study/run/experiment/kernel_times.hpp"

namespace hcclsim::cli {
namespace {

/// A network of the zoo with what one training step launches on one NPU.
struct LoweredModel {
  models::Graph graph;
  models::Program program;
  models::Precision precision;
  models::Optimizer optimizer;
  std::vector<Seconds> times{};  ///< of the kernels on the NPU of a platform; empty: none was given

  /// Of all kernels of a phase, one behind the other.
  [[nodiscard]] Seconds time(models::Phase phase) const {
    Seconds sum = 0;
    for (std::size_t i = 0; i < times.size(); ++i) sum += program.kernels[i].phase == phase ? times[i] : 0;
    return sum;
  }
  [[nodiscard]] std::uint64_t count(models::Phase phase) const {  ///< kernels
    const auto of_phase = [&](const models::Kernel& kernel) { return kernel.phase == phase; };
    return static_cast<std::uint64_t>(std::count_if(program.kernels.begin(), program.kernels.end(), of_phase));
  }
  [[nodiscard]] Flops flops(models::Phase phase) const {
    Flops sum = 0;
    for (const models::Kernel& kernel : program.kernels) sum += kernel.phase == phase ? kernel.flops : 0;
    return sum;
  }
  [[nodiscard]] Bytes gradient_bytes() const {
    const std::vector<Bytes> sizes = program.gradient_sizes();
    return std::accumulate(sizes.begin(), sizes.end(), Bytes{0});
  }
};

/// A table that is printed as text, JSON objects or CSV. Cells are JSON values, the keys are those of the JSON objects.
struct Rows {
  struct Column {
    std::string_view title;  ///< of the text
    std::string key;         ///< of JSON and CSV
    bool number = true;
  };
  std::vector<Column> columns;
  std::vector<std::vector<Json>> rows;
};

std::string text_cell(const Json& cell) {
  if (cell.is_string()) return cell.get<std::string>();
  if (cell.is_number_unsigned()) return with_thousands(cell.get<std::uint64_t>());
  if (cell.is_number_float()) return fmt::format("{:.3f}", cell.get<double>());
  if (!cell.is_array()) return "";
  std::string text;
  for (const Json& item : cell) text += (text.empty() ? "" : "x") + item.dump();
  return text;
}

std::string to_text(const Rows& rows) {
  std::vector<Table::Column> columns;
  columns.reserve(rows.columns.size());
  for (const auto& column : rows.columns) {
    columns.push_back({std::string(column.title), column.number ? Table::Align::right : Table::Align::left});
  }
  Table table(std::move(columns));
  for (const auto& row : rows.rows) {
    std::vector<std::string> cells;
    cells.reserve(row.size());
    for (const Json& cell : row) cells.push_back(text_cell(cell));
    table.add_row(std::move(cells));
  }
  return table.to_string();
}

std::string to_csv(const Rows& rows) {
  std::string text;
  for (const auto& column : rows.columns) text += fmt::format("{}{}", text.empty() ? "" : ",", column.key);
  text += '\n';
  for (const auto& row : rows.rows) {
    std::string_view separator;
    for (const Json& cell : row) {
      text += separator;
      text += csv_field(cell.is_string() ? cell.get<std::string>() : cell.is_array() ? text_cell(cell) : cell.dump());
      separator = ",";
    }
    text += '\n';
  }
  return text;
}

Json to_json(const Rows& rows) {
  Json list_models = Json::array();
  for (const auto& row : rows.rows) {
    Json object;
    for (std::size_t i = 0; i < row.size(); ++i) object[rows.columns[i].key] = row[i];
    list_models.push_back(std::move(object));
  }
  return list_models;
}

Json shape_of(const models::Shape& shape) {
  if (shape.rank() == 3) return {shape.size(0), shape.size(1), shape.size(2)};
  if (shape.image() == 1) return {shape.batch(), shape.channels()};
  return {shape.batch(), shape.channels(), shape.height(), shape.width()};
}

Rows layer_rows(const LoweredModel& model) {
  const models::Graph& graph = model.graph;
  Rows rows{{{"Layer", "name", false},
             {"Operator", "operator", false},
             {"Output", "output", false},
             {"Parameters", "parameters"},
             {"Forward FLOP", "forward_flops"},
             {"Backward FLOP", "backward_flops"}},
            {}};
  const std::vector<bool> needs_gradient = graph.needs_gradient();
  for (const models::Operator& op : graph.operators) {
    if (op.inputs.empty()) continue;
    std::uint64_t parameters = 0;
    for (const std::uint32_t index : op.parameters) parameters += graph.parameters[index].elements;
    const Flops forward = models::forward_flops(graph, op);
    const Flops backward = models::backward_flops(graph, op, needs_gradient[op.inputs.front().op]);
    rows.rows.push_back({op.name, models::name_of(op.kind), shape_of(op.shape()), parameters,
                         static_cast<std::uint64_t>(forward), static_cast<std::uint64_t>(backward)});
  }
  return rows;
}

Rows parameter_rows(const LoweredModel& model) {
  const models::Graph& graph = model.graph;
  Rows rows{{{"Parameter order", "parameter_index"},
             {"Name", "name", false},
             {"Shape", "shape", false},
             {"Elements", "elements"}},
            {}};
  for (std::uint32_t i = 0; i < graph.parameters.size(); ++i) {
    const models::Parameter& parameter = graph.parameters[i];
    rows.rows.push_back({i, parameter.name, parameter.shape, parameter.elements});
  }
  return rows;
}

Rows gradient_rows(const LoweredModel& model) {
  Rows rows{{{"Production order", "production_index"},
             {"Parameter order", "parameter_index"},
             {"Name", "name", false},
             {"Elements", "elements"},
             {"Bytes", "bytes"},
             {"Share %", "cumulative_share_percent"},
             {"Kernel", "kernel"}},
            {}};
  std::uint64_t elements = 0;
  const auto total = static_cast<double>(model.graph.parameter_elements());
  for (std::uint32_t i = 0; i < model.program.gradients.size(); ++i) {
    const models::Gradient& gradient = model.program.gradients[i];
    elements += gradient.elements;
    rows.rows.push_back({i, gradient.parameter, gradient.name, gradient.elements,
                         gradient.elements * size_of(gradient.dtype), 100 * static_cast<double>(elements) / total,
                         gradient.kernel});
  }
  return rows;
}

std::string_view name_of(models::Phase phase) {
  if (phase == models::Phase::forward) return "forward";
  return phase == models::Phase::backward ? "backward" : "update";
}

std::string_view name_of(models::KernelClass kind) {
  if (kind == models::KernelClass::communication) return "communication";
  if (kind == models::KernelClass::host) return "host";
  if (kind == models::KernelClass::convolution) return "convolution";
  return kind == models::KernelClass::matmul ? "matmul" : "vector";
}

Rows kernel_rows(const LoweredModel& model) {
  Rows rows{{{"#", "kernel"},
             {"Name", "name", false},
             {"Phase", "phase", false},
             {"Class", "class", false},
             {"Type", "dtype", false},
             {"M", "m"},
             {"N", "n"},
             {"K", "k"},
             {"Groups", "groups"},
             {"FLOP", "flops"},
             {"Read B", "read_bytes"},
             {"Written B", "written_bytes"}},
            {}};
  for (std::uint32_t i = 0; i < model.program.kernels.size(); ++i) {
    const models::Kernel& kernel = model.program.kernels[i];
    const models::CubeWork& cube = kernel.cube;
    rows.rows.push_back({i, kernel.name, name_of(kernel.phase), name_of(kernel.kind), hcclsim::name_of(kernel.dtype),
                         cube.m, cube.n, cube.k, cube.m == 0 ? 0 : cube.groups,
                         static_cast<std::uint64_t>(kernel.flops), kernel.read, kernel.written});
  }
  if (model.times.empty()) return rows;
  rows.columns.push_back({"us", "time_us"});
  for (std::size_t i = 0; i < rows.rows.size(); ++i) rows.rows[i].emplace_back(model.times[i] / microsecond);
  return rows;
}

/// What describes a network in one screen; also the head of the other views.
Json summary_json(const LoweredModel& model) {
  using models::Phase;
  Json json{{"format_version", 1},
            {"model", model.graph.title},
            {"input", shape_of(model.graph.operators.front().shape())},
            {"batch", model.graph.batch()},
            {"amp", to_string(model.precision)},
            {"optimizer", models::name_of(model.optimizer)},
            {"parameters", model.graph.parameter_elements()},
            {"active_parameters", model.graph.active_parameter_elements()},
            {"parameter_tensors", model.graph.parameters.size()},
            {"gradient_bytes", model.gradient_bytes()},
            {"forward_flops", static_cast<std::uint64_t>(model.flops(Phase::forward))},
            {"backward_flops", static_cast<std::uint64_t>(model.flops(Phase::backward))},
            {"forward_kernels", model.count(Phase::forward)},
            {"backward_kernels", model.count(Phase::backward)},
            {"update_kernels", model.count(Phase::update)},
            {"activation_peak_bytes", models::peak_live_bytes(model.program)}};
  if (model.times.empty()) return json;
  json["forward_s"] = model.time(Phase::forward);
  json["backward_s"] = model.time(Phase::backward);
  json["update_s"] = model.time(Phase::update);
  return json;
}

std::string summary_text(const LoweredModel& model) {
  using models::Phase;
  const models::Graph& graph = model.graph;
  std::string text =
      fmt::format("{}, input {}, {}, {}\n", graph.title, models::to_string(graph.operators.front().shape()),
                  to_string(model.precision), models::name_of(model.optimizer));
  text +=
      fmt::format("Parameters  {} in {} tensors, gradients {:.2f} MB {}\n", with_thousands(graph.parameter_elements()),
                  graph.parameters.size(), static_cast<double>(model.gradient_bytes()) / 1e6,
                  hcclsim::name_of(model.program.gradients.front().dtype));
  const std::uint64_t active = graph.active_parameter_elements();
  if (active < graph.parameter_elements()) text += fmt::format("Active      {} for a token\n", with_thousands(active));
  text += fmt::format("GFLOP       forward {:.3f}, backward {:.3f}\n", model.flops(Phase::forward) / giga,
                      model.flops(Phase::backward) / giga);
  text += fmt::format("Kernels     {} = forward {}, backward {}, update {}\n", model.program.kernels.size(),
                      model.count(Phase::forward), model.count(Phase::backward), model.count(Phase::update));
  text += fmt::format("Activations {:.1f} MB at the peak\n",
                      static_cast<double>(models::peak_live_bytes(model.program)) / 1e6);
  if (model.times.empty()) return text;
  const auto ms = [&](Phase phase) { return model.time(phase) * 1e3; };
  return text + fmt::format("Time        FP {:.3f}, BP {:.3f}, update {:.3f} ms on one NPU\n", ms(Phase::forward),
                            ms(Phase::backward), ms(Phase::update));
}

/// The summary as a table of one row.
Rows summary_rows(const Json& summary) {
  Rows rows;
  rows.rows.emplace_back();
  for (const auto& [key, value] : summary.items()) {
    if (key == "format_version") continue;
    rows.columns.push_back({"", key});
    rows.rows.front().push_back(value);
  }
  return rows;
}

/// A table that is shown beside the summary: its option, its key in JSON.
struct View {
  const char* option;
  const char* key;
  const char* help;
  Rows (*rows)(const LoweredModel& model);
};
constexpr std::array<View, 4> views{
    {{"--operators", "layers", "Operators with shapes and FLOPs", layer_rows},
     {"--parameters", "parameter_list", "Parameters in parameter order (forward)", parameter_rows},
     {"--gradients", "gradients", "Gradients in production order (backward, HCCL)", gradient_rows},
     {"--kernels", "kernel_list", "Kernels as launched, the update at the end", kernel_rows}}};

struct ShowModel {
  models::ModelOptions model;
  PrecisionOptions precision{};
  std::string optimizer = "momentum";
  std::string fusion = "full";
  std::optional<bool> fused_attention{};  ///< unset: as the platform's NPUs have it; off without a platform
  std::string format = "text";
  std::string platform{};                  ///< empty: no times
  std::array<bool, views.size()> shown{};  ///< at most one
};

void show_model(const ShowModel& options) {
  const models::Precision precision = chosen_precision(options.precision);
  const models::Optimizer optimizer = models::parse_optimizer(options.optimizer);
  const models::Fusion fusion = models::parse_fusion(options.fusion);
  models::Graph graph = models::make_model(options.model);
  study::KernelTimes on_npu{.fused_attention = options.fused_attention.value_or(false), .times = {}};
  if (!options.platform.empty()) {
    const device::ProgramOptions how{.precision = precision,
                                     .fusion = fusion,
                                     .optimizer = optimizer,
                                     .gradient_type = precision.gradient,
                                     .fused_attention = options.fused_attention};
    on_npu = study::kernel_times({.file = options.platform}, graph, how);
  }
  models::Program program =
      models::lower(graph, {.precision = precision, .fusion = fusion, .fused_attention = on_npu.fused_attention});
  models::add_updates(program, {.precision = precision, .optimizer = optimizer});
  const LoweredModel model{std::move(graph), std::move(program), precision, optimizer, std::move(on_npu.times)};
  const auto chosen = std::find(options.shown.begin(), options.shown.end(), true) - options.shown.begin();
  const View* const view = chosen == std::ssize(views) ? nullptr : &views.at(static_cast<std::size_t>(chosen));
  if (options.format == "csv") {
    print(to_csv(view == nullptr ? summary_rows(summary_json(model)) : view->rows(model)));
  } else if (options.format == "json") {
    Json json = summary_json(model);
    if (view != nullptr) json[view->key] = to_json(view->rows(model));
    print(json.dump(2) + '\n');
  } else {
    print(summary_text(model));
    if (view != nullptr) print('\n' + to_text(view->rows(model)));
  }
}

void list_models(const std::string& format) {
  Rows rows{{{"Name", "name", false}, {"Network", "title", false}, {"What", "note", false}}, {}};
  for (const models::ModelInfo& info : models::model_list()) rows.rows.push_back({info.name, info.title, info.note});
  if (format == "json") {
    print(Json{{"format_version", 1}, {"models", to_json(rows)}}.dump(2) + '\n');
  } else {
    print(format == "csv" ? to_csv(rows) : to_text(rows));
  }
}

}  // namespace

void add_models_command(Command& app) {
  app.add_command("models", "The networks, their gradients and kernels", [](Command& models) {
    models.require_command();
    models.footer(
        "Examples:\n"
        "  hcclsim models list\n"
        "  hcclsim models show resnet50 --gradients  in production order\n"
        "  hcclsim models show resnet50 --kernels --platform atlas800t-a2 --format csv");

    Command& listed = models.add_command("list", "List the networks");
    const auto list_format = std::make_shared<std::string>("text");
    add_format_option(listed, *list_format, {"text", "json", "csv"});
    listed.on_run([list_format] { list_models(*list_format); });

    Command& shown = models.add_command("show", "Show one network, or one of its tables");
    const auto options = std::make_shared<ShowModel>();
    shown.add("NETWORK", text(options->model.name), "One of `models list`, or a file *.onnx").required();
    shown.add("--batch", whole_number(options->model.batch), "Samples per step on one NPU").with_default();
    add_model_size_options(shown, options->model);
    add_precision_options(shown, options->precision);
    shown.add("--optimizer", text(options->optimizer), "Optimizer whose update kernels are shown").with_default();
    shown.add("--fusion", text(options->fusion), "Kernel fusion: full or none").with_default();
    shown.add("--fused-attention", on_off(options->fused_attention), "Attention as one kernel [off; A2, A3 on]");
    shown.add("--platform", read_file(options->platform),
              "Also how long the kernels take on its NPUs: a platform file, or the name of a shipped one");
    shown.get("--layers").without_value("the table of layers is that of --operators");
    Command& tables = shown.add_alternatives("Table");
    for (std::size_t i = 0; i < views.size(); ++i) tables.add(views[i].option, flag(options->shown[i]), views[i].help);
    add_format_option(shown, options->format, {"text", "json", "csv"});
    shown.on_run([options] { show_model(*options); });
  });
}

}  // namespace hcclsim::cli
