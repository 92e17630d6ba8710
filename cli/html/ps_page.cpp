#include <fmt/format.h>

#include "base/json.hpp"
#include "cli/html/page.hpp"
#include "cli/html/pages.hpp"
#include "cli/print/run/ps_report.hpp"

namespace hcclsim::cli {

std::string ps_page(const study::PsResult& result, const HtmlReport& html) {
  Json data = page_head("ps", fmt::format("{} with {} parameter servers", result.title, result.servers), html);
  data["result"] = Json::parse(ps_json(result));
  data["set_up"] = {{"Workers", fmt::format("{} × {}", result.workers, result.npu)},
                    {"Servers", fmt::to_string(result.servers)},
                    {"Platform", result.platform},
                    {"Network", result.network}};
  data["text"] = ps_text(result);
  return html_page(data);
}

}  // namespace hcclsim::cli
