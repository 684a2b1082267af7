#define _XOPEN_SOURCE 700
#include "pipeline/driver/jobs_folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/file.h"
#include "pipeline/driver/launch.h"

/* Looks for jobs/<name> in `folder` (which is spoiled) and its parents. */
static bool search_up(char path[PATH_MAX], char *folder, const char *name) {
  for (;;) {
    if (snprintf(path, PATH_MAX, "%s/jobs/%s", folder, name) < PATH_MAX && file_exists(path))
      return true;
    char *slash = strrchr(folder, '/');
    if (!slash) return false;
    *slash = '\0';
  }
}

enum status jobs_folder_find(char path[PATH_MAX], const char *name) {
  char folder[PATH_MAX];
  if (realpath(".", folder) && search_up(path, folder, name)) return STATUS_OK;
  TRY(site_beside(folder, "x"));
  if (search_up(path, folder, name)) return STATUS_OK;
  FAIL(STATUS_ENVIRONMENT, "cannot find jobs/%s here or beside the program", name);
}
