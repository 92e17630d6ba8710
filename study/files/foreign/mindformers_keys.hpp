#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/text.hpp"
#include "study/files/foreign/mapping.hpp"
#include "study/files/yaml.hpp"

/// Reads keys of a file of mindformers, and notes which.
namespace hcclsim::study {

inline constexpr const char* no_effect_text = "of no effect on a step's time";
inline constexpr const char* unknown_text = "no option of run stands for it";

[[nodiscard]] bool is_true(const YamlNode& node);
[[nodiscard]] bool is_false(const YamlNode& node);
/// "[1, 2]", "True" or "'text'": as Python writes it.
[[nodiscard]] std::string literal(const YamlNode& node);
/// "((1, 2),)" of [[1, 2]].
[[nodiscard]] std::string tuple_literal(const YamlNode& node);
/// "parallel_config.model_parallel 4".
[[nodiscard]] std::string source(std::string_view path, const YamlNode& node);

class MindformersKeys {
 public:
  MindformersKeys(const YamlNode& root, MappingWriter& writer) : root_(root), writer_(writer) {}

  [[nodiscard]] const YamlNode& root() const { return root_; }
  [[nodiscard]] MappingWriter& writer() { return writer_; }
  [[nodiscard]] bool was_read(const std::string& path) const { return read_.contains(path); }
  /// The value of a key, noted as read; nullptr if there is none.
  [[nodiscard]] const YamlNode* find(std::string_view section, std::string_view key = {}, std::string_view inner = {});
  [[nodiscard]] std::uint64_t whole_of(const YamlNode& node, std::string_view path, std::uint64_t least = 0);
  [[nodiscard]] std::optional<std::uint64_t> whole(std::string_view section, std::string_view key);
  /// 1 without the key.
  [[nodiscard]] std::uint64_t at_least_one(std::string_view section, std::string_view key);
  [[nodiscard]] bool truth(std::string_view section, std::string_view key, bool otherwise);
  /// `otherwise` for null and None.
  [[nodiscard]] bool truth_of(const YamlNode& node, std::string_view path, bool otherwise = false);
  [[nodiscard]] std::uint32_t line_of(std::string_view section, std::string_view key);
  /// parallel.parallel_mode in MindSpore's words; empty: the file does not say. Throws for a mode that is none.
  [[nodiscard]] std::string parallel_mode();
  /// A key that nothing was made of: refuses it, unless it says nothing of a step wherever it stands.
  void note_other(const std::string& path, const YamlMember& member);

 private:
  const YamlNode& root_;
  MappingWriter& writer_;
  std::set<std::string> read_;
};

/// A kind of network by the beginning of its type, in lower case.
struct MindformersFamily {
  std::string_view type;
  std::string_view model;
  bool decoder = false;         ///< the network is one of models/zoo/decoder.hpp
  std::string_view parts{};     ///< options that all of the kind have, "position=none …"
  std::string_view left_out{};  ///< in what the simulated step differs
};
/// "LlamaForCausalLM", "ChatGLM2Config"; nullptr for other networks, and for heads that are not of language models.
[[nodiscard]] const MindformersFamily* find_mindformers_family(const std::string& type);
/// Whether a key of model_config says nothing of a step.
[[nodiscard]] bool is_effect_free_of_model(std::string_view key);

/// Maps `model` and `moe_config`.
void map_mindformers_model(MindformersKeys& keys);
/// Maps `moe_config`; `width`: features of a layer's second half.
void map_mindformers_experts(MindformersKeys& keys, std::uint64_t width);
/// Maps `optimizer` and `runner_wrapper`.
void map_mindformers_optimizer(MindformersKeys& keys);
/// Maps adapters (pet_config); `named`: operators have the names of decoders.
void map_mindformers_adapters(MindformersKeys& keys, bool named);

/// Whether options of run say what a key of parallel_config says.
[[nodiscard]] bool is_mapped_of_parallel_config(std::string_view key);
/// Whether a key of parallel_config changes nothing where it is off.
[[nodiscard]] bool is_switch_of_parallel_config(std::string_view key);

}  // namespace hcclsim::study
