/* Compiled loop of the regressions at nodes: the paper's search, and the one with profile gains.

   Everything is at unit variances. With A the active set of node r, S_AA = LLᵀ and G any orthogonal
   matrix, the rows of M = G L⁻¹ (S_A· | I) hold all that is needed, one column a variable and one u
   a member. c = (S_r· | 0) − M_·rᵀM has the covariances of the candidates with the residual and, for
   the members, −Γ; v = (1 | 0) − ‖M_·m‖² has what A leaves of the candidates and −‖u‖² =
   −[S_AA⁻¹]_ii. An addition gives M a row. A removal makes q = uᵀM/‖u‖, what only this member
   explains, the last row, by a reflection, and drops it; it raises RSS by q_r² = Γ²/‖u‖², c by q_r q
   and v by q². All of that is at most |A| p, with products uᵀM.

   In the paper's search adding t gains c_t²/2 and removing t costs Γ_t²/2. With profile gains the
   other coefficients follow: adding t lowers RSS by c_t²/v_t. What a swap is worth is exact, too; to
   weigh all of them is |A|² p.

   S may be *rough*, whole numbers that are products of rounded rows, see core/rounded.c, which are
   made in a fraction of the time. Then M has two columns for variables, that of r and that of the
   candidate at work, from exact products of rows of a table, and so are Γ, RSS and all that is
   decided or written. The covariances of others with the residual are made of rough rows at each step,
   see core/rough.h, and those that come within rounding of the largest once more, of exact ones.
   Where most do, as when little is left of a node, exact correlations would have cost less: products
   are counted, and a node that needs more of them than there are is *unclear*, and left to somebody
   who has S.

   The search returns when its share of work is done, and all that it needs to go on is in the arrays
   that it was given: Ctrl-C is heard within the longest of regressions. The scan serves the search
   among a few candidates a node, see core/candidate_pools.py. */

#include "pairs.h"
#include "rough.h"

/* Places of ``state``: the node at work; the sizes of its active set and of its set of rejected
   candidates; how many of the steps that it was told to take it has taken; the steps in the output;
   the sets and their members in the trace; the array entries that may still be read in this call; the
   exact products that may still be taken for rough correlations; whether the node looks at all
   variables, after a pool of them was not enough.
   Then, of a profile search: the pass, even on the way up; the size at which no candidate was worth
   its while any more; whether a set was found that beats one of its size; and how many of the first
   variables that it was told to add are in all sets from then on. */
enum {
    NODE,
    SIZE,
    REJECTED,
    TOLD,
    STEPS,
    SETS,
    MEMBERS,
    WORK,
    PRODUCTS,
    WHOLE,
    PASS,
    TURN,
    BETTER,
    KEPT,
    PLACES,
};
/* There are two ways up and down at least, and more while they find better sets, up to four. */
#define LEAST_PASSES 4
#define MOST_PASSES 8
/* So many variables beyond the turn come in on the first way up, and twice as many each time. */
#define EXTRA 8
/* Up to this many members that may go all swaps are weighed, beyond it those of the weakest one. */
#define SWAPS 8
/* Sums of squares that are closer than this differ by rounding. */
#define ROUNDING 1e-13
/* Numbers with fewer than this many others between them count as equal (a relative 1e-12), and the
   first of them is taken: neither the machine nor the order of a sum decides. */
#define TIE 4096
/* Covariances that are made in two ways, at unit variances, differ by less. */
#define NEAR 1e-8
/* Numbers of which the largest is found together. */
#define STRIP 512

/* Exact products that a node may need on average: a share of all variables, but some in any case. */
#define SHARE_OF_PRODUCTS 16
#define LEAST_PRODUCTS 64
/* Where S is rough, the column of the candidate at work is the second of two. */
#define CANDIDATE 1
#define ROUGH_COLUMNS 2

/* The regression of a node, whose column is r: M, whose rows are ``width`` long, of which p are for
   variables, and what comes from it. ``gains`` are those of a profile search, else c itself, whose
   order is that of the gains. */
typedef struct {
    bool profile;
    Int p, r, k, width;
    double *M, *c, *v, *q, *gains, *delta;
    Int *members, *rejected;
} Regression;

static double *row_of(const Regression *fit, Int a)
{
    return fit->M + a * fit->width;
}

/* Take uᵀM, where u is a column of the first k rows, from the first entries of q: the square of u.
   Four rows at a time, because to read and write q costs as much as to read two rows. */
VECTORISED static double subtract(const double *M, Int width, Int k, Int column, Int size,
                                  double *restrict q)
{
    double square = 0.0;
    Int a = 0;
    for (; a + 3 < k; a += 4) {
        const double *x = M + a * width, *y = x + width, *z = y + width, *t = z + width;
        double x0 = x[column], y0 = y[column], z0 = z[column], t0 = t[column];
        square += x0 * x0 + y0 * y0 + z0 * z0 + t0 * t0;
        for (Int m = 0; m < size; m++)
            q[m] -= (x0 * x[m] + y0 * y[m]) + (z0 * z[m] + t0 * t[m]);
    }
    for (; a < k; a++) {
        const double *x = M + a * width;
        double x0 = x[column];
        square += x0 * x0;
        for (Int m = 0; m < size; m++)
            q[m] -= x0 * x[m];
    }
    return square;
}

