#pragma once

#include <string>
#include <vector>

#include "base/json.hpp"
#include "cli/options/html_report.hpp"
#include "cli/options/training/run_options.hpp"
#include "cli/print/run/run_report.hpp"
#include "cli/print/tune/tune_report.hpp"
#include "study/communication/measure/collective.hpp"
#include "study/compare/sweep/store.hpp"
#include "study/compare/tune/compression_search.hpp"
#include "study/jobs/job/job.hpp"
#include "study/jobs/ps/ps.hpp"

/// The pages, one file each.
namespace hcclsim::cli {

/// The ranks whose timeline the page of a run shows: those of --trace-ranks, else all of up to 8, else 8 spread evenly
/// over the cluster, that of --rank among them. Never more than 32.
[[nodiscard]] std::vector<Rank> ranks_of_page(const RunOptions& options, Rank npus);
/// A training run: its figures, the timeline of some ranks, the split, the HBM over time, what the links carried, what
/// the figures rest on.
[[nodiscard]] std::string run_page(const RunReport& report, const std::vector<Rank>& ranks, const HtmlReport& html);

/// A gradient split: the best one with its certificate and its timeline, beside what others would choose.
[[nodiscard]] std::string tune_page(const TuneReport& report, const HtmlReport& html);

/// What compression of gradients gains: the step plain and compressed over the speed of the links, the break-even.
[[nodiscard]] std::string compression_page(const study::CompressionSearch& search, const HtmlReport& html);

/// An MSJob: the timeline of its pods, conditions, training, events.
[[nodiscard]] std::string job_page(const study::JobResult& result, const HtmlReport& html);

/// A collective: time and bandwidth over the size beside HCCL's formula and the lower bound.
[[nodiscard]] std::string collective_page(const study::Measurement& measurement, const study::MeasureSpec& spec,
                                          const std::string& op, const HtmlReport& html);

/// Training with parameter servers: servers and their links, workers, staleness, losses, events.
[[nodiscard]] std::string ps_page(const study::PsResult& result, const HtmlReport& html);

/// What was varied, which figures there are, and all points:
///
///     axes     [{name, values [text …]} …]
///     metrics  [{key, title, unit: "s", "bytes", "Bps" or "", more: more is better} …]
///     points   [[status, [number of the value on each axis …], [figure or null, in the order of metrics …], error] …]
///
/// If the points are of several commands, these are an axis.
[[nodiscard]] Json sweep_data(const std::vector<study::StoredPoint>& points);

/// A sweep: its figures over what was varied, its best points, those that failed. `database`: as the user named it.
/// Throws Error(bad_input, "database") if it holds no points.
[[nodiscard]] std::string sweep_page(const std::vector<study::StoredPoint>& points, const std::string& database,
                                     const HtmlReport& html);

}  // namespace hcclsim::cli
