#include "stages/model/layers/embedding.h"

#include <assert.h>

struct embedding_record {
  struct record record;
  const int32_t *ids;
  struct value *y;
  struct param *table;
};

static void embedding_backward(struct tape *tape, const struct record *record) {
  const struct embedding_record *kept = (const struct embedding_record *)record;
  if (!kept->y->reached || !kept->table->gradient) return;
  tape->kernels->embedding_backward(kept->table->gradient, kept->y->gradient, kept->ids,
                                    kept->y->rows, kept->y->cols, 0, kept->table->rows);
}

static const struct record_kind embedding_kind = {"embedding", embedding_backward, NULL};

struct value *embedding_forward(struct tape *tape, const int32_t *ids, int64_t n,
                                struct param *table) {
  for (int64_t i = 0; ids && i < n; i++) assert(ids[i] >= 0 && ids[i] < table->rows);
  struct value *y = tape_value(tape, n, table->cols);
  tape->kernels->embedding_forward(y->data, ids, table->data, n, table->cols, 0, table->rows);
  struct embedding_record *kept =
      tape_record(tape, &embedding_kind, sizeof(*kept), (struct param *const[]){table}, 1);
  if (!kept) return y;
  kept->ids = ids;
  kept->y = y;
  kept->table = table;
  return y;
}