/* The place of the largest of p numbers in absolute value. */
VECTORISED static Int largest(const double *numbers, Int p)
{
    Int top = 0, place = 0;
    for (Int first = 0; first < p; first += STRIP) {
        Int here = 0, end = least_int(first + STRIP, p);
        for (Int m = first; m < end; m++)
            here = most_int(here, magnitude(numbers[m]));
        if (here - TIE > top)
            place = first;
        top = most_int(top, here);
    }
    while (magnitude(numbers[place]) < top - TIE)
        place++;
    return place;
}

/* Gains where q q'/``inverse`` comes back; what the others determine gains nothing. */
VECTORISED static void fill_gains(Int p, double smallest, double inverse, double y,
                                  const double *c, const double *v, const double *q,
                                  double *restrict gains)
{
    for (Int m = 0; m < p; m++) {
        double left = v[m] + q[m] * q[m] * inverse, z = c[m] + y * q[m];
        gains[m] = left >= smallest ? z * z / left : 0.0;
    }
}

/* Fill the gains without a member, or with all (``member`` = k): what removing it costs. */
static double weigh(const Regression *fit, Int member, double smallest)
{
    bool without = member < fit->k;
    memset(fit->q, 0, fit->p * sizeof(double));
    double square = subtract(fit->M, fit->width, without ? fit->k : 0, fit->p + member, fit->p,
                             fit->q);
    double inverse = without ? 1.0 / square : 0.0, y = inverse * fit->q[fit->r];
    fill_gains(fit->p, smallest, inverse, y, fit->c, fit->v, fit->q, fit->gains);
    return y * fit->q[fit->r];
}

/* Reflect the first k rows of M so that the last is what only one member explains, and drop it;
   c and v follow. */
VECTORISED static void reflect(double *M, Int width, Int k, Int column, Int size, Int r,
                               bool profile, double square, double *restrict c,
                               double *restrict v, double *restrict q)
{
    double *last = M + (k - 1) * width, inverse = 1.0 / square, y = q[r] / square;
    double norm = copysign(sqrt(square), last[column]);
    double scale = 1.0 / (square + norm * last[column]);
    for (Int m = 0; profile && m < size; m++)
        v[m] += q[m] * q[m] * inverse;
    for (Int m = 0; m < size; m++) {
        c[m] += y * q[m];
        q[m] = scale * (norm * last[m] - q[m]);
    }
    for (Int a = 0; a < k - 1; a++) {
        double *row = M + a * width, x = row[column];
        for (Int m = 0; m < size; m++)
            row[m] -= x * q[m];
    }
}

/* Take the member at place w out; the last one takes its place. */
static void remove_member(Regression *fit, Int w)
{
    Int p = fit->p, k = fit->k, end = p + k - 1;
    memset(fit->q, 0, (end + 1) * sizeof(double));
    double square = subtract(fit->M, fit->width, k, p + w, end + 1, fit->q);
    reflect(fit->M, fit->width, k, p + w, end + 1, fit->r, fit->profile, square, fit->c, fit->v,
            fit->q);
    for (Int a = 0; a < k - 1; a++)
        row_of(fit, a)[p + w] = row_of(fit, a)[end];
    if (fit->profile)
        fit->v[fit->members[w]] = 1.0 / square;
    fit->c[p + w] = fit->c[end];
    fit->v[p + w] = fit->v[end];
    fit->members[w] = fit->members[k - 1];
    fit->k--;
}

/* Give M a row that holds what A leaves of t, and whose variance is that; c and v follow. */
VECTORISED static void extend(double *restrict row, Int size, Int r, double variance, bool profile,
                              double *restrict c, double *restrict v)
{
    double scale = 1.0 / sqrt(variance), y = scale * scale * row[r];
    for (Int m = 0; m < size; m++) {
        c[m] -= y * row[m];
        row[m] *= scale;
    }
    for (Int m = 0; profile && m < size; m++)
        v[m] -= row[m] * row[m];
}

/* Put t, of which that variance is left in the next row of M, after the members. */
static void add_member(Regression *fit, Int t, double variance)
{
    Int k = fit->k, end = fit->p + k;
    double *row = row_of(fit, k), scale = 1.0 / sqrt(variance), y = scale * scale * row[fit->r];
    extend(row, end, fit->r, variance, fit->profile, fit->c, fit->v);
    for (Int a = 0; a < k; a++)
        row_of(fit, a)[end] = 0.0;
    row[end] = scale;
    fit->c[end] = -y;
    fit->v[end] = -scale * scale;
    if (fit->profile)
        fit->v[t] = UNKNOWN;
    fit->members[k] = t;
    fit->k++;
}

/* Lists of variables for each node: where each begins, and what they hold. */
typedef struct {
    Int *starts, *members;
} Lists;

static Lists take_lists(Arguments *args)
{
    Arguments items = group(args);
    Ints starts = ints(&items), members = ints(&items);
    close_group(args, &items);
    return (Lists){starts.at, members.at};
}

/* Rough correlations: the rows of which they are rounded products, how far rounding has moved each
   of these and the worst of them; exact products that are remembered, and which nodes are unclear.
   Candidates, their rough and exact covariances with a residual, and who is none; the exact products
   of the candidate at work with the node and with the members; whom the node has met before; its pool,
   see core/rough.h. */
typedef struct {
    const int16_t *S;
    Matrix table, known;
    Int *unclear;
    const float *errors;
    double worst;
    int32_t *places;
    float *sizes;
    double *exact, *products;
    bool *closed, *met;
    Int n_met;
    int32_t *whom;
    Pool pool;
} Rough;

