#include "pipeline/base/bf16.h"
#include "sharding/comm_call.h"

enum status comm_datatype(MPI_Datatype *type, enum dtype dtype) {
  const MPI_Datatype types[DTYPE_COUNT] = {
      [DTYPE_F64] = MPI_DOUBLE,  [DTYPE_F32] = MPI_FLOAT,    [DTYPE_I64] = MPI_INT64_T,
      [DTYPE_I32] = MPI_INT32_T, [DTYPE_U64] = MPI_UINT64_T, [DTYPE_U8] = MPI_UINT8_T,
  };
  CHECK(types[dtype], STATUS_INTERNAL, "elements of type %s cannot be added over ranks",
        dtype_name(dtype));
  *type = types[dtype];
  return STATUS_OK;
}

static MPI_Op operation_of(enum comm_operation operation) {
  if (operation == COMM_MAX) return MPI_MAX;
  return operation == COMM_MIN ? MPI_MIN : MPI_SUM;
}

/* bf16 has no MPI type: the block travels as float and is rounded once. */
static enum status reduce_bf16(struct comm *comm, bf16 *values, int64_t count, MPI_Op operation) {
  float *block = (float *)comm->scratch.base;
  for (int64_t i = 0; i < count; i++) block[i] = bf16_to_float(values[i]);
  MPI_TRY("MPI_Allreduce", MPI_Allreduce(MPI_IN_PLACE, block, comm_int(comm, count), MPI_FLOAT,
                                         operation, comm->handle));
  for (int64_t i = 0; i < count; i++) values[i] = bf16_from_float(block[i]);
  return STATUS_OK;
}

static enum status reduce_block(struct comm *comm, char *values, int64_t count, enum dtype dtype,
                                MPI_Op operation) {
  if (dtype == DTYPE_BF16) return reduce_bf16(comm, (bf16 *)(void *)values, count, operation);
  MPI_Datatype type = MPI_DATATYPE_NULL;
  TRY(comm_datatype(&type, dtype));
  MPI_TRY("MPI_Allreduce", MPI_Allreduce(MPI_IN_PLACE, values, comm_int(comm, count), type,
                                         operation, comm->handle));
  return STATUS_OK;
}

enum status comm_allreduce(struct comm *comm, void *values, int64_t count, enum dtype dtype,
                           enum comm_operation operation) {
  const int64_t bytes = (int64_t)dtype_bytes(dtype);
  const int64_t block = comm_block(comm, dtype == DTYPE_BF16 ? (int64_t)sizeof(float) : bytes);
  const double started = comm_enter(comm, "allreduce", count * bytes);
  for (int64_t i = 0; comm->size > 1 && i < count; i += block)
    TRY(reduce_block(comm, (char *)values + i * bytes, count - i < block ? count - i : block, dtype,
                     operation_of(operation)));
  comm_leave(comm, started);
  return STATUS_OK;
}

enum status comm_reduce_scatter(struct comm *comm, void *mine, void *values, const int64_t *borders,
                                enum dtype dtype) {
  const int64_t bytes = (int64_t)dtype_bytes(dtype);
  const int64_t block = comm_block(comm, bytes);
  MPI_Datatype type = MPI_DATATYPE_NULL;
  TRY(comm_datatype(&type, dtype));
  const double started = comm_enter(comm, "reduce_scatter", borders[comm->size] * bytes);
  for (int r = 0; r < comm->size; r++)
    for (int64_t i = borders[r]; i < borders[r + 1]; i += block) {
      const int64_t count = borders[r + 1] - i < block ? borders[r + 1] - i : block;
      void *result = comm->rank == r ? (char *)mine + (i - borders[r]) * bytes : NULL;
      MPI_TRY("MPI_Reduce", MPI_Reduce((char *)values + i * bytes, result, comm_int(comm, count),
                                       type, MPI_SUM, r, comm->handle));
    }
  comm_leave(comm, started);
  return STATUS_OK;
}

/* Elements of one message when `count` are cut into at most COMM_REQUEST_PARTS messages. */
static int64_t part_size(const struct comm *comm, int64_t count, int64_t element_bytes) {
  const int64_t block = comm_block(comm, element_bytes);
  const int64_t least = (count + COMM_REQUEST_PARTS - 1) / COMM_REQUEST_PARTS;
  return least > block ? least : block;
}

enum status comm_allreduce_start(struct comm *comm, struct comm_request *request, void *values,
                                 int64_t count, enum dtype dtype) {
  const int64_t bytes = (int64_t)dtype_bytes(dtype);
  const int64_t size = part_size(comm, count, bytes);
  MPI_Datatype type = MPI_DATATYPE_NULL;
  TRY(comm_datatype(&type, dtype));
  const double started = comm_enter(comm, "allreduce_start", count * bytes);
  request->count = 0;
  for (int64_t i = 0; comm->size > 1 && i < count; i += size)
    MPI_TRY("MPI_Iallreduce",
            MPI_Iallreduce(MPI_IN_PLACE, (char *)values + i * bytes,
                           comm_int(comm, count - i < size ? count - i : size), type, MPI_SUM,
                           comm->handle, &request->parts[request->count++]));
  comm_leave(comm, started);
  return STATUS_OK;
}

enum status comm_broadcast_start(struct comm *comm, struct comm_request *request, void *data,
                                 int64_t bytes, int root) {
  const int64_t size = part_size(comm, bytes, 1);
  const double started = comm_enter(comm, "broadcast_start", bytes);
  request->count = 0;
  for (int64_t i = 0; comm->size > 1 && i < bytes; i += size)
    MPI_TRY("MPI_Ibcast",
            MPI_Ibcast((char *)data + i, comm_int(comm, bytes - i < size ? bytes - i : size),
                       MPI_BYTE, root, comm->handle, &request->parts[request->count++]));
  comm_leave(comm, started);
  return STATUS_OK;
}

enum status comm_test(struct comm *comm, struct comm_request *request, bool *done) {
  int flag = 1;
  const double started = MPI_Wtime();
  MPI_TRY("MPI_Testall", MPI_Testall(request->count, request->parts, &flag, MPI_STATUSES_IGNORE));
  if (flag) request->count = 0;
  *done = flag != 0;
  comm_leave(comm, started);
  return STATUS_OK;
}

enum status comm_wait(struct comm *comm, struct comm_request *request) {
  const double started = comm_enter(comm, "wait", 0);
  MPI_TRY("MPI_Waitall", MPI_Waitall(request->count, request->parts, MPI_STATUSES_IGNORE));
  request->count = 0;
  comm_leave(comm, started);
  return STATUS_OK;
}
