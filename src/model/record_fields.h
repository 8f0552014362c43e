#pragma once

#include <fmt/format.h>

#include <array>
#include <boost/json/value.hpp>
#include <charconv>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/ids.h"
#include "base/text.h"
#include "model/json_scanner.h"
#include "model/node.h"
#include "model/raw_json.h"

namespace nodepool {

// How fields are encoded in a record. A codec has
//   kExpected                 what the error says was expected
//   Read(written, value)      makes the value of valid JSON
//   Write(out, value)         appends the JSON of the value
//   IsUnset(value)            optional: whether the key is left out

enum class Reading {
  kWrong,  // not what was expected; the value is unchanged
  kOurs,   // Write would give the same text, or one that every reader reads as the same
  kOther,  // perhaps not
};

namespace codec {

// NaN and Infinity are numbers, too.
bool IsNumber(std::string_view written);
// nullopt for those and for text that is not a number.
std::optional<double> FiniteNumber(std::string_view written);
// Without the fraction; bounded to what fits.
std::int64_t Truncated(double number);

// A text; a number or a boolean is taken as it is written.
Reading ReadText(std::string_view written, std::optional<std::string>& text);
// A text and nothing else.
Reading ReadStrictText(std::string_view written, std::string& text);
Reading ReadTime(std::string_view written, std::optional<WallTime>& time);
// A list of texts; null is the empty one. `add(text)` takes each.
template <class F>
Reading ReadTexts(std::string_view written, F&& add) {
  if (written == "null") return Reading::kOurs;
  JsonScanner in(written);
  Reading reading = Reading::kOurs;
  bool is_good = in.Elements([&] {
    std::string_view element;
    if (in.Next() != '"' || !in.Text(element)) return false;
    std::string text;
    if (ReadStrictText(element, text) == Reading::kOther) reading = Reading::kOther;
    add(std::move(text));
    return true;
  });
  return is_good ? reading : Reading::kWrong;
}
void WriteNumber(std::string& out, double number);

}  // namespace codec

template <class T>
struct Codec;

template <>
struct Codec<std::optional<std::string>> {
  static constexpr std::string_view kExpected = "a text or null";
  static Reading Read(std::string_view written, std::optional<std::string>& text) {
    return codec::ReadText(written, text);
  }
  static void Write(std::string& out, const std::optional<std::string>& text);
};

// Null reads as the empty text, but the empty text is not written as null.
template <>
struct Codec<std::string> {
  static constexpr std::string_view kExpected = "a text or null";
  static Reading Read(std::string_view written, std::string& text);
  static void Write(std::string& out, const std::string& text);
};

// Null when it is empty.
template <class Tag>
struct Codec<StrongId<Tag>> {
  static constexpr std::string_view kExpected = "a text or null";
  static Reading Read(std::string_view written, StrongId<Tag>& id) {
    id = {};
    return written == "null" ? Reading::kOurs : codec::ReadStrictText(written, id.value);
  }
  static void Write(std::string& out, const StrongId<Tag>& id) {
    id.empty() ? void(out += "null") : AppendJsonText(out, id.value, JsonStyle::kPython);
  }
};

template <class T>
struct Codec<std::vector<T>> {
  static constexpr std::string_view kExpected = "a list of texts";
  static Reading Read(std::string_view written, std::vector<T>& texts) {
    texts.clear();
    return codec::ReadTexts(written, [&](std::string text) { texts.emplace_back(std::move(text)); });
  }
  static void Write(std::string& out, const std::vector<T>& texts) {
    std::string_view separator = "[";
    for (const T& text : texts) {
      out += std::exchange(separator, ", ");
      AppendJsonText(out, TextOf(text), JsonStyle::kPython);
    }
    out += texts.empty() ? "[]" : "]";
  }

