//! No files of a crate import each other, directly or indirectly.
//!
//! A file depends on the file that defines a name, regardless of the module through which it is
//! imported: a re-export is no import of its own. Items under `#[cfg(test)]` are ignored. Method
//! calls are not detected.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use spray_test_support::{Folder, root};

/// Crates without import cycles, by their root file.
const CRATES: [&str; 20] = [
    "benches/src/lib.rs",
    "cli/src/main.rs",
    "ebpf/src/lib.rs",
    "fuzz/src/lib.rs",
    "lab/experiments/src/lib.rs",
    "lab/sim/src/lib.rs",
    "lab/testbed/src/lib.rs",
    "nic/capture/src/lib.rs",
    "nic/core/src/lib.rs",
    "nic/libfabric/src/lib.rs",
    "nic/settings/src/lib.rs",
    "nic/src/lib.rs",
    "nic/tools/src/lib.rs",
    "nic/wire/src/lib.rs",
    "switch-emu/fabric/src/lib.rs",
    "switch-emu/pipeline/src/lib.rs",
    "switch-emu/switch/src/lib.rs",
    "tests/src/lib.rs",
    "tests/support/src/lib.rs",
    "xtask/src/main.rs",
];
/// Words before the name of an item.
const KEYWORDS: [&str; 9] = ["const", "enum", "fn", "macro_rules", "static", "struct", "trait", "type", "union"];
/// The maximum number of re-exports between a name and its item.
const DEPTH: usize = 12;

/// The module of a file.
#[derive(Default)]
struct Module {
    file: PathBuf,
    parent: usize,
    children: BTreeMap<String, usize>,
    items: BTreeSet<String>,
    imports: Vec<Import>,
    /// The paths used by the code outside of imports, each as its segments.
    named: BTreeSet<Vec<String>>,
}

#[derive(Default)]
struct Import {
    path: Vec<String>,
    /// The imported name; `*` for everything.
    name: String,
    is_public: bool,
}

