//! A frame that was seen somewhere.

use spray_wire::switch_view::cut;
use spray_wire::{Body, Common, DSCP_TRIMMED, DSCP_TRIMMED_LAST, Envelope, Ports, emit_in_place, offsets, parse};

/// Bytes kept of a frame: all headers of any frame of ours, and some of the payload.
pub const SNAP_BYTES: usize = 256;

/// A frame at an interface.
#[derive(Clone, Debug)]
pub struct Sighting {
    /// When, in ps of scenario time; negative before it begins.
    pub at_ps: i64,
    /// Where: by its place among the interfaces.
    pub interface: u32,
    /// It goes out there, or else it has come in.
    pub outbound: bool,
    /// The frame.
    pub content: Content,
    /// What happened to it there.
    pub fate: Treatment,
    /// Bytes that waited at the port when it came there, where somebody knows.
    pub waiting_bytes: Option<u64>,
}

/// What a frame is.
#[derive(Clone, Debug)]
pub enum Content {
    /// Its first bytes, how many it had, and what it says where somebody wants to know.
    Bytes(Box<[u8]>, u32, Option<Box<(Envelope, Common, Body)>>),
    /// What it says: of a frame that was only simulated. Its payload is zeros.
    Made {
        /// Addresses, and what switches have written.
        envelope: Envelope,
        /// The common header.
        common: Common,
        /// What follows.
        body: Body,
    },
    /// A frame of so many bytes that switches send each other; it has no layout.
    Notice(u32),
}

/// What happened to a frame at a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Treatment {
    /// It got a mark.
    pub marked: bool,
    /// It was cut to its header.
    pub trimmed: bool,
    /// It was dropped, for this reason.
    pub dropped: Option<&'static str>,
}

/// The second Ethernet type of local experiments (IEEE 802).
const EXPERIMENT: [u8; 2] = [0x88, 0xb6];

impl Sighting {
    /// What the capture says of it beside its bytes, if there is anything to say.
    pub fn comment(&self) -> Option<String> {
        let mut said: Vec<String> = Vec::new();
        said.extend(self.fate.marked.then(|| "marked".into()));
        said.extend(self.fate.trimmed.then(|| "trimmed: queue full".into()));
        said.extend(self.fate.dropped.map(|cause| format!("dropped: {cause}")));
        if !said.is_empty() {
            said.extend(self.waiting_bytes.map(|bytes| format!("{bytes} bytes waited")));
        }
        said.extend(matches!(self.content, Content::Notice(_)).then(|| "from switch to switch".into()));
        if self.at_ps < 0 {
            said.push(format!("{:.3} us before the scenario begins", -self.at_ps as f64 / 1e6));
        }
        (!said.is_empty()).then(|| said.join("; "))
    }
}

impl Content {
    /// A frame that is there. `parses` says whether anybody wants to know what it says.
    pub fn of(frame: &[u8], parses: bool) -> Self {
        let said = if parses { parse(frame, Ports::DEFAULT).ok().flatten() } else { None };
        let said = said.map(|frame| Box::new((frame.envelope, frame.common, frame.body)));
        Self::Bytes(frame[..frame.len().min(SNAP_BYTES)].into(), frame.len() as u32, said)
    }

    /// What it says: addresses, common header, and what follows.
    pub(crate) fn said(&self) -> Option<(&Envelope, &Common, &Body)> {
        match self {
            Self::Bytes(_, _, said) => said.as_deref().map(|(envelope, common, body)| (envelope, common, body)),
            Self::Made { envelope, common, body } => Some((envelope, common, body)),
            Self::Notice(_) => None,
        }
    }

    /// The frame's bytes, or the first of them, and how many there are. `space` is where they are made if need be.
    pub(crate) fn bytes<'a>(&'a self, space: &'a mut Vec<u8>) -> (&'a [u8], usize) {
        match self {
            Self::Bytes(bytes, len, _) => (bytes, *len as usize),
            Self::Made { envelope, common, body } => {
                space.resize(body.header_bytes(envelope.is_v6()) + body.payload_bytes(), 0);
                let len = make(space, envelope, common, body).unwrap_or(0);
                (&space[..len], len)
            }
            Self::Notice(len) => {
                space.clear();
                space.extend([2, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0].iter().chain(&EXPERIMENT));
                (space, (*len as usize).max(space.len()))
            }
        }
    }
}

/// Makes a frame as switches have left it. Returns its length.
fn make(space: &mut [u8], envelope: &Envelope, common: &Common, body: &Body) -> Option<usize> {
    let v6 = envelope.is_v6();
    // Some body of an earlier frame may lie where the payload is.
    space.get_mut(body.header_bytes(v6)..)?.fill(0);
    let len = emit_in_place(space, envelope, common, body, body.payload_bytes()).ok()?;
    if !matches!((body, envelope.dscp), (Body::Data(_), DSCP_TRIMMED | DSCP_TRIMMED_LAST)) {
        return Some(len);
    }
    cut(space.get_mut(..len)?, v6, envelope.dscp, offsets::trimmed_len(v6) as u32).map(|bytes| bytes as usize)
}
