#include "debug/stack_dump.h"

#include <pthread.h>
#include <signal.h>

#include <boost/asio/post.hpp>
#include <future>
#include <memory>

#include "debug/native_stacks.h"
#include "debug/task_dump.h"

namespace nodepool::debug {
namespace {

constexpr std::chrono::seconds kLoopTimeout{1};

sigset_t OurSignal() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGUSR2);
  return signals;
}

}  // namespace

void StackDump::BlockSignal() {
  sigset_t signals = OurSignal();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

StackDump::StackDump(std::vector<Dumped> loops, std::optional<std::string> profile_folder)
    : loops_(std::move(loops)),
      logger_("nodepool.stack_dump"),
      profile_(std::move(profile_folder)),
      thread_([this] { Run(); }) {
  pthread_setname_np(thread_.native_handle(), "stack dump");
}

StackDump::~StackDump() {
  is_ending_ = true;
  pthread_kill(thread_.native_handle(), SIGUSR2);
  thread_.join();
}

void StackDump::Run() {
  BlockSignal();
  sigset_t signals = OurSignal();
  int signal = 0;
  while (sigwait(&signals, &signal) == 0 && !is_ending_) Dump();
}

void StackDump::Dump() {
  logger_.Debug("Beginning debug handler");
  logger_.Debug("{}", ToText(NativeStacks()));
  for (const Dumped& dumped : loops_) LogTasks(dumped);
  ToggleProfile();
  logger_.Debug("End debug handler");
}

// The tasks belong to the loop's thread, which is asked to describe them.
void StackDump::LogTasks(const Dumped& dumped) {
  auto answer = std::make_shared<std::promise<std::string>>();
  std::future<std::string> text = answer->get_future();
  boost::asio::post(dumped.loop.context(), [&loop = dumped.loop, answer] {
    answer->set_value(DescribeTasks(loop.tasks(), loop.SteadyNow()));
  });
  if (text.wait_for(kLoopTimeout) == std::future_status::ready) {
    logger_.Debug("{} has {}", dumped.name, text.get());
  } else {
    logger_.Debug("{} does not turn; its tasks are not known. The stack of its thread shows what it does.",
                  dumped.name);
  }
}

void StackDump::ToggleProfile() {
  if (profile_.is_running()) return logger_.Debug("Stopping the CPU profiler. {}", ToText(profile_.Stop()));
  logger_.Debug("{}", profile_.Start() ? "Starting the CPU profiler; the next signal stops it"
                                       : "The CPU profiler cannot be started");
}

}  // namespace nodepool::debug
