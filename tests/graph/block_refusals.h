/* One suite for every executor: what is refused inside and around if, while, for and fork, with the same text on each of them. See
 * conformance.h.
 */
#ifndef BLOCK_REFUSALS_H
#define BLOCK_REFUSALS_H

#include "branches.h"

/* Each case records a list that must fail, and says where and how. `x`, `y`: device words; `pinned`, `page`: host words. */
typedef struct scene {
    pinn_plane *x, *y, *pinned, *page, *wide, *odd;
    counter calls;
} scene;

static pinn_status body_of(scene *in) { return pinn_graph_while(graph, "loop", in->x, 3, NULL); }

static void empty_if(scene *in) {
    OK(pinn_graph_if(graph, "when", in->x));
    pinn_graph_end(graph);
}
static void empty_else(scene *in) {
    OK(pinn_graph_if(graph, "when", in->x));
    OK(add(in->y, 1));
    OK(pinn_graph_else(graph));
    pinn_graph_end(graph);
}
static void empty_if_before_else(scene *in) {
    OK(pinn_graph_if(graph, "when", in->x));
    pinn_graph_else(graph);
}
static void empty_while(scene *in) {
    OK(body_of(in));
    OK(pinn_graph_copy(graph, in->y, in->y)); /* does nothing */
    pinn_graph_end(graph);
}
static void empty_for(scene *in) {
    (void)in;
    OK(pinn_graph_for(graph, "thrice", 3, NULL));
    pinn_graph_end(graph);
}
static void host_in_body(scene *in) {
    OK(body_of(in));
    pinn_graph_host(graph, "look", count_call, &in->calls, PINN_PLANES(in->pinned), PINN_NO_PLANES);
}
static void host_operation_in_body(scene *in) {
    OK(body_of(in));
    add(in->pinned, 1);
}
static void host_copy_in_body(scene *in) {
    OK(body_of(in));
    pinn_graph_copy(graph, in->pinned, in->page);
}
static void host_in_branch_in_body(scene *in) {
    OK(body_of(in));
    OK(pinn_graph_fork(graph));
    OK(pinn_graph_branch(graph, "b"));
    pinn_graph_host(graph, "look", count_call, &in->calls, PINN_NO_PLANES, PINN_NO_PLANES);
}
static void pageable_in_body(scene *in) {
    OK(body_of(in));
    pinn_graph_copy(graph, in->y, in->page);
}
static void pageable_in_branch(scene *in) {
    OK(pinn_graph_fork(graph));
    OK(pinn_graph_branch(graph, "b"));
    pinn_graph_copy(graph, in->page, in->y);
}
static void eager_in_body(scene *in) {
    OK(body_of(in));
    pinn_graph_eager(graph, "look", count_call, &in->calls, PINN_NO_PLANES, PINN_NO_PLANES);
}
static void eager_in_branch(scene *in) {
    OK(pinn_graph_fork(graph));
    OK(pinn_graph_branch(graph, "b"));
    pinn_graph_eager(graph, "look", count_call, &in->calls, PINN_NO_PLANES, PINN_NO_PLANES);
}
static void nothing_before_the_branch(scene *in) {
    OK(pinn_graph_fork(graph));
    add(in->y, 1);
}
static void eager_before_the_branch(scene *in) {
    OK(pinn_graph_fork(graph));
    pinn_graph_eager(graph, "look", count_call, &in->calls, PINN_NO_PLANES, PINN_NO_PLANES);
}
static void open_while(scene *in) {
    OK(body_of(in));
    OK(add(in->y, 1));
}
static void open_fork(scene *in) {
    OK(add(in->y, 1));
    OK(pinn_graph_fork(graph));
    OK(pinn_graph_branch(graph, "b"));
    OK(add(in->y, 1));
}
static void end_alone(scene *in) {
    (void)in;
    pinn_graph_end(graph);
}
static void end_of_fork(scene *in) {
    OK(pinn_graph_fork(graph));
    OK(pinn_graph_branch(graph, "b"));
    OK(add(in->y, 1));
    pinn_graph_end(graph);
}
static void else_alone(scene *in) {
    (void)in;
    pinn_graph_else(graph);
}
static void else_of_while(scene *in) {
    OK(body_of(in));
    OK(add(in->y, 1));
    pinn_graph_else(graph);
}
static void second_else(scene *in) {
    OK(pinn_graph_if(graph, "when", in->x));
    OK(add(in->y, 1));
    OK(pinn_graph_else(graph));
    OK(add(in->y, 1));
    pinn_graph_else(graph);
}
static void branch_alone(scene *in) {
    (void)in;
    pinn_graph_branch(graph, "b");
}
static void join_alone(scene *in) {
    (void)in;
    pinn_graph_join(graph);
}
static void join_in_body(scene *in) {
    OK(pinn_graph_fork(graph));
    OK(pinn_graph_branch(graph, "b"));
    OK(body_of(in));
    OK(add(in->y, 1));
    pinn_graph_join(graph);
}
static void empty_fork(scene *in) {
    (void)in;
    OK(pinn_graph_fork(graph));
    pinn_graph_join(graph);
}
static void empty_branch(scene *in) {
    OK(pinn_graph_fork(graph));
    OK(pinn_graph_branch(graph, "full"));
    OK(add(in->y, 1));
    OK(pinn_graph_branch(graph, "hollow"));
    OK(pinn_graph_wait(graph, in->y)); /* waiting is not doing */
    pinn_graph_join(graph);
}
static void empty_first_branch(scene *in) {
    (void)in;
    OK(pinn_graph_fork(graph));
    OK(pinn_graph_branch(graph, "hollow"));
    pinn_graph_branch(graph, "next");
}
static void wait_alone(scene *in) { pinn_graph_wait(graph, in->x); }
static void wait_in_body(scene *in) {
    OK(pinn_graph_fork(graph));
    OK(pinn_graph_branch(graph, "a"));
    OK(add(in->y, 1));
    OK(pinn_graph_branch(graph, "b"));
    OK(body_of(in));
    pinn_graph_wait(graph, in->y);
}
static void wait_for_nobody(scene *in) {
    OK(pinn_graph_fork(graph));
    OK(pinn_graph_branch(graph, "a"));
    OK(add(in->y, 1));
    OK(pinn_graph_branch(graph, "b"));
    OK(add(in->x, 1));
    pinn_graph_wait(graph, in->x);
}
static void flag_on_the_host(scene *in) { pinn_graph_if(graph, "when", in->pinned); }
static void trips_on_the_host(scene *in) { pinn_graph_for(graph, "thrice", 3, in->page); }
static void narrow_flag(scene *in) {
    pinn_plane *narrow;
    OK(pinn_plane_view(in->wide, "narrow", 0, 3, &narrow));
    pinn_graph_if(graph, "when", narrow);
    pinn_plane_destroy(narrow);
}
static void unaligned_flag(scene *in) { pinn_graph_while(graph, "loop", in->odd, 3, NULL); }
static void no_flag(scene *in) {
    (void)in;
    pinn_graph_if(graph, "when", NULL);
}
static void flag_counts_itself(scene *in) { pinn_graph_while(graph, "loop", in->x, 3, in->x); }
static void no_cap(scene *in) { pinn_graph_while(graph, "loop", in->x, 0, NULL); }
static void no_name(scene *in) { pinn_graph_if(graph, NULL, in->x); }
static void too_deep(scene *in) {
    for (int i = 0; i < PINN_GRAPH_DEPTH; i++) OK(body_of(in));
    pinn_graph_if(graph, "one more", in->x);
}
static void bare_eager(scene *in) {
    (void)in;
    pinn_graph_eager(graph, "look", NULL, NULL, PINN_NO_PLANES, PINN_NO_PLANES);
}
static void mixed_opaque(scene *in) { pinn_graph_opaque(graph, &add_operation, NULL, PINN_PLANES(in->page), PINN_PLANES(in->x)); }

