#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "async/deadline.h"
#include "async/loop.h"
#include "base/ids.h"
#include "base/subscription.h"
#include "zk/wire/wire_client.h"

namespace nodepool::zk {

// A loop on real time whose tasks a test awaits in plain code, each with a deadline.
class RealTime {
 public:
  static constexpr Duration kDeadline = std::chrono::seconds(30);

  template <class T>
  T Await(Task<T> task) {
    return RunToEnd(loop, WithDeadline(loop, loop.SteadyNow() + kDeadline, "the test", std::move(task)));
  }

  // Whether `is_reached` returned true in time.
  bool Until(std::function<bool()> is_reached, Duration limit = kDeadline) {
    return RunToEnd(loop, Poll(loop, std::move(is_reached), loop.SteadyNow() + limit));
  }

  // What the task throws; the test fails when it throws nothing.
  template <class T>
  Error ErrorOf(Task<T> task) {
    try {
      Await(std::move(task));
    } catch (const Error& error) {
      return error;
    }
    ADD_FAILURE() << "nothing was thrown";
    return Error(Verdict::kFail, "");
  }

  Loop loop;
  SystemRandom random;

 private:
  static Task<bool> Poll(Loop& loop, std::function<bool()> is_reached, SteadyTime deadline) {
    while (!is_reached()) {
      if (loop.SteadyNow() > deadline) co_return false;
      co_await loop.SleepFor(std::chrono::milliseconds(2));
    }
    co_return true;
  }
};

// A client that remembers the states it went through, and closes itself.
class TestClient {
 public:
  TestClient(RealTime& time, WireOptions options)
      : time_(time), client_(time.loop, time.random, std::move(options)) {
    subscription_ = client_.OnSession([this](SessionState state) { states.push_back(state); });
  }
  ~TestClient() {
    try {
      time_.Await(client_.Close());
    } catch (const Error&) {
    }
  }

  WireClient* operator->() { return &client_; }
  WireClient& operator*() { return client_; }

  bool WaitFor(SessionState state, Duration limit = RealTime::kDeadline) {
    return time_.Until([this, state] { return client_.state() == state; }, limit);
  }

  std::vector<SessionState> states;

 private:
  RealTime& time_;
  WireClient client_;
  Subscription subscription_;
};

// Events as text: "created /a", for comparison.
std::string inline Text(const WatchEvent& event) {
  switch (event.type) {
    case EventType::kNone:
      return "none";
    case EventType::kCreated:
      return "created " + event.path;
    case EventType::kDeleted:
      return "deleted " + event.path;
    case EventType::kDataChanged:
      return "changed " + event.path;
    case EventType::kChildren:
      return "children " + event.path;
  }
  return "?";
}

class EventLog {
 public:
  Watcher watcher() {
    return [events = events_](const WatchEvent& event) { events->push_back(Text(event)); };
  }
  const std::vector<std::string>& events() const { return *events_; }

 private:
  std::shared_ptr<std::vector<std::string>> events_ = std::make_shared<std::vector<std::string>>();
};

}  // namespace nodepool::zk
