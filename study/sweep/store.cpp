#include "study/sweep/store.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>
#include <iterator>
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
  owner INTEGER, result TEXT, error TEXT, error_kind TEXT, exit_status INTEGER, finished_s REAL, wall_s REAL,
  step_time_s REAL, images_per_s REAL, exposed_communication_s REAL, hbm_peak_bytes REAL, time_s REAL, algbw_Bps REAL,
  busbw_Bps REAL);
CREATE INDEX IF NOT EXISTS points_by_status ON points (status);
)";

constexpr std::string_view finished_columns =
    "status, result, error, error_kind, exit_status, finished_s, wall_s, step_time_s, images_per_s, "
    "exposed_communication_s, hbm_peak_bytes, time_s, algbw_Bps, busbw_Bps";

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

std::string boot_id() { return first_line("/proc/sys/kernel/random/boot_id"); }

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

PointStatus parse_status(const std::string& name) {
  for (const PointStatus status : {PointStatus::waiting, PointStatus::running, PointStatus::done}) {
    if (name == name_of(status)) return status;
  }
  return PointStatus::failed;
}

std::int64_t pragma(const Database& database, const char* name) {
  Statement statement(database, fmt::format("PRAGMA {}", name));
  return statement.step() ? statement.integer(0) : 0;
}

}  // namespace

std::string_view name_of(PointStatus status) {
  constexpr std::array<std::string_view, 4> names{"waiting", "running", "done", "failed"};
  return names.at(static_cast<std::size_t>(status));
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
  make_tables();
  // A process that is killed loses nothing that was committed; only a machine that loses power may lose the last
  // points.
  database_.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL");
  Statement enter(database_, "INSERT INTO sweeps (host, boot_id, pid, started, heartbeat_s) VALUES (?, ?, ?, ?, ?)");
  enter.bind(1, host_name()).bind(2, boot_id()).bind(3, std::int64_t{::getpid()});
  enter.bind(4, start_of_process(::getpid())).bind(5, now_s()).run();
  owner_ = database_.last_row();
  keep_alive();
}

SweepStore::~SweepStore() {
  if (owner_ == 0) return;
  try {
    Statement(database_, "UPDATE points SET status = 'waiting', owner = NULL WHERE status = 'running' AND owner = ?")
        .bind(1, owner_)
        .run();
    Statement(database_, "DELETE FROM sweeps WHERE id = ?").bind(1, owner_).run();
    database_.execute("PRAGMA busy_timeout = 0; PRAGMA journal_mode = DELETE");
  } catch (const Error&) {  // another process uses the file, or it cannot be written: claims of the dead are void
  }
}

void SweepStore::make_tables() {
  Transaction transaction(database_);
  Statement objects(database_, "SELECT count(*) FROM sqlite_master");
  const bool empty = objects.step() && objects.integer(0) == 0 && pragma(database_, "application_id") == 0 &&
                     pragma(database_, "user_version") == 0;
  static_cast<void>(objects.step());
  if (empty) {
    database_.execute(tables);
    database_.execute(
        fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}", application_id, format_version));
  }
  transaction.commit();
  check_format();
}

void SweepStore::check_format() const {
  if (pragma(database_, "application_id") != application_id) {
    bad_input("database", "{}: this is no sweep database; give the name of one, or of a new file", database_.path());
  }
  const std::int64_t version = pragma(database_, "user_version");
  if (version != format_version) {
    bad_input("database", "{}: its format has version {}, this hcclsim knows {}; use the hcclsim that wrote it",
              database_.path(), version, format_version);
  }
}

void SweepStore::add(const std::vector<Point>& points) {
  Transaction transaction(database_);
  Statement insert(database_,
                   "INSERT OR IGNORE INTO points (id, command, inputs, platform, platform_hash, version) "
                   "VALUES (?, ?, ?, ?, ?, ?)");
  for (const Point& point : points) {
    insert.bind(1, point.id).bind(2, point.command);
    insert.bind(3, point.inputs.dump(-1, ' ', false, Json::error_handler_t::replace));
    insert.bind(4, point.files.at("platform")).bind(5, point.hashes.at("platform")).bind(6, point.version).run();
  }
  transaction.commit();
}

void SweepStore::retry(const std::vector<std::string>& ids) {
  Transaction transaction(database_);
  Statement update(database_, "UPDATE points SET status = 'waiting' WHERE id = ? AND status = 'failed'");
  for (const std::string& id : ids) update.bind(1, id).run();
  transaction.commit();
}

std::vector<PointStatus> SweepStore::statuses(const std::vector<std::string>& ids) {
  std::vector<PointStatus> statuses;
  Statement select(database_, "SELECT status FROM points WHERE id = ?");
  for (const std::string& id : ids) {
    select.bind(1, id);
    if (!select.step()) bad_input("database", "{}: point {} has disappeared", database_.path(), id);
    statuses.push_back(parse_status(select.text(0)));
    static_cast<void>(select.step());
  }
  return statuses;
}

bool SweepStore::claim(const std::string& id) {
  Statement(database_, "UPDATE points SET status = 'running', owner = ? WHERE id = ? AND status = 'waiting'")
      .bind(1, owner_)
      .bind(2, id)
      .run();
  return database_.changes() == 1;
}

