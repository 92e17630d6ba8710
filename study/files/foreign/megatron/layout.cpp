#include "study/files/foreign/megatron/layout.hpp"

#include <cctype>

#include "base/text.hpp"

namespace hcclsim::study {
namespace {

/// Reads "Et*11|(t|)*2,mL": letters, a number of times each, or groups of them.
class LayoutReader {
 public:
  explicit LayoutReader(std::string_view text) : text_(text) {}

  /// The letters in a row; nothing if the text is none.
  std::optional<std::string> read() {
    std::optional<std::string> letters = group();
    return at_ == text_.size() ? letters : std::nullopt;
  }

 private:
  static constexpr std::size_t most_letters = 1U << 16U;

  std::optional<std::string> group() {
    std::string letters;
    while (at_ < text_.size() && text_[at_] != ')') {
      const std::optional<std::string> next = item();
      if (!next.has_value()) return std::nullopt;
      letters += *next;
    }
    return letters;
  }

  std::optional<std::string> item() {
    constexpr std::string_view known = "EtmL|";
    const char first = text_[at_++];
    if (first == ',') return std::string();
    std::string one(1, first);
    if (first == '(') {
      const std::optional<std::string> inside = group();
      if (!inside.has_value() || at_ == text_.size()) return std::nullopt;
      ++at_;  // the bracket at its end
      one = *inside;
    } else if (known.find(first) == std::string_view::npos) {
      return std::nullopt;
    }
    return repeated(one);
  }

  std::optional<std::string> repeated(const std::string& one) {
    if (at_ == text_.size() || text_[at_] != '*') return one;
    const std::size_t begin = ++at_;
    while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
    const auto times = parse_number<std::uint32_t>(text_.substr(begin, at_ - begin));
    if (!times.has_value() || *times * one.size() > most_letters) return std::nullopt;
    std::string all;
    for (std::uint32_t i = 0; i < *times; ++i) all += one;
    return all;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

std::optional<std::vector<std::uint64_t>> layers_of_layout(std::string_view text) {
  const std::optional<std::string> letters = LayoutReader(text).read();
  if (!letters.has_value()) return std::nullopt;
  std::vector<std::uint64_t> layers(1, 0);
  for (const char letter : *letters) {
    if (letter == '|') layers.push_back(0);
    if (letter == 't') ++layers.back();
  }
  return layers;
}

}  // namespace hcclsim::study
