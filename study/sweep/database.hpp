#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

/// SQLite as the sweep store needs it: statements that throw Error(bad_input, "database") naming the file and what to
/// do about a file that is damaged, locked, read-only or on a full disk. What was committed before stays.
///
/// A file has one of two journals. The write-ahead log is fast, but its index is memory that the processes of one
/// machine share: two machines must never open such a file at once. The rollback journal needs nothing but locks of the
/// file, and is the one for network file systems.
namespace hcclsim::study {

class Database;

enum class Journal : std::uint8_t { write_ahead, rollback };

/// The journal for a file in this folder: write-ahead only on file systems known to belong to one machine.
[[nodiscard]] Journal journal_on_file_system_of(const std::string& path);
/// Whether a file system of this type (`f_type` of statfs(2)) belongs to one machine.
[[nodiscard]] bool is_local_file_system(std::int64_t type);

/// A prepared statement. Parameters count from 1, columns from 0.
class Statement {
 public:
  Statement(const Database& database, std::string_view sql);

  Statement& bind(int parameter, std::string_view text);
  Statement& bind(int parameter, std::int64_t number);
  Statement& bind(int parameter, double number);
  Statement& bind_null(int parameter);
  /// What a column of another statement's row holds.
  Statement& bind(int parameter, const Statement& row, int column);

  /// Moves to the next row; false at the end, after which the statement can be bound and run again.
  bool step();
  /// Runs a statement that has no rows.
  void run();

  [[nodiscard]] std::string text(int column) const;
  [[nodiscard]] std::int64_t integer(int column) const;
  /// Nothing for NULL.
  [[nodiscard]] std::optional<double> real(int column) const;

 private:
  struct Finalizer {
    void operator()(sqlite3_stmt* statement) const;
  };
  const Database& database_;
  std::unique_ptr<sqlite3_stmt, Finalizer> statement_;
};

class Database {
 public:
  enum class Access : std::uint8_t { read, write, create };

  /// Access::read changes nothing, except that it takes back what a process that was killed had written of a change.
  Database(std::string path, Access access);

  /// Gives the file this journal, waiting for other processes as statements do.
  void set_journal(Journal journal) const;
  /// Runs statements without parameters and rows.
  void execute(const std::string& sql) const;
  /// Rows that the last statement changed.
  [[nodiscard]] std::int64_t changes() const;
  [[nodiscard]] const std::string& path() const { return path_; }

  /// Throws what a result code of SQLite means.
  [[noreturn]] void fail(int code) const;

 private:
  friend class Statement;
  struct Closer {
    void operator()(sqlite3* database) const;
  };
  void open(int flags);

  std::string path_;
  std::unique_ptr<sqlite3, Closer> handle_;
};

/// Changes that happen together, or not at all if commit() is not reached. Takes the write lock at once.
class Transaction {
 public:
  explicit Transaction(const Database& database);
  Transaction(const Transaction&) = delete;
  Transaction(Transaction&&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();
  void commit();

 private:
  const Database& database_;
  bool open_ = true;
};

}  // namespace hcclsim::study
