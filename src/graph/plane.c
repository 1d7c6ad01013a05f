/* Planes: memory made by the context, the caller's memory, views of either, and sizes alone (plan.h). */
#include <string.h>

#include "graph/graph.h"

static const char *const place_names[] = {[PINN_DEVICE] = "device", [PINN_PINNED] = "pinned", [PINN_HOST] = "host"};

const char *pinn_place_name(pinn_place place) {
    return (size_t)place < sizeof place_names / sizeof *place_names ? place_names[place] : "?";
}

void pn_plane_reference(pinn_plane *plane) { plane->references++; }

void pn_plane_unreference(pinn_plane *plane) {
    while (plane && --plane->references == 0) {
        pinn_plane *root = plane->root == plane ? NULL : plane->root;
        pn_context_unreference(plane->context);
        pn_free(plane->name);
        pn_free(plane);
        plane = root;
    }
}

static pinn_status check_new(const char *function, const char *name, pinn_place place, size_t bytes) {
    if (!name) return pn_fail(PINN_BAD_ARGUMENT, "%s: the plane's name is NULL", function);
    if ((size_t)place >= sizeof place_names / sizeof *place_names)
        return pn_fail(PINN_BAD_ARGUMENT, "%s: plane '%s': %d is not a place", function, name, (int)place);
    if (bytes == 0) return pn_fail(PINN_BAD_ARGUMENT, "%s: plane '%s' has no bytes: a plane holds at least one", function, name);
    return PINN_OK;
}

/* A plane without memory and root. */
static pinn_status make_plane(pinn_context *context, const char *name, pinn_place place, size_t bytes, pinn_plane **out) {
    pinn_plane *plane = pn_allocate(1, sizeof *plane);
    char *copy = pn_duplicate(name, strlen(name));
    if (!plane || !copy) {
        pn_free(copy);
        pn_free(plane);
        return PN_NO_MEMORY("a plane");
    }
    *plane = (pinn_plane){.context = context, .root = plane, .name = copy, .place = place, .bytes = bytes, .references = 1};
    pn_context_reference(context);
    context->planes++;
    *out = plane;
    return PINN_OK;
}

/* Its memory is there from now on. */
static void link_root(pinn_plane *plane) {
    pinn_context *context = plane->context;
    plane->generation = pn_generation_next();
    plane->next = context->first_plane;
    if (plane->next) plane->next->previous = plane;
    context->first_plane = plane;
}

static void unlink_root(pinn_plane *plane) {
    if (plane->next) plane->next->previous = plane->previous;
    *(plane->previous ? &plane->previous->next : &plane->context->first_plane) = plane->next;
}

static void unmake_plane(pinn_plane *plane) {
    plane->context->planes--;
    pn_plane_unreference(plane);
}

static void release_block(pn_release *self) {
    pn_block *block = (pn_block *)((char *)self - offsetof(pn_block, release));
    block->context->backend->release(block->context, block->place, block->address);
    pn_context_unreference(block->context);
    pn_free(block);
}

pinn_status pn_block_create(pinn_context *context, pinn_place place, size_t bytes, pn_block **out) {
    pn_block *block = pn_allocate(1, sizeof *block);
    if (!block) return PN_NO_MEMORY("a block of memory");
    *block = (pn_block){.release.run = release_block, .context = context, .place = place};
    pinn_status status = context->backend->allocate(context, place, bytes, &block->address);
    if (status != PINN_OK) {
        pn_free(block);
        return status;
    }
    pn_context_reference(context);
    *out = block;
    return PINN_OK;
}

void pn_block_destroy(pn_block *block) {
    if (block) pn_release_push(&block->release);
}

/* An address that no other plane of the context has a byte at, aligned as any. */
static pinn_status plan_memory(pinn_plane *plane) {
    enum { ALIGNMENT = 256 };
    pinn_context *context = plane->context;
    const uintptr_t start = (context->plan_end / ALIGNMENT + 1) * ALIGNMENT;
    if (plane->bytes > UINTPTR_MAX - 2 * ALIGNMENT - start) return pn_fail(PINN_NO_MEMORY, "more than can be addressed");
    plane->address = (void *)start;
    plane->planned = true;
    plane->generation = pn_generation_next();
    context->plan_end = start + plane->bytes;
    return PINN_OK;
}

static pinn_status make_memory(pinn_plane *plane) {
    pinn_status status = pn_block_create(plane->context, plane->place, plane->bytes, &plane->block);
    if (status != PINN_OK) return status;
    plane->address = plane->block->address;
    link_root(plane);
    return PINN_OK;
}

pinn_status pinn_plane_create(pinn_context *context, const char *name, pinn_place place, size_t bytes, pinn_plane **out) {
    pinn_plane *plane = NULL;
    pinn_status status;
    PN_TRY(pn_enter(context, __func__));
    PN_TRY(check_new(__func__, name, place, bytes));
    PN_TRY(make_plane(context, name, place, bytes, &plane));
    PN_TRY(context->plans ? plan_memory(plane) : make_memory(plane));
    context->plane_bytes += bytes;
    *out = plane;
    return PINN_OK;
fail:
    if (plane) {
        pn_fail_within(status, "plane '%s' (%s, %zu bytes)", name, pinn_place_name(place), bytes);
        unmake_plane(plane);
    }
    return status;
}

