//! A frame observed at an interface.

use spray_wire::switch_view::cut;
use spray_wire::{Body, Common, DSCP_TRIMMED, DSCP_TRIMMED_LAST, Envelope, Ports, emit_in_place, offsets, parse};

/// Bytes captured per frame: all spray headers, and some of the payload.
pub const SNAP_BYTES: usize = 256;

/// A frame at an interface.
#[derive(Clone, Debug)]
pub struct FrameRecord {
    /// Time, in ps of scenario time; negative before the scenario begins.
    pub at_ps: i64,
    /// Index of the interface.
    pub interface: u32,
    /// Whether the frame leaves the interface.
    pub outbound: bool,
    /// The frame.
    pub content: Content,
    /// How the port treated it.
    pub action: PortAction,
    /// Bytes queued at the port when the frame arrived there, if known.
    pub waiting_bytes: Option<u64>,
}

/// The content of a frame.
#[derive(Clone, Debug)]
pub enum Content {
    /// The first bytes, the length, and the headers if they were parsed.
    Bytes(Box<[u8]>, u32, Option<Box<(Envelope, Common, Body)>>),
    /// The headers of a frame that was only simulated. Its payload is zeros.
    Headers {
        /// Addresses, ports and IP fields.
        envelope: Envelope,
        /// The common header.
        common: Common,
        /// Fields of the kind.
        body: Body,
    },
    /// A frame of this length between switches, without a layout.
    Opaque(u32),
}

/// How a port treated a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortAction {
    /// It was marked.
    pub marked: bool,
    /// It was trimmed.
    pub trimmed: bool,
    /// The reason why it was dropped.
    pub dropped: Option<&'static str>,
}

/// Local experimental EtherType 2 (IEEE 802).
const EXPERIMENT: [u8; 2] = [0x88, 0xb6];

impl FrameRecord {
    /// Returns the comment in a capture, if any.
    pub fn comment(&self) -> Option<String> {
        let mut parts: Vec<String> = Vec::new();
        parts.extend(self.action.marked.then(|| "marked".into()));
        parts.extend(self.action.trimmed.then(|| "trimmed: queue full".into()));
        parts.extend(self.action.dropped.map(|cause| format!("dropped: {cause}")));
        if !parts.is_empty() {
            parts.extend(self.waiting_bytes.map(|bytes| format!("{bytes} bytes queued")));
        }
        parts.extend(matches!(self.content, Content::Opaque(_)).then(|| "from switch to switch".into()));
        if self.at_ps < 0 {
            parts.push(format!("{:.3} us before the scenario begins", -self.at_ps as f64 / 1e6));
        }
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}

impl Content {
    /// Creates the content from a frame's bytes, with its headers if `parses`.
    pub fn of(frame: &[u8], parses: bool) -> Self {
        let headers = if parses { parse(frame, Ports::DEFAULT).ok().flatten() } else { None };
        let headers = headers.map(|frame| Box::new((frame.envelope, frame.common, frame.body)));
        Self::Bytes(frame[..frame.len().min(SNAP_BYTES)].into(), frame.len() as u32, headers)
    }

    pub(crate) fn headers(&self) -> Option<(&Envelope, &Common, &Body)> {
        match self {
            Self::Bytes(_, _, headers) => headers.as_deref().map(|(envelope, common, body)| (envelope, common, body)),
            Self::Headers { envelope, common, body } => Some((envelope, common, body)),
            Self::Opaque(_) => None,
        }
    }

    /// Returns the first bytes and the length, built in `buffer` if necessary.
    pub(crate) fn bytes<'a>(&'a self, buffer: &'a mut Vec<u8>) -> (&'a [u8], usize) {
        match self {
            Self::Bytes(bytes, len, _) => (bytes, *len as usize),
            Self::Headers { envelope, common, body } => {
                buffer.resize(body.header_bytes(envelope.is_v6()) + body.payload_bytes(), 0);
                let len = build(buffer, envelope, common, body).unwrap_or(0);
                (&buffer[..len], len)
            }
            Self::Opaque(len) => {
                buffer.clear();
                buffer.extend([2, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0].iter().chain(&EXPERIMENT));
                (buffer, (*len as usize).max(buffer.len()))
            }
        }
    }
}

/// Builds a frame, trimmed if its DSCP says so. Returns its length.
fn build(buffer: &mut [u8], envelope: &Envelope, common: &Common, body: &Body) -> Option<usize> {
    let v6 = envelope.is_v6();
    // The buffer may hold an earlier frame where the payload is.
    buffer.get_mut(body.header_bytes(v6)..)?.fill(0);
    let len = emit_in_place(buffer, envelope, common, body, body.payload_bytes()).ok()?;
    if !matches!((body, envelope.dscp), (Body::Data(_), DSCP_TRIMMED | DSCP_TRIMMED_LAST)) {
        return Some(len);
    }
    cut(buffer.get_mut(..len)?, v6, envelope.dscp, offsets::trimmed_len(v6) as u32).map(|bytes| bytes as usize)
}
