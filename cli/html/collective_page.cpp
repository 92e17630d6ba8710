#include "cli/html/pages.hpp"

#include <fmt/format.h>

#include "base/json.hpp"
#include "cli/html/page.hpp"
#include "cli/print/collective_report.hpp"

namespace hcclsim::cli {

std::string collective_page(const Measurement& measurement, const MeasureSpec& spec, const std::string& op,
                            const HtmlReport& html) {
  const std::string title = fmt::format("{} on {} × {}", op, measurement.ranks, measurement.on.npu);
  Json data = page_head("collective", title, html);
  data["result"] = Json::parse(collective_json(measurement, spec, op));
  data["set_up"] = {{"Collective", op},
                    {"NPUs", fmt::format("{} × {}", measurement.ranks, measurement.on.npu)},
                    {"Platform", measurement.on.platform},
                    {"Type", name_of(spec.request.operation.type)},
                    {"Launch", name_of(spec.request.launch)},
                    {"Iterations", fmt::format("{} after {} that do not count", spec.iterations, spec.warmups)}};
  data["assumptions"] = speed_rows(measurement.link_sources);
  data["text"] = collective_text(measurement, spec, true);
  return html_page(data);
}

}  // namespace hcclsim::cli
