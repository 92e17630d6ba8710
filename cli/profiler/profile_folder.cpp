#include "cli/profiler/profile_folder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "base/json.hpp"
#include "base/output_file.hpp"

namespace hcclsim::cli {
namespace {

std::string_view level_name(ProfileLevel level) { return level == ProfileLevel::level0 ? "Level0" : "Level1"; }

/// profiler_info_<rank>.json: how it was profiled.
std::string profiler_info(const ProfiledRank& rank, const ProfileOptions& options) {
  const Json json{
      {"rank_id", rank.rank()},
      {"profiler_parameters",
       {{"activities", Json::array({"NPU"})},
        {"profiler_level", level_name(options.level)},
        {"profile_memory", true},
        {"data_simplification", true},
        {"schedule", {{"skip_first", rank.windows().front().number - 1}, {"active", rank.windows().size()}}}}},
      {"simulated_by", fmt::format("hcclsim {}", HCCLSIM_VERSION)}};
  return json.dump(2) + "\n";
}

/// profiler_metadata.json: the groups that the rank is in, by their communicators.
std::string profiler_metadata(const ProfiledRank& rank) {
  Json groups = Json::object();
  for (const ProfiledGroup& group : rank.groups().groups()) {
    const auto place = group.places.find(rank.rank());
    if (place == group.places.end()) continue;
    groups.append(group.key,
                  {{"group_name", group.name}, {"group_rank", place->second}, {"global_ranks", group.ranks}});
  }
  return Json{{"parallel_group_info", std::move(groups)}}.dump(2) + "\n";
}

}  // namespace

void ProfileFolder::write(const hccl::TimedStep& step, const std::vector<Rank>& ranks, device::Generation generation,
                          const HbmOfRank& hbm) {
  const ProfiledGroups groups(step.plan);
  const hccl::MessageStarts messages(step.plan, step.trace);
  for (const auto& [number, spans] : spans_by_rank(step.trace, ranks)) {
    const ProfiledRank rank(step, groups, messages, number, spans);
    const std::string of_rank = fmt::format("rank{}_{}_ascend_ms", number, options_.time);
    const std::string output = of_rank + "/ASCEND_PROFILER_OUTPUT";
    folder_.make_folder(output);
    const auto write_file = [&](const std::string& name, const std::function<void(const Sink&)>& contents) {
      OutputFile file = folder_.file(name);
      contents([&file](std::string_view text) { file.write(text); });
      file.commit();
    };
    write_file(fmt::format("{}/profiler_info_{}.json", of_rank, number),
               [&](const Sink& sink) { sink(profiler_info(rank, options_)); });
    write_file(of_rank + "/profiler_metadata.json", [&](const Sink& sink) { sink(profiler_metadata(rank)); });
    write_file(output + "/trace_view.json", [&, number = number](const Sink& sink) {
      write_timeline(step.plan, step.trace, number, rank.spans(), sink);
    });
    write_file(output + "/step_trace_time.csv", [&](const Sink& sink) { write_step_trace_time(rank, sink); });
    write_file(output + "/kernel_details.csv", [&](const Sink& sink) { write_kernel_details(rank, sink); });
    write_file(output + "/op_statistic.csv", [&](const Sink& sink) { write_op_statistic(rank, sink); });
    write_file(output + "/memory_record.csv",
               [&, number = number](const Sink& sink) { write_memory_record(rank, hbm(number), sink); });
    if (options_.level == ProfileLevel::level0) continue;
    write_file(output + "/communication.json", [&](const Sink& sink) { write_communication(rank, sink); });
    write_file(output + "/communication_matrix.json",
               [&](const Sink& sink) { write_communication_matrix(rank, generation, sink); });
  }
}

}  // namespace hcclsim::cli
