//! Switches on a Linux machine: XDP programs on veth pairs or interfaces. Needs root.
//!
//! [`Deployment`] forwards any traffic in real time. [`program`] loads programs, [`netns_nodes`]
//! creates namespaces, [`leftovers`] and [`clean`] find and remove leftovers of killed processes.

mod cleanup;
mod deployment;
mod error;
mod frame;
pub mod links;
pub mod netns;
pub mod netns_nodes;
pub mod program;
mod registry;
mod spec;

pub use cleanup::{clean, leftovers};
pub use deployment::{
    CableState, DeployedHost, DeployedLink, Deployment, ExternalInterfaces, HostLocation, LinkLogEntry, LinkLogEvent,
    LinkSetting, PortSpec, RemoteCable,
};
pub use error::RunError;
pub use frame::{data_frame, data_header_bytes};
pub use netns_nodes::{ExternalNetns, MAX_CABLES, check_root};
pub use registry::{bind_control_socket, control_socket, deployed, prefix};
pub use spec::FabricSpec;
pub use spray_pipeline::impairment::Impairment;
