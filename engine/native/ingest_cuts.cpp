// Quantile cuts (contract §3): distinct values of every feature, or the weighted quantiles of a sample of rows.
#include <algorithm>
#include <numeric>
#include <span>

#include "aligned_bytes.hpp"
#include "guarded.hpp"
#include "ingest.hpp"
#include "ingest_sort.hpp"

namespace dyno {
namespace {

constexpr i64 SAMPLE_ROWS = 1 << 18;
constexpr u64 SAMPLE_SEED = 0x63757473;

// The rows that quantiles are taken from.
struct Sample {
    i64 count;
    std::vector<i64> rows;     // empty: all of them
    std::vector<u32> weights;  // empty: 1 each

    i64 row(i64 i) const { return rows.empty() ? i : rows[i]; }
};

struct FeatureCuts {
    std::vector<double> values;
    i32 value_bins = 0;
};

Sample draw_sample(i64 n_rows, const float* weight) {
    Sample sample{std::min(n_rows, SAMPLE_ROWS), {}, {}};
    if (n_rows > SAMPLE_ROWS) {
        sample.rows.resize(SAMPLE_ROWS);
        for (i64 k = 0; k < SAMPLE_ROWS; ++k) {
            const i64 low = k * n_rows / SAMPLE_ROWS, high = (k + 1) * n_rows / SAMPLE_ROWS;
            sample.rows[k] = low + static_cast<i64>(counter_hash(SAMPLE_SEED, k, 0) % static_cast<u64>(high - low));
        }
    }
    if (weight != nullptr) {
        const double scale = power_of_two(quantise_exponent(*std::max_element(weight, weight + n_rows)));
        sample.weights.resize(sample.count);
        for (i64 i = 0; i < sample.count; ++i) {
            sample.weights[i] = static_cast<u32>(quantise_hessian(weight[sample.row(i)], scale));
        }
    }
    return sample;
}

double midpoint(double a, double b) {
    const double middle = 0.5 * a + 0.5 * b;
    return a < middle && middle <= b ? middle : b;
}

// One bin a value.
template <class Key>
FeatureCuts cuts_between_all(std::span<const Key> distinct) {
    FeatureCuts cuts;
    for (std::size_t i = 1; i < distinct.size(); ++i) {
        cuts.values.push_back(midpoint(value_of(distinct[i - 1]), value_of(distinct[i])));
    }
    cuts.value_bins = static_cast<i32>(cuts.values.size()) + 1;
    return cuts;
}

// Each bin takes the share nearest to an even split of what is left.
template <class Key>
FeatureCuts quantile_cuts(std::span<const Key> distinct, std::span<const i64> cumulative, i64 max_bin) {
    FeatureCuts cuts;
    cuts.values.reserve(max_bin - 1);
    const i64 total = cumulative.back();
    i64 base = 0;
    auto start = cumulative.begin();
    for (i64 bins = max_bin; bins > 1; --bins) {
        const i64 rest = total - base;
        auto it = std::partition_point(start, cumulative.end(), [&](i64 c) { return (c - base) * bins < rest; });
        if (it > start && (*it - base) * bins - rest > rest - (*(it - 1) - base) * bins) --it;
        if (it + 1 == cumulative.end()) break;
        const auto i = it - cumulative.begin();
        cuts.values.push_back(midpoint(value_of(distinct[i]), value_of(distinct[i + 1])));
        base = *it;
        start = it + 1;
    }
    cuts.value_bins = static_cast<i32>(cuts.values.size()) + 1;
    return cuts;
}

template <class Key>
FeatureCuts choose_cuts(std::span<const Key> distinct, std::span<const i64> cumulative, i64 max_bin) {
    if (static_cast<i64>(distinct.size()) <= max_bin) return cuts_between_all<Key>(distinct);
    return quantile_cuts<Key>(distinct, cumulative, max_bin);
}

// One worker's, for all its groups: fetching pages anew for every group would take as long as sorting. It goes back to
// the system at the end; the heap would keep it through the fit that follows.
class Scratch {
public:
    // Room for so many bytes; what was there before is gone.
    std::byte* room(std::size_t bytes) {
        if (bytes > bytes_.size()) {
            bytes_ = {};
            bytes_ = AlignedBytes(bytes, MAPPED_FROM);
        }
        return bytes_.data();
    }

private:
    static constexpr std::size_t MAPPED_FROM = 65536;
    AlignedBytes bytes_;
};

constexpr std::size_t whole_lines(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

// The features of one group, one after the other: `Item` is a key, alone or with its row's weight.
template <class Value, class Item>
class GroupCutter {
    using Key = KeyOf<Value>;

public:
    GroupCutter(const Column* columns, int n_columns, i64 n_rows, const Sample& sample, i64 max_bin, Scratch& scratch)
        : columns_(columns), n_columns_(n_columns), n_rows_(n_rows), sample_(sample), max_bin_(max_bin),
          scratch_(scratch) {}

    void run(FeatureCuts* out) {
        std::vector<int> many = count_distinct(out);
        if (many.empty()) return;
        std::vector<Column> crowded;
        for (const int f : many) crowded.push_back(columns_[f]);
        const i64 count = sample_.count;
        Key* keys = share_out(crowded.size(), static_cast<std::size_t>(count));
        load_keys<Value>(crowded.data(), static_cast<int>(crowded.size()), count,
                         [this](i64 i) { return sample_.row(i); }, keys, count);
        for (std::size_t j = 0; j < many.size(); ++j) out[many[j]] = cut_sampled(keys + j * count);
    }

private:
    // Divides the scratch; returns where the keys of the crowded features go.
    Key* share_out(std::size_t n_crowded, std::size_t count) {
        const std::size_t keys = whole_lines(n_crowded * count * sizeof(Key)), items = whole_lines(count * sizeof(Item));
        const std::size_t distinct = whole_lines(count * sizeof(Key));
        std::byte* at = scratch_.room(keys + 2 * items + distinct + count * sizeof(i64));
        Key* begin = reinterpret_cast<Key*>(at);
        items_ = reinterpret_cast<Item*>(at += keys);
        spare_ = reinterpret_cast<Item*>(at += items);
        distinct_ = reinterpret_cast<Key*>(at += items);
        cumulative_ = reinterpret_cast<i64*>(at + distinct);
        return begin;
    }

    // Cuts the features that have at most max_bin values, and returns the others.
    std::vector<int> count_distinct(FeatureCuts* out) {
        std::vector<DistinctKeys<Key>> seen(n_columns_, DistinctKeys<Key>(max_bin_));
        std::vector<int> few(n_columns_), many;
        std::iota(few.begin(), few.end(), 0);
        std::vector<Column> open(columns_, columns_ + n_columns_);
        alignas(64) Key tile[GROUP_FEATURES * TILE_ROWS];
        for (i64 begin = 0; begin < n_rows_ && !few.empty(); begin += TILE_ROWS) {
            const i64 count = std::min<i64>(TILE_ROWS, n_rows_ - begin);
            load_tile<Value>(open.data(), static_cast<int>(open.size()), begin, count, tile);
            for (std::size_t j = few.size(); j-- > 0;) {
                if (seen[few[j]].add(tile + j * TILE_ROWS, count, MISSING_KEY<Key>)) continue;
                many.push_back(few[j]);
                few.erase(few.begin() + j);
                open.erase(open.begin() + j);
            }
        }
        for (const int f : few) {
            std::vector<Key> distinct = seen[f].keys();
            std::sort(distinct.begin(), distinct.end());
            if (!distinct.empty()) out[f] = cuts_between_all<Key>(distinct);
        }
        std::sort(many.begin(), many.end());
        return many;
    }

    FeatureCuts cut_sampled(const Key* keys) {
        std::size_t present = 0;
        for (i64 i = 0; i < sample_.count; ++i) {
            if (keys[i] == MISSING_KEY<Key>) continue;
            if constexpr (std::is_same_v<Item, Key>) items_[present++] = keys[i];
            else items_[present++] = {keys[i], sample_.weights[i]};
        }
        const Item* sorted = radix_sort(items_, spare_, present);
        std::size_t n_distinct = 0;
        i64 sum = 0;
        for (std::size_t i = 0; i < present; ++i) {
            if constexpr (std::is_same_v<Item, Key>) sum += 1;
            else sum += sorted[i].weight;
            const Key key = key_of(sorted[i]);
            if (n_distinct == 0 || distinct_[n_distinct - 1] != key) distinct_[n_distinct++] = key;
            cumulative_[n_distinct - 1] = sum;
        }
        return choose_cuts<Key>({distinct_, n_distinct}, {cumulative_, n_distinct}, max_bin_);
    }

    const Column* columns_;
    int n_columns_;
    i64 n_rows_;
    const Sample& sample_;
    i64 max_bin_;
    Scratch& scratch_;
    Item* items_ = nullptr;  // of the sample, like what follows
    Item* spare_ = nullptr;
    Key* distinct_ = nullptr;
    i64* cumulative_ = nullptr;
};

template <class Value>
void cut_group(const Column* columns, int n_columns, i64 n_rows, const Sample& sample, i64 max_bin, Scratch& scratch,
               FeatureCuts* out) {
    using Key = KeyOf<Value>;
    if (sample.weights.empty()) GroupCutter<Value, Key>(columns, n_columns, n_rows, sample, max_bin, scratch).run(out);
    else GroupCutter<Value, WeightedKey<Key>>(columns, n_columns, n_rows, sample, max_bin, scratch).run(out);
}

Cuts join(const std::vector<FeatureCuts>& features) {
    Cuts cuts;
    cuts.offsets.push_back(0);
    for (const FeatureCuts& feature : features) {
        cuts.values.insert(cuts.values.end(), feature.values.begin(), feature.values.end());
        cuts.offsets.push_back(static_cast<i64>(cuts.values.size()));
        cuts.value_bins.push_back(feature.value_bins);
    }
    return cuts;
}

}  // namespace

Cuts find_cuts(const std::vector<Column>& columns, i64 n_rows, const float* weight, i64 max_bin, int n_threads) {
    FloatingPointMode mode;
    const i64 n_features = static_cast<i64>(columns.size());
    const int workers = worker_count(n_threads, n_features);
    // A few groups a worker, so that none waits long for the last.
    const int limit = static_cast<int>(std::clamp<i64>(n_features / (4 * workers), 1, GROUP_FEATURES));
    const std::vector<Group> groups = make_groups(columns, limit);
    const Sample sample = draw_sample(n_rows, weight);
    std::vector<FeatureCuts> features(n_features);
    std::vector<Scratch> scratch(workers);
    Team team(workers);
    run_guarded(team, static_cast<i64>(groups.size()), [&](i64 task, int worker) {
        const Group group = groups[task];
        const Column* first = columns.data() + group.first;
        FeatureCuts* out = features.data() + group.first;
        if (first->is_double) cut_group<double>(first, group.count, n_rows, sample, max_bin, scratch[worker], out);
        else cut_group<float>(first, group.count, n_rows, sample, max_bin, scratch[worker], out);
    });
    return join(features);
}

}  // namespace dyno
