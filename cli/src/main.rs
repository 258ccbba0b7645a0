//! The `spray` command.
fn main() {}
