//! Bare frames: the rate of a device and path without acknowledgements, checks or copies.

use spray_wire::offsets::{ETHERTYPE, ETHERTYPE_V6, udp_payload_offset};

use super::Device;

/// A frame that is sent repeatedly: it is written once into each of the device's frames.
#[derive(Debug)]
pub struct FrameGenerator {
    template: Box<[u8]>,
    v6: bool,
}

/// Bytes of UDP payload that identify the template in a frame of the device: the last of them.
const HEAD: usize = 16;
const MARK: usize = 8;

impl FrameGenerator {
    /// Creates it from the bytes of a frame, from the Ethernet header on.
    #[must_use]
    pub fn new(template: &[u8]) -> Self {
        let v6 = template.get(ETHERTYPE..ETHERTYPE + 2) == Some(&ETHERTYPE_V6.to_be_bytes()[..]);
        Self { template: template.into(), v6 }
    }

    /// Queues up to `most` frames for the next flush, as far as the device has room. Returns their
    /// number.
    pub fn send<D: Device>(&mut self, device: &mut D, most: u64) -> u64 {
        let mut sent = 0;
        while sent < most {
            let Some(id) = device.allocate() else { break };
            self.write(device.frame_mut(&id));
            if let Err(id) = device.transmit(id, self.template.len() as u32) {
                device.release(id);
                break;
            }
            sent += 1;
        }
        sent
    }

    /// Writes the head, and the rest unless the frame still has it.
    fn write(&self, frame: &mut [u8]) {
        let end = self.template.len().min(udp_payload_offset(self.v6) + HEAD);
        let mark = end.saturating_sub(HEAD - MARK)..end;
        let written = if frame[mark.clone()] == self.template[mark] { end } else { self.template.len() };
        frame[..written].copy_from_slice(&self.template[..written]);
    }
}
