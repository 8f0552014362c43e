#include "net/ssh/host_key_scan.h"

#include <libssh/libssh.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/local/connect_pair.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/endian/conversion.hpp>
#include <memory>
#include <set>
#include <utility>

#include "async/deadline.h"
#include "async/task.h"
#include "async/task_group.h"
#include "base/text.h"
#include "net/tcp_probe.h"

namespace nodepool::net {

namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

// RFC 4253, 4.2: lines may precede the identification.
constexpr int kMostLines = 50;
// RFC 4253, 6.1: what everybody has to accept; no server sends more here.
constexpr std::size_t kMostBytesOfPacket = 35000;
constexpr std::size_t kLengthSize = 4;
constexpr char kKexInit = 20;
constexpr std::size_t kCookieSize = 16;

// Takes the first `size` bytes of the text; nullopt: it is shorter.
std::optional<std::string_view> Take(std::string_view& text, std::size_t size) {
  if (text.size() < size) return std::nullopt;
  std::string_view taken = text.substr(0, size);
  text.remove_prefix(size);
  return taken;
}

std::size_t LengthIn(std::string_view bytes) {
  return boost::endian::load_big_u32(reinterpret_cast<const unsigned char*>(bytes.data()));
}

// RFC 4251, 5: a length, then names with commas between them.
std::optional<std::string_view> TakeNameList(std::string_view& text) {
  std::optional<std::string_view> length = Take(text, kLengthSize);
  if (!length) return std::nullopt;
  return Take(text, LengthIn(*length));
}

// What a packet carries: after its length come the length of the padding, the payload and the padding.
std::optional<std::string_view> PayloadOf(std::string_view packet) {
  std::optional<std::string_view> padding = Take(packet, 1);
  if (!padding) return std::nullopt;
  std::size_t padding_size = static_cast<unsigned char>(padding->front());
  if (packet.size() < padding_size) return std::nullopt;
  return packet.substr(0, packet.size() - padding_size);
}

std::optional<std::vector<std::string>> HostKeyAlgorithmsIn(std::string_view packet) {
  std::optional<std::string_view> payload = PayloadOf(packet);
  if (!payload || !payload->starts_with(kKexInit)) return std::nullopt;
  std::string_view rest = payload->substr(1);
  if (!Take(rest, kCookieSize) || !TakeNameList(rest)) return std::nullopt;
  std::optional<std::string_view> names = TakeNameList(rest);
  if (!names) return std::nullopt;
  return Split(*names, ',');
}

}  // namespace

Expected<std::string> ServerHello::Add(std::string_view bytes) {
  if (part_ == Part::kRest) return std::string(bytes);
  pending_ += bytes;
  std::string passed(bytes);
  if (part_ == Part::kLines) {
    Expected<std::string> read = ReadLines();
    if (!read || part_ == Part::kLines) return read;
    passed = std::move(*read);
  }
  ReadPacket();
  return passed;
}

// Returns what is there from the identification on.
Expected<std::string> ServerHello::ReadLines() {
  for (auto end = pending_.find('\n'); end != std::string::npos; end = pending_.find('\n')) {
    if (end >= kMostBytesOfLine) break;
    bool is_identification = pending_.starts_with("SSH-2.0-") || pending_.starts_with("SSH-1.99-");
    if (is_identification) {
      std::string passed = pending_;
      pending_.erase(0, end + 1);
      part_ = Part::kPacket;
      return passed;
    }
    if (pending_.starts_with("SSH-") || ++lines_ == kMostLines) break;
    pending_.erase(0, end + 1);
  }
  bool is_line_open = pending_.find('\n') == std::string::npos;
  if (is_line_open && pending_.size() < kMostBytesOfLine) return std::string();
  return Unexpected(Verdict::kRetry, "the answer is not that of an SSH server");
}

void ServerHello::ReadPacket() {
  if (pending_.size() < kLengthSize) return;
  std::size_t length = LengthIn(pending_);
  if (length <= kMostBytesOfPacket) {
    if (pending_.size() < kLengthSize + length) return;
    host_key_algorithms_ = HostKeyAlgorithmsIn(std::string_view(pending_).substr(kLengthSize, length));
  }
  part_ = Part::kRest;
  pending_ = {};
}

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

namespace {

struct Algorithm {
  std::string_view name;
  std::string_view key_type;
};

// In the order of the result. The RSA algorithms differ in the signature only; the key is the same
// (D-28).
constexpr std::array<Algorithm, 7> kAlgorithms = {{{"ssh-ed25519", "ssh-ed25519"},
                                                   {"ecdsa-sha2-nistp256", "ecdsa-sha2-nistp256"},
                                                   {"ecdsa-sha2-nistp384", "ecdsa-sha2-nistp384"},
                                                   {"ecdsa-sha2-nistp521", "ecdsa-sha2-nistp521"},
                                                   {"rsa-sha2-512", "ssh-rsa"},
                                                   {"rsa-sha2-256", "ssh-rsa"},
                                                   {"ssh-rsa", "ssh-rsa"}}};

// Keys in the order of kAlgorithms, then others.
std::vector<std::string> InOrder(std::map<std::string, std::string> line_of_type) {
  std::vector<std::string> lines;
  for (const Algorithm& algorithm : kAlgorithms) {
    auto line = line_of_type.extract(std::string(algorithm.key_type));
    if (!line.empty()) lines.push_back(std::move(line.mapped()));
  }
  for (auto& [type, line] : line_of_type) lines.push_back(std::move(line));
  return lines;
}

bool Offers(const KeyAnswer& answer, std::string_view algorithm) {
  return !answer.offered || std::ranges::find(*answer.offered, algorithm) != answer.offered->end();
}

// Known types of keys that the server has beside the one that it has shown.
std::set<std::string> FurtherTypes(const KeyAnswer& first) {
  std::set<std::string> types;
  for (const Algorithm& algorithm : kAlgorithms) {
    if (Offers(first, algorithm.name)) types.emplace(algorithm.key_type);
  }
  if (first.key) types.erase(first.key->type);
  return types;
}

}  // namespace

