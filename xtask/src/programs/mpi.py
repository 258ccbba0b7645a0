"""Sends 8 bytes, 64 KiB and 1 MiB between two ranks and sums 1 MiB over all, with the data checked; a figure a line."""

import sys
from array import array

from mpi4py import MPI

world = MPI.COMM_WORLD
me, ranks = world.rank, world.size


def say(text):
    if me == 0:
        print(text, flush=True)


def timed(rounds, work):
    world.Barrier()
    begun = MPI.Wtime()
    for _ in range(rounds):
        work()
    return (MPI.Wtime() - begun) / rounds


def exchange(there, back):
    if me == 0:
        world.Send(there, 1)
        world.Recv(back, 1)
    elif me == 1:
        world.Recv(back, 0)
        world.Send(there, 0)


assert world.sendrecv(me, dest=me, source=me) == me, "a message to itself"
for size in (8, 65_536, 1 << 20):
    there, back = bytearray([me + 1]) * size, bytearray(size)
    seconds = timed(100 if size < 65_536 else 20, lambda: exchange(there, back)) / 2
    assert me > 1 or back == bytearray([2 - me]) * size, "the other rank's bytes"
    say(f"{seconds * 1e6:.0f} us" if size == 8 else f"{size * 8 / seconds / 1e6:.0f} Mb/s")
own, total = array("i", [me]) * (1 << 18), array("i", [0]) * (1 << 18)
seconds = timed(5, lambda: world.Allreduce(own, total))
assert total == array("i", [ranks * (ranks - 1) // 2]) * len(total), "the sum"
say(f"{seconds * 1e3:.1f} ms")

# One-sided: each writes into the next rank's memory, reads from the one before, and adds to rank 0's.
memory = array("q", [me] * 1_000)
try:
    window = MPI.Win.Create(memory, disp_unit=8, comm=world)
except MPI.Exception:
    say("no window")
    sys.exit()
after, before = (me + 1) % ranks, (me - 1) % ranks
put, got = array("q", [100 + me] * 10), array("q", [0] * 10)
window.Fence()
window.Put([put, MPI.INT64_T], after, target=(500, 10, MPI.INT64_T))
window.Get([got, MPI.INT64_T], before, target=(0, 10, MPI.INT64_T))
window.Accumulate([array("q", [1]), MPI.INT64_T], 0, target=(999, 1, MPI.INT64_T))
window.Fence()
assert got == array("q", [before] * 10), "what was read"
assert memory[500:510] == array("q", [100 + before] * 10), "what was written"
assert me != 0 or memory[999] == ranks, "what was added up"
window.Free()
say("window")
