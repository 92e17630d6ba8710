#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <pugixml.hpp>
#include <set>
#include <sstream>

#include "base/units.hpp"
#include "sim/platform/catalog.hpp"

// platforms/README.md gives the source of every figure: each speed of the XML files must stand in its tables, in its
// column, and each row of the tables must be that of a link of the files.
namespace hcclsim::sim {
namespace {

constexpr std::array<const char*, 6> columns{"nominal", "low", "used", "high", "write", "read"};

/// GB/s by column, as text of the shortest form; empty where none is given.
using Figures = std::array<std::string, columns.size()>;
/// Server title, link names such as "hccs-*".
using Key = std::pair<std::string, std::string>;

std::string print(const Figures& figures) {
  std::string text;
  for (std::size_t i = 0; i < columns.size(); ++i) text += fmt::format("{} {}, ", columns[i], figures[i]);
  return text;
}

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream stream(line.substr(1));
  for (std::string cell; std::getline(stream, cell, '|');) {
    cell.erase(0, cell.find_first_not_of(' '));
    cell.erase(cell.find_last_not_of(' ') + 1);
    cells.push_back(cell);
  }
  return cells;
}

/// The words in back quotes of a cell.
std::vector<std::string> quoted(const std::string& cell) {
  std::vector<std::string> words;
  for (std::size_t at = cell.find('`'); at != std::string::npos;) {
    const std::size_t end = cell.find('`', at + 1);
    words.push_back(cell.substr(at + 1, end - at - 1));
    at = cell.find('`', end + 1);
  }
  return words;
}

struct Readme {
  std::map<Key, Figures> links;
  std::map<std::string, std::pair<std::string, std::string>> tasks;  ///< property: value, meaning
};

Readme read_readme() {
  std::ifstream file(std::string(HCCLSIM_PLATFORM_DIR) + "/README.md");
  Readme readme;
  std::string section;
  std::string title;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("## ")) section = line.substr(3);
    if (line.starts_with("### ")) title = line.substr(4);
    if (!line.starts_with("| `")) continue;
    const std::vector<std::string> cells = cells_of(line);
    if (section == "Links") {
      EXPECT_EQ(cells.size(), 1 + columns.size()) << line;
      Figures figures;
      std::copy(cells.begin() + 1, cells.end(), figures.begin());
      for (const std::string& name : quoted(cells[0])) {
        EXPECT_TRUE(readme.links.emplace(Key{title, name}, figures).second) << "twice: " << line;
      }
    } else if (section == "Tasks") {
      readme.tasks[quoted(cells[0]).at(0)] = {cells.at(1), cells.at(2)};
    }
  }
  return readme;
}

std::string gigabytes(const std::string& bandwidth) {
  return bandwidth.empty() ? "" : fmt::format("{}", parse_bandwidth(bandwidth) / giga);
}

std::string property(const pugi::xml_node& element, const std::string& id) {
  return element.find_child_by_attribute("prop", "id", id.c_str()).attribute("value").value();
}

/// "hccs-0-1" as "hccs-*"; names without a number stay.
std::string pattern(const std::string& name) {
  const std::size_t digit = name.find_first_of("0123456789");
  return digit == std::string::npos || name[digit - 1] != '-' ? name : name.substr(0, digit) + "*";
}

void add_links(const pugi::xml_node& zone, const pugi::xml_node& outermost, const std::string& title,
               std::map<Key, std::set<Figures>>& links) {
  for (const pugi::xml_node& child : zone.children()) {
    if (std::string(child.name()) == "zone") add_links(child, outermost, title, links);
    if (std::string(child.name()) != "link") continue;
    const std::string kind = property(child, "kind");
    Figures figures;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const std::string own = property(child, columns[i]);
      figures[i] = gigabytes(own.empty() ? property(outermost, fmt::format("link.{}.{}", kind, columns[i])) : own);
    }
    figures[2] = gigabytes(child.attribute("bandwidth").value());
    links[{title, pattern(child.attribute("id").value())}].insert(figures);
  }
}

TEST(PlatformFigures, EverySpeedOfTheFilesStandsInTheTablesAndTheOtherWayRound) {
  const Readme readme = read_readme();
  std::map<Key, std::set<Figures>> links;
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(HCCLSIM_PLATFORM_DIR)) {
    if (entry.path().extension() != ".xml") continue;
    ++files;
    pugi::xml_document document;
    ASSERT_TRUE(document.load_file(entry.path().c_str())) << entry.path();
    const pugi::xml_node zone = document.child("platform").child("zone");
    std::string title = property(zone, "name");
    if (const std::size_t times = title.find(" x "); times != std::string::npos) title.erase(0, times + 3);
    add_links(zone, zone, title, links);
    for (const auto& [name, task] : readme.tasks) EXPECT_EQ(property(zone, name), task.first) << entry.path() << name;
  }
  EXPECT_EQ(files, 7U);
  for (const auto& [key, figures] : links) {
    ASSERT_EQ(figures.size(), 1U) << key.first << " " << key.second << ": files differ";
    const auto row = readme.links.find(key);
    ASSERT_NE(row, readme.links.end()) << key.first << " " << key.second << " is in no table";
    EXPECT_EQ(print(*figures.begin()), print(row->second)) << key.first << " " << key.second;
  }
  for (const auto& [key, figures] : readme.links) {
    EXPECT_TRUE(links.contains(key)) << key.first << " " << key.second << " is in no file";
  }
}

TEST(PlatformFigures, TheCostsOfTasksAreThoseOfTheTable) {
  const Readme readme = read_readme();
  EXPECT_EQ(readme.tasks.size(), task_costs().size());
  for (const TaskCost& cost : task_costs()) {
    SCOPED_TRACE(cost.property);
    const auto row = readme.tasks.find(std::string(cost.property));
    ASSERT_NE(row, readme.tasks.end());
    EXPECT_EQ(row->second.first, cost.value);
    EXPECT_EQ(row->second.second, cost.meaning);
  }
}

}  // namespace
}  // namespace hcclsim::sim
