#include "study/compare/sweep/database.hpp"

#include <SQLiteCpp/SQLiteCpp.h>
#include <linux/magic.h>
#include <sqlite3.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <thread>
#include <utility>

#include "base/error.hpp"

namespace hcclsim::study {
namespace {

/// How long another process may hold the write lock; a sweep holds it for less than a millisecond.
constexpr int patience_ms = 20'000;

constexpr std::int64_t xfs_magic = 0x58465342;  // these three are not in every <linux/magic.h>
constexpr std::int64_t zfs_magic = 0x2fc12fc1;
constexpr std::int64_t bcachefs_magic = 0xca451a4e;

/// What to do about a failure; empty if there is nothing to say.
std::string_view advice_of(int code) {
  switch (code) {
    case SQLITE_CORRUPT:
      return "the file is damaged; `sqlite3 FILE .recover | sqlite3 NEW.db` saves what can be read";
    case SQLITE_NOTADB:
      return "this is no sweep database, or its beginning is damaged";
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return "another program keeps the file locked; finished points are stored, try again when it is done";
    case SQLITE_FULL:
      return "the disk is full; finished points are stored, make room and give the same command again";
    case SQLITE_IOERR:
      return "the file cannot be read or written (disk, quota or size limit); finished points are stored, give the "
             "same command again when this is mended";
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return "the file or its folder cannot be written; give a database in a folder that can";
    case SQLITE_CANTOPEN:
      return "the file cannot be opened or made; check the path and the folder's permissions";
    default:
      return "";
  }
}

/// Does what may throw SQLiteCpp's exceptions, which become errors of the file.
template <typename Action>
auto guarded(const std::string& path, const Action& action) {
  try {
    return action();
  } catch (const SQLite::Exception& exception) {
    const std::string_view advice = advice_of(exception.getErrorCode());
    bad_input("database", "{}: {}{}{}", path, exception.what(), advice.empty() ? "" : ": ", advice);
  }
}

}  // namespace

Journal journal_on_file_system_of(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::absolute(path).parent_path();
  struct statfs about {};
  const bool local = ::statfs(folder.c_str(), &about) == 0 && is_local_file_system(about.f_type);
  return local ? Journal::write_ahead : Journal::rollback;
}

bool is_local_file_system(std::int64_t type) {
  constexpr std::array<std::int64_t, 10> local{
      EXT4_SUPER_MAGIC, xfs_magic,   BTRFS_SUPER_MAGIC, TMPFS_MAGIC, OVERLAYFS_SUPER_MAGIC,
      F2FS_SUPER_MAGIC, RAMFS_MAGIC, MSDOS_SUPER_MAGIC, zfs_magic,   bcachefs_magic};
  return std::find(local.begin(), local.end(), type) != local.end();
}

Database::Database(std::string path, Access access) : path_(std::move(path)) {
  if (access != Access::create && !std::filesystem::exists(path_)) {
    bad_input("database", "{}: there is no such file; `hcclsim sweep run` makes a database", path_);
  }
  // SQLite would wait for the writer of a pipe.
  if (std::filesystem::exists(path_) && !std::filesystem::is_regular_file(path_)) {
    bad_input("database", "{}: it is a folder, a pipe or a device; give a file", path_);
  }
  guarded(path_, [&] {
    const auto open = [&](int flags) { handle_ = std::make_unique<SQLite::Database>(path_, flags, patience_ms); };
    if (access != Access::read) {
      open(access == Access::write ? SQLite::OPEN_READWRITE : SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
      return;
    }
    constexpr const char* first_read = "PRAGMA schema_version";
    open(SQLite::OPEN_READONLY);
    const int code = handle_->tryExec(first_read);
    const int reason = handle_->getExtendedErrorCode();
    if (reason == SQLITE_READONLY_ROLLBACK || reason == SQLITE_READONLY_RECOVERY) {
      open(SQLite::OPEN_READWRITE);  // to take back half a change that a process which was killed has left
      handle_->exec(first_read);
    } else {
      handle_->check(code);
    }
  });
}

Database::~Database() = default;

void Database::set_journal(Journal journal) const {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds pause{5};
  const char* const pragma =
      journal == Journal::write_ahead ? "PRAGMA journal_mode = WAL" : "PRAGMA journal_mode = DELETE";
  const Clock::time_point end = Clock::now() + std::chrono::milliseconds(patience_ms);
  int code = handle_->tryExec(pragma);
  // SQLite itself does not wait here, since the change starts from a lock that others may wait for.
  while (code == SQLITE_BUSY && Clock::now() <= end) {
    std::this_thread::sleep_for(pause);
    code = handle_->tryExec(pragma);
  }
  guarded(path_, [&] { handle_->check(code); });
}

void Database::execute(const std::string& sql) const {
  guarded(path_, [&] { handle_->exec(sql); });
}

std::int64_t Database::integer(const std::string& query) const {
  return guarded(path_, [&] { return handle_->execAndGet(query).getInt64(); });
}

void Database::change(const std::function<void()>& changes) const {
  guarded(path_, [&] {
    SQLite::Transaction transaction(*handle_, SQLite::TransactionBehavior::IMMEDIATE);
    changes();
    transaction.commit();
  });
}

Statement::Statement(const Database& database, const std::string& sql)
    : path_(database.path()),
      statement_(guarded(path_, [&] { return std::make_unique<SQLite::Statement>(*database.handle_, sql); })) {}

Statement::~Statement() = default;

void Statement::bind(const std::vector<SqlValue>& values) {
  guarded(path_, [&] {
    statement_->tryReset();
    int parameter = 0;
    for (const SqlValue& value : values) {
      ++parameter;
      std::visit([&](const auto& each) { statement_->bind(parameter, each); }, value);  // a null text is NULL
    }
  });
}

bool Statement::step() {
  return guarded(path_, [&] { return statement_->executeStep(); });
}

std::size_t Statement::run(const std::vector<SqlValue>& values) {
  bind(values);
  return guarded(path_, [&] { return static_cast<std::size_t>(statement_->exec()); });
}

SqlValue Statement::value(int column) const {
  return guarded(path_, [&]() -> SqlValue {
    const SQLite::Column value = statement_->getColumn(column);
    if (value.isNull()) return nullptr;
    if (value.isInteger()) return value.getInt64();
    if (value.isFloat()) return value.getDouble();
    return value.getString();
  });
}

std::string Statement::text(int column) const {
  return guarded(path_, [&] { return statement_->getColumn(column).getString(); });
}

std::int64_t Statement::integer(int column) const {
  return guarded(path_, [&] { return statement_->getColumn(column).getInt64(); });
}

std::optional<double> Statement::real(int column) const {
  return guarded(path_, [&]() -> std::optional<double> {
    const SQLite::Column value = statement_->getColumn(column);
    return value.isNull() ? std::nullopt : std::optional(value.getDouble());
  });
}

}  // namespace hcclsim::study
