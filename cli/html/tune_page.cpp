#include "cli/html/pages.hpp"

#include <fmt/format.h>

#include "base/json.hpp"
#include "cli/html/page.hpp"

namespace hcclsim::cli {
std::string tune_page(const TuneReport& report, const HtmlReport& html) {
  Json data =
      page_head("tune", fmt::format("Gradient split of {} on {} × {}", report.model, report.npus, report.npu), html);
  data["result"] = Json::parse(tune_json(report));
  data["set_up"] = {{"Model", report.model},
                    {"NPUs", fmt::format("{} × {}", report.npus, report.npu)},
                    {"Platform", report.platform},
                    {"Gradients", report.gradients},
                    {"hcom_parallel", report.hcom_parallel ? "on" : "off"},
                    {"Objective", name_of(report.objective)},
                    {"Most segments", report.most_segments},
                    {"Simulated sizes behind the cost", report.cost_points}};
  data["assumptions"] = speed_rows(report.link_sources);
  data["text"] = tune_text(report);
  return html_page(data);
}

}  // namespace hcclsim::cli
