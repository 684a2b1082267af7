/* np: 1 2 3 4 */
#include <string.h>

#include "pipeline/base/bf16.h"
#include "tests/common/parallel.h"

enum { COUNT = 5003, LIMIT = 1000 };

/* A copy of the world whose messages are cut to LIMIT bytes. */
static void open_limited(struct parallel_test *test, struct comm *comm) {
  parallel_ok(test, comm_split(comm, test->world, 0));
  comm->block_bytes = LIMIT;
}

static void close_limited(struct parallel_test *test, struct comm *comm) {
  parallel_expect(test, comm->traffic.largest_count <= LIMIT);
  comm_free(comm);
}

static unsigned char byte_of(int rank, int64_t i) {
  return (unsigned char)(rank * 31 + i * 7);
}

static bool bytes_from(const unsigned char *bytes, int64_t count, int rank) {
  for (int64_t i = 0; i < count; i++)
    if (bytes[i] != byte_of(rank, i)) return false;
  return true;
}

static void fill(unsigned char *bytes, int64_t count, int rank) {
  for (int64_t i = 0; i < count; i++) bytes[i] = byte_of(rank, i);
}

static void broadcasts(struct parallel_test *test) {
  struct comm comm;
  unsigned char bytes[COUNT];
  open_limited(test, &comm);
  for (int root = 0; root < comm.size; root++) {
    fill(bytes, COUNT, comm.rank);
    parallel_ok(test, comm_broadcast(&comm, bytes, COUNT, root));
    parallel_expect(test, bytes_from(bytes, COUNT, root));
  }
  close_limited(test, &comm);
}

static void gathers(struct parallel_test *test) {
  static unsigned char all[4 * COUNT];
  unsigned char mine[COUNT];
  struct comm comm;
  const int64_t sizes[] = {3, 100, COUNT};
  open_limited(test, &comm);
  fill(mine, COUNT, comm.rank);
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
    memset(all, 0, sizeof all);
    parallel_ok(test, comm_allgather(&comm, all, mine, sizes[s]));
    for (int r = 0; r < comm.size; r++)
      parallel_expect(test, bytes_from(all + r * sizes[s], sizes[s], r));
    memset(all, 0, sizeof all);
    parallel_ok(test, comm_gather(&comm, all, mine, sizes[s], comm.size - 1));
    for (int r = 0; comm.rank == comm.size - 1 && r < comm.size; r++)
      parallel_expect(test, bytes_from(all + r * sizes[s], sizes[s], r));
  }
  close_limited(test, &comm);
}

static void uneven_gathers(struct parallel_test *test) {
  static unsigned char all[4 * COUNT];
  const int64_t counts[] = {COUNT, 0, 17, 1001};
  unsigned char mine[COUNT];
  struct comm comm;
  open_limited(test, &comm);
  fill(mine, COUNT, comm.rank);
  parallel_ok(test, comm_allgatherv(&comm, all, mine, counts));
  for (int64_t r = 0, offset = 0; r < comm.size; offset += counts[r++])
    parallel_expect(test, bytes_from(all + offset, counts[r], (int)r));
  close_limited(test, &comm);
}

/* Rank a sends 500 * a + 700 * b + 1 bytes to rank b. */
static int64_t sent_between(int a, int b) {
  return 500 * a + 700 * b + 1;
}

static void exchanges_all_to_all(struct parallel_test *test) {
  static unsigned char sent[4 * COUNT], received[4 * COUNT];
  struct comm comm;
  int64_t out[4], in[4];
  open_limited(test, &comm);
  for (int64_t r = 0, offset = 0; r < comm.size; offset += out[r++]) {
    out[r] = sent_between(comm.rank, (int)r);
    in[r] = sent_between((int)r, comm.rank);
    fill(sent + offset, out[r], comm.rank * 4 + (int)r);
  }
  parallel_ok(test, comm_alltoallv(&comm, received, in, sent, out));
  for (int64_t r = 0, offset = 0; r < comm.size; offset += in[r++])
    parallel_expect(test, bytes_from(received + offset, in[r], (int)r * 4 + comm.rank));
  close_limited(test, &comm);
}

static void sends_and_exchanges(struct parallel_test *test) {
  unsigned char bytes[COUNT];
  struct comm comm;
  open_limited(test, &comm);
  fill(bytes, COUNT, 9);
  if (comm.size > 1 && comm.rank == 0) parallel_ok(test, comm_send(&comm, bytes, COUNT, 1));
  if (comm.rank == 1) {
    memset(bytes, 0, sizeof bytes);
    parallel_ok(test, comm_receive(&comm, bytes, COUNT, 0));
    parallel_expect(test, bytes_from(bytes, COUNT, 9));
  }
  const int peer = comm.rank ^ 1;
  unsigned char other[COUNT] = {0};
  if (peer < comm.size) {
    fill(bytes, COUNT, comm.rank);
    parallel_ok(test, comm_exchange(&comm, peer, (struct comm_part){bytes, 400 * (comm.rank + 1)},
                                    peer, (struct comm_part){other, 400 * (peer + 1)}));
    parallel_expect(test, bytes_from(other, 400 * (peer + 1), peer));
  }
  parallel_ok(test, comm_barrier(&comm));
  close_limited(test, &comm);
}

