// Rates of one thread in its own processor time: the best of some passes over memory, and of some
// rounds of multiply-adds in registers.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>

#if defined(__AVX512F__)
constexpr int WIDTH = 64;
#elif defined(__AVX__)
constexpr int WIDTH = 32;
#else
constexpr int WIDTH = 16;
#endif
// Chains of multiply-adds that do not wait for each other; with two constants they fit 16 registers.
constexpr int CHAINS = 12;
constexpr int NUM_REPEATS = 12;
constexpr int64_t NUM_ROUNDS = 20000;
constexpr int64_t TRAFFIC_BYTES = 1 << 23;  // of a timed row of passes, unless one pass has more

typedef int64_t Word __attribute__((vector_size(WIDTH)));
static thread_local volatile int64_t sink;

static void read_all(const char* memory, int64_t num_bytes) {
    const Word* words = reinterpret_cast<const Word*>(memory);
    Word marks[8] = {};
    for (int64_t i = 0; i + 8 <= num_bytes / WIDTH; i += 8)
        for (int k = 0; k < 8; k++) marks[k] |= words[i + k];
    for (int k = 1; k < 8; k++) marks[0] |= marks[k];
    sink = marks[0][0];
}

static void write_all(char* memory, int64_t num_bytes, int64_t value) {
    Word* words = reinterpret_cast<Word*>(memory);
    const Word filled = Word{} + value;
    for (int64_t i = 0; i < num_bytes / WIDTH; i++) words[i] = filled;
}

static void copy_half(char* memory, int64_t num_bytes) {
    const Word* from = reinterpret_cast<const Word*>(memory);
    Word* to = reinterpret_cast<Word*>(memory + num_bytes / 2);
    for (int64_t i = 0; i < num_bytes / 2 / WIDTH; i++) to[i] = from[i];
}

template <typename T>
static void multiply_add(int64_t num_rounds) {
    typedef T Vector __attribute__((vector_size(WIDTH)));
    const volatile float factor = 0.5f, summand = 0.25f;
    const Vector a = Vector{} + static_cast<T>(factor), b = Vector{} + static_cast<T>(summand);
    Vector x[CHAINS];
    for (int k = 0; k < CHAINS; k++) x[k] = b * static_cast<T>(k);
    for (int64_t i = 0; i < num_rounds; i++)
        for (int k = 0; k < CHAINS; k++) x[k] = x[k] * a + b;
    for (int k = 1; k < CHAINS; k++) x[0] += x[k];
    sink = static_cast<int64_t>(static_cast<float>(x[0][0]));
}

static double now_s() {
    timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec + 1e-9 * time.tv_nsec;
}

static double pass_s(int kind, char* memory, int64_t num_bytes, int64_t num_passes) {
    const double start = now_s();
    for (int64_t pass = 0; pass < num_passes; pass++) {
        switch (kind) {
            case 0: read_all(memory, num_bytes); break;
            case 1: write_all(memory, num_bytes, pass); break;
            case 2: std::memset(memory, static_cast<int>(pass), num_bytes); break;
            case 3: copy_half(memory, num_bytes); break;
            default: std::memcpy(memory + num_bytes / 2, memory, num_bytes / 2);
        }
        asm volatile("" : : "r"(memory) : "memory");
    }
    return now_s() - start;
}

// Write the bytes a second that one thread reads, writes, and copies from half to half of a memory.
extern "C" void bytes_per_s(int64_t most_bytes, double* rates) {
    const int64_t num_bytes = std::max<int64_t>(4096, most_bytes & ~4095);
    char* memory = static_cast<char*>(std::aligned_alloc(4096, num_bytes));
    std::memset(memory, 1, num_bytes);
    const int64_t num_passes = num_bytes < TRAFFIC_BYTES ? TRAFFIC_BYTES / num_bytes : 1;
    double least_s[3] = {1e9, 1e9, 1e9};
    for (int repeat = 0; repeat < NUM_REPEATS; repeat++)
        for (int kind = 0; kind < 5; kind++) {
            double& least = least_s[(kind + 1) / 2];
            least = std::min(least, pass_s(kind, memory, num_bytes, num_passes));
        }
    for (int k = 0; k < 3; k++) rates[k] = num_bytes * num_passes / least_s[k];
    std::free(memory);
}

template <typename T>
static double multiply_adds_per_s() {
    double least_s = 1e9;
    for (int repeat = 0; repeat < 4 * NUM_REPEATS; repeat++) {
        const double start = now_s();
        multiply_add<T>(NUM_ROUNDS);
        least_s = std::min(least_s, now_s() - start);
    }
    return CHAINS * static_cast<double>(WIDTH / sizeof(T)) * NUM_ROUNDS / least_s;
}

// The operations a second of one thread in a type of so many bytes, two for each multiply-add; where
// it has no vectors of two bytes, those of float32.
extern "C" double operations_per_s(int num_bytes) {
#if defined(__AVX512FP16__) || defined(__ARM_FEATURE_FP16_VECTOR_ARITHMETIC)
    if (num_bytes == 2) return 2 * multiply_adds_per_s<_Float16>();
#endif
    return 2 * (num_bytes == 8 ? multiply_adds_per_s<double>() : multiply_adds_per_s<float>());
}
