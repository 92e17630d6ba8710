#include "device/numerics/loops/ring_attention.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "base/error.hpp"
#include "device/numerics/loops/dropout.hpp"
#include "device/numerics/onednn/layer.hpp"
#include "device/numerics/onednn/parts.hpp"

/// Attention whose positions a group has in parts: keys and values go round it, and in the backward pass their
/// gradients with them. The loops are our own, in fp32.
namespace hcclsim::device::onednn {
namespace {

/// Where queries, keys and values are in the tensors that the operator reads: in one or in three.
struct RingInputs {
  std::vector<PlainTensor> tensors;
  RingForm form;

  [[nodiscard]] std::size_t row(std::size_t part) const {
    const std::size_t heads = part == 0 ? form.heads : form.kv_heads;
    return (tensors.size() == 1 ? form.heads + 2 * form.kv_heads : heads) * form.width;
  }
  /// Part 0 are the queries, 1 the keys, 2 the values.
  [[nodiscard]] RowsOfHeads<float> part(const StepContext& step, std::size_t part) const {
    const std::size_t first = tensors.size() > 1 || part == 0 ? 0 : (form.heads + (part - 1) * form.kv_heads);
    return {step.data(tensors[tensors.size() == 1 ? 0 : part].id) + first * form.width, row(part)};
  }
  [[nodiscard]] RowsOfHeads<const float> queries(const StepContext& step) const {
    const RowsOfHeads<float> rows = part(step, 0);
    return {rows.first, rows.row};
  }
  /// Keys and values as a block.
  void pack(const StepContext& step, float* block) const {
    for (const std::size_t half : {1U, 2U}) {
      const RowsOfHeads<float> rows = part(step, half);
      for (std::size_t r = 0; r < form.rows(); ++r) {
        block = std::copy_n(rows.at(r, 0, form.width), form.kv_heads * form.width, block);
      }
    }
  }
  void unpack(const StepContext& step, const float* block) const {
    const std::size_t features = form.kv_heads * form.width;
    for (const std::size_t half : {1U, 2U}) {
      const RowsOfHeads<float> rows = part(step, half);
      for (std::size_t r = 0; r < form.rows(); ++r, block += features) {
        std::copy_n(block, features, rows.at(r, 0, form.width));
      }
    }
  }
};

/// Dropout of probabilities, by their places in the whole network.
struct RingDropout {
  float rate = 0;
  models::OperatorId stream = 0;
  models::OperatorId number = 0;
  RingForm form;

  [[nodiscard]] ProbabilityFactor factor(const StepContext& step) const {
    if (rate == 0) return {};
    const TensorPart& part = step.input.parts[number];
    const std::size_t length = form.ranks * form.length;
    const std::size_t heads = part.whole[2] / form.width;
    const std::size_t sequences_of_sample = part.of_sample / (length * part.whole[2]);
    return [dropout = Dropout(step.input.dropout_seed, stream, rate), first = step.input.first_sample, part, length,
            heads, sequences_of_sample, width = form.width,
            kept = 1 / (1 - rate)](std::size_t sequence, std::size_t head, std::size_t query, std::size_t key) {
      const std::size_t whole_sequence = part.first[0] + sequence;
      const std::size_t of_heads = whole_sequence % sequences_of_sample * heads + part.first[2] / width + head;
      const std::size_t element = (of_heads * length + query) * length + key;
      return dropout.keeps(first + whole_sequence / sequences_of_sample, element) ? kept : 0.0F;
    };
  }
};

class RingAttention : public Layer {
 public:
  void plan_forward(Planner& planner) override {
    const models::Operator& op = planner.op();
    if (models::key_width(op) != models::value_width(op)) {
      bad_input("numerics", "{}: keys and values that go round a group have heads of one width", op.name);
    }
    in_ = {};
    for (std::size_t input = 0; input < op.inputs.size(); ++input) {
      in_.tensors.push_back(as_plain(planner, planner.input(input)));
      planner.keep(in_.tensors.back().id);
    }
    in_.form = {.sequences = op.shape().batch() / op.sequence,
                .length = op.sequence,
                .ranks = op.group.ranks,
                .heads = op.heads,
                .kv_heads = op.kv_heads,
                .width = models::value_width(op),
                .causal = op.causal};
    dropout_ = {op.drop_rate, planner.random_stream(), planner.number(), in_.form};
    const std::size_t block = in_.form.block();
    const PlainTensor blocks = new_numbers(planner, in_.form.ranks * block);
    out_ = new_plain_tensor(
        planner, {static_cast<dnnl_dim_t>(in_.form.rows()), static_cast<dnnl_dim_t>(in_.form.heads * in_.form.width)});
    statistics_ = new_numbers(planner, in_.form.statistics());
    host(planner, {blocks.id}, [in = in_, blocks](const StepContext& step) { in.pack(step, step.data(blocks.id)); });
    for (std::size_t step = 0; step + 1 < in_.form.ranks; ++step) {
      host(planner, {blocks.id}, [=](const StepContext& context) {
        std::copy_n(context.data(blocks.id) + step * block, block, context.sent);
      });
      planner.stop_for(false, block, block);
      host(planner, {blocks.id}, [=](const StepContext& context) {
        std::copy_n(context.received, block, context.data(blocks.id) + (step + 1) * block);
      });
    }
    host(planner, {blocks.id, out_.id, statistics_.id},
         [in = in_, blocks, out = out_, statistics = statistics_, dropout = dropout_,
          group = op.group](const StepContext& step) {
           ring_attention(in.form, step.place_in(group), in.queries(step), numbers(step, blocks), dropout.factor(step),
                          numbers(step, out), numbers(step, statistics));
         });
    planner.keep(out_.id);
    planner.keep(statistics_.id);
    planner.set_output(as_output(planner, out_));
  }

