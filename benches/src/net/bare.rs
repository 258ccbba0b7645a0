//! Bare frames over two devices: the upper bound for a transport over the same devices.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use spray_nic::device::{Device, FrameGenerator, Received};
use spray_nic::driver::DriverOptions;

use super::measure::{Arrivals, Latency, REQUEST_BYTES, Throughput, latency, now, record, run_both};

/// Frames per turn of either loop, as in endpoints.
const BATCH: usize = 64;
/// Time that the receiver waits for late frames.
const GRACE: Duration = Duration::from_millis(20);
/// Time that a request or answer is waited for.
const PATIENCE: Duration = Duration::from_millis(50);
/// A full window without progress for this time is considered lost.
const STALL: Duration = Duration::from_millis(2);

/// The frames and the pace of a measurement.
#[derive(Clone, Copy, Debug)]
pub struct BareConfig<'a> {
    /// The whole frame, no longer than [`max_frame`](spray_nic::device::DeviceInfo) of the sender.
    pub template: &'a [u8],
    /// The time to send for.
    pub duration: Duration,
    /// Maximum number of frames in flight, at least 1. The ring of veth holds 256.
    pub window: u32,
    /// Scheduling of the sending and the receiving thread.
    pub threads: [DriverOptions; 2],
}

/// Sends copies of the template, and counts the frames of its length that arrive. Fails when a
/// device fails, or the template is too long ([`io::ErrorKind::InvalidInput`]).
pub fn run<D: Device + Send>(sender: &mut D, receiver: &mut D, config: &BareConfig<'_>) -> io::Result<Throughput> {
    let bytes = config.template.len();
    if bytes > sender.info().max_frame {
        let message = format!("a frame of {bytes} bytes, the device takes {}", sender.info().max_frame);
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    let received = AtomicU64::new(0);
    let send = |stop: &AtomicBool| Source::new(sender, config).run(stop, &received);
    let (sent, arrivals) = run_both(config.threads, send, |stop| receive(receiver, bytes, stop, &received))?;
    let (sent, arrivals) = (sent?, arrivals?);
    Ok(Throughput { sent, received: arrivals.count, bytes, receiving: arrivals.time() })
}

struct Source<'a, D> {
    device: &'a mut D,
    config: &'a BareConfig<'a>,
    frames: FrameGenerator,
    arrivals: Vec<Received>,
    sent: u64,
    window: Window,
}

impl<'a, D: Device> Source<'a, D> {
    fn new(device: &'a mut D, config: &'a BareConfig<'a>) -> Self {
        let (window, frames) = (Window::new(config.window), FrameGenerator::new(config.template));
        Self { device, config, frames, arrivals: Vec::with_capacity(BATCH), sent: 0, window }
    }

    fn run(mut self, stop: &AtomicBool, received: &AtomicU64) -> io::Result<u64> {
        let start = now();
        loop {
            let time = now();
            if time - start >= self.config.duration || stop.load(Ordering::Acquire) {
                break;
            }
            self.discard_arrivals()?;
            let room = self.window.room(self.sent, received.load(Ordering::Acquire), time);
            let sent = self.frames.send(self.device, room.min(BATCH as u64));
            self.sent += sent;
            self.device.flush()?;
            if sent == 0 {
                thread::yield_now();
            }
        }
        Ok(self.sent)
    }

    fn discard_arrivals(&mut self) -> io::Result<()> {
        self.device.receive(&mut self.arrivals, BATCH)?;
        for arrival in self.arrivals.drain(..) {
            self.device.release(arrival.frame);
        }
        Ok(())
    }
}

struct Window {
    limit: u64,
    /// Frames considered lost.
    lost: u64,
    received: u64,
    progress_at: Option<Instant>,
}

impl Window {
    fn new(limit: u32) -> Self {
        Self { limit: limit.into(), lost: 0, received: 0, progress_at: None }
    }

    fn room(&mut self, sent: u64, received: u64, now: Instant) -> u64 {
        let limit = self.limit;
        let progress_at = *self.progress_at.get_or_insert(now);
        let in_flight = sent.saturating_sub(received + self.lost);
        if received != self.received || in_flight < limit {
            (self.received, self.progress_at) = (received, Some(now));
        } else if now - progress_at >= STALL {
            self.lost += in_flight;
            self.progress_at = Some(now);
            return limit;
        }
        limit.saturating_sub(in_flight)
    }
}

