//! An uplink of a plain Linux router, which marks, drops and modifies frames.

use std::os::fd::AsFd;

use libbpf_rs::{MapCore, MapFlags, MapHandle, TC_EGRESS, TcHookBuilder};
use spray_core::link::serialisation_floor_ps;
use spray_nic::xdp::{self, ProgramError};

/// Built by `cargo xtask build-ebpf`.
const OBJECT: &[u8] = include_bytes!("../../../ebpf/objects/router.o");
const MAP: &str = "uplink";

/// The program of an uplink; removed with the interface.
#[derive(Debug)]
pub struct RouterProgram(MapHandle);

/// The behaviour of an uplink.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Uplink {
    /// Drain rate of the virtual queue, in bits per second.
    pub rate_bps: u64,
    /// Marking threshold of the virtual queue, in bytes; `None`: never.
    pub mark_bytes: Option<u64>,
    /// RED threshold of the average virtual queue, in bytes, for early drops; `None`: never.
    pub red_bytes: Option<u64>,
    /// Probability of dropping a frame, 0 to 1.
    pub loss: f64,
    /// Further interference.
    pub interference: Interference,
}

/// Interference of routers and middleboxes besides queueing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Interference {
    /// Nothing.
    #[default]
    None,
    /// Drops what exceeds the rate by more than this burst, in bytes, instead of queueing.
    Polices(u64),
    /// Silently drops frames longer than this, in bytes with all headers.
    DropsLonger(u32),
    /// Drops UDP datagrams with this source port modulo four.
    DropsPorts(u16),
    /// Drops everything at the start of each period.
    Pauses {
        /// The period, in milliseconds.
        every_ms: u32,
        /// The duration of drops, in milliseconds.
        for_ms: u32,
    },
    /// Sends this share of frames twice, 0 to 1.
    Repeats(f64),
    /// Clears DSCP and ECN of every frame.
    Clears,
    /// Marks every frame.
    Marks,
}

impl Interference {
    /// The words of the map's value behind the loss probability.
    fn words(self, rate_bps: u64) -> [u64; 8] {
        let ns = |ms: u32| u64::from(ms) * 1_000_000;
        let mut words = [0; 8];
        match self {
            Self::None | Self::Marks => {}
            Self::Polices(bytes) => words[0] = serialisation_floor_ps(bytes, rate_bps) / 1000,
            Self::DropsLonger(bytes) => words[1] = bytes.into(),
            Self::DropsPorts(port) => [words[2], words[3]] = [(port % 4).into(), 3],
            Self::Pauses { every_ms, for_ms } => [words[4], words[5]] = [ns(every_ms), ns(for_ms)],
            Self::Repeats(share) => words[6] = (share * 2f64.powi(32)) as u64,
            Self::Clears => words[7] = 1,
        }
        words
    }
}

/// The map's value: the index of the byte count, and the number of words.
const BYTES: usize = 14;
const WORDS: usize = 16;

impl RouterProgram {
    /// Loads the program, and attaches it to an interface's egress in this thread's namespace.
    pub fn attach(ifindex: u32, uplink: &Uplink) -> Result<Self, ProgramError> {
        let object = xdp::load("router", OBJECT, |_| Ok::<_, ProgramError>(()))?;
        let map = object.maps().find(|map| map.name() == MAP).ok_or_else(|| ProgramError::NoMap(MAP.into()))?;
        let map = MapHandle::try_from(&map).map_err(ProgramError::map(MAP))?;
        let program = xdp::program(&object, "router")?;
        let failed = |source| ProgramError::Load { program: "router", source, log: String::new() };
        let mut hook =
            TcHookBuilder::new(program.as_fd()).ifindex(ifindex as i32).handle(1).priority(1).hook(TC_EGRESS);
        hook.create().and_then(|mut hook| hook.attach()).map_err(failed)?;
        let this = Self(map);
        this.set(uplink)?;
        Ok(this)
    }

    /// Changes the behaviour; empties the virtual queue and resets the counts.
    pub fn set(&self, uplink: &Uplink) -> Result<(), ProgramError> {
        let drain_ps = |bytes| serialisation_floor_ps(bytes, uplink.rate_bps);
        let mut value = [0; WORDS];
        let from_ns = |bytes: Option<u64>| bytes.map_or(u64::MAX, |bytes| drain_ps(bytes) / 1000);
        let mark_bytes = if uplink.interference == Interference::Marks { Some(0) } else { uplink.mark_bytes };
        let (mark_ns, red_ns) = (from_ns(mark_bytes), from_ns(uplink.red_bytes));
        value[..4].copy_from_slice(&[drain_ps(1), mark_ns, red_ns, (uplink.loss * 2f64.powi(32)) as u64]);
        value[4..12].copy_from_slice(&uplink.interference.words(uplink.rate_bps));
        let bytes: Vec<u8> = value.iter().flat_map(|word: &u64| word.to_ne_bytes()).collect();
        self.0.update(&[0; 4], &bytes, MapFlags::ANY).map_err(ProgramError::map(MAP))
    }

    /// Returns the bytes forwarded since the last [`RouterProgram::set`].
    pub fn bytes(&self) -> Result<u64, ProgramError> {
        let value = self.0.lookup(&[0; 4], MapFlags::ANY).map_err(ProgramError::map(MAP))?.unwrap_or_default();
        let word = value.as_chunks().0.get(BYTES);
        Ok(word.map_or(0, |word| u64::from_ne_bytes(*word)))
    }
}
