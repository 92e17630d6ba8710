#include "study/files/foreign/fsdp2/fsdp2.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "base/text.hpp"
#include "models/zoo/sizes_by_name.hpp"
#include "study/files/foreign/launcher.hpp"
#include "study/files/yaml.hpp"

namespace hcclsim::study {
namespace {

constexpr std::string_view program_name = "train_fsdp2.py";

/// A key and where it stands.
struct Setting {
  std::string value;
  std::uint32_t line = 0;
};

/// Of "section.key", those of the file and of the command line.
using Settings = std::map<std::string, Setting>;

/// What becomes of a key that no code below asks for; of "a.*" all that begin so.
struct KeyEffect {
  std::string_view key;
  bool left_out;  ///< the simulated step differs; else the key has no effect on a step
  std::string_view reason;
  std::string_view off{};  ///< a value that switches it off
};

constexpr std::string_view other_data = "which samples are read does not change a step";
constexpr std::string_view one_kernel = "it is one kernel here";
constexpr std::string_view in_bf16 =
    "products are timed in bf16; in 8 bits they take about half, so that the step is slower than the real one";
constexpr std::array<KeyEffect, 35> effects{{
    {"parallel.tp_size", true, "operators are not shared", "1"},
    {"parallel.fsdp_modules", false, "every layer, the table of tokens and the logits are gathered by themselves"},
    {"parallel.ignored_modules", true, "modules that all ranks keep whole are shared here: a little less memory", ""},
    {"parallel.hook_modules", false, "modules that are gathered before others"},
    {"parallel.recompute_modules", false, "whole layers are computed again"},
    {"parallel.ep_modules", false, "experts are shared as wholes"},
    {"parallel.ep_fsdp_modules", false, "weights of experts are shared by ranks with the same ones"},
    {"parallel.ep_dispatcher", true,
     "rows go to their experts by all-to-alls; in one kernel with the permutation they take less time, so that the "
     "step "
     "is slower than the real one",
     "eager"},
    {"parallel.efsdp_shard_placement_fn", false, "the axis along which weights are cut"},
    {"parallel.num_to_forward_prefetch", true, "weights of one layer ahead are gathered", "1"},
    {"parallel.num_to_backward_prefetch", true, "weights of one layer ahead are gathered", "1"},
    {"parallel.reshard_after_forward", true,
     "weights are gathered again for the backward pass, so that the step is slower than the real one and takes less "
     "memory",
     "True"},
    {"parallel.param_dtype", true, "weights are gathered in bf16", "bf16"},
    {"parallel.fsdp_implementation", false, "who gathers the weights"},
    {"parallel.enable_chunk_batch", true, "the samples of a rank go through a layer at once", "False"},
    {"parallel.chunk_mbs", true, "the samples of a rank go through a layer at once"},
    {"data.packing", false, "samples lie behind each other in rows, as here"},
    {"data.reset_attention_mask", true,
     "each token sees its whole row; within its document there is less to compute, so that the step is slower than the "
     "real one",
     "False"},
    {"data.*", false, other_data},
    {"model.enable_fsdp_low_precision_all_gather", true, "weights are gathered in bf16, twice the bytes of 8 bits",
     "False"},
    {"model.quant_converters", true, in_bf16},
    {"model.quant_recipe_name", true, in_bf16},
    {"model.router_aux_loss_coef", true, "small kernels of a router are left out, so that the step is a little faster"},
    {"model.fix_router", false, "experts are used evenly, as with --moe-imbalance 0"},
    {"model.*", false, "how the weights of the start are found"},
    {"training.optimizer", true,
     "each weight is updated in one kernel; adamw of PyTorch takes about twelve, so that the step is faster than the "
     "real "
     "one",
     "fused_adamw"},
    {"training.logging_steps", true,
     "the host does not wait for the loss of every step, so that the step is faster than the real one, by some 15 ms"},
    {"training.stage", false, "a step of tuning is one of training with other data"},
    {"training.*", false, "it changes no kernel of a step"},
    {"optimization.chunk_loss_size", true,
     "logits and loss are computed at once, not in parts: more memory is accounted than is taken", "0"},
    {"optimization.use_fused_rmsnorm", true, "a norm is one kernel here, not eight, so that the step is faster",
     "True"},
    {"optimization.use_fused_rotary_pos_emb", true,
     "positions are turned in one kernel per tensor, not in five, so that the step is faster", "True"},
    {"optimization.moe_grouped_gemm", true,
     "experts of a rank are one product here; one for each takes longer, so that the step is faster than the real one",
     "True"},
    {"optimization.*", false, one_kernel},
    {"parallel.*", false, "it changes no transfer of a step"},
}};

/// True of "True" and "true".
bool is_on(const std::string& value) { return in_lower_case(value) == "true"; }

class Fsdp2Mapping {
 public:
  Fsdp2Mapping(const ShellScript& script, const ShellCommand& command, const std::string& file,
               std::vector<std::string> ignored, const ShellFiles& files)
      : writer_("MindSpeed-LLM FSDP2", file, std::move(ignored)), line_(command.line) {
    const std::size_t program = *program_of(command);
    read_file(command, program, files);
    read_words(command, program);
    launch_ = read_launcher({command.words.begin(), command.words.begin() + static_cast<std::ptrdiff_t>(program)},
                            script.variables);
  }

