#pragma once

#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "async/attempt.h"
#include "async/await_note.h"
#include "async/task.h"
#include "zk/wire/jute.h"
#include "zk/wire/protocol.h"

namespace nodepool::zk {

// The answer to one operation that is under way. The session holds it until the
// server answers, the caller until the result is taken.
//
// A success resumes the caller at once, in the order of the wire, so that results
// and watch events keep their order; a failure resumes it later on the loop, since
// failures also arise inside calls of the client.
class Reply {
 public:
  Reply(boost::asio::io_context& context, protocol::OpCode op, std::string path)
      : context_(context), op_(op), path_(std::move(path)) {}
  virtual ~Reply() = default;
  Reply(const Reply&) = delete;
  Reply& operator=(const Reply&) = delete;

  // `code` is kOk or an ordinary answer (see Result). Throws Error(kFail) when the
  // body is malformed; the reply is then still open. Does nothing when abandoned.
  virtual void Deliver(Code code, JuteReader& body) = 0;
  void Fail(Failure failure);

  protocol::OpCode op() const { return op_; }
  const std::string& path() const { return path_; }
  // Whether nobody waits for the result any more.
  bool is_abandoned() const { return is_abandoned_; }
  void Abandon() { is_abandoned_ = true; }

  bool is_done() const { return is_done_; }
  // Ends when the reply is done, by a result or an error; throws operation_aborted
  // when the caller is told to stop. At most one caller waits.
  Task<> WaitUntilDone();

 protected:
  void DoneNow();
  void RethrowFailure() const {
    if (failure_) failure_->Rethrow();
  }

 private:
  using Resume = std::move_only_function<void(boost::system::error_code)>;

  template <class Handler>
  void SetWaiter(Handler handler);
  Resume TakeResume();
  void ResumeLater(Resume resume, boost::system::error_code result);

  boost::asio::io_context& context_;
  protocol::OpCode op_;
  std::string path_;
  std::optional<Failure> failure_;
  Resume resume_;
  boost::asio::cancellation_slot slot_;
  bool is_done_ = false;
  bool is_abandoned_ = false;
};

template <class T>
class ReplyOf : public Reply {
 public:
  using Reply::Reply;

  // The result, or throws the error; requires is_done(). To be called once.
  T TakeResult() {
    RethrowFailure();
    return std::move(*value_);
  }

 protected:
  void Succeed(T value) {
    value_.emplace(std::move(value));
    DoneNow();
  }

 private:
  std::optional<T> value_;
};

// A reply whose value `decode(code, body)` reads.
template <class T, class Decode>
class DecodedReply final : public ReplyOf<T> {
 public:
  DecodedReply(boost::asio::io_context& context, protocol::OpCode op, std::string path, Decode decode)
      : ReplyOf<T>(context, op, std::move(path)), decode_(std::move(decode)) {}

  void Deliver(Code code, JuteReader& body) override {
    if (!this->is_abandoned()) this->Succeed(decode_(code, body));
  }

 private:
  Decode decode_;
};

// The caller's side: when it goes away, the reply is abandoned.
template <class T>
class ReplyHolder {
 public:
  explicit ReplyHolder(std::shared_ptr<ReplyOf<T>> reply) : reply_(std::move(reply)) {}
  ReplyHolder(ReplyHolder&& other) noexcept : reply_(std::move(other.reply_)) {}
  ReplyHolder& operator=(ReplyHolder&&) = delete;
  ~ReplyHolder() {
    if (reply_) reply_->Abandon();
  }
  ReplyOf<T>* operator->() const { return reply_.get(); }

 private:
  std::shared_ptr<ReplyOf<T>> reply_;
};

template <class T>
Task<T> TakeReply(ReplyHolder<T> holder) {
  if (!holder->is_done()) {
    auto executor = co_await boost::asio::this_coro::executor;
    AwaitNote note(executor, protocol::NameOf(holder->op()), holder->path());
    co_await holder->WaitUntilDone();
  }
  co_return holder->TakeResult();
}

}  // namespace nodepool::zk
