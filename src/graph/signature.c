/* What a list is, as bytes: everything that a built executable has frozen. Equal bytes, not equal hashes, make two lists the same.
 *
 * A plane is its address, size, place and generation (so memory freed and given out again at the same address differs); an
 * operation is its name, its forms and its argument bytes; control flow is the kinds in their order, with caps and flags. Every
 * variable part is preceded by its length, so no two lists share their bytes.
 */
#include <string.h>

#include "graph/graph.h"

#define PUT(text, value) pn_text_append((text), (const char *)&(value), sizeof(value))

static void put_bytes(pn_text *text, const void *bytes, size_t count) {
    PUT(text, count);
    pn_text_append(text, bytes, count);
}

static void put_planes(pn_text *text, pinn_plane *const *plane, size_t count) {
    PUT(text, count);
    for (size_t i = 0; i < count; i++) {
        PUT(text, plane[i]->address);
        PUT(text, plane[i]->bytes);
        PUT(text, plane[i]->place);
        PUT(text, plane[i]->generation);
    }
}

static void put_node(pn_text *text, const pn_graph_node *node) {
    PUT(text, node->kind);
    put_bytes(text, node->name, strlen(node->name));
    PUT(text, node->cpu);
    PUT(text, node->cuda);
    PUT(text, node->host);
    PUT(text, node->user);
    PUT(text, node->opaque);
    PUT(text, node->cap);
    put_bytes(text, node->arguments, node->argument_bytes);
    put_planes(text, node->read, node->reads);
    put_planes(text, node->write, node->writes);
}

pinn_status pn_list_sign(pn_list *list) {
    pn_text_free(&list->signature);
    for (size_t i = 0; i < list->count; i++) put_node(&list->signature, list->node[i]);
    return pn_text_check(&list->signature);
}

bool pn_list_equal(const pn_list *a, const pn_list *b) {
    return a->signature.length == b->signature.length && memcmp(a->signature.data, b->signature.data, a->signature.length) == 0;
}

static bool differ_in_planes(pinn_plane *const *old, size_t old_count, pinn_plane *const *new, size_t new_count, const char *verb,
                             pn_text *out) {
    if (old_count != new_count) {
        pn_text_printf(out, "it %s %zu planes, was %zu", verb, new_count, old_count);
        return true;
    }
    for (size_t i = 0; i < new_count; i++) {
        const pinn_plane *a = old[i], *b = new[i];
        if (a->place != b->place)
            pn_text_printf(out, "plane '%s' is %s, was %s", b->name, pinn_place_name(b->place), pinn_place_name(a->place));
        else if (a->bytes != b->bytes)
            pn_text_printf(out, "plane '%s' has %zu bytes, was %zu", b->name, b->bytes, a->bytes);
        else if (a->generation != b->generation)
            pn_text_printf(out, "plane '%s' is another allocation", b->name);
        else if (a->address != b->address)
            pn_text_printf(out, "plane '%s' is another part of its memory", b->name);
        else
            continue;
        return true;
    }
    return false;
}

static bool differ(const pn_graph_node *old, const pn_graph_node *new, pn_text *out) {
    if (old->kind != new->kind || strcmp(old->name, new->name) != 0)
        pn_text_printf(out, "it is %s, was %s '%s'", pn_graph_node_kind_name(new->kind), pn_graph_node_kind_name(old->kind),
                       old->name);
    else if (old->cpu != new->cpu || old->cuda != new->cuda || old->host != new->host)
        pn_text_string(out, "its function changed");
    else if (old->opaque != new->opaque)
        pn_text_string(out, new->opaque ? "it is opaque, was not" : "it was opaque, is not");
    else if (old->cap != new->cap)
        pn_text_printf(out, "its cap is %u, was %u", new->cap, old->cap);
    else if (old->user != new->user)
        pn_text_string(out, "its user pointer changed");
    else if (old->argument_bytes != new->argument_bytes ||
             (new->argument_bytes &&memcmp(old->arguments, new->arguments, new->argument_bytes) != 0))
        pn_text_string(out, "its arguments changed");
    else
        return differ_in_planes(old->read, old->reads, new->read, new->reads, "reads", out) ||
               differ_in_planes(old->write, old->writes, new->write, new->writes, "writes", out);
    return true;
}

void pn_list_difference(const pn_list *old, const pn_list *new, pn_text *out) {
    size_t common = old->count < new->count ? old->count : new->count;
    for (size_t i = 0; i < common; i++) {
        pn_text what = {0};
        bool found = differ(old->node[i], new->node[i], &what);
        if (found) pn_text_printf(out, "node %zu '%s': %s", i + 1, new->node[i]->name, pn_text_get(&what));
        pn_text_free(&what);
        if (found) return;
    }
    pn_text_printf(out, "%zu nodes, was %zu", new->count, old->count);
}