  /// Of a YAML that no script starts.
  Fsdp2Mapping(const std::string& text, const std::string& file, std::vector<std::string> ignored)
      : writer_("MindSpeed-LLM FSDP2", file, std::move(ignored)), line_(1) {
    read_yaml(text, file);
    if (settings_.contains("parallel.fsdp_size") || settings_.contains("model.model_name_or_path")) return;
    writer_.fail(1,
                 "is no script that starts Megatron, and no YAML of FSDP2: it has neither parallel.fsdp_size nor "
                 "model.model_name_or_path");
  }

  ForeignMapping run() && {
    map_network();
    map_launch(writer_, launch_, line_);
    map_sharing();
    map_batches();
    map_types();
    map_rest();
    return std::move(writer_).finish();
  }

 private:
  // Settings.
  // ----------------------------------------------------------------------------------------------------------

  void read_file(const ShellCommand& command, std::size_t program, const ShellFiles& files) {
    const auto word =
        std::find_if(command.words.begin() + static_cast<std::ptrdiff_t>(program), command.words.end(),
                     [](const std::string& each) { return each.ends_with(".yaml") || each.ends_with(".yml"); });
    if (word == command.words.end()) writer_.fail(line_, "{} reads a YAML file, and none is named", program_name);
    const std::string path = readable(*word);
    const std::optional<std::string> text = files ? files(path) : std::nullopt;
    if (!text.has_value()) {
      writer_.fail(line_, "{} is not there; it holds most of what {} trains: put it beside the script", path,
                   program_name);
    }
    read_yaml(*text, path);
  }

  void read_yaml(const std::string& text, const std::string& path) {
    file_name_ = path.substr(path.rfind('/') + 1);
    const YamlNode root = parse_yaml(text, path, "foreign");
    for (const YamlMember& section : root.members) {
      for (const YamlMember& key : section.value.members) {
        const bool scalar = key.value.kind == YamlNode::Kind::scalar;
        settings_[section.key + "." + key.key] = {scalar ? key.value.text : "", key.line};
      }
    }
  }

  /// "--section.key value" or "--section.key=value".
  void read_words(const ShellCommand& command, std::size_t program) {
    for (std::size_t i = program + 1; i < command.words.size(); ++i) {
      const std::string& word = command.words[i];
      if (!word.starts_with("--")) continue;
      const std::size_t mark = word.find('=');
      const bool joined = mark != std::string::npos;
      const bool follows = !joined && i + 1 < command.words.size() && !command.words[i + 1].starts_with("--");
      settings_[word.substr(2, joined ? mark - 2 : mark)] = {joined    ? word.substr(mark + 1)
                                                             : follows ? readable(command.words[i + 1])
                                                                       : "True",
                                                             line_};
    }
  }

