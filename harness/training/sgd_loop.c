/* Batch-1 SGD on a perceptron with one hidden ReLU layer: many steps of every replicate of a pack, one replicate after the other.
 *
 * A step is a pass over the hidden weights that applies the update of the step before, W[j] -= x[j] v, and sums the pre-activations of
 * this one, h += x'[j] W[j]: as x is +1 or -1 both products are exact, and units that the ReLU has switched off have v = 0. The weights
 * lie in blocks of as many units as a vector of this machine has lanes, [block][input][lane], so that the pass is one stream; columns
 * beyond the width are zeros and stay zeros. The order of every sum is fixed by the width, the inputs and the lanes alone, so neither the
 * pack nor the chunk of steps changes a bit.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#if defined(__AVX512F__)
#define LANES 16
#elif defined(__AVX__)
#define LANES 8
#else
#define LANES 4
#endif
typedef float lanes __attribute__((vector_size(4 * LANES)));
typedef int32_t masks __attribute__((vector_size(4 * LANES)));

typedef struct {
    int64_t steps, replicates, inputs, width, classes;
} shape;

/* W -= v x */
static inline void update(lanes *restrict w, const float *x, lanes v, int64_t inputs) {
    for (int64_t j = 0; j < inputs; j++) w[j] -= v * x[j];
}

/* h = b + x W */
static inline lanes forward(const lanes *restrict w, const float *x, lanes b, int64_t inputs) {
    lanes h0 = b, h1 = {0}, h2 = {0}, h3 = {0};
    int64_t j = 0;
    for (; j + 4 <= inputs; j += 4) {
        h0 += w[j] * x[j];
        h1 += w[j + 1] * x[j + 1];
        h2 += w[j + 2] * x[j + 2];
        h3 += w[j + 3] * x[j + 3];
    }
    for (; j < inputs; j++) h0 += w[j] * x[j];
    return (h0 + h1) + (h2 + h3);
}

/* both in one pass: the update by the input of the step before, the sum with this one's */
static inline lanes both(lanes *restrict w, const float *before, lanes v, const float *x, lanes b, int64_t inputs) {
    lanes h0 = b, h1 = {0}, h2 = {0}, h3 = {0};
    int64_t j = 0;
    for (; j + 4 <= inputs; j += 4) {
        h0 += (w[j] -= v * before[j]) * x[j];
        h1 += (w[j + 1] -= v * before[j + 1]) * x[j + 1];
        h2 += (w[j + 2] -= v * before[j + 2]) * x[j + 2];
        h3 += (w[j + 3] -= v * before[j + 3]) * x[j + 3];
    }
    for (; j < inputs; j++) h0 += (w[j] -= v * before[j]) * x[j];
    return (h0 + h1) + (h2 + h3);
}

static inline float total(lanes sum) {
    for (int half = LANES / 2; half; half /= 2)
        for (int i = 0; i < half; i++) sum[i] += sum[i + half];
    return sum[0];
}

/* KL(y || softmax(z)) of the probabilities y, which is cross-entropy where y is a label; d becomes its derivative by z. */
static float divergence(const float *z, const float *y, float *d, int64_t classes) {
    double most = z[0], sum = 0, loss = 0;
    for (int64_t c = 1; c < classes; c++)
        if (z[c] > most) most = z[c];
    for (int64_t c = 0; c < classes; c++) sum += exp(z[c] - most);
    double scale = log(sum);
    for (int64_t c = 0; c < classes; c++) {
        double surprise = scale - (z[c] - most);
        if (y[c] != 0) loss += y[c] * (y[c] == 1 ? surprise : log(y[c]) + surprise);
        d[c] = (float)(exp(-surprise) - y[c]);
    }
    return (float)loss;
}

static void signs(const int64_t *tokens, float *x, int64_t inputs) {
    for (int64_t j = 0; j < inputs; j++) x[j] = (float)(1 - 2 * tokens[j]);
}

/* scratch, in lanes: hidden weights, head by class, pre-activations, biases and v by block, then signs of two steps, z, d */
static int64_t rooms(shape s, int64_t blocks) {
    int64_t floats = 2 * s.inputs + 2 * s.classes;
    return blocks * (s.inputs + s.classes + 3) + (floats + LANES - 1) / LANES;
}

