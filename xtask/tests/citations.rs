//! Every `//= docs/specs/FILE.md#CLAUSE words` names a clause that exists, and quotes words that stand in it.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use spray_test_support::root;

/// What begins a citation; the path of the specification follows.
const MARK: &str = "//= ";
/// Folders with code that cites.
const CODE: [&str; 8] = ["benches", "cli", "ebpf/src", "nic", "switch-emu", "tests", "xtask", "deploy"];

/// The clauses of a specification by name, each as lower-case words.
fn clauses(text: &str) -> HashMap<String, String> {
    let mut clauses = HashMap::new();
    let mut current: Option<(String, String)> = None;
    for line in text.lines() {
        let begun = line.trim_start_matches("- ").strip_prefix("**").map(name).filter(|name| name.contains('-'));
        if begun.is_some() || line.starts_with('#') {
            clauses.extend(current.take());
        }
        if let Some(name) = begun {
            current = Some((name.into(), String::new()));
        }
        if let Some((_, words)) = &mut current {
            words.push_str(&plain(line));
            words.push(' ');
        }
    }
    clauses.extend(current);
    clauses
}

/// The clause's name at the start of `text`: `TRN-3` of `TRN-3 Bytes in flight.** A packet ...`.
fn name(text: &str) -> &str {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').next().unwrap_or_default()
}

fn plain(text: &str) -> String {
    let text: String = text.chars().filter(|c| !"*`_".contains(*c)).collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

/// All Rust files under `folder`, without those that cargo built.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// What is wrong with the citation in `line`, if it has one.
fn fault(line: &str, specifications: &mut HashMap<String, HashMap<String, String>>) -> Option<String> {
    let (target, words) =
        line.trim_start().strip_prefix(MARK)?.split_once(' ').unwrap_or((line.trim_start().strip_prefix(MARK)?, ""));
    let Some((file, clause)) = target.split_once('#') else { return Some(format!("`{target}` names no clause")) };
    let specification = specifications
        .entry(file.into())
        .or_insert_with(|| clauses(&fs::read_to_string(root().join(file)).unwrap_or_default()));
    let Some(text) = specification.get(clause) else { return Some(format!("there is no {clause} in {file}")) };
    (!text.contains(&plain(words))).then(|| format!("{clause} does not say `{words}`"))
}

#[test]
fn citations_name_clauses_and_quote_them() {
    let (mut files, mut specifications, mut faults, mut citations) = (vec![], HashMap::new(), vec![], 0);
    CODE.iter().for_each(|folder| sources(&root().join(folder), &mut files));
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        for (number, line) in text.lines().enumerate() {
            citations += usize::from(line.trim_start().starts_with(MARK));
            let fault = fault(line, &mut specifications);
            faults.extend(fault.map(|fault| format!("{}:{}: {fault}", file.display(), number + 1)));
        }
    }
    assert!(citations > 500, "only {citations} citations");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_clause_ends_where_the_next_begins() {
    let clauses =
        clauses("- **A-1 One.** `This`\n  and *that*.\n- **A-2** More.\n\n## Else\nNothing\n**B-1a, b** Last.\n");
    assert_eq!(clauses["A-1"], "- a-1 one. this and that. ");
    assert_eq!(clauses["A-2"], "- a-2 more.  ");
    assert!(clauses["B-1a"].contains("last") && clauses.len() == 3);
}
