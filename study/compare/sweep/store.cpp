#include "study/compare/sweep/store.hpp"

#include <SQLiteCpp/Database.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/error.hpp"

namespace hcclsim::study {
namespace {

/// "hcSP" in the header of the file.
constexpr std::int64_t application_id = 0x68635350;
constexpr std::int64_t format_version = 1;
/// A process on another machine that has not been heard of for so long is taken for dead.
constexpr double silence_s = 300;

constexpr const char* tables = R"(
CREATE TABLE IF NOT EXISTS sweeps (
  id INTEGER PRIMARY KEY, host TEXT NOT NULL, boot_id TEXT NOT NULL, pid INTEGER NOT NULL, started TEXT NOT NULL,
  heartbeat_s REAL NOT NULL);
CREATE TABLE IF NOT EXISTS points (
  number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, command TEXT NOT NULL, inputs TEXT NOT NULL,
  platform TEXT NOT NULL, platform_hash TEXT NOT NULL, version TEXT NOT NULL,
  status TEXT NOT NULL DEFAULT 'waiting' CHECK (status IN ('waiting', 'running', 'done', 'failed')),
  owner INTEGER, result TEXT, error TEXT, error_kind TEXT, exit_status INTEGER, finished_s REAL, wall_s REAL);
CREATE INDEX IF NOT EXISTS points_by_status ON points (status);
)";

constexpr std::string_view identity_columns = "id, command, inputs, platform, platform_hash, version";
constexpr std::size_t identities = 6;
/// What came of a point, before its figures.
constexpr std::string_view outcome_columns = "status, result, error, error_kind, exit_status, finished_s, wall_s";
constexpr std::size_t outcomes_and_figures = 7 + figure_columns.size();

std::string add_identity() {
  return fmt::format("INSERT OR IGNORE INTO points ({}) VALUES (?, ?, ?, ?, ?, ?)", identity_columns);
}

/// Stores what came of a point of this status, ?1 and so on; its id is the last parameter.
std::string finish_where(std::string_view status) {
  std::string parameters;
  for (std::size_t i = 1; i <= outcomes_and_figures; ++i) parameters += fmt::format("{}?{}", i > 1 ? ", " : "", i);
  return fmt::format("UPDATE points SET owner = NULL, ({}, {}) = ({}) WHERE id = ?{} AND ({})", outcome_columns,
                     fmt::join(figure_columns, ", "), parameters, outcomes_and_figures + 1, status);
}

/// The NPUs of a run, or the ranks of a collective's measurements, which all have the same.
constexpr std::string_view npus_of_result =
    "CASE WHEN json_valid(result) THEN coalesce(json_extract(result, '$.npus'), json_extract(result, "
    "'$.rows[0].ranks')) END";

double now_s() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// Where process numbers mean the same: the kernel since its start, and the container's numbering of processes.
std::string process_space() {
  std::error_code error;
  const std::filesystem::path numbering = std::filesystem::read_symlink("/proc/self/ns/pid", error);
  return fmt::format("{} {}", first_line("/proc/sys/kernel/random/boot_id"), numbering.string());
}

/// When a process was started, in ticks since boot: tells it from a later one of the same number. Empty: no process.
std::string start_of_process(std::int64_t pid) {
  const std::string line = first_line(fmt::format("/proc/{}/stat", pid));
  const std::size_t name_end = line.rfind(')');  // the name may hold blanks
  if (name_end == std::string::npos) return {};
  std::istringstream fields(line.substr(name_end + 1));
  constexpr int fields_before = 19;
  std::string field;
  for (int i = 0; i <= fields_before; ++i) fields >> field;
  return field;
}

bool is_object_of_texts(const Json& inputs) {
  return inputs.is_object() && std::all_of(inputs.items().begin(), inputs.items().end(),
                                           [](const Json::Member& input) { return input.value.is_string(); });
}

PointStatus parse_status(const std::string& name) {
  for (const PointStatus status : {PointStatus::waiting, PointStatus::running, PointStatus::done}) {
    if (name == name_of(status)) return status;
  }
  return PointStatus::failed;
}

/// Whether the file is a sweep database in write-ahead mode.
bool has_write_ahead_log(const std::string& path) {
  try {
    const SQLite::Header header = SQLite::Database::getHeaderInfo(path);
    return header.fileFormatReadVersion == 2 && header.applicationId == application_id;
  } catch (const SQLite::Exception&) {  // there is no such file, or it has no header
    return false;
  }
}

/// Takes the file's log into the file without the memory that processes of one machine share, which in exclusive mode
/// SQLite does not use.
void leave_write_ahead(const Database& database) {
  database.execute("PRAGMA locking_mode = EXCLUSIVE");
  database.set_journal(Journal::rollback);
  database.execute("PRAGMA locking_mode = NORMAL");
}

}  // namespace