typedef struct {
    const double *S;
    Rough *rough;
    Int block_size, p;
    Ints rows;
    Int *blocks;
    Lists told, barred;
    double *thresholds, drop, nu, smallest;
    Int *state, room;
    Matrix output;
    Int *starts;
    Ints entries;
    Matrix traced;
    Int *sets, sets_width;
    Floats best;
} Search;

/* What a regression does next: the place of the member to remove and the variable to add, or -1. */
typedef struct {
    Int removed, added;
    double gain, fall;
    bool ordered, sought;
} Choice;

PRODUCT_OF

/* The exact product of two rows, made or remembered: it is looked for again at each step, at each node
   near these two, and by those who come after the search. */
static double exact_product(const Search *a, Int i, Int j)
{
    Matrix table = a->rough->table;
    Int n = table.columns, pair = least_int(i, j) * a->p + most_int(i, j);
    bool there;
    double *line = line_of(a->rough->known, pair, &there);
    if (!there) {
        line[0] = (double)pair;
        line[1] = least(most(product_of(table.at + i * n, table.at + j * n, n), -1.0), 1.0);
    }
    return line[1];
}

/* Count what the exact covariance of a candidate with the residual costs: what it would if a node
   remembered its own products only, whoever has made them. So neither threads nor what was forgotten
   decide who is unclear. */
static void pay(const Search *a, Int k, Int m)
{
    Rough *rough = a->rough;
    Int new = rough->met[m] ? 1 : k + 1;
    a->state[WORK] -= new * rough->table.columns;
    a->state[PRODUCTS] -= new;
    if (!rough->met[m])
        rough->whom[rough->n_met++] = (int32_t)m;
    rough->met[m] = true;
}

/* Give a candidate its column, from exact products: its covariance with the residual. */
static double make_exact(const Search *a, const Regression *fit, Int node, Int m)
{
    Rough *rough = a->rough;
    pay(a, fit->k, m);
    double *products = rough->products, c = exact_product(a, a->rows.at[node], m);
    products[0] = c;
    for (Int i = 0; i < fit->k; i++)
        products[1 + i] = exact_product(a, fit->members[i], m);
    for (Int i = 0; i < fit->k; i++) {
        double *row = row_of(fit, i), value = 0.0;
        for (Int j = 0; j < fit->k; j++)
            value += row[fit->p + j] * products[1 + j];
        row[CANDIDATE] = value;
        c -= row[fit->r] * value;
    }
    fit->c[CANDIDATE] = c;
    return c;
}

/* How far rough covariances with the residual of a node can be off. */
static Bound error_of(const Search *a, const Regression *fit, Int node, double rss)
{
    const Rough *rough = a->rough;
    double weight = 1.0, error = rough->errors[a->rows.at[node]], terms = (double)fit->k + 1.0;
    for (Int i = 0; i < fit->k; i++) {
        double gamma = fabs(fit->c[fit->p + i]);
        weight += gamma;
        error += gamma * rough->errors[fit->members[i]];
    }
    /* Σγx is nearest to x_r, so no |γ| exceeds the sum of all others and one, or half of the weight:
       shares fit, too. Where the bound is beyond everything, so that all is made exact, none matters. */
    double one = ONE / 2;
    while (weight * one + terms > INT16_MAX && one > 1.0 / ONE)
        one /= 2.0;
    /* S is rounded, and so are each term and each share. */
    double rounding = 0.5 / ONE * weight + 0.75 / one * terms + 1e-6;
    return (Bound){one, error + rounding, sqrt(rss) + error};
}

/* Mark who never is a candidate, or no longer do. */
static void shut_out(const Search *a, Int node, bool mark)
{
    for (Int e = a->barred.starts[node]; e < a->barred.starts[node + 1]; e++)
        a->rough->closed[a->barred.members[e]] = mark;
}

/* Mark who is no candidate, or no longer do. */
static void shut(const Search *a, const Regression *fit, Int node, bool mark)
{
    bool *closed = a->rough->closed;
    shut_out(a, node, mark);
    for (Int e = 0; e < a->state[REJECTED]; e++)
        closed[fit->rejected[e]] = mark;
    for (Int i = 0; i < fit->k; i++)
        closed[fit->members[i]] = mark;
}

static const int16_t *rough_rows(const Search *a, Int node)
{
    return a->rough->S + a->blocks[node] * a->block_size;
}

/* Candidates whose covariance with the residual may be as large as is needed: how many, and the
   place of the largest among them. */
static Int find_candidates(const Search *a, const Regression *fit, Int node, double one, double bar,
                           Int *likely)
{
    Rough *rough = a->rough;
    const int16_t *S = rough_rows(a, node);
    Int r = a->rows.at[node], k = fit->k, kept = 0;
    double *minus_gamma = fit->c + fit->p;
    Int found = rough->pool.open
                    ? collect_in_pool(&rough->pool, S, a->p, r, k, fit->members, minus_gamma, one,
                                      bar, rough->places, rough->sizes)
                    : collect(S, a->p, a->p, r, k, fit->members, minus_gamma, one, bar,
                              rough->places, rough->sizes);
    *likely = 0;
    shut(a, fit, node, true);
    for (Int e = 0; e < found; e++)
        if (!rough->closed[rough->places[e]]) {
            rough->places[kept] = rough->places[e];
            rough->sizes[kept] = rough->sizes[e];
            if (rough->sizes[kept] > rough->sizes[*likely])
                *likely = kept;
            kept++;
        }
    shut(a, fit, node, false);
    return kept;
}

