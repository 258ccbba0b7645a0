//! The part of libfabric's C interface that this provider needs, as of version 1.17. Written by
//! hand, so that the build needs no libfabric package; a test compares it with the headers.

#![allow(non_camel_case_types, reason = "the names of libfabric's headers")]
#![allow(missing_docs, reason = "libfabric's manual pages describe each structure and field")]

mod attributes;
mod objects;
mod transfers;

#[cfg(test)]
mod tests;

pub use attributes::*;
pub use objects::*;
pub use transfers::*;

/// A peer, by its index in an address vector.
pub type fi_addr_t = u64;
pub const FI_ADDR_NOTAVAIL: fi_addr_t = u64::MAX;

pub const fn fi_version(major: u32, minor: u32) -> u32 {
    major << 16 | minor
}

pub const FI_MSG: u64 = 1 << 1;
pub const FI_RMA: u64 = 1 << 2;
pub const FI_TAGGED: u64 = 1 << 3;
pub const FI_READ: u64 = 1 << 8;
pub const FI_WRITE: u64 = 1 << 9;
pub const FI_RECV: u64 = 1 << 10;
pub const FI_SEND: u64 = 1 << 11;
pub const FI_REMOTE_READ: u64 = 1 << 12;
pub const FI_REMOTE_WRITE: u64 = 1 << 13;
pub const FI_MULTI_RECV: u64 = 1 << 16;
pub const FI_REMOTE_CQ_DATA: u64 = 1 << 17;
pub const FI_MORE: u64 = 1 << 18;
pub const FI_PEEK: u64 = 1 << 19;
pub const FI_COMPLETION: u64 = 1 << 24;
pub const FI_INJECT: u64 = 1 << 25;
pub const FI_INJECT_COMPLETE: u64 = 1 << 26;
pub const FI_TRANSMIT_COMPLETE: u64 = 1 << 27;
pub const FI_DELIVERY_COMPLETE: u64 = 1 << 28;
pub const FI_LOCAL_COMM: u64 = 1 << 51;
pub const FI_REMOTE_COMM: u64 = 1 << 52;
pub const FI_SOURCE: u64 = 1 << 57;
pub const FI_DIRECTED_RECV: u64 = 1 << 59;
/// For `fi_ep_bind`.
pub const FI_SELECTIVE_COMPLETION: u64 = 1 << 59;
/// For `fi_trecvmsg`.
pub const FI_CLAIM: u64 = 1 << 59;
/// For `fi_trecvmsg`.
pub const FI_DISCARD: u64 = 1 << 58;
/// For `fi_av_insert`.
pub const FI_SYNC_ERR: u64 = 1 << 58;

pub const FI_FORMAT_UNSPEC: u32 = 0;
pub const FI_SOCKADDR: u32 = 1;
pub const FI_SOCKADDR_IN: u32 = 2;
pub const FI_SOCKADDR_IN6: u32 = 3;

pub const FI_AV_UNSPEC: u32 = 0;
pub const FI_AV_MAP: u32 = 1;
pub const FI_AV_TABLE: u32 = 2;

pub const FI_PROGRESS_AUTO: u32 = 1;
pub const FI_PROGRESS_MANUAL: u32 = 2;
pub const FI_THREAD_SAFE: u32 = 1;
pub const FI_RM_ENABLED: u32 = 2;

pub const FI_MR_BASIC: i32 = 1;
pub const FI_MR_SCALABLE: i32 = 2;
pub const FI_MR_VIRT_ADDR: i32 = 1 << 4;
pub const FI_MR_PROV_KEY: i32 = 1 << 6;

pub const FI_ORDER_WAR: u64 = 1 << 3;
pub const FI_ORDER_SAR: u64 = 1 << 6;
pub const FI_ORDER_SAS: u64 = 1 << 8;
pub const FI_ORDER_RMA_WAR: u64 = 1 << 34;
pub const FI_EP_UNSPEC: u32 = 0;
pub const FI_EP_RDM: u32 = 3;
/// A protocol without a number in libfabric.
pub const FI_PROTO_SPRAY: u32 = 1 << 31 | 61_440;
pub const FI_TAG_GENERIC: u64 = 0xaaaa_aaaa_aaaa_aaaa;

pub const FI_CLASS_FABRIC: usize = 1;
pub const FI_CLASS_DOMAIN: usize = 2;
pub const FI_CLASS_EP: usize = 3;
pub const FI_CLASS_AV: usize = 11;
pub const FI_CLASS_MR: usize = 12;
pub const FI_CLASS_EQ: usize = 13;
pub const FI_CLASS_CQ: usize = 14;
pub const FI_CLASS_CNTR: usize = 15;

/// Arguments of `fi_setopt`: the level, and the minimum free space of a multi-receive buffer.
pub const FI_OPT_ENDPOINT: i32 = 0;
pub const FI_OPT_MIN_MULTI_RECV: i32 = 0;

/// A command of `fi_control`.
pub const FI_ENABLE: i32 = 6;

pub const FI_WAIT_NONE: u32 = 0;
pub const FI_WAIT_UNSPEC: u32 = 1;
pub const FI_WAIT_YIELD: u32 = 5;

pub const FI_CQ_FORMAT_UNSPEC: u32 = 0;
pub const FI_CQ_FORMAT_CONTEXT: u32 = 1;
pub const FI_CQ_FORMAT_MSG: u32 = 2;
pub const FI_CQ_FORMAT_DATA: u32 = 3;
pub const FI_CQ_FORMAT_TAGGED: u32 = 4;

/// libfabric's error numbers beyond those of the operating system.
pub const FI_EOTHER: i32 = 256;
pub const FI_ETOOSMALL: i32 = 257;
pub const FI_EOPBADSTATE: i32 = 258;
pub const FI_EAVAIL: i32 = 259;
pub const FI_EBADFLAGS: i32 = 260;
pub const FI_ENOCQ: i32 = 263;
pub const FI_ETRUNC: i32 = 265;
pub const FI_ENOKEY: i32 = 266;
