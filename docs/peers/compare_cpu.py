"""Times the six cases of configs/bench on the CPU: pinn-bench, PyTorch and JAX in turn, several rounds, the best of each counts.

    taskset -c 0,1 python compare_cpu.py PINN_BENCH [ROUNDS]

One program runs at a time; what it may use is what taskset leaves (torch_cpu.py wants two cores). Prints microseconds a step, the ratio to
the faster of the two peers, the share of the machine's product rate that pinn-bench states, and the geometric mean of the ratios.
"""
import math
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
CASES = ["burgers_s", "burgers", "allen_cahn", "ns3", "ks4", "poisson10"]


def run(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout


def ours(bench, case):
    """Microseconds a step and the percentage of the product peak."""
    table = run(bench, "-e", "cpu", "-r", "7", str(HERE.parents[1] / "configs" / "bench" / f"{case}.toml")).splitlines()
    word = next(line for line in table if not line.startswith("#")).split()
    return float(word[3]), float(word[word.index("%") - 1])


def peer(program, case):
    """{variant: microseconds a step}"""
    words = [line.split() for line in run(sys.executable, str(HERE / program), case).splitlines()]
    return {f"{w[0]} {w[2]}": float(w[3]) for w in words}


def main(bench, rounds):
    fastest = {case: {} for case in CASES}
    share = dict.fromkeys(CASES, 0.0)
    for _ in range(rounds):
        for case in CASES:
            step, percent = ours(bench, case)
            if step < fastest[case].get("ours", math.inf):
                share[case] = percent
            for name, time in {"ours": step, **peer("torch_cpu.py", case), **peer("jax_cpu.py", case)}.items():
                fastest[case][name] = min(time, fastest[case].get(name, math.inf))
    logs = []
    print(f"{'case':12}{'ours':>10}{'torch':>10}{'jax':>10}{'ratio':>8}{'of peak':>9}  fastest peer")
    for case, time in fastest.items():
        best = {name: min((t, v) for v, t in time.items() if v.startswith(name)) for name in ("torch", "jax")}
        ratio, variant = min(best.values())[0] / time["ours"], min(best.values())[1]
        logs.append(math.log(ratio))
        print(f"{case:12}{time['ours']:10.0f}{best['torch'][0]:10.0f}{best['jax'][0]:10.0f}{ratio:8.2f}{share[case]:7.0f} %  {variant}")
    print(f"geometric mean of the ratios {math.exp(sum(logs) / len(logs)):.2f}")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 3)
