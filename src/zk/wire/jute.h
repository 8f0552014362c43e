#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace nodepool::zk {

// Jute, ZooKeeper's record encoding: numbers are big-endian, strings and buffers
// carry a 32-bit length, a length of -1 means "none". Appends to a string that
// outlives the writer.
class JuteWriter {
 public:
  explicit JuteWriter(std::string& out) : out_(out) {}

  void Bool(bool value) { out_.push_back(value ? '\1' : '\0'); }
  void Int(std::int32_t value);
  void Long(std::int64_t value);
  void Bytes(std::string_view value);
  // The same on the wire as Bytes; must be UTF-8.
  void String(std::string_view value) { Bytes(value); }
  // A string made of two parts, as chroot and path are.
  void String(std::string_view head, std::string_view tail);

  // Bytes that are encoded already.
  void Raw(std::string_view bytes) { out_.append(bytes); }

  std::size_t size() const { return out_.size(); }
  // So many bytes will follow, about.
  void Expect(std::size_t bytes) { out_.reserve(out_.size() + bytes); }
  // Overwrites the Int that starts at `position`.
  void PatchInt(std::size_t position, std::int32_t value);

 private:
  std::string& out_;
};

// Reads bytes that a server sent and that are not trusted: every read is bounded by the given
// bytes, and the only failure is Error(kFail), which says what was expected. The views it returns
// live as long as the bytes.
class JuteReader {
 public:
  explicit JuteReader(std::string_view bytes) : rest_(bytes) {}

  bool Bool();
  std::int32_t Int();
  std::int64_t Long();
  // A missing buffer (length -1) reads as empty.
  std::string_view Bytes();
  std::string_view String() { return Bytes(); }
  // The number of elements of a vector, each of which takes at least
  // `smallest_element` bytes: never more than the rest can hold.
  std::size_t VectorSize(std::size_t smallest_element);

  std::size_t remaining() const { return rest_.size(); }

 private:
  std::string_view Take(std::size_t count, const char* what);

  std::string_view rest_;
};

}  // namespace nodepool::zk
