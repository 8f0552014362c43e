#include "net/ssh/server_hello.h"

#include <boost/endian/conversion.hpp>

#include "base/text.h"

namespace nodepool::net {

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

}  // namespace nodepool::net
