#include "config/yaml/yaml_reader.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>
#include <unordered_map>

#include "base/text.h"
#include "config/yaml/value.h"

namespace nodepool::config {
namespace {

constexpr std::size_t kMaxDepth = 100;
constexpr std::size_t kMaxFileBytes = 64 << 20;
// How much larger aliases and merges may make a document than its text.
constexpr std::size_t kMaxAliasBytes = 64 << 20;
constexpr std::size_t kBytesPerValue = 32;
constexpr std::size_t kBytesPerMergedEntry = 128;
constexpr std::size_t kMaxRepeatedKeys = 100;  // that are named

Position PositionOf(const YAML::Mark& mark) { return {mark.line + 1, mark.column + 1}; }

// Converts yaml-cpp's events into Values. Where yaml-cpp is more lenient than the dialect in a way
// that could hide a mistake (a key without a colon, a quote that is never closed, an anchor defined
// twice, tabs as indentation), this refuses.
class Builder : public YAML::EventHandler {
 public:
  explicit Builder(std::string_view text) : text_(text) {}

  const Document& document() const { return document_; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (documents_++ > 0)
      throw ErrorAt(PositionOf(mark), "a second document begins here; only one is allowed");
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Position position = PositionOf(mark);
    bool is_value = !stack_.empty() && stack_.back().key;
    // A missing value has the position of its key only when there is no colon.
    if (is_value && stack_.back().key_offset == mark.pos) {
      throw ErrorAt(position, fmt::format("expected ':' after '{}'", Excerpt(*stack_.back().key)));
    }
    offset_ = mark.pos;
    Finish(Value::Null(position), kBytesPerValue, anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    auto found = anchors_.find(anchor);
    if (found == anchors_.end())
      throw ErrorAt(PositionOf(mark), "an alias may not be inside the value that it names");
    CountExpansion(found->second.weight, PositionOf(mark));
    Finish(found->second.value, found->second.weight, 0);
  }

  void OnAnchor(const YAML::Mark& mark, const std::string& name) override {
    if (!anchor_names_.insert(name).second) {
      throw ErrorAt(PositionOf(mark), fmt::format("the anchor '{}' is defined twice", Excerpt(name)));
    }
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    Position position = PositionOf(mark);
    RefuseTabs(mark);
    last_scalar_ = mark;
    offset_ = mark.pos;
    if (tag == "?" && value == "<<" && ExpectsKey()) {
      stack_.back().key = value;
      stack_.back().key_is_merge = true;
      return;
    }
    Expected<Value> resolved = tag == "?"   ? ResolvePlainScalar(value, position)
                               : tag == "!" ? Value::String(value, position)
                                            : ResolveTaggedScalar(tag, value, position);
    if (!resolved) throw ErrorAt(position, resolved.error().message());
    Finish(*resolved, kBytesPerValue + value.size(), anchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Open(Frame{.is_map = false, .position = PositionOf(mark), .anchor = anchor}, mark, tag,
         {"seq", "omap", "pairs"});
  }
  void OnSequenceEnd() override {
    Frame frame = Close();
    Finish(Value::MakeList(std::move(frame.list), frame.position), frame.weight, frame.anchor);
  }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Open(Frame{.is_map = true, .position = PositionOf(mark), .anchor = anchor}, mark, tag, {"map", "set"});
  }
  void OnMapEnd() override {
    Frame frame = Close();
    if (!frame.merges.empty()) Merge(frame);
    Finish(Value::MakeMap(std::move(frame.entries.map), frame.position), frame.weight, frame.anchor);
  }

  // yaml-cpp ends a quoted text at the end of the file; only the last text can be such a one.
  void RefuseOpenQuote() const {
    if (!last_scalar_) return;
    std::size_t at = static_cast<std::size_t>(last_scalar_->pos);
    while (at < text_.size() && (text_[at] == '&' || text_[at] == '!')) {  // skip anchor and tag
      at = text_.find_first_of(" \t\n", at);
      at = text_.find_first_not_of(" \t\n", std::min(at, text_.size()));
    }
    if (at >= text_.size() || (text_[at] != '"' && text_[at] != '\'')) return;
    char quote = text_[at];
    for (++at; at < text_.size(); ++at) {
      if (quote == '"' && text_[at] == '\\') {
        ++at;
      } else if (text_[at] == quote) {
        if (quote == '\'' && at + 1 < text_.size() && text_[at + 1] == '\'') {
          ++at;
        } else {
          return;
        }
      }
    }
    throw ErrorAt(PositionOf(*last_scalar_), "the quote that opens here is never closed");
  }

 private:
  // The entries of a mapping; a repeated key keeps its place and gets the new value.
  struct Entries {
    Value::Map map;
    std::vector<Position> places;  // of the keys
    TextMap<std::size_t> index;

    // Returns the one that it replaces, if any.
    std::optional<RepeatedKey> Set(const std::string& key, Position place, const Value& value) {
      auto [at, is_new] = index.try_emplace(key, map.size());
      if (is_new) {
        map.emplace_back(key, value);
        places.push_back(place);
        return std::nullopt;
      }
      Value& known = map[at->second].second;
      RepeatedKey repeated{key, places[at->second], place, !known.is_null()};
      known = value;
      places[at->second] = place;
      return repeated;
    }
  };
  struct Frame {
    bool is_map = false;
    Position position;
    YAML::anchor_t anchor = 0;
    Value::List list;
    Entries entries;
    std::optional<std::string> key;  // waiting for its value
    Position key_place;
    int key_offset = 0;
    bool key_is_merge = false;
    std::vector<Value> merges;  // mappings under `<<`, the weakest first
    std::size_t weight = kBytesPerValue;
  };
  struct Anchored {
    Value value;
    std::size_t weight = 0;
  };

  bool ExpectsKey() const { return !stack_.empty() && stack_.back().is_map && !stack_.back().key; }

  void RefuseTabs(const YAML::Mark& mark) const {
    std::size_t at = std::min(static_cast<std::size_t>(mark.pos), text_.size());
    bool has_tab = false;
    while (at > 0 && (text_[at - 1] == ' ' || text_[at - 1] == '\t')) has_tab |= text_[--at] == '\t';
    if (has_tab && (at == 0 || text_[at - 1] == '\n')) {
      throw ErrorAt({mark.line + 1, 1}, "a tab is used for indentation; use spaces");
    }
  }

  void CountExpansion(std::size_t weight, Position position) {
    expanded_ += weight;
    if (expanded_ > kMaxAliasBytes) throw ErrorAt(position, "aliases make this document too large");
  }

  void Open(Frame frame, const YAML::Mark& mark, const std::string& tag,
            std::initializer_list<std::string_view> allowed_tags) {
    if (ExpectsKey()) throw ErrorAt(frame.position, "a list or mapping cannot be a key");
    if (stack_.size() >= kMaxDepth) throw ErrorAt(frame.position, "nested too deeply");
    RefuseTabs(mark);
    constexpr std::string_view kStandard = "tag:yaml.org,2002:";
    std::string_view name = tag;
    if (name.starts_with(kStandard)) name.remove_prefix(kStandard.size());
    bool is_allowed = name == "?" || name == "!" || name.empty() ||
                      std::find(allowed_tags.begin(), allowed_tags.end(), name) != allowed_tags.end();
    if (!is_allowed)
      throw ErrorAt(frame.position, fmt::format("the tag '{}' is not supported here", Excerpt(tag)));
    stack_.push_back(std::move(frame));
  }

  Frame Close() {
    Frame frame = std::move(stack_.back());
    stack_.pop_back();
    return frame;
  }

  void Finish(const Value& value, std::size_t weight, YAML::anchor_t anchor) {
    if (anchor != 0) anchors_[anchor] = {value, weight};
    if (stack_.empty()) {
      document_.root = value;
      return;
    }
    Frame& frame = stack_.back();
    frame.weight += weight;
    if (!frame.is_map) {
      frame.list.push_back(value);
    } else if (!frame.key) {
      TakeKey(frame, value);
    } else {
      if (frame.key_is_merge) {
        TakeMerge(frame, value);
      } else {
        NoteRepeated(frame.entries.Set(*frame.key, frame.key_place, value));
      }
      frame.key.reset();
      frame.key_is_merge = false;
    }
  }

  void TakeKey(Frame& frame, const Value& value) {
    // Only an alias can still produce these.
    if (value.kind() == Value::Kind::kList || value.kind() == Value::Kind::kMap) {
      throw ErrorAt(value.position(), "a list or mapping cannot be a key");
    }
    frame.key = value.text();
    frame.key_place = value.position();
    frame.key_offset = offset_;
  }

  void TakeMerge(Frame& frame, const Value& value) {
    if (value.kind() == Value::Kind::kMap) {
      frame.merges.push_back(value);
      return;
    }
    constexpr std::string_view kExpected = "'<<' needs a mapping or a list of mappings";
    if (value.kind() != Value::Kind::kList) throw ErrorAt(value.position(), kExpected);
    for (auto item = value.list().rbegin(); item != value.list().rend(); ++item) {
      if (item->kind() != Value::Kind::kMap) throw ErrorAt(item->position(), kExpected);
      frame.merges.push_back(*item);
    }
  }

  void Merge(Frame& frame) {
    Entries result;
    for (const Value& merged : frame.merges) {
      CountExpansion(merged.map().size() * kBytesPerMergedEntry, frame.position);
      for (const auto& [key, value] : merged.map()) result.Set(key, {}, value);
    }
    for (const auto& [key, value] : frame.entries.map) result.Set(key, {}, value);
    frame.entries = std::move(result);
  }

  void NoteRepeated(std::optional<RepeatedKey> repeated) {
    if (repeated && document_.repeated.size() < kMaxRepeatedKeys)
      document_.repeated.push_back(std::move(*repeated));
  }

  std::string_view text_;
  int documents_ = 0;
  int offset_ = 0;  // of the scalar being taken
  Document document_;
  std::vector<Frame> stack_;
  std::unordered_map<YAML::anchor_t, Anchored> anchors_;
  std::set<std::string> anchor_names_;
  std::optional<YAML::Mark> last_scalar_;
  std::size_t expanded_ = 0;
};

Position PositionIn(std::string_view text, std::size_t offset) {
  std::string_view before = text.substr(0, offset);
  auto line = std::count(before.begin(), before.end(), '\n');
  std::size_t newline = before.rfind('\n');
  std::size_t column = newline == std::string_view::npos ? offset : offset - newline - 1;
  return {static_cast<int>(line) + 1, static_cast<int>(column) + 1};
}

// YAML allows no control characters except tab and line ends, and none of C1 except NEL.
std::optional<std::size_t> FindControlCharacter(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    auto byte = static_cast<unsigned char>(text[i]);
    if ((byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r') || byte == 0x7f) return i;
    if (byte == 0xc2 && i + 1 < text.size()) {
      auto next = static_cast<unsigned char>(text[i + 1]);
      if (next < 0xa0 && next != 0x85) return i;
    }
  }
  return std::nullopt;
}

}  // namespace

Environment ProcessEnvironment() {
  return [](std::string_view name) -> std::optional<std::string> {
    const char* value = std::getenv(std::string(name).c_str());
    if (value == nullptr) return std::nullopt;
    return std::string(value);
  };
}

std::string SubstituteEnvironment(std::string_view text, const Environment& environment) {
  constexpr std::string_view kOpening = "%(NODEPOOL_";
  std::string result;
  while (true) {
    std::size_t start = text.find(kOpening);
    result.append(text.substr(0, start));
    if (start == std::string_view::npos) return result;
    text.remove_prefix(start);
    std::size_t end = text.find_first_of(")\n");
    std::optional<std::string> value;
    if (end != std::string_view::npos && text[end] == ')') value = environment(text.substr(2, end - 2));
    std::size_t length = value ? end + 1 : kOpening.size();
    result.append(value ? std::string_view(*value) : text.substr(0, length));
    text.remove_prefix(length);
  }
}

std::string RepeatedKey::ToString() const {
  return fmt::format("line {}, column {}: {} is given again; what line {} says has no effect", again.line,
                     again.column, Excerpt(key), before.line);
}

Expected<Document> ParseDocument(const std::string& source) {
  std::string_view text = source;
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  if (!IsValidUtf8(text)) return Unexpected(Verdict::kInvalid, "not UTF-8 text");
  if (std::optional<std::size_t> at = FindControlCharacter(text)) {
    return std::unexpected(ErrorAt(PositionIn(text, *at), "a control character is not allowed"));
  }
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    Builder builder(text);
    while (parser.HandleNextDocument(builder)) {
    }
    builder.RefuseOpenQuote();
    return builder.document();
  } catch (const YAML::Exception& error) {
    Position position = error.mark.is_null() ? Position{1, 1} : PositionOf(error.mark);
    return std::unexpected(ErrorAt(position, error.msg));
  } catch (const Error& error) {
    return std::unexpected(error);
  }
}

Expected<Value> ParseYaml(const std::string& text) {
  Expected<Document> document = ParseDocument(text);
  if (!document) return std::unexpected(document.error());
  return std::move(document->root);
}

std::string OnlySections(std::string_view text, const std::vector<std::string_view>& prefixes) {
  std::string kept;
  bool is_kept = false;
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    bool is_key = !line.empty() && std::string_view(" \t\r#-").find(line.front()) == std::string_view::npos;
    if (is_key)
      is_kept = std::ranges::any_of(prefixes, [&](std::string_view key) { return line.starts_with(key); });
    if (is_kept) kept += line;
    kept += '\n';
    begin = end + 1;
  }
  return kept;
}

Expected<std::string> ReadText(const std::string& path, const Environment& environment) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text;
  std::array<char, 1 << 16> block;
  while (file && text.size() <= kMaxFileBytes) {
    file.read(block.data(), block.size());
    text.append(block.data(), static_cast<std::size_t>(file.gcount()));
  }
  if (!file.is_open() || file.bad()) {
    int cause = errno;  // of the open or read that failed
    Verdict verdict = cause == ENOENT ? Verdict::kNotFound : Verdict::kFail;
    return Unexpected(verdict, fmt::format("{}: cannot be read: {}", path, std::strerror(cause)));
  }
  if (text.size() > kMaxFileBytes)
    return Unexpected(Verdict::kInvalid, fmt::format("{}: larger than 64 MiB", path));
  return SubstituteEnvironment(text, environment);
}

Expected<Document> ReadDocument(const std::string& path, const Environment& environment) {
  Expected<std::string> text = ReadText(path, environment);
  if (!text) return std::unexpected(text.error());
  Expected<Document> document = ParseDocument(*text);
  if (!document) return std::unexpected(document.error().In(path));
  return document;
}

Expected<Value> ReadYamlFile(const std::string& path, const Environment& environment) {
  Expected<Document> document = ReadDocument(path, environment);
  if (!document) return std::unexpected(document.error());
  return std::move(document->root);
}

}  // namespace nodepool::config
