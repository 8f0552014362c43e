#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/intrusive/list_hook.hpp>
#include <optional>
#include <string_view>

#include "base/clock.h"

namespace nodepool {

// Notes what the task of an executor awaits, while this lives in the awaiting coroutine's frame;
// shown when the tasks are dumped. Costs no allocation:
//
//   auto executor = co_await boost::asio::this_coro::executor;
//   AwaitNote note(executor, "the answer to", path);
//   co_await ...;
class AwaitNote
    : public boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>> {
 public:
  // The texts outlive the note. `until`: when the wait ends at the latest.
  AwaitNote(const boost::asio::any_io_executor& executor, std::string_view what, std::string_view about = {},
            std::optional<SteadyTime> until = {});

  std::string_view what() const { return what_; }
  std::string_view about() const { return about_; }
  std::optional<SteadyTime> until() const { return until_; }

 private:
  std::string_view what_;
  std::string_view about_;
  std::optional<SteadyTime> until_;
};

}  // namespace nodepool
