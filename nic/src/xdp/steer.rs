//! Redirects spray frames for this host to the AF_XDP socket of their queue, others to the kernel.

use std::collections::HashMap;
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use libbpf_rs::{MapCore, MapFlags, MapHandle, Object, libbpf_sys::BPF_F_XDP_HAS_FRAGS};
use spray_wire::Ports;
use spray_wire::switch_view::addressee;

use super::ProgramError;
use super::object::{self, AttachMode, Attachment};

/// The steering program; dropping it detaches it. Map operations fail with [`ProgramError::Map`].
#[derive(Debug)]
pub struct SteerProgram {
    object: Object,
    maps: HashMap<&'static str, MapHandle>,
    attached: Vec<Attachment>,
}

impl SteerProgram {
    /// The maximum number of receive queues of an interface.
    pub const QUEUES: u32 = 64;

    /// The maximum number of IP addresses of an interface.
    pub const ADDRESSES: usize = 4;

    /// Name in the kernel.
    pub const NAME: &str = "steer";

    /// Object file from the repository.
    pub const OBJECT: &[u8] = include_bytes!("../../bpf/steer.o");

    /// Loads the program for an interface with this Ethernet address, these IP addresses and ports,
    /// without attaching it. Other frames go to the kernel.
    ///
    /// # Errors
    /// The kernel refuses it, or there are more than [`SteerProgram::ADDRESSES`].
    pub fn load(mac: [u8; 6], addresses: &[IpAddr], ports: Ports) -> Result<Self, ProgramError> {
        Self::with_flags(0, mac, addresses, ports)
    }

    /// Loads the program and attaches it to an interface of the calling thread's namespace, as
    /// [`attach`](super::attach). If the driver refuses the program, attaches it with support for
    /// frames of several buffers (Linux 5.18), which a long MTU requires.
    ///
    /// # Errors
    /// The kernel refuses it, or there are more than [`SteerProgram::ADDRESSES`].
    pub fn load_on(ifindex: u32, mac: [u8; 6], addresses: &[IpAddr], ports: Ports) -> Result<Self, ProgramError> {
        let mut steer = Self::load(mac, addresses, ports)?;
        if steer.attach(ifindex)? == AttachMode::Native {
            return Ok(steer);
        }
        let Ok(mut fragmented) = Self::with_flags(BPF_F_XDP_HAS_FRAGS, mac, addresses, ports) else { return Ok(steer) };
        // Native and generic mode exclude each other.
        steer.detach();
        fragmented.attach(ifindex)?;
        Ok(fragmented)
    }

    fn with_flags(flags: u32, mac: [u8; 6], addresses: &[IpAddr], ports: Ports) -> Result<Self, ProgramError> {
        if addresses.len() > Self::ADDRESSES {
            return Err(ProgramError::Addresses { requested: addresses.len(), max: Self::ADDRESSES });
        }
        let object = object::load::<ProgramError>(Self::NAME, Self::OBJECT, |open| {
            open.progs_mut().for_each(|mut program| program.set_flags(flags));
            Ok(())
        })?;
        let maps = ["own", "sockets", "strays"].into_iter().map(|name| Ok((name, map_of(&object, name)?)));
        let maps = maps.collect::<Result<HashMap<_, _>, ProgramError>>()?;
        let this = Self { object, maps, attached: Vec::new() };
        this.set_own(mac, addresses, ports)?;
        Ok(this)
    }

    /// Sets Ethernet address, IP addresses (at most [`SteerProgram::ADDRESSES`]) and ports.
    pub fn set_own(&self, mac: [u8; 6], addresses: &[IpAddr], ports: Ports) -> Result<(), ProgramError> {
        let mut own = [[0; 3]; Self::ADDRESSES];
        for (place, address) in own.iter_mut().zip(addresses) {
            *place = addressee(mac, v6_mapped(*address), ports);
        }
        let words: Vec<u8> = own.as_flattened().iter().flat_map(|word| word.to_ne_bytes()).collect();
        self.put("own", 0, &words)
    }

    /// Attaches it to an interface of the calling thread's namespace, as [`attach`](super::attach).
    pub fn attach(&mut self, ifindex: u32) -> Result<AttachMode, ProgramError> {
        let attached = object::attach(object::program(&self.object, Self::NAME)?.as_fd(), ifindex)?;
        let mode = attached.mode;
        self.attached.push(attached);
        Ok(mode)
    }

    /// Detaches it from all interfaces.
    pub fn detach(&mut self) {
        self.attached.clear();
    }

    /// Returns whether it was attached, and still is to all those interfaces.
    pub fn is_attached(&self) -> bool {
        !self.attached.is_empty() && self.attached.iter().all(Attachment::is_attached)
    }

    /// Returns how it is attached to the last interface; `None` if it is not.
    pub fn mode(&self) -> Option<AttachMode> {
        self.attached.last().map(|attached| attached.mode)
    }

    /// Returns why the driver of the last interface refused native mode; `None` if it did not.
    pub fn native_error(&self) -> Option<&str> {
        self.attached.last()?.native_error.as_deref()
    }

