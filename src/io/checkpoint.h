/* checkpoint.h5: all that is needed to resume exactly and to predict. Always complete: written to a temporary name, flushed to
 * disk, renamed.
 *
 *   attributes  format (int, 1), step (uint64), seed (uint64), seconds (float64), precision, machine, executor
 *   /config              the resolved TOML text, a string of fixed length
 *   /parameters/<name>   one dataset a block of the network, by name and shape, in the run's precision
 *   /network/fixed       float64: the untrained numbers (Fourier matrix)
 *   /optimizer/m, /optimizer/v   whole vectors in the run's precision
 *   /step                the words: step, phase, phase_step, optimizer_step, the last step's scalars, the best loss and the plateau's; not
 *                        `rows` and `stop`: a run that goes on counts rows anew and looks at its rules itself
 *   /unknowns            a group, empty until a problem has unknowns
 *
 * The file is sealed (hdf5_image.c): a SHA-256 over all of it is checked before anything of it is used.
 */
#ifndef PN_IO_CHECKPOINT_H
#define PN_IO_CHECKPOINT_H

#include "kernels/words.h"
#include "network/network.h"

typedef struct pn_checkpoint {
    pn_real real;
    const pn_network *network; /* borrowed: block names and shapes, fixed numbers */
    void *parameters;          /* [network->parameters] in `real` */
    void *moments;             /* [2][network->parameters] in `real` */
    pn_words words;
    uint64_t phase; /* index of the [[train]] phase */
    uint64_t seed;
    double seconds;      /* of training so far, over all resumptions */
    const char *config;  /* resolved TOML */
    const char *machine; /* device, toolkit, lowering: what exact resume depends on, in that phase */
    const char *executor;
} pn_checkpoint;

pinn_status pn_checkpoint_write(const char *path, const pn_checkpoint *checkpoint);
/* Fills parameters, moments (arrays of the caller's; moments may be NULL: not read), words (`rows` is 0), phase, seed, seconds, and
 * the network's fixed numbers: the file's Fourier matrix counts, so read before the network's numbers are copied elsewhere. Checks
 * names and shapes against `network` and the precision. `config` and `machine` are returned as owned strings (pn_free; NULL = not
 * wanted). IO errors name the file and what is missing. Nothing is written unless all of it was read. */
pinn_status pn_checkpoint_read(const char *path, pn_checkpoint *checkpoint, char **config, char **machine);
/* Only the stored config text (owned, pn_free) and the phase it stands in (NULL = not wanted), to compare before a network exists. */
pinn_status pn_checkpoint_read_config(const char *path, char **config, uint64_t *phase);

#endif
