#include "cli/print/run/mapping.hpp"

#include <fmt/format.h>

#include <map>
#include <vector>

namespace hcclsim::cli {
namespace {

/// Keys with one reason stand in one line.
std::string reasons_text(const std::vector<study::UnmappedKey>& keys) {
  std::vector<std::string> reasons;
  std::map<std::string, std::string> sources;
  for (const study::UnmappedKey& key : keys) {
    std::string& text = sources[key.reason];
    if (text.empty()) reasons.push_back(key.reason);
    text += (text.empty() ? "" : "; ") + key.source;
  }
  std::string text;
  for (const std::string& reason : reasons) text += fmt::format("    {}: {}\n", reason, sources.at(reason));
  return text;
}

Json keys_json(const std::vector<study::UnmappedKey>& keys) {
  Json list = Json::array();
  for (const study::UnmappedKey& key : keys) {
    list.push_back(Json::object({{"source", key.source}, {"reason", key.reason}}));
  }
  return list;
}

}  // namespace

std::string mapping_text(const study::ForeignMapping& mapping) {
  if (mapping.empty()) return {};
  std::string text = fmt::format("{} of {}, as options:\n", mapping.file, mapping.program);
  for (const study::MappedOption& option : mapping.options) {
    text += fmt::format("  {:<36} {}\n", fmt::format("--{} {}", option.option, option.value), option.source);
  }
  if (!mapping.left_out.empty()) text += "  not simulated:\n" + reasons_text(mapping.left_out);
  if (mapping.explained)
    text += "  no option:\n" + reasons_text(mapping.without_effect);
  else if (!mapping.without_effect.empty())
    text += fmt::format("  no option: {} more, which --explain-mapping lists\n", mapping.without_effect.size());
  return text + '\n';
}

Json mapping_json(const study::ForeignMapping& mapping) {
  Json options = Json::array();
  for (const study::MappedOption& option : mapping.options) {
    options.push_back(Json::object(
        {{"option", option.option}, {"value", option.value}, {"source", option.source}, {"place", option.place}}));
  }
  return Json::object({{"program", mapping.program},
                       {"file", mapping.file},
                       {"options", options},
                       {"not_simulated", keys_json(mapping.left_out)},
                       {"without_effect", keys_json(mapping.without_effect)}});
}

}  // namespace hcclsim::cli
