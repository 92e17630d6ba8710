#include "models/onnx/layers.hpp"

#include <algorithm>

namespace hcclsim::models::onnx {
namespace {

bool is_digits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

std::string layer_of(std::string_view path) {
  std::string name(path.substr(path.starts_with('/') ? 1 : 0));
  std::ranges::replace(name, '/', '.');
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