int HostKeyScanner::MostConnections() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return 100;
  return static_cast<int>(std::clamp<rlim_t>(files.rlim_cur / 8, 100, 1000));
}

HostKeyScanner::HostKeyScanner(Loop& loop, BlockingPool& pool, Options options)
    : loop_(loop),
      pool_(pool),
      options_(options),
      gate_(options.max_active),
      further_connections_(options.max_active) {}

Task<std::vector<std::string>> HostKeyScanner::Scan(std::string host, int port, bool wants_keys,
                                                    SteadyTime deadline) {
  std::string what = "connecting to " + host + " on port " + std::to_string(port);
  std::vector<std::string> keys =
      co_await WithDeadline(loop_, deadline, what, ScanNow(std::move(host), port, wants_keys, deadline));
  co_return keys;
}

Task<std::vector<std::string>> HostKeyScanner::ScanNow(std::string host, int port, bool wants_keys,
                                                       SteadyTime deadline) {
  SteadyTime begun = loop_.SteadyNow();
  std::string last_fault;
  while (true) {
    Outcome<std::vector<std::string>> keys = co_await Attempt(ScanOnce(host, port, wants_keys, deadline));
    if (keys) co_return std::move(*keys);
    std::string fault = keys.error().message();
    if (fault != last_fault) logger_.Debug("No answer yet from {} on port {}: {}", host, port, fault);
    last_fault = std::move(fault);
    Duration taken = loop_.SteadyNow() - begun;
    co_await loop_.SleepFor(std::clamp(taken / 4, options_.least_pause, options_.most_pause));
  }
}

Task<std::vector<std::string>> HostKeyScanner::ScanOnce(std::string host, int port, bool wants_keys,
                                                        SteadyTime deadline) {
  // For one try only: machines that still boot do not hold up one that answers.
  Gate::Pass pass = co_await gate_.Enter();
  SteadyTime try_deadline = std::min(deadline, loop_.SteadyNow() + options_.try_limit);
  asio::ip::address address =
      co_await WithDeadline(loop_, try_deadline, "finding the address", Resolve(std::move(host)));
  tcp::endpoint machine(address, static_cast<std::uint16_t>(port));
  if (wants_keys) co_return co_await ReadKeys(machine, try_deadline);
  co_await WithDeadline(loop_, try_deadline, "the connection", Connect(machine));
  co_return std::vector<std::string>();
}

// Any successful exchange shows that the server works; a failure starts over.
Task<std::vector<std::string>> HostKeyScanner::ReadKeys(tcp::endpoint machine, SteadyTime deadline) {
  KeyAnswer first = co_await Ask(machine, "", deadline);
  LineOfType lines;
  if (first.key) lines[first.key->type] = first.key->Line();
  co_await ReadFurtherKeys(machine, std::move(first), lines);
  co_return InOrder(std::move(lines));
}

Task<> HostKeyScanner::ReadFurtherKeys(tcp::endpoint machine, KeyAnswer first, LineOfType& lines) {
  TaskGroup exchanges(loop_, logger_);
  for (const std::string& type : FurtherTypes(first)) {
    exchanges.Spawn("host key " + type, ReadKeyOfType(machine, type, first, lines));
  }
  auto stop = [&exchanges] { return exchanges.Stop(); };
  co_await WithCleanup(exchanges.Join(), stop);
}

Task<> HostKeyScanner::ReadKeyOfType(tcp::endpoint machine, std::string type, KeyAnswer first,
                                     LineOfType& lines) {
  for (const Algorithm& algorithm : kAlgorithms) {
    if (algorithm.key_type != type || !Offers(first, algorithm.name)) continue;
    Gate::Pass pass = co_await further_connections_.Enter();
    SteadyTime deadline = loop_.SteadyNow() + options_.try_limit;
    Outcome<KeyAnswer> answer = co_await Attempt(Ask(machine, std::string(algorithm.name), deadline));
    if (answer && answer->key) {
      lines[answer->key->type] = answer->key->Line();
      co_return;
    }
    if (answer) continue;
    logger_.Info("No {} key from {} on port {}: {}", algorithm.name, machine.address().to_string(),
                 machine.port(), answer.error().message());
    // It would hang with the next one, too.
    if (FailedWith(answer, Verdict::kTimedOut)) co_return;
  }
}

Task<KeyAnswer> HostKeyScanner::Ask(tcp::endpoint machine, std::string algorithm, SteadyTime deadline) {
  KeyAnswer answer = co_await WithDeadline(loop_, deadline, "the key exchange",
                                           AskForKey(pool_, machine, std::move(algorithm)));
  co_return answer;
}

}  // namespace nodepool::net
