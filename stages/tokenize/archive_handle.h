/* libarchive handles as the readers of archives use them; for the files of stages/tokenize only. */
#ifndef STAGES_TOKENIZE_ARCHIVE_HANDLE_H
#define STAGES_TOKENIZE_ARCHIVE_HANDLE_H

#include <archive.h>
#include <archive_entry.h>
#include <locale.h>
#include <stdbool.h>
#include <stddef.h>

#include "pipeline/base/error.h"

/* libarchive converts names through the locale of the thread: C.UTF-8 between enter and leave. */
struct archive_locale {
  locale_t ours, before;
};

/* Local. ENVIRONMENT when the system lacks the locale. */
enum status archive_locale_enter(struct archive_locale *scope);
void archive_locale_leave(struct archive_locale *scope);

/* A handle that knows every filter that needs no other program, every archive format (not mtree),
 * and the raw format for what is compressed only. NULL when memory is out. Local. */
struct archive *archive_handle_new(void);

/* Whether what was opened is an archive or compressed; asked after the first header. Local. */
bool archive_handle_is_packed(struct archive *archive);

/* Whether the first bytes of a file cannot be text in any encoding: they have a zero byte, or begin
 * with a control character, as magic numbers do. Local. */
bool archive_handle_is_binary(const char *head, size_t count);

/* Whether they surely are text: UTF-8, and not binary. What is neither (Latin-1 text) is text
 * when libarchive does not know it. Local. */
bool archive_handle_is_text(const char *head, size_t count);

#endif
