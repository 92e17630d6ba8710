#include "hccl/parallel/plan/plan_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <memory>
#include <string_view>
#include <utility>

#include "base/error.hpp"

namespace hcclsim::hccl {
namespace {

constexpr std::uint32_t plan_format_version = 1;

Json task_json(const Role& role, const PlanTask& task) {
  Json json{{"stream", task.stream},
            {"phase", name_of(task.purpose.phase)},
            {"chunk", task.purpose.chunk},
            {"micro_batch", task.purpose.micro_batch},
            {"after", task.after}};
  if (task.purpose.segment != Purpose::none) json["segment"] = task.purpose.segment;
  if (task.steps.begin > 0) json["first_step"] = task.steps.begin;
  if (task.steps.end != StepRange::no_end) json["end_step"] = task.steps.end;
  if (task.steps.every != 1) json["every_steps"] = task.steps.every;
  if (const auto* block = std::get_if<KernelBlock>(&task.work)) {
    const std::vector<models::Kernel>& kernels = role.program->kernels;
    Seconds duration = 0;
    Seconds idle = 0;
    for (std::uint32_t k = block->first; k < block->first + block->count; ++k) {
      duration += kernels[k].duration;
      idle += kernels[k].idle;
    }
    json["kernels"] = {{"first", kernels[block->first].name},
                       {"last", kernels[block->first + block->count - 1].name},
                       {"count", block->count},
                       {"duration_s", duration}};
    if (idle > 0) json["kernels"]["idle_s"] = idle;
  } else if (const auto* work = std::get_if<CollectiveTask>(&task.work)) {
    json["collective"] = work->collective;
  } else if (const auto* send = std::get_if<SendTask>(&task.work)) {
    json["send"] = {{"message", send->message}, {"offset", send->offset}, {"tag", send->tag}};
  } else if (const auto* receive = std::get_if<ReceiveTask>(&task.work)) {
    json["receive"] = {{"message", receive->message}, {"offset", receive->offset}, {"tag", receive->tag}};
  } else if (const auto* input = std::get_if<InputWork>(&task.work)) {
    json["input"] = {{"samples", input->samples}};
  } else if (const auto* copy = std::get_if<HostCopy>(&task.work)) {
    json["host_copy"] = {{"bytes", copy->bytes}};
    if (copy->back) json["host_copy"]["back"] = true;
  } else {
    json["host_s"] = std::get<HostWork>(task.work).duration;
  }
  return json;
}

/// Reads a Plan; every error names the place.
class PlanReader {
 public:
  PlanReader(const std::string& file, const Json& json) : file_(file), json_(json) {}

