#include "sim/platform/check.hpp"

#include <algorithm>
#include <pugixml.hpp>

#include "base/error.hpp"
#include "base/input_file.hpp"
#include "sim/platform/document.hpp"
#include "sim/platform/passes.hpp"

namespace hcclsim::sim {
namespace {

void check_document(PlatformDocument& file, NpusOfFile npus) {
  check_schema(file.document, file.problems);
  // Names mean nothing in a file whose form is wrong, nor routes where names are.
  if (file.problems.any_fatal()) return;
  file.names.emplace(file.document.document_element(), file.problems);
  if (file.problems.any_fatal()) return;
  check_routes(*file.names, file.problems);
  check_properties(file.document.document_element(), *file.names, npus, file.problems);
}

std::unique_ptr<PlatformDocument> checked_platform(const std::string& path, NpusOfFile npus) {
  auto file = std::make_unique<PlatformDocument>(read_text_file(path, "platform"));
  constexpr unsigned parts = pugi::parse_default | pugi::parse_fragment | pugi::parse_declaration | pugi::parse_doctype;
  const pugi::xml_parse_result parsed =
      file->document.load_buffer(file->text.data(), file->text.size(), parts, pugi::encoding_utf8);
  if (!parsed) {
    file->problems.fatal(parsed.offset, "bad XML: {}", parsed.description());
  } else if (file->document.document_element().empty()) {
    file->problems.fatal(0, "no root element; a platform file holds <platform version=\"4.1\">");
  } else {
    check_document(*file, npus);
  }
  return file;
}

}  // namespace

std::vector<PlatformProblem> check_platform(const std::string& path) {
  return checked_platform(path, NpusOfFile::are_there)->problems.take();
}

std::unique_ptr<PlatformDocument> valid_platform(const std::string& path, NpusOfFile npus) {
  std::unique_ptr<PlatformDocument> file = checked_platform(path, npus);
  const std::vector<PlatformProblem> problems = file->problems.take();
  const auto first =
      std::find_if(problems.begin(), problems.end(), [](const PlatformProblem& problem) { return problem.fatal; });
  if (first == problems.end()) return file;
  const auto others = std::count_if(first + 1, problems.end(), [](const PlatformProblem& p) { return p.fatal; });
  const std::string where = first->line == 0 ? path : fmt::format("{}:{}", path, first->line);
  const std::string more = others == 0 ? "" : fmt::format(" (and {} more: hcclsim platform check {})", others, path);
  bad_input("platform", "{}: {}{}", where, first->message, more);
}

}  // namespace hcclsim::sim
