//! Sealed frames: tags in place of checksums, and an encrypted payload (WIRE-18). The caller
//! implements the cipher ([`Seal`], [`open`]); this file defines what it covers and where tags are.
//! Packet path: T5 and R3 of `docs/architecture.md`.

use core::net::IpAddr;

use crate::bytes::{View, Writer, chunk, chunk_mut};
use crate::frame::{Covered, emit_envelope, is_cut, our_bytes, parse_envelope, udp_length};
use crate::header::{COMMON_BYTES, field};
use crate::offsets::{UDP_BYTES, udp_offset, udp_payload_offset};
use crate::switch_view::classify;
use crate::{Body, Common, Envelope, Error, Frame, Kind, Ports, SEAL_BYTES, TAG_BYTES, VERSION_SEALED};

/// Bytes of the header's tag that replace the checksum; the rest follows the header.
const TAG_HEAD: usize = TAG_BYTES - SEAL_BYTES;

/// Returns the bytes that sealing adds to a frame of this kind.
#[inline]
pub const fn seal_bytes(kind: Kind) -> usize {
    SEAL_BYTES + if matches!(kind, Kind::Data) { TAG_BYTES } else { 0 }
}

/// Seals frames of one connection, with nonces from frame numbers, which must be unique.
pub trait Seal {
    /// Returns the tag of a header, which covers `covered`.
    fn header(&self, covered: &[u8]) -> [u8; TAG_BYTES];

    /// Encrypts a payload in place and returns its tag, which covers `covered` too.
    fn payload(&self, covered: &[u8], payload: &mut [u8]) -> [u8; TAG_BYTES];
}

/// A sealed frame that is not yet authenticated.
#[derive(Debug)]
pub struct Sealed<'a> {
    /// Connection number at the receiver.
    pub connection: u32,
    /// Frame number in its connection and direction.
    pub number: u64,
    /// Source address.
    pub source: IpAddr,
    /// The bytes that the tags cover, besides the payload.
    pub covered: &'a [u8],
    /// Tag of the header.
    pub header_tag: [u8; TAG_BYTES],
    /// Encrypted payload and its tag of a Data that was not trimmed; `None` of other frames.
    pub payload: Option<&'a mut [u8]>,
}

/// Builds a sealed frame around a payload of `payload_bytes` already in `out`, [`SEAL_BYTES`] after
/// [`Body::header_bytes`]. `c.cookie` is the frame number. A Data needs [`TAG_BYTES`] after it.
/// Errors are those of [`emit`](crate::emit).
//= docs/specs/wire.md#WIRE-18 sealed frames
#[inline]
pub fn emit_sealed(
    out: &mut [u8],
    e: &Envelope,
    c: &Common,
    body: &Body,
    payload_bytes: usize,
    seal: &impl Seal,
) -> Result<usize, Error> {
    let udp_bytes = udp_length(body, payload_bytes, seal_bytes(body.kind()))?;
    let out = out.get_mut(..udp_offset(e.is_v6()) + udp_bytes as usize).ok_or(Error::BufferTooSmall)?;
    let ours = out.get_mut(udp_payload_offset(e.is_v6())..).ok_or(Error::BufferTooSmall)?;
    let (header, rest) = ours.split_at_mut_checked(body.bytes()).ok_or(Error::BufferTooSmall)?;
    let (tail, payload) = rest.split_at_mut_checked(SEAL_BYTES).ok_or(Error::BufferTooSmall)?;
    c.emit(chunk_mut(header)?, VERSION_SEALED, body.kind(), body.flags());
    body.emit(header)?;
    let mut copy = <Covered>::new();
    let covered = copy.of(e, header)?;
    let tag = seal.header(covered);
    Writer(chunk_mut::<COMMON_BYTES>(header)?)
        .array::<{ field::HEADER_CHECKSUM }, TAG_HEAD>(View(&tag).array::<0, TAG_HEAD>());
    tail.copy_from_slice(&tag[TAG_HEAD..]);
    if body.kind() == Kind::Data {
        let (payload, tag) = payload.split_at_mut_checked(payload_bytes).ok_or(Error::BufferTooSmall)?;
        tag.copy_from_slice(&seal.payload(covered, payload));
    }
    emit_envelope(out, e, udp_bytes)?;
    Ok(out.len())
}

/// Parses a sealed frame. `decide` authenticates it before any field is used: it checks the tags,
/// decrypts the payload in place and returns whether both match. `Ok(None)`: not a spray frame.
///
/// # Errors
///
/// The same as [`parse`](crate::parse); [`Error::Tag`] if `decide` returns `false`.
#[inline]
pub fn open(
    frame: &mut [u8],
    ports: Ports,
    decide: impl FnOnce(Sealed<'_>) -> bool,
) -> Result<Option<Frame<'_>>, Error> {
    let Some(is_v6) = classify(frame, ports) else { return Ok(None) };
    let (envelope, udp) = parse_envelope(frame, is_v6)?;
    let ours = udp.get(UDP_BYTES..).ok_or(Error::Truncated)?;
    let (common, kind) = Common::parse::<VERSION_SEALED>(ours.first_chunk::<COMMON_BYTES>().ok_or(Error::Truncated)?)?;
    let header_bytes = our_bytes(kind, ours)?;
    let (header, rest) = ours.split_at_checked(header_bytes).ok_or(Error::Truncated)?;
    let (tail, payload) = rest.split_at_checked(SEAL_BYTES).ok_or(Error::Truncated)?;
    let mut header_tag = [0; TAG_BYTES];
    Writer(&mut header_tag)
        .array::<0, TAG_HEAD>(View(chunk::<COMMON_BYTES>(header)?).array::<{ field::HEADER_CHECKSUM }, TAG_HEAD>())
        .array::<TAG_HEAD, SEAL_BYTES>(*chunk(tail)?);
    let mut copy = <Covered>::new();
    let covered = copy.of(&envelope, header)?;
    let trimmed = kind == Kind::Data && is_cut(&envelope, payload);
    let whole = kind == Kind::Data && !trimmed;
    if whole && payload.len() < TAG_BYTES || !whole && !payload.is_empty() {
        return Err(Error::Length);
    }
    let (start, bytes) = (udp_payload_offset(is_v6), payload.len());
    let payload_start = start + header_bytes + SEAL_BYTES;
    let place = payload_start..payload_start + bytes;
    let sealed = Sealed {
        connection: common.connection,
        number: common.cookie,
        source: envelope.src,
        covered,
        header_tag,
        payload: if whole { frame.get_mut(place) } else { None },
    };
    if !decide(sealed) {
        return Err(Error::Tag);
    }
    let frame = &*frame;
    let body = Body::parse(kind, frame.get(start..start + header_bytes).ok_or(Error::Truncated)?)?;
    let bytes = if whole { bytes - TAG_BYTES } else { 0 };
    if !trimmed && bytes != body.payload_bytes() {
        return Err(Error::Length);
    }
    let payload = frame.get(payload_start..payload_start + bytes).ok_or(Error::Truncated)?;
    Ok(Some(Frame { envelope, common, body, payload, trimmed, sealed: true }))
}