std::string_view name_of(PointStatus status) {
  constexpr std::array<std::string_view, 4> names{"waiting", "running", "done", "failed"};
  return names.at(static_cast<std::size_t>(status));
}

std::uint64_t& PointCounts::of(PointStatus status) {
  const std::array<std::uint64_t*, 4> fields{&waiting, &running, &done, &failed};
  return *fields.at(static_cast<std::size_t>(status));
}

Json StoredPoint::result_json() const {
  if (result.empty()) return {};
  return parse_json_text(result, fmt::format("the result of point {} is damaged", number), "database");
}

std::optional<double> StoredPoint::figure(std::string_view column) const {
  const auto* const found = std::find(figure_columns.begin(), figure_columns.end(), column);
  if (found == figure_columns.end()) return std::nullopt;
  return figures.at(static_cast<std::size_t>(found - figure_columns.begin()));
}

SweepStore::SweepStore(const std::string& path, Access access)
    : database_(path, access == Access::read ? Database::Access::read : Database::Access::create) {
  if (access == Access::read) {
    check_format();
    return;
  }
  const Journal journal = access == Access::share ? Journal::rollback : journal_on_file_system_of(path);
  if (journal == Journal::rollback && has_write_ahead_log(path)) leave_write_ahead(database_);
  make_tables();
  // A process that is killed loses nothing that was committed; only a machine that loses power may lose the last
  // points.
  database_.set_journal(journal);
  database_.execute("PRAGMA synchronous = NORMAL");
  owner_ = database_.integer("SELECT random() & 0x7fffffffffffffff");  // one that is never met again
  keep_alive();
  void_claims_of_the_dead();
}

SweepStore::~SweepStore() {
  if (owner_ == 0) return;
  try {
    Statement(database_, "UPDATE points SET status = 'waiting', owner = NULL WHERE status = 'running' AND owner = ?")
        .run({owner_});
    Statement(database_, "DELETE FROM sweeps WHERE id = ?").run({owner_});
    database_.execute("PRAGMA busy_timeout = 0; PRAGMA journal_mode = DELETE");
  } catch (const Error&) {  // another process uses the file, or it cannot be written: claims of the dead are void
  }
}

void SweepStore::make_tables() {
  database_.change([&] {
    const bool empty = database_.integer("SELECT count(*) FROM sqlite_master") == 0 &&
                       database_.integer("PRAGMA application_id") == 0 && database_.integer("PRAGMA user_version") == 0;
    if (!empty) return;
    database_.execute(tables);
    database_.execute(
        fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}", application_id, format_version));
  });
  check_format();
  const auto is_there = [this](std::string_view column) { return has_column(column); };
  if (std::all_of(figure_columns.begin(), figure_columns.end(), is_there)) return;
  database_.change([&] {
    for (const std::string_view column : figure_columns) {
      if (!has_column(column)) database_.execute(fmt::format("ALTER TABLE points ADD COLUMN {} REAL", column));
    }
  });
}

bool SweepStore::has_column(std::string_view name) const {
  return database_.integer(fmt::format("SELECT count(*) FROM pragma_table_info('points') WHERE name = '{}'", name)) > 0;
}

std::string SweepStore::figures_in_file() const {
  std::string columns;
  for (const std::string_view column : figure_columns) {
    columns += fmt::format("{}{}", columns.empty() ? "" : ", ", has_column(column) ? column : "NULL");
  }
  return columns;
}

