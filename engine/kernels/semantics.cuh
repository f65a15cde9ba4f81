// The numeric contract in code (docs/contract.md): keys, hash, exp and log, gradients, quantising, scores, tie order.
//
// Included by every kernel and by the native backend, so each rule stands once. Compiled by the C++ compiler and by
// NVRTC: no header, no std::, no CUDA builtin, no libm. Compile with -ffp-contract=off (C++) or --fmad=false (NVRTC):
// a contracted multiply-add changes the last bit and with it the model.
#pragma once

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define DYNO_FN __host__ __device__ __forceinline__
#else
#define DYNO_FN inline __attribute__((always_inline))
#endif

namespace dyno {

using u32 = unsigned int;
using u64 = unsigned long long;
using i32 = int;
using i64 = long long;

constexpr float FLOAT_MAX = 3.40282346638528859812e+38f;
constexpr double ROUNDING_MAGIC = 6755399441055744.0;  // 1.5 * 2^52: adding it leaves no fraction bits
constexpr int QUANTISED_BITS = 28;                     // |q| <= 2^28

// ---- bits ----------------------------------------------------------------------------------------------------

DYNO_FN u64 bits_of(double x) {
    union { double value; u64 bits; } pun;
    pun.value = x;
    return pun.bits;
}

DYNO_FN double double_of(u64 bits) {
    union { u64 bits; double value; } pun;
    pun.bits = bits;
    return pun.value;
}

DYNO_FN u32 bits_of(float x) {
    union { float value; u32 bits; } pun;
    pun.value = x;
    return pun.bits;
}

DYNO_FN float float_of(u32 bits) {
    union { u32 bits; float value; } pun;
    pun.bits = bits;
    return pun.value;
}

DYNO_FN bool is_finite(double x) { return (bits_of(x) & 0x7ff0000000000000ull) != 0x7ff0000000000000ull; }

// 2^exponent for a normal exponent, [-1022, 1023].
DYNO_FN double power_of_two(int exponent) { return double_of(static_cast<u64>(exponent + 1023) << 52); }

// floor(log2(x)) of a positive normal double; every positive float32, denormals included, is one once promoted.
DYNO_FN int floor_log2(double x) { return static_cast<int>(bits_of(x) >> 52) - 1023; }

// Round to the nearest integer, ties to even, for |x| < 2^51.
DYNO_FN double round_even(double x) { return (x + ROUNDING_MAGIC) - ROUNDING_MAGIC; }

DYNO_FN float saturate(double x) {
    if (x > static_cast<double>(FLOAT_MAX)) return FLOAT_MAX;
    if (x < -static_cast<double>(FLOAT_MAX)) return -FLOAT_MAX;
    return static_cast<float>(x);
}

// Unsigned integers that compare as the values do; -0.0 and 0.0 share one.
DYNO_FN u64 order_key(double x) {
    u64 bits = bits_of(x);
    if ((bits << 1) == 0) bits = 0;
    return (bits >> 63) ? ~bits : bits ^ 0x8000000000000000ull;
}

DYNO_FN u32 order_key(float x) {
    u32 bits = bits_of(x);
    if ((bits << 1) == 0) bits = 0;
    return (bits >> 31) ? ~bits : bits ^ 0x80000000u;
}

// ---- counter hash (contract §2) --------------------------------------------------------------------------------

DYNO_FN u64 mix(u64 z) {
    z ^= z >> 30;
    z *= 0xBF58476D1CE4E5B9ull;
    z ^= z >> 27;
    z *= 0x94D049BB133111EBull;
    z ^= z >> 31;
    return z;
}

DYNO_FN u64 counter_hash(u64 seed, u64 a, u64 b) {
    const u64 golden = 0x9E3779B97F4A7C15ull;
    return mix(mix(seed + golden * (a + 1)) + golden * (b + 1));
}

// ---- exp, log, sigmoid (contract §4) -----------------------------------------------------------------------------

constexpr double LN2_HIGH = 6.93147180369123816490e-01;
constexpr double LN2_LOW = 1.90821492927058770002e-10;

DYNO_FN double contract_exp(double x) {
    x = x < -708.0 ? -708.0 : x;
    x = x > 709.0 ? 709.0 : x;
    const double k = round_even(x * 1.4426950408889634);
    const double r = (x - k * LN2_HIGH) - k * LN2_LOW;
    double p = 1.0 / 6227020800.0;
    p = p * r + 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    return p * power_of_two(static_cast<int>(k));
}

DYNO_FN double contract_log(double x) {
    x = x < 2.2250738585072014e-308 ? 2.2250738585072014e-308 : x;
    const u64 bits = bits_of(x);
    u32 high = static_cast<u32>(bits >> 32) + (0x3ff00000u - 0x3fe6a09eu);
    const double k = static_cast<double>(static_cast<int>(high >> 20) - 0x3ff);
    high = (high & 0x000fffffu) + 0x3fe6a09eu;
    const double f = double_of((static_cast<u64>(high) << 32) | (bits & 0xffffffffull)) - 1.0;
    const double s = f / (2.0 + f);
    const double z = s * s;
    const double w = z * z;
    const double t1 = w * (3.999999999940941908e-01 + w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01));
    const double t2 = z * (6.666666666666735130e-01 +
                           w * (2.857142874366239149e-01 + w * (1.818357216161805012e-01 + w * 1.479819860511658591e-01)));
    const double residual = t2 + t1;
    const double q = (0.5 * f) * f;
    return (((s * (q + residual) + k * LN2_LOW) - q) + f) + k * LN2_HIGH;
}

