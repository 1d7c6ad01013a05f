/* One suite for every executor: if, else, while, for; opaque nodes; eager cuts; capture by shape. See conformance.h. */
#ifndef CONTROL_H
#define CONTROL_H

#include "fixture.h"

/* A device word with a value. */
static pinn_plane *new_word(const char *name, int32_t value) {
    pinn_plane *plane = new_plane(name, PINN_DEVICE, 4);
    set_value(plane, value);
    return plane;
}

/* Where every replay waits long or is checked closely, fewer of them: in the strict mode, and under a tool. */
static int shorter(int count, int few) {
    if (tested_mode && strncmp(tested_mode, "strict", 6) == 0) return few;
    return under_tool() && count > 4 * few ? 4 * few : count;
}

/* ---- if, else -------------------------------------------------------------------------------------------------------------- */

/* A counter in the body tells a body that was skipped from one that ran and returned early. */
START_TEST(if_follows_its_flag) {
    static const int32_t flags[] = {1, 0, 1, INT32_MIN, 0, -1};
    pinn_plane *flag = new_word("flag", 0), *inside = new_word("inside", 0), *after = new_word("after", 0);
    OK(pinn_graph_begin(graph));
    OK(pinn_graph_if(graph, "when", flag));
    OK(add(inside, 1));
    OK(pinn_graph_end(graph));
    OK(add(after, 1));
    int32_t expected = 0;
    for (int i = 0; i < (int)(sizeof flags / sizeof *flags); i++) {
        set_value(flag, flags[i]);
        OK(pinn_graph_launch(graph, 1));
        expected += flags[i] != 0;
        ck_assert_int_eq(value_of(inside), expected);
        ck_assert_int_eq(value_of(after), i + 1);
    }
    ck_assert_uint_eq(stats_of(graph).builds, 1);
    pinn_plane_destroy(flag);
    pinn_plane_destroy(inside);
    pinn_plane_destroy(after);
}
END_TEST

/* Eight ifs in a row, every combination of their flags: if i adds 2^i to one word, its else to the other. */
START_TEST(if_else_with_every_combination_of_flags) {
    enum { IFS = 8 };
    pinn_plane *flags = new_plane("flags", PINN_DEVICE, 4 * IFS), *view[IFS], *yes = new_word("yes", 0), *no = new_word("no", 0);
    OK(pinn_graph_begin(graph));
    for (size_t i = 0; i < IFS; i++) {
        OK(pinn_plane_view(flags, "flag", 4 * i, 4, &view[i]));
        OK(pinn_graph_if(graph, "when", view[i]));
        OK(add(yes, 1 << i));
        OK(pinn_graph_else(graph));
        OK(add(no, 1 << i));
        OK(pinn_graph_end(graph));
    }
    const int step = shorter(1, 37);
    for (int32_t bits = 0; bits < 1 << IFS; bits += step) {
        int32_t set[IFS];
        for (int i = 0; i < IFS; i++) set[i] = bits >> i & 1;
        OK(pinn_plane_write(flags, 0, set, sizeof set));
        set_value(yes, 0);
        set_value(no, 0);
        OK(pinn_graph_launch(graph, 1));
        ck_assert_int_eq(value_of(yes), bits);
        ck_assert_int_eq(value_of(no), (1 << IFS) - 1 - bits);
    }
    ck_assert_uint_eq(stats_of(graph).builds, 1);
    for (size_t i = 0; i < IFS; i++) pinn_plane_destroy(view[i]);
    pinn_plane_destroy(flags);
    pinn_plane_destroy(yes);
    pinn_plane_destroy(no);
}
END_TEST

