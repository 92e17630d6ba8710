#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "base/text.hpp"
#include "study/files/foreign/fsdp2/fsdp2.hpp"

namespace hcclsim::study {
namespace {

/// What names of weights and of scripts have in them, in lower case, without '-', '_' and '.', the longest first.
constexpr std::array<std::pair<std::string_view, std::string_view>, 32> networks{
    {{"deepseekv4flash", "deepseek-v4-flash"},
     {"deepseek4", "deepseek-v4-flash"},
     {"qwen30point6b", "qwen3-0.6b"},
     {"qwen306b", "qwen3-0.6b"},
     {"qwen31point7b", "qwen3-1.7b"},
     {"qwen317b", "qwen3-1.7b"},
     {"qwen3coder480b", "qwen3-coder-480b"},
     {"qwen3235b", "qwen3-235b-a22b"},
     {"qwen330b", "qwen3-30b-a3b"},
     {"qwen3moe235b", "qwen3-235b-a22b"},
     {"qwen3moe30b", "qwen3-30b-a3b"},
     {"qwen332b", "qwen3-32b"},
     {"qwen314b", "qwen3-14b"},
     {"qwen38b", "qwen3-8b"},
     {"qwen34b", "qwen3-4b"},
     {"qwen257b", "qwen2.5-7b"},
     {"qwen2572b", "qwen2.5-72b"},
     {"llama370b", "llama3-70b"},
     {"llama38b", "llama3-8b"},
     {"llama27b", "llama2-7b"},
     {"llama213b", "llama2-13b"},
     {"llama270b", "llama2-70b"},
     {"minimaxm2", "minimax-m2"},
     {"glm52", "glm5.2"},
     {"glm45air", "glm4.5-air"},
     {"glm45", "glm4.5"},
     {"deepseekv32", "deepseek-v3.2"},
     {"deepseekv3", "deepseek-v3"},
     {"deepseekv2lite", "deepseek-v2-lite"},
     {"kimik2", "kimi-k2"},
     {"qwen3next", "qwen3-next-80b-a3b"},
     {"mixtral8x7b", "mixtral-8x7b"}}};

std::uint32_t number_before(std::string_view text, std::size_t end) {
  std::size_t begin = end;
  while (begin > 0 && std::isdigit(static_cast<unsigned char>(text[begin - 1])) != 0) --begin;
  return parse_number<std::uint32_t>(text.substr(begin, end - begin)).value_or(0);
}

std::uint32_t number_after(std::string_view text, std::size_t begin) {
  std::size_t end = begin;
  while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end])) != 0) ++end;
  return parse_number<std::uint32_t>(text.substr(begin, end - begin)).value_or(0);
}

/// "…-layer2", "…_L4_…", "…-4L-…".
std::optional<std::uint32_t> layers_named(std::string_view name) {
  constexpr std::string_view word = "layer";
  const std::string lower = in_lower_case(name);
  if (const std::size_t at = lower.find(word); at != std::string::npos) {
    if (const std::uint32_t layers = number_after(lower, at + word.size()); layers > 0) return layers;
    if (const std::uint32_t layers = number_before(lower, at); layers > 0) return layers;
  }
  for (std::size_t at = name.find('L'); at != std::string_view::npos; at = name.find('L', at + 1)) {
    const auto letter = [&](std::size_t i) {
      return i < name.size() && std::isalpha(static_cast<unsigned char>(name[i])) != 0;
    };
    if (const std::uint32_t layers = number_after(name, at + 1); layers > 0 && (at == 0 || !letter(at - 1)))
      return layers;
    if (const std::uint32_t layers = number_before(name, at); layers > 0 && !letter(at + 1)) return layers;
  }
  return std::nullopt;
}

}  // namespace

std::optional<NamedNetwork> network_named(std::string_view name) {
  std::string letters = in_lower_case(name);
  std::erase_if(letters, [](char c) { return c == '-' || c == '_' || c == '.'; });
  for (const auto& [part, model] : networks) {
    if (letters.find(part) != std::string::npos) return NamedNetwork{model, layers_named(name)};
  }
  return std::nullopt;
}

std::string weights_of(std::string_view model) {
  const auto found = std::ranges::find(networks, model, &std::pair<std::string_view, std::string_view>::second);
  return found == networks.end() ? std::string() : std::string(found->first);
}

}  // namespace hcclsim::study
