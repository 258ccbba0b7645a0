//! `fi_getinfo`: matches the hints of an application with the capabilities of the provider.
#![expect(unsafe_code, reason = "structures of C's are read, and made in C's memory")]

use std::alloc::{Layout, handle_alloc_error};
use std::ffi::{CString, c_char, c_int, c_void};
use std::net::SocketAddr;

use crate::abi::*;
use crate::address::{self, Sockaddr};
use crate::call::{self, call_int};
use crate::engine::{MAX_RECEIVES, buffers, sending};
use crate::error::Errno;
use crate::interfaces::{self, Candidate, Filter};
use crate::log;
use crate::settings::Settings;

pub const FABRIC: &str = "spray";
/// Maximum message length of `fi_inject`.
pub const INJECT_BYTES: usize = 4096;
const CAPS: u64 =
    FI_MSG | FI_TAGGED | FI_SEND | FI_RECV | FI_MULTI_RECV | FI_RMA | REMOTE | COMM | FI_SOURCE | FI_DIRECTED_RECV;
/// Access to memory of peers, and by peers.
const REMOTE: u64 = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
/// Communication with other hosts, and with the endpoint itself.
const COMM: u64 = FI_LOCAL_COMM | FI_REMOTE_COMM;
/// Flags of sends and RMA. A send completes at the peer's endpoint, which satisfies every level.
pub const SEND_FLAGS: u64 = FI_COMPLETION
    | FI_INJECT
    | FI_INJECT_COMPLETE
    | FI_TRANSMIT_COMPLETE
    | FI_DELIVERY_COMPLETE
    | FI_MORE
    | FI_REMOTE_CQ_DATA;
pub const RECEIVE_FLAGS: u64 = FI_COMPLETION | FI_MORE | FI_MULTI_RECV;
/// Unsupported orders: later operations may be executed before a read. All others hold.
const BEHIND_READS: u64 = FI_ORDER_WAR | FI_ORDER_SAR | FI_ORDER_RMA_WAR;
/// The oldest version with structures of this length.
const OLDEST: u32 = fi_version(1, 5);

struct Hints<'a> {
    info: &'a fi_info,
    tx: Option<&'a fi_tx_attr>,
    rx: Option<&'a fi_rx_attr>,
    ep: Option<&'a fi_ep_attr>,
    domain: Option<&'a fi_domain_attr>,
    fabric: Option<&'a fi_fabric_attr>,
}

/// The attributes of the returned `fi_info`.
struct Granted {
    caps: u64,
    settings: Settings,
    source_port: u16,
    destination: Option<SocketAddr>,
    /// Progress models of control and data.
    progress: [u32; 2],
    av_type: u32,
    /// `FI_MR_BASIC` or `FI_MR_SCALABLE` if requested; else application keys and offsets.
    mr_mode: c_int,
    /// Threading model of the application. The provider is thread-safe in any case.
    threading: u32,
    tx_flags: u64,
    rx_flags: u64,
    order: u64,
}

pub(crate) unsafe extern "C" fn getinfo(
    version: u32,
    node: *const c_char,
    service: *const c_char,
    flags: u64,
    hints: *const fi_info,
    to: *mut *mut fi_info,
) -> c_int {
    call_int(|| {
        if to.is_null() || version < OLDEST {
            return Err(Errno::NO_DATA);
        }
        // SAFETY: libfabric passes strings, and the application's hints, which are valid during this call.
        let (node, service, hints) = unsafe { (call::text(node)?, call::text(service)?, Hints::read(hints)) };
        let named = (node.or(service)).map(|_| address::look_up(node, service)).transpose()?;
        let (filter, granted) = grant(hints.as_ref(), named, flags & FI_SOURCE != 0)?;
        let candidates = interfaces::find(&filter)?;
        let chain =
            candidates.iter().rev().fold(std::ptr::null_mut(), |next, candidate| info(&granted, candidate, next));
        if chain.is_null() {
            return Err(Errno::NO_DATA);
        }
        // SAFETY: libfabric passes a place for the result.
        unsafe { to.write(chain) };
        Ok(0)
    })
}

impl<'a> Hints<'a> {
    /// # Safety
    /// Unless null, `info` is a `fi_info` with pointers that are null or valid during the
    /// application's call.
    unsafe fn read(info: *const fi_info) -> Option<Self> {
        // SAFETY: as the caller promises.
        unsafe {
            let info = info.as_ref()?;
            Some(Self {
                info,
                tx: info.tx_attr.as_ref(),
                rx: info.rx_attr.as_ref(),
                ep: info.ep_attr.as_ref(),
                domain: info.domain_attr.as_ref(),
                fabric: info.fabric_attr.as_ref(),
            })
        }
    }

