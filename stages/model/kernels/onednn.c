#include "stages/model/kernels/onednn.h"

#include <omp.h>
#include <oneapi/dnnl/dnnl.h>
#include <string.h>

#include "pipeline/base/dtype.h"

enum { CAPACITY = 1024, FILL_LIMIT = 768, ARGUMENTS = 5 };

#if DNNL_VERSION_MAJOR >= 3
#define LAYOUT(layout) (layout)->desc
typedef const_dnnl_memory_desc_t const_layout;
#else
#define LAYOUT(layout) (&(layout)->desc)
typedef const dnnl_memory_desc_t *const_layout;
#endif

/* Rows, columns and strides of one operand, as the library describes them. */
struct layout {
  dnnl_memory_desc_t desc;
};

struct onednn_product {
  bool used;
  bool failed;
  struct onednn_shape shape;
  struct layout a, b, bias, c;
  dnnl_primitive_desc_t descriptor;
  dnnl_primitive_t primitive;
};

/* The library's handles and the products made so far, an open-addressed map. */
static struct {
  dnnl_engine_t engine;
  dnnl_stream_t stream;
  int count;
  struct onednn_product products[CAPACITY];
} cache;

static bool layout_make(struct layout *layout, int64_t rows, int64_t columns, int64_t row_stride,
                        int64_t column_stride, int64_t dtype) {
  const dnnl_data_type_t type = dtype == DTYPE_BF16 ? dnnl_bf16 : dnnl_f32;
  const dnnl_dims_t dims = {rows, columns};
  const dnnl_dims_t strides = {row_stride, column_stride};
#if DNNL_VERSION_MAJOR >= 3
  return dnnl_memory_desc_create_with_strides(&layout->desc, 2, dims, type, strides) ==
         dnnl_success;
#else
  return dnnl_memory_desc_init_by_strides(&layout->desc, 2, dims, type, strides) == dnnl_success;
#endif
}

static void layout_free(struct layout *layout) {
#if DNNL_VERSION_MAJOR >= 3
  if (layout->desc) dnnl_memory_desc_destroy(layout->desc);
#endif
  memset(layout, 0, sizeof *layout);
}

static bool make_layouts(struct onednn_product *product) {
  const struct onednn_shape *s = &product->shape;
  return layout_make(&product->a, s->m, s->k, s->a_row, s->a_column, s->input) &&
         layout_make(&product->b, s->k, s->n, s->b_row, s->b_column, s->input) &&
         layout_make(&product->bias, 1, s->n, s->n, 1, DTYPE_F32) &&
         layout_make(&product->c, s->m, s->n, s->c_row, 1, s->output);
}

static bool append_sum(dnnl_primitive_attr_t attributes) {
  dnnl_post_ops_t after = NULL;
  if (dnnl_post_ops_create(&after) != dnnl_success) return false;
#if DNNL_VERSION_MAJOR >= 3
  bool done = dnnl_post_ops_append_sum(after, 1.0f, 0, dnnl_data_type_undef) == dnnl_success;
#else
  bool done = dnnl_post_ops_append_sum(after, 1.0f) == dnnl_success;
#endif
  done = done && dnnl_primitive_attr_set_post_ops(attributes, after) == dnnl_success;
  dnnl_post_ops_destroy(after);
  return done;
}

static bool describe(struct onednn_product *product, dnnl_primitive_attr_t attributes) {
  struct layout *bias = product->shape.bias ? &product->bias : NULL;
#if DNNL_VERSION_MAJOR >= 3
  return dnnl_matmul_primitive_desc_create(&product->descriptor, cache.engine, product->a.desc,
                                           product->b.desc, bias ? bias->desc : NULL,
                                           product->c.desc, attributes) == dnnl_success;
#else
  dnnl_matmul_desc_t matmul;
  return dnnl_matmul_desc_init(&matmul, &product->a.desc, &product->b.desc,
                               bias ? &bias->desc : NULL, &product->c.desc) == dnnl_success &&
         dnnl_primitive_desc_create(&product->descriptor, &matmul, attributes, cache.engine,
                                    NULL) == dnnl_success;
#endif
}

static bool make_primitive(struct onednn_product *product) {
  dnnl_primitive_attr_t attributes = NULL;
  if (dnnl_primitive_attr_create(&attributes) != dnnl_success) return false;
  const bool done =
      dnnl_primitive_attr_set_scratchpad_mode(attributes, dnnl_scratchpad_mode_user) ==
          dnnl_success &&
      (!product->shape.add || append_sum(attributes)) && describe(product, attributes) &&
      dnnl_primitive_create(&product->primitive, product->descriptor) == dnnl_success;
  dnnl_primitive_attr_destroy(attributes);
  return done;
}

/* The library asks for the number of threads when it makes a product, and some products ask again
 * when they run. Returns the number to set again afterwards. */
static int enter_single_thread(void) {
  const int threads = omp_get_max_threads();
  omp_set_num_threads(1);
  return threads;
}

