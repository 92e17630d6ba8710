#include "hccl/parallel/step_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hccl/parallel/pipeline/message_order.hpp"
#include "hccl/parallel/role_builder.hpp"

namespace hcclsim::hccl {
namespace {

/// Every `distance`-th member of each group, `size` of them at a time: of members 0 … 5 with size 3 and distance 2
/// those are 0, 2, 4 and 1, 3, 5.
DeviceGroups parts_of(const DeviceGroups& groups, std::size_t size, std::size_t distance) {
  DeviceGroups parts;
  for (const std::vector<Rank>& group : groups) {
    for (std::size_t block = 0; block < group.size(); block += size * distance) {
      for (std::size_t first = block; first < block + distance; ++first) {
        std::vector<Rank>& part = parts.emplace_back();
        for (std::size_t member = 0; member < size; ++member) part.push_back(group[first + member * distance]);
      }
    }
  }
  return parts;
}

std::uint32_t add_family(Plan& plan, GroupFamily family) {
  plan.families.push_back(std::move(family));
  return static_cast<std::uint32_t>(plan.families.size() - 1);
}

/// All devices of a stage are one group.
DeviceGroups replicas_of(Rank devices) {
  DeviceGroups groups(1);
  for (Rank device = 0; device < devices; ++device) groups.front().push_back(device);
  return groups;
}

/// The families of the Plan that the devices of a stage meet in; equal ones are one.
class StageFamilies {
 public:
  StageFamilies(Plan& plan, const StepSpec& step, std::uint32_t stage) : plan_(plan), step_(step), stage_(stage) {}

  std::uint32_t add(const DeviceGroups& groups, std::string_view what) {
    const auto known = std::ranges::find(known_, groups, &std::pair<DeviceGroups, std::uint32_t>::first);
    if (known != known_.end()) return known->second;
    GroupFamily family;
    for (const std::vector<Rank>& group : groups) {
      Communicator& members = family.groups.emplace_back();
      for (const Rank device : group) members.ranks.push_back(stage_ * step_.stage_ranks() + device);
      members.name = name_of(members.ranks, fmt::format("stage{}_{}{}", stage_, what, family.groups.size() - 1));
    }
    return known_.emplace_back(groups, add_family(plan_, std::move(family))).second;
  }

  /// Groups that a parameter's copies are in, cut into those that share it.
  Copies add_copies(const DeviceGroups& groups, Rank shard_ranks, const std::string& suffix) {
    Copies copies;
    copies.all = copies.shards = add(groups, "replicas" + suffix);
    const auto ranks = static_cast<Rank>(groups.front().size());
    if (shard_ranks <= 1 || shard_ranks >= ranks || ranks % shard_ranks != 0) return copies;
    copies.shards = add(parts_of(groups, shard_ranks, 1), "shards" + suffix);
    copies.mirrors = add(parts_of(groups, ranks / shard_ranks, shard_ranks), "mirrors" + suffix);
    return copies;
  }

 private:
  /// As its user calls it; HCCL's name of all ranks; else `number`.
  [[nodiscard]] std::string name_of(const std::vector<Rank>& ranks, std::string number) const {
    const auto named = std::ranges::find(step_.groups, ranks, &Communicator::ranks);
    if (named != step_.groups.end()) return named->name;
    return ranks.size() == step_.npus ? std::string(world_group) : std::move(number);
  }

