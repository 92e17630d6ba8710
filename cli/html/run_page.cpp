#include "cli/html/pages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <set>

#include "base/json.hpp"
#include "cli/html/link_data.hpp"
#include "cli/html/memory_data.hpp"
#include "cli/html/page.hpp"
#include "cli/html/timeline_data.hpp"
#include "hccl/comm/folded_class.hpp"

namespace hcclsim::cli {
namespace {

/// How the run was set up, as pairs of words for a list.
Json set_up(const RunReport& report) {
  Json rows = Json::array({{"Model", study::network_title(*report.program)},
                           {"NPUs", fmt::format("{} × {}", report.npus, report.npu)},
                           {"Platform", report.platform},
                           {"Batch", report.batch_text()},
                           {"Mixed precision", report.amp},
                           {"Gradients sent as", report.program->gradient_type_text()},
                           {"Framework", report.framework},
                           {"hcom_parallel", report.hcom_parallel ? "on" : "off"},
                           {"Launch", report.launch},
                           {"Segments", report.split_text()},
                           {"Printed rank", report.rank}});
  if (!report.rank_table.empty()) rows.push_back({"Rank table", report.rank_table});
  return rows;
}

/// What the figures rest on: where the links' speeds come from, how the network was simulated.
Json assumptions(const RunReport& report) {
  Json rows = speed_rows(report.link_sources);
  rows.push_back(
      {fmt::format("Network: {}, all {} transfers completed", report.network, report.step.transfers),
       report.step.folded.empty() ? "every NPU was simulated" : hccl::folded_text(report.step.folded, report.npus),
       "simulated"});
  const bool shared = report.shared_hbm > 0;
  rows.push_back({fmt::format("HBM contention: {}", shared ? "on" : "off"),
                  shared ? fmt::format("kernels, copies and transfers of an NPU share {:g} GB/s, AI-core reductions "
                                       "queue with kernels",
                                       report.shared_hbm / giga)
                         : "kernels, copies and transfers of an NPU do not slow each other down",
                  shared ? "simulated" : "assumed"});
  return rows;
}

}  // namespace

std::vector<Rank> ranks_of_page(const RunOptions& options, Rank npus) {
  constexpr Rank spread = 8;
  constexpr std::size_t most = 32;
  std::set<Rank> ranks{options.spec.simulation.rank};
  if (options.timeline.trace_ranks.empty() || options.timeline.trace_all_ranks) {
    for (Rank i = 0; ranks.size() < std::min(spread, npus); ++i) {
      ranks.insert(static_cast<Rank>(std::uint64_t{i} * (npus - 1) / (std::min(spread, npus) - 1)));
    }
  } else {
    ranks = std::set<Rank>(options.timeline.trace_ranks.begin(), options.timeline.trace_ranks.end());
  }
  std::vector<Rank> list(ranks.begin(), ranks.end());
  list.resize(std::min(list.size(), most));
  return list;
}

std::string run_page(const RunReport& report, const std::vector<Rank>& ranks, const HtmlReport& html) {
  Json data = page_head(
      "run", fmt::format("{} on {} × {}", study::network_title(*report.program), report.npus, report.npu), html);
  data["result"] = Json::parse(json_report(report));
  data["set_up"] = set_up(report);
  data["batch"] = report.batch_text();
  data["rank"] = report.rank;
  data["parallel"] = report.hcom_parallel;
  data["timeline"] = timeline_data(report, ranks);
  data["memory"] = memory_data(report);
  data["links"] = link_data(report.links.value());
  data["assumptions"] = assumptions(report);
  data["text"] = text_report(report);
  return html_page(data);
}

}  // namespace hcclsim::cli
