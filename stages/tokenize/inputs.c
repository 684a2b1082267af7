#include "stages/tokenize/inputs.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "stages/tokenize/archive.h"
#include "stages/tokenize/paired_files.h"
#include "stages/tokenize/plain.h"

/* Makes room for one more element of a growing list. */
static enum status grow(void **list, size_t *capacity, size_t count, size_t element) {
  if (count < *capacity) return STATUS_OK;
  const size_t larger = *capacity ? 2 * *capacity : 16;
  void *grown = realloc(*list, larger * element);
  CHECK(grown, STATUS_ENVIRONMENT, "out of memory: a list of %zu inputs", larger);
  *list = grown;
  *capacity = larger;
  return STATUS_OK;
}

static enum status add_file(struct inputs *inputs, const char *path, uint64_t bytes) {
  bool packed;
  const enum status status = archive_detect(&packed, path);
  if (status == STATUS_DAMAGED && inputs->keeps_damaged)
    packed = true;
  else
    TRY(status);
  TRY(grow((void **)&inputs->files, &inputs->file_capacity, inputs->file_count,
           sizeof *inputs->files));
  struct input_file *file = &inputs->files[inputs->file_count];
  *file = (struct input_file){.path = strdup(path), .bytes = bytes, .packed = packed};
  CHECK(file->path, STATUS_ENVIRONMENT, "out of memory: a path");
  inputs->file_count++;
  return STATUS_OK;
}

static enum status add_path(struct inputs *inputs, const char *path, const char *entries);

