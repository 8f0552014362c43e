#pragma once

#include <string>
#include <vector>

// What the threads of this process are doing, as seen from inside. Linux only.
namespace nodepool::debug {

struct ThreadStack {
  int id = 0;  // the kernel's thread id
  std::string name;
  bool is_background = true;         // not the process's first thread
  std::vector<std::string> frames;   // outermost first
  std::vector<std::string> modules;  // the file that each frame's code comes from
};

// The stacks of all threads; each is interrupted for a moment (SIGRTMIN+5). A thread
// that does not answer within 100 ms has no frames.
std::vector<ThreadStack> NativeStacks();
// The same of one thread.
ThreadStack StackOf(int thread);

// The function at a code address, readable, or the module and the offset in it.
std::string SymbolOf(const void* address);

// The text as in operations.md 2.4.
std::string ToText(const std::vector<ThreadStack>& stacks);

}  // namespace nodepool::debug