DYNO_FN double sigmoid(double x) { return 1.0 / (1.0 + contract_exp(-x)); }

// ---- gradients (contract §5) ---------------------------------------------------------------------------------------

enum class Objective : int { squared_error = 0, logistic = 1, poisson = 2 };

struct Gradient {
    double g;
    double h;
};

DYNO_FN double poisson_mean(double margin) {
    margin = margin < -80.0 ? -80.0 : margin;
    margin = margin > 80.0 ? 80.0 : margin;
    return contract_exp(margin);
}

template <Objective objective>
DYNO_FN double response(double margin) {
    if (objective == Objective::squared_error) return margin;
    return objective == Objective::logistic ? sigmoid(margin) : poisson_mean(margin);
}

template <Objective objective>
DYNO_FN Gradient gradient(double margin, double label) {
    const double mean = response<objective>(margin);
    if (objective == Objective::squared_error) return {mean - label, 1.0};
    if (objective == Objective::poisson) return {mean - label, mean};
    const double h = mean * (1.0 - mean);
    return {mean - label, h < 1e-16 ? 1e-16 : h};
}

// Weights that are all frequencies multiply the quantised integers, so that weight k is exactly k copies of the row.
constexpr float LARGEST_FREQUENCY = 7.0f;  // 7 * 2^28 still fits an int32

DYNO_FN bool is_frequency(float weight) {
    return weight <= LARGEST_FREQUENCY && static_cast<float>(static_cast<i32>(weight)) == weight;
}

// ---- quantising (contract §6) ----------------------------------------------------------------------------------------

DYNO_FN int quantise_exponent(float maximum) {
    return maximum > 0.0f ? QUANTISED_BITS - 1 - floor_log2(static_cast<double>(maximum)) : 0;
}

DYNO_FN i32 quantise(float value, double scale) {
    return static_cast<i32>(round_even(static_cast<double>(value) * scale));
}

DYNO_FN i32 quantise_hessian(float value, double scale) {
    const i32 q = quantise(value, scale);
    return q < 1 ? 1 : q;
}

// ---- scores (contract §7) ----------------------------------------------------------------------------------------------

struct Regularisation {
    double lambda;
    double alpha;
    double gamma;
    double min_child_weight;
    i64 min_samples_leaf;
};

DYNO_FN double soft_threshold(double g, double alpha) {
    if (g > alpha) return g - alpha;
    if (g < -alpha) return g + alpha;
    return 0.0;
}

DYNO_FN double score(double g, double h, const Regularisation& reg) {
    const double s = soft_threshold(g, reg.alpha);
    return (s * s) / (h + reg.lambda);
}

DYNO_FN double leaf_weight(double g, double h, const Regularisation& reg) {
    return -soft_threshold(g, reg.alpha) / (h + reg.lambda);
}

DYNO_FN double split_gain(double score_left, double score_right, double score_own, double gamma) {
    return 0.5 * ((score_left + score_right) - score_own) - gamma;
}

DYNO_FN bool is_valid_gain(double gain) { return gain > 0.0 && is_finite(gain); }

// One side of a candidate: h_sum the exact integer, h the dequantised hessian.
DYNO_FN bool is_feasible_side(i64 h_sum, double h, i64 rows, const Regularisation& reg) {
    return h_sum > 0 && rows >= reg.min_samples_leaf && h >= reg.min_child_weight;
}

// ---- tie order (contract §8) ---------------------------------------------------------------------------------------------

struct Candidate {
    double gain;       // 0 when there is no valid split
    i32 feature;
    i32 bin;
    i32 missing_left;  // 1 or 0
};

DYNO_FN bool is_better(const Candidate& a, const Candidate& b) {
    if (a.gain != b.gain) return a.gain > b.gain;
    if (a.feature != b.feature) return a.feature < b.feature;
    if (a.bin != b.bin) return a.bin < b.bin;
    return a.missing_left > b.missing_left;
}

// Where no row is missing, a missing value met later goes to the heavier child.
DYNO_FN i32 unseen_goes_left(i64 h_left, i64 h_right) { return h_left >= h_right ? 1 : 0; }

// ---- partition (contract §10) ---------------------------------------------------------------------------------------

DYNO_FN bool goes_left(i32 bin, i32 split_bin, i32 missing_bin, i32 missing_left) {
    return bin == missing_bin ? missing_left != 0 : bin <= split_bin;
}

}  // namespace dyno
