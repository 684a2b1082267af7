#include "stages/tokenize/archive_handle.h"

#include <string.h>

#include "pipeline/base/text.h"

/* gzip is read by gunzip.h, which checks its sums. */
static int (*const supported[])(struct archive *) = {
    archive_read_support_filter_bzip2,    archive_read_support_filter_xz,
    archive_read_support_filter_zstd,     archive_read_support_filter_lz4,
    archive_read_support_filter_lzma,     archive_read_support_filter_lzip,
    archive_read_support_filter_compress, archive_read_support_format_tar,
    archive_read_support_format_zip,      archive_read_support_format_7zip,
    archive_read_support_format_cpio,     archive_read_support_format_ar,
    archive_read_support_format_cab,      archive_read_support_format_lha,
    archive_read_support_format_rar,      archive_read_support_format_rar5,
    archive_read_support_format_xar,      archive_read_support_format_raw,
};

enum status archive_locale_enter(struct archive_locale *scope) {
  scope->ours = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
  CHECK(scope->ours != (locale_t)0, STATUS_ENVIRONMENT,
        "the locale C.UTF-8 is missing; names in archives cannot be read without it");
  scope->before = uselocale(scope->ours);
  return STATUS_OK;
}

void archive_locale_leave(struct archive_locale *scope) {
  uselocale(scope->before);
  freelocale(scope->ours);
}

struct archive *archive_handle_new(void) {
  struct archive *archive = archive_read_new();
  for (size_t i = 0; archive && i < sizeof supported / sizeof *supported; i++)
    supported[i](archive);
  /* what follows the end mark of a tar is read, or refused, but not passed over */
  if (archive) archive_read_set_option(archive, "tar", "read_concatenated_archives", "1");
  return archive;
}

bool archive_handle_is_packed(struct archive *archive) {
  const int format = archive_format(archive) & ARCHIVE_FORMAT_BASE_MASK;
  return archive_filter_count(archive) > 1 || (format != 0 && format != ARCHIVE_FORMAT_RAW);
}

bool archive_handle_is_binary(const char *head, size_t count) {
  const bool magic = count && (unsigned char)head[0] < ' ' && !strchr("\b\t\n\v\f\r\033", head[0]);
  return magic || memchr(head, 0, count);
}

bool archive_handle_is_text(const char *head, size_t count) {
  const bool utf8 =
      text_valid_utf8(head, count) + 4 > count; /* a character may be cut at the end */
  return utf8 && !archive_handle_is_binary(head, count);
}
