#include "histogram_builder.hpp"

#include <algorithm>
#include <cstring>

namespace dyno {
namespace {

constexpr i64 kChunksPerWorker = 4;
constexpr i64 kLeastChunk = 1024;            // rows
constexpr i64 kCellsPerRow = 2;              // clearing and adding so many costs as much as fetching a row once more
constexpr i64 kMostChunk = kPackedRows - 1;  // so that packed cells hold it
constexpr i64 kCellsPerPiece = 4096;
constexpr i64 kLeastSharedRow = 64;  // bytes

i64 divide_up(i64 a, i64 b) { return (a + b - 1) / b; }

void clear(const Strip& strip, i64 begin, i64 end) {
    std::memset(strip.of(begin), 0, static_cast<std::size_t>((end - begin) * strip.words) * sizeof(i64));
}

}  // namespace

void HistogramBuilder::build(const std::vector<BuildOrder>& orders, const RowGradients& gradients) {
    double n_rows = 0.0;
    for (const BuildOrder& order : orders) n_rows += static_cast<double>(order.rows.n);
    cut_in_chunks(orders, gradients.h == nullptr);
    const double nanoseconds = kNanosecondsToAdd * n_rows * plane_.n_features;
    const std::vector<Piece> pieces = pieces_for(nanoseconds < Team::kWorthMeeting ? 1 : team_.size());
    const auto build_one = [&](i64 task, int worker) {
        const auto& [chunk, range] = pieces[task];
        build(chunk->rows, range, chunk->to, gradients, worker);
    };
    team_.run(static_cast<i64>(pieces.size()), build_one, nanoseconds);
    add_up();
}

void HistogramBuilder::build(const RowSpan& rows, FeatureRange range, const Strip& to, const RowGradients& gradients,
                             int worker) {
    clear(to, layout_.offset[range.begin], layout_.offset[range.end]);
    add_rows(plane_, layout_, gradients, rows, range, to, staging_[worker]);
}

// Chunks lie in order of size, and so do the pieces, but for those of one chunk.
std::vector<HistogramBuilder::Piece> HistogramBuilder::pieces_for(i64 n_workers) const {
    i64 n_rows = 0;
    for (const BuildOrder& chunk : chunks_) n_rows += chunk.rows.n;
    std::vector<Piece> pieces;
    std::vector<FeatureRange> ranges;
    i64 n_cut = 0;  // what `ranges` was cut for
    for (const BuildOrder& chunk : chunks_) {
        const i64 wanted = ranges_wanted(chunk, n_rows, n_workers);
        if (wanted != n_cut) ranges = feature_ranges(plane_, n_cut = wanted);
        for (const FeatureRange range : ranges) pieces.push_back({&chunk, range});
    }
    return pieces;
}

// Enough that no chunk keeps a worker for long after the others are done: half a worker's share a piece. A row's bins are
// fetched once a range: if they are few, that would cost more than it saves, unless workers had nothing to do at all.
i64 HistogramBuilder::ranges_wanted(const BuildOrder& chunk, i64 n_rows, i64 n_workers) const {
    const i64 n_chunks = static_cast<i64>(chunks_.size());
    const i64 row_bytes = plane_.n_features * (plane_.wide ? 2 : 1);
    if (n_chunks == 1 || n_chunks >= kChunksPerWorker * n_workers || row_bytes < kLeastSharedRow)
        return divide_up(n_workers, n_chunks);
    return n_workers == 1 ? 1 : std::max<i64>(1, (2 * n_workers * chunk.rows.n + n_rows / 2) / std::max<i64>(1, n_rows));
}

void HistogramBuilder::cut_in_chunks(const std::vector<BuildOrder>& orders, bool packed) {
    chunks_.clear();
    sums_.clear();
    i64 n_rows = 0;
    for (const BuildOrder& order : orders) n_rows += order.rows.n;
    // A chunk has a histogram to clear and to add: with fewer rows it costs less to share out the features.
    const i64 least = std::clamp(layout_.n_cells() / kCellsPerRow, kLeastChunk, kMostChunk);
    const i64 size = std::clamp(divide_up(n_rows, kChunksPerWorker * team_.size()), least, kMostChunk);
    for (const BuildOrder& order : orders) {
        const RowSpan& rows = order.rows;
        const i64 n_chunks = std::max({rows.n / size, divide_up(rows.n, kMostChunk), i64{1}});
        if (n_chunks == 1) {
            chunks_.push_back(order);
            continue;
        }
        sums_.push_back({order.to, partials_.size(), partials_.size() + static_cast<std::size_t>(n_chunks)});
        for (i64 c = 0; c < n_chunks; ++c) {
            const i64 begin = rows.n * c / n_chunks, end = rows.n * (c + 1) / n_chunks;
            const RowSpan part{rows.list ? rows.list + begin : nullptr, rows.first + begin, end - begin};
            partials_.push_back(slots_.acquire(packed ? 1 : order.to.words, true));
            chunks_.push_back({part, slots_.strip(partials_.back())});
        }
    }
    std::stable_sort(chunks_.begin(), chunks_.end(),
                     [](const BuildOrder& a, const BuildOrder& b) { return a.rows.n > b.rows.n; });
}

void HistogramBuilder::add_up() {
    const i64 n_pieces = divide_up(layout_.n_cells(), kCellsPerPiece);
    team_.run(static_cast<i64>(sums_.size()) * n_pieces, [&](i64 task, int) {
        const Sum& sum = sums_[task / n_pieces];
        const i64 begin = task % n_pieces * kCellsPerPiece, end = std::min(begin + kCellsPerPiece, layout_.n_cells());
        clear(sum.to, begin, end);
        for (std::size_t p = sum.first_partial; p < sum.end_partial; ++p)
            add_cells(sum.to, slots_.strip(partials_[p]), begin, end);
    });
    for (const i32 slot : partials_) slots_.release(slot);
    partials_.clear();
}

}  // namespace dyno