/* Each body turns the flag over; the other body must not see that. */
START_TEST(else_is_decided_by_the_flag_at_the_if) {
    pinn_plane *flag = new_word("flag", 1), *zero = new_word("zero", 0), *one = new_word("one", 1), *yes = new_word("yes", 0),
               *no = new_word("no", 0);
    OK(pinn_graph_begin(graph));
    OK(pinn_graph_if(graph, "turn", flag));
    OK(pinn_graph_copy(graph, zero, flag));
    OK(add(yes, 1));
    OK(pinn_graph_else(graph));
    OK(pinn_graph_copy(graph, one, flag));
    OK(add(no, 1));
    OK(pinn_graph_end(graph));
    for (int i = 1; i <= 6; i++) {
        OK(pinn_graph_launch(graph, 1));
        ck_assert_int_eq(value_of(yes), (i + 1) / 2);
        ck_assert_int_eq(value_of(no), i / 2);
        ck_assert_int_eq(value_of(flag), (i + 1) % 2);
    }
    OK(pinn_graph_enqueue(graph, 5)); /* flags change between replays that nobody waits for */
    OK(pinn_graph_launch(graph, 5));
    ck_assert_int_eq(value_of(yes), 8);
    ck_assert_int_eq(value_of(no), 8);
    pinn_plane_destroy(flag);
    pinn_plane_destroy(zero);
    pinn_plane_destroy(one);
    pinn_plane_destroy(yes);
    pinn_plane_destroy(no);
}
END_TEST

/* ---- while, for ------------------------------------------------------------------------------------------------------------ */

/* The body counts itself, adds up the trip counter it sees, and counts the flag down. */
START_TEST(while_makes_the_right_trips) {
    enum { CAP = 5 };
    static const struct {
        int32_t flag, step, trips; /* at the start, added by the body, expected */
    } cases[] = {{0, -1, 0}, {1, -1, 1}, {CAP - 1, -1, CAP - 1}, {CAP, -1, CAP}, {CAP + 2, -1, CAP}, {1, 0, CAP},
                 {0, 0, 0},  {-2, 1, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pinn_plane *flag = new_word("flag", cases[i].flag), *trips = new_word("trips", 99), *count = new_word("count", 0),
                   *sum = new_word("sum", 0);
        OK(pinn_graph_begin(graph));
        OK(pinn_graph_while(graph, "loop", flag, CAP, trips));
        OK(add(count, 1));
        OK(accumulate(trips, sum));
        OK(add(flag, cases[i].step));
        OK(pinn_graph_end(graph));
        for (int k = 1; k <= 3; k++) { /* each launch enters anew */
            set_value(flag, cases[i].flag);
            OK(pinn_graph_launch(graph, 1));
            const int32_t n = cases[i].trips;
            ck_assert_msg(value_of(count) == k * n, "case %zu: %d trips", i, value_of(count) / k);
            ck_assert_int_eq(value_of(trips), n);
            ck_assert_int_eq(value_of(sum), k * n * (n - 1) / 2); /* 0, 1 ... n-1 */
            ck_assert_int_eq(value_of(flag), cases[i].flag + n * cases[i].step);
        }
        pinn_plane_destroy(flag);
        pinn_plane_destroy(trips);
        pinn_plane_destroy(count);
        pinn_plane_destroy(sum);
    }
}
END_TEST

START_TEST(for_makes_its_trips) {
    static const uint32_t counts[] = {0, 1, 2, 17};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        pinn_plane *trips = new_word("trips", 99), *count = new_word("count", 0), *sum = new_word("sum", 0);
        const int32_t n = (int32_t)counts[i];
        OK(pinn_graph_begin(graph));
        OK(pinn_graph_for(graph, "loop", counts[i], trips));
        OK(add(count, 1));
        OK(accumulate(trips, sum));
        OK(pinn_graph_end(graph));
        OK(pinn_graph_launch(graph, 2));
        ck_assert_int_eq(value_of(count), 2 * n);
        ck_assert_int_eq(value_of(trips), n);
        ck_assert_int_eq(value_of(sum), n * (n - 1));
        pinn_plane_destroy(trips);
        pinn_plane_destroy(count);
        pinn_plane_destroy(sum);
    }
}
END_TEST