  [[nodiscard]] const Setting* find(const std::string& key) {
    read_.insert(key);
    const auto found = settings_.find(key);
    return found == settings_.end() ? nullptr : &found->second;
  }

  [[nodiscard]] std::string text(const std::string& key, const std::string& otherwise) {
    const Setting* const setting = find(key);
    return setting == nullptr ? otherwise : setting->value;
  }

  [[nodiscard]] std::uint64_t whole(const std::string& key, std::uint64_t otherwise) {
    const Setting* const setting = find(key);
    if (setting == nullptr) return otherwise;
    const std::uint64_t value = parse_number<std::uint32_t>(setting->value).value_or(0);
    if (value == 0) writer_.fail(setting->line, "{} is '{}', must be a whole number from 1", key, setting->value);
    return value;
  }

  [[nodiscard]] std::string source(const std::string& key) const {
    const auto found = settings_.find(key);
    return found == settings_.end() ? key + " not given" : key + " " + found->second.value;
  }

  void set(const std::string& key, std::string_view option, std::string value) {
    const auto found = settings_.find(key);
    writer_.set(source(key), option, std::move(value), found == settings_.end() ? line_ : found->second.line);
  }

  // What they say.
  // -----------------------------------------------------------------------------------------------------

  void map_network() {
    const std::string weights = text("model.model_name_or_path", "");
    std::string from = "model.model_name_or_path " + weights;
    std::optional<NamedNetwork> network = network_named(weights);
    for (const std::string& name : {file_name_, writer_.file().substr(writer_.file().rfind('/') + 1)}) {
      if (network.has_value()) break;
      network = network_named(name);
      from = "the name of " + name;
    }
    if (!network.has_value()) {
      writer_.fail(line_,
                   "which network it trains stands in the config.json of '{}', and no network of 'hcclsim models list' "
                   "is called so; --model and its sizes with the options of --megatron's mapping say it instead",
                   weights);
    }
    writer_.set(from, "model", std::string(network->model), line_);
    if (network->layers.has_value()) writer_.set(from, "layers", std::to_string(*network->layers), line_);
    set("data.cutoff_len", "sequence", std::to_string(whole("data.cutoff_len", 4096)));
    const auto sizes = models::decoder_of({.name = std::string(network->model)});
    if (sizes.has_value() && sizes->experts.has_value())
      writer_.set("no capacity of experts", "moe-capacity", "dropless", line_);
  }

  void map_sharing() {
    const std::uint64_t world = launch_.ranks.value_or(0);
    const std::uint64_t shards = whole("parallel.fsdp_size", std::max<std::uint64_t>(1, world));
    if (world > 0 && world % shards != 0)
      writer_.fail(line_, "parallel.fsdp_size {} does not divide the {} ranks", shards, world);
    set("parallel.fsdp_size", "optimizer-parallel",
        shards == world || world == 0 ? "zero3" : fmt::format("zero3:shard={}", shards));
    sharing_ = whole("parallel.cp_size", 1);
    const std::string kind = text("parallel.cp_type", "ulysses");
    if (sharing_ > 1) {
      set("parallel.cp_size", "context-parallel", std::to_string(sharing_));
      set("parallel.cp_type", "context-kind", kind == "ulysses" ? "ulysses" : "ring");
      if (kind != "ulysses" && kind != "ring")
        writer_.leave_out(
            source("parallel.cp_type"),
            "keys and values go round a ring; gathered before the attention nothing hides them, so that the "
            "step is faster than the real one");
    }
    const std::uint64_t experts = whole("parallel.ep_size", 1);
    const std::uint64_t copies =
        whole("parallel.ep_fsdp_size", world > 0 ? std::max<std::uint64_t>(1, world / experts) : 1);
    if (experts > 1 && world > 0 && experts * copies != world && copies > 1)
      writer_.fail(line_, "parallel.ep_size {} x parallel.ep_fsdp_size {} are not {} ranks", experts, copies, world);
    if (experts > 1) set("parallel.ep_size", "expert-parallel", std::to_string(experts));
    if (is_on(text("parallel.recompute", "False"))) set("parallel.recompute", "recompute", "full");
  }