#define OUT_OF_BODY "move it before the while or after its pinn_graph_end, or make it an operation on device planes"

static const struct {
    void (*record)(scene *);
    const char *message;
} bad_lists[] = {
    {empty_if, "graph 'g', node 2 'when': the body of this if is empty: record at least one node in it, or leave it out"},
    {empty_else, "graph 'g', node 4 'when': the body of this else is empty: record at least one node in it, or leave it out"},
    {empty_if_before_else, "graph 'g', node 2 'when': the body of this if is empty"},
    {empty_while, "graph 'g', node 3 'loop': the body of this while is empty: record at least one node in it, or leave it out"},
    {empty_for, "graph 'g', node 2 'thrice': the body of this for is empty"},
    {host_in_body, "graph 'g', node 2 'look': a host function cannot run inside the body of while 'loop': " OUT_OF_BODY},
    {host_operation_in_body,
     "graph 'g', node 2 'add': an operation on host planes cannot run inside the body of while 'loop': " OUT_OF_BODY},
    {host_copy_in_body,
     "graph 'g', node 2 'copy': a copy between host planes, which is a host function, cannot run inside the body of "
     "while 'loop': " OUT_OF_BODY},
    {host_in_branch_in_body, "graph 'g', node 4 'look': a host function cannot run inside the body of while 'loop'"},
    {pageable_in_body,
     "graph 'g', node 2 'copy': 'page' is pageable, and a pageable copy cannot run inside the body of 'loop': make "
     "'page' a pinned plane, or move the copy out"},
    {pageable_in_branch,
     "graph 'g', node 3 'copy': 'page' is pageable, and a pageable copy cannot run inside branch 'b': make 'page' a "
     "pinned plane, or move the copy out"},
    {eager_in_body,
     "graph 'g', node 2 'look': an eager cut cannot stand inside the body of 'loop': the graph is cut at top level only. "
     "Move it before the block or after its end, or make it an operation on device planes"},
    {eager_in_branch, "graph 'g', node 3 'look': an eager cut cannot stand inside branch 'b'"},
    {nothing_before_the_branch,
     "graph 'g', node 2 'add': it stands between pinn_graph_fork and the first branch: call pinn_graph_branch first"},
    {eager_before_the_branch, "graph 'g', node 2 'look': it stands between pinn_graph_fork and the first branch"},
    {open_while, "graph 'g', node 1 'loop': the while is not closed: call pinn_graph_end before the build"},
    {open_fork, "graph 'g', node 2 'fork': the fork is not closed: call pinn_graph_join before the build"},
    {end_alone, "graph 'g', node 1 'end': pinn_graph_end without a begin: no if, while or for is open"},
    {end_of_fork, "graph 'g', node 4 'end': pinn_graph_end inside a fork: the fork (node 1) is closed by pinn_graph_join"},
    {else_alone, "graph 'g', node 1 'else': pinn_graph_else needs an open pinn_graph_if around it"},
    {else_of_while, "graph 'g', node 3 'else': pinn_graph_else needs an open pinn_graph_if around it"},
    {second_else, "graph 'g', node 5 'else': if 'when' has an else already: close it with pinn_graph_end"},
    {branch_alone, "graph 'g', node 1 'b': pinn_graph_branch without a begin: no pinn_graph_fork is open"},
    {join_alone, "graph 'g', node 1 'join': pinn_graph_join without a begin: no pinn_graph_fork is open"},
    {join_in_body, "graph 'g', node 5 'join': pinn_graph_join inside the body of while 'loop': call pinn_graph_end first"},
    {empty_fork, "graph 'g', node 2 'fork': the fork has no branch: call pinn_graph_branch and record at least one node"},
    {empty_branch, "graph 'g', node 6 'hollow': the branch is empty: record at least one node in it, or leave it out"},
    {empty_first_branch, "graph 'g', node 3 'hollow': the branch is empty"},
    {wait_alone, "graph 'g', node 1 'wait': pinn_graph_wait without a begin: no pinn_graph_fork is open"},
    {wait_in_body, "graph 'g', node 6 'wait': pinn_graph_wait inside the body of while 'loop': call pinn_graph_end first"},
    {wait_for_nobody,
     "'wait': no earlier branch of this fork touches plane 'x': name the plane to wait for, or leave the wait out"},
    {flag_on_the_host,
     "graph 'g', node 1 'when': plane 'pinned' that it reads as its flag is pinned: it must be a device plane. Create "
     "one of 4 bytes and add pinn_graph_copy(graph, pinned, <that plane>)"},
    {trips_on_the_host, "graph 'g', node 1 'thrice': plane 'page' that it counts its trips in is host: it must be a device plane"},
    {narrow_flag, "plane 'narrow' that it reads as its flag must hold a 32-bit word: at least 4 bytes, at a multiple of 4"},
    {unaligned_flag, "plane 'odd' that it reads as its flag must hold a 32-bit word"},
    {no_flag, "'when': plane 1 that it reads as its flag is NULL"},
    {flag_counts_itself, "'loop': its flag 'x' and its trip counter 'x' overlap: use two planes"},
    {no_cap, "'loop': its cap is 0: a while needs the most trips it may make, at least 1"},
    {no_name, "the name of the if is NULL"},
    {too_deep, "graph 'g', node 9 'one more': blocks nest more than 8 deep: put the inner ones into an operation of their own"},
    {bare_eager, "graph 'g', node 1 'look': the eager cut's function or its name is NULL"},
    {mixed_opaque, "graph 'g', node 1 'add': planes on both sides"},
};

