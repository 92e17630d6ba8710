#include "sim/event_loop.hpp"

#include <gtest/gtest.h>
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/s4u/Engine.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>

#include "base/error.hpp"
#include "sim/simgrid_module.hpp"
#include "tests/sim/simulate.hpp"

namespace hcclsim::sim {
namespace {

/// Writes the tags of its events, with their dates in seconds.
class Journal final : public EventHandler {
 public:
  explicit Journal(EventLoop& loop) : loop_(loop) {}
  void on_event(std::uint64_t tag) override { text += fmt::format("{}@{} ", tag, loop_.now()); }

  std::string text;

 private:
  EventLoop& loop_;
};

TEST(EventLoop, OrdersByDateThenRankThenStreamThenInsertion) {
  EXPECT_EQ(run_in_child([] {
              EventLoop loop;
              Journal journal(loop);
              loop.at(2, {1, 0}, journal, 1);
              loop.at(1, {3, 0}, journal, 2);
              loop.at(1, {2, 7}, journal, 3);
              loop.at(1, {2, 1}, journal, 4);
              loop.at(1, {2, 7}, journal, 5);
              loop.at(1, {2, 1}, journal, 6);
              loop.at(0, {9, 0}, journal, 7);
              loop.run();
              return journal.text;
            }),
            "7@0 4@1 6@1 3@1 5@1 2@1 1@2 ");
}

// Between the events up to its date and those behind it; the first date that is asked for counts; never at the end.
TEST(EventLoop, AWatchIsCalledBeforeTheClockPassesItsDate) {
  EXPECT_EQ(run_in_child([] {
              EventLoop loop;
              Journal journal(loop);
              Journal watch(loop);
              loop.watch(watch, 7, 4);
              loop.watch(watch, 7, 2);
              loop.watch(watch, 7, 3);
              loop.at(2, {}, journal, 1);
              loop.at(5, {}, [&] {
                journal.text += watch.text;
                loop.watch(watch, 8, 6);
              });
              loop.run();
              return journal.text + watch.text;
            }),
            "1@2 7@2 7@2 ");
}

TEST(EventLoop, EventsAddedForTheDateBeingHandledFollowInOrder) {
  EXPECT_EQ(run_in_child([] {
              EventLoop loop;
              Journal journal(loop);
              loop.at(1, {5, 0}, [&] {
                loop.at(1, {9, 0}, journal, 1);
                loop.at(1, {0, 0}, journal, 2);  // before rank 9, although rank 6 of this date comes first
              });
              loop.at(1, {6, 0}, journal, 3);
              loop.run();
              return journal.text;
            }),
            "3@1 2@1 1@1 ");
}

TEST(EventLoop, EndOfDateComesAfterAllEventsOfTheDateAndAgainAfterThoseItAdds) {
  EXPECT_EQ(run_in_child([] {
              EventLoop loop;
              Journal journal(loop);
              class Ender final : public EventHandler {
               public:
                Ender(EventLoop& loop, Journal& journal) : loop_(loop), journal_(journal) {}
                void on_event(std::uint64_t tag) override {
                  journal_.on_event(tag);
                  if (tag == 100) {
                    loop_.at(loop_.now(), {0, 0}, journal_, 3);
                    loop_.at_end_of_date(*this, 101);
                  }
                }

               private:
                EventLoop& loop_;
                Journal& journal_;
              } ender(loop, journal);
              loop.at(1, {0, 0}, [&] {
                loop.at_end_of_date(ender, 100);
                loop.at(1, {0, 0}, journal, 2);
              });
              loop.at(1, {1, 0}, journal, 1);
              loop.at(4, {0, 0}, journal, 4);
              loop.run();
              return journal.text;
            }),
            "1@1 2@1 100@1 3@1 101@1 4@4 ");
}

TEST(EventLoop, RunsAgainAfterNewEventsWereAdded) {
  EXPECT_EQ(run_in_child([] {
              EventLoop loop;
              Journal journal(loop);
              loop.run();
              loop.at(0.5, {}, journal, 1);
              loop.run();
              loop.at(0.5, {}, journal, 2);
              loop.at(0.75, {}, journal, 3);
              loop.run();
              return fmt::format("{}{} events", journal.text, loop.events());
            }),
            "1@0.5 2@0.5 3@0.75 3 events");
}

TEST(EventLoop, ACancelledEventIsNeverReached) {
  EXPECT_EQ(run_in_child([] {
              EventLoop loop;
              Journal journal(loop);
              const EventId first = loop.at(1, {}, journal, 1);
              loop.at(2, {1, 0}, journal, 2);
              const EventId third = loop.at(2, {0, 0}, journal, 3);
              const EventId last = loop.at(9, {}, journal, 4);
              loop.at(3, {}, [&] { loop.cancel(last); });
              loop.cancel(first);
              loop.cancel(third);
              loop.run();
              return fmt::format("{}now {}", journal.text, loop.now());
            }),
            "2@2 now 3");
}

TEST(EventLoop, KeepsDatesExactly) {
  // SimGrid's clock is a sum of steps and differs from the dates in the last bits.
  const auto dates = numbers_of_child([] {
    EventLoop loop;
    std::mt19937_64 random(3);
    std::vector<double> wrong;
    std::size_t seen = 0;
    double date = 0;
    for (int i = 0; i < 2000; ++i) {
      date = i % 7 == 3 ? std::nextafter(date, 1e9) : date + std::ldexp(static_cast<double>(random() >> 11), -70);
      loop.at(date, {}, [&, date] {
        ++seen;
        if (loop.now() != date) wrong.push_back(date);
      });
    }
    loop.run();
    wrong.push_back(static_cast<double>(seen));
    return wrong;
  });
  EXPECT_EQ(dates, std::vector<double>{2000});
}

TEST(EventLoop, AgreesWithASortedListUnderRandomInsertionAndCancellation) {
  const std::string problem = run_in_child([]() -> std::string {
    struct Entry {
      double date;
      EventOrder order;
      std::uint64_t tag;
    };
    EventLoop loop;
    std::mt19937_64 random(11);
    class Tags final : public EventHandler {
     public:
      void on_event(std::uint64_t tag) override { seen.push_back(tag); }
      std::vector<std::uint64_t> seen;
    } tags;
    std::vector<Entry> expected;
    std::vector<std::pair<EventId, std::uint64_t>> standing;
    for (std::uint64_t tag = 0; tag < 20000; ++tag) {
      const double date = static_cast<double>(random() % 500) / 8;
      const EventOrder order{static_cast<Rank>(random() % 5), static_cast<std::uint32_t>(random() % 3)};
      standing.emplace_back(loop.at(date, order, tags, tag), tag);
      expected.push_back({date, order, tag});
      if (random() % 2 == 0) {
        const std::size_t victim = random() % standing.size();
        loop.cancel(standing[victim].first);
        std::erase_if(expected, [&](const Entry& entry) { return entry.tag == standing[victim].second; });
        standing.erase(standing.begin() + static_cast<std::ptrdiff_t>(victim));
      }
    }
    std::stable_sort(expected.begin(), expected.end(), [](const Entry& a, const Entry& b) {
      return std::tuple(a.date, a.order.rank, a.order.stream) < std::tuple(b.date, b.order.rank, b.order.stream);
    });
    loop.run();
    if (tags.seen.size() != expected.size()) return fmt::format("{} of {}", tags.seen.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      if (tags.seen[i] != expected[i].tag) return fmt::format("position {}", i);
    }
    return "none";
  });
  EXPECT_EQ(problem, "none");
}

TEST(EventLoop, RefusesThePastAndWhatIsNoDate) {
  for (const double date : {0.5, -1.0, std::numeric_limits<double>::infinity(), std::nan("")}) {
    EXPECT_THROW(static_cast<void>(run_in_child([&] {
                   EventLoop loop;
                   loop.at(1, {}, [&] { loop.at(date, {}, [] {}); });
                   loop.run();
                   return std::string("accepted");
                 })),
                 Error)
        << date;
  }
}

TEST(EventLoop, AnExceptionOfAHandlerEndsTheRun) {
  EXPECT_EQ(run_in_child([] {
              EventLoop loop;
              Journal journal(loop);
              loop.at(1, {}, [] { simulated_failure("deadlock", "rank 3 waits for ever"); });
              loop.at(2, {}, journal, 1);
              std::string message;
              try {
                loop.run();
              } catch (const Error& error) {
                message = error.what();
              }
              return fmt::format("{}: {} {}", loop.now(), message, journal.text);
            }),
            "1: rank 3 waits for ever ");
}

TEST(EventLoop, AdoptsTheEngineAndTheTimersOfSomebodyElse) {
  EXPECT_EQ(run_in_child([] {
              simgrid::s4u::Engine engine("other");
              std::string text;
              simgrid::kernel::timer::Timer::set(2, [&] { text += "other@2 "; });
              Cluster cluster(platform("star8.xml"));
              EventLoop loop;
              simgrid_module().keep_clock(loop);
              Journal journal(loop);
              loop.at(1, {}, journal, 1);
              loop.at(3, {}, [&] { journal.text += text; });
              loop.run();
              std::string result = fmt::format("{}clock {}", journal.text, simgrid::s4u::Engine::get_clock());
              return result;
            }),
            "1@1 other@2 clock 3");
}

}  // namespace
}  // namespace hcclsim::sim
