#include "hccl/schedule/alignment.hpp"

#include <algorithm>
#include <unordered_map>

namespace hcclsim::hccl {
namespace {

/// The longest common subsequence is sought up to this product of lengths.
constexpr std::size_t largest_table = 1 << 16;
/// Length of the windows where nothing is unique.
constexpr std::size_t window_length = 128;
/// How often a stretch between unique numbers is cut again.
constexpr int most_cuts = 16;

struct Stretch {
  std::size_t first = 0;  // from … to before …_end
  std::size_t first_end = 0;
  std::size_t second = 0;
  std::size_t second_end = 0;
};

class Aligner {
 public:
  Aligner(const std::vector<std::uint32_t>& first, const std::vector<std::uint32_t>& second)
      : first_(first), second_(second) {}

  void align(Stretch stretch, int cuts) {
    for (; stretch.first < stretch.first_end && stretch.second < stretch.second_end &&
           first_[stretch.first] == second_[stretch.second];
         ++stretch.first, ++stretch.second) {
      pairs_.push_back({stretch.first, stretch.second});
    }
    std::size_t tail = 0;
    for (; stretch.first < stretch.first_end && stretch.second < stretch.second_end &&
           first_[stretch.first_end - 1] == second_[stretch.second_end - 1];
         --stretch.first_end, --stretch.second_end) {
      ++tail;
    }
    const std::size_t rows = stretch.first_end - stretch.first;
    const std::size_t columns = stretch.second_end - stretch.second;
    if (rows > 0 && columns > 0) {
      if (rows <= largest_table / columns) {
        longest_common(stretch);
      } else if (cuts < most_cuts) {
        between_unique(stretch, cuts);
      } else {
        in_windows(stretch);
      }
    }
    for (std::size_t i = 0; i < tail; ++i) pairs_.push_back({stretch.first_end + i, stretch.second_end + i});
  }

  [[nodiscard]] std::vector<AlignedPair> pairs() && { return std::move(pairs_); }

 private:
  void longest_common(const Stretch& stretch) {
    const std::size_t rows = stretch.first_end - stretch.first;
    const std::size_t columns = stretch.second_end - stretch.second;
    // length[i, j]: of the longest common subsequence of what begins at row i and column j.
    std::vector<std::uint16_t> length((rows + 1) * (columns + 1), 0);
    const auto at = [&](std::size_t i, std::size_t j) -> std::uint16_t& { return length[i * (columns + 1) + j]; };
    const auto equal = [&](std::size_t i, std::size_t j) {
      return first_[stretch.first + i] == second_[stretch.second + j];
    };
    for (std::size_t i = rows; i-- > 0;) {
      for (std::size_t j = columns; j-- > 0;) {
        at(i, j) =
            equal(i, j) ? static_cast<std::uint16_t>(at(i + 1, j + 1) + 1) : std::max(at(i + 1, j), at(i, j + 1));
      }
    }
    for (std::size_t i = 0, j = 0; i < rows && j < columns;) {
      if (equal(i, j)) {
        pairs_.push_back({stretch.first + i++, stretch.second + j++});
      } else if (at(i + 1, j) >= at(i, j + 1)) {
        ++i;
      } else {
        ++j;
      }
    }
  }

  /// The longest common subsequence of a window on both sides, then of the next one, from the last pair on.
  void in_windows(Stretch rest) {
    while (rest.first < rest.first_end && rest.second < rest.second_end) {
      const Stretch window{rest.first, std::min(rest.first + window_length, rest.first_end), rest.second,
                           std::min(rest.second + window_length, rest.second_end)};
      const std::size_t before = pairs_.size();
      longest_common(window);
      rest.first = window.first_end;
      rest.second = window.second_end;
      if (pairs_.size() == before) continue;
      const AlignedPair& last = pairs_.back();
      // A pair near the beginning would make the windows overlap too much.
      if (last.first < window.first + window_length / 2 || last.second < window.second + window_length / 2) continue;
      rest.first = last.first + 1;
      rest.second = last.second + 1;
    }
  }

  /// Numbers that occur once on either side, in the order of the first.
  [[nodiscard]] std::vector<AlignedPair> unique_in_both(const Stretch& stretch) const {
    struct Count {
      std::uint32_t first = 0;
      std::uint32_t second = 0;
      std::size_t place = 0;  // the last one in the second sequence
    };
    std::unordered_map<std::uint32_t, Count> counts;
    for (std::size_t i = stretch.first; i < stretch.first_end; ++i) ++counts[first_[i]].first;
    for (std::size_t i = stretch.second; i < stretch.second_end; ++i) {
      Count& count = counts[second_[i]];
      ++count.second;
      count.place = i;
    }
    std::vector<AlignedPair> unique;
    for (std::size_t i = stretch.first; i < stretch.first_end; ++i) {
      const Count& count = counts.at(first_[i]);
      if (count.first == 1 && count.second == 1) unique.push_back({i, count.place});
    }
    return unique;
  }

  /// The longest part of the pairs that ascends in the second index too.
  [[nodiscard]] static std::vector<AlignedPair> longest_ascending(const std::vector<AlignedPair>& pairs) {
    constexpr std::size_t none = ~std::size_t{0};
    std::vector<std::size_t> ends;  // by length − 1: the pair that ends a run of this length lowest
    std::vector<std::size_t> before(pairs.size(), none);
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      const auto place = std::lower_bound(ends.begin(), ends.end(), i, [&](std::size_t one, std::size_t other) {
        return pairs[one].second < pairs[other].second;
      });
      if (place != ends.begin()) before[i] = *(place - 1);
      if (place == ends.end()) {
        ends.push_back(i);
      } else {
        *place = i;
      }
    }
    std::vector<AlignedPair> run;
    for (std::size_t i = ends.empty() ? none : ends.back(); i != none; i = before[i]) run.push_back(pairs[i]);
    std::reverse(run.begin(), run.end());
    return run;
  }

  void between_unique(const Stretch& stretch, int cuts) {
    Stretch rest = stretch;
    const std::vector<AlignedPair> kept = longest_ascending(unique_in_both(stretch));
    if (kept.empty()) {
      in_windows(rest);
      return;
    }
    for (const AlignedPair& pair : kept) {
      align({rest.first, pair.first, rest.second, pair.second}, cuts + 1);
      pairs_.push_back(pair);
      rest.first = pair.first + 1;
      rest.second = pair.second + 1;
    }
    align(rest, cuts + 1);
  }

  const std::vector<std::uint32_t>& first_;
  const std::vector<std::uint32_t>& second_;
  std::vector<AlignedPair> pairs_;
};

}  // namespace

std::vector<AlignedPair> align(const std::vector<std::uint32_t>& first, const std::vector<std::uint32_t>& second) {
  Aligner aligner(first, second);
  aligner.align({0, first.size(), 0, second.size()}, 0);
  return std::move(aligner).pairs();
}

}  // namespace hcclsim::hccl
