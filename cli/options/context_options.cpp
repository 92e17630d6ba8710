#include "cli/options/context_options.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "cli/options/parse/common.hpp"
#include "cli/options/parse/origins.hpp"
#include "study/context/apply_context.hpp"
#include "study/context/auto_parallel_context.hpp"

namespace hcclsim::cli {
namespace {

/// Options of training with real numbers that a context has too.
bool is_option_of_numerics(std::string_view key) { return key == "gradients_mean"; }

std::string dashed(std::string_view key) {
  std::string name(key);
  std::ranges::replace(name, '_', '-');
  return name;
}

}  // namespace

void add_context_options(Command& command, ContextOptions& options) {
  command.begin_group("MindSpore's set_auto_parallel_context");
  command.add("--context", read_file(options.file),
              "File with its options: TOML, JSON, or the Python that calls it, which is read and not executed");
  command.add("--compat", one_of({"mindspore-2.3"}, options.compat),
              "Follow MindSpore 2.3 where it does otherwise than its documents say");
  options.values.assign(study::context_options().size(), "");
  for (std::size_t i = 0; i < options.values.size(); ++i) {
    const study::ContextOption& option = study::context_options()[i];
    if (is_option_of_numerics(option.key)) continue;
    command.add("--" + dashed(option.key), text(options.values[i]), std::string(option.help)).value_name("VALUE");
  }
}

void finish_context_options(const OptionOrigins& origins, const ContextOptions& options, study::RunSpec& spec) {
  const bool any = std::ranges::any_of(options.values, [](const std::string& value) { return !value.empty(); });
  if (options.file.empty() && !any) {
    if (!options.compat.empty()) bad_input("option", "{} needs a context", origins.name("compat"));
    return;
  }
  study::AutoParallelContext context(!options.compat.empty());
  if (!options.file.empty()) context = study::read_context(options.file, !options.compat.empty());
  for (std::size_t i = 0; i < options.values.size(); ++i) {
    if (options.values[i].empty()) continue;
    const std::string_view key = study::context_options()[i].key;
    const std::string name = origins.name(dashed(key));
    const auto value = study::parse_literal(options.values[i]);
    if (!value.has_value()) bad_input("option", "{} {}: it is no literal of Python", name, options.values[i]);
    if (context.is_set(key) && context.get(key) != *value) {
      bad_input("option", "{} {} and {} of {} say different things", name, options.values[i], key, options.file);
    }
    try {
      context.set(key, *value);
    } catch (const Error& error) {
      throw Error(error.code(), error.kind(), fmt::format("{}: {}", name, error.what()));
    }
  }
  const study::GivenOptions given{.file = !options.file.empty(),
                                  .stages = origins.given("stages"),
                                  .schedule = origins.given("schedule"),
                                  .npus = origins.given("npus"),
                                  .rank = origins.given("rank"),
                                  .optimizer = origins.given("optimizer-parallel"),
                                  .fusion_index = origins.given("fusion-index"),
                                  .comm_dtype = origins.given("comm-dtype"),
                                  .split = origins.given("split"),
                                  .hcom_parallel = origins.given("hcom-parallel"),
                                  .gradients_mean = origins.given("gradients-mean")};
  apply_context(context, given, spec);
}

}  // namespace hcclsim::cli
