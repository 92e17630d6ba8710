#include "study/files/foreign/mindformers_keys.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <limits>
#include <set>

#include "base/text.hpp"

namespace hcclsim::study {

namespace {
using Kind = YamlNode::Kind;
}  // namespace

bool is_true(const YamlNode& node) { return node.text == "True" || node.text == "true" || node.text == "TRUE"; }
bool is_false(const YamlNode& node) { return node.text == "False" || node.text == "false" || node.text == "FALSE"; }

/// "[1, 2]", "True" or "'text'": as Python writes it.
std::string literal(const YamlNode& node) {
  if (node.kind == Kind::null) return "None";
  if (node.kind == Kind::list) {
    std::string text;
    for (const YamlNode& item : node.items) text += (text.empty() ? "" : ", ") + literal(item);
    return "[" + text + "]";
  }
  if (node.kind == Kind::map) {
    std::string text;
    for (const YamlMember& member : node.members)
      text += fmt::format("{}'{}': {}", text.empty() ? "" : ", ", member.key, literal(member.value));
    return "{" + text + "}";
  }
  if (is_true(node)) return "True";
  if (is_false(node)) return "False";
  return node.plain && parse_number<double>(node.text).has_value() ? node.text : "'" + node.text + "'";
}

std::string tuple_literal(const YamlNode& node) {
  if (node.kind != Kind::list) return literal(node);
  std::string text;
  for (const YamlNode& item : node.items) text += (text.empty() ? "" : ", ") + tuple_literal(item);
  return "(" + text + (node.items.size() == 1 ? ",)" : ")");
}

std::string source(std::string_view path, const YamlNode& node) {
  return fmt::format("{} {}", path, node.kind == Kind::scalar ? node.text : literal(node));
}

const YamlNode* MindformersKeys::find(std::string_view section, std::string_view key, std::string_view inner) {
  const YamlNode* node = &root_;
  std::string path;
  for (const std::string_view part : {section, key, inner}) {
    if (part.empty()) break;
    if (node->kind != Kind::map) return nullptr;
    const YamlMember* const member = node->find(part);
    if (member == nullptr) return nullptr;
    path += (path.empty() ? "" : ".") + std::string(part);
    node = &member->value;
  }
  read_.insert(path);
  return node;
}

std::optional<std::uint64_t> MindformersKeys::whole(std::string_view section, std::string_view key) {
  const YamlNode* const node = find(section, key);
  if (node == nullptr || node->kind == Kind::null) return std::nullopt;
  return whole_of(*node, fmt::format("{}.{}", section, key));
}
std::uint64_t MindformersKeys::whole_of(const YamlNode& node, std::string_view path, std::uint64_t least) {
  // "8.0" is a whole number too.
  const std::string_view text = node.text;
  const std::string_view whole = text.ends_with(".0") ? text.substr(0, text.size() - 2) : text;
  const auto value = node.kind == Kind::scalar ? parse_number<std::int64_t>(whole) : std::nullopt;
  constexpr std::int64_t most = std::numeric_limits<std::uint32_t>::max();
  if (!value.has_value()) writer_.fail(node.line, "{} is {}, must be a whole number", path, literal(node));
  if (*value < static_cast<std::int64_t>(least) || *value > most)
    writer_.fail(node.line, "{} is {}, must be {} or more{}", path, *value, least,
                 *value > most ? fmt::format(", and at most {}", most) : "");
  return static_cast<std::uint64_t>(*value);
}
std::uint64_t MindformersKeys::at_least_one(std::string_view section, std::string_view key) {
  const YamlNode* const node = find(section, key);
  if (node == nullptr || node->kind == Kind::null) return 1;
  return whole_of(*node, fmt::format("{}.{}", section, key), 1);
}
bool MindformersKeys::truth(std::string_view section, std::string_view key, bool otherwise) {
  const YamlNode* const node = find(section, key);
  return node == nullptr
             ? otherwise
             : truth_of(*node, key.empty() ? std::string(section) : fmt::format("{}.{}", section, key), otherwise);
}
bool MindformersKeys::truth_of(const YamlNode& node, std::string_view path, bool otherwise) {
  if (node.kind == Kind::null || node.text == "None") return otherwise;
  if (!is_true(node) && !is_false(node))
    writer_.fail(node.line, "{} is {}, must be True or False", path, literal(node));
  return is_true(node);
}
std::string MindformersKeys::parallel_mode() {
  static constexpr std::array modes{"data_parallel", "semi_auto_parallel", "auto_parallel", "hybrid_parallel"};
  const YamlNode* const node = find("parallel", "parallel_mode");
  if (node == nullptr) return {};
  std::string word = in_lower_case(node->text);
  if (word == "stand_alone" || word == "manual_parallel") return "stand_alone";
  if (std::ranges::find(modes, word) != modes.end()) return word;
  const auto number = parse_number<std::size_t>(word);
  if (!number.has_value() || *number >= modes.size()) {
    writer_.fail(node->line,
                 "{}: accepted: 0 (data_parallel), 1 (semi_auto_parallel), 2 (auto_parallel), 3 (hybrid_parallel), "
                 "stand_alone",
                 source("parallel.parallel_mode", *node));
  }
  return modes.at(*number);
}

void MindformersKeys::note_other(const std::string& path, const YamlMember& member) {
  // Of searches of strategies, of generating text, of profiles and tokenizers.
  static constexpr std::array harmless{"auto_map",       "kernel_launch_group", "per_epoch_size", "eod_token_id",
                                       "max_new_tokens", "num_block",           "profiler_level", "top_k"};
  static constexpr std::array switches{"auto_pipeline", "recompute", "recompute_slice_activation",
                                       "parallel_optimizer_comm_recompute"};
  const std::string from = source(path, member.value);
  if (std::ranges::find(harmless, member.key) != harmless.end())
    writer_.no_effect(from, no_effect_text);
  else if (is_false(member.value) && std::ranges::find(switches, member.key) != switches.end())
    writer_.no_effect(from, "it is off");
  else if (member.key == "mp_comm_recompute" && is_true(member.value))
    writer_.no_effect(from, "the default");
  else if (member.key == "mem_coeff")
    writer_.leave_out(from, "a search of strategies has MindSpore's own weight of memory");
  else
    writer_.refuse(member.key, from, unknown_text, member.line);
}

std::uint32_t MindformersKeys::line_of(std::string_view section, std::string_view key) {
  const YamlNode* const node = find(section, key);
  return node == nullptr ? root_.line : node->line;
}

bool is_mapped_of_parallel_config(std::string_view key) {
  static const std::set<std::string_view> known{"data_parallel",        "model_parallel",
                                                "pipeline_stage",       "context_parallel",
                                                "expert_parallel",      "micro_batch_num",
                                                "use_seq_parallel",     "vocab_emb_dp",
                                                "optimizer_shard",      "gradient_aggregation_group",
                                                "ulysses_degree_in_cp", "context_parallel_algo"};
  return known.contains(key);
}

bool is_switch_of_parallel_config(std::string_view key) {
  static const std::set<std::string_view> switches{"seq_split_num",
                                                   "npu_nums_per_device",
                                                   "recompute",
                                                   "select_recompute",
                                                   "tp_x",
                                                   "tp_y",
                                                   "tp_z",
                                                   "pipeline_interleave",
                                                   "mp_comm_recompute",
                                                   "expert_model_parallel",
                                                   "use_3d_tensor_parallel"};
  return switches.contains(key);
}

}  // namespace hcclsim::study
