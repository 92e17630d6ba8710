#pragma once

#include <string>
#include <vector>

#include "models/lowering/kernel.hpp"

/// The kernels of one pre-training step of BERT in mixed precision, as the graph engine would launch them: a rough list
/// for calibrating the efficiency of matrix products, which are more than half of its time. fp16 activations, fp32
/// master weights, dropout as a kernel of its own, layer norm fused with its residual add, LAMB in twelve fp32 passes.
namespace hcclsim::test {

struct BertShape {
  std::uint64_t hidden = 1024;  // BERT-Large
  std::uint64_t layers = 24;
  std::uint64_t heads = 16;
  std::uint64_t intermediate = 4096;
  std::uint64_t vocabulary = 30522;
  std::uint64_t sequence = 128;
  std::uint64_t predictions = 20;  // masked tokens per sequence
  std::uint64_t batch = 96;
};

class BertKernels {
 public:
  explicit BertKernels(const BertShape& shape) : shape_(shape), tokens_(shape.batch * shape.sequence) { build(); }

  [[nodiscard]] const std::vector<models::Kernel>& kernels() const { return kernels_; }
  [[nodiscard]] std::uint64_t parameters() const { return parameters_; }
  [[nodiscard]] Flops flops() const { return flops_; }

 private:
  /// A product [m, k]·[k, n] of fp16 tensors; weight gradients are written in fp32.
  void product(std::uint64_t m, std::uint64_t n, std::uint64_t k, std::uint64_t groups = 1, bool weight = false) {
    models::Kernel kernel;
    kernel.name = "product";
    kernel.kind = models::KernelClass::matmul;
    kernel.cube = {.m = m, .n = n, .k = k, .groups = groups, .split_k = weight};
    kernel.flops = 2.0 * static_cast<double>(m * n * k * groups);
    kernel.read = 2 * groups * (m * k + k * n);
    kernel.written = (weight ? 4 : 2) * groups * m * n;
    flops_ += kernel.flops;
    kernels_.push_back(kernel);
  }

  /// An element-wise kernel: `passes` fp16 tensors of `elements` through HBM, `operations` vector operations for each.
  void elementwise(std::uint64_t elements, std::uint64_t passes, std::uint64_t operations, Bytes size = 2) {
    models::Kernel kernel;
    kernel.name = "elementwise";
    kernel.dtype = size == 4 ? DataType::fp32 : DataType::fp16;
    kernel.vector_elements = elements * operations;
    kernel.read = elements * (passes - 1) * size;
    kernel.written = elements * size;
    kernels_.push_back(kernel);
  }

  /// A linear layer with bias: forward, bias, data and weight gradient, the cast of its weight and its update.
  void linear(std::uint64_t rows, std::uint64_t in, std::uint64_t out) {
    elementwise(in * out, 3, 1);  // fp32 to fp16: six bytes
    product(rows, out, in);
    product(rows, in, out);
    product(in, out, rows, 1, true);
    elementwise(rows * out, 1, 1);
    update(in * out);
    update(out);
  }

  void update(std::uint64_t elements) {
    elementwise(elements, 12, 12, 4);
    parameters_ += elements;
  }

  /// Dropout: read, write, and its gradient.
  void dropout(std::uint64_t elements) {
    elementwise(elements, 2, 2);
    elementwise(elements, 2, 2);
  }

  /// Residual add with layer norm (three passes) and its gradient (four).
  void layer_norm(std::uint64_t elements) {
    elementwise(elements, 3, 8);
    elementwise(elements, 4, 12);
    update(shape_.hidden);
    update(shape_.hidden);
  }

  void layer() {
    const std::uint64_t hidden = tokens_ * shape_.hidden;
    const std::uint64_t groups = shape_.batch * shape_.heads;
    const std::uint64_t head = shape_.hidden / shape_.heads;
    const std::uint64_t scores = groups * shape_.sequence * shape_.sequence;
    for (int i = 0; i < 4; ++i) {  // query, key, value, output, each with its change of layout, both ways
      linear(tokens_, shape_.hidden, shape_.hidden);
      elementwise(hidden, 2, 1);
      elementwise(hidden, 2, 1);
    }
    // Scores, context, and two gradients of each.
    for (int i = 0; i < 2; ++i) product(shape_.sequence, shape_.sequence, head, groups);
    for (int i = 0; i < 4; ++i) product(shape_.sequence, head, shape_.sequence, groups);
    elementwise(scores, 2, 10);  // scale, mask, softmax
    elementwise(scores, 3, 6);
    dropout(scores);
    dropout(hidden);
    layer_norm(hidden);
    linear(tokens_, shape_.hidden, shape_.intermediate);
    elementwise(tokens_ * shape_.intermediate, 2, 12);  // GELU
    elementwise(tokens_ * shape_.intermediate, 3, 20);
    linear(tokens_, shape_.intermediate, shape_.hidden);
    dropout(hidden);
    layer_norm(hidden);
  }

  void build() {
    const std::uint64_t hidden = tokens_ * shape_.hidden;
    const std::uint64_t masked = shape_.batch * shape_.predictions;
    elementwise(hidden, 4, 3);  // sum of three embeddings and their gradient
    elementwise(hidden, 4, 3);
    layer_norm(hidden);
    dropout(hidden);
    for (std::uint64_t i = 0; i < shape_.layers; ++i) layer();
    linear(masked, shape_.hidden, shape_.hidden);
    layer_norm(masked * shape_.hidden);
    linear(masked, shape_.hidden, shape_.vocabulary);   // shares the embedding's weight, updated here
    elementwise(masked * shape_.vocabulary, 3, 10, 4);  // softmax cross-entropy in fp32 and its gradient
    elementwise(masked * shape_.vocabulary, 2, 4, 4);
    linear(shape_.batch, shape_.hidden, shape_.hidden);  // pooler
    update((shape_.sequence + 2) * shape_.hidden);
  }

  BertShape shape_;
  std::uint64_t tokens_;
  std::vector<models::Kernel> kernels_;
  std::uint64_t parameters_ = 0;
  Flops flops_ = 0;
};

}  // namespace hcclsim::test
