//! A capture file in pcapng format, with several interfaces.

use std::fmt;
use std::io::{self, Write};
use std::time::Duration;

use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::{DataLink, Endianness, PcapError};

use super::{FrameRecord, SNAP_BYTES};

/// Resolution of timestamps: powers of ten per second.
const NANOSECONDS: u8 = 9;
/// Flags of a block: direction.
const INBOUND: u32 = 1;
const OUTBOUND: u32 = 2;

/// Writes records to a capture file.
///
/// A failed write ends the capture silently, and [`finish`](Self::finish) returns the error.
pub struct Capture<W: Write> {
    file: PcapNgWriter<W>,
    epoch: Duration,
    left: u64,
    written: CaptureStats,
    failed: Option<io::Error>,
    /// Buffer for frames that are built from their headers.
    buffer: Vec<u8>,
}

/// Counts of a capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CaptureStats {
    /// Frames in the file.
    pub frames: u64,
    /// Frames beyond the limit.
    pub left_out: u64,
}

impl<W: Write> Capture<W> {
    /// Begins a file of at most `frames` frames. Time 0 of records is `epoch` after 1970.
    ///
    /// # Errors
    /// The first error of the output.
    pub fn new<'a>(
        output: W,
        interfaces: impl IntoIterator<Item = &'a str>,
        epoch: Duration,
        frames: u64,
    ) -> io::Result<Self> {
        let program = SectionHeaderOption::UserApplication(concat!("spray ", env!("CARGO_PKG_VERSION")).into());
        let section =
            SectionHeaderBlock { endianness: Endianness::Little, options: vec![program], ..Default::default() };
        let mut file = PcapNgWriter::with_section_header(output, section).map_err(io_error)?;
        for name in interfaces {
            let options = vec![
                InterfaceDescriptionOption::IfName(name.into()),
                InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
            ];
            let block = InterfaceDescriptionBlock { linktype: DataLink::ETHERNET, snaplen: SNAP_BYTES as u32, options };
            file.write_pcapng_block(block).map_err(io_error)?;
        }
        Ok(Self { file, epoch, left: frames, written: CaptureStats::default(), failed: None, buffer: Vec::new() })
    }

    /// Writes one record, unless the file is full or has failed.
    pub fn write(&mut self, record: &FrameRecord) {
        if self.failed.is_some() {
            return;
        }
        let Some(left) = self.left.checked_sub(1) else {
            self.written.left_out += 1;
            return;
        };
        self.left = left;
        let (bytes, original) = record.content.bytes(&mut self.buffer);
        let kept = &bytes[..bytes.len().min(SNAP_BYTES)];
        let direction = if record.outbound { OUTBOUND } else { INBOUND };
        let mut options = vec![EnhancedPacketOption::Flags(direction)];
        options.extend(record.comment().map(|comment| EnhancedPacketOption::Comment(comment.into())));
        let block = EnhancedPacketBlock {
            interface_id: record.interface,
            timestamp: self.epoch + Duration::from_nanos(record.at_ps.max(0).cast_unsigned() / 1_000),
            original_len: original as u32,
            data: kept.into(),
            options,
        };
        match self.file.write_pcapng_block(block) {
            Ok(_) => self.written.frames += 1,
            Err(error) => self.failed = Some(io_error(error)),
        }
    }

    /// Flushes the file, and returns the counts or the first error of the output.
    pub fn finish(mut self) -> io::Result<CaptureStats> {
        match self.failed.take() {
            Some(error) => Err(error),
            None => self.file.get_mut().flush().map(|()| self.written),
        }
    }
}

impl<W: Write> fmt::Debug for Capture<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Capture").field("written", &self.written).finish_non_exhaustive()
    }
}

fn io_error(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        error => io::Error::other(error),
    }
}

#[cfg(test)]
mod tests {
    use pcap_file::pcapng::{Block, PcapNgReader};

    use super::*;
    use crate::{Content, PortAction};

    /// A disk with room for this number of bytes.
    #[derive(Debug)]
    struct SmallDisk(usize);

    impl Write for SmallDisk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn record(number: u64) -> FrameRecord {
        FrameRecord {
            at_ps: number as i64 * 2_000_000 + 999,
            interface: number as u32 % 2,
            outbound: number.is_multiple_of(2),
            content: Content::of(&[number as u8; 300], false),
            action: PortAction { dropped: (number == 1).then_some("queue full"), ..PortAction::default() },
            waiting_bytes: Some(77),
        }
    }

    #[test]
    fn a_file_has_interfaces_times_directions_lengths_and_comments_up_to_its_limit() {
        let mut bytes = Vec::new();
        let mut capture = Capture::new(&mut bytes, ["a:b", "b:a"], Duration::from_secs(9), 3).unwrap();
        (0..5).for_each(|number| capture.write(&record(number)));
        assert_eq!(capture.finish().unwrap(), CaptureStats { frames: 3, left_out: 2 });
        let mut reader = PcapNgReader::new(&bytes[..]).unwrap();
        let mut number = 0;
        while let Some(block) = reader.next_block() {
            let Block::EnhancedPacket(packet) = block.unwrap() else { continue };
            assert_eq!(packet.timestamp, Duration::new(9, number * 2_000));
            assert_eq!((packet.original_len, packet.data.len()), (300, SNAP_BYTES));
            assert!(packet.data.iter().all(|byte| u32::from(*byte) == number));
            let direction = EnhancedPacketOption::Flags(if number % 2 == 0 { OUTBOUND } else { INBOUND });
            let comment = EnhancedPacketOption::Comment("dropped: queue full; 77 bytes queued".into());
            let expected = if number == 1 { vec![direction, comment] } else { vec![direction] };
            assert_eq!((packet.interface_id, packet.options), (number % 2, expected));
            number += 1;
        }
        assert_eq!(number, 3);
        let names = reader.interfaces().iter().map(|interface| interface.options.clone());
        let expected = ["a:b", "b:a"].map(|name| {
            vec![InterfaceDescriptionOption::IfName(name.into()), InterfaceDescriptionOption::IfTsResol(9)]
        });
        assert!(names.eq(expected));
    }

    #[test]
    fn a_full_disk_ends_the_capture_and_finish_fails() {
        let mut capture = Capture::new(SmallDisk(1_000), ["a"], Duration::ZERO, 100).unwrap();
        (0..100).for_each(|number| capture.write(&FrameRecord { interface: 0, ..record(number) }));
        assert_eq!(capture.finish().map_err(|error| error.kind()), Err(io::ErrorKind::StorageFull));
    }
}
