#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>
#include <ostream>
#include <string>

#include "async/loop.h"

namespace nodepool::cli {

// Puts a label before each line that a program writes, for programs that run at the same time.
class LabelledOutput {
 public:
  // `label` is written as it is. `out` outlives it. Error(kFail): the system gives no pipe.
  LabelledOutput(Loop& loop, std::string label, std::ostream& out);
  ~LabelledOutput();
  LabelledOutput(const LabelledOutput&) = delete;
  LabelledOutput& operator=(const LabelledOutput&) = delete;

  // For the program. To be closed here once it has been started.
  int writing_end() const { return writing_end_; }
  void CloseWritingEnd();
  // Ends when nobody can write any more. A line longer than 64 KiB comes in pieces.
  Task<> Follow();

 private:
  void Print(std::string_view line);

  const std::string label_;
  std::ostream& out_;
  boost::asio::posix::stream_descriptor read_;
  int writing_end_ = -1;
};

}  // namespace nodepool::cli
