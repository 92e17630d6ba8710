#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <utility>

#include "base/input_file.hpp"
#include "models/zoo/sizes_by_name.hpp"
#include "study/files/foreign/emit/megatron_plan.hpp"
#include "study/files/foreign/fsdp2/fsdp2.hpp"
#include "study/files/foreign/megatron/megatron.hpp"
#include "study/files/foreign/megatron/network.hpp"

namespace hcclsim::study {
namespace {

/// A word as a shell takes it.
std::string quoted(const std::string& word) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:@%${}";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
  // What only running the script tells stays so.
  if (word.find('$') != std::string::npos && word.find('"') == std::string::npos) return '"' + word + '"';
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

std::string argument_text(const std::string& name, const std::vector<std::string>& words) {
  std::string text = "--" + name;
  for (const std::string& word : words) text += " " + quoted(word);
  return text;
}

/// What a script has, and what of it a run is made of.
struct ReadScript {
  std::string program = "pretrain_gpt.py";
  Arguments arguments{};
  ScriptLayers layers{};
  std::optional<std::uint64_t> ranks{};  ///< of the launcher
  std::string launcher{};                ///< words before the program; empty: a new one
  std::map<std::string, std::string> environment{};
};

/// Whether programs read a variable, and not the script alone.
bool is_of_environment(const std::string& name) {
  constexpr std::array<std::string_view, 16> beginnings{
      "HCCL_",        "ASCEND_", "PYTORCH_",  "CUDA_", "TASK_QUEUE", "CPU_AFFINITY", "NPU",    "STREAMS_PER",
      "MULTI_STREAM", "ACL",     "COMBINED_", "OMP_",  "MASTER_",    "NODE_RANK",    "NNODES", "WORLD_SIZE"};
  return std::ranges::any_of(beginnings, [&](std::string_view part) { return name.starts_with(part); });
}

ReadScript read_script(const std::string& file, const std::vector<std::string>& ignored) {
  const std::string text = read_text_file(file, "foreign");
  MappingWriter writer("Megatron", file, ignored);
  MegatronArguments arguments(read_shell_script(text, file, files_beside(file)), text, writer);
  const MegatronNetwork network = find_megatron_network(arguments);
  const std::uint64_t idle = arguments.idle_layers().size();
  ReadScript script{.program = arguments.program()};
  script.layers = {.layers = (arguments.at_least_one("num-layers") - idle) * network.layers_of_one,
                   .of_script = network.layers_of_one,
                   .pairs = arguments.has("is-pairwise-dataset") || arguments.text("stage") == "dpo"};
  script.ranks = arguments.launch().ranks;
  for (const std::string& word : arguments.launcher()) script.launcher += quoted(readable(word)) + " ";
  for (const auto& [name, value] : arguments.variables()) {
    if (is_of_environment(name)) script.environment[name] = readable(value);
  }
  for (const auto& [name, words] : arguments.all()) {
    std::vector<std::string>& own = script.arguments[name];
    std::ranges::transform(words, std::back_inserter(own), [](const std::string& word) { return readable(word); });
  }
  return script;
}

ReadScript new_script(const EmittedRun& run) {
  ReadScript script;
  const models::ModelOptions& model = run.spec.model;
  script.layers.pairs = model.reference.value_or(false);
  set_megatron_training(script.arguments, run);
  const auto decoder = models::decoder_of(model);
  script.layers.layers = decoder.has_value() ? decoder->layers : models::gpt_of(model)->layers;
  return script;
}

/// As comments: arguments that have another value, are new, or are there no more.
std::string changes_text(const std::string& file, const Arguments& before, const Arguments& after) {
  std::string text;
  const auto add = [&](const std::string& line) { text += "#   " + line + "\n"; };
  for (const auto& [name, words] : after) {
    const auto former = before.find(name);
    if (former == before.end()) {
      add(argument_text(name, words) + " is new");
    } else if (former->second != words) {
      add(argument_text(name, words) + " was " + argument_text(name, former->second));
    }
  }
  for (const auto& [name, words] : before) {
    if (!after.contains(name)) add(argument_text(name, words) + " goes");
  }
  const std::string script = file.substr(file.rfind('/') + 1);
  return text.empty() ? "# The arguments of " + script + " as they are.\n" : "# Changes of " + script + ":\n" + text;
}

class ScriptText {
 public:
  ScriptText(const EmittedRun& run, ReadScript script) : run_(run), script_(std::move(script)) {}

