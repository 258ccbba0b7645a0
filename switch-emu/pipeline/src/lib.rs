//! The emulated switch: parse, route, queue, mark, trim, fail. no_std, shared by the XDP program and the simulator.
#![no_std]
