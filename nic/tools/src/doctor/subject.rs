//! The interface under examination.

use std::fs;
use std::path::{Path, PathBuf};

use spray_nic::net::drivers::{self, Kernel};
use spray_nic::net::ethtool::{Channels, DriverInfo, Ethtool, Feature};
use spray_nic::net::xdp_features::XdpFeatures;
use spray_nic::net::{Interface, NetError};

#[derive(Debug)]
pub(super) struct Subject {
    pub(super) asked: String,
    pub(super) interface: Interface,
    /// All interfaces of the network namespace.
    pub(super) all: Vec<Interface>,
    pub(super) ethtool: Ethtool,
    pub(super) driver: DriverInfo,
    pub(super) kernel: Kernel,
    /// `None` if the kernel does not report it.
    pub(super) declared: Option<XdpFeatures>,
    pub(super) channels: Channels,
    pub(super) features: Vec<Feature>,
    /// The folder in /sys, if the device is visible.
    pub(super) device: Option<PathBuf>,
}

impl Subject {
    pub(super) fn find(name: &str) -> Result<Self, NetError> {
        let interface = Interface::find(name)?;
        let ethtool = Ethtool::open(&interface.name)?;
        let driver = ethtool.driver().unwrap_or_default();
        Ok(Self {
            asked: name.into(),
            all: Interface::all()?,
            kernel: drivers::running_kernel().unwrap_or_default(),
            declared: XdpFeatures::query(interface.index).ok(),
            channels: ethtool.channels().unwrap_or_default(),
            features: ethtool.features()?,
            device: device(&driver, &interface),
            interface,
            ethtool,
            driver,
        })
    }

    pub(super) fn name(&self) -> &str {
        &self.interface.name
    }

    /// Receive queues; one if unknown.
    pub(super) fn queues(&self) -> u32 {
        self.channels.rx_queues().max(1)
    }

    pub(super) fn is_on(&self, feature: &str) -> bool {
        self.features.iter().any(|found| found.name == feature && found.on)
    }

    /// The names in `features` that are on and can be turned off.
    pub(super) fn on<'a>(&self, features: &[&'a str]) -> Vec<&'a str> {
        let can = |name: &str| self.features.iter().any(|found| found.name == name && found.on && !found.fixed);
        features.iter().copied().filter(|name| can(name)).collect()
    }

    /// The bridge or bond that it is a member of.
    pub(super) fn master(&self) -> Option<&Interface> {
        self.all.iter().find(|other| Some(other.index) == self.interface.master)
    }

    pub(super) fn device_file(&self, name: &str) -> Option<String> {
        self.device.as_ref().and_then(|device| text(device.join(name)))
    }
}

/// The content of a small file, trimmed.
pub(super) fn text(path: impl AsRef<Path>) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_string())
}

/// The device's folder: by the driver's bus address, or that of the interface.
fn device(driver: &DriverInfo, interface: &Interface) -> Option<PathBuf> {
    let by_bus = Path::new("/sys/bus/pci/devices").join(&driver.bus);
    if !driver.bus.is_empty() && by_bus.exists() {
        return Some(by_bus);
    }
    interface.sysfs_dir().map(|folder| folder.join("device")).filter(|device| device.exists())
}
