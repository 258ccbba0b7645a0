//! Checks the input files in a folder of repositories (`OWNER+NAME/...`), and prints
//! `docs/results/inputs.md`; used by `cargo xtask inputs`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use spray_experiments::check::check;

fn main() {
    let folder = std::env::args().nth(1).expect("a folder");
    let mut repositories: Vec<PathBuf> = entries(Path::new(&folder)).filter(|path| path.is_dir()).collect();
    repositories.sort();
    let (mut all, mut all_read) = (0, 0);
    let mut rejected: BTreeMap<String, Vec<String>> = BTreeMap::new();
    println!("| repository | files | read | by kind |\n|---|--:|--:|---|");
    for repository in repositories {
        let name = repository.file_name().unwrap_or_default().to_string_lossy().replace('+', "/");
        let mut files = Vec::new();
        collect(&repository, &mut files);
        files.sort();
        if files.is_empty() {
            continue;
        }
        let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
        for file in &files {
            match check(file) {
                Ok((kind, _)) => *kinds.entry(kind.to_string()).or_default() += 1,
                Err(error) => {
                    let shown = file.strip_prefix(&repository).unwrap_or(file).display();
                    let place = error.location.strip_prefix(&file.display().to_string()).unwrap_or_default();
                    // Without what depends on the file.
                    let message = error.message.replace('|', "\\|");
                    rejected.entry(message).or_default().push(format!("{name}: `{shown}{place}`"));
                }
            }
        }
        let read: usize = kinds.values().sum();
        let by_kind: Vec<String> = kinds.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
        println!("| {name} | {} | {read} | {} |", files.len(), by_kind.join(", "));
        (all, all_read) = (all + files.len(), all_read + read);
    }
    println!("| **all** | {all} | {all_read} | |\n\n| message | files |\n|---|---|");
    for (message, files) in rejected {
        println!("| {message} | {} |", files.join(", "));
    }
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(folder).expect("a readable folder").map(|entry| entry.expect("an entry").path())
}

/// Collects the files that by their names are inputs.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for path in entries(folder) {
        let text = path.display().to_string();
        if path.is_dir() {
            collect(&path, files);
        } else if [".cm", ".topo"].iter().any(|end| text.ends_with(end))
            || (text.contains("cdf_files/") && text.ends_with(".txt"))
        {
            files.push(path);
        }
    }
}