/* The first of the candidates with the largest exact covariance, which gets its column, or -1 where
   none is strong enough. Those count whose rough one, up to an error, reaches what is needed and the
   largest exact one so far. Where products are used up nothing is settled. */
static Int settle(const Search *a, const Regression *fit, Int node, double needed, Bound bound)
{
    const Rough *rough = a->rough;
    double bar = needed - bound.fixed - bound.each * rough->worst, *exact = rough->exact;
    Int likely, count = find_candidates(a, fit, node, bound.one, bar, &likely), chosen = 0;
    if (count == 0)
        return -1;
    /* The largest rough one is likely to be the largest, and then few others count. */
    Int last = rough->places[likely];
    double best = fabs(exact[likely] = make_exact(a, fit, node, last));
    for (Int e = 0; e < count && a->state[PRODUCTS] >= 0; e++) {
        Int m = rough->places[e];
        double error = bound.fixed + bound.each * rough->errors[m];
        if (e == likely)
            continue;
        exact[e] = 0.0;
        if (rough->sizes[e] + error < most(best, needed))
            continue;
        exact[e] = make_exact(a, fit, node, m);
        best = most(best, fabs(exact[e]));
        last = m;
    }
    if (a->state[PRODUCTS] < 0)
        return -1;
    while (magnitude(exact[chosen]) < magnitude(best) - TIE)
        chosen++;
    if (rough->places[chosen] != last)
        make_exact(a, fit, node, rough->places[chosen]);
    return rough->places[chosen];
}

/* The member whose removal costs least, of those that may go, or -1; and what it costs. */
static Int weakest_member(const Regression *fit, Int kept, double *cost)
{
    Int weakest = -1;
    *cost = UNKNOWN;
    for (Int i = kept; i < fit->k; i++) {
        double gamma = fit->c[fit->p + i], square = fit->profile ? -fit->v[fit->p + i] : 1.0;
        if (gamma * gamma < *cost * square) {
            weakest = i;
            *cost = gamma * gamma / square;
        }
    }
    return weakest;
}

/* Keep a set that has the least RSS of its size. */
static void record(const Search *a, const Regression *fit, double rss)
{
    Int k = fit->k;
    if (rss >= a->best.at[k] - ROUNDING)
        return;
    a->state[BETTER] |= a->best.at[k] < UNKNOWN && k <= a->state[TURN];
    a->best.at[k] = rss;
    memcpy(a->sets + k * a->sets_width, fit->members, k * sizeof(Int));
}

/* Look for the candidate, or the swap, that lowers RSS most. Returns the best candidate's place. */
static Int look(const Search *a, const Regression *fit, Int node, Int weakest, Choice *choice)
{
    Int place = 0, k = fit->k;
    double *gains = fit->gains, lead = ROUNDING;
    if (!fit->profile) {
        for (Int e = a->barred.starts[node]; e < a->barred.starts[node + 1]; e++)
            gains[a->barred.members[e]] = 0.0;
        for (Int e = 0; e < a->state[REJECTED]; e++)
            gains[fit->rejected[e]] = 0.0;
        for (Int i = 0; i < k; i++)
            gains[fit->members[i]] = 0.0;
        return largest(gains, fit->p);
    }
    Int kept = a->state[KEPT];
    for (Int i = kept; i <= k; i++) {
        if (i < k && (k > a->state[TURN] || (k - kept > SWAPS && i != weakest)))
            continue;
        a->state[WORK] -= k * fit->p;
        double lost = weigh(fit, i, a->smallest);
        place = largest(gains, fit->p);
        if (i < k && gains[place] - lost > lead + ROUNDING) {
            lead = gains[place] - lost;
            choice->removed = i;
            choice->added = place;
        }
    }
    return place;
}

/* Turn a profile search where nothing is worth its while any more; false when it has ended. */
static bool go_up_or_down(const Search *a, const Regression *fit, Int place, Int weakest, bool poor,
                          bool spent, Choice *choice)
{
    Int *state = a->state;
    if (poor || spent)
        state[TURN] = least_int(state[TURN], fit->k);
    Int most_members = state[TURN] + ((Int)EXTRA << state[PASS] / 2);
    if (fit->k >= most_members || 2.0 * choice->gain <= ROUNDING || spent)
        state[PASS] |= 1;
    if (state[PASS] % 2 == 0)
        choice->added = place;
    else
        choice->removed = weakest;
    if (choice->removed < 0 && choice->added < 0) {
        state[PASS]++;
        if (state[PASS] >= (state[BETTER] ? MOST_PASSES : LEAST_PASSES))
            return false;
        state[TURN] = a->p;
        state[BETTER] = 0;
    }
    return true;
}

/* Write down the set from which a candidate was looked for, with Γ. */
static void write_trace(const Search *a, const Regression *fit)
{
    for (Int i = 0; i < fit->k; i++) {
        double *line = a->traced.at + 2 * (a->state[MEMBERS] + i);
        line[0] = (double)fit->members[i];
        line[1] = -fit->c[fit->p + i];
    }
    a->state[SETS]++;
    a->state[MEMBERS] += fit->k;
    a->entries.at[a->state[SETS]] = a->state[MEMBERS];
}

