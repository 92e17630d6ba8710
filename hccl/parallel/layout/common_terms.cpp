#include "hccl/parallel/layout/common_terms.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

namespace hcclsim::hccl {
namespace {

/// Where the axes of an array begin, as products of the sizes behind them: 1, …, all elements. Axes of size 1 vanish.
class Factors {
 public:
  void add(const std::vector<std::uint32_t>& sizes) {
    std::uint64_t product = 1;
    products_.insert(product);
    for (std::size_t axis = sizes.size(); axis-- > 0;) products_.insert(product *= sizes[axis]);
  }
  /// Whether it was not there.
  bool add(std::uint64_t product) { return products_.insert(product).second; }

  /// Whether each product divides the next one: else they are no array.
  [[nodiscard]] bool fit() const {
    return std::ranges::adjacent_find(
               products_, [](std::uint64_t one, std::uint64_t next) { return next % one != 0; }) == products_.end();
  }
  /// The next product below one that is there and above 1.
  [[nodiscard]] std::uint64_t below(std::uint64_t product) const { return *std::prev(products_.find(product)); }
  /// The number from the right of the axis that ends at a product.
  [[nodiscard]] std::uint32_t axis_below(std::uint64_t product) const {
    return static_cast<std::uint32_t>(std::distance(products_.begin(), products_.find(product))) - 1;
  }
  [[nodiscard]] std::vector<std::uint32_t> sizes() const {
    std::vector<std::uint32_t> sizes;
    for (auto end = std::prev(products_.end()); end != products_.begin(); --end) {
      sizes.push_back(static_cast<std::uint32_t>(*end / *std::prev(end)));
    }
    return sizes;
  }

 private:
  std::set<std::uint64_t> products_;
};

std::uint64_t product_right_of(const std::vector<std::uint32_t>& sizes, std::size_t axis) {
  std::uint64_t product = 1;
  for (std::size_t right = axis + 1; right < sizes.size(); ++right) product *= sizes[right];
  return product;
}

/// An axis of the devices and the axis of the tensor that it cuts, by the products at which they end.
struct Cut {
  std::uint64_t tensor_end = 0;
  std::uint64_t devices_end = 0;
};

/// What a layout does in terms of finer and finer factors of the tensor and of the devices.
class Refinement {
 public:
  Refinement(const TensorLayout& from, const TensorLayout& to) {
    for (const TensorLayout* layout : {&from, &to}) {
      tensor_.add(layout->shape.sizes());
      devices_.add(layout->devices.sizes);
    }
  }

  enum class Outcome : std::uint8_t { done, refined, impossible };

  /// Finds the cuts of a layout. Where one does not fit the factors, makes them finer, and the cuts must be found anew.
  [[nodiscard]] Outcome find_cuts(const TensorLayout& layout, std::vector<Cut>& cuts) {
    cuts.clear();
    if (!tensor_.fit() || !devices_.fit()) return Outcome::impossible;
    for (std::size_t axis = 0; axis < layout.map.size(); ++axis) {
      const Outcome outcome = find_cuts_of_axis(layout, axis, cuts);
      if (outcome != Outcome::done) return outcome;
    }
    return Outcome::done;
  }

  [[nodiscard]] const Factors& tensor() const { return tensor_; }
  [[nodiscard]] const Factors& devices() const { return devices_; }

 private:
  [[nodiscard]] Outcome find_cuts_of_axis(const TensorLayout& layout, std::size_t axis, std::vector<Cut>& cuts) {
    const std::uint64_t tensor_begin = product_right_of(layout.shape.sizes(), axis);
    std::uint64_t tensor_end = tensor_begin * layout.shape.size(axis);
    std::uint64_t parts = layout.cuts(axis);  // that are still to be cut
    for (const std::uint32_t cutting : layout.map[axis]) {
      const std::vector<std::uint32_t>& sizes = layout.devices.sizes;
      const std::uint64_t devices_begin = product_right_of(sizes, sizes.size() - 1 - cutting);
      std::uint64_t devices_end = devices_begin * layout.devices.size_from_right(cutting);
      while (devices_end != devices_begin) {
        const std::uint64_t devices_below = devices_.below(devices_end);
        const std::uint64_t cut = devices_end / devices_below;
        const std::uint64_t size = tensor_end / tensor_.below(tensor_end);
        parts /= cut;
        if (cut > size && cut % size == 0) {
          devices_.add(devices_end / size);
          return Outcome::refined;
        }
        if (size % cut != 0) return Outcome::impossible;
        if (size != cut && parts > 1) {
          tensor_.add(tensor_end / cut);
          return Outcome::refined;
        }
        cuts.push_back({tensor_end, devices_end});
        tensor_end = tensor_.below(tensor_end);
        devices_end = devices_below;
      }
    }
    return Outcome::done;
  }

  Factors tensor_;
  Factors devices_;
};

/// The numbers that the axes of `shape` have when those of size 1 are left out; of the latter none.
std::vector<std::size_t> axes_of(const models::Shape& shape) {
  std::vector<std::size_t> axes;
  for (std::size_t axis = 0; axis < shape.rank(); ++axis) {
    if (shape.size(axis) > 1) axes.push_back(axis);
  }
  return axes;
}

}  // namespace

std::optional<CommonTerms> common_terms(const TensorLayout& from, const TensorLayout& to) {
  using Outcome = Refinement::Outcome;
  Refinement refinement(from, to);
  std::vector<Cut> from_cuts;
  std::vector<Cut> to_cuts;
  Outcome outcome = Outcome::refined;
  while (outcome == Outcome::refined) {
    outcome = refinement.find_cuts(from, from_cuts);
    if (outcome == Outcome::done) outcome = refinement.find_cuts(to, to_cuts);
  }
  if (outcome == Outcome::impossible) return std::nullopt;

  CommonTerms terms;
  terms.devices.sizes = refinement.devices().sizes();
  terms.shape = models::Shape(refinement.tensor().sizes());
  // A shape that was not factored stays as it is, with its axes of size 1.
  std::vector<std::size_t> axes = axes_of(terms.shape);
  const std::vector<std::size_t> own_axes = axes_of(from.shape);
  if (from.shape == to.shape && own_axes.size() == axes.size()) {
    terms.shape = from.shape;
    axes = own_axes;
  }
  const auto map_of = [&](const std::vector<Cut>& cuts) {
    std::vector<std::uint32_t> map(terms.shape.rank(), CommonTerms::uncut);
    for (const Cut& cut : cuts) {
      map[axes[axes.size() - 1 - refinement.tensor().axis_below(cut.tensor_end)]] =
          refinement.devices().axis_below(cut.devices_end);
    }
    return map;
  };
  terms.from = map_of(from_cuts);
  terms.to = map_of(to_cuts);
  return terms;
}

}  // namespace hcclsim::hccl