void SweepStore::check_format() const {
  std::error_code error;
  if (std::filesystem::file_size(database_.path(), error) == 0 && !error) {
    bad_input("database", "{}: the file is empty; `hcclsim sweep run` fills it", database_.path());
  }
  if (database_.integer("PRAGMA application_id") != application_id) {
    bad_input("database", "{}: this is no sweep database; give the name of one, or of a new file", database_.path());
  }
  const std::int64_t version = database_.integer("PRAGMA user_version");
  if (version != format_version) {
    bad_input("database", "{}: its format has version {}, this hcclsim knows {}; use the hcclsim that wrote it",
              database_.path(), version, format_version);
  }
}

void SweepStore::add(const std::vector<Point>& points) {
  database_.change([&] {
    Statement insert(database_, add_identity());
    for (const Point& point : points) {
      insert.run({point.id, point.command, point.inputs.dump(), point.files.at("platform"), point.hashes.at("platform"),
                  point.version});
    }
  });
}

void SweepStore::retry(const std::vector<std::string>& ids) {
  database_.change([&] {
    Statement update(database_, "UPDATE points SET status = 'waiting' WHERE id = ? AND status = 'failed'");
    for (const std::string& id : ids) update.run({id});
  });
}

std::vector<PointStatus> SweepStore::statuses(const std::vector<std::string>& ids) {
  std::vector<PointStatus> statuses;
  Statement select(database_, "SELECT status FROM points WHERE id = ?");
  for (const std::string& id : ids) {
    select.bind({id});
    if (!select.step()) bad_input("database", "{}: point {} has disappeared", database_.path(), id);
    statuses.push_back(parse_status(select.text(0)));
  }
  return statuses;
}

bool SweepStore::claim(const std::string& id) {
  Statement update(database_, "UPDATE points SET status = 'running', owner = ? WHERE id = ? AND status = 'waiting'");
  return update.run({owner_, id}) == 1;
}

void SweepStore::finish(const std::vector<Outcome>& outcomes) {
  if (outcomes.empty()) return;
  const auto text_if = [](bool given, const std::string& text) { return given ? SqlValue(text) : SqlValue(); };
  database_.change([&] {
    Statement update(database_, finish_where("status != 'done'"));
    for (const Outcome& outcome : outcomes) {
      std::vector<SqlValue> values{std::string(name_of(outcome.ok ? PointStatus::done : PointStatus::failed)),
                                   text_if(!outcome.result.empty(), outcome.result),
                                   text_if(!outcome.ok, outcome.error),
                                   text_if(!outcome.ok, outcome.error_kind),
                                   outcome.exit_status,
                                   now_s(),
                                   outcome.wall_s};
      for (const std::string_view column : figure_columns) {
        const auto found = std::find_if(outcome.figures.begin(), outcome.figures.end(),
                                        [&](const auto& figure) { return figure.first == column; });
        values.push_back(found == outcome.figures.end() ? SqlValue() : found->second);
      }
      values.emplace_back(outcome.id);
      update.run(values);
    }
  });
}

void SweepStore::release(const std::vector<std::string>& ids) {
  database_.change([&] {
    Statement update(
        database_,
        "UPDATE points SET status = 'waiting', owner = NULL WHERE id = ? AND status = 'running' AND owner = ?");
    for (const std::string& id : ids) update.run({id, owner_});
  });
}

void SweepStore::keep_alive() {
  // The row is gone if this process was silent for so long that others took it for dead.
  Statement insert(database_,
                   "INSERT INTO sweeps (id, host, boot_id, pid, started, heartbeat_s) VALUES (?, ?, ?, ?, ?, ?) "
                   "ON CONFLICT (id) DO UPDATE SET heartbeat_s = excluded.heartbeat_s");
  insert.run({owner_, host_name(), process_space(), ::getpid(), start_of_process(::getpid()), now_s()});
}

std::vector<std::int64_t> SweepStore::dead_owners() const {
  std::vector<std::int64_t> dead;
  Statement others(database_, "SELECT id, boot_id, pid, started, heartbeat_s FROM sweeps WHERE id != ?");
  others.bind({owner_});
  const std::string here = process_space();
  while (others.step()) {
    const bool alive = others.text(1) == here ? start_of_process(others.integer(2)) == others.text(3)
                                              : now_s() - others.real(4).value_or(0) < silence_s;
    if (!alive) dead.push_back(others.integer(0));
  }
  return dead;
}

