#include "tests/support/training/reference_layers.hpp"

#include <algorithm>
#include <cmath>

namespace hcclsim::test {
namespace {

using models::Operator;
using models::OperatorKind;
using models::Shape;

constexpr double epsilon = 1e-5;  // of both norms

std::size_t at(const Shape& shape, std::size_t n, std::size_t c, std::size_t y, std::size_t x) {
  return ((n * shape.channels() + c) * shape.height() + y) * shape.width() + x;
}

struct Index4 {
  std::size_t n, c, y, x;
};

template <typename Visit>
void each_element(const Shape& shape, Visit visit) {
  for (std::size_t n = 0; n < shape.batch(); ++n) {
    for (std::size_t c = 0; c < shape.channels(); ++c) {
      for (std::size_t y = 0; y < shape.height(); ++y) {
        for (std::size_t x = 0; x < shape.width(); ++x) visit(Index4{n, c, y, x});
      }
    }
  }
}

/// Calls visit(output element, input element, weight element) for every product of a convolution or linear operator;
/// the latter is a 1x1 convolution of a 1x1 image.
template <typename Visit>
void each_product(const ReferencePass& pass, const Operator& op, Visit visit) {
  const Shape& in = pass.graph.input_of(op);
  const std::size_t kernel = op.window.kernel;
  const std::size_t inputs_per_group = in.channels() / op.groups;
  const std::size_t outputs_per_group = op.shape().channels() / op.groups;
  each_element(op.shape(), [&](const Index4& o) {
    for (std::size_t i = 0; i < inputs_per_group; ++i) {
      for (std::size_t ky = 0; ky < kernel; ++ky) {
        for (std::size_t kx = 0; kx < kernel; ++kx) {
          // Sizes are unsigned: what lies before the image wraps to something larger than it.
          const std::size_t y = o.y * op.window.stride + ky - op.window.padding;
          const std::size_t x = o.x * op.window.stride + kx - op.window.padding;
          if (y >= in.height() || x >= in.width()) continue;
          const std::size_t channel = o.c / outputs_per_group * inputs_per_group + i;
          visit(at(op.shape(), o.n, o.c, o.y, o.x), at(in, o.n, channel, y, x),
                ((o.c * inputs_per_group + i) * kernel + ky) * kernel + kx);
        }
      }
    }
  });
}

/// The elements over which each mean and variance of a norm is taken.
std::vector<std::vector<std::size_t>> norm_groups(const Operator& op) {
  const bool by_channel = op.kind == OperatorKind::batch_norm;
  std::vector<std::vector<std::size_t>> groups(by_channel ? op.shape().channels() : op.shape().batch());
  each_element(op.shape(),
               [&](const Index4& i) { groups[by_channel ? i.c : i.n].push_back(at(op.shape(), i.n, i.c, i.y, i.x)); });
  return groups;
}

std::size_t channel_of(const Shape& shape, std::size_t element) { return element / shape.image() % shape.channels(); }

struct Statistics {
  double mean = 0;
  double inverse_deviation = 0;
};

Statistics statistics(const Tensor& values, const std::vector<std::size_t>& group) {
  const auto count = static_cast<double>(group.size());
  double mean = 0;
  for (const std::size_t i : group) mean += values[i] / count;
  double variance = 0;
  for (const std::size_t i : group) variance += (values[i] - mean) * (values[i] - mean) / count;
  return {.mean = mean, .inverse_deviation = 1 / std::sqrt(variance + epsilon)};
}

/// Calls visit(output element, elements of its window).
template <typename Visit>
void each_window(const ReferencePass& pass, const Operator& op, Visit visit) {
  const Shape& in = pass.graph.input_of(op);
  const bool adaptive = op.kind == OperatorKind::average_pool;
  const auto range = [&](std::size_t o, std::size_t pixels, std::size_t outputs) {
    if (adaptive) return std::pair{o * pixels / outputs, ((o + 1) * pixels + outputs - 1) / outputs};
    const std::size_t begin = o * op.window.stride;
    const std::size_t padding = op.window.padding;
    return std::pair{std::max(begin, padding) - padding, std::min(begin + op.window.kernel - padding, pixels)};
  };
  each_element(op.shape(), [&](const Index4& o) {
    const auto [top, bottom] = range(o.y, in.height(), op.shape().height());
    const auto [left, right] = range(o.x, in.width(), op.shape().width());
    std::vector<std::size_t> window;
    for (std::size_t y = top; y < bottom; ++y) {
      for (std::size_t x = left; x < right; ++x) window.push_back(at(in, o.n, o.c, y, x));
    }
    visit(at(op.shape(), o.n, o.c, o.y, o.x), window);
  });
}

/// The first of the largest.
std::size_t largest(const Tensor& values, const std::vector<std::size_t>& window) {
  return *std::ranges::max_element(window, {}, [&](std::size_t i) { return values[i]; });
}

/// One head of one sequence of an attention operator: where its rows lie, and the probabilities.
struct Head {
  std::size_t first_row = 0;
  std::size_t column = 0;  ///< of the output, and within each of Q, K and V
  std::size_t width = 0;
  std::vector<Tensor> probabilities;  ///< per position: of the positions that it sees
};

/// Element of Q (part 0), K (1) or V (2).
std::size_t part_at(const Operator& op, const Head& head, std::size_t part, std::size_t position, std::size_t i) {
  const std::size_t features = op.shape().channels();
  return (head.first_row + position) * 3 * features + part * features + head.column + i;
}

template <typename Visit>
void each_head(const ReferencePass& pass, const Operator& op, Visit visit) {
  const Tensor& in = pass.input(op);
  const std::size_t width = op.shape().channels() / op.heads;
  for (std::size_t row = 0; row < op.shape().batch(); row += op.sequence) {
    for (std::size_t h = 0; h < op.heads; ++h) {
      Head head{.first_row = row, .column = h * width, .width = width, .probabilities = {}};
      for (std::size_t t = 0; t < op.sequence; ++t) {
        Tensor scores(op.causal ? t + 1 : op.sequence, 0.0);
        for (std::size_t s = 0; s < scores.size(); ++s) {
          for (std::size_t i = 0; i < width; ++i) {
            scores[s] += in[part_at(op, head, 0, t, i)] * in[part_at(op, head, 1, s, i)];
          }
          scores[s] /= std::sqrt(static_cast<double>(width));
        }
        head.probabilities.push_back(reference_softmax(scores.data(), scores.size()));
      }
      visit(head);
    }
  }
}

}  // namespace

Tensor reference_softmax(const double* values, std::size_t count) {
  const double top = *std::max_element(values, values + count);
  Tensor result(count);
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += result[i] = std::exp(values[i] - top);
  for (double& value : result) value /= sum;
  return result;
}

void products_forward(const ReferencePass& pass, const Operator& op, Tensor& out) {
  const Tensor& in = pass.input(op);
  const Tensor& weight = pass.parameter(op, 0);
  if (op.parameters.size() > 1) {
    for (std::size_t o = 0; o < out.size(); ++o) out[o] = pass.parameter(op, 1)[channel_of(op.shape(), o)];
  }
  each_product(pass, op, [&](std::size_t o, std::size_t i, std::size_t w) { out[o] += in[i] * weight[w]; });
}

void products_backward(const ReferencePass& pass, const Operator& op, const Tensor& slope) {
  const Tensor& in = pass.input(op);
  const Tensor& weight = pass.parameter(op, 0);
  if (op.parameters.size() > 1) {
    for (std::size_t o = 0; o < slope.size(); ++o) pass.gradient(op, 1)[channel_of(op.shape(), o)] += slope[o];
  }
  Tensor& in_slope = pass.input_slope(op);
  Tensor& gradient = pass.gradient(op, 0);
  each_product(pass, op, [&](std::size_t o, std::size_t i, std::size_t w) {
    in_slope[i] += slope[o] * weight[w];
    gradient[w] += slope[o] * in[i];
  });
}

void norm_forward(const ReferencePass& pass, const Operator& op, Tensor& out) {
  const Tensor& in = pass.input(op);
  for (const auto& group : norm_groups(op)) {
    const Statistics s = statistics(in, group);
    for (const std::size_t i : group) {
      const std::size_t c = channel_of(op.shape(), i);
      out[i] = (in[i] - s.mean) * s.inverse_deviation * pass.parameter(op, 0)[c] + pass.parameter(op, 1)[c];
    }
  }
}

void norm_backward(const ReferencePass& pass, const Operator& op, const Tensor& slope) {
  const Tensor& in = pass.input(op);
  for (const auto& group : norm_groups(op)) {
    const Statistics s = statistics(in, group);
    const auto normal = [&](std::size_t i) { return (in[i] - s.mean) * s.inverse_deviation; };
    const auto scaled = [&](std::size_t i) { return slope[i] * pass.parameter(op, 0)[channel_of(op.shape(), i)]; };
    double mean_slope = 0;
    double mean_product = 0;
    for (const std::size_t i : group) {
      pass.gradient(op, 0)[channel_of(op.shape(), i)] += slope[i] * normal(i);
      pass.gradient(op, 1)[channel_of(op.shape(), i)] += slope[i];
      mean_slope += scaled(i) / static_cast<double>(group.size());
      mean_product += scaled(i) * normal(i) / static_cast<double>(group.size());
    }
    for (const std::size_t i : group) {
      pass.input_slope(op)[i] += (scaled(i) - mean_slope - normal(i) * mean_product) * s.inverse_deviation;
    }
  }
}

void pool_forward(const ReferencePass& pass, const Operator& op, Tensor& out) {
  const Tensor& in = pass.input(op);
  each_window(pass, op, [&](std::size_t o, const std::vector<std::size_t>& window) {
    if (op.kind == OperatorKind::max_pool) {
      out[o] = in[largest(in, window)];
    } else {
      for (const std::size_t i : window) out[o] += in[i] / static_cast<double>(window.size());
    }
  });
}

void pool_backward(const ReferencePass& pass, const Operator& op, const Tensor& slope) {
  const Tensor& in = pass.input(op);
  Tensor& in_slope = pass.input_slope(op);
  each_window(pass, op, [&](std::size_t o, const std::vector<std::size_t>& window) {
    if (op.kind == OperatorKind::max_pool) {
      in_slope[largest(in, window)] += slope[o];
    } else {
      for (const std::size_t i : window) in_slope[i] += slope[o] / static_cast<double>(window.size());
    }
  });
}

void attention_forward(const ReferencePass& pass, const Operator& op, Tensor& out) {
  const Tensor& in = pass.input(op);
  each_head(pass, op, [&](const Head& head) {
    for (std::size_t t = 0; t < op.sequence; ++t) {
      for (std::size_t i = 0; i < head.width; ++i) {
        double& value = out[(head.first_row + t) * op.shape().channels() + head.column + i];
        for (std::size_t s = 0; s < head.probabilities[t].size(); ++s) {
          value += head.probabilities[t][s] * in[part_at(op, head, 2, s, i)];
        }
      }
    }
  });
}

void attention_backward(const ReferencePass& pass, const Operator& op, const Tensor& slope) {
  const Tensor& in = pass.input(op);
  Tensor& in_slope = pass.input_slope(op);
  each_head(pass, op, [&](const Head& head) {
    for (std::size_t t = 0; t < op.sequence; ++t) {
      const double* out_slope = &slope[(head.first_row + t) * op.shape().channels() + head.column];
      const Tensor& p = head.probabilities[t];
      Tensor p_slope(p.size(), 0.0);
      double mean = 0;
      for (std::size_t s = 0; s < p.size(); ++s) {
        for (std::size_t i = 0; i < head.width; ++i) {
          p_slope[s] += out_slope[i] * in[part_at(op, head, 2, s, i)];
          in_slope[part_at(op, head, 2, s, i)] += out_slope[i] * p[s];
        }
        mean += p[s] * p_slope[s];
      }
      for (std::size_t s = 0; s < p.size(); ++s) {
        const double score_slope = p[s] * (p_slope[s] - mean) / std::sqrt(static_cast<double>(head.width));
        for (std::size_t i = 0; i < head.width; ++i) {
          in_slope[part_at(op, head, 0, t, i)] += score_slope * in[part_at(op, head, 1, s, i)];
          in_slope[part_at(op, head, 1, s, i)] += score_slope * in[part_at(op, head, 0, t, i)];
        }
      }
    }
  });
}

void loss_forward(const ReferencePass& pass, const Operator& op, Tensor& out) {
  const Shape& logits = pass.graph.input_of(op);
  const double smoothing = pass.options.label_smoothing;
  for (std::size_t row = 0; row < logits.batch(); ++row) {
    const double* values = &pass.input(op)[row * logits.channels()];
    const Tensor probabilities = reference_softmax(values, logits.channels());
    const auto label = static_cast<std::size_t>(pass.batch.labels[row]);
    for (std::size_t c = 0; c < logits.channels(); ++c) {
      const double target = smoothing / logits.channels() + (c == label ? 1 - smoothing : 0);
      out[0] -= target * std::log(probabilities[c]) / logits.batch();
    }
    if (std::max_element(values, values + logits.channels()) == values + label) ++pass.step.correct;
  }
}

void loss_backward(const ReferencePass& pass, const Operator& op, const Tensor& slope) {
  const Shape& logits = pass.graph.input_of(op);
  const double smoothing = pass.options.label_smoothing;
  for (std::size_t row = 0; row < logits.batch(); ++row) {
    const Tensor probabilities = reference_softmax(&pass.input(op)[row * logits.channels()], logits.channels());
    const auto label = static_cast<std::size_t>(pass.batch.labels[row]);
    for (std::size_t c = 0; c < logits.channels(); ++c) {
      const double target = smoothing / logits.channels() + (c == label ? 1 - smoothing : 0);
      pass.input_slope(op)[row * logits.channels() + c] += slope[0] * (probabilities[c] - target) / logits.batch();
    }
  }
}

}  // namespace hcclsim::test
