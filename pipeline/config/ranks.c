#include "pipeline/config/ranks.h"

static bool is_training(enum kind kind) {
  return (IN_TRAINING & (1 << kind)) != 0;
}

bool ranks_admitted(const struct options *options, enum kind kind, int64_t ranks) {
  if (ranks < 1) return false;
  if (!is_training(kind)) return kind_is_parallel(kind) || ranks == 1;
  const bool power_of_two = (ranks & (ranks - 1)) == 0;
  const bool canonical = options->reductions == REDUCTIONS_CANONICAL;
  return options->micro_shards % ranks == 0 && ranks % options->vocabulary_group == 0 &&
         (power_of_two || !canonical);
}

/* Every count a training node admits divides micro_shards. */
static enum status list_counts(struct text *text, const struct options *options, enum kind kind) {
  for (int64_t ranks = 1; ranks <= options->micro_shards; ranks++)
    if (ranks_admitted(options, kind, ranks)) TRY(text_format(text, " %lld", (long long)ranks));
  return text_add(text, text->length ? "" : " none");
}

enum status ranks_check(const struct options *options, enum kind kind, const char *node,
                        int64_t ranks) {
  if (ranks_admitted(options, kind, ranks)) return STATUS_OK;
  CHECK(is_training(kind), STATUS_MISMATCH, "node '%s' cannot run on %lld ranks", node,
        (long long)ranks);
  struct text counts = {0};
  enum status status = list_counts(&counts, options, kind);
  if (status == STATUS_OK)
    status = error_raise(STATUS_MISMATCH, __FILE__, __LINE__, __func__,
                         "node '%s' cannot run on %lld ranks: with batch %lld, micro_shards %lld "
                         "and vocabulary_group %lld the admissible counts are%s",
                         node, (long long)ranks, (long long)options->batch,
                         (long long)options->micro_shards, (long long)options->vocabulary_group,
                         counts.bytes);
  text_free(&counts);
  return status;
}
