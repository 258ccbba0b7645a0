//! An uplink of a plain Linux router: what marks and loses its frames.

use std::os::fd::AsFd;

use libbpf_rs::{Object, TC_EGRESS, TcHookBuilder};
use spray_core::link::serialisation_floor_ps;
use spray_nic::xdp;

use super::ProgramError;
use super::maps::Maps;
use super::object;

/// The program of one uplink. It goes with the interface that it sits on.
#[derive(Debug)]
pub struct RouterProgram {
    maps: Maps,
    _object: Object,
}

/// What an uplink does to frames.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Uplink {
    /// Rate by which the virtual queue drains, in bits per second.
    pub rate_bps: u64,
    /// It marks when the virtual queue holds more than this, in bytes; `None`: never.
    pub mark_bytes: Option<u64>,
    /// Probability of losing a frame, from 0 to 1.
    pub loss: f64,
}

/// The map's value: the words that are settings, the place of the count of bytes, and all words.
const SETTINGS: usize = 3;
const BYTES: usize = 4;
const WORDS: usize = 6;

impl RouterProgram {
    /// Loads the program and puts it on the egress of an interface of the calling thread's network namespace.
    ///
    /// # Errors
    /// The object is missing, or the kernel refuses it or the interface.
    pub fn attach(ifindex: u32, uplink: &Uplink) -> Result<Self, ProgramError> {
        let object = object::load(object::ROUTER, |_| Ok(()))?;
        let maps = Maps::of(&object)?;
        let program = xdp::program(&object, "router")?;
        let failed = |source| xdp::ProgramError::Load { program: "router", source, log: String::new() };
        let mut hook =
            TcHookBuilder::new(program.as_fd()).ifindex(ifindex as i32).handle(1).priority(1).hook(TC_EGRESS);
        hook.create().and_then(|mut hook| hook.attach()).map_err(failed)?;
        let this = Self { maps, _object: object };
        this.set(uplink)?;
        Ok(this)
    }

    /// Changes what the uplink does; its virtual queue is empty then, and its counts are 0.
    ///
    /// # Errors
    /// When the map cannot be written.
    pub fn set(&self, uplink: &Uplink) -> Result<(), ProgramError> {
        let drain_ps = |bytes| serialisation_floor_ps(bytes, uplink.rate_bps);
        let mut value = [0; WORDS];
        // A byte that takes no time marks nothing.
        let [byte_ps, mark_ps] = uplink.mark_bytes.map_or([0; 2], |bytes| [drain_ps(1), drain_ps(bytes)]);
        let settings = [byte_ps, mark_ps / 1000, (uplink.loss * 2f64.powi(32)) as u64];
        value[..SETTINGS].copy_from_slice(&settings);
        let bytes: Vec<u8> = value.iter().flat_map(|word: &u64| word.to_ne_bytes()).collect();
        self.maps.put("uplink", &0u32.to_ne_bytes(), &bytes)
    }

    /// Bytes that passed since the last [`RouterProgram::set`].
    ///
    /// # Errors
    /// When the map cannot be read.
    pub fn bytes(&self) -> Result<u64, ProgramError> {
        let value = self.maps.get("uplink", 0)?;
        let word = value.as_chunks().0.get(BYTES);
        Ok(word.map_or(0, |word| u64::from_ne_bytes(*word)))
    }
}
