#include "web/lists/row_stream.h"

#include <algorithm>
#include <utility>

#include "store/cache/cached_records.h"
#include "web/lists/recent_answers.h"

namespace nodepool::web {

NodeRows::Row NodeRows::RowOf(const store::StoredNode& node, std::span<Row>& old_rows) {
  while (!old_rows.empty() && old_rows.front().id < node.id) old_rows = old_rows.subspan(1);
  bool is_current = !old_rows.empty() && old_rows.front().id == node.id;
  if (is_current && old_rows.front().mzxid == node.revision.mzxid &&
      old_rows.front().is_locked == node.is_locked()) {
    return std::move(old_rows.front());
  }
  scratch_.Clear();
  make_(scratch_, node);
  return {node.id, node.revision.mzxid, node.is_locked(), scratch_};
}

Task<bool> NodeRows::Update(const store::NodeCache& nodes, Limits limits, Pace& pace) {
  std::vector<Row> former = std::exchange(rows_, {});
  std::span<Row> old_rows = former;
  std::vector<Row> rows;
  rows.reserve(std::min(limits.rows, nodes.all().size()));
  std::size_t bytes = 0;
  auto next = nodes.all().begin();
  while (next != nodes.all().end() && rows.size() < limits.rows && bytes <= limits.bytes) {
    rows.push_back(RowOf(next->second, old_rows));
    std::size_t size = rows.back().text.size();
    bytes += size;
    ++next;
    if (pace.is_due(size)) {
      co_await pace.Pause();
      next = nodes.all().upper_bound(rows.back().id);
    }
  }
  rows_ = std::move(rows);
  co_return next == nodes.all().end();
}

Task<> NodeRows::ForEach(See see, Pace& pace) const {
  for (const Row& row : rows_) {
    see(row.text);
    if (pace.is_due(row.text.size())) co_await pace.Pause();
  }
}

namespace {

// Bytes that are sent at a time, and that are made in a turn; the row that exceeds them is the last one.
constexpr std::size_t kPieceBytes = 64 * 1024;
constexpr std::size_t kTurnBytes = 64 * 1024;

// Calls `see` for each node, by id, and pauses in between.
Task<> ForEachNode(const store::NodeCache& nodes, std::function<void(const store::StoredNode&)> see,
                   Pace& pace) {
  for (auto next = nodes.all().begin(); next != nodes.all().end();) {
    see(next->second);
    NodeId seen = next->first;
    ++next;
    if (!pace.is_due()) continue;
    co_await pace.Pause();
    next = nodes.all().upper_bound(seen);
  }
}

struct TableText {
  NodeRows::Make make;
  listing::TableCells cells;
  listing::TableLines lines;
  listing::AgedText row;

  std::span<const listing::ShownCell> CellsOf(const store::StoredNode& node, WallTime now) {
    row.Clear();
    make(row, node);
    return cells.Of(row, now);
  }
};

}  // namespace

RowForm JsonForm(NodeRows::Make make) {
  RowForm form;
  form.begin = [](std::string& out) { out += '['; };
  form.add = [make = std::move(make), row = listing::AgedText(), separator = std::string_view()](
                 std::string& out, const store::StoredNode& node, WallTime now) mutable {
    row.Clear();
    make(row, node);
    out += std::exchange(separator, CommaOf(JsonStyle::kPython));
    row.AppendTo(out, now);
  };
  form.end = [](std::string& out) { out += ']'; };
  return form;
}

Task<RowForm> TableForm(listing::TableCells cells, NodeRows::Make make, const store::NodeCache& nodes,
                        WallTime now, Pace& pace) {
  listing::TableLines lines(cells.titles(), listing::Frame::kBars);
  auto table = std::make_shared<TableText>(std::move(make), std::move(cells), std::move(lines));
  auto measure = [&](const store::StoredNode& node) { table->lines.Measure(table->CellsOf(node, now)); };
  co_await ForEachNode(nodes, measure, pace);
  RowForm form;
  form.begin = [table](std::string& out) { table->lines.AppendHead(out); };
  form.add = [table](std::string& out, const store::StoredNode& node, WallTime at) {
    table->lines.AppendRow(out, table->CellsOf(node, at));
  };
  form.end = [table](std::string& out) { table->lines.AppendEnd(out); };
  co_return form;
}

class RowStreams::Stream : public net::BodyStream {
 public:
  Stream(std::shared_ptr<RowStreams> streams, const store::Caches& records, RowForm form, bool is_compressed)
      : streams_(std::move(streams)), records_(records), form_(std::move(form)) {
    ++streams_->count_;
    if (is_compressed) gzip_.emplace();
    form_.begin(text_);
  }
  ~Stream() override { --streams_->count_; }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  Task<std::shared_ptr<const std::string>> Next() override {
    auto piece = std::make_shared<std::string>();
    while (!is_over_ && piece->size() < kPieceBytes) {
      co_await AppendStep(*piece);
      co_await streams_->loop_.GiveWay();
    }
    if (piece->empty()) co_return nullptr;
    co_return piece;
  }

 private:
  Task<> AppendStep(std::string& piece) {
    Gate::Pass turn = co_await streams_->EnterTurn();
    records_.RequireSynced();
    MakeText();
    Take(piece);
  }

  // Rows, as many as a step makes, or the end.
  void MakeText() {
    WallTime now = streams_->loop_.Now();
    const auto& nodes = records_.nodes.all();
    auto next = nodes.upper_bound(last_);
    for (; next != nodes.end() && text_.size() < kTurnBytes; ++next) {
      form_.add(text_, next->second, now);
      last_ = next->first;
    }
    if (next != nodes.end()) return;
    form_.end(text_);
    is_over_ = true;
  }

  void Take(std::string& piece) {
    if (gzip_) {
      gzip_->Write(piece, text_);
      if (is_over_) gzip_->Finish(piece);
    } else {
      piece += text_;
    }
    text_.clear();
  }

  std::shared_ptr<RowStreams> streams_;
  const store::Caches& records_;
  RowForm form_;
  std::optional<GzipWriter> gzip_;
  std::string text_;  // not yet in a piece
  NodeId last_;       // whose row was made
  bool is_over_ = false;
};

std::shared_ptr<net::BodyStream> RowStreams::Begin(std::shared_ptr<RowStreams> streams,
                                                   const store::Caches& records, RowForm form,
                                                   bool is_compressed) {
  return std::make_shared<Stream>(std::move(streams), records, std::move(form), is_compressed);
}

}  // namespace nodepool::web
