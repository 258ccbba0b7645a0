//! A device that records its frames for Wireshark and tcpdump.

use std::{
    fs::File,
    io::{self, BufWriter, Write},
    os::fd::RawFd,
    path::Path,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use super::{Device, DeviceStats, FrameCensus, FrameId, Received};

/// Magic number of a pcap file with nanosecond timestamps, least significant byte first.
const MAGIC_NANOSECONDS: u32 = 0xa1b2_3c4d;
/// Longest frame that the file header announces.
const SNAP_LENGTH: u32 = 65_535;
const LINK_TYPE_ETHERNET: u32 = 1;
/// Bytes gathered before a write: some 80 full frames for each system call.
const BUFFER: usize = 256 * 1024;

/// Writes frames in the classic pcap format (`draft-ietf-opsawg-pcap`), with nanosecond timestamps.
#[derive(Debug)]
pub struct PcapWriter<W: Write> {
    output: W,
    frames: u64,
}

impl<W: Write> PcapWriter<W> {
    /// Writes the file header.
    ///
    /// # Errors
    /// Those of the output.
    pub fn new(mut output: W) -> io::Result<Self> {
        let mut header = [0; 24];
        header[..4].copy_from_slice(&MAGIC_NANOSECONDS.to_le_bytes());
        header[4..6].copy_from_slice(&2_u16.to_le_bytes());
        header[6..8].copy_from_slice(&4_u16.to_le_bytes());
        header[16..20].copy_from_slice(&SNAP_LENGTH.to_le_bytes());
        header[20..].copy_from_slice(&LINK_TYPE_ETHERNET.to_le_bytes());
        output.write_all(&header)?;
        Ok(Self { output, frames: 0 })
    }

    /// Writes one frame, seen at `time` since the epoch. Times beyond the year 2106 do not fit the format and wrap.
    ///
    /// # Errors
    /// Those of the output.
    pub fn write(&mut self, time: Duration, frame: &[u8]) -> io::Result<()> {
        let len = (frame.len() as u32).min(SNAP_LENGTH);
        let mut header = [0; 16];
        header[..4].copy_from_slice(&(time.as_secs() as u32).to_le_bytes());
        header[4..8].copy_from_slice(&time.subsec_nanos().to_le_bytes());
        header[8..12].copy_from_slice(&len.to_le_bytes());
        header[12..].copy_from_slice(&(frame.len() as u32).to_le_bytes());
        self.output.write_all(&header)?;
        self.output.write_all(&frame[..len as usize])?;
        self.frames += 1;
        Ok(())
    }

    /// Frames written so far.
    #[must_use]
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Writes out what is buffered and gives the output back.
    ///
    /// # Errors
    /// Those of the output.
    pub fn finish(mut self) -> io::Result<W> {
        self.output.flush()?;
        Ok(self.output)
    }
}

/// Writes every frame that a device receives or accepts for sending into a pcap file. When [`off`](Self::off) it
/// writes nothing, so that one type serves both.
///
/// A sent frame is recorded when it is queued. A failed write (a full disk) ends the capture, never the traffic;
/// [`finish`](Self::finish) returns the error.
pub struct Capture<D, W: Write = BufWriter<File>> {
    device: D,
    tap: Tap<W>,
    clock: Box<dyn FnMut() -> Duration + Send>,
    /// A copy of the frame being sent: it cannot be read once the device has taken it.
    outgoing: Vec<u8>,
}

enum Tap<W: Write> {
    Off,
    On(PcapWriter<W>),
    Failed(io::Error),
}

impl<W: Write> Tap<W> {
    fn record(&mut self, time: Duration, frame: &[u8]) {
        if let Self::On(pcap) = self
            && let Err(error) = pcap.write(time, frame)
        {
            *self = Self::Failed(error);
        }
    }

    fn is_on(&self) -> bool {
        matches!(self, Self::On(_))
    }
}

impl<D: Device> Capture<D> {
    /// Captures into a new file, with the system's time.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn to_file(device: D, path: &Path) -> io::Result<Self> {
        Self::new(device, BufWriter::with_capacity(BUFFER, File::create(path)?), system_time)
    }

    /// Wraps the device and captures nothing.
    #[must_use]
    pub fn off(device: D) -> Self {
        Self { device, tap: Tap::Off, clock: Box::new(|| Duration::ZERO), outgoing: Vec::new() }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "timestamps of a capture are for people to read; nothing decides by them"
)]
fn system_time() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