static void reduces_every_type(struct parallel_test *test) {
  struct comm comm;
  open_limited(test, &comm);
  const int n = comm.size;
  double reals[COUNT];
  float floats[COUNT];
  bf16 halves[COUNT];
  int64_t integers[COUNT];
  for (int i = 0; i < COUNT; i++) {
    integers[i] = i + comm.rank;
    reals[i] = i + comm.rank;
    floats[i] = (float)(i % 64 + comm.rank);
    halves[i] = bf16_from_float((float)(i % 16 - comm.rank));
  }
  parallel_ok(test, comm_allreduce(&comm, reals, COUNT, DTYPE_F64, COMM_SUM));
  parallel_ok(test, comm_allreduce(&comm, floats, COUNT, DTYPE_F32, COMM_MIN));
  parallel_ok(test, comm_allreduce(&comm, integers, COUNT, DTYPE_I64, COMM_MAX));
  parallel_ok(test, comm_allreduce(&comm, halves, COUNT, DTYPE_BF16, COMM_SUM));
  for (int i = 0; i < COUNT; i++) {
    parallel_expect(test, reals[i] == n * i + n * (n - 1) / 2);
    parallel_expect(test, floats[i] == (float)(i % 64));
    parallel_expect(test, integers[i] == i + n - 1);
    parallel_expect(test, bf16_to_float(halves[i]) == (float)(n * (i % 16) - n * (n - 1) / 2));
  }
  close_limited(test, &comm);
}

static void refuses_types_that_cannot_be_added(struct parallel_test *test) {
  unsigned char flag = 1;
  const enum status expected = test->world->size > 1 ? STATUS_INTERNAL : STATUS_OK;
  parallel_expect(test, comm_allreduce(test->world, &flag, 1, DTYPE_BOOL, COMM_SUM) == expected);
}

static void scatters_sums(struct parallel_test *test) {
  const int64_t borders[] = {0, 2500, 2500, 3001, COUNT};
  struct comm comm;
  open_limited(test, &comm);
  float values[COUNT], mine[COUNT] = {0};
  const int64_t *border = borders + comm.rank;
  for (int i = 0; i < COUNT; i++) values[i] = (float)(i % 100 + comm.rank);
  parallel_ok(test, comm_reduce_scatter(&comm, mine, values, borders, DTYPE_F32));
  for (int64_t i = border[0]; i < border[1]; i++)
    parallel_expect(test, mine[i - border[0]] ==
                              (float)(comm.size * (i % 100) + comm.size * (comm.size - 1) / 2));
  close_limited(test, &comm);
}

static void reduces_in_the_background(struct parallel_test *test) {
  struct comm comm;
  struct comm_request request = {0};
  bool done = false;
  open_limited(test, &comm);
  double values[COUNT];
  for (int i = 0; i < COUNT; i++) values[i] = i + comm.rank;
  parallel_ok(test, comm_wait(&comm, &request));
  parallel_ok(test, comm_allreduce_start(&comm, &request, values, COUNT, DTYPE_F64));
  parallel_ok(test, comm_test(&comm, &request, &done));
  parallel_ok(test, comm_wait(&comm, &request));
  parallel_ok(test, comm_test(&comm, &request, &done));
  parallel_expect(test, done);
  for (int i = 0; i < COUNT; i++)
    parallel_expect(test, values[i] == comm.size * i + comm.size * (comm.size - 1) / 2);
  close_limited(test, &comm);
}

static void counts_traffic(struct parallel_test *test) {
  struct comm comm;
  char byte = 0;
  open_limited(test, &comm);
  const int64_t before = comm.traffic.calls;
  parallel_ok(test, comm_broadcast(&comm, &byte, 1, 0));
  parallel_expect(test, comm.traffic.calls == before + 1 && comm.traffic.bytes == 1);
  parallel_expect(test, strcmp(comm.traffic.last, "broadcast") == 0);
  close_limited(test, &comm);
}

static void splits_by_color_and_node(struct parallel_test *test) {
  struct comm half, node;
  parallel_ok(test, comm_split(&half, test->world, test->world->rank % 2));
  parallel_expect(test, half.rank == test->world->rank / 2);
  parallel_expect(test, half.size == (test->world->size + 1 - test->world->rank % 2) / 2);
  parallel_ok(test, comm_split_node(&node, test->world));
  parallel_expect(test, node.size == test->world->size);
  comm_free(&node);
  comm_free(&half);
  comm_free(&half);
}

int main(void) {
  const struct parallel_case cases[] = {
      {"R-MPI-2 broadcast in blocks of 1000", broadcasts},
      {"R-MPI-2 allgather and gather in blocks of 1000", gathers},
      {"R-MPI-2 allgatherv of uneven parts", uneven_gathers},
      {"R-MPI-2 alltoallv of uneven parts", exchanges_all_to_all},
      {"R-MPI-2 send, receive, exchange", sends_and_exchanges},
      {"R-MPI-2 R-MPI-3 allreduce of every type", reduces_every_type},
      {"types that cannot be added are refused", refuses_types_that_cannot_be_added},
      {"R-MPI-2 reduce_scatter to uneven parts", scatters_sums},
      {"R-MPI-2 allreduce in the background", reduces_in_the_background},
      {"R-MPI-4 calls are numbered and named", counts_traffic},
      {"communicators by color and by node", splits_by_color_and_node},
  };
  return parallel_main(cases, (int)(sizeof cases / sizeof *cases));
}
