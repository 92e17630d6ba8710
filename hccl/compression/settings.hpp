#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"

/// What is done to gradients so that fewer bytes travel: a hook that takes the place of the allreduce of a bucket, a
/// segment of gradients. Names and defaults are those of PyTorch's PowerSGDState
/// (torch/distributed/algorithms/ddp_comm_hooks/powerSGD_hook.py).
namespace hcclsim::hccl {

enum class CompressionKind : std::uint8_t {
  batched_powersgd,  ///< the bucket as one square matrix
  powersgd,          ///< a matrix per parameter
  fp16,              ///< cast, sum, cast back
  bf16,
  topk,  ///< the largest elements of each rank, with their places
};

[[nodiscard]] std::string_view name_of(CompressionKind kind);

/// How the columns of P and Q are made orthonormal. automatic: Gram-Schmidt up to rank 2 and for types of 2 bytes, QR
/// above.
enum class Orthogonalization : std::uint8_t { automatic, gram_schmidt, qr };

[[nodiscard]] std::string_view name_of(Orthogonalization method);

struct CompressionSettings {
  CompressionKind kind = CompressionKind::powersgd;
  std::uint64_t start = 1000;  ///< steps before this one are plain; 0 for fp16, bf16 and topk
  bool error_feedback = true;  ///< what a step did not send is added to the next one

  // PowerSGD
  std::uint32_t rank = 1;
  bool warm_start = true;           ///< Q of the last step, not random numbers
  double min_compression_rate = 2;  ///< powersgd: a parameter is sent as it is unless that saves so much
  double epsilon = 0;               ///< powersgd: added to the norm of a column
  bool batch_same_shape = false;    ///< powersgd: parameters of one shape in one kernel
  std::uint64_t seed = 0;           ///< of the first Q: the same on all ranks
  Orthogonalization orthogonalization = Orthogonalization::automatic;
  std::uint64_t statistics_every = 10000;  ///< steps between two reports of statistics

  double ratio = 0.01;  ///< topk: the part of the elements that is sent

  [[nodiscard]] bool is_powersgd() const {
    return kind == CompressionKind::batched_powersgd || kind == CompressionKind::powersgd;
  }
  bool operator==(const CompressionSettings&) const = default;
};

/// Reads "KIND[:KEY=VALUE,…]", such as "powersgd:rank=2,start=1000". Throws Error(bad_input) of kind "option" for what
/// cannot be read or is of another kind, and of kind "value-error" for what PowerSGDState refuses.
[[nodiscard]] CompressionSettings parse_compression(std::string_view text);

/// The same in a form that parse_compression reads: all keys that have an effect.
[[nodiscard]] std::string to_string(const CompressionSettings& settings);

/// Sentences on keys that were set and have no effect on the hook.
[[nodiscard]] std::vector<std::string> notes_on(const CompressionSettings& settings);

/// Throws Error(bad_input, "value-error") for what PowerSGDState refuses, and for a rank below 1.
void require_valid(const CompressionSettings& settings);

}  // namespace hcclsim::hccl
