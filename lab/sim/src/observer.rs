//! Observation of the frames of a run.

use std::sync::Arc;

use spray_capture::{Content, FrameRecord, PortAction};
use spray_fabric::{address, mac};
use spray_pipeline::Cause;
use spray_pipeline::frame::PAUSE;
use spray_wire::{
    Body, Common as WireCommon, DSCP_CONTROL, DSCP_DATA, DSCP_PAUSE, DSCP_TRIMMED, DSCP_TRIMMED_LAST, Ecn, Envelope,
    Ports,
};

use super::arena::{Slot, set, time_ps};
use super::common::Common;
use super::control_body::ControlBody;
use super::hosts::End;

/// An observer of frames. `()` observes nothing, at no cost.
pub trait Observer: Send {
    /// Whether it observes anything.
    const ACTIVE: bool;

    /// Takes one observation. Those of one interface come in order of time; with `alone`, all do.
    fn observe(&mut self, record: FrameRecord, alone: bool);

    /// Nothing earlier than `until_ps` follows.
    fn settle(&mut self, until_ps: u64);
}

impl Observer for () {
    const ACTIVE: bool = false;

    fn observe(&mut self, _sighting: FrameRecord, _alone: bool) {}

    fn settle(&mut self, _until_ps: u64) {}
}

impl Observer for spray_capture::Observer {
    const ACTIVE: bool = true;

    fn observe(&mut self, record: FrameRecord, alone: bool) {
        self.lock().observe(record, alone);
    }

    fn settle(&mut self, until_ps: u64) {
        self.lock().flush(until_ps.min(i64::MAX as u64).cast_signed());
    }
}

/// Static data to reconstruct frames for an observer.
#[derive(Debug, Default)]
pub(super) struct Catalogue {
    /// By part and number, each with its DSCP.
    ends: Vec<Vec<(End, u8)>>,
    part_of_host: Vec<u32>,
    /// By port.
    links: Vec<u32>,
    v6: bool,
}

/// Flag of `came_by`: the frame was marked as it left its port.
const MARKED: u32 = 1 << 31;

/// The observer of a part.
#[derive(Debug)]
pub(super) struct PartObserver<W> {
    pub watch: W,
    catalogue: Arc<Catalogue>,
    /// By event 1 + the link that its frame came over.
    came_by: Vec<u32>,
    /// Whether this is the only part.
    alone: bool,
}

impl Catalogue {
    pub(super) fn new(common: &Common<'_>, ends: Vec<Vec<End>>) -> Self {
        let spec = common.spec;
        let known = |mut end: End| {
            let config = (spec.flow_config)(end.first.flow as usize);
            end.configure(&config);
            (end, if config.dscp <= spray_wire::MAX_DATA_DSCP { config.dscp } else { DSCP_DATA })
        };
        let mut links = vec![0; spec.network.links.len()];
        common.port_of_link.iter().enumerate().for_each(|(link, port)| links[*port as usize] = link as u32);
        Self {
            ends: ends.into_iter().map(|ends| ends.into_iter().map(known).collect()).collect(),
            part_of_host: (0..spec.network.hosts.len()).map(|host| common.part_of_host(host)).collect(),
            links,
            v6: spec.v6,
        }
    }

    fn content(&self, slot: &Slot, body: Option<&Body>, controls: &[ControlBody]) -> Content {
        if slot.is_notice() {
            return Content::Opaque(slot.len);
        }
        // The slot refers to the end of the connection at the destination.
        let (end, dscp) = &self.ends[self.part_of_host[slot.to as usize] as usize][slot.connection as usize];
        let body = match body {
            Some(body) => *body,
            None if slot.has_body() => controls[slot.psn as usize].body(),
            None => Body::Data(slot.data(&end.message_of(slot.psn), end.payload_bytes)),
        };
        let (src, dst) = (end.peer_host as usize, slot.to as usize);
        let envelope = Envelope {
            src_mac: mac(src),
            dst_mac: mac(dst),
            src: address(src, self.v6),
            dst: address(dst, self.v6),
            src_port: slot.port,
            dst_port: Ports::DEFAULT.first(),
            dscp: match body {
                _ if slot.is_trimmed_last() => DSCP_TRIMMED_LAST,
                _ if slot.is_trimmed() => DSCP_TRIMMED,
                Body::Data(_) => *dscp,
                _ if slot.detour == PAUSE => DSCP_PAUSE,
                _ => DSCP_CONTROL,
            },
            ecn: Ecn::from_tos(slot.ecn),
            ttl: slot.ttl,
        };
        let common = WireCommon { connection: end.first.flow, ..WireCommon::default() };
        Content::Headers { envelope, common, body }
    }
}