/* Take a step that the regression was told to take. */
static void obey(const Search *a, const Regression *fit, Int node, Int order, Choice *choice)
{
    a->state[TOLD]++;
    if (!fit->profile) {
        choice->added = order;
        double c = a->rough == NULL ? fit->c[order] : make_exact(a, fit, node, order);
        choice->gain = 0.5 * c * c;
        choice->fall = INFINITY;
        return;
    }
    for (Int i = 0; i < fit->k; i++)
        if (fit->members[i] == -1 - order)
            choice->removed = i;
    bool stays = a->state[TOLD] <= a->state[KEPT];
    if (order >= 0 && (stays || fit->v[order] >= a->smallest))
        choice->added = order;
}

/* Whether a candidate is not worth its while that gains so much. */
static bool is_poor(const Search *a, Int node, double rss, Choice *choice, double gain)
{
    choice->gain = gain;
    choice->fall = -log(most(1.0 - 2.0 * gain / most(rss, a->smallest), 1e-300));
    return gain <= a->thresholds[node] || choice->fall <= a->drop;
}

/* Choose the candidate to add from rough correlations; false when none is worth its while. */
static bool look_roughly(const Search *a, const Regression *fit, Int node, double rss,
                         Choice *choice)
{
    double share = -expm1(-a->drop);
    double needed = sqrt(most(2.0 * a->thresholds[node], share * most(rss, a->smallest)));
    Bound bound = error_of(a, fit, node, rss);
    Pool *pool = &a->rough->pool;
    choice->added = settle(a, fit, node, needed, bound);
    choice->sought = true;
    double best = fit->c[CANDIDATE];
    bool worth = choice->added >= 0 && !is_poor(a, node, rss, choice, 0.5 * best * best);
    if (pool->open)
        keep_look(pool, rough_rows(a, node), a->p, a->rows.at[node], fit->k, fit->members,
                  fit->c + fit->p, bound, a->rough->worst, worth ? fabs(best) : needed);
    return worth;
}

/* Whether a variable that was not in the pool might have been chosen at a look. */
static bool might_win(const Search *a, const Look *look, Int m)
{
    double error = look->bound.fixed + look->bound.each * a->rough->errors[m], c = 0.0;
    if (rough_size(look, m) + error < look->level)
        return false;
    pay(a, look->n_terms - 1, m);
    for (Int i = 0; i < look->n_terms; i++)
        c += look->terms[i].coefficient * exact_product(a, look->terms[i].variable, m);
    return fabs(c) >= look->level - NEAR;
}

/* Whether somebody who was not in the pool might have been chosen at any look. */
static bool overlooked(const Search *a, Int node)
{
    const Rough *rough = a->rough;
    const Pool *pool = &rough->pool;
    bool anybody = false;
    if (pool->n_looks == 0)
        return false;
    a->state[WORK] -= pool->n_rows * a->p;
    Int found = find_over(pool->looks, pool->n_looks, a->p, rough->places);
    shut_out(a, node, true);
    for (Int e = 0; e < found && a->state[PRODUCTS] >= 0; e++) {
        Int m = rough->places[e], spot = pool->spots[m];
        for (Int l = 0; l < pool->n_looks && !rough->closed[m] && !anybody; l++)
            if (spot == 0 || spot > pool->looks[l].size)
                anybody = might_win(a, pool->looks + l, m);
    }
    shut_out(a, node, false);
    return anybody;
}

/* Choose the next step; false when the regression has ended. */
static bool choose(const Search *a, const Regression *fit, Int node, double rss, Choice *choice)
{
    Int told = a->told.starts[node], orders = a->told.starts[node + 1] - told;
    bool spent = rss <= a->smallest;
    double cost;
    Int weakest = weakest_member(fit, fit->profile ? a->state[KEPT] : orders, &cost);
    *choice = (Choice){-1, -1, 0.5 * cost, 0.0, a->state[TOLD] < orders, false};
    if (!fit->profile) {
        if (weakest >= 0 && 0.5 * cost <= a->nu * fit->delta[fit->k]) {
            choice->removed = weakest;
            return true;
        }
        if (spent && !choice->ordered)
            return false;
    }
    if (choice->ordered) {
        obey(a, fit, node, a->told.members[told + a->state[TOLD]], choice);
        return true;
    }
    if (a->rough != NULL)
        return look_roughly(a, fit, node, rss, choice);
    Int place = look(a, fit, node, weakest, choice);
    double best = fit->gains[place];
    if (fit->profile) {
        bool poor = is_poor(a, node, rss, choice, 0.5 * best);
        return choice->removed >= 0 ||
               go_up_or_down(a, fit, place, weakest, poor, spent, choice);
    }
    bool poor = is_poor(a, node, rss, choice, 0.5 * best * best);
    choice->added = place;
    choice->sought = true;
    if (a->entries.size > 0)
        write_trace(a, fit);
    return !poor;
}

static const double *row_of_S(const Search *a, Int block, Int i)
{
    return a->S + block * a->block_size + i * a->p;
}

/* Remove a member; the covariances of candidates that were rejected before count again. */
static void take_out(const Search *a, Regression *fit, Int block, Int w)
{
    remove_member(fit, w);
    for (Int e = 0; a->S != NULL && e < a->state[REJECTED]; e++) {
        Int m = fit->rejected[e];
        fit->c[m] = row_of_S(a, block, fit->r)[m];
        for (Int i = 0; i < fit->k; i++)
            fit->c[m] -= row_of(fit, i)[fit->r] * row_of(fit, i)[m];
    }
    a->state[REJECTED] = 0;
}

