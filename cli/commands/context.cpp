#include <fmt/format.h>

#include <memory>
#include <string>

#include "base/json.hpp"
#include "cli/commands/commands.hpp"
#include "cli/options/parse/common.hpp"
#include "cli/options/parse/origins.hpp"
#include "cli/options/training/context_options.hpp"
#include "cli/terminal/output.hpp"
#include "study/files/context/auto_parallel_context.hpp"

namespace hcclsim::cli {
namespace {

struct ContextCommand {
  ContextOptions context{};
  std::string key{};
  std::string format = "text";
};

std::string notes_of(const study::AutoParallelContext& context) {
  std::string text;
  for (const std::string& warning : context.warnings()) text += fmt::format("Note: {}\n", warning);
  return text;
}

void show_context(const ContextCommand& command, const study::AutoParallelContext& context) {
  const std::string shared = context.compat() ? context.shared_fusion_mode() : "";
  if (command.format == "json") {
    Json options = Json::object();
    for (const study::ContextOption& option : study::context_options()) {
      options.append(std::string(option.key),
                     Json::object({{"value", json_of(context.get(option.key))},
                                   {"set", context.is_set(option.key)},
                                   {"acts", option.acts_in.has(context.text("parallel_mode"))}}));
    }
    Json json{{"graph_mode", context.graph_mode()},
              {"compat", context.compat() ? Json("mindspore-2.3") : Json(nullptr)}};
    json.append("options", std::move(options));
    if (!shared.empty()) json.append("fusion_mode", shared);
    json.append("warnings", Json(context.warnings()));
    print(json.dump(2) + '\n');
    return;
  }
  Table table("<option|<value|<from");
  for (const study::ContextOption& option : study::context_options()) {
    const bool acts = option.acts_in.has(context.text("parallel_mode"));
    table.add_row({std::string(option.key), to_string(context.get(option.key)),
                   fmt::format("{}{}", context.is_set(option.key) ? "set" : "default",
                               acts ? "" : fmt::format(", without effect in {}", context.text("parallel_mode")))});
  }
  std::string text = fmt::format("{} mode{}\n", context.graph_mode() ? "Graph" : "PyNative",
                                 context.compat() ? ", as MindSpore 2.3" : "");
  text += table.to_string("  ");
  if (!shared.empty()) text += fmt::format("Mode of fusion that all kinds of collectives share: {}\n", shared);
  print(text + notes_of(context));
}

void get_option(const ContextCommand& command, const study::AutoParallelContext& context) {
  const study::Literal value = context.read(command.key);
  print((command.format == "json" ? json_of(value).dump() : to_string(value)) + '\n');
}

void add_command(Command& parent, const char* name, const char* what, bool of_key,
                 void (*work)(const ContextCommand&, const study::AutoParallelContext&)) {
  Command& command = parent.add_command(name, what);
  const auto options = std::make_shared<ContextCommand>();
  if (of_key) command.add("KEY", text(options->key), "Name of an option").value_name("TEXT").required();
  add_context_options(command, options->context, true);
  command.begin_group("What is printed");
  add_format_option(command, options->format, {"text", "json"});
  command.footer(
      fmt::format("Examples:\n"
                  "  hcclsim context {}--pipeline-stages 4 --comm-fusion \"{{'openstate': False}}\"",
                  of_key ? "get comm_fusion " : "show "));
  command.on_run([&command, options, work] {
    const OptionOrigins origins(command, {});
    work(*options, merged_context(origins, options->context, {}));
  });
}

}  // namespace

void add_context_command(Command& app) {
  Command& context = app.add_command("context", "MindSpore's auto-parallel context: what its options are");
  context.require_command();
  context.footer(
      "Examples:\n"
      "  hcclsim context show --parallel-mode semi_auto_parallel --full-batch True\n"
      "  hcclsim context get parallel_mode --pipeline-stages 4");
  add_command(context, "show", "Print all options, as a file and the command line leave them", false, show_context);
  add_command(context, "get", "Print one of them, as get_auto_parallel_context returns it", true, get_option);
}

}  // namespace hcclsim::cli
