#include "cli/options/model_options.hpp"

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
  const auto take = [&model](const std::optional<double>& factor) {
    model.capacity = factor;
    model.dropless = !factor.has_value();
  };
  command
      .add("--moe-capacity", parsed(parse_capacity, take, "F|dropless"),
           "Rows that an expert takes of a sequence, as a multiple of its even share; dropless: all that come")
      .with_default("1; tinymoe 4");
}

}  // namespace hcclsim::cli
