/* evaluation.json: what the stage `evaluate` found, and what reports show (formats.md). */
#ifndef MONITORING_EVALUATION_H
#define MONITORING_EVALUATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/base/error.h"

#define EVALUATION_FILE_NAME "evaluation.json"
#define EVALUATION_PROTOCOL "millrace-evaluate/1"

/* How scores of targets are computed, as sacreBLEU and rouge-score would say it. */
#define EVALUATION_BLEU_SIGNATURE "nrefs:1|case:lc|eff:yes|tok:13a|smooth:exp"
#define EVALUATION_ROUGE_SIGNATURE "rouge:1,2,L|score:f1|stemmer:yes|mean:texts"

enum { EVALUATION_TEXTS = 4, EVALUATION_NAME_BYTES = 64 };

/* One set of texts: a system at one number of network calls, or held-out text. */
struct evaluation_system {
  char name[EVALUATION_NAME_BYTES];   /* node that trained the generator; "held-out text" */
  char method[EVALUATION_NAME_BYTES]; /* "elf"; "" for held-out text */
  char note[EVALUATION_NAME_BYTES];   /* "random encoder"; "" when there is nothing to say */
  int64_t nfe;                        /* network calls a text; 0: one a token, or not generated */
  int64_t texts;
  double judge_perplexity; /* exp of the judge's mean negative log-likelihood of a token */
  double token_entropy;    /* nats, mean over texts */
  double distinct_1, distinct_2;
  double tokens_per_second;        /* when it was drawn; 0: not known */
  char *samples[EVALUATION_TEXTS]; /* owned; NULL beyond the last */
};

/* One trained model on held-out rows. */
struct evaluation_model {
  char name[EVALUATION_NAME_BYTES];
  char part[EVALUATION_NAME_BYTES]; /* what `value` is: "ce", "accuracy" */
  double value;
};

/* A bound on the negative log-likelihood of held-out text under one model. */
struct evaluation_bound {
  char name[EVALUATION_NAME_BYTES]; /* node that trained the model */
  char form[EVALUATION_NAME_BYTES]; /* "gaussian", "jensen", "best", "embedded", "mixture" */
  int64_t steps;                    /* of the grid of times */
  bool continuous;                  /* ... or in how many strata times were drawn */
  bool information;                 /* ... which is spaced by what steps reveal, not even */
  int64_t rows, tokens;             /* over which it is a mean */
  double nats;                      /* a token */
  double error;                     /* its standard error over rows */
  double tokens_per_byte;           /* of held-out text */
};

/* Targets that a system drew for sources, against their references. */
struct evaluation_score {
  char name[EVALUATION_NAME_BYTES]; /* the sample node, or a baseline */
  int64_t nfe;                      /* network calls a text; 0: a baseline */
  int64_t texts;
  double bleu;           /* lower-cased, 13a */
  double rouge[3];       /* 1, 2 and L: F1 x 100, mean over texts */
  double rouge_error[3]; /* standard errors over texts */
};

/* Zero-initialise. */
struct evaluation {
  char judge[EVALUATION_NAME_BYTES]; /* node of the judge */
  char judge_hash[40], tokenizer_hash[40];
  int64_t positions;
  double
      unigram_loss; /* nats a token of held-out text under a unigram model of the training text */
  struct evaluation_system *systems; /* owned; [0] is held-out text */
  size_t system_count;
  struct evaluation_model *models; /* owned */
  size_t model_count;
  struct evaluation_bound *bounds; /* owned */
  size_t bound_count;
  struct evaluation_score *scores; /* owned */
  size_t score_count;
};

/* Makes room for one more and returns it zeroed; NULL when memory is out. Local. */
struct evaluation_system *evaluation_add_system(struct evaluation *evaluation);
struct evaluation_model *evaluation_add_model(struct evaluation *evaluation);
struct evaluation_bound *evaluation_add_bound(struct evaluation *evaluation);
struct evaluation_score *evaluation_add_score(struct evaluation *evaluation);

/* Local. WRITE on failure. */
enum status evaluation_write(const struct evaluation *evaluation, const char *path);

/* Into a zeroed evaluation. Local. MISMATCH when the file does not exist, DAMAGED when it is not
 * such a record. */
enum status evaluation_read(struct evaluation *evaluation, const char *path);
void evaluation_free(struct evaluation *evaluation);

#endif