/// Returns the words, `::` and single characters of a source, without comments, string literals,
/// lifetimes and items under `#[cfg(test)]`.
fn tokens(source: &str) -> Vec<String> {
    let (mut tokens, mut rest) = (Vec::new(), source);
    while let Some(first) = rest.chars().next() {
        let word = |from: usize| rest[from..].find(|c| !is_of_word(c)).map_or(rest.len(), |length| from + length);
        let behind = |from: usize, end: &str| rest[from..].find(end).map_or(rest.len(), |at| from + at + end.len());
        let is_end = |at: &usize| rest[..*at].bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 0;
        let (length, counts) = match rest.as_bytes() {
            [b'/', b'/', ..] => (behind(2, "\n"), false),
            [b'"', ..] => {
                let end = rest.match_indices('"').map(|(at, _)| at).skip(1).find(is_end);
                (end.map_or(rest.len(), |at| at + 1), false)
            }
            [b'\'', b'\\', ..] => (behind(3, "'"), false),
            [b'\'', _, b'\'', ..] => (3, false),
            [b'\'', ..] => (word(1), false),
            [b':', b':', ..] => (2, true),
            _ => (word(0).max(first.len_utf8()), !first.is_whitespace()),
        };
        tokens.extend(counts.then(|| rest[..length].to_string()));
        rest = &rest[length..];
    }
    without_tests(&tokens)
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn without_tests(tokens: &[String]) -> Vec<String> {
    let (mut kept, mut rest) = (vec![], tokens);
    while let Some((first, others)) = rest.split_first() {
        if !rest.iter().take(7).map(String::as_str).eq(["#", "[", "cfg", "(", "test", ")", "]"]) {
            kept.push(first.clone());
            rest = others;
            continue;
        }
        let mut open = 0;
        let ends = |token: &String| {
            open += i32::from("([{".contains(token)) - i32::from(")]}".contains(token));
            open == 0 && ";},".contains(token)
        };
        rest = rest.iter().position(ends).map_or(&[], |at| &rest[at + 1..]);
    }
    kept
}

/// Reads the import tree that starts at `tokens[at]`, below `above`; returns the index after it.
fn read_import(tokens: &[String], mut at: usize, above: &[String], is_public: bool, found: &mut Vec<Import>) -> usize {
    let mut path = above.to_vec();
    while !["{", "}", ",", ";", "as"].contains(&tokens[at].as_str()) {
        path.extend((tokens[at] != "::").then(|| tokens[at].clone()));
        at += 1;
    }
    if tokens[at] == "{" {
        while tokens[at] != "}" {
            at = read_import(tokens, at + 1, &path, is_public, found);
        }
        return at + 1;
    }
    if path.len() == above.len() {
        // After the last comma.
        return at;
    }
    path.pop_if(|last| last == "self");
    let mut name = path.last().cloned().unwrap_or_default();
    if tokens[at] == "as" {
        name.clone_from(&tokens[at + 1]);
        at += 2;
    }
    path.pop_if(|last| last == "*");
    found.push(Import { path, name, is_public });
    at
}

/// Returns the file of a module that `source` declares, by the usual location or by an attribute.
fn file_of(source: &str, beside: &Path, folder: &Path, name: &str) -> PathBuf {
    let named = [folder.join(name).with_extension("rs"), folder.join(name).join("mod.rs")];
    let by_attribute = || {
        let (before, _) = source.split_once(&format!("mod {name};"))?;
        let (_, path) = before.rsplit_once("#[path = \"")?;
        Some(beside.join(path.split_once('"')?.0))
    };
    let found = named.into_iter().find(|file| file.exists()).or_else(by_attribute);
    found.unwrap_or_else(|| panic!("{}: no file of `mod {name}`", beside.display()))
}

/// Adds the module of `file` and its submodules; returns its number.
fn read(file: &Path, parent: usize, modules: &mut Vec<Module>) -> usize {
    let source = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let (number, tokens) = (modules.len(), tokens(&source));
    let mut module = Module { file: file.into(), parent, ..Module::default() };
    modules.push(Module::default());
    let is_root = ["mod.rs", "lib.rs", "main.rs"].iter().any(|name| file.ends_with(name));
    let folder = if is_root { file.parent().expect("a file has a folder").into() } else { file.with_extension("") };
    let mut at = 0;
    while at < tokens.len() {
        let next = tokens.get(at + 1).map_or("", String::as_str);
        if tokens[at] == "use" {
            let is_public = at > 0 && ["pub", ")"].contains(&tokens[at - 1].as_str());
            at = read_import(&tokens, at + 1, &[], is_public, &mut module.imports);
        } else if tokens[at] == "mod" && tokens[at + 2] == ";" {
            let child = file_of(&source, &file.with_file_name(""), &folder, next);
            module.children.insert(next.into(), read(&child, number, modules));
            at += 2;
        } else if KEYWORDS.contains(&tokens[at].as_str()) {
            // `fn(` and the `const` of a pointer are not followed by a name.
            let name = &tokens[at + if next == "!" { 2 } else { 1 }];
            let is_item = name.starts_with(is_of_word) && at.checked_sub(1).is_none_or(|at| tokens[at] != "*");
            module.items.extend(is_item.then(|| name.clone()));
            at += 1;
        } else {
            let is_last = |at: &usize| tokens.get(at + 1).is_none_or(|next| next != "::");
            let last = (at..tokens.len()).step_by(2).find(is_last).unwrap_or(at);
            module.named.insert(tokens[at..=last].iter().step_by(2).cloned().collect());
            at = last + 1;
        }
    }
    modules[number] = module;
    number
}

/// Returns the module that defines the item named by `path` in `module`, and whether the path names
/// the module itself. A name after that of a module is assumed to be defined in this module,
/// because a macro may define it.
fn resolve(modules: &[Module], module: usize, path: &[String], is_behind: bool, depth: usize) -> Option<(usize, bool)> {
    let this = &modules[module];
    let depth = depth.checked_sub(1)?;
    let Some((first, rest)) = path.split_first() else { return Some((module, true)) };
    let go_on = |found: (usize, bool)| if found.1 { resolve(modules, found.0, rest, true, depth) } else { Some(found) };
    let followed = |import: &Import| resolve(modules, module, &import.path, false, depth);
    match first.as_str() {
        "crate" => return go_on((0, true)),
        "super" => return go_on((this.parent, true)),
        "self" => return go_on((module, true)),
        _ => {}
    }
    let imports = this.imports.iter().filter(|import| import.name == *first && import.path[0] != *first);
    let found = imports.filter_map(followed).chain(this.children.get(first).map(|child| (*child, true)));
    let mut found: Vec<_> = found.collect();
    // A module and an item may have the same name; a path that ends there refers to the item.
    found.sort_by_key(|(_, is_module)| *is_module == rest.is_empty());
    let own = this.items.contains(first).then_some((module, false));
    let by_name = found.into_iter().filter_map(go_on).chain(own).min_by_key(|found| found.1);
    let all = this.imports.iter().filter(|import| import.name == "*").filter_map(followed);
    let strictly = |found: (usize, bool)| resolve(modules, found.0, path, false, depth);
    let by_all = || all.filter(|found| found.1 && found.0 != module).find_map(strictly);
    let is_named = this.imports.iter().any(|import| import.name == *first) || this.children.contains_key(first);
    by_name.or_else(by_all).or((is_behind && !is_named).then_some((module, false)))
}

/// Returns the names that each file imports from each other file of its crate.
fn edges(modules: &[Module]) -> BTreeMap<(usize, usize), BTreeSet<String>> {
    let mut edges = BTreeMap::<_, BTreeSet<_>>::new();
    for (from, module) in modules.iter().enumerate() {
        let imports = module.imports.iter().filter(|import| !import.is_public && import.name != "*");
        for path in module.named.iter().chain(imports.map(|import| &import.path)) {
            if let Some((to, false)) = resolve(modules, from, path, false, DEPTH).filter(|found| found.0 != from) {
                edges.entry((from, to)).or_default().insert(path.join("::"));
            }
        }
    }
    edges
}

/// Returns the files of each import cycle, and the names that they import from each other.
fn circles(first: &Path) -> Vec<String> {
    let mut modules = vec![];
    read(first, 0, &mut modules);
    let edges = edges(&modules);
    let mut reach: BTreeSet<(usize, usize)> = edges.keys().copied().collect();
    let from = |reach: &BTreeSet<_>, from| reach.range((from, 0)..(from + 1, 0)).map(|(_, to)| *to).collect::<Vec<_>>();
    for between in 0..modules.len() {
        let onward = from(&reach, between);
        let sources: Vec<_> = reach.iter().filter(|pair| pair.1 == between).map(|pair| pair.0).collect();
        reach.extend(sources.into_iter().flat_map(|source| onward.iter().map(move |to| (source, *to))));
    }
    let name = |number: usize| modules[number].file.strip_prefix(root()).unwrap_or(&modules[number].file).display();
    let mut circles = BTreeMap::<usize, String>::new();
    for ((source, to), names) in edges.iter().filter(|((source, to), _)| reach.contains(&(*to, *source))) {
        let least = from(&reach, *source).into_iter().find(|at| reach.contains(&(*at, *source)));
        let names = names.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        let edge = format!("\n  {} takes {names} from {}", name(*source), name(*to));
        circles.entry(least.expect("`to` has a name")).or_default().push_str(&edge);
    }
    circles.into_values().map(|circle| format!("a circle:{circle}")).collect()
}

#[test]
fn files_do_not_import_each_other() {
    let found: Vec<_> = CRATES.iter().flat_map(|first| circles(&root().join(first))).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn cycles_through_re_exports_are_found() {
    let folder = Folder::new();
    let write = |file: &str, text: &str| fs::write(folder.join(file), text).unwrap();
    write("lib.rs", "mod a;\nmod b;\nmod c;\n#[cfg(test)]\nmod tests;\npub use self::a::A;\n");
    write("a.rs", "use crate::b::{self, C as B};\npub struct A(B);\n// crate::c\nconst D: &str = \"crate::c::D\";\n");
    write("b.rs", "pub use crate::c::*;\nfn b(d: crate::c::D) {}\n");
    write("c.rs", "pub use super::A;\npub struct C;\n#[cfg(test)]\nmod tests {\n    use super::*;\n}\n");
    assert_eq!(circles(&folder.path().join("lib.rs")), Vec::<String>::new());
    write("c.rs", "pub use super::A;\npub struct C(A);\n");
    let [a, c] = ["a.rs", "c.rs"].map(|file| folder.join(file));
    let circle = format!("a circle:\n  {a} takes B, crate::b::C from {c}\n  {c} takes A from {a}");
    assert_eq!(circles(&folder.path().join("lib.rs")), [circle]);
}
