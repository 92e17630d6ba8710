#include "cli/html/page.hpp"

#include <array>
#include <utility>

#include "base/error.hpp"
#include "cli/html/assets.hpp"
#include "cli/terminal/version.hpp"

namespace hcclsim::cli {
namespace {

/// For the inside of an element.
std::string html_text(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

/// JSON for the inside of a script element: without '<', which only strings can hold, nothing ends the element or
/// begins a comment in it.
std::string script_json(const Json& data) {
  std::string escaped;
  for (const char c : data.dump()) {
    if (c == '<') {
      escaped += "\\u003c";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

}  // namespace

Json page_head(std::string_view kind, std::string_view title, const HtmlReport& html) {
  return {{"kind", kind},
          {"title", html.title.empty() ? title : html.title},
          {"command", html.command},
          {"version", version()}};
}

Json speed_rows(const std::vector<study::LinkSource>& sources) {
  Json rows = Json::array();
  for (const study::LinkSource& link : sources) {
    const bool measured = link.source.starts_with("measured") || link.source.starts_with("calibrated");
    rows.push_back({link.speed, link.source,
                    link.source == study::set_by_user ? "set"
                    : measured                        ? "measured"
                                                      : "assumed"});
  }
  return rows;
}

std::string html_page(const Json& data) {
  // Through JSON once, so that text that is not UTF-8 is replaced here too.
  const Json title = Json::parse(data.at("title").dump());
  const std::array<std::pair<std::string_view, std::string>, 5> parts{{
      {"{{title}}", html_text(title.get<std::string>())},
      {"{{style}}", std::string(assets::page_css)},
      {"{{data}}", script_json(data)},
      {"{{chart}}", std::string(assets::chart_js)},
      {"{{script}}", std::string(assets::page_js)},
  }};
  std::string page;
  std::string_view rest = assets::page_html;
  for (const auto& [mark, text] : parts) {
    const std::size_t place = rest.find(mark);
    if (place == std::string_view::npos) internal_error("the page of reports has no {}", mark);
    page.append(rest.substr(0, place)).append(text);
    rest.remove_prefix(place + mark.size());
  }
  return page.append(rest);
}

}  // namespace hcclsim::cli
