//! Switches on a Linux machine: XDP programs on veth pairs or interfaces. Needs root.
//!
//! [`Deployment`] forwards any traffic in real time. [`program`] loads programs, [`sites`] creates
//! namespaces, [`leftovers`] and [`clean`] find and remove leftovers of killed processes.

mod cleanup;
mod deployment;
mod error;
mod frame;
pub mod links;
pub mod netns;
pub mod program;
mod registry;
pub mod sites;
mod spec;

pub use cleanup::{clean, leftovers};
pub use deployment::{
    Between, Cable, CableState, DeployedHost, DeployedLink, Deployment, Event, GivenPort, HostLocation, LinkNews, Order,
};
pub use error::RunError;
pub use frame::{data_frame, data_header_bytes};
pub use registry::{answer, control, deployed, prefix};
pub use sites::{Lent, MAX_CABLES, check_root};
pub use spec::FabricSpec;
pub use spray_pipeline::impairment::Impairment;
