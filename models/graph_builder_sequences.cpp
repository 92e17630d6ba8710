// Operators of sequences: embeddings, norms of rows, attention.

#include <fmt/format.h>

#include <utility>

#include "base/error.hpp"
#include "models/graph_builder.hpp"

namespace hcclsim::models {
namespace {

constexpr std::uint32_t max_vocabulary = 1 << 24;
constexpr std::uint32_t max_positions = 1 << 24;
constexpr std::uint32_t max_features = 1 << 24;

}  // namespace

OperatorId GraphBuilder::swiglu(std::string name, Value gate, Value up, Activation activation) {
  if (shape(gate) != shape(up)) {
    bad_input("model", "{}: cannot multiply tensors of {} and {}", name, to_string(shape(gate)), to_string(shape(up)));
  }
  const OperatorId id = append(std::move(name), OperatorKind::swiglu, {gate, up}, shape(gate));
  graph_.operators[id].activation = activation;
  return id;
}

OperatorId GraphBuilder::tied_linear(std::string name, Value from, OperatorId embedding, bool bias) {
  const std::uint32_t table = graph_.operators[embedding].parameters.front();
  const std::vector<std::uint32_t> sizes = graph_.parameters[table].shape;
  if (features_of(name, from) != sizes.back()) {
    bad_input("model", "{}: {} features do not meet a table of {}x{}", name, shape(from).channels(), sizes.front(),
              sizes.back());
  }
  const OperatorId id = append(std::move(name), OperatorKind::linear, {from}, {shape(from).batch(), sizes.front()});
  graph_.operators[id].parameters.push_back(table);
  if (bias) add_parameter(id, "bias", {sizes.front()});
  return id;
}

OperatorId GraphBuilder::tied_embedding(std::string name, OperatorId embedding, std::uint32_t ahead) {
  const std::uint32_t table = graph_.operators[embedding].parameters.front();
  const OperatorId id = append_rows(std::move(name), OperatorKind::token_embedding, input(), sequences_.front(),
                                    shape(embedding).channels());
  graph_.operators[id].parameters.push_back(table);
  graph_.operators[id].ahead = ahead;
  return id;
}

OperatorId GraphBuilder::layer_norm(std::string name, Value from) {
  const std::uint32_t features = features_of(name, from);
  const OperatorId id = append(std::move(name), OperatorKind::layer_norm, {from}, shape(from));
  add_parameter(id, "weight", {features});
  add_parameter(id, "bias", {features});
  return id;
}

OperatorId GraphBuilder::rms_norm(std::string name, Value from, std::uint32_t heads) {
  const std::uint32_t features = features_of(name, from);
  if (heads == 0 || features % heads != 0) {
    bad_input("model", "{}: {} heads do not divide {} features", name, heads, features);
  }
  const OperatorId id = append(std::move(name), OperatorKind::rms_norm, {from}, shape(from));
  graph_.operators[id].heads = heads;
  add_parameter(id, "weight", {features / heads});
  return id;
}

std::uint32_t GraphBuilder::sequence_of(std::string_view name, Value from) const {
  const std::uint32_t sequence = sequences_[from.op];
  if (sequence == 0) {
    bad_input("model", "{}: needs the rows of sequences, got {} from an input of {} ({})", name, to_string(shape(from)),
              to_string(shape(input())), name_of(graph_.input_kind));
  }
  return sequence;
}

OperatorId GraphBuilder::append_rows(std::string name, OperatorKind kind, Value from, std::uint32_t length,
                                     std::uint32_t features) {
  const bool tokens = from == Value(input()) && graph_.input_kind == InputKind::tokens;
  const std::uint32_t sequences = tokens ? shape(from).batch() : shape(from).batch() / sequence_of(name, from);
  const OperatorId id = append(std::move(name), kind, {from}, {sequences * length, features});
  sequences_[id] = length;
  graph_.operators[id].sequence = length;
  return id;
}

OperatorId GraphBuilder::token_embedding(std::string name, Value from, std::uint32_t vocabulary,
                                         std::uint32_t features) {
  if (vocabulary == 0 || vocabulary > max_vocabulary) {
    bad_input("model", "{}: a vocabulary must have 1 to {} tokens, got {}", name, max_vocabulary, vocabulary);
  }
  if (graph_.input_kind != InputKind::tokens || from != Value(input())) {
    bad_input("model", "{}: a token embedding reads the input, which must be tokens", name);
  }
  const OperatorId id =
      append_rows(std::move(name), OperatorKind::token_embedding, from, sequences_[from.op], features);
  add_parameter(id, "weight", {vocabulary, features});
  return id;
}

OperatorId GraphBuilder::position_embedding(std::string name, Value from, std::uint32_t positions) {
  const std::uint32_t sequence = sequence_of(name, from);
  if (positions == 0) positions = sequence;
  if (positions < sequence || positions > max_positions) {
    bad_input("model", "{}: a table for {} positions does not hold sequences of {}", name, positions, sequence);
  }
  const std::uint32_t features = shape(from).channels();
  const OperatorId id = append_rows(std::move(name), OperatorKind::position_embedding, from, sequence, features);
  add_parameter(id, "weight", {positions, features});
  return id;
}

OperatorId GraphBuilder::position_rows(std::string name, std::uint32_t positions, std::uint32_t features) {
  const std::uint32_t sequence = sequence_of(name, input());
  if (positions < sequence || positions > max_positions) {
    bad_input("model", "{}: a table for {} positions does not hold sequences of {}", name, positions, sequence);
  }
  const OperatorId id = append_rows(std::move(name), OperatorKind::position_embedding, input(), sequence, features);
  add_parameter(id, "weight", {positions, features});
  return id;
}

OperatorId GraphBuilder::segment_embedding(std::string name, Value from, std::uint32_t segments) {
  const std::uint32_t sequence = sequence_of(name, from);
  const std::uint32_t features = shape(from).channels();
  const OperatorId id = append_rows(std::move(name), OperatorKind::segment_embedding, from, sequence, features);
  add_parameter(id, "weight", {segments, features});
  return id;
}

OperatorId GraphBuilder::class_token(std::string name, Value from) {
  const std::uint32_t sequence = sequence_of(name, from);
  const std::uint32_t features = shape(from).channels();
  const OperatorId id = append_rows(std::move(name), OperatorKind::class_token, from, sequence + 1, features);
  add_parameter(id, "weight", {1, features});
  return id;
}

OperatorId GraphBuilder::patches(std::string name, Value from) {
  const Shape in = shape(from);
  const auto length = static_cast<std::uint32_t>(in.image());
  const OperatorId id = append(std::move(name), OperatorKind::patches, {from}, {in.batch() * length, in.channels()});
  sequences_[id] = length;
  graph_.operators[id].sequence = length;
  return id;
}

OperatorId GraphBuilder::rotary(std::string name, Value from, std::uint32_t heads, std::uint32_t turned) {
  const std::uint32_t features = shape(from).channels();
  if (heads == 0 || features % heads != 0 || features / heads % 2 != 0) {
    bad_input("model", "{}: {} features are not {} heads of even size", name, features, heads);
  }
  if (turned % 2 != 0 || turned > features / heads) {
    bad_input("model", "{}: {} features of a head of {} cannot be turned in pairs", name, turned, features / heads);
  }
  const std::uint32_t sequence = sequence_of(name, from);
  const OperatorId id = append_rows(std::move(name), OperatorKind::rotary, from, sequence, features);
  graph_.operators[id].heads = heads;
  graph_.operators[id].turned = turned;
  return id;
}

OperatorId GraphBuilder::join_heads(std::string name, Value from, Value shared, std::uint32_t heads) {
  const std::uint32_t sequence = sequence_of(name, from);
  const std::uint32_t features = features_of(name, from);
  const std::uint64_t joined = features + std::uint64_t{features_of(name, shared)} * heads;
  if (heads == 0 || features % heads != 0 || joined > max_features || shape(from).batch() != shape(shared).batch()) {
    bad_input("model", "{}: {} are not the rows of {} heads that {} can be joined to", name, to_string(shape(from)),
              heads, to_string(shape(shared)));
  }
  const OperatorId id = append(std::move(name), OperatorKind::join_heads, {from, shared},
                               {shape(from).batch(), static_cast<std::uint32_t>(joined)});
  graph_.operators[id].sequence = sequence;
  graph_.operators[id].heads = heads;
  return id;
}

OperatorId GraphBuilder::append_attention(std::string name, std::vector<Value> inputs, std::uint32_t features,
                                          const AttentionOptions& options) {
  if (!(options.drop_rate >= 0 && options.drop_rate < 1)) {
    bad_input("model", "{}: the drop rate must be 0 or more and below 1, got {}", name, options.drop_rate);
  }
  const std::uint32_t sequence = sequence_of(name, inputs.front());
  const Shape in = shape(inputs.front());
  const OperatorId id = append(std::move(name), OperatorKind::attention, std::move(inputs), {in.batch(), features});
  Operator& op = graph_.operators[id];
  op.sequence = sequence;
  op.heads = options.heads;
  op.kv_heads = options.kv_heads == 0 ? options.heads : options.kv_heads;
  op.causal = options.causal;
  op.met = options.met;
  op.drop_rate = options.drop_rate;
  return id;
}

OperatorId GraphBuilder::attention(std::string name, Value from, const AttentionOptions& options) {
  const std::uint32_t all = shape(from).channels();
  const std::uint32_t kv_heads = options.kv_heads == 0 ? options.heads : options.kv_heads;
  const std::uint64_t blocks = std::uint64_t{options.heads} + 2 * std::uint64_t{kv_heads};
  if (options.heads == 0 || options.heads % kv_heads != 0 || all % blocks != 0) {
    bad_input("model", "{}: {} features are not the queries of {} heads and the keys and values of {}", name, all,
              options.heads, kv_heads);
  }
  const auto width = static_cast<std::uint32_t>(all / blocks);
  return append_attention(std::move(name), {from}, options.heads * width, options);
}

OperatorId GraphBuilder::attention(std::string name, Value queries, Value keys, Value values,
                                   const AttentionOptions& options) {
  const std::uint32_t kv_heads = options.kv_heads == 0 ? options.heads : options.kv_heads;
  const std::uint32_t features = shape(queries).channels();
  if (options.heads == 0 || options.heads % kv_heads != 0 || features % options.heads != 0 ||
      shape(keys).batch() != shape(queries).batch() || shape(values).batch() != shape(queries).batch() ||
      shape(keys).channels() != features / options.heads * kv_heads || shape(values).channels() % kv_heads != 0) {
    bad_input("model", "{}: queries of {} in {} heads do not meet keys of {} and values of {} in {} heads", name,
              to_string(shape(queries)), options.heads, to_string(shape(keys)), to_string(shape(values)), kv_heads);
  }
  const std::uint32_t width = features / options.heads;
  const std::uint32_t value_width = shape(values).channels() / kv_heads;
  const OperatorId id =
      append_attention(std::move(name), {queries, keys, values}, options.heads * value_width, options);
  if (width != value_width) graph_.operators[id].key_width = width;
  return id;
}

OperatorId GraphBuilder::select_rows(std::string name, Value from, std::uint32_t rows) {
  const std::uint32_t sequence = sequence_of(name, from);
  if (rows == 0 || rows > sequence) {
    bad_input("model", "{}: there are no {} rows in sequences of {}", name, rows, sequence);
  }
  return append_rows(std::move(name), OperatorKind::select_rows, from, rows, shape(from).channels());
}

OperatorId GraphBuilder::join_rows(std::string name, Value from) {
  const std::uint32_t sequence = sequence_of(name, from);
  const OperatorId id =
      append_rows(std::move(name), OperatorKind::join_rows, from, 1, sequence * shape(from).channels());
  graph_.operators[id].sequence = sequence;
  return id;
}

OperatorId GraphBuilder::sum_rows(std::string name, Value from, bool bias) {
  const std::uint32_t sequence = sequence_of(name, from);
  const std::uint32_t features = shape(from).channels();
  const OperatorId id = append_rows(std::move(name), OperatorKind::sum_rows, from, 1, features);
  graph_.operators[id].sequence = sequence;
  if (bias) add_parameter(id, "bias", {features});
  return id;
}

OperatorId GraphBuilder::factorization(std::string name, Value from) {
  const std::uint32_t sequence = sequence_of(name, from);
  const OperatorId id = append_rows(std::move(name), OperatorKind::factorization, from, 1, 1);
  graph_.operators[id].sequence = sequence;
  return id;
}

}  // namespace hcclsim::models
