#include "async/loop_thread.h"

#include <pthread.h>

#include <boost/asio/post.hpp>

namespace nodepool {

LoopThread::LoopThread(const std::string& name)
    : work_(loop_.context().get_executor()), thread_([this] { loop_.Run(); }) {
  pthread_setname_np(thread_.native_handle(), name.c_str());
}

void LoopThread::End() {
  if (!thread_.joinable()) return;
  // Not from here: a thread that has not begun to run the loop would miss it.
  boost::asio::post(loop_.context(), [this] { loop_.Stop(); });
  thread_.join();
}

}  // namespace nodepool