    /// Redirects frames of a receive queue to an AF_XDP socket bound to that queue.
    ///
    /// # Errors
    /// [`ProgramError::Map`] if the queue is out of range or the descriptor is not such a socket.
    pub fn register(&self, queue: u32, socket: BorrowedFd<'_>) -> Result<(), ProgramError> {
        self.put("sockets", queue, &(socket.as_raw_fd() as u32).to_ne_bytes())
    }

    /// Returns the number of spray frames lost to the kernel from queues without a socket.
    pub fn frames_without_socket(&self) -> Result<u64, ProgramError> {
        let counts = self.maps["strays"].lookup_percpu(&0u32.to_ne_bytes(), MapFlags::ANY);
        let counts = counts.map_err(ProgramError::map("strays"))?.unwrap_or_default();
        let count = |bytes: &Vec<u8>| bytes.first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes));
        Ok(counts.iter().map(count).sum())
    }

    fn put(&self, map: &'static str, key: u32, value: &[u8]) -> Result<(), ProgramError> {
        self.maps[map].update(&key.to_ne_bytes(), value, MapFlags::ANY).map_err(ProgramError::map(map))
    }
}

fn map_of(object: &Object, name: &str) -> Result<MapHandle, ProgramError> {
    let map = object.maps().find(|map| map.name() == name).ok_or_else(|| ProgramError::NoMap(name.into()))?;
    MapHandle::try_from(&map).map_err(ProgramError::map(name))
}

/// Returns an address as programs compare it: IPv4 mapped into IPv6.
pub fn v6_mapped(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

#[cfg(test)]
mod tests {
    use libbpf_rs::ProgramInput;
    use spray_wire::{Body, Common, Data, Ecn, Envelope, Ev, Kind, MAX_EVS};

    use super::*;

    impl SteerProgram {
        /// Returns whether the program redirects `frame`. Without sockets it counts the frame and
        /// passes it to the kernel.
        fn takes(&self, frame: &[u8]) -> bool {
            let before = self.frames_without_socket().unwrap();
            let program = self.object.progs_mut().find(|program| program.name() == "steer").unwrap();
            program.test_run(ProgramInput { data_in: Some(frame), ..Default::default() }).unwrap();
            self.frames_without_socket().unwrap() > before
        }
    }

    const MACS: [[u8; 6]; 2] = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]];

    fn address(host: u8, v6: bool) -> IpAddr {
        if v6 { [0xfd00, 0, 0, 0, 0, 0, 0, host.into()].into() } else { [10, 0, 0, host].into() }
    }

    fn frame_to(dst_mac: [u8; 6], dst: IpAddr) -> Vec<u8> {
        let envelope = Envelope {
            src_mac: [2, 0, 0, 0, 0, 9],
            dst_mac,
            src: address(9, dst.is_ipv6()),
            dst,
            src_port: Ev::new(0).port(MAX_EVS),
            dst_port: spray_wire::Ports::DEFAULT.first(),
            dscp: spray_wire::DSCP_DATA,
            ecn: Ecn::Ect0,
            ttl: spray_wire::INITIAL_TTL,
        };
        let data = Data { message_bytes: 100, payload_bytes: 100, ..Data::default() };
        let mut frame = vec![0; spray_wire::header_bytes(dst.is_ipv6(), Kind::Data) + 100];
        spray_wire::emit(&mut frame, &envelope, &Common::default(), &Body::Data(data), &[0x5a; 100]).unwrap();
        frame
    }

    #[test]
    fn only_frames_to_this_host_are_redirected() {
        if !spray_test_support::has_root() {
            return;
        }
        let own = [address(1, false), address(1, true)];
        let steer = SteerProgram::load(MACS[0], &own, Ports::DEFAULT).unwrap();
        assert!(own.iter().all(|own| steer.takes(&frame_to(MACS[0], *own))));
        for v6 in [false, true] {
            assert!(!steer.takes(&frame_to(MACS[1], address(2, v6))), "to another host");
            assert!(!steer.takes(&frame_to(MACS[0], address(2, v6))), "this host is a router on the way");
            assert!(!steer.takes(&frame_to(MACS[1], address(1, v6))), "the interface is promiscuous");
        }
        assert!(!steer.takes(&frame_to([0; 6], [0, 0, 0, 0].into())), "equal to an empty map slot");
        let mut other = frame_to(MACS[0], own[0]);
        other[spray_wire::offsets::udp_payload_offset(false)] = 0x12;
        assert!(!steer.takes(&other), "a datagram of another program");
        let mut strange = frame_to(MACS[0], own[0]);
        strange.truncate(40);
        assert!(!steer.takes(&strange), "cut off");
        let too_many = [own[0]; SteerProgram::ADDRESSES + 1];
        assert!(matches!(
            SteerProgram::load(MACS[0], &too_many, Ports::DEFAULT),
            Err(ProgramError::Addresses { requested: 5, max: 4 })
        ));
    }
}