  void plan_backward(Planner& planner) override {
    const models::Group group = planner.op().group;
    const PlainTensor slopes = as_plain(planner, planner.output_gradient());
    RingInputs gradients{.tensors = {}, .form = in_.form};
    for (const PlainTensor& tensor : in_.tensors) gradients.tensors.push_back(new_plain_tensor(planner, tensor.sizes));
    const std::size_t block = in_.form.block();
    const PlainTensor keys = new_numbers(planner, 2 * block);  // the block of this step, and of the next one
    const PlainTensor of_keys = new_numbers(planner, block);
    for (const PlainTensor& tensor : gradients.tensors) {
      host(planner, {tensor.id}, [tensor](const StepContext& step) { std::ranges::fill(numbers(step, tensor), 0.0F); });
    }
    host(planner, {keys.id, of_keys.id}, [in = in_, keys, of_keys](const StepContext& step) {
      in.pack(step, step.data(keys.id));
      std::ranges::fill(numbers(step, of_keys), 0.0F);
    });
    for (std::size_t number = 0; number < in_.form.ranks; ++number) {
      const bool last = number + 1 == in_.form.ranks;
      if (!last) {
        host(planner, {keys.id}, [=](const StepContext& step) { std::copy_n(step.data(keys.id), block, step.sent); });
        planner.stop_for(true, block, block);
        host(planner, {keys.id},
             [=](const StepContext& step) { std::copy_n(step.received, block, step.data(keys.id) + block); });
      }
      host(planner, {keys.id, of_keys.id, slopes.id, out_.id, statistics_.id, gradients.tensors.front().id},
           [in = in_, keys, of_keys, slopes, out = out_, statistics = statistics_, gradients, dropout = dropout_, group,
            number, block](const StepContext& step) {
             ring_attention_gradient(in.form, step.place_in(group), number, in.queries(step),
                                     numbers(step, keys).first(block), dropout.factor(step), numbers(step, out),
                                     numbers(step, statistics), numbers(step, slopes), gradients.part(step, 0),
                                     numbers(step, of_keys));
             std::ranges::copy(numbers(step, of_keys), step.sent);
             std::copy_n(step.data(keys.id) + block, block, step.data(keys.id));
           });
      planner.stop_for(true, block, block);
      host(planner, {of_keys.id},
           [=](const StepContext& step) { std::copy_n(step.received, block, step.data(of_keys.id)); });
    }
    std::vector<TensorId> uses{of_keys.id};
    for (const PlainTensor& tensor : gradients.tensors) uses.push_back(tensor.id);
    planner.host(uses,
                 [gradients, of_keys](const StepContext& step) { gradients.unpack(step, step.data(of_keys.id)); });
    for (std::size_t i = 0; i < gradients.tensors.size(); ++i) planner.give_gradient(i, gradients.tensors[i].id);
  }

 private:
  static PlainTensor new_numbers(Planner& planner, std::size_t elements) {
    return new_plain_tensor(planner, {static_cast<dnnl_dim_t>(elements)});
  }
  static std::span<float> numbers(const StepContext& step, const PlainTensor& tensor) {
    return {step.data(tensor.id), tensor.elements()};
  }
  /// A task that reads the inputs as well.
  void host(Planner& planner, std::vector<TensorId> uses, HostTask work) const {
    for (const PlainTensor& tensor : in_.tensors) uses.push_back(tensor.id);
    planner.host(uses, std::move(work));
  }

  RingInputs in_;
  RingDropout dropout_;
  PlainTensor out_;
  PlainTensor statistics_;
};

}  // namespace

std::unique_ptr<Layer> make_ring_attention() { return std::make_unique<RingAttention>(); }

}  // namespace hcclsim::device::onednn
