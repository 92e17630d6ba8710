#include "study/compare/plans/plan_space.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.hpp"

namespace hcclsim::study {
namespace {

std::vector<std::uint32_t> powers_up_to(std::uint32_t most) {
  std::vector<std::uint32_t> powers;
  for (std::uint64_t power = 1; power <= most; power *= 2) powers.push_back(static_cast<std::uint32_t>(power));
  return powers;
}

template <typename Value>
std::vector<Value> or_else(const std::vector<Value>& given, std::vector<Value> otherwise) {
  return given.empty() ? std::move(otherwise) : given;
}

std::vector<std::uint32_t> divisors_of(std::uint32_t whole) {
  std::vector<std::uint32_t> divisors;
  for (std::uint32_t divisor = 1; divisor <= whole; ++divisor) {
    if (whole % divisor == 0) divisors.push_back(divisor);
  }
  return divisors;
}

/// Of stages that have so many layers or more: nothing, half of them, all.
std::vector<std::string> amounts_of_recomputing(std::uint32_t layers) {
  if (layers < 2) return {"none", "full"};
  return {"none", fmt::format("layers:{}", layers / 2), "full"};
}

/// The layers of each part of a pipeline as a list; empty where they are all the same, as `run` has it by itself.
std::string uneven_layers(std::uint32_t layers, std::uint32_t parts) {
  std::string list;
  if (layers == 0 || layers % parts == 0) return list;
  for (std::uint32_t part = 0; part < parts; ++part) {
    list += fmt::format("{}{}", part > 0 ? "," : "", layers / parts + (part < layers % parts ? 1 : 0));
  }
  return list;
}

bool divides(std::uint64_t divisor, std::uint64_t whole) { return divisor > 0 && whole % divisor == 0; }

/// How NPUs and samples are spread.
struct Spread {
  std::uint32_t model = 1;
  std::uint32_t stages = 1;
  std::uint32_t context = 1;
  std::uint32_t data = 1;
};

class Enumeration {
 public:
  Enumeration(const PlanSpace& space, const PlannedNetwork& network) : space_(space), network_(network) {}

  std::vector<PlanOptions> all() && {
    for (const std::uint32_t model : or_else(space_.model, powers_up_to(space_.most_model))) {
      if (!can_share_operators(model)) continue;
      for (const std::uint32_t stages : or_else(space_.stages, powers_up_to(space_.npus))) {
        if (!divides(std::uint64_t{model} * stages, space_.npus) || stages > std::max(network_.layers, 1U)) continue;
        if (stages > 1 && shares_samples_alone()) continue;
        const Rank sharing = space_.npus / model / stages;
        for (const std::uint32_t context : or_else(space_.context, powers_up_to(most_context()))) {
          if (!divides(context, sharing) || (context > 1 && !divides(context, network_.rows))) continue;
          add_spread({.model = model, .stages = stages, .context = context, .data = sharing / context});
        }
      }
    }
    return std::move(plans_);
  }

 private:
  [[nodiscard]] bool is_said_by(LaunchProgram program) const { return space_.said_by == program; }
  [[nodiscard]] bool shares_samples_alone() const { return is_said_by(LaunchProgram::fsdp2); }

  [[nodiscard]] bool can_share_operators(std::uint32_t model) const {
    if (model == 1) return true;
    if (shares_samples_alone()) return false;
    return network_.heads > 0 && divides(model, network_.heads) && divides(model, network_.features);
  }

  [[nodiscard]] std::uint32_t most_context() const { return std::max(1U, network_.rows / least_positions); }

  void add_spread(const Spread& spread) {
    if (!divides(spread.data, space_.global_batch)) return;
    const std::uint32_t layers = network_.layers / spread.stages;  // of the stages with fewest
    const std::uint32_t most = (network_.layers + spread.stages - 1) / spread.stages;
    for (const std::uint32_t chunks : or_else(space_.chunks, divisors_of(std::max(most, 1U)))) {
      if (chunks > 1 && (spread.stages == 1 || spread.stages * chunks > network_.layers)) continue;
      for (const std::string& recompute : or_else(space_.recompute, usual_amounts(layers))) {
        for (const std::string& optimizer : or_else(space_.optimizer, usual_optimizers())) {
          if (optimizer != "off" && spread.data == 1) continue;
          add_operator_choices(spread, chunks, recompute, optimizer);
        }
      }
    }
  }

  [[nodiscard]] std::vector<std::string> usual_amounts(std::uint32_t layers) const {
    return amounts_of_recomputing(shares_samples_alone() ? 1 : layers);
  }

  [[nodiscard]] std::vector<std::string> usual_optimizers() const {
    if (is_said_by(LaunchProgram::megatron)) return {"off", "zero1"};
    if (is_said_by(LaunchProgram::mindformers)) return {"off", "on"};
    if (is_said_by(LaunchProgram::fsdp2)) return {"zero3"};
    return {"off", "zero1", "zero2", "zero3"};
  }

