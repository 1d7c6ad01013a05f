/* The layered lowering: one matrix product a LINEAR layer over the rows of all sets, one pointwise kernel a POINTWISE layer for all
 * sets; on a GPU by cuBLAS and generated kernels, on a CPU, as its own reference, by product.c and the interpreter. Same nodes on both.
 *
 *   layer 1 forward | layer 2 product, layer 2 forward | ... | residual | weight gradient, input gradient, layer backward | ...
 *
 * Weight gradients. dW = A^T dZ sums over all rows; the rows are cut into equal chunks, a function of their number alone, and each chunk
 * gives a partial dW, all in one batched product. Buffers are padded with rows that hold zeros for ever to fill the last chunk.
 *
 * Other sums leave a kernel as one row of partials a thread block, sections one after another.
 */
#include <stdio.h>
#include <string.h>

#include "core/memory.h"
#include "network/description.h"
#include "network/product.h"

enum {
    CHUNK_ROWS = 512, /* of a weight gradient's chunk, at least, ... */
    CHUNKS = 128,     /* ... and the most chunks: about one a multiprocessor */
    ROW_ALIGNMENT = 16,
    ELEMENT_ALIGNMENT = 64 /* of arrays within a plane: 256 bytes in float32 */
};

enum stage { STAGE_FORWARD, STAGE_RESIDUAL, STAGE_BACKWARD };

typedef struct node {
    pinn_operation operation;
    char name[48];
    const pn_pass *pass;
    unsigned reads, writes; /* masks of pn_base; what is written in part is read too */
    /* products */
    pn_product product;
    pn_operand a, b, c;
    /* pointwise: operands of all sections one after another */
    pn_section *section; size_t sections;
    pn_operand *in, *out; size_t inputs, outputs;
    void **in_address, **out_address;
    size_t *rows;         /* [sections] of partial sums */
    pn_operand *real_sum, *f64_sum; /* [sections] first row of partials */
    void **real_address; double **f64_address;
    size_t real_length;   /* elements of a row of real sums */
    size_t *f64_length;   /* [sections] */
    pn_kernel *kernel;    /* NULL on the CPU */
    pn_compilation *check; /* on the CPU, of compile_for */
} node;

typedef struct layered {
    node **node; size_t nodes; /* nodes keep their addresses: recorded lists point at them */
    size_t chunk_rows, chunks;
    size_t gradient_elements, loss_elements;
} layered;

static size_t aligned(size_t elements) { return (elements + ELEMENT_ALIGNMENT - 1) / ELEMENT_ALIGNMENT * ELEMENT_ALIGNMENT; }

/* ---- nodes that run ----------------------------------------------------------------------------------------------------------- */

static const node *resolve(const pinn_run *run, void **base) {
    const node *n = *(const node *const *)run->arguments;
    for (pn_base b = 0; b < PN_BASES; b++) base[b] = NULL;
    pn_pass_addresses(n->pass, n->reads, run->read, base);
    pn_pass_addresses(n->pass, n->writes, run->write, base);
    return n;
}

static pinn_status product_cpu(const pinn_run *run) {
    void *base[PN_BASES];
    const node *n = resolve(run, base);
    pn_product_run(&n->product, n->pass->real, pn_operand_address(n->pass, base, n->a), pn_operand_address(n->pass, base, n->b), false,
                   pn_operand_address(n->pass, base, n->c));
    return PINN_OK;
}

static pinn_status product_cuda(const pinn_run *run) {
    void *base[PN_BASES];
    const node *n = resolve(run, base);
    return pn_product_launch(&n->product, n->pass->real, n->pass->tf32, pinn_context_blas(run->context), run->stream,
                             pn_operand_address(n->pass, base, n->a), pn_operand_address(n->pass, base, n->b),
                             pn_operand_address(n->pass, base, n->c));
}

