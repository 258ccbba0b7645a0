//! Parameters of schemes by name, as `--param` and scenario files give them.

use spray_core::cc::CcSchemes;
use spray_core::path::Schemes;

use super::Transport;

impl Transport {
    /// Sets a parameter: `flowcut.rtt_ratio` of that scheme, `window_bytes` of the chosen congestion control.
    ///
    /// # Errors
    /// What is allowed, when there is no such parameter or the text is no value of it.
    pub fn set_param(&mut self, name: &str, text: &str) -> Result<(), String> {
        let (scheme, param) = name.split_once('.').unwrap_or((self.cc.name(), name));
        let group = self.schemes.group(scheme).or_else(|| self.cc_schemes.group(scheme));
        let Some(group) = group else {
            let names = [Schemes::names(), CcSchemes::names()].concat().join(", ");
            return Err(format!("`{scheme}` has no parameters; allowed: {names}"));
        };
        group.set(param, text).map_err(|error| format!("`{name}` = `{text}`: {error}"))
    }
}
