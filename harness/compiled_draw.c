/* The keyed draws of draw.py in C: Philox-4x32-10 in its counter layout, factors of dropout, and paths of Markov chains. Equal in every bit
 * to torch's. */
#include <stdint.h>

#define MANY 32 /* blocks, made side by side; GCC puts fewer into no vectors */

typedef struct {
    uint32_t k0, k1, step, selector;
} source;

/* the words of the blocks first … first + MANY - 1, [block][word] */
static inline void philox(source of, uint64_t first, uint32_t *restrict out) {
    uint32_t c0[MANY], c1[MANY], c2[MANY], c3[MANY];
    for (int i = 0; i < MANY; i++) {
        c0[i] = (uint32_t)(first + i);
        c1[i] = of.step;
        c2[i] = of.selector;
        c3[i] = (uint32_t)((first + i) >> 32);
    }
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < MANY; i++) {
            uint64_t p0 = (uint64_t)c0[i] * 0xD2511F53u, p1 = (uint64_t)c2[i] * 0xCD9E8D57u;
            c0[i] = (uint32_t)(p1 >> 32) ^ c1[i] ^ of.k0;
            c2[i] = (uint32_t)(p0 >> 32) ^ c3[i] ^ of.k1;
            c1[i] = (uint32_t)p1;
            c3[i] = (uint32_t)p0;
        }
        of.k0 += 0x9E3779B9u;
        of.k1 += 0xBB67AE85u;
    }
    for (int i = 0; i < MANY; i++) {
        out[4 * i] = c0[i];
        out[4 * i + 1] = c1[i];
        out[4 * i + 2] = c2[i];
        out[4 * i + 3] = c3[i];
    }
}

/* Elements start … start + count - 1 of one replicate's draw: as int64, or in (0, 1) as (word + 1/2) / 2^32. */
#define FILL(name, type, value)                                                             \
    static void name(source of, int64_t start, int64_t count, type *restrict out) {         \
        uint32_t words[4 * MANY];                                                           \
        while (count > 0) {                                                                 \
            int64_t skip = start & 3, ready = 4 * MANY - skip;                              \
            philox(of, (uint64_t)start >> 2, words);                                        \
            if (ready > count) ready = count;                                               \
            for (int64_t i = 0; i < ready; i++) {                                           \
                uint32_t word = words[skip + i];                                            \
                out[i] = value;                                                             \
            }                                                                               \
            out += ready, start += ready, count -= ready;                                   \
        }                                                                                   \
    }
FILL(fill_words, int64_t, (int64_t)word)
FILL(fill_quantiles, double, ((double)word + 0.5) * 0x1p-32)

static source source_of(const int64_t *seeds, const int64_t *steps, int64_t selector, int64_t r) {
    return (source){(uint32_t)seeds[r], (uint32_t)((uint64_t)seeds[r] >> 32), (uint32_t)steps[r], (uint32_t)selector};
}

/* out [replicates, rows, per_row]: elements from `start` on or, where picked is not NULL, the rows numbered picked [replicates, rows] */
#define DRAW(name, fill, type)                                                                                         \
    void name(int64_t replicates, int64_t rows, int64_t per_row, int64_t start, int64_t selector, const int64_t *seeds, \
              const int64_t *steps, const int64_t *picked, type *out) {                                                \
        for (int64_t r = 0; r < replicates; r++) {                                                                     \
            source of = source_of(seeds, steps, selector, r);                                                          \
            type *own = out + r * rows * per_row;                                                                      \
            if (!picked) fill(of, start, rows * per_row, own);                                                         \
            for (int64_t b = 0; picked && b < rows; b++)                                                               \
                fill(of, picked[r * rows + b] * per_row, per_row, own + b * per_row);                                  \
        }                                                                                                              \
    }
DRAW(words, fill_words, int64_t)
DRAW(quantiles, fill_quantiles, double)

/* Factors of dropout, out [replicates, count], at rates [replicates]: 16 bits of the words an element, the low ones first; 0 where they are
 * below the replicate's rate. */
void factors(int64_t replicates, int64_t count, int64_t selector, const int64_t *seeds, const int64_t *steps, const float *rates, float *out) {
    uint32_t words[4 * MANY];
    for (int64_t r = 0; r < replicates; r++) {
        source of = source_of(seeds, steps, selector, r);
        uint32_t level = (uint32_t)(rates[r] * 65536);
        float scale = 1 / (1 - (float)level / 65536), *own = out + r * count;
        for (int64_t first = 0; first < count; first += 8 * MANY) {
            philox(of, (uint64_t)first >> 3, words);
            int64_t ready = count - first < 8 * MANY ? count - first : 8 * MANY;
            for (int64_t i = 0; i < ready; i++) {
                uint32_t bits = words[i >> 1] >> (16 * (i & 1)) & 0xFFFFu;
                own[first + i] = bits < level ? 0 : scale;
            }
        }
    }
}

/* Tokens of chains, in place: out [replicates, rows, length] holds words, of which those from place `kept` on become tokens. A token is
 * the number of bounds that its word reaches, of the law [symbols] of its context; laws [replicates, rows, contexts, symbols]; context
 * [replicates, rows] is the number of the tokens before, and is overwritten. Strings go side by side, as a token waits for the one before it. */
#define BESIDE 8
void chains(int64_t strings, int64_t length, int64_t kept, int64_t contexts, int64_t symbols, const double *laws, int64_t *context,
            int64_t *out) {
    for (int64_t from = 0; from < strings; from += BESIDE) {
        int64_t to = from + BESIDE < strings ? from + BESIDE : strings;
        for (int64_t place = kept; place < length; place++) {
            for (int64_t b = from; b < to; b++) {
                const double *law = laws + (b * contexts + context[b]) * symbols;
                double word = (double)out[b * length + place], below = 0;
                int64_t token = 0;
                for (int64_t s = 0; s < symbols - 1; s++) {
                    below += law[s];
                    token += word >= below * 0x1p32;
                }
                out[b * length + place] = token;
                context[b] = (int64_t)((uint64_t)(context[b] * symbols + token) % (uint64_t)contexts);
            }
        }
    }
}
