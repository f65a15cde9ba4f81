// One fit on the CPU: the transactions of engine/backends/__init__.py over a node table, histograms and a row order.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "gradients.hpp"
#include "histogram.hpp"
#include "histogram_builder.hpp"
#include "nodes.hpp"
#include "partition.hpp"
#include "plane.hpp"
#include "slots.hpp"
#include "splits.hpp"
#include "team.hpp"

namespace dyno {

enum class Choice { every, best, common };

struct FitSettings {
    Objective objective = Objective::squared_error;
    double learning_rate = 0.1;
    i64 n_estimators = 1;  // about so many trees will be grown
    i64 max_depth = 0;   // 0 is no limit
    i64 max_leaves = 0;  // likewise
    Regularisation regularisation{};
    float base_margin = 0.0f;
    int n_threads = 1;
    i64 histogram_bytes = 0;  // histograms beyond this are built again when wanted; never changes a bit
    InstructionSet instruction_set = InstructionSet::baseline;
};

// Time that the rounds of a tree took, by transaction.
struct RoundSeconds {
    double histogram = 0.0;
    double find = 0.0;
    double plan = 0.0;
    double partition = 0.0;
};

class Fit {
public:
    // Borrows the planes, label and weight (null for none) for its life.
    Fit(const Plane& plane, const float* label, const float* weight, const FitSettings& settings,
        std::vector<const Plane*> eval_planes);

    void begin_tree();
    void build_histograms();
    void find_splits(Choice choice);
    i64 plan(Choice choice);
    void partition();
    void end_tree();

    // All rounds of a tree: the four transactions in turn, until nothing is planned. `check` is called now and then,
    // between two rounds, and may throw.
    RoundSeconds grow(Choice choice, const std::function<void()>& check);

    const std::vector<float>& eval_margins(std::size_t index) const { return eval_margins_.at(index); }
    // Once; the fit keeps none.
    FinishedTrees take_trees() { return std::exchange(trees_, {}); }

private:
    enum class Stage { between_trees, in_tree, failed };

    // New nodes to look at: siblings, of which the one of fewer rows is built and the other derived, or one alone.
    struct Search {
        i32 built = -1;
        i32 derived = -1;  // its slot holds the parent's histogram until this one is subtracted
        bool is_subtracted = false;
    };
    struct Family {
        i32 parent;  // -1 for the root, which is then `left`
        i32 left;
        i32 right;
    };
    struct Ranked {
        double gain;
        i32 number;  // in born_
        // Between equal gains the node born earlier goes first.
        bool operator<(const Ranked& other) const { return gain != other.gain ? gain < other.gain : number > other.number; }
    };
    struct Worker {
        Worker(int number, const CellLayout& layout, i64 strip_cells, InstructionSet set);
        int number;
        AlignedBytes strip;       // a range's cells of a node that no slot keeps
        AlignedBytes difference;  // a feature's cells of a derived one
        SplitScan scan;
    };

    template <class Work>
    auto transaction(Stage needed, const char* name, Work&& work);

    void settle(Choice choice);
    i64 room() const;
    bool is_splittable(const Node& node) const;
    bool is_kept(const Node& node) const;
    bool is_shared_out(const Node& node) const;
    int words_of(const Node& node) const;
    RowSpan rows_of(const Node& node) const;

    void choose_kept();
    void queue_family(const Family& family);
    void queue_alone(i32 index);
    void build_slots();

    Strip built_strip(const Node& node, FeatureRange range, bool for_sibling, Worker& worker);
    template <class Visit>
    void visit_search(const Search& search, FeatureRange range, Worker& worker, Visit&& visit);

    void look(const Node& node, i32 feature, const i64* cells, int words, SplitScan& scan) const;
    std::vector<FeatureRange> scan_ranges(i64 wanted) const;
    double find_nanoseconds() const;
    void find_best_splits();
    void find_common_split();
    std::vector<Search> frontier() const;
    std::size_t build_group(const std::vector<Search>& frontier, std::size_t begin);
    void add_to_level(const Search& search, FeatureRange range, Worker& worker);
    void split_in_common(const Candidate& common, const std::vector<Search>& frontier);
    void finish_searches();
    void release(Node& node);

    std::vector<i32> plan_every() const;
    std::vector<i32> plan_best();
    void rank_born();
    void split_best();
    void take_back(i32 index);
    void release_family(i32 index);
    Node& ranked_node(const Ranked& ranked) { return nodes_[born_[ranked.number]]; }
    double gain_of(i32 index) const;
    std::vector<i32> plan_common() const;
    void add_children(i32 index, i64 n_left);
    void open_children();

    const Plane& plane_;
    const FitSettings settings_;
    const std::vector<const Plane*> eval_planes_;
    const CellLayout layout_;
    const i64 least_derived_;   // rows of a sibling: fewer than a feature's cells are sooner added than these subtracted
    const i64 most_rows_read_;  // of a node that is scanned without a histogram
    Team team_;
    Gradients gradients_;
    RowOrder order_;
    SlotPool slots_;
    const i64 most_waiting_;  // histograms, under Choice::best
    const i64 most_kept_;     // likewise, from one level to the next
    const i64 group_bytes_;
    HistogramBuilder builder_;
    LevelScores level_;
    std::vector<Worker> workers_;
    std::vector<std::uint8_t> may_miss_;  // by feature: some row's value is missing
    std::vector<float> margins_;
    std::vector<std::vector<float>> eval_margins_;
    FinishedTrees trees_;

    // The tree that grows.
    Stage stage_ = Stage::between_trees;
    Scoring scoring_;
    std::vector<Node> nodes_;       // in order of creation; under Choice::best some before their parents' turn
    std::vector<i32> open_;         // in the order that settles ties; not kept for Choice::best, which has a ranking
    std::set<Ranked> ranking_;      // of the open nodes that may still be split, ascending
    std::vector<i32> born_;         // Choice::best: nodes whose parents are split, in the order of those splits
    std::size_t n_ranked_ = 0;      // of the born
    std::vector<Family> families_;  // born by the last partition, not yet queued
    std::vector<Search> searches_;
    std::vector<i32> planned_;
    std::optional<Choice> choice_;  // the tree's, once find_splits or plan has named one
    i64 least_kept_ = 0;  // rows: who has fewer keeps no histogram, its children are both built
    i64 n_leaves_ = 0;
    i64 n_levels_ = 0;
};

}  // namespace dyno
