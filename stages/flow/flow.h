/* A formulation: what is trained (parameters), what is lost (objective) and how text is drawn.
 *
 * One file per formulation (flow/elf.c, cfm.c, ar.c, t5.c, autoencoder.c), the same set of
 * functions in each; training, validation, sampling and evaluation know only this header.
 * Everything random is keyed by the global sample index in the batch, so that losses do not depend
 * on ranks, micro-shards or batch neighbours (R-ORD-5, R-DLM-1).
 */
#ifndef STAGES_FLOW_FLOW_H
#define STAGES_FLOW_FLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "pipeline/base/arena.h"
#include "pipeline/base/error.h"
#include "pipeline/config/options.h"
#include "sharding/vocab.h"
#include "stages/model/kernels/kernels.h"
#include "stages/model/tape/param.h"
#include "stages/model/tape/tape.h"

enum { FLOW_PARTS = 8 };

struct flow;
struct flow_request;
struct flow_bound_request;

/* Forms of a bound on the negative log-likelihood (stages/flow/cfm_bound.h). */
enum flow_bound { BOUND_GAUSSIAN, BOUND_JENSEN, BOUND_EMBEDDED, BOUND_MIXTURE, FLOW_BOUNDS };

/* Of a distillation: rows on the diagonal, where s = t, and rows that jump from s to t. */
enum flow_rows { FLOW_ALL_ROWS, FLOW_DIAGONAL_ROWS, FLOW_JUMP_ROWS };

/* Rows of one micro-shard (training), or of a batch of held-out rows (validation). */
struct flow_batch {
  int64_t count, positions;
  const int32_t *tokens;   /* [count, positions] */
  const int32_t *lengths;  /* [count] valid positions of each row, the rest is padding */
  const int32_t *sources;  /* [count] positions of each row's source, before its target; NULL: the
                              rows are not pairs */
  const float *embeddings; /* [count, positions, width of the embed stage], or NULL */
  const float *alone;      /* as embeddings, of targets that did not see their source; sources are
                              zeros; NULL: the rows are not pairs, or have no embeddings */
  const int64_t *samples;  /* [count] global sample index: the key of all noise of the row */
  const int64_t *strata;   /* [count] place of the row in the set over which times are stratified */
  int64_t stratum_count;   /* size of that set: the global batch, or the whole validation set */
  uint32_t step;           /* optimizer step of the noise; 0 in validation, whose noise is fixed */
  enum flow_rows rows;     /* what loss covers of them: parts that have gradients of their own */
  bool validation;         /* noise of its own purpose, no dropout, no condition drop (R-DLM-12) */
};

/* The parts of an objective. A part is reported as sum / weight, both summed over the global batch
 * in canonical order. */
struct flow_losses {
  double sum[FLOW_PARTS];
  double weight[FLOW_PARTS];
};

struct flow_kind {
  const char *name;
  const char *const *parts; /* names of the parts, ended by NULL: "mse", "ce" */
  bool needs_embeddings;    /* rows come with the embeddings of an embed stage */
  bool has_nfe;             /* sampling takes a number of network calls */
  bool adds_sentinels;      /* its vocabulary has sentinels, added where the tokenizer has none */

  /* Declares the network's parameters and keeps what it needs in `state` (from `arena`, real). */
  enum status (*init)(struct flow *flow, struct arena *arena);

  /* Sets the bound parameters from a file of the formulation's own names (weights_file.h), and
   * writes such a file; NULL where there is none. Local. */
  enum status (*read_file)(struct flow *flow, const char *path);
  enum status (*write_file)(const struct flow *flow, const char *path);

  /* Writes the config.json that such a file is read with elsewhere; NULL where there is none.
   * Local. */
  enum status (*write_config)(const struct flow *flow, const char *path);

  /* Sets weight[] to this batch's share of each part's normaliser (counts of tokens that a part
   * covers), without running the network. Local; cheap; the same draws as in loss (R-DLM-2). */
  void (*weights)(const struct flow *flow, const struct flow_batch *batch, double *weight);

  /* Runs the network and leaves the objective on the tape: sum[] of each part, gradients scaled
   * for `total`, the normalisers of the whole global batch. Collective over the vocabulary
   * group. */
  enum status (*loss)(struct flow *flow, struct tape *tape, const struct flow_batch *batch,
                      const double *total, struct flow_losses *losses);

  /* The objective that loss() leaves on the tape, from the global sums and totals of the parts.
   * NULL: the sum over parts of sum / total. Local. */
  double (*objective)(const double *sum, const double *total);

