//! A TOML value of two types.

use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum NumberOrText<N> {
    Number(N),
    Text(String),
}
