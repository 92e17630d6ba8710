#include "models/onnx/einsum.hpp"

#include <algorithm>
#include <cctype>

#include "base/text.hpp"
#include "models/onnx/network.hpp"

namespace hcclsim::models::onnx {
namespace {

/// "i j , j k" without spaces; "..." becomes a letter of its own for each axis that it stands for, counted from behind.
std::optional<std::string> with_letters(std::string_view term, std::size_t ellipsis) {
  std::string letters;
  for (std::size_t i = 0; i < term.size(); ++i) {
    if (term[i] == ' ') continue;
    if (term.substr(i).starts_with("...")) {
      for (std::size_t axis = ellipsis; axis-- > 0;) letters += static_cast<char>('0' + axis);
      i += 2;
    } else if (std::isalpha(static_cast<unsigned char>(term[i])) != 0) {
      letters += term[i];
    } else {
      return std::nullopt;
    }
  }
  return letters;
}

std::size_t letters_of(std::string_view term) {
  return static_cast<std::size_t>(
      std::ranges::count_if(term, [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }));
}

}  // namespace

std::optional<Einsum> Einsum::read(const std::string& equation, const std::vector<std::vector<std::int64_t>>& inputs) {
  const std::size_t arrow = equation.find("->");
  const std::string_view left = std::string_view(equation).substr(0, arrow);
  const std::vector<std::string_view> terms = split(left, ',');
  if (terms.size() != inputs.size()) return std::nullopt;
  Einsum einsum;
  std::size_t widest = 0;  // axes that "..." stands for in the result
  for (std::size_t i = 0; i < terms.size(); ++i) {
    const std::size_t named = letters_of(terms[i]);
    const bool open = terms[i].find("...") != std::string_view::npos;
    if (named > inputs[i].size() || (!open && named != inputs[i].size())) return std::nullopt;
    const std::size_t ellipsis = inputs[i].size() - named;
    widest = std::max(widest, ellipsis);
    std::optional<std::string> letters = with_letters(terms[i], ellipsis);
    if (!letters.has_value() || letters->size() != inputs[i].size() || ellipsis > 9) return std::nullopt;
    for (std::size_t axis = 0; axis < letters->size(); ++axis) {
      const std::size_t at = einsum.letters_.find((*letters)[axis]);
      const std::int64_t size = inputs[i][axis];
      if (at == std::string::npos) {
        einsum.letters_ += (*letters)[axis];
        einsum.sizes_.push_back(size);
      } else if (einsum.sizes_[at] == 1) {
        einsum.sizes_[at] = size;
      } else if (size != einsum.sizes_[at] && size != 1) {
        return std::nullopt;
      }
    }
    einsum.inputs_.push_back(*std::move(letters));
  }
  if (arrow != std::string::npos) {
    std::optional<std::string> letters = with_letters(std::string_view(equation).substr(arrow + 2), widest);
    if (!letters.has_value()) return std::nullopt;
    einsum.output_ = *std::move(letters);
  } else {
    // What one term alone has, in the order of the alphabet; axes of "..." come first.
    for (const char letter : einsum.letters_) {
      const auto all = static_cast<std::size_t>(std::ranges::count(left, letter));
      if (std::isdigit(static_cast<unsigned char>(letter)) != 0 || all == 1) einsum.output_ += letter;
    }
    std::ranges::sort(einsum.output_, [](char a, char b) {
      const bool open = std::isdigit(static_cast<unsigned char>(a)) != 0;
      return open && std::isdigit(static_cast<unsigned char>(b)) != 0 ? a > b : a < b;
    });
  }
  for (const char letter : einsum.output_) {
    if (einsum.letters_.find(letter) == std::string::npos) return std::nullopt;
  }
  return einsum;
}

std::int64_t Einsum::size_of(char letter) const { return sizes_[letters_.find(letter)]; }

std::int64_t Einsum::elements_of_letters(const std::string& letters) const {
  std::vector<std::int64_t> sizes;
  for (const char letter : letters) sizes.push_back(size_of(letter));
  return elements_of(sizes);
}

std::vector<std::int64_t> Einsum::dims() const {
  std::vector<std::int64_t> dims;
  for (const char letter : output_) dims.push_back(size_of(letter));
  return dims;
}

std::optional<MatrixProduct> Einsum::product() const {
  if (inputs_.size() != 2) return std::nullopt;
  std::string rows;
  std::string columns;
  std::string summed;
  std::string groups;
  for (const char letter : letters_) {
    const bool in_a = inputs_[0].find(letter) != std::string::npos;
    const bool in_b = inputs_[1].find(letter) != std::string::npos;
    const bool kept = output_.find(letter) != std::string::npos;
    if (!kept && in_a != in_b) return std::nullopt;
    (in_a && in_b ? (kept ? groups : summed) : in_a ? rows : columns) += letter;
  }
  const auto size = [&](const std::string& letters) {
    return static_cast<std::uint64_t>(elements_of_letters(letters));
  };
  return MatrixProduct{.m = size(rows), .n = size(columns), .k = size(summed), .groups = size(groups)};
}

std::optional<Constant> Einsum::value(const std::vector<const Constant*>& inputs) const {
  constexpr std::int64_t most_terms = 1 << 22;
  const std::int64_t terms = elements_of_letters(letters_);
  Constant result{.element_type = inputs[0]->element_type, .dims = dims(), .known = true};
  if (terms > most_terms || elements_of(result.dims) > max_values || inputs.size() != inputs_.size())
    return std::nullopt;
  result.values.assign(static_cast<std::size_t>(elements_of(result.dims)), 0);
  // For each letter: how far its neighbours are in a tensor; 0 where it has only one.
  const auto steps_of = [&](const std::string& letters, const std::vector<std::int64_t>& sizes) {
    std::vector<std::int64_t> steps(letters_.size(), 0);
    std::int64_t step = 1;
    for (std::size_t axis = letters.size(); axis-- > 0;) {
      if (sizes[axis] > 1) steps[letters_.find(letters[axis])] += step;
      step *= sizes[axis];
    }
    return steps;
  };
  std::vector<std::vector<std::int64_t>> steps;
  for (std::size_t i = 0; i < inputs.size(); ++i) steps.push_back(steps_of(inputs_[i], inputs[i]->dims));
  const std::vector<std::int64_t> result_steps = steps_of(output_, result.dims);
  std::vector<std::int64_t> index(letters_.size(), 0);
  const auto place = [&](const std::vector<std::int64_t>& by) {
    std::int64_t at = 0;
    for (std::size_t i = 0; i < index.size(); ++i) at += by[i] * index[i];
    return static_cast<std::size_t>(at);
  };
  for (std::int64_t term = 0; term < terms; ++term) {
    double factor = 1;
    for (std::size_t i = 0; i < inputs.size(); ++i) factor *= inputs[i]->values[place(steps[i])];
    result.values[place(result_steps)] += factor;
    for (std::size_t axis = index.size(); axis-- > 0;) {
      if (++index[axis] < sizes_[axis]) break;
      index[axis] = 0;
    }
  }
  return result;
}

}  // namespace hcclsim::models::onnx
