#include "fit.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

#include "margins.hpp"

namespace dyno {
namespace {

// On one thread, roughly, to tell whether sharing is worth it: to look whether a cell holds rows, to score one that does.
constexpr double kNanosecondsToLook = 0.2, kNanosecondsToScore = 1.8;

// So many histograms of leaves wait for their turn as, packed, take this share of the plane, or so many bytes if that is
// little. Built twice, they cost as many rows whatever their width.
constexpr i64 kPlanePerRanking = 8, kFewBytes = i64{1} << 20;

// So many of a level's are kept for the level below: a share of the plane, and of a small plane half, up to kFewBytes.
constexpr i64 kPlanePerLevel = 16, kFewHistograms = 4;

// Of those that are not kept, so many bytes at a time, and no more than the plane: they stay in the caches.
constexpr i64 kGroupBytes = i64{2} << 20;

// Leaves divided in one round of best-first growth, where there are threads to share them.
constexpr std::size_t kAheadPerThread = 2;

constexpr i64 kMostForeseen = 1000;  // trees

constexpr double kNanosecondsToGather = 3.0;  // a row, of which one feature is wanted

using Clock = std::chrono::steady_clock;
constexpr auto kCheckEvery = std::chrono::milliseconds(50);

i64 divide_up(i64 a, i64 b) { return (a + b - 1) / b; }

i64 most_waiting(const Plane& plane, i64 histogram_bytes) {
    return std::max(plane.bytes() / kPlanePerRanking, kFewBytes) / std::max<i64>(1, histogram_bytes);
}

i64 most_kept(const Plane& plane, i64 histogram_bytes) {
    const i64 bytes = std::max(plane.bytes() / kPlanePerLevel, std::min(plane.bytes() / 2, kFewBytes));
    return std::max(kFewHistograms, bytes / std::max<i64>(1, histogram_bytes));
}

Strip buffer_strip(AlignedBytes& buffer, i64 first, int words) {
    return {reinterpret_cast<i64*>(buffer.data()), first, words};
}

// Of any range that feature_ranges may give.
i64 most_cells_in_range(const Plane& plane, const CellLayout& layout) {
    i32 width = 0;
    for (const FeatureRange range : feature_ranges(plane, 1)) width = std::max(width, range.end - range.begin);
    i64 most = 0;
    for (i32 begin = 0; begin + width <= plane.n_features; ++begin)
        most = std::max(most, layout.n_cells({begin, begin + width}));
    return most;
}

template <class Bin>
bool has_missing(const Plane& plane, i32 feature) {
    const Bin* column = plane.column<Bin>(feature);
    const Bin missing = static_cast<Bin>(plane.value_bins[feature]);
    return std::find(column, column + plane.n_rows, missing) != column + plane.n_rows;
}

void check_eval_plane(const Plane& plane, const Plane& eval) {
    if (eval.value_bins != plane.value_bins || eval.wide != plane.wide)
        throw std::invalid_argument(
            "an eval plane must be binned by the training plane's cuts: build it with cuts_from");
}

}  // namespace

Fit::Worker::Worker(int number, const CellLayout& layout, i64 strip_cells, InstructionSet set)
    : number(number),
      strip(static_cast<std::size_t>(strip_cells) * 3 * sizeof(i64)),
      difference(static_cast<std::size_t>(layout.max_value_bins + 1) * 3 * sizeof(i64)),
      scan(layout, set) {}

Fit::Fit(const Plane& plane, const float* label, const float* weight, const FitSettings& settings,
         std::vector<const Plane*> eval_planes)
    : plane_(plane),
      settings_(settings),
      eval_planes_(std::move(eval_planes)),
      layout_(plane),
      least_derived_(layout_.n_cells() / std::max<i64>(1, plane.n_features)),
      most_rows_read_(std::min(SplitScan::kMostRows, least_derived_ / 8)),
      team_(settings.n_threads),
      gradients_(settings.objective, label, weight, plane.n_rows, settings.instruction_set),
      order_(plane, settings.instruction_set),
      slots_(layout_.n_cells(), settings.histogram_bytes),
      most_waiting_(most_waiting(plane, slots_.bytes(1))),
      most_kept_(most_kept(plane, slots_.bytes(1))),
      group_bytes_(std::min(kGroupBytes, plane.bytes())),
      builder_(plane, layout_, slots_, team_),
      may_miss_(static_cast<std::size_t>(plane.n_features)),
      margins_(static_cast<std::size_t>(plane.n_rows), settings.base_margin) {
    if (plane.n_rows < 1 || plane.n_rows > std::numeric_limits<i32>::max())
        throw std::invalid_argument("a fit takes between 1 and 2147483647 rows, got " + std::to_string(plane.n_rows));
    const i64 strip_cells = most_cells_in_range(plane_, layout_);
    workers_.reserve(static_cast<std::size_t>(team_.size()));
    for (int w = 0; w < team_.size(); ++w) workers_.emplace_back(w, layout_, strip_cells, settings_.instruction_set);
    team_.run(plane.n_features, [&](i64 f, int) {
        may_miss_[f] =
            (plane_.wide ? has_missing<std::uint16_t> : has_missing<std::uint8_t>)(plane_, static_cast<i32>(f));
    });
    for (const Plane* eval : eval_planes_) {
        check_eval_plane(plane_, *eval);
        eval_margins_.emplace_back(static_cast<std::size_t>(eval->n_rows), settings.base_margin);
    }
}

// A transaction that throws leaves the fit good for nothing but its destructor.
template <class Work>
auto Fit::transaction(Stage needed, const char* name, Work&& work) {
    if (stage_ == Stage::failed)
        throw std::logic_error(std::string(name) + ": an earlier transaction of this fit failed");
    if (stage_ != needed)
        throw std::logic_error(std::string(name) +
                               (needed == Stage::in_tree ? " comes after begin_tree" : " comes between trees"));
    stage_ = Stage::failed;
    FloatingPointMode mode;
    if constexpr (std::is_void_v<decltype(work())>) {
        work();
        stage_ = needed;
    } else {
        auto result = work();
        stage_ = needed;
        return result;
    }
}

void Fit::begin_tree() {
    transaction(Stage::between_trees, "begin_tree", [&] {
        Node root;
        root.end = plane_.n_rows;
        root.totals = gradients_.quantise_all(margins_.data(), team_);
        scoring_ = {gradients_.scale_g(), gradients_.scale_h(), settings_.regularisation};
        order_.reset(team_);
        nodes_.assign(1, root);
        open_.assign(1, 0);
        choice_.reset();
        ranking_.clear();
        born_.assign(1, 0);
        n_ranked_ = 0;
        families_.assign(1, {-1, 0, -1});
        searches_.clear();
        planned_.clear();
        n_leaves_ = 1;
        n_levels_ = 0;
    });
    stage_ = Stage::in_tree;
}

void Fit::build_histograms() {
    transaction(Stage::in_tree, "build_histograms", [&] {
        searches_.clear();
        choose_kept();
        for (const Family& family : families_) queue_family(family);
        families_.clear();
        build_slots();
    });
}

void Fit::find_splits(Choice choice) {
    transaction(Stage::in_tree, "find_splits", [&] {
        settle(choice);
        choice == Choice::common ? find_common_split() : find_best_splits();
    });
}

i64 Fit::plan(Choice choice) {
    return transaction(Stage::in_tree, "plan", [&] {
        settle(choice);
        planned_ = choice == Choice::every ? plan_every() : choice == Choice::best ? plan_best() : plan_common();
        return static_cast<i64>(planned_.size());
    });
}

void Fit::partition() {
    transaction(Stage::in_tree, "partition", [&] {
        const std::vector<i64> n_left = order_.partition(nodes_, planned_, team_);
        for (std::size_t p = 0; p < planned_.size(); ++p) add_children(planned_[p], n_left[p]);
        open_children();
        n_levels_ += 1;
        planned_.clear();
    });
}

RoundSeconds Fit::grow(Choice choice, const std::function<void()>& check) {
    RoundSeconds seconds;
    Clock::time_point now = Clock::now(), checked = now;
    const auto add_to = [&](double& phase) {
        const Clock::time_point then = std::exchange(now, Clock::now());
        phase += std::chrono::duration<double>(now - then).count();
    };
    for (;;) {
        build_histograms();
        add_to(seconds.histogram);
        find_splits(choice);
        add_to(seconds.find);
        const i64 n_planned = plan(choice);
        add_to(seconds.plan);
        if (n_planned == 0) return seconds;
        partition();
        add_to(seconds.partition);
        if (now - checked < kCheckEvery) continue;
        check();
        checked = now;
    }
}

void Fit::end_tree() {
    transaction(Stage::in_tree, "end_tree", [&] {
        for (const Ranked& ranked : ranking_) take_back(born_[ranked.number]);
        for (Node& node : nodes_) release(node);
        const std::vector<Node> tree = breadth_first(nodes_);
        std::vector<float> values(tree.size(), 0.0f);
        for (std::size_t i = 0; i < tree.size(); ++i) {
            if (!tree[i].is_leaf()) continue;
            const double g = scoring_.gradient(tree[i].totals), h = scoring_.hessian(tree[i].totals);
            values[i] = saturate(settings_.learning_rate * leaf_weight(g, h, settings_.regularisation));
        }
        add_leaf_values(tree, values, order_.rows(), margins_.data(), team_);
        for (std::size_t e = 0; e < eval_planes_.size(); ++e)
            add_routed_values(tree, values, *eval_planes_[e], eval_margins_[e].data(), team_);
        if (trees_.feature.empty())
            trees_.reserve(static_cast<std::size_t>(std::min(settings_.n_estimators, kMostForeseen)) * tree.size());
        trees_.append(tree, values, scoring_);
    });
    stage_ = Stage::between_trees;
}

// What is kept of the open nodes depends on the choice, so a tree has one.
void Fit::settle(Choice choice) {
    if (choice_.value_or(choice) != choice) throw std::logic_error("a tree is grown by one choice: begin another tree");
    choice_ = choice;
}

// ---- which nodes matter --------------------------------------------------------------------------------------------

// Whether the rules leave room for a split at all; a node that fails is never looked at.
bool Fit::is_splittable(const Node& node) const {
    const bool deep = settings_.max_depth != 0 && node.depth >= settings_.max_depth;
    return !deep && room() > 0 && node.rows() >= 2 * settings_.regularisation.min_samples_leaf;
}

// Whether a child of the node could be derived: only then is its histogram read again.
bool Fit::is_kept(const Node& node) const {
    return node.rows() > least_kept_ && (settings_.max_depth == 0 || node.depth + 1 < settings_.max_depth);
}

// A large node's rows are shared out, which takes a slot.
bool Fit::is_shared_out(const Node& node) const {
    return node.rows() >= kPackedRows || node.rows() > divide_up(plane_.n_rows, 4 * team_.size());
}

int Fit::words_of(const Node& node) const {
    if (gradients_.has_constant_hessian()) return node.rows() < kPackedRows ? 1 : 2;
    return settings_.regularisation.min_samples_leaf > 1 ? 3 : 2;
}

RowSpan Fit::rows_of(const Node& node) const {
    if (node.rows() == plane_.n_rows) return {nullptr, 0, plane_.n_rows};
    return {order_.rows() + node.begin, 0, node.rows()};
}

i64 Fit::room() const {
    return settings_.max_leaves == 0 ? std::numeric_limits<i64>::max() : settings_.max_leaves - n_leaves_;
}

void Fit::release(Node& node) {
    if (node.slot >= 0) slots_.release(node.slot);
    node.slot = -1;
}

// ---- histograms ----------------------------------------------------------------------------------------------------

// Of a level's histograms those of the fewest rows go first: they are built again for the least.
void Fit::choose_kept() {
    least_kept_ = least_derived_;
    if (!choice_ || choice_ == Choice::best || static_cast<i64>(open_.size()) <= most_kept_) return;
    std::vector<i64> rows;
    for (const i32 index : open_)
        if (is_kept(nodes_[index])) rows.push_back(nodes_[index].rows());
    if (static_cast<i64>(rows.size()) <= most_kept_) return;
    std::nth_element(rows.begin(), rows.begin() + most_kept_, rows.end(), std::greater<>());
    least_kept_ = rows[most_kept_];
}

void Fit::queue_family(const Family& family) {
    const auto queue_if_splittable = [&](i32 index) {
        if (index >= 0 && is_splittable(nodes_[index])) queue_alone(index);
    };
    const bool is_root = family.parent < 0;
    const bool left_is_smaller = is_root || nodes_[family.left].rows() <= nodes_[family.right].rows();
    const i32 smaller = left_is_smaller ? family.left : family.right;
    const i32 larger = left_is_smaller ? family.right : family.left;
    const bool is_derived = !is_root && nodes_[family.parent].slot >= 0 && is_splittable(nodes_[larger]) &&
                            nodes_[larger].rows() >= least_derived_;
    if (!is_derived) {
        if (!is_root) release(nodes_[family.parent]);
        queue_if_splittable(family.left);
        queue_if_splittable(family.right);
        return;
    }
    queue_alone(smaller);
    searches_.back().derived = larger;
    std::swap(nodes_[larger].slot, nodes_[family.parent].slot);
}

void Fit::queue_alone(i32 index) {
    Node& node = nodes_[index];
    searches_.push_back({index, -1, false});
    const bool must = is_shared_out(node);
    if (must || (is_splittable(node) && is_kept(node))) node.slot = slots_.acquire(words_of(node), must);
}

void Fit::build_slots() {
    std::vector<BuildOrder> orders;
    for (const Search& search : searches_) {
        const Node& node = nodes_[search.built];
        if (node.slot >= 0) orders.push_back({rows_of(node), slots_.strip(node.slot)});
    }
    builder_.build(orders, gradients_.rows());
}

// ---- splits --------------------------------------------------------------------------------------------------------

// The node's cells of a range: from its slot or, if none keeps them, built into the worker's buffer; none for a node of
// so few rows that these are read instead, unless its sibling is derived from them.
Strip Fit::built_strip(const Node& node, FeatureRange range, bool for_sibling, Worker& worker) {
    if (node.slot >= 0) return slots_.strip(node.slot);
    if (!for_sibling && node.rows() <= most_rows_read_) {
        worker.scan.take_rows(plane_, gradients_.rows(), rows_of(node), words_of(node));
        return {};
    }
    const Strip strip = buffer_strip(worker.strip, layout_.offset[range.begin], words_of(node));
    builder_.build(rows_of(node), range, strip, gradients_.rows(), worker.number);
    return strip;
}

// Calls visit(node, feature, cells, words) for the nodes of a search, feature by feature, left before right; `look` takes
// the last three.
template <class Visit>
void Fit::visit_search(const Search& search, FeatureRange range, Worker& worker, Visit&& visit) {
    const bool is_looked_at = search.derived >= 0 || is_splittable(nodes_[search.built]);
    const Strip part = is_looked_at ? built_strip(nodes_[search.built], range, search.derived >= 0, worker) : Strip{};
    for (i32 feature = range.begin; feature < range.end; ++feature) {
        const i64 begin = layout_.offset[feature], end = layout_.offset[feature + 1];
        const auto visit_built = [&] { visit(search.built, feature, part.cells ? part.of(begin) : nullptr, part.words); };
        if (search.derived < 0) {
            visit_built();
            continue;
        }
        const Node& derived = nodes_[search.derived];
        const Strip whole = slots_.strip(derived.slot);
        const Strip rest = is_kept(derived) ? whole : buffer_strip(worker.difference, begin, whole.words);
        if (!(is_kept(derived) && search.is_subtracted)) subtract_cells(rest, whole, part, begin, end);
        if (search.built < search.derived) visit_built();
        visit(search.derived, feature, rest.of(begin), rest.words);
        if (search.built > search.derived) visit_built();
    }
}

// Scans one feature of a node: its cells or, where there are none, the rows that built_strip took.
void Fit::look(const Node& node, i32 feature, const i64* cells, int words, SplitScan& scan) const {
    const bool by_bin = choice_ == Choice::common;
    if (cells) scan.load(cells, words, plane_.value_bins[feature], node.rows(), node.totals, scoring_, by_bin);
    else scan.load_rows(feature, node.totals, scoring_, by_bin);
}

// At most `wanted` ranges of features with about as many cells each.
std::vector<FeatureRange> Fit::scan_ranges(i64 wanted) const {
    const std::vector<FeatureRange> even = feature_ranges(plane_, wanted);
    if (feature_ranges(plane_, 1).size() > 1) return even;  // their width is bounded
    const i64 n = static_cast<i64>(even.size());
    std::vector<FeatureRange> ranges;
    i32 begin = 0;
    for (i64 r = 1; r <= n; ++r) {
        const auto bound = std::lower_bound(layout_.offset.begin(), layout_.offset.end(), layout_.n_cells() * r / n);
        const i32 end = r == n ? plane_.n_features : static_cast<i32>(bound - layout_.offset.begin());
        if (end > begin) ranges.push_back({begin, end});
        begin = std::max(begin, end);
    }
    return ranges;
}

// A guess: cells to scan, and rows to add for nodes that no slot keeps.
double Fit::find_nanoseconds() const {
    i64 looked_at = 0, scored = 0, added = 0;
    for (const Search& search : searches_) {
        for (const i32 index : {search.built, search.derived}) {
            if (index < 0) continue;
            looked_at += layout_.n_cells();
            scored += std::min(layout_.n_cells(), nodes_[index].rows() * plane_.n_features);
        }
        const Node& built = nodes_[search.built];
        if (built.slot < 0) added += built.rows() * plane_.n_features;
    }
    return kNanosecondsToLook * static_cast<double>(looked_at) + kNanosecondsToScore * static_cast<double>(scored) +
           kNanosecondsToAdd * static_cast<double>(added);
}

void Fit::find_best_splits() {
    const i64 n_searches = static_cast<i64>(searches_.size());
    const double nanoseconds = find_nanoseconds();
    const i64 meeting = nanoseconds < Team::kWorthMeeting ? 1 : team_.size();
    const auto ranges = scan_ranges(divide_up(meeting, std::max<i64>(n_searches, 1)));
    const i64 n_ranges = static_cast<i64>(ranges.size());
    struct Found {
        Split built, derived;
    };
    std::vector<Found> found(static_cast<std::size_t>(n_searches * n_ranges));
    team_.run(
        n_searches * n_ranges,
        [&](i64 task, int w) {
            const Search& search = searches_[task / n_ranges];
            Worker& worker = workers_[w];
            visit_search(
                search, ranges[task % n_ranges], worker, [&](i32 index, i32 feature, const i64* cells, int words) {
                    const Node& node = nodes_[index];
                    if (!is_splittable(node)) return;
                    look(node, feature, cells, words, worker.scan);
                    worker.scan.improve(feature, index == search.built ? found[task].built : found[task].derived);
                });
        },
        nanoseconds);
    const auto keep_better = [](Split& best, const Split& other) {
        if (other.is_found && (!best.is_found || is_better(other.candidate, best.candidate))) best = other;
    };
    for (i64 task = 0; task < n_searches * n_ranges; ++task) {
        const Search& search = searches_[task / n_ranges];
        keep_better(nodes_[search.built].best, found[task].built);
        if (search.derived >= 0) keep_better(nodes_[search.derived].best, found[task].derived);
    }
    for (const Search& search : searches_)
        for (const i32 index : {search.built, search.derived})
            if (index >= 0 && !nodes_[index].best.is_found) release(nodes_[index]);
    finish_searches();
}

// Every open node in order: what is new, and each of the others alone.
std::vector<Fit::Search> Fit::frontier() const {
    std::vector<Search> frontier;
    std::size_t next_search = 0;  // searches lie in frontier order
    i32 done = -1;
    for (const i32 index : open_) {
        if (index == done) continue;
        if (next_search < searches_.size() &&
            (index == searches_[next_search].built || index == searches_[next_search].derived)) {
            const Search& search = searches_[next_search++];
            frontier.push_back(search);
            done = index == search.built ? search.derived : search.built;
        } else {
            frontier.push_back({index, -1, false});
        }
    }
    return frontier;
}

// Builds the histograms that the searches from `begin` on lack, as many as may lie in memory at once; returns the first
// search beyond. Under a common cut the features are shared out, not the nodes: a range would gather a node's rows again.
std::size_t Fit::build_group(const std::vector<Search>& frontier, std::size_t begin) {
    std::vector<BuildOrder> orders;
    i64 bytes = 0;
    std::size_t end = begin;
    for (; end < frontier.size(); ++end) {
        Node& node = nodes_[frontier[end].built];
        const bool wanted = node.rows() > least_derived_ && (frontier[end].derived >= 0 || is_splittable(node));
        if (node.slot >= 0 || !wanted) continue;
        bytes += slots_.bytes(words_of(node));
        if (bytes > group_bytes_ && !orders.empty()) break;
        node.slot = slots_.acquire(words_of(node));
        if (node.slot >= 0) orders.push_back({rows_of(node), slots_.strip(node.slot)});
    }
    if (!orders.empty()) builder_.build(orders, gradients_.rows());
    return end;
}

void Fit::find_common_split() {
    for (const i32 index : open_) nodes_[index].best = Split{};
    if (room() <= 0 || (settings_.max_depth != 0 && n_levels_ >= settings_.max_depth)) return finish_searches();
    const double nanoseconds = find_nanoseconds();
    const i64 meeting = nanoseconds < Team::kWorthMeeting ? 1 : team_.size();
    const i64 a_thread = std::clamp<i64>(plane_.n_features / (8 * meeting), 1, 4);
    const auto ranges = scan_ranges(a_thread * meeting);
    std::vector<Candidate> best(ranges.size());
    double whole = 0.0;
    for (const i32 index : open_) whole += scoring_.own_score(nodes_[index].totals);
    level_.clear(layout_.n_cells());
    std::vector<Search> searches = frontier();
    for (std::size_t begin = 0, end; begin < searches.size(); begin = end) {
        end = build_group(searches, begin);
        const auto scan_range = [&](i64 task, int w) {
            for (std::size_t s = begin; s < end; ++s) add_to_level(searches[s], ranges[task], workers_[w]);
            if (end == searches.size())
                best[task] = best_of_level(level_, layout_, ranges[task], whole, settings_.regularisation.gamma,
                                           settings_.instruction_set);
        };
        team_.run(static_cast<i64>(ranges.size()), scan_range, nanoseconds);
        if (begin == 0 && end == searches.size()) break;
        for (std::size_t s = begin; s < end; ++s) {
            Node& built = nodes_[searches[s].built];
            if (!is_kept(built) && !is_shared_out(built)) release(built);
        }
    }
    Candidate common{0.0, -1, -1, 0};
    for (const Candidate& candidate : best)
        if (candidate.gain > 0.0 && is_better(candidate, common)) common = candidate;
    for (Search& search : searches) search.is_subtracted = true;
    if (common.gain > 0.0) split_in_common(common, searches);
    searches_ = std::move(searches);
    finish_searches();
}

// Adds the scores of a search's nodes, feature by feature of a range, to the level's.
void Fit::add_to_level(const Search& search, FeatureRange range, Worker& worker) {
    visit_search(search, range, worker, [&](i32 index, i32 feature, const i64* cells, int words) {
        const Node& node = nodes_[index];
        const i64 offset = layout_.offset[feature];
        if (!is_splittable(node))
            return SplitScan::add_unsplittable(offset, plane_.value_bins[feature], may_miss_[feature],
                                               scoring_.own_score(node.totals), level_);
        look(node, feature, cells, words, worker.scan);
        worker.scan.add_to_level(offset, may_miss_[feature], level_);
    });
}

// Gives every open node that the common cut can split its own sums and gain.
void Fit::split_in_common(const Candidate& common, const std::vector<Search>& frontier) {
    const FeatureRange only{common.feature, common.feature + 1};
    double rows_to_add = 0.0;
    for (const Search& search : frontier)
        if (nodes_[search.built].slot < 0) rows_to_add += static_cast<double>(nodes_[search.built].rows());
    const auto split = [&](i64 task, int w) {
        Worker& worker = workers_[w];
        visit_search(frontier[task], only, worker, [&](i32 index, i32 feature, const i64* cells, int words) {
            Node& node = nodes_[index];
            if (!is_splittable(node)) return;
            look(node, feature, cells, words, worker.scan);
            node.best = worker.scan.at(feature, common.bin, common.missing_left);
        });
    };
    team_.run(static_cast<i64>(frontier.size()), split, kNanosecondsToGather * rows_to_add);
    if (may_miss_[common.feature]) return;  // the open nodes hold every row between them
    i64 h_left = 0, h_right = 0;
    for (const i32 index : open_) {
        const Node& node = nodes_[index];
        if (!node.best.is_found) continue;
        h_left += node.best.left.h;
        h_right += node.totals.h - node.best.left.h;
    }
    for (const i32 index : open_) nodes_[index].best.candidate.missing_left = unseen_goes_left(h_left, h_right);
}

// Gives back the histograms that nobody will read again.
void Fit::finish_searches() {
    for (const Search& search : searches_) {
        for (const i32 index : {search.built, search.derived})
            if (index >= 0 && (!is_kept(nodes_[index]) || !is_splittable(nodes_[index]))) release(nodes_[index]);
    }
    searches_.clear();
}

// ---- growth (contract §9) ------------------------------------------------------------------------------------------

std::vector<i32> Fit::plan_every() const {
    std::vector<i32> planned;
    for (const i32 index : open_)
        if (nodes_[index].best.is_found) planned.push_back(index);
    if (static_cast<i64>(planned.size()) > room()) {
        std::stable_sort(planned.begin(), planned.end(), [&](i32 a, i32 b) { return gain_of(a) > gain_of(b); });
        planned.resize(static_cast<std::size_t>(room()));
        std::sort(planned.begin(), planned.end());  // the level's order is that of creation
    }
    return planned;
}

// The leaf of the largest gain and, so that threads have more to do when they meet, leaves that stand after it: their
// children are made ahead of their turn, and are born when it comes. Of those in the first half of the splits left hardly
// one in a hundred is made for nothing.
std::vector<i32> Fit::plan_best() {
    for (rank_born(); !ranking_.empty() && !ranked_node(*ranking_.rbegin()).is_leaf(); rank_born()) split_best();
    // Leaves of the least gains are the last to be split, if at all: both children are built then.
    for (auto low = ranking_.begin(); low != ranking_.end() && slots_.n_in_use() > most_waiting_; ++low)
        release_family(born_[low->number]);
    const std::size_t most = team_.size() == 1 ? 1 : kAheadPerThread * static_cast<std::size_t>(team_.size());
    std::vector<i32> planned;
    i64 rank = 0;
    for (auto next = ranking_.rbegin(); next != ranking_.rend() && planned.size() < most; ++next, ++rank) {
        if (rank > 0 && rank >= room() / 2) break;
        if (ranked_node(*next).is_leaf()) planned.push_back(born_[next->number]);
    }
    return planned;
}

void Fit::rank_born() {
    for (; n_ranked_ < born_.size(); ++n_ranked_)
        if (const i32 index = born_[n_ranked_]; nodes_[index].best.is_found)
            ranking_.insert({gain_of(index), static_cast<i32>(n_ranked_)});
    // A split moves a node up by one place and leaves one split fewer: who stands beyond them now is a leaf for good.
    while (static_cast<i64>(ranking_.size()) > room()) {
        take_back(born_[ranking_.begin()->number]);
        ranking_.erase(ranking_.begin());
    }
}

// Splits the leaf that leads the ranking, whose children are made already.
void Fit::split_best() {
    const Node& node = ranked_node(*ranking_.rbegin());
    born_.insert(born_.end(), {node.left, node.right});
    ranking_.erase(std::prev(ranking_.end()));
    n_leaves_ += 1;
}

// Makes a leaf of a node whose children were made ahead.
void Fit::take_back(i32 index) {
    release_family(index);
    nodes_[index].left = nodes_[index].right = -1;
}

void Fit::release_family(i32 index) {
    Node& node = nodes_[index];
    release(node);
    if (node.is_leaf()) return;
    release(nodes_[node.left]);
    release(nodes_[node.right]);
}

double Fit::gain_of(i32 index) const { return nodes_[index].best.candidate.gain; }

std::vector<i32> Fit::plan_common() const {
    if (settings_.max_depth != 0 && n_levels_ >= settings_.max_depth) return {};
    std::vector<i32> planned;
    for (const i32 index : open_)
        if (nodes_[index].best.is_found) planned.push_back(index);
    return static_cast<i64>(planned.size()) <= room() ? planned : std::vector<i32>{};
}

void Fit::add_children(i32 index, i64 n_left) {
    Node& parent = nodes_[index];
    Node left, right;
    left.begin = parent.begin;
    left.end = right.begin = parent.begin + n_left;
    right.end = parent.end;
    left.depth = right.depth = parent.depth + 1;
    left.totals = parent.best.left;
    right.totals = parent.totals - left.totals;
    parent.left = static_cast<i32>(nodes_.size());
    parent.right = parent.left + 1;
    families_.push_back({index, parent.left, parent.right});
    nodes_.push_back(left);
    nodes_.push_back(right);
}

// The open nodes after a split. common: children in their parent's place, among those that stay; every: the children,
// and who was passed over is a leaf for good; best: nobody asks, the ranking knows.
void Fit::open_children() {
    if (choice_ == Choice::best) {
        if (!planned_.empty()) split_best();
        return;
    }
    n_leaves_ += static_cast<i64>(planned_.size());
    std::vector<i32> next;
    next.reserve(open_.size() + planned_.size());
    for (const i32 index : open_) {
        Node& node = nodes_[index];
        if (!node.is_leaf()) next.insert(next.end(), {node.left, node.right});
        else if (choice_ == Choice::common) next.push_back(index);
        else release(node);
    }
    open_ = std::move(next);
}

}  // namespace dyno
