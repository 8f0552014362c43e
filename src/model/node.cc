#include "model/node.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "base/text.h"
#include "model/record_fields.h"

namespace nodepool {

namespace {

constexpr double kMillion = 1e6;
// Up to this value a double represents every millionth.
constexpr double kLargestExact = 4e9;

std::int64_t Millionths(double amount) { return std::llround(amount * kMillion); }
double FromMillionths(std::int64_t millionths) { return static_cast<double>(millionths) / kMillion; }

double AmountOf(const Resources& amount, const std::string& resource) {
  auto it = amount.find(resource);
  return it == amount.end() ? 0 : it->second;
}

}  // namespace

double ExactSum(double amount, double more) {
  double sum = amount + more;
  if (std::isnan(sum)) return std::numeric_limits<double>::infinity();
  bool is_exact = std::abs(amount) < kLargestExact && std::abs(more) < kLargestExact;
  return is_exact ? FromMillionths(Millionths(amount) + Millionths(more)) : sum;
}

void Add(Resources& amount, const Resources& more, int times) {
  for (const auto& [resource, value] : more) {
    double& sum = amount[resource];
    sum = ExactSum(sum, value * times);
  }
}

void Subtract(Resources& amount, const Resources& less) { Add(amount, less, -1); }

Resources Shortage(const Resources& limit, const Resources& used, const Resources& need) {
  Resources shortage;
  for (const auto& [resource, allowed] : limit) {
    double needed = AmountOf(need, resource);
    if (needed <= 0) continue;  // perhaps over a lowered limit already, but this uses no more
    double missing = ExactSum(ExactSum(AmountOf(used, resource), needed), -allowed);
    if (missing > 0) shortage[resource] = missing;
  }
  return shortage;
}

void ResourceSum::Add(const Resources& amount) {
  for (const auto& [name, value] : amount) Change(name, static_cast<std::uint64_t>(Millionths(value)));
}

void ResourceSum::Subtract(const Resources& amount) {
  for (const auto& [name, value] : amount) {
    Change(name, std::uint64_t{0} - static_cast<std::uint64_t>(Millionths(value)));
  }
}

void ResourceSum::Change(const std::string& name, std::uint64_t millionths) {
  std::uint64_t& sum = millionths_[name];
  sum += millionths;
  if (sum == 0) {
    millionths_.erase(name);
    total_.erase(name);
  } else {
    total_[name] = FromMillionths(static_cast<std::int64_t>(sum));
  }
}

namespace {

template <class State, std::size_t n>
using Words = std::array<std::pair<State, std::string_view>, n>;

constexpr Words<NodeState, 11> kNodeWords = {{{NodeState::kInit, "init"},
                                              {NodeState::kBuilding, "building"},
                                              {NodeState::kTesting, "testing"},
                                              {NodeState::kReady, "ready"},
                                              {NodeState::kInUse, "in-use"},
                                              {NodeState::kUsed, "used"},
                                              {NodeState::kHold, "hold"},
                                              {NodeState::kDeleting, "deleting"},
                                              {NodeState::kDeleted, "deleted"},
                                              {NodeState::kFailed, "failed"},
                                              {NodeState::kAborted, "aborted"}}};

constexpr Words<RequestState, 4> kRequestWords = {{{RequestState::kRequested, "requested"},
                                                   {RequestState::kPending, "pending"},
                                                   {RequestState::kFulfilled, "fulfilled"},
                                                   {RequestState::kFailed, "failed"}}};

// Builds and uploads share the enumeration; each kind uses four of the five.
constexpr Words<ImageState, 5> kImageWords = {{{ImageState::kBuilding, "building"},
                                               {ImageState::kUploading, "uploading"},
                                               {ImageState::kReady, "ready"},
                                               {ImageState::kDeleting, "deleting"},
                                               {ImageState::kFailed, "failed"}}};

template <class State, std::size_t n>
std::string_view Word(const Words<State, n>& words, State state) {
  for (const auto& [candidate, word] : words) {
    if (candidate == state) return word;
  }
  return "";
}

template <class State, std::size_t n>
std::optional<State> StateOf(const Words<State, n>& words, std::string_view text) {
  for (const auto& [state, word] : words) {
    if (word == text) return state;
  }
  return std::nullopt;
}

template <class State, std::size_t n>
std::vector<std::string_view> WordsOf(const Words<State, n>& words) {
  std::vector<std::string_view> all;
  for (const auto& [state, word] : words) all.push_back(word);
  return all;
}

}  // namespace

std::string_view ToString(NodeState state) { return Word(kNodeWords, state); }
std::string_view ToString(RequestState state) { return Word(kRequestWords, state); }
std::string_view ToString(ImageState state) { return Word(kImageWords, state); }

std::optional<NodeState> ParseNodeState(std::string_view text) { return StateOf(kNodeWords, text); }
std::optional<RequestState> ParseRequestState(std::string_view text) { return StateOf(kRequestWords, text); }
std::optional<ImageState> ParseImageState(std::string_view text) { return StateOf(kImageWords, text); }

std::vector<std::string_view> NodeStateWords() { return WordsOf(kNodeWords); }
std::vector<std::string_view> RequestStateWords() { return WordsOf(kRequestWords); }
std::vector<std::string_view> ImageStateWords() { return WordsOf(kImageWords); }

namespace {

// A bare text is a list of one, "" the empty list; a list is always written (coordination.md 4.4).
struct LabelsCodec : Codec<std::vector<LabelName>> {
  static Reading Read(std::string_view written, std::vector<LabelName>& labels) {
    if (written[0] != '"') return Codec<std::vector<LabelName>>::Read(written, labels);
    LabelName label;
    codec::ReadStrictText(written, label.value);
    labels.clear();
    if (!label.empty()) labels.push_back(std::move(label));
    return Reading::kOurs;
  }
};

// The whole of `text`, without blanks around it, as an integer; 0 when it is not one.
std::int64_t IntegerOrZero(std::string_view text) {
  text = Trim(text);
  if (text.starts_with('+')) text.remove_prefix(1);
  std::int64_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? number : 0;
}

// Any value but null is converted to an integer, and written as one.
struct HoldExpirationCodec : Codec<std::optional<std::int64_t>> {
  static Reading Read(std::string_view written, std::optional<std::int64_t>& seconds) {
    bool is_wrong = Codec<std::optional<std::int64_t>>::Read(written, seconds) == Reading::kWrong;
    if (is_wrong) seconds = written[0] == '"' ? IntegerOrZero(DecodeJsonText(written)) : written == "true";
    return Reading::kOurs;
  }
};

// Anything but an amount is no price.
struct PriceCodec {
  static constexpr std::string_view kExpected = "a number or null";
  static Reading Read(std::string_view written, std::optional<double>& price) {
    price = codec::FiniteNumber(written);
    if (price && (*price < 0 || *price > 1e9)) price.reset();
    return Reading::kOther;
  }
  static void Write(std::string& out, const std::optional<double>& price) { codec::WriteNumber(out, *price); }
  static bool IsUnset(const std::optional<double>& price) { return !price; }
};

}  // namespace

template <class Fields, RecordOf<Node> T>
void EachField(Fields& fields, T& node) {
  fields("state", node.state, StateCodec<&ParseNodeState>());
  fields("state_time", node.state_time);
  fields("cloud", node.cloud);
  fields("provider", node.provider);
  fields("pool", node.pool);
  fields("type", node.type, LabelsCodec());
  fields("allocated_to", node.allocated_to);
  fields("az", node.az);
  fields("region", node.region);
  fields("public_ipv4", node.public_ipv4);
  fields("private_ipv4", node.private_ipv4);
  fields("public_ipv6", node.public_ipv6);
  fields("host_id", node.host_id);
  fields("interface_ip", node.interface_ip);
  fields("connection_port", node.connection_port);
  fields.Older("ssh_port", node.connection_port);
  fields("image_id", node.image_id);
  fields("launcher", node.launcher);
  fields("created_time", node.created_time);
  fields("external_id", node.external_id);
  fields("hostname", node.hostname);
  fields("comment", node.comment);
  fields("user_data", node.user_data);
  fields("hold_job", node.hold_job);
  fields("host_keys", node.host_keys);
  fields("username", node.username);
  fields("connection_type", node.connection_type);
  fields("shell_type", node.shell_type);
  fields("hold_expiration", node.hold_expiration, HoldExpirationCodec());
  fields("resources", node.resources);
  fields("slot", node.slot);
  fields("attributes", node.attributes);
  fields("python_path", node.python_path);
  fields("tenant_name", node.tenant_name);
  fields("driver_data", node.driver_data);
  fields("requestor", node.requestor);
  fields("hourly_price", node.hourly_price, PriceCodec());
}

bool Node::has_label(const LabelName& label) const { return std::ranges::find(type, label) != type.end(); }

Expected<Node> ParseNode(std::string_view json, WallTime now) {
  Node node;
  node.state_time = now;
  return ReadRecord(json, std::move(node));
}

std::string ToJson(const Node& node) { return WriteRecord(node); }

}  // namespace nodepool
