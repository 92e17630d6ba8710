#include "device/numerics/loops/experts.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace hcclsim::device {
namespace {

void softmax(std::span<const float> logits, std::span<float> out) {
  const float greatest = *std::ranges::max_element(logits);
  float sum = 0;
  for (std::size_t e = 0; e < logits.size(); ++e) sum += out[e] = std::exp(logits[e] - greatest);
  for (float& p : out) p /= sum;
}

/// The part of all choices of a sequence that each expert has, times experts and the weight of the loss.
std::vector<float> use_of_experts(const Routing& routing, std::span<const float> gates) {
  std::vector<std::size_t> rows(routing.experts, 0);
  for (std::size_t i = 0; i < gates.size(); ++i) rows[i % routing.experts] += gates[i] != 0 ? 1 : 0;
  std::vector<float> use(routing.experts);
  const float factor = routing.balance_weight * static_cast<float>(routing.experts) /
                       static_cast<float>(routing.top_k * routing.sequence);
  for (std::size_t e = 0; e < use.size(); ++e) use[e] = factor * static_cast<float>(rows[e]);
  return use;
}

/// Calls visit(row, expert, place) for every row that an expert has a place for, expert by expert.
template <typename Visit>
void for_each_place(const ExpertRows& form, std::span<const float> gates, const Visit& visit) {
  const std::size_t rows = form.rows / form.groups;
  const std::size_t places = form.capacity / form.groups;
  for (std::size_t part = 0; part < form.experts * form.groups; ++part) {
    const std::size_t expert = part / form.groups;
    const std::size_t first = part % form.groups * rows;
    std::size_t taken = 0;
    for (std::size_t row = first; row < first + rows && taken < places; ++row) {
      if (gates[row * form.experts + expert] != 0) visit(row, expert, part * places + taken++);
    }
  }
}

}  // namespace

double route(const Routing& routing, std::span<const float> logits, std::span<float> probabilities,
             std::span<float> gates) {
  const std::size_t experts = routing.experts;
  std::ranges::fill(gates, 0.0F);
  for (std::size_t first = 0; first < logits.size(); first += experts) {
    const std::span<float> p = probabilities.subspan(first, experts);
    const std::span<float> kept = gates.subspan(first, experts);
    softmax(logits.subspan(first, experts), p);
    float sum = 0;
    for (std::size_t choice = 0; choice < routing.top_k; ++choice) {
      std::size_t best = experts;
      for (std::size_t e = 0; e < experts; ++e) {
        if (kept[e] == 0 && (best == experts || p[e] > p[best])) best = e;
      }
      sum += kept[best] = p[best];
    }
    if (!routing.normalised) continue;
    for (float& gate : kept) gate /= sum;
  }
  if (routing.balance_weight == 0) return 0;
  double loss = 0;
  const std::size_t of_sequence = routing.sequence * experts;
  for (std::size_t first = 0; first < gates.size(); first += of_sequence) {
    const std::vector<float> use = use_of_experts(routing, gates.subspan(first, of_sequence));
    for (std::size_t i = 0; i < of_sequence; ++i)
      loss += static_cast<double>(use[i % experts]) * probabilities[first + i];
  }
  return loss * static_cast<double>(experts) / static_cast<double>(gates.size());
}

void route_gradient(const Routing& routing, std::span<const float> probabilities, std::span<const float> gates,
                    std::span<const float> slopes, float loss_scale, std::span<float> logit_gradient) {
  const std::size_t experts = routing.experts;
  const std::size_t of_sequence = routing.sequence * experts;
  const float share =
      loss_scale * routing.gradient_factor * static_cast<float>(experts) / static_cast<float>(gates.size());
  std::vector<float> use(experts, 0.0F);
  std::vector<float> slope(experts);  // of the probabilities
  for (std::size_t first = 0; first < gates.size(); first += experts) {
    if (routing.balance_weight > 0 && of_sequence > 0 && first % of_sequence == 0) {
      use = use_of_experts(routing, gates.subspan(first, of_sequence));
    }
    const std::span<const float> p = probabilities.subspan(first, experts);
    const std::span<const float> kept = gates.subspan(first, experts);
    const std::span<const float> dy = slopes.subspan(first, experts);
    float along = 0;
    float sum = 1;
    if (routing.normalised) {
      sum = 0;
      for (std::size_t e = 0; e < experts; ++e) {
        along += dy[e] * kept[e];
        if (kept[e] != 0) sum += p[e];
      }
    }
    float mean = 0;
    for (std::size_t e = 0; e < experts; ++e) {
      slope[e] = share * use[e] + (kept[e] != 0 ? (dy[e] - along) / sum : 0);
      mean += slope[e] * p[e];
    }
    for (std::size_t e = 0; e < experts; ++e) logit_gradient[first + e] = p[e] * (slope[e] - mean);
  }
}

void dispatch_rows(const ExpertRows& form, std::span<const float> in, std::span<const float> gates,
                   std::span<float> out) {
  std::ranges::fill(out, 0.0F);
  for_each_place(form, gates, [&](std::size_t row, std::size_t, std::size_t place) {
    std::copy_n(&in[row * form.features], form.features, &out[place * form.features]);
  });
}

void dispatch_rows_gradient(const ExpertRows& form, std::span<const float> gates, std::span<const float> slopes,
                            std::span<float> in_gradient) {
  std::ranges::fill(in_gradient, 0.0F);
  for_each_place(form, gates, [&](std::size_t row, std::size_t, std::size_t place) {
    const float* dy = &slopes[place * form.features];
    float* dx = &in_gradient[row * form.features];
    for (std::size_t i = 0; i < form.features; ++i) dx[i] += dy[i];
  });
}

void combine_rows(const ExpertRows& form, std::span<const float> in, std::span<const float> gates,
                  std::span<float> out) {
  std::ranges::fill(out, 0.0F);
  for_each_place(form, gates, [&](std::size_t row, std::size_t expert, std::size_t place) {
    const float gate = gates[row * form.experts + expert];
    const float* x = &in[place * form.features];
    float* y = &out[row * form.features];
    for (std::size_t i = 0; i < form.features; ++i) y[i] += gate * x[i];
  });
}

void combine_rows_gradient(const ExpertRows& form, std::span<const float> in, std::span<const float> gates,
                           std::span<const float> slopes, std::span<float> in_gradient,
                           std::span<float> gate_gradient) {
  std::ranges::fill(in_gradient, 0.0F);
  std::ranges::fill(gate_gradient, 0.0F);
  for_each_place(form, gates, [&](std::size_t row, std::size_t expert, std::size_t place) {
    const float gate = gates[row * form.experts + expert];
    const float* x = &in[place * form.features];
    const float* dy = &slopes[row * form.features];
    float* dx = &in_gradient[place * form.features];
    float along = 0;
    for (std::size_t i = 0; i < form.features; ++i) {
      along += dy[i] * x[i];
      dx[i] = gate * dy[i];
    }
    gate_gradient[row * form.experts + expert] = along;
  });
}

}  // namespace hcclsim::device
