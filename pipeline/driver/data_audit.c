/* millrace data audit */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/artefact/safetensors.h"
#include "pipeline/base/hash.h"
#include "pipeline/driver/data_commands.h"
#include "pipeline/driver/token_rows.h"

/* Hashes of documents; 0 stands for an empty place. Grows at half full. */
struct seen {
  uint64_t *places; /* owned */
  size_t room, count;
};

struct place {
  char shard[128];
  int64_t row, position;
};

/* A kind of fault: how often, and where first. */
struct fault {
  int64_t count;
  struct place first;
};

struct audit {
  struct token_rules rules;
  struct fault range, blank, shared;
  int64_t rows[TOKEN_SIDES], tokens[TOKEN_SIDES], unknown[TOKEN_SIDES];
  int64_t documents[TOKEN_SIDES], repeated;
  int64_t *uses[TOKEN_SIDES]; /* owned; [vocabulary] */
  struct seen seen;           /* documents to train on */
  struct text document;       /* ids since the last end */
  enum token_side pass;       /* the side that is read */
  int64_t faults;
};

static bool add_hash(struct seen *seen, uint64_t hash) {
  size_t at = (size_t)hash & (seen->room - 1);
  while (seen->places[at] && seen->places[at] != hash) at = (at + 1) & (seen->room - 1);
  const bool fresh = !seen->places[at];
  seen->places[at] = hash;
  seen->count += fresh;
  return fresh;
}

static bool has_hash(const struct seen *seen, uint64_t hash) {
  if (!seen->room) return false;
  size_t at = (size_t)hash & (seen->room - 1);
  while (seen->places[at] && seen->places[at] != hash) at = (at + 1) & (seen->room - 1);
  return seen->places[at] != 0;
}

static enum status grow(struct seen *seen) {
  struct seen larger = {.room = seen->room ? 2 * seen->room : 1024};
  larger.places = calloc(larger.room, sizeof *larger.places);
  CHECK(larger.places, STATUS_ENVIRONMENT, "out of memory: hashes of %zu documents", seen->count);
  for (size_t i = 0; i < seen->room; i++)
    if (seen->places[i]) add_hash(&larger, seen->places[i]);
  free(seen->places);
  *seen = larger;
  return STATUS_OK;
}

static void note(struct fault *fault, const struct token_row *row, int64_t position) {
  if (fault->count++) return;
  snprintf(fault->first.shard, sizeof fault->first.shard, "%s", row->shard);
  fault->first.row = row->row;
  fault->first.position = position;
}

/* Takes the document that was gathered; it may have begun in an earlier row. */
static enum status end_document(struct audit *audit, const struct token_row *row,
                                int64_t position) {
  if (!audit->document.length) return STATUS_OK;
  const uint64_t hash = hash_bytes(audit->document.bytes, audit->document.length);
  const uint64_t key = hash ? hash : 1;
  text_clear(&audit->document);
  audit->documents[row->side]++;
  if (row->side == TOKEN_HELD_OUT) {
    if (has_hash(&audit->seen, key)) note(&audit->shared, row, position);
    return STATUS_OK;
  }
  if (2 * audit->seen.count >= audit->seen.room) TRY(grow(&audit->seen));
  audit->repeated += !add_hash(&audit->seen, key);
  return STATUS_OK;
}

static bool is_mark(const struct token_rules *rules, int64_t id) {
  return id == rules->pad || id == rules->eos || id == rules->bos;
}

static enum status audit_id(struct audit *audit, const struct token_row *row, int64_t position,
                            bool *blank) {
  const struct token_rules *rules = &audit->rules;
  const int64_t id = row->ids[position];
  if (id < 0 || id >= rules->vocabulary_size) {
    note(&audit->range, row, position);
    return STATUS_OK;
  }
  audit->uses[row->side][id]++;
  audit->unknown[row->side] += id == rules->unk;
  if (id == rules->eos) return end_document(audit, row, position);
  if (is_mark(rules, id)) return STATUS_OK;
  *blank = false;
  return text_add_bytes(&audit->document, &id, sizeof id);
}

static enum status audit_row(void *context, const struct token_row *row) {
  struct audit *audit = context;
  bool blank = true;
  if (row->side != audit->pass) return STATUS_OK;
  audit->rows[row->side]++;
  audit->tokens[row->side] += row->count;
  for (int64_t i = 0; i < row->count; i++) TRY(audit_id(audit, row, i, &blank));
  if (blank) note(&audit->blank, row, 0);
  return row->wrapped ? STATUS_OK : end_document(audit, row, row->count);
}

/* --- the report ------------------------------------------------------------------------------- */

static void print_fault(struct audit *audit, const struct fault *fault, const char *what) {
  audit->faults += fault->count > 0;
  if (!fault->count) printf("ok     no %s\n", what);
  if (fault->count)
    printf("FAULT  %" PRId64 " %s, the first in '%s', row %" PRId64 ", position %" PRId64 "\n",
           fault->count, what, fault->first.shard, fault->first.row, fault->first.position);
}

static void print_fact(struct audit *audit, const struct manifest *manifest, const char *name,
                       int64_t found) {
  int64_t said = -1;
  const bool known = scalars_get_integer(&manifest->facts, name, &said) == STATUS_OK;
  const bool same = known && said == found;
  audit->faults += !same;
  printf("%s %s: %" PRId64, same ? "ok    " : "FAULT ", name, found);
  if (!same) printf(", the manifest says %" PRId64, said);
  printf("\n");
}