void SweepStore::finish(const std::vector<Outcome>& outcomes) {
  if (outcomes.empty()) return;
  Transaction transaction(database_);
  Statement update(database_, fmt::format("UPDATE points SET owner = NULL, ({}) = (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
                                          "?, ?) WHERE id = ? AND status != 'done'",
                                          finished_columns));
  for (const Outcome& outcome : outcomes) {
    int parameter = 1;
    const auto text = [&](const std::string& value, bool given) {
      if (given) {
        update.bind(parameter++, value);
      } else {
        update.bind_null(parameter++);
      }
    };
    update.bind(parameter++, name_of(outcome.ok ? PointStatus::done : PointStatus::failed));
    text(outcome.result, outcome.ok);
    text(outcome.error, !outcome.ok);
    text(outcome.error_kind, !outcome.ok);
    update.bind(parameter++, std::int64_t{outcome.exit_status});
    update.bind(parameter++, now_s());
    update.bind(parameter++, outcome.wall_s);
    for (const std::string_view column : figure_columns) {
      const auto found = std::find_if(outcome.figures.begin(), outcome.figures.end(),
                                      [&](const auto& figure) { return figure.first == column; });
      if (found == outcome.figures.end()) {
        update.bind_null(parameter++);
      } else {
        update.bind(parameter++, found->second);
      }
    }
    update.bind(parameter, outcome.id).run();
  }
  transaction.commit();
}

void SweepStore::release(const std::vector<std::string>& ids) {
  Transaction transaction(database_);
  Statement update(database_, "UPDATE points SET status = 'waiting', owner = NULL WHERE id = ? AND status = 'running'");
  for (const std::string& id : ids) update.bind(1, id).run();
  transaction.commit();
}

void SweepStore::keep_alive() {
  Transaction transaction(database_);
  Statement(database_, "UPDATE sweeps SET heartbeat_s = ? WHERE id = ?").bind(1, now_s()).bind(2, owner_).run();
  std::vector<std::int64_t> dead;
  Statement others(database_, "SELECT id, host, boot_id, pid, started, heartbeat_s FROM sweeps WHERE id != ?");
  others.bind(1, owner_);
  while (others.step()) {
    const bool here = others.text(1) == host_name();
    const bool alive = here ? others.text(2) == boot_id() && start_of_process(others.integer(3)) == others.text(4)
                            : now_s() - others.real(5).value_or(0) < silence_s;
    if (!alive) dead.push_back(others.integer(0));
  }
  for (const std::int64_t owner : dead) Statement(database_, "DELETE FROM sweeps WHERE id = ?").bind(1, owner).run();
  database_.execute(
      "UPDATE points SET status = 'waiting', owner = NULL "
      "WHERE status = 'running' AND owner NOT IN (SELECT id FROM sweeps)");
  transaction.commit();
}

PointCounts SweepStore::counts() {
  PointCounts counts;
  Statement select(database_, "SELECT status, count(*) FROM points GROUP BY status");
  while (select.step()) {
    const std::array<std::uint64_t*, 4> fields{&counts.waiting, &counts.running, &counts.done, &counts.failed};
    *fields.at(static_cast<std::size_t>(parse_status(select.text(0)))) = static_cast<std::uint64_t>(select.integer(1));
  }
  return counts;
}

void SweepStore::for_each(const std::function<void(const StoredPoint&)>& visit, bool results) {
  Statement select(database_,
                   fmt::format("SELECT number, id, command, inputs, platform_hash, version, status, {}, error, "
                               "error_kind, exit_status, {} FROM points ORDER BY number",
                               results ? "result" : "NULL", fmt::join(figure_columns, ", ")));
  while (select.step()) {
    StoredPoint point{.number = select.integer(0),
                      .id = select.text(1),
                      .command = select.text(2),
                      .inputs = Json::parse(select.text(3), nullptr, false),
                      .platform_hash = select.text(4),
                      .version = select.text(5),
                      .status = parse_status(select.text(6)),
                      .result = select.text(7),
                      .error = select.text(8),
                      .error_kind = select.text(9),
                      .exit_status = static_cast<int>(select.integer(10))};
    if (!point.inputs.is_object()) {
      bad_input("database", "{}: the inputs of point {} are damaged", database_.path(), point.number);
    }
    constexpr int first_figure = 11;
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
  static_cast<void>(SweepStore(other, Access::read));  // refuses what is no sweep database
  Statement(database_, "ATTACH DATABASE ? AS other").bind(1, other).run();
  std::int64_t taken = 0;
  {
    Transaction transaction(database_);
    constexpr const char* identity = "id, command, inputs, platform, platform_hash, version";
    database_.execute(fmt::format(
        "INSERT INTO main.points ({0}) SELECT {0} FROM other.points AS theirs WHERE status IN ('done', 'failed') AND "
        "NOT EXISTS (SELECT 1 FROM main.points WHERE id = theirs.id) ORDER BY number",
        identity));
    database_.execute(fmt::format(
        "UPDATE main.points SET owner = NULL, ({0}) = (SELECT {0} FROM other.points WHERE id = main.points.id) "
        "WHERE status != 'done' AND id IN (SELECT id FROM other.points WHERE status = 'done' OR (status = 'failed' AND "
        "main.points.status = 'waiting'))",
        finished_columns));
    taken = database_.changes();
    transaction.commit();
  }
  database_.execute("DETACH DATABASE other");
  return static_cast<std::uint64_t>(taken);
}

}  // namespace hcclsim::study
