#include "models/onnx/layers.hpp"

#include <algorithm>
#include <vector>

#include "base/text.hpp"

namespace hcclsim::models::onnx {
namespace {

bool is_digits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

/// The path of a node as that of its weights: "/features/features.1/conv" of the part "features.1" of "features" is
/// "features.1.conv".
std::string as_weight(std::string_view path) {
  std::string name;
  const std::vector<std::string_view> parts = split(path.substr(path.starts_with('/') ? 1 : 0), '/');
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const bool named_again = i + 1 < parts.size() && parts[i + 1].size() > parts[i].size() &&
                             parts[i + 1].starts_with(parts[i]) && parts[i + 1][parts[i].size()] == '.';
    if (named_again) continue;
    if (!name.empty()) name += '.';
    name += parts[i];
  }
  return name;
}

}  // namespace

std::string layer_of(std::string_view path) {
  const std::string name = as_weight(path);
  std::size_t begin = 0;
  while (true) {
    const std::size_t end = name.find('.', begin);
    if (end == std::string::npos) return {};  // the last part is the thing itself
    const std::string_view part = std::string_view(name).substr(begin, end - begin);
    const std::size_t mark = part.rfind('_');
    if (is_digits(part) || (mark != std::string_view::npos && is_digits(part.substr(mark + 1)))) {
      return name.substr(0, end);
    }
    begin = end + 1;
  }
}

std::string operator_of(std::string_view path) {
  const std::size_t end = path.rfind('.');
  return std::string(path.substr(0, end == std::string_view::npos ? 0 : end));
}

}  // namespace hcclsim::models::onnx
