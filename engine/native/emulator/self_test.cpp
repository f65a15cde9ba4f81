// Small kernels that test the emulator itself: what each primitive does, and what each mistake looks like. They are in
// a list of their own and no part of the product (tests/engine/device/test_emulated.py).
#define DYNO_KERNEL_LIST self_test_kernels
#include "portable.cuh"

namespace dyno {
namespace {

struct SelfTest {
    const u32* input;
    u32* output;
    u64* wide;
    i64 n;
};

u32 global_thread() { return block() * block_size() + thread(); }

// ---- what the primitives do -----------------------------------------------------------------------------------------

DYNO_KERNEL(self_test_names, SelfTest, 1024) {
    u32* own = state->output + 6 * global_thread();
    const u32 names[] = {thread(), block(), block_size(), grid_size(), lane(), warp()};
    for (int i = 0; i < 6; ++i) own[i] = names[i];
}

DYNO_KERNEL(self_test_reverse, SelfTest, 1024) {
    u32* values = shared<u32>(0);
    values[thread()] = state->input[global_thread()];
    sync_block();
    state->output[global_thread()] = values[block_size() - 1 - thread()];
}

DYNO_KERNEL(self_test_shuffles, SelfTest, 1024) {
    const u32 value = state->input[global_thread()];
    u32* own = state->output + 4 * global_thread();
    own[0] = shuffle(WHOLE_WARP, value, (lane() + 5) % WARP_SIZE);
    own[1] = shuffle_up(WHOLE_WARP, value, 3);
    own[2] = shuffle_down(WHOLE_WARP, value, 3);
    own[3] = shuffle_xor(WHOLE_WARP, value, 9);
}

// Sums of 64-bit numbers: up to each lane by shuffle_up, of the warp by shuffle_xor; the latter goes through double.
DYNO_KERNEL(self_test_scan, SelfTest, 1024) {
    u64 sum = state->wide[global_thread()];
    double total = static_cast<double>(sum);
    for (u32 step = 1; step < WARP_SIZE; step *= 2) {
        const u64 below = shuffle_up(WHOLE_WARP, sum, step);
        if (lane() >= step) sum += below;
        total += shuffle_xor(WHOLE_WARP, total, step);
    }
    state->wide[global_thread()] = sum;
    state->output[global_thread()] = static_cast<u32>(total);
}

// Only the first n lanes of a warp take part, and those as two groups that diverge.
DYNO_KERNEL(self_test_votes, SelfTest, 1024) {
    const u32 value = state->input[global_thread()];
    u32* own = state->output + 4 * global_thread();
    if (lane() >= state->n) return;
    const u32 present = static_cast<u32>((1ull << state->n) - 1);
    own[0] = match(present, value);
    const bool odd = value % 2 == 1;
    const u32 same = ballot(present, odd) ^ (odd ? 0 : present);
    if (odd) own[1] = ballot(same, value % 3 == 0);
    else own[1] = ballot(same, value % 5 == 0);
    own[2] = any(present, value == 7);
    own[3] = all(present, value < 90);
}

// Counts in shared memory, then in global; and the largest value, and the last exchanged.
DYNO_KERNEL(self_test_atomics, SelfTest, 1024) {
    u32* counts = shared<u32>(0);
    for (u32 bin = thread(); bin < 16; bin += block_size()) counts[bin] = 0;
    sync_block();
    const u32 value = state->input[global_thread()];
    atomic_add(&counts[value % 16], 1u);
    sync_block();
    for (u32 bin = thread(); bin < 16; bin += block_size()) atomic_add(&state->wide[bin], u64{counts[bin]});
    atomic_max(&state->output[0], value);
    atomic_exchange(&state->output[1], value);
}

DYNO_KERNEL(self_test_tickets, SelfTest, 1024) {
    state->output[atomic_add(&state->output[state->n], 1u)] = global_thread();
}

// The block that comes last adds up what all wrote.
DYNO_KERNEL(self_test_last, SelfTest, 1024) {
    state->output[block()] = block() + 1;
    if (atomic_add_ordered(&state->output[grid_size()], 1) != grid_size() - 1) return;
    u32 sum = 0;
    for (u32 i = 0; i < grid_size(); ++i) sum += state->output[i];
    *state->wide = sum;
}

// output[i] = the sum of input[0 .. i], one number a block, each block waiting for the one before.
// wide[i] is the flag of block i, 0 until its sum is there.
u32 look_back(SelfTest* state, u32 place) {
    if (place == 0) return 0;
    while (load_acquire(&state->wide[place - 1]) == 0) pause();
    return state->output[place - 1];
}

DYNO_KERNEL(self_test_look_back, SelfTest, 1024) {
    u32* place = shared<u32>(0);
    if (thread() == 0) *place = atomic_add(&state->output[state->n], 1u);
    sync_block();
    if (thread() != 0) return;
    state->output[*place] = look_back(state, *place) + state->input[*place];
    store_release(&state->wide[*place], u64{1});
}

// Half of a denormal, and a quotient that rounds up.
DYNO_KERNEL(self_test_floating_point, SelfTest, 1024) {
    const float* input = reinterpret_cast<const float*>(state->input);
    state->output[0] = bits_of(input[0] / input[1]);
    state->output[1] = bits_of(input[1] / input[2]);
}

DYNO_KERNEL(self_test_barriers, SelfTest, 1024) {
    for (i64 i = 0; i < state->n; ++i) sync_block();
}

DYNO_KERNEL(self_test_collectives, SelfTest, 1024) {
    for (i64 i = 0; i < state->n; ++i) sync_warp(WHOLE_WARP);
}

DYNO_KERNEL(self_test_many_atomics, SelfTest, 1024) {
    u32* counts = shared<u32>(0);
    for (i64 i = 0; i < state->n; ++i) atomic_add(&counts[thread()], 1u);
}

// ---- what mistakes look like ----------------------------------------------------------------------------------------

DYNO_KERNEL(self_test_reverse_without_barrier, SelfTest, 1024) {
    u32* values = shared<u32>(0);
    values[thread()] = state->input[global_thread()];
    state->output[global_thread()] = values[block_size() - 1 - thread()];
}

DYNO_KERNEL(self_test_plain_add, SelfTest, 1024) {
    u32* count = shared<u32>(0);
    if (thread() == 0) *count = 0;
    sync_block();
    *count += 1;
    sync_block();
    state->output[global_thread()] = *count;
}

// A shuffle is a meeting of lanes, but orders no memory: sync_warp does.
DYNO_KERNEL(self_test_shuffle_is_no_barrier, SelfTest, 1024) {
    u32* values = shared<u32>(0);
    values[thread()] = state->input[global_thread()];
    const u32 source = shuffle(WHOLE_WARP, (lane() + 1) % WARP_SIZE, lane());
    state->output[global_thread()] = values[source];
}

DYNO_KERNEL(self_test_float_sum, SelfTest, 1024) {
    u32* place = shared<u32>(0);
    float* sum = shared<float>(4);
    if (thread() == 0) *place = 0;
    if (thread() == 0) *sum = 0.0f;
    sync_block();
    atomic_add(place, 1u);  // where the schedule may change hands
    *sum += 1.0f / static_cast<float>(1 + thread());
    sync_block();
    state->output[global_thread()] = bits_of(*sum);
}

DYNO_KERNEL(self_test_flag_before_value, SelfTest, 1024) {
    u32* place = shared<u32>(0);
    if (thread() == 0) *place = atomic_add(&state->output[state->n], 1u);
    sync_block();
    if (thread() != 0) return;
    const u32 before = look_back(state, *place);
    store_release(&state->wide[*place], u64{1});
    state->output[*place] = before + state->input[*place];
}

DYNO_KERNEL(self_test_waits_for_block_number, SelfTest, 1024) {
    state->output[block()] = look_back(state, block()) + state->input[block()];
    store_release(&state->wide[block()], u64{1});
}

DYNO_KERNEL(self_test_leaves_before_barrier, SelfTest, 1024) {
    if (thread() == 7) return;
    sync_block();
}

DYNO_KERNEL(self_test_two_barriers, SelfTest, 1024) {
    if (thread() % 2 == 0) sync_block();
    else sync_block();
}

DYNO_KERNEL(self_test_mask_without_itself, SelfTest, 1024) { sync_warp(0xfffffffe); }

DYNO_KERNEL(self_test_mask_with_absent, SelfTest, 1024) {
    if (lane() == 3) return;
    state->output[global_thread()] = ballot(WHOLE_WARP, true);
}

DYNO_KERNEL(self_test_different_collectives, SelfTest, 1024) {
    if (lane() < 16) state->output[global_thread()] = ballot(WHOLE_WARP, true);
    else state->output[global_thread()] = any(WHOLE_WARP, true);
}

DYNO_KERNEL(self_test_shuffle_from_outside, SelfTest, 1024) {
    if (lane() < 16) state->output[global_thread()] = shuffle(0xffff, thread(), lane() + 16);
}

DYNO_KERNEL(self_test_writes_past_end, SelfTest, 1024) {
    if (global_thread() == 0) state->output[state->n] = 1;
}

DYNO_KERNEL(self_test_writes_past_shared, SelfTest, 1024) { shared<u32>(0)[block_size()] = 1; }

DYNO_KERNEL(self_test_misaligned, SelfTest, 1024) { *shared<u64>(4) = 1; }

DYNO_KERNEL(self_test_wide_atomic_on_shared, SelfTest, 1024) { atomic_add(shared<u64>(0), u64{1}); }

DYNO_KERNEL(self_test_reads_across_words, SelfTest, 1024) {
    *state->wide = *reinterpret_cast<const u64*>(state->input + 1);
}

DYNO_KERNEL(self_test_reads_unwritten, SelfTest, 1024) {
    state->output[global_thread()] = shared<u32>(0)[thread()] ^ state->input[global_thread()];
}

}  // namespace
}  // namespace dyno
