/* Finds the two parameters of the kernel that give the least error, for each support
 * and padding. With KERNEL_TABLE_PROGRAM defined (target kernel_table), it prints
 * kernel_table.h. */
#include <math.h>

#include "kernel_optimise.h"
#include "kernel_quality.h"
#include "tess_kernel.h"
#include "tess_const.h"

/* β p/W lies around the asymptotic optimum of p = ½, which is π(1 − 1/2σ)/2
 * (arXiv:1808.06736, eq. 4.5). The best p is a little above ½, and farther above it the
 * narrower the kernel is. */
static const double LEAST_EXPONENT = 0.49, MOST_EXPONENT = 0.64;
enum { COARSE_BETAS = 25, COARSE_EXPONENTS = 25, FINE = 14 };
static const double BETA_STEP = 0.035;

/* The search for the lowest error, as a function of one parameter that has one minimum.
 */
typedef struct search {
    int support;
    double padding, exponent;
    double beta_per_cell; /* result of a search in p */
} search;

typedef double error_at(search *of, double x);

/* Finds the minimum between low and high by golden section. */
static double lowest(error_at *error, search *of, double low, double high)
{
    const double golden = 0.5 * (sqrt(5.0) - 1.0);
    double a = high - golden * (high - low), b = low + golden * (high - low);
    double error_a = error(of, a), error_b = error(of, b);
    for (int k = 0; k < FINE; ++k) {
        if (error_a < error_b) {
            high = b;
            b = a;
            error_b = error_a;
            error_a = error(of, a = high - golden * (high - low));
        } else {
            low = a;
            a = b;
            error_a = error_b;
            error_b = error(of, b = low + golden * (high - low));
        }
    }
    return 0.5 * (low + high);
}

/* Finds the best of `count` values from `first` on, `step` apart, and then the minimum
 * between its neighbours. */
static double search_all(error_at *error, search *of, double first, double step,
                         int count)
{
    double best = first, least = INFINITY;
    for (int k = 0; k < count; ++k) {
        const double found = error(of, first + k * step);
        if (found >= least) continue;
        least = found;
        best = first + k * step;
    }
    return lowest(error, of, best - step, best + step);
}

static double error_of_beta(search *of, double beta_per_cell)
{
    return kernel_exact_error(of->support, beta_per_cell * of->support, of->exponent,
                              0.5 / of->padding);
}

/* Returns the error of an exponent, with the best β for it. */
static double error_of_exponent(search *of, double exponent)
{
    const double guess = TESS_PI * (1 - 0.5 / of->padding) / (2 * exponent);
    of->exponent = exponent;
    of->beta_per_cell =
        search_all(error_of_beta, of, guess * (1 - COARSE_BETAS / 2 * BETA_STEP),
                   guess * BETA_STEP, COARSE_BETAS);
    return error_of_beta(of, of->beta_per_cell);
}

void kernel_optimise(int support, double padding, double *beta_per_cell,
                     double *exponent)
{
    search of = {.support = support, .padding = padding};
    const double step = (MOST_EXPONENT - LEAST_EXPONENT) / (COARSE_EXPONENTS - 1);
    *exponent = search_all(error_of_exponent, &of, LEAST_EXPONENT, step,
                           COARSE_EXPONENTS);
    error_of_exponent(&of, *exponent);
    *beta_per_cell = of.beta_per_cell;
}

#ifdef KERNEL_TABLE_PROGRAM
#include <stdio.h>

/* Plans choose among these paddings. They lie so close together that what lies between
 * them can be interpolated. */
enum { PADDINGS = 30 };
static const double FIRST_PADDING = 1.15, PADDING_STEP = 0.05;

static void print_support(int support)
{
    printf("    { /* support %d */\n", support);
    for (int k = 0; k < PADDINGS; ++k) {
        double beta_per_cell, exponent;
        kernel_optimise(support, FIRST_PADDING + k * PADDING_STEP, &beta_per_cell,
                        &exponent);
        printf("%s{%.4f, %.5f},%s", k % 4 ? " " : "     ", beta_per_cell, exponent,
               k % 4 == 3 || k == PADDINGS - 1 ? "\n" : "");
    }
    printf("    },\n");
}

int main(void)
{
    printf("/* Parameters of the kernel, found numerically: made by the target\n"
           " * kernel_table from kernel_optimise.c, not by hand. */\n"
           "#ifndef TESS_KERNEL_TABLE_H\n#define TESS_KERNEL_TABLE_H\n\n"
           "#include \"tess_kernel.h\"\n\n"
           "enum { KERNEL_PADDINGS = %d };\n"
           "static const double KERNEL_FIRST_PADDING = %g, KERNEL_PADDING_STEP = %g;\n\n"
           "/* β per cell of support, and p, by support and padding */\n"
           "static const double KERNEL_TABLE[TESS_MAX_SUPPORT - TESS_MIN_SUPPORT + 1]\n"
           "                                [KERNEL_PADDINGS][2] = {\n",
           PADDINGS, FIRST_PADDING, PADDING_STEP);
    for (int support = TESS_MIN_SUPPORT; support <= TESS_MAX_SUPPORT; ++support)
        print_support(support);
    printf("};\n\n#endif\n");
    return 0;
}
#endif