/* Every shard was made with the tokenizer that is beside it. */
static enum status audit_shards(struct audit *audit, const char *folder,
                                const struct manifest *manifest) {
  char path[PATH_MAX];
  int64_t others = 0;
  for (int64_t i = 0; i < manifest->output_count; i++) {
    struct safetensors file;
    enum token_side side;
    if (!token_side_of(&side, manifest->outputs[i].path)) continue;
    TRY(manifest_join(path, folder, manifest->outputs[i].path));
    TRY(safetensors_open(&file, path, &manifest->outputs[i].blocks));
    const char *hash = safetensors_value(&file, "tokenizer");
    others += !hash || strcmp(hash, audit->rules.hash) != 0;
    safetensors_close(&file);
  }
  audit->faults += others > 0;
  printf("%s %" PRId64 " shards of another tokenizer than tokenizer.json\n",
         others ? "FAULT " : "ok    ", others);
  return STATUS_OK;
}

static double share(int64_t part, int64_t whole) {
  return whole ? 100.0 * (double)part / (double)whole : 0;
}

static void print_vocabulary(const struct audit *audit) {
  int64_t used = 0, new_ids = 0, new_tokens = 0;
  for (int64_t id = 0; id < audit->rules.vocabulary_size; id++) {
    const int64_t train = audit->uses[TOKEN_TRAIN][id], held = audit->uses[TOKEN_HELD_OUT][id];
    used += train > 0;
    new_ids += held && !train;
    new_tokens += train ? 0 : held;
  }
  printf("info   vocabulary: %" PRId64 " of %" PRId64 " ids are trained (%.1f %%)\n", used,
         audit->rules.vocabulary_size, share(used, audit->rules.vocabulary_size));
  printf("info   held out: %" PRId64 " ids that training never sees, %.4f %% of its tokens\n",
         new_ids, share(new_tokens, audit->tokens[TOKEN_HELD_OUT]));
  printf("info   unknown: %.4f %% of the tokens to train on, %.4f %% of those held out\n",
         share(audit->unknown[TOKEN_TRAIN], audit->tokens[TOKEN_TRAIN]),
         share(audit->unknown[TOKEN_HELD_OUT], audit->tokens[TOKEN_HELD_OUT]));
  printf("info   documents: %" PRId64 " to train on (%" PRId64 " of them repeated), %" PRId64
         " held out\n",
         audit->documents[TOKEN_TRAIN], audit->repeated, audit->documents[TOKEN_HELD_OUT]);
}

static enum status report(struct audit *audit, const char *folder,
                          const struct manifest *manifest) {
  print_fault(audit, &audit->range, "ids outside the vocabulary");
  print_fault(audit, &audit->blank, "rows without text");
  print_fault(audit, &audit->shared, "documents held out that are trained on as well");
  print_fact(audit, manifest, "train_rows", audit->rows[TOKEN_TRAIN]);
  print_fact(audit, manifest, "train_tokens", audit->tokens[TOKEN_TRAIN]);
  print_fact(audit, manifest, "held_out_rows", audit->rows[TOKEN_HELD_OUT]);
  print_fact(audit, manifest, "held_out_tokens", audit->tokens[TOKEN_HELD_OUT]);
  TRY(audit_shards(audit, folder, manifest));
  print_vocabulary(audit);
  return STATUS_OK;
}

/* Sizes and hashes first: nothing else can be said of files that are damaged. */
static enum status audit_files(const char *folder, const struct manifest *manifest) {
  const enum status status = manifest_verify(manifest, folder, true);
  if (status == STATUS_OK)
    printf("ok     %" PRId64 " files as the manifest lists them\n", manifest->output_count);
  else
    printf("FAULT  %s\n", error_message());
  return status;
}

static enum status run(struct audit *audit, const char *folder, const struct manifest *manifest) {
  TRY(audit_files(folder, manifest));
  TRY(token_rules_read(&audit->rules, folder));
  for (int side = 0; side < TOKEN_SIDES; side++) {
    audit->uses[side] = calloc((size_t)audit->rules.vocabulary_size, sizeof(int64_t));
    CHECK(audit->uses[side], STATUS_ENVIRONMENT, "out of memory: a vocabulary's counts");
  }
  for (int side = 0; side < TOKEN_SIDES; side++) { /* what is trained on is known first */
    audit->pass = (enum token_side)side;
    text_clear(&audit->document);
    TRY(token_rows_each(folder, manifest, audit, audit_row));
  }
  return report(audit, folder, manifest);
}

enum status data_audit(const char *folder) {
  struct audit audit = {0};
  struct manifest manifest = {0};
  TRY(manifest_read(&manifest, folder));
  const enum status status = run(&audit, folder, &manifest);
  manifest_free(&manifest);
  free(audit.seen.places);
  free(audit.uses[TOKEN_TRAIN]);
  free(audit.uses[TOKEN_HELD_OUT]);
  text_free(&audit.document);
  TRY(status);
  CHECK(!audit.faults, STATUS_DAMAGED, "'%s' has %" PRId64 " kinds of faults", folder,
        audit.faults);
  return STATUS_OK;
}
