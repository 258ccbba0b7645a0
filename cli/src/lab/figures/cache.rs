//! Runs of figures as JSON lines: `reps-7-full.jsonl`, of a part `reps-7-full.2of4.jsonl`.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use spray_experiments::figures::{Figure, FigureRun, Plan, Scale};
use spray_tools::failure::{Failure, Outcome};

use crate::lab::campaign::{COMMIT, VERSION};
use crate::lab::runs::Part;

#[derive(Serialize, Deserialize)]
struct Line {
    /// Hash of the settings, the seed, the version and the commit.
    key: String,
    made: FigureRun,
}

pub fn key(plan: &Plan<'_>, run: usize) -> String {
    format!("{:x}", Sha256::digest([VERSION, COMMIT, &plan.key(run)].join("\0")))
}

/// The runs in a folder, by key.
#[derive(Default)]
pub struct Cache(HashMap<String, FigureRun>);

impl Cache {
    /// Reads the runs in `out`. Skips incomplete lines, which a killed process may leave.
    pub fn load(out: &Path) -> Outcome<Self> {
        let entries = fs::read_dir(out).into_iter().flatten().flatten().map(|entry| entry.path());
        let mut cache = Self::default();
        for file in entries.filter(|path| path.extension().is_some_and(|extension| extension == "jsonl")) {
            let text = fs::read(&file).map_err(|error| refused(&file, &error))?;
            let lines = text.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice::<Line>(line).ok());
            cache.0.extend(lines.map(|line| (line.key, line.made)));
        }
        Ok(cache)
    }

    pub fn has(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    /// Returns all runs of the plan, or `None` if one is missing.
    pub fn all(&self, plan: &Plan<'_>) -> Option<Vec<FigureRun>> {
        (0..plan.runs()).map(|run| self.0.get(&key(plan, run)).cloned()).collect()
    }
}

pub struct CacheWriter {
    path: PathBuf,
    /// Opened for the first run, so that a figure without new runs creates no file.
    file: Option<File>,
}

impl CacheWriter {
    pub fn new(out: &Path, figure: &Figure, scale: Scale, part: Option<Part>) -> Self {
        let part = part.map_or_else(String::new, |Part { number, of }| format!("{number}of{of}."));
        Self { path: out.join(format!("{}-{}.{part}jsonl", figure.file_name(), scale.name())), file: None }
    }

    pub fn write(&mut self, key: String, made: FigureRun) -> Outcome {
        let line = serde_json::to_string(&Line { key, made }).map_err(Failure::failed)?;
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                let file = OpenOptions::new().append(true).create(true).open(&self.path);
                none.insert(file.map_err(|error| refused(&self.path, &error))?)
            }
        };
        // Begins with a newline, because a killed process may have left an incomplete line.
        file.write_all(format!("\n{line}\n").as_bytes()).map_err(|error| refused(&self.path, &error))
    }
}

pub fn refused(file: &Path, error: &std::io::Error) -> Failure {
    Failure::refused(format!("{}: {error}", file.display()))
}

#[cfg(test)]
mod tests {
    use spray_experiments::figures;
    use spray_test_support::Folder;

    use super::*;

    #[test]
    fn parts_and_truncated_lines_are_combined() {
        let folder = Folder::new();
        let out = folder.path();
        let figure = figures::find("reps/2").unwrap();
        let plan = figure.plan(Scale::Quick);
        let made = plan.run(0).unwrap();
        let load = || Cache::load(out).unwrap();
        assert!(!load().has(&key(&plan, 0)));
        for number in 1..=2 {
            let mut writer = CacheWriter::new(out, &figure, Scale::Quick, Some(Part { number, of: 2 }));
            for run in (0..plan.runs()).skip(number - 1).step_by(2) {
                writer.write(key(&plan, run), made.clone()).unwrap();
            }
            assert_eq!(load().all(&plan).is_some(), number == 2);
        }
        let file = out.join("reps-2-quick.1of2.jsonl");
        let text = fs::read_to_string(&file).unwrap();
        fs::write(&file, &text[..text.len() - 9]).unwrap();
        let missing: Vec<usize> = (0..plan.runs()).filter(|run| !load().has(&key(&plan, *run))).collect();
        assert_eq!(missing.len(), 1);
        CacheWriter::new(out, &figure, Scale::Quick, Some(Part { number: 1, of: 2 }))
            .write(key(&plan, missing[0]), made)
            .unwrap();
        assert!(load().all(&plan).is_some());
        assert!(!load().has(&key(&figure.plan(Scale::Full), 0)));
    }
}
