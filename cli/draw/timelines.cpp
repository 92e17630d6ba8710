#include "cli/draw/timelines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string_view>
#include <utility>

#include "cli/draw/paje.hpp"
#include "cli/draw/timeline.hpp"
#include "study/run/run.hpp"

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
  streamed_ = true;
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

void Timelines::write(const hccl::Plan& plan, const sim::Trace& trace, std::span<const sim::Fault> faults,
                      const study::LinkReport* links, Seconds begin) {
  for (const auto& timeline : timelines_) {
    const Sink sink = [&to = timeline->file](std::string_view text) { to.write(text); };
    switch (format_) {
      case TimelineFormat::chrome:
        write_timeline(plan, trace, timeline->ranks, sink, faults);
        break;
      case TimelineFormat::paje:
        write_paje(plan, trace, timeline->ranks, sink);
        break;
      case TimelineFormat::perfetto: {
        const std::vector<Rank>& ranks = timeline->ranks;
        for (const sim::Span& span : trace.spans()) {
          const bool is_written = streamed_ && span.kind != sim::SpanKind::host;
          const bool shown = !is_written && std::ranges::find(ranks, span.rank) != ranks.end();
          if (shown) timeline->perfetto->add(plan, trace, span);
        }
        timeline->perfetto->add_faults(faults);
        if (links != nullptr) timeline->perfetto->add_links(*links, begin);
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
