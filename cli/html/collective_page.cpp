#include "cli/html/collective_page.hpp"

#include <fmt/format.h>

#include "base/json.hpp"
#include "cli/html/page.hpp"
#include "cli/print/collective_report.hpp"

namespace hcclsim::cli {

std::string collective_page(const Measurement& measurement, const MeasurementOptions& options, const std::string& op,
                            const HtmlReport& html) {
  const std::string title = fmt::format("{} on {} × {}", op, measurement.operation.ranks, measurement.npu);
  Json data = page_head("collective", title, html);
  data["result"] = Json::parse(collective_json(measurement, options, op));
  data["set_up"] = {{"Collective", op},
                    {"NPUs", fmt::format("{} × {}", measurement.operation.ranks, measurement.npu)},
                    {"Platform", measurement.platform},
                    {"Type", name_of(measurement.operation.type)},
                    {"Launch", name_of(options.launch)},
                    {"Iterations", fmt::format("{} after {} that do not count", options.iterations, options.warmups)}};
  data["assumptions"] = speed_rows(measurement.link_sources);
  data["text"] = collective_text(measurement, true);
  return html_page(data);
}

}  // namespace hcclsim::cli