static const node *resolve_operands(const pinn_run *run) {
    void *base[PN_BASES];
    const node *n = resolve(run, base);
    for (size_t i = 0; i < n->inputs; i++) n->in_address[i] = pn_operand_address(n->pass, base, n->in[i]);
    for (size_t i = 0; i < n->outputs; i++) n->out_address[i] = pn_operand_address(n->pass, base, n->out[i]);
    for (size_t s = 0; s < n->sections; s++) {
        n->real_address[s] = n->real_length ? pn_operand_address(n->pass, base, n->real_sum[s]) : NULL;
        n->f64_address[s] = n->f64_length[s] ? pn_operand_address(n->pass, base, n->f64_sum[s]) : NULL;
    }
    return n;
}

static pinn_status pointwise_cuda(const pinn_run *run) {
    const node *n = resolve_operands(run);
    return pn_kernel_launch(n->kernel, run->stream, (const void *const *)n->in_address, n->out_address, n->real_address, n->f64_address);
}

static pinn_status pointwise_cpu(const pinn_run *run) {
    const node *n = resolve_operands(run);
    size_t scratch_bytes = 0;
    for (size_t s = 0; s < n->sections; s++)
        if (pn_program_scratch(n->section[s].program) > scratch_bytes) scratch_bytes = pn_program_scratch(n->section[s].program);
    void *scratch = pn_allocate(scratch_bytes, 1);
    if (!scratch) return PN_NO_MEMORY("a pointwise program");
    void *const *in = n->in_address, *const *out = n->out_address;
    for (size_t s = 0; s < n->sections; s++) {
        const pn_program *program = n->section[s].program;
        if (n->real_address[s]) memset(n->real_address[s], 0, n->real_length * pn_real_bytes(n->pass->real));
        if (n->f64_address[s]) memset(n->f64_address[s], 0, n->f64_length[s] * sizeof(double));
        pn_program_run(program, n->section[s].points, (const void *const *)in, out, scratch);
        in += pn_program_inputs(program);
        out += pn_program_outputs(program);
    }
    pn_free(scratch);
    return PINN_OK;
}

/* ---- building nodes ----------------------------------------------------------------------------------------------------------- */

static pinn_status add_node(pn_pass *pass, node **out) {
    layered *w = pass->lowered;
    node **grown = pn_reallocate(w->node, w->nodes, w->nodes + 1, sizeof *grown);
    if (!grown) return PN_NO_MEMORY("the network pass");
    w->node = grown;
    node *n = pn_allocate(1, sizeof *n);
    if (!n) return PN_NO_MEMORY("the network pass");
    n->pass = pass;
    n->operation.name = n->name;
    w->node[w->nodes++] = n;
    *out = n;
    return PINN_OK;
}

/* The number a layer has in the names of its parameters: a LINEAR layer and the POINTWISE one after it are one dense layer; an
 * embedding without parameters is layer 0. */
static size_t layer_number(const pn_pass *pass, size_t l) { return (l + 1) / 2 + (pass->trained_from == 0); }

static void declare(node *n, pn_operand operand, bool written) {
    n->reads |= 1u << operand.base;
    if (written) n->writes |= 1u << operand.base;
}

static pinn_status add_product(pn_pass *pass, const char *what, size_t layer, pn_product product, pn_operand a, pn_operand b, pn_operand c) {
    node *n = NULL;
    pinn_status status = add_node(pass, &n);
    if (status != PINN_OK) return status;
    snprintf(n->name, sizeof n->name, "layer %zu %s", layer_number(pass, layer), what);
    n->operation.cpu = product_cpu;
    n->operation.cuda = product_cuda;
    n->product = product;
    n->a = a;
    n->b = b;
    n->c = c;
    declare(n, a, false);
    declare(n, b, false);
    declare(n, c, true);
    return PINN_OK;
}

