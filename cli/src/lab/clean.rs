//! `spray clean`.

use spray_experiments::switch::leftovers;
use spray_tools::failure::{Failure, Outcome};
use spray_tools::say;

/// Removes what killed processes left. Fails with 2 if some of it cannot be removed.
pub fn clean() -> Outcome {
    let left = leftovers();
    let removed = spray_experiments::switch::clean();
    say::object(&serde_json::json!({ "removed": removed }))?;
    removed.iter().for_each(|name| say!("removed {name}"));
    if left.is_empty() {
        say!("nothing was left behind");
    }
    match leftovers() {
        still if still.is_empty() => Ok(()),
        still => Err(Failure::refused(format!("cannot remove {}: run as root", still.join(", ")))),
    }
}
