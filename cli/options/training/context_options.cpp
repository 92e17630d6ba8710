#include "cli/options/training/context_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"
#include "cli/options/parse/common.hpp"
#include "cli/options/parse/origins.hpp"
#include "cli/options/parse/overwriting.hpp"
#include "study/files/context/apply_context.hpp"
#include "study/files/context/auto_parallel_context.hpp"

namespace hcclsim::cli {
namespace {

/// Options of training with real numbers that a context has too.
bool is_option_of_numerics(std::string_view key) { return key == "gradients_mean"; }

std::string dashed(std::string_view key) {
  std::string name(key);
  std::ranges::replace(name, '_', '-');
  return name;
}

void set_given(const OptionOrigins& origins, std::string_view key, study::AutoParallelContext& context) {
  const std::string name = origins.name(dashed(key));
  const std::string& text = origins.command().get("--" + dashed(key)).texts().front();
  const auto value = study::parse_literal(text);
  if (!value.has_value()) bad_input("option", "{} '{}': it is no literal of Python", name, text);
  try {
    context.set(key, *value);
  } catch (const Error& error) {
    throw Error(error.code(), error.kind(), fmt::format("{}: {}", name, error.what()));
  }
}

/// The keys that were given in an option file, or on the command line.
std::vector<std::string_view> keys_given(const OptionOrigins& origins, bool in_file) {
  std::vector<std::string_view> keys;
  for (const study::ContextOption& option : study::context_options()) {
    const std::string name = dashed(option.key);
    if (origins.given(name) && origins.is_of_file(name) == in_file) keys.push_back(option.key);
  }
  return keys;
}

/// The place in a folder of what a file names, wherever its path leads. Throws Error(bad_input, "option") for the
/// folder itself, and where a symbolic link leads out of it.
std::string below(const std::string& folder, const std::string& path, const std::string& named_by) {
  namespace fs = std::filesystem;
  const fs::path inside = (fs::path("/") / path).lexically_normal().relative_path();
  if (inside.filename().empty()) bad_input("option", "{}: '{}' names no file", named_by, printable(path));
  fs::path place = fs::path(folder) / inside;
  std::error_code none;
  fs::path link = folder;
  for (const fs::path& part : inside) {
    link /= part;
    if (!fs::is_symlink(fs::symlink_status(link, none)) || fs::exists(link, none)) continue;
    bad_input("option", "{}: '{}' goes through {}, a symbolic link to nothing; remove the link", named_by,
              printable(path), link.string());
  }
  const fs::path from_folder = fs::weakly_canonical(place, none).lexically_relative(fs::weakly_canonical(folder, none));
  if (from_folder.empty() || *from_folder.begin() == "..") {
    bad_input("option", "{}: '{}' leads out of {} by a symbolic link; remove the link, or give another --output-dir",
              named_by, printable(path), folder);
  }
  return place.string();
}

/// What a context's file names to be written goes below the folder of --output-dir, wherever its path leads, or is not
/// written; what an option names, too, is written where that says.
void place_outputs(const OptionOrigins& origins, const ContextOptions& options, study::RunSpec& spec) {
  if (options.file.empty()) return;
  const bool is_told =
      origins.command().get("--output-dir").is_in_files();  // commands that write no such files refuse it
  const auto place = [&](std::string& path, std::initializer_list<const char*> keys) {
    const bool confirmed = std::ranges::any_of(keys, [&](const char* key) { return origins.given(key); });
    if (path.empty() || confirmed) return;
    if (!options.output_folder.empty()) {
      path = below(options.output_folder, path, options.file);
      return;
    }
    if (is_told) {
      spec.notes.push_back(
          fmt::format("{} names '{}', which is not written: --output-dir DIR writes it below a folder, "
                      "--{} '{}' there",
                      options.file, printable(path), *keys.begin(), printable(path)));
    }
    path.clear();
  };
  place(spec.strategy_files.save, {"strategy-ckpt-save-file", "strategy-ckpt-config"});
  place(spec.strategy_files.groups, {"group-ckpt-save-file"});
}

/// Throws Error(bad_input, "option") where one of the keys says otherwise than `context`, or than a key before it.
void require_agreement(const OptionOrigins& origins, const std::vector<std::string_view>& keys,
                       const std::string& others, study::AutoParallelContext context) {
  for (const std::string_view key : keys) {
    const study::AutoParallelContext before = context;
    set_given(origins, key, context);
    const std::string slot = context.contradiction(before);
    if (slot.empty()) continue;
    const std::string& text = origins.command().get("--" + dashed(key)).texts().front();
    bad_input("option", "{} {} and {} of {} say different things", origins.name(dashed(key)), text, slot, others);
  }
}

}  // namespace

void add_context_options(Command& command, ContextOptions& options, bool all) {
  command.begin_group("MindSpore's set_auto_parallel_context");
  command.add("--context", read_file(options.file),
              "File with its options: TOML, JSON, or the Python that calls it, which is read and not executed");
  command.add("--compat", one_of({"mindspore-2.3"}, options.compat),
              "Follow MindSpore 2.3 where it does otherwise than its documents say");
  options.values.assign(study::context_options().size(), "");
  for (std::size_t i = 0; i < options.values.size(); ++i) {
    const study::ContextOption& option = study::context_options()[i];
    if (is_option_of_numerics(option.key) && !all) continue;
    command.add("--" + dashed(option.key), text(options.values[i]), std::string(option.help)).value_name("VALUE");
  }
  if (all) return;  // nothing is run
  command
      .add("--output-dir", written_file(options.output_folder),
           "Folder below which the files go that a context's file names; without it they are not written")
      .value_name("DIR");
}

study::AutoParallelContext merged_context(const OptionOrigins& origins, const ContextOptions& options,
                                          const study::RunSpec& spec) {
  study::AutoParallelContext context(!options.compat.empty());
  if (!options.file.empty()) context = study::read_context(options.file, !options.compat.empty());
  context.lift_device_limit();
  const std::vector<std::string_view> of_file = keys_given(origins, true);
  const std::vector<std::string_view> of_command_line = keys_given(origins, false);
  const auto others = [&](const char* origin) { return options.file.empty() ? origin : options.file; };
  require_agreement(origins, of_file, others("another option of the file"), context);
  require_agreement(origins, of_command_line, others("another option of the command line"), context);
  for (const auto* const keys : {&of_file, &of_command_line}) {
    for (const std::string_view key : *keys) set_given(origins, key, context);
  }
  if (options.file.empty()) set_implied_mode(context, spec);
  return context;
}

bool has_context(const OptionOrigins& origins, const ContextOptions& options) {
  return !options.file.empty() ||
         std::ranges::any_of(study::context_options(), [&](const study::ContextOption& option) {
           return !is_option_of_numerics(option.key) && origins.given(dashed(option.key));
         });
}

void finish_context_options(const OptionOrigins& origins, const ContextOptions& options, study::RunSpec& spec) {
  if (!has_context(origins, options)) {
    if (!options.compat.empty()) bad_input("option", "{} needs a context", origins.name("compat"));
    return;
  }
  const study::GivenOptions given{.stages = origins.given("stages"),
                                  .schedule = origins.given("schedule"),
                                  .chunks = origins.given("chunks"),
                                  .npus = origins.given("npus"),
                                  .rank = origins.given("rank"),
                                  .optimizer = origins.given("optimizer-parallel"),
                                  .accumulation_shard = origins.given("gradient-accumulation-shard"),
                                  .fusion = origins.given("fusion"),
                                  .fusion_index = origins.given("fusion-index"),
                                  .framework = origins.given("framework"),
                                  .comm_dtype = origins.given("comm-dtype"),
                                  .split = origins.given("split"),
                                  .split_by_idx = origins.given("split-by-idx"),
                                  .split_by_size = origins.given("split-by-size"),
                                  .hcom_parallel = origins.given("hcom-parallel")};
  const study::AutoParallelContext context = merged_context(origins, options, spec);
  try {
    apply_context(context, given, spec);
  } catch (const Error& error) {
    const bool of_file =
        !options.file.empty() && keys_given(origins, false).empty() && keys_given(origins, true).empty();
    const std::string message = error.what();
    if (error.code() != ErrorCode::bad_input || !of_file || message.find(options.file) != std::string::npos) throw;
    throw Error(error.code(), error.kind(), fmt::format("{}: {}", options.file, message));
  }
  place_outputs(origins, options, spec);
  const study::StrategyFiles& files = spec.strategy_files;
  if (!origins.command().writes_files() && !(files.save.empty() && files.groups.empty())) {
    bad_input("option", "{}", refused_file(files.save.empty() ? "group_ckpt_save_file" : "strategy_ckpt_config"));
  }
  if (spec.parallel_mode != "data_parallel") return;
  const char* const groups = std::getenv("GROUP_INFO_FILE");  // NOLINT(concurrency-mt-unsafe): nobody sets it
  if (groups != nullptr) spec.strategy_files.groups = groups;
}

}  // namespace hcclsim::cli
