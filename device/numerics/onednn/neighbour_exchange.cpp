#include <algorithm>
#include <memory>
#include <vector>

#include "device/numerics/onednn/layer.hpp"
#include "device/numerics/onednn/parts.hpp"

/// What the neighbours of a rank have at its borders, around what it has itself: of the ranks before and behind it or,
/// where two axes are cut, of up to eight around it. Their gradients go back, and are added where they came from.
namespace hcclsim::device::onednn {
namespace {

/// A neighbour, and what the two have to do with each other: the pixels of a rank that the neighbour needs, and the
/// place around them where those of the neighbour are put.
struct BorderNeighbour {
  int row = 0;
  int column = 0;
  GridBlock needed;  ///< of a rank's own grid
  GridBlock around;  ///< of the larger one
};

/// Where the part that lies a step back, nowhere or a step forward begins along an axis, and how long it is.
struct Pixels {
  std::size_t first = 0;
  std::size_t size = 0;
};

Pixels needed_span(int step, std::size_t own, const models::Border& border) {
  if (step == 0) return {0, own};
  return step < 0 ? Pixels{0, border.behind} : Pixels{own - border.before, border.before};
}

Pixels around_span(int step, std::size_t own, const models::Border& border) {
  if (step == 0) return {border.before, own};
  return step < 0 ? Pixels{0, border.before} : Pixels{border.before + own, border.behind};
}

/// Blocks for neighbours follow each other in the order of their ranks; at the ends of the group there are none.
class Surroundings {
 public:
  /// `sizes` are those of what a rank has itself.
  Surroundings(const models::Operator& op, const dnnl::memory::dims& sizes)
      : group_(op.group), columns_(static_cast<int>(op.columns)), rows_(static_cast<int>(op.group.ranks) / columns_) {
    const std::size_t behind = op.columns > 1 ? op.axis + 2 : op.axis + 1;
    own_.rows = static_cast<std::size_t>(sizes.at(op.axis));
    if (op.columns > 1) own_.columns = static_cast<std::size_t>(sizes.at(op.axis + 1));
    for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
      if (axis < op.axis) own_.outer *= static_cast<std::size_t>(sizes[axis]);
      if (axis >= behind) own_.inner *= static_cast<std::size_t>(sizes[axis]);
    }
    all_ = own_;
    all_.rows += op.border.before + op.border.behind;
    all_.columns += op.column_border.before + op.column_border.behind;
    centre_ = {op.border.before, own_.rows, op.column_border.before, own_.columns};
    for (const int row : {-1, 0, 1}) {
      for (const int column : {-1, 0, 1}) add(op, row, column);
    }
  }

  [[nodiscard]] const GridForm& own() const { return own_; }
  [[nodiscard]] const GridForm& all() const { return all_; }
  [[nodiscard]] const GridBlock& centre() const { return centre_; }
  /// Elements of what all neighbours need, and of what they give.
  [[nodiscard]] std::size_t needed() const { return needed_; }
  [[nodiscard]] std::size_t around() const { return around_; }

  /// Calls `use` with each neighbour that a rank has.
  template <typename Use>
  void for_each(const StepContext& step, const Use& use) const {
    const auto place = static_cast<int>(step.place_in(group_));
    for (const BorderNeighbour& neighbour : neighbours_) {
      const int row = place / columns_ + neighbour.row;
      const int column = place % columns_ + neighbour.column;
      if (row >= 0 && row < rows_ && column >= 0 && column < columns_) use(neighbour);
    }
  }

 private:
  void add(const models::Operator& op, int row, int column) {
    if (row == 0 && column == 0) return;
    if (column != 0 && op.columns == 1) return;
    const Pixels rows = needed_span(row, own_.rows, op.border);
    const Pixels columns = needed_span(column, own_.columns, op.column_border);
    const Pixels rows_around = around_span(row, own_.rows, op.border);
    const Pixels columns_around = around_span(column, own_.columns, op.column_border);
    neighbours_.push_back({.row = row,
                           .column = column,
                           .needed = {rows.first, rows.size, columns.first, columns.size},
                           .around = {rows_around.first, rows_around.size, columns_around.first, columns_around.size}});
    needed_ += neighbours_.back().needed.elements(own_);
    around_ += neighbours_.back().around.elements(all_);
  }

  models::Group group_;
  int columns_;
  int rows_;
  GridForm own_;
  GridForm all_;
  GridBlock centre_;
  std::vector<BorderNeighbour> neighbours_;
  std::size_t needed_ = 0;
  std::size_t around_ = 0;
};

class NeighbourExchange : public Layer {
 public:
  void plan_forward(Planner& planner) override {
    const models::Operator& op = planner.op();
    const PlainTensor own = as_plain(planner, planner.input());
    const Surroundings places(op, own.sizes);
    const PlainTensor out = new_plain_tensor(planner, with_borders(op, own.sizes, 1));
    planner.host({own.id}, [places, own = own.id](const StepContext& step) {
      float* to = step.sent;
      places.for_each(step, [&](const BorderNeighbour& neighbour) {
        take_block(places.own(), neighbour.needed, step.data(own), to);
        to += neighbour.needed.elements(places.own());
      });
    });
    planner.stop_for(false, places.needed(), places.around());
    planner.host({own.id, out.id}, [places, own = own.id, out = out.id](const StepContext& step) {
      float* const to = step.data(out);
      std::fill_n(to, places.all().elements(), 0.0F);
      put_block(places.all(), places.centre(), step.data(own), to);
      const float* from = step.received;
      places.for_each(step, [&](const BorderNeighbour& neighbour) {
        put_block(places.all(), neighbour.around, from, to);
        from += neighbour.around.elements(places.all());
      });
    });
    planner.set_output(as_output(planner, out));
  }

  void plan_backward(Planner& planner) override {
    if (!planner.input_needs_gradient()) return;
    const PlainTensor slopes = as_plain(planner, planner.output_gradient());
    const PlainTensor gradient = new_plain_tensor(planner, with_borders(planner.op(), slopes.sizes, -1));
    const Surroundings places(planner.op(), gradient.sizes);
    planner.host({slopes.id}, [places, from = slopes.id](const StepContext& step) {
      float* to = step.sent;
      places.for_each(step, [&](const BorderNeighbour& neighbour) {
        take_block(places.all(), neighbour.around, step.data(from), to);
        to += neighbour.around.elements(places.all());
      });
    });
    planner.stop_for(true, places.around(), places.needed());
    planner.host({slopes.id, gradient.id}, [places, from = slopes.id, to = gradient.id](const StepContext& step) {
      float* const sum = step.data(to);
      take_block(places.all(), places.centre(), step.data(from), sum);
      const float* received = step.received;
      places.for_each(step, [&](const BorderNeighbour& neighbour) {
        add_block(places.own(), neighbour.needed, received, sum);
        received += neighbour.needed.elements(places.own());
      });
    });
    planner.give_gradient(0, gradient.id);
  }

 private:
  /// Sizes with the borders added, or with `sign` −1 taken away.
  static dnnl::memory::dims with_borders(const models::Operator& op, dnnl::memory::dims sizes, int sign) {
    sizes.at(op.axis) += sign * static_cast<dnnl::memory::dim>(op.border.before + op.border.behind);
    if (op.columns > 1) {
      sizes.at(op.axis + 1) += sign * static_cast<dnnl::memory::dim>(op.column_border.before + op.column_border.behind);
    }
    return sizes;
  }
};

}  // namespace

std::unique_ptr<Layer> make_neighbour_exchange() { return std::make_unique<NeighbourExchange>(); }

}  // namespace hcclsim::device::onednn
