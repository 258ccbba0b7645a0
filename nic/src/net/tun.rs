//! TUN devices with segmentation offload: IP packets of the kernel, up to 64 KiB each.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::net::IpAddr;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;

use rtnetlink::LinkUnspec;

use super::ethtool::interface_index;
use super::{NetError, netlink};
use crate::sys::check;

/// A queue of a TUN device. Every packet begins with a [`virtio_net_hdr`](Self::HEADER) in
/// little-endian order. Dropping the last queue removes the device.
#[derive(Debug)]
pub struct Tun {
    files: Arc<[File]>,
    own: usize,
    name: String,
    index: u32,
}

impl Tun {
    /// Bytes of the header before each packet: `struct virtio_net_hdr` of `linux/virtio_net.h`.
    pub const HEADER: usize = 10;

    /// Creates a device of this name and number of queues, each for a thread, in this thread's
    /// network namespace; the kernel replaces `%d` in the name by a number.
    ///
    /// # Errors
    /// The device exists, permissions are missing, or the kernel has no TUN devices.
    pub fn open(name: &str, queues: usize) -> io::Result<Vec<Self>> {
        let several = if queues > 1 { libc::IFF_MULTI_QUEUE } else { 0 };
        let (first, name) = Self::queue(name, several | libc::IFF_TUN_EXCL)?;
        let others = (1..queues).map(|_| Self::queue(&name, several).map(|(file, _)| file));
        let files: Arc<[File]> = std::iter::once(Ok(first)).chain(others).collect::<io::Result<_>>()?;
        Self::set_offloads(&files[0])?;
        let index = interface_index(&name).ok_or_else(|| io::Error::from_raw_os_error(libc::ENODEV))?;
        let open = |own: usize| Self { files: Arc::clone(&files), own, name: name.clone(), index };
        Ok((0..files.len()).map(open).collect())
    }

    /// Opens a queue of the device of this name, created if missing. Returns its full name.
    fn queue(name: &str, flags: libc::c_int) -> io::Result<(File, String)> {
        let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun")?;
        // SAFETY: `ifreq` is a plain C structure for which all zeroes is a value.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        if name.len() >= libc::IFNAMSIZ || name.contains('\0') {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "names of interfaces have 1 to 15 characters"));
        }
        for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
            *to = from as libc::c_char;
        }
        request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR | flags) as _;
        // SAFETY: TUNSETIFF accesses the request, which is live; its name ends in a NUL (see
        // above).
        check(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) })?;
        let name = request.ifr_name.iter().take_while(|&&byte| byte != 0).map(|&byte| byte as u8 as char).collect();
        Ok((file, name))
    }

    /// Enables the header, and packets before segmentation, on all queues.
    fn set_offloads(file: &File) -> io::Result<()> {
        let (header, little_endian) = (Self::HEADER as libc::c_int, 1 as libc::c_int);
        // SAFETY: both requests read an `int`, which is live.
        check(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETVNETHDRSZ, &raw const header) })?;
        // SAFETY: as above.
        check(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETVNETLE, &raw const little_endian) })?;
        let tcp = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;
        let udp = tcp | libc::TUN_F_USO4 | libc::TUN_F_USO6;
        // SAFETY: the argument is a plain number.
        let offload = |flags: libc::c_uint| check(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETOFFLOAD, flags) });
        // Kernels before 6.2 do not segment UDP.
        offload(udp).or_else(|_| offload(tcp))
    }

    /// Sets addresses with prefix lengths, MTU and transmit queue length in packets, and sets it
    /// up.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn set_up(&self, addresses: &[(IpAddr, u8)], mtu: u32, queue: u32) -> Result<(), NetError> {
        netlink(async |handle| {
            let link = LinkUnspec::new_with_index(self.index).mtu(mtu).txqueuelen(queue).up().build();
            handle.link().set(link).execute().await.map_err(NetError::netlink)?;
            for &(address, prefix) in addresses {
                handle.address().add(self.index, address, prefix).execute().await.map_err(NetError::netlink)?;
            }
            Ok(())
        })
    }

    /// Reads a packet with its header from this queue, if there is one, into 64 KiB and the header.
    ///
    /// # Errors
    /// The device is gone.
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match (&self.files[self.own]).read(buffer) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes a packet with its header to the queue of its flow. The kernel sends a flow to the
    /// queue to which its reverse packets were last written: one queue per flow, regardless of the
    /// thread, preserves order.
    ///
    /// # Errors
    /// The kernel refuses: header and packet contradict each other, or the device is down.
    pub fn write(&self, flow: u16, packet: &[u8]) -> io::Result<()> {
        (&self.files[usize::from(flow) % self.files.len()]).write(packet).map(drop)
    }

    /// Returns a descriptor that is readable while a packet waits.
    pub fn wake_fd(&self) -> RawFd {
        self.files[self.own].as_raw_fd()
    }

    /// Returns the device's name.
    pub fn name(&self) -> &str {
        &self.name
    }
}
