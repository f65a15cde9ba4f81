// Moves the rows of the planned nodes to their children's segments, in one pass (contract §10).
//
// A block takes a chunk of 1,024 rows by ticket, in list order: whoever waits, waits for chunks that others have
// already taken. Ballots rank the rows within the chunk; decoupled look-back adds up what earlier chunks send left.
// Left rows go to the front of the node's segment in order, right rows from its end backwards, so nothing has to be
// counted beforehand. Reads one of the two row buffers and writes the other.
//
// A word of the look-back holds its value and its flag at once, so it cannot be seen half written, and the number of
// this partition (epoch), so words of earlier ones are never taken for it.
//
// Order-free: where a row goes depends on counts alone, which are exact whoever adds them up.
//
// Kernels: partition
// Block: 256
// Shared: 256
// Bytes per row: read 4 + 8 + bin_bytes, written 4 + 8
#pragma once

#include "lists.cuh"
#include "state.cuh"

namespace dyno {

constexpr u32 ROWS_A_THREAD = PARTITION_ROWS / GROW_BLOCK;
constexpr u32 N_WARPS = GROW_BLOCK / WARP_SIZE;
static_assert(ROWS_A_THREAD * N_WARPS == WARP_SIZE, "one warp scans the counts of a chunk");

// ---- look-back ----------------------------------------------------------------------------------------------------

constexpr u64 OF_CHUNK = 1;         // the word counts its own chunk's rows that go left
constexpr u64 OF_ALL_BEFORE = 2;    // those of the node's earlier chunks as well

DYNO_FN u64 make_word(u32 epoch, u64 flag, u32 n_left) { return static_cast<u64>(epoch) << 34 | flag << 32 | n_left; }
DYNO_FN u64 flag_of(u64 word) { return word >> 32 & 3; }
DYNO_FN bool is_ready(u64 word, u32 epoch) { return word >> 34 == epoch && flag_of(word) != 0; }

DYNO_DEVICE u32 sum_warp(u32 value) {
    for (u32 bit = WARP_SIZE / 2; bit > 0; bit /= 2) value += shuffle_xor(WHOLE_WARP, value, bit);
    return value;
}

// Words [end - 32 .. end), nearest first; before the node's first chunk nothing goes left.
DYNO_DEVICE u64 wait_for_word(const FitState& fit, i64 first, i64 end) {
    const i64 at = end - 1 - static_cast<i64>(lane());
    for (;;) {
        const u64 none = make_word(fit.epoch, OF_ALL_BEFORE, 0);
        const u64 word = at >= first ? load_acquire(fit.partition_words + at) : none;
        if (all(WHOLE_WARP, is_ready(word, fit.epoch))) return word;
        pause();
    }
}

// Rows of the node's chunks before this one that go left; publishes this one's. A whole warp calls.
DYNO_DEVICE u32 look_back(const FitState& fit, u32 first, u32 number, u32 n_left) {
    u64* own = fit.partition_words + number;
    u32 before = 0;
    if (number > first) {
        if (lane() == 0) store_release(own, make_word(fit.epoch, OF_CHUNK, n_left));
        u32 complete = 0;
        for (i64 end = number; complete == 0; end -= WARP_SIZE) {
            const u64 word = wait_for_word(fit, first, end);
            complete = ballot(WHOLE_WARP, flag_of(word) == OF_ALL_BEFORE);
            const u32 farthest = complete != 0 ? lowest_bit(complete) : WARP_SIZE - 1;
            before += sum_warp(lane() <= farthest ? static_cast<u32>(word) : 0);
        }
    }
    if (lane() == 0) store_release(own, make_word(fit.epoch, OF_ALL_BEFORE, before + n_left));
    return before;
}

// ---- a chunk ------------------------------------------------------------------------------------------------------

struct SharedChunk {
    u32 n_left[WARP_SIZE];  // of each warp's turn, then of all turns before it
    u32 before;             // rows of earlier chunks that go left
    u32 ticket;
};

// What one thread holds of a chunk: every GROW_BLOCK-th row.
struct HeldRows {
    u32 row[ROWS_A_THREAD];
    QuantisedPair pair[ROWS_A_THREAD];
    u32 lefts[ROWS_A_THREAD];  // of this warp's turn, by lane
};

template <class Bin>
DYNO_DEVICE HeldRows read_rows(const FitState& fit, const Node& node, u32 begin) {
    HeldRows held;
    const u32 from = node.depth & 1;
    const Bin* column = static_cast<const Bin*>(fit.columns.address) + static_cast<i64>(node.feature) * fit.n_rows;
    const i32 missing_bin = fit.value_bins[node.feature];
    DYNO_UNROLL
    for (u32 turn = 0; turn < ROWS_A_THREAD; ++turn) {
        const u32 at = begin + turn * GROW_BLOCK + thread();
        bool left = false;
        if (at < node.end) {
            held.row[turn] = fit.rows[from][at];
            held.pair[turn] = fit.pairs[from][at];
            left = goes_left(column[held.row[turn]], node.bin, missing_bin, node.missing_left);
        }
        held.lefts[turn] = ballot(WHOLE_WARP, left);
    }
    return held;
}

// Ranks the warps' turns, and adds up what lies before the chunk; the last chunk knows how many rows go left at all.
DYNO_DEVICE void rank_turns(FitState& fit, Node& node, const PartitionItem& item, u32 number, SharedChunk* chunk) {
    const u32 own = chunk->n_left[lane()];
    const u32 inclusive = prefix_warp(own);
    const u32 n_left = shuffle(WHOLE_WARP, inclusive, WARP_SIZE - 1);
    const u32 before = look_back(fit, node.first_item, number, n_left);
    chunk->n_left[lane()] = inclusive - own;
    if (lane() != 0) return;
    chunk->before = before;
    if (node.end - node.begin <= (item.chunk + 1) * PARTITION_ROWS) node.n_left = before + n_left;
}

DYNO_DEVICE void write_rows(const FitState& fit, const Node& node, const PartitionItem& item, const HeldRows& held,
                            const SharedChunk* chunk) {
    const u32 to = (node.depth + 1) & 1;
    const bool has_readers = fit.max_depth == 0 || node.depth + 1 < fit.max_depth;  // of the children's gradients
    DYNO_UNROLL
    for (u32 turn = 0; turn < ROWS_A_THREAD; ++turn) {
        const u32 offset = item.chunk * PARTITION_ROWS + turn * GROW_BLOCK + thread();
        if (node.begin + offset >= node.end) continue;
        const u32 n_before = chunk->before + chunk->n_left[turn * N_WARPS + warp()];
        const u32 n_left = n_before + popcount(held.lefts[turn] & lanes_below());
        const bool left = held.lefts[turn] >> lane() & 1;
        const u32 place = left ? node.begin + n_left : node.end - 1 - (offset - n_left);
        fit.rows[to][place] = held.row[turn];
        if (has_readers) fit.pairs[to][place] = held.pair[turn];
    }
}

template <class Bin>
DYNO_DEVICE void partition_chunk(FitState& fit, u32 number, SharedChunk* chunk) {
    const PartitionItem item = fit.partition_items[number];
    Node& node = fit.nodes[item.node];
    const HeldRows held = read_rows<Bin>(fit, node, node.begin + item.chunk * PARTITION_ROWS);
    if (lane() == 0) {
        DYNO_UNROLL
        for (u32 turn = 0; turn < ROWS_A_THREAD; ++turn)
            chunk->n_left[turn * N_WARPS + warp()] = popcount(held.lefts[turn]);
    }
    sync_block();
    if (warp() == 0) rank_turns(fit, node, item, number, chunk);
    sync_block();
    write_rows(fit, node, item, held, chunk);
}

template <class Bin>
DYNO_DEVICE void partition(FitState& fit) {
    SharedChunk* chunk = shared<SharedChunk>(0);
    for (;;) {
        if (thread() == 0) chunk->ticket = atomic_add(&fit.partition_ticket, 1u);
        sync_block();
        const u32 number = chunk->ticket;
        if (number >= fit.n_partition_items) return;
        partition_chunk<Bin>(fit, number, chunk);
        sync_block();
    }
}

DYNO_KERNEL(partition_u8, FitState, GROW_BLOCK) { partition<unsigned char>(*state); }
DYNO_KERNEL(partition_u16, FitState, GROW_BLOCK) { partition<unsigned short>(*state); }

}  // namespace dyno
