#include "sim/platform/check.hpp"

#include <algorithm>
#include <filesystem>
#include <pugixml.hpp>

#include "base/error.hpp"
#include "base/input_file.hpp"
#include "sim/platform/passes.hpp"

namespace hcclsim::sim {
namespace {

void check_document(const pugi::xml_document& document, const std::string& directory, PlatformProblems& problems) {
  check_schema(document, directory, problems);
  // Names mean nothing in a file whose form is wrong, nor routes where names are.
  if (problems.any_fatal()) return;
  const PlatformNames names(document.document_element(), problems);
  if (problems.any_fatal()) return;
  check_routes(names, problems);
  check_properties(document.document_element(), names, problems);
}

}  // namespace

std::vector<PlatformProblem> check_platform(const std::string& path) {
  const std::string text = read_text_file(path, "platform");
  PlatformProblems problems(text);
  pugi::xml_document document;
  constexpr unsigned parts = pugi::parse_default | pugi::parse_fragment | pugi::parse_declaration | pugi::parse_doctype;
  const pugi::xml_parse_result parsed = document.load_buffer(text.data(), text.size(), parts, pugi::encoding_utf8);
  if (!parsed) {
    problems.fatal(parsed.offset, "bad XML: {}", parsed.description());
  } else if (document.document_element().empty()) {
    problems.fatal(0, "no root element; a platform file holds <platform version=\"4.1\">");
  } else {
    check_document(document, std::filesystem::path(path).parent_path().string(), problems);
  }
  return problems.take();
}

void require_valid_platform(const std::string& path) {
  const std::vector<PlatformProblem> problems = check_platform(path);
  const auto first =
      std::find_if(problems.begin(), problems.end(), [](const PlatformProblem& problem) { return problem.fatal; });
  if (first == problems.end()) return;
  const auto others = std::count_if(first + 1, problems.end(), [](const PlatformProblem& p) { return p.fatal; });
  const std::string where = first->line == 0 ? path : fmt::format("{}:{}", path, first->line);
  const std::string more = others == 0 ? "" : fmt::format(" (and {} more: hcclsim platform check {})", others, path);
  bad_input("platform", "{}: {}{}", where, first->message, more);
}

}  // namespace hcclsim::sim
