//! What runs of figures gave, kept as it comes: a line of JSON each, in `reps-7-full.jsonl`, of a part in `reps-7-full.2of4.jsonl`.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use spray_experiments::figures::{Figure, Made, Plan, Scale};
use spray_tools::failure::{Failure, Outcome};

use crate::lab::campaign::{COMMIT, VERSION};
use crate::lab::runs::Part;

/// A run that is kept.
#[derive(Serialize, Deserialize)]
struct Line {
    /// What it follows from: its settings and seed, the version and the commit.
    key: String,
    made: Made,
}

/// The key of a run of a plan.
pub fn key(plan: &Plan<'_>, run: usize) -> String {
    format!("{:x}", Sha256::digest([VERSION, COMMIT, &plan.key(run)].join("\0")))
}

/// The runs that a folder has, by their keys.
#[derive(Default)]
pub struct Kept(HashMap<String, Made>);

impl Kept {
    /// Reads those in `out`, and passes over lines that a killed process has left unfinished.
    pub fn load(out: &Path) -> Outcome<Self> {
        let entries = fs::read_dir(out).into_iter().flatten().flatten().map(|entry| entry.path());
        let mut kept = Self::default();
        for file in entries.filter(|path| path.extension().is_some_and(|extension| extension == "jsonl")) {
            let text = fs::read(&file).map_err(|error| refused(&file, &error))?;
            let lines = text.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice::<Line>(line).ok());
            kept.0.extend(lines.map(|line| (line.key, line.made)));
        }
        Ok(kept)
    }

    /// Whether a run is there.
    pub fn has(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    /// All runs of the plan; `None` when one is missing.
    pub fn all(&self, plan: &Plan<'_>) -> Option<Vec<Made>> {
        (0..plan.runs()).map(|run| self.0.get(&key(plan, run)).cloned()).collect()
    }
}

/// Keeps runs of a figure.
pub struct Keeper {
    path: PathBuf,
    /// Opened with the first run, so that a figure without new runs leaves no file.
    file: Option<File>,
}

impl Keeper {
    /// Keeps them in a file in `out`. Each part has a file of its own.
    pub fn new(out: &Path, figure: &Figure, scale: Scale, part: Option<Part>) -> Self {
        let part = part.map_or_else(String::new, |Part { number, of }| format!("{number}of{of}."));
        Self { path: out.join(format!("{}-{}.{part}jsonl", figure.file_name(), scale.name())), file: None }
    }

    /// Keeps what a run gave.
    ///
    /// # Errors
    /// 2 when it cannot be written.
    pub fn keep(&mut self, key: String, made: Made) -> Outcome {
        let line = serde_json::to_string(&Line { key, made }).map_err(Failure::failed)?;
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                let file = OpenOptions::new().append(true).create(true).open(&self.path);
                none.insert(file.map_err(|error| refused(&self.path, &error))?)
            }
        };
        // A killed process may have left an unfinished line: this one must not continue it.
        file.write_all(format!("\n{line}\n").as_bytes()).map_err(|error| refused(&self.path, &error))
    }
}

/// A file that cannot be read or written.
pub fn refused(file: &Path, error: &std::io::Error) -> Failure {
    Failure::refused(format!("{}: {error}", file.display()))
}

#[cfg(test)]
mod tests {
    use spray_experiments::figures;
    use spray_test_support::Folder;

    use super::*;

    #[test]
    fn parts_and_lines_without_an_end_together_make_the_whole() {
        let folder = Folder::new();
        let out = folder.path();
        let figure = figures::find("reps/2").unwrap();
        let plan = figure.plan(Scale::Quick);
        let made = plan.run(0).unwrap();
        let load = || Kept::load(out).unwrap();
        assert!(!load().has(&key(&plan, 0)));
        for number in 1..=2 {
            let mut keeper = Keeper::new(out, &figure, Scale::Quick, Some(Part { number, of: 2 }));
            for run in (0..plan.runs()).skip(number - 1).step_by(2) {
                keeper.keep(key(&plan, run), made.clone()).unwrap();
            }
            assert_eq!(load().all(&plan).is_some(), number == 2);
        }
        let file = out.join("reps-2-quick.1of2.jsonl");
        let text = fs::read_to_string(&file).unwrap();
        fs::write(&file, &text[..text.len() - 9]).unwrap();
        let missing: Vec<usize> = (0..plan.runs()).filter(|run| !load().has(&key(&plan, *run))).collect();
        assert_eq!(missing.len(), 1);
        Keeper::new(out, &figure, Scale::Quick, Some(Part { number: 1, of: 2 }))
            .keep(key(&plan, missing[0]), made)
            .unwrap();
        assert!(load().all(&plan).is_some());
        assert!(!load().has(&key(&figure.plan(Scale::Full), 0)));
    }
}
