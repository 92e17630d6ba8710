#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/data/batch.hpp"
#include "models/graph.hpp"

/// What a network is trained on. A Dataset is a numbered list of samples that is read one sample at a time, from any
/// thread, and never loaded whole; it delivers them in the form that one network takes. Which samples make the batch of
/// an iteration is the business of sampler.hpp.
///
/// The sources (docs/formats.md): made data, the same on every computer ("synthetic", "synthetic-classes"), and the
/// user's own files ("cifar10", "mnist", "images").
namespace hcclsim::models {

/// Labels of one sample for one loss.
struct LabelForm {
  std::uint32_t count = 1;    ///< 1, or one per token or per masked token
  std::uint32_t classes = 1;  ///< they are 0 … classes − 1
};

/// The form in which a network takes one sample.
struct SampleForm {
  InputKind kind = InputKind::features;
  Shape shape;                      ///< of operator 0 with a batch of 1; tokens: channels = length of the sequence
  std::uint32_t labels = 1;         ///< of one sample, as LabelForm has it, of the first loss
  std::uint32_t classes = 1;        ///< of these labels
  std::vector<LabelForm> others{};  ///< of further losses
  std::uint32_t token_values = 0;  ///< tokens are 0 … token_values − 1: rows of the tables in which they are looked up
  /// Rows of each part of a table if the tokens of part k of n are those of the k-th of n parts of the positions
  /// (Operator::row_parts); empty: all positions have all tokens.
  std::vector<std::uint32_t> token_parts{};

  /// Whether labels of the first loss are tokens.
  [[nodiscard]] bool predicts_tokens() const { return kind == InputKind::tokens && classes == token_values; }

  /// Numbers, or tokens, of one sample.
  [[nodiscard]] std::size_t elements() const { return shape.elements(); }
};

[[nodiscard]] SampleForm sample_form(const Graph& graph);

/// Size of a dataset that makes as many samples as are asked for.
inline constexpr std::uint64_t unbounded = std::numeric_limits<std::uint64_t>::max();

class Dataset {
 public:
  explicit Dataset(const SampleForm& form) : form_(form) {}
  Dataset(const Dataset&) = delete;
  Dataset& operator=(const Dataset&) = delete;
  virtual ~Dataset() = default;

  [[nodiscard]] const SampleForm& form() const { return form_; }

  /// Number of samples, or `unbounded`.
  [[nodiscard]] virtual std::uint64_t size() const = 0;
  /// Whether the samples are to be taken in a new order in every epoch; false where the order is part of the source.
  [[nodiscard]] virtual bool shuffles() const = 0;
  /// Puts a sample into place `slot` of a batch that is large enough (see fill). Thread-safe. Throws Error(bad_input)
  /// of kind "data" with the file, if it cannot be read any more.
  virtual void read(std::uint64_t sample, Batch& batch, std::uint32_t slot) const = 0;
  /// Memory that reading a sample takes beside the batch, at most.
  struct ReadCost {
    Bytes bytes = 0;
    std::string sample{};  ///< that takes most of it, for people; empty: none is worth a word
  };
  [[nodiscard]] virtual ReadCost read_cost() const { return {}; }
  /// For people: "CIFAR-10, 50000 images of 3x32x32 in 5 files of DIR".
  [[nodiscard]] virtual std::string describe() const = 0;

 protected:
  /// The places of a sample in a batch.
  [[nodiscard]] std::span<float> inputs_at(Batch& batch, std::uint32_t slot) const;
  [[nodiscard]] std::span<std::int32_t> tokens_at(Batch& batch, std::uint32_t slot) const;
  [[nodiscard]] std::span<std::int32_t> labels_at(Batch& batch, std::uint32_t slot) const;
  /// The same of one of the further losses.
  [[nodiscard]] std::span<std::int32_t> other_labels_at(Batch& batch, std::uint32_t slot, std::size_t number) const;
  /// Throws Error(bad_input) if a label is no class of the network; `where` it stands: "FILE: record 3".
  void require_class(std::string_view where, std::uint64_t label) const;

 private:
  SampleForm form_;
};

/// Opens a source for a network and checks what can be checked without reading every pixel: that files are there and
/// whole, and that every label is one of the network's classes. `seed` is that of made data. Throws Error(bad_input)
/// of kind "data" that names the file, the record or line, and what is accepted.
[[nodiscard]] std::unique_ptr<Dataset> open_dataset(std::string_view source, const Graph& graph, std::uint64_t seed);

/// Makes the batch of these samples; vectors that are large enough are used again.
void fill(Batch& batch, const Dataset& dataset, std::span<const std::uint64_t> samples);

}  // namespace hcclsim::models
