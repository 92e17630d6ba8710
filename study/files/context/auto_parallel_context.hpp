#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "study/files/literal.hpp"

/// The options of MindSpore's set_auto_parallel_context, checked one by one as they are set: by type, by range, and for
/// dicts and tuples by what they hold. The kind of an Error is the class of Python's exception: "value-error",
/// "type-error", "key-error". Documented behaviour counts; where MindSpore 2.3 does otherwise, `compat` follows it.
///
/// What is set is kept in slots: one for an option, one for each key of a dict, such as "comm_fusion.allgather". A dict
/// changes the slots of its keys and no others, in its order, and options that mean the same share a slot.
namespace hcclsim::study {

/// Bits of the parallel modes.
struct ModeSet {
  std::uint8_t bits = 0;

  [[nodiscard]] bool has(std::string_view mode) const;
};

struct ContextOption {
  std::string_view key;
  Literal::Kind kind;              ///< none: its own check decides
  std::string_view default_value;  ///< as a literal; empty: it is unset
  ModeSet acts_in;                 ///< where it has an effect
  std::string_view help;
};

/// All options, in the order of the documentation.
[[nodiscard]] std::span<const ContextOption> context_options();

class AutoParallelContext {
 public:
  explicit AutoParallelContext(bool compat = false) : compat_(compat) {}

  /// Throws Error(bad_input) and keeps the old value if `value` is not accepted.
  void set(std::string_view key, const Literal& value);
  /// What was set, or the default; None if there is neither. Throws Error(bad_input, "value-error") for a key that does
  /// not exist.
  [[nodiscard]] Literal get(std::string_view key) const;
  /// The same as get_auto_parallel_context returns it: throws Error(bad_input, "runtime-error") too, for full_batch
  /// True in a parallel_mode without it.
  [[nodiscard]] Literal read(std::string_view key) const;
  /// Whether an option, a key of it ("comm_fusion.openstate"), or one that means the same was set.
  [[nodiscard]] bool is_set(std::string_view key) const;
  /// Forgets all that was set; of MindSpore 2.3 all but group_ckpt_save_file and pipeline_result_broadcast.
  void reset();
  /// As set_context(mode=…) does. Throws Error(bad_input, "value-error") if what was set needs graph mode.
  void set_graph_mode(bool graph_mode);
  /// As set_seed does: the initial weights of ranks are the same.
  void set_seed() { seeded_ = true; }
  /// As set_context(device_target=…) does. Throws Error(bad_input, "value-error") for another target than Ascend, GPU
  /// or CPU.
  void set_device_target(const std::string& target);
  /// From now on device_num may be more than the 4096 of the documents: they bind files, not the command line.
  void lift_device_limit() { limited_ = false; }

  /// An option or key of one that was set before in `other`, to another value; empty: none. A size and a list of
  /// indices of gradients stand beside each other.
  [[nodiscard]] std::string contradiction(const AutoParallelContext& other) const;
  /// Whether all that was set in `other` is set here, to the same values.
  [[nodiscard]] bool keeps(const AutoParallelContext& other) const;

  [[nodiscard]] bool compat() const { return compat_; }
  [[nodiscard]] bool graph_mode() const { return graph_mode_; }
  /// Whether a mode was set at all.
  [[nodiscard]] bool has_mode() const { return has_mode_; }
  [[nodiscard]] bool seeded() const { return seeded_; }
  [[nodiscard]] const std::string& device_target() const { return device_target_; }
  /// The options that were set, as they were called, each once.
  [[nodiscard]] const std::vector<std::string>& keys() const { return keys_; }
  /// What the documents warn of, in the order of the calls, and what else who sets it has to say.
  [[nodiscard]] const std::vector<std::string>& warnings() const { return warnings_; }
  void warn(std::string warning) { warnings_.push_back(std::move(warning)); }

  // Of get(), where the kind is known.
  [[nodiscard]] bool flag(std::string_view key) const { return get(key).boolean; }
  [[nodiscard]] std::string text(std::string_view key) const { return get(key).text; }
  [[nodiscard]] std::optional<std::int64_t> integer(std::string_view key) const;

  /// Size in MB that a kind of collective was last given, which a later index does not change; none: it was not.
  [[nodiscard]] std::optional<std::int64_t> fusion_size(std::string_view kind) const;
  /// MindSpore 2.3 keeps one mode of fusion for all kinds of collectives: that of the last entry; empty: none.
  [[nodiscard]] std::string shared_fusion_mode() const;

 private:
  [[nodiscard]] const Literal* find(std::string_view slot) const;
  void store(std::string_view slot, const Literal& value);
  void store_members(std::string_view key, const Literal& dict);
  void set_checked(std::string_view key, const Literal& value);
  void set_comm_fusion(const Literal& value);
  void set_fusion_of(const std::string& kind, const Literal& entry);
  void set_shard_size(const Literal& value);
  void warn_of_search(const Literal& mode);
  /// What a dict is when `value` has changed it.
  [[nodiscard]] Literal merged(std::string_view key, const Literal& value) const;

  bool compat_;
  bool graph_mode_ = true;
  bool has_mode_ = false;
  bool seeded_ = false;
  bool limited_ = true;
  std::string device_target_ = "Ascend";
  std::vector<std::pair<std::string, Literal>> values_;
  std::vector<std::string> keys_;
  std::vector<std::string> warnings_;
};

/// Reads a file: TOML, JSON, or Python, of which the calls of set_auto_parallel_context, reset_auto_parallel_context,
/// set_context(mode=…, device_target=…) and set_seed are read by the names that its imports give them; their arguments
/// must be literals. TOML and JSON have the options as keys, at the top or in a table auto_parallel_context, and beside
/// them mode
/// ("graph", "pynative"), device_target and seed; they are set in the order of the file. Throws Error(bad_input) of
/// kind "context" or "config", or what set() throws, with file and line.
[[nodiscard]] AutoParallelContext read_context(const std::string& path, bool compat);

}  // namespace hcclsim::study
