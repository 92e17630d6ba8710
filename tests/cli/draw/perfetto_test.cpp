#include "cli/draw/perfetto.hpp"

#include <cli/draw/perfetto_trace.pb.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "study/run/run.hpp"
#include "tests/cli/sample_run.hpp"

namespace hcclsim::cli {
namespace {

using perfetto_format::Trace;
using perfetto_format::TracePacket;
using perfetto_format::TrackEvent;

/// A slice with all that packets say of it.
struct Slice {
  std::uint64_t track = 0;
  std::string name;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// What a reader makes of a trace; fails the test where the format's rules are broken.
struct ReadTrace {
  std::map<std::uint64_t, std::string> tracks;  ///< names; of a process that of the process
  std::map<std::uint64_t, std::uint64_t> parents;
  std::vector<Slice> slices;
  std::map<std::uint64_t, std::uint64_t> sources;  ///< of flows: dates
  std::map<std::uint64_t, std::uint64_t> ends;
  std::map<std::uint64_t, std::vector<double>> counters;

  explicit ReadTrace(const std::string& text) {
    Trace trace;
    EXPECT_TRUE(trace.ParseFromString(text));
    std::map<std::uint64_t, std::string> names;
    std::map<std::uint64_t, std::vector<Slice>> open;
    bool first = true;
    for (const TracePacket& packet : trace.packet()) {
      if (packet.has_interned_data()) {
        if (std::exchange(first, false)) {
          EXPECT_EQ(packet.sequence_flags(), TracePacket::SEQ_INCREMENTAL_STATE_CLEARED);
        }
        for (const auto& name : packet.interned_data().event_names()) names[name.iid()] = name.name();
      }
      if (packet.has_track_descriptor()) {
        const auto& track = packet.track_descriptor();
        EXPECT_FALSE(tracks.contains(track.uuid()));
        if (track.has_parent_uuid()) {
          EXPECT_TRUE(tracks.contains(track.parent_uuid()));
        }
        tracks[track.uuid()] = track.has_process() ? track.process().process_name() : track.name();
        parents[track.uuid()] = track.parent_uuid();
      }
      if (!packet.has_track_event()) continue;
      EXPECT_EQ(packet.trusted_packet_sequence_id(), 1U);
      const TrackEvent& event = packet.track_event();
      EXPECT_TRUE(tracks.contains(event.track_uuid()));
      for (const std::uint64_t flow : event.flow_ids()) {
        EXPECT_TRUE(sources.emplace(flow, packet.timestamp()).second) << "a flow begins twice";
      }
      for (const std::uint64_t flow : event.terminating_flow_ids()) {
        EXPECT_TRUE(ends.emplace(flow, packet.timestamp()).second) << "a flow ends twice";
      }
      if (event.type() == TrackEvent::TYPE_SLICE_BEGIN) {
        EXPECT_TRUE(names.contains(event.name_iid()));
        open[event.track_uuid()].push_back({event.track_uuid(), names[event.name_iid()], packet.timestamp(), 0});
      } else if (event.type() == TrackEvent::TYPE_SLICE_END) {
        if (open[event.track_uuid()].empty()) {
          ADD_FAILURE() << "a slice ends that has not begun";
          continue;
        }
        slices.push_back(open[event.track_uuid()].back());
        slices.back().end = packet.timestamp();
        open[event.track_uuid()].pop_back();
      } else if (event.type() == TrackEvent::TYPE_COUNTER) {
        counters[event.track_uuid()].push_back(event.double_counter_value());
      }
    }
    for (const auto& [track, begun] : open) EXPECT_THAT(begun, testing::IsEmpty());
  }

