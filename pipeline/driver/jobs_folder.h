/* Where the recipes and templates of jobs/ are. */
#ifndef PIPELINE_DRIVER_JOBS_FOLDER_H
#define PIPELINE_DRIVER_JOBS_FOLDER_H

#include <limits.h>

#include "pipeline/base/error.h"

/* The path of jobs/<name>: in the present folder or one of its parents, else in a parent of the
 * program's folder. Local. ENVIRONMENT when there is none. */
enum status jobs_folder_find(char path[PATH_MAX], const char *name);

#endif
