#include "study/files/context/apply_fusion.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace hcclsim::study {
namespace {

using hccl::FusionMode;
using hccl::FusionRule;
using hccl::FusionRules;

constexpr std::int64_t usual_megabytes = 64;

struct FusionApplier {
  const AutoParallelContext& context;
  const GivenOptions& given;
  RunSpec& spec;
  bool closed = !context.get("comm_fusion").find("openstate")->boolean;
  bool listed = context.is_set("all_reduce_fusion_config");
  bool said = listed || context.is_set("comm_fusion");

  void apply() {
    if (const char* const option = given.split_option(); option != nullptr && said) {
      bad_input("option", "{} and {} of the context both say which gradients travel together", option,
                context.is_set("comm_fusion") ? "comm_fusion" : "all_reduce_fusion_config");
    }
    if (spec.is_graph_parallel()) {
      apply_graph_parallel();
    } else if (spec.parallel_mode != "stand_alone") {
      apply_data_parallel();
    }
  }

  [[nodiscard]] FusionRule sized(std::int64_t megabytes) const {
    return {.threshold = static_cast<Bytes>(megabytes) << 20U, .counts_as_mindspore = context.compat()};
  }

  /// The list, without what no parameter can have.
  [[nodiscard]] FusionRule by_index() const {
    FusionRule rule{.mode = FusionMode::index, .counts_as_mindspore = context.compat()};
    for (const Literal& item : context.get("all_reduce_fusion_config").items) {
      if (item.integer <= UINT32_MAX) {
        rule.last.push_back(static_cast<std::uint32_t>(item.integer));
      } else {
        spec.notes.push_back(fmt::format(
            "fusion index {} is left out, as MindSpore does with a warning: no network has so many parameters",
            to_string(item)));
      }
    }
    return rule;
  }

  /// Sizes, of which 0 stops MindSpore 2.3 when it compiles; ids where fusion by size is closed.
  [[nodiscard]] FusionRule of_kind(const char* kind) const {
    if (closed) return {.mode = spec.parallel.fusion_ids.empty() ? FusionMode::all : FusionMode::id};
    const std::int64_t megabytes = context.fusion_size(kind).value_or(usual_megabytes);
    if (megabytes == 0) {
      bad_input("runtime-error", "comm_fusion['{}']: in {} a size must be larger than 0", kind, spec.parallel_mode);
    }
    return sized(megabytes);
  }

  void apply_graph_parallel() {
    FusionRules rules{of_kind("allreduce"), of_kind("reducescatter"), of_kind("allgather")};
    if (!said) {
      if (given.fusion || given.fusion_index) return;
      if (const char* const option = given.split_option(); option != nullptr && spec.is_data_parallel()) {
        spec.notes.push_back(
            fmt::format("gradients are split by {}, not by comm_fusion's default of {} MB", option, usual_megabytes));
        return;
      }
      spec.parallel.fusion = rules;
      return;
    }
    const bool index = context.get("comm_fusion").find("allreduce")->find("mode")->text == "index";
    if (index && !context.compat()) rules.allreduce = by_index();
    if (listed && (context.compat() || !index)) {
      spec.notes.push_back(fmt::format("all_reduce_fusion_config has no effect in {}: {}", spec.parallel_mode,
                                       index ? "fusion by size writes its own ids" : "a size was set behind it"));
    }
    if (given.fusion_index) {
      bad_input("option", "comm_fusion of the context and --fusion-index both say which gradients travel together");
    }
    set_fusion(rules);
  }

  /// One collective for all gradients, unless there is a list or a size.
  void apply_data_parallel() {
    const bool sizes_count = spec.parallel_mode == "data_parallel" && !closed;
    const std::optional<std::int64_t> size = sizes_count ? context.fusion_size("allreduce") : std::nullopt;
    FusionRule rule{.mode = FusionMode::all, .counts_as_mindspore = context.compat()};
    if (listed) rule = by_index();
    if (given.fusion_index) {
      if (listed && *spec.fusion_index != rule.last) {
        bad_input("option", "all_reduce_fusion_config of the context and --fusion-index say different things");
      }
      rule.mode = FusionMode::index;
      rule.last = *spec.fusion_index;
    }
    if (size.has_value()) rule = cut_by(*size, rule);
    note_other_kinds();
    const bool whole = rule.mode == FusionMode::all;
    if (whole && spec.is_data_parallel() && spec.parallel.fusion_ids.empty()) return;
    if (rule.mode == FusionMode::index && !rule.ends_above && spec.is_data_parallel()) {
      if (given.fusion)
        bad_input("option", "all_reduce_fusion_config of the context and --fusion say different things");
      spec.fusion_index = rule.last;
      return;
    }
    if (whole && (given.fusion || given.split_option() != nullptr)) return;
    spec.fusion_index.reset();
    set_fusion({rule, sized(usual_megabytes), sized(usual_megabytes)});
  }

  /// What the list makes, or all gradients, cut by a size.
  [[nodiscard]] FusionRule cut_by(std::int64_t megabytes, FusionRule rule) const {
    // MindSpore 2.3 leaves out the whole pass that fuses.
    if (megabytes == 0) return {.mode = FusionMode::none, .counts_as_mindspore = context.compat()};
    if (rule.mode == FusionMode::all) rule.mode = FusionMode::size;
    rule.threshold = static_cast<Bytes>(megabytes) << 20U;
    rule.ends_above = true;
    return rule;
  }

  void note_other_kinds() {
    for (const char* const kind : {"allgather", "reducescatter"}) {
      if (!context.fusion_size(kind).has_value()) continue;
      spec.notes.push_back(
          fmt::format("comm_fusion['{}'] has no effect in {}: it has no such collectives", kind, spec.parallel_mode));
    }
  }

  void set_fusion(const FusionRules& rules) {
    // What is not of data parallelism does not count there.
    const bool gradients_only = !spec.is_graph_parallel() && spec.is_data_parallel();
    const auto said_by = [&](const FusionRules& of) {
      return gradients_only ? to_string(of.allreduce) : to_string(of);
    };
    if (given.fusion && said_by(*spec.parallel.fusion) != said_by(rules)) {
      bad_input("option", "the context and --fusion say different things");
    }
    spec.parallel.fusion = rules;
  }
};

}  // namespace

void apply_fusion(const AutoParallelContext& context, const GivenOptions& given, RunSpec& spec) {
  FusionApplier{context, given, spec}.apply();
}

}  // namespace hcclsim::study
