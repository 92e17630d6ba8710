#include "device/numerics/loops/embedding.hpp"

#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

#include "device/numerics/onednn/layer.hpp"

/// Tables of tokens, of positions and of segments. The loops are in fp32; other types are converted before and after.
namespace hcclsim::device::onednn {
namespace {

constexpr auto fp32 = dnnl::memory::data_type::f32;

/// The table of an operator: its place in production order, and numbers of elements.
struct Table {
  explicit Table(const Planner& planner)
      : gradient(planner.gradient_index(0)),
        elements(planner.graph().parameters[planner.op().parameters[0]].elements),
        features(planner.op().shape().channels()),
        output(planner.op().shape().elements()),
        group(planner.op().group),
        row_parts(planner.op().row_parts) {}

  [[nodiscard]] std::span<const float> weight_of(const StepContext& step) const {
    return {step.weight_of(gradient), elements};
  }
  [[nodiscard]] std::span<float> gradient_of(const StepContext& step) const {
    return {step.gradient_of(gradient), elements};
  }
  /// Of the positions that a group has in parts.
  [[nodiscard]] TablePart part(const StepContext& step) const { return {step.place_in(group), group.ranks}; }
  /// The rows of a table of tokens that this rank has.
  [[nodiscard]] TableRows rows(const StepContext& step) const {
    const std::size_t place = step.place_in(group);
    const std::size_t entries = elements / features;
    if (group.ranks == 1 || row_parts.empty()) return {place * entries, entries, entries * group.ranks};
    const auto own = row_parts.begin() + static_cast<std::ptrdiff_t>(place);
    return {std::accumulate(row_parts.begin(), own, std::size_t{0}), *own,
            std::accumulate(row_parts.begin(), row_parts.end(), std::size_t{0}), true};
  }
  /// A tensor as large as the output.
  [[nodiscard]] std::span<float> rows_of(const StepContext& step, TensorId id) const { return {step.data(id), output}; }

  std::uint32_t gradient;
  std::size_t elements;
  std::size_t features;
  std::size_t output;
  models::Group group;
  std::vector<std::uint32_t> row_parts;
};

/// The tokens that an operator looks up: those of the batch, or what has been moved of them.
class Tokens {
 public:
  explicit Tokens(Planner& planner) : elements_(planner.input_shape().elements()) {
    if (planner.graph().operators[planner.op().inputs.front().op].kind == models::OperatorKind::input) return;
    moved_ = planner.input();
    planner.keep(*moved_);
  }

  /// That a task uses with `others`.
  [[nodiscard]] std::vector<TensorId> used_with(std::vector<TensorId> others) const {
    if (moved_.has_value()) others.push_back(*moved_);
    return others;
  }
  [[nodiscard]] std::vector<std::int32_t> of(const StepContext& step) const {
    if (!moved_.has_value()) return step.batch->tokens;
    const std::span<const float> numbers(step.data(*moved_), elements_);
    return {numbers.begin(), numbers.end()};
  }

 private:
  std::size_t elements_;
  std::optional<TensorId> moved_;
};

class TokenEmbedding : public Layer {
 public:
  void plan_forward(Planner& planner) override {
    const models::Shape& shape = planner.op().shape();
    const Tokens tokens(planner);
    const TensorId out = planner.new_tensor(matrix_layout(shape, fp32));
    planner.host(tokens.used_with({out}), [out, tokens, table = Table(planner)](const StepContext& step) {
      look_up(table.weight_of(step), table.rows(step), tokens.of(step), table.features, table.rows_of(step, out));
    });
    planner.set_output(planner.in_layout(out, matrix_layout(shape, planner.compute_type())));
  }

  void plan_backward(Planner& planner) override {
    const TensorId slope = planner.in_layout(planner.output_gradient(), matrix_layout(planner.op().shape(), fp32));
    const bool add = planner.is_begun(0);
    const Tokens tokens(planner);
    planner.host(tokens.used_with({slope}), [slope, add, tokens, table = Table(planner)](const StepContext& step) {
      look_up_gradient(table.rows_of(step, slope), table.rows(step), tokens.of(step), table.features,
                       table.gradient_of(step), add);
    });
  }
};

/// Of positions or of segments, added to the input or, if that is the tokens, by themselves.
class PositionEmbedding : public Layer {
 public:
  void plan_forward(Planner& planner) override {
    const models::Shape& shape = planner.op().shape();
    const PositionTable form = form_of(planner);
    if (planner.reads_tokens()) {
      const TensorId out = planner.new_tensor(matrix_layout(shape, fp32));
      planner.host({out}, [out, form, table = Table(planner)](const StepContext& step) {
        add_positions(form.at(table.part(step)), table.weight_of(step), {}, table.rows_of(step, out));
      });
      planner.set_output(planner.in_layout(out, matrix_layout(shape, planner.compute_type())));
      return;
    }
    const TensorId in = planner.in_layout(planner.input(), matrix_layout(shape, fp32));
    const bool in_place = in != planner.input() || planner.may_overwrite_input();
    const TensorId out = in_place ? in : planner.new_tensor(planner.layout(in));
    planner.host({in, out}, [in, out, form, table = Table(planner)](const StepContext& step) {
      add_positions(form.at(table.part(step)), table.weight_of(step), table.rows_of(step, in),
                    table.rows_of(step, out));
    });
    planner.set_output(planner.in_layout(out, matrix_layout(shape, planner.compute_type())));
  }

  void plan_backward(Planner& planner) override {
    const TensorId slope = planner.in_layout(planner.output_gradient(), matrix_layout(planner.op().shape(), fp32));
    planner.host({slope}, [slope, form = form_of(planner), table = Table(planner)](const StepContext& step) {
      add_positions_gradient(form.at(table.part(step)), table.rows_of(step, slope), table.gradient_of(step));
    });
    if (!planner.reads_tokens()) planner.give_gradient(0, planner.output_gradient());
  }

 private:
  static PositionTable form_of(const Planner& planner) {
    const models::Operator& op = planner.op();
    const bool segments = op.kind == models::OperatorKind::segment_embedding;
    return {.sequence = op.sequence,
            .features = op.shape().channels(),
            .segments = segments ? planner.graph().parameters[op.parameters[0]].shape.front() : 0};
  }
};

}  // namespace

std::unique_ptr<Layer> make_token_embedding() { return std::make_unique<TokenEmbedding>(); }
std::unique_ptr<Layer> make_position_embedding() { return std::make_unique<PositionEmbedding>(); }

}  // namespace hcclsim::device::onednn
