/* checkpoint.h5: laid out in memory, sealed, written atomically; read back with every name, shape and type checked (see
 * checkpoint.h). */
#include "io/checkpoint.h"

#include <stddef.h>
#include <string.h>

#include "core/memory.h"
#include "core/text.h"
#include "io/hdf5_file.h"

enum { FORMAT = 1 };

static hid_t uint64_type(void) { return H5T_NATIVE_UINT64; }
static hid_t float64_type(void) { return H5T_NATIVE_DOUBLE; }

/* Everything scalar, with its place in pn_checkpoint. */
static const struct scalar {
    const char *name;
    hid_t (*type)(void);
    size_t offset; /* bytes */
} scalars[] = {
    {"step/step", uint64_type, offsetof(pn_checkpoint, words.step)},
    {"step/phase", uint64_type, offsetof(pn_checkpoint, phase)},
    {"step/phase_step", uint64_type, offsetof(pn_checkpoint, words.phase_step)},
    {"step/optimizer_step", uint64_type, offsetof(pn_checkpoint, words.optimizer_step)},
    {"step/loss", float64_type, offsetof(pn_checkpoint, words.loss)},
    {"step/learning_rate", float64_type, offsetof(pn_checkpoint, words.learning_rate)},
    {"step/gradient_norm", float64_type, offsetof(pn_checkpoint, words.gradient_norm)},
    {"step/rate", float64_type, offsetof(pn_checkpoint, words.rate)},
    {"step/clip", float64_type, offsetof(pn_checkpoint, words.clip)},
    {"step/root_correction", float64_type, offsetof(pn_checkpoint, words.root_correction)},
    {"step/best_loss", float64_type, offsetof(pn_checkpoint, words.best_loss)},
    {"step/best_step", uint64_type, offsetof(pn_checkpoint, words.best_step)},
    {"step/plateau_loss", float64_type, offsetof(pn_checkpoint, words.plateau_loss)},
    {"step/plateau_step", uint64_type, offsetof(pn_checkpoint, words.plateau_step)},
};
enum { SCALARS = sizeof scalars / sizeof *scalars };

static const char *real_name(pn_real real) { return real == PN_FLOAT32 ? "float32" : "float64"; }

static const char *text_or_empty(const char *text) { return text ? text : ""; }

static void *element(const pn_checkpoint *checkpoint, void *array, size_t i) {
    return (char *)array + i * pn_real_bytes(checkpoint->real);
}

static pinn_status put_texts_and_attributes(const pn_hdf5 *file, const pn_checkpoint *checkpoint) {
    const int format = FORMAT;
    pinn_status status;
    PN_TRY(pn_hdf5_put_attribute(file, "format", H5T_NATIVE_INT, &format));
    PN_TRY(pn_hdf5_put_attribute(file, "step", H5T_NATIVE_UINT64, &checkpoint->words.step));
    PN_TRY(pn_hdf5_put_attribute(file, "seed", H5T_NATIVE_UINT64, &checkpoint->seed));
    PN_TRY(pn_hdf5_put_attribute(file, "seconds", H5T_NATIVE_DOUBLE, &checkpoint->seconds));
    PN_TRY(pn_hdf5_put_text(file, "precision", real_name(checkpoint->real)));
    PN_TRY(pn_hdf5_put_text(file, "machine", text_or_empty(checkpoint->machine)));
    PN_TRY(pn_hdf5_put_text(file, "executor", text_or_empty(checkpoint->executor)));
    PN_TRY(pn_hdf5_put_text_dataset(file, "config", text_or_empty(checkpoint->config)));
fail:
    return status;
}

typedef pinn_status block_function(const pn_hdf5 *file, const char *name, hid_t type, unsigned rank, const hsize_t *shape,
                                   void *data);

static pinn_status put_block(const pn_hdf5 *file, const char *name, hid_t type, unsigned rank, const hsize_t *shape, void *data) {
    return pn_hdf5_put(file, name, type, rank, shape, data);
}

/* Every array of a checkpoint, for writing and for reading alike. `fixed` [network->fixed_count]; `moments` may be NULL: left out.
 */
