/* Reference of configs/burgers.toml: u_t + u u_x = nu u_xx on [-1,1] x [0,1], nu = 0.01/pi, u(x,0) = -sin(pi x), u = 0 at the walls.
 *
 * Cole-Hopf (Hopf 1950; Basdevant et al. 1986) with eta = 2 sqrt(nu t) z:
 *     u(x,t) = - int sin(pi y) g(y) exp(-z^2) dz / int g(y) exp(-z^2) dz,   y = x - 2 sqrt(nu t) z,  g(y) = exp(-cos(pi y) / (2 pi nu)).
 * Both integrands are entire and decay like a Gaussian, so the trapezoidal rule converges faster than any power of its spacing
 * (Trefethen & Weideman 2014). log g spans [-50, 50], so |z| <= 13 leaves out less than exp(100 - 169). The stated error is the change from
 * half as many nodes, at least the rounding level.
 */
#include <float.h>
#include <stdlib.h>

#include "reference_file.h"

enum { NX = 201, NT = 51 };

static const double pi = 3.14159265358979323846;

static double cole_hopf(double x, double t, int nodes) {
    const double nu = 0.01 / pi, bound = 13.0, spacing = 2 * bound / nodes;
    if (t == 0) return -sin(pi * x);
    double numerator = 0, denominator = 0;
    for (int i = 0; i <= nodes; i++) {
        double z = -bound + i * spacing, y = x - 2 * sqrt(nu * t) * z;
        double weight = exp(-(cos(pi * y) + 1) / (2 * pi * nu) + 100 - z * z); /* common factor drops out; 100 keeps it in range */
        numerator += sin(pi * y) * weight;
        denominator += weight;
    }
    return -numerator / denominator;
}

int main(int count, char **argument) {
    if (count != 2) {
        fprintf(stderr, "usage: %s burgers.h5\n", argument[0]);
        return 2;
    }
    static double x[NX], t[NT], fine[NX * NT], coarse[NX * NT];
    for (int i = 0; i < NX; i++) x[i] = -1 + 2.0 * i / (NX - 1);
    for (int j = 0; j < NT; j++) t[j] = (double)j / (NT - 1);
    for (int i = 0; i < NX; i++)
        for (int j = 0; j < NT; j++) {
            int wall = i == 0 || i == NX - 1; /* odd about both walls: exactly zero */
            fine[i * NT + j] = wall ? 0 : cole_hopf(x[i], t[j], 8000);
            coarse[i * NT + j] = wall ? 0 : cole_hopf(x[i], t[j], 4000);
        }
    double error = fmax(relative_l2(coarse, fine, NX * NT), 64 * DBL_EPSILON);
    return write_reference(argument[1], x, NX, t, NT, fine, error, "Cole-Hopf integrals by the trapezoidal rule, 8000 nodes");
}