  Plan read() {
    if (number(json_, "format_version", "the Plan") != plan_format_version || !json_.contains("roles")) {
      fail("it is no Plan that `hcclsim plan show --format json` wrote");
    }
    only(json_, {"format_version", "families", "collectives", "messages", "roles", "role_of", "comm_reuse"},
         "the Plan");
    Plan plan;
    for (const Json& family : list(json_, "families", "the Plan")) {
      if (!family.is_array()) fail("a family is no list of groups");
      GroupFamily& groups = plan.families.emplace_back();
      for (const Json& group : family) {
        only(group, {"name", "ranks"}, "a group");
        groups.groups.push_back({text(group, "name", "a group"), ranks(group)});
      }
      if (groups.groups.empty()) fail("a family has no groups");
    }
    for (const Json& one : list(json_, "collectives", "the Plan")) plan.collectives.push_back(collective(plan, one));
    for (const Json& one : list(json_, "messages", "the Plan")) {
      only(one, {"name", "bytes"}, "a message");
      plan.messages.push_back({nullptr, text(one, "name", "a message"), number(one, "bytes", "a message")});
    }
    const Json& roles = list(json_, "roles", "the Plan");
    for (const Json& role : roles) plan.roles.push_back(read_role(plan, role));
    for (const Json& role : list(json_, "role_of", "the Plan")) {
      if (!role.is_number_unsigned() || role.get<std::uint64_t>() >= plan.roles.size()) fail("role_of: no such role");
      plan.role_of.push_back(role.get<std::uint32_t>());
    }
    std::vector<bool> used(plan.roles.size(), false);
    for (const std::uint32_t role : plan.role_of) used[role] = true;
    if (const auto unused = std::ranges::find(used, false); unused != used.end()) {
      fail(fmt::format("role_of: no rank has role {}", unused - used.begin()));
    }
    for (const GroupFamily& family : plan.families) {
      for (const Communicator& group : family.groups) {
        for (const Rank rank : group.ranks) {
          if (rank >= plan.ranks()) fail(fmt::format("group {}: rank {} does not take part", group.name, rank));
        }
      }
    }
    if (plan.roles.empty() || plan.role_of.empty()) fail("it has no roles or no ranks");
    return plan;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { bad_input("plan", "{}: {}", file_, what); }

  void only(const Json& of, std::initializer_list<std::string_view> keys, std::string_view where) const {
    if (!of.is_object()) fail(fmt::format("{} is no object", where));
    for (const Json::Member& one : of.items()) {
      if (std::ranges::find(keys, one.key) != keys.end()) continue;
      fail(fmt::format("{} has '{}', which is unknown; accepted: {}", where, one.key, fmt::join(keys, ", ")));
    }
  }

  [[nodiscard]] const Json& member(const Json& of, std::string_view key, std::string_view where) const {
    const Json* found = of.find(key);
    if (found == nullptr) fail(fmt::format("{} has no '{}'", where, key));
    return *found;
  }
  [[nodiscard]] const Json& list(const Json& of, std::string_view key, std::string_view where) const {
    const Json& found = member(of, key, where);
    if (!found.is_array()) fail(fmt::format("{}: '{}' is no list", where, key));
    return found;
  }
  [[nodiscard]] std::uint64_t number(const Json& of, std::string_view key, std::string_view where) const {
    const Json& found = member(of, key, where);
    if (!found.is_number_unsigned()) fail(fmt::format("{}: '{}' is no whole number", where, key));
    return found.get<std::uint64_t>();
  }
  [[nodiscard]] std::uint32_t small(const Json& of, std::string_view key, std::string_view where,
                                    std::uint64_t end = UINT32_MAX) const {
    const std::uint64_t found = number(of, key, where);
    if (found >= end) fail(fmt::format("{}: '{}' is {}, accepted: below {}", where, key, found, end));
    return static_cast<std::uint32_t>(found);
  }
  [[nodiscard]] Seconds duration(const Json& of, std::string_view key, std::string_view where) const {
    const Json& found = member(of, key, where);
    if (!found.is_number()) fail(fmt::format("{}: '{}' is no number", where, key));
    const auto seconds = found.get<double>();
    if (!(seconds >= 0)) fail(fmt::format("{}: '{}' is {}, accepted: 0 or more", where, key, seconds));
    return seconds;
  }
  [[nodiscard]] std::string text(const Json& of, std::string_view key, std::string_view where) const {
    const Json& found = member(of, key, where);
    if (!found.is_string()) fail(fmt::format("{}: '{}' is no text", where, key));
    return found.text();
  }
  [[nodiscard]] std::vector<Rank> ranks(const Json& group) const {
    std::vector<Rank> ranks;
    for (const Json& rank : list(group, "ranks", "a group")) {
      if (!rank.is_number_unsigned() || rank.get<std::uint64_t>() > UINT32_MAX) fail("a group: a rank is no rank");
      ranks.push_back(rank.get<Rank>());
    }
    if (ranks.empty()) fail("a group has no ranks");
    return ranks;
  }

  /// Elements of each block, or from each rank to each other.
  [[nodiscard]] static BlockCounts counts(const Operation& operation, const Json& json) {
    std::vector<std::uint64_t> counts;
    for (const Json& count : json) {
      if (!count.is_number_unsigned()) bad_input("plan", "counts: {} is no number of elements", count.dump());
      counts.push_back(count.get<std::uint64_t>());
    }
    const bool pairs = counts_pairs(operation.collective);
    const std::size_t wanted = pairs ? std::size_t{operation.ranks} * operation.ranks : operation.ranks;
    if (counts.size() != wanted) {
      bad_input("plan", "counts: {} for {} of {} ranks, which needs {}", counts.size(), name_of(operation.collective),
                operation.ranks, wanted);
    }
    return pairs ? BlockCounts::of_pairs(operation.ranks, std::move(counts))
                 : BlockCounts::of_blocks(std::move(counts));
  }

  [[nodiscard]] PlannedCollective collective(const Plan& plan, const Json& json) const {
    PlannedCollective one;
    only(json, {"name", "family", "kind", "ranks", "elements", "counts", "dtype", "root", "algorithm"}, "a collective");
    one.name = text(json, "name", "a collective");
    one.family = small(json, "family", one.name, plan.families.size());
    one.operation.ranks = small(json, "ranks", one.name);
    one.operation.elements = number(json, "elements", one.name);
    try {
      one.operation.type = parse_data_type(text(json, "dtype", one.name));
      one.operation.collective = parse_collective(text(json, "kind", one.name));
      if (json.contains("counts")) one.operation.counts = counts(one.operation, list(json, "counts", one.name));
    } catch (const Error& error) {
      fail(fmt::format("{}: {}", one.name, error.what()));
    }
    if (json.contains("root")) one.operation.root = small(json, "root", one.name, one.operation.ranks);
    if (json.contains("algorithm")) {
      auto schedule = std::make_shared<Schedule>();
      static_cast<Operation&>(*schedule) = one.operation;
      schedule->algorithm = text(json, "algorithm", one.name);
      one.schedules.assign(plan.families[one.family].groups.size(), schedule);
    }
    return one;
  }

  [[nodiscard]] Role read_role(const Plan& plan, const Json& json) const {
    Role role;
    models::Program program;
    only(json, {"stage", "streams", "tasks", "ahead"}, "a role");
    role.stage = small(json, "stage", "a role");
    const Json& streams = list(json, "streams", "a role");
    for (const Json& stream : streams) {
      bool known = false;
      for (const StreamKind kind :
           {StreamKind::compute, StreamKind::communication, StreamKind::update, StreamKind::host, StreamKind::data}) {
        if (!stream.is_string() || stream.text() != name_of(kind)) continue;
        role.streams.push_back(kind);
        known = true;
      }
      if (!known) fail("a role: a stream is of no known kind");
    }
    if (json.contains("ahead")) {
      for (const Json& steps : list(json, "ahead", "a role")) {
        const bool fits = steps.is_number_unsigned() && steps.get<std::uint64_t>() <= UINT32_MAX;
        if (!fits || role.ahead.size() == role.streams.size()) fail("a role: 'ahead' has no number for each stream");
        role.ahead.push_back(steps.get<std::uint32_t>());
      }
    }
    for (const Json& task : list(json, "tasks", "a role")) role.tasks.push_back(read_task(plan, role, program, task));
    role.program = std::make_shared<const models::Program>(std::move(program));
    return role;
  }

  [[nodiscard]] PlanTask read_task(const Plan& plan, const Role& role, models::Program& program,
                                   const Json& json) const {
    const std::string where = fmt::format("stage {}, task {}", role.stage, role.tasks.size());
    constexpr std::array works{"kernels", "collective", "send", "receive", "host_s", "input", "host_copy"};
    only(json,
         {"stream", "phase", "chunk", "micro_batch", "after", "segment", "first_step", "end_step", "every_steps",
          works[0], works[1], works[2], works[3], works[4], works[5], works[6]},
         where);
    if (std::ranges::count_if(works, [&](const char* work) { return json.contains(work); }) != 1) {
      fail(fmt::format("{} must have one of {}", where, fmt::join(works, ", ")));
    }
    PlanTask task;
    task.stream = small(json, "stream", where, role.streams.size());
    task.purpose = {.phase = phase(text(json, "phase", where)),
                    .stage = role.stage,
                    .chunk = small(json, "chunk", where),
                    .micro_batch = small(json, "micro_batch", where)};
    if (json.contains("segment")) task.purpose.segment = small(json, "segment", where);
    if (json.contains("first_step")) task.steps.begin = small(json, "first_step", where);
    if (json.contains("end_step")) task.steps.end = small(json, "end_step", where);
    if (json.contains("every_steps")) task.steps.every = small(json, "every_steps", where);
    if (task.steps.every == 0) fail(fmt::format("{}: 'every_steps' is 0", where));
    for (const Json& before : list(json, "after", where)) {
      if (!before.is_number_unsigned() || before.get<std::uint64_t>() >= role.tasks.size()) {
        fail(fmt::format("{}: it waits for a task that does not come before it", where));
      }
      task.after.push_back(before.get<std::uint32_t>());
    }
    if (const Json* block = json.find("kernels")) {
      task.work = read_block(program, *block, where);
    } else if (json.contains("collective")) {
      task.work = CollectiveTask{small(json, "collective", where, plan.collectives.size())};
    } else if (const Json* send = json.find("send")) {
      only(*send, {"message", "offset", "tag"}, where);
      task.work = SendTask{small(*send, "message", where, plan.messages.size()), offset(*send, where),
                           small(*send, "tag", where)};
    } else if (const Json* receive = json.find("receive")) {
      only(*receive, {"message", "offset", "tag"}, where);
      task.work = ReceiveTask{small(*receive, "message", where, plan.messages.size()), offset(*receive, where),
                              small(*receive, "tag", where)};
    } else if (const Json* input = json.find("input")) {
      only(*input, {"samples"}, where);
      task.work = InputWork{number(*input, "samples", where)};
    } else if (const Json* copy = json.find("host_copy")) {
      only(*copy, {"bytes", "back"}, where);
      const Json* back = copy->find("back");
      task.work = HostCopy{number(*copy, "bytes", where), back != nullptr && back->is_boolean() && back->get<bool>()};
    } else {
      task.work = HostWork{duration(json, "host_s", where)};
    }
    return task;
  }

  [[nodiscard]] KernelBlock read_block(models::Program& program, const Json& json, const std::string& where) const {
    constexpr std::uint64_t most_kernels = 1'000'000;
    only(json, {"first", "last", "count", "duration_s", "idle_s"}, where);
    const std::uint32_t count = small(json, "count", where, most_kernels);
    if (count == 0) fail(fmt::format("{}: a block without kernels", where));
    const auto first = static_cast<std::uint32_t>(program.kernels.size());
    program.kernels.resize(first + count);
    program.kernels.back().name = text(json, "last", where);
    program.kernels[first].name = text(json, "first", where);
    program.kernels[first].duration = duration(json, "duration_s", where);
    if (json.contains("idle_s")) program.kernels[first].idle = duration(json, "idle_s", where);
    if (program.kernels[first].busy() < 0) fail(fmt::format("{}: 'idle_s' is more than 'duration_s'", where));
    return {first, count};
  }

  [[nodiscard]] std::int64_t offset(const Json& json, const std::string& where) const {
    const Json& found = member(json, "offset", where);
    if (!found.is_number_integer()) fail(fmt::format("{}: 'offset' is no whole number", where));
    constexpr std::int64_t most = UINT32_MAX;
    const bool far =
        found.is_number_unsigned() ? found.get<std::uint64_t>() > UINT32_MAX : found.get<std::int64_t>() < -most;
    if (far) fail(fmt::format("{}: 'offset' is {}; accepted: {} to {}", where, found.dump(), -most, most));
    return found.get<std::int64_t>();
  }

  [[nodiscard]] StepPhase phase(const std::string& name) const {
    for (const StepPhase phase :
         {StepPhase::forward, StepPhase::backward, StepPhase::reduction, StepPhase::check, StepPhase::update,
          StepPhase::gather, StepPhase::result, StepPhase::input, StepPhase::checkpoint}) {
      if (name_of(phase) == name) return phase;
    }
    fail(fmt::format("'{}' is no phase of a step", name));
  }

  const std::string& file_;
  const Json& json_;
};

}  // namespace

Json plan_json(const Plan& plan) {
  Json families = Json::array();
  for (const GroupFamily& family : plan.families) {
    Json groups = Json::array();
    for (const Communicator& group : family.groups) groups.push_back({{"name", group.name}, {"ranks", group.ranks}});
    families.push_back(std::move(groups));
  }
  Json collectives = Json::array();
  for (const PlannedCollective& one : plan.collectives) {
    Json json{{"name", one.name},
              {"family", one.family},
              {"kind", name_of(one.operation.collective)},
              {"ranks", one.operation.ranks},
              {"elements", one.operation.elements},
              {"dtype", name_of(one.operation.type)}};
    if (!one.operation.counts.empty()) json["counts"] = one.operation.counts.counts();
    if (is_rooted(one.operation.collective)) json["root"] = one.operation.root;
    if (!one.schedules.empty()) json["algorithm"] = one.algorithm();
    collectives.push_back(std::move(json));
  }
  Json messages = Json::array();
  for (const PlannedMessage& one : plan.messages) messages.push_back({{"name", one.name}, {"bytes", one.bytes}});
  Json roles = Json::array();
  for (const Role& role : plan.roles) {
    Json streams = Json::array();
    for (const StreamKind kind : role.streams) streams.push_back(name_of(kind));
    Json tasks = Json::array();
    for (const PlanTask& task : role.tasks) tasks.push_back(task_json(role, task));
    roles.push_back({{"stage", role.stage}, {"streams", std::move(streams)}, {"tasks", std::move(tasks)}});
    if (!role.ahead.empty()) roles.back()["ahead"] = role.ahead;
  }
  return {{"format_version", plan_format_version},
          {"families", std::move(families)},
          {"collectives", std::move(collectives)},
          {"messages", std::move(messages)},
          {"roles", std::move(roles)},
          {"role_of", plan.role_of}};
}

Plan plan_of_json(const std::string& file, const Json& json) { return PlanReader(file, json).read(); }

}  // namespace hcclsim::hccl
