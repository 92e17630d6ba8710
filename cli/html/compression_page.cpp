#include <fmt/format.h>

#include "base/json.hpp"
#include "cli/html/page.hpp"
#include "cli/html/pages.hpp"
#include "cli/print/tune/compression_report.hpp"

namespace hcclsim::cli {

std::string compression_page(const study::CompressionSearch& search, const HtmlReport& html) {
  Json data = page_head("compression",
                        fmt::format("Compression of {} on {} × {}", search.model, search.npus, search.npu), html);
  data["result"] = Json::parse(compression_json(search));
  data["set_up"] = {{"Model", search.model},
                    {"NPUs", fmt::format("{} × {}", search.npus, search.npu)},
                    {"Platform", search.platform},
                    {"Compression", search.result.text},
                    {"hcom_parallel", search.hcom_parallel ? "on" : "off"}};
  data["text"] = compression_text(search);
  return html_page(data);
}

}  // namespace hcclsim::cli