pinn_status pinn_plane_wrap(pinn_context *context, const char *name, pinn_place place, void *address, size_t bytes,
                            pinn_plane **out) {
    pinn_plane *plane;
    pinn_status status;
    PN_TRY(pn_enter(context, __func__));
    PN_TRY(check_new(__func__, name, place, bytes));
    if (!address) return pn_fail(PINN_BAD_ARGUMENT, "%s: plane '%s': the address is NULL", __func__, name);
    if (bytes > UINTPTR_MAX - (uintptr_t)address)
        return pn_fail(PINN_BAD_ARGUMENT, "%s: plane '%s': %zu bytes reach beyond the end of memory", __func__, name, bytes);
    PN_TRY(context->backend->check(context, name, place, address));
    PN_TRY(make_plane(context, name, place, bytes, &plane));
    plane->address = address;
    link_root(plane);
    *out = plane;
fail:
    return status;
}

pinn_status pinn_plane_view(pinn_plane *plane, const char *name, size_t offset, size_t bytes, pinn_plane **out) {
    pinn_plane *view;
    pinn_status status;
    PN_TRY(pn_enter(plane ? plane->context : NULL, __func__));
    PN_TRY(check_new(__func__, name, plane->place, bytes));
    if (plane->freed || plane->root->freed)
        return pn_fail(PINN_STALE, "%s: view '%s': plane '%s' was freed", __func__, name, plane->name);
    if (offset > plane->bytes || bytes > plane->bytes - offset)
        return pn_fail(PINN_BAD_ARGUMENT, "%s: view '%s': bytes [%zu, %zu + %zu) are not all in plane '%s' of %zu bytes", __func__,
                       name, offset, offset, bytes, plane->name, plane->bytes);
    PN_TRY(make_plane(plane->context, name, plane->place, bytes, &view));
    view->root = plane->root;
    view->address = (char *)plane->address + offset;
    view->generation = plane->generation;
    pn_plane_reference(view->root);
    *out = view;
fail:
    return status;
}

static void destroy_plane(void *object) {
    pinn_plane *plane = object;
    pinn_context *context = plane->context;
    plane->freed = true;
    plane->doomed.waiting = false;
    if (plane->root == plane) {
        context->frees++;
        pn_context_wait(context); /* enqueued work may still use the memory; a failed device has nothing left to wait for */
        if (plane->block || plane->planned) context->plane_bytes -= plane->bytes;
        if (!plane->planned) unlink_root(plane);
        pn_block_destroy(plane->block);
        plane->block = NULL;
    }
    unmake_plane(plane);
}

void pinn_plane_destroy(pinn_plane *plane) {
    if (plane) pn_destroy(plane->context, &plane->doomed, destroy_plane, plane, "pinn_plane_destroy");
}

const char *pinn_plane_name(const pinn_plane *plane) { return plane->name; }
pinn_place pinn_plane_place(const pinn_plane *plane) { return plane->place; }
size_t pinn_plane_bytes(const pinn_plane *plane) { return plane->bytes; }
void *pinn_plane_address(const pinn_plane *plane) { return plane->address; }
uint64_t pinn_plane_generation(const pinn_plane *plane) { return plane->generation; }

static pinn_status check_range(const char *function, const pinn_plane *plane, size_t offset, size_t bytes, const void *memory) {
    pinn_status status = pn_enter_or_eager(plane ? plane->context : NULL, function);
    if (status != PINN_OK) return status;
    if (plane->freed || plane->root->freed) return pn_fail(PINN_STALE, "%s: plane '%s' was freed", function, plane->name);
    if (offset > plane->bytes || bytes > plane->bytes - offset)
        return pn_fail(PINN_BAD_ARGUMENT, "%s: bytes [%zu, %zu + %zu) are not all in plane '%s' of %zu bytes", function, offset,
                       offset, bytes, plane->name, plane->bytes);
    if (bytes && !memory) return pn_fail(PINN_BAD_ARGUMENT, "%s: plane '%s': the caller's memory is NULL", function, plane->name);
    return PINN_OK;
}

pinn_status pinn_plane_write(pinn_plane *plane, size_t offset, const void *from, size_t bytes) {
    pinn_status status;
    PN_TRY(check_range(__func__, plane, offset, bytes, from));
    if (bytes == 0 || plane->root->planned) return PINN_OK;
    PN_TRY(pn_context_wait(plane->context));
    return plane->context->backend->write(plane->context, plane->place, (char *)plane->address + offset, from, bytes);
fail:
    return status;
}

pinn_status pinn_plane_read(const pinn_plane *plane, size_t offset, void *to, size_t bytes) {
    pinn_status status;
    PN_TRY(check_range(__func__, plane, offset, bytes, to));
    if (bytes == 0) return PINN_OK;
    if (plane->root->planned) return pn_fail(PINN_REFUSED, "%s: plane '%s' has no memory: its context only plans", __func__, plane->name);
    PN_TRY(pn_context_wait(plane->context));
    return plane->context->backend->read(plane->context, plane->place, to, (const char *)plane->address + offset, bytes);
fail:
    return status;
}
