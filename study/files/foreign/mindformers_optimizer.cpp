#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "base/text.hpp"
#include "study/files/foreign/mindformers_keys.hpp"

// The optimizer, and what scales and clips gradients.
namespace hcclsim::study {
namespace {

using Kind = YamlNode::Kind;

class MindformersOptimizer {
 public:
  explicit MindformersOptimizer(MindformersKeys& keys) : keys_(keys) {}

  void map_optimizer() {
    const YamlNode* const type = keys_.find("optimizer", "type");
    if (type == nullptr) return;
    struct Known {
      std::string_view name;
      std::string_view option;
      bool keeps_fp32;  ///< states, whatever the type of the parameters is
    };
    static constexpr std::array<Known, 10> known{{{"adamw", "adamw", true},
                                                  {"adamweightdecayx", "adamw", true},
                                                  {"adamweightdecay", "adamw", false},
                                                  {"fusedadamweightdecay", "adamw", true},
                                                  {"fp32stateadamweightdecay", "adamw", true},
                                                  {"pmaadamw", "adamw", true},
                                                  {"adam", "adam", false},
                                                  {"lamb", "lamb", false},
                                                  {"momentum", "momentum", false},
                                                  {"sgd", "sgd", false}}};
    const std::string from = source("optimizer.type", *type);
    const auto* const found = std::ranges::find(known, in_lower_case(type->text), &Known::name);
    if (found == known.end()) {
      writer().refuse("optimizer", from, "no optimizer of run does what it does", type->line);
    } else {
      writer().set(from, "optimizer", std::string(found->option), type->line);
      // Updates are computed in fp32 and cast to the type of the parameters, of which there is no second copy.
      const std::string parameters = writer().value_of("param-dtype").value_or("fp32");
      if (parameters != "fp32") {
        writer().set(from, "master-weights", "off", type->line);
        if (!found->keeps_fp32) writer().set(from, "optimizer-dtype", parameters, type->line);
      }
    }
    for (const YamlMember& member : keys_.find("optimizer")->members) {
      if (member.key != "type") writer().no_effect(source("optimizer." + member.key, member.value), no_effect_text);
    }
  }

  void map_wrapper() {
    const YamlNode* const section = keys_.find("runner_wrapper");
    if (section == nullptr) return;
    for (const YamlMember& member : section->members) {
      const std::string from = source("runner_wrapper." + member.key, member.value);
      if (member.key == "use_clip_grad") {
        if (!keys_.truth_of(member.value, "runner_wrapper.use_clip_grad"))
          writer().no_effect(from, "it is off");
        else
          writer().set(from, "clip-norm",
                       keys_.find("runner_wrapper", "max_grad_norm") == nullptr
                           ? "1"
                           : keys_.find("runner_wrapper", "max_grad_norm")->text,
                       member.line);
      } else if (member.key == "scale_sense") {
        map_scale(member.value, from);
      } else if (member.key == "type" || member.key == "sens" || member.key == "max_grad_norm" ||
                 member.key == "local_norm" || member.key == "calculate_per_token_loss" ||
                 member.key == "enable_check_overflow") {
        writer().no_effect(from, no_effect_text);
      } else {
        keys_.note_other("runner_wrapper." + member.key, member);
      }
    }
  }

 private:
  void map_scale(const YamlNode& scale, const std::string& from) {
    if (scale.kind == Kind::scalar) {
      if (scale.text == "1" || scale.text == "1.0")
        writer().no_effect(from, "a scale of 1 changes nothing");
      else
        writer().set(from, "loss-scale", "static:" + scale.text, scale.line);
      return;
    }
    const YamlMember* const type = scale.find("type");
    const YamlMember* const start = scale.find("loss_scale_value");
    if (type != nullptr && type->value.text.starts_with("Fixed")) {
      writer().set(from, "loss-scale", "static:" + (start == nullptr ? "1" : start->value.text), scale.line);
    } else {
      const YamlMember* const window = scale.find("scale_window");
      std::string value = "dynamic";
      if (start != nullptr) value += ":" + start->value.text;
      if (start != nullptr && window != nullptr) value += ":" + window->value.text;
      writer().set(from, "loss-scale", value, scale.line);
    }
  }

  [[nodiscard]] MappingWriter& writer() { return keys_.writer(); }

  MindformersKeys& keys_;
};

}  // namespace

void map_mindformers_optimizer(MindformersKeys& keys) {
  MindformersOptimizer optimizer(keys);
  optimizer.map_optimizer();
  optimizer.map_wrapper();
}

}  // namespace hcclsim::study
