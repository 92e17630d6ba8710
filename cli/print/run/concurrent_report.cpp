#include "cli/print/run/concurrent_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <vector>

#include "base/json.hpp"
#include "cli/options/hccl_options.hpp"
#include "cli/print/faults.hpp"
#include "cli/print/folded.hpp"
#include "cli/terminal/output.hpp"
#include "hccl/comm/communicator.hpp"

namespace hcclsim::cli {
namespace {

/// Links beyond these are in the JSON form alone.
constexpr std::size_t most_meeting_links = 8;

std::string concurrent_jobs_table(const study::ConcurrentResult& result) {
  Table table("<job|<model|<NPUs|start ms|steps|alone ms|together ms|slow-down|exposed alone|exposed together");
  for (const study::ConcurrentJobResult& job : result.jobs) {
    table.add_row({job.name, job.model, hccl::rank_ranges(job.npus), milliseconds(job.start),
                   fmt::format("{} of {}", job.iterations, job.steps), milliseconds(job.alone.time),
                   milliseconds(job.together.time), fmt::format("{:.4f}", job.slow_down()),
                   milliseconds(job.alone.exposed), milliseconds(job.together.exposed)});
  }
  return table.to_string();
}

/// Nothing of jobs that have no ranks that stand for others.
std::string folded_lines(const study::ConcurrentResult& result) {
  std::string lines;
  for (const study::ConcurrentJobResult& job : result.jobs) {
    if (job.step.folded.empty()) continue;
    const auto ranks = static_cast<Rank>(job.npus.size());
    fmt::format_to(std::back_inserter(lines), "Folded: {}: {}.\n", job.name, hccl::folded_text(job.step.folded, ranks));
  }
  return lines;
}

std::string concurrent_links_table(const study::ConcurrentResult& result) {
  if (result.links.empty()) return "The jobs meet on no link.\n";
  const std::size_t shown = std::min(result.links.size(), most_meeting_links);
  std::string text =
      fmt::format("The jobs meet on {} link{}{}:\n", result.links.size(), result.links.size() == 1 ? "" : "s",
                  shown < result.links.size() ? fmt::format("; the {} most loaded", shown) : std::string());
  std::vector<Table::Column> columns{{"link", Table::Align::left}, {"kind", Table::Align::left}, {"GB/s"}, {"load %"}};
  for (const study::ConcurrentJobResult& job : result.jobs) {
    columns.push_back({job.name + " MB/step"});
    columns.push_back({"share %"});
  }
  Table table(std::move(columns));
  for (std::size_t i = 0; i < shown; ++i) {
    const study::MeetingLink& link = result.links[i];
    std::vector<std::string> cells{link.name, link.kind, fmt::format("{:.2f}", link.capacity / giga),
                                   fmt::format("{:.1f}", link.load() * 100)};
    for (std::size_t job = 0; job < result.jobs.size(); ++job) {
      cells.push_back(fmt::format("{:.3f}", link.parts[job].bytes / 1e6));
      cells.push_back(fmt::format("{:.1f}", link.share(job) * 100));
    }
    table.add_row(std::move(cells));
  }
  text += table.to_string();
  const auto is_over = [](const study::MeetingLink& link) { return link.load() > 1; };
  if (std::ranges::any_of(result.links.begin(), result.links.begin() + static_cast<std::ptrdiff_t>(shown), is_over)) {
    text += "Loads are sums over steps of the jobs that are not at the same time: they may exceed 100 %.\n";
  }
  return text;
}

Json concurrent_jobs_json(const study::ConcurrentResult& result) {
  Json jobs = Json::array();
  for (const study::ConcurrentJobResult& job : result.jobs) {
    Json one{{"name", job.name},
             {"model", job.model},
             {"npus_list", job.npus},
             {"rank", job.rank},
             {"start_s", job.start},
             {"iterations", job.iterations},
             {"steps", job.steps},
             {"hbm_contention", job.hbm_contention ? "on" : "off"},
             {"step_time_s", job.together.time},
             {"alone_s", job.alone.time},
             {"slow_down", job.slow_down()},
             {"exposed_communication_s", job.together.exposed},
             {"alone_exposed_communication_s", job.alone.exposed},
             {"notes", job.notes}};
    if (!job.step.folded.empty()) one["folded"] = folded_json(job.step.folded);
    if (!job.unmodelled.empty()) one["not_modelled"] = job.unmodelled;
    jobs.push_back(std::move(one));
  }
  return jobs;
}

Json concurrent_links_json(const study::ConcurrentResult& result) {
  Json links = Json::array();
  for (const study::MeetingLink& link : result.links) {
    Json parts = Json::array();
    for (std::size_t job = 0; job < result.jobs.size(); ++job) {
      if (link.parts[job].bytes == 0) continue;
      parts.push_back({{"name", result.jobs[job].name},
                       {"bytes_per_step", link.parts[job].bytes},
                       {"load", link.parts[job].load},
                       {"share", link.share(job)}});
    }
    links.push_back({{"name", link.name},
                     {"kind", link.kind},
                     {"capacity_Bps", link.capacity},
                     {"load", link.load()},
                     {"jobs", parts}});
  }
  return links;
}

/// "on", "off", or "on for a, b".
std::string contention_of(const study::ConcurrentResult& result) {
  std::vector<std::string> names;
  for (const study::ConcurrentJobResult& job : result.jobs) {
    if (job.hbm_contention) names.push_back(job.name);
  }
  if (names.empty()) return "off";
  return names.size() == result.jobs.size() ? "on" : fmt::format("on for {}", fmt::join(names, ", "));
}

/// Empty without faults.
std::string faults_line(const study::ConcurrentResult& result) {
  if (result.faults.empty()) return {};
  std::vector<std::string> texts;
  for (const sim::Fault& fault : result.faults) texts.push_back(fault.text);
  return fmt::format("With these faults, alone and together: {}\n", fmt::join(texts, "; "));
}

}  // namespace

std::string concurrent_remarks(const study::ConcurrentResult& result) {
  std::vector<std::string> unmodelled;
  std::vector<std::string> notes;
  const auto add = [](std::vector<std::string>& to, const std::string& text) {
    if (std::ranges::find(to, text) == to.end()) to.push_back(text);
  };
  const auto all_have = [&result](const std::string& note) {
    return std::ranges::all_of(result.jobs, [&note](const study::ConcurrentJobResult& job) {
      return std::ranges::find(job.notes, note) != job.notes.end();
    });
  };
  for (const study::ConcurrentJobResult& job : result.jobs) {
    for (const std::string& setting : job.unmodelled) add(unmodelled, setting);
    for (const std::string& note : job.notes) add(notes, all_have(note) ? note : fmt::format("{}: {}", job.name, note));
  }
  notes.insert(notes.end(), result.notes.begin(), result.notes.end());
  return remarks_text(unmodelled, notes);
}

std::string concurrent_text(const study::ConcurrentResult& result) {
  return fmt::format(
      "{} jobs at the same time on {} ({}), network {}, contention {}\n"
      "Each repeats its step until all have done their own steps; times are those of its own steps, without the first\n"
      "where it has several.\n{}\n{}{}\n{}{}",
      result.jobs.size(), result.platform, result.npu, result.network, contention_of(result), faults_line(result),
      concurrent_jobs_table(result), folded_lines(result), concurrent_links_table(result), concurrent_remarks(result));
}

std::string concurrent_json(const study::ConcurrentResult& result) {
  constexpr int format_version = 2;
  Json json{{"format_version", format_version},
            {"platform", result.platform},
            {"npu", result.npu},
            {"network", result.network},
            {"jobs", concurrent_jobs_json(result)},
            {"links", concurrent_links_json(result)}};
  if (!result.faults.empty()) json["faults"] = faults_json(result.faults);
  if (!result.notes.empty()) json["notes"] = result.notes;
  return json.dump(2) + '\n';
}

std::string concurrent_csv(const study::ConcurrentResult& result) {
  std::string text =
      "job,model,npus,start_s,iterations,steps,step_time_s,alone_s,slow_down,exposed_s,alone_exposed_s\n";
  for (const study::ConcurrentJobResult& job : result.jobs) {
    fmt::format_to(std::back_inserter(text), "{},{},{},{},{},{},{},{},{},{},{}\n", csv_field(job.name),
                   csv_field(job.model), csv_field(hccl::rank_ranges(job.npus)), job.start, job.iterations, job.steps,
                   job.together.time, job.alone.time, job.slow_down(), job.together.exposed, job.alone.exposed);
  }
  return text;
}

}  // namespace hcclsim::cli
