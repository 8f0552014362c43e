#include "zk/wire/wire_reply.h"

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>

namespace nodepool::zk {

namespace asio = boost::asio;
using boost::system::error_code;

void Reply::Fail(Failure failure) {
  if (is_done_) return;
  is_done_ = true;
  failure_ = std::move(failure);
  if (Resume resume = TakeResume()) ResumeLater(std::move(resume), {});
}

void Reply::DoneNow() {
  is_done_ = true;
  if (Resume resume = TakeResume()) resume({});
}

template <class Handler>
void Reply::SetWaiter(Handler handler) {
  slot_ = asio::get_associated_cancellation_slot(handler);
  resume_ = [handler = std::move(handler)](error_code result) mutable { handler(result); };
  if (!slot_.is_connected()) return;
  slot_.assign([this](asio::cancellation_type) {
    if (Resume resume = std::exchange(resume_, nullptr)) {
      ResumeLater(std::move(resume), asio::error::operation_aborted);
    }
  });
}

Task<> Reply::WaitUntilDone() {
  auto initiate = [this](auto handler) { SetWaiter(std::move(handler)); };
  return asio::async_initiate<const asio::use_awaitable_t<>, void(error_code)>(std::move(initiate),
                                                                               asio::use_awaitable);
}

// Also forgets the cancellation handler, whose slot the caller reuses.
Reply::Resume Reply::TakeResume() {
  if (resume_ && slot_.is_connected()) slot_.clear();
  return std::exchange(resume_, nullptr);
}

void Reply::ResumeLater(Resume resume, error_code result) {
  asio::post(context_, [resume = std::move(resume), result]() mutable { resume(result); });
}

}  // namespace nodepool::zk
