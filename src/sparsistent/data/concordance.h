/* How many earlier samples have a smaller rank: the sets behind concordance.pyx.

   A set of positions 0 to n - 1 has a bit for each, 64 to a word. A word has a count of all bits in
   the words before it, up to the last multiple of 16 words; 16 words have one of all such counts
   before them, and so on: a level for each factor of 16. A new bit is one addition of 16 numbers on
   each level, a question one number on each, and both take the same time whatever the ranks. */

#ifndef SPARSISTENT_CONCORDANCE_H
#define SPARSISTENT_CONCORDANCE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { WORD_BITS = 64, FANOUT = 16, MAX_LEVELS = 8 };

/* Levels start at counts + start[level]. */
typedef struct {
    uint64_t *words;
    int32_t *counts;
    ptrdiff_t start[MAX_LEVELS], n_words, n_counts;
    int levels;
} Positions;

/* The sizes of a set of n positions; the caller provides words and counts. */
static void measure(Positions *set, ptrdiff_t n)
{
    ptrdiff_t nodes = set->n_words = n / WORD_BITS + 1;
    set->levels = 0;
    set->n_counts = 0;
    do {
        set->start[set->levels++] = set->n_counts;
        nodes = (nodes + FANOUT - 1) / FANOUT;
        set->n_counts += nodes * FANOUT;
    } while (nodes > 1);
}

#if defined(__GNUC__)
#define INLINED static inline __attribute__((always_inline))
/* Compilers do not find by themselves that 16 additions are one or two of vectors. */
typedef int32_t Counts __attribute__((vector_size(FANOUT * 4), aligned(4), may_alias));
#else
#define INLINED static inline
#endif
#if defined(__x86_64__) && defined(__GNUC__)
#define HAS_AVX2_VERSION
#endif

/* Zeros and ones: from FANOUT - 1 - d on, what is added to 16 counts after a bit below the d-th. */
static const int32_t STEPS[2 * FANOUT] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                                          1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

INLINED int count_bits(uint64_t word)
{
#if defined(__GNUC__)
    return __builtin_popcountll(word);
#else
    word -= (word >> 1) & 0x5555555555555555u;
    word = (word & 0x3333333333333333u) + ((word >> 2) & 0x3333333333333333u);
    return (int)((((word + (word >> 4)) & 0x0f0f0f0f0f0f0f0fu) * 0x0101010101010101u) >> 56);
#endif
}

/* How many positions of the set are smaller. */
INLINED int64_t below(const Positions *set, int levels, uint32_t position)
{
    uint32_t word = position / WORD_BITS;
    uint64_t bit = (uint64_t)1 << position % WORD_BITS;
    int64_t total = count_bits(set->words[word] & (bit - 1));
    for (int level = 0; level < levels; level++, word /= FANOUT)
        total += set->counts[set->start[level] + word];
    return total;
}

INLINED void insert(const Positions *set, int levels, uint32_t position)
{
    uint32_t word = position / WORD_BITS;
    set->words[word] |= (uint64_t)1 << position % WORD_BITS;
    for (int level = 0; level < levels; level++, word /= FANOUT) {
        int32_t *counts = set->counts + set->start[level] + word / FANOUT * FANOUT;
        const int32_t *steps = STEPS + FANOUT - 1 - word % FANOUT;
#if defined(__GNUC__)
        *(Counts *)counts += *(const Counts *)steps;
#else
        for (int k = 0; k < FANOUT; k++)
            counts[k] += steps[k];
#endif
    }
}

/* For all samples in the given order, those before them that are smaller, plus those that are not
   larger. With ties or missing values the samples of a group do not count for each other; of the
   other column first, last and own are the positions of its group and of itself. */
INLINED int64_t compare_samples(const Positions *set, int levels, int has_groups,
                                const int32_t *order, const int32_t *ends, ptrdiff_t m,
                                const int32_t *own, ptrdiff_t n)
{
    const int32_t *first = own + n, *last = first + n;
    int64_t total = 0;
    if (!has_groups) {
        for (ptrdiff_t k = 0; k < m; k++) {
            uint32_t position = (uint32_t)own[order[k]];
            total += below(set, levels, position);
            insert(set, levels, position);
        }
        return 2 * total;
    }
    for (ptrdiff_t begin = 0, end; begin < m; begin = end) {
        end = ends[begin];
        for (ptrdiff_t k = begin; k < end; k++) {
            total += below(set, levels, (uint32_t)first[order[k]]);
            total += below(set, levels, (uint32_t)last[order[k]]);
        }
        for (ptrdiff_t k = begin; k < end; k++)
            insert(set, levels, (uint32_t)own[order[k]]);
    }
    return total;
}

/* Up to 1,024 samples have one level, which then is no loop. */
#define COMPARE(name, attributes)                                                                  \
    attributes static int64_t name(const Positions *set, int has_groups, const int32_t *order,     \
                                   const int32_t *ends, ptrdiff_t m, const int32_t *own,           \
                                   ptrdiff_t n)                                                    \
    {                                                                                              \
        memset(set->words, 0, (size_t)set->n_words * sizeof *set->words);                          \
        memset(set->counts, 0, (size_t)set->n_counts * sizeof *set->counts);                       \
        if (set->levels == 1 && !has_groups)                                                       \
            return compare_samples(set, 1, 0, order, ends, m, own, n);                             \
        return compare_samples(set, set->levels, has_groups, order, ends, m, own, n);              \
    }
COMPARE(compare_portably, )
#ifdef HAS_AVX2_VERSION
COMPARE(compare_avx2, __attribute__((target("avx2,popcnt,bmi,bmi2"))))
#endif

static int64_t compare(const Positions *set, int has_groups, const int32_t *order,
                       const int32_t *ends, ptrdiff_t m, const int32_t *own, ptrdiff_t n)
{
#ifdef HAS_AVX2_VERSION
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2"))
        return compare_avx2(set, has_groups, order, ends, m, own, n);
#endif
    return compare_portably(set, has_groups, order, ends, m, own, n);
}

#endif
