"""Times one Adam step of the six PINNs of configs/bench in JAX on the CPU.

    taskset -c 0,1 python jax_cpu.py [CASE[,CASE...]] [VARIANT[,VARIANT...]]

A variant is how derivatives are taken (nested: grad of grad, as most JAX PINN codes do; jet: Taylor mode, jax.experimental.jet) and how
steps are dispatched (jit: one compiled step a call; scan: ten steps in one lax.scan). Points are fixed, everything is float32.
"""
import sys
import time

import jax
import jax.numpy as jnp
from jax.experimental.jet import jet

# inputs, outputs, hidden layers, width, inner points; 512 boundary points each
CASES = {"burgers_s": (2, 1, 3, 20, 2540), "burgers": (2, 1, 4, 64, 10000), "allen_cahn": (2, 1, 4, 256, 8192),
         "ns3": (3, 3, 6, 64, 20000), "ks4": (2, 1, 4, 64, 10000), "poisson10": (10, 1, 4, 64, 10000)}
REPETITIONS, SECONDS = 5, 0.6


def network(p, x):
    for w, b in p[:-1]:
        x = jnp.tanh(x @ w + b)
    return x @ p[-1][0] + p[-1][1]


def burgers(u, ux, ut, uxx):
    return (ut + u * ux - 0.0031831 * uxx) ** 2


def allen_cahn(u, ux, ut, uxx):
    return (ut - 1e-4 * uxx + 5 * u**3 - 5 * u) ** 2


def navier_stokes(w, wx, wy, wt, wxx, wyy):
    u, v, _ = w
    momentum_x = wt[0] + u * wx[0] + v * wy[0] + wx[2] - 0.01 * (wxx[0] + wyy[0])
    momentum_y = wt[1] + u * wx[1] + v * wy[1] + wy[2] - 0.01 * (wxx[1] + wyy[1])
    return momentum_x**2 + momentum_y**2 + (wx[0] + wy[1]) ** 2


def kuramoto_sivashinsky(u, ut, ux, uxx, uxxxx):
    return (ut + u * ux + uxx + uxxxx) ** 2


def poisson(x, laplacian):
    return (laplacian + jnp.sin(x).sum()) ** 2


def nested(case, p, x):
    """Squared residuals at one point, derivatives by nested transformations."""
    u = lambda z: network(p, z)[0]
    if case in ("burgers_s", "burgers", "allen_cahn"):
        g, uxx = jax.grad(u)(x), jax.grad(lambda z: jax.grad(u)(z)[0])(x)[0]
        return (allen_cahn if case == "allen_cahn" else burgers)(u(x), g[0], g[1], uxx)
    if case == "ns3":
        f = lambda z: network(p, z)
        j, h = jax.jacfwd(f)(x), jax.jacfwd(jax.jacfwd(f))(x)
        return navier_stokes(f(x), j[:, 0], j[:, 1], j[:, 2], h[:, 0, 0], h[:, 1, 1])
    if case == "ks4":
        along = lambda a: u(jnp.array([a, x[1]]))
        d1 = jax.grad(along)
        d2 = jax.grad(d1)
        d4 = jax.grad(jax.grad(d2))
        return kuramoto_sivashinsky(u(x), jax.grad(u)(x)[1], d1(x[0]), d2(x[0]), d4(x[0]))
    return poisson(x, jnp.trace(jax.hessian(u)(x)))


def taylor(case, p, x):
    """The same in Taylor mode: one jet a direction."""
    f, e = lambda z: network(p, z), jnp.eye(x.shape[0])
    along = lambda v, order: jet(f, (x,), ([v] + [jnp.zeros_like(x)] * (order - 1),))
    first = lambda v: jax.jvp(f, (x,), (v,))[1]
    if case in ("burgers_s", "burgers", "allen_cahn"):
        u, (ux, uxx) = along(e[0], 2)
        return (allen_cahn if case == "allen_cahn" else burgers)(u[0], ux[0], first(e[1])[0], uxx[0])
    if case == "ns3":
        w, (wx, wxx) = along(e[0], 2)
        _, (wy, wyy) = along(e[1], 2)
        return navier_stokes(w, wx, wy, first(e[2]), wxx, wyy)
    if case == "ks4":
        u, (ux, uxx, _, uxxxx) = along(e[0], 4)
        return kuramoto_sivashinsky(u[0], first(e[1])[0], ux[0], uxx[0], uxxxx[0])
    return poisson(x, jax.vmap(lambda v: along(v, 2)[1][1][0])(e).sum())


def adam(p, g, m, v, t):
    m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
    v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, g)
    scale, root = 1 - 0.9**t, 1 - 0.999**t
    return jax.tree.map(lambda p, m, v: p - 1e-3 * (m / scale) / (jnp.sqrt(v / root) + 1e-8), p, m, v), m, v


def start(case):
    inputs, outputs, layers, width, points = CASES[case]
    sizes, key, p = [inputs] + [width] * layers + [outputs], jax.random.PRNGKey(0), []
    for a, b in zip(sizes[:-1], sizes[1:]):
        key, k = jax.random.split(key)
        p.append((jax.random.normal(k, (a, b)) * (2 / (a + b)) ** 0.5, jnp.zeros(b)))
    inner = jax.random.uniform(jax.random.PRNGKey(1), (points, inputs), minval=-1.0, maxval=1.0)
    return p, inner, jax.random.uniform(jax.random.PRNGKey(2), (512, inputs))


def seconds_a_step(case, residual, steps):
    p, inner, boundary = start(case)

    def loss(p):
        return jnp.mean(jax.vmap(lambda x: residual(case, p, x))(inner)) + jnp.mean(network(p, boundary) ** 2)

    def step(state, _):
        p, m, v, t = state
        value, g = jax.value_and_grad(loss)(p)
        return (*adam(p, g, m, v, t + 1), t + 1), value

    if steps == 1:
        run = jax.jit(lambda state: step(state, None), donate_argnums=0)
    else:
        run = jax.jit(lambda state: jax.lax.scan(step, state, None, length=steps), donate_argnums=0)
    zeros = lambda: jax.tree.map(jnp.zeros_like, p)
    state, best, calls = (p, zeros(), zeros(), jnp.float32(0)), float("inf"), 1
    state, value = jax.block_until_ready(run(state))  # compiles
    for _ in range(REPETITIONS + 1):
        begin = time.perf_counter()
        for _ in range(calls):
            state, value = run(state)
        jax.block_until_ready(value)
        each = (time.perf_counter() - begin) / calls
        best, calls = min(best, each / steps), max(1, int(SECONDS / each))
    return best


VARIANTS = {"nested/jit": (nested, 1), "nested/scan": (nested, 10), "jet/jit": (taylor, 1), "jet/scan": (taylor, 10)}

if __name__ == "__main__":
    jax.config.update("jax_platforms", "cpu")
    for case in sys.argv[1].split(",") if len(sys.argv) > 1 else CASES:
        for variant in sys.argv[2].split(",") if len(sys.argv) > 2 else VARIANTS:
            print(f"jax {case} {variant} {1e6 * seconds_a_step(case, *VARIANTS[variant]):.1f} us", flush=True)
