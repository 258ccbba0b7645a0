"""Steps a second over time of the jobs that `training.sh` ran, as lines of result and, with a file's name, as a picture."""

import sys

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt

PHASES = [
    ("healthy", 0, 10),
    ("one uplink at a\nquarter of its rate", 10, 20),
    ("healthy", 20, 30),
    ("it drops everything,\nsilently", 30, 40),
    ("healthy", 40, 50),
]
NAMES = {"tcp": "TCP, one path a connection", "tunnel": "TCP through spray tunnel"}
BIN = 2


def rate(times, begin, end):
    return sum(begin <= at < end for at in times) / (end - begin)


plt.rcParams.update({"svg.hashsalt": "spray", "font.family": "sans-serif", "svg.fonttype": "none"})
figure, axes = plt.subplots(figsize=(8, 3.2))
for line in open("began.txt"):
    by, began = line.split()
    times = [float(step.split()[1]) - float(began) for step in open(f"{by}-0.txt") if step.startswith("step")]
    phases = [f"{' '.join(name.split())} {rate(times, begin, end):.1f}" for name, begin, end in PHASES]
    longest = max(later - earlier for earlier, later in zip(times, times[1:]))
    print(f"result: {sys.argv[1]} hosts, {NAMES[by]}: steps a second: {', '.join(phases)}; longest wait for a step {longest:.1f} s")
    bins = range(0, PHASES[-1][2], BIN)
    axes.stairs([rate(times, at, at + BIN) for at in bins], [*bins, bins[-1] + BIN], label=NAMES[by], linewidth=2)
for name, begin, end in PHASES:
    if name != "healthy":
        axes.axvspan(begin, end, color="0.92", zorder=0)
        axes.text((begin + end) / 2, 0.02, name, ha="center", va="bottom", fontsize=8, transform=axes.get_xaxis_transform())
axes.set(xlabel="time, s", ylabel="training steps a second", xlim=(0, PHASES[-1][2]), ylim=(0, None))
axes.legend(loc="upper right", frameon=False, fontsize=8)
axes.spines[["top", "right"]].set_visible(False)
figure.tight_layout()
if len(sys.argv) > 2:
    figure.savefig(sys.argv[2], metadata={"Date": None})
