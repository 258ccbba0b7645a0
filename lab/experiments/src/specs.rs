//! Maps host schemes to the files of `docs/specs` (without suffix) that specify them.

/// Host schemes that are specified in a file of another name.
const ELSEWHERE: [(&str, &str); 4] =
    [("ecmp", "reps"), ("ops", "reps"), ("mptcp", "subflow"), ("fixed-rate", "transport")];

/// Returns the specification of a balancer or congestion control among `files`: the file of its
/// name, the one in `ELSEWHERE`, or that of the scheme it is a variant of.
pub fn of_host_scheme<'a>(name: &str, files: &[&'a str]) -> Option<&'a str> {
    let elsewhere = ELSEWHERE.iter().find(|(scheme, _)| *scheme == name).map(|(_, file)| *file);
    let named = |wanted: &str| files.iter().find(|file| **file == wanted).copied();
    let variant = || files.iter().find(|file| name.starts_with(&format!("{file}-"))).copied();
    named(name).or_else(|| named(elsewhere?)).or_else(variant)
}
