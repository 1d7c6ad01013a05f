"""Times one Adam step of the six PINNs of configs/bench in PyTorch on two threads of the CPU: eager, derivatives by nested autograd.

    taskset -c 0,1 python torch_cpu.py [CASE[,CASE...]]
"""
import sys
import time

import torch

# inputs, outputs, hidden layers, width, inner points; 512 boundary points each
CASES = {"burgers_s": (2, 1, 3, 20, 2540), "burgers": (2, 1, 4, 64, 10000), "allen_cahn": (2, 1, 4, 256, 8192),
         "ns3": (3, 3, 6, 64, 20000), "ks4": (2, 1, 4, 64, 10000), "poisson10": (10, 1, 4, 64, 10000)}
REPETITIONS, SECONDS = 5, 0.6


def gradient(y, x):
    return torch.autograd.grad(y, x, torch.ones_like(y), create_graph=True)[0]


def column(y, i):
    return y[:, i : i + 1]


def residuals(case, network, x):
    u = network(x)
    if case == "ns3":
        u, v, p = (column(u, i) for i in range(3))
        du, dv, dp = gradient(u, x), gradient(v, x), gradient(p, x)
        second = lambda d, i: column(gradient(column(d, i), x), i)
        transport = lambda d: column(d, 2) + u * column(d, 0) + v * column(d, 1)
        return [transport(du) + column(dp, 0) - 0.01 * (second(du, 0) + second(du, 1)),
                transport(dv) + column(dp, 1) - 0.01 * (second(dv, 0) + second(dv, 1)), column(du, 0) + column(dv, 1)]
    g = gradient(u, x)
    if case == "poisson10":
        laplacian = sum(column(gradient(column(g, i), x), i) for i in range(10))
        return [laplacian + torch.sin(x).sum(1, keepdim=True)]
    ux, ut = column(g, 0), column(g, 1)
    uxx = column(gradient(ux, x), 0)
    if case == "allen_cahn":
        return [ut - 1e-4 * uxx + 5 * u**3 - 5 * u]
    if case == "ks4":
        uxxxx = column(gradient(column(gradient(uxx, x), 0), x), 0)
        return [ut + u * ux + uxx + uxxxx]
    return [ut + u * ux - 0.0031831 * uxx]


def seconds_a_step(case):
    inputs, outputs, hidden, width, points = CASES[case]
    layers = [torch.nn.Linear(inputs, width), torch.nn.Tanh()]
    for _ in range(hidden - 1):
        layers += [torch.nn.Linear(width, width), torch.nn.Tanh()]
    network = torch.nn.Sequential(*layers, torch.nn.Linear(width, outputs))
    inner = (torch.rand(points, inputs) * 2 - 1).requires_grad_(True)
    boundary = torch.rand(512, inputs)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)

    def step():
        optimizer.zero_grad()
        loss = sum((r * r).mean() for r in residuals(case, network, inner)) + (network(boundary) ** 2).mean()
        loss.backward()
        optimizer.step()

    step()
    best, steps = float("inf"), 1
    for _ in range(REPETITIONS + 1):
        begin = time.perf_counter()
        for _ in range(steps):
            step()
        each = (time.perf_counter() - begin) / steps
        best, steps = min(best, each), max(1, int(SECONDS / each))
    return best


if __name__ == "__main__":
    torch.set_num_threads(2)
    for case in sys.argv[1].split(",") if len(sys.argv) > 1 else CASES:
        print(f"torch {case} eager {1e6 * seconds_a_step(case):.1f} us", flush=True)