/* The build fails with the recording's message, and the graph's old executable and the next list are good. */
START_TEST(bad_lists_are_refused) {
    scene in = {.x = new_word("x", 0),
                .y = new_word("y", 0),
                .pinned = new_plane("pinned", PINN_PINNED, 4),
                .page = new_plane("page", PINN_HOST, 4),
                .wide = new_plane("wide", PINN_DEVICE, 8)};
    OK(pinn_plane_view(in.wide, "odd", 2, 4, &in.odd));
    OK(pinn_graph_begin(graph));
    OK(add(in.y, 1));
    OK(pinn_graph_launch(graph, 1));
    OK(pinn_graph_begin(graph));
    bad_lists[_i].record(&in);
    pinn_status status = pinn_graph_build(graph);
    ck_assert_msg(status == PINN_REFUSED || status == PINN_BAD_ARGUMENT, "list %d: %s", _i, pinn_status_name(status));
    ck_assert_msg(strstr(pinn_error_message(), bad_lists[_i].message), "no '%s' in '%s'", bad_lists[_i].message,
                  pinn_error_message());
    OK(pinn_graph_launch(graph, 1));
    ck_assert_int_eq(value_of(in.y), 2);
    OK(pinn_graph_begin(graph));
    OK(pinn_graph_if(graph, "when", in.x));
    OK(add(in.y, 1));
    OK(pinn_graph_else(graph));
    OK(add(in.y, 10));
    OK(pinn_graph_end(graph));
    OK(pinn_graph_launch(graph, 1));
    ck_assert_int_eq(value_of(in.y), 12);
    ck_assert_int_eq(in.calls.calls, 0);
    pinn_plane *all[] = {in.odd, in.x, in.y, in.pinned, in.page, in.wide};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) pinn_plane_destroy(all[i]);
}
END_TEST