    /// Returns a hint that the provider does not support, if any.
    fn missing(&self, settings: &Settings) -> Option<String> {
        let mut wishes = self.info_wishes().into_iter().chain(self.attribute_wishes(settings));
        let (name, _, asked) = wishes.find(|(_, is_met, _)| !is_met)?;
        Some(format!("{name} {asked:#x}"))
    }

    /// Returns the name of each hint, whether it is supported, and its value.
    fn info_wishes(&self) -> Vec<(&'static str, bool, u64)> {
        let formats = [FI_FORMAT_UNSPEC, FI_SOCKADDR, FI_SOCKADDR_IN, FI_SOCKADDR_IN6];
        let format = self.info.addr_format;
        let mut wishes =
            vec![within("caps", self.info.caps, CAPS), ("addr_format", formats.contains(&format), format.into())];
        if let Some(domain) = self.domain {
            let is_vector = matches!(domain.av_type, FI_AV_UNSPEC | FI_AV_MAP | FI_AV_TABLE);
            wishes.push(within("domain_attr.caps", domain.caps, COMM));
            wishes.push(("domain_attr.av_type", is_vector, domain.av_type.into()));
            wishes.push(at_most("domain_attr.cq_data_size", domain.cq_data_size, 8));
        }
        wishes
    }

