//! What a fabric that stands for anybody's traffic keeps beside the tables of switches: plain data, the same bytes in the kernel's maps and
//! in memory.
//!
//! An XDP program cannot hold a frame. It hands each to a process that can, with a ticket that says until when, and by which port.

/// What lies behind an interface that frames enter by.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Door {
    /// The switch that frames come to.
    pub switch: u32,
    /// The link of the host that they come from, as a port; [`NO_PORT`](crate::scheme::NO_PORT) of those from another switch.
    pub own: u32,
    /// The number of the socket that takes frames which came by this interface.
    pub holder: u32,
}

/// What is written over the two addresses of a frame's Ethernet header while it is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// When the frame is at the far end of its last cable, in ps of the kernel's monotonic clock.
    pub due_ps: u64,
    /// The port that it leaves by.
    pub port: u32,
}

/// Bytes of a [`Ticket`]: those of both addresses.
pub const TICKET_BYTES: usize = 12;

impl Ticket {
    /// Writes it into a frame.
    #[inline(always)]
    pub fn write(&self, head: &mut [u8; TICKET_BYTES]) {
        let (due, port) = (self.due_ps.to_le_bytes(), self.port.to_le_bytes());
        head[..8].copy_from_slice(&due);
        head[8..].copy_from_slice(&port);
    }

    /// Reads it from a frame; `None` where the frame is too short for one.
    pub fn read(frame: &[u8]) -> Option<Self> {
        let (due, rest) = frame.split_first_chunk()?;
        Some(Self { due_ps: u64::from_le_bytes(*due), port: u32::from_le_bytes(*rest.first_chunk()?) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_is_read_as_it_was_written() {
        let ticket = Ticket { due_ps: 0x0102_0304_0506_0708, port: 0x090a_0b0c };
        let mut frame = [0; TICKET_BYTES];
        ticket.write(&mut frame);
        assert_eq!(Ticket::read(&frame), Some(ticket));
        assert_eq!(Ticket::read(&[0; TICKET_BYTES - 1]), None);
    }
}
