#include "zk/wire/jute.h"

#include <fmt/format.h>

#include <boost/endian/conversion.hpp>

#include "base/error.h"

namespace nodepool::zk {

void JuteWriter::Int(std::int32_t value) {
  unsigned char bytes[4];
  boost::endian::store_big_s32(bytes, value);
  out_.append(reinterpret_cast<const char*>(bytes), sizeof bytes);
}

void JuteWriter::Long(std::int64_t value) {
  unsigned char bytes[8];
  boost::endian::store_big_s64(bytes, value);
  out_.append(reinterpret_cast<const char*>(bytes), sizeof bytes);
}

void JuteWriter::Bytes(std::string_view value) {
  Int(static_cast<std::int32_t>(value.size()));
  out_.append(value);
}

void JuteWriter::String(std::string_view head, std::string_view tail) {
  Int(static_cast<std::int32_t>(head.size() + tail.size()));
  out_.append(head);
  out_.append(tail);
}

void JuteWriter::PatchInt(std::size_t position, std::int32_t value) {
  boost::endian::store_big_s32(reinterpret_cast<unsigned char*>(&out_[position]), value);
}

std::string_view JuteReader::Take(std::size_t count, const char* what) {
  if (count > rest_.size()) {
    throw Error(Verdict::kFail, fmt::format("malformed record: {} of {} bytes expected, {} bytes left", what,
                                            count, rest_.size()));
  }
  std::string_view taken = rest_.substr(0, count);
  rest_.remove_prefix(count);
  return taken;
}

bool JuteReader::Bool() { return Take(1, "a boolean")[0] != 0; }

std::int32_t JuteReader::Int() {
  return boost::endian::load_big_s32(reinterpret_cast<const unsigned char*>(Take(4, "an int").data()));
}

std::int64_t JuteReader::Long() {
  return boost::endian::load_big_s64(reinterpret_cast<const unsigned char*>(Take(8, "a long").data()));
}

std::string_view JuteReader::Bytes() {
  std::int32_t size = Int();
  if (size == -1) return {};
  if (size < 0) throw Error(Verdict::kFail, fmt::format("malformed record: a buffer of {} bytes", size));
  return Take(static_cast<std::size_t>(size), "a buffer");
}

std::size_t JuteReader::VectorSize(std::size_t smallest_element) {
  std::int32_t count = Int();
  if (count == -1) return 0;
  if (count < 0 || static_cast<std::size_t>(count) > rest_.size() / smallest_element) {
    throw Error(Verdict::kFail,
                fmt::format("malformed record: a list of {} elements in {} bytes", count, rest_.size()));
  }
  return static_cast<std::size_t>(count);
}

}  // namespace nodepool::zk