fn receive<R: Device>(device: &mut R, bytes: usize, stop: &AtomicBool, received: &AtomicU64) -> io::Result<Arrivals> {
    let mut batch = Vec::with_capacity(BATCH);
    let mut arrivals = Arrivals::default();
    let mut idle_since = None;
    loop {
        if device.receive(&mut batch, BATCH)? > 0 {
            idle_since = None;
            arrivals.add(batch.iter().filter(|arrival| arrival.len as usize == bytes).count() as u64);
            batch.drain(..).for_each(|arrival| device.release(arrival.frame));
            received.store(arrivals.count, Ordering::Release);
        } else if stop.load(Ordering::Acquire) && *idle_since.get_or_insert_with(now) + GRACE <= now() {
            return Ok(arrivals);
        } else {
            thread::yield_now();
        }
        device.flush()?;
    }
}

/// Sends requests for `duration`, which are answered at once, and returns the round-trip times. The
/// message is at the end of the `frames` of each direction. A lost one costs its timeout.
pub(super) fn exchange<D: Device + Send>(
    [asking, answering]: [&mut D; 2],
    frames: [Vec<u8>; 2],
    duration: Duration,
    threads: [DriverOptions; 2],
) -> io::Result<Latency> {
    let [there, back] = frames;
    let (mut asking, mut answering) = (Talker::new(asking, there), Talker::new(answering, back));
    let (took, answered) = run_both(threads, |stop| asking.ask(duration, stop), |stop| answering.answer(stop))?;
    answered.and(took)
}

struct Talker<'a, D> {
    device: &'a mut D,
    frame: Vec<u8>,
    arrivals: Vec<Received>,
}

impl<'a, D: Device> Talker<'a, D> {
    /// `frame` is the template of sent frames. Received ones have the same length.
    fn new(device: &'a mut D, frame: Vec<u8>) -> Self {
        Self { device, frame, arrivals: Vec::with_capacity(BATCH) }
    }

    fn ask(&mut self, duration: Duration, stop: &AtomicBool) -> io::Result<Latency> {
        let (mut took, mut message, start) = (latency(), [0; REQUEST_BYTES], now());
        for number in 0u64.. {
            let sent_at = now();
            if sent_at - start >= duration || stop.load(Ordering::Acquire) {
                break;
            }
            message[..8].copy_from_slice(&number.to_le_bytes());
            self.send_message(&message)?;
            // A late answer belongs to an earlier request.
            while self.wait_for_message(&mut message)? && message[..8] != number.to_le_bytes() {}
            record(&mut took, sent_at.elapsed());
        }
        Ok(took)
    }

    fn answer(&mut self, stop: &AtomicBool) -> io::Result<()> {
        let mut message = [0; REQUEST_BYTES];
        while !stop.load(Ordering::Acquire) {
            if self.wait_for_message(&mut message)? {
                self.send_message(&message)?;
            }
        }
        Ok(())
    }

    fn send_message(&mut self, message: &[u8; REQUEST_BYTES]) -> io::Result<()> {
        let bytes = self.frame.len();
        if let Some(last) = self.frame.last_chunk_mut() {
            *last = *message;
        }
        // Without a free frame the message counts as lost.
        if let Some(id) = self.device.allocate() {
            self.device.frame_mut(&id)[..bytes].copy_from_slice(&self.frame);
            if let Err(id) = self.device.transmit(id, bytes as u32) {
                self.device.release(id);
            }
        }
        self.device.flush()
    }

    /// Waits for a message; returns false if none arrives within [`PATIENCE`].
    fn wait_for_message(&mut self, message: &mut [u8; REQUEST_BYTES]) -> io::Result<bool> {
        let begun = now();
        while begun.elapsed() < PATIENCE {
            if self.take(message)? {
                return Ok(true);
            }
            thread::yield_now();
        }
        Ok(false)
    }

    /// Receives what has arrived; returns whether it includes a message.
    fn take(&mut self, message: &mut [u8; REQUEST_BYTES]) -> io::Result<bool> {
        self.device.receive(&mut self.arrivals, BATCH)?;
        let mut has_arrived = false;
        for arrival in self.arrivals.drain(..) {
            let frame = self.device.frame(&arrival.frame, arrival.len);
            if let Some(received) = frame.last_chunk().filter(|_| frame.len() == self.frame.len()) {
                (*message, has_arrived) = (*received, true);
            }
            self.device.release(arrival.frame);
        }
        Ok(has_arrived)
    }
}

#[cfg(test)]
mod tests;