static void one(shape s, const int64_t *tokens, const float *targets, const float *lrs, float *weight, float *bias, float *head,
                float *head_bias, float *losses, lanes *scratch) {
    int64_t blocks = (s.width + LANES - 1) / LANES;
    lanes *w = scratch, *out = w + blocks * s.inputs, *h = out + blocks * s.classes, *b = h + blocks, *v = b + blocks;
    float *x = (float *)(v + blocks), *before = x + s.inputs, *z = before + s.inputs, *d = z + s.classes;
    for (int64_t k = 0; k < blocks * LANES; k++) {
        int64_t block = k / LANES, lane = k % LANES;
        int there = k < s.width;
        b[block][lane] = there ? bias[k] : 0;
        for (int64_t j = 0; j < s.inputs; j++) w[block * s.inputs + j][lane] = there ? weight[j * s.width + k] : 0;
        for (int64_t c = 0; c < s.classes; c++) out[c * blocks + block][lane] = there ? head[k * s.classes + c] : 0;
    }
    for (int64_t t = 0; t < s.steps; t++) {
        float lr = lrs[t * s.replicates];
        float *last = before;
        before = x, x = last;
        signs(tokens + t * s.replicates * s.inputs, x, s.inputs);
        for (int64_t block = 0; block < blocks; block++) {
            lanes *mine = w + block * s.inputs;
            h[block] = t ? both(mine, before, v[block], x, b[block], s.inputs) : forward(mine, x, b[block], s.inputs);
        }
        for (int64_t c = 0; c < s.classes; c++) {
            lanes sum = {0};
            for (int64_t block = 0; block < blocks; block++) {
                masks off = h[block] <= 0; /* not of a NaN, which has to reach the loss */
                sum += (lanes)(~off & (masks)h[block]) * out[c * blocks + block];
            }
            z[c] = head_bias[c] + total(sum);
        }
        losses[t * s.replicates] = divergence(z, targets + t * s.replicates * s.classes, d, s.classes);
        for (int64_t block = 0; block < blocks; block++) {
            masks off = h[block] <= 0;
            lanes active = (lanes)(~off & (masks)h[block]), g = {0};
            for (int64_t c = 0; c < s.classes; c++) {
                lanes *mine = out + c * blocks + block;
                g += *mine * d[c];
                *mine -= active * (lr * d[c]);
            }
            v[block] = (lanes)(~off & (masks)(g * lr));
            b[block] -= v[block];
        }
        for (int64_t c = 0; c < s.classes; c++) head_bias[c] -= lr * d[c];
    }
    for (int64_t block = 0; block < blocks; block++) update(w + block * s.inputs, x, v[block], s.inputs);
    for (int64_t k = 0; k < s.width; k++) {
        int64_t block = k / LANES, lane = k % LANES;
        bias[k] = b[block][lane];
        for (int64_t j = 0; j < s.inputs; j++) weight[j * s.width + k] = w[block * s.inputs + j][lane];
        for (int64_t c = 0; c < s.classes; c++) head[k * s.classes + c] = out[c * blocks + block][lane];
    }
}

/* steps >= 1; tokens [steps, replicates, inputs] of 0 and 1, targets [steps, replicates, classes], lrs and losses [steps, replicates];
 * weight [inputs, width], bias [width], head [width, classes] and head_bias [classes] of the first replicate, `stride` floats before
 * those of the next. Returns 0, or 1 where there is no memory. */
int train(int64_t steps, int64_t replicates, int64_t inputs, int64_t width, int64_t classes, int64_t stride, const int64_t *tokens,
          const float *targets, const float *lrs, float *weight, float *bias, float *head, float *head_bias, float *losses) {
    shape s = {steps, replicates, inputs, width, classes};
    lanes *scratch = aligned_alloc(sizeof(lanes), rooms(s, (width + LANES - 1) / LANES) * sizeof(lanes));
    if (!scratch) return 1;
    for (int64_t r = 0; r < replicates; r++)
        one(s, tokens + r * inputs, targets + r * classes, lrs + r, weight + r * stride, bias + r * stride, head + r * stride,
            head_bias + r * stride, losses + r, scratch);
    free(scratch);
    return 0;
}
