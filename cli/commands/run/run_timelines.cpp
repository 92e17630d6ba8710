#include "cli/commands/run/run_timelines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string_view>
#include <utility>

#include "cli/draw/paje.hpp"
#include "cli/draw/timeline.hpp"

namespace hcclsim::cli {

namespace fs = std::filesystem;

Timelines::Timelines(const TimelineOptions& options, std::vector<Rank> ranks)
    : format_(options.format()), ranks_(std::move(ranks)) {
  const std::string& path = options.trace;
  if (path.empty()) return;
  if (!path.ends_with('/') && !fs::is_directory(path)) {
    add(ranks_, OutputFile(path));
    return;
  }
  for (const Rank rank : ranks_) {
    const fs::path file = fs::path(path) / fmt::format("timeline_rank_{}.{}", rank, suffix_of(format_));
    add({rank}, OutputFile(file.string(), OutputFile::Folders::are_made));
  }
}

void Timelines::add(std::vector<Rank> ranks, OutputFile file) {
  auto timeline = std::make_unique<Timeline>(Timeline{std::move(ranks), std::move(file)});
  if (streams()) {
    timeline->perfetto =
        std::make_unique<PerfettoWriter>([&to = timeline->file](std::string_view text) { to.write(text); });
  }
  timelines_.push_back(std::move(timeline));
}

std::vector<Rank> Timelines::kept_ranks() const {
  return timelines_.empty() || streams() ? std::vector<Rank>() : ranks_;
}

std::shared_ptr<const hccl::SpanStream> Timelines::stream() {
  if (timelines_.empty() || !streams()) return nullptr;
  std::map<Rank, PerfettoWriter*> writers;
  for (const auto& timeline : timelines_) {
    for (const Rank rank : timeline->ranks) writers[rank] = timeline->perfetto.get();
  }
  const auto take = [writers = std::move(writers)](const hccl::Plan& plan, const sim::Trace& trace,
                                                   const sim::Span& span) {
    writers.at(span.rank)->add(plan, trace, span);
  };
  return std::make_shared<hccl::SpanStream>(hccl::SpanStream{ranks_, take});
}

void Timelines::write(const RunReport& report, std::span<const sim::Fault> faults) {
  const hccl::TimedStep& step = report.step;
  for (const auto& timeline : timelines_) {
    const Sink sink = [&to = timeline->file](std::string_view text) { to.write(text); };
    switch (format_) {
      case TimelineFormat::chrome:
        write_timeline(step.plan, step.trace, timeline->ranks, sink, faults);
        break;
      case TimelineFormat::paje:
        write_paje(step.plan, step.trace, timeline->ranks, sink);
        break;
      case TimelineFormat::perfetto: {
        const std::vector<Rank>& ranks = timeline->ranks;
        for (const sim::Span& span : step.trace.spans()) {
          const bool shown = span.kind == sim::SpanKind::host && std::ranges::find(ranks, span.rank) != ranks.end();
          if (shown) timeline->perfetto->add(step.plan, step.trace, span);
        }
        timeline->perfetto->add_faults(faults);
        if (report.links.has_value()) timeline->perfetto->add_links(*report.links, report.view.fp_start);
        timeline->perfetto->finish();
        break;
      }
    }
  }
}

void Timelines::commit() {
  for (const auto& timeline : timelines_) timeline->file.commit();
}

}  // namespace hcclsim::cli
