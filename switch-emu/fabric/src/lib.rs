//! Topologies: hosts, switches and links, from counts, from a graph or from a `.topo` file.
//!
//! Engines start from a [`Network`]. [`compile`] turns it, with queues and timed link events, into
//! the [`Fabric`] that switch programs and simulator run.

mod cables;
mod compile;
mod dragonfly;
mod ev_life;
mod ev_paths;
mod event;
mod fabric;
mod failures;
mod fastest_paths;
mod fat_tree;
mod file_error;
mod flows;
mod host_link;
mod layers;
mod leaf_spine;
pub mod limits;
mod names;
mod network;
mod node;
mod outcome;
mod route_table;
mod routes;
mod salt;
mod switching;
mod tables;
mod tie_breaker;
mod tiers;
mod time_series;
mod topo_file;

pub use cables::Cables;
pub use compile::{
    CompileError, address, check_rates, compile, host_ports, mac, ports, preload, reroute, switch_addresses,
};
pub use dragonfly::Dragonfly;
pub use ev_life::{BANDS, BINS, EvLife, EvRecorder, WATCHED};
pub use ev_paths::{EvPaths, addresses, flow_key};
pub use event::{LinkAction, LinkEvent, changes, epoch_starts, known_down};
pub use fabric::{
    DropEvery, Fabric, FabricHost, Flap, LinkChange, LinkState, MAX_CHANGES, MAX_EPOCHS, MAX_IP_BYTES, MAX_RATE_BPS,
    MIN_RATE_BPS, MIN_RATE_PPM, Port, RouteEpoch, Thresholds,
};
pub use failures::{DeviceKind, DrawError, FailureContext, FailureCount, FailureFile, FailureTarget, RandomFailure};
pub use fastest_paths::FastestPaths;
pub use fat_tree::FatTree;
pub use file_error::FileError;
pub use flows::{
    Action, FlowError, FlowScheduler, FlowSpec, Start, Trigger, TriggerKind, check_flows, first_flows, share_out,
};
pub use host_link::HostLink;
pub use leaf_spine::LeafSpine;
pub use names::{LinkPattern, globs};
pub use network::{Link, Network, NetworkError, NetworkSwitch};
pub use node::Node;
pub use outcome::{FlowOutcome, PortOutcome, Progress};
pub use route_table::RouteTable;
pub use routes::{ShortestPaths, groups, hops};
pub use salt::{mix, salt};
pub use spray_pipeline::bins::{Bin, BinScale};
pub use spray_pipeline::counters::{ChassisCounters, PortCounters};
pub use spray_pipeline::flow_hash::{FlowHash, HashFields, HashFunction, HashSeed};
pub use switching::{Groups, Scheme, Switching, SwitchingError, conweave, reunion};
pub use tables::{ChassisSpec, DEFAULT_FRAME_BYTES, Tables, TablesError};
pub use tie_breaker::TieBreaker;
pub use tiers::Tiers;
pub use time_series::{DeliverySeries, PortBins, PortSamples, delivered};
pub use topo_file::{TopoFile, TopoTier};

#[cfg(test)]
mod tests;
