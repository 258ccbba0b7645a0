//! The NIC does not depend on the laboratory, in code or in comments.

use spray_test_support::root;
use walkdir::WalkDir;

/// Source folders of the NIC, and the words that must not occur in them.
const NIC: [&str; 3] = ["nic/core", "nic/src", "nic/wire"];
const WORDS: [&str; 6] = ["dilat", "emulat", "simulat", "testbed", "virtual time", "virtual_time"];

#[test]
fn the_nic_does_not_mention_emulation() {
    let mut found = Vec::new();
    for entry in NIC.into_iter().flat_map(|folder| WalkDir::new(root().join(folder))) {
        let entry = entry.unwrap();
        if entry.path().extension().is_none_or(|extension| extension != "rs" && extension != "toml") {
            continue;
        }
        let text = std::fs::read_to_string(entry.path()).unwrap();
        for (number, line) in text.lines().enumerate() {
            let line = line.to_lowercase();
            found.extend(
                WORDS
                    .iter()
                    .filter(|word| line.contains(*word))
                    .map(|word| format!("{}:{}: {word}", entry.path().display(), number + 1)),
            );
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}
