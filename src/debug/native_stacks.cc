#include "debug/native_stacks.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <semaphore>
#include <thread>

#include "debug/threads.h"

namespace nodepool::debug {
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

}  // namespace nodepool::debug