/* Add a variable; false where it is a combination of the active ones: its gain is rounding. */
static bool bring_in(const Search *a, Regression *fit, Int node, const Choice *choice)
{
    Int block = a->blocks[node], p = fit->p, k = fit->k, t = choice->added;
    Int column = a->S != NULL ? t : CANDIDATE;
    double *row = row_of(fit, k);
    if (a->S != NULL)
        memcpy(row, row_of_S(a, block, t), p * sizeof(double));
    else {
        row[CANDIDATE] = 1.0;
        row[fit->r] = a->rough->products[0];
    }
    memset(row + p, 0, k * sizeof(double));
    double variance = 1.0 - subtract(fit->M, fit->width, k, column, p + k, row);
    if (choice->sought && variance < a->smallest) {
        fit->rejected[a->state[REJECTED]++] = t;
        if (a->entries.size > 0) {
            a->state[SETS]--;
            a->state[MEMBERS] -= k;
        }
        return false;
    }
    add_member(fit, t, most(variance, a->smallest));
    fit->delta[fit->k] = choice->gain;
    return true;
}

/* The steps of a regression, from where ``state`` says; false when work or room is used up before its
   end. */
static bool take_steps(const Search *a, Regression *fit, Int node)
{
    Int *state = a->state, p = a->p, block = a->blocks[node];
    fit->r = a->S != NULL ? a->rows.at[node] : 0;
    fit->k = state[SIZE];
    if (fit->k == 0 && a->S != NULL)
        memcpy(fit->c, row_of_S(a, block, fit->r), p * sizeof(double));
    else if (fit->k == 0) {
        fit->c[fit->r] = 1.0;
        state[PRODUCTS] = most_int(state[PRODUCTS], 0) + most_int(p / SHARE_OF_PRODUCTS, LEAST_PRODUCTS);
        while (a->rough->n_met > 0)
            a->rough->met[a->rough->whom[--a->rough->n_met]] = false;
    }
    if (fit->k == 0 && fit->profile) {
        for (Int m = 0; m < p; m++)
            fit->v[m] = 1.0;
        fit->v[fit->r] = UNKNOWN;
        for (Int e = a->barred.starts[node]; e < a->barred.starts[node + 1]; e++)
            fit->v[a->barred.members[e]] = UNKNOWN;
    }
    while (true) {
        Int k = fit->k, steps = state[STEPS];
        bool full = most_int(k, state[REJECTED]) == a->room || steps == a->output.rows;
        full |= a->entries.size > 0 && state[MEMBERS] + k + 1 > a->traced.rows;
        if (full || state[WORK] < 0)
            return false;
        /* A look at a pool reads the row of who came in. */
        state[WORK] -= (a->rough != NULL && a->rough->pool.open ? 1 : k + 1) * p;

        double rss = 1.0;
        for (Int i = 0; i < k; i++)
            rss -= row_of(fit, i)[fit->r] * row_of(fit, i)[fit->r];
        rss = most(rss, 0.0);
        if (fit->profile)
            record(a, fit, rss);
        else if (steps > a->starts[node])
            a->output.at[4 * (steps - 1) + 3] = 0.5 * rss;

        Choice choice;
        if (!choose(a, fit, node, rss, &choice))
            return true;
        Int other = choice.added;
        if (choice.removed >= 0) {
            other = -1 - fit->members[choice.removed];
            take_out(a, fit, block, choice.removed);
        }
        if (choice.added >= 0 && !bring_in(a, fit, node, &choice))
            continue;
        if (!fit->profile) {
            double *line = a->output.at + 4 * steps;
            line[0] = (double)other;
            line[1] = choice.gain;
            line[2] = choice.fall;
            state[STEPS]++;
        }
        state[SIZE] = fit->k;
    }
}

/* A regression in a pool, in one go; false where the pool, work or room is not enough for it or
   somebody was overlooked, and all is as it was before. */
static bool run_in_pool(const Search *a, Regression *fit, Int node)
{
    Int *state = a->state, products = state[PRODUCTS];
    Pool *pool = &a->rough->pool;
    pool->open = true;
    bool ended = take_steps(a, fit, node) && !pool->failed && !overlooked(a, node);
    ended = ended && state[PRODUCTS] >= 0;
    close_pool(pool);
    if (!ended) {
        state[STEPS] = a->starts[node];
        state[SIZE] = state[REJECTED] = state[TOLD] = 0;
        state[PRODUCTS] = products;
    }
    return ended;
}

/* One regression, from where ``state`` says; false when work or room is used up before its end. */
static bool run_node(const Search *a, Regression *fit, Int node)
{
    Int *state = a->state;
    if (state[WORK] < 0)
        return false;
    bool ended = a->rough != NULL && a->p >= CHECKED && !state[WHOLE] && run_in_pool(a, fit, node);
    state[WHOLE] = !ended;
    if (!ended && (state[WORK] < 0 || !take_steps(a, fit, node)))
        return false;
    if (a->rough != NULL && state[PRODUCTS] < 0) {
        a->rough->unclear[node] = 1;
        state[STEPS] = a->starts[node];
    }
    a->starts[node + 1] = state[STEPS];
    state[SIZE] = state[REJECTED] = state[TOLD] = state[WHOLE] = 0;
    return true;
}

