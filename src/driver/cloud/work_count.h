#pragma once

#include "async/event.h"
#include "async/task.h"

namespace nodepool::driver::cloud {

// How much work is under way, so that an end can wait for it.
class WorkCount {
 public:
  // A piece of work, from its construction to its destruction. The count outlives it.
  class Piece {
   public:
    explicit Piece(WorkCount& count) : count_(count) { ++count_.under_way_; }
    ~Piece() {
      if (--count_.under_way_ == 0) count_.idle_.NotifyAll();
    }
    Piece(const Piece&) = delete;
    Piece& operator=(const Piece&) = delete;

   private:
    WorkCount& count_;
  };

  // Ends when there is none.
  Task<> WaitIdle() {
    while (under_way_ > 0) co_await idle_.Wait();
  }

 private:
  int under_way_ = 0;
  WaitList idle_;
};

}  // namespace nodepool::driver::cloud
