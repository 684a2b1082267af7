/* Rules over several options of one node. Each rule says which options contradict each other. */
#include "pipeline/config/options.h"

/* What a rule is given. */
struct subject {
  const struct options *options;
  enum kind kind;
  const char *node, *where;
};

static bool reads(struct subject subject, enum option option) {
  return options_applies(subject.options, subject.kind, option, NULL);
}

static enum status check_warmup(struct subject s) {
  if (!reads(s, OPTION_warmup_steps)) return STATUS_OK;
  CHECK(
      s.options->warmup_steps <= s.options->steps, STATUS_MISMATCH,
      "%s: node '%s': warmup_steps (%lld) is more than steps (%lld); lower one or raise the other",
      s.where, s.node, (long long)s.options->warmup_steps, (long long)s.options->steps);
  return STATUS_OK;
}

static enum status check_batch(struct subject s) {
  if (!reads(s, OPTION_micro_shards)) return STATUS_OK;
  CHECK(s.options->batch % s.options->micro_shards == 0, STATUS_MISMATCH,
        "%s: node '%s': batch (%lld) is not a multiple of micro_shards (%lld)", s.where, s.node,
        (long long)s.options->batch, (long long)s.options->micro_shards);
  return STATUS_OK;
}

/* Rotary positions turn pairs of a head's channels. */
static enum status check_heads(struct subject s) {
  if (!reads(s, OPTION_heads)) return STATUS_OK;
  CHECK(s.options->width % (2 * s.options->heads) == 0, STATUS_MISMATCH,
        "%s: node '%s': width (%lld) divided by heads (%lld) must be an even number, for rotary "
        "positions",
        s.where, s.node, (long long)s.options->width, (long long)s.options->heads);
  return STATUS_OK;
}

static enum status check_encoder_heads(struct subject s) {
  if (!reads(s, OPTION_encoder_heads)) return STATUS_OK;
  CHECK(s.options->encoder_width % s.options->encoder_heads == 0, STATUS_MISMATCH,
        "%s: node '%s': encoder_width (%lld) is not a multiple of encoder_heads (%lld)", s.where,
        s.node, (long long)s.options->encoder_width, (long long)s.options->encoder_heads);
  return STATUS_OK;
}

static enum status check_guidance(struct subject s) {
  if (!reads(s, OPTION_elf_guidance_min)) return STATUS_OK;
  CHECK(s.options->elf_guidance_min <= s.options->elf_guidance_max, STATUS_MISMATCH,
        "%s: node '%s': elf_guidance_min (%g) is more than elf_guidance_max (%g)", s.where, s.node,
        s.options->elf_guidance_min, s.options->elf_guidance_max);
  return STATUS_OK;
}

static enum status check_published(struct subject s) {
  if (!reads(s, OPTION_publish_at)) return STATUS_OK;
  const struct option_integers *steps = &s.options->publish_at;
  for (size_t i = 0; i < steps->count; i++)
    CHECK(steps->values[i] <= s.options->steps, STATUS_MISMATCH,
          "%s: node '%s': publish_at has step %lld, but the training ends after %lld (steps)",
          s.where, s.node, (long long)steps->values[i], (long long)s.options->steps);
  return STATUS_OK;
}

/* A pair comes from two files line by line, from two keys, or from a package's description. */
static enum status check_pairs(struct subject s) {
  if (!reads(s, OPTION_long_pairs)) return STATUS_OK;
  const enum boundary_choice boundary = s.options->boundary;
  CHECK(boundary == BOUNDARY_LINE || boundary == BOUNDARY_KEY || boundary == BOUNDARY_SAMPLE ||
            boundary == BOUNDARY_PACKAGE,
        STATUS_MISMATCH,
        "%s: node '%s': packing: pairs needs boundary: line (with target), key or sample (with "
        "target_key), or package",
        s.where, s.node);
  CHECK(s.options->source_length < s.options->sequence_length, STATUS_MISMATCH,
        "%s: node '%s': source_length (%lld) leaves no room for a target in sequence_length (%lld)",
        s.where, s.node, (long long)s.options->source_length,
        (long long)s.options->sequence_length);
  return STATUS_OK;
}

/* A teacher that follows the average needs one. */
static enum status check_teacher(struct subject s) {
  if (!reads(s, OPTION_distill_teacher)) return STATUS_OK;
  CHECK(s.options->distill_teacher != TEACHER_EMA || s.options->ema > 0, STATUS_MISMATCH,
        "%s: node '%s': distill_teacher: ema needs an average; set ema to more than 0", s.where,
        s.node);
  return STATUS_OK;
}

/* Rounds are of the same length, and a round that teaches the next leaves an average. */
static enum status check_rounds(struct subject s) {
  if (!reads(s, OPTION_elf_rounds)) return STATUS_OK;
  CHECK(s.options->steps % s.options->elf_rounds == 0, STATUS_MISMATCH,
        "%s: node '%s': steps (%lld) is not a multiple of elf_rounds (%lld)", s.where, s.node,
        (long long)s.options->steps, (long long)s.options->elf_rounds);
  CHECK(s.options->elf_teacher != ELF_TEACHER_PREVIOUS || s.options->ema > 0, STATUS_MISMATCH,
        "%s: node '%s': elf_teacher: previous needs an average; set ema to more than 0", s.where,
        s.node);
  return STATUS_OK;
}

/* Revisions are calls of nfe, beside a step and the decoding. */
static enum status check_revisions(struct subject s) {
  if (s.kind != KIND_SAMPLE || s.options->elf_revisions == 0) return STATUS_OK;
  const struct option_integers *nfe = &s.options->nfe;
  for (size_t i = 0; i < nfe->count; i++)
    CHECK(nfe->values[i] >= 2 + s.options->elf_revisions, STATUS_MISMATCH,
          "%s: node '%s': elf_revisions (%lld) leave less than a step and the decoding of %lld "
          "calls (nfe); raise nfe or lower elf_revisions",
          s.where, s.node, (long long)s.options->elf_revisions, (long long)nfe->values[i]);
  return STATUS_OK;
}

enum status options_check(const struct options *options, enum kind kind, const char *node,
                          const char *where) {
  const struct subject subject = {options, kind, node, where};
  TRY(check_warmup(subject));
  TRY(check_batch(subject));
  TRY(check_heads(subject));
  TRY(check_encoder_heads(subject));
  TRY(check_guidance(subject));
  TRY(check_published(subject));
  TRY(check_pairs(subject));
  TRY(check_teacher(subject));
  TRY(check_rounds(subject));
  TRY(check_revisions(subject));
  return STATUS_OK;
}
