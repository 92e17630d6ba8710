#include "cli/report/collective_page.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/collective_report.hpp"
#include "cli/report/page.hpp"

namespace hcclsim::cli {

std::string collective_page(const Sweep& sweep, const SweepOptions& options, const std::string& op,
                            const HtmlReport& html) {
  using Json = nlohmann::ordered_json;
  const std::string title = fmt::format("{} on {} × {}", op, sweep.operation.ranks, sweep.npu);
  Json data = page_head("collective", title, html);
  data["result"] = Json::parse(collective_json(sweep, options, op));
  data["set_up"] = {{"Collective", op},
                    {"NPUs", fmt::format("{} × {}", sweep.operation.ranks, sweep.npu)},
                    {"Platform", sweep.platform},
                    {"Type", name_of(sweep.operation.type)},
                    {"Launch", name_of(options.launch)},
                    {"Iterations", fmt::format("{} after {} that do not count", options.iterations, options.warmups)}};
  data["text"] = collective_text(sweep, true);
  return html_page(data);
}

}  // namespace hcclsim::cli
