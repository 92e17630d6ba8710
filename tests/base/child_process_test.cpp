#include "base/child_process.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iostream>

#include "base/error.hpp"

namespace hcclsim {
namespace {

TEST(ChildProcess, ReturnsWhatTheWorkReturned) {
  const std::string large(1 << 20, 'x');
  EXPECT_EQ(run_in_child([&] { return large; }), large);
  EXPECT_EQ(run_in_child([] { return std::string(); }), "");
}

TEST(ChildProcess, ReturnsValuesOfAnyType) {
  using Figures = std::vector<std::pair<std::string, double>>;
  const Figures figures{{"a", 0.1}, {"b", 1 / 3.0}};
  EXPECT_EQ(run_in_child([&] { return figures; }), figures);
  ChildOf<Figures> child([&] { return figures; });
  EXPECT_EQ(child.result(), figures);
  run_in_child([] {});
  EXPECT_THROW(run_in_child([] { bad_input("option", "none"); }), Error);
}

TEST(ChildProcess, CarriesAnErrorAcross) {
  try {
    (void)run_in_child([]() -> std::string { bad_input("platform", "two\nlines"); });
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_input);
    EXPECT_EQ(error.kind(), "platform");
    EXPECT_STREQ(error.what(), "two\nlines");
  }
}

TEST(ChildProcess, TurnsAnAbortIntoAnErrorWithItsLastWords) {
  try {
    (void)run_in_child([]() -> std::string {
      std::fputs("last words\n", stderr);
      std::abort();
    });
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::internal);
    EXPECT_EQ(error.kind(), "crash");
    EXPECT_THAT(error.what(), testing::HasSubstr("last words"));
  }
}

TEST(ChildProcess, HandsOnWhatASuccessfulChildWroteToStderr) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(run_in_child([] {
              std::fputs("a warning\n", stderr);
              return std::string("done");
            }),
            "done");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "a warning\n");
}

/// A process with a child of its own child is killed; all of them hold the end of a pipe that closes when the last
/// ends.
TEST(ChildProcess, EndsWithItsParent) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  const pid_t parent = ::fork();
  if (parent == 0) {
    ::close(pipe[0]);
    (void)run_in_child([&] {
      (void)run_in_child([&] {
        EXPECT_EQ(::write(pipe[1], "x", 1), 1);  // all three live
        while (true) ::pause();
        return std::string();
      });
      return std::string();
    });
    ::_exit(0);
  }
  ::close(pipe[1]);
  char byte = 0;
  EXPECT_EQ(::read(pipe[0], &byte, 1), 1);
  ::kill(parent, SIGKILL);
  ::waitpid(parent, nullptr, 0);
  EXPECT_EQ(::read(pipe[0], &byte, 1), 0);  // without end if one of them went on
  ::close(pipe[0]);
}

TEST(ChildStream, HandsOutTextsInOrderAndEnds) {
  ChildStream stream([](const ChildStream::Send& send) {
    for (const char* const text : {"one", "", "three"}) send(text);
    send(std::string(1 << 20, 'x'));
  });
  for (const char* const text : {"one", "", "three"}) EXPECT_EQ(stream.next(), text);
  EXPECT_EQ(stream.next()->size(), 1U << 20U);
  EXPECT_EQ(stream.next(), std::nullopt);
  EXPECT_EQ(stream.next(), std::nullopt);
}

TEST(ChildStream, CarriesAnErrorBehindTexts) {
  ChildStream stream([](const ChildStream::Send& send) {
    send("before");
    throw Error(ErrorCode::simulated_failure, "timeout", "too late");
  });
  EXPECT_EQ(stream.next(), "before");
  try {
    static_cast<void>(stream.next());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::simulated_failure);
    EXPECT_STREQ(error.what(), "too late");
  }
}

TEST(ChildStream, ACrashIsAnError) {
  ChildStream stream([](const ChildStream::Send&) { std::raise(SIGKILL); });
  EXPECT_THROW(static_cast<void>(stream.next()), Error);
}

TEST(ChildStream, WaitsForItsReaderAndEndsWithIt) {
  // A child that sends for ever is not far ahead, and its end is not waited for.
  std::uint64_t number = 0;
  const auto endless = [&](const ChildStream::Send& send) {
    while (true) send(std::to_string(number++));
  };
  ChildStream stream(endless);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(stream.next(), std::to_string(i));
}

TEST(ChildService, AnswersOneQuestionAfterAnotherInOneProcess) {
  int asked = 0;  // in the child
  ChildService service([&](std::string_view question) { return fmt::format("{} {}", ++asked, question); });
  EXPECT_EQ(service.ask("a"), "1 a");
  EXPECT_EQ(service.ask(""), "2 ");
  const std::string large(1 << 20, 'x');
  EXPECT_EQ(service.ask(large), "3 " + large);
  EXPECT_EQ(asked, 0);
}

TEST(ChildService, WarningsComeWithTheAnswerToWhichTheyBelong) {
  ChildService service([](std::string_view question) {
    std::cerr << "about " << question << "\n";
    return std::string("done");
  });
  for (const char* const question : {"one", "two"}) {
    testing::internal::CaptureStderr();
    EXPECT_EQ(service.ask(question), "done");
    EXPECT_EQ(testing::internal::GetCapturedStderr(), fmt::format("about {}\n", question));
  }
}

TEST(ChildService, ACrashAndAnErrorEndIt) {
  const auto answer = [](std::string_view question) {
    if (question == "error") throw Error(ErrorCode::simulated_failure, "timeout", "too late");
    if (question == "crash") {
      std::cerr << "last words\n";
      std::abort();
    }
    return std::string(question);
  };
  ChildService crashing(answer);
  EXPECT_EQ(crashing.ask("fine"), "fine");
  try {
    static_cast<void>(crashing.ask("crash"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), "crash");
    EXPECT_THAT(error.what(), testing::HasSubstr("last words"));
  }
  EXPECT_THROW(static_cast<void>(crashing.ask("fine")), Error);
  ChildService failing(answer);
  try {
    static_cast<void>(failing.ask("error"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), "timeout");
  }
}

TEST(ChildService, AChildThatDiedMeanwhileIsACrash) {
  ChildService service([](std::string_view question) {
    if (question != "number") std::raise(SIGKILL);
    return std::to_string(::getpid());
  });
  ::kill(std::stoi(service.ask("number")), SIGKILL);
  EXPECT_THROW(static_cast<void>(service.ask("number")), Error);
}

TEST(ChildProcess, SeveralRunAtOnce) {
  Child first([] { return std::string("1"); });
  Child second([] { return std::string("2"); });
  EXPECT_EQ(second.result(), "2");
  EXPECT_EQ(first.result(), "1");
}

}  // namespace
}  // namespace hcclsim
