//! Takes addresses out of a text.

use std::net::IpAddr;

use spray_nic::net::Interface;
use spray_nic::net::ethtool::DriverInfo;

/// What stands in the place of an address.
const LEFT_OUT: &str = "<address>";

/// What is an address, and what only looks like one.
pub(super) struct Addresses {
    /// The interface's Ethernet address as names of interfaces have it.
    mac: String,
    /// Versions of the driver and its firmware, which may have four numbers.
    versions: Vec<String>,
}

impl Addresses {
    pub(super) fn of(interface: &Interface, driver: &DriverInfo) -> Self {
        let words = |text: &str| text.split(|c| !is_part(c)).map(String::from).collect::<Vec<_>>();
        let mac = interface.mac.map(|byte| format!("{byte:02x}")).concat();
        Self { mac, versions: [words(&driver.version), words(&driver.firmware)].concat() }
    }

    /// The text without them.
    pub(super) fn shorten(&self, text: &str) -> String {
        let mut short = String::with_capacity(text.len());
        let mut rest = text;
        while !rest.is_empty() {
            let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            let (token, after) = rest.split_at(end);
            short.push_str(&self.token(token));
            let gap = after.find(is_part).unwrap_or(after.len());
            short.push_str(&after[..gap]);
            rest = &after[gap..];
        }
        short
    }

    /// A run of letters, digits, colons and dots; those at its end belong to the sentence.
    fn token(&self, token: &str) -> String {
        let bare = token.trim_end_matches([':', '.']);
        let is_ip = |text: &str| text != "::" && text.parse::<IpAddr>().is_ok();
        if is_ip(token) && !self.versions.iter().any(|version| version == token) {
            return LEFT_OUT.into();
        }
        if bare != token && is_ip(bare) || is_mac(bare) {
            return format!("{LEFT_OUT}{}", &token[bare.len()..]);
        }
        token.replace(&self.mac, LEFT_OUT)
    }
}

fn is_part(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == ':' || c == '.'
}

fn is_mac(text: &str) -> bool {
    let is_byte = |part: &str| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    text.split(':').count() == 6 && text.split(':').all(is_byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_left_out_and_versions_stay() {
        let mut interface = Interface::default();
        interface.mac = [2, 0, 0, 0xab, 0, 1];
        let mut driver = DriverInfo::default();
        driver.firmware = "229.0.109.0/pkg 229.1.2.3".into();
        let addresses = Addresses::of(&interface, &driver);
        let table = [
            ("10.1.2.3, fe80::1", "<address>, <address>"),
            ("192.0.2.9: the peer stopped.", "<address>: the peer stopped."),
            ("to 2001:db8::5%eth0 by 02:00:00:AB:00:02", "to <address>%eth0 by <address>"),
            ("enx020000ab0001 is another name", "enx<address> is another name"),
            (
                "firmware 229.0.109.0/pkg 229.1.2.3 at 0000:3b:00.0",
                "firmware 229.0.109.0/pkg 229.1.2.3 at 0000:3b:00.0",
            ),
            ("by the router 10.1.2.254: silent", "by the router <address>: silent"),
            ("path::to, 12:30, 16.0 GT/s", "path::to, 12:30, 16.0 GT/s"),
        ];
        for (text, expected) in table {
            assert_eq!(addresses.shorten(text), expected);
        }
    }
}