static pinn_status add_linear_forward(pn_pass *pass, size_t l) {
    const pn_layer *layer = &pass->network->layer[l];
    const pn_product product = {.m = pass->rows, .n = layer->out, .k = layer->in, .batch = 1};
    return add_product(pass, "product", l, product, (pn_operand){PN_BASE_WORK, pass->buffer[l - 1]},
                       (pn_operand){PN_BASE_PARAMETERS, layer->parameter[0].offset}, (pn_operand){PN_BASE_WORK, pass->buffer[l]});
}

static pinn_status add_linear_backward(pn_pass *pass, size_t l) {
    pinn_status status;
    layered *w = pass->lowered;
    const pn_layer *layer = &pass->network->layer[l];
    const size_t count = layer->in * layer->out, weight = layer->parameter[0].offset, partial = w->gradient_elements;
    const pn_operand a = {PN_BASE_WORK, pass->buffer[l - 1]}, dz = {PN_BASE_WORK, pass->buffer[l]};
    const pn_product by_weight = {.transpose_a = true, .m = layer->in, .n = layer->out, .k = w->chunk_rows, .batch = w->chunks,
                                  .stride_a = w->chunk_rows * layer->in, .stride_b = w->chunk_rows * layer->out, .stride_c = count};
    PN_TRY(add_product(pass, "weight gradient", l, by_weight, a, dz, (pn_operand){PN_BASE_GRADIENT, partial}));
    PN_TRY(pn_pass_add_gradient(pass, (pn_partial){weight, count, w->chunks, count, partial}));
    w->gradient_elements = aligned(partial + w->chunks * count);
    if (l <= pass->trained_from) return PINN_OK;
    const pn_product by_input = {.transpose_b = true, .m = pass->rows, .n = layer->in, .k = layer->out, .batch = 1};
    PN_TRY(add_product(pass, "input gradient", l, by_input, dz, (pn_operand){PN_BASE_PARAMETERS, weight}, a));
fail:
    return status;
}

/* What section s of a stage runs, and where. Programs over coordinates and residuals run set by set, the others group by group. */
static const pn_program *find_section(const pn_pass *pass, enum stage stage, size_t l, size_t s, pn_span *span, const pn_group **group) {
    const bool by_member = stage == STAGE_RESIDUAL || pass->network->layer[l].coordinates;
    const pn_member *member = by_member ? &pass->member[s] : NULL;
    *group = &pass->group[by_member ? member->group : s];
    *span = (pn_span){.points = (*group)->points, .row = (*group)->row, .pitch = (*group)->points};
    if (by_member)
        *span = (pn_span){member->points, (*group)->row + member->first, (*group)->points, member->point_offset, member->points,
                          member->field_offset, member->points};
    return stage == STAGE_RESIDUAL ? member->residual : stage == STAGE_FORWARD ? (*group)->forward[l] : (*group)->backward[l];
}

static pinn_status allocate_sections(const pn_pass *pass, node *n, enum stage stage, size_t l) {
    pn_span span;
    const pn_group *group;
    for (size_t s = 0; s < n->sections; s++) {
        const pn_program *program = find_section(pass, stage, l, s, &span, &group);
        n->inputs += pn_program_inputs(program);
        n->outputs += pn_program_outputs(program);
    }
    n->section = pn_allocate(n->sections, sizeof *n->section);
    n->in = pn_allocate(n->inputs, sizeof *n->in);
    n->out = pn_allocate(n->outputs, sizeof *n->out);
    n->in_address = pn_allocate(n->inputs, sizeof *n->in_address);
    n->out_address = pn_allocate(n->outputs, sizeof *n->out_address);
    n->rows = pn_allocate(n->sections, sizeof *n->rows);
    n->real_sum = pn_allocate(n->sections, sizeof *n->real_sum);
    n->f64_sum = pn_allocate(n->sections, sizeof *n->f64_sum);
    n->real_address = pn_allocate(n->sections, sizeof *n->real_address);
    n->f64_address = pn_allocate(n->sections, sizeof *n->f64_address);
    n->f64_length = pn_allocate(n->sections, sizeof *n->f64_length);
    return n->section && n->in && n->out && n->in_address && n->out_address && n->rows && n->real_sum && n->f64_sum && n->real_address &&
                   n->f64_address && n->f64_length
               ? PINN_OK
               : PN_NO_MEMORY("the network pass");
}

