#include <fmt/format.h>

#include "base/json.hpp"
#include "cli/html/page.hpp"
#include "cli/html/pages.hpp"
#include "cli/print/job/job_report.hpp"

namespace hcclsim::cli {

std::string job_page(const study::JobResult& result, const HtmlReport& html) {
  Json data = page_head("job", fmt::format("MSJob {}", result.job.name), html);
  data["result"] = Json::parse(job_json(result));
  data["set_up"] = {{"File", result.job.file},
                    {"Namespace", result.job.name_space},
                    {"Platform", result.platform},
                    {"Servers", fmt::to_string(result.servers.size())},
                    {"Step", result.model.empty() ? "its time as given" : result.model}};
  data["text"] = job_text(result);
  return html_page(data);
}

}  // namespace hcclsim::cli
