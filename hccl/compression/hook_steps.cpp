#include "hccl/compression/hook_steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.hpp"

namespace hcclsim::hccl {
namespace {

constexpr std::array<std::string_view, 23> action_names{
    "pad",           "add_error", "keep_copy",       "pack",         "orthogonalise_q", "project",     "sum_direct",
    "unpack",        "sum_p",     "orthogonalise_p", "project_back", "sum_q",           "divide_q",    "reconstruct",
    "keep_error",    "narrow",    "sum_narrow",      "widen",        "select",          "keep_unsent", "gather_values",
    "gather_places", "spread"};

DataType sent_type(const CompressionSettings& settings, DataType type) {
  if (settings.kind == CompressionKind::fp16) return DataType::fp16;
  return settings.kind == CompressionKind::bf16 ? DataType::bf16 : type;
}

/// A run of matrices of one shape that one kernel works on.
struct MatrixRun {
  LowRankMatrix shape;
  std::uint64_t count = 1;
};

std::vector<MatrixRun> runs_of(const CompressionSettings& settings, const Bucket& bucket) {
  std::vector<MatrixRun> runs;
  for (const LowRankMatrix& matrix : bucket.matrices) {
    if (settings.batch_same_shape && !runs.empty() && runs.back().shape.same_shape(matrix)) {
      ++runs.back().count;
    } else {
      runs.push_back({matrix});
    }
  }
  return runs;
}

/// Makes the kernels of one action.
class KernelWriter {
 public:
  KernelWriter(HookAction action, const CompressionSettings& settings, const Bucket& bucket, Rank ranks, DataType type)
      : action_(action), settings_(settings), bucket_(bucket), ranks_(ranks), type_(type), bytes_(size_of(type)) {}

  std::vector<models::Kernel> write() && {
    const std::uint64_t n = bucket_.padded;
    const Bytes sent = size_of(sent_type(settings_, type_));
    const std::uint64_t gathered = ranks_ * bucket_.selected;
    switch (action_) {
      case HookAction::pad:
        vector(n - bucket_.elements, 0, (n - bucket_.elements) * bytes_);
        break;
      case HookAction::add_error:
      case HookAction::keep_error:
        vector(n, 2 * n * bytes_, n * bytes_);
        break;
      case HookAction::keep_copy:
        vector(n, n * bytes_, n * bytes_);
        break;
      case HookAction::pack:
      case HookAction::unpack:
        vector(bucket_.direct_elements, bucket_.direct_elements * bytes_, bucket_.direct_elements * bytes_);
        break;
      case HookAction::divide_q:
        vector(bucket_.q_elements, bucket_.q_elements * bytes_, bucket_.q_elements * bytes_);
        break;
      case HookAction::orthogonalise_q:
      case HookAction::orthogonalise_p:
        orthogonalise();
        break;
      case HookAction::project:
      case HookAction::project_back:
      case HookAction::reconstruct:
        multiply();
        break;
      case HookAction::narrow:
        vector(2 * n, n * bytes_, n * sent);
        break;
      case HookAction::widen:
        vector(n, n * sent, n * bytes_);
        break;
      case HookAction::select:
        vector(2 * n, n * bytes_, 0);
        vector(2 * n, n * bytes_, bucket_.selected * (bytes_ + size_of(DataType::uint32)));
        break;
      case HookAction::keep_unsent:
        vector(n, n * bytes_ + bucket_.selected * size_of(DataType::uint32), n * bytes_);
        break;
      case HookAction::spread:
        vector(n + 2 * gathered, gathered * (2 * bytes_ + size_of(DataType::uint32)), (n + gathered) * bytes_);
        break;
      case HookAction::sum_direct:
      case HookAction::sum_p:
      case HookAction::sum_q:
      case HookAction::sum_narrow:
      case HookAction::gather_values:
      case HookAction::gather_places:
        break;
    }
    return std::move(kernels_);
  }

 private:
  void vector(std::uint64_t operations, Bytes read, Bytes written) {
    kernels_.push_back(
        models::vector_kernel(name_of(action_), models::Phase::compression, type_, operations, read, written));
  }

  void orthogonalise() {
    const bool of_p = action_ == HookAction::orthogonalise_p;
    for (const MatrixRun& run : runs_of(settings_, bucket_)) {
      const std::uint64_t rows = run.count * (of_p ? run.shape.rows : run.shape.columns);
      const std::uint64_t rank = run.shape.rank;
      if (uses_qr(settings_, rank, type_)) {
        vector(4 * rows * rank * rank, rows * rank * bytes_, rows * rank * bytes_);
        continue;
      }
      for (std::uint64_t column = 0; column < rank; ++column) {
        // Its norm (2 per element) and a division; with each later column a product (2) and a difference (2).
        const std::uint64_t later = rank - 1 - column;
        vector(rows * (3 + 4 * later), rows * (1 + later) * bytes_, rows * (1 + later) * bytes_);
      }
    }
  }