static void bind_sections(const pn_pass *pass, node *n, enum stage stage, size_t l) {
    pn_operand *in = n->in, *out = n->out;
    for (size_t s = 0; s < n->sections; s++) {
        pn_span span;
        const pn_group *group;
        const pn_program *program = find_section(pass, stage, l, s, &span, &group);
        n->section[s] = (pn_section){program, span.points};
        if (stage == STAGE_FORWARD) pn_bind_forward(pass, group, l, &span, in, out);
        if (stage == STAGE_RESIDUAL) pn_bind_residual(pass, &pass->member[s], &span, in, out);
        if (stage == STAGE_BACKWARD) pn_bind_backward(pass, group, l, &span, in, out);
        for (size_t i = 0; i < pn_program_inputs(program); i++) declare(n, in[i], false);
        for (size_t i = 0; i < pn_program_outputs(program); i++) declare(n, out[i], true);
        in += pn_program_inputs(program);
        out += pn_program_outputs(program);
    }
}

/* Sums of one section leave the CPU form as one row: its sum operands point into that row. */
static void point_sums(node *n, size_t s, pn_operand *out, size_t outputs, size_t width) {
    pn_operand real = n->real_sum[s], f64 = n->f64_sum[s];
    for (size_t i = 0; i < outputs; i++) {
        if (out[i].base == PN_BASE_GRADIENT) {
            out[i] = real;
            real.offset += width;
        } else if (out[i].base == PN_BASE_LOSS) {
            out[i] = f64;
            f64.offset++;
        }
    }
}

/* Places the partial sums of a residual or backward stage. All sections have the same real sums: `width` columns of each vector at
 * first[0], first[1], ... of the gradient; their rows follow one another. Losses are each section's own. */
static pinn_status place_sums(pn_pass *pass, node *n, enum stage stage, const size_t *first, size_t vectors, size_t width) {
    layered *w = pass->lowered;
    const size_t base = w->gradient_elements, length = vectors * width;
    size_t rows = 0;
    pn_operand *out = n->out;
    n->real_length = length;
    for (size_t s = 0; s < n->sections; s++) {
        n->rows[s] = n->kernel ? pn_kernel_partial_rows(n->kernel, s) : 1;
        n->real_sum[s] = (pn_operand){PN_BASE_GRADIENT, base + rows * length};
        rows += n->rows[s];
        if (stage == STAGE_RESIDUAL) {
            const pn_member *member = &pass->member[s];
            n->f64_length[s] = member->residuals;
            n->f64_sum[s] = (pn_operand){PN_BASE_LOSS, w->loss_elements};
            pinn_status status = pn_pass_add_loss(pass, (pn_partial){member->first_term, member->residuals, n->rows[s], member->residuals,
                                                                     w->loss_elements});
            if (status != PINN_OK) return status;
            w->loss_elements += n->rows[s] * member->residuals;
        }
        point_sums(n, s, out, pn_program_outputs(n->section[s].program), width);
        out += pn_program_outputs(n->section[s].program);
    }
    for (size_t k = 0; k < vectors; k++) {
        pinn_status status = pn_pass_add_gradient(pass, (pn_partial){first[k], width, rows, length, base + k * width});
        if (status != PINN_OK) return status;
    }
    w->gradient_elements = aligned(base + rows * length);
    return PINN_OK;
}

static pinn_status place_layer_sums(pn_pass *pass, node *n, size_t l) {
    const pn_layer *layer = &pass->network->layer[l];
    size_t vectors = 0;
    size_t *first = pn_allocate(layer->parameters, sizeof *first);
    if (!first) return PN_NO_MEMORY("the network pass");
    for (size_t k = 0; k < layer->parameters; k++)
        if (layer->parameter[k].trained) first[vectors++] = layer->parameter[k].offset;
    pinn_status status = place_sums(pass, n, STAGE_BACKWARD, first, vectors, layer->in);
    pn_free(first);
    return status;
}