static pinn_status each_array(const pn_hdf5 *file, const pn_checkpoint *checkpoint, void *parameters, void *moments, double *fixed,
                              block_function *visit) {
    const pn_network *network = checkpoint->network;
    const hid_t type = pn_hdf5_real(checkpoint->real);
    pinn_status status = PINN_OK;
    pn_text name = {0};
    for (size_t i = 0; i < network->parameter_blocks; i++) {
        const pn_parameter *block = &network->parameter[i];
        const hsize_t shape[2] = {block->rows, block->columns};
        name.length = 0;
        pn_text_printf(&name, "parameters/%s", block->name);
        PN_TRY(pn_text_check(&name));
        PN_TRY(visit(file, name.data, type, block->columns ? 2 : 1, shape, element(checkpoint, parameters, block->offset)));
    }
    const hsize_t count = network->parameters, fixed_count = network->fixed_count;
    PN_TRY(visit(file, "network/fixed", H5T_NATIVE_DOUBLE, 1, &fixed_count, fixed));
    if (moments) {
        PN_TRY(visit(file, "optimizer/m", type, 1, &count, moments));
        PN_TRY(visit(file, "optimizer/v", type, 1, &count, element(checkpoint, moments, count)));
    }
fail:
    pn_text_free(&name);
    return status;
}

static pinn_status write_file(const char *path, const pn_checkpoint *checkpoint) {
    pn_hdf5 file = {0};
    pinn_status status;
    PN_TRY(pn_hdf5_create_sealed(path, &file));
    PN_TRY(put_texts_and_attributes(&file, checkpoint));
    PN_TRY(each_array(&file, checkpoint, checkpoint->parameters, checkpoint->moments, checkpoint->network->fixed, put_block));
    for (size_t i = 0; i < SCALARS; i++)
        PN_TRY(pn_hdf5_put(&file, scalars[i].name, scalars[i].type(), 0, NULL, (const char *)checkpoint + scalars[i].offset));
    PN_TRY(pn_hdf5_put_group(&file, "unknowns"));
    PN_TRY(pn_hdf5_write_image(&file));
fail:
    pn_hdf5_close(file.id);
    return status;
}

pinn_status pn_checkpoint_write(const char *path, const pn_checkpoint *checkpoint) {
    if (!checkpoint->network || !checkpoint->parameters || !checkpoint->moments)
        return pn_fail(PINN_BAD_ARGUMENT, "%s: a checkpoint needs a network, parameters and moments", path);
    pn_hdf5_enter();
    pinn_status status = write_file(path, checkpoint);
    pn_hdf5_leave();
    return status;
}

static pinn_status open_checkpoint(const char *path, pn_hdf5 *out) {
    pn_hdf5 file = {0};
    int format = 0;
    pinn_status status;
    PN_TRY(pn_hdf5_open_sealed(path, &file));
    PN_TRY(pn_hdf5_get_attribute(&file, "format", H5T_NATIVE_INT, &format));
    if (format != FORMAT) {
        status = pn_fail(PINN_IO, "%s: is a checkpoint of format %d, this program reads format %d", path, format, FORMAT);
        goto fail;
    }
    *out = file;
    return PINN_OK;
fail:
    pn_hdf5_close(file.id);
    return status;
}

static pinn_status check_precision(const pn_hdf5 *file, pn_real real) {
    char *found = NULL;
    pinn_status status;
    PN_TRY(pn_hdf5_get_text(file, "precision", &found));
    if (strcmp(found, real_name(real)) != 0)
        status = pn_fail(PINN_IO, "%s: was written in precision \"%s\", this run has \"%s\"", file->path, found, real_name(real));
fail:
    pn_free(found);
    return status;
}

static herr_t count_dataset(hid_t group, const char *name, const H5O_info_t *info, void *count) {
    (void)group, (void)name;
    if (info->type == H5O_TYPE_DATASET) ++*(size_t *)count;
    return 0;
}

/* A deeper network's file holds every block of a shallower one, and more. */
static pinn_status check_blocks(const pn_hdf5 *file, const pn_network *network) {
    size_t found = 0;
    if (H5Ovisit_by_name1(file->id, "parameters", H5_INDEX_NAME, H5_ITER_NATIVE, count_dataset, &found, H5P_DEFAULT) < 0)
        return pn_hdf5_fail("%s: group \"parameters\" is missing or damaged", file->path);
    if (found == network->parameter_blocks) return PINN_OK;
    return pn_fail(PINN_IO, "%s: holds %zu parameter blocks, the network has %zu: it is of another network", file->path, found,
                   network->parameter_blocks);
}

