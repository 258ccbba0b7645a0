//! Which file of `docs/specs` specifies a scheme of hosts: its name without the suffix.

/// Specifications of host schemes whose own name no file has.
const ELSEWHERE: [(&str, &str); 4] =
    [("ecmp", "reps"), ("ops", "reps"), ("mptcp", "subflow"), ("fixed-rate", "transport")];

/// The specification of a balancer or a congestion control among `files`: the file of its own name, the one that is known to hold it, or
/// that of the scheme it is a variant of.
pub fn of_host_scheme<'a>(name: &str, files: &[&'a str]) -> Option<&'a str> {
    let elsewhere = ELSEWHERE.iter().find(|(scheme, _)| *scheme == name).map(|(_, file)| *file);
    let named = |wanted: &str| files.iter().find(|file| **file == wanted).copied();
    let variant = || files.iter().find(|file| name.starts_with(&format!("{file}-"))).copied();
    named(name).or_else(|| named(elsewhere?)).or_else(variant)
}
