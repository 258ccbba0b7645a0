//! Many UDP datagrams per system call: `sendmmsg` and `recvmmsg` over buffers laid out once.

use std::io;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::ptr;

/// A batch of equal buffers with the headers that the kernel wants for them.
pub(super) struct Batch {
    /// Only the kernel reads or writes it, through `vectors`.
    _buffers: Vec<u8>,
    /// Only `headers` points at it.
    _vectors: Vec<libc::iovec>,
    headers: Vec<libc::mmsghdr>,
}

impl Batch {
    /// Lay out `count` buffers of `bytes` each, filled with zeros.
    pub fn new(count: usize, bytes: usize) -> Self {
        let mut buffers = vec![0u8; count * bytes];
        let mut vectors: Vec<libc::iovec> = buffers
            .chunks_exact_mut(bytes)
            .map(|buffer| libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: bytes })
            .collect();
        let headers = vectors.iter_mut().map(header).collect();
        Self { _buffers: buffers, _vectors: vectors, headers }
    }

    /// Send the batch over a connected socket; returns how many datagrams the kernel took.
    pub fn send(&mut self, socket: &UdpSocket) -> io::Result<usize> {
        // SAFETY: `headers` holds that many headers; each points at one vector and that at one buffer, all on the heap in
        // vectors that are never resized and live as long as `self`, which is borrowed exclusively.
        let sent = unsafe { libc::sendmmsg(socket.as_raw_fd(), self.headers.as_mut_ptr(), self.headers.len() as _, 0) };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }

    /// Wait for one datagram, take what else is there; returns how many of them are exactly `bytes` long.
    pub fn receive(&mut self, socket: &UdpSocket, bytes: usize) -> io::Result<usize> {
        let (headers, count) = (self.headers.as_mut_ptr(), self.headers.len());
        // SAFETY: as in `send`; the kernel writes into the buffers and into `msg_len` and `msg_flags` of the headers.
        let received = unsafe {
            libc::recvmmsg(socket.as_raw_fd(), headers, count as _, libc::MSG_WAITFORONE as _, ptr::null_mut())
        };
        let received = usize::try_from(received).map_err(|_| io::Error::last_os_error())?;
        Ok(self.headers[..received].iter().filter(|header| header.msg_len as usize == bytes).count())
    }
}

fn header(vector: &mut libc::iovec) -> libc::mmsghdr {
    // SAFETY: a C struct of integers and pointers, for which all zeros is a value: no name, no control data.
    let mut header: libc::mmsghdr = unsafe { std::mem::zeroed() };
    header.msg_hdr.msg_iov = vector;
    header.msg_hdr.msg_iovlen = 1;
    header
}
