#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace SQLite {  // NOLINT(readability-identifier-naming): SQLiteCpp's
class Database;
class Statement;
}  // namespace SQLite

/// SQLiteCpp as the sweep store needs it: all throws Error(bad_input, "database") naming the file and what to do about
/// a file that is damaged, locked, read-only or on a full disk. What was committed before stays.
///
/// A file has one of two journals. The write-ahead log is fast, but its index is memory that the processes of one
/// machine share: two machines must never open such a file at once. The rollback journal needs nothing but locks of the
/// file, and is the one for network file systems.
namespace hcclsim::study {

enum class Journal : std::uint8_t { write_ahead, rollback };

/// The journal for a file in this folder: write-ahead only on file systems known to belong to one machine.
[[nodiscard]] Journal journal_on_file_system_of(const std::string& path);
/// Whether a file system of this type (`f_type` of statfs(2)) belongs to one machine.
[[nodiscard]] bool is_local_file_system(std::int64_t type);

class Database {
 public:
  enum class Access : std::uint8_t { read, write, create };

  /// Access::read changes nothing, except that it takes back what a process that was killed had written of a change.
  Database(std::string path, Access access);
  ~Database();

  /// Gives the file this journal, waiting for other processes as statements do.
  void set_journal(Journal journal) const;
  /// Runs statements without parameters and rows.
  void execute(const std::string& sql) const;
  /// The first column of the only row of a query.
  [[nodiscard]] std::int64_t integer(const std::string& query) const;
  /// Makes changes that happen together, or not at all if one of them throws. Takes the write lock at once.
  void change(const std::function<void()>& changes) const;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  friend class Statement;
  std::string path_;
  std::unique_ptr<SQLite::Database> handle_;
};

/// What a parameter or a column holds; nullptr is NULL.
using SqlValue = std::variant<std::nullptr_t, std::int64_t, double, std::string>;

/// A prepared statement; the database must outlive it. Columns count from 0.
class Statement {
 public:
  Statement(const Database& database, const std::string& sql);
  ~Statement();

  /// Begins anew with these values of the parameters.
  void bind(const std::vector<SqlValue>& values);
  /// Moves to the next row; false at the end.
  bool step();
  /// Runs a statement that has no rows; returns how many it changed.
  std::size_t run(const std::vector<SqlValue>& values);

  [[nodiscard]] SqlValue value(int column) const;
  [[nodiscard]] std::string text(int column) const;
  [[nodiscard]] std::int64_t integer(int column) const;
  /// Nothing for NULL.
  [[nodiscard]] std::optional<double> real(int column) const;

 private:
  const std::string& path_;
  std::unique_ptr<SQLite::Statement> statement_;
};

}  // namespace hcclsim::study