 private:
  static const std::string& TextOf(const std::string& text) { return text; }
  template <class Tag>
  static const std::string& TextOf(const StrongId<Tag>& id) {
    return id.value;
  }
};

template <>
struct Codec<std::optional<WallTime>> {
  static constexpr std::string_view kExpected = "a time in seconds or null";
  static Reading Read(std::string_view written, std::optional<WallTime>& time) {
    return codec::ReadTime(written, time);
  }
  static void Write(std::string& out, const std::optional<WallTime>& time);
};

// Null leaves the time unchanged.
template <>
struct Codec<WallTime> {
  static constexpr std::string_view kExpected = "a time in seconds or null";
  static Reading Read(std::string_view written, WallTime& time);
  static void Write(std::string& out, WallTime time);
};

template <>
struct Codec<std::optional<std::int64_t>> {
  static constexpr std::string_view kExpected = "a number or null";
  static Reading Read(std::string_view written, std::optional<std::int64_t>& number);
  static void Write(std::string& out, const std::optional<std::int64_t>& number);
};

// Null leaves the number unchanged.
template <>
struct Codec<std::int64_t> {
  static constexpr std::string_view kExpected = "a number or null";
  static Reading Read(std::string_view written, std::int64_t& number);
  static void Write(std::string& out, std::int64_t number);
};

// Null is false; a number is true unless it is 0.
template <>
struct Codec<bool> {
  static constexpr std::string_view kExpected = "true or false";
  static Reading Read(std::string_view written, bool& claim);
  static void Write(std::string& out, bool claim);
};

// Members that are null or not finite are left out. Whole amounts are written as integers, as every
// reader expects of counts.
template <>
struct Codec<std::optional<Resources>> {
  static constexpr std::string_view kExpected = "an object of amounts between 0 and 1e9";
  static Reading Read(std::string_view written, std::optional<Resources>& resources);
  static void Write(std::string& out, const std::optional<Resources>& resources);
};

template <class T>
struct Codec<Shared<T>> {
  static constexpr std::string_view kExpected = Codec<std::optional<T>>::kExpected;
  static Reading Read(std::string_view written, Shared<T>& shared) {
    std::optional<T> value;
    Reading reading = Codec<std::optional<T>>::Read(written, value);
    if (reading != Reading::kWrong) shared = std::move(value);
    return reading;
  }
  static void Write(std::string& out, const Shared<T>& shared) {
    Codec<std::optional<T>>::Write(out, shared.optional());
  }
};

template <>
struct Codec<boost::json::value> {
  static constexpr std::string_view kExpected = "JSON";
  static Reading Read(std::string_view written, boost::json::value& value);
  static void Write(std::string& out, const boost::json::value& value);
};

template <>
struct Codec<RawJson> {
  static constexpr std::string_view kExpected = "JSON";
  static Reading Read(std::string_view written, RawJson& json);
  static void Write(std::string& out, const RawJson& json) { out += json.text(); }
};

// A state must be one that `parse` knows; the key is left out when there is none.
template <auto parse>
struct StateCodec {
  static constexpr std::string_view kExpected = "a state of this kind of record";
  template <class Word>
  static Reading Read(std::string_view written, std::optional<Word>& state) {
    std::string text;
    if (codec::ReadStrictText(written, text) == Reading::kWrong) return Reading::kWrong;
    std::optional<Word> word = parse(text);
    if (!word) return Reading::kWrong;
    state = word;
    return Reading::kOurs;
  }
  template <class Word>
  static void Write(std::string& out, const std::optional<Word>& state) {
    AppendJsonText(out, ToString(*state), JsonStyle::kPython);
  }
  template <class Word>
  static bool IsUnset(const std::optional<Word>& state) {
    return !state;
  }
};

// As the value's own codec, but the key is left out when there is no value.
struct OmittedWhenUnset {
  static constexpr std::string_view kExpected = "a text or null";
  template <class T>
  static Reading Read(std::string_view written, std::optional<T>& value) {
    if (written == "null") {
      value.reset();
      return Reading::kOurs;
    }
    T text;
    Reading reading = Codec<T>::Read(written, text);
    if (reading != Reading::kWrong) value = std::move(text);
    return reading;
  }
  template <class T>
  static void Write(std::string& out, const std::optional<T>& value) {
    Codec<T>::Write(out, *value);
  }
  template <class T>
  static bool IsUnset(const std::optional<T>& value) {
    return !value;
  }
};

// Records are read and written by one list of their fields:
//
//   template <class Fields, RecordOf<Node> T>
//   void EachField(Fields& fields, T& node) {
//     fields("cloud", node.cloud);
//     fields("type", node.type, LabelsCodec());
//   }
//
// `fields.Older(key, field)` is an older name of the field before it: it is read where that is
// missing, and written as well. `fields` is a RecordKeys, a RecordReader or a RecordWriter. A
// missing key leaves the field unchanged. The record's `foreign` receives everything else in the
// text.

template <class T, class Record>
concept RecordOf = std::same_as<std::remove_const_t<T>, Record>;

// The keys of a kind of record.
class RecordKeys {
 public:
  static constexpr std::size_t kMaxKeys = 40;