impl<W: Observer> PartObserver<W> {
    pub(super) fn new(watch: W, catalogue: &Arc<Catalogue>, alone: bool) -> Self {
        Self { watch, catalogue: Arc::clone(catalogue), came_by: Vec::new(), alone }
    }

    /// A host puts a frame on its link, the port `port`, which may drop it.
    #[inline]
    pub(super) fn sends(&mut self, at_ps: u64, port: u32, slot: &Slot, body: &Body, left: &Result<(), Cause>) {
        if !W::ACTIVE {
            return;
        }
        let content = self.catalogue.content(slot, Some(body), &[]);
        let action = PortAction { dropped: left.err().map(Cause::name), ..PortAction::default() };
        let interface = self.catalogue.links[port as usize];
        self.report(at_ps, interface, true, content, action, None);
    }

    #[inline]
    pub(super) fn leaves(&mut self, event: u32, port: u32) {
        if W::ACTIVE {
            self.come_by(event, self.catalogue.links[port as usize] + 1);
        }
    }

    /// Sets the link that a frame comes over, from 1, and perhaps [`MARKED`]; 0 once observed.
    pub(super) fn come_by(&mut self, event: u32, link: u32) {
        set(&mut self.came_by, event, link);
    }

    /// Takes the link that a frame came over, from 1.
    pub(super) fn came_by(&mut self, event: u32) -> u32 {
        self.came_by.get_mut(event as usize).map_or(0, std::mem::take)
    }

    #[inline]
    pub(super) fn settled(&mut self, event: u32, marked: bool) {
        if W::ACTIVE && marked {
            self.came_by[event as usize] |= MARKED;
        }
    }

    /// A frame has arrived; `marked` if it was marked on arrival for its departure.
    #[inline]
    pub(super) fn arrives(&mut self, event: u32, slot: &Slot, marked: bool, controls: &[ControlBody]) {
        if !W::ACTIVE {
            return;
        }
        let came_by = self.came_by(event);
        let Some(link) = (came_by & !MARKED).checked_sub(1) else { return };
        let marked = marked || came_by & MARKED != 0;
        let at_ps = time_ps(slot.key);
        let content = self.catalogue.content(slot, None, controls);
        // The opposite direction of the same cable.
        self.report(at_ps, link ^ 1, false, content, PortAction { marked, ..PortAction::default() }, None);
    }

    /// A frame passes a port with `waiting` queued bytes.
    pub(super) fn crosses(
        &mut self,
        port: u32,
        waiting: u64,
        slot: &Slot,
        action: PortAction,
        controls: &[ControlBody],
    ) {
        let content = self.catalogue.content(slot, None, controls);
        let interface = self.catalogue.links[port as usize];
        self.report(time_ps(slot.key), interface, true, content, action, Some(waiting));
    }

    /// A switch has no route for a frame.
    pub(super) fn unroutable(&mut self, slot: &Slot, controls: &[ControlBody]) {
        let at_ps = time_ps(slot.key);
        let content = self.catalogue.content(slot, None, controls);
        let interface = self.catalogue.links.len() as u32 + slot.place;
        let action = PortAction { dropped: Some(Cause::NoRoute.name()), ..PortAction::default() };
        self.report(at_ps, interface, true, content, action, None);
    }

    fn report(
        &mut self,
        at_ps: u64,
        interface: u32,
        outbound: bool,
        content: Content,
        action: PortAction,
        waiting_bytes: Option<u64>,
    ) {
        let record = FrameRecord { at_ps: at_ps.cast_signed(), interface, outbound, content, action, waiting_bytes };
        self.watch.observe(record, self.alone);
    }
}
