#pragma once

#include <cstdint>
#include <vector>

/// The synchronous step protocol as one server keeps it, without time: what is pushed is held back until everybody has
/// pulled the last value, added up, and applied once every worker has pushed every key of the server.
namespace hcclsim::hccl {

/// A gradient that has gone into an update.
struct PsContribution {
  std::uint32_t worker = 0;
  std::uint32_t step = 0;
  bool operator==(const PsContribution&) const = default;
};

/// The state of one piece: accumulated contributions, their number, tokens. A round of a piece is the update with which
/// its version grows by one. All pieces of a server are of one version, but for those that a server which was lost got
/// back in an older version than others: the pieces of the oldest version make a round then.
class SynchronousRounds {
 public:
  /// Pieces 0 … pieces − 1, of version 0.
  SynchronousRounds(std::size_t pieces, std::uint32_t workers);
  /// Pieces that begin with these versions and tokens.
  SynchronousRounds(const std::vector<std::uint64_t>& versions, const std::vector<std::uint32_t>& tokens,
                    std::uint32_t workers);

  /// Whether a worker may push: nobody has still to pull, the server has not yet collected all pieces of the round, and
  /// the worker has not pushed in it already.
  [[nodiscard]] bool ready_for_push(std::size_t piece, std::uint32_t worker) const;
  /// Takes a push that is ready; throws Error(internal) for another one. Returns the pieces that are to be updated now:
  /// all of a round with the last of its pushes, else none.
  [[nodiscard]] std::vector<std::size_t> push(std::size_t piece, const PsContribution& contribution);
  /// What is added up, in the order of the pushes.
  [[nodiscard]] const std::vector<PsContribution>& pushed(std::size_t piece) const { return pieces_[piece].pushed; }
  /// The optimizer has run on a piece of the round: it may be pulled. Pushes are ready after the last of them.
  void updated(std::size_t piece);

  [[nodiscard]] bool ready_for_pull(std::size_t piece) const { return pieces_[piece].tokens > 0; }
  /// Serves one pull that is ready; throws Error(internal) for another one.
  void pull(std::size_t piece);

  [[nodiscard]] std::uint64_t version(std::size_t piece) const { return pieces_[piece].version; }
  [[nodiscard]] std::uint32_t tokens(std::size_t piece) const { return pieces_[piece].tokens; }

 private:
  struct Piece {
    std::vector<PsContribution> pushed;
    std::uint32_t tokens = 0;
    std::uint64_t version = 0;
  };

  [[nodiscard]] std::uint64_t oldest_version() const;

  std::vector<Piece> pieces_;
  std::uint32_t workers_;
  std::size_t updating_ = 0;  // pieces of the collected round that are not updated yet
};

}  // namespace hcclsim::hccl