/* Output biases are the residual program's sums: `fields` vectors of one entry. */
static pinn_status place_residual_sums(pn_pass *pass, node *n) {
    const size_t fields = pass->network->fields;
    size_t *first = pn_allocate(fields, sizeof *first);
    if (!first) return PN_NO_MEMORY("the network pass");
    for (size_t f = 0; f < fields; f++) first[f] = pass->network->output_bias + f;
    pinn_status status = place_sums(pass, n, STAGE_RESIDUAL, first, fields, 1);
    pn_free(first);
    return status;
}

/* What a GPU of another machine would run: compiled, not kept. */
static pinn_status check_kernel(const pn_pass *pass, const char *entry, node *n) {
    pn_text source = {0};
    pinn_status status;
    const pn_program **program = pn_allocate(n->sections, sizeof *program);
    if (!program) return PN_NO_MEMORY("a kernel's programs");
    for (size_t s = 0; s < n->sections; s++) program[s] = n->section[s].program;
    PN_TRY(pn_kernel_source(entry, program, n->sections, &source));
    PN_TRY(pn_compilation_begin(pn_text_get(&source), pass->compile_for, &n->check));
fail:
    pn_text_free(&source);
    pn_free(program);
    return status;
}

static pinn_status add_pointwise(pn_pass *pass, enum stage stage, size_t l) {
    pinn_status status;
    static const char *const names[] = {"forward", "residual", "backward"};
    node *n = NULL;
    char entry[64]; /* without the layer's number: layers with equal programs share one compiled text */
    PN_TRY(add_node(pass, &n));
    if (stage == STAGE_RESIDUAL) {
        const char *name = pass->store_residuals ? "stored_residuals" : pass->evaluate ? "fields" : "residuals";
        snprintf(n->name, sizeof n->name, "%s", name);
        snprintf(entry, sizeof entry, "pn_%s", name);
    } else {
        snprintf(n->name, sizeof n->name, "layer %zu %s", layer_number(pass, l), names[stage]);
        snprintf(entry, sizeof entry, "pn_layer_%s", names[stage]);
    }
    n->operation.cpu = pointwise_cpu;
    n->operation.cuda = pointwise_cuda;
    n->sections = stage == STAGE_RESIDUAL || pass->network->layer[l].coordinates ? pass->members : pass->groups;
    PN_TRY(allocate_sections(pass, n, stage, l));
    bind_sections(pass, n, stage, l);
    if (pinn_context_executor(pass->context) != PINN_EXECUTOR_CPU)
        PN_TRY(pn_kernel_begin(pass->context, n->name, entry, n->section, n->sections, &n->kernel));
    else if (pass->compile_for)
        PN_TRY(check_kernel(pass, entry, n));
    if (stage == STAGE_BACKWARD) PN_TRY(place_layer_sums(pass, n, l));
    if (stage == STAGE_RESIDUAL && !pass->evaluate) PN_TRY(place_residual_sums(pass, n));
fail:
    return status;
}

/* ---- creation ----------------------------------------------------------------------------------------------------------------- */

static void cut_rows(const pn_pass *pass, layered *w) {
    size_t chunks = (pass->rows + CHUNK_ROWS - 1) / CHUNK_ROWS;
    if (chunks > CHUNKS) chunks = CHUNKS;
    w->chunk_rows = ((pass->rows + chunks - 1) / chunks + ROW_ALIGNMENT - 1) / ROW_ALIGNMENT * ROW_ALIGNMENT;
    w->chunks = (pass->rows + w->chunk_rows - 1) / w->chunk_rows;
}

