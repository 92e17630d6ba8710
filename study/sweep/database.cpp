#include "study/sweep/database.hpp"

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

int flags_of(Database::Access access) {
  if (access == Database::Access::read) return SQLITE_OPEN_READONLY;
  return access == Database::Access::write ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
}

/// What to do about a failure; empty if there is nothing to say.
std::string_view advice_of(int code) {
  constexpr int primary = 0xff;
  switch (code & primary) {
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
             "same "
             "command again when this is mended";
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

/// Whether only a process that may write can read the file: one that was killed has left half a change.
bool needs_recovery(int code) { return code == SQLITE_READONLY_ROLLBACK || code == SQLITE_READONLY_RECOVERY; }

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

void Statement::Finalizer::operator()(sqlite3_stmt* statement) const { ::sqlite3_finalize(statement); }
void Database::Closer::operator()(sqlite3* database) const { ::sqlite3_close_v2(database); }

Statement::Statement(const Database& database, std::string_view sql) : database_(database) {
  sqlite3_stmt* statement = nullptr;
  const int code =
      ::sqlite3_prepare_v2(database.handle_.get(), sql.data(), static_cast<int>(sql.size()), &statement, nullptr);
  statement_.reset(statement);
  if (code != SQLITE_OK) database_.fail(code);
}

Statement& Statement::bind(int parameter, std::string_view text) {
  const int code = ::sqlite3_bind_text64(statement_.get(), parameter, text.data(), text.size(),
                                         SQLITE_TRANSIENT,  // NOLINT(performance-no-int-to-ptr): SQLite's constant
                                         SQLITE_UTF8);
  if (code != SQLITE_OK) database_.fail(code);
  return *this;
}

Statement& Statement::bind(int parameter, std::int64_t number) {
  if (const int code = ::sqlite3_bind_int64(statement_.get(), parameter, number); code != SQLITE_OK) {
    database_.fail(code);
  }
  return *this;
}

Statement& Statement::bind(int parameter, double number) {
  if (const int code = ::sqlite3_bind_double(statement_.get(), parameter, number); code != SQLITE_OK) {
    database_.fail(code);
  }
  return *this;
}

Statement& Statement::bind_null(int parameter) {
  if (const int code = ::sqlite3_bind_null(statement_.get(), parameter); code != SQLITE_OK) database_.fail(code);
  return *this;
}

Statement& Statement::bind(int parameter, const Statement& row, int column) {
  const int code =
      ::sqlite3_bind_value(statement_.get(), parameter, ::sqlite3_column_value(row.statement_.get(), column));
  if (code != SQLITE_OK) database_.fail(code);
  return *this;
}

bool Statement::step() {
  const int code = ::sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  ::sqlite3_reset(statement_.get());
  if (code != SQLITE_DONE) database_.fail(code);
  return false;
}

void Statement::run() {
  while (step()) {
  }
}

std::string Statement::text(int column) const {
  const auto* const text = ::sqlite3_column_text(statement_.get(), column);
  if (text == nullptr) return {};
  const auto size = static_cast<std::size_t>(::sqlite3_column_bytes(statement_.get(), column));
  return {reinterpret_cast<const char*>(text), size};  // NOLINT(cppcoreguidelines-pro-type-reinterpret-cast)
}

std::int64_t Statement::integer(int column) const { return ::sqlite3_column_int64(statement_.get(), column); }

std::optional<double> Statement::real(int column) const {
  if (::sqlite3_column_type(statement_.get(), column) == SQLITE_NULL) return std::nullopt;
  return ::sqlite3_column_double(statement_.get(), column);
}

Database::Database(std::string path, Access access) : path_(std::move(path)) {
  if (access != Access::create && !std::filesystem::exists(path_)) {
    bad_input("database", "{}: there is no such file; `hcclsim sweep run` makes a database", path_);
  }
  open(flags_of(access));
  if (access != Access::read) return;
  int code = ::sqlite3_exec(handle_.get(), "PRAGMA schema_version", nullptr, nullptr, nullptr);
  if (needs_recovery(code)) {
    open(flags_of(Access::write));
    code = ::sqlite3_exec(handle_.get(), "PRAGMA schema_version", nullptr, nullptr, nullptr);
  }
  if (code != SQLITE_OK) fail(code);
}

void Database::open(int flags) {
  sqlite3* handle = nullptr;
  const int code = ::sqlite3_open_v2(path_.c_str(), &handle, flags, nullptr);
  handle_.reset(handle);
  if (code != SQLITE_OK) fail(code);
  ::sqlite3_extended_result_codes(handle, 1);
  ::sqlite3_busy_timeout(handle, patience_ms);
}

void Database::set_journal(Journal journal) const {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds pause{5};
  const char* const pragma =
      journal == Journal::write_ahead ? "PRAGMA journal_mode = WAL" : "PRAGMA journal_mode = DELETE";
  const Clock::time_point end = Clock::now() + std::chrono::milliseconds(patience_ms);
  constexpr int primary = 0xff;
  while (true) {
    // SQLite itself does not wait here, since the change starts from a lock that others may wait for.
    const int code = ::sqlite3_exec(handle_.get(), pragma, nullptr, nullptr, nullptr);
    if (code == SQLITE_OK) return;
    if ((code & primary) != SQLITE_BUSY || Clock::now() > end) fail(code);
    std::this_thread::sleep_for(pause);
  }
}

void Database::execute(const std::string& sql) const {
  const int code = ::sqlite3_exec(handle_.get(), sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) fail(code);
}

std::int64_t Database::changes() const { return ::sqlite3_changes64(handle_.get()); }

void Database::fail(int code) const {
  const std::string_view advice = advice_of(code);
  const char* const what = handle_ == nullptr ? ::sqlite3_errstr(code) : ::sqlite3_errmsg(handle_.get());
  bad_input("database", "{}: {}{}{}", path_, what, advice.empty() ? "" : ": ", advice);
}

Transaction::Transaction(const Database& database) : database_(database) { database_.execute("BEGIN IMMEDIATE"); }

Transaction::~Transaction() {
  if (!open_) return;
  try {
    database_.execute("ROLLBACK");
  } catch (const Error&) {  // SQLite has rolled back by itself
  }
}

void Transaction::commit() {
  database_.execute("COMMIT");
  open_ = false;
}

}  // namespace hcclsim::study
