//! Tests in real namespaces: one binary, as each links the kernel libraries and both engines.

mod balancers;
mod captures;
mod cleanup;
mod dragonfly;
mod engines;
mod eqds;
mod failures;
mod flood;
mod flowcut;
mod folders;
mod host_dr;
mod libfabric;
mod live;
mod metrics;
mod ordered_chaos;
mod over_time;
mod perf;
mod privileges;
mod processes;
mod queues;
mod real_network;
mod receivers;
mod transfer;
mod tunnel;
mod udp;
mod up;