  /// Slices of a track follow each other.
  void expect_no_overlap() const {
    std::map<std::uint64_t, std::uint64_t> end;
    for (const Slice& slice : slices) {
      EXPECT_LE(slice.begin, slice.end);
      EXPECT_GE(slice.begin, end[slice.track]) << tracks.at(slice.track) << ' ' << slice.name;
      end[slice.track] = slice.end;
    }
  }
};

std::string streamed(const study::RunSpec& spec) {
  return study::on_experiment(spec, [](study::Experiment& experiment) {
    std::string text;
    PerfettoWriter writer([&text](std::string_view piece) { text += piece; });
    std::vector<Rank> ranks(experiment.npus);
    std::iota(ranks.begin(), ranks.end(), Rank{0});
    study::RunWishes wishes;
    wishes.stream = std::make_shared<hccl::SpanStream>(
        hccl::SpanStream{ranks, [&writer](const hccl::Plan& plan, const sim::Trace& trace, const sim::Span& span) {
                           writer.add(plan, trace, span);
                         }});
    const study::RunResult result = simulate_run(experiment, std::move(wishes));
    for (const sim::Span& span : result.step.trace.spans()) {
      EXPECT_NE(span.kind, sim::SpanKind::copy) << "tasks are not kept";
    }
    writer.finish();
    return text;
  });
}

study::RunSpec small_pipeline() {
  study::RunSpec spec;
  spec.platform.file = "atlas800-9000";
  spec.model = {
      .name = "gpt2-small", .batch = 4, .sequence = 16, .layers = 4, .hidden = 128, .heads = 2, .vocabulary = 256};
  spec.step.framework = study::Framework::mindspore;
  spec.step.hcom_parallel = true;
  spec.npus = 4;
  spec.simulation.iterations = 2;
  spec.step.shape.stages = 2;
  spec.parallel.micro_batches = 2;
  return spec;
}

TEST(Perfetto, SpansOfAStep) {
  const RunReport run = sample_run();
  std::string text;
  PerfettoWriter writer([&text](std::string_view piece) { text += piece; });
  for (const sim::Span& span : run.step.trace.spans()) writer.add(run.step.plan, run.step.trace, span);
  std::vector<sim::Fault> faults(1);
  faults.front().text = "link=x";
  faults.front().from = 1e-3;
  faults.front().to = 2e-3;
  writer.add_faults(faults);
  writer.finish();
  const ReadTrace trace(text);
  trace.expect_no_overlap();
  // Four kernels, two collectives and a copy in each of two iterations, and the fault.
  EXPECT_EQ(trace.slices.size(), 2 * 7 + 1U);
  EXPECT_EQ(trace.slices[0].name, "a:forward");
  EXPECT_EQ(trace.slices[0].begin, 0U);
  EXPECT_EQ(trace.slices[0].end, 2'000'000U);
  EXPECT_EQ(trace.tracks.at(trace.parents.at(trace.slices[0].track)), "NPU 0");
  EXPECT_EQ(trace.slices.back().name, "link=x");
}

TEST(Perfetto, StreamedStepHasAllTracksFlowsAndCounters) {
  const ReadTrace trace(streamed(small_pipeline()));
  trace.expect_no_overlap();
  std::map<std::string, int> names;
  for (const auto& [track, name] : trace.tracks) ++names[name];
  EXPECT_EQ(names["NPU 0"], 1);
  EXPECT_EQ(names["NPU 3"], 1);
  EXPECT_EQ(names["compute"], 4);
  EXPECT_EQ(names["messages"], 4);
  EXPECT_EQ(names["tensors"], 4);
  EXPECT_GE(names["Plane 0"], 4);
  // Every post leads to a wait, and every send to a receive, later or at the same time.
  EXPECT_FALSE(trace.ends.empty());
  for (const auto& [flow, end] : trace.ends) {
    ASSERT_TRUE(trace.sources.contains(flow));
    EXPECT_LE(trace.sources.at(flow), end);
  }
  std::size_t messages = 0;
  for (const auto& [flow, date] : trace.sources) messages += flow >> 62U;
  // In two iterations on two pairs of ranks two micro-batches forward and backward, and the table of tokens that both
  // stages have: its gradient one way, its weights the other.
  EXPECT_EQ(messages, 2 * 2 * (2 * 2 + 2U));
  for (const auto& [track, values] : trace.counters) {
    EXPECT_EQ(trace.tracks.at(track), "tensors");
    EXPECT_GT(*std::ranges::max_element(values), 0);
  }
}

TEST(Perfetto, SameBytesEveryTime) { EXPECT_EQ(streamed(small_pipeline()), streamed(small_pipeline())); }

TEST(Perfetto, LoadsOfLinks) {
  std::string text;
  PerfettoWriter writer([&text](std::string_view piece) { text += piece; });
  study::LinkReport links;
  links.time = 4e-3;
  links.intervals = 2;
  study::LinkReport::OfLink& link = links.links.emplace_back();
  link.name = "pcie";
  link.from = "NPU 0";
  link.to = "NPU 4";
  link.loads = {0.5, 1};
  writer.add_links(links, 1e-3);
  writer.finish();
  const ReadTrace trace(text);
  ASSERT_EQ(trace.counters.size(), 1U);
  EXPECT_EQ(trace.tracks.at(trace.counters.begin()->first), "link pcie (NPU 0 to NPU 4)");
  EXPECT_THAT(trace.counters.begin()->second, testing::ElementsAre(50, 100));
}

}  // namespace
}  // namespace hcclsim::cli