  Plan& plan_;
  const StepSpec& step_;
  std::uint32_t stage_;
  std::vector<std::pair<DeviceGroups, std::uint32_t>> known_;
};

/// Puts the families of a stage into the Plan and tells the role their numbers there.
void add_families(const StageProgram& stage, const StepSpec& step, Plan& plan, RolePlace& role) {
  StageFamilies families(plan, step, role.stage);
  if (stage.families.empty()) {
    role.copies = {families.add_copies(replicas_of(step.stage_ranks()), stage.shard_ranks, "")};
    return;
  }
  std::vector<bool> of_parameters(stage.families.size(), false);
  for (const Reduction& reduction : stage.reductions) of_parameters.at(reduction.copies) = true;
  for (const WeightGather& gather : stage.gathers) of_parameters.at(gather.copies) = true;
  role.copies.resize(stage.families.size());
  for (std::size_t number = 0; number < stage.families.size(); ++number) {
    const DeviceGroups& groups = stage.families[number];
    const std::string suffix = fmt::format("{}_", number);
    role.families.push_back(families.add(groups, "family" + suffix));
    if (of_parameters[number]) role.copies[number] = families.add_copies(groups, stage.shard_ranks, suffix);
  }
}

/// The sum over the stages, of which all but the last have zeros: a group for each place in a stage.
std::vector<ClosingCollective> shared_results(const StageProgram& last, const StepSpec& step, Plan& plan) {
  std::vector<ClosingCollective> results;
  const std::uint32_t stages = step.shape.stages;
  if (last.results.empty() || stages == 1) return results;
  GroupFamily places;
  for (Rank place = 0; place < step.stage_ranks(); ++place) {
    Communicator group{fmt::format("place{}", place), {}};
    for (std::uint32_t stage = 0; stage < stages; ++stage) {
      group.ranks.push_back(stage * step.stage_ranks() + place);
    }
    places.groups.push_back(std::move(group));
  }
  const std::uint32_t family = add_family(plan, std::move(places));
  for (std::size_t i = 0; i < last.results.size(); ++i) {
    const Operation operation{.ranks = stages, .elements = last.results[i], .type = last.result_type};
    results.push_back({family, operation, fmt::format("result{}", i + 1), StepPhase::result});
  }
  return results;
}

/// The program of a rank that updates the parameters with numbers rank, rank + ranks, …
std::shared_ptr<const models::Program> dealt_program(const models::Program& program, Rank rank, Rank ranks) {
  auto dealt = std::make_shared<models::Program>(program);
  std::erase_if(dealt->kernels, [&](const models::Kernel& kernel) {
    return kernel.owners && program.gradients[kernel.gradient].parameter % ranks != rank;
  });
  return dealt;
}

/// One broadcast after the other, each of all that a rank has updated.
std::vector<ClosingCollective> broadcasts_of(const models::Program& program, std::uint32_t family, Rank ranks,
                                             DataType type) {
  std::vector<ClosingCollective> broadcasts;
  for (Rank root = 0; root < ranks; ++root) {
    Operation operation{.ranks = ranks, .type = type, .collective = Collective::broadcast, .root = root};
    for (std::size_t index = root; index < program.parameters.size(); index += ranks) {
      operation.elements += program.parameters[index].elements;
    }
    broadcasts.push_back({family, operation, fmt::format("broadcast{}", root + 1)});
  }
  return broadcasts;
}

bool checks_all(const models::Program& program) {
  return program.overflow_flag || std::ranges::any_of(program.once_per_step(), [](const models::Kernel& kernel) {
           return kernel.phase == models::Phase::check;
         });
}

/// Says for each family of a stage whether a device is in one of its groups; empty: there are no families.
using Membership = std::vector<bool>;

std::vector<Membership> memberships_of(const StageProgram& stage, Rank devices) {
  std::vector<Membership> memberships(devices, Membership(stage.families.size(), false));
  for (std::size_t family = 0; family < stage.families.size(); ++family) {
    for (const std::vector<Rank>& group : stage.families[family]) {
      for (const Rank device : group) {
        if (device < devices) memberships[device][family] = true;  // who carries the Plan out refuses the others
      }
    }
  }
  return memberships;
}

/// Makes the roles of a stage.
class StageRoles {
 public:
  /// `place`: without reductions.
  StageRoles(const StageProgram& stage, const StepSpec& step, RolePlace place, std::optional<std::uint32_t> everyone,
             const ScheduleMaker& make_schedule, Plan& plan)
      : stage_(stage),
        step_(step),
        place_(std::move(place)),
        everyone_(everyone),
        make_schedule_(make_schedule),
        plan_(plan) {
    add_families(stage_, step_, plan_, place_);
  }

  void build() {
    const Rank devices = step_.stage_ranks();
    const bool deals = step_.dealt.has_value() && devices > 1;
    if (deals) place_.closing = broadcasts_of(*stage_.program, place_.copies.front().all, devices, *step_.dealt);
    const std::vector<Membership> memberships = memberships_of(stage_, devices);
    std::map<std::pair<const models::Program*, Membership>, std::uint32_t> known;
    for (Rank device = 0; device < devices; ++device) {
      const Membership& membership = memberships[device];
      std::uint32_t& role = plan_.role_of[place_.stage * devices + device];
      if (deals) {
        role = build_role(dealt_program(*stage_.program, device, devices), membership);
        continue;
      }
      const std::shared_ptr<const models::Program>& program = stage_.program_of(device);
      const auto [found, is_new] = known.try_emplace({program.get(), membership});
      if (is_new) found->second = build_role(program, membership);
      role = found->second;
    }
  }

 private:
  std::uint32_t build_role(std::shared_ptr<const models::Program> program, const Membership& membership) {
    RolePlace place = place_;
    for (const Reduction& reduction : stage_.reductions) {
      if (membership.empty() || membership[reduction.copies]) place.reductions.push_back(reduction);
    }
    // Ranks that have all gradients check them among those with which they reduce them.
    const std::uint32_t own = place.reductions.empty() ? 0 : place.reductions.front().copies;
    place.everyone = everyone_.value_or(place.copies[own].all);
    return RoleBuilder(step_, stage_, std::move(program), std::move(place), make_schedule_, plan_).build();
  }

  const StageProgram& stage_;
  const StepSpec& step_;
  RolePlace place_;
  std::optional<std::uint32_t> everyone_;
  const ScheduleMaker& make_schedule_;
  Plan& plan_;
};

}  // namespace

Plan make_plan(std::span<const StageProgram> stages, const StepSpec& step, const ScheduleMaker& make_schedule) {
  Plan plan;
  plan.role_of.resize(step.npus);
  const bool staged = step.shape.stages > 1;
  const bool cut = std::ranges::any_of(stages, &StageProgram::cut);
  std::optional<std::uint32_t> everyone;
  if (checks_all(*stages.front().program) && (staged || cut)) {
    everyone = add_family(plan, {{world_communicator(step.npus)}});
  }
  const std::vector<ClosingCollective> results = shared_results(stages.back(), step, plan);
  std::vector<const models::Program*> programs;
  for (const StageProgram& stage : stages) programs.push_back(stage.program.get());
  std::vector<std::vector<MessageTurn>> messages(stages.size());
  if (staged) messages = message_order(programs, step.shape, step.stage_ranks());
  for (std::uint32_t number = 0; number < stages.size(); ++number) {
    RolePlace place{.stage = number,
                    .cells = staged ? cells_of_stage(step.shape, number) : std::vector<Cell>{},
                    .messages = std::move(messages[number]),
                    .closing = results,
                    .partial_norm = staged || stages[number].shard_ranks > 1 || cut};
    StageRoles(stages[number], step, std::move(place), everyone, make_schedule, plan).build();
  }
  return plan;
}

}  // namespace hcclsim::hccl