  template <class... Rest>
  void operator()(std::string_view key, const Rest&...) {
    keys_.at(size_++) = key;
  }
  template <class T>
  void Older(std::string_view key, const T& field) {
    (*this)(key, field);
  }
  // Where the key is, searched at `guess` first; nullopt for an unknown key.
  std::optional<std::size_t> Find(std::string_view key, std::size_t guess) const;

 private:
  std::array<std::string_view, kMaxKeys> keys_;
  std::size_t size_ = 0;
};

class RecordReader {
 public:
  // Splits the text, which must outlive the reader. Unknown keys are stored in `foreign`; of a
  // repeated key the last value counts. Text that is not a JSON object is a fault.
  RecordReader(std::string_view text, const RecordKeys& keys, Foreign& foreign);

  // Only the first fault is reported; the rest is read as if it were valid.
  template <class T, class C = Codec<std::remove_cv_t<T>>>
  void operator()(std::string_view key, T& field, C = C()) {
    std::string_view written = values_[next_++];
    if (written.empty()) return;
    Reading reading = C::Read(written, field);
    if (reading == Reading::kWrong) {
      Fail(key, written, C::kExpected);
    } else if (reading == Reading::kOther) {
      std::string ours;
      C::Write(ours, field);
      if (ours != written)
        foreign_.forms.push_back({std::string(key), std::string(written), std::move(ours)});
    }
  }

  template <class T>
  void Older(std::string_view key, T& field) {
    if (!values_[next_ - 1].empty()) values_[next_] = {};
    (*this)(key, field);
  }

  const std::optional<Error>& error() const { return error_; }

 private:
  void Split(std::string_view text, const RecordKeys& keys);
  void Fail(std::string_view key, std::string_view written, std::string_view expected);

  Foreign& foreign_;
  std::array<std::string_view, RecordKeys::kMaxKeys> values_;  // by the place of the key; empty: missing
  std::size_t next_ = 0;                                       // the field that is read next
  std::optional<Error> error_;
};

class RecordWriter {
 public:
  explicit RecordWriter(const Foreign& foreign) : foreign_(foreign) {}

  template <class T, class C = Codec<std::remove_cv_t<T>>>
  void operator()(std::string_view key, const T& field, C = C()) {
    if constexpr (requires { C::IsUnset(field); }) {
      if (C::IsUnset(field)) return;
    }
    BeginMember(key);
    std::size_t begin = out_.size();
    C::Write(out_, field);
    if (!foreign_.forms.empty()) KeepForm(key, begin);
  }

  template <class T>
  void Older(std::string_view key, const T& field) {
    (*this)(key, field);
  }

  // The record; ends the writing.
  std::string TakeText();

 private:
  void BeginMember(std::string_view key);
  // Replaces our text, which begins at `begin`, with theirs.
  void KeepForm(std::string_view key, std::size_t begin);

  const Foreign& foreign_;
  std::string out_ = "{";
};

// Reads into a record that has its values for missing keys already.
template <class Record>
Expected<Record> ReadRecord(std::string_view text, Record record) {
  RecordKeys keys;
  EachField(keys, record);
  RecordReader reader(text, keys, record.foreign);
  EachField(reader, record);
  if (reader.error()) return std::unexpected(*reader.error());
  return record;
}

template <class Record>
std::string WriteRecord(const Record& record) {
  RecordWriter writer(record.foreign);
  EachField(writer, record);
  return writer.TakeText();
}

}  // namespace nodepool
