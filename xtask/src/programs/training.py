"""A training job of PyTorch: data parallel, an all-reduce of 4 MB a step. Rank 0 says when each step ended."""

import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
model = DistributedDataParallel(torch.nn.Linear(1000, 1000))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
inputs = torch.randn(4, 1000)
until = time.time() + float(sys.argv[1])
last = torch.zeros(1)
while last.item() == 0:
    optimizer.zero_grad()
    model(inputs).pow(2).mean().backward()
    optimizer.step()
    if dist.get_rank() == 0:
        print(f"step {time.time():.3f}", flush=True)
        last[0] = time.time() > until
    dist.broadcast(last, 0)
same = model.module.weight.detach().sum().reshape(1)
sums = [torch.zeros(1) for _ in range(dist.get_world_size())]
dist.all_gather(sums, same)
assert all(torch.equal(other, sums[0]) for other in sums), "the ranks' models differ"