/* Node i is row ``rows[i]`` of ``S[blocks[i]]``. ``told`` are steps to take first, t for an addition
   and -1 - t for a removal, ``barred`` variables never to take. A forward step needs a gain above
   ``thresholds[i]`` and a fall of log RSS above ``drop``; ``smallest`` is the variance of what is
   determined. Where S is rough, there are the rows whose products it is, the error of each, exact
   products to look up and to add to, lists of strong correlations for pools, filled when they are
   needed, with the least that is strong, and for each node whether it is unclear.

   The paper's search, where what was told stays, writes a line a step to ``output``, from
   ``starts[i]`` on: the step, its gain or cost, the fall of log RSS that the gain is worth, and RSS/2
   after it. The trace, unless empty, gets the sets from which a candidate was looked for, with Γ. For
   the profile search there are records, the set of each size with the least RSS and that RSS.
   Candidates come up to the turn by what they gain, then a few more, and go again down to those that
   are kept; then the same from these. Up to the turn swaps come first while one of them lowers RSS. */
static PyObject *search(PyObject *module, PyObject *const *values, Py_ssize_t count)
{
    Arguments args = arguments("search", values, count);
    Search a;
    Regression fit;
    bool rough = count > 0 && is_array(values[0], 3, 'i', sizeof(int16_t));
    PyArrayObject *S = rough ? array(&args, 3, 'i', sizeof(int16_t))
                             : array(&args, 3, 'f', sizeof(double));
    Arguments rounded = group(&args);
    Matrix table = matrix(&rounded);
    PyArrayObject *errors = array(&rounded, 1, 'f', sizeof(float));
    Matrix known = matrix(&rounded);
    PyArrayObject *strong = array(&rounded, 2, 'i', sizeof(int32_t));
    Int least_strong = integer(&rounded);
    Int *unclear = ints(&rounded).at;
    close_group(&args, &rounded);
    a.blocks = ints(&args).at;
    a.rows = ints(&args);
    a.told = take_lists(&args);
    a.barred = take_lists(&args);
    a.thresholds = floats(&args).at;
    a.drop = number(&args);
    a.nu = number(&args);
    a.smallest = number(&args);
    a.state = ints(&args).at;
    Arguments arrays = group(&args);
    Matrix M = matrix(&arrays), work = matrix(&arrays);
    fit.members = ints(&arrays).at;
    Ints rejected = ints(&arrays);
    fit.delta = floats(&arrays).at;
    close_group(&args, &arrays);
    a.output = matrix(&args);
    a.starts = ints(&args).at;
    Arguments trace = group(&args);
    a.entries = ints(&trace);
    a.traced = matrix(&trace);
    close_group(&args, &trace);
    Arguments records = group(&args);
    PyArrayObject *sets = array(&records, 2, 'i', sizeof(Int));
    a.best = floats(&records);
    close_group(&args, &records);
    if (!complete(&args))
        return NULL;
    a.p = PyArray_DIM(S, 2);
    a.S = rough ? NULL : PyArray_DATA(S);
    a.rough = NULL;
    Rough roughly = {0};
    double *memory = NULL;
    if (rough) {
        if (known.rows < BUCKET || PyArray_SIZE(strong) < STRONG_WIDTH * a.p) {
            PyErr_SetString(PyExc_ValueError, "search() needs room for pairs");
            return NULL;
        }
        memory = calloc(5 * a.p + rejected.size + 1, sizeof(double));
        if (memory == NULL)
            return PyErr_NoMemory();
        roughly.S = PyArray_DATA(S);
        roughly.table = table;
        roughly.known = known;
        roughly.unclear = unclear;
        roughly.errors = PyArray_DATA(errors);
        for (Int m = 0; m < PyArray_DIM(errors, 0); m++)
            roughly.worst = most(roughly.worst, roughly.errors[m]);
        roughly.exact = memory;
        roughly.places = (int32_t *)(memory + a.p);
        roughly.sizes = (float *)(roughly.places + a.p);
        roughly.closed = (bool *)(memory + 2 * a.p);
        roughly.met = roughly.closed + a.p;
        roughly.whom = (int32_t *)(memory + 3 * a.p);
        roughly.pool.spots = (int32_t *)(memory + 4 * a.p);
        roughly.pool.strong = PyArray_DATA(strong);
        roughly.pool.least_strong = (int16_t)least_strong;
        roughly.products = memory + 5 * a.p;
        a.rough = &roughly;
    }
    fit.p = rough ? ROUGH_COLUMNS : a.p;
    a.block_size = PyArray_DIM(S, 1) * a.p;
    a.room = rejected.size;
    a.sets = PyArray_DATA(sets);
    a.sets_width = PyArray_DIM(sets, 1);
    fit.profile = a.best.size > 0;
    fit.rejected = rejected.at;
    fit.M = M.at;
    fit.width = M.columns;
    fit.c = work.at;
    fit.v = fit.c + work.columns;
    fit.q = fit.v + work.columns;
    fit.gains = fit.profile ? fit.q + work.columns : fit.c;
    bool ended = true;
    Py_BEGIN_ALLOW_THREADS
    for (Int node = a.state[NODE]; ended && node < a.rows.size; node++) {
        a.state[NODE] = node;
        ended = run_node(&a, &fit, node);
    }
    Py_END_ALLOW_THREADS
    free(memory);
    return PyBool_FromLong(ended);
}

