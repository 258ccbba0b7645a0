use std::path::Path;
use std::process::Command;

/// Two network namespaces, each with an `eth0`, joined by a veth: 10.78.0.1/24 and 10.78.0.2/24,
/// MTU 3498. Removed when dropped.
pub struct Pair([String; 2]);

impl Pair {
    /// Creates the namespaces, which takes root. The error is the command that failed.
    pub fn new(name: &str) -> Result<Self, String> {
        // The prefix makes `spray clean` remove leftovers.
        let pair = Self([0, 1].map(|side| format!("spray-{}-{name}{side}", std::process::id())));
        let [near, far] = &pair.0;
        for line in [
            format!("netns add {near}"),
            format!("netns add {far}"),
            format!("-n {near} link add eth0 mtu 3498 type veth peer name eth0 mtu 3498 netns {far}"),
            format!("-n {near} address add 10.78.0.1/24 dev eth0"),
            format!("-n {far} address add 10.78.0.2/24 dev eth0"),
            format!("-n {near} link set eth0 up"),
            format!("-n {far} link set eth0 up"),
        ] {
            let ended = Command::new("ip").args(line.split(' ')).status();
            if !ended.is_ok_and(|status| status.success()) {
                return Err(format!("`ip {line}` failed"));
            }
        }
        Ok(pair)
    }

    /// Returns a command that runs `program` in the first or the second namespace.
    #[must_use]
    pub fn command(&self, side: usize, program: &Path) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.0[side]]).arg(program);
        command
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        self.0.iter().for_each(|name| drop(Command::new("ip").args(["netns", "del", name]).status()));
    }
}