  void multiply() {
    for (const MatrixRun& run : runs_of(settings_, bucket_)) {
      const LowRankMatrix& shape = run.shape;
      models::Kernel kernel{.name = std::string(name_of(action_)),
                            .phase = models::Phase::compression,
                            .kind = models::KernelClass::matmul,
                            .dtype = type_,
                            .cube = {},
                            .flops = 2.0 * static_cast<double>(run.count * shape.elements() * shape.rank)};
      const Bytes matrix = run.count * shape.elements() * bytes_;
      const Bytes p = run.count * shape.p_elements() * bytes_;
      const Bytes q = run.count * shape.q_elements() * bytes_;
      if (action_ == HookAction::project) {
        kernel.cube = {.m = shape.rows, .n = shape.rank, .k = shape.columns, .groups = run.count};
        kernel.read = matrix + q;
        kernel.written = p;
      } else if (action_ == HookAction::project_back) {
        kernel.cube = {.m = shape.columns, .n = shape.rank, .k = shape.rows, .groups = run.count};
        kernel.read = matrix + p;
        kernel.written = q;
      } else {
        kernel.cube = {.m = shape.rows, .n = shape.columns, .k = shape.rank, .groups = run.count};
        kernel.read = p + q;
        kernel.written = matrix;
      }
      kernels_.push_back(std::move(kernel));
    }
  }

  HookAction action_;
  const CompressionSettings& settings_;
  const Bucket& bucket_;
  Rank ranks_;
  DataType type_;
  Bytes bytes_;
  std::vector<models::Kernel> kernels_;
};

}  // namespace

std::string_view name_of(HookAction action) { return action_names.at(static_cast<std::size_t>(action)); }

bool uses_qr(const CompressionSettings& settings, std::uint64_t rank, DataType type) {
  if (settings.orthogonalization != Orthogonalization::automatic) {
    return settings.orthogonalization == Orthogonalization::qr;
  }
  return rank > 2 && size_of(type) > 2;
}

std::optional<Operation> collective_of(HookAction action, const CompressionSettings& settings, const Bucket& bucket,
                                       Rank ranks, DataType type) {
  switch (action) {
    case HookAction::sum_direct:
      return Operation{.ranks = ranks, .elements = bucket.direct_elements, .type = type};
    case HookAction::sum_p:
      return Operation{.ranks = ranks, .elements = bucket.p_elements, .type = type};
    case HookAction::sum_q:
      return Operation{.ranks = ranks, .elements = bucket.q_elements, .type = type};
    case HookAction::sum_narrow:
      return Operation{.ranks = ranks, .elements = bucket.elements, .type = sent_type(settings, type)};
    case HookAction::gather_values:
    case HookAction::gather_places:
      return Operation{.ranks = ranks,
                       .elements = bucket.selected,
                       .type = action == HookAction::gather_values ? type : DataType::uint32,
                       .collective = Collective::allgather,
                       .in_place = false};
    default:
      return std::nullopt;
  }
}

std::string hook_kernel_name(std::uint32_t segment, std::string_view kernel) {
  return fmt::format("segment{}:{}", segment + 1, kernel);
}

bool is_hook_kernel(std::string_view name) {
  constexpr std::string_view begin = "segment";
  const std::size_t colon = name.find(':');
  if (!name.starts_with(begin) || colon == std::string_view::npos || colon == begin.size()) return false;
  const std::string_view number = name.substr(begin.size(), colon - begin.size());
  if (number.find_first_not_of("0123456789") != std::string_view::npos) return false;
  return std::ranges::find(action_names, name.substr(colon + 1)) != action_names.end();
}

std::vector<HookAction> hook_steps(const CompressionSettings& settings, const Bucket& bucket) {
  using enum HookAction;
  if (settings.kind == CompressionKind::fp16 || settings.kind == CompressionKind::bf16) {
    return {narrow, sum_narrow, widen};
  }
  std::vector<HookAction> steps;
  const auto add = [&](bool wanted, std::initializer_list<HookAction> actions) {
    if (wanted) steps.insert(steps.end(), actions);
  };
  if (settings.kind == CompressionKind::topk) {
    add(settings.error_feedback, {add_error});
    add(true, {select});
    add(settings.error_feedback, {keep_unsent});
    add(true, {gather_values, gather_places, spread});
    return steps;
  }
  const bool low_rank = !bucket.matrices.empty();
  const bool direct = bucket.direct_elements > 0;
  add(bucket.padded > bucket.elements, {pad});
  add(settings.error_feedback, {add_error, keep_copy});
  add(direct, {pack});
  add(low_rank, {orthogonalise_q, project});
  add(direct, {sum_direct, unpack});
  add(low_rank, {sum_p, orthogonalise_p, project_back, sum_q, divide_q, reconstruct});
  add(settings.error_feedback, {keep_error});
  return steps;
}

std::vector<models::Kernel> kernels_of(HookAction action, const CompressionSettings& settings, const Bucket& bucket,
                                       Rank ranks, DataType type) {
  return KernelWriter(action, settings, bucket, ranks, type).write();
}

HookMemory hook_memory(const CompressionSettings& settings, const Bucket& bucket, Rank ranks, DataType type) {
  const Bytes bytes = size_of(type);
  HookMemory memory;
  if (settings.error_feedback) memory.errors = bucket.padded * bytes;
  if (settings.error_feedback && settings.is_powersgd()) memory.copies = bucket.padded * bytes;
  memory.factors = (bucket.p_elements + bucket.q_elements) * bytes;
  memory.buffers = (bucket.padded - bucket.elements + bucket.direct_elements) * bytes;
  if (settings.kind == CompressionKind::fp16 || settings.kind == CompressionKind::bf16) {
    memory.buffers += bucket.elements * size_of(sent_type(settings, type));
  }
  memory.buffers += (1 + Bytes{ranks}) * bucket.selected * (bytes + size_of(DataType::uint32));
  return memory;
}

}  // namespace hcclsim::hccl