/* ---- unordered branches ---------------------------------------------------------------------------------------------------- */

/* Two branches, each with one node on bytes of the same plane. Fills write; a copy reads. */
START_TEST(branches_may_not_overlap) {
    static const struct {
        size_t first, first_bytes, second, second_bytes;
        bool reads, refused; /* the second only reads */
    } cases[] = {
        {0, 4, 4, 4, false, false}, {0, 4, 3, 4, false, true}, {3, 4, 0, 4, false, true}, {0, 8, 2, 1, false, true},
        {2, 1, 0, 8, true, true},   {2, 1, 3, 5, true, false}, {2, 1, 0, 2, true, false}, {2, 1, 1, 2, true, true},
        {7, 1, 0, 7, false, false}, {7, 1, 0, 8, false, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pinn_plane *x = new_plane("x", PINN_DEVICE, 8), *first, *second,
                   *out = new_plane("out", PINN_DEVICE, cases[i].second_bytes);
        OK(pinn_plane_view(x, "first", cases[i].first, cases[i].first_bytes, &first));
        OK(pinn_plane_view(x, "second", cases[i].second, cases[i].second_bytes, &second));
        OK(pinn_graph_begin(graph));
        OK(pinn_graph_fork(graph));
        OK(pinn_graph_branch(graph, "one"));
        OK(fill(first, 1));
        OK(pinn_graph_branch(graph, "two"));
        OK(cases[i].reads ? pinn_graph_copy(graph, second, out) : fill(second, 2));
        OK(pinn_graph_join(graph));
        if (cases[i].refused) {
            char expected[256];
            snprintf(expected, sizeof expected,
                     "in branch 'two' it %s 'second', which overlaps 'first' that node 3 'fill' in branch 'one' writes, and "
                     "nothing orders "
                     "the two: add pinn_graph_wait(graph, first) to branch 'two' before node 5",
                     cases[i].reads ? "reads" : "writes");
            FAILS(pinn_graph_build(graph), PINN_REFUSED, expected);
        } else {
            OK(pinn_graph_launch(graph, 1));
            uint8_t bytes[8];
            OK(pinn_plane_read(x, 0, bytes, 8));
            ck_assert_int_eq(bytes[cases[i].first], 1);
            if (!cases[i].reads) ck_assert_int_eq(bytes[cases[i].second], 2);
        }
        pinn_plane *all[] = {first, second, out, x};
        for (size_t k = 0; k < 4; k++) pinn_plane_destroy(all[k]);
    }
}
END_TEST

/* What is inside blocks of a branch counts as the branch's. */
START_TEST(blocks_in_branches_may_not_overlap) {
    pinn_plane *x = new_word("x", 0), *y = new_word("y", 0), *flag = new_word("flag", 0), *trips = new_word("trips", 0);
    for (int i = 0; i < 5; i++) {
        OK(pinn_graph_begin(graph));
        OK(pinn_graph_fork(graph));
        OK(pinn_graph_branch(graph, "one"));
        OK(pinn_graph_fork(graph));
        OK(pinn_graph_branch(graph, "inner"));
        OK(pinn_graph_while(graph, "loop", flag, 2, trips));
        OK(add(x, 1));
        OK(pinn_graph_end(graph));
        OK(pinn_graph_join(graph));
        OK(pinn_graph_branch(graph, "two"));
        if (i == 0) OK(add(y, 1));
        if (i == 1) OK(add(x, 1));
        if (i == 2) OK(add(flag, 1));    /* the loop reads it */
        if (i == 3) OK(twice(trips, y)); /* and writes this */
        if (i == 4) {
            OK(pinn_graph_wait(graph, trips)); /* after the whole of "one" */
            OK(accumulate(trips, x));
            OK(add(flag, 1));
        }
        OK(pinn_graph_join(graph));
        if (i == 0 || i == 4)
            OK(pinn_graph_launch(graph, 1));
        else
            FAILS(pinn_graph_build(graph), PINN_REFUSED, i == 1 ? "that node 6 'add'" : "that node 5 'loop'");
    }
    ck_assert_int_eq(value_of(y), 1);
    pinn_plane *all[] = {x, y, flag, trips};
    for (size_t i = 0; i < 4; i++) pinn_plane_destroy(all[i]);
}
END_TEST

/* The inner fork is checked for itself, and a wait counts only from where it stands and for what was there before it. */
START_TEST(waits_order_only_what_they_say) {
    pinn_plane *x = new_word("x", 0), *y = new_word("y", 0), *z = new_word("z", 0);
    for (int i = 0; i < 3; i++) {
        OK(pinn_graph_begin(graph));
        OK(pinn_graph_fork(graph));
        OK(pinn_graph_branch(graph, "one"));
        OK(add(x, 1));
        OK(add(y, 1));
        OK(pinn_graph_branch(graph, "two"));
        if (i == 0) {
            OK(add(y, 1)); /* too early */
            OK(pinn_graph_wait(graph, y));
        } else {
            OK(pinn_graph_wait(graph, i == 1 ? x : y)); /* x alone ends before y's node */
            OK(add(y, 1));
        }
        OK(add(x, 1));
        OK(add(z, 1));
        OK(pinn_graph_join(graph));
        if (i == 2)
            OK(pinn_graph_launch(graph, 1));
        else
            FAILS(pinn_graph_build(graph), PINN_REFUSED, "it writes 'y', which overlaps 'y' that node 4 'add'");
    }
    ck_assert_int_eq(value_of(x), 2);
    OK(pinn_graph_begin(graph));
    OK(pinn_graph_for(graph, "loop", 2, NULL));
    OK(pinn_graph_fork(graph));
    OK(pinn_graph_branch(graph, "one"));
    OK(add(x, 1));
    OK(pinn_graph_branch(graph, "two"));
    OK(add(x, 1));
    OK(pinn_graph_join(graph));
    OK(pinn_graph_end(graph));
    FAILS(pinn_graph_build(graph), PINN_REFUSED, "graph 'g', node 6 'add': in branch 'two' it writes 'x', which overlaps 'x'");
    pinn_plane_destroy(x);
    pinn_plane_destroy(y);
    pinn_plane_destroy(z);
}
END_TEST

static TCase *block_refusal_case(void) {
    TCase *tests = tcase_create("block refusals");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_set_timeout(tests, 10);
    tcase_add_loop_test(tests, bad_lists_are_refused, 0, (int)(sizeof bad_lists / sizeof *bad_lists));
    tcase_add_test(tests, branches_may_not_overlap);
    tcase_add_test(tests, blocks_in_branches_may_not_overlap);
    tcase_add_test(tests, waits_order_only_what_they_say);
    return tests;
}

#endif