/* Also without a trip counter, and with one that the body writes over: the loop counts for itself. */
START_TEST(trips_are_the_loops_own) {
    pinn_plane *flag = new_word("flag", 1), *trips = new_word("trips", 0), *count = new_word("count", 0);
    OK(pinn_graph_begin(graph));
    OK(pinn_graph_while(graph, "no counter", flag, 3, NULL));
    OK(add(count, 1));
    OK(pinn_graph_end(graph));
    OK(pinn_graph_while(graph, "spoilt counter", flag, 4, trips));
    OK(add(trips, 1000));
    OK(add(count, 10));
    OK(pinn_graph_end(graph));
    OK(pinn_graph_launch(graph, 1));
    ck_assert_int_eq(value_of(count), 43);
    ck_assert_int_eq(value_of(trips), 4);
    pinn_plane_destroy(flag);
    pinn_plane_destroy(trips);
    pinn_plane_destroy(count);
}
END_TEST

/* The inner flag is set again by the outer body: the inner loop must run on every outer trip, not only on the first. */
START_TEST(nested_while_runs_each_outer_trip) {
    pinn_plane *outer = new_word("outer", 3), *inner = new_word("inner", 0), *four = new_word("four", 4),
               *count = new_word("count", 0), *trips = new_word("trips", 0), *sum = new_word("sum", 0);
    OK(pinn_graph_begin(graph));
    OK(pinn_graph_while(graph, "outer", outer, 100, NULL));
    OK(pinn_graph_copy(graph, four, inner));
    OK(pinn_graph_while(graph, "inner", inner, 100, trips));
    OK(add(count, 1));
    OK(add(inner, -1));
    OK(pinn_graph_end(graph));
    OK(accumulate(trips, sum));
    OK(add(outer, -1));
    OK(pinn_graph_end(graph));
    OK(pinn_graph_launch(graph, 1));
    ck_assert_int_eq(value_of(count), 12);
    ck_assert_int_eq(value_of(sum), 12);
    set_value(outer, 2);
    OK(pinn_graph_launch(graph, 2)); /* the second finds the outer flag cleared */
    ck_assert_int_eq(value_of(count), 20);
    pinn_plane_destroy(outer);
    pinn_plane_destroy(inner);
    pinn_plane_destroy(four);
    pinn_plane_destroy(count);
    pinn_plane_destroy(trips);
    pinn_plane_destroy(sum);
}
END_TEST

/* Every kind in every other, and as deep as allowed. */
START_TEST(bodies_nest) {
    pinn_plane *flag = new_word("flag", 1), *odd = new_word("odd", 0), *one = new_word("one", 1), *zero = new_word("zero", 0),
               *count = new_word("count", 0), *deep = new_word("deep", 0);
    OK(pinn_graph_begin(graph));
    OK(pinn_graph_for(graph, "six", 6, NULL));
    OK(pinn_graph_if(graph, "odd", odd)); /* 0, 1, 0, 1 ... */
    OK(pinn_graph_for(graph, "three", 3, NULL));
    OK(add(count, 1));
    OK(pinn_graph_end(graph));
    OK(pinn_graph_copy(graph, zero, odd));
    OK(pinn_graph_else(graph));
    OK(pinn_graph_while(graph, "capped", flag, 2, NULL));
    OK(add(count, 100));
    OK(pinn_graph_end(graph));
    OK(pinn_graph_copy(graph, one, odd));
    OK(pinn_graph_end(graph));
    OK(pinn_graph_end(graph));
    for (int i = 0; i < PINN_GRAPH_DEPTH; i++) {
        if (i % 2 == 0)
            OK(pinn_graph_for(graph, "twice", 2, NULL));
        else
            OK(pinn_graph_if(graph, "yes", flag));
    }
    OK(add(deep, 1));
    for (int i = 0; i < PINN_GRAPH_DEPTH; i++) OK(pinn_graph_end(graph));
    OK(pinn_graph_launch(graph, 1));
    ck_assert_int_eq(value_of(count), 3 * 3 + 3 * 2 * 100);
    ck_assert_int_eq(value_of(deep), 1 << (PINN_GRAPH_DEPTH + 1) / 2);
    pinn_plane_destroy(flag);
    pinn_plane_destroy(odd);
    pinn_plane_destroy(one);
    pinn_plane_destroy(zero);
    pinn_plane_destroy(count);
    pinn_plane_destroy(deep);
}
END_TEST