    fn attribute_wishes(&self, settings: &Settings) -> Vec<(&'static str, bool, u64)> {
        let mut wishes = Vec::new();
        if let Some(tx) = self.tx {
            wishes.push(within("tx_attr.caps", tx.caps, CAPS));
            wishes.push(within("tx_attr.op_flags", tx.op_flags, SEND_FLAGS));
            wishes.push(within("tx_attr.msg_order", tx.msg_order, !BEHIND_READS));
            wishes.push(within("tx_attr.comp_order", tx.comp_order, 0));
            wishes.push(at_most("tx_attr.inject_size", tx.inject_size, INJECT_BYTES));
            wishes.push(at_most("tx_attr.size", tx.size, sending::MAX_UNDELIVERED));
            wishes.push(at_most("tx_attr.iov_limit", tx.iov_limit, buffers::MAX_PIECES));
            wishes.push(at_most("tx_attr.rma_iov_limit", tx.rma_iov_limit, 1));
        }
        if let Some(rx) = self.rx {
            wishes.push(within("rx_attr.caps", rx.caps, CAPS));
            wishes.push(within("rx_attr.op_flags", rx.op_flags, RECEIVE_FLAGS));
            wishes.push(within("rx_attr.msg_order", rx.msg_order, !BEHIND_READS));
            wishes.push(within("rx_attr.comp_order", rx.comp_order, 0));
            wishes.push(at_most("rx_attr.size", rx.size, MAX_RECEIVES));
            wishes.push(at_most("rx_attr.iov_limit", rx.iov_limit, buffers::MAX_PIECES));
        }
        if let Some(ep) = self.ep {
            wishes.push(("ep_attr.type", matches!(ep.r#type, FI_EP_UNSPEC | FI_EP_RDM), ep.r#type.into()));
            wishes.push(("ep_attr.protocol", matches!(ep.protocol, 0 | FI_PROTO_SPRAY), ep.protocol.into()));
            wishes.push(at_most("ep_attr.max_msg_size", ep.max_msg_size, settings.max_message));
            wishes.push(at_most("ep_attr.tx_ctx_cnt", ep.tx_ctx_cnt, 1));
            wishes.push(at_most("ep_attr.rx_ctx_cnt", ep.rx_ctx_cnt, 1));
            wishes.push(at_most("ep_attr.auth_key_size", ep.auth_key_size, 0));
        }
        wishes
    }

    fn order(&self) -> u64 {
        self.tx.map_or(0, |tx| tx.msg_order) | self.rx.map_or(0, |rx| rx.msg_order)
    }

    /// Adds the requested interface and IP version to `filter`, with precedence for the environment.
    fn filter(&self, filter: Filter) -> Result<Filter, Errno> {
        let (domain, fabric) = (self.domain.map(|domain| domain.name), self.fabric.map(|fabric| fabric.name));
        let at = |name: Option<*mut c_char>| name.map_or(std::ptr::null(), <*mut c_char>::cast_const);
        // SAFETY: names are strings or null.
        let (domain, fabric) = unsafe { (call::text(at(domain))?, call::text(at(fabric))?) };
        let is_other = filter.name.as_deref().is_some_and(|own| domain.is_some_and(|domain| domain != own));
        if is_other || fabric.is_some_and(|fabric| fabric != FABRIC) {
            return Err(Errno::NO_DATA);
        }
        let is_v6 = match self.info.addr_format {
            FI_SOCKADDR_IN => Some(false),
            FI_SOCKADDR_IN6 => Some(true),
            _ => None,
        };
        Ok(Filter { name: domain.map(str::to_owned).or(filter.name), is_v6, ..filter })
    }

    fn address(&self, at: *const c_void, len: usize) -> Result<Option<SocketAddr>, Errno> {
        if at.is_null() || len < address::bytes(false) {
            return Ok(None);
        }
        // SAFETY: the application passes an address, with the length of its IP version.
        unsafe { address::read(at) }.map(Some)
    }
}

fn within(name: &'static str, asked: u64, has: u64) -> (&'static str, bool, u64) {
    (name, asked & !has == 0, asked)
}

fn at_most(name: &'static str, asked: usize, most: usize) -> (&'static str, bool, u64) {
    (name, asked <= most, asked as u64)
}

fn grant(hints: Option<&Hints<'_>>, named: Option<SocketAddr>, is_source: bool) -> Result<(Filter, Granted), Errno> {
    let settings = Settings::read()?;
    if let Some(missing) = hints.and_then(|hints| hints.missing(&settings)) {
        log::info(format!("unsupported hints of the application: {missing}"));
        return Err(Errno::NO_DATA);
    }
    let (mut source, mut destination) = if is_source { (named, None) } else { (None, named) };
    let mut filter = Filter { name: settings.interface.clone(), ..Filter::default() };
    if let Some(hints) = hints {
        source = source.or(hints.address(hints.info.src_addr, hints.info.src_addrlen)?);
        destination = destination.or(hints.address(hints.info.dest_addr, hints.info.dest_addrlen)?);
        filter = hints.filter(filter)?;
    }
    // An address without a host only selects the port.
    filter.source = source.map(|source| source.ip()).filter(|source| !source.is_unspecified());
    destination = destination.filter(|destination| !destination.ip().is_unspecified());
    filter.destination = destination.map(|destination| destination.ip());
    let source_port = source.map(|source| source.port()).filter(|&port| port != 0);
    Ok((filter, Granted::new(hints, settings, source_port.unwrap_or(spray_nic::Ports::DEFAULT.first()), destination)))
}

impl Granted {
    fn new(hints: Option<&Hints<'_>>, settings: Settings, source_port: u16, destination: Option<SocketAddr>) -> Self {
        let domain = hints.and_then(|hints| hints.domain);
        let av_type = domain.map(|domain| domain.av_type).filter(|&kind| kind != FI_AV_UNSPEC);
        Self {
            caps: caps(hints.map_or(0, |hints| hints.info.caps)),
            settings,
            source_port,
            destination,
            progress: domain
                .map_or([0; 2], |domain| [domain.control_progress, domain.data_progress])
                .map(|asked| if asked == FI_PROGRESS_MANUAL { asked } else { FI_PROGRESS_AUTO }),
            av_type: av_type.unwrap_or(FI_AV_TABLE),
            threading: domain.map(|domain| domain.threading).filter(|&model| model != 0).unwrap_or(FI_THREAD_SAFE),
            mr_mode: domain.map_or(0, |domain| domain.mr_mode & (FI_MR_BASIC | FI_MR_SCALABLE)),
            tx_flags: hints.and_then(|hints| hints.tx).map_or(0, |tx| tx.op_flags),
            rx_flags: hints.and_then(|hints| hints.rx).map_or(0, |rx| rx.op_flags),
            order: hints.map_or(0, Hints::order) | FI_ORDER_SAS,
        }
    }
}

/// Completes the requested capabilities; returns all if none are requested.
fn caps(asked: u64) -> u64 {
    let (kinds, directions) = (FI_MSG | FI_RMA | FI_TAGGED, FI_SEND | FI_RECV);
    let or = |all: u64| if asked & all == 0 { all } else { 0 };
    let remote = if (asked | or(kinds)) & FI_RMA != 0 { or(REMOTE) } else { 0 };
    if asked == 0 { CAPS } else { asked | or(kinds) | or(directions) | remote | COMM }
}

/// Creates a `fi_info`. libfabric frees it, so it must come from `calloc` and `strdup`.
fn info(granted: &Granted, candidate: &Candidate, next: *mut fi_info) -> *mut fi_info {
    let own = SocketAddr::new(candidate.address, granted.source_port);
    let peer = granted.destination;
    // SAFETY: all zeros are a valid value.
    let fabric = fi_fabric_attr { name: string(FABRIC), ..unsafe { std::mem::zeroed() } };
    place(fi_info {
        next,
        caps: granted.caps,
        addr_format: address::format(own.is_ipv6()),
        src_addrlen: address::bytes(own.is_ipv6()),
        dest_addrlen: peer.map_or(0, |peer| address::bytes(peer.is_ipv6())),
        src_addr: place(Sockaddr::new(own)).cast(),
        dest_addr: peer.map_or(std::ptr::null_mut(), |peer| place(Sockaddr::new(peer)).cast()),
        tx_attr: place(tx_attr(granted)),
        rx_attr: place(rx_attr(granted)),
        ep_attr: place(ep_attr(granted)),
        domain_attr: place(domain_attr(granted, &candidate.name)),
        fabric_attr: place(fabric),
        // SAFETY: all zeros are a valid value.
        ..unsafe { std::mem::zeroed() }
    })
}

fn tx_attr(granted: &Granted) -> fi_tx_attr {
    fi_tx_attr {
        caps: granted.caps & (FI_MSG | FI_RMA | FI_TAGGED | FI_SEND | FI_READ | FI_WRITE),
        op_flags: granted.tx_flags,
        msg_order: granted.order,
        inject_size: INJECT_BYTES.min(granted.settings.max_message),
        size: sending::MAX_UNDELIVERED,
        iov_limit: buffers::MAX_PIECES,
        rma_iov_limit: 1,
        // SAFETY: all zeros are a valid value.
        ..unsafe { std::mem::zeroed() }
    }
}

fn rx_attr(granted: &Granted) -> fi_rx_attr {
    fi_rx_attr {
        caps: granted.caps & !(FI_SEND | FI_READ | FI_WRITE | COMM),
        op_flags: granted.rx_flags,
        msg_order: granted.order,
        size: MAX_RECEIVES,
        iov_limit: buffers::MAX_PIECES,
        // SAFETY: all zeros are a valid value.
        ..unsafe { std::mem::zeroed() }
    }
}

fn ep_attr(granted: &Granted) -> fi_ep_attr {
    fi_ep_attr {
        r#type: FI_EP_RDM,
        protocol: FI_PROTO_SPRAY,
        protocol_version: 1,
        max_msg_size: granted.settings.max_message,
        max_order_raw_size: granted.settings.max_message,
        max_order_waw_size: granted.settings.max_message,
        mem_tag_format: FI_TAG_GENERIC,
        tx_ctx_cnt: 1,
        rx_ctx_cnt: 1,
        // SAFETY: all zeros are a valid value.
        ..unsafe { std::mem::zeroed() }
    }
}

fn domain_attr(granted: &Granted, interface: &str) -> fi_domain_attr {
    let [control_progress, data_progress] = granted.progress;
    fi_domain_attr {
        name: string(interface),
        threading: granted.threading,
        control_progress,
        data_progress,
        resource_mgmt: FI_RM_ENABLED,
        av_type: granted.av_type,
        mr_mode: granted.mr_mode,
        mr_key_size: 8,
        cq_data_size: 8,
        cq_cnt: 1024,
        ep_cnt: 1,
        tx_ctx_cnt: 1,
        rx_ctx_cnt: 1,
        max_ep_tx_ctx: 1,
        max_ep_rx_ctx: 1,
        cntr_cnt: 1024,
        mr_iov_limit: buffers::MAX_PIECES,
        caps: COMM,
        mr_cnt: 65_536,
        // SAFETY: all zeros are a valid value.
        ..unsafe { std::mem::zeroed() }
    }
}

/// libfabric copies the fields of its own version, which may have more, with default 0.
const LATER_FIELDS: usize = 256;

/// Moves a value into memory from `calloc`.
fn place<T>(value: T) -> *mut T {
    let layout = Layout::new::<T>();
    // SAFETY: `calloc` takes any size; its result is null, or large enough and aligned for any C type.
    unsafe {
        let at = libc::calloc(1, layout.size() + LATER_FIELDS).cast::<T>();
        if at.is_null() {
            handle_alloc_error(layout);
        }
        at.write(value);
        at
    }
}

/// Copies a text with `strdup`; returns null if it contains a zero.
fn string(text: &str) -> *mut c_char {
    // SAFETY: a `CString` ends with a zero.
    CString::new(text).map_or(std::ptr::null_mut(), |text| unsafe { libc::strdup(text.as_ptr()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_and_region_modes_are_those_of_the_hints() {
        // SAFETY: all-zero bytes are valid values of these types.
        let (info, mut domain): (fi_info, fi_domain_attr) = unsafe { std::mem::zeroed() };
        (domain.mr_mode, domain.control_progress) = (FI_MR_SCALABLE, FI_PROGRESS_MANUAL);
        let hints = Hints { info: &info, tx: None, rx: None, ep: None, domain: Some(&domain), fabric: None };
        let granted = Granted::new(Some(&hints), Settings::read().expect("the defaults"), 1, None);
        assert_eq!((granted.mr_mode, granted.progress), (FI_MR_SCALABLE, [FI_PROGRESS_MANUAL, FI_PROGRESS_AUTO]));
    }
}