  /* Recomputes derived parameters (param->derived) from the others; called after the weights were
   * set and after every update. NULL: nothing is derived. Collective over the vocabulary group. */
  enum status (*prepare)(struct flow *flow);

  /* Turns the gradients of derived parameters, once summed over the whole batch and known to every
   * rank, into gradients of the parameters they come from (added to this rank's rows). NULL:
   * nothing to do. Called before the gradient norm. Collective over the vocabulary group. */
  enum status (*complete_gradients)(struct flow *flow);

  /* The share of a row's tokens that the head predicts, for counting operations; NULL: all. Local.
   */
  double (*head_share)(const struct flow *flow);

  /* Draws token rows; NULL where the formulation cannot (the autoencoder, t5). Collective over the
   * vocabulary group. */
  enum status (*sample)(struct flow *flow, struct tape *tape, const struct flow_request *request,
                        int32_t *tokens);

  /* Bounds the negative log-likelihood of token rows from above: terms[count][FLOW_BOUNDS][steps +
   * 1] nats of each row's tokens, the mean over the draws; a form's bound is the sum over its
   * terms, of which the last is the loss of the text itself. Unbiased; noise is keyed by the
   * batch's samples. NULL: not known. Collective over the vocabulary group. */
  enum status (*bound)(struct flow *flow, struct tape *tape,
                       const struct flow_bound_request *request, double *terms);
};

struct flow_bound_request {
  const struct flow_batch *batch; /* tokens, lengths and samples are read */
  int64_t steps, draws;
  enum bound_times_choice times; /* continuous: anywhere in a step, hence the bound of endlessly
                                    many (gaussian, embedded) */
  bool mixture; /* with that form, which draws a number for every token and id; else zeros */
  const int64_t *prefix; /* [count] positions given clean and not scored, or NULL */
};

/* Positions of texts that are not drawn, at their beginning and at their end; for kinds with
 * embeddings. */
struct flow_given {
  const float *latents;  /* [count, positions, width of the embed stage]; read where given */
  const int32_t *tokens; /* [count, positions]; read where given */
  const int32_t *before, *after; /* [count] how many positions */
  /* Writes the latents of rows that begin with what is given and go on with other tokens [count,
   * positions], of which lengths[count] are valid, over `latents`; those of what is given stay.
   * NULL: there is no encoder. */
  enum status (*embed)(void *embedder, const int32_t *tokens, const int32_t *lengths);
  void *embedder;
  bool source; /* the rest is the target of what is given, as in training on pairs; otherwise one
                  text, which a model of whole texts completes */
};

/* What to draw: text i is a function of (seed, i, options) alone (R-DLM-3, R-EVA-2). */
struct flow_request {
  int64_t count, positions;
  int64_t first; /* index of the first text */
  uint64_t seed;
  int64_t nfe;                   /* network calls, where the kind has_nfe */
  const struct options *options; /* of the sample node: temperature and the kind's own */
  const int32_t *prefix;         /* [count, prefix_length] given tokens, or NULL */
  int64_t prefix_length;
  const struct flow_given *given; /* NULL: nothing */
  float *confidence; /* out: [count, positions] probability of each token, by kinds that have it, 1
                        where given and behind the end of a revised target; NULL: not wanted */
  int32_t *calls;    /* out: [count] network calls made, by kinds with has_nfe; NULL: not wanted */
  /* What the most likely tokens [count, positions] are at every network call, of `time` in [0, 1]
   * from noise to text; NULL: nobody looks. */
  void (*observe)(void *observer, int64_t call, double time, const int32_t *tokens);
  void *observer;
};

struct flow {
  const struct flow_kind *kind;
  const struct options *options; /* of the pretrain or autoencode node that shaped the network */
  const struct options *distill; /* of the distill node, or NULL; what it sets comes from here */
  bool jumps;                    /* a distill node trained the network: it knows jumps over times */
  struct vocab *vocab;           /* borrowed: V and its slices */
  const struct kernels *kernels; /* borrowed */
  struct params *params;         /* borrowed */
  struct params *teacher;        /* borrowed: a frozen copy of the base, or NULL */
  int64_t positions;             /* row length */
  int64_t embedding_width;       /* channels of embeddings; 0 without */
  uint64_t seed;
  int64_t trained;       /* optimizer steps made so far, which rounds of a distillation go by */
  int32_t pad, bos, eos; /* ids; -1 where the tokenizer has none */
  void *state;           /* the kind's own */
};

#define FLOW(name) extern const struct flow_kind flow_##name;
#include "stages/flow/flows.def"
#undef FLOW

/* The kind called `name`, or NULL. Borrowed. Local. */
const struct flow_kind *flow_find(const char *name);

#endif