/* Copies between device and pinned memory may stand in a body. */
START_TEST(bodies_copy_to_pinned_memory) {
    pinn_plane *x = new_word("x", 0), *home = new_plane("home", PINN_PINNED, 4);
    OK(pinn_graph_begin(graph));
    OK(pinn_graph_for(graph, "loop", 5, NULL));
    OK(pinn_graph_copy(graph, home, x));
    OK(add(x, 3));
    OK(pinn_graph_copy(graph, x, home));
    OK(pinn_graph_end(graph));
    OK(pinn_graph_launch(graph, 2));
    ck_assert_int_eq(value_of(home), 30);
    pinn_plane_destroy(x);
    pinn_plane_destroy(home);
}
END_TEST

START_TEST(control_flow_is_part_of_the_signature) {
    pinn_plane *flag = new_word("flag", 0), *other = new_word("other", 0), *x = new_word("x", 0);
    const struct {
        pinn_plane *flag;
        uint32_t cap;
        const char *reason;
    } cases[] = {{flag, 3, "first build"}, {flag, 3, NULL}, {flag, 4, "its cap is 4, was 3"}, {other, 4, "another allocation"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int before = messages;
        OK(pinn_graph_begin(graph));
        OK(pinn_graph_while(graph, "loop", cases[i].flag, cases[i].cap, NULL));
        OK(add(x, 1));
        OK(pinn_graph_end(graph));
        OK(pinn_graph_build(graph));
        ck_assert_int_eq(messages > before, cases[i].reason != NULL);
        if (cases[i].reason) ck_assert_msg(strstr(last_message, cases[i].reason), "%s", last_message);
    }
    pinn_graph_stats stats = stats_of(graph);
    ck_assert_uint_eq(stats.builds, 3);
    ck_assert_uint_eq(stats.conditionals, 1);
    pinn_plane_destroy(flag);
    OK(pinn_graph_launch(graph, 1)); /* the built list has it no more */
    pinn_plane_destroy(other);
    FAILS(pinn_graph_launch(graph, 1), PINN_STALE, "plane 'other' was freed");
    pinn_plane_destroy(x);
}
END_TEST

/* Two micro-batches: the gradient is zeroed by a recorded node, so it is g1 + g2 in every replay, not more. */
START_TEST(gradients_of_micro_batches_add_up) {
    pinn_plane *batch[2] = {new_plane("first", PINN_DEVICE, 40), new_plane("second", PINN_DEVICE, 40)},
               *gradient = new_plane("gradient", PINN_DEVICE, 40);
    for (int32_t i = 0; i < 10; i++) {
        OK(pinn_plane_write(batch[0], (size_t)(4 * i), &i, 4));
        OK(pinn_plane_write(batch[1], (size_t)(4 * i), &(int32_t){100 * i}, 4));
    }
    OK(pinn_graph_begin(graph));
    OK(fill(gradient, 0));
    for (int i = 0; i < 2; i++) OK(accumulate(batch[i], gradient));
    for (int launches = 0; launches < 3; launches++) {
        int32_t got[10];
        OK(pinn_graph_launch(graph, 2));
        OK(pinn_plane_read(gradient, 0, got, sizeof got));
        for (int32_t i = 0; i < 10; i++) ck_assert_int_eq(got[i], 101 * i);
    }
    pinn_plane_destroy(batch[0]);
    pinn_plane_destroy(batch[1]);
    pinn_plane_destroy(gradient);
}
END_TEST

/* ---- opaque nodes and eager cuts ------------------------------------------------------------------------------------------- */

START_TEST(opaque_gets_its_users_pointer) {
    pinn_plane *x = new_word("x", 0), *host = new_plane("host", PINN_HOST, 4);
    add_arguments mine = {.count = 1, .amount = 4}, other = {.count = 1, .amount = 9};
    OK(pinn_graph_begin(graph));
    OK(pinn_graph_opaque(graph, &add_operation, &mine, PINN_PLANES(x), PINN_PLANES(x)));
    OK(pinn_graph_opaque(graph, &add_operation, &mine, PINN_PLANES(host), PINN_PLANES(host)));
    OK(pinn_graph_launch(graph, 2));
    ck_assert_int_eq(value_of(x), 8);
    ck_assert_int_eq(value_of(host), 8);
    OK(pinn_graph_begin(graph));
    OK(pinn_graph_opaque(graph, &add_operation, &other, PINN_PLANES(x), PINN_PLANES(x)));
    OK(pinn_graph_opaque(graph, &add_operation, &mine, PINN_PLANES(host), PINN_PLANES(host)));
    OK(pinn_graph_launch(graph, 1));
    ck_assert_msg(strstr(last_message, "its user pointer changed"), "%s", last_message);
    ck_assert_int_eq(value_of(x), 17);
    char *text;
    OK(pinn_graph_explain(graph, &text));
    ck_assert_msg(strstr(text, "device \"add\" (opaque) reads \"x\""), "%s", text);
    free(text);
    pinn_plane_destroy(x);
    pinn_plane_destroy(host);
}
END_TEST

/* Doubles a device word with the library's own copies; notes what it saw. */
typedef struct doubling {
    pinn_plane *plane;
    int32_t seen[32];
    int calls, fail_at; /* fail_at 0 = never */
} doubling;

static pinn_status double_word(void *user) {
    doubling *own = user;
    int32_t value;
    if (++own->calls == own->fail_at) return PINN_IO;
    pinn_status status = pinn_plane_read(own->plane, 0, &value, sizeof value);
    if (status != PINN_OK) return status;
    own->seen[own->calls - 1] = value;
    value *= 2;
    return pinn_plane_write(own->plane, 0, &value, sizeof value);
}

START_TEST(eager_cut_keeps_its_place) {
    enum { REPLAYS = 5 };
    pinn_plane *x = new_word("x", 0), *home = new_plane("home", PINN_PINNED, 4);
    doubling own = {.plane = x}, first = {.plane = x}, last = {.plane = x};
    OK(pinn_graph_begin(graph));
    OK(pinn_graph_eager(graph, "first", double_word, &first, PINN_PLANES(x), PINN_PLANES(x))); /* nothing before it */
    OK(add(x, 1));
    OK(pinn_graph_eager(graph, "double", double_word, &own, PINN_PLANES(x), PINN_PLANES(x)));
    OK(add(x, 10));
    OK(pinn_graph_copy(graph, x, home));
    OK(pinn_graph_eager(graph, "last", double_word, &last, PINN_PLANES(x, home), PINN_PLANES(x))); /* nor behind */
    OK(pinn_graph_enqueue(graph, 2));
    OK(pinn_graph_launch(graph, REPLAYS - 2));
    int32_t expected = 0, at_home = 0;
    for (int i = 0; i < REPLAYS; i++) {
        ck_assert_int_eq(first.seen[i], expected);
        ck_assert_int_eq(own.seen[i], 2 * expected + 1);
        at_home = 2 * (2 * expected + 1) + 10;
        ck_assert_int_eq(last.seen[i], at_home);
        expected = 2 * at_home;
    }
    ck_assert_int_eq(value_of(x), expected);
    ck_assert_int_eq(value_of(home), at_home);
    ck_assert_uint_eq(stats_of(graph).eager_cuts, 3);
    ck_assert_uint_eq(stats_of(graph).completed, REPLAYS);
    pinn_plane_destroy(x);
    pinn_plane_destroy(home);
}
END_TEST

START_TEST(failing_eager_cut_is_a_host_failure) {
    pinn_plane *x = new_word("x", 1), *count = new_word("count", 0);
    doubling own = {.plane = x, .fail_at = 2};
    counter calls = {0};
    OK(pinn_graph_begin(graph));
    OK(add(count, 1));
    OK(pinn_graph_eager(graph, "bad", double_word, &own, PINN_PLANES(x), PINN_PLANES(x)));
    OK(pinn_graph_host(graph, "h", count_call, &calls, PINN_NO_PLANES, PINN_NO_PLANES));
    FAILS(pinn_graph_launch(graph, 4), PINN_HOST_FAILED, "graph 'g', eager cut 2 'bad' failed with PINN_IO");
    ck_assert_int_eq(own.calls, 2); /* then skipped, as the host nodes were */
    ck_assert_int_eq(calls.calls, 1);
    ck_assert_int_eq(value_of(count), 4); /* GPU nodes went on */
    OK(pinn_graph_launch(graph, 1));
    ck_assert_int_eq(own.calls, 3);
    ck_assert_int_eq(value_of(x), 4);
    pinn_plane_destroy(x);
    pinn_plane_destroy(count);
}
END_TEST

typedef struct caller {
    pinn_graph *graph;
    pinn_plane *doomed;
    pinn_status launch, begin, synchronize, create;
    char message[512];
} caller;

static pinn_status call_from_cut(void *user) {
    caller *own = user;
    pinn_plane *made = NULL;
    own->launch = pinn_graph_launch(own->graph, 1);
    snprintf(own->message, sizeof own->message, "%s", pinn_error_message());
    own->begin = pinn_graph_begin(own->graph);
    own->synchronize = pinn_context_synchronize(context);
    own->create = pinn_plane_create(context, "made", PINN_DEVICE, 4, &made);
    pinn_plane_destroy(own->doomed);
    own->doomed = NULL;
    return PINN_OK;
}

START_TEST(eager_cut_reads_and_writes_but_no_more) {
    pinn_plane *x = new_word("x", 0), *doomed = new_word("doomed", 0);
    caller own = {.graph = graph, .doomed = doomed};
    OK(pinn_graph_begin(graph));
    OK(pinn_graph_eager(graph, "caller", call_from_cut, &own, PINN_NO_PLANES, PINN_NO_PLANES));
    OK(add(doomed, 1)); /* it lives until the launch is over */
    OK(add(x, 1));
    OK(pinn_graph_launch(graph, 1));
    ck_assert_int_eq((int)own.launch, (int)PINN_REFUSED);
    ck_assert_int_eq((int)own.begin, (int)PINN_REFUSED);
    ck_assert_int_eq((int)own.synchronize, (int)PINN_REFUSED);
    ck_assert_int_eq((int)own.create, (int)PINN_REFUSED);
    ck_assert_msg(strstr(own.message, "pinn_graph_launch called from inside eager cut 'caller'"), "%s", own.message);
    ck_assert_int_eq(value_of(x), 1);
    FAILS(pinn_graph_launch(graph, 1), PINN_STALE, "'doomed'");
    pinn_plane_destroy(x);
}
END_TEST

/* ---- capture by shape ------------------------------------------------------------------------------------------------------ */

typedef struct recorder {
    pinn_plane *plane;
    int32_t amount;
    int calls;
    pinn_status fails;
} recorder;

static pinn_status record_add(void *user, pinn_graph *into) {
    recorder *own = user;
    add_arguments arguments = {.count = 1, .amount = own->amount};
    own->calls++;
    pinn_status status =
        pinn_graph_operation(into, &add_operation, &arguments, sizeof arguments, PINN_PLANES(own->plane), PINN_PLANES(own->plane));
    return own->fails != PINN_OK ? own->fails : status;
}

START_TEST(capture_follows_the_shape) {
    const size_t small[] = {2, 3}, large[] = {2, 4};
    const size_t *shape = small;
    recorder own = {.plane = new_word("x", 0), .amount = 1};
    ck_assert_uint_eq(pinn_graph_input_shape(graph, &shape), 0);
    ck_assert_ptr_null(shape);
    ck_assert(!pinn_graph_is_captured(graph));
    OK(pinn_graph_capture(graph, small, 2, record_add, &own));
    ck_assert(pinn_graph_is_captured(graph));
    ck_assert(!pinn_graph_is_capturing(graph));
    ck_assert_int_eq(value_of(own.plane), 0); /* a capture runs nothing */
    own.amount = 10;                          /* not seen: the same shape */
    OK(pinn_graph_capture(graph, small, 2, record_add, &own));
    ck_assert_int_eq(own.calls, 1);
    OK(pinn_graph_launch(graph, 2));
    ck_assert_int_eq(value_of(own.plane), 2);
    OK(pinn_graph_capture(graph, large, 2, record_add, &own));
    ck_assert_int_eq(own.calls, 2);
    ck_assert_uint_eq(stats_of(graph).builds, 2);
    ck_assert_uint_eq(pinn_graph_input_shape(graph, &shape), 2);
    ck_assert_uint_eq(shape[1], 4);
    OK(pinn_graph_launch(graph, 1));
    ck_assert_int_eq(value_of(own.plane), 12);
    OK(pinn_graph_capture(graph, large, 1, record_add, &own)); /* another rank, the same nodes: no build */
    ck_assert_int_eq(own.calls, 3);
    ck_assert_uint_eq(stats_of(graph).builds, 2);
    ck_assert_uint_eq(pinn_graph_launch_count(graph), 3);
    pinn_graph_invalidate(graph);
    ck_assert(!pinn_graph_is_captured(graph));
    ck_assert_uint_eq(pinn_graph_input_shape(graph, &shape), 0);
    ck_assert_uint_eq(pinn_graph_launch_count(graph), 3);
    OK(pinn_graph_capture(graph, NULL, 0, record_add, &own)); /* a scalar's */
    OK(pinn_graph_capture(graph, NULL, 0, record_add, &own));
    ck_assert_int_eq(own.calls, 4);
    OK(pinn_graph_begin(graph));
    ck_assert(pinn_graph_is_capturing(graph));
    ck_assert(!pinn_graph_is_captured(graph));
    OK(add(own.plane, 5));
    OK(pinn_graph_build(graph)); /* by hand: no shape any more */
    OK(pinn_graph_capture(graph, NULL, 0, record_add, &own));
    ck_assert_int_eq(own.calls, 5);
    pinn_plane_destroy(own.plane);
}
END_TEST

START_TEST(failed_capture_keeps_the_old_one) {
    const size_t four = 4, five = 5, *shape;
    recorder own = {.plane = new_word("x", 0), .amount = 1};
    FAILS(pinn_graph_capture(graph, &four, 1, NULL, NULL), PINN_BAD_ARGUMENT, "record function is NULL");
    FAILS(pinn_graph_capture(graph, NULL, 1, record_add, &own), PINN_BAD_ARGUMENT, "shape is NULL");
    OK(pinn_graph_capture(graph, &four, 1, record_add, &own));
    own.fails = PINN_IO;
    own.amount = 100;
    FAILS(pinn_graph_capture(graph, &five, 1, record_add, &own), PINN_IO, "graph 'g': its record function failed with PINN_IO");
    ck_assert(pinn_graph_is_captured(graph));
    ck_assert_uint_eq(pinn_graph_input_shape(graph, &shape), 1);
    ck_assert_uint_eq(shape[0], 4);
    OK(pinn_graph_launch(graph, 1));
    ck_assert_int_eq(value_of(own.plane), 1);
    own.fails = PINN_OK;
    pinn_plane_destroy(own.plane);
    own.plane = new_word("x", 0); /* the same shape, but what was captured is stale */
    OK(pinn_graph_capture(graph, &four, 1, record_add, &own));
    OK(pinn_graph_launch(graph, 1));
    ck_assert_int_eq(value_of(own.plane), 100);
    pinn_plane_destroy(own.plane);
}
END_TEST

static TCase *control_case(void) {
    TCase *tests = tcase_create("control flow");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, if_follows_its_flag);
    tcase_add_test(tests, if_else_with_every_combination_of_flags);
    tcase_add_test(tests, else_is_decided_by_the_flag_at_the_if);
    tcase_add_test(tests, while_makes_the_right_trips);
    tcase_add_test(tests, for_makes_its_trips);
    tcase_add_test(tests, trips_are_the_loops_own);
    tcase_add_test(tests, nested_while_runs_each_outer_trip);
    tcase_add_test(tests, bodies_nest);
    tcase_add_test(tests, bodies_copy_to_pinned_memory);
    tcase_add_test(tests, control_flow_is_part_of_the_signature);
    tcase_add_test(tests, gradients_of_micro_batches_add_up);
    tcase_add_test(tests, opaque_gets_its_users_pointer);
    tcase_add_test(tests, eager_cut_keeps_its_place);
    tcase_add_test(tests, failing_eager_cut_is_a_host_failure);
    tcase_add_test(tests, eager_cut_reads_and_writes_but_no_more);
    tcase_add_test(tests, capture_follows_the_shape);
    tcase_add_test(tests, failed_capture_keeps_the_old_one);
    return tests;
}

#endif
