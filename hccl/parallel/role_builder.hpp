#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hccl/parallel/pipeline/message_order.hpp"
#include "hccl/parallel/plan/plan.hpp"
#include "hccl/parallel/stage_program.hpp"
#include "hccl/parallel/step_spec.hpp"

/// Puts what a rank launches in a step onto streams: one role of a Plan.
namespace hcclsim::hccl {

/// Ranks that have the same of a parameter, and so sum up its gradient. Families of groups: numbers in the Plan.
struct Copies {
  std::uint32_t all = 0;
  std::uint32_t shards = 0;                ///< of them, those that keep a part each
  std::optional<std::uint32_t> mirrors{};  ///< those that keep the same part, if there are several
};

/// A collective behind everything else of a step.
struct ClosingCollective {
  std::uint32_t family = 0;
  Operation operation{};
  std::string name;
  StepPhase phase = StepPhase::gather;
};

/// Tells a role apart from the other roles of its Plan.
struct RolePlace {
  std::uint32_t stage = 0;
  std::vector<Cell> cells{};            ///< empty: the passes of the program for every micro-batch in turn
  std::vector<MessageTurn> messages{};  ///< empty: messages are exchanged as they come in the program
  std::vector<Reduction> reductions{};  ///< in the order in which they are enqueued
  std::vector<ClosingCollective> closing{};
  bool partial_norm = false;     ///< other ranks have gradients that the norm needs too
  std::vector<Copies> copies{};  ///< that reductions and gathers name by number
  // Families of groups: numbers in the Plan.
  std::vector<std::uint32_t> families{};  ///< that communication operators of the program name by number
  std::uint32_t everyone = 0;             ///< ranks that one overflow, or one norm, concerns
};

class RoleBuilder {
 public:
  /// `program`: that of the role's devices, of the stage. What is passed must outlive the builder.
  RoleBuilder(const StepSpec& step, const StageProgram& stage, std::shared_ptr<const models::Program> program,
              RolePlace place, const ScheduleMaker& make_schedule, Plan& plan);

  /// Adds the role and the collectives that it takes part in to the Plan; returns its number.
  std::uint32_t build() &&;

 private:
  static constexpr std::uint32_t none = ~0U;

  using Tasks = std::vector<std::uint32_t>;
  /// The first kernel of a pass that reads a gathered weight.
  struct FirstUse {
    std::uint32_t kernel = 0;
    std::uint32_t gather = 0;
  };
  /// A kernel of a micro-batch.
  using Launch = std::pair<std::uint32_t, std::uint32_t>;

  void find_boundaries();
  void find_uses();
  void find_ready_kernels();
  void add_cell(std::size_t pass, std::uint32_t micro_batch);
  void add_kernel(std::uint32_t k, const Tasks& after);
  void add_once_per_step();
  void add_closing();
  [[nodiscard]] bool is_launched(const models::Kernel& kernel) const;
  /// Communication that kernel k waits for.
  [[nodiscard]] Tasks needed_by(std::uint32_t k);

  void start_gathers();
  std::uint32_t start_gather(std::uint32_t number, Tasks after);
  void wait_for_gathers(std::uint32_t k, Tasks& after);

  /// A kernel of the host, in a stream of its own.
  std::uint32_t add_host_work(std::uint32_t k, Tasks after);
  void add_host_copy(std::uint32_t k, Tasks after);
  /// The stream of this kind that only hosts use, which is made with its first task.
  [[nodiscard]] std::uint32_t host_stream(StreamKind kind);

  void add_communication(std::uint32_t k);
  void take_turns();
  void add_message(std::uint32_t k, std::uint32_t micro_batch, std::uint32_t stream, Tasks after);
  void add_operator_collective(std::uint32_t k, Tasks after);

  /// Those that can start behind kernel k; behind the whole step for `none`.
  void start_reductions(std::uint32_t k);
  void start_reduction(std::size_t number);
  [[nodiscard]] Tasks complete_gradient(std::uint32_t gradient) const;
  /// A reduction of one number over all ranks that one overflow or norm concerns.
  std::uint32_t start_scalar(std::string_view name, std::uint32_t after);
  std::uint32_t add_collective(std::uint32_t family, const Operation& operation, std::string name,
                               std::uint32_t segment = Purpose::none);
  [[nodiscard]] Rank group_size(std::uint32_t family) const;

  [[nodiscard]] PlanTask& task(std::uint32_t number) { return role_.tasks[number]; }
  [[nodiscard]] Purpose purpose_of(const models::Kernel& kernel) const;
  std::uint32_t add(PlanTask task);
  void open_block(std::uint32_t k, std::uint32_t stream, Tasks after);
  void extend_block(std::uint32_t k);

  const models::Program& program_;
  const StepSpec& step_;
  const std::vector<WeightGather>& gathers_;
  RolePlace place_;
  const ScheduleMaker& make_schedule_;
  Plan& plan_;
  Role role_;
  std::vector<models::Pass> passes_;

  // Found in the program.
  std::vector<bool> ends_block_;                       // of kernels: communication sends what they write
  std::vector<std::vector<std::uint32_t>> waits_for_;  // of kernels: communication of their pass whose output they read
  std::vector<std::vector<FirstUse>> uses_;            // of passes, in the order of kernels
  std::vector<std::uint32_t> ready_;                   // of reductions: the kernel with which it can start
  std::vector<std::uint32_t> reduction_of_;            // of gradients; none: nobody else contributes

  // Numbers in the Plan, of what several tasks take part in.
  std::vector<std::uint32_t> reduction_collectives_;
  std::vector<std::uint32_t> mirror_collectives_;
  std::vector<std::uint32_t> gather_collectives_;
  std::map<std::uint32_t, std::uint32_t> operator_collectives_;  // of kernels
  std::map<std::uint32_t, std::uint32_t> messages_;              // of kernels

  // Where the step stands.
  std::uint32_t micro_batch_ = 0;
  std::size_t pass_ = 0;
  std::uint32_t open_ = none;  // the block that kernels are added to
  std::uint32_t ordinal_ = 0;
  std::uint32_t last_compute_ = none;  // tasks in the compute stream
  std::uint32_t compute_before_ = none;
  std::vector<std::uint32_t> task_of_;        // of kernels, in the latest micro-batch
  std::map<Launch, Tasks> prepared_;          // sends, with what they wait for
  std::map<Launch, std::uint32_t> received_;  // tasks of receives
  std::size_t next_turn_ = 0;
  std::size_t next_reduction_ = 0;
  std::uint32_t last_reduction_ = none;  // task
  std::vector<std::uint32_t> reduced_;   // of reductions: its last task
  std::vector<std::uint32_t> gathered_;  // of gathers: its latest task
  std::uint32_t first_wait_ = none;      // the gather that the first task of the step waits for
  std::map<StreamKind, std::uint32_t> host_streams_;
  std::size_t next_use_ = 0;  // of the pass
  std::size_t next_gather_ = 0;
};

}  // namespace hcclsim::hccl
