#pragma once

#include <string>
#include <vector>

#include "cli/html/html_report.hpp"
#include "cli/options/run_options.hpp"
#include "cli/print/run_report.hpp"

/// The page of a training run: its figures, the timeline of some ranks, the split, the HBM over time, what the links
/// carried, what the figures rest on.
namespace hcclsim::cli {

/// The ranks whose timeline the page shows: those of --trace-ranks, else all of up to 8, else 8 spread evenly over the
/// cluster, that of --rank among them. Never more than 32.
[[nodiscard]] std::vector<Rank> ranks_of_page(const RunOptions& options, Rank npus);

[[nodiscard]] std::string run_page(const RunReport& report, const std::vector<Rank>& ranks, const HtmlReport& html);

}  // namespace hcclsim::cli