impl<D: Device, W: Write> Capture<D, W> {
    /// Captures into any output. `clock` returns the time since the epoch, for example virtual time.
    ///
    /// # Errors
    /// When the file header cannot be written.
    pub fn new(device: D, output: W, clock: impl FnMut() -> Duration + Send + 'static) -> io::Result<Self> {
        let outgoing = Vec::with_capacity(device.max_frame());
        Ok(Self { device, tap: Tap::On(PcapWriter::new(output)?), clock: Box::new(clock), outgoing })
    }

    /// The device within.
    #[must_use]
    pub fn device(&self) -> &D {
        &self.device
    }

    /// Ends the capture. Returns the device, and the output with all frames in it; `None` if the capture was off.
    ///
    /// # Errors
    /// The first error of the output, in place of the output.
    pub fn finish(self) -> (D, io::Result<Option<W>>) {
        let output = match self.tap {
            Tap::Off => Ok(None),
            Tap::On(pcap) => pcap.finish().map(Some),
            Tap::Failed(error) => Err(error),
        };
        (self.device, output)
    }
}

impl<D: std::fmt::Debug, W: Write> std::fmt::Debug for Capture<D, W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Capture").field("device", &self.device).finish_non_exhaustive()
    }
}

impl<D: Device, W: Write> Device for Capture<D, W> {
    fn receive(&mut self, out: &mut Vec<Received>, budget: usize) -> io::Result<usize> {
        let before = out.len();
        let received = self.device.receive(out, budget)?;
        if received > 0 && self.tap.is_on() {
            let time = (self.clock)();
            for Received { frame, len } in &out[before..] {
                self.tap.record(time, self.device.frame(frame, *len));
            }
        }
        Ok(received)
    }

    fn transmit(&mut self, id: FrameId, len: u32) -> Result<(), FrameId> {
        if !self.tap.is_on() {
            return self.device.transmit(id, len);
        }
        self.outgoing.clear();
        self.outgoing.extend_from_slice(self.device.frame(&id, len));
        self.device.transmit(id, len)?;
        self.tap.record((self.clock)(), &self.outgoing);
        Ok(())
    }

    fn frame(&self, id: &FrameId, len: u32) -> &[u8] {
        self.device.frame(id, len)
    }

    fn frame_mut(&mut self, id: &FrameId) -> &mut [u8] {
        self.device.frame_mut(id)
    }

    fn release(&mut self, id: FrameId) {
        self.device.release(id);
    }

    fn allocate(&mut self) -> Option<FrameId> {
        self.device.allocate()
    }

    fn flush(&mut self) -> io::Result<()> {
        self.device.flush()
    }

    fn max_frame(&self) -> usize {
        self.device.max_frame()
    }

    fn stats(&self) -> DeviceStats {
        self.device.stats()
    }

    fn census(&self) -> FrameCensus {
        self.device.census()
    }

    fn audit(&self) -> Result<(), String> {
        self.device.audit()
    }

    fn is_gone(&self) -> bool {
        self.device.is_gone()
    }

    fn wake_fd(&self) -> Option<RawFd> {
        self.device.wake_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{MemoryConfig, MemoryNetwork},
        *,
    };

    const A: [u8; 6] = [2, 0, 0, 0, 0, 1];
    const B: [u8; 6] = [2, 0, 0, 0, 0, 2];

    /// Accepts so many bytes, then no more.
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