/* Candidates of some active sets: ``places`` are the rows of a panel of covariances that belong to
   them, ``keys`` and a part of ``listed`` say which candidates are known, ``entries``, ``members``
   and ``gammas`` which rows to take off. The strongest others go to ``strengths`` and ``found``. */
typedef struct {
    Int first, begin, end, width, kept;
    Int *places, *keys, *listed, *pool_starts, *pool_ends, *entries, *members, *found;
    double *gammas, *bounds, *strengths;
} Scan;

/* Keep a candidate among the strongest of a set, which are sorted. */
static void keep(const Scan *a, Int s, Int candidate, double strength)
{
    double *strengths = a->strengths + s * a->kept;
    Int *found = a->found + s * a->kept, place = a->kept - 1;
    for (Int e = a->pool_starts[s]; e < a->pool_ends[s]; e++)
        if (a->listed[e] == a->keys[s] + candidate)
            return;
    for (; place > 0 && strengths[place - 1] < strength; place--) {
        strengths[place] = strengths[place - 1];
        found[place] = found[place - 1];
    }
    strengths[place] = strength;
    found[place] = candidate;
    a->bounds[s] = most(a->bounds[s], strengths[a->kept - 1]);
}

#define SCAN(name, number)                                                                         \
    VECTORISED static void name(const Scan *a, const number *panel, number *restrict c)            \
    {                                                                                              \
        for (Int s = a->begin; s < a->end; s++) {                                                  \
            Int above = 0;                                                                         \
            number bound = (number)a->bounds[s];                                                   \
            memcpy(c, panel + a->places[s] * a->width, a->width * sizeof(number));                 \
            for (Int e = a->entries[s]; e < a->entries[s + 1]; e++) {                              \
                const number *row = panel + a->members[e] * a->width;                              \
                number g = (number)a->gammas[e];                                                   \
                for (Int m = 0; m < a->width; m++)                                                 \
                    c[m] -= g * row[m];                                                            \
            }                                                                                      \
            for (Int m = 0; m < a->width; m++)                                                     \
                above += (c[m] < 0 ? -c[m] : c[m]) > bound;                                        \
            for (Int m = 0; above > 0 && m < a->width; m++) {                                      \
                double strength = fabs((double)c[m]);                                              \
                if (strength > a->bounds[s])                                                       \
                    keep(a, s, a->first + m, strength);                                            \
            }                                                                                      \
        }                                                                                          \
    }
SCAN(scan_double, double)
SCAN(scan_single, float)

static PyObject *scan(PyObject *module, PyObject *const *values, Py_ssize_t count)
{
    Arguments args = arguments("scan", values, count);
    bool single = count > 0 && is_array(values[0], 2, 'f', sizeof(float));
    int bytes = single ? sizeof(float) : sizeof(double);
    Scan a;
    PyArrayObject *panel = array(&args, 2, 'f', bytes);
    a.first = integer(&args);
    a.begin = integer(&args);
    a.end = integer(&args);
    a.places = ints(&args).at;
    a.keys = ints(&args).at;
    Arguments pool = group(&args);
    a.listed = ints(&pool).at;
    a.pool_starts = ints(&pool).at;
    a.pool_ends = ints(&pool).at;
    close_group(&args, &pool);
    Arguments fits = group(&args);
    a.entries = ints(&fits).at;
    a.members = ints(&fits).at;
    a.gammas = floats(&fits).at;
    close_group(&args, &fits);
    PyArrayObject *c = array(&args, 1, 'f', bytes);
    a.bounds = floats(&args).at;
    Matrix strengths = matrix(&args);
    PyArrayObject *found = array(&args, 2, 'i', sizeof(Int));
    if (!complete(&args))
        return NULL;
    a.width = PyArray_DIM(panel, 1);
    a.kept = strengths.columns;
    a.strengths = strengths.at;
    a.found = PyArray_DATA(found);
    Py_BEGIN_ALLOW_THREADS
    if (single)
        scan_single(&a, PyArray_DATA(panel), PyArray_DATA(c));
    else
        scan_double(&a, PyArray_DATA(panel), PyArray_DATA(c));
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

static PyMethodDef kernels[] = {
    KERNEL(search,
           "Regressions, one after the other, from where ``state`` says. True when all have ended;\n"
           "False when the work is used up, or when the arrays need more room."),
    KERNEL(scan, "Collect the strongest candidates for some active sets from a panel."),
    END_OF_KERNELS,
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "nodes", "Regressions at nodes.", -1, kernels,
};

PyMODINIT_FUNC PyInit_nodes(void)
{
    PyObject *module = new_module(&definition);
    if (module != NULL) {
        PyModule_AddIntMacro(module, SIZE);
        PyModule_AddIntMacro(module, REJECTED);
        PyModule_AddIntMacro(module, STEPS);
        PyModule_AddIntMacro(module, SETS);
        PyModule_AddIntMacro(module, MEMBERS);
        PyModule_AddIntMacro(module, WORK);
        PyModule_AddIntMacro(module, PRODUCTS);
        PyModule_AddIntMacro(module, TURN);
        PyModule_AddIntMacro(module, KEPT);
        PyModule_AddIntMacro(module, PLACES);
        PyModule_AddIntMacro(module, ROUGH_COLUMNS);
        PyModule_AddIntMacro(module, ONE);
        PyModule_AddIntMacro(module, STRONG_WIDTH);
    }
    return module;
}
