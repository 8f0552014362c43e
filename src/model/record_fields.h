#pragma once

#include <fmt/format.h>

#include <array>
#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/error.h"
#include "base/text.h"
#include "model/field_codecs.h"
#include "model/foreign.h"
#include "model/json_scanner.h"

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
namespace nodepool {

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
