/* Which build of the code this is. */
#ifndef PIPELINE_BASE_BUILD_H
#define PIPELINE_BASE_BUILD_H

/* The commit the program was built from, as a short id. Borrowed. Local. */
const char *build_id(void);

#endif
