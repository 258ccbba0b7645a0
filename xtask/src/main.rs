//! Set-up, build, demo and tests.
fn main() {}
