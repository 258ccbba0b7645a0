//! Tests in real namespaces: one binary, as each links the kernel libraries and both engines.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test")]

mod balancers;
mod captures;
mod changes;
mod chaos;
mod cleanup;
mod clocks;
mod dragonfly;
mod engines;
mod eqds;
mod failures;
mod flood;
mod flowcut;
mod folders;
mod host_dr;
mod interfaces;
mod killed_set_up;
mod libfabric;
mod live;
mod metrics;
mod ordered_chaos;
mod over_time;
mod paths;
mod perf;
mod privileges;
mod processes;
mod queues;
mod real_network;
mod receivers;
mod switch;
mod switch_as_run;
mod switch_boxes;
mod transfer;
mod tunnel;
mod udp;
mod up;
