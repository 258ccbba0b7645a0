//! Takes addresses out of a text.

use std::net::{IpAddr, Ipv6Addr};

use spray_nic::net::Interface;

/// What stands in the place of an address.
const LEFT_OUT: &str = "<address>";

/// The addresses that are known, of this machine and its peer. Of others only those of IPv6 and Ethernet are found: a version of
/// firmware may look like one of IPv4.
pub(super) struct Addresses(Vec<String>);

impl Addresses {
    pub(super) fn of(interface: &Interface, peer: Option<IpAddr>) -> Self {
        let mut known: Vec<String> = interface.addresses.iter().copied().chain(peer).map(|ip| ip.to_string()).collect();
        // As names of interfaces and other names have it.
        known.push(interface.mac.map(|byte| format!("{byte:02x}")).concat());
        Self(known)
    }

    /// The text without them.
    pub(super) fn shorten(&self, text: &str) -> String {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == ':' || c == '.';
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
        let tail = &token[bare.len()..];
        if token.parse::<Ipv6Addr>().is_ok() && token != "::" {
            return LEFT_OUT.into();
        }
        if self.0.iter().any(|known| known == bare) || bare.parse::<Ipv6Addr>().is_ok() || is_mac(bare) {
            return format!("{LEFT_OUT}{tail}");
        }
        let mac = self.0.last().expect("the Ethernet address is the last");
        token.replace(mac, LEFT_OUT)
    }
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
        interface.addresses = vec!["10.1.2.3".parse().unwrap(), "fe80::1".parse().unwrap()];
        let addresses = Addresses::of(&interface, "192.0.2.9".parse().ok());
        let table = [
            ("10.1.2.3, fe80::1", "<address>, <address>"),
            ("192.0.2.9: the peer stopped.", "<address>: the peer stopped."),
            ("to 2001:db8::5%eth0 by 02:00:00:AB:00:02", "to <address>%eth0 by <address>"),
            ("enx020000ab0001 is another name", "enx<address> is another name"),
            ("firmware 229.0.109.0 at 0000:3b:00.0, 10.1.2.30", "firmware 229.0.109.0 at 0000:3b:00.0, 10.1.2.30"),
            ("path::to, 12:30, 16.0 GT/s", "path::to, 12:30, 16.0 GT/s"),
        ];
        for (text, expected) in table {
            assert_eq!(addresses.shorten(text), expected);
        }
    }
}
