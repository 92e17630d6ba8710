#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/input_file.hpp"
#include "base/output_file.hpp"
#include "base/units.hpp"

/// Checkpoints: all that training needs in order to go on bitwise as if it had not been interrupted. A file holds a
/// header (what is trained, how far, with which settings) and then its tensors: the weights of every parameter, then
/// the optimizer's state of every parameter, kind by kind. Tensors pass one at a time in both directions, so that
/// the weights are never held twice. The bytes are described in docs/formats.md.
///
/// A file appears whole or not at all (base/output_file.hpp). A reader checks all of it before it hands anything out: a
/// file that is cut short, has one wrong bit, or was written by a later version is refused with Error(bad_input) of
/// kind "checkpoint" that names the file and what is wrong. Failures to write are of kind "output".
namespace hcclsim::hccl {

struct CheckpointParameter {
  std::string name;
  std::vector<std::uint32_t> shape;

  [[nodiscard]] std::uint64_t elements() const;
  bool operator==(const CheckpointParameter&) const = default;
};

/// A tensor of a compression hook.
struct CheckpointHookTensor {
  std::uint32_t bucket = 0;
  std::string kind;        ///< "error", "p", "q"
  std::uint32_t rank = 0;  ///< of an error; P and Q are the same on all ranks
  std::uint64_t elements = 0;

  bool operator==(const CheckpointHookTensor&) const = default;
};

/// What a compression hook keeps, but for the numbers of its tensors.
struct CheckpointHook {
  std::uint64_t steps = 0;
  std::uint64_t draws = 0;
  std::uint64_t elements_before = 0;
  std::uint64_t elements_after = 0;
  std::uint64_t next_report = 0;
  std::vector<CheckpointHookTensor> tensors{};  ///< behind those of the parameters

  bool operator==(const CheckpointHook&) const = default;
};

/// The header: everything but the numbers of the tensors.
struct Checkpoint {
  std::string model;
  std::vector<CheckpointParameter> parameters;     ///< in parameter order
  std::vector<std::string> tensors = {"weights"};  ///< kinds of tensors; each has one tensor per parameter
  std::uint64_t iteration = 0;                     ///< iterations done; also the position in the data
  std::uint64_t seed = 0;
  std::string optimizer;
  std::uint64_t optimizer_steps = 0;  ///< updates done: less than the iterations where some were skipped
  double loss_scale = 1;
  std::uint64_t loss_scale_streak = 0;            ///< iterations since the scale changed or a gradient overflowed
  std::map<std::string, std::string> options;     ///< settings that must be the same for the run to go on bitwise
  std::map<std::string, std::string> settings{};  ///< those that users may mean to change on the way
  /// Simulated dates at which the NPUs ended the last iteration; empty in files of versions that did not know them.
  std::vector<Seconds> iteration_ends{};
  std::optional<CheckpointHook> hook{};  ///< of compression

  /// Tensors of the file: kind by kind those of all parameters, then those of the hook.
  [[nodiscard]] std::size_t tensor_count() const;
  /// Elements of the one with that number.
  [[nodiscard]] std::uint64_t elements_of(std::size_t tensor) const;
  bool operator==(const Checkpoint&) const = default;
};

/// Throws Error(bad_input) of kind "checkpoint" with the first thing in which a run differs from a file: model,
/// parameters, kinds of tensors, seed, optimizer, an option. How far the file is does not matter.
void require_same_run(const std::string& path, const Checkpoint& file, const Checkpoint& run);

/// The settings in which a run differs from a file: "beta2 0.999 -> 0.9". Those that a file does not have are not
/// compared.
[[nodiscard]] std::vector<std::string> changed_settings(const Checkpoint& file, const Checkpoint& run);

/// The header of a file, without a look at its tensors; what is wrong with these is found when they are read.
[[nodiscard]] Checkpoint read_checkpoint_header(const std::string& path);

/// Writes a file tensor by tensor: kind by kind, and in each parameter by parameter.
class CheckpointWriter {
 public:
  /// Opens the file and writes the header; the file does not appear before commit().
  CheckpointWriter(const std::string& path, const Checkpoint& checkpoint);

  /// Writes the next tensor, row-major; it must have the elements that the header says.
  void write(std::span<const float> tensor);
  /// Makes the file appear; all tensors must have been written.
  void commit();

 private:
  void write_record(const std::string& payload);
  void write_bytes(const void* data, std::size_t bytes);

  OutputFile file_;
  Checkpoint checkpoint_;
  std::size_t next_ = 0;
  std::uint64_t records_ = 0;
  std::uint32_t checksum_ = 0;  ///< of the preamble and the frames so far
};

/// Reads a file tensor by tensor, in the order in which they were written.
class CheckpointReader {
 public:
  enum class Part : bool { header, all };

  /// Opens the file and checks every byte of it, or its header alone: then no tensors can be read.
  explicit CheckpointReader(const std::string& path, Part part = Part::all);

  [[nodiscard]] const Checkpoint& checkpoint() const { return checkpoint_; }
  /// Reads the next tensor; `out` must have its elements.
  void read(std::span<float> out);

 private:
  /// The first bytes and the end mark.
  void check_ends() const;
  /// Payload of the record at `offset_`, its checksum compared; moves on. Empty at the end of the records.
  std::string next_record();
  void read_header();
  /// Throws if the file cannot hold such a tensor, or the tensor holds nothing.
  void require_room_for(const CheckpointParameter& parameter) const;
  /// Walks the rest of the records, so that all are known to be in order.
  void check_tensors();
  /// Hands the pieces of the tensor that comes next in the file to `use(first element, bytes)`.
  void read_pieces(std::size_t tensor, const std::function<void(std::uint64_t, std::string_view)>& use);

  InputFile file_;
  Checkpoint checkpoint_;
  std::uint64_t offset_ = 0;
  std::uint64_t records_ = 0;
  std::uint32_t checksum_ = 0;
  std::size_t next_ = 0;
};

}  // namespace hcclsim::hccl
