/* One suite for every executor: random programs of nested blocks against a model of ten lines. See conformance.h.
 *
 * A program works on a few int32 words. Its steps add a constant to a word or copy one to another; ifs and whiles take any word as
 * flag; the two branches of a fork have disjoint words. Loops are short, so no word overflows.
 */
#ifndef RANDOM_BLOCKS_H
#define RANDOM_BLOCKS_H

#include "control.h"

enum { WORDS = 8, STATEMENTS = 400, PROGRAMS = 60 };

typedef enum statement_kind { ADD, COPY, IF, ELSE, WHILE, FOR, END, FORK, BRANCH, JOIN } statement_kind;

typedef struct statement {
    statement_kind kind;
    int a, b;      /* words: ADD a; COPY a to b; IF, WHILE flag a */
    int32_t value; /* ADD amount; WHILE, FOR trips */
    int next;      /* IF: its ELSE or END; ELSE, WHILE, FOR: its END */
} statement;

typedef struct program {
    uint32_t random;
    statement step[STATEMENTS];
    int steps;
} program;

/* Numerical Recipes' linear congruential generator; its high bits. */
static int draw_below(program *of, int n) {
    of->random = of->random * 1664525u + 1013904223u;
    return (int)((of->random >> 8) % (uint32_t)n);
}

static int add_statement(program *to, statement_kind kind, int a, int b, int32_t value) {
    to->step[to->steps] = (statement){.kind = kind, .a = a, .b = b, .value = value};
    return to->steps++;
}

static void draw_simple(program *to, int first, int count) {
    const int a = first + draw_below(to, count), b = first + draw_below(to, count);
    if (a != b && draw_below(to, 3) == 0)
        add_statement(to, COPY, a, b, 0);
    else
        add_statement(to, ADD, a, 0, draw_below(to, 5) - 2);
}

static void draw_range_of(program *to, int first, int count, int depth);

static void draw_if(program *to, int first, int count, int depth) {
    int open = add_statement(to, IF, first + draw_below(to, count), 0, 0);
    draw_range_of(to, first, count, depth + 1);
    if (draw_below(to, 2)) {
        to->step[open].next = add_statement(to, ELSE, 0, 0, 0);
        open = to->step[open].next;
        draw_range_of(to, first, count, depth + 1);
    }
    to->step[open].next = add_statement(to, END, 0, 0, 0);
}

static void draw_fork(program *to, int first, int count, int depth) {
    const int half = count / 2;
    add_statement(to, FORK, 0, 0, 0);
    add_statement(to, BRANCH, 0, 0, 0);
    draw_range_of(to, first, half, depth + 1);
    add_statement(to, BRANCH, 0, 0, 0);
    draw_range_of(to, first + half, count - half, depth + 1);
    add_statement(to, JOIN, 0, 0, 0);
}

/* A few steps and blocks on words first to first+count-1. */
static void draw_range_of(program *to, int first, int count, int depth) {
    draw_simple(to, first, count);
    for (int i = 1 + draw_below(to, 3); i > 0; i--) {
        const int what = depth < 4 && to->steps < STATEMENTS / 3 ? draw_below(to, 6) : 0;
        if (what == 1 || what == 2) {
            draw_if(to, first, count, depth);
        } else if (what == 3 || what == 4) {
            int open = add_statement(to, what == 3 ? WHILE : FOR, first + draw_below(to, count), 0, 1 + draw_below(to, 3));
            draw_range_of(to, first, count, depth + 1);
            to->step[open].next = add_statement(to, END, 0, 0, 0);
        } else if (what == 5 && count >= 2) {
            draw_fork(to, first, count, depth);
        } else {
            draw_simple(to, first, count);
        }
    }
}

static void record_program(const program *from, pinn_plane **word) {
    for (int i = 0; i < from->steps; i++) {
        const statement *s = &from->step[i];
        switch (s->kind) {
        case ADD: OK(add(word[s->a], s->value)); break;
        case COPY: OK(pinn_graph_copy(graph, word[s->a], word[s->b])); break;
        case IF: OK(pinn_graph_if(graph, "if", word[s->a])); break;
        case ELSE: OK(pinn_graph_else(graph)); break;
        case WHILE: OK(pinn_graph_while(graph, "while", word[s->a], (uint32_t)s->value, NULL)); break;
        case FOR: OK(pinn_graph_for(graph, "for", (uint32_t)s->value, NULL)); break;
        case END: OK(pinn_graph_end(graph)); break;
        case FORK: OK(pinn_graph_fork(graph)); break;
        case BRANCH: OK(pinn_graph_branch(graph, "branch")); break;
        case JOIN: OK(pinn_graph_join(graph)); break;
        }
    }
}

static void run_model(const program *of, int first, int end, int32_t *word) {
    for (int i = first; i < end; i++) {
        const statement *s = &of->step[i];
        if (s->kind == ADD) word[s->a] += s->value;
        if (s->kind == COPY) word[s->b] = word[s->a];
        if (s->kind == WHILE || s->kind == FOR)
            for (int32_t k = 0; k < s->value && (s->kind == FOR || word[s->a]); k++) run_model(of, i + 1, s->next, word);
        if (s->kind == WHILE || s->kind == FOR) i = s->next;
        if (s->kind != IF) continue;
        const bool has_else = of->step[s->next].kind == ELSE;
        const int close = has_else ? of->step[s->next].next : s->next;
        if (word[s->a])
            run_model(of, i + 1, s->next, word);
        else if (has_else)
            run_model(of, s->next + 1, close, word);
        i = close;
    }
}

START_TEST(random_programs_run_as_the_model) {
    static program drawn;
    pinn_plane *all = new_plane("words", PINN_DEVICE, 4 * WORDS), *word[WORDS];
    for (size_t i = 0; i < WORDS; i++) OK(pinn_plane_view(all, "word", 4 * i, 4, &word[i]));
    for (uint32_t seed = 0; seed < (uint32_t)shorter(PROGRAMS, 6); seed++) {
        int32_t expected[WORDS], got[WORDS];
        drawn = (program){.random = seed};
        draw_range_of(&drawn, 0, WORDS, 0);
        for (int k = 0; k < 4; k++) draw_range_of(&drawn, 0, WORDS, 0);
        for (int i = 0; i < WORDS; i++) expected[i] = draw_below(&drawn, 4) - 1;
        OK(pinn_plane_write(all, 0, expected, sizeof expected));
        OK(pinn_graph_begin(graph));
        record_program(&drawn, word);
        OK(pinn_graph_launch(graph, 3));
        for (int k = 0; k < 3; k++) run_model(&drawn, 0, drawn.steps, expected);
        OK(pinn_plane_read(all, 0, got, sizeof got));
        for (int i = 0; i < WORDS; i++)
            ck_assert_msg(got[i] == expected[i], "seed %u, word %d: %d, not %d", seed, i, got[i], expected[i]);
    }
    for (size_t i = 0; i < WORDS; i++) pinn_plane_destroy(word[i]);
    pinn_plane_destroy(all);
}
END_TEST

static TCase *random_case(void) {
    TCase *tests = tcase_create("random programs");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, random_programs_run_as_the_model);
    return tests;
}

#endif
