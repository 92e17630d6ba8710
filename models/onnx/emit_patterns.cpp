#include <fmt/format.h>

#include "models/onnx/emitter.hpp"

namespace hcclsim::models::onnx {

void Emitter::emit_pattern(std::size_t number, const Pattern& pattern) {
  const std::string& x = pattern.inputs[0];
  switch (pattern.kind) {
    case PatternKind::gelu:
      set(pattern.output, builder_->gelu(name_for(pattern.heart), value_of(x)));
      return;
    case PatternKind::swiglu:
      set(pattern.output, builder_->swiglu(name_for(pattern.heart), rows(x), rows(pattern.inputs[1])));
      return;
    case PatternKind::layer_norm:
      begin(number, pattern.weights[0]);
      set(pattern.output, builder_->layer_norm(name_for(number, pattern.weights[0]), rows(x)));
      note({pattern.weights[0], pattern.weights[1]});
      return;
    case PatternKind::rms_norm:
      begin(number, pattern.weights[0]);
      set(pattern.output, builder_->rms_norm(name_for(number, pattern.weights[0]), rows(x)));
      note({pattern.weights[0]});
      return;
    case PatternKind::rotary: {
      // Sequences × heads × length × width, or with heads behind the length: as the rows that they came from.
      std::string from = x;
      while (network_.dims(from).size() == 4 && network_.tensor(from).producer != no_node) {
        from = network_.node(network_.tensor(from).producer).inputs[0];
        if (network_.dims(from).size() <= 3) break;
      }
      const Value features = network_.dims(from).size() <= 3 ? rows(from) : value_of(x);
      const auto width = static_cast<std::uint32_t>(network_.dims(x)[3]);
      const std::uint32_t heads = builder_->shape(features).channels() / width;
      set(pattern.output, builder_->rotary(name_for(pattern.heart), features, heads));
      return;
    }
    case PatternKind::attention:
      emit_attention(pattern);
      return;
    case PatternKind::linear:
      emit_linear(number, x, pattern.weights[0], pattern.weights[1], pattern.output, pattern.heart);
      return;
  }
}

void Emitter::emit_attention(const Pattern& pattern) {
  const AttentionOptions options{
      .heads = pattern.heads, .kv_heads = pattern.kv_heads, .causal = pattern.causal, .drop_rate = pattern.drop_rate};
  // Rotary positions have left rows, whatever axes the file gives them.
  const auto features = [&](const std::string& name) {
    const Value value = value_of(name);
    const Shape shape = network_.dims(name).size() < 4 ? rows_shape(name) : builder_->shape(value);
    return shaped(name, value, shape, pattern.length);
  };
  const std::string name = name_for(pattern.heart);
  const Value first = features(pattern.inputs[0]);
  const OperatorId id = pattern.inputs.size() == 1 ? builder_->attention(name, first, options)
                                                   : builder_->attention(name, first, features(pattern.inputs[1]),
                                                                         features(pattern.inputs[2]), options);
  set(pattern.output, id);
}

void Emitter::emit_linear(std::size_t number, const std::string& from, const std::string& weight,
                          const std::string& bias, const std::string& output, std::size_t heart) {
  begin(heart, bias.empty() || !weight_name(weight).starts_with("onnx::") ? weight : bias);
  const auto features = static_cast<std::uint32_t>(network_.dims(output).back());
  const Value x = rows(from);
  const std::string name = name_for(heart, weight_name(weight).starts_with("onnx::") && !bias.empty() ? bias : weight);
  const auto table = tables_.find(weight_name(weight));
  if (!knows(weight) && is_whole(weight) && (bias.empty() || is_whole(bias))) {
    set(output, builder_->linear(name, x, features, !bias.empty()));
    note({weight});
    if (!bias.empty()) note({bias});
    return;
  }
  if (table != tables_.end() && is_whole(weight)) {
    set(output, builder_->tied_linear(name, x, table->second, !bias.empty()));
    if (!bias.empty()) note({bias});
    return;
  }
  const Shape in = builder_->shape(x);
  const OperatorId id =
      builder_->matrix_product(name, {x}, {in.batch(), features}, {.m = in.batch(), .n = features, .k = in.channels()});
  use_weight(id, weight);
  set(output, bias.empty() ? Value(id) : with_bias(number, id, bias));
}

}  // namespace hcclsim::models::onnx
