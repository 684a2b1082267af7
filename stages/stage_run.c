#include "stages/stage_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pipeline/base/file.h"
#include "pipeline/config/ranks.h"
#include "pipeline/driver/lease.h"
#include "pipeline/driver/publication.h"
#include "pipeline/driver/run.h"

/* What the ranks share while a node is made. */
struct session {
  const struct stage_command *command;
  struct comm *world;
  struct log *log;
  struct recipe recipe;
  const struct recipe_node *node;
  struct lease lease;             /* of rank 0 */
  struct publication publication; /* rank 0 fills it in, others know the folders only */
};

static enum status read_resolved(struct text *bytes, const char *run) {
  char path[STAGE_PATH_BYTES];
  CHECK(snprintf(path, sizeof path, "%s/%s", run, RUN_RESOLVED) < STAGE_PATH_BYTES, STATUS_MISMATCH,
        "path too long: '%s'", run);
  return file_read(bytes, path);
}

static enum status make_room(struct text *bytes, int64_t length) {
  for (int64_t i = 0; i < length; i++) TRY(text_add_bytes(bytes, "", 1));
  return STATUS_OK;
}

/* The bytes of resolved.yaml, read once, on every rank. Collective. */
static enum status share_bytes(struct text *bytes, struct session *session) {
  struct comm *world = session->world;
  const enum status read =
      world->rank == 0 ? read_resolved(bytes, session->command->run) : STATUS_OK;
  TRY(comm_agree(world, read));
  int64_t length = (int64_t)bytes->length;
  TRY(comm_broadcast(world, &length, (int64_t)sizeof length, 0));
  const enum status room = world->rank == 0 ? STATUS_OK : make_room(bytes, length);
  TRY(comm_agree(world, room));
  return comm_broadcast(world, bytes->bytes, length, 0);
}

static enum status check_node(struct session *session) {
  const struct stage_command *command = session->command;
  TRY(recipe_find(&session->node, &session->recipe, command->node));
  CHECK(session->node->kind == command->kind, STATUS_MISMATCH, "node '%s' of '%s' runs %s, not %s",
        command->node, command->run, kind_name(session->node->kind), kind_name(command->kind));
  return ranks_check(&session->node->options, command->kind, command->node, session->world->size);
}

/* Every rank's own copy of the recipe. Collective. */
static enum status share_recipe(struct session *session) {
  struct text bytes = {0};
  enum status status = share_bytes(&bytes, session);
  if (status == STATUS_OK)
    status =
        comm_agree(session->world, recipe_parse(&session->recipe, RUN_RESOLVED, &bytes, NULL, 0));
  text_free(&bytes);
  TRY(status);
  return comm_agree(session->world, check_node(session));
}

static enum status take_lease(struct session *session) {
  bool taken = false;
  char holder[LEASE_HOLDER_BYTES];
  TRY(lease_locate(&session->lease, session->command->run, session->node->name));
  if (session->command->leased) return STATUS_OK;
  TRY(lease_take(&session->lease, &taken));
  if (taken) return STATUS_OK;
  lease_look(&session->lease, holder);
  FAIL(STATUS_MISMATCH, "node '%s' is being made by %s; wait for it or stop it",
       session->node->name, holder);
}

/* Writes every rank into the lease, so that it lives as long as any of them. Collective. */
static enum status join_lease(struct session *session) {
  struct comm *world = session->world;
  char mine[LEASE_HOLDER_BYTES] = {0};
  lease_describe(mine, getpid());
  char *all = calloc((size_t)world->size, LEASE_HOLDER_BYTES);
  enum status status = all ? STATUS_OK : STATUS_ENVIRONMENT;
  if (!all)
    error_raise(status, __FILE__, __LINE__, __func__, "out of memory: a line for each rank");
  status = comm_agree(world, status);
  if (status == STATUS_OK) status = comm_gather(world, all, mine, LEASE_HOLDER_BYTES, 0);
  for (int rank = 0; status == STATUS_OK && world->rank == 0 && rank < world->size; rank++)
    status = lease_join(&session->lease, all + (size_t)rank * LEASE_HOLDER_BYTES);
  free(all);
  return comm_agree(world, status);
}

static enum status begin_on_root(struct session *session) {
  if (session->world->rank != 0) return STATUS_OK;
  TRY(take_lease(session));
  return publication_begin(&session->publication, &session->recipe, session->node,
                           session->command->run);
}

/* Takes up or makes the node's folder. Collective. */
static enum status begin(struct session *session) {
  struct publication *publication = &session->publication;
  TRY(comm_agree(session->world, begin_on_root(session)));
  TRY(join_lease(session));
  const enum status located =
      session->world->rank == 0
          ? STATUS_OK
          : run_folder_locate(&publication->folder, session->command->run, session->node->name);
  TRY(comm_agree(session->world, located));
  TRY(comm_broadcast(session->world, &publication->start, (int64_t)sizeof publication->start, 0));
  if (publication->start == RUN_FOLDER_DISCARDED)
    log_line(session->log, "an unfinished attempt with other options or inputs was removed");
  return STATUS_OK;
}

static enum status work(struct session *session, enum status (*function)(struct stage *)) {
  struct publication *publication = &session->publication;
  if (publication->start == RUN_FOLDER_FINISHED) return STATUS_OK;
  struct stage stage = {.recipe = &session->recipe,
                        .node = session->node,
                        .options = &session->node->options,
                        .comm = session->world,
                        .log = session->log,
                        .run_folder = session->command->run,
                        .folder = publication->folder.partial,
                        .manifest = &publication->manifest};
  TRY(comm_agree(session->world, function(&stage)));
  const bool root = session->world->rank == 0;
  return comm_agree(session->world,
                    root ? publication_finish(publication, session->world->size) : STATUS_OK);
}

enum status stage_run(struct comm *world, struct log *log, const struct stage_command *command,
                      enum status (*function)(struct stage *)) {
  struct session session = {.command = command, .world = world, .log = log};
  enum status status = share_recipe(&session);
  if (status == STATUS_OK) status = begin(&session);
  if (status == STATUS_OK) status = work(&session, function);
  lease_release(&session.lease);
  publication_free(&session.publication);
  recipe_free(&session.recipe);
  return status;
}
