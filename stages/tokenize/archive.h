/* Archives and compressed files through libarchive: tar, zip, 7z, cpio and so on, under gzip,
 * bzip2, xz, zstd, lz4 and so on. Entries are streamed, never written to disk.
 */
#ifndef STAGES_TOKENIZE_ARCHIVE_H
#define STAGES_TOKENIZE_ARCHIVE_H

#include "stages/tokenize/splitter.h"

/* Whether a file has to be read by archive_read. Local. DAMAGED for a file that is neither an
 * archive that libarchive knows nor text (it has zero bytes). */
enum status archive_detect(bool *packed, const char *path);

/* Feeds every regular entry, in the order of the archive, each as a stream of its own. Entries that
 * are damaged are refused where the splitter's sink takes refusals; what makes the rest of the
 * archive unreadable, or is a decompression bomb, ends it in any case. Local. DAMAGED names the
 * archive, the entry and the byte; as splitter_feed. */
enum status archive_read(const char *path, struct splitter *splitter);

#endif
