#include "cli/options/training/model_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <type_traits>

#include "base/error.hpp"
#include "base/text.hpp"
#include "cli/options/parse/common.hpp"
#include "models/zoo/choices.hpp"

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

/// One of the names of an enumeration.
template <class Kind>
Value one_of_kinds(std::optional<Kind>& target) {
  const auto& names = models::kind_names<Kind>;
  return one_of({names.begin(), names.end()}, [&target, &names](const std::string& word) {
    target = static_cast<Kind>(std::ranges::find(names, word) - names.begin());
  });
}

Value value_of(const models::ModelChoice& choice, models::ModelOptions& model) {
  const auto value = [&](auto member) {
    auto& target = model.*member;
    using Chosen = std::decay_t<decltype(*target)>;
    if constexpr (std::is_same_v<Chosen, bool>) {
      return on_off(target);
    } else if constexpr (std::is_same_v<Chosen, double>) {
      return number(target, choice.least, choice.most);
    } else if constexpr (std::is_same_v<Chosen, std::string>) {
      return text(target);
    } else if constexpr (std::is_enum_v<Chosen>) {
      return one_of_kinds(target);
    } else {
      return whole_number(target, static_cast<std::uint64_t>(choice.least), static_cast<std::uint64_t>(choice.most));
    }
  };
  return std::visit(value, choice.value);
}

}  // namespace

void add_model_size_options(Command& command, models::ModelOptions& model) {
  for (const models::ModelChoice& choice : models::model_choices()) {
    command.add(fmt::format("--{}", choice.key), value_of(choice, model), std::string(choice.help))
        .with_default(std::string(choice.usual));
    if (choice.key == "classes") {
      command.add("--fc-bias", on_off(model.fc_bias), "Bias of the last layer").with_default();
    }
  }
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