static bool is_folder(const char *path) {
  struct stat info;
  return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static enum status add_entry(struct inputs *inputs, const char *folder, const char *name,
                             const char *entries) {
  if (name[0] == '.') return STATUS_OK;
  struct text path = {0};
  enum status status = text_format(&path, "%s/%s", folder, name);
  if (status == STATUS_OK && (is_folder(path.bytes) || splitter_wants(entries, name)))
    status = add_path(inputs, path.bytes, entries);
  text_free(&path);
  return status;
}

static int by_bytes(const struct dirent **a, const struct dirent **b) {
  return strcmp((*a)->d_name, (*b)->d_name);
}

static enum status add_folder(struct inputs *inputs, const char *folder, const char *entries) {
  struct dirent **list;
  const int count = scandir(folder, &list, NULL, by_bytes);
  CHECK(count >= 0, STATUS_ENVIRONMENT, "cannot list '%s': %s", folder, strerror(errno));
  enum status status = STATUS_OK;
  for (int i = 0; i < count; i++) {
    if (status == STATUS_OK) status = add_entry(inputs, folder, list[i]->d_name, entries);
    free(list[i]);
  }
  free(list);
  return status;
}

static enum status add_path(struct inputs *inputs, const char *path, const char *entries) {
  struct stat info;
  CHECK(stat(path, &info) == 0, errno == ENOENT ? STATUS_MISMATCH : STATUS_ENVIRONMENT,
        "input '%s': %s", path, strerror(errno));
  if (S_ISDIR(info.st_mode)) return add_folder(inputs, path, entries);
  CHECK(S_ISREG(info.st_mode), STATUS_MISMATCH, "input '%s' is neither a file nor a folder", path);
  return add_file(inputs, path, (uint64_t)info.st_size);
}

static enum status add_unit(struct inputs *inputs, struct unit unit) {
  TRY(grow((void **)&inputs->units, &inputs->unit_capacity, inputs->unit_count,
           sizeof *inputs->units));
  inputs->units[inputs->unit_count++] = unit;
  return STATUS_OK;
}

static enum status divide(struct inputs *inputs, size_t index, bool divides, uint64_t unit_bytes) {
  const struct input_file *file = &inputs->files[index];
  if (file->packed || !divides)
    return add_unit(inputs, (struct unit){.file = index, .begin = 0, .end = UINT64_MAX});
  for (uint64_t begin = 0; begin < file->bytes; begin += unit_bytes) {
    const bool last = file->bytes - begin <= unit_bytes;
    TRY(add_unit(inputs, (struct unit){.file = index,
                                       .begin = begin,
                                       .end = last ? UINT64_MAX : begin + unit_bytes}));
  }
  return STATUS_OK;
}

static enum status list_files(struct inputs *inputs, const struct option_texts *paths,
                              const char *entries) {
  for (size_t i = 0; i < paths->count; i++) {
    const size_t before = inputs->file_count;
    TRY(add_path(inputs, paths->values[i], entries));
    for (size_t j = before; j < inputs->file_count; j++) inputs->files[j].input = (int64_t)i;
  }
  CHECK(inputs->file_count, STATUS_MISMATCH, "the input '%s' holds no files%s%s",
        paths->count ? paths->values[0] : "", entries && *entries ? " like " : "",
        entries ? entries : "");
  return STATUS_OK;
}

/* The files that answer those already listed. */
static enum status list_targets(struct inputs *inputs, const struct inputs_request *request) {
  struct inputs targets = {.keeps_damaged = request->keeps_damaged};
  enum status status = list_files(&targets, request->targets, request->entries);
  if (status == STATUS_OK && targets.file_count != inputs->file_count)
    status = error_raise(STATUS_MISMATCH, __FILE__, __LINE__, __func__,
                         "`input` holds %zu files and `target` %zu; line by line they must answer "
                         "each other",
                         inputs->file_count, targets.file_count);
  if (status == STATUS_OK) {
    inputs->targets = targets.files;
    targets = (struct inputs){0};
  }
  inputs_free(&targets);
  return status;
}

static enum status make_list(struct inputs *inputs, const struct inputs_request *request) {
  const bool divides = boundary_divides(request->boundary) && !request->targets;
  TRY(list_files(inputs, request->paths, request->entries));
  if (request->targets) TRY(list_targets(inputs, request));
  for (size_t i = 0; i < inputs->file_count; i++)
    TRY(divide(inputs, i, divides, request->unit_bytes));
  return STATUS_OK;
}

struct inputs_request inputs_request_of(const struct options *options) {
  const bool pairs = options->packing == PACKING_PAIRS && options->boundary == BOUNDARY_LINE;
  return (struct inputs_request){.paths = &options->input,
                                 .targets = pairs ? &options->target : NULL,
                                 .entries = options->entries,
                                 .boundary = options->boundary,
                                 .unit_bytes = UNIT_BYTES,
                                 .keeps_damaged = options->damaged == DAMAGED_QUARANTINE};
}

enum status inputs_list(struct inputs *inputs, const struct inputs_request *request) {
  *inputs = (struct inputs){.keeps_damaged = request->keeps_damaged};
  const enum status status = make_list(inputs, request);
  if (status != STATUS_OK) inputs_free(inputs);
  TRY(status);
  return STATUS_OK;
}

static enum status read_unit(const struct inputs *inputs, const struct unit *unit,
                             struct splitter *splitter) {
  const struct input_file *file = &inputs->files[unit->file];
  if (inputs->targets) return paired_files_read(file, &inputs->targets[unit->file], splitter);
  if (file->packed) return archive_read(file->path, splitter);
  return plain_read(file->path, unit->begin, unit->end, splitter);
}

enum status inputs_read(const struct inputs *inputs, const struct unit *unit,
                        struct splitter *splitter) {
  const enum status status = read_unit(inputs, unit, splitter);
  if (status == STATUS_OK) return status;
  return splitter_refuse(splitter, status,
                         (struct refusal){.name = inputs->files[unit->file].path});
}

void inputs_free(struct inputs *inputs) {
  for (size_t i = 0; i < inputs->file_count; i++) {
    free(inputs->files[i].path);
    if (inputs->targets) free(inputs->targets[i].path);
  }
  free(inputs->files);
  free(inputs->targets);
  free(inputs->units);
  *inputs = (struct inputs){0};
}