/* What reading fills, aside, until all of it is there. */
typedef struct staged {
    pn_checkpoint scalar;
    void *parameters, *moments; /* owned, [parameters], [2][parameters] or NULL */
    double *fixed;              /* owned, [fixed_count] */
    char *config, *machine;     /* owned */
} staged;

static pinn_status allocate(const pn_checkpoint *checkpoint, staged *out) {
    const pn_network *network = checkpoint->network;
    const size_t size = pn_real_bytes(checkpoint->real);
    out->parameters = pn_allocate(network->parameters, size);
    out->moments = checkpoint->moments ? pn_allocate(network->parameters, 2 * size) : NULL;
    out->fixed = pn_allocate(network->fixed_count, sizeof *out->fixed);
    return out->parameters && out->fixed && (out->moments || !checkpoint->moments) ? PINN_OK : PN_NO_MEMORY("reading a checkpoint");
}

static pinn_status read_staged(const char *path, const pn_checkpoint *checkpoint, staged *out) {
    pn_hdf5 file = {0};
    pinn_status status;
    PN_TRY(open_checkpoint(path, &file));
    PN_TRY(check_precision(&file, checkpoint->real));
    PN_TRY(allocate(checkpoint, out));
    PN_TRY(each_array(&file, checkpoint, out->parameters, out->moments, out->fixed, pn_hdf5_get));
    PN_TRY(check_blocks(&file, checkpoint->network));
    for (size_t i = 0; i < SCALARS; i++)
        PN_TRY(pn_hdf5_get(&file, scalars[i].name, scalars[i].type(), 0, NULL, (char *)&out->scalar + scalars[i].offset));
    PN_TRY(pn_hdf5_get_attribute(&file, "seed", H5T_NATIVE_UINT64, &out->scalar.seed));
    PN_TRY(pn_hdf5_get_attribute(&file, "seconds", H5T_NATIVE_DOUBLE, &out->scalar.seconds));
    PN_TRY(pn_hdf5_get_text_dataset(&file, "config", &out->config));
    PN_TRY(pn_hdf5_get_text(&file, "machine", &out->machine));
fail:
    pn_hdf5_close(file.id);
    return status;
}

static void commit(const staged *from, pn_checkpoint *checkpoint) {
    const pn_network *network = checkpoint->network;
    const size_t bytes = network->parameters * pn_real_bytes(checkpoint->real);
    memcpy(checkpoint->parameters, from->parameters, bytes);
    if (checkpoint->moments) memcpy(checkpoint->moments, from->moments, 2 * bytes);
    if (network->fixed_count) memcpy(network->fixed, from->fixed, network->fixed_count * sizeof *from->fixed);
    checkpoint->words = from->scalar.words;
    checkpoint->phase = from->scalar.phase;
    checkpoint->seed = from->scalar.seed;
    checkpoint->seconds = from->scalar.seconds;
}

static void hand_over(char **text, char **out) {
    if (!out) return;
    *out = *text;
    *text = NULL;
}

pinn_status pn_checkpoint_read(const char *path, pn_checkpoint *checkpoint, char **config, char **machine) {
    staged from = {0};
    pn_hdf5_enter();
    pinn_status status = read_staged(path, checkpoint, &from);
    pn_hdf5_leave();
    if (status == PINN_OK) {
        commit(&from, checkpoint);
        hand_over(&from.config, config);
        hand_over(&from.machine, machine);
    }
    pn_free(from.parameters);
    pn_free(from.moments);
    pn_free(from.fixed);
    pn_free(from.config);
    pn_free(from.machine);
    return status;
}

pinn_status pn_checkpoint_read_config(const char *path, char **config, uint64_t *phase) {
    pn_hdf5 file = {0};
    uint64_t found = 0;
    pn_hdf5_enter();
    pinn_status status = open_checkpoint(path, &file);
    if (status == PINN_OK && phase) status = pn_hdf5_get(&file, "step/phase", H5T_NATIVE_UINT64, 0, NULL, &found);
    if (status == PINN_OK) status = pn_hdf5_get_text_dataset(&file, "config", config);
    if (status == PINN_OK && phase) *phase = found;
    pn_hdf5_close(file.id);
    pn_hdf5_leave();
    return status;
}
