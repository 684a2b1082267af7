#include "tests/common/raw_product.h"

#include <oneapi/dnnl/dnnl.h>
#include <stdio.h>
#include <stdlib.h>

struct raw_product {
  dnnl_engine_t engine;
  dnnl_stream_t stream;
  dnnl_primitive_t primitive;
  dnnl_exec_arg_t arguments[3];
};

static void require(dnnl_status_t status) {
  if (status == dnnl_success) return;
  fprintf(stderr, "oneDNN refused a product\n");
  exit(EXIT_FAILURE);
}

#if DNNL_VERSION_MAJOR >= 3
typedef dnnl_memory_desc_t description;
#define POINTER(x) (x)

static description describe(int64_t rows, int64_t columns, bool transposed, bool bf16) {
  description made;
  require(dnnl_memory_desc_create_with_tag(&made, 2, (dnnl_dims_t){rows, columns},
                                           bf16 ? dnnl_bf16 : dnnl_f32,
                                           transposed ? dnnl_ba : dnnl_ab));
  return made;
}
#else
typedef dnnl_memory_desc_t description;
#define POINTER(x) (&(x))

static description describe(int64_t rows, int64_t columns, bool transposed, bool bf16) {
  description made;
  require(dnnl_memory_desc_init_by_tag(&made, 2, (dnnl_dims_t){rows, columns},
                                       bf16 ? dnnl_bf16 : dnnl_f32,
                                       transposed ? dnnl_ba : dnnl_ab));
  return made;
}
#endif

static dnnl_primitive_attr_t make_attributes(bool add) {
  dnnl_primitive_attr_t attributes;
  dnnl_post_ops_t after;
  require(dnnl_primitive_attr_create(&attributes));
  require(dnnl_post_ops_create(&after));
#if DNNL_VERSION_MAJOR >= 3
  if (add) require(dnnl_post_ops_append_sum(after, 1.0f, 0, dnnl_data_type_undef));
#else
  if (add) require(dnnl_post_ops_append_sum(after, 1.0f));
#endif
  require(dnnl_primitive_attr_set_post_ops(attributes, after));
  require(dnnl_post_ops_destroy(after));
  return attributes;
}

static void make_primitive(struct raw_product *product, description a, description b, description c,
                           bool add) {
  dnnl_primitive_attr_t attributes = make_attributes(add);
  dnnl_primitive_desc_t descriptor;
#if DNNL_VERSION_MAJOR >= 3
  require(
      dnnl_matmul_primitive_desc_create(&descriptor, product->engine, a, b, NULL, c, attributes));
#else
  dnnl_matmul_desc_t matmul;
  require(dnnl_matmul_desc_init(&matmul, &a, &b, NULL, &c));
  require(dnnl_primitive_desc_create(&descriptor, &matmul, attributes, product->engine, NULL));
#endif
  require(dnnl_primitive_create(&product->primitive, descriptor));
  dnnl_primitive_desc_destroy(descriptor);
  dnnl_primitive_attr_destroy(attributes);
}

struct raw_product *raw_product_make(const struct raw_product_shape *s) {
  struct raw_product *product = calloc(1, sizeof *product);
  if (!product) exit(EXIT_FAILURE);
  require(dnnl_engine_create(&product->engine, dnnl_cpu, 0));
  require(dnnl_stream_create(&product->stream, product->engine, dnnl_stream_default_flags));
  description a = describe(s->m, s->k, s->a_transposed, s->bf16);
  description b = describe(s->k, s->n, s->b_transposed, s->bf16);
  description c = describe(s->m, s->n, false, s->bf16_out);
  make_primitive(product, a, b, c, s->add);
  product->arguments[0].arg = DNNL_ARG_SRC;
  product->arguments[1].arg = DNNL_ARG_WEIGHTS;
  product->arguments[2].arg = DNNL_ARG_DST;
  require(dnnl_memory_create(&product->arguments[0].memory, POINTER(a), product->engine, s->a));
  require(dnnl_memory_create(&product->arguments[1].memory, POINTER(b), product->engine, s->b));
  require(dnnl_memory_create(&product->arguments[2].memory, POINTER(c), product->engine, s->c));
#if DNNL_VERSION_MAJOR >= 3
  dnnl_memory_desc_destroy(a);
  dnnl_memory_desc_destroy(b);
  dnnl_memory_desc_destroy(c);
#endif
  return product;
}

void raw_product_run(struct raw_product *product) {
  require(dnnl_primitive_execute(product->primitive, product->stream, 3, product->arguments));
  require(dnnl_stream_wait(product->stream));
}

void raw_product_free(struct raw_product *product) {
  for (int i = 0; i < 3; i++) dnnl_memory_destroy(product->arguments[i].memory);
  dnnl_primitive_destroy(product->primitive);
  dnnl_stream_destroy(product->stream);
  dnnl_engine_destroy(product->engine);
  free(product);
}