  void map_batches() {
    const std::uint64_t samples = whole("training.per_device_train_batch_size", 1);
    const std::uint64_t steps = whole("training.gradient_accumulation_steps", 1);
    set("training.per_device_train_batch_size", "micro-batch-size", std::to_string(samples));
    if (!launch_.ranks.has_value()) {
      set("training.gradient_accumulation_steps", "accumulate", std::to_string(steps));
      return;
    }
    const std::uint64_t replicas = *launch_.ranks / sharing_;
    writer_.set(
        fmt::format("{}, {}, {} ranks with samples of their own", source("training.per_device_train_batch_size"),
                    source("training.gradient_accumulation_steps"), replicas),
        "global-batch", std::to_string(samples * steps * replicas), line_);
  }

  void map_types() {
    writer_.set("parameters in fp32, products in bf16", "compute-dtype", "bf16", line_);
    const std::string reduced = text("parallel.reduce_dtype", "fp32");
    set("parallel.reduce_dtype", "grad-dtype", reduced == "bf16" ? "bf16" : "fp32");
    writer_.set("training.optimizer", "optimizer", "adamw", line_);
    const double norm = parse_number<double>(text("training.max_grad_norm", "0")).value_or(0);
    if (norm > 0) set("training.max_grad_norm", "clip-norm", fmt::format("{}", norm));
    const bool fused = is_on(text("optimization.use_flash_attn", "True"));
    set("optimization.use_flash_attn", "fused-attention", fused ? "on" : "off");
  }

  /// All that no code above has asked for, by the table.
  void map_rest() {
    for (const auto& entry : settings_) {
      const std::string& key = entry.first;
      const Setting& setting = entry.second;
      if (read_.contains(key)) continue;
      const auto fits = [&](const KeyEffect& effect) {
        return effect.key == key ||
               (effect.key.ends_with('*') && key.starts_with(effect.key.substr(0, effect.key.size() - 1)));
      };
      const auto effect = std::ranges::find_if(effects, fits);
      if (effect == effects.end()) {
        writer_.refuse(key, source(key), "no key of MindSpeed-LLM's FSDP2 that is known", setting.line);
      } else if (effect->left_out && !(setting.value == effect->off && !effect->off.empty())) {
        writer_.leave_out(source(key), std::string(effect->reason));
      } else {
        writer_.no_effect(source(key), effect->left_out ? "it is what is simulated" : std::string(effect->reason));
      }
    }
  }

  MappingWriter writer_;
  std::uint32_t line_;
  Launch launch_;
  std::string file_name_;  ///< of the YAML, without folders
  Settings settings_;
  std::set<std::string> read_;
  std::uint64_t sharing_ = 1;  ///< ranks that share positions
};

/// nullptr if the last program that trains is another one.
const ShellCommand* fsdp2_command(const ShellScript& script) {
  const ShellCommand* last = nullptr;
  for (const ShellCommand& command : script.commands) {
    const std::optional<std::size_t> program = program_of(command);
    if (program.has_value() && command.words[*program].ends_with(program_name)) last = &command;
  }
  return last;
}

}  // namespace

ForeignMapping map_fsdp2_yaml(const std::string& text, const std::string& file,
                              const std::vector<std::string>& ignored) {
  return Fsdp2Mapping(text, file, ignored).run();
}

bool starts_fsdp2(const ShellScript& script) { return fsdp2_command(script) != nullptr; }

ForeignMapping map_fsdp2(const ShellScript& script, const std::string& file, const std::vector<std::string>& ignored,
                         const ShellFiles& files) {
  return Fsdp2Mapping(script, *fsdp2_command(script), file, ignored, files).run();
}

}  // namespace hcclsim::study