static bool open_library(void) {
  if (cache.stream) return true;
  return dnnl_engine_create(&cache.engine, dnnl_cpu, 0) == dnnl_success &&
         dnnl_stream_create(&cache.stream, cache.engine, dnnl_stream_default_flags) == dnnl_success;
}

static void make_product(struct onednn_product *product, const struct onednn_shape *shape) {
  product->used = true;
  product->shape = *shape;
  const int threads = enter_single_thread();
  product->failed = !open_library() || !make_layouts(product) || !make_primitive(product);
  omp_set_num_threads(threads);
  cache.count++;
}

static void free_product(struct onednn_product *product) {
  if (product->primitive) dnnl_primitive_destroy(product->primitive);
  if (product->descriptor) dnnl_primitive_desc_destroy(product->descriptor);
  layout_free(&product->a);
  layout_free(&product->b);
  layout_free(&product->bias);
  layout_free(&product->c);
  memset(product, 0, sizeof *product);
}

static void forget_products(void) {
  for (int i = 0; i < CAPACITY; i++)
    if (cache.products[i].used) free_product(&cache.products[i]);
  cache.count = 0;
}

static size_t slot_of(const struct onednn_shape *shape) {
  int64_t words[sizeof *shape / sizeof(int64_t)];
  memcpy(words, shape, sizeof *shape);
  uint64_t hash = 0;
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
    hash = (hash ^ (uint64_t)words[i]) * 0x9e3779b97f4a7c15u;
  return (size_t)(hash >> 32) % CAPACITY;
}

static const struct onednn_product *find_product(const struct onednn_shape *shape) {
  size_t slot = slot_of(shape);
  while (cache.products[slot].used &&
         memcmp(&cache.products[slot].shape, shape, sizeof *shape) != 0)
    slot = (slot + 1) % CAPACITY;
  struct onednn_product *product = &cache.products[slot];
  if (!product->used) make_product(product, shape);
  return product->failed ? NULL : product;
}

void onednn_find(const struct onednn_product **products, const struct onednn_shape *shapes,
                 int count) {
  if (cache.count > FILL_LIMIT) forget_products();
  for (int i = 0; i < count; i++) products[i] = find_product(&shapes[i]);
}

bool onednn_keeps_rows(const struct onednn_product *product) {
  const char *name = "";
  dnnl_primitive_desc_query(product->descriptor, dnnl_query_impl_info_str, 0, &name);
  return strncmp(name, "brg:", 4) == 0;
}

size_t onednn_scratch_bytes(const struct onednn_product *product) {
  return dnnl_memory_desc_get_size(
      dnnl_primitive_desc_query_md(product->descriptor, dnnl_query_scratchpad_md, 0));
}

static int argument_count(const struct onednn_product *product) {
  return product->shape.bias ? ARGUMENTS : ARGUMENTS - 1;
}

/* The library's arrays are not const, though inputs are only read. */
static void *writable(const void *pointer) {
  return (void *)(uintptr_t)pointer;
}

/* Wraps the caller's arrays for the library; on failure some of the arguments stay NULL. */
static bool fill_arguments(dnnl_exec_arg_t arguments[ARGUMENTS],
                           const struct onednn_product *product, void *const data[ARGUMENTS]) {
  const_layout layouts[ARGUMENTS] = {
      LAYOUT(&product->a), LAYOUT(&product->b), LAYOUT(&product->c),
      dnnl_primitive_desc_query_md(product->descriptor, dnnl_query_scratchpad_md, 0),
      LAYOUT(&product->bias)};
  for (int i = 0; i < argument_count(product); i++)
    if (dnnl_memory_create(&arguments[i].memory, layouts[i], cache.engine, data[i]) != dnnl_success)
      return false;
  return true;
}

bool onednn_run(const struct onednn_product *product, void *c, const void *a, const void *b,
                const void *bias, void *scratch) {
  dnnl_exec_arg_t arguments[ARGUMENTS] = {{DNNL_ARG_SRC, NULL},
                                          {DNNL_ARG_WEIGHTS, NULL},
                                          {DNNL_ARG_DST, NULL},
                                          {DNNL_ARG_SCRATCHPAD, NULL},
                                          {DNNL_ARG_BIAS, NULL}};
  void *const data[ARGUMENTS] = {writable(a), writable(b), c, scratch, writable(bias)};
  const int count = argument_count(product), threads = enter_single_thread();
  const bool done =
      fill_arguments(arguments, product, data) &&
      dnnl_primitive_execute(product->primitive, cache.stream, count, arguments) == dnnl_success;
  omp_set_num_threads(threads);
  for (int i = 0; i < count; i++)
    if (arguments[i].memory) dnnl_memory_destroy(arguments[i].memory);
  return done;
}

bool onednn_has_tiles(void) {
  return (dnnl_get_effective_cpu_isa() & dnnl_cpu_isa_avx512_core_amx) ==
         dnnl_cpu_isa_avx512_core_amx;
}

void onednn_close(void) {
  forget_products();
  if (cache.stream) dnnl_stream_destroy(cache.stream);
  if (cache.engine) dnnl_engine_destroy(cache.engine);
  cache.stream = NULL;
  cache.engine = NULL;
}