  /// Between ranks that share operators.
  void add_operator_choices(const Spread& spread, std::uint32_t chunks, const std::string& recompute,
                            const std::string& optimizer) {
    const auto allowed = [&](const std::optional<bool>& asked, bool value, std::uint32_t whole) {
      return (!asked.has_value() || *asked == value) && (!value || (spread.model > 1 && divides(spread.model, whole)));
    };
    for (const bool sequence : {false, true}) {
      if (!allowed(space_.sequence, sequence, network_.rows / spread.context)) continue;
      // As run has it, and Megatron.
      const bool needs_sequence = space_.whole_experts || is_said_by(LaunchProgram::megatron);
      if (needs_sequence && network_.experts > 0 && spread.model > 1 && !sequence) continue;
      for (const bool vocabulary : {false, true}) {
        if (is_said_by(LaunchProgram::megatron) && vocabulary != (spread.model > 1)) continue;
        if (!allowed(space_.vocabulary, vocabulary, network_.vocabulary)) continue;
        for (const bool repeat : {true, false}) {
          if (space_.repeat.value_or(repeat) != repeat) continue;
          const bool has_choice = spread.model > 1 && !is_said_by(LaunchProgram::megatron) &&
                                  (recompute == "full" || recompute.starts_with("layers:"));
          if (!has_choice && repeat != space_.repeat.value_or(true)) continue;
          add_ranks_of_parts(spread,
                             {{"stage-layers", uneven_layers(network_.layers, spread.stages * chunks)},
                              {"chunks", chunks > 1 ? fmt::to_string(chunks) : ""},
                              {"schedule", chunks > 1 ? "1f1b-interleave" : ""},
                              {"recompute", recompute == "none" ? "" : recompute},
                              {"mp-comm-recompute", has_choice && !repeat ? "off" : ""},
                              {"optimizer-parallel", optimizer == "off" ? "" : optimizer},
                              {"sequence-parallel", sequence ? "on" : ""},
                              {"vocabulary-parallel", vocabulary ? "on" : ""}},
                             chunks, optimizer != "off");
        }
      }
    }
  }

  /// How attention meets positions of other ranks, and who shares the experts. `choices` without a value are those that
  /// `run` makes by itself.
  void add_ranks_of_parts(const Spread& spread, const PlanOptions& choices, std::uint32_t chunks, bool shares) {
    const bool whole_experts = space_.whole_experts && spread.model > 1;
    const std::uint32_t with_rows = spread.data * spread.context * (whole_experts ? spread.model : 1);
    for (const std::string& kind : context_kinds(spread)) {
      for (const std::uint32_t experts : or_else(space_.experts, powers_up_to(most_experts(with_rows)))) {
        if (!divides(experts, with_rows) || (experts > 1 && !divides(experts, network_.experts))) continue;
        PlanOptions with = choices;
        with.insert(with.begin(), {{"context-parallel", spread.context > 1 ? fmt::to_string(spread.context) : ""},
                                   {"context-kind", kind},
                                   {"expert-parallel", experts > 1 ? fmt::to_string(experts) : ""}});
        add_reductions(spread, with, chunks, shares || experts > 1);
      }
    }
  }

  /// Ranks that share experts at most.
  [[nodiscard]] std::uint32_t most_experts(std::uint32_t with_rows) const {
    return network_.experts == 0 ? 1 : std::min(with_rows, space_.most_model * most_servers_of_experts);
  }

  /// An empty one where no ranks share positions.
  [[nodiscard]] std::vector<std::string> context_kinds(const Spread& spread) const {
    if (spread.context == 1) return {""};
    std::vector<std::string> kinds = or_else(space_.context_kind, {"ulysses", "ring"});
    if (!divides(std::uint64_t{spread.context} * spread.model, network_.queries)) std::erase(kinds, "ulysses");
    return kinds;
  }

  void add_reductions(const Spread& spread, const PlanOptions& choices, std::uint32_t chunks, bool shares) {
    const bool whole = spread.data > 1 && spread.model == 1 && spread.context == 1 && spread.stages == 1 && !shares;
    if (!whole) return add_sizes(spread, choices, chunks);
    for (const PlanOptions& reduction : space_.reductions) {
      PlanOptions with = choices;
      with.insert(with.end(), reduction.begin(), reduction.end());
      add_sizes(spread, std::move(with), chunks);
    }
  }

  void add_sizes(const Spread& spread, PlanOptions choices, std::uint32_t chunks) {
    std::erase_if(choices, [](const auto& choice) { return choice.second.empty(); });
    const std::uint32_t samples = space_.global_batch / spread.data;
    for (const std::uint32_t size : or_else(space_.micro_batch, powers_up_to(samples))) {
      if (!divides(size, samples)) continue;
      const std::uint32_t micro_batches = samples / size;
      if (spread.stages > 1 && micro_batches < spread.stages) continue;
      if (chunks > 1 && !divides(spread.stages, micro_batches)) continue;
      PlanOptions& plan = plans_.emplace_back();
      plan = {{"npus", fmt::to_string(space_.npus)}, {"global-batch", fmt::to_string(space_.global_batch)}};
      if (spread.model > 1) plan.emplace_back("model-parallel", fmt::to_string(spread.model));
      if (spread.stages > 1) plan.emplace_back("stages", fmt::to_string(spread.stages));
      plan.emplace_back("micro-batch-size", fmt::to_string(size));
      plan.insert(plan.end(), choices.begin(), choices.end());
    }
  }

  const PlanSpace& space_;
  const PlannedNetwork& network_;
  std::vector<PlanOptions> plans_;
};

}  // namespace

std::vector<PlanOptions> plans_of(const PlanSpace& space, const PlannedNetwork& network) {
  std::vector<PlanOptions> plans = Enumeration(space, network).all();
  if (plans.empty()) {
    bad_input(
        "option",
        "no plan spreads {} samples over {} NPUs: data x context x model x stages must be the NPUs, and the samples of "
        "a "
        "replica whole micro-batches, at least as many as stages; give another --global-batch or --npus, or wider "
        "lists of choices",
        space.global_batch, space.npus);
  }
  return plans;
}

}  // namespace hcclsim::study