void SweepStore::void_claims_of_the_dead() {
  constexpr std::string_view orphans = "status = 'running' AND owner NOT IN (SELECT id FROM sweeps)";
  const std::string has_orphans = fmt::format("SELECT EXISTS (SELECT 1 FROM points WHERE {})", orphans);
  if (dead_owners().empty() && database_.integer(has_orphans) == 0) return;
  database_.change([&] {
    Statement remove(database_, "DELETE FROM sweeps WHERE id = ?");
    for (const std::int64_t owner : dead_owners()) remove.run({owner});
    database_.execute(fmt::format("UPDATE points SET status = 'waiting', owner = NULL WHERE {}", orphans));
  });
}

PointCounts SweepStore::counts() {
  PointCounts counts;
  Statement select(database_,
                   fmt::format("SELECT CASE WHEN status = 'running' AND (owner IN ({}) OR owner NOT IN (SELECT id FROM "
                               "sweeps)) THEN 'waiting' ELSE status END AS now, count(*) FROM points GROUP BY now",
                               fmt::join(dead_owners(), ", ")));
  while (select.step()) {
    counts.of(parse_status(select.text(0))) = static_cast<std::uint64_t>(select.integer(1));
  }
  return counts;
}

void SweepStore::for_each(const std::function<void(const StoredPoint&)>& visit, bool results) {
  Statement select(database_,
                   fmt::format("SELECT number, id, command, inputs, platform_hash, version, status, {}, error, "
                               "error_kind, exit_status, {}, {} FROM points ORDER BY number",
                               results ? "result" : "NULL", npus_of_result, figures_in_file()));
  while (select.step()) {
    StoredPoint point{.number = select.integer(0),
                      .id = select.text(1),
                      .command = select.text(2),
                      .inputs = Json::try_parse(select.text(3)).value_or(Json()),
                      .platform_hash = select.text(4),
                      .version = select.text(5),
                      .status = parse_status(select.text(6)),
                      .result = select.text(7),
                      .error = select.text(8),
                      .error_kind = select.text(9),
                      .exit_status = static_cast<int>(select.integer(10)),
                      .npus = select.integer(11)};
    if (!is_object_of_texts(point.inputs)) {
      bad_input("database", "{}: the inputs of point {} are damaged", database_.path(), point.number);
    }
    constexpr int first_figure = 12;
    for (std::size_t i = 0; i < figure_columns.size(); ++i) {
      point.figures.at(i) = select.real(first_figure + static_cast<int>(i));
    }
    visit(point);
  }
}

std::vector<StoredPoint> SweepStore::points() {
  std::vector<StoredPoint> all;
  for_each([&](const StoredPoint& point) { all.push_back(point); }, false);
  return all;
}

std::uint64_t SweepStore::merge(const std::string& other) {
  std::error_code error;
  if (std::filesystem::equivalent(database_.path(), other, error)) {
    bad_input("database", "{}: a database is not merged into itself; name others", other);
  }
  const SweepStore theirs(other, Access::read);
  Statement select(theirs.database_,
                   fmt::format("SELECT {}, {}, {} FROM points WHERE status IN ('done', 'failed') ORDER BY number",
                               identity_columns, outcome_columns, theirs.figures_in_file()));
  std::size_t taken = 0;
  database_.change([&] {
    Statement insert(database_, add_identity());
    Statement update(database_, finish_where("status = 'waiting' OR (status != 'done' AND ?1 = 'done')"));
    while (select.step()) {
      std::vector<SqlValue> identity;
      std::vector<SqlValue> finished;
      for (std::size_t i = 0; i < identities + outcomes_and_figures; ++i) {
        (i < identities ? identity : finished).push_back(select.value(static_cast<int>(i)));
      }
      insert.run(identity);
      finished.push_back(identity.front());
      taken += update.run(finished);
    }
  });
  return taken;
}

}  // namespace hcclsim::study
