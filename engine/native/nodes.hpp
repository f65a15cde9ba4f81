// A tree while it grows, and as it leaves: nodes in order of creation, then breadth first (contract §11).
#pragma once

#include <cstdint>
#include <vector>

#include "semantics.cuh"

namespace dyno {

// Exact sums over a set of rows. With a constant hessian h counts rows, and so do h and count alike.
struct Totals {
    i64 g = 0;
    i64 h = 0;
    i64 count = 0;

    Totals operator+(const Totals& other) const { return {g + other.g, h + other.h, count + other.count}; }
    Totals operator-(const Totals& other) const { return {g - other.g, h - other.h, count - other.count}; }
};

struct Split {
    Candidate candidate{0.0, -1, -1, 0};  // a gain of 0 is no split, except under a common cut: see is_found
    Totals left;
    bool is_found = false;
};

struct Node {
    i64 begin = 0;  // the node's rows are a segment of the fit's row order
    i64 end = 0;
    Totals totals;  // its count is kept only where the histograms keep it; rows() always holds
    i32 depth = 0;
    i32 left = -1;
    i32 right = -1;
    i32 slot = -1;  // where its histogram is kept, if it is
    Split best;

    i64 rows() const { return end - begin; }
    bool is_leaf() const { return left < 0; }
};

// Turns sums into scores; fixed for one tree.
struct Scoring {
    double scale_g = 1.0;
    double scale_h = 1.0;
    Regularisation regularisation{};

    double gradient(const Totals& t) const { return static_cast<double>(t.g) * scale_g; }
    double hessian(const Totals& t) const { return static_cast<double>(t.h) * scale_h; }
    double own_score(const Totals& t) const { return score(gradient(t), hessian(t), regularisation); }
};

// The same nodes breadth first.
std::vector<Node> breadth_first(const std::vector<Node>& nodes);

// All finished trees, one after the other; indices are relative to their tree.
struct FinishedTrees {
    std::vector<i32> feature, bin, left, right;
    std::vector<std::uint8_t> missing_left, leaf;
    std::vector<float> value;
    std::vector<double> gain, cover;
    std::vector<i64> count;
    std::vector<i64> offsets{0};

    // Room for so many nodes: vectors that grow would hold them twice, and leave holes behind.
    void reserve(std::size_t n_nodes);

    // Takes nodes breadth first, with a value each.
    void append(const std::vector<Node>& nodes, const std::vector<float>& values, const Scoring& scoring);
};

}  // namespace dyno
