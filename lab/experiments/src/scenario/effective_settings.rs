//! The settings of a scenario as kept for its results: given values, defaults, and files.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;

use serde_json::Value;
use sha2::{Digest, Sha256};
use spray_core::path::BalancerKind;

use super::{Axis, Document, Error, Settings};

/// The settings a scenario was made of.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EffectiveSettings {
    /// Settings that the sweep varies, with their values.
    pub axes: Vec<Axis>,
    /// Settings of the file and of the command line.
    given: Value,
    /// All settings, with their defaults.
    full: Value,
    files: Vec<PathBuf>,
}

impl EffectiveSettings {
    pub(super) fn of(document: &Document, settings: &Settings) -> Result<Self, Error> {
        Ok(Self {
            axes: document.axes().to_vec(),
            given: document.resolved::<Settings>()?,
            full: serde_json::to_value(settings).unwrap_or_default(),
            files: document.files::<Settings>(),
        })
    }

    /// Replaces the `condition` of the file, which may not cover assignments.
    pub(super) fn set_condition(&mut self, condition: &str) {
        if let Some(given) = self.given.get_mut("condition") {
            *given = condition.into();
        }
    }

    /// Formats the scenario file of a run with this balancer and seed. Paths are absolute.
    pub fn toml(&self, balancer: BalancerKind, seed: u64) -> String {
        toml::to_string(&of_run(&self.given, balancer, seed)).expect("settings that were read from TOML")
    }

    /// Hashes all that determines the results of a run; `files` caches hashes of named files.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn hash(&self, balancer: BalancerKind, seed: u64, files: &mut HashMap<PathBuf, String>) -> io::Result<Sha256> {
        self.hash_with(&of_run(&self.full, balancer, seed), files)
    }

    /// Hashes the same without axes, switch scheme, balancer and seed: equal within a table.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn hash_of_table(&self, files: &mut HashMap<PathBuf, String>) -> io::Result<Sha256> {
        let mut settings = of_run(&self.full, BalancerKind::ALL[0], 0);
        let schemes = ["scheme", "tor", "agg", "core"].map(|tier| format!("switch.{tier}"));
        for path in self.axes.iter().map(|axis| &axis.path).chain(&schemes) {
            let place = settings.pointer_mut(&format!("/{}", path.replace('.', "/")));
            place.into_iter().for_each(|value| *value = Value::Null);
        }
        self.hash_with(&settings, files)
    }

    fn hash_with(&self, settings: &Value, files: &mut HashMap<PathBuf, String>) -> io::Result<Sha256> {
        let mut hash = Sha256::new();
        hash.update(settings.to_string());
        for file in &self.files {
            if !files.contains_key(file) {
                let mut content = Sha256::new();
                io::copy(&mut std::fs::File::open(file)?, &mut content)?;
                files.insert(file.clone(), format!("{:x}", content.finalize()));
            }
            hash.update(&files[file]);
        }
        Ok(hash)
    }
}

fn of_run(settings: &Value, balancer: BalancerKind, seed: u64) -> Value {
    let mut settings = settings.clone();
    if let Some(top) = settings.as_object_mut() {
        top.remove("seeds");
        top.insert("seed".into(), seed.into());
        let transport = top.entry("transport").or_insert_with(|| Value::Object(serde_json::Map::new()));
        transport["balancer"] = balancer.name().into();
    }
    settings
}
