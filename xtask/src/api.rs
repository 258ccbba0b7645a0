//! Compares the public names of the published crates, by default features, with `nic/api.txt`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::demo::target;
use crate::sh::{self, Failure, Outcome};

/// The crates by package and by module name.
const CRATES: [(&str, &str); 3] =
    [("spray-wire", "spray_wire"), ("spray-core", "spray_core"), ("spray-nic", "spray_nic")];
/// Prefixes of rustdoc's page names, by kind of item.
const ITEMS: [&str; 8] = ["struct", "enum", "trait", "fn", "macro", "constant", "static", "type"];
/// Prefixes of rustdoc's anchors, by kind of part.
const PARTS: [&str; 6] = ["method", "tymethod", "variant", "structfield", "associatedconstant", "associatedtype"];

pub fn check() -> Outcome {
    let (found, file) = (names()?, sh::root().join("nic/api.txt"));
    let listed: BTreeSet<String> = sh::read_text(&file)?.lines().map(String::from).collect();
    let gone = listed.difference(&found).map(|name| format!("- {name}\n"));
    let new = found.difference(&listed).map(|name| format!("+ {name}\n"));
    let changes: String = gone.chain(new).collect();
    if changes.is_empty() {
        return Ok(());
    }
    let what = "nic/api.txt differs from the public API; update it with `cargo xtask api`, and describe the change in the changelog";
    Err(Failure::failed(format!("{what}:\n{changes}")))
}

/// `cargo xtask api`: writes the list.
pub fn write() -> Outcome {
    let text: String = names()?.iter().flat_map(|name| [name, "\n"]).collect();
    sh::write(&sh::root().join("nic/api.txt"), text)
}

fn names() -> Outcome<BTreeSet<String>> {
    let folder = target().join("api");
    // Removes pages of items that no longer exist.
    let _ = fs::remove_dir_all(folder.join("doc"));
    let mut cargo = sh::cargo();
    cargo.args(["doc", "--profile", sh::QUICK, "--no-deps", "--target-dir"]).arg(&folder);
    sh::run(cargo.args(CRATES.iter().flat_map(|(package, _)| ["--package", package])))?;
    let mut names = BTreeSet::new();
    for (_, name) in CRATES {
        read(&folder.join("doc").join(name), name, &mut names)?;
    }
    Ok(names)
}

fn read(folder: &Path, module: &str, names: &mut BTreeSet<String>) -> Outcome {
    let fail = |error| Failure::of_file(folder, &error);
    for entry in fs::read_dir(folder).map_err(fail)? {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name())).map_err(fail)?;
        let name = name.to_string_lossy();
        if path.is_dir() {
            read(&path, &format!("{module}::{name}"), names)?;
        } else if let Some((_, item)) = name.strip_suffix(".html").and_then(|name| name.split_once('.'))
            && ITEMS.iter().any(|kind| name.starts_with(&format!("{kind}.")))
        {
            names.extend(parts(&sh::read_text(&path)?).into_iter().map(|part| format!("{module}::{item}::{part}")));
            names.insert(format!("{module}::{item}"));
        }
    }
    Ok(())
}

/// Returns the parts of an item's page, without those of implemented traits.
fn parts(page: &str) -> BTreeSet<String> {
    let own = page.split("id=\"trait-implementations\"").next().unwrap_or_default();
    let anchors = own.split("id=\"").skip(1).filter_map(|rest| rest.split('"').next()?.split_once('.'));
    anchors.filter(|(kind, _)| PARTS.contains(kind)).map(|(_, name)| name.replace(".field.", "::")).collect()
}

#[cfg(test)]
mod tests {
    use super::parts;

    #[test]
    fn parts_of_an_item_are_attributed_to_it() {
        let page = r#"<section id="method.new"><span id="structfield.name"></span><section id="variant.Gone.field.at">
            <h2 id="fields"></h2><h2 id="trait-implementations"></h2><section id="method.clone">"#;
        assert_eq!(parts(page).into_iter().collect::<Vec<_>>(), ["Gone::at", "name", "new"]);
    }
}