  [[nodiscard]] Arguments& arguments() { return script_.arguments; }

  [[nodiscard]] std::string text(const std::string& comments) const {
    std::map<std::string, std::string> environment = script_.environment;
    for (const hccl::HcclSetting& setting : run_.spec.platform.hccl_settings)
      environment[setting.variable] = setting.value;
    std::string text = "#!/bin/bash\n" + comments;
    for (const auto& [name, value] : environment) text += fmt::format("export {}={}\n", name, quoted(value));
    text += launcher() + script_.program;
    for (const auto& [name, words] : script_.arguments) text += " \\\n  " + argument_text(name, words);
    return text + "\n";
  }

 private:
  /// That of the script, where it starts as many ranks.
  [[nodiscard]] std::string launcher() const {
    if (!script_.launcher.empty() && script_.ranks == run_.npus) return script_.launcher;
    const std::uint32_t of_node = std::min<Rank>(run_.npus, run_.of_server);
    const std::string nodes =
        run_.npus > of_node ? " --node_rank $NODE_RANK --master_addr $MASTER_ADDR --master_port $MASTER_PORT" : "";
    return fmt::format("torchrun --nnodes {} --nproc_per_node {}{} ", run_.npus / of_node, of_node, nodes);
  }

  const EmittedRun& run_;
  ReadScript script_;
};

/// Arguments that say nothing without one that is not there.
std::set<std::string> idle_arguments(const std::string& text, const std::string& file,
                                     const std::vector<std::string>& ignored) {
  std::set<std::string> idle;
  for (const UnmappedKey& key : map_megatron_text(text, file, ignored, files_beside(file)).without_effect) {
    if (!key.reason.starts_with("without --") || !key.source.starts_with("--")) continue;
    idle.insert(key.source.substr(2, key.source.find(' ') - 2));
  }
  return idle;
}

/// Adds switches whose absence would leave something out: "no --use-fused-rmsnorm".
void add_missed(ScriptText& script, const std::string& file) {
  constexpr std::string_view missed = "no --";
  // A switch that is on may need another one.
  for (int round = 0; round < 3; ++round) {
    const ForeignMapping mapping = map_megatron_text(script.text(""), file, {});
    bool added = false;
    for (const UnmappedKey& key : mapping.left_out) {
      if (!key.source.starts_with(missed)) continue;
      added |= script.arguments().try_emplace(key.source.substr(missed.size())).second;
    }
    if (!added) return;
  }
}

}  // namespace

std::string megatron_script(const EmittedRun& run, const std::string& script, const std::vector<std::string>& ignored) {
  if (script.empty()) {
    ReadScript made = new_script(run);
    made.environment = {{"CUDA_DEVICE_MAX_CONNECTIONS", "1"}, {"HCCL_CONNECT_TIMEOUT", "1800"}};
    set_megatron_plan(made.arguments, run, made.layers);
    ScriptText text(run, std::move(made));
    add_missed(text, "plan.sh");
    return text.text(
        "# The network, its step and its plan; data, tokenizer, learning rate and iterations are to be added.\n" +
        run.comments);
  }
  ReadScript read = read_script(script, ignored);
  const Arguments before = read.arguments;
  set_megatron_plan(read.arguments, run, read.layers);
  ScriptText text(run, std::move(read));
  const std::set<std::string> were_idle = idle_arguments(read_text_file(script, "foreign"), script, ignored);
  for (const std::string& name : idle_arguments(text.text(""), script, ignored)) {
    if (!were_idle.contains(name)) text.arguments().erase(name);
  }
  return text.text(changes_text(script, before, text.arguments()) + run.comments);
}

}  // namespace hcclsim::study
