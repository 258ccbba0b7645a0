//! What a change must pass: the tests, then a short demo as a user would run it.

use crate::sh::{self, Outcome};

/// `cargo xtask ci`: `test`, and as root also a short demo.
pub fn ci() -> Outcome {
    crate::test::test()?;
    if sh::is_root() { crate::demo::demo(&["--bytes".to_string(), "1000000".to_string()]) } else { Ok(()) }
}
