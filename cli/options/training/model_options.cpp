#include "cli/options/training/model_options.hpp"

#include <map>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "base/text.hpp"
#include "cli/options/parse/common.hpp"

namespace hcclsim::cli {

namespace {

/// Of experts; none: dropless.
std::optional<double> parse_capacity(const std::string& given) {
  if (given == "dropless") return std::nullopt;
  const std::optional<double> factor = parse_number<double>(given);
  if (!factor.has_value() || !(*factor > 0 && *factor <= 65536)) {
    bad_input("option", "'{}' is no capacity of experts: give a factor above 0, to 65536, or dropless", given);
  }
  return factor;
}

/// "time=10us".
Seconds parse_unsupported(const std::string& given) {
  constexpr std::string_view prefix = "time=";
  if (!given.starts_with(prefix)) {
    bad_input("option", "'{}' does not say what an unknown operator takes: give time=TIME, such as time=10us", given);
  }
  return positive_duration(given.substr(prefix.size()));
}

/// "sequence=128,heads=4".
/// Adds what one of the texts says to `dims`.
void parse_dims(const std::string& given, std::map<std::string, std::uint32_t>& dims) {
  for (const std::string_view item : split(given, ',')) {
    const std::size_t mark = item.find('=');
    const std::string name(item.substr(0, mark));
    const auto size =
        mark == std::string_view::npos ? std::nullopt : parse_number<std::uint32_t>(item.substr(mark + 1));
    if (name.empty() || size.value_or(0) == 0 || !dims.emplace(name, *size).second) {
      bad_input("option", "'{}' is no size of a dimension: give NAME=SIZE, each name once, such as sequence=128", item);
    }
  }
}

}  // namespace

void add_model_size_options(Command& command, models::ModelOptions& model) {
  command.add("--input", whole_number(model.input, 1, 8192), "Pixels per side of the image")
      .with_default("224; lenet 28, smallres 16");
  command.add("--classes", whole_number(model.classes, 1, 1'000'000), "Classes of the last layer")
      .with_default("1000; lenet, smallres 10");
  command.add("--fc-bias", on_off(model.fc_bias), "Bias of the last layer").with_default();
  command.add("--sequence", whole_number(model.sequence, 1, 1'048'576), "Tokens per sample of a transformer")
      .with_default("as published");
  command.add("--layers", whole_number(model.layers, 1, 10'000), "Its layers").with_default("as published");
  command.add("--hidden", whole_number(model.hidden, 1, 1'048'576), "Its features per token")
      .with_default("as published");
  command.add("--heads", whole_number(model.heads, 1, 65'536), "Its heads of attention").with_default("as published");
  command
      .add("--vocabulary", whole_number(model.vocabulary, 1, 16'777'216), "Rows of its table of tokens or categories")
      .with_default("as published");
  command
      .add("--kv-heads", whole_number(model.kv_heads, 1, 65'536),
           "Heads of keys and values that those share: llama*, qwen*, mixtral*")
      .with_default("as published");
  command.add("--head-width", whole_number(model.head_width, 2, 65'536), "Features of a head, of these networks")
      .with_default("those of a token, shared out");
  command.add("--qkv-bias", on_off(model.qkv_bias), "Biases of queries, keys and values, of these networks")
      .with_default("as published");
  command.add("--qk-norm", on_off(model.qk_norm), "RMS norms of the heads of queries and keys, of these networks")
      .with_default("as published");
  command
      .add("--tied-embeddings", on_off(model.tied),
           "The table of tokens is the weight of the logits, of these networks")
      .with_default("as published");
  command
      .add("--feed-forward", whole_number(model.feed_forward, 1, 16'777'216),
           "Features inside its second half, or inside an expert")
      .with_default("as published");
  command.add("--positions", whole_number(model.positions, 1, 16'777'216), "Rows of its table of positions")
      .with_default("as published");
  command.add("--dropout", number(model.drop_rate, 0, 0.99), "Rate of its dropout").with_default("as published");
  command.add("--experts", whole_number(model.experts, 1, 65'536), "Experts of a layer").with_default("as published");
  command.add("--moe-top-k", whole_number(model.chosen_experts, 1, 65'536), "Experts that a token is sent to")
      .with_default("as published");
  const auto take = [&model](const std::optional<double>& factor) {
    model.capacity = factor;
    model.dropless = !factor.has_value();
  };
  command
      .add("--moe-capacity", parsed(parse_capacity, take, "F|dropless"),
           "Rows that an expert takes of a sequence, as a multiple of its even share; dropless: all that come")
      .with_default("1; tinymoe 4");
  auto& sizes = model.onnx.dims;
  const Value dims{.check =
                       [](const std::string& text) {
                         std::map<std::string, std::uint32_t> alone;
                         parse_dims(text, alone);
                       },
                   .take =
                       [&sizes](const std::vector<std::string>& texts) {
                         sizes.clear();
                         for (const std::string& text : texts) parse_dims(text, sizes);
                       },
                   .count = Count::several};
  command
      .add(
          "--onnx-dim", dims,
          "Sizes of symbolic dimensions of a file of ONNX, INPUT.NUMBER=SIZE of those without a name; the first one is "
          "the batch; may be repeated")
      .value_name("NAME=SIZE,...")
      .with_commas();
  command
      .add("--unsupported", parsed(parse_unsupported, [&model](Seconds time) { model.onnx.unsupported = time; }),
           "Goes on where a file of ONNX has an operator that is not known: forward takes this, backward twice as long")
      .value_name("time=TIME");
}

}  // namespace hcclsim::cli
