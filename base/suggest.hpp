#pragma once

#include <span>
#include <string>
#include <string_view>

namespace hcclsim {

/// The candidate that a misspelt word most probably means: the one with the smallest edit distance (insertions,
/// deletions, replacements and swaps of neighbours count 1 each), the first of equals. Empty if none is near: a
/// candidate is near if its distance is at most a third of the word's length, or 1 of a shorter word that keeps a
/// letter, or if it starts with the word.
[[nodiscard]] std::string nearest(std::string_view word, std::span<const std::string> candidates);

/// "; did you mean X?" for error messages, or nothing if no candidate is near.
[[nodiscard]] std::string did_you_mean(std::string_view word, std::span<const std::string> candidates);

}  // namespace hcclsim