    fn exchange<W: Write>(output: W) -> (io::Result<Option<W>>, usize) {
        let network = MemoryNetwork::new(MemoryConfig { tx_ring: 2, ..Default::default() });
        let mut ticks = 0_u64;
        let clock = move || {
            ticks += 1;
            Duration::from_nanos(1_700_000_000_000_000_000 + ticks)
        };
        let mut a = Capture::new(network.attach(A), output, clock).unwrap();
        let mut b = network.attach(B);
        for fill in 1..=3 {
            let id = a.allocate().unwrap();
            a.frame_mut(&id)[..6].copy_from_slice(&B);
            a.frame_mut(&id)[6..60].fill(fill);
            if let Err(id) = a.transmit(id, 60) {
                assert_eq!(fill, 3, "the ring takes two");
                a.release(id);
            }
        }
        a.flush().unwrap();
        let mut out = Vec::with_capacity(8);
        b.receive(&mut out, 8).unwrap();
        for Received { frame, len } in out.drain(..) {
            b.frame_mut(&frame)[..6].copy_from_slice(&A);
            b.transmit(frame, len).unwrap();
        }
        b.flush().unwrap();
        let received = a.receive(&mut out, 8).unwrap();
        out.drain(..).for_each(|received| a.release(received.frame));
        a.audit().unwrap();
        let (device, output) = a.finish();
        device.audit().unwrap();
        (output, received)
    }

    #[test]
    fn both_directions_are_written_and_refused_frames_are_not() {
        let (output, received) = exchange(Vec::new());
        let pcap = output.unwrap().unwrap();
        assert_eq!(received, 2);
        // Magic of nanosecond pcap, version 2.4, zone and accuracy 0, snap length 65,535, Ethernet.
        let header = [0x4d, 0x3c, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 1, 0, 0, 0];
        assert_eq!(pcap[..24], header);
        let records: Vec<&[u8]> = pcap[24..].chunks(76).collect();
        assert_eq!(records.len(), 4);
        for (record, (nanos, to, fill)) in records.iter().zip([(1, B, 1), (2, B, 2), (3, A, 1), (3, A, 2)]) {
            assert_eq!(record[..4], 1_700_000_000_u32.to_le_bytes());
            assert_eq!(record[4..16], [nanos, 0, 0, 0, 60, 0, 0, 0, 60, 0, 0, 0]);
            assert_eq!((&record[16..22], record[75]), (&to[..], fill));
        }
    }

    #[test]
    fn a_full_disk_ends_the_capture_and_not_the_traffic() {
        let (output, received) = exchange(SmallDisk(24 + 76 + 16));
        assert_eq!(output.err().map(|error| error.kind()), Some(io::ErrorKind::StorageFull));
        assert_eq!(received, 2);
    }

    #[test]
    fn files_are_complete_after_finish() {
        let folder = spray_test_support::Folder::new();
        let path = folder.path().join("frames.pcap");
        let network = MemoryNetwork::new(MemoryConfig::default());
        let mut device = Capture::to_file(network.attach(A), &path).unwrap();
        let id = device.allocate().unwrap();
        device.transmit(id, 60).unwrap();
        let (_, output) = device.finish();
        output.unwrap();
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(bytes.len(), 24 + 16 + 60);
        let seconds = u32::from_le_bytes(bytes[24..28].try_into().unwrap());
        assert!(seconds > 1_700_000_000, "{seconds}");
    }

    #[test]
    fn off_is_the_device_alone() {
        let network = MemoryNetwork::new(MemoryConfig::default());
        let mut device = Capture::off(network.attach(A));
        let id = device.allocate().unwrap();
        device.frame_mut(&id)[..6].copy_from_slice(&A);
        device.transmit(id, 60).unwrap();
        device.flush().unwrap();
        assert_eq!(device.receive(&mut Vec::with_capacity(1), 1).unwrap(), 1);
        assert!(matches!(device.finish().1, Ok(None)));
    }
}
