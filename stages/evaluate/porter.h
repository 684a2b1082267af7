/* Porter's stemmer (1980) with the extensions of NLTK, which rouge-score uses. */
#ifndef STAGES_EVALUATE_PORTER_H
#define STAGES_EVALUATE_PORTER_H

#include <stddef.h>

enum { PORTER_BYTES = 64 }; /* longer words are left as they are */

/* Stems word[count] of a-z and 0-9 in place, which has room for PORTER_BYTES; returns its new
 * length. Local. */
size_t porter_stem(char *word, size_t count);

#endif
