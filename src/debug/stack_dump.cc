#include "debug/stack_dump.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/post.hpp>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <semaphore>
#include <thread>

namespace nodepool::debug {

std::vector<int> Threads() {
  std::vector<int> threads;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task", error)) {
    threads.push_back(std::atoi(entry.path().filename().c_str()));
  }
  std::ranges::sort(threads);
  return threads;
}

std::string NameOf(int thread) {
  std::ifstream file(fmt::format("/proc/self/task/{}/comm", thread));
  std::string name;
  std::getline(file, name);
  return name;
}

std::optional<Duration> CpuTimeOf(int thread) {
  // The id of the thread's clock, as pthread_getcpuclockid computes it.
  constexpr clockid_t kOfOneThread = 4, kScheduled = 2;
  clockid_t clock = (~static_cast<clockid_t>(thread) << 3) | kOfOneThread | kScheduled;
  timespec time{};
  if (clock_gettime(clock, &time) != 0) return std::nullopt;
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

namespace {

constexpr int kMaxFrames = 64;
constexpr int kHandlerFrames = 2;  // the handler and the kernel's trampoline
constexpr std::chrono::milliseconds kAnswerTimeout{100};

int InterruptSignal() { return SIGRTMIN + 5; }

// The addresses of the interrupted thread.
struct Snapshot {
  std::atomic<int> wanted{0};  // the interrupted thread; 0: none
  void* addresses[kMaxFrames];
  int count = 0;
  std::atomic<bool> is_done{false};
};
Snapshot snapshot;

void OnInterrupt(int) {
  int self = static_cast<int>(syscall(SYS_gettid));
  int wanted = self;
  // Only the wanted thread answers, and once: a late answer must not be taken for that of the next
  // thread.
  if (!snapshot.wanted.compare_exchange_strong(wanted, 0)) return;
  int saved = errno;
  snapshot.count = backtrace(snapshot.addresses, kMaxFrames);
  errno = saved;
  snapshot.is_done.store(true, std::memory_order_release);
}

void InstallHandler() {
  void* first_use[1];
  backtrace(first_use, 1);  // loads the unwinder, which a handler must not do
  struct sigaction action {};
  action.sa_handler = OnInterrupt;
  action.sa_flags = SA_RESTART;
  sigaction(InterruptSignal(), &action, nullptr);
}

std::string ModuleOf(const void* address) {
  Dl_info info{};
  return dladdr(address, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "";
}

void FillFrames(ThreadStack& stack) {
  snapshot.is_done.store(false);
  snapshot.wanted.store(stack.id);
  if (syscall(SYS_tgkill, getpid(), stack.id, InterruptSignal()) != 0) return;
  for (auto waited = std::chrono::milliseconds(0); !snapshot.is_done.load(std::memory_order_acquire);) {
    int still_wanted = stack.id;
    if (waited >= kAnswerTimeout && snapshot.wanted.compare_exchange_strong(still_wanted, 0)) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    waited += std::chrono::milliseconds(1);
  }
  for (int i = snapshot.count - 1; i >= kHandlerFrames; --i) {
    stack.frames.push_back(SymbolOf(snapshot.addresses[i]));
    stack.modules.push_back(ModuleOf(snapshot.addresses[i]));
  }
}

// Held while a thread is interrupted: there is only one snapshot.
std::binary_semaphore snapshot_is_free{1};
struct Asking {
  Asking() { snapshot_is_free.acquire(); }
  ~Asking() { snapshot_is_free.release(); }
};

}  // namespace

std::string SymbolOf(const void* address) {
  Dl_info info{};
  if (dladdr(address, &info) == 0 || info.dli_fname == nullptr) return fmt::format("{}", fmt::ptr(address));
  if (info.dli_sname != nullptr) {
    int status = 0;
    std::unique_ptr<char, void (*)(void*)> readable(
        abi::__cxa_demangle(info.dli_sname, nullptr, nullptr, &status), std::free);
    return status == 0 ? readable.get() : info.dli_sname;
  }
  auto offset = static_cast<const char*>(address) - static_cast<const char*>(info.dli_fbase);
  return fmt::format("{}+{:#x}", std::filesystem::path(info.dli_fname).filename().string(), offset);
}

ThreadStack StackOf(int thread) {
  Asking asking;
  InstallHandler();
  ThreadStack stack;
  stack.id = thread;
  stack.name = NameOf(thread);
  stack.is_background = thread != getpid();
  FillFrames(stack);
  return stack;
}

std::vector<ThreadStack> NativeStacks() {
  std::vector<ThreadStack> stacks;
  for (int thread : Threads()) stacks.push_back(StackOf(thread));
  return stacks;
}

std::string ToText(const std::vector<ThreadStack>& stacks) {
  std::string text;
  for (const ThreadStack& stack : stacks) {
    text +=
        fmt::format("Thread: {} {} d: {}\n", stack.id, stack.name, stack.is_background ? "True" : "False");
    for (const std::string& frame : stack.frames) text += "  " + frame + "\n";
    if (stack.frames.empty()) text += "  (did not answer)\n";
  }
  if (!text.empty()) text.pop_back();
  return text;
}

namespace {

// ", awaits deletion (at most 3.5 s)", and for the inner ones "; a timer (at most 1.0 s)".
std::string Describe(const AwaitNote& note, bool is_first, SteadyTime now) {
  std::string text = fmt::format("{}{}", is_first ? ", awaits " : "; ", note.what());
  if (!note.about().empty()) text += fmt::format(" {}", note.about());
  if (note.until() && *note.until() < SteadyTime::max())
    text += fmt::format(" (at most {:.1f} s)", std::chrono::duration<double>(*note.until() - now).count());
  return text;
}

}  // namespace

std::string DescribeTasks(const TaskRegistry& tasks, SteadyTime now) {
  std::string text = fmt::format("{} tasks, oldest first", tasks.tasks().size());
  for (const TaskInfo& task : tasks.tasks()) {
    double age = std::chrono::duration<double>(now - task.started).count();
    text += fmt::format("\nTask: {}{} age: {:.1f} s", log::Annotated({log::Level::kDebug, "", task.ids, ""}),
                        task.name, age);
    for (const AwaitNote& note : task.awaits) text += Describe(note, &note == &task.awaits.front(), now);
  }
  return text;
}

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
