#include "net/ssh/key_exchange.h"

#include <libssh/libssh.h>
#include <unistd.h>

#include <array>
#include <boost/asio/local/connect_pair.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <memory>
#include <utility>

#include "base/text.h"
#include "net/ssh/server_hello.h"

namespace nodepool::net {

namespace {

struct FreeKey {
  void operator()(ssh_key key) const { ssh_key_free(key); }
};
using Key = std::unique_ptr<ssh_key_struct, FreeKey>;

struct FreeText {
  void operator()(char* text) const { ssh_string_free_char(text); }
};

// Nothing on this machine (the user's configuration, known hosts) may influence the exchange with
// the server.
void SetOptions(ssh_session session) {
  int verbosity = SSH_LOG_NOLOG;
  bool process_config = false;
  ssh_options_set(session, SSH_OPTIONS_LOG_VERBOSITY, &verbosity);
  ssh_options_set(session, SSH_OPTIONS_PROCESS_CONFIG, &process_config);
  ssh_options_set(session, SSH_OPTIONS_USER, "nodepool");
  ssh_options_set(session, SSH_OPTIONS_KNOWNHOSTS, "/dev/null");
  ssh_options_set(session, SSH_OPTIONS_GLOBAL_KNOWNHOSTS, "/dev/null");
  ssh_set_blocking(session, 0);
}

}  // namespace

void KeyExchange::FreeSession::operator()(ssh_session_struct* session) const {
  // Closes the socket. ssh_disconnect() would leave it open.
  ssh_free(session);
}

KeyExchange::KeyExchange(int descriptor, std::string algorithm)
    : descriptor_(descriptor), algorithm_(std::move(algorithm)) {}

KeyExchange::~KeyExchange() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Expected<std::optional<HostKey>> KeyExchange::Step() {
  if (!session_) {
    session_.reset(ssh_new());
    if (!session_) return Unexpected(Verdict::kRetry, "no memory for an SSH session");
    SetOptions(session_.get());
    if (!algorithm_.empty() &&
        ssh_options_set(session_.get(), SSH_OPTIONS_HOSTKEYS, algorithm_.c_str()) != SSH_OK) {
      return Unexpected(Verdict::kNotFound, "the SSH library does not know the algorithm " + algorithm_);
    }
    int descriptor = std::exchange(descriptor_, -1);
    ssh_options_set(session_.get(), SSH_OPTIONS_FD, &descriptor);
  }
  int result = ssh_connect(session_.get());
  if (result == SSH_AGAIN) return std::nullopt;
  if (result == SSH_OK) return ServersKey();
  std::string fault = ssh_get_error(session_.get());
  bool no_such_key = fault.find("no match for method server host key algo") != std::string::npos;
  return Unexpected(no_such_key ? Verdict::kNotFound : Verdict::kRetry, Excerpt(fault, 200));
}

Expected<HostKey> KeyExchange::ServersKey() const {
  ssh_key raw = nullptr;
  if (ssh_get_server_publickey(session_.get(), &raw) != SSH_OK) {
    return Unexpected(Verdict::kRetry, "the server showed no host key");
  }
  Key key(raw);
  char* text = nullptr;
  if (ssh_pki_export_pubkey_base64(key.get(), &text) != SSH_OK) {
    return Unexpected(Verdict::kRetry, "the server's host key cannot be represented");
  }
  std::unique_ptr<char, FreeText> base64(text);
  const char* type = ssh_key_type_to_char(ssh_key_type(key.get()));
  if (type == nullptr) return Unexpected(Verdict::kNotFound, "the server's host key has an unknown type");
  return HostKey{type, base64.get()};
}

namespace asio = boost::asio;
using asio::ip::tcp;
using LocalSocket = asio::local::stream_protocol::socket;

namespace {

// Of a key exchange, which takes about five; more when its few kilobytes arrive in small pieces.
constexpr int kMaxSteps = 10'000;
// One step of the library reads at most 4096 bytes.
using Buffer = std::array<char, 4096 - ServerHello::kMostBytesOfLine>;

// What the library has written, on its way to the server.
Task<> PassOn(LocalSocket& library, tcp::socket& server, Buffer& buffer) {
  while (true) {
    boost::system::error_code nothing;
    std::size_t size = library.read_some(asio::buffer(buffer), nothing);
    if (nothing) co_return;
    co_await asio::async_write(server, asio::buffer(buffer, size), asio::use_awaitable);
  }
}

}  // namespace

// The library works on one end of a pair of sockets; what passes between the other end and the server is read
// on the way.
Task<KeyAnswer> AskForKey(BlockingPool& pool, tcp::endpoint machine, std::string algorithm) {
  auto executor = co_await asio::this_coro::executor;
  tcp::socket server(executor);
  co_await server.async_connect(machine, asio::use_awaitable);
  LocalSocket ours(executor), librarys(executor);
  asio::local::connect_pair(ours, librarys);
  ours.non_blocking(true);
  librarys.native_non_blocking(true);
  auto exchange = std::make_shared<KeyExchange>(librarys.release(), std::move(algorithm));
  auto step = [exchange] { return exchange->Step(); };
  ServerHello hello;
  Buffer buffer;
  for (int steps = 0; steps < kMaxSteps; ++steps) {
    Expected<std::optional<HostKey>> key = co_await OnBlockingPool(pool, step);
    if (!key && key.error().verdict() != Verdict::kNotFound) throw key.error();
    if (!key || *key) {
      KeyAnswer answer{key ? std::move(*key) : std::nullopt, hello.host_key_algorithms()};
      co_return answer;
    }
    co_await PassOn(ours, server, buffer);
    std::size_t size = co_await server.async_read_some(asio::buffer(buffer), asio::use_awaitable);
    Expected<std::string> passed = hello.Add(std::string_view(buffer.data(), size));
    if (!passed) throw passed.error();
    co_await asio::async_write(ours, asio::buffer(*passed), asio::use_awaitable);
  }
  throw Error(Verdict::kRetry, "the server sends too much for a key exchange");
}

}  // namespace nodepool::net
