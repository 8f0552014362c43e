#include "model/record_fields.h"

#include <algorithm>

#include "model/json_text.h"

namespace nodepool {

std::optional<std::size_t> RecordKeys::Find(std::string_view key, std::size_t guess) const {
  if (guess < size_ && keys_[guess] == key) return guess;
  auto end = keys_.begin() + static_cast<std::ptrdiff_t>(size_);
  auto found = std::find(keys_.begin(), end, key);
  if (found == end) return std::nullopt;
  return static_cast<std::size_t>(found - keys_.begin());
}

RecordReader::RecordReader(std::string_view text, const RecordKeys& keys, Foreign& foreign)
    : foreign_(foreign) {
  if (text.size() <= kMaxRecordBytes) {
    Split(text, keys);
  } else {
    error_ = Error(Verdict::kInvalid, fmt::format("the record has {} bytes; at most {} are accepted",
                                                  text.size(), kMaxRecordBytes));
  }
}

void RecordReader::Split(std::string_view text, const RecordKeys& keys) {
  JsonScanner in(text);
  std::size_t guess = 0;
  auto take = [&](std::string_view written_key) {
    std::string_view value;
    if (!in.Value(value)) return false;
    std::string_view key = written_key.substr(1, written_key.size() - 2);
    std::string decoded;
    if (key.find('\\') != key.npos) key = decoded = DecodeJsonText(written_key);
    if (std::optional<std::size_t> place = keys.Find(key, guess)) {
      values_[*place] = value;
      guess = *place + 1;
    } else {
      foreign_.AddWritten(written_key, value);
    }
    return true;
  };
  bool is_object = in.Next() == '{';
  bool is_good = (is_object ? in.Members(take) : in.Value()) && in.End();
  if (!is_good) {
    error_ = in.error();
  } else if (!is_object) {
    error_ = Error(Verdict::kInvalid, "not a JSON object");
  }
}

void RecordReader::Fail(std::string_view key, std::string_view written, std::string_view expected) {
  if (error_) return;
  // States are not secret; other fields may hold secrets.
  std::string what = key == "state" ? fmt::format("{}, which is ", Excerpt(written, 40)) : "";
  error_ = Error(Verdict::kInvalid, fmt::format("\"{}\" is {}not {}", key, what, expected));
}

std::string RecordWriter::TakeText() {
  if (!foreign_.unknown.empty()) {
    if (out_.size() > 1) out_ += ", ";
    out_ += foreign_.unknown;
  }
  out_ += '}';
  return std::move(out_);
}

void RecordWriter::BeginMember(std::string_view key) {
  if (out_.size() > 1) out_ += ", ";
  out_ += '"';
  out_ += key;
  out_ += "\": ";
}

void RecordWriter::KeepForm(std::string_view key, std::size_t begin) {
  std::string_view written = std::string_view(out_).substr(begin);
  auto is_unchanged = [&](const Foreign::Form& form) { return form.key == key && form.ours == written; };
  auto form = std::ranges::find_if(foreign_.forms, is_unchanged);
  if (form != foreign_.forms.end()) out_.replace(begin, out_.npos, form->theirs);
}

}  // namespace nodepool