/* A buffer a layer; evaluation keeps two layers only. */
static pinn_status place_buffers(pn_pass *pass, const layered *w) {
    size_t end = 0, widest = 0;
    for (size_t l = 0; l < pass->network->layers; l++)
        if (pass->network->layer[l].out > widest) widest = pass->network->layer[l].out;
    for (size_t l = 0; l < pass->network->layers; l++) {
        const size_t elements = aligned(w->chunk_rows * w->chunks * (pass->evaluate ? widest : pass->network->layer[l].out));
        pass->buffer[l] = pass->evaluate ? l % 2 * elements : end;
        end = pass->evaluate ? 2 * elements : end + elements;
    }
    pass->cost.workspace_bytes = end * pn_real_bytes(pass->real);
    return pn_pass_allocate(pass, PN_BASE_WORK, "activations", end);
}

static void layered_destroy(pn_pass *pass) {
    layered *w = pass->lowered;
    if (!w) return;
    for (size_t i = 0; i < w->nodes; i++) {
        node *n = w->node[i];
        pn_kernel_destroy(n->kernel);
        pn_compilation_drop(n->check);
        void *const block[] = {n->section,  n->in,       n->out,          n->in_address,  n->out_address, n->rows,
                               n->real_sum, n->f64_sum,  n->real_address, n->f64_address, n->f64_length};
        for (size_t k = 0; k < sizeof block / sizeof block[0]; k++) pn_free(block[k]);
        pn_free(n);
    }
    pn_free(w->node);
    pn_free(w);
}

static pinn_status layered_create(pn_pass *pass) {
    pinn_status status;
    layered *w = pn_allocate(1, sizeof *w);
    if (!w) return PN_NO_MEMORY("the network pass");
    pass->lowered = w;
    const size_t layers = pass->network->layers;
    cut_rows(pass, w);
    PN_TRY(place_buffers(pass, w));
    for (size_t l = 0; l < layers; l++)
        PN_TRY(pass->network->layer[l].kind == PN_LAYER_LINEAR ? add_linear_forward(pass, l) : add_pointwise(pass, STAGE_FORWARD, l));
    PN_TRY(add_pointwise(pass, STAGE_RESIDUAL, layers - 1));
    if (pass->evaluate) return PINN_OK;
    for (size_t l = layers; l-- > pass->trained_from;)
        PN_TRY(pass->network->layer[l].kind == PN_LAYER_LINEAR ? add_linear_backward(pass, l) : add_pointwise(pass, STAGE_BACKWARD, l));
    PN_TRY(pn_pass_allocate(pass, PN_BASE_GRADIENT, "gradient partials", w->gradient_elements));
    PN_TRY(pn_pass_allocate(pass, PN_BASE_LOSS, "loss partials", w->loss_elements));
fail:
    return status; /* pn_pass_destroy frees what was made */
}

static pinn_status layered_record(pn_pass *pass, pinn_graph *graph) {
    pinn_status status = PINN_OK;
    const layered *w = pass->lowered;
    for (size_t i = 0; i < w->nodes; i++) {
        const node *n = w->node[i];
        pinn_plane *reads[PN_BASES], *writes[PN_BASES];
        PN_TRY(pinn_graph_operation(graph, &n->operation, &n, sizeof n, pn_pass_planes(pass, n->reads, reads),
                                    pn_pass_planes(pass, n->writes, writes)));
    }
fail:
    return status;
}

static pinn_status layered_finish(pn_pass *pass) {
    const layered *w = pass->lowered;
    for (size_t i = 0; i < w->nodes; i++) {
        node *n = w->node[i];
        pinn_status status = n->kernel ? pn_kernel_finish(n->kernel) : PINN_OK;
        if (status == PINN_OK && n->check) {
            status = pn_compilation_end(n->check, NULL, NULL);
            n->check = NULL;
            if (status != PINN_OK) pn_fail_within(status, "kernel %s", n->name);
        }
        if (status != PINN_OK) return status;
    }
    return PINN_OK;
}

const pn_lowering_form pn_layered_form = {"layered", layered_create, layered_destroy, layered_record, layered_finish};
